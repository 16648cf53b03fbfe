"""HTML elements of the report. Text that is passed as data is escaped."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from ..drawing.style import figure_bytes

__all__ = ["Cell", "cells", "details", "figure", "number", "paragraph", "settings", "table"]


class Cell(str):
    """HTML of a table cell, which is not escaped."""


def number(mean: float | None, error: float | None = None, digits: int = 4, *, bold=False) -> Cell:
    """Return a number with its standard error, or a dash without a number.

    Examples
    --------
    >>> number(0.61234, 0.0051)
    '0.6123 <small>± 0.0051</small>'
    """
    if mean is None or mean != mean:
        return Cell("–")
    text = f"{mean:.{digits}f}"
    if bold:
        text = f"<b>{text}</b>"
    if error is not None and error == error:
        text += f" <small>± {error:.{digits}f}</small>"
    return Cell(text)


def cells(values: Sequence[Any], tag: str = "td") -> str:
    """Return the cells of a table row."""
    return "".join(
        f"<{tag}>{value if isinstance(value, Cell) else escape(str(value))}</{tag}>"
        for value in values
    )


def table(header: Sequence[Any], rows: Sequence[Sequence[Any]], caption: str = "") -> str:
    """Return a table that scrolls sideways on narrow screens; the first column has labels."""
    head = f"<thead><tr>{cells(header, 'th')}</tr></thead>"
    body = "".join(f"<tr>{cells(row[:1], 'th')}{cells(row[1:])}</tr>" for row in rows)
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f'<div class="scroll"><table>{title}{head}<tbody>{body}</tbody></table></div>'


def figure(draw: Callable[[], Any], text: str, caption: str, *, raster: bool = False) -> str:
    """Return an embedded figure with variants for light and dark pages.

    Parameters
    ----------
    draw : callable
        Function that returns a matplotlib Figure.
    text : str
        Alternative text that describes the figure.
    caption : str
        Caption of the figure.
    raster : bool
        Whether to use PNG in place of SVG, which is smaller for pictures.
    """
    kind, mime = ("png", "image/png") if raster else ("svg", "image/svg+xml")
    light, dark = (
        f"data:{mime};base64,{base64.b64encode(figure_bytes(draw, theme, kind)).decode()}"
        for theme in ("light", "dark")
    )
    return (
        f'<figure class="{kind}"><div class="scroll"><picture>'
        f'<source media="(prefers-color-scheme: dark)" srcset="{dark}">'
        f'<img src="{light}" alt="{escape(text, quote=True)}"></picture></div>'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def paragraph(text: str) -> str:
    """Return a paragraph of text."""
    return f"<p>{escape(text)}</p>"


def details(summary: str, content: str) -> str:
    """Return content that the reader can unfold."""
    return f"<details><summary>{escape(summary)}</summary>{content}</details>"


def settings(config: dict[str, Any]) -> str:
    """Return the settings of an experiment, to unfold."""
    rows = [(name, _plain(value)) for name, value in config.items()]
    return details("Settings", table(("setting", "value"), rows))


def _plain(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return ", ".join(_plain(v) for v in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
