"""Robust fits: samples with the weights that `loss="huber"` finds for them."""

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
from ..streaming.stream import Stream

__all__ = ["refuse_huber", "warn_of_folds", "weigh_samples"]

# With a smaller share of its weight left, a fold says little about the other samples.
_LITTLE = 0.25


def weigh_samples(
    estimator: Any, data: Samples | Stream, weights: Sequence[np.ndarray] | None = None
) -> tuple[Any, np.ndarray | None]:
    """Data for a fit, and the weights that its loss gives to the samples.

    Parameters
    ----------
    estimator : estimator
        Its parameters `loss`, `missing` and `fit_intercept` are read.
    data : Samples or Stream
    weights : sequence of p arrays of shape (d_i,), optional
        Weights of the outputs; those without any weight have no influence.

    Returns
    -------
    data : Samples or Stream
        With the product of the weights that the samples had and those that were found.
    found : array of shape (n_samples,), or None
        Between 0 and 1; None for the squared loss, which leaves the data as they are.
    """
    if estimator.loss == "squared":
        return data, None
    if isinstance(data, Stream):
        refuse_huber(estimator.loss, "data that are read in blocks")
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
    """Raise for a robust fit of data that are not samples in memory."""
    if loss == "huber":
        raise ValueError(
            f"loss='huber' compares each sample with the others before the fit. It needs samples "
            f"in memory and cannot be used with {what}; load X and y as arrays, or use "
            f"loss='squared'."
        )


def warn_of_folds(
    splits: Sequence[tuple[np.ndarray, np.ndarray]], data: Samples, found: np.ndarray | None
) -> None:
    """Warn where a fold holds out hardly any other samples than those with small weights.

    The held-out error of a fold is a weighted mean over its samples, which does not change when all
    of their weights are small.

    Parameters
    ----------
    splits : sequence of pairs of arrays of int
        Training and held-out samples of each fold.
    data : Samples
        With the weights of the fit.
    found : array of shape (n_samples,), or None
        Those that a robust loss has found.
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
            f"have almost no weight under loss='huber', so that the error of the fold is that of "
            f"unusual samples. Use fewer and larger folds, which mix the samples: cv=KFold(5, "
            f"shuffle=True), for instance."
        )
