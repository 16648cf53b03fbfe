"""Which station files the Met Office publishes, and how to get one. Nothing here reads them."""

from __future__ import annotations

from pathlib import Path

BASE_URL = "https://www.metoffice.gov.uk/pub/data/weather/uk/climate/stationdata/"

_NAMES = """
    aberporth armagh ballypatrick bradford braemar camborne cambridge cardiff chivenor cwmystwyth
    dunstaffnage durham eastbourne eskdalemuir heathrow hurn lerwick leuchars lowestoft manston
    nairn newtonrigg oxford paisley ringway rossonwye shawbury sheffield southampton stornoway
    suttonbonington tiree valley waddington whitby wickairport yeovilton
"""
STATIONS = tuple(_NAMES.split())


def file_name(station: str) -> str:
    """Name of a station's file, the same on the server and in the folder.

    Examples
    --------
    >>> from holrr.datasets._met_office_download import file_name
    >>> file_name("oxford")
    'oxforddata.txt'
    """
    return f"{station}data.txt"


def download_station(station: str, folder: Path, *, n_retries: int = 2) -> Path:
    """Download the file of one station into a folder.

    The file is not checked against a checksum: the published files grow by a line every month,
    so none can be known. It appears under its name only when it has come whole.

    Parameters
    ----------
    station : str
        One of `STATIONS`.
    folder : Path
        Where the file goes. Made if it does not exist.
    n_retries : int, default=2
        How often to try again when the download fails, with a growing pause before each.

    Returns
    -------
    path : Path
        The downloaded file.

    Raises
    ------
    ImportError
        If pooch is not installed.
    OSError
        If the file cannot be downloaded.
    """
    try:
        import pooch
    except ImportError as error:
        raise ImportError(
            "downloading the Met Office data needs pooch: pip install holrr[data]"
        ) from error
    name = file_name(station)
    url = BASE_URL + name
    cache = pooch.create(
        path=folder, base_url="", registry={name: None}, urls={name: url}, retry_if_failed=n_retries
    )
    try:
        return Path(cache.fetch(name, downloader=pooch.HTTPDownloader(timeout=30)))
    # What requests raises for a refused connection or an answer such as 404 is an OSError.
    except (OSError, ValueError) as error:
        raise OSError(
            f"could not download {url}: {error}. Check the network connection, or put the file "
            f"into the folder {folder} by hand."
        ) from error
