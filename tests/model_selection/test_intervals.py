"""Prediction intervals: quantiles of held-out residuals, coverage, and every search."""

from __future__ import annotations

import math
import pickle
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.model_selection import KFold, PredefinedSplit, ShuffleSplit, TimeSeriesSplit

import holrr
import reference
from holrr import HOLRRCV, LRRCV, RLS, RLSCV, KernelRLSCV, Moments, TraceNormRegression
from problems import toy, with_missing
from registry import ROWS

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty", "ignore:landmarks=")

KINDS = ("entry", "pooled", "simultaneous")

# ---------------------------------------------------------------- every search


@pytest.mark.rows("has_intervals")
@pytest.mark.parametrize("kind", KINDS)
def test_intervals_are_kept_by_files_and_pickles(row, kind, tmp_path):
    X, Y = toy(n=45)
    model = row.make().fit(X, Y)
    model.save(tmp_path / "model.holrr")
    expected = model.predict_interval(X, 0.8, kind)
    for again in (pickle.loads(pickle.dumps(model)), holrr.load(tmp_path / "model.holrr")):
        for a, b in zip(again.predict_interval(X, 0.8, kind), expected, strict=True):
            assert_array_equal(a, b)


@pytest.mark.rows("has_intervals")
def test_intervals_of_scalar_targets_are_vectors(row):
    X, y = toy(n=45, shape=())
    lower, upper = row.make().fit(X, y).predict_interval(X, 0.8)
    assert lower.shape == upper.shape == y.shape


@pytest.mark.rows("has_intervals")
def test_intervals_of_dask_arrays_are_lazy(row):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    X, Y = toy(n=60)
    model = row.make().fit(X, Y)
    found = model.predict_interval(da.from_array(X, chunks=25), 0.8)
    for a, b in zip(found, model.predict_interval(X, 0.8), strict=True):
        assert isinstance(a, da.Array)
        assert_allclose(a.compute(), b, rtol=1e-10)


def test_intervals_of_single_fits_raise(row):
    X, Y = toy()
    model = row.make().fit(X, Y)
    if row.has_noise and row.searches:
        assert hasattr(model, "predict_interval")
        return
    with pytest.raises(AttributeError, match=r"held-out residuals of a search.*Use HOLRRCV"):
        model.predict_interval(X)


@pytest.mark.rows("has_intervals")
def test_intervals_in_every_array_library(row, other_xp):
    assert_same_intervals(row, other_xp, 90, 4)


FEW = [row for row in ROWS if row.has_intervals]
FEW = [row for row in FEW if row.representative or row.params.get("landmarks")]


@pytest.mark.parametrize("owner", FEW, ids=lambda row: row.id)
def test_intervals_of_few_scores_in_every_array_library(owner, other_xp):
    """Of samples that are held out several times or never."""
    splits = ShuffleSplit(3, test_size=0.3, random_state=0)
    assert_same_intervals(owner, other_xp, 30, splits)


def assert_same_intervals(row, xp, n, cv):
    """Compare a fit with that of NumPy; one of the outputs has no noise."""
    X, Y = toy(n=n, shape=(4, 3))
    Y[:, 0, 0] = 2.0
    here, there = (row.make(cv=cv).fit(f(X), f(Y)) for f in (np.asarray, xp.asarray))
    for kind in KINDS:
        pairs = zip(
            there.predict_interval(xp.asarray(X), 0.7, kind),
            here.predict_interval(X, 0.7, kind),
            strict=True,
        )
        for a, b in pairs:
            assert xp.owns(a)
            row.near(xp.to_numpy(a), b, 10)
    row.near(xp.to_numpy(there.noise_), here.noise_, 10)


@pytest.mark.rows("has_intervals")
def test_intervals_widen_with_coverage_and_simultaneous_ones_are_widest(row):
    X, Y = toy(n=60)
    model = row.make().fit(X, Y)
    widths = {
        (kind, c): np.subtract(*model.predict_interval(X, c, kind)[::-1])
        for kind in ("entry", "pooled", "simultaneous")
        for c in (0.3, 0.6, 0.9, 0.95)
    }
    for (kind, c), width in widths.items():
        assert np.all(width > 0)
        if (kind, c + 0.3) in widths:
            assert np.all(widths[kind, c + 0.3] > width)
    assert np.all(widths["simultaneous", 0.9] >= widths["pooled", 0.9])


# ---------------------------------------------------------------- quantiles of held-out residuals


