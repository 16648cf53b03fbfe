"""The ranks to try, and how many of them fit into memory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils._param_validation import StrOptions

from ..core.caution import warn
from ..core.ranks import check_rank

__all__ = ["MatrixRanks", "MultilinearRanks", "NoRanks", "RankGrid", "check_ranks"]
__all__ += ["parameter_counts"]


@dataclass(frozen=True)
class RankGrid:
    """Which ranks are candidates: all up to the caps, or those of a list that the user gave."""

    caps: tuple[int, ...]  # the largest rank of each mode that is cut
    listed: tuple[tuple[int, ...], ...] | None = None

    def within_others(self, shape: Sequence[int]) -> RankGrid:
        """Ranks that tensors of a shape can have: none above the product of the other sizes.

        Examples
        --------
        >>> RankGrid((3, 2, 50)).within_others((3, 2, 50)).caps
        (3, 2, 6)
        """
        size = math.prod(shape)
        caps = tuple(min(R, size // d) for R, d in zip(self.caps, shape, strict=True))
        return RankGrid(caps, self.listed)

    def within_input_rank(self, limit: int) -> RankGrid:
        """Input ranks above what any fold supports stand for the largest one that is supported."""
        if not self.caps or self.caps[0] <= limit:
            return self
        listed = self.listed
        if listed is not None:
            listed = tuple((min(R[0], limit), *R[1:]) for R in listed)
        return RankGrid((limit, *self.caps[1:]), listed)

    def within_budget(self, n_surfaces: int, max_bytes: float) -> RankGrid:
        """All ranks capped at the largest common number for which the surfaces fit the budget."""
        room = int(max_bytes // (8 * n_surfaces))
        if math.prod(self.caps) <= room:
            return self
        cap = max(self.caps)
        while cap > 0 and math.prod(min(R, cap) for R in self.caps) > room:
            cap -= 1
        caps = tuple(min(R, cap) for R in self.caps)
        listed = self.listed
        if listed is not None:
            listed = tuple(R for R in listed if max(R) <= cap)
        needed = 8 * n_surfaces * math.prod(self.caps)
        if cap == 0 or listed == ():
            raise ValueError(
                f"the error surfaces of ranks up to {self.caps} would take {needed:,} bytes, and "
                f"max_bytes={max_bytes:,.0f} leaves no room for any of the candidates; raise "
                f"max_bytes, or lower the ranks or the number of alphas."
            )
        warn(
            f"the error surfaces of ranks up to {self.caps} would take {needed:,} bytes, more than "
            f"max_bytes={max_bytes:,.0f}: the rank of each mode is capped at {cap}, the largest "
            f"common cap that fits, which leaves {caps}. Raise max_bytes, or set `ranks`."
        )
        return RankGrid(caps, listed)

    def mask(self) -> np.ndarray | None:
        """Which entries of a surface of shape `caps` are candidates; None for all."""
        if self.listed is None:
            return None
        mask = np.zeros(self.caps, dtype=bool)
        mask[tuple(np.array(self.listed).T - 1)] = True
        return mask


def check_ranks(ranks: Any, shape: Sequence[int]) -> RankGrid:
    """The ranks to try: None for all, caps for each mode, or a list of tuples for just those.

    An int caps every mode, at most at its size; `shape` has the sizes of the modes that are cut.
    """
    if ranks is None or isinstance(ranks, Integral):
        return RankGrid(_check_caps(ranks, shape))
    if isinstance(ranks, str) or not isinstance(ranks, Iterable):
        raise TypeError(
            f"ranks must be None for all, an int or a tuple of caps, or a list of candidates; got "
            f"{ranks!r}."
        )
    ranks = list(ranks)
    if not ranks:
        raise ValueError("ranks must name at least one candidate; got an empty list.")
    if all(R is None or np.ndim(R) == 0 for R in ranks):
        return RankGrid(_check_caps(ranks, shape))
    listed = tuple(_check_caps(R, shape) for R in ranks)
    return RankGrid(tuple(max(R[i] for R in listed) for i in range(len(shape))), listed)


def _check_caps(ranks: Any, shape: Sequence[int]) -> tuple[int, ...]:
    try:
        caps = check_rank(ranks, shape)
    except (TypeError, ValueError) as error:
        raise type(error)(f"ranks={ranks!r} will not do: {error}") from None
    if any(isinstance(R, float) for R in caps):
        raise ValueError(
            f"ranks must be whole numbers here, since all of them are tried; got {ranks!r}."
        )
    return tuple(int(R) for R in caps)


def parameter_counts(shape: Sequence[int], caps: Sequence[int]) -> np.ndarray:
    """`n_parameters` of every rank up to the caps, as an array of shape `caps`.

    With fewer caps than modes the other modes have full rank.

    Examples
    --------
    >>> parameter_counts((10, 4), (2, 3))
    array([[13, 13, 13],
           [13, 24, 24]])
    """
    p1 = len(shape)
    full = [np.full((1,) * p1, d) for d in shape]
    R: list[np.ndarray] = [*np.ogrid[tuple(slice(1, c + 1) for c in caps)], *full[len(caps) :]]
    R = [r.reshape(r.shape + (1,) * (p1 - r.ndim)) for r in R]
    count = math.prod(R) + sum(r * (d - r) for r, d in zip(R, shape, strict=True))
    # At most one rank exceeds the product of the others, and is counted as that: of few models.
    for i, (r, d) in enumerate(zip(R, shape, strict=True)):
        most = math.prod(R[:i] + R[i + 1 :])
        over = np.unravel_index(np.flatnonzero(r > most), count.shape)
        r, most = (np.broadcast_to(A, count.shape)[over] for A in (r, most))
        count[over] += most * d - r * (most + d - r)
    return count.reshape(tuple(caps))


# ---------------------------------------------------------------- what is searched, by structure


class MultilinearRanks:
    """Searches over a rank for each mode."""

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "subspaces": [StrOptions({"fitted", "response"})],
        "refine": ["boolean"],
    }

    ranks: Any
    subspaces: str

    def _rank_grid(self, shape: Sequence[int]) -> RankGrid:
        grid = check_ranks(self.ranks, shape)
        # Subspaces of the outputs can be larger than those of coefficients; caps stay as given.
        given = self.ranks is not None and not isinstance(self.ranks, Integral)
        return grid if given or self.subspaces == "response" else grid.within_others(shape)

    def _of_rank(self, rank: tuple[int, ...]) -> dict[str, Any]:
        return {"rank": rank}


class MatrixRanks:
    """Searches over the rank of the coefficients as a matrix, inputs by all outputs."""

    ranks: Any

    def _rank_grid(self, shape: Sequence[int]) -> RankGrid:
        several = np.ndim(self.ranks) > 0
        return check_ranks([(R,) for R in self.ranks] if several else self.ranks, shape[:1])

    def _of_rank(self, rank: tuple[int, ...]) -> dict[str, Any]:
        return {"rank": rank[0]}


class NoRanks:
    """Searches over penalties alone: there is nothing to stack."""

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "selection": [StrOptions({"min", "1se"}), callable],
    }

    def _rank_grid(self, shape: Sequence[int]) -> RankGrid:
        return RankGrid(())

    def _of_rank(self, rank: tuple[int, ...]) -> dict[str, Any]:
        return {}
