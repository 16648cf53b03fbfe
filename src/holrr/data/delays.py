"""Delayed inputs: inputs of earlier and later samples, within the runs of an experiment."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from ..core.namespace import Array, asarray_like, namespace_of
from ..core.state import PlainState
from ..core.warn import warn
from .arrays import (
    check_groups,
    check_matrix,
    comes_from,
    is_dask,
    nan_for_masked,
)
from .inputs import block_of, flatten, is_blocks, join_columns, select_columns
from .labels import Grid, Labels, check_rows, free
from .unlabel import dimension_of_inputs, has_dims, is_dataset, sample_dimension, unlabel_inputs
from .validation import compare_inputs, names_of_inputs

__all__ = ["Delayer"]


class Delayer(PlainState, TransformerMixin, BaseEstimator):
    """Replace the inputs of each sample by those of earlier or later samples.

    With ``delays=[1, 2]`` the inputs of a sample become those of the previous sample, followed by
    those of the sample before that. Samples must be in the order of time. No delay crosses the
    border between two runs (`groups`). The first samples of a run, which have no earlier samples,
    get the value `fill`, or NaN for inputs that are NaN in the sample itself, such as cells of a
    land mask. The number of samples does not change, since transformers of scikit-learn
    cannot drop samples. To fit a model without filled samples, drop them from X and y before.

    The type and the device of the inputs do not change. The delays have names, so that they can be
    used as blocks:

    ====================================  ==========================================================
    X                                     delayed inputs
    ====================================  ==========================================================
    array of shape (n, d)                 array of shape (n, n_delays * d), all columns of the first
                                          delay first
    array of shape (n, m1, ..., mq)       array of shape (n, n_delays, m1, ..., mq)
    DataFrame of pandas                   DataFrame with an additional first level of columns,
                                          ``"delay"``
    DataFrame of polars                   DataFrame with columns ``"delay1__name"``
    DataArray, Dataset                    the same type with an additional dimension ``"delay"``;
                                          the order is samples, delays, all other dimensions
    dict                                  dict; an array of shape (n, m1, ..., mq) gets the shape
                                          (n, n_delays, m1, ..., mq)
    ====================================  ==========================================================

    Parameters
    ----------
    delays : sequence of int
        Numbers of samples to look back: 0 is the sample itself, and negative numbers are later
        samples.
    fill : float, default=0.0
        Value of inputs before the beginning or after the end of a run. Zero is the mean of
        standardised inputs. A warning is issued if `fill` is far outside of the range of an input,
        since filled samples are then outliers.

    Attributes
    ----------
    delays_ : array of int, of shape (n_delays,)
        Delays as integers.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of shape (n_features,)
        Names of the features, if they have names.
    labels_ : Labels or None
        Labels of inputs with modes or blocks. `transform` compares the labels of its inputs with
        them.

    Notes
    -----
    NaN stays NaN. `fit` does not depend on the values of the inputs, so inputs can be delayed
    before the data are split into folds. A pipeline would delay each training set separately, with
    wrong neighbours where the samples of another fold are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr.data import Delayer
    >>> X = np.array([[1.0], [2.0], [3.0], [4.0], [5.0]])
    >>> Delayer([0, 1]).fit_transform(X, groups=["a", "a", "a", "b", "b"])
    array([[1., 0.],
           [2., 1.],
           [3., 2.],
           [4., 0.],
           [5., 4.]])

    >>> import pandas as pd
    >>> delayer = Delayer([1, 2]).fit(pd.DataFrame({"rain": X[:, 0]}))
    >>> delayer.transform(pd.DataFrame({"rain": X[:, 0]}))
    delay    1    2
          rain rain
    0      0.0  0.0
    1      1.0  0.0
    2      2.0  1.0
    3      3.0  2.0
    4      4.0  3.0
    >>> delayer.get_feature_names_out()
    array(['delay1__rain', 'delay2__rain'], dtype=object)
    """

    _parameter_constraints: dict = {  # noqa: RUF012 (scikit-learn's convention)
        "delays": ["array-like"],
        "fill": [Real],
    }
    # With metadata routing, these arguments of a pipeline reach `fit` and `transform`.
    __metadata_request__fit = {"sample_dim": True}  # noqa: RUF012 (scikit-learn's convention)
    __metadata_request__transform = {"groups": True}  # noqa: RUF012

    delays_: np.ndarray
    labels_: Labels | None = None

    def __init__(self, delays: Sequence[int], *, fill: float = 0.0) -> None:
        self.delays = delays
        self.fill = fill

    def fit(self, X: Any, y: Any = None, *, sample_dim: str | None = None) -> Self:
        """Check the delays, and store the names of the inputs.

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
        self._validate_params()
        delays = _check_delays(self.delays)
        dim = sample_dimension(sample_dim, X, y, None)
        inputs = unlabel_inputs(X, dim, None)
        _values(inputs.X)
        names = names_of_inputs(inputs, dim)
        for name in ("n_features_in_", "feature_names_in_", "labels_"):
            self.__dict__.pop(name, None)
        self.__dict__.update(delays_=delays, **names.attributes())
        return self

    def transform(self, X: Any, *, groups: Any = None) -> Any:
        """Return the delayed inputs.

        Parameters
        ----------
        X : as in `fit`
            Inputs with the features of `fit`, in the same order. The dimensions of an xarray object
            may be in any order.
        groups : array of shape (n_samples,), optional
            Run of each sample. The samples of a run must be consecutive. By default, all samples
            form one run.

        Returns
        -------
        as `X`
            See the table above.
        """
        check_is_fitted(self)
        inputs = compare_inputs(self, X)
        matrix, labels = _values(inputs.X), self.labels_ or Labels()
        dim = dimension_of_inputs(X, labels) if has_dims(X) else None
        for block in X.values() if is_blocks(X) else [X]:
            check_rows(block, sample_dim=dim, groups=groups)
        shift = _Shift(self.delays_, _runs(groups, matrix.shape[0]), float(self.fill))
        if isinstance(matrix, np.ndarray):
            _warn_of_outliers(matrix, shift)
        grids = {grid.name: grid for grid in inputs.grids}
        if is_dataset(X):
            name = _free_dimension(X)
            return X.map(
                lambda A: _delayed_xarray(A, shift, (dim, *grids[A.name].dims), name),
                keep_attrs=True,
            )
        if comes_from(X, "xarray"):
            return _delayed_xarray(X, shift, (dim, *grids[None].dims), _free_dimension(X))
        if is_blocks(X):
            return {name: _delayed_block(name, A, shift, dim, grids) for name, A in X.items()}
        if hasattr(X, "columns"):
            return _delayed_table(X, matrix, shift)
        if inputs.grids:
            return _delayed(_in_modes(matrix, inputs.grids[0]), shift)
        return _delayed_matrix(matrix, shift, [math.prod(grid.shape) for grid in labels.inputs])

    def fit_transform(
        self, X: Any, y: Any = None, *, groups: Any = None, sample_dim: Any = None
    ) -> Any:
        """Fit to the inputs, and delay them.

        Parameters
        ----------
        X, y : as in `fit`
        groups : as in `transform`
        sample_dim : as in `fit`

        Returns
        -------
        as `X`
            See the table above.
        """
        return self.fit(X, y, sample_dim=sample_dim).transform(X, groups=groups)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the delayed inputs, such as "delay1__name".

        Parameters
        ----------
        input_features : sequence of str, optional
            Names of the inputs, if `fit` has not seen names. The default is x0, x1, ...

        Returns
        -------
        array of shape (n_delays * n_features,)
            Names in the order of the columns, block by block.
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        sizes = [math.prod(grid.shape) for grid in (self.labels_ or Labels()).inputs]
        parts = np.split(names, np.cumsum(sizes)[:-1]) if sizes else [names]
        found = [f"delay{k}__{name}" for part in parts for k in self.delays_ for name in part]
        return np.array(found, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


# ---------------------------------------------------------------- checks


def _check_delays(delays: Any) -> np.ndarray:
    """Check the delays, and return them as an array of different integers."""
    found = list(delays)
    right = all(isinstance(k, Integral) and not isinstance(k, bool) for k in found)
    if not right or not found or len(set(found)) < len(found):
        raise ValueError(
            f"delays must be a sequence of one or more different integers; got delays={delays!r}."
        )
    return np.array([int(k) for k in found], dtype=np.int64)


def _values(X: Any) -> Any:
    """Return inputs as a floating-point matrix, without a check of its entries.

    Dask arrays are not computed.
    """
    if is_dask(X):
        from ..streaming.dask import known_chunks

        if hasattr(X, "columns"):
            raise TypeError(
                "X is a Dask table with an unknown number of samples; pass "
                "X.to_dask_array(lengths=True)."
            )
        X = known_chunks(X, "X")
        return X if X.dtype.kind == "f" else X.astype(np.float64)
    return check_matrix(nan_for_masked(X))


def _runs(groups: Any, n_samples: int) -> list[slice]:
    """Return the samples of each run, which must be consecutive."""
    if groups is None:
        return [slice(0, n_samples)]
    labels = check_groups(groups, n_samples)
    starts = [0, *(np.flatnonzero(labels[1:] != labels[:-1]) + 1).tolist()]
    seen: dict[Any, int] = {}
    for start in starts:
        label = labels[start]
        if label in seen:
            shown = label.item() if isinstance(label, np.generic) else label
            raise ValueError(
                f"the samples of each run in groups must be consecutive; run {shown!r} starts at "
                f"sample {seen[label]} and again at sample {start}. Sort the samples by run, or "
                f"give each sequence of consecutive samples its own label."
            )
        seen[label] = start
    return [slice(start, stop) for start, stop in pairwise([*starts, n_samples])]


def _warn_of_outliers(matrix: np.ndarray, shift: _Shift) -> None:
    """Warn if `fill` is farther from the range of a feature than the width of this range."""
    n = matrix.shape[0]
    if n < 2 or not np.any(shift.rows == n):
        return
    low, high = matrix.min(axis=0), matrix.max(axis=0)
    with np.errstate(invalid="ignore", over="ignore"):  # missing values and infinite ranges
        distance = np.maximum(low - shift.fill, shift.fill - high)
        far = (distance > high - low) & (high > low)
    if np.any(far):
        k = int(np.flatnonzero(far)[0])
        warn(
            f"fill={shift.fill:g} is far outside of the range of {np.sum(far)} of {far.size} "
            f"features (feature {k}: {low[k]:.4g} to {high[k]:.4g}), so the filled samples are "
            f"outliers. Centre the inputs first, for instance with Standardizer, set fill to a "
            f"value in this range, or drop the filled samples from the delayed X and from y."
        )


# ---------------------------------------------------------------- arrays


@dataclass(frozen=True, eq=False)
class _Shift:
    """Runs of samples, their delays, and the value of inputs outside of a run."""

    delays: np.ndarray
    runs: list[slice]
    fill: float

    @property
    def rows(self) -> np.ndarray:
        """Return the index of each delayed sample, (n, n_delays); n if it is outside of the run."""
        n = self.runs[-1].stop
        sizes = [run.stop - run.start for run in self.runs]
        first = np.repeat([run.start for run in self.runs], sizes)[:, None]
        last = np.repeat([run.stop - 1 for run in self.runs], sizes)[:, None]
        rows = np.arange(n)[:, None] - self.delays
        return np.where((rows >= first) & (rows <= last), rows, n)


def _delayed(A: Array, shift: _Shift) -> Array:
    """Delay an array (n, m1, ..., mq) of any library; returns (n, n_delays, m1, ..., mq)."""
    if is_dask(A):
        return _delayed_lazily(A, shift)
    rows = shift.rows
    xp = namespace_of(A)
    padded = xp.concat([A, xp.full_like(A[:1, ...], shift.fill)], axis=0)
    found = xp.take(padded, asarray_like(rows.reshape(-1), A), axis=0)
    found = xp.reshape(found, (*rows.shape, *A.shape[1:]))
    missing = xp.isnan(A)
    if isinstance(A, np.ndarray) and not missing.any():
        return found
    filled = asarray_like(rows == A.shape[0], A)
    filled = xp.reshape(filled, (*rows.shape, *(1 for _ in A.shape[1:])))
    nan = xp.full_like(A[:1, None, ...], math.nan)
    return xp.where(filled & missing[:, None, ...], nan, found)


def _delayed_lazily(A: Any, shift: _Shift) -> Any:
    """Delay a Dask array, with the same chunks of samples."""
    import dask.array as da

    found = []
    for delay in shift.delays.tolist():
        parts = []
        for run in shift.runs:
            n = min(abs(delay), run.stop - run.start)
            if delay >= 0:
                parts += [_filled(A[run.start : run.start + n], shift), A[run.start : run.stop - n]]
            else:
                parts += [A[run.start + n : run.stop], _filled(A[run.stop - n : run.stop], shift)]
        whole = da.concatenate([part for part in parts if part.shape[0]])
        found.append(whole.rechunk(A.chunks))
    return da.stack(found, axis=1)


def _filled(A: Any, shift: _Shift) -> Any:
    """Return `fill` in place of the entries of a Dask array, and NaN where they are NaN."""
    import dask.array as da

    return da.where(da.isnan(A), np.nan, shift.fill).astype(A.dtype)


def _in_modes(matrix: Array, grid: Grid) -> Array:
    """Reshape the columns of a matrix to the modes of a grid."""
    return namespace_of(matrix).reshape(matrix, (matrix.shape[0], *grid.shape))


def _delayed_matrix(matrix: Array, shift: _Shift, sizes: list[int]) -> Array:
    """Delay a matrix; the columns are ordered delay by delay within blocks of these sizes."""
    if len(sizes) < 2:
        return flatten(_delayed(matrix, shift))[0]
    ends = np.cumsum(sizes)
    columns = np.split(np.arange(ends[-1]), ends[:-1])
    blocks = [_delayed(select_columns(matrix, some), shift) for some in columns]
    return join_columns([flatten(block)[0] for block in blocks])


# ---------------------------------------------------------------- labelled inputs


def _delayed_block(
    name: Any, A: Any, shift: _Shift, dim: str | None, grids: Mapping[Any, Grid]
) -> Any:
    """Delay one entry of a dict."""
    if comes_from(A, "xarray"):
        return _delayed_xarray(A, shift, (dim, *grids[name].dims), _free_dimension(A))
    columns, grid = block_of(name, A)
    if hasattr(A, "columns") and not is_dask(A):
        return _delayed_table(A, columns, shift)
    return _delayed(_in_modes(columns, grid), shift)


def _delayed_table(X: Any, matrix: Array, shift: _Shift) -> Any:
    """Delay a table: the delay is the first level of its columns, or a prefix for polars."""
    values = _delayed_matrix(matrix, shift, [])
    delays, columns = shift.delays, X.columns
    if comes_from(X, "polars"):
        names = [f"delay{k}__{name}" for k in delays for name in columns]
        return type(X)(values, schema=names, orient="row")
    import pandas as pd

    repeated = columns.append([columns] * (len(delays) - 1))
    levels = [repeated.get_level_values(k) for k in range(columns.nlevels)]
    names = [free("delay", columns.names), *columns.names]
    index = pd.MultiIndex.from_arrays([np.repeat(delays, len(columns)), *levels], names=names)
    return type(X)(values, index=X.index, columns=index)


def _free_dimension(X: Any) -> str:
    """Return a name for the delay dimension that an xarray object does not use."""
    return free("delay", [*X.dims, *X.coords, *getattr(X, "data_vars", ())])


def _delayed_xarray(A: Any, shift: _Shift, dims: tuple[Any, ...], name: str) -> Any:
    """Delay a DataArray; the samples come first, then the delays, then the features.

    Parameters
    ----------
    A : DataArray
    shift : _Shift
    dims : tuple
        Sample dimension, followed by the dimensions of the features in the order of the fit.
    name : str
        Name of the delay dimension.
    """
    data = A.transpose(*dims).data
    found = _delayed(data if data.dtype.kind == "f" else data.astype(np.float64), shift)
    made = type(A)(found, dims=(dims[0], name, *dims[1:]), name=A.name, attrs=A.attrs)
    return made.assign_coords(A.coords).assign_coords({name: shift.delays})
