"""Pictures for light and for dark pages: the same figure in two files, at twice the resolution.

`save` writes ``NAME.png`` and ``NAME_dark.png``. Pages name the first file, which readers of the
plain Markdown see. The site shows the file that fits the colours of the page (`docs.hooks`).
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.collections import Collection, QuadMesh
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure, SubFigure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text

__all__ = ["PAPER", "contrast", "darken", "in_both_themes", "save"]

INK, PAPER = "#e6edf3", "#14181e"  # of the site's dark pages
DPI = 200  # twice what is shown
LEAST_CONTRAST = 4.5  # of text and lines with the paper
_SAVE = Figure.savefig


def save(figure: Any, path: str | Path, small: bool = True) -> None:
    """Write a figure for light pages and, with ``_dark`` in its name, for dark ones.

    Parameters
    ----------
    figure : matplotlib Figure
        Its colours are those of a dark page afterwards.
    path : str or Path
        Of the first file, ``NAME.png``.
    small : bool, default=True
        Whether to look for the smallest file, which takes longer.
    """
    path = Path(path)
    _write(figure, path, "white", small)
    darken(figure)
    _write(figure, path.with_stem(f"{path.stem}_dark"), PAPER, small)


@contextlib.contextmanager
def in_both_themes() -> Iterator[None]:
    """Within it, ``figure.savefig("NAME.png")`` writes both files, whatever its resolution."""

    def savefig(figure: Any, path: Any, **options: Any) -> None:
        if isinstance(path, str | Path) and Path(path).suffix == ".png":
            save(figure, path)
        else:
            _SAVE(figure, path, **options)

    Figure.savefig = savefig  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        Figure.savefig = _SAVE  # type: ignore[method-assign]


def darken(figure: Any) -> None:
    """Give a figure the colours of a dark page. Maps and what is drawn on them stay as they are.

    Parameters
    ----------
    figure : matplotlib Figure
    """
    kept = {id(artist) for ax in figure.axes if _is_map(ax) for artist in _on(ax)}
    for artist in figure.findobj():
        if id(artist) in kept or isinstance(artist, Figure | SubFigure):
            continue
        if isinstance(artist, Text):
            artist.set_color(_shade(artist.get_color()))
        elif isinstance(artist, Line2D):
            _darken_line(artist)
        elif isinstance(artist, Patch):
            edge = artist.get_edgecolor()
            artist.set_facecolor(_shade(artist.get_facecolor()))
            artist.set_edgecolor(_shade(edge))
        elif isinstance(artist, Collection) and artist.get_array() is None:
            for part in ("facecolor", "edgecolor"):
                colors = getattr(artist, f"get_{part}")()
                if isinstance(colors, np.ndarray) and len(colors):
                    shades = [_shade(color) for color in colors]
                    getattr(artist, f"set_{part}")(shades)
    figure.patch.set_facecolor(PAPER)


def _write(figure: Any, path: Path, paper: str, small: bool) -> None:
    """One file; a small one has 256 colours if that changes nothing that can be seen."""
    from PIL import Image

    if not small:
        _SAVE(figure, path, dpi=DPI, facecolor=paper)
        return
    buffer = io.BytesIO()
    _SAVE(figure, buffer, format="png", dpi=DPI, facecolor=paper)
    picture = Image.open(buffer).convert("RGB")
    fewer = picture.quantize(256, kmeans=1, dither=Image.Dither.NONE)
    change = np.abs(np.asarray(fewer.convert("RGB"), float) - np.asarray(picture, float))
    (fewer if np.quantile(change, 0.999) < 6 else picture).save(path, optimize=True)


def contrast(color: Any, other: Any) -> float:
    """Contrast of two colours, from 1 to 21, as the WCAG guidelines define it."""
    first, second = sorted((_luminance(color), _luminance(other)))
    return (second + 0.05) / (first + 0.05)


def _darken_line(line: Line2D) -> None:
    """Line and markers; a colour that is "auto" or "none" stays so."""
    line.set_color(_shade(line.get_color()))
    for part in ("markerfacecolor", "markeredgecolor"):
        color = getattr(line, f"get_{part}")()
        if not isinstance(color, str) or color not in ("auto", "none", "None"):
            getattr(line, f"set_{part}")(_shade(color))


def _is_map(ax: Any) -> bool:
    meshes = any(isinstance(artist, QuadMesh) for artist in ax.collections)
    return meshes or any(isinstance(artist, AxesImage) for artist in ax.images)


def _on(ax: Any) -> list[Any]:
    """What is drawn on a map, with all of its parts; not its frame, its ticks and its titles."""
    drawn = [*ax.lines, *ax.texts, *ax.collections, *ax.patches, *ax.images]
    return [part for artist in drawn for part in artist.findobj()]


def _shade(color: Any) -> tuple[float, ...]:
    """A colour for dark pages: greys are turned over, others are as light as they need to be."""
    rgba = np.array(to_rgba(color))
    rgb, alpha = rgba[:3], rgba[3]
    ink, paper = np.array(to_rgba(INK)[:3]), np.array(to_rgba(PAPER)[:3])
    if np.ptp(rgb) < 0.12:  # a grey; black becomes ink and white becomes paper
        rgb = paper + (ink - paper) * (1 - rgb.mean())
    else:
        tints = (rgb + share * (1 - rgb) for share in np.linspace(0, 1, 41))
        rgb = next(tint for tint in tints if contrast(tint, PAPER) >= LEAST_CONTRAST)
    return (*map(float, rgb), float(alpha))


def _luminance(color: Any) -> float:
    rgb = np.array(to_rgba(tuple(color) if isinstance(color, np.ndarray) else color)[:3])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])
