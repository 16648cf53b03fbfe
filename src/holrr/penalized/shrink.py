"""Singular value thresholding of the unfoldings of a tensor, and their norms."""

from __future__ import annotations

import math

import numpy as np

from ..core.namespace import Array, asarray_like, eigh, namespace_of, svd, to_numpy
from ..core.tensor import fold, gram, mode_product, unfold

__all__ = ["nuclear_norm", "shrink", "spectral_norm"]

# Below this share of the largest singular value, the eigenvalues of a Gram matrix, whose rounding
# error is eps * sigma_max^2, are not accurate enough for comparison with the threshold.
_GRAM_LIMIT = 1e-5


def shrink(A: Array, mode: int, threshold: float) -> tuple[Array, Array]:
    """Lower the singular values of one unfolding by a threshold, but not below zero.

    This is the proximal map of ``threshold * ||A_(mode)||_*`` (Cai, Candes and Shen 2010). If the
    unfolding has at most as many rows as columns, the eigenvectors of the Gram matrix of its rows
    are used, unless the threshold is so small that rounding errors matter. Otherwise the unfolding
    itself is decomposed.

    The second result is an orthonormal basis of the range of the unfolding of the first result, of
    shape (d_mode, k).
    """
    if A.shape[mode] ** 2 <= math.prod(A.shape):
        lam, U = eigh(gram(A, mode))
        sigma = np.sqrt(np.maximum(to_numpy(lam), 0.0))
        if threshold >= _GRAM_LIMIT * sigma[0]:
            k = int((sigma > threshold).sum())
            U, keep = U[:, :k], asarray_like(1.0 - threshold / sigma[:k], A)
            return mode_product(A, (U * keep) @ U.T, mode), U
    U, s, P = svd(unfold(A, mode))
    sigma = to_numpy(s)
    k = int((sigma > threshold).sum())
    lowered = asarray_like(sigma[:k] - threshold, A)
    return fold((U[:, :k] * lowered) @ P[:, :k].T, mode, A.shape), U[:, :k]


def nuclear_norm(A: Array, mode: int) -> float:
    """Return the sum of the singular values of an unfolding."""
    # The Gram matrix is not used, since the square roots of its rounding errors would add up.
    xp = namespace_of(A)
    return float(xp.sum(xp.linalg.svdvals(unfold(A, mode))))


def spectral_norm(A: Array, mode: int) -> float:
    """Return the largest singular value of an unfolding."""
    n, rest = A.shape[mode], math.prod(A.shape) // A.shape[mode]
    M = unfold(A, mode)
    lam, _ = eigh(gram(A, mode) if n <= rest else M.T @ M)
    return math.sqrt(max(float(lam[0]), 0.0))
