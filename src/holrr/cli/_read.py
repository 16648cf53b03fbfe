"""Files to arrays, tables and labelled grids: NumPy, pandas and xarray read them."""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from ..data.pipelines import last_step
from ..extras import need
from ._errors import EXIT_USAGE, CommandError, note, some

__all__ = ["FORMATS", "Place", "fingerprint", "read_inputs", "read_pair", "title"]

FORMATS = (
    "Arrays are read and written as .npy, .npz, .nc and .zarr (FILE.nc:NAME for one of several\n"
    "arrays, FILE.nc:A,B for some), tables as .csv, .tsv, .xlsx, .parquet and .feather."
)
TABLES = (".csv", ".tsv", ".xlsx", ".parquet", ".feather")
_WITH_NAMES = (".npz", ".nc", ".zarr", ".xlsx")
# Largest number of header lines that are recognised without --header, and lines that are looked at.
_MOST_LINES, _LOOKED_AT = 3, 5
# Largest number of bytes of outputs of which a checksum is computed.
_MOST_READ = 2**28
_MISSING = {"", "na", "n/a", "nan", "null", "none"}


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


# ---------------------------------------------------------------- inputs and outputs


def read_pair(options: argparse.Namespace, model: Any = None) -> tuple[Any, Any, Any]:
    """Read inputs, outputs and, with --groups, groups of the samples.

    Parameters
    ----------
    options : Namespace
    model : estimator or Pipeline, optional
        Fitted model, whose inputs and outputs are taken from a table by name.
    """
    headers = options.header or [None]
    X = _read(options.X, options, headers[0], model)
    one = options.Y is None or (options.Y == options.X and _is_table(X))
    Y = X if one else _read(options.Y, options, headers[-1], model)
    groups = _groups(options, {options.X: X, options.Y or options.X: Y})
    if not one:
        X, Y = _with_common_labels(X, Y)
        X = _columns(X, options.inputs, "--inputs", options.X)
        Y = _columns(Y, options.outputs, "--outputs", options.Y)
        return _of_model(X, model, options.X), _outputs(Y, options), groups
    known = _known_outputs(model)
    if not _is_table(X) or not (options.inputs or options.outputs or known):
        raise CommandError(
            "Y is missing: give a second file, or one table and --outputs (or --inputs) for its "
            "columns",
            EXIT_USAGE,
        )
    inputs = _found(X, options.inputs, "--inputs") if options.inputs else None
    outputs = _found(X, options.outputs, "--outputs") if options.outputs else None
    if outputs is None and inputs is None:
        outputs = [c for c in X.columns if title(c) in known]
    rest = [c for c in X.columns if title(c) != options.groups]
    if inputs is None:
        inputs = [c for c in rest if c not in set(outputs or ())]
    if outputs is None:
        outputs = [c for c in rest if c not in set(inputs)]
    both = [title(c) for c in inputs if c in set(outputs)]
    if both:
        raise CommandError(
            f"columns are both inputs and outputs: {some(both)}; select each column once, with "
            f"--inputs or --outputs"
        )
    if not inputs or not outputs:
        kind, option = ("outputs", "--inputs") if inputs else ("inputs", "--outputs")
        raise CommandError(f"no column is left for the {kind}; select fewer columns with {option}")
    return _of_model(X[inputs], model, options.X), _outputs(X[outputs], options), groups


def read_inputs(options: argparse.Namespace, model: Any) -> Any:
    """Read inputs, with the columns of a fitted model in the order of its fit."""
    X = _read(options.X, options, (options.header or [None])[0], model)
    return _of_model(_columns(X, options.inputs, "--inputs", options.X), model, options.X)


def fingerprint(Y: Any) -> str | None:
    """Return a checksum of outputs, which identifies the training data of a model.

    It is None for data of Dask, and for large files, which are not read for this.
    """
    arrays = list(Y.data_vars.values()) if hasattr(Y, "data_vars") else [Y]
    digest = hashlib.sha256()
    for A in arrays:
        if hasattr(getattr(A, "data", None), "dask") or getattr(A, "nbytes", 0) > _MOST_READ:
            return None
        values = np.ascontiguousarray(np.asarray(A), dtype=np.float64)
        digest.update(str(values.shape).encode())
        digest.update(values.data)
    return digest.hexdigest()


