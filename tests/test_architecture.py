"""Which packages import which, and where ARCHITECTURE.md links to, read from the source itself."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "holrr"
FILES = sorted(SOURCE.rglob("*.py"))
# The build reads the version from a module of its own; everybody may.
FOR_EVERYBODY = {"holrr._version"}


def name_of(path: Path) -> str:
    parts = ("holrr", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in FILES}


def package_of(module: str) -> str:
    """The package of a module; ``holrr`` for modules outside of the packages."""
    parts = module.split(".")
    return ".".join(parts[:2]) if len(parts) > 2 or (SOURCE / parts[-1]).is_dir() else parts[0]


def for_types_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes, those inside functions too, but what is there for type checkers only."""
    for child in ast.iter_child_nodes(node):
        if for_types_only(child):
            yield from (n for other in child.orelse for n in (other, *statements(other)))
        else:
            yield child
            yield from statements(child)


def imported(module: str, path: Path) -> set[str]:
    """Modules of the library that a module imports, at once or later."""
    is_package = path.name == "__init__.py"
    found: set[str] = set()
    for node in statements(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = module.split(".")
            base = base[: len(base) - node.level + is_package] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            found |= {origin, *(f"{origin}.{alias.name}" for alias in node.names)}
    return {name for name in found if name in MODULES}


IMPORTS = {module: imported(module, path) for module, path in MODULES.items()}


def test_imports_inside_functions_are_found(tmp_path):
    """Imports inside functions, relative and absolute ones, but none for types only."""
    path = tmp_path / "some.py"
    path.write_text(
        "from typing import TYPE_CHECKING\n"
        "import holrr.core.state\n"
        "if TYPE_CHECKING:\n    from .linear import estimators\n"
        "def f():\n    from ..data import arrays\n    from .tensor import unfold\n"
    )
    expected = {"holrr.core.state", "holrr.data", "holrr.data.arrays", "holrr.core.tensor"}
    assert imported("holrr.core.some", path) == expected


def test_every_module_was_read():
    assert len(MODULES) > 50
    assert IMPORTS["holrr.core.tensor"] >= {"holrr.core.namespace"}
    assert package_of("holrr.core") == package_of("holrr.core.tensor") == "holrr.core"
    assert package_of("holrr.base") == package_of("holrr") == "holrr"


@pytest.mark.parametrize("module", [m for m in MODULES if package_of(m) == "holrr.core"])
def test_the_core_imports_nothing_but_itself(module):
    assert {m for m in IMPORTS[module] if package_of(m) != "holrr.core"} == set()


def test_io_imports_only_the_core():
    """So data, streaming and estimators can import it without a cycle."""
    assert {package_of(other) for other in IMPORTS["holrr.io"] - FOR_EVERYBODY} <= {"holrr.core"}


@pytest.mark.parametrize("module", MODULES)
def test_no_package_imports_a_private_module_of_another(module):
    private = {
        other
        for other in IMPORTS[module] - FOR_EVERYBODY
        if package_of(other) != package_of(module)
        and any(part.startswith("_") for part in other.split("."))
    }
    assert private == set()


# ---------------------------------------------------------------- ARCHITECTURE.md

LINK = re.compile(r"\[`?([^\]`]+)`?\]\((src/holrr/[\w/]+\.py)(?:#L(\d+))?\)")


@cache
def definitions(path: Path) -> dict[str, range]:
    """The lines of functions, classes and methods, by `name`, `Class.name` and `module.name`."""
    found: dict[str, range] = {}

    def visit(node: ast.AST, outer: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                lines = range(child.lineno, (child.end_lineno or child.lineno) + 1)
                for name in (child.name, f"{outer}{child.name}", f"{path.stem}.{child.name}"):
                    found.setdefault(name, lines)
                if isinstance(child, ast.ClassDef):
                    visit(child, f"{child.name}.")

    visit(ast.parse(path.read_text(encoding="utf-8")), "")
    return found


def broken_links(text: str, root: Path) -> list[str]:
    """Links to files that do not define the name shown, at that line if one is given."""
    broken = []
    for name, file, line in LINK.findall(text):
        path = root / file
        found = definitions(path).get(name.removesuffix("()")) if path.is_file() else None
        if found is None or (line and int(line) not in found):
            broken.append(f"[{name}]({file}{'#L' * bool(line)}{line})")
    return broken


def test_broken_links_are_found(tmp_path):
    (tmp_path / "src" / "holrr").mkdir(parents=True)
    (tmp_path / "src" / "holrr" / "a.py").write_text("class A:\n    def f(self):\n        pass\n")
    good = (
        "[`A`](src/holrr/a.py) [`A.f`](src/holrr/a.py#L2) [a.f](src/holrr/a.py) [`f()`](docs/x.md)"
    )
    assert broken_links(good, tmp_path) == []
    bad = "[`g`](src/holrr/a.py) [`A`](src/holrr/b.py) [`f`](src/holrr/a.py#L1)"
    assert len(broken_links(bad, tmp_path)) == 3


def test_the_links_of_the_map_lead_to_definitions():
    page = ROOT / "ARCHITECTURE.md"
    if not page.exists():
        pytest.skip("there is no ARCHITECTURE.md")
    text = page.read_text(encoding="utf-8")
    assert len(LINK.findall(text)) >= 10
    assert broken_links(text, ROOT) == []
    files = re.findall(r"\]\(([^)#]+)", text)
    assert [file for file in files if "://" not in file and not (ROOT / file).exists()] == []
