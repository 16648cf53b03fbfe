"""Linear estimators: ridge, low-rank and higher-order low-rank regression."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, Options, StrOptions

from ..base import TensorRegressor
from ..core.approximate import FullRank, MatrixRank, MultilinearRank, Structure
from ..core.fit import Fit
from ..core.namespace import to_numpy
from ..core.threads import few_threads_for
from ..core.warn import warn
from ..data.arrays import comes_from, ignores_missing
from ..data.blocks import InputBlocks, penalties_by_block
from ..data.labels import Labels
from ..data.output_scale import SCALE_CONSTRAINT, divide_outputs, multiply_outputs
from ..data.validation import Names, Samples, names_of_moments, validate
from ..missing.fit import check_same_missing, complete_outputs
from ..streaming.chunks import Chunks
from ..streaming.moments import Moments
from . import block_parts
from .fit import (
    LinearOptions,
    fit_data,
    fit_moments,
    refuse_output_weight,
    weigh_outputs,
)
from .inputs import InputPlan, input_plan
from .robust import refuse_huber, weigh_samples

__all__ = ["DATA_CONSTRAINTS", "HOLRR", "LINEAR_CONSTRAINTS", "LRR", "MULTILINEAR_CONSTRAINTS"]
__all__ += ["RLS", "LinearRegressor", "add_batch", "check_batch", "check_moments_argument"]
__all__ += ["block_attributes", "input_attributes"]

DATA_CONSTRAINTS: dict[str, list[Any]] = {
    "output_shape": ["array-like", None],
    "input_shape": ["array-like", dict, None],
}
LINEAR_CONSTRAINTS: dict[str, list[Any]] = {
    "alpha": [Interval(Real, 0, None, closed="left"), "array-like", dict],
    "fit_intercept": ["boolean"],
    "loss": [StrOptions({"squared", "huber"})],
    "missing": [StrOptions({"raise", "ignore"})],
    "output_weight": ["array-like", None],
    "scale_outputs": SCALE_CONSTRAINT,
    "input_rank": ["array-like", dict, Integral, None],
    "input_alpha": [Interval(Real, 0, None, closed="left"), Options(Real, {math.inf})],
    "blocks": ["array-like", str, dict, None],
    "own": ["array-like", str, None],
    "own_alpha": [Interval(Real, 0, None, closed="left")],
    **DATA_CONSTRAINTS,
}
MULTILINEAR_CONSTRAINTS: dict[str, list[Any]] = {
    "subspaces": [StrOptions({"fitted", "response"})],
    "refine": ["boolean"],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
}


class LinearRegressor(TensorRegressor):
    """Base class of linear models, whose coefficients have a structure.

    A subclass defines its parameters and returns its structure (`_structure`).
    """

    _parameter_constraints: dict = LINEAR_CONSTRAINTS

    alpha: Any
    fit_intercept: bool
    loss: str = "squared"
    missing: str = "raise"
    output_weight: Any = None
    scale_outputs: Any = None
    input_rank: Any = None
    input_alpha: float = 1.0
    blocks: Any = None
    own: Any = None
    own_alpha: float = 1.0

    predict_blocks = block_parts.predict_blocks
    score_blocks = block_parts.score_blocks

    def _structure(self) -> Structure:
        """Return the structure of the coefficients."""
        raise NotImplementedError

    def _options(self, plan: InputPlan) -> LinearOptions:
        return LinearOptions(
            structure=self._structure(),
            alpha=plan.alpha,
            fit_intercept=self.fit_intercept,
            ignore_missing=ignores_missing(self),
            inputs=plan.fixed,
        )

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, sample_dim: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : array of shape (n_samples, n_features) or (n_samples, m1, ..., mq)
            Inputs: a NumPy array, an array of another library that follows the array API standard
            (PyTorch, CuPy, ...), a DataFrame, an xarray object or a dict of arrays (see
            docs/inputs.md), or a sparse matrix of SciPy, which stays sparse (see docs/sparse.md).
            The fit runs on the device of the arrays. Memory maps and Dask arrays are read in
            chunks (see docs/streaming.md). Cells of arrays with modes and of labelled
            arrays that are NaN in every sample, such as land in a field of the sea, are left out of
            the model: their coefficients are NaN, and `predict` ignores their values.
        y : array of shape (n_samples, d1, ..., dp)
            Outputs of any order p >= 0. Scalar targets have shape (n_samples,).
        sample_weight : array of shape (n_samples,), optional
            Weights of the samples in the squared error.
        sample_dim : str, optional
            Sample dimension of xarray objects. By default, it is the dimension that `X` and `y`
            share. If they share several, it is the first one, which must be the same in both.

        Returns
        -------
        self
            The fitted estimator.
        """
        data, names = validate(self, X, y, sample_weight, sample_dim=sample_dim)
        plan = input_plan(self, names, data)
        options = self._options(plan)
        data, scale = divide_outputs(self, data, names.labels)
        data, weights = weigh_outputs(
            self.output_weight, data, names.labels, options.ignore_missing
        )
        data, robust_weight = weigh_samples(self, data, weights)
        fit, n_dropped = fit_data(data, options, weights)
        fit = multiply_outputs(self, fit, scale, names.labels)
        names = names.with_leverage(fit.hat, data)
        return self._assign_fit(
            fit, names, plan, n_dropped if isinstance(data, Samples) else None, robust_weight
        )

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        decay: float = 1.0,
        sample_dim: Any = None,
    ) -> Any:
        """Add a batch of samples, and fit the model to all batches.

        The estimator keeps the data as moments, whose size does not depend on the number of
        samples. For many small batches, compute the moments with `Moments.from_batches` and call
        `fit_moments` once. `fit` keeps no moments: after `fit`, `partial_fit` starts from an empty
        model and warns.

        Parameters
        ----------
        X : array of shape (n_samples, n_features) or (n_samples, m1, ..., mq)
            Inputs of the batch.
        y : array of shape (n_samples, d1, ..., dp)
            Outputs of the batch.
        sample_weight : array of shape (n_samples,), optional
            Weights of the samples in the squared error.
        decay : float, default=1.0
            Factor in (0, 1] that multiplies the weights of all earlier batches. With a factor
            below 1, older batches count less. See docs/streaming.md.
        sample_dim : str, optional
            As in `fit`, for the first batch.

        Returns
        -------
        self
            The fitted estimator.

        Examples
        --------
        >>> import numpy as np
        >>> from holrr import RLS
        >>> model = RLS().partial_fit(np.eye(4), np.ones((4, 3, 2)))
        >>> model.partial_fit(-np.eye(4), np.zeros((4, 3, 2))).moments_.n_samples
        8
        """
        refuse_output_weight(self.output_weight, "moments")
        refuse_huber(self.loss, "moments")
        data, names, seen = check_batch(self, X, y, sample_weight, decay, sample_dim)
        plan, missing = input_plan(self, names, data), None
        options = self._options(plan)
        if options.ignore_missing:
            data, missing = complete_outputs(data)
        if seen is not None:
            before = self._intercept
            before = before if isinstance(before, float) else to_numpy(before)
            check_same_missing(missing, np.isnan(before))
        grams = options.structure.needs_response_grams
        moments = add_batch(data, seen, names, grams, missing)
        return self._fit_moments(moments, options, names, plan)

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_moments(self, moments: Moments) -> Any:
        """Fit the model to moments of the data.

        Parameters
        ----------
        moments : Moments
            Moments of X and y, computed in this process or elsewhere. See docs/streaming.md.

        Returns
        -------
        self
            The fitted estimator.

        Examples
        --------
        >>> import numpy as np
        >>> from holrr import RLS, Moments
        >>> here, there = (Moments.from_arrays(np.eye(4), np.ones((4, 3, 2))) for _ in range(2))
        >>> RLS().fit_moments(here + there).coef_.shape
        (4, 3, 2)
        """
        refuse_output_weight(self.output_weight, "moments")
        refuse_huber(self.loss, "moments")
        names = check_moments_argument(self, moments)
        plan = input_plan(self, names, moments)
        return self._fit_moments(moments, self._options(plan), names, plan)

    def _fit_moments(
        self, moments: Moments, options: LinearOptions, names: Names, plan: InputPlan
    ) -> Any:
        """Fit the model to moments, and keep them for later batches."""
        part, scale = divide_outputs(self, moments, names.labels)
        fit = fit_moments(part, options, never=moments.missing_outputs)
        fit = multiply_outputs(self, fit, scale, names.labels)
        return self._assign_fit(fit, names, plan, moments=moments)

    def _assign_fit(
        self,
        fit: Fit,
        names: Names,
        plan: InputPlan,
        n_dropped: int | None = None,
        robust_weight: np.ndarray | None = None,
        moments: Moments | None = None,
    ) -> Any:
        """Assign the attributes of a fit; rank and number of iterations depend on the structure."""
        structure, attributes = self._structure(), dict[str, Any]()
        ignores = ignores_missing(self) and n_dropped is not None
        if isinstance(structure, MultilinearRank):
            attributes["rank_"] = fit.tucker.rank
        elif isinstance(structure, MatrixRank):
            attributes["rank_"] = fit.tucker.rank[0]
        if ignores or isinstance(structure, MultilinearRank):
            attributes["n_iter_"] = fit.n_iter
        if ignores:
            attributes["n_dropped_"] = n_dropped
        attributes["robust_weight_"] = robust_weight
        attributes |= input_attributes(fit, names)
        attributes |= block_attributes(plan.blocks, self.alpha, names, fit)
        return self._assign(fit, names, moments_=moments, **attributes)


