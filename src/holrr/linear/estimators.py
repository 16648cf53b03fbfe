"""Linear estimators: ridge, low-rank and higher-order low-rank regression."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Hidden, Interval, Options, StrOptions

from ..base import TensorRegressor
from ..core.approximate import FullRank, MatrixRank, MultilinearRank, Structure
from ..core.fit import Fit
from ..core.namespace import to_numpy
from ..core.spectral import SOLVERS
from ..core.threads import few_threads_for
from ..core.warn import warn
from ..data.arrays import comes_from, ignores_missing
from ..data.blocks import InputBlocks, penalties_by_block
from ..data.labels import Labels
from ..data.validation import Names, Samples, names_of_moments, validate
from ..missing.fit import check_same_missing, has_missing, zero_for_never
from ..streaming.moments import Moments
from ..streaming.stream import Stream
from . import block_parts
from .fit import (
    LinearOptions,
    fit_data,
    fit_moments,
    refuse_output_weight,
    weigh_outputs,
)
from .inputs import InputPlan, input_plan

__all__ = ["DATA_CONSTRAINTS", "HOLRR", "LINEAR_CONSTRAINTS", "LRR", "MULTILINEAR_CONSTRAINTS"]
__all__ += ["RLS", "LinearRegressor", "add_batch", "check_batch", "check_moments_argument"]
__all__ += ["block_attributes", "input_attributes", "warn_renamed"]

DATA_CONSTRAINTS: dict[str, list[Any]] = {
    "output_shape": ["array-like", None],
    "input_shape": ["array-like", dict, None],
    "missing_features": [StrOptions({"raise", "drop"})],
    "sample_dim": [str, None],
}
LINEAR_CONSTRAINTS: dict[str, list[Any]] = {
    "alpha": [Interval(Real, 0, None, closed="left"), "array-like", dict],
    "fit_intercept": ["boolean"],
    "solver": [StrOptions(set(SOLVERS))],
    "missing": [StrOptions({"raise", "ignore"}), Hidden(StrOptions({"fill"}))],
    "output_weight": ["array-like", None],
    "input_rank": ["array-like", dict, Integral, None],
    "input_alpha": [Interval(Real, 0, None, closed="left"), Options(Real, {math.inf})],
    "input_weight": ["array-like", dict, None],
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
    """Linear models with coefficients of some structure.

    A subclass names its parameters and returns its structure (`_structure`).
    """

    _parameter_constraints: dict = LINEAR_CONSTRAINTS

    alpha: Any
    fit_intercept: bool
    solver: str
    missing: str = "raise"
    output_weight: Any = None
    input_rank: Any = None
    input_alpha: float = 1.0
    input_weight: Any = None
    blocks: Any = None
    own: Any = None
    own_alpha: float = 1.0

    predict_blocks = block_parts.predict_blocks
    score_blocks = block_parts.score_blocks

    def _structure(self) -> Structure:
        """The structure of the coefficients."""
        raise NotImplementedError

    def _options(self, plan: InputPlan) -> LinearOptions:
        return LinearOptions(
            structure=self._structure(),
            alpha=plan.alpha,
            fit_intercept=self.fit_intercept,
            solver=self.solver,
            ignore_missing=ignores_missing(self),
            inputs=plan.fixed,
        )

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : array of shape (n_samples, n_features) or (n_samples, m1, ..., mq)
            Or a table, an object of xarray, or a dict of arrays, see docs/inputs.md, or a sparse
            matrix of SciPy, which stays sparse, see docs/sparse.md. Arrays may be
            of NumPy or of any library that follows the array API standard (torch, cupy, ...); the
            fit is computed where they are. Memory maps, HDF5 and Zarr arrays are read in blocks,
            Dask arrays are reduced on the active scheduler (see docs/streaming.md).
        y : array of shape (n_samples, d1, ..., dp)
            Outputs of any order p >= 0; p = 0 are scalar targets.
        sample_weight : array of shape (n_samples,), optional
            Weights of the samples in the squared error.

        Returns
        -------
        self
        """
        warn_renamed(self)
        data, names = validate(self, X, y, sample_weight)
        plan = input_plan(self, names, data)
        options = self._options(plan)
        data, weights = weigh_outputs(
            self.output_weight, data, names.labels, options.ignore_missing
        )
        fit, n_dropped = fit_data(data, options, weights)
        names = names.with_input_model(data)
        return self._assign_fit(fit, names, plan, n_dropped if isinstance(data, Samples) else None)

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, *, decay: float = 1.0) -> Any:
        """Add a batch of samples to those seen so far, and fit the model to all of them.

        The data are kept as moments, whose size does not depend on the number of samples. For a
        stream of many small batches, gather the moments with `Moments.from_batches` and fit once
        with `fit_moments`. `fit` keeps no moments: after it, `partial_fit` starts anew with a
        warning.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples, d1, ..., dp)
        sample_weight : array of shape (n_samples,), optional
        decay : float, default=1.0
            What the weights of all batches before are multiplied by, in (0, 1]; with less than 1
            the model forgets. See docs/streaming.md.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from holrr import RLS
        >>> model = RLS().partial_fit(np.eye(4), np.ones((4, 3, 2)))
        >>> model.partial_fit(-np.eye(4), np.zeros((4, 3, 2))).moments_.n_samples
        8
        """
        warn_renamed(self)
        refuse_output_weight(self.output_weight, "moments")
        data, names, seen = check_batch(self, X, y, sample_weight, decay)
        plan, never = input_plan(self, names, data), np.zeros((), dtype=bool)
        options = self._options(plan)
        if options.ignore_missing and isinstance(data, Samples) and has_missing(data):
            data, never = zero_for_never(data)
        if seen is not None:
            before = self._intercept
            before = before if isinstance(before, float) else to_numpy(before)
            check_same_missing(never, np.isnan(before))
        moments = add_batch(data, seen, names, options.structure.needs_response_grams)
        fit = fit_moments(moments, options, never=never if never.any() else None)
        return self._assign_fit(fit, names, plan, moments=moments)

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_moments(self, moments: Moments) -> Any:
        """Fit the model to moments, gathered here or elsewhere.

        Parameters
        ----------
        moments : Moments

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from holrr import RLS, Moments
        >>> here, there = (Moments.from_arrays(np.eye(4), np.ones((4, 3, 2))) for _ in range(2))
        >>> RLS().fit_moments(here + there).coef_.shape
        (4, 3, 2)
        """
        refuse_output_weight(self.output_weight, "moments")
        names = check_moments_argument(self, moments)
        plan = input_plan(self, names, moments)
        fit = fit_moments(moments, self._options(plan))
        return self._assign_fit(fit, names, plan, moments=moments)

    def _assign_fit(
        self,
        fit: Fit,
        names: Names,
        plan: InputPlan,
        n_dropped: int | None = None,
        moments: Moments | None = None,
    ) -> Any:
        """Assign the attributes of a fit; ranks and rounds by the kind of structure."""
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
        attributes |= input_attributes(fit, names)
        attributes |= block_attributes(plan.blocks, self.alpha, names, fit)
        return self._assign(fit, names, moments_=moments, **attributes)


