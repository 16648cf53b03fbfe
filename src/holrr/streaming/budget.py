"""Memory budget of passes over data on disk."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Real

__all__ = ["DEFAULT_MAX_BYTES", "check_budget", "memory_budget"]

# Default memory budget in bytes: two blocks of data, their conversion to floating point, and sums.
DEFAULT_MAX_BYTES = 2**29

_own: ContextVar[int | None] = ContextVar("holrr_max_bytes", default=None)
# Budgets of all threads, the latest last. Threads without a budget use the latest one.
_of_all: dict[object, int] = {None: DEFAULT_MAX_BYTES}


def check_budget(max_bytes: float | None = None) -> int:
    """Return the given budget, or the current one, in bytes."""
    if max_bytes is None:
        return _own.get() or list(_of_all.values())[-1]
    if not isinstance(max_bytes, Real) or not max_bytes >= 1:
        raise ValueError(f"max_bytes must be a positive number of bytes; got {max_bytes!r}.")
    return sys.maxsize if math.isinf(max_bytes) else int(max_bytes)


@contextmanager
def memory_budget(max_bytes: float) -> Iterator[None]:
    """Set the memory budget for data on disk, as a context manager.

    The budget also applies to other threads that run at the same time, unless they have set their
    own budget.

    Parameters
    ----------
    max_bytes : int or inf
        Approximate memory of a pass over the data, besides the moments themselves. The default is
        512 MiB. Data that fit into a quarter of it are read completely.

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
