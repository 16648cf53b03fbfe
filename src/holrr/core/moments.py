"""Sufficient statistics of a regression with shared inputs, computed in one pass and mergeable.

Once ``X'X`` and ``X'Y`` are known, the cost of a fit does not depend on the number of samples. The
statistics are centred. Two sets are merged with the pairwise formula of Chan, Golub and LeVeque,
which adds non-negative terms, so that no digits cancel even if the means are large. Sums of raw
squares are never formed and subtracted.

Most of the cost of a fit is one pass over Y (`sum_responses`). The pass processes blocks of rows,
copies Y only if necessary, and detects NaN and infinity.

References
----------
T. F. Chan, G. H. Golub, R. J. LeVeque (1983). Algorithms for computing the sample variance:
analysis and recommendations. The American Statistician 37(3), 242-247.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from numbers import Real
from typing import Any, Self, TypeVar

import numpy as np

from .checks import check_finite
from .namespace import (
    Array,
    all_to_numpy,
    asarray_like,
    device_of,
    is_array,
    is_numpy_array,
    is_small_on_device,
    mean_and_scatter,
    namespace_of,
    on_host,
    row_blocks,
    symmetrise,
    to_device_of,
    to_numpy,
)
from .sparse import centre_columns, is_sparse
from .tensor import gram
from .threads import add_lists, n_threads_for, sum_in_threads

__all__ = [
    "CentredMoments",
    "ResponseSums",
    "merge_others",
    "check_sizes",
    "sizes_of",
    "n_shares",
    "sum_responses",
]
__all__ += ["weighted_mean"]

M = TypeVar("M", bound="CentredMoments")
# With at least _CENTRE_ROWS rows, the centre is the mean of every _CENTRE_STEP-th row.
_CENTRE_ROWS, _CENTRE_STEP = 4096, 16
# Bytes of a block that has to be copied (centred inputs, shifted outputs): small compared with the
# data.
_HOST_BLOCK, _DEVICE_BLOCK = 2**22, 2**30
# Minimum number of rows of a thread per column of the basis, since each thread has its own sums.
_ROWS_OF_A_THREAD = 16
# Products of float32 blocks are added up in float64 at least this often.
_FLOAT32_ROWS = 8192
# Rows of float32 that are added up in float32 before their sum is converted to float64.
_SUMMED_ROWS = 128
# Smallest sum of products that has not lost digits, and does not lose them in later products.
_SMALLEST = 1e-302


@dataclass(frozen=True, eq=False)
class CentredMoments:
    """Centred first and second moments of ``(X, Y)``, which are sufficient for a linear fit.

    The arrays are float64, for data of every dtype. Only ``subspaces="response"`` needs the
    Gram matrices of the outputs. The noise needs the squares of each output; the coefficients do
    not.
    """

    n_samples: int  # with positive weight
    weight: float  # sum of the weights; `n_samples` without weights
    mean_x: Array  # (n_features,)
    mean_y: Array  # (d1, ..., dp)
    Sxx: Array  # ``sum w (x - mean_x)(x - mean_x)'``, (n_features, n_features)
    Sxy: Array  # ``sum w (x - mean_x)(y - mean_y)``, (n_features, d1, ..., dp)
    syy: float  # ``sum w ||y - mean_y||^2``
    response_grams: tuple[Array, ...] | None = None  # of the modes of the centred Y, (d_i, d_i)
    dtype: str = "float64"  # that of the data, or "float32"
    squares: Array | None = None  # ``sum w (y - mean_y)^2``, (d1, ..., dp)
    # ``sum w g^2`` of moments that were multiplied by g; None if they never were (equals `weight`).
    weight_squares: float | None = None

    __array_ufunc__ = None  # so that products with NumPy scalars call `__rmul__`

    def __post_init__(self) -> None:
        # NumPy's sums and products of arrays without axes are scalars, which files do not store.
        for name in ("mean_y", "squares"):
            if isinstance(getattr(self, name), np.generic):
                object.__setattr__(self, name, np.asarray(getattr(self, name)))

    @classmethod
    @np.errstate(over="ignore", invalid="ignore")  # checked for at the end of the pass
    def from_checked(
        cls, X: Array, Y: Array, w: Array | None = None, response_grams: bool = False
    ) -> Self:
        """Return the moments of validated arrays; `X` may be sparse, in CSR format."""
        if is_sparse(X):
            return cls._of_sparse(X, Y, w, response_grams)
        xp = namespace_of(X)
        weight = float(X.shape[0]) if w is None else float(xp.sum(w))
        if X.shape[0] == 1:
            return cls._of_one(X, Y, weight, response_grams)
        centre = _centre(X, w, weight)
        unit = _float32_unit(X, centre) if X.dtype == xp.float32 else 1.0

        def write_inputs(rows: slice, out: Array) -> Array:
            """Write ``(X - centre)'`` of some rows to `out`, and return its inner products."""
            v = None if w is None else w[rows]
            in_place = v is None and out.dtype == xp.float64
            Xc = out if in_place else xp.empty_like(out, dtype=xp.float64)
            if is_numpy_array(Xc):
                np.subtract(X[rows, :].T, centre[:, None], out=Xc)
            else:
                Xc[...] = xp.astype(X[rows, :].T, xp.float64, copy=False)
                Xc -= centre[:, None]
            weighted = Xc if v is None else Xc * v
            if not in_place:
                out[...] = xp.astype(weighted / unit, out.dtype, copy=False)
            return weighted @ Xc.T

        sums = sum_responses(write_inputs, X.shape[1], Y, w, response_grams, unit=unit)
        # The centre only approximates the mean: the centred inputs do not add up to zero.
        drift, Sxx = sums.basis_sum, sums.inner
        Sxx -= xp.linalg.outer(drift, drift / weight)
        return cls(
            n_samples=X.shape[0] if w is None else int(xp.sum(xp.astype(w > 0, xp.int64))),
            weight=weight,
            mean_x=centre + drift / weight,
            mean_y=sums.mean,
            Sxx=symmetrise(Sxx),
            Sxy=sums.products,
            syy=sums.syy,
            response_grams=sums.grams,
            dtype="float32" if X.dtype == xp.float32 else "float64",
            squares=sums.squares,
        )

    @classmethod
    def _of_sparse(cls, X: Any, Y: Array, w: Array | None, response_grams: bool) -> Self:
        """Return the moments of samples with sparse inputs, which stay sparse (see `core.sparse`).

        The outputs are centred before they are multiplied with the inputs.
        """
        shape = tuple(Y.shape[1:])
        sums = sum_responses(lambda rows, out: None, 0, Y, w, response_grams)
        if w is not None and not w.all():  # samples without weight are dropped
            keep = np.flatnonzero(w)
            X, Y, w = X[keep], Y[keep], w[keep]
        centred = centre_columns(X.astype(np.float64, copy=False), w)
        Sxx, size = centred.inner(), math.prod(shape)
        mean = np.reshape(sums.mean, (1, size))
        Sxy = np.zeros((X.shape[1], size))
        # With about as many rows in a block as in Sxy, the additions to Sxy are cheap.
        for rows in row_blocks(len(Y), 8 * size, max(_HOST_BLOCK, 8 * size * X.shape[1])):
            B = np.reshape(Y[rows], (-1, size)) - mean
            B *= centred.r[rows, None]
            Sxy += centred.rows(rows).transposed_times(B)
        single = X.dtype == np.float32 and Y.dtype == np.float32
        return cls(
            n_samples=X.shape[0],
            weight=sums.weight,
            mean_x=centred.mean,
            mean_y=sums.mean,
            Sxx=Sxx,
            Sxy=np.reshape(Sxy, (X.shape[1], *shape)),
            syy=sums.syy,
            response_grams=sums.grams,
            dtype="float32" if single else "float64",
            squares=sums.squares,
        )

    @classmethod
    def _of_one(cls, X: Array, Y: Array, weight: float, response_grams: bool) -> Self:
        """Return the moments of a single sample, which has no variance."""
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

    @property
    def n_effective(self) -> float:
        """Effective number of samples, for noise and intervals.

        It is ``(sum w g)^2 / sum w g^2`` with the sample weights w, which count repetitions, and
        the factors g that the moments were multiplied by. It is the sum of the weights if the
        moments were never multiplied.
        """
        if self.weight_squares is None:
            return self.weight
        if not sys.float_info.min <= self.weight_squares <= sys.float_info.max:
            raise ValueError(
                f"The squares of the weights of these moments are too large or too small for "
                f"floating-point numbers; the sum of the weights is {self.weight:g}. Multiply "
                f"moments by numbers that keep this sum between 1e-150 and 1e150."
            )
        return self.weight * (self.weight / self.weight_squares)

    def to_host_if_small(self) -> Self:
        """Return the moments on the host if they are small and on an accelerator.

        A fit takes dozens of small steps, each of which costs a kernel launch or a transfer.
        """
        if is_numpy_array(self.Sxy) or not is_small_on_device(self.Sxy, math.prod(self.Sxy.shape)):
            return self
        names = ["mean_x", "mean_y", "Sxx", "Sxy"]
        names += [] if self.squares is None else ["squares"]
        parts = all_to_numpy([getattr(self, name) for name in names])
        found: dict[str, Any] = dict(zip(names, parts, strict=True))
        if self.response_grams is not None:
            found["response_grams"] = tuple(to_numpy(G) for G in self.response_grams)
        return replace(self, **found)

    def merge(self, *others: CentredMoments) -> Self:
        """Return the moments of all the samples together."""
        return reduce(_merge, others, self)

    def __add__(self, other: object) -> Self:
        return _merge(self, other) if isinstance(other, CentredMoments) else NotImplemented

    def __mul__(self, factor: object) -> Self:
        if not isinstance(factor, Real) or isinstance(factor, bool):
            return NotImplemented
        return self._scaled(float(factor))

    __rmul__ = __mul__

    def _scaled(self, factor: float) -> Self:
        """Return moments in which every sample has `factor` times its weight."""
        weight = factor * self.weight
        if not (factor > 0 and 0 < weight < math.inf):
            raise ValueError(
                f"Moments can be multiplied only by positive, finite numbers that keep their "
                f"weight positive; got {factor} times moments of weight {self.weight:g}."
            )
        if factor == 1:
            return self
        grams = self.response_grams
        return replace(
            self,
            weight=weight,
            Sxx=factor * self.Sxx,
            Sxy=factor * self.Sxy,
            syy=factor * self.syy,
            response_grams=None if grams is None else tuple(factor * G for G in grams),
            squares=None if self.squares is None else factor * self.squares,
            weight_squares=factor * factor * _weight_squares(self),
        )

    def about_zero(self) -> Self:
        """Return moments about the origin, for a fit without intercept; the means are zero."""
        xp = namespace_of(self.Sxx)
        return self.about(xp.zeros_like(self.mean_x), xp.zeros_like(self.mean_y))

    def centred(self, fit_intercept: bool = True, *, centre_inputs: bool = True) -> Self:
        """Return moments about the centres of a fit: the means, or zero without an intercept.

        A fit can have an intercept without centred inputs (for kernels, ``centre_inputs=False``).
        Data so small that their products underflow raise a ValueError.
        """
        check_sizes(*sizes_of(self), self.weight)
        if not fit_intercept:
            return self.about_zero()
        if centre_inputs:
            return self
        return self.about(namespace_of(self.Sxx).zeros_like(self.mean_x), self.mean_y)

    def about(self, mean_x: Array, mean_y: Array) -> Self:
        """Return moments about other centres than the means of the samples."""
        return self._shifted(
            self.mean_x - mean_x, self.mean_y - mean_y, self.weight, mean_x, mean_y
        )

    def _shifted(self, dx: Array, dy: Array, weight: float, mean_x: Array, mean_y: Array) -> Self:
        """Add `weight` copies of the sample ``(dx, dy)`` to the second moments."""
        xp = namespace_of(self.Sxx)
        outer = xp.reshape(
            xp.linalg.outer(weight * dx, xp.reshape(dy, (-1,))), tuple(self.Sxy.shape)
        )
        outer += self.Sxy  # in place: these are the largest arrays of a fit to data in chunks
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


