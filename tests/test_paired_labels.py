"""Whatever is paired by position has its labels compared: rows, features, outputs, weights."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import GroupKFold

import holrr
from holrr import HOLRR, HOLRRCV, RLS, RLSCV, KernelRLS, KernelRLSCV, Moments, standard_errors
from holrr.data import Standardizer
from problems import toy

xr = pytest.importorskip("xarray", reason="xarray is not installed")
pd = pytest.importorskip("pandas", reason="pandas is not installed")
pl = pytest.importorskip("polars", reason="polars is not installed")

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty")

N = 20
X, Y = toy(n=N, d0=5, shape=(4, 4))
W, G = np.linspace(1, 2, N), np.arange(N) % 4
ROWS = [f"row {i}" for i in range(N)]


# ---------------------------------------------------------------- rows


def _inputs(kind, rows):
    if kind == "frame":
        return pd.DataFrame(X, index=rows, columns=list("abcde"))
    return xr.DataArray(X, dims=("time", "driver"), coords={"time": rows})


def _outputs(kind, rows):
    if kind == "frame":
        return pd.DataFrame(Y.reshape(N, -1), index=rows)
    y = xr.DataArray(Y, dims=("time", "lat", "lon"), coords={"time": rows})
    return y.to_dataset("lat") if kind == "dataset" else y


def _vector(kind, rows, values):
    if kind == "frame":
        return pd.Series(values, index=rows)
    return xr.DataArray(values, dims=(kind,), coords={kind: rows})


KINDS = {
    "X": ("array", "frame", "dataarray"),
    "y": ("array", "frame", "dataarray", "dataset"),
    "sample_weight": (None, "array", "frame", "time", "sample"),
    "groups": ("array", "frame", "time", "sample"),
}
MAKERS = {
    "X": _inputs,
    "y": _outputs,
    "sample_weight": lambda kind, rows: _vector(kind, rows, W),
    "groups": lambda kind, rows: _vector(kind, rows, G),
}
ARRAYS = {"X": X, "y": Y, "sample_weight": W, "groups": G}


def _data(kinds, turned):
    """X, y, weights and groups of these kinds; the rows of one of them have other labels."""
    found = {}
    for name, kind in kinds.items():
        labels = ROWS[::-1] if name == turned else ROWS
        plain = ARRAYS[name] if kind == "array" else None
        found[name] = plain if kind in (None, "array") else MAKERS[name](kind, labels)
    return found


@pytest.mark.parametrize("kind", KINDS["X"])
@pytest.mark.parametrize("of_y", KINDS["y"])
def test_rows_of_inputs_outputs_weights_and_groups_must_carry_the_same_labels(kind, of_y):
    """In all combinations of libraries; polars tables have no labels of rows."""
    n_refused = 0
    for of_weight, of_groups in product(KINDS["sample_weight"], KINDS["groups"]):
        kinds = {"X": kind, "y": of_y, "sample_weight": of_weight, "groups": of_groups}
        labelled = [name for name, kind in kinds.items() if kind not in (None, "array")]
        for turned in labelled if len(labelled) > 1 else ():
            data = _data(kinds, turned)
            x, y = data.pop("X"), data.pop("y")
            with pytest.raises(ValueError, match=r"the rows of .* have different labels"):
                RLSCV([1.0], cv=GroupKFold(2)).fit(x, y, **data)
            n_refused += 1
    assert n_refused > 10


def test_rows_with_the_same_labels_fit_as_arrays_do():
    expected = RLSCV([1.0], cv=GroupKFold(2)).fit(X, Y, W, groups=G)
    for of_x, of_y, of_weight, of_groups in product(*(KINDS[name][1:] for name in KINDS)):
        kinds = {"X": of_x, "y": of_y, "sample_weight": of_weight, "groups": of_groups}
        data = _data(kinds, None)
        x, y = data.pop("X"), data.pop("y")
        model = RLSCV([1.0], cv=GroupKFold(2)).fit(x, y, **data)
        assert_allclose(model.best_score_, expected.best_score_)


def test_groups_of_standard_errors_must_carry_the_labels_of_the_rows():
    groups = pd.Series(G, index=ROWS[::-1])
    with pytest.raises(ValueError, match="the rows of X and groups have different labels"):
        standard_errors(RLS(), _inputs("frame", ROWS), Y, groups=groups)


def _align_in_pandas(x, y):
    return x.align(y, join="inner", axis=0)


def _align_in_xarray(x, y):
    return xr.align(x, y, join="inner")


def test_the_advice_on_rows_of_different_labels_leads_to_a_fit():
    later = [*ROWS[5:], "one", "two", "three", "four", "five"]
    model = RLS()
    for of_x, of_y, rows, advice, follow in (
        ("frame", "frame", ROWS[::-1], r"y = y\.loc\[X\.index\]", lambda x, y: (x, y.loc[x.index])),
        ("frame", "frame", later, r"X, y = X\.align\(y, join='inner', axis=0\)", _align_in_pandas),
        ("dataarray", "dataarray", later, r"xarray\.align\(X, y, join=\"inner\"", _align_in_xarray),
        ("dataarray", "dataset", later, r"xarray\.align\(X, y, join=\"inner\"", _align_in_xarray),
    ):
        x, y = _inputs(of_x, ROWS), _outputs(of_y, rows)
        with pytest.raises(ValueError, match=advice):
            model.fit(x, y)
        model.fit(*follow(x, y))


@pytest.mark.parametrize("kind", ["frame", "dataarray", "dataset"])
def test_rows_without_a_common_label_are_not_to_be_aligned(kind):
    """Aligned, none would be left."""
    other = [f"sample {i}" for i in range(N)]
    x, y = _inputs("frame" if kind == "frame" else "dataarray", ROWS), _outputs(kind, other)
    with pytest.raises(
        ValueError, match=r"They share no label. Give both the same labels"
    ) as found:
        RLS().fit(x, y)
    assert "lign" not in str(found.value)


@pytest.mark.parametrize("kind", ["frame", "dataarray", "dataset"])
def test_zero_rows_with_labels_are_said_to_be_zero_samples(kind):
    of_x = "frame" if kind == "frame" else "dataarray"
    x, y = _inputs(of_x, ROWS), _outputs(kind, ROWS)
    none = y.iloc[:0] if kind == "frame" else y.isel(time=slice(0))
    model = RLS().fit(x, y)
    for call in (
        lambda: RLS().fit(x[:0], none),
        lambda: model.predict(x[:0]),
        lambda: model.score(x[:0], none),
        lambda: Moments.from_arrays(x[:0], none),
        lambda: Standardizer().fit(x[:0]),
    ):
        with pytest.raises(ValueError, match=r"0 sample\(s\)"):
            call()


# ---------------------------------------------------------------- features of moments

ORDER = [1, 0, 2, 3, 4]
NAMES = list("abcde")


def _features():
    """Kind -> the same inputs in two orders."""
    frame = pd.DataFrame(X, columns=NAMES)
    array = xr.DataArray(X, dims=("t", "driver"), coords={"driver": NAMES})
    counted = xr.DataArray(X, dims=("t", "driver"), coords={"driver": np.arange(5)})
    halves = pd.DataFrame(X, columns=np.arange(5) / 2)
    return {
        "text": (frame, frame.iloc[:, ORDER]),
        "counted": (pd.DataFrame(X), pd.DataFrame(X)[ORDER]),
        "array and counted": (X, pd.DataFrame(X)[ORDER]),
        "numbers": (halves, halves.iloc[:, ORDER]),
        "polars": (pl.from_pandas(frame), pl.from_pandas(frame.iloc[:, ORDER])),
        "pandas and polars": (frame, pl.from_pandas(frame.iloc[:, ORDER])),
        "dataarray": (array, array[:, ORDER]),
        "counted dataarray": (counted, counted[:, ORDER]),
        "dataset": (array.to_dataset("driver"), array.to_dataset("driver")[list("bacde")]),
        "frame and dataarray": (frame, array[:, ORDER]),
    }


MERGES = {
    "+": lambda a, b: a + b,
    "merge": lambda a, b: a.merge(b),
    "sum": lambda a, b: sum([a, b]),
    "fit_fold_moments": lambda a, b: RLSCV(alphas=[1.0]).fit_fold_moments([a, b]),
    "standard_errors": lambda a, b: standard_errors(RLS(), [a, b]),
}


@pytest.mark.parametrize("merge", MERGES)
@pytest.mark.parametrize("kind", _features())
def test_moments_of_reordered_features_are_not_merged(kind, merge):
    for one, other in (_features()[kind], _features()[kind][::-1]):
        a, b = Moments.from_arrays(one, Y), Moments.from_arrays(other, Y)
        with pytest.raises(ValueError, match="different features cannot be merged: at position 0"):
            MERGES[merge](a, b)


@pytest.mark.parametrize("kind", ["text", "counted", "numbers", "polars", "dataarray"])
def test_moments_of_features_in_one_order_are_merged(kind):
    one, _ = _features()[kind]
    a, plain = Moments.from_arrays(one, Y), Moments.from_arrays(X, Y)
    expected = (plain + plain).Sxy
    for merged in (a + a, a + plain, plain + a, sum([a, plain])):
        assert_allclose(merged.Sxy, expected)


# ---------------------------------------------------------------- outputs of moments


def _targets():
    """Kind -> the same outputs in two orders."""
    y = xr.DataArray(Y, dims=("t", "lat", "lon"), coords={"lat": NAMES[:4], "lon": list("wxyz")})
    columns = pd.MultiIndex.from_product([NAMES[:4], list("wxyz")])
    table = pd.DataFrame(Y.reshape(N, -1), columns=columns)
    turned = table[["b", "a", "c", "d"]]
    flat = pd.DataFrame(Y[:, 0], columns=NAMES[:4])
    bare = y.drop_vars(["lat", "lon"])
    return {
        "dataarray": (y, y[:, [1, 0, 2, 3]]),
        "transposed": (y, y.transpose("t", "lon", "lat")),
        "transposed without coordinates": (bare, bare.transpose("t", "lon", "lat")),
        "dataset": (y.to_dataset("lat"), y.to_dataset("lat")[["b", "a", "c", "d"]]),
        "dataarray and dataset": (y, y.to_dataset("lat")[["b", "a", "c", "d"]]),
        "table": (table, turned),
        "dataarray and table": (y, turned),
        "dataarray and turned levels": (y, _named(table).swaplevel(axis=1)),
        "columns": (flat, flat[["b", "a", "c", "d"]]),
        "counted columns": (pd.DataFrame(Y[:, 0]), pd.DataFrame(Y[:, 0])[[1, 0, 2, 3]]),
        "polars": (pl.from_pandas(flat), pl.from_pandas(flat[["b", "a", "c", "d"]])),
        "dataarray and polars": (
            y[:, :, 0].drop_vars("lon"),
            pl.from_pandas(flat[["b", "a", "c", "d"]]),
        ),
    }


def _named(table):
    return table.rename_axis(columns=["lat", "lon"])


@pytest.mark.parametrize("merge", MERGES)
@pytest.mark.parametrize("kind", _targets())
def test_moments_of_reordered_outputs_are_not_merged(kind, merge):
    for one, other in (_targets()[kind], _targets()[kind][::-1]):
        a, b = Moments.from_arrays(X, one), Moments.from_arrays(X, other)
        with pytest.raises(ValueError, match="different outputs cannot be merged"):
            MERGES[merge](a, b)


@pytest.mark.parametrize("kind", _targets())
def test_reordered_outputs_are_refused_or_put_in_order_by_name(kind):
    """Batches and scores put the dimensions and variables of xarray in order, and nothing else."""
    one, other = _targets()[kind]
    ordered = comes_in_order(one, other)
    model = RLS().fit(X, one)
    for use in (
        lambda y: RLS().partial_fit(X, one).partial_fit(X, y).coef_,
        lambda y: Moments.from_batches([(X, one), (X, y)]).Sxy,
        lambda y: model.score(X, y),
    ):
        if ordered:
            assert_allclose(use(other), use(one))
        else:
            with pytest.raises(ValueError, match=r"other (columns|coordinates)|levels"):
                use(other)


def comes_in_order(one, other):
    if not isinstance(other, (xr.DataArray, xr.Dataset)):
        return False
    return isinstance(other, xr.Dataset) or one.dims != other.dims


# ---------------------------------------------------------------- weights of outputs


def test_weights_of_outputs_in_another_order_are_refused():
    table = pd.DataFrame(Y[:, 0], columns=NAMES[:4])
    levels = _named(_targets()["table"][0])
    weights = pd.Series([1.0, 2.0, 3.0, 4.0], index=NAMES[:4])
    for y, given in (
        (table, weights[::-1]),
        (table, [weights[::-1]]),
        (levels, [weights[::-1], None]),
        (levels, weights[::-1].rename_axis("lat")),
        (levels, pd.DataFrame(np.ones((4, 4)), index=NAMES[3::-1], columns=list("wxyz"))),
        (levels, xr.DataArray(np.ones(4), dims="lat", coords={"lat": NAMES[3::-1]})),
    ):
        model = HOLRR(2, output_weight=given)
        with pytest.raises(ValueError, match=r"output_weight.* has other coordinates along"):
            model.fit(X, y)
        with pytest.raises(
            ValueError, match=r"output_weight.* at position 0 output_weight.* has 'd' and y has 'a'"
        ):
            HOLRRCV([1.0], cv=2, output_weight=given).fit(X, y)


def test_labelled_weights_of_outputs_equal_those_of_arrays():
    y, v = _targets()["dataarray"][0], np.array([1.0, 2.0, 3.0, 4.0])
    u, table = v[::-1] ** 2, _named(_targets()["table"][0])
    lat, lon = pd.Series(v, index=NAMES[:4]), pd.Series(u, index=list("wxyz"))
    by_lat = xr.DataArray(v, dims="lat", coords={"lat": NAMES[:4]})
    by_lon = xr.DataArray(u, dims="lon")
    both = HOLRR(2, output_weight=[v, u]).fit(X, Y).coef_
    one = HOLRR(2, output_weight=[v, None]).fit(X, Y).coef_
    assert np.abs(both - one).max() > 1e-3
    frame = pd.DataFrame(np.outer(v, u), index=lat.index, columns=lon.index)
    turned = frame.rename_axis(index="lat", columns="lon").T
    for given, expected in (
        ([lat, lon], both),
        ([by_lat, by_lon], both),
        (by_lat * by_lon, both),
        (by_lon * by_lat, both),
        (frame, both),
        (turned, both),
        ([pd.Series(v), None], one),
        (by_lat, one),
        (lat.rename_axis("lat"), one),
    ):
        for outputs in (y, table):
            model = HOLRR(2, output_weight=given).fit(X, outputs)
            assert_allclose(model.coef_, expected, atol=1e-12)


def test_files_keep_the_labels_of_weights(tmp_path):
    """Without them a transposed array of weights would belong to other outputs in the next fit."""
    y, v = _targets()["dataarray"][0], np.array([1.0, 2.0, 3.0, 4.0])
    by_lat = xr.DataArray(v, dims="lat", coords={"lat": NAMES[:4]})
    by_lon = xr.DataArray(np.array([1.0, 5.0, 1.0, 1.0]), dims="lon")
    series = pd.Series(v, index=pd.Index(NAMES[:4], name="lat"))
    for given in (by_lat, by_lon * by_lat, [by_lat, by_lon], series):
        model = HOLRR(2, output_weight=given).fit(X, y)
        model.save(tmp_path / "model")
        again = holrr.load(tmp_path / "model")
        assert_array_equal(again.fit(X, y).coef_, model.coef_)
        if given is series:
            pd.testing.assert_series_equal(again.output_weight, series)
    with pytest.raises(ValueError, match="other coordinates along 'lat'"):
        holrr.load(tmp_path / "model").fit(X, y[:, ::-1])


@pytest.mark.parametrize("search", [False, True])
def test_standard_errors_pair_weights_of_outputs_by_name(search):
    y, v = _targets()["dataarray"][0], np.array([1.0, 2.0, 3.0, 4.0])
    by_lon = xr.DataArray(v, dims="lon")
    for given, plain in ((by_lon, [None, v]), (by_lon * xr.DataArray(v, dims="lat"), [v, v])):
        found, expected = HOLRR(2, output_weight=given), HOLRR(2, output_weight=plain)
        options = {"n_groups": 4}
        if search:
            found, expected = (
                HOLRRCV([1.0], cv=2, output_weight=w, selection="min").fit(X, y)
                for w in (given, plain)
            )
            options["stability"] = True
        found = standard_errors(found, X, y, **options)
        expected = standard_errors(expected, X, y, **options)
        assert_allclose(found.coef.std_error, expected.coef.std_error)
        assert found.ranks == expected.ranks


# ---------------------------------------------------------------- landmarks and scaling


@pytest.mark.parametrize("kind", _features())
def test_landmarks_with_reordered_features_are_refused(kind):
    one, other = _features()[kind]
    some = other.isel(t=slice(4)) if kind == "dataset" else other[:4]
    for model in (KernelRLS(landmarks=some), KernelRLSCV([1.0], cv=2, landmarks=some)):
        if kind == "dataset":  # whose variables are put in order by name
            found = model.fit(one, Y).predict(one)
            assert_allclose(found, model.set_params(landmarks=X[:4]).fit(one, Y).predict(one))
            continue
        with pytest.raises(ValueError, match="landmarks has other features than X: at position 0"):
            model.fit(one, Y)
        assert not hasattr(model, "tucker_")


@pytest.mark.parametrize("kind", ["text", "polars", "dataarray", "dataset"])
def test_labelled_landmarks_equal_arrays(kind):
    one, _ = _features()[kind]
    some = one.isel(t=slice(4)) if kind == "dataset" else one[:4]
    model = KernelRLS(landmarks=some).partial_fit(one, Y).partial_fit(one, Y)
    expected = KernelRLS(landmarks=X[:4]).partial_fit(X, Y).partial_fit(X, Y)
    assert_allclose(model.predict(one), expected.predict(X))


@pytest.mark.parametrize("kind", _features())
def test_the_scaling_of_reordered_features_is_refused(kind):
    one, other = _features()[kind]
    scaler = Standardizer().fit(one)
    expected = (X - X.mean(0)) / X.std(0)
    if kind == "dataset":  # whose variables have names
        assert_allclose(scaler.transform(other).to_array().T[:, ORDER], expected)
        return
    with pytest.raises(ValueError, match=r"(?s)feature names.*At position 0 X has"):
        scaler.transform(other)
    assert_allclose(np.asarray(scaler.transform(one)), expected, rtol=1e-12)
