"""File of the finished units of an experiment, which are not computed again."""

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
    """Error that the units of a file were computed with other settings."""


class Store:
    """Append-only file of finished units. The first line has the settings.

    Parameters
    ----------
    path : Path
        Path of the file.
    config : dataclass instance
        Settings. Units of other settings are rejected.
    resume : bool, default=False
        Whether to continue from the units of the file. If False, the file is overwritten.

    Raises
    ------
    StoreMismatchError
        With ``resume=True``, if the file has other settings or another version.
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
                f"{self.path} has results of other settings or of another version. Omit --resume "
                "to start again, or choose another --out."
            )

    def load(self) -> dict[tuple[Any, ...], Table]:
        """Return the finished units and their rows."""
        done = {}
        for line in self.path.read_text(encoding="utf-8").splitlines()[1:]:
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:  # the run was interrupted while writing this line
                continue
            done[tuple(entry["unit"])] = entry["rows"]
        return done

    def append(self, unit: tuple[Any, ...], rows: list[Row]) -> None:
        """Append a finished unit."""
        line = json.dumps({"unit": unit, "rows": rows}, default=_plain)
        with self.path.open("r+b") as file:
            # After an incomplete line, start a new line.
            file.seek(-1, 2)
            cut_off = file.read(1) != b"\n"
            file.write((b"\n" if cut_off else b"") + line.encode() + b"\n")


def _plain(value: Any) -> Any:
    """Convert NumPy numbers and paths to types of JSON."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"Cannot write a value of type {type(value).__name__} as JSON.")
