"""The command ``holrr info``."""

from __future__ import annotations

import argparse
import json

from ..report.facts import describe, facts_of
from ._command import Command
from ._models import load_model
from ._options import add_model

__all__ = ["INFO"]


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    text = "print JSON; the documentation lists the keys"
    parser.add_argument("--json", action="store_true", help=text)


def _run(options: argparse.Namespace) -> None:
    saved = load_model(options.MODEL, text=True)
    facts = facts_of(saved.whole, saved.notes)
    if options.json:
        print(json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False))
    else:
        print(describe(facts))


INFO = Command(
    "info",
    summary="describe a saved model",
    description=(
        "Describe a saved model: preprocessing, shapes, ranks, size, certificate, held-out errors."
    ),
    add_arguments=_add_arguments,
    run=_run,
)
