"""Pruned searches, which skip the error surfaces of penalties (and kernels) that cannot be chosen.

A *place* is a pair of candidate and penalty. A *screen* first estimates the errors at all places.
With the singular value decomposition ``Z = U0 diag(sigma) V'`` of a training problem, the fit of
input rank R is the ridge fit projected onto the leading R columns of `V`. These columns change
little with the penalty. The screen therefore computes the leading columns at two penalties, the
smallest penalty and that of the best ridge fit. For every other penalty, it computes the best
directions within their span (Rayleigh-Ritz method):

    Z Q = W diag(sigma) P' ,    V = Q P        with ``Q`` of shape (D, m).

This is an eigenproblem of size m in place of one of the size of the inputs, and a core of m rows.
Long output modes are projected onto their leading directions at the same two penalties, with small
ranks only. If good models of the screens have ranks near the largest of these ranks, the screens
are computed again with twice the ranks.

A *visit* then computes the exact error surface of a place over all ranks, and with it the error of
the screen. Places with small screened errors are visited first. The search ends if the screened
errors of all other places exceed the best error by more than a multiple of the error of the screen.
A stack is built around the best place (`stack`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..core.fit import scaled_alpha
from ..core.namespace import Array, eigh_top, namespace_of, to_numpy
from ..core.results import Deferred, Results
from ..core.tensor import multi_mode_product, unfold
from ..progress import Progress
from .grid import RankGrid, parameter_counts, refined, warn_at_edge
from .search import (
    SearchOptions,
    best_index,
    n_parallel,
    over_folds,
    scaled_penalties,
    select,
    std_over_folds,
)
from .sources import Problems
from .surface import HeldOut, RankPath, Terms, extended, rank_path, rotated

__all__ = ["Screen", "is_worthwhile", "pruned_surface"]

Index = tuple[int, ...]

# A search is pruned if there are more than _MANY input directions and outputs, or if there are more
# than _MANY_PLACES places and screens are smaller than the surfaces by a factor above _SMALLER.
_MANY, _MANY_PLACES, _SMALLER = 192, 30, 2.5
# Largest ranks of the input mode and of each output mode in the first screens. Subspaces have this
# number of directions from each of two penalties.
N_DIRECTIONS, N_OUTPUT_DIRECTIONS = 32, 8
# Screening of penalties beyond that of the best ridge fit ends at two penalties in a row whose
# errors increase and exceed the least error of their candidate by this share.
_RISE = 0.02
# The ranks of screens are doubled if models whose errors exceed the least by at most this share
# have ranks near the largest.
_NEAR = 0.05
# A place is not visited if its screened error exceeds the best error by _DISTANCES times the
# largest error of the screen, and by the share _SHARE (ten times _SHARE up to the second visit).
_DISTANCES, _SHARE = 8.0, 1e-5


def limits_of(grid: RankGrid) -> Index:
    """Return the largest ranks of the first screens, for each mode that is reduced."""
    if len(grid.caps) == 2:  # the rank of a matrix
        return N_DIRECTIONS, N_DIRECTIONS
    return (N_DIRECTIONS, *(N_OUTPUT_DIRECTIONS for _ in grid.caps[1:]))


def is_worthwhile(problems: Problems, grid: RankGrid, n_penalties: int) -> bool:
    """Return whether screening is much cheaper than computing all error surfaces."""
    n_places, n_modes = n_penalties * problems.n_candidates, len(grid.caps)
    if n_modes not in (1, len(problems.shape)) or n_places <= 3:
        return False
    directions = min(problems.max_input_rank, math.prod(problems.shape[1:]))
    if directions > _MANY:
        return True
    sizes = (problems.max_input_rank, *problems.shape[1:])
    pairs = zip(sizes, limits_of(grid), strict=False)
    share = math.prod(min(1.0, limit / n) for n, limit in pairs)
    return len(sizes) > 2 and n_places > _MANY_PLACES and share * _SMALLER < 1


def pruned_surface(
    problems: Problems,
    alphas: np.ndarray,
    grid: RankGrid,
    options: SearchOptions,
    bar: Progress,
) -> PrunedSurface | None:
    """Compute the error surfaces of all places that can be chosen, with NaN for the others.

    Returns None if computing all surfaces is faster.

    Parameters
    ----------
    problems : Problems
        Problems of all folds.
    alphas : array of shape (n_alphas,)
        Initial penalties, in the units of the user's data.
    grid : RankGrid
        Candidate ranks.
    options : SearchOptions
        Parameters of the search.
    bar : Progress
        Progress bar.
    """
    if not is_worthwhile(problems, grid, alphas.size):
        return None
    visits = _Visits(problems, grid, options)

    def compute(more: np.ndarray) -> Screened:
        bar.expect(problems.n_folds * problems.n_candidates * more.size)
        return visits.screen(more, bar.tick)

    if options.alphas is not None:
        screened = compute(alphas)
    else:
        screened, alphas = refined(compute, alphas)
    warn_at_edge(screened, alphas, "alphas")
    return visits.settle(screened)


@dataclass(frozen=True, eq=False)
class Screened:
    """Screened errors of all places."""

    visits: _Visits
    alphas: np.ndarray  # (n_alphas,), in the units of the user's data
    least: np.ndarray  # (n_candidates, n_alphas): approximate least error of each place
    null_mse: float  # the following attributes are those of `Surface`
    n_supported: int
    fold_ridge: np.ndarray

    def joined(self, other: Screened, order: np.ndarray) -> Screened:
        """Add the errors of more penalties, as in `Surface.joined`."""
        pair = (self, other)
        return replace(
            self,
            alphas=np.concatenate([part.alphas for part in pair])[order],
            least=np.concatenate([part.least for part in pair], axis=1)[:, order],
            n_supported=max(self.n_supported, other.n_supported),
            fold_ridge=np.concatenate([part.fold_ridge for part in pair], axis=2)[:, :, order],
        )

    def profile(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the least error at each penalty, and the fold errors of the best model.

        The error is exact at the best penalty. If the best penalty is at or next to an end of the
        grid, the errors at this end are exact, and so are the fold errors. Otherwise the fold
        errors are zero.
        """
        self.visits.visit_best(self)
        errors, folds = self._errors(), np.zeros(1)
        least, order = errors.min(axis=0), np.argsort(self.alphas)
        place = int(np.flatnonzero(order == np.argmin(least))[0])
        if 1 < place < order.size - 2:
            return least, folds
        ends = order[:2] if place <= 1 else order[-2:]
        found = {int(a): self.visits.visit(self, (int(errors[:, a].argmin()), a)) for a in ends}
        for a, visit in found.items():
            least[a] = visit.error
        return least, min(found.values(), key=lambda visit: visit.error).fold_errors

    def _errors(self) -> np.ndarray:
        """Return the errors of all places, (n_candidates, n_alphas), exact for visited places."""
        errors = self.least.copy()
        for place in np.ndindex(errors.shape):
            visit = self.visits.visited.get((place[0], float(self.alphas[place[1]])))
            if visit is not None:
                errors[place] = visit.error
        return errors


