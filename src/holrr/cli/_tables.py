"""Tables with named columns, and reading of Excel, Parquet and Feather files by pandas."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from ..extras import need
from ._errors import CommandError
from ._files import Place
from ._parse import is_number

__all__ = ["Layout", "Plain", "Table", "find_columns", "is_count", "position", "read_frame"]
__all__ += ["refuse", "some", "title"]


@dataclass(frozen=True)
class Layout:
    """Layout of a table file, from the options; None for settings that are detected.

    Parameters
    ----------
    sep : str, optional
        Separator of the cells.
    decimal : str, optional
        Decimal separator.
    header : int, optional
        Number of header lines.
    index_col : str, optional
        Name or number of the column with the labels of the rows.
    names : tuple of str
        Feature names of a fitted model. A first line that contains all of them is a header.
    names_are_numbers : bool
        Whether a range of numbers selects columns. Then a first line of numbers that may be names
        is a header.
    """

    sep: str | None = None
    decimal: str | None = None
    header: int | None = None
    index_col: str | None = None
    names: tuple[str, ...] = ()
    names_are_numbers: bool = False


class Table:
    """Columns of numbers or text, which are read on request.

    `pick` returns columns of numbers, as a DataFrame if they have names. `labels` returns one
    column, which may be text.
    """

    columns: list[Hashable]
    named: bool = True
    has_labels: bool = False
    # Whether blank cells are missing values (True) or an error (False).
    allow_missing: bool = False
    pick: Callable[..., Any]
    labels: Callable[..., np.ndarray]

    def find(self, pattern: str, option: str) -> list[Hashable]:
        """Return the columns that ``a,b*,c:e`` selects: names, patterns and ranges."""
        places = find_columns(pattern, [title(c) for c in self.columns], option)
        return [self.columns[j] for j in places]


def find_columns(pattern: str, titles: Sequence[str], option: str) -> list[int]:
    """Return the positions of columns that ``a,b*,c:e`` selects: names, patterns and ranges.

    A range ``c:e`` selects all columns from c to e. If its ends are numbers but not names of
    columns, such as ``1100:2300``, it selects all columns whose names are numbers from 1100 to
    2300. A missing end is open.

    Parameters
    ----------
    pattern : str
        Names, patterns and ranges, separated by commas.
    titles : sequence of str
        Names of all columns.
    option : str
        Name of the option, for error messages.
    """
    found: list[int] = []
    for part in pattern.split(","):
        first, colon, last = part.partition(":")
        if part not in titles and first in titles and last in titles:
            here = list(range(titles.index(first), titles.index(last) + 1))
        else:
            here = [j for j, t in enumerate(titles) if t == part or fnmatchcase(t, part)]
            if not here and colon:
                here = _within(first, last, titles)
        if not here:
            raise CommandError(
                f"{option}: there is no column {part!r}; the columns are {some(titles)}"
            )
        found += here
    return list(dict.fromkeys(found))


def _within(first: str, last: str, titles: Sequence[str]) -> list[int]:
    """Return columns whose names are numbers between two ends; none if the ends are not numbers."""
    ends = [end for end in (first, last) if end]
    if not ends or not all(map(is_number, ends)):
        return []
    low = float(first) if first else -math.inf
    high = float(last) if last else math.inf
    return [j for j, t in enumerate(titles) if is_number(t) and low <= float(t) <= high]


@dataclass(frozen=True, eq=False)
class Plain:
    """Numbers and names of columns, used if pandas is not installed."""

    values: np.ndarray
    columns: list[Hashable]


class _Frame(Table):
    """Table that pandas has read."""

    def __init__(self, frame: Any, layout: Layout):
        where = position(layout.index_col, list(frame.columns))
        if where is not None:
            frame = frame.set_index(frame.columns[where])
        self._frame, self.columns, self.has_labels = frame, list(frame.columns), where is not None

    def pick(self, columns: Sequence[Hashable]) -> Any:
        frame = self._frame[list(columns)]
        kinds = zip(columns, frame.dtypes, strict=True)
        refuse([c for c, dtype in kinds if getattr(dtype, "kind", "O") not in "iufb"])
        return frame if frame.columns.nlevels > 1 else frame.rename(columns=str)

    def labels(self, column: Hashable) -> np.ndarray:
        return self._frame[column].to_numpy()


def read_frame(place: Place, layout: Layout) -> Table:
    """Read a table from an Excel, Parquet or Feather file."""
    pandas = need("pandas", f"{place.suffix} files need pandas and more", "table")
    if place.suffix != ".xlsx":
        read = pandas.read_parquet if place.suffix == ".parquet" else pandas.read_feather
        return _Frame(read(place.path), layout)
    header = list(range(1 if layout.header is None else layout.header))
    lines = None if not header else 0 if len(header) == 1 else header
    with pandas.ExcelFile(place.path) as book:
        sheet = _sheet(book, place)
        frame = book.parse(sheet, header=lines)
    if not len(frame):
        raise ValueError(f"the sheet {sheet!r} has names of columns but no numbers")
    return _Frame(frame, layout)


def _sheet(book: Any, place: Place) -> str:
    """Return the name of the sheet, by default the first, which must not be empty."""
    names, is_filled = book.sheet_names, lambda name: book.parse(name, header=None, nrows=1).size
    sheet = names[0] if place.name is None else place.name
    if sheet in names and is_filled(sheet):
        return sheet
    filled = [name for name in names if is_filled(name)]
    what = f"the sheet {sheet!r} is empty" if sheet in names else f"there is no sheet {sheet!r}"
    if not filled:
        raise CommandError(f"{place.path}: all sheets are empty")
    raise CommandError(
        f"{place.path}: {what}; write {place.path}:SHEET, where SHEET is one of {some(filled)}"
    )


def title(column: Hashable) -> str:
    """Return the name of a column as text, also if the table has several header lines."""
    return " / ".join(map(str, column)) if isinstance(column, tuple) else str(column)


def is_count(index: Any) -> bool:
    """Return whether row labels (an index of pandas) only count the rows: 0, 1, 2, ..."""
    return index.name is None and index.tolist() == list(range(len(index)))


def some(names: Sequence[str], most: int = 20) -> str:
    """Return the first names as text, for messages."""
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")


def refuse(columns: Sequence[Hashable]) -> None:
    """Raise an error if `columns`, which are not numbers, is not empty."""
    if columns:
        raise ValueError(
            f"columns that are not numeric: {some([title(c) for c in columns])}. Leave them out "
            f"with --inputs and --outputs, or set --index-col to the column with the row labels"
        )


def position(index_col: str | None, names: Sequence[Any]) -> int | None:
    """Return the position of the column with the row labels, from its name or number."""
    titles = [title(c) for c in names]
    if index_col in titles:
        return titles.index(index_col)
    if index_col is not None and index_col.isdigit() and int(index_col) < len(names):
        return int(index_col)
    return None