def _of_model(X: Any, model: Any, name: str) -> Any:
    """Return the columns of a table that the model was fitted with, in the order of the fit."""
    known = [str(n) for n in getattr(model, "feature_names_in_", ())]
    if not _is_table(X):
        return X
    if model is None or X.columns.nlevels > 1 or not known:
        return X if _takes_text(model) else _numbers(X, name)
    titles = {title(c): c for c in X.columns}
    missing = [n for n in known if n not in titles]
    if missing:
        unknown = [n for n in titles if n not in set(known)]
        others = f"; it has {some(unknown)} besides" if unknown else ""
        raise CommandError(
            f"{name} lacks columns that the model was fitted with: {some(missing)}{others} (see "
            f"--inputs, --index-col and --header)"
        )
    left_out = [n for n in titles if n not in set(known)]
    if left_out:
        note(f"columns of {name} that the model was not fitted with are left out: {some(left_out)}")
    X = X[[titles[n] for n in known]]
    return X if _takes_text(model) else _numbers(X, name)


def _takes_text(model: Any) -> bool:
    """Return whether a model has steps of its own that may convert text to numbers."""
    return hasattr(model, "steps")


def _known_outputs(model: Any) -> set[str]:
    """Return the names of the outputs of a model that was fitted to a table."""
    labels = getattr(last_step(model), "labels_", None)
    columns: tuple[Any, ...] = getattr(labels, "columns", ())
    return set(map(str, columns[0])) if len(columns) == 1 else set()


def _outputs(Y: Any, options: argparse.Namespace) -> Any:
    if not _is_table(Y):
        return Y
    Y = _numbers(Y, options.Y or options.X)
    if Y.columns.nlevels > 1:
        Y.columns = Y.columns.remove_unused_levels()
        if np.prod(Y.columns.levshape) != Y.shape[1]:  # as with a line of units
            Y.columns = [title(c) for c in Y.columns]
            names = some(list(Y.columns))
            note(f"the header lines of the outputs are not a grid; the outputs are {names}")
    return Y


def _groups(options: argparse.Namespace, sources: dict[str, Any]) -> Any:
    """Return the groups of the samples: a column or a coordinate of X or Y, or a file."""
    name = getattr(options, "groups", None)
    if name is None:
        return None
    for file, source in sources.items():
        if _is_table(source):
            found = [c for c in source.columns if title(c) == name]
            if found:
                return source[found[0]].to_numpy()
        elif hasattr(source, "coords"):
            try:
                groups = np.asarray(source[name])
            except (KeyError, AttributeError):
                continue
            if groups.ndim != 1:
                raise CommandError(f"--groups: {name!r} of {file} is not along the samples")
            return groups
    if not Path(name).exists():
        raise CommandError(
            f"--groups: {name!r} is neither a column or coordinate of {' or '.join(sources)} nor a "
            f"file"
        )
    groups = _read(name, options, None, None)
    if _is_table(groups) and groups.shape[1] != 1:
        raise CommandError(f"--groups: {name} must have one column; it has {groups.shape[1]}")
    return np.ravel(np.asarray(groups))


# ---------------------------------------------------------------- columns


def title(column: Any) -> str:
    """Return the name of a column; the levels of a column with several are joined by a slash."""
    return "/".join(map(str, column)) if isinstance(column, tuple) else str(column)


def _is_table(data: Any) -> bool:
    return hasattr(data, "columns")


def _columns(data: Any, pattern: str | None, option: str, name: str) -> Any:
    if pattern is None:
        return data
    if not _is_table(data):
        raise CommandError(f"{option}: {name} is not a table", EXIT_USAGE)
    return data[_found(data, pattern, option)]


def _found(table: Any, pattern: str, option: str) -> list[Any]:
    """Return the columns that a list of names, patterns and ranges selects, in the given order."""
    titles = {title(c): c for c in table.columns}
    found: dict[str, None] = {}
    for part in pattern.split(","):
        matches = [part] if part in titles else [t for t in titles if fnmatchcase(t, part)]
        matches = matches or _in_range(part, list(titles))
        if not matches:
            raise CommandError(
                f"{option}: no column matches {part!r}; the columns are {some(list(titles))}"
            )
        found |= dict.fromkeys(matches)
    return [titles[t] for t in found]


