"""Checks of arguments: finite entries, units in which squares do not overflow, and choices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .namespace import Array, namespace_of, to_numpy

__all__ = ["SAME_OUTPUTS", "BadEntryError", "check_choice", "check_finite", "unit_of"]

_ABOUT_OTHERS = "Drop these samples or impute the values first."
_ABOUT_INPUTS = (
    "Drop these samples or impute the values first; a feature that has no value in any sample must "
    "be left out."
)
_ABOUT_MISSING = (
    "RLS, LRR, HOLRR and their searches leave missing outputs out of the fit with "
    'missing="ignore" (call compute() on Dask arrays and toarray() on a sparse X first). For other '
    "estimators, drop these samples or impute the values."
)
SAME_OUTPUTS = (
    "Batches, files, Dask arrays and samples with a sparse X must lack the same outputs in every "
    "sample. Fit dense arrays in memory with missing='ignore', or drop these samples."
)


class BadEntryError(ValueError):
    """An entry that a fit cannot use, such as NaN, and its position.

    Parameters
    ----------
    name : str
        Name of the argument that contains the entry.
    what : str
        Kind of entry, such as "NaN".
    index : tuple of int
        Position of the entry.
    hint : str, optional
        Advice at the end of the message. The default depends on `name` and `what`.
    feature : str, optional
        Name of the feature, if the entry is one of the inputs.

    Attributes
    ----------
    prefix : str
        Beginning of the message, which names the data that the index refers to.
    """

    def __init__(
        self,
        name: str,
        what: str,
        index: tuple[int, ...],
        hint: str | None = None,
        feature: str | None = None,
    ) -> None:
        super().__init__(name, what, index, hint, feature)  # so that it can be pickled
        self.name, self.what, self.index, self.feature = name, what, index, feature
        missing = name == "y" and what != "infinity"
        about = _ABOUT_MISSING if missing else _ABOUT_INPUTS if name == "X" else _ABOUT_OTHERS
        self.hint, self.prefix = hint or about, ""

    def __str__(self) -> str:
        feature = "" if self.feature is None else f", feature {self.feature}"
        rule = "" if self.hint == SAME_OUTPUTS else "; every entry must be finite"
        return (
            f"{self.prefix}{self.name} contains {self.what} at index {self.index} (the first one, "
            f"in sample {self.index[0]}{feature}){rule}. {self.hint}"
        )

    def moved(self, rows: slice | np.ndarray) -> BadEntryError:
        """Return the same error with the position of the entry in the whole data.

        A hint that depends on the part of the data is dropped.

        Parameters
        ----------
        rows : slice or array of int
            Samples of the whole data that the array contains.
        """
        row, *rest = self.index
        sample = rows.start + row if isinstance(rows, slice) else int(rows[row])
        hint = self.hint if self.hint == SAME_OUTPUTS else None
        return BadEntryError(self.name, self.what, (sample, *rest), hint, self.feature)


def check_finite(A: Array, name: str) -> None:
    """Raise a `BadEntryError` with the position of the first NaN or infinite entry of `A`."""
    xp = namespace_of(A)
    # A sum is finite if all entries are (and their sum does not overflow): one quick pass.
    with np.errstate(over="ignore", invalid="ignore"):
        if math.isfinite(float(xp.sum(A))):
            return
    for row in range(A.shape[0]):
        bad = ~to_numpy(xp.isfinite(A[row, ...]))
        if bad.any():
            where = (row, *(int(i) for i in np.argwhere(bad)[0]))
            value = "NaN" if math.isnan(float(A[where])) else "infinity"
            raise BadEntryError(name, value, where)


# ---------------------------------------------------------------- units

# Sizes of entries for which no intermediate result of a fit overflows or underflows.
_ORDINARY = {"float64": (1e-60, 1e60), "float32": (1e-12, 1e12)}


def unit_of(A: Array) -> float:
    """Return a power of two near the largest entry, or 1.0 if that entry is of ordinary size.

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


def check_choice(value: Any, choices: Sequence[str | None], name: str) -> None:
    """Raise a ValueError if a value, of any type, is not one of the choices."""
    if (value is None or isinstance(value, str)) and value in choices:
        return
    shown = f"an array of shape {np.shape(value)}" if hasattr(value, "shape") else f"{value!r:.60}"
    hint = " For a weighted average, compute the score of each output with average=None."
    raise ValueError(
        f"{name} must be one of {', '.join(map(repr, choices))}; got {name}={shown}."
        f"{hint if name == 'average' and np.ndim(value) else ''}"
    )
