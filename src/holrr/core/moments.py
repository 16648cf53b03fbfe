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
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from .namespace import (
    Array,
    device_of,
    is_numpy_array,
    mean_and_scatter,
    namespace_of,
    on_host,
    row_blocks,
    squared_norm,
    symmetrise,
)
from .tensor import gram
from .validation import check_finite, check_pair, check_weights

__all__ = ["Moments", "ResponseSums", "sum_responses"]

# Bytes of a block that has to be copied (centred inputs, shifted outputs): small beside the data.
_HOST_BLOCK, _DEVICE_BLOCK = 2**22, 2**30
# Products of float32 blocks are added up in float64 at least this often.
_FLOAT32_ROWS = 8192


@dataclass(frozen=True, eq=False)
class Moments:
    """Centred first and second moments of ``(X, Y)``: all that a linear fit needs of the data.

    Parameters
    ----------
    n_samples : int
        Number of samples seen.
    weight : float
        Sum of their weights; `n_samples` where there are none.
    mean_x : array of shape (n_features,)
    mean_y : array of shape (d1, ..., dp)
    Sxx : array of shape (n_features, n_features)
        ``sum w (x - mean_x)(x - mean_x)'``.
    Sxy : array of shape (n_features, d1, ..., dp)
        ``sum w (x - mean_x) (y - mean_y)``.
    syy : float
        ``sum w ||y - mean_y||^2``.
    response_grams : tuple of p arrays of shape (d_i, d_i), or None
        Gram matrices of the output modes of the centred `Y`, which only the paper's own choice of
        subspaces needs.
    dtype : str
        Floating-point type of the data, "float64" or "float32"; the moments themselves are float64.

    Examples
    --------
    Statistics gathered in two places give the same fit as the data in one:

    >>> import numpy as np
    >>> from holrr import HOLRR, Moments
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(60, 4)), rng.normal(size=(60, 3, 2))
    >>> here = Moments.from_arrays(X[:20], Y[:20])
    >>> there = Moments.from_arrays(X[20:], Y[20:])
    >>> merged = HOLRR(rank=2).fit_moments(here + there)
    >>> bool(np.allclose(merged.coef_, HOLRR(rank=2).fit(X, Y).coef_))
    True
    """

    n_samples: int
    weight: float
    mean_x: Array
    mean_y: Array
    Sxx: Array
    Sxy: Array
    syy: float
    response_grams: tuple[Array, ...] | None = None
    dtype: str = "float64"

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        Y: Any,
        sample_weight: Any = None,
        response_grams: bool = False,
        *,
        max_bytes: int | None = None,
    ) -> Moments:
        """Moments of the samples in `X` and `Y`.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        Y : array of shape (n_samples, d1, ..., dp)
        sample_weight : array of shape (n_samples,), optional
        response_grams : bool, default=False
            Gather the Gram matrices of the output modes, too (for ``subspaces="response"``).
        max_bytes : int, optional
            About how much memory a pass over data on disk may take, beside the moments; 512 MiB by
            default. Memory maps, HDF5 and Zarr arrays are read in blocks, Dask arrays are reduced
            on the active scheduler.
        """
        from ..streaming import open_source

        source = open_source(X, Y, sample_weight, max_bytes)
        if source is not None:
            return source.moments(response_grams)
        X, Y = check_pair(X, Y)
        return cls.from_checked(X, Y, check_weights(sample_weight, X), response_grams)

    @classmethod
    @np.errstate(over="ignore", invalid="ignore")  # checked for at the end of the pass
    def from_checked(
        cls, X: Array, Y: Array, w: Array | None = None, response_grams: bool = False
    ) -> Moments:
        """Like `from_arrays`, for arrays that have been validated."""
        xp = namespace_of(X)
        d0 = X.shape[1]
        weight = float(X.shape[0]) if w is None else float(xp.sum(w))
        mean_x = weighted_mean(X, w, weight)
        Sxx = xp.zeros((d0, d0), dtype=xp.float64, device=device_of(X))

        def centred_inputs(rows: slice, out: Array) -> None:
            nonlocal Sxx
            Xc = (
                out
                if w is None and out.dtype == xp.float64
                else xp.empty_like(out, dtype=xp.float64)
            )
            Xc[...] = xp.astype(X[rows, :].T, xp.float64, copy=False)
            Xc -= mean_x[:, None]
            if w is None:
                Sxx += Xc @ Xc.T
            else:
                Sxx += (Xc * w[rows]) @ Xc.T
            if Xc is not out:
                out[...] = xp.astype(Xc if w is None else Xc * w[rows], out.dtype, copy=False)

        sums = sum_responses(centred_inputs, d0, Y, w, response_grams)
        # The mean is rounded, so the centred inputs add up to nearly zero only.
        drift = sums.basis_sum
        return cls(
            n_samples=X.shape[0],
            weight=weight,
            mean_x=mean_x + drift / weight,
            mean_y=sums.mean,
            Sxx=symmetrise(Sxx - xp.linalg.outer(drift, drift) / weight),
            Sxy=sums.products,
            syy=sums.syy,
            response_grams=sums.grams,
            dtype="float32" if X.dtype == xp.float32 else "float64",
        )

    @staticmethod
    def from_batches(
        batches: Iterable[tuple[Any, ...]],
        response_grams: bool = False,
        *,
        progress: bool = False,
        checkpoint: Any = None,
        checkpoint_every: int = 100,
    ) -> Moments:
        """Moments of a stream of batches, in one pass.

        Parameters
        ----------
        batches : iterable of pairs (X, Y) or triples (X, Y, sample_weight)
            Batches of any sizes. Of a sequence, those that a checkpoint holds are not read again.
        response_grams : bool, default=False
            Gather the Gram matrices of the output modes, too (for ``subspaces="response"``).
        progress : bool, default=False
            Show a progress bar on stderr.
        checkpoint : str or path, optional
            File to which the moments so far are saved, atomically, every `checkpoint_every`
            batches and at the end. Where it exists, the pass goes on from it: the batches in it
            are skipped, and the answer is that of one uninterrupted pass, to the last bit.
        checkpoint_every : int, default=100
            Number of batches from one checkpoint to the next.

        Returns
        -------
        Moments

        Examples
        --------
        >>> import numpy as np
        >>> from holrr import Moments
        >>> rng = np.random.default_rng(0)
        >>> stream = ((rng.normal(size=(20, 3)), rng.normal(size=(20, 2, 2))) for _ in range(5))
        >>> Moments.from_batches(stream).n_samples
        100
        """
        from ..streaming.batches import moments_from_batches

        return moments_from_batches(
            batches,
            response_grams,
            progress=progress,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
        )

    def save(self, path: Any) -> None:
        """Save the moments to a file that holds no code, atomically.

        Parameters
        ----------
        path : str or path
        """
        from ..io import save

        save(self, path)

    @staticmethod
    def load(path: Any) -> Moments:
        """Moments from a file that `save` or a checkpoint of `from_batches` wrote.

        Parameters
        ----------
        path : str or path

        Returns
        -------
        Moments
            Of NumPy arrays.
        """
        from ..io import load_moments

        return load_moments(path)[0]

    @property
    def output_shape(self) -> tuple[int, ...]:
        """``(d1, ..., dp)``."""
        return tuple(self.mean_y.shape)

    @property
    def n_features(self) -> int:
        """Number of columns of `X`."""
        return self.mean_x.shape[0]

    def merge(self, *others: Moments) -> Moments:
        """Moments of all the samples together."""
        return reduce(_merge, others, self)

    def __add__(self, other: object) -> Moments:
        return _merge(self, other) if isinstance(other, Moments) else NotImplemented

    def about_zero(self) -> Moments:
        """Moments about the origin, for a fit without intercept; the means become zero."""
        xp = namespace_of(self.Sxx)
        return self.about(xp.zeros_like(self.mean_x), xp.zeros_like(self.mean_y))

    def about(self, mean_x: Array, mean_y: Array) -> Moments:
        """Moments about other centres than the samples' own means."""
        return self._shifted(
            self.mean_x - mean_x, self.mean_y - mean_y, self.weight, mean_x, mean_y
        )

    def _shifted(
        self, dx: Array, dy: Array, weight: float, mean_x: Array, mean_y: Array
    ) -> Moments:
        """Add `weight` copies of the sample ``(dx, dy)`` to the second moments."""
        xp = namespace_of(self.Sxx)
        outer = xp.reshape(
            xp.linalg.outer(weight * dx, xp.reshape(dy, (-1,))), tuple(self.Sxy.shape)
        )
        grams = self.response_grams
        if grams is not None:
            grams = tuple(G + weight * gram(dy, i) for i, G in enumerate(grams))
        return Moments(
            n_samples=self.n_samples,
            weight=self.weight,
            mean_x=mean_x,
            mean_y=mean_y,
            Sxx=self.Sxx + xp.linalg.outer(weight * dx, dx),
            Sxy=self.Sxy + outer,
            syy=self.syy + weight * float(xp.sum(dy * dy)),
            response_grams=grams,
            dtype=self.dtype,
        )


