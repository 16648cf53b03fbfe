"""Special cases of names: equal names, names of other types, and another order."""

from __future__ import annotations

import sys
from datetime import time, timedelta, timezone
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import holrr
from holrr import HOLRR, HOLRRCV, RLS, KernelHOLRR
from holrr.data import Grid
from holrr.metrics import r2
from problems import assert_same_state, toy
from test_labels import SHAPE, maps, matrix, tables

xr = pytest.importorskip("xarray", reason="xarray is not installed")
pd = pytest.importorskip("pandas", reason="pandas is not installed")

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty")


def test_a_model_shares_its_labels_with_neither_data_nor_predictions():
    x, y = maps()
    y = y.assign_coords(code=("station", np.arange(3.0), {"units": ["m"]}))
    model = RLS().fit(x, y)
    expected = model.predict(x).copy(deep=True)
    for A in (y, model.predict(x), model.to_dataset()):
        A["code"].values[:] = 7.0
        A["code"].attrs["units"].append("km")
        A.attrs.setdefault("levels", []).append(3)
    xr.testing.assert_identical(model.predict(x), expected)


# ---------------------------------------------------------------- equal names

OURS = ["feature", "rank_feature", "alpha", "coef", "core", "intercept", "mean_mse", "n_feature"]


@pytest.mark.parametrize("name", [*OURS, "factor_month", "n_month", "rank", "kernel_center"])
def test_dimensions_may_have_the_names_of_the_dataset_of_a_model(name):
    x, y = maps()
    plain = HOLRRCV(cv=3).fit(x, y).to_dataset()
    for pair in ((x, y.rename(station=name)), (x.rename(lat=name), y)):
        model = HOLRRCV(cv=3).fit(*pair)
        found = model.to_dataset()
        assert sorted(found.sizes.values()) == sorted(plain.sizes.values())
        assert len(found.data_vars) == len(plain.data_vars)
        assert model.predict(pair[0]).dims == pair[1].dims


def test_a_model_of_one_input_and_one_output_becomes_a_dataset():
    x, y = maps()
    found = RLS().fit(x[:, 0, 0], y[:, 0, 0]).to_dataset()
    assert (found.coef.dims, found.coef.shape) == ((), ())


def test_inputs_and_outputs_may_have_a_dimension_of_the_same_name():
    x, y = maps()
    inputs = xr.DataArray(matrix(x), dims=("time", "lat"), coords={"time": x.time})
    outputs = y.rename(station="lat").drop_vars("elevation")
    for estimator in (HOLRR(rank=2), KernelHOLRR(rank=2)):
        model = estimator.fit(inputs, outputs)
        assert model.to_dataset().core.dims == ("rank_feature", "rank_lat", "rank_month")


def test_coordinates_of_inputs_do_not_replace_those_of_outputs():
    x, y = maps()
    x = x.assign_coords(height=10.0, elevation=("lat", [1.0, 2.0]), station=("time", np.arange(40)))
    model = RLS().fit(x, y)
    for found in (model.predict(x), model.to_dataset()):
        assert found.height == 2.0
        assert_array_equal(found.station, y.station)
        assert_array_equal(found.elevation, y.elevation)
    with pytest.raises(ValueError, match="along 'station', which is a dimension of the outputs"):
        model.predict(matrix_of(x).rename(time="station"))


def matrix_of(x):
    return x.drop_vars(["station", "elevation", "height"])


def test_levels_of_the_same_name_are_different_modes():
    x, y = tables()
    y.columns = y.columns.set_names(["feature", "feature"])
    model = HOLRR(rank=2).fit(x, y)
    assert model.to_dataset().coef.dims == ("feature__", "feature", "feature_")
    assert model.predict(x).columns.names == ["feature", "feature"]


# ---------------------------------------------------------------- other types of names