def out_of_fold(X, Y, alpha, splits):
    """Scaled residuals of ridge regression, fold by fold, from the dense formulas."""
    scores = np.empty_like(Y)
    for train, test in splits:
        noise, std = reference.ridge_std(X[train], Y[train], X[test], alpha)
        residual = Y[test] - RLS(alpha).fit(X[train], Y[train]).predict(X[test])
        scores[test] = residual / (std / noise)
    return scores


@pytest.mark.parametrize("make", [RLSCV, partial(KernelRLSCV, kernel="linear")])
def test_intervals_are_quantiles_of_the_scaled_out_of_fold_residuals(make):
    X, Y = toy(n=39)  # (39 + 1) 0.9 = 36: an order statistic, and no interpolation
    splits = list(KFold(3).split(X))
    model = make([0.7], cv=splits).fit(X, Y)
    scores = out_of_fold(X, Y, 0.7, splits)
    assert_allclose(model.noise_, np.sqrt(np.mean(scores**2, axis=0)), rtol=1e-7)
    new = toy(n=9, seed=3)[0]
    spread = reference.ridge_std(X, Y, new, 0.7)[1] / reference.ridge_std(X, Y, new, 0.7)[0]
    lower, upper = model.predict_interval(new, 0.9)
    assert_allclose((upper - lower) / 2, spread * np.sort(abs(scores), axis=0)[35], rtol=1e-6)
    assert_allclose((upper + lower) / 2, model.predict(new), rtol=1e-7)
    # The largest in units of the noise that a fit finds in its own training samples.
    largest = scores.copy()
    for train, test in splits:
        largest[test] /= RLS(0.7).fit(X[train], Y[train]).noise_
    top = np.sort(abs(largest).max(axis=(1, 2)))[35]
    lower, upper = model.predict_interval(new, 0.9, "simultaneous")
    assert_allclose((upper - lower) / 2, spread * RLS(0.7).fit(X, Y).noise_ * top, rtol=1e-6)
    # Pooled ones of each fold in units of the noise of the others.
    for _, test in splits:
        others = np.setdiff1d(np.arange(39), test)
        scores[test] /= np.sqrt(np.mean(out_of_fold(X, Y, 0.7, splits)[others] ** 2, axis=0))
    pooled = np.sort(abs(scores).ravel())
    lower, upper = model.predict_interval(new, 0.5, "pooled")
    middle = (upper - lower) / 2 / spread / model.noise_
    assert np.all((middle > pooled[225]) & (middle < pooled[245]))


def test_quantiles_are_weighted():
    """Samples of weight zero have no influence."""
    X, Y = toy(n=80)
    Y[60:] *= 10
    w = np.r_[np.ones(60), np.zeros(20)]
    splits = [
        (np.setdiff1d(np.arange(80), np.arange(k, 80, 4)), np.arange(k, 80, 4)) for k in range(4)
    ]
    inside = [(a[a < 60], b[b < 60]) for a, b in splits]
    there = RLSCV([1.0], cv=splits).fit(X, Y, w)
    alone = RLSCV([1.0], cv=inside).fit(X[:60], Y[:60])
    for kind in ("entry", "pooled", "simultaneous"):
        for a, b in zip(
            there.predict_interval(X, 0.8, kind), alone.predict_interval(X, 0.8, kind), strict=True
        ):
            assert_allclose(a, b, rtol=1e-6)
    w = np.where(w > 0, 1.0, 1e-9)  # nearly the same, by weighted quantiles
    nearly = RLSCV([1.0], cv=splits).fit(X, Y, w)
    for a, b in zip(nearly.predict_interval(X, 0.8), alone.predict_interval(X, 0.8), strict=True):
        assert_allclose(a, b, rtol=0.05, atol=0.05)


def test_intervals_of_time_series_folds_are_wider_with_a_trend():
    """No input explains the trend: later samples are off the mean of earlier ones."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(200, 3)), np.linspace(0, 50, 200)[:, None] + rng.normal(size=(200, 2))
    shuffled = RLSCV([1.0], cv=KFold(5, shuffle=True, random_state=0)).fit(X, Y)
    blocked = RLSCV([1.0], cv=TimeSeriesSplit(5)).fit(X, Y)
    width = lambda m: np.ptp(m.predict_interval(X[:1]), axis=0).mean()  # noqa: E731
    assert width(blocked) > 1.1 * width(shuffled)


def test_the_pool_of_many_scores_has_all_outputs():
    """Of 600,000 scores one of three is used, which are those of both kinds of noise."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(6000, 3)), rng.laplace(size=(6000, 100)) / np.sqrt(2)
    Y[:, ::2] = rng.uniform(-np.sqrt(3), np.sqrt(3), size=(6000, 50))
    lower, upper = RLSCV([1.0]).fit(X, Y).predict_interval(X[:5], 0.9, "pooled")
    expected = np.quantile(np.abs(Y / Y.std(axis=0)), 0.9) * Y.std(axis=0)
    assert_allclose((upper - lower) / 2, np.broadcast_to(expected, (5, 100)), rtol=0.01)