class RLS(LinearRegressor):
    r"""Regularised least squares (ridge regression) for tensor outputs.

    The fit minimises :math:`\|\mathcal{W} \times_0 X - \mathcal{Y}\|^2 + \alpha \|\mathcal{W}\|^2`
    over all tensors :math:`\mathcal{W}` of coefficients. The outputs are independent of each other:
    the fit is scikit-learn's ``Ridge`` on the flattened outputs. See docs/linear.md.

    Parameters
    ----------
    alpha : float, dict, or array of shape (d1, ..., dp), default=1.0
        Ridge penalty, at least 0. With 0, the fit is the least squares solution of minimum norm. A
        dict maps the name of each block of inputs (see `blocks`) to the penalty of the block; an
        infinite penalty leaves a block out of the model. An array has one penalty for each output.
        A labelled array must have the labels of the outputs.
    fit_intercept : bool, default=True
        Whether to fit an intercept. The intercept is not penalised.
    loss : {"squared", "huber"}, default="squared"
        Loss of the fit. "huber" is a robust fit: samples that the other samples do not predict get
        smaller weights in the squared error. See docs/robust.md.
    missing : {"raise", "ignore"}, default="raise"
        How to handle missing values (NaN or masked entries) in y. "raise" raises an error. "ignore"
        leaves missing values out of the objective. See docs/missing.md.
    output_weight : list of p arrays of shape (d_i,), array of shape (d1, ..., dp), or None
        Weights of the outputs in the objective and in `score`. A list has one vector of weights, or
        None, for each output mode. An array must be the product of such vectors, apart from zeros
        with ``missing="ignore"``. A DataArray weights the modes that are its dimensions. The
        outputs of ridge regression are independent of each other, so only weights of zero change
        the fit; all weights change `score`.
    scale_outputs : "std", array of shape (d1, ..., dp) or None, default=None
        Divisors of the outputs in the fit, so that outputs in different units count equally. "std"
        divides each output by its standard deviation over the training samples; a labelled array
        must have the labels of the outputs. Predictions, coefficients and noise are in the units of
        y, and `score` and held-out errors are those of the divided outputs.
    output_shape : tuple of int or None, default=None
        Modes ``(d1, ..., dp)`` of flat outputs. With `output_shape`, y and the predictions have
        shape (n_samples, D), where D is the number of outputs.
    input_shape : tuple of int, dict or None, default=None
        Modes ``(m1, ..., mq)`` of flat inputs of shape (n_samples, n_features). A dict from names
        to shapes splits the columns into consecutive blocks.
    blocks : str, dict, list or None, default=None
        Blocks of inputs, which can have different penalties: a dict from the name of each block to
        its columns, the label of the block of each column, the name of a mode of `X`, "prefix" or
        "auto". Blocks change the fit only if `alpha` is a dict. `HOLRR` and docs/blocks.md describe
        all forms.
    own : str, list, array of bool, or None, default=None
        Own inputs of each output, which get separate coefficients with the penalty `own_alpha`. An
        own input has the same label as the output along a mode that `X` and `y` share, such as the
        station. Pass the name of the shared mode or a list of names; "auto" uses all modes whose
        names and coordinates agree. For arrays without names, pass pairs of positions
        ``(axis of a sample of X, axis of a sample of y)``, or a boolean array of inputs by outputs.
        See docs/own_inputs.md.
    own_alpha : float, default=1.0
        Ridge penalty of the coefficients of own inputs, in the units of `alpha`. With a penalty for
        each block, the penalty of an own input is `own_alpha` times the penalty of its block,
        divided by the geometric mean of the penalties of all blocks.
    input_rank : int, tuple, dict or None, default=None
        Number of directions to keep of each mode of `X`, for inputs of shape
        (n_samples, m1, ..., mq). A tuple has the form ``(r1, ..., rq)``, with ranks up to the sizes
        of the modes. An int is used for every mode, capped at the size of the mode. None, as the
        parameter or as an entry of a tuple, keeps all directions. For several blocks of inputs,
        pass a dict from the names of the blocks to ranks. See docs/inputs.md.
    input_alpha : float, default=1.0
        Ridge penalty that determines the directions of `input_rank`, as a multiple of the mean
        eigenvalue of ``X'X``: the directions are those of ridge coefficients with this penalty.
        Infinity uses the directions of ``X'Y``, as partial least squares does.

    Attributes
    ----------
    coef_ : array of shape (n_features, d1, ..., dp), or (D, n_features) with `output_shape`
        Dense coefficients, computed on access. If `X` has modes, the shape is
        (m1, ..., mq, d1, ..., dp). If `X` has several blocks, `coef_` is a dict of such arrays.
    intercept_ : array of shape (d1, ..., dp), or (D,) with `output_shape`; float for scalar targets
        Intercept of each output.
    noise_ : array of shape (d1, ..., dp), or (D,) with `output_shape`; float for scalar targets
        Standard deviation of the noise of each output, from the residual sum of squares and the
        residual degrees of freedom. See docs/intervals.md.
    objective_ : float
        Objective of the fit, which is the minimum.
    lower_bound_ : float
        Lower bound on the optimal objective. It equals `objective_`, since the fit is exact.
    n_iter_ : int
        Number of iterations of a fit with missing outputs, with ``missing="ignore"``.
    n_dropped_ : int
        Number of samples without any observed output, with ``missing="ignore"``.
    robust_weight_ : array of shape (n_samples,)
        Weight of each sample, between 0 and 1, with ``loss="huber"``. The fit has the squared loss
        with these weights times `sample_weight`.
    solver_ : str
        Factorisation that the fit used.
    moments_ : Moments
        Moments of the data, after `partial_fit` and `fit_moments`.
    input_rank_ : tuple of int, or dict
        Number of directions of each mode of `X` that the fit keeps. Available if `X` has modes.
    input_factors_ : list of q arrays of shape (m_k, r_k), or dict
        Orthonormal bases of the directions of each mode of `X`, with `input_rank`.
    blocks_ : dict
        Positions of the columns of each block of inputs, by the name of the block, with `blocks`.
    block_alphas_ : dict
        Penalty of each block of inputs, with `blocks`.
    own_coef_ : array with the shape of `coef_`, or dict
        Coefficients of own inputs, with `own`; zero for all other inputs. They are part of `coef_`,
        but not of `core_` and `factors_`.
    output_scale_ : array of shape (d1, ..., dp), or (D,) with `output_shape`
        Divisor of each output, with `scale_outputs`. `core_` and `factors_` describe the divided
        outputs.
    n_features_in_ : int
        Number of features of `X`.
    feature_names_in_ : array of shape (n_features,)
        Names of the features, if `X` had names in `fit`.
    labels_ : Labels or None
        Names and coordinates of the samples, inputs and outputs, if the data had labels.

    See Also
    --------
    RLSCV : Ridge regression with cross-validated penalty.
    LRR : Ridge regression with coefficients of low matrix rank.
    HOLRR : Ridge regression with coefficients of low multilinear rank.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr import RLS
    >>> rng = np.random.default_rng(0)
    >>> X, W = rng.normal(size=(50, 3)), rng.normal(size=(3, 4, 5))
    >>> model = RLS(alpha=0).fit(X, np.tensordot(X, W, 1) + 1)
    >>> model.coef_.shape, bool(np.allclose(model.coef_, W)), bool(np.allclose(model.intercept_, 1))
    ((3, 4, 5), True, True)
    """

    _shares_directions = False

    def __init__(
        self,
        alpha=1.0,
        *,
        fit_intercept=True,
        loss="squared",
        missing="raise",
        output_weight=None,
        scale_outputs=None,
        output_shape=None,
        input_shape=None,
        blocks=None,
        own=None,
        own_alpha=1.0,
        input_rank=None,
        input_alpha=1.0,
    ):
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.loss = loss
        self.missing = missing
        self.output_weight = output_weight
        self.scale_outputs = scale_outputs
        self.output_shape = output_shape
        self.input_shape = input_shape
        self.blocks = blocks
        self.own = own
        self.own_alpha = own_alpha
        self.input_rank = input_rank
        self.input_alpha = input_alpha

    def _structure(self) -> FullRank:
        return FullRank()


