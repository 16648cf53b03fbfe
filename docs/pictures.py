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


DRAWN: tuple = ()


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
