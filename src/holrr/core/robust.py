"""Robust weights of samples, from a pilot fit.

The squared error of a sample is not bounded, so that one wrong sample can dominate a fit. A robust
fit reduces the weights of samples that the other samples do not predict. Sample i has the held-out
residual ``r_i``, a vector over its D outputs, and the mean square

    q_i = mean_j (r_ij / s_j)^2 ,

in units of a robust scale ``s_j`` of each output. If no sample is wrong, the distribution of
``nu q_i`` is approximately chi-squared with nu degrees of freedom: nu is D if the residuals of the
outputs are independent, and 1 if they are proportional. With the 95 percent quantile c of this
distribution, the weight of the sample is

    w_i = min(1, c / (nu q_i)) .

This is the square of Huber's weight ``min(1, k / |r|)`` for the norm of the residual. Huber's own
weight bounds the contribution of a sample to the normal equations. Its square bounds the
contribution of a sample to a weighted sum of squared errors, ``w_i |r_i|^2 <= c``, and thus also to
held-out errors. For one output, the root of c is 1.96 standard deviations, and the weighted mean of
normal data has 97 percent of the efficiency of the mean. If the median of ``nu q_i`` exceeds that
of the distribution, as for noise with long tails, all ``nu q_i`` are divided by the ratio of the
medians.

The residuals come from ridge regression with one penalty for all outputs. Weights and residuals
depend on each other and are computed alternately:

1. The first weights are small for samples whose inputs or outputs lie far from the median.
2. The weighted ridge fit of all samples, decomposed once, gives the residual of every sample when
   it is left out, ``r_i = e_i / (1 - h_i)`` with its residual e_i and its leverage h_i. A sample of
   high leverage cannot reduce this residual by pulling the fit towards itself.
3. The penalty minimises the weighted squared sum of these residuals.
4. Scales, degrees of freedom and new weights are computed from the residuals. Steps 2 to 4 are
   repeated until the weights converge.

The scale of an output is a multiple of the median absolute residual, but at least half of the
weighted root mean square: an output that rarely changes, such as a pixel that is dark in most
images, has a median near zero. The degrees of freedom are computed from the angles between
residuals of different samples, ``1 / nu = mean cos^2(r_i, r_k)``, which do not depend on the norms
of the residuals.

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

# Samples whose squared residual norm exceeds this quantile have a weight below 1.
_LEVEL = 0.95
# Standard deviation divided by the median absolute deviation, for normal data.
_MAD = 1.4826022185056018
# Minimum scale of an output, as a multiple of the weighted root mean square of its residuals.
_LEAST_SCALE = 0.5
# Penalties to compare, as multiples of the largest eigenvalue of X'X.
_PENALTIES = np.logspace(-8, 1, 19)
# Number of rounds that choose the penalty, and maximum number of samples for this choice.
_N_CHOICES, _N_JUDGED = 4, 1000
# Iterations of the spatial median; maximum number of rounds and relative tolerance of the weights.
_N_CENTRES, _MAX_ROUNDS, _TOL = 20, 30, 5e-3
# Minimum weight.
_LEAST_WEIGHT = 1e-30
# Relative size below which a number counts as zero.
_ROUNDING = 64 * float(np.finfo(np.float64).eps)
# Maximum number of samples whose angles are computed; number of imputations in a round.
_N_ANGLES, _N_IMPUTED = 500, 5
_BLOCK = 2**25  # bytes of outputs that are processed together


def robust_weights(
    X: np.ndarray, Y: np.ndarray, v: np.ndarray | None = None, *, fit_intercept: bool = True
) -> np.ndarray:
    """Return weights between 0 and 1, which are small for samples that the others do not predict.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
    Y : array of shape (n_samples, D)
        Outputs, with NaN for missing values.
    v : array of shape (n_samples,), optional
        Sample weights of the user. A fit uses their product with the robust weights.
    fit_intercept : bool

    Returns
    -------
    w : array of shape (n_samples,)
        Robust weights. The weight is 1 for samples without an observed output, for samples with a
        weight of 0 in `v`, and for all samples if fewer than three others remain.

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
    centred = F - _spatial_median(F, v)
    if np.abs(centred).max(initial=0.0) <= _ROUNDING * np.abs(F).max(initial=0.0):
        centred[:] = 0.0  # constant inputs, with rounding errors
    w, alpha = _first_weights(centred, found, v), 0.0
    F = centred if fit_intercept else F
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
    """Return inputs with the same ridge fits, and at most as many columns as samples.

    Ridge regression does not change when the inputs are rotated, and inputs of N samples lie in a
    subspace of at most N dimensions.
    """
    if X.shape[1] <= X.shape[0]:
        return X
    R: Any = np.linalg.qr(X.T, mode="r")
    return R.T


