"""Unfoldings and mode products of tensors of any array library, in memory or memory-mapped.

The mode-n unfolding puts mode n along the rows and the other modes, in their order and the last one
quickest, along the columns. No formula of the library depends on the order of the columns.

A whitened tensor Z that is larger than memory is a memory map. The Gram matrices, mode products and
norms that the approximations need of it are sums over chunks along some mode (`chunks`). A tensor in
memory is one chunk, so that one formula serves both.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .namespace import Array, is_numpy_array, namespace_of, squared_norm

__all__ = ["chunk_mode", "chunks", "fold", "gram", "is_memory_mapped", "mode_product"]
__all__ += ["multi_mode_product", "partial_traces", "release_pages", "sum_of_squares", "unfold"]

# Entries of a transposed copy that stays in the cache of a core.
_CACHED = 2**16
# Bytes of a chunk of a memory map: many for a disk, few for a memory.
CHUNK_BYTES = 2**26


def unfold(T: Array, mode: int) -> Array:
    """Mode-`mode` unfolding, of shape (T.shape[mode], T.size / T.shape[mode]).

    >>> import numpy as np
    >>> unfold(np.arange(6).reshape(1, 2, 3), 1)
    array([[0, 1, 2],
           [3, 4, 5]])
    """
    xp = namespace_of(T)
    if mode > 0:
        T = xp.permute_dims(T, (mode, *range(mode), *range(mode + 1, T.ndim)))
    return xp.reshape(T, (T.shape[0], math.prod(T.shape[1:])))


def fold(M: Array, mode: int, shape: Sequence[int]) -> Array:
    """Inverse of `unfold`: the tensor of the given shape whose mode-`mode` unfolding is `M`."""
    xp = namespace_of(M)
    T = xp.reshape(M, (shape[mode], *shape[:mode], *shape[mode + 1 :]))
    if mode == 0:
        return T
    return xp.permute_dims(T, (*range(1, mode + 1), 0, *range(mode + 1, T.ndim)))


def mode_product(T: Array, M: Array, mode: int) -> Array:
    """``T x_mode M``: every mode-`mode` fibre of `T` multiplied by the matrix `M`."""
    before, after = T.shape[:mode], T.shape[mode + 1 :]
    left, d, right = math.prod(before), T.shape[mode], math.prod(after)
    reshape = namespace_of(T).reshape
    # Matrices side by side, of which none has to be transposed.
    out = M @ reshape(T, (left, d, right)) if right != 1 else reshape(T, (left, d)) @ M.T
    return reshape(out, (*before, M.shape[0], *after))


def multi_mode_product(
    T: Array, matrices: Sequence[Array | None], *, skip: int | None = None, transposed: bool = False
) -> Array:
    """``T x_0 M_0 x_1 M_1 ...`` (or with the transposes); None stands for the identity.

    The product that shrinks the tensor most is taken first, so that the others are cheap.
    """
    chosen = [
        None if M is None or mode == skip else M.T if transposed else M
        for mode, M in enumerate(matrices)
    ]
    if is_memory_mapped(T) and any(M is not None for M in chosen):
        return _sum_over_chunks(T, chosen)
    pairs = [(mode, M) for mode, M in enumerate(chosen) if M is not None]
    for mode, M in sorted(pairs, key=lambda pair: pair[1].shape[0] / max(pair[1].shape[1], 1)):
        T = mode_product(T, M, mode)
    return T


def _sum_over_chunks(T: Array, matrices: Sequence[Array | None]) -> Array:
    """A mode product of a tensor in a file: the products of its chunks, added up."""
    xp, cut = namespace_of(T), chunk_mode(T)
    M = matrices[cut]
    out = xp.zeros(
        tuple(d if A is None else A.shape[0] for d, A in zip(T.shape, matrices, strict=True))
    )
    for part, chunk in chunks(T, cut):
        own = None if M is None else M[:, part]
        product = multi_mode_product(chunk, [*matrices[:cut], own, *matrices[cut + 1 :]])
        where = (slice(None),) * cut + (part if M is None else slice(None),)
        out[where] += product
    return out


def gram(T: Array, mode: int) -> Array:
    """``T_(mode) T_(mode)'``, of shape (T.shape[mode], T.shape[mode])."""
    if is_memory_mapped(T) and T.ndim > 1:
        return sum(gram(chunk, mode) for _, chunk in chunks(T, chunk_mode(T, avoid=mode)))
    if mode == T.ndim - 1:  # no transposed copy: the last mode is along the columns already
        A = namespace_of(T).reshape(T, (math.prod(T.shape[:-1]), T.shape[-1]))
        return A.T @ A
    size = max(_CACHED, 4 * T.shape[mode] ** 2)
    if 0 < mode and 1 < T.shape[0] and 2 * size < math.prod(T.shape) and is_numpy_array(T):
        step = max(1, size * T.shape[0] // math.prod(T.shape))
        return sum(gram(T[i : i + step], mode) for i in range(0, T.shape[0], step))
    A = unfold(T, mode)
    return A @ A.T


def partial_traces(S: Array, shape: Sequence[int]) -> tuple[Array, ...]:
    """Gram matrices of the modes 1 to p of a tensor `Z`, from ``S = Z_(0)' Z_(0)``.

    Parameters
    ----------
    S : array of shape (d1 ... dp, d1 ... dp)
    shape : sequence of int
        ``(d1, ..., dp)``.

    >>> import numpy as np
    >>> Z = np.arange(24.0).reshape(2, 3, 4)
    >>> S = unfold(Z, 0).T @ unfold(Z, 0)
    >>> [bool(np.allclose(G, gram(Z, i + 1))) for i, G in enumerate(partial_traces(S, (3, 4)))]
    [True, True]
    """
    xp, found = namespace_of(S), []
    for mode, d in enumerate(shape):
        before, after = math.prod(shape[:mode]), math.prod(shape[mode + 1 :])
        T = xp.reshape(S, (before, d, after, before, d, after))
        # The larger trace first: of the rest only what it leaves is read.
        axes = (1, 4, 0, 3, 2, 5) if after >= before else (1, 4, 2, 5, 0, 3)
        once = xp.sum(xp.linalg.diagonal(xp.permute_dims(T, axes)), axis=-1)
        found.append(xp.linalg.trace(once))
    return tuple(found)


# ---------------------------------------------------------------- memory-mapped tensors


def is_memory_mapped(T: Array) -> bool:
    """Whether `T` is a memory map that is too large to be taken at once."""
    return isinstance(T, np.memmap) and T.nbytes > CHUNK_BYTES


def chunks(T: Array, mode: int) -> Iterator[tuple[slice, Array]]:
    """Consecutive slices along a mode, with the part of `T` that they hold, read into memory."""
    n = T.shape[mode]
    if not is_memory_mapped(T):
        yield slice(0, n), T
        return
    step = max(1, CHUNK_BYTES * n // T.nbytes)
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        chunk = np.array(T[(slice(None),) * mode + (rows,)])
        release_pages(T)
        yield rows, chunk


def chunk_mode(T: Array, avoid: int | None = None) -> int:
    """The mode to cut along: the first whose slices are small enough, or else the longest."""
    if not is_memory_mapped(T):
        return 0
    modes = [mode for mode in range(T.ndim) if mode != avoid]
    for mode in modes:
        if T.nbytes // T.shape[mode] <= CHUNK_BYTES:
            return mode
    return max(modes, key=lambda mode: T.shape[mode])


def sum_of_squares(T: Array) -> float:
    """``||T||^2``."""
    return sum(float(squared_norm(chunk)) for _, chunk in chunks(T, chunk_mode(T)))


def release_pages(T: np.memmap) -> None:
    """Give the pages of a memory map back: they stay in the system's cache, not in our account.

    Not those of a private map, whose changes are nowhere else.
    """
    pages: Any = getattr(T, "_mmap", None)
    if T.mode != "c" and hasattr(pages, "madvise"):
        pages.madvise(mmap.MADV_DONTNEED)
