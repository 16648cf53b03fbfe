"""Outputs of a kernel problem: centred, weighted, as a matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..core.finite import check_finite
from ..core.hat import column_products
from ..core.namespace import Array, is_numpy_array, namespace_of
from ..core.tensor import gram

__all__ = ["Responses", "centre_responses"]


@dataclass(frozen=True, eq=False)
class Responses:
    """Outputs, less their mean and times the roots of the weights, as a matrix."""

    values: Array  # (n_samples, D), in float64 and in memory of its own
    mean: Array  # (d1, ..., dp); zero where no intercept is fitted
    squares: Array  # (d1, ..., dp): sums of squares of `values`, infinite where they overflow
    weight: float  # sum of the weights
    grams: tuple[Array, ...] | None  # of the output modes, (d_i, d_i), up to a common factor
    dtype: str  # floating-point type of the data

    @cached_property
    def syy(self) -> float:
        """Squared norm of `values`."""
        return float(namespace_of(self.squares).sum(self.squares))

    @property
    def shape(self) -> tuple[int, ...]:
        """``(d1, ..., dp)``."""
        return tuple(self.mean.shape)


def centre_responses(
    Y: Array, w: Array | None = None, *, fit_intercept: bool = True, grams: bool = False
) -> Responses:
    """Take the (weighted) mean off the outputs and scale the samples by their weights."""
    xp, shape = namespace_of(Y), tuple(Y.shape[1:])
    check_finite(Y, "y")
    flat = xp.reshape(xp.astype(Y, xp.float64, copy=False), (Y.shape[0], math.prod(shape)))
    mean = xp.mean(flat, axis=0) if w is None else (w @ flat) / xp.sum(w)
    if not fit_intercept:
        mean = xp.zeros_like(mean)
    values = flat - mean if not is_numpy_array(flat) else np.subtract(flat, mean, order="C")
    if w is not None:
        values *= xp.sqrt(w)[:, None]
    with np.errstate(over="ignore"):
        squares = column_products(values, values)
    return Responses(
        values=values,
        mean=xp.reshape(mean, shape),
        squares=xp.reshape(squares, shape),
        weight=float(Y.shape[0]) if w is None else float(xp.sum(w)),
        grams=_output_grams(values, shape) if grams else None,
        dtype="float32" if Y.dtype == xp.float32 else "float64",
    )


def _output_grams(values: Array, shape: tuple[int, ...]) -> tuple[Array, ...]:
    """Gram matrices of the output modes, scaled where squares would overflow or vanish."""
    xp = namespace_of(values)
    largest = float(xp.max(xp.abs(values)))
    if largest > 0 and not 1e-120 < largest < 1e120:
        values = values / largest
    tensor = xp.reshape(values, (values.shape[0], *shape))
    return tuple(gram(tensor, i + 1) for i in range(len(shape)))
