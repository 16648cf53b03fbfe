"""Memory budget: the one setting that searches and passes over data in chunks obey."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Real

__all__ = ["memory_budget", "search_budget", "current_budget"]

_DEFAULT = 2**30
_SMALL_SEARCH = 2**20  # error surfaces of this size are always computed

_own: ContextVar[int | None] = ContextVar("holrr_memory_budget", default=None)
# Settings of all threads, the latest last. Threads without a setting use the latest one.
_of_all: dict[object, int] = {}


def current_budget() -> int:
    """Return the memory budget in bytes: of this thread, or else the latest of all threads."""
    return _own.get() or next(reversed(list(_of_all.values())), _DEFAULT)


def search_budget() -> int:
    """Return the number of bytes of the arrays that a search keeps."""
    return max(current_budget(), _SMALL_SEARCH)


@contextmanager
def memory_budget(max_bytes: float) -> Iterator[None]:
    """Set the memory budget of searches and of data in chunks, as a context manager.

    A search keeps the errors of all ranks within the memory budget. If they need more, it caps the
    ranks and warns. Fits of memory maps read chunks of samples within it, and lazy predictions of
    Dask arrays have chunks within it.

    The setting also applies to other threads that run at the same time, unless they have their own.

    Parameters
    ----------
    max_bytes : int or inf
        Number of bytes, by default 1 GiB. It limits the error surfaces of a search (surfaces of
        1 MiB are always computed) and, approximately, the memory of a pass over data in chunks
        besides the moments themselves. Memory maps that fit into an eighth of it are not divided
        into chunks.

    Examples
    --------
    >>> from holrr.streaming import memory_budget
    >>> with memory_budget(2**30):
    ...     pass  # model.fit(X, Y)
    """
    if not isinstance(max_bytes, Real) or not max_bytes >= 1:
        raise ValueError(f"max_bytes must be a positive number of bytes; got {max_bytes!r}.")
    limit = sys.maxsize if math.isinf(max_bytes) else int(max_bytes)
    token, key = _own.set(limit), object()
    _of_all[key] = limit
    try:
        yield
    finally:
        del _of_all[key]
        _own.reset(token)
