"""Held-out data in the coordinates of a training problem, from moments or from features."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..core.finite import check_finite
from ..core.namespace import Array, device_of, namespace_of, row_blocks, squared_norm
from ..core.spectral import Spectral
from ..core.tensor import fold, mode_product, unfold
from ..data.moments import Moments

__all__ = ["HeldOut"]

_BLOCK = 2**26  # bytes of held-out outputs that are centred at a time


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Held-out data in the coordinates of a training problem, centred at its means.

    With the features ``F = (Xv - mean_x) basis`` of the held-out inputs (in which the factor
    ``1 / sqrt(lam + alpha)`` is left out, so that they serve every penalty):

    Parameters
    ----------
    C : array of shape (r, r)
        ``F'F``.
    B : array of shape (r, d1, ..., dp)
        ``F'(Yv - mean_y)``.
    yy : float
        ``||Yv - mean_y||^2``.
    weight : float
        Sum of the weights of the held-out samples.
    """

    C: Array
    B: Array
    yy: float
    weight: float

    @classmethod
    def from_moments(cls, problem: Spectral, m: Moments) -> HeldOut:
        """From the held-out samples' own moments (primal problems)."""
        m = m.about(problem.mean_x, problem.mean_y)
        P = problem.basis
        return cls(P.T @ m.Sxx @ P, mode_product(m.Sxy, P.T, 0), m.syy, m.weight)

    @classmethod
    def from_features(
        cls, F: Array, Y: Array, mean_y: Array, sample_weight: Array | None = None
    ) -> HeldOut:
        """From features and outputs of the held-out samples (dual and kernel problems).

        Parameters
        ----------
        F : array of shape (n_samples, r)
            ``(Xv - mean_x) basis``; for a kernel ``K(Xv, X) basis``, centred as in training.
        Y : array of shape (n_samples, d1, ..., dp)
            Outputs as they are.
        mean_y : array of shape (d1, ..., dp)
            The training mean.
        sample_weight : array of shape (n_samples,), optional
        """
        xp, (n, r), size = namespace_of(F), F.shape, math.prod(Y.shape[1:])
        w = xp.ones_like(F[:, 0]) if sample_weight is None else sample_weight
        B, yy = 0.0, 0.0
        for rows in row_blocks(n, 8 * size, _BLOCK):
            Yc = xp.astype(Y[rows, ...], xp.float64, copy=False) - mean_y
            Yc = xp.reshape(Yc, (Yc.shape[0], size)) * xp.sqrt(w[rows])[:, None]
            B = B + (F[rows, :] * xp.sqrt(w[rows])[:, None]).T @ Yc
            yy += float(squared_norm(Yc))
        if not math.isfinite(yy):
            check_finite(Y, "y")
        C = (F * w[:, None]).T @ F
        return cls(C, xp.reshape(B, (r, *Y.shape[1:])), yy, float(xp.sum(w)))

    @classmethod
    def of_training(cls, problem: Spectral, weight: float) -> HeldOut:
        """The training samples themselves, for criteria that judge the fit by its residual."""
        s = problem.s
        C = namespace_of(s).eye(s.shape[0], dtype=s.dtype, device=device_of(s)) * (s * s)
        return cls(
            C, fold(unfold(problem.T, 0) * s[:, None], 0, problem.T.shape), problem.syy, weight
        )

    @property
    def size(self) -> float:
        """Weight times number of outputs: what a sum of squares is divided by for its mean."""
        return self.weight * math.prod(self.B.shape[1:])
