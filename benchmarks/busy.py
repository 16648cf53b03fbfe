"""Small problems while another program is busy on every core: default threads against one.

    python benchmarks/busy.py [--quick] [--repeats 15]

The threads of a BLAS wait for each other in a busy loop. On a busy machine, waiting threads take
cores from working threads, and a small fit can take many times as long as on one thread.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits

from holrr import HOLRRCV
from linear import PAPER, data, label, medians

SEARCHES = [(100, 3, (70, 70)), (742, 15, (33, 49))]
# Busy loop, which ends after 15 minutes if it is not stopped.
LOOP = "import time\nend = time.monotonic() + 900\nwhile time.monotonic() < end: pass"


@contextmanager
def busy_cores(n: int | None = None) -> Iterator[list[int]]:
    """Run a busy program on every core, and yield the process ids."""
    loops = [
        subprocess.Popen([sys.executable, "-c", LOOP]) for _ in range(n or os.cpu_count() or 1)
    ]
    try:
        yield [loop.pid for loop in loops]
    finally:
        for loop in loops:
            loop.terminate()
            loop.wait()


def thread_times(model, X, Y, repeats: int) -> list[float]:
    """Return the seconds with the default number of threads, and with one thread."""

    def alone() -> None:
        with threadpool_limits(1):
            model.fit(X, Y)

    return medians([lambda: model.fit(X, Y), alone], repeats)


def rows(quick: bool = False, repeats: int = 15) -> Iterator[tuple[str, float, float, float]]:
    """Yield label, seconds with default threads, seconds with one thread, and target ratio."""
    with busy_cores(1 if quick else None), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of penalties at the edge of a grid
        for size in PAPER:
            X, Y, model = data(*size)
            name = f"busy cores, default threads / one: HOLRR.fit, {label(*size)}"
            yield name, *thread_times(model, X, Y, repeats), 1.2
        for size in () if quick else SEARCHES:
            X, Y, _ = data(*size)
            name = f"busy cores, default threads / one: HOLRRCV.fit, {label(*size)}"
            yield name, *thread_times(HOLRRCV(), X, Y, max(1, repeats // 5)), 1.2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one busy core, no searches")
    parser.add_argument("--repeats", type=int, default=15)
    args = parser.parse_args()
    for name, default, one, asked in rows(args.quick, args.repeats):
        print(f"{name}: {default / one:.2f} ({default * 1e3:.1f} and {one * 1e3:.1f} ms; "
              f"asked {asked})")  # fmt: skip


if __name__ == "__main__":
    main()
