"""The command ``holrr fit``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from ..data.unlabel import sample_dimension
from ..io import save
from ..report.facts import describe, facts_of
from . import _choices as choices
from . import _parse as parse
from ._command import Command
from ._console import reporting
from ._data import fingerprint, in_memory, n_samples, read_pair
from ._errors import CommandError
from ._files import FORMATS, Place, check_output, writing
from ._options import add_data, add_reading
from ._steps import add_steps, check_steps, make_steps
from ._tables import Plain

__all__ = ["FIT"]


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_data(parser)
    add = parser.add_argument
    add("-o", "--output", type=Path, required=True, metavar="MODEL", help="file for the model")
    kinds = f"{', '.join(choices.KINDS)} (default: %(default)s)"
    add("--model", choices=tuple(choices.KINDS), default="holrr", metavar="KIND", help=kinds)
    rank = (
        "rank: one number, one for each mode such as 4,3,3 (input mode first), or a share of the "
        "energy such as 0.9; full rank if only --alpha is given"
    )
    add("--rank", type=parse.parse_rank, metavar="R", help=rank)
    alpha = (
        "penalty (1 if only --rank is given); several values such as 0.1,1,10 are compared; with "
        "--blocks, one value for each block such as lags=10,calendar=0.1"
    )
    add("--alpha", type=parse.parse_alphas, metavar="A", help=alpha)
    folds = "cross-validation with K folds (default: 5), to choose ranks and penalties not given"
    add("--cv", type=int, nargs="?", const=5, metavar="K", help=folds)
    groups = "hold out the samples of a group together: a column or coordinate of X or Y, or a file"
    add("--groups", metavar="NAME", help=groups)
    later = "hold out only samples that are later than the training samples"
    add("--time-series", action="store_true", help=later)
    kernels = "rbf, poly, laplacian, ... for the kernel models (default: rbf)"
    add("--kernel", metavar="NAME", help=kernels)
    add("--gamma", type=float, metavar="G", help="parameter gamma of the kernel")
    add("--no-intercept", action="store_true", help="fit a model without intercept")
    loss = "huber: a robust fit, in which outliers among the samples have small weights"
    add("--loss", choices=("squared", "huber"), help=loss)
    missing = "ignore: leave missing outputs (blank cells and NaN in Y) out of the fit"
    add("--missing", type=parse.parse_missing, choices=("raise", "ignore"), help=missing)
    features = "drop: leave out inputs that are missing in every sample, such as land in a field"
    add("--missing-features", choices=("raise", "drop"), default="raise", help=features)
    weight = (
        "weights of the outputs: numbers such as 1,2,0.5, a file, or cos:DIM for the cosine of a "
        "dimension in degrees"
    )
    add("--output-weight", metavar="W", help=weight)
    blocks = (
        "blocks of inputs with separate penalties: auto, prefix, a dimension, or columns such as "
        " 'nir=1100:2300;process=ph,temp'; may be given several times"
    )
    add("--blocks", type=parse.parse_blocks, action="append", metavar="B", help=blocks)
    own = (
        "modes along which the own inputs of an output have the label of the output: auto, names "
        "such as station,variable, or pairs of positions such as 1:0,2:1"
    )
    add("--own", type=parse.parse_own, metavar="MODES", help=own)
    penalty = "penalty of own inputs; several values such as 0.1,1,10 are compared"
    add("--own-alpha", type=parse.parse_penalties, metavar="A", help=penalty)
    ranks = (
        "number of directions to keep of each mode of X, such as 3,2, or all; for several arrays, "
        "such as 'field=3,2;index=all'; chosen by cross-validation by default if X has modes"
    )
    add("--input-rank", type=parse.parse_input_rank, metavar="R1,R2", help=ranks)
    shape = "shape of one sample of X, for formats that contain only matrices"
    add("--input-shape", type=parse.parse_shape, metavar="M1,M2", help=shape)
    shape = "shape of one sample of Y, for formats that contain only matrices"
    add("--output-shape", type=parse.parse_shape, metavar="D1,D2", help=shape)
    add_steps(parser)
    add_reading(parser, outputs=True)


def _run(options: argparse.Namespace) -> None:
    choices.check_choices(options)
    check_steps(options)
    check_output(Place(str(options.output)), [options.X, *filter(None, [options.Y])])
    X, Y, groups = read_pair(options)
    if isinstance(X, np.ndarray) and X.ndim < 2:
        raise CommandError(f"X must have samples and features; {options.X} has shape {X.shape}")
    options.sample_dim = sample_dimension(options.sample_dim, X, Y, None)
    steps = make_steps(options, X)
    names, X = (X.columns, X.values) if isinstance(X, Plain) else (None, X)
    Y = Y.values if isinstance(Y, Plain) else Y
    kernel = choices.takes(options.model, "kernel")
    if kernel or options.time_series or options.missing == "ignore" or options.loss == "huber":
        X, Y = in_memory(X), in_memory(Y)
    search = {"groups": groups} if choices.wants_search(options) else {}
    with reporting("fit"):
        inputs = X
        for _, step in steps:
            inputs = step.fit(inputs, Y).transform(inputs)
        estimator = choices.make_estimator(options, inputs, Y, names)
        estimator.fit(inputs, Y, **search)
    if search:
        estimator.set_params(verbose=False)  # a program that loads the model may have no terminal
    whole = Pipeline([*steps, ("model", estimator)]) if steps else estimator
    if names is not None:
        _name(whole, names)
    notes = {"n_samples": n_samples(X, options.sample_dim), "outputs": fingerprint(Y)}
    with writing(options.output):
        whole.notes_ = notes  # `info` and `report` read them
        save(whole, options.output)
    print(describe(facts_of(whole, notes)))
    print(f"saved to {options.output}")


def _name(whole: Any, names: Any) -> None:
    """Store the names of the columns in the steps and the model, as a fit to a DataFrame does."""
    parts = [step for _, step in whole.steps] if isinstance(whole, Pipeline) else [whole]
    for part in (*parts, getattr(parts[-1], "best_estimator_", parts[-1])):
        part.feature_names_in_ = np.array(list(map(str, names)), dtype=object)


FIT = Command(
    "fit",
    summary="fit a model to arrays or tables, and save it",
    description=(
        "Fit a model to inputs X (samples by features) and outputs Y (samples first, then any\n"
        "number of modes), and save it. Without --rank and --alpha both are chosen by 5-fold\n"
        "cross-validation over all ranks."
    ),
    add_arguments=_add_arguments,
    run=_run,
    epilog=(
        f"{FORMATS}\n\n"
        "examples\n"
        "  holrr fit X.npy Y.npy -o model.holrr\n"
        "  holrr fit X.npy Y.npy --rank 4,3,3 --alpha 0.1 -o model.holrr\n"
        "  holrr fit X.npy Y.npy --model kernel-holrr --kernel rbf --cv 10 -o model.holrr\n"
        "  holrr fit climate.nc:sst climate.nc:t2m --output-weight cos:lat -o model.holrr\n"
        "  holrr fit table.csv --inputs 'x*' --outputs yield,purity -o model.holrr\n"
        "  holrr fit spectra.csv --outputs fat,water --inputs 1100:2300 --snv \\\n"
        "      --derivative 1 --window 11 -o model.holrr\n"
        "  holrr fit X.csv Y.csv --output-shape 12,5 -o model.holrr"
    ),
)
