"""Labels of xarray objects, tables and flat outputs are kept by every estimator."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

import holrr
from holrr import (
    HOLRR,
    HOLRRCV,
    RLS,
    RLSCV,
    KernelHOLRR,
    Moments,
    standard_errors,
    trace_norm_path,
)
from holrr.data import Along, Delayer, Standardizer
from holrr.diagnostics import find_outliers
from holrr.report import make_report
from holrr.streaming import memory_budget
from problems import assert_same_state, on_disk, toy

xr = pytest.importorskip("xarray", reason="xarray is not installed")
pd = pytest.importorskip("pandas", reason="pandas is not installed")

pytestmark = pytest.mark.filterwarnings(
    "ignore:The best penalty",
    "ignore:landmarks=",
    "ignore::sklearn.exceptions.ConvergenceWarning",
    "ignore:The kernel is not positive",
)

SHAPE = (3, 4)


def maps(n=40, d0=(2, 3), shape=SHAPE):
    """Inputs and outputs with names of all dimensions and coordinates."""
    X, Y = toy(n=n, d0=d0[0] * d0[1], shape=shape)
    time = pd.date_range("1999-12-01", periods=n, freq="MS")
    x = xr.DataArray(
        X.reshape(n, *d0),
        dims=("time", "lat", "lon"),
        coords={"time": time, "lat": 50.0 + np.arange(d0[0]), "lon": np.arange(d0[1])},
        name="sst",
    )
    y = xr.DataArray(
        Y,
        dims=("time", "station", "month"),
        coords={
            "time": time,
            "year": ("time", time.year),
            "station": [f"station {i}" for i in range(shape[0])],
            "elevation": ("station", 10.0 * np.arange(shape[0]), {"units": "m"}),
            "month": pd.date_range("2000-01-01", periods=shape[1], freq="MS"),
            "height": 2.0,
        },
        name="temperature",
        attrs={"units": "K", "levels": [1, 2]},
    )
    return x, y


def matrix(x):
    return x.to_numpy().reshape(len(x), -1)


def tables(n=40):
    X, Y = toy(n=n)
    index = pd.date_range("2000-01-01", periods=n)
    columns = pd.MultiIndex.from_product(
        [["liver", "lung", "skin"], [1, 2, 4, 8]], names=["tissue", "day"]
    )
    x = pd.DataFrame(X, index=index, columns=list("abcde"))
    return x, pd.DataFrame(Y.reshape(n, -1), index=index, columns=columns)


# ---------------------------------------------------------------- xarray, every estimator


def test_predictions_have_the_labels_of_the_fit_and_the_numbers_of_arrays(row):
    x, y = maps()
    model = row.make().fit(x, y)
    plain = row.make().fit(matrix(x), y.to_numpy())
    new = x.isel(time=slice(3, 8))
    found = model.predict(new)
    assert_array_equal(found.to_numpy(), plain.predict(matrix(new)))
    assert found.dims == y.dims
    assert found.name == y.name
    assert found.attrs == y.attrs
    assert set(found.coords) == {"time", "station", "elevation", "month", "height"}
    for name in found.coords:
        expected = new[name] if name == "time" else y[name]
        xr.testing.assert_identical(found[name].variable, expected.variable)
    assert model.score(x, y) == plain.score(matrix(x), y.to_numpy())


def test_transposed_objects_are_ordered_by_name(row):
    x, y = maps()
    model = row.make().fit(x, y)
    turned = row.make().fit(
        x.transpose("lon", "lat", "time"),
        y.transpose("month", "time", "station"),
        sample_dim="time",
    )
    assert turned.labels_.outputs.dims == ("month", "station")
    found = turned.predict(x.transpose("lat", "time", "lon"))
    again = model.predict(x.transpose("lon", "time", "lat"))
    assert_array_equal(again.to_numpy(), model.predict(x).to_numpy())
    assert found.dims == ("time", "month", "station")
    assert model.score(x, y.transpose("month", "station", "time")) == model.score(x, y)


def test_files_and_pickle_keep_labels(row, tmp_path):
    x, y = maps()
    model = row.make().fit(x, y)
    model.save(tmp_path / "model.holrr")
    for again in (holrr.load(tmp_path / "model.holrr"), pickle.loads(pickle.dumps(model))):
        assert_same_state(again.labels_, model.labels_)
        xr.testing.assert_identical(again.predict(x), model.predict(x))


def test_another_fit_replaces_labels(row):
    x, y = maps()
    plain = row.make().fit(matrix(x), y.to_numpy())
    assert_same_state(row.make().fit(x, y).fit(matrix(x), y.to_numpy()), plain)
    assert isinstance(plain.predict(x.to_numpy().reshape(len(x), -1)), np.ndarray)


def test_shifted_samples_are_refused_and_do_not_change_the_model(row):
    x, y = maps()
    model = row.make().fit(x, y)
    before = pickle.dumps(model)
    late = y.assign_coords(time=y.time.to_index() + pd.DateOffset(months=1))
    message = r"at position 0 X has 1999-12-01.* y has 2000-01-01.*xarray.align"
    for call in (model.fit, model.score):
        with pytest.raises(ValueError, match=message):
            call(x, late)
    assert pickle.dumps(model) == before


def test_flat_outputs_equal_those_of_the_tensor(row):
    X, Y = toy()
    flat, tensor = row.make(output_shape=SHAPE).fit(X, Y.reshape(40, -1)), row.make().fit(X, Y)
    assert_array_equal(flat.predict(X), tensor.predict(X).reshape(40, -1))
    assert flat.score(X, Y.reshape(40, -1)) == tensor.score(X, Y)


def test_coefficients_intercept_and_noise_are_flat_with_output_shape(row, tmp_path):
    """As scikit-learn, and SHAP's LinearExplainer, expect them; files do not change this."""
    X, Y = toy()
    tensor = row.make().fit(X, Y)
    model = row.make(output_shape=SHAPE).fit(X, Y.reshape(40, -1))
    model.save(tmp_path / "model.holrr")
    for flat in (model, holrr.load(tmp_path / "model.holrr"), pickle.loads(pickle.dumps(model))):
        assert_array_equal(flat.intercept_, tensor.intercept_.ravel())
        if row.has_noise:
            assert_array_equal(flat.noise_, tensor.noise_.ravel())
        if hasattr(flat, "coef_"):
            assert flat.coef_.shape == (12, 5)
            row.near(X @ flat.coef_.T + flat.intercept_, flat.predict(X))
        if hasattr(flat, "dual_coef_"):
            assert_array_equal(flat.dual_coef_, tensor.dual_coef_.reshape(-1, 12))
        flat.intercept_ = flat.intercept_ + 1.0  # as scikit-learn's may be replaced
        assert_allclose(flat.predict(X), tensor.predict(X).reshape(40, -1) + 1.0)


