"""Outputs with missing entries, in the coordinates in which a complete fit is an approximation.

Let ``sqrt(w) (x - mean_x) = Q diag(s) P'``. With an intercept, `Q` has the additional column
``sqrt(w / sum w)``. The columns are orthonormal. Predictions are ``E C`` with ``E = Q / sqrt(w)``
and some `C` of shape (k, D). A fit needs the products ``A = Q' sqrt(w) Y`` of the observed outputs
(zero where missing), their sum of squares, and one operation on the missing entries: the products
of predictions at these entries (`Observed.missing_products`). The outputs themselves are read once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse

from ..core.checks import check_finite
from ..core.namespace import row_blocks
from ..core.spectral import Inputs, Spectral

__all__ = ["Observed", "SampleBasis", "has_observation"]

# Bytes of a block of predictions, which should stay in the cache between two products.
_BLOCK = 2**22
# Below this share of missing entries, it is faster to predict only the missing entries.
_SPARSE = 1 / 16


def has_observation(Y: np.ndarray, w: np.ndarray | None = None) -> np.ndarray:
    """Return which samples, (n_samples,), have weight and at least one observed output.

    >>> has_observation(np.array([[1.0, np.nan], [np.nan, np.nan], [3.0, 4.0]]))
    array([ True, False,  True])
    """
    found = np.empty(Y.shape[0], dtype=bool)
    for rows in row_blocks(Y.shape[0], Y.nbytes // max(Y.shape[0], 1), _BLOCK):
        block = Y[rows].reshape(rows.stop - rows.start, -1)
        found[rows] = ~np.isnan(block).all(axis=1)
    return found if w is None else found & (w > 0)


def _zero_for_nan(A: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Return `A` with zeros for NaN, without a branch for each entry."""
    negative = np.fmin(A, 0.0)
    np.fmax(A, 0.0, out=out)
    out += negative
    return out


@dataclass(frozen=True, eq=False)
class SampleBasis:
    """The inputs of all samples in an orthonormal basis.

    Parameters
    ----------
    Q : array of shape (n_samples, k)
        Orthonormal basis, ``k = r + 1`` with an intercept, whose column is the last, and r without.
    s : array of shape (r,)
        Singular values of the centred (and weighted) inputs.
    basis : array of shape (n_features, r)
        As in `Spectral`: `P`, or ``Q / s`` for a kernel expansion.
    mean_x : array of shape (n_features,)
    root : array of shape (n_samples, 1), or None
        Square roots of the weights, all positive.
    solver, dtype
        As in `Whitened`.
    """

    Q: np.ndarray
    s: np.ndarray
    basis: np.ndarray
    mean_x: np.ndarray
    root: np.ndarray | None
    solver: str
    dtype: str

    @classmethod
    def from_arrays(
        cls, X: np.ndarray, w: np.ndarray | None, alpha: float, *, fit_intercept: bool = True
    ) -> SampleBasis:
        """Factorise validated inputs with positive weights."""
        inputs = Inputs.of(X, w, min_alpha=alpha, fit_intercept=fit_intercept)
        n, root = X.shape[0], None if w is None else np.sqrt(w)[:, None]
        Q = inputs.basis if root is None else inputs.basis / root
        weight = float(n) if w is None else float(w.sum())
        if fit_intercept:
            one = np.full((n, 1), 1 / math.sqrt(n)) if root is None else root / math.sqrt(weight)
            Q = np.hstack([Q, one])
        return cls(Q, inputs.s, inputs.P, inputs.mean_x, root, inputs.solver, inputs.dtype)

    @property
    def fit_intercept(self) -> bool:
        """Whether `Q` has the column of the intercept."""
        return self.Q.shape[1] > self.s.size

    @cached_property
    def E(self) -> np.ndarray:
        """``Q / sqrt(w)``: predictions are ``E C``."""
        return self.Q if self.root is None else self.Q / self.root

    @cached_property
    def B(self) -> np.ndarray:
        """``Q sqrt(w)``: outputs `Y` have the products ``B'Y``."""
        return self.Q if self.root is None else self.Q * self.root

    @property
    def weight(self) -> float:
        """Sum of the weights."""
        return float(self.Q.shape[0] if self.root is None else (self.root**2).sum())


