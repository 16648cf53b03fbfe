"""One place that limits the threads of the linear algebra (BLAS).

The number of threads of a BLAS belongs to the whole process. Whoever lowers it for a while and puts
back what was there before is right alone, but of two that overlap the second puts back what the
first had set. So the limits in force are counted here, under a lock: the smallest holds, and what
was there before the first returns with the last.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["few_threads_for", "limit_threads", "n_threads"]

# Multiply-adds up to which one thread does it all. Fits of 5e7, 5e8 and 2e9 on two cores, with one
# thread and with two: 13, 25, 74 and 24, 190, 1400 ms beside some other work, 17, 170, 500 and 230,
# 810, 3000 ms beside two busy loops. Above it two idle cores save half of the time.
SMALL_WORK = 4e8
# Below, the linear algebra uses one thread by itself, and a limit takes longer than the work.
TINY_WORK = 8192


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
    """

    def __init__(self, n: int) -> None:
        self.n = max(1, int(n))

    def __enter__(self) -> None:
        with _lock:
            shared, own = _libraries.now()
            _of_process.add(self.n, shared)
            _of_thread.limits.add(self.n, own)

    def __exit__(self, *error: object) -> None:
        with _lock:
            _of_process.remove(self.n)
            _of_thread.limits.remove(self.n)


def few_threads_for(work: float) -> AbstractContextManager[None]:
    """A context with a single thread where the work is too small to be shared.

    Parameters
    ----------
    work : float
        About how many multiplications and additions of pairs of numbers lie ahead, in all the
        calls to come: ``N d0 D`` for ``X'Y``, for instance.
    """
    return limit_threads(1) if TINY_WORK < work < SMALL_WORK else nullcontext()


def n_threads() -> int:
    """How many threads the linear algebra would use now, the limits in force included."""
    with _lock:
        shared, own = _libraries.now()
        return max((library.num_threads for library in (*shared, *own)), default=1)


class _Limits:
    """The limits in force on some libraries, whose threads are all the same ones."""

    def __init__(self) -> None:
        self.in_force: list[int] = []
        self.before: dict[str, tuple[Any, int]] = {}

    def add(self, n: int, libraries: Iterable[Any]) -> None:
        for library in libraries:
            if library.filepath not in self.before:
                self.before[library.filepath] = library, library.num_threads
        self.in_force.append(n)
        self._apply()

    def remove(self, n: int) -> None:
        self.in_force.remove(n)
        self._apply()
        if not self.in_force:
            self.before.clear()

    def _apply(self) -> None:
        for library, most in self.before.values():
            # threadpoolctl lets a single thread set the number and ignores all others, until it
            # is told that this one is done.
            done = getattr(library, "clear_controlling_thread", lambda force: None)
            done(force=True)
            library.set_num_threads(min([most, *self.in_force]))
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
            blas = ThreadpoolController().select(user_api="blas").lib_controllers
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
