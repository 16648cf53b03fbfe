"""The command ``holrr plot``."""

from __future__ import annotations

import argparse
import io
from typing import Any

from ..extras import need
from ..io import write_atomically
from ._command import Command
from ._console import reporting
from ._data import in_memory, read_inputs, read_pair
from ._errors import EXIT_USAGE, CommandError
from ._files import Place, check_output, writing
from ._models import SavedModel, load_model
from ._options import add_data, add_model, add_reading
from ._tables import Plain

__all__ = ["PLOT"]

# Display of each kind of plot, and the data that it needs.
KINDS = {
    "spectrum": ("SpectrumDisplay", ""),
    "loadings": ("LoadingsDisplay", ""),
    "skill": ("SkillMapDisplay", "XY"),
    "calibration": ("IntervalCalibrationDisplay", "XY"),
    "inputs": ("InputDiagnosticsDisplay", "X"),
    "outliers": ("OutlierDisplay", ""),
}
SUFFIXES = (".png", ".svg", ".pdf")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_data(parser, optional=True)
    add = parser.add_argument
    kinds = f"{', '.join(KINDS)} (default: %(default)s)"
    add("--kind", choices=tuple(KINDS), default="loadings", metavar="KIND", help=kinds)
    files = f"file to write: {', '.join(SUFFIXES)}"
    add("-o", "--output", type=Place, required=True, metavar="FILE", help=files)
    add_reading(parser, outputs=True)


def _run(options: argparse.Namespace) -> None:
    _, needed = KINDS[options.kind]
    suffix = options.output.path.suffix.lower()
    if suffix not in SUFFIXES:
        names = ", ".join(SUFFIXES)
        raise CommandError(f"-o {options.output}: use one of the suffixes {names}", EXIT_USAGE)
    if needed and options.X is None:
        what = "inputs and outputs" if "Y" in needed else "inputs"
        raise CommandError(f"--kind {options.kind} needs a file with {what}", EXIT_USAGE)
    check_output(options.output, [options.MODEL, *filter(None, [options.X, options.Y])])
    saved = load_model(options.MODEL)
    with reporting("plot"):
        figure = _figure(saved, options, needed)
        buffer = io.BytesIO()
        figure.savefig(buffer, format=suffix[1:], dpi=160)
    with writing(options.output.path):
        write_atomically(options.output.path, lambda file: _write(file, buffer))
    print(f"plot of the {options.kind} saved to {options.output}")


def _write(file: Any, buffer: io.BytesIO) -> None:
    file.write(buffer.getvalue())


def _figure(saved: SavedModel, options: argparse.Namespace, needed: str) -> Any:
    """Draw the display of the given kind, and return its figure."""
    matplotlib = need("matplotlib", "plots need matplotlib", "plot")
    matplotlib.use("Agg")
    from .. import plotting

    display = getattr(plotting, KINDS[options.kind][0])
    data: list[Any] = []
    if "Y" in needed:
        X, Y, _ = read_pair(options, saved.known)
        Y = in_memory(Y.values if isinstance(Y, Plain) else Y)
        data = [in_memory(saved.preprocess(X)), Y]
    elif needed:
        data = [in_memory(saved.preprocess(read_inputs(options, saved.known)))]
    if options.kind == "calibration" and not hasattr(saved.model, "predict_interval"):
        raise CommandError(
            f"--kind calibration needs a model with prediction intervals (see --cv of holrr fit); "
            f"{options.MODEL} contains a {type(saved.model).__name__}"
        )
    return display.from_estimator(saved.model, *data).figure_


PLOT = Command(
    "plot",
    summary="plot loadings, skill, outliers and more of a model",
    description=(
        "Draw a plot of a saved model. The kinds spectrum, loadings and outliers need only the\n"
        "model. The kind inputs needs new inputs. The kinds skill and calibration need inputs and\n"
        "outputs of samples that were not used in the fit."
    ),
    add_arguments=_add_arguments,
    run=_run,
)
