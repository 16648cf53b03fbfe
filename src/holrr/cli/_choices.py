"""The estimator that the options of ``holrr fit`` describe."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from ..data.arrays import comes_from
from ..data.unlabel import unlabel, unlabel_inputs, unlabel_outputs
from ._errors import EXIT_USAGE, CommandError
from ._files import Place
from ._parse import is_number
from ._read import read
from ._tables import Layout, Table, find_columns, some, title

__all__ = ["KINDS", "check_choices", "make_estimator", "takes", "wants_search"]

# Classes of holrr by the names of --model. The suffix CV gives the cross-validated class.
KINDS = {
    "holrr": "HOLRR",
    "lrr": "LRR",
    "rls": "RLS",
    "kernel-holrr": "KernelHOLRR",
    "kernel-lrr": "KernelLRR",
    "kernel-rls": "KernelRLS",
}
# Parameters that only some models have, and their command-line options.
_OPTIONAL = {
    "loss": "--loss",
    "input_rank": "--input-rank",
    "output_weight": "--output-weight",
    "blocks": "--blocks",
    "own": "--own",
}


def _class(model: str, suffix: str = "") -> Any:
    import holrr

    return getattr(holrr, KINDS[model] + suffix)


def takes(model: str, parameter: str) -> bool:
    """Return whether a model has a parameter."""
    return parameter in _class(model)._get_param_names()


def make_estimator(
    options: argparse.Namespace, X: Any, Y: Any, names: Sequence[Any] | None = None
) -> Any:
    """Return the estimator that the options of ``holrr fit`` describe, unfitted.

    Parameters
    ----------
    options : Namespace
        Parsed options of the command line.
    X, Y : arrays, tables or objects of xarray
        Data of the fit, with inputs after preprocessing.
    names : sequence, optional
        Names of the columns of X, if preprocessing has removed them.
    """
    model = options.model
    common: dict[str, Any] = {
        "fit_intercept": not options.no_intercept,
        "output_shape": options.output_shape,
        "input_shape": options.input_shape,
        "missing_features": options.missing_features,
        "sample_dim": options.sample_dim,
    }
    if options.input_rank is not None:
        common["input_rank"] = _input_rank(options.input_rank, X)
    if options.output_weight is not None:
        common["output_weight"] = _output_weight(options, Y)
    if options.blocks is not None:
        common["blocks"] = _blocks(options.blocks, *_columns_of(X, names, options.sample_dim))
    if options.own is not None:
        common["own"] = options.own
    if options.loss is not None:
        common["loss"] = options.loss
    if takes(model, "kernel"):
        common["kernel"] = options.kernel or "rbf"
    if options.missing is not None and takes(model, "missing"):
        common["missing"] = options.missing
    if not wants_search(options):
        return _class(model)(**_fixed(options), **common)
    space: dict[str, Any] = {"cv": _splitter(options), "verbose": _shows_progress()}
    if options.alpha is not None:
        space["alphas"] = options.alpha
    if options.own_alpha is not None:
        space["own_alphas"] = options.own_alpha
    if options.rank is not None:
        data = unlabel(_class(model)(**common), X, Y)
        # The input mode of a kernel model consists of the samples.
        inputs = data.X.shape[0 if takes(model, "kernel") else 1]
        space["ranks"] = [_one_rank(options.rank, model, (inputs, *data.y.shape[1:]))]
    if options.gamma is not None:  # only with a kernel, see `check_choices`
        space["gammas"] = [options.gamma]
    return _class(model, "CV")(**space, **common)


def wants_search(options: argparse.Namespace) -> bool:
    """Return whether the options leave a parameter to choose by cross-validation."""
    if options.cv is not None or options.groups is not None or options.time_series:
        return True
    return options.rank is None and (options.alpha is None or _has_several(options))


def _has_several(options: argparse.Namespace) -> bool:
    """Return whether --alpha has several candidates."""
    return isinstance(options.alpha, list) and len(options.alpha) > 1


def _splitter(options: argparse.Namespace) -> Any:
    from sklearn.model_selection import GroupKFold, TimeSeriesSplit

    n_folds = options.cv or 5
    if options.time_series:
        return TimeSeriesSplit(n_folds)
    return n_folds if options.groups is None else GroupKFold(n_folds)


# ---------------------------------------------------------------- combinations of options


def check_choices(options: argparse.Namespace) -> None:
    """Raise an error for options that cannot be combined, before any file is read."""
    model = options.model
    if options.rank is not None and not takes(model, "rank"):
        raise CommandError(f"--rank: the model {model} has no rank", EXIT_USAGE)
    if not takes(model, "kernel") and (options.kernel is not None or options.gamma is not None):
        option = "--gamma" if options.kernel is None else "--kernel"
        raise CommandError(f"{option}: the model {model} has no kernel", EXIT_USAGE)
    if options.cv is not None and options.cv < 2:
        raise CommandError(f"--cv must be at least 2; got {options.cv}", EXIT_USAGE)
    if options.missing == "ignore" and not takes(model, "missing"):
        raise _unable("--missing ignore", model, "missing")
    for parameter, option in _OPTIONAL.items():
        if getattr(options, parameter) is not None and not takes(model, parameter):
            raise _unable(option, model, parameter)
    if options.groups is not None and options.time_series:
        raise CommandError("--groups cannot be combined with --time-series", EXIT_USAGE)
    _check_share(options)
    if _has_several(options) and not wants_search(options):
        raise CommandError("several values of --alpha need --cv to choose among them", EXIT_USAGE)
    _check_penalties(options)


def _unable(option: str, model: str, parameter: str) -> CommandError:
    able = ", ".join(name for name in KINDS if takes(name, parameter))
    return CommandError(
        f"{option}: the model {model} does not support this option; {able} do", EXIT_USAGE
    )


def _check_penalties(options: argparse.Namespace) -> None:
    """Raise an error for invalid penalties of blocks or own inputs."""
    if isinstance(options.alpha, dict):
        if options.blocks is None:
            raise CommandError(
                "--alpha with a penalty for each block needs --blocks, which names the blocks",
                EXIT_USAGE,
            )
        if wants_search(options):
            raise CommandError(
                "--alpha with a penalty for each block leaves nothing to choose: leave out --cv, "
                "--groups and --time-series, or leave out --alpha to have the penalties found",
                EXIT_USAGE,
            )
    if options.own_alpha is None:
        return
    if options.own is None:
        raise CommandError("--own-alpha needs --own", EXIT_USAGE)
    if len(options.own_alpha) > 1 and not wants_search(options):
        raise CommandError(
            "several values of --own-alpha need --cv to choose among them", EXIT_USAGE
        )


def _check_share(options: argparse.Namespace) -> None:
    """Raise an error for a search with a rank that is a share of the energy.

    Such a rank depends on the penalty, so it cannot be a candidate of a search.
    """
    entries = options.rank if isinstance(options.rank, tuple) else (options.rank,)
    share = next((R for R in entries if isinstance(R, float)), None)
    asked = {
        "--cv": options.cv is not None,
        "--groups": options.groups is not None,
        "--time-series": options.time_series,
        "several values of --alpha": _has_several(options),
    }
    if share is not None and any(asked.values()):
        given = " and ".join(name for name, is_given in asked.items() if is_given)
        raise CommandError(
            f"--rank {share:g} is a share of the energy, and cross-validation ({given}) compares "
            f"whole ranks: leave out --rank to compare all ranks; give whole numbers, such as "
            f"--rank 4,3,3; or leave out {given}",
            EXIT_USAGE,
        )


# ---------------------------------------------------------------- parameters


def _fixed(options: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters of a model without cross-validation."""
    fixed = {name: getattr(options, name) for name in ("rank", "gamma")}
    if options.alpha is not None:
        fixed["alpha"] = options.alpha if isinstance(options.alpha, dict) else options.alpha[0]
    if options.own_alpha is not None:
        fixed["own_alpha"] = options.own_alpha[0]
    return {name: value for name, value in fixed.items() if takes(options.model, name)}