class RLS(LinearRegressor):
    r"""Regularised least squares (ridge regression) for tensor outputs.

    Minimises :math:`\|\mathcal{W} \times_0 X - \mathcal{Y}\|^2 + \alpha \|\mathcal{W}\|^2` over
    all tensors. The outputs are independent of each other: it is scikit-learn's ``Ridge`` on the
    flattened outputs.

    Parameters
    ----------
    alpha : float, dict, or array of shape (d1, ..., dp), default=1.0
        Ridge penalty, at least 0. With 0, the solution of least norm. A dict has a penalty for
        each block of inputs (see `blocks`), an array one for each output, with the labels of the
        outputs where it has labels.
    fit_intercept : bool, default=True
        Whether an intercept is fitted (by centring the data; it is not penalised).
    solver : {"auto", "cholesky", "eigh", "svd"}, default="auto"
        "cholesky" and "eigh" factorise ``X'X``, "svd" the inputs themselves. "auto" uses "eigh" for
        up to 256 features and "cholesky" for more, and decomposes ``XX'`` or `X` where there are
        fewer samples than features or `X` is ill-conditioned.
    missing : {"raise", "ignore"}, default="raise"
        Whether NaN and masked entries of y are an error or are left out of the objective. See
        docs/missing.md.
    output_weight : list of p arrays of shape (d_i,), array of shape (d1, ..., dp), or None
        As in `HOLRR`. The outputs of ridge regression are independent, so that only zeros have an
        effect on the fit; all weights have one on `score`.
    input_rank, input_alpha, input_weight, blocks, own, own_alpha
        As in `HOLRR`.
    missing_features, input_shape, output_shape, sample_dim
        As in `HOLRR`.

    Attributes
    ----------
    coef_ : array of shape (n_features, d1, ..., dp), or (D, n_features) with `output_shape`
    blocks_, block_alphas_, own_coef_
        As in `HOLRR`.
    objective_ : float
        The minimum.
    lower_bound_ : float
        The same, since the problem is solved exactly.
    n_iter_ : int
        With ``missing="ignore"``: number of rounds around missing outputs.
    intercept_, noise_, n_dropped_, solver_, moments_, n_features_in_, feature_names_in_, labels_
        As in `HOLRR`.

    See Also
    --------
    LRR : The coefficients as a matrix of low rank.
    HOLRR : The coefficients as a tensor of low multilinear rank.

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

    def __init__(
        self,
        alpha=1.0,
        *,
        fit_intercept=True,
        solver="auto",
        missing="raise",
        output_weight=None,
        input_rank=None,
        input_alpha=1.0,
        input_weight=None,
        blocks=None,
        own=None,
        own_alpha=1.0,
        missing_features="raise",
        input_shape=None,
        output_shape=None,
        sample_dim=None,
    ):
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.missing = missing
        self.output_weight = output_weight
        self.input_rank = input_rank
        self.input_alpha = input_alpha
        self.input_weight = input_weight
        self.blocks = blocks
        self.own = own
        self.own_alpha = own_alpha
        self.missing_features = missing_features
        self.input_shape = input_shape
        self.output_shape = output_shape
        self.sample_dim = sample_dim

    def _structure(self) -> FullRank:
        return FullRank()


class LRR(LinearRegressor):
    r"""Low-rank (reduced-rank) ridge regression for tensor outputs.

    Minimises :math:`\|\mathcal{W} \times_0 X - \mathcal{Y}\|^2 + \alpha \|\mathcal{W}\|^2` over
    the tensors whose mode-0 unfolding (inputs by all outputs) has rank at most `rank`. The
    minimum is exact.

    Parameters
    ----------
    rank : int, float or None, default=None
        Largest rank, capped at the number of features; a float in (0, 1) is the share of the
        energy of Z to keep; None for full rank.
    alpha : float or dict, default=1.0
        Ridge penalty, at least 0; a dict has one for each block of inputs (see `blocks`).
    missing : {"raise", "ignore"}, default="raise"
        Whether NaN and masked entries of y are an error or are left out of the objective, by
        imputing them and refitting in turn. See docs/missing.md.
    solver : {"auto", "cholesky", "eigh", "svd"}, default="auto"
        See `RLS`.
    fit_intercept, output_weight
        As in `HOLRR`.
    input_rank, input_alpha, input_weight, blocks, own, own_alpha
        As in `HOLRR`.
    missing_features, input_shape, output_shape, sample_dim
        As in `HOLRR`.

    Attributes
    ----------
    blocks_, block_alphas_, own_coef_
        As in `HOLRR`.
    core_ : array of shape (R, d1, ..., dp)
        Outputs for each of the R latent inputs.
    factors_ : list of p + 1 arrays
        First the map from inputs to latent inputs, (n_features, R), then identities.
    coef_ : array of shape (n_features, d1, ..., dp), or (D, n_features) with `output_shape`
        Dense coefficients, computed on access.
    rank_ : int
        The rank that was used: lower than asked for where the data do not support it.
    objective_ : float
        The minimum.
    lower_bound_ : float
        The same, since the problem is solved exactly.
    spectra_ : list of p + 1 arrays
        Squared singular values of Z; of the input mode only.
    n_iter_ : int
        With ``missing="ignore"``: number of rounds around missing outputs.
    intercept_, noise_, n_dropped_, solver_, moments_, n_features_in_, feature_names_in_, labels_
        As in `HOLRR`.

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
        solver="auto",
        missing="raise",
        output_weight=None,
        input_rank=None,
        input_alpha=1.0,
        input_weight=None,
        blocks=None,
        own=None,
        own_alpha=1.0,
        missing_features="raise",
        input_shape=None,
        output_shape=None,
        sample_dim=None,
    ):
        self.rank = rank
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.missing = missing
        self.output_weight = output_weight
        self.input_rank = input_rank
        self.input_alpha = input_alpha
        self.input_weight = input_weight
        self.blocks = blocks
        self.own = own
        self.own_alpha = own_alpha
        self.missing_features = missing_features
        self.input_shape = input_shape
        self.output_shape = output_shape
        self.sample_dim = sample_dim

    def _structure(self) -> MatrixRank:
        return MatrixRank(self.rank)