def sizes_of(m: CentredMoments) -> tuple[float, float]:
    """Return typical sizes of inputs and outputs, from the largest mean or all deviations."""
    found = []
    scatter = float(namespace_of(m.Sxx).linalg.trace(m.Sxx))
    for mean, squares in ((m.mean_x, scatter), (m.mean_y, m.syy)):
        xp = namespace_of(mean)
        deviation = math.sqrt(max(squares, 0.0) / m.weight) if squares < math.inf else squares
        found.append(max(float(xp.max(xp.abs(mean))), deviation))
    return found[0], found[1]


def check_sizes(x: float, y: float, weight: float, *, squares: bool = False) -> None:
    """Raise a ValueError if the data are so small that their products underflow.

    Parameters
    ----------
    x, y : float
        Sizes of the inputs and the outputs.
    weight : float
        Sum of the weights.
    squares : bool
        Whether the squares of the outputs are also needed, as for their errors.
    """
    products = {"squares of X": (x, x), "products of X and y": (x, y)}
    if squares:
        products["squares of y"] = (y, y)
    lost = [
        what for what, (a, b) in products.items() if a > 0 and b > 0 and weight * a * b < _SMALLEST
    ]
    if lost:
        raise ValueError(
            f"X and y are too small: their entries are about {x:.1e} and {y:.1e}, so that the "
            f"{lost[0]} underflow. Multiply X and y by a large number before you compute moments, "
            f"or fit arrays in memory, which are rescaled."
        )