def _one_rank(rank: Any, model: str, shape: tuple[int, ...]) -> Any:
    """Return the only rank of a search over penalties, for modes of this shape."""
    if isinstance(rank, tuple):
        return rank
    capped = tuple(min(rank, d) for d in shape)
    # Low-rank regression reduces the input mode only.
    return capped[0] if model in ("lrr", "kernel-lrr") else capped


def _shows_progress() -> bool:
    """Return whether stderr is a terminal and the package for progress bars is installed."""
    return sys.stderr.isatty() and find_spec("rich") is not None


def _input_rank(given: Any, X: Any) -> Any:
    """Return the value of the parameter `input_rank`; None keeps all directions of an array."""
    if isinstance(given, dict):
        return {name: None if rank == "all" else rank for name, rank in given.items()}
    names = list(map(str, getattr(X, "data_vars", ())))
    if given != "all" and len(names) > 1:
        ranks = ",".join(map(str, given))
        raise CommandError(
            f"--input-rank {ranks}: X has the variables {some(names)}; give ranks by name, such as "
            f"--input-rank {names[0]}={ranks}"
        )
    return None if given == "all" else given


# ---------------------------------------------------------------- blocks of inputs


def _blocks(given: Sequence[Any], titles: list[str], columns: list[Any]) -> Any:
    """Return the value of the parameter `blocks`: a name, or a dict from names to columns.

    Parameters
    ----------
    given : sequence
        Values of --blocks.
    titles : list of str
        Names of the columns of X, which patterns are compared with.
    columns : list
        The same columns, in the form that estimators accept.
    """
    by_name = [entry for entry in given if isinstance(entry, str)]
    if by_name:
        if len(given) > 1:
            raise CommandError(
                f"--blocks {by_name[0]} cannot be combined with further --blocks", EXIT_USAGE
            )
        return by_name[0]
    patterns: dict[str, str] = {}
    for name, pattern in (pair for entry in given for pair in entry):
        if name in patterns:
            raise CommandError(f"--blocks names the block {name!r} twice", EXIT_USAGE)
        patterns[name] = pattern
    found = {
        name: find_columns(pattern, titles, f"--blocks {name}={pattern}")
        for name, pattern in patterns.items()
        if pattern != "*"
    }
    rest = [name for name, pattern in patterns.items() if pattern == "*"]
    if len(rest) > 1:
        raise CommandError(
            f"--blocks: only one block can have the pattern *, which selects all other columns; "
            f"got {rest[0]}=* and {rest[1]}=*",
            EXIT_USAGE,
        )
    taken = {j for places in found.values() for j in places}
    if rest:
        found[rest[0]] = [j for j in range(len(titles)) if j not in taken]
    return {name: [columns[j] for j in found[name]] for name in patterns}


