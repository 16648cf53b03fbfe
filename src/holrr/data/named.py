"""Objects with names as arrays: what xarray, pandas and polars call things goes into `Labels`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..core.namespace import Array
from .arrays import check_inputs, nan_for_masked
from .labels import Grid, Labels, check_features, check_rows, comes_from, plain, same
from .source import is_dask
from .tables import fold, from_frame, from_polars

__all__ = ["Unlabelled", "sample_dimension", "take_inputs", "take_outputs", "take_pair"]
__all__ += ["take_weights"]


@dataclass(frozen=True, eq=False)
class Unlabelled:
    """Data as arrays, tables or sources without names, and the names apart.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples, d1, ..., dp)
    sample_weight : array-like of shape (n_samples,), or None
    labels : Labels or None
    names : list of str or None
        Names of the features that `X` does not carry any more.
    """

    X: Any
    y: Any
    sample_weight: Any
    labels: Labels | None
    names: list[str] | None


def take_pair(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None, *, known: Labels | None = None
) -> Unlabelled:
    """The data of a fit or a score without their names.

    Parameters
    ----------
    estimator : estimator, or None
        Whose parameters `sample_dim`, `output_shape` and `missing` count.
    X, y, sample_weight
        Whatever a user has.
    known : Labels, optional
        Those of the fit, which the data must agree with.
    """
    dim = sample_dimension(getattr(estimator, "sample_dim", None), X, y, known)
    check_rows(X, sample_dim=dim, y=y, sample_weight=sample_weight)
    fill = getattr(estimator, "missing", "raise") == "fill"
    X, inputs, names = _inputs(X, dim, () if known is None else known.inputs)
    y, labels = _outputs(y, dim, known, fill)
    shape = getattr(estimator, "output_shape", None)
    if shape is not None:
        y = fold(y, shape)
        labels = replace(labels, flat=True, outputs=None)
    if inputs:
        labels = replace(labels, inputs=inputs, sample_dim=dim)
    plain = labels.kind == "array" and not labels.flat and not inputs
    return Unlabelled(
        X,
        nan_for_masked(y) if fill else y,
        take_weights(sample_weight),
        None if plain else labels,
        names,
    )


def take_outputs(y: Any, dim: str | None = None, known: Labels | None = None) -> tuple[Any, Labels]:
    """Outputs that are only compared: without their names, which must agree with those known.

    Parameters
    ----------
    y : array, table or object of xarray
    dim : str, optional
        The sample dimension of objects of xarray; by default their first.
    known : Labels, optional
        Those of the outputs to compare with, in whose order dimensions are put.
    """
    if comes_from(y, "xarray") and dim is None:
        dim = _dims(y)[0]
    same_kind = known is not None and known.outputs is not None
    return _outputs(y, dim, known if same_kind else None, fill=True)


def take_weights(sample_weight: Any) -> Any:
    """Weights of samples, of which the labels were compared before."""
    return sample_weight.to_numpy() if comes_from(sample_weight, "xarray") else sample_weight


def take_inputs(estimator: BaseEstimator, X: Any) -> Array:
    """Checked inputs to predict for, without names, which are compared with those of the fit.

    Dask arrays are checked when they are computed.
    """
    labels: Labels = getattr(estimator, "labels_", None) or Labels()
    dim = dimension_of_inputs(X, labels) if comes_from(X, "xarray") else None
    X, _, names = _inputs(X, dim, labels.inputs)
    checked = X if is_dask(X) else check_inputs(X)
    check_features(estimator, X, reset=False, names=names)
    return checked


def dimension_of_inputs(X: Any, labels: Labels) -> str:
    """The sample dimension of new inputs: that of the fit, or the one that is no feature's."""
    dims = _dims(X)
    if labels.sample_dim in dims:
        return labels.sample_dim
    if not labels.inputs:
        return dims[0]
    left = [d for d in dims if not any(d in grid.dims for grid in labels.inputs)]
    if len(left) != 1:
        beside = tuple(d for grid in labels.inputs for d in grid.dims)
        raise ValueError(
            f"X has dimensions {dims}; one is needed for the samples, {labels.sample_dim!r} as in "
            f"the fit, beside {beside}. A single sample gets it with "
            f"X.expand_dims({labels.sample_dim!r})."
        )
    return left[0]


# ---------------------------------------------------------------- the sample dimension


