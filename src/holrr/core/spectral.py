"""Ridge problems in the coordinates in which a rank constraint is an approximation problem.

With ``X'X + alpha I = L L'``, ``Z = L^-1 X'Y`` and ``V = L'W``,

    ||W x_0 X - Y||^2 + alpha ||W||^2  =  ||Y||^2 - ||Z||^2 + ||V - Z||^2 ,

so an estimator approximates `Z` by some `V` of the wanted form and maps back with ``W = L'^-1 V``
(`Whitened`). Any square root of ``X'X + alpha I`` does. That of a singular value decomposition
``X = Q diag(sqrt(lam)) P'`` serves every alpha at once (`Spectral`): up to a rotation of mode 0
``Z = sqrt(lam / (lam + alpha)) Q'Y``, whether the decomposition is that of X (SVD), of X'X
(primal), of XX' (dual) or of a kernel's Gram matrix.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .moments import Moments, weighted_mean
from .namespace import (
    NUMPY_LIMIT,
    Array,
    asarray_like,
    cholesky,
    device_of,
    eigh,
    namespace_of,
    on_host,
    solve_triangular,
    squared_norm,
    svd,
    symmetrise,
    to_numpy,
)
from .responses import ResponseSums, sum_responses
from .tensor import fold, mode_product, unfold

__all__ = ["Inputs", "Spectral", "Whitened", "spectral_from_arrays", "spectral_from_moments"]
__all__ += ["keeps_digits", "squares_keep_digits", "whiten_arrays", "whiten_moments"]

SOLVERS = ("auto", "cholesky", "eigh", "svd")


@dataclass(frozen=True, eq=False)
class Whitened:
    """One ridge problem, as "approximate Z".

    Parameters
    ----------
    Z : array of shape (r, d1, ..., dp)
    lift : callable
        Maps columns of mode-0 coordinates, (r, k), to coefficients, (n_features, k).
    residual : float
        ``||Y||^2 - ||Z||^2``: the ridge objective without any constraint.
    norm : float
        ``||Z||^2``.
    input_rank : callable
        Numerical rank of the inputs, found out when asked for.
    mean_x, mean_y : arrays of shape (n_features,) and (d1, ..., dp)
        Centres of the data, zero where no intercept is fitted.
    response_grams : tuple of arrays of shape (d_i, d_i), or None
    solver : str
        The factorisation that was used: "cholesky", "eigh" or "svd".
    dtype : str
        Floating-point type of the data.
    """

    Z: Array
    lift: Callable[[Array], Array]
    residual: float
    norm: float
    input_rank: Callable[[], int]
    mean_x: Array
    mean_y: Array
    response_grams: tuple[Array, ...] | None
    solver: str
    dtype: str


@dataclass(frozen=True, eq=False)
class Spectral:
    """A ridge problem for all penalties at once.

    Parameters
    ----------
    s : array of shape (r,)
        Singular values of the inputs, positive, largest first; ``lam = s^2``.
    T : array of shape (r, d1, ..., dp)
        ``Q'Y``.
    basis : array of shape (n_features, r)
        The map to coefficients, before the scaling ``1 / sqrt(lam + alpha)``: `P`, or ``Q / s``
        where the coefficients are those of a kernel expansion.
    syy : float
        ``||Y||^2``.
    mean_x, mean_y, response_grams, solver, dtype
        As in `Whitened`.
    """

    s: Array
    T: Array
    basis: Array
    syy: float
    mean_x: Array
    mean_y: Array
    response_grams: tuple[Array, ...] | None
    solver: str
    dtype: str

    def at(self, alpha: float) -> Whitened:
        """The problem for one penalty: a scaling of the rows of `T`."""
        xp = namespace_of(self.T)
        # hypot: the squares of very large and very small singular values are never formed.
        root = xp.hypot(self.s, xp.full_like(self.s, math.sqrt(alpha)))
        Z = fold(unfold(self.T, 0) * (self.s / root)[:, None], 0, self.T.shape)
        return _whitened(
            Z,
            lambda M: self.basis @ (M / root[:, None]),
            self.syy,
            input_rank=lambda: self.s.shape[0],
            mean_x=self.mean_x,
            mean_y=self.mean_y,
            response_grams=self.response_grams,
            solver=self.solver,
            dtype=self.dtype,
        )


def _whitened(Z: Array, lift: Callable[[Array], Array], syy: float, **rest: object) -> Whitened:
    norm = float(squared_norm(Z))
    residual = max(syy - norm, 0.0) if np.isfinite(syy) else syy
    return Whitened(Z, lift, residual, norm, **rest)  # type: ignore[arg-type]


# ---------------------------------------------------------------- from moments


def whiten_moments(
    m: Moments, alpha: float, *, solver: str = "auto", fit_intercept: bool = True
) -> Whitened:
    """The problem for one penalty from moments alone.

    "auto" takes a Cholesky factorisation of many features where it keeps half of the digits, and
    else the spectral form.
    """
    if solver == "svd":
        raise ValueError(
            "solver='svd' factorises the samples themselves, which moments do not hold; use "
            "solver='auto', 'cholesky' or 'eigh' with partial_fit and moments."
        )
    if not fit_intercept:
        m = m.about_zero()
    _check_moments(m)
    if solver == "cholesky" or (solver == "auto" and _prefers_cholesky(m)):
        least = np.finfo(float).eps if solver == "cholesky" else _half(m.dtype)
        problem = _cholesky_problem(m, alpha, float(least))
        if problem is not None:
            return problem
        if solver == "cholesky":
            raise ValueError(
                f"solver='cholesky' needs X'X + alpha I to be positive definite, which it is not "
                f"with alpha={alpha}; use solver='auto' or 'svd', or a larger alpha."
            )
    return spectral_from_moments(m).at(alpha)


def _prefers_cholesky(m: Moments) -> bool:
    """Whether an eigendecomposition of ``X'X`` would cost more than it is worth."""
    return m.n_features > NUMPY_LIMIT or not on_host(m.Sxx)


