"""Sufficient statistics of a regression with shared inputs: gathered in one pass, merged at will.

After ``X'X`` and ``X'Y`` the number of samples has disappeared from the problem. The statistics
are centred. Two sets are merged with the pairwise formula of Chan, Golub and LeVeque, which adds
non-negative terms, so that nothing cancels however large the means are; sums of raw squares are
never formed and subtracted.

References
----------
T. F. Chan, G. H. Golub, R. J. LeVeque (1983). Algorithms for computing the sample variance:
analysis and recommendations. The American Statistician 37(3), 242-247.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Self, TypeVar

import numpy as np

from .finite import check_finite
from .namespace import (
    Array,
    all_to_numpy,
    beside,
    device_of,
    is_array,
    is_numpy_array,
    namespace_of,
    symmetrise,
    to_numpy,
    waits,
)
from .responses import sum_responses
from .tensor import gram

__all__ = ["Moments", "weighted_mean"]

M = TypeVar("M", bound="Moments")
# From how many rows on the centre is the mean of one out of how many.
_CENTRE_ROWS, _CENTRE_STEP = 4096, 16


@dataclass(frozen=True, eq=False)
class Moments:
    """Centred first and second moments of ``(X, Y)``: all that a linear fit needs of the data.

    In float64, whatever the type of the data. Only the paper's own choice of subspaces needs the
    Gram matrices of the outputs. Files of older versions lack the squares of each output: fits are
    the same, but what they say of the noise needs them.
    """

    n_samples: int
    weight: float  # sum of the weights; `n_samples` where there are none
    mean_x: Array  # (n_features,)
    mean_y: Array  # (d1, ..., dp)
    Sxx: Array  # ``sum w (x - mean_x)(x - mean_x)'``, (n_features, n_features)
    Sxy: Array  # ``sum w (x - mean_x)(y - mean_y)``, (n_features, d1, ..., dp)
    syy: float  # ``sum w ||y - mean_y||^2``
    response_grams: tuple[Array, ...] | None = None  # of the modes of the centred Y, (d_i, d_i)
    dtype: str = "float64"  # that of the data, or "float32"
    squares: Array | None = None  # ``sum w (y - mean_y)^2``, (d1, ..., dp)

    @classmethod
    @np.errstate(over="ignore", invalid="ignore")  # checked for at the end of the pass
    def from_checked(
        cls, X: Array, Y: Array, w: Array | None = None, response_grams: bool = False
    ) -> Self:
        """Moments of the samples in validated arrays."""
        xp = namespace_of(X)
        weight = float(X.shape[0]) if w is None else float(xp.sum(w))
        if X.shape[0] == 1:
            return cls._of_one(X, Y, weight, response_grams)
        inputs = _CentredInputs(X, w, _centre(X, w, weight))
        sums = sum_responses(inputs, X.shape[1], Y, w, response_grams, unit=inputs.unit)
        # The centre is near the mean, or that rounded: the centred inputs do not add up to zero.
        drift, Sxx = sums.basis_sum, sums.inner
        Sxx -= xp.linalg.outer(drift, drift / weight)
        return cls(
            n_samples=X.shape[0],
            weight=weight,
            mean_x=inputs.mean + drift / weight,
            mean_y=sums.mean,
            Sxx=symmetrise(Sxx),
            Sxy=sums.products,
            syy=sums.syy,
            response_grams=sums.grams,
            dtype="float32" if X.dtype == xp.float32 else "float64",
            squares=sums.squares,
        )

    @classmethod
    def _of_one(cls, X: Array, Y: Array, weight: float, response_grams: bool) -> Self:
        """Moments of a single sample, which has no spread about itself."""
        check_finite(Y, "y")
        xp, d0, shape = namespace_of(X), X.shape[1], tuple(Y.shape[1:])
        zeros = lambda *dims: xp.zeros(dims, dtype=xp.float64, device=device_of(X))  # noqa: E731
        return cls(
            n_samples=1,
            weight=weight,
            mean_x=xp.astype(X[0, :], xp.float64, copy=True),
            mean_y=xp.astype(Y[0, ...], xp.float64, copy=True),
            Sxx=zeros(d0, d0),
            Sxy=zeros(d0, *shape),
            syy=0.0,
            response_grams=tuple(zeros(d, d) for d in shape) if response_grams else None,
            dtype="float32" if X.dtype == xp.float32 else "float64",
            squares=zeros(*shape),
        )

    @property
    def output_shape(self) -> tuple[int, ...]:
        """``(d1, ..., dp)``."""
        return tuple(self.mean_y.shape)

    @property
    def n_features(self) -> int:
        """Number of columns of `X`."""
        return self.mean_x.shape[0]

    def at_hand(self) -> Self:
        """The same on the host, where they are so small that an accelerator would only wait there.

        What follows is dozens of small steps, each of which costs a launch or a transfer.
        """
        if not waits(self.Sxy, math.prod(self.Sxy.shape)):
            return self
        names = ["mean_x", "mean_y", "Sxx", "Sxy"]
        names += [] if self.squares is None else ["squares"]
        parts = all_to_numpy([getattr(self, name) for name in names])
        found: dict[str, Any] = dict(zip(names, parts, strict=True))
        if self.response_grams is not None:
            found["response_grams"] = tuple(to_numpy(G) for G in self.response_grams)
        return replace(self, **found)

    def merge(self, *others: Moments) -> Self:
        """Moments of all the samples together."""
        return reduce(_merge, others, self)

    def __add__(self, other: object) -> Self:
        return _merge(self, other) if isinstance(other, Moments) else NotImplemented

    def about_zero(self) -> Self:
        """Moments about the origin, for a fit without intercept; the means become zero."""
        xp = namespace_of(self.Sxx)
        return self.about(xp.zeros_like(self.mean_x), xp.zeros_like(self.mean_y))

    def centred(self, fit_intercept: bool = True, *, centre_inputs: bool = True) -> Self:
        """Moments about what a fit takes off: the means, or nothing where there is no intercept.

        An intercept can also go with inputs that are taken as they are (kernels, say).
        """
        if not fit_intercept:
            return self.about_zero()
        if centre_inputs:
            return self
        return self.about(namespace_of(self.Sxx).zeros_like(self.mean_x), self.mean_y)

    def about(self, mean_x: Array, mean_y: Array) -> Self:
        """Moments about other centres than the samples' own means."""
        return self._shifted(
            self.mean_x - mean_x, self.mean_y - mean_y, self.weight, mean_x, mean_y
        )

    def _shifted(self, dx: Array, dy: Array, weight: float, mean_x: Array, mean_y: Array) -> Self:
        """Add `weight` copies of the sample ``(dx, dy)`` to the second moments."""
        xp = namespace_of(self.Sxx)
        outer = xp.reshape(
            xp.linalg.outer(weight * dx, xp.reshape(dy, (-1,))), tuple(self.Sxy.shape)
        )
        outer += self.Sxy  # in place: these are the largest arrays of a stream
        squares = xp.linalg.outer(weight * dx, dx)
        squares += self.Sxx
        grams = self.response_grams
        if grams is not None:
            grams = tuple(G + weight * gram(dy, i) for i, G in enumerate(grams))
        more = weight * (dy * dy)
        return replace(
            self,
            mean_x=mean_x,
            mean_y=mean_y,
            Sxx=squares,
            Sxy=outer,
            syy=self.syy + float(xp.sum(more)),
            response_grams=grams,
            squares=None if self.squares is None else self.squares + more,
        )


