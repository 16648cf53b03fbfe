"""Noise and leverage of a ridge fit.

The hat matrix ``H = X (X'X + alpha I)^-1 X'`` maps outputs to fitted values. Its trace is the
number of degrees of freedom. With the leverage ``h(x) = (x - mx)' (X'X + alpha I)^-1 (x - mx)`` a
new observation of output j has the standard deviation

    sigma_j sqrt(1 + 1/n + h(x))

about its prediction. For a kernel, ``h(x) = (k(x, x) - k_x' (K + alpha I)^-1 k_x) / alpha``. A fit
of lower rank has fewer degrees of freedom and less leverage: both are multiplied by the ratio of
its number of parameters to that of the ridge fit.

These leverages assume coefficients of variance ``sigma^2 / alpha``. If inputs have directions that
no training sample has, the held-out errors hardly depend on small penalties, but ``1 / alpha``
does. In this case, the variance of the coefficients, ``prior`` times ``sigma^2``, is estimated
separately (`prior_ratio`). A prediction is ``a'Y`` with ``a = (XX' + alpha I)^-1 X x``, and

    h(x) = ||a||^2 + prior ||x - X'a||^2 ,

which is the previous formula if ``prior = 1 / alpha``.

Moments that were multiplied by a decay g < 1 contain samples of unequal weight but equal noise.
With the sums S1 and S2 of the weights and of their squares, the effective number of samples is
``n = S1^2 / S2``. The formulas hold for weights times ``n / S1``: both these weights and their
squares add up to n. So residual squares and ``X'X + alpha I`` are multiplied by this `density`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .namespace import (
    Array,
    asarray_like,
    inverse_squares,
    is_numpy_array,
    namespace_of,
    solve_triangular,
    to_device_of,
    to_numpy,
)
from .own_inputs import OwnCoefficients
from .tensor import unfold

__all__ = ["column_products", "extra_share", "leverage", "noise_level", "prior_ratio"]
__all__ += ["row_leverage", "std_factor"]

# Minimum ratio of residual degrees of freedom and samples; below this ratio, the noise is NaN.
_NO_FREEDOM = 1e-6
# Outputs below this multiple of the rounding error of their mean count as constant.
_DIGITS = 64
# Number of values of the share of noise in the variance of the outputs, in a grid of likelihoods.
_N_SHARES = 50
# Largest number of outputs that are compared with each other.
_SOME_OUTPUTS = 500


def noise_level(hat: dict[str, Any], root: Array, weight: Any) -> Array:
    """Return the standard deviation of the noise of each output, (d1, ..., dp).

    Its square is the residual sum of squares over the residual degrees of freedom. It is NaN if
    there are no residual degrees of freedom.

    Parameters
    ----------
    hat : dict
        Result of `Whitened.kept`, with "intercept": whether an intercept was fitted.
    root : array of shape (d1, ..., dp)
        Roots of the residual sums of squares.
    weight : float, or array of shape (d1, ..., dp)
        As in `Spectral`.
    """
    xp = namespace_of(root)
    trace = _trace(hat)
    trace = asarray_like(trace, root) if isinstance(trace, np.ndarray) else trace
    free = weight - hat["share"] * trace - float(hat["intercept"]) + xp.zeros_like(root)
    if hat.get("freedom") is not None:
        free = free - extra_share(hat) * asarray_like(hat["freedom"], root)
    some = free > _NO_FREEDOM * weight
    level = root / xp.sqrt(xp.where(some, free, xp.ones_like(free)))
    return xp.where(some, level, xp.full_like(root, math.nan))


def _trace(hat: dict[str, Any]) -> Any:
    """Return ``sum lam / (lam + alpha)``, the degrees of freedom of the ridge fit.

    It is an array of shape (d1, ..., dp) if each output has its own penalty.
    """
    if hat["trace"] is not None:
        return hat["trace"]
    lost = hat["alpha"] * inverse_squares(hat["factor"]) if hat["alpha"] else 0.0
    return float(hat["factor"].shape[0] - lost)


def extra_share(hat: dict[str, Any]) -> float:
    """Return the share of the degrees of freedom of own inputs that the ridge fit lacks.

    With the hat matrices H of the ridge fit and H_O of own inputs, both together have
    ``tr(H_O + H - H H_O)`` degrees of freedom. The formula assumes that H shrinks the directions of
    own inputs as much as the average direction. Own inputs that are not inputs of the ridge fit add
    all of their degrees of freedom.
    """
    if not hat.get("is_shared", True):
        return 1.0
    n_directions = min(hat["factor"].shape[1], hat["weight"] - hat["intercept"])
    mean = float(np.mean(_trace(hat)))
    return 1.0 - min(1.0, hat["share"] * mean / max(n_directions, 1.0))


def std_factor(
    hat: dict[str, Any],
    F: Array,
    norms: Array | None = None,
    own: OwnCoefficients | None = None,
) -> Array:
    """Return ``sqrt(1 + 1/n + h(x))`` of each row, of shape (n,).

    Parameters
    ----------
    hat : dict
        As `Fit.hat`.
    F : array of shape (n, m)
        Inputs, not centred; kernel values for a kernel.
    norms : array of shape (n,), optional
        As in `leverage`.
    own : OwnCoefficients, optional
        Coefficients of own inputs, whose leverage, the mean over all outputs, is added.
    """
    xp = namespace_of(F)
    F = xp.astype(F, xp.float64, copy=False)
    of_own = 0.0 if own is None else extra_share(hat) * own.leverage(F) / hat.get("density", 1.0)
    h = of_own + hat["share"] * leverage(hat, _centred(hat, F, 1.0), norms)
    return xp.sqrt(1.0 + (1.0 / hat["weight"] if hat["intercept"] else 0.0) + h)


def row_leverage(hat: dict[str, Any], X: Array, unit: float) -> Array:
    """Return ``1/n + h(x)`` of each row in ridge regression, (n,), in the units of the weights.

    Parameters
    ----------
    hat : dict
        As `Fit.hat`, of a linear model.
    X : array of shape (n, m)
        Inputs divided by `unit`, not centred.
    unit : float
    """
    xp = namespace_of(X)
    F = _centred(hat, xp.astype(X, xp.float64, copy=False), unit)
    h = _leverage({**hat, "prior": None}, F, None)
    return h + (1.0 / hat["weight"] if hat["intercept"] else 0.0)


def _centred(hat: dict[str, Any], F: Array, unit: float) -> Array:
    """Return the centred features of inputs that were divided by `unit`."""
    if hat.get("inputs") is not None:
        F = hat["inputs"](F if unit == 1.0 else F * unit)
        unit = 1.0
    scale = unit / hat["unit"]
    return (F if scale == 1.0 else F * scale) - to_device_of(hat["mean"], F)


def leverage(hat: dict[str, Any], F: Array, norms: Array | None = None) -> Array:
    """Return ``h(x)`` of each row, of shape (n,).

    Parameters
    ----------
    hat : dict
        Result of `Whitened.kept`.
    F : array of shape (n, m)
        Centred inputs of the factor; kernel values, centred and weighted as in training.
    norms : array of shape (n,), optional
        Squared norms of the centred features; those of the rows of `F` by default.
    """
    return _leverage(hat, F, norms) / hat.get("density", 1.0)


def _leverage(hat: dict[str, Any], F: Array, norms: Array | None) -> Array:
    """Return ``h(x)`` of each row, in the units of the weights."""
    xp, alpha, factor = namespace_of(F), hat["alpha"], to_device_of(hat["factor"], F)
    if hat["form"] == "map":
        t = F @ factor
    else:
        t = solve_triangular(factor, F.T)
        if hat["form"] == "gram" and alpha == 0:
            t = solve_triangular(factor, t, transposed=True)
        t = t.T
    h = _row_squares(t)
    known, prior = hat["form"] != "gram" and hat["root"] is None, hat.get("prior")
    if known or (alpha == 0 and prior is None):
        return h
    norms = _row_squares(F) if norms is None else norms
    if hat["form"] == "gram":
        if prior is None:
            return xp.clip(norms - h, 0.0, None) / alpha
        if alpha == 0:
            return h  # the coefficients interpolate
        a = solve_triangular(factor, t.T, transposed=True).T
        squares = _row_squares(a)
        return squares + prior * xp.clip(norms - h - alpha * squares, 0.0, None)
    root = to_device_of(hat["root"], F)
    along = t * root  # coordinates of x in the directions of the training samples
    outside = xp.clip(norms - _row_squares(along), 0.0, None)
    if prior is None:
        return h + outside / alpha
    lost = alpha / root / root  # alpha / (lam + alpha), the share of x that X'a lacks
    squares = _row_squares(t * xp.sqrt(xp.clip(1.0 - lost, 0.0, None)))
    return squares + prior * (_row_squares(along * lost) + outside)


def prior_ratio(problems: Sequence[Any]) -> float:
    """Return the ratio of the variances of coefficients and noise, from problems of folds.

    The rows of ``T = Q'Y`` have the variances ``tau^2 lam + sigma^2``. With the share p of the
    noise in their mean, these are proportional to ``p + (1 - p) lam / mean(lam)``. The estimate of
    p is its posterior mean under a uniform prior. It is one half for uninformative data, and never
    zero. The likelihood counts effectively different outputs, so that correlated outputs do not
    count separately.

    Parameters
    ----------
    problems : sequence of Spectral
    """
    shares = (np.arange(_N_SHARES) + 0.5) / _N_SHARES
    log_likelihood, means = np.zeros(_N_SHARES), []
    for problem in problems:
        lam = to_numpy(problem.s).astype(float) ** 2
        means.append(lam.mean())
        T = to_numpy(unfold(problem.T, 0)).astype(float)
        sizes, mean = np.abs(T).max(axis=0), np.abs(to_numpy(problem.mean_y)).reshape(-1)
        # Outputs that are constant up to rounding have no information.
        rounding = _DIGITS * np.finfo(problem.dtype).eps * math.sqrt(problem.weight) * mean
        T, sizes = T[:, sizes > rounding], sizes[sizes > rounding]
        if not T.size:
            continue
        v = shares[:, None] + (1 - shares[:, None]) * lam / lam.mean()  # (n_shares, r)
        scales = (1 / v) @ np.square(T / sizes) / lam.size  # of each output, (n_shares, D)
        T /= sizes.max()
        each = np.mean(np.log(scales), axis=1) + np.mean(np.log(v), axis=1)
        log_likelihood -= 0.5 * lam.size * _n_different(T) * each / len(problems)
    weights = np.exp(log_likelihood - log_likelihood.max())
    share = float(weights @ shares / weights.sum())
    return (1 - share) / share / float(np.mean(means))


def _n_different(T: np.ndarray) -> float:
    """Return the effective number of different outputs, the columns of `T`.

    It is the squared trace of their Gram matrix, divided by the squared norm of this matrix. If
    there are many outputs, a regular subset is used.
    """
    T = T[:, :: max(1, T.shape[1] // _SOME_OUTPUTS)]
    G = T.T @ T if T.shape[1] < T.shape[0] else T @ T.T
    return float(np.trace(G) ** 2 / np.sum(G * G))


def _row_squares(A: Array) -> Array:
    """Return the squared norms of the rows."""
    return column_products(A.T, A.T)


def column_products(A: Array, B: Array) -> Array:
    """Return the inner products of the columns of two matrices, without a temporary if possible."""
    if is_numpy_array(A):
        return np.einsum("ij,ij->j", A, B)
    return namespace_of(A).sum(A * B, axis=0)
