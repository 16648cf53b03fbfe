"""Figures, colours, ticks and names of modes for all displays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..data.labels import mode_names
from ..extras import need

__all__ = ["ACCENT", "DARK", "MAIN", "MUTED", "check_mode_names", "color_bar"]
__all__ += ["date_ticks", "focus", "is_ordered", "marks", "name_ticks", "names_of", "new_figure"]
__all__ += ["outline", "panels_of_maps", "plain_log", "rank_axis", "short", "signed_map", "tidy"]

# Colours that differ for colour-blind readers and in grey print.
MAIN, ACCENT, MUTED, DARK = "#1f5a99", "#d1600e", "#b9bec6", "#6b7280"
_MANY_RANKS = 30


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure, with its size in inches."""
    plt = need("matplotlib.pyplot", "displays need matplotlib", "plot")
    return plt.figure(figsize=(width, height), layout="constrained")


def short(value: Any, most: int = 18) -> str:
    """Shorten a long name in its middle, since many names differ only in the last letters."""
    text, tail = str(value), most // 3
    return text if len(text) <= most else f"{text[: most - tail - 1]}…{text[-tail:]}"


def names_of(model: Any, given: Sequence[str] | None, n_modes: int) -> list[str]:
    """Return names of the first modes of a fitted model: the given ones, or those of labels."""
    if given is None and getattr(getattr(model, "labels_", None), "outputs", None) is not None:
        return list(mode_names(model)[:n_modes])
    return check_mode_names(given, n_modes)


def check_mode_names(names: Sequence[str] | None, n_modes: int) -> list[str]:
    """Return a name for each mode, input mode first: the given names or default ones."""
    if names is None:
        outputs = [f"output mode {i}" for i in range(1, n_modes)]
        return ["input mode", *(["output mode"] if n_modes == 2 else outputs)][:n_modes]
    if isinstance(names, str) or len(names) != n_modes:
        raise ValueError(
            f"mode_names must be a list of {n_modes} names, input mode first; got {names!r}."
        )
    return list(names)


def is_ordered(coordinates: np.ndarray) -> bool:
    """Return whether coordinates are numbers or dates; names have no order."""
    return coordinates.dtype.kind in "iufM"


