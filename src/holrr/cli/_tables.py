"""Tables: text files, Excel, Parquet and Feather, by the names of their columns."""

from __future__ import annotations

import csv
import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ._errors import CommandError
from ._files import Place, need

__all__ = ["FrameTable", "Layout", "Plain", "Table", "TextTable", "read_frame", "title"]

_MISSING = {"", "na", "nan", "n/a", "#n/a", "null", "none", "-", "?", "."}


@dataclass(frozen=True)
class Layout:
    """How a table is written, as far as the command line says so.

    Parameters
    ----------
    sep, decimal : str, or None
        What is between the cells, and in a number.
    header : int, or None
        Number of lines with names.
    index_col : str, or None
        Name or number of the column with the labels of the rows.
    """

    sep: str | None = None
    decimal: str | None = None
    header: int | None = None
    index_col: str | None = None


class Table:
    """Columns of numbers, and perhaps of other things, that are read when they are asked for."""

    columns: list[Hashable]

    def pick(self, columns: Sequence[Hashable]) -> Any:
        """Some columns, which must be numbers: a table of pandas where there are names."""
        raise NotImplementedError

    def labels(self, column: Hashable) -> np.ndarray:
        """A column that may be text."""
        raise NotImplementedError

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
                raise CommandError(
                    f"{option}: no column {part!r}; there are {', '.join(titles[:20])}"
                )
            found += here
        return [self.columns[j] for j in dict.fromkeys(found)]


def title(column: Hashable) -> str:
    """The name of a column in one word, also where it has one in each of several lines."""
    return " / ".join(map(str, column)) if isinstance(column, tuple) else str(column)


@dataclass(frozen=True, eq=False)
class Plain:
    """What stands for a table of pandas where there is no pandas."""

    values: np.ndarray
    columns: list[Hashable]

    def __getitem__(self, columns: list[Hashable]) -> Plain:
        return Plain(self.values[:, [self.columns.index(c) for c in columns]], columns)


# ---------------------------------------------------------------- tables of pandas


class FrameTable(Table):
    """A table that pandas has read."""

    def __init__(self, frame: Any, layout: Layout):
        if layout.index_col is not None:
            names = list(frame.columns)
            frame = frame.set_index(names[_position(layout.index_col, names)])
        self._frame, self.columns = frame, list(frame.columns)

    def pick(self, columns: Sequence[Hashable]) -> Any:
        frame = self._frame[list(columns)]
        kinds = zip(columns, frame.dtypes, strict=True)
        _refuse([c for c, dtype in kinds if getattr(dtype, "kind", "O") not in "iufb"])
        return frame if frame.columns.nlevels > 1 else frame.rename(columns=str)

    def labels(self, column: Hashable) -> np.ndarray:
        return self._frame[column].to_numpy()


def read_frame(place: Place, layout: Layout) -> FrameTable:
    """A table in Excel's, Parquet's or Feather's format."""
    pandas = need("pandas", f"{place.suffix} files need pandas and pyarrow", "table")
    try:
        if place.suffix == ".parquet":
            frame = pandas.read_parquet(place.path)
        elif place.suffix == ".feather":
            frame = pandas.read_feather(place.path)
        else:
            header = 1 if layout.header is None else layout.header
            lines = list(range(header)) if header > 1 else 0 if header else None
            frame = pandas.read_excel(place.path, sheet_name=place.name or 0, header=lines)
    except ImportError as error:
        need("", f"{place.suffix} files need {_NEEDED[place.suffix]}", "table")
        raise AssertionError from error
    return FrameTable(frame, layout)


_NEEDED = {".parquet": "pyarrow", ".feather": "pyarrow", ".xlsx": "openpyxl"}


def _refuse(columns: Sequence[Hashable]) -> None:
    if columns:
        names = ", ".join(title(c) for c in columns[:5])
        raise ValueError(
            f"columns that are not numbers: {names}. Leave them out (--inputs, --outputs), or "
            f"name the one with the labels of the rows (--index-col)"
        )


def _position(index_col: str, names: Sequence[Any]) -> int:
    """Where the column with the labels of the rows is."""
    titles = [title(c) for c in names]
    if index_col in titles:
        return titles.index(index_col)
    if index_col.isdigit() and int(index_col) < len(names):
        return int(index_col)
    raise CommandError(f"--index-col: no column {index_col!r}; there are {', '.join(titles[:20])}")


