"""Tidy tables without pandas: a list of rows, each a dict from column to value."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["Row", "Table", "mean_and_error", "read_csv", "summarise", "to_csv", "write_text"]

Row = dict[str, Any]
Table = list[Row]


def mean_and_error(values: Iterable[float]) -> tuple[float, float]:
    """Return the mean and its standard error, which is NaN for a single value.

    Examples
    --------
    >>> mean_and_error([1.0, 2.0, 3.0])
    (2.0, 0.5773502691896258)
    """
    x = np.asarray(list(values), dtype=float)
    error = x.std(ddof=1) / math.sqrt(len(x)) if len(x) > 1 else math.nan
    return float(x.mean()), float(error)


def summarise(table: Table, by: Sequence[str], value: str) -> Table:
    """Return mean, standard error and count of a column for each group, in order of appearance.

    Parameters
    ----------
    table : list of dict
        Rows of the table.
    by : sequence of str
        Columns whose values define a group.
    value : str
        Column to average.

    Returns
    -------
    list of dict
        The columns of `by`, then ``mean``, ``error`` and ``n``.

    Examples
    --------
    >>> summarise([{"method": "RLS", "rmse": 1.0}, {"method": "RLS", "rmse": 3.0}],
    ...           by=["method"], value="rmse")
    [{'method': 'RLS', 'mean': 2.0, 'error': 1.0, 'n': 2}]
    """
    groups: dict[tuple[Any, ...], list[float]] = {}
    for row in table:
        groups.setdefault(tuple(row[c] for c in by), []).append(row[value])
    rows = []
    for key, values in groups.items():
        mean, error = mean_and_error(values)
        rows.append(
            {**dict(zip(by, key, strict=True)), "mean": mean, "error": error, "n": len(values)}
        )
    return rows


def to_csv(table: Table) -> str:
    """Return the table as CSV text, with columns in order of appearance and exact floats."""
    columns = list(dict.fromkeys(column for row in table for column in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    return text.getvalue()


def read_csv(path: Path) -> Table:
    """Read a table from a CSV file, and convert numbers."""
    with path.open(newline="") as file:
        return [{c: _value(v) for c, v in row.items()} for row in csv.DictReader(file)]


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def write_text(path: Path, text: str) -> None:
    """Write a file atomically: it is either complete or does not change."""
    partial = path.with_name(path.name + ".part")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
