"""Robust weights of samples, from a pilot fit.

Squared errors grow without bound, so that one wrong sample can decide a fit. A robust fit weighs
the samples by how far they lie from what the other samples predict. Sample i has the held-out
residual ``r_i``, a vector over its D outputs, and the mean square

    q_i = mean_j (r_ij / s_j)^2 ,

in units of a robust scale ``s_j`` of each output. Where all samples are alike, ``nu q_i`` is about
chi-squared with nu degrees of freedom, of which there are D for independent residuals of the
outputs, and 1 for proportional ones. With the 95 percent quantile c of this distribution the
weight of the sample is

    w_i = min(1, c / (nu q_i)) .

This is the square of Huber's weight ``min(1, k / |r|)`` for the norm of the residual. Huber's own
weight bounds what a sample contributes to the normal equations, and its square bounds what the
sample contributes to a weighted sum of squared errors, ``w_i |r_i|^2 <= c``. So it bounds held-out
errors as well. For one output, the root of c is 1.96 standard deviations, and the weighted mean of
normal data has 97 percent of the efficiency of the mean. Where the median of ``nu q_i`` is above
that of the distribution, as for noise with long tails, all of them are divided by the ratio.

The residuals come from ridge regression with one penalty for all outputs. Weights and residuals
depend on each other and are computed in turn:

1. The first weights are small for samples whose inputs or outputs lie far from the median.
2. The weighted ridge fit of all samples, decomposed once, gives the residual of every sample when
   it is left out, ``r_i = e_i / (1 - h_i)`` with its residual e_i and its leverage h_i. A sample of
   high leverage cannot draw the fit to itself and hide thereby.
3. The penalty is the one of least weighted error of these residuals.
4. The residuals give scales, degrees of freedom and weights, until the weights settle.

The scale of an output is the median absolute residual, and not below half of the weighted root
mean square: an output that hardly ever changes, such as a pixel that is dark in most images, has
a median near zero. The degrees of freedom come from angles between residuals of different samples,
``1 / nu = mean cos^2(r_i, r_k)``, which do not depend on how long the residuals are.

References
----------
P. J. Huber (1964). Robust estimation of a location parameter. Annals of Mathematical Statistics
35(1), 73-101.

P. J. Huber, E. M. Ronchetti (2009). Robust Statistics, second edition. Wiley.

P. W. Holland, R. E. Welsch (1977). Robust regression using iteratively reweighted least-squares.
Communications in Statistics - Theory and Methods 6(9), 813-827.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtri

__all__ = ["robust_weights"]

# Quantile of the squared norm of residuals from which on samples have less weight than 1.
_LEVEL = 0.95
# Standard deviation over median absolute deviation, of normal data.
_MAD = 1.4826022185056018
# The least scale of an output, in weighted root mean squares of its residuals.
_LEAST_SCALE = 0.5
# Penalties over the largest eigenvalue of X'X, in how many rounds they are compared, and on how
# many samples.
_PENALTIES = np.logspace(-8, 1, 19)
_N_CHOICES, _N_JUDGED = 4, 1000
_N_CENTRES, _MAX_ROUNDS, _TOL = 20, 30, 5e-3
# Weights are not below this.
_LEAST_WEIGHT = 1e-30
# Relative size of what counts as zero.
_ROUNDING = 64 * float(np.finfo(np.float64).eps)
# Samples between which angles are computed, and imputations of missing outputs in a round.
_N_ANGLES, _N_IMPUTED = 500, 5
_BLOCK = 2**25  # bytes of outputs that are processed together


def robust_weights(
    X: np.ndarray, Y: np.ndarray, v: np.ndarray | None = None, *, fit_intercept: bool = True
) -> np.ndarray:
    """Weights of samples between 0 and 1, small for those that the others do not predict.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
    Y : array of shape (n_samples, D)
        NaN where outputs are missing.
    v : array of shape (n_samples,), optional
        Weights that the samples have already. Those that are found are to be multiplied by them.
    fit_intercept : bool

    Returns
    -------
    w : array of shape (n_samples,)
        1 for samples of which nothing is known: those without an observed output, those with a
        weight of 0 in `v`, and all of them where fewer than three remain.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, W = rng.normal(size=(40, 3)), rng.normal(size=(3, 4))
    >>> Y = X @ W + 0.1 * rng.normal(size=(40, 4))
    >>> Y[7] *= 5
    >>> w = robust_weights(X, Y)
    >>> int(w.argmin()), bool(w[7] < 0.01), bool(np.median(w) == 1.0)
    (7, True, True)
    """
    weights = np.ones(len(X))
    v = np.ones(len(X)) if v is None else np.asarray(v, dtype=np.float64)
    rows = np.flatnonzero((v > 0) & ~np.isnan(Y).all(axis=1))
    if rows.size < 3:
        return weights
    if rows.size < len(X):
        X, Y, v = X[rows], Y[rows], v[rows]
    v = v / v.max()
    data = _Outputs.of(Y, v, fit_intercept)
    F, found = _features(np.asarray(X, dtype=np.float64)), data.about_medians()
    centre = _spatial_median(F, v)
    w, alpha = _first_weights(F - centre, found, v), 0.0
    F = F - centre if fit_intercept else F
    for k in range(_MAX_ROUNDS):
        ridge = _Ridge.of(F, v * w, fit_intercept)
        if k < _N_CHOICES:
            alpha = _choose_penalty(ridge, data.Y, found)
        found = data.left_out(ridge, alpha, found)
        before, w = w, _weights(found, v)
        if (np.abs(w - before) <= _TOL * np.maximum(w, before)).all():
            break
    weights[rows] = w
    return weights


def _features(X: np.ndarray) -> np.ndarray:
    """Inputs with the same ridge fits, no more of them than samples.

    Ridge regression does not change when the inputs are rotated, and inputs of N samples lie in a
    subspace of at most N dimensions.
    """
    if X.shape[1] <= X.shape[0]:
        return X
    R: Any = np.linalg.qr(X.T, mode="r")
    return R.T


def _spatial_median(F: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The point of least weighted distance to the samples, (m,), by Weiszfeld's iteration.

    Unlike the medians of the columns it does not depend on how the inputs are rotated.
    """
    centre = v @ F / v.sum()
    for _ in range(_N_CENTRES):
        distance = np.sqrt(np.square(F - centre).sum(axis=1))
        near = distance > distance.max() * _ROUNDING
        if not near.any():
            break
        share = np.where(near, v / np.where(near, distance, 1.0), 0.0)
        centre = share @ F / share.sum()
    return centre


