"""Limits on the threads of the linear algebra (BLAS), and sums and maps in threads of our own.

The number of BLAS threads belongs to the whole process. A context that puts back the number it
found is wrong where two of them overlap in different threads: the second puts back what the first
had set. So `limit_threads` counts the limits in force, under a lock: the smallest holds, and the
original numbers return when the last limit ends.
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import copy_context
from operator import iadd
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["add_lists", "few_threads_for", "limit_threads", "map_in_threads", "n_threads_for"]
__all__ += ["sum_in_threads"]

# Multiply-adds up to which a single BLAS thread is used. Fits of 5e7, 5e8 and 2e9 on two cores,
# with one thread and with two: 13, 25, 74 and 24, 190, 1400 ms beside some other work, 17, 170, 500
# and 230, 810, 3000 ms beside two busy loops. Above it two idle cores save half of the time.
SMALL_WORK = 4e8
# Below, the linear algebra uses one thread by itself, and a limit takes longer than the work.
TINY_WORK = 8192
# From here on a pass over the data is worth threads of our own. These meet only at the end and so
# bear busy cores, while BLAS threads wait for each other in a loop.
PASS_WORK = 5e7

_lock = threading.Lock()
_limits: list[tuple[int, bool]] = []  # those in force, and whether they are there for small work
_original: dict[str, tuple[Any, int]] = {}  # libraries and their threads before the first limit
_known: tuple[int, list[Any]] = (0, [])  # number of imported modules, and the BLAS found then


@contextmanager
def limit_threads(n: int, *, small: bool = False) -> Iterator[None]:
    """Context in which no BLAS of the process uses more than `n` threads.

    Contexts may be nested, and may overlap in several threads. Entering and leaving takes about 15
    microseconds.

    Parameters
    ----------
    n : int
        At least 1. A larger number than a library has already changes nothing.
    small : bool, default=False
        Whether the limit is there because the work is small: it leaves `n_threads_for` as it is.
    """
    limit = max(1, int(n)), small
    with _lock:
        for library in _limited():
            _original.setdefault(library.filepath, (library, library.num_threads))
        _limits.append(limit)
        _apply()
    try:
        yield
    finally:
        with _lock:
            _limits.remove(limit)
            _apply()
            if not _limits:
                _original.clear()


def _apply() -> None:
    """Set the threads of all libraries to the smallest limit in force."""
    least = min(_limits)[0] if _limits else sys.maxsize
    for library, before in _original.values():
        # threadpoolctl lets one thread set the number and ignores all others until told to stop.
        release = getattr(library, "clear_controlling_thread", None)
        if release is not None:
            release(force=True)
        library.set_num_threads(min(before, least))
        if release is not None:
            release(force=True)


def _blas() -> list[Any]:
    """The BLAS libraries of the process that have threads; searched again after imports."""
    global _known
    if len(sys.modules) != _known[0]:  # a search takes milliseconds
        found = ThreadpoolController().select(user_api="blas").lib_controllers
        threaded = [lib for lib in found if getattr(lib, "threading_layer", "") != "disabled"]
        _known = len(sys.modules), threaded
    return _known[1]


def _limited() -> list[Any]:
    """The libraries whose threads are limited: every BLAS, and torch where it is imported."""
    is_there = hasattr(sys.modules.get("torch"), "set_num_threads")
    return [*_blas(), *([_Torch()] if is_there else [])]


class _Torch:
    """The threads that torch divides its own loops and batches of products among.

    They wait for each other as those of a BLAS do: a small search with two threads beside other
    work took 0.73 seconds, and with one 0.10.
    """

    filepath = "torch"

    @property
    def num_threads(self) -> int:
        return int(sys.modules["torch"].get_num_threads())

    def set_num_threads(self, n: int) -> None:
        sys.modules["torch"].set_num_threads(n)


def few_threads_for(work: float) -> AbstractContextManager[None]:
    """Context with a single BLAS thread where the work is too small to be shared.

    Parameters
    ----------
    work : float
        Estimated multiply-adds of all calls in the context: ``N d0 D`` for ``X'Y``, for instance.
    """
    if not TINY_WORK < work < SMALL_WORK or (1, True) in _limits:
        return nullcontext()
    return limit_threads(1, small=True)


def n_threads_for(work: float) -> int:
    """Number of threads that a pass with so many multiply-adds may use: those of the BLAS."""
    if work < PASS_WORK:
        return 1
    with _lock:
        limits = [n for n, small in _limits if not small]
        before = [_original.get(lib.filepath, (lib, lib.num_threads))[1] for lib in _blas()]
        return min([min(before, default=1), *limits])


def sum_in_threads(f: Callable[[Any], list[Any]], parts: Sequence[Sequence[Any]]) -> list[Any]:
    """Add up the lists that `f` gives for all items of all parts, entry by entry and in place.

    Each part has a thread of its own with one BLAS thread. The order of the additions does not
    depend on which thread is faster.
    """

    def sum_part(part: Sequence[Any]) -> list[Any]:
        return add_lists(map(f, part))

    with limit_threads(1), ThreadPoolExecutor(len(parts) - 1) as pool:
        others = [pool.submit(copy_context().run, sum_part, part) for part in parts[1:]]
        first = sum_part(parts[0])
        return add_lists([first, *(other.result() for other in others)])


def add_lists(lists: Iterable[list[Any]]) -> list[Any]:
    """The sum of lists, entry by entry and in place of the first."""
    total, *others = lists
    for other in others:
        total = list(map(iadd, total, other))
    return total


def map_in_threads(f: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Results of `f` for each item, by as many threads as the BLAS has."""
    n = min(n_threads_for(math.inf), len(items))
    with limit_threads(1):
        if n <= 1:
            return list(map(f, items))
        with ThreadPoolExecutor(n) as pool:
            waiting = [pool.submit(copy_context().run, f, item) for item in items]
            return [each.result() for each in waiting]
