"""Figure 1: error against the size of the training set, one panel for each kind of data."""

from __future__ import annotations

import math
from typing import Any

from ..synthetic import Config
from ..tables import Table, summarise
from .style import COLOURS, require_matplotlib

__all__ = ["PANELS", "VALUES", "draw", "draw_means", "means"]

PANELS = {
    "linear": "Linear data of the paper",
    "nonlinear": "Nonlinear data of the paper",
    "noisy": "Linear, noise as strong as the signal",
    "anisotropic": "Linear, noise in a few directions",
}
# Error against noisy test outputs, as in the paper, or against outputs without noise.
VALUES = {
    "linear": "rmse",
    "nonlinear": "rmse",
    "noisy": "rmse_to_signal",
    "anisotropic": "rmse_to_signal",
}
# Markers of different size, some hollow, so that coinciding lines are all visible.
MARKS: dict[str, dict[str, Any]] = {
    "RLS": {"marker": "s"},
    "LRR": {"marker": "^"},
    "Trace norm": {"marker": "v"},
    "MLMT-NC": {"marker": "D", "markersize": 9.5, "markerfacecolor": "none"},
    "HOLRR (paper)": {"marker": "o", "markersize": 7, "markerfacecolor": "none", "linestyle": "--"},
    "HOLRR (ours)": {"marker": "o", "markersize": 4},
    "HOLRR (refined)": {"marker": "x", "markersize": 7, "linestyle": ":"},
}


def draw(config: Config, rows: Table) -> Any:
    """Draw the panels of the config.

    Parameters
    ----------
    config : Config
        Settings of the experiment.
    rows : list of dict
        Table of the experiment.

    Returns
    -------
    matplotlib.figure.Figure
    """
    return draw_means(config, means(rows))


def means(rows: Table) -> Table:
    """Mean and standard error of each panel, method and size of the training set."""
    found: Table = []
    for panel in dict.fromkeys(row["panel"] for row in rows):
        chosen = [row for row in rows if row["panel"] == panel]
        found += [
            {"panel": panel, "value": VALUES[panel], **row}
            for row in summarise(chosen, ["method", "n_train"], VALUES[panel])
        ]
    return found


def draw_means(config: Config, found: Table) -> Any:
    """Draw the panels of the config from the result of `means`."""
    require_matplotlib()
    from matplotlib.figure import Figure

    n_rows = math.ceil(len(config.panels) / 2)
    n_columns = min(2, len(config.panels))
    figure = Figure(figsize=(4.9 * n_columns, 3.3 * n_rows + 0.5), layout="constrained")
    grid = figure.subplots(n_rows, n_columns, squeeze=False)
    handles: dict[str, Any] = {}
    for ax, panel in zip(grid.flat, config.panels, strict=False):
        handles |= _draw_panel(ax, config, panel, [r for r in found if r["panel"] == panel])
    for ax in grid.flat[len(config.panels) :]:
        ax.set_axis_off()
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4)
    return figure


def _draw_panel(ax: Any, config: Config, panel: str, found: Table) -> dict[str, Any]:
    value = VALUES[panel]
    handles = {}
    for method in dict.fromkeys(row["method"] for row in found):
        line = [row for row in found if row["method"] == method]
        handles[method] = ax.errorbar(
            [row["n_train"] for row in line],
            [row["mean"] for row in line],
            yerr=[0.0 if math.isnan(row["error"]) else row["error"] for row in line],
            color=COLOURS[method],
            capsize=2,
            zorder=4 if method.startswith("HOLRR") else 2,
            **MARKS[method],
        )
    if panel in ("linear", "nonlinear"):
        # No prediction can have a lower error than the noise, which is the same in every trial.
        handles["noise"] = ax.axhline(config.noise_level, color="#8b949e", lw=1, ls=":")
    _set_scales(ax, config.sizes, "linear" if value == "rmse" else "log")
    ax.set_title(PANELS[panel], loc="left")
    ax.set_xlabel("size of the training set")
    ax.set_ylabel("RMSE on the test set" if value == "rmse" else "RMSE to the noiseless test set")
    return handles


def _set_scales(ax: Any, sizes: tuple[int, ...], scale: str) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    ax.set_xscale("log")
    ax.set_xticks(sizes, [str(n) for n in sizes])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_yscale(scale)
    if scale == "log":
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
        ax.yaxis.set_minor_formatter(NullFormatter())