def test_prediction_spread_and_intervals_do_not_depend_on_output_shape(row):
    X, Y = toy()
    flat, tensor = row.make(output_shape=SHAPE).fit(X, Y.reshape(40, -1)), row.make().fit(X, Y)
    if row.has_noise:
        for a, b in zip(flat.predict(X, True), tensor.predict(X, True), strict=True):
            assert_array_equal(a, b.reshape(40, -1))
    if row.has_intervals:
        for a, b in zip(flat.predict_interval(X), tensor.predict_interval(X), strict=True):
            assert_array_equal(a, b.reshape(40, -1))


def test_files_keep_flat_outputs(row, tmp_path):
    X, Y = toy()
    model = row.make(output_shape=SHAPE).fit(X, Y.reshape(40, -1))
    model.save(tmp_path / "model.holrr")
    again = holrr.load(tmp_path / "model.holrr")
    assert_array_equal(again.predict(X), model.predict(X))


def test_flat_outputs_of_another_size_are_refused(row):
    X, Y = toy()
    for y in (Y, Y[:, 0], Y.reshape(40, -1)[:, :-1]):
        with pytest.raises(ValueError, match=r"y must have shape \(n_samples, 12\).*got"):
            row.make(output_shape=SHAPE).fit(X, y)


def test_a_table_with_column_levels_is_a_tensor(row):
    x, y = tables()
    model = row.make().fit(x, y)
    plain = row.make().fit(x.to_numpy(), y.to_numpy().reshape(-1, *SHAPE))
    found = model.predict(x)
    assert_array_equal(found.to_numpy(), plain.predict(x.to_numpy()).reshape(40, -1))
    pd.testing.assert_index_equal(found.columns, y.columns)
    pd.testing.assert_index_equal(found.index, x.index)
    intercept = model.to_dataset().intercept
    assert intercept.dims == ("tissue", "day")
    assert_array_equal(intercept.day, [1, 2, 4, 8])