def _accurate_problem(m: Moments, alpha: float) -> Whitened | None:
    """The problem, or None where fewer than half of the digits survive ``X'X``."""
    if not _squares_are_safe(m):
        return None
    if _prefers_cholesky(m):
        return _cholesky_problem(m, alpha, _half(m.dtype))
    problem = spectral_from_moments(m)
    return problem.at(alpha) if keeps_digits(problem.s, alpha, m.n_features, m.dtype) else None


def keeps_digits(s: Array, alpha: float, n_features: int, dtype: str) -> bool:
    """Whether half of the digits survive a solve with ``X'X + alpha I``.

    Parameters
    ----------
    s : array of shape (r,)
        Singular values of the inputs, largest first; missing ones are zero.
    alpha : float
    n_features : int
    dtype : str
        Floating-point type of the data.
    """
    s = to_numpy(s)
    smallest = s[-1] ** 2 if s.size == n_features else 0.0
    return bool(smallest + alpha > _half(dtype) * (s[0] ** 2 + alpha))


def squares_keep_digits(m: Moments, alpha: float) -> bool:
    """Whether half of the digits survive a solve with the ``X'X + alpha I`` of these moments."""
    xp = namespace_of(m.Sxx)
    eye = xp.eye(m.n_features, dtype=m.Sxx.dtype, device=device_of(m.Sxx))
    safe = 1e-200 < float(xp.linalg.trace(m.Sxx)) < 1e200
    return safe and cholesky(m.Sxx + alpha * eye)[1] > _half(m.dtype)


def _check_moments(m: Moments) -> None:
    xp = namespace_of(m.Sxx)
    if not bool(xp.all(xp.isfinite(m.Sxx))):
        raise ValueError("the squares of X overflow; scale the inputs down, or use fit instead.")
    if not bool(xp.all(xp.isfinite(m.Sxy))):
        raise ValueError("the products of X and y overflow; scale them down, or use fit instead.")


def _half(dtype: str) -> float:
    """Smallest 1 / condition number at which half of the digits survive the solve."""
    return float(np.sqrt(np.finfo(dtype).eps))


def _squares_are_safe(m: Moments) -> bool:
    """Whether no product of the data can have overflowed or vanished."""
    trace = float(namespace_of(m.Sxx).linalg.trace(m.Sxx))
    return 1e-200 < trace < 1e200 and 1e-200 < m.syy < 1e200


def _cholesky_problem(m: Moments, alpha: float, min_rcond: float) -> Whitened | None:
    xp = namespace_of(m.Sxx)
    eye = xp.eye(m.n_features, dtype=m.Sxx.dtype, device=device_of(m.Sxx))
    L, rcond = cholesky(m.Sxx + alpha * eye)
    if L is None or not rcond > min_rcond:
        return None
    Z = fold(solve_triangular(L, unfold(m.Sxy, 0)), 0, m.Sxy.shape)
    return _whitened(
        Z,
        lambda M: solve_triangular(L, M, transposed=True),
        m.syy,
        input_rank=lambda: int(_keep(np.linalg.eigvalsh(to_numpy(m.Sxx))).sum()),
        mean_x=m.mean_x,
        mean_y=m.mean_y,
        response_grams=m.response_grams,
        solver="cholesky",
        dtype=m.dtype,
    )


