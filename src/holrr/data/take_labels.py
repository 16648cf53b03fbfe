"""Objects with names as arrays: what xarray, pandas and polars call things goes into `Labels`."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..core.namespace import Array
from .arrays import check_inputs, check_outputs, nan_for_masked
from .chunks import known as known_chunks
from .dimensions import dimension_of_inputs, dims_of, is_dataset, sample_dimension
from .labels import Grid, Labels, check_features, check_rows, comes_from, plain, same
from .source import check_kind, is_dask
from .tables import (
    collected,
    fold,
    from_frame,
    from_polars,
    in_levels,
    is_a_table_without_names,
    names_of_columns,
)

__all__ = ["Unlabelled", "take_inputs", "take_output_weight", "take_outputs", "take_pair"]
__all__ += ["take_weights"]


@dataclass(frozen=True, eq=False)
class Unlabelled:
    """Data as arrays, tables or sources without names, and the names apart."""

    X: Any
    y: Any
    sample_weight: Any
    labels: Labels | None
    inputs: tuple[Grid, ...]  # names of the features that `X` does not carry any more


def take_pair(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None, *, known: Labels | None = None
) -> Unlabelled:
    """The data of a fit or a score, whatever a user has, without their names.

    The parameters `sample_dim`, `output_shape` and `missing` of the estimator, if there is one,
    count. The names must agree with those known from the fit.
    """
    dim = sample_dimension(getattr(estimator, "sample_dim", None), X, y, known)
    check_rows(X, sample_dim=dim, y=y, sample_weight=sample_weight)
    fill = getattr(estimator, "missing", "raise") == "fill"
    X, inputs = _inputs(X, dim, () if known is None else known.inputs)
    shape = getattr(estimator, "output_shape", None)
    y, labels = _outputs(y, dim, known, fill, flat=shape is not None)
    if shape is not None:
        y = fold(y, shape)
        of_xarray = labels.kind in ("dataarray", "dataset")
        labels = replace(labels, flat=labels.outputs if of_xarray else True, outputs=None)
    if inputs:
        labels = replace(labels, inputs=inputs, sample_dim=dim)
    plain = labels.kind == "array" and not labels.flat and not inputs
    return Unlabelled(
        X,
        nan_for_masked(y) if fill else y,
        take_weights(sample_weight),
        None if plain else labels,
        inputs,
    )


def take_outputs(
    y: Any, dim: str | None = None, known: Labels | None = None, *, flat: bool = False
) -> tuple[Any, Labels]:
    """Outputs that are only compared: without their names, which must agree with those known.

    Dimensions are put in the order of those known. That of the samples in objects of xarray is by
    default their first. Flat, the columns of a table stay one mode, whatever their levels.
    """
    if comes_from(y, "xarray") and dim is None:
        dim = dims_of(y)[0]
    same_kind = known is not None and known.outside is not None
    return _outputs(y, dim, known if same_kind else None, fill=True, flat=flat)


def take_weights(sample_weight: Any) -> Any:
    """Weights of samples, of which the labels were compared before."""
    if is_dataset(sample_weight):
        raise TypeError("sample_weight must be an array or a DataArray; got a Dataset.")
    return sample_weight.to_numpy() if comes_from(sample_weight, "xarray") else sample_weight


def take_output_weight(weight: Any, labels: Labels | None) -> Any:
    """Weights of outputs; those of xarray are put in the order of the output modes by name."""
    if labels is None or labels.outputs is None:
        return weight
    if isinstance(weight, (list, tuple)) and len(weight) == len(labels.outputs.dims):
        return [_weights(v, labels.outputs, k, k + 1) for k, v in enumerate(weight)]
    return _weights(weight, labels.outputs, 0, None)


def _weights(weight: Any, grid: Grid, start: int, stop: int | None) -> Any:
    if not comes_from(weight, "xarray"):
        return weight
    dims = grid.dims[start:stop]
    if set(weight.dims) != set(dims):
        raise ValueError(
            f"output_weight has dimensions {weight.dims} where y has {dims}; they must be the same."
        )
    for k, dim in enumerate(dims, start):
        index = weight.indexes.get(dim)
        if index is None or dim not in grid.coords:
            continue
        if not same(plain(index.to_numpy()), grid.coordinate(k)):
            raise ValueError(f"output_weight has other coordinates along {dim!r} than y.")
    return weight.transpose(*dims).to_numpy()


def take_inputs(estimator: BaseEstimator, X: Any) -> Array:
    """Checked inputs to predict for, without names, which are compared with those of the fit.

    Dask arrays are checked when they are computed.
    """
    labels: Labels = getattr(estimator, "labels_", None) or Labels()
    dim = dimension_of_inputs(X, labels) if comes_from(X, "xarray") else None
    X, inputs = _inputs(X, dim, labels.inputs)
    checked = X if is_dask(X) else check_inputs(X)
    check_features(estimator, X, reset=False, inputs=inputs)
    return checked


# ---------------------------------------------------------------- inputs


def _inputs(X: Any, dim: str | None, known: tuple[Grid, ...]) -> tuple[Any, tuple[Grid, ...]]:
    """Inputs as a matrix, or the table itself; the axes whose names the matrix has lost."""
    if comes_from(X, "pandas") and hasattr(X, "columns"):
        names = names_of_columns(X.columns)
        return X if names is None else X.set_axis(names, axis=1), ()
    if not comes_from(X, "xarray"):
        return collected(X, "X"), ()
    assert dim is not None
    parts, is_set = [X], is_dataset(X)
    if known and is_set != (known[0].name is not None):
        is_now, was = ("Dataset", "DataArray")[:: 1 if is_set else -1]
        raise ValueError(f"X is a {is_now}, but the inputs of the fit were a {was}.")
    if is_set:
        _check_variables(X, known)
        parts = [X[v] for v in ([g.name for g in known] if known else X.data_vars)]
    grids, blocks = [], []
    for k, A in enumerate(parts):
        A = _in_order(A, "X", dim, known[k].dims if known else None)
        grids.append(grid_of(A, dim, name=A.name if is_set else None))
        blocks.append(_values(A, "X").reshape(A.shape[0], -1))
    matrix = blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1)
    return matrix, tuple(grids)


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
    check_kind(data, _called(A, name))
    if is_dask(data):
        data = known_chunks(data, name)
        data = data.rechunk(dict.fromkeys(range(1, data.ndim), -1)) if data.ndim > 2 else data
    return data


def grid_of(A: Any, dim: str, name: Any = None) -> Grid:
    """Names of the dimensions of a DataArray, and the coordinates that go without the samples."""
    coords, levels, dims = {}, {}, tuple(d for d in A.dims if d != dim)
    for key, variable in A.coords.variables.items():
        if dim in variable.dims or not set(variable.dims) <= set(dims):
            continue
        # Entries of an index with levels are tuples.
        index = A.indexes.get(key) if key in dims and variable.dtype == object else None
        if index is not None and index.nlevels > 1:
            levels[key] = tuple(index.names)
        else:
            attrs = deepcopy(variable.attrs) if variable.attrs else {}
            coords[key] = (variable.dims, plain(variable.values), attrs)
    return Grid(dims, A.shape[1:], coords, name, {}, levels)


# ---------------------------------------------------------------- outputs


def _outputs(
    y: Any, dim: str | None, known: Labels | None, fill: bool, flat: bool = False
) -> tuple[Any, Labels]:
    """Outputs as an array, and what they were called."""
    if comes_from(y, "xarray"):
        assert dim is not None
        return (_dataset if is_dataset(y) else _data_array)(y, dim, known)
    if comes_from(y, "pandas") and hasattr(y, "columns"):
        values, labels = from_frame(y, known, fill, flat)
        grid, fitted = labels.outputs, None if known is None or known.columns else known.outputs
        if grid is not None and fitted is not None and grid.dims == fitted.dims:
            _check_same_axes(grid, fitted)
        return values, labels
    if comes_from(y, "polars") and hasattr(y := collected(y, "y"), "columns"):
        return from_polars(y, known)
    if known is not None and is_a_table_without_names(y, known):
        y = in_levels(check_outputs(y), known)
    return y, Labels(sample_dim=dim)


def _data_array(y: Any, dim: str, known: Labels | None) -> tuple[Any, Labels]:
    grid = None if known is None else known.outside
    y = _in_order(y, "y", dim, None if grid is None else grid.dims)
    found = replace(grid_of(y, dim), name=y.name, attrs=deepcopy(y.attrs))
    _check_same_axes(found, grid)
    return _values(y, "y"), Labels("dataarray", dim, outputs=found)


def _dataset(y: Any, dim: str, known: Labels | None) -> tuple[Any, Labels]:
    if not len(y.data_vars):
        raise ValueError("y is a Dataset without variables.")
    grid = None if known is None else known.outside
    if grid is not None and grid.dims:
        y = _in_order_of(y, grid.dims[0], list(map(str, grid.coordinate(0))))
    names, first = list(map(str, y.data_vars)), next(iter(y.data_vars.values()))
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
    found = Grid((axis, *inner.dims), shape, coords, None, deepcopy(y.attrs), inner.levels)
    _check_same_axes(found, grid)
    variables = {A.name: deepcopy(A.attrs) for A in parts}
    blocks = [_values(A, "y") for A in parts]
    return np.stack(blocks, axis=1), Labels("dataset", dim, outputs=found, variables=variables)


def _in_order_of(y: Any, dim: str, wanted: list[Any]) -> Any:
    """A Dataset with its variables in the order of the fit."""
    found = {str(name): name for name in y.data_vars}
    if set(found) != set(wanted):
        raise ValueError(
            f"y is a Dataset of {list(found)}; the outputs of the fit had {wanted} along {dim!r}."
        )
    return y[[found[name] for name in wanted]]


def _check_same_axes(found: Grid, grid: Grid | None) -> None:
    """Outputs that are called otherwise than those of the fit must not be paired with them."""
    if grid is None:
        return
    for k, dim in enumerate(found.dims):
        a, b = found.coordinate(k), grid.coordinate(k)
        named = all(dim in g.coords or dim in g.levels for g in (found, grid))
        if not named or same(a, b):
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
