"""Arrays from and to files: .npy, .npz, .csv, .tsv and, with pandas, .parquet."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO

import numpy as np

from ..io import check_writable, write_atomically
from ._errors import EXIT_MISSING, EXIT_OUTPUT, EXIT_USAGE, CommandError

__all__ = ["FORMATS", "check_file", "check_output", "read_array", "write_array", "writing"]

FORMATS = (
    "Arrays are read and written as .npy, .npz (FILE.npz:NAME where there are several), .csv,\n"
    ".tsv and, with pandas, .parquet."
)

# An array, and the names of its columns where the file has some.
Named = tuple[np.ndarray, list[str] | None]


def read_array(source: str) -> Named:
    """Read the array in a file.

    Parameters
    ----------
    source : str
        Path of a file; for an .npz file with several arrays ``FILE.npz:NAME``.

    Returns
    -------
    values : ndarray
        Real numbers. Of any order from .npy, which is mapped and not read, and .npz; a matrix from
        the other formats.
    names : list of str, or None
        Of the columns.
    """
    path, name = _split_name(source)
    check_file(path)
    read = _lookup(_READERS, path)
    try:
        values, names = read(path, name)
        if not isinstance(values, np.ndarray) or values.dtype.kind not in "biuf":
            what = getattr(values, "dtype", type(values).__name__)
            raise ValueError(f"it must hold real numbers; got {what}")
        return values, names
    except CommandError:
        raise
    except Exception as error:  # a file can be wrong in any way
        text = " ".join(str(error).split()) or type(error).__name__
        raise CommandError(f"{path} cannot be read: {text}") from error


def write_array(path: Path, values: np.ndarray) -> None:
    """Write an array; formats for matrices get one row a sample, flattened in C order."""
    write = _lookup(_WRITERS, path)
    with writing(path):
        write_atomically(path, lambda file: write(file, values))


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Failures to write are said to be so."""
    try:
        yield
    except OSError as error:
        raise CommandError(
            f"{path} cannot be written: {error.strerror or error}", EXIT_OUTPUT
        ) from error


def check_output(path: Path, inputs: Sequence[Any], *, array: bool = False) -> None:
    """Find out before the work whether its result can be written, and not over an input."""
    if array:
        _lookup(_WRITERS, path)
    for source in inputs:
        with suppress(OSError):  # one of the two is not there
            if os.path.samefile(_split_name(str(path))[0], _split_name(str(source))[0]):
                raise CommandError(f"-o {path} would replace the input {source}", EXIT_USAGE)
    with writing(path):
        check_writable(path)


def check_file(path: Path) -> None:
    """An input must be there."""
    if not path.is_file():
        raise CommandError(f"{path} {'is no regular file' if path.exists() else 'does not exist'}")


def _split_name(source: str) -> tuple[Path, str | None]:
    head, separator, name = source.rpartition(":")
    if separator and head.lower().endswith(".npz"):
        return Path(head), name
    return Path(source), None


def _lookup(table: dict[str, Any], path: Path) -> Callable[..., Any]:
    suffix = path.suffix.lower()
    if suffix not in table:
        raise CommandError(
            f"{path} has an unknown format {suffix!r}: known are {', '.join(table)}", EXIT_USAGE
        )
    return table[suffix]


# ---------------------------------------------------------------- readers


def _read_npy(path: Path, name: str | None) -> Named:
    loaded = _load(path, mmap_mode="r")
    if not isinstance(loaded, np.ndarray):
        raise ValueError("it is an .npz archive")
    return loaded, None


def _load(path: Path, **options: Any) -> Any:
    try:
        return np.load(path, allow_pickle=False, **options)
    except ValueError as error:
        if not re.search("pickle|Python objects", str(error)):
            raise
        raise ValueError("it is no file of numbers in the format of NumPy") from error


def _read_npz(path: Path, name: str | None) -> Named:
    loaded = _load(path)
    if isinstance(loaded, np.ndarray):
        raise ValueError("it is a single array in .npy format")
    with loaded as archive:
        names = list(archive.files)
        if name is None and len(names) == 1:
            name = names[0]
        if name is None or name not in names:
            wanted = "which array is meant" if name is None else f"there is no array {name!r}"
            raise CommandError(
                f"{path}: {wanted}; write {path}:NAME, where NAME is one of {', '.join(names)}"
            )
        return archive[name], None


