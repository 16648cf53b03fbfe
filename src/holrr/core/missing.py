"""Fits to outputs of which some entries are missing.

The objective counts observed entries only,

    f(W, b) = sum over observed w (y - b - <x, W>)^2 + alpha ||W||^2 .

Filling the holes with the predictions of a fit gives the objective of complete outputs, which lies
above `f` and touches it at that fit. So to fill, to refit and to fill again never increases `f`
where the refit does not increase the objective that it is given: exact approximations do not, nor
do alternating least squares that start from the bases at hand (`complete`). The plain iteration
is slow where much is missing. It is extrapolated (Anderson), and a guess that would increase `f` is
dropped for the plain step.

Ridge regression has no constraint that would tie its outputs to each other, and its answer is
direct: one problem for each pattern of holes (`complete_ridge`).

References
----------
D. G. Anderson (1965). Iterative procedures for nonlinear integral equations. Journal of the ACM
12(4), 547-560.

K. Lange, D. R. Hunter, I. Yang (2000). Optimization transfer using surrogate objective functions.
Journal of Computational and Graphical Statistics 9(1), 1-20.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from .approximate import Approximation, hooi, hosvd
from .holes import Observed
from .namespace import cholesky, solve_triangular
from .samples import whiten_arrays
from .spectral import Spectral, Whitened
from .tucker import Tucker

__all__ = ["Completion", "Structure", "complete", "complete_ridge", "low_multilinear_rank"]

# From a whitened problem and the approximation of the round before to the next approximation.
Structure = Callable[[Whitened, Approximation | None], Approximation]

# Rounds that an extrapolation looks back on.
_MEMORY = 4
# Smallest 1 / condition number of normal equations that are solved as they are.
_WELL_CONDITIONED = 1e-5
# Rounding of the objective, as a share of the outputs' sum of squares.
_ROUNDING = 1e-14


@dataclass(frozen=True, eq=False)
class Completion:
    """A fit to outputs with holes.

    Parameters
    ----------
    problem : Whitened
        The problem with the holes filled by the predictions of this very fit. Its ``mean_y`` is NaN
        for outputs that were never observed, so that intercept and predictions are NaN there.
    found : Approximation
        The fit, in the coordinates of `problem`; their errors add up to the objective.
    objective : float
        Over observed entries.
    filled : callable
        Gives the problem of the filled outputs for all penalties.
    n_iter : int
        Number of rounds.
    converged : bool
    """

    problem: Whitened
    found: Approximation
    objective: float
    filled: Callable[[], Spectral]
    n_iter: int = 1
    converged: bool = True


@dataclass(frozen=True, eq=False)
class _Round:
    """One fit on the way."""

    found: Approximation
    mean: np.ndarray  # row of the intercept, if there is one, (k - r, D)
    objective: float
    filled: np.ndarray  # products, (k, D), of the outputs with the holes filled by this fit
    norm: float  # squared norm of what fills them


def low_multilinear_rank(rank: tuple[int, ...]) -> Structure:
    """The structure of HOLRR: a truncated HOSVD, then a sweep of HOOI in every round."""

    def approximate(problem: Whitened, before: Approximation | None) -> Approximation:
        if before is None:
            return hosvd(problem.Z, rank, input_rank=problem.input_rank)
        # What was known of the distance to another Z says nothing of the distance to this one.
        start = replace(before, error=math.inf, tails=(0.0,) * problem.Z.ndim)
        return hooi(problem.Z, start, max_iter=1)

    return approximate


def complete(
    observed: Observed,
    alpha: float,
    structure: Structure,
    *,
    max_iter: int = 100,
    tol: float = 1e-6,
    report: Callable[[int, float], object] = lambda n_iter, objective: None,
) -> Completion:
    """Fit coefficients of some structure to outputs with holes.

    Parameters
    ----------
    observed : Observed
    alpha : float
    structure : callable
        Gives the approximation of a whitened problem. It is handed that of the round before, and
        the new one must be no farther from Z than that one's bases allow.
    max_iter : int
        Largest number of rounds.
    tol : float
        Stop when filling the holes anew changes the outputs, squared, by no more than this share
        of the objective: about what a further round could gain.
    report : callable, optional
        Called after each round with its number and the objective so far.
    """
    rounds = _Rounds(observed, alpha, structure)
    slack, seen = _ROUNDING * observed.yy, ~observed.never
    path, guess, best = _Path(), observed.A, None
    for n_iter in range(1, max_iter + 1):
        new = rounds.fit(guess, best)
        converged = False
        if best is None or new.objective <= best.objective + slack:
            change = float(np.sum((new.filled - guess)[:, seen] ** 2))
            converged = change <= tol * max(new.objective, slack)
            guess, best = path.extrapolate(guess, new.filled), new
        elif guess is best.filled:  # a plain step, which only rounding can spoil
            converged = True
        else:
            path.forget()
            guess = best.filled
        report(n_iter, best.objective * observed.scale * observed.scale)
        if converged:
            break
    assert best is not None
    return rounds.completion(best, n_iter, converged)


class _Path:
    """The rounds so far, and where they lead to: Anderson's extrapolation."""

    def __init__(self) -> None:
        self.filled: list[np.ndarray] = []
        self.changes: list[np.ndarray] = []

    def forget(self) -> None:
        """Keep the last round only."""
        del self.filled[:-1], self.changes[:-1]

    def extrapolate(self, before: np.ndarray, filled: np.ndarray) -> np.ndarray:
        """The affine combination of the last rounds' fills whose changes cancel best."""
        self.filled = [*self.filled[-_MEMORY:], filled]
        self.changes = [*self.changes[-_MEMORY:], filled - before]
        last = self.changes[-1]
        steps = [change - last for change in self.changes[:-1]]
        gram = np.array([[np.vdot(a, b) for b in steps] for a in steps])
        if not steps or not np.trace(gram) > 0:
            return filled
        gram += 1e-12 * np.trace(gram) * np.eye(len(steps))
        weights = np.linalg.solve(gram, [-np.vdot(a, last) for a in steps])
        guess = filled.copy()
        for weight, other in zip(weights, self.filled[:-1], strict=True):
            guess += weight * (other - filled)
        return guess


