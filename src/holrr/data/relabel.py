"""Labels on results: predictions of the same type as y, and a fitted model as a Dataset."""

from __future__ import annotations

from collections.abc import Container, Mapping
from copy import deepcopy
from dataclasses import replace
from datetime import date, time
from importlib import import_module
from typing import Any

import numpy as np

from .._version import __version__
from ..core.namespace import is_numpy_array, to_numpy
from ..extras import need
from .arrays import comes_from, is_dask
from .inputs import is_blocks, whole_axes
from .labels import Grid, Labels, free, mode_coordinates, mode_names, plain, row_index
from .unlabel import dimension_of_inputs, has_dims

__all__ = ["by_block", "by_input", "by_input_mode", "labelled", "relabel", "row_labels"]
__all__ += ["to_dataset"]


def relabel(labels: Labels | None, X: Any, out: Any) -> Any:
    """Convert predictions (n_samples, d1, ..., dp) to the type of the outputs of the fit.

    The samples have the labels of the rows of `X`, the inputs as the user passed them. The array
    itself is returned if there are no labels, if it is not an array of NumPy or Dask, or if the
    library of the labels is not installed.
    """
    if labels is None:
        return out
    if labels.flat:
        named = isinstance(labels.flat, Grid)
        out = out.reshape((out.shape[0], *(labels.flat.shape if named else (-1,))))
    make = _MAKERS.get(labels.kind)
    lazy = labels.kind in ("dataarray", "dataset") and is_dask(out)  # tables are in memory
    if make is None or not (is_numpy_array(out) or lazy):
        return out
    library, maker = make
    try:
        module = import_module(library)
    except ImportError:
        return out
    return maker(module, labels, X, out)


def labelled(labels: Labels | None, each: Any, name: str) -> Any:
    """Return one number for each output, with labels: a DataArray, a Series, or the array."""
    if not isinstance(each, np.ndarray) or labels is None:
        return each
    if labels.outputs is None:
        return each.reshape(-1) if labels.flat else each
    bare = replace(labels.outputs, name=name, attrs={})  # no units of the outputs
    flat = labels.flat
    if isinstance(flat, Grid):
        flat = replace(flat, name=name, attrs={})
    none: dict[str, Any] = {name: {} for name in labels.variables}
    found = relabel(replace(labels, outputs=bare, flat=flat, variables=none), None, each[None])
    if comes_from(found, "xarray"):
        return found.isel({labels.sample_dim or "sample": 0}, drop=True)
    if comes_from(found, "pandas"):
        return found.iloc[0].rename(name)
    return found[0] if isinstance(found, np.ndarray) else found


def by_block(found: dict[str, Any]) -> Any:
    """Combine results of each block: a dict, or one xarray object with a block dimension.

    Parameters
    ----------
    found : dict
        From names of blocks to results, all of the same type.

    Returns
    -------
    dict, DataArray or Dataset
        The first dimension is that of the blocks. Its name is ``block``, or a similar name if the
        results already use ``block``.
    """
    first = next(iter(found.values()))
    if not comes_from(first, "xarray"):
        return found
    xr = import_module("xarray")
    dim = free("block", {*first.dims, *first.coords, *getattr(first, "data_vars", ())})
    names = xr.DataArray(list(found), dims=dim, name=dim)
    how = {"data_vars": "all", "coords": "minimal", "compat": "override", "join": "override"}
    return xr.concat(list(found.values()), names, **how)


# ---------------------------------------------------------------- numbers for each input


def by_input(model: Any, X: Any, values: np.ndarray, name: str) -> Any:
    """Return numbers for each input, with the names of the inputs.

    Parameters
    ----------
    model : estimator
        Fitted estimator.
    X : object
        Inputs as the user passed them, whose type determines that of the result.
    values : array of shape (n_used,) or (n_used, d1, ..., dp)
        Numbers for each input that is used, or for each of these inputs and each output.
    name : str
        Name of the result.

    Returns
    -------
    array, dict of arrays, Series, DataFrame, DataArray or Dataset
        NaN for inputs that are not used.
    """
    labels = model.labels_ or Labels()
    n, outputs = model.n_features_in_, values.shape[1:]
    if comes_from(X, "pandas"):
        columns = Labels(inputs=(Grid(("feature",), (n,)),), used=labels.used)
        return _pandas(whole_axes(values, columns, n)[0], X.columns, labels, outputs, name)
    grids = labels.inputs or (Grid(("feature",), (n,), is_named=False),)
    parts = whole_axes(values, labels, n)
    every = {
        grid.name: (grid, tuple(range(len(grid.dims))), part)
        for grid, part in zip(grids, parts, strict=True)
    }
    return by_input_mode(model, X, every, name)


