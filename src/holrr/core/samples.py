"""Ridge problems from the samples themselves, by the quickest way that keeps enough digits."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .moments import Moments, weighted_mean
from .namespace import Array, asarray_like, eigh, namespace_of, svd, symmetrise, to_numpy
from .responses import ResponseSums, n_shares, sum_responses
from .spectral import (
    Spectral,
    Whitened,
    cholesky_problem,
    half_of_the_digits,
    keeps_digits,
    prefers_cholesky,
    spectral_from_moments,
    supported,
    whiten_moments,
)
from .threads import few_threads_for

__all__ = ["Inputs", "spectral_from_arrays", "spectral_from_samples", "whiten_arrays"]


def whiten_arrays(
    X: Array,
    Y: Array,
    w: Array | None,
    alpha: float,
    *,
    solver: str = "auto",
    fit_intercept: bool = True,
    response_grams: bool = False,
) -> Whitened:
    """The problem for one penalty from (validated) data.

    "auto" goes through the moments where there are more samples than features and the normal
    equations keep half of the digits; a wide or ill-conditioned `X` is decomposed itself.
    """
    if solver in ("cholesky", "eigh") or (solver == "auto" and X.shape[0] >= X.shape[1]):
        # A pass that has threads of its own leaves the BLAS little to share.
        rest = X.shape[1] ** 2 * (X.shape[1] + math.prod(Y.shape[1:]))
        with few_threads_for(rest if n_shares(Y, X.shape[1]) > 1 else math.inf):
            m = Moments.from_checked(X, Y, w, response_grams).at_hand().centred(fit_intercept)
            if solver != "auto":
                return whiten_moments(m, alpha, solver=solver)
            problem = _accurate_problem(m, alpha)
        if problem is not None:
            return problem
    return spectral_from_arrays(
        X,
        Y,
        w,
        min_alpha=alpha,
        solver=solver,
        fit_intercept=fit_intercept,
        response_grams=response_grams,
    ).at(alpha, alone=True)


def _accurate_problem(m: Moments, alpha: float) -> Whitened | None:
    """The problem, or None where fewer than half of the digits survive ``X'X``."""
    if not _squares_are_safe(m):
        return None
    if prefers_cholesky(m):
        return cholesky_problem(m, alpha, half_of_the_digits(m.dtype))
    problem = spectral_from_moments(m)
    safe = keeps_digits(problem.s, alpha, m.n_features, m.dtype)
    return problem.at(alpha, alone=True) if safe else None


def _squares_are_safe(m: Moments) -> bool:
    """Whether no product of the data can have overflowed or vanished."""
    trace = float(namespace_of(m.Sxx).linalg.trace(m.Sxx))
    return 1e-200 < trace < 1e200 and 1e-200 < m.syy < 1e200


def spectral_from_samples(
    X: Array,
    Y: Array,
    w: Array | None = None,
    *,
    min_alpha: float = 0.0,
    solver: str = "auto",
    fit_intercept: bool = True,
    response_grams: bool = False,
) -> Spectral:
    """The problem for all penalties of at least `min_alpha` from (validated) data.

    Through ``X'X`` where there are more samples than features and its condition allows it, and
    else from `X` itself.
    """
    if solver == "eigh" or (solver == "auto" and X.shape[0] >= X.shape[1]):
        m = Moments.from_checked(X, Y, w, response_grams).centred(fit_intercept)
        if solver == "eigh":
            return spectral_from_moments(m)
        if _squares_are_safe(m):
            problem = spectral_from_moments(m)
            if keeps_digits(problem.s, min_alpha, m.n_features, m.dtype):
                return problem
    return spectral_from_arrays(
        X,
        Y,
        w,
        min_alpha=min_alpha,
        solver=solver,
        fit_intercept=fit_intercept,
        response_grams=response_grams,
    )


def spectral_from_arrays(
    X: Array,
    Y: Array,
    w: Array | None = None,
    *,
    min_alpha: float = 0.0,
    solver: str = "auto",
    fit_intercept: bool = True,
    response_grams: bool = False,
) -> Spectral:
    """The same by a decomposition of the inputs themselves (see `Inputs`)."""
    inputs = Inputs.of(X, w, min_alpha=min_alpha, solver=solver, fit_intercept=fit_intercept)
    B = inputs.basis

    def rows_of_basis(rows: slice, out: Array) -> None:
        out[...] = namespace_of(B).astype(B[rows, :].T, out.dtype, copy=False)

    return inputs.problem(sum_responses(rows_of_basis, B.shape[1], Y, w, response_grams))


