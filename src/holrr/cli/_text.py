"""Tables in text files: columns of numbers, with or without header lines."""

from __future__ import annotations

import csv
import math
import re
import warnings
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ._tables import Layout, Plain, Table, position, refuse, title

__all__ = ["TextTable"]

_MISSING = {"", "na", "nan", "n/a", "#n/a", "null", "none", "-", "?", "."}
_WITH_COMMA = r"[+-]?\d*,\d+(e[+-]?\d+)?"
_N_PEEK = 7  # number of lines that are read to find the header, which has at most five lines


class TextTable(Table):
    """Table in a text file. Its first lines are read at once, the others on request."""

    def __init__(self, path: Path, layout: Layout):
        self._path, self._decimal = path, layout.decimal or "."
        head = list(islice(self._lines(), _N_PEEK))
        if not head:
            raise ValueError("the file is empty")
        self._sep = layout.sep or _separator(head, "\t" if path.suffix.lower() == ".tsv" else ",")
        rows, index_col = [self._cells(line) for line in head], layout.index_col
        by_number = index_col is not None and index_col.isdigit()
        self._index = position(index_col, rows[0]) if by_number else None
        self._n_head = self._count_names(rows, layout)
        if self._n_head >= len(rows):
            raise ValueError("it has names of columns but no numbers")
        self._first, self.named = rows[self._n_head], self._n_head > 0
        self._name(rows[: self._n_head], index_col)

    # ------------------------------------------------------------ names

    def _count_names(self, rows: list[list[str]], layout: Layout) -> int:
        """Return the number of header lines."""
        if layout.header is not None:
            more = rows[layout.header : layout.header + 1] if layout.header > 1 else []
            return layout.header + sum(not any(row[1:]) for row in more)
        if layout.index_col in rows[0] and not str(layout.index_col).isdigit():
            return 1
        if layout.names and set(layout.names) <= set(rows[0]):
            return 1
        if layout.names_are_numbers and self._has_words(rows[0]) and not self._has_words(rows[1]):
            return 1
        names = [self._is_names(row, k) for k, row in enumerate(rows)]
        # A file that contains only text, such as groups of samples, has one header line.
        count = names.index(False) if False in names else 1
        if count == 0 and self._may_be_names(rows[0], rows[1:]):
            if rows[0][0] == "" or layout.names_are_numbers:
                return 1
            raise ValueError(
                f"line 1 ({', '.join(rows[0][:3])}, ...) may be names or numbers: use "
                f"--header 1 for names, --header 0 for numbers"
            )
        return count

    def _has_words(self, row: list[str]) -> bool:
        """Return whether a line contains text besides row labels and missing values."""
        cells = [c for j, c in enumerate(row) if j != self._index and c.lower() not in _MISSING]
        return not all(map(self._is_number, cells))

    def _may_be_names(self, first: list[str], others: list[list[str]]) -> bool:
        """Return whether numbers in the first line may be names, such as years or wavelengths.

        This is the case if they are whole numbers above numbers that are not whole, or if they
        increase (or decrease) from column to column and lie outside the range of the lines below.
        """
        start = int(first[0] == "")  # the cell above the row labels is empty
        places = [j for j in range(start, len(first)) if j != self._index]
        rows = [[row[j] for j in places] for row in (first, *others) if len(row) == len(first)]
        names, rows = rows[0], rows[1:]
        if len(names) < 2 or len(set(names)) < len(names) or not rows or "" in names:
            return False
        if _is_counter(names) and (start or not _are_whole(rows[0])):
            return True
        if _are_whole(names) and not any(map(_are_whole, rows)):
            return True
        if len(names) < 3 or len(rows) < 2:
            return False
        values = np.array([[self._number(cell) for cell in row] for row in (names, *rows)])
        rises = np.diff(values) > 0
        falls = np.diff(values) < 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # columns without any number
            low, high = np.nanmin(values[1:], axis=0), np.nanmax(values[1:], axis=0)
        beyond = ((values[0] < low) | (values[0] > high)).all()
        in_order = any(way[0].all() and not way[1:].all() for way in (rises, falls))
        return bool(in_order and beyond)

    def _number(self, cell: str) -> float:
        """Return a cell as a number; NaN for other cells."""
        try:
            return float(cell.replace(self._decimal, "."))
        except ValueError:
            return math.nan

    def _is_names(self, row: list[str], number: int) -> bool:
        """Return whether a line contains only names. Cells may be missing."""
        cells = [c for j, c in enumerate(row) if j != self._index and c.lower() not in _MISSING]
        words = [cell for cell in cells if not self._is_number(cell)]
        if number == 0 and words and len(words) < len(cells):
            raise ValueError(
                f"line 1 has both numbers and text, {words[0]!r} for instance: use --header 1 "
                f"if line 1 is a header (see also --index-col)"
            )
        return bool(words) and len(words) == len(cells)

    def _is_number(self, cell: str) -> bool:
        if self._decimal == "." and re.fullmatch(_WITH_COMMA, cell, re.IGNORECASE):
            raise ValueError(f"{cell!r} has a decimal comma: use --decimal ,")
        try:
            float(cell.replace(self._decimal, "."))
        except ValueError:
            return False
        return True

    def _name(self, head: list[list[str]], index_col: str | None) -> None:
        """Find the names of the columns, and the column with the labels of the rows."""
        n = len(self._first)
        if len(head) > 1 and self._index in (None, 0) and not any(head[-1][1:]):
            self._index, head = 0, head[:-1]  # a line that contains only the name of the row labels
        for number, row in enumerate(head, 1):
            if len(row) != n:
                raise ValueError(
                    f"line {number} has {len(row)} names, and line {self._n_head + 1} {n} columns"
                )
        cells: Any = list(zip(*head, strict=True)) if len(head) > 1 else [*head, [""] * n][0]
        self._names: list[Any] = [c or f"column {j}" for j, c in enumerate(cells, 1)]
        if self._index is None:
            self._index = position(index_col, self._names)
        if self._index is None and head and n > 1 and not any(row[0] for row in head):
            self._index = 0  # pandas and R write row labels in this way
        self.has_labels = self._index is not None
        if len(set(self._names)) < n:
            twice = next(c for c in self._names if self._names.count(c) > 1)
            raise ValueError(f"two columns have the name {title(twice)!r}")
        self.columns = [c for j, c in enumerate(self._names) if j != self._index]

    # ------------------------------------------------------------ numbers and labels

    def pick(self, columns: Sequence[Hashable]) -> Any:
        where = [self._names.index(c) for c in columns]
        is_number = lambda cell: cell.lower() in _MISSING or self._is_number(cell)  # noqa: E731
        refuse([self._names[j] for j in where if not is_number(self._first[j])])
        lines = (line.replace(self._decimal, ".") for line, _ in self._rows())
        try:
            values = np.loadtxt(
                lines,
                delimiter=self._sep,
                ndmin=2,
                comments=None,
                quotechar='"',
                usecols=where,
                converters=_or_nan if self.allow_missing else None,
            )
        except ValueError as error:
            # NumPy counts rows from zero; an editor counts lines from one.
            found = re.search(r"^(.*?) at row (\d+), column (\d+)", str(error))
            if found is None:
                raise
            name = f" ({title(self._names[int(found[3]) - 1])})" if self.named else ""
            hint = " (see --decimal)" if re.search(f"'{_WITH_COMMA}'", found[1]) else ""
            line = int(found[2]) + self._n_head + 1
            said = "the cell is blank" if "string ''" in found[1] else found[1]
            raise ValueError(f"line {line}, column {found[3]}{name}: {said}{hint}") from error
        return self._framed(values, list(columns))

    def labels(self, column: Hashable) -> np.ndarray:
        j = self._names.index(column)
        return _typed([cells[j] for _, cells in self._rows(split=True)])

    def _framed(self, values: np.ndarray, columns: list[Any]) -> Any:
        """Return numbers with the names of columns and rows, if there are any."""
        if not self.named and self._index is None:
            return values
        try:
            import pandas
        except ImportError:
            return Plain(values, columns) if self.named else values
        label = None if self._index is None else self._names[self._index]
        if columns and isinstance(columns[0], tuple):
            levels = [_typed(level) for level in zip(*columns, strict=True)]
            names = [name or None for name in label] if isinstance(label, tuple) else None
            columns = pandas.MultiIndex.from_arrays(levels, names=names)
        frame = pandas.DataFrame(values, columns=columns)
        if label is not None:
            named = isinstance(label, str) and not re.fullmatch(r"column \d+", label)
            labels = _dates(self.labels(label), pandas)
            frame.index = pandas.Index(labels, name=label if named else None)
        return frame

    # ------------------------------------------------------------ lines

    def _rows(self, split: bool = False) -> Iterator[tuple[str, list[str]]]:
        """Yield the lines of numbers; raise an error if the number of cells changes."""
        for number, line in enumerate(self._lines(), 1):
            if number <= self._n_head:
                continue
            cells = self._cells(line) if split or '"' in line else []
            n = len(cells) or line.count(self._sep) + 1
            if n != len(self._first):
                raise ValueError(
                    f"line {number}: the number of columns changed from {len(self._first)} to {n}"
                )
            yield line, cells

    def _lines(self) -> Iterator[str]:
        """Yield all lines except blank lines at the end. Other blank lines raise an error."""
        blank = 0
        with self._path.open(encoding="utf-8-sig", newline="") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    blank = blank or number
                elif blank:
                    raise ValueError(f"line {blank} is blank")
                else:
                    yield line

    def _cells(self, line: str) -> list[str]:
        return [c.strip() for row in csv.reader([line], delimiter=self._sep) for c in row]