class LRR(LinearRegressor):
    r"""Low-rank (reduced-rank) ridge regression for tensor outputs.

    The fit minimises :math:`\|\mathcal{W} \times_0 X - \mathcal{Y}\|^2 + \alpha \|\mathcal{W}\|^2`
    over all tensors :math:`\mathcal{W}` whose mode-0 unfolding (inputs by all outputs) has rank at
    most `rank`. The solution is exact. See docs/linear.md.

    Parameters
    ----------
    rank : int, float or None, default=None
        Maximum rank, capped at the number of features. A float in (0, 1) is the share of the
        squared norm of the whitened data to keep. None is full rank, which is ridge regression.
        `LRRCV` chooses the rank by cross-validation.
    alpha : float or dict, default=1.0
        Ridge penalty, at least 0. A dict maps the name of each block of inputs (see `blocks`) to
        the penalty of the block. An infinite penalty leaves a block out of the model. A penalty of
        0 fits a block without shrinkage and without a constraint on its rank, as the intercept is
        fitted.
    fit_intercept : bool, default=True
        Whether to fit an intercept. The intercept is not penalised.
    loss : {"squared", "huber"}, default="squared"
        Loss of the fit. "huber" is a robust fit: samples that the other samples do not predict get
        smaller weights in the squared error. See docs/robust.md.
    missing : {"raise", "ignore"}, default="raise"
        How to handle missing values (NaN or masked entries) in y. "raise" raises an error. "ignore"
        leaves missing values out of the objective: the fit alternates between imputing them and
        refitting the model. See docs/missing.md.
    output_weight : list of p arrays of shape (d_i,), array of shape (d1, ..., dp), or None
        Weights of the outputs in the objective and in `score`. A list has one vector of weights, or
        None, for each output mode. An array must be the product of such vectors. A DataArray
        weights the modes that are its dimensions. With ``missing="ignore"``, an array may also have
        zeros that are not such a product: the fit leaves outputs of weight zero out as if they had
        never been observed. See docs/missing.md.
    scale_outputs : "std", array of shape (d1, ..., dp) or None, default=None
        Divisors of the outputs in the fit, so that outputs in different units count equally. "std"
        divides each output by its standard deviation over the training samples; a labelled array
        must have the labels of the outputs. Predictions, coefficients and noise are in the units of
        y, and `score` and held-out errors are those of the divided outputs.
    output_shape : tuple of int or None, default=None
        Modes ``(d1, ..., dp)`` of flat outputs. With `output_shape`, y and the predictions have
        shape (n_samples, D), where D is the number of outputs.
    input_shape : tuple of int, dict or None, default=None
        Modes ``(m1, ..., mq)`` of flat inputs of shape (n_samples, n_features). A dict from names
        to shapes splits the columns into consecutive blocks.
    blocks : str, dict, list or None, default=None
        Blocks of inputs, which can have different penalties: a dict from the name of each block to
        its columns, the label of the block of each column, the name of a mode of `X`, "prefix" or
        "auto". Blocks change the fit only if `alpha` is a dict. `HOLRR` and docs/blocks.md describe
        all forms.
    own : str, list, array of bool, or None, default=None
        Own inputs of each output, which get separate coefficients in addition to the low-rank part.
        An own input has the same label as the output along a mode that `X` and `y` share, such as
        the station. Pass the name of the shared mode or a list of names; "auto" uses all modes
        whose names and coordinates agree. For arrays without names, pass pairs of positions
        ``(axis of a sample of X, axis of a sample of y)``, or a boolean array of inputs by outputs.
        See docs/own_inputs.md.
    own_alpha : float, default=1.0
        Ridge penalty of the coefficients of own inputs, in the units of `alpha`. With a penalty for
        each block, the penalty of an own input is `own_alpha` times the penalty of its block,
        divided by the geometric mean of the penalties of all blocks.
    input_rank : int, tuple, dict or None, default=None
        Number of directions to keep of each mode of `X`, for inputs of shape
        (n_samples, m1, ..., mq). A tuple has the form ``(r1, ..., rq)``, with ranks up to the sizes
        of the modes. An int is used for every mode, capped at the size of the mode. None, as the
        parameter or as an entry of a tuple, keeps all directions. For several blocks of inputs,
        pass a dict from the names of the blocks to ranks. See docs/inputs.md.
    input_alpha : float, default=1.0
        Ridge penalty that determines the directions of `input_rank`, as a multiple of the mean
        eigenvalue of ``X'X``: the directions are those of ridge coefficients with this penalty.
        Infinity uses the directions of ``X'Y``, as partial least squares does.

    Attributes
    ----------
    core_ : array of shape (R, d1, ..., dp)
        Outputs for each of the R latent inputs.
    factors_ : list of p + 1 arrays
        Factors of the Tucker form: the map from inputs to latent inputs, of shape (n_features, R),
        then identity matrices.
    coef_ : array of shape (n_features, d1, ..., dp), or (D, n_features) with `output_shape`
        Dense coefficients, computed on access. If `X` has modes, the shape is
        (m1, ..., mq, d1, ..., dp). If `X` has several blocks, `coef_` is a dict of such arrays.
    intercept_ : array of shape (d1, ..., dp), or (D,) with `output_shape`; float for scalar targets
        Intercept of each output.
    noise_ : array of shape (d1, ..., dp), or (D,) with `output_shape`; float for scalar targets
        Standard deviation of the noise of each output, from the residual sum of squares and the
        residual degrees of freedom. See docs/intervals.md.
    rank_ : int
        Rank of the fit. It is lower than `rank` if the data do not support `rank`.
    objective_ : float
        Objective of the fit, which is the minimum.
    lower_bound_ : float
        Lower bound on the optimal objective. It equals `objective_`, since the fit is exact.
    spectra_ : list of p + 1 arrays
        Squared singular values of the whitened data. Only the entry of the input mode is not empty.
    energy_ : float
        Squared norm of the whitened data, which the model of full rank explains.
    n_iter_ : int
        Number of iterations of a fit with missing outputs, with ``missing="ignore"``.
    n_dropped_ : int
        Number of samples without any observed output, with ``missing="ignore"``.
    robust_weight_ : array of shape (n_samples,)
        Weight of each sample, between 0 and 1, with ``loss="huber"``. The fit has the squared loss
        with these weights times `sample_weight`.
    solver_ : str
        Factorisation that the fit used.
    moments_ : Moments
        Moments of the data, after `partial_fit` and `fit_moments`.
    input_rank_ : tuple of int, or dict
        Number of directions of each mode of `X` that the fit keeps. Available if `X` has modes.
    input_factors_ : list of q arrays of shape (m_k, r_k), or dict
        Orthonormal bases of the directions of each mode of `X`, with `input_rank`.
    blocks_ : dict
        Positions of the columns of each block of inputs, by the name of the block, with `blocks`.
    block_alphas_ : dict
        Penalty of each block of inputs, with `blocks`.
    own_coef_ : array with the shape of `coef_`, or dict
        Coefficients of own inputs, with `own`; zero for all other inputs. They are part of `coef_`,
        but not of `core_` and `factors_`.
    output_scale_ : array of shape (d1, ..., dp), or (D,) with `output_shape`
        Divisor of each output, with `scale_outputs`. `core_` and `factors_` describe the divided
        outputs.
    n_features_in_ : int
        Number of features of `X`.
    feature_names_in_ : array of shape (n_features,)
        Names of the features, if `X` had names in `fit`.
    labels_ : Labels or None
        Names and coordinates of the samples, inputs and outputs, if the data had labels.

    See Also
    --------
    LRRCV : Low-rank regression with cross-validated penalty and rank.
    HOLRR : Ridge regression with coefficients of low multilinear rank.

    References
    ----------
    A. J. Izenman (1975). Reduced-rank regression for the multivariate linear model. Journal of
    Multivariate Analysis 5(2), 248-264.

    A. Mukherjee, J. Zhu (2011). Reduced rank ridge regression and its kernel extensions.
    Statistical Analysis and Data Mining 4(6), 612-622.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr import LRR
    >>> rng = np.random.default_rng(0)
    >>> X, W = rng.normal(size=(50, 6)), rng.normal(size=(6, 2)) @ rng.normal(size=(2, 20))
    >>> model = LRR(rank=2, alpha=0).fit(X, (X @ W).reshape(50, 4, 5))
    >>> model.rank_, bool(np.allclose(model.coef_.reshape(6, 20), W))
    (2, True)
    """

    def __init__(
        self,
        rank=None,
        alpha=1.0,
        *,
        fit_intercept=True,
        loss="squared",
        missing="raise",
        output_weight=None,
        scale_outputs=None,
        output_shape=None,
        input_shape=None,
        blocks=None,
        own=None,
        own_alpha=1.0,
        input_rank=None,
        input_alpha=1.0,
    ):
        self.rank = rank
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.loss = loss
        self.missing = missing
        self.output_weight = output_weight
        self.scale_outputs = scale_outputs
        self.output_shape = output_shape
        self.input_shape = input_shape
        self.blocks = blocks
        self.own = own
        self.own_alpha = own_alpha
        self.input_rank = input_rank
        self.input_alpha = input_alpha

    def _structure(self) -> MatrixRank:
        return MatrixRank(self.rank)


