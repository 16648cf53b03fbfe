"""Noise and standard deviations of predictions: closed forms, limits, and every estimator."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics.pairwise import pairwise_kernels

import holrr
import reference
from holrr import (
    HOLRR,
    HOLRRCV,
    LRR,
    RLS,
    RLSCV,
    KernelHOLRR,
    KernelHOLRRCV,
    KernelRLS,
    KernelRLSCV,
    Moments,
)
from holrr.streaming import memory_budget
from problems import on_disk, toy, with_missing

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty", "ignore:landmarks=")

# ---------------------------------------------------------------- closed forms


@pytest.mark.parametrize("solver", ["auto", "cholesky", "svd"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 0.7, 50.0])
def test_noise_and_std_of_ridge_regression_equal_dense_formulas(
    alpha, fit_intercept, solver, use_solver
):
    use_solver(solver)
    X, Y = toy(n=50)
    new = toy(n=9, seed=3)[0]
    w = np.random.default_rng(1).uniform(0.2, 2, len(X))
    w[:4] = 0.0
    for weights in (None, w):
        model = RLS(alpha, fit_intercept=fit_intercept).fit(X, Y, weights)
        noise, std = reference.ridge_std(X, Y, new, alpha, w=weights, fit_intercept=fit_intercept)
        assert_allclose(model.noise_, noise, rtol=1e-9)
        assert_allclose(model.predict(new, return_std=True)[1], std, rtol=1e-9)
        assert_array_equal(model.predict(new, return_std=True)[0], model.predict(new))


@pytest.mark.parametrize("solver", ["auto", "eigh"])
def test_std_with_fewer_samples_than_features(solver, use_solver):
    """In directions that no sample has, the leverage is that of the penalty."""
    use_solver(solver)
    rng = np.random.default_rng(0)
    X, Y, new = rng.normal(size=(12, 30)), rng.normal(size=(12, 4)), rng.normal(size=(5, 30))
    _, std = reference.ridge_std(X, Y, new, 0.5)
    for model in (RLS(0.5), KernelRLS(0.5)):
        assert_allclose(model.fit(X, Y).predict(new, return_std=True)[1], std, rtol=1e-8)


def test_noise_and_std_from_a_cholesky_factorisation():
    rng = np.random.default_rng(0)
    X, Y, new = rng.normal(size=(400, 260)), rng.normal(size=(400, 3)), rng.normal(size=(5, 260))
    model = RLS(2.0).fit(X, Y)
    assert model.solver_ == "cholesky"
    noise, std = reference.ridge_std(X, Y, new, 2.0)
    assert_allclose(model.noise_, noise, rtol=1e-9)
    assert_allclose(model.predict(new, return_std=True)[1], std, rtol=1e-9)
    low = LRR(2, 2.0).fit(X, Y)
    rss = np.sum((Y - low.predict(X)) ** 2, axis=0)
    assert_allclose(low.noise_ / np.sqrt(rss), low.noise_[0] / math.sqrt(rss[0]), rtol=1e-9)


def test_noise_of_an_interpolating_fit_is_nan():
    rng = np.random.default_rng(0)
    model = RLS(0.0).fit(rng.normal(size=(8, 20)), rng.normal(size=(8, 3)))
    assert np.isnan(model.noise_).all()


@pytest.mark.parametrize("solver", ["auto", "eigh"])
@pytest.mark.parametrize("options", [{}, {"fit_intercept": False}])
@pytest.mark.parametrize("weighted", [False, True])
def test_linear_kernel_has_the_std_of_the_linear_model(solver, options, weighted, use_solver):
    use_solver(solver)
    X, Y = toy(n=50)
    new = toy(n=9, seed=3)[0]
    w = np.random.default_rng(1).uniform(0.2, 2, len(X)) if weighted else None
    expected = reference.ridge_std(X, Y, new, 0.7, w=w, **options)[1]
    for extra in ({}, {"landmarks": X[:20]}):
        model = KernelRLS(0.7, **options, **extra).fit(X, Y, w)
        assert_allclose(model.predict(new, return_std=True)[1], expected, rtol=1e-7)


@pytest.mark.parametrize("solver", ["auto", "eigh"])
def test_kernel_ridge_has_the_std_of_a_gaussian_process(solver, use_solver):
    """The noise of the process has variance alpha where its prior has variance one."""
    use_solver(solver)
    X, Y = toy(n=40, shape=())
    new = np.vstack([toy(n=9, seed=3)[0], 50 + X[:1]])  # and one far from all samples
    process = GaussianProcessRegressor(RBF(1.5, "fixed"), alpha=0.3, optimizer=None).fit(X, Y)
    _, expected = process.predict(new, return_std=True)
    model = KernelRLS(0.3, kernel="rbf", gamma=0.5 / 1.5**2, fit_intercept=False)
    _, found = model.fit(X, Y).predict(new, return_std=True)
    assert_allclose(found / model.noise_, np.sqrt((expected**2 + 0.3) / 0.3), rtol=1e-9)


@pytest.mark.parametrize("name", ["linear", "poly", "rbf", "laplacian", "cosine"])
def test_std_of_every_kernel_is_the_dense_formula(name):
    X, Y = toy(n=20)
    new, known = toy(n=9, seed=3)[0], {"gamma": 0.1, "coef0": 0.5, "degree": 2}
    K, F = (pairwise_kernels(A, X, name, filter_params=True, **known) for A in (X, new))
    norms = np.diagonal(pairwise_kernels(new, metric=name, filter_params=True, **known))
    h = (norms - np.sum(F * np.linalg.solve(K + 0.3 * np.eye(20), F.T).T, axis=1)) / 0.3
    model = KernelRLS(0.3, kernel=name, fit_intercept=False, **known).fit(X, Y)
    _, found = model.predict(new, return_std=True)
    assert_allclose(found / model.noise_, np.sqrt(1 + h)[:, None, None] + 0 * found, rtol=1e-8)


def test_precomputed_kernel_has_the_std_of_the_kernel():
    X, Y = toy(n=40)
    new = toy(n=9, seed=3)[0]
    distance = lambda A: ((A[:, None] - X) ** 2).sum(axis=2)  # noqa: E731
    model = KernelRLS(0.3, kernel="rbf", gamma=0.1).fit(X, Y)
    known = KernelRLS(0.3, kernel="precomputed").fit(np.exp(-0.1 * distance(X)), Y)
    expected = model.predict(new, return_std=True)[1]
    found = known.predict(np.exp(-0.1 * distance(new)), return_std=True)[1]
    assert_allclose(found, expected, rtol=1e-8)


def test_std_of_many_samples_approaches_the_noise():
    rng = np.random.default_rng(0)
    sigma = np.array([0.1, 1.0, 10.0])
    X = rng.normal(size=(20_000, 5))
    W = rng.normal(size=(5, 2)) @ rng.normal(size=(2, 3))
    Y = X @ W + sigma * rng.normal(size=(20_000, 3))
    for model in (RLS(), LRR(2), RLSCV(), KernelRLS(landmarks=X[:9])):
        mean, std = model.fit(X, Y).predict(X[:50], return_std=True)
        assert_allclose(model.noise_, sigma, rtol=0.03)
        assert_allclose(std, np.broadcast_to(sigma, mean.shape), rtol=0.03)


def test_low_rank_fit_has_the_degrees_of_freedom_of_its_parameters():
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


def test_noise_of_an_output_with_a_large_mean_does_not_cancel():
    """The other outputs are so large that nothing has to be shifted for them."""
    X, Y = toy(n=200, noise=1.0)
    Y *= 1e9
    Y[:, 0, 0] = 1e7 + np.random.default_rng(1).normal(size=200)
    assert_allclose(RLS(0.0).fit(X, Y).noise_, reference.ridge_std(X, Y, X, 0.0)[0], rtol=1e-6)


def test_std_does_not_depend_on_the_units():
    X, Y = toy(n=60)
    _, std = RLS(0.5).fit(X, Y).predict(X, return_std=True)
    for x, y in ((1e-90, 1e100), (1e90, 1e-100)):
        _, found = RLS(0.5 * x * x).fit(x * X, y * Y).predict(x * X, return_std=True)
        assert_allclose(found / y, std, rtol=1e-8)
    _, found = RLSCV([0.5 * 1e80 * 1e80]).fit(1e80 * X, 1e90 * Y).predict(1e80 * X, return_std=True)
    assert_allclose(found / 1e90, RLSCV([0.5]).fit(X, Y).predict(X, return_std=True)[1], rtol=1e-8)


def test_noise_with_a_penalty_that_overflows_in_scaled_units():
    """The penalty for scaled inputs would be 1e400; there are more features than samples."""
    X, Y = toy(n=20, d0=30)
    for model in (RLS(1.0), HOLRR(2, 1.0), RLSCV([1.0]), HOLRRCV([1.0])):
        expected = model.fit(1e-140 * X, Y).predict(1e-140 * X, return_std=True)
        found = model.fit(1e-200 * X, Y).predict(1e-200 * X, return_std=True)
        assert_allclose(found, expected, rtol=1e-10)


# ---------------------------------------------------------------- every estimator


@pytest.mark.rows("has_noise")
def test_std_is_above_the_noise_and_is_kept_by_files_and_pickles(row, tmp_path):
    X, Y = toy(n=45)
    model = row.make().fit(X, Y)
    model.save(tmp_path / "early.holrr")  # before the noise is computed
    mean, std = model.predict(X, return_std=True)
    assert_array_equal(holrr.load(tmp_path / "early.holrr").predict(X, return_std=True)[1], std)
    assert mean.shape == std.shape == Y.shape
    assert model.noise_.shape == Y.shape[1:]
    assert np.all(std > model.noise_)
    model.save(tmp_path / "model.holrr")
    for again in (pickle.loads(pickle.dumps(model)), holrr.load(tmp_path / "model.holrr")):
        assert_array_equal(again.predict(X, return_std=True)[1], std)


def test_return_std_raises_where_the_noise_is_not_known(row):
    X, Y = toy(n=45)
    model = row.make().fit(X, Y)
    assert hasattr(model, "noise_") == row.has_noise
    if not row.has_noise:
        with pytest.raises(ValueError, match="return_std=True needs the noise of each output"):
            model.predict(X, return_std=True)


@pytest.mark.rows("has_noise")
def test_std_in_single_precision_is_that_in_double_precision(row):
    X, Y = toy(n=45)
    _, std = row.make().fit(X, Y).predict(X, return_std=True)
    single = row.make().fit(X.astype(np.float32), Y.astype(np.float32))
    _, found = single.predict(X.astype(np.float32), return_std=True)
    assert found.dtype == np.float32
    assert single.noise_.dtype == np.float32
    assert_allclose(found, std, rtol=2e-3)


@pytest.mark.rows("has_noise")
def test_noise_of_scalar_targets_is_a_float(row):
    X, y = toy(n=45, shape=())
    model = row.make().fit(X, y)
    assert isinstance(model.noise_, float)
    assert model.predict(X, return_std=True)[1].shape == y.shape


@pytest.mark.rows("has_noise")
def test_std_with_integer_weights_is_that_of_repeated_samples(row):
    if row.searches or row.params.get("landmarks"):
        pytest.skip("repeated samples are divided into other folds, or others are drawn")
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


@pytest.mark.rows("has_noise", "streams")
def test_std_of_data_read_in_blocks_is_that_of_data_in_memory(row, tmp_path):
    X, Y = toy(n=200, shape=(4, 3))
    params = row.pinned(X)
    disk = on_disk(tmp_path, "X", X), on_disk(tmp_path, "Y", Y)
    with memory_budget(2**12):
        there = row.make(**params).fit(*disk)
    here = row.make(**params).fit(X, Y)
    # The held-out residuals of a search are known one by one, or through their moments.
    factor = 3e-2 / row.tol if row.searches else 10
    for a, b in zip(
        there.predict(X, return_std=True), here.predict(X, return_std=True), strict=True
    ):
        row.near(a, b, factor)
    if row.batches:
        batched = row.make(**params).partial_fit(X[:90], Y[:90]).partial_fit(X[90:], Y[90:])
        row.near(batched.predict(X, return_std=True)[1], here.predict(X, return_std=True)[1], 10)


def test_noise_of_outputs_larger_than_memory(tmp_path):
    X, Y = toy(n=60, shape=(40, 50))
    disk = on_disk(tmp_path, "X", X), on_disk(tmp_path, "Y", Y)
    for model in (HOLRR(2), RLS()):
        here = model.fit(X, Y).noise_
        with memory_budget(2**14):
            assert_allclose(model.fit(*disk).noise_, here, rtol=1e-9)


@pytest.mark.rows("has_noise", "streams")
def test_std_of_dask_arrays_is_lazy(row):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    X, Y = toy(n=60)
    model = row.make(**row.pinned(X)).fit(X, Y)
    lazy = model.predict(da.from_array(X, chunks=25), return_std=True)
    for a, b in zip(lazy, model.predict(X, return_std=True), strict=True):
        assert_allclose(a.compute(), b, rtol=1e-10)


def test_std_in_every_array_library(xp):
    X, Y = toy(n=45)
    for model in (RLS(), HOLRR(2), KernelRLS(kernel="rbf", gamma=0.1), HOLRRCV([1.0, 3.0], cv=3)):
        expected = model.fit(X, Y).predict(X, return_std=True)
        found = model.fit(xp.asarray(X), xp.asarray(Y)).predict(xp.asarray(X), return_std=True)
        for a, b in zip(found, expected, strict=True):
            assert xp.owns(a)
            assert_allclose(xp.to_numpy(a), b, rtol=1e-8)


# ---------------------------------------------------------------- missing outputs, output weights


def test_noise_with_missing_outputs_is_that_of_observed_entries():
    X, Y = toy(n=400, noise=1.0)
    missing = with_missing(Y, 0.3)
    for model in (RLS(missing="ignore"), HOLRR(2, missing="ignore"), LRR(2, missing="ignore")):
        whole = type(model)(**model.get_params()).fit(X, Y).noise_
        assert_allclose(model.fit(X, missing).noise_, whole, rtol=0.15)
    seen = ~np.isnan(missing)
    rss = np.sum(np.where(seen, missing - model.predict(X), 0.0) ** 2, axis=0)
    df = 5 * model.n_parameters_ / 60 + 1
    assert_allclose(model.noise_, np.sqrt(rss / (seen.sum(axis=0) - df)), rtol=1e-3)


def test_output_weights_do_not_change_the_noise_of_ridge_regression():
    X, Y = toy(n=60)
    weights = [[1.0, 4.0, 0.0], None]
    plain, weighted = RLS().fit(X, Y), RLS(output_weight=weights).fit(X, Y)
    assert_allclose(weighted.noise_[:2], plain.noise_[:2], rtol=1e-9)
    assert np.isnan(weighted.noise_[2]).all()


# ---------------------------------------------------------------- moments


def test_merged_moments_have_the_squares_of_each_output():
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


def test_moments_without_squares_give_fits_without_noise(tmp_path):
    X, Y = toy(n=60)
    new = Moments.from_arrays(X, Y)
    replace(new, squares=None).save(tmp_path / "old.holrr")
    old = Moments.load(tmp_path / "old.holrr")
    assert (old + new).squares is None
    model = RLS().fit_moments(old)
    assert_allclose(model.predict(X), RLS().fit_moments(new).predict(X))
    assert not hasattr(model, "noise_")
    with pytest.raises(ValueError, match="the moments of the fit lack the sums of squares"):
        model.predict(X, return_std=True)
    folds = [replace(Moments.from_arrays(X[s], Y[s]), squares=None) for s in np.s_[:30, 30:]]
    search = RLSCV([1.0]).fit_fold_moments(folds)
    assert_array_equal(search.predict(X).shape, Y.shape)
    with pytest.raises(ValueError, match="moments without sums of squares"):
        search.predict_interval(X)


def shares(model, X, new):
    """The part of a prediction's variance that the coefficients cause, relative to the noise."""
    _, std = model.predict(new, return_std=True)
    return (std / model.noise_) ** 2 - 1 - 1 / len(X)


