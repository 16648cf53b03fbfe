"""The held-out errors of all ranks, nearly: the input directions from one subspace of the outputs.

With the singular value decomposition ``Z = U0 diag(sigma) V'`` of a training problem, the fit of
input rank R is the ridge fit projected onto the leading R columns of `V`. These change little with
the penalty. So the leading ones at two penalties, the smallest and that of the best ridge fit, are
found once, and for every other penalty the best directions within their span (Rayleigh and Ritz):

    Z Q = W diag(sigma) P' ,    V = Q P        with ``Q`` of shape (D, m).

That is an eigenproblem of size m in the place of one of the size of the inputs, and a core of m
rows; the bases of the output modes are exact. Whatever the data, the result is the held-out error
of models very near to those that it stands for, and so tells which penalties are worth the work.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..core.namespace import Array, eigh_top, namespace_of
from ..core.tensor import unfold
from .surface import RankPath, Terms, rotated

__all__ = ["N_DIRECTIONS", "Screen"]

# Of the subspace, at most: half of them from each of two penalties.
N_DIRECTIONS = 96


class Screen:
    """The terms of a surface for each penalty, nearly.

    Parameters
    ----------
    path : RankPath
        Of all output modes.
    alphas : sequence of float
        The penalties whose leading directions span the subspace.
    """

    def __init__(self, path: RankPath, alphas: Sequence[float]):
        self.path, xp = path, namespace_of(path.T)
        leading = [self._leading(alpha, N_DIRECTIONS // len(alphas)) for alpha in alphas]
        self.Q = xp.linalg.qr(xp.concat(leading, axis=1))[0]
        self.TQ = unfold(path.T, 0) @ self.Q

    def terms(self, alpha: float) -> Terms:
        """As those of the path, with the rows of ``V' x_1 U1' ...`` for those of the core."""
        path, xp = self.path, namespace_of(self.Q)
        root = path.root(alpha)
        Z = self.TQ * (path.s / root)[:, None]
        P = eigh_top(Z.T @ Z, min(path.ranks[0], self.Q.shape[1]))[1]
        G, H = path.products((path.s / root / root * path.scale)[:, None] * (self.TQ @ P))
        S, H = rotated(self.Q @ P, H.T, path.output_bases(root))
        return Terms(S, H, xp.tril(G) + xp.tril(G, k=-1))

    def _leading(self, alpha: float, k: int) -> Array:
        """The leading right singular directions of Z at one penalty, orthogonal if not unit."""
        path, d = self.path, self.path.s / self.path.root(alpha)
        T = unfold(path.T, 0)
        if T.shape[0] <= T.shape[1]:
            U = eigh_top(path.input_gram * d[:, None] * d, min(k, T.shape[0]))[1]
            return T.T @ (U * d[:, None])
        Z = T * d[:, None]
        return eigh_top(Z.T @ Z, min(k, T.shape[1]))[1]
