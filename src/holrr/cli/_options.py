"""Arguments that several commands share."""

from __future__ import annotations

import argparse
from pathlib import Path

from . import _parse as parse

__all__ = ["add_data", "add_model", "add_reading"]


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add the argument for a file with a saved model."""
    parser.add_argument("MODEL", type=Path, help="file that holrr fit or holrr.save wrote")


def add_data(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    """Add the arguments for files with inputs and outputs.

    Parameters
    ----------
    parser : ArgumentParser
    optional : bool
        Whether the command also runs without data.
    """
    parser.add_argument("X", nargs="?" if optional else None, help="file with the inputs")
    parser.add_argument("Y", nargs="?", help="file with the outputs")


def add_reading(parser: argparse.ArgumentParser, *, outputs: bool) -> None:
    """Add the options that describe how to read files.

    Parameters
    ----------
    parser : ArgumentParser
    outputs : bool
        Whether the command also reads outputs.
    """
    add = parser.add_argument_group("files").add_argument
    columns = (
        "columns of the inputs: names, patterns and ranges such as a,b*,c:f, or a range of names "
        "that are numbers such as 1100:2300; all by default"
    )
    add("--inputs", metavar="COLS", help=columns)
    if outputs:
        add("--outputs", metavar="COLS", help="columns of the outputs, in the form of --inputs")
        add("--sample-dim", metavar="DIM", help="dimension of the samples")
    add("--sep", type=parse.parse_sep, help="separator of the cells of a table")
    add("--decimal", choices=(".", ","), help="decimal separator")
    lines = "number of header lines; 1,2 if X has one and Y has two"
    add("--header", type=parse.parse_header, metavar="N", help=lines)
    add("--index-col", metavar="COL", help="column with the labels of the rows")
