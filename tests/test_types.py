"""Types of the public interface, as a type checker sees them in a program that uses the library."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import typed_use

ROOT = Path(__file__).parents[1]


def check(source: str | Path, *options: str) -> str:
    """Return what ``mypy --strict`` prints about a program, without errors inside the library."""
    pytest.importorskip("mypy", reason="mypy is not installed")
    program = [str(source)] if isinstance(source, Path) else ["-c", source]
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent"]
    found = subprocess.run(
        [*command, "--config-file=", "--cache-dir", str(ROOT / ".mypy_cache"), *options, *program],
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stdout + found.stderr


def test_the_program_runs():
    assert typed_use.main()["score"] > 0.5


@pytest.mark.slow
def test_a_program_passes_the_strict_type_checker():
    assert "no issues found" in check(Path(typed_use.__file__))


@pytest.mark.slow
def test_wrong_arguments_are_found():
    found = check("from holrr import HOLRRCV\nHOLRRCV(rank=2)\nHOLRRCV(selection='most')\n")
    assert '"rank"' in found
    assert '"selection"' in found
    assert "Found 2 errors" in found
