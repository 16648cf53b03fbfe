"""Chunks of Dask arrays: which borders suit moments, and where they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .source import check_kind, is_dask

__all__ = ["chunked", "cut", "known", "pieces", "slices"]


def known(A: Any, name: str) -> Any:
    """A Dask array or table of real numbers as an array of known chunks, of which none is empty."""
    if hasattr(A, "to_dask_array"):
        A = A.to_dask_array(lengths=True)
    if any(math.isnan(d) for d in A.shape):
        raise ValueError(
            f"{name} is a Dask array of unknown chunk sizes; call {name}.compute_chunk_sizes() "
            f"first."
        )
    if A.ndim == 0 or 0 in A.shape:
        raise ValueError(f"{name} must have samples and no empty mode; got shape {A.shape}.")
    check_kind(A, name)
    return A.rechunk(tuple(tuple(n for n in sizes if n > 0) for sizes in A.chunks))


def chunked(Y: Any, X: Any, n_features: int, max_bytes: int) -> Any:
    """`Y` in chunks of which each is worth its moments.

    The samples are cut where the user cut `Y` (or `X`, where `Y` is in memory), but chunks with
    fewer samples than features are joined. Chunks along the outputs are joined where the whole
    fits the budget.
    """
    samples = Y.chunks[0] if len(Y.chunks[0]) > 1 or not is_dask(X) else X.chunks[0]
    row = math.prod(max(sizes) for sizes in Y.chunks[1:])  # entries of a sample within a chunk
    samples = join_small(samples, n_features, max_bytes // (8 * max(1, row)))
    whole = 8 * max(samples) * math.prod(Y.shape[1:]) <= max_bytes // 4
    outputs = Y.shape[1:] if whole else Y.chunks[1:]
    return Y.rechunk((samples, *outputs))


def join_small(chunks: Sequence[int], least: int, most: int) -> tuple[int, ...]:
    """Neighbours joined until they have at least `least` samples, but never beyond `most`.

    >>> join_small((2, 2, 2, 9, 1), 4, 100)
    (4, 11, 1)
    """
    joined: list[int] = []
    for n in chunks:
        if joined and joined[-1] < least and joined[-1] + n <= most:
            joined[-1] += n
        elif n > 0:
            joined.append(n)
    return tuple(joined)


def cut(Y: Any, max_entries: int) -> Any:
    """Chunks of `Y` whose samples have `max_entries` outputs or fewer, at least one."""
    sizes = [max(chunk) for chunk in Y.chunks[1:]]
    for mode in range(len(sizes)):
        rest = math.prod(sizes[:mode]) * math.prod(sizes[mode + 1 :])
        sizes[mode] = max(1, min(sizes[mode], max_entries // rest))
    chunks = [
        tuple(n for whole in chunk for n in pieces(whole, size))
        for chunk, size in zip(Y.chunks[1:], sizes, strict=True)
    ]
    return Y.rechunk((Y.chunks[0], *chunks))


def pieces(whole: int, size: int) -> list[int]:
    return [min(size, whole - start) for start in range(0, whole, size)]


def slices(sizes: Sequence[int]) -> list[slice]:
    ends = np.cumsum(sizes).tolist()
    return [slice(end - n, end) for n, end in zip(sizes, ends, strict=True)]