def _merge(a: M, b: CentredMoments) -> M:
    if not isinstance(b, CentredMoments):
        raise TypeError(f"Moments can be merged with Moments only; got {type(b).__name__}.")
    if (a.n_features, a.output_shape) != (b.n_features, b.output_shape):
        raise ValueError(
            f"Moments of different shapes cannot be merged: the first have {a.n_features} features "
            f"and outputs of shape {a.output_shape}, the second have {b.n_features} features and "
            f"outputs of shape {b.output_shape}."
        )
    if (a.response_grams is None) != (b.response_grams is None):
        raise ValueError(
            "Moments with and without response_grams cannot be merged: compute both with "
            "response_grams=True, or both without."
        )
    a, weight = _to_device_of(a, b.Sxx), a.weight + b.weight
    dx, dy = b.mean_x - a.mean_x, b.mean_y - a.mean_y
    share = b.weight / weight
    both = a._shifted(dx, dy, a.weight * share, a.mean_x + share * dx, a.mean_y + share * dy)
    Sxx, Sxy = both.Sxx, both.Sxy
    Sxx += b.Sxx  # in place: these are new arrays
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
        weight_squares=_sum_of_squares(a, b),
        # The merged moments lack sums that one of the parts lacks.
        squares=None if both.squares is None or b.squares is None else both.squares + b.squares,
    )


