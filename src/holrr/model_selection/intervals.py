"""Prediction intervals from the held-out residuals of a search (cross-conformal).

A search has fitted its choice to every fold, or can do so from what it has gathered, and each of
these fits meets samples that it has not seen. Quantiles of the scores that they leave (see
`scores`), times the spread of a new prediction, are how far an observation may lie from it,
whatever the distribution of the noise. With the (n + 1)-th part for the new sample itself the
coverage is that asked for, or more, as far as samples and folds are exchangeable.

Where only moments are at hand the scores are taken as normal.

References
----------
V. Vovk (2015). Cross-conformal predictors. Annals of Mathematics and Artificial Intelligence 74,
9-28.

J. Lei, M. G'Sell, A. Rinaldo, R. J. Tibshirani, L. Wasserman (2018). Distribution-free predictive
inference for regression. Journal of the American Statistical Association 113(523), 1094-1111.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from scipy.stats import t
from sklearn.utils.validation import check_is_fitted

from ..base import lift
from ..core.hat import leverage
from ..core.namespace import eigh, namespace_of, to_numpy
from ..core.spectral import Whitened
from ..core.tensor import multi_mode_product
from ..core.tucker import Tucker
from ..data.moments import Moments
from ..data.take_labels import take_inputs

__all__ = ["Intervals", "held_out_noise"]

KINDS = ("entry", "pooled", "simultaneous")


class Intervals:
    """What a search knows of the residuals of its choice, and the intervals that follow."""

    best_estimator_: Any
    # Levels and quantiles of the scores, and their number; without levels they are normal.
    _fitted_intervals: dict[str, Any]

    def predict_interval(self, X: Any, coverage: float = 0.9, kind: str = "entry") -> Any:
        """Intervals in which new observations lie with a given probability.

        They are quantiles of the held-out residuals of the search, scaled by the spread of a
        prediction, about the final model's predictions; see docs/intervals.md. From moments alone
        (`fit_fold_moments`, data beyond memory) the residuals are taken as normal.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        coverage : float, default=0.9
            The probability, between 0 and 1.
        kind : {"entry", "pooled", "simultaneous"}, default="entry"
            Whether each output entry has its own quantile, all have that of their scaled residuals
            together (which needs fewer samples), or all entries of a sample at once lie within
            theirs with the given probability.

        Returns
        -------
        lower, upper : arrays of shape (n_samples, d1, ..., dp)
            As `predict` returns them.
        """
        check_is_fitted(self)
        if not isinstance(coverage, Real) or not 0 < float(coverage) < 1:
            raise ValueError(f"coverage must be a number between 0 and 1; got {coverage!r}.")
        if not isinstance(kind, str) or kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}; got {kind!r}.")
        if not hasattr(self, "_fitted_intervals"):
            raise ValueError(
                "predict_interval needs the held-out residuals of a search, and this one has none: "
                "it went by an information criterion, or comes from a file or moments of an older "
                "version. Fit again, with criterion='cv'."
            )
        model = self.best_estimator_
        factor = _factor(self._fitted_intervals, float(coverage), kind, model.noise_)
        mean, std = model._predict_pair(take_inputs(model, X))
        width = std * _like(factor, std)
        return model._label(X, mean - width), model._label(X, mean + width)


def _like(factor: np.ndarray, std: Any) -> Any:
    if type(std).__module__.startswith("dask"):
        return factor.astype(std.dtype)
    return namespace_of(std).asarray(factor, dtype=std.dtype, device=getattr(std, "device", None))


def _factor(kept: dict[str, Any], coverage: float, kind: str, noise: Any) -> np.ndarray:
    """How many standard deviations an interval reaches, for all outputs or for each of them."""
    levels = kept["levels"]
    if levels is None:
        n = max(int(np.count_nonzero(~np.isnan(to_numpy(noise)))), 1)
        share = coverage ** (1 / n) if kind == "simultaneous" else coverage
        return np.asarray(t.ppf((1 + share) / 2, kept["df"]))  # the noise is an estimate
    levels = kept["pooled_levels"] if kind == "pooled" else levels
    # Of a sample that was observed in part, what is missing might have been the largest.
    share = coverage ** kept["seen"] if kind == "simultaneous" else coverage
    n = kept["n_" + kind]
    with np.errstate(divide="ignore"):
        wanted = share * (1 + 1 / np.asarray(n, dtype=float))
    if kind == "simultaneous":  # a whole score, not part of the way to it
        wanted = np.ceil(wanted * n - 1e-9) / n
    if not wanted.min() <= 1 + 1e-12:
        raise ValueError(
            f"coverage={coverage:g} needs {math.ceil(share / (1 - share))} held-out samples "
            f"at least, and there are {int(np.max(n))}; ask for less, or fit more samples."
        )
    scores = kept[kind]
    points = np.concatenate([[0.0], levels])
    at = np.clip(np.searchsorted(points, np.minimum(wanted, 1.0)), 1, levels.size)
    part = (wanted - points[at - 1]) / (points[at] - points[at - 1])
    # Without noise there are no scores, and nothing that they would be multiplied by.
    scores = np.nan_to_num(scores.astype(np.float64), posinf=np.inf)
    scores = np.concatenate([np.zeros_like(scores[:1]), scores])
    if wanted.ndim:
        low, high = (np.take_along_axis(scores, i[None], axis=0)[0] for i in (at - 1, at))
    else:
        low, high = scores[at - 1], scores[at]
    # An output that was observed too rarely has no bound.
    return np.where(wanted <= 1 + 1e-12, low + np.minimum(part, 1.0) * (high - low), np.inf)


# ---------------------------------------------------------------- noise from moments


def held_out_noise(parts: Sequence[tuple[Any, Whitened, Tucker, Moments]]) -> np.ndarray | None:
    """Noise of each output, (d1, ..., dp), from held-out moments; None where these lack it.

    Parameters
    ----------
    parts : sequence of (model, problem, V, moments)
        For each fold the fitted model, its problem and approximation, and the held-out moments.
    """
    squares, spread = 0.0, 0.0
    for model, problem, V, moments in parts:
        if moments.squares is None:
            return None
        m, W = moments.about(problem.mean_x, problem.mean_y), lift(V, problem)
        A = np.eye(m.n_features) if W.factors[0] is None else to_numpy(W.factors[0])
        core = to_numpy(multi_mode_product(W.core, (None, *W.factors[1:])))
        inner = np.tensordot(A.T, to_numpy(m.Sxy), 1) * core
        fitted = core * np.tensordot(A.T @ to_numpy(m.Sxx) @ A, core, 1)
        squares = squares + to_numpy(m.squares) - 2 * inner.sum(axis=0) + fitted.sum(axis=0)
        # The leverages of the samples add up to those of the rows of a root of X'X.
        hat, (lam, U) = model._fitted_hat, eigh(m.Sxx)
        xp = namespace_of(lam)
        rows = (U * xp.sqrt(xp.clip(lam, 0.0, None))).T
        h = hat["share"] * float(xp.sum(leverage(hat, rows)))
        spread += h + m.weight * (1 + (1 / hat["weight"] if hat["intercept"] else 0.0))
    return np.sqrt(np.clip(squares, 0.0, None) / spread)
