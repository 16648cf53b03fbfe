"""Alternating imputation and fits (majorisation), with Anderson extrapolation.

Replacing missing values by the predictions of a fit gives an objective of complete data. It is an
upper bound of the objective of the observed data, with equality at the fit (majorisation). So a fit
that does not increase the first objective does not increase the second one. The plain iteration
converges slowly if many values are missing, and Anderson extrapolation speeds it up. An
extrapolation that would increase the objective is replaced by the plain step.

References
----------
D. G. Anderson (1965). Iterative procedures for nonlinear integral equations. Journal of the ACM
12(4), 547-560.

K. Lange, D. R. Hunter, I. Yang (2000). Optimization transfer using surrogate objective functions.
Journal of Computational and Graphical Statistics 9(1), 1-20.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np

__all__ = ["Round", "majorise"]

# Number of previous rounds that an extrapolation uses.
_MEMORY = 4


class Round(Protocol):
    """One fit to imputed values."""

    @property
    def objective(self) -> float:
        """Objective over the observed values."""

    @property
    def imputed(self) -> np.ndarray:
        """Imputed values, in coordinates in which the objective is a sum of squares."""


R = TypeVar("R", bound=Round)


def majorise(
    fit: Callable[[np.ndarray, R | None], R],
    guess: np.ndarray,
    *,
    before: R | None = None,
    max_iter: int = 100,
    tol: float = 1e-6,
    slack: float = 0.0,
    report: Callable[[int, float], object] = lambda n_iter, objective: None,
) -> tuple[R, int, bool]:
    """Alternate imputations and fits until the imputed values converge.

    Parameters
    ----------
    fit : callable
        ``fit(imputed, best)`` fits to imputed values, given the best round so far.
    guess : array
        Initial imputed values.
    before : Round, optional
        The best round so far.
    max_iter : int
        Maximum number of rounds.
    tol : float
        Stop when the squared change of the imputed values is at most this fraction of the
        objective. The squared change is about the decrease that a further round could achieve.
    slack : float
        Rounding error of the objective.
    report : callable, optional
        Called after each round with its number and the objective so far.

    Returns
    -------
    best : Round
        The round of lowest objective.
    n_iter : int
        Number of rounds.
    converged : bool
        Whether the imputed values converged within `max_iter` rounds.
    """
    path, best = _Path(), before
    for n_iter in range(1, max_iter + 1):
        new = fit(guess, best)
        converged = False
        if best is None or new.objective <= best.objective + slack:
            change = float(np.sum((new.imputed - guess) ** 2))
            converged = change <= tol * max(new.objective, slack)
            guess, best = path.extrapolate(guess, new.imputed), new
        elif guess is best.imputed:  # a plain step increases the objective only by rounding errors
            converged = True
        else:
            path.forget()
            guess = best.imputed
        report(n_iter, best.objective)
        if converged:
            break
    assert best is not None
    return best, n_iter, converged


class _Path:
    """Last rounds of the iteration, and their Anderson extrapolation."""

    def __init__(self) -> None:
        self.imputed: list[np.ndarray] = []
        self.changes: list[np.ndarray] = []

    def forget(self) -> None:
        """Keep the last round only."""
        del self.imputed[:-1], self.changes[:-1]

    def extrapolate(self, before: np.ndarray, imputed: np.ndarray) -> np.ndarray:
        """Return the affine combination of the last imputations that minimises the change."""
        self.imputed = [*self.imputed[-_MEMORY:], imputed]
        self.changes = [*self.changes[-_MEMORY:], imputed - before]
        last = self.changes[-1]
        steps = [change - last for change in self.changes[:-1]]
        gram = np.array([[np.vdot(a, b) for b in steps] for a in steps])
        if not steps or not np.trace(gram) > 0:
            return imputed
        gram += 1e-12 * np.trace(gram) * np.eye(len(steps))
        weights = np.linalg.solve(gram, [-np.vdot(a, last) for a in steps])
        guess = imputed.copy()
        for weight, other in zip(weights, self.imputed[:-1], strict=True):
            guess += weight * (other - imputed)
        return guess
