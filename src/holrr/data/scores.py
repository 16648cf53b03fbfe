"""The coefficient of determination R2, for data in memory and for data read in chunks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any, TypeVar

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from ..core.checks import check_finite, unit_of
from ..core.namespace import row_blocks, to_numpy
from ..core.warn import warn
from .arrays import ignores_missing, locate_rows

__all__ = ["AVERAGES", "Errors", "PartErrors", "check_scored", "errors_between", "errors_of"]
__all__ += ["part_errors_of"]

#: Averages of scores over outputs; None gives the score of each output.
AVERAGES = ("pooled", "uniform", None)

# Bytes of outputs in a block of sums, which should fit into the cache, and in a block of
# predictions, which should be larger, since each call of predict has a fixed cost.
_BLOCK, _PREDICTED = 2**20, 2**24

Sums = TypeVar("Sums", bound=Any)  # records that can be added


@dataclass(frozen=True, eq=False)
class Errors:
    """Sums over samples that determine R2.

    Counts and weights are arrays if entries may be missing.
    """

    n_samples: Any  # including samples without weight
    weight: Any
    mean: np.ndarray  # of each output, of shape (d1, ..., dp), as the following ones
    scatter: np.ndarray  # ``sum w (y - mean)^2``
    error: np.ndarray  # ``sum w (y - prediction)^2``
    unit: float  # divisor of the outputs, so that their squares neither overflow nor underflow

    @classmethod
    def of(cls, Y: Any, predicted: Any, w: np.ndarray | None, *, missing: bool = False) -> Errors:
        """Compute the sums of a block; with `missing`, NaN in outputs or predictions is skipped."""
        shape, size = tuple(Y.shape[1:]), (Y.shape[0], math.prod(Y.shape[1:]))
        Y, predicted = to_numpy(Y).astype(np.float64, copy=False), to_numpy(predicted)
        if missing and not (seen := ~(np.isnan(Y) | np.isnan(predicted))).all():
            return cls._of_observed(Y, predicted, w, seen)
        if w is not None and not w.all():  # products with weight zero may hide bad entries
            check_finite(Y, "y")
        given, unit = Y, unit_of(Y)
        if unit != 1.0:
            Y, predicted = Y / unit, predicted / unit
        Y, predicted = Y.reshape(size), predicted.reshape(size)
        w = np.ones(len(Y)) if w is None else w
        weight = float(w.sum())
        # Centred at a sample with weight: the scatter of a constant output is exactly zero.
        first = Y[w.argmax()]
        with np.errstate(invalid="ignore", over="ignore"):  # detected below
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
        """Compute the sums of the observed entries of a block."""
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
        """Return the sums of all samples, by the pairwise formula (see `Moments`)."""
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
        """Return ``1 - error / scatter``, averaged over outputs or of each output.

        The pooled average is scikit-learn's `r2_score` with ``multioutput="variance_weighted"``:
        constant outputs do not count, unless all outputs are constant. The score of a single
        constant output is 1 if the predictions are exact and 0 otherwise. An output with too few
        samples, or without weight, has NaN and does not count.

        Parameters
        ----------
        average : {"pooled", "uniform"} or None
        output_weight : array of shape (d1, ..., dp), optional
            Weights of the outputs in sums and averages over them.
        least : int
            Smallest number of samples of an output that counts.
        """
        constant = self.scatter == 0
        each = 1 - self.error / np.where(constant, 1, self.scatter)
        each = np.where(constant, self.error == 0, each)
        return self.averaged(each, average, output_weight=output_weight, least=least)

    def averaged(
        self,
        each: np.ndarray,
        average: str | None = "pooled",
        *,
        output_weight: np.ndarray | None = None,
        least: int = 2,
    ) -> Any:
        """Return the average over outputs of R2, or of a part of R2.

        Parameters
        ----------
        each : array of shape (d1, ..., dp)
            R2 of each output, or its part.
        average, output_weight, least
            As in `r2`.
        """
        counts, v = self._counts(least), self._output_weight(output_weight)
        if average is None:
            return np.where(counts, each, np.nan)
        counts = counts & (v > 0)
        if not counts.any():
            few = "less than two samples" if least == 2 else "no samples"
            warn(f"R^2 score is not well-defined with {few}.", UndefinedMetricWarning)
            return math.nan
        varies = counts & (self.scatter > 0)
        if average == "uniform" or not varies.any():
            return float(np.average(each[counts], weights=v[counts]))
        v = v[varies] * self.scatter[varies]
        return float(np.sum(v * each[varies]) / v.sum())

    def rmse(
        self, average: str | None = "pooled", *, output_weight: np.ndarray | None = None
    ) -> Any:
        """Return the root of the mean squared error, of all entries or of each output.

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
        """Return weights of the outputs, of shape (d1, ..., dp), scaled to a maximum of one."""
        if output_weight is None:
            return np.ones(np.shape(self.error))
        return output_weight / output_weight.max()

    def _counts(self, least: int) -> np.ndarray:
        """Return which outputs have enough samples and a positive total weight."""
        counts = (np.asarray(self.n_samples) >= least) & (np.asarray(self.weight) > 0)
        return np.broadcast_to(counts, np.shape(self.error))