def _first_weights(F: np.ndarray, outputs: _Residuals, v: np.ndarray) -> np.ndarray:
    """Weights that are small for samples whose inputs or outputs lie far from the median.

    They fall with the fourth power of the distance of the inputs, from the median distance on, and
    with the square of that of the outputs, from 2.4 times the median distance on. They only have to
    keep wrong samples from hiding each other: samples that the others predict regain their weight.
    """
    w = np.ones(len(v))
    for squares, power, far in (
        (np.square(F).sum(axis=1), 2.0, 1.0),
        (outputs.mean_squares, 1.0, 6.0),
    ):
        half = _medians(squares[:, None], v)[0]
        if half > 0:
            w /= np.maximum(1.0, squares / (far * half)) ** power
    return np.maximum(w, _LEAST_WEIGHT)


def _weights(found: _Residuals, v: np.ndarray) -> np.ndarray:
    """Weights of samples, from the residuals of each when it is left out."""
    nu, sums = found.freedom, found.freedom * found.mean_squares
    # Above 1 where the scales of single outputs are too small, as for noise with long tails.
    unit = max(1.0, float(_medians((sums / chdtri(nu, 0.5))[:, None], v)[0]))
    with np.errstate(divide="ignore"):
        w = np.minimum(1.0, unit * chdtri(nu, 1 - _LEVEL) / sums)
    return np.maximum(w, _LEAST_WEIGHT)


