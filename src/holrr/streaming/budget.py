"""Memory budget of passes over data on disk, and of searches."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Real

__all__ = ["check_budget", "memory_budget", "search_budget"]

# Default budget in bytes of a pass: two blocks of data, their conversion to floats, and sums.
_OF_A_PASS = 2**29
# Default budget of a search, and the size of error surfaces that no budget excludes.
_OF_A_SEARCH, _SMALL_SEARCH = 2**30, 2**20

_own: ContextVar[int | None] = ContextVar("holrr_memory_budget", default=None)
# Budgets of all threads, the latest last. Threads without a budget use the latest one.
_of_all: dict[object, int] = {}


def check_budget(max_bytes: float | None = None) -> int:
    """Return the given budget, or the current one of a pass over data, in bytes."""
    if max_bytes is None:
        return _current() or _OF_A_PASS
    if not isinstance(max_bytes, Real) or not max_bytes >= 1:
        raise ValueError(f"max_bytes must be a positive number of bytes; got {max_bytes!r}.")
    return sys.maxsize if math.isinf(max_bytes) else int(max_bytes)


def search_budget() -> int:
    """Return the current budget of the arrays that a search keeps, in bytes."""
    return max(_current() or _OF_A_SEARCH, _SMALL_SEARCH)


def _current() -> int | None:
    """Return the budget of this thread, or the latest of all threads; None without one."""
    return _own.get() or next(reversed(list(_of_all.values())), None)


@contextmanager
def memory_budget(max_bytes: float) -> Iterator[None]:
    """Set the memory budget of searches and of data on disk, as a context manager.

    A search keeps the errors of all ranks within the budget. If they need more, it caps the ranks
    and warns. Fits of data on disk read blocks of samples within the budget.

    The budget also applies to other threads that run at the same time, unless they have set their
    own budget.

    Parameters
    ----------
    max_bytes : int or inf
        Number of bytes of the error surfaces of a search, by default 1 GiB (surfaces of 1 MiB are
        always computed), and approximate memory of a pass over data on disk besides the moments
        themselves, by default 512 MiB. Data that fit into a quarter of it are read completely.

    Examples
    --------
    >>> from holrr.streaming import memory_budget
    >>> with memory_budget(2**30):
    ...     pass  # model.fit(X, Y)
    """
    budget = check_budget(max_bytes)
    token, key = _own.set(budget), object()
    _of_all[key] = budget
    try:
        yield
    finally:
        del _of_all[key]
        _own.reset(token)
