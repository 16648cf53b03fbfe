"""Moments of Dask arrays by tree reduction, and lazy predictions.

The moments of each chunk of samples are computed where the chunk is. Moments, whose size does not
depend on the number of samples, are merged four at a time until one set is left. The active Dask
scheduler decides which threads, processes or machines do the work.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from itertools import product
from typing import Any, Self

import numpy as np

from ..core.moments import CentredMoments, ResponseSums
from ..core.threads import limit_threads
from ..data.arrays import (
    check_inputs,
    check_kind,
    check_outputs,
    is_dask,
    locate_rows,
    nan_for_masked,
    unmasked,
)
from ..data.scores import Errors, PartErrors
from .budget import check_budget
from .passes import Pass, RunningMoments, locate_errors
from .reading import Box, blocks_of_rows, scaled_block
from .stream import Stream, check_rows_of_inputs, for_workers

try:
    import dask
    import dask.array as da
    from dask.base import get_scheduler
    from dask.delayed import Delayed, delayed
    from dask.sizeof import sizeof
    from dask.threaded import get as threaded_get
except ImportError as error:
    raise ImportError('Dask arrays need dask: pip install "holrr[dask]"') from error

__all__ = ["DaskStream", "known_chunks", "map_lazily", "slices"]

_FAN_IN = 4
_MAPPED = 2**21  # bytes of outputs that are mapped together, so that they fit into the cache


class DaskStream(Stream):
    """Stream of Dask arrays; one of `X` and `Y` may be a NumPy array.

    `X` is rechunked to the samples of `Y`, the larger array, with one chunk along the features.
    Chunks with fewer samples than features are joined with their neighbours, since their moments
    would be larger than the chunks. The memory budget is that of a single task.
    """

    def __init__(self, X: Any, Y: Any, sample_weight: Any, max_bytes: int) -> None:
        X = known_chunks(X, "X") if is_dask(X) else check_inputs(X)
        Y = known_chunks(Y, "y") if is_dask(Y) else check_outputs(Y)
        if X.ndim != 2:
            raise ValueError(f"X must have shape (n_samples, n_features); got {X.shape}.")
        self._describe(X, Y, sample_weight, max_bytes)
        self._in_memory = None if is_dask(X) else X
        self._Y = chunked(da.asarray(Y), X, self.n_features, max_bytes)
        self._X = da.asarray(X).rechunk((self._Y.chunks[0], -1))

    def with_outputs(
        self, function: Callable[[np.ndarray], np.ndarray], shape: tuple[int, ...]
    ) -> Self:
        other, row_bytes = copy.copy(self), 8 * max(1, math.prod(self.output_shape))
        most = max(1, self.max_bytes // 4 // row_bytes)  # samples whose outputs fit into a task
        samples = tuple(n for whole in self._Y.chunks[0] for n in pieces(whole, most))
        other.output_shape, other._X = shape, self._X.rechunk((samples, -1))
        modes, axes = len(shape), dict[str, Any]()
        if modes + 1 != self._Y.ndim:  # with the same axes Dask can read and map in one task
            axes = {
                "drop_axis": list(range(1, self._Y.ndim)),
                "new_axis": list(range(1, modes + 1)),
            }
        other._Y = da.map_blocks(
            _map_outputs,
            self._Y.rechunk((samples, *self._Y.shape[1:])),
            function=function,
            dtype=self._Y.dtype,
            chunks=(samples, *((d,) for d in shape)),
            meta=np.empty((0,) * (1 + modes), dtype=self._Y.dtype),
            **axes,
        )
        return other

    def scaled_outputs(self, factor: np.ndarray) -> Self:
        other = copy.copy(self)
        dtype = np.float32 if self._Y.dtype == np.float32 else np.float64
        factors = da.from_array(factor[None], chunks=(1, *self._Y.chunks[1:]))
        other._Y = da.map_blocks(scaled_block, self._Y, factors, dtype=dtype)
        return other

    def first_outputs(self) -> np.ndarray:
        return np.asarray(nan_for_masked(self._Y[self.first_row].compute()))[0]

    def input_rows(self, index: slice | np.ndarray) -> np.ndarray:
        return check_rows_of_inputs(self._X[index].compute(), index)

    def _run(self, task: Pass) -> Iterator[tuple[Box, Any]]:
        samples, Y = self._Y.chunks[0], self._Y if task.outputs else self._X[:, :1]
        if task.max_outputs is not None:
            Y = cut(Y, task.max_outputs)
        elif task.whole:
            Y = Y.rechunk((samples, *Y.shape[1:]))
        trees = list(self._trees(task, Y))
        n = len(trees) if task.max_outputs is None else 1  # at a time
        for start in range(0, len(trees), n):
            some, found = zip(*trees[start : start + n], strict=True)
            yield from zip(some, _compute(found, n * len(samples)), strict=True)

    def _trees(self, task: Pass, Y: Any) -> Iterator[tuple[Box, Delayed]]:
        """Yield the lazy result for each chunk of the outputs.

        Reading a chunk and reducing it is one task if Dask can fuse them, so that no chunk of the
        data is moved from the worker that has read it.
        """
        X = self._X if task.X is None else da.from_array(task.X, chunks=(Y.chunks[0], -1))
        modes, samples = tuple(range(Y.ndim)), Y.chunks[0]
        places = da.map_blocks(
            _place,
            chunks=tuple((1,) * len(sizes) for sizes in Y.chunks),
            dtype=object,
            sizes=Y.chunks,
            meta=np.empty((0,) * Y.ndim, dtype=object),
        )
        more = [
            da.from_array(_small(a), chunks=(samples,))
            for a in self._weights_and_labels(task, slice(None))
            if a is not None
        ]
        # The features, in one chunk, are the last mode of the result: Dask does not fuse sums over
        # a mode.
        leaves = da.blockwise(
            _at,
            (*modes, Y.ndim),
            *(places, modes, X, (0, Y.ndim), Y, modes),
            *(part for a in more for part in (a, (0,))),
            map_block=delayed(task.map_block),
            has_weights=self.weights is not None,
            dtype=object,
            align_arrays=False,
            meta=np.empty((0,) * (Y.ndim + 1), dtype=object),
        ).to_delayed()[..., 0]
        for index in product(*(range(n) for n in leaves.shape[1:])):
            box = tuple(slices(sizes)[i] for sizes, i in zip(Y.chunks[1:], index, strict=True))
            yield box, _tree(list(leaves[(slice(None), *index)]), task.join)


def _bytes_of(record: Any) -> int:
    """Return the number of bytes of the arrays of a record.

    Dask would assume a few bytes for each record. Workers manage their memory, and the scheduler
    moves results, by these sizes.
    """
    return sum(sizeof(value) for value in vars(record).values())


for _record in (RunningMoments, CentredMoments, ResponseSums, Errors, PartErrors):
    sizeof.register(_record, _bytes_of)


def _map_outputs(
    Y: np.ndarray, function: Callable[[np.ndarray], np.ndarray], block_info: Any = None
) -> np.ndarray:
    """Map the outputs of a chunk of samples; errors report positions in the whole data."""
    first, Y = block_info[0]["array-location"][0][0], np.asarray(nan_for_masked(Y))
    found = []
    for part in blocks_of_rows(len(Y), Y[:1].nbytes, _MAPPED, None):
        with locate_rows(slice(first + part.start, first + part.stop)):
            found.append(function(Y[part]))
    return np.concatenate(found)


def _small(a: np.ndarray) -> np.ndarray:
    """Return the labels of folds as one byte each, since they are part of the task graph."""
    return a if a.dtype.kind == "f" else a.astype(np.min_scalar_type(-1 - int(a.max(initial=0))))


def _place(sizes: Sequence[Sequence[int]], block_id: Any = None) -> tuple[Any, slice, Box]:
    """Return the position of a chunk: its number along each mode, its samples and outputs."""
    rows, *box = (slices(some)[i] for some, i in zip(sizes, block_id, strict=True))
    return tuple(int(i) for i in block_id), rows, tuple(box)


def _at(
    place: tuple[Any, slice, Box],
    X: Any,
    Y: Any,
    *more: Any,
    map_block: Callable[..., Any],
    has_weights: bool,
) -> Any:
    """Apply `map_block` to a chunk, its weights and labels; errors name the chunk."""
    chunk, rows, box = place
    where = f"the chunk {chunk} of samples {rows.start} to {rows.stop - 1}"
    with locate_errors(where, rows, box):
        more = more if has_weights else (None, *more)
        return map_block(unmasked(X, "X"), unmasked(Y, "y"), *more)


def _tree(leaves: list[Delayed], merge: Callable[..., Any]) -> Delayed:
    """Merge neighbouring results until one is left; the tree depends only on their number."""
    while len(leaves) > 1:
        leaves = [delayed(merge)(leaves[i : i + _FAN_IN]) for i in range(0, len(leaves), _FAN_IN)]
    return leaves[0]


def _compute(trees: Sequence[Delayed], n_tasks: int) -> list[Any]:
    """Compute all trees together on the active scheduler.

    Threads of this process share the cores with BLAS threads: with many tasks, each task uses one
    BLAS thread. Workers of a cluster manage their own threads.
    """
    here = get_scheduler(collections=trees) is threaded_get
    with limit_threads(dask.system.CPU_COUNT // n_tasks) if here else nullcontext():
        return list(dask.compute(*trees))


# ---------------------------------------------------------------- predictions


def map_lazily(model: Any, X: Any, method: str, shape: Sequence[int]) -> Any:
    """Return the results of a method of a fitted model, of this shape, as a lazy Dask array.

    The method must accept checked inputs in memory. Chunks of samples are split if a chunk of the
    result would exceed a quarter of the memory budget. Chunks of equal
    size are split into chunks of equal size, so that the result can be stored without rechunking.
    """
    most = max(1, check_budget() // (32 * max(1, math.prod(shape))))
    X = known_chunks(X, "X")
    samples = cut_samples(X.chunks[0], most)
    dtype = np.dtype(str(model.tucker_.core.dtype).removeprefix("torch."))
    return da.map_blocks(
        _map_chunk,
        X.rechunk((samples, -1)),
        model=delayed(for_workers(model)),
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
    with locate_errors(f"chunk {block_id[0] if block_id else 0} of the samples"):
        return getattr(model, method)(check_inputs(unmasked(X, "X")))


# ---------------------------------------------------------------- chunks


def known_chunks(A: Any, name: str) -> Any:
    """Convert a Dask array or table to an array of known chunk sizes without empty chunks."""
    if hasattr(A, "to_dask_array"):
        A = A.to_dask_array(lengths=True)
    if any(math.isnan(d) for d in A.shape):
        raise ValueError(
            f"{name} is a Dask array of unknown chunk sizes; call {name}.compute_chunk_sizes() "
            f"first."
        )
    if A.ndim == 0 or 0 in A.shape:
        raise ValueError(f"{name} must have samples and no empty mode; got shape {A.shape}.")
    check_kind(A, name)
    return A.rechunk(tuple(tuple(n for n in sizes if n > 0) for sizes in A.chunks))


def chunked(Y: Any, X: Any, n_features: int, max_bytes: int) -> Any:
    """Rechunk `Y` so that the moments of a chunk are not larger than the chunk.

    The samples keep the chunks of `Y` (or of `X`, if `Y` is in memory), but chunks with fewer
    samples than features are joined. Chunks along the outputs are joined if the result fits into
    the budget.
    """
    samples = Y.chunks[0] if len(Y.chunks[0]) > 1 or not is_dask(X) else X.chunks[0]
    row = math.prod(max(sizes) for sizes in Y.chunks[1:])  # entries of a sample within a chunk
    samples = join_small(samples, n_features, max_bytes // (8 * max(1, row)))
    whole = 8 * max(samples) * math.prod(Y.shape[1:]) <= max_bytes // 4
    outputs = Y.shape[1:] if whole else Y.chunks[1:]
    return Y.rechunk((samples, *outputs))


def join_small(chunks: Sequence[int], least: int, most: int) -> tuple[int, ...]:
    """Join neighbouring chunks until each has at least `least` samples, but at most `most`.

    >>> join_small((2, 2, 2, 9, 1), 4, 100)
    (4, 11, 1)
    """
    joined: list[int] = []
    for n in chunks:
        if joined and joined[-1] < least and joined[-1] + n <= most:
            joined[-1] += n
        elif n > 0:
            joined.append(n)
    return tuple(joined)


def cut(Y: Any, max_entries: int) -> Any:
    """Rechunk `Y` so that samples of a chunk have at most `max_entries` outputs, or one."""
    sizes = [max(chunk) for chunk in Y.chunks[1:]]
    for mode in range(len(sizes)):
        rest = math.prod(sizes[:mode]) * math.prod(sizes[mode + 1 :])
        sizes[mode] = max(1, min(sizes[mode], max_entries // rest))
    chunks = [
        tuple(n for whole in chunk for n in pieces(whole, size))
        for chunk, size in zip(Y.chunks[1:], sizes, strict=True)
    ]
    return Y.rechunk((Y.chunks[0], *chunks))


def cut_samples(chunks: Sequence[int], most: int) -> tuple[int, ...]:
    """Split chunks into chunks of at most `most` samples.

    Regular chunks, which have one size except for a smaller last one, stay regular, as Zarr arrays
    require. The borders of the old chunks are kept if the size has a suitable divisor.

    >>> cut_samples((12, 12, 5), 8)
    (6, 6, 6, 6, 5)
    >>> cut_samples((11, 11, 5), 8)
    (6, 6, 6, 6, 3)
    >>> cut_samples((12, 3, 12), 8)
    (8, 4, 3, 8, 4)
    """
    size = chunks[0]
    if max(chunks) <= most:
        return tuple(chunks)
    if any(n != size for n in chunks[:-1]) or chunks[-1] > size:
        return tuple(n for whole in chunks for n in pieces(whole, most))
    fewest = -(-size // most)
    equal = (size // k for k in range(fewest, 2 * fewest + 1) if size % k == 0)
    return tuple(pieces(sum(chunks), next(equal, -(-size // fewest))))


def pieces(whole: int, size: int) -> list[int]:
    return [min(size, whole - start) for start in range(0, whole, size)]


def slices(sizes: Sequence[int]) -> list[slice]:
    ends = np.cumsum(sizes).tolist()
    return [slice(end - n, end) for n, end in zip(sizes, ends, strict=True)]
