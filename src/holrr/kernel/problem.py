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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dlange, dpocon, dpotrf, dpstrf

from ..core.approximate import Whole, leading_pairs
from ..core.checks import check_finite
from ..core.leverage import Hat, column_products
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

__all__ = ["SOLVERS", "Responses", "centre_responses", "positive_part", "ridge_gram"]
__all__ += ["spectral_from_gram", "whiten_gram"]

SOLVERS = ("auto", "cholesky", "eigh")
_EPS = float(np.finfo(float).eps)
_HALF = half_of_the_digits("float64")
_TINY = 1e-200


# ---------------------------------------------------------------- outputs


@dataclass(frozen=True, eq=False)
class Responses:
    """Outputs, less their mean and times the roots of the weights, as a matrix."""

    values: Array  # (n_samples, D), in float64 and in memory of its own
    mean: Array  # (d1, ..., dp); zero where no intercept is fitted
    squares: Array  # (d1, ..., dp): sums of squares of `values`, infinite where they overflow
    weight: float  # sum of the weights
    grams: tuple[Array, ...] | None  # of the output modes, (d_i, d_i), up to a common factor
    dtype: str  # floating-point type of the data

    @cached_property
    def syy(self) -> float:
        """Squared norm of `values`."""
        return float(namespace_of(self.squares).sum(self.squares))

    @property
    def shape(self) -> tuple[int, ...]:
        """``(d1, ..., dp)``."""
        return tuple(self.mean.shape)


def centre_responses(
    Y: Array, w: Array | None = None, *, fit_intercept: bool = True, grams: bool = False
) -> Responses:
    """Take the (weighted) mean off the outputs and scale the samples by their weights."""
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
    """Gram matrices of the output modes, scaled where squares would overflow or vanish."""
    xp = namespace_of(values)
    largest = float(xp.max(xp.abs(values)))
    if largest > 0 and not 1e-120 < largest < 1e120:
        values = values / largest
    tensor = xp.reshape(values, (values.shape[0], *shape))
    return tuple(gram(tensor, i + 1) for i in range(len(shape)))


# ---------------------------------------------------------------- one penalty


def ridge_gram(build: Callable[[], Gram], Y: Responses, alpha: float, *, solver: str) -> Whitened:
    """The problem without a constraint: its solution is the dual coefficients themselves.

    `Z` is then the ridge solution and `lift` the identity, so that no square root is taken.
    Parameters as in `whiten_gram`.
    """
    solved = _solve_cholesky(build, Y, alpha, solver=solver)
    if solved is None:
        return spectral_from_gram(build(), Y).at(alpha)
    C, xp = solved.C, namespace_of(solved.C)
    norm = max(Y.syy - solved.residual, 0.0) if math.isfinite(Y.syy) else Y.syy
    residuals = alpha * C  # Y - K C, whose squares are in range where those of C are not
    squares = xp.reshape(column_products(residuals, residuals), Y.shape)
    return solved.problem(solved.G.as_coefficients(C), lambda M: M, norm, residuals=squares)


def whiten_gram(
    build: Callable[[], Gram],
    Y: Responses,
    alpha: float,
    *,
    solver: str,
    n_leading: int | None = None,
) -> Whitened:
    """The problem for one penalty.

    The factorisation overwrites the Gram matrix, which is built again where the first way fails.
    The solver "auto" factorises ``K + alpha I`` where the outputs are no more than the samples and
    half of the digits survive it, and else decomposes `K`. Where `n_leading` of many input
    directions will do, `Z` may hold these only.
    """
    n, D = Y.values.shape
    if solver != "auto" or D <= n:
        solved = _solve_cholesky(build, Y, alpha, solver=solver)
        problem = None if solved is None else _root_problem(solved, n_leading)
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
            return _Solved(build, G, L, Y, alpha)
    if solver == "cholesky":
        raise ValueError(
            f"solver='cholesky' needs a positive semidefinite kernel and K + alpha I to be "
            f"positive definite, which is not so with alpha={alpha}; use solver='auto' or 'eigh', "
            f"or a larger alpha."
        )
    return None


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
    shifted = add_to_diagonal(G.K + 0.0, 4 * G.noise)  # a copy
    if is_numpy_array(shifted):
        return bool(dpotrf(shifted.T, lower=1, clean=0, overwrite_a=1)[1] == 0)
    return cholesky(shifted)[0] is not None


