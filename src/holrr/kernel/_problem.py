"""Kernel ridge problems in whitened form: by one Cholesky factorisation, or for all penalties.

With the eigenpairs ``K = Q diag(lam) Q'`` a kernel problem is the spectral problem of the linear
family with ``s = sqrt(lam)`` and ``basis = Q / s`` (`spectral_from_gram`).

For one penalty no eigenpairs of `K` are needed. With ``K + alpha I = L L'``, ``H = L^-1 Y`` and
``C = L'^-1 H``,

    Z'Z = Y' K (K + alpha I)^-1 Y = Y'(Y - alpha C) = Y'Y - alpha H'H ,

which has the size of an output. Any square root of it, ``R'R = Z'Z``, is Z up to a rotation of the
input mode, and ``C R^-1`` maps coordinates of that mode to dual coefficients, since it maps Z to C
(`whiten_gram`). `C` itself is not needed where few coordinates are mapped, nor all of R where few
of its leading rows are asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg.blas import dsyrk, dtrsm
from scipy.linalg.lapack import dlange, dpocon, dpotrf, dpstrf

from ..core.caution import warn
from ..core.hat import Hat
from ..core.namespace import (
    Array,
    add_to_diagonal,
    asarray_like,
    cholesky,
    device_of,
    eigh,
    is_numpy_array,
    namespace_of,
    solve_triangular,
    squared_norm,
    symmetrise,
    to_numpy,
)
from ..core.spectral import Spectral, Whitened, half_of_the_digits
from ..core.threads import few_threads_for
from ._gram import Gram
from ._responses import Responses
from ._root import leading_rows, square_root

__all__ = ["SOLVERS", "positive_part", "ridge_gram", "spectral_from_gram", "whiten_gram"]

SOLVERS = ("auto", "cholesky", "eigh")
_EPS = float(np.finfo(float).eps)
_HALF = half_of_the_digits("float64")
_TINY = 1e-200


# ---------------------------------------------------------------- one penalty


def ridge_gram(build: Callable[[], Gram], Y: Responses, alpha: float, *, solver: str) -> Whitened:
    """The problem without a constraint: its solution is the dual coefficients themselves.

    `Z` is then the ridge solution and `lift` the identity, so that no square root is taken.
    Parameters as in `whiten_gram`.
    """
    solved = _solve_cholesky(build, Y, alpha, solver=solver)
    if solved is None:
        return spectral_from_gram(build(), Y).at(alpha)
    C, G, L = solved.C, solved.G, solved.L
    xp, residual = namespace_of(C), _residual(Y, solved, alpha)
    squares = xp.reshape(alpha * alpha * xp.sum(C * C, axis=0), Y.shape)
    return Whitened(
        Z=xp.reshape(G.as_coefficients(C), (C.shape[0], *Y.shape)),
        lift=lambda M: M,
        residual=residual,
        norm=max(Y.syy - residual, 0.0) if math.isfinite(Y.syy) else Y.syy,
        input_rank=lambda: _gram_rank(build()),
        mean_x=G.mean,
        mean_y=Y.mean,
        response_grams=Y.grams,
        solver="cholesky",
        dtype=Y.dtype,
        hat=replace(_gram_hat(G, L, Y, alpha), residuals=squares),  # Y - K C = alpha C
    )


def _gram_hat(G: Gram, L: Array, Y: Responses, alpha: float) -> Hat:
    xp = namespace_of(L)
    return Hat(
        form="gram",
        factor=lambda: L,
        alpha=alpha,
        mean=G.mean,
        weight=Y.weight,
        trace=None,
        n_directions=L.shape[0] if G.root is None else int(xp.sum(xp.astype(G.root > 0, xp.int64))),
        squares=xp.reshape(Y.squares, Y.shape),
        more=G.kept(),
    )


def _residual(Y: Responses, solved: _Solved, alpha: float) -> float:
    """``||Y||^2 - ||Z||^2 = alpha <Y, C> = alpha ||H||^2``."""
    with few_threads_for(math.prod(solved.H.shape)):  # NumPy's would be in the way of SciPy's
        return alpha * float(squared_norm(solved.H)) if math.isfinite(Y.syy) else math.inf


def whiten_gram(
    build: Callable[[], Gram],
    Y: Responses,
    alpha: float,
    *,
    solver: str,
    n_leading: int | None = None,
) -> Whitened:
    """The problem for one penalty.

    Parameters
    ----------
    build : callable
        Computes the Gram matrix, which the factorisation overwrites. It is called again where
        the first way fails.
    Y : Responses
    alpha : float
    solver : {"auto", "cholesky", "eigh"}
        "auto" factorises ``K + alpha I`` where the outputs are no more than the samples and half
        of the digits survive it, and else decomposes `K`.
    n_leading : int, optional
        How many leading input directions will do: of many, `Z` may hold these only.
    """
    wide = Y.values.shape[1] > Y.values.shape[0]
    if not (solver == "auto" and wide):
        solved = _solve_cholesky(build, Y, alpha, solver=solver)
        problem = None
        if solved is not None:
            problem = _root_problem(solved, Y, alpha, build, n_leading)
        if problem is not None:
            return problem
        if solver == "cholesky":
            raise ValueError(
                f"solver='cholesky' cannot fit these outputs with alpha={alpha}: they are "
                f"constant, or the penalty leaves nothing of them; use solver='auto' or 'eigh'."
            )
    return spectral_from_gram(build(), Y).at(alpha)


def _solve_cholesky(
    build: Callable[[], Gram], Y: Responses, alpha: float, *, solver: str
) -> _Solved | None:
    """The solution by a Cholesky factorisation; None where eigenvalues are needed."""
    if solver == "eigh":
        return None
    G = build()
    if G.positive or _is_positive(G):
        L = _factor(G, alpha, 0.0 if solver == "cholesky" else _HALF)
        if L is not None:
            return _Solved(G, L, _solve_triangular(L, Y.values))
    if solver == "cholesky":
        raise ValueError(
            f"solver='cholesky' needs a positive semidefinite kernel and K + alpha I to be "
            f"positive definite, which is not so with alpha={alpha}; use solver='auto' or 'eigh', "
            f"or a larger alpha."
        )
    return None


@dataclass(eq=False)
class _Solved:
    """``K + alpha I = L L'`` (the upper triangle of `L` is anything) and ``H = L^-1 Y``."""

    G: Gram
    L: Array
    H: Array

    @cached_property
    def C(self) -> Array:
        """``(K + alpha I)^-1 Y``, of shape (n_samples, D)."""
        return _solve_triangular(self.L, self.H, transposed=True)

    def times(self, M: Array) -> Array:
        """``C M``, for few columns without `C`."""
        if 4 * M.shape[1] > self.H.shape[1]:
            return self.C @ M
        return _solve_triangular(self.L, self.H @ M, transposed=True)


