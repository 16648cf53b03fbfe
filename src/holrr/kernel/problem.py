"""Kernel ridge problems in whitened form: by one Cholesky factorisation, or for all penalties.

With the eigenpairs ``K = Q diag(lam) Q'``, a kernel problem is a spectral problem of linear models
with ``s = sqrt(lam)`` and ``basis = Q / s`` (`spectral_from_gram`).

A single penalty does not need the eigenpairs of `K`. With ``K + alpha I = L L'``, ``H = L^-1 Y``
and ``C = L'^-1 H``,

    Z'Z = Y' K (K + alpha I)^-1 Y = Y'(Y - alpha C) = Y'Y - alpha H'H ,

which has shape (D, D) for D outputs. Any square root R with ``R'R = Z'Z`` is Z up to a rotation of
the input mode. ``C R^-1`` maps coordinates of the input mode to dual coefficients, since it maps Z
to C (`whiten_gram`). If only a few coordinates are mapped, `C` is not computed. If only the leading
rows of R are needed, the other rows are not computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dlange, dpocon, dpotrf, dpstrf

from ..core.approximate import Whole, leading_pairs
from ..core.checks import check_finite
from ..core.leverage import column_products
from ..core.namespace import (
    NUMPY_LIMIT,
    Array,
    add_to_diagonal,
    asarray_like,
    cholesky,
    eigh,
    is_numpy_array,
    namespace_of,
    solve_triangular,
    squared_norm,
    symmetrise,
    to_numpy,
)
from ..core.spectral import Spectral, Whitened, half_of_the_digits
from ..core.tensor import gram, partial_traces
from ..core.threads import few_threads_for
from ..core.warn import warn
from .gram import Gram

__all__ = ["Responses", "centre_responses", "positive_part", "ridge_gram"]
__all__ += ["spectral_from_gram", "whiten_gram"]

_EPS = float(np.finfo(float).eps)
_HALF = half_of_the_digits("float64")
_TINY = 1e-200


# ---------------------------------------------------------------- outputs


@dataclass(frozen=True, eq=False)
class Responses:
    """Matrix of outputs minus their mean, multiplied by the square roots of the weights."""

    values: Array  # (n_samples, D), a new array in float64
    mean: Array  # (d1, ..., dp); zero without an intercept
    squares: Array  # (d1, ..., dp): sums of squares of `values`, infinite if they overflow
    weight: float  # sum of the weights
    grams: tuple[Array, ...] | None  # Gram matrices of output modes, up to a common factor
    dtype: str  # floating-point type of the data

    @cached_property
    def syy(self) -> float:
        """Squared norm of `values`."""
        return float(namespace_of(self.squares).sum(self.squares))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the outputs of a sample, ``(d1, ..., dp)``."""
        return tuple(self.mean.shape)


def centre_responses(
    Y: Array, w: Array | None = None, *, fit_intercept: bool = True, grams: bool = False
) -> Responses:
    """Subtract the (weighted) mean from the outputs, and scale samples by the roots of weights."""
    xp, shape = namespace_of(Y), tuple(Y.shape[1:])
    check_finite(Y, "y")
    flat = xp.reshape(xp.astype(Y, xp.float64, copy=False), (Y.shape[0], math.prod(shape)))
    mean = xp.mean(flat, axis=0) if w is None else (w @ flat) / xp.sum(w)
    if not fit_intercept:
        mean = xp.zeros_like(mean)
    values = flat - mean if not is_numpy_array(flat) else np.subtract(flat, mean, order="C")
    if w is not None:
        values *= xp.sqrt(w)[:, None]
    with np.errstate(over="ignore"):
        squares = column_products(values, values)
    return Responses(
        values=values,
        mean=xp.reshape(mean, shape),
        squares=xp.reshape(squares, shape),
        weight=float(Y.shape[0]) if w is None else float(xp.sum(w)),
        grams=_output_grams(values, shape) if grams else None,
        dtype="float32" if Y.dtype == xp.float32 else "float64",
    )


def _output_grams(values: Array, shape: tuple[int, ...]) -> tuple[Array, ...]:
    """Return the Gram matrices of the output modes, scaled to avoid overflow and underflow."""
    xp = namespace_of(values)
    largest = float(xp.max(xp.abs(values)))
    if largest > 0 and not 1e-120 < largest < 1e120:
        values = values / largest
    tensor = xp.reshape(values, (values.shape[0], *shape))
    return tuple(gram(tensor, i + 1) for i in range(len(shape)))