def test_names_of_dimensions_need_not_be_text():
    x, y = maps()
    inputs, outputs = xr.DataArray(matrix(x), dims=(0, 1)), xr.DataArray(y.data, dims=(0, 2, 3))
    model = RLS().fit(inputs, outputs)
    assert model.predict(inputs.T).dims == (0, 2, 3)
    assert model.to_dataset().coef.dims == (1, 2, 3)
    assert_allclose(model.score(inputs, outputs.transpose(3, 0, 2)), RLS().fit(x, y).score(x, y))


def test_coordinates_are_compared_by_value():
    x, y = maps()
    y = y.assign_coords(month=np.arange(4))
    model = RLS().fit(x, y)
    score = model.score(x, y)
    floats = x.assign_coords(lon=x.lon.astype(float)), y.assign_coords(month=np.arange(4.0))
    assert model.score(*floats) == score
    assert model.score(x, y.drop_vars("month")) == score
    assert RLS().fit(x, y.drop_vars("month")).score(x, y) == score  # there is nothing to compare
    with pytest.raises(ValueError, match=r"at position 1 y has 1.5 and the fit had 1"):
        model.score(x, y.assign_coords(month=[0, 1.5, 2, 3]))


@pytest.mark.parametrize("values", [["a", "b", None], ["a", np.nan, "c"], [1.0, np.nan, 2.0]])
def test_a_level_may_contain_missing_values(values, tmp_path):
    x, y = tables()
    columns = pd.MultiIndex.from_product([values, [1, 2, 4, 8]])
    y = y.set_axis(columns, axis=1)
    model = RLS().fit(x, y)
    model.save(tmp_path / "model.holrr")
    for again in (model, holrr.load(tmp_path / "model.holrr")):
        pd.testing.assert_index_equal(again.predict(x).columns, columns)
        assert again.score(x, y) > 0.9
        with pytest.raises(ValueError, match="y has other columns than the fit"):
            again.score(x, y.iloc[:, ::-1])


def test_files_keep_dates_of_other_calendars(tmp_path):
    cftime = pytest.importorskip("cftime", reason="cftime is not installed")
    x, y = maps()
    months = [cftime.Datetime360Day(2000, 2, 30, 12, 30, 1, 5), cftime.DatetimeNoLeap(1, 2, 3)]
    months += [cftime.datetime(2000, 2, 29, calendar="standard"), cftime.DatetimeJulian(1, 2, 3)]
    y = y.assign_coords(when=("month", np.array(months)))
    model = RLS().fit(x, y)
    model.save(tmp_path / "model.holrr")
    again = holrr.load(tmp_path / "model.holrr")
    assert_same_state(again.labels_, model.labels_)
    xr.testing.assert_identical(again.predict(x), model.predict(x))


def test_numeric_labels_of_columns_are_names():
    x, y = tables()
    x = x.set_axis([1100, 1102, 1104, 1106, 1108], axis=1)
    model = RLS().fit(x, y)
    with pytest.raises(ValueError, match=r"At position 0 X has '1108' and the fit had '1100'"):
        model.predict(x[x.columns[::-1]])
    with pytest.raises(ValueError, match=r"yet now missing:\n- 1100"):
        model.predict(x.rename(columns={1100: 1090}))
    counted = RLS().fit(x.set_axis(range(5), axis=1), y)
    assert not hasattr(counted, "feature_names_in_")
    assert_array_equal(counted.predict(x.to_numpy()), model.predict(x))


@pytest.mark.parametrize("at_fit", ["counted", "array", "shuffled"])
def test_numbered_columns_in_another_order_are_refused(at_fit):
    x, y = tables()
    x = x.set_axis(range(5), axis=1)
    other = x[[4, 3, 2, 1, 0]]
    model = RLS().fit({"counted": x, "array": x.to_numpy(), "shuffled": other}[at_fit], y)
    hint = "X\\[X_train.columns\\], where" if at_fit == "shuffled" else "X.sort_index\\(axis=1\\)"
    message = rf"At position 0 X has '\d'.*\. Reorder the columns of a table with {hint}"
    with pytest.raises(ValueError, match=message):
        model.predict(x if at_fit == "shuffled" else other)


