"""Reading of rows of arrays on disk in blocks, by several threads."""

from __future__ import annotations

import io
import math
import mmap
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np

from ..core.tensor import release_pages
from ..data.arrays import as_slice, is_on_disk, locate_rows, nan_for_masked
from ..data.inputs import some_columns

__all__ = ["Box", "Flattened", "Folded", "GatheredRows", "MappedRows", "RowReader"]
__all__ += ["ScaledRows", "blocks_of_rows", "boxes", "in_order", "scaled_block"]

_MAPPED = 2**24  # bytes of rows that are mapped together

T = TypeVar("T")
Box = tuple[slice, ...]


class Folded:
    """A matrix on disk, (n, d1 * ... * dp), whose rows are read as tensors of `shape`."""

    is_on_disk = True

    def __init__(self, A: Any, shape: tuple[int, ...]) -> None:
        self._A, self.shape, self.dtype = A, (A.shape[0], *shape), A.dtype
        chunks = getattr(A, "chunks", None)
        self.chunks = None if chunks is None else (chunks[0], *shape)

    def __getitem__(self, key: Any) -> np.ndarray:
        rows, *box = key if isinstance(key, tuple) else (key,)
        block = np.asarray(self._A[rows])
        return block.reshape(-1, *self.shape[1:])[(slice(None), *box)]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self[:], dtype=dtype)


class MappedRows:
    """An array whose rows are mapped by a function when they are read.

    Parameters
    ----------
    A : array of shape (n, ...)
        Array on disk or in memory.
    function : callable
        Maps a block of rows to rows of `shape`.
    shape : tuple of int
        Shape of a mapped row.
    """

    is_on_disk = True

    def __init__(
        self, A: Any, function: Callable[[np.ndarray], np.ndarray], shape: tuple[int, ...]
    ) -> None:
        self._A, self._function = A, function
        self.shape, self.dtype = (A.shape[0], *shape), A.dtype
        chunks = getattr(A, "chunks", None)
        self.chunks = None if chunks is None else (chunks[0], *shape)

    def __getitem__(self, key: Any) -> np.ndarray:
        rows, *box = key if isinstance(key, tuple) else (key,)
        row_bytes = self.dtype.itemsize * math.prod(self._A.shape[1:])
        parts = blocks_of_rows(rows.stop - rows.start, row_bytes, _MAPPED, None)
        return np.concatenate([self._read(rows.start, part, box) for part in parts])

    def _read(self, start: int, part: slice, box: Sequence[slice]) -> np.ndarray:
        rows = slice(start + part.start, start + part.stop)
        block = np.array(nan_for_masked(self._A[rows]))
        if isinstance(self._A, np.memmap):
            release_pages(self._A)
        with locate_rows(rows):
            return self._function(block)[(slice(None), *box)]


class ScaledRows:
    """An array whose rows are multiplied by an array when they are read.

    Parameters
    ----------
    A : array of shape (n, ...)
        Array on disk or in memory.
    factor : array of the shape of a row
        Factors of the entries of a row. Where the factor is zero, the result is zero even if `A` is
        not finite.
    """

    is_on_disk = True

    def __init__(self, A: Any, factor: np.ndarray) -> None:
        self._A, self._factor = A, factor
        self.shape, self.dtype = tuple(A.shape), A.dtype
        self.chunks = getattr(A, "chunks", None)

    def __getitem__(self, key: Any) -> np.ndarray:
        rows, *box = key if isinstance(key, tuple) else (key,)
        block = scaled_block(self._A[(rows, *box)], self._factor[tuple(box)])
        if isinstance(self._A, np.memmap):
            release_pages(self._A)
        return block


def scaled_block(block: Any, factor: np.ndarray) -> np.ndarray:
    """Multiply a block of rows by an array; masked entries become NaN, and 0 times NaN is 0.

    >>> scaled_block(np.array([[1.0, np.nan]]), np.array([2.0, 0.0]))
    array([[2., 0.]])
    """
    block = np.asarray(nan_for_masked(block))
    factor = factor.astype(block.dtype) if block.dtype == np.float32 else factor
    return np.where(factor > 0, block, np.zeros((), block.dtype)) * factor


