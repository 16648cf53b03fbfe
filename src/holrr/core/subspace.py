"""Leading eigenpairs of large matrices on an accelerator, where a decomposition takes long.

An accelerator multiplies matrices a hundred times faster than it decomposes them. So a few rounds
of subspace iteration are tried first, and kept where the residuals of the pairs that they find are
those of rounding; a spectrum without a gap is decomposed in full.
"""

from __future__ import annotations

import numpy as np

from .namespace import (
    Array,
    asarray_like,
    eigh,
    eigh_top,
    fix_signs,
    namespace_of,
    on_host,
    squared_norm,
    symmetrise,
    to_numpy,
)

__all__ = ["leading_pairs"]

# From this many rows on the rounds are quicker than a decomposition, by far.
_LARGE = 512
_TRIES, _ROUNDS, _MORE = 2, 3, 8
_EPS = float(np.finfo(float).eps)


def leading_pairs(A: Array, k: int) -> tuple[np.ndarray, Array]:
    """At least `k` leading eigenvalues (on the host) and `k` eigenvectors, as of `eigh_top`.

    Parameters
    ----------
    A : array of shape (n, n)
        Positive semidefinite.
    k : int
    """
    found = None
    if A.shape[0] >= _LARGE and 8 * (k + _MORE) <= A.shape[0] and not on_host(A):
        found = _iterated(A, k)
    return eigh_top(A, k) if found is None else found


def _iterated(A: Array, k: int) -> tuple[np.ndarray, Array] | None:
    """The pairs by subspace iteration; None where rounds and room do not suffice."""
    xp, n = namespace_of(A), A.shape[0]
    scale = float(xp.max(xp.linalg.diagonal(A)))
    if not 0 < scale < np.inf:
        return None
    A = A / scale
    start = np.random.default_rng(0).standard_normal((n, k + _MORE))
    Q = asarray_like(start, A, dtype=A.dtype)
    for _ in range(_TRIES):
        for _ in range(_ROUNDS):
            Q, _ = xp.linalg.qr(A @ (A @ Q))
        lam, V = eigh(symmetrise(Q.T @ (A @ Q)))
        lam, U = lam[:k], Q @ V[:, :k]
        if float(squared_norm(A @ U - U * lam)) ** 0.5 <= 32 * _EPS * float(lam[0]):
            return scale * to_numpy(lam), fix_signs(U)
    return None
