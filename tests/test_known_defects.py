"""Relations that every estimator obeys, and that hostile combinations of features broke.

A test marked ``xfail(strict=True)`` shows a defect that is not mended yet: its reason names the
relation. When the defect is mended the test passes, and the mark must be removed.
"""

from __future__ import annotations

import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose
from sklearn.model_selection import KFold, PredefinedSplit
from sklearn.preprocessing import Normalizer

from holrr import (
    HOLRR,
    HOLRRCV,
    RLS,
    RLSCV,
    KernelHOLRRCV,
    KernelLRRCV,
    KernelRLS,
    KernelRLSCV,
    Moments,
    load,
    save,
    standard_errors,
)
from holrr.data import Along, Delayer, Standardizer
from holrr.diagnostics import find_outliers
from holrr.report import make_report
from registry import ROWS

FOLDS = np.arange(12) % 3


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def linear_problem(n=24, d=5, outputs=(3,), noise=0.5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.tensordot(X, rng.normal(size=(d, *outputs)), 1) + noise * rng.normal(
        size=(n, *outputs)
    )


def defect(reason):
    """Mark a test whose relation does not hold yet."""
    return pytest.mark.xfail(strict=True, reason=reason)


def params(keep, broken=lambda row: False, reason=""):
    """The rows of the registry for which `keep` is true, as parameters of a test.

    The relation does not hold yet for rows for which `broken` is true.
    """
    return [
        pytest.param(row, id=row.id, marks=[defect(reason)] if broken(row) else [])
        for row in ROWS
        if keep(row)
    ]


def rows_with(*names, and_also=lambda row: True, **broken):
    """Run a test for the rows that have these parameters, and for which `and_also` is true."""
    has = [row for row in ROWS if all(name in row.params for name in names)]
    return pytest.mark.parametrize(
        "case", params(lambda row: row in has and and_also(row), **broken)
    )


def make(row, **given):
    """The estimator of a row, with the parameters among `given` that it has."""
    return row.make(**{name: value for name, value in given.items() if name in row.params})


def noise_of(model):
    return np.asarray(model.noise_)


# ---------------------------------------------------------------- 1: polars


@pytest.mark.parametrize("step", [Standardizer, lambda: Along(Normalizer())])
def test_a_square_polars_frame_is_transformed_as_the_array(step):
    pl = pytest.importorskip("polars", reason="polars is not installed")
    X = draw(4, 4)
    frame = pl.DataFrame(X, schema=list("abcd"), orient="row")
    found = step().fit_transform(frame)
    assert found.columns == frame.columns
    assert_allclose(found.to_numpy(), step().fit_transform(X))


def test_a_square_polars_frame_is_delayed_as_the_array():
    pl = pytest.importorskip("polars", reason="polars is not installed")
    X = draw(4, 2)
    frame = pl.DataFrame(X, schema=["a", "b"], orient="row")
    found = Delayer([0, 1]).fit_transform(frame)  # four rows, four columns
    assert_allclose(found.to_numpy(), Delayer([0, 1]).fit_transform(X))


@pytest.mark.parametrize("case", params(lambda row: True))
def test_predictions_for_a_square_polars_frame_are_those_of_the_array(case):
    pl = pytest.importorskip("polars", reason="polars is not installed")
    X, Y = draw(24, 4), draw(24, 4, seed=1)
    tables = [pl.DataFrame(A, schema=list("abcd"), orient="row") for A in (X, Y)]
    found, expected = make(case, cv=3).fit(*tables), make(case, cv=3).fit(X, Y)
    case.near(found.predict(tables[0][:4]).to_numpy(), expected.predict(X[:4]), factor=10)
    if case.has_noise:
        spreads = found.predict(tables[0][:4], return_std=True)[1]
        case.near(spreads.to_numpy(), expected.predict(X[:4], return_std=True)[1], factor=100)
    if case.has_intervals:
        ends = found.predict_interval(tables[0][:4], 0.5)
        for a, b in zip(ends, expected.predict_interval(X[:4], 0.5), strict=True):
            case.near(a.to_numpy(), b, factor=100)


@pytest.mark.parametrize("case", params(lambda row: True))
def test_predictions_for_a_float32_polars_frame_stay_float32(case):
    pl = pytest.importorskip("polars", reason="polars is not installed")
    X, Y = draw(24, 4), draw(24, 3, seed=1)
    tables = [
        pl.DataFrame(A, schema=[f"c{i}" for i in range(A.shape[1])], orient="row").cast(pl.Float32)
        for A in (X, Y)
    ]
    assert set(make(case, cv=3).fit(*tables).predict(tables[0]).dtypes) == {pl.Float32}


@pytest.mark.parametrize(
    "step", [Standardizer, lambda: Along(Normalizer()), lambda: Delayer([0, 1])]
)
def test_a_float32_polars_frame_stays_float32(step):
    pl = pytest.importorskip("polars", reason="polars is not installed")
    frame = pl.DataFrame(draw(6, 3), schema=list("abc"), orient="row").cast(pl.Float32)
    assert set(step().fit_transform(frame).dtypes) == {pl.Float32}


# ---------------------------------------------------------------- 2: outputs never observed


LINEAR = ("RLS", "LRR", "HOLRR")


@pytest.mark.parametrize("case", params(lambda row: row.has_intervals and row.takes_missing))
def test_an_output_never_observed_does_not_change_the_intervals_of_the_others(case, tmp_path):
    for n_outputs in (3, 2):
        X, Y = linear_problem(36, 3, (n_outputs,))
        Y[:, 1] = np.nan
        others = [j for j in range(n_outputs) if j != 1]
        given = {"cv": PredefinedSplit(np.arange(36) % 3), "missing": "ignore", "selection": "min"}
        without, model = make(case, **given).fit(X, Y[:, others]), make(case, **given).fit(X, Y)
        model.save(tmp_path / "model.holrr")
        again = load(tmp_path / "model.holrr")
        for kind in ("entry", "pooled", "simultaneous"):
            expected = without.predict_interval(X[:2], 0.7, kind)
            for fitted in (model, again):
                found = fitted.predict_interval(X[:2], 0.7, kind)
                for a, b in zip(found, expected, strict=True):
                    case.near(a[:, others], b, factor=10)
                    assert np.isnan(a[:, 1]).all()


def test_two_observed_outputs_of_a_grid_have_the_intervals_of_these_two():
    X, Y = linear_problem(36, 3, (3, 2))
    Y[:, :, 1] *= 5
    seen = np.zeros((3, 2), bool)
    seen[0, 1] = seen[2, 0] = True
    expected = RLSCV(cv=KFold(3)).fit(X, Y[:, seen]).predict_interval(X, 0.7, "simultaneous")
    model = RLSCV(cv=KFold(3), missing="ignore").fit(X, np.where(seen, Y, np.nan))
    for a, b in zip(model.predict_interval(X, 0.7, "simultaneous"), expected, strict=True):
        assert_allclose(a[:, seen], b)


# ---------------------------------------------------------------- 3, 4: own inputs in a search

FITTED = {None, "fitted"}  # the value of `subspaces` with which own inputs can be combined


def searches_own(row):
    return row.searches and row.params.get("subspaces") in FITTED


def own_problem():
    """Two modes of inputs, of which each output has one as its own input."""
    rng = np.random.default_rng(0)
    X, own = rng.normal(size=(60, 2, 3)), np.eye(6, 4, dtype=bool).reshape(2, 3, 4)
    return X, 3 * X.reshape(60, 6)[:, :4] + 0.3 * rng.normal(size=(60, 4)), own


@rows_with("own", and_also=searches_own)
def test_a_search_with_own_inputs_keeps_the_given_input_rank(case):
    X, Y, own = own_problem()
    model = make(case, own=own, input_rank=(1, 1), cv=KFold(3)).fit(X, Y)
    assert hasattr(model, "own_coef_")
    assert model.input_rank_ == (1, 1)


@rows_with("own", and_also=lambda row: searches_own(row) and not row.robust)
@pytest.mark.parametrize("chosen", [True, False])
def test_the_error_of_the_mean_does_not_depend_on_own_inputs(case, chosen):
    X, Y, own = own_problem()
    Y = Y if chosen else np.random.default_rng(1).permutation(Y)
    model = make(case, own=own, cv=KFold(3)).fit(X, Y)
    assert_allclose(model.null_mse_, make(case, cv=KFold(3)).fit(X, Y).null_mse_, rtol=1e-9)


# ---------------------------------------------------------------- 5: robust weights


def robust(row, X, Y):
    return make(row, loss="huber", cv=3).fit(X, Y).robust_weight_


def takes_huber(row):
    return "loss" in row.params and row.params.get("subspaces") != "response"


@pytest.mark.parametrize("case", params(takes_huber))
def test_robust_weights_do_not_depend_on_the_order_of_rows(case):
    for seed in range(40, 46):
        X, Y = linear_problem(15, 60, (4,), noise=1.0, seed=seed)
        assert_allclose(robust(case, X[::-1], Y[::-1])[::-1], robust(case, X, Y), atol=1e-6)


@pytest.mark.parametrize("case", params(takes_huber))
def test_robust_weights_do_not_depend_on_the_units_of_y(case):
    for seed in range(40, 46):
        X, Y = linear_problem(15, 60, (4,), noise=1.0, seed=seed)
        assert_allclose(robust(case, X, 1.7 * Y), robust(case, X, Y), atol=1e-6)


# ---------------------------------------------------------------- 6: constant outputs


@pytest.mark.parametrize("case", params(lambda row: row.has_noise))
def test_the_value_of_a_constant_output_does_not_change_noise_and_deviations(case):
    for n_features in (3, 20):
        X, Y = linear_problem(15, n_features, (2,))

        def fitted(c, X=X, Y=Y):
            model = make(case, cv=3).fit(X, np.c_[np.full(15, c), Y])
            return noise_of(model)[1:], model.predict(X[:3], return_std=True)[1][:, 1:]

        expected = fitted(0.0)
        for c in (2.5, 0.1, 1e-160):
            for found, same in zip(fitted(c), expected, strict=True):
                case.near(found, same, factor=100)


# ---------------------------------------------------------------- 7, 8: weights of zero


@rows_with("input_rank")
def test_rows_of_weight_zero_do_not_change_a_fit_with_input_ranks(case):
    X, Y = draw(16, 3, 6), draw(16, 2, seed=1)
    w = np.repeat([1.0, 0.0], [12, 4])
    given = {"input_rank": (1, 2)}
    labels = np.r_[FOLDS, -1, -1, -1, -1]
    found = make(case, cv=PredefinedSplit(labels), **given).fit(X, Y, w)
    expected = make(case, cv=PredefinedSplit(FOLDS), **given).fit(X[:12], Y[:12])
    case.near(found.coef_, expected.coef_, factor=100)


@rows_with("input_rank", and_also=lambda row: not row.robust)
def test_integer_weights_equal_repeated_rows_with_input_ranks(case):
    X, Y = draw(12, 3, 6), draw(12, 2, seed=1)
    times = np.array([1, 2, 1, 3, 1, 1] * 2)
    again = np.repeat(np.arange(12), times)
    given = {"input_rank": (1, 2)}
    found = make(case, cv=PredefinedSplit(FOLDS), **given).fit(X, Y, times)
    expected = make(case, cv=PredefinedSplit(FOLDS[again]), **given).fit(X[again], Y[again])
    case.near(found.coef_, expected.coef_, factor=100)


@rows_with(
    "blocks",
    "alpha",
    and_also=lambda row: row.params.get("subspaces") in FITTED,
)
def test_an_input_of_weight_zero_in_a_block_without_penalty_is_not_used(case):
    X, Y = linear_problem(20, 4, (2,))
    blocks = {"a": [0, 1], "b": [2, 3]}
    X = Standardizer(weight=[0.0, 1.0, 1.0, 1.0]).fit_transform(X)
    model = make(case, blocks=blocks, alpha={"a": 0.0, "b": 1.0}).fit(X, Y)
    assert not model.coef_[0].any()
    assert model.coef_[1].any()


# ---------------------------------------------------------------- 9: own inputs and weights


@rows_with(
    "own",
    and_also=lambda row: row.has_noise and row.params.get("subspaces") in FITTED,
)
def test_standard_deviations_with_constant_own_inputs_do_not_depend_on_the_order_of_rows(case):
    own = np.eye(5, 3, dtype=bool)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, new = rng.normal(size=(12, 5)), rng.normal(size=(3, 5))
        Y, w = 4 * X[:, :3] + rng.normal(size=(12, 3)), rng.uniform(0.5, 2, 12)
        X[:, 0] = 0.1

        def deviations(order, X=X, Y=Y, w=w, new=new):
            cv = PredefinedSplit(FOLDS[order])
            model = make(case, own=own, cv=cv).fit(X[order], Y[order], w[order])
            return model.predict(new, return_std=True)[1]

        case.near(deviations(rng.permutation(12)), deviations(np.arange(12)), factor=1e3)


def test_an_own_input_that_is_constant_where_its_output_is_observed_is_not_used():
    rng = np.random.default_rng(0)
    X, own = rng.normal(size=(12, 4)), np.eye(4, 2, dtype=bool)
    Y = X[:, :2] + rng.normal(size=(12, 2))
    X[4:, 0], Y[:4, 0] = 0.1, np.nan
    model = RLS(own=own, own_alpha=1e-30, missing="ignore").fit(X, Y)
    assert not model.own_coef_[:, 0].any()
    assert model.own_coef_[1, 1]


# ---------------------------------------------------------------- 10, 11: limits


@rows_with("max_rank")
def test_a_limit_on_ranks_does_not_hide_ridge_regression(case):
    X, Y = linear_problem(120, 8, (6, 4), noise=0.3)
    given = {"max_rank": 1, "cv": KFold(3), "alphas": [1.0], "kernel": "linear", "gammas": None}
    if case.params["selection"] == "auto" and not case.params.get("refine"):
        model = make(case, **given).fit(X, Y)
        assert model.choice_ == "ridge regression"
        assert_allclose(model.held_out_mse_, model.ridge_mse_)
        given["selection"] = "min"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = make(case, **given).fit(X, Y)
    assert model.ridge_mse_ < 0.5 * model.held_out_mse_
    messages = [str(w.message) for w in caught]
    assert any("max_rank limits" in m and "Ridge regression" in m for m in messages), messages


def test_the_warning_about_memory_does_not_recommend_smaller_ranks(small_budget):
    X, Y = linear_problem(60, 10, (12, 10))
    small_budget(100_000)
    with pytest.warns(UserWarning, match="memory_budget") as caught:
        HOLRRCV(cv=3).fit(X, Y)
    assert not [str(w.message) for w in caught if "set max_rank" in str(w.message)]


@rows_with("max_rank", and_also=lambda row: row.searches and not row.robust)
def test_a_limit_on_memory_keeps_the_penalties_of_ridge_regression(case, small_budget):
    X, Y = linear_problem(60, 10, (12, 10), noise=5.0)
    given = {"cv": KFold(3), "alphas": None, "gammas": [0.01]}
    if case.params.get("landmarks") is not None:
        given["landmarks"] = X[:20].copy()
    ridge = KernelRLSCV if "kernel" in case.params else RLSCV
    shared = {name: value for name, value in given.items() if name in ridge().get_params()}
    ridge = ridge(**shared).fit(X, Y)
    small_budget(200_000 if "HOLRR" in case.id else 5_000)
    with pytest.warns(UserWarning, match="memory_budget"):
        model = make(case, **given).fit(X, Y)
    assert model.ridge_mse_ <= ridge.held_out_mse_ * (1 + 1e-9)


# ---------------------------------------------------------------- 12, 13: moments


@pytest.mark.parametrize("case", params(lambda row: row.batches))
def test_a_model_of_added_batches_of_a_scalar_output_is_saved(case, tmp_path):
    X, Y = linear_problem(20, 5, ())
    model = make(case, rank=1).partial_fit(X, Y).partial_fit(X, Y)
    model.save(tmp_path / "model.holrr")
    again = load(tmp_path / "model.holrr").partial_fit(X, Y)
    case.near(again.predict(X), model.partial_fit(X, Y).predict(X))


def rows_missing(outputs=(3,)):
    X, Y = linear_problem(20, 5, outputs)
    Y[:3] = np.nan
    return X, Y


@pytest.mark.parametrize("case", params(lambda row: row.takes_moments and row.takes_missing))
@pytest.mark.parametrize("outputs", [(), (3,), (3, 2)])
def test_moments_with_missing_rows_are_those_of_the_other_rows(case, outputs, tmp_path):
    X, Y = rows_missing(outputs)
    found = Moments.from_arrays(X, Y, missing="ignore")
    expected = Moments.from_arrays(X[3:], Y[3:])
    found.save(tmp_path / "moments.npz")
    for m in (found, Moments.load(tmp_path / "moments.npz")):
        total = m + expected
        total.save(tmp_path / "total.npz")
        total = Moments.load(tmp_path / "total.npz")
        assert total.n_samples == 34
        assert_allclose(total.Sxy, 2 * expected.Sxy, atol=1e-12)
        model = make(case, rank=1).fit_moments(total)
        twice = make(case, rank=1).fit(np.r_[X[3:], X[3:]], np.r_[Y[3:], Y[3:]])
        case.near(model.predict(X), twice.predict(X), factor=100)


@pytest.mark.parametrize("outputs", [(3,), ()])
@pytest.mark.parametrize("case", params(lambda row: row.batches and row.takes_missing))
def test_batches_with_missing_rows_fit_the_other_rows(case, outputs, tmp_path):
    X, Y = rows_missing(outputs)
    model = make(case, missing="ignore", rank=1).partial_fit(X, Y)
    expected = make(case, missing="ignore", rank=1).partial_fit(X[3:], Y[3:])
    case.near(model.predict(X), expected.predict(X))
    model.save(tmp_path / "model.holrr")
    case.near(load(tmp_path / "model.holrr").predict(X), expected.predict(X))


# ---------------------------------------------------------------- 14: blocks without effect


@rows_with("blocks", "cv")
def test_a_constant_block_beside_one_without_effect_is_left_out(case):
    for seed in range(4):
        for outputs in ((), (2,)):
            X, Y = draw(20, 4, seed=seed), draw(20, *outputs, seed=seed + 100)
            X[:, 0] = 2.5
            model = make(case, blocks={"a": [0], "b": [1, 2, 3]}, cv=3, alphas=None).fit(X, Y)
            assert np.isfinite(model.predict(X)).all()
            assert not np.asarray(model.coef_)[0].any()


# ---------------------------------------------------------------- 15: constant outputs


@pytest.mark.parametrize("case", params(lambda row: row.has_intervals))
@pytest.mark.parametrize("outputs", [(), (2,)])
def test_constant_outputs_have_no_outliers(case, outputs):
    X, Y = draw(20, 4), np.ones((20, *outputs))
    model = make(case, cv=3).fit(X, Y)
    assert not find_outliers(model).outside.any()


@pytest.mark.parametrize("case", params(lambda row: row.has_noise))
@pytest.mark.parametrize("outputs", [(), (2,)])
def test_constant_outputs_of_other_folds_have_no_outliers(case, outputs):
    X, Y = draw(20, 4), np.ones((20, *outputs))
    model = make(case, cv=3, fit_intercept=True, rank=1).fit(X, Y)
    assert not find_outliers(model, X, Y, cv=KFold(3)).outside.any()


@pytest.mark.parametrize("case", params(lambda row: row.has_intervals))
def test_a_report_of_constant_outputs_is_written(case):
    X, Y = draw(20, 4), np.ones(20)
    model = make(case, cv=3, fit_intercept=True).fit(X, Y)
    assert "</html>" in make_report(model, X, Y).html


# ---------------------------------------------------------------- 16: standard errors


@rows_with("alpha_per_output")
def test_standard_errors_with_a_penalty_for_each_output_are_those_of_its_model(case):
    X, Y = linear_problem(40, 5)
    model = make(case, alpha_per_output=True, cv=3).fit(X, Y)
    assert np.unique(model.alpha_).size > 1
    found = standard_errors(model, X, Y)
    expected = standard_errors(RLS(alpha=model.alpha_).fit(X, Y), X, Y)
    assert found.coef.value.shape == expected.coef.value.shape
    assert np.isfinite(found.coef.std_error).all()


@rows_with("blocks", "cv")
def test_standard_errors_of_blocks_with_dropped_inputs_are_those_without_them(case):
    X, Y = linear_problem(40, 5)
    left = [0, 1, 2, 4]
    given = {"cv": KFold(3)}
    expected = make(case, blocks=[0, 0, 1, 1], **given).fit(X[:, left], Y)
    expected = standard_errors(expected, X[:, left], Y, n_groups=5).coef.std_error
    X[:, 3] = np.nan
    model = make(case, blocks=[0, 0, 1, 1, 1], input_shape=(5,), **given).fit(X, Y)
    case.near(standard_errors(model, X, Y, n_groups=5).coef.std_error, expected, factor=100)


# ---------------------------------------------------------------- 17: what a model keeps


def most_bytes(case, model, X, Y):
    """Three times what predicts, and its intervals; kernel models keep the samples."""
    T = model.tucker_ if case.linear else model.best_estimator_.tucker_
    kept = [T.core, *(U for U in T.factors if U is not None), model.intercept_]
    quantiles = 40 * Y[0].size * 4  # of the calibration of each output, in single precision
    data = 0 if case.linear else X.nbytes
    return 3 * (data + quantiles + sum(np.asarray(A).nbytes for A in kept)) + 20_000


@rows_with("max_rank", and_also=lambda row: row.has_intervals)
def test_a_file_of_a_search_has_at_most_three_times_what_predicts(case, tmp_path):
    X, Y = linear_problem(80, 12, (10, 12))
    model = make(case, cv=5).fit(X, Y)
    model.save(tmp_path / "model.holrr")
    assert (tmp_path / "model.holrr").stat().st_size <= most_bytes(case, model, X, Y)


@rows_with(
    "max_rank",
    and_also=lambda row: row.has_intervals,
    broken=lambda row: "HOLRR" in row.id,
    reason="a search keeps the errors of all ranks of all folds in memory",
)
def test_a_search_keeps_at_most_three_times_what_predicts(case):
    X, Y = linear_problem(80, 12, (10, 12))
    model = make(case, cv=5).fit(X, Y)
    assert len(pickle.dumps(model)) <= most_bytes(case, model, X, Y)


# ---------------------------------------------------------------- 18: messages about time


def series():
    time = pd.date_range("2000", periods=20)
    X, Y = linear_problem(20, 4)
    return [
        xr.DataArray(A, dims=("time", dim), coords={"time": time})
        for A, dim in ((X, "x"), (Y, "y"))
    ]


@pytest.mark.parametrize("case", params(lambda row: row.representative))
def test_the_message_for_lagged_rows_keeps_the_lag(case):
    X, Y = series()
    with pytest.raises(ValueError, match=re.escape("Delayer([2])")) as error:
        case.make().fit(X[:-2], Y[2:])
    advice = str(error.value)
    assert "every row of y is 2 later" in advice.lower()
    assert 0 < advice.index("assign_coords(time=y['time'])") < advice.index("xarray.align")
    model = case.make().fit(X[:-2].assign_coords(time=Y["time"][2:]), Y[2:])
    assert np.isfinite(model.predict(X[:3]).to_numpy()).all()


@pytest.mark.parametrize("case", params(lambda row: row.representative))
def test_the_message_for_a_shifted_sample_names_it(case):
    X, Y = series()
    with pytest.raises(ValueError, match="sample 0") as error:
        case.make().fit(X.shift(time=2), Y)
    assert "Drop" in str(error.value) or "Leave out" in str(error.value)


# ---------------------------------------------------------------- 19: what users see


@pytest.mark.parametrize("case", params(lambda row: row.representative))
def test_a_pandas_series_names_the_way_to_predict_one_row(case):
    X, Y = linear_problem(20, 5)
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = case.make().fit(frame, Y)
    with pytest.raises(ValueError, match=re.escape("iloc[[0]]")):
        model.predict(frame.iloc[0])


@rows_with("output_weight", and_also=lambda row: row.representative)
def test_the_text_of_an_estimator_abbreviates_arrays(case):
    weights = xr.DataArray(np.ones((30, 40)), dims=("lat", "lon"), coords={"lat": range(30)})
    text = repr(case.make(output_weight=weights))
    assert "(lat: 30, lon: 40)" in text
    assert "array(" not in text
    assert len(text.splitlines()) <= 3


@pytest.mark.parametrize("case", params(lambda row: row.representative))
def test_messages_show_short_names_of_numeric_labels(case):
    X, Y = linear_problem(20, 3)
    X = xr.DataArray(X, dims=("time", "x"), coords={"x": np.arange(1, 4) / 3})
    model = case.make().fit(X, Y)
    with pytest.raises(ValueError, match="x") as error:
        model.predict(X.assign_coords(x=X.x + 0.1))
    assert not re.search(r"\d\.\d{8}", str(error.value))


@rows_with("rank", and_also=lambda row: row.has_noise)
def test_one_rank_for_all_modes_is_an_upper_bound(case):
    X, Y = linear_problem(20, 6, noise=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = case.make(rank=50).fit(X, Y)
    case.near(found.predict(X), case.make(rank=20).fit(X, Y).predict(X))


@rows_with("rank", and_also=lambda row: "HOLRR" in row.id)
def test_a_rank_of_a_mode_above_its_size_is_an_error(case):
    X, Y = linear_problem(20, 6)
    with pytest.raises(ValueError, match=r"rank\[1\].*size 3; got 50"):
        case.make(rank=(2, 50)).fit(X, Y)


@rows_with("input_rank", "alpha")
def test_input_rank_follows_the_rule_of_rank(case):
    X, Y = draw(20, 2, 3), draw(20, 3, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = case.make(input_rank=50).fit(X, Y)
    case.near(found.coef_, case.make(input_rank=(2, 3)).fit(X, Y).coef_)
    with pytest.raises(ValueError, match=r"input_rank is 50 for mode .* size 2"):
        case.make(input_rank=(50, 1)).fit(X, Y)


# ---------------------------------------------------------------- 23: outliers, weights in blocks


@pytest.mark.parametrize("n", [30, 61])
@pytest.mark.parametrize(
    "case", params(lambda row: row.has_intervals and row.linear and not row.robust)
)
def test_outliers_of_a_search_are_those_of_its_model(case, n):
    X, Y = linear_problem(n, 5, (3, 2))
    model = make(case, cv=KFold(3), selection="min").fit(X, Y)
    found = find_outliers(model)
    expected = find_outliers(model.best_estimator_, X, Y, cv=KFold(3))
    assert_allclose(found.residuals, expected.residuals, rtol=1e-6)
    assert_allclose(found.limits, expected.limits, rtol=1e-6)


@pytest.mark.parametrize(("n", "most"), [(30, 0.06), (200, 0.005)])
@pytest.mark.parametrize("case", params(lambda row: row.takes_fold_moments))
def test_deviations_of_dask_arrays_are_close_to_those_of_memory(case, n, most):
    """They come from held-out sums of squares, which differ from a sum of scaled squares."""
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    X, Y = linear_problem(n, 8, (3, 2))
    lazy = [da.from_array(A, chunks=(n // 3 + 1, *A.shape[1:])) for A in (X, Y)]
    found, expected = (make(case, cv=KFold(5)).fit(*data) for data in (lazy, (X, Y)))
    assert_allclose(found.noise_, expected.noise_, rtol=most)


@rows_with("blocks", "cv", and_also=lambda row: row.searches and not row.robust)
def test_integer_weights_equal_repeated_rows_in_a_search_over_blocks(case):
    for seed in (3, 13):
        rng = np.random.default_rng(seed)
        X, Y, times = rng.normal(size=(5, 8)), rng.normal(size=(5, 2)), rng.integers(1, 4, 5)
        again, labels = np.repeat(np.arange(5), times), np.arange(5) % 2
        given = {"blocks": np.repeat(["a", "b"], 4).tolist(), "selection": "min"}
        found = make(case, cv=PredefinedSplit(labels), **given).fit(X, Y, times)
        expected = make(case, cv=PredefinedSplit(labels[again]), **given).fit(X[again], Y[again])
        assert_allclose(found.held_out_mse_, expected.held_out_mse_, rtol=1e-6)


def test_the_noise_of_kernel_ridge_regression_ignores_a_constant_output():
    X, Y = draw(15, 3), draw(15, 2, seed=1)
    expected = KernelRLSCV(alphas=[1.0], cv=3).fit(X, Y).noise_
    for c in (2.5, 0.1, 1e-160):
        found = KernelRLSCV(alphas=[1.0], cv=3).fit(X, np.c_[np.full(15, c), Y]).noise_
        assert_allclose(found[1:], expected)


# ---------------------------------------------------------------- 24: pairs of features


@pytest.mark.parametrize("case", params(lambda row: row.has_intervals))
def test_fill_values_in_samples_of_weight_zero_do_not_change_intervals(case):
    X, Y = linear_problem(24, 5)
    w = np.r_[np.ones(20), np.zeros(4)]
    filled = np.where(w[:, None] > 0, Y, 1e20)
    for kind in ("entry", "pooled", "simultaneous"):
        expected, found = (
            case.make(cv=3).fit(X, A, w).predict_interval(X[:3], kind=kind) for A in (Y, filled)
        )
        assert_allclose(found, expected, rtol=1e-6)


def test_missing_outputs_without_penalty_are_rows_left_out():
    for seed in range(12):
        X, Y = draw(8, 12, seed=seed), draw(8, 2, seed=100 + seed)
        Y[0, 0] = np.nan
        found = RLS(alpha=0, fit_intercept=False, missing="ignore").fit(X, Y)
        expected = RLS(alpha=0, fit_intercept=False).fit(X[1:], Y[1:, 0])
        assert_allclose(found.coef_[:, 0], expected.coef_, atol=1e-6)


def test_an_output_of_zeros_does_not_change_pooled_intervals():
    for seed in range(8):
        X, Y = draw(18, 5, seed=seed), draw(18, 3, 2, seed=100 + seed)
        ends = []
        for constant in (0.0, 1.0):
            Y[:, 1, 1] = constant
            model = KernelLRRCV(alphas=[0.1, 1.0, 10.0], gammas=[0.1], cv=3).fit(X, Y)
            ends.append(np.array(model.predict_interval(X, kind="pooled")))
            ends[-1][:, :, 1, 1] = 0
        assert_allclose(*ends, rtol=1e-6)


@defect("the directions of input modes are not refined with missing='ignore'")
def test_slices_that_are_never_observed_are_left_out_of_a_refined_fit():
    X, Y = draw(16, 3, 3), draw(16, 3, seed=1)
    model = HOLRR(rank=2, alpha=0.5, refine=True, input_rank=(1, 2))
    expected = model.fit(X, Y[:, [0, 2]]).objective_
    Y[:, 1] = np.nan
    assert_allclose(model.set_params(missing="ignore").fit(X, Y).objective_, expected)


@rows_with(
    "cv",
    and_also=lambda row: row.takes_fold_moments,
)
def test_intervals_of_moments_do_not_count_samples_of_weight_zero(case):
    X, Y = linear_problem(30, 3)
    w = (np.arange(30) % 3 > 0).astype(float)
    ends = []
    for kept in (np.ones(30, dtype=bool), w > 0):
        folds = [kept & (np.arange(30) % 5 == k) for k in range(5)]
        moments = [
            Moments.from_arrays(
                X[rows], Y[rows], w[rows], response_grams=case.params.get("subspaces") == "response"
            )
            for rows in folds
        ]
        ends.append(case.make().fit_fold_moments(moments).predict_interval(X))
    assert_allclose(*ends, rtol=1e-9)


def test_the_rank_of_a_stack_counts_no_rounding_errors():
    for seed, shape in [(2, (2, 3)), (4, (3, 3)), (24, (2, 3, 2))]:
        rng = np.random.default_rng(seed)
        X, Y = rng.normal(size=(12, 5)), rng.normal(size=(12, *shape))
        model = KernelHOLRRCV(alphas=[0.1, 1.0, 10.0], gammas=[0.1, 1.0], cv=3).fit(X, Y)
        norms = np.linalg.norm(model.core_.reshape(model.rank_[0], -1), axis=1)
        assert norms.min() > 1e-10 * norms.max()


@rows_with("own", "alpha_per_output")
def test_held_out_errors_with_own_inputs_and_penalties_of_outputs_are_those_of_the_model(case):
    X, Y, own = own_problem()
    given = {"own": own, "alpha_per_output": True, "alphas": [1.0], "cv": KFold(3)}
    model = make(case, **given).fit(X, Y)
    errors = [
        np.mean((model.best_estimator_.fit(X[a], Y[a]).predict(X[b]) - Y[b]) ** 2)
        for a, b in KFold(3).split(X)
    ]
    assert_allclose(model.held_out_mse_, np.mean(errors), rtol=1e-9)


@pytest.mark.parametrize("case", params(lambda row: row.has_intervals and not row.robust))
def test_a_constant_output_does_not_make_samples_neighbours(case):
    X, Y = draw(60, 59), draw(60, 2, seed=1)
    w = np.random.default_rng(2).uniform(0.2, 3.0, 60)
    model = case.make(cv=KFold(3), selection="min") if "max_rank" in case.params else case.make()
    for c in (0.1, 2.5, 7.3):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X, np.c_[np.full((60, 3), c), Y], w)
        assert not [one for one in caught if "neighbouring samples" in str(one.message)]


@pytest.mark.parametrize("case", params(takes_huber))
def test_robust_weights_of_constant_inputs_do_not_depend_on_the_order_of_the_samples(case):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, Y, order = np.full((15, 1), 0.1), rng.normal(size=(15, 3)), rng.permutation(15)
        w, labels = rng.uniform(0.2, 3.0, size=15), np.arange(15) % 3
        huber = case.make(loss="huber")
        expected = huber.set_params(**case.pinned(X, labels)).fit(X, Y, w).robust_weight_
        huber.set_params(**case.pinned(X, labels[order]))
        found = huber.fit(X[order], Y[order], w[order])
        assert_allclose(found.robust_weight_, expected[order], atol=1e-6)


@pytest.mark.parametrize("case", params(takes_huber))
def test_robust_weights_beside_a_sample_with_most_of_the_weight_do_not_depend_on_the_order(case):
    for seed in range(8):
        X, Y, order = draw(6, 2, seed=seed), draw(6, 3, seed=100 + seed), draw(6).argsort()
        w, labels = np.r_[7.0, np.ones(5)], np.arange(6) % 2
        huber = case.make(loss="huber")
        expected = huber.set_params(**case.pinned(X, labels)).fit(X, Y, w).robust_weight_
        huber.set_params(**case.pinned(X, labels[order]))
        found = huber.fit(X[order], Y[order], w[order]).robust_weight_
        assert_allclose(found, expected[order], atol=1e-6)


@rows_with(
    "own",
    and_also=lambda row: row.has_noise and row.takes_missing and not row.searches,
)
@pytest.mark.parametrize("has_own", [True, False])
def test_an_output_never_observed_does_not_count_in_deviations_with_own_inputs(case, has_own):
    X, Y = linear_problem(20, 5, (3,))
    own = np.eye(5, 3, dtype=bool)
    own[1, 1] = has_own
    expected = case.make(own=own[:, [0, 2]]).fit(X, Y[:, [0, 2]]).predict(X, return_std=True)[1]
    Y[:, 1] = np.nan
    found = case.make(own=own, missing="ignore").fit(X, Y).predict(X, return_std=True)[1]
    case.near(found[:, [0, 2]], expected, factor=100)


@defect("landmarks with named blocks cannot be saved")
def test_landmarks_in_a_dataset_are_saved(tmp_path):
    X = xr.Dataset({"a": ("time", draw(8)), "b": (("time", "k"), draw(8, 2))})
    model = KernelRLS(landmarks=X.isel(time=slice(3))).fit(X, draw(8, 2))
    save(model, tmp_path / "model")
    assert_allclose(load(tmp_path / "model").predict(X), model.predict(X))


@defect("the levels of columns are lost in copies and files")
def test_landmarks_in_a_table_are_those_of_a_copy():
    columns = pd.MultiIndex.from_product([["a", "b"], [0, 1]])
    X, Y = pd.DataFrame(draw(8, 4), columns=columns), draw(8, 2)
    model = KernelRLS(landmarks=X[:3]).fit(X, Y)
    again = pickle.loads(pickle.dumps(model)).fit(X, Y)
    assert_allclose(again.predict(X), model.predict(X))


def test_an_output_of_weight_zero_does_not_change_a_stack():
    for seed in range(8):
        X, Y = linear_problem(15, 4, (3,), seed=seed)
        model = HOLRRCV(
            alphas=[0.1, 1.0, 10.0], cv=3, max_rank=1
        )  # below full rank without it, too
        expected = model.set_params(output_weight=[[0.5, 1.0]]).fit(X, Y[:, :2]).predict(X)
        found = model.set_params(output_weight=[[0.5, 1.0, 0.0]]).fit(X, Y).predict(X)
        assert_allclose(found[:, :2], expected)
        model = HOLRRCV(alphas=[0.1, 1.0, 10.0], cv=3)
        expected = model.set_params(output_weight=[[0.5, 1.0]]).fit(X, Y[:, :2]).predict(X)
        found = model.set_params(output_weight=[[0.5, 1.0, 0.0]]).fit(X, Y).predict(X)
        assert_allclose(found[:, :2], expected, rtol=1e-6, atol=1e-7)


@rows_with(
    "blocks",
    and_also=lambda row: (
        row.has_intercept and not row.searches and row.params.get("subspaces") != "response"
    ),
)
def test_a_constant_input_without_penalty_has_no_effect(case):
    for seed in range(8):
        X, Y = draw(12, 3, seed=seed), draw(12, 2, seed=100 + seed)
        X[:, 1] = 0.1
        model = case.make(blocks=["a", "b", "a"], alpha={"a": 0.7, "b": 0.0}).fit(X, Y)
        assert_allclose(model.coef_[1], 0, atol=1e-9)
