"""Rounds of imputing what is missing and fitting what is imputed.

Imputing missing values by those of a fit gives an objective of complete data that lies above that
of the observed data and touches it at the fit (majorisation). So a fit that does not increase the
former does not increase the latter. The plain iteration is slow where much is missing. It is
extrapolated (Anderson), and an extrapolation that would increase the objective is replaced by the
plain step.

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

# Rounds that an extrapolation looks back on.
_MEMORY = 4


class Round(Protocol):
    """One fit to imputed values."""

    @property
    def objective(self) -> float:
        """Over observed values."""

    @property
    def imputed(self) -> np.ndarray:
        """What the fit imputes, in coordinates whose squares are those of the objective."""


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
    """Impute and fit in turn until the imputed values settle.

    Parameters
    ----------
    fit : callable
        ``fit(imputed, best)`` fits to imputed values, given the best round so far.
    guess : array
        Values that are imputed at first.
    before : Round, optional
        The best round so far.
    max_iter : int
        Largest number of rounds.
    tol : float
        Stop when imputing again changes the values, squared, by no more than this share of the
        objective: about what a further round could gain.
    slack : float
        Rounding of the objective.
    report : callable, optional
        Called after each round with its number and the objective so far.

    Returns
    -------
    best : Round
    n_iter : int
        Number of rounds.
    converged : bool
    """
    path, best = _Path(), before
    for n_iter in range(1, max_iter + 1):
        new = fit(guess, best)
        converged = False
        if best is None or new.objective <= best.objective + slack:
            change = float(np.sum((new.imputed - guess) ** 2))
            converged = change <= tol * max(new.objective, slack)
            guess, best = path.extrapolate(guess, new.imputed), new
        elif guess is best.imputed:  # a plain step, which only rounding can spoil
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
    """The rounds so far, and where they lead to: Anderson's extrapolation."""

    def __init__(self) -> None:
        self.imputed: list[np.ndarray] = []
        self.changes: list[np.ndarray] = []

    def forget(self) -> None:
        """Keep the last round only."""
        del self.imputed[:-1], self.changes[:-1]

    def extrapolate(self, before: np.ndarray, imputed: np.ndarray) -> np.ndarray:
        """The affine combination of the last imputations whose changes cancel best."""
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