# ---------------------------------------------------------------- text


class TextTable(Table):
    """Numbers in columns, perhaps below lines of names."""

    def __init__(self, path: Path, layout: Layout):
        self._path, self._decimal = path, layout.decimal or "."
        with path.open(encoding="utf-8-sig", newline="") as file:
            head = list(islice(_without_gaps(file), 6))
        if not head:
            raise ValueError("it is empty")
        default = "\t" if path.suffix.lower() == ".tsv" else ","
        self._sep = layout.sep or _separator(head, default)
        rows = [self._cells(line) for line in head]
        self._index = None
        if layout.index_col is not None and layout.index_col.isdigit():
            self._index = _position(layout.index_col, rows[0])
        self._n_head = self._count_names(rows, layout)
        if self._n_head >= len(rows):
            raise ValueError("it has names and no numbers")
        self._n_cells = len(rows[self._n_head])
        self._first = rows[self._n_head]
        self._name(rows[: self._n_head], layout.index_col)

    def _count_names(self, rows: list[list[str]], layout: Layout) -> int:
        """How many lines of names there are."""
        if layout.header is not None:
            more = rows[layout.header : layout.header + 1] if layout.header > 1 else []
            return layout.header + sum(not any(row[1:]) for row in more)
        if layout.index_col in rows[0] and not str(layout.index_col).isdigit():
            return 1
        names = [k for k, row in enumerate(rows) if self._is_names(row, k)]
        # Where there are words only they are not all names: groups of samples, for instance.
        count = next((k for k in range(len(rows)) if k not in names), 1)
        if count == 0 and _is_counter(rows[0]) and len(rows) > 1:
            if rows[0][0] == "":
                return 1
            if not all(cell.strip().lstrip("+-").isdigit() for cell in rows[1]):
                raise ValueError(
                    f"line 1 ({', '.join(rows[0][:3])}, ...) may be names or numbers: say "
                    f"--header 1 for names, --header 0 for numbers"
                )
        return count

    def _is_names(self, row: list[str], number: int) -> bool:
        """Whether a line has names; numbers, some of which may be missing, are none."""
        cells = [c for j, c in enumerate(row) if j != self._index and c.lower() not in _MISSING]
        words = [cell for cell in cells if not self._is_number(cell)]
        if number == 0 and words and len(words) < len(cells):
            raise ValueError(
                f"line 1 is neither numbers nor names: it has {words[0]!r} beside numbers (see "
                f"--header and --index-col)"
            )
        return bool(words) and len(words) == len(cells)

    def _is_number(self, cell: str) -> bool:
        if self._decimal == "." and re.fullmatch(r"[+-]?\d*,\d+(e[+-]?\d+)?", cell, re.IGNORECASE):
            raise ValueError(f"{cell!r} has a decimal comma: say --decimal ,")
        try:
            float(cell.replace(self._decimal, "."))
        except ValueError:
            return False
        return True

    def _name(self, head: list[list[str]], index_col: str | None) -> None:
        """Names of the columns, and which of them has the labels of the rows."""
        if len(head) > 1 and self._index in (None, 0) and not any(head[-1][1:]):
            self._index, head = 0, head[:-1]  # a line with the name of the labels alone
        for number, row in enumerate(head, 1):
            if len(row) != self._n_cells:
                raise ValueError(
                    f"line {number} has {len(row)} names, and line {self._n_head + 1} "
                    f"{self._n_cells} columns"
                )
        self.named = bool(head)
        cells: list[Any] = (
            list(zip(*head, strict=True)) if len(head) > 1 else head[0] if head else []
        )
        names: list[Any] = [c if c else f"column {j + 1}" for j, c in enumerate(cells)]
        names = names or [f"column {j + 1}" for j in range(self._n_cells)]
        if index_col is not None and self._index is None:
            self._index = _position(index_col, names)
        elif head and self._n_cells > 1 and not any(row[0] for row in head):
            self._index = 0  # as pandas and R write the labels of rows
        self._names = names
        self.columns = [c for j, c in enumerate(names) if j != self._index]
        if len(set(names)) < len(names):
            twice = next(c for c in names if names.count(c) > 1)
            raise ValueError(f"two columns have the name {title(twice)!r}")

    def pick(self, columns: Sequence[Hashable]) -> Any:
        where = [self._names.index(c) for c in columns]
        words = [j for j in where if not self._could_be_number(self._first[j])]
        _refuse([self._names[j] for j in words])
        lines: Iterable[str] = (line for line, _ in self._rows())
        if self._decimal != ".":
            lines = (line.replace(self._decimal, ".") for line in lines)
        try:
            values = np.loadtxt(
                lines, delimiter=self._sep, ndmin=2, comments=None, quotechar='"', usecols=where
            )
        except ValueError as error:
            # NumPy counts rows from zero; an editor counts lines from one.
            found = re.search(r"^(.*?) at row (\d+), column (\d+)", str(error))
            if found is None:
                raise
            name = f" ({title(self._names[int(found[3]) - 1])})" if self.named else ""
            line, hint = int(found[2]) + self._n_head + 1, ""
            if re.search(r"'[+-]?\d*,\d+'", found[1]):
                hint = " (a decimal comma? say --decimal ,)"
            raise ValueError(f"line {line}, column {found[3]}{name}: {found[1]}{hint}") from error
        return self._framed(values, list(columns))

    def labels(self, column: Hashable) -> np.ndarray:
        j = self._names.index(column)
        return _typed([cells[j] for _, cells in self._rows(split=True)])

    def _framed(self, values: np.ndarray, columns: list[Hashable]) -> Any:
        """With names and labels, where there are some."""
        if not self.named and self._index is None:
            return values
        try:
            import pandas
        except ImportError:
            return Plain(values, columns) if self.named else values
        names: Any = columns
        if columns and isinstance(columns[0], tuple):
            levels = [_typed(level) for level in zip(*names, strict=True)]
            of_levels = (
                None if self._index is None else [n or None for n in self._names[self._index]]
            )
            names = pandas.MultiIndex.from_arrays(levels, names=of_levels)
        frame = pandas.DataFrame(values, columns=names)
        if self._index is not None:
            name = self._names[self._index]
            label = None if isinstance(name, tuple) or name.startswith("column ") else name
            frame.index = pandas.Index(_dates(self.labels(name)), name=label)
        return frame

    def _rows(self, split: bool = False) -> Iterator[tuple[str, list[str]]]:
        """The lines of numbers, each with as many cells as the first."""
        with self._path.open(encoding="utf-8-sig", newline="") as file:
            for number, line in enumerate(_without_gaps(file), 1):
                if number <= self._n_head:
                    continue
                cells = self._cells(line) if split or '"' in line else []
                n = len(cells) or line.count(self._sep) + 1
                if n != self._n_cells:
                    raise ValueError(
                        f"line {number}: the number of columns changed from {self._n_cells} to {n}"
                    )
                yield line, cells

    def _could_be_number(self, cell: str) -> bool:
        return cell.lower() in _MISSING or self._is_number(cell)

    def _cells(self, line: str) -> list[str]:
        return [c.strip() for row in csv.reader([line], delimiter=self._sep) for c in row]


def _separator(head: Sequence[str], default: str) -> str:
    """A semicolon or a tab where both of the first lines have equally many of them."""
    for sep in (";", "\t"):
        if head[0].count(sep) and len({line.count(sep) for line in head[:2]}) == 1:
            return sep
    return default


def _is_counter(cells: Sequence[str]) -> bool:
    """Whether cells, the first of which may be blank, count: 0, 1, 2 or 1990, 2000, 2010."""
    cells = cells[1:] if cells[0] == "" else cells
    if len(cells) < 2 or not all(cell.isdigit() for cell in cells):
        return False
    steps = set(np.diff([int(cell) for cell in cells]).tolist())
    return len(steps) == 1 and min(steps) > 0


def _typed(texts: Sequence[Any]) -> np.ndarray:
    """Whole numbers as such; all else as it is."""
    try:
        return np.array([int(text) for text in texts])
    except ValueError:
        return np.array(texts, dtype=object)


def _dates(labels: np.ndarray) -> Any:
    """Dates as such where all labels are dates as ISO writes them."""
    import pandas

    if labels.dtype != object:
        return labels
    try:
        return pandas.to_datetime(labels, format="ISO8601")
    except ValueError:
        return labels


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