class _Rounds:
    """What the rounds share. The outputs are those of `Observed`, over its scale."""

    def __init__(self, observed: Observed, alpha: float, structure: Structure):
        self.observed, self.alpha, self.structure = observed, alpha, structure
        self.s = observed.samples.s
        self.root = np.hypot(self.s, math.sqrt(alpha))

    def fit(self, products: np.ndarray, before: _Round | None) -> _Round:
        """Refit to filled outputs, given by their products, and fill the holes anew."""
        A, r = self.observed.A, self.s.size
        norm = 0.0 if before is None else before.norm
        problem = self.observed.spectral(products, norm, scale=1.0).at(self.alpha)
        found = self.structure(problem, None if before is None else before.found)
        U, K = self._coordinates(found.tucker, products[r:])
        C, S = U @ K, self.observed.spread(U, K)
        norm = float(np.vdot(C, S))  # of the predictions in the holes; that of all is <C, C>
        error = self.observed.yy - 2 * np.vdot(A, C) + np.vdot(C, C) - norm
        penalty = self.alpha * np.sum((C[:r] / self.s[:, None]) ** 2)
        return _Round(found, products[r:], max(float(error + penalty), 0.0), A + S, norm)

    def completion(self, best: _Round, n_iter: int, converged: bool) -> Completion:
        """The result, with the problem that the last fill poses."""
        scale, V = self.observed.scale, best.found.tucker
        problem = self.observed.spectral(best.filled, best.norm, scale=1.0).at(self.alpha)
        error = float(np.sum((problem.Z - V.to_dense()) ** 2))
        problem = replace(
            problem,
            Z=scale * problem.Z,
            norm=problem.norm * scale * scale,
            residual=max(best.objective - error, 0.0) * scale * scale,
            mean_y=self.observed.mean(best.mean),
        )
        found = replace(
            best.found,
            tucker=Tucker(scale * V.core, V.factors),
            error=error * scale * scale,
            # The minimum of an objective that lies above says nothing of that below.
            tails=(math.nan,) * V.core.ndim,
        )
        filled = lambda: self.observed.spectral(best.filled, best.norm)  # noqa: E731
        objective = best.objective * scale * scale
        return Completion(problem, found, objective, filled, n_iter, converged)

    def _coordinates(self, V: Tucker, mean: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``U, K`` such that the predictions are ``E U K``."""
        U0 = np.eye(self.s.size) if V.factors[0] is None else V.factors[0]
        U0 = (self.s / self.root)[:, None] * U0
        expanded = Tucker(V.core, (None, *V.factors[1:])).to_dense()
        U = np.zeros((U0.shape[0] + len(mean), U0.shape[1] + len(mean)))
        U[: U0.shape[0], : U0.shape[1]] = U0
        U[U0.shape[0] :, U0.shape[1] :] = np.eye(len(mean))
        return U, np.vstack([expanded.reshape(U0.shape[1], -1), mean])


@np.errstate(over="ignore")  # of the norm, which is infinite then
def complete_ridge(observed: Observed, alpha: float) -> Completion:
    """Ridge regression for outputs with holes: exactly, one problem for each pattern of holes.

    In the coordinates of `SampleBasis` the normal equations of an output are the identity less the
    Gram matrix of the samples that it misses, so that a pattern costs as many operations as it has
    holes times k^2. Where these equations would lose digits (few observed samples and a small
    penalty), the observed samples are factorised themselves.

    Parameters
    ----------
    observed, alpha
        As in `complete`.
    """
    samples, r = observed.samples, observed.samples.s.size
    rounds = _Rounds(observed, alpha, _unconstrained)
    C = np.zeros_like(observed.A)
    for holes, outputs in _patterns(observed.holes):
        if not holes.all():
            C[:, outputs] = _ridge(rounds, holes, outputs)
    V = (rounds.root / samples.s)[:, None] * C[:r] * observed.scale
    V = V.reshape(-1, *observed.shape)
    objective = max(observed.yy - float(np.vdot(observed.A, C)), 0.0)
    objective *= observed.scale * observed.scale
    problem = replace(
        observed.spectral().at(alpha),
        Z=V,
        norm=float(np.vdot(V, V)),
        residual=objective,
        mean_y=observed.mean(C[r:]),
    )

    def filled() -> Spectral:
        S = observed.spread(np.eye(len(C)), C)
        return observed.spectral(observed.A + S, float(np.vdot(C, S)))

    return Completion(problem, _unconstrained(problem, None), objective, filled)


def _unconstrained(problem: Whitened, before: Approximation | None) -> Approximation:
    return hosvd(problem.Z, problem.Z.shape, modes=())


def _patterns(holes: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Each distinct column of `holes`, with the numbers of the columns that equal it."""
    _, first, which = np.unique(
        np.packbits(holes, axis=0), axis=1, return_index=True, return_inverse=True
    )
    which = which.ravel()  # numpy 2.0.0 keeps the axis
    order = np.argsort(which, kind="stable")
    ends = np.cumsum(np.bincount(which))[:-1]
    for column, outputs in zip(first, np.split(order, ends), strict=True):
        yield holes[:, column], outputs


def _ridge(rounds: _Rounds, holes: np.ndarray, outputs: np.ndarray) -> np.ndarray:
    """Coordinates `C`, of shape (k, n_outputs), of the outputs that share a pattern of holes."""
    samples, observed, alpha = rounds.observed.samples, rounds.observed, rounds.alpha
    r, k = samples.s.size, samples.Q.shape[1]
    g = np.ones(k)  # scales the equations to the identity where nothing is missing
    g[:r] = samples.s / rounds.root
    Q = samples.Q[holes] * g
    L, rcond = cholesky(np.eye(k) - Q.T @ Q)
    if L is not None and rcond > _WELL_CONDITIONED:
        half = solve_triangular(L, g[:, None] * observed.A[:, outputs])
        return g[:, None] * solve_triangular(L, half, transposed=True)
    keep = ~holes
    w = None if samples.root is None else samples.root[keep, 0] ** 2
    problem = whiten_arrays(
        samples.E[keep, :r] * samples.s,
        observed.Y[np.ix_(keep, outputs)] / observed.scale,
        w,
        alpha,
        fit_intercept=samples.fit_intercept,
    )
    coef = problem.lift(problem.Z)
    mean = problem.mean_y - problem.mean_x @ coef - observed.offset[outputs] / observed.scale
    row = math.sqrt(samples.weight) * mean
    return np.vstack([samples.s[:, None] * coef, row[None, :][: k - r]])
