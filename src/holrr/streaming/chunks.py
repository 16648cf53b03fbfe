"""Data that are not processed at once: memory maps, Dask arrays, and sparse inputs.

A function is applied to chunks of samples, and the results are merged. `Chunks.fold_moments` sums
the moments of the chunks in one pass, and a fit or a search continues from these moments as from
moments in memory. `Chunks.errors` sums the errors of a fitted model.
"""

from __future__ import annotations

import copy
import math
import mmap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add
from typing import Any, Self

import numpy as np

from ..core.checks import BadEntryError, check_finite
from ..core.namespace import is_numpy_array, namespace_of
from ..core.sparse import is_sparse
from ..core.threads import map_in_threads, n_threads_for
from ..core.warn import warn
from ..data.arrays import (
    as_slice,
    check_inputs,
    check_kind,
    check_lengths,
    check_outputs,
    check_pair,
    check_weights,
    is_dask,
    is_memory_map,
    locate_rows,
    nan_for_masked,
    unmasked,
    weights_of,
)
from .budget import current_budget
from .moments import Moments

__all__ = ["Chunks", "for_workers", "locate_errors", "merged", "moments_of", "open_chunks"]

# Shares of the memory budget: memory maps of this size are not divided, and a chunk of a memory
# map has this size.
_WHOLE, _CHUNK = 1 / 8, 1 / 16
# Largest number of chunks of a memory map that are processed at the same time.
_MAX_THREADS = 4