def _read_text(path: Path, delimiter: str) -> Named:
    """Numbers in columns, perhaps below a line of names."""
    with path.open(encoding="utf-8-sig") as file:
        lines = _without_gaps(file)
        first = next(lines, "")
        names = _names(first, delimiter)
        start = first if names is None else next(lines, "")
        if not start:
            raise ValueError("it is empty" if names is None else "it has names and no numbers")
        n_columns = start.count(delimiter) + 1
        if names is not None and len(names) != n_columns:
            raise ValueError(f"line 1 has {len(names)} names, and line 2 {n_columns} columns")
        try:
            values = np.loadtxt(chain([start], lines), delimiter=delimiter, ndmin=2, comments=None)
        except ValueError as error:
            # NumPy counts rows, from zero or one; an editor counts lines from one.
            found = re.search(r"^(.*?) at row (\d+)(, column \d+)?", str(error))
            if found is None:
                raise
            line = int(found[2]) + (found[3] is not None) + (names is not None)
            raise ValueError(f"line {line}{found[3] or ''}: {found[1]}") from error
    return values, names


def _without_gaps(lines: Iterable[str]) -> Iterator[str]:
    """All lines up to blank ones at the end; a blank one elsewhere would shift the rows."""
    blank = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            blank = blank or number
        elif blank:
            raise ValueError(f"line {blank} is blank")
        else:
            yield line


_MISSING = {"", "na", "nan", "n/a", "#n/a", "null", "none", "-", "?", "."}


def _names(line: str, delimiter: str) -> list[str] | None:
    """The cells of a line of names; None for a line of numbers, some of which may be missing."""
    cells = [cell.strip() for row in csv.reader([line], delimiter=delimiter) for cell in row]
    there = [cell for cell in cells if cell.lower() not in _MISSING]
    words = [cell for cell in there if not _is_number(cell)]
    if not words:
        return None
    if len(words) < len(there):
        raise ValueError(f"line 1 is neither numbers nor names: it has {words[0]!r} beside numbers")
    return cells


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_parquet(path: Path, name: str | None) -> Named:
    with _parquet() as pandas:
        frame = pandas.read_parquet(path)
    names = [str(c) for c in frame.columns]
    texts = [c for c, dtype in zip(names, frame.dtypes, strict=True) if dtype.kind not in "iufb"]
    if texts:
        raise ValueError(f"columns that are not numbers: {', '.join(texts[:5])}")
    return frame.to_numpy(dtype=float), names


@contextmanager
def _parquet() -> Iterator[Any]:
    try:
        import pandas

        yield pandas
    except ImportError as error:
        needed = ".parquet files need pandas and pyarrow: pip install holrr[table]"
        raise CommandError(needed, EXIT_MISSING) from error


_READERS: dict[str, Callable[[Path, str | None], Named]] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".csv": lambda path, name: _read_text(path, ","),
    ".tsv": lambda path, name: _read_text(path, "\t"),
    ".parquet": _read_parquet,
}

# ---------------------------------------------------------------- writers


def _write_npy(file: BinaryIO, values: np.ndarray) -> None:
    # To a file proper NumPy writes by other ways, which cannot say why they failed.
    np.save(SimpleNamespace(write=file.write), values)


def _write_npz(file: BinaryIO, values: np.ndarray) -> None:
    np.savez_compressed(file, Y=values)


def _write_text(file: BinaryIO, values: np.ndarray, delimiter: str) -> None:
    np.savetxt(file, _flat(values), delimiter=delimiter, fmt="%.17g")


def _write_parquet(file: BinaryIO, values: np.ndarray) -> None:
    flat = _flat(values)
    with _parquet() as pandas:
        frame = pandas.DataFrame(flat, columns=[f"y{j}" for j in range(flat.shape[1])])
        frame.to_parquet(file, index=False)


def _flat(values: np.ndarray) -> np.ndarray:
    return values.reshape(len(values), -1)


_WRITERS: dict[str, Callable[[BinaryIO, np.ndarray], None]] = {
    ".npy": _write_npy,
    ".npz": _write_npz,
    ".csv": lambda file, values: _write_text(file, values, ","),
    ".tsv": lambda file, values: _write_text(file, values, "\t"),
    ".parquet": _write_parquet,
}
