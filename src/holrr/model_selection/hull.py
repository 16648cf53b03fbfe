"""The point of least norm in a convex hull, from the Gram matrix of its corners.

Wolfe's active set method: the best point of the affine hull of some corners, from which corners
leave where its weights are not positive, and which the corner that the gradient points to joins.

References
----------
P. Wolfe (1976). Finding the nearest point in a polytope. Mathematical Programming 11, 128-149.
"""

from __future__ import annotations

import numpy as np

__all__ = ["nearest_in_hull", "squares"]


def squares(B: np.ndarray, w: np.ndarray) -> float:
    """``w' B w``, no smaller than what rounding leaves where long vectors cancel each other."""
    return max(float(w @ B @ w), 1e-14 * float(w @ np.abs(B) @ w))


def nearest_in_hull(B: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Weights that add up to one, none negative, with the least ``w' B w``.

    Parameters
    ----------
    B : array of shape (n, n)
        Gram matrix of the corners; may be singular.
    w : array of shape (n - 1,)
        The answer for all corners but the last.

    Examples
    --------
    >>> nearest_in_hull(np.diag([1.0, 3.0]), np.ones(1))
    array([0.75, 0.25])
    """
    w = np.append(w, 0.0 if w.size else 1.0)
    active = np.flatnonzero(w).tolist()
    slope = B @ w
    while True:
        j, error = int(np.argmin(slope)), w @ slope
        rounding = np.finfo(float).eps * (w @ np.abs(B) @ w)
        if j in active or not slope[j] < error - rounding:
            return w
        active.append(j)
        v = _least_within(B, w, active)
        slope = B @ v
        if not v @ slope < error - rounding:  # so that it ends
            return w
        w = v


def _least_within(B: np.ndarray, w: np.ndarray, active: list[int]) -> np.ndarray:
    """The best weights of the active corners; those whose weights vanish on the way leave."""
    while True:
        target, now = _affine(B[np.ix_(active, active)]), w[active]
        w, falls, way = np.zeros_like(w), target <= 0, now - target
        if not falls.any():
            w[active] = target
            return w
        ratio = np.where(falls, now / np.where(way > 0, way, 1.0), np.inf)
        now = np.where(ratio > ratio.min(), now - ratio.min() * way, 0.0)
        w[active] = now / now.sum()
        active[:] = [j for j in active if w[j] > 0]


def _affine(B: np.ndarray) -> np.ndarray:
    """Weights of any sign that add up to one, with the least ``w' B w``."""
    # About the shortest corner, in units of the distances: w = e_j + sum_i z_i (e_i - e_j) / d_i.
    j = int(np.argmin(np.diagonal(B)))
    C = B - B[:, [j]] - B[[j], :] + B[j, j]
    d = np.sqrt(np.maximum(np.diagonal(C), 0.0))
    d[d == 0] = 1.0
    z = np.linalg.lstsq(C / d / d[:, None], (B[j, j] - B[:, j]) / d, rcond=None)[0] / d
    z[j] += 1 - z.sum()
    return z