def test_intervals_from_fold_moments_are_normal():
    X, Y = toy(n=120)
    parts = [Moments.from_arrays(X[i::4], Y[i::4]) for i in range(4)]
    for make in (RLSCV, HOLRRCV):
        model = make([1.0]).fit_fold_moments(parts)
        mean, std = model.predict(X, return_std=True)
        for kind, share in (("entry", 0.9), ("pooled", 0.9), ("simultaneous", 0.9 ** (1 / 12))):
            lower, upper = model.predict_interval(X, 0.9, kind)
            assert_allclose((upper - mean) / std, stats.t.ppf((1 + share) / 2, 120), rtol=1e-9)
            assert_allclose(mean - lower, upper - mean, rtol=1e-9)
        labels = [
            (np.setdiff1d(np.arange(120), np.arange(i, 120, 4)), np.arange(i, 120, 4))
            for i in range(4)
        ]
        there = make([1.0], cv=labels).fit(X, Y)
        assert_allclose(model.noise_, there.noise_, rtol=0.01)


# ---------------------------------------------------------------- coverage


@pytest.mark.parametrize("noise", ["normal", "heavy", "uneven"])
@pytest.mark.parametrize("n", [50, 400])
def test_intervals_have_the_coverage_asked_for(noise, n):
    """For a stack, whose residuals are those of cross-fitted weights."""
    found = []
    for seed in range(12 if n == 50 else 3):
        rng = np.random.default_rng(seed)
        X, Y = toy(n=n + 500, noise=0.0, seed=seed)
        E = rng.standard_t(3, Y.shape) if noise == "heavy" else rng.normal(size=Y.shape)
        Y = Y + E * (np.geomspace(0.1, 10, 12).reshape(3, 4) if noise == "uneven" else 1.0)
        model = HOLRRCV(max_rank=3).fit(X[:n], Y[:n])
        inside = []
        for kind in ("entry", "pooled", "simultaneous"):
            lower, upper = model.predict_interval(X[n:], 0.9, kind)
            hit = (lower <= Y[n:]) & (Y[n:] <= upper)
            inside.append(hit.all(axis=(1, 2)).mean() if kind == "simultaneous" else hit.mean())
        found.append(inside)
    entry, pooled, simultaneous = np.mean(found, axis=0)
    assert 0.88 <= entry <= 0.92
    assert 0.88 <= pooled <= 0.92
    assert simultaneous >= 0.87


@pytest.mark.parametrize("make", [RLSCV, LRRCV, HOLRRCV])
def test_intervals_with_missing_outputs_have_the_coverage_asked_for(make):
    X, Y = toy(n=300, noise=1.0)
    rng = np.random.default_rng(5)
    new = rng.normal(size=(2000, 5)) + 1
    W = np.linalg.lstsq(np.c_[np.ones(300), X], Y.reshape(300, -1), rcond=None)[0]
    there = (np.c_[np.ones(2000), new] @ W).reshape(-1, 3, 4) + rng.normal(size=(2000, 3, 4))
    missing = with_missing(Y, 0.3)
    missing[:, 2, 3] = np.nan  # never observed
    missing[np.arange(300) % 50 > 0, 0, 0] = np.nan  # hardly ever observed
    model = make(missing="ignore").fit(X, missing)
    lower, upper = model.predict_interval(new)
    assert np.isnan(lower[:, 2, 3]).all()
    assert np.isinf(upper[:, 0, 0]).all()
    inside = ((lower <= there) & (there <= upper))[:, 1]
    assert 0.87 < inside.mean() < 0.93
    lower, upper = model.predict_interval(new, kind="pooled")
    assert 0.87 < ((lower <= there) & (there <= upper))[:, 1].mean() < 0.93


