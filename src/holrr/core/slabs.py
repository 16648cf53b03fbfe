"""Tensors that live in a file, taken a slab at a time.

A whitened tensor Z that is larger than memory is a memory map. What the approximations need of it
(Gram matrices, products with factors, norms) are sums over slabs along some mode. A tensor in
memory is one slab, so that one formula serves both.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np

from .namespace import Array, squared_norm

__all__ = ["cut_mode", "energy", "forget", "is_in_file", "slabs"]

# Bytes of a slab: large for a disk, small for a memory.
SLAB = 2**26


def is_in_file(T: Array) -> bool:
    """Whether `T` is a memory map that is too large to be taken at once."""
    return isinstance(T, np.memmap) and T.nbytes > SLAB


def slabs(T: Array, mode: int) -> Iterator[tuple[slice, Array]]:
    """Consecutive slices along a mode, with the part of `T` that they hold, read into memory."""
    n = T.shape[mode]
    if not is_in_file(T):
        yield slice(0, n), T
        return
    step = max(1, SLAB * n // T.nbytes)
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        slab = np.array(T[(slice(None),) * mode + (rows,)])
        forget(T)
        yield rows, slab


def cut_mode(T: Array, avoid: int | None = None) -> int:
    """The mode to cut along: the first whose slices are small enough, or else the longest."""
    if not is_in_file(T):
        return 0
    modes = [mode for mode in range(T.ndim) if mode != avoid]
    for mode in modes:
        if T.nbytes // T.shape[mode] <= SLAB:
            return mode
    return max(modes, key=lambda mode: T.shape[mode])


def energy(T: Array) -> float:
    """``||T||^2``."""
    return sum(float(squared_norm(slab)) for _, slab in slabs(T, cut_mode(T)))


def forget(T: np.memmap) -> None:
    """Give the pages of a memory map back: they stay in the system's cache, not in our account.

    Not those of a private map, whose changes are nowhere else.
    """
    pages: Any = getattr(T, "_mmap", None)
    if T.mode != "c" and hasattr(pages, "madvise"):
        pages.madvise(mmap.MADV_DONTNEED)
