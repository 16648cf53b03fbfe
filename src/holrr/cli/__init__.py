"""The command ``holrr``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ._errors import EXIT_INTERRUPTED

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words after ``holrr``; those of the process by default.

    Returns
    -------
    int
        Exit code, see ``holrr --help``.
    """
    try:
        # Numbers take a second to import, in which Ctrl-C must be answered as ever.
        from ._main import run

        return run(arguments)
    except KeyboardInterrupt:
        print("holrr: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
