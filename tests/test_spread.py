"""Noise, standard deviations and intervals: closed forms, limits, and every way to a fit."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.model_selection import KFold, PredefinedSplit, ShuffleSplit, TimeSeriesSplit

import holrr
from holrr import (
    HOLRR,
    HOLRRCV,
    LRR,
    LRRCV,
    RLS,
    RLSCV,
    KernelHOLRR,
    KernelRLS,
    KernelRLSCV,
    Moments,
    TraceNormRegression,
)
from holrr.data.samples import open_data
from holrr.kernel._gram import KernelFunction
from holrr.model_selection import surface_search
from holrr.model_selection.intervals import KINDS
from holrr.model_selection.residuals import LEVELS, held_out_scores
from holrr.streaming import memory_budget
from problems import on_disk, toy, with_holes

pytestmark = pytest.mark.filterwarnings("ignore:the best penalty", "ignore:n_components")

SPREADS = ("Trace", "MLMT")


def has_spread(row):
    return not type(row.estimator).__name__.startswith(SPREADS)


def has_intervals(row):
    return has_spread(row) and row.searches and row.params["criterion"] == "cv"


def closed_form(X, Y, new, alpha, *, w=None, fit_intercept=True):
    """Noise and spread of ridge regression, from the dense formulas."""
    w = np.ones(len(X)) if w is None else w
    n = w.sum()
    mx = w @ X / n if fit_intercept else np.zeros(X.shape[1])
    my = np.tensordot(w, Y, 1) / n if fit_intercept else np.zeros(Y.shape[1:])
    Xc, Yc = X - mx, Y - my
    S = np.linalg.pinv(Xc.T @ (w[:, None] * Xc) + alpha * np.eye(X.shape[1]))
    residual = Yc - np.tensordot(Xc @ S @ (Xc.T * w), Yc, 1)
    df = np.trace(S @ Xc.T @ (w[:, None] * Xc)) + fit_intercept
    noise = np.sqrt(np.tensordot(w, residual**2, 1) / (n - df))
    h = np.einsum("ij,jk,ik->i", new - mx, S, new - mx)
    return noise, np.multiply.outer(np.sqrt(1 + fit_intercept / n + h), noise)


# ---------------------------------------------------------------- closed forms


@pytest.mark.parametrize("solver", ["auto", "cholesky", "eigh", "svd"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 0.7, 50.0])
def test_ridge_regression_has_the_closed_form(alpha, fit_intercept, solver):
    X, Y = toy(n=50)
    new = toy(n=9, seed=3)[0]
    w = np.random.default_rng(1).uniform(0.2, 2, len(X))
    w[:4] = 0.0
    for weights in (None, w):
        model = RLS(alpha, fit_intercept=fit_intercept, solver=solver).fit(X, Y, weights)
        noise, std = closed_form(X, Y, new, alpha, w=weights, fit_intercept=fit_intercept)
        assert_allclose(model.noise_, noise, rtol=1e-9)
        assert_allclose(model.predict(new, return_std=True)[1], std, rtol=1e-9)
        assert_array_equal(model.predict(new, return_std=True)[0], model.predict(new))


@pytest.mark.parametrize("solver", ["auto", "cholesky", "eigh"])
def test_fewer_samples_than_features(solver):
    """Directions that no sample has are counted: there the penalty is all that is known."""
    rng = np.random.default_rng(0)
    X, Y, new = rng.normal(size=(12, 30)), rng.normal(size=(12, 4)), rng.normal(size=(5, 30))
    _, std = closed_form(X, Y, new, 0.5)
    for model in (RLS(0.5, solver=solver), KernelRLS(0.5, solver=solver)):
        assert_allclose(model.fit(X, Y).predict(new, return_std=True)[1], std, rtol=1e-8)


def test_more_features_than_numpy_factorises_itself():
    """A Cholesky factorisation instead of eigenvalues."""
    rng = np.random.default_rng(0)
    X, Y, new = rng.normal(size=(400, 260)), rng.normal(size=(400, 3)), rng.normal(size=(5, 260))
    model = RLS(2.0).fit(X, Y)
    assert model.solver_ == "cholesky"
    noise, std = closed_form(X, Y, new, 2.0)
    assert_allclose(model.noise_, noise, rtol=1e-9)
    assert_allclose(model.predict(new, return_std=True)[1], std, rtol=1e-9)
    low = LRR(2, 2.0).fit(X, Y)
    rss = np.sum((Y - low.predict(X)) ** 2, axis=0)
    assert_allclose(low.noise_ / np.sqrt(rss), low.noise_[0] / math.sqrt(rss[0]), rtol=1e-9)


def test_an_interpolating_fit_says_nothing_of_the_noise():
    rng = np.random.default_rng(0)
    model = RLS(0.0).fit(rng.normal(size=(8, 20)), rng.normal(size=(8, 3)))
    assert np.isnan(model.noise_).all()


@pytest.mark.parametrize("solver", ["cholesky", "eigh"])
@pytest.mark.parametrize("options", [{}, {"fit_intercept": False}])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_linear_kernel_has_the_spread_of_the_linear_model(solver, options, weighted):
    X, Y = toy(n=50)
    new = toy(n=9, seed=3)[0]
    w = np.random.default_rng(1).uniform(0.2, 2, len(X)) if weighted else None
    expected = closed_form(X, Y, new, 0.7, w=w, **options)[1]
    for extra in ({"solver": solver}, {"landmarks": X[:20]}):
        model = KernelRLS(0.7, **options, **extra).fit(X, Y, w)
        assert_allclose(model.predict(new, return_std=True)[1], expected, rtol=1e-7)


@pytest.mark.parametrize("solver", ["cholesky", "eigh"])
def test_kernel_ridge_has_the_spread_of_a_gaussian_process(solver):
    """Whose noise has the variance alpha where the prior has one."""
    X, Y = toy(n=40, shape=())
    new = np.vstack([toy(n=9, seed=3)[0], 50 + X[:1]])  # and one far from all that is known
    process = GaussianProcessRegressor(RBF(1.5, "fixed"), alpha=0.3, optimizer=None).fit(X, Y)
    _, expected = process.predict(new, return_std=True)
    model = KernelRLS(0.3, kernel="rbf", gamma=0.5 / 1.5**2, fit_intercept=False, solver=solver)
    _, found = model.fit(X, Y).predict(new, return_std=True)
    assert_allclose(found / model.noise_, np.sqrt((expected**2 + 0.3) / 0.3), rtol=1e-9)


@pytest.mark.parametrize("name", ["linear", "poly", "sigmoid", "rbf", "laplacian", "cosine"])
def test_the_diagonal_of_a_kernel_is_that_of_its_gram_matrix(name, xp):
    X = toy(n=20)[0]
    kernel = KernelFunction(name, {"gamma": 0.1, "coef0": 0.5, "degree": 2})
    expected = np.diagonal(kernel(X))
    if xp.name == "numpy" or name not in ("laplacian", "cosine"):
        assert_allclose(xp.to_numpy(kernel.diagonal(xp.asarray(X))), expected, rtol=1e-12)


def test_precomputed_kernels_have_the_spread_of_the_kernel():
    X, Y = toy(n=40)
    new = toy(n=9, seed=3)[0]
    distance = lambda A: ((A[:, None] - X) ** 2).sum(axis=2)  # noqa: E731
    model = KernelRLS(0.3, kernel="rbf", gamma=0.1).fit(X, Y)
    known = KernelRLS(0.3, kernel="precomputed").fit(np.exp(-0.1 * distance(X)), Y)
    expected = model.predict(new, return_std=True)[1]
    found = known.predict(np.exp(-0.1 * distance(new)), return_std=True)[1]
    assert_allclose(found, expected, rtol=1e-8)


def test_the_limit_of_many_samples_is_the_noise():
    rng = np.random.default_rng(0)
    sigma = np.array([0.1, 1.0, 10.0])
    X = rng.normal(size=(20_000, 5))
    W = rng.normal(size=(5, 2)) @ rng.normal(size=(2, 3))
    Y = X @ W + sigma * rng.normal(size=(20_000, 3))
    for model in (RLS(), LRR(2), RLSCV(), KernelRLS(landmarks=X[:9])):
        mean, std = model.fit(X, Y).predict(X[:50], return_std=True)
        assert_allclose(model.noise_, sigma, rtol=0.03)
        assert_allclose(std, np.broadcast_to(sigma, mean.shape), rtol=0.03)


def test_a_low_rank_fit_has_the_degrees_of_freedom_of_its_parameters():
    X, Y = toy(n=60, d0=6, shape=(5, 7), rank=2)
    model = HOLRR(2, alpha=0.0).fit(X, Y)
    rss = np.sum((Y - model.predict(X)) ** 2, axis=0)
    df = 6 * model.n_parameters_ / (6 * 35) + 1  # for each output, on average
    assert_allclose(model.noise_, np.sqrt(rss / (60 - df)), rtol=1e-9)
    full = HOLRR(alpha=0.0).fit(X, Y)
    assert_allclose(full.noise_, RLS(0.0).fit(X, Y).noise_, rtol=1e-9)
    assert np.all(model.predict(X, return_std=True)[1] <= 1.2 * model.noise_)


def test_constant_outputs_have_no_noise():
    X, Y = toy(n=60)
    Y[:, 1, 2] = 3.0
    for model in (RLS(), RLSCV(alphas=[1.0])):
        assert model.fit(X, Y).noise_[1, 2] < 1e-6
    lower, upper = model.predict_interval(X)
    assert_allclose(upper[:, 1, 2] - lower[:, 1, 2], 0.0, atol=1e-6)
    assert np.isfinite(model.predict_interval(X, 0.9, "simultaneous")[1]).all()


def test_one_output_whose_mean_dwarfs_its_spread_keeps_its_noise():
    """Beside others for which nothing has to be shifted."""
    X, Y = toy(n=200, noise=1.0)
    Y *= 1e9
    Y[:, 0, 0] = 1e7 + np.random.default_rng(1).normal(size=200)
    assert_allclose(RLS(0.0).fit(X, Y).noise_, closed_form(X, Y, X, 0.0)[0], rtol=1e-6)


def test_scale_of_inputs_and_outputs_does_not_matter():
    X, Y = toy(n=60)
    _, std = RLS(0.5).fit(X, Y).predict(X, return_std=True)
    for x, y in ((1e-90, 1e100), (1e90, 1e-100)):
        _, found = RLS(0.5 * x * x).fit(x * X, y * Y).predict(x * X, return_std=True)
        assert_allclose(found / y, std, rtol=1e-8)
    _, found = RLSCV([0.5 * 1e80 * 1e80]).fit(1e80 * X, 1e90 * Y).predict(1e80 * X, return_std=True)
    assert_allclose(found / 1e90, RLSCV([0.5]).fit(X, Y).predict(X, return_std=True)[1], rtol=1e-8)


def test_penalties_beyond_all_floats_leave_the_noise():
    """One that suits the divided inputs would be 1e400; these have more features than samples."""
    X, Y = toy(n=20, d0=30)
    for model in (RLS(1.0), HOLRR(2, 1.0), RLSCV([1.0]), HOLRRCV([1.0])):
        expected = model.fit(1e-140 * X, Y).predict(1e-140 * X, return_std=True)
        found = model.fit(1e-200 * X, Y).predict(1e-200 * X, return_std=True)
        assert_allclose(found, expected, rtol=1e-10)


# ---------------------------------------------------------------- every estimator


def test_every_spread_is_positive_and_survives(row, tmp_path):
    X, Y = toy(n=45)
    model = row.make().fit(X, Y)
    if not has_spread(row):
        with pytest.raises(ValueError, match="return_std needs the noise of each output"):
            model.predict(X, return_std=True)
        return
    model.save(tmp_path / "early.holrr")  # before anybody has asked for the noise
    mean, std = model.predict(X, return_std=True)
    assert_array_equal(holrr.load(tmp_path / "early.holrr").predict(X, return_std=True)[1], std)
    assert mean.shape == std.shape == Y.shape
    assert model.noise_.shape == Y.shape[1:]
    assert np.all(std > model.noise_)
    model.save(tmp_path / "model.holrr")
    for again in (pickle.loads(pickle.dumps(model)), holrr.load(tmp_path / "model.holrr")):
        assert_array_equal(again.predict(X, return_std=True)[1], std)
        if has_intervals(row):
            for kind in ("entry", "pooled", "simultaneous"):
                for a, b in zip(
                    again.predict_interval(X, 0.8, kind),
                    model.predict_interval(X, 0.8, kind),
                    strict=True,
                ):
                    assert_array_equal(a, b)


def test_single_precision_has_the_spread_of_double_precision(row):
    if not has_spread(row):
        pytest.skip("no spread")
    X, Y = toy(n=45)
    _, std = row.make().fit(X, Y).predict(X, return_std=True)
    single = row.make().fit(X.astype(np.float32), Y.astype(np.float32))
    _, found = single.predict(X.astype(np.float32), return_std=True)
    assert found.dtype == np.float32
    assert single.noise_.dtype == np.float32
    assert_allclose(found, std, rtol=2e-3)


def test_scalar_targets_have_a_scalar_noise(row):
    if not has_spread(row):
        pytest.skip("no spread")
    X, y = toy(n=45, shape=())
    model = row.make().fit(X, y)
    assert isinstance(model.noise_, float)
    assert model.predict(X, return_std=True)[1].shape == y.shape
    if has_intervals(row):
        lower, upper = model.predict_interval(X, 0.8)
        assert lower.shape == upper.shape == y.shape


def test_weights_are_repetitions(row):
    if not has_spread(row) or row.searches or row.params.get("n_components"):
        pytest.skip("others are drawn, or divided into folds, of repeated samples")
    X, Y = toy(n=45)
    w = np.random.default_rng(0).integers(0, 3, len(X))
    weighted = row.make().fit(X, Y, w.astype(float))
    repeated = row.make().fit(np.repeat(X, w, axis=0), np.repeat(Y, w, axis=0))
    for a, b in zip(
        weighted.predict(X, return_std=True), repeated.predict(X, return_std=True), strict=True
    ):
        if "Kernel" in row.id:  # a repeated sample is one more dual coefficient
            assert_allclose(a / b, np.full_like(a, (a / b).mean()), rtol=0.2)
        else:
            row.near(a, b, 10)


def test_data_beyond_memory_have_the_spread_of_those_in_memory(row, tmp_path):
    if not has_spread(row) or not row.streams:
        pytest.skip("no spread, or no data beyond memory")
    X, Y = toy(n=200, shape=(4, 3))
    params = row.pinned(X)
    disk = on_disk(tmp_path, "X", X), on_disk(tmp_path, "Y", Y)
    with memory_budget(2**12):
        there = row.make(**params).fit(*disk)
    here = row.make(**params).fit(X, Y)
    # Held-out residuals of a search are looked at one by one, or through their moments.
    factor = 3e-2 / row.tol if row.searches else 10
    for a, b in zip(
        there.predict(X, return_std=True), here.predict(X, return_std=True), strict=True
    ):
        row.near(a, b, factor)
    if row.batches:
        batched = row.make(**params).partial_fit(X[:90], Y[:90]).partial_fit(X[90:], Y[90:])
        row.near(batched.predict(X, return_std=True)[1], here.predict(X, return_std=True)[1], 10)


@pytest.mark.parametrize("n", [30, 90])  # few held-out scores and many
@pytest.mark.parametrize("cv", [4, ShuffleSplit(3, test_size=0.3, random_state=0)])
def test_intervals_are_the_same_for_other_array_libraries(row, xp, n, cv, monkeypatch):
    """An output without noise, samples held out several times or never; one block and several."""
    if not has_intervals(row):
        pytest.skip("no intervals")
    X, Y = toy(n=n, shape=(4, 3))
    Y[:, 0, 0] = 2.0
    monkeypatch.setattr("holrr.model_selection.residuals._DEVICE_BLOCK", 8 * n * 5)
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


def test_outputs_wider_than_memory_have_their_noise(tmp_path):
    X, Y = toy(n=60, shape=(40, 50))
    disk = on_disk(tmp_path, "X", X), on_disk(tmp_path, "Y", Y)
    for model in (HOLRR(2), RLS()):
        here = model.fit(X, Y).noise_
        with memory_budget(2**14):
            assert_allclose(model.fit(*disk).noise_, here, rtol=1e-9)


def test_dask_arrays_have_lazy_spreads(row):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    if not has_spread(row) or not row.streams:
        pytest.skip("no spread, or no data beyond memory")
    X, Y = toy(n=60)
    model = row.make(**row.pinned(X)).fit(X, Y)
    lazy = model.predict(da.from_array(X, chunks=25), return_std=True)
    for a, b in zip(lazy, model.predict(X, return_std=True), strict=True):
        assert_allclose(a.compute(), b, rtol=1e-10)
    if has_intervals(row):
        found = model.predict_interval(da.from_array(X, chunks=25), 0.8)
        for a, b in zip(found, model.predict_interval(X, 0.8), strict=True):
            assert_allclose(a.compute(), b, rtol=1e-10)


def test_arrays_of_every_library_have_spreads(xp):
    X, Y = toy(n=45)
    for model in (RLS(), HOLRR(2), KernelRLS(kernel="rbf", gamma=0.1), HOLRRCV([1.0, 3.0], cv=3)):
        expected = model.fit(X, Y).predict(X, return_std=True)
        found = model.fit(xp.asarray(X), xp.asarray(Y)).predict(xp.asarray(X), return_std=True)
        for a, b in zip(found, expected, strict=True):
            assert xp.owns(a)
            assert_allclose(xp.to_numpy(a), b, rtol=1e-8)
    lower, upper = model.predict_interval(xp.asarray(X))
    assert xp.owns(lower)
    assert np.all(xp.to_numpy(lower) < xp.to_numpy(upper))


def test_single_precision_and_scalar_targets_of_every_library(xp):
    X, y = (A.astype(np.float32) for A in toy(n=45, shape=()))
    here, there = (HOLRRCV([1.0, 3.0], cv=3).fit(f(X), f(y)) for f in (np.asarray, xp.asarray))
    found, expected = there.predict_interval(xp.asarray(X)), here.predict_interval(X)
    assert_allclose(xp.to_numpy(found[0]), expected[0], rtol=1e-3, atol=1e-3)


def test_labels_are_those_of_predictions():
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


# ---------------------------------------------------------------- holes and weights of outputs


def test_missing_outputs_have_the_noise_of_what_is_observed():
    X, Y = toy(n=400, noise=1.0)
    holes = with_holes(Y, 0.3)
    for model in (RLS(missing="fill"), HOLRR(2, missing="fill"), LRR(2, missing="fill")):
        whole = type(model)(**model.get_params()).fit(X, Y).noise_
        assert_allclose(model.fit(X, holes).noise_, whole, rtol=0.15)
    seen = ~np.isnan(holes)
    rss = np.sum(np.where(seen, holes - model.predict(X), 0.0) ** 2, axis=0)
    df = 5 * model.n_parameters_ / 60 + 1
    assert_allclose(model.noise_, np.sqrt(rss / (seen.sum(axis=0) - df)), rtol=1e-3)


@pytest.mark.parametrize("make", [RLSCV, LRRCV, HOLRRCV])
def test_intervals_of_missing_outputs_cover(make):
    X, Y = toy(n=300, noise=1.0)
    new, there = toy(n=300, noise=1.0, seed=0)
    rng = np.random.default_rng(5)
    new = rng.normal(size=(2000, 5)) + 1
    W = np.linalg.lstsq(np.c_[np.ones(300), X], Y.reshape(300, -1), rcond=None)[0]
    there = (np.c_[np.ones(2000), new] @ W).reshape(-1, 3, 4) + rng.normal(size=(2000, 3, 4))
    holes = with_holes(Y, 0.3)
    holes[:, 2, 3] = np.nan  # nobody knows
    holes[np.arange(300) % 50 > 0, 0, 0] = np.nan  # hardly anybody
    model = make(missing="fill").fit(X, holes)
    lower, upper = model.predict_interval(new)
    assert np.isnan(lower[:, 2, 3]).all()
    assert np.isinf(upper[:, 0, 0]).all()
    inside = ((lower <= there) & (there <= upper))[:, 1]
    assert 0.87 < inside.mean() < 0.93
    lower, upper = model.predict_interval(new, kind="pooled")
    assert 0.87 < ((lower <= there) & (there <= upper))[:, 1].mean() < 0.93


def test_output_weights_leave_the_noise_of_ridge_regression():
    X, Y = toy(n=60)
    weights = [[1.0, 4.0, 0.0], None]
    plain, weighted = RLS().fit(X, Y), RLS(output_weight=weights).fit(X, Y)
    assert_allclose(weighted.noise_[:2], plain.noise_[:2], rtol=1e-9)
    assert np.isnan(weighted.noise_[2]).all()
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


# ---------------------------------------------------------------- moments


def test_moments_have_the_squares_of_each_output_however_they_are_merged():
    X, Y = toy(n=90)
    Y[:, 0, 0] += 1e6
    w = np.random.default_rng(0).uniform(size=90)
    for weights in (None, w):
        v = np.ones(90) if weights is None else weights
        expected = np.tensordot(v, (Y - np.tensordot(v, Y, 1) / v.sum()) ** 2, 1)
        parts = [
            Moments.from_arrays(X[s], Y[s], None if weights is None else weights[s])
            for s in (slice(0, 1), slice(1, 40), slice(40, 90))
        ]
        merged = parts[2] + parts[0] + parts[1]
        assert_allclose(merged.squares, expected, rtol=1e-6)
        assert_allclose(merged.squares.sum(), merged.syy, rtol=1e-12)
        zero = merged.about_zero()
        assert_allclose(zero.squares, np.tensordot(v, Y**2, 1), rtol=1e-12)


def test_moments_of_an_older_file_fit_but_have_no_noise(tmp_path):
    X, Y = toy(n=60)
    new = Moments.from_arrays(X, Y)
    replace(new, squares=None).save(tmp_path / "old.holrr")
    old = Moments.load(tmp_path / "old.holrr")
    assert (old + new).squares is None
    model = RLS().fit_moments(old)
    assert_allclose(model.predict(X), RLS().fit_moments(new).predict(X))
    assert not hasattr(model, "noise_")
    with pytest.raises(ValueError, match="older version, without the sums of squares"):
        model.predict(X, return_std=True)
    folds = [replace(Moments.from_arrays(X[s], Y[s]), squares=None) for s in np.s_[:30, 30:]]
    search = RLSCV([1.0]).fit_fold_moments(folds)
    assert_array_equal(search.predict(X).shape, Y.shape)
    with pytest.raises(ValueError, match="moments of an older version"):
        search.predict_interval(X)


def test_fold_moments_give_normal_intervals():
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


# ---------------------------------------------------------------- intervals


def out_of_fold(X, Y, alpha, splits):
    """Scaled residuals of ridge regression, fold by fold, from the dense formulas."""
    scores = np.empty_like(Y)
    for train, test in splits:
        noise, std = closed_form(X[train], Y[train], X[test], alpha)
        residual = Y[test] - RLS(alpha).fit(X[train], Y[train]).predict(X[test])
        scores[test] = residual / (std / noise)
    return scores


@pytest.mark.filterwarnings("error")
def test_outputs_without_noise_have_intervals_without_width():
    X = toy(n=60)[0]
    for kind in KINDS:
        lower, upper = RLSCV([1.0]).fit(X, np.full((60, 2, 3), 3.0)).predict_interval(X, 0.9, kind)
        assert_allclose(lower, 3.0)
        assert_allclose(upper, 3.0)


def test_samples_that_were_not_observed_have_no_say():
    X, Y = toy(n=60)
    more = np.concatenate([X, toy(n=40, seed=1)[0]])
    holes = np.concatenate([Y, np.full((40, *Y.shape[1:]), np.nan)])
    test = np.arange(100) % 5
    gaps = RLSCV([0.1], cv=PredefinedSplit(test), missing="fill").fit(more, holes)
    there = RLSCV([0.1], cv=PredefinedSplit(test[:60])).fit(X, Y)
    for kind in KINDS:
        assert_allclose(
            gaps.predict_interval(X, 0.9, kind), there.predict_interval(X, 0.9, kind), rtol=1e-3
        )


def test_bands_know_that_the_largest_residual_may_be_missing():
    inside = []
    for seed in range(12):
        X, Y = toy(n=600, seed=seed)
        holes = Y[:100].copy()
        holes[np.random.default_rng(seed).random(holes.shape) < 0.5] = np.nan
        model = RLSCV([1.0], missing="fill").fit(X[:100], holes)
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
def test_samples_have_no_say_in_their_own_unit(cv):
    inside = []
    for seed in range(40):
        X, Y = toy(n=260, d0=2, shape=(5, 8), seed=seed)
        lower, upper = (
            RLSCV([1.0], cv=cv).fit(X[:60], Y[:60]).predict_interval(X[60:], 0.9, "simultaneous")
        )
        inside.append(((lower <= Y[60:]) & (Y[60:] <= upper)).all(axis=(1, 2)).mean())
    assert 0.88 < np.mean(inside) < 0.95


def test_pooled_residuals_of_few_samples_are_many():
    inside = []
    for seed in range(5):
        X, Y = toy(n=212, d0=1, shape=(10, 20), seed=seed)
        lower, upper = RLSCV([1.0]).fit(X[:12], Y[:12]).predict_interval(X[12:], 0.95, "pooled")
        inside.append(((lower <= Y[12:]) & (Y[12:] <= upper)).mean())
    assert 0.92 < np.mean(inside) < 0.965


def test_all_outputs_are_in_the_pool_however_many_samples_there_are(monkeypatch):
    X, Y = toy(n=2000, shape=(5,))
    Y[:, 0] = 1.0
    model = RLSCV([1.0]).fit(X, Y)
    monkeypatch.setattr("holrr.model_selection.residuals._POOL", 2000)  # one of five
    few = RLSCV([1.0]).fit(X, Y)
    widths = [np.diff(m.predict_interval(X[:1], 0.9, "pooled"), axis=0) for m in (few, model)]
    assert_allclose(*widths, rtol=0.1)


@pytest.mark.parametrize("make", [RLSCV, partial(KernelRLSCV, kernel="linear")])
def test_intervals_are_quantiles_of_the_scaled_out_of_fold_residuals(make):
    X, Y = toy(n=39)  # (39 + 1) 0.9 = 36: an order statistic, and no interpolation
    splits = list(KFold(3).split(X))
    model = make([0.7], cv=splits).fit(X, Y)
    scores = out_of_fold(X, Y, 0.7, splits)
    assert_allclose(model.noise_, np.sqrt(np.mean(scores**2, axis=0)), rtol=1e-7)
    new = toy(n=9, seed=3)[0]
    spread = closed_form(X, Y, new, 0.7)[1] / closed_form(X, Y, new, 0.7)[0]
    lower, upper = model.predict_interval(new, 0.9)
    assert_allclose((upper - lower) / 2, spread * np.sort(abs(scores), axis=0)[35], rtol=1e-6)
    assert_allclose((upper + lower) / 2, model.predict(new), rtol=1e-7)
    # Each fold in units of the noise that the others find.
    for _, test in splits:
        others = np.setdiff1d(np.arange(39), test)
        scores[test] /= np.sqrt(np.mean(out_of_fold(X, Y, 0.7, splits)[others] ** 2, axis=0))
    top = np.sort(abs(scores).max(axis=(1, 2)))[35]
    lower, upper = model.predict_interval(new, 0.9, "simultaneous")
    assert_allclose((upper - lower) / 2, spread * model.noise_ * top, rtol=1e-6)
    pooled = np.sort(abs(scores).ravel())
    lower, upper = model.predict_interval(new, 0.5, "pooled")
    middle = (upper - lower) / 2 / spread / model.noise_
    assert np.all((middle > pooled[225]) & (middle < pooled[245]))


def test_the_residuals_are_those_of_the_held_out_error(row, monkeypatch):
    """Those of a stack, too, with the weights that the other folds give it."""
    if not has_intervals(row):
        pytest.skip("no held-out residuals")
    seen = []

    def watched(fits):
        seen.extend(fits)
        return held_out_scores(fits)

    monkeypatch.setattr(surface_search, "held_out_scores", watched)
    X, Y = toy(n=60, noise=1.5)
    w = np.random.default_rng(0).uniform(0.5, 2, 60)
    for weights in (None, w):
        seen.clear()
        model = row.make().fit(X, Y, weights)
        errors = []
        for fold in seen:
            squares = (fold.scaled(slice(None)) * fold.spread[:, None]) ** 2
            errors.append(np.average(squares.mean(axis=1), weights=fold.w))
        assert_allclose(np.mean(errors), -model.best_score_, rtol=1e-8)


def test_time_blocked_folds_use_their_own_residuals():
    """A trend that no input explains: what comes next lies off the mean of what came before."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(200, 3)), np.linspace(0, 50, 200)[:, None] + rng.normal(size=(200, 2))
    shuffled = RLSCV([1.0], cv=KFold(5, shuffle=True, random_state=0)).fit(X, Y)
    blocked = RLSCV([1.0], cv=TimeSeriesSplit(5)).fit(X, Y)
    width = lambda m: np.ptp(m.predict_interval(X[:1]), axis=0).mean()  # noqa: E731
    assert width(blocked) > 1.1 * width(shuffled)


