"""Progress of a run: a bar with the remaining time, occasional lines, or nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

__all__ = ["Progress", "progress_bar", "silent"]

Advance = Callable[[int], None]
Progress = Callable[[str, int], AbstractContextManager[Advance]]


@contextmanager
def silent(title: str, total: int) -> Iterator[Advance]:
    """Show no progress."""
    yield lambda n: None


@contextmanager
def progress_bar(title: str, total: int) -> Iterator[Advance]:
    """Show a bar on a terminal if rich is installed; otherwise print a line for every tenth."""
    bar = _rich_bar(title, total)
    if bar is None:
        yield _lines(title, total)
        return
    progress, task = bar
    with progress:
        yield lambda n: progress.advance(task, n)


def _rich_bar(title: str, total: int):
    try:
        from rich import progress as rich_progress
        from rich.console import Console
    except ImportError:  # rich is an extra; plain lines do not need it
        return None
    console = Console(stderr=True)
    if not console.is_terminal:
        return None
    bar = rich_progress.Progress(
        rich_progress.TextColumn("{task.description:<10}"),
        rich_progress.BarColumn(bar_width=32),
        rich_progress.MofNCompleteColumn(),
        rich_progress.TimeElapsedColumn(),
        rich_progress.TextColumn("left"),
        rich_progress.TimeRemainingColumn(),
        console=console,
    )
    return bar, bar.add_task(title, total=total)


def _lines(title: str, total: int) -> Advance:
    start = time.monotonic()
    done = told = at_start = 0

    def advance(n: int) -> None:
        nonlocal done, told, at_start
        if done == 0 and n != 1:  # units of an earlier run do not count for the speed
            at_start = n
        done += n
        if done * 10 // max(total, 1) > told * 10 // max(total, 1):
            told = done
            elapsed = time.monotonic() - start
            left = elapsed / max(done - at_start, 1) * (total - done)
            print(
                f"{title}: {done} of {total}, {elapsed:.0f} s, about {left:.0f} s left",
                file=sys.stderr,
                flush=True,
            )

    return advance
