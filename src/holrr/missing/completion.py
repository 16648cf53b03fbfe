"""Fits to outputs of which some entries are missing.

The objective counts observed entries only,

    f(W, b) = sum over observed w (y - b - <x, W>)^2 + alpha ||W||^2 .

Imputing the missing entries by the predictions of a fit gives the objective of complete outputs,
which lies above `f` and touches it at that fit (majorisation). So imputing and refitting in turn
never increases `f` where the refit does not increase the objective that it is given: exact
approximations do not, nor do alternating least squares that start from the current bases
(`complete`). The plain iteration is slow where much is missing. It is extrapolated (Anderson), and
an extrapolation that would increase `f` is replaced by the plain step.

Ridge regression has no constraint that couples its outputs, and its solution is direct: one problem
for each pattern of missing entries (`complete_ridge`).

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
from typing import Any

import numpy as np

from ..core.approximate import Approximation, FullRank, MatrixRank, MultilinearRank, Structure
from ..core.namespace import cholesky, solve_triangular
from ..core.spectral import Spectral, Whitened, whiten_arrays
from ..core.tensor import Tucker
from .observed import Observed

__all__ = ["Completion", "complete", "complete_ridge", "complete_structure"]

# Rounds, and when they end, of low-rank regression with missing outputs.
_MATRIX_ROUNDS: dict[str, Any] = {"max_iter": 500, "tol": 1e-7}

# Rounds that an extrapolation looks back on.
_MEMORY = 4
# Smallest 1 / condition number of normal equations that are solved as they are.
_WELL_CONDITIONED = 1e-5
# Rounding of the objective, as a share of the outputs' sum of squares.
_ROUNDING = 1e-14


@dataclass(frozen=True, eq=False)
class Completion:
    """A fit to outputs with missing entries.

    Parameters
    ----------
    problem : Whitened
        The problem with missing entries imputed by this very fit. Its ``mean_y`` is NaN
        for outputs that were never observed, so that intercept and predictions are NaN there.
    found : Approximation
        The fit, in the coordinates of `problem`; their errors add up to the objective.
    objective : float
        Over observed entries.
    imputed : callable
        Gives the problem of the imputed outputs for all penalties.
    n_iter : int
        Number of rounds.
    converged : bool
    """

    problem: Whitened
    found: Approximation
    objective: float
    imputed: Callable[[], Spectral]
    n_iter: int = 1
    converged: bool = True


@dataclass(frozen=True, eq=False)
class _Round:
    """One fit on the way."""

    found: Approximation
    mean: np.ndarray  # row of the intercept, if there is one, (k - r, D)
    objective: float
    imputed: np.ndarray  # products, (k, D), of the outputs imputed by this fit
    norm: float  # squared norm of the imputed values


def complete_structure(
    observed: Observed, alpha: float, structure: Structure, n_features: int
) -> Completion:
    """Fit coefficients of a structure to the observed outputs.

    Ranks that are shares become those of ridge regression, and full ranks are ridge regression.

    Parameters
    ----------
    observed : Observed
    alpha : float
    structure : Structure
    n_features : int
    """
    if isinstance(structure, FullRank):
        return complete_ridge(observed, alpha)
    if not isinstance(structure, (MatrixRank, MultilinearRank)):
        raise TypeError(f"{type(structure).__name__} cannot be fitted to missing outputs.")
    rank, r = structure.check(n_features, observed.shape), observed.samples.s.size
    if isinstance(structure, MatrixRank):
        full, rounds = [min(r, math.prod(observed.shape))], _MATRIX_ROUNDS
    else:
        if structure.subspaces == "response":
            raise ValueError(
                "subspaces='response' needs complete outputs, and entries of y are missing; use "
                "subspaces='fitted'."
            )
        full = [r, *observed.shape]
        rounds = {"max_iter": structure.max_iter, "tol": structure.tol}
        structure = replace(structure, refine=False)
    is_full = all(not isinstance(R, float) and R >= d for R, d in zip(rank, full, strict=True))
    if is_full or any(isinstance(R, float) for R in rank):
        ridge = complete_ridge(observed, alpha)
        found = structure.approximate(ridge.problem, n_features)
        if is_full:
            return replace(ridge, found=found)
        rank = found.tucker.rank
    ranks = tuple(int(R) for R in rank)
    fixed = replace(structure, rank=ranks if isinstance(structure, MultilinearRank) else ranks[0])
    return complete(observed, alpha, fixed.update, **rounds)


def complete(
    observed: Observed,
    alpha: float,
    update: Callable[[Whitened, Approximation | None], Approximation],
    *,
    max_iter: int = 100,
    tol: float = 1e-6,
    report: Callable[[int, float], object] = lambda n_iter, objective: None,
) -> Completion:
    """Fit coefficients of some structure to the observed outputs, in rounds.

    Parameters
    ----------
    observed : Observed
    alpha : float
    update : callable
        Approximates a whitened problem, given the approximation of the round before. The new one
        must be no farther from Z than the bases of that one allow.
    max_iter : int
        Largest number of rounds.
    tol : float
        Stop when imputing again changes the outputs, squared, by no more than this share of the
        objective: about what a further round could gain.
    report : callable, optional
        Called after each round with its number and the objective so far.
    """
    rounds = _Rounds(observed, alpha, update)
    slack, seen = _ROUNDING * observed.yy, ~observed.never
    path, guess, best = _Path(), observed.A, None
    for n_iter in range(1, max_iter + 1):
        new = rounds.fit(guess, best)
        converged = False
        if best is None or new.objective <= best.objective + slack:
            change = float(np.sum((new.imputed - guess)[:, seen] ** 2))
            converged = change <= tol * max(new.objective, slack)
            guess, best = path.extrapolate(guess, new.imputed), new
        elif guess is best.imputed:  # a plain step, which only rounding can spoil
            converged = True
        else:
            path.forget()
            guess = best.imputed
        report(n_iter, best.objective * observed.scale * observed.scale)
        if converged:
            break
    assert best is not None
    return rounds.completion(best, n_iter, converged)


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


class _Rounds:
    """What the rounds share. The outputs are those of `Observed`, over its scale."""

    def __init__(self, observed: Observed, alpha: float, update: Any = None):
        self.observed, self.alpha, self.update = observed, alpha, update
        self.s = observed.samples.s
        self.root = np.hypot(self.s, math.sqrt(alpha))

    def fit(self, products: np.ndarray, before: _Round | None) -> _Round:
        """Refit to imputed outputs, given by their products, and impute again."""
        A, r = self.observed.A, self.s.size
        norm = 0.0 if before is None else before.norm
        problem = self.observed.spectral(products, norm, scale=1.0).at(self.alpha)
        found = self.update(problem, None if before is None else before.found)
        U, K = self._coordinates(found.tucker, products[r:])
        C, S = U @ K, self.observed.missing_products(U, K)
        norm = float(np.vdot(C, S))  # of predictions at missing entries; that of all is <C, C>
        error = self.observed.yy - 2 * np.vdot(A, C) + np.vdot(C, C) - norm
        penalty = self.alpha * np.sum((C[:r] / self.s[:, None]) ** 2)
        return _Round(found, products[r:], max(float(error + penalty), 0.0), A + S, norm)

    def completion(self, best: _Round, n_iter: int, converged: bool) -> Completion:
        """The result, with the problem of the last imputation."""
        scale, V = self.observed.scale, best.found.tucker
        problem = self.observed.spectral(best.imputed, best.norm, scale=1.0).at(self.alpha)
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
            # A bound on the majorising objective is no bound on this one.
            tails=(math.nan,) * V.core.ndim,
        )
        imputed = lambda: self.observed.spectral(best.imputed, best.norm)  # noqa: E731
        objective = best.objective * scale * scale
        return Completion(problem, found, objective, imputed, n_iter, converged)

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
    """Ridge regression with missing outputs: one problem for each pattern of missing entries.

    In the coordinates of `SampleBasis` the normal equations of an output are the identity less the
    Gram matrix of the samples that it lacks, so that a pattern costs as many operations as it has
    missing entries times k^2. Where these equations would lose digits (few observed samples and a
    small penalty), the observed samples are factorised themselves.

    Parameters
    ----------
    observed, alpha
        As in `complete`.
    """
    samples, r = observed.samples, observed.samples.s.size
    rounds = _Rounds(observed, alpha)
    C = np.zeros_like(observed.A)
    for missing, outputs in _patterns(observed.missing):
        if not missing.all():
            C[:, outputs] = _ridge(rounds, missing, outputs)
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

    def imputed() -> Spectral:
        S = observed.missing_products(np.eye(len(C)), C)
        return observed.spectral(observed.A + S, float(np.vdot(C, S)))

    return Completion(problem, FullRank().approximate(problem, len(C)), objective, imputed)


def _patterns(missing: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Each distinct column of `missing`, with the numbers of the columns that equal it."""
    _, first, which = np.unique(
        np.packbits(missing, axis=0), axis=1, return_index=True, return_inverse=True
    )
    which = which.ravel()  # numpy 2.0.0 keeps the axis
    order = np.argsort(which, kind="stable")
    ends = np.cumsum(np.bincount(which))[:-1]
    for column, outputs in zip(first, np.split(order, ends), strict=True):
        yield missing[:, column], outputs


def _ridge(rounds: _Rounds, missing: np.ndarray, outputs: np.ndarray) -> np.ndarray:
    """Coordinates `C`, (k, n_outputs), of outputs that share a pattern of missing entries."""
    samples, observed, alpha = rounds.observed.samples, rounds.observed, rounds.alpha
    r, k = samples.s.size, samples.Q.shape[1]
    g = np.ones(k)  # scales the equations to the identity where nothing is missing
    g[:r] = samples.s / rounds.root
    Q = samples.Q[missing] * g
    L, rcond = cholesky(np.eye(k) - Q.T @ Q)
    if L is not None and rcond > _WELL_CONDITIONED:
        half = solve_triangular(L, g[:, None] * observed.A[:, outputs])
        return g[:, None] * solve_triangular(L, half, transposed=True)
    keep = ~missing
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
