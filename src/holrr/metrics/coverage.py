"""Metrics of prediction intervals: coverage, width and calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from numbers import Real
from typing import Any

import numpy as np

from ..core.checks import check_choice
from ..data.labels import Labels
from ..data.relabel import labelled
from .scores import open_all, rows_of

__all__ = ["calibration_error", "check_intervals", "interval_coverage", "interval_width"]

_AVERAGES = ("pooled", "samples", None)


def interval_coverage(
    y_true: Any, lower: Any, upper: Any, *, sample_weight: Any = None, average: Any = "pooled"
) -> Any:
    """Return the share of outputs that lie in their intervals.

    Parameters
    ----------
    y_true, lower, upper : arrays of shape (n_samples, d1, ..., dp)
        Outputs, and the ends of their intervals: arrays, tables or xarray objects. The ends belong
        to the interval. An entry is skipped if one of the three values is NaN or masked.
    sample_weight : array of shape (n_samples,), optional
        Weights of the samples.
    average : {"pooled", "samples"} or None, default="pooled"
        "pooled" is the share of all entries, "samples" is the share of samples whose entries all
        lie in their intervals, and None returns the share of each output.

    Returns
    -------
    float, or array of shape (d1, ..., dp) with ``average=None``, labelled as the outputs
        The coverage; NaN if all entries are skipped.

    Examples
    --------
    >>> from holrr.metrics import interval_coverage
    >>> y = [[1.0, 2.0], [3.0, 9.0]]
    >>> low, high = [[0.0, 0.0], [0.0, 0.0]], [[4.0, 4.0], [4.0, 4.0]]
    >>> interval_coverage(y, low, high), interval_coverage(y, low, high, average="samples")
    (0.75, 0.5)
    """
    (y, low, high), w, labels = _checked(y_true, lower, upper, sample_weight, average)
    known, inside = ~(np.isnan(y) | np.isnan(low) | np.isnan(high)), (low <= y) & (y <= high)
    if average == "samples":
        axes = tuple(range(1, y.ndim))
        inside, known = (inside | ~known).all(axis=axes), known.any(axis=axes)
    return labelled(labels, _mean(inside, known, w, average), "coverage")


def interval_width(
    lower: Any, upper: Any, *, sample_weight: Any = None, average: Any = "pooled"
) -> Any:
    """Return the mean width of intervals, in the units of the outputs.

    Parameters
    ----------
    lower, upper, sample_weight
        As in `interval_coverage`.
    average : {"pooled"} or None, default="pooled"
        "pooled" is the mean over all entries, and None returns the mean of each output.

    Returns
    -------
    float, or array of shape (d1, ..., dp) with ``average=None``, labelled as the outputs
        The mean width.

    Examples
    --------
    >>> from holrr.metrics import interval_width
    >>> interval_width([[0.0, 0.0], [0.0, 0.0]], [[1.0, 4.0], [3.0, 4.0]], average=None)
    array([2., 4.])
    """
    if average == "samples":
        raise ValueError("average must be 'pooled' or None for widths; got average='samples'.")
    (_, low, high), w, labels = _checked(lower, lower, upper, sample_weight, average)
    width = high - low
    return labelled(labels, _mean(width, ~np.isnan(width), w, average), "width")


def calibration_error(
    y_true: Any,
    intervals: Mapping[float, tuple[Any, Any]],
    *,
    sample_weight: Any = None,
    average: Any = "pooled",
) -> Any:
    """Return the mean absolute difference of observed and nominal coverage.

    Parameters
    ----------
    y_true, sample_weight, average
        As in `interval_coverage`.
    intervals : dict
        Nominal coverages, between 0 and 1, as keys; pairs of lower and upper ends as values.

    Returns
    -------
    float, or array of shape (d1, ..., dp) with ``average=None``, labelled as the outputs
        The calibration error; 0 is perfect.

    Examples
    --------
    >>> from holrr.metrics import calibration_error
    >>> y = [0.1, 0.3, 0.5, 0.9]
    >>> intervals = {0.5: ([0.0] * 4, [0.5] * 4), 0.8: ([0.0] * 4, [0.8] * 4)}
    >>> round(calibration_error(y, intervals), 3)  # each interval has three of four
    0.15
    """
    check_intervals(intervals)
    options = {"sample_weight": sample_weight, "average": average}
    gaps = [abs(interval_coverage(y_true, *ab, **options) - c) for c, ab in intervals.items()]
    return sum(gaps) / len(gaps)


def check_intervals(intervals: Any) -> None:
    """Raise a ValueError unless `intervals` is a dict from coverages to pairs."""
    if not isinstance(intervals, Mapping) or not intervals:
        raise ValueError(f"intervals must be a dict that is not empty; got {intervals!r:.50}.")
    for c, ends in intervals.items():
        if not isinstance(c, Real) or not 0 < float(c) < 1:
            raise ValueError(f"keys of intervals must be coverages between 0 and 1; got {c!r}.")
        if not isinstance(ends, Sized) or len(ends) != 2:
            raise ValueError(f"intervals[{c}] must be a pair (lower, upper); got {ends!r:.50}.")


def _checked(
    y_true: Any, lower: Any, upper: Any, sample_weight: Any, average: Any
) -> tuple[list[np.ndarray], np.ndarray, Labels]:
    check_choice(average, _AVERAGES, "average")
    ends = {"lower": lower, "upper": upper}
    outputs, readers, w, labels = open_all(y_true, ends, sample_weight)
    everything = slice(0, outputs.shape[0])
    y, (low, high) = rows_of(outputs, everything), (read(everything) for read in readers)
    if np.any(low > high):
        where = tuple(int(i) for i in np.argwhere(low > high)[0])
        raise ValueError(
            f"lower must not be above upper; at index {where} they are {low[where]} and "
            f"{high[where]}."
        )
    return [y, low, high], np.ones(len(y)) if w is None else w, labels


def _mean(values: np.ndarray, known: np.ndarray, w: np.ndarray, average: str | None) -> Any:
    """Return the weighted mean over known values, of all entries or of each output."""
    weights, axis = (known.T * w).T, 0 if average is None else None
    with np.errstate(invalid="ignore"):
        sums = np.sum(np.where(weights > 0, values, 0) * weights, axis=axis)
        found = sums / np.sum(weights, axis=axis)
    return np.asarray(found) if average is None else float(found)