def test_wider_coverage_is_wider_and_simultaneous_the_widest(row):
    if not has_intervals(row):
        pytest.skip("no held-out residuals")
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


def test_weights_count_in_the_quantiles():
    """Weights of one and zero are samples that are there and not."""
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
    w = np.where(w > 0, 1.0, 1e-9)  # nearly the same, by another way
    nearly = RLSCV([1.0], cv=splits).fit(X, Y, w)
    for a, b in zip(nearly.predict_interval(X, 0.8), alone.predict_interval(X, 0.8), strict=True):
        assert_allclose(a, b, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("noise", ["normal", "heavy", "uneven"])
@pytest.mark.parametrize("n", [50, 400])
def test_intervals_cover(noise, n):
    """Also a stack, whose residuals are those of cross-fitted weights."""
    found = []
    for seed in range(12 if n == 50 else 3):
        rng = np.random.default_rng(seed)
        X, Y = toy(n=n + 500, noise=0.0, seed=seed)
        E = rng.standard_t(3, Y.shape) if noise == "heavy" else rng.normal(size=Y.shape)
        Y = Y + E * (np.geomspace(0.1, 10, 12).reshape(3, 4) if noise == "uneven" else 1.0)
        model = HOLRRCV(ranks=3).fit(X[:n], Y[:n])
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


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize("coverage", [0, 1, -0.1, 1.5, math.nan, "0.9", None])
def test_coverage_lies_between_zero_and_one(coverage):
    X, Y = toy(n=30)
    model = RLSCV([1.0]).fit(X, Y)
    with pytest.raises(ValueError, match="coverage must be a number between 0 and 1"):
        model.predict_interval(X, coverage)


def test_intervals_say_what_they_lack():
    X, Y = toy(n=30)
    model = RLSCV([1.0]).fit(X, Y)
    with pytest.raises(ValueError, match="kind must be one of 'entry', 'pooled', 'simultaneous'"):
        model.predict_interval(X, kind="all")
    with pytest.raises(ValueError, match=r"coverage=0\.99 needs 99 held-out samples at least"):
        model.predict_interval(X, 0.99)
    model.predict_interval(X, 0.99, "pooled")
    with pytest.raises(ValueError, match="it went by an information criterion"):
        RLSCV([1.0], criterion="gcv").fit(X, Y).predict_interval(X)
    del model._fitted_intervals  # as in a file of an older version
    with pytest.raises(ValueError, match="a file or moments of an older version"):
        model.predict_interval(X)
    with pytest.raises(ValueError, match="return_std needs the noise of each output"):
        TraceNormRegression().fit(X, Y).predict(X, return_std=True)
    assert not hasattr(RLS(), "predict_interval")


def test_levels_go_up_to_the_largest():
    assert np.all(np.diff(LEVELS) > 0)
    assert LEVELS[-1] == 1.0


def test_without_a_search_there_are_no_intervals_and_the_error_says_why(row):
    X, Y = toy()
    model = row.make().fit(X, Y)
    if hasattr(model, "predict_interval"):
        assert row.searches
        return
    with pytest.raises(AttributeError, match=r"held-out residuals of a search.*use HOLRRCV"):
        model.predict_interval(X)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rounding_of_an_output_without_noise_is_no_score(dtype):
    """Its residuals are not zero to the last bit, and say nothing of those of others."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(3.0, 1.0, size=(60, 4)), rng.normal(size=(60, 5))
    constant = np.full((60, 3), [0.1, 1 / 3, 1e5 / 7])
    linear = X @ rng.normal(size=(4, 2))
    alone, beside = (
        RLSCV(alphas=[0.0], cv=4).fit(X.astype(dtype), A.astype(dtype))
        for A in (Y, np.concatenate([constant, Y, linear], axis=1))
    )
    tol = 1e-6 if dtype is np.float64 else 1e-3
    for kind in ("pooled", "simultaneous"):
        assert_allclose(beside._fitted_intervals[kind], alone._fitted_intervals[kind], rtol=tol)


@pytest.mark.parametrize("cls", [HOLRR, KernelHOLRR])
def test_a_mixture_spreads_as_much_as_its_mask_keeps(cls):
    """Of a mask of halves, half the directions are left."""
    whole, half = cls(2), cls(2)
    whole._fit_data(open_data(*toy()))
    half._fit_data(open_data(*toy()), mask=np.full(whole.rank_, 0.5))
    assert half._fitted_hat["share"] == pytest.approx(whole._fitted_hat["share"] / 2)
