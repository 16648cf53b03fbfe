"""The coefficient of determination, of data in memory as of those that are looked at in blocks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from ..core.checks import check_finite, unit_of
from ..core.namespace import row_blocks, to_numpy
from ..core.warn import warn
from .arrays import ignores_missing, locate_rows

__all__ = ["Errors", "check_scored", "errors_between", "errors_of"]

# Bytes of outputs that are looked at at a time, so that they stay near the processor, and of those
# that are predicted at a time, of which each call costs something of its own.
_BLOCK, _PREDICTED = 2**20, 2**24


@dataclass(frozen=True, eq=False)
class Errors:
    """What R2 needs of some samples.

    Counts and weights are arrays, too, where entries may be missing.
    """

    n_samples: Any  # those without weight included
    weight: Any
    mean: np.ndarray  # of each output, as are those below: of shape (d1, ..., dp)
    scatter: np.ndarray  # ``sum w (y - mean)^2``
    error: np.ndarray  # ``sum w (y - prediction)^2``
    unit: float  # what the outputs were divided by, so that their squares are there at all

    @classmethod
    def of(cls, Y: Any, predicted: Any, w: np.ndarray | None, *, missing: bool = False) -> Errors:
        """Those of a block of samples; with `missing`, NaN in either of them is passed over."""
        shape, size = tuple(Y.shape[1:]), (Y.shape[0], math.prod(Y.shape[1:]))
        Y, predicted = to_numpy(Y).astype(np.float64, copy=False), to_numpy(predicted)
        if missing and not (seen := ~(np.isnan(Y) | np.isnan(predicted))).all():
            return cls._of_observed(Y, predicted, w, seen)
        if w is not None and not w.all():  # a product with no weight need not show a bad entry
            check_finite(Y, "y")
        given, unit = Y, unit_of(Y)
        if unit != 1.0:
            Y, predicted = Y / unit, predicted / unit
        Y, predicted = Y.reshape(size), predicted.reshape(size)
        w = np.ones(len(Y)) if w is None else w
        weight = float(w.sum())
        # About a sample that counts: where an output is constant, no rounding makes a spread of it.
        first = Y[w.argmax()]
        with np.errstate(invalid="ignore", over="ignore"):  # looked for below
            D = Y - first
            mean = first + w @ D / (weight or 1.0)
        if not np.isfinite(mean).all():
            check_finite(given, "y")
        scatter = w @ np.square(np.subtract(Y, mean, out=D), out=D)
        error = w @ np.square(np.subtract(Y, predicted, out=D), out=D)
        mean, scatter, error = (A.reshape(shape) for A in (mean, scatter, error))
        return cls(len(Y), weight, mean, scatter, error, unit)

    @classmethod
    def _of_observed(
        cls, Y: np.ndarray, predicted: np.ndarray, w: np.ndarray | None, seen: np.ndarray
    ) -> Errors:
        """Those of the entries of a block that are seen."""
        observed = np.where(seen, Y, 0.0)
        check_finite(observed, "y")
        unit = unit_of(observed)
        Y, predicted = (Y, predicted) if unit == 1.0 else (Y / unit, predicted / unit)
        v = seen if w is None else seen * w.reshape(-1, *(1,) * (Y.ndim - 1))
        weight = v.sum(axis=0, dtype=np.float64)
        first = np.take_along_axis(Y, v.argmax(axis=0)[None], 0)[0]
        first = np.where(weight > 0, first, 0.0)
        add = lambda D: np.sum(v * np.where(seen, D, 0.0), axis=0)  # noqa: E731
        mean = first + add(Y - first) / np.where(weight > 0, weight, 1.0)
        squares = (add(np.square(Y - mean)), add(np.square(Y - predicted)))
        return cls(seen.sum(axis=0), weight, mean, *squares, unit)

    def __add__(self, other: Errors) -> Errors:
        """All samples together, by the pairwise formula (see `Moments`)."""
        if self.unit != other.unit:
            unit = max(self.unit, other.unit)
            return self._in_unit(unit) + other._in_unit(unit)
        weight = self.weight + other.weight
        some, more = np.asarray(self.weight) > 0, np.asarray(other.weight) > 0
        delta = np.where(some & more, other.mean - self.mean, 0.0)
        share = other.weight / np.where(weight > 0, weight, 1.0)
        return Errors(
            self.n_samples + other.n_samples,
            weight,
            np.where(some, self.mean, other.mean) + share * delta,
            self.scatter + other.scatter + self.weight * share * np.square(delta),
            self.error + other.error,
            self.unit,
        )

    def _in_unit(self, unit: float) -> Errors:
        share = self.unit / unit
        mean, scatter = share * self.mean, share * share * self.scatter
        error = share * share * self.error
        return replace(self, mean=mean, scatter=scatter, error=error, unit=unit)

    def r2(
        self,
        average: str | None = "pooled",
        *,
        output_weight: np.ndarray | None = None,
        least: int = 2,
    ) -> Any:
        """``1 - error / scatter``: one number, or that of each output.

        Pooled it is scikit-learn's `r2_score` with ``multioutput="variance_weighted"``: constant
        outputs do not count, unless all are. By itself a constant output has 1 if it is met and
        else 0; one with too few samples, or without weight, has NaN and does not count.

        Parameters
        ----------
        average : {"pooled", "uniform"} or None
        output_weight : array of shape (d1, ..., dp), optional
            Weights of the outputs in sums and averages over them.
        least : int
            How many samples are enough.
        """
        constant = self.scatter == 0
        each = 1 - self.error / np.where(constant, 1, self.scatter)
        each = np.where(constant, self.error == 0, each)
        counts, v = self._counts(least), self._output_weight(output_weight)
        if average is None:
            return np.where(counts, each, np.nan)
        counts = counts & (v > 0)
        if not counts.any():
            few = "less than two samples" if least == 2 else "no samples"
            warn(f"R^2 score is not well-defined with {few}.", UndefinedMetricWarning)
            return math.nan
        varies = counts & ~constant
        if average == "uniform" or not varies.any():
            return float(np.average(each[counts], weights=v[counts]))
        error, scatter = (v[varies] * A[varies] for A in (self.error, self.scatter))
        return float(1 - error.sum() / scatter.sum())

    def rmse(
        self, average: str | None = "pooled", *, output_weight: np.ndarray | None = None
    ) -> Any:
        """Root of the mean squared error: that of all entries, or of each output.

        Parameters
        ----------
        average : {"pooled", "uniform"} or None
        output_weight : array of shape (d1, ..., dp), optional
            Weights of the outputs in sums and averages over them.
        """
        counts, weight = self._counts(1), np.broadcast_to(self.weight, np.shape(self.error))
        each = self.unit * np.sqrt(self.error / np.where(counts, weight, np.nan))
        if average is None:
            return each
        v = self._output_weight(output_weight)
        counts = counts & (v > 0)
        if not counts.any():
            warn("RMSE is not well-defined with no samples.", UndefinedMetricWarning)
            return math.nan
        if average == "uniform":
            return float(np.average(each[counts], weights=v[counts]))
        error, weight = v[counts] * self.error[counts], v[counts] * weight[counts]
        return self.unit * math.sqrt(error.sum() / weight.sum())

    def _output_weight(self, output_weight: np.ndarray | None) -> np.ndarray:
        """Weights of the outputs, of shape (d1, ..., dp), with a largest one of one."""
        if output_weight is None:
            return np.ones(np.shape(self.error))
        return output_weight / output_weight.max()

    def _counts(self, least: int) -> np.ndarray:
        """The outputs with enough samples, of which some have weight."""
        counts = (np.asarray(self.n_samples) >= least) & (np.asarray(self.weight) > 0)
        return np.broadcast_to(counts, np.shape(self.error))


def errors_of(model: Any, X: Any, Y: Any, w: np.ndarray | None) -> Errors:
    """Those of a fitted model on checked samples, which it predicts a block at a time."""
    fill, unknown = ignores_missing(model), model._has_unknown_outputs()
    if (
        unknown and not fill
    ):  # outputs that the model does not predict are skipped, not missing ones
        check_finite(Y, "y")
    return _in_blocks(
        lambda rows: errors_between(
            Y[rows, ...],
            model._predict_array(X[rows, :]),
            None if w is None else w[rows],
            missing=fill or unknown,
        ),
        Y,
        _PREDICTED,
    )


def errors_between(Y: Any, predicted: Any, w: np.ndarray | None, *, missing: bool) -> Errors:
    """Those of predictions of checked outputs in memory, with no further array as large as `Y`."""
    return _in_blocks(
        lambda rows: Errors.of(
            Y[rows, ...], predicted[rows, ...], None if w is None else w[rows], missing=missing
        ),
        Y,
        _BLOCK,
    )


def _in_blocks(of_rows: Callable[[slice], Errors], Y: Any, max_bytes: int) -> Errors:
    """All blocks together; the place of a bad entry is that in all of them."""

    def of_block(rows: slice) -> Errors:
        with locate_rows(rows):
            return of_rows(rows)

    blocks = row_blocks(Y.shape[0], 8 * math.prod(Y.shape[1:]), max_bytes)
    return reduce(add, map(of_block, blocks))


def check_scored(shape: Sequence[int], expected: Sequence[int]) -> None:
    """Outputs must be of the shape of the predictions that they are compared with."""
    if tuple(shape) != tuple(expected):
        raise ValueError(
            f"y must have shape {tuple(expected)} to be scored against the predictions; "
            f"got {tuple(shape)}."
        )
