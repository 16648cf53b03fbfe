"""Data that are read in blocks of samples: moments, products and errors from one pass."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np

from ..core.moments import ResponseSums
from ..core.sparse import is_sparse
from ..core.warn import warn
from ..data.arrays import (
    check_inputs,
    check_kind,
    check_lengths,
    is_dask,
    is_on_disk,
    locate_rows,
    unmasked,
    weights_of,
)
from .budget import check_budget
from .moments import Moments
from .passes import (
    Pass,
    added,
    errors_of_block,
    join_blocks,
    join_outputs,
    moments_of_block,
    moments_of_inputs,
    sums_of_block,
)
from .reading import Box

__all__ = ["Stream", "check_rows_of_inputs", "for_workers", "open_stream"]


class Stream(ABC):
    """Samples that are read in blocks: arrays on disk (`DiskStream`) or of Dask (`DaskStream`).

    Sparse inputs (`SparseStream`) are one block.
    """

    n_samples: int
    n_features: int
    output_shape: tuple[int, ...]  # ``(d1, ..., dp)``
    weights: np.ndarray | None  # sample weights, of shape (n_samples,)
    dtype: str  # floating-point type of the data, "float64" or "float32"
    max_bytes: int  # the memory budget
    _in_memory: np.ndarray | None  # `X`, if it is in memory and the outputs are not
    # Function that maps the inputs when they are read, and the numbers that a row takes for it.
    features: Callable[[Any], Any] | None = None
    n_mapped: int = 0

    def _describe(self, X: Any, Y: Any, sample_weight: Any, max_bytes: int) -> None:
        """Set the attributes, from data whose shapes and types were checked."""
        check_lengths(X, Y)
        self.n_samples, self.n_features = X.shape
        self.output_shape, self.max_bytes = tuple(Y.shape[1:]), max_bytes
        self.weights = weights_of(sample_weight, self.n_samples)
        single = all(np.dtype(A.dtype) == np.float32 for A in (X, Y))
        self.dtype = "float32" if single else "float64"

    def mapped(self, features: Callable[[Any], Any], n_mapped: int) -> Self:
        """Return the stream with inputs that are mapped to features when moments are computed.

        For the memory budget, the map needs `n_mapped` numbers for each row.
        """
        other = copy.copy(self)
        other.features, other.n_mapped = features, n_mapped
        return other

    @abstractmethod
    def with_outputs(
        self, function: Callable[[np.ndarray], np.ndarray], shape: tuple[int, ...]
    ) -> Self:
        """Return the stream with outputs that are mapped to this shape when they are read.

        Errors of the function about an entry of a block report its position in the whole data.
        """

    @abstractmethod
    def scaled_outputs(self, factor: np.ndarray) -> Self:
        """Return the stream with outputs that are multiplied by `factor` when they are read.

        The factor has shape (d1, ..., dp). Where it is zero, the outputs are zero even if they are
        not finite in the data. Outputs are read in the same parts as before.
        """

    @abstractmethod
    def first_outputs(self) -> np.ndarray:
        """Return the outputs of the first sample with weight, (d1, ..., dp); NaN if masked."""

    @property
    def first_row(self) -> slice:
        """Slice of the first sample with weight."""
        first = 0 if self.weights is None else int(np.flatnonzero(self.weights)[0])
        return slice(first, first + 1)

    @abstractmethod
    def input_rows(self, index: slice | np.ndarray) -> np.ndarray:
        """Read some rows of `X` into memory."""

    @abstractmethod
    def _run(self, task: Pass) -> Iterator[tuple[Box, Any]]:
        """Yield results of a pass, merged over samples, for parts of the outputs (slices)."""

    def _weights_and_labels(self, task: Pass, rows: slice) -> list[np.ndarray | None]:
        """Return the weights of some samples, and their labels if the pass has labels."""
        found = [self.weights] if task.labels is None else [self.weights, task.labels]
        return [None if a is None else a[rows] for a in found]

    def fold_moments(
        self,
        labels: np.ndarray | None,
        n_folds: int,
        response_grams: bool = False,
    ) -> list[Moments]:
        """Compute the moments of the samples of each label in one pass over the data.

        Labels are 0 to ``n_folds - 1``, or negative for samples that are left out; None is one fold
        with all samples.
        """
        self._warn_of_size(n_folds)
        options: dict[str, Any] = {"n_folds": n_folds, "features": self.features}
        n_features = max(self.n_features, self.n_mapped // 2)
        task = Pass(
            partial(moments_of_block, response_grams=response_grams, **options),
            join_blocks,
            8 * n_folds * n_features * (n_features + math.prod(self.output_shape)),
            labels=labels,
            whole=response_grams,  # each Gram matrix needs all outputs
        )
        boxes, found = zip(*self._run(task), strict=True)
        return [
            join_outputs(boxes, [running.result() for running in fold], self.output_shape)
            for fold in zip(*found, strict=True)
        ]

    def input_moments(self) -> Moments:
        """Compute the moments of the inputs only; the fields for the outputs have no meaning."""
        task = Pass(moments_of_inputs, join_blocks, 8 * self.n_features**2, outputs=False)
        ((_, (total,)),) = self._run(task)
        return replace(total.result(), dtype=self.dtype)

    def responses(
        self,
        basis: np.ndarray | None = None,
        mean_x: np.ndarray | None = None,
        *,
        max_entries: int | None = None,
        response_grams: bool = False,
    ) -> Iterator[tuple[Box, ResponseSums]]:
        """Yield products of the outputs with a basis of the inputs, for parts of the outputs.

        The basis, (n_samples, k), includes the weights. The default is the inputs about `mean_x`,
        times the weights. The products of a part have `max_entries` entries or fewer, if the data
        allow it. By default all outputs are one part.
        """
        k = self.n_features if basis is None else basis.shape[1]
        most = None if max_entries is None else max_entries // k
        map_block = partial(sums_of_block, mean_x=mean_x, response_grams=response_grams)
        n_outputs = math.prod(self.output_shape) if most is None else max(1, most)
        task = Pass(map_block, added, 8 * k * n_outputs, X=basis, max_outputs=most)
        for box, sums in self._run(task):
            assert sums is not None  # some weight is positive, see check_weights
            yield box, sums

    def errors(self, sums_of: Callable[..., Any], n_sums: int = 3) -> Any:
        """Compute the sums for the score of a fitted model in one pass over the data.

        Parameters
        ----------
        sums_of : callable
            Maps checked inputs, outputs and weights of a block to sums that can be added.
        n_sums : int
            Number of arrays of the shape of the outputs in these sums.
        """
        map_block = partial(errors_of_block, sums_of)
        task = Pass(map_block, added, 8 * n_sums * math.prod(self.output_shape))
        ((_, errors),) = self._run(task)
        return errors

    @property
    def has_inputs(self) -> bool:
        """Whether `X` can be read completely: it is in memory, small, or smaller than ``X'X``."""
        small = 8 * self.n_samples * self.n_features <= self.max_bytes // 4
        return self._in_memory is not None or small or self.n_samples < self.n_features

    def inputs(self) -> np.ndarray:
        """Return all of `X`, in memory."""
        if self._in_memory is not None:
            return self._in_memory
        return self.input_rows(slice(0, self.n_samples))  # in one read, without a copy

    def output_blocks(
        self, max_entries: int, inputs: Moments | None = None
    ) -> Iterator[tuple[Box, Moments]]:
        """Yield parts of the outputs, as slices of modes 1 to p, with the moments of each.

        ``X'Y`` of a part has `max_entries` entries or fewer if the data allow it. ``X'X`` is
        computed once, or taken from `inputs`, the moments of the inputs only.
        """
        m = self.input_moments() if inputs is None else inputs
        for box, sums in self.responses(mean_x=m.mean_x, max_entries=max_entries):
            yield (
                box,
                replace(m, mean_y=sums.mean, Sxy=sums.products, syy=sums.syy, squares=sums.squares),
            )

    def _warn_of_size(self, n_folds: int) -> None:
        """Warn if the moments themselves exceed the memory budget."""
        size = 8 * n_folds * self.n_features**2
        if size > self.max_bytes and self.features is None:
            of = f"{n_folds} matrices X'X" if n_folds > 1 else "one matrix X'X"
            warn(
                f"the moments hold {of} of {self.n_features} features, {size / 2**20:.3g} MiB in "
                f"total, and a fit needs a few times as much; the memory budget is "
                f"{self.max_bytes / 2**20:.3g} MiB. Leave out features, or increase the budget "
                f"with holrr.streaming.memory_budget."
            )

    def moments(self, response_grams: bool = False) -> Moments:
        """Compute the moments of all samples."""
        return self.fold_moments(None, 1, response_grams)[0]

    @property
    def is_wide(self) -> bool:
        """Whether ``X'Y`` is too large to be stored and merged in memory."""
        return 8 * self.n_features * math.prod(self.output_shape) > self.max_bytes // 4


