"""Fits to outputs with missing entries.

The objective counts observed entries only,

    f(W, b) = sum over observed w (y - b - <x, W>)^2 + alpha ||W||^2 .

Imputing the missing entries by the predictions of a fit gives the objective of complete outputs. It
is an upper bound of `f`, with equality at that fit. So alternating imputations and refits
(`majorise`) never increase `f`, provided that a refit does not increase the objective of complete
outputs. This holds for exact approximations, and for alternating least squares that start from the
current bases (`complete`).

Only outputs that are observed in some sample are penalised. An output that is never observed does
not enter `f`: its column of the whitened tensor Z is imputed by that of the fit itself, so that it
does not influence the fit. The rounds start from a completion of these columns.

Ridge regression has no constraint that couples its outputs, and its solution is direct: one problem
for each pattern of missing entries (`complete_ridge`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import get_lapack_funcs

from ..core.approximate import Approximation, FullRank, MatrixRank, MultilinearRank, Structure
from ..core.majorise import majorise
from ..core.spectral import Spectral, Whitened, whiten_arrays
from ..core.tensor import Tucker
from .observed import Observed

__all__ = ["Completion", "complete", "complete_columns", "complete_ridge", "complete_structure"]
__all__ += ["impute_columns"]

# Maximum number of rounds and tolerance of low-rank regression with missing outputs.
_MATRIX_ROUNDS: dict[str, Any] = {"max_iter": 500, "tol": 1e-7}

# Smallest eigenvalue, about, of normal equations that are solved directly.
_WELL_CONDITIONED = 1e-5
# Entries of products of samples that are computed once for all outputs, and bytes of predictions
# that are in memory together.
_SHARED, _BLOCK = 2**24, 2**25
_POTRF, _POCON, _POTRS = get_lapack_funcs(("potrf", "pocon", "potrs"), dtype=np.float64)
# Rounding error of the objective, relative to the sum of squares of the outputs.
_ROUNDING = 1e-14


@dataclass(frozen=True, eq=False)
class Completion:
    """A fit to outputs with missing entries.

    Parameters
    ----------
    problem : Whitened
        The problem with missing entries imputed by this fit. Its ``mean_y`` is NaN for outputs that
        were never observed, so that their intercept and predictions are NaN.
    found : Approximation
        The fit, in the coordinates of `problem`. The errors of both add up to the objective.
    objective : float
        Objective over the observed entries.
    imputed : callable
        Returns the problem of the imputed outputs for all penalties.
    objective_of : callable
        Maps a tensor near the Z of the imputed outputs at some penalty, and this penalty, to its
        objective over observed entries.
    n_iter : int
        Number of rounds.
    converged : bool
        Whether the imputed values converged.
    """

    problem: Whitened
    found: Approximation
    objective: float
    imputed: Callable[[], Spectral]
    objective_of: Callable[[Approximation, float], float]
    n_iter: int = 1
    converged: bool = True


@dataclass(frozen=True, eq=False)
class _Round:
    """The fit of one round."""

    found: Approximation
    mean: np.ndarray  # row of the intercept, if there is one, (k - r, D)
    objective: float
    # Products, (k, D), of the outputs imputed by this fit; for outputs that are never observed, the
    # columns of Z of this fit.
    imputed: np.ndarray
    norm: float  # squared norm of the imputed values of outputs that are sometimes observed


def complete_structure(
    observed: Observed, alpha: float, structure: Structure, n_features: int
) -> Completion:
    """Fit coefficients of a structure to the observed outputs.

    Ranks given as shares become ranks of the ridge fit, and full ranks are ridge regression.

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
        raise TypeError(f"{type(structure).__name__} does not support missing outputs.")
    rank, r = structure.check(n_features, observed.shape), observed.samples.s.size
    if isinstance(structure, MatrixRank):
        full, rounds = [min(r, math.prod(observed.shape))], _MATRIX_ROUNDS
    else:
        if structure.subspaces == "response":
            raise ValueError(
                "subspaces='response' needs complete outputs, but y has missing values; use "
                "subspaces='fitted'."
            )
        full = [r, *observed.shape]
        rounds = {"max_iter": structure.max_iter, "tol": structure.tol}
        structure = replace(structure, refine=False)
    is_full = all(not isinstance(R, float) and R >= d for R, d in zip(rank, full, strict=True))
    if is_full or any(isinstance(R, float) for R in rank):
        ridge = complete_ridge(observed, alpha)
        if is_full:
            return replace(ridge, found=structure.approximate(ridge.problem, n_features))
        rank = structure.approximate(_with_never(ridge.problem, observed), n_features).tucker.rank
    ranks = tuple(int(R) for R in rank)
    if isinstance(structure, MatrixRank):
        return complete(observed, alpha, replace(structure, rank=ranks[0]).update, **rounds)
    fixed = replace(structure, rank=ranks)
    start = None
    if observed.never.any():  # otherwise the fit would keep the means of these outputs
        problem = _with_never(observed.spectral(scale=1.0).at(alpha), observed)
        V = fixed.approximate(problem, n_features).tucker.to_dense().reshape(r, -1)
        start = observed.A.copy()
        start[:r, observed.never] = V[:, observed.never]
    return complete(observed, alpha, fixed.update, start=start, **rounds)


