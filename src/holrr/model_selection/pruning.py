"""A search that computes the surfaces of those penalties and kernels only that can be chosen.

The errors at all places (penalties of a kernel) are screened first (`screen`), beside those of
ridge regression, which are exact. Then places are visited, the most promising first: the surface
over all ranks, and where a stack is asked for that of all ranks, exactly as in an exhaustive
search. Each visit also shows how far the screen was from the truth. The search ends where no place
is left whose screened error comes within some multiples of that distance to the best one found.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ..core.namespace import to_numpy
from ..core.threads import limit_threads
from .folds import Folds
from .grid import RankGrid, parameter_counts
from .screen import Screens, sees_all
from .selection import best_index
from .stack import FoldTerms, Stack, stack_ranks
from .stacking import walk_stacks
from .sweep import Sweep, over_folds
from .terms import extended

__all__ = ["Pruning", "Screened", "is_worthwhile"]

Index = tuple[int, ...]

# Pruning begins where more input directions and outputs than this would be decomposed.
_MANY = 192
# A place is visited unless its screened error is above the best by so many times the largest
# distance of a screened error from the exact one, or by this share of the best at least: of single
# ranks, and of stacks, which the screen knows less well. Ten times the share hold until two have
# been visited, which shows the distance.
_DISTANCES, _SHARE, _STACK_SHARE = 8.0, 1e-5, 1e-4
# Surfaces hold ranks up to twice the best one, and up to this one at least.
_KEPT_RANKS = 16
# One stack of a kernel has to do where its best rank is above the best stack by this share, and by
# this multiple of what that stack gains, unless that one is not clearly worse.
_NO_GAIN, _GAINS = 0.03, 3.0
# Screened stacks are given up where their errors must exceed the least one by this share.
_UNSURE = 0.005


def is_worthwhile(folds: Folds, grid: RankGrid, n_penalties: int) -> bool:
    """Whether screening is so much cheaper than the surfaces that it pays."""
    n_places = n_penalties * math.prod(folds.candidates)
    directions = min(folds.max_input_rank, math.prod(folds.output_shape))
    return (
        folds.keeps
        and len(grid.caps) == 1 + len(folds.output_shape) > 1
        and directions > _MANY
        and n_places > 3
        and sees_all(grid)
    )


@dataclass(frozen=True, eq=False)
class Screened:
    """The screened errors of all places."""

    pruning: Pruning
    alphas: np.ndarray  # (n_alphas,), in the units of the folds
    least: np.ndarray  # (*candidates, n_alphas): the least error of each place, nearly
    ranks: np.ndarray  # (*candidates, n_alphas, p + 1): where it is
    null_mse: float  # this and the following as in `Sweep`
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
    """The exact errors of one place."""

    fold_mse: np.ndarray  # (n_folds, R0, ...), up to twice the best rank
    rank: Index  # the best single one
    error: float  # its own, the mean of `fold_errors`
    fold_errors: np.ndarray  # (n_folds,)
    stack: Stack | None = None


class Pruning:
    """A search through the places of some folds, for the ranks of a grid."""

    def __init__(
        self,
        folds: Folds,
        grid: RankGrid,
        *,
        subspaces: str = "fitted",
        selection: str = "min",
        n_jobs: int | None = None,
    ):
        self.folds, self.grid = folds, grid
        self.selection, self.n_jobs = selection, n_jobs
        everywhere = selection == "1se"
        self.screens = Screens(
            folds, grid, subspaces=subspaces, everywhere=everywhere, n_jobs=n_jobs
        )
        self.visits: dict[tuple[Index, float], Visit] = {}
        self.keeps_all = everywhere or grid.listed is not None
        self.stack: tuple[Index, Any] | None = None
        self.least = np.empty(0)
        self._counts = lru_cache(1)(partial(parameter_counts, folds.shape))

    def screened(self, alphas: np.ndarray, tick: Callable[[], object]) -> Screened:
        """The screened errors of some penalties, in the units of the folds."""
        return Screened(self, alphas, **self.screens.look(alphas, tick))

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
            path, held = self.screens.path(fold, candidate)
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
        with limit_threads(1):
            mixture = stack_ranks(terms, rank, candidates=mask) if stack else None
        kept = grid.caps if self.keeps_all else [max(2 * R, _KEPT_RANKS) for R in rank]
        return Visit(
            fold_mse=np.stack([block[tuple(map(slice, kept))] for block in blocks]),
            rank=rank,
            error=float(mean[at]),
            fold_errors=np.array([block[at] for block in blocks]),
            stack=mixture,
        )

    # ------------------------------------------------------------ the search

    def settle(self, found: Screened, stacks: bool) -> tuple[Sweep, RankGrid]:
        """Visit what can be chosen, and return the surfaces and their grid."""
        self.least = np.where(np.isfinite(found.least), found.least, np.nan)
        promising = self._stack_errors(found) if stacks else {}
        near = min(promising.values(), default=0.0) * (1 + _STACK_SHARE)
        singles = {place: float(found.least[place]) for place in np.ndindex(found.least.shape)}
        visit = lambda place: self.visit(found, place, promising.get(place, math.inf) <= near)  # noqa: E731
        self._visit_best(singles, visit, lambda visit: visit.error, _SHARE)
        if stacks:
            self.stack = self._best_stack(found, promising)
        return self._surfaces(found)

    def _visit_best(
        self,
        estimates: dict[Index, float],
        visit: Callable[[Index], Visit],
        error: Callable[[Visit], float],
        share: float,
    ) -> dict[Index, Visit]:
        """Visit the most promising places until no other can be chosen."""
        seen: dict[Index, Visit] = {}
        distance, least, room = 0.0, math.inf, 0.0
        for place in sorted(estimates, key=lambda place: estimates[place]):
            floor = (share if len(seen) > 1 else 10 * share) * least
            if seen and estimates[place] > least + room + max(_DISTANCES * distance, floor):
                break
            seen[place] = visit(place)
            distance = max(distance, abs(error(seen[place]) - estimates[place]))
            if error(seen[place]) < least:
                least, n = error(seen[place]), self.folds.n_folds
                if self.selection == "1se" and n > 1:
                    room = float(seen[place].fold_errors.std(ddof=1)) / math.sqrt(n)
        return seen

    def _best_stack(self, found: Screened, promising: dict[Index, float]) -> tuple[Index, Any]:
        """The place of the best stack and that stack: better than two penalties on each side."""
        order = [int(a) for a in np.argsort(found.alphas)]
        while True:
            visit = lambda place: self.visit(found, place, True)  # noqa: E731
            seen = self._visit_best(promising, visit, _stack_error, _STACK_SHARE)
            best = min(seen, key=lambda place: _stack_error(seen[place]))
            at = order.index(best[-1])
            beside = [(*best[:-1], a) for a in order[max(at - 2, 0) : at + 3]]
            missing = [place for place in beside if place not in promising]
            if not missing:
                return best, seen[best].stack
            for place in missing:
                promising[place] = self._screened_stack(found, place, math.inf).cross_fitted_mse

    def _stack_errors(self, found: Screened) -> dict[Index, float]:
        """Screened errors of the stacks of all places that a search for them comes by."""

        def enter(candidate: Index, best: tuple[Index, Stack] | None) -> bool:
            if best is None:
                return True
            error = best[1].cross_fitted_mse
            gain = float(found.least[best[0]]) - error
            room = max(_NO_GAIN * error, _GAINS * gain)
            return float(found.least[candidate].min()) <= error + room

        stack_at = partial(self._screened_stack, found)
        return walk_stacks(self.folds.candidates, found.alphas, found.least, stack_at, enter)[1]

    def _screened_stack(self, found: Screened, place: Index, bound: float) -> Any:
        """The stack of a place within the screen; None where it must exceed the bound by far."""

        def terms(fold: int) -> FoldTerms:
            screen, held = self.screens.kept[(fold, *place[:-1])]
            return FoldTerms.of(screen.terms(float(found.alphas[place[-1]])), held)

        if math.isinf(found.least[place]):  # beyond where the screen has looked
            found.least[place], found.ranks[place] = next(
                self.screens.best(place[:-1], found.alphas[[place[-1]]])
            )
        parts = over_folds(self.folds, terms, self.n_jobs)
        start, bound = tuple(int(R) for R in found.ranks[place]), (1 + _UNSURE) * bound
        with limit_threads(1):
            return stack_ranks(parts, start, candidates=self.grid.mask(), bound=bound)

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