def by_input_mode(
    model: Any,
    X: Any,
    found: Mapping[Any, tuple[Grid, tuple[int, ...], np.ndarray]],
    name: str,
) -> Any:
    """Return numbers along some modes of each block of the inputs, with the names of the modes.

    Parameters
    ----------
    model : estimator
        Fitted estimator.
    X : object
        Inputs as the user passed them, whose type determines that of the result.
    found : dict
        For the name of each block, a tuple of its grid, the positions of some of its modes, and an
        array of numbers with these modes, which may be followed by the output modes.
    name : str
        Name of the result.

    Returns
    -------
    array, Series, DataFrame or DataArray; a dict of them, or a Dataset, for several blocks
    """
    made = {}
    for block, (grid, axes, values) in found.items():
        source = X[block] if is_blocks(X) else X
        made[block] = _of_block_like(source, model, grid, axes, values, name)
    if None in made:
        return made[None]
    if comes_from(X, "xarray") and hasattr(X, "data_vars"):
        return import_module("xarray").Dataset(made)
    return made


def _of_block_like(
    source: Any, model: Any, grid: Grid, axes: tuple[int, ...], values: np.ndarray, name: str
) -> Any:
    labels, outputs = model.labels_ or Labels(), values.shape[len(axes) :]
    if comes_from(source, "pandas"):
        pd = import_module("pandas")
        if len(axes) == len(grid.dims) == 1 and source.columns.nlevels == 1:
            index = source.columns
        elif len(axes) == 1:
            index = pd.Index(grid.coordinate(axes[0]), name=grid.dims[axes[0]])
        else:
            entries = [grid.coordinate(k) for k in axes]
            index = pd.MultiIndex.from_product(entries, names=[grid.dims[k] for k in axes])
        return _pandas(values.reshape(len(index), *outputs), index, labels, outputs, name)
    if comes_from(source, "xarray"):
        kept = tuple(grid.dims[k] for k in axes)
        coords = {k: v for k, v in grid.coords.items() if set(v[0]) <= set(kept)}
        sizes = tuple(grid.shape[k] for k in axes)
        levels = {d: v for d, v in grid.levels.items() if d in kept}
        one = Grid(kept, sizes, coords, name, levels=levels)
        one = _beside_outputs(one, model) if outputs else one
        return _array(import_module("xarray"), one, "", {}, values)
    return values.reshape(*values.shape[: len(axes)], -1) if outputs and labels.flat else values


def _beside_outputs(grid: Grid, model: Any) -> Grid:
    """Return a grid of input modes followed by the output modes, with different names."""
    names, labels = mode_names(model), model.labels_ or Labels()
    outputs = labels.outputs or Grid(names[1:], model._output_shape)
    coords = {d: ((d,), mode_coordinates(model, k)) for k, d in enumerate(names) if k}
    coords = {**coords, **outputs.coords}
    (inputs,) = _input_axes(model, replace(labels, inputs=(grid,)), names, coords)
    return Grid(
        inputs.dims + tuple(names[1:]),
        inputs.shape + tuple(outputs.shape),
        {**coords, **inputs.coords},
        grid.name,
        levels=outputs.levels,
    )


def _pandas(
    values: np.ndarray, index: Any, labels: Labels, outputs: tuple[int, ...], name: str
) -> Any:
    """Return a Series over some inputs, or a table of inputs by outputs."""
    pd = import_module("pandas")
    if not outputs:
        return pd.Series(values, index=index, name=name)
    flat = values.reshape(len(values), -1)
    if labels.kind == "frame":
        found = _columns(labels, flat)
        if len(labels.columns) == 1:
            columns = pd.Index(labels.columns[0], name=labels.column_names[0])
        else:
            columns = pd.MultiIndex.from_arrays(labels.columns, names=labels.column_names)
        return pd.DataFrame(found, index, columns)
    grid = labels.outside
    return pd.DataFrame(flat, index, None if grid is None else grid.entries())


