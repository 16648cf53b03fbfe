"""Run the code of pages with only the extras that the pages state.

    python -m docs.pages docs/labels.md [MORE PAGES] [FOLDER]

Pages that state the same extras can share a process, which imports the packages once. Each page
then has a folder of its own name for the files that it writes.

The line ``*Extras used on this page: `plot`, `xarray`.*`` below the title of a page names extras of
holrr, and packages that are no extra, such as `torch`. All other optional packages are hidden: an
import of one of them fails as if it were not installed. ``pycon`` blocks are doctests. ``python``
blocks are executed, and their output is that of the ``text`` block that follows. A block below a
comment ``<!-- not run: REASON -->`` is not run.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import sys
import tempfile
import warnings
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

__all__ = [
    "BLOCKS",
    "EXTRAS_LINE",
    "OTHERS",
    "hidden_modules",
    "hide",
    "run_blocks",
    "stated_extras",
]

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
EXTRAS_LINE = re.compile(r"^\*Extras used on this page: (.*)\.\*$", re.M)
BLOCKS = re.compile(
    r"(?P<skip><!-- not run: .+? -->\n+)?^ *```(?P<kind>pycon|python)\n(?P<code>.*?)^ *```$"
    r"(?:\n+```text\n(?P<output>.*?)^```$)?",
    re.M | re.S,
)
FOR_DEVELOPERS = ("all", "bench", "dev", "docs", "lint", "release", "test")
PRESENT = {"packaging", "setuptools"}  # used here, or by the environment itself
# Optional packages that are no extra.
OTHERS = ("torch", "himalaya", "tensorly", "polars", "shap", "cupy", "jax", "mlflow")


def stated_extras(text: str) -> list[str]:
    """The extras and packages that a page states.

    Examples
    --------
    >>> stated_extras("# Title\\n\\n*Extras used on this page: `plot`, `torch`.*\\n")
    ['plot', 'torch']
    """
    line = EXTRAS_LINE.search(text)
    return re.findall(r"`([\w-]+)`", line[1]) if line else []


def hidden_modules(extras: list[str]) -> set[str]:
    """Top-level modules of optional packages that none of these extras brings."""
    known = set(metadata.metadata("holrr").get_all("Provides-Extra") or [])
    optional = [extra for extra in known if extra not in FOR_DEVELOPERS]
    allowed = _packages([e for e in extras if e in known], [e for e in extras if e not in known])
    names = _packages(optional, list(OTHERS)) - allowed - PRESENT
    modules: set[str] = set()
    for module, packages in metadata.packages_distributions().items():
        if all(_normal(package) in names for package in packages):
            modules.add(module)
    return modules


def _packages(extras: list[str], others: list[str]) -> set[str]:
    """Names of the packages that an install with these extras and packages brings."""
    found: set[str] = set()
    waiting = [("holrr", tuple(extras)), *((name, ()) for name in others)]
    while waiting:
        name, wanted = waiting.pop()
        try:
            lines = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        found.add(_normal(name))
        for requirement in map(Requirement, lines):
            marker = requirement.marker
            needed = marker is None or any(marker.evaluate({"extra": e}) for e in (*wanted, ""))
            if needed and _normal(requirement.name) not in found:
                waiting.append((requirement.name, tuple(requirement.extras)))
    return found


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


class Hiding:
    """A finder of modules that does not find some of them."""

    def __init__(self, finder: Any, names: set[str]) -> None:
        self.finder, self.names = finder, names

    def find_spec(self, name: str, *more: Any) -> Any:
        hidden = name.partition(".")[0] in self.names
        return None if hidden else self.finder.find_spec(name, *more)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.finder, name)


def hide(modules: set[str]) -> None:
    """Make imports of these modules fail, in this process, as if they were not installed."""
    loaded = modules & set(sys.modules)
    if loaded:
        raise RuntimeError(f"already imported: {sorted(loaded)}")
    sys.meta_path[:] = [Hiding(finder, modules) for finder in sys.meta_path]


def run_blocks(page: Path, folder: Path) -> tuple[int, int]:
    """Run the blocks of a page one after the other, in a folder for the files that they write.

    Returns
    -------
    failed, attempted : int
        Numbers of statements of ``pycon`` blocks and of ``python`` blocks. Failures are printed.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    failed = attempted = 0
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    with contextlib.chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("error")
        for block in BLOCKS.finditer(page.read_text("utf-8")):
            if block["skip"]:
                continue
            if block["kind"] == "pycon":
                test = doctest.DocTestParser().get_doctest(block["code"], names, page.name, None, 0)
                result = runner.run(test, clear_globs=False)
                names = test.globs
                failed, attempted = failed + result.failed, attempted + result.attempted
                continue
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(block["code"], page.name, "exec"), names)
            attempted += 1
            if block["output"] is not None and printed.getvalue() != block["output"]:
                print(f"{page.name} prints\n{printed.getvalue()}instead of\n{block['output']}")
                failed += 1
    return failed, attempted


def main(*words: str) -> int:
    """Run pages in a folder, by default a temporary one; the exit code is 1 if code failed."""
    os.environ["MPLBACKEND"] = "Agg"
    paths = [Path(word).resolve() for word in words if word.endswith(".md")]
    extras = {frozenset(stated_extras(path.read_text("utf-8"))) for path in paths}
    if len(extras) != 1:
        raise ValueError("give pages that state the same extras")
    hide(hidden_modules(list(*extras)))
    failures = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary if words[-1].endswith(".md") else words[-1]).resolve()
        for path in paths:
            own = folder / path.stem
            own.mkdir()
            failed, attempted = run_blocks(path, own)
            print(f"{path.name}: {failed} of {attempted} failed")
            all_skipped = all(block["skip"] for block in BLOCKS.finditer(path.read_text("utf-8")))
            failures += failed > 0 or (attempted == 0 and not all_skipped)
            if "matplotlib.pyplot" in sys.modules:
                sys.modules["matplotlib.pyplot"].close("all")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