@pytest.mark.parametrize(
    "labels",
    [
        pd.period_range("2000", periods=5, freq="M"),
        pd.interval_range(0, 5),
        pd.CategoricalIndex([10, 20, 30, 40, 50]),
        pd.Index([10, 20, 30, 40, 50], dtype=object),
        pd.Index(pd.date_range("2000", periods=5).date),
    ],
    ids=["periods", "intervals", "categories", "objects", "dates"],
)
def test_object_labels_of_columns_are_names(labels):
    x, y = tables()
    x = x.set_axis(labels, axis=1)
    model = RLS().fit(x, y)
    assert model.feature_names_in_.tolist() == list(map(str, labels))
    with pytest.raises(
        ValueError, match=f"At position 0 X has {str(labels[-1])!r}".replace("(", r"\(")
    ):
        model.predict(x.iloc[:, ::-1])


LABELS = {
    "time zone": pd.date_range("2000", periods=12, tz="Europe/London"),
    "offset": pd.date_range("2000", periods=12, tz=timezone(timedelta(hours=2, minutes=30))),
    "UTC": pd.date_range("2000", periods=12, tz="UTC"),
    "missing date": pd.DatetimeIndex(["2000", None, *map(str, range(2001, 2011))], tz="UTC"),
    "periods": pd.period_range("2000-01", periods=12, freq="M"),
    "quarters": pd.period_range("2000Q1", periods=12, freq="Q-NOV"),
    "intervals": pd.interval_range(0, 12, closed="left"),
    "intervals of dates": pd.interval_range(pd.Timestamp("2000", tz="UTC"), periods=12),
    "days": pd.Index(pd.date_range("2000", periods=12).date),
    "times": pd.Index([time(hour, 30) for hour in range(12)]),
}


@pytest.mark.parametrize("kind", LABELS)
def test_predictions_and_files_keep_labels_of_pandas(kind, tmp_path):
    x, table = tables()
    labels = LABELS[kind]
    array = xr.DataArray(
        table.to_numpy(), dims=("time", "step"), coords={"time": x.index, "step": labels}
    )
    for y in (table.set_axis(labels, axis=1), array):
        model = RLS().fit(x, y)
        model.save(tmp_path / "model.holrr")
        for again in (model, holrr.load(tmp_path / "model.holrr")):
            found = again.predict(x)
            index = found.columns if y is not array else found.indexes["step"].rename(None)
            assert index.equals(labels)
            assert index.dtype == labels.dtype
            assert again.score(x, y) == model.score(x, y)
            with pytest.raises(ValueError, match=r"y has other (columns|coordinates)"):
                again.score(x, y[labels[::-1]] if y is not array else y[:, ::-1])
    assert len(model.to_dataset().indexes["step"]) == 12


def test_labels_of_pandas_are_text_without_pandas(monkeypatch, tmp_path):
    x, y = tables()
    model = RLS().fit(x, y.set_axis(LABELS["intervals of dates"], axis=1))
    model.save(tmp_path / "model.holrr")
    monkeypatch.setitem(sys.modules, "pandas", None)
    (labels,) = holrr.load(tmp_path / "model.holrr").labels_.columns
    assert labels.tolist() == list(map(str, LABELS["intervals of dates"]))


def test_labels_without_a_safe_form_are_named_by_save(tmp_path):
    x, y = tables()
    zone = pd.date_range("2000", periods=12, tz="dateutil/Europe/Berlin")
    for labels, message in (
        (pd.Index([Fraction(k, 7) for k in range(12)]), r"it contains fractions\.Fraction"),
        (zone, r"the time zone .*Berlin.* has no name.*tz_convert"),
    ):
        model = RLS().fit(x, y.set_axis(labels, axis=1))
        with pytest.raises(TypeError, match=f"RLS cannot be saved: {message}"):
            model.save(tmp_path / "model.holrr")