@pytest.mark.parametrize(
    ("search", "single", "ridge", "ridge_search"),
    [
        (HOLRRCV([2.0], cv=3), HOLRR(alpha=2.0), RLS(2.0), RLSCV([2.0], cv=3)),
        (
            KernelHOLRRCV([2.0], cv=3, kernel="linear"),
            KernelHOLRR(alpha=2.0, kernel="linear"),
            KernelRLS(2.0, kernel="linear"),
            KernelRLSCV([2.0], cv=3, kernel="linear"),
        ),
    ],
    ids=["linear", "kernel"],
)
def test_the_variance_of_a_stack_is_the_weighted_mean_of_those_of_its_parts(
    search, single, ridge, ridge_search, use_solver
):
    """What the weights lack of one is that of the mean, which has none."""
    use_solver("eigh")  # stacks use it, and a Cholesky factorisation rounds the rank of a kernel
    X, Y = toy(n=30, shape=(4, 3), noise=3.0)
    new = toy(n=9, seed=3)[0]
    stack = search.set_params(selection="stack").fit(X, Y)
    assert len(stack.stack_weights_) > 1
    whole, total = shares(ridge.fit(X, Y), X, new), 0.0
    for rank, weight in zip(stack.stack_ranks_, stack.stack_weights_, strict=True):
        part = 1.0 if rank is None else shares(single.set_params(rank=rank).fit(X, Y), X, new)
        total = total + weight * part / (1.0 if rank is None else whole)
    expected = total * shares(ridge_search.fit(X, Y), X, new)
    assert_allclose(shares(stack, X, new), expected, rtol=1e-6)