# ---------------------------------------------------------------- one penalty


def ridge_gram(build: Callable[[], Gram], Y: Responses, alpha: float) -> Whitened:
    """Return the problem without a constraint, whose solution is the dual coefficients.

    `Z` is the ridge solution itself, so no square root is needed. The parameters are those of
    `whiten_gram`.
    """
    solved = _solve_cholesky(build, Y, alpha)
    if solved is None:
        return spectral_from_gram(build(), Y).at(alpha)
    C, xp = solved.C, namespace_of(solved.C)
    norm = max(Y.syy - solved.residual, 0.0) if math.isfinite(Y.syy) else Y.syy
    residuals = alpha * C  # Y - K C; its squares are in range even if the squares of C are not
    squares = xp.reshape(column_products(residuals, residuals), Y.shape)
    Z = solved.G.as_coefficients(C)
    return replace(solved.problem(Z, DualFactor(solved), norm), residuals=squares)


def whiten_gram(
    build: Callable[[], Gram],
    Y: Responses,
    alpha: float,
    *,
    n_leading: int | None = None,
) -> Whitened:
    """Return the whitened problem for one penalty.

    The solver factorises ``K + alpha I`` if there are at most as many outputs as samples and
    the factorisation keeps half of the digits. Otherwise it decomposes `K`. The factorisation
    overwrites the Gram matrix, which is computed again if the factorisation fails. If the structure
    needs only `n_leading` input directions, `Z` may have only these.
    """
    n, D = Y.values.shape
    if D <= n:
        solved = _solve_cholesky(build, Y, alpha)
        problem = None if solved is None else _root_problem(solved, n_leading)
        if problem is not None:
            return problem
    return spectral_from_gram(build(), Y).at(alpha)


def _solve_cholesky(build: Callable[[], Gram], Y: Responses, alpha: float) -> _Solved | None:
    """Solve the problem by a Cholesky factorisation, or return None if eigenvalues are needed."""
    G = build()
    if G.positive or _is_positive(G):
        L = _factor(G, alpha)
        if L is not None:
            return _Solved(build, G, L, Y, alpha)
    return None


def _factor(G: Gram, alpha: float) -> Array | None:
    """Return the Cholesky factor of ``K + alpha I``, or None if it is ill-conditioned.

    The factor overwrites `K`.
    """
    K = add_to_diagonal(G.K, alpha)
    if not is_numpy_array(K):
        L, rcond = cholesky(K)
        enough = rcond > _HALF and alpha > _HALF * G.scale
        return L if enough else None
    # K is symmetric, so its transpose is K in the memory order of LAPACK, without a copy.
    size = max(dlange("1", K.T), G.scale + alpha)
    L, info = dpotrf(K.T, lower=1, clean=0, overwrite_a=1)
    # No eigenvalue of K + alpha I is below alpha; this bound is often sufficient.
    if info != 0 or not (alpha > _HALF * size or dpocon(L, size, uplo="L")[0] > _HALF):
        return None
    return L


def _is_positive(G: Gram) -> bool:
    """Return whether no eigenvalue is negative, up to rounding."""
    shifted = add_to_diagonal(G.K + 0.0, 4 * G.noise)  # G.K + 0.0 is a copy
    if is_numpy_array(shifted):
        return bool(dpotrf(shifted.T, lower=1, clean=0, overwrite_a=1)[1] == 0)
    return cholesky(shifted)[0] is not None


