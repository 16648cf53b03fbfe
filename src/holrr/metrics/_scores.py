"""R2, RMSE and skill, of outputs of any order, with weights and missing entries."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from ..core.finite import check_finite
from ..core.namespace import row_blocks, to_numpy
from ..data.arrays import check_outputs, nan_for_masked
from ..data.chunks import known, slices
from ..data.labels import check_rows
from ..data.reading import is_on_disk
from ..data.scores import Errors, errors_between
from ..data.source import check_kind, is_dask, weights_of

__all__ = ["errors_of_forecasts", "r2", "rmse", "skill"]

_BLOCK = 2**24  # bytes of outputs that are read at a time
_AVERAGES = ("pooled", "uniform", None)


def r2(
    y_true: Any,
    y_pred: Any,
    *,
    sample_weight: Any = None,
    average: str | None = "pooled",
    missing: str = "skip",
) -> Any:
    """Coefficient of determination: the part of the variance that the predictions explain.

    Parameters
    ----------
    y_true, y_pred : array of shape (n_samples, d1, ..., dp)
        Outputs of any order p >= 0, flat ones included: arrays, tables, arrays on disk or of Dask,
        which are read in blocks.
    sample_weight : array of shape (n_samples,), optional
    average : {"pooled", "uniform"} or None, default="pooled"
        "pooled" divides the squared error of all outputs by their variance, so that an output
        counts as much as it varies: scikit-learn's ``multioutput="variance_weighted"``, and what
        `score` returns. "uniform" is the mean of the R2 of all outputs, which a few that hardly
        vary can spoil. None gives the R2 of each output.
    missing : {"skip", "raise"}, default="skip"
        Whether entries that are NaN, in `y_true` or `y_pred`, are passed over or an error.

    Returns
    -------
    float, or array of shape (d1, ..., dp) with ``average=None``
        NaN where there are fewer than two samples. A constant output has 1 if it is met and else
        0, and does not count beside others in the pooled R2.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr.metrics import r2
    >>> y_true = np.array([[0.0, 1.00], [2.0, 1.01], [4.0, np.nan], [6.0, 1.01]])
    >>> y_pred = np.array([[0.0, 1.10], [2.0, 1.11], [4.0, 1.00], [6.0, 1.11]])
    >>> print(f"{r2(y_true, y_pred):.3f}")
    0.999
    >>> print(f"{r2(y_true, y_pred, average='uniform'):.0f}")
    -224
    >>> r2(y_true, y_pred, average=None).round().tolist()
    [1.0, -449.0]
    """
    (errors,) = errors_of_forecasts(y_true, [y_pred], sample_weight, average, missing)
    return errors.r2(average)


def rmse(
    y_true: Any,
    y_pred: Any,
    *,
    sample_weight: Any = None,
    average: str | None = "pooled",
    missing: str = "skip",
) -> Any:
    """Root of the mean squared error, in the units of the outputs.

    Parameters
    ----------
    y_true, y_pred, sample_weight, missing
        As in `r2`.
    average : {"pooled", "uniform"} or None, default="pooled"
        "pooled" is the root of the mean over all entries, "uniform" the mean of the RMSE of all
        outputs, None the RMSE of each.

    Returns
    -------
    float, or array of shape (d1, ..., dp) with ``average=None``

    Examples
    --------
    >>> from holrr.metrics import rmse
    >>> rmse([[0.0, 1.0], [0.0, 1.0]], [[3.0, 1.0], [3.0, 1.0]], average=None).tolist()
    [3.0, 0.0]
    """
    (errors,) = errors_of_forecasts(y_true, [y_pred], sample_weight, average, missing)
    return errors.rmse(average)


def skill(
    y_true: Any,
    y_pred: Any,
    reference: Any = None,
    *,
    sample_weight: Any = None,
    average: str | None = "pooled",
    missing: str = "skip",
) -> Any:
    """Skill: the part of a reference's squared error that the predictions do without.

    One is perfect, zero no better than the reference, and below zero worse.

    Parameters
    ----------
    y_true, y_pred, sample_weight, missing
        As in `r2`.
    reference : array of shape (n_samples, d1, ..., dp) or (d1, ..., dp), optional
        Another forecast, or what it says of every sample: the mean of the training data, say. By
        default the mean of `y_true`, with which skill is R2.
    average : {"pooled", "uniform"} or None, default="pooled"
        As in `r2`, with the squared error of the reference in place of the variance.

    Returns
    -------
    float, or array of shape (d1, ..., dp) with ``average=None``

    Examples
    --------
    >>> from holrr.metrics import skill
    >>> y_true, persistence = [1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 2.0, 3.0]
    >>> skill(y_true, [1.5, 2.5, 3.5, 4.5], persistence)
    0.75
    >>> skill(y_true, [1.5, 2.5, 3.5, 4.5], 2.5)
    0.8
    """
    forecasts = [y_pred] if reference is None else [y_pred, reference]
    errors, *others = errors_of_forecasts(y_true, forecasts, sample_weight, average, missing)
    if not others:
        return errors.r2(average)
    return replace(errors, scatter=others[0].error).r2(average, least=1)


# ---------------------------------------------------------------- in blocks


def errors_of_forecasts(
    y_true: Any, forecasts: Sequence[Any], sample_weight: Any, average: str | None, missing: str
) -> list[Errors]:
    """The errors of predictions and of their reference; what one of them misses counts in none.

    The first of them may be a function from a slice of the samples to their predictions.
    """
    if average not in _AVERAGES:
        raise ValueError(f"average must be one of {_AVERAGES}; got {average!r}.")
    if missing not in ("skip", "raise"):
        raise ValueError(f"missing must be 'skip' or 'raise'; got {missing!r}.")
    Y, names = _opened(y_true, "y_true"), ("y_pred", "reference")
    check_rows(y_true, sample_weight=sample_weight)
    readers = [_reader(Y, y_true, f, n) for f, n in zip(forecasts, names, strict=False)]
    w = weights_of(sample_weight, Y.shape[0])

    def of_block(rows: slice) -> list[Errors]:
        block = check_outputs(nan_for_masked(np.asarray(Y[rows, ...])))
        parts = [read(rows) for read in readers]
        if missing == "raise":
            for name, part in zip(names, parts, strict=False):
                check_finite(part, name)
        elif len(parts) > 1:
            block = np.where(reduce(np.logical_or, map(np.isnan, parts)), np.nan, block)
        v = None if w is None else w[rows]
        return [errors_between(block, part, v, missing=missing == "skip") for part in parts]

    blocks = row_blocks(Y.shape[0], 8 * math.prod(Y.shape[1:]), _BLOCK)
    if is_dask(Y):
        blocks = slices(Y.chunks[0])
    return [reduce(add, found) for found in zip(*map(of_block, blocks), strict=True)]


def _opened(A: Any, name: str) -> Any:
    """Something to be cut into rows: an array on disk or of Dask as it is, all else checked."""
    if is_dask(A):
        return known(A, name)
    if is_on_disk(A):
        check_kind(A, name)
        return A
    return to_numpy(check_outputs(nan_for_masked(A)))


def _reader(Y: Any, y_true: Any, forecast: Any, name: str) -> Callable[[slice], np.ndarray]:
    """The rows of a forecast, which is the same for all where it has the shape of one output."""
    if callable(forecast):
        return lambda rows: to_numpy(forecast(rows))
    if name == "reference" and np.shape(forecast) == tuple(Y.shape[1:]):
        constant = np.asarray(forecast, dtype=np.float64)[None]
        return lambda rows: np.broadcast_to(constant, (rows.stop - rows.start, *Y.shape[1:]))
    F = _opened(forecast, name)
    if tuple(F.shape) != tuple(Y.shape):
        raise ValueError(
            f"{name} must have the shape {tuple(Y.shape)} of y_true; got {tuple(F.shape)}."
        )
    check_rows(y_true, **{name: forecast})
    return lambda rows: np.asarray(F[rows, ...])
