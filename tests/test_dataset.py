"""Fitted models as Datasets of xarray, which NetCDF and Zarr hold."""

from __future__ import annotations

import numpy as np
import pytest

from holrr import HOLRR, RLS, KernelHOLRR
from problems import toy

xr = pytest.importorskip("xarray", reason="xarray is not installed")


def labelled():
    rng = np.random.default_rng(0)
    time = np.arange(40)
    x = xr.DataArray(
        rng.normal(size=(40, 3, 2)),
        dims=("time", "lat", "lon"),
        coords={"time": time, "lat": [10.0, 20, 30], "lon": [5, 15]},
    )
    y = xr.DataArray(
        rng.normal(size=(40, 2, 3)),
        dims=("time", "station", "month"),
        coords={
            "time": time,
            "station": ["Oslo", "Rome"],
            "month": np.array(["2000-01", "2000-02", "2000-03"], dtype="M8[ns]"),
        },
    )
    return x, y + x.values[:, :1, :1]


def again(found, suffix, path):
    """The Dataset from a file."""
    if suffix == "nc":
        pytest.importorskip("h5netcdf", reason="h5netcdf is not installed")
        found.to_netcdf(path, engine="h5netcdf")
        return xr.load_dataset(path, engine="h5netcdf")
    pytest.importorskip("zarr", reason="zarr is not installed")
    found.to_zarr(path)
    return xr.open_zarr(path).load()


@pytest.mark.filterwarnings("ignore")  # of zarr, about types of text
@pytest.mark.parametrize("suffix", ["nc", "zarr"])
def test_every_estimator_is_the_same_after_a_file(row, suffix, tmp_path):
    x, y = labelled()
    model = row.make().fit(x, y)
    found = model.to_dataset()
    saved = again(found, suffix, tmp_path / f"model.{suffix}")
    assert saved.identical(found)
    assert {"intercept", "core", "factor_station", "factor_month"} <= set(saved)
    assert all(isinstance(value, str) for value in saved.attrs.values())
    np.testing.assert_array_equal(saved.station, y.station)
    np.testing.assert_array_equal(saved.intercept, model.intercept_)
    assert ("noise" in saved) == hasattr(model, "noise_")
    if "noise" in saved:
        np.testing.assert_array_equal(saved.noise, model.noise_)
    if "coef" in saved:
        predicted = xr.dot(x, saved.coef, dim=["lat", "lon"]) + saved.intercept
        np.testing.assert_allclose(predicted.transpose(*y.dims), model.predict(x), atol=1e-9)


def test_core_and_factors_predict_too():
    X, Y = toy(n=30)
    model = HOLRR(2).fit(X, Y)
    found = model.to_dataset()
    parts = (found.core, found.factor_feature, found.factor_mode1, found.factor_mode2)
    ranks = ["rank_feature", "rank_mode1", "rank_mode2"]
    coef = xr.dot(*parts, dim=ranks).transpose("feature", "mode1", "mode2")
    np.testing.assert_allclose(coef, model.coef_, atol=1e-12)
    np.testing.assert_allclose(np.tensordot(X, coef, 1) + found.intercept.values, model.predict(X))


def test_periods_and_time_zones_become_text(tmp_path):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, Y = toy(n=30)
    for labels in (
        pd.period_range("2000-01", periods=4, freq="M"),
        pd.date_range("2000-01-01", periods=4, tz="Europe/Berlin"),
    ):
        table = pd.DataFrame(np.reshape(Y, (30, -1))[:, :4], columns=labels)
        found = RLS().fit(X, table).to_dataset()
        name = found.intercept.dims[0]
        assert list(found[name].values) == list(map(str, labels))
        assert again(found, "nc", tmp_path / "model.nc").identical(found)


def test_scalar_targets_and_nonlinear_kernels():
    X, Y = toy(n=30)
    found = RLS().fit(X, Y[:, 0, 0]).to_dataset()
    assert found.coef.dims == ("feature",)
    assert found.intercept.shape == found.noise.shape == ()
    found = KernelHOLRR(2, kernel="rbf").fit(X, Y).to_dataset()
    assert "coef" not in found
    assert found.factor_feature.dims[0] == "kernel_center"
