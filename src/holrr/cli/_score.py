"""The command ``holrr score``."""

from __future__ import annotations

import argparse

from ..data.validation import score_errors
from ..report.facts import describe_scores
from ._command import Command
from ._console import reporting
from ._data import read_pair
from ._files import FORMATS
from ._models import load_model
from ._options import add_data, add_model, add_reading
from ._tables import Plain

__all__ = ["SCORE"]


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_data(parser)
    add_reading(parser, outputs=True)


def _run(options: argparse.Namespace) -> None:
    saved = load_model(options.MODEL)
    X, Y, _ = read_pair(options, saved.known)
    X, Y = saved.preprocess(X), Y.values if isinstance(Y, Plain) else Y
    with reporting("score"):
        errors = score_errors(saved.model, X, Y)
        print(describe_scores(errors, saved.model._output_weight))


SCORE = Command(
    "score",
    summary="compare predictions with known outputs",
    description="Compare the predictions of a saved model with known outputs.",
    add_arguments=_add_arguments,
    run=_run,
    epilog=FORMATS,
)
