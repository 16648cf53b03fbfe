"""Splitters for samples that depend on their neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import BaseCrossValidator

__all__ = ["BlockKFold"]


class BlockKFold(BaseCrossValidator):
    """Contiguous folds, with a gap between training and test samples.

    The samples are divided into contiguous blocks. Each block is the test set of one fold. Its
    training set consists of the samples before and after the block, without the `gap` samples next
    to the block on each side. With ``gap=0``, the folds are those of ``KFold``.

    In a time series, samples next to a block have similar noise. If they are in the training set,
    held-out errors are too small. Unlike ``TimeSeriesSplit``, which trains on the past only, all
    training sets have about the same size, and every sample is held out once. See
    docs/model_selection.md.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2.
    gap : int, default=0
        Number of samples on each side of a block that are in neither set.

    References
    ----------
    P. Burman, E. Chow, D. Nolan (1994). A cross-validatory method for dependent data. Biometrika
    81(2), 351-358.

    J. Racine (2000). Consistent cross-validatory model-selection for dependent data: hv-block
    cross-validation. Journal of Econometrics 99(1), 39-61.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr.model_selection import BlockKFold
    >>> for train, test in BlockKFold(3, gap=1).split(np.zeros((9, 2))):
    ...     print(train, test)
    [4 5 6 7 8] [0 1 2]
    [0 1 7 8] [3 4 5]
    [0 1 2 3 4] [6 7 8]

    A search takes the splitter as `cv`:

    >>> from holrr import HOLRRCV
    >>> from holrr.datasets import make_tensor_regression
    >>> X, Y = make_tensor_regression(90, 6, (4, 3), rank=2, snr=2, random_state=0)
    >>> cv = BlockKFold(5, gap=4)
    >>> cv.get_n_splits()
    5
    >>> HOLRRCV(cv=cv).fit(X, Y).predict(X).shape
    (90, 4, 3)
    """

    def __init__(self, n_splits: int = 5, gap: int = 0) -> None:
        for name, value, least in (("n_splits", n_splits, 2), ("gap", gap, 0)):
            if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
                raise ValueError(f"{name} must be an integer of at least {least}; got {value!r}.")
        self.n_splits, self.gap = int(n_splits), int(gap)

    def split(
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the indices of training and test samples of each fold.

        Parameters
        ----------
        X : array of shape (n_samples, ...)
            Inputs, of which only the number of samples is used.
        y, groups : object
            Not used.

        Yields
        ------
        train, test : arrays of int
            Indices of the samples.
        """
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        if self.n_splits > n:
            raise ValueError(f"n_splits={self.n_splits} is larger than the number of samples, {n}")
        blocks = [(part[0], part[-1] + 1) for part in np.array_split(np.arange(n), self.n_splits)]
        largest = min(max(start, n - end) for start, end in blocks) - 1
        if self.gap > largest:
            raise ValueError(
                f"gap={self.gap} leaves a fold without training samples; with {n} samples and "
                f"n_splits={self.n_splits}, the gap can be at most {largest}"
            )
        index = np.arange(n)
        for start, end in blocks:
            far = (index < start - self.gap) | (index >= end + self.gap)
            yield index[far], index[start:end]

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds.

        Parameters
        ----------
        X, y, groups : object
            Not used.

        Returns
        -------
        int
            Number of folds.
        """
        return self.n_splits