class GatheredRows:
    """Array that contains, for each row, several nearby rows of an array on disk.

    Parameters
    ----------
    A : array of shape (n, ...)
        Array on disk.
    rows : array of int, of shape (n, k)
        Rows of `A` that are read for each row; n stands for a row of `fill`, which is NaN where the
        row itself is NaN.
    fill : float
        Value of the entries of rows that do not exist.
    """

    is_on_disk = True

    def __init__(self, A: Any, rows: np.ndarray, fill: float) -> None:
        self._A, self._rows, self._fill = A, rows, fill
        self.shape = (*rows.shape, *A.shape[1:])
        self.ndim, self.dtype = len(self.shape), A.dtype
        if self.dtype.kind != "f":
            self.dtype = np.dtype(np.float64)
        chunks = getattr(A, "chunks", None)
        self.chunks = None if chunks is None else (chunks[0], *self.shape[1:])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> np.ndarray:
        rows, *box = key if isinstance(key, tuple) else (key,)
        wanted = self._rows[rows]
        exist = wanted < self._A.shape[0]
        # A filled entry needs the row itself, since it is NaN where the row is NaN.
        needed = np.where(exist, wanted, np.arange(len(self))[rows][:, None])
        found = np.full((*wanted.shape, *self.shape[2:]), self._fill, dtype=self.dtype)
        if needed.size:
            read = np.unique(needed)
            if isinstance(rows, slice):  # one read, including rows in between
                read = np.arange(read[0], read[-1] + 1)
            block = np.asarray(nan_for_masked(self._A[as_slice(read)]))
            found[exist] = block[np.searchsorted(read, needed[exist])]
            own = block[np.searchsorted(read, needed[~exist])]
            found[~exist] = np.where(np.isnan(own), np.nan, self._fill)
            if isinstance(self._A, np.memmap):
                release_pages(self._A)
        return found[(slice(None), *box)]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self[:], dtype=dtype)


class Flattened:
    """Arrays on disk, (n, ...), whose rows are read as rows of a matrix.

    Parameters
    ----------
    parts : sequence of arrays of shape (n, ...)
        Arrays whose columns are joined.
    columns : array of int, optional
        Columns that are kept.
    check : bool
        Whether the other columns must be NaN in every row.
    """

    is_on_disk = True

    def __init__(
        self, parts: Sequence[Any], columns: np.ndarray | None = None, *, check: bool = False
    ) -> None:
        self.parts, self._columns, self._check = list(parts), columns, check
        width = sum(math.prod(part.shape[1:]) for part in self.parts)
        self.shape = (self.parts[0].shape[0], width if columns is None else columns.size)
        self.ndim, self.dtype = 2, np.result_type(*(part.dtype for part in self.parts))
        chunks = getattr(self.parts[0], "chunks", None)
        self.chunks = None if chunks is None else (chunks[0], self.shape[1])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> np.ndarray:
        rows, *box = key if isinstance(key, tuple) else (key,)
        blocks = [np.asarray(part[rows]) for part in self.parts]
        blocks = [block.reshape(block.shape[0], -1) for block in blocks]
        found = blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1)
        if self._columns is not None:
            found = some_columns(found, self._columns, check=self._check)
        return found[(slice(None), *box)]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self[:], dtype=dtype)


