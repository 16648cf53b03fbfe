"""Progress of an iteration, shown on request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress"]

Show = Callable[[str], None]


@contextmanager
def progress(verbose: bool | int | str, title: str) -> Iterator[Show | None]:
    """A function that shows one line of progress, or None where none is wanted.

    Parameters
    ----------
    verbose : bool, int or "rich"
        False or 0 for nothing, True or a positive number for lines on the standard output, "rich"
        for one line that is kept up to date.
    title : str
        What each line begins with.
    """
    if not verbose:
        yield None
    elif verbose == "rich":
        with _status(title) as show:
            yield show
    else:
        yield lambda line: print(f"{title}: {line}", flush=True)


@contextmanager
def _status(title: str) -> Iterator[Show]:
    try:
        from rich.console import Console
    except ImportError as error:
        raise ImportError(
            "verbose='rich' needs rich: pip install holrr[progress], or use verbose=True."
        ) from error
    with Console(stderr=True).status(title) as status:
        yield lambda line: status.update(f"{title}: {line}")
