"""The error surfaces of all penalties of a fold in one round, for data on an accelerator.

A penalty is a scaling of rows, so the terms of all of them are the same products with one axis
more. An accelerator takes about as long to be told of a small product as for the product itself:
thirteen penalties in one round take about as long as one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..core.namespace import HOST_LIMIT, Array, asarray_like, is_numpy_array, namespace_of, to_numpy
from ..core.tensor import unfold

if TYPE_CHECKING:
    from .surface import RankPath

__all__ = ["batched_errors", "can_batch"]

# Bytes of the largest array of a round.
_BYTES = 2**30


def can_batch(path: RankPath) -> bool:
    """Whether the path is that of all modes, on an accelerator, with small matrices for each."""
    r, *outputs = path.T.shape
    return (
        not is_numpy_array(path.T)
        and len(path.ranks) == path.T.ndim
        and r <= math.prod(outputs)
        and (path.fixed is not None or all(G is not None for G in path.row_grams))
    )


def batched_errors(path: RankPath, alphas: Sequence[float]) -> Array:
    """Squared errors of all ranks for each penalty, an array of shape (n_alphas, R0, ...)."""
    xp = namespace_of(path.T)
    each = 16 * path.ranks[0] * math.prod(path.T.shape[1:])
    step = max(1, _BYTES // each)
    parts = [_errors(path, alphas[i : i + step]) for i in range(0, len(alphas), step)]
    return parts[0] if len(parts) == 1 else xp.concat(parts, axis=0)


def _errors(path: RankPath, alphas: Sequence[float]) -> Array:
    xp, n, R0 = namespace_of(path.T), len(alphas), path.ranks[0]
    root = xp.stack([path.root(float(alpha)) for alpha in alphas])
    d = path.s / root
    U0 = _leading(path.input_gram * d[:, :, None] * d[:, None, :], R0)
    A = U0 / root[:, :, None]
    G = xp.matmul(xp.permute_dims(A, (0, 2, 1)), xp.matmul(path.C, A))
    S = xp.matmul(unfold(path.T, 0).T, U0 * (d * path.scale)[:, :, None])
    both = xp.concat([S, xp.matmul(unfold(path.B, 0).T, A)], axis=2)
    for U in _output_bases(path, d):
        both = xp.reshape(both, (n, U.shape[-2], -1))
        both = xp.matmul(xp.permute_dims(both, (0, 2, 1)), U)
    both = xp.reshape(both, (n, 2 * R0, -1))
    S, H = both[:, :R0, :], both[:, R0:, :]
    inc = S * (xp.matmul(xp.tril(G) + xp.tril(G, k=-1), S) - 2 * H)
    inc[:, 0, 0] += path.yy
    inc = xp.reshape(inc, (n, *path.ranks))
    for axis in range(1, inc.ndim):
        inc = xp.cumulative_sum(inc, axis=axis)
    return inc


def _output_bases(path: RankPath, d: Array) -> list[Array]:
    if path.fixed is not None:
        return path.fixed
    xp, bases = namespace_of(d), []
    for G, R in zip(path.row_grams, path.ranks[1:], strict=True):
        assert G is not None
        r, size, _ = G.shape
        sums = (d * d) @ xp.reshape(G, (r, size * size))
        bases.append(_leading(xp.reshape(sums, (-1, size, size)), R))
    return bases


def _leading(A: Array, k: int) -> Array:
    """The `k` leading eigenvectors of each matrix, of any sign."""
    xp = namespace_of(A)
    if A.shape[-1] <= HOST_LIMIT:
        U = asarray_like(np.linalg.eigh(to_numpy(A))[1][..., ::-1][..., :k].copy(), A)
    else:
        U = xp.flip(xp.linalg.eigh(A)[1], axis=-1)[..., :k]
    return U