class RowReader:
    """Reader of consecutive rows of an array, or of a box of each row, for one thread.

    A block is valid until the next one is read. Close the reader after use, so that no file stays
    open.
    """

    def __init__(self, A: Any, box: Box = ()) -> None:
        self._A, self._box = A, box
        self._space: np.ndarray | None = None
        self._on_disk = is_on_disk(A)
        self._file: io.FileIO | None = None
        if self._on_disk and isinstance(A, np.memmap) and not box:
            start = _position_in_file(A)
            if start is not None:
                self._start, self._file = start, io.FileIO(str(A.filename))

    def close(self) -> None:
        """Close the file, if one was opened."""
        if self._file is not None:
            self._file.close()

    def __call__(self, rows: slice) -> np.ndarray:
        """Read a block of rows."""
        if self._file is not None:
            return self._read_file(rows)
        if not self._on_disk:
            return self._A[(rows, *self._box)]
        if not self._box and hasattr(self._A, "read_direct"):  # HDF5
            out = self._buffer(rows.stop - rows.start)
            self._A.read_direct(out, np.s_[rows])
            return out
        block = np.array(self._A[(rows, *self._box)])
        if isinstance(self._A, np.memmap):
            release_pages(self._A)
        return block

    def _buffer(self, n: int) -> np.ndarray:
        """Return a reused buffer for `n` rows, since new memory costs as much as reading."""
        if self._space is None or n > self._space.shape[0]:
            self._space = np.empty((n, *self._A.shape[1:]), dtype=self._A.dtype)
        return self._space[:n]

    def _read_file(self, rows: slice) -> np.ndarray:
        """Read with plain reads, which are faster than page faults and use no mapped memory."""
        assert self._file is not None
        out = self._buffer(rows.stop - rows.start)
        view = memoryview(out.reshape(-1).view(np.uint8).data)
        self._file.seek(self._start + rows.start * (out.nbytes // out.shape[0]))
        while len(view) > 0:
            n = self._file.readinto(view)
            if not n:
                raise ValueError(
                    f"{self._file.name!r} ended before all of its rows were read. The file has "
                    f"changed; open it again."
                )
            view = view[n:]
        return out


def _position_in_file(A: np.memmap) -> int | None:
    """Return the position of the entries of `A` in its file, or None to read `A` itself.

    The entries of `A` must be in the file, in order. `A` may be a part of a memory map; its
    attribute ``offset`` is that of the whole map.
    """
    copy_on_write = A.mode == "c"  # changes in memory are not in the file
    if copy_on_write or A.filename is None or not A.flags.c_contiguous or A.dtype.hasobject:
        return None
    mapped = np.frombuffer(A._mmap, dtype=np.uint8)  # type: ignore[attr-defined]
    within = A.__array_interface__["data"][0] - mapped.__array_interface__["data"][0]
    if not 0 <= within <= mapped.size - A.nbytes or not os.path.exists(A.filename):
        return None
    if A.mode in ("r+", "w+"):
        A.flush()
    start = within + A.offset - A.offset % mmap.ALLOCATIONGRANULARITY
    return start if _same_ends(A, start) else None


def _same_ends(A: np.memmap, start: int) -> bool:
    """Return whether the file is still the one that is mapped, by its first and last entries."""
    if os.path.getsize(A.filename) < start + A.nbytes:  # type: ignore[arg-type]
        # The map is not read: an access beyond the end of the file would kill the process.
        raise ValueError(
            f"{str(A.filename)!r} has been truncated or replaced since it was mapped. Map it again."
        )
    rows = A.reshape(-1)
    with open(A.filename, "rb") as file:  # type: ignore[arg-type]
        for part in (slice(0, 512), slice(max(rows.size - 512, 0), rows.size)):
            mapped = rows[part].tobytes()
            file.seek(start + part.start * A.itemsize)
            if file.read(len(mapped)) != mapped:
                return False
    return True


def in_order(jobs: Iterable[Callable[[], T]], n_workers: int) -> Generator[T, None, None]:
    """Yield the results of `jobs` in their order, computed by several threads.

    A job starts only when at most `n_workers` earlier results have not been used yet.
    """
    waiting: deque[Future[T]] = deque()
    with ThreadPoolExecutor(n_workers, thread_name_prefix="holrr") as pool:
        for job in jobs:
            waiting.append(pool.submit(job))
            if len(waiting) > n_workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def blocks_of_rows(n: int, row_bytes: int, budget: int, chunk: Sequence[int] | None) -> list[slice]:
    """Return slices of rows within `budget` bytes, at chunk borders if chunks have several rows."""
    step = max(1, budget // max(row_bytes, 1))
    rows = chunk[0] if chunk else 1
    if 1 < rows <= step:
        step -= step % rows
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def boxes(shape: Sequence[int], max_entries: int) -> Iterator[Box]:
    """Yield slices that cover a tensor, each of at most `max_entries` entries and at least one.

    The leading modes are split first, so that a box consists of long contiguous parts.

    Examples
    --------
    >>> [b[0] for b in boxes((5, 2), 4)]
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    >>> len(list(boxes((5, 2), 1)))
    10
    """
    if not shape:
        yield ()
        return
    rest = math.prod(shape[1:])
    step = max(1, max_entries // rest)
    for start in range(0, shape[0], step):
        here = slice(start, min(start + step, shape[0]))
        if step == 1 and rest > max_entries:
            yield from ((here, *box) for box in boxes(shape[1:], max_entries))
        else:
            yield (here, *(slice(0, d) for d in shape[1:]))
