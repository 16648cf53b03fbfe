"""The held-out errors of all ranks, nearly: the input directions from one subspace of the outputs.

With the singular value decomposition ``Z = U0 diag(sigma) V'`` of a training problem, the fit of
input rank R is the ridge fit projected onto the leading R columns of `V`. These change little with
the penalty. So the leading ones at two penalties, the smallest and that of the best ridge fit, are
found once, and for every other penalty the best directions within their span (Rayleigh and Ritz):

    Z Q = W diag(sigma) P' ,    V = Q P        with ``Q`` of shape (D, m).

That is an eigenproblem of size m in the place of one of the size of the inputs, and a core of m
rows; the bases of the output modes are exact. Whatever the data, the result is the held-out error
of models very near to those that it stands for, and so tells which penalties are worth the work.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..core.namespace import Array, eigh_top, namespace_of, to_numpy
from ..core.tensor import unfold
from .folds import Folds
from .grid import RankGrid
from .held_out import HeldOut
from .surface import RankPath, rank_path
from .sweep import over_folds
from .terms import Terms, extended, rotated

__all__ = ["Screen", "Screens", "sees_all"]

Index = tuple[int, ...]

# Of the subspace, at most: half of them from each of two penalties.
N_DIRECTIONS = 64
# Screens of penalties beyond that of the best ridge fit end with two in a row that rise and are
# above the least error of their kernel by this share.
_RISE = 0.02


class Screen:
    """The terms of a surface for each penalty, nearly.

    The path is that of all output modes; the leading directions at the given penalties span the
    subspace.
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


class Screens:
    """The screens of all folds and candidates, each made once.

    If `everywhere`, all penalties are screened, however much the error has risen.
    """

    def __init__(
        self,
        folds: Folds,
        grid: RankGrid,
        *,
        subspaces: str,
        everywhere: bool,
        n_jobs: int | None,
    ):
        self.folds, self.grid, self.subspaces = folds, grid, subspaces
        self.everywhere, self.n_jobs = everywhere, n_jobs
        self.kept: dict[Index, tuple[Screen, HeldOut]] = {}
        # All ranks of a fit are candidates: ridge regression is one of them.
        full = all(cap >= d for cap, d in zip(grid.caps[1:], folds.output_shape, strict=True))
        self.ridge = full and grid.caps[0] >= folds.max_input_rank and grid.listed is None

    def look(self, alphas: np.ndarray, tick: Callable[[], object]) -> dict[str, Any]:
        """What `Screened` wants to know of some penalties, in the units of the folds."""
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
                for a, (error, rank) in zip(some, self.best(candidate, alphas[some]), strict=True):
                    bound = float(ridge[(*candidate, a)]) if self.ridge else math.inf
                    least[(*candidate, a)], ranks[(*candidate, a)] = min(error, bound), rank
            for _ in range(alphas.size * folds.n_folds):
                tick()
        return {
            "least": least,
            "ranks": ranks,
            "null_mse": float(np.mean(nulls)),
            "n_supported": supported,
            "ridge_mse": float(ridge.min()),
        }

    def _along(self, alphas: np.ndarray, ridge: np.ndarray, least: np.ndarray) -> Iterator[Any]:
        """Penalties to screen, some at a time: up to that of the best ridge fit, then larger ones.

        Low ranks take the place of a penalty, so that the small ones are not judged by ridge.
        Whoever iterates puts their errors into `least`.
        """
        order = np.argsort(alphas)
        start = int(np.flatnonzero(order == np.argmin(ridge))[0])
        yield order[: start + 1]
        for i in range(start + 1, order.size, 2):
            yield order[i : i + 2]
            errors = least[order[i : i + 2]]
            rises = errors[0] > (1 + _RISE) * least.min() and errors[-1] >= errors[0]
            if rises and not self.everywhere:
                return

    def _start(
        self, fold: int, candidate: Index, alphas: np.ndarray
    ) -> tuple[np.ndarray, float, int]:
        """Errors of ridge regression and of the mean in a fold, whose screen is made."""
        path, held = self.path(fold, candidate)
        ridge = path.ridge_errors(map(float, alphas))
        if (fold, *candidate) not in self.kept:
            ends = {float(alphas.min()), float(alphas[np.argmin(ridge)])}
            self.kept[(fold, *candidate)] = Screen(path, sorted(ends)), held
        ridge = np.maximum(held.yy + ridge, 0.0) / held.size
        return ridge, held.yy / held.size, int(path.s.shape[0])

    def path(self, fold: int, candidate: Index) -> tuple[RankPath, HeldOut]:
        if (fold, *candidate) in self.kept:
            screen, held = self.kept[(fold, *candidate)]
            return screen.path, held
        problem, held = self.folds.kept_problem(fold, *candidate)
        return rank_path(problem, held, self.grid.caps, self.subspaces), held

    def best(self, candidate: Index, alphas: np.ndarray) -> Iterator[tuple[float, Index]]:
        """For each penalty the least error of all ranks within the screen, and where it is."""
        caps = min(self.grid.caps[0], N_DIRECTIONS), *self.grid.caps[1:]
        parts = np.empty((self.folds.n_folds, alphas.size, *caps))

        def run(fold: int) -> None:
            screen, held = self.kept[(fold, *candidate)]
            for a, alpha in enumerate(alphas):
                block = to_numpy(screen.terms(float(alpha)).errors(held.yy))
                np.divide(extended(block, caps), held.size, out=parts[fold, a])

        over_folds(self.folds, run, self.n_jobs)
        total = parts.mean(axis=0)  # in one order, whichever fold is ready first
        mask = self.grid.mask()
        if mask is not None:
            total[:, ~mask] = np.inf
        for mean in total:
            at = np.unravel_index(int(np.argmin(mean)), caps)
            yield float(mean[at]), tuple(int(i) + 1 for i in at)


def sees_all(grid: RankGrid) -> bool:
    """Whether a screen knows all of listed ranks: which others it stands for, nobody says."""
    return grid.listed is None or grid.caps[0] <= N_DIRECTIONS
