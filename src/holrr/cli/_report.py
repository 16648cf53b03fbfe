"""The command ``holrr report``."""

from __future__ import annotations

import argparse

from ..report import diagnosed, evaluated, make_report, report_on
from ..report.facts import facts_of
from ._command import Command
from ._console import note, reporting
from ._data import fingerprint, in_memory, read_pair
from ._files import FORMATS, Place, check_output, writing
from ._models import load_model
from ._options import add_data, add_model, add_reading
from ._tables import Plain

__all__ = ["REPORT"]


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_data(parser)
    add = parser.add_argument
    add("-o", "--output", type=Place, required=True, metavar="FILE.html", help="file to write")
    training = (
        "X and Y are the training data: evaluate the model by cross-validation, with refits; "
        "set automatically for the training data of holrr fit"
    )
    add("--training", action="store_true", help=training)
    add("--title", default="Regression report", help="title of the page")
    add_reading(parser, outputs=True)


def _run(options: argparse.Namespace) -> None:
    check_output(options.output, [options.MODEL, options.X, *filter(None, [options.Y])])
    saved = load_model(options.MODEL)
    X, Y, _ = read_pair(options, saved.known)
    Y = in_memory(Y.values if isinstance(Y, Plain) else Y)
    known = saved.notes.get("outputs")
    training = options.training or (known is not None and fingerprint(Y) == known)
    with reporting("report"):
        if training:
            note("X and Y are the training data: the model is evaluated by cross-validation")
            X = in_memory(X.values if isinstance(X, Plain) else X)
            report = make_report(
                saved.whole, X, Y, cross_validate=True, title=options.title, notes=saved.notes
            )
        else:
            inputs = in_memory(saved.preprocess(X))
            evaluation = evaluated(saved.model, inputs, Y)
            facts, rows = facts_of(saved.whole, saved.notes), diagnosed(saved.model, inputs)
            report = report_on(evaluation, saved.model, facts, options.title, rows)
    with writing(options.output.path):
        report.save(options.output.path)
    model = report.evaluation.names[0]
    r2 = report.evaluation.r2(model)
    print(f"R2 {r2.value:.6g} (95 % confidence interval {r2.low:.4g} to {r2.high:.4g})")
    print(f"report saved to {options.output}")


REPORT = Command(
    "report",
    summary="write an HTML report on a model",
    description=(
        "Write one HTML file on a saved model: errors compared with ridge regression and the\n"
        "mean, prediction intervals, ranks, loadings, and a conclusion in plain words.\n"
        "X and Y are new samples, or the training data, which are evaluated by cross-validation."
    ),
    add_arguments=_add_arguments,
    run=_run,
    epilog=FORMATS,
)
