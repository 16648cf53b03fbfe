"""Units in which squares of the data neither overflow nor vanish."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from .namespace import Array, namespace_of
from .tucker import Tucker

__all__ = ["ONE", "Units", "unit_of", "wide_enough"]

# Sizes of data within which all that a fit forms of them stays in the range of floats.
_ORDINARY = {"float64": (1e-60, 1e60), "float32": (1e-12, 1e12)}


@dataclass(frozen=True)
class Units:
    """What inputs and outputs were divided by: powers of two, so that nothing is rounded.

    Parameters
    ----------
    x, y : float

    Examples
    --------
    >>> import numpy as np
    >>> Units.of(np.ones((3, 2)), 1e-170 * np.ones((3, 4))) == Units(1.0, 2.0**-565)
    True
    """

    x: float = 1.0
    y: float = 1.0

    @classmethod
    def of(cls, X: Array, Y: Array) -> Units:
        """Units that suit the data: one, unless these are very large or very small."""
        return cls(unit_of(X), unit_of(Y))

    @property
    def is_one(self) -> bool:
        """Whether nothing was divided."""
        return self.x == self.y == 1.0

    def alpha(self, alpha: float) -> float:
        """The ridge penalty that does to the divided data what `alpha` does to the data.

        Never infinite: nothing is left of the data long before.
        """
        return min(float(alpha) / self.x / self.x, sys.float_info.max)

    def energy(self, energy: Any) -> Any:
        """Sums of squares of outputs as those of the data themselves, infinite if need be."""
        if self.y == 1.0:
            return energy
        with np.errstate(over="ignore"):
            return energy * self.y * self.y

    def coefficients(self, W: Tucker) -> Tucker:
        """Coefficients of the data themselves."""
        first, *others = W.factors
        if self.is_one:
            return W
        if first is None:
            return Tucker(W.core * (self.y / self.x), W.factors, W.leading)
        # Core and factor apart: their product may leave the range of single precision.
        return Tucker(W.core * self.y, (first / self.x, *others), W.leading)


def unit_of(A: Array) -> float:
    """A power of two near the largest entry, or one where that is of ordinary size.

    A few entries are looked at first: a pass over all of them costs as much as a fit.
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
    return _largest(xp.where(xp.isnan(A), xp.zeros_like(A), A))  # missing entries have no size


def wide_enough(dtype: Any, coef: Tucker, intercept: Array) -> Any:
    """The type of the data, or double precision where it has no room for the coefficients."""
    xp = namespace_of(coef.core)
    arrays = [A for A in (intercept, coef.core, *coef.factors) if A is not None]
    largest = xp.stack([xp.max(xp.abs(A)) for A in arrays[1:]])
    for wide, least in ((dtype, float(xp.finfo(dtype).smallest_normal)), (xp.float64, 0.0)):
        # Not infinite, nor nothing; outputs that were never observed are NaN.
        lost = [xp.any(xp.isinf(xp.astype(A, wide, copy=False))) for A in arrays]
        lost.append(xp.any((largest > 0) & (largest < least)))
        if not bool(xp.any(xp.stack(lost))):  # asked once: an accelerator is waited for
            return wide
    raise ValueError(
        "y is so large and X or the penalty so small that the coefficients overflow: scale X or y."
    )


# Those of ordinary data.
ONE = Units()
