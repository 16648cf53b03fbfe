"""From the words of the command line to an estimator."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from ..data.unlabel import unlabel
from ._errors import EXIT_USAGE, CommandError

__all__ = ["KINDS", "check_choices", "make_estimator", "parse_alphas", "parse_coverage"]
__all__ += [
    "parse_header",
    "parse_input_rank",
    "parse_missing",
    "parse_rank",
    "parse_sep",
    "parse_shape",
    "takes",
]
__all__ += ["wants_search"]


# Names in `holrr` of the models that can be asked for; with CV each is its cross-validated form.
KINDS = {
    "holrr": "HOLRR",
    "lrr": "LRR",
    "rls": "RLS",
    "kernel-holrr": "KernelHOLRR",
    "kernel-lrr": "KernelLRR",
    "kernel-rls": "KernelRLS",
    "trace-norm": "TraceNormRegression",
    "mlmt-nc": "MLMTNC",
}


def _class(model: str, suffix: str = "") -> Any:
    import holrr

    return getattr(holrr, KINDS[model] + suffix)


def takes(model: str, parameter: str) -> bool:
    """Whether a model has a parameter of this name."""
    return parameter in _class(model)._get_param_names()


def make_estimator(options: argparse.Namespace, X: Any, Y: Any) -> Any:
    """The estimator that the options of ``holrr fit`` describe, not fitted yet."""
    model = options.model
    common: dict[str, Any] = {
        "fit_intercept": not options.no_intercept,
        "output_shape": options.output_shape,
        "input_shape": options.input_shape,
        "missing_features": options.missing_features,
        "sample_dim": options.sample_dim,
    }
    if options.input_rank is not None:
        common["input_rank"] = None if options.input_rank == "all" else options.input_rank
    if takes(model, "kernel"):
        common["kernel"] = options.kernel or "rbf"
    if options.missing is not None and takes(model, "missing"):
        common["missing"] = options.missing
    if not wants_search(options):
        return _class(model)(**_fixed(options), **common)
    space: dict[str, Any] = {"cv": _splitter(options), "verbose": _shows_progress()}
    if options.alpha is not None:
        space[_class(model, "CV")._penalties] = options.alpha
    if options.rank is not None:
        data = unlabel(_class(model)(**common), X, Y)
        inputs = data.X.shape[0 if takes(model, "kernel") else 1]  # a kernel has samples as inputs
        space["ranks"] = [_one_rank(options.rank, model, (inputs, *data.y.shape[1:]))]
    if options.gamma is not None:  # of a kernel, see `check_choices`
        space["gammas"] = [options.gamma]
    return _class(model, "CV")(**space, **common)


def wants_search(options: argparse.Namespace) -> bool:
    """Whether something is left to be chosen by cross-validation."""
    if options.cv is not None or options.groups is not None or options.time_series:
        return True
    return options.rank is None and (options.alpha is None or len(options.alpha) > 1)


def _splitter(options: argparse.Namespace) -> Any:
    from sklearn.model_selection import GroupKFold, TimeSeriesSplit

    n_folds = options.cv or 5
    if options.time_series:
        return TimeSeriesSplit(n_folds)
    return n_folds if options.groups is None else GroupKFold(n_folds)


def check_choices(options: argparse.Namespace) -> None:
    """Refuse what does not go together, before anything is read."""
    model = options.model
    if options.rank is not None and not takes(model, "rank"):
        raise CommandError(f"--rank: the model {model} has no rank", EXIT_USAGE)
    if not takes(model, "kernel") and (options.kernel is not None or options.gamma is not None):
        raise CommandError(f"the model {model} has no kernel", EXIT_USAGE)
    if options.cv is not None and options.cv < 2:
        raise CommandError(f"--cv must be at least 2; got {options.cv}", EXIT_USAGE)
    if options.missing == "ignore" and not takes(model, "missing"):
        able = ", ".join(name for name in KINDS if takes(name, "missing"))
        raise CommandError(f"--missing ignore: {model} cannot; {able} can", EXIT_USAGE)
    if options.input_rank is not None and not takes(model, "input_rank"):
        able = ", ".join(name for name in KINDS if takes(name, "input_rank"))
        raise CommandError(f"--input-rank: {model} cannot; {able} can", EXIT_USAGE)
    if options.groups is not None and options.time_series:
        raise CommandError("--groups does not go with --time-series", EXIT_USAGE)
    _check_share(options)
    several = options.alpha is not None and len(options.alpha) > 1
    if several and not wants_search(options):
        raise CommandError("several values of --alpha need --cv to choose among them", EXIT_USAGE)


def _check_share(options: argparse.Namespace) -> None:
    """A rank that is a share of the energy depends on the penalty, and is not searched over."""
    entries = options.rank if isinstance(options.rank, tuple) else (options.rank,)
    share = next((R for R in entries if isinstance(R, float)), None)
    asked = {
        "--cv": options.cv is not None,
        "--groups": options.groups is not None,
        "--time-series": options.time_series,
        "several values of --alpha": options.alpha is not None and len(options.alpha) > 1,
    }
    if share is not None and any(asked.values()):
        given = " and ".join(name for name, is_given in asked.items() if is_given)
        raise CommandError(
            f"--rank {share:g} is a share of the energy, and cross-validation ({given}) compares "
            f"whole ranks: leave out --rank, and all ranks are tried; give whole numbers, such as "
            f"--rank 4,3,3; or leave out {given}",
            EXIT_USAGE,
        )


def _fixed(options: argparse.Namespace) -> dict[str, Any]:
    """The parameters of a model that leaves nothing open."""
    fixed = {name: getattr(options, name) for name in ("rank", "gamma")}
    if options.alpha is not None:
        penalty = next(name for name in ("penalty", "beta", "alpha") if takes(options.model, name))
        fixed[penalty] = options.alpha[0]
    return {name: value for name, value in fixed.items() if takes(options.model, name)}


def _one_rank(rank: Any, model: str, shape: tuple[int, ...]) -> Any:
    """The only candidate of a search over the penalties alone, for modes of this shape."""
    if isinstance(rank, tuple):
        return rank
    capped = tuple(min(rank, d) for d in shape)
    return capped[0] if model in ("lrr", "kernel-lrr") else capped  # which cut the inputs only


def _shows_progress() -> bool:
    """Whether somebody watches, and there is what draws the progress."""
    return sys.stderr.isatty() and find_spec("rich") is not None


# ---------------------------------------------------------------- words to values


def parse_rank(text: str) -> int | float | tuple[int | float, ...]:
    """A rank, or one for each mode."""
    parts = tuple(_rank_entry(part) for part in text.split(","))
    return parts[0] if len(parts) == 1 else parts


def _rank_entry(text: str) -> int | float:
    what = "a rank: a whole number of at least 1, or a share between 0 and 1"
    value = _number(text, what, float, lambda v: 0 < v < 1 or (v >= 1 and v.is_integer()))
    return value if value < 1 else int(value)


def parse_alphas(text: str) -> list[float]:
    """One penalty or several."""
    good = lambda v: 0 <= v < math.inf  # noqa: E731
    return [_number(part, "a penalty", float, good) for part in text.split(",")]


def parse_coverage(text: str) -> float:
    """A probability."""
    return _number(text, "a number between 0 and 1", float, lambda v: 0 < v < 1)


def parse_input_rank(text: str) -> str | tuple[int, ...]:
    """One rank for each mode of the inputs, or "all" to keep them whole."""
    if text == "all":
        return text
    what = "a rank: a whole number of at least 1, or all"
    return tuple(_number(part, what, int, lambda v: v >= 1) for part in text.split(","))


def parse_shape(text: str) -> tuple[int, ...]:
    """The shape of one sample."""
    return tuple(_number(part, "a size", int, lambda v: v >= 1) for part in text.split(","))


def parse_header(text: str) -> list[int]:
    """Numbers of lines with names, of the inputs and of the outputs."""
    what = "a number of lines with names"
    return [_number(part, what, int, lambda v: 0 <= v <= 5) for part in text.split(",")]


def parse_missing(text: str) -> str:
    """How missing outputs are treated; "fill" is the old name of "ignore"."""
    if text == "fill":
        print("holrr: note: --missing fill is now called --missing ignore", file=sys.stderr)
    return "ignore" if text == "fill" else text


def parse_sep(text: str) -> str:
    """What is between the cells of a table."""
    sep = {"tab": "\t", "\\t": "\t"}.get(text, text)
    if len(sep) != 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a single character, nor tab")
    return sep


def _number(text: str, what: str, kind: Callable[[str], Any], good: Callable[[Any], bool]) -> Any:
    try:
        value = kind(text)
    except ValueError:
        value = None
    if value is None or not good(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
    return value
