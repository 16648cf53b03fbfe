"""What the scripts share: tables, times of calls that take turns, and options."""

from __future__ import annotations

import argparse
import os
import statistics
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits


def show(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a Markdown table, each row as soon as it is there.

    Parameters
    ----------
    title : str
        Text above the table.
    head : sequence of str
        Names of the columns. The first column is aligned to the left, the others to the right.
    rows : iterable of sequences
        Cells of each row, which are converted to text by `str`.
    """
    print(f"\n{title}:\n\n| {' | '.join(head)} |\n|:--|{'--:|' * (len(head) - 1)}", flush=True)
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |", flush=True)


def medians(
    calls: Sequence[Callable[[], Any]],
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
    rest: float = 0.0,
) -> list[float]:
    """Return the median seconds of each call; the calls take turns after a warm-up.

    Parameters
    ----------
    calls : sequence of callables
        Functions without arguments.
    repeats : int
        Number of turns.
    clock : callable, default=time.perf_counter
        Clock; `time.process_time` counts the seconds of all threads.
    rest : float, default=0.0
        Seconds before each call. Threads of BLAS libraries spin for a tenth of a second after a
        call, and slow down the next one if it uses another library.
    """

    def seconds(call: Callable[[], Any]) -> float:
        time.sleep(rest)
        start = clock()
        call()
        return clock() - start

    for call in calls:
        call()
    turns = [[seconds(call) for call in calls] for _ in range(repeats)]
    return [statistics.median(column) for column in zip(*turns, strict=True)]


def quietly(work: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that runs on one thread and without warnings."""

    def run(*args: Any, **more: Any) -> Any:
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return work(*args, **more)

    return run


def rmse(predicted: np.ndarray, y: np.ndarray) -> float:
    return float(np.sqrt(np.mean((np.asarray(predicted).reshape(y.shape) - y) ** 2)))


def size_of(n: int, d0: int, shape: Sequence[int]) -> str:
    """Return a size as text.

    >>> size_of(100, 10, (4, 5))
    '100 x 10 -> 4x5'
    """
    return f"{n} x {d0} -> {'x'.join(map(str, shape))}"


def percent(value: float, error: float, bold: bool = False) -> str:
    """Return a difference in percent and its standard error as text."""
    # Adding 0.0 turns a rounded -0.0 into 0.0.
    text = f"{round(value, 2) + 0.0:+.2f} ± {error:.2f}".replace("-", "−")
    return f"**{text}**" if bold else text


def options_of(doc: str) -> argparse.ArgumentParser:
    """Return the parser of a script, with the options --quick and --jobs."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small data, few runs: some seconds")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="number of processes")
    return parser