class HOLRR(LinearRegressor):
    r"""Higher-order low-rank regression (HOLRR) for tensor outputs.

    The fit approximately minimises
    :math:`\|\mathcal{W} \times_0 X - \mathcal{Y}\|^2 + \alpha \|\mathcal{W}\|^2` over all tensors
    :math:`\mathcal{W}` of multilinear rank at most :math:`(R_0, \dots, R_p)`. The problem is not
    convex. The spectral fit is within a factor of p + 1 of the minimum, and
    ``objective_ / lower_bound_`` bounds the actual factor. See docs/linear.md.

    Parameters
    ----------
    rank : int, float, tuple or None, default=None
        Maximum multilinear rank. An int is used for every mode, capped at the size of the mode. A
        float in (0, 1) selects, for each mode, the smallest rank that keeps this share of the
        squared norm of the whitened data. A tuple ``(R0, ..., Rp)`` has one such entry for each
        mode, input mode first, with ints up to the size of the mode. None is full rank, which is
        ridge regression (`RLS`). `HOLRRCV` chooses the rank by cross-validation.
    alpha : float or dict, default=1.0
        Ridge penalty, at least 0. A dict maps the name of each block of inputs (see `blocks`) to
        the penalty of the block. An infinite penalty leaves a block out of the model. A penalty of
        0 fits a block without shrinkage and without a constraint on its rank, as the intercept is
        fitted.
    refine : bool, default=False
        Whether to refine the fit by alternating least squares (higher-order orthogonal iteration).
    subspaces : {"fitted", "response"}, default="fitted"
        Data that determine the output subspaces. "fitted" uses the part of the outputs that the
        inputs explain; it ignores noise that no input explains and gives a sharper lower bound.
        "response" uses the outputs themselves, as Algorithm 1 of the paper does.
    fit_intercept : bool, default=True
        Whether to fit an intercept. The intercept is not penalised.
    loss : {"squared", "huber"}, default="squared"
        Loss of the fit. "huber" is a robust fit: samples that the other samples do not predict get
        smaller weights in the squared error. See docs/robust.md.
    missing : {"raise", "ignore"}, default="raise"
        How to handle missing values (NaN or masked entries) in y. "raise" raises an error. "ignore"
        leaves missing values out of the objective. A fit with missing values is always refined, for
        at most `max_iter` iterations, and has no `lower_bound_` unless every sample lacks the same
        outputs. See docs/missing.md.
    output_weight : list of p arrays of shape (d_i,), array of shape (d1, ..., dp), or None
        Weights of the outputs in the objective and in `score`. A list has one vector of weights, or
        None, for each output mode. An array must be the product of such vectors. A DataArray
        weights the modes that are its dimensions. With ``missing="ignore"``, an array may also have
        zeros that are not such a product: the fit leaves outputs of weight zero out as if they had
        never been observed. See docs/missing.md.
    scale_outputs : "std", array of shape (d1, ..., dp) or None, default=None
        Divisors of the outputs in the fit, so that outputs in different units count equally. "std"
        divides each output by its standard deviation over the training samples; a labelled array
        must have the labels of the outputs. Predictions, coefficients and noise are in the units of
        y, and `score` and held-out errors are those of the divided outputs.
    output_shape : tuple of int or None, default=None
        Modes ``(d1, ..., dp)`` of flat outputs. With `output_shape`, y and the predictions have
        shape (n_samples, D), where D is the number of outputs.
    input_shape : tuple of int, dict or None, default=None
        Modes ``(m1, ..., mq)`` of flat inputs of shape (n_samples, n_features). A dict from names
        to shapes splits the columns into consecutive blocks.
    blocks : str, dict, list or None, default=None
        Blocks of inputs, which can have different penalties. One of:

        - a dict from the name of each block to its columns (names, positions, a slice or a mask),
          or a list of such columns;
        - an array with the label of the block of each column, of shape (n_features,) or
          (m1, ..., mq);
        - the name of a mode of `X`, or of a level of the columns of a table: each entry is a block;
        - "prefix": columns whose names have the same text before ``__`` form a block, as
          ColumnTransformer names them;
        - "auto": the variables of a Dataset, the entries of a dict, or such prefixes.

        Every column belongs to exactly one block. Blocks change the fit only if `alpha` is a dict.
        See docs/blocks.md.
    own : str, list, array of bool, or None, default=None
        Own inputs of each output, which get separate coefficients in addition to the low-rank part.
        An own input has the same label as the output along a mode that `X` and `y` share, such as
        the station. Pass the name of the shared mode or a list of names; "auto" uses all modes
        whose names and coordinates agree. For arrays without names, pass pairs of positions
        ``(axis of a sample of X, axis of a sample of y)``, or a boolean array of inputs by outputs.
        See docs/own_inputs.md.
    own_alpha : float, default=1.0
        Ridge penalty of the coefficients of own inputs, in the units of `alpha`. With a penalty for
        each block, the penalty of an own input is `own_alpha` times the penalty of its block,
        divided by the geometric mean of the penalties of all blocks.
    input_rank : int, tuple, dict or None, default=None
        Number of directions to keep of each mode of `X`, for inputs of shape
        (n_samples, m1, ..., mq). A tuple has the form ``(r1, ..., rq)``, with ranks up to the sizes
        of the modes. An int is used for every mode, capped at the size of the mode. None, as the
        parameter or as an entry of a tuple, keeps all directions. For several blocks of inputs,
        pass a dict from the names of the blocks to ranks. See docs/inputs.md.
    input_alpha : float, default=1.0
        Ridge penalty that determines the directions of `input_rank`, as a multiple of the mean
        eigenvalue of ``X'X``: the directions are those of ridge coefficients with this penalty.
        Infinity uses the directions of ``X'Y``, as partial least squares does.
    max_iter : int, default=100
        Maximum number of iterations of the refinement, and of a fit with missing outputs.
    tol : float, default=1e-6
        Tolerance of the refinement. It stops when an iteration lowers the objective by at most this
        share of the objective.

    Attributes
    ----------
    core_ : array of shape (R0, ..., Rp)
        Core of the Tucker form of the coefficients.
    factors_ : list of p + 1 arrays of shape (d_i, R_i)
        Factors of the Tucker form, input mode first. ``(core_, factors_)`` is a Tucker tensor in
        the format of TensorLy. The output factors have orthonormal columns.
    coef_ : array of shape (n_features, d1, ..., dp), or (D, n_features) with `output_shape`
        Dense coefficients, computed on access. If `X` has modes, the shape is
        (m1, ..., mq, d1, ..., dp). If `X` has several blocks, `coef_` is a dict of such arrays.
    intercept_ : array of shape (d1, ..., dp), or (D,) with `output_shape`; float for scalar targets
        Intercept of each output.
    noise_ : array of shape (d1, ..., dp), or (D,) with `output_shape`; float for scalar targets
        Standard deviation of the noise of each output, from the residual sum of squares and the
        residual degrees of freedom. See docs/intervals.md.
    rank_ : tuple of int
        Multilinear rank of the fit. The fit lowers an input rank that the data do not support.
    objective_ : float
        Objective of the fit.
    lower_bound_ : float
        Lower bound on the optimal objective at these ranks.
    spectra_ : list of p + 1 arrays
        Leading squared singular values of each unfolding of the whitened data, input mode first.
    energy_ : float
        Squared norm of the whitened data, which the model of full rank explains.
    n_iter_ : int
        Number of iterations, including the spectral fit.
    n_dropped_ : int
        Number of samples without any observed output, with ``missing="ignore"``.
    robust_weight_ : array of shape (n_samples,)
        Weight of each sample, between 0 and 1, with ``loss="huber"``. The fit has the squared loss
        with these weights times `sample_weight`.
    solver_ : str
        Factorisation that the fit used.
    moments_ : Moments
        Moments of the data, after `partial_fit` and `fit_moments`.
    input_rank_ : tuple of int, or dict
        Number of directions of each mode of `X` that the fit keeps. Available if `X` has modes.
    input_factors_ : list of q arrays of shape (m_k, r_k), or dict
        Orthonormal bases of the directions of each mode of `X`, with `input_rank`.
    blocks_ : dict
        Positions of the columns of each block of inputs, by the name of the block, with `blocks`.
    block_alphas_ : dict
        Penalty of each block of inputs, with `blocks`.
    own_coef_ : array with the shape of `coef_`, or dict
        Coefficients of own inputs, with `own`; zero for all other inputs. They are part of `coef_`,
        but not of `core_` and `factors_`.
    output_scale_ : array of shape (d1, ..., dp), or (D,) with `output_shape`
        Divisor of each output, with `scale_outputs`. `core_` and `factors_` describe the divided
        outputs.
    n_features_in_ : int
        Number of features of `X`.
    feature_names_in_ : array of shape (n_features,)
        Names of the features, if `X` had names in `fit`.
    labels_ : Labels or None
        Names and coordinates of the samples, inputs and outputs, if the data had labels.

    See Also
    --------
    HOLRRCV : Higher-order low-rank regression with cross-validated penalty and ranks.
    LRR : Ridge regression with coefficients of low matrix rank.
    KernelHOLRR : Higher-order low-rank kernel regression.

    References
    ----------
    G. Rabusseau, H. Kadri (2016). Higher-order low-rank regression. arXiv:1602.06863.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr import HOLRR
    >>> rng = np.random.default_rng(0)
    >>> U0, U1, U2 = rng.normal(size=(8, 2)), rng.normal(size=(5, 2)), rng.normal(size=(6, 2))
    >>> W = np.einsum("abc,ia,jb,kc->ijk", rng.normal(size=(2, 2, 2)), U0, U1, U2)
    >>> X = rng.normal(size=(100, 8))
    >>> Y = np.tensordot(X, W, 1) + 0.1 * rng.normal(size=(100, 5, 6))
    >>> model = HOLRR(rank=(2, 2, 2), alpha=0.1).fit(X, Y)
    >>> model.core_.shape, model.predict(X[:3]).shape
    ((2, 2, 2), (3, 5, 6))
    >>> model.objective_ / model.lower_bound_ < 1.01
    True
    """

    _parameter_constraints: dict = {  # noqa: RUF012 (scikit-learn's convention)
        **LINEAR_CONSTRAINTS,
        **MULTILINEAR_CONSTRAINTS,
    }

    def __init__(
        self,
        rank=None,
        alpha=1.0,
        *,
        refine=False,
        subspaces="fitted",
        fit_intercept=True,
        loss="squared",
        missing="raise",
        output_weight=None,
        scale_outputs=None,
        output_shape=None,
        input_shape=None,
        blocks=None,
        own=None,
        own_alpha=1.0,
        input_rank=None,
        input_alpha=1.0,
        max_iter=100,
        tol=1e-6,
    ):
        self.rank = rank
        self.alpha = alpha
        self.refine = refine
        self.subspaces = subspaces
        self.fit_intercept = fit_intercept
        self.loss = loss
        self.missing = missing
        self.output_weight = output_weight
        self.scale_outputs = scale_outputs
        self.output_shape = output_shape
        self.input_shape = input_shape
        self.blocks = blocks
        self.own = own
        self.own_alpha = own_alpha
        self.input_rank = input_rank
        self.input_alpha = input_alpha
        self.max_iter = max_iter
        self.tol = tol

    def _structure(self) -> MultilinearRank:
        return MultilinearRank(
            self.rank, self.subspaces, self.refine, max_iter=self.max_iter, tol=self.tol
        )


