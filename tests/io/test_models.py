"""Every estimator is the same after a file, and after joblib and pickle."""

from __future__ import annotations

import datetime
import io
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold, ShuffleSplit, TimeSeriesSplit

from holrr import (
    HOLRR,
    HOLRRCV,
    LRR,
    LRRCV,
    RLS,
    RLSCV,
    KernelHOLRRCV,
    KernelRLS,
    KernelRLSCV,
    Moments,
    load,
    save,
)
from holrr.datasets import make_tensor_regression
from problems import assert_same_state
from registry import PUBLIC

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty")


def data(n=30, d0=4, shape=(3, 2), seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d0)), rng.normal(size=(n, *shape))


def round_trip(value, tmp_path):
    save(value, tmp_path / "file")
    return load(tmp_path / "file")


def assert_same_after_file(model, again):
    """Equal to the last bit, except for errors and folds of a search, which files lack."""
    model, again = (pickle.loads(pickle.dumps(m)) for m in (model, again))
    for one in (model, again):
        vars(one).pop("cv_results_", None)
        vars(one).pop("_fold_fits", None)
    assert_same_state(model, again)


def test_every_estimator_is_the_same_after_a_file(row, tmp_path):
    X, Y = data()
    model = row.make().fit(X, Y)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert_same_after_file(model, again)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_every_estimator_is_the_same_after_pickle_and_joblib(row, tmp_path):
    X, Y = data()
    model = row.make().fit(X, Y)
    assert_same_state(model, pickle.loads(pickle.dumps(model)))
    joblib.dump(model, tmp_path / "model")
    assert_same_state(model, joblib.load(tmp_path / "model"))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("cls", PUBLIC)
def test_every_public_class_is_the_same_after_a_file(cls, tmp_path):
    X, Y = data(n=24, d0=2, shape=(2, 2))
    for model in (cls(), cls().fit(X, Y)):
        model.save(tmp_path / "model")
        assert_same_after_file(model, load(tmp_path / "model"))
    np.testing.assert_array_equal(load(tmp_path / "model").predict(X), model.predict(X))


@pytest.mark.parametrize("search", [RLSCV, HOLRRCV, KernelHOLRRCV])
def test_held_out_predictions_are_not_saved(search, tmp_path):
    """Nor what they are computed from; everything else is the same after a file."""
    X, Y = data()
    model = search([0.1, 1.0], cv=3).fit(X, Y)
    assert model.held_out_predictions(X, Y).shape == Y.shape
    again = round_trip(model, tmp_path)
    with pytest.raises(ValueError, match=r"held_out_predictions needs .* from a file"):
        again.held_out_predictions(X, Y)
    assert_same_after_file(model, again)


def test_a_stack_of_ranks_penalties_and_ridge_regression_is_the_same_after_a_file(tmp_path):
    X, Y = data(shape=(4, 5))
    W = np.random.default_rng(1).normal(size=(4, 4, 5))
    Y = 0.2 * Y + np.tensordot(X, W, 1)  # of full rank
    model = HOLRRCV(cv=3).fit(X, Y)
    assert None in model.stack_ranks_
    again = round_trip(model, tmp_path)
    assert_same_after_file(model, again)
    assert again.stack_ranks_ == model.stack_ranks_
    assert repr(again) == repr(model)


def test_a_function_as_kernel_cannot_be_saved(tmp_path):
    model = KernelRLS(kernel=lambda x, y: x @ y)
    with pytest.raises(TypeError, match=r"KernelRLS cannot be saved: it contains .*<lambda>"):
        model.save(tmp_path / "model")


def test_an_unfitted_model_keeps_its_parameters(tmp_path):
    model = HOLRR(rank=(2, None, 0.5), alpha=np.float64(0.1))
    again = round_trip(model, tmp_path)
    assert repr(again) == repr(model)
    assert_same_state(model, again)


