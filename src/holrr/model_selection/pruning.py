"""A search that computes the surfaces of those penalties and kernels only that can be chosen.

The errors at all places (penalties of a kernel) are screened first (`screen`), beside those of
ridge regression, which are exact. Then places are visited, the most promising first: the surface
over all ranks, and where a stack is asked for that of all ranks, exactly as in an exhaustive
search. Each visit also shows how far the screen was from the truth. The search ends where no place
is left whose screened error comes within some multiples of that distance to the best one found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock

import numpy as np

from ..core.namespace import to_numpy
from .folds import Folds
from .grid import RankGrid, parameter_counts
from .held_out import HeldOut
from .screen import N_DIRECTIONS, Screen
from .selection import best_index
from .stack import FoldTerms, Stack, stack_ranks
from .stacking import walk_stacks
from .surface import extended, rank_path
from .sweep import Sweep, over_folds

__all__ = ["Pruning", "Screened", "is_worthwhile"]

Index = tuple[int, ...]

# A place is visited unless its screened error is above the best by so many times the largest
# distance of a screened error from the exact one, or by this share of the best at least.
_DISTANCES, _SHARE = 4.0, 2e-4
# Surfaces hold input ranks up to this one at least, and beyond where the best one is.
_KEPT_RANKS = 2 * N_DIRECTIONS


def is_worthwhile(folds: Folds, grid: RankGrid, n_penalties: int) -> bool:
    """Whether screening is so much cheaper than the surfaces that it pays."""
    n_places = n_penalties * math.prod(folds.candidates)
    directions = min(folds.max_input_rank, math.prod(folds.output_shape))
    return (
        folds.keeps
        and len(grid.caps) == 1 + len(folds.output_shape) > 1
        and min(directions, grid.caps[0]) > 2 * N_DIRECTIONS
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
    fold_mse : array of shape (n_folds, K, R1, ...)
        Up to the input rank K.
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
        # All ranks of a fit are candidates: ridge regression is one of them.
        full = all(cap >= d for cap, d in zip(grid.caps[1:], folds.output_shape, strict=True))
        self.ridge = full and grid.caps[0] >= folds.max_input_rank and grid.listed is None

    # ------------------------------------------------------------ the screen

    def screened(self, alphas: np.ndarray, tick: Callable[[], object]) -> Screened:
        """The screened errors of some penalties, in the units of the folds."""
        folds, shape = self.folds, (*self.folds.candidates, alphas.size)
        least, ranks = np.empty(shape), np.empty((*shape, len(self.grid.caps)), dtype=int)
        ridge, nulls, supported = np.empty(shape), [], 1
        for candidate in np.ndindex(*folds.candidates):
            folds.prepare(*candidate)
            total = np.zeros((alphas.size, *self._screen_caps))
            run = partial(self._screen_fold, candidate=candidate, alphas=alphas, total=total)
            done = over_folds(folds, partial(run, lock=Lock(), tick=tick), self.n_jobs)
            ridge[candidate] = np.mean([each for each, _, _ in done], axis=0)
            nulls += [null for _, null, _ in done]
            supported = max(supported, *(r for _, _, r in done))
            mask = self._mask(total.shape[1:])
            for a, mean in enumerate(total):
                place = (*candidate, a)
                mean = mean if mask is None else np.where(mask, mean, np.inf)
                at = np.unravel_index(int(np.argmin(mean)), mean.shape)
                least[place], ranks[place] = mean[at], [int(i) + 1 for i in at]
        ridge_mse = float(ridge.min())
        if self.ridge:
            least = np.fmin(least, ridge)
        return Screened(self, alphas, least, ranks, float(np.mean(nulls)), supported, ridge_mse)

    def _screen_fold(
        self,
        fold: int,
        candidate: Index,
        alphas: np.ndarray,
        total: np.ndarray,
        lock: Lock,
        tick: Callable[[], object],
    ) -> tuple[np.ndarray, float, int]:
        """Add the errors of a fold to those of the others; return those of ridge and of the mean."""
        screen, held, ridge = self._screen(fold, candidate, alphas)
        weight = 1 / (held.size * self.folds.n_folds)
        for a, alpha in enumerate(alphas):
            block = to_numpy(screen.terms(float(alpha)).errors(held.yy)) * weight
            with lock:
                total[a] += extended(block, total.shape[1:])
            tick()
        return (
            np.maximum(held.yy + ridge, 0.0) / held.size,
            held.yy / held.size,
            int(screen.path.s.shape[0]),
        )

    def _screen(
        self, fold: int, candidate: Index, alphas: np.ndarray
    ) -> tuple[Screen, HeldOut, np.ndarray]:
        """The screen of a fold, made once, and the excess errors of ridge regression."""
        key = (fold, *candidate)
        path, held = self._path(fold, candidate)
        ridge = path.ridge_errors(map(float, alphas))
        if key not in self.screens:
            ends = {float(alphas.min()), float(alphas[np.argmin(ridge)])}
            self.screens[key] = Screen(path, sorted(ends)), held
        return *self.screens[key], ridge

    def _path(self, fold: int, candidate: Index):
        if (fold, *candidate) in self.screens:
            screen, held = self.screens[(fold, *candidate)]
            return screen.path, held
        problem, held = self.folds.kept_problem(fold, *candidate)
        return rank_path(problem, held, self.grid.caps, self.subspaces), held

    @property
    def _screen_caps(self) -> Index:
        return min(self.grid.caps[0], N_DIRECTIONS), *self.grid.caps[1:]

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
        kept = grid.caps if self.keeps_all else (min(grid.caps[0], _KEPT_RANKS), *grid.caps[1:])
        mean, lock = np.zeros(grid.caps), Lock()
        fold_mse = np.empty((self.folds.n_folds, *kept))

        def run(fold: int) -> tuple[np.ndarray, FoldTerms | None]:
            path, held = self._path(fold, candidate)
            terms = path.terms(alpha)
            block = to_numpy(terms.errors(held.yy))
            np.maximum(block, 0.0, out=block)
            block = extended(block, grid.caps)
            block = np.divide(block, held.size, out=block)
            fold_mse[fold] = block[tuple(map(slice, kept))]
            with lock:
                np.add(mean, block / self.folds.n_folds, out=mean)
            return block, FoldTerms.of(terms, held) if stack else None

        done = over_folds(self.folds, run, self.n_jobs)
        mask, count = grid.mask(), parameter_counts(self.folds.shape, grid.caps)
        if mask is not None:
            mean[~mask] = np.nan
        at = best_index(mean, count)
        rank = tuple(i + 1 for i in at)
        errors = np.array([block[at] for block, _ in done])
        mixture = None
        if stack:
            terms = [t for _, t in done if t is not None]
            mixture = stack_ranks(terms, rank, candidates=mask)
        return Visit(fold_mse, rank, float(mean[at]), errors, mixture)

    # ------------------------------------------------------------ the search

    def settle(self, found: Screened, stacks: bool) -> tuple[Sweep, RankGrid]:
        """Visit what can be chosen, and return the surfaces and their grid."""
        self.least = found.least
        promising = self._stack_errors(found) if stacks else {}
        near = min(promising.values(), default=0.0) * (1 + _SHARE)
        singles = {place: float(found.least[place]) for place in np.ndindex(found.least.shape)}
        visit = lambda place: self.visit(found, place, promising.get(place, math.inf) <= near)  # noqa: E731
        seen = self._visit_best(singles, visit, lambda visit: visit.error)
        best = min(seen.values(), key=lambda visit: visit.error)
        if best.rank[0] > best.fold_mse.shape[1]:  # beyond what is kept: once more, all of it
            self.keeps_all, self.visits = True, {}
            return self.settle(found, stacks)
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
            alpha, candidate = float(found.alphas[place[-1]]), place[:-1]
            pairs = [self.screens[(fold, *candidate)] for fold in range(self.folds.n_folds)]
            terms = [FoldTerms.of(screen.terms(alpha), held) for screen, held in pairs]
            caps = tuple(np.max([t.S.shape for t in terms], axis=0))
            start = tuple(int(R) for R in found.ranks[place])
            return stack_ranks(terms, start, candidates=self._mask(caps), bound=bound)

        return walk_stacks(self.folds.candidates, found.alphas, found.least, stack_at)[1]

    def _surfaces(self, found: Screened) -> tuple[Sweep, RankGrid]:
        """The surfaces of the places that were visited; NaN for the others."""
        grid = self.grid.within_input_rank(found.n_supported)
        places = {
            place: visit
            for place in np.ndindex(found.least.shape)
            if (visit := self.visits.get((place[:-1], float(found.alphas[place[-1]]))))
        }
        caps = next(iter(places.values())).fold_mse.shape[1:]
        fold_mse = np.full((self.folds.n_folds, *found.least.shape, *caps), np.nan)
        for place, visit in places.items():
            fold_mse[(slice(None), *place)] = visit.fold_mse
        sweep = Sweep(fold_mse, found.null_mse, found.n_supported, found.ridge_mse)
        return sweep, replace(grid, caps=caps)


def _stack_error(visit: Visit) -> float:
    return math.inf if visit.stack is None else visit.stack.cross_fitted_mse