@dataclass(eq=False)
class _Solved:
    """Factorisation ``K + alpha I = L L'`` and its solutions.

    The upper triangle of `L` is not defined.
    """

    build: Callable[[], Gram]
    G: Gram
    L: Array
    Y: Responses
    alpha: float

    @cached_property
    def H(self) -> Array:
        """``L^-1 Y``, of shape (n_samples, D)."""
        return solve_triangular(self.L, self.Y.values)

    @cached_property
    def C(self) -> Array:
        """``(K + alpha I)^-1 Y``, of shape (n_samples, D)."""
        return solve_triangular(self.L, self.H, transposed=True)

    def times(self, M: Array) -> Array:
        """Return ``C M``, without computing `C` if `M` has few columns."""
        if 4 * M.shape[1] > self.H.shape[1]:
            return self.C @ M
        return solve_triangular(self.L, self.H @ M, transposed=True)

    @cached_property
    def residual(self) -> float:
        """``||Y||^2 - ||Z||^2 = alpha <Y, C> = alpha ||H||^2``."""
        if not math.isfinite(self.Y.syy):
            return math.inf
        with few_threads_for(math.prod(self.H.shape)):  # NumPy's threads would slow down SciPy's
            return self.alpha * float(squared_norm(self.H))

    def inner_products(self) -> Array:
        """Return ``Z'Z``, of shape (D, D); from a difference of Gram matrices if it is accurate."""
        Y, H, alpha = self.Y.values, self.H, self.alpha
        if self.Y.syy - self.residual < 0.01 * self.Y.syy:
            return symmetrise(Y.T @ (Y - alpha * self.C))
        if not is_numpy_array(H):
            return Y.T @ Y - alpha * (H.T @ H)
        S = dsyrk(1.0, Y.T, lower=1)
        S = dsyrk(-alpha, H.T, beta=1.0, c=S, lower=1, overwrite_c=1)
        return S + np.tril(S, -1).T

    def problem(self, Z: Array, factor: DualFactor, norm: float) -> Whitened:
        """Return the whitened problem of a matrix `Z` in the coordinates of a factor."""
        Y = self.Y
        return Whitened(
            Z=namespace_of(Z).reshape(Z, (Z.shape[0], *Y.shape)),
            factor=factor,
            alpha=self.alpha,
            norm=norm,
            residual=self.residual,
            mean_x=self.G.mean,
            mean_y=Y.mean,
            response_grams=Y.grams,
            solver="cholesky",
            dtype=Y.dtype,
            weight=Y.weight,
            squares=Y.squares,
            more=self.G.kept(),
        )


@dataclass(eq=False)
class DualFactor:
    """Coordinates of a Gram matrix that are the dual coefficients themselves."""

    solved: _Solved

    @property
    def n_directions(self) -> int:
        """Number of samples with weight."""
        root = self.solved.G.root
        return self.solved.L.shape[0] if root is None else int((to_numpy(root) > 0).sum())

    def kept(self) -> dict[str, Any]:
        """Return the Cholesky factor of ``K + alpha I``, and the centre of the kernel values."""
        solved = self.solved
        return {"form": "gram", "factor": solved.L, "mean": solved.G.mean, "root": None}

    def lift(self, M: Array) -> Array:
        """Return `M`, which are dual coefficients."""
        return M

    def fitted(self, M: Array) -> list[tuple[float, Array]]:
        """Return the fitted values of dual coefficients."""
        raise NotImplementedError  # the problem has the residual sums of squares

    def input_rank(self) -> int:
        """Return the numerical rank of the Gram matrix."""
        return _gram_rank(self.solved.build())

    def trace(self) -> None:
        """Return None: the trace follows from the Cholesky factor."""
        return


@dataclass(eq=False)
class RootFactor(DualFactor):
    """Coordinates of a square root R of ``Z'Z``, which ``C R^-1`` maps to dual coefficients."""

    root: Root
    last: tuple[Array, Array] | None = field(default=None, init=False)

    def lift(self, M: Array) -> Array:
        """Map columns of mode-0 coordinates to dual coefficients."""
        return self.solved.G.as_coefficients(self._duals(M))

    def fitted(self, M: Array) -> list[tuple[float, Array]]:
        """Return the fitted values ``Y R^-1 M - alpha C R^-1 M`` of the training samples."""
        Y, alpha = self.solved.Y.values, self.solved.alpha
        return [(1.0, Y @ self.root.solve(M) - alpha * self._duals(M))]

    def _duals(self, M: Array) -> Array:
        """Return ``C R^-1 M``, which is cached: coefficients and residuals need it."""
        if self.last is None or self.last[0] is not M:
            self.last = M, self.solved.times(self.root.solve(M))
        return self.last[1]


def _root_problem(solved: _Solved, n_leading: int | None) -> Whitened | None:
    """Return the whitened problem in the coordinates of a square root of ``Z'Z``."""
    Y = solved.Y
    # If the fit explains almost nothing, or squares overflow, the difference Y - alpha C has no
    # accurate digits.
    if not (math.isfinite(Y.syy) and Y.syy - solved.residual > max(_HALF * Y.syy, _TINY)):
        return None
    S, noise = solved.inner_products(), _EPS * Y.syy
    root = leading_rows(S, n_leading, Y.shape, noise) or square_root(S, noise)
    norm = squared_norm(root.rows) if root.whole is None else namespace_of(S).linalg.trace(S)
    problem = solved.problem(root.rows, RootFactor(solved, root), float(norm))
    return replace(problem, whole=root.whole)