def _merge(a: Moments, b: Moments) -> Moments:
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
    weight = a.weight + b.weight
    dx, dy = b.mean_x - a.mean_x, b.mean_y - a.mean_y
    share = b.weight / weight
    both = a._shifted(dx, dy, a.weight * share, a.mean_x + share * dx, a.mean_y + share * dy)
    grams = both.response_grams
    if grams is not None and b.response_grams is not None:
        grams = tuple(G + H for G, H in zip(grams, b.response_grams, strict=True))
    return Moments(
        n_samples=a.n_samples + b.n_samples,
        weight=weight,
        mean_x=both.mean_x,
        mean_y=both.mean_y,
        Sxx=both.Sxx + b.Sxx,
        Sxy=both.Sxy + b.Sxy,
        syy=both.syy + b.syy,
        response_grams=grams,
        dtype=a.dtype if a.dtype == b.dtype else "float64",
    )


# ---------------------------------------------------------------- the pass over Y


@dataclass(frozen=True, eq=False)
class ResponseSums:
    """What one pass over `Y` gathers, about the mean of `Y`.

    Parameters
    ----------
    mean : array of shape (d1, ..., dp)
    products : array of shape (k, d1, ..., dp)
        ``B'(Y - mean)`` for the basis `B` of the pass.
    basis_sum : array of shape (k,)
        ``B'1``.
    syy : float
        ``sum w ||y - mean||^2``.
    grams : tuple of arrays, or None
        Gram matrices of the output modes of the centred `Y`.
    """

    mean: Array
    products: Array
    basis_sum: Array
    syy: float
    grams: tuple[Array, ...] | None

    def about_zero(self, weight: float) -> ResponseSums:
        """The same sums about the origin, with zero for the mean."""
        xp, mean = namespace_of(self.products), self.mean
        outer = xp.linalg.outer(self.basis_sum, xp.reshape(mean, (-1,)))
        grams = self.grams
        if grams is not None:
            grams = tuple(G + weight * gram(mean, i) for i, G in enumerate(grams))
        return ResponseSums(
            mean=xp.zeros_like(mean),
            products=self.products + xp.reshape(outer, tuple(self.products.shape)),
            basis_sum=self.basis_sum,
            syy=self.syy + weight * float(xp.sum(mean * mean)),
            grams=grams,
        )


