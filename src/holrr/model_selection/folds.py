"""Folds: what a family of models must supply to be cross-validated.

A search asks its `Folds` for the training problem and the held-out data of each fold, and for a fit
to all the data at the end. A family of models (linear, kernel, ...) is cross-validated by writing
one such class; `linear_folds` has those of the linear family.
"""

from __future__ import annotations

import math
from abc import ABCMeta, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.approximate import Approximation
from ..core.namespace import Array, on_host
from ..core.spectral import Spectral, Whitened
from ..core.units import Units
from ..data.arrays import take
from ..data.moments import Moments
from .held_out import HeldOut
from .splits import Split

__all__ = ["Folds"]


# Bytes of the outputs of problems that are kept for the next to ask.
_KEPT = 2**28


class Folds(metaclass=ABCMeta):
    """What a search asks: the problem of every fold and candidate."""

    n_folds: int
    # Shape of the candidates beside penalties and ranks: ``(n_kernels,)``, for instance.
    candidates: tuple[int, ...] = ()
    n_inputs: int  # size of the input mode: the number of features or, for a kernel, of samples
    max_input_rank: int  # no fold supports more input directions than this
    output_shape: tuple[int, ...]  # ``(d1, ..., dp)``
    data: Any = None
    splits: list[Split]
    min_alpha: float = 0.0  # the smallest penalty that will be asked for, which decides on solvers
    units: Units = Units()  # what the data of the problems were divided by
    # Vectors, one for each output mode, whose roots the outputs were multiplied by.
    output_weights: tuple[np.ndarray, ...] | None = None
    keeps: bool = True  # whether a problem stays the same for as long as the folds are there
    pruning: Any = None  # of a search that computes no more than it needs

    def _split(self, data: Any, splits: Sequence[Split], n_inputs: int) -> None:
        """Set the attributes of folds that have samples, or a source of them."""
        self.data, self.splits = data, list(splits)
        self.units = getattr(data, "units", self.units)
        self.n_folds, self.output_shape = len(self.splits), data.output_shape
        largest = max((train.size for train, _ in self.splits), default=data.n_samples)
        self.n_inputs, self.max_input_rank = n_inputs, min(n_inputs, largest)

    @property
    def home(self) -> Array | None:
        """An array of the data, where they lie on an accelerator."""
        X = getattr(self.data, "X", None)
        return None if X is None or on_host(X) else X

    def prepare(self, *candidate: int) -> None:  # noqa: B027 (nothing is shared, by default)
        """Gather what the folds of a candidate share; called before its problems are asked for."""

    @abstractmethod
    def problem(self, fold: int, *candidate: int) -> tuple[Spectral, HeldOut]:
        """Training problem and held-out data. Called from several threads."""

    def kept_problem(self, fold: int, *candidate: int) -> tuple[Spectral, HeldOut]:
        """The same, kept for the next to ask as long as there is room."""
        key, kept = (fold, *candidate, self.min_alpha), self.__dict__.setdefault("_kept", {})
        if key not in kept:
            found = self.problem(fold, *candidate)
            if not self.keeps or 8 * len(kept) * math.prod(found[0].T.shape) > _KEPT:
                return found
            kept[key] = found
        return kept[key]

    @property
    def keeps_all(self) -> bool:
        """Whether there is room for the problems of all folds and candidates."""
        n = self.n_folds * math.prod(self.candidates)
        return self.keeps and 8 * n * self.n_inputs * math.prod(self.output_shape) <= _KEPT

    @abstractmethod
    def full_problem(self, *candidate: int) -> tuple[Spectral, float]:
        """The problem of all the data, and the sum of their weights."""

    def refit(self, estimator: Any, **options: Any) -> Any:
        """Fit the chosen estimator to all the data; `options` are those of its `_solve`."""
        return estimator._fit_data(self.data, **options)

    def fitted(
        self, model: Any, mask: np.ndarray | None, fold: int, alpha: float, *candidate: int
    ) -> tuple[Whitened, Approximation]:
        """Fit a model to the training part of a fold, in the units of the folds."""
        problem = self.kept_problem(fold, *candidate)[0].at(alpha)
        found = model._approximate(problem, self.n_inputs, mask is not None)
        if mask is not None:
            found = found.masked(mask)
        kept = 1.0 if mask is None else float(mask.mean())
        model._set_fit(self.on_inputs(problem, *candidate), found, kept)
        return problem, found

    def on_inputs(self, problem: Whitened, *candidate: int) -> Whitened:
        """A problem in the inputs that models take, where the folds have others."""
        return problem

    def held_out(self, fold: int, *candidate: int) -> Array | Moments:
        """The held-out inputs of a fold, as `fitted` models take them, or else held-out moments."""
        return take(self.data.X, self.splits[fold][1])

    def judge(self, stack: Any, model: Any) -> Any:
        """A stack with its held-out error; None where a single model is to be taken instead."""
        return stack

    @property
    def work(self) -> float:
        """About how many multiply-adds one penalty takes, which decides on the threads."""
        r, D = self.max_input_rank, math.prod(self.output_shape)
        rotations = 2 * r * D * (r + sum(self.output_shape))
        return max(self.n_folds, 1) * math.prod(self.candidates) * rotations

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the coefficients, input mode first."""
        return (self.n_inputs, *self.output_shape)