@dataclass(frozen=True, eq=False)
class Visit:
    """Exact errors of one place."""

    fold_mse: np.ndarray  # (n_folds, R0, ...)
    rank: Index  # best rank
    error: float  # error of the best rank, the mean of `fold_errors`
    fold_errors: np.ndarray  # errors of the best rank in each fold, (n_folds,)


@dataclass(frozen=True, eq=False)
class PrunedSurface:
    """Held-out mean squared errors at some places, with the methods of `search.Surface`.

    Parameters
    ----------
    visited_mse : array of shape (n_folds, n_places, R0, ...)
        Errors in the units of the scaled data; NaN for ranks that are not candidates.
    visited : tuple of (candidate, index of the penalty)
        Places, in increasing order.
    alphas, grid, null_mse, n_supported, fold_ridge
        Attributes of `Surface`.
    screened_mse : array of shape (n_candidates, n_alphas)
        Approximate least error at each place.
    """

    visited_mse: np.ndarray
    visited: tuple[Index, ...]
    alphas: np.ndarray
    grid: RankGrid
    null_mse: float
    n_supported: int
    fold_ridge: np.ndarray
    screened_mse: np.ndarray

    def errors_at(self, candidate: int, place: int) -> np.ndarray:
        """Return the errors of all folds and ranks at one place, of shape (n_folds, R0, ...)."""
        return self.visited_mse[:, self.visited.index((candidate, place))]

    @cached_property
    def mean(self) -> np.ndarray:
        """Mean over the folds, of shape (n_places, R0, ...)."""
        return self.visited_mse.mean(axis=0)

    @cached_property
    def std(self) -> np.ndarray:
        """Standard deviation over the folds, of shape (n_places, R0, ...)."""
        return std_over_folds(self.visited_mse, self.mean)

    def at(self, candidate: int, place: int) -> np.ndarray:
        """Return the mean over the folds at one place, of shape (R0, ...)."""
        return self.mean[self.visited.index((candidate, place))]

    def places(self) -> tuple[Index, ...]:
        """Return the pairs of candidate and penalty whose errors are known."""
        return self.visited

    def entries(self, axis: Any) -> dict[str, Any]:
        """Return the errors as entries of `cv_results_`, with NaN for places not computed."""
        return {
            "mean_mse": Deferred(lambda: self._spread(self.mean)[axis]),
            "std_mse": Deferred(lambda: self._spread(self.std)[axis]),
            "fold_mse": Deferred(
                lambda: np.stack([self._spread(fold)[axis] for fold in self.visited_mse])
            ),
            "screened_mse": self.screened_mse[axis],
        }

    def _spread(self, values: np.ndarray) -> np.ndarray:
        """Expand values of the visited places to all places, (n_candidates, n_alphas, R0, ...)."""
        found = np.full((*self.screened_mse.shape, *values.shape[1:]), np.nan)
        for place, value in zip(self.visited, values, strict=True):
            found[place] = value
        return found

    def select(
        self, results: dict[str, Any], options: SearchOptions, n_folds: int
    ) -> tuple[Index, float]:
        """Return the index of the chosen model in the errors of all places, and its error."""
        here = {
            "mean_mse": self.mean,
            "std_mse": Deferred(lambda: self.std),
            "null_mse": self.null_mse,
            "n_parameters": results["n_parameters"],
            "alphas": self.alphas[[place for _, place in self.visited]],
        }
        number, *rank = select(Results(here), options.selection, n_folds)
        place = self.visited[number] if options.named_candidates else self.visited[number][1:]
        return (*place, *rank), float(self.mean[(number, *rank)])