def _with_never(problem: Whitened, observed: Observed) -> Whitened:
    """Return the problem with `never`, if some outputs are never observed."""
    if not observed.never.any():
        return problem
    return replace(problem, never=observed.never.reshape(observed.shape))


def complete(
    observed: Observed,
    alpha: float,
    update: Callable[[Whitened, Approximation | None], Approximation],
    *,
    start: np.ndarray | None = None,
    max_iter: int = 100,
    tol: float = 1e-6,
    report: Callable[[int, float], object] = lambda n_iter, objective: None,
) -> Completion:
    """Fit coefficients of some structure to the observed outputs, iteratively.

    Parameters
    ----------
    observed : Observed
    alpha : float
    update : callable
        Approximates a whitened problem, given the approximation of the previous round. The result
        must be no farther from Z than the projection onto the previous bases.
    start : array of shape (k, D), optional
        Initial imputation: products of outputs, or columns of Z for outputs that are never
        observed. The default is the means, and zeros for outputs that are never observed.
    max_iter, tol, report
        As in `majorise`.
    """
    rounds = _Rounds(observed, alpha, update)
    unit = observed.scale * observed.scale
    best, n_iter, converged = majorise(
        rounds.fit,
        observed.A if start is None else start,
        max_iter=max_iter,
        tol=tol,
        slack=_ROUNDING * observed.yy,
        report=lambda n_iter, objective: report(n_iter, objective * unit),
    )
    return rounds.completion(best, n_iter, converged)