def _dims(A: Any) -> tuple[str, ...]:
    """The dimensions, in the order of the first variable that has all of them, or nearly."""
    if not _is_dataset(A):
        return tuple(A.dims)
    if not len(A.data_vars):
        return tuple(A.dims)
    orders = sorted((v.dims for v in A.data_vars.values()), key=len, reverse=True)
    return tuple(dict.fromkeys(d for dims in orders for d in dims))


def _is_dataset(A: Any) -> bool:
    return hasattr(type(A), "data_vars")


def sample_dimension(given: str | None, X: Any, y: Any, known: Labels | None) -> str | None:
    """The dimension of the samples: the one that is given, known, shared, or the first."""
    named = {name: _dims(A) for name, A in (("X", X), ("y", y)) if comes_from(A, "xarray")}
    given = given or (None if known is None else known.sample_dim)
    if not named:
        return given
    if given is not None:
        for name, dims in named.items():
            if given not in dims:
                raise ValueError(
                    f"sample_dim={given!r} is no dimension of {name}, which has {dims}."
                )
        return given
    if len(named) == 1:
        (dims,) = named.values()
        if not dims:
            raise ValueError(f"{next(iter(named))} has no dimension, and needs one for samples.")
        return dims[0]
    of_x, of_y = named["X"], named["y"]
    shared = [d for d in of_x if d in of_y]
    if len(shared) == 1 or (shared and of_x[0] == of_y[0]):
        return shared[0]
    what = f"share {tuple(shared)}" if shared else "share none"
    raise ValueError(
        f"X has dimensions {of_x} and y has {of_y}, which {what}: "
        + (
            "say which of them the samples are along with sample_dim=..."
            if shared
            else "rename that of the samples in one of them."
        )
    )


# ---------------------------------------------------------------- inputs


def _inputs(
    X: Any, dim: str | None, known: tuple[Grid, ...]
) -> tuple[Any, tuple[Grid, ...], list[str] | None]:
    """Inputs as a matrix, or the table itself; their axes; names that the matrix has lost."""
    if comes_from(X, "pandas") and getattr(getattr(X, "columns", None), "nlevels", 1) > 1:
        names = [" / ".join(map(str, column)) for column in X.columns]
        return X.set_axis(names, axis=1), (), None
    if not comes_from(X, "xarray"):
        return X, (), None
    assert dim is not None
    parts, is_set = [X], _is_dataset(X)
    if is_set:
        _check_variables(X, known)
        parts = [X[v] for v in ([g.name for g in known] if known else X.data_vars)]
    grids, blocks = [], []
    for k, A in enumerate(parts):
        A = _in_order(A, "X", dim, known[k].dims if known else None)
        grids.append(grid_of(A, dim, name=A.name if is_set else None))
        blocks.append(_values(A, "X").reshape(A.shape[0], -1))
    matrix = blocks[0] if len(blocks) == 1 else _library(blocks).concatenate(blocks, axis=1)
    return matrix, tuple(grids), [n for g in grids for n in g.entries()]


def _check_variables(X: Any, known: tuple[Grid, ...]) -> None:
    if not len(X.data_vars):
        raise ValueError("X is a Dataset without variables.")
    names = {grid.name for grid in known}
    if names and names != set(X.data_vars):
        raise ValueError(
            f"X must have the variables of the fit; missing are {sorted(names - set(X.data_vars))}"
            f" and unexpected {sorted(map(str, set(X.data_vars) - names))}."
        )


def _in_order(A: Any, name: str, dim: str, wanted: Sequence[str] | None) -> Any:
    """A DataArray with the samples first and the other dimensions in the order of the fit."""
    dims = tuple(A.dims)
    if dim not in dims:
        raise ValueError(f"{_called(A, name)} has dimensions {dims}, without the samples' {dim!r}.")
    rest = tuple(d for d in dims if d != dim)
    if wanted is not None and set(wanted) != set(rest):
        raise ValueError(
            f"{_called(A, name)} has dimensions {rest} beside {dim!r}; the fit had {wanted}."
        )
    order = (dim, *(rest if wanted is None else wanted))
    return A if dims == order else A.transpose(*order)


def _called(A: Any, name: str) -> str:
    return name if getattr(A, "name", None) is None else f"{name} ({A.name!r})"