def _columns_of(
    X: Any, names: Sequence[Any] | None, sample_dim: str | None
) -> tuple[list[str], list[Any]]:
    """Return the names of the columns of X for patterns, and the columns for estimators."""
    if names is not None:
        return [title(name) for name in names], list(range(len(names)))
    if hasattr(X, "data_vars"):
        return list(map(str, X.data_vars)), list(X.data_vars)
    if hasattr(X, "columns"):
        return [title(c) for c in X.columns], list(X.columns)
    if comes_from(X, "xarray"):
        (grid,) = unlabel_inputs(X, sample_dim or X.dims[0], None).grids
        entries = grid.entries()
        labels = list(map(str, grid.coordinate(0))) if len(grid.dims) == 1 else entries
        return labels, entries
    n = int(np.prod(X.shape[1:]))
    return [str(j) for j in range(n)], list(range(n))


# ---------------------------------------------------------------- weights of outputs


def _output_weight(options: argparse.Namespace, Y: Any) -> Any:
    """Return the value of the parameter `output_weight`."""
    text = options.output_weight
    if text.startswith("cos:"):
        return _cosine(text.removeprefix("cos:"), Y)
    if all(map(is_number, text.split(","))):
        values: Any = np.array([float(part) for part in text.split(",")])
    else:
        values = _from_file(options, Y)
    if comes_from(values, "xarray"):
        return values
    return _in_shape(values, options, Y)


def _cosine(dim: str, Y: Any) -> Any:
    """Return the cosine of a coordinate in degrees, which is proportional to the area of cells."""
    if not comes_from(Y, "xarray") or dim not in Y.dims:
        known = (
            f"its dimensions are {', '.join(map(str, Y.dims))}"
            if comes_from(Y, "xarray")
            else "the dimensions of arrays and tables have no names"
        )
        raise CommandError(f"--output-weight cos:{dim}: Y has no dimension {dim!r}; {known}")
    return np.maximum(np.cos(np.deg2rad(Y[dim])), 0.0)


def _from_file(options: argparse.Namespace, Y: Any) -> Any:
    """Read weights from a file: an array, a labelled variable or a table."""
    text = options.output_weight
    if not Place(text).path.exists():
        raise CommandError(
            f"--output-weight: {text!r} is neither a list of numbers, cos:DIM, nor a file"
        )
    found = read(text, Layout(options.sep, options.decimal))
    if not isinstance(found, Table):
        return found if comes_from(found, "xarray") else np.asarray(found)
    titles = [title(c) for c in found.columns]
    outputs = [title(c) for c in getattr(Y, "columns", ())]
    if found.named and outputs and set(outputs) <= set(titles):
        places = [titles.index(name) for name in outputs]
        return np.asarray(_values(found, [found.columns[j] for j in places]))
    if found.named and outputs:
        missing = [name for name in outputs if name not in titles]
        raise CommandError(
            f"--output-weight: {text} has no weights for {some(missing)}; its columns are "
            f"{some(titles)}"
        )
    return np.asarray(_values(found, found.columns))


def _values(table: Table, columns: Any) -> Any:
    picked = table.pick(list(columns))
    return getattr(picked, "values", picked)


def _in_shape(values: np.ndarray, options: argparse.Namespace, Y: Any) -> np.ndarray:
    """Return weights with the shape of the outputs."""
    levels = getattr(getattr(Y, "columns", None), "nlevels", 1) > 1 and options.output_shape is None
    shape = (len(Y.columns),) if levels else options.output_shape or _output_shape(options, Y)
    if values.size != int(np.prod(shape)):
        raise CommandError(
            f"--output-weight {options.output_weight} has {values.size} weights, and Y has "
            f"outputs of shape {tuple(shape)}"
        )
    if not levels:
        return values.reshape(shape)
    one = type(Y)(values.reshape(1, -1), columns=Y.columns)  # `unlabel_outputs` orders it by names
    return unlabel_outputs(one)[0][0]


def _output_shape(options: argparse.Namespace, Y: Any) -> tuple[int, ...]:
    """Return the shape of one sample of Y."""
    if hasattr(Y, "data_vars"):
        first = next(iter(Y.data_vars.values()))
        return (len(Y.data_vars), *_output_shape(options, first))
    if hasattr(Y, "dims"):
        dim = options.sample_dim or Y.dims[0]
        return tuple(size for name, size in Y.sizes.items() if name != dim)
    return tuple(Y.shape[1:])