def _spatial_median(F: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return the spatial median of the samples, (m,), by Weiszfeld's iteration.

    This point has the least weighted sum of distances to the samples. Unlike the medians of the
    columns, it rotates with the inputs. A sample with half of the weight is the median.
    """
    heaviest = int(np.argmax(v))
    if 2 * v[heaviest] >= v.sum():
        return F[heaviest]
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
    """Return weights that are small for samples with inputs or outputs far from the median.

    The weights decrease with the fourth power of the distance of the inputs above the median
    distance, and with the square of the distance of the outputs above 2.4 times the median
    distance. They prevent several wrong samples from masking each other. Samples that the other
    samples predict regain their weight in later rounds.
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
    """Return the weights of samples, from their held-out residuals."""
    nu, sums = found.freedom, found.freedom * found.mean_squares
    # Above 1 if the scales of single outputs are too small, as for noise with long tails.
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
        Positive eigenvalues.
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
        """Return the problem of inputs `F`, (n_samples, m), with weights `w`."""
        share = w / w.sum() if fit_intercept else np.zeros_like(w)
        F = F - share @ F
        lam, V = np.linalg.eigh(F.T @ (w[:, None] * F))
        some = lam > max(float(lam[-1]), 0.0) * _ROUNDING
        return cls(F @ V[:, some], lam[some], w, share)

    @property
    def penalties(self) -> np.ndarray:
        """Penalties to compare."""
        return _PENALTIES * (self.lam[-1] if self.lam.size else 1.0)

    def projected(self, Y: np.ndarray) -> np.ndarray:
        """Return ``T'W Y`` of centred outputs, (m, n_outputs)."""
        return self.T.T @ (self.w[:, None] * Y)

    def residuals(self, Y: np.ndarray, alpha: float) -> np.ndarray:
        """Return residuals e_i of the fit to all samples, (n_samples, n_outputs)."""
        Y = Y - self.share @ Y
        return Y - (self.T / (self.lam + alpha)) @ self.projected(Y)

    def remainder(self, alpha: float, rows: Any = slice(None)) -> np.ndarray:
        """Return ``1 - h_i``, by which residuals are divided to get held-out residuals."""
        leverage = self.w[rows] * np.square(self.T[rows] / np.sqrt(self.lam + alpha)).sum(axis=1)
        return np.maximum(1.0 - leverage - self.share[rows], _ROUNDING)


def _choose_penalty(ridge: _Ridge, Y: np.ndarray, last: _Residuals) -> float:
    """Return the penalty that minimises the weighted sum of squared held-out residuals.

    A sample has the fitted values ``b'C`` with one vector b for all outputs. With an orthonormal
    basis Q of the rows of C, its residual has the part ``y - y QQ'``, which does not depend on the
    penalty, and ``y Q - b'C Q``. Both are computed from the sample itself: with fewer samples than
    inputs, residuals are so small that differences of sums of squares have no accurate digits. If
    there are many samples, a subset with residuals of all sizes is used.

    Parameters
    ----------
    ridge : _Ridge
    Y : array of shape (n_samples, D)
    last : _Residuals
        Residuals of the last fit.
    """
    step = -(-len(Y) // _N_JUDGED)
    rows = np.argsort(last.mean_squares, kind="stable")[step // 2 :: step]

    def centred(columns: slice) -> np.ndarray:
        part = Y[:, columns] / last.scale[columns]
        return part - ridge.share @ part

    C = np.empty((ridge.lam.size, Y.shape[1]))
    for columns in _blocks(Y):
        C[:, columns] = ridge.projected(centred(columns))
    Q, R = np.linalg.qr(C.T)  # CQ = R'
    inside, outside = np.zeros((rows.size, Q.shape[1])), np.zeros(rows.size)
    for columns in _blocks(Y):
        inside += centred(columns)[rows] @ Q[columns]
    for columns in _blocks(Y):
        outside += np.square(centred(columns)[rows] - inside @ Q[columns].T).sum(axis=1)
    errors = []
    for alpha in ridge.penalties:
        fitted = (ridge.T[rows] / (ridge.lam + alpha)) @ R.T
        e = outside + np.square(inside - fitted).sum(axis=1)
        errors.append(ridge.w[rows] @ (e / ridge.remainder(alpha, rows) ** 2))
    return float(ridge.penalties[int(np.argmin(errors))])


# ---------------------------------------------------------------- outputs and residuals


@dataclass(frozen=True, eq=False)
class _Residuals:
    """Scales of the outputs, and mean squares and degrees of freedom of the residuals.

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
        Outputs, minus their medians if there is an intercept. Missing outputs are zero at first,
        and are later replaced by the fitted values of the last fit.
    seen : array of bool, of shape (n_samples, D), or None
        Whether an output is observed; None if all outputs are.
    v : array of shape (n_samples,)
        Sample weights of the user.
    rounding : array of shape (D,)
        Scale of each output up to which residuals are rounding errors.
    """

    Y: np.ndarray
    seen: np.ndarray | None
    v: np.ndarray
    rounding: np.ndarray

    @classmethod
    def of(cls, Y: np.ndarray, v: np.ndarray, fit_intercept: bool) -> _Outputs:
        """Return outputs (n_samples, D) without those that no sample has observed."""
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
        """Return outputs minus their medians, which are the residuals of a fit without inputs."""
        return self._examine(
            lambda columns: self._observed(columns) - _medians(self._observed(columns), self.v),
            self.v,
            np.arange(0),
        )

    def left_out(self, ridge: _Ridge, alpha: float, before: _Residuals) -> _Residuals:
        """Return the held-out residuals of the samples, after imputation of missing outputs.

        Parameters
        ----------
        ridge : _Ridge
        alpha : float
        before : _Residuals
            Residuals of the last fit.
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

        # The middle half of the samples, with those that are equal to its ends up to rounding.
        n, order = len(self.v), np.argsort(before.mean_squares, kind="stable")
        squares = before.mean_squares[order]
        low, high = squares[n // 4] * (1 - _ROUNDING), squares[n - n // 4 - 1] * (1 + _ROUNDING)
        middle = order[(squares >= low) & (squares <= high)]
        if middle.size > _N_ANGLES:
            start = (middle.size - _N_ANGLES) // 2
            middle = middle[start : start + _N_ANGLES]
        return self._examine(residuals, ridge.w, middle)

    def _observed(self, columns: slice) -> np.ndarray:
        """Return some outputs, with NaN for missing values."""
        Y = self.Y[:, columns]
        return Y if self.seen is None else np.where(self.seen[:, columns], Y, np.nan)

    def _examine(
        self, residuals: Callable[[slice], np.ndarray], w: np.ndarray, some: np.ndarray
    ) -> _Residuals:
        """Return scales, mean squares and degrees of freedom of residuals.

        Parameters
        ----------
        residuals : callable
            Returns the residuals of some outputs, (n_samples, n_columns), NaN for missing values.
        w : array of shape (n_samples,)
            Weights of the samples in root mean squares.
        some : array of int, of shape (k,)
            Samples whose angles determine the degrees of freedom.
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
            norms += np.square(r) @ known.T  # of sample i, over the outputs of sample k
            common += known @ known.T
        correlation = _mean_correlation(products, norms, common)
        with np.errstate(divide="ignore", invalid="ignore"):
            freedom = 1 / np.clip(1 / counts + (1 - 1 / counts) * correlation, None, 1.0)
        counts = np.maximum(counts, 1.0)
        return _Residuals(scale, squares / counts, np.nan_to_num(freedom, nan=1.0))


def _mean_correlation(products: np.ndarray, norms: np.ndarray, common: np.ndarray) -> float:
    """Return the mean squared correlation of outputs, from angles between residuals of samples.

    For D outputs with mean squared correlation c, the mean squared cosine of the angle between the
    residuals of two samples is ``1 / D + (1 - 1 / D) c``.

    Parameters
    ----------
    products, norms, common : arrays of shape (k, k)
        For each pair of samples: inner product of their residuals, sum of squares of the residuals
        of the first sample over the outputs that both have, and number of these outputs.
    """
    square = norms * norms.T
    use = (common > 1) & (square > 0) & ~np.eye(len(common), dtype=bool)
    if not use.any():
        return 0.0
    cosines, D = products[use] ** 2 / square[use], common[use]
    return float(np.clip(np.mean((cosines - 1 / D) / (1 - 1 / D)), 0.0, 1.0))


def _scales(R: np.ndarray, v: np.ndarray, w: np.ndarray, rounding: np.ndarray) -> np.ndarray:
    """Return a robust standard deviation of each column of `R`; infinite if it is only rounding.

    Parameters
    ----------
    R : array of shape (n_samples, n_columns)
        Residuals, with NaN for missing values.
    v, w : arrays of shape (n_samples,)
        Weights of the samples in the median, and in the root mean square.
    rounding : array of shape (n_columns,)
        As in `_Outputs`.
    """
    size, seen = np.abs(R), ~np.isnan(R)
    total = w @ seen
    mean = w @ np.where(seen, np.square(R), 0.0) / np.where(total > 0, total, 1.0)
    scale = np.maximum(_MAD * _medians(size, v), _LEAST_SCALE * np.sqrt(mean))
    return np.where(scale > rounding, scale, np.inf)


def _medians(A: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return the weighted median of each column of `A`, without NaN values.

    Parameters
    ----------
    A : array of shape (n_samples, n_columns)
    v : array of shape (n_samples,)
        Positive weights. A weight of two is equivalent to repeating the value.
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
    """Yield slices of columns of `Y` that are processed together."""
    width = max(_BLOCK // (8 * len(Y)), 1)
    for start in range(0, Y.shape[1], width):
        yield slice(start, min(start + width, Y.shape[1]))
