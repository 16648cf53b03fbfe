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
    y_true: Any, lower: Any, upper: Any, *, sample_weight: Any = None, average: Any = "pooled"
) -> Any:
    """Share of the outputs that lie in their intervals.

    Parameters
    ----------
    y_true, lower, upper : arrays of shape (n_samples, d1, ..., dp)
        Outputs, and the ends of their intervals, which belong to these. Entries of which one is NaN
        or masked are passed over.
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
    known, inside = ~np.isnan(y + low + high), (low <= y) & (y <= high)
    if average == "samples":
        axes = tuple(range(1, y.ndim))
        inside, known = (inside | ~known).all(axis=axes), known.any(axis=axes)
    return _mean(inside, known, w, average)


def interval_width(
    lower: Any, upper: Any, *, sample_weight: Any = None, average: Any = "pooled"
) -> Any:
    """Mean width of intervals, in the units of the outputs.

    Parameters
    ----------
    lower, upper, sample_weight
        As in `interval_coverage`.
    average : {"pooled"} or None, default="pooled"
        Over all entries, or for each output.
    """
    _, low, high, w = _checked(lower, lower, upper, sample_weight, average)
    return _mean(high - low, ~np.isnan(high - low), w, average)


def calibration_error(
    y_true: Any,
    intervals: Mapping[float, tuple[Any, Any]],
    *,
    sample_weight: Any = None,
    average: Any = "pooled",
) -> Any:
    """How far the observed coverage is from the promised one, on average over several of them.

    Parameters
    ----------
    y_true, sample_weight, average
        As in `interval_coverage`.
    intervals : dict
        From promised coverages, between 0 and 1, to the lower and upper ends of their intervals.

    Returns
    -------
    float, or array of shape (d1, ..., dp) with ``average=None``
        Mean absolute difference; 0 is perfect.
    """
    if not intervals or not all(0 < c < 1 for c in intervals):
        raise ValueError(
            f"intervals must be given by their coverages, between 0 and 1; got {list(intervals)}."
        )
    options = {"sample_weight": sample_weight, "average": average}
    gaps = [np.abs(interval_coverage(y_true, *ab, **options) - c) for c, ab in intervals.items()]
    return np.mean(gaps, axis=0) if average is None else float(np.mean(gaps))


def _checked(y: Any, lower: Any, upper: Any, sample_weight: Any, average: Any) -> list[np.ndarray]:
    if average not in _AVERAGES:
        raise ValueError(f"average must be one of {_AVERAGES}; got average={average!r}.")
    y, low, high = (to_numpy(check_outputs(nan_for_masked(A))) for A in (y, lower, upper))
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
    return [y, low, high, np.ones(len(y)) if w is None else to_numpy(w)]


def _mean(values: np.ndarray, known: np.ndarray, w: np.ndarray, average: str | None) -> Any:
    """Weighted mean over what is known, over all entries or the samples of each output."""
    weights, axis = (known.T * w).T, 0 if average is None else None
    with np.errstate(invalid="ignore"):
        found = np.sum(np.where(known, values, 0) * weights, axis=axis) / weights.sum(axis=axis)
    return found if average is None else float(found)
