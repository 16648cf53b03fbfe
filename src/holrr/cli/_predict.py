"""The command ``holrr predict``."""

from __future__ import annotations

import argparse
from typing import Any

from ..diagnostics import diagnose_inputs
from . import _parse as parse
from ._command import Command
from ._console import reporting
from ._data import layouts, n_samples, read_inputs
from ._errors import EXIT_USAGE, CommandError
from ._files import FORMATS, Place, check_output
from ._models import load_model
from ._options import add_model, add_reading
from ._write import outputs_of, write

__all__ = ["PREDICT"]


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add = parser.add_argument
    add("X", help="file with the inputs")
    add("-o", "--output", type=Place, required=True, metavar="Y", help="file for the predictions")
    add("--std", action="store_true", help="also write standard deviations of new observations")
    interval = "also write bounds that contain a new observation with probability C, such as 0.9"
    add("--interval", type=parse.parse_coverage, metavar="C", help=interval)
    kind = "kind of bounds: entry (default), pooled, or simultaneous for all entries of a sample"
    add("--kind", choices=("entry", "pooled", "simultaneous"), help=kind)
    add_reading(parser, outputs=False)


def _run(options: argparse.Namespace) -> None:
    bounds = options.interval is not None
    if options.kind and not bounds:
        raise CommandError("--kind needs --interval, which writes bounds", EXIT_USAGE)
    for place in outputs_of(options.output, ["std"] * options.std + ["lower", "upper"] * bounds):
        check_output(place, [options.MODEL, options.X])
    saved = load_model(options.MODEL)
    X = saved.preprocess(read_inputs(options, saved.known))
    with reporting("predict"):
        parts = _parts(options, saved.model, X)
        write(options.output, parts, saved.model, layouts(options)[0])
    n, shape = n_samples(parts[""], None), tuple(saved.model.tucker_.shape[1:])
    print(f"{n} predictions of shape {shape} saved to {options.output}")
    if vars(saved.model).get("_input_model") is not None:
        outside = int(diagnose_inputs(saved.model, X, level=0.999).outside.sum())
        print(f"{outside} of {n} rows are outside the 99.9 % limits of the training inputs")


def _parts(options: argparse.Namespace, model: Any, X: Any) -> dict[str, Any]:
    """Return predictions and, if requested, standard deviations and bounds."""
    parts = {}
    if options.std:
        parts[""], parts["std"] = model.predict(X, return_std=True)
    else:
        parts[""] = model.predict(X)
    if options.interval is not None:
        if not hasattr(model, "predict_interval"):
            raise CommandError(
                f"--interval needs a linear or kernel model that was chosen by cross-validation "
                f"(see --cv of holrr fit); {options.MODEL} contains a {type(model).__name__}"
            )
        bounds = model.predict_interval(X, options.interval, options.kind or "entry")
        parts["lower"], parts["upper"] = bounds
    return parts


PREDICT = Command(
    "predict",
    summary="predict with a saved model",
    description="Predict the outputs of new inputs with a saved model.",
    add_arguments=_add_arguments,
    run=_run,
    epilog=f"{FORMATS}\nA table has one row for each sample, with the outputs flattened.",
)
