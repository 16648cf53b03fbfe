"""Powers of two that bring data into a range in which their squares neither overflow nor vanish."""

from __future__ import annotations

import math

from .namespace import Array, namespace_of

__all__ = ["unit_of"]

# Sizes of data within which all that a fit forms of them stays in the range of floats.
_ORDINARY = {"float64": (1e-60, 1e60), "float32": (1e-12, 1e12)}


def unit_of(A: Array) -> float:
    """A power of two near the largest entry, or 1.0 where that entry is of ordinary size.

    Dividing by a power of two rounds nothing. A few entries are examined first, since a pass over
    all of them costs as much as a fit. NaN entries are ignored.

    Parameters
    ----------
    A : array of any shape

    Examples
    --------
    >>> import numpy as np
    >>> unit_of(np.ones((3, 2))), unit_of(1e-170 * np.ones((3, 4))) == 2.0**-565
    (1.0, True)
    """
    low, high = _ORDINARY["float32" if A.dtype == namespace_of(A).float32 else "float64"]
    some = A[tuple(slice(None, None, max(1, d // 8)) for d in A.shape)]
    if low < _largest(some) < high:
        return 1.0
    largest = _largest(A)
    ordinary = low < largest < high or largest == 0 or not math.isfinite(largest)
    return 1.0 if ordinary else 2.0 ** round(math.log2(largest))


def _largest(A: Array) -> float:
    xp = namespace_of(A)
    largest = float(xp.maximum(xp.max(A), -xp.min(A)))
    if not math.isnan(largest):
        return largest
    return _largest(xp.where(xp.isnan(A), xp.zeros_like(A), A))