# ---------------------------------------------------------------- ridge regression


@dataclass(frozen=True, eq=False)
class _Ridge:
    """Weighted ridge regression for all penalties.

    With centred inputs F, weights W, ``F'WF = V diag(lam) V'`` and ``T = F V``, the fitted values
    are ``T diag(1 / (lam + alpha)) T'W Y``, about the means.

    Parameters
    ----------
    T : array of shape (n_samples, m)
    lam : array of shape (m,)
        All positive.
    w : array of shape (n_samples,)
    share : array of shape (n_samples,)
        Shares of the samples in the means; zero without an intercept.
    """

    T: np.ndarray
    lam: np.ndarray
    w: np.ndarray
    share: np.ndarray

    @classmethod
    def of(cls, F: np.ndarray, w: np.ndarray, fit_intercept: bool) -> _Ridge:
        """The problem of inputs `F`, (n_samples, m), with weights `w`."""
        share = w / w.sum() if fit_intercept else np.zeros_like(w)
        F = F - share @ F
        lam, V = np.linalg.eigh(F.T @ (w[:, None] * F))
        some = lam > max(float(lam[-1]), 0.0) * _ROUNDING
        return cls(F @ V[:, some], lam[some], w, share)

    @property
    def penalties(self) -> np.ndarray:
        """The penalties that are compared."""
        return _PENALTIES * (self.lam[-1] if self.lam.size else 1.0)

    def projected(self, Y: np.ndarray) -> np.ndarray:
        """``T'W Y`` of centred outputs, (m, n_outputs)."""
        return self.T.T @ (self.w[:, None] * Y)

    def residuals(self, Y: np.ndarray, alpha: float) -> np.ndarray:
        """Residuals e_i of the samples, which all take part in the fit, (n_samples, n_outputs)."""
        Y = Y - self.share @ Y
        return Y - (self.T / (self.lam + alpha)) @ self.projected(Y)

    def remainder(self, alpha: float, rows: Any = slice(None)) -> np.ndarray:
        """``1 - h_i``, over which the residuals are those of samples that are left out."""
        leverage = self.w[rows] * np.square(self.T[rows] / np.sqrt(self.lam + alpha)).sum(axis=1)
        return np.maximum(1.0 - leverage - self.share[rows], _ROUNDING)