class HOLRR(LinearRegressor):
    r"""Higher-order low-rank regression.

    Minimises :math:`\|\mathcal{W} \times_0 X - \mathcal{Y}\|^2 + \alpha \|\mathcal{W}\|^2` over
    the tensors of multilinear rank at most :math:`(R_0, \dots, R_p)`. The problem is not convex;
    the fit is a spectral approximation within a factor of p + 1 of the minimum, and
    ``objective_ / lower_bound_`` certifies how near it really is.

    Parameters
    ----------
    rank : int, float, tuple or None, default=None
        An int for every mode, capped at each mode's size; a float in (0, 1) for the smallest ranks
        that hold that share of each mode's energy; or a tuple ``(R0, ..., Rp)`` of such entries,
        input mode first. None for full rank: ridge regression, the same model as `RLS`. `HOLRRCV`
        chooses the rank by cross-validation.
    alpha : float or dict, default=1.0
        Ridge penalty, at least 0. A dict has one for each block of inputs (see `blocks`); an
        infinite penalty leaves a block out. Like the intercept, inputs with a penalty of 0 are
        neither shrunk nor reduced in rank.
    subspaces : {"fitted", "response"}, default="fitted"
        Where the output subspaces come from: the part of the outputs that the inputs explain, or,
        as in Algorithm 1 of the paper, the outputs themselves. The former ignores noise that no
        input explains and has a sharper bound.
    refine : bool, default=False
        Whether the fit is refined by alternating least squares (higher-order orthogonal
        iteration).
    max_iter : int, default=100
        Largest number of rounds of the refinement.
    tol : float, default=1e-6
        The refinement stops when a round lowers the objective by no more than this share of it.
    fit_intercept : bool, default=True
        Whether an intercept is fitted.
    solver : {"auto", "cholesky", "eigh", "svd"}, default="auto"
        See `RLS`.
    missing : {"raise", "ignore"}, default="raise"
        Whether NaN and masked entries of y are an error or are left out of the objective. A fit
        with missing entries is always refined, for at most `max_iter` rounds. It has no
        `lower_bound_`, unless every sample lacks the same outputs. See docs/missing.md.
    output_weight : list of p arrays of shape (d_i,), array of shape (d1, ..., dp), or None
        Weights of the outputs in the error (and the penalty), and in `score`: one vector, or None,
        for each output mode, or an array that is the product of such vectors. A DataArray weighs
        the modes that are its dimensions. Zeros in an array need not be a product with
        ``missing="ignore"``: they leave outputs out as if these had never been observed (see
        docs/missing.md).
    input_rank : int, tuple, dict or None, default=None
        For inputs with modes, (n_samples, m1, ..., mq): how many directions to keep of each mode,
        as ``(r1, ..., rq)``. An int is used for every mode, and None keeps a whole mode, or all of
        X. For several blocks, a dict from their names to such ranks. See docs/inputs.md.
    input_alpha : float, default=1.0
        With `input_rank`: the directions of the modes are those of ridge coefficients with this
        penalty, as a multiple of the mean eigenvalue of ``X'X``. With infinity they are those of
        ``X'Y``, as in partial least squares.
    input_weight : array of shape (m1, ..., mq), list of q arrays, dict or None, default=None
        Weights of the cells of X (the cosine of the latitude, for instance): they multiply the
        inputs by their square roots, which changes the penalty and the directions of `input_rank`.
        One vector, or None, for each mode, or an array; for several blocks, a dict of them. A
        DataArray weighs the modes that are its dimensions.
    blocks : str, dict, list or None, default=None
        Blocks of inputs that can have penalties of their own:

        - a dict from names of blocks to their columns (names, positions, a slice or a mask), or a
          list of such columns;
        - the label of the block of each column, of shape (n_features,) or (m1, ..., mq);
        - the name of a mode of X, or of a level of the columns of a table: each entry is a block;
        - "prefix": columns with the same text before ``__`` in their names, as ColumnTransformer
          writes them;
        - "auto": the variables of a Dataset, the entries of a dict, or such prefixes.

        Every column belongs to one block. Without a dict as `alpha`, blocks do not change the fit.
        See docs/blocks.md.
    own : str, list, array of bool, or None, default=None
        Own inputs of each output, which get coefficients of their own besides the low-rank part.
        They are the inputs with the same label as the output along a mode that X and y share; give
        the name of the mode, or a list of names. "auto" stands for all modes with the same names
        and coordinates. For arrays without names, pairs of positions
        ``(axis of a sample of X, axis of a sample of y)``, or a boolean array of inputs by outputs.
        See docs/own_inputs.md.
    own_alpha : float, default=1.0
        Ridge penalty of the coefficients of own inputs, in the units of `alpha`. With penalties by
        block, an own input has the penalty `own_alpha` times the penalty of its block over the
        geometric mean of all of them.
    missing_features : {"raise", "drop"}, default="raise"
        Whether cells of X that are missing in every sample (land in a field of the sea) are an
        error, or are left out of the model. Coefficients of dropped cells are NaN, and their values
        are ignored by `predict`.
    input_shape : tuple of int, or dict, optional
        For flat inputs, (n_samples, n_features): the modes ``(m1, ..., mq)`` of the columns. A dict
        from names to shapes splits the columns into consecutive blocks.
    output_shape : tuple of int, optional
        For flat outputs: ``(d1, ..., dp)`` of a y, and of predictions, with shape (n_samples, D).
    sample_dim : str, optional
        Which dimension of xarray's objects the samples are along; by default the one that X and y
        share, or the first.

    Attributes
    ----------
    core_ : array of shape (R0, ..., Rp)
    factors_ : list of p + 1 arrays of shape (d_i, R_i)
        Input mode first; ``(core_, factors_)`` is a Tucker tensor as TensorLy has them. The
        output factors have orthonormal columns.
    coef_ : array of shape (n_features, d1, ..., dp), or (D, n_features) with `output_shape`
        Dense coefficients, computed on access. For inputs with modes, of shape
        (m1, ..., mq, d1, ..., dp), and for several blocks a dict of such arrays.
    input_rank_ : tuple of int, or dict
        For inputs with modes: how many directions of each mode of X are kept, all of them without
        `input_rank`.
    input_factors_ : list of q arrays of shape (m_k, r_k), or dict
        With `input_rank`: orthonormal bases of the kept directions of each mode of X.
    blocks_ : dict
        With `blocks`: from the name of each block to the positions of its columns.
    block_alphas_ : dict
        With `blocks`: the penalty of each block.
    own_coef_ : array with the shape of `coef_`
        With `own`: the coefficients of own inputs, zero for all others; a dict of such arrays where
        `coef_` is one. They are part of `coef_`, and not of `core_` and `factors_`.
    intercept_ : array of shape (d1, ..., dp), or (D,) with `output_shape`; float for scalar targets
    noise_ : array of shape (d1, ..., dp), or (D,) with `output_shape`; float for scalar targets
        Standard deviation of the noise of each output: residual squares over the residual
        degrees of freedom, see docs/intervals.md.
    rank_ : tuple of int
        The ranks of the fit. An input rank that the data do not support is lowered.
    objective_ : float
        The objective at this fit.
    lower_bound_ : float
        Lower bound on the optimal objective at these ranks.
    spectra_ : list of p + 1 arrays
        Leading squared singular values of each unfolding of Z.
    energy_ : float
        Squared norm of Z: what the model of full rank explains.
    n_iter_ : int
        Number of rounds, the spectral one included.
    n_dropped_ : int
        With ``missing="ignore"``: number of samples without any observed output.
    solver_ : str
        The factorisation that was used.
    moments_ : Moments
        After `partial_fit` and `fit_moments` only.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features,)
    labels_ : Labels or None

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
        subspaces="fitted",
        refine=False,
        max_iter=100,
        tol=1e-6,
        fit_intercept=True,
        solver="auto",
        missing="raise",
        output_weight=None,
        input_rank=None,
        input_alpha=1.0,
        input_weight=None,
        blocks=None,
        own=None,
        own_alpha=1.0,
        missing_features="raise",
        input_shape=None,
        output_shape=None,
        sample_dim=None,
    ):
        self.rank = rank
        self.alpha = alpha
        self.subspaces = subspaces
        self.refine = refine
        self.max_iter = max_iter
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.missing = missing
        self.output_weight = output_weight
        self.input_rank = input_rank
        self.input_alpha = input_alpha
        self.input_weight = input_weight
        self.blocks = blocks
        self.own = own
        self.own_alpha = own_alpha
        self.missing_features = missing_features
        self.input_shape = input_shape
        self.output_shape = output_shape
        self.sample_dim = sample_dim

    def _structure(self) -> MultilinearRank:
        return MultilinearRank(
            self.rank, self.subspaces, self.refine, max_iter=self.max_iter, tol=self.tol
        )


# ---------------------------------------------------------------- shared with other estimators


def input_attributes(fit: Fit, names: Names) -> dict[str, Any]:
    """The fitted attributes that say which directions of the input modes a fit keeps."""
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
    """The fitted attributes that say which blocks the inputs have, and their penalties.

    Parameters
    ----------
    blocks : InputBlocks or None
    alpha : float, or dict from names of blocks to numbers
    names : Names
        Of the data.
    fit : Fit
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


