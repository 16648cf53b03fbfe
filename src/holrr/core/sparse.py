"""Sparse inputs: products that skip zeros, and implicit centring.

``X'X`` about the means is ``S'S - n m m'`` for a sparse matrix S with means m. The subtraction
cancels digits only if the mean of a column is much larger than its spread. This is impossible for a
column that is zero in at least half of the samples: at most half of ``S'S`` is subtracted. Columns
with fewer zeros are stored as dense columns and centred explicitly, which at most doubles their
memory. No other part of X is made dense, apart from a few rows at a time (`dense_rows`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse

from .namespace import Array, namespace_of, row_blocks

__all__ = [
    "CentredColumns",
    "about_mean_times",
    "centre_columns",
    "dense_rows",
    "gram_of_rows",
    "is_sparse",
]

# A column is stored dense if its nonzero entries have more than this share of the weight.
_DENSE = 0.5
# Bytes of rows that are made dense together, and of a part of a Gram matrix.
_BLOCK = 2**25


def is_sparse(A: object) -> bool:
    """Return whether `A` is a sparse matrix or array of SciPy."""
    return bool(scipy.sparse.issparse(A))


def dense_rows(X: Any) -> Iterator[np.ndarray]:
    """Yield blocks of consecutive rows of a sparse matrix in CSR format as dense matrices."""
    for rows in row_blocks(X.shape[0], 8 * X.shape[1], _BLOCK):
        yield X[rows].toarray()


def about_mean_times(X: Any, mean: Array, B: Array) -> Array:
    """Return ``(X - mean) B`` for inputs (n, d), which may be sparse, and B of shape (d, k)."""
    if is_sparse(X):
        return X.astype(np.float64, copy=False) @ B - mean @ B
    xp = namespace_of(X)
    return (xp.astype(X, xp.float64, copy=False) - mean) @ B


def gram_of_rows(A: Any) -> np.ndarray:
    """Return ``A A'`` of a sparse matrix in CSR format as a dense matrix, computed in parts.

    The result is exactly symmetric: both halves add the same products in the same order.
    """
    n, At = A.shape[0], A.T.tocsr()
    out = np.empty((n, n))
    for rows in row_blocks(n, 16 * n, _BLOCK):
        (A[rows] @ At).toarray(out=out[rows])
    return out


@dataclass(frozen=True, eq=False)
class CentredColumns:
    """Sparse inputs times the roots of their weights, about their means.

    The inputs are ``S - r m'`` in sparse columns, with the roots r of the weights and the means m,
    and D in dense columns.
    """

    S: Any  # (n, n_features) in CSR format, without the dense columns
    r: np.ndarray  # roots of the weights, (n,)
    mean: np.ndarray  # means of all columns, (n_features,)
    shift: np.ndarray  # `mean` with zeros for the dense columns
    dense: np.ndarray  # positions of the dense columns, (k,)
    D: np.ndarray  # (n, k)

    @property
    def weight(self) -> float:
        """Sum of the weights."""
        return float(self.r @ self.r)

    def rows(self, rows: slice) -> CentredColumns:
        """Return some of the samples, centred by the means of all samples."""
        return replace(self, S=self.S[rows], r=self.r[rows], D=self.D[rows])

    def squares(self) -> np.ndarray:
        """Return the sum of squares of each column, of shape (n_features,)."""
        found = np.bincount(self.S.indices, np.square(self.S.data), minlength=self.S.shape[1])
        found = found - self.weight * np.square(self.shift)
        found[self.dense] = np.einsum("ij,ij->j", self.D, self.D)
        return found

    def inner(self) -> np.ndarray:
        """Return ``X'X``, of shape (n_features, n_features), without another array of its size."""
        G = gram_of_rows(self.S.T.tocsr())
        m = math.sqrt(self.weight) * self.shift
        for rows in row_blocks(len(G), 8 * len(G), _BLOCK):
            G[rows] -= m[rows, None] * m
        if self.dense.size:
            across = self.transposed_times(self.D)
            G[:, self.dense] = across
            G[self.dense, :] = across.T
            G[np.ix_(self.dense, self.dense)] = self.D.T @ self.D
        return G

    def outer(self) -> np.ndarray:
        """Return ``XX'``, of shape (n, n)."""
        K, r = gram_of_rows(self.S), self.r
        along = self.S @ self.shift  # S m
        K -= along[:, None] * r
        K -= r[:, None] * along
        K += (self.shift @ self.shift) * (r[:, None] * r)
        if self.dense.size:
            K += self.D @ self.D.T
        return K

    def transposed_times(self, B: np.ndarray) -> np.ndarray:
        """Return ``X'B``, of shape (n_features, k), for a dense matrix (n, k)."""
        found = np.asarray(self.S.T @ B)
        found -= self.shift[:, None] * (self.r @ B)
        if self.dense.size:
            found[self.dense] = self.D.T @ B
        return found


def centre_columns(X: Any, w: np.ndarray | None, *, centre: bool = True) -> CentredColumns:
    """Centre sparse inputs in CSR format, implicitly.

    Parameters
    ----------
    X : sparse matrix of shape (n_samples, n_features)
        In CSR format and float64, without duplicate entries.
    w : array of shape (n_samples,), or None
        Sample weights, with a positive sum.
    centre : bool
        Whether to subtract the means.
    """
    n, d = X.shape
    r = np.ones(n) if w is None else np.sqrt(w)
    w = np.ones(n) if w is None else w
    weight = float(w.sum())
    counts = np.diff(X.indptr)
    S = X if (r == 1).all() else _with_data(X, X.data * np.repeat(r, counts))
    if not centre:
        return CentredColumns(
            S, r, np.zeros(d), np.zeros(d), np.empty(0, np.intp), np.empty((n, 0))
        )
    of_entries = np.repeat(w, counts)
    present = np.bincount(X.indices, of_entries, minlength=d)
    dense = np.flatnonzero(present > _DENSE * weight)
    mean = np.bincount(X.indices, of_entries * X.data, minlength=d) / weight
    D = np.empty((n, dense.size))
    if dense.size:
        D[...] = X[:, dense].toarray()
        mean[dense] = w @ D / weight
        D -= mean[dense]
        drift = w @ D / weight  # rounding error of the mean, see `core.spectral`
        D -= drift
        mean[dense] += drift
        D *= r[:, None]
        is_dense = np.zeros(d, dtype=bool)
        is_dense[dense] = True
        S = _with_data(S, np.where(is_dense[S.indices], 0.0, S.data))
        S.eliminate_zeros()
    shift = mean.copy()
    shift[dense] = 0.0
    return CentredColumns(S, r, mean, shift, dense, D)


def _with_data(X: Any, data: np.ndarray) -> Any:
    """Return a sparse matrix with a copy of the sparsity pattern of `X`."""
    return scipy.sparse.csr_array((data, X.indices.copy(), X.indptr.copy()), shape=X.shape)
