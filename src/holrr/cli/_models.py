"""The commands ``holrr fit``, ``holrr predict`` and ``holrr info``."""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from ._arrays import FORMATS, check_file, check_output, read_array, write_array, writing
from ._choices import KINDS, make_estimator, parse_alphas, parse_rank, parse_shape
from ._errors import EXIT_OK, CommandError

__all__ = ["add_fit", "add_info", "add_predict"]


def add_fit(commands: Any) -> argparse.ArgumentParser:
    """The parser of ``holrr fit``."""
    parser = commands.add_parser(
        "fit",
        description=(
            "Fit a model to inputs X (samples by features) and outputs Y (samples first, then any\n"
            "number of modes) and save it. Without --rank and --alpha both are chosen by 5-fold\n"
            "cross-validation over all ranks."
        ),
        epilog=(
            f"{FORMATS}\n\n"
            "examples\n"
            "  holrr fit X.npy Y.npy -o model.holrr\n"
            "  holrr fit X.npy Y.npy --rank 4,3,3 --alpha 0.1 -o model.holrr\n"
            "  holrr fit X.npy Y.npy --model kernel-holrr --kernel rbf --cv 10 -o model.holrr\n"
            "  holrr fit data.npz:X data.npz:Y --alpha 0.1,1,10 --cv 5 -o model.holrr\n"
            "  holrr fit X.csv Y.csv --output-shape 12,5 -o model.holrr"
        ),
    )
    parser.add_argument("X", help="file with the inputs")
    parser.add_argument("Y", help="file with the outputs")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="MODEL", help="file for the model"
    )
    parser.add_argument(
        "--model",
        choices=tuple(KINDS),
        default="holrr",
        metavar="KIND",
        help=f"{', '.join(KINDS)} (default: %(default)s)",
    )
    parser.add_argument(
        "--rank",
        type=parse_rank,
        metavar="R",
        help="one number, one for each mode such as 4,3,3 (input mode first), or a "
        "share of the energy such as 0.9; full rank by default",
    )
    parser.add_argument(
        "--alpha",
        type=parse_alphas,
        metavar="A",
        help="penalty, 1 by default; several such as 0.1,1,10 are tried by cross-validation",
    )
    parser.add_argument(
        "--cv",
        type=int,
        metavar="K",
        help="choose what --rank and --alpha leave open by K-fold cross-validation",
    )
    parser.add_argument(
        "--kernel",
        default=None,
        metavar="NAME",
        help="rbf, poly, laplacian, ... for the kernel models (default: rbf)",
    )
    parser.add_argument("--gamma", type=float, metavar="G", help="width of the kernel")
    parser.add_argument("--no-intercept", action="store_true", help="fit no intercept")
    parser.add_argument(
        "--output-shape",
        type=parse_shape,
        metavar="D1,D2",
        help="shape of one sample of Y, for formats that hold only matrices",
    )
    parser.set_defaults(run=_fit)
    return parser


def add_predict(commands: Any) -> argparse.ArgumentParser:
    """The parser of ``holrr predict``."""
    parser = commands.add_parser(
        "predict",
        description="Predict the outputs for new inputs with a saved model.",
        epilog=f"{FORMATS}\nIn .csv, .tsv and .parquet each sample of Y is one row, flattened.",
    )
    parser.add_argument("MODEL", type=Path, help="file that holrr fit wrote")
    parser.add_argument("X", help="file with the inputs")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="Y", help="file for the predictions"
    )
    parser.set_defaults(run=_predict)
    return parser


def add_info(commands: Any) -> argparse.ArgumentParser:
    """The parser of ``holrr info``."""
    parser = commands.add_parser(
        "info",
        description="Say what a saved model is: shapes, ranks, size, certificate, held-out error.",
    )
    parser.add_argument("MODEL", type=Path, help="file that holrr fit wrote")
    parser.set_defaults(run=_info)
    return parser


# ---------------------------------------------------------------- fit


def _fit(options: argparse.Namespace) -> int:
    from ..io import save

    check_output(options.output, [options.X, options.Y])
    (X, names), (Y, _) = read_array(options.X), read_array(options.Y)
    if Y.ndim < 1:
        raise CommandError(f"Y must have samples first; {options.Y} is a single number")
    if options.output_shape is not None:
        Y = _shaped(Y, options.output_shape, options.Y)
    if X.ndim != 2:
        raise CommandError(f"X must be a matrix, samples by features; {options.X} is of {X.shape}")
    estimator = make_estimator(options, X.shape, Y.shape)
    with _warnings_as_lines("fit"):
        estimator.fit(X, Y)
    model, notes = _final(estimator)
    notes["n_samples"] = len(X)
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
    with writing(options.output):
        save(model, options.output, notes=notes)
    print(_description(model, notes))
    print(f"saved to {options.output}")
    return EXIT_OK