# ---------------------------------------------------------------- screens


class Screen:
    """Approximate errors of one fold, for each penalty.

    Parameters
    ----------
    path : RankPath
        Path of the fold.
    alphas : sequence of float
        Penalties whose leading directions span the subspaces.
    limits : tuple of int
        Largest rank of each mode that is reduced, input mode first. Modes of at most this size
        times the number of penalties are not projected.
    """

    def __init__(self, path: RankPath, alphas: Sequence[float], limits: Sequence[int]) -> None:
        self.path, self.within = path, _within_outputs(path, alphas, limits)
        self.Q: Array | None = None
        T = unfold(self.within.T, 0)
        if min(T.shape) > len(alphas) * limits[0]:
            xp = namespace_of(T)
            leading = [self._leading(alpha, limits[0]) for alpha in alphas]
            self.Q = xp.linalg.qr(xp.concat(leading, axis=1))[0]
            self.TQ = T @ self.Q

    def errors(self, alphas: Sequence[float]) -> Iterator[Array]:
        """Yield the squared errors of all ranks within the subspaces, for groups of penalties."""
        if self.Q is not None:
            for alpha in alphas:
                yield self.within.expanded(self.terms(alpha).errors(self.path.yy))[None, ...]
            return
        self.within.prepare(alphas)
        for some in self.within.together(alphas):
            found = self.within.errors(*alphas[some])
            yield found if some.stop > some.start + 1 else found[None, ...]

    def terms(self, alpha: float) -> Terms:
        """Return the terms of one penalty, with ``V' x_1 U1' ...`` in place of the core."""
        path, xp = self.within, namespace_of(self.TQ)
        assert self.Q is not None
        root = path.root(alpha)
        Z = self.TQ * (path.s / root)[:, None]
        P = eigh_top(Z.T @ Z, min(path.ranks[0], self.Q.shape[1]))[1]
        G, H = path.held_out.products(path.ridge_scale(alpha)[:, None] * (self.TQ @ P))
        V = self.Q @ P
        if path.is_matrix:
            # The rows of V' are orthonormal, so the sum over the outputs has only diagonal terms.
            eye = xp.eye(G.shape[0], dtype=G.dtype)
            return Terms(xp.ones_like(V[0, :]), xp.sum(H * V.T, axis=1), G * eye)
        S, H = rotated(V, H.T, path.output_bases(root))
        return Terms(S, H, xp.tril(G) + xp.tril(G, k=-1))

    def _leading(self, alpha: float, k: int) -> Array:
        """Return leading right singular vectors of Z at one penalty, orthogonal but not scaled."""
        path, d = self.within, self.within.s / self.within.root(alpha)
        T = unfold(path.T, 0)
        if T.shape[0] <= T.shape[1]:
            U = eigh_top(path.input_gram * d[:, None] * d, min(k, T.shape[0]))[1]
            return T.T @ (U * d[:, None])
        Z = T * d[:, None]
        return eigh_top(Z.T @ Z, min(k, T.shape[1]))[1]


