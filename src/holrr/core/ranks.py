"""Ranks as a user writes them, as one entry a mode.

Every message names the entry, what was found and what would be right.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

__all__ = ["RankSpec", "check_matrix_rank", "check_rank"]

# One entry of a rank: a number of directions or a share of the mode's energy.
RankSpec = int | float


def check_rank(rank: Any, shape: Sequence[int]) -> tuple[RankSpec, ...]:
    """A rank as the user wrote it, as one entry a mode of a tensor of the given shape.

    Parameters
    ----------
    rank : None, int, float or sequence
        None for full rank; an int for every mode, capped at each mode's size; a float in (0, 1) for
        the smallest ranks that hold that share of each mode's energy; or a sequence with such an
        entry for each mode, input mode first.
    shape : sequence of int
        ``(n_features, d1, ..., dp)``.

    Examples
    --------
    >>> check_rank(3, (10, 2)), check_rank((None, 0.9), (10, 2)), check_rank(0.9, (10, 2))
    ((3, 2), (10, 0.9), (0.9, 0.9))
    """
    if rank is None:
        return tuple(shape)
    if isinstance(rank, Integral) and not isinstance(rank, bool):
        if rank < 1:
            raise ValueError(f"rank must be at least 1; got rank={rank}.")
        return tuple(min(int(rank), d) for d in shape)
    if isinstance(rank, Real) and not isinstance(rank, bool):
        return (_check_share(rank, "rank"),) * len(shape)
    if isinstance(rank, (str, bytes, bool)) or not isinstance(rank, (Sequence, np.ndarray)):
        raise TypeError(
            f"rank must be None, an int, a share in (0, 1), or a tuple with an entry for each mode;"
            f" got {rank!r}."
        )
    if len(rank) != len(shape):
        raise ValueError(
            f"rank must have {len(shape)} entries, one for the input mode and one for each of the "
            f"{len(shape) - 1} output modes of y; got rank={tuple(rank)} with {len(rank)}."
        )
    pairs = zip(rank, shape, strict=True)
    return tuple(_check_rank_entry(R, mode, d) for mode, (R, d) in enumerate(pairs))


def check_matrix_rank(rank: Any, size: int) -> RankSpec:
    """The rank of a matrix as the user wrote it: None, an int (capped at `size`) or a share."""
    if isinstance(rank, Integral) and not isinstance(rank, bool) and int(rank) > size:
        return size
    return _check_rank_entry(rank, 0, size)


def _check_rank_entry(R: Any, mode: int, size: int) -> RankSpec:
    name = f"rank[{mode}] ({'input mode' if mode == 0 else f'output mode {mode}'})"
    if R is None:
        return size
    if isinstance(R, Integral) and not isinstance(R, bool):
        if not 1 <= int(R) <= size:
            raise ValueError(f"{name} must be from 1 to the mode's size {size}; got {R}.")
        return int(R)
    if isinstance(R, Real) and not isinstance(R, bool):
        return _check_share(R, name)
    raise TypeError(f"{name} must be an int, a float in (0, 1) or None; got {R!r}.")


def _check_share(R: Any, name: str) -> float:
    if not 0 < float(R) < 1:
        raise ValueError(
            f"{name} as a float is a share of the mode's energy and must lie strictly between 0 "
            f"and 1; got {R}."
        )
    return float(R)
