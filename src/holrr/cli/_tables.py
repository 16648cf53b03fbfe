"""Tables by the names of their columns, and those that pandas reads: Excel, Parquet, Feather."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from ..extras import need
from ._errors import CommandError
from ._files import Place

__all__ = ["Layout", "Plain", "Table", "is_count", "position", "read_frame", "refuse", "some"]
__all__ += ["title"]


@dataclass(frozen=True)
class Layout:
    """How a table is written, as far as the command line says so."""

    sep: str | None = None  # what is between the cells
    decimal: str | None = None  # what is before decimals
    header: int | None = None  # number of lines with names
    index_col: str | None = None  # name or number of the column with the labels of the rows


class Table:
    """Columns of numbers, and perhaps of other things, that are read when they are asked for.

    `pick` gives some columns, which must be numbers, as a table of pandas where they have names;
    `labels` one that may be text.
    """

    columns: list[Hashable]
    named: bool = True
    has_labels: bool = False
    # Whether blank cells are missing numbers; if not, they are an error.
    allow_missing: bool = False
    pick: Callable[..., Any]
    labels: Callable[..., np.ndarray]

    def find(self, pattern: str, option: str) -> list[Hashable]:
        """The columns that are meant by ``a,b*,c:e``: names, patterns and ranges."""
        titles, found = [title(c) for c in self.columns], []
        for part in pattern.split(","):
            first, _, last = part.partition(":")
            if part not in titles and first in titles and last in titles:
                here = list(range(titles.index(first), titles.index(last) + 1))
            else:
                here = [j for j, t in enumerate(titles) if t == part or fnmatchcase(t, part)]
            if not here:
                raise CommandError(f"{option}: no column {part!r}; there are {some(titles)}")
            found += here
        return [self.columns[j] for j in dict.fromkeys(found)]


@dataclass(frozen=True, eq=False)
class Plain:
    """What stands for a table of pandas where there is no pandas."""

    values: np.ndarray
    columns: list[Hashable]


class _Frame(Table):
    """A table that pandas has read."""

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
    """A table in Excel's, Parquet's or Feather's format."""
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
        raise ValueError(f"the sheet {sheet!r} has names and no numbers")
    return _Frame(frame, layout)


def _sheet(book: Any, place: Place) -> str:
    """The name of the sheet that is meant, by default the first, which must not be empty."""
    names, is_filled = book.sheet_names, lambda name: book.parse(name, header=None, nrows=1).size
    sheet = names[0] if place.name is None else place.name
    if sheet in names and is_filled(sheet):
        return sheet
    filled = [name for name in names if is_filled(name)]
    what = f"the sheet {sheet!r} is empty" if sheet in names else f"there is no sheet {sheet!r}"
    if not filled:
        raise CommandError(f"{place.path}: {what}, and so are all others")
    raise CommandError(
        f"{place.path}: {what}; write {place.path}:SHEET, where SHEET is one of {some(filled)}"
    )


def title(column: Hashable) -> str:
    """The name of a column in one word, also where it has one in each of several lines."""
    return " / ".join(map(str, column)) if isinstance(column, tuple) else str(column)


def is_count(index: Any) -> bool:
    """Whether the labels of rows, of pandas, only count them: 0, 1, 2, ..."""
    return index.name is None and index.tolist() == list(range(len(index)))


def some(names: Sequence[str]) -> str:
    """A few of them."""
    return ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")


def refuse(columns: Sequence[Hashable]) -> None:
    """Columns that are not numbers, if there are such."""
    if columns:
        raise ValueError(
            f"columns that are not numbers: {some([title(c) for c in columns])}. Leave them out "
            f"(--inputs, --outputs), or name the one with the labels of the rows (--index-col)"
        )


def position(index_col: str | None, names: Sequence[Any]) -> int | None:
    """Where the column with the labels of the rows is, by its name or number."""
    titles = [title(c) for c in names]
    if index_col in titles:
        return titles.index(index_col)
    if index_col is not None and index_col.isdigit() and int(index_col) < len(names):
        return int(index_col)
    return None
