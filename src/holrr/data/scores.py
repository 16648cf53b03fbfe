"""The coefficient of determination, of data in memory as of those that are looked at in blocks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from ..core.caution import warn
from ..core.finite import check_finite
from ..core.namespace import row_blocks, to_numpy
from ..core.units import unit_of
from .arrays import check_inputs

__all__ = ["Errors", "add_errors", "errors_of", "r2"]

_BLOCK = 2**24  # bytes of outputs that are looked at at a time


@dataclass(frozen=True, eq=False)
class Errors:
    """What R2 needs of some samples.

    Parameters
    ----------
    n_samples : int, or array of shape (d1, ..., dp) where entries may be missing
        Those without weight included.
    weight : float, or array of shape (d1, ..., dp)
    mean : array of shape (d1, ..., dp)
        Mean of each output.
    scatter : array of shape (d1, ..., dp)
        ``sum w (y - mean)^2``.
    error : array of shape (d1, ..., dp)
        ``sum w (y - prediction)^2``.
    unit : float
        What the outputs were divided by, so that their squares are there at all.
    """

    n_samples: Any
    weight: Any
    mean: np.ndarray
    scatter: np.ndarray
    error: np.ndarray
    unit: float

    @classmethod
    def of(cls, Y: Any, predicted: Any, w: np.ndarray | None) -> Errors:
        """Those of a block of samples."""
        Y = to_numpy(Y).astype(np.float64, copy=False)
        check_finite(Y, "y")
        predicted, unit = to_numpy(predicted), unit_of(Y)
        if unit != 1.0:
            Y, predicted = Y / unit, predicted / unit
        w = np.ones(len(Y)) if w is None else w
        weight = float(w.sum())
        # About the first sample: where an output is constant, no rounding makes a spread of it.
        mean = Y[0] + np.tensordot(w, Y - Y[0], 1) / (weight or 1.0)
        squares = lambda D: np.tensordot(w, np.square(D), 1)  # noqa: E731
        return cls(len(Y), weight, mean, squares(Y - mean), squares(Y - predicted), unit)

    @classmethod
    def of_observed(cls, Y: Any, predicted: Any, w: np.ndarray | None) -> Errors:
        """Those of the entries of a block that neither `Y` nor the predictions have as NaN."""
        Y, predicted = to_numpy(Y).astype(np.float64, copy=False), to_numpy(predicted)
        seen = ~(np.isnan(Y) | np.isnan(predicted))
        observed = np.where(seen, Y, 0.0)
        check_finite(observed, "y")
        unit = unit_of(observed)
        Y, predicted = (Y, predicted) if unit == 1.0 else (Y / unit, predicted / unit)
        v = seen if w is None else seen * w.reshape(-1, *(1,) * (Y.ndim - 1))
        weight = v.sum(axis=0, dtype=np.float64)
        first = np.take_along_axis(Y, seen.argmax(axis=0)[None], 0)[0]
        first = np.where(seen.any(axis=0), first, 0.0)
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

    def r2(self) -> float:
        """R2 averaged over the outputs, as scikit-learn's `r2_score` has it.

        A constant output counts 1 if it is met and else 0; a single sample has no R2, and an output
        with fewer than two observed entries does not count.
        """
        counts = np.broadcast_to(np.asarray(self.n_samples) >= 2, np.shape(self.scatter))
        if not counts.any():
            message = "R^2 score is not well-defined with less than two samples."
            warn(message, UndefinedMetricWarning)
            return math.nan
        constant = self.scatter == 0
        r2 = 1 - self.error / np.where(constant, 1, self.scatter)
        return float(np.mean(np.where(constant, self.error == 0, r2)[counts]))


def errors_of(model: Any, X: Any, Y: Any, w: np.ndarray | None) -> Errors:
    """Those of a model on a block of (validated) samples."""
    if getattr(model, "missing", "raise") != "fill":
        return Errors.of(Y, model._predict_array(check_inputs(X)), w)
    return Errors.of_observed(Y, model._predict_array(check_inputs(X)), w)


def add_errors(parts: Iterable[Errors]) -> Errors:
    """All of them together."""
    first, *rest = parts
    return sum(rest, start=first)


def r2(Y: Any, predicted: Any, w: Any = None, *, missing: bool = False) -> float:
    """R2 of predictions of (validated) outputs in memory, with no further array as large as `Y`.

    Parameters
    ----------
    Y, predicted : arrays of shape (n_samples, d1, ..., dp)
    w : array of shape (n_samples,), optional
    missing : bool
        Whether NaN, in either of them, is passed over.
    """
    if tuple(Y.shape) != tuple(predicted.shape):
        raise ValueError(
            f"y must have shape {tuple(predicted.shape)} to be scored against the predictions; "
            f"got {tuple(Y.shape)}."
        )
    Y, predicted, w = to_numpy(Y), to_numpy(predicted), None if w is None else to_numpy(w)
    if not missing:
        check_finite(Y, "y")
    errors = Errors.of_observed if missing else Errors.of
    return add_errors(
        errors(Y[rows], predicted[rows], None if w is None else w[rows])
        for rows in row_blocks(len(Y), 8 * math.prod(Y.shape[1:]), _BLOCK)
    ).r2()
