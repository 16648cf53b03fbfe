"""The stack of a whole search: the penalty (and kernel) whose mixture of ranks is best."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..core.threads import limit_threads
from .folds import Folds
from .held_out import HeldOut
from .selection import best_index
from .stack import FoldTerms, Stack, stack_ranks
from .surface import RankPath, rank_path
from .sweep import over_folds

__all__ = ["search_stack", "walk_stacks"]

Index = tuple[int, ...]

# Penalties that are worse than a neighbour, in a row, before a search along them ends.
_PATIENCE = 2


def search_stack(
    folds: Folds,
    alphas: np.ndarray,
    mean_mse: np.ndarray,
    n_parameters: np.ndarray,
    *,
    subspaces: str = "fitted",
    candidates: np.ndarray | None = None,
    n_jobs: int | None = None,
) -> tuple[Index, Stack]:
    """The place ``(*candidate, alpha)`` of the best stack, and that stack.

    For each kernel the search goes from the penalty of the best single rank in both directions, as
    long as stacks get better.

    Parameters
    ----------
    folds : Folds
    alphas : array of shape (n_alphas,)
        In the units of the folds.
    mean_mse : array of shape (*candidates, n_alphas, R0, ...)
        The error surfaces, which say where to start.
    n_parameters : array of shape (R0, ...)
    subspaces : {"fitted", "response"}
    candidates : bool array of shape (R0, ...), optional
        Which ranks may be used; all by default.
    n_jobs : int, optional
        Number of folds that are worked on at a time.
    """
    least = np.nanmin(mean_mse, axis=tuple(range(len(folds.candidates) + 1, mean_mse.ndim)))
    paths: list[tuple[RankPath, HeldOut]] = []

    def stack_at(place: Index, bound: float) -> Stack | None:
        start = tuple(i + 1 for i in best_index(mean_mse[place], n_parameters))
        alpha = float(alphas[place[-1]])
        terms = over_folds(folds, lambda fold: _terms(*paths[fold], alpha), n_jobs)
        with limit_threads(1):
            return stack_ranks(terms, start, candidates=candidates, bound=bound)

    def enter(candidate: Index, best: Any) -> bool:
        paths[:] = _paths(folds, candidate, n_parameters.shape, subspaces)
        return True

    best, _ = walk_stacks(folds.candidates, alphas, least, stack_at, enter)
    return best


def walk_stacks(
    candidates: tuple[int, ...],
    alphas: np.ndarray,
    least: np.ndarray,
    stack_at: Callable[[Index, float], Stack | None],
    enter: Callable[[Index, tuple[Index, Stack] | None], bool],
) -> tuple[tuple[Index, Stack], dict[Index, float]]:
    """The place of the best stack and that stack, and the errors of all that were looked at.

    Parameters
    ----------
    candidates : tuple of int
        Shape of the kernels.
    alphas : array of shape (n_alphas,)
    least : array of shape (*candidates, n_alphas)
        Least error of a single rank at each place.
    stack_at : callable
        Gives the stack of a place, or None if its error must exceed a bound.
    enter : callable
        Called before the places of each kernel with what is best so far: whether to look at more
        than the first of them where that must exceed the bound.
    """
    best: tuple[Index, Stack] | None = None
    found: dict[Index, float] = {}
    for candidate in sorted(np.ndindex(*candidates), key=lambda c: float(np.min(least[c]))):
        near = enter(candidate, best)
        errors: dict[int, float] = {}
        for a in _around(alphas, int(np.argmin(least[candidate])), errors):
            place = (*candidate, a)
            bound = np.inf if best is None else best[1].cross_fitted_mse
            stack = stack_at(place, bound)
            found[place] = errors[a] = np.inf if stack is None else stack.cross_fitted_mse
            if stack is not None and (best is None or errors[a] < best[1].cross_fitted_mse):
                best = place, stack
            if stack is None and len(errors) == 1 and not near:
                break
    if best is None:
        raise ValueError("no mixture of ranks has a finite held-out error.")
    return best, found


def _terms(path: RankPath, held_out: HeldOut, alpha: float) -> FoldTerms:
    return FoldTerms.of(path.terms(alpha), held_out)


def _paths(
    folds: Folds, candidate: Index, caps: tuple[int, ...], subspaces: str
) -> Iterator[tuple[RankPath, HeldOut]]:
    """For each fold what all penalties share."""
    folds.prepare(*candidate)
    for fold in range(folds.n_folds):
        problem, held_out = folds.kept_problem(fold, *candidate)
        yield rank_path(problem, held_out, caps, subspaces), held_out


def _around(alphas: np.ndarray, start: int, errors: dict[int, float]) -> Iterator[int]:
    """The start, then its neighbours one by one, in both directions while they get better.

    Whoever iterates puts the error of each into `errors`.
    """
    order = np.argsort(alphas)
    middle = int(np.flatnonzero(order == start)[0])
    yield start
    for side in (order[middle + 1 :], order[:middle][::-1]):
        least, worse = errors[start], 0
        for a in map(int, side):
            if worse >= _PATIENCE:
                break
            yield a
            worse = 0 if errors[a] < least else worse + 1
            least = min(least, errors[a])
