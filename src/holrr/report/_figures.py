"""Figures of a report as SVG whose colours follow the light or dark page around them."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from ..data.labels import mode_coordinates, mode_names
from ..plotting import LoadingsDisplay, PredictionDisplay, RankSurfaceDisplay, style
from ._evaluate import Estimate, Evaluation

__all__ = ["calibration", "drawn", "errors", "loadings", "rank_surface", "scatter", "skill"]

# CSS custom properties that replace the colours of the displays.
_COLORS = {
    "#1f5a99": "--main",
    "#d1600e": "--accent",
    "#b9bec6": "--muted",
    "#6b7280": "--dim",
    "#000000": "--ink",
    "#ffffff": "--paper",
    "#eef0f2": "--shade",
}
# Meshes with more cells are embedded in the SVG as images.
_MOST_CELLS = 1500
_MOST_PANELS = 16


def to_svg(figure: Any, name: str) -> str:
    """Return a figure as an SVG element.

    Parameters
    ----------
    figure : matplotlib Figure
        It is closed afterwards.
    name : str
        Prefix of the ids in the SVG, which must differ between the figures of a page.
    """
    import matplotlib as mpl
    import matplotlib.pyplot as plt
    from matplotlib.collections import PathCollection, QuadMesh

    for part in figure.findobj(lambda a: isinstance(a, QuadMesh | PathCollection)):
        values = part.get_offsets() if isinstance(part, PathCollection) else part.get_array()
        part.set_rasterized(np.shape(values)[0] > _MOST_CELLS or np.size(values) > 2 * _MOST_CELLS)
    buffer = io.StringIO()
    options = {"svg.hashsalt": name, "svg.fonttype": "none", "savefig.transparent": True}
    with mpl.rc_context(options):
        figure.savefig(buffer, format="svg", dpi=160, metadata={"Date": None, "Creator": None})
    plt.close(figure)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    for color, variable in _COLORS.items():
        text = re.sub(rf"(?<=: ){color}\b", f"var({variable})", text, flags=re.IGNORECASE)
    text = re.sub(r"\bid=\"", f'id="{name}-', text)
    text = re.sub(r"(xlink:href=\"#|url\(#)", rf"\g<1>{name}-", text)
    width, height = re.search(r'width="([\d.]+)pt" height="([\d.]+)pt"', text).groups()  # type: ignore[union-attr]
    size = f'width="{width}pt" height="{height}pt"'
    return text.replace(size, f'style="max-width: {float(width) / 72 * 1.25:.2f}in"', 1)


def drawn(name: str, draw: Callable[[], Any]) -> str:
    """Return the figure of a display as SVG.

    Parameters
    ----------
    name : str
        As in `to_svg`.
    draw : callable
        Returns a display with `figure_`, or a figure.
    """
    found = draw()
    return to_svg(getattr(found, "figure_", found), name)


def errors(evaluation: Evaluation) -> Any:
    """Draw the RMSE of all methods with its 95 % confidence intervals."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    names = evaluation.names
    figure = Figure(figsize=(6.4, 0.7 + 0.36 * len(names)), layout="constrained")
    ax = figure.subplots()
    for place, name in enumerate(names):
        found: Estimate = evaluation.rmse(name)
        color = "#1f5a99" if place == 0 else "#6b7280"
        ax.plot([found.low, found.high], [place, place], color=color, lw=2.5, alpha=0.55)
        ax.plot(found.value, place, "o", color=color, ms=7)
    ax.set_yticks(range(len(names)), names, fontsize=9)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlabel("RMSE (dot) and 95 % confidence interval (line)", fontsize=8)
    ax.xaxis.set_major_locator(MaxNLocator(6))
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(labelsize=8, left=False)
    ax.grid(axis="x", color="#b9bec6", lw=0.5)
    return figure


def scatter(evaluation: Evaluation) -> Any:
    """Draw observed against predicted outputs, or a part of them if there are many."""
    predicted = evaluation.predicted[evaluation.names[0]]
    return PredictionDisplay(y_true=evaluation.y, y_pred=predicted).plot()


def skill(model: Any, evaluation: Evaluation) -> Any:
    """Draw the R2 of each output: bars or a line, a map, or a map for each entry of a mode."""
    r2 = evaluation.r2()
    modes = [k for k, d in enumerate(r2.shape) if d > 1]
    names = [mode_names(model)[1 + k] for k in modes]
    coordinates = [mode_coordinates(model, 1 + k) for k in modes]
    r2 = r2.reshape([r2.shape[k] for k in modes])
    if len(modes) == 1:
        return _skill_of_mode(r2, names[0], coordinates[0])
    panels, titles = r2[None], [""]
    if len(modes) == 3:
        shortest = int(np.argmin(r2.shape))
        mode, entries = names.pop(shortest), coordinates.pop(shortest)
        some = np.linspace(0, len(entries) - 1, min(len(entries), _MOST_PANELS)).round().astype(int)
        panels = np.moveaxis(r2, shortest, 0)[some]
        titles = [style.short(f"{mode} {entries[i]}", 26) for i in some]
    return style.panels_of_maps(panels, titles, names, coordinates, "R2")[0]


def _skill_of_mode(r2: np.ndarray, name: str, coordinate: np.ndarray) -> Any:
    figure = style.new_figure(5.2, 2.6)
    ax, shown = figure.subplots(), np.maximum(r2, -1.0)
    if style.is_ordered(coordinate) and r2.size > 40:
        order = np.argsort(coordinate)
        ax.plot(coordinate[order], shown[order], color=style.MAIN, lw=1.2)
    else:
        ax.bar(range(r2.size), shown, color=np.where(r2 < 0, style.ACCENT, style.MAIN))
        style.name_ticks(ax, ax.xaxis, coordinate)
    ax.axhline(0, color=style.DARK, lw=0.8)
    ax.set_xlabel(style.short(name, 40), fontsize=9)
    ax.set_ylabel("R2", fontsize=9)
    style.tidy(ax)
    return figure


def calibration(evaluation: Evaluation) -> Any:
    """Draw the observed against the nominal coverage of prediction intervals."""
    assert evaluation.intervals is not None
    nominal = sorted(evaluation.intervals)
    figure = style.new_figure(3.8, 3.6)
    ax = figure.subplots()
    ax.plot([0, 1], [0, 1], "--", color=style.DARK, lw=1)
    observed = [evaluation.coverage(c) for c in nominal]
    ax.plot(nominal, observed, "o-", ms=4, color=style.MAIN)
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    ax.set_xlabel("nominal coverage", fontsize=9)
    ax.set_ylabel("observed coverage", fontsize=9)
    style.tidy(ax)
    return figure


def rank_surface(model: Any) -> Any:
    """Draw the cross-validated error of all ranks and penalties."""
    return RankSurfaceDisplay.from_estimator(model)


def loadings(model: Any) -> Any:
    """Draw the leading directions of each mode."""
    return LoadingsDisplay.from_estimator(model)
