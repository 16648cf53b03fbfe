"""Figure 2: true pictures and all reconstructions with their errors, one row for each picture."""

from __future__ import annotations

import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from holrr.datasets import image_from_coef

from ..images import Config, Reconstruction, read_image, reconstruct
from .style import require_matplotlib

__all__ = ["draw"]

TITLES = {
    "channels": "An input for each of the three colours: the outputs are rows × columns of pixels",
    "rows": "An input for each row of pixels: the outputs are columns × colours",
}


def draw(config: Config, task: str) -> Any:
    """Return the pictures of one task, made again from the config (first trial).

    Parameters
    ----------
    config : Config
    task : {"channels", "rows"}

    Returns
    -------
    matplotlib.figure.Figure
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    rows = [(image, _shown(config, image, task)) for image in config.images]
    n_columns = 1 + max(len(found) for _, found in rows)
    truths = [read_image(image, config.max_side) for image, _ in rows]
    heights = [truth.shape[0] / truth.shape[1] + 0.28 for truth in truths]
    figure = Figure(figsize=(1.32 * n_columns, 1.32 * sum(heights) + 0.4), layout="constrained")
    figure.suptitle(TITLES[task], fontsize=11.5, fontweight="bold", x=0.01, ha="left")
    grid = figure.subplots(len(rows), n_columns, squeeze=False, height_ratios=heights)
    for axes, truth, (image, found) in zip(grid, truths, rows, strict=True):
        _draw_row(axes, truth, Path(image).stem, found, task)
    return figure


@lru_cache(maxsize=16)
def _shown(config: Config, image: str, task: str) -> list[Reconstruction]:
    """Return the reconstructions of a picture, computed once for all formats and themes."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The best penalty")
        return reconstruct(config, image, task)


def _draw_row(
    axes: Any, truth: np.ndarray, name: str, found: list[Reconstruction], task: str
) -> None:
    for ax in axes:
        ax.set_axis_off()
    axes[0].imshow(truth)
    axes[0].set_title(f"{name}\n", fontsize=8, pad=3)
    best = min(f.rmse for f in found)
    for ax, f in zip(axes[1:], found, strict=False):
        ax.imshow(image_from_coef(f.coef, task))
        weight = "bold" if f.rmse == best else "normal"
        ax.set_title(
            f"{f.method} {f.rank}\nerror {f.rmse:.3f}", fontsize=8, pad=3, fontweight=weight
        )
