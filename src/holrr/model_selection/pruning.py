"""Pruned searches: which penalties (and kernels) need an error surface.

The errors at all places, pairs of candidate and penalty, are first estimated by a screen. With the
singular value decomposition ``Z = U0 diag(sigma) V'`` of a training problem, the fit of input rank
R is the ridge fit projected onto the leading R columns of `V`. These change little with the
penalty. So the leading ones at two penalties, the smallest and that of the best ridge fit, are
computed once, and for every other penalty the best directions within their span (Rayleigh and
Ritz):

    Z Q = W diag(sigma) P' ,    V = Q P        with ``Q`` of shape (D, m).

That is an eigenproblem of size m instead of one of the size of the inputs, and a core of m rows;
the bases of the output modes are exact.

Then places are visited, the most promising first: the exact surface over all ranks and, for a
stack, the exact stack. Each visit also shows the error of the screen. The search ends when no other
place is screened within some multiples of that error of the best one found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..core.fit import scaled_alpha
from ..core.namespace import Array, eigh_top, namespace_of, to_numpy
from ..core.tensor import unfold
from ..core.threads import limit_threads
from ..progress import Progress
from .folds import Problems
from .grid import RankGrid, parameter_counts, warn_at_edge, widened
from .search import (
    SearchOptions,
    Surface,
    best_index,
    best_ridge,
    better_ridge,
    n_parallel,
    over_folds,
    scaled_penalties,
)
from .stack import FoldTerms, Stack, best_stack, stack_ranks
from .surface import HeldOut, RankPath, Terms, extended, rank_path, rotated

__all__ = ["Screen", "is_worthwhile", "pruned_surface"]

Index = tuple[int, ...]

# Pruning begins where more input directions and outputs than this would be decomposed.
_MANY = 192
# Directions of the subspace: half of them from each of two penalties.
N_DIRECTIONS = 64
# Screens of penalties beyond that of the best ridge fit end with two in a row that increase and are
# above the least error of their candidate by this share.
_RISE = 0.02
# A place is visited unless its screened error is above the best by so many times the largest error
# of the screen, or by this share of the best at least: of single ranks, and of stacks, which the
# screen estimates less well. Ten times the share hold until two places were visited.
_DISTANCES, _SHARE, _STACK_SHARE = 8.0, 1e-5, 1e-4
# Only the first penalty of a candidate is tried for a stack where its best single rank is above the
# best stack by this share, and by this multiple of the gain of that stack.
_NO_GAIN, _GAINS = 0.03, 3.0
# Screened stacks are given up where their errors must exceed the least one by this share.
_UNSURE = 0.005


def is_worthwhile(folds: Any, grid: RankGrid, n_penalties: int) -> bool:
    """Whether screening is so much cheaper than the surfaces that it pays."""
    directions = min(folds.max_input_rank, math.prod(folds.shape[1:]))
    # A screen knows listed ranks only up to its number of directions.
    sees_all = grid.listed is None or grid.caps[0] <= N_DIRECTIONS
    return (
        len(grid.caps) == len(folds.shape) > 1
        and directions > _MANY
        and n_penalties * folds.n_candidates > 3
        and sees_all
    )


def pruned_surface(
    problems: Problems,
    alphas: np.ndarray,
    grid: RankGrid,
    options: SearchOptions,
    bar: Progress,
    room: int,
) -> Surface | None:
    """The surfaces of all places that can be chosen, with NaN for the others.

    None where computing all surfaces is faster.

    Parameters
    ----------
    problems : Problems
    alphas : array of shape (n_alphas,)
        Penalties to begin with, in the units of the user's data.
    grid : RankGrid
    options : SearchOptions
    bar : Progress
    room : int
        Number of further penalties that fit in memory.
    """
    if not is_worthwhile(problems.folds, grid, alphas.size):
        return None
    visits = _Visits(problems, grid, options)

    def compute(more: np.ndarray) -> Screened:
        bar.expect(problems.folds.n_folds * problems.folds.n_candidates * more.size)
        return visits.screen(more, bar.tick)

    if options.alphas is not None:
        screened = compute(alphas)
    else:
        screened, alphas = widened(compute, alphas, room=room)
    warn_at_edge(screened, alphas, "alphas")
    return visits.settle(screened)


@dataclass(frozen=True, eq=False)
class Screened:
    """Screened errors of all places."""

    visits: _Visits
    alphas: np.ndarray  # (n_alphas,), in the units of the user's data
    least: np.ndarray  # (n_candidates, n_alphas): approximate least error of each place
    ranks: np.ndarray  # (n_candidates, n_alphas, p + 1): where it is
    null_mse: float  # this and the following as in `Surface`
    n_supported: int
    ridge_mse: float
    ridge_at: tuple[int, float] | None

    def joined(self, other: Screened, *, before: bool) -> Screened:
        """With the errors of more penalties, before or after these."""
        pair = (other, self) if before else (self, other)
        return replace(
            self,
            alphas=np.concatenate([part.alphas for part in pair]),
            least=np.concatenate([part.least for part in pair], axis=1),
            ranks=np.concatenate([part.ranks for part in pair], axis=1),
            n_supported=max(self.n_supported, other.n_supported),
            **better_ridge(self, other),
        )

    def profile(self) -> tuple[np.ndarray, np.ndarray]:
        """As that of `Surface`: exact where the best penalty is at an edge, or next to one."""
        least, where = self.least.min(axis=0), self.least.argmin(axis=0)
        order, folds = np.argsort(self.alphas), np.zeros(1)
        place = int(np.flatnonzero(order == np.argmin(least))[0])
        if 1 < place < order.size - 2:
            return least, folds
        ends = order[:2] if place <= 1 else order[-2:]
        found = {int(a): self.visits.visit(self, (int(where[a]), int(a))) for a in ends}
        for a, visit in found.items():
            least[a] = visit.error
        return least, min(found.values(), key=lambda visit: visit.error).fold_errors


@dataclass(frozen=True, eq=False)
class Visit:
    """The exact errors of one place."""

    fold_mse: np.ndarray  # (n_folds, R0, ...)
    rank: Index  # the best single one
    error: float  # its own, the mean of `fold_errors`
    fold_errors: np.ndarray  # (n_folds,)
    stack: Stack | None = None


# ---------------------------------------------------------------- screens


class Screen:
    """Approximate terms of the surface of one fold, for each penalty.

    Parameters
    ----------
    path : RankPath
        Over all output modes.
    alphas : sequence of float
        Penalties whose leading directions span the subspace.
    """

    def __init__(self, path: RankPath, alphas: Sequence[float]):
        self.path, xp = path, namespace_of(path.T)
        leading = [self._leading(alpha, N_DIRECTIONS // len(alphas)) for alpha in alphas]
        self.Q = xp.linalg.qr(xp.concat(leading, axis=1))[0]
        self.TQ = unfold(path.T, 0) @ self.Q

    def terms(self, alpha: float) -> Terms:
        """As those of the path, with the rows of ``V' x_1 U1' ...`` for those of the core."""
        path, xp = self.path, namespace_of(self.Q)
        root = path.root(alpha)
        Z = self.TQ * (path.s / root)[:, None]
        P = eigh_top(Z.T @ Z, min(path.ranks[0], self.Q.shape[1]))[1]
        G, H = path.products((path.s / root / root * path.scale)[:, None] * (self.TQ @ P))
        S, H = rotated(self.Q @ P, H.T, path.output_bases(root))
        return Terms(S, H, xp.tril(G) + xp.tril(G, k=-1))

    def _leading(self, alpha: float, k: int) -> Array:
        """The leading right singular directions of Z at one penalty, orthogonal if not unit."""
        path, d = self.path, self.path.s / self.path.root(alpha)
        T = unfold(path.T, 0)
        if T.shape[0] <= T.shape[1]:
            U = eigh_top(path.input_gram * d[:, None] * d, min(k, T.shape[0]))[1]
            return T.T @ (U * d[:, None])
        Z = T * d[:, None]
        return eigh_top(Z.T @ Z, min(k, T.shape[1]))[1]


class _Visits:
    """The screens and exact errors of a search so far; a place is computed once."""

    def __init__(self, problems: Problems, grid: RankGrid, options: SearchOptions):
        self.problems, self.folds, self.options = problems, problems.folds, options
        self.grid, self.n_jobs = grid, n_parallel(problems.folds, options.n_jobs)
        self.screens: dict[tuple[int, int], tuple[Screen, HeldOut]] = {}
        self.visited: dict[tuple[int, float], Visit] = {}
        self.min_alpha = math.inf
        # Where all ranks of a fit are candidates, ridge regression is one of them.
        full = all(cap >= d for cap, d in zip(grid.caps[1:], self.folds.shape[1:], strict=True))
        self.has_ridge = full and grid.caps[0] >= self.folds.max_input_rank and grid.listed is None

    def _over_folds(self, run: Callable[[int], Any]) -> list[Any]:
        return over_folds(self.folds.n_folds, run, self.n_jobs)

    def screen(self, alphas: np.ndarray, tick: Callable[[], object]) -> Screened:
        """The screened errors of some penalties, in the units of the user's data."""
        folds, scaled = self.folds, scaled_penalties(alphas, self.folds)
        if float(scaled.min()) < self.min_alpha:  # which may need problems of another kind
            self.min_alpha = float(scaled.min())
            self.screens.clear()
        shape = (folds.n_candidates, alphas.size)
        least, ridge = np.full(shape, np.inf), np.empty(shape)
        ranks = np.ones((*shape, len(self.grid.caps)), dtype=int)
        nulls: list[float] = []
        supported = 1
        for candidate in range(folds.n_candidates):
            folds.prepare(candidate)
            start = partial(self._start, candidate=candidate, alphas=scaled)
            errors, null, directions = zip(*self._over_folds(start), strict=True)
            nulls, supported = [*nulls, *null], max(supported, *directions)
            ridge[candidate] = np.mean(errors, axis=0)
            for some in self._in_order(scaled, ridge[candidate], least[candidate]):
                for a, (error, rank) in zip(some, self._best(candidate, scaled[some]), strict=True):
                    bound = float(ridge[candidate, a]) if self.has_ridge else math.inf
                    least[candidate, a], ranks[candidate, a] = min(error, bound), rank
            for _ in range(alphas.size * folds.n_folds):
                tick()
        best = best_ridge(ridge, alphas)
        return Screened(self, alphas, least, ranks, float(np.mean(nulls)), supported, **best)

    def _in_order(self, alphas: np.ndarray, ridge: np.ndarray, least: np.ndarray) -> Iterator[Any]:
        """Penalties to screen, some at a time: up to that of the best ridge fit, then larger ones.

        Low ranks take the place of a penalty, so that small penalties are not judged by ridge. The
        caller puts their errors into `least`.
        """
        order = np.argsort(alphas)
        start = int(np.flatnonzero(order == np.argmin(ridge))[0])
        yield order[: start + 1]
        for i in range(start + 1, order.size, 2):
            yield order[i : i + 2]
            errors = least[order[i : i + 2]]
            rises = errors[0] > (1 + _RISE) * least.min() and errors[-1] >= errors[0]
            if rises and self.options.selection != "1se":
                return

    def _start(
        self, fold: int, candidate: int, alphas: np.ndarray
    ) -> tuple[np.ndarray, float, int]:
        """Errors of ridge regression and of the mean in a fold, whose screen is made."""
        path, held = self._path(fold, candidate)
        ridge = path.ridge_errors(map(float, alphas))
        if (fold, candidate) not in self.screens:
            ends = {float(alphas.min()), float(alphas[np.argmin(ridge)])}
            self.screens[fold, candidate] = Screen(path, sorted(ends)), held
        ridge = np.maximum(held.yy + ridge, 0.0) / held.size
        return ridge, held.yy / held.size, int(path.s.shape[0])

    def _path(self, fold: int, candidate: int) -> tuple[RankPath, HeldOut]:
        if (fold, candidate) in self.screens:
            screen, held = self.screens[fold, candidate]
            return screen.path, held
        problem, held = self.problems(fold, candidate, self.min_alpha)
        return rank_path(problem, held, self.grid.caps, self.options.subspaces), held

    def _best(self, candidate: int, alphas: np.ndarray) -> Iterator[tuple[float, Index]]:
        """For each penalty the least error of all ranks within the screen, and where it is."""
        caps = min(self.grid.caps[0], N_DIRECTIONS), *self.grid.caps[1:]
        parts = np.empty((self.folds.n_folds, alphas.size, *caps))

        def run(fold: int) -> None:
            screen, held = self.screens[fold, candidate]
            for a, alpha in enumerate(alphas):
                block = to_numpy(screen.terms(float(alpha)).errors(held.yy))
                np.divide(extended(block, caps), held.size, out=parts[fold, a])

        self._over_folds(run)
        total = parts.mean(axis=0)  # in one order, whichever fold is ready first
        mask = self.grid.mask()
        if mask is not None:
            total[:, ~mask] = np.inf
        for mean in total:
            at = np.unravel_index(int(np.argmin(mean)), caps)
            yield float(mean[at]), tuple(int(i) + 1 for i in at)

    # ------------------------------------------------------------ exact errors

    def visit(self, found: Screened, place: Index, stack: bool = False) -> Visit:
        """The exact errors of a place, and its stack where one is asked for."""
        key = place[0], float(found.alphas[place[1]])
        known = self.visited.get(key)
        if known is None or (stack and known.stack is None):
            self.visited[key] = self._visit(*key, found.n_supported, stack)
        return self.visited[key]

    def _visit(self, candidate: int, alpha: float, n_supported: int, stack: bool) -> Visit:
        grid, scaled = (
            self.grid.within_input_rank(n_supported),
            scaled_alpha(alpha, self.folds.x_unit),
        )
        self.folds.prepare(candidate)

        def run(fold: int) -> tuple[np.ndarray, FoldTerms | None]:
            path, held = self._path(fold, candidate)
            terms = path.terms(scaled)
            block = to_numpy(terms.errors(held.yy))
            np.maximum(block, 0.0, out=block)
            np.divide(block, held.size, out=block)
            return extended(block, grid.caps), FoldTerms.of(terms, held) if stack else None

        blocks, terms = zip(*self._over_folds(run), strict=True)
        mask, mean = grid.mask(), sum(blocks) / len(blocks)
        if mask is not None:
            mean[~mask] = np.nan
        at = best_index(mean, parameter_counts(self.folds.shape, grid.caps))
        rank = tuple(i + 1 for i in at)
        with limit_threads(1):
            mixture = stack_ranks(terms, rank, candidates=mask) if stack else None
        fold_errors = np.array([block[at] for block in blocks])
        return Visit(np.stack(blocks), rank, float(mean[at]), fold_errors, mixture)

    def settle(self, found: Screened) -> Surface:
        """Visit what can be chosen, and return the surfaces."""
        screened = np.where(np.isfinite(found.least), found.least, np.nan)
        stacks = self.options.stacks
        promising = self._stack_errors(found) if stacks else {}
        near = min(promising.values(), default=0.0) * (1 + _STACK_SHARE)
        singles = {place: float(found.least[place]) for place in np.ndindex(found.least.shape)}

        def visit(place: Index) -> Visit:
            return self.visit(found, place, promising.get(place, math.inf) <= near)

        self._visit_best(singles, visit, lambda visit: visit.error, _SHARE)
        best = self._best_stack(found, promising) if stacks else {}
        return self._surface(found, screened, best)

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
                if self.options.selection == "1se" and n > 1:
                    room = float(seen[place].fold_errors.std(ddof=1)) / math.sqrt(n)
        return seen

    # ------------------------------------------------------------ stacks

    def _best_stack(self, found: Screened, promising: dict[Index, float]) -> dict[Index, Stack]:
        """The best stack by its place: better than those of two penalties on each side."""
        order = [int(a) for a in np.argsort(found.alphas)]
        while True:
            visit = partial(self.visit, found, stack=True)
            seen = self._visit_best(promising, visit, _stack_error, _STACK_SHARE)
            best = min(seen, key=lambda place: _stack_error(seen[place]))
            at = order.index(best[1])
            around = [(best[0], a) for a in order[max(at - 2, 0) : at + 3]]
            missing = [place for place in around if place not in promising]
            if not missing:
                stack = seen[best].stack
                assert stack is not None
                return {best: stack}
            for place in missing:
                stack = self._screened_stack(found, place, math.inf)
                assert stack is not None
                promising[place] = stack.cross_fitted_mse

    def _stack_errors(self, found: Screened) -> dict[Index, float]:
        """Screened errors of the stacks of all places that a search for them tries."""

        def is_promising(candidate: int, best: tuple[Index, Stack] | None) -> bool:
            if best is None:
                return True
            error = best[1].cross_fitted_mse
            gain = float(found.least[best[0]]) - error
            room = max(_NO_GAIN * error, _GAINS * gain)
            return float(found.least[candidate].min()) <= error + room

        stack_at = partial(self._screened_stack, found)
        return best_stack(found.alphas, found.least, stack_at, is_promising)[1]

    def _screened_stack(self, found: Screened, place: Index, bound: float) -> Stack | None:
        """The stack of a place within the screen; None where it must exceed the bound by far."""
        candidate, alpha = place[0], scaled_alpha(found.alphas[place[1]], self.folds.x_unit)

        def terms(fold: int) -> FoldTerms:
            screen, held = self.screens[fold, candidate]
            return FoldTerms.of(screen.terms(alpha), held)

        if math.isinf(found.least[place]):  # beyond what was screened
            found.least[place], found.ranks[place] = next(self._best(candidate, np.array([alpha])))
        parts = self._over_folds(terms)
        start, bound = tuple(int(R) for R in found.ranks[place]), (1 + _UNSURE) * bound
        with limit_threads(1):
            return stack_ranks(parts, start, candidates=self.grid.mask(), bound=bound)

    def _surface(
        self, found: Screened, screened: np.ndarray, stacks: dict[Index, Stack]
    ) -> Surface:
        """The surfaces of the places that were visited; NaN for the others."""
        grid = self.grid.within_input_rank(found.n_supported)
        mask = grid.mask()
        fold_mse = np.full((self.folds.n_folds, *found.least.shape, *grid.caps), np.nan)
        computed = np.zeros(found.least.shape, dtype=bool)
        for place in np.ndindex(found.least.shape):
            visit = self.visited.get((place[0], float(found.alphas[place[1]])))
            if visit is not None:
                errors, computed[place] = fold_mse[(slice(None), *place)], True
                errors[...] = visit.fold_mse
                if mask is not None:
                    errors[:, ~mask] = np.nan
        return Surface(
            fold_mse,
            found.alphas,
            grid,
            found.null_mse,
            found.n_supported,
            found.ridge_mse,
            found.ridge_at,
            screened,
            stacks,
            computed,
        )


def _stack_error(visit: Visit) -> float:
    return math.inf if visit.stack is None else visit.stack.cross_fitted_mse