@np.errstate(over="ignore", invalid="ignore")  # checked for at the end
def sum_responses(
    basis: Callable[[slice, Array], None],
    k: int,
    Y: Array,
    w: Array | None,
    want_grams: bool = False,
) -> ResponseSums:
    """One pass over the rows of `Y`, in blocks, with no copy of it.

    The mean of `Y` comes out of the same matrix product as ``B'Y`` (from a row of ones under
    ``B'``), and the squared norm tells on the way whether all entries are finite.

    Parameters
    ----------
    basis : callable
        Writes ``B'`` for a slice of rows, weights included, into an array of shape (k, n).
    k : int
        Number of columns of `B`.
    Y : array of shape (n_samples, d1, ..., dp)
    w : array of shape (n_samples,) or None
        Weights of the samples in the mean, the norm and the Gram matrices.
    want_grams : bool
        Whether the Gram matrices of the output modes are gathered.
    """
    xp, device, shape = namespace_of(Y), device_of(Y), tuple(Y.shape[1:])
    size = math.prod(shape)
    if not on_host(Y) and Y.dtype == xp.float64 and w is None and not want_grams:
        return _sum_at_once(basis, k, Y)
    zeros = lambda *dims: xp.zeros(dims, dtype=xp.float64, device=device)  # noqa: E731
    shift = _shift(Y)
    products, basis_sum, weight, syy = zeros(k + 1, size), zeros(k), zeros(), zeros()
    grams = [zeros(d, d) for d in shape] if want_grams else None

    copies_Y = shift is not None or want_grams or w is not None or not _is_c_contiguous(Y)
    for rows in _blocks(Y, k + size * copies_Y):
        n = rows.stop - rows.start
        Yb = xp.reshape(Y[rows, ...], (n, size))
        if shift is not None:
            Yb = Yb - shift
        Bt = xp.empty((k + 1, n), dtype=Y.dtype, device=device)
        basis(rows, Bt[:k, :])
        Bt[k, :] = 1.0 if w is None else xp.astype(w[rows], Y.dtype, copy=False)
        products += xp.astype(Bt @ Yb, xp.float64, copy=False)
        basis_sum += xp.sum(Bt[:k, :], axis=1, dtype=xp.float64)
        weight += n if w is None else xp.sum(w[rows])
        syy += _weighted_norm(Yb, None if w is None else w[rows])
        if grams is not None:
            _add_grams(grams, Yb, shape, None if w is None else w[rows])

    return _about_mean(products, basis_sum, weight, syy, grams, shift, shape, Y)