def _weight_squares(m: CentredMoments) -> float:
    return m.weight if m.weight_squares is None else m.weight_squares


def _sum_of_squares(a: CentredMoments, b: CentredMoments) -> float | None:
    if a.weight_squares is None and b.weight_squares is None:
        return None
    return _weight_squares(a) + _weight_squares(b)


def merge_others(parts: Sequence[M]) -> list[M]:
    """Return, for each part, the moments of all other parts, with about three merges per part."""
    before: list[M | None] = [None]
    for part in parts[:-1]:
        before.append(part if before[-1] is None else before[-1] + part)
    after: M | None = None
    merged: list[M] = []
    for part, head in zip(reversed(parts), reversed(before), strict=True):
        both = after if head is None else head if after is None else head + after
        assert both is not None
        merged.append(both)
        after = part if after is None else part + after
    return merged[::-1]


def _to_device_of(m: M, like: Array) -> M:
    """Return moments in the array library and on the device of `like`."""
    if to_device_of(m.Sxx, like) is m.Sxx:
        return m
    move = lambda a: to_device_of(a, like)  # noqa: E731
    arrays: dict[str, Any] = {name: move(a) for name, a in vars(m).items() if is_array(a)}
    if m.response_grams is not None:
        arrays["response_grams"] = tuple(map(move, m.response_grams))
    return replace(m, **arrays)


