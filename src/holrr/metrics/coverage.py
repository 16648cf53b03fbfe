"""How well intervals keep what they promise: coverage, width, calibration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.namespace import to_numpy
from ..data.arrays import check_outputs, check_weights, nan_for_masked

__all__ = ["calibration_error", "interval_coverage", "interval_width"]

_AVERAGES = ("pooled", "samples", None)


def interval_coverage(
    y_true: Any,
    lower: Any,
    upper: Any,
    *,
    sample_weight: Any = None,
    average: str | None = "pooled",
) -> Any:
    """Share of the outputs that lie in their intervals.

    Parameters
    ----------
    y_true : array of shape (n_samples, d1, ..., dp)
        NaN and masked entries are passed over.
    lower, upper : arrays of the same shape
        The ends, which belong to the intervals. Where one is NaN, the entry is passed over.
    sample_weight : array of shape (n_samples,), optional
    average : {"pooled", "samples"} or None, default="pooled"
        "pooled" is the share of all entries, "samples" that of the samples all of whose entries lie
        in their intervals, None that of each output.

    Returns
    -------
    float, or array of shape (d1, ..., dp) with ``average=None``
        NaN where there is no entry.

    Examples
    --------
    >>> from holrr.metrics import interval_coverage
    >>> y = [[1.0, 2.0], [3.0, 9.0]]
    >>> low, high = [[0.0, 0.0], [0.0, 0.0]], [[4.0, 4.0], [4.0, 4.0]]
    >>> interval_coverage(y, low, high), interval_coverage(y, low, high, average="samples")
    (0.75, 0.5)
    """
    y, low, high, w = _checked(y_true, lower, upper, sample_weight, average)
    known = ~(np.isnan(y) | np.isnan(low) | np.isnan(high))
    inside = (low <= y) & (y <= high)
    if average == "samples":
        axes = tuple(range(1, y.ndim))
        inside, known = (inside | ~known).all(axis=axes), known.any(axis=axes)
    return _mean(inside, known, w, average)


def interval_width(
    lower: Any, upper: Any, *, sample_weight: Any = None, average: str | None = "pooled"
) -> Any:
    """Mean width of intervals, in the units of the outputs.

    Parameters
    ----------
    lower, upper : arrays of shape (n_samples, d1, ..., dp)
    sample_weight : array of shape (n_samples,), optional
    average : {"pooled"} or None, default="pooled"
        Over all entries, or for each output.

    Returns
    -------
    float, or array of shape (d1, ..., dp) with ``average=None``
    """
    _, low, high, w = _checked(lower, lower, upper, sample_weight, average)
    return _mean(high - low, ~np.isnan(high - low), w, average)


def calibration_error(
    y_true: Any,
    intervals: Mapping[float, tuple[Any, Any]],
    *,
    sample_weight: Any = None,
    average: str | None = "pooled",
) -> Any:
    """How far the observed coverage is from the promised one, on average over many of them.

    Parameters
    ----------
    y_true, sample_weight, average
        As in `interval_coverage`.
    intervals : dict of pairs of arrays
        Promised coverages, between 0 and 1, with the lower and upper ends of their intervals.

    Returns
    -------
    float, or array of shape (d1, ..., dp) with ``average=None``
        Mean absolute difference; 0 is perfect.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr.metrics import calibration_error
    >>> y = np.random.default_rng(0).uniform(size=(1000, 3))
    >>> exact = {c: (0 * y, 0 * y + c) for c in (0.1, 0.5, 0.9)}
    >>> calibration_error(y, exact) < 0.02
    True
    """
    if not intervals or not all(0 < c < 1 for c in intervals):
        raise ValueError(
            f"intervals must be given by their coverages, between 0 and 1; got {list(intervals)}."
        )
    options = {"sample_weight": sample_weight, "average": average}
    gaps = [np.abs(interval_coverage(y_true, *ab, **options) - c) for c, ab in intervals.items()]
    return np.mean(gaps, axis=0) if average is None else float(np.mean(gaps))


def _checked(
    y: Any, lower: Any, upper: Any, sample_weight: Any, average: str | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    if average not in _AVERAGES:
        raise ValueError(f"average must be one of {_AVERAGES}; got average={average!r}.")
    given = {"y_true": y, "lower": lower, "upper": upper}
    y, low, high = (to_numpy(check_outputs(nan_for_masked(A))) for A in given.values())
    if not y.shape == low.shape == high.shape:
        raise ValueError(
            f"lower and upper must have the shape of y_true, {y.shape}; got {low.shape} and "
            f"{high.shape}."
        )
    if np.any(low > high):
        where = tuple(int(i) for i in np.argwhere(low > high)[0])
        raise ValueError(
            f"lower must not be above upper; at {where} they are {low[where]} and {high[where]}."
        )
    w = check_weights(sample_weight, y)
    return y, low, high, np.ones(len(y)) if w is None else to_numpy(w)


def _mean(values: np.ndarray, known: np.ndarray, w: np.ndarray, average: str | None) -> Any:
    """Weighted mean over what is known, over all entries or the samples of each output."""
    weights = known * w.reshape(-1, *(1,) * (known.ndim - 1))
    axis = 0 if average is None else None
    with np.errstate(invalid="ignore"):
        total = np.sum(weights, axis=axis)
        found = np.sum(np.where(known, values, 0) * weights, axis=axis) / total
    return found if average is None else float(found)
