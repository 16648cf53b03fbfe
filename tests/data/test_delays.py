"""Delayed inputs."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import LeaveOneGroupOut
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import holrr
from holrr.data import Delayer, Standardizer, to_matrix

N, DELAYS = 20, [0, 2, -1, 30]
X = np.random.default_rng(0).normal(size=(N, 2, 3))
FLAT = X.reshape(N, 6)
NAMES = list("abcdef")
RUNS = np.repeat([3, 1, 2], [7, 1, 12])
Y = np.random.default_rng(1).normal(size=(N, 2, 2))


def delayed(A, delays=DELAYS, runs=RUNS, fill=0.0):
    """Sample by sample, (n, n_delays, ...)."""
    found = np.full((N, len(delays), *A.shape[1:]), float(fill))
    for i in range(N):
        for j, delay in enumerate(delays):
            if 0 <= i - delay < N and runs[i - delay] == runs[i]:
                found[i, j] = A[i - delay]
    return found


EXPECTED = delayed(X)


# ---------------------------------------------------------------- kinds of inputs


def test_arrays_of_every_library_stay_where_they_are(xp):
    for A, expected in ((FLAT, EXPECTED.reshape(N, -1)), (X, EXPECTED)):
        for dtype in (np.float64, np.float32):
            given = xp.asarray(A.astype(dtype))
            found = Delayer(DELAYS).fit_transform(given, groups=RUNS)
            assert xp.owns(found)
            assert found.dtype == given.dtype
            assert_array_equal(xp.to_numpy(found), expected.astype(dtype))


def test_nothing_of_an_array_on_a_device_is_copied_to_the_host(device_xp, host_copies):
    Delayer(DELAYS).fit_transform(device_xp.asarray(X), groups=RUNS)
    assert not host_copies


def test_integers_become_floating_point_numbers():
    found = Delayer([1], fill=0.5).fit_transform(np.arange(3)[:, None])
    assert_array_equal(found, [[0.5], [0.0], [1.0]])
    assert found.dtype == np.float64


def test_lists_are_arrays():
    found = Delayer(DELAYS).fit_transform(X.tolist(), groups=RUNS.tolist())
    assert_array_equal(found, EXPECTED)


def test_tables_get_a_level_of_columns():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    index = pd.date_range("2001-01-01", periods=N)
    table = pd.DataFrame(FLAT, index, pd.Index(NAMES, name="site"))
    found = Delayer(DELAYS).fit_transform(table, groups=pd.Series(RUNS, index))
    assert_array_equal(found.to_numpy(), EXPECTED.reshape(N, -1))
    assert found.index.equals(index)
    assert list(found.columns) == [(k, name) for k in DELAYS for name in NAMES]
    assert found.columns.names == ["delay", "site"]
    again = Delayer([1]).fit_transform(found)
    assert again.columns.names == ["delay_", "delay", "site"]
    assert_array_equal(again[1].to_numpy()[1:], found.to_numpy()[:-1])


def test_the_levels_of_delayed_tables_are_modes_of_the_inputs():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    table = pd.DataFrame(FLAT, columns=pd.Index(NAMES, name="site"))
    found = Delayer(DELAYS).fit_transform(table, groups=RUNS)
    model = holrr.RLS().fit(found, Y)
    assert model.labels_.inputs[0].dims == ("delay", "site")
    plain = holrr.RLS().fit(EXPECTED, Y).coef_
    assert_allclose(model.coef_.reshape(plain.shape), plain, atol=1e-12)


def test_tables_of_polars_get_longer_names():
    pl = pytest.importorskip("polars", reason="polars is not installed")
    delayer = Delayer(DELAYS)
    found = delayer.fit_transform(pl.DataFrame(FLAT, schema=NAMES), groups=RUNS)
    assert isinstance(found, pl.DataFrame)
    assert found.columns == [f"delay{k}__{name}" for k in DELAYS for name in NAMES]
    assert found.columns == delayer.get_feature_names_out().tolist()
    assert_array_equal(found.to_numpy(), EXPECTED.reshape(N, -1))


def labelled():
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    coords = {"time": np.arange(N), "lat": [1.0, 2.0], "run": ("time", RUNS), "area": 3.0}
    return xr.DataArray(X, coords, ("time", "lat", "lon"), "sst", {"units": "K"})


@pytest.mark.parametrize("chunked", [False, True])
def test_xarray_objects_get_a_dimension(chunked):
    A = labelled()
    pytest.importorskip("dask", reason="dask is not installed")
    data = A.to_dataset()
    data["index"] = 2 * A[:, 0, 0]
    data.attrs["source"] = "simulated"
    A, data = (B.chunk(time=6, lat=1) if chunked else B for B in (A, data))
    delayer = Delayer(DELAYS).fit(A)
    for given in (A, A.transpose("lon", "time", "lat")):
        found = delayer.transform(given, groups=A.run)
        assert found.dims == ("time", "delay", "lat", "lon")
        assert (found.name, found.attrs) == ("sst", {"units": "K"})
        assert found.delay.values.tolist() == DELAYS
        assert set(found.coords) == {*A.coords, "delay"}
        assert_array_equal(found, EXPECTED)
        assert (found.chunks is not None) == chunked
    found = Delayer(DELAYS).fit_transform(data, groups=A.run, sample_dim="time")
    assert_array_equal(found.sst, EXPECTED)
    assert_array_equal(found["index"], 2 * EXPECTED[:, :, 0, 0])
    assert found["index"].dims == ("time", "delay")
    assert found.attrs == data.attrs
    assert bool(found.chunks) == chunked
    again = Delayer([1]).fit_transform(found)
    assert again.sst.dims == ("time", "delay_", "delay", "lat", "lon")


def test_labelled_inputs_give_the_fit_of_plain_ones():
    A = labelled()
    found = holrr.HOLRRCV(cv=3).fit(Delayer(DELAYS).fit_transform(A, groups=RUNS), Y)
    plain = holrr.HOLRRCV(cv=3).fit(EXPECTED, Y)
    assert found.to_dataset().coef.dims[:3] == ("delay", "lat", "lon")
    assert_array_equal(found.coef_, plain.coef_)


def test_the_entries_of_a_dict_get_a_mode():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    table = pd.DataFrame(FLAT[:, :2], columns=["a", "b"])
    blocks = {"field": X, "index": FLAT[:, 0], "named": labelled(), "table": table}
    delayer = Delayer(DELAYS).fit(blocks)
    found = delayer.transform(dict(reversed(blocks.items())), groups=RUNS)
    assert list(found) == list(reversed(blocks))
    assert_array_equal(found["field"], EXPECTED)
    assert_array_equal(found["index"], EXPECTED[:, :, 0, 0])
    assert_array_equal(found["table"], delayed(FLAT[:, :2]).reshape(N, -1))
    assert found["named"].dims == ("time", "delay", "lat", "lon")
    assert_array_equal(found["named"], EXPECTED)
    columns, _ = to_matrix({name: found[name] for name in blocks})
    names = delayer.get_feature_names_out().tolist()
    assert names[:2] == ["delay0__field[0,0]", "delay0__field[0,1]"]
    assert names[24:26] == ["delay0__index", "delay2__index"]
    assert len(names) == columns.shape[1] == 4 * delayer.n_features_in_


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_a_matrix_is_delayed_as_the_modes_and_blocks_of_the_fit():
    blocks = {"field": X, "index": FLAT[:, 0]}
    delayer = Delayer(DELAYS).fit(blocks)
    flat = delayer.transform(np.column_stack([FLAT, FLAT[:, 0]]), groups=RUNS)
    expected, _ = to_matrix(delayer.transform(blocks, groups=RUNS))
    assert_array_equal(flat, expected)
    assert_array_equal(Delayer(DELAYS).fit(X).transform(FLAT, groups=RUNS), EXPECTED.reshape(N, -1))


@pytest.mark.parametrize("A", [FLAT, X], ids=["matrix", "modes"])
def test_dask_arrays_stay_lazy(A):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    given = da.from_array(A, chunks=(6, *(2 for _ in A.shape[1:])))
    found = Delayer(DELAYS).fit_transform(given, groups=RUNS)
    assert isinstance(found, da.Array)
    assert found.chunks[0] == given.chunks[0]
    shape = (N, -1) if A.ndim == 2 else EXPECTED.shape
    assert_array_equal(found.compute(), EXPECTED.reshape(shape))
    expected = holrr.RLS().fit(EXPECTED.reshape(shape), Y)
    assert_allclose(holrr.RLS().fit(found, Y).coef_, expected.coef_, atol=1e-9)


def test_dask_arrays_are_not_computed():
    da = pytest.importorskip("dask.array", reason="dask is not installed")

    def fails(block):
        raise AssertionError("a chunk was computed")

    given = da.ones((N, 3), chunks=(5, 3)).map_blocks(fails, dtype=float, meta=np.empty((0, 0)))
    found = Delayer([1]).fit_transform(given)
    with pytest.raises(AssertionError, match="a chunk was computed"):
        found.compute()


def test_dask_tables_are_refused():
    dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    table = dd.from_pandas(pd.DataFrame(FLAT, columns=NAMES), npartitions=2)
    with pytest.raises(TypeError, match=r"pass X\.to_dask_array\(lengths=True\)"):
        Delayer([1]).fit(table)


@pytest.mark.parametrize("A", [FLAT, X], ids=["matrix", "modes"])
def test_memory_maps_are_delayed_in_memory(A, tmp_path):
    np.save(tmp_path / "A.npy", A)
    given = np.load(tmp_path / "A.npy", mmap_mode="r")
    found = Delayer(DELAYS).fit_transform(given, groups=RUNS)
    assert type(found) is np.ndarray
    assert_array_equal(found, EXPECTED.reshape((N, -1) if A.ndim == 2 else EXPECTED.shape))


def test_nan_and_masked_entries_are_nan():
    A = FLAT.copy()
    A[:, 2] = np.nan
    found = Delayer([1]).fit_transform(A)
    assert_array_equal(found[1:], A[:-1])
    masked = np.ma.masked_invalid(A)
    assert_array_equal(Delayer([1]).fit_transform(masked), found)
    model = holrr.RLS(input_shape=found.shape[1:]).fit(found[1:], Y[1:])
    assert np.isnan(model.coef_[2]).all()


# ---------------------------------------------------------------- runs


def test_runs_are_delayed_one_by_one():
    parts = [Delayer(DELAYS).fit_transform(X[RUNS == run]) for run in (3, 1, 2)]
    assert_array_equal(Delayer(DELAYS).fit_transform(X, groups=RUNS), np.concatenate(parts))


def test_without_groups_there_is_one_run():
    expected = delayed(X, runs=np.zeros(N))
    assert_array_equal(Delayer(DELAYS).fit_transform(X), expected)
    assert not np.array_equal(expected, EXPECTED)


@pytest.mark.parametrize("fill", [0.0, 7, -1.5, np.nan])
def test_inputs_outside_of_a_run_have_the_fill_value(fill):
    found = Delayer(DELAYS, fill=fill).fit_transform(X, groups=RUNS)
    assert_array_equal(found, delayed(X, fill=fill))


def test_groups_may_be_text_or_tensors(xp):
    text = np.array(["c", "a", "b"])[np.repeat([0, 1, 2], [7, 1, 12])]
    for groups in (text, text.tolist(), xp.asarray(RUNS)):
        assert_array_equal(Delayer(DELAYS).fit_transform(X, groups=groups), EXPECTED)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([1] * 19, r"one entry for each of the 20 samples; got shape \(19,\)"),
        ([[1]] * 20, r"one entry for each of the 20 samples; got shape \(20, 1\)"),
        ([1] * 5 + [2] * 5 + [1] * 10, r"run 1 starts at sample 0 and again at sample 10"),
        (["x"] * 5 + ["y"] * 5 + ["x"] * 10, r"run 'x' starts at sample 0.*its own label"),
        ([np.nan] * 20, "groups contains NaN"),
    ],
)
def test_other_groups_are_refused(groups, message):
    with pytest.raises(ValueError, match=message):
        Delayer([1]).fit_transform(X, groups=groups)


def test_groups_with_other_labels_of_rows_are_refused():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    table = pd.DataFrame(FLAT, columns=NAMES)
    groups = pd.Series(RUNS[::-1], index=table.index[::-1])
    with pytest.raises(ValueError, match="rows of X and groups have different labels"):
        Delayer([1]).fit_transform(table, groups=groups)


# ---------------------------------------------------------------- parameters and scikit-learn


@pytest.mark.parametrize(
    "delays", [[], [1, 1], [1.0], [True], [[1, 2]], ["1"], np.array([0.5]), "12", 3, None], ids=str
)
def test_other_delays_are_refused(delays):
    delayer = Delayer([1]).fit(FLAT)
    before = pickle.dumps(delayer.fit(FLAT).__dict__)
    delayer.set_params(delays=delays)
    with pytest.raises(ValueError, match="delays"):
        delayer.fit(FLAT)
    assert pickle.dumps(delayer.set_params(delays=[1]).__dict__) == before


@pytest.mark.parametrize("delays", [range(3), (0, 1, 2), np.arange(3)], ids=repr)
def test_delays_may_be_any_sequence_of_integers(delays):
    delayer = clone(Delayer(delays)).fit(FLAT)
    assert delayer.delays_.tolist() == [0, 1, 2]
    assert_array_equal(delayer.transform(FLAT), Delayer([0, 1, 2]).fit_transform(FLAT))


def test_another_fill_value_is_refused():
    with pytest.raises(ValueError, match="'fill' parameter of Delayer"):
        Delayer([1], fill="zero").fit(FLAT)


def test_inputs_other_than_those_of_the_fit_are_refused():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    table = pd.DataFrame(FLAT, columns=NAMES)
    delayer = Delayer([1]).fit(table)
    with pytest.raises(ValueError, match="At position 0 X has 'f'"):
        delayer.transform(table[NAMES[::-1]])
    with pytest.raises(ValueError, match="5 features"):
        Delayer([1]).fit(FLAT).transform(FLAT[:, :5])
    with pytest.raises(ValueError, match=r"modes of sizes \(3, 2\)"):
        Delayer([1]).fit(X).transform(X.transpose(0, 2, 1))
    A = labelled()
    with pytest.raises(ValueError, match="other coordinates along 'lat'"):
        Delayer([1]).fit(A).transform(A.assign_coords(lat=[1.0, 3.0]))


_NEIGHBOURS = "what becomes of a sample depends on its neighbours"


@parametrize_with_checks(
    [Delayer([0]), Delayer([1, -2], fill=1.0)],
    expected_failed_checks=lambda estimator: (
        {}
        if list(estimator.delays) == [0]
        else {
            "check_methods_sample_order_invariance": _NEIGHBOURS,
            "check_methods_subset_invariance": _NEIGHBOURS,
        }
    ),
)
def test_the_checks_of_scikit_learn_pass(estimator, check):
    check(estimator)


def test_names_of_columns_for_scikit_learn():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    names = ["delay1__x0", "delay1__x1", "delay-1__x0", "delay-1__x1"]
    delayer = Delayer([1, -1]).set_output(transform="pandas")
    found = delayer.fit_transform(FLAT[:, :2])
    assert list(found.columns) == delayer.get_feature_names_out().tolist() == names
    table = pd.DataFrame(FLAT, columns=NAMES)
    steps = [("lags", Delayer([1, 2]), ["a", "b"]), ("now", Standardizer(), ["c"])]
    both = ColumnTransformer(steps).set_output(transform="pandas").fit_transform(table)
    lags = [f"lags__delay{k}__{name}" for k in (1, 2) for name in "ab"]
    assert list(both.columns) == [*lags, "now__c"]
    assert_array_equal(both["lags__delay2__b"][2:], table["b"][:-2])


@pytest.mark.parametrize("request_it", [False, True])
def test_groups_reach_a_step_of_a_pipeline(request_it):
    with sklearn.config_context(enable_metadata_routing=True):
        delayer, scaler = Delayer([0, 1]), Standardizer(by_group=True)
        if request_it:  # which is the default
            delayer.set_transform_request(groups=True)
            scaler.set_transform_request(groups=True)
        search = holrr.RLSCV(cv=LeaveOneGroupOut())
        model = make_pipeline(scaler, delayer, search).fit(FLAT, Y, groups=RUNS)
        found = model.predict(FLAT, groups=RUNS)
        delayer.set_transform_request(groups=False)
        without = make_pipeline(delayer, holrr.RLS()).fit(FLAT, Y)
    A = Standardizer(by_group=True).fit_transform(FLAT, groups=RUNS)
    A = Delayer([0, 1]).fit_transform(A, groups=RUNS)
    assert_array_equal(found, holrr.RLSCV(cv=LeaveOneGroupOut()).fit(A, Y, groups=RUNS).predict(A))
    one_run = holrr.RLS().fit(Delayer([0, 1]).fit_transform(FLAT), Y)
    assert_array_equal(without[-1].coef_, one_run.coef_)


# ---------------------------------------------------------------- files


@pytest.mark.parametrize("delays", [[1, 2], (1,), range(3), np.array([0, -1])], ids=repr)
def test_a_pipeline_is_saved_with_its_delays(delays, tmp_path):
    pipeline = make_pipeline(Standardizer(), Delayer(delays, fill=0.5), holrr.RLS()).fit(X, Y)
    holrr.save(pipeline, tmp_path / "m")
    again = holrr.load(tmp_path / "m")
    assert_array_equal(again.predict(X), pipeline.predict(X))
    assert repr(again) == repr(pipeline)
    assert_array_equal(again[1].delays_, pipeline[1].delays_)


def test_labels_are_saved(tmp_path):
    A = labelled()
    delayer = Delayer([1]).fit(A)
    holrr.save(delayer, tmp_path / "m")
    again = holrr.load(tmp_path / "m")
    assert again.transform(A).identical(delayer.transform(A))
    assert again.get_feature_names_out().tolist() == delayer.get_feature_names_out().tolist()
    with pytest.raises(ValueError, match="other coordinates along 'lat'"):
        again.transform(A.assign_coords(lat=[1.0, 3.0]))


def masked_field():
    """A field (60, 4, 2) of which one cell is never observed."""
    A = np.random.default_rng(0).normal(size=(60, 4, 2))
    A[:, 1, 1] = np.nan
    return A


@pytest.mark.parametrize("groups", [None, np.repeat(["a", "b", "c"], 20)])
def test_cells_that_are_never_observed_stay_missing_in_filled_samples(groups, tmp_path):
    A = masked_field()
    found = Delayer([0, 1, -2]).fit_transform(A, groups=groups)
    expected = np.zeros_like(found, dtype=bool)
    expected[..., 1, 1] = True
    np.testing.assert_array_equal(np.isnan(found), expected)
    np.save(tmp_path / "A.npy", A)
    on_disk = np.load(tmp_path / "A.npy", mmap_mode="r")
    delayed = Delayer([0, 1, -2]).fit_transform(on_disk, groups=groups)
    for rows in (slice(None), slice(57, 60), np.array([0, 30, 59])):
        np.testing.assert_array_equal(delayed[rows], found[rows])
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    chunked = da.from_array(A, chunks=(13, 4, 2))
    np.testing.assert_array_equal(
        Delayer([0, 1, -2]).fit_transform(chunked, groups=groups).compute(), found
    )


def test_a_fill_far_from_the_inputs_warns():
    X = np.random.default_rng(0).normal([0.0, 0.0, 280.0], size=(50, 3))
    with pytest.warns(UserWarning, match="fill=0 is far outside of the range of 1 of 3 features"):
        Delayer([0, 1]).fit_transform(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Delayer([0, 1]).fit_transform(X - X.mean(0))
        Delayer([0, 1], fill=280.0).fit_transform(X[:, 2:])
        Delayer([0]).fit_transform(X)  # no sample is filled
        Delayer([0, 1]).fit_transform(np.ones((50, 1)))  # a constant