def _centre(X: Array, w: Array | None, weight: float) -> Array:
    """Return a vector to subtract before squaring: the mean of the rows, or of some of them.

    With many rows it is the mean of every sixteenth row. The correction for the difference is at
    most sixteen times the squares about the mean, which costs about one digit.
    """
    if w is not None or X.shape[0] < _CENTRE_ROWS or not is_numpy_array(X) or X.dtype != np.float64:
        return weighted_mean(X, w, weight)
    some = X[::_CENTRE_STEP, :]
    return np.full(len(some), 1 / len(some)) @ some


def _float32_unit(X: Array, centre: Array) -> float:
    """Return a power of two near the largest centred input.

    Inputs in float32 are divided by it, so that products with outputs of any size stay in the range
    of float32.
    """
    xp = namespace_of(X)
    high, low = (xp.astype(f(X, axis=0), xp.float64) for f in (xp.max, xp.min))
    largest = float(xp.max(xp.maximum(high - centre, centre - low)))
    return 2.0 ** round(math.log2(largest)) if largest > 0 else 1.0


def weighted_mean(X: Array, w: Array | None, weight: float) -> Array:
    """Return the weighted mean of the rows of `X`, in float64."""
    xp = namespace_of(X)
    if w is None:
        return xp.sum(X, axis=0, dtype=xp.float64) / weight
    return (w @ xp.astype(X, xp.float64, copy=False)) / weight


# ---------------------------------------------------------------- one pass over the outputs


@dataclass(frozen=True, eq=False)
class ResponseSums:
    """Sums of one pass over `Y`, about the mean of `Y`, with the basis `B` of the pass."""

    mean: Array  # (d1, ..., dp)
    products: Array  # ``B'(Y - mean)``, (k, d1, ..., dp)
    basis_sum: Array  # ``B'1``, (k,)
    squares: Array  # ``sum w (y - mean)^2`` of each output; infinite where it overflows
    grams: tuple[Array, ...] | None  # of the output modes of the centred Y
    weight: float  # sum of the weights of the samples
    inner: Array | None = None  # ``B'B`` with the weights once, (k, k), if the basis returns it

    @cached_property
    def syy(self) -> float:
        """``sum w ||y - mean||^2``."""
        return float(namespace_of(self.squares).sum(self.squares))

    def about_zero(self) -> ResponseSums:
        """Return the same sums about the origin, with zero for the mean."""
        xp, mean, weight, grams = namespace_of(self.products), self.mean, self.weight, self.grams
        outer = xp.linalg.outer(self.basis_sum, xp.reshape(mean, (-1,)))
        if grams is not None:
            grams = tuple(G + weight * gram(mean, i) for i, G in enumerate(grams))
        return ResponseSums(
            mean=xp.zeros_like(mean),
            products=self.products + xp.reshape(outer, tuple(self.products.shape)),
            basis_sum=self.basis_sum,
            squares=self.squares + weight * (mean * mean),
            grams=grams,
            weight=weight,
        )