def open_stream(X: Any, Y: Any, sample_weight: Any = None) -> Stream | None:
    """Return a stream for data on disk or of Dask and for sparse inputs, and None otherwise.

    Data on disk that fit into a quarter of the memory budget are read, without a stream.
    """
    budget = check_budget()
    if is_sparse(X):
        from .sparse import SparseStream

        return SparseStream(X, Y, sample_weight, budget)
    if is_dask(X) or is_dask(Y):
        from .dask import DaskStream

        return DaskStream(X, Y, sample_weight, budget)
    on_disk = {name: A for name, A in (("X", X), ("y", Y)) if is_on_disk(A)}
    if not on_disk:
        return None
    for name, A in on_disk.items():
        check_kind(A, name)
    size = sum(8 * math.prod(A.shape) for A in on_disk.values())
    if size <= budget // 4:
        return None
    from .disk import DiskStream

    return DiskStream(X, Y, sample_weight, budget)


def check_rows_of_inputs(X: Any, index: slice | np.ndarray) -> np.ndarray:
    """Return checked rows of the inputs; errors report positions in the whole data."""
    with locate_rows(index):
        return check_inputs(unmasked(X, "X"))


def for_workers(model: Any) -> Any:
    """Return the model without attributes that predictions for unlabelled blocks do not need."""
    found = copy.copy(getattr(model, "best_estimator_", model))
    for name in ("moments_", "feature_names_in_", "labels_"):
        vars(found).pop(name, None)
    return found
