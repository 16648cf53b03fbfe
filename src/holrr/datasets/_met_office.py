"""Monthly weather at stations of the United Kingdom."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import get_data_home
from sklearn.utils import Bunch

from ..extras import need
from ._met_office_parse import (
    VARIABLE_NAMES,
    VARIABLE_UNITS,
    StationTable,
    align_months,
    read_station,
)

BASE_URL = "https://www.metoffice.gov.uk/pub/data/weather/uk/climate/stationdata/"

_NAMES = """
    aberporth armagh ballypatrick bradford braemar camborne cambridge cardiff chivenor cwmystwyth
    dunstaffnage durham eastbourne eskdalemuir heathrow hurn lerwick leuchars lowestoft manston
    nairn newtonrigg oxford paisley ringway rossonwye shawbury sheffield southampton stornoway
    suttonbonington tiree valley waddington whitby wickairport yeovilton
"""
STATIONS = tuple(_NAMES.split())

DESCR = """\
Monthly weather at stations of the United Kingdom
-------------------------------------------------

Source: Met Office, historic station data,
https://www.metoffice.gov.uk/research/climate/maps-and-data/historic-station-data
Contains public sector information licensed under the Open Government Licence v3.0.

data           (month, station, variable), NaN where missing
station_names  names of the stations, as in the names of their files
station_titles names of the stations, as spelled in their files
variable_names tmax  mean daily maximum temperature, degC
               tmin  mean daily minimum temperature, degC
               af    days of air frost
               rain  total rainfall, mm
               sun   total sunshine duration, hours
months         the months, datetime64[M], without gaps
coordinates    (station, 3): latitude and longitude in degrees, altitude in metres; of the last
               site, if a station has moved

Estimated and provisional values are included and not marked. A month is missing in the source if
more than two of its days are missing.
"""

Month = str | np.datetime64 | None


def fetch_met_office(
    data_home: str | os.PathLike[str] | None = None,
    *,
    download_if_missing: bool = True,
    start: Month = "1960-01",
    end: Month = "2000-12",
    stations: str | Sequence[str] | None = None,
    n_retries: int = 2,
) -> Bunch:
    """Load the monthly station data of the Met Office, downloading them if necessary.

    Parameters
    ----------
    data_home : str, path-like or None, default=None
        Folder for datasets. The default is that of :func:`sklearn.datasets.get_data_home`. The
        files are in its subfolder ``met_office``. A folder that itself contains station files, such
        as ``oxforddata.txt``, is used directly.
    download_if_missing : bool, default=True
        Whether to download files that are not in the folder. If False, an error lists them.
    start, end : str, datetime64 or None, default="1960-01" and "2000-12"
        First and last month, both included. None means the first or last month of all files.
    stations : sequence of str, "complete" or None, default=None
        Names of stations, in the desired order; ``"complete"`` for the stations without missing
        values from `start` to `end`, which are 16 for the default period; None for all 37.
    n_retries : int, default=2
        Number of retries if a download fails.

    Returns
    -------
    dataset : Bunch
        Dictionary-like object with the attributes

        data : ndarray of shape (n_months, n_stations, 5)
            The values, NaN where missing.
        station_names, station_titles : list of str
            Names of the stations: short names, as in `stations`, and names as spelled in the files.
        variable_names, variable_units : list of str
            Names and units of the five variables.
        months : ndarray of shape (n_months,), dtype datetime64[M]
            The months, without gaps.
        coordinates : ndarray of shape (n_stations, 3)
            Latitude and longitude in degrees, altitude in metres.
        DESCR : str
            Description of the data and their licence.

    Notes
    -----
    The published files grow by a line every month, so they have no fixed checksum. To update a
    downloaded file, delete it and call this function again.

    Examples
    --------
    >>> from holrr.datasets import fetch_met_office
    >>> dataset = fetch_met_office(stations="complete")  # doctest: +SKIP
    >>> dataset.data.shape  # doctest: +SKIP
    (492, 16, 5)
    >>> fetch_met_office(stations=["oxfrod"])
    Traceback (most recent call last):
        ...
    ValueError: stations: there is no 'oxfrod'. Did you mean 'oxford'? Valid names are ...
    """
    first, last = _check_month("start", start), _check_month("end", end)
    if first is not None and last is not None and first > last:
        raise ValueError(f"start must not come after end; got start={start!r} and end={end!r}.")
    names = _check_stations(stations)
    folder = _find_folder(data_home)
    tables = _load_tables(names, folder, download_if_missing, n_retries)
    months = _span(tables, first, last)
    data = np.stack([align_months(table, months) for table in tables], axis=1)
    keep = _kept_stations(data, stations, months)
    return Bunch(
        data=data[:, keep],
        station_names=[names[i] for i in keep],
        station_titles=[tables[i].title for i in keep],
        variable_names=list(VARIABLE_NAMES),
        variable_units=list(VARIABLE_UNITS),
        months=months,
        coordinates=np.array([tables[i].coordinates for i in keep]),
        DESCR=DESCR,
    )


def _check_month(name: str, value: Month) -> np.datetime64 | None:
    if value is None:
        return None
    # NumPy reads a year without a month as its January, even at the end of a period.
    if isinstance(value, str) and re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])", value):
        return np.datetime64(value, "M")
    if isinstance(value, np.datetime64) and not np.isnat(value):
        return value.astype("datetime64[M]")
    raise ValueError(f"{name} must be a month such as '1960-01'; got {name}={value!r}.")


def _check_stations(stations: str | Sequence[str] | None) -> list[str]:
    """Check `stations`, and return the names of the stations to load."""
    if stations is None or (isinstance(stations, str) and stations == "complete"):
        return list(STATIONS)
    if isinstance(stations, str) or len(stations) == 0:
        raise ValueError(
            "stations must be a list of at least one name, 'complete' or None; "
            f"got stations={stations!r}."
        )
    return [_check_station(name) for name in stations]


def _check_station(name: str) -> str:
    """Return the short name of a station, also for spellings such as "Ross-on-Wye"."""
    plain = re.sub("[^a-z]", "", name.lower())
    if plain in STATIONS:
        return plain
    near = difflib.get_close_matches(plain, STATIONS, n=3, cutoff=0.5)
    hint = f"Did you mean {' or '.join(map(repr, near))}? " if near else ""
    raise ValueError(
        f"stations: there is no {name!r}. {hint}Valid names are {', '.join(STATIONS)}."
    )


def file_name(station: str) -> str:
    """Return the name of a station's file, on the server and in the folder."""
    return f"{station}data.txt"


