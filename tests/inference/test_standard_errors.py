"""Standard errors against closed forms, the bootstrap, repetition, and naive refits."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold, KFold

from holrr import (
    HOLRR,
    HOLRRCV,
    LRR,
    LRRCV,
    MLMTNC,
    RLS,
    RLSCV,
    KernelHOLRRCV,
    KernelRLS,
    KernelRLSCV,
    Moments,
    TraceNormRegression,
    standard_errors,
)
from holrr.inference import Estimate
from holrr.streaming import memory_budget
from problems import on_disk, toy
from reference import chances_of_penalties

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty")


def rms(A):
    return float(np.sqrt(np.mean(np.square(A))))


def naive(model, X, Y, labels, w=None, what=lambda fit: fit.coef_):
    """Pseudo-values as in Busing, Meijer and van der Leeden, from refits to samples."""
    w = np.ones(len(X)) if w is None else w
    full, kinds = what(clone(model).fit(X, Y, w)), np.unique(labels)
    h = np.array([w.sum() / w[labels == k].sum() for k in kinds])
    some = [labels != k for k in kinds]
    without = np.array([what(clone(model).fit(X[i], Y[i], w[i])) for i in some])
    by_group = (-1,) + (1,) * np.ndim(full)
    pseudo = h.reshape(by_group) * full - (h - 1).reshape(by_group) * without
    estimate = len(h) * full - np.sum((1 - 1 / h).reshape(by_group) * without, axis=0)
    variance = np.mean((pseudo - estimate) ** 2 / (h - 1).reshape(by_group), axis=0)
    return np.sqrt(variance), full - estimate


# ---------------------------------------------------------------- accuracy


def test_standard_errors_of_ridge_regression_equal_the_closed_form():
    X, Y = toy(600, 5, (4, 6), noise=2.0)
    Xc, alpha = X - X.mean(0), 5.0
    S = Xc.T @ Xc
    M = np.linalg.solve(S + alpha * np.eye(5), S)
    C = np.linalg.solve(S + alpha * np.eye(5), M.T)
    closed = 2.0 * np.sqrt(np.diag(C))
    found = standard_errors(RLS(alpha).fit(X, Y), X, Y, n_groups=100).coef
    by_input = np.sqrt(np.mean(found.std_error**2, axis=(1, 2)))
    assert_allclose(by_input, closed, rtol=0.1)
    assert_allclose(np.median(found.std_error / closed[:, None, None]), 1, atol=0.1)
    one = standard_errors(RLS(alpha), X, Y, n_groups=20).coef.std_error
    assert rms(one) == pytest.approx(rms(closed), rel=0.1)


def test_standard_errors_of_holrr_equal_those_of_500_bootstrap_refits():
    X, Y = toy(300, 5, (4, 3), noise=2.0)
    model = HOLRR(rank=(2, 2, 2), alpha=1.0)
    rng = np.random.default_rng(0)
    draws = (rng.integers(0, len(X), len(X)) for _ in range(500))
    fits = [clone(model).fit(X[i], Y[i]) for i in draws]
    found = standard_errors(model, X, Y, n_groups=100, predict_at=X[:6])
    for estimate, sample in (
        (found.coef, [fit.coef_ for fit in fits]),
        (found.predictions, [fit.predict(X[:6]) for fit in fits]),
        (found.intercept, [fit.intercept_ for fit in fits]),
    ):
        bootstrap = np.std(sample, axis=0, ddof=1)
        assert rms(estimate.std_error) == pytest.approx(rms(bootstrap), rel=0.15)
        assert np.median(np.abs(estimate.std_error / bootstrap - 1)) < 0.15


def test_standard_errors_of_a_stack_equal_its_spread_over_new_noise():
    X, Y = toy(150, 5, (4, 3), noise=0.0)
    rng = np.random.default_rng(1)
    noisy = [Y + 2.0 * rng.normal(size=Y.shape) for _ in range(40)]
    fits = [HOLRRCV(cv=4).fit(X, y) for y in noisy]
    spread = rms(np.std([fit.coef_ for fit in fits], axis=0, ddof=1))
    some = [
        standard_errors(fit, X, y, stability=False).coef.std_error
        for fit, y in zip(fits[:8], noisy[:8], strict=True)
    ]
    assert rms(some) == pytest.approx(spread, rel=0.2)


def test_the_false_discovery_rate_is_controlled():
    rng = np.random.default_rng(0)
    X, false, found = rng.normal(size=(300, 6)), 0.0, 0
    W = np.zeros((6, 5, 4))
    W[:2] = rng.choice([-1.0, 1.0], size=(2, 5, 4))
    for _ in range(20):
        Y = np.tensordot(X, W, 1) + 2.0 * rng.normal(size=(300, 5, 4))
        marked = standard_errors(RLS(), X, Y).coef.significant(q=0.1)
        false += marked[2:].sum() / max(marked.sum(), 1) / 20
        found += marked[:2].mean() / 20
    assert false < 0.13
    assert found > 0.9


# ---------------------------------------------------------------- definition


@pytest.mark.parametrize("K", [2, 7, 40])
@pytest.mark.parametrize("weighted", [False, True])
def test_standard_errors_equal_the_jackknife_of_naive_refits(K, weighted):
    X, Y = toy()
    w = np.random.default_rng(0).uniform(0.5, 2.0, size=len(X)) if weighted else None
    labels = np.repeat(np.arange(K), [len(part) for part in np.array_split(X, K)])
    model = HOLRR(rank=2, alpha=0.5)
    found = standard_errors(model, X, Y, sample_weight=w, n_groups=K, predict_at=X[:3])
    for estimate, what in (
        (found.coef, lambda fit: fit.coef_),
        (found.intercept, lambda fit: fit.intercept_),
        (found.predictions, lambda fit: fit.predict(X[:3])),
    ):
        std_error, bias = naive(model, X, Y, labels, w, what)
        assert_allclose(estimate.std_error, std_error, rtol=1e-6, atol=1e-10)
        assert_allclose(estimate.bias, bias, rtol=1e-5, atol=1e-9)
    assert found.n_groups == K
    assert found.coef.df == K - 1


def test_equal_groups_have_the_usual_factor_of_the_jackknife():
    X, Y = toy(40)
    fits = [RLS().fit(np.delete(X, i, 0), np.delete(Y, i, 0)).coef_ for i in range(40)]
    usual = np.sqrt(39 / 40 * np.sum((fits - np.mean(fits, axis=0)) ** 2, axis=0))
    assert_allclose(standard_errors(RLS(), X, Y, n_groups=99).coef.std_error, usual, rtol=1e-8)


def test_integer_weights_equal_repeated_samples_and_zero_weights_absent_ones():
    X, Y = toy(30)
    w = np.tile([0, 1, 2], 10)
    groups = np.repeat(np.arange(6), 5)
    a = standard_errors(RLS(), X, Y, sample_weight=w, groups=groups)
    i = np.repeat(np.arange(30), w)
    b = standard_errors(RLS(), X[i], Y[i], groups=groups[i])
    assert_allclose(np.sort(a.weights), np.sort(b.weights))
    assert_allclose(a.coef.std_error, b.coef.std_error, rtol=1e-8)


def test_groups_of_dependent_samples_are_left_out_together():
    """Every sample occurs five times; groups tell that it adds no information."""
    X, Y = toy(60)
    i = np.tile(np.arange(60), 5)
    once = standard_errors(RLS(), X, Y, n_groups=60).coef.std_error
    known = standard_errors(RLS(5.0), X[i], Y[i], n_groups=60, groups=i).coef.std_error
    assert_allclose(known, once, rtol=1e-8)
    unknown = standard_errors(RLS(5.0), X[i], Y[i], n_groups=300).coef.std_error
    assert rms(unknown) < 0.6 * rms(once)
    few = standard_errors(RLS(5.0), X[i], Y[i], n_groups=10, groups=i)
    assert few.n_groups == 10
    assert_allclose(few.weights, 30)


def test_data_of_all_kinds_have_the_same_standard_errors(tmp_path):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    X, Y = toy(60)
    expected = standard_errors(HOLRR(rank=2), X, Y, n_groups=6).coef.std_error
    with memory_budget(2**14):
        disk = standard_errors(
            HOLRR(rank=2), on_disk(tmp_path, "X", X), on_disk(tmp_path, "Y", Y), n_groups=6
        )
        h5py = pytest.importorskip("h5py")
        with h5py.File(tmp_path / "both.h5", "w") as file:
            file["X"], file["Y"] = X, Y
            hdf5 = [da.from_array(file[name]) for name in ("X", "Y")]
            hdf5 = standard_errors(HOLRR(rank=2), *hdf5, n_groups=6)
        zarr = pytest.importorskip("zarr")
        stored = [zarr.array(A, store=str(tmp_path / f"{A.ndim}.zarr")) for A in (X, Y)]
        stored = [da.from_array(A) for A in stored]
        stored = standard_errors(HOLRR(rank=2), *stored, n_groups=6)
    arrays = da.from_array(X, chunks=(17, -1)), da.from_array(Y, chunks=(17, -1, 2))
    cluster = standard_errors(HOLRR(rank=2), *arrays, n_groups=6)
    parts = [Moments.from_arrays(X[i : i + 10], Y[i : i + 10]) for i in range(0, 60, 10)]
    for found in (disk, hdf5, stored, cluster, standard_errors(HOLRR(rank=2), parts)):
        assert_allclose(found.coef.std_error, expected, rtol=1e-8)


def test_arrays_of_other_libraries_have_the_same_standard_errors():
    xp = pytest.importorskip("array_api_strict")
    X, Y = toy()
    found = standard_errors(LRR(2), xp.asarray(X), xp.asarray(Y), predict_at=xp.asarray(X[:2]))
    expected = standard_errors(LRR(2), X, Y, predict_at=X[:2])
    assert_allclose(found.coef.std_error, expected.coef.std_error, rtol=1e-8)
    assert_allclose(found.predictions.std_error, expected.predictions.std_error, rtol=1e-8)


@pytest.mark.parametrize("shape", [(), (1,), (3, 2, 2)])
def test_outputs_of_any_order_have_standard_errors(shape):
    X, Y = toy(shape=shape)
    found = standard_errors(RLS(), X, Y, predict_at=X[:2])
    assert found.coef.std_error.shape == (5, *shape)
    assert found.intercept.std_error.shape == shape
    assert found.predictions.std_error.shape == (2, *shape)


@pytest.mark.parametrize(("x", "y"), [(1.0, 1e200), (1e-150, 1.0), (1e100, 1e-150)])
def test_the_scale_of_the_data_scales_the_standard_errors(x, y):
    X, Y = toy()
    expected = standard_errors(RLS(0.0), X, Y)
    found = standard_errors(RLS(0.0), X * x, Y * y)
    assert_allclose(found.coef.std_error / (y / x), expected.coef.std_error, rtol=1e-6)
    assert np.array_equal(found.coef.significant(), expected.coef.significant())


@pytest.mark.filterwarnings("error")
def test_collinear_inputs_are_fitted_as_by_fit():
    X, Y = toy()
    X[:, 1] = X[:, 0]
    found = standard_errors(RLS(0.0), X, Y, n_groups=8)
    labels = np.repeat(np.arange(8), 5)
    assert_allclose(found.coef.std_error, naive(RLS(0.0), X, Y, labels)[0], rtol=1e-6)


# ---------------------------------------------------------------- factors


def test_factors_do_not_depend_on_signs_and_rotations():
    """Of two equal directions each leave-out finds another rotation of the same subspace."""
    rng = np.random.default_rng(0)
    X = np.linalg.qr(rng.normal(size=(200, 4)))[0]
    X -= X.mean(0)
    W = np.zeros((4, 6))
    W[0, 0] = W[1, 1] = 30.0
    Y = X @ W + 0.1 * rng.normal(size=(200, 6))
    model = HOLRR(rank=(2, 2), alpha=0.0)
    found = standard_errors(model, X, Y, n_groups=50)
    turned = [np.abs(f.factors_[1][0, 0]) for f in (model.fit(X[i:], Y[i:]) for i in range(9))]
    assert np.ptp(turned) > 0.2
    assert found.factors[1].std_error.max() < 0.02
    size = np.median(found.factors[1].std_error[2:])
    assert 0.5 * 0.1 / 30 < size < 2 * 0.1 / 30


def test_modes_that_are_not_reduced_have_no_factors():
    X, Y = toy()
    found = standard_errors(HOLRR(rank=(2, 3, 2)), X, Y)
    assert found.factors[1] is None
    assert found.factors[0].std_error.shape == (5, 2)
    assert [f is None for f in standard_errors(LRR(2), X, Y).factors] == [False, True, True]
    assert standard_errors(RLS(), X, Y).factors == (None,) * 3


def test_rank_stability_is_the_share_of_leave_outs_with_the_same_rank():
    X, Y = toy(noise=6.0)
    found = standard_errors(HOLRR(rank=0.9), X, Y, n_groups=20)
    assert 0 < found.rank_stability < 1
    assert found.factors[2].std_error.shape == (4, found.rank[2])
    fixed = standard_errors(HOLRR(rank=2), X, Y, n_groups=10)
    assert fixed.rank_stability == 1
    assert fixed.ranks == [(2, 2, 2)] * 10


# ---------------------------------------------------------------- kinds of models


@pytest.mark.parametrize("model", [TraceNormRegression(3.0), MLMTNC(2, 1.0)], ids=str)
def test_penalised_models_equal_the_jackknife_of_naive_refits(model):
    X, Y = toy()
    found = standard_errors(model, X, Y, n_groups=8)
    labels = np.repeat(np.arange(8), 5)
    weightless = lambda fit: fit.coef_  # noqa: E731
    assert_allclose(
        found.coef.std_error, naive(model, X, Y, labels, None, weightless)[0], rtol=2e-2
    )


def test_coefficients_that_vanish_have_no_standard_errors():
    X, Y = toy()
    found = standard_errors(TraceNormRegression(1e6), X, Y, n_groups=4)
    assert rms(found.coef.std_error) == 0
    assert not found.coef.significant().any()


def test_fits_that_need_samples_equal_the_jackknife_of_naive_refits():
    """With missing outputs, weights of outputs, or fewer samples than features."""
    X, Y = toy(30)
    partial = Y.copy()
    partial[::7, 0, 1] = np.nan
    labels = np.repeat(np.arange(6), 5)
    area = [None, np.array([1.0, 2.0, 3.0, 4.0])]
    for model, y in (
        (HOLRR(2, missing="ignore"), partial),
        (HOLRR(2, output_weight=area), Y),
    ):
        w = np.random.default_rng(0).uniform(0.5, 2.0, size=30)
        found = standard_errors(model, X, y, sample_weight=w, n_groups=6)
        assert_allclose(found.coef.std_error, naive(model, X, y, labels, w)[0], rtol=1e-4)
    wide = np.random.default_rng(0).normal(size=(12, 40))
    found = standard_errors(RLS(), wide, Y[:12], n_groups=6)
    assert_allclose(
        found.coef.std_error, naive(RLS(), wide, Y[:12], labels[:12] * 0 + np.arange(12) // 2)[0]
    )


def test_exact_kernels_have_standard_errors_of_predictions():
    X, Y = toy(30)
    model, labels = KernelRLS(kernel="rbf").fit(X, Y), np.repeat(np.arange(6), 5)
    found = standard_errors(model, X, Y, n_groups=6, predict_at=X[:4])
    assert found.coef is None
    assert found.factors == (None,) * 3
    expected = naive(model, X, Y, labels, None, lambda fit: fit.predict(X[:4]))[0]
    assert_allclose(found.predictions.std_error, expected, rtol=1e-6)
    linear = standard_errors(KernelRLS(kernel="linear"), X, Y, n_groups=6).coef.std_error
    assert_allclose(linear, standard_errors(RLS(), X, Y, n_groups=6).coef.std_error, rtol=1e-5)


def test_landmarks_do_not_change(tmp_path):
    X, Y = toy(60)
    model = KernelRLS(kernel="rbf", landmarks=8).fit(X, Y)  # drawn at random, once
    still = KernelRLS(kernel="rbf", landmarks=model.X_fit_)
    labels = np.repeat(np.arange(6), 10)
    expected = naive(still, X, Y, labels, None, lambda fit: fit.predict(X[:4]))[0]
    found = standard_errors(model, X, Y, n_groups=6, predict_at=X[:4])
    assert_allclose(found.predictions.std_error, expected, rtol=1e-5)
    with memory_budget(2**14):
        maps = on_disk(tmp_path, "X", X), on_disk(tmp_path, "Y", Y)
        found = standard_errors(model, *maps, n_groups=6, predict_at=X[:4])
    assert_allclose(found.predictions.std_error, expected, rtol=1e-5)


# ---------------------------------------------------------------- searches


def test_a_search_keeps_its_choice_and_is_run_again_without_each_group():
    X, Y = toy(60, noise=1.0)
    search = HOLRRCV([0.1, 1.0, 10.0], selection="min").fit(X, Y)
    found = standard_errors(search, X, Y, n_groups=10)
    fixed = standard_errors(search.best_estimator_, X, Y, n_groups=10)
    assert_allclose(found.coef.std_error, fixed.coef.std_error, rtol=1e-8)
    assert found.rank == search.rank_
    assert found.penalty == search.alpha_
    # Groups 0 and 1 are the first of five folds.
    parts = [Moments.from_arrays(X[i : i + 6], Y[i : i + 6]) for i in range(0, 60, 6)]
    folds = [a + b for a, b in zip(parts[::2], parts[1::2], strict=True)]
    third = clone(search).fit_fold_moments([folds[0], parts[3], *folds[2:]])
    assert found.ranks[2] == third.rank_
    assert found.penalties[2] == third.alpha_
    quick = standard_errors(search, X, Y, n_groups=10, stability=False)
    assert quick.ranks is None
    with pytest.raises(AttributeError, match="stability=True"):
        quick.rank_stability  # noqa: B018


class Averaged(BaseEstimator):
    """Ridge regression that averages penalties for each output."""

    def __init__(self, alphas):
        self.alphas = alphas

    def fit(self, X, Y, w):
        n, mean = len(X), np.tile(w / w.sum(), (len(X), 1))
        fits = [RLS(alpha).fit(X, np.eye(n), w) for alpha in self.alphas]
        root = np.sqrt(w)[:, None]
        hats = [root * (fit.predict(X) - mean) / root.T for fit in fits]
        Yc = root * (Y.reshape(n, -1) - mean @ Y.reshape(n, -1))
        chances = chances_of_penalties(hats, Yc, w.sum() - 1).reshape(-1, *Y.shape[1:])
        each = [RLS(alpha).fit(X, Y, w).coef_ for alpha in self.alphas]
        self.coef_ = sum(p * W for p, W in zip(chances, each, strict=True))
        return self


class Mixed(BaseEstimator):
    """The weighted sum of the coefficients of some models."""

    def __init__(self, models, weights):
        self.models, self.weights = models, weights

    def fit(self, X, Y, w):
        fits = [clone(model).fit(X, Y, w).coef_ for model in self.models]
        self.coef_ = sum(weight * W for weight, W in zip(self.weights, fits, strict=True))
        return self


@pytest.mark.parametrize("way", ["ranks", "ranks and penalties of outputs"])
@pytest.mark.parametrize(("search", "kind"), [(HOLRRCV(), HOLRR), (LRRCV(), LRR)], ids=str)
def test_a_stack_is_fitted_again_as_a_stack(search, kind, way):
    """With its penalties, ranks and weights."""
    X, Y = toy(60, noise=2.0 if way == "ranks" else 1.0, seed=1)
    if way != "ranks":  # outputs of different strength
        rng = np.random.default_rng(1)
        Y = Y * np.exp(1.5 * rng.normal(size=Y.shape[1:]))
        Y = Y + np.abs(Y).mean() * rng.normal(size=Y.shape)
    search.set_params(alphas=[0.1, 1.0, 10.0, 100.0, 1000.0]).fit(X, Y)
    assert search.choice_ == way
    assert len(search.stack_alphas_) > 1
    assert any(map(np.ndim, search.stack_alphas_)) == (way != "ranks")
    models = [
        (Averaged(alpha) if np.ndim(alpha) else RLS(alpha))
        if R is None
        else kind(R if kind is HOLRR else R[0], alpha)
        for alpha, R in zip(search.stack_alphas_, search.stack_ranks_, strict=True)
    ]
    found = standard_errors(search, X, Y, stability=False)
    assert_allclose(found.coef.value, search.coef_, rtol=1e-8)
    labels = np.repeat(np.arange(found.n_groups), 60 // found.n_groups)
    std_error, bias = naive(Mixed(models, search.stack_weights_), X, Y, labels)
    assert_allclose(found.coef.std_error, std_error, rtol=1e-6)
    assert_allclose(found.coef.bias, bias, rtol=1e-5, atol=1e-9)
    best = np.atleast_1d(search.best_params_["rank"])
    assert found.factors[0].std_error.shape[1] == best[0]
    single = kind(search.best_params_["rank"], search.best_params_["alpha"])
    ratio = rms(found.coef.std_error) / rms(standard_errors(single, X, Y).coef.std_error)
    assert 0.5 < ratio < 1.5


def test_the_rank_and_the_penalty_of_a_stack_are_those_of_its_best_single_model():
    """So that `rank_stability` says how often the search finds the same."""
    X, Y = toy(60, noise=2.0)
    stack = HOLRRCV([0.1, 1.0, 10.0]).fit(X, Y)
    single = clone(stack).set_params(selection="min").fit(X, Y)
    found, expected = (standard_errors(model, X, Y, n_groups=6) for model in (stack, single))
    assert found.rank == expected.rank == stack.best_params_["rank"]
    assert found.penalty == expected.penalty == stack.best_params_["alpha"]
    assert found.ranks == expected.ranks
    assert found.rank_stability == expected.rank_stability


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:The groups parameter is ignored")
@pytest.mark.parametrize(
    "search",
    [
        RLSCV(cv=3),
        HOLRRCV(cv=KFold(3, shuffle=True, random_state=0)),
        HOLRRCV(cv=GroupKFold(3), selection="min"),
        KernelHOLRRCV([1.0], cv=3, max_rank=2),
        KernelHOLRRCV([1.0], cv=3, max_rank=2, landmarks=10),
        HOLRRCV([1.0], cv=3, missing="ignore"),
    ],
    ids=str,
)
def test_searches_of_all_kinds_have_standard_errors(search):
    X, Y = toy(36)
    if getattr(search, "missing", "") == "ignore":
        Y[3:5, 1, 1] = np.nan
    groups = np.repeat(np.arange(12), 3)
    search.fit(X, Y, groups=groups)
    found = standard_errors(search, X, Y, n_groups=4, groups=groups, predict_at=X[:2])
    assert len(found.ranks) == len(found.penalties) == 4
    assert np.all(found.predictions.std_error > 0)
    assert_allclose(found.predictions.value, search.predict(X[:2]), rtol=1e-6)


# ---------------------------------------------------------------- names, errors and warnings


def test_names_of_columns_must_agree():
    pd = pytest.importorskip("pandas")
    X, Y = toy()
    table = pd.DataFrame(X, columns=list("abcde"))
    found = standard_errors(RLS(), table, Y, predict_at=table[:2])
    assert_allclose(
        found.predictions.std_error,
        standard_errors(RLS(), X, Y, predict_at=X[:2]).predictions.std_error,
    )
    with pytest.raises(ValueError, match="feature names"):
        standard_errors(RLS(), table, Y, predict_at=table[:2].rename(columns={"a": "z"}))
    groups = pd.Series(np.arange(40) // 4, index=np.arange(40)[::-1])
    with pytest.raises(ValueError, match="rows of X and groups have different labels"):
        standard_errors(RLS(), table, Y, groups=groups)
    flat = standard_errors(HOLRR(rank=2, output_shape=(3, 4)), table, Y.reshape(40, 12))
    expected = standard_errors(HOLRR(rank=2), X, Y)
    assert_allclose(flat.coef.std_error, expected.coef.std_error, rtol=1e-8)


def test_bad_arguments_are_named():
    X, Y = toy()
    with pytest.raises(TypeError, match="a pipeline that ends with one; got KFold"):
        standard_errors(KFold(), X, Y)
    for bad in (1, 2.5, "ten"):
        with pytest.raises(ValueError, match=f"n_groups={bad!r}"):
            standard_errors(RLS(), X, Y, n_groups=bad)
    with pytest.raises(ValueError, match="'alpha' parameter of RLS"):
        standard_errors(RLS(-1.0), X, Y)
    with pytest.raises(NotFittedError):
        standard_errors(HOLRRCV(), X, Y)
    with pytest.raises(ValueError, match=r"groups must have one entry .* 40 samples"):
        standard_errors(RLS(), X, Y, groups=[1, 2])
    with pytest.raises(ValueError, match="two different groups are needed"):
        standard_errors(RLS(), X, Y, groups=np.zeros(40))
    with pytest.raises(ValueError, match="two samples of positive weight"):
        standard_errors(RLS(), X, Y, sample_weight=np.eye(40)[0])
    Y[37, 2, 1] = np.nan
    with pytest.raises(ValueError, match=r"y contains NaN at index \(37, 2, 1\)"):
        standard_errors(RLS(), X, Y)
    Y[37, 2, 1] = 0.0
    gram = X @ X.T
    with pytest.raises(ValueError, match="does not support kernel='precomputed'"):
        standard_errors(KernelRLS(kernel="precomputed"), gram, Y)
    parts = [Moments.from_arrays(X[:20], Y[:20]), Moments.from_arrays(X[20:], Y[20:])]
    with pytest.raises(ValueError, match="at least two folds; got 0"):
        standard_errors(RLS(), [])
    with pytest.raises(ValueError, match="must be None if X is a list of Moments"):
        standard_errors(RLS(), parts, Y)
    with pytest.raises(TypeError, match="KernelRLS cannot be fitted to moments"):
        standard_errors(KernelRLS(), parts)
    with pytest.raises(ValueError, match="at least three groups"):
        standard_errors(HOLRRCV([1.0]).fit(X, Y), parts)


def test_a_model_of_other_data_is_warned_of():
    X, Y = toy()
    model = RLS().fit(X, Y)
    with pytest.warns(UserWarning, match="differ from those of a fit to these data"):
        standard_errors(model, X, Y + 10 * X[:, :1, None])
    search = HOLRRCV().fit(*toy(noise=6.0))
    with pytest.warns(UserWarning, match="best_estimator_"):
        standard_errors(search.best_estimator_, *toy(noise=6.0))
    before = dict(vars(model))
    standard_errors(model, X, Y)
    assert vars(model) == before


def test_estimates_have_intervals_and_significance():
    one = Estimate(np.array([2.0, 0.0, np.nan, 0.0]), np.array([1.0, 0.0, 1.0, 2.0]), None, df=9)
    assert_allclose(one.z(), [2, 0, np.nan, 0])
    assert_allclose(one.interval(0.9)[0][0], 2 - 1.8331129, rtol=1e-6)
    assert list(one.significant(0.3)) == [True, False, False, False]
    for bad in (0, 1, -1, 90, "0.9", None):
        with pytest.raises(ValueError, match=f"coverage={bad!r}"):
            one.interval(bad)
        with pytest.raises(ValueError, match=f"q={bad!r}"):
            one.significant(bad)


@pytest.mark.parametrize("cls", [HOLRR, HOLRRCV, KernelRLSCV])
def test_flat_outputs_have_the_standard_errors_of_the_tensor(cls):
    X, Y = toy(n=60)
    params = {} if cls is HOLRR else {"cv": 3, "alphas": [1.0, 2.0]}
    found = [
        standard_errors(cls(output_shape=shape, **params).fit(X, y), X, y, n_groups=4)
        for shape, y in ((None, Y), ((3, 4), Y.reshape(60, -1)))
    ]
    assert_allclose(found[0].intercept.std_error, found[1].intercept.std_error)
    assert found[0].ranks == found[1].ranks


def test_complete_outputs_have_the_same_standard_errors_with_missing_ignored():
    X, Y = toy(n=60)
    model = HOLRRCV(cv=3, missing="ignore").fit(X, Y)
    found = standard_errors(model, X, Y, n_groups=4, stability=False)
    usual = standard_errors(HOLRRCV(cv=3).fit(X, Y), X, Y, n_groups=4, stability=False)
    assert_allclose(found.coef.std_error, usual.coef.std_error)


@pytest.mark.parametrize("dtype", [float, object])
def test_groups_with_missing_labels_are_refused(dtype):
    X, Y = toy(20)
    groups = np.array([np.nan, *np.arange(19) % 4], dtype=dtype)
    with pytest.raises(ValueError, match="contains NaN"):
        standard_errors(RLS(), X, Y, groups=groups)


def test_names_of_moments_are_kept_and_compared():
    pd = pytest.importorskip("pandas")
    X, Y = toy()
    table = pd.DataFrame(X, columns=list("abcde"))
    parts = [Moments.from_arrays(table[i : i + 10], Y[i : i + 10]) for i in range(0, 40, 10)]
    found = standard_errors(HOLRR(rank=2), parts, predict_at=table[:2])
    assert list(found.model.feature_names_in_) == list("abcde")
    assert found.predictions.std_error.shape == (2, 3, 4)
    with pytest.raises(ValueError, match="feature names"):
        standard_errors(HOLRR(rank=2), parts, predict_at=table[list("edcba")][:2])
    other = Moments.from_arrays(table.rename(columns={"a": "z"})[:10], Y[:10])
    with pytest.raises(ValueError, match=r"(?s)different features.*'a'.*'z'"):
        standard_errors(HOLRR(rank=2), [*parts, other])