def row_labels(X: Any, y: Any, labels: Labels | None) -> np.ndarray | None:
    """Return the labels of the samples, from `X` or else from `y`; None without labels.

    Parameters
    ----------
    X, y
        Data as the user passed them; `y` may be None.
    labels : Labels or None
        Labels of the fit.

    Returns
    -------
    array of shape (n_samples,), or None
        Labels of several levels are tuples. Labels that a file cannot store are converted to text.
    """
    for data in (X, y):
        dim = None
        if has_dims(data):
            dim = dimension_of_inputs(data, labels or Labels()) if data is X else _dim_of(labels)
        index = row_index(data, dim)
        if index is None or type(index).__name__ == "RangeIndex":
            continue
        if index.nlevels == 1 and index.dtype.kind in "biufMm":
            return index.to_numpy()
        found = np.empty(len(index), dtype=object)
        found[:] = [_plain_label(label) for label in index]
        return plain(found) if index.nlevels == 1 else found
    return None


def _dim_of(labels: Labels | None) -> str | None:
    return None if labels is None else labels.sample_dim


def _plain_label(label: Any) -> Any:
    """Convert a label to a value that a file can store: text, a number, a date, or a tuple."""
    if isinstance(label, tuple):
        return tuple(map(_plain_label, label))
    known = (str, int, float, np.generic, date, time)
    is_plain = label is None or isinstance(label, known)
    is_label = comes_from(label, "pandas") or comes_from(label, "cftime")
    return label if is_plain or is_label else str(label)


# ---------------------------------------------------------------- xarray


def _data_array(xr: Any, labels: Labels, X: Any, out: Any) -> Any:
    return _array(xr, labels.outside or Grid(), *_rows(labels, X), out)


def _dataset(xr: Any, labels: Labels, X: Any, out: Any) -> Any:
    grid, (dim, rows) = labels.outside, _rows(labels, X)
    assert grid is not None
    axis = grid.dims[0]
    coords = {k: v for k, v in grid.coords.items() if k != axis}
    found = {}
    for k, (name, attrs) in enumerate(labels.variables.items()):
        one = Grid(grid.dims[1:], grid.shape[1:], coords, name, attrs, grid.levels)
        found[name] = _array(xr, one, dim, rows, out[:, k])
    return xr.Dataset(found, attrs=deepcopy(grid.attrs))


def _array(xr: Any, grid: Grid, dim: str, rows: dict[str, Any], out: Any) -> Any:
    leading = () if out.ndim == len(grid.dims) else (dim,)
    if leading and dim in grid.dims:
        raise ValueError(
            f"the samples of X are along {dim!r}, which is a dimension of the outputs {grid.dims}; "
            f"rename the sample dimension of X."
        )
    found = xr.DataArray(
        out,
        dims=(*leading, *grid.dims),
        coords={**(rows if leading else {}), **_coordinates(grid)},
        attrs=deepcopy(grid.attrs),
    ).rename(grid.name)  # Without a name xarray uses that of a Dask array, which is a hash.
    return found.set_index(grid.levels) if grid.levels else found


def _coordinates(grid: Grid) -> dict[str, Any]:
    """Return coordinates for xarray; pandas labels become an index, which keeps their dtype."""
    found = deepcopy(grid.coords)
    for name, (dims, values, *attrs) in found.items():
        if values.dtype == object and values.size and comes_from(values.flat[0], "pandas"):
            index = import_module("pandas").Index(values.tolist())
            found[name] = (dims, index, *attrs)
    return found


def _rows(labels: Labels, X: Any) -> tuple[str, dict[str, Any]]:
    """Return the sample dimension of predictions for `X`, and its coordinates."""
    if has_dims(X):
        dim, found = dimension_of_inputs(X, labels), dict[str, Any]()
        for A in X.values() if is_blocks(X) else [X]:
            variables = A.coords.variables if comes_from(A, "xarray") else {}
            found |= {name: v for name, v in variables.items() if v.dims == (dim,)}
        return dim, found
    index = row_index(X)
    dim = labels.sample_dim or free("sample", (labels.outside or Grid()).dims)
    return dim, {} if index is None else {dim: index}


