"""Entry point of the command line: parse, run, turn errors into a line and an exit code."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

from .._version import __version__
from . import _demo, _models
from ._errors import EXIT_OK, exit_code_of, one_line
from ._help import OVERVIEW, OneLineParser

__all__ = ["run"]


def run(arguments: Sequence[str] | None) -> int:
    """Run the command line, see `main`."""
    parser = _parser()
    try:
        options = parser.parse_args(arguments)
    except SystemExit as stop:  # --help, --version or a wrong command line
        return int(stop.code or EXIT_OK)
    if options.command is None:
        print(OVERVIEW, end="")
        return EXIT_OK
    return _run(options)


def _run(options) -> int:
    try:
        return options.run(options) or EXIT_OK
    except BrokenPipeError:
        # Whoever read our output has gone: nothing is left to say, also not at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK
    except (Exception, KeyboardInterrupt) as error:
        if options.debug:
            traceback.print_exc()
        message = "interrupted" if isinstance(error, KeyboardInterrupt) else one_line(error)
        print(f"holrr {options.command}: {message}", file=sys.stderr)
        return exit_code_of(error)


def _parser() -> OneLineParser:
    parser = OneLineParser(prog="holrr", overview=OVERVIEW)
    parser.add_argument("--version", action="version", version=f"holrr {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for add in (
        _models.add_fit,
        _models.add_predict,
        _models.add_score,
        _models.add_info,
        _demo.add_demo,
    ):
        command = add(commands)
        command.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return parser