def test_a_loaded_model_continues_with_partial_fit(tmp_path):
    X, Y = data(40)
    both = HOLRR(rank=2).partial_fit(X[:20], Y[:20]).partial_fit(X[20:], Y[20:])
    resumed = round_trip(HOLRR(rank=2).partial_fit(X[:20], Y[:20]), tmp_path)
    np.testing.assert_array_equal(both.coef_, resumed.partial_fit(X[20:], Y[20:]).coef_)


@pytest.mark.parametrize("subspaces", ["fitted", "response"])
def test_a_loaded_model_continues_with_arrays_of_any_library(xp, subspaces, tmp_path):
    X, Y = data(40)
    both = HOLRR(2, subspaces=subspaces).partial_fit(X, Y)
    resumed = round_trip(HOLRR(2, subspaces=subspaces).partial_fit(X[:20], Y[:20]), tmp_path)
    resumed.partial_fit(xp.asarray(X[20:]), xp.asarray(Y[20:]))
    assert xp.owns(resumed.coef_)
    np.testing.assert_allclose(xp.to_numpy(resumed.coef_), both.coef_, atol=1e-10)
    np.testing.assert_allclose(resumed.partial_fit(X[:1], Y[:1]).moments_.weight, 41)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 2)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scalar_targets_and_every_dtype_keep_their_types(shape, dtype, tmp_path):
    X, Y = (a.astype(dtype) for a in data(shape=shape))
    model = LRR(rank=1).fit(X, Y)
    assert_same_state(model, round_trip(model, tmp_path))


def test_files_keep_feature_names(tmp_path):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, Y = data()
    frame = pd.DataFrame(X, columns=["a", "b", "c", "ü"])
    again = round_trip(RLS().fit(frame, Y), tmp_path)
    assert list(again.feature_names_in_) == ["a", "b", "c", "ü"]
    assert again.feature_names_in_.dtype == np.dtype(object)
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame[["b", "a", "c", "ü"]])


def test_arrays_of_other_libraries_load_as_numpy_arrays(xp, tmp_path):
    X, Y = data()
    model = HOLRR(rank=2).fit(xp.asarray(X), xp.asarray(Y))
    again = round_trip(model, tmp_path)
    assert type(again.tucker_.core) is np.ndarray
    np.testing.assert_array_equal(again.tucker_.core, xp.to_numpy(model.tucker_.core))
    np.testing.assert_allclose(again.predict(X), xp.to_numpy(model.predict(xp.asarray(X))))


@pytest.mark.parametrize("grams", [False, True])
def test_moments_are_the_same_after_a_file(grams, tmp_path):
    moments = Moments.from_arrays(*data(), response_grams=grams)
    moments.save(tmp_path / "moments")
    assert_same_state(moments, Moments.load(tmp_path / "moments"))


def test_files_keep_the_names_of_moments(tmp_path):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, Y = data(shape=(3,))
    frame, outputs = pd.DataFrame(X, columns=list("abcü")), pd.DataFrame(Y, columns=list("uvw"))
    moments = Moments.from_arrays(frame, outputs)
    moments.save(tmp_path / "moments")
    again = Moments.load(tmp_path / "moments")
    assert_same_state(moments, again)
    assert list(again.feature_names) == list("abcü")
    model = RLS().fit_moments(again)
    assert list(model.predict(frame).columns) == list("uvw")
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list("bacü")])
    with pytest.raises(ValueError, match=r"different features.*'a'.*'b'"):
        again + Moments.from_arrays(frame[list("bacü")], outputs)


def test_parameters_of_all_kinds_are_the_same_after_a_file(tmp_path):
    values = [
        None,
        True,
        -(2**70),
        0.1,
        float("nan"),
        float("-inf"),
        "ü\n",
        (1, (2.5, None), []),
        {"a": 1, 2: (3,), (0, "b"): {}, False: 2, None: 3},
        {"$": "code"},
        range(3, 9, 2),
        slice(1, None),
        np.float32(1.5),
        np.int64(3),
        np.bool_(True),
        np.str_("x"),
        np.arange(6).reshape(2, 3)[:, ::2],
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.empty((0, 3)),
        np.array(2.0),
        np.array(["a", "bc"]),
        np.array(["2000-01-01", "NaT"], dtype="M8[D]"),
        np.array([["ü", "\ud800"], ["", "x"]], dtype=object),
        np.array([[None, (1, 2)], ["x", 2.0]], dtype=object),
        np.array([], dtype=object),
        datetime.date(2000, 1, 2),
        datetime.datetime(2000, 1, 2, 3, 4, 5, 6),
        KFold(4, shuffle=True, random_state=3),
        ShuffleSplit(2, test_size=0.25),
        TimeSeriesSplit(3),
        RLS(),
    ]
    model = round_trip(RLS(alpha=values), tmp_path)
    assert_same_state(values, model.alpha)


