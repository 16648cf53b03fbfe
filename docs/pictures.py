"""Run the code of the guides, and keep the pictures that it draws: ``python docs/pictures.py``.

The code of a guide is what stands in its ``pycon`` blocks, with what it prints; the tests run it in
the same way. Where a script of the same name lies beside a page, it draws the pictures whose code
would be in the way there.
"""

from __future__ import annotations

import contextlib
import doctest
import re
import runpy
import shutil
import tempfile
import warnings
from pathlib import Path

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


def main() -> None:
    for page in GUIDES:
        with tempfile.TemporaryDirectory() as folder:
            print(page.name, run_guide(page, Path(folder)))
            for picture in Path(folder).glob("*.png"):
                shutil.copy(picture, DOCS / "images")


if __name__ == "__main__":
    main()
