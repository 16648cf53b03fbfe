"""Robust fits: sample weights of ``loss="huber"``, and checks of data and folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..core.checks import check_finite
from ..core.namespace import asarray_like, to_numpy
from ..core.output_weights import product_of
from ..core.robust import robust_weights
from ..core.threads import few_threads_for
from ..core.warn import warn
from ..data.arrays import ignores_missing
from ..data.validation import Samples
from ..missing.fit import check_no_infinity, has_missing
from ..streaming.chunks import Chunks

__all__ = ["refuse_huber", "warn_of_folds", "weigh_samples"]

# If a robust fit leaves a smaller share of the weight of a fold, `warn_of_folds` warns.
_LITTLE = 0.25


def weigh_samples(
    estimator: Any, data: Samples | Chunks, weights: Sequence[np.ndarray] | None = None
) -> tuple[Any, np.ndarray | None]:
    """Return the data of a fit with robust sample weights, and these weights.

    Parameters
    ----------
    estimator : estimator
        Estimator with the parameters `loss`, `missing` and `fit_intercept`.
    data : Samples or Chunks
        Validated data.
    weights : sequence of p arrays of shape (d_i,), optional
        Weights of the outputs. Outputs of weight zero do not affect the weights of the samples.

    Returns
    -------
    data : Samples or Chunks
        Data whose sample weights are the product of the given and the robust weights. The squared
        loss returns the data unchanged.
    found : array of shape (n_samples,), or None
        Robust weights, between 0 and 1; None for the squared loss.
    """
    if estimator.loss == "squared":
        return data, None
    if isinstance(data, Chunks):
        refuse_huber(estimator.loss, "data that are read in chunks")
    assert isinstance(data, Samples)
    if ignores_missing(estimator) and has_missing(data):
        check_no_infinity(data)
    else:
        check_finite(data.Y, "y")
    with few_threads_for(data.work):
        scaled = data.scaled()
        X, Y = to_numpy(scaled.X), to_numpy(scaled.Y).reshape(data.n_samples, -1)
        if weights is not None:
            Y = Y[:, product_of(weights).reshape(-1) > 0]
        w = None if data.w is None else to_numpy(data.w)
        found = robust_weights(X, Y, w, fit_intercept=estimator.fit_intercept)
    total = found if w is None else w * found
    return replace(data, w=asarray_like(total, data.X)), found


def refuse_huber(loss: str, what: str) -> None:
    """Raise an error for a robust fit to data that are not samples in memory."""
    if loss == "huber":
        raise ValueError(
            f"loss='huber' compares each sample with the others before the fit. It needs samples "
            f"in memory and cannot be used with {what}. Load X and y as arrays, or use "
            f"loss='squared'."
        )


def warn_of_folds(
    splits: Sequence[tuple[np.ndarray, np.ndarray]], data: Samples, found: np.ndarray | None
) -> None:
    """Warn if almost all held-out samples of a fold have small robust weights.

    The held-out error of a fold is a weighted mean over its samples. The mean does not change if
    all weights of the fold are multiplied by the same small number.

    Parameters
    ----------
    splits : sequence of pairs of arrays of int
        Training and held-out samples of each fold.
    data : Samples
        Data with the sample weights of the fit.
    found : array of shape (n_samples,), or None
        Robust weights; None for the squared loss.
    """
    if found is None:
        return
    total = to_numpy(data.w)
    before = total / found
    shares = [total[test].sum() / before[test].sum() for _, test in splits]
    few = [k for k, share in enumerate(shares) if share < _LITTLE]
    if few:
        warn(
            f"The held-out samples of {len(few)} of {len(splits)} folds (such as fold {few[0]}) "
            f"have small weights under loss='huber', so the held-out error of the fold is the "
            f"error of unusual samples. Use fewer and larger folds of shuffled samples, such as "
            f"cv=KFold(5, shuffle=True)."
        )