def test_a_model_becomes_a_labelled_dataset(row):
    x, y = maps()
    model = row.make().fit(x, y)
    found = model.to_dataset()
    assert found.intercept.dims == ("station", "month")
    assert_array_equal(found.station, y.station)
    ranks = ("rank_feature", "rank_station", "rank_month")
    assert found.core.dims == ranks
    assert found.factor_station.dims == ("station", "rank_station")
    if row.linear and not hasattr(model, "dual_coef_"):
        assert found.coef.dims == ("lat", "lon", "station", "month")
        assert_array_equal(found.coef.to_numpy(), model.coef_)
        product = found.factor_feature
        for name in ("core", "factor_station", "factor_month"):
            product = xr.dot(product, found[name])
        assert_allclose(product.transpose(*found.coef.dims), found.coef, atol=1e-9)
    if hasattr(model, "cv_results_"):
        assert_array_equal(found.mean_mse, model.cv_results_["mean_mse"])


# ---------------------------------------------------------------- datasets, Dask, batches


def test_variables_of_a_dataset_are_a_mode():
    x, y = maps()
    inputs = xr.Dataset({"sst": x, "index": x[:, 0, 0].drop_vars(["lat", "lon"])})
    outputs = xr.Dataset({"mean": y, "spread": 2 * y.rename(None)}, attrs={"source": "tests"})
    model = RLS().fit(inputs, outputs)
    intercept = model.to_dataset().intercept
    assert intercept.dims == ("variable", "station", "month")
    assert intercept["variable"].to_numpy().tolist() == ["mean", "spread"]
    assert model.feature_names_in_[[0, -1]].tolist() == ["sst[lat=50.0,lon=0]", "index"]
    found = model.predict(inputs[["index", "sst"]].transpose())
    assert isinstance(found, xr.Dataset)
    assert found.attrs == outputs.attrs
    assert found["mean"].attrs == y.attrs
    assert_allclose(found["spread"], 2 * found["mean"])
    with pytest.raises(ValueError, match=r"missing are \['index'\]"):
        model.predict(inputs[["sst"]])
    with pytest.raises(ValueError, match="same dimensions: 'b' has"):
        RLS().fit(inputs, xr.Dataset({"a": y, "b": y[:, 0].drop_vars(["station", "elevation"])}))


@pytest.mark.parametrize("estimator", [HOLRR(rank=2), HOLRRCV(cv=3), RLSCV(cv=3)])
def test_labelled_dask_arrays_stay_lazy_and_equal_those_in_memory(estimator):
    dask = pytest.importorskip("dask.array", reason="dask is not installed")
    x, y = maps(n=60)
    lazy = x.chunk({"time": 25, "lat": 1}), y.chunk({"time": 20, "station": 2})
    model = estimator.fit(*lazy)
    found = model.predict(lazy[0])
    assert isinstance(found.data, dask.Array)
    expected = estimator.fit(x, y).predict(x)
    assert found.dims == expected.dims
    assert_allclose(found, expected, rtol=1e-7, atol=1e-9)
    assert_allclose(model.score(*lazy), estimator.score(x, y))


def test_batches_keep_labels_and_refuse_others():
    x, y = maps()
    model = HOLRR(rank=2).partial_fit(x[:20], y[:20]).partial_fit(x[20:], y[20:])
    assert_allclose(model.predict(x), HOLRR(rank=2).fit(x, y).predict(x))
    assert model.predict(x).name == "temperature"
    with pytest.raises(ValueError, match=r"other coordinates along 'station'.*station 1"):
        model.partial_fit(x, y[:, [1, 0, 2]])
    with pytest.raises(ValueError, match=r"besides 'time'; the fit had \('station', 'month'\)"):
        model.partial_fit(x, y.rename(station="site"))


def test_moments_of_labelled_data_equal_those_of_arrays():
    x, y = maps()
    found = Moments.from_arrays(x, y.transpose("month", "time", "station"))
    turned = y.transpose("time", "month", "station").to_numpy()
    assert_allclose(found.Sxy, Moments.from_arrays(matrix(x), turned).Sxy)