def _gram_rank(G: Gram) -> int:
    """Return the numerical rank of a Gram matrix, by a Cholesky factorisation with pivoting."""
    return int(dpstrf(to_numpy(G.K).T, tol=G.noise, lower=1)[2])


# ---------------------------------------------------------------- all penalties


def spectral_from_gram(G: Gram, Y: Responses) -> Spectral:
    """Return the spectral problem, which serves all penalties.

    Eigenvalues that are zero up to rounding are dropped, which gives the solution of minimum norm.
    A Gram matrix with negative eigenvalues is replaced by its positive part, with a warning.
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
        squares=Y.squares,
        more=G.kept(),
    )


def positive_part(G: Gram) -> tuple[Array, Array]:
    """Return the square roots of positive eigenvalues, (r,), and eigenvectors, (n_samples, r).

    If no eigenvalue is positive, the result is one eigenvector of zeros.
    """
    lam, Q = eigh(G.K)
    host = to_numpy(lam)
    noise = max(G.noise, host.size * _EPS * float(host[0]))
    if G.positive:
        noise = max(noise, -float(host[-1]))
    elif host[-1] < -8 * noise:
        warn(
            f"The kernel is not positive semidefinite on these data: the smallest eigenvalue of "
            f"its Gram matrix is {host[-1]:.3g}, and the largest is {host[0]:.3g}. The fit uses "
            f"the nearest positive semidefinite matrix (negative eigenvalues are set to zero)."
        )
    # A centred Gram matrix has the eigenvalue zero.
    r = min(int((host > noise).sum()), host.size - int(G.centred))
    if r == 0:
        return asarray_like(np.ones(1), Q), 0.0 * Q[:, :1]
    return namespace_of(lam).sqrt(lam[:r]), Q[:, :r]


# ---------------------------------------------------------------- square roots of Z'Z


@dataclass(frozen=True, eq=False)
class TriangularRoot:
    """The root ``R = L'`` of ``S = L L'``."""

    L: Array  # (D, D), lower triangular

    whole = None

    @property
    def rows(self) -> Array:
        """Rows of R."""
        return self.L.T

    def solve(self, M: Array) -> Array:
        """Return ``R^-1 M``."""
        return solve_triangular(self.L, M, transposed=True)


@dataclass(frozen=True, eq=False)
class EigenRoot:
    """The root ``R = diag(sigma) V'`` from eigenpairs of S, or its leading rows."""

    sigma: Array  # (k,)
    V: Array  # (D, k)
    whole: Whole | None = None  # properties of all rows, if these are the leading ones

    @property
    def rows(self) -> Array:
        """Rows of R."""
        return self.sigma[:, None] * self.V.T

    def solve(self, M: Array) -> Array:
        """Return ``R^-1 M``."""
        return self.V @ (M / self.sigma[:, None])


Root = TriangularRoot | EigenRoot


def square_root(S: Array, noise: float) -> Root:
    """Return a matrix R with ``R'R = S``.

    R is the Cholesky factor if it is well conditioned, and comes from the eigenpairs otherwise.
    """
    xp = namespace_of(S)
    L, _ = cholesky(S)
    if L is not None:
        d = xp.linalg.diagonal(L)
        if float(xp.min(d)) > 1e-4 * float(xp.max(d)):
            return TriangularRoot(L)
    lam, V = eigh(S)
    # Rounding can make small eigenvalues zero or negative. Raising them to `noise` keeps all
    # directions: R^-1 R = V V'.
    return EigenRoot(xp.sqrt(xp.clip(lam, noise, None)), V)


def leading_rows(S: Array, k: int | None, shape: Sequence[int], noise: float) -> EigenRoot | None:
    """Return the leading `k` rows of ``R = diag(sigma) V'`` in place of all rows.

    Returns None if this is not faster, or if fewer than `k` eigenvalues exceed `noise`, the
    rounding error of the entries of `S`, of shape (D, D). The outputs have `shape` (d1, ..., dp),
    whose product is D.
    """
    if k is None or S.shape[0] <= NUMPY_LIMIT or 3 * (k + 1) > S.shape[0]:
        return None
    lam, V = leading_pairs(S, k)
    if not lam[k - 1] > max(noise, np.finfo(float).eps * S.shape[0] * lam[0]):
        return None
    sigma = asarray_like(np.sqrt(lam[:k]), V)
    return EigenRoot(sigma, V, Whole(np.maximum(lam, 0.0), partial_traces(S, shape)))