def test_columns_of_a_dask_table_are_names():
    dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    x, y = tables()
    lazy = dd.from_pandas(x, npartitions=3)
    model = HOLRR(rank=2).fit(lazy, y.to_numpy())
    assert model.feature_names_in_.tolist() == list(x.columns)
    assert_allclose(model.predict(lazy), model.predict(x))
    with pytest.raises(ValueError, match="At position 0 X has 'e' and the fit had 'a'"):
        model.predict(lazy[list(x.columns[::-1])])


def test_name_modes_needs_lists():
    model = RLS().fit(*toy())
    for wrong in (3, "abc"):
        with pytest.raises(ValueError, match=r"got names for 2 modes of sizes \(\(\), 'any'\)"):
            model.name_modes(station=wrong, month=None)
    assert model.name_modes(station=pd.Index(list("abc")), month=None).labels_ is not None


def test_the_error_about_a_reversed_map_says_how_to_order_it():
    x, y = maps()
    model = RLS().fit(x, y)
    with pytest.raises(ValueError, match=r"along 'lat'.*and the fit had 50.0.*X.sel\(lat="):
        model.predict(x[:, ::-1])


# ---------------------------------------------------------------- order and kind


def test_variables_are_ordered_by_name():
    x, y = maps()
    both = xr.Dataset({"mean": y, "spread": y**2})
    model = RLS().fit(x, both)
    assert model.score(x, both[["spread", "mean"]]) == model.score(x, both)
    with pytest.raises(
        ValueError, match=r"Dataset of \['mean'\]; the outputs of the fit had \['mean'"
    ):
        model.score(x, both[["mean"]])
    with pytest.raises(ValueError, match=r"Dataset of \['temperature'\]; .*along 'station'"):
        RLS().fit(x, y).score(x, y.to_dataset())
    with pytest.raises(ValueError, match="the inputs of the fit were a single DataArray"):
        model.predict(x.to_dataset())
    with pytest.raises(
        ValueError, match="X is a DataArray, but the inputs of the fit were several"
    ):
        RLS().fit(x.to_dataset(), y).predict(x)


def test_the_columns_of_a_table_are_compared_with_the_dimensions_of_the_fit():
    x, y = tables()
    axes = {"time": x.index, "tissue": ["liver", "lung", "skin"], "day": [1, 2, 4, 8]}
    tensor = xr.DataArray(y.to_numpy().reshape(-1, *SHAPE), axes, tuple(axes))
    model = RLS().fit(x, tensor)
    assert model.score(x, y) == model.score(x, tensor)
    with pytest.raises(ValueError, match="along 'tissue' than the fit: at position 0 y has skin"):
        model.score(x, y.iloc[:, ::-1])


def test_new_samples_may_be_along_another_dimension():
    x, y = maps()
    model = RLS().fit(x, y)
    score, (new, out) = model.score(x, y), (A.rename(time="start") for A in (x, y))
    assert model.score(new, out) == score
    assert model.score(new.transpose("lat", "start", "lon"), out.transpose()) == score
    assert model.score(new.transpose("lat", "start", "lon"), y.to_numpy()) == score
    with pytest.raises(ValueError, match="share no dimension: rename the sample dimension"):
        model.score(new, y)


def test_weights_of_outputs_are_matched_by_name_and_files_keep_them(tmp_path):
    x, y = maps(shape=(3, 3))
    y = y.assign_coords(month=[1, 2, 3])
    a, b = np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 5.0])
    by_station = xr.DataArray(a, dims="station", coords={"station": y.station})
    by_month = xr.DataArray(b, dims="month")
    expected = HOLRR(rank=2, output_weight=np.outer(a, b)).fit(x, y)
    for given in (by_month * by_station, by_station * by_month, [by_station, by_month], (a, b)):
        model = HOLRR(rank=2, output_weight=given).fit(x, y)
        assert_allclose(model.coef_, expected.coef_)
        model.save(tmp_path / "model.holrr")
        assert_allclose(holrr.load(tmp_path / "model.holrr").predict(x), model.predict(x))
    with pytest.raises(ValueError, match=r"has dimensions \('month',\), but y has \('station',\)"):
        HOLRR(rank=2, output_weight=[by_month, by_station]).fit(x, y)
    with pytest.raises(ValueError, match=r"output_weight\[0\] has other coordinates along 'stat"):
        HOLRRCV(cv=3, output_weight=[by_station[::-1], None]).fit(x, y)


