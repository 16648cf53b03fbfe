"""How much memory data on disk may take while they are read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["DEFAULT_MAX_BYTES", "check_budget", "memory_budget"]

# Two blocks of the data in flight, their conversion to floating point and the sums.
DEFAULT_MAX_BYTES = 2**29

_max_bytes: ContextVar[int] = ContextVar("holrr_max_bytes", default=DEFAULT_MAX_BYTES)


def check_budget(max_bytes: int | None = None) -> int:
    """The budget that was asked for, or else the one in force, in bytes."""
    if max_bytes is None:
        return _max_bytes.get()
    if not max_bytes > 0:
        raise ValueError(f"max_bytes must be a positive number of bytes; got {max_bytes!r}.")
    return int(max_bytes)


@contextmanager
def memory_budget(max_bytes: int) -> Iterator[None]:
    """Within this context data on disk are read in blocks that suit another budget.

    Parameters
    ----------
    max_bytes : int
        About how much memory the pass over the data may take, beside the moments themselves. The
        default is 512 MiB. Data that fit a quarter of it are read whole.

    Examples
    --------
    >>> from holrr.streaming import memory_budget
    >>> with memory_budget(2**30):
    ...     pass  # model.fit(X, Y)
    """
    token = _max_bytes.set(check_budget(max_bytes))
    try:
        yield
    finally:
        _max_bytes.reset(token)
