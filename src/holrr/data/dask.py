"""Moments of Dask arrays by tree reduction, and lazy predictions.

Each chunk of samples becomes moments where it is; these, whose size does not depend on the number
of samples, are merged four by four, and one set of them comes back. Which threads, processes or
machines do the work is up to the active Dask scheduler.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from itertools import product
from typing import Any

import numpy as np

from ..core.threads import limit_threads
from .arrays import check_inputs, check_outputs, unmasked
from .budget import DEFAULT_MAX_BYTES
from .chunks import chunked, cut, known, pieces, slices
from .reading import Box
from .running import Look, errors_say_where
from .source import Source, check_rows_of_inputs, is_dask, light

try:
    import dask
    import dask.array as da
    from dask.base import get_scheduler
    from dask.delayed import Delayed, delayed
    from dask.threaded import get as threaded_get
except ImportError as error:
    raise ImportError("Dask arrays need dask: pip install holrr[dask]") from error

__all__ = ["DaskSource", "map_lazily"]

_FAN_IN = 4


class DaskSource(Source):
    """Dask arrays; one of `X` and `Y` may be a NumPy array.

    `X` is rechunked to the samples of `Y`, the larger one, and in full along the features. Chunks
    with fewer samples than features are joined with their neighbours, since their moments would be
    larger than themselves. The memory budget is that of a single task.
    """

    def __init__(self, X: Any, Y: Any, sample_weight: Any, max_bytes: int) -> None:
        X = known(X, "X") if is_dask(X) else check_inputs(X)
        Y = known(Y, "y") if is_dask(Y) else check_outputs(Y)
        if X.ndim != 2:
            raise ValueError(f"X must have shape (n_samples, n_features); got {X.shape}.")
        self._describe(X, Y, sample_weight, max_bytes)
        self._in_memory = None if is_dask(X) else X
        self._Y = chunked(da.asarray(Y), X, self.n_features, max_bytes)
        self._X = da.asarray(X).rechunk((self._Y.chunks[0], -1))

    def input_rows(self, index: slice | np.ndarray) -> np.ndarray:
        return check_rows_of_inputs(self._X[index].compute(), index)

    def _found(self, look: Look) -> Iterator[tuple[Box, Any]]:
        samples, Y = self._Y.chunks[0], self._Y if look.outputs else self._X[:, :1]
        if look.max_outputs is not None:
            Y = cut(Y, look.max_outputs)
        elif look.whole:
            Y = Y.rechunk((samples, *Y.shape[1:]))
        trees = list(self._trees(look, Y))
        n = len(trees) if look.max_outputs is None else 1  # at a time
        for start in range(0, len(trees), n):
            some, found = zip(*trees[start : start + n], strict=True)
            yield from zip(some, _compute(found, n * len(samples)), strict=True)

    def _trees(self, look: Look, Y: Any) -> Iterator[tuple[Box, Delayed]]:
        """For each chunk of the outputs what becomes of it, yet to be computed."""
        X = self._X if look.X is None else da.from_array(look.X, chunks=(Y.chunks[0], -1))
        inputs, grid, of_block = X.to_delayed().reshape(-1), Y.to_delayed(), delayed(look.of_block)
        for index in product(*(range(n) for n in grid.shape[1:])):
            box = tuple(slices(sizes)[i] for sizes, i in zip(Y.chunks[1:], index, strict=True))
            leaves = []
            for i, rows in enumerate(slices(Y.chunks[0])):
                place = (i, *index), rows, box
                parts = inputs[i], grid[place[0]], *self._beside(look, rows)
                leaves.append(delayed(_at)(place, of_block, *parts))
            yield box, _tree(leaves, look.join)


def _at(
    place: tuple[Any, slice, Box], of_block: Callable[..., Any], X: Any, Y: Any, *more: Any
) -> Any:
    """What `of_block` makes of a chunk; its errors say where they are."""
    chunk, rows, box = place
    where = f"the chunk {chunk} of samples {rows.start} to {rows.stop - 1}"
    with errors_say_where(where, rows, box):
        return of_block(unmasked(X, "X"), unmasked(Y, "y"), *more)


def _tree(leaves: list[Delayed], merge: Callable[..., Any]) -> Delayed:
    """Merge neighbours until one is left; the shape of the tree depends on their number only."""
    while len(leaves) > 1:
        leaves = [delayed(merge)(leaves[i : i + _FAN_IN]) for i in range(0, len(leaves), _FAN_IN)]
    return leaves[0]


def _compute(trees: Sequence[Delayed], n_tasks: int) -> list[Any]:
    """All at once on the active scheduler.

    Threads of this process share the cores with those of the linear algebra: with many tasks each
    has one. Workers of a cluster look after themselves.
    """
    here = get_scheduler(collections=trees) is threaded_get
    with limit_threads(dask.system.CPU_COUNT // n_tasks) if here else nullcontext():
        return list(dask.compute(*trees))


# ---------------------------------------------------------------- predictions


def map_lazily(
    model: Any, X: Any, method: str, shape: Sequence[int], max_bytes: int = DEFAULT_MAX_BYTES
) -> Any:
    """What a method of a fitted model gives for each sample, of this shape, as a Dask array.

    Nothing of it is computed yet. The method is one for checked inputs in memory. Chunks of samples
    are cut where a chunk of the result would exceed a quarter of `max_bytes`.
    """
    most = max(1, max_bytes // (32 * max(1, math.prod(shape))))
    X = known(X, "X")
    samples = tuple(n for whole in X.chunks[0] for n in pieces(whole, most))
    dtype = np.dtype(model._dtype_name())
    return da.map_blocks(
        _map_chunk,
        X.rechunk((samples, -1)),
        model=delayed(light(model)),
        method=method,
        dtype=dtype,
        chunks=(samples, *((d,) for d in shape)),
        drop_axis=1,
        new_axis=list(range(1, len(shape) + 1)) or None,
        meta=np.empty((0,) * (1 + len(shape)), dtype=dtype),
    )


def _map_chunk(
    X: np.ndarray, model: Any, method: str, block_id: tuple[int, ...] | None = None
) -> Any:
    with errors_say_where(f"chunk {block_id[0] if block_id else 0} of the samples"):
        return getattr(model, method)(check_inputs(unmasked(X, "X")))