def _in_range(part: str, titles: list[str]) -> list[str]:
    """Return the columns from one name to another, or those whose names are numbers in a range."""
    first, colon, last = part.partition(":")
    if not colon:
        return []
    if first in titles and last in titles:
        return titles[titles.index(first) : titles.index(last) + 1]
    if not all(end == "" or _is_number(end) for end in (first, last)):
        return []
    low, high = float(first or -np.inf), float(last or np.inf)
    return [t for t in titles if _is_number(t) and low <= float(t) <= high]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _numbers(table: Any, name: str) -> Any:
    """Return a table of numbers, or raise an error that names the other columns."""
    kinds = {title(c): dtype for c, dtype in zip(table.columns, table.dtypes, strict=True)}
    bad = [f"{column!r}" for column, dtype in kinds.items() if dtype.kind not in "iufb"]
    if bad:
        raise CommandError(
            f"{name} has columns that are not numbers: {some(bad)}; leave them out with --inputs "
            f"or --outputs, name row labels with --index-col, or a decimal comma with --decimal ,"
        )
    return table.astype(np.float64)


# ---------------------------------------------------------------- files


@contextmanager
def _reading(place: Place) -> Iterator[None]:
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


def _read(text: str, options: argparse.Namespace, header: int | None, model: Any) -> Any:
    """Read a file as an array, a table or an object of xarray."""
    place = Place(text)
    known = (".npy", ".npz", ".nc", ".zarr", *TABLES)
    if place.suffix not in known:
        raise CommandError(
            f"{place} has an unknown format {place.suffix!r}; the formats are {', '.join(known)}",
            EXIT_USAGE,
        )
    if not place.path.exists():
        raise CommandError(f"{place.path} does not exist")
    with _reading(place):
        if place.suffix == ".npy":
            return np.load(place.path, mmap_mode="r", allow_pickle=False)
        if place.suffix == ".npz":
            return _one_of(place, np.load(place.path, allow_pickle=False))
        if place.suffix in TABLES:
            return _table(place, options, header, model)
        return _labelled(place)


def _one_of(place: Place, arrays: Any) -> np.ndarray:
    names = list(arrays)
    if place.name is None and len(names) == 1:
        return arrays[names[0]]
    if place.name not in names:
        raise CommandError(
            f"{place.path} contains the arrays {some(names)}; write {place.path}:{names[0]} for one"
        )
    return arrays[place.name]


def _labelled(place: Place) -> Any:
    """Read one or several variables of a NetCDF file or a Zarr store."""
    xarray = need("xarray", f"{place.suffix} files need xarray", "xarray")
    group, _, names = (place.name or "").rpartition("/")
    is_store = place.suffix == ".zarr"
    # Chunks of Dask are read when they are needed; without Dask the file is read into memory.
    chunks: dict[str, Any] = {"chunks": {}} if _has_dask() and _is_large(place.path) else {}
    engine = "zarr" if is_store else "h5netcdf"
    data = xarray.open_dataset(place.path, engine=engine, group=group or None, **chunks)
    wanted = [name for name in names.split(",") if name]
    unknown = [name for name in wanted if name not in data.data_vars]
    if unknown or not len(data.data_vars):
        raise CommandError(
            f"{place.path} has no variable {unknown[0] if unknown else ''!r}; it contains "
            f"{some(list(map(str, data.data_vars)))}"
        )
    data = data if chunks else data.load()
    wanted = wanted or list(data.data_vars)
    return data[wanted[0]] if len(wanted) == 1 else data[wanted]


def _has_dask() -> bool:
    from importlib.util import find_spec

    return find_spec("dask") is not None


def _is_large(path: Path, bytes_in_memory: int = 2**28) -> bool:
    files = [path] if path.is_file() else path.rglob("*")
    return sum(file.stat().st_size for file in files if file.is_file()) > bytes_in_memory


def _table(place: Place, options: argparse.Namespace, header: int | None, model: Any) -> Any:
    """Read a table with pandas, with its row labels as index."""
    pandas = need("pandas", "tables need pandas", "table")
    index = options.index_col
    if index is None and model is not None:
        index = getattr(last_step(model), "_index_name", None)
        optional = True  # the labels of the fit need not be in new data
    else:
        optional = False
    if place.suffix in (".parquet", ".feather"):
        read = pandas.read_parquet if place.suffix == ".parquet" else pandas.read_feather
        return _with_index(read(place.path), index, optional)
    read = _reader(pandas, place, options)
    lines = read(header=None, nrows=_LOOKED_AT, dtype=str, skip_blank_lines=False)
    cells = [["" if c != c else str(c).strip() for c in row] for row in lines.to_numpy().tolist()]
    # Below several header lines, pandas writes a line with the name of the row labels only.
    below = next((k for k, row in enumerate(cells) if k and not any(row[1:])), None)
    n_lines = header if header is not None else below or _header_lines(cells, place, options)
    if n_lines == 0:
        return _with_index(read(header=None), index, optional)
    labels = not cells[0][0] or below == n_lines or _has_labels(cells[:n_lines])
    table = read(header=list(range(n_lines)) if n_lines > 1 else 0, index_col=0 if labels else None)
    if table.index.name is not None and str(table.index.name).startswith("Unnamed:"):
        table.index.name = None
    return table if labels and optional else _with_index(table, index, optional)