def _merge(a: M, b: Moments) -> M:
    if not isinstance(b, Moments):
        raise TypeError(f"Moments merge with Moments only; got {type(b).__name__}.")
    if (a.n_features, a.output_shape) != (b.n_features, b.output_shape):
        raise ValueError(
            f"moments of different shapes cannot be merged: {a.n_features} features and outputs of "
            f"shape {a.output_shape} here, {b.n_features} and {b.output_shape} there."
        )
    if (a.response_grams is None) != (b.response_grams is None):
        raise ValueError(
            "moments with and without response_grams cannot be merged: gather both with "
            "response_grams=True, or both without."
        )
    a, weight = _beside(a, b.Sxx), a.weight + b.weight
    dx, dy = b.mean_x - a.mean_x, b.mean_y - a.mean_y
    share = b.weight / weight
    both = a._shifted(dx, dy, a.weight * share, a.mean_x + share * dx, a.mean_y + share * dy)
    Sxx, Sxy = both.Sxx, both.Sxy
    Sxx += b.Sxx  # both's own, made a moment ago
    Sxy += b.Sxy
    grams = both.response_grams
    if grams is not None and b.response_grams is not None:
        grams = tuple(G + H for G, H in zip(grams, b.response_grams, strict=True))
    return replace(
        both,
        n_samples=a.n_samples + b.n_samples,
        weight=weight,
        Sxx=Sxx,
        Sxy=Sxy,
        syy=both.syy + b.syy,
        response_grams=grams,
        dtype=a.dtype if a.dtype == b.dtype else "float64",
        # Sums that a part lacks are lacking.
        squares=None if both.squares is None or b.squares is None else both.squares + b.squares,
    )


