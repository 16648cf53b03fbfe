"""Folds of linear problems, from samples or from moments alone.

Where the folds partition the data, each fold's moments are gathered once and the training moments
are merged from those of the other folds, never found by subtraction; other splits are gathered one
by one. Training sets with fewer samples than features, and those whose ``X'X`` would lose too many
digits, are decomposed themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..core.finite import check_finite
from ..core.namespace import Array, eigenvalues, namespace_of, on_host, to_numpy
from ..core.samples import spectral_from_arrays, spectral_from_samples
from ..core.spectral import Spectral, keeps_digits, spectral_from_moments
from ..data.arrays import as_slice
from ..data.moments import Moments
from ..data.samples import Samples
from .folds import Folds
from .held_out import HeldOut
from .splits import Split, is_partition, merge_others

__all__ = ["ArrayFolds", "MomentFolds", "check_fold_moments", "input_energy"]

_BLOCK = 2**26  # bytes of scattered outputs that are copied at a time


class MomentFolds(Folds):
    """Folds of which only the moments of parts, of disjoint samples, are known.

    The splits say which parts to train on and to test on; by default each part is tested once, with
    all others to train on.
    """

    def __init__(
        self,
        parts: Sequence[Moments],
        splits: Sequence[Split] | None = None,
        *,
        fit_intercept: bool = True,
    ):
        self.parts, self.fit_intercept = list(parts), fit_intercept
        self.cut = None if splits is None else list(splits)
        self.output_shape = self.parts[0].output_shape
        self.n_inputs = self.parts[0].n_features
        n = np.array([part.n_samples for part in self.parts])
        n_train = n.sum() - n if self.cut is None else [n[t].sum() for t, _ in self.cut]
        self.n_folds = len(n_train)
        self.max_input_rank = min(self.n_inputs, int(max(n_train)))
        self.others: list[Moments] = []

    @property
    def home(self) -> Array | None:
        Sxx = self.parts[0].Sxx
        return None if on_host(Sxx) else Sxx

    def prepare(self, *candidate: int) -> None:
        if self.others:
            return
        if self.cut is None:
            self.others = merge_others(self.parts)
        else:
            self.others = [self._merged(train) for train, _ in self.cut]

    def problem(self, fold: int, *candidate: int) -> tuple[Spectral, HeldOut]:
        problem = spectral_from_moments(self.others[fold].centred(self.fit_intercept))
        return problem, HeldOut.from_moments(problem, self.held_out(fold))

    def held_out(self, fold: int, *candidate: int) -> Moments:
        return self.parts[fold] if self.cut is None else self._merged(self.cut[fold][1])

    def _merged(self, index: np.ndarray) -> Moments:
        first, *rest = (self.parts[i] for i in index)
        return first.merge(*rest)

    def total(self) -> Moments:
        """Moments of all the folds together."""
        return self.parts[0].merge(*self.parts[1:])

    def full_problem(self, *candidate: int) -> tuple[Spectral, float]:
        total = self.total()
        return spectral_from_moments(total.centred(self.fit_intercept)), total.weight

    def energy(self) -> tuple[float, int]:
        """Trace of ``X'X`` of all the data, and over how many directions it is spread."""
        total = self.total().centred(self.fit_intercept)
        trace = float(namespace_of(total.Sxx).linalg.trace(total.Sxx))
        return trace, min(total.n_samples, self.n_inputs)

    def refit(self, estimator: Any, **options: Any) -> Any:
        return estimator._fit_moments(self.total(), keep=False, **options)


