"""R2, RMSE and skill: scikit-learn's own numbers, for outputs of every kind."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.metrics import make_scorer, mean_squared_error, r2_score
from sklearn.model_selection import GridSearchCV, cross_validate

from holrr import HOLRR, RLS
from holrr.metrics import interval_coverage, r2, rmse, scorers, skill
from problems import on_disk, toy, with_missing

AVERAGES = {"pooled": "variance_weighted", "uniform": "uniform_average", None: "raw_values"}
SHAPES = [(), (1,), (5,), (3, 4), (2, 3, 2)]


def flat(A):
    return A.reshape(len(A), -1)


def forecast(shape=(3, 4), n=60, seed=0):
    rng = np.random.default_rng(seed)
    Y = rng.normal(size=(n, *shape)) * rng.uniform(0.1, 10, size=shape) + 5
    return Y, Y + rng.normal(size=Y.shape), rng.uniform(size=n) * (np.arange(n) % 5 > 0)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("average", AVERAGES, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_r2_is_that_of_scikit_learn(shape, average, weighted):
    Y, P, w = forecast(shape)
    w = w if weighted else None
    how = {"sample_weight": w, "multioutput": AVERAGES[average]}
    found = r2(Y, P, sample_weight=w, average=average)
    assert np.shape(found) == (shape if average is None else ())
    assert_allclose(np.ravel(found), np.ravel(r2_score(flat(Y), flat(P), **how)), rtol=1e-12)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_rmse_is_that_of_scikit_learn(shape, weighted):
    Y, P, w = forecast(shape)
    w = w if weighted else None
    how = {"sample_weight": w, "multioutput": "raw_values"}
    each = np.sqrt(mean_squared_error(flat(Y), flat(P), **how))
    assert_allclose(np.ravel(rmse(Y, P, sample_weight=w, average=None)), each, rtol=1e-12)
    assert rmse(Y, P, sample_weight=w, average="uniform") == pytest.approx(each.mean())
    assert rmse(Y, P, sample_weight=w) == pytest.approx(np.sqrt(np.mean(each**2)))


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 3, 2)], ids=str)
def test_weights_of_outputs_are_repetitions_of_outputs(shape, missing):
    Y, P, w = forecast(shape)
    Y = with_missing(Y, 0.2) if missing else Y
    v = np.random.default_rng(2).integers(0, 4, size=shape)
    copies = np.repeat(np.arange(v.size), v.ravel())
    many = flat(Y)[:, copies], flat(P)[:, copies]
    reference = np.zeros_like(Y)
    for average in ("pooled", "uniform"):
        how = {"sample_weight": w, "average": average}
        for metric in (r2, rmse):
            expected = metric(*many, **how)
            assert metric(Y, P, output_weight=v, **how) == pytest.approx(expected, rel=1e-12)
            assert metric(Y, P, output_weight=1e300 * v, **how) == pytest.approx(expected)
            assert metric(Y, P, **how) != pytest.approx(expected, rel=1e-4)
        found = skill(Y, P, reference, output_weight=v, **how)
        expected = skill(*many, np.zeros_like(many[0]), **how)
        assert found == pytest.approx(expected, rel=1e-12)
    each = r2(Y, P, output_weight=v, average=None)
    assert_allclose(each, r2(Y, P, average=None), rtol=1e-12)


def test_weights_of_outputs_by_mode_and_by_name():
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    Y, P, _ = forecast((3, 4))
    v, u = np.array([1.0, 2.0, 5.0]), np.array([3.0, 1.0, 0.0, 2.0])
    expected = rmse(Y, P, output_weight=np.outer(v, u))
    assert rmse(Y, P, output_weight=[v, u]) == pytest.approx(expected)
    named = xr.DataArray(Y, dims=("time", "lat", "lon"))
    weights = xr.DataArray(np.outer(u, v), dims=("lon", "lat"))
    assert rmse(named, P, output_weight=weights) == pytest.approx(expected)
    assert rmse(Y, P, output_weight=[v, None]) == pytest.approx(
        rmse(Y, P, output_weight=np.outer(v, np.ones(4)))
    )
    with pytest.raises(ValueError, match=r"output_weight.*\(3, 4\).*got \(4, 3\)"):
        rmse(Y, P, output_weight=np.outer(u, v))
    with pytest.raises(ValueError, match="output_weight must be finite and at least 0"):
        rmse(Y, P, output_weight=-np.outer(v, u))
    with pytest.raises(ValueError, match="output_weight is zero everywhere"):
        rmse(Y, P, output_weight=np.zeros((3, 4)))


@pytest.mark.parametrize("average", AVERAGES, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_skill_compares_with_another_forecast(average, weighted):
    Y, P, w = forecast()
    w = w if weighted else None
    other = Y + 2 * np.random.default_rng(1).normal(size=Y.shape)
    v = np.ones(len(Y)) if w is None else w
    error, reference = (np.tensordot(v, np.square(Y - F), 1) for F in (P, other))
    expected = {
        "pooled": 1 - error.sum() / reference.sum(),
        "uniform": np.mean(1 - error / reference),
        None: 1 - error / reference,
    }[average]
    options = {"sample_weight": w, "average": average}
    assert_allclose(skill(Y, P, other, **options), expected, rtol=1e-12)
    assert_allclose(skill(Y, P, **options), r2(Y, P, **options))
    mean = np.average(Y, axis=0, weights=w)
    assert_allclose(skill(Y, P, mean, **options), r2(Y, P, **options), rtol=1e-9)
    assert skill(Y[:1], P[:1], other[:1]) > 0  # one sample is enough


def test_skill_against_a_perfect_reference_is_one_or_zero():
    Y, P, _ = forecast((2,))
    assert skill(Y, Y, Y) == 1.0
    assert skill(Y, P, Y) == 0.0


@pytest.mark.parametrize("average", AVERAGES, ids=str)
def test_missing_entries_are_passed_over_in_all_forecasts(average):
    """Whichever misses them, and those of outputs that none has but once."""
    Y, P, w = forecast()
    other = Y + 1
    gaps = [with_missing(A, 0.2, seed=k) for k, A in enumerate((Y, P, other))]
    seen = ~np.isnan(sum(gaps))
    error, reference = (np.where(seen, np.square(Y - F), 0) for F in (P, other))
    error, reference = (np.tensordot(w, A, 1) for A in (error, reference))
    found = skill(*gaps, sample_weight=w, average=average)
    pooled, each = 1 - error.sum() / reference.sum(), 1 - error / reference
    expected = {"pooled": pooled, "uniform": each.mean(), None: each}[average]
    assert_allclose(found, expected, rtol=1e-12)
    root = np.sqrt(np.where(seen, np.square(Y - P), 0).sum() / seen.sum())
    assert rmse(np.where(seen, Y, np.nan), gaps[1]) == pytest.approx(root)


def test_an_output_without_entries_has_no_number_and_does_not_count():
    Y, P, _ = forecast()
    Y[:, 0, 0] = np.nan
    for metric in (r2, rmse, skill):
        each = metric(Y, P, average=None)
        assert np.isnan(each).sum() == 1
        assert metric(Y, P, average="uniform") == pytest.approx(np.nanmean(each))
    assert np.isnan(r2(Y[:, 0], P[:, 0], average=None)[0])
    with pytest.warns(UserWarning, match="not well-defined"):
        assert np.isnan(rmse(Y[:, 0, :1], P[:, 0, :1]))


@pytest.mark.parametrize("scale", [1e-200, 1e-5, 1e200])
def test_scores_do_not_depend_on_the_scale(scale):
    Y, P, _ = forecast()
    for average in AVERAGES:
        for metric in (r2, skill):
            expected = metric(Y, P, average=average)
            assert_allclose(metric(scale * Y, scale * P, average=average), expected, rtol=1e-9)
        expected = rmse(Y, P, average=average)
        assert_allclose(rmse(scale * Y, scale * P, average=average) / scale, expected, rtol=1e-9)


# ---------------------------------------------------------------- other data


def test_scores_of_data_on_disk_and_of_dask_equal_those_in_memory(tmp_path):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    Y, P, w = forecast(n=500)
    Y[::7, 1, 1] = np.nan
    expected = r2(Y, P, sample_weight=w)
    disk = on_disk(tmp_path, "Y", Y), on_disk(tmp_path, "P", P)
    lazy = da.from_array(Y, chunks=(70, 2, 4)), da.from_array(P, chunks=(90, 3, 4))
    for pair in (disk, lazy, (Y, lazy[1]), (lazy[0], P)):
        assert r2(*pair, sample_weight=w) == pytest.approx(expected, rel=1e-12)
    masked = da.ma.masked_array(np.nan_to_num(Y, nan=99.0), mask=np.isnan(Y))
    assert r2(masked, P, sample_weight=w) == pytest.approx(expected, rel=1e-12)


def test_blocks_of_large_data_add_up_and_bad_entries_have_their_place_in_all_of_them():
    Y, P, w = forecast((2, 2), n=600_000)  # 19 MB
    errors, spread = (
        np.tensordot(w, (Y - A) ** 2, 1) for A in (P, np.tensordot(w, Y, 1) / w.sum())
    )
    assert_allclose(r2(Y, P, sample_weight=w, average=None), 1 - errors / spread, rtol=1e-9)
    assert_allclose(rmse(Y, P, sample_weight=w, average=None) ** 2, errors / w.sum(), rtol=1e-9)
    P[590_000, 1, 0] = np.nan
    with pytest.raises(ValueError, match=r"y_pred contains NaN at index \(590000, 1, 0\)"):
        r2(Y, P, missing="raise")
    Y[595_000, 0, 1] = np.inf
    with pytest.raises(ValueError, match=r"y contains infinity at index \(595000, 0, 1\)"):
        r2(Y, P)


def test_masked_entries_are_missing():
    Y, P, _ = forecast()
    mask = np.random.default_rng(0).uniform(size=Y.shape) < 0.2
    masked = np.ma.masked_array(np.where(mask, 1e9, Y), mask=mask)
    assert r2(masked, P) == r2(np.where(mask, np.nan, Y), P)


def test_names_of_xarray_are_put_in_order_and_come_back():
    xr = pytest.importorskip("xarray")
    Y, P, w = forecast()
    coords = {"time": np.arange(60), "place": list("abc"), "month": [1, 4, 7, 10]}
    y = xr.DataArray(Y, coords, dims=tuple(coords), name="t2m", attrs={"units": "K"})
    p = y.copy(data=P).transpose("time", "month", "place")
    weight = xr.DataArray(w, {"time": coords["time"]}, dims="time")
    each = r2(y, p, sample_weight=weight, average=None)
    assert_allclose(each, r2(Y, P, sample_weight=w, average=None))
    assert each.dims == ("place", "month")
    assert each.name == "r2"
    assert each.attrs == {}
    assert each.sel(place="b", month=7) == r2(Y[:, 1, 2], P[:, 1, 2], sample_weight=w)
    climatology = y.mean("time").transpose("month", "place")
    assert_allclose(skill(y, p, climatology), r2(y, p), rtol=1e-9)
    turned = y.transpose("place", "time", "month")
    assert_allclose(rmse(turned, p, sample_dim="time"), rmse(Y, P))
    with pytest.raises(ValueError, match=r"y_true begins with the dimension 'place'.*sample_dim"):
        rmse(turned, p)
    for bad, message in [
        (p.isel(time=slice(None, None, -1)), "y_pred .*have different labels"),
        (p.rename(place="station"), "y_pred does not match y_true.*station"),
        (p.assign_coords(place=list("acb")), "y_pred .*other coordinates along 'place'"),
    ]:
        with pytest.raises(ValueError, match=message):
            r2(y, bad)


def test_scores_of_tables():
    pd = pytest.importorskip("pandas")
    Y, P, _ = forecast()
    columns = pd.MultiIndex.from_product([list("abc"), [1, 4, 7, 10]], names=["place", "month"])
    y, p = pd.DataFrame(flat(Y), columns=columns), pd.DataFrame(flat(P), columns=columns)
    each = skill(y, p, average=None)
    assert isinstance(each, pd.Series)
    assert each.loc["b", 7] == pytest.approx(r2(Y[:, 1, 2], P[:, 1, 2]))
    assert_allclose(skill(y, p, y.mean()), r2(Y, P), rtol=1e-9)
    with pytest.raises(ValueError, match=r"y_pred does not match y_true.*columns"):
        r2(y, p[p.columns[::-1]])
    with pytest.raises(ValueError, match=r"y_pred does not match y_true.*different labels"):
        r2(y, p[::-1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda Y, P: r2(Y, P[:, :2]), r"y_pred .*shape \(60, 2, 4\), but y_true has \(60, 3, 4\)"),
        (lambda Y, P: skill(Y, P, P[:, 0]), r"reference .*shape \(60, 4\)"),
        (lambda Y, P: rmse(Y, P, average="mean"), "average must be one of .*'mean'"),
        (lambda Y, P: rmse(Y, P, missing="drop"), "missing must be .*'drop'"),
        (lambda Y, P: r2(np.inf * Y, P), "y contains infinity"),
        (lambda Y, P: r2(Y, np.nan * P, missing="raise"), "y_pred contains NaN"),
        (lambda Y, P: r2(Y * np.nan, P, missing="raise"), "y_true contains NaN"),
        (lambda Y, P: r2(Y, P.astype(str)), "y_pred"),
        (lambda Y, P: r2(Y, P, sample_weight=[1.0]), "sample_weight"),
    ],
)
def test_invalid_arguments_raise_errors_that_name_them(call, message):
    Y, P, _ = forecast()
    with pytest.raises((ValueError, TypeError), match=message):
        call(Y, P)


# ---------------------------------------------------------------- scorers


@pytest.mark.parametrize("name", scorers)
def test_scorers_serve_scikit_learn(name):
    X, Y = toy(n=90)
    found = cross_validate(HOLRR(rank=2), X, Y, scoring=scorers[name], cv=3, error_score="raise")
    by_hand = []
    for k in range(3):
        test = np.arange(30 * k, 30 * k + 30)
        train = np.setdiff1d(np.arange(90), test)
        P = HOLRR(rank=2).fit(X[train], Y[train]).predict(X[test])
        how = {"r2_pooled": r2(Y[test], P), "r2_uniform": r2(Y[test], P, average="uniform")}
        by_hand.append({**how, "neg_rmse": -rmse(Y[test], P)}[name])
    assert_allclose(found["test_score"], by_hand)


def test_all_scorers_at_once_with_missing_and_other_estimators():
    X, Y = toy(n=90)
    incomplete = with_missing(Y, 0.2)
    found = cross_validate(
        RLS(missing="ignore"), X, incomplete, scoring=scorers, error_score="raise"
    )
    assert {f"test_{name}" for name in scorers} <= set(found)
    assert min(found["test_r2_pooled"]) > 0.9
    search = GridSearchCV(Ridge(), {"alpha": [0.1, 1e6]}, scoring=scorers["neg_rmse"])
    assert search.fit(X, flat(Y)).best_params_ == {"alpha": 0.1}


def test_a_scorer_with_a_user_defined_reference():
    X, Y = toy(n=90)
    climatology = 1 + Y.mean(axis=0)
    scorer = make_scorer(skill, reference=climatology)
    found = cross_validate(RLS(), X, Y, scoring=scorer, cv=3, error_score="raise")["test_score"]
    last = RLS().fit(X[:60], Y[:60]).predict(X[60:])
    assert found[2] == pytest.approx(skill(Y[60:], last, climatology))
    assert found[2] != pytest.approx(r2(Y[60:], last))


def test_scorers_take_tables_and_objects_of_xarray():
    pd, xr = pytest.importorskip("pandas"), pytest.importorskip("xarray")
    X, Y = toy(n=90)
    expected = cross_validate(RLS(), X, Y, scoring=scorers, cv=3, error_score="raise")
    table = pd.DataFrame(flat(Y), index=np.arange(90) + 5)
    array = xr.DataArray(Y, {"time": np.arange(90)}, dims=("time", "a", "b"))
    inputs = pd.DataFrame(X, index=table.index, columns=list("abcde"))
    for data in ((X, table), (inputs, table), (X, array)):
        found = cross_validate(RLS(), *data, scoring=scorers, cv=3, error_score="raise")
        for name in scorers:
            assert_allclose(found[f"test_{name}"], expected[f"test_{name}"])


def test_outputs_that_hardly_vary_change_the_uniform_average_but_not_the_score():
    """The average over outputs prefers the model that is far worse where anything happens."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    Y = np.tensordot(X, rng.normal(size=(4, 3, 4)), 1) + 0.3 * rng.normal(size=(200, 3, 4))
    Y[:, :, 0] = 0.003 * rng.normal(size=(200, 3))  # what is hardly ever there
    grid = {"alpha": [1e-3, 1e5]}
    models = [HOLRR(rank=(1, 1, 1)), HOLRR(rank=(4, 3, 3))]
    P = [clone(model).fit(X[:150], Y[:150] + 0.1).predict(X[150:]) for model in models]
    pooled, uniform = ([r2(Y[150:], p, average=a) for p in P] for a in ("pooled", "uniform"))
    assert pooled[1] > 0.9
    assert max(uniform) < -1
    search = GridSearchCV(HOLRR(rank=(4, 3, 3)), grid).fit(X, Y)
    assert search.best_params_ == {"alpha": 1e-3}
    assert search.best_score_ > 0.9