@dataclass(frozen=True, eq=False)
class PartErrors:
    """Sums over samples that determine the parts of R2.

    Predictions are a sum ``P = c + sum_b P_b`` of parts of blocks and a constant c. About the mean
    of the outputs, with ``Y' = Y - mean`` and ``P' = P - mean``,

        ||Y'||^2 - ||Y' - P'||^2 = <c - mean, 2 Y' - P'> + sum_b <P_b, 2 Y' - P'> ,

    and each term divided by ``||Y'||^2`` is the part of R2 of a block, or of the constant.
    """

    errors: Errors  # of the predictions; its unit is also that of the following sums
    constant: np.ndarray  # c, of shape (d1, ..., dp), in the unit of the outputs
    products: np.ndarray  # ``sum w P_b (2 Y' - P')``, of shape (n_blocks, d1, ..., dp)
    sums: np.ndarray  # ``sum w P_b``, of the same shape

    @classmethod
    def of(
        cls,
        Y: Any,
        parts: Sequence[Any],
        constant: np.ndarray,
        w: np.ndarray | None,
        *,
        missing: bool = False,
    ) -> PartErrors:
        """Compute the sums of a block; with `missing`, NaN in outputs or parts is skipped."""
        Y = to_numpy(Y).astype(np.float64, copy=False)
        parts = [to_numpy(P).astype(np.float64, copy=False) for P in parts]
        predicted = sum(parts) + constant
        errors = errors_between(Y, predicted, w, missing=missing)
        v = np.ones(len(Y)) if w is None else w
        D = 2 * (Y / errors.unit) - predicted / errors.unit - errors.mean
        passed = np.isnan(D) if missing else None
        D = D if passed is None else np.where(passed, 0.0, D)
        D *= v.reshape(-1, *(1,) * (D.ndim - 1))
        products, sums = np.zeros((2, len(parts), *Y.shape[1:]))
        for b, P in enumerate(parts):
            P = P if errors.unit == 1.0 else P / errors.unit
            P = P if passed is None else np.where(passed, 0.0, P)
            products[b], sums[b] = np.einsum("i...,i...->...", P, D), np.tensordot(v, P, 1)
        return cls(errors, constant, products, sums)

    def __add__(self, other: PartErrors) -> PartErrors:
        """Return the sums of all samples, with products about the common mean."""
        errors = self.errors + other.errors
        products, sums = np.zeros((2, *self.sums.shape))
        for part in (self, other):
            share = part.errors.unit / errors.unit
            shift = errors.mean - share * part.errors.mean
            products += share * (share * part.products - shift * part.sums)
            sums += share * part.sums
        return replace(self, errors=errors, products=products, sums=sums)

    def split(
        self, average: str | None = "pooled", *, output_weight: np.ndarray | None = None
    ) -> list[Any]:
        """Return the parts of R2 of all blocks and, last, of the constant; they add up to R2.

        The part of the constant is the whole R2 of an output that does not vary.

        Parameters
        ----------
        average, output_weight
            As in `Errors.r2`.
        """
        e = self.errors
        varies = e.scatter > 0
        scatter = np.where(varies, e.scatter, 1.0)
        each = np.where(varies, self.products / scatter, 0.0)
        # The deviations of the outputs from their mean add up to zero.
        offset = self.constant / e.unit - e.mean
        rest = -offset * (e.weight * offset + self.sums.sum(axis=0)) / scatter
        rest = np.where(varies, rest, e.error == 0)
        return [e.averaged(part, average, output_weight=output_weight) for part in (*each, rest)]


