"""Penalties of blocks of inputs that minimise the held-out error of ridge regression.

With a penalty ``alpha_b`` for each block, the coefficients of a fold are ``W = A^-1 C`` with
``A = G + diag(alpha)``, from the training moments ``G = X'X`` and ``C = X'Y``. The held-out error,
with the moments ``Gt`` and ``Ct`` of the held-out samples, is a smooth function of the logarithms
of the penalties. With ``V = A^-1 (Gt W - Ct)``, its derivatives are

    d error / d log alpha_b  =  -2 alpha_b  sum of (W * V) over the rows of block b .

A quasi-Newton method minimises the error. It needs one Cholesky factorisation for each fold and
step (`_PrimalFold`). If there are fewer samples than inputs, the error is computed from the Gram
matrix ``K = sum_b X_b X_b' / alpha_b`` of the samples (`_DualError`).

The error has several minima. The search starts from equal penalties and from penalties in
proportion to the variances of the blocks. From the best minimum, it changes the penalty of one
block at a time by a large step (`find_block_penalties`). It uses no random numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, qr
from scipy.optimize import minimize

from ..core.moments import CentredMoments
from ..core.namespace import to_numpy
from ..core.threads import limit_threads
from ..data.blocks import InputBlocks
from ..streaming.budget import search_budget
from .folds import Fold
from .sources import FoldMoments, Rows

__all__ = ["BlockPenalties", "block_errors", "find_block_penalties"]

# Bounds of the penalties, as multiples of the mean square of the inputs of a block.
_RANGE = (1e-6, 1e6)
# Penalties of the two starts, as multiples of the mean square.
_START = 10.0 ** np.arange(-4.0, 4.0)
# Step of the logarithm of one penalty in the search for other minima.
_JUMP = math.log(1e3)
# The search stops if the error decreases by less than this share.
_GAIN = 1e-4
# A block is left out if the error increases by at most this share.
_DROP = 1e-5
_MAX_STEPS = 60


@dataclass(frozen=True, eq=False)
class BlockPenalties:
    """Best penalties of blocks, and all penalties that were tried.

    Parameters
    ----------
    penalties : array of shape (n_blocks,)
        Best penalties in the units of the scaled inputs. A block that is left out has an infinite
        penalty.
    error : float
        Held-out mean squared error of ridge regression with these penalties.
    path : array of shape (n_steps, n_blocks)
        Penalties of all evaluations, in order.
    path_errors : array of shape (n_steps,)
        Errors of all evaluations.
    squares : array of shape (n_blocks,)
        Sum of squares of the centred inputs of each block.
    """

    penalties: np.ndarray
    error: float
    path: np.ndarray
    path_errors: np.ndarray
    squares: np.ndarray

    def common(self) -> float:
        """Return the common penalty for which scaling keeps the total sum of squares.

        The scaled inputs are the inputs divided by the square roots of their penalties, and
        multiplied by the square root of the common penalty.
        """
        total = float(np.sum(self.squares / self.penalties))
        return float(self.squares.sum()) / total


ErrorOf = Callable[[np.ndarray], tuple[float, np.ndarray]]
Map = Callable[..., Iterable[Any]]


def block_errors(
    source: Rows | FoldMoments,
    blocks: InputBlocks,
    over: Map = map,
) -> ErrorOf:
    """Return the function from logarithms of penalties to the held-out error and its gradient.

    Parameters
    ----------
    source : Rows or FoldMoments
        Data of the folds.
    blocks : InputBlocks
        Blocks of inputs.
    over : callable
        Function such as `map` that applies a function to all folds.
    """
    index, n_blocks = blocks.index, len(blocks)
    if isinstance(source, Rows) and source.n_training < source.n_features:
        return _DualError(source, blocks, over)
    folds = [_PrimalFold.of(*_moments(source, fold)) for fold in source.folds]

    def error(logs: np.ndarray) -> tuple[float, np.ndarray]:
        alpha = np.exp(logs)[index]
        total, slopes = 0.0, np.zeros(n_blocks)
        for value, by_column in over(lambda fold: fold.error(alpha), folds):
            total += value
            slopes += np.bincount(index, by_column, minlength=n_blocks)
        return total / len(folds), slopes / len(folds)

    return error


def _moments(source: Rows | FoldMoments, fold: Fold) -> tuple[CentredMoments, CentredMoments]:
    """Return the training moments, about the centres of a fit, and the held-out moments."""
    seen, unseen = (
        side
        if isinstance(side, CentredMoments)
        else CentredMoments.from_checked(side.X, side.Y, side.w)
        for side in (source.seen(fold), source.unseen(fold))
    )
    return seen.centred(source.fit_intercept), unseen


# ---------------------------------------------------------------- from moments


@dataclass(frozen=True, eq=False)
class _PrimalFold:
    """Moments of a fold, which determine its held-out error.

    The error depends on the outputs only through products with the training moments. If there are
    more outputs than inputs, the outputs are rotated to as many directions as there are inputs. The
    rotation changes the squared error by a constant, which is part of `yy`.
    """

    G: np.ndarray  # X'X of the training samples, (d, d)
    C: np.ndarray  # X'Y of the training samples, (d, k)
    Gt: np.ndarray  # X'X of the held-out samples about the training means, (d, d)
    Ct: np.ndarray  # X'Y of the held-out samples about the training means, (d, k)
    yy: float
    size: float
    most: float  # largest penalty, at which coefficients are zero up to rounding

    @classmethod
    def of(cls, seen: CentredMoments, unseen: CentredMoments) -> _PrimalFold:
        """Return the fold of moments of any array library."""
        unseen = unseen.about(seen.mean_x, seen.mean_y)
        d = seen.n_features
        G, Gt = to_numpy(seen.Sxx), to_numpy(unseen.Sxx)
        C, Ct = (np.reshape(to_numpy(m.Sxy), (d, -1)) for m in (seen, unseen))
        n_outputs = C.shape[1]
        if n_outputs > d:
            Q = qr(C.T, mode="economic")[0]
            C, Ct = C @ Q, Ct @ Q
        most = 1e14 * max(float(np.trace(G)), np.finfo(float).tiny)
        return cls(G, C, Gt, Ct, float(unseen.syy), unseen.weight * n_outputs, most)

    def error(self, alpha: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the mean squared held-out error, and its derivatives by log penalty of inputs."""
        A, alpha = self.G.copy(), np.minimum(alpha, self.most)
        A[np.diag_indices_from(A)] += alpha
        factor = cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
        W = cho_solve(factor, self.C, check_finite=False)
        GW = self.Gt @ W
        squares = self.yy + float(np.vdot(W, GW - 2 * self.Ct))
        V = cho_solve(factor, GW - self.Ct, overwrite_b=True, check_finite=False)
        slopes = -2 * alpha * np.einsum("ij,ij->i", W, V)
        return max(squares, 0.0) / self.size, slopes / self.size


