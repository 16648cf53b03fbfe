"""Simulated data sets with labels, for the tutorials."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..extras import need

__all__ = ["make_ocean_forecast", "make_tissue_spectra"]

STATIONS = ["Azores", "Bergen", "Bermuda", "Cork", "Dakar", "Lisbon", "Reykjavik", "Tiree"]
MARKERS = ["ALT", "AST", "CRP", "Fe", "Hb", "IL6", "K", "LDH", "Na", "TNF", "Zn", "pH"]
TISSUES = ["liver", "lung", "skin", "kidney"]


def make_ocean_forecast(*, random_state: Any = 0) -> Any:
    """Simulate sea surface temperature and the air temperature at stations in later months.

    The amplitudes of three patterns of sea surface temperature are autocorrelated over several
    months. They affect the air temperature at eight stations in the six months that follow. The
    effect decreases with the lead time.

    Parameters
    ----------
    random_state : int, RandomState or None, default=0
        Seed of the random draws.

    Returns
    -------
    xarray.Dataset
        ``sst`` with the dimensions time (720 months from 1950 on), lat and lon, and
        ``temperature`` with the dimensions time, station and lead. Both are in kelvin.

    Examples
    --------
    >>> from holrr.datasets import make_ocean_forecast
    >>> data = make_ocean_forecast()
    >>> data.sst.shape, data.temperature.shape
    ((720, 13, 17), (720, 8, 6))
    """
    xr = need("xarray", "make_ocean_forecast returns an xarray Dataset", "xarray")
    rng = check_random_state(random_state)
    time = np.arange("1950-01", "2010-01", dtype="datetime64[M]").astype("datetime64[ns]")
    lat, lon, lead = np.arange(0.0, 65.0, 5.0), np.arange(-80.0, 1.0, 5.0), np.arange(1, 7)
    centres = [(10, -50, 12), (40, -40, 10), (55, -25, 9)]  # latitude, longitude, width
    patterns = np.stack(
        [np.exp(-(((lat[:, None] - a) ** 2 + (lon - b) ** 2) / w**2)) for a, b, w in centres]
    )
    index = np.zeros((time.size, 3))
    for t in range(1, time.size):
        index[t] = 0.85 * index[t - 1] + rng.normal(size=3)
    sst = np.tensordot(index, patterns, 1)
    sst = sst + 0.5 * rng.normal(size=sst.shape)
    response = 0.5 * rng.normal(size=(3, len(STATIONS)))
    decay = np.exp(-lead / np.array([[6.0], [3.0], [1.5]]))
    air = np.einsum("tk,ks,kl->tsl", index, response, decay)
    air = air + rng.normal(size=air.shape)
    about = {"units": "K", "long_name": "sea surface temperature anomaly"}
    return xr.Dataset(
        {
            "sst": (("time", "lat", "lon"), sst, about),
            "temperature": (("time", "station", "lead"), air, {"units": "K"}),
        },
        coords={
            "time": time,
            "lat": lat,
            "lon": lon,
            "station": STATIONS,
            "lead": ("lead", lead, {"units": "months"}),
        },
    )


def make_tissue_spectra(*, random_state: Any = 1) -> tuple[Any, Any]:
    """Simulate blood markers of animals and absorption spectra of their tissues.

    Forty animals are measured three times each. Inflammation (CRP, IL6 and TNF) changes the spectra
    around 460 nm, and iron (Fe and Hb) around 600 nm. The size of the change differs between
    tissues.

    Parameters
    ----------
    random_state : int, RandomState or None, default=1
        Seed of the random draws.

    Returns
    -------
    markers : DataFrame of shape (120, 12)
        Blood markers. The rows have the levels animal and replicate.
    spectra : DataFrame of shape (120, 80)
        Absorbance. The columns have the levels tissue (4) and wavelength (20).

    Examples
    --------
    >>> from holrr.datasets import make_tissue_spectra
    >>> markers, spectra = make_tissue_spectra()
    >>> markers.shape, spectra.columns.names
    ((120, 12), FrozenList(['tissue', 'wavelength']))
    """
    pd = need("pandas", "make_tissue_spectra returns pandas DataFrames", "table")
    rng = check_random_state(random_state)
    rows = pd.MultiIndex.from_product([range(1, 41), list("abc")], names=["animal", "replicate"])
    animals = np.repeat(rng.normal(size=(40, len(MARKERS))), 3, axis=0)
    markers = pd.DataFrame(animals + 0.3 * rng.normal(size=animals.shape), rows, MARKERS)
    wavelength = np.arange(400, 800, 20)

    def band(centre: float, width: float) -> np.ndarray:
        return np.exp(-(((wavelength - centre) / width) ** 2))

    inflammation = markers[["CRP", "IL6", "TNF"]].sum(axis=1).to_numpy()
    iron = (markers["Fe"] + 0.5 * markers["Hb"]).to_numpy()
    signal = np.multiply.outer(inflammation, np.outer([1.0, 0.6, 0.1, 0.3], band(460, 50)))
    signal += np.multiply.outer(iron, np.outer([0.8, -0.2, 0.0, 0.5], band(600, 70)))
    columns = pd.MultiIndex.from_product([TISSUES, wavelength], names=["tissue", "wavelength"])
    of_animal = np.repeat(0.4 * rng.normal(size=(40, len(columns))), 3, axis=0)
    values = 2 + signal.reshape(len(rows), -1) + of_animal + 0.5 * rng.normal(size=of_animal.shape)
    return markers, pd.DataFrame(values, rows, columns)