def _within_outputs(path: RankPath, alphas: Sequence[float], limits: Sequence[int]) -> RankPath:
    """Project the long output modes of a problem onto leading directions, and limit the ranks."""
    xp, shape = namespace_of(path.T), path.T.shape
    sizes = (min(unfold(path.T, 0).shape), *shape[1:])
    ranks = [
        min(R, limit) if size > len(alphas) * limit else R
        for R, limit, size in zip(path.both or path.ranks, limits, sizes, strict=False)
    ]
    problem = path.problem
    long: list[int] = []
    if not path.is_matrix:
        modes = range(1, path.T.ndim)
        long = [mode for mode in modes if shape[mode] > len(alphas) * limits[mode]]
    if not long:
        return rank_path(problem, path.held_out, tuple(ranks))
    bases = [path.output_bases(path.root(alpha), ranks) for alpha in alphas]
    factors: list[Array | None] = [None] * path.T.ndim
    for mode in long:
        factors[mode] = xp.linalg.qr(xp.concat([some[mode - 1] for some in bases], axis=1))[0]
    held_out = path.held_out
    if held_out.C is None:
        Y = xp.reshape(held_out.Y, (held_out.Y.shape[0], *shape[1:]))
        Y = multi_mode_product(Y, factors, transposed=True)
        held_out = replace(held_out, Y=unfold(Y, 0))
    else:
        B = multi_mode_product(held_out.B, factors, transposed=True)
        held_out = replace(held_out, B=B)
    T = multi_mode_product(problem.T, factors, transposed=True)
    return rank_path(replace(problem, T=T), held_out, tuple(ranks))