class _Rounds:
    """State that all rounds share. The outputs are those of `Observed`, divided by its scale."""

    def __init__(self, observed: Observed, alpha: float, update: Any = None):
        self.observed, self.alpha, self.update = observed, alpha, update
        self.s = observed.samples.s
        self.root = np.hypot(self.s, math.sqrt(alpha))

    def fit(self, imputed: np.ndarray, before: _Round | None) -> _Round:
        """Refit to imputed outputs, and impute again."""
        problem = self.spectral(imputed, 0.0 if before is None else before.norm).at(self.alpha)
        found = self.update(problem, None if before is None else before.found)
        return self.evaluate(found, imputed[self.s.size :])

    def evaluate(self, found: Approximation, mean: np.ndarray) -> _Round:
        """Return a fit with its objective over observed entries and its imputed values.

        Parameters
        ----------
        found : Approximation
        mean : array of shape (k - r, D)
            Row of the intercept, if there is one.
        """
        A, r, never = self.observed.A, self.s.size, self.observed.never
        U, K = self._coordinates(found.tucker, mean)
        C, S = U @ K, self.observed.missing_products(U, K)
        norm = float(np.vdot(C, S))  # norm of predictions at missing entries
        error = self.observed.yy - 2 * np.vdot(A, C) + np.vdot(C, C) - norm
        W, imputed = C[:r] / self.s[:, None], A + S
        if never.any():
            W[:, never] = 0.0  # no penalty on outputs that are not in the objective
            imputed[:r, never] = (self.root / self.s)[:, None] * C[:r, never]
            norm -= float(np.sum(C[:, never] ** 2))
        objective = max(float(error + self.alpha * np.sum(W**2)), 0.0)
        return _Round(found, mean, objective, imputed, norm)

    def spectral(self, imputed: np.ndarray, norm: float, *, scale: float | None = 1.0) -> Spectral:
        """Return the problem of imputed outputs, for all penalties.

        Parameters
        ----------
        imputed : array of shape (k, D)
            As in `_Round`.
        norm, scale
            As in `Observed.spectral`.
        """
        r, never = self.s.size, self.observed.never
        if never.any():
            imputed = imputed.copy()
            imputed[:r, never] *= (self.root / self.s)[:, None]
            norm += float(np.sum(imputed[:r, never] ** 2))
        return self.observed.spectral(imputed, norm, scale=scale)

    def completion(self, best: _Round, n_iter: int, converged: bool) -> Completion:
        """Return the result, with the problem of the last imputation."""
        scale, V = self.observed.scale, best.found.tucker
        problem = self.spectral(best.imputed, best.norm).at(self.alpha)
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
            # A lower bound on the majorising objective is not a lower bound on this objective.
            tails=(math.nan,) * V.core.ndim,
        )
        imputed = lambda: self.spectral(best.imputed, best.norm, scale=None)  # noqa: E731
        other = self.other_objective(best.imputed[self.s.size :])
        objective = best.objective * scale * scale
        return Completion(problem, found, objective, imputed, other, n_iter, converged)

    def other_objective(self, mean: np.ndarray) -> Callable[[Approximation, float], float]:
        """Return a function for the objectives of other fits with the same imputed means."""
        observed, scale = self.observed, self.observed.scale

        def objective_of(found: Approximation, alpha: float) -> float:
            V = found.tucker
            found = replace(found, tucker=Tucker(V.core / scale, V.factors))
            return _Rounds(observed, alpha).evaluate(found, mean).objective * scale * scale

        return objective_of

    def _coordinates(self, V: Tucker, mean: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return ``U, K`` such that the predictions are ``E U K``."""
        U0 = np.eye(self.s.size) if V.factors[0] is None else V.factors[0]
        U0 = (self.s / self.root)[:, None] * U0
        expanded = Tucker(V.core, (None, *V.factors[1:])).to_dense()
        U = np.zeros((U0.shape[0] + len(mean), U0.shape[1] + len(mean)))
        U[: U0.shape[0], : U0.shape[1]] = U0
        U[U0.shape[0] :, U0.shape[1] :] = np.eye(len(mean))
        return U, np.vstack([expanded.reshape(U0.shape[1], -1), mean])


@np.errstate(over="ignore")  # the norm may overflow to infinity
def complete_ridge(observed: Observed, alpha: float) -> Completion:
    """Fit a ridge regression with missing outputs: one problem for each pattern of missing entries.

    In the coordinates of `SampleBasis` the matrix of the normal equations of an output is the
    identity minus the Gram matrix of its missing samples. They are solved for the coordinates or,
    if an output has fewer missing samples than coordinates, for the samples (`_ridge`). If they
    would lose digits (few observed samples and a small penalty), the observed samples are
    factorised directly.

    Parameters
    ----------
    observed, alpha
        As in `complete`.
    """
    samples, r = observed.samples, observed.samples.s.size
    rounds = _Rounds(observed, alpha)
    C = _ridge(rounds)
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

    def products() -> np.ndarray:
        return observed.missing_products(np.eye(len(C)), C)

    def imputed() -> Spectral:
        S = products()
        return observed.spectral(observed.A + S, float(np.vdot(C, S)))

    def objective_of(found: Approximation, alpha: float) -> float:
        return rounds.other_objective((observed.A + products())[r:])(found, alpha)

    found = FullRank().approximate(problem, len(C))
    return Completion(problem, found, objective, imputed, objective_of)


def _ridge(rounds: _Rounds) -> np.ndarray:
    """Return the coordinates `C`, (k, D), of the fit to the observed entries of each output.

    With ``G = Q diag(g)``, scaled so that the matrix is the identity if nothing is missing, and its
    rows `G_m` of the missing samples of an output,

        (I - G_m'G_m)^-1 b = b + G_m' (I - G_m G_m')^-1 G_m b .

    The matrix on the right is small, and its entries are those of ``G G'``. All outputs share
    ``G G'`` and the products with `G`.
    """
    observed, samples = rounds.observed, rounds.observed.samples
    (n, k), r = samples.Q.shape, samples.s.size
    g = np.ones(k)
    g[:r] = samples.s / rounds.root
    G, b = samples.Q * g, g[:, None] * observed.A
    C, H = np.zeros_like(observed.A), None
    patterns = [(np.flatnonzero(missing), outputs) for missing, outputs in observed.patterns]
    patterns = [pattern for pattern in patterns if pattern[0].size < n]
    if n * n <= max(_SHARED, n * k) and any(rows.size < k for rows, _ in patterns):
        H = G @ G.T
    for some in _in_blocks(patterns, n):
        columns = np.concatenate([outputs for _, outputs in some])
        fitted, at_missing, start = G @ b[:, columns], np.zeros((n, columns.size)), 0
        poor = []
        for rows, outputs in some:
            here = slice(start, start + outputs.size)
            start = here.stop
            if rows.size < k:
                M = np.eye(rows.size) - (
                    G[rows] @ G[rows].T if H is None else H[rows[:, None], rows]
                )
                z = _solved(M, fitted[rows, here])
            else:
                z = _solved(np.eye(k) - G[rows].T @ G[rows], b[:, outputs])
                z = None if z is None else G[rows] @ z
            if z is None:
                poor.append((rows, outputs))
            else:
                at_missing[rows, here] = z
        C[:, columns] = g[:, None] * (b[:, columns] + G.T @ at_missing)
        for rows, outputs in poor:
            C[:, outputs] = _ridge_of_observed(rounds, rows, outputs)
    return C


def _in_blocks(
    patterns: Sequence[tuple[np.ndarray, np.ndarray]], n_samples: int
) -> Iterator[list[tuple[np.ndarray, np.ndarray]]]:
    """Yield patterns in blocks, so that predictions of their outputs take little memory."""
    block: list[tuple[np.ndarray, np.ndarray]] = []
    size = 0
    for rows, outputs in patterns:
        if block and 8 * n_samples * (size + outputs.size) > _BLOCK:
            yield block
            block, size = [], 0
        block.append((rows, outputs))
        size += outputs.size
    if block:
        yield block


def _solved(M: np.ndarray, B: np.ndarray) -> np.ndarray | None:
    """Return ``M^-1 B`` of a symmetric ``M <= I``, or None if it is nearly singular or indefinite.

    M is compared with I, its value if nothing is missing: a fit that interpolates the samples
    leaves rounding errors.
    """
    if M.shape[0] == 0:
        return B
    # M is symmetric, so its transpose is M in the memory order of LAPACK, without a copy here.
    L, info = _POTRF(M.T, lower=1, clean=0, overwrite_a=0)
    if info != 0:
        return None
    d = np.diagonal(L)
    # The diagonal bounds the norm of the inverse from below; the size makes up for most of the
    # rest.
    if d.min() ** 2 / len(d) <= _WELL_CONDITIONED:
        rcond, _ = _POCON(L, 1.0, uplo="L")
        if not rcond > _WELL_CONDITIONED:
            return None
    return _POTRS(L, B, lower=1)[0]


def _ridge_of_observed(rounds: _Rounds, missing: np.ndarray, outputs: np.ndarray) -> np.ndarray:
    """Return coordinates (k, n_outputs) of outputs with the same missing samples.

    They are computed from the observed samples.
    """
    samples, observed = rounds.observed.samples, rounds.observed
    r, k = samples.s.size, samples.Q.shape[1]
    keep = np.ones(len(samples.Q), dtype=bool)
    keep[missing] = False
    w = None if samples.root is None else samples.root[keep, 0] ** 2
    problem = whiten_arrays(
        samples.E[keep, :r] * samples.s,
        observed.Y[np.ix_(keep, outputs)] / observed.scale,
        w,
        rounds.alpha,
        fit_intercept=samples.fit_intercept,
    )
    coef = problem.lift(problem.Z)
    mean = problem.mean_y - problem.mean_x @ coef - observed.offset[outputs] / observed.scale
    row = math.sqrt(samples.weight) * mean
    return np.vstack([samples.s[:, None] * coef, row[None, :][: k - r]])


# ---------------------------------------------------------------- outputs that are never observed


def complete_columns(problem: Spectral, structure: Structure, alpha: float) -> Spectral:
    """Return a problem whose unknown columns are replaced by those of a fit at some penalty.

    Parameters
    ----------
    problem : Spectral
        A problem with `never`. Its columns of these outputs are the initial values.
    structure : Structure
        Structure of the fit.
    alpha : float
        Penalty of the fit.
    """
    found = structure.approximate(problem.at(alpha), problem.basis.shape[0])
    return impute_columns(problem, found.tucker, alpha)


def impute_columns(problem: Spectral, V: Tucker, alpha: float) -> Spectral:
    """Return the problem with outputs whose ridge fit is `V` where they are never observed.

    Parameters
    ----------
    problem : Spectral
        A problem with `never`.
    V : Tucker
        Approximation of the Z of this penalty.
    alpha : float
        Penalty of the ridge fit.
    """
    assert problem.never is not None
    T = problem.T.copy()
    columns = V.to_dense()[:, problem.never]
    T[:, problem.never] = (problem.root(alpha) / problem.s)[:, None] * columns
    return replace(problem, T=T)
