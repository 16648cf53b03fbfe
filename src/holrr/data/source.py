"""Data that do not fit in memory, seen as what can give moments."""

from __future__ import annotations

import copy
import math
import os
import threading
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Any, Self, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from ..core.namespace import is_array, is_numpy_array
from .arrays import check_inputs, check_outputs, check_weights
from .budget import DEFAULT_MAX_BYTES, check_budget
from .moments import Moments
from .reading import Box, RowReader, blocks_of_rows, boxes, in_order, is_on_disk
from .running import Running, add_by_label, errors_say_where
from .scores import Errors, add_errors

__all__ = ["DiskSource", "Source", "check_lengths", "is_dask", "open_source", "weights_of"]


T = TypeVar("T")

# Threads that read and compute: each takes an eighth of the memory budget for its block.
_MAX_WORKERS = 4


class Source(metaclass=ABCMeta):
    """Samples that are only ever looked at in blocks.

    Attributes
    ----------
    n_samples, n_features : int
    output_shape : tuple of int
        ``(d1, ..., dp)``.
    weights : array of shape (n_samples,), or None
    max_bytes : int
        The memory budget.
    """

    n_samples: int
    n_features: int
    output_shape: tuple[int, ...]
    weights: np.ndarray | None
    max_bytes: int
    # What the inputs are mapped to as they are read, and how many numbers a row takes for it.
    features: Callable[[Any], Any] | None = None
    n_mapped: int = 0

    def mapped(self, features: Callable[[Any], Any], n_mapped: int) -> Self:
        """The same samples with their inputs mapped to features as they are read.

        Parameters
        ----------
        features : callable
            From inputs, (n, n_features), to features, (n, k).
        n_mapped : int
            How many numbers a row takes on the way, for the memory budget.
        """
        other = copy.copy(self)
        other.features, other.n_mapped = features, n_mapped
        return other

    @abstractmethod
    def input_rows(self, index: np.ndarray) -> np.ndarray:
        """Some rows of `X`, in memory."""

    @abstractmethod
    def fold_moments(
        self, labels: np.ndarray | None, n_folds: int, response_grams: bool = False
    ) -> list[Moments]:
        """Moments of the samples of each label, from one pass over the data.

        Parameters
        ----------
        labels : array of shape (n_samples,), or None
            From 0 to ``n_folds - 1``, or negative for samples that are left out; None for one fold
            with all samples.
        n_folds : int
        response_grams : bool
        """

    @abstractmethod
    def output_blocks(self, max_entries: int) -> Iterator[tuple[Box, Moments]]:
        """Parts of the outputs, as slices of modes 1 to p, with the moments of each.

        ``X'Y`` of a part has `max_entries` entries or fewer where the data allow it.
        """

    @abstractmethod
    def errors(self, model: Any) -> Errors | None:
        """What the score of a fitted model needs, from one pass over the data."""

    def score(self, model: Any) -> float:
        """R2 of a fitted model, averaged over the outputs."""
        expected = np.shape(model.intercept_)
        if self.output_shape != expected:
            raise ValueError(
                f"y must have shape {(self.n_samples, *expected)} to be scored against the "
                f"predictions; got {(self.n_samples, *self.output_shape)}."
            )
        found = self.errors(model)
        assert found is not None  # some weight is positive, see check_weights
        return found.r2()

    def moments(self, response_grams: bool = False) -> Moments:
        """Moments of all samples."""
        return self.fold_moments(None, 1, response_grams)[0]

    @property
    def is_wide(self) -> bool:
        """Whether ``X'Y`` itself is too large to be held and merged in memory."""
        return 8 * self.n_features * math.prod(self.output_shape) > self.max_bytes // 4


def open_source(
    X: Any, Y: Any, sample_weight: Any = None, max_bytes: int | None = None
) -> Source | None:
    """The data as a source where they must not be read whole; else None.

    Data on disk that fit a quarter of the memory budget are small: they can be read.
    """
    budget = check_budget(max_bytes)
    if is_dask(X) or is_dask(Y):
        from .dask import DaskSource

        return DaskSource(X, Y, sample_weight, budget)
    if not (is_on_disk(X) or is_on_disk(Y)):
        return None
    size = sum(8 * math.prod(A.shape) for A in (X, Y) if is_on_disk(A))
    return DiskSource(X, Y, sample_weight, budget) if size > budget // 4 else None


