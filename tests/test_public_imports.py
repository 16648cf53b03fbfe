"""Which test files use names outside the documented reference.

Tests of public names survive a change of what is inside the package. Files that use other names are
listed here, each with its reason; a test fails where a file is added. Helpers (files that are not
`test_*.py`) may use what they need.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
REFERENCE = TESTS.parent / "docs" / "reference" / "index.rst"

# Files that use internal names for good, and why no public call shows the same.
ALLOWED: dict[str, str] = {
    "core/test_namespace.py": "factorisations in every array library, below and above the sizes at "
    "which their methods change",
    "core/test_tensor.py": "tensor products, HOSVD, HOOI and sums have no call of their own; their "
    "bounds and the monotone refinement are shown for tensors of every shape",
    "core/test_threads.py": "limits on threads that begin and end in any order",
    "model_selection/test_simplex_weights.py": "no call takes the Gram matrix of a mixture, and "
    "the optimum must hold for repeated, graded and scaled models that data seldom give",
    "model_selection/test_choice.py": "a way of choosing that an extension adds is listed in a "
    "dictionary of the module",
    "model_selection/test_large_searches.py": "small searches take the steps of large "
    "ones, and are compared with those that compute the errors of all ranks",
    "model_selection/test_sources.py": "sources of problems have no public call of their own; "
    "samples, sums and kernels are compared, and a fourth source is added",
    "penalized/test_solver_steps.py": "thresholding at small singular values and each step of the "
    "alternating solver are exact, which the objective of a fit shows to its tolerance only",
    "io/test_files.py": "the list of classes that files may name is no argument of load; it is "
    "compared with the public estimators",
    "io/test_saved_pipelines.py": "all transformers of chemotools on this list are saved",
}
MOST = 10


def documented(text: str) -> set[str]:
    """Names in the tables of the reference, without those of the section on internals."""
    public = re.split(r"^Internals\n-+$", text, flags=re.M)[0]
    tables = re.findall(r"^\.\. autosummary::\n((?:[ ]{3}.*\n|\n)+)", public, re.M)
    return {
        f"holrr.{name}"
        for table in tables
        for name in re.findall(r"^ {3}([A-Za-z_][\w.]*)$", table, re.M)
    }


PUBLIC = documented(REFERENCE.read_text(encoding="utf-8")) if REFERENCE.exists() else set()
# Packages of documented names, such as holrr.data.
PACKAGES = {name.rpartition(".")[0] for name in PUBLIC} | {"holrr"}
SPECIAL = {"holrr.__version__", "holrr.__all__", "holrr.__file__", "holrr.demo"}


def is_public(name: str) -> bool:
    """Whether a dotted name is documented, a package of such names, or an attribute of one."""
    if name in PACKAGES | SPECIAL:
        return True
    parts = name.split(".")
    return any(".".join(parts[:k]) in PUBLIC for k in range(2, len(parts) + 1))


def dotted(node: ast.AST) -> str:
    """The name that nested attributes spell, such as ``holrr.data.Labels``; empty for others."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        start = dotted(node.value)
        return f"{start}.{node.attr}" if start else ""
    return ""


def used(source: str) -> Iterator[str]:
    """Names of the library that a file imports, reads as attributes or replaces by their name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute):
            yield dotted(node)
        elif isinstance(node, ast.Call) and dotted(node.func).endswith((".setattr", ".patch")):
            first = node.args[0] if node.args else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value


def internal(source: str) -> set[str]:
    names = {name for name in used(source) if name.split(".")[0] == "holrr"}
    return {name for name in names if not is_public(name)}


FILES = {path.relative_to(TESTS).as_posix(): path for path in sorted(TESTS.rglob("test_*.py"))}
FOUND = {file: names for file, path in FILES.items() if (names := internal(path.read_text()))}


@pytest.mark.skipif(not PUBLIC, reason="the documentation is not in this copy")
def test_only_listed_files_use_internal_names():
    others = {file: names for file, names in FOUND.items() if file not in ALLOWED}
    assert others == {}, "use public names, or give the reason in ALLOWED"


@pytest.mark.skipif(not PUBLIC, reason="the documentation is not in this copy")
def test_allowed_files_are_few_and_need_it():
    assert len(ALLOWED) <= MOST
    assert set(ALLOWED) <= set(FOUND)
    assert all(reason for reason in ALLOWED.values())


def test_internal_names_are_found():
    source = (
        "import holrr\nfrom holrr import HOLRR, data\nfrom holrr.data import Labels, scores\n"
        "from holrr.core.tensor import unfold\nimport holrr.core.fit\n"
        "def test(monkeypatch):\n"
        "    holrr.HOLRR.fit(holrr.data.labels.same, holrr.streaming.memory_budget)\n"
        "    monkeypatch.setattr('holrr.streaming.disk.read', None)\n"
    )
    assert internal(source) == {
        "holrr.data.scores",
        "holrr.core.tensor.unfold",
        "holrr.core.fit",
        "holrr.data.labels",
        "holrr.data.labels.same",
        "holrr.streaming.disk.read",
    }


def test_documented_names_are_read():
    assert {"holrr.HOLRR", "holrr.data.Labels", "holrr.streaming.memory_budget"} <= PUBLIC
    assert "holrr.core" not in PACKAGES
    assert len(PUBLIC) > 60
    assert is_public("holrr.HOLRR.fit")
    assert not is_public("holrr.core")