@pytest.mark.parametrize("kind", ["npy", "hdf5", "zarr"])
def test_flat_outputs_on_disk_equal_those_in_memory(kind, tmp_path):
    X, Y = toy(n=200, d0=3)
    flat = Y.reshape(200, -1)
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    if kind == "npy":
        y = on_disk(tmp_path, "y", flat)
    elif kind == "hdf5":
        h5py = pytest.importorskip("h5py", reason="h5py is not installed")
        y = h5py.File(tmp_path / "y.h5", "w").create_dataset("y", data=flat, chunks=(16, 12))
        y = da.from_array(y)
    else:
        zarr = pytest.importorskip("zarr", reason="zarr is not installed")
        y = da.from_array(zarr.create_array(tmp_path / "y.zarr", data=flat, chunks=(16, 12)))
    expected = HOLRR(rank=2, output_shape=SHAPE).fit(X, flat)
    for budget in (2**10, 2**14, 2**30):  # small and larger chunks, and whole
        with memory_budget(budget):
            model = HOLRR(rank=2, output_shape=SHAPE).fit(X, y)
            assert_allclose(model.predict(X), expected.predict(X))
            assert_allclose(model.score(X, y), expected.score(X, flat))


# ---------------------------------------------------------------- labels that differ


def test_errors_name_the_labels_that_differ():
    x, y = maps()
    model = RLS().fit(x, y)
    with pytest.raises(ValueError, match=r"along 'lat' than the fit: at position 0 X has 51.0"):
        model.predict(x[:, ::-1])
    with pytest.raises(ValueError, match=r"the fit: X has 1 labels.*Pass X with all"):
        model.predict(x[:, :1])
    with pytest.raises(ValueError, match=r"at position 1 X has 60.0 and the fit had 51.0"):
        model.predict(x.assign_coords(lat=[50.0, 60.0]))
    with pytest.raises(ValueError, match=r"\('row', 'lon'\) besides 'time'; the fit had"):
        model.predict(x.rename(lat="row"))
    with pytest.raises(ValueError, match=r"it needs a sample dimension.*expand_dims\('time'\)"):
        model.predict(x[0])
    with pytest.raises(ValueError, match="y has other coordinates along 'month'"):
        model.score(x, y[:, :, ::-1])
    with pytest.raises(ValueError, match="Pass y with all entries of the fit along 'month'"):
        model.score(x, y[:, :, :-1])
    assert_array_equal(model.predict(x[:1].rename(time="start")), model.predict(x[:1]))
    assert model.predict(x.rename(time="start")).dims[0] == "start"


def test_the_sample_dimension_must_be_unique():
    x, y = maps()
    with pytest.raises(ValueError, match="sample_dim='t' is not a dimension of X"):
        RLS().fit(x, y, sample_dim="t")
    with pytest.raises(ValueError, match="share no dimension: rename"):
        RLS().fit(x.rename(time="day"), y)
    both = y.rename(station="lat").transpose("lat", "time", "month")
    both = both.drop_vars("lat")
    message = r"share \('time', 'lat'\): put the samples first.*y.transpose\('time', ...\).*to fit"
    with pytest.raises(ValueError, match=message):
        RLS().fit(x, both)
    model = RLS().fit(x, both, sample_dim="time")
    assert model.coef_.shape == (2, 3, 3, 4)
    first = RLS().fit(x, both.transpose("time", ...))
    xr.testing.assert_identical(first.predict(x), model.predict(x))
    for given in ((matrix(x), both.to_numpy()), (matrix(x), tables()[1])):
        with pytest.raises(ValueError, match="sample_dim='time' names a dimension of xarray"):
            RLS().fit(*given, sample_dim="time")


def ambiguous():
    """A field and maps of the same dimensions, whose samples come last."""
    x, y = maps()
    both = y.rename(station="lat").drop_vars(["lat", "elevation"]).transpose("lat", "month", "time")
    return x.transpose("lat", "lon", "time"), both


def test_the_sample_dimension_of_a_fit_is_that_of_all_later_calls(row):
    x, y = ambiguous()
    model = row.make().fit(x, y, sample_dim="time")
    assert model.labels_.sample_dim == "time"
    expected = row.make().fit(x.transpose("time", ...), y.transpose("time", ...))
    xr.testing.assert_identical(model.predict(x), expected.predict(x))
    assert model.score(x, y) == expected.score(x, y)
    if row.batches:
        parts = [{"time": slice(0, 20)}, {"time": slice(20, 40)}]
        batches = row.make()
        for part in parts:
            given = {} if hasattr(batches, "moments_") else {"sample_dim": "time"}
            batches.partial_fit(x.isel(part), y.isel(part), **given)
        assert batches.predict(x).dims == model.predict(x).dims