# ---------------------------------------------------------------- shared with other estimators


def input_attributes(fit: Fit, names: Names) -> dict[str, Any]:
    """Return the fitted attributes `input_rank_` and `input_factors_`."""
    grids = (names.labels or Labels()).inputs
    if not any(len(grid.shape) > 1 for grid in grids):
        return {}
    found = None if fit.inputs is None or fit.inputs.keeps_columns else fit.inputs
    ranks: dict[Any, Any] = {}
    factors: dict[Any, Any] = {}
    for block, grid in enumerate(grids):
        bases = None if found is None else found.bases[block]
        ranks[grid.name] = grid.shape if len(grid.shape) > 1 else None
        if bases is not None:
            ranks[grid.name], factors[grid.name] = tuple(U.shape[1] for U in bases), [*bases]
    if len(grids) > 1:
        return {"input_rank_": ranks, "input_factors_": factors or None}
    name = grids[0].name
    return {"input_rank_": ranks[name], "input_factors_": factors.get(name)}


def block_attributes(
    blocks: InputBlocks | None, alpha: Any, names: Names, fit: Fit
) -> dict[str, Any]:
    """Return the fitted attributes of blocks of inputs: their columns and their penalties.

    Parameters
    ----------
    blocks : InputBlocks or None
        Blocks of inputs.
    alpha : float, or dict from names of blocks to numbers
        Penalties.
    names : Names
        Names of the data.
    fit : Fit
        Result of the fit.
    """
    if blocks is None:
        return {}
    used = None if names.labels is None else names.labels.used
    columns = {name: blocks.columns(b) for b, name in enumerate(blocks.names)}
    found: dict[str, Any] = {
        "blocks_": columns if used is None else {name: used[j] for name, j in columns.items()},
        "_input_mean": fit.mean_x,
    }
    alpha = dict(alpha) if comes_from(alpha, "pandas") else alpha
    if isinstance(alpha, Mapping):
        penalties = penalties_by_block(alpha, blocks)
        found["block_alphas_"] = dict(zip(blocks.names, penalties.tolist(), strict=True))
    elif isinstance(alpha, Real):
        found["block_alphas_"] = dict.fromkeys(blocks.names, float(alpha))
    return found


