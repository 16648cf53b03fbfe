"""Data that do not fit in memory, seen as what can give moments."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np

from ..core.caution import warn
from ..core.responses import ResponseSums
from .arrays import check_inputs, check_lengths, check_weights, placed, unmasked
from .budget import check_budget
from .labels import comes_from
from .moments import Moments
from .reading import Box, is_on_disk
from .running import (
    Look,
    added,
    errors_of_block,
    join_blocks,
    join_outputs,
    moments_of_block,
    moments_of_inputs,
    sums_of_block,
)
from .scores import Errors

__all__ = ["Source", "check_kind", "check_rows_of_inputs", "is_dask", "light", "open_source"]
__all__ += ["weights_of"]


class Source(ABC):
    """Samples that are only ever looked at in blocks."""

    n_samples: int
    n_features: int
    output_shape: tuple[int, ...]  # ``(d1, ..., dp)``
    weights: np.ndarray | None  # of shape (n_samples,)
    dtype: str  # floating-point type of the data, "float64" or "float32"
    max_bytes: int  # the memory budget
    _in_memory: np.ndarray | None  # `X`, where only the outputs are not
    # What the inputs are mapped to as they are read, and how many numbers a row takes for it.
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
        """The same samples with their inputs mapped to features when moments are gathered.

        For the memory budget, a row takes `n_mapped` numbers on the way.
        """
        other = copy.copy(self)
        other.features, other.n_mapped = features, n_mapped
        return other

    @abstractmethod
    def input_rows(self, index: slice | np.ndarray) -> np.ndarray:
        """Some rows of `X`, in memory."""

    @abstractmethod
    def _found(self, look: Look) -> Iterator[tuple[Box, Any]]:
        """What is found, joined over the samples, by parts of the outputs (slices of the modes)."""

    def _beside(self, look: Look, rows: slice) -> list[np.ndarray | None]:
        """What some samples have beside inputs and outputs: weights, and labels if there are."""
        found = [self.weights] if look.labels is None else [self.weights, look.labels]
        return [None if a is None else a[rows] for a in found]

    def fold_moments(
        self, labels: np.ndarray | None, n_folds: int, response_grams: bool = False
    ) -> list[Moments]:
        """Moments of the samples of each label, from one pass over the data.

        Labels go from 0 to ``n_folds - 1``, or are negative for samples that are left out; None is
        one fold with all samples.
        """
        self._warn_of_size(n_folds)
        options: dict[str, Any] = {"n_folds": n_folds, "features": self.features}
        n_features = max(self.n_features, self.n_mapped // 2)
        look = Look(
            partial(moments_of_block, response_grams=response_grams, **options),
            join_blocks,
            8 * n_folds * n_features * (n_features + math.prod(self.output_shape)),
            labels=labels,
            whole=response_grams,  # each of them needs all outputs
        )
        boxes, found = zip(*self._found(look), strict=True)
        return [
            join_outputs(boxes, [running.result() for running in fold], self.output_shape)
            for fold in zip(*found, strict=True)
        ]

    def input_moments(self) -> Moments:
        """Moments of the inputs alone: what they say of the outputs means nothing."""
        look = Look(moments_of_inputs, join_blocks, 8 * self.n_features**2, outputs=False)
        ((_, (total,)),) = self._found(look)
        return replace(total.result(), dtype=self.dtype)

    def responses(
        self,
        basis: np.ndarray | None = None,
        mean_x: np.ndarray | None = None,
        *,
        max_entries: int | None = None,
        response_grams: bool = False,
    ) -> Iterator[tuple[Box, ResponseSums]]:
        """Products of the outputs with a basis of the inputs, by parts of the outputs.

        The basis, (n_samples, k), has its weights in it; by default it is the inputs about
        `mean_x`, with theirs. The products of a part have `max_entries` entries or fewer, where
        the data allow it; by default all outputs are one part.
        """
        k = self.n_features if basis is None else basis.shape[1]
        most = None if max_entries is None else max_entries // k
        of_block = partial(sums_of_block, mean_x=mean_x, response_grams=response_grams)
        n_outputs = math.prod(self.output_shape) if most is None else max(1, most)
        look = Look(of_block, added, 8 * k * n_outputs, X=basis, max_outputs=most)
        for box, sums in self._found(look):
            assert sums is not None  # some weight is positive, see check_weights
            yield box, sums

    def errors(self, model: Any) -> Errors:
        """What the score of a fitted model needs, from one pass over the data."""
        of_block = partial(errors_of_block, light(model))
        look = Look(of_block, added, 24 * math.prod(self.output_shape))
        ((_, errors),) = self._found(look)
        return errors

    @property
    def has_inputs(self) -> bool:
        """Whether `X` itself is at hand: in memory, small, or smaller than ``X'X``."""
        small = 8 * self.n_samples * self.n_features <= self.max_bytes // 4
        return self._in_memory is not None or small or self.n_samples < self.n_features

    def inputs(self) -> np.ndarray:
        """`X` itself, read whole."""
        if self._in_memory is not None:
            return self._in_memory
        return self.input_rows(slice(0, self.n_samples))  # at once, without a copy

    def output_blocks(
        self, max_entries: int, inputs: Moments | None = None
    ) -> Iterator[tuple[Box, Moments]]:
        """Parts of the outputs, as slices of modes 1 to p, with the moments of each.

        ``X'Y`` of a part has `max_entries` entries or fewer where the data allow it; ``X'X`` is
        found once, or taken from `inputs`, the moments of the inputs alone.
        """
        m = self.input_moments() if inputs is None else inputs
        for box, sums in self.responses(mean_x=m.mean_x, max_entries=max_entries):
            yield (
                box,
                replace(m, mean_y=sums.mean, Sxy=sums.products, syy=sums.syy, squares=sums.squares),
            )

    def _warn_of_size(self, n_folds: int) -> None:
        """Say so where the moments themselves, which no block makes smaller, exceed the budget."""
        size = 8 * n_folds * self.n_features**2
        if size > self.max_bytes and self.features is None:
            of = f"{n_folds} matrices X'X" if n_folds > 1 else "one matrix X'X"
            warn(
                f"the moments hold {of} of {self.n_features} features, {size / 2**20:.3g} MiB in "
                f"all, and a fit needs a few times as much; the memory budget is "
                f"{self.max_bytes / 2**20:.3g} MiB. Leave out features, or raise the budget "
                f"with holrr.streaming.memory_budget."
            )

    def halves(self, response_grams: bool = False) -> list[Moments]:
        """Moments of two halves of the samples that have weight, for those who need no folds."""
        has_weight = np.ones(self.n_samples) if self.weights is None else self.weights > 0
        count = np.cumsum(has_weight)
        if count[-1] < 2:
            raise ValueError(
                f"two samples of positive weight are needed at least; got {int(count[-1])}."
            )
        labels = (2 * count > count[-1] + 1).astype(np.intp)
        return self.fold_moments(labels, 2, response_grams)

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
    on_disk = {name: A for name, A in (("X", X), ("y", Y)) if is_on_disk(A)}
    if not on_disk:
        return None
    for name, A in on_disk.items():
        check_kind(A, name)
    size = sum(8 * math.prod(A.shape) for A in on_disk.values())
    if size <= budget // 4:
        return None
    from .disk import DiskSource

    return DiskSource(X, Y, sample_weight, budget)


def check_kind(A: Any, name: str) -> None:
    """Dates, spans of time and text are no numbers, though NumPy would make some of them."""
    if np.dtype(A.dtype).kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers; got dtype {A.dtype}.")


def check_rows_of_inputs(X: Any, index: slice | np.ndarray) -> np.ndarray:
    """Some rows of the inputs, checked; errors say where in all the data they are."""
    with placed(index):
        return check_inputs(unmasked(X, "X"))


def is_dask(A: Any) -> bool:
    """Whether `A` is a Dask array, without an import of Dask for the question."""
    return comes_from(A, "dask") and hasattr(A, "__dask_graph__")


def light(model: Any) -> Any:
    """The model without what predictions of nameless blocks do not need."""
    found = copy.copy(model)
    for name in ("moments_", "feature_names_in_", "labels_"):
        vars(found).pop(name, None)
    return found


def weights_of(sample_weight: Any, n_samples: int) -> np.ndarray | None:
    """Weights, checked for all samples at once, since a single block may have none."""
    if is_dask(sample_weight):
        sample_weight = sample_weight.compute()
    elif is_on_disk(sample_weight):
        sample_weight = np.asarray(sample_weight)
    return check_weights(sample_weight, np.empty((n_samples, 0)))
