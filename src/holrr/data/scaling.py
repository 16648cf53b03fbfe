"""Standardized inputs that keep their type and labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..core.checks import BadEntryError
from ..core.namespace import Array, asarray_like, namespace_of, row_blocks, to_numpy
from ..core.output_weights import check_weight_vectors, product_of
from ..core.state import PlainState
from .arrays import (
    check_groups,
    check_inputs,
    check_matrix,
    comes_from,
    is_dask,
    nan_for_masked,
    take,
)
from .blockwise import BlockFunction, columns_of, map_blocks
from .inputs import Inputs, column_names, is_blocks, select_columns
from .labels import Grid, Labels, check_rows, plain
from .unlabel import (
    dimension_of_inputs,
    has_dims,
    sample_dimension,
    unlabel_inputs,
    unlabel_mode_weights,
)
from .validation import compare_inputs, names_of_inputs

__all__ = ["Standardizer", "scaling_of"]

# Bytes of float64 copies that means and standard deviations are computed from at a time.
_BUDGET = 2**24


class Standardizer(PlainState, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Standardize features: subtract their mean and divide by their standard deviation.

    With `weight`, the standardized features are multiplied by the square roots of their weights.

    Unlike scikit-learn's `StandardScaler`, it returns data of the same type: tables and xarray
    objects keep their names and dimensions, tensors of torch and other libraries stay on their
    device, float32 stays float32, and Dask arrays stay lazy. As a step of a pipeline it is saved
    with the model (`holrr.save`).

    A feature that is NaN in every sample of the fit, such as land in a field of the sea, stays NaN;
    estimators leave it out if the inputs have modes or labels. Any other NaN is an error.

    Parameters
    ----------
    by_group : bool, default=False
        Whether each group of samples, such as a run of an experiment, has its own means and
        standard deviations. These are computed from the data that are transformed, so that groups
        that were not in the fit are transformed in the same way. The data passed to `transform`
        should contain complete groups.
    weight : array of shape (n_features,) or (m1, ..., mq), list of q arrays, dict or None
        Weights of the features, such as the cosine of the latitude. The standardized features are
        multiplied by the square roots of the weights, so that a ridge penalty is larger for
        features with a small weight. Only ratios of weights count, and a feature of weight zero
        becomes zero, which leaves it out of a model. For inputs with modes, a list has one vector
        of weights, or None, for each mode. A DataArray or a Series weights the modes that it names.
        For several blocks of inputs, pass a dict from the names of the blocks to weights. See
        docs/inputs.md.

    Attributes
    ----------
    scaling_ : dict
        For each variable of a Dataset, or for the single key "", the names of the dimensions of its
        features, their means and their standard deviations. The standard deviation of a constant
        feature is replaced by one. The dict is empty with `by_group`.
    weight_ : array of shape (n_features,)
        Weights of the features, divided by the mean of the positive ones. Only with `weight`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of shape (n_features,)
        Names of the features, if they have names.
    labels_ : Labels or None
        Labels of xarray objects. `transform` compares the labels of its inputs with them.

    Examples
    --------
    >>> import pandas as pd
    >>> from holrr.data import Standardizer
    >>> table = pd.DataFrame({"metres": [1.0, 3.0], "always": [2.0, 2.0]}, index=["mon", "tue"])
    >>> Standardizer().fit(table).transform(table)
         metres  always
    mon    -1.0     0.0
    tue     1.0     0.0

    Two runs with different means and standard deviations:

    >>> import numpy as np
    >>> X = np.array([[1.0], [3.0], [100.0], [300.0]])
    >>> Standardizer(by_group=True).fit_transform(X, groups=[1, 1, 2, 2]).ravel()
    array([-1.,  1., -1.,  1.])

    A feature with a quarter of the weight of the other:

    >>> Standardizer(weight=[4.0, 1.0]).fit_transform([[1.0, 1.0], [3.0, 3.0]]).round(2)
    array([[-1.26, -0.63],
           [ 1.26,  0.63]])
    """

    scaling_: dict[str, tuple[tuple[str, ...], np.ndarray, np.ndarray]]
    labels_: Labels | None = None

    # With metadata routing, these arguments of a pipeline reach `fit` and `transform`.
    __metadata_request__fit = {"sample_dim": True}  # noqa: RUF012 (scikit-learn's convention)
    __metadata_request__transform = {"groups": True}  # noqa: RUF012

    def __init__(self, *, by_group: bool = False, weight: Any = None) -> None:
        self.by_group = by_group
        self.weight = weight

    def fit(self, X: Any, y: Any = None, *, sample_dim: str | None = None) -> Self:
        """Compute means and standard deviations; with `by_group`, store the feature names only.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), table, or xarray object
            Inputs. Arrays may have modes. The arrays of a dict are blocks.
        y : outputs, optional
            Outputs, which are used only to find the sample dimension of xarray objects.
        sample_dim : str, optional
            Sample dimension of xarray objects. The default is the dimension that `X` and `y` share,
            or the first one.

        Returns
        -------
        self
        """
        dim = sample_dimension(sample_dim, X, y, None)
        inputs = unlabel_inputs(X, dim, None)
        matrix, used = _with_missing(inputs)
        found: dict[str, Any] = {}
        if not self.by_group:
            mean, spread = map(to_numpy, _mean_and_spread(matrix, _computed))
            if is_dask(matrix) and not np.isfinite(mean).all():
                used = _used_of_dask(matrix, mean, column_names(inputs, None))
            found = {"": ((), mean, spread)}
            if comes_from(X, "xarray"):
                found = {
                    "" if grid.name is None else grid.name: (
                        grid.dims,
                        mean[columns].reshape(grid.shape),
                        spread[columns].reshape(grid.shape),
                    )
                    for grid, columns in columns_of(inputs.grids)
                }
        attributes = names_of_inputs(inputs, dim, used).attributes()
        if self.weight is not None:
            attributes["weight_"] = _weights_of(self.weight, inputs, used, matrix.shape[1])
        for name in ("n_features_in_", "feature_names_in_", "labels_", "weight_"):
            self.__dict__.pop(name, None)
        self.__dict__.update(scaling_=found, **attributes)
        return self

    def transform(self, X: Any, *, groups: Any = None) -> Any:
        """Return the standardized inputs.

        Parameters
        ----------
        X : as in `fit`
            Inputs with the features of `fit`, in the same order. The dimensions of an xarray object
            may be in any order.
        groups : array of shape (n_samples,), optional
            Group of each sample, in any order. Required with `by_group`, and ignored otherwise.

        Returns
        -------
        as `X`
        """
        check_is_fitted(self)
        labels = self.labels_ or Labels()
        inputs, used = compare_inputs(self, X), labels.used
        matrix = inputs.X
        if not is_dask(matrix):
            kept = select_columns(matrix, used)
            checked = check_inputs(kept, names=column_names(inputs, used))
            matrix = checked if used is None else check_matrix(nan_for_masked(matrix))
        dim = dimension_of_inputs(X, labels) if has_dims(X) else None
        if not self.scaling_:  # fitted with by_group=True, even if the parameter was changed later
            matrix = _with_known_rows(matrix) if is_dask(matrix) else matrix
            rows = _rows_of_groups(X, dim, groups, matrix.shape[0])
            rescale = _scaling_within(rows, _factors(self, used, matrix.shape[1]))
        else:
            rescale = _scaling_by(*scaling_of(self))
        return map_blocks(X, matrix, inputs.grids, dim, rescale)

    def fit_transform(
        self, X: Any, y: Any = None, *, groups: Any = None, sample_dim: Any = None
    ) -> Any:
        """Fit to the inputs, and standardize them.

        Parameters
        ----------
        X, y : as in `fit`
        groups : as in `transform`
        sample_dim : as in `fit`

        Returns
        -------
        as `X`
        """
        return self.fit(X, y, sample_dim=sample_dim).transform(X, groups=groups)