def tidy(ax: Any) -> None:
    """Remove the top and right frame, and make ticks small."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.yaxis.set_ticks_position("left")
    ax.tick_params(labelsize=8)


def outline(ax: Any, inside: np.ndarray, first: float, color: str) -> None:
    """Draw a line around the cells of a mask, at distances of one from `first` on both axes."""
    width = min(1.2, max(0.2, 50 / max(inside.shape)))  # narrower than the cells
    i, j = np.nonzero(inside[1:] != inside[:-1])
    ax.hlines(i + first + 1, j + first, j + first + 1, color=color, lw=width)
    i, j = np.nonzero(inside[:, 1:] != inside[:, :-1])
    ax.vlines(j + first + 1, i + first, i + first + 1, color=color, lw=width)


def name_ticks(ax: Any, axis: Any, coordinates: np.ndarray, shift: float = 0.0) -> None:
    """Label ticks at the positions of entries with coordinates, as many as fit."""
    names = [f"{c:.4g}" if coordinates.dtype.kind == "f" else short(c) for c in coordinates]
    if coordinates.dtype.kind == "M":
        names = list(np.datetime_as_string(coordinates.astype("datetime64[D]")))
    box, (width, height) = ax.get_position(), ax.figure.get_size_inches()
    along_x = axis.axis_name == "x"
    room = box.width * width if along_x else box.height * height  # in inches
    letters = 0.085 * max(map(len, names)) + 0.12
    turned = along_x and coordinates.dtype.kind not in "iuf" and len(names) * letters > room
    each = letters if along_x and not turned else 0.28 if turned else 0.2
    places = np.arange(0, len(names), max(1, math.ceil(len(names) * each / room)))
    options = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if turned else {}
    axis.set_ticks(places + shift, [names[i] for i in places], **options)


def signed_map(ax: Any, values: np.ndarray, y: np.ndarray, x: np.ndarray, **options: Any) -> Any:
    """Draw a map of positive and negative values over coordinates; missing values are grey."""
    image = ax.pcolormesh(values, **options)
    ax.set_facecolor(MUTED)
    name_ticks(ax, ax.xaxis, x, 0.5)
    name_ticks(ax, ax.yaxis, y, 0.5)
    from_the_top = not is_ordered(y) or y[0] > y[-1]  # so that north is at the top
    if from_the_top and not ax.yaxis_inverted():
        ax.invert_yaxis()
    return image


def panels_of_maps(
    panels: np.ndarray,
    titles: Sequence[str],
    names: Sequence[str],
    coordinates: Sequence[np.ndarray],
    label: str,
    fig: Any = None,
    columns: int = 4,
) -> tuple[Any, np.ndarray]:
    """Draw maps side by side, with one colour scale within -1 and 1.

    Parameters
    ----------
    panels : array of shape (n_panels, n_rows, n_columns)
    titles : sequence of n_panels strings
    names : pair of strings
        Names of the modes along the rows and the columns of a map.
    coordinates : pair of arrays
        Coordinates of these modes.
    label : str
        Label of the colour bar.
    fig : matplotlib Figure or SubFigure, optional
        The figure to draw in.
    columns : int
        Largest number of maps side by side.

    Returns
    -------
    figure, axes
        Axes as an array of shape (n_panels,).
    """
    columns = min(len(panels), columns)
    rows = -(-len(panels) // columns)
    wide = 4.8 if columns == 1 else 2.4 * columns + 0.9
    figure = fig or new_figure(wide, 3.6 if len(panels) == 1 else 2.3 * rows + 0.4)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    axes = grid.ravel()[: len(panels)]
    for ax in grid.ravel()[len(panels) :]:
        ax.set_visible(False)
    top = min(1.0, float(np.nanmax(np.abs(panels), initial=0.0))) or 1.0
    high = 24 if rows == 1 else 14  # letters next to a map
    for k, (ax, panel, title) in enumerate(zip(axes, panels, titles, strict=True)):
        image = signed_map(ax, panel, *coordinates, cmap="RdBu", vmin=-top, vmax=top)
        ax.tick_params(labelsize=7)
        ax.set_title(title, fontsize=8)
        ax.set_ylabel(short(names[0], high) if k % columns == 0 else "", fontsize=9)
        last = k + columns >= len(panels)
        ax.set_xlabel(short(names[1], 24) if last else "", fontsize=9)
        ax.tick_params(labelbottom=last, labelleft=k % columns == 0)
    extend = "min" if np.nanmin(panels, initial=0.0) < -top else "neither"
    color_bar(image, list(axes), label, extend=extend, shrink=0.8)
    return figure, axes


def color_bar(image: Any, axes: Any, label: str | None = None, **options: Any) -> None:
    """Draw a colour bar next to one or several axes."""
    bar = image.figure.colorbar(image, ax=axes, pad=0.02, **options)
    bar.set_label(label, fontsize=8)
    bar.ax.tick_params(labelsize=7)


def date_ticks(axis: Any, most: int) -> None:
    """Set ticks for a few dates in a concise format."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    axis.set_major_locator(AutoDateLocator(maxticks=most))
    axis.set_major_formatter(ConciseDateFormatter(axis.get_major_locator()))
    axis.get_offset_text().set_fontsize(7)


def plain_log(axis: Any, steps: Sequence[float]) -> None:
    """Set a log scale with plain numbers, at these multiples of the powers of ten."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    getattr(axis.axes, f"set_{axis.axis_name}scale")("log")
    axis.set_major_locator(LogLocator(subs=steps))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def rank_axis(axis: Any, n: int) -> None:
    """Set integer ticks, and a log scale for many ranks, since low ranks matter most."""
    if n > _MANY_RANKS:
        plain_log(axis, (1, 3))
    else:
        axis.get_major_locator().set_params(integer=True, min_n_ticks=1)


def marks(width: float, largest: float) -> np.ndarray:
    """Return zero and up to four of 1, 3, 10, ... beyond the linear part of a scale."""
    powers = 10.0 ** np.arange(np.floor(np.log10(width)), np.ceil(np.log10(largest)))
    found = np.outer(powers, [1, 3]).ravel()
    found = found[(found >= width) & (found <= largest)]
    return np.array([0.0, *found[:: -(-found.size // 4)]])


def focus(ax: Any, *curves: np.ndarray) -> None:
    """Use a log scale if the largest error is far above the smallest one."""
    values = np.concatenate([c[np.isfinite(c)] for c in curves])
    low, high = values.min(), values.max()
    if low > 0 and high > 20 * low:
        ax.set_yscale("log")
