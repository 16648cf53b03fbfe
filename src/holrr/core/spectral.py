"""Whitened ridge problems, in which a rank constraint is an approximation problem.

With ``X'X + alpha I = L L'``, ``Z = L^-1 X'Y`` and ``V = L'W``,

    ||W x_0 X - Y||^2 + alpha ||W||^2  =  ||Y||^2 - ||Z||^2 + ||V - Z||^2 ,

so an estimator approximates `Z` by some `V` of the required form and maps back with ``W = L'^-1 V``
(`Whitened`). Any square root of ``X'X + alpha I`` can be used. A singular value decomposition
``X = Q diag(sqrt(lam)) P'`` gives a square root for every alpha (`Spectral`): up to a rotation of
mode 0, ``Z = sqrt(lam / (lam + alpha)) Q'Y``. The decomposition can be that of X (SVD), of X'X
(primal), of XX' (dual) or of a kernel's Gram matrix.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from .leverage import column_products
from .moments import CentredMoments, ResponseSums, n_shares, sum_responses, weighted_mean
from .namespace import (
    NUMPY_LIMIT,
    Array,
    add_to_diagonal,
    asarray_like,
    cholesky,
    eigenvalues,
    eigh,
    is_numpy_array,
    namespace_of,
    on_host,
    solve_triangular,
    squared_norm,
    svd,
    symmetrise,
    to_numpy,
)
from .sparse import centre_columns, is_sparse
from .tensor import (
    Tucker,
    fold,
    mode_product,
    n_parameters,
    unfold,
)
from .threads import few_threads_for
from .warn import warn

__all__ = ["Factor", "Inputs", "Spectral", "Whitened", "check_moments", "half_of_the_digits"]
__all__ += [
    "keeps_digits",
    "spectral_from_arrays",
    "spectral_from_moments",
    "spectral_from_samples",
]
__all__ += ["squares_keep_digits", "supported", "varies", "whiten_arrays", "whiten_moments"]

_EPS = float(np.finfo(float).eps)
# Inputs whose variances differ by more than this factor are brought to a common scale first.
_GRADED = 1e4
# An input is constant if its spread is at most this multiple of the rounding error of its mean.
_CONSTANT = 16.0


@dataclass(frozen=True, eq=False)
class Spectral:
    """A ridge problem for all penalties.

    Parameters
    ----------
    s : array of shape (r,)
        Singular values of the inputs, positive, largest first; ``lam = s^2``.
    T : array of shape (r, d1, ..., dp)
        ``Q'Y``.
    basis : array of shape (n_features, r)
        The map to coefficients, before the scaling ``1 / sqrt(lam + alpha)``: `P`, or ``Q / s``
        if the coefficients are those of a kernel expansion.
    syy : float
        ``||Y||^2``.
    mean_x, mean_y : arrays of shape (n_features,) and (d1, ..., dp)
        Centres of the data, zero without an intercept.
    response_grams : tuple of arrays of shape (d_i, d_i), or None
    solver : str
        The factorisation that was used: "cholesky", "eigh" or "svd".
    dtype : str
        Floating-point type of the data.
    weight : float, or array of shape (d1, ..., dp)
        Effective number of samples: the sum of the weights of samples whose output is observed, or
        less if moments were scaled.
    density : float
        Effective number of samples, divided by the sum of their weights.
    squares : array of shape (d1, ..., dp), or None
        Sums of squares of the centred outputs, if they are known.
    more : dict
        Additional arrays of a kernel.
    never : array of bool, of shape (d1, ..., dp), optional
        Outputs that are never observed: their columns of `T` have no meaning. A structure that
        couples outputs uses them as initial values.
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
    weight: Any = 0.0
    density: float = 1.0
    squares: Array | None = None
    more: dict[str, Any] = field(default_factory=dict)
    never: np.ndarray | None = None

    def at(self, alpha: float, *, alone: bool = False) -> Whitened:
        """Return the problem for one penalty; with `alone`, the rows of `T` are scaled in place."""
        Z, root = self.T, self.root(alpha)
        shrink = namespace_of(root).reshape(self.s / root, (-1, *(1,) * (Z.ndim - 1)))
        if alone:
            Z *= shrink
        Z = Z if alone else Z * shrink
        norm = float(squared_norm(Z if self.never is None else Z[:, ~self.never]))
        return Whitened(
            Z,
            SpectralFactor(self.s, root, self.basis, self.mean_x, is_kernel=bool(self.more)),
            alpha,
            norm,
            _residual(self.syy, norm),
            mean_x=self.mean_x,
            mean_y=self.mean_y,
            response_grams=self.response_grams,
            solver=self.solver,
            dtype=self.dtype,
            weight=self.weight,
            density=self.density,
            squares=self.squares,
            more=self.more,
            never=self.never,
            spectral=None if alone else self,
        )

    def root(self, alpha: float) -> Array:
        """Return ``sqrt(lam + alpha)``, without the squares of very large and very small ``s``."""
        xp = namespace_of(self.s)
        return xp.hypot(self.s, xp.full_like(self.s, math.sqrt(alpha)))


