"""Parser of station files of the Met Office, without network access."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

VARIABLE_NAMES = ("tmax", "tmin", "af", "rain", "sun")
VARIABLE_UNITS = ("degC", "degC", "days", "mm", "hours")

_HEADING = ["yyyy", "mm", *VARIABLE_NAMES]

_PLACE = re.compile(r"Lat\s+(-?\d+\.?\d*)\s+Lon\s+(-?\d+\.?\d*),?\s+(-?\d+)\s*m")

# A value may have markers: * estimated, # automatic sensor, $ other site.
_VALUE = r"\s+(---|-?\d+(?:\.\d+)?)[*#$]*"
_VALUE_THEN_SPACE = _VALUE + r"(?=\s)"

# Some rows end with a remark, even without a space after the last value, or have no sunshine. A
# remark must not look like another value, and a row that lacks more than sunshine is incomplete.
_ROW = re.compile(
    rf"\s*(\d{{4}})\s+(\d{{1,2}}){3 * _VALUE_THEN_SPACE}{_VALUE}"
    rf"(?:{_VALUE}(?:\s*[^\s\d.+-].*)?|\s+Provisional)?\s*"
)


@dataclass(frozen=True)
class StationTable:
    """Contents of one station file."""

    title: str  # first line of the file: the name as spelled by the Met Office
    coordinates: tuple[float, float, float]  # degrees north and east, metres, of the latest site
    months: NDArray[np.datetime64]  # increasing, possibly with gaps
    values: NDArray[np.float64]  # (n_months, 5), NaN where missing


def read_station(path: str | Path) -> StationTable:
    """Read one station file; see `parse_station`."""
    text = Path(path).read_text(encoding="utf-8", errors="replace")
    return parse_station(text, source=str(path))


def parse_station(text: str, source: str = "<text>") -> StationTable:
    """Parse the text of one station file. Error messages name the file (`source`) and the line."""
    lines = text.splitlines()
    n_header = _count_header_lines(lines, source)
    months: list[np.datetime64] = []
    values: list[list[float]] = []
    for number, line in enumerate(lines[n_header:], start=n_header + 1):
        if not line.strip() or line.strip().lower() == "site closed":
            continue
        month, row = _parse_row(line, f"{source}, line {number}")
        if months and month <= months[-1]:
            raise ValueError(f"{source}, line {number}: {month} does not follow {months[-1]}.")
        months.append(month)
        values.append(row)
    if not months:
        raise ValueError(f"{source}, line {len(lines)}: the file ends before the first month.")
    return StationTable(
        title=lines[0].strip(),
        coordinates=_find_coordinates(lines[:n_header], source),
        months=np.array(months, dtype="datetime64[M]"),
        values=np.array(values),
    )


def align_months(table: StationTable, months: NDArray[np.datetime64]) -> NDArray[np.float64]:
    """Return values for the given months, of shape (n_months, 5), NaN if the file has none."""
    aligned = np.full((len(months), table.values.shape[1]), np.nan)
    _, where, which = np.intersect1d(months, table.months, return_indices=True)
    aligned[where] = table.values[which]
    return aligned


def _count_header_lines(lines: list[str], source: str) -> int:
    """Return the number of lines up to the units, which follow the column names."""
    for number, line in enumerate(lines, start=1):
        if line.split() != _HEADING:
            continue
        units = lines[number].split() if number < len(lines) else []
        if units != list(VARIABLE_UNITS):
            raise ValueError(
                f"{source}, line {number + 1}: expected the units {' '.join(VARIABLE_UNITS)!r}, "
                f"got {' '.join(units)!r}."
            )
        return number + 1
    raise ValueError(
        f"{source}, line {len(lines)}: not a Met Office station file, since it lacks the column "
        f"names {' '.join(_HEADING)!r}."
    )


def _find_coordinates(header: list[str], source: str) -> tuple[float, float, float]:
    """Return latitude, longitude and altitude, of the last site if a station has moved."""
    places = [found for line in header if (found := _PLACE.search(line))]
    if not places:
        raise ValueError(
            f"{source}, lines 1 to {len(header)}: the header has no location such as "
            "'Lat 51.761 Lon -1.262, 63 metres amsl'."
        )
    latitude, longitude, altitude = map(float, places[-1].groups())
    return latitude, longitude, altitude


def _parse_row(line: str, where: str) -> tuple[np.datetime64, list[float]]:
    found = _ROW.fullmatch(line)
    if not found or not 1 <= int(found[2]) <= 12:
        raise ValueError(
            f"{where}: expected a year, a month and the values of {', '.join(VARIABLE_NAMES)}, "
            f"got {line!r}."
        )
    year, month, *fields = found.groups()
    row = [np.nan if field in (None, "---") else float(field) for field in fields]
    return np.datetime64(f"{year}-{int(month):02d}", "M"), row
