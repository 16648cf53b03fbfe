"""Common style of all figures, for light and dark pages."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["COLOURS", "THEMES", "figure_bytes", "require_matplotlib", "save_figure", "themed"]

THEMES = {
    "light": {"ink": "#1f2328", "faint": "#8b949e", "grid": "#e3e6ea", "paper": "#ffffff"},
    "dark": {"ink": "#e6edf3", "faint": "#8b949e", "grid": "#30363d", "paper": "#14181e"},
}

# Colours that remain distinct for colour-blind readers and on both backgrounds.
COLOURS = {
    "RLS": "#8a8f98",
    "LRR": "#e69f00",
    "Trace norm": "#56b4e9",
    "MLMT-NC": "#b07cc6",
    "HOLRR (paper)": "#d55e00",
    "HOLRR": "#d55e00",
    "HOLRR (ours)": "#009e73",
    "HOLRR (refined)": "#3d8fe0",
}


def require_matplotlib() -> Any:
    """Import matplotlib, or raise an ImportError that names the extra to install."""
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError(
            "Drawing figures needs matplotlib, which is not installed: run pip install "
            '"holrr[plot]".'
        ) from error
    return matplotlib


@contextmanager
def themed(theme: str) -> Iterator[None]:
    """Draw with the colours of a theme, and restore the user's settings afterwards."""
    matplotlib = require_matplotlib()
    t = THEMES[theme]
    settings = {
        "figure.facecolor": t["paper"],
        "axes.facecolor": t["paper"],
        "savefig.facecolor": t["paper"],
        "text.color": t["ink"],
        "axes.labelcolor": t["ink"],
        "axes.edgecolor": t["faint"],
        "xtick.color": t["ink"],
        "ytick.color": t["ink"],
        "grid.color": t["grid"],
        "axes.grid": True,
        "axes.axisbelow": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlesize": 10.5,
        "axes.titleweight": "bold",
        "axes.labelsize": 9.5,
        "xtick.labelsize": 8.5,
        "ytick.labelsize": 8.5,
        "legend.fontsize": 9,
        "legend.frameon": False,
        "lines.linewidth": 1.8,
        "lines.markersize": 5,
        "font.family": "sans-serif",
        "svg.hashsalt": "holrr",  # the same figure is the same file
        "image.interpolation": "nearest",
    }
    with matplotlib.rc_context(settings):
        yield


def figure_bytes(draw: Callable[[], Any], theme: str, file_format: str, dpi: int = 150) -> bytes:
    """Return the content of the file of a figure.

    Parameters
    ----------
    draw : callable
        Function that returns a matplotlib Figure.
    theme : {"light", "dark"}
        Theme of the colours.
    file_format : {"png", "svg"}
        Format of the file.
    dpi : int
        Resolution of PNG files.
    """
    with themed(theme):
        buffer = io.BytesIO()
        metadata = {"Date": None} if file_format == "svg" else None
        draw().savefig(buffer, format=file_format, dpi=dpi, bbox_inches="tight", metadata=metadata)
    return buffer.getvalue()


def save_figure(draw: Callable[[], Any], stem: Path) -> list[Path]:
    """Write a figure as PNG, as PNG for dark pages and as SVG; returns the three paths.

    The PNG files have twice the resolution at which pages show them.
    """
    files = {".png": "light", "_dark.png": "dark", ".svg": "light"}
    paths = [stem.with_name(stem.name + end) for end in files]
    for path, theme in zip(paths, files.values(), strict=True):
        path.write_bytes(figure_bytes(draw, theme, path.suffix[1:], dpi=200))
    return paths
