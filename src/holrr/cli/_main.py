"""The commands of ``holrr``: parse arguments, read files, call the library, write files."""

from __future__ import annotations

import argparse
import ast
import json
import os
import sys
import traceback
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from .._version import __version__
from ..data.pipelines import inputs_of_last_step, last_step
from ._errors import (
    EXIT_OK,
    EXIT_USAGE,
    CommandError,
    exit_code_of,
    note,
    one_line,
    warnings_as_lines,
)
from ._read import FORMATS, Place, fingerprint, read_inputs, read_pair
from ._write import check_output, outputs_of, replacing, write

__all__ = ["main"]

# Classes of holrr by the names of --model. The suffix CV gives the cross-validated class.
MODELS = {
    "holrr": "HOLRR",
    "lrr": "LRR",
    "rls": "RLS",
    "kernel-holrr": "KernelHOLRR",
    "kernel-lrr": "KernelLRR",
    "kernel-rls": "KernelRLS",
}

_OVERVIEW = """\
usage: holrr COMMAND [options]

Regression with tensor-valued outputs and coefficients of low multilinear rank.

models
  fit         fit a model to arrays or tables, and save it
  predict     predict the outputs of new inputs
  score       compare predictions with known outputs
  info        describe a saved model
  report      write an HTML report on a model

example
  demo        fit and compare models on simulated data, in less than a minute

examples
  holrr demo
  holrr fit X.npy Y.npy -o model.holrr
  holrr predict model.holrr X_new.npy -o Y_new.npy
  holrr fit climate.nc:indices climate.nc:t2m -o model.holrr
  holrr fit runs.csv --outputs yield,purity -o model.holrr

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
    try:
        options = _parser().parse_args(arguments)
    except SystemExit as stop:  # --help, --version or wrong arguments
        return int(stop.code or EXIT_OK)
    if options.command is None:
        print(_OVERVIEW, end="")
        return EXIT_OK
    try:
        with warnings_as_lines(options.command):
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


# ---------------------------------------------------------------- commands


def _fit(options: argparse.Namespace) -> None:
    _check_choices(options)
    check_output(Place(str(options.output)), [options.X, *filter(None, [options.Y])])
    X, Y, groups = read_pair(options)
    if np.ndim(X) < 2 and not hasattr(X, "data_vars"):
        raise CommandError(f"X must have samples and features; {options.X} has shape {X.shape}")
    estimator = _estimator(options, Y)
    given = {} if groups is None else {"groups": groups}
    estimator.fit(X, Y, sample_dim=options.sample_dim, **given)
    if hasattr(estimator, "verbose"):
        estimator.set_params(verbose=False)  # a program that loads the model may have no terminal
    _remember(estimator, X, Y)
    _save(estimator, options.output)
    print(_described(estimator))
    print(f"saved to {options.output}")


def _predict(options: argparse.Namespace) -> None:
    bounds = options.interval is not None
    if options.kind and not bounds:
        raise CommandError("--kind needs --interval, which writes bounds", EXIT_USAGE)
    for place in outputs_of(options.output, ["std"] * options.std + ["lower", "upper"] * bounds):
        check_output(place, [options.MODEL, options.X])
    model = _load(options.MODEL)
    X = inputs_of_last_step(model, read_inputs(options, model))
    final = last_step(model)
    parts: dict[str, Any] = {}
    if options.std:
        parts[""], parts["std"] = final.predict(X, return_std=True)
    else:
        parts[""] = final.predict(X)
    if bounds:
        if not hasattr(final, "predict_interval"):
            raise CommandError(
                f"--interval needs a model that was chosen by cross-validation; {options.MODEL} "
                f"contains a {type(final).__name__}. Fit it without --rank, or with --cv"
            )
        kind = options.kind or "entry"
        parts["lower"], parts["upper"] = final.predict_interval(X, options.interval, kind)
    write(options.output, parts, final, options.sep, options.decimal)
    n = _n_samples(parts[""])
    print(f"{n} predictions of shape {final.tucker_.shape[1:]} saved to {options.output}")


def _score(options: argparse.Namespace) -> None:
    from ..data.validation import score_errors
    from ..report.facts import describe_scores, weight_and_scale

    model = _load(options.MODEL)
    X, Y, _ = read_pair(options, model)
    final = last_step(model)
    errors = score_errors(final, inputs_of_last_step(model, X), Y)
    print(describe_scores(errors, *weight_and_scale(final)))


def _info(options: argparse.Namespace) -> None:
    from ..report.facts import facts_of

    model = _load(options.MODEL)
    if options.json:
        facts = facts_of(model, _notes(model))
        print(json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False))
    else:
        print(_described(model))


def _report(options: argparse.Namespace) -> None:
    from ..report import make_report

    check_output(options.output, [options.MODEL, options.X, *filter(None, [options.Y])])
    model = _load(options.MODEL)
    X, Y, _ = read_pair(options, model)
    X, Y = (A.compute() if hasattr(A, "compute") else A for A in (X, Y))
    known = _notes(model).get("outputs")
    training = options.training or (known is not None and fingerprint(Y) == known)
    if training:
        note("X and Y are the training data: the model is evaluated by cross-validation")
    report = make_report(
        model, X, Y, cross_validate=training, title=options.title, notes=_notes(model)
    )
    with replacing(options.output.path) as path:
        report.save(path)
    r2 = report.evaluation.r2(report.evaluation.names[0])
    print(f"R2 {r2.value:.6g} (95 % confidence interval {r2.low:.4g} to {r2.high:.4g})")
    print(f"report saved to {options.output}")


def _demo(options: argparse.Namespace) -> None:
    from ..demo import run_demo

    options.out.mkdir(parents=True, exist_ok=True)
    run_demo(options.out)


# ---------------------------------------------------------------- models


def _load(path: Path) -> Any:
    from ..io import load

    if not path.is_file():
        raise CommandError(f"{path} {'is not a file' if path.exists() else 'does not exist'}")
    model = load(path)
    if not hasattr(last_step(model), "tucker_"):
        raise CommandError(f"{path} contains {type(model).__name__}, not a fitted model")
    return model


def _save(model: Any, path: Path) -> None:
    from ..io import save

    with replacing(path) as new:
        save(model, new)


def _remember(estimator: Any, X: Any, Y: Any) -> None:
    """Keep with the model what later commands need: the name of the row labels, and a checksum."""
    index = getattr(getattr(X, "index", None), "name", None)
    estimator._index_name = None if index is None else str(index)
    n_samples = _n_samples(Y, getattr(estimator.labels_, "sample_dim", None))
    estimator._training = {"n_samples": n_samples, "outputs": fingerprint(Y)}


def _notes(model: Any) -> dict[str, Any]:
    return getattr(last_step(model), "_training", {})


def _described(model: Any) -> str:
    from ..report.facts import describe, facts_of

    return describe(facts_of(model, _notes(model)))


def _n_samples(data: Any, dim: str | None = None) -> int:
    if dim is not None and hasattr(data, "sizes"):
        return int(data.sizes[dim])
    if hasattr(data, "data_vars"):
        data = next(iter(data.data_vars.values()))
    return int(data.shape[0])


def _takes(model: str, parameter: str, suffix: str = "") -> bool:
    return parameter in _class(model, suffix)._get_param_names()


def _class(model: str, suffix: str = "") -> Any:
    import holrr

    return getattr(holrr, MODELS[model] + suffix)


def _searches(options: argparse.Namespace) -> bool:
    """Return whether the options leave something to choose by cross-validation."""
    asked = options.cv is not None or options.groups is not None or options.time_series
    single = options.rank is not None or (options.alpha is not None and len(options.alpha) == 1)
    return asked or options.max_rank is not None or not single


def _check_choices(options: argparse.Namespace) -> None:
    """Raise an error for options that cannot be combined, before any file is read."""
    searches = _searches(options)
    suffix = "CV" if searches else ""
    if options.rank is not None and searches:
        raise CommandError(
            "--rank fits one model, and --cv, --groups, --time-series and --max-rank choose among "
            "ranks: leave out --rank, or give --max-rank instead",
            EXIT_USAGE,
        )
    if options.groups is not None and options.time_series:
        raise CommandError("--groups cannot be combined with --time-series", EXIT_USAGE)
    if options.alpha is not None and len(options.alpha) > 1 and not searches:
        raise CommandError("several values of --alpha need --cv to choose among them", EXIT_USAGE)
    given = {
        "rank": options.rank,
        "max_rank": options.max_rank,
        "kernel": options.kernel,
        "missing": options.missing,
        "output_weight": options.output_weight,
    }
    for name, value in [*given.items(), *options.set]:
        if value is not None and not _takes(options.model, name, suffix):
            option = f"--set {name}" if name not in given else f"--{name.replace('_', '-')}"
            known = ", ".join(_class(options.model, suffix)._get_param_names())
            raise CommandError(
                f"{option}: {_class(options.model, suffix).__name__} has no parameter {name!r}; "
                f"its parameters are {known}",
                EXIT_USAGE,
            )


def _estimator(options: argparse.Namespace, Y: Any) -> Any:
    """Return the unfitted estimator that the options of ``holrr fit`` describe."""
    from sklearn.model_selection import GroupKFold, TimeSeriesSplit

    params: dict[str, Any] = {"output_shape": options.output_shape}
    if _takes(options.model, "kernel"):
        params["kernel"] = options.kernel or "rbf"
    if options.missing is not None:
        params["missing"] = options.missing
    if options.output_weight is not None:
        params["output_weight"] = _output_weight(options.output_weight, Y)
    if not _searches(options):
        if options.rank is not None:
            params["rank"] = options.rank
        if options.alpha is not None:
            params["alpha"] = options.alpha[0]
        return _class(options.model)(**params | dict(options.set))
    n_folds = options.cv or 5
    params["cv"] = n_folds
    if options.time_series:
        params["cv"] = TimeSeriesSplit(n_folds)
    elif options.groups is not None:
        params["cv"] = GroupKFold(n_folds)
    if options.alpha is not None:
        params["alphas"] = options.alpha
    if options.max_rank is not None:
        params["max_rank"] = options.max_rank
    # Progress is shown on a terminal, if the package for progress bars is installed.
    params["verbose"] = sys.stderr.isatty() and find_spec("rich") is not None
    return _class(options.model, "CV")(**params | dict(options.set))


def _output_weight(text: str, Y: Any) -> Any:
    """Return weights of the outputs: numbers, or the cosine of a dimension in degrees."""
    if not text.startswith("cos:"):
        try:
            return np.array([float(part) for part in text.split(",")])
        except ValueError:
            raise CommandError(
                f"--output-weight must be numbers such as 1,2,0.5, or cos:DIM; got {text!r}",
                EXIT_USAGE,
            ) from None
    dim = text.removeprefix("cos:")
    if dim not in getattr(Y, "coords", ()):
        raise CommandError(
            f"--output-weight {text}: Y has no dimension {dim!r} with coordinates in degrees"
        )
    return np.cos(np.deg2rad(Y[dim]))


# ---------------------------------------------------------------- arguments


def _parser() -> argparse.ArgumentParser:
    parser = _OneLineParser(prog="holrr", overview=_OVERVIEW)
    parser.add_argument("--version", action="version", version=f"holrr {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    def command(name: str, run: Any, description: str, *adders: Any, epilog: str = "") -> Any:
        own = commands.add_parser(name, description=description, epilog=epilog)
        for add in adders:
            add(own)
        own.add_argument("--debug", action="store_true", help="print the traceback of an error")
        own.set_defaults(run=run)
        return own

    command(
        "fit", _fit,
        "Fit a model to inputs X (samples by features) and outputs Y (samples first, then any\n"
        "number of modes), and save it. Without --rank and --alpha both are chosen by 5-fold\n"
        "cross-validation over all ranks.",
        _add_data, _add_fit, _add_reading, epilog=f"{FORMATS}\n\n{_FIT_EXAMPLES}",
    )  # fmt: skip
    command(
        "predict", _predict, "Predict the outputs of new inputs with a saved model.",
        _add_model, _add_predict, _add_reading, epilog=FORMATS,
    )  # fmt: skip
    command(
        "score", _score, "Compare the predictions of a saved model with known outputs.",
        _add_model, _add_data, _add_reading, epilog=FORMATS,
    )  # fmt: skip
    command(
        "info", _info,
        "Describe a saved model: shapes, ranks, size, certificate, held-out errors.",
        _add_model, _add_info,
    )  # fmt: skip
    command(
        "report", _report,
        "Write one HTML file on a saved model: errors compared with ridge regression and the\n"
        "mean, prediction intervals, ranks, loadings, and a conclusion in plain words.\n"
        "X and Y are new samples, or the training data, which are evaluated by cross-validation.",
        _add_model, _add_data, _add_report, _add_reading, epilog=FORMATS,
    )  # fmt: skip
    command(
        "demo", _demo,
        "Simulate data, choose ranks by cross-validation, compare the model with ridge\n"
        "regression and draw estimated images. Takes less than a minute and needs no network.",
        _add_demo,
    )  # fmt: skip
    return parser


_FIT_EXAMPLES = """\
examples
  holrr fit X.npy Y.npy -o model.holrr
  holrr fit X.npy Y.npy --rank 4,3,3 --alpha 0.1 -o model.holrr
  holrr fit X.npy Y.npy --model kernel-holrr --kernel rbf --cv 10 -o model.holrr
  holrr fit climate.nc:sst climate.nc:t2m --output-weight cos:lat -o model.holrr
  holrr fit table.csv --inputs 'x*' --outputs yield,purity -o model.holrr
  holrr fit X.nc Y.nc --set blocks=auto --set loss=huber -o model.holrr
  holrr fit X.csv Y.csv --output-shape 12,5 -o model.holrr"""


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("MODEL", type=Path, help="file that holrr fit or holrr.save wrote")


def _add_data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("X", help="file with the inputs")
    parser.add_argument("Y", nargs="?", help="file with the outputs")


def _add_fit(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("-o", "--output", type=Path, required=True, metavar="MODEL", help="file for the model")
    kinds = f"{', '.join(MODELS)} (default: %(default)s)"
    add("--model", choices=tuple(MODELS), default="holrr", metavar="KIND", help=kinds)
    rank = (
        "rank of one model: one number, one for each mode such as 4,3,3 (input mode first), or a "
        "share of the energy such as 0.9"
    )
    add("--rank", type=_rank, metavar="R", help=rank)
    add("--max-rank", type=_rank, metavar="R", help="largest rank to try, for all or each mode")
    alpha = "penalty (1 if only --rank is given); several values such as 0.1,1,10 are compared"
    add("--alpha", type=_penalties, metavar="A", help=alpha)
    folds = "cross-validation with K folds (default: 5), to choose ranks and penalties not given"
    add("--cv", type=_folds, nargs="?", const=5, metavar="K", help=folds)
    groups = "hold out the samples of a group together: a column or coordinate of X or Y, or a file"
    add("--groups", metavar="NAME", help=groups)
    dim = "dimension of the samples in labelled grids, if X and Y share several"
    add("--sample-dim", metavar="NAME", help=dim)
    later = "hold out only samples that are later than the training samples"
    add("--time-series", action="store_true", help=later)
    kernels = "rbf, poly, laplacian, ... for the kernel models (default: rbf)"
    add("--kernel", metavar="NAME", help=kernels)
    missing = "ignore: leave missing outputs (blank cells and NaN in Y) out of the fit"
    add("--missing", choices=("raise", "ignore"), help=missing)
    weight = (
        "weights of the outputs: numbers such as 1,2,0.5, or cos:DIM for a dimension in degrees"
    )
    add("--output-weight", metavar="W", help=weight)
    shape = "shape of one sample of Y, for formats that contain only matrices"
    add("--output-shape", type=_shape, metavar="D1,D2", help=shape)
    others = (
        "any other parameter of the model as in Python, such as blocks=auto, "
        "input_rank='(3, 2)' or fit_intercept=False; may be given several times"
    )
    add("--set", type=_setting, action="append", default=[], metavar="NAME=VALUE", help=others)


def _add_predict(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("X", help="file with the inputs")
    add("-o", "--output", type=Place, required=True, metavar="Y", help="file for the predictions")
    add("--std", action="store_true", help="also write standard deviations of new observations")
    interval = "also write bounds that contain a new observation with probability C, such as 0.9"
    add("--interval", type=_coverage, metavar="C", help=interval)
    kind = "kind of bounds: entry (default), pooled, or simultaneous for all entries of a sample"
    add("--kind", choices=("entry", "pooled", "simultaneous"), help=kind)


def _add_info(parser: argparse.ArgumentParser) -> None:
    text = "print JSON; the documentation lists the keys"
    parser.add_argument("--json", action="store_true", help=text)


def _add_report(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("-o", "--output", type=Place, required=True, metavar="FILE.html", help="file to write")
    training = (
        "X and Y are the training data: evaluate the model by cross-validation, with refits; "
        "set automatically for the training data of holrr fit"
    )
    add("--training", action="store_true", help=training)
    add("--title", default="Regression report", help="title of the page")


def _add_demo(parser: argparse.ArgumentParser) -> None:
    out = "folder for the files (default: %(default)s)"
    parser.add_argument("--out", type=Path, default=Path("holrr-demo"), metavar="DIR", help=out)


def _add_reading(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("tables").add_argument
    columns = (
        "columns of the inputs: names, patterns and ranges such as a,b*,c:f, or a range of names "
        "that are numbers such as 1100:2300; all others by default"
    )
    add("--inputs", metavar="COLS", help=columns)
    parser.set_defaults(outputs=None, groups=None)
    if not any(action.dest == "kind" for action in parser._actions):  # predict reads no outputs
        add("--outputs", metavar="COLS", help="columns of the outputs, in the form of --inputs")
    add("--index-col", metavar="COL", help="name or number of the column with the row labels")
    add("--sep", type=_separator, help="separator of the cells; , ; and tabs are recognised")
    add("--decimal", choices=(".", ","), help="decimal separator")
    lines = "number of header lines; 1,2 if X has one and Y has two"
    add("--header", type=_header, metavar="N", help=lines)


class _OneLineParser(argparse.ArgumentParser):
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


# ---------------------------------------------------------------- values of arguments


def _number(text: str, what: str, convert: Any, good: Any) -> Any:
    """Convert text to a number that fulfils a condition, or raise an error that says which."""
    try:
        value = convert(text)
    except ValueError:
        value = None
    if value is None or not good(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
    return value


def _rank(text: str) -> Any:
    what = "a rank: a whole number of at least 1, or a share between 0 and 1"
    good = lambda v: 0 < v < 1 or (v >= 1 and v == int(v))  # noqa: E731
    found = [_number(part, what, float, good) for part in text.split(",")]
    ranks = tuple(R if R < 1 else int(R) for R in found)
    return ranks[0] if len(ranks) == 1 else ranks


def _penalties(text: str) -> list[float]:
    good = lambda v: 0 <= v < np.inf  # noqa: E731
    return [_number(part, "a penalty of at least 0", float, good) for part in text.split(",")]


def _folds(text: str) -> int:
    return _number(text, "a number of folds of at least 2", int, lambda v: v >= 2)


def _coverage(text: str) -> float:
    return _number(text, "a number between 0 and 1", float, lambda v: 0 < v < 1)


def _shape(text: str) -> tuple[int, ...]:
    return tuple(_number(part, "a size", int, lambda v: v >= 1) for part in text.split(","))


def _header(text: str) -> list[int]:
    what = "a number of header lines"
    return [_number(part, what, int, lambda v: 0 <= v <= 5) for part in text.split(",")]


def _separator(text: str) -> str:
    sep = {"tab": "\t", "\\t": "\t"}.get(text, text)
    if len(sep) != 1:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a single character nor tab")
    return sep


def _setting(text: str) -> tuple[str, Any]:
    """Parse ``NAME=VALUE``; a value that is no literal of Python is text."""
    name, sign, value = text.partition("=")
    if not sign or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value
