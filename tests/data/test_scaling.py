"""Standardised inputs."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import holrr
from holrr.data import Standardizer
from holrr.io._container import VERSION
from holrr.io._encode import Decoder


def inputs(n=30, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)) * [1.0, 1e3, 1e-5] + [0.0, 1e6, 3.0]


def test_arrays_are_scaled_as_by_scikit_learn():
    X = inputs()
    np.testing.assert_allclose(Standardizer().fit_transform(X), StandardScaler().fit_transform(X))


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e150, 1e300])
def test_the_scale_of_the_inputs_does_not_change_the_result(scale):
    X = inputs() - inputs().mean(0)
    expected = Standardizer().fit_transform(X)
    np.testing.assert_allclose(Standardizer().fit_transform(scale * X), expected, rtol=1e-6)


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e9, -1e-200])
def test_constant_inputs_are_centred_and_not_scaled(constant):
    X = inputs()
    X[:, 1] = constant
    found = Standardizer().fit(X)
    assert found.scaling_[""][2][1] == 1.0
    np.testing.assert_allclose(found.transform(X)[:, 1], 0.0, atol=1e-6)


@pytest.mark.parametrize("chunked", [False, True])
def test_xarray_objects_keep_their_names_and_stay_lazy(chunked):
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    pytest.importorskip("dask", reason="dask is not installed")
    X = xr.DataArray(
        inputs(24).reshape(12, 2, 3),
        dims=("time", "lat", "lon"),
        coords={"time": np.arange(12), "lat": [1.0, 2.0]},
    )
    data = xr.Dataset({"a": X, "b": 2 * X.isel(lat=0, drop=True) + 1})
    X, data = (A.chunk(time=5) if chunked else A for A in (X, data))
    expected = (X - X.mean("time")) / X.std("time")
    scaler = Standardizer().fit(X)
    xr.testing.assert_allclose(scaler.transform(X), expected)
    turned = scaler.transform(X.transpose("lon", "time", "lat"))
    xr.testing.assert_allclose(turned.transpose(*X.dims), expected)
    found = (
        Standardizer(sample_dim="time").fit(data.transpose("lon", "lat", "time")).transform(data)
    )
    xr.testing.assert_allclose(found.a, expected)
    xr.testing.assert_allclose(found.b, expected.isel(lat=0, drop=True))
    assert bool(found.chunks) == chunked


def test_errors_give_the_index_of_a_bad_entry():
    X = inputs()
    X[4, 2] = np.nan
    with pytest.raises(ValueError, match=r"NaN at index \(4, 2\)"):
        Standardizer().fit(X)


def test_a_pipeline_is_saved_with_its_model(tmp_path):
    X, Y = inputs(), np.random.default_rng(1).normal(size=(30, 2, 2))
    for model in (holrr.HOLRR(2), holrr.KernelRLS(), holrr.RLSCV(cv=3)):
        pipeline = make_pipeline(Standardizer(), model).fit(X, Y)
        holrr.io.save(pipeline, tmp_path / "m")
        again = holrr.load(tmp_path / "m")
        np.testing.assert_array_equal(again.predict(X), pipeline.predict(X))
        assert repr(again) == repr(pipeline)


def test_pipelines_with_foreign_steps_are_not_saved(tmp_path):
    pipeline = make_pipeline(StandardScaler(), holrr.RLS())
    with pytest.raises(TypeError, match="StandardScaler is not a public class of holrr"):
        holrr.io.save(pipeline, tmp_path / "m")
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("items", [[], [1], [{"$": "list", "items": ["a", 1]}]])
def test_a_file_with_a_pipeline_of_other_things_is_refused(items):
    with pytest.raises((ValueError, TypeError)):
        Decoder({}, VERSION).decode({"$": "pipeline", "items": items})


@parametrize_with_checks([Standardizer()])
def test_the_checks_of_scikit_learn_pass(estimator, check):
    check(estimator)


def test_nan_is_refused_by_transform_and_leaves_the_fit_as_it_was():
    X = inputs()
    bad = X.copy()
    bad[3, 1] = np.nan
    scaler = Standardizer().fit(X)
    before = pickle.dumps(scaler)
    for use in (scaler.transform, scaler.fit):
        with pytest.raises(ValueError, match="X contains NaN"):
            use(bad)
    assert pickle.dumps(scaler) == before


def test_arrays_of_other_libraries_stay_such(xp):
    X = inputs()
    for dtype, tol in ((np.float64, 1e-9), (np.float32, 1e-2)):
        given = xp.asarray(X.astype(dtype))
        found = Standardizer().fit_transform(given)
        assert type(found) is type(given)
        assert xp.name == "numpy" or found.dtype == given.dtype
        expected = Standardizer().fit_transform(X.astype(dtype))
        np.testing.assert_allclose(xp.to_numpy(found), expected, atol=tol)


def test_tables_of_polars_stay_such():
    pl = pytest.importorskip("polars", reason="polars is not installed")
    X = inputs()
    table = pl.DataFrame(X, schema=["a", "b", "c"])
    scaler = Standardizer().fit(table)
    found = scaler.transform(table)
    assert isinstance(found, pl.DataFrame)
    assert found.columns == ["a", "b", "c"]
    np.testing.assert_allclose(found.to_numpy(), Standardizer().fit_transform(X))
    with pytest.raises(ValueError, match="At position 0 X has 'b'"):
        scaler.transform(table.select("b", "a", "c"))
    with pytest.raises(TypeError, match=r"X is a LazyFrame; call X\.collect\(\) first"):
        scaler.transform(table.lazy())


def test_arrays_and_xarray_objects_may_take_turns():
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    X = inputs(24).reshape(12, 2, 3)
    array = xr.DataArray(X, dims=("time", "lat", "lon"))
    flat = X.reshape(12, 6)
    expected = Standardizer().fit_transform(flat)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # only one of them has names
        found = Standardizer().fit(array).transform(flat)
        np.testing.assert_allclose(found, expected, rtol=1e-9)
        found = Standardizer().fit(flat).transform(array)
    assert found.dims == array.dims
    np.testing.assert_allclose(found.to_numpy().reshape(12, 6), expected, rtol=1e-9)


def test_the_scaling_of_older_files_is_found_by_the_names_of_dimensions():
    """They hold no labels of xarray objects."""
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    array = xr.DataArray(inputs(24).reshape(12, 2, 3), dims=("time", "lat", "lon"))
    scaler = Standardizer().fit(array)
    old = Standardizer()
    old.scaling_ = scaler.scaling_
    xr.testing.assert_identical(old.transform(array), scaler.transform(array))
    turned = array.transpose("lon", "time", "lat")
    xr.testing.assert_identical(old.transform(turned), scaler.transform(turned))