@dataclass(frozen=True, eq=False)
class Whitened:
    """A ridge problem at one penalty, as an approximation of the whitened tensor Z.

    Parameters
    ----------
    Z : array of shape (r, d1, ..., dp)
    factor : Factor
        Square root of ``X'X + alpha I``, which maps the coordinates of mode 0 to coefficients.
    alpha : float
    norm : float
        ``||Z||^2``.
    residual : float
        ``||Y||^2 - ||Z||^2``: the ridge objective without any constraint.
    mean_x, mean_y, response_grams, solver, dtype, weight, density, squares, more
        As in `Spectral`.
    residuals : array of shape (d1, ..., dp), optional
        Residual sums of squares, if the problem provides more accurate ones than its `squares`.
    whole : Whole, optional
        Statistics of the complete `Z`, if `Z` contains the leading input directions only.
    never : array of bool, of shape (d1, ..., dp), optional
        As in `Spectral`. The columns do not count in `residual` and `norm`.
    spectral : Spectral, optional
        The problem for all penalties that this problem was derived from.
    """

    Z: Array
    factor: Factor
    alpha: float
    norm: float
    residual: float
    mean_x: Array
    mean_y: Array
    response_grams: tuple[Array, ...] | None
    solver: str
    dtype: str
    weight: Any = 0.0
    density: float = 1.0
    squares: Array | None = None
    more: dict[str, Any] = field(default_factory=dict)
    residuals: Array | None = None
    whole: Any = None
    never: np.ndarray | None = None
    spectral: Spectral | None = None

    def known(self) -> dict[str, Any]:
        """Return the known arguments of `hosvd`, which need not be computed again."""
        return {"inputs": self.factor, "norm": self.norm, "whole": self.whole}

    def lift(self, M: Array) -> Array:
        """Map columns of mode-0 coordinates, (r, k), to coefficients, (n_features, k)."""
        return self.factor.lift(M)

    def share(self, V: Tucker) -> float:
        """Return the degrees of freedom of a fit of V's rank as a share of the ridge fit's.

        The ridge fit has no parameters for outputs that are never observed.
        """
        n, outputs = self.factor.n_directions, V.shape[1:]
        n_observed = math.prod(outputs) - (0 if self.never is None else int(self.never.sum()))
        return min(1.0, n_parameters((n, *outputs), V.rank) / (n * n_observed))

    def residual_squares(self, V: Tucker) -> Array | None:
        """Return ``||y||^2 - 2 <y, fitted> + ||fitted||^2`` of each output.

        The inner product of y and the fitted values is that of the columns of Z and V.
        """
        if self.residuals is not None or self.squares is None:
            return self.residuals
        xp, Z, U = namespace_of(self.squares), self.Z, V.factors[0]
        terms = None if U is None else sum(c * (F.T @ F) for c, F in self.factor.fitted(U))
        z, core = unfold(Z, 0), unfold(V.expanded(), 0)
        if U is None:
            found = sum(c * column_products(F, F) for c, F in self.factor.fitted(core))
            found = found - 2 * column_products(z, core)
        else:
            found = column_products(core, terms @ core - 2 * (U.T @ z))
        rss = xp.reshape(found, self.squares.shape)
        return self.density * xp.clip(rss + self.squares, 0.0, None)

    def kept(self, share: float) -> dict[str, Any]:
        """Return the numbers and arrays that a fitted estimator stores for `leverage`.

        Parameters
        ----------
        share : float
            Degrees of freedom of the fit, divided by those of the ridge fit.
        """
        return {
            **self.factor.kept(),
            "alpha": self.alpha,
            "weight": float(np.max(self.weight)),
            "trace": self.factor.trace(),
            "unit": 1.0,
            "share": share,
            **({} if self.density == 1.0 else {"density": self.density}),
            **self.more,
        }