def test_refits_use_the_sample_dimension_of_the_fit():
    x, y = ambiguous()
    first = x.transpose("time", ...), y.transpose("time", ...)
    model, same = (RLSCV(cv=3).fit(*data, sample_dim="time") for data in ((x, y), first))
    expected = standard_errors(same, *first).coef.std_error
    assert_allclose(standard_errors(model, x, y).coef.std_error, expected)
    assert_allclose(standard_errors(model.best_estimator_, x, y).coef.std_error, expected)
    expected = find_outliers(same, *first, cv=3).residuals
    assert_allclose(find_outliers(model, x, y, cv=3).residuals, expected)
    pipeline = make_pipeline(Standardizer(), RLSCV(cv=3))
    pipeline.fit(x, y, standardizer__sample_dim="time", rlscv__sample_dim="time")
    for one in (model, pipeline):
        assert "R2" in str(make_report(one, x, y, cross_validate=True))
    expected = trace_norm_path(*first, [1.0, 0.1])[1].predict(x)
    found = trace_norm_path(x, y, [1.0, 0.1], sample_dim="time")[1].predict(x)
    xr.testing.assert_allclose(found, expected)


def test_tools_of_scikit_learn_pass_the_sample_dimension():
    x, y = ambiguous()
    first = x.transpose("time", ...), y.transpose("time", ...)
    steps = [Standardizer(), Delayer([0, 1]), Along(Normalizer(), "lon"), RLSCV(cv=3)]
    pipeline = make_pipeline(*steps)
    expected = clone(pipeline).fit(*first).predict(first[0])
    given = {f"{name}__sample_dim": "time" for name in pipeline.named_steps}
    xr.testing.assert_allclose(clone(pipeline).fit(x, y, **given).predict(x), expected)
    with config_context(enable_metadata_routing=True):
        found = clone(pipeline).fit(x, y, sample_dim="time").predict(x)
    xr.testing.assert_allclose(found, expected)
    # These tools divide the data along the first dimension.
    x, y = first[0].transpose("time", "lon", "lat"), first[1]
    search = GridSearchCV(RLS(), {"alpha": [0.1, 10.0]}, cv=3).fit(x, y, sample_dim="time")
    assert search.predict(x).dims == y.dims


def test_labels_of_samples_of_different_libraries_must_agree():
    x, y = maps()
    frame = pd.DataFrame(matrix(x), index=x.time.to_index())
    assert RLS().fit(frame, y).predict(frame[:5]).time[0] == y.time[0]
    with pytest.raises(ValueError, match="rows of X and y have different labels: at position 0"):
        RLS().fit(frame[::-1], y)
    count = np.arange(40)
    with pytest.raises(ValueError, match="at position 0 X has 1 and y has 0"):
        RLS().fit(x.assign_coords(time=count + 1), y.assign_coords(time=count))
    weights = xr.DataArray(np.ones(40), dims="time", coords={"time": y.time[::-1]})
    with pytest.raises(ValueError, match="rows of X and sample_weight"):
        RLS().fit(x, y, weights)
    groups = pd.Series(np.arange(40) % 5, index=x.time.to_index()[::-1])
    with pytest.raises(ValueError, match="rows of X and groups"):
        RLSCV(cv=3).fit(x, y, groups=groups)


def test_weights_may_be_xarray_objects():
    x, y = maps()
    w = xr.DataArray(np.arange(40.0), dims="time", coords={"time": y.time})
    assert_array_equal(RLS().fit(x, y, w).coef_, RLS().fit(x, y, w.to_numpy()).coef_)


def test_errors_name_the_columns_that_differ():
    x, y = tables()
    model = RLS().fit(x, y)
    with pytest.raises(ValueError, match=r"At position 0 X has 'e' and the fit had 'a'"):
        model.predict(x[x.columns[::-1]])
    with pytest.raises(ValueError, match=r"at position 0 y has \('skin', 8\).*fit had"):
        model.score(x, y[y.columns[::-1]])
    with pytest.raises(ValueError, match=r"missing \[\('liver', 1\)"):
        model.score(x, y.iloc[:, 4:])
    with pytest.raises(ValueError, match=r"two columns \('liver', 1\)"):
        RLS().fit(x, y.iloc[:, [0, 0, 1]])


