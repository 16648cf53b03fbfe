"""The commands ``holrr fit``, ``predict``, ``score``, ``info`` and ``demo``."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from ..data import Standardizer
from ..data.unlabel import sample_dimension
from ..data.validation import score_errors
from ..diagnostics import diagnose_inputs
from ..io import load_with_notes, save
from . import _choices as choices
from ._data import in_memory, layouts, n_samples, read_inputs, read_pair
from ._errors import EXIT_OUTPUT, EXIT_USAGE, CommandError
from ._files import FORMATS, Place, check_file, check_output, writing
from ._report import description, of_errors
from ._tables import Plain
from ._write import outputs_of, write

__all__ = ["add_commands"]

_PATIENCE = 2.0  # seconds after which somebody who watches wants to know how far it is


def add_commands(commands: Any) -> None:
    """The parsers of all commands."""
    fit = _parser(
        commands,
        _fit,
        "Fit a model to inputs X (samples by features) and outputs Y (samples first, then any\n"
        "number of modes) and save it. Without --rank and --alpha both are chosen by 5-fold\n"
        "cross-validation over all ranks.",
        f"{FORMATS}\n\n"
        "examples\n"
        "  holrr fit X.npy Y.npy -o model.holrr\n"
        "  holrr fit X.npy Y.npy --rank 4,3,3 --alpha 0.1 -o model.holrr\n"
        "  holrr fit X.npy Y.npy --model kernel-holrr --kernel rbf --cv 10 -o model.holrr\n"
        "  holrr fit climate.nc:indices climate.nc:t2m --time-series -o model.holrr\n"
        "  holrr fit table.csv --inputs 'x*' --outputs yield,purity -o model.holrr\n"
        "  holrr fit X.csv Y.csv --output-shape 12,5 -o model.holrr",
    )
    _add_data(fit)
    _add_fitting(fit.add_argument)
    _add_reading(fit, outputs=True)
    predict = _parser(
        commands,
        _predict,
        "Predict the outputs for new inputs with a saved model.",
        f"{FORMATS}\nIn a table each sample of Y is one row, flattened.",
    )
    predict.add_argument("X", help="file with the inputs")
    _add_predicting(predict.add_argument)
    _add_reading(predict, outputs=False)
    about = "Compare the predictions of a saved model with outputs that are known."
    score = _parser(commands, _score, about, FORMATS)
    _add_data(score)
    _add_reading(score, outputs=True)
    about = "Say what a saved model is: shapes, ranks, size, certificate, held-out error."
    _parser(commands, _info, about)
    about = "A first look: fit, compare with ridge, draw. Under a minute, no network."
    demo = _parser(commands, _demo, about)
    out = "folder for the files (default: %(default)s)"
    demo.add_argument("--out", type=Path, default=Path("holrr-demo"), metavar="DIR", help=out)


def _parser(
    commands: Any, run: Callable[[argparse.Namespace], None], about: str, epilog: str | None = None
) -> argparse.ArgumentParser:
    """The parser of a command, with what several of them have."""
    name = run.__name__.removeprefix("_")
    parser = commands.add_parser(name, description=about, epilog=epilog)
    parser.set_defaults(run=run)
    if run in (_predict, _score, _info):
        parser.add_argument("MODEL", type=Path, help="file that holrr fit wrote")
    return parser


def _add_fitting(add: Callable[..., Any]) -> None:
    add("-o", "--output", type=Path, required=True, metavar="MODEL", help="file for the model")
    kinds = f"{', '.join(choices.KINDS)} (default: %(default)s)"
    add("--model", choices=tuple(choices.KINDS), default="holrr", metavar="KIND", help=kinds)
    rank = (
        "one number, one for each mode such as 4,3,3 (input mode first), or a share of the energy "
        "such as 0.9; full where only --alpha is given"
    )
    add("--rank", type=choices.parse_rank, metavar="R", help=rank)
    several = "penalty, 1 where only --rank is given; several such as 0.1,1,10 are tried"
    add("--alpha", type=choices.parse_alphas, metavar="A", help=several)
    folds = "choose what --rank and --alpha leave open by K-fold cross-validation (5 by default)"
    add("--cv", type=int, nargs="?", const=5, metavar="K", help=folds)
    groups = "samples of a group are held out together: a column or coordinate of X or Y, or a file"
    add("--groups", metavar="NAME", help=groups)
    add("--time-series", action="store_true", help="hold out what is later than the training data")
    kernels = "rbf, poly, laplacian, ... for the kernel models (default: rbf)"
    add("--kernel", metavar="NAME", help=kernels)
    add("--gamma", type=float, metavar="G", help="width of the kernel")
    add("--no-intercept", action="store_true", help="fit no intercept")
    standardize = "divide every input by its standard deviation; the model keeps it in mind"
    add("--standardize", action="store_true", help=standardize)
    missing = "ignore: blank cells and NaN in Y are missing outputs, which the fit leaves out"
    add("--missing", type=choices.parse_missing, choices=("raise", "ignore"), help=missing)
    shape = "shape of one sample of Y, for formats that hold only matrices"
    add("--output-shape", type=choices.parse_shape, metavar="D1,D2", help=shape)
    shape = "shape of one sample of X, for formats that hold only matrices"
    add("--input-shape", type=choices.parse_shape, metavar="M1,M2", help=shape)
    ranks = (
        "how many directions to keep of each mode of X, such as 3,2, or all; searched for by "
        "cross-validation where X has modes"
    )
    add("--input-rank", type=choices.parse_input_rank, metavar="R1,R2", help=ranks)
    features = "drop: leave out inputs that are missing in every sample, such as land in a field"
    add("--missing-features", choices=("raise", "drop"), default="raise", help=features)


def _add_predicting(add: Callable[..., Any]) -> None:
    add("-o", "--output", type=Place, required=True, metavar="Y", help="file for the predictions")
    add("--std", action="store_true", help="the standard deviation of a new observation, too")
    interval = "bounds that hold a new observation with this probability, such as 0.9, too"
    add("--interval", type=choices.parse_coverage, metavar="C", help=interval)
    kind = "bounds by entry (default), pooled, or simultaneous: for all entries of a sample"
    add("--kind", choices=("entry", "pooled", "simultaneous"), help=kind)


def _add_data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("X", help="file with the inputs")
    parser.add_argument("Y", nargs="?", help="file with the outputs")


def _add_reading(parser: argparse.ArgumentParser, *, outputs: bool) -> None:
    """The options that say how files are read."""
    add = parser.add_argument_group("files").add_argument
    columns = "columns: names, patterns and ranges such as a,b*,c:f; all by default"
    add("--inputs", metavar="COLS", help=columns)
    if outputs:
        add("--outputs", metavar="COLS", help="the same, for the outputs")
        add("--sample-dim", metavar="DIM", help="dimension of the samples")
    add("--sep", type=choices.parse_sep, help="what is between the cells of a table")
    add("--decimal", choices=(".", ","), help="what is before decimals")
    lines = "number of lines with names, such as 1,2 where that of Y is another"
    add("--header", type=choices.parse_header, metavar="N", help=lines)
    add("--index-col", metavar="COL", help="column with the labels of the rows")


# ---------------------------------------------------------------- fit


def _fit(options: argparse.Namespace) -> None:
    choices.check_choices(options)
    check_output(Place(str(options.output)), [options.X, *filter(None, [options.Y])])
    X, Y, groups = read_pair(options)
    if isinstance(X, np.ndarray) and X.ndim < 2:
        raise CommandError(f"X must have samples and features; {options.X} is of {X.shape}")
    names, X = (X.columns, X.values) if isinstance(X, Plain) else (None, X)
    Y = Y.values if isinstance(Y, Plain) else Y
    options.sample_dim = sample_dimension(options.sample_dim, X, Y, None)
    kernel = choices.takes(options.model, "kernel")
    if kernel or options.time_series or options.missing == "ignore":
        X, Y = in_memory(X), in_memory(Y)
    estimator, scale = choices.make_estimator(options, X, Y), Standardizer(options.sample_dim)
    search = {"groups": groups} if choices.wants_search(options) else {}
    with _told("fit"):
        if options.standardize:
            X = scale.fit(X, Y).transform(X)
        estimator.fit(X, Y, **search)
    if names is not None:
        for model in (estimator, getattr(estimator, "best_estimator_", estimator)):
            model.feature_names_in_ = np.array(names, dtype=object)
    if search:
        estimator.set_params(verbose=False)  # whoever loads it may have no terminal
        for name in ("fold_mse", "std_mse"):  # the errors of every fold: most of the file
            estimator.cv_results_.pop(name, None)
    notes = {"n_samples": n_samples(X, options.sample_dim)}
    pipeline = Pipeline([("standardize", scale), ("model", estimator)])
    whole = pipeline if options.standardize else estimator
    with writing(options.output):
        save(whole, options.output, notes=notes)
    print(description(whole, notes))
    print(f"saved to {options.output}")


@contextmanager
def _told(command: str) -> Iterator[None]:
    """Warnings are lines on the standard error, and long computations of Dask show how far."""
    watched: Any = nullcontext()
    if "dask" in sys.modules and sys.stderr.isatty():
        from dask.diagnostics import ProgressBar

        watched = ProgressBar(minimum=_PATIENCE, out=sys.stderr)
    with watched, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for text in dict.fromkeys(" ".join(str(w.message).split()) for w in caught):
        print(f"holrr {command}: warning: {text}", file=sys.stderr)


# ---------------------------------------------------------------- predict, score and info


def _predict(options: argparse.Namespace) -> None:
    bounds = options.interval is not None
    if options.kind and not bounds:
        raise CommandError("--kind says which bounds, and needs --interval", EXIT_USAGE)
    for place in outputs_of(options.output, ["std"] * options.std + ["lower", "upper"] * bounds):
        check_output(place, [options.MODEL, options.X])
    held = _load(options.MODEL)
    model = held.model
    X = held.before(_unnamed(read_inputs(options, held.known), held.first))
    with _told("predict"):
        parts = _parts(options, model, X)
        write(options.output, parts, model, layouts(options)[0])
    n, shape = n_samples(parts[""], None), tuple(model.tucker_.shape[1:])
    print(f"{n} predictions of shape {shape} saved to {options.output}")
    if vars(model).get("_input_model") is not None:
        outside = diagnose_inputs(model, X, level=0.999).outside.sum()
        print(f"{outside} of {n} rows of X are unlike those of the fit (99.9 % limits of T2 and Q)")


def _parts(options: argparse.Namespace, model: Any, X: Any) -> dict[str, Any]:
    """Predictions, and what was asked for beside them."""
    parts = {}
    if options.std:
        parts[""], parts["std"] = model.predict(X, return_std=True)
    else:
        parts[""] = model.predict(X)
    if options.interval is not None:
        if not hasattr(model, "predict_interval"):
            raise CommandError(
                f"--interval needs a linear or kernel model that was chosen by cross-validation "
                f"(see --cv of holrr fit); {options.MODEL} holds a {type(model).__name__}"
            )
        bounds = model.predict_interval(X, options.interval, options.kind or "entry")
        parts["lower"], parts["upper"] = bounds
    return parts


def _unnamed(X: Any, first: Any) -> Any:
    """Numbers whose columns were compared, by a machine without pandas."""
    if not isinstance(X, Plain):
        return X
    for part in (first, getattr(first, "best_estimator_", first)):
        vars(part).pop("feature_names_in_", None)  # the array that it gets has none
    return X.values


def _score(options: argparse.Namespace) -> None:
    held = _load(options.MODEL)
    model = held.model
    X, Y, _ = read_pair(options, held.known)
    X, Y = held.before(_unnamed(X, held.first)), Y.values if isinstance(Y, Plain) else Y
    with _told("score"):
        print(of_errors(score_errors(model, X, Y), model._output_weight))


def _info(options: argparse.Namespace) -> None:
    print(description(*_loaded(options.MODEL)))


@dataclass(frozen=True)
class _Held:
    """What a file holds, by its parts."""

    model: Any  # fitted
    first: Any  # the step that gets the inputs, the model itself where there is no other
    known: Any  # has the names of the inputs, and what the model knows of the outputs
    before: Callable[[Any], Any]  # what is done to the inputs first


def _load(path: Path) -> _Held:
    whole, _ = _loaded(path)
    if not isinstance(whole, Pipeline):
        return _Held(whole, whole, whole, lambda X: X)
    if _takes_text(whole):
        raise CommandError(
            f"{path} holds a pipeline that takes text, and this command reads numbers; use it in "
            f"Python: holrr.load({path.name!r}).predict(table)"
        )
    model, before = whole[-1], whole[:-1].transform
    first = next(step for _, step in whole.steps if not isinstance(step, str))
    if isinstance(first, Standardizer):  # of `holrr fit`, which gives the names to the model
        return _Held(model, model, model, before)
    names = {"feature_names_in_": getattr(first, "feature_names_in_", ())}
    of_model = {name: getattr(model, name, None) for name in ("labels_", "missing")}
    return _Held(model, first, SimpleNamespace(**names, **of_model), before)


def _takes_text(step: Any) -> bool:
    """Whether a fitted step, or one inside of it, was fitted to text."""
    parts: Any = getattr(step, "steps", None) or getattr(step, "transformers_", ())
    learned = [*getattr(step, "categories_", ()), getattr(step, "statistics_", ())]
    is_text = any(isinstance(v, str) for values in learned for v in values)
    return is_text or any(_takes_text(part[1]) for part in parts)


def _loaded(path: Path) -> tuple[Any, dict[str, Any]]:
    """A fitted model, or a pipeline that ends with one, and the notes beside it."""
    check_file(path)
    whole, notes = load_with_notes(path)
    model = whole[-1] if isinstance(whole, Pipeline) else whole
    if not hasattr(model, "tucker_"):
        raise CommandError(f"{path} holds no fitted model but {type(model).__name__}")
    return whole, notes


# ---------------------------------------------------------------- demo


def _demo(options: argparse.Namespace) -> None:
    from ..demo import run_demo

    folder = options.out
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(
            f"the folder {folder} cannot be made: {error.strerror}", EXIT_OUTPUT
        ) from error
    if not os.access(folder, os.W_OK):
        raise CommandError(f"the folder {folder} cannot be written to", EXIT_OUTPUT)
    run_demo(folder)