class _Visits:
    """Cache of the screens and exact errors of a search."""

    def __init__(self, problems: Problems, grid: RankGrid, options: SearchOptions):
        self.problems, self.options = problems, options
        self.grid, self.n_jobs = grid, n_parallel(problems, options.n_jobs)
        self.screens: dict[tuple[int, int], tuple[Screen, HeldOut]] = {}
        # Errors of ridge regression by penalty, for each fold and candidate.
        self.ridge: dict[tuple[int, int], dict[float, float]] = {}
        self.visited: dict[tuple[int, float], Visit] = {}
        self.min_alpha = math.inf
        self.limits = limits_of(grid)
        # If all ranks are candidates, ridge regression is one of them.
        full = all(cap >= d for cap, d in zip(grid.caps[1:], self.problems.shape[1:], strict=False))
        self.has_ridge = full and grid.caps[0] >= self.problems.max_input_rank

    def _over_folds(self, run: Callable[[int], Any]) -> list[Any]:
        return over_folds(self.problems.n_folds, run, self.n_jobs)

    def screen(self, alphas: np.ndarray, tick: Callable[[], object]) -> Screened:
        """Screen some penalties, given in the units of the user's data."""
        problems, scaled = self.problems, scaled_penalties(alphas, self.problems)
        if float(scaled.min()) < self.min_alpha:  # a smaller penalty may need other problems
            self.min_alpha = float(scaled.min())
            self.screens.clear()
        shape = (problems.n_candidates, alphas.size)
        least, ridge = np.full(shape, np.inf), np.empty((problems.n_folds, *shape))
        nulls: list[float] = []
        supported = 1
        for candidate in range(problems.n_candidates):
            problems.open(candidate)
            start = partial(self._start, candidate=candidate, alphas=scaled)
            errors, null, directions = zip(*self._over_folds(start), strict=True)
            nulls = nulls or list(null)  # other candidates may have own inputs
            supported = max(supported, *directions)
            ridge[:, candidate] = np.stack(errors)
            mean = ridge[:, candidate].mean(axis=0)
            found: list[tuple[float, Index]] = []
            for some in self._in_order(scaled, mean, least[candidate]):
                screened, ranks = self._best(candidate, scaled[some])
                found += zip(screened, ranks, strict=True)
                bound = mean[some] if self.has_ridge else math.inf
                least[candidate, some] = np.minimum(screened, bound)
            for _ in range(alphas.size * problems.n_folds):
                tick()
            good = [rank for error, rank in found if error <= (1 + _NEAR) * least.min()]
            if self._widen(good):
                return self.screen(alphas, lambda: None)
        return Screened(self, alphas, least, float(np.mean(nulls)), supported, ridge)

    def _widen(self, ranks: Sequence[Index]) -> bool:
        """Double the ranks of screens if good models have ranks near the largest."""
        if not ranks:
            return False
        sizes = (self.problems.max_input_rank, *self.problems.shape[1:])
        found = tuple(
            2 * limit if limit < size and 4 * R > 3 * limit else limit
            for R, limit, size in zip(np.max(ranks, axis=0), self.limits, sizes, strict=False)
        )
        if found == self.limits:
            return False
        self.limits = found
        self.screens.clear()
        return True

    def _in_order(self, alphas: np.ndarray, ridge: np.ndarray, least: np.ndarray) -> Iterator[Any]:
        """Yield groups of penalties to screen: up to that of the best ridge fit, then larger ones.

        All small penalties are screened, since a low rank can replace a penalty. The caller writes
        the screened errors into `least`.
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
        """Build the screen of a fold, and return the errors of ridge regression and of the mean."""
        path, held = self._path(fold, candidate)
        ridge = self._ridge_errors(path, fold, candidate, [float(alpha) for alpha in alphas])
        if (fold, candidate) not in self.screens:
            ends = {float(alphas.min()), float(alphas[np.argmin(ridge)])}
            self.screens[fold, candidate] = Screen(path, sorted(ends), self.limits), held
        return ridge / held.size, held.yy / held.size, int(path.s.shape[0])

    def _ridge_errors(
        self, path: RankPath, fold: int, candidate: int, alphas: Sequence[float]
    ) -> np.ndarray:
        """Return the squared errors of ridge regression, which do not depend on the ranks.

        The errors are kept, so that a screen with larger ranks does not compute them again.
        """
        known = self.ridge.setdefault((fold, candidate), {})
        new = [alpha for alpha in alphas if alpha not in known]
        if new:
            known.update(zip(new, path.ridge_errors(new), strict=True))
        return np.array([known[alpha] for alpha in alphas])

    def _path(self, fold: int, candidate: int) -> tuple[RankPath, HeldOut]:
        if (fold, candidate) in self.screens:
            screen, held = self.screens[fold, candidate]
            return screen.path, held
        path = self.problems.path(fold, candidate, self.min_alpha, self.grid.caps)
        return path, path.held_out

    def _best(self, candidate: int, alphas: np.ndarray) -> tuple[np.ndarray, list[Index]]:
        """Return the least screened error of each penalty over all ranks, and the best rank."""
        penalties = [float(alpha) for alpha in alphas]

        def run(fold: int) -> np.ndarray:
            screen, held = self.screens[fold, candidate]
            return np.concatenate([to_numpy(A) for A in screen.errors(penalties)]) / held.size

        blocks = self._over_folds(run)
        # Folds can have different numbers of directions.
        shape = tuple(np.max([block.shape[1:] for block in blocks], axis=0))
        total = sum(extended(block, shape) for block in blocks) / len(blocks)
        flat = total.reshape(alphas.size, -1)
        ranks = [tuple(i + 1 for i in np.unravel_index(i, shape)) for i in flat.argmin(axis=1)]
        return flat.min(axis=1), ranks

    # ------------------------------------------------------------ exact errors

    def visit(self, found: Screened, place: Index) -> Visit:
        """Return the exact errors of a place."""
        key = place[0], float(found.alphas[place[1]])
        if key not in self.visited:
            self.visited[key] = self._visit(*key, found.n_supported)
        return self.visited[key]

    def _visit(self, candidate: int, alpha: float, n_supported: int) -> Visit:
        grid, scaled = (
            self.grid.within_input_rank(n_supported),
            scaled_alpha(alpha, self.problems.x_unit),
        )
        self.problems.open(candidate)

        def run(fold: int) -> np.ndarray:
            path, held = self._path(fold, candidate)
            block = to_numpy(path.errors(scaled))
            np.maximum(block, 0.0, out=block)
            np.divide(block, held.size, out=block)
            return extended(block, grid.caps)

        blocks = self._over_folds(run)
        mean = sum(blocks) / len(blocks)
        at = best_index(mean, parameter_counts(self.problems.shape, grid.caps))
        rank = tuple(i + 1 for i in at)
        fold_errors = np.array([block[at] for block in blocks])
        return Visit(np.stack(blocks), rank, float(mean[at]), fold_errors)

    def settle(self, found: Screened) -> PrunedSurface:
        """Visit all places that can be chosen, and return their error surfaces."""
        screened = np.where(np.isfinite(found.least), found.least, np.nan)
        self.visit_best(found)
        return self._surface(found, screened)

    def visit_best(self, found: Screened) -> None:
        """Visit places in order of their screened errors until no other place can be chosen."""
        estimates = {place: float(found.least[place]) for place in np.ndindex(found.least.shape)}
        distance, least, room, n_seen = 0.0, math.inf, 0.0, 0
        for place in sorted(estimates, key=lambda place: estimates[place]):
            floor = (_SHARE if n_seen > 1 else 10 * _SHARE) * least
            if n_seen and estimates[place] > least + room + max(_DISTANCES * distance, floor):
                return
            visit, n_seen = self.visit(found, place), n_seen + 1
            distance = max(distance, abs(visit.error - estimates[place]))
            if visit.error < least:
                least, n = visit.error, self.problems.n_folds
                if self.options.selection == "1se" and n > 1:
                    room = float(visit.fold_errors.std(ddof=1)) / math.sqrt(n)

    def _surface(self, found: Screened, screened: np.ndarray) -> PrunedSurface:
        """Return the error surfaces of the visited places."""
        grid = self.grid.within_input_rank(found.n_supported)
        places, blocks = [], []
        for place in np.ndindex(found.least.shape):
            visit = self.visited.get((place[0], float(found.alphas[place[1]])))
            if visit is not None:
                places.append(place)
                blocks.append(visit.fold_mse)
        fold_mse = np.stack(blocks, axis=1)
        return PrunedSurface(
            fold_mse,
            tuple(places),
            found.alphas,
            grid,
            found.null_mse,
            found.n_supported,
            found.fold_ridge,
            screened,
        )
