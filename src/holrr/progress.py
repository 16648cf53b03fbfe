"""Progress bars, drawn by rich, which is imported only if a progress bar is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .extras import need

__all__ = ["Progress", "progress", "status_line"]


class Progress:
    """Counter of finished steps. This base class shows nothing.

    Callers call `tick` after each step, from any thread, and `expect` to announce more steps.
    """

    def tick(self) -> None:
        """Count one finished step."""

    def expect(self, n_steps: int) -> None:
        """Announce `n_steps` more steps."""


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
    """Show a progress bar on stderr if `verbose`, as a context manager.

    `argument` is the parameter that requests the progress bar. An error message names it if rich
    is not installed.
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
    """Provide a function that shows a line of progress, as a context manager.

    Without `verbose`, it provides None. With ``verbose="rich"``, each call updates the same line.
    With True or a positive number, each call prints a line. `line` maps the arguments of the call
    to the text after the title.
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