class ArrayFolds(Folds):
    """Folds of data at hand.

    There are no splits where only the problem of all the data is asked for. If the moments of all
    folds would take more than `max_bytes`, they are not held at the same time.
    """

    def __init__(
        self,
        data: Samples,
        splits: Sequence[Split],
        *,
        fit_intercept: bool = True,
        response_grams: bool = False,
        solver: str = "auto",
        max_bytes: float = math.inf,
    ):
        self._split(data, splits, data.n_features)
        self.solver, self.max_bytes = solver, max_bytes
        self.fit_intercept, self.response_grams = fit_intercept, response_grams
        self.merged: MomentFolds | None = None

    def prepare(self, *candidate: int) -> None:
        if self.merged is None and self._can_merge():
            with self._whole_data():
                parts = [self._moments(test) for _, test in self.splits]
            self.merged = MomentFolds(parts, fit_intercept=self.fit_intercept)
            self.merged.prepare()

    def problem(self, fold: int, *candidate: int) -> tuple[Spectral, HeldOut]:
        with self._whole_data():
            return self._problem(*self.splits[fold], fold)

    def _problem(self, train: np.ndarray, test: np.ndarray, fold: int) -> tuple[Spectral, HeldOut]:
        if not self._is_wide(train.size):
            if self.merged is not None:
                problem, held_out = self.merged.problem(fold)
            else:
                moments = self._moments(train).centred(self.fit_intercept)
                problem = spectral_from_moments(moments)
                held_out = HeldOut.from_moments(problem, self._moments(test))
            if self._keeps_digits(problem.s, self.min_alpha):
                return problem, held_out
        return self._from_arrays(train, test)

    def full_problem(self, *candidate: int) -> tuple[Spectral, float]:
        data = self.data
        return spectral_from_samples(data.X, data.Y, data.w, **self._options()), data.weight

    def energy(self) -> tuple[float, int]:
        """As in `MomentFolds`."""
        return input_energy(self.data, self.fit_intercept)

    def refit(self, estimator: Any, **options: Any) -> Any:
        if self.merged is not None and self.units.is_one:
            total = self.merged.total()
            lam = eigenvalues(total.centred(self.fit_intercept).Sxx)
            if self._keeps_digits(np.sqrt(np.maximum(lam, 0.0)), float(estimator.alpha)):
                return estimator._fit_moments(total, keep=False, **options)
        return super().refit(estimator, **options)

    # ------------------------------------------------------------ helpers

    @contextmanager
    def _whole_data(self) -> Iterator[None]:
        """Errors name the place of a bad entry in all the data, not in a fold of them."""
        try:
            yield
        except ValueError:
            check_finite(self.data.Y, "y")
            raise

    def _can_merge(self) -> bool:
        data = self.data
        # Moments of the folds, of what precedes each of them and of their complements.
        held = 3 * len(self.splits) * 8 * data.n_features * math.prod(self.output_shape)
        tall = any(not self._is_wide(train.size) for train, _ in self.splits)
        return tall and held <= self.max_bytes and is_partition(self.splits, data.n_samples)

    def _is_wide(self, n_samples: int) -> bool:
        """Whether the samples themselves are decomposed rather than ``X'X``."""
        return self.solver == "svd" or (self.solver == "auto" and n_samples < self.n_inputs)

    def _keeps_digits(self, s: Array, alpha: float) -> bool:
        """Whether half of the digits survive the squared condition number (as in a single fit)."""
        if self.solver != "auto":
            return True
        X = self.data.X
        dtype = "float32" if X.dtype == namespace_of(X).float32 else "float64"
        return keeps_digits(s, alpha, X.shape[1], dtype)

    def _moments(self, index: np.ndarray) -> Moments:
        """Moments of some samples; scattered ones are copied a block at a time."""
        w = self.data.w
        if w is not None:  # samples without weight do not count, and a block of them has no mean
            index = index[to_numpy(w)[index] > 0]
        # Merging costs as much as some samples do: blocks have more samples than features.
        step = max(_BLOCK // (8 * math.prod(self.output_shape)), 4 * self.n_inputs, 64)
        step = index.size if isinstance(as_slice(index), slice) else step
        blocks = (index[start : start + step] for start in range(0, index.size, step))
        found = [self.data.rows(i).moments(self.response_grams) for i in blocks]
        return found[0].merge(*found[1:])

    def _from_arrays(self, train: np.ndarray, test: np.ndarray) -> tuple[Spectral, HeldOut]:
        seen, held = self.data.rows(train), self.data.rows(test)
        problem = spectral_from_arrays(seen.X, seen.Y, seen.w, **self._options())
        xp = namespace_of(held.X)
        F = (xp.astype(held.X, xp.float64, copy=False) - problem.mean_x) @ problem.basis
        return problem, HeldOut.from_features(F, held.Y, problem.mean_y, held.w)

    def _options(self) -> dict[str, Any]:
        return {
            "min_alpha": self.min_alpha,
            "solver": self.solver,
            "fit_intercept": self.fit_intercept,
            "response_grams": self.response_grams,
        }


def input_energy(data: Samples, fit_intercept: bool) -> tuple[float, int]:
    """``sum w ||x - mean||^2``, the trace of ``X'X``, and over how many directions it is spread."""
    xp = namespace_of(data.X)
    X = xp.astype(data.X, xp.float64, copy=False)
    w = xp.ones_like(X[:, 0]) if data.w is None else data.w
    if fit_intercept:
        X = X - (w @ X) / xp.sum(w)
    return float(xp.sum(w @ (X * X))), min(X.shape)


def check_fold_moments(moments: Any, response_grams: bool) -> list[Moments]:
    """The moments of at least two folds that belong together, each with some weight."""
    parts = list(moments)
    for k, part in enumerate(parts):
        if not isinstance(part, Moments):
            raise TypeError(f"moments[{k}] must be a Moments object; got {type(part).__name__}.")
        if not part.weight > 0:
            raise ValueError(f"moments[{k}] must have positive weight; got {part.weight}.")
        if response_grams and part.response_grams is None:
            raise ValueError(
                f"subspaces='response' needs moments that were gathered with response_grams=True; "
                f"moments[{k}] has none."
            )
        here, first = (part.n_features, part.output_shape), parts[0]
        if here != (first.n_features, first.output_shape):
            raise ValueError(
                f"moments must agree in their shapes; moments[0] has {first.n_features} features "
                f"and outputs of shape {first.output_shape}, moments[{k}] {here[0]} and {here[1]}."
            )
    if len(parts) < 2:
        raise ValueError(f"moments must be those of at least two folds; got {len(parts)}.")
    return parts
