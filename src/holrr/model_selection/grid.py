"""Grids of candidates of a search: ranks within a memory budget, and penalties."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from typing import Any, Protocol, TypeVar

import numpy as np

from ..core.approximate import check_rank
from ..core.warn import warn

__all__ = ["RankGrid", "check_penalties", "default_alphas", "falling_edge"]
__all__ += ["matrix_grid", "multilinear_grid", "parameter_counts", "refined", "warn_at_edge"]
__all__ += ["WIDENINGS", "widened", "wider"]

# Default penalties, as multiples of the mean eigenvalue of X'X: from weak to strong shrinkage.
_RELATIVE_ALPHAS = np.logspace(-4, 2, 13)
# Maximum number of times that a grid of penalties is widened, and number of penalties to add.
WIDENINGS, _STEPS = 3, 4
# Most penalties that `refined` adds.
MOST_ADDED = WIDENINGS * _STEPS + 2
# A grid is not widened if the error decreases by less than this share of its standard error.
_NEGLIGIBLE = 0.01


# ---------------------------------------------------------------- ranks


@dataclass(frozen=True)
class RankGrid:
    """Candidate ranks: all ranks up to the caps.

    Parameters
    ----------
    caps : tuple of int
        Largest rank of each mode that is reduced, input mode first. Empty for ridge regression.
    """

    caps: tuple[int, ...]

    def within_others(self, shape: Sequence[int]) -> RankGrid:
        """Cap each rank at the product of the other sizes, the largest rank that is possible.

        Examples
        --------
        >>> RankGrid((3, 2, 50)).within_others((3, 2, 50)).caps
        (3, 2, 6)
        """
        size = math.prod(shape)
        caps = tuple(min(R, size // d) for R, d in zip(self.caps, shape, strict=True))
        return RankGrid(caps)

    def within_shape(self, shape: Sequence[int]) -> RankGrid:
        """Cap each rank at the size of its mode.

        Examples
        --------
        >>> RankGrid((3, 4)).within_shape((3, 2))
        RankGrid(caps=(3, 2))
        """
        return RankGrid(tuple(map(min, self.caps, shape)))

    def within_input_rank(self, limit: int) -> RankGrid:
        """Cap the input rank at `limit`, the largest input rank that a fold supports."""
        if not self.caps or self.caps[0] <= limit:
            return self
        return RankGrid((limit, *self.caps[1:]))

    def within_budget(self, n_surfaces: int, max_bytes: int) -> RankGrid:
        """Cap all ranks at the largest common number whose error surfaces fit into the budget."""
        room = int(max_bytes // (8 * n_surfaces))
        if math.prod(self.caps) <= room:
            return self
        cap = max(self.caps)
        while cap > 0 and math.prod(min(R, cap) for R in self.caps) > room:
            cap -= 1
        caps = tuple(min(R, cap) for R in self.caps)
        needed = 8 * n_surfaces * math.prod(self.caps)
        if cap == 0:
            raise ValueError(
                f"The error surfaces of ranks up to {self.caps} need {needed:,} bytes, and no "
                f"candidate rank fits into the memory budget of {max_bytes:,} bytes. Increase the "
                f"budget with holrr.streaming.memory_budget, or reduce the ranks or the number of "
                f"alphas."
            )
        warn(
            f"The error surfaces of ranks up to {self.caps} need {needed:,} bytes, more than "
            f"the memory budget of {max_bytes:,}. The search caps the rank of each mode at {cap} "
            f"and tries ranks up to {caps}, and ridge regression, which has full rank. To try the "
            f"other ranks, increase the budget with holrr.streaming.memory_budget."
        )
        return RankGrid(caps)


def multilinear_grid(max_rank: Any, shape: Sequence[int]) -> RankGrid:
    """Return the grid of multilinear ranks of a tensor of the given shape, input mode first.

    Parameters
    ----------
    max_rank : None, int or tuple
        Largest rank of all modes, or of each mode.
    shape : sequence of int
        Shape of the coefficients.
    """
    grid = RankGrid(_caps(max_rank, shape))
    given = max_rank is not None and not isinstance(max_rank, Integral)
    return grid if given else grid.within_others(shape)


def matrix_grid(max_rank: Any, shape: Sequence[int]) -> RankGrid:
    """Return the grid of ranks of a matrix of inputs by all outputs."""
    return RankGrid(_caps(max_rank, shape[:1]))


def _caps(max_rank: Any, shape: Sequence[int]) -> tuple[int, ...]:
    try:
        caps = check_rank(max_rank, shape)
    except (TypeError, ValueError) as error:
        raise type(error)(f"Invalid max_rank={max_rank!r}: {error}") from None
    if any(isinstance(R, float) for R in caps):
        raise ValueError(f"Invalid max_rank={max_rank!r}: ranks of a search must be ints.")
    return tuple(int(R) for R in caps)


def parameter_counts(shape: Sequence[int], caps: Sequence[int]) -> np.ndarray:
    """Return the number of parameters of every rank up to the caps, as an array of shape `caps`.

    If there are fewer caps than modes, the other modes have full rank.

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
    # At most one rank exceeds the product of the others; it is replaced by the product.
    for i, (r, d) in enumerate(zip(R, shape, strict=True)):
        most = math.prod(R[:i] + R[i + 1 :])
        over = np.unravel_index(np.flatnonzero(r > most), count.shape)
        r, most = (np.broadcast_to(A, count.shape)[over] for A in (r, most))
        count[over] += most * d - r * (most + d - r)
    return count.reshape(tuple(caps))