def _choose_penalty(ridge: _Ridge, Y: np.ndarray, last: _Residuals) -> float:
    """The penalty of least weighted squared error of samples that are left out.

    A sample has the fitted values ``b'C`` with one vector b for all outputs. The squares of
    ``y - b'C`` add up to ``y'y - 2 b'Cy + b'CC'b``. Of many samples, some with residuals of all
    sizes are representative.

    Parameters
    ----------
    ridge : _Ridge
    Y : array of shape (n_samples, D)
    last : _Residuals
        Of the last fit.
    """
    step = -(-len(Y) // _N_JUDGED)
    rows = np.argsort(last.mean_squares, kind="stable")[step // 2 :: step]
    m, n = ridge.lam.size, rows.size
    squares, products, gram = np.zeros(n), np.zeros((n, m)), np.zeros((m, m))
    for columns in _blocks(Y):
        part = Y[:, columns] / last.scale[columns]
        part -= ridge.share @ part
        C, part = ridge.projected(part), part[rows]
        squares += np.square(part).sum(axis=1)
        products += part @ C.T
        gram += C @ C.T
    errors = []
    for alpha in ridge.penalties:
        b = ridge.T[rows] / (ridge.lam + alpha)
        e = squares + (b * (b @ gram - 2 * products)).sum(axis=1)
        errors.append(ridge.w[rows] @ (np.maximum(e, 0.0) / ridge.remainder(alpha, rows) ** 2))
    return float(ridge.penalties[int(np.argmin(errors))])


# ---------------------------------------------------------------- outputs and residuals


@dataclass(frozen=True, eq=False)
class _Residuals:
    """What the residuals of all samples have in common, and how large they are.

    Parameters
    ----------
    scale : array of shape (D,)
        Robust standard deviation of each output; infinite for outputs without residuals.
    mean_squares : array of shape (n_samples,)
        Mean square over the outputs of each sample, in units of their scales.
    freedom : array of shape (n_samples,)
        Effective number of independent outputs of each sample.
    """

    scale: np.ndarray
    mean_squares: np.ndarray
    freedom: np.ndarray


@dataclass(frozen=True, eq=False)
class _Outputs:
    """Outputs of the pilot fits.

    Parameters
    ----------
    Y : array of shape (n_samples, D)
        About the medians where there is an intercept. Missing outputs are zero at first, and the
        fitted values of the last fit later on.
    seen : array of bool, of shape (n_samples, D), or None
        Which outputs are observed; None for all of them.
    v : array of shape (n_samples,)
        Weights that the samples have already.
    rounding : array of shape (D,)
        Scales up to this one count as zero.
    """

    Y: np.ndarray
    seen: np.ndarray | None
    v: np.ndarray
    rounding: np.ndarray

    @classmethod
    def of(cls, Y: np.ndarray, v: np.ndarray, fit_intercept: bool) -> _Outputs:
        """Outputs of samples, (n_samples, D), without those that no sample has."""
        seen = ~np.isnan(Y)
        some = seen.any(axis=0)
        if not some.all():
            Y, seen = Y[:, some], seen[:, some]
        eps = float(np.finfo(Y.dtype).eps)
        rounding = 64 * eps * np.nanmax(np.abs(Y), axis=0).astype(np.float64)
        found = np.empty(Y.shape)
        for columns in _blocks(found):
            part = np.asarray(Y[:, columns], dtype=np.float64)
            part = part - _medians(part, v) if fit_intercept else part
            found[:, columns] = np.where(seen[:, columns], part, 0.0)
        return cls(found, None if seen.all() else seen, v, rounding)

    def about_medians(self) -> _Residuals:
        """The outputs about their medians, as residuals of a fit without inputs."""
        return self._examine(
            lambda columns: self._observed(columns) - _medians(self._observed(columns), self.v),
            self.v,
            np.arange(0),
        )

    def left_out(self, ridge: _Ridge, alpha: float, before: _Residuals) -> _Residuals:
        """Residuals of the samples when they are left out. Missing outputs are imputed first.

        Parameters
        ----------
        ridge : _Ridge
        alpha : float
        before : _Residuals
            Of the last fit.
        """
        remainder = ridge.remainder(alpha)[:, None]

        def residuals(columns: slice) -> np.ndarray:
            R = ridge.residuals(self.Y[:, columns], alpha)
            if self.seen is None:
                return R / remainder
            missing = ~self.seen[:, columns]
            for _ in range(_N_IMPUTED):
                np.copyto(self.Y[:, columns], self.Y[:, columns] - R, where=missing)
                R = ridge.residuals(self.Y[:, columns], alpha)
            return np.where(missing, np.nan, R / remainder)

        n = len(self.v)
        middle = np.argsort(before.mean_squares, kind="stable")[n // 4 : n - n // 4]
        if middle.size > _N_ANGLES:
            start = (middle.size - _N_ANGLES) // 2
            middle = middle[start : start + _N_ANGLES]
        return self._examine(residuals, ridge.w, middle)

    def _observed(self, columns: slice) -> np.ndarray:
        """Some outputs, with NaN where they are missing."""
        Y = self.Y[:, columns]
        return Y if self.seen is None else np.where(self.seen[:, columns], Y, np.nan)

    def _examine(
        self, residuals: Callable[[slice], np.ndarray], w: np.ndarray, some: np.ndarray
    ) -> _Residuals:
        """Scales and sums of residuals, and the angles between those of some samples.

        Parameters
        ----------
        residuals : callable
            Gives the residuals of some outputs, (n_samples, n_columns), NaN for missing ones.
        w : array of shape (n_samples,)
            Weights of the samples in root mean squares.
        some : array of int, of shape (k,)
        """
        n, D = self.Y.shape
        scale, squares, counts = np.empty(D), np.zeros(n), np.zeros(n)
        products, norms, common = np.zeros((3, some.size, some.size))
        for columns in _blocks(self.Y):
            R = residuals(columns)
            scale[columns] = _scales(R, self.v, w, self.rounding[columns])
            R /= scale[columns]
            seen = np.isfinite(scale[columns]) & ~np.isnan(R)
            R = np.where(seen, R, 0.0)
            squares += np.square(R).sum(axis=1)
            counts += seen.sum(axis=1)
            r, known = R[some], seen[some].astype(np.float64)
            products += r @ r.T
            norms += np.square(r) @ known.T  # of residual i, over the outputs that k has
            common += known @ known.T
        correlation = _mean_correlation(products, norms, common)
        with np.errstate(divide="ignore", invalid="ignore"):
            freedom = 1 / np.clip(1 / counts + (1 - 1 / counts) * correlation, None, 1.0)
        counts = np.maximum(counts, 1.0)
        return _Residuals(scale, squares / counts, np.nan_to_num(freedom, nan=1.0))


def _mean_correlation(products: np.ndarray, norms: np.ndarray, common: np.ndarray) -> float:
    """Mean squared correlation of different outputs, from angles between residuals of samples.

    Of D outputs with mean squared correlation c, the squared cosine of the angle between the
    residuals of two samples is ``1 / D + (1 - 1 / D) c`` in the mean.

    Parameters
    ----------
    products, norms, common : arrays of shape (k, k)
        Inner products of the residuals of two samples, sums of squares of the former over the
        outputs that both have, and how many these are.
    """
    square = norms * norms.T
    use = (common > 1) & (square > 0) & ~np.eye(len(common), dtype=bool)
    if not use.any():
        return 0.0
    cosines, D = products[use] ** 2 / square[use], common[use]
    return float(np.clip(np.mean((cosines - 1 / D) / (1 - 1 / D)), 0.0, 1.0))


def _scales(R: np.ndarray, v: np.ndarray, w: np.ndarray, rounding: np.ndarray) -> np.ndarray:
    """Robust standard deviation of each column of `R`; infinite where there is only rounding.

    Parameters
    ----------
    R : array of shape (n_samples, n_columns)
        NaN where values are missing.
    v, w : arrays of shape (n_samples,)
        Weights of the samples in the median, and in the root mean square.
    rounding : array of shape (n_columns,)
    """
    size, seen = np.abs(R), ~np.isnan(R)
    total = w @ seen
    mean = w @ np.where(seen, np.square(R), 0.0) / np.where(total > 0, total, 1.0)
    scale = np.maximum(_MAD * _medians(size, v), _LEAST_SCALE * np.sqrt(mean))
    return np.where(scale > rounding, scale, np.inf)


def _medians(A: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Weighted median of each column of `A`, of those values that are not NaN.

    Parameters
    ----------
    A : array of shape (n_samples, n_columns)
    v : array of shape (n_samples,)
        All positive. A weight of two is a value that occurs twice.
    """
    if (v == v[0]).all() and not np.isnan(A).any():
        return np.median(np.ascontiguousarray(A.T), axis=1)
    order = np.argsort(A, axis=0)  # NaN last
    A = np.take_along_axis(A, order, axis=0)
    total = np.cumsum(np.where(np.isnan(A), 0.0, v[order]), axis=0)
    half = total[-1] / 2 * (1 + np.finfo(np.float64).eps * np.array([[-4.0], [4.0]]))
    low, high = (np.argmax(total >= bound, axis=0)[None] for bound in half)
    return (np.take_along_axis(A, low, 0) + np.take_along_axis(A, high, 0))[0] / 2


def _blocks(Y: np.ndarray) -> Iterator[slice]:
    """Columns of `Y` that are processed together."""
    width = max(_BLOCK // (8 * len(Y)), 1)
    for start in range(0, Y.shape[1], width):
        yield slice(start, min(start + width, Y.shape[1]))
