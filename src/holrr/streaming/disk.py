"""Streams of arrays on disk: read in blocks of samples, by several threads."""

from __future__ import annotations

import copy
import math
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial, reduce
from typing import Any, Self

import numpy as np

from ..core.namespace import is_numpy_array
from ..core.threads import limit_threads
from ..data.arrays import check_inputs, check_kind, check_outputs, is_on_disk, nan_for_masked
from .passes import Pass, locate_errors
from .reading import Box, MappedRows, RowReader, ScaledRows, blocks_of_rows, boxes, in_order
from .stream import Stream, check_rows_of_inputs

__all__ = ["DiskStream"]

# Maximum number of threads that read and compute. The block of each thread takes an eighth of the
# memory budget.
_MAX_WORKERS = 4


class DiskStream(Stream):
    """Memory maps, HDF5 datasets and Zarr arrays; one of `X` and `Y` may be in memory."""

    def __init__(self, X: Any, Y: Any, sample_weight: Any, max_bytes: int) -> None:
        self._X, self._Y = _checked(X, "X", check_inputs), _checked(Y, "y", check_outputs)
        self._in_memory = None if is_on_disk(self._X) else self._X
        self._describe(self._X, self._Y, sample_weight, max_bytes)

    def with_outputs(
        self, function: Callable[[np.ndarray], np.ndarray], shape: tuple[int, ...]
    ) -> Self:
        other = copy.copy(self)
        other._Y, other.output_shape = MappedRows(self._Y, function, shape), shape
        return other

    def scaled_outputs(self, factor: np.ndarray) -> Self:
        other = copy.copy(self)
        other._Y = ScaledRows(self._Y, factor)
        return other

    def first_outputs(self) -> np.ndarray:
        with closing(RowReader(self._Y)) as read:
            return np.array(nan_for_masked(read(self.first_row)))[0]

    def input_rows(self, index: slice | np.ndarray) -> np.ndarray:
        with closing(RowReader(self._X)) as read:
            if isinstance(index, slice):
                return check_rows_of_inputs(read(index), index)
            order = np.argsort(index, kind="stable")
            rows, wanted = np.empty((index.size, self.n_features), self._X.dtype), index[order]
            step = max(1, self.max_bytes // (64 * self.n_features))
            for start in range(0, self.n_samples, step):
                here = slice(*np.searchsorted(wanted, [start, start + step]))
                if here.start < here.stop:
                    block = read(slice(start, min(start + step, self.n_samples)))
                    rows[order[here]] = block[wanted[here] - start]
        return check_rows_of_inputs(rows, index)

    def _run(self, task: Pass) -> Iterator[tuple[Box, Any]]:
        Y = self._Y if task.outputs else np.empty((self.n_samples, 0))
        most = task.max_outputs
        for box in [()] if most is None else boxes(Y.shape[1:], most):
            yield box, self._reduced(task, Y, box)

    def _reduced(self, task: Pass, Y: Any, box: Box) -> Any:
        """Run a pass over the inputs and a part of the outputs.

        Several threads each read a block and process it on one core, so that reading and computing
        overlap without competing for cores. Fewer threads, or only this one, are used if the
        results would exceed the budget.
        """
        X = self._X if task.X is None else task.X
        n_outputs = math.prod(s.stop - s.start for s in box) if box else math.prod(Y.shape[1:])
        width = X.shape[1] + self.n_mapped + n_outputs
        chunk = getattr(Y, "chunks", None)
        blocks = blocks_of_rows(self.n_samples, 8 * width, self.max_bytes // 8, chunk)
        n_workers = min(_MAX_WORKERS, len(blocks), os.cpu_count() or 1)
        n_workers = min(n_workers, self.max_bytes // (4 * task.size))
        cores = (os.cpu_count() or 1) // max(n_workers, 1)
        own, readers = threading.local(), []
        both = lambda a, b: task.join([a, b])  # noqa: E731

        def job(rows: slice) -> Any:
            if not hasattr(own, "readers"):
                own.readers = RowReader(X), RowReader(Y, box)
                readers.extend(own.readers)
            parts = [*(read(rows) for read in own.readers), *self._weights_and_labels(task, rows)]
            where = f"the block of samples {rows.start} to {rows.stop - 1}"
            with limit_threads(cores), locate_errors(where, rows, box):
                return task.map_block(*parts)

        try:
            if n_workers < 1:
                return reduce(both, map(job, blocks))
            jobs = (partial(job, rows) for rows in blocks)
            with closing(in_order(jobs, n_workers)) as results:
                return reduce(both, results)
        finally:
            for reader in readers:
                reader.close()


def _checked(A: Any, name: str, check: Callable[[Any], Any]) -> Any:
    """Return an array of NumPy, or one on disk, whose values are checked when they are read."""
    if not is_on_disk(A):
        A = check(A)
        if not is_numpy_array(A):
            raise TypeError(
                f"{name} must be a NumPy array or an array on disk, since the other one of X and y "
                f"is on disk; got {type(A).__module__}.{type(A).__name__}."
            )
        return A
    if len(A.shape) < 1 or (name == "X" and len(A.shape) != 2):
        raise ValueError(
            f"{name} must have shape (n_samples, {'n_features' if name == 'X' else 'd1, ..., dp'});"
            f" got {tuple(A.shape)}."
        )
    if 0 in A.shape:
        raise ValueError(f"{name} must not be empty; got shape {tuple(A.shape)}.")
    check_kind(A, name)
    return A
