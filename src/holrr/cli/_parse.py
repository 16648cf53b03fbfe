"""Parsers of command-line values: numbers, ranks, shapes, ranges, lists by name."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable
from typing import Any

from ._console import note

__all__ = ["is_number", "parse_alphas", "parse_blocks", "parse_count", "parse_coverage"]
__all__ += ["parse_header", "parse_input_rank", "parse_missing", "parse_own", "parse_penalties"]
__all__ += ["parse_rank", "parse_ranges", "parse_sep", "parse_shape"]


def parse_rank(text: str) -> int | float | tuple[int | float, ...]:
    """Parse a rank, or one rank for each mode."""
    parts = tuple(_rank_entry(part) for part in text.split(","))
    return parts[0] if len(parts) == 1 else parts


def _rank_entry(text: str) -> int | float:
    what = "a rank: a whole number of at least 1, or a share between 0 and 1"
    value = _number(text, what, float, lambda v: 0 < v < 1 or (v >= 1 and v.is_integer()))
    return value if value < 1 else int(value)


def parse_alphas(text: str) -> list[float] | dict[str, float]:
    """Parse one or several penalties, or one for each block: ``lags=10,calendar=0.1``."""
    if "=" not in text:
        return parse_penalties(text)
    good = lambda v: v >= 0  # noqa: E731
    named = (part.partition("=") for part in text.split(","))
    return {name.strip(): _number(value, "a penalty", float, good) for name, _, value in named}


def parse_penalties(text: str) -> list[float]:
    """Parse one or several penalties."""
    good = lambda v: 0 <= v < math.inf  # noqa: E731
    return [_number(part, "a penalty", float, good) for part in text.split(",")]


def parse_coverage(text: str) -> float:
    """Parse a probability between 0 and 1."""
    return _number(text, "a number between 0 and 1", float, lambda v: 0 < v < 1)


def parse_count(text: str) -> int:
    """Parse a whole number of at least 0."""
    return _number(text, "a whole number of at least 0", int, lambda v: v >= 0)


def parse_input_rank(text: str) -> Any:
    """Parse ranks of the modes of X, "all" for all directions, or a dict for several arrays."""
    if "=" not in text:
        return _block_rank(text)
    return {name: _block_rank(value) for name, value in _by_name(text)}


def _block_rank(text: str) -> str | tuple[int, ...]:
    if text == "all":
        return text
    what = "a rank: a whole number of at least 1, or all"
    return tuple(_number(part, what, int, lambda v: v >= 1) for part in text.split(","))


def parse_shape(text: str) -> tuple[int, ...]:
    """Parse the shape of one sample."""
    return tuple(_number(part, "a size", int, lambda v: v >= 1) for part in text.split(","))


def parse_header(text: str) -> list[int]:
    """Parse the numbers of header lines of the inputs and of the outputs."""
    what = "a number of header lines"
    return [_number(part, what, int, lambda v: 0 <= v <= 5) for part in text.split(",")]


def parse_missing(text: str) -> str:
    """Parse the treatment of missing outputs; "fill" is the old name of "ignore"."""
    if text == "fill":
        note("--missing fill is now called --missing ignore")
    return "ignore" if text == "fill" else text


def parse_sep(text: str) -> str:
    """Parse the separator of the cells of a table."""
    sep = {"tab": "\t", "\\t": "\t"}.get(text, text)
    if len(sep) != 1:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a single character nor tab")
    return sep


def parse_ranges(text: str) -> list[tuple[float | None, float | None]]:
    """Parse ranges of coordinates, such as ``1100:1400,1500:``. A missing end is open."""
    found = []
    for part in text.split(","):
        first, colon, last = part.partition(":")
        if not colon or not (first or last):
            raise argparse.ArgumentTypeError(f"{part!r} is not a range such as 1100:2300")
        what = "an end of a range"
        ends = [
            None if end == "" else _number(end, what, float, math.isfinite) for end in (first, last)
        ]
        found.append((ends[0], ends[1]))
    return found


def parse_blocks(text: str) -> Any:
    """Parse ``auto``, ``prefix``, the name of a mode, or a list of block names and columns."""
    if "=" not in text:
        return text
    return _by_name(text)


def parse_own(text: str) -> Any:
    """Parse ``auto``, names of modes, or pairs of positions such as ``1:0,2:1``."""
    parts = text.split(",")
    if all(re.fullmatch(r"\d+:\d+", part) for part in parts):
        return [tuple(map(int, part.split(":"))) for part in parts]
    if not all(parts):
        raise argparse.ArgumentTypeError(f"{text!r} is not auto, names of modes or pairs like 1:0")
    return parts[0] if len(parts) == 1 else parts


def _by_name(text: str) -> list[tuple[str, str]]:
    """Parse pairs of a name and a value from ``a=...;b=...``."""
    found = []
    for part in text.split(";"):
        name, equals, value = part.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise argparse.ArgumentTypeError(f"{part!r} is not of the form NAME=VALUE")
        found.append((name.strip(), value.strip()))
    return found


def is_number(text: str) -> bool:
    """Return whether text is a finite number."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _number(text: str, what: str, kind: Callable[[str], Any], good: Callable[[Any], bool]) -> Any:
    try:
        value = kind(text)
    except ValueError:
        value = None
    if value is None or not good(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
    return value