def test_labels_of_pandas_and_cftime_are_the_same_after_a_file(tmp_path):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    cftime = pytest.importorskip("cftime", reason="cftime is not installed")
    values = [
        pd.Timestamp("2000-01-01 03:04", tz="Europe/Berlin"),
        pd.Timestamp("1500-01-01").as_unit("s"),
        pd.Period("2000-03", "M"),
        pd.Interval(0.5, 1, closed="left"),
        cftime.DatetimeNoLeap(2001, 2, 28),
        cftime.datetime(2001, 2, 30, calendar="360_day"),
    ]
    (*again,) = round_trip(RLS(alpha=np.array([*values, pd.NaT], dtype=object)), tmp_path).alpha
    assert again[:-1] == values
    assert [type(v) for v in again] == [type(v) for v in [*values, pd.NaT]]
    assert again[0].tz == values[0].tz
    assert again[-1] is pd.NaT
    series = pd.Series([1.0, 2.0], pd.Index(["a", "b"], name="place"), name="w")
    pd.testing.assert_series_equal(
        round_trip(RLS(output_weight=series), tmp_path).output_weight, series
    )
    frame = pd.DataFrame([[1.0, 2.0]], index=[3], columns=["a", "b"])
    pd.testing.assert_frame_equal(
        round_trip(RLS(output_weight=frame), tmp_path).output_weight, frame
    )


WITHOUT_LABEL_LIBRARIES = """
import sys


class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("cftime", "pandas", "polars", "xarray"):
            raise ImportError(name)


sys.meta_path.insert(0, Missing())
import numpy as np
import holrr

data = np.load("data.npz")
for name in ("xarray", "pandas"):
    found = np.asarray(holrr.load(name).predict(data[f"X_{name}"]))
    assert (found.ravel() == data[f"P_{name}"].ravel()).all(), name
assert holrr.Moments.load("moments").n_samples == 30
"""


@pytest.mark.slow
def test_labelled_models_load_where_pandas_and_xarray_are_not_installed(tmp_path, monkeypatch):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    pytest.importorskip("cftime", reason="cftime is not installed")
    monkeypatch.chdir(tmp_path)
    X, Y = data(30, 6, (5,))
    time = xr.date_range("2000-01-01", periods=30, calendar="noleap", use_cftime=True)
    months = pd.period_range("2000-01", periods=5, freq="M")
    grid = xr.DataArray(X.reshape(30, 2, 3), dims=("time", "lat", "lon"), coords={"time": time})
    outputs = xr.DataArray(Y, dims=("time", "month"), coords={"time": time, "month": months})
    weight = xr.DataArray(np.arange(1.0, 6.0), coords={"month": months})
    columns = pd.MultiIndex.from_product([["s", "t"], ["u", "v", "w"]], names=["site", "kind"])
    frame = pd.DataFrame(X, pd.date_range("2000", periods=30, tz="Europe/Paris"), columns)
    models = {
        "xarray": (HOLRRCV([1.0], cv=3, output_weight=weight).fit(grid, outputs), grid),
        "pandas": (KernelRLSCV([1.0], cv=3).fit(frame, frame), frame),
    }
    arrays = {}
    for name, (model, inputs) in models.items():
        model.save(name)
        arrays[f"P_{name}"] = np.asarray(model.predict(inputs))
        arrays[f"X_{name}"] = np.asarray(inputs)
    np.savez("data.npz", **arrays)
    Moments.from_arrays(frame, frame).save("moments")
    command = [sys.executable, "-W", "ignore", "-c", WITHOUT_LABEL_LIBRARIES]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_an_array_that_is_used_twice_is_stored_once(tmp_path):
    a = np.arange(1e5)
    RLS(alpha=[a, (a,), {"a": a}]).save(tmp_path / "file")
    assert (tmp_path / "file").stat().st_size < 1.1 * a.nbytes


