"""Run the code of the guides, and keep the pictures that it draws: ``python docs/pictures.py``.

The code of a guide is what stands in its ``pycon`` blocks, with what it prints; the tests run it in
the same way. Where a script of the same name lies beside a page, it draws the pictures whose code
would be in the way there. Of guides with ``python`` blocks, the pictures are drawn here from what
they made.
"""

from __future__ import annotations

import contextlib
import doctest
import re
import runpy
import shutil
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

DOCS = Path(__file__).resolve().parent
GUIDES = [page for page in sorted(DOCS.glob("*.md")) if "```pycon\n" in page.read_text("utf-8")]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def run_guide(page: Path, folder: Path) -> doctest.TestResults:
    """Run the blocks of a page one after the other, in a folder for what they write."""
    import matplotlib

    matplotlib.use("Agg")
    blocks = re.findall(r"```pycon\n(.*?)```", page.read_text("utf-8"), flags=re.DOTALL)
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, page.name, str(page), 0)
    with contextlib.chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("error")
        if page.with_suffix(".py").exists():
            runpy.run_path(str(page.with_suffix(".py")), run_name="__main__")
        return doctest.DocTestRunner(optionflags=FLAGS).run(test)


def after(page: str, n_blocks: int) -> dict[str, Any]:
    """The names that the first ``python`` blocks of a page leave."""
    text = (DOCS / page).read_text("utf-8")
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)[:n_blocks]:
        exec(block, names)
    return names


def kernels() -> dict[str, Any]:
    """One output of two searches, and the error for each width and penalty."""
    import matplotlib.pyplot as plt

    names = after("kernels.md", 2)
    X, Y, truth, search = (names[name] for name in ("X", "Y", "truth", "search"))
    ridge = names["KernelRLSCV"]().fit(X, Y)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    x = np.linspace(-3, 3, 300)[:, None]
    left.plot(X[:, 0], Y[:, 2, 2], ".", color="#b9bec6", ms=4, label="data")
    left.plot(x, truth(x)[:, 2, 2], color="#1f2328", lw=1.5, label="truth")
    for fit, style in ((ridge, ("#d1600e", "--")), (search, ("#1f5a99", "-"))):
        color, line = style
        name = type(fit).__name__
        left.plot(x, fit.predict(x)[:, 2, 2], color=color, ls=line, lw=1.8, label=name)
    left.set(xlabel="x", ylabel="output (2, 2)", ylim=(-12, 17))
    left.legend(loc="upper center", ncols=2, fontsize=8, frameon=False)

    k, a, *rank = search.best_index_
    error = search.cv_results_["mean_mse"][(slice(None), slice(None), *rank)]
    gammas = [kernel["gamma"] for kernel in search.kernels_]
    # A row for each width, all of the same height: nothing is cut where the scale begins.
    alphas, rows = search.alphas_, np.arange(len(gammas) + 1) - 0.5
    steps = np.sqrt(alphas[1:] * alphas[:-1])
    borders = [alphas[0] ** 2 / steps[0], *steps, alphas[-1] ** 2 / steps[-1]]
    top = np.nanmin(error) + 3 * np.nanmedian(error - np.nanmin(error))
    image = right.pcolormesh(borders, rows, error, cmap="viridis_r", vmax=top)
    right.plot(alphas[a], k, "o", color="#d1600e", mec="white", ms=8)
    right.set(xscale="log", xlabel="alpha", ylabel="gamma of the Gaussian kernel")
    right.set_yticks(range(len(gammas)), [f"{gamma:.2g}" for gamma in gammas])
    right.set_title(f"held-out error at rank {search.rank_}; the dot is the choice", fontsize=10)
    figure.colorbar(image, ax=right, extend="max")
    return {"kernel_search": figure}


DRAWN = (kernels,)


def main(folder: Path = DOCS / "images") -> None:
    import matplotlib

    matplotlib.use("Agg")
    for draw in DRAWN:
        for name, figure in draw().items():
            figure.savefig(folder / f"{name}.png", dpi=110)
            print(name)
    for page in GUIDES:
        with tempfile.TemporaryDirectory() as drawn:
            print(page.name, run_guide(page, Path(drawn)))
            for picture in Path(drawn).glob("*.png"):
                shutil.copy(picture, folder)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