def warn_renamed(estimator: Any) -> None:
    """Warn where a parameter has the value of an older version."""
    if getattr(estimator, "missing", "raise") == "fill":
        warn(
            'missing="fill" is now called missing="ignore", since the fit leaves missing entries '
            "out; the old name will be removed in version 1.0.",
            FutureWarning,
        )


def check_batch(
    estimator: Any, X: Any, y: Any, sample_weight: Any, decay: float = 1.0
) -> tuple[Samples | Stream, Names, Moments | None]:
    """A validated batch, its names, and the moments of the batches before times `decay`."""
    if not isinstance(decay, Real) or isinstance(decay, bool) or not 0 < decay <= 1:
        raise ValueError(
            f"decay must be a number above 0 and at most 1, which keeps the batches before as they "
            f"are; got {decay!r}. To forget them all, use fit, or partial_fit of a clone."
        )
    seen: Moments | None = vars(estimator).get("moments_")
    if seen is None and "tucker_" in vars(estimator):
        warn(
            "partial_fit starts anew: fit keeps no moments of its data. To add batches to earlier "
            "data, start with partial_fit or fit_moments."
        )
    data, names = validate(estimator, X, y, sample_weight, first=seen is None)
    if seen is not None and data.output_shape != seen.output_shape:
        raise ValueError(
            f"y of this batch has outputs of shape {data.output_shape}; the batches before had "
            f"{seen.output_shape}."
        )
    return data, names, None if seen is None else float(decay) * seen


def add_batch(
    data: Samples | Stream, seen: Moments | None, names: Names, response_grams: bool
) -> Moments:
    """The moments of all batches so far."""
    grams = response_grams if seen is None else seen.response_grams is not None
    if isinstance(data, Stream):
        moments = data.moments(grams)
    else:
        with few_threads_for(data.work):
            moments = Moments.from_checked(data.X, data.Y, data.w, grams)
    moments = replace(moments, feature_names=names.features, labels=names.labels)
    return moments if seen is None else seen + moments


def check_moments_argument(estimator: Any, moments: Any) -> Names:
    """The names of moments that a user passes."""
    if not isinstance(moments, Moments):
        raise TypeError(f"moments must be a Moments object; got {type(moments).__name__}.")
    return names_of_moments(estimator, moments)
