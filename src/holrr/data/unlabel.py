"""Conversion of labelled objects of xarray, pandas and polars to arrays and `Labels`.

`unlabel` separates inputs and outputs of a fit or a score into arrays and labels. `relabel` does
the reverse.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from .arrays import (
    check_kind,
    check_not_empty,
    check_outputs,
    comes_from,
    ignores_missing,
    is_dask,
    nan_for_masked,
    refuse_files,
)
from .inputs import Inputs, block_of, flatten, grids_of_shape, is_blocks, join_columns
from .labels import (
    Grid,
    Labels,
    check_rows,
    differing_axis,
    first_difference,
    free,
    how_to_match,
    plain,
    same,
)

__all__ = ["Unlabelled", "dimension_of_inputs", "is_dataset", "sample_dimension", "unlabel"]
__all__ += [
    "has_dims",
    "refit_dimension",
    "unlabel_inputs",
    "unlabel_mode_weights",
    "unlabel_output_weight",
    "unlabel_outputs",
    "unlabel_weights",
]
__all__ += ["take_rows"]


@dataclass(frozen=True, eq=False)
class Unlabelled:
    """Data as arrays, tables or Dask collections, and their labels."""

    X: Any
    y: Any
    sample_weight: Any
    labels: Labels | None
    inputs: Inputs  # arrangement of the columns of `X`


def unlabel(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    groups: Any = None,
    sample_dim: Any = None,
    known: Labels | None = None,
) -> Unlabelled:
    """Separate the data of a fit or a score from their labels.

    Parameters
    ----------
    estimator : estimator or None
        Its parameters `input_shape`, `output_shape` and `missing` are read.
    X, y, sample_weight
        As in `fit`.
    groups : array of shape (n_samples,), optional
        Groups of the samples. Only their row labels are compared with those of `X` and `y`.
    sample_dim : str, optional
        Sample dimension of xarray objects.
    known : Labels, optional
        Labels of the fit, which must agree with those of the data.
    """
    dim = sample_dimension(sample_dim, X, y, known)
    for block in X.values() if is_blocks(X) else [X]:
        check_rows(block, sample_dim=dim, y=y, sample_weight=sample_weight, groups=groups)
    fill = ignores_missing(estimator)
    inputs = unlabel_inputs(X, dim, known, getattr(estimator, "input_shape", None))
    shape = getattr(estimator, "output_shape", None)
    y, labels = _outputs(y, dim, known, fill, flat=shape is not None)
    if shape is not None:
        y = fold(y, shape)
        of_xarray = labels.kind in ("dataarray", "dataset")
        labels = replace(labels, flat=labels.outputs if of_xarray else True, outputs=None)
    if inputs.grids:
        labels = replace(labels, inputs=inputs.grids, cells=inputs.cells, sample_dim=dim)
    plain = labels.kind == "array" and not labels.flat and not inputs.grids
    return Unlabelled(
        inputs.X,
        nan_for_masked(y) if fill else y,
        unlabel_weights(sample_weight),
        None if plain else labels,
        inputs,
    )


def unlabel_outputs(
    y: Any, dim: str | None = None, known: Labels | None = None, *, flat: bool = False
) -> tuple[Any, Labels]:
    """Separate outputs from their labels, which must agree with known labels.

    Dimensions are put in the order of the known labels. The default sample dimension of xarray
    objects is the first one. With `flat`, the columns of a table stay one mode even if they have
    levels.
    """
    if comes_from(y, "xarray") and dim is None:
        dim = dims_of(y)[0]
    same_kind = known is not None and known.outside is not None
    return _outputs(y, dim, known if same_kind else None, fill=True, flat=flat)


def unlabel_weights(sample_weight: Any) -> Any:
    """Return weights of samples without their labels, which have already been compared."""
    if is_dataset(sample_weight):
        raise TypeError("sample_weight must be an array or a DataArray; got a Dataset.")
    return sample_weight.to_numpy() if comes_from(sample_weight, "xarray") else sample_weight


def unlabel_output_weight(weight: Any, labels: Labels | None) -> Any:
    """Convert weights of outputs to arguments of `core.output_weights.check_output_weight`.

    The labels of weights are compared with those of the outputs. A DataArray, or a Series whose
    index has a name, weights the modes that it names; the other modes have weight one.

    Parameters
    ----------
    weight : DataArray, Series, DataFrame, array, or sequence of one of them for each mode
    labels : Labels, optional
        Labels of the fit.
    """
    grid = None if labels is None else labels.outputs
    return weight if grid is None else unlabel_mode_weights(weight, grid, "output_weight", "y")


def unlabel_mode_weights(weight: Any, grid: Grid, name: str, data: str) -> Any:
    """Separate weights of the modes of a grid from their labels, which are compared.

    Parameters
    ----------
    weight : as in `unlabel_output_weight`
    grid : Grid
    name, data : str
        Names of the weights and of the data of the grid in messages.
    """
    if isinstance(weight, (list, tuple)) and len(weight) == len(grid.dims):
        modes = range(len(grid.dims))
        return [
            _weights(v, grid, (k,), f"{name}[{k}]", data)
            for k, v in zip(modes, weight, strict=True)
        ]
    return _weights(weight, grid, tuple(range(len(grid.dims))), name, data)


def _weights(weight: Any, grid: Grid, modes: tuple[int, ...], name: str, data: str) -> Any:
    """Return weights of some modes as an array with these modes; None if all are one."""
    axes = _axes_of(weight)
    if axes is None:
        return weight
    dims = [grid.dims[k] for k in modes]
    if comes_from(weight, "xarray") and not set(weight.dims) <= set(dims):
        raise ValueError(
            f"{name} has dimensions {weight.dims}, but {data} has {tuple(dims)}. Use only "
            f"dimensions of {data}."
        )
    # Without names, as in a table or an unnamed Series, there must be an axis for each mode.
    by_name = all(dim in dims for dim, _ in axes)
    if not by_name and len(axes) != len(modes):
        return weight
    found = [dims.index(dim) if by_name else k for k, (dim, _) in enumerate(axes)]
    values = np.asarray(weight.to_numpy())
    for k, (_, index), size in zip(found, axes, values.shape, strict=True):
        _check_weight_labels(name, data, index, size, grid, modes[k])
    whole = [grid.shape[k] for k in modes]
    sizes = [size if k in found else 1 for k, size in enumerate(whole)]
    return np.broadcast_to(values.transpose(np.argsort(found)).reshape(sizes), whole)


def _axes_of(weight: Any) -> list[tuple[Any, Any]] | None:
    """Return name and pandas index of each axis of weights; None without xarray or pandas."""
    if comes_from(weight, "xarray") and not is_dataset(weight):
        return [(dim, weight.indexes.get(dim)) for dim in weight.dims]
    if comes_from(weight, "pandas") and hasattr(weight, "axes"):
        return [(index.name, index) for index in weight.axes]
    return None


def _check_weight_labels(
    name: str, data: str, index: Any, size: int, grid: Grid, mode: int
) -> None:
    """Raise a ValueError if weights have other labels than the data, or another order."""
    axis, expected = grid.dims[mode], grid.shape[mode]
    if size != expected:
        raise ValueError(f"{name} has {size} entries along {axis!r}, but {data} has {expected}.")
    if index is None or not grid.is_labelled(mode):
        return
    found, known = _labels_of(index), grid.coordinate(mode)
    counted = index.name is None and same(found, np.arange(size))
    if not counted and not same(found, known):
        raise ValueError(
            f"{name} has other coordinates along {axis!r} than {data}: "
            f"{first_difference(found, known, name, data)}. Put {name} in the order of {data}, "
            f"with .reindex(...) or .sel(...) for instance."
        )


def _labels_of(index: Any) -> np.ndarray:
    """Return the labels of a pandas index as those of a coordinate."""
    if index.nlevels > 1:
        return np.array([" / ".join(map(str, entry)) for entry in index])
    return plain(index.to_numpy())


# ---------------------------------------------------------------- inputs


def unlabel_inputs(X: Any, dim: str | None, known: Labels | None, shape: Any = None) -> Inputs:
    """Convert inputs to a matrix, or a table, and describe the arrangement of their cells.

    Parameters
    ----------
    X : object
        As in `fit`.
    dim : str or None
        Sample dimension of xarray objects.
    known : Labels, optional
        Labels of the fit, which must agree with those of the inputs.
    shape : tuple, dict or None
        The parameter `input_shape`, for the inputs of a fit.
    """
    grids = () if known is None else known.inputs
    if is_blocks(X) or (comes_from(X, "xarray") and is_dataset(X)):
        found = _blocks(X, dim, grids)
    elif comes_from(X, "xarray"):
        if grids and grids[0].name is not None:
            raise ValueError("X is a DataArray, but the inputs of the fit were several blocks.")
        assert dim is not None
        wanted = grids[0].dims if grids and grids[0].is_named else None
        A = _in_order(X, "X", dim, wanted)
        check_not_empty(A, _called(A, "X"))
        matrix = _values(A, "X").reshape(A.shape[0], -1)
        found = Inputs(matrix, (grid_of(A, dim),), is_field=(True,))
    elif comes_from(X, "pandas") and hasattr(X, "columns"):
        found = _table(X)
    elif comes_from(X, "pandas") and hasattr(X, "to_frame"):
        raise ValueError(
            "X is a Series of pandas, which has one dimension. Pass a table: frame.iloc[[0]] is a "
            "row of a frame as a table, and series.to_frame() a column."
        )
    else:
        matrix, grids = flatten(collected(X, "X"))
        found = Inputs(matrix, grids, is_field=(True,) * len(grids))
        _check_modes(found.grids, known)
    if shape is not None and known is None:
        n_features = getattr(found.X, "shape", np.shape(found.X))[1]
        grids = grids_of_shape(shape, n_features, found.grids)
        found = replace(found, grids=grids, is_field=(True,) * len(grids))
    return found


def _blocks(X: Any, dim: str | None, known: tuple[Grid, ...]) -> Inputs:
    """Convert the variables of a Dataset, or the arrays of a dict, to blocks of columns."""
    is_set = is_dataset(X)
    if known and known[0].name is None:
        what, was = "Dataset" if is_set else "dict", "DataArray" if known[0].is_named else "array"
        raise ValueError(f"X is a {what}, but the inputs of the fit were a single {was}.")
    parts = {name: X[name] for name in (X.data_vars if is_set else X)}
    _check_variables(parts, known, "Dataset" if is_set else "dict")
    if not is_set and parts:
        first, *others = parts
        labelled = {f"X[{name!r}]": parts[name] for name in others}
        check_rows(parts[first], sample_dim=dim, **labelled)
    grids, blocks, is_field = [], [], []
    for k, name in enumerate([grid.name for grid in known] if known else parts):
        A = parts[name]
        if comes_from(A, "xarray"):
            assert dim is not None
            A = _in_order(A.rename(name), "X", dim, known[k].dims if known else None)
            check_not_empty(A, _called(A, "X"))
            grids.append(grid_of(A, dim, name=name))
            blocks.append(_values(A, "X").reshape(A.shape[0], -1))
            is_field.append(True)
            continue
        block, grid = block_of(name, A)
        if known and grid.shape != known[k].shape:
            raise ValueError(
                f"the samples of X[{name!r}] have shape {grid.shape}; in fit they had shape "
                f"{known[k].shape}."
            )
        grids.append(grid)
        blocks.append(block)
        is_field.append(len(grid.shape) > 1)
    return Inputs(join_columns(blocks), tuple(grids), is_field=tuple(is_field))


def _table(X: Any) -> Inputs:
    """Return the inputs of a table; columns with several levels are cells of a tensor."""
    columns = X.columns
    names = names_of_columns(columns)
    table = X if names is None else X.set_axis(names, axis=1)
    if columns.nlevels == 1:
        return Inputs(table, has_names=True)
    levels = tuple(plain(columns.get_level_values(k).to_numpy()) for k in range(columns.nlevels))
    labels = _of_columns("frame", levels, tuple(columns.names), name="X")
    assert labels.outputs is not None
    return Inputs(table, (labels.outputs,), labels.places, has_names=True, is_field=(True,))


def _check_modes(grids: tuple[Grid, ...], known: Labels | None) -> None:
    """Raise a ValueError if arrays with modes have other modes than in the fit."""
    if not grids or known is None:
        return
    fitted = [grid.shape for grid in known.inputs]
    if fitted != [grids[0].shape] or known.cells is not None:
        shown = fitted[0] if len(fitted) == 1 else fitted
        raise ValueError(
            f"X has modes of sizes {grids[0].shape}; the inputs of the fit had {shown or 'none'}."
        )


def _check_variables(parts: Mapping[Any, Any], known: tuple[Grid, ...], what: str) -> None:
    if not parts:
        raise ValueError(f"X is a {what} without variables.")
    names = {grid.name for grid in known}
    if names and names != set(parts):
        missing, extra = sorted(map(str, names - set(parts))), sorted(map(str, set(parts) - names))
        raise ValueError(
            f"X must have the variables of the fit; missing are {missing} and unexpected {extra}."
        )


def _in_order(A: Any, name: str, dim: str, wanted: Sequence[str] | None) -> Any:
    """Transpose a DataArray: samples first, other dimensions in the order of the fit."""
    dims = tuple(A.dims)
    if dim not in dims:
        raise ValueError(
            f"{_called(A, name)} needs the sample dimension {dim!r}; it has the dimensions {dims}."
        )
    rest = tuple(d for d in dims if d != dim)
    if wanted is not None and set(wanted) != set(rest):
        raise ValueError(
            f"{_called(A, name)} has dimensions {rest} besides {dim!r}; the fit had {wanted}."
        )
    order = (dim, *(rest if wanted is None else wanted))
    return A if dims == order else A.transpose(*order)


def _called(A: Any, name: str) -> str:
    own = _name_of(A)
    return name if own is None else f"{name} ({own!r})"


def _name_of(A: Any) -> Any:
    """Return the name of a DataArray, unless it is the hash that names a Dask array."""
    name = getattr(A, "name", None)
    return None if name is not None and name == getattr(A.data, "name", None) else name


def _values(A: Any, name: str) -> Any:
    """Return the values of a DataArray as an array of NumPy or Dask."""
    data = A.data
    check_kind(data, _called(A, name))
    if is_dask(data):
        from ..streaming.dask import known_chunks

        data = known_chunks(data, name)
        data = data.rechunk(dict.fromkeys(range(1, data.ndim), -1)) if data.ndim > 2 else data
    return data


def grid_of(A: Any, dim: str, name: Any = None) -> Grid:
    """Return the grid of a DataArray: dimensions and coordinates except those of samples."""
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
            coords[key] = (variable.dims, _coordinate(variable), attrs)
    return Grid(dims, A.shape[1:], coords, name, {}, levels)


def _coordinate(variable: Any) -> np.ndarray:
    """Return the values of a coordinate; time zones, periods and intervals as in pandas."""
    own = variable.ndim == 1 and not isinstance(variable.dtype, np.dtype)
    return plain(variable.to_index().to_numpy() if own else variable.values)


# ---------------------------------------------------------------- outputs


def _outputs(
    y: Any, dim: str | None, known: Labels | None, fill: bool, flat: bool = False
) -> tuple[Any, Labels]:
    """Convert outputs to an array and their labels."""
    if comes_from(y, "xarray"):
        assert dim is not None
        return (_dataset if is_dataset(y) else _data_array)(y, dim, known)
    if comes_from(y, "pandas") and hasattr(y, "columns"):
        return from_frame(y, known, fill, flat)
    if comes_from(y, "polars") and hasattr(y := collected(y, "y"), "columns"):
        return from_polars(y, known)
    if known is not None and is_a_table_without_names(y, known):
        y = in_levels(check_outputs(y), known)
    refuse_files(y, "y")
    return y, Labels(sample_dim=dim)


def _data_array(y: Any, dim: str, known: Labels | None) -> tuple[Any, Labels]:
    grid = None if known is None else known.outside
    y = _in_order(y, "y", dim, None if grid is None else grid.dims)
    found = replace(grid_of(y, dim), name=_name_of(y), attrs=deepcopy(y.attrs))
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
                f"{first.name!r} has {first.dims}. Fit them separately."
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
    """Return a Dataset with its variables in the order of the fit."""
    found = {str(name): name for name in y.data_vars}
    if set(found) != set(wanted):
        raise ValueError(
            f"y is a Dataset of {list(found)}; the outputs of the fit had {wanted} along {dim!r}."
        )
    return y[[found[name] for name in wanted]]


def _check_same_axes(found: Grid, grid: Grid | None, right: str | None = None) -> None:
    """Raise a ValueError if outputs have other labels than the outputs of the fit.

    Parameters
    ----------
    found : Grid
        Grid of the outputs.
    grid : Grid, optional
        Grid of the fit.
    right : str, optional
        Code that puts the outputs in order, for the message.
    """
    k = None if grid is None else differing_axis(found, grid)
    if grid is None or k is None:
        return
    dim, a, b = found.dims[k], found.coordinate(k), grid.coordinate(k)
    n = min(a.size, b.size)
    differ = np.flatnonzero(a[:n] != b[:n])
    where = (
        f"at position {differ[0]} y has {a[differ[0]]} and the fit had {b[differ[0]]}"
        if differ.size
        else f"y has {a.size} entries and the fit had {b.size}"
    )
    how = f"Put them in order with {right}." if right else how_to_match("y", dim, a, b)
    raise ValueError(f"y has other coordinates along {dim!r} than the fit: {where}. {how}")


# ---------------------------------------------------------------- tables and flat outputs


def names_of_columns(columns: Any) -> list[str] | None:
    """Return names of features if the labels of columns have several levels or are not text.

    scikit-learn does not compare such labels, and would not notice wavelengths in another order.
    Returns None if scikit-learn compares the labels, or if columns are only numbered.
    """
    if columns.nlevels > 1:
        return [" / ".join(map(str, column)) for column in columns]
    is_counted = columns.dtype.kind in "iu" and (columns == np.arange(columns.size)).all()
    is_text = any(isinstance(label, str) for label in columns)  # scikit-learn refuses mixtures
    return None if is_text or is_counted else list(map(str, columns))


def collected(A: Any, name: str) -> Any:
    """Return the data, and raise a TypeError for a query that has not been run."""
    if hasattr(A, "collect_schema") and not hasattr(A, "to_numpy"):
        raise TypeError(f"{name} is a {type(A).__name__}; call {name}.collect() first.")
    return A


def from_frame(y: Any, known: Labels | None, fill: bool, flat: bool) -> tuple[Any, Labels]:
    """Convert a table to an array and its labels.

    Several levels of column labels give a tensor with one mode for each level, unless `flat`.
    """
    columns, values = y.columns, check_outputs(nan_for_masked(y))
    levels = tuple(plain(columns.get_level_values(k).to_numpy()) for k in range(columns.nlevels))
    labels = _of_columns("frame", levels, tuple(columns.names))
    _check_same_columns(labels, known)
    if columns.nlevels == 1 or flat:
        return values, replace(labels, places=None)
    grid = labels.outputs
    assert grid is not None
    if labels.places is not None and not fill:
        _check_complete(grid, labels.places)
    return in_levels(values, labels), labels


def in_levels(values: np.ndarray, labels: Labels) -> np.ndarray:
    """Reshape the columns of a table to a tensor with one mode for each level."""
    grid = labels.outputs
    assert grid is not None
    if labels.places is not None:
        whole = np.full((len(values), math.prod(grid.shape)), np.nan, dtype=values.dtype)
        whole[:, labels.places] = values
        values = whole
    return values.reshape(-1, *grid.shape)


def is_a_table_without_names(y: Any, known: Labels | None) -> bool:
    """Return whether an array has the columns of a table with levels."""
    if known is None or len(known.columns) < 2 or known.outputs is None:
        return False
    shape: tuple[int, ...] = () if is_dask(y) else np.shape(y)
    return len(shape) == 2 and shape[1] == known.columns[0].size


def from_polars(y: Any, known: Labels | None) -> tuple[Any, Labels]:
    """Convert a polars table, which has one label for each column."""
    labels = _of_columns("polars", (np.array(y.columns),), (None,))
    _check_same_columns(labels, known)
    return y.to_numpy(), labels


def _of_columns(
    kind: str, levels: tuple[np.ndarray, ...], names: tuple[Any, ...], name: str = "y"
) -> Labels:
    """Return the labels of a table with these columns."""
    dims: tuple[str, ...] = ()
    for k, level in enumerate(names):
        default = "output" if len(levels) == 1 else f"level{k}"
        dims += (free(default if level is None else str(level), dims),)
    found = [_unique(values) for values in levels]
    shape = tuple(len(values) for values, _ in found)
    places = np.ravel_multi_index([codes for _, codes in found], shape)
    if np.unique(places).size < places.size:
        twice = next(k for k in range(places.size) if places[k] in places[:k])
        raise ValueError(
            f"{name} has two columns {_entries(levels)[twice]}; every column needs its own label."
        )
    coords: dict[str, Any] = {
        d: ((d,), values, {}) for d, (values, _) in zip(dims, found, strict=True)
    }
    in_order = np.array_equal(places, np.arange(math.prod(shape)))
    return Labels(
        kind,
        outputs=Grid(dims, shape, coords),
        columns=levels,
        column_names=names,
        places=None if in_order else places,
    )


def _unique(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return unique values, in the order of first appearance, and the index of each entry."""
    keys = values.tolist()
    if values.dtype.kind in "fO":  # NaN as the key of a dict cannot be looked up
        keys = ["nan\0" if isinstance(v, float) and v != v else v for v in keys]
    place = {v: k for k, v in enumerate(dict.fromkeys(keys))}
    codes = np.array([place[v] for v in keys])
    _, first = np.unique(codes, return_index=True)
    return values[first], codes


