"""The command ``holrr demo``."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from ._command import Command
from ._errors import EXIT_OUTPUT, CommandError

__all__ = ["DEMO"]


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    out = "folder for the files (default: %(default)s)"
    parser.add_argument("--out", type=Path, default=Path("holrr-demo"), metavar="DIR", help=out)


def _run(options: argparse.Namespace) -> None:
    from ..demo import run_demo

    folder = options.out
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(
            f"the folder {folder} cannot be created: {error.strerror}", EXIT_OUTPUT
        ) from error
    if not os.access(folder, os.W_OK):
        raise CommandError(f"the folder {folder} is not writable", EXIT_OUTPUT)
    run_demo(folder)


DEMO = Command(
    "demo",
    summary="fit and compare models on simulated data, in less than a minute",
    description=(
        "Simulate data, choose ranks by cross-validation, compare the model with ridge regression\n"
        "and draw estimated images. Takes less than a minute and needs no network."
    ),
    add_arguments=_add_arguments,
    run=_run,
    group="example",
)
