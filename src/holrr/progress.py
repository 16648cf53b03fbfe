"""A progress bar for those who ask for one; the library that draws it is imported only then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress"]


@contextmanager
def progress(total: int, what: str, verbose: bool | int) -> Iterator[Callable[[], object]]:
    """Give a function to be called, from any thread, after each of `total` steps."""
    if not verbose:
        yield lambda: None
        return
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError as error:
        raise ImportError(
            "verbose needs rich, which draws the progress bar: pip install holrr[progress]"
        ) from error
    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)
