"""What the held-out error of every truncation, or weighting, of a core is made of.

All of it may have leading axes, one entry for each of many penalties: an accelerator takes them
together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..core.namespace import Array, asarray_like, is_numpy_array, namespace_of

__all__ = ["Terms", "cumulative_sum", "extended", "rotated"]


@dataclass(frozen=True, eq=False)
class Terms:
    """Core, products and Gram matrix of `surface`, of all modes or along the input rank only.

    Parameters
    ----------
    S, H : arrays of shape (..., R0, ..., Rp)
    M : array of shape (..., R0, R0)
        ``diag(G) + 2 tril(G, -1)``.
    """

    S: Array
    H: Array
    M: Array

    def errors(self, yy: float) -> Array:
        """Squared errors of all ranks; `yy` is that of predicting the mean."""
        block, lead = self.increments(), self.M.ndim - 2
        block[(slice(None),) * lead + (0,) * (block.ndim - lead)] += yy  # where all sums begin
        for axis in reversed(range(lead, block.ndim)):
            block = cumulative_sum(block, axis)
        return block

    def increments(self) -> Array:
        """``inc``: the sum over a leading block is the excess error of the fit of that rank."""
        xp, S = namespace_of(self.S), self.S
        rows = xp.reshape(S, (*S.shape[: self.M.ndim - 1], -1))
        inc = xp.reshape(self.M @ rows, tuple(S.shape))
        inc -= 2 * self.H
        inc *= S
        return inc


def cumulative_sum(A: Array, axis: int) -> Array:
    """Running sums along an axis; in place, slice by slice, where that is quicker."""
    n, rest = A.shape[axis], math.prod(A.shape[axis + 1 :])
    if not is_numpy_array(A) or (rest < 16 and n > 32):
        return namespace_of(A).cumulative_sum(A, axis=axis)
    slices = A.reshape(-1, n, rest)
    for j in range(1, n):
        slices[:, j] += slices[:, j - 1]
    return A


def extended(block: Array, ranks: Sequence[int]) -> Array:
    """`block`, of shape (..., R0, ...), with its last slices repeated up to the ranks."""
    lead = block.ndim - len(ranks)
    for axis, R in enumerate(ranks, start=lead):
        n = block.shape[axis]
        if n != R:
            index = asarray_like(np.minimum(np.arange(R), n - 1), block)
            block = namespace_of(block).take(block, index, axis=axis)
    return block


def rotated(A: Array, B: Array, bases: Sequence[Array]) -> tuple[Array, Array]:
    """Matrices of shape (..., D, k) as tensors ``A' x_1 U1' ...`` and ``B' x_1 U1' ...``.

    Side by side: each step multiplies along the leading mode, which becomes the last. That is one
    matrix product without a copy, and after all modes their order is the old one.
    """
    xp, (*lead, _, k) = namespace_of(A), A.shape
    both = xp.concat([A, B], axis=-1)
    for U in bases:
        both = xp.matrix_transpose(xp.reshape(both, (*lead, U.shape[-2], -1))) @ U
    both = xp.reshape(both, (*lead, 2 * k, *(U.shape[-1] for U in bases)))
    before = (slice(None),) * len(lead)
    return both[(*before, slice(k), ...)], both[(*before, slice(k, None), ...)]
