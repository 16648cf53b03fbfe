"""Grids of candidates: ranks within a memory budget, and penalties scaled to the data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from typing import Any, Protocol, TypeVar

import numpy as np

from ..core.approximate import check_rank
from ..core.warn import warn

__all__ = ["RankGrid", "candidate_ranks", "check_penalties", "default_alphas", "falling_edge"]
__all__ += ["matrix_grid", "multilinear_grid", "parameter_counts", "refined", "warn_at_edge"]
__all__ += ["widened"]

# Relative to the mean eigenvalue of X'X: from hardly any shrinkage to hardly any signal left.
_RELATIVE_ALPHAS = np.logspace(-4, 2, 13)
# How often a grid of penalties is widened, and by how many penalties.
_WIDENINGS, _STEPS = 3, 4
# A decrease by a smaller share of its standard error is no reason to widen.
_NEGLIGIBLE = 0.01


# ---------------------------------------------------------------- ranks


@dataclass(frozen=True)
class RankGrid:
    """Which ranks are candidates: all up to the caps, or those of a list.

    Parameters
    ----------
    caps : tuple of int
        The largest rank of each mode that is reduced, input mode first; empty for ridge regression.
    listed : tuple of tuples, or None
        The only candidates, where the user gave a list.
    """

    caps: tuple[int, ...]
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

    def within_shape(self, shape: Sequence[int]) -> RankGrid:
        """Ranks above the size of their mode become that size.

        Examples
        --------
        >>> RankGrid((3, 4), ((3, 4), (1, 1))).within_shape((3, 2))
        RankGrid(caps=(3, 2), listed=((3, 2), (1, 1)))
        """
        capped = lambda ranks: tuple(map(min, ranks, shape))  # noqa: E731
        listed = None if self.listed is None else tuple(map(capped, self.listed))
        return RankGrid(capped(self.caps), listed)

    def within_input_rank(self, limit: int) -> RankGrid:
        """Input ranks above `limit` become `limit`, the largest that any fold supports."""
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
                f"The error surfaces of ranks up to {self.caps} need {needed:,} bytes, and "
                f"max_bytes={max_bytes:,.0f} has no room for any candidate. Raise max_bytes, or "
                f"lower the ranks or the number of alphas."
            )
        warn(
            f"The error surfaces of ranks up to {self.caps} need {needed:,} bytes, more than "
            f"max_bytes={max_bytes:,.0f}: the rank of each mode is capped at {cap}, which leaves "
            f"{caps}. Raise max_bytes, or set max_rank."
        )
        return RankGrid(caps, listed)

    def mask(self) -> np.ndarray | None:
        """Which entries of a surface of shape `caps` are candidates; None for all."""
        if self.listed is None:
            return None
        mask = np.zeros(self.caps, dtype=bool)
        mask[tuple(np.array(self.listed).T - 1)] = True
        return mask


def multilinear_grid(
    max_rank: Any, ranks: Any, shape: Sequence[int], *, subspaces: str = "fitted"
) -> RankGrid:
    """The multilinear ranks to try of a tensor of the given shape, input mode first.

    Parameters
    ----------
    max_rank : None, int or tuple
        Largest rank of every mode, or of each.
    ranks : None, or list of tuples
        The only candidates.
    shape : sequence of int
    subspaces : {"fitted", "response"}
        Subspaces of the outputs can be larger than those of coefficients.
    """
    if ranks is not None:
        listed = tuple(_caps(R, shape, "ranks") for R in candidate_ranks(ranks))
        return RankGrid(tuple(max(R[i] for R in listed) for i in range(len(shape))), listed)
    grid = RankGrid(_caps(max_rank, shape, "max_rank"))
    given = max_rank is not None and not isinstance(max_rank, Integral)
    return grid if given or subspaces == "response" else grid.within_others(shape)


def matrix_grid(max_rank: Any, ranks: Any, shape: Sequence[int]) -> RankGrid:
    """The ranks to try of a matrix, inputs by all outputs."""
    if ranks is not None:
        listed = tuple(_caps((R,), shape[:1], "ranks") for R in candidate_ranks(ranks))
        return RankGrid((max(R[0] for R in listed),), listed)
    return RankGrid(_caps(max_rank, shape[:1], "max_rank"))


def candidate_ranks(ranks: Any) -> list[Any]:
    """A list of candidates, not empty."""
    if isinstance(ranks, str) or not isinstance(ranks, Iterable):
        raise TypeError(f"ranks must be a list of candidates; got ranks={ranks!r}.")
    found = list(ranks)
    if not found:
        raise ValueError("ranks must name at least one candidate; got an empty list.")
    return found


def _caps(rank: Any, shape: Sequence[int], name: str) -> tuple[int, ...]:
    try:
        caps = check_rank(rank, shape)
    except (TypeError, ValueError) as error:
        raise type(error)(f"Invalid {name}={rank!r}: {error}") from None
    if any(isinstance(R, float) for R in caps):
        raise ValueError(f"Invalid {name}={rank!r}: a search needs whole numbers.")
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
    # At most one rank exceeds the product of the others, and counts as that product.
    for i, (r, d) in enumerate(zip(R, shape, strict=True)):
        most = math.prod(R[:i] + R[i + 1 :])
        over = np.unravel_index(np.flatnonzero(r > most), count.shape)
        r, most = (np.broadcast_to(A, count.shape)[over] for A in (r, most))
        count[over] += most * d - r * (most + d - r)
    return count.reshape(tuple(caps))


# ---------------------------------------------------------------- penalties


def check_penalties(values: Any, name: str, *, zero: bool = True) -> np.ndarray | None:
    """Penalties as a vector in the order given, or None for those scaled to the data.

    Parameters
    ----------
    values : None, float or sequence of floats
    name : str
        The argument, for errors.
    zero : bool
        Whether zero is allowed.
    """
    if values is None:
        return None
    try:
        found = np.atleast_1d(np.asarray(values, dtype=float))
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be numbers; got {values!r}.") from error
    if found.ndim != 1 or found.size == 0:
        raise ValueError(f"{name} must be a list of at least one number; got {values!r}.")
    allowed = np.isfinite(found) & ((found >= 0) if zero else (found > 0))
    if not allowed.all():
        bound = "at least 0" if zero else "above 0"
        raise ValueError(f"{name} must be finite and {bound}; got {found[~allowed][0]}.")
    values, counts = np.unique(found, return_counts=True)
    if (counts > 1).any():
        raise ValueError(f"{name} must be distinct; {values[counts > 1][0]} occurs twice.")
    return found


def default_alphas(trace: float, n_directions: int) -> np.ndarray:
    """Thirteen penalties in half decades, from 1e-4 to 1e2 times the mean eigenvalue of X'X.

    Parameters
    ----------
    trace : float
        Of ``X'X``.
    n_directions : int
        Number of directions that it is spread over.
    """
    mean = trace / n_directions
    return _RELATIVE_ALPHAS * (mean if mean > 0 and math.isfinite(mean) else 1.0)


class _Profiled(Protocol):
    """Errors along a grid of penalties; see `search.Surface` and `pruning.Screened`."""

    @property
    def null_mse(self) -> float: ...

    def profile(self) -> tuple[np.ndarray, np.ndarray]: ...

    def joined(self, other: Any, order: np.ndarray) -> Any: ...


P = TypeVar("P", bound=_Profiled)


def falling_edge(found: _Profiled, penalties: np.ndarray) -> int | None:
    """Index of the smallest or largest penalty if the error still decreases towards it; else None.

    The best penalty is there, and its error is below that of its neighbour by more than a
    hundredth of its standard error.
    """
    if penalties.size < 2:
        return None
    least, folds = found.profile()
    best = int(np.argmin(least))
    order = np.argsort(penalties)
    place = int(np.flatnonzero(order == best)[0])
    if 0 < place < penalties.size - 1 or penalties[best] == 0:
        return None
    neighbour = least[order[1 if place == 0 else -2]]
    std = folds.std(ddof=1) if len(folds) > 1 else 0.0
    negligible = max(_NEGLIGIBLE * std / math.sqrt(len(folds)), 1e-9 * found.null_mse)
    return best if neighbour - least[best] > negligible else None


def widened(
    compute: Callable[[np.ndarray], P],
    penalties: np.ndarray,
    *,
    largest: float = math.inf,
    room: int = _WIDENINGS * _STEPS,
) -> tuple[P, np.ndarray]:
    """The errors of a default grid, which is widened as long as its edge is best.

    Parameters
    ----------
    compute : callable
        From penalties to their errors.
    penalties : array of shape (n,)
        In equal ratios.
    largest : float
        All penalties beyond this give the same model.
    room : int
        Number of further penalties that fit in memory.

    Returns
    -------
    found : errors of all penalties
    penalties : array of shape (n + more,)
    """
    found = compute(penalties)
    for _ in range(min(_WIDENINGS, room // _STEPS)):
        edge = falling_edge(found, penalties)
        if edge is None or _is_last(penalties, edge, largest):
            break
        ratio = penalties[edge] / penalties[1 if edge == 0 else -2]
        more = penalties[edge] * ratio ** np.arange(1, _STEPS + 1)
        more = more[np.isfinite(more) & (more > np.finfo(float).tiny) & (more <= largest)]
        if more.size < _STEPS:
            break
        found, penalties = _with_more(compute, found, penalties, more)
    return found, penalties


def refined(
    compute: Callable[[np.ndarray], P],
    penalties: np.ndarray,
    *,
    room: int = _WIDENINGS * _STEPS + 2,
) -> tuple[P, np.ndarray]:
    """The errors of a default grid that is widened, and twice as fine next to the best penalty.

    Parameters and results are those of `widened`.
    """
    found, penalties = widened(compute, penalties, room=room - 2)
    if room < 2 or penalties.size < 2:
        return found, penalties
    best = int(np.argmin(found.profile()[0]))
    near = np.sort(penalties)
    place = int(np.searchsorted(near, penalties[best]))
    pairs = [(a, b) for a, b in pairwise(near[max(place - 1, 0) : place + 2]) if a > 0]
    more = np.array([math.sqrt(a) * math.sqrt(b) for a, b in pairs])
    return _with_more(compute, found, penalties, more) if more.size else (found, penalties)


def _with_more(
    compute: Callable[[np.ndarray], P], found: P, penalties: np.ndarray, more: np.ndarray
) -> tuple[P, np.ndarray]:
    """Errors with those of more penalties, and all penalties: rising or falling, as they were."""
    both = np.concatenate([penalties, more])
    order = np.argsort(both, kind="stable")
    order = order if penalties[0] <= penalties[-1] else order[::-1]
    return found.joined(compute(more), order), both[order]


def _is_last(penalties: np.ndarray, edge: int, largest: float) -> bool:
    """Whether all penalties beyond this end of the grid give the same model."""
    return bool(penalties[edge] == penalties.max() and penalties[edge] >= (1 - 1e-9) * largest)


def warn_at_edge(
    found: _Profiled, penalties: np.ndarray, name: str, *, largest: float = math.inf
) -> None:
    """Warn where the best penalty lies beyond the grid."""
    edge = falling_edge(found, penalties)
    if edge is None or penalties.size < 3 or _is_last(penalties, edge, largest):
        return
    side = "largest" if penalties[edge] == penalties.max() else "smallest"
    warn(
        f"The best penalty, {penalties[edge]:.6g}, is the {side} of the grid, which ranges from "
        f"{penalties.min():.6g} to {penalties.max():.6g}, and the error still decreases there. "
        f"Widen `{name}`."
    )
