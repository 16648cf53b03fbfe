"""Arrays on disk as a source: read in blocks of samples, by several threads."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial, reduce
from typing import Any, TypeVar

import numpy as np

from ..core.namespace import is_array, is_numpy_array
from ..core.responses import ResponseSums
from ..core.threads import limit_threads
from .arrays import check_inputs, check_outputs
from .budget import DEFAULT_MAX_BYTES
from .moments import Moments
from .reading import Box, RowReader, blocks_of_rows, boxes, in_order, is_on_disk
from .running import Running, errors_say_where, join_blocks, moments_of_block
from .scores import Errors, add_errors, errors_of
from .source import (
    Source,
    add_sums,
    check_kind,
    check_rows_of_inputs,
    light,
    sums_of_block,
)

__all__ = ["DiskSource"]

T = TypeVar("T")

# Threads that read and compute: each takes an eighth of the memory budget for its block.
_MAX_WORKERS = 4


class DiskSource(Source):
    """Memory maps, HDF5 datasets and Zarr arrays; one of `X` and `Y` may be in memory.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
    Y : array of shape (n_samples, d1, ..., dp)
    sample_weight : array of shape (n_samples,), optional
    max_bytes : int
        The memory budget.
    """

    def __init__(
        self, X: Any, Y: Any, sample_weight: Any = None, max_bytes: int = DEFAULT_MAX_BYTES
    ) -> None:
        self._X = _check_on_disk(X, "X", 2) if is_on_disk(X) else _in_memory(check_inputs(X), "X")
        self._Y = _check_on_disk(Y, "y", 1) if is_on_disk(Y) else _in_memory(check_outputs(Y), "y")
        self._in_memory = None if is_on_disk(self._X) else self._X
        self._describe(self._X, self._Y, sample_weight, max_bytes)

    def fold_moments(
        self, labels: np.ndarray | None, n_folds: int, response_grams: bool = False
    ) -> list[Moments]:
        def of_block(rows: slice, X: np.ndarray, Y: np.ndarray, w: Any) -> list[Running]:
            some = None if labels is None else labels[rows]
            return moments_of_block(X, Y, w, some, n_folds, response_grams, self.features)

        self._warn_of_size(n_folds)
        n_features = max(self.n_features, self.n_mapped // 2)
        entries = n_features * (n_features + math.prod(self.output_shape))
        found = self._reduced(of_block, join_blocks, result=8 * n_folds * entries)
        return [running.result() for running in found]

    def input_rows(self, index: np.ndarray) -> np.ndarray:
        order = np.argsort(index, kind="stable")
        rows, wanted = np.empty((index.size, self.n_features), self._X.dtype), index[order]
        step = max(1, self.max_bytes // (64 * self.n_features))
        with closing(RowReader(self._X)) as read:
            for start in range(0, self.n_samples, step):
                here = slice(*np.searchsorted(wanted, [start, start + step]))
                if here.start < here.stop:
                    block = read(slice(start, min(start + step, self.n_samples)))
                    rows[order[here]] = block[wanted[here] - start]
        return check_rows_of_inputs(rows, index)

    def _read_inputs(self) -> np.ndarray:
        with closing(RowReader(self._X)) as read:
            return check_inputs(read(slice(0, self.n_samples)))

    def input_moments(self) -> Moments:
        def of_block(rows: slice, X: np.ndarray, Y: np.ndarray, w: Any) -> list[Running]:
            return moments_of_block(X, X[:, 0], w)

        nothing, result = np.empty((self.n_samples, 0)), 8 * self.n_features**2
        (total,) = self._reduced(of_block, join_blocks, Y=nothing, result=result)
        return replace(total.result(), dtype=self.dtype)

    def responses(
        self,
        basis: np.ndarray | None = None,
        mean_x: np.ndarray | None = None,
        *,
        max_entries: int | None = None,
        response_grams: bool = False,
    ) -> Iterator[tuple[Box, ResponseSums]]:
        def of_block(rows: slice, X: np.ndarray, Y: np.ndarray, w: Any) -> ResponseSums | None:
            return sums_of_block(X, Y, w, mean_x, response_grams)

        X = self._X if basis is None else basis
        parts: Any = [()]
        if max_entries is not None:
            parts = boxes(self.output_shape, max_entries // X.shape[1])
        for box in parts:
            entries = X.shape[1] * math.prod(_sizes(box, self.output_shape))
            sums = self._reduced(of_block, add_sums, X=X, box=box, result=8 * entries)
            assert sums is not None  # some weight is positive, see check_weights
            yield box, sums

    def errors(self, model: Any) -> Errors:
        model = light(model)

        def of_block(rows: slice, X: np.ndarray, Y: np.ndarray, w: Any) -> Errors:
            return errors_of(model, check_inputs(X), check_outputs(Y), w)

        result = 24 * math.prod(self.output_shape)
        return self._reduced(of_block, add_errors, result=result)

    def _reduced(
        self,
        of_block: Callable[..., T],
        join: Callable[[Sequence[T]], T],
        *,
        X: Any = None,
        Y: Any = None,
        box: Box = (),
        result: int,
    ) -> T:
        """What `of_block` makes of each block ``(rows, X, Y, weights)``, joined in their order.

        A thread reads a block and computes with it on one core while others do the same, so that
        reading and computing overlap without competing for cores. There are fewer threads, or only
        this one, where the results, of `result` bytes each, would exceed the budget.
        """
        X, Y = (self._X if X is None else X), (self._Y if Y is None else Y)
        width = X.shape[1] + self.n_mapped + math.prod(_sizes(box, Y.shape[1:]))
        chunk = getattr(Y, "chunks", None)
        blocks = blocks_of_rows(self.n_samples, 8 * width, self.max_bytes // 8, chunk)
        n_workers = min(_MAX_WORKERS, len(blocks), os.cpu_count() or 1)
        n_workers = min(n_workers, self.max_bytes // (4 * result))
        cores = (os.cpu_count() or 1) // max(n_workers, 1)
        own, readers = threading.local(), []
        both = lambda a, b: join([a, b])  # noqa: E731

        def job(rows: slice) -> T:
            if not hasattr(own, "readers"):
                own.readers = RowReader(X), RowReader(Y, box)
                readers.extend(own.readers)
            parts = [read(rows) for read in own.readers]
            w = None if self.weights is None else self.weights[rows]
            where = f"the block of samples {rows.start} to {rows.stop - 1}"
            with limit_threads(cores), errors_say_where(where, rows, box):
                return of_block(rows, *parts, w)

        try:
            if n_workers < 1:
                return reduce(both, map(job, blocks))
            jobs = (partial(job, rows) for rows in blocks)
            with closing(in_order(jobs, n_workers)) as results:
                return reduce(both, results)
        finally:
            for reader in readers:
                reader.close()


def _sizes(box: Box, shape: tuple[int, ...]) -> list[int]:
    return [s.stop - s.start for s in box] + list(shape[len(box) :])


# ---------------------------------------------------------------- validation


def _check_on_disk(A: Any, name: str, min_ndim: int) -> Any:
    """Shape and type of an array on disk; its values are checked when they are read."""
    if len(A.shape) < min_ndim or (name == "X" and len(A.shape) != 2):
        raise ValueError(
            f"{name} must have shape (n_samples, {'n_features' if name == 'X' else 'd1, ..., dp'});"
            f" got {tuple(A.shape)}."
        )
    if 0 in A.shape:
        raise ValueError(f"{name} must not be empty; got shape {tuple(A.shape)}.")
    check_kind(A, name)
    return A


def _in_memory(A: Any, name: str) -> np.ndarray:
    if is_array(A) and not is_numpy_array(A):
        raise TypeError(
            f"{name} must be a NumPy array or on disk, too, where the other one is on disk; got "
            f"{type(A).__module__}.{type(A).__name__}."
        )
    return A