def _check_complete(grid: Grid, places: np.ndarray) -> None:
    absent = np.setdiff1d(np.arange(math.prod(grid.shape)), places)
    if not absent.size:
        return
    shown = [
        tuple(str(grid.coordinate(k)[i]) for k, i in enumerate(np.unravel_index(j, grid.shape)))
        for j in absent[:3]
    ]
    raise ValueError(
        f"the columns of y are not all combinations of their levels {grid.dims}: {absent.size} are "
        f"missing, such as {', '.join(map(str, shown))}. Add them, or drop the levels that are not "
        f'complete; the linear estimators treat them as missing outputs with missing="ignore".'
    )


def _entries(levels: tuple[np.ndarray, ...]) -> list[Any]:
    """Return the label of each column, a tuple if there are several levels."""
    parts = [values.tolist() for values in levels]
    return parts[0] if len(parts) == 1 else list(zip(*parts, strict=True))


def _check_same_columns(labels: Labels, known: Labels | None) -> None:
    """Raise a ValueError if a table has other columns than the outputs of the fit.

    Parameters
    ----------
    labels : Labels
        Labels of the table.
    known : Labels, optional
        Labels of the fit.
    """
    grid, fit = labels.outputs, None if known is None or known.columns else known.outside
    if grid is not None and fit is not None:
        if grid.is_transposed(fit):
            raise ValueError(
                f"the columns of y have the levels {grid.dims}, but the outputs of the fit had "
                f"{fit.dims}; reorder them with y.reorder_levels({list(fit.dims)}, axis=1)."
            )
        _check_same_axes(grid, fit, "y = y[columns]")
    if known is None or not known.columns or same(labels.columns, known.columns):
        return
    found, fitted = _entries(labels.columns), _entries(known.columns)
    missing, extra = [c for c in fitted if c not in found], [c for c in found if c not in fitted]
    what = f"missing {missing[:5]}, unexpected {extra[:5]}"
    if not missing and not extra:
        k = next(k for k, (a, b) in enumerate(zip(found, fitted, strict=True)) if a != b)
        what = (
            f"at position {k} y has {found[k]} and the fit had {fitted[k]}. Put the columns in the "
            f"order of the fit, with y[y_train.columns] for instance"
        )
    raise ValueError(f"y has other columns than the fit: {what}.")