# ---------------------------------------------------------------- from samples


class _DualError:
    """Held-out error of all folds from Gram matrices of the samples, one for each block.

    If these matrices exceed the memory budget, they are computed again in every step.

    Centring and weighting are linear. With linear maps ``T`` and ``V`` from all samples to training
    and held-out samples, a fold needs ``T K T'`` and ``V K T'``.

    Parameters
    ----------
    source, blocks, over
        Parameters of `block_errors`.
    """

    def __init__(
        self,
        source: Rows,
        blocks: InputBlocks,
        over: Map,
    ) -> None:
        samples, self._over = source.data, over
        X = to_numpy(samples.X).astype(np.float64)
        if source.fit_intercept:  # a common centre reduces rounding errors
            X = X - X.mean(axis=0)
        Y = np.reshape(to_numpy(samples.Y), (X.shape[0], -1)).astype(np.float64)
        n = X.shape[0]
        self._parts = [X[:, blocks.columns(b)] for b in range(len(blocks))]
        self._grams: np.ndarray | None = None
        if 8 * len(blocks) * n * n <= search_budget():
            self._grams = np.stack([A @ A.T for A in self._parts])
        w = np.ones(n) if samples.w is None else to_numpy(samples.w)
        self._folds = [
            _DualFold.of(fold.train, fold.test, w, Y, source.fit_intercept) for fold in source.folds
        ]

    def __call__(self, logs: np.ndarray) -> tuple[float, np.ndarray]:
        gamma = np.exp(-logs)
        K = self._combined(gamma)
        total, adjoint = 0.0, np.zeros_like(K)
        for value, part in self._over(lambda fold: fold.error(K), self._folds):
            total += value
            adjoint += part
        slopes = -gamma * self._products(adjoint)
        return total / len(self._folds), slopes / len(self._folds)

    def _combined(self, gamma: np.ndarray) -> np.ndarray:
        """Return ``sum_b gamma_b X_b X_b'``."""
        if self._grams is not None:
            return np.tensordot(gamma, self._grams, 1)
        return sum(g * (A @ A.T) for g, A in zip(gamma, self._parts, strict=True))

    def _products(self, adjoint: np.ndarray) -> np.ndarray:
        """Return the inner product of a matrix with the Gram matrix of each block."""
        if self._grams is not None:
            return np.tensordot(self._grams, adjoint, 2)
        return np.array([np.vdot(A, adjoint @ A) for A in self._parts])


