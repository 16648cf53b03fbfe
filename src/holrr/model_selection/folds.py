"""Folds: the training problem and the held-out data of each fold, for every family of models.

A search needs little of the data: for each fold and candidate the training problem with the held-out
data in its coordinates, the residuals of a fit to a fold, and the fit of the chosen model to all the
data. A family of models is cross-validated by a record with these methods (`Folds`); this module has
those of linear models, from samples (`SampleFolds`) and from moments alone (`MomentFolds`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from ..core.finite import check_finite
from ..core.fit import Fit
from ..core.leverage import std_factor
from ..core.moments import merge_others
from ..core.namespace import Array, eigenvalues, namespace_of, on_host, to_numpy
from ..core.spectral import (
    Spectral,
    keeps_digits,
    spectral_from_arrays,
    spectral_from_moments,
    spectral_from_samples,
)
from ..data.arrays import as_slice, take
from ..data.validation import Samples
from ..linear.fit import LinearOptions, fit_data, fit_moments
from ..streaming.moments import Moments
from .grid import default_alphas
from .intervals import FoldResiduals, MomentResiduals, residual_outputs
from .splits import Split, is_partition
from .surface import HeldOut

__all__ = ["Folds", "MomentFolds", "Problems", "SampleFolds", "check_fold_moments", "input_trace"]
__all__ += ["sample_residuals"]

_BLOCK = 2**26  # bytes of scattered outputs that are copied together
_KEPT = 2**28  # bytes of the outputs of problems that are kept


class Folds(Protocol):
    """What a search needs of the data.

    Candidates are what is tried apart from penalties and ranks: the kernels of a kernel search, for
    instance. Penalties are in the units of the scaled data.
    """

    @property
    def n_folds(self) -> int: ...

    @property
    def n_candidates(self) -> int: ...

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the coefficients, input mode first."""

    @property
    def max_input_rank(self) -> int:
        """No fold supports more input directions than this."""

    @property
    def x_unit(self) -> float:
        """Power of two that the inputs were divided by."""

    @property
    def y_unit(self) -> float:
        """Power of two that the outputs were divided by."""

    @property
    def device(self) -> Array | None:
        """An array of the data, where they lie on an accelerator."""

    def prepare(self, candidate: int) -> None:
        """Compute what the folds of a candidate share, before they are processed in threads."""

    def problem(self, fold: int, candidate: int, min_alpha: float) -> tuple[Spectral, HeldOut]:
        """Training problem and held-out data, for penalties of at least `min_alpha`."""

    def full_problem(self, candidate: int, min_alpha: float) -> tuple[Spectral, float]:
        """The problem of all the data, and the sum of their weights."""

    def default_alphas(self) -> np.ndarray:
        """Penalties scaled to the data, in equal ratios."""

    def residuals(self, fold: int, candidate: int, fit: Fit) -> FoldResiduals | MomentResiduals:
        """The residuals of a fit to the training part of a fold."""


class Problems:
    """The problems of all folds, kept as long as there is room.

    Parameters
    ----------
    folds : Folds
    """

    def __init__(self, folds: Folds) -> None:
        self.folds = folds
        self._kept: dict[tuple[int, int, float], tuple[Spectral, HeldOut]] = {}

    def __call__(self, fold: int, candidate: int, min_alpha: float) -> tuple[Spectral, HeldOut]:
        """Training problem and held-out data, for penalties of at least `min_alpha`."""
        key = fold, candidate, min_alpha
        if key not in self._kept:
            found = self.folds.problem(*key)
            if 8 * len(self._kept) * math.prod(found[0].T.shape) > _KEPT:
                return found
            self._kept[key] = found
        return self._kept[key]

    @property
    def keeps_all(self) -> bool:
        """Whether there is room for the problems of all folds and candidates."""
        n = self.folds.n_folds * self.folds.n_candidates
        return 8 * n * math.prod(self.folds.shape) <= _KEPT


# ---------------------------------------------------------------- moments