# ---------------------------------------------------------------- tables


def _frame(pd: Any, labels: Labels, X: Any, out: Any) -> Any:
    names = labels.column_names
    if len(labels.columns) == 1:
        columns = pd.Index(labels.columns[0], name=names[0])
    else:
        columns = pd.MultiIndex.from_arrays(labels.columns, names=names)
    dim = dimension_of_inputs(X, labels) if has_dims(X) else None
    return pd.DataFrame(_columns(labels, out), row_index(X, dim), columns, copy=False)


def _polars(pl: Any, labels: Labels, X: Any, out: Any) -> Any:
    return pl.DataFrame(_columns(labels, out), schema=labels.columns[0].tolist(), orient="row")


def _columns(labels: Labels, out: np.ndarray) -> np.ndarray:
    flat = out.reshape(out.shape[0], -1)
    return flat if labels.places is None else flat[:, labels.places]


_MAKERS: dict[str, tuple[str, Any]] = {
    "dataarray": ("xarray", _data_array),
    "dataset": ("xarray", _dataset),
    "frame": ("pandas", _frame),
    "polars": ("polars", _polars),
}


# ---------------------------------------------------------------- fitted models


def to_dataset(model: Any) -> Any:
    """Return the fitted arrays of a model as a Dataset; see `TensorRegressor.to_dataset`."""
    xr = need("xarray", "to_dataset needs xarray", "xarray")
    names, labels = mode_names(model), getattr(model, "labels_", None) or Labels()
    outputs = labels.outputs or Grid(names[1:], model._output_shape)
    labelled = {k: d for k, d in enumerate(names) if k and isinstance(d, str)}  # for xarray
    coords = {d: ((d,), mode_coordinates(model, k)) for k, d in labelled.items()}
    coords = {**coords, **outputs.coords}
    blocks = _input_axes(model, labels, names, coords)
    taken = {*names, *coords, *(d for grid in blocks for d in (*grid.dims, *grid.coords))}
    b = model._intercept
    intercept = np.asarray(b) if isinstance(b, float) else to_numpy(b)
    found = {free("intercept", taken): (names[1:], intercept)}
    if vars(model).get("_noise") is not None:
        level = model._noise_level()
        noise = np.asarray(level) if isinstance(level, float) else to_numpy(level)
        found[free("noise", taken)] = (names[1:], noise)
    if model.tucker_.scale is not None:
        scale = to_numpy(model.tucker_.scale)
        found[free("output_scale", taken)] = (names[1:], scale)
    ranks = tuple(free(f"rank_{name}", taken) for name in names)
    is_kernel = hasattr(model, "dual_coef_")
    if hasattr(model, "coef_"):
        parts = whole_axes(to_numpy(model._dense_coef()), labels, model.n_features_in_)
        for grid, part in zip(blocks, parts, strict=True):
            coords = {**grid.coords, **coords}
            name = free(_of_block("coef", grid), taken)
            found[name] = (grid.dims + names[1:], part.reshape(grid.shape + outputs.shape))
    found[free("core", taken)] = (ranks, to_numpy(model.core_))
    first, *others = (to_numpy(U) for U in model.tucker_.dense_factors())
    if is_kernel:
        center = free("kernel_center", taken)
        found[free(f"factor_{names[0]}", taken)] = ((center, ranks[0]), first)
    else:
        parts = whole_axes(first, labels, model.n_features_in_)
        for grid, part in zip(blocks, parts, strict=True):
            name = free(_of_block(f"factor_{names[0]}", grid), taken)
            found[name] = ((*grid.dims, ranks[0]), part.reshape(*grid.shape, first.shape[1]))
    for k, factor in enumerate(others, start=1):
        found[free(f"factor_{names[k]}", taken)] = ((names[k], ranks[k]), factor)
    found |= _input_factors(model, blocks, taken)
    # Files contain no errors of all ranks.
    if "mean_mse" in getattr(model, "cv_results_", ()):
        found[free("mean_mse", taken)] = _surface(model, names, coords, taken)
    coords = {k: (entry[0], _for_files(entry[1]), *entry[2:]) for k, entry in coords.items()}
    coords = _coordinates(Grid(coords=coords))
    attrs = {"model": repr(model), "estimator": type(model).__name__, "holrr": __version__}
    return xr.Dataset(found, coords=coords, attrs=attrs)


