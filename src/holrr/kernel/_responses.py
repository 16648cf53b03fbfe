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
    """Outputs, less their mean and times the roots of the weights, as a matrix.

    Parameters
    ----------
    values : array of shape (n_samples, D)
        In float64, in memory of its own.
    mean : array of shape (d1, ..., dp)
        Zero where no intercept is fitted.
    squares : array of shape (d1, ..., dp)
        Squared norms of the columns of `values`; infinity where they overflow.
    weight : float
        Sum of the weights.
    grams : tuple of p arrays of shape (d_i, d_i), or None
        Gram matrices of the output modes, up to a common factor.
    dtype : str
        Floating-point type of the data.
    """

    values: Array
    mean: Array
    squares: Array
    weight: float
    grams: tuple[Array, ...] | None
    dtype: str

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
    root = None if w is None else xp.sqrt(w)
    values = flat - mean if not is_numpy_array(flat) else np.subtract(flat, mean, order="C")
    if root is not None:
        values *= root[:, None]
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