def _solve_triangular(L: Array, B: Array, *, transposed: bool = False) -> Array:
    """``L^-1 B`` or ``L'^-1 B``; of NumPy arrays from the right, so that `B` is not copied."""
    if not is_numpy_array(B):
        return solve_triangular(L, B, transposed=transposed)
    return dtrsm(1.0, L, B.T, side=1, lower=1, trans_a=int(not transposed)).T


def _factor(G: Gram, alpha: float, min_rcond: float) -> Array | None:
    """The Cholesky factor of ``K + alpha I``, which overwrites `K`; None if few digits survive."""
    K = add_to_diagonal(G.K, alpha)
    if not is_numpy_array(K):
        L, rcond = cholesky(K)
        enough = rcond > min_rcond and alpha > min_rcond * G.scale
        return L if enough else None
    # K is symmetric, so its transpose is K in the order that LAPACK wants, without a copy.
    size = max(dlange("1", K.T), G.scale + alpha)
    L, info = dpotrf(K.T, lower=1, clean=0, overwrite_a=1)
    # No eigenvalue of K + alpha I is below alpha: often enough to know.
    if info != 0 or not (alpha > min_rcond * size or dpocon(L, size, uplo="L")[0] > min_rcond):
        return None
    return L


def _is_positive(G: Gram) -> bool:
    """Whether no eigenvalue is negative beyond rounding."""
    n, shift = G.K.shape[0], 4 * G.noise
    xp = namespace_of(G.K)
    shifted = G.K + shift * xp.eye(n, dtype=G.K.dtype, device=device_of(G.K))
    if is_numpy_array(shifted):
        return bool(dpotrf(shifted.T, lower=1, clean=0, overwrite_a=1)[1] == 0)
    return cholesky(shifted)[0] is not None


