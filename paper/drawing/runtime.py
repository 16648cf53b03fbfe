"""Figure of Table 1: seconds of every method in this library and in the paper."""

from __future__ import annotations

from typing import Any

from ..published import TABLE_1
from ..runtime import medians
from ..tables import Table
from .style import COLOURS, THEMES, require_matplotlib

__all__ = ["draw", "draw_times"]


def draw(rows: Table) -> Any:
    """Draw one panel for each size, with dots for this library and rings for the paper.

    The scale is logarithmic, where bars would have no base.

    Parameters
    ----------
    rows : list of dict
        Table of the experiment.

    Returns
    -------
    matplotlib.figure.Figure
    """
    return draw_times(medians(rows))


def draw_times(times: dict[str, dict[str, float]]) -> Any:
    """Draw the same panels from the seconds of each method, by sizes."""
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.5 * len(times) + 0.6, 3.1), layout="constrained")
    grid = figure.subplots(1, len(times), squeeze=False, sharey=True)[0]
    paper = {" x ".join(map(str, size)): found for size, found in TABLE_1.items()}
    for ax, (size, ours) in zip(grid, times.items(), strict=True):
        _draw_panel(ax, size, ours, paper.get(size, {}))
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def _draw_panel(ax: Any, size: str, ours: dict[str, float], paper: dict[str, float | None]) -> None:
    names = list(ours)
    faint, colours = THEMES["light"]["faint"], [COLOURS[name] for name in names]
    known = {name: t for name in names if (t := paper.get(name)) is not None}
    ax.hlines(list(known), [ours[name] for name in known], list(known.values()), color=faint, lw=1)
    ax.plot(list(ours.values()), names, "o", color=faint, ms=7, label="this library")
    ax.scatter(list(ours.values()), names, s=49, c=colours, zorder=3)
    ring = {"mfc": "none", "mec": faint, "mew": 1.6, "ms": 8}
    ax.plot(list(known.values()), list(known), "o", label="the paper", **ring)
    ax.set_xscale("log")
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.set_title(size.replace(" x ", " × "), loc="left")
    ax.set_xlabel("seconds")
