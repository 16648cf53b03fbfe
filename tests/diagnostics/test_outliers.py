"""Outliers among training rows: shares above the limits, wrong rows found and named, refusals."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import GroupKFold, KFold, RepeatedKFold, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from holrr import (
    HOLRR,
    HOLRRCV,
    LRRCV,
    RLS,
    RLSCV,
    KernelRLS,
    KernelRLSCV,
    Moments,
    TraceNormRegression,
    load,
    save,
)
from holrr.diagnostics import find_outliers
from holrr.streaming import memory_budget
from problems import on_disk, toy

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty")


def data(n=90, seed=0, noise=None, d=6, shape=(4, 3)):
    rng = np.random.default_rng(seed)
    X, W = rng.normal(size=(n, d)), np.random.default_rng(5).normal(size=(d, *shape))
    E = rng.normal(size=(n, *shape)) if noise is None else noise(rng, (n, *shape))
    return X, np.tensordot(X, W, 1) + E


def wrong_row(**options):
    """One row of y multiplied by five."""
    X, Y = data(**options)
    Y[17] *= 5
    return X, Y


def mean_share(make, level, n=200, n_seeds=15, **options):
    found = [
        find_outliers(make().fit(*data(n, seed, **options)), level=level).outside.mean()
        for seed in range(n_seeds)
    ]
    return np.mean(found)


def correlated(rng, shape):
    return rng.normal(size=(shape[0], 1, 1)) + 0.5 * rng.normal(size=shape)


@pytest.mark.parametrize("noise", [None, correlated], ids=["independent", "correlated"])
@pytest.mark.parametrize("make", [lambda: RLSCV([1.0]), lambda: LRRCV([1.0])])
def test_ordinary_rows_are_above_the_limits_as_often_as_asked_for(make, noise):
    for share in (0.05, 0.01):
        found = mean_share(make, 1 - share, noise=noise)
        assert abs(found - share) < 0.01


def test_heavy_tailed_noise_is_above_more_often():
    found = mean_share(lambda: RLSCV([1.0]), 0.99, noise=lambda rng, s: rng.standard_t(5, size=s))
    assert 0.01 < found < 0.04


SEARCHES = [
    RLSCV(),
    LRRCV([0.1, 1.0]),
    HOLRRCV([0.1, 1.0]),
    HOLRRCV([0.1, 1.0], selection="min"),
    HOLRRCV([0.1, 1.0], missing="ignore"),
    RLSCV([1.0], output_weight=[None, [1.0, 0.0, 5.0]]),
    RLSCV([0.1, 1.0], alpha_per_output=True),
    KernelRLSCV([1.0], kernel="linear"),
]


@pytest.mark.parametrize("model", SEARCHES, ids=lambda m: " ".join(repr(m)[:60].split()))
def test_a_wrong_row_is_found(model):
    found = find_outliers(model.fit(*wrong_row()), level=0.999)
    assert found.order[0] == 17
    assert found.outside[17]
    assert found.outside.sum() <= 2
    assert found.residuals[17] > 3 * found.limits[17]


@pytest.mark.parametrize(
    "model",
    [RLS(), HOLRR(rank=3), KernelRLS(kernel="linear"), TraceNormRegression(1.0), RLSCV([1.0])],
    ids=repr,
)
def test_models_without_residuals_are_fitted_to_folds(model):
    X, Y = wrong_row()
    found = find_outliers(model, X, Y, level=0.999)
    assert found.order[0] == 17
    assert found.outside[17]
    assert found.outside.sum() <= 2
    assert not hasattr(model, "tucker_")


def test_fits_to_folds_have_the_residuals_of_a_search():
    X, Y = wrong_row()
    search = find_outliers(RLSCV([2.0], cv=KFold(4)).fit(X, Y))
    single = find_outliers(RLS(alpha=2.0), X, Y, cv=KFold(4))
    assert_allclose(single.residuals, search.residuals, rtol=1e-9)
    assert_allclose(single.limits, search.limits, rtol=1e-9)


def test_eight_wrong_rows_of_ninety_are_all_found():
    X, Y = data()
    Y[::12] += 8 * np.random.default_rng(1).normal(size=Y[::12].shape)
    found = find_outliers(RLSCV([1.0]).fit(X, Y))
    assert set(np.flatnonzero(found.outside)) >= set(range(0, 90, 12))


def test_missing_outputs_do_not_count():
    X, Y = wrong_row()
    Y[np.random.default_rng(0).uniform(size=Y.shape) < 0.3] = np.nan
    Y[5] = np.nan
    found = find_outliers(HOLRRCV([1.0], missing="ignore").fit(X, Y), level=0.999)
    assert found.order[0] == 17
    assert np.isnan(found.residuals[5])
    assert not found.outside[5]
    assert found.order[-1] == 5
    assert repr(found).startswith("Outliers: 1 of 89 rows above the 99.9 % limit: 17")
    again = find_outliers(HOLRR(rank=3, missing="ignore"), X, Y, level=0.999)
    assert again.order[0] == 17
    assert np.isnan(again.residuals[5])


def test_rows_that_are_not_held_out_or_have_no_weight_have_no_residual():
    X, Y = data()
    found = find_outliers(RLSCV([1.0], cv=TimeSeriesSplit(4)).fit(X, Y))
    first = len(X) - 4 * (len(X) // 5)
    assert np.isnan(found.residuals[:first]).all()
    assert not np.isnan(found.residuals[first:]).any()
    w = np.where(np.arange(90) < 10, 0.0, 1.0)
    for rows in (
        find_outliers(RLSCV([1.0]).fit(X, Y, w)),
        find_outliers(RLS(), X, Y, sample_weight=w),
    ):
        assert np.isnan(rows.residuals[:10]).all()
        assert not np.isnan(rows.residuals[10:]).any()


def test_samples_without_weight_are_as_if_removed():
    X, Y = wrong_row()
    Y[70:] *= 100
    w = np.where(np.arange(90) < 70, 1.0, 0.0)
    cv = [(np.flatnonzero(np.arange(70) % 3 != k), np.arange(k, 70, 3)) for k in range(3)]
    whole = find_outliers(RLSCV([1.0], cv=cv).fit(X, Y, w))
    part = find_outliers(RLSCV([1.0], cv=cv).fit(X[:70], Y[:70]))
    assert_allclose(whole.residuals[:70], part.residuals, rtol=1e-9)


def test_rows_that_are_held_out_several_times_have_one_residual():
    X, Y = wrong_row()
    found = find_outliers(RLSCV([1.0], cv=RepeatedKFold(n_splits=3, n_repeats=4)).fit(X, Y))
    assert found.residuals.shape == (90,)
    assert found.order[0] == 17


def test_groups_are_held_out_together():
    X, Y = data()
    groups = np.arange(90) // 9
    cv = GroupKFold(5)
    search = find_outliers(RLSCV([1.0], cv=cv).fit(X, Y, groups=groups))
    single = find_outliers(RLS(), X, Y, cv=cv, groups=groups)
    assert_allclose(single.residuals, search.residuals, rtol=0.1)
    nested = find_outliers(RLSCV([1.0], cv=GroupKFold(3)), X, Y, cv=cv, groups=groups)
    assert_allclose(nested.residuals, search.residuals, rtol=0.1)


def test_units_of_the_outputs_do_not_matter():
    X, Y = wrong_row()
    unit = 1e130 * np.ones((4, 3))
    here, there = (find_outliers(RLSCV([1.0]).fit(X, A)) for A in (Y, Y * unit))
    assert_allclose(here.residuals, there.residuals, rtol=1e-6)


# ---------------------------------------------------------------- labels and files


def test_outliers_are_named_by_their_labels():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    X, Y = wrong_row()
    expected = find_outliers(RLSCV([1.0]).fit(X, Y), level=0.999)
    assert expected.labels is None
    names = [f"animal {k}" for k in range(90)]
    days = pd.date_range("2024-01-01", periods=90)
    levels = pd.MultiIndex.from_product([range(30), list("abc")], names=["animal", "replicate"])
    labelled = {
        "animal 17": (pd.DataFrame(X, names), Y),
        "(5, 'c')": (pd.DataFrame(X, levels), Y),
        "2024-01-18T00:00:00.000000000": (X, xr.DataArray(Y, {"day": days}, ("day", "a", "b"))),
    }
    for name, pair in labelled.items():
        for found in (
            find_outliers(RLSCV([1.0]).fit(*pair), level=0.999),
            find_outliers(RLS(), *pair, level=0.999),
        ):
            assert found.outside[17]
            assert repr(found).partition(": ")[2].partition(": ")[2].startswith(name[:10])
            assert str(found.labels[17])[:10] == name[:10]
    assert_allclose(found.residuals, expected.residuals, rtol=0.1)
    frame = find_outliers(RLSCV([1.0]).fit(pd.DataFrame(X, levels), Y), level=0.999).to_frame()
    assert frame.loc[(5, "c"), "outside"]


def test_the_sample_dimension_need_not_be_the_first():
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    X, Y = data()
    days = np.arange(90)
    X = xr.DataArray(X.reshape(90, 2, 3), {"day": days}, ("day", "lat", "lon"))
    Y = xr.DataArray(Y, {"day": days}, ("day", "a", "b"))
    expected = find_outliers(RLS(), X, Y)
    found = find_outliers(RLS(), X.transpose("lat", "day", "lon"), Y.transpose("a", "b", "day"))
    assert_allclose(found.residuals, expected.residuals)
    assert list(found.labels) == days.tolist()


@pytest.mark.parametrize(
    "model", [RLSCV([1.0]), HOLRRCV([1.0], cv=3), KernelRLSCV([1.0], gammas=[0.1])]
)
def test_saved_searches_find_the_same_outliers(model, tmp_path):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, Y = wrong_row()

    class Label:  # which a file cannot hold
        def __repr__(self):
            return "mine"

    indexes = [
        pd.Index([f"row {k}" for k in range(90)]),
        pd.date_range("2024-01-01", periods=90, tz="Europe/Berlin"),
        pd.period_range("2024-01", periods=90, freq="M"),
        pd.MultiIndex.from_product([range(30), pd.date_range("2024", periods=3)]),
        pd.Index([Label() for _ in range(90)], dtype=object),
    ]
    for index in indexes:
        fitted = model.fit(pd.DataFrame(X, index), Y)
        expected = find_outliers(fitted)
        save(fitted, tmp_path / "model.holrr")
        for other in (load(tmp_path / "model.holrr"), pickle.loads(pickle.dumps(fitted))):
            found = find_outliers(other)
            assert (found.residuals == expected.residuals).all()
            assert list(found.labels) == list(expected.labels)
    assert found.labels[0] == "mine"


def test_data_of_every_kind_are_split_into_folds():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    X, Y = wrong_row()
    expected = find_outliers(RLS(), X, Y)
    table = pd.DataFrame(X, columns=list("abcdef"))
    cube = xr.DataArray(X.reshape(90, 2, 3), dims=("time", "lat", "lon"))
    of_y = xr.Dataset({f"v{k}": (("time", "b"), Y[:, k]) for k in range(4)})
    pairs = [
        (table, Y),
        (cube, Y),
        (cube, of_y),
        ({"one": X[:, :2], "two": X[:, 2:]}, Y),
        (X.tolist(), Y),
    ]
    for pair in pairs:
        assert_allclose(find_outliers(RLS(), *pair).residuals, expected.residuals, rtol=1e-6)
    flat = find_outliers(RLS(output_shape=(4, 3)), X, Y.reshape(90, -1))
    assert_allclose(flat.residuals, expected.residuals, rtol=1e-6)
    by_block = find_outliers(RLS(alpha={"one": 1.0, "two": 1.0}), *pairs[3])
    assert_allclose(by_block.residuals, expected.residuals, rtol=1e-6)


# ---------------------------------------------------------------- refusals


def test_errors_name_the_lack_of_held_out_residuals(tmp_path):
    X, Y = toy(n=60)
    halves = [Moments.from_arrays(X[k::2], Y[k::2]) for k in range(2)]
    models = [
        RLS().fit(X, Y),
        RLSCV([1.0]).fit_fold_moments(halves),
    ]
    kept = on_disk(tmp_path, "X", X), on_disk(tmp_path, "Y", Y)
    with memory_budget(4096):
        models.append(RLSCV([1.0]).fit(*kept))
        with pytest.raises(ValueError, match="needs dense samples in memory"):
            find_outliers(RLS(), *kept)
    for model in models:
        with pytest.raises(
            ValueError, match=r"no held-out residuals.*find_outliers\(model, X, y\)"
        ):
            find_outliers(model)
    with pytest.raises(TypeError, match="both X and y"):
        find_outliers(models[0], X)
    with pytest.raises(ValueError, match="level must be above 0 and below 1"):
        find_outliers(RLSCV([1.0]).fit(X, Y), level=99)


def test_the_last_step_of_a_pipeline_has_the_residuals():
    X, Y = wrong_row()
    pipe = make_pipeline(StandardScaler(), RLSCV([1.0])).fit(X, Y)
    assert find_outliers(pipe).order[0] == 17
    with pytest.raises(TypeError, match="does not fit pipelines to folds"):
        find_outliers(make_pipeline(StandardScaler(), RLS()), X, Y)
    single = find_outliers(RLS(), pipe[:-1].transform(X), Y)
    assert single.order[0] == 17


def test_residuals_are_replaced_with_the_other_attributes():
    X, Y = toy(n=60)
    model = RLSCV([1.0]).fit(X, Y)
    model.fit_fold_moments([Moments.from_arrays(X[k::2], Y[k::2]) for k in range(2)])
    with pytest.raises(ValueError, match="has no held-out residuals"):
        find_outliers(model)
