"""Standardised inputs."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import holrr
from holrr.data import Standardizer


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
        Standardizer().fit(data.transpose("lon", "lat", "time"), sample_dim="time").transform(data)
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
        holrr.save(pipeline, tmp_path / "m")
        again = holrr.load(tmp_path / "m")
        np.testing.assert_array_equal(again.predict(X), pipeline.predict(X))
        assert repr(again) == repr(pipeline)


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


def test_arrays_keep_their_library(xp):
    X = inputs()
    for dtype, tol in ((np.float64, 1e-9), (np.float32, 1e-2)):
        given = xp.asarray(X.astype(dtype))
        found = Standardizer().fit_transform(given)
        assert type(found) is type(given)
        assert xp.name == "numpy" or found.dtype == given.dtype
        expected = Standardizer().fit_transform(X.astype(dtype))
        np.testing.assert_allclose(xp.to_numpy(found), expected, atol=tol)


def test_polars_tables_stay_polars_tables():
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


def test_a_standardizer_accepts_arrays_and_xarray_objects():
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


# ---------------------------------------------------------------- where the data are


@pytest.mark.parametrize("by_group", [False, True])
def test_arrays_on_a_device_are_not_copied_to_the_host(device_xp, host_copies, by_group):
    given = device_xp.asarray(inputs(24).reshape(12, 2, 3))
    scaler = Standardizer(by_group=by_group).fit(given)
    found = scaler.transform(given, groups=np.repeat([0, 1], 6))
    assert device_xp.owns(found)
    assert set(host_copies) == (set() if by_group else {(6,)})  # means and standard deviations


def test_blocks_keep_their_array_library(xp):
    X = inputs(24).reshape(12, 2, 3)
    blocks = {"field": X, "index": X[:, 0, 0].copy()}
    expected = Standardizer().fit_transform(blocks)
    found = Standardizer().fit_transform({name: xp.asarray(A) for name, A in blocks.items()})
    for name, A in found.items():
        assert xp.owns(A)
        assert_allclose(xp.to_numpy(A), expected[name], atol=1e-9)
        assert A.shape == blocks[name].shape


def test_float32_keeps_its_digits(xp):
    """The mean of numbers that are large beside their spread has more digits than float32 has."""
    X = (1e4 + np.arange(40).reshape(20, 2) / 64).astype(np.float32)
    expected = StandardScaler().fit_transform(X.astype(np.float64))
    found = Standardizer().fit_transform(xp.asarray(X))
    assert found.dtype == xp.asarray(X).dtype
    assert_allclose(xp.to_numpy(found), expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["frame", "dataarray", "dask"])
def test_float32_stays_float32(kind):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    X = inputs().astype(np.float32)
    make = {
        "frame": lambda A: pd.DataFrame(A, columns=list("abc")),
        "dataarray": lambda A: xr.DataArray(A, dims=("time", "x")),
        "dask": lambda A: da.from_array(A, chunks=(7, 2)),
    }[kind]
    found = np.asarray(Standardizer().fit_transform(make(X)))
    assert found.dtype == np.float32
    assert_allclose(found, Standardizer().fit_transform(X), atol=1e-5)


def test_blocks_of_rows_give_the_statistics_of_all(xp):
    """Sixteen megabytes are read together."""
    X = np.tile(inputs(2000), (400, 1))
    X[:, 2] = 0.1
    found = Standardizer().fit(xp.asarray(X))
    assert_allclose(found.scaling_[""][1], X[:2000].mean(0), rtol=1e-11)
    assert_allclose(found.scaling_[""][2], [*X[:2000].std(0)[:2], 1.0], rtol=1e-9)


def test_a_dict_of_xarray_objects_keeps_its_labels():
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    A = xr.DataArray(inputs(24).reshape(12, 2, 3), dims=("time", "lat", "lon"))
    turned = A.transpose("lat", "time", "lon")
    expected = (A - A.mean("time")) / A.std("time")
    blocks = {"a": turned, "b": A.to_numpy()}
    found = Standardizer().fit_transform(blocks, sample_dim="time")
    xr.testing.assert_allclose(found["a"], expected.transpose(*turned.dims))
    assert_allclose(found["b"], expected.to_numpy())


# ---------------------------------------------------------------- groups

GROUPS = np.tile([2, 0, 1], 10)  # not one after the other


def test_groups_are_scaled_one_by_one(xp):
    for X in (inputs(), inputs(180).reshape(30, 6, 3)):
        found = Standardizer(by_group=True).fit_transform(xp.asarray(X), groups=GROUPS)
        assert xp.owns(found)
        for group in range(3):
            expected = Standardizer().fit_transform(X[GROUPS == group])
            assert_allclose(xp.to_numpy(found)[GROUPS == group], expected, atol=1e-9)


@pytest.mark.parametrize("kind", ["frame", "polars", "dataarray", "dataset", "dask", "chunks"])
def test_groups_of_labelled_inputs_are_those_of_plain_ones(kind):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    pl = pytest.importorskip("polars", reason="polars is not installed")
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    X = inputs()
    array = xr.DataArray(X, dims=("time", "x"), coords={"x": list("abc")}, attrs={"units": "K"})
    given = {
        "frame": pd.DataFrame(X, columns=list("abc")),
        "polars": pl.DataFrame(X, schema=list("abc")),
        "dataarray": array.T,
        "dataset": array.to_dataset("x"),
        "dask": da.from_array(X, chunks=(7, 2)),
        "chunks": array.chunk(time=7),
    }[kind]
    dim = {"sample_dim": "time"} if hasattr(given, "dims") else {}
    scaler = Standardizer(by_group=True).fit(given, **dim)
    for groups in (GROUPS, np.sort(GROUPS)):
        found = scaler.transform(given, groups=groups)
        assert type(found) is type(given)
        expected = Standardizer(by_group=True).fit_transform(X, groups=groups)
        if kind == "dataset":
            found = found.to_array("x")
        values = np.asarray(found.transpose("time", "x") if hasattr(found, "dims") else found)
        assert_allclose(values, expected, atol=1e-9)
        assert kind not in ("dask", "chunks") or found.chunks is not None
        assert kind != "frame" or list(found.columns) == list("abc")


def test_groups_that_were_not_in_the_fit_are_scaled_in_the_same_way():
    X = inputs()
    scaler = Standardizer(by_group=True).fit(X[:10])
    assert scaler.scaling_ == {}
    found = scaler.transform(X[10:], groups=["new"] * 20)
    assert_allclose(found, StandardScaler().fit_transform(X[10:]))


@pytest.mark.parametrize("by_group", [False, True])
def test_a_parameter_that_is_changed_after_the_fit_changes_nothing(by_group):
    X = inputs()
    scaler = Standardizer(by_group=by_group).fit(X)
    expected = scaler.transform(X, groups=GROUPS)
    found = scaler.set_params(by_group=not by_group).transform(X, groups=GROUPS)
    np.testing.assert_array_equal(found, expected)


def test_groups_are_not_used_unless_asked_for():
    X = inputs()
    assert_allclose(Standardizer().fit_transform(X, groups=GROUPS), Standardizer().fit_transform(X))


def test_scaling_by_group_needs_groups():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    table = pd.DataFrame(inputs(), columns=list("abc"))
    scaler = Standardizer(by_group=True).fit(table)
    with pytest.raises(ValueError, match="by_group=True needs groups"):
        scaler.transform(table)
    with pytest.raises(ValueError, match=r"one entry for each of the 30 .*; got shape \(29,\)"):
        scaler.transform(table, groups=GROUPS[:29])
    with pytest.raises(ValueError, match="rows of X and groups have different labels"):
        scaler.transform(table, groups=pd.Series(GROUPS, index=table.index[::-1]))
    dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    with pytest.raises(TypeError, match=r"X\.to_dask_array\(lengths=True\)"):
        scaler.transform(dd.from_pandas(table, npartitions=2), groups=GROUPS)


def test_scaling_by_group_is_saved(tmp_path):
    X = inputs()
    scaler = Standardizer(by_group=True).fit(X)
    holrr.save(scaler, tmp_path / "m")
    again = holrr.load(tmp_path / "m")
    assert again.by_group is True
    expected = scaler.transform(X, groups=GROUPS)
    np.testing.assert_array_equal(again.transform(X, groups=GROUPS), expected)


# ---------------------------------------------------------------- features without values


@pytest.mark.parametrize("by_group", [False, True])
def test_features_without_any_value_stay_nan(xp, by_group):
    X = inputs(150).reshape(30, 5, 3)
    land = np.array([[0, 0, 1], [0, 1, 1], [0, 0, 0], [1, 0, 0], [0, 0, 0]], dtype=bool)
    expected = Standardizer(by_group=by_group).fit_transform(X, groups=GROUPS)
    expected[:, land] = np.nan
    sea = np.where(land, np.nan, X)
    scaler = Standardizer(by_group=by_group).fit(xp.asarray(sea))
    for given in (sea, X):  # what the cells hold that are not used does not matter
        found = scaler.transform(xp.asarray(given), groups=GROUPS)
        assert_allclose(xp.to_numpy(found), expected, atol=1e-9)
    bad = sea.copy()
    bad[3, 0, 0] = np.nan
    for use in (scaler.fit, scaler.transform):
        with pytest.raises(ValueError, match="X contains NaN"):
            use(xp.asarray(bad))


def test_labelled_features_without_any_value_reach_an_estimator(tmp_path):
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    A = xr.DataArray(inputs(72).reshape(36, 2, 3), dims=("time", "lat", "lon"))
    A = A.where((A.lat > 0) | (A.lon > 0))
    Y = np.random.default_rng(1).normal(size=(36, 2))
    model = make_pipeline(Standardizer(), holrr.RLS()).fit(A, Y)
    assert np.isnan(model[-1].coef_).all(-1).tolist() == [[True, False, False], [False] * 3]
    flat = A.to_numpy().reshape(36, 6)[:, 1:]
    plain = make_pipeline(Standardizer(), holrr.RLS()).fit(flat, Y)
    assert_allclose(model.predict(A), plain.predict(flat), atol=1e-9)
    holrr.save(model, tmp_path / "m")
    np.testing.assert_array_equal(holrr.load(tmp_path / "m").predict(A), model.predict(A))


def test_tables_and_masked_arrays_may_have_features_without_any_value():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X = inputs()
    expected = Standardizer().fit_transform(X)
    expected[:, 1] = np.nan
    X[:, 1] = np.nan
    table = pd.DataFrame(X, columns=list("abc"))
    assert_allclose(Standardizer().fit_transform(table).to_numpy(), expected)
    masked = np.ma.masked_invalid(X)
    assert_allclose(Standardizer().fit_transform(masked), expected)
    table.loc[4, "c"] = np.nan
    with pytest.raises(ValueError, match=r"X contains NaN .*feature 'c'"):
        Standardizer().fit(table)
    with pytest.raises(ValueError, match="X contains NaN"):
        Standardizer().fit(np.full((5, 2), np.nan))


def test_dask_arrays_may_have_features_without_any_value():
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    X = inputs()
    expected = Standardizer().fit_transform(X)
    expected[:, 1] = np.nan
    X[:, 1] = np.nan
    scaler = Standardizer().fit(da.from_array(X, chunks=(7, 2)))
    assert scaler.labels_.used.tolist() == [0, 2]
    assert_allclose(scaler.transform(X), expected)
    by_group = Standardizer(by_group=True).fit(X)
    found = by_group.transform(da.from_array(np.nan_to_num(X), chunks=(7, 2)), groups=GROUPS)
    assert_allclose(found.compute(), by_group.transform(X, groups=GROUPS), atol=1e-9)
    X[20, 2] = np.inf
    with pytest.raises(ValueError, match="X contains NaN or infinity in feature 2"):
        Standardizer().fit(da.from_array(X, chunks=(7, 2)))
    with pytest.raises(ValueError, match="X contains NaN or infinity in feature 0"):
        Standardizer().fit(da.from_array(np.full((5, 2), np.nan), chunks=2))


# ---------------------------------------------------------------- weights


def weighted_by_hand(X, weight, used=slice(None)):
    """Standardized inputs times the square roots of weights with mean one over those above 0."""
    some = weight[used]
    return Standardizer().fit_transform(X) * np.sqrt(weight / some[some > 0].mean())


def test_weights_multiply_standardized_features(xp):
    X, weight = inputs(), np.array([4.0, 0.0, 1.0])
    expected = weighted_by_hand(X, weight)
    for factor in (1.0, 1e-300, 1e300):  # only ratios count
        scaler = Standardizer(weight=factor * weight)
        found = scaler.fit_transform(xp.asarray(X))
        assert xp.owns(found)
        assert_allclose(xp.to_numpy(found), expected, atol=1e-9)
    assert_allclose(scaler.weight_, [1.6, 0.0, 0.4])
    found = Standardizer(weight=[4, 0, 1]).fit_transform(xp.asarray(X.astype(np.float32)))
    assert found.dtype == xp.asarray(X.astype(np.float32)).dtype
    assert_allclose(xp.to_numpy(found), expected, atol=1e-2)
    assert not hasattr(scaler.set_params(weight=None).fit(X), "weight_")


def test_a_pipeline_weights_the_penalty_of_a_model():
    """With a penalty alpha, a feature of weight v has the penalty alpha / v."""
    X, Y = inputs(), np.random.default_rng(1).normal(size=(30, 2, 2))
    Z, weight = Standardizer().fit_transform(X), np.array([2.0, 0.5, 0.5])
    found = make_pipeline(Standardizer(weight=weight), holrr.RLS(3.0)).fit(X, Y)
    Zc, Yc = Z - Z.mean(0), Y.reshape(30, 4) - Y.reshape(30, 4).mean(0)
    W = np.linalg.solve(Zc.T @ Zc + np.diag(3.0 / weight), Zc.T @ Yc)
    assert_allclose(found.predict(X).reshape(30, 4), Zc @ W + Y.reshape(30, 4).mean(0), atol=1e-9)


@pytest.mark.parametrize(
    "model",
    [holrr.RLS(), holrr.HOLRRCV([0.1, 1.0, 10.0], cv=3), holrr.KernelRLS(kernel="rbf", gamma=0.1)],
    ids=str,
)
def test_a_feature_of_weight_zero_is_left_out(model):
    X, Y = inputs(), np.random.default_rng(1).normal(size=(30, 2, 2))
    model = make_pipeline(Standardizer(weight=[1.0, 0.0, 1.0]), model).fit(X, Y)
    other = X + np.array([0.0, 5e3, 0.0])
    assert_allclose(model.predict(other), model.predict(X), atol=1e-12)
    expected = make_pipeline(Standardizer(), model[-1]).fit(X[:, [0, 2]], Y).predict(X[:, [0, 2]])
    assert_allclose(model.fit(X, Y).predict(X), expected, atol=1e-9)


@pytest.mark.parametrize("by_group", [False, True])
def test_weights_of_modes_and_of_blocks(by_group):
    X, area = inputs(180).reshape(30, 6, 3), np.arange(1.0, 7.0)
    cells = np.repeat(area[:, None], 3, axis=1)
    expected = Standardizer(by_group=by_group).fit_transform(X, groups=GROUPS)
    expected *= np.sqrt(cells / 3.5)
    for weight in ([area, None], cells):
        scaler = Standardizer(by_group=by_group, weight=weight)
        assert_allclose(scaler.fit_transform(X, groups=GROUPS), expected, atol=1e-12)
    blocks = {"field": X, "index": X[:, 0, :2]}
    scaler = Standardizer(by_group=by_group, weight={"field": [area, None], "index": [0.0, 2.0]})
    found, mean = scaler.fit_transform(blocks, groups=GROUPS), (63 + 2) / 19
    assert_allclose(found["field"], expected * np.sqrt(3.5 / mean), atol=1e-12)
    assert not found["index"][:, 0].any()
    only = Standardizer(by_group=by_group, weight={"index": [3.0, 3.0]})
    factor = np.sqrt(20 / 24) / np.sqrt(cells / 3.5)  # the other block has weights of one
    assert_allclose(only.fit_transform(blocks, groups=GROUPS)["field"], expected * factor)


def test_labels_of_weights_are_those_of_the_inputs():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    X = inputs(180).reshape(30, 6, 3)
    coords = {"lat": np.arange(0.0, 60.0, 10.0), "lon": [1, 2, 3]}
    A = xr.DataArray(X, coords, ("time", "lat", "lon"))
    area = np.cos(np.deg2rad(A.lat))
    expected = Standardizer(weight=[area.to_numpy(), None]).fit_transform(X)
    for weight in (area, area.expand_dims(lon=A.lon), [area, None], area.to_series()):
        assert_allclose(Standardizer(weight=weight).fit_transform(A).to_numpy(), expected)
    with pytest.raises(ValueError, match="weight has other coordinates along 'lat' than X"):
        Standardizer(weight=area[::-1]).fit(A)
    with pytest.raises(ValueError, match=r"weight has dimensions \('height',\), but X has"):
        Standardizer(weight=area.rename(lat="height")).fit(A)
    table = pd.DataFrame(inputs(), columns=list("abc"))
    weight = pd.Series([1.0, 2.0, 3.0], index=list("abc"))
    expected = Standardizer(weight=[1.0, 2.0, 3.0]).fit_transform(inputs())
    assert_allclose(Standardizer(weight=weight).fit_transform(table), expected)
    with pytest.raises(ValueError, match="at position 0 weight has 'c' and X has 'a'"):
        Standardizer(weight=weight[::-1]).fit(table)
    levels = pd.MultiIndex.from_product([["u", "v", "w"], [1, 2]], names=["name", "lag"])
    shuffled = pd.DataFrame(X[:, :, 0], columns=levels)[levels[[3, 0, 5, 1, 4, 2]]]
    found = Standardizer(weight=pd.Series([1.0, 4.0], pd.Index([2, 1], name="lag"))).fit(shuffled)
    assert_allclose(
        found.weight_, [4 / 2.5 if lag == 1 else 1 / 2.5 for _, lag in shuffled.columns]
    )


def test_weights_of_cells_without_values_do_not_count():
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    X, weight = inputs(), np.array([1.0, np.nan, 3.0])
    expected = weighted_by_hand(X, weight, [0, 2])
    X[:, 1] = np.nan
    array = xr.DataArray(X, dims=("time", "cell"))
    for given in (X, array, array.chunk(time=7), da.from_array(X, chunks=(7, 2))):
        for by_group in (False, True):
            scaler = Standardizer(by_group=by_group, weight=weight)
            if by_group and given is not X:
                continue
            found = np.asarray(scaler.fit(given).transform(given, groups=np.zeros(30)))
            assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0, -1.0, 1.0], "weight must be finite and at least 0; got -1.0"),
        ([1.0, np.nan, 1.0], "weight must be finite and at least 0; got nan"),
        ([0.0, 0.0, 0.0], "weight is zero for all features"),
        ([1.0, 2.0], r"weight as an array must have the shape \(3,\) .*; got \(2,\)"),
        ("much", "weight must contain numbers; got 'much'"),
        ({"a": 1.0}, "weight has weights for 'a', but X has no blocks with names"),
    ],
)
def test_bad_weights_are_named_and_leave_the_fit_as_it_was(weight, message):
    X = inputs()
    scaler = Standardizer(weight=[1.0, 2.0, 3.0]).fit(X)
    before = scaler.transform(X)
    with pytest.raises((ValueError, TypeError), match=message):
        scaler.set_params(weight=weight).fit(X)
    np.testing.assert_array_equal(scaler.transform(X), before)
    blocks = {"a": X, "b": X}
    with pytest.raises(ValueError, match=r"must be a dict .* blocks \['a', 'b'\]; got ndarray"):
        Standardizer(weight=np.ones(3)).fit(blocks)
    with pytest.raises(ValueError, match=r"weight\['b'\] as an array must have the shape \(3,\)"):
        Standardizer(weight={"b": [1.0, 2.0]}).fit(blocks)


def test_weights_are_saved(tmp_path):
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    A = xr.DataArray(inputs(72).reshape(36, 2, 3), dims=("time", "lat", "lon"))
    weight = xr.DataArray([0.0, 1.0], dims="lat")
    for scaler in (Standardizer(weight=weight), Standardizer(weight=[[1.0, 2.0], None])):
        pipeline = make_pipeline(scaler, holrr.RLS()).fit(A, np.random.default_rng(1).random(36))
        holrr.save(pipeline, tmp_path / "m")
        again = holrr.load(tmp_path / "m")
        np.testing.assert_array_equal(again.predict(A), pipeline.predict(A))
        np.testing.assert_array_equal(again[0].fit_transform(A), scaler.fit_transform(A))
