"""Penalties to try: checked, scaled to the data by default, and widened where the best is last."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.caution import warn
from .sweep import Sweep

__all__ = ["check_penalties", "default_alphas", "falling_edge", "warn_at_edge", "widened"]

# Relative to the mean eigenvalue of X'X: from hardly any shrinkage to hardly any signal left.
_RELATIVE_ALPHAS = np.logspace(-4, 2, 13)
# How often a grid is widened, and by how many steps at a time.
_WIDENINGS, _STEPS = 3, 4
# A fall by a smaller share of its standard error is no reason to go on.
_NEGLIGIBLE = 0.01


def check_penalties(values: Any, name: str, *, zero: bool = True) -> np.ndarray | None:
    """Penalties as a vector in the order given, or None for those scaled to the data.

    Errors name the argument; `zero` is whether zero is a penalty, too.
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
        raise ValueError(
            f"{name} must differ from each other; {values[counts > 1][0]} comes twice."
        )
    return found


def default_alphas(energy: float, n_directions: int) -> np.ndarray:
    """Thirteen penalties in half decades, from 1e-4 to 1e2 times the mean eigenvalue of X'X.

    That is its trace, `energy`, over the number of directions that it is spread over.
    """
    mean = energy / n_directions
    return _RELATIVE_ALPHAS * (mean if mean > 0 and math.isfinite(mean) else 1.0)


# ---------------------------------------------------------------- the edges of a grid


def falling_edge(found: Sweep, penalties: np.ndarray, axis: int) -> int | None:
    """Place of the least or largest penalty if the error still falls towards it; else None.

    The best penalty is there, and its error is below that of its neighbour by more than a
    hundredth of its standard error. In ``found.mean_mse`` the penalties are along the axis.
    """
    if penalties.size < 2:
        return None
    least, folds = found.profile(axis)
    best = int(np.argmin(least))
    order = np.argsort(penalties)
    place = int(np.flatnonzero(order == best)[0])
    if 0 < place < penalties.size - 1 or penalties[best] == 0:
        return None
    neighbour = least[order[1 if place == 0 else -2]]
    spread = folds.std(ddof=1) if len(folds) > 1 else 0.0
    negligible = max(_NEGLIGIBLE * spread / math.sqrt(len(folds)), 1e-9 * found.null_mse)
    return best if neighbour - least[best] > negligible else None


def widened(
    sweep: Callable[[np.ndarray], Sweep],
    penalties: np.ndarray,
    axis: int,
    *,
    largest: float = math.inf,
    room: int = _WIDENINGS * _STEPS,
) -> tuple[Sweep, np.ndarray]:
    """The errors of a grid of the library's own, with more of it as long as its edge is best.

    Parameters
    ----------
    sweep : callable
        From penalties to their errors.
    penalties : array of shape (n,), in equal ratios
    axis : int
        As in `falling_edge`.
    largest : float
        Penalties beyond this are all the same.
    room : int
        How many penalties more there is memory for.
    """
    found = sweep(penalties)
    for _ in range(min(_WIDENINGS, room // _STEPS)):
        edge = falling_edge(found, penalties, axis)
        if edge is None or _is_last(penalties, edge, largest):
            break
        ratio = penalties[edge] / penalties[1 if edge == 0 else -2]
        more = penalties[edge] * ratio ** np.arange(1, _STEPS + 1)
        more = more[np.isfinite(more) & (more > np.finfo(float).tiny) & (more <= largest)]
        if more.size < _STEPS:
            break
        more = more[::-1] if edge == 0 else more
        found = found.joined(sweep(more), axis, before=edge == 0)
        pair = (more, penalties) if edge == 0 else (penalties, more)
        penalties = np.concatenate(pair)
    return found, penalties


def _is_last(penalties: np.ndarray, edge: int, largest: float) -> bool:
    """Whether nothing new lies beyond this end of the grid."""
    return bool(penalties[edge] == penalties.max() and penalties[edge] >= (1 - 1e-9) * largest)


def warn_at_edge(
    found: Sweep, penalties: np.ndarray, axis: int, name: str, *, largest: float = math.inf
) -> None:
    """Tell where the best penalty lies beyond the grid."""
    edge = falling_edge(found, penalties, axis)
    if edge is None or penalties.size < 3 or _is_last(penalties, edge, largest):
        return
    side = "largest" if penalties[edge] == penalties.max() else "smallest"
    warn(
        f"the best penalty, {penalties[edge]:.6g}, is the {side} of the grid, which goes from "
        f"{penalties.min():.6g} to {penalties.max():.6g}, and the error still falls there; a "
        f"better one lies beyond. Widen `{name}`."
    )