@dataclass(frozen=True, eq=False)
class Inputs:
    """The inputs of a problem, decomposed: what is left to do is a product with the outputs.

    With X centred and weighted, ``X = Q diag(s) P'``. The rows of `basis` are those of Q times the
    roots of the weights, so that ``basis' Y`` is the ``Q'Y`` of weighted outputs.
    """

    s: Array  # (r,)
    P: Array  # (n_features, r)
    basis: Array  # (n_samples, r)
    mean_x: Array  # (n_features,)
    fit_intercept: bool
    solver: str  # as in `Whitened`
    dtype: str

    @classmethod
    def of(
        cls,
        X: Array,
        w: Array | None = None,
        *,
        min_alpha: float = 0.0,
        solver: str = "auto",
        fit_intercept: bool = True,
    ) -> Inputs:
        """Decompose (validated) inputs for penalties of at least `min_alpha`.

        The Gram matrix ``XX'`` of a wide `X` is decomposed where the smallest penalty hides the
        squaring of the condition number, and `X` itself otherwise.
        """
        xp = namespace_of(X)
        dtype = "float32" if X.dtype == xp.float32 else "float64"
        X = xp.astype(X, xp.float64, copy=False)
        weight = float(X.shape[0]) if w is None else float(xp.sum(w))
        root = None if w is None else xp.sqrt(w)[:, None]
        sizes = xp.maximum(xp.abs(xp.max(X, axis=0)), xp.abs(xp.min(X, axis=0)))
        if root is not None:
            sizes = sizes * xp.max(root)
        mean_x, X = _centred(X, w, weight, fit_intercept)
        s, Q, P, used = _decompose(X if root is None else X * root, sizes, min_alpha, solver)
        return cls(s, P, Q if root is None else Q * root, mean_x, fit_intercept, used, dtype)

    def problem(self, sums: ResponseSums) -> Spectral:
        """The problem, once the outputs have been multiplied with the basis."""
        if not self.fit_intercept:
            sums = sums.about_zero()
        return Spectral(
            s=self.s,
            T=sums.products,
            basis=self.P,
            syy=sums.syy,
            mean_x=self.mean_x,
            mean_y=sums.mean,
            response_grams=sums.grams,
            solver=self.solver,
            dtype=self.dtype,
            weight=sums.weight,
            squares=sums.squares,
        )


def _centred(X: Array, w: Array | None, weight: float, fit_intercept: bool) -> tuple[Array, Array]:
    """The centre of `X` and `X` about it; both as they are without an intercept."""
    if not fit_intercept:
        return namespace_of(X).zeros_like(X[0, :]), X
    mean = weighted_mean(X, w, weight)
    X = X - mean
    # Twice: a rounded mean leaves a constant, which would pass for variance where there is none.
    drift = weighted_mean(X, w, weight)
    X -= drift
    return mean + drift, X


def _decompose(
    X: Array, sizes: Array, min_alpha: float, solver: str
) -> tuple[Array, Array, Array, str]:
    """``X = Q diag(s) P'``, without the directions that hold rounding noise only.

    The entries of column j carry the rounding of numbers as large as ``sizes[j]``, which is more
    than that of the centred ones.
    """
    if solver == "auto" and X.shape[0] < X.shape[1]:
        K = symmetrise(X @ X.T)
        if min_alpha > half_of_the_digits("float64") * float(namespace_of(X).linalg.trace(K)):
            s, Q = supported(*eigh(K))
            return s, Q, X.T @ (Q / s), "eigh"
    Q, s, P = svd(X)
    sigma, eps = to_numpy(s), np.finfo(float).eps
    largest = max(float(to_numpy(sizes).max()), np.finfo(float).tiny)
    shares = to_numpy(P) * (to_numpy(sizes) / largest)[:, None]
    noise = np.sqrt(X.shape[0]) * largest * np.linalg.norm(shares, axis=0)
    keep = np.flatnonzero(sigma > eps * np.maximum(max(X.shape) * sigma[0], noise))
    if keep.size == sigma.size:
        return s, Q, P, "svd"
    xp = namespace_of(s)
    if not keep.size:  # one direction, which contributes nothing
        return xp.ones_like(s[:1]), xp.zeros_like(Q[:, :1]), xp.zeros_like(P[:, :1]), "svd"
    index = asarray_like(keep, s)
    return xp.take(s, index), xp.take(Q, index, axis=1), xp.take(P, index, axis=1), "svd"
