"""Simulated monthly maps that depend on a few climate indices."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..extras import need

_INDICES = ("ENSO", "NAO", "PDO", "SAM")
# Latitude and longitude of the centre of each pattern, its height and its width, in degrees.
_CENTRES = ((0, 220, 25, 50), (50, 330, 15, 40), (35, 180, 15, 35), (-50, 100, 12, 90))
_FIRST_MONTH = "1980-01"


def make_climate_maps(
    n_months: int = 480,
    *,
    noise: float = 0.6,
    labelled: bool = False,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[Any, Any]:
    """Simulate monthly temperature maps that depend on four climate indices.

    Each index has a broad pattern on the map. The noise of the cells is independent, and twice as
    strong at longitudes below 180 degrees as above.

    Parameters
    ----------
    n_months : int, default=480
        Number of samples.
    noise : float, default=0.6
        Mean standard deviation of the noise, in kelvin.
    labelled : bool, default=False
        Whether to return a DataFrame and a DataArray with coordinates. Requires the extra
        ``xarray``.
    random_state : int, RandomState instance or None, default=None
        Seed of the random draws.

    Returns
    -------
    X : ndarray or DataFrame of shape (n_months, 4)
        The climate indices, standard normal.
    Y : ndarray or DataArray of shape (n_months, 24, 36)
        Temperature anomalies in kelvin, by latitude and longitude.

    Examples
    --------
    >>> from holrr import HOLRRCV
    >>> from holrr.datasets import make_climate_maps
    >>> X, Y = make_climate_maps(60, random_state=0)
    >>> X.shape, Y.shape
    ((60, 4), (60, 24, 36))
    >>> HOLRRCV().fit(X, Y).predict(X[:1]).shape
    (1, 24, 36)
    """
    rng = check_random_state(random_state)
    lat, lon = np.linspace(-57.5, 57.5, 24), np.arange(0.0, 360.0, 10.0)
    X = rng.normal(size=(n_months, len(_INDICES)))
    scale = noise * np.where(lon < 180, 4 / 3, 2 / 3)
    patterns = np.stack([_pattern(lat[:, None], lon, *centre) for centre in _CENTRES])
    Y = np.tensordot(X, patterns, 1) + scale * rng.normal(size=(n_months, lat.size, lon.size))
    return _labelled(X, Y, lat, lon) if labelled else (X, Y)


def _pattern(
    lat: np.ndarray, lon: np.ndarray, centre: float, middle: float, height: float, width: float
) -> np.ndarray:
    """Return a pattern in kelvin: a warm centre, and a weaker cold centre 90 degrees to the west.

    The cold centre is at 5 degrees south.
    """
    warm = np.exp(-(((lat - centre) / height) ** 2) - ((lon - middle) / width) ** 2)
    cold = np.exp(-(((lat + 5) / 20) ** 2) - ((lon - middle + 90) / width) ** 2)
    return 1.5 * warm - 0.75 * cold


def _labelled(X: np.ndarray, Y: np.ndarray, lat: np.ndarray, lon: np.ndarray) -> tuple[Any, Any]:
    pd = need("pandas", "labelled=True needs pandas", "xarray")
    xr = need("xarray", "labelled=True needs xarray", "xarray")
    time = pd.date_range(_FIRST_MONTH, periods=len(X), freq="MS", name="time")
    maps = xr.DataArray(
        Y,
        coords={"time": time, "lat": lat, "lon": lon},
        name="temperature",
        attrs={"units": "K"},
    )
    maps.lat.attrs["units"], maps.lon.attrs["units"] = "degrees_north", "degrees_east"
    return pd.DataFrame(X, index=time, columns=list(_INDICES)), maps