def test_flat_outputs_keep_their_names(tmp_path):
    x, y = maps()
    flat = y.stack(place=("station", "month"))
    model = HOLRR(rank=2, output_shape=SHAPE).fit(x, flat)
    assert_array_equal(model.core_, HOLRR(rank=2).fit(x, y).core_)
    found = model.predict(x)
    assert (found.dims, found.name, found.attrs) == (flat.dims, flat.name, flat.attrs)
    pd.testing.assert_index_equal(found.indexes["place"], flat.indexes["place"])
    model.save(tmp_path / "model.holrr")
    xr.testing.assert_identical(holrr.load(tmp_path / "model.holrr").predict(x), found)
    with pytest.raises(ValueError, match="other coordinates along 'place'"):
        model.score(x, flat[:, ::-1])
    variables = flat.drop_vars(["place", "station", "month"]).to_dataset("place")
    model = HOLRR(rank=2, output_shape=SHAPE).fit(
        x, variables.rename({k: f"v{k}" for k in range(12)})
    )
    assert_array_equal(model.predict(x)["v7"], found[:, 7])
    one = HOLRR(rank=1, output_shape=(1,)).fit(x, y[:, 0, 0])
    assert one.predict(x).dims == ("time",)


def test_flat_outputs_of_a_table_with_column_levels_have_their_own_shape():
    x, y = tables()
    for part in (y, y.drop(columns=[("lung", 2)])):
        model = HOLRR(rank=1, output_shape=(part.shape[1],)).fit(x, part)
        assert model.intercept_.shape == part.shape[1:]
        pd.testing.assert_index_equal(model.predict(x).columns, part.columns)
    shape = (2, 6)
    model = HOLRR(rank=2, output_shape=shape).fit(x, y)
    plain = HOLRR(rank=2).fit(x.to_numpy(), y.to_numpy().reshape(-1, *shape))
    assert_array_equal(model.core_, plain.core_)


def test_a_table_may_be_compared_with_an_array_of_its_columns():
    x, y = tables()
    mixed = y.iloc[:, np.random.default_rng(0).permutation(12)[:11]]
    for table in (y, mixed):
        model = HOLRR(rank=2, missing="ignore").fit(x, table)
        predicted, score = model.predict(x), model.score(x, table)
        assert model.score(x, table.to_numpy()) == score
        assert_allclose(r2(table, predicted.to_numpy()), score)
        assert_allclose(r2(table.to_numpy(), predicted), score)
        found = r2(table, predicted.to_numpy(), average=None)
        pd.testing.assert_series_equal(found, r2(table, predicted, average=None))


# ---------------------------------------------------------------- data that cannot be used


def test_empty_or_lazy_data_are_refused_with_a_remedy():
    x, y = tables()
    with pytest.raises(ValueError, match="y has an empty mode: axis 1"):
        RLS().fit(x, y.iloc[:, :0])
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    rows = da.from_array(x.to_numpy(), chunks=10)
    unknown = xr.DataArray(rows[rows[:, 0] > -9], dims=("time", "f"))
    with pytest.raises(ValueError, match=r"X is a Dask array of unknown chunk sizes"):
        RLS().fit(unknown, y)
    weights = xr.Dataset({"w": ("time", np.ones(40))})
    with pytest.raises(TypeError, match="sample_weight must be an array or a DataArray; got"):
        RLS().fit(*maps(), weights)
    pl = pytest.importorskip("polars", reason="polars is not installed")
    query = pl.from_pandas(x).lazy()
    with pytest.raises(TypeError, match=r"X is a LazyFrame; call X.collect\(\) first"):
        RLS().fit(query, y)
    with pytest.raises(TypeError, match=r"y is a LazyFrame; call y.collect\(\) first"):
        RLS().fit(x, query)