def _shaped(Y: np.ndarray, shape: tuple[int, ...], name: str) -> np.ndarray:
    if math.prod(shape) * len(Y) != Y.size:
        raise CommandError(
            f"{name} has {Y.size // max(len(Y), 1)} numbers a sample; --output-shape "
            f"{','.join(map(str, shape))} wants {math.prod(shape)}"
        )
    return Y.reshape(len(Y), *shape)


def _final(estimator: Any) -> tuple[Any, dict[str, Any]]:
    """The model to save and what its cross-validation has found."""
    best = getattr(estimator, "best_estimator_", None)
    if best is None:
        return estimator, {}
    return best, {"cv_mse": -float(estimator.best_score_), "cv": str(estimator.cv)}


@contextmanager
def _warnings_as_lines(command: str) -> Iterator[None]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for text in dict.fromkeys(" ".join(str(w.message).split()) for w in caught):
        print(f"holrr {command}: warning: {text}", file=sys.stderr)


# ---------------------------------------------------------------- predict and info


def _predict(options: argparse.Namespace) -> int:
    check_output(options.output, [options.MODEL, options.X], array=True)
    model, _ = _load(options.MODEL)
    if not hasattr(model, "predict"):
        raise CommandError(f"{options.MODEL} holds no model but {type(model).__name__}")
    X, names = read_array(options.X)
    _check_names(names, model, options.X)
    with _warnings_as_lines("predict"):
        predicted = model.predict(X)
    write_array(options.output, np.asarray(predicted))
    print(f"{len(predicted)} predictions of shape {predicted.shape[1:]} saved to {options.output}")
    return EXIT_OK


def _check_names(names: list[str] | None, model: Any, source: str) -> None:
    """Columns in another order, or others, are not those of the fit."""
    known = getattr(model, "feature_names_in_", None)
    if names is None or known is None:
        return
    for number, (name, fitted) in enumerate(zip_longest(names, map(str, known)), 1):
        if name != fitted:
            raise CommandError(
                f"the columns of {source} are not those that the model was fitted with: column "
                f"{number} is {name!r}, and was {fitted!r}"
            )
    del model.feature_names_in_  # compared; the array that it gets has none


def _info(options: argparse.Namespace) -> int:
    model, notes = _load(options.MODEL)
    if not hasattr(model, "tucker_"):
        raise CommandError(f"{options.MODEL} holds no fitted model but {type(model).__name__}")
    print(_description(model, notes))
    return EXIT_OK


def _load(path: Path) -> tuple[Any, dict[str, Any]]:
    from ..io import load_with_notes

    check_file(path)
    return load_with_notes(path)


def _description(model: Any, notes: dict[str, Any]) -> str:
    width = max(len(name) for name, _ in _facts(model, notes))
    return "\n".join(f"{name:<{width}}  {value}" for name, value in _facts(model, notes))


def _facts(model: Any, notes: dict[str, Any]) -> list[tuple[str, str]]:
    """Name and value of all that there is to say about a model."""
    shape = tuple(model.tucker_.shape)
    facts = [("model", type(model).__name__)]
    facts += [("inputs", str(model.n_features_in_))]
    facts += [("outputs", _times(shape[1:]) or "one number")]
    if "n_samples" in notes:
        facts += [("samples", str(notes["n_samples"]))]
    facts += [("ranks", _times(model.tucker_.rank))]
    for name in ("alpha", "penalty", "beta", "kernel", "gamma"):
        value = getattr(model, name, None)
        if value is not None:
            facts += [(name, f"{value:g}" if isinstance(value, (int, float)) else str(value))]
    full, used = math.prod(shape), model.n_parameters_
    facts += [("parameters", f"{used:,} of {full:,} ({full / max(used, 1):.1f} times fewer)")]
    facts += _certificate(model)
    if "cv_mse" in notes:
        rmse = math.sqrt(max(notes["cv_mse"], 0.0))
        facts += [("held-out RMSE", f"{rmse:.6g} ({notes['cv']}-fold cross-validation)")]
    return facts


def _certificate(model: Any) -> list[tuple[str, str]]:
    objective = getattr(model, "objective_", None)
    bound = getattr(model, "lower_bound_", None)
    if objective is None or not bound:
        return []
    return [("certificate", f"objective at most {objective / bound:.4f} times the minimum")]


def _times(sizes: Any) -> str:
    return " x ".join(map(str, sizes))