class Observed:
    """The observed entries of outputs, and the positions of the missing ones.

    Parameters
    ----------
    samples : SampleBasis
    Y : array of shape (n_samples, d1, ..., dp)
        Outputs, NaN where missing. Every sample has an observed entry. The array is read twice and
        not copied.

    Attributes
    ----------
    Y : array of shape (n_samples, D)
        The flattened outputs.
    shape : tuple of int
        ``(d1, ..., dp)``.
    A : array of shape (k, D)
        ``B'(Y - offset) / scale``, zero where missing.
    yy : float
        ``sum w ((y - offset) / scale)^2`` over the observed entries.
    offset : array of shape (D,)
        Mean of the observed entries of each output; zero without an intercept.
    scale : float
        Divisor of the outputs; 1 unless squares would overflow or underflow.
    missing : array of bool, of shape (n_samples, D)
        Whether an entry is missing.
    never : array of bool, of shape (D,)
        Outputs without any observed entry.
    """

    @np.errstate(over="ignore", invalid="ignore")  # the results are checked at the end
    def __init__(self, samples: SampleBasis, Y: np.ndarray):
        self.samples, self.shape = samples, tuple(Y.shape[1:])
        self.Y = Y.reshape(Y.shape[0], -1)
        self.missing = np.empty(self.Y.shape, dtype=bool)
        self.offset, self.never = self._find_means()
        self.scale = 1.0
        self.A, self.yy = self._sum_products()
        if not 1e-200 < self.yy < 1e200:
            self.scale = self._largest()
            self.A, self.yy = self._sum_products()
        self._rows: np.ndarray | None = None
        if np.count_nonzero(self.missing) < _SPARSE * self.missing.size:
            self._rows, self._columns = np.divmod(np.flatnonzero(self.missing), self.Y.shape[1])

    def _blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield blocks of rows, with memory for their outputs."""
        n, size = self.missing.shape
        parts = row_blocks(n, 8 * size, _BLOCK)
        place = np.empty((parts[0].stop, size))
        for rows in parts:
            yield rows, place[: rows.stop - rows.start]

    def _find_means(self) -> tuple[np.ndarray, np.ndarray]:
        """Find missing entries, means over observed ones, and outputs that are never observed."""
        n, root = len(self.Y), self.samples.root
        w = np.full(n, 1 / n) if root is None else root[:, 0] ** 2 / self.samples.weight
        sums, weights = np.zeros((2, self.Y.shape[1]))
        for rows, block in self._blocks():
            np.isnan(self.Y[rows], out=self.missing[rows])
            np.logical_not(self.missing[rows], out=block)
            weights += w[rows] @ block
            sums += w[rows] @ _zero_for_nan(self.Y[rows], block)
        never = np.asarray(self.missing.all(axis=0))
        if never.all():
            raise ValueError("y has no observed entry: all entries are missing.")
        return sums / np.where(never, 1.0, weights) * self.samples.fit_intercept, never

    def _sum_products(self) -> tuple[np.ndarray, float]:
        B, root = self.samples.B, self.samples.root
        A, yy = np.zeros((B.shape[1], self.Y.shape[1])), 0.0
        for rows, block in self._blocks():
            np.subtract(self.Y[rows], self.offset, out=block)
            _zero_for_nan(block, block)
            if self.scale != 1.0:
                block /= self.scale
            A += B[rows].T @ block
            if root is not None:
                block *= root[rows]
            yy += float(np.vdot(block, block))
        return A, yy

    def _largest(self) -> float:
        """Return a divisor of the outputs, so that squares neither overflow nor underflow."""
        largest = 0.0
        for rows, block in self._blocks():
            _zero_for_nan(self.Y[rows], block)
            largest = max(largest, float(block.max()), -float(block.min()))
        if math.isinf(largest):
            check_finite(np.where(self.missing, 0.0, self.Y).reshape(-1, *self.shape), "y")
        return largest if largest > 0 else 1.0

    @cached_property
    def patterns(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Distinct columns of `missing`, with the indices of the columns that equal each."""
        _, first, which = np.unique(
            np.packbits(self.missing, axis=0), axis=1, return_index=True, return_inverse=True
        )
        which = which.ravel()  # numpy 2.0.0 keeps the axis
        order = np.argsort(which, kind="stable")
        ends = np.cumsum(np.bincount(which))[:-1]
        pairs = zip(first, np.split(order, ends), strict=True)
        return [(self.missing[:, column], outputs) for column, outputs in pairs]

    def mean(self, row: np.ndarray) -> np.ndarray:
        """Return the mean of the imputed outputs, (d1, ..., dp); NaN if never observed.

        Parameters
        ----------
        row : array of shape (1, D), or (0, D) without an intercept
        """
        mean = self.offset + self.scale / math.sqrt(self.samples.weight) * row.sum(axis=0)
        return np.where(self.never, math.nan, mean).reshape(self.shape)

    def spectral(
        self, products: np.ndarray | None = None, norm: float = 0.0, *, scale: float | None = None
    ) -> Spectral:
        """Return the problem of outputs with imputed values, for all penalties at once.

        Parameters
        ----------
        products : array of shape (k, D), optional
            Products of the imputed outputs, as in `A`. The default is mean imputation.
        norm : float
            Squared (weighted) norm of the imputed values, about `offset` and divided by `scale`.
        scale : float, optional
            Factor of the products. The default undoes the division by `scale`.
        """
        scale = self.scale if scale is None else scale
        samples, r = self.samples, self.samples.s.size
        products = self.A if products is None else products
        scatter = self.yy + norm - float(np.sum(products[r:] ** 2))
        return Spectral(
            s=samples.s,
            T=scale * products[:r].reshape(r, *self.shape),
            basis=samples.basis,
            syy=max(scatter, 0.0) * scale * scale,
            mean_x=samples.mean_x,
            mean_y=self.mean(products[r:]),
            response_grams=None,
            solver=samples.solver,
            dtype=samples.dtype,
            weight=samples.weight,
        )

    def missing_products(self, U: np.ndarray, K: np.ndarray) -> np.ndarray:
        """Return ``B'`` times the predictions ``E U K`` at missing entries, of shape (k, D).

        Parameters
        ----------
        U, K : arrays of shape (k, m) and (m, D)
            Factors of ``C = U K``. A smaller m is faster.
        """
        L = self.samples.E @ U
        return self._dense_products(L, K) if self._rows is None else self._sparse_products(L, K)

    def _dense_products(self, L: np.ndarray, K: np.ndarray) -> np.ndarray:
        B = self.samples.B
        out = np.zeros((B.shape[1], K.shape[1]))
        for rows, block in self._blocks():
            np.matmul(L[rows], K, out=block)
            block *= self.missing[rows]
            out += B[rows].T @ block
        return out

    def _sparse_products(self, L: np.ndarray, K: np.ndarray) -> np.ndarray:
        assert self._rows is not None
        values, Kt = np.empty(self._rows.size), np.ascontiguousarray(K.T)
        step = max(_BLOCK // (8 * L.shape[1]), 1)
        for start in range(0, values.size, step):
            part = slice(start, start + step)
            left, right = L[self._rows[part]], Kt[self._columns[part]]
            np.einsum("ij,ij->i", left, right, out=values[part])
        ends = np.searchsorted(self._rows, np.arange(L.shape[0] + 1))
        predicted = scipy.sparse.csr_array((values, self._columns, ends), (L.shape[0], K.shape[1]))
        return np.ascontiguousarray((predicted.T @ self.samples.B).T)