def _separator(head: Sequence[str], default: str) -> str:
    """Return a semicolon or a tab if the first two lines contain it equally often."""
    for sep in (";", "\t"):
        if head[0].count(sep) and len({line.count(sep) for line in head[:2]}) == 1:
            return sep
    return default


def _or_nan(cell: str) -> float:
    """Return a number, or NaN for a mark of a missing value."""
    return float("nan") if cell.strip().lower() in _MISSING else float(cell)


def _are_whole(cells: Sequence[str]) -> bool:
    """Return whether cells are whole numbers, some of which may be missing."""
    return all(cell.lower() in _MISSING or re.fullmatch(r"[+-]?\d+", cell) for cell in cells)


def _is_counter(cells: Sequence[str]) -> bool:
    """Return whether cells increase by equal steps: 0, 1, 2 or 1990, 2000, 2010."""
    if len(cells) < 2 or not all(cell.isdigit() for cell in cells):
        return False
    steps = set(np.diff([int(cell) for cell in cells]).tolist())
    return len(steps) == 1 and min(steps) > 0


def _typed(texts: Iterable[Any]) -> np.ndarray:
    """Return labels, as integers if all are whole numbers."""
    texts = list(texts)
    try:
        return np.array([int(text) for text in texts])
    except ValueError:
        return np.array(texts, dtype=object)


def _dates(labels: np.ndarray, pandas: Any) -> Any:
    """Return labels, as dates if all are dates in ISO format."""
    try:
        return pandas.to_datetime(labels, format="ISO8601") if labels.dtype == object else labels
    except ValueError:
        return labels
