"""Samples with sparse inputs in memory, as a stream of one block."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np

from ..core.namespace import is_numpy_array
from ..data.arrays import check_inputs, check_outputs, nan_for_masked
from .passes import Pass
from .reading import Box
from .stream import Stream

__all__ = ["SparseStream"]


class SparseStream(Stream):
    """Sparse inputs of SciPy with dense outputs, both in memory.

    They are a stream of one block, since a fit needs the same statistics as for data that are read
    in blocks: moments, or ``XX'`` if there are fewer samples than features. `X` is in CSR format.
    """

    def __init__(self, X: Any, Y: Any, sample_weight: Any, max_bytes: int) -> None:
        Y = check_outputs(Y)
        if not is_numpy_array(Y):
            raise TypeError(
                f"y must be a NumPy array if X is sparse; got {type(Y).__module__}."
                f"{type(Y).__name__}."
            )
        self._X, self._Y = check_inputs(X, sparse=True), Y
        self._in_memory = None
        self._describe(self._X, self._Y, sample_weight, max_bytes)

    def with_outputs(
        self, function: Callable[[np.ndarray], np.ndarray], shape: tuple[int, ...]
    ) -> Self:
        other = copy.copy(self)
        other._Y, other.output_shape = function(self._Y), shape
        return other

    def scaled_outputs(self, factor: np.ndarray) -> Self:
        def scaled(Y: np.ndarray) -> np.ndarray:
            return np.where(factor > 0, Y * factor, 0.0)

        return self.with_outputs(scaled, self.output_shape)

    def first_outputs(self) -> np.ndarray:
        return np.array(nan_for_masked(self._Y[self.first_row]))[0]

    def input_rows(self, index: slice | np.ndarray) -> np.ndarray:
        return self._X[index].toarray()

    def _run(self, task: Pass) -> Iterator[tuple[Box, Any]]:
        X = self._X if task.X is None else task.X
        Y = self._Y if task.outputs else np.empty((self.n_samples, 0))
        parts = self._weights_and_labels(task, slice(0, self.n_samples))
        yield (), task.join([task.map_block(X, Y, *parts)])

    @property
    def has_inputs(self) -> bool:
        """Whether ``XX'`` is smaller than ``X'X`` and decomposed in its place."""
        return self.n_samples < self.n_features

    def inputs(self) -> Any:
        """Return `X`, in CSR format."""
        return self._X

    @property
    def outputs(self) -> np.ndarray:
        """`Y`, of shape (n_samples, d1, ..., dp)."""
        return self._Y

    @property
    def is_wide(self) -> bool:
        return False  # the outputs are in memory already

    def _warn_of_size(self, n_folds: int) -> None:
        if n_folds > 1:  # a fit needs one X'X in any case
            super()._warn_of_size(n_folds)
