"""From two NetCDF files to a third in four lines, where both have dimensions of the same names."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from holrr import HOLRRCV

xr = pytest.importorskip("xarray", reason="xarray is not installed")
pd = pytest.importorskip("pandas", reason="pandas is not installed")
pytest.importorskip("h5netcdf", reason="h5netcdf is not installed")

N_MONTHS, LAND = 60, (slice(1, 3), slice(2, 4))

FOUR_LINES = """
sst, slp = xr.open_dataarray("sst.nc"), xr.open_dataarray("slp.nc")
model = HOLRRCV().fit(sst[:48], slp[:48])
forecast = model.predict(sst[48:])
forecast.to_netcdf("forecast.nc")
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Two files over time, lat and lon; on other grids, and the sea has land."""
    rng = np.random.default_rng(0)
    time = pd.date_range("2000-01-01", periods=N_MONTHS, freq="MS")
    lat, lon = np.linspace(-10, 30, 5), np.linspace(0, 75, 6)
    bumps = np.exp(-((lat[:, None] - 10) ** 2) / 200 - (lon - 30) ** 2 / 500)
    index = rng.normal(size=N_MONTHS)
    values = index[:, None, None] * bumps + 0.1 * rng.normal(size=(N_MONTHS, 5, 6))
    values[:, *LAND] = np.nan
    sst = xr.DataArray(values, {"time": time, "lat": lat, "lon": lon}, name="sst")
    sst.to_netcdf(tmp_path / "sst.nc")
    waves = np.outer([1.0, -1.0, 0.5], [1.0, 0.2, -0.4, -1.0])
    slp = xr.DataArray(
        1013 + index[:, None, None] * waves + 0.1 * rng.normal(size=(N_MONTHS, 3, 4)),
        {"time": time, "lat": [40.0, 50.0, 60.0], "lon": [-60.0, -40.0, -20.0, 0.0]},
        name="slp",
        attrs={"units": "hPa"},
    )
    slp.to_netcdf(tmp_path / "slp.nc")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_four_lines_write_a_forecast_from_two_netcdf_files(folder):
    assert len(FOUR_LINES.strip().splitlines()) == 4
    names = {"xr": xr, "HOLRRCV": HOLRRCV}
    exec(FOUR_LINES, names)
    written = xr.load_dataarray(folder / "forecast.nc")
    slp, sst = (xr.load_dataarray(folder / f"{name}.nc") for name in ("slp", "sst"))
    assert (written.name, written.dims, written.attrs) == ("slp", slp.dims, {"units": "hPa"})
    for dim in ("lat", "lon"):
        assert_array_equal(written[dim], slp[dim])
    assert_array_equal(written.time, sst.time[48:])
    assert np.isfinite(written).all()
    # The file holds the predictions, and these follow the held-out maps.
    assert_array_equal(written, names["forecast"])
    error = (written - slp[48:]).to_numpy()
    assert np.mean(error**2) < 0.1 * np.mean((slp[48:] - slp[:48].mean("time")).to_numpy() ** 2)


def test_predictions_equal_those_of_a_fit_to_the_cells_of_the_sea(folder):
    names = {"xr": xr, "HOLRRCV": HOLRRCV}
    exec(FOUR_LINES, names)
    model, sst, slp = names["model"], names["sst"].to_numpy(), names["slp"].to_numpy()
    land = np.zeros(sst.shape[1:], dtype=bool)
    land[LAND] = True
    assert_array_equal(np.isnan(model.coef_).all(axis=(2, 3)), land)
    found = model.to_dataset().coef
    assert found.dims == ("lat_input", "lon_input", "lat", "lon")
    assert_array_equal(found.lat_input, names["sst"].lat)
    # Coefficients that are zero on land, on the arrays alone.
    coef = np.where(land[:, :, None, None], 0.0, model.coef_)
    predicted = np.tensordot(np.where(land, 0.0, sst[48:]), coef, 2) + model.intercept_
    assert_allclose(predicted, names["forecast"], rtol=1e-10)
    assert slp.shape[1:] == coef.shape[2:]