def fold(y: Any, output_shape: Sequence[int]) -> Any:
    """Reshape flat outputs, (n_samples, D), to (n_samples, d1, ..., dp)."""
    shape = tuple(output_shape)
    if not all(isinstance(d, Integral) and d > 0 for d in shape):
        raise ValueError(f"output_shape must contain positive integers; got {output_shape!r}.")
    shape = tuple(int(d) for d in shape)
    y = y if hasattr(y, "shape") and hasattr(y, "reshape") else np.asarray(y)
    found, D = tuple(y.shape), math.prod(shape)
    if len(found) == 1 and D == 1:
        found = (*found, 1)
    if len(found) != 2 or found[1] != D:
        raise ValueError(
            f"y must have shape (n_samples, {D}), since output_shape={shape} has {D} entries; got "
            f"{tuple(y.shape)}."
        )
    return y.reshape((found[0], *shape))


# ---------------------------------------------------------------- sample dimension


def has_dims(A: Any) -> bool:
    """Return whether data are xarray objects, or a dict that contains some."""
    if is_blocks(A):
        return any(comes_from(block, "xarray") for block in A.values())
    return comes_from(A, "xarray")


def dims_of(A: Any) -> tuple[str, ...]:
    """Return the dimensions of the variables; those with most dimensions come first.

    For a dict, dimensions that all of its DataArrays have come first.
    """
    if is_blocks(A):
        found = [block.dims for block in A.values() if comes_from(block, "xarray")]
        shared = [d for d in found[0] if all(d in dims for dims in found)]
        return tuple(dict.fromkeys([*shared, *(d for dims in found for d in dims)]))
    if not is_dataset(A) or not len(A.data_vars):
        return tuple(A.dims)
    orders = sorted((v.dims for v in A.data_vars.values()), key=len, reverse=True)
    return tuple(dict.fromkeys(d for dims in orders for d in dims))