# ---------------------------------------------------------------- square roots of X'X + alpha I


class Factor(Protocol):
    """A square root L of ``X'X + alpha I``: its inverse maps mode-0 coordinates to coefficients."""

    @property
    def n_directions(self) -> int:
        """Number of eigenvalues of ``X'X``."""

    def kept(self) -> dict[str, Any]:
        """Return what leverages are computed from: "form", "factor", "mean" and "root".

        The form is "map" for a map B from centred inputs to coordinates whose squares add up to the
        leverage, "cholesky" for the Cholesky factor L of ``X'X + alpha I``, and "gram" for that of
        ``K + alpha I``. The mean is the centre of the inputs. The root is ``sqrt(lam + alpha)``, or
        None if inputs have no other directions than those of B.
        """

    def lift(self, M: Array) -> Array:
        """Map columns of mode-0 coordinates, (r, k), to coefficients, (n_features, k)."""

    def fitted(self, M: Array) -> list[tuple[float, Array]]:
        """Return pairs ``(c, F)``: inner products of the fitted values of M are ``sum c F'F``."""

    def input_rank(self) -> int:
        """Return the numerical rank of the inputs."""

    def trace(self) -> float | None:
        """Return ``sum lam / (lam + alpha)``, or None if it follows from the Cholesky factor."""


@dataclass(frozen=True, eq=False)
class SpectralFactor:
    """The root ``P diag(sqrt(lam + alpha))``, from a decomposition of the inputs.

    Parameters
    ----------
    s, basis
        As in `Spectral`.
    root : array of shape (r,)
        ``sqrt(lam + alpha)``.
    mean : array of shape (n_features,)
    is_kernel : bool
        Whether inputs are features of a kernel, which have more directions than `basis`.
    """

    s: Array
    root: Array
    basis: Array
    mean: Array
    is_kernel: bool = False

    @property
    def n_directions(self) -> int:
        """Number of eigenvalues."""
        return self.basis.shape[1]

    def kept(self) -> dict[str, Any]:
        """Return the map from centred inputs to coordinates, and its root."""
        m, r = self.basis.shape
        root = self.root if self.is_kernel or r < m else None
        return {"form": "map", "factor": self.matrix(), "mean": self.mean, "root": root}

    def matrix(self) -> Array:
        """Return the map from mode-0 coordinates to coefficients."""
        return self.basis / self.root

    def lift(self, M: Array) -> Array:
        """Map columns of mode-0 coordinates to coefficients."""
        return self.basis @ (M / self.root[:, None])

    def fitted(self, M: Array) -> list[tuple[float, Array]]:
        """Return the fitted values of mode-0 coordinates, in the coordinates of ``T``."""
        return [(1.0, M * (self.s / self.root)[:, None])]

    def input_rank(self) -> int:
        """Return the numerical rank of the inputs."""
        return self.s.shape[0]

    def trace(self) -> float:
        """Return ``sum lam / (lam + alpha)``, which is zero if all inputs are constant."""
        xp, shrink = namespace_of(self.s), self.s / self.root
        if self.n_directions == 1 and not bool(xp.any(self.basis != 0)):
            return 0.0
        return float(xp.sum(shrink * shrink))