@dataclass(frozen=True, eq=False)
class Chunks:
    """Samples that are read in chunks: memory maps, Dask arrays, or sparse inputs (one chunk).

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
    Y : array of shape (n_samples, ...)
        Stored outputs.
    w : array of shape (n_samples,), or None
        Weights of the samples.
    output_shape : tuple of int
        ``(d1, ..., dp)``, the shape of the outputs after the changes.
    changes : tuple of callables
        Changes of the outputs of each chunk, applied one after the other.
    """

    X: Any
    Y: Any
    w: np.ndarray | None
    output_shape: tuple[int, ...]
    changes: tuple[Callable[[np.ndarray], np.ndarray], ...] = ()

    @property
    def n_samples(self) -> int:
        """Number of samples, including those without weight."""
        return self.X.shape[0]

    @property
    def n_features(self) -> int:
        """Number of columns of `X`."""
        return self.X.shape[1]

    @property
    def dtype(self) -> str:
        """Floating-point type of the data: "float32" if `X` and `Y` are float32."""
        single = all(np.dtype(A.dtype) == np.float32 for A in (self.X, self.Y))
        return "float32" if single else "float64"

    @property
    def is_sparse(self) -> bool:
        """Whether `X` is sparse. Inputs and outputs are then in memory."""
        return is_sparse(self.X)

    @property
    def is_wide(self) -> bool:
        """Whether ``XX'`` of sparse inputs is smaller than ``X'X``."""
        return self.is_sparse and self.n_samples < self.n_features

    @property
    def outputs(self) -> np.ndarray:
        """All outputs, of shape (n_samples, d1, ..., dp), of data with sparse inputs."""
        return _changed(self.changes, self.Y)

    def with_outputs(
        self, change: Callable[[np.ndarray], np.ndarray], shape: tuple[int, ...] | None = None
    ) -> Self:
        """Return the data with outputs that are changed when they are read.

        Parameters
        ----------
        change : callable
            Maps the outputs of some samples, with NaN for masked entries, to changed outputs.
        shape : tuple of int, optional
            Shape of the changed outputs of a sample. By default, the shape does not change.
        """
        shape = self.output_shape if shape is None else shape
        return replace(self, changes=(*self.changes, change), output_shape=shape)

    def scaled_outputs(self, factor: np.ndarray) -> Self:
        """Return the data with outputs multiplied by a factor of shape (d1, ..., dp).

        Where the factor is zero, outputs are zero even if they are not finite.
        """
        return self.with_outputs(partial(_scaled, factor=factor))

    def first_outputs(self) -> np.ndarray:
        """Return the outputs of the first sample with weight, (d1, ..., dp); NaN if masked."""
        first = 0 if self.w is None else int(np.flatnonzero(self.w)[0])
        row = self.Y[first : first + 1]
        row = row.compute() if is_dask(row) else row
        return _changed(self.changes, np.asarray(nan_for_masked(row)))[0]

    def input_rows(self, index: np.ndarray) -> np.ndarray:
        """Read some rows of `X` into memory."""
        rows = self.X[index]
        rows = rows.compute() if is_dask(rows) else rows
        with locate_rows(index):
            return check_inputs(rows.toarray() if is_sparse(rows) else unmasked(rows, "X"))

    # ------------------------------------------------------------ one pass over the chunks

    def moments(self, response_grams: bool = False) -> Moments:
        """Compute the moments of all samples."""
        return self.fold_moments(None, 1, response_grams)[0]

    def fold_moments(
        self,
        labels: np.ndarray | None,
        n_folds: int,
        response_grams: bool = False,
        *,
        features: Callable[[Any], Any] | None = None,
        n_mapped: int = 0,
    ) -> list[Moments]:
        """Compute the moments of the samples of each fold in one pass.

        Parameters
        ----------
        labels : array of int, of shape (n_samples,), or None
            Fold of each sample; negative for samples that are left out. None is one fold with all
            samples.
        n_folds : int
            Number of folds.
        response_grams : bool
            Whether to compute the Gram matrices of the output modes.
        features : callable, optional
            Maps inputs to the features whose moments are computed.
        n_mapped : int
            Number of values that a row needs for its features, for the memory budget.
        """
        if features is None:
            self._warn_of_size(n_folds)
        function = partial(
            _fold_moments, n_folds=n_folds, response_grams=response_grams, features=features
        )
        # A chunk is not smaller than its moments.
        least = max(self.n_features, n_mapped // 2)
        found = self._reduce(function, _merged_folds, labels, least=least, more=n_mapped)
        if any(m is None for m in found):
            raise ValueError("at least one sample of positive weight is needed; got none.")
        return found

    def errors(self, sums_of: Callable[..., Any]) -> Any:
        """Compute sums over all samples, for the score of a fitted model.

        Parameters
        ----------
        sums_of : callable
            Maps checked inputs, outputs and weights of a chunk to sums that can be added.
        """
        return self._reduce(partial(_errors, sums_of=sums_of), partial(reduce, add))

    def _reduce(
        self,
        function: Callable[..., Any],
        join: Callable[[Sequence[Any]], Any],
        labels: np.ndarray | None = None,
        *,
        least: int = 1,
        more: int = 0,
    ) -> Any:
        """Apply a function to all chunks, and join the results.

        Parameters
        ----------
        function : callable
            Function of the inputs, outputs, weights and labels of a chunk.
        join : callable
            Merges the results of neighbouring chunks.
        labels : array of int, of shape (n_samples,), optional
        least : int
            Smallest number of samples of a chunk.
        more : int
            Number of additional values that a sample needs, for the memory budget.
        """
        call = partial(_call, function=function, changes=self.changes)
        if is_dask(self.X) or is_dask(self.Y):
            from .dask import reduce_chunks

            return reduce_chunks(self.X, self.Y, (self.w, labels), call, join, least)
        if self.is_sparse:
            return call(self.X, self.Y, self.w, labels, slice(0, self.n_samples))

        def of_rows(rows: slice) -> Any:
            w, numbers = (None if A is None else A[rows] for A in (self.w, labels))
            return call(_read(self.X, rows), _read(self.Y, rows), w, numbers, rows)

        found: list[Any] = []
        for chunks in self._slices(least, more):
            some = [of_rows(chunks[0])] if len(chunks) == 1 else map_in_threads(of_rows, chunks)
            found = [join([*found, *some])]
            for A in (self.X, self.Y):
                if is_memory_map(A):
                    _release_pages(A)
        return found[0]

    def _slices(self, least: int, more: int) -> Iterator[list[slice]]:
        """Yield the samples of chunks of a memory map that are read at the same time."""
        n, limit = self.n_samples, int(_CHUNK * current_budget())
        row_bytes = 8 * (self.n_features + more + math.prod(self.Y.shape[1:]))
        step = max(1, least, limit // row_bytes)
        n_threads = n_threads_for(math.inf) if step * row_bytes <= limit else 1
        starts = range(0, n, step)
        slices = [slice(start, min(start + step, n)) for start in starts]
        for first in range(0, len(slices), k := min(n_threads, _MAX_THREADS)):
            yield slices[first : first + k]

    def _warn_of_size(self, n_folds: int) -> None:
        """Warn if the moments themselves exceed the memory budget."""
        d, D, limit = self.n_features, math.prod(self.output_shape), current_budget()
        size = 8 * n_folds * d * (d + D)
        if size <= limit or (self.is_sparse and n_folds == 1):  # the user has X in memory
            return
        warn(
            f"the moments of {d} features and {D} outputs take {size / 2**20:.3g} MiB"
            f"{f' in {n_folds} folds' if n_folds > 1 else ''}, and a fit needs a few times as "
            f"much; the memory budget is {limit / 2**20:.3g} MiB. Fit fewer features or outputs "
            f"at a time, or increase the limit with holrr.streaming.memory_budget."
        )


def open_chunks(X: Any, Y: Any, sample_weight: Any = None) -> Chunks | None:
    """Return data that are read in chunks, or None for data that are processed at once.

    Memory maps that fit into an eighth of the memory budget are processed at once. So are memory
    maps and Dask arrays with at most as many samples as features, whose moments are not smaller.

    Parameters
    ----------
    X, Y, sample_weight
        Data without labels.
    """
    if is_sparse(X):
        return _open_sparse(X, Y, sample_weight)
    lazy = is_dask(X) or is_dask(Y)
    if not (lazy or is_memory_map(X) or is_memory_map(Y)):
        return None
    X, Y = _checked(X, "X", check_inputs), _checked(Y, "y", check_outputs)
    if X.ndim != 2:
        raise ValueError(f"X must have shape (n_samples, n_features); got {tuple(X.shape)}.")
    check_lengths(X, Y)
    size = 8 * (math.prod(X.shape) + math.prod(Y.shape))
    if X.shape[0] <= X.shape[1] or (not lazy and size <= _WHOLE * current_budget()):
        return None
    return Chunks(X, Y, weights_of(sample_weight, X.shape[0]), tuple(Y.shape[1:]))


def _open_sparse(X: Any, Y: Any, sample_weight: Any) -> Chunks:
    X, Y = check_inputs(X, sparse=True), check_outputs(Y)
    if not is_numpy_array(Y):
        raise TypeError(
            f"y must be a NumPy array if X is sparse; got {type(Y).__module__}.{type(Y).__name__}."
        )
    check_lengths(X, Y)
    return Chunks(X, Y, weights_of(sample_weight, X.shape[0]), tuple(Y.shape[1:]))


def _checked(A: Any, name: str, check: Callable[[Any], Any]) -> Any:
    """Return a Dask array or a memory map, whose entries are checked later, or a checked array."""
    if is_dask(A):
        from .dask import known_chunks

        return known_chunks(A, name)
    if is_memory_map(A):
        if A.ndim == 0 or 0 in A.shape:
            raise ValueError(f"{name} must have samples and no empty mode; got shape {A.shape}.")
        check_kind(A, name)
        return A
    A = check(A)
    if not is_numpy_array(A):
        raise TypeError(
            f"{name} must be a NumPy array, since the other one of X and y is a memory map or a "
            f"Dask array; got {type(A).__module__}.{type(A).__name__}."
        )
    return A


def for_workers(model: Any) -> Any:
    """Return the model without attributes that predictions for unlabelled chunks do not need."""
    found = copy.copy(getattr(model, "best_estimator_", model))
    for name in ("moments_", "feature_names_in_", "labels_"):
        vars(found).pop(name, None)
    return found


# ---------------------------------------------------------------- functions of a chunk


def _call(
    X: Any,
    Y: Any,
    w: np.ndarray | None,
    labels: np.ndarray | None,
    rows: slice,
    function: Callable[..., Any],
    changes: Sequence[Callable[[np.ndarray], np.ndarray]],
) -> Any:
    """Apply a function to a chunk; errors name its samples and positions in the whole data."""
    with locate_errors(f"samples {rows.start} to {rows.stop - 1}", rows):
        Y = _changed(changes, nan_for_masked(Y)) if changes else unmasked(Y, "y")
        return function(X if is_sparse(X) else unmasked(X, "X"), Y, w, labels)


def _changed(changes: Sequence[Callable[[np.ndarray], np.ndarray]], Y: Any) -> np.ndarray:
    return reduce(lambda A, change: change(A), changes, np.asarray(Y))


def _scaled(Y: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Multiply outputs by a factor; 0 times NaN is 0.

    >>> _scaled(np.array([[1.0, np.nan]]), np.array([2.0, 0.0]))
    array([[2., 0.]])
    """
    factor = factor.astype(Y.dtype) if Y.dtype == np.float32 else factor
    return np.where(factor > 0, Y, np.zeros((), Y.dtype)) * factor


def moments_of(X: Any, Y: Any, w: Any = None, response_grams: bool = False) -> Moments | None:
    """Check a part of the data, and return its moments; None if no sample has weight."""
    X, Y = check_pair(X, Y, sparse=True)
    w = check_weights(w, X, all_zero=True)
    if w is not None and not bool(namespace_of(w).any(w)):
        check_finite(Y, "y")
        return None
    return Moments.from_checked(X, Y, w, response_grams)


def merged(parts: Sequence[Moments | None]) -> Moments | None:
    """Return the moments of all parts together; None is a part without weight."""
    some = [part for part in parts if part is not None]
    return reduce(add, some) if some else None


def _merged_folds(chunks: Sequence[list[Moments | None]]) -> list[Moments | None]:
    return [merged(parts) for parts in zip(*chunks, strict=True)]


def _fold_moments(
    X: Any,
    Y: Any,
    w: np.ndarray | None,
    labels: np.ndarray | None,
    n_folds: int,
    response_grams: bool,
    features: Callable[[Any], Any] | None,
) -> list[Moments | None]:
    """Return the moments of the samples of each fold; samples without weight are checked, too."""
    X = X if features is None else features(check_inputs(X))
    if labels is None:
        return [moments_of(X, Y, w, response_grams)]

    def of_rows(rows: np.ndarray) -> Moments | None:
        if not rows.size:
            return None
        index = as_slice(rows)
        with locate_rows(index):
            return moments_of(X[index], Y[index], None if w is None else w[index], response_grams)

    if w is not None:
        of_rows(np.flatnonzero((labels < 0) & (w == 0)))
    return [of_rows(np.flatnonzero(labels == fold)) for fold in range(n_folds)]


def _errors(X: Any, Y: Any, w: np.ndarray | None, labels: None, sums_of: Callable[..., Any]) -> Any:
    return sums_of(check_inputs(X, sparse=True), check_outputs(Y), w)


@contextmanager
def locate_errors(where: str, rows: slice | None = None) -> Iterator[None]:
    """Name a part of the data in errors about its values.

    If its samples (`rows`) are known, errors report the position of a bad entry in the whole data.
    """
    try:
        yield
    except BadEntryError as error:
        error = error if rows is None else error.moved(rows)
        error.prefix = f"in {where}: {error.prefix}"
        raise error from None
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"in {where}: {error}") from error


def _read(A: np.ndarray, rows: slice) -> np.ndarray:
    """Return rows of an array; those of a memory map are copied.

    A copy reads the file in its order. Matrix products read it in strides, which took 1.4 times as
    long for a file that was not in the cache of the system.
    """
    return np.array(A[rows]) if is_memory_map(A) else A[rows]


def _release_pages(A: np.memmap) -> None:
    """Release the memory of the pages of a memory map; the system may keep them in its cache.

    Pages of a private (copy-on-write) map are kept, since its changes are not in the file.
    """
    pages: Any = getattr(A, "_mmap", None)
    if A.mode != "c" and hasattr(pages, "madvise"):
        pages.madvise(mmap.MADV_DONTNEED)