def check_batch(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    decay: float = 1.0,
    sample_dim: Any = None,
) -> tuple[Samples | Chunks, Names, Moments | None]:
    """Return a validated batch, its names, and the moments of earlier batches times `decay`."""
    if not isinstance(decay, Real) or isinstance(decay, bool) or not 0 < decay <= 1:
        raise ValueError(
            f"decay must be a number above 0 and at most 1; got {decay!r}. decay=1 keeps the "
            f"weights of earlier batches. To discard all earlier batches, use fit, or partial_fit "
            f"of a clone."
        )
    seen: Moments | None = vars(estimator).get("moments_")
    if seen is None and "tucker_" in vars(estimator):
        warn(
            "partial_fit starts from an empty model, since fit keeps no moments of its data. To "
            "add batches to earlier data, start with partial_fit or fit_moments."
        )
    data, names = validate(
        estimator, X, y, sample_weight, sample_dim=sample_dim, first=seen is None
    )
    if seen is not None and data.output_shape != seen.output_shape:
        raise ValueError(
            f"y has outputs of shape {data.output_shape} in this batch, and of shape "
            f"{seen.output_shape} in earlier batches. All batches must have the same shape of "
            f"outputs."
        )
    return data, names, None if seen is None else float(decay) * seen


def add_batch(
    data: Samples | Chunks,
    seen: Moments | None,
    names: Names,
    response_grams: bool,
    missing: np.ndarray | None = None,
) -> Moments:
    """Return the moments of all batches, which lack the outputs `missing`."""
    grams = response_grams if seen is None else seen.response_grams is not None
    if isinstance(data, Chunks):
        moments = data.moments(grams)
    else:
        with few_threads_for(data.work):
            moments = Moments.from_checked(data.X, data.Y, data.w, grams)
    moments = replace(moments, feature_names=names.features, labels=names.labels)
    # The outputs that are missing were compared before; `data` has them no longer.
    total = moments if seen is None else replace(seen, missing_outputs=None) + moments
    return replace(total, missing_outputs=missing)


def check_moments_argument(estimator: Any, moments: Any) -> Names:
    """Check the argument `moments`, and return its names."""
    if not isinstance(moments, Moments):
        raise TypeError(f"moments must be a Moments object; got {type(moments).__name__}.")
    check_missing_outputs(estimator, moments)
    return names_of_moments(estimator, moments)


def check_missing_outputs(estimator: Any, moments: Moments) -> None:
    """Raise an error if moments lack outputs and the estimator does not ignore missing outputs."""
    if moments.missing_outputs is None or ignores_missing(estimator):
        return
    where = tuple(int(i) for i in np.argwhere(moments.missing_outputs)[0])
    remedy = (
        "Use missing='ignore' to leave these outputs out."
        if hasattr(estimator, "missing")
        else f"{type(estimator).__name__} needs complete outputs; drop these outputs from y."
    )
    raise ValueError(
        f"moments lacks {int(moments.missing_outputs.sum())} of the outputs; the first one is "
        f"output {where}. {remedy}"
    )