@dataclass(frozen=True, eq=False)
class CholeskyFactor:
    """The root ``L`` of moments with ``X'X + alpha I = L L'``, lower triangular.

    Parameters
    ----------
    L : array of shape (n_features, n_features)
    Sxx : array of shape (n_features, n_features)
        ``X'X``.
    alpha : float
    mean : array of shape (n_features,)
    """

    L: Array
    Sxx: Array
    alpha: float
    mean: Array

    @property
    def n_directions(self) -> int:
        """Number of eigenvalues."""
        return self.L.shape[0]

    def kept(self) -> dict[str, Any]:
        """Return the Cholesky factor."""
        return {"form": "cholesky", "factor": self.L, "mean": self.mean, "root": None}

    def lift(self, M: Array) -> Array:
        """Map columns of mode-0 coordinates to coefficients."""
        return solve_triangular(self.L, M, transposed=True)

    def fitted(self, M: Array) -> list[tuple[float, Array]]:
        """Return terms of ``W'X'X W = M'M - alpha W'W``, where ``W`` are the coefficients."""
        return [(1.0, M), (-self.alpha, self.lift(M))]

    def input_rank(self) -> int:
        """Return the numerical rank of the inputs."""
        return _n_supported(eigenvalues(self.Sxx))

    def trace(self) -> None:
        """Return None: the trace follows from the Cholesky factor."""
        return


def _residual(syy: float, norm: float) -> float:
    """Return ``||Y||^2 - ||Z||^2``, not below zero."""
    return max(syy - norm, 0.0) if math.isfinite(syy) else syy


# ---------------------------------------------------------------- precision


def half_of_the_digits(dtype: str) -> float:
    """Return the smallest 1 / condition number at which a solve keeps half of the digits."""
    return float(np.sqrt(np.finfo(dtype).eps))


def keeps_digits(s: Array, alpha: float, n_features: int, dtype: str) -> bool:
    """Return whether a solve with ``X'X + alpha I`` keeps half of the digits.

    Parameters
    ----------
    s : array of shape (r,)
        Singular values of the inputs, largest first. Singular values that are not included are
        zero.
    alpha : float
    n_features : int
    dtype : str
        Floating-point type of the data.
    """
    s = to_numpy(s)
    smallest = s[-1] ** 2 if s.size == n_features else 0.0
    return bool(smallest + alpha > half_of_the_digits(dtype) * (s[0] ** 2 + alpha))


def _n_supported(lam: np.ndarray) -> int:
    """Return the number of eigenvalues, largest first, above the rounding noise."""
    return int((lam > max(lam.max(initial=0.0), 0.0) * np.finfo(float).eps * lam.size).sum())


def supported(lam: Array, U: Array) -> tuple[Array, Array]:
    """Return singular values above rounding noise, from a Gram matrix, and their vectors.

    Inputs without any variance are represented by one direction of zeros.
    """
    r = _n_supported(to_numpy(lam))
    xp = namespace_of(lam)
    if r > 0:
        return xp.sqrt(lam[:r]), U[:, :r]
    return xp.ones_like(lam[:1]), xp.zeros_like(U[:, :1])


# ---------------------------------------------------------------- constant inputs