def spectral_from_moments(m: Moments) -> Spectral:
    """The problem for all penalties from moments, about the centres that these have.

    Directions of the inputs without variance are dropped, which gives the solution of least norm.
    """
    s, P = _supported(*eigh(m.Sxx))
    return Spectral(
        s=s,
        T=mode_product(m.Sxy, (P / s).T, 0),
        basis=P,
        syy=m.syy,
        mean_x=m.mean_x,
        mean_y=m.mean_y,
        response_grams=m.response_grams,
        solver="eigh",
        dtype=m.dtype,
    )


def _keep(lam: np.ndarray) -> np.ndarray:
    """Which eigenvalues of a Gram matrix are above its rounding noise."""
    return lam > max(lam.max(initial=0.0), 0.0) * np.finfo(float).eps * lam.size


def _supported(lam: Array, U: Array) -> tuple[Array, Array]:
    """Singular values from the eigenvalues of a Gram matrix, with the vectors that they leave."""
    r = int(_keep(to_numpy(lam)).sum())
    return _at_least_one(namespace_of(lam).sqrt(lam[:r]), U[:, :r])


def _at_least_one(s: Array, U: Array) -> tuple[Array, Array]:
    """Inputs without any variance are stood for by one direction that contributes nothing."""
    if s.shape[0] > 0:
        return s, U
    xp, device = namespace_of(s), device_of(s)
    return xp.ones(1, dtype=s.dtype, device=device), xp.zeros(
        (U.shape[0], 1), dtype=U.dtype, device=device
    )


# ---------------------------------------------------------------- from arrays


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
        m = Moments.from_checked(X, Y, w, response_grams)
        if solver != "auto":
            return whiten_moments(m, alpha, solver=solver, fit_intercept=fit_intercept)
        if not fit_intercept:
            m = m.about_zero()
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
    ).at(alpha)


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
    """The problem for all penalties of at least `min_alpha` from (validated) data.

    The inputs themselves are decomposed (see `Inputs`).
    """
    inputs = Inputs.of(X, w, min_alpha=min_alpha, solver=solver, fit_intercept=fit_intercept)
    B = inputs.basis

    def rows_of_basis(rows: slice, out: Array) -> None:
        out[...] = namespace_of(B).astype(B[rows, :].T, out.dtype, copy=False)

    return inputs.problem(sum_responses(rows_of_basis, B.shape[1], Y, w, response_grams))


@dataclass(frozen=True, eq=False)
class Inputs:
    """The inputs of a problem, decomposed: what is left to do is a product with the outputs.

    Parameters
    ----------
    s : array of shape (r,)
    P : array of shape (n_features, r)
        Of ``X = Q diag(s) P'``, with X centred and weighted.
    basis : array of shape (n_samples, r)
        `Q`, its rows multiplied by the roots of the weights, so that ``basis' Y`` is the ``Q'Y`` of
        weighted outputs.
    mean_x : array of shape (n_features,)
    fit_intercept : bool
    solver, dtype : str
        As in `Whitened`.
    """

    s: Array
    P: Array
    basis: Array
    mean_x: Array
    fit_intercept: bool
    solver: str
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
        if min_alpha > _half("float64") * float(namespace_of(X).linalg.trace(K)):
            s, Q = _supported(*eigh(K))
            return s, Q, X.T @ (Q / s), "eigh"
    Q, s, P = svd(X)
    sigma, eps = to_numpy(s), np.finfo(float).eps
    largest = max(float(to_numpy(sizes).max()), np.finfo(float).tiny)
    shares = to_numpy(P) * (to_numpy(sizes) / largest)[:, None]
    noise = np.sqrt(X.shape[0]) * largest * np.linalg.norm(shares, axis=0)
    keep = np.flatnonzero(sigma > eps * np.maximum(max(X.shape) * sigma[0], noise))
    if keep.size == sigma.size:
        return s, Q, P, "svd"
    xp, index = namespace_of(s), asarray_like(keep, s)
    s, Q = _at_least_one(xp.take(s, index), xp.take(Q, index, axis=1))
    return s, Q, xp.take(P, index, axis=1) if keep.size else P[:, :1], "svd"