def errors_of(model: Any, X: Any, Y: Any, w: np.ndarray | None) -> Errors:
    """Compute the sums of a fitted model on checked samples, block by block."""
    missing = _passes_over(ignores_missing(model), model._has_unknown_outputs(), Y)
    return _in_blocks(
        lambda rows: errors_between(
            Y[rows, ...],
            model._predict_array(X[rows, :]),
            None if w is None else w[rows],
            missing=missing,
        ),
        Y,
        _PREDICTED,
    )


def part_errors_of(parts: Any, X: Any, Y: Any, w: np.ndarray | None) -> PartErrors:
    """Compute the sums of the parts of predictions on checked samples, block by block.

    Parameters
    ----------
    parts : BlockParts
        Parts of the predictions of a fitted model.
    X : array of shape (n_samples, n_features)
    Y : array of shape (n_samples, d1, ..., dp)
    w : array of shape (n_samples,), or None
    """
    missing = _passes_over(parts.ignores_missing, parts.has_unknown, Y)
    constant = to_numpy(parts.constant).astype(np.float64)
    return _in_blocks(
        lambda rows: PartErrors.of(
            Y[rows, ...],
            parts.of_blocks(X[rows, :]),
            constant,
            None if w is None else w[rows],
            missing=missing,
        ),
        Y,
        max(1, _PREDICTED // len(parts.names)),
    )


def _passes_over(ignores_missing: bool, has_unknown: bool, Y: Any) -> bool:
    """Return whether scores of a model skip NaN.

    They skip outputs that the model does not predict, and missing outputs if the model ignores
    missing outputs.
    """
    if has_unknown and not ignores_missing:
        check_finite(Y, "y")
    return ignores_missing or has_unknown


def errors_between(Y: Any, predicted: Any, w: np.ndarray | None, *, missing: bool) -> Errors:
    """Compute the sums of predictions of outputs in memory, without another array of this size."""
    return _in_blocks(
        lambda rows: Errors.of(
            Y[rows, ...], predicted[rows, ...], None if w is None else w[rows], missing=missing
        ),
        Y,
        _BLOCK,
    )


def _in_blocks(of_rows: Callable[[slice], Sums], Y: Any, max_bytes: int) -> Sums:
    """Add up the sums of all blocks; errors report positions in the whole data."""

    def of_block(rows: slice) -> Sums:
        with locate_rows(rows):
            return of_rows(rows)

    blocks = row_blocks(Y.shape[0], 8 * math.prod(Y.shape[1:]), max_bytes)
    return reduce(add, map(of_block, blocks))


def check_scored(shape: Sequence[int], expected: Sequence[int]) -> None:
    """Raise a ValueError if outputs and predictions differ in shape."""
    if tuple(shape) != tuple(expected):
        raise ValueError(
            f"y must have shape {tuple(expected)} to be scored against the predictions; "
            f"got {tuple(shape)}."
        )
