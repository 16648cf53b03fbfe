"""Figure of forecast errors relative to the least published error."""

from __future__ import annotations

from typing import Any

from ..forecast_results import AFTER, Place, ours, places, published
from ..tables import Table
from .style import COLOURS, THEMES, require_matplotlib

__all__ = ["draw"]

# Colours of the searches by their first word.
KINDS = {
    "ridge": COLOURS["RLS"],
    "LRR": COLOURS["LRR"],
    "best rank": COLOURS["HOLRR"],
    "stack": COLOURS["HOLRR (ours)"],
}
PUBLISHED, MONTH = "published", "month of the year"
WIDEST = 20.0  # percent; larger values are drawn as an arrow
TITLES = {"kasai": "Kasai et al., {}", "nips": "NIPS 2014, {}"}


def draw(rows: Table) -> Any:
    """Draw one panel for each column of the two tables.

    Parameters
    ----------
    rows : list of dict
        Table of the experiment.

    Returns
    -------
    matplotlib.figure.Figure
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    shown = places(rows)
    methods = list(dict.fromkeys(m for place in shown for m in ours(rows, place)))
    labels = [PUBLISHED, *methods, MONTH]
    n_columns = min(3, len(shown))
    n_rows = -(-len(shown) // n_columns)
    figure = Figure(
        figsize=(3.0 * n_columns + 1.6, (0.19 * len(labels) + 0.55) * n_rows + 0.7),
        layout="constrained",
    )
    grid = figure.subplots(n_rows, n_columns, squeeze=False, sharey=True)
    for ax, place in zip(grid.flat, shown, strict=False):
        _draw_place(ax, rows, place, labels)
    for ax in grid.flat[len(shown) :]:
        ax.set_axis_off()
    grid[0, 0].set_ylim(len(labels) - 0.4, -0.6)
    for ax in grid[-1]:
        ax.set_xlabel("test error, % from the least published")
    figure.legend(handles=_legend(), loc="outside lower center", ncols=2)
    return figure


def _draw_place(ax: Any, rows: Table, place: Place, labels: list[str]) -> None:
    faint = THEMES["light"]["faint"]
    theirs = published(rows, place)
    least = min(theirs.values())
    found = {**ours(rows, place), **ours(rows, place, AFTER, kind="baseline")}
    ax.axvline(0, color=faint, lw=1.2)
    _draw_dots(ax, 0, [_percent(e, least) for e in theirs.values()], faint, hollow=True)
    for height, label in enumerate(labels):
        if label in found:
            colour = KINDS.get(label.split(",")[0], faint)
            _draw_dots(ax, height, [_percent(found[label], least)], colour, hollow=label == MONTH)
    ax.set_yticks(range(len(labels)), labels)
    ax.grid(visible=True, axis="x")
    ax.set_xlim(-14, WIDEST + 1)
    ax.set_title(TITLES[place.table].format(place), loc="left")


def _percent(error: float, least: float) -> float:
    return 100 * (error / least - 1)


def _draw_dots(ax: Any, height: int, values: list[float], colour: str, *, hollow: bool) -> None:
    inside = [value for value in values if value <= WIDEST]
    style: dict[str, Any] = {
        "mfc": "none" if hollow else colour,
        "mec": colour,
        "mew": 1.4,
        "ms": 6,
    }
    ax.plot(inside, [height] * len(inside), "o", zorder=3, **style)
    if len(inside) < len(values):
        ax.plot([WIDEST], [height], ">", color=colour, ms=5, clip_on=False)


def _legend() -> list[Any]:
    from matplotlib.lines import Line2D

    faint = THEMES["light"]["faint"]
    ring: dict[str, Any] = {
        "mfc": "none",
        "mec": faint,
        "mew": 1.4,
        "ms": 6,
        "linestyle": "",
        "marker": "o",
    }
    dot: dict[str, Any] = {
        "color": COLOURS["HOLRR (ours)"],
        "ms": 6,
        "linestyle": "",
        "marker": "o",
    }
    return [
        Line2D([], [], label="published, or a plain mean (arrow: farther out)", **ring),
        Line2D([], [], label="this library, everything chosen on the training part", **dot),
    ]
