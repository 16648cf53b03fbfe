"""Arrays from and to files: .npy, .npz, .csv, .tsv and, with pandas, .parquet."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ._errors import EXIT_MISSING, EXIT_OUTPUT, EXIT_USAGE, CommandError

__all__ = ["FORMATS", "check_writable", "read_array", "write_array"]

FORMATS = (
    "Arrays are read and written as .npy, .npz (FILE.npz:NAME where there are several), .csv,\n"
    ".tsv and, with pandas, .parquet."
)


def read_array(source: str) -> np.ndarray:
    """Read the array in a file.

    Parameters
    ----------
    source : str
        Path of a file; for an .npz file with several arrays ``FILE.npz:NAME``.

    Returns
    -------
    ndarray
        Of any order from .npy and .npz; a matrix from the other formats.
    """
    path, name = _split_name(source)
    if not path.is_file():
        kind = "is a folder" if path.is_dir() else "does not exist"
        raise CommandError(f"{path} {kind}")
    read = _lookup(_READERS, path)
    try:
        return read(path, name)
    except CommandError:
        raise
    except (OSError, ValueError, EOFError) as error:
        raise CommandError(f"{path} cannot be read: {' '.join(str(error).split())}") from error


def write_array(path: Path, values: np.ndarray) -> None:
    """Write an array; formats for matrices get one row a sample, flattened in C order."""
    write = _lookup(_WRITERS, path)
    partial = path.with_name(f".{path.name}.part{os.getpid()}")
    try:
        write(partial, values)
        partial.replace(path)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}", EXIT_OUTPUT) from error
    finally:
        partial.unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """Find out before the work whether its result can be written."""
    folder = path.parent
    if not folder.is_dir():
        raise CommandError(f"the folder {folder} does not exist", EXIT_OUTPUT)
    if path.is_dir():
        raise CommandError(f"{path} is a folder", EXIT_OUTPUT)
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise CommandError(f"{path} cannot be written: permission denied", EXIT_OUTPUT)


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


def _read_npy(path: Path, name: str | None) -> np.ndarray:
    loaded = _load(path)
    if not isinstance(loaded, np.ndarray):
        raise ValueError("it is an .npz archive")
    return loaded


def _load(path: Path) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except ValueError as error:
        if "pickle" not in str(error):
            raise
        raise ValueError("it is no file of numbers in the format of NumPy") from error


def _read_npz(path: Path, name: str | None) -> np.ndarray:
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
        return archive[name]


def _read_text(path: Path, delimiter: str) -> np.ndarray:
    """Numbers in columns; a first line that holds anything but numbers is a header."""
    with path.open(encoding="utf-8-sig") as file:
        first = file.readline()
    if not first.strip():
        raise ValueError("it is empty")
    header = not all(map(_is_number, first.strip().split(delimiter)))
    skip = int(header)
    try:
        return np.loadtxt(
            path,
            delimiter=delimiter,
            skiprows=skip,
            ndmin=2,
            encoding="utf-8-sig",
            comments=None,
        )
    except ValueError as error:
        # NumPy counts rows of data from zero; an editor counts lines from one.
        found = re.search(r"(.*) at row (\d+), column (\d+)", str(error))
        if found is None:
            raise
        line = int(found[2]) + 1 + skip
        raise ValueError(f"line {line}, column {found[3]}: {found[1]}") from error


def _is_number(text: str) -> bool:
    try:
        float(text.strip().strip('"'))
    except ValueError:
        return False
    return True


def _read_parquet(path: Path, name: str | None) -> np.ndarray:
    try:
        frame = _pandas().read_parquet(path)
    except ImportError as error:
        raise CommandError(_NEEDS_PARQUET, EXIT_MISSING) from error
    texts = [str(c) for c in frame.columns if frame[c].dtype.kind not in "iufb"]
    if texts:
        raise ValueError(f"columns that are not numbers: {', '.join(texts[:5])}")
    return frame.to_numpy(dtype=float)


_NEEDS_PARQUET = ".parquet files need pandas and pyarrow: pip install holrr[table]"


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise CommandError(_NEEDS_PARQUET, EXIT_MISSING) from error
    return pandas


_READERS: dict[str, Callable[[Path, str | None], np.ndarray]] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".csv": lambda path, name: _read_text(path, ","),
    ".tsv": lambda path, name: _read_text(path, "\t"),
    ".parquet": _read_parquet,
}

# ---------------------------------------------------------------- writers


def _write_npy(path: Path, values: np.ndarray) -> None:
    with path.open("wb") as file:  # given a path, numpy would add a suffix
        np.save(file, values)


def _write_npz(path: Path, values: np.ndarray) -> None:
    with path.open("wb") as file:
        np.savez_compressed(file, Y=values)


def _write_text(path: Path, values: np.ndarray, delimiter: str) -> None:
    np.savetxt(path, _flat(values), delimiter=delimiter, fmt="%.17g")


def _write_parquet(path: Path, values: np.ndarray) -> None:
    flat = _flat(values)
    frame = _pandas().DataFrame(flat, columns=[f"y{j}" for j in range(flat.shape[1])])
    try:
        frame.to_parquet(path, index=False)
    except ImportError as error:
        raise CommandError(_NEEDS_PARQUET, EXIT_MISSING) from error


def _flat(values: np.ndarray) -> np.ndarray:
    return values.reshape(len(values), -1)


_WRITERS: dict[str, Callable[[Path, np.ndarray], None]] = {
    ".npy": _write_npy,
    ".npz": _write_npz,
    ".csv": lambda path, values: _write_text(path, values, ","),
    ".tsv": lambda path, values: _write_text(path, values, "\t"),
    ".parquet": _write_parquet,
}
