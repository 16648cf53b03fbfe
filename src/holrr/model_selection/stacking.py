"""The stack of a whole search: the penalty (and kernel) whose mixture of ranks is best."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .folds import Folds
from .selection import best_index
from .stack import FoldTerms, Stack, best_stack
from .surface import rank_path

__all__ = ["search_stack"]

Index = tuple[int, ...]


def search_stack(
    folds: Folds,
    alphas: np.ndarray,
    mean_mse: np.ndarray,
    n_parameters: np.ndarray,
    *,
    subspaces: str = "fitted",
    candidates: np.ndarray | None = None,
    exhaustive: bool = False,
) -> tuple[Index, Stack]:
    """The place ``(*candidate, alpha)`` of the best stack, and that stack.

    Parameters
    ----------
    folds : Folds
    alphas : array of shape (n_alphas,)
        In the units of the folds.
    mean_mse : array of shape (*candidates, n_alphas, R0, ...)
        The error surfaces, which say where to look first.
    n_parameters : array of shape (R0, ...)
    subspaces : {"fitted", "response"}
    candidates : bool array of shape (R0, ...), optional
        Which ranks may be used; all by default.
    exhaustive : bool
        Look at all places, also where the stack is certain not to be the best.
    """
    places = _most_promising_first(folds, alphas, mean_mse, n_parameters, subspaces)
    return best_stack(places, candidates=candidates, exhaustive=exhaustive)


def _most_promising_first(
    folds: Folds,
    alphas: np.ndarray,
    mean_mse: np.ndarray,
    n_parameters: np.ndarray,
    subspaces: str,
) -> Iterator[tuple[Index, list[FoldTerms], Index]]:
    """What a stack is made of, one kernel after the other, so that each is decomposed once."""
    caps, n = n_parameters.shape, len(folds.candidates)
    least = np.nanmin(mean_mse, axis=tuple(range(n + 1, mean_mse.ndim)))
    kernels = sorted(np.ndindex(*folds.candidates), key=lambda c: float(np.min(least[c])))
    for candidate in kernels:
        folds.prepare(*candidate)
        problems = [folds.problem(fold, *candidate) for fold in range(folds.n_folds)]
        paths = [(rank_path(*pair, caps, subspaces), pair[1]) for pair in problems]
        del problems
        for a in np.argsort(least[candidate]):
            place = (*candidate, int(a))
            start = best_index(mean_mse[place], n_parameters)
            terms = [FoldTerms.of(path.terms(float(alphas[a])), held) for path, held in paths]
            yield place, terms, tuple(i + 1 for i in start)
