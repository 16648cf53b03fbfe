"""Progress for those who ask for it; the library that draws it is imported only then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .extras import need

__all__ = ["Progress", "progress", "status_line"]


class Progress:
    """A count of steps done; this one is not shown.

    `tick` is called, from any thread, after each step, and `expect` when there are more to come.
    """

    def tick(self) -> None:
        """One step more is done."""

    def expect(self, n_steps: int) -> None:
        """So many steps more are to come."""


class _Bar(Progress):
    def __init__(self, bar: Any, what: str):
        self._bar, self._task, self._total = bar, bar.add_task(what, total=None), 0

    def tick(self) -> None:
        self._bar.advance(self._task)

    def expect(self, n_steps: int) -> None:
        self._total += n_steps
        self._bar.update(self._task, total=self._total)


@contextmanager
def progress(
    what: str, verbose: bool | int | str = True, argument: str = "verbose"
) -> Iterator[Progress]:
    """A progress bar on the standard error, or nothing where none is wanted.

    `argument` is what the user has asked for it with.
    """
    if not verbose:
        yield Progress()
        return
    console = _console(argument)
    from rich.progress import Progress as Bar

    with Bar(console=console) as bar:
        yield _Bar(bar, what)


@contextmanager
def status_line(
    title: str, verbose: bool | int | str, line: Callable[..., str]
) -> Iterator[Callable[..., object] | None]:
    """A function that shows one line of progress, or None where none is wanted.

    With "rich" the line is kept up to date; True or a positive number prints line after line. What
    each of them says after the title is what `line` makes of what the function is called with.
    """
    if not verbose:
        yield None
    elif verbose == "rich":
        with _console("verbose='rich'").status(title) as status:
            yield lambda *look: status.update(f"{title}: {line(*look)}")
    else:
        yield lambda *look: print(f"{title}: {line(*look)}", flush=True)


def _console(argument: str) -> Any:
    what = f"{argument} needs rich, which draws the progress"
    return need("rich.console", what, "progress").Console(stderr=True)