def test_simultaneous_intervals_with_missing_outputs_have_the_coverage_asked_for():
    inside = []
    for seed in range(12):
        X, Y = toy(n=600, seed=seed)
        missing = Y[:100].copy()
        missing[np.random.default_rng(seed).random(missing.shape) < 0.5] = np.nan
        model = RLSCV([1.0], missing="ignore").fit(X[:100], missing)
        lower, upper = model.predict_interval(X[100:], 0.9, "simultaneous")
        inside.append(((lower <= Y[100:]) & (Y[100:] <= upper)).all(axis=(1, 2)).mean())
    assert 0.88 < np.mean(inside) < 0.95


@pytest.mark.parametrize(
    "cv",
    [
        ShuffleSplit(20, test_size=0.2, random_state=0),
        PredefinedSplit(np.repeat([-1, 0], 30)),
    ],
    ids=["several times", "one fold"],
)
def test_simultaneous_intervals_have_coverage_for_any_folds(cv):
    inside = []
    for seed in range(40):
        X, Y = toy(n=260, d0=2, shape=(5, 8), seed=seed)
        lower, upper = (
            RLSCV([1.0], cv=cv).fit(X[:60], Y[:60]).predict_interval(X[60:], 0.9, "simultaneous")
        )
        inside.append(((lower <= Y[60:]) & (Y[60:] <= upper)).all(axis=(1, 2)).mean())
    assert 0.88 < np.mean(inside) < 0.95


def test_pooled_intervals_of_few_samples_have_the_coverage_asked_for():
    inside = []
    for seed in range(5):
        X, Y = toy(n=212, d0=1, shape=(10, 20), seed=seed)
        lower, upper = RLSCV([1.0]).fit(X[:12], Y[:12]).predict_interval(X[12:], 0.95, "pooled")
        inside.append(((lower <= Y[12:]) & (Y[12:] <= upper)).mean())
    assert 0.92 < np.mean(inside) < 0.965


# ---------------------------------------------------------------- special outputs


@pytest.mark.filterwarnings("error")
def test_intervals_of_outputs_without_noise_have_no_width():
    X = toy(n=60)[0]
    for kind in KINDS:
        lower, upper = RLSCV([1.0]).fit(X, np.full((60, 2, 3), 3.0)).predict_interval(X, 0.9, kind)
        assert_allclose(lower, 3.0)
        assert_allclose(upper, 3.0)