def _values(A: Any, name: str) -> Any:
    """The numbers of a DataArray: NumPy's, or Dask's as they are."""
    data = A.data
    if data.dtype.kind not in "biuf":
        raise ValueError(f"{_called(A, name)} must hold real numbers; got dtype {data.dtype}.")
    if hasattr(data, "rechunk") and data.ndim > 2:
        data = data.rechunk(dict.fromkeys(range(1, data.ndim), -1))
    return data


def _library(blocks: list[Any]) -> Any:
    return import_module("dask.array") if any(hasattr(b, "rechunk") for b in blocks) else np


def grid_of(A: Any, dim: str, name: Any = None) -> Grid:
    """Names of the dimensions of a DataArray, and the coordinates that go without the samples."""
    coords, levels, dims = {}, {}, tuple(d for d in A.dims if d != dim)
    indexes = A.indexes
    for key, variable in A.coords.variables.items():
        if dim in variable.dims or not set(variable.dims) <= set(dims):
            continue
        index = indexes.get(key) if key in dims else None
        if index is not None and index.nlevels > 1:
            levels[key] = tuple(map(str, index.names))
        else:
            coords[str(key)] = (
                tuple(map(str, variable.dims)),
                plain(variable.values),
                variable.attrs,
            )
    return Grid(tuple(map(str, dims)), A.shape[1:], coords, name, {}, levels)


# ---------------------------------------------------------------- outputs


def _outputs(y: Any, dim: str | None, known: Labels | None, fill: bool) -> tuple[Any, Labels]:
    """Outputs as an array, and what they were called."""
    if comes_from(y, "xarray"):
        assert dim is not None
        return (_dataset if _is_dataset(y) else _data_array)(y, dim, known)
    if comes_from(y, "pandas") and hasattr(y, "columns"):
        return from_frame(y, known, fill)
    if comes_from(y, "polars") and hasattr(y, "columns"):
        return from_polars(y, known)
    return y, Labels(sample_dim=dim)


def _data_array(y: Any, dim: str, known: Labels | None) -> tuple[Any, Labels]:
    grid = None if known is None else known.outputs
    y = _in_order(y, "y", dim, None if grid is None else grid.dims)
    found = replace(grid_of(y, dim), name=y.name, attrs=dict(y.attrs))
    _check_same_axes(found, grid)
    return _values(y, "y"), Labels("dataarray", dim, outputs=found)


def _dataset(y: Any, dim: str, known: Labels | None) -> tuple[Any, Labels]:
    if not len(y.data_vars):
        raise ValueError("y is a Dataset without variables.")
    names, first = list(map(str, y.data_vars)), next(iter(y.data_vars.values()))
    grid = None if known is None else known.outputs
    dims = tuple(d for d in first.dims if d != dim) if grid is None else grid.dims[1:]
    parts = []
    for A in y.data_vars.values():
        if set(A.dims) != {dim, *dims}:
            raise ValueError(
                f"the variables of y must have the same dimensions: {A.name!r} has {A.dims} and "
                f"{first.name!r} has {first.dims}. Fit them one by one."
            )
        parts.append(_in_order(A, "y", dim, dims))
    inner = grid_of(parts[0], dim)
    axis = "variable" if "variable" not in dims else "variable_"
    coords = {axis: ((axis,), np.array(names), {}), **inner.coords}
    shape = (len(names), *inner.shape)
    found = Grid((axis, *inner.dims), shape, coords, None, dict(y.attrs), inner.levels)
    _check_same_axes(found, grid)
    variables = {str(A.name): dict(A.attrs) for A in parts}
    blocks = [_values(A, "y") for A in parts]
    values = _library(blocks).stack(blocks, axis=1)
    return values, Labels("dataset", dim, outputs=found, variables=variables)


def _check_same_axes(found: Grid, grid: Grid | None) -> None:
    """Outputs that are called otherwise than those of the fit must not be paired with them."""
    if grid is None:
        return
    for k, dim in enumerate(found.dims):
        a, b = found.coordinate(k), grid.coordinate(k)
        if (dim not in found.coords and dim not in found.levels) or same(a, b):
            continue
        n = min(a.size, b.size)
        differ = np.flatnonzero(a[:n] != b[:n])
        where = (
            f"at position {differ[0]} it has {a[differ[0]]} and the fit had {b[differ[0]]}"
            if differ.size
            else f"it has {a.size} entries and the fit had {b.size}"
        )
        raise ValueError(
            f"y has other coordinates along {dim!r} than the fit: {where}. Put them in order with "
            f"y.sel({dim}=...) or y.reindex({dim}=...)."
        )
