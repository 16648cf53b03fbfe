"""Simulated climate maps: shapes, seeds, noise and labels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from holrr.datasets import make_climate_maps


def test_the_seed_determines_the_data():
    X, Y = make_climate_maps(20, random_state=0)
    again = make_climate_maps(20, random_state=0)
    other = make_climate_maps(20, random_state=1)
    assert (X.shape, Y.shape) == ((20, 4), (20, 24, 36))
    assert_array_equal(X, again[0])
    assert_array_equal(Y, again[1])
    assert not np.allclose(X, other[0])


def test_without_noise_the_maps_are_linear_in_the_indices():
    X, Y = make_climate_maps(20, noise=0.0, random_state=0)
    coef, *_ = np.linalg.lstsq(X, Y.reshape(20, -1), rcond=None)
    assert_allclose(X @ coef, Y.reshape(20, -1), atol=1e-12)
    assert np.linalg.matrix_rank(coef) == 4


def test_the_noise_is_twice_as_strong_at_longitudes_below_180():
    _, Y = make_climate_maps(2000, noise=0.6, random_state=0)
    _, signal = make_climate_maps(2000, noise=0.0, random_state=0)
    spread = (Y - signal).std(axis=(0, 1))
    assert_allclose(spread[:18], 0.8, rtol=0.02)
    assert_allclose(spread[18:], 0.4, rtol=0.02)


def test_labelled_maps_have_the_same_numbers():
    pytest.importorskip("xarray", reason="xarray is not installed")
    X, Y = make_climate_maps(15, random_state=3)
    table, maps = make_climate_maps(15, labelled=True, random_state=3)
    assert_array_equal(table.to_numpy(), X)
    assert_array_equal(maps.to_numpy(), Y)
    assert list(table.columns) == ["ENSO", "NAO", "PDO", "SAM"]
    assert maps.dims == ("time", "lat", "lon")
    assert maps.attrs["units"] == "K"
    assert (table.index == maps.time.to_index()).all()


def test_labelled_maps_without_xarray_name_the_extra(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(ImportError, match=r"holrr\[xarray\]"):
        make_climate_maps(5, labelled=True)