def _root_problem(
    solved: _Solved,
    Y: Responses,
    alpha: float,
    build: Callable[[], Gram],
    n_leading: int | None,
) -> Whitened | None:
    """The whitened problem in the coordinates of a square root of ``Z'Z``."""
    G, residual = solved.G, _residual(Y, solved, alpha)
    norm = Y.syy - residual
    # Where next to nothing is fitted (or squares leave the range of floats) the difference
    # Y - alpha C has no digits.
    if not (math.isfinite(Y.syy) and norm > max(_HALF * Y.syy, _TINY)):
        return None
    S, noise = _inner_products(solved, Y, alpha, norm), _EPS * Y.syy
    root, lift, whole = leading_rows(S, n_leading, Y.shape, noise) or square_root(S, noise)
    xp = namespace_of(root)

    last: list[Array] = []

    def duals(M: Array) -> Array:
        """``C lift(M)``: asked for by the coefficients, then by their residuals."""
        if not last or last[0] is not M:
            last[:] = M, solved.times(lift(M))
        return last[1]

    def fitted(M: Array) -> list[tuple[float, Array]]:
        return [(1.0, Y.values @ lift(M) - alpha * duals(M))]

    return Whitened(
        Z=xp.reshape(root, (root.shape[0], *Y.shape)),
        lift=lambda M: G.as_coefficients(duals(M)),
        residual=residual,
        norm=float(squared_norm(root) if whole is None else xp.linalg.trace(S)),
        input_rank=lambda: _gram_rank(build()),
        mean_x=G.mean,
        mean_y=Y.mean,
        response_grams=Y.grams,
        solver="cholesky",
        dtype=Y.dtype,
        hat=replace(_gram_hat(G, solved.L, Y, alpha), fitted=fitted),
        whole=whole,
    )


def _inner_products(solved: _Solved, Y: Responses, alpha: float, norm: float) -> Array:
    """``Z'Z``, of shape (D, D): as a difference of Gram matrices, where it has the digits."""
    H = solved.H
    if norm < 0.01 * Y.syy:
        return _symmetric_product(Y.values, Y.values - alpha * solved.C)
    if not is_numpy_array(H):
        return Y.values.T @ Y.values - alpha * (H.T @ H)
    S = dsyrk(1.0, Y.values.T, lower=1)
    S = dsyrk(-alpha, H.T, beta=1.0, c=S, lower=1, overwrite_c=1)
    return S + np.tril(S, -1).T


def _symmetric_product(A: Array, B: Array, block: int = 256) -> Array:
    """``A'B``, which is known to be symmetric; of NumPy arrays one triangle is computed."""
    if not is_numpy_array(A):
        return symmetrise(A.T @ B)
    d = A.shape[1]
    S = np.zeros((d, d))
    for start in range(0, d, block):
        stop = min(start + block, d)
        S[start:stop, :stop] = A[:, start:stop].T @ B[:, :stop]
    return np.tril(S) + np.tril(S, -1).T


def _gram_rank(G: Gram) -> int:
    """Numerical rank of a Gram matrix, by a Cholesky factorisation with pivoting."""
    return int(dpstrf(to_numpy(G.K).T, tol=G.noise, lower=1)[2])


# ---------------------------------------------------------------- all penalties


def spectral_from_gram(G: Gram, Y: Responses) -> Spectral:
    """The problem for all penalties at once.

    Eigenvalues that are zero up to rounding are dropped, which gives the solution of least norm.
    A kernel with negative ones is replaced by its positive part, with a warning.
    """
    s, Q = positive_part(G)
    return Spectral(
        s=s,
        T=namespace_of(Q).reshape(Q.T @ Y.values, (Q.shape[1], *Y.shape)),
        basis=G.as_coefficients(Q / s),
        syy=Y.syy,
        mean_x=G.mean,
        mean_y=Y.mean,
        response_grams=Y.grams,
        solver="eigh",
        dtype=Y.dtype,
        weight=Y.weight,
        squares=namespace_of(Q).reshape(Y.squares, Y.shape),
        more=G.kept(),
    )


def positive_part(G: Gram) -> tuple[Array, Array]:
    """Roots of the positive eigenvalues, (r,), and their eigenvectors, (n_samples, r).

    A matrix without any is stood for by one direction that contributes nothing.
    """
    lam, Q = eigh(G.K)
    host = to_numpy(lam)
    noise = max(G.noise, host.size * _EPS * float(host[0]))
    if G.positive:
        noise = max(noise, -float(host[-1]))
    elif host[-1] < -8 * noise:
        warn(
            f"The kernel is not positive semidefinite on these data: its Gram matrix has an "
            f"eigenvalue of {host[-1]:.3g} beside the largest of {host[0]:.3g}. It is replaced by "
            f"the nearest positive semidefinite one (negative eigenvalues become zero)."
        )
    r = int((host > noise).sum())
    if r == 0:
        return asarray_like(np.ones(1), Q), 0.0 * Q[:, :1]
    return namespace_of(lam).sqrt(lam[:r]), Q[:, :r]