def _reader(pandas: Any, place: Place, options: argparse.Namespace) -> Any:
    """Return the function of pandas that reads this file."""
    if place.suffix == ".xlsx":
        need("openpyxl", ".xlsx files need openpyxl", "table")

        def read_excel(skip_blank_lines: bool = True, **more: Any) -> Any:
            return pandas.read_excel(place.path, sheet_name=place.name or 0, **more)

        return read_excel
    with open(place.path, encoding="utf-8-sig") as file:
        first = file.readline()
    sep = options.sep or max("\t;,", key=first.count)
    decimal = options.decimal or "."
    exactly = {"float_precision": "round_trip"} if pandas.__version__ < "3" else {}

    def read_text(**more: Any) -> Any:
        return pandas.read_csv(
            place.path, sep=sep, decimal=decimal, encoding="utf-8-sig", skipinitialspace=True,
            **exactly, **more,
        )  # fmt: skip

    return read_text


def _header_lines(cells: list[list[str]], place: Place, options: argparse.Namespace) -> int:
    """Return the number of header lines: the first lines without numbers.

    A first line of numbers is a header if its first cell, above row labels, is blank.
    """
    comma = options.decimal == ","
    is_number = lambda c: _is_number(c.replace(",", ".") if comma else c)  # noqa: E731
    for n, row in enumerate(cells):
        named = [c for c in row[1:] or row if c.lower() not in _MISSING]
        if not named or any(map(is_number, named)) or n == _MOST_LINES:
            break
    else:
        n = len(cells)
    # Repeated names are the first level of columns with several levels.
    while 0 < n < min(_MOST_LINES, len(cells)) and _repeats(cells[:n]):
        n += 1
    if n:
        return n
    first = cells[0]
    if not first[0] or not all(is_number(c) for c in first if c.lower() not in _MISSING):
        return 1
    raise CommandError(
        f"the first line of {place.path} has only numbers: say with --header 1 that they are names "
        f"of columns, or with --header 0 that the file has no header"
    )


def _repeats(header: list[list[str]]) -> bool:
    columns = list(zip(*header, strict=True))[1:]
    return len(set(columns)) < len(columns)


def _has_labels(header: list[list[str]]) -> bool:
    """Return whether only the columns after the first one form a grid of several header lines."""
    columns = list(zip(*header, strict=True))

    def is_grid(part: list[Any]) -> bool:
        return bool(np.prod([len(set(level)) for level in zip(*part, strict=True)]) == len(part))

    return len(header) > 1 and not is_grid(columns) and is_grid(columns[1:])


def _with_index(table: Any, index: Any, optional: bool) -> Any:
    """Return a table with one of its columns, by name or number, as row labels."""
    if index is None:
        return table
    names = {title(c): c for c in table.columns}
    if index in names:
        table = table.set_index(names[index])
        table.index.name = index
        return table
    if str(index).isdigit() and int(index) < table.shape[1]:
        return table.set_index(table.columns[int(index)])
    if optional or table.index.name == index:
        return table
    raise CommandError(
        f"--index-col: there is no column {index!r}; the columns are {some(list(names))}"
    )


def _with_common_labels(X: Any, Y: Any) -> tuple[Any, Any]:
    """Return two tables whose common first column has become their row labels.

    pandas writes row labels with a name as a column, which cannot be told from data in one file
    alone. A column of inputs that is also a column of outputs has the labels.
    """
    if not (_is_table(X) and _is_table(Y)) or 0 in (X.shape[1], Y.shape[1]):
        return X, Y
    tables = [
        table if table.index.name is not None else table.set_index(table.columns[0])
        for table in (X, Y)
    ]
    a, b = (table.index for table in tables)
    together = a.equals(b) or (a.is_unique and b.is_unique and set(a) == set(b))
    if title(a.name) != title(b.name) or not together or 0 in (t.shape[1] for t in tables):
        return X, Y
    if any(table.index.name is None for table in (X, Y)):
        note(f"the first column of both files, {title(a.name)}, labels the rows")
    for table in tables:
        table.index.name = title(a.name)
    return tables[0], tables[1]
