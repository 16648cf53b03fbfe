"""Draw the pictures of the pages, for light and for dark pages: ``python -m docs.pictures``.

The code of a page is in its ``pycon`` blocks, with its output; the tests run the same code. A
script of the same name beside a page draws the pictures whose code the page does not show. The
picture of the landing page is drawn by a function here. Pictures of measurements are kept as files;
those of ``reproduce.md`` and ``published.md`` are written by ``python -m paper``.
"""

from __future__ import annotations

import contextlib
import re
import runpy
import shutil
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from docs.dark import in_both_themes, save
from docs.pages import run_blocks, stated_extras

DOCS = Path(__file__).resolve().parent
IMAGES = DOCS / "images"
MAIN, ACCENT = "#1f5a99", "#d1600e"
# Pages whose code, or whose script, draws.
GUIDES = [
    page
    for page in sorted(DOCS.glob("*.md"))
    if ".savefig(" in page.read_text("utf-8") or page.with_suffix(".py").exists()
]


def run_guide(page: Path, folder: Path) -> tuple[int, int]:
    """Run the script of a page and its blocks; pictures are saved for both themes.

    Returns
    -------
    failed, attempted : int
    """
    import matplotlib

    matplotlib.use("Agg")
    with in_both_themes():
        if page.with_suffix(".py").exists():
            with contextlib.chdir(folder):
                runpy.run_path(str(page.with_suffix(".py")), run_name="__main__")
        return run_blocks(page, folder)


def after(page: str, n_blocks: int) -> dict[str, Any]:
    """The names that the first ``python`` blocks of a page leave."""
    text = (DOCS / page).read_text("utf-8")
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)[:n_blocks]:
        exec(block, names)
    return names


def index() -> dict[str, Any]:
    """A map, its prediction, the width of the intervals, and one cell in the course of time."""
    import matplotlib.pyplot as plt
    from matplotlib.dates import DateFormatter, YearLocator

    from holrr.datasets import make_climate_maps

    names = after("index.md", 1)
    model, X, (n_train, months) = names["model"], names["X"], (60, 36)
    _, Y = make_climate_maps(labelled=True, random_state=0)
    new = slice(n_train, n_train + months)
    predicted = model.predict(X[new])
    lower, upper = model.predict_interval(X[new], coverage=0.9)
    month = int(np.abs(predicted).max(axis=(1, 2)).argmax())
    where = {"lat": -2.5, "lon": 220.0}
    i, j = (int(np.flatnonzero(Y[name] == value)[0]) for name, value in where.items())

    figure, axes = plt.subplots(2, 2, figsize=(8.4, 5.6), layout="constrained")
    half = (upper - lower) / 2
    panels = {
        f"observed, {Y.time[new][month].dt.strftime('%B %Y').item()}": Y[new][month].to_numpy(),
        "predicted": predicted[month],
        "half width of the 90 % interval": half[month],
    }
    top = 1.05 * np.abs(predicted[month]).max()
    for ax, (title, values) in zip(axes.flat, panels.items(), strict=False):
        signed = not title.startswith("half")
        look = {"cmap": "RdBu_r", "vmin": -top, "vmax": top} if signed else {"vmin": 0}
        image = ax.pcolormesh(Y.lon, Y.lat, values, **look)
        ax.set(title=title, xticks=[0, 90, 180, 270], yticks=[-45, 0, 45])
        ax.set_xticklabels(["0°", "90°E", "180°", "90°W"])
        ax.set_yticklabels(["45°S", "0°", "45°N"])
        figure.colorbar(image, ax=ax, label=f"{Y.name}, {Y.attrs['units']}")
    ax, time = axes[1, 1], Y.time[new].to_numpy()
    ax.fill_between(time, lower[:, i, j], upper[:, i, j], color=MAIN, alpha=0.25, lw=0)
    ax.plot(time, predicted[:, i, j], color=MAIN, label="predicted, with 90 % interval")
    ax.plot(time, Y[new][:, i, j], "o", color=ACCENT, ms=3.5, label="observed")
    ax.set(title="one cell, 2.5°S 140°W", ylabel=f"{Y.name}, {Y.attrs['units']}")
    ax.xaxis.set_major_locator(YearLocator())
    ax.xaxis.set_major_formatter(DateFormatter("%Y"))
    ax.set_ylim(top=ax.get_ylim()[1] + 0.28 * np.ptp(ax.get_ylim()))
    ax.legend(loc="upper left", fontsize=9, frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    return {"map_with_intervals": figure}


DRAWN = (index,)


def of_pages() -> None:
    """Pictures from the code of the pages."""
    for draw in DRAWN:
        for name, figure in draw().items():
            save(figure, IMAGES / f"{name}.png")
    for page in GUIDES:
        if "explain" in stated_extras(page.read_text("utf-8")) and find_spec("shap") is None:
            print(page.name, "skipped: needs the extra explain")
            continue
        with tempfile.TemporaryDirectory() as drawn:
            print(page.name, run_guide(page, Path(drawn)))
            for picture in Path(drawn).glob("*.png"):
                shutil.copy(picture, IMAGES)


def main() -> None:
    import matplotlib

    matplotlib.use("Agg")
    sys.path.insert(0, str(DOCS.parent))
    of_pages()


if __name__ == "__main__":
    main()