@np.errstate(over="ignore", invalid="ignore")  # checked for at the end
def sum_responses(
    basis: Callable[[slice, Array], Array | None],
    k: int,
    Y: Array,
    w: Array | None,
    want_grams: bool = False,
    unit: float = 1.0,
) -> ResponseSums:
    """Compute sums in one pass over blocks of rows of `Y`, without a copy of it.

    The mean of `Y` comes from the same matrix product as ``B'Y`` (a row of ones is appended to
    ``B'``), and the sums of squares show whether all entries are finite.

    Parameters
    ----------
    basis : callable
        Writes ``B'`` for a slice of rows, weights included, into an array of shape (k, n). Its
        return values, if any, are added up (`ResponseSums.inner`). Several threads call it.
    k : int
        Number of columns of `B`.
    Y : array of shape (n_samples, d1, ..., dp)
    w : array of shape (n_samples,) or None
        Weights of the samples in the mean, the norm and the Gram matrices.
    want_grams : bool
        Whether to compute the Gram matrices of the output modes.
    unit : float
        Number that `basis` divides ``B'`` by; the sums are multiplied by it.
    """
    xp, device, shape = namespace_of(Y), device_of(Y), tuple(Y.shape[1:])
    size = math.prod(shape)
    if not on_host(Y) and w is None and not want_grams:
        return _sum_at_once(basis, k, Y, unit)
    shift = _shift(Y, w)

    def sum_block(rows: slice) -> list[Any]:
        n, wb = rows.stop - rows.start, None if w is None else w[rows]
        Yb = xp.reshape(Y[rows, ...], (n, size))
        if shift is not None:
            Yb = Yb - shift
        empty = lambda *dims: xp.empty(dims, dtype=Y.dtype, device=device)  # noqa: E731
        # float64: the memory order of X, without a transposition; float32: the more accurate order.
        Bt = empty(n, k + 1).T if Y.dtype == xp.float64 else empty(k + 1, n)
        inner = basis(rows, Bt[:k, :])
        by_blas = is_numpy_array(Yb) and Yb.dtype == np.float64  # faster for columns
        Bt[k, :] = 1.0 if wb is None else xp.astype(wb, Y.dtype, copy=False)
        products = xp.astype(Bt @ Yb, xp.float64, copy=False)
        if Y.dtype == xp.float32:
            products[k, :] = _column_sums(Yb, wb)
        return [
            products,
            _squares(Yb, wb),
            Bt[:k, :] @ np.ones(n) if by_blas else xp.sum(Bt[:k, :], axis=1, dtype=xp.float64),
            float(n) if wb is None else xp.sum(wb),
            *([] if inner is None else [inner]),
            *(_grams(Yb, shape, wb) if want_grams else []),
        ]

    contiguous = Y.flags.c_contiguous if is_numpy_array(Y) else True
    copies_Y = shift is not None or want_grams or w is not None or not contiguous
    parts = _parts_of_rows(Y, k, k + size * copies_Y)
    if len(parts) == 1:
        sums = add_lists(map(sum_block, parts[0]))
    else:
        sums = sum_in_threads(sum_block, parts)
    products, squares, basis_sum, weight, *more = sums
    grams = [more.pop() for _ in shape][::-1] if want_grams else None
    if unit != 1.0:
        products[:-1, :] *= unit
    found = _about_mean(products, unit * basis_sum, weight, squares, grams, shift, Y)
    return replace(found, inner=more[0]) if more else found


def n_shares(Y: Array, k: int) -> int:
    """Return the number of threads of the pass, each with enough rows for its own sums."""
    n = Y.shape[0]
    worth = n // (_ROWS_OF_A_THREAD * (k + 1)) if is_numpy_array(Y) else 1
    return max(1, min(worth, n_threads_for(k * math.prod(Y.shape))))


