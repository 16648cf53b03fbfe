"""Whether all entries of an array are finite, and where the first is that is not."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .namespace import Array, namespace_of, to_numpy

__all__ = ["BadEntryError", "check_finite"]


class BadEntryError(ValueError):
    """An entry that no fit can take, and where it is.

    Parameters
    ----------
    name : str
        The argument that it is in.
    what : str
        What was found, "NaN" for instance.
    index : tuple of int
    hint : str
        What can be done about it.

    Attributes
    ----------
    prefix : str
        What the message begins with: where the data are that the index belongs to.
    """

    def __init__(
        self,
        name: str,
        what: str,
        index: tuple[int, ...],
        hint: str = "Drop these samples or fill the gaps first.",
    ) -> None:
        super().__init__(name, what, index, hint)  # so that it can be pickled
        self.name, self.what, self.index, self.hint = name, what, index, hint
        self.prefix = ""

    def __str__(self) -> str:
        return (
            f"{self.prefix}{self.name} contains {self.what} at index {self.index} (the first of "
            f"them is at sample {self.index[0]}); every entry must be finite. {self.hint}"
        )

    def moved(self, rows: slice | np.ndarray, box: Sequence[slice] = ()) -> BadEntryError:
        """The same entry as seen from all the data.

        Parameters
        ----------
        rows : slice or array of int
            Which samples of all the data the array held.
        box : sequence of slices
            Which part of modes 1 to p it held; all of a mode where there is no slice for it.
        """
        row, *rest = self.index
        sample = rows.start + row if isinstance(rows, slice) else int(rows[row])
        first = [part.start for part in box] + [0] * (len(rest) - len(box))
        moved = tuple(i + start for i, start in zip(rest, first, strict=True))
        return BadEntryError(self.name, self.what, (sample, *moved), self.hint)


def check_finite(A: Array, name: str) -> None:
    """Raise a `BadEntryError` that says where `A` first holds NaN or infinity."""
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
