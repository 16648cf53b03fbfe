"""Computations on each block of samples in a pass, and merging of their results."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from ..core.checks import BadEntryError, check_finite
from ..core.moments import ResponseSums, sum_responses
from ..core.namespace import namespace_of
from ..data.arrays import (
    as_slice,
    check_inputs,
    check_outputs,
    check_pair,
    check_weights,
    locate_rows,
)
from .moments import Moments
from .reading import Box

__all__ = ["Pass", "RunningMoments", "added", "errors_of_block", "locate_errors", "join_blocks"]
__all__ += ["join_outputs", "moments_of_block", "moments_of_inputs", "sums_of_block"]


@dataclass(frozen=True, eq=False)
class Pass:
    """Specification of one pass over all blocks of a stream."""

    # Function of the inputs, outputs and weights of a block, and of its labels if there are any.
    map_block: Callable[..., Any]
    join: Callable[[Sequence[Any]], Any]  # merges the results of neighbouring blocks
    size: int  # approximate number of bytes of a result
    X: np.ndarray | None = None  # replacement of the inputs, (n_samples, k)
    outputs: bool = True  # whether the outputs are needed
    labels: np.ndarray | None = None
    # Whether a block must have all outputs of a sample; otherwise blocks may be chunks of the data.
    whole: bool = True
    max_outputs: int | None = None  # outputs that are read at a time, if the data allow it


class RunningMoments:
    """Merged moments of blocks, in the order in which they are added."""

    def __init__(self, response_grams: bool = False, moments: Moments | None = None) -> None:
        self._grams, self._moments = response_grams, moments

    def add(self, X: Any, Y: Any, w: Any = None) -> None:
        """Add a block; a block without weight is checked, and adds nothing."""
        X, Y = check_pair(X, Y, sparse=True)
        w = check_weights(w, X, all_zero=True)
        if w is not None and not bool(namespace_of(w).any(w)):
            check_finite(Y, "y")
            return
        self.merge(Moments.from_checked(X, Y, w, self._grams))

    @classmethod
    def joined(cls, others: Sequence[RunningMoments]) -> RunningMoments:
        """Return the merged moments of all `others`, which do not change."""
        both = cls(others[0]._grams)
        for other in others:
            if other._moments is not None:
                both.merge(other._moments)
        return both

    def merge(self, moments: Moments) -> None:
        """Add samples whose moments are known."""
        self._moments = moments if self._moments is None else self._moments + moments

    @property
    def is_empty(self) -> bool:
        """Whether no sample of positive weight was added."""
        return self._moments is None

    def result(self) -> Moments:
        """Return the moments of all blocks."""
        if self._moments is None:
            raise ValueError("at least one sample of positive weight is needed; got none.")
        return self._moments


def moments_of_block(
    X: Any,
    Y: Any,
    w: np.ndarray | None,
    labels: np.ndarray | None = None,
    n_folds: int = 1,
    response_grams: bool = False,
    features: Callable[[Any], Any] | None = None,
) -> list[RunningMoments]:
    """Compute the moments of each label in a block, of the inputs or of their `features`.

    Samples with a negative label are left out. Without `labels`, all samples have label 0. Samples
    without weight must also be finite.
    """
    running = [RunningMoments(response_grams) for _ in range(n_folds)]
    X = X if features is None else features(check_inputs(X))
    if labels is None:
        running[0].add(X, Y, w)
        return running
    for label in np.unique(labels[labels >= 0]):
        rows = as_slice(np.flatnonzero(labels == label))
        with locate_rows(rows):
            running[label].add(X[rows], Y[rows], None if w is None else w[rows])
    if w is not None and (rest := np.flatnonzero((labels < 0) & (w == 0))).size:
        with locate_rows(rest):
            RunningMoments().add(X[rest], Y[rest], w[rest])
    return running


def join_blocks(blocks: Sequence[list[RunningMoments]]) -> list[RunningMoments]:
    """Merge the moments of each label over all blocks."""
    return [RunningMoments.joined(folds) for folds in zip(*blocks, strict=True)]


def join_outputs(boxes: Sequence[Box], parts: Sequence[Moments], shape: tuple[int, ...]) -> Moments:
    """Join moments of parts of the outputs to moments of all outputs."""
    first = parts[0]
    if len(parts) == 1:
        return first
    mean_y, squares, Sxy = np.empty(shape), np.empty(shape), np.empty((first.n_features, *shape))
    for box, part in zip(boxes, parts, strict=True):
        mean_y[box], squares[box] = part.mean_y, part.squares
        Sxy[(slice(None), *box)] = part.Sxy
    syy = math.fsum(part.syy for part in parts)
    return replace(first, mean_y=mean_y, Sxy=Sxy, syy=syy, squares=squares)


def moments_of_inputs(X: np.ndarray, Y: Any, w: np.ndarray | None) -> list[RunningMoments]:
    return moments_of_block(X, X[:, 0], w)


def errors_of_block(sums_of: Callable[..., Any], X: Any, Y: Any, w: np.ndarray | None) -> Any:
    return sums_of(check_inputs(X, sparse=True), check_outputs(Y), w)


def sums_of_block(
    B: np.ndarray,
    Y: np.ndarray,
    w: np.ndarray | None,
    mean_x: np.ndarray | None,
    response_grams: bool,
) -> ResponseSums | None:
    """Compute products of a block of outputs with a basis, or with inputs about `mean_x`.

    Returns None if the block has no weight.
    """
    Y = check_outputs(Y).astype(np.float64, copy=False)
    if w is not None and not w.any():
        check_finite(Y, "y")
        return None
    if mean_x is not None:
        B = B - mean_x
        B = B if w is None else B * w[:, None]

    def rows_of_basis(rows: slice, out: np.ndarray) -> None:
        out[...] = B[rows].T

    return sum_responses(rows_of_basis, B.shape[1], Y, w, response_grams)


def added(parts: Iterable[Any]) -> Any:
    """Add up sums over blocks; None means a block without weight."""
    some = [part for part in parts if part is not None]
    return reduce(add, some) if some else None


@contextmanager
def locate_errors(where: str, rows: slice | None = None, box: Box = ()) -> Iterator[None]:
    """Name the block in errors about its values.

    If the samples (`rows`) and outputs (`box`) of the block are known, errors report the position
    of a bad entry in the whole data.
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
