"""Dask arrays: sums over their chunks by tree reduction, and lazy predictions.

The result of each chunk of samples is computed where the chunk is. Results, whose size does not
depend on the number of samples, are merged four at a time until one is left. The active Dask
scheduler decides which threads, processes or machines do the work.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from ..core.moments import CentredMoments
from ..core.threads import limit_threads
from ..data.arrays import check_inputs, check_kind, is_dask, unmasked
from ..data.scores import Errors, PartErrors
from .budget import current_budget
from .chunks import for_workers, locate_errors

try:
    import dask
    import dask.array as da
    from dask.base import get_scheduler
    from dask.delayed import Delayed, delayed
    from dask.sizeof import sizeof
    from dask.threaded import get as threaded_get
except ImportError as error:
    raise ImportError('Dask arrays need dask: pip install "holrr[dask]"') from error

__all__ = ["known_chunks", "map_lazily", "reduce_chunks", "slices"]

_FAN_IN = 4


# ---------------------------------------------------------------- sums over chunks


def reduce_chunks(
    X: Any,
    Y: Any,
    more: Sequence[np.ndarray | None],
    call: Callable[..., Any],
    join: Callable[[Sequence[Any]], Any],
    least: int,
) -> Any:
    """Apply a function to all chunks of samples in one computation, and merge the results.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
    Y : array of shape (n_samples, ...)
        `X` or `Y` is a Dask array, and the other one may be a NumPy array.
    more : sequence of arrays of shape (n_samples,), or None
        Further arguments of the function.
    call : callable
        Function of a chunk of `X`, `Y` and `more`, and of its samples (a slice).
    join : callable
        Merges a sequence of results of neighbouring chunks.
    least : int
        Smallest number of samples of a chunk.
    """
    Y = _in_chunks_of_samples(da.asarray(Y), X, least)
    samples, modes = Y.chunks[0], tuple(range(Y.ndim))
    X = da.asarray(X).rechunk((samples, -1))
    kept = [A for A in more if A is not None]
    columns = (da.from_array(_small(A), chunks=(samples,)) for A in kept)
    # Reading a chunk and reducing it is one task if Dask can fuse them, so that no chunk of the
    # data is moved from the worker that has read it. The features, in one chunk, are the last mode
    # of the result: Dask does not fuse sums over a mode.
    leaves = da.blockwise(
        _at,
        (*modes, Y.ndim),
        *(da.from_array(np.cumsum((0, *samples[:-1])), chunks=1), (0,), X, (0, Y.ndim), Y, modes),
        *(part for A in columns for part in (A, (0,))),
        call=delayed(call),
        given=[A is not None for A in more],
        dtype=object,
        align_arrays=False,
        meta=np.empty((0,) * (Y.ndim + 1), dtype=object),
    )
    return _compute(_tree(leaves.to_delayed().reshape(-1).tolist(), join), len(samples))


def _at(
    start: np.ndarray,
    X: Any,
    Y: Any,
    *columns: np.ndarray,
    call: Callable[..., Any],
    given: Sequence[bool],
) -> Any:
    """Apply a function to a chunk that starts at a sample."""
    rows, rest = slice(int(start[0]), int(start[0]) + len(Y)), iter(columns)
    return call(X, Y, *(next(rest) if has else None for has in given), rows)


def _in_chunks_of_samples(Y: Any, X: Any, least: int) -> Any:
    """Rechunk `Y` so that chunks contain all outputs of at least `least` samples.

    The samples keep the chunks of `Y`, or of `X` if `Y` is in memory. Chunks with fewer samples are
    joined. If the outputs are chunked, too, chunks of samples are split to fit into an eighth of
    the memory budget.
    """
    samples = Y.chunks[0] if len(Y.chunks[0]) > 1 or not is_dask(X) else X.chunks[0]
    if any(len(sizes) > 1 for sizes in Y.chunks[1:]):
        row_bytes = 8 * math.prod(Y.shape[1:])
        most = max(1, least, current_budget() // 8 // row_bytes)
        samples = tuple(n for whole in samples for n in pieces(whole, most))
    return Y.rechunk((join_small(samples, least), *Y.shape[1:]))


def _small(A: np.ndarray) -> np.ndarray:
    """Return the labels of folds as one byte each, since they are part of the task graph."""
    return A if A.dtype.kind == "f" else A.astype(np.min_scalar_type(-1 - int(A.max(initial=0))))


def _tree(leaves: list[Delayed], join: Callable[[Sequence[Any]], Any]) -> Delayed:
    """Merge neighbouring results until one is left; the tree depends only on their number."""
    while len(leaves) > 1:
        leaves = [delayed(join)(leaves[i : i + _FAN_IN]) for i in range(0, len(leaves), _FAN_IN)]
    return leaves[0]


def _compute(tree: Delayed, n_tasks: int) -> Any:
    """Compute a result on the active scheduler.

    Threads of this process share the cores with BLAS threads: with many tasks, each task uses one
    BLAS thread. Workers of a cluster manage their own threads.
    """
    here = get_scheduler(collections=[tree]) is threaded_get
    with limit_threads(dask.system.CPU_COUNT // n_tasks) if here else nullcontext():
        return tree.compute()


def _bytes_of(record: Any) -> int:
    """Return the number of bytes of the arrays of a record.

    Dask would assume a few bytes for each record. Workers manage their memory, and the scheduler
    moves results, by these sizes.
    """
    return sum(sizeof(value) for value in vars(record).values())


for _record in (CentredMoments, Errors, PartErrors):
    sizeof.register(_record, _bytes_of)


# ---------------------------------------------------------------- predictions


def map_lazily(model: Any, X: Any, method: str, shape: Sequence[int]) -> Any:
    """Return the results of a method of a fitted model, of this shape, as a lazy Dask array.

    The method must accept checked inputs in memory. Chunks of samples are split if a chunk of the
    result would exceed an eighth of the memory budget. Chunks of equal size are
    split into chunks of equal size, so that the result can be stored without rechunking.
    """
    most = max(1, current_budget() // (64 * max(1, math.prod(shape))))
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


def join_small(chunks: Sequence[int], least: int) -> tuple[int, ...]:
    """Join neighbouring chunks until each but the last has at least `least` samples.

    >>> join_small((2, 2, 2, 9, 1), 4)
    (4, 11, 1)
    """
    joined: list[int] = []
    for n in chunks:
        if joined and joined[-1] < least:
            joined[-1] += n
        elif n > 0:
            joined.append(n)
    return tuple(joined)


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
