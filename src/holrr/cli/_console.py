"""Messages of a running command: warnings as lines, and progress bars."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

__all__ = ["note", "reporting"]

# Number of seconds after which a computation of Dask shows its progress.
PATIENCE = 2.0


def note(message: str) -> None:
    """Print a note, which is not an error, to standard error."""
    print(f"holrr: note: {message}", file=sys.stderr)


@contextmanager
def reporting(command: str) -> Iterator[None]:
    """Print warnings as lines on standard error, and the progress of Dask on a terminal."""
    progress: Any = nullcontext()
    if "dask" in sys.modules and sys.stderr.isatty():
        from dask.diagnostics import ProgressBar

        progress = ProgressBar(minimum=PATIENCE, out=sys.stderr)
    with progress, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for text in dict.fromkeys(" ".join(str(w.message).split()) for w in caught):
        print(f"holrr {command}: warning: {text}", file=sys.stderr)
