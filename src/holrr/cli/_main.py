"""Entry point of the command line: parse the arguments, run the command, report errors."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

from .._version import __version__
from ._commands import COMMANDS
from ._errors import EXIT_OK, EXIT_USAGE, exit_code_of, one_line

__all__ = ["main"]

_OVERVIEW = """\
usage: holrr COMMAND [options]

Regression with tensor-valued outputs and coefficients of low multilinear rank.

{commands}
examples
  holrr demo
  holrr fit X.npy Y.npy -o model.holrr
  holrr predict model.holrr X_new.npy -o Y_new.npy
  holrr fit climate.nc:indices climate.nc:t2m -o model.holrr
  holrr fit runs.csv --outputs yield,purity -o model.holrr
  holrr fit spectra.csv --inputs 1100:2300 --snv --outputs fat,water -o model.holrr

holrr COMMAND --help     options of a command
holrr --version          version of the library
holrr COMMAND --debug    also print the traceback of an error

exit codes
  0 success   1 unexpected error   2 wrong arguments   3 input missing or not usable
  4 output cannot be written   5 package or download missing   130 interrupted
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        Arguments after ``holrr``. By default, they are the arguments of the process.

    Returns
    -------
    int
        Exit code, see ``holrr --help``.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr.cli import main
    >>> from holrr.datasets import make_tensor_regression
    >>> X, Y = make_tensor_regression(60, 4, (3, 2), rank=2, snr=1, random_state=0)
    >>> np.savez("data.npz", X=X, Y=Y)
    >>> main(["fit", "data.npz:X", "data.npz:Y", "-o", "model.holrr"])
    model          HOLRR
    ...
    saved to model.holrr
    0
    """
    parser = _parser()
    try:
        options = parser.parse_args(arguments)
    except SystemExit as stop:  # --help, --version or wrong arguments
        return int(stop.code or EXIT_OK)
    if options.command is None:
        print(_overview(), end="")
        return EXIT_OK
    return _run(options)


def _run(options: argparse.Namespace) -> int:
    try:
        options.run(options)
    except BrokenPipeError:
        # The reader of the output has closed the pipe: write nothing more, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (Exception, KeyboardInterrupt) as error:
        if options.debug:
            traceback.print_exc()
        message = "interrupted" if isinstance(error, KeyboardInterrupt) else one_line(error)
        print(f"holrr {options.command}: {message}", file=sys.stderr)
        return exit_code_of(error)
    return EXIT_OK


def _overview() -> str:
    """Return the help of ``holrr`` itself, with the commands by group."""
    lines = []
    for group in dict.fromkeys(command.group for command in COMMANDS):
        lines.append(group)
        lines += [f"  {c.name:<12}{c.summary}" for c in COMMANDS if c.group == group]
        lines.append("")
    return _OVERVIEW.format(commands="\n".join(lines))


def _parser() -> OneLineParser:
    parser = OneLineParser(prog="holrr", overview=_overview())
    parser.add_argument("--version", action="version", version=f"holrr {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for command in COMMANDS:
        own = commands.add_parser(
            command.name, description=command.description, epilog=command.epilog
        )
        command.add_arguments(own)
        own.add_argument("--debug", action="store_true", help="print the traceback of an error")
        own.set_defaults(run=command.run)
    return parser


class OneLineParser(argparse.ArgumentParser):
    """Argument parser with error messages of one line and an optional text as help."""

    def __init__(self, *args, overview: str | None = None, **kwargs):
        kwargs.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        kwargs.setdefault("allow_abbrev", False)
        super().__init__(*args, **kwargs)
        self._overview = overview

    def format_help(self) -> str:
        return self._overview or super().format_help()

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {message} (see {self.prog} --help)", file=sys.stderr)
        raise SystemExit(EXIT_USAGE)
