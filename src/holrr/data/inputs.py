"""Inputs of any order as a matrix, with their modes and blocks described by grids.

A sample of the inputs can be a vector, a field (latitude x longitude), or several named blocks of
different shapes. All estimators work on a matrix with one column for each cell. `Inputs` contains
this matrix, and describes which cell of which block each column is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from ..core.input_map import InputSpace
from ..core.namespace import asarray_like, is_array, namespace_of, to_numpy
from ..core.sparse import is_sparse
from .arrays import check_outputs, is_dask, is_memory_map, nan_for_masked, refuse_files
from .labels import Grid, Labels

__all__ = [
    "Inputs",
    "column_names",
    "drop_missing",
    "find_used",
    "find_used_cells",
    "flatten",
    "grids_of_shape",
    "input_space",
]
__all__ += ["block_of", "is_blocks", "join_columns", "n_columns", "select_columns", "some_columns"]
__all__ += ["unnamed_grid", "whole_axes", "with_inputs"]


@dataclass(frozen=True, eq=False)
class Inputs:
    """Inputs as a matrix, and the arrangement of their cells.

    Parameters
    ----------
    X : array, table or Dask collection of shape (n_samples, n_columns)
    grids : tuple of Grid
        One grid for each block; empty if the inputs were a matrix without modes.
    cells : array of shape (n_columns,), or None
        Number of the cell of each column, counted over all blocks; None if column j is cell j.
    has_names : bool
        Whether `X` is a table with names of its columns.
    is_field : tuple of bool
        Whether each grid is a field, which has modes or labels. Its cells may be missing in every
        sample, as land in a field of the sea. The columns of a matrix or a table may not.
    """

    X: Any
    grids: tuple[Grid, ...] = ()
    cells: np.ndarray | None = None
    has_names: bool = False
    is_field: tuple[bool, ...] = ()

    @property
    def naming(self) -> tuple[Grid, ...]:
        """Grids that name the columns, if the matrix itself has no names."""
        is_named = any(grid.is_named or grid.name is not None for grid in self.grids)
        return self.grids if is_named and not self.has_names else ()


def column_names(inputs: Inputs, used: np.ndarray | None) -> Callable[[], list[Any]]:
    """Return a function that returns the names of the used columns, for messages.

    The names are computed lazily, since there may be many and they are rarely needed.
    """

    def names() -> list[Any]:
        found: list[Any] = list(getattr(inputs.X, "columns", ()))
        if not found:
            found = [name for grid in inputs.grids for name in grid.entries()]
        return found if used is None or not found else [found[j] for j in used]

    return names


def is_blocks(X: Any) -> bool:
    """Return whether inputs are a dict of arrays."""
    return isinstance(X, Mapping) and not hasattr(X, "shape") and not hasattr(X, "columns")


def input_space(labels: Labels | None, n_features: int) -> InputSpace:
    """Return the arrangement of the columns that a model uses.

    Parameters
    ----------
    labels : Labels or None
        Labels of the fit.
    n_features : int
        Number of columns, for inputs without modes.
    """
    labels = labels or Labels()
    cells = labels.cells
    if labels.used is not None:
        cells = labels.used if cells is None else cells[labels.used]
    return InputSpace(tuple(grid.shape for grid in labels.inputs) or ((n_features,),), cells)


def n_columns(labels: Labels | None) -> int | None:
    """Return the number of input columns of a fit, including dropped ones; None if unknown."""
    if labels is None or not labels.inputs:
        return None
    if labels.cells is not None:
        return int(labels.cells.size)
    return sum(math.prod(grid.shape) for grid in labels.inputs)


# ---------------------------------------------------------------- modes of arrays


def flatten(X: Any) -> tuple[Any, tuple[Grid, ...]]:
    """Convert an array (n, m1, ..., mq) of any library to a matrix, and return its modes."""
    if isinstance(X, (list, tuple)):
        try:
            values = np.asarray(X)
        except ValueError:  # ragged data, for which the checks of matrices raise an error
            return X, ()
        X = values if values.ndim > 2 else X
    refuse_files(X, "X")
    shape = tuple(getattr(X, "shape", ()))
    if len(shape) <= 2 or hasattr(X, "columns"):
        return X, ()
    if 0 in shape[1:]:
        raise ValueError(
            f"X has an empty mode: its shape is {shape}, and every axis needs at least one entry."
        )
    return _matrix(X), (unnamed_grid(shape[1:]),)


def _matrix(X: Any) -> Any:
    """Reshape an array of shape (n, ...) to a matrix."""
    n, *modes = X.shape
    if len(modes) == 1:
        return X
    if is_dask(X):
        from ..streaming.dask import known_chunks

        X = known_chunks(X, "X")
        if X.ndim > 2:
            X = X.rechunk(dict.fromkeys(range(1, X.ndim), -1))
        return X.reshape((X.shape[0], math.prod(X.shape[1:])))
    if is_array(X) and not isinstance(X, np.ndarray):
        return namespace_of(X).reshape(X, (n, math.prod(modes)))
    return X.reshape((n, math.prod(modes)))


def unnamed_grid(shape: Sequence[int], name: Any = None) -> Grid:
    """Return a grid for modes without names: input1, input2, ..., or one mode of features."""
    shape = tuple(map(int, shape))
    dims = tuple(f"input{k}" for k in range(1, len(shape) + 1)) if len(shape) != 1 else ("feature",)
    return Grid(dims, shape, name=name, is_named=False)


def grids_of_shape(input_shape: Any, n_features: int, found: tuple[Grid, ...]) -> tuple[Grid, ...]:
    """Return the blocks that `input_shape` describes.

    Parameters
    ----------
    input_shape : tuple of int, or dict from names of blocks to tuples of int
    n_features : int
        Number of columns of the inputs.
    found : tuple of Grid
        Grids of the inputs themselves, which must agree with `input_shape`.
    """
    shapes = dict(input_shape) if isinstance(input_shape, Mapping) else {None: input_shape}
    grids = []
    for name, shape in shapes.items():
        sizes = (shape,) if isinstance(shape, Integral) else tuple(shape)
        if not all(isinstance(m, Integral) and int(m) > 0 for m in sizes):
            raise ValueError(f"input_shape must contain positive integers; got {input_shape!r}.")
        grids.append(unnamed_grid(sizes, name))
    n_cells = sum(math.prod(grid.shape) for grid in grids)
    if n_cells != n_features:
        raise ValueError(
            f"input_shape={input_shape!r} has {n_cells} cells, but X has {n_features} columns."
        )
    if not found:
        return tuple(grids)
    shapes_found = [grid.shape for grid in found]
    if shapes_found != [grid.shape for grid in grids]:
        shown = shapes_found[0] if len(found) == 1 else shapes_found
        raise ValueError(f"input_shape={input_shape!r} differs from the shape of X, {shown}.")
    return found


def join_columns(blocks: Sequence[Any]) -> Any:
    """Join blocks of columns of the same samples to one matrix."""
    if len(blocks) == 1:
        return blocks[0]
    rows = [block.shape[0] for block in blocks]
    if len(set(rows)) > 1:
        raise ValueError(f"the blocks of X must have the same number of samples; got {rows}.")
    if any(is_dask(block) for block in blocks):
        import dask.array as da

        return da.concatenate([da.asarray(block) for block in blocks], axis=1)
    try:
        xp = namespace_of(*blocks)
    except TypeError as error:
        kinds = [type(block).__name__ for block in blocks]
        raise TypeError(f"the blocks of X must come from one library; got {kinds}.") from error
    return xp.concat(list(blocks), axis=1)


def block_of(name: Any, values: Any) -> tuple[Any, Grid]:
    """Return a block of a dict of arrays or tables as columns, and its grid."""
    refuse_files(values, f"X[{name!r}]")
    values = nan_for_masked(values)
    if hasattr(values, "columns") and not is_dask(values):
        labels = np.array(
            [" / ".join(map(str, c)) if isinstance(c, tuple) else str(c) for c in values.columns]
        )
        grid = Grid(("feature",), (labels.size,), {"feature": (("feature",), labels, {})}, name)
        return check_outputs(values, f"X[{name!r}]"), grid
    if is_dask(values):
        from ..streaming.dask import known_chunks

        values = known_chunks(values, f"X[{name!r}]")
    elif not hasattr(values, "shape"):
        values = np.asarray(values)
    if len(values.shape) == 0:
        raise ValueError(f"X[{name!r}] must have samples along its first axis; got a scalar.")
    if not is_dask(values) and not is_memory_map(values):
        values = check_outputs(values, f"X[{name!r}]")
    grid = unnamed_grid(values.shape[1:], name)
    return (values[:, None] if len(values.shape) == 1 else _matrix(values)), grid


# ---------------------------------------------------------------- inputs that are missing in every
# sample


def find_used_cells(inputs: Inputs) -> np.ndarray | None:
    """Return the columns without the cells of fields that are missing in the first sample.

    None if all columns are used.
    """
    if not any(inputs.is_field):
        return None
    if all(inputs.is_field):
        return find_used(inputs.X)
    sizes = [math.prod(grid.shape) for grid in inputs.grids]
    return find_used(inputs.X, np.repeat(inputs.is_field, sizes))


def find_used(X: Any, may_be_missing: np.ndarray | None = None) -> np.ndarray | None:
    """Return the columns that have a value in the first sample, or None if all have a value.

    Parameters
    ----------
    X : array, table or Dask collection of shape (n_samples, n_columns)
    may_be_missing : array of bool, of shape (n_columns,), optional
        Columns that are not used without a value. All others are used.
    """
    if is_sparse(X):
        return None  # NaN entries of a sparse matrix raise an error later
    if is_dask(X):
        X = X.to_dask_array(lengths=True) if hasattr(X, "to_dask_array") else X
        first = np.asarray(X[:1].compute())
    else:
        first = to_numpy(_values(X)[:1, ...])
    missing = (
        np.isnan(first[0]) if first.shape[0] and first.dtype.kind == "f" else np.zeros(0, bool)
    )
    if missing.size and missing.all():
        raise ValueError(
            "No inputs are left: all entries of X in sample 0 are NaN. The first sample shows "
            "which inputs are missing in every sample. Leave out samples without inputs, such as "
            "the first ones of a shifted series, from X and y: X[1:], y[1:]."
        )
    if may_be_missing is not None and missing.size:
        missing &= may_be_missing
    return np.flatnonzero(~missing) if missing.any() else None


def select_columns(X: Any, used: np.ndarray | None) -> Any:
    """Return the columns that a model uses; the values of the others are not read."""
    return X if used is None else _selected(X, used, check=False)


def drop_missing(X: Any, used: np.ndarray | None, names: Callable[[], list[Any]] = list) -> Any:
    """Return the columns that are used; the others must be missing in every sample.

    Parameters
    ----------
    X : array, table or Dask collection of shape (n_samples, n_columns)
    used : array of int, or None
    names : callable
        Returns the names of the columns, for messages.
    """
    if used is None:
        return X
    try:
        return _selected(X, used, check=True)
    except PartlyMissingError as error:
        found = names()
        raise PartlyMissingError(found[error.column] if found else error.column) from None


class PartlyMissingError(ValueError):
    """An input that is missing in some samples, but not in all of them.

    Parameters
    ----------
    column : int or str
        Number or name of the column of the inputs.
    """

    def __init__(self, column: Any) -> None:
        super().__init__(column)
        self.column = column

    def __str__(self) -> str:
        what = repr(self.column) if isinstance(self.column, str) else f"column {self.column}"
        return (
            f"{what} of X is missing in some samples and has a value in others. Only inputs that "
            f"are missing in every sample are left out of a model. Impute this input, or drop the "
            f"samples that lack it."
        )


def _values(X: Any) -> Any:
    """Convert tables and lists to arrays, with NaN for masked entries."""
    X = nan_for_masked(X)
    return X if is_array(X) and not np.ma.isMaskedArray(X) else check_outputs(X, "X")


def _selected(X: Any, used: np.ndarray, *, check: bool) -> Any:
    if is_dask(X):
        X = X.to_dask_array(lengths=True) if hasattr(X, "to_dask_array") else X
        X = X.rechunk({1: -1})
        return X.map_blocks(
            some_columns, used=used, check=check, dtype=X.dtype, chunks=(X.chunks[0], (used.size,))
        )
    if is_sparse(X):
        return X.tocsc()[:, used]
    return some_columns(_values(X), used, check=check)


def some_columns(X: Any, used: np.ndarray, *, check: bool) -> Any:
    """Return some columns of an array; with `check`, all other columns must be NaN."""
    xp = namespace_of(X)
    if check:
        others = np.setdiff1d(np.arange(X.shape[1]), used)
        present = to_numpy(~xp.isnan(xp.take(X, asarray_like(others, X), axis=1)))
        if present.any():
            raise PartlyMissingError(int(others[np.argwhere(present)[0, 1]]))
    return xp.take(X, asarray_like(used, X), axis=1)


def whole_axes(values: np.ndarray, labels: Labels | None, n_features: int) -> list[np.ndarray]:
    """Arrange values of the used columns as arrays over all cells, with NaN elsewhere.

    Parameters
    ----------
    values : array of shape (n_used, ...)
    labels : Labels or None
    n_features : int
        Number of columns, for inputs without modes.

    Returns
    -------
    list of arrays of shape (m1, ..., mq, ...)
        One for each block.
    """
    space = input_space(labels, n_features)
    xp, rest = namespace_of(values), tuple(values.shape[1:])
    if space.cells is not None:
        place = np.full(space.n_cells, values.shape[0])
        place[space.cells] = np.arange(values.shape[0])
        empty = xp.full_like(values[:1, ...], math.nan)
        values = xp.concat([values, empty], axis=0)
        values = xp.take(values, asarray_like(place, values), axis=0)
    found = []
    for block, shape in enumerate(space.shapes):
        start, stop = space.bounds(block)
        found.append(xp.reshape(values[start:stop, ...], (*shape, *rest)))
    return found


def with_inputs(labels: Labels, inputs: Inputs, used: np.ndarray | None) -> Labels:
    """Return labels with the arrangement of the inputs and the columns that are used."""
    grids = inputs.grids
    if used is not None and not grids:
        grids = (unnamed_grid((inputs.X.shape[1],)),)
    return replace(labels, inputs=grids, cells=inputs.cells, used=used)
