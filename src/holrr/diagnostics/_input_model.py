r"""Principal component model of inputs, for the distances of new rows.

Principal components :math:`P` of the centred inputs split a row :math:`z = x - \bar x` into scores
:math:`t = P'z` and residuals :math:`e = z - Pt`. The model measures two distances:

.. math:: T^2 = \sum_i t_i^2 / v_i, \qquad Q = \sum_j e_j^2 / \psi_j.

Hotelling's :math:`T^2` is the distance from the mean within the space of the components, and
:math:`Q` is the distance from this space. The variances :math:`v_i` of the scores and
:math:`\psi_j` of the residuals are those of held-out rows: cross-validation computes the components
without these rows. Variances of the training rows are too large for scores and too small for
residuals, since components follow the rows that they are computed from. With such variances, up to
four times as many ordinary rows as intended exceed the limits.

Each input has a separate residual variance, as in factor analysis. If all residual variances are
equal, as in a spectrum with noise of equal size, :math:`Q` is proportional to the usual sum of
squares. If the inputs have different units, all inputs have equal weight in :math:`Q`.

Limits are quantiles of a scaled F distribution. This distribution is the chi-square approximation
(Box 1954) with the mean and variance of the held-out distances, and accounts for the uncertainty of
their mean.

References
----------
G. E. P. Box (1954). Some theorems on quadratic forms applied in the study of analysis of variance
problems, I. Annals of Mathematical Statistics 25(2), 290-302.

J. E. Jackson, G. S. Mudholkar (1979). Control procedures for residuals associated with principal
component analysis. Technometrics 21(3), 341-349.

N. Halko, P. G. Martinsson, J. A. Tropp (2011). Finding structure with randomness: probabilistic
algorithms for constructing approximate matrix decompositions. SIAM Review 53(2), 217-288.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from scipy.special import fdtri

from ..core.checks import unit_of
from ..core.namespace import row_blocks
from ..core.state import record

__all__ = ["MIN_ROWS", "InputModel", "RowFolds", "fit_input_model", "folds_of_splits"]
__all__ += ["interleaved_folds", "rows_to_use"]

# Minimum number of rows for which limits are computed.
MIN_ROWS = 10
# Maximum number of rows that a model is fitted to. If there are many inputs, fewer rows are used:
# the first limit on the number of entries saves time (but at least 100 rows are used), the second
# one saves memory (but at least 20 rows are used).
_MOST_ROWS, _ENTRIES_FOR_TIME, _ENTRIES_FOR_MEMORY = 500, 2**17, 2**23
# Share of the variance that the components contain, and their maximum number.
_SHARE, _MOST_COMPONENTS = 0.95, 10
# Number of interleaved folds, and the maximum number of splits that are not joined.
_N_FOLDS, _MOST_FOLDS = 5, 10
# Minimum held-out variance of a component, as a share of its variance in the training rows.
_CONFIRMED = 0.5
# Minimum residual of an input, as a share of its standard deviation; smaller ones are rounding.
_ROUNDING = 1e-6
# Matrices of more rows are decomposed by subspace iteration, with this number of additional
# directions.
_SMALL, _EXTRA = 32, 6
# Bytes of rows that are processed together, in memory and in the cache.
_BLOCK, _CACHE = 2**24, 2**18


@record
@dataclass(frozen=True, eq=False)
class InputModel:
    """Principal components of the inputs, with variances and distances of held-out rows.

    Parameters
    ----------
    mean : array of shape (n_features,)
        Mean of the inputs. All arrays are in the units of the inputs divided by `unit`.
    components : array of shape (n_features, k)
        Components, with orthonormal columns.
    variances : array of shape (k,)
        Mean squares of held-out scores.
    residual_variances : array of shape (n_features,)
        Mean squares of held-out residuals.
    t2_moments, q_moments : pairs of float
        Mean and variance of the held-out distances.
    n_rows : int
        Number of held-out rows.
    unit : float
        Power of two that the inputs are divided by.
    """

    mean: np.ndarray
    components: np.ndarray
    variances: np.ndarray
    residual_variances: np.ndarray
    t2_moments: tuple[float, float]
    q_moments: tuple[float, float]
    n_rows: int
    unit: float = 1.0

    def distances(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return T2 and Q of each row, of shape (n,) each.

        Parameters
        ----------
        X : array of shape (n, n_features)
        """
        n, d = X.shape
        blocks = row_blocks(n, 16 * d, _BLOCK)
        if len(blocks) == 1:
            return self._distances(X)
        t2, q = np.empty(n), np.empty(n)
        for rows in blocks:
            t2[rows], q[rows] = self._distances(X[rows])
        return t2, q

    def _distances(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        Z = X - self.mean if self.unit == 1.0 else X / self.unit - self.mean
        with np.errstate(over="ignore", invalid="ignore"):
            T = Z @ self.components
            Z -= T @ self.components.T
            t2, q = (T * T) @ (1 / self.variances), (Z * Z) @ (1 / self.residual_variances)
        if not np.isfinite(q).all():  # finite inputs so large that their squares overflow
            t2, q = (np.where(np.isnan(A), np.inf, A) for A in (t2, q))
        return t2, q

    def limits(self, level: float) -> tuple[float, float]:
        """Return limits of T2 and Q. The share `level` of ordinary rows is below each limit."""
        t2, q = (
            _quantile(*moments, self.n_rows, level) for moments in (self.t2_moments, self.q_moments)
        )
        # The mean of Q is the number of inputs, or less if residuals are rounding errors.
        return t2, max(q, float(self.mean.size))

    @property
    def n_features(self) -> int:
        """Number of inputs."""
        return self.mean.size


def _quantile(mean: float, variance: float, n: int, level: float) -> float:
    """Return a quantile of a scaled chi-square with mean and variance estimated from n values."""
    if not mean > 0 or variance <= 1e-6 * mean * mean:
        return mean
    freedom = 2 * mean * mean / variance
    return mean * float(fdtri(freedom, n * freedom, level))


# ---------------------------------------------------------------- rows and folds


@dataclass(frozen=True, eq=False)
class RowFolds:
    """Training rows of each fold, and the fold that holds out each row.

    Parameters
    ----------
    training : array of bool of shape (n_folds, n)
        Whether a fold trains on a row.
    holder : array of int of shape (n,)
        Fold that holds out each row, or -1 if no fold does.
    """

    training: np.ndarray
    holder: np.ndarray


def rows_to_use(n: int, n_features: int, most: int = _MOST_ROWS) -> np.ndarray:
    """Return indices of the rows that a model is fitted to.

    If there are more than `most` rows, the rows are divided into intervals of equal length, and one
    row of each interval is used. Its position within the interval follows multiples of the golden
    ratio, so that all phases of a period, such as all months of a year, occur.

    Parameters
    ----------
    n : int
        Number of rows.
    n_features : int
    most : int
        Maximum number of rows. It is lower if there are many inputs.

    Examples
    --------
    >>> rows_to_use(4, 3), rows_to_use(5000, 3)[:5]
    (array([0, 1, 2, 3]), array([ 0, 16, 22, 38, 44]))
    """
    enough = min(100, max(20, _ENTRIES_FOR_MEMORY // n_features))
    most = min(most, max(enough, _ENTRIES_FOR_TIME // n_features))
    if n <= most:
        return np.arange(n)
    edges = np.arange(most + 1) * n // most
    part = np.arange(most) * 0.6180339887498949 % 1.0
    return edges[:-1] + (part * np.diff(edges)).astype(np.int64)


def interleaved_folds(n: int) -> RowFolds:
    """Return five folds, each of which holds out every fifth row."""
    holder = np.arange(n) % _N_FOLDS
    return RowFolds(holder != np.arange(_N_FOLDS)[:, None], holder)


def folds_of_splits(
    splits: Sequence[tuple[np.ndarray, np.ndarray]], n_samples: int, rows: np.ndarray
) -> RowFolds:
    """Return the folds of a search, for some of its samples.

    Each row is held out at most once: a split is left out if it holds out a row of an earlier
    split. More than ten splits are joined to at most five folds. Folds that train on fewer than
    half as many rows as the largest one, such as the first splits of a time series, hold out no
    rows. If fewer than `MIN_ROWS` rows are held out, interleaved folds are used instead.

    Parameters
    ----------
    splits : sequence of pairs of arrays of int
        Training and test samples.
    n_samples : int
    rows : array of int of shape (n,)
        Samples to use.
    """
    seen, kept = np.zeros(n_samples, dtype=bool), []
    for train, test in splits:
        if not seen[test].any():
            seen[test] = True
            kept.append((train, test))
    step = -(-len(kept) // _N_FOLDS) if len(kept) > _MOST_FOLDS else 1
    training: list[np.ndarray] = []
    holder = np.full(n_samples, -1)
    for first in range(0, len(kept), step):
        inside = np.zeros(n_samples, dtype=np.int64)
        for train, test in kept[first : first + step]:
            inside[train] += 1
            holder[test] = len(training)
        training.append(inside[rows] == len(kept[first : first + step]))
    holder = holder[rows]
    sizes = np.array([mask.sum() for mask in training], dtype=np.int64)
    good = np.flatnonzero(2 * sizes >= sizes.max(initial=1))
    place = np.full(sizes.size + 1, -1)
    place[good] = np.arange(good.size)
    holder = place[holder]
    if np.count_nonzero(holder >= 0) < MIN_ROWS:
        return interleaved_folds(rows.size)
    return RowFolds(np.stack([training[k] for k in good]), holder)


# ---------------------------------------------------------------- fit


def fit_input_model(
    X: np.ndarray, w: np.ndarray | None = None, folds: RowFolds | None = None
) -> InputModel | None:
    """Return the model of the inputs, or None if there are fewer than `MIN_ROWS` rows.

    The number of components is the smallest number that contains 95 percent of the variance. It is
    at most 10, at most a fifth of the number of rows, and less than the number of inputs (but 1 for
    a single input). Components whose variance in held-out rows is less than half of that in
    training rows are dropped: they describe noise of the training rows, and T2 of new rows would be
    too large.

    Parameters
    ----------
    X : array of shape (n, n_features)
    w : array of shape (n,), optional
        Positive weights.
    folds : RowFolds, optional
        Interleaved folds by default.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 3)) @ [[3.0, 1, 0], [0, 1, 1], [0, 0, 0.1]]
    >>> model = fit_input_model(X)
    >>> t2, q = model.distances(np.array([[0.0, 0.0, 0.0], [30.0, 10.0, 0.0], [0.0, 9.0, -9.0]]))
    >>> t2 > model.limits(0.99)[0], q > model.limits(0.99)[1]
    (array([False,  True, False]), array([False, False,  True]))
    """
    n, d = X.shape
    if n < MIN_ROWS:
        return None
    unit, folds = unit_of(X), interleaved_folds(n) if folds is None else folds
    Z = np.divide(X, unit, dtype=np.float64)
    share = np.full(n, 1 / n) if w is None else w / w.sum()
    mean = share @ Z
    Z -= mean
    total = np.einsum("i,ij,ij->j", share, Z, Z)
    rounding = (16 * np.finfo(X.dtype).eps * mean) ** 2
    constant = total <= np.maximum(rounding, 1e-200 * total.max())
    if constant.any():
        Z[:, constant], total[constant] = 0.0, 0.0

    # Components of each fold; the last ones are those of all rows.
    weights = np.concatenate([folds.training, np.ones((1, n), dtype=bool)]) * share
    weights /= weights.sum(axis=1, keepdims=True)
    most = min(_MOST_COMPONENTS, (n - 1) // 5, max(d - 1, 1))
    centres = weights @ Z
    lam, P = _components(Z, weights, centres, most)
    supported = int(np.count_nonzero(lam[-1] > 1e-12 * lam[-1, 0]))
    k = min(int(np.searchsorted(np.cumsum(lam[-1]), _SHARE * total.sum())) + 1, supported, most)

    held = np.flatnonzero(folds.holder >= 0)
    weight = None if w is None else w[held] * (held.size / w[held].sum())
    parts = [np.flatnonzero(folds.holder == fold) for fold in range(len(centres) - 1)]
    T = np.empty((n, k))
    for rows, centre, B in zip(parts, centres, P, strict=False):
        Z[rows] -= centre
        T[rows] = Z[rows] @ B[:, :k]
    squares = T[held] ** 2
    v = _mean(squares, weight)
    kept = np.flatnonzero(v >= _CONFIRMED * lam[-1, :k])
    if kept.size < k:
        T, v, squares = T[:, kept], v[kept], squares[:, kept]
        P = P[:, :, kept]
    for rows, B in zip(parts, P, strict=False):
        Z[rows] -= T[rows] @ B[:, : kept.size].T
    R = Z if held.size == n else Z[held]
    R *= R
    # Folds have other components than all rows: residual variances of both are compared.
    left = total - (P[-1, :, : kept.size] ** 2) @ lam[-1, kept]
    psi = np.maximum(np.maximum(_mean(R, weight), left), _ROUNDING**2 * total + rounding)
    if constant.any():
        psi[constant] = _scale_of_constants(psi[~constant], mean)
    return InputModel(
        mean=mean,
        components=P[-1, :, : kept.size].astype(X.dtype),
        variances=v,
        residual_variances=psi,
        t2_moments=_moments(_distance(squares, v, weight), weight),
        q_moments=_moments(_distance(R, psi, weight), weight),
        n_rows=int(held.size),
        unit=unit,
    )


def _scale_of_constants(psi: np.ndarray, mean: np.ndarray) -> float:
    """Return a residual variance for inputs that are constant, for which it cannot be estimated.

    It is the median residual variance of the other inputs. If all inputs are constant, it is a
    small share of their mean square.
    """
    if psi.size:
        return float(np.median(psi))
    return _ROUNDING**2 * (float(mean @ mean) / mean.size or 1.0)


def _mean(A: np.ndarray, w: np.ndarray | None) -> np.ndarray:
    """Return the mean of each column, with weights of mean one."""
    return A.mean(axis=0) if w is None else w @ A / A.shape[0]


def _distance(squares: np.ndarray, variances: np.ndarray, w: np.ndarray | None) -> np.ndarray:
    """Return the sum over columns of squares divided by variances of the other rows, (n,).

    Without row i, a variance is ``(n v - w_i s_i) / (n - w_i)``. At least a quarter of ``n v`` is
    used for the numerator, since a column that is zero in all rows but one would have no variance.
    The squares are overwritten.
    """
    n, m = squares.shape
    found = np.empty(n)
    for rows in row_blocks(n, 8 * m, _CACHE):
        part = squares[rows]
        part /= variances
        left = n - (part if w is None else part * w[rows, None])
        part /= np.maximum(left, n / 4, out=left)
        part.sum(axis=1, out=found[rows])
    return found * (n - (1.0 if w is None else w))


def _moments(x: np.ndarray, w: np.ndarray | None) -> tuple[float, float]:
    """Return the mean and the variance of `x`."""
    n = x.size
    mean = float(x.mean() if w is None else w @ x / n)
    x = (x - mean) ** 2
    return mean, float(x.sum() if w is None else w @ x) / (n - 1)


def _components(
    Z: np.ndarray, weights: np.ndarray, centres: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return leading variances (n_fits, k) and directions (n_fits, d, k) for several row weights.

    The covariance matrix is decomposed if there are at least as many rows as inputs, and the Gram
    matrix of the rows otherwise.

    Parameters
    ----------
    Z : array of shape (n, d)
    weights : array of shape (n_fits, n)
        Row weights of each fit, which add up to one.
    centres : array of shape (n_fits, d)
        Weighted means of each fit.
    k : int
    """
    n, d = Z.shape
    if d <= n:
        S = _covariances(Z, weights)
        S -= centres[:, :, None] * centres[:, None, :]
        if d <= _SMALL:
            lam, U = np.linalg.eigh(S)
            return np.maximum(lam[:, : -k - 1 : -1], 0.0), U[:, :, : -k - 1 : -1]
        return _leading(partial(np.matmul, S), k, Z.T @ (weights[:, :, None] * _start(n, k)))
    K, root = Z @ Z.T, np.sqrt(weights)[:, :, None]

    def times(V: np.ndarray) -> np.ndarray:
        """Multiply the Gram matrices of centred, weighted rows by an array (n_fits, n, p)."""
        V = root * V
        V -= weights[:, :, None] * V.sum(axis=1, keepdims=True)
        V = (K @ V.transpose(1, 0, 2).reshape(n, -1)).reshape(n, len(weights), -1)
        V = V.transpose(1, 0, 2) - weights[:, None, :] @ V.transpose(1, 0, 2)
        V *= root
        return V

    lam, U = _leading(times, k, root * _start(n, k))
    U *= root / np.sqrt(np.where(lam > 1e-14 * lam[:, :1], lam, np.inf))[:, None, :]
    U -= weights[:, :, None] * U.sum(axis=1, keepdims=True)
    P = U.transpose(0, 2, 1).reshape(-1, n) @ Z
    return lam, P.reshape(-1, k, d).transpose(0, 2, 1)


def _covariances(Z: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return ``Z' diag(w) Z`` of each fit, (n_fits, d, d).

    Rows that take part in the same fits are added up once.
    """
    n_fits, d = len(weights), Z.shape[1]
    code = (weights > 0).T @ (1 << np.arange(n_fits))
    patterns = [np.flatnonzero(code == pattern) for pattern in np.unique(code)]
    sums = np.empty((len(patterns), d, d))
    for G, rows in zip(sums, patterns, strict=True):
        part = Z[rows]
        np.matmul((part * weights[-1, rows, None]).T, part, out=G)
    first = np.array([rows[0] for rows in patterns])
    inside = weights[:, first] / weights[-1, first]
    return (inside @ sums.reshape(len(patterns), -1)).reshape(n_fits, d, d)


@lru_cache(maxsize=8)
def _normal(n: int, k: int) -> np.ndarray:
    """Return normal random numbers from a fixed seed."""
    found = np.random.default_rng(0).normal(size=(n, k))
    found.flags.writeable = False
    return found


def _start(n: int, k: int) -> np.ndarray:
    """Return random combinations of rows, of shape (n, k + extra), to start the iteration.

    Combinations of rows do not depend on a rotation of the inputs.
    """
    return _normal(_MOST_ROWS, _MOST_COMPONENTS + _EXTRA)[:n, : min(n, k + _EXTRA)]


def _leading(
    times: Callable[[np.ndarray], np.ndarray], k: int, start: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return leading eigenvalues (n_fits, k) and vectors (n_fits, m, k) by subspace iteration.

    Limits are valid even if the iteration has not converged, since the distances of held-out rows
    and of new rows are computed in the same way.

    Parameters
    ----------
    times : callable
        Multiplies symmetric matrices, (n_fits, m, m), by an array (n_fits, m, p).
    k : int
    start : array of shape (n_fits, m, p)
    """
    V = np.linalg.qr(times(times(start)))[0]
    lam, U = np.linalg.eigh(V.transpose(0, 2, 1) @ times(V))
    return np.maximum(lam[:, : -k - 1 : -1], 0.0), V @ U[:, :, : -k - 1 : -1]