# ---------------------------------------------------------------- penalties


def check_penalties(values: Any, name: str) -> np.ndarray | None:
    """Check penalties, and return them as a vector in the given order.

    Parameters
    ----------
    values : None, float or sequence of floats
        Penalties; None scales them to the data, and the result is None.
    name : str
        Name of the argument, for error messages.
    """
    if values is None:
        return None
    try:
        found = np.atleast_1d(np.asarray(values, dtype=float))
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be numbers; got {values!r}.") from error
    if found.ndim != 1 or found.size == 0:
        raise ValueError(f"{name} must be a list of at least one number; got {values!r}.")
    allowed = np.isfinite(found) & (found >= 0)
    if not allowed.all():
        raise ValueError(f"{name} must be finite and at least 0; got {found[~allowed][0]}.")
    values, counts = np.unique(found, return_counts=True)
    if (counts > 1).any():
        raise ValueError(
            f"{name} must be all different; {values[counts > 1][0]} occurs more than once."
        )
    return found


def default_alphas(trace: float, n_directions: int) -> np.ndarray:
    """Return 13 penalties in half decades, from 1e-4 to 1e2 times the mean eigenvalue of X'X.

    Parameters
    ----------
    trace : float
        Trace of ``X'X``.
    n_directions : int
        Number of eigenvalues over which the mean is taken.
    """
    mean = trace / n_directions
    return _RELATIVE_ALPHAS * (mean if mean > 0 and math.isfinite(mean) else 1.0)


class _Profiled(Protocol):
    """Errors for a grid of penalties, as `search.Surface`."""

    @property
    def null_mse(self) -> float: ...

    def profile(self) -> tuple[np.ndarray, np.ndarray]: ...

    def joined(self, other: Any, order: np.ndarray) -> Any: ...


P = TypeVar("P", bound=_Profiled)


def falling_edge(found: _Profiled, penalties: np.ndarray) -> int | None:
    """Return the index of the best penalty if it is an end of the grid, else None.

    The error must be lower than at the neighbouring penalty by more than a hundredth of its
    standard error.
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
) -> tuple[P, np.ndarray]:
    """Compute the errors of a default grid, and widen the grid while an end of it is best.

    Parameters
    ----------
    compute : callable
        Function from penalties to their errors.
    penalties : array of shape (n,)
        Penalties with equal ratios.
    largest : float
        Penalty beyond which all penalties give the same model.

    Returns
    -------
    found : Surface
        Errors of all penalties.
    penalties : array of shape (n + more,)
        Penalties of the widened grid.
    """
    found = compute(penalties)
    for _ in range(WIDENINGS):
        edge = falling_edge(found, penalties)
        if edge is None or _is_last(penalties, edge, largest):
            break
        more = wider(penalties, edge)
        if more.size < _STEPS or (more > largest).any():
            break
        found, penalties = _with_more(compute, found, penalties, more)
    return found, penalties


def wider(penalties: np.ndarray, edge: int) -> np.ndarray:
    """Return the penalties that continue the grid beyond one of its ends, as far as possible."""
    ratio = penalties[edge] / penalties[1 if edge == 0 else -2]
    with np.errstate(over="ignore", under="ignore"):
        more = penalties[edge] * ratio ** np.arange(1, _STEPS + 1)
    return more[np.isfinite(more) & (more > np.finfo(float).tiny)]


def refined(compute: Callable[[np.ndarray], P], penalties: np.ndarray) -> tuple[P, np.ndarray]:
    """Compute the errors of a default grid that is widened, and refined around the best penalty.

    One penalty is added on each side of the best one. Parameters and results are those of
    `widened`.
    """
    found, penalties = widened(compute, penalties)
    if penalties.size < 2:
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
    """Add the errors of more penalties; all penalties keep their increasing or decreasing order."""
    both = np.concatenate([penalties, more])
    order = np.argsort(both, kind="stable")
    order = order if penalties[0] <= penalties[-1] else order[::-1]
    return found.joined(compute(more), order), both[order]


def _is_last(penalties: np.ndarray, edge: int, largest: float) -> bool:
    """Return whether all penalties beyond this end of the grid give the same model."""
    return bool(penalties[edge] == penalties.max() and penalties[edge] >= (1 - 1e-9) * largest)


def warn_at_edge(
    found: _Profiled, penalties: np.ndarray, name: str, *, largest: float = math.inf
) -> None:
    """Warn if the best penalty lies beyond the grid."""
    edge = falling_edge(found, penalties)
    if edge is None or penalties.size < 3 or _is_last(penalties, edge, largest):
        return
    side = "largest" if penalties[edge] == penalties.max() else "smallest"
    warn(
        f"The best penalty, {penalties[edge]:.6g}, is the {side} of the grid from "
        f"{penalties.min():.6g} to {penalties.max():.6g}, and the error still decreases towards "
        f"this end. Widen the grid `{name}`."
    )