def test_incomplete_column_levels_are_missing_outputs_or_an_error():
    x, y = tables()
    part = y.drop(columns=[("lung", 2)])
    with pytest.raises(ValueError, match=r"not all combinations.*1 are missing.*\('lung', '2'\)"):
        HOLRR(rank=2).fit(x, part)
    model = HOLRR(rank=2, missing="ignore").fit(x, part)
    found = model.predict(x)
    pd.testing.assert_index_equal(found.columns, part.columns)
    assert not found.isna().any(axis=None)
    assert np.isnan(model.intercept_[1, 1])
    assert np.isnan(model.intercept_).sum() == 1
    assert 0.5 < model.score(x, part) < 1


def test_predictions_have_the_order_of_shuffled_columns():
    x, y = tables()
    mixed = y.iloc[:, np.random.default_rng(0).permutation(12)]
    found = RLS(alpha=1e-3).fit(x, mixed).predict(x)
    pd.testing.assert_index_equal(found.columns, mixed.columns)
    assert_allclose(found, RLS(alpha=1e-3).fit(x, y).predict(x)[mixed.columns])


def test_plain_tables_and_polars_keep_their_columns():
    x, y = tables()
    y = y.set_axis([f"y{i}" for i in range(12)], axis=1)
    pd.testing.assert_index_equal(RLS().fit(x, y).predict(x).columns, y.columns)
    flat = HOLRR(rank=2, output_shape=SHAPE).fit(x, y)
    pd.testing.assert_index_equal(flat.predict(x).columns, y.columns)
    assert flat.core_.shape == (2, 2, 2)
    pl = pytest.importorskip("polars", reason="polars is not installed")
    found = RLS().fit(pl.from_pandas(x), pl.from_pandas(y)).predict(pl.from_pandas(x))
    assert isinstance(found, pl.DataFrame)
    assert found.columns == list(y.columns)
    assert_allclose(found.to_numpy(), RLS().fit(x, y).predict(x))


def test_inputs_with_column_levels_have_names():
    x, y = tables()
    inputs = x.set_axis(pd.MultiIndex.from_product([["u"], list("abcde")]), axis=1)
    model = RLS().fit(inputs, y)
    assert model.feature_names_in_[0] == "u / a"
    with pytest.raises(ValueError, match="u / e"):
        model.predict(inputs[inputs.columns[::-1]])


def test_predictions_keep_a_coordinate_with_levels():
    x, y = maps()
    stacked = y.stack(place=("station", "month"))
    found = RLS().fit(x, stacked).predict(x)
    pd.testing.assert_index_equal(found.indexes["place"], stacked.indexes["place"])
    assert_allclose(found.unstack("place"), RLS().fit(x, y).predict(x))


def test_labelled_text_is_refused():
    x, y = maps()
    with pytest.raises(ValueError, match=r"y \('temperature'\) must hold real numbers"):
        RLS().fit(x, y.astype(str))
    with pytest.raises(ValueError, match="X is a Dataset without variables"):
        RLS().fit(xr.Dataset(coords={"time": y.time}), y, sample_dim="time")


# ---------------------------------------------------------------- without xarray

WITHOUT = """
import sys
class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("xarray", "pandas"):
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Without())
import numpy as np, holrr
model = holrr.load(sys.argv[1])
X = np.load(sys.argv[2])
import warnings
warnings.simplefilter("ignore")
predicted = model.predict(X)
assert type(predicted) is np.ndarray
np.save(sys.argv[3], predicted)
model.save(sys.argv[1])
"""