def _parts_of_rows(Y: Array, k: int, row_size: int) -> list[list[slice]]:
    """Return consecutive blocks of rows for each thread of the pass.

    Blocks fit into a budget, or are large enough that adding up their products is cheap.
    """
    budget = max(_HOST_BLOCK if is_numpy_array(Y) else _DEVICE_BLOCK, 16 * row_size * k)
    if Y.dtype == namespace_of(Y).float32:
        budget = min(budget, _FLOAT32_ROWS * 8 * row_size)
    n, m = Y.shape[0], n_shares(Y, k)
    blocks = row_blocks(n, 8 * row_size, budget)
    each = -(-len(blocks) // m)
    if m > 1:
        blocks = row_blocks(n, 1, -(-n // (m * each)))
    return [blocks[i : i + each] for i in range(0, len(blocks), each)]


def _sum_at_once(
    basis: Callable[[slice, Array], Array | None], k: int, Y: Array, unit: float
) -> ResponseSums:
    """Compute the same sums on an accelerator, where blocks and an additional row are costly."""
    xp, n = namespace_of(Y), Y.shape[0]
    Bt = xp.empty((n, k), dtype=Y.dtype, device=device_of(Y)).T  # in the memory order of X
    inner = basis(slice(0, n), Bt)
    flat = xp.reshape(Y, (n, -1))
    mean, squares = mean_and_scatter(flat)
    basis_sum = unit * xp.sum(Bt, axis=1, dtype=xp.float64)
    products = unit * _product(Bt, flat) - xp.linalg.outer(basis_sum, mean)
    sums = ResponseSums(
        mean=xp.reshape(mean, tuple(Y.shape[1:])),
        products=xp.reshape(products, (k, *Y.shape[1:])),
        basis_sum=basis_sum,
        squares=xp.reshape(squares, tuple(Y.shape[1:])),
        grams=None,
        weight=float(n),
        inner=inner,
    )
    if not math.isfinite(sums.syy):
        check_finite(Y, "y")
    return sums


def _product(Bt: Array, Y: Array) -> Array:
    """Return ``B'Y`` in float64; float32 products are converted every few rows."""
    xp, n = namespace_of(Y), Y.shape[0]
    if Y.dtype == xp.float64 or n <= _FLOAT32_ROWS:
        return xp.astype(Bt @ Y, xp.float64, copy=False)
    whole = n - n % _FLOAT32_ROWS
    blocks = lambda A: xp.reshape(A[:whole, :], (-1, _FLOAT32_ROWS, A.shape[1]))  # noqa: E731
    parts = xp.matmul(xp.permute_dims(blocks(Bt.T), (0, 2, 1)), blocks(Y))
    found = xp.sum(parts, axis=0, dtype=xp.float64)
    return found + xp.astype(Bt[:, whole:] @ Y[whole:, :], xp.float64)


def _about_mean(
    products: Array,
    basis_sum: Array,
    weight: Array,
    squares: Array,
    grams: list[Array] | None,
    shift: Array | None,
    Y: Array,
) -> ResponseSums:
    """Convert sums about the shift to sums about the mean."""
    xp, shape = namespace_of(products), tuple(Y.shape[1:])
    delta = products[-1, :] / weight  # the mean of Y minus the shift
    centred = products[:-1, :]
    centred -= xp.linalg.outer(basis_sum, delta)
    squares = squares - weight * (delta * delta)
    if not bool(xp.all(xp.isfinite(squares))):
        check_finite(Y, "y")  # returns if Y is finite and only its squares overflow
        squares = xp.where(xp.isfinite(squares), squares, xp.full_like(squares, math.inf))
    mean = xp.reshape(delta if shift is None else delta + shift, shape)
    if grams is not None:
        delta = xp.reshape(delta, shape)
        grams = [symmetrise(G - weight * gram(delta, i)) for i, G in enumerate(grams)]
    return ResponseSums(
        mean=mean,
        products=xp.reshape(centred, (centred.shape[0], *shape)),
        basis_sum=basis_sum,
        squares=xp.reshape(xp.clip(squares, 0.0, None), shape),
        grams=None if grams is None else tuple(grams),
        weight=float(weight),
    )


def _shift(Y: Array, w: Array | None) -> Array | None:
    """Return a rough mean to subtract before squaring, or None if this is not necessary.

    The squares about the mean are the squares about the shift minus a correction. The shift is the
    mean of a few rows (the first ones, or those of largest weight). The ratio of the correction to
    the result is at most the ratio of the total weight to the weight of these rows, so few digits
    cancel. Without a shift, digits cancel only if the mean is much larger than the spread of all
    outputs, or far larger than the spread of one output.
    """
    xp = namespace_of(Y)
    n = min(Y.shape[0], 64, 8 + Y.shape[0] // 100)
    if w is None:
        head, v = Y[:n, ...], xp.full((n,), 1 / n, dtype=xp.float64, device=device_of(Y))
    else:
        heaviest = asarray_like(np.argsort(-to_numpy(w), kind="stable")[:n], w)
        head, v = xp.take(Y, heaviest, axis=0), xp.take(w, heaviest)
        v = v / xp.sum(v)
    head = xp.astype(xp.reshape(head, (n, -1)), xp.float64, copy=False)
    mean, squares = v @ head, v @ (head * head)
    # 0.99: if the spread is a tenth of the mean, two digits are lost; one output may lose four.
    dwarfs = xp.sum(mean * mean) > 0.99 * xp.sum(squares)
    if n < 2 or not bool(dwarfs | xp.any(mean * mean > (1 - 1e-4) * squares)):
        return None
    return xp.astype(mean, Y.dtype, copy=False)


def _column_sums(Yb: Array, w: Array | None) -> Array:
    """Return ``sum_n w_n y_n`` of each column of a float32 matrix, in float64.

    The mean must be more accurate than a float32 product, whose rounding depends on the BLAS:
    squares about the mean are a difference of squares about the shift and of the squared mean.
    """
    xp = namespace_of(Yb)
    if w is not None:
        return w @ xp.astype(Yb, xp.float64)
    if not is_numpy_array(Yb):
        return xp.sum(Yb, axis=0, dtype=xp.float64)
    parts = [Yb[i : i + _SUMMED_ROWS] for i in range(0, len(Yb), _SUMMED_ROWS)]
    return sum(np.add.reduce(part, axis=0).astype(np.float64) for part in parts)


def _squares(Yb: Array, w: Array | None) -> Array:
    """Return ``sum_n w_n y_n^2`` of each column, in float64."""
    xp = namespace_of(Yb)
    if w is not None:
        Yb = xp.astype(Yb, xp.float64, copy=False)
        return w @ (Yb * Yb)
    if not is_numpy_array(Yb):
        return xp.sum(Yb * Yb, axis=0, dtype=xp.float64)
    if Yb.dtype == np.float64:
        return np.einsum("ij,ij->j", Yb, Yb)  # without a temporary
    # float32 adds up few rows at a time, if the squares are in its range.
    parts = [Yb[i : i + _SUMMED_ROWS] for i in range(0, len(Yb), _SUMMED_ROWS)]
    found = sum(np.einsum("ij,ij->j", part, part).astype(np.float64) for part in parts)
    if 1e-20 < found.max(initial=0.0) < math.inf:
        return found
    return sum(np.einsum("ij,ij->j", part, part, dtype=np.float64) for part in parts)


def _grams(Yb: Array, shape: tuple[int, ...], w: Array | None) -> list[Array]:
    xp = namespace_of(Yb)
    if w is not None:
        Yb = Yb * xp.astype(xp.sqrt(w), Yb.dtype)[:, None]
    return [gram(xp.reshape(Yb, (-1, *shape)), i + 1) for i in range(len(shape))]