def _find_folder(data_home: str | os.PathLike[str] | None) -> Path:
    home = Path(get_data_home() if data_home is None else data_home).expanduser()
    if any((home / file_name(station)).is_file() for station in STATIONS):
        return home
    return home / "met_office"


def _load_tables(
    names: list[str], folder: Path, download_if_missing: bool, n_retries: int
) -> list[StationTable]:
    missing = [name for name in names if not (folder / file_name(name)).is_file()]
    if missing and not download_if_missing:
        raise FileNotFoundError(
            f"the folder {folder} lacks {', '.join(map(file_name, missing))}, and "
            "download_if_missing is False. Set download_if_missing=True, or set data_home to a "
            "folder that contains the files."
        )
    for name in missing:
        download_station(name, folder, n_retries)
    return [read_station(folder / file_name(name)) for name in names]


def download_station(station: str, folder: Path, n_retries: int) -> None:
    """Download a file into a folder, with a growing pause before each retry.

    The file gets its name only when it is complete. It is deleted if it is not a station file, such
    as the login page of a network.
    """
    pooch = need("pooch", "downloading the Met Office data needs pooch", "data")
    name = file_name(station)
    url = BASE_URL + name
    # There is no checksum, since the published files grow by a line every month.
    cache = pooch.create(
        path=folder, base_url="", registry={name: None}, urls={name: url}, retry_if_failed=n_retries
    )
    try:
        path = Path(cache.fetch(name, downloader=pooch.HTTPDownloader(timeout=30)))
    # requests raises an OSError for a refused connection or a response such as 404.
    except (OSError, ValueError) as error:
        raise OSError(
            f"could not download {url}: {error}. Check the network connection, or put the file "
            f"into the folder {folder} by hand."
        ) from error
    try:
        read_station(path)
    except ValueError as error:
        path.unlink()
        raise OSError(f"{url} returned no station file of {station!r}: {error}") from error


def _span(
    tables: list[StationTable], first: np.datetime64 | None, last: np.datetime64 | None
) -> NDArray[np.datetime64]:
    """Return all months from the first to the last, both included."""
    begin = min(table.months[0] for table in tables) if first is None else first
    end = max(table.months[-1] for table in tables) if last is None else last
    if begin > end:
        raise ValueError(
            f"no month lies between start and end: the first is {begin}, the last {end}."
        )
    return np.arange(begin, end + np.timedelta64(1, "M"), dtype="datetime64[M]")


def _kept_stations(
    data: NDArray[np.float64],
    stations: str | Sequence[str] | None,
    months: NDArray[np.datetime64],
) -> NDArray[np.intp]:
    """Return the indices of the requested stations among the loaded ones."""
    if not isinstance(stations, str):
        return np.arange(data.shape[1])
    keep = np.flatnonzero(~np.isnan(data).any(axis=(0, 2)))
    if len(keep) == 0:
        raise ValueError(
            f"stations='complete': every station has missing values from {months[0]} to "
            f"{months[-1]}. Choose a shorter period, or stations=None."
        )
    return keep
