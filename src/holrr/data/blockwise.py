"""Functions that are applied to each block of inputs: arrays, tables, xarray objects or dicts.

The result has the type of the inputs, with the same names, dimensions and shapes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from ..core.namespace import Array, namespace_of
from .arrays import comes_from, is_dask
from .inputs import is_blocks
from .labels import Grid
from .unlabel import is_dataset

__all__ = ["BlockFunction", "columns_of", "map_blocks"]

# Maps an array whose cells are some columns of the inputs, and the slice of these columns, to an
# array of the same shape: (n_samples, n_columns) or, for xarray objects, (n_samples, m1, ..., mq).
BlockFunction = Callable[[Array, slice], Array]


def columns_of(grids: tuple[Grid, ...]) -> Iterator[tuple[Grid, slice]]:
    """Yield each block of the inputs, and its columns in the matrix of all inputs."""
    start = 0
    for grid in grids:
        stop = start + math.prod(grid.shape)
        yield grid, slice(start, stop)
        start = stop


def map_blocks(
    X: Any, matrix: Array, grids: tuple[Grid, ...], dim: str | None, function: BlockFunction
) -> Any:
    """Apply a function to each block of the inputs, and return an object of the type of `X`.

    Parameters
    ----------
    X : object
    matrix : array of shape (n_samples, n_features)
        `X` without its labels.
    grids : tuple of Grid
        Blocks of `X`, in the order of the fit.
    dim : str or None
        Sample dimension of xarray objects.
    function : callable
        A `BlockFunction`.
    """
    blocks = {grid.name: (grid, columns) for grid, columns in columns_of(grids)}
    if is_dataset(X):
        return X.map(lambda A: _mapped_xarray(A, *blocks[A.name], dim, function), keep_attrs=True)
    if comes_from(X, "xarray"):
        return _mapped_xarray(X, *blocks[None], dim, function)
    if not is_blocks(X):
        return _like(function(matrix, slice(None)), X, grids[0] if grids else None)
    found = {}
    for name, A in X.items():
        grid, columns = blocks[name]
        if comes_from(A, "xarray"):
            found[name] = _mapped_xarray(A, grid, columns, dim, function)
        else:
            found[name] = _like(function(matrix[:, columns], columns), A, grid)
    return found


def _mapped_xarray(
    A: Any, grid: Grid, columns: slice, dim: str | None, function: BlockFunction
) -> Any:
    in_order = A.variable.transpose(dim, *grid.dims)
    found = in_order.copy(data=function(in_order.data, columns))
    return A.copy(data=found.transpose(*A.dims).data)


def _like(matrix: Array, A: Any, grid: Grid | None) -> Any:
    """Return columns as a table or array like `A`, with the modes of its grid if it has one."""
    if comes_from(A, "polars"):
        return type(A)(matrix, schema=A.columns, orient="row")
    if hasattr(A, "columns"):
        return matrix if is_dask(A) else type(A)(matrix, index=A.index, columns=A.columns)
    if grid is None:
        return matrix
    return namespace_of(matrix).reshape(matrix, (matrix.shape[0], *grid.shape))
