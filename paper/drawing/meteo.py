"""Figure of Table 2: errors of this library as dots, and those of the paper as rings."""

from __future__ import annotations

from typing import Any

from ..meteo_methods import CROSS_VALIDATED
from ..published import TABLE_2
from ..tables import Row, Table, summarise
from .style import COLOURS, THEMES, require_matplotlib

__all__ = ["LABELS", "PAPER_GRID", "draw", "draw_means"]

# Rows of the table, from top to bottom: (kernel, method) -> label. First those of the paper.
PAPER_GRID = {
    ("linear", "Trace norm"): "trace norm",
    ("linear", "RLS"): "RLS",
    ("linear", "LRR"): "LRR",
    ("linear", "HOLRR"): "HOLRR",
    ("rbf", "RLS"): "RLS, rbf",
    ("rbf", "LRR"): "LRR, rbf",
    ("rbf", "HOLRR"): "HOLRR, rbf",
    ("poly", "RLS"): "RLS, poly",
    ("poly", "LRR"): "LRR, poly",
    ("poly", "HOLRR"): "HOLRR, poly",
}
LABELS = {
    **PAPER_GRID,
    **{
        (f"{kernel}, wide", method): f"{label}, wide grid"
        for (kernel, method), label in PAPER_GRID.items()
        if kernel != "poly" and method != "Trace norm"
    },
    **{("cross-validated", method): f"{method}, cross-validated" for method in CROSS_VALIDATED},
    ("climatology", "Climatology"): "climatology",
    ("calendar", "HOLRR (ours)"): "HOLRR + calendar",
    ("anomalies", "HOLRR (ours)"): "HOLRR on anomalies",
}


def draw(rows: Table) -> Any:
    """Draw one panel for each cell of the table of the paper.

    Parameters
    ----------
    rows : list of dict
        Table of the experiment.

    Returns
    -------
    matplotlib.figure.Figure
    """
    return draw_means(summarise(rows, ["k", "n_train", "kernel", "method"], "rmse"))


def draw_means(found: Table) -> Any:
    """Draw the same panels from means and standard errors."""
    require_matplotlib()
    from matplotlib.figure import Figure

    horizons = list(dict.fromkeys(row["k"] for row in found))
    sizes = list(dict.fromkeys(row["n_train"] for row in found))
    labels = [key for key in LABELS if any(_key(row) == key for row in found)]
    figure = Figure(
        figsize=(3.3 * len(horizons) + 1.2, (0.2 * len(labels) + 0.75) * len(sizes) + 0.4),
        layout="constrained",
    )
    grid = figure.subplots(len(sizes), len(horizons), squeeze=False, sharex=True, sharey=True)
    for axes, size in zip(grid, sizes, strict=True):
        for ax, k in zip(axes, horizons, strict=True):
            cell = {_key(r): r for r in found if (r["k"], r["n_train"]) == (k, size)}
            _draw_cell(ax, cell, labels, TABLE_2.get((k, size), {}))
            months = "month" if k == 1 else "months"
            ax.set_title(f"next {k} {months}, N = {size}", loc="left")
    grid[0, 0].invert_yaxis()
    for ax in grid[-1]:
        ax.set_xlabel("RMSE on the test set")
    figure.legend(handles=_legend(), loc="outside lower center", ncols=2)
    return figure


def _legend() -> list[Any]:
    from matplotlib.lines import Line2D

    ours: dict[str, Any] = {"marker": "o", "linestyle": "-", "color": THEMES["light"]["faint"]}
    paper: dict[str, Any] = {"mfc": "none", "mec": THEMES["light"]["faint"], "mew": 1.5, "ms": 9}
    return [
        Line2D([], [], label="this library, with standard error", **ours),
        Line2D([], [], linestyle="", marker="o", label="the paper", **paper),
    ]


def _key(row: Row) -> tuple[str, str]:
    return row["kernel"], row["method"]


def _draw_cell(
    ax: Any,
    cell: dict[tuple[str, str], Row],
    keys: list[tuple[str, str]],
    paper: dict[tuple[str, str], float],
) -> None:
    places = [(i, key) for i, key in enumerate(keys) if key in cell]
    for i, key in places:
        ax.errorbar(
            cell[key]["mean"],
            i,
            xerr=cell[key]["error"],
            fmt="o",
            capsize=2.5,
            color=COLOURS.get(key[1], THEMES["light"]["faint"]),
        )
    known = [(paper[key], i) for i, key in places if key in paper]
    if known:
        values, heights = zip(*known, strict=True)
        ax.plot(values, heights, "o", mfc="none", mec=THEMES["light"]["faint"], mew=1.5, ms=9)
    ax.set_yticks(range(len(keys)), [LABELS[key] for key in keys])
    ax.grid(visible=True, axis="x")