def _sum_at_once(basis: Callable[[slice, Array], None], k: int, Y: Array) -> ResponseSums:
    """The same on an accelerator, where blocks and a row more in the product cost too much."""
    xp, n = namespace_of(Y), Y.shape[0]
    Bt = xp.empty((n, k), dtype=Y.dtype, device=device_of(Y)).T  # as X lies: no transposition
    basis(slice(0, n), Bt)
    flat = xp.reshape(Y, (n, -1))
    mean, syy = mean_and_scatter(flat)
    basis_sum = xp.sum(Bt, axis=1)
    products = Bt @ flat - xp.linalg.outer(basis_sum, mean)
    if not math.isfinite(float(syy)):
        check_finite(Y, "y")
    return ResponseSums(
        mean=xp.reshape(mean, tuple(Y.shape[1:])),
        products=xp.reshape(products, (k, *Y.shape[1:])),
        basis_sum=basis_sum,
        syy=float(syy),
        grams=None,
    )


def _about_mean(
    products: Array,
    basis_sum: Array,
    weight: Array,
    syy: Array,
    grams: list[Array] | None,
    shift: Array | None,
    shape: tuple[int, ...],
    Y: Array,
) -> ResponseSums:
    """From sums about the shift to sums about the mean."""
    xp = namespace_of(products)
    delta = products[-1, :] / weight  # the mean of Y, less the shift
    centred = products[:-1, :] - xp.linalg.outer(basis_sum, delta)
    squared = float(syy - weight * xp.sum(delta * delta))
    if not math.isfinite(squared):
        check_finite(Y, "y")  # returns where Y is finite and only its square overflows
    mean = xp.reshape(delta if shift is None else delta + shift, shape)
    if grams is not None:
        delta = xp.reshape(delta, shape)
        grams = [symmetrise(G - weight * gram(delta, i)) for i, G in enumerate(grams)]
    return ResponseSums(
        mean=mean,
        products=xp.reshape(centred, (centred.shape[0], *shape)),
        basis_sum=basis_sum,
        syy=max(squared, 0.0) if not math.isnan(squared) else math.inf,
        grams=None if grams is None else tuple(grams),
    )


def _shift(Y: Array) -> Array | None:
    """A rough mean to take off before squaring, or None where squaring is safe without.

    The squared norm about the mean is the one about the shift less a correction. With the first
    rows' mean as shift the correction is at most n / n_first times the result, so few digits
    cancel. Without a shift they cancel only where the mean dwarfs the spread.
    """
    xp = namespace_of(Y)
    head = Y[: min(Y.shape[0], 64, 8 + Y.shape[0] // 100), ...]
    head = xp.astype(xp.reshape(head, (head.shape[0], -1)), xp.float64, copy=False)
    mean = xp.mean(head, axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        # 0.99: a spread of a tenth of the mean, two digits.
        dwarfs = xp.sum(mean * mean) * head.shape[0] > 0.99 * xp.sum(head * head)
    if head.shape[0] < 2 or not bool(dwarfs):
        return None
    return xp.astype(mean, Y.dtype, copy=False)


def _weighted_norm(Yb: Array, w: Array | None) -> Array:
    """``sum_n w_n ||y_n||^2`` as a float64 scalar of the array's library."""
    xp = namespace_of(Yb)
    if w is None:
        return xp.astype(squared_norm(Yb), xp.float64)
    return xp.sum(w * xp.sum(Yb * Yb, axis=1, dtype=xp.float64))


def _add_grams(grams: list[Array], Yb: Array, shape: tuple[int, ...], w: Array | None) -> None:
    xp = namespace_of(Yb)
    if w is not None:
        Yb = Yb * xp.astype(xp.sqrt(w), Yb.dtype)[:, None]
    block = xp.reshape(Yb, (Yb.shape[0], *shape))
    for i in range(len(grams)):
        grams[i] += gram(block, i + 1)


def weighted_mean(X: Array, w: Array | None, weight: float) -> Array:
    """Weighted mean of the rows of `X`, in float64."""
    xp = namespace_of(X)
    if w is None:
        return xp.sum(X, axis=0, dtype=xp.float64) / weight
    return (w @ xp.astype(X, xp.float64, copy=False)) / weight


def _blocks(Y: Array, row_size: int) -> list[slice]:
    budget = _HOST_BLOCK if is_numpy_array(Y) else _DEVICE_BLOCK
    if Y.dtype == namespace_of(Y).float32:
        budget = min(budget, _FLOAT32_ROWS * 8 * row_size)
    return row_blocks(Y.shape[0], 8 * row_size, budget)


def _is_c_contiguous(Y: Array) -> bool:
    if is_numpy_array(Y):
        return bool(Y.flags.c_contiguous)
    contiguous = getattr(Y, "is_contiguous", None)
    return bool(contiguous()) if contiguous is not None else True
