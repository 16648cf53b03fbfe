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

Then places are visited, the most promising first: the exact surface over all ranks. Each visit also
shows the error of the screen. The search ends when no other place is screened within some multiples
of that error of the best one found. A stack is built about the best one (`stack`).
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
from ..progress import Progress
from .folds import Problems
from .grid import RankGrid, parameter_counts, refined, warn_at_edge
from .search import (
    SearchOptions,
    Surface,
    best_index,
    n_parallel,
    over_folds,
    scaled_penalties,
)
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
# of the screen, or by this share of the best at least. Ten times the share hold until two places
# were visited.
_DISTANCES, _SHARE = 8.0, 1e-5


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
        screened, alphas = refined(compute, alphas, room=room)
    warn_at_edge(screened, alphas, "alphas")
    return visits.settle(screened)


@dataclass(frozen=True, eq=False)
class Screened:
    """Screened errors of all places."""

    visits: _Visits
    alphas: np.ndarray  # (n_alphas,), in the units of the user's data
    least: np.ndarray  # (n_candidates, n_alphas): approximate least error of each place
    null_mse: float  # this and the following as in `Surface`
    n_supported: int
    ridge_errors: np.ndarray

    def joined(self, other: Screened, order: np.ndarray) -> Screened:
        """With the errors of more penalties, as in `Surface`."""
        pair = (self, other)
        return replace(
            self,
            alphas=np.concatenate([part.alphas for part in pair])[order],
            least=np.concatenate([part.least for part in pair], axis=1)[:, order],
            n_supported=max(self.n_supported, other.n_supported),
            ridge_errors=np.concatenate([part.ridge_errors for part in pair], axis=1)[:, order],
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
        nulls: list[float] = []
        supported = 1
        for candidate in range(folds.n_candidates):
            folds.prepare(candidate)
            start = partial(self._start, candidate=candidate, alphas=scaled)
            errors, null, directions = zip(*self._over_folds(start), strict=True)
            nulls, supported = [*nulls, *null], max(supported, *directions)
            ridge[candidate] = np.mean(errors, axis=0)
            for some in self._in_order(scaled, ridge[candidate], least[candidate]):
                screened = self._best(candidate, scaled[some])
                bound = ridge[candidate, some] if self.has_ridge else math.inf
                least[candidate, some] = np.minimum(screened, bound)
            for _ in range(alphas.size * folds.n_folds):
                tick()
        return Screened(self, alphas, least, float(np.mean(nulls)), supported, ridge)

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

    def _best(self, candidate: int, alphas: np.ndarray) -> np.ndarray:
        """For each penalty the least error of all ranks within the screen."""
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
        return total.reshape(alphas.size, -1).min(axis=1)

    # ------------------------------------------------------------ exact errors

    def visit(self, found: Screened, place: Index) -> Visit:
        """The exact errors of a place."""
        key = place[0], float(found.alphas[place[1]])
        if key not in self.visited:
            self.visited[key] = self._visit(*key, found.n_supported)
        return self.visited[key]

    def _visit(self, candidate: int, alpha: float, n_supported: int) -> Visit:
        grid, scaled = (
            self.grid.within_input_rank(n_supported),
            scaled_alpha(alpha, self.folds.x_unit),
        )
        self.folds.prepare(candidate)

        def run(fold: int) -> np.ndarray:
            path, held = self._path(fold, candidate)
            block = to_numpy(path.terms(scaled).errors(held.yy))
            np.maximum(block, 0.0, out=block)
            np.divide(block, held.size, out=block)
            return extended(block, grid.caps)

        blocks = self._over_folds(run)
        mask, mean = grid.mask(), sum(blocks) / len(blocks)
        if mask is not None:
            mean[~mask] = np.nan
        at = best_index(mean, parameter_counts(self.folds.shape, grid.caps))
        rank = tuple(i + 1 for i in at)
        fold_errors = np.array([block[at] for block in blocks])
        return Visit(np.stack(blocks), rank, float(mean[at]), fold_errors)

    def settle(self, found: Screened) -> Surface:
        """Visit what can be chosen, and return the surfaces."""
        screened = np.where(np.isfinite(found.least), found.least, np.nan)
        self._visit_best(found)
        return self._surface(found, screened)

    def _visit_best(self, found: Screened) -> None:
        """Visit the most promising places until no other can be chosen."""
        estimates = {place: float(found.least[place]) for place in np.ndindex(found.least.shape)}
        distance, least, room, n_seen = 0.0, math.inf, 0.0, 0
        for place in sorted(estimates, key=lambda place: estimates[place]):
            floor = (_SHARE if n_seen > 1 else 10 * _SHARE) * least
            if n_seen and estimates[place] > least + room + max(_DISTANCES * distance, floor):
                return
            visit, n_seen = self.visit(found, place), n_seen + 1
            distance = max(distance, abs(visit.error - estimates[place]))
            if visit.error < least:
                least, n = visit.error, self.folds.n_folds
                if self.options.selection == "1se" and n > 1:
                    room = float(visit.fold_errors.std(ddof=1)) / math.sqrt(n)

    def _surface(self, found: Screened, screened: np.ndarray) -> Surface:
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
            found.ridge_errors,
            screened,
            computed,
        )