def is_dataset(A: Any) -> bool:
    return hasattr(type(A), "data_vars")


def refit_dimension(model: Any, X: Any, y: Any) -> str | None:
    """Return the argument `sample_dim` with which a copy of a model is fitted to such data."""
    if not has_dims(X) and not has_dims(y):
        return None
    return sample_dimension(None, X, y, getattr(model, "labels_", None))


def sample_dimension(given: str | None, X: Any, y: Any, known: Labels | None) -> str | None:
    """Return the sample dimension: given, known, shared by X and y, or else the first."""
    named = {name: dims_of(A) for name, A in (("X", X), ("y", y)) if has_dims(A)}
    fitted = None if known is None else known.sample_dim
    if not named:
        if given is not None:
            raise ValueError(
                f"sample_dim={given!r} names a dimension of xarray objects, but X and y are none. "
                f"The samples of arrays and tables are along the first axis."
            )
        return fitted
    if given is None and all(fitted in dims for dims in named.values()):
        return fitted
    if given is not None:
        for name, dims in named.items():
            if given not in dims:
                raise ValueError(
                    f"sample_dim={given!r} is not a dimension of {name}, which has {dims}."
                )
        return given
    if len(named) == 1:
        ((name, dims),) = named.items()
        if name == "X" and known is not None:
            return dimension_of_inputs(X, known)
        if not dims:
            raise ValueError(f"{name} has no dimensions; it needs a sample dimension.")
        return dims[0]
    of_x, of_y = named["X"], named["y"]
    shared = tuple(d for d in of_x if d in of_y)
    if len(shared) == 1 or (shared and of_x[0] == of_y[0]):
        _refuse_other_times(X, y, shared)
        return shared[0]
    what, hint = "no dimension", "rename the sample dimension of one of them."
    if shared:
        what = f"{shared}"
        hint = (
            f"put the samples first in both, with X.transpose({shared[0]!r}, ...) and "
            f"y.transpose({shared[0]!r}, ...) for instance, or pass sample_dim=... to fit."
        )
    raise ValueError(f"X has dimensions {of_x} and y has {of_y}, which share {what}: {hint}")


