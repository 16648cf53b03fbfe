"""Table 1 as bars: seconds of every method, ours and the paper's."""

from __future__ import annotations

from typing import Any

from ..published import TABLE_1
from ..runtime import medians
from ..tables import Table
from .style import COLOURS, THEMES, require_matplotlib

__all__ = ["draw"]


def draw(rows: Table) -> Any:
    """One panel for each size; bars are ours, rings the paper's.

    Parameters
    ----------
    rows : list of dict
        The table of the experiment.

    Returns
    -------
    matplotlib.figure.Figure
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    times = medians(rows)
    figure = Figure(figsize=(3.5 * len(times) + 0.6, 3.1), layout="constrained")
    grid = figure.subplots(1, len(times), squeeze=False, sharey=True)[0]
    paper = {" x ".join(map(str, size)): found for size, found in TABLE_1.items()}
    for ax, (size, ours) in zip(grid, times.items(), strict=True):
        _draw_panel(ax, size, ours, paper.get(size, {}))
    grid[0].invert_yaxis()
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def _draw_panel(ax: Any, size: str, ours: dict[str, float], paper: dict[str, float | None]) -> None:
    names = list(ours)
    ax.barh(
        names,
        list(ours.values()),
        color=[COLOURS[name] for name in names],
        height=0.6,
        label="this library",
    )
    known = [(name, paper[name]) for name in names if paper.get(name) is not None]
    if known:
        ax.plot(
            [t for _, t in known],
            [name for name, _ in known],
            "o",
            mfc="none",
            mec=THEMES["light"]["faint"],
            mew=1.6,
            ms=7,
            label="the paper",
        )
    ax.set_xscale("log")
    ax.grid(visible=False, axis="y")
    ax.set_title(size.replace(" x ", " × "), loc="left")
    ax.set_xlabel("seconds")