def scaling_of(fitted: Standardizer) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the divisor of each feature, of shape (n_features,).

    The divisor is the standard deviation divided by the square root of the weight. It is infinite
    for features of weight zero.
    """
    parts = fitted.scaling_.values()
    mean, spread = (np.concatenate([np.ravel(part[k]) for part in parts]) for k in (1, 2))
    weight = vars(fitted).get("weight_")
    if weight is None:
        return mean, spread
    with np.errstate(divide="ignore"):
        return mean, spread / np.sqrt(weight)


# ---------------------------------------------------------------- weights


def _weights_of(
    weight: Any, inputs: Inputs, used: np.ndarray | None, n_features: int
) -> np.ndarray:
    """Check weights of inputs, and return one for each column, with mean one.

    Parameters
    ----------
    weight : array, list of arrays, or dict
        The parameter `weight` of `Standardizer`.
    inputs : Inputs
    used : array of int, or None
        Columns that have values. The mean is that of their positive weights.
    n_features : int
        Number of columns.
    """
    grids = inputs.grids or (_grid_of_columns(inputs, n_features),)
    names = [grid.name for grid in grids]
    if isinstance(weight, Mapping) and not comes_from(weight, "xarray"):
        unknown = [name for name in weight if name not in names]
        if unknown:
            what = f"the blocks {names}" if names != [None] else "no blocks with names"
            raise ValueError(f"weight has weights for {unknown[0]!r}, but X has {what}.")
        given = [weight.get(name) for name in names]
    elif len(grids) == 1:
        given = [weight]
    else:
        raise ValueError(
            f"weight must be a dict from names of blocks to weights, since X has the blocks "
            f"{names}; got {type(weight).__name__}."
        )
    pairs = zip(given, grids, strict=True)
    cells = np.concatenate([_weights_of_block(v, grid) for v, grid in pairs])
    found = cells if inputs.cells is None else cells[inputs.cells]
    some = found if used is None else found[used]
    bad = some[~(np.isfinite(some) & (some >= 0))]
    if bad.size:
        raise ValueError(f"weight must be finite and at least 0; got {bad[0]}.")
    if not some.any():
        raise ValueError("weight is zero for all features; at least one weight must be above 0.")
    return found / some[some > 0].mean()


def _grid_of_columns(inputs: Inputs, n_features: int) -> Grid:
    """Return a grid for the columns of a matrix or a table, with the names of a table."""
    names = column_names(inputs, None)()
    coords: dict[str, Any] = {"feature": (("feature",), plain(names), {})} if names else {}
    return Grid(("feature",), (n_features,), coords)


def _weights_of_block(weight: Any, grid: Grid) -> np.ndarray:
    """Return the weight of each cell of a block."""
    if weight is None:
        return np.ones(math.prod(grid.shape))
    name = "weight" if grid.name is None else f"weight[{grid.name!r}]"
    weight = unlabel_mode_weights(weight, grid, name, "X")
    if isinstance(weight, (list, tuple)) and not (len(grid.shape) == 1 and np.ndim(weight) == 1):
        return product_of(check_weight_vectors(weight, grid.shape, name, "input mode")).ravel()
    try:
        found = np.asarray(weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must contain numbers; got {weight!r}.") from error
    if found.shape != grid.shape:
        raise ValueError(
            f"{name} as an array must have the shape {grid.shape} of the inputs of a sample; got "
            f"{found.shape}. To weight single modes, pass a list with one vector, or None, for "
            f"each mode."
        )
    return found.ravel()


# ---------------------------------------------------------------- checks


def _with_missing(inputs: Inputs) -> tuple[Array, np.ndarray | None]:
    """Return checked inputs as a matrix, and the columns with values (None: all)."""
    if is_dask(inputs.X):
        A = inputs.X
        return A.to_dask_array() if hasattr(A, "to_dask_array") else A, None
    try:
        return check_inputs(inputs.X, names=column_names(inputs, None), fitted=False), None
    except BadEntryError:
        matrix = check_matrix(nan_for_masked(inputs.X))
        xp = namespace_of(matrix)
        missing = to_numpy(xp.all(xp.isnan(matrix), axis=0))
        if missing.all() or not missing.any():
            raise
    used = np.flatnonzero(~missing)
    check_inputs(select_columns(matrix, used), names=column_names(inputs, used), fitted=False)
    return matrix, used


def _used_of_dask(matrix: Any, mean: np.ndarray, names: Callable[[], list[Any]]) -> np.ndarray:
    """Return the columns of a Dask array with finite means; the others must be all NaN."""
    others = np.flatnonzero(~np.isfinite(mean))
    empty = np.isnan(matrix[:, others]).all(axis=0).compute()
    if not empty.all() or others.size == mean.size:
        j = int(others[np.argmin(empty)])
        found = names()
        raise ValueError(
            f"X contains NaN or infinity in feature {found[j] if found else j}; every entry must "
            f"be finite, unless a feature is NaN in every sample. Drop these samples or impute the "
            f"values first."
        )
    return np.flatnonzero(np.isfinite(mean))


def _with_known_rows(A: Any) -> Any:
    """Return a Dask array with a known number of samples."""
    if hasattr(A, "columns"):
        raise TypeError(
            "X is a Dask table with an unknown number of samples, which by_group=True needs; pass "
            "X.to_dask_array(lengths=True)."
        )
    from ..streaming.dask import known_chunks

    return known_chunks(A, "X")


def _rows_of_groups(X: Any, dim: str | None, groups: Any, n_samples: int) -> list[np.ndarray]:
    """Return the samples of each group."""
    if groups is None:
        raise ValueError(
            "by_group=True needs groups, the group of each sample: transform(X, groups=...). In a "
            "pipeline, enable metadata routing with "
            "sklearn.set_config(enable_metadata_routing=True)."
        )
    for block in X.values() if is_blocks(X) else [X]:
        check_rows(block, sample_dim=dim, groups=groups)
    codes = np.unique(check_groups(groups, n_samples), return_inverse=True)[1]
    return [np.flatnonzero(codes == k) for k in range(int(codes.max()) + 1)]


# ---------------------------------------------------------------- arithmetic


def _scaling_by(mean: np.ndarray, spread: np.ndarray) -> BlockFunction:
    """Return a function that scales by means and standard deviations of shape (n_features,)."""

    def rescale(A: Array, columns: slice) -> Array:
        return _standardized(A, _beside(A, mean[columns]), _beside(A, spread[columns]))

    return rescale


def _beside(A: Array, values: np.ndarray) -> Array:
    """Return values for each cell of an array, on its device; NumPy values for Dask."""
    values = values.reshape(tuple(A.shape[1:]))
    return values if is_dask(A) else asarray_like(values, A)


def _factors(fitted: Standardizer, used: np.ndarray | None, n_features: int) -> np.ndarray | None:
    """Return factors of the standardized features, NaN for features without values.

    None means that all factors are one.
    """
    weight = vars(fitted).get("weight_")
    if weight is None and used is None:
        return None
    found = np.ones(n_features) if weight is None else np.sqrt(weight)
    if used is not None:
        found[np.setdiff1d(np.arange(n_features), used)] = np.nan
    return found


def _scaling_within(rows: list[np.ndarray], factors: np.ndarray | None) -> BlockFunction:
    """Return a function that scales the samples of each group by the statistics of the group.

    Parameters
    ----------
    rows : list of arrays
        Samples of each group.
    factors : array of shape (n_features,), or None
        Numbers by which the standardized features are multiplied.
    """
    order = np.concatenate(rows)

    def rescale(A: Array, columns: slice) -> Array:
        xp = namespace_of(A)
        parts = [take(A, index) for index in rows]
        found = xp.concat([_standardized(part, *_mean_and_spread(part)) for part in parts], axis=0)
        if (np.diff(order) < 0).any():
            found = take(found, np.argsort(order))
        if factors is None:
            return found
        here = _beside(A, factors[columns])
        return found * namespace_of(here).astype(here, found.dtype, copy=False)

    return rescale


def _standardized(A: Array, mean: Array, spread: Array) -> Array:
    """Return ``(A - mean) / spread``, in float32 if `A` is float32."""
    if not str(getattr(A, "dtype", None)).endswith("float32"):  # Dask tables have several dtypes
        return (A - mean) / spread
    # The mean is subtracted in two parts: a small spread needs more digits than float32 has.
    xp = namespace_of(mean)
    high = xp.astype(mean, xp.float32)
    low = xp.astype(mean - xp.astype(high, xp.float64), xp.float32)
    return (A - high - low) / xp.astype(spread, xp.float32)


def _computed(*arrays: Any) -> tuple[Any, ...]:
    """Compute Dask arrays in one pass over their data; return other arrays unchanged."""
    if not any(map(is_dask, arrays)):
        return arrays
    from dask import compute

    return tuple(compute(*arrays))


def _mean_and_spread(
    A: Array, computed: Callable[..., tuple[Any, ...]] = lambda *arrays: arrays
) -> tuple[Array, Array]:
    """Return mean and standard deviation over the samples, in float64, on the device of `A`.

    Deviations are divided by the largest one, so that squares neither overflow nor underflow.

    Parameters
    ----------
    A : array of shape (n_samples, ...)
        Blocks of its rows are copied to float64.
    computed : callable
        Function that is applied to the results of the first pass, before the second pass.
    """
    xp, n = namespace_of(A), A.shape[0]

    def average(function: Callable[[Array], Array]) -> Array:
        if is_dask(A):
            return xp.mean(function(xp.astype(A, xp.float64)), axis=0)
        blocks = row_blocks(n, 8 * math.prod(A.shape[1:]), _BUDGET)
        parts = (xp.astype(A[rows, ...], xp.float64, copy=False) for rows in blocks)
        return sum(xp.sum(function(part), axis=0) for part in parts) / n

    low, high = (xp.astype(end(A, axis=0), xp.float64) for end in (xp.min, xp.max))
    mean, low, high = computed(average(lambda B: B), low, high)
    of = namespace_of(mean)
    with np.errstate(invalid="ignore"):  # infinite entries of Dask are detected afterwards
        largest = of.maximum(high - mean, mean - low)
    # Rounding errors of a constant feature do not count as spread.
    varies = (high > low) & (largest > 8 * float(np.finfo(float).eps) * of.abs(mean))
    unit = of.where(varies, largest, of.ones_like(largest))
    centre = of.where(of.isfinite(mean), mean, of.zeros_like(mean))
    (squares,) = computed(average(lambda B: ((B - centre) / unit) ** 2))
    return mean, of.where(varies, unit * of.sqrt(squares), unit)
