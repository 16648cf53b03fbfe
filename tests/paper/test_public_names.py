"""The experiments are a user of the library: they import nothing that is private to it."""

import ast
from pathlib import Path

import pytest

MODULES = sorted((Path(__file__).resolve().parents[2] / "paper").rglob("*.py"))


def imported(path):
    """Dotted names of everything that a module imports, at the top or lazily."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: f"{path.parent.name}.{path.stem}")
def test_nothing_private_is_imported_from_the_library(path):
    parts = [name.split(".") for name in imported(path)]
    private = [
        name
        for name in parts
        if name[0] == "holrr" and any(p.startswith("_") and p != "__version__" for p in name)
    ]
    assert private == []