def varies(scatter: Array, mean: Array, weight: float) -> Array:
    """Return which inputs vary by more than the rounding error of their mean, (n_features,).

    The rounded mean of a constant differs from the constant, and from the means of other blocks of
    samples, by a few units in the last place. This difference must not count as variance.

    Parameters
    ----------
    scatter : array of shape (n_features,)
        ``sum w (x - mean)^2``.
    mean : array of shape (n_features,)
        The centre that was subtracted. About zero, every input other than zero varies.
    weight : float
        Sum of the weights.
    """
    xp = namespace_of(scatter)
    noise = _CONSTANT * _EPS * math.sqrt(weight) * xp.abs(mean)
    return xp.sqrt(xp.clip(scatter, 0.0, None)) > noise


def _without_constants(m: CentredMoments) -> CentredMoments:
    """Return moments in which constant inputs have zero scatter instead of rounding noise."""
    xp = namespace_of(m.Sxx)
    keep = varies(xp.linalg.diagonal(m.Sxx), m.mean_x, m.weight)
    if bool(xp.all(keep)) or _are_zero(m, keep):
        return m
    rows = xp.reshape(keep, (-1, *(1,) * (m.Sxy.ndim - 1)))
    return replace(
        m,
        Sxx=xp.where(keep[:, None] & keep, m.Sxx, xp.zeros_like(m.Sxx)),
        Sxy=xp.where(rows, m.Sxy, xp.zeros_like(m.Sxy)),
    )


def _are_zero(m: CentredMoments, keep: Array) -> bool:
    """Return whether the scatter of the inputs that are not kept is zero already."""
    xp, index = namespace_of(m.Sxx), asarray_like(np.flatnonzero(~to_numpy(keep)), m.Sxx)
    return not any(bool(xp.any(xp.take(S, index, axis=0) != 0)) for S in (m.Sxx, m.Sxy))


# ---------------------------------------------------------------- from moments


def whiten_moments(m: CentredMoments, alpha: float) -> Whitened:
    """Return the problem for one penalty from moments, about their centres.

    The solver is a Cholesky factorisation for many features if it keeps half of the digits, and the
    spectral form otherwise.
    """
    check_moments(m)
    if prefers_cholesky(m):
        problem = cholesky_problem(m, alpha, half_of_the_digits(m.dtype))
        if problem is not None:
            return problem
    return spectral_from_moments(m, warn_below=alpha).at(alpha, alone=True)


def prefers_cholesky(m: CentredMoments) -> bool:
    """Return whether an eigendecomposition of ``X'X`` costs much more than Cholesky."""
    return m.n_features > NUMPY_LIMIT or not on_host(m.Sxx)


def squares_keep_digits(m: CentredMoments, alpha: float) -> bool:
    """Return whether a solve with the ``X'X + alpha I`` of moments keeps half of the digits."""
    safe = 1e-200 < float(namespace_of(m.Sxx).linalg.trace(m.Sxx)) < 1e200
    S = add_to_diagonal(m.Sxx + 0.0, alpha)  # a copy
    return safe and cholesky(S, overwrite=True)[1] > half_of_the_digits(m.dtype)


