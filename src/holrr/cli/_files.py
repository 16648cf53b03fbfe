"""Names of files and of variables in files, and checks before reading and writing."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..io import check_writable
from ._errors import EXIT_OUTPUT, EXIT_USAGE, CommandError

__all__ = ["FORMATS", "Place", "check_file", "check_output", "lookup", "reading"]
__all__ += ["writing"]

FORMATS = (
    "Arrays are read and written as .npy, .npz, .nc and .zarr (FILE.nc:NAME for one of several\n"
    "arrays, FILE.nc:A,B for some), tables as .csv, .tsv, .xlsx, .parquet and .feather."
)
_WITH_NAMES = (".npz", ".nc", ".zarr", ".xlsx")


class Place:
    """A file, or a variable in it: ``FILE`` or ``FILE:NAME``, as on the command line."""

    def __init__(self, text: str):
        self.text, self.path, self.name = text, Path(text), None
        head, separator, name = text.rpartition(":")
        if separator and head.lower().endswith(_WITH_NAMES):
            self.path, self.name = Path(head), name

    def __str__(self) -> str:
        return self.text

    @property
    def suffix(self) -> str:
        """Suffix of the file name, which determines the format."""
        return self.path.suffix.lower()


def lookup(table: dict[str, Any], place: Place) -> Any:
    """Return the entry of a table for the format of a file."""
    if place.suffix not in table:
        raise CommandError(
            f"{place} has an unknown format {place.suffix!r}; the formats are {', '.join(table)}",
            EXIT_USAGE,
        )
    return table[place.suffix]


def check_file(path: Path) -> None:
    """Raise an error if an input file does not exist. A Zarr store is a folder."""
    if not path.is_file() and not (path.suffix.lower() == ".zarr" and path.is_dir()):
        raise CommandError(
            f"{path} {'is not a regular file' if path.exists() else 'does not exist'}"
        )


def check_output(output: Place, inputs: Sequence[Any]) -> None:
    """Raise an error if the output cannot be written or would replace an input.

    Commands check the output before they compute anything.
    """
    for source in inputs:
        with suppress(OSError):  # one of the two files does not exist
            if os.path.samefile(output.path, Place(str(source)).path):
                raise CommandError(f"-o {output} would replace the input {source}", EXIT_USAGE)
    with writing(output.path):
        # A store is a folder, which replaces an older folder.
        check_writable(output.path / "zarr.json" if _is_store(output.path) else output.path)


def _is_store(path: Path) -> bool:
    marks = ("zarr.json", ".zgroup", ".zarray")
    return path.suffix.lower() == ".zarr" and any((path / mark).is_file() for mark in marks)


@contextmanager
def reading(place: Place) -> Iterator[None]:
    """Add the name of the file to errors that occur while it is read."""
    try:
        yield
    except (CommandError, ImportError):
        raise
    except Exception as error:
        why = " ".join(str(error).split()) or type(error).__name__
        if isinstance(error, UnicodeDecodeError):
            why = "its text is not in UTF-8; save it as UTF-8 (in a spreadsheet, CSV UTF-8)"
        raise CommandError(f"{place.path} cannot be read: {why}") from error


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Add the name of the file to errors that occur while it is written."""
    try:
        yield
    except OSError as error:
        raise CommandError(
            f"{path} cannot be written: {error.strerror or error}", EXIT_OUTPUT
        ) from error
