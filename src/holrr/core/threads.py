"""Limits on the threads of BLAS libraries, and sums and maps over a thread pool.

The number of BLAS threads is a setting of the whole process. A context manager that restores the
number it found is wrong if two contexts overlap in different threads: the second one restores the
limit of the first. So `limit_threads` keeps a list of all active limits, guarded by a lock. The
smallest limit applies, and the original numbers are restored when the last limit ends.
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

# Multiply-adds up to which a single BLAS thread is used. On two cores that also ran other programs,
# fits of 5e7, 5e8 and 2e9 multiply-adds took 13, 25 and 74 ms with one thread, and 24, 190 and
# 1400 ms with two. Next to two busy loops they took 17, 170 and 500 ms with one thread, and 230,
# 810 and 3000 ms with two. Above this number two idle cores halve the time.
SMALL_WORK = 4e8
# Below this number BLAS uses one thread by itself, and setting a limit takes longer than the work.
TINY_WORK = 8192
# From this number on a pass over the data uses a thread pool. Its threads synchronise only at the
# end, so that busy cores slow them down less than BLAS threads, which wait for each other in loops.
PASS_WORK = 5e7

_lock = threading.Lock()
_limits: list[tuple[int, bool]] = []  # active limits, and whether they are set for small work
_original: dict[str, tuple[Any, int]] = {}  # libraries and their threads before the first limit
_known: tuple[int, list[Any]] = (0, [])  # number of imported modules, and the BLAS found then


@contextmanager
def limit_threads(n: int, *, small: bool = False) -> Iterator[None]:
    """Limit every BLAS library of the process to `n` threads, as a context manager.

    Contexts may be nested, and may overlap in several threads. Entering and leaving takes about 15
    microseconds.

    Parameters
    ----------
    n : int
        Largest number of threads, at least 1. It has no effect on a library with fewer threads.
    small : bool, default=False
        Whether the limit is set because the work is small. Such limits do not affect
        `n_threads_for`.
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
    """Set the threads of all libraries to the smallest active limit."""
    least = min(_limits)[0] if _limits else sys.maxsize
    for library, before in _original.values():
        # threadpoolctl ignores the calls of other threads until the controlling thread is cleared.
        release = getattr(library, "clear_controlling_thread", None)
        if release is not None:
            release(force=True)
        library.set_num_threads(min(before, least))
        if release is not None:
            release(force=True)


def _blas() -> list[Any]:
    """Return the threaded BLAS libraries of the process; new imports trigger a new search."""
    global _known
    if len(sys.modules) != _known[0]:  # searching for the libraries takes milliseconds
        found = ThreadpoolController().select(user_api="blas").lib_controllers
        threaded = [lib for lib in found if getattr(lib, "threading_layer", "") != "disabled"]
        _known = len(sys.modules), threaded
    return _known[1]


def _limited() -> list[Any]:
    """Return the libraries whose threads are limited: every BLAS, and torch if it is imported."""
    is_there = hasattr(sys.modules.get("torch"), "set_num_threads")
    return [*_blas(), *([_Torch()] if is_there else [])]


class _Torch:
    """The threads of torch for its own loops and batched products.

    Like BLAS threads they wait for each other: next to other work, a small search took 0.73
    seconds with two threads and 0.10 seconds with one.
    """

    filepath = "torch"

    @property
    def num_threads(self) -> int:
        return int(sys.modules["torch"].get_num_threads())

    def set_num_threads(self, n: int) -> None:
        sys.modules["torch"].set_num_threads(n)


def few_threads_for(work: float) -> AbstractContextManager[None]:
    """Return a context with a single BLAS thread if the work is too small for several threads.

    Parameters
    ----------
    work : float
        Estimated number of multiply-adds in the context, for instance ``N d0 D`` for ``X'Y``.
    """
    if not TINY_WORK < work < SMALL_WORK or (1, True) in _limits:
        return nullcontext()
    return limit_threads(1, small=True)


def n_threads_for(work: float) -> int:
    """Return the number of threads for `work` multiply-adds, at most the threads of BLAS."""
    if work < PASS_WORK:
        return 1
    with _lock:
        limits = [n for n, small in _limits if not small]
        before = [_original.get(lib.filepath, (lib, lib.num_threads))[1] for lib in _blas()]
        return min([min(before, default=1), *limits])


def sum_in_threads(f: Callable[[Any], list[Any]], parts: Sequence[Sequence[Any]]) -> list[Any]:
    """Add up the lists that `f` returns for all items of all parts, entry by entry and in place.

    Each part is processed in its own thread with one BLAS thread. The order of the additions does
    not depend on which thread is faster.
    """

    def sum_part(part: Sequence[Any]) -> list[Any]:
        return add_lists(map(f, part))

    with limit_threads(1), ThreadPoolExecutor(len(parts) - 1) as pool:
        others = [pool.submit(copy_context().run, sum_part, part) for part in parts[1:]]
        first = sum_part(parts[0])
        return add_lists([first, *(other.result() for other in others)])


def add_lists(lists: Iterable[list[Any]]) -> list[Any]:
    """Return the sum of lists, entry by entry; the first list is overwritten."""
    total, *others = lists
    for other in others:
        total = list(map(iadd, total, other))
    return total


def map_in_threads(f: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Return the results of `f` for each item, computed by as many threads as BLAS has."""
    n = min(n_threads_for(math.inf), len(items))
    with limit_threads(1):
        if n <= 1:
            return list(map(f, items))
        with ThreadPoolExecutor(n) as pool:
            waiting = [pool.submit(copy_context().run, f, item) for item in items]
            return [each.result() for each in waiting]