@dataclass(frozen=True, eq=False)
class _Rows:
    """Linear map from all N samples to n samples, centred and weighted.

    The map selects samples, subtracts the mean of the training samples, and multiplies by the
    square roots of the weights. `__call__` applies the map, and `transposed` its transpose.
    """

    index: np.ndarray  # indices of the samples, (n,)
    root: np.ndarray  # square roots of the weights, (n,)
    mean: np.ndarray  # shares of all samples in the mean of the training samples, (N,)

    def __call__(self, A: np.ndarray) -> np.ndarray:
        return self.root[:, None] * (A[self.index] - self.mean @ A)

    def transposed(self, B: np.ndarray) -> np.ndarray:
        B = self.root[:, None] * B
        found = np.outer(-self.mean, B.sum(axis=0))
        found[self.index] += B
        return found


@dataclass(frozen=True, eq=False)
class _DualFold:
    """Samples and outputs of a fold, centred and weighted."""

    train: _Rows
    test: _Rows
    Y: np.ndarray  # (n, k)
    Yt: np.ndarray  # (m, k)
    size: float

    @classmethod
    def of(
        cls, train: np.ndarray, test: np.ndarray, w: np.ndarray, Y: np.ndarray, fit_intercept: bool
    ) -> _DualFold:
        """Return the fold of training and test indices, with weights and outputs of all samples."""
        train, test = train[w[train] > 0], test[w[test] > 0]
        mean = np.zeros(w.size)
        if fit_intercept:
            np.add.at(mean, train, w[train] / w[train].sum())
        size = float(w[test].sum()) * Y.shape[1]
        T, V = (_Rows(rows, np.sqrt(w[rows]), mean) for rows in (train, test))
        Y, Yt = T(Y), V(Y)
        n = Y.shape[0] + Yt.shape[0]
        if Y.shape[1] > n:  # a rotation to fewer outputs does not change the squared error
            R = qr(np.concatenate([Y, Yt]).T, mode="r")[0][:n].T
            Y, Yt = R[: Y.shape[0]], R[Y.shape[0] :]
        return cls(T, V, Y, Yt, size)

    def error(self, K: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the mean squared held-out error, and its derivative by K."""
        TK = self.train(K)
        M, cross = self.train(TK.T), self.test(TK.T)
        M[np.diag_indices_from(M)] += 1.0
        factor = cho_factor(M, lower=True, overwrite_a=True, check_finite=False)
        a = cho_solve(factor, self.Y, check_finite=False)
        R = cross @ a - self.Yt
        Q = cho_solve(factor, cross.T @ R, check_finite=False)
        left = (2 / self.size) * (self.test.transposed(R) - self.train.transposed(Q))
        return float(np.vdot(R, R)) / self.size, left @ self.train.transposed(a).T


# ---------------------------------------------------------------- the search


def find_block_penalties(
    source: Rows | FoldMoments,
    blocks: InputBlocks,
    n_jobs: int = 1,
) -> BlockPenalties | None:
    """Find the penalties of blocks with the least held-out error of ridge regression.

    Parameters
    ----------
    source, blocks
        Parameters of `block_errors`.
    n_jobs : int
        Number of folds that run in parallel, each with one thread.

    Returns
    -------
    BlockPenalties or None
        Best penalties. None if all inputs are constant, so that penalties have no effect.
    """
    squares = np.bincount(blocks.index, source.column_squares(), minlength=len(blocks))
    if not (squares > 0).any():
        return None
    sizes = np.bincount(blocks.index, minlength=len(blocks))
    n_train = source.n_different()
    mean = np.where(squares > 0, squares / np.minimum(sizes, n_train), 1.0)
    common = float(squares.sum()) / min(source.n_features, n_train)
    with limit_threads(1), ThreadPoolExecutor(n_jobs) as pool:
        over = pool.map if n_jobs > 1 else map
        finder = _Search(block_errors(source, blocks, over), mean)
        starts = [
            finder.best_of([np.full(len(blocks), common * t) for t in _START]),
            finder.best_of([mean * t for t in _START]),
        ]
        best = min((finder.descend(np.log(start)) for start in starts), key=finder.value)
        best = finder.jump(best)
        best[squares == 0] = math.inf  # constant blocks
        best = finder.drop(best)
    path = np.exp(np.array([logs for logs, _ in finder.seen]))
    errors = np.array([error for _, error in finder.seen])
    return BlockPenalties(np.exp(best), finder.value(best), path, errors, squares)


class _Search:
    """Minimisation of the error over the logarithms of the penalties.

    Parameters
    ----------
    error_of : callable
        Function from logarithms of penalties to the error and its gradient.
    mean : array of shape (n_blocks,)
        Mean square of the inputs of each block, which is the unit of its penalty.
    """

    def __init__(self, error_of: ErrorOf, mean: np.ndarray) -> None:
        self._error_of = error_of
        self.seen: list[tuple[np.ndarray, float]] = []
        self._values: dict[bytes, float] = {}
        self._bounds = np.log(np.outer(mean, _RANGE))

    def evaluate(self, logs: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the error and its gradient; the error is infinite if a factorisation fails."""
        try:
            value, slopes = self._error_of(logs)
        except LinAlgError:
            value, slopes = math.inf, np.zeros_like(logs)
        if not math.isfinite(value):
            value, slopes = math.inf, np.zeros_like(logs)
        self._values[logs.tobytes()] = value
        self.seen.append((logs.copy(), value))
        return value, slopes

    def value(self, logs: np.ndarray) -> float:
        """Return the error from the cache, or compute it."""
        found = self._values.get(logs.tobytes())
        return self.evaluate(logs)[0] if found is None else found

    def best_of(self, penalties: Sequence[np.ndarray]) -> np.ndarray:
        """Return the best of several vectors of penalties."""
        return min(penalties, key=lambda p: self.value(np.log(p)))

    def descend(self, start: np.ndarray) -> np.ndarray:
        """Return the local minimum that a quasi-Newton method finds from `start`."""
        start = np.clip(start, *self._bounds.T)
        unit = self.value(start)
        if not 0 < unit < math.inf:
            return start

        def relative(logs: np.ndarray) -> tuple[float, np.ndarray]:
            value, slopes = self.evaluate(logs)
            return min(value / unit, 1e10), slopes / unit

        found = minimize(
            relative,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=self._bounds,
            options={"maxiter": _MAX_STEPS, "ftol": 1e-7, "gtol": 1e-6},
        )
        return found.x if self.value(found.x) < unit else start

    def jump(self, best: np.ndarray) -> np.ndarray:
        """Change the penalty of one block by a large step and descend, while the error falls."""
        for _ in range(best.size):
            tried = []
            for b in range(best.size):
                for step in (-_JUMP, _JUMP):
                    logs = best.copy()
                    logs[b] = np.clip(logs[b] + step, *self._bounds[b])
                    tried.append(logs)
            found = self.descend(min(tried, key=self.value))
            if not self.value(found) < (1 - _GAIN) * self.value(best):
                return best
            best = found
        return best

    def drop(self, best: np.ndarray) -> np.ndarray:
        """Leave out blocks, the least important first, if the error rises by at most `_DROP`."""
        while np.isfinite(best).sum() > 1:
            tried = []
            for b in np.flatnonzero(np.isfinite(best)):
                logs = best.copy()
                logs[b] = math.inf
                tried.append(logs)
            found = min(tried, key=self.value)
            if self.value(found) > (1 + _DROP) * self.value(best):
                return best
            best = found
        return best
