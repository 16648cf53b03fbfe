"""Choice of own inputs and their penalty by the held-out errors of ridge regression.

The shared part of a model with own inputs is fitted to the residuals of the fit to own inputs. One
decomposition of the inputs of a fold therefore serves all kinds of own inputs and all their
penalties. The best own inputs become a candidate of the search over penalties and ranks. Models
without own inputs are also candidates.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from ..core.input_map import InputDesign
from ..core.moments import CentredMoments
from ..core.namespace import to_numpy
from ..core.own_inputs import OwnCoefficients
from ..core.spectral import spectral_from_moments, spectral_from_samples
from ..data.validation import Samples
from ..linear.inputs import InputPlan
from .folds import Fold
from .search import over_folds
from .sources import FoldMoments, Rows, Side

__all__ = ["own_designs"]

# Penalties of own inputs to try, as multiples of the mean diagonal entry of X'X.
_PENALTIES = 10.0 ** np.arange(-3.0, 2.5, 0.5)


def own_designs(
    source: Rows | FoldMoments,
    base: InputDesign,
    plan: InputPlan,
    alphas: np.ndarray,
    n_jobs: int = 1,
) -> list[InputDesign]:
    """Return the designs with the best own inputs, by the held-out errors of ridge regression.

    The first design has the own inputs and the penalty that are best with ridge regression as the
    shared part. The second design, if it differs, has the own inputs and the penalty that are best
    without a shared part. A shared part of low rank is between the two.

    Parameters
    ----------
    source : Rows or FoldMoments
        Data of the folds.
    base : InputDesign
        Design with the scale and the ranks of all designs. The comparison does not use the ranks.
    plan : InputPlan
        Kinds of own inputs.
    alphas : array of shape (n_alphas,)
        Penalties of the shared part.
    n_jobs : int
        Number of folds that run in parallel.
    """
    betas = _PENALTIES * float(source.column_squares(base.scale).mean())
    tried = [
        replace(base, own=replace(kind, beta=float(beta)))
        for kind, beta in product(plan.own, betas)
    ]

    def run(fold: int) -> np.ndarray:
        part = _Decomposed.of(source, source.folds[fold], base.scale, float(alphas.min()))
        return np.stack([part.errors(design, alphas) for design in tried])

    errors = np.mean(
        over_folds(len(source.folds), run, n_jobs), axis=0
    )  # (n_designs, 1 + n_alphas)
    best = int(np.argmin(errors.min(axis=1))), int(np.argmin(errors[:, 0]))
    return [tried[k] for k in dict.fromkeys(best)]


@dataclass(frozen=True, eq=False)
class _Decomposed:
    """Fold with decomposed training inputs: ``F'F = diag(lam)`` for the features F."""

    fit_intercept: bool
    seen: Side
    unseen: Side
    scale: np.ndarray | None
    basis: np.ndarray  # map from scaled inputs to features, (d, r)
    lam: np.ndarray  # (r,)
    mean_x: np.ndarray  # mean of the inputs, (d,); zero without an intercept

    @classmethod
    def of(
        cls, source: Rows | FoldMoments, fold: Fold, scale: np.ndarray | None, min_alpha: float
    ) -> _Decomposed:
        """Decompose the training inputs of a fold, from its moments or its samples."""
        seen, unseen = source.seen(fold), source.unseen(fold)
        s = 1.0 if scale is None else scale
        if isinstance(seen, CentredMoments):
            Sxx = to_numpy(seen.Sxx)
            Sxx = Sxx if scale is None else scale[:, None] * Sxx * scale
            zero = np.zeros((Sxx.shape[0], 1))
            found = spectral_from_moments(
                replace(seen, Sxx=Sxx, Sxy=zero, mean_x=to_numpy(seen.mean_x) * s, squares=None)
            )
        else:
            X = to_numpy(seen.X).astype(np.float64) * s
            found = spectral_from_samples(
                X,
                np.zeros((X.shape[0], 1)),
                None if seen.w is None else to_numpy(seen.w),
                min_alpha=min_alpha,
                fit_intercept=source.fit_intercept,
            )
        basis, lam = to_numpy(found.basis), to_numpy(found.s) ** 2
        mean = to_numpy(found.mean_x)
        if scale is not None:  # inputs with scale zero are left out of the features
            mean = np.divide(mean, scale, out=np.zeros_like(mean), where=scale != 0)
        return cls(source.fit_intercept, seen, unseen, scale, basis, lam, mean)

    def errors(self, design: InputDesign, alphas: np.ndarray) -> np.ndarray:
        """Return the mean squared held-out errors of own inputs, of shape (1 + n_alphas,).

        The first error is that of own inputs alone. The others are the errors with ridge regression
        at all penalties.
        """
        assert design.own is not None
        if isinstance(self.seen, CentredMoments):
            own = design.own.from_moments(self.seen, design.scale)
            P, B, C, yy, size = self._of_moments(own)
        else:
            seen = self.seen
            own = design.own.from_samples(seen.X, seen.Y, seen.w, self.fit_intercept, design.scale)
            P, B, C, yy, size = self._of_samples(own)
        shrink = 1.0 / (self.lam + alphas[:, None])  # (n_alphas, r)
        shrink = np.concatenate([np.zeros_like(shrink[:1]), shrink])
        inner = np.einsum("ij,ij->i", P, B)
        squares = C * (P @ P.T)
        errors = yy - 2 * shrink @ inner + np.einsum("ai,ij,aj->a", shrink, squares, shrink)
        return np.maximum(errors, 0.0) / size

    def _of_moments(self, own: OwnCoefficients) -> tuple[Any, ...]:
        """Return the products of features F and residual outputs Y after the fit to own inputs.

        These are ``F'Y`` of the training samples, and ``F'Y``, ``F'F``, ``||Y||^2`` and the size of
        the held-out samples.
        """
        seen, unseen = self.seen, self.unseen
        assert isinstance(seen, CentredMoments)
        assert isinstance(unseen, CentredMoments)
        seen, unseen = own.leave_moments(seen), own.leave_moments(unseen)
        unseen = unseen.about(seen.mean_x, seen.mean_y)
        basis = self.basis if self.scale is None else self.scale[:, None] * self.basis
        flat = [np.reshape(to_numpy(m.Sxy), (m.n_features, -1)) for m in (seen, unseen)]
        C = basis.T @ to_numpy(unseen.Sxx) @ basis
        size = unseen.weight * flat[0].shape[1]
        return basis.T @ flat[0], basis.T @ flat[1], C, unseen.syy, size

    def _of_samples(self, own: OwnCoefficients) -> tuple[Any, ...]:
        parts, mean_y = [], None
        basis = self.basis if self.scale is None else self.scale[:, None] * self.basis
        for part in (self.seen, self.unseen):
            assert isinstance(part, Samples)
            X, Y = (to_numpy(A).astype(np.float64) for A in (part.X, part.Y))
            Y = own.leave(X, Y.reshape(Y.shape[0], -1))
            w = np.ones(X.shape[0]) if part.w is None else to_numpy(part.w)
            if mean_y is None:
                mean_y = (w @ Y) / w.sum() if self.fit_intercept else np.zeros(Y.shape[1])
            root = np.sqrt(w)[:, None]
            parts.append((root * ((X - self.mean_x) @ basis), root * (Y - mean_y), float(w.sum())))
        (F, Y, _), (Ft, Yt, weight) = parts
        size = weight * Y.shape[1]
        return F.T @ Y, Ft.T @ Yt, Ft.T @ Ft, float(np.vdot(Yt, Yt)), size