def test_importing_the_library_imports_its_metrics():
    code = "import holrr; print(holrr.metrics.r2([1, 2], [1, 2]))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "1.0"


@pytest.mark.parametrize("missing", [False, True])
def test_samples_without_weight_make_no_spread(missing):
    """The outputs that count are constant, so a miss is a miss and not a division by rounding."""
    y = np.random.default_rng(0).normal(size=(30, 3))
    y[5] = y[3]
    y[7, 0] = np.nan if missing else 0.0
    w = np.zeros(30)
    w[[3, 5]] = 0.3, 0.7
    assert r2(y, y + 0.1, sample_weight=w) == 0.0
    assert r2(y, y + 0.0, sample_weight=w, average=None).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("metric", [r2, rmse, skill])
@pytest.mark.parametrize("average", [np.ones(3), [0.5, 0.5], "mean", 1])
def test_an_average_that_is_none_of_the_choices_is_named(metric, average):
    y = np.arange(12.0).reshape(4, 3)
    with pytest.raises(ValueError, match=r"average must be one of 'pooled', 'uniform', None; got"):
        metric(y, y + 1, average=average)
    with pytest.raises(
        ValueError, match=r"missing must be one of 'skip', 'raise'; got missing=an array"
    ):
        metric(y, y + 1, missing=np.ones(3))
    with pytest.raises(ValueError, match=r"average must be one of 'pooled', 'samples', None; got"):
        interval_coverage(y, y, y, average=average)


def test_the_pooled_scorer_agrees_with_score_without_weights_of_outputs():
    X, Y = toy(30)
    model = HOLRR(rank=2).fit(X, Y)
    assert_allclose(scorers["r2_pooled"](model, X, Y), model.score(X, Y))
    assert not np.isclose(scorers["r2_uniform"](model, X, Y), model.score(X, Y))
    weighted = HOLRR(rank=2, output_weight=[None, [1.0, 2.0, 3.0, 9.0]]).fit(X, Y)
    assert not np.isclose(scorers["r2_pooled"](weighted, X, Y), weighted.score(X, Y))