@dataclass(frozen=True, eq=False)
class MomentFolds:
    """Folds of which only the moments of parts, of disjoint samples, are known.

    Parameters
    ----------
    parts : list of Moments
    splits : list of index pairs, or None
        The parts to train on and to test on; by default each part is tested once, with all others
        to train on.
    fit_intercept : bool
    """

    parts: Sequence[Moments]
    splits: Sequence[Split] | None = None
    fit_intercept: bool = True

    n_candidates = 1
    x_unit = y_unit = 1.0

    @property
    def n_folds(self) -> int:
        return len(self.parts if self.splits is None else self.splits)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.parts[0].n_features, *self.parts[0].output_shape)

    @property
    def max_input_rank(self) -> int:
        n = np.array([part.n_samples for part in self.parts])
        n_train = n.sum() - n if self.splits is None else [n[t].sum() for t, _ in self.splits]
        return min(self.shape[0], int(max(n_train)))

    @property
    def device(self) -> Array | None:
        Sxx = self.parts[0].Sxx
        return None if on_host(Sxx) else Sxx

    @cached_property
    def training(self) -> list[Moments]:
        """Training moments of each fold."""
        if self.splits is None:
            return merge_others(self.parts)
        return [self._merged(train) for train, _ in self.splits]

    def prepare(self, candidate: int) -> None:
        _ = self.training

    @cached_property
    def total(self) -> Moments:
        """Moments of all folds together."""
        return self.parts[0].merge(*self.parts[1:])

    def held_out(self, fold: int) -> Moments:
        """Test moments of a fold."""
        return self.parts[fold] if self.splits is None else self._merged(self.splits[fold][1])

    def _merged(self, index: np.ndarray) -> Moments:
        first, *rest = (self.parts[i] for i in index)
        return first.merge(*rest)

    def problem(self, fold: int, candidate: int, min_alpha: float) -> tuple[Spectral, HeldOut]:
        problem = spectral_from_moments(self.training[fold].centred(self.fit_intercept))
        return problem, HeldOut.from_moments(problem, self.held_out(fold))

    def full_problem(self, candidate: int, min_alpha: float) -> tuple[Spectral, float]:
        centred = self.total.centred(self.fit_intercept)
        return spectral_from_moments(centred), self.total.weight

    def default_alphas(self) -> np.ndarray:
        m = self.total.centred(self.fit_intercept)
        trace = float(namespace_of(m.Sxx).linalg.trace(m.Sxx))
        return default_alphas(trace, min(m.n_samples, self.shape[0]))

    def residuals(self, fold: int, candidate: int, fit: Fit) -> MomentResiduals:
        return MomentResiduals(fit, self.held_out(fold))

    def refit(self, options: LinearOptions, mask: np.ndarray | None = None) -> Fit:
        """Fit a model to all the data."""
        return fit_moments(self.total, options, mask)


def check_fold_moments(moments: Any, response_grams: bool) -> list[Moments]:
    """Moments of at least two folds that belong together, each with some weight."""
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


# ---------------------------------------------------------------- samples


