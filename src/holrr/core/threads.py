"""One place that limits the threads of the linear algebra (BLAS), and starts those of passes.

The number of threads of a BLAS belongs to the whole process. Whoever lowers it for a while and puts
back what was there before is right alone, but of two that overlap the second puts back what the
first had set. So the limits in force are counted here, under a lock: the smallest holds, and what
was there before the first returns with the last.
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from contextvars import copy_context
from functools import reduce
from operator import iadd
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["few_threads_for", "limit_threads", "map_in_threads", "n_threads_for", "sum_in_threads"]

# Multiply-adds up to which one thread does it all. Fits of 5e7, 5e8 and 2e9 on two cores, with one
# thread and with two: 13, 25, 74 and 24, 190, 1400 ms beside some other work, 17, 170, 500 and 230,
# 810, 3000 ms beside two busy loops. Above it two idle cores save half of the time.
SMALL_WORK = 4e8
# Below, the linear algebra uses one thread by itself, and a limit takes longer than the work.
TINY_WORK = 8192
# From here on a pass over the data is worth threads of its own. These meet only at the end, and so
# bear busy cores, which those of a BLAS, waiting for each other in a loop, do not.
PASS_WORK = 5e7


class limit_threads:
    """Within this context no BLAS of the process uses more than `n` threads.

    Contexts may be nested and may overlap in several threads: the smallest limit holds, and the
    numbers of threads are as before when the last one is left, also by an exception. To enter and
    to leave takes 15 microseconds. A BLAS on top of OpenMP counts for each thread by itself:
    the limit holds in the thread that enters.

    Parameters
    ----------
    n : int
        At least 1. A larger number than a library has already changes nothing.
    small : bool, default=False
        Whether the limit is there because the work is small: it leaves `n_threads_for` as it is.
    """

    def __init__(self, n: int, *, small: bool = False) -> None:
        self.limit = max(1, int(n)), small

    def __enter__(self) -> None:
        with _lock:
            shared, own = _libraries.now()
            _of_process.add(self.limit, shared)
            _of_thread.limits.add(self.limit, own)

    def __exit__(self, *error: object) -> None:
        with _lock:
            _of_process.remove(self.limit)
            _of_thread.limits.remove(self.limit)


def few_threads_for(work: float) -> AbstractContextManager[None]:
    """A context with a single thread where the work is too small to be shared.

    Parameters
    ----------
    work : float
        About how many multiplications and additions of pairs of numbers lie ahead, in all the
        calls to come: ``N d0 D`` for ``X'Y``, for instance.
    """
    if not TINY_WORK < work < SMALL_WORK or (1, True) in _of_thread.limits.in_force:
        return nullcontext()
    return limit_threads(1, small=True)


def n_threads_for(work: float) -> int:
    """How many threads a pass with so many multiply-adds may be shared by: those of the BLAS."""
    if work < PASS_WORK:
        return 1
    with _lock:
        shared, own = _libraries.now()
        found = [*_of_process.allowed(shared), *_of_thread.limits.allowed(own)]
        return min(found, default=1)


def sum_in_threads(f: Callable[[Any], list[Any]], parts: Sequence[Sequence[Any]]) -> list[Any]:
    """Add up the lists that `f` gives for all items of all parts, entry by entry and in place.

    Each part has a thread of its own, in which the BLAS has no others. What is added to what does
    not depend on which of them is quicker.
    """

    def add(a: list[Any], b: list[Any]) -> list[Any]:
        return [iadd(x, y) for x, y in zip(a, b, strict=True)]

    def sum_part(part: Sequence[Any]) -> list[Any]:
        with limit_threads(1) if len(parts) > 1 else nullcontext():
            return reduce(add, map(f, part))

    if len(parts) == 1:
        return sum_part(parts[0])
    with limit_threads(1), ThreadPoolExecutor(len(parts) - 1) as pool:
        others = [pool.submit(copy_context().run, sum_part, part) for part in parts[1:]]
        return reduce(add, [sum_part(parts[0]), *(other.result() for other in others)])


def map_in_threads(f: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """What `f` gives for each item, in as many threads as the BLAS may have, which has one then."""

    def run(item: Any) -> Any:
        with limit_threads(1):
            return f(item)

    n = min(n_threads_for(math.inf), len(items))
    if n <= 1:
        return list(map(run, items))
    with limit_threads(1), ThreadPoolExecutor(n) as pool:
        waiting = [pool.submit(copy_context().run, run, item) for item in items]
        return [each.result() for each in waiting]


class _Limits:
    """The limits in force on some libraries, whose threads are all the same ones."""

    def __init__(self) -> None:
        self.in_force: list[tuple[int, bool]] = []
        self.before: dict[str, tuple[Any, int]] = {}

    def add(self, limit: tuple[int, bool], libraries: Iterable[Any]) -> None:
        for library in libraries:
            if library.filepath not in self.before:
                self.before[library.filepath] = library, library.num_threads
        self.in_force.append(limit)
        self._apply()

    def remove(self, limit: tuple[int, bool]) -> None:
        self.in_force.remove(limit)
        self._apply()
        if not self.in_force:
            self.before.clear()

    def allowed(self, libraries: Iterable[Any]) -> list[int]:
        """The threads of each library but for limits that are there for small work."""
        limits = [n for n, small in self.in_force if not small]
        before = lambda lib: self.before.get(lib.filepath, (lib, lib.num_threads))[1]  # noqa: E731
        return [min([before(library), *limits]) for library in libraries]

    def _apply(self) -> None:
        for library, most in self.before.values():
            # threadpoolctl lets a single thread set the number and ignores all others, until it
            # is told that this one is done.
            done = getattr(library, "clear_controlling_thread", lambda force: None)
            done(force=True)
            library.set_num_threads(min([most, *(n for n, _ in self.in_force)]))
            done(force=True)


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.limits = _Limits()


class _Libraries:
    """The BLAS libraries of the process; looked for again when modules have been imported."""

    def __init__(self) -> None:
        self._n_modules = 0
        self._found: tuple[list[Any], list[Any]] = [], []

    def now(self) -> tuple[list[Any], list[Any]]:
        """Those whose threads the process shares, and those that count them for each thread."""
        if len(sys.modules) != self._n_modules:  # looking takes milliseconds
            self._n_modules = len(sys.modules)
            found = ThreadpoolController().select(user_api="blas").lib_controllers
            # One that was built without threads (solvers bring such) says nothing of the others.
            blas = [lib for lib in found if getattr(lib, "threading_layer", "") != "disabled"]
            self._found = (
                [library for library in blas if not _is_per_thread(library)],
                [library for library in blas if _is_per_thread(library)],
            )
        return self._found


def _is_per_thread(library: Any) -> bool:
    layer = getattr(library, "threading_layer", None)
    return bool(library.internal_api == "openblas" and layer == "openmp")


_lock = threading.Lock()
_libraries, _of_process, _of_thread = _Libraries(), _Limits(), _OfThread()
