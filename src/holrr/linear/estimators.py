"""Linear estimators: ridge, low-rank and higher-order low-rank regression."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval, Options, StrOptions

from ..annotations import Blocks, InputRank, InputShape, OutputWeight, Own, Rank
from ..base import TensorRegressor
from ..calls import validates_parameters
from ..core.approximate import FullRank, MatrixRank, MultilinearRank, Structure
from ..core.fit import Fit
from ..core.namespace import Array, to_numpy
from ..core.threads import few_threads_for
from ..core.warn import warn
from ..data.arrays import comes_from, ignores_missing
from ..data.blocks import InputBlocks, penalties_by_block
from ..data.labels import Labels
from ..data.output_scale import SCALE_CONSTRAINT, divide_outputs, multiply_outputs
from ..data.validation import Names, Samples, names_of_moments, validate
from ..docstrings import document
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

    _parameter_constraints = LINEAR_CONSTRAINTS

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

    objective_: float
    lower_bound_: float
    solver_: str
    n_iter_: int
    n_dropped_: int
    robust_weight_: NDArray[Any]
    moments_: Moments
    input_rank_: Any
    input_factors_: Any
    blocks_: dict[Any, NDArray[Any]]
    block_alphas_: dict[Any, float]

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

    @validates_parameters
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        sample_dim: str | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array of shape (n_samples, n_features) or (n_samples, m1, ..., mq)
            Inputs: an array of any array library, a DataFrame, an xarray object, a dict of arrays
            or a sparse matrix (see docs/inputs.md). Memory maps and Dask arrays are read in chunks
            (see docs/streaming.md). Cells of maps that are NaN in every sample are left out of the
            model: their coefficients are NaN, and `predict` ignores their values.
        y : array of shape (n_samples, d1, ..., dp)
            Outputs of any order p >= 0. Scalar targets have shape (n_samples,).
        sample_weight : array of shape (n_samples,), optional
            Weights of the samples in the squared error.
        sample_dim : str, optional
            Sample dimension of xarray objects. By default, the first one that `X` and `y` share.
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

    @validates_parameters
    def partial_fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        decay: float = 1.0,
        sample_dim: str | None = None,
    ) -> Self:
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

    @validates_parameters
    def fit_moments(self, moments: Moments) -> Self:
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


@document
class RLS(LinearRegressor):
    r"""Regularised least squares (ridge regression) for tensor outputs.

    The fit minimises :math:`\|\mathcal{W} \times_0 X - \mathcal{Y}\|^2 + \alpha \|\mathcal{W}\|^2`
    over all tensors :math:`\mathcal{W}` of coefficients. The outputs are independent of each other:
    the fit is scikit-learn's ``Ridge`` on the flattened outputs. See docs/linear.md.

    >>> import numpy as np
    >>> from holrr import RLS
    >>> rng = np.random.default_rng(0)
    >>> X, W = rng.normal(size=(50, 3)), rng.normal(size=(3, 4, 5))
    >>> model = RLS(alpha=0).fit(X, np.tensordot(X, W, 1) + 1)
    >>> model.coef_.shape, bool(np.allclose(model.coef_, W)), bool(np.allclose(model.intercept_, 1))
    ((3, 4, 5), True, True)

    See Also
    --------
    RLSCV : Ridge regression with cross-validated penalty.
    LRR : Ridge regression with coefficients of low matrix rank.
    HOLRR : Ridge regression with coefficients of low multilinear rank.
    """

    _shares_directions = False

    def __init__(
        self,
        alpha: ArrayLike | Mapping[str, float] = 1.0,
        *,
        fit_intercept: bool = True,
        loss: Literal["squared", "huber"] = "squared",
        missing: Literal["raise", "ignore"] = "raise",
        output_weight: OutputWeight = None,
        scale_outputs: ArrayLike | None = None,
        output_shape: Sequence[int] | None = None,
        input_shape: InputShape = None,
        blocks: Blocks = None,
        own: Own = None,
        own_alpha: float = 1.0,
        input_rank: InputRank = None,
        input_alpha: float = 1.0,
    ) -> None:
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


@document
class LRR(LinearRegressor):
    r"""Low-rank (reduced-rank) ridge regression for tensor outputs.

    The fit minimises :math:`\|\mathcal{W} \times_0 X - \mathcal{Y}\|^2 + \alpha \|\mathcal{W}\|^2`
    over all tensors :math:`\mathcal{W}` whose mode-0 unfolding (inputs by all outputs) has rank at
    most `rank`. The solution is exact. See docs/linear.md.

    >>> import numpy as np
    >>> from holrr import LRR
    >>> rng = np.random.default_rng(0)
    >>> X, W = rng.normal(size=(50, 6)), rng.normal(size=(6, 2)) @ rng.normal(size=(2, 20))
    >>> model = LRR(rank=2, alpha=0).fit(X, (X @ W).reshape(50, 4, 5))
    >>> model.rank_, bool(np.allclose(model.coef_.reshape(6, 20), W))
    (2, True)

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
    """

    rank_: int
    spectra_: list[Array]
    energy_: float

    def __init__(
        self,
        rank: int | float | None = None,
        alpha: float | Mapping[str, float] = 1.0,
        *,
        fit_intercept: bool = True,
        loss: Literal["squared", "huber"] = "squared",
        missing: Literal["raise", "ignore"] = "raise",
        output_weight: OutputWeight = None,
        scale_outputs: ArrayLike | None = None,
        output_shape: Sequence[int] | None = None,
        input_shape: InputShape = None,
        blocks: Blocks = None,
        own: Own = None,
        own_alpha: float = 1.0,
        input_rank: InputRank = None,
        input_alpha: float = 1.0,
    ) -> None:
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


@document
class HOLRR(LinearRegressor):
    r"""Higher-order low-rank regression (HOLRR) for tensor outputs.

    The fit approximately minimises
    :math:`\|\mathcal{W} \times_0 X - \mathcal{Y}\|^2 + \alpha \|\mathcal{W}\|^2` over all tensors
    :math:`\mathcal{W}` of multilinear rank at most :math:`(R_0, \dots, R_p)`. The problem is not
    convex. The spectral fit is within a factor of p + 1 of the minimum, and
    ``objective_ / lower_bound_`` bounds the actual factor. See docs/linear.md.

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

    See Also
    --------
    HOLRRCV : Higher-order low-rank regression with cross-validated penalty and ranks.
    LRR : Ridge regression with coefficients of low matrix rank.
    KernelHOLRR : Higher-order low-rank kernel regression.

    References
    ----------
    G. Rabusseau, H. Kadri (2016). Higher-order low-rank regression. arXiv:1602.06863.
    """

    rank_: tuple[int, ...]
    spectra_: list[Array]
    energy_: float

    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        **LINEAR_CONSTRAINTS,
        **MULTILINEAR_CONSTRAINTS,
    }

    def __init__(
        self,
        rank: Rank = None,
        alpha: float | Mapping[str, float] = 1.0,
        *,
        refine: bool = False,
        subspaces: Literal["fitted", "response"] = "fitted",
        fit_intercept: bool = True,
        loss: Literal["squared", "huber"] = "squared",
        missing: Literal["raise", "ignore"] = "raise",
        output_weight: OutputWeight = None,
        scale_outputs: ArrayLike | None = None,
        output_shape: Sequence[int] | None = None,
        input_shape: InputShape = None,
        blocks: Blocks = None,
        own: Own = None,
        own_alpha: float = 1.0,
        input_rank: InputRank = None,
        input_alpha: float = 1.0,
        max_iter: int = 100,
        tol: float = 1e-6,
    ) -> None:
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