def test_constant_output_has_an_interval_without_width_beside_others():
    X, Y = toy(n=60)
    Y[:, 1, 2] = 3.0
    model = RLSCV(alphas=[1.0]).fit(X, Y)
    lower, upper = model.predict_interval(X)
    assert_allclose(upper[:, 1, 2] - lower[:, 1, 2], 0.0, atol=1e-6)
    assert np.isfinite(model.predict_interval(X, 0.9, "simultaneous")[1]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_constant_output_without_an_intercept_counts_like_the_others(kind):
    """Its residuals are no rounding errors, so the intervals of a single one have its coverage."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal([1.0, 0.5, 0.0], size=(400, 3)), np.full((400, 1), 2.5)
    for search in (RLSCV([1.0]), LRRCV([1.0], selection="min"), KernelRLSCV([1.0])):
        model = search.set_params(fit_intercept=False).fit(X[:300], Y[:300])
        lower, upper = model.predict_interval(X[300:], 0.9, kind)
        assert np.mean((lower <= 2.5) & (2.5 <= upper)) == pytest.approx(0.9, abs=0.06)


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_intervals_include_the_values_of_constant_outputs(dtype, lazy):
    """Predictions of an output that is always zero have the rounding error of the other outputs."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(400, 20)), rng.normal(size=(400, 5, 4))
    Y += 100 * np.tensordot(X, rng.normal(size=(20, 5, 4)), 1)
    Y[:, 0, 0], Y[:, 2, 3] = 0.0, 7.0
    X, Y = X.astype(dtype), Y.astype(dtype)
    model = HOLRRCV(cv=4, selection="min").fit(X[:300], Y[:300])
    assert model.rank_ == (18, 5, 4)  # all: two outputs are constant
    new = pytest.importorskip("dask.array").from_array(X[300:], (50, 20)) if lazy else X[300:]
    assert np.abs(np.asarray(model.predict(new)) - Y[300:])[:, 0, 0].max() > 0
    for kind in KINDS:
        lower, upper = (np.asarray(bound) for bound in model.predict_interval(new, 0.9, kind))
        for value, *place in [(0.0, 0, 0), (7.0, 2, 3)]:
            at = (slice(None), *place)
            assert ((lower[at] <= value) & (value <= upper[at])).all()
            tol = 1e-11 if dtype is np.float64 else 1e-2
            assert (upper[at] - lower[at]).max() < tol * np.abs(Y).max()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rounding_errors_of_outputs_without_noise_are_no_scores(dtype):
    """Their residuals are not exactly zero, and do not change the quantiles of the others."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(3.0, 1.0, size=(60, 4)), rng.normal(size=(60, 5))
    constant = np.full((60, 3), [0.1, 1 / 3, 1e5 / 7])
    linear = X @ rng.normal(size=(4, 2))
    alone, beside = (
        RLSCV(alphas=[0.0], cv=4).fit(X.astype(dtype), A.astype(dtype))
        for A in (Y, np.concatenate([constant, Y, linear], axis=1))
    )
    for kind in ("pooled", "simultaneous"):
        few, all_of_them = (m.predict_interval(X, 0.8, kind) for m in (alone, beside))
        widths = np.subtract(*few[::-1]), np.subtract(*all_of_them[::-1])[:, 3:8]
        assert_allclose(*widths, rtol=0.01)


def test_samples_without_observed_outputs_have_no_influence():
    X, Y = toy(n=60)
    more = np.concatenate([X, toy(n=40, seed=1)[0]])
    missing = np.concatenate([Y, np.full((40, *Y.shape[1:]), np.nan)])
    test = np.arange(100) % 5
    gaps = RLSCV([0.1], cv=PredefinedSplit(test), missing="ignore").fit(more, missing)
    there = RLSCV([0.1], cv=PredefinedSplit(test[:60])).fit(X, Y)
    for kind in ("entry", "pooled"):
        assert_allclose(
            gaps.predict_interval(X, 0.9, kind), there.predict_interval(X, 0.9, kind), rtol=1e-3
        )
    # The largest scores have other units of noise, since folds do not know their own.
    lower, upper = (np.array(m.predict_interval(X, 0.9, "simultaneous")) for m in (gaps, there))
    assert_allclose(lower[1] - lower[0], upper[1] - upper[0], rtol=0.3)


def test_output_weights_do_not_change_intervals_of_single_outputs():
    X, Y = toy(n=60)
    weights = [[1.0, 4.0, 0.0], None]
    plain, weighted = (RLSCV([1.0], output_weight=w).fit(X, Y) for w in (None, weights))
    for kind in ("entry", "simultaneous"):
        for a, b in zip(
            weighted.predict_interval(X, 0.9, kind),
            plain.predict_interval(X, 0.9, kind),
            strict=True,
        ):
            assert np.isnan(a[:, 2]).all()
            if kind == "entry":
                assert_allclose(a[:, :2], b[:, :2], rtol=1e-5)


# ---------------------------------------------------------------- types, labels and errors


def test_intervals_of_scalar_targets_in_single_precision_in_every_library(xp):
    X, y = (A.astype(np.float32) for A in toy(n=45, shape=()))
    here, there = (HOLRRCV([1.0, 3.0], cv=3).fit(f(X), f(y)) for f in (np.asarray, xp.asarray))
    found, expected = there.predict_interval(xp.asarray(X)), here.predict_interval(X)
    assert_allclose(xp.to_numpy(found[0]), expected[0], rtol=1e-3, atol=1e-3)


def test_std_and_intervals_have_the_labels_of_predictions():
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, Y = toy(n=60)
    time = {"time": np.arange(60.0)}
    Xl = xr.DataArray(X, dims=("time", "input"), coords=time)
    Yl = xr.DataArray(Y, dims=("time", "lat", "lon"), coords={**time, "lat": [1.0, 2.0, 3.0]})
    model = RLSCV([1.0]).fit(Xl, Yl)
    for found in (*model.predict(Xl, return_std=True), *model.predict_interval(Xl)):
        assert found.dims == ("time", "lat", "lon")
        assert_array_equal(found.lat, [1.0, 2.0, 3.0])
    table = pd.DataFrame(Y.reshape(60, -1), columns=[f"y{i}" for i in range(12)])
    model = RLSCV([1.0]).fit(pd.DataFrame(X, columns=list("abcde")), table)
    new = pd.DataFrame(X[:5], columns=list("abcde"), index=range(7, 12))
    for found in (*model.predict(new, return_std=True), *model.predict_interval(new)):
        assert list(found.columns) == list(table.columns)
        assert list(found.index) == list(new.index)


@pytest.mark.parametrize("coverage", [0, 1, -0.1, 1.5, math.nan, "0.9", None])
def test_coverage_outside_of_zero_to_one_raises(coverage):
    X, Y = toy(n=30)
    model = RLSCV([1.0]).fit(X, Y)
    with pytest.raises(ValueError, match="coverage"):
        model.predict_interval(X, coverage)


def test_errors_of_intervals():
    X, Y = toy(n=30)
    model = RLSCV([1.0]).fit(X, Y)
    with pytest.raises(ValueError, match="kind must be one of 'entry', 'pooled', 'simultaneous'"):
        model.predict_interval(X, kind="all")
    with pytest.raises(ValueError, match=r"coverage=0\.99 needs at least 99 held-out samples"):
        model.predict_interval(X, 0.99)
    for coverage, needed in [(0.8, 4), (0.9, 9), (0.95, 19)]:
        few = RLSCV([1.0], cv=2).fit(X[: needed - 1], Y[: needed - 1])
        with pytest.raises(ValueError, match=f"coverage={coverage} needs at least {needed} held"):
            few.predict_interval(X, coverage)
        RLSCV([1.0], cv=2).fit(X[:needed], Y[:needed]).predict_interval(X, coverage)
    model.predict_interval(X, 0.99, "pooled")
    with pytest.raises(ValueError, match="return_std=True needs the noise of each output"):
        TraceNormRegression().fit(X, Y).predict(X, return_std=True)
    assert not hasattr(RLS(), "predict_interval")


# ---------------------------------------------------------------- few samples


@pytest.mark.parametrize("kind", ["skewed", "heavy"])
def test_simultaneous_intervals_of_many_skewed_outputs_from_few_samples(kind):
    """A large output of a sample is unusual to fits that have not seen the sample only."""
    found = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(74, 8))
        Y = X @ rng.normal(size=(8, 700)) / 4 + rng.normal(size=(74, 700))
        if kind == "skewed":
            Y = np.exp(1.5 * Y)
        else:
            Y += rng.standard_t(2, size=Y.shape)
        lower, upper = RLSCV().fit(X[:24], Y[:24]).predict_interval(X[24:], 0.9, "simultaneous")
        found.append(np.mean(((lower <= Y[24:]) & (Y[24:] <= upper)).all(axis=1)))
    assert 0.86 <= np.mean(found) <= 0.99


def test_simultaneous_widths_of_many_samples_hardly_depend_on_the_units_of_noise():
    """The noise of a fold and that of the other folds are the same where there are many samples."""
    X, Y = toy(n=900, noise=1.0)
    model = RLSCV([1.0]).fit(X, Y)
    lower, upper = model.predict_interval(X, 0.9, "simultaneous")
    normal = stats.norm.ppf((1 + 0.9 ** (1 / 12)) / 2)
    assert_allclose(np.mean((upper - lower) / 2), normal * model.noise_.mean(), rtol=0.05)


@pytest.mark.parametrize("alphas", [None, [1e-3], [1.0], [300.0]])
@pytest.mark.parametrize(
    "make",
    [
        RLSCV,
        LRRCV,
        partial(LRRCV, selection="min"),
        partial(KernelRLSCV, kernel="linear"),
        partial(RLSCV, missing="ignore"),
    ],
)
def test_intervals_at_training_inputs_with_more_features_than_samples(make, alphas):
    """New outputs there are covered, and the noise is that of the data, with any penalty.

    As far as a stack predicts the mean, what it leaves of the outputs counts as noise, too.
    """
    at_training, at_new, noise = [], [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        B = rng.normal(size=(400, 6)) / 20
        X, new = rng.normal(size=(50, 400)), rng.normal(size=(100, 400))
        observe = lambda X, B=B, rng=rng: X @ B + 0.5 * rng.normal(size=(len(X), 6))  # noqa: E731
        Y = observe(X)
        if "missing" in repr(make):
            Y[rng.uniform(size=Y.shape) < 0.05] = np.nan
        model = make(alphas, cv=3).fit(X, Y)
        share = 1 - np.sum(getattr(model, "stack_weights_", 1.0))
        if share < 1e-9:
            noise.append(np.mean(model.noise_))
        else:
            assert 0.35 < np.mean(model.noise_) < np.sqrt(0.5**2 + 1.0)  # of signal and noise
        for inputs, shares in ((X, at_training), (new, at_new)):
            lower, upper = model.predict_interval(inputs, 0.9)
            again = observe(inputs)
            shares.append(np.mean((lower <= again) & (again <= upper)))
    assert 0.86 < np.mean(at_training)
    assert 0.86 < np.mean(at_new) < 0.95
    assert len(noise) >= 3
    assert 0.35 < np.mean(noise) < 0.85
