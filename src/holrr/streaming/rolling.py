"""A rolling window of moments: the sum of the newest parts of a stream."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from numbers import Integral

from .moments import Moments

__all__ = ["RollingMoments"]


class RollingMoments:
    """Moments of a rolling window: the newest parts of a stream, such as the last 36 months.

    The moments of a part that leaves the window are never subtracted, since this would cancel
    digits: the total is a sum of the parts in the window. Appending a part takes three merges on
    average, for any size of the window. For this, partial sums are stored: the window contains up
    to twice as many moments as parts.

    Parameters
    ----------
    n_parts : int
        Largest number of parts in the window, at least 1. When the window is full, appending a part
        removes the oldest one.

    See Also
    --------
    Moments : ``0.9 * moments`` reduces the weight of old samples gradually.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr import RLS, Moments, RollingMoments
    >>> rng = np.random.default_rng(0)
    >>> window = RollingMoments(n_parts=3)
    >>> for month in range(5):
    ...     X, Y = rng.normal(size=(20, 4)), rng.normal(size=(20, 3, 2))
    ...     window.append(Moments.from_arrays(X, Y))
    >>> len(window), window.total().n_samples
    (3, 60)
    >>> RLS().fit_moments(window.total()).coef_.shape
    (4, 3, 2)

    The parts can be the folds of a search:

    >>> from holrr import RLSCV
    >>> RLSCV(alphas=[1.0, 10.0]).fit_fold_moments(list(window)).alpha_ in (1.0, 10.0)
    True
    """

    # A queue of two stacks. The older parts are stored with the sums from each of them to the
    # newest older part, oldest first; the newer parts are stored with their total only.

    def __init__(self, n_parts: int) -> None:
        if not isinstance(n_parts, Integral) or isinstance(n_parts, bool) or n_parts < 1:
            raise ValueError(f"n_parts must be a positive int; got {n_parts!r}.")
        self.n_parts: int = int(n_parts)
        self._parts: deque[Moments] = deque()
        self._older: deque[Moments] = deque()
        self._newer: Moments | None = None

    def append(self, moments: Moments) -> None:
        """Add the newest part; if the window is full, remove the oldest one.

        Parameters
        ----------
        moments : Moments
            Moments of data with the same features and outputs as those in the window. Otherwise an
            error is raised, and the window does not change.
        """
        if not isinstance(moments, Moments):
            raise TypeError(f"moments must be a Moments object; got {type(moments).__name__}.")
        newer = moments if self._newer is None else self._newer + moments
        if self._newer is None and self._older:
            self._older[-1] + moments  # raises if features or outputs differ
        self._parts.append(moments)
        self._newer = newer
        if len(self._parts) > self.n_parts:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        if not self._older:  # the newer parts become the older ones
            total: Moments | None = None
            for part in reversed(self._parts):
                total = part if total is None else part + total
                self._older.appendleft(total)
            self._newer = None
        self._parts.popleft()
        self._older.popleft()

    def total(self) -> Moments:
        """Return the moments of all samples in the window.

        Returns
        -------
        Moments
            Sum of the moments of all parts.
        """
        if not self._parts:
            raise ValueError("the window is empty: append the moments of a part first.")
        if not self._older:
            assert self._newer is not None
            return self._newer
        return self._older[0] if self._newer is None else self._older[0] + self._newer

    def __len__(self) -> int:
        return len(self._parts)

    def __iter__(self) -> Iterator[Moments]:
        """Iterate over the parts in the window, oldest first."""
        return iter(tuple(self._parts))

    def __repr__(self) -> str:
        return f"RollingMoments(n_parts={self.n_parts}) with {len(self)} parts"
