"""The command ``holrr demo``."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from ._errors import EXIT_OK, EXIT_OUTPUT, CommandError

__all__ = ["add_demo"]


def add_demo(commands: Any) -> argparse.ArgumentParser:
    """The parser of ``holrr demo``."""
    parser = commands.add_parser(
        "demo",
        description="A first look: fit, compare with ridge, draw. Under a minute, no network.",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("holrr-demo"),
        metavar="DIR",
        help="folder for the files (default: %(default)s)",
    )
    parser.set_defaults(run=_demo)
    return parser


def _demo(options: argparse.Namespace) -> int:
    from ..demo import run_demo

    _make_folder(options.out)
    run_demo(options.out)
    return EXIT_OK


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(
            f"the folder {folder} cannot be made: {error.strerror}", EXIT_OUTPUT
        ) from error
    if not os.access(folder, os.W_OK):
        raise CommandError(f"the folder {folder} cannot be written to", EXIT_OUTPUT)