def test_a_process_without_xarray_predicts_with_a_model_from_netcdf(tmp_path):
    """The model is fitted lazily from a file, and its own file keeps the labels."""
    pytest.importorskip("dask", reason="dask is not installed")
    x, y = maps(n=60)
    xr.Dataset({"sst": x, "t2m": y.drop_vars("year")}).to_netcdf(
        tmp_path / "data.nc", engine="h5netcdf"
    )
    with xr.open_dataset(tmp_path / "data.nc", engine="h5netcdf", chunks={"time": 20}) as data:
        model = HOLRR(rank=2).fit(data.sst, data.t2m)
        lazy = model.predict(data.sst)
        first = lazy.compute()
    assert hasattr(lazy.data, "dask")
    model.save(tmp_path / "model.holrr")
    np.save(tmp_path / "X.npy", matrix(x))
    names = [str(tmp_path / name) for name in ("model.holrr", "X.npy", "out.npy")]
    subprocess.run([sys.executable, "-c", WITHOUT, *names], check=True)
    assert_array_equal(np.load(tmp_path / "out.npy"), first.to_numpy())
    again = holrr.load(tmp_path / "model.holrr")
    assert_same_state(again.labels_, model.labels_)
    xr.testing.assert_identical(again.predict(x), first.assign_coords(time=x.time))
    first.to_netcdf(tmp_path / "out.nc", engine="h5netcdf")
    with xr.open_dataset(tmp_path / "out.nc", engine="h5netcdf") as written:
        assert_array_equal(written["t2m"].station, y.station)
        assert written["t2m"].attrs["units"] == "K"


def test_kernels_keep_labels_and_predict_arrays_of_other_libraries():
    x, y = maps()
    kernel = KernelHOLRR(rank=2, kernel="rbf", gamma=0.1).fit(x, y)
    assert kernel.predict(x).dims == y.dims
    torch = pytest.importorskip("torch", reason="torch is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # no names, but fitted with names
        assert isinstance(kernel.predict(torch.asarray(matrix(x))), torch.Tensor)


def test_name_modes_names_the_output_modes(tmp_path):
    X, Y = toy()
    model = HOLRRCV(cv=3).fit(X, Y).name_modes(tissue=["liver", "lung", "skin"], day=None)
    assert model.to_dataset().coef.dims == ("feature", "tissue", "day")
    assert isinstance(model.predict(X), np.ndarray)
    model.save(tmp_path / "model.holrr")
    assert_same_state(holrr.load(tmp_path / "model.holrr").labels_, model.labels_)
    with pytest.raises(
        ValueError, match=r"sizes \(3, 4\); got names for 2 modes of sizes \(2, 'any'"
    ):
        model.name_modes(tissue=["liver", "lung"], day=None)
    with pytest.raises(ValueError, match=r"got names for 1 mode of size \('any',\)"):
        model.name_modes(tissue=None)


def test_lazy_predictions_are_dask_arrays_where_y_was_a_table():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    dask = pytest.importorskip("dask.array", reason="dask is not installed")
    X, Y = toy(shape=(3,))
    model = HOLRR(2).fit(X, pd.DataFrame(Y, columns=list("abc")))
    assert isinstance(model.predict(X), pd.DataFrame)
    assert isinstance(model.predict(dask.from_array(X)), dask.Array)


@pytest.mark.parametrize("model", [HOLRR(rank=2), HOLRRCV(cv=3), KernelHOLRR(rank=2)], ids=repr)
def test_models_of_other_libraries_become_datasets(xp, model):
    X, Y = toy()
    expected = model.fit(X, Y).to_dataset()
    found = model.fit(xp.asarray(X), xp.asarray(Y)).to_dataset()
    assert set(found) == set(expected)
    for name in found:
        assert type(found[name].to_numpy()) is np.ndarray
        assert found[name].dims == expected[name].dims
    assert_allclose(found.coef, expected.coef, rtol=1e-8, atol=1e-10)
    assert_allclose(found.intercept, expected.intercept, rtol=1e-8)


def test_lazy_predictions_of_outputs_without_a_name_have_none():
    """xarray names an unnamed DataArray by its Dask array, which has a hash for a name."""
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    X, Y = toy()
    x = xr.DataArray(da.from_array(X, chunks=(20, 5)), dims=("time", "driver"))
    y = xr.DataArray(Y, dims=("time", "lat", "lon"))
    lazy = xr.DataArray(da.from_array(Y, chunks=(20, 3, 4)), dims=y.dims)
    for outputs in (y, lazy, lazy.rename(None)):
        model = HOLRRCV([1.0], cv=2).fit(x, outputs)
        for found in (model.predict(x), *model.predict(x, True), *model.predict_interval(x)):
            assert found.name is None
            assert found.dims == y.dims
    assert RLS().fit(x, lazy.rename("t2m")).predict(x).name == "t2m"
    with pytest.raises(ValueError, match=r"^X has dimensions"):  # without the hash
        RLS().fit(x, y).predict(x.rename(driver="lat"))