def check_moments(m: CentredMoments) -> None:
    """Raise a ValueError if the moments are not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        if not _is_finite(m.Sxx):
            raise ValueError("The squares of X overflow; divide X by a large number, or use fit.")
        if not _is_finite(m.Sxy):
            raise ValueError("The products of X and y overflow; rescale X or y, or use fit.")


def _is_finite(A: Array) -> bool:
    xp = namespace_of(A)
    return math.isfinite(float(xp.sum(A))) or bool(xp.all(xp.isfinite(A)))


def cholesky_problem(m: CentredMoments, alpha: float, min_rcond: float) -> Whitened | None:
    """Return the problem by a Cholesky factorisation, or None if it keeps too few digits."""
    m = _without_constants(m)
    L, rcond = cholesky(add_to_diagonal(m.Sxx + 0.0, alpha), overwrite=True)  # of a copy
    if L is None or not rcond > min_rcond:
        return None
    Z = fold(solve_triangular(L, unfold(m.Sxy, 0)), 0, m.Sxy.shape)
    norm = float(squared_norm(Z))
    return Whitened(
        Z,
        CholeskyFactor(L, m.Sxx, alpha, m.mean_x),
        alpha,
        norm,
        _residual(m.syy, norm),
        solver="cholesky",
        **_statistics(m),
    )


def _statistics(m: CentredMoments) -> dict[str, Any]:
    """Return the statistics of moments that a problem has."""
    return {
        "mean_x": m.mean_x,
        "mean_y": m.mean_y,
        "response_grams": m.response_grams,
        "dtype": m.dtype,
        "weight": m.n_effective,
        "density": m.n_effective / m.weight,
        "squares": m.squares,
    }


def spectral_from_moments(m: CentredMoments, *, warn_below: float | None = None) -> Spectral:
    """Return the problem for all penalties from moments, about their centres.

    Directions of the inputs without variance are dropped, which gives the solution of least norm.

    Parameters
    ----------
    m : Moments
    warn_below : float, optional
        The penalty of the fit. A warning is given if ``X'X`` has lost the digits of a direction and
        this penalty is too small to compensate for the loss.
    """
    m = _without_constants(m)
    s, P, T, root = _decomposed(m)
    # Rounding errors are harmless if they are far smaller than the penalty.
    hides = warn_below is None or warn_below > 1e4 * _EPS * float(s[0]) ** 2
    if not hides and _has_lost_directions(m, root):
        warn(
            f"X'X is ill-conditioned: some directions of the inputs are lost in rounding errors, "
            f"and the coefficients along them are inaccurate or zero. With alpha={warn_below:g} "
            f"use fit with X in memory, which does not square the condition number, or a larger "
            f"alpha, or leave out inputs that depend on each other."
        )
    return Spectral(s, T, P, m.syy, solver="eigh", **_statistics(m))


def _decomposed(m: CentredMoments) -> tuple[Array, Array, Array, Array]:
    """Return singular values and right vectors of the inputs, and ``Q'Y``, from moments.

    The last array contains the roots of the eigenvalues of the matrix that was decomposed.

    An eigendecomposition has the precision of the largest eigenvalue. So inputs of very different
    scales, ``X = X_1 D``, are brought to one scale first. With ``X_1'X_1 = U diag(mu) U'`` and the
    singular value decomposition ``D U diag(sqrt(mu)) = P diag(s) V'`` we have
    ``Q'Y = V' diag(1 / sqrt(mu)) U' D^-1 X'Y``, and only ``X_1'X_1`` has to keep its digits.
    """
    xp, scale = namespace_of(m.Sxx), _scale(m)
    sizes = to_numpy(scale)
    positive = sizes[sizes > 0]
    if positive.size < 2 or positive.max() ** 2 <= _GRADED * positive.min() ** 2:
        s, P = supported(*eigh(m.Sxx))
        return s, P, mode_product(m.Sxy, (P / s).T, 0), s
    scale = xp.where(scale > 0, scale, xp.ones_like(scale))
    root, U = supported(*eigh(m.Sxx / scale[:, None] / scale))
    P, s, V = svd(scale[:, None] * U * root)
    T = mode_product(m.Sxy, (((U / root) / scale[:, None]) @ V).T, 0)
    return s, P, T, root


def _scale(m: CentredMoments) -> Array:
    """Return the root of the scatter of each input."""
    xp = namespace_of(m.Sxx)
    return xp.sqrt(xp.clip(xp.linalg.diagonal(m.Sxx), 0.0, None))


def _has_lost_directions(m: CentredMoments, root: Array) -> bool:
    """Return whether eigenvalues, the squares of `root`, are missing or have few digits."""
    n_directions = min(int((to_numpy(_scale(m)) > 0).sum()), m.n_samples - 1)
    root = to_numpy(root)
    return root.size < n_directions or bool(root[-1] ** 2 < 1e5 * _EPS * root[0] ** 2)


# ---------------------------------------------------------------- from the samples themselves


def whiten_arrays(
    X: Array,
    Y: Array,
    w: Array | None,
    alpha: float,
    *,
    fit_intercept: bool = True,
    response_grams: bool = False,
) -> Whitened:
    """Return the problem for one penalty from validated data.

    The solver uses the moments if there are more samples than features and the normal equations
    keep half of the digits. It decomposes a wide or ill-conditioned `X` directly.
    """
    how = {"fit_intercept": fit_intercept, "response_grams": response_grams}
    problem, d0 = None, X.shape[1]
    if X.shape[0] >= d0:
        # A pass with its own threads leaves little work for BLAS threads.
        rest = d0**2 * (d0 + math.prod(Y.shape[1:]))
        with few_threads_for(rest if n_shares(Y, d0) > 1 else math.inf):
            m = _safe_moments(X, Y, w, **how)
            m = m if m is None or is_numpy_array(X) else m.to_host_if_small()
            if m is not None and prefers_cholesky(m):
                problem = cholesky_problem(m, alpha, half_of_the_digits(m.dtype))
            elif m is not None:
                spectral = _accurate(m, alpha)
                problem = None if spectral is None else spectral.at(alpha, alone=True)
    if problem is not None:
        return problem
    return spectral_from_arrays(X, Y, w, min_alpha=alpha, **how).at(alpha, alone=True)


def spectral_from_samples(
    X: Array,
    Y: Array,
    w: Array | None = None,
    *,
    min_alpha: float = 0.0,
    fit_intercept: bool = True,
    response_grams: bool = False,
) -> Spectral:
    """Return the problem for all penalties of at least `min_alpha` from validated data.

    ``X'X`` is decomposed if there are more samples than features and its condition number allows
    it, and `X` otherwise.
    """
    how = {"fit_intercept": fit_intercept, "response_grams": response_grams}
    m = _safe_moments(X, Y, w, **how) if X.shape[0] >= X.shape[1] else None
    problem = None if m is None else _accurate(m, min_alpha)
    if problem is not None:
        return problem
    return spectral_from_arrays(X, Y, w, min_alpha=min_alpha, **how)


def _safe_moments(
    X: Array, Y: Array, w: Array | None, *, fit_intercept: bool, response_grams: bool
) -> CentredMoments | None:
    """Return the moments, or None if a product of the data can have overflowed or underflowed."""
    m = CentredMoments.from_checked(X, Y, w, response_grams)
    m = m if fit_intercept else m.about_zero()
    trace = float(namespace_of(m.Sxx).linalg.trace(m.Sxx))
    return m if 1e-200 < trace < 1e200 and 1e-200 < m.syy < 1e200 else None


def _accurate(m: CentredMoments, min_alpha: float) -> Spectral | None:
    """Return the problem of moments, or None if ``X'X`` has lost too many digits."""
    problem = spectral_from_moments(m)
    return problem if keeps_digits(problem.s, min_alpha, m.n_features, m.dtype) else None


