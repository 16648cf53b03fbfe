"""Finished units of an experiment on disk, one line each, so that nothing is computed twice."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from holrr import __version__

from .tables import Row, Table

__all__ = ["Store", "StoreMismatchError"]


class StoreMismatchError(ValueError):
    """The units on disk were computed with other settings."""


class Store:
    """Append-only file of finished units under a first line that says the settings.

    Parameters
    ----------
    path : Path
        The file.
    config : dataclass instance
        The settings; units of other settings are refused.
    resume : bool, default=False
        Whether to go on from the units of the file. If not, the file starts anew.

    Raises
    ------
    StoreMismatchError
        With ``resume=True``, when the file was made with other settings or another version.
    """

    def __init__(self, path: Path, config: Any, *, resume: bool = False):
        self.path = path
        self._header = json.dumps(
            {"version": __version__, "config": asdict(config)}, sort_keys=True, default=_plain
        )
        if resume and path.exists():
            self._check_header()
        else:
            path.write_text(self._header + "\n", encoding="utf-8")

    def _check_header(self) -> None:
        lines = self.path.read_text(encoding="utf-8").splitlines()
        if not lines or lines[0] != self._header:
            raise StoreMismatchError(
                f"{self.path} holds results of other settings or of another version: leave out "
                "--resume to start anew, or choose another --out."
            )

    def load(self) -> dict[tuple[Any, ...], Table]:
        """The finished units and their rows."""
        done = {}
        for line in self.path.read_text(encoding="utf-8").splitlines()[1:]:
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:  # the run ended in the midst of this line
                continue
            done[tuple(entry["unit"])] = entry["rows"]
        return done

    def append(self, unit: tuple[Any, ...], rows: list[Row]) -> None:
        """Keep a finished unit."""
        line = json.dumps({"unit": unit, "rows": rows}, default=_plain)
        with self.path.open("r+b") as file:
            # A line that was cut off would swallow this one: begin on a fresh line.
            file.seek(-1, 2)
            cut_off = file.read(1) != b"\n"
            file.write((b"\n" if cut_off else b"") + line.encode() + b"\n")


def _plain(value: Any) -> Any:
    """NumPy numbers and paths in the words of JSON."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"cannot write a {type(value).__name__} to disk")
