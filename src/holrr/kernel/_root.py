"""Square roots of ``Z'Z``: in full, or the rows of the leading directions alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..core.approximate import Whole
from ..core.namespace import (
    NUMPY_LIMIT,
    Array,
    asarray_like,
    cholesky,
    eigh,
    namespace_of,
    solve_triangular,
)
from ..core.subspace import leading_pairs
from ..core.tensor import partial_traces

__all__ = ["leading_rows", "square_root"]

# Rows, the map from coordinates to the outputs' side, and what is known of all rows.
Root = tuple[Array, Callable[[Array], Array], Whole | None]


def square_root(S: Array, noise: float) -> Root:
    """A matrix R with ``R'R = S``, the function that solves ``R X = M``, and nothing else.

    The Cholesky factor where it is well conditioned, and else ``diag(sigma) V'`` from the
    eigenpairs.
    """
    xp = namespace_of(S)
    L, _ = cholesky(S)
    if L is not None:
        d = xp.linalg.diagonal(L)
        if float(xp.min(d)) > 1e-4 * float(xp.max(d)):
            return L.T, lambda M: solve_triangular(L, M, transposed=True), None
    lam, V = eigh(S)
    # Rounding can leave nothing, or less, of small eigenvalues. Whatever stands in their place
    # takes no direction away: R^-1 R = V V'.
    sigma = xp.sqrt(xp.clip(lam, noise, None))
    return sigma[:, None] * V.T, lambda M: V @ (M / sigma[:, None]), None


def leading_rows(
    S: Array, k: int | None, shape: Sequence[int], noise: float
) -> tuple[Array, Callable[[Array], Array], Whole] | None:
    """The leading `k` rows of ``R = diag(sigma) V'``, in the place of all of them.

    None where that is no quicker, or where so many directions are not above the noise.

    Parameters
    ----------
    S : array of shape (D, D)
    k : int, optional
    shape : sequence of int
        ``(d1, ..., dp)``, whose product is D.
    noise : float
        Rounding of the entries of `S`.
    """
    if k is None or S.shape[0] <= NUMPY_LIMIT or 3 * (k + 1) > S.shape[0]:
        return None
    lam, V = leading_pairs(S, k)
    if not lam[k - 1] > max(noise, np.finfo(float).eps * S.shape[0] * lam[0]):
        return None
    sigma = asarray_like(np.sqrt(lam[:k]), V)
    whole = Whole(np.maximum(lam, 0.0), partial_traces(S, shape))
    return sigma[:, None] * V.T, lambda M: V @ (M / sigma[:, None]), whole