def is_dask(A: Any) -> bool:
    """Whether `A` is a Dask array, without an import of Dask for the question."""
    return type(A).__module__.partition(".")[0] == "dask" and hasattr(A, "__dask_graph__")


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
        self.max_bytes = max_bytes
        self._X = _check_on_disk(X, "X", 2) if is_on_disk(X) else _in_memory(check_inputs(X), "X")
        self._Y = _check_on_disk(Y, "y", 1) if is_on_disk(Y) else _in_memory(check_outputs(Y), "y")
        check_lengths(self._X, self._Y)
        self.n_samples, self.n_features = self._X.shape
        self.output_shape = tuple(self._Y.shape[1:])
        self.weights = weights_of(sample_weight, self.n_samples)

    def fold_moments(
        self, labels: np.ndarray | None, n_folds: int, response_grams: bool = False
    ) -> list[Moments]:
        def of_block(rows: slice, X: np.ndarray, Y: np.ndarray, w: Any) -> list[Running]:
            folds = [Running(response_grams) for _ in range(n_folds)]
            add_by_label(folds, None if labels is None else labels[rows], X, Y, w)
            return folds

        total = [Running(response_grams) for _ in range(n_folds)]
        for folds in self._mapped(of_block):
            total = [Running.joined(pair) for pair in zip(total, folds, strict=True)]
        return [fold.result() for fold in total]

    def input_rows(self, index: np.ndarray) -> np.ndarray:
        order = np.argsort(index, kind="stable")
        rows = np.empty((index.size, self.n_features), dtype=self._X.dtype)
        read, wanted = RowReader(self._X), index[order]
        step = max(1, self.max_bytes // (64 * self.n_features))
        for start in range(0, self.n_samples, step):
            here = slice(*np.searchsorted(wanted, [start, start + step]))
            if here.start < here.stop:
                block = read(slice(start, min(start + step, self.n_samples)))
                rows[order[here]] = block[wanted[here] - start]
        return check_inputs(rows)

    def errors(self, model: Any) -> Errors | None:
        total: Errors | None = None
        for found in self._mapped(lambda rows, X, Y, w: Errors.of(model, X, Y, w)):
            total = add_errors([total, found])
        return total

    def output_blocks(self, max_entries: int) -> Iterator[tuple[Box, Moments]]:
        def of_block(rows: slice, X: np.ndarray, Y: np.ndarray, w: Any) -> Running:
            part = Running()
            part.add(X, Y, w)
            return part

        for box in boxes(self.output_shape, max_entries // self.n_features):
            total = Running()
            for part in self._mapped(of_block, box):
                total = Running.joined([total, part])
            yield box, total.result()

    @cached_property
    def _libraries(self) -> ThreadpoolController:
        """The libraries of this process that have threads of their own; looked for once."""
        return ThreadpoolController()

    def _mapped(self, of_block: Callable[..., T], box: Box = ()) -> Iterator[T]:
        """What `of_block` makes of each block ``(rows, X, Y, weights)``, in order.

        A thread reads a block and computes with it on one core while others do the same, so that
        reading and computing overlap without competing for cores.
        """
        width = self.n_features + self.n_mapped + math.prod(_sizes(box, self.output_shape))
        chunk = getattr(self._Y, "chunks", None)
        blocks = blocks_of_rows(self.n_samples, 8 * width, self.max_bytes // 8, chunk)
        own = threading.local()

        def job(rows: slice) -> T:
            if not hasattr(own, "readers"):
                own.readers = RowReader(self._X), RowReader(self._Y, box)
            X, Y = (read(rows) for read in own.readers)
            if self.features is not None:
                X = self.features(check_inputs(X))
            w = None if self.weights is None else self.weights[rows]
            with errors_say_where(f"the block of samples {rows.start} to {rows.stop - 1}"):
                return of_block(rows, X, Y, w)

        n_workers = min(_MAX_WORKERS, len(blocks), os.cpu_count() or 1)
        cores = (os.cpu_count() or 1) // n_workers
        with self._libraries.limit(limits=cores, user_api="blas"):
            yield from in_order((partial(job, rows) for rows in blocks), n_workers)


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
    if np.dtype(A.dtype).kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers; got dtype {A.dtype}.")
    return A


def _in_memory(A: Any, name: str) -> np.ndarray:
    if is_array(A) and not is_numpy_array(A):
        raise TypeError(
            f"{name} must be a NumPy array or on disk, too, where the other one is on disk; got "
            f"{type(A).__module__}.{type(A).__name__}."
        )
    return A


def check_lengths(X: Any, Y: Any) -> None:
    """Inputs and outputs must have the same number of samples."""
    if X.shape[0] != Y.shape[0]:
        raise ValueError(
            f"X and y must have the same number of samples; got {X.shape[0]} in X and "
            f"{Y.shape[0]} in y (inconsistent numbers of samples)."
        )


def weights_of(sample_weight: Any, n_samples: int) -> np.ndarray | None:
    """Weights, checked for all samples at once, since a single block may have none."""
    if is_on_disk(sample_weight):
        sample_weight = np.asarray(sample_weight)
    return check_weights(sample_weight, np.empty((n_samples, 0)))