def _beside(m: M, like: Array) -> M:
    """Moments, of a file perhaps, in the library and on the device of newer ones."""
    if beside(m.Sxx, like) is m.Sxx:
        return m
    move = lambda a: beside(a, like)  # noqa: E731
    arrays: dict[str, Any] = {name: move(a) for name, a in vars(m).items() if is_array(a)}
    if m.response_grams is not None:
        arrays["response_grams"] = tuple(map(move, m.response_grams))
    return replace(m, **arrays)


class _CentredInputs:
    """The inputs about a centre, written block by block, and ``X'X`` of each block.

    In single precision they are divided by a power of two near the largest of them (`unit`), so
    that products with outputs of any size stay in its range.
    """

    def __init__(self, X: Array, w: Array | None, mean: Array):
        xp = namespace_of(X)
        self.X, self.w, self.mean = X, w, mean
        self.unit = 1.0
        if X.dtype == xp.float32:
            high, low = (xp.astype(f(X, axis=0), xp.float64) for f in (xp.max, xp.min))
            largest = float(xp.max(xp.maximum(high - mean, mean - low)))
            self.unit = 2.0 ** round(math.log2(largest)) if largest > 0 else 1.0

    def __call__(self, rows: slice, out: Array) -> Array:
        xp, w = namespace_of(self.X), None if self.w is None else self.w[rows]
        in_place = w is None and out.dtype == xp.float64
        Xc = out if in_place else xp.empty_like(out, dtype=xp.float64)
        if is_numpy_array(Xc):
            np.subtract(self.X[rows, :].T, self.mean[:, None], out=Xc)
        else:
            Xc[...] = xp.astype(self.X[rows, :].T, xp.float64, copy=False)
            Xc -= self.mean[:, None]
        weighted = Xc if w is None else Xc * w
        if not in_place:
            out[...] = xp.astype(weighted / self.unit, out.dtype, copy=False)
        return weighted @ Xc.T


def _centre(X: Array, w: Array | None, weight: float) -> Array:
    """What to take off before squaring: the mean of the rows, or, of many, of one out of some.

    What has to be put right then is, at worst, as many times the squares about the mean as there
    are rows for one that counts: one digit.
    """
    if w is not None or X.shape[0] < _CENTRE_ROWS or not is_numpy_array(X) or X.dtype != np.float64:
        return weighted_mean(X, w, weight)
    some = X[::_CENTRE_STEP, :]
    return np.full(len(some), 1 / len(some)) @ some


def weighted_mean(X: Array, w: Array | None, weight: float) -> Array:
    """Weighted mean of the rows of `X`, in float64."""
    xp = namespace_of(X)
    if w is None:
        return xp.sum(X, axis=0, dtype=xp.float64) / weight
    return (w @ xp.astype(X, xp.float64, copy=False)) / weight
