"""What ``holrr --help`` says, and a parser that complains in one line."""

from __future__ import annotations

import argparse
import sys
from typing import NoReturn

from ._errors import EXIT_USAGE

__all__ = ["OneLineParser", "OVERVIEW"]

OVERVIEW = """\
usage: holrr COMMAND [options]

Regression from vectors to tensors: coefficients of low multilinear rank.

your own data
  fit         fit a model to arrays or tables and save it
  predict     predict with a saved model
  score       compare predictions with known outputs
  info        say what a saved model is and how good it is

a first look
  demo        fit, compare, draw: in under a minute, without a network

examples
  holrr demo
  holrr fit X.npy Y.npy -o model.holrr
  holrr predict model.holrr X_new.npy -o Y_new.npy
  holrr fit climate.nc:indices climate.nc:t2m -o model.holrr
  holrr fit runs.csv --outputs yield,purity -o model.holrr

holrr COMMAND --help     the options of a command
holrr --version          the version
holrr COMMAND --debug    the traceback of an error, too

exit codes
  0 done   1 unexpected error   2 wrong command line   3 input missing or not usable
  4 output cannot be written   5 package or download missing   130 interrupted
"""


class OneLineParser(argparse.ArgumentParser):
    """A parser whose errors are one line, and whose help can be a text of our own."""

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
