"""Preprocessing of inputs: the options of ``holrr fit`` as steps of a pipeline.

The steps are applied in the order in which their options are given.
"""

from __future__ import annotations

import argparse
from typing import Any

from ..data import RangeSelector, SavitzkyGolay, Standardizer, StandardNormalVariate
from . import _parse as parse
from ._errors import EXIT_MISSING, EXIT_USAGE, CommandError
from ._tables import Plain, some, title

__all__ = ["add_steps", "check_steps", "make_steps", "wants_numbers"]

_WINDOW, _POLYORDER = 15, 2


class _AddStep(argparse.Action):
    """Action that appends an option and its value to ``options.steps``."""

    def __call__(self, parser, namespace, values, option_string=None):
        kind = (option_string or self.option_strings[0]).removeprefix("--")
        value = True if self.nargs == 0 else values
        namespace.steps = [*(namespace.steps or []), (kind, value)]


def add_steps(parser: argparse.ArgumentParser) -> None:
    """Add the options for preprocessing."""
    about = "steps that are saved with the model, and applied in the order of these options"
    add = parser.add_argument_group("preprocessing of the inputs", about).add_argument
    parser.set_defaults(steps=None)

    def step(name: str, text: str, **more: Any) -> None:
        add(name, action=_AddStep, dest="steps", default=argparse.SUPPRESS, help=text, **more)

    text = "keep the inputs whose coordinates lie in a range, such as 1100:2300 or 1100:1400,1500:"
    step("--range", text, type=parse.parse_ranges, metavar="A:B")
    text = "standard normal variate: subtract the mean of each spectrum, divide by its deviation"
    step("--snv", text, nargs=0)
    text = "derivative of order D along the spectrum by a Savitzky-Golay filter; 0 smooths"
    step("--derivative", text, type=parse.parse_count, metavar="D")
    text = "subtract the mean of each input, and divide by its standard deviation"
    step("--standardize", text, nargs=0)
    text = f"window of --derivative, an odd number of inputs (default: {_WINDOW})"
    add("--window", type=parse.parse_count, metavar="W", help=text)
    text = f"degree of the polynomial of --derivative (default: {_POLYORDER})"
    add("--polyorder", type=parse.parse_count, metavar="P", help=text)
    text = "variable, dimension, or variable:dimension of X along which spectra lie"
    add("--spectra", metavar="NAME", help=text)


def check_steps(options: argparse.Namespace) -> None:
    """Raise an error for options that need other options which are not given."""
    kinds = [kind for kind, _ in options.steps or []]
    for option, value in (("--window", options.window), ("--polyorder", options.polyorder)):
        if value is not None and "derivative" not in kinds:
            raise CommandError(f"{option} needs --derivative", EXIT_USAGE)
    if options.spectra is not None and not {"range", "snv", "derivative"} & set(kinds):
        raise CommandError("--spectra needs --range, --snv or --derivative", EXIT_USAGE)
    window, polyorder = _filter(options)
    orders = [value for kind, value in options.steps or [] if kind == "derivative"]
    if orders and (window % 2 == 0 or window <= polyorder):
        raise CommandError(
            f"--window must be odd and larger than --polyorder; got --window {window} and "
            f"--polyorder {polyorder}",
            EXIT_USAGE,
        )
    if orders and max(orders) > polyorder:
        raise CommandError(
            f"--derivative must be at most --polyorder; got --derivative {max(orders)} and "
            f"--polyorder {polyorder}",
            EXIT_USAGE,
        )


def wants_numbers(options: argparse.Namespace) -> bool:
    """Return whether --range selects columns whose names are numbers."""
    ranges = [part.split(":") for part in (getattr(options, "inputs", None) or "").split(",")]
    by_name = any(len(ends) == 2 and all(map(parse.is_number, ends)) for ends in ranges)
    return by_name or any(kind == "range" for kind, _ in getattr(options, "steps", None) or [])


def make_steps(options: argparse.Namespace, X: Any) -> list[tuple[str, Any]]:
    """Return names and unfitted steps that the options of ``holrr fit`` describe.

    Parameters
    ----------
    options : Namespace
    X : array, table or object of xarray
        Inputs as they were read.
    """
    where, (window, polyorder) = _spectra(options, X), _filter(options)
    found: list[tuple[str, Any]] = []
    for kind, value in options.steps or []:
        step: Any
        if kind == "standardize":
            step = Standardizer(options.sample_dim)
        elif kind == "snv":
            step = StandardNormalVariate(**where)
        elif kind == "derivative":
            step = SavitzkyGolay(window, polyorder, value, **where)
        else:
            _check_names(X)
            step = RangeSelector(value, **where)
        taken = sum(name.rstrip("0123456789") == kind for name, _ in found)
        found.append((f"{kind}{taken + 1}" if taken else kind, step))
    return found


def _filter(options: argparse.Namespace) -> tuple[int, int]:
    """Return the window and the degree of the Savitzky-Golay filter."""
    window = _WINDOW if options.window is None else options.window
    return window, _POLYORDER if options.polyorder is None else options.polyorder


def _spectra(options: argparse.Namespace, X: Any) -> dict[str, Any]:
    """Return the parameters of steps that specify the variable and dimension of spectra."""
    found: dict[str, Any] = {"dim": None, "blocks": None, "sample_dim": options.sample_dim}
    if options.spectra is None:
        return found
    first, colon, second = options.spectra.partition(":")
    if colon:
        return {**found, "blocks": first or None, "dim": second or None}
    return {**found, "blocks" if hasattr(X, "data_vars") else "dim": first}


def _check_names(X: Any) -> None:
    """Raise an error if --range is used for a table whose column names are not numbers."""
    if isinstance(X, Plain):
        raise CommandError(
            "--range needs the names of the columns, which need pandas: pip install "
            '"holrr[table]". Without pandas, select columns with --inputs',
            EXIT_MISSING,
        )
    columns = getattr(X, "columns", None)
    if columns is None or getattr(columns, "nlevels", 1) > 1:
        return
    others = [title(c) for c in columns if not parse.is_number(title(c))]
    if others:
        raise CommandError(
            f"--range needs columns whose names are numbers, and these are not: {some(others)}. "
            f"Leave them out with --inputs"
        )