class Foreign(HOLRR):
    """A subclass that is not a class of this library."""


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (lambda: HOLRR(rank=len), r"HOLRR cannot be saved: it contains builtins\.len"),
        (lambda: RLS(alpha=[1, io.StringIO()]), r"RLS cannot be saved"),
        (lambda: Foreign(), r"it contains test_models\.Foreign"),
    ],
)
def test_values_without_a_safe_form_are_named(value, message, tmp_path):
    with pytest.raises(TypeError, match=message):
        save(value(), tmp_path / "file")
    assert list(tmp_path.iterdir()) == []


def test_a_clone_of_a_loaded_model_equals_a_clone_of_the_model(tmp_path):
    model = HOLRR(rank=2, refine=True).fit(*data())
    assert_same_state(clone(model), clone(round_trip(model, tmp_path)))


# ---------------------------------------------------------------- size


def bytes_of_model(model, Y):
    """Bytes of what predicts, and of the quantiles of the intervals, in single precision."""
    parts = [model.core_, *(U for U in model.factors_ if U is not None), model.intercept_]
    return sum(part.nbytes for part in parts) + 4 * 25 * Y[0].size


@pytest.mark.parametrize(
    ("rows", "inputs", "outputs"),
    [(480, 40, (36, 48)), (300, 200, (150,)), (150, 400, (150,))],
    ids=["climate", "encoding", "wide encoding"],
)
@pytest.mark.parametrize("selection", ["auto", "min"])
def test_files_contain_no_errors_of_all_ranks(rows, inputs, outputs, selection, tmp_path):
    """At most 3 times the numbers of the model and its intervals.

    A small model of many inputs also has the factor of its leverage, which is not small.
    """
    X, Y = make_tensor_regression(rows, inputs, outputs, rank=3, snr=0.5, random_state=0)
    model = HOLRRCV([1.0, 100.0, 1e4], cv=3, selection=selection).fit(X, Y)
    assert (max(model.rank_) > 20) == (selection == "auto")  # a stack with ridge regression
    model.save(tmp_path / "model")
    leverage = 8 * min(X.shape) * X.shape[1] if selection == "min" else 0
    size = (tmp_path / "model").stat().st_size
    assert size < 3 * bytes_of_model(model, Y) + leverage


def test_files_contain_the_errors_along_a_path_of_ranks(tmp_path):
    X, Y = data(60, 6, (4, 3))
    model = HOLRRCV([0.1, 1.0], cv=3).fit(X, Y)
    results = round_trip(model, tmp_path).cv_results_
    assert not {"mean_mse", "std_mse", "fold_mse", "n_parameters"} & set(results)
    error = model.cv_results_["mean_mse"].min(axis=0)
    count = model.cv_results_["n_parameters"]
    ranks, errors = results["path_rank"], results["path_mse"]
    assert tuple(ranks[-1]) == tuple(np.unravel_index(error.argmin(), error.shape) + np.int64(1))
    for rank, mse, n in zip(ranks, errors, results["path_n_parameters"], strict=True):
        at = tuple(rank - 1)
        assert (error[at], count[at]) == (mse, n)
        assert np.all(error[count < n] > mse)
    assert (np.diff(errors) < 0).all()
    for name in ("null_mse", "ridge_mse", "held_out_mse"):
        assert results[name] == model.cv_results_[name]


@pytest.mark.parametrize("search", [RLSCV, LRRCV, KernelRLSCV])
def test_searches_over_at_most_one_rank_keep_their_errors(search, tmp_path):
    model = search([0.1, 1.0], cv=3).fit(*data())
    again = round_trip(model, tmp_path)
    np.testing.assert_array_equal(again.cv_results_["mean_mse"], model.cv_results_["mean_mse"])