def _for_files(values: Any) -> np.ndarray:
    """Return labels that NetCDF and Zarr can hold: periods and dates with time zones as text."""
    values = np.asarray(values)
    if values.dtype.kind == "O" and any(comes_from(v, "pandas") for v in values.flat):
        return np.array([str(v) for v in values.flat]).reshape(values.shape)
    return values


def _of_block(name: str, grid: Grid) -> str:
    return name if grid.name is None else f"{name}_{grid.name}"


def _input_axes(
    model: Any, labels: Labels, names: tuple[str, ...], coords: dict[str, Any]
) -> list[Grid]:
    """Return the axes of each block of the inputs, with unique names.

    A dimension that the outputs also have gets the suffix "_input". A dimension that another block
    has with other coordinates gets the name of its block.
    """
    if not labels.inputs:
        first = free(names[0], coords)
        values = mode_coordinates(model, 0)
        return [Grid((first,), (model.n_features_in_,), {first: ((first,), values)})]
    taken: dict[str, Any] = {**dict.fromkeys(names[1:]), **dict.fromkeys(coords)}
    found, known = [], dict[str, Grid]()
    for grid in labels.inputs:
        new = {}
        for dim in grid.dims:
            name = f"{dim}_input" if dim in taken else dim
            if name in known and not _same_axis(known[name], grid, dim):
                name = free(f"{name}_{grid.name}", {*taken, *known})
            new[dim] = name
            known.setdefault(name, grid)
        for key in grid.coords:  # coordinates besides those of the dimensions
            new.setdefault(key, f"{key}_input" if key in taken else key)
        renamed = {
            new[key]: (tuple(new[d] for d in dims), *rest)
            for key, (dims, *rest) in grid.coords.items()
            if all(d in new for d in dims)
        }
        found.append(Grid(tuple(new[d] for d in grid.dims), grid.shape, renamed, grid.name))
    return found


def _same_axis(one: Grid, other: Grid, dim: str) -> bool:
    """Return whether two blocks have the same entries along a dimension."""
    if dim not in one.dims:
        return False
    a, b = one.coordinate(one.dims.index(dim)), other.coordinate(other.dims.index(dim))
    return bool(a.shape == b.shape and (a == b).all())


def _input_factors(model: Any, blocks: list[Grid], taken: Container[Any]) -> dict[str, Any]:
    """Return the bases of the input modes whose ranks were lowered."""
    factors = getattr(model, "input_factors_", None)
    if factors is None:
        return {}
    by_block = factors if isinstance(factors, dict) else {blocks[0].name: factors}
    found = {}
    for grid in blocks:
        for dim, U in zip(grid.dims, by_block.get(grid.name, ()), strict=False):
            axis = (dim, free(f"rank_{_of_block(dim, grid)}", taken))
            found[free(f"input_factor_{_of_block(dim, grid)}", taken)] = (axis, to_numpy(U))
    return found


def _surface(
    model: Any, names: tuple[str, ...], coords: dict[str, Any], taken: Container[Any]
) -> tuple[Any, np.ndarray]:
    """Return held-out errors over kernels, penalties and ranks; ranks count from 1."""
    results = model.cv_results_
    values = results["mean_mse"]
    n_ranks = results["n_parameters"].ndim if "n_parameters" in results else 0
    penalty = free("alpha", taken)
    more = "kernel" if hasattr(model, "kernels_") else "candidate"
    dims = [free(more, taken)] * (values.ndim - n_ranks - 1) + [penalty]
    dims += [free(f"n_{name}" if n_ranks > 1 else "rank", taken) for name in names[:n_ranks]]
    coords[penalty] = (penalty, results["alphas"])
    if "input_ranks" in results:
        coords[dims[0]] = (dims[0], np.array([_shown(ranks) for ranks in results["input_ranks"]]))
    for axis in range(values.ndim - n_ranks, values.ndim):
        coords[dims[axis]] = (dims[axis], np.arange(1, values.shape[axis] + 1))
    return tuple(dims), values


def _shown(ranks: Any) -> str:
    """Return the ranks of the input modes of each block as text."""
    parts = ["all" if r is None else " x ".join(map(str, r)) for r in ranks]
    return ", ".join(parts)