# ---------------------------------------------------------------- variance of the coefficients


def dense_shares(X, new, alpha, prior):
    """Of coefficients of variance `prior` and noise of variance one."""
    A = np.linalg.solve(X @ X.T + alpha * np.eye(len(X)), X @ new.T)  # predictions are A'Y
    return (A**2).sum(axis=0) + prior * ((new.T - X.T @ A) ** 2).sum(axis=0)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("alpha", [1e-3, 300.0])
def test_the_variance_of_the_coefficients_is_found_from_many_outputs(share, alpha):
    """In units in which inputs and coefficients have any size."""
    rng = np.random.default_rng(0)
    scales = np.geomspace(0.2, 3, 300)
    X, new = rng.normal(size=(80, 300)) * scales, rng.normal(size=(5, 300)) * scales
    tau = math.sqrt((1 - share) / share / np.mean(np.linalg.svd(X, compute_uv=False) ** 2))
    Y = X @ rng.normal(size=(300, 400)) * tau + rng.normal(size=(80, 400))
    expected = dense_shares(X, new, alpha, tau**2)
    for unit in (1e-20, 1.0, 1e20):
        for model in (RLSCV(), KernelRLSCV(kernel="linear")):
            model.set_params(alphas=[alpha * unit**2], fit_intercept=False)
            fitted = model.fit(unit * X, 1e5 * Y)
            _, std = fitted.predict(unit * new, return_std=True)
            found = (std / fitted.noise_) ** 2 - 1
            assert_allclose(found, expected[:, None] + 0 * found, rtol=0.15)


@pytest.mark.parametrize("alpha", [1e-3, 0.3, 50.0])
def test_uninformative_outputs_give_a_noise_share_of_one_half(alpha):
    """All directions of the inputs have variance one, and so have the coefficients."""
    rng = np.random.default_rng(0)
    X = np.linalg.qr(rng.normal(size=(30, 6)))[0].T
    new = np.concatenate([rng.normal(size=(5, 30)), X[:2]])
    expected = dense_shares(X, new, alpha, 1.0)
    for model in (RLSCV(), KernelRLSCV(kernel="linear")):
        model.set_params(alphas=[alpha], cv=3, fit_intercept=False)
        fitted = model.fit(X, rng.normal(size=(6, 4)))
        _, std = fitted.predict(new, return_std=True)
        found = (std / fitted.noise_) ** 2 - 1
        assert_allclose(found, expected[:, None] + 0 * found, rtol=1e-6)
