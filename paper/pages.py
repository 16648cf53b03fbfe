"""Parts of Markdown pages that are generated from results."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from .drawing.style import save_figure
from .tables import write_text

__all__ = ["claims", "copy_figure", "copy_small", "markdown", "replace_block"]


class Claim(Protocol):
    """Attributes of `paper.report.Check`."""

    @property
    def claim(self) -> str: ...
    @property
    def holds(self) -> bool: ...
    @property
    def found(self) -> str: ...


def replace_block(page: Path, name: str, text: str) -> None:
    """Replace the text between the two markers of a page.

    Raises
    ------
    ValueError
        If the page lacks one of the markers.
    """
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"{page} must have a line {begin} and, after it, a line {end}.")
    write_text(page, f"{before}{begin}\n\n{text}\n{end}{after}")


def copy_small(source: Path, target: Path, colours: int = 256) -> None:
    """Copy a picture with fewer colours, which makes the file smaller."""
    from PIL import Image

    with Image.open(source) as image:
        image.convert("RGB").quantize(colours, dither=Image.Dither.NONE).save(target, optimize=True)


def copy_figure(draw: Callable[[], Any], target: Path) -> None:
    """Write a figure as ``NAME.png`` and ``NAME_dark.png``, with 256 colours each.

    Parameters
    ----------
    draw : callable
        Makes a matplotlib Figure.
    target : Path
        Of the first file.
    """
    with tempfile.TemporaryDirectory() as folder:
        for path in save_figure(draw, Path(folder) / target.stem)[:2]:
            copy_small(path, target.with_name(path.name))


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table with labels in the first column and numbers in the others.

    Examples
    --------
    >>> print(markdown(["method", "error"], [["ridge", "0.5"]]), end="")
    | method | error |
    | --- | ---: |
    | ridge | 0.5 |
    """
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "".join(f"| {' | '.join(row)} |\n" for row in (header, rule, *rows))


def claims(checks: Iterable[Claim]) -> str:
    """Return the list of claims, with whether each held and the figures."""
    lines = []
    for check in checks:
        found = "; ".join(check.found.split("\n"))
        lines.append(f"- {'Held' if check.holds else '**Did not hold**'}: {check.claim}.")
        lines.append(f"  ({found})")
    return "\n".join(lines) + "\n"
