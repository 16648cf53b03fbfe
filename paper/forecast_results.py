"""Errors in the table of forecasts, by column of the published tables, and comparisons."""

from __future__ import annotations

from typing import NamedTuple

from .tables import Row, Table

__all__ = [
    "AFTER",
    "NAMES",
    "SCRIPTS",
    "Place",
    "beaten",
    "of_kind",
    "ours",
    "places",
    "published",
    "rows_of",
]

# Names of the two splits.
AFTER, SCRIPTS = "after training", "scripts"

# Names of methods in the stored results of Kasai et al., and in their text.
NAMES = {
    "holrr": "HOLRR",
    "proposed": "Riemannian",
    "stpg": "STPG",
    "siita": "SIITA",
    "mlgp": "MLGP",
    "geomTR": "geomTR",
}


class Place(NamedTuple):
    """Column of the published tables.

    Parameters
    ----------
    table : {"kasai", "nips"}
        Published table.
    data : str
        Name of the data set.
    lags : int
        Number of lags.
    """

    table: str
    data: str
    lags: int

    def __str__(self) -> str:
        return f"{self.data}, {self.lags} lags"


def _place(row: Row) -> Place:
    return Place(row["table"], row["data"], row["lags"])


def places(rows: Table, table: str | None = None) -> list[Place]:
    """Return the columns of one published table, or of both, in the order of the rows."""
    found = dict.fromkeys(map(_place, rows))
    return [place for place in found if table in (None, place.table)]


def of_kind(rows: Table, kind: str, place: Place | None = None) -> Table:
    """Return the rows of a kind, of one column or of all columns."""
    return [row for row in rows if row["kind"] == kind and place in (None, _place(row))]


def rows_of(rows: Table, place: Place, split: str = AFTER) -> dict[str, Row]:
    """Return the searches of a column by method."""
    chosen = of_kind(rows, "chosen", place)
    return {row["method"]: row for row in chosen if row["split"] == split}


def ours(
    rows: Table, place: Place, split: str = AFTER, *, kind: str = "chosen"
) -> dict[str, float]:
    """Return the test errors of the searches, or of the baselines, by method.

    Examples
    --------
    >>> rows = [{"table": "nips", "data": "CCDS", "lags": 3, "kind": "chosen", "method": "ridge",
    ...          "split": "after training", "error": 0.84}]
    >>> ours(rows, Place("nips", "CCDS", 3))
    {'ridge': 0.84}
    """
    found = of_kind(rows, kind, place)
    return {row["method"]: row["error"] for row in found if row["split"] == split}


def published(rows: Table, place: Place) -> dict[str, float]:
    """Return the least published error of each method, by its name in the text."""
    least: dict[str, float] = {}
    for row in of_kind(rows, "same", place) + of_kind(rows, "published", place):
        method = str(row["method"])
        name = NAMES.get(method, method)
        least[name] = min(row["published"], least.get(name, row["published"]))
    return least


def beaten(rows: Table, method: str, other: str) -> list[tuple[Place, float, float]]:
    """Return the columns in which a search has a larger error than another, with both errors.

    Errors that are equal when rounded to four decimals count as equal.
    """
    found = []
    for place in places(rows):
        errors = ours(rows, place)
        if method not in errors or other not in errors:
            continue
        if round(errors[method], 4) > round(errors[other], 4):
            found.append((place, errors[method], errors[other]))
    return found