def spectral_from_arrays(
    X: Array,
    Y: Array,
    w: Array | None = None,
    *,
    min_alpha: float = 0.0,
    fit_intercept: bool = True,
    response_grams: bool = False,
) -> Spectral:
    """Return the problem for all penalties, by a decomposition of the inputs (see `Inputs`)."""
    inputs = Inputs.of(X, w, min_alpha=min_alpha, fit_intercept=fit_intercept)
    B = inputs.basis

    def rows_of_basis(rows: slice, out: Array) -> None:
        out[...] = namespace_of(B).astype(B[rows, :].T, out.dtype, copy=False)

    return inputs.problem(sum_responses(rows_of_basis, B.shape[1], Y, w, response_grams))


@dataclass(frozen=True, eq=False)
class Inputs:
    """Decomposition of the inputs of a problem, which has to be multiplied with the outputs.

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
        fit_intercept: bool = True,
    ) -> Inputs:
        """Decompose validated inputs for penalties of at least `min_alpha`.

        The Gram matrix ``XX'`` of a wide `X` is decomposed if the smallest penalty compensates for
        the squared condition number, and `X` itself otherwise. For sparse inputs, only ``XX'`` can
        be decomposed.
        """
        if is_sparse(X):
            return cls._of_sparse(X, w, min_alpha, fit_intercept)
        xp = namespace_of(X)
        dtype = "float32" if X.dtype == xp.float32 else "float64"
        X = xp.astype(X, xp.float64, copy=False)
        weight = float(X.shape[0]) if w is None else float(xp.sum(w))
        root = None if w is None else xp.sqrt(w)[:, None]
        sizes = xp.maximum(xp.abs(xp.max(X, axis=0)), xp.abs(xp.min(X, axis=0)))
        if root is not None:
            sizes = sizes * xp.max(root)
        mean_x, X = _centred(X, w, weight, fit_intercept)
        X = X if root is None else X * root
        keep = varies(column_products(X, X), mean_x, weight)
        if not bool(xp.all(keep)):
            X = xp.where(keep, X, xp.zeros_like(X))
        s, Q, P, used = _decompose(X, sizes, min_alpha)
        return cls(s, P, Q if root is None else Q * root, mean_x, fit_intercept, used, dtype)

    @classmethod
    def _of_sparse(
        cls, X: Any, w: np.ndarray | None, min_alpha: float, fit_intercept: bool
    ) -> Inputs:
        dtype = "float32" if X.dtype == np.float32 else "float64"
        X = centre_columns(X.astype(np.float64, copy=False), w, centre=fit_intercept)
        K = symmetrise(X.outer())
        total = float(np.trace(K))
        s, Q = supported(*eigh(K))
        lost = s.size < np.count_nonzero(X.r) - 1 or s[-1] ** 2 < 1e5 * _EPS * s[0] ** 2
        if min_alpha <= 1e4 * _EPS * total and lost:
            warn(
                f"XX' is ill-conditioned: some directions of the sparse inputs are lost in "
                f"rounding errors, and the coefficients along them are inaccurate or zero. With "
                f"alpha={min_alpha:g} use X.toarray(), for which the condition number is not "
                f"squared, or a larger alpha."
            )
        P = X.transposed_times(Q / s)
        basis = Q if w is None else Q * X.r[:, None]
        return cls(s, P, basis, X.mean, fit_intercept, "eigh", dtype)

    def problem(self, sums: ResponseSums) -> Spectral:
        """Return the problem, from the products of the outputs with the basis."""
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
    """Return the centre of `X` and the centred `X`; zero and `X` without an intercept."""
    if not fit_intercept:
        return namespace_of(X).zeros_like(X[0, :]), X
    mean = weighted_mean(X, w, weight)
    X = X - mean
    # Subtract the mean twice: the error of a rounded mean must not count as variance.
    drift = weighted_mean(X, w, weight)
    X -= drift
    return mean + drift, X


def _decompose(X: Array, sizes: Array, min_alpha: float) -> tuple[Array, Array, Array, str]:
    """Return Q, s and P of ``X = Q diag(s) P'`` without directions of rounding noise.

    The entries of column j have the rounding errors of numbers as large as ``sizes[j]``, which
    exceed those of the centred entries.
    """
    if X.shape[0] < X.shape[1]:
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
    if not keep.size:  # one direction of zeros
        return xp.ones_like(s[:1]), xp.zeros_like(Q[:, :1]), xp.zeros_like(P[:, :1]), "svd"
    index = asarray_like(keep, s)
    return xp.take(s, index), xp.take(Q, index, axis=1), xp.take(P, index, axis=1), "svd"