def _refuse_other_times(X: Any, y: Any, shared: tuple[str, ...]) -> None:
    """Raise a ValueError if times label a shared dimension, but the first has other labels.

    A first shared dimension without labels is accepted as the sample dimension.
    """
    blocks = [block for A in (X, y) for block in (A.values() if is_blocks(A) else [A])]
    labelled = [block for block in blocks if comes_from(block, "xarray")]
    kinds = {d: A.coords[d].dtype.kind for A in labelled for d in shared if d in A.coords}
    times = [dim for dim in shared if kinds.get(dim) == "M"]
    if times and kinds.get(shared[0], "M") != "M":
        raise ValueError(
            f"X and y share the dimensions {shared}. By default the first one, {shared[0]!r}, is "
            f"the sample dimension, but {times[0]!r} contains times. Pass sample_dim={times[0]!r} "
            f"to fit, or sample_dim={shared[0]!r} if each sample contains all times."
        )


def dimension_of_inputs(X: Any, labels: Labels) -> str:
    """Return the sample dimension of new inputs: that of the fit, or the only other one."""
    dims = dims_of(X)
    if labels.sample_dim in dims:
        return labels.sample_dim
    if not labels.inputs:
        return dims[0]
    left = [d for d in dims if not any(d in grid.dims for grid in labels.inputs)]
    if len(left) != 1:
        beside = tuple(d for grid in labels.inputs for d in grid.dims)
        raise ValueError(
            f"X has dimensions {dims}; it needs a sample dimension, {labels.sample_dim!r} as in "
            f"fit, besides {beside}. For a single sample, use X.expand_dims({labels.sample_dim!r})."
        )
    return left[0]


def take_rows(A: Any, index: np.ndarray, dim: str | None) -> Any:
    """Return some samples of arrays, tables, xarray objects or dicts, as objects of the same type.

    Parameters
    ----------
    A : object
        Data as the user passed them.
    index : array of int
        Positions of the samples.
    dim : str or None
        Sample dimension of xarray objects.
    """
    if comes_from(A, "xarray"):
        return A.isel({dim if dim in A.dims else dims_of(A)[0]: index})
    if is_blocks(A):
        return {name: take_rows(block, index, dim) for name, block in A.items()}
    if comes_from(A, "pandas"):
        return A.iloc[index]
    return A[index] if hasattr(A, "shape") else np.asarray(A)[index]