@dataclass(eq=False)
class _Solved:
    """``K + alpha I = L L'``, and what follows; the upper triangle of `L` is anything."""

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
        """``C M``, for few columns without `C`."""
        if 4 * M.shape[1] > self.H.shape[1]:
            return self.C @ M
        return solve_triangular(self.L, self.H @ M, transposed=True)

    @cached_property
    def residual(self) -> float:
        """``||Y||^2 - ||Z||^2 = alpha <Y, C> = alpha ||H||^2``."""
        if not math.isfinite(self.Y.syy):
            return math.inf
        with few_threads_for(math.prod(self.H.shape)):  # NumPy's would be in the way of SciPy's
            return self.alpha * float(squared_norm(self.H))

    def inner_products(self) -> Array:
        """``Z'Z``, of shape (D, D): as a difference of Gram matrices, where it has the digits."""
        Y, H, alpha = self.Y.values, self.H, self.alpha
        if self.Y.syy - self.residual < 0.01 * self.Y.syy:
            return symmetrise(Y.T @ (Y - alpha * self.C))
        if not is_numpy_array(H):
            return Y.T @ Y - alpha * (H.T @ H)
        S = dsyrk(1.0, Y.T, lower=1)
        S = dsyrk(-alpha, H.T, beta=1.0, c=S, lower=1, overwrite_c=1)
        return S + np.tril(S, -1).T

    def problem(
        self, Z: Array, lift: Callable[[Array], Array], norm: float, whole: Any = None, **known: Any
    ) -> Whitened:
        """The problem with `Z` as a matrix; `known` is what is special about its `Hat`."""
        G, Y, L = self.G, self.Y, self.L
        n_weighted = L.shape[0] if G.root is None else int((to_numpy(G.root) > 0).sum())
        hat = Hat(
            form="gram",
            factor=lambda: L,
            alpha=self.alpha,
            mean=G.mean,
            weight=Y.weight,
            trace=None,
            n_directions=n_weighted,
            squares=Y.squares,
            more=G.kept(),
            **known,
        )
        return Whitened(
            Z=namespace_of(Z).reshape(Z, (Z.shape[0], *Y.shape)),
            lift=lift,
            residual=self.residual,
            norm=norm,
            input_rank=lambda: _gram_rank(self.build()),
            mean_x=G.mean,
            mean_y=Y.mean,
            response_grams=Y.grams,
            solver="cholesky",
            dtype=Y.dtype,
            hat=hat,
            whole=whole,
        )


def _root_problem(solved: _Solved, n_leading: int | None) -> Whitened | None:
    """The whitened problem in the coordinates of a square root of ``Z'Z``."""
    Y, alpha = solved.Y, solved.alpha
    # Where next to nothing is fitted (or squares leave the range of floats) the difference
    # Y - alpha C has no digits.
    if not (math.isfinite(Y.syy) and Y.syy - solved.residual > max(_HALF * Y.syy, _TINY)):
        return None
    S, noise = solved.inner_products(), _EPS * Y.syy
    root, lift, whole = leading_rows(S, n_leading, Y.shape, noise) or square_root(S, noise)
    norm = squared_norm(root) if whole is None else namespace_of(S).linalg.trace(S)

    last: list[Array] = []

    def duals(M: Array) -> Array:
        """``C lift(M)``: asked for by the coefficients, then by their residuals."""
        if not last or last[0] is not M:
            last[:] = M, solved.times(lift(M))
        return last[1]

    def fitted(M: Array) -> list[tuple[float, Array]]:
        return [(1.0, Y.values @ lift(M) - alpha * duals(M))]

    to_duals = lambda M: solved.G.as_coefficients(duals(M))  # noqa: E731
    return solved.problem(root, to_duals, float(norm), whole, fitted=fitted)


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
        squares=Y.squares,
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


# ---------------------------------------------------------------- square roots of Z'Z


# Rows, the map from coordinates to the outputs' side, and what is known of all rows.
Root = tuple[Array, Callable[[Array], Array], Whole | None]


def square_root(S: Array, noise: float) -> Root:
    """A matrix R with ``R'R = S``, the function that solves ``R X = M``, and nothing else.

    The Cholesky factor where it is well conditioned, and else ``diag(sigma) V'`` from the
    eigenpairs.
    """
    xp = namespace_of(S)
    L, _ = cholesky(S)
    if L is not None:
        d = xp.linalg.diagonal(L)
        if float(xp.min(d)) > 1e-4 * float(xp.max(d)):
            return L.T, lambda M: solve_triangular(L, M, transposed=True), None
    lam, V = eigh(S)
    # Rounding can leave nothing, or less, of small eigenvalues. Whatever stands in their place
    # takes no direction away: R^-1 R = V V'.
    sigma = xp.sqrt(xp.clip(lam, noise, None))
    return sigma[:, None] * V.T, lambda M: V @ (M / sigma[:, None]), None


def leading_rows(S: Array, k: int | None, shape: Sequence[int], noise: float) -> Root | None:
    """The leading `k` rows of ``R = diag(sigma) V'``, in the place of all of them.

    None where that is no quicker, or where so many directions are not above the noise, the rounding
    of the entries of `S`, (D, D). The `shape` of the outputs, (d1, ..., dp), has the product D.
    """
    if k is None or S.shape[0] <= NUMPY_LIMIT or 3 * (k + 1) > S.shape[0]:
        return None
    lam, V = leading_pairs(S, k)
    if not lam[k - 1] > max(noise, np.finfo(float).eps * S.shape[0] * lam[0]):
        return None
    sigma = asarray_like(np.sqrt(lam[:k]), V)
    whole = Whole(np.maximum(lam, 0.0), partial_traces(S, shape))
    return sigma[:, None] * V.T, lambda M: V @ (M / sigma[:, None]), whole
