"""A search that computes the surfaces of those penalties and kernels only that can be chosen.

The errors at all places (penalties of a kernel) are screened first (`screen`), beside those of
ridge regression, which are exact. Then places are visited, the most promising first: the surface
over all ranks, and where a stack is asked for that of all ranks, exactly as in an exhaustive
search. Each visit also shows how far the screen was from the truth. The search ends where no place
is left whose screened error comes within some multiples of that distance to the best one found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from threading import Lock
from typing import Any

import numpy as np

from ..core.namespace import to_numpy
from ..core.threads import limit_threads
from .folds import Folds
from .grid import RankGrid, parameter_counts
from .held_out import HeldOut
from .screen import N_DIRECTIONS, Screen
from .selection import best_index
from .stack import FoldTerms, Stack, stack_ranks
from .stacking import walk_stacks
from .surface import RankPath, extended, rank_path
from .sweep import Sweep, over_folds

__all__ = ["Pruning", "Screened", "is_worthwhile"]

Index = tuple[int, ...]

# A place is visited unless its screened error is above the best by so many times the largest
# distance of a screened error from the exact one, or by this share of the best at least.
_DISTANCES, _SHARE = 4.0, 1e-4
# Surfaces hold ranks up to twice the best one, and up to this one at least.
_KEPT_RANKS = 16
# Screened errors along the penalties end with two in a row that rise and are above the least one of
# their kernel by this share; stacks are not looked for where the best rank is above by so much, or
# by this multiple of what the best stack gains.
_RISE, _NO_GAIN, _GAINS = 0.02, 0.1, 3.0


def is_worthwhile(folds: Folds, grid: RankGrid, n_penalties: int) -> bool:
    """Whether screening is so much cheaper than the surfaces that it pays."""
    n_places = n_penalties * math.prod(folds.candidates)
    directions = min(folds.max_input_rank, math.prod(folds.output_shape))
    return (
        folds.keeps
        and len(grid.caps) == 1 + len(folds.output_shape) > 1
        and directions > 2 * N_DIRECTIONS
        and n_places > 3
    )


@dataclass(frozen=True, eq=False)
class Screened:
    """The screened errors of all places.

    Parameters
    ----------
    pruning : Pruning
    alphas : array of shape (n_alphas,)
        In the units of the folds.
    least : array of shape (*candidates, n_alphas)
        The least error of each place, nearly.
    ranks : array of shape (*candidates, n_alphas, p + 1)
        Where it is.
    null_mse, n_supported, ridge_mse
        As in `Sweep`.
    """

    pruning: Pruning
    alphas: np.ndarray
    least: np.ndarray
    ranks: np.ndarray
    null_mse: float
    n_supported: int
    ridge_mse: float

    def joined(self, other: Screened, axis: int, *, before: bool) -> Screened:
        """As that of `Sweep`."""
        pair = (other, self) if before else (self, other)
        join = lambda name: np.concatenate([getattr(p, name) for p in pair], axis=axis)  # noqa: E731
        return replace(
            self,
            alphas=np.concatenate([p.alphas for p in pair]),
            least=join("least"),
            ranks=join("ranks"),
            n_supported=max(self.n_supported, other.n_supported),
            ridge_mse=min(self.ridge_mse, other.ridge_mse),
        )

    def profile(self, axis: int) -> tuple[np.ndarray, np.ndarray]:
        """As that of `Sweep`: exact where the best penalty is the first or the last, or nearly."""
        by_alpha = self.least.reshape(-1, self.alphas.size)
        least, where = by_alpha.min(axis=0), by_alpha.argmin(axis=0)
        order, folds = np.argsort(self.alphas), np.zeros(1)
        place = int(np.flatnonzero(order == np.argmin(least))[0])
        if 1 < place < order.size - 2:
            return least, folds
        ends = order[:2] if place <= 1 else order[-2:]
        visits = {}
        for a in map(int, ends):
            candidate = np.unravel_index(int(where[a]), self.least.shape[:-1])
            visits[a] = self.pruning.visit(self, (*map(int, candidate), a))
            least[a] = visits[a].error
        best = min(visits, key=lambda a: visits[a].error)
        return least, visits[best].fold_errors


@dataclass(frozen=True, eq=False)
class Visit:
    """The exact errors of one place.

    Parameters
    ----------
    fold_mse : array of shape (n_folds, R0, ...)
        Up to twice the best rank.
    rank : tuple of int
        The best single rank.
    error : float
        Its error, the mean of `fold_errors`.
    fold_errors : array of shape (n_folds,)
    stack : Stack, optional
    """

    fold_mse: np.ndarray
    rank: Index
    error: float
    fold_errors: np.ndarray
    stack: Stack | None = None


class Pruning:
    """A search through the places of some folds.

    Parameters
    ----------
    folds : Folds
    grid : RankGrid
        The ranks to try.
    subspaces : {"fitted", "response"}
    selection : {"stack", "min", "1se"}
    n_jobs : int, optional
    """

    def __init__(
        self,
        folds: Folds,
        grid: RankGrid,
        *,
        subspaces: str = "fitted",
        selection: str = "min",
        n_jobs: int | None = None,
    ):
        self.folds, self.grid, self.subspaces = folds, grid, subspaces
        self.selection, self.n_jobs = selection, n_jobs
        self.screens: dict[Index, tuple[Screen, HeldOut]] = {}
        self.visits: dict[tuple[Index, float], Visit] = {}
        self.keeps_all = selection == "1se" or grid.listed is not None
        self.stack: tuple[Index, Stack | None] | None = None
        self.least = np.empty(0)
        self._counts = lru_cache(1)(partial(parameter_counts, folds.shape))
        # All ranks of a fit are candidates: ridge regression is one of them.
        full = all(cap >= d for cap, d in zip(grid.caps[1:], folds.output_shape, strict=True))
        self.ridge = full and grid.caps[0] >= folds.max_input_rank and grid.listed is None

    # ------------------------------------------------------------ the screen

    def screened(self, alphas: np.ndarray, tick: Callable[[], object]) -> Screened:
        """The screened errors of some penalties, in the units of the folds."""
        folds, shape = self.folds, (*self.folds.candidates, alphas.size)
        least, ridge = np.full(shape, np.inf), np.empty(shape)
        ranks = np.ones((*shape, len(self.grid.caps)), dtype=int)
        nulls: list[float] = []
        supported = 1
        for candidate in np.ndindex(*folds.candidates):
            folds.prepare(*candidate)
            start = partial(self._start, candidate=candidate, alphas=alphas)
            errors, null, directions = zip(*over_folds(folds, start, self.n_jobs), strict=True)
            nulls, supported = [*nulls, *null], max(supported, *directions)
            ridge[candidate] = np.mean(errors, axis=0)
            for some in self._along(alphas, ridge[candidate], least[candidate]):
                means = self._screen_means(candidate, alphas[some])
                for a, mean in zip(some, means, strict=True):
                    at = np.unravel_index(int(np.argmin(mean)), mean.shape)
                    ranks[(*candidate, a)] = [int(i) + 1 for i in at]
                    bound = float(ridge[(*candidate, a)]) if self.ridge else math.inf
                    least[(*candidate, a)] = min(float(mean[at]), bound)
            for _ in range(alphas.size * folds.n_folds):
                tick()
        null_mse = float(np.mean(nulls))
        return Screened(self, alphas, least, ranks, null_mse, supported, float(ridge.min()))

    def _along(self, alphas: np.ndarray, ridge: np.ndarray, least: np.ndarray) -> Iterator[Any]:
        """Penalties to screen, some at a time: from that of the best ridge fit to both sides.

        Whoever iterates puts their errors into `least`.
        """
        order = np.argsort(alphas)
        start = int(np.flatnonzero(order == np.argmin(ridge))[0])
        yield order[start : start + 1]
        for side in (order[start + 1 :], order[:start][::-1]):
            for i in range(0, side.size, 2):
                yield side[i : i + 2]
                errors = least[side[i : i + 2]]
                rises = errors[0] > (1 + _RISE) * least.min() and errors[-1] >= errors[0]
                if rises and self.selection != "1se":
                    break

    def _start(
        self, fold: int, candidate: Index, alphas: np.ndarray
    ) -> tuple[np.ndarray, float, int]:
        """Errors of ridge regression and of the mean in a fold, whose screen is made."""
        path, held = self._path(fold, candidate)
        ridge = path.ridge_errors(map(float, alphas))
        if (fold, *candidate) not in self.screens:
            ends = {float(alphas.min()), float(alphas[np.argmin(ridge)])}
            self.screens[(fold, *candidate)] = Screen(path, sorted(ends)), held
        ridge = np.maximum(held.yy + ridge, 0.0) / held.size
        return ridge, held.yy / held.size, int(path.s.shape[0])

    def _path(self, fold: int, candidate: Index) -> tuple[RankPath, HeldOut]:
        if (fold, *candidate) in self.screens:
            screen, held = self.screens[(fold, *candidate)]
            return screen.path, held
        problem, held = self.folds.kept_problem(fold, *candidate)
        return rank_path(problem, held, self.grid.caps, self.subspaces), held

    def _screen_means(self, candidate: Index, alphas: np.ndarray) -> np.ndarray:
        """For each penalty the errors of all ranks within the screen, the mean over the folds."""
        caps = min(self.grid.caps[0], N_DIRECTIONS), *self.grid.caps[1:]
        total, lock = np.zeros((alphas.size, *caps)), Lock()

        def run(fold: int) -> None:
            screen, held = self.screens[(fold, *candidate)]
            for a, alpha in enumerate(alphas):
                block = to_numpy(screen.terms(float(alpha)).errors(held.yy))
                block = extended(block / (held.size * self.folds.n_folds), caps)
                with lock:
                    total[a] += block

        over_folds(self.folds, run, self.n_jobs)
        mask = self._mask(caps)
        if mask is not None:
            total[:, ~mask] = np.inf
        return total

    def _mask(self, shape: Index) -> np.ndarray | None:
        mask = self.grid.mask()
        return None if mask is None else mask[tuple(map(slice, shape))]

    # ------------------------------------------------------------ the visits

    def visit(self, found: Screened, place: Index, stack: bool = False) -> Visit:
        """The exact errors of a place, and its stack where one is asked for."""
        alpha = float(found.alphas[place[-1]])
        key = place[:-1], alpha
        known = self.visits.get(key)
        if known is None or (stack and known.stack is None):
            self.visits[key] = self._visit(place[:-1], alpha, found.n_supported, stack)
        return self.visits[key]

    def _visit(self, candidate: Index, alpha: float, n_supported: int, stack: bool) -> Visit:
        grid = self.grid.within_input_rank(n_supported)
        self.folds.prepare(*candidate)

        def run(fold: int) -> tuple[np.ndarray, FoldTerms | None]:
            path, held = self._path(fold, candidate)
            terms = path.terms(alpha)
            block = to_numpy(terms.errors(held.yy))
            np.maximum(block, 0.0, out=block)
            np.divide(block, held.size, out=block)
            return extended(block, grid.caps), FoldTerms.of(terms, held) if stack else None

        blocks, terms = zip(*over_folds(self.folds, run, self.n_jobs), strict=True)
        mask, mean = grid.mask(), sum(blocks) / len(blocks)
        if mask is not None:
            mean[~mask] = np.nan
        at = best_index(mean, self._counts(grid.caps))
        rank = tuple(i + 1 for i in at)
        kept = grid.caps if self.keeps_all else [max(2 * R, _KEPT_RANKS) for R in rank]
        return Visit(
            fold_mse=np.stack([block[tuple(map(slice, kept))] for block in blocks]),
            rank=rank,
            error=float(mean[at]),
            fold_errors=np.array([block[at] for block in blocks]),
            stack=stack_ranks(terms, rank, candidates=mask) if stack else None,
        )

    # ------------------------------------------------------------ the search

    def settle(self, found: Screened, stacks: bool) -> tuple[Sweep, RankGrid]:
        """Visit what can be chosen, and return the surfaces and their grid."""
        self.least = np.where(np.isfinite(found.least), found.least, np.nan)
        promising = self._stack_errors(found) if stacks else {}
        near = min(promising.values(), default=0.0) * (1 + _SHARE)
        singles = {place: float(found.least[place]) for place in np.ndindex(found.least.shape)}
        visit = lambda place: self.visit(found, place, promising.get(place, math.inf) <= near)  # noqa: E731
        self._visit_best(singles, visit, lambda visit: visit.error)
        if stacks:
            visit = lambda place: self.visit(found, place, True)  # noqa: E731
            seen = self._visit_best(promising, visit, _stack_error)
            place = min(seen, key=lambda place: _stack_error(seen[place]))
            self.stack = place, seen[place].stack
        return self._surfaces(found)

    def _visit_best(
        self,
        estimates: dict[Index, float],
        visit: Callable[[Index], Visit],
        error: Callable[[Visit], float],
    ) -> dict[Index, Visit]:
        """Visit the most promising places until no other can be the best, or be within its error."""
        seen: dict[Index, Visit] = {}
        distance, least, room = 0.0, math.inf, 0.0
        for place in sorted(estimates, key=lambda place: estimates[place]):
            margin = max(_DISTANCES * distance, _SHARE * least) if seen else 0.0
            if estimates[place] > least + room + margin:
                break
            seen[place] = visit(place)
            distance = max(distance, abs(error(seen[place]) - estimates[place]))
            if error(seen[place]) < least:
                least, n = error(seen[place]), self.folds.n_folds
                if self.selection == "1se" and n > 1:
                    room = float(seen[place].fold_errors.std(ddof=1)) / math.sqrt(n)
        return seen

    def _stack_errors(self, found: Screened) -> dict[Index, float]:
        """Screened errors of the stacks of all places that a search for them comes by."""

        def stack_at(place: Index, bound: float) -> Stack | None:
            def terms(fold: int) -> FoldTerms:
                screen, held = self.screens[(fold, *place[:-1])]
                return FoldTerms.of(screen.terms(float(found.alphas[place[-1]])), held)

            parts = over_folds(self.folds, terms, self.n_jobs)
            caps = tuple(np.max([part.S.shape for part in parts], axis=0))
            start = tuple(int(R) for R in found.ranks[place])
            with limit_threads(1):
                return stack_ranks(parts, start, candidates=self._mask(caps), bound=bound)

        def enter(candidate: Index, best: tuple[Index, Stack] | None) -> bool:
            if best is None:
                return True
            error = best[1].cross_fitted_mse
            gain = float(found.least[best[0]]) - error
            room = max(_NO_GAIN * error, _GAINS * gain)
            return float(found.least[candidate].min()) <= error + room

        return walk_stacks(self.folds.candidates, found.alphas, found.least, stack_at, enter)[1]

    def _surfaces(self, found: Screened) -> tuple[Sweep, RankGrid]:
        """The surfaces of the places that were visited; NaN for the others."""
        grid = self.grid.within_input_rank(found.n_supported)
        places = {
            place: visit
            for place in np.ndindex(found.least.shape)
            if (visit := self.visits.get((place[:-1], float(found.alphas[place[-1]]))))
        }
        best = min(places.values(), key=lambda visit: visit.error)
        caps = best.fold_mse.shape[1:]
        fold_mse = np.full((self.folds.n_folds, *found.least.shape, *caps), np.nan)
        for place, visit in places.items():
            part = visit.fold_mse[(slice(None), *map(slice, caps))]
            fold_mse[(slice(None), *place, *map(slice, part.shape[1:]))] = part
        sweep = Sweep(fold_mse, found.null_mse, found.n_supported, found.ridge_mse)
        return sweep, replace(grid, caps=caps)


def _stack_error(visit: Visit) -> float:
    return math.inf if visit.stack is None else visit.stack.cross_fitted_mse