def test_many_features_are_compared_without_a_name_for_each(monkeypatch):
    X, Y = toy(n=8, d0=40_000)
    x = xr.DataArray(X.reshape(8, 200, 200), dims=("time", "lat", "lon"))
    x = x.assign_coords(lat=np.linspace(0, 1, 200), lon=np.linspace(0, 1, 200))
    model = RLS().fit(x, Y)

    def entries(self):
        raise AssertionError("a name was made for each feature")

    with monkeypatch.context() as patch:
        patch.setattr(Grid, "entries", entries)
        assert model.predict(x[:1]).shape == Y[:1].shape
    with pytest.raises(ValueError, match=r"along 'lat'.*position 0 X has 1.0"):
        model.predict(x[:, ::-1])


def test_coordinates_of_other_precision_are_explained():
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    rng = np.random.default_rng(0)
    lat = np.array([50.1, 50.2, 50.3])
    x = xr.DataArray(rng.normal(size=(30, 3, 2)), {"lat": lat}, dims=("time", "lat", "lon"))
    y = xr.DataArray(rng.normal(size=(30, 3)), {"lat": lat}, dims=("time", "lat"))
    model = RLS().fit(x, y, sample_dim="time")
    single = {"lat": lat.astype(np.float32)}
    with pytest.raises(ValueError, match=r"'lat'.*other precision.*X.assign_coords\(lat=...\)"):
        model.predict(x.assign_coords(single))
    with pytest.raises(ValueError, match=r"'lat'.*other precision.*y.assign_coords\(lat=...\)"):
        model.score(x, y.assign_coords(single))
    with pytest.raises(ValueError, match=r'X.reindex\(lat=..., method="nearest"\)'):
        model.predict(x.assign_coords(lat=lat + 0.05))


def test_times_that_are_not_the_first_shared_dimension_need_sample_dim():
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    rng = np.random.default_rng(0)
    time = pd.date_range("2000", periods=30)
    coords = {"time": time, "lat": [10.0, 20.0, 30.0]}
    x = xr.DataArray(rng.normal(size=(3, 30, 2)), coords, dims=("lat", "time", "k"))
    y = xr.DataArray(rng.normal(size=(3, 30)), coords, dims=("lat", "time"))
    for inputs in (x, x.to_dataset("k"), {"a": x, "b": x[:, :, 0].rename("b")}):
        with pytest.raises(ValueError, match="Pass sample_dim='time' to fit"):
            RLS().fit(inputs, y)
    assert RLS().fit(x, y, sample_dim="time").predict(x).sizes == {"time": 30, "lat": 3}
    assert RLS().fit(x, y, sample_dim="lat").predict(x).sizes == {"lat": 3, "time": 30}


@pytest.mark.parametrize("shape", [np.array([2, 2]), [2, 2]])
def test_shapes_may_be_arrays(shape):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 4)), rng.normal(size=(30, 4))
    given = RLS(output_shape=shape, input_shape=shape).fit(X, y)
    assert_array_equal(
        given.predict(X), RLS(output_shape=(2, 2), input_shape=(2, 2)).fit(X, y).predict(X)
    )


def test_times_of_different_calendars_are_refused():
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    pytest.importorskip("cftime", reason="cftime is not installed")
    rng = np.random.default_rng(0)
    other = xr.date_range("2000-01-01", periods=30, calendar="noleap", use_cftime=True)
    x = xr.DataArray(rng.normal(size=(30, 2)), {"time": other}, dims=("time", "k"))
    y = xr.DataArray(
        rng.normal(size=(30, 3)), {"time": pd.date_range("2000", periods=30)}, dims=("time", "lat")
    )
    with pytest.raises(ValueError, match="the rows of X and y have different labels"):
        RLS().fit(x, y)