@dataclass(frozen=True, eq=False)
class SampleFolds:
    """Folds of samples in memory.

    Where the folds partition the data, each fold's moments are gathered once and the training
    moments are merged from those of the other folds, never found by subtraction; other splits are
    gathered one by one. Training sets with fewer samples than features, and those whose ``X'X``
    would lose too many digits, are decomposed themselves.

    Parameters
    ----------
    data : Samples
        Scaled; complete.
    splits : list of index pairs
        Empty where only the problem of all the data is needed.
    fit_intercept, response_grams : bool
    solver : {"auto", "cholesky", "eigh", "svd"}
    max_bytes : float
        If the moments of all folds would take more, they are not held at the same time.
    """

    data: Samples
    splits: Sequence[Split]
    fit_intercept: bool = True
    response_grams: bool = False
    solver: str = "auto"
    max_bytes: float = math.inf

    n_candidates = 1

    @property
    def n_folds(self) -> int:
        return len(self.splits)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.data.n_features, *self.data.output_shape)

    @property
    def max_input_rank(self) -> int:
        largest = max((train.size for train, _ in self.splits), default=self.data.n_samples)
        return min(self.data.n_features, largest)

    @property
    def x_unit(self) -> float:
        return self.data.x_unit

    @property
    def y_unit(self) -> float:
        return self.data.y_unit

    @property
    def device(self) -> Array | None:
        return None if on_host(self.data.X) else self.data.X

    @cached_property
    def merged(self) -> MomentFolds | None:
        """The moments of all folds, where they are a partition and fit in memory."""
        if not self._can_merge():
            return None
        with self._located():
            parts = [self._moments(test) for _, test in self.splits]
        return MomentFolds(parts, fit_intercept=self.fit_intercept)

    def prepare(self, candidate: int) -> None:
        if self.merged is not None:
            self.merged.prepare(candidate)

    def problem(self, fold: int, candidate: int, min_alpha: float) -> tuple[Spectral, HeldOut]:
        train, test = self.splits[fold]
        with self._located():
            if not self._is_wide(train.size):
                if self.merged is not None:
                    problem, held_out = self.merged.problem(fold, candidate, min_alpha)
                else:
                    moments = self._moments(train).centred(self.fit_intercept)
                    problem = spectral_from_moments(moments)
                    held_out = HeldOut.from_moments(problem, self._moments(test))
                if self._keeps_digits(problem.s, min_alpha):
                    return problem, held_out
            return self._problem_of_samples(train, test, min_alpha)

    def full_problem(self, candidate: int, min_alpha: float) -> tuple[Spectral, float]:
        data, options = self.data, self._options(min_alpha)
        return spectral_from_samples(data.X, data.Y, data.w, **options), data.weight

    def default_alphas(self) -> np.ndarray:
        return default_alphas(*input_trace(self.data, self.fit_intercept))

    def residuals(self, fold: int, candidate: int, fit: Fit) -> FoldResiduals:
        return sample_residuals(self.data, self.splits[fold][1], fit)

    def refit(
        self,
        options: LinearOptions,
        mask: np.ndarray | None = None,
        weights: Sequence[np.ndarray] | None = None,
    ) -> Fit:
        """Fit a model to all the data, in the units of the user's data."""
        data = self.data
        if self.merged is not None and data.x_unit == data.y_unit == 1.0:
            total = self.merged.total
            lam = eigenvalues(total.centred(self.fit_intercept).Sxx)
            if self._keeps_digits(np.sqrt(np.maximum(lam, 0.0)), options.alpha):
                return fit_moments(total, options, mask).unweighted(weights)
        return fit_data(data, options, mask=mask)[0].unweighted(weights)

    # ------------------------------------------------------------ helpers

    @contextmanager
    def _located(self) -> Iterator[None]:
        """Errors give the position of a bad entry in all the data, not in a fold of them."""
        try:
            yield
        except ValueError:
            check_finite(self.data.Y, "y")
            raise

    def _can_merge(self) -> bool:
        data = self.data
        # Moments of the folds, of what precedes each of them and of their complements.
        held = 3 * len(self.splits) * 8 * data.n_features * math.prod(data.output_shape)
        tall = any(not self._is_wide(train.size) for train, _ in self.splits)
        return tall and held <= self.max_bytes and is_partition(self.splits, data.n_samples)

    def _is_wide(self, n_samples: int) -> bool:
        """Whether the samples themselves are decomposed rather than ``X'X``."""
        wide = n_samples < self.data.n_features
        return self.solver == "svd" or (self.solver == "auto" and wide)

    def _keeps_digits(self, s: Array, alpha: float) -> bool:
        """Whether half of the digits survive the squared condition number (as in a single fit)."""
        if self.solver != "auto":
            return True
        X = self.data.X
        dtype = "float32" if X.dtype == namespace_of(X).float32 else "float64"
        return keeps_digits(s, alpha, X.shape[1], dtype)

    def _moments(self, index: np.ndarray) -> Moments:
        """Moments of some samples; scattered ones are copied a block at a time."""
        data = self.data
        if data.w is not None:  # samples without weight do not count, and a block of them has no mean
            index = index[to_numpy(data.w)[index] > 0]
        # Merging costs as much as some samples do: blocks have more samples than features.
        step = max(_BLOCK // (8 * math.prod(data.output_shape)), 4 * data.n_features, 64)
        step = index.size if isinstance(as_slice(index), slice) else step
        found = []
        for start in range(0, index.size, step):
            some = data.rows(index[start : start + step])
            found.append(Moments.from_checked(some.X, some.Y, some.w, self.response_grams))
        return found[0].merge(*found[1:])

    def _problem_of_samples(
        self, train: np.ndarray, test: np.ndarray, min_alpha: float
    ) -> tuple[Spectral, HeldOut]:
        seen, held = self.data.rows(train), self.data.rows(test)
        problem = spectral_from_arrays(seen.X, seen.Y, seen.w, **self._options(min_alpha))
        xp = namespace_of(held.X)
        F = (xp.astype(held.X, xp.float64, copy=False) - problem.mean_x) @ problem.basis
        return problem, HeldOut.from_features(F, held.Y, problem.mean_y, held.w)

    def _options(self, min_alpha: float) -> dict[str, Any]:
        return {
            "min_alpha": min_alpha,
            "solver": "eigh" if self.solver == "cholesky" else self.solver,
            "fit_intercept": self.fit_intercept,
            "response_grams": self.response_grams,
        }


def sample_residuals(data: Samples, rows: np.ndarray, fit: Fit) -> FoldResiduals:
    """Residuals of a linear fit at some of the samples."""
    X, Y = take(data.X, rows), residual_outputs(data.Y)
    assert fit.hat is not None
    return FoldResiduals.of(fit, X, std_factor(fit.hat, X), Y, data.w, rows)


def input_trace(data: Samples, fit_intercept: bool) -> tuple[float, int]:
    """``sum w ||x - mean||^2``, the trace of ``X'X``, and over how many directions it is spread."""
    xp = namespace_of(data.X)
    X = xp.astype(data.X, xp.float64, copy=False)
    w = xp.ones_like(X[:, 0]) if data.w is None else data.w
    if fit_intercept:
        X = X - (w @ X) / xp.sum(w)
    return float(xp.sum(w @ (X * X))), min(X.shape)
