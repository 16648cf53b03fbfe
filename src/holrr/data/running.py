"""Moments that grow by blocks of samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from ..core.finite import BadEntryError, check_finite
from .arrays import as_slice, check_inputs, check_pair
from .moments import Moments
from .reading import Box

__all__ = ["Running", "errors_say_where", "join_blocks", "moments_of_block"]


class Running:
    """The moments of the blocks so far, merged in the order in which they came.

    Parameters
    ----------
    response_grams : bool
    moments : Moments, optional
        Where to go on from.
    """

    def __init__(self, response_grams: bool = False, moments: Moments | None = None) -> None:
        self._grams, self._moments, self._weightless = response_grams, moments, 0

    def add(self, X: Any, Y: Any, w: Any = None) -> None:
        """Add a block; a block without weight only counts its samples."""
        if w is not None and not np.any(np.asarray(w)):
            X, Y = check_pair(X, Y)
            check_finite(Y, "y")
            self._weightless += len(X)
            return
        self.merge(Moments.from_arrays(X, Y, w, self._grams))

    @classmethod
    def joined(cls, others: Sequence[Running]) -> Running:
        """All of them together, and none of them changed."""
        both = cls(others[0]._grams)
        for other in others:
            both._weightless += other._weightless
            if other._moments is not None:
                both.merge(other._moments)
        return both

    def merge(self, moments: Moments) -> None:
        """Add samples whose moments are known."""
        self._moments = moments if self._moments is None else self._moments + moments

    @property
    def is_empty(self) -> bool:
        """Whether there has been no sample of positive weight so far."""
        return self._moments is None

    def result(self) -> Moments:
        """The moments of all blocks."""
        if self._moments is None:
            raise ValueError("there must be a sample of positive weight; there was none.")
        if not self._weightless:
            return self._moments
        return replace(self._moments, n_samples=self._moments.n_samples + self._weightless)


def moments_of_block(
    X: Any,
    Y: Any,
    w: np.ndarray | None,
    labels: np.ndarray | None = None,
    n_folds: int = 1,
    response_grams: bool = False,
    features: Callable[[Any], Any] | None = None,
) -> list[Running]:
    """The moments of each label in a block, of the inputs or of their `features`.

    Negative labels belong to none, and no labels are all zero.
    """
    running = [Running(response_grams) for _ in range(n_folds)]
    X = X if features is None else features(check_inputs(X))
    if labels is None:
        running[0].add(X, Y, w)
        return running
    for label in np.unique(labels[labels >= 0]):
        rows = as_slice(np.flatnonzero(labels == label))
        try:
            running[label].add(X[rows], Y[rows], None if w is None else w[rows])
        except BadEntryError as error:
            raise error.moved(rows) from None
    return running


def join_blocks(blocks: Sequence[list[Running]]) -> list[Running]:
    """The moments of each label in all blocks."""
    return [Running.joined(folds) for folds in zip(*blocks, strict=True)]


@contextmanager
def errors_say_where(where: str, rows: slice | None = None, box: Box = ()) -> Iterator[None]:
    """Errors about the values of a block say which block it was.

    Where it is known which samples (`rows`) and outputs (`box`) it held, the place of a bad entry
    is that in all the data.
    """
    try:
        yield
    except BadEntryError as error:
        if rows is not None:
            error = error.moved(rows, box if error.name == "y" else ())
        error.prefix = f"in {where}: {error.prefix}"
        raise error from None
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"in {where}: {error}") from error
