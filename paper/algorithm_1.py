"""Cross-validation of Algorithms 1 and 2 of the paper, whose output subspaces are those of y.

The subspaces do not depend on the ranks, and the input directions do not depend on the ranks of the
outputs. The fits of all ranks are therefore leading blocks of the core of the fit of full rank, and
their held-out errors are cumulative sums over this core, as in `holrr.HOLRRCV`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import check_cv

from holrr import HOLRR, KernelHOLRR

__all__ = ["PaperHOLRRCV", "rank_errors"]

Array = NDArray[np.float64]


class PaperHOLRRCV(BaseEstimator):
    """Algorithm 1 or 2 with the kernel, the penalty and the ranks of the least held-out error.

    Parameters
    ----------
    alphas : sequence of float
        Penalties to try.
    cv : int, splitter or iterable, default=5
        Folds.
    kernel : list of dict, optional
        Kernels of Algorithm 2 to try; by default, Algorithm 1 is used.
    fit_intercept : bool, default=False
        Must be False, as in the paper.
    """

    def __init__(
        self,
        alphas: Sequence[float],
        cv: Any = 5,
        *,
        kernel: Sequence[dict[str, Any]] | None = None,
        fit_intercept: bool = False,
    ) -> None:
        self.alphas, self.cv, self.kernel, self.fit_intercept = alphas, cv, kernel, fit_intercept

    def fit(self, X: Array, Y: Array) -> PaperHOLRRCV:
        """Choose kernel, penalty and ranks, and fit the chosen model to all data."""
        if self.fit_intercept:
            raise ValueError("fit_intercept must be False; got True.")
        best: tuple[float, dict[str, Any]] = (np.inf, {})
        splits = list(check_cv(self.cv).split(X))
        for kernel in ({},) if self.kernel is None else self.kernel:
            for alpha in self.alphas:
                errors = [
                    rank_errors(self._model(alpha=alpha, **kernel).fit(X[a], Y[a]), X[b], Y[b])
                    for a, b in splits
                ]
                # Folds can support different numbers of input directions.
                sizes = np.min([E.shape for E in errors], axis=0)
                mean = np.mean([E[tuple(map(slice, sizes))] for E in errors], axis=0)
                place = np.unravel_index(int(np.argmin(mean)), mean.shape)
                if mean[place] < best[0]:
                    rank = tuple(int(i) + 1 for i in place)
                    best = float(mean[place]), {"rank": rank, "alpha": alpha, **kernel}
        self.best_score_, self.best_params_ = -best[0], best[1]
        self.best_estimator_ = self._model(**self.best_params_).fit(X, Y)
        self.alpha_, self.rank_ = self.best_params_["alpha"], self.best_estimator_.rank_
        return self

    def predict(self, X: Array) -> Array:
        """Return the predictions of the chosen model."""
        return self.best_estimator_.predict(X)

    def _model(self, **params: Any) -> HOLRR | KernelHOLRR:
        shared = {"subspaces": "response", "fit_intercept": False, **params}
        if self.kernel is None:
            return HOLRR(**shared)
        return KernelHOLRR(center_kernel=False, **shared)


def rank_errors(model: HOLRR | KernelHOLRR, X: Array, Y: Array) -> Array:
    """Return the mean squared errors of all ranks, (R0, ..., Rp), from the fit of full rank.

    Parameters
    ----------
    model : HOLRR or KernelHOLRR
        Fit of full rank with ``subspaces="response"`` and without intercept.
    X, Y : arrays of shape (n_samples, n_features) and (n_samples, d1, ..., dp)
        Held-out samples.
    """
    if isinstance(model, KernelHOLRR):
        given = {name: getattr(model, name) for name in ("gamma", "degree", "coef0")}
        X = pairwise_kernels(X, model.X_fit_, metric=model.kernel, filter_params=True, **given)
    S, (U0, *bases) = model.core_, model.factors_
    latent, H = X @ U0, Y
    for mode, U in enumerate(bases, start=1):
        H = np.moveaxis(np.tensordot(H, U, (mode, 0)), -1, mode)
    H = np.tensordot(latent.T, H, 1)
    G = latent.T @ latent
    increments = S * (np.tensordot(np.diag(np.diag(G)) + 2 * np.tril(G, -1), S, 1) - 2 * H)
    increments[(0,) * S.ndim] += np.sum(Y * Y)
    return reduce(np.cumsum, range(S.ndim), increments) / Y.size
