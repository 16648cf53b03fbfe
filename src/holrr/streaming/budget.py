"""How much memory data on disk may take while they are read."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Real

__all__ = ["DEFAULT_MAX_BYTES", "check_budget", "memory_budget"]

# Two blocks of the data in flight, their conversion to floating point and the sums.
DEFAULT_MAX_BYTES = 2**29

_own: ContextVar[int | None] = ContextVar("holrr_max_bytes", default=None)
# What is in force in any thread, the latest last: for the threads that have none of their own.
_of_all: dict[object, int] = {None: DEFAULT_MAX_BYTES}


def check_budget(max_bytes: float | None = None) -> int:
    """The budget that was asked for, or else the one in force, in bytes."""
    if max_bytes is None:
        return _own.get() or list(_of_all.values())[-1]
    if not isinstance(max_bytes, Real) or not max_bytes >= 1:
        raise ValueError(f"max_bytes must be a positive number of bytes; got {max_bytes!r}.")
    return sys.maxsize if math.isinf(max_bytes) else int(max_bytes)


@contextmanager
def memory_budget(max_bytes: float) -> Iterator[None]:
    """Within this context data on disk are read in blocks that suit another budget.

    It holds for the threads that run meanwhile, too, unless they have set one of their own.

    Parameters
    ----------
    max_bytes : int or inf
        About how much memory the pass over the data may take, beside the moments themselves. The
        default is 512 MiB. Data that fit a quarter of it are read whole.

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
