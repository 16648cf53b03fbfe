"""Error surfaces where there are more input directions than outputs, from the outputs' side.

With the singular value decomposition ``Z = U0 diag(sigma) V'`` of a training problem, the fit of
input rank R is the ridge fit projected onto the leading R columns of `V`. So nothing of the size of
the inputs is decomposed for a penalty: with the ridge predictions ``P`` of the held-out samples,

    S = V' x_1 U1' ... ,    H = V'P'Yv x_1 U1' ... ,    G = V'P'P V

take the places of core, products and Gram matrix of the surface, since the factors ``sigma`` of the
core and ``1 / sigma`` of the others cancel in every term.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.namespace import Array, device_of, eigh_top, namespace_of, squared_norm
from ..core.spectral import Spectral
from ..core.tensor import unfold
from ..model_selection.surface import RankPath
from ..model_selection.terms import Terms, rotated

__all__ = ["HeldOutSamples", "TallPath"]


class TallPath(RankPath):
    """The terms of the surface for each penalty, of a problem with few outputs."""

    def __init__(
        self, problem: Spectral, held_out: Any, ranks: tuple[int, ...], subspaces: str
    ) -> None:
        super().__init__(problem, held_out, ranks, subspaces)
        self.F, self.Y, self.T0 = held_out.F, held_out.Y, unfold(self.T, 0)

    def scaled_grams(self, alphas: Sequence[float]) -> list[Array]:
        """None: the directions of each penalty have the size of the outputs."""
        return []

    def terms(self, *alphas: float) -> Terms:
        xp, (alpha,) = namespace_of(self.T), alphas  # no bases are prepared: one at a time
        root = self.root(alpha)
        Z = self.T0 * (self.s / root)[:, None]
        V = eigh_top(Z.T @ Z, self.ranks[0])[1]
        PV = self._predictions(root, V)
        H, G = PV.T @ self.Y, PV.T @ PV
        if len(self.ranks) < self.T.ndim:
            # The rows of V' are orthonormal: summed over the outputs, only diagonals are left.
            eye = xp.eye(G.shape[0], dtype=G.dtype, device=device_of(G))
            return Terms(xp.ones_like(V[0, :]), xp.sum(H * V.T, axis=1), G * eye)
        S, H = rotated(V, H.T, self.output_bases(root))
        return Terms(S, H, xp.tril(G) + xp.tril(G, k=-1))

    def ridge_errors(self, alphas: Iterable[float]) -> np.ndarray:
        predictions = (self._predictions(self.root(alpha), None) for alpha in alphas)
        return np.array([float(namespace_of(P).sum((P - 2 * self.Y) * P)) for P in predictions])

    def products(self, W: Array) -> tuple[Array, Array]:
        P = self.F @ W
        return P.T @ P, P.T @ self.Y

    def _predictions(self, root: Array, V: Array | None) -> Array:
        """``P V``, or the ridge predictions ``P = F diag(s / (s^2 + alpha)) T`` themselves."""
        c = self.scale * self.s / root / root
        if V is None:
            return (self.F * c) @ self.T0
        (n, r), (D, R) = self.F.shape, V.shape
        if R * r * (D + n) < n * D * (r + R):
            return self.F @ (c[:, None] * (self.T0 @ V))
        return ((self.F * c) @ self.T0) @ V


@dataclass(frozen=True, eq=False)
class HeldOutSamples:
    """Held-out samples themselves, in the coordinates of a training problem."""

    F: Array  # ``(K(Xv, X) - mean) basis``, (n_samples, r), times the roots of the weights
    Y: Array  # outputs less the training mean, (n_samples, D), likewise
    yy: float  # squared norm of `Y`
    weight: float  # sum of the weights

    path = TallPath
    # Products of the features, which `HeldOut` has in the place of the samples, are not formed.
    C = None
    B = None

    @classmethod
    def of(cls, F: Array, Y: Array, mean_y: Array, w: Array | None) -> HeldOutSamples:
        """From features and outputs as they are."""
        xp = namespace_of(F)
        Y = xp.reshape(xp.astype(Y, xp.float64, copy=False) - mean_y, (F.shape[0], -1))
        if w is not None:
            root = xp.sqrt(w)[:, None]
            F, Y = F * root, Y * root
        weight = float(F.shape[0]) if w is None else float(xp.sum(w))
        return cls(F, Y, float(squared_norm(Y)), weight)

    @property
    def size(self) -> float:
        """Weight times number of outputs: what a sum of squares is divided by for its mean."""
        return self.weight * self.Y.shape[1]
