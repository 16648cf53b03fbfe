"""Whether all entries of an array are finite, and where the first is that is not."""

from __future__ import annotations

import math

import numpy as np

from .namespace import Array, namespace_of, to_numpy

__all__ = ["check_finite"]


def check_finite(A: Array, name: str) -> None:
    """Raise a ValueError that says where `A` first holds NaN or infinity."""
    xp = namespace_of(A)
    # A sum is finite if all entries are (and their sum does not overflow): one quick pass.
    with np.errstate(over="ignore", invalid="ignore"):
        if bool(xp.isfinite(xp.sum(A))):
            return
    for row in range(A.shape[0]):
        bad = ~to_numpy(xp.isfinite(A[row, ...]))
        if bad.any():
            where = (row, *(int(i) for i in np.argwhere(bad)[0]))
            value = "NaN" if math.isnan(float(A[where])) else "infinity"
            raise ValueError(
                f"{name} contains {value} at index {where} (the first of them is at sample {row}); "
                f"every entry must be finite. Drop these samples or fill the gaps first."
            )
