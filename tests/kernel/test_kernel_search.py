"""Searches over kernels, penalties and ranks: each held-out error is that of a refit."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit

from holrr import (
    HOLRRCV,
    LRRCV,
    RLS,
    KernelHOLRR,
    KernelHOLRRCV,
    KernelLRR,
    KernelLRRCV,
    KernelRLS,
    KernelRLSCV,
)
from problems import toy

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty")

ALPHAS = [1e-2, 0.3, 5.0]
KERNELS = [
    {"kernel": "rbf", "gamma": 0.05},
    {"kernel": "poly", "degree": 2, "gamma": 0.3, "coef0": 1.0},
]


def smooth(n=36, shape=(2, 3), seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    W = rng.normal(size=(4, *shape))
    Y = np.tensordot(np.tanh(X @ rng.normal(size=(2, 4))), W, 1)
    return X, Y + 0.2 * rng.normal(size=Y.shape) + 1


def fold_errors(model, X, Y, splits, w=None):
    """Held-out mean squared error of a fit to each training part."""
    errors = []
    for train, test in splits:
        Xt, Xv = X[train], X[test]
        if model.kernel == "precomputed":
            Xt, Xv = Xt[:, train], Xv[:, train]
        fitted = clone(model).fit(Xt, Y[train], None if w is None else w[train])
        squares = ((fitted.predict(Xv) - Y[test]) ** 2).reshape(len(test), -1).mean(axis=1)
        errors.append(np.average(squares, weights=None if w is None else w[test]))
    return errors


# ---------------------------------------------------------------- surfaces


@pytest.mark.parametrize("shape", [(2, 3), (6, 8)], ids=["tall", "wide"])
@pytest.mark.parametrize("weighted", [False, True])
def test_entries_of_the_surface_are_errors_of_refits(shape, weighted):
    X, Y = smooth(n=24, shape=shape)
    w = np.random.default_rng(1).integers(0, 3, 24).astype(float) if weighted else None
    splits = list(KFold(3).split(X))
    search = KernelHOLRRCV(ALPHAS, cv=splits, kernel=KERNELS)
    results = search.fit(X, Y, w).cv_results_
    found = results["fold_mse"]
    caps = found.shape[3:]
    assert found.shape[:3] == (3, 2, 3)
    assert results["mean_mse"].shape == found.shape[1:]
    rng = np.random.default_rng(0)
    entries = list(product(range(2), range(3), *(range(R) for R in caps)))
    for entry in [entries[i] for i in rng.choice(len(entries), 15, replace=False)]:
        k, a, *rank = entry
        model = KernelHOLRR(tuple(R + 1 for R in rank), ALPHAS[a], **KERNELS[k])
        expected = fold_errors(model, X, Y, splits, w)
        assert_allclose(found[(slice(None), *entry)], expected, rtol=1e-7)


@pytest.mark.parametrize("intercept", ["none", "outputs", "both"])
def test_low_rank_and_ridge_surfaces_are_errors_of_refits(intercept):
    X, Y = smooth(n=24)
    shared = {"fit_intercept": intercept != "none", "center_kernel": intercept == "both"}
    splits = list(ShuffleSplit(3, random_state=0).split(X))
    lrr = KernelLRRCV(ALPHAS, cv=splits, kernel=KERNELS, **shared).fit(X, Y)
    rls = KernelRLSCV(ALPHAS, cv=splits, kernel=KERNELS, **shared).fit(X, Y)
    assert lrr.cv_results_["fold_mse"].shape == (3, 2, 3, 6)
    assert rls.cv_results_["fold_mse"].shape == (3, 2, 3)
    for k, a in product(range(2), range(3)):
        expected = fold_errors(KernelRLS(ALPHAS[a], **shared, **KERNELS[k]), X, Y, splits)
        assert_allclose(rls.cv_results_["fold_mse"][:, k, a], expected, rtol=1e-7)
        for R in range(6):
            model = KernelLRR(R + 1, ALPHAS[a], **shared, **KERNELS[k])
            expected = fold_errors(model, X, Y, splits)
            assert_allclose(lrr.cv_results_["fold_mse"][:, k, a, R], expected, rtol=1e-7)


def test_ridge_search_equals_grid_search_over_kernel_ridge():
    X, Y = smooth()
    flat = Y.reshape(len(Y), -1)
    grid = {"alpha": ALPHAS, "gamma": [0.01, 0.1, 1.0]}
    search = GridSearchCV(
        KernelRidge(kernel="rbf"), grid, cv=4, scoring="neg_mean_squared_error"
    ).fit(X, flat)
    ours = KernelRLSCV(ALPHAS, 4, gammas=grid["gamma"], fit_intercept=False).fit(X, Y)
    theirs = -search.cv_results_["mean_test_score"].reshape(3, 3).T
    assert_allclose(ours.cv_results_["mean_mse"], theirs, rtol=1e-8)
    assert {"alpha": ours.alpha_, "gamma": ours.gamma_} == search.best_params_
    assert_allclose(ours.predict(X).reshape(len(X), -1), search.predict(X), rtol=1e-7)


def test_search_with_linear_kernel_equals_the_linear_search():
    X, Y = toy(n=30)
    kernel = KernelHOLRRCV(ALPHAS, kernel="linear").fit(X, Y)
    linear = HOLRRCV(ALPHAS).fit(X, Y)
    ours, theirs = kernel.cv_results_["mean_mse"][0], linear.cv_results_["mean_mse"]
    R0 = min(ours.shape[1], theirs.shape[1])
    assert_allclose(ours[:, :R0], theirs[:, :R0], rtol=1e-8)
    assert kernel.rank_ == linear.rank_
    assert_allclose(kernel.predict(X), linear.predict(X), rtol=1e-8)
    assert_allclose(kernel.coef_, linear.coef_, rtol=1e-7, atol=1e-9)


def test_precomputed_kernel_is_split_along_rows_and_columns():
    X, Y = smooth()
    K = rbf_kernel(X, gamma=0.1)
    named = KernelHOLRRCV(ALPHAS, gammas=0.1).fit(X, Y)
    given = KernelHOLRRCV(ALPHAS, kernel="precomputed").fit(K, Y)
    assert_allclose(given.cv_results_["mean_mse"], named.cv_results_["mean_mse"], rtol=1e-8)
    assert_allclose(given.predict(K[:5]), named.predict(X[:5]), rtol=1e-7)
    outer = GridSearchCV(KernelLRRCV(ALPHAS, kernel="precomputed"), {"selection": ["min"]}, cv=3)
    assert np.isfinite(outer.fit(K, Y).best_score_)


def test_callable_kernels_can_be_searched():
    X, Y = smooth(n=20)

    def gaussian(x, z, width):
        return np.exp(-width * np.sum((x - z) ** 2))

    kernels = [{"kernel": gaussian, "kernel_params": {"width": g}} for g in (0.05, 0.5)]
    called = KernelLRRCV(ALPHAS, cv=3, kernel=kernels).fit(X, Y)
    named = KernelLRRCV(ALPHAS, cv=3, gammas=[0.05, 0.5]).fit(X, Y)
    assert_allclose(called.cv_results_["mean_mse"], named.cv_results_["mean_mse"], rtol=1e-8)


# ---------------------------------------------------------------- landmarks


@pytest.mark.parametrize("cv", [KFold(3), ShuffleSplit(2, random_state=0)], ids=str)
@pytest.mark.parametrize("center_kernel", [False, True])
def test_landmark_surfaces_are_errors_of_refits(cv, center_kernel):
    X, Y = smooth()
    splits, points = list(cv.split(X)), X[3:12]
    shared = {"landmarks": points, "center_kernel": center_kernel}
    search = KernelHOLRRCV(ALPHAS, max_rank=(3, 2, 2), cv=splits, kernel=KERNELS, **shared).fit(
        X, Y
    )
    found = search.cv_results_["fold_mse"]
    for k, a, rank in product(range(2), range(3), [(1, 1, 1), (2, 2, 1), (3, 2, 2)]):
        model = KernelHOLRR(rank, ALPHAS[a], **shared, **KERNELS[k])
        entry = (slice(None), k, a, *(R - 1 for R in rank))
        assert_allclose(found[entry], fold_errors(model, X, Y, splits), rtol=1e-6)
    assert_allclose(search.best_estimator_.X_fit_, points)


def test_all_samples_as_landmarks_give_the_surface_of_the_kernel():
    X, Y = smooth()
    exact = KernelHOLRRCV(ALPHAS, gammas=[0.1, 1.0]).fit(X, Y)
    near = KernelHOLRRCV(ALPHAS, gammas=[0.1, 1.0], landmarks=36).fit(X, Y)
    assert_allclose(near.cv_results_["mean_mse"], exact.cv_results_["mean_mse"], rtol=1e-6)
    assert near.best_index_ == exact.best_index_
    assert_allclose(near.predict(X), exact.predict(X), rtol=1e-5, atol=1e-6)


def test_drawn_landmarks_are_those_of_the_final_model():
    X, Y = smooth()
    search = KernelLRRCV(ALPHAS, gammas=0.1, landmarks=7, random_state=1).fit(X, Y)
    again = KernelLRRCV(ALPHAS, gammas=0.1, landmarks=7, random_state=1).fit(X, Y)
    assert_allclose(search.landmarks_, again.landmarks_, rtol=0)
    assert_allclose(search.best_estimator_.X_fit_, search.landmarks_, rtol=0)
    assert search.dual_coef_.shape == (7, 2, 3)


# ---------------------------------------------------------------- candidates and choice


def test_default_widths_and_penalties_come_from_the_data():
    X, Y = smooth(n=60)
    search = KernelHOLRRCV(cv=3).fit(X, Y)
    gammas = [spec["gamma"] for spec in search.kernels_]
    assert search.kernel_params_ == {"kernel": "rbf", "gamma": search.gamma_}
    squared = euclidean_distances(X, squared=True)
    median = np.median(squared[np.triu_indices(60, 1)])
    assert min(gammas) < 1 / median < max(gammas)
    assert search.cv_results_["mean_mse"].shape[:2] == (len(gammas), len(search.alphas_))
    assert search.cv_results_["kernels"] == search.kernels_
    assert search.score(X, Y) > 0.8
    assert search.best_estimator_.gamma == search.gamma_
    wide = KernelHOLRRCV(cv=3).fit(100 * X, Y)
    assert_allclose([spec["gamma"] for spec in wide.kernels_], np.array(gammas) / 1e4, rtol=1e-9)
    assert_allclose(wide.cv_results_["mean_mse"], search.cv_results_["mean_mse"], rtol=1e-4)


def test_search_finds_the_kernel_of_the_data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    W = rng.normal(size=(3, 2, 3))
    straight = np.tensordot(X, W, 1)
    kernels = ["linear", {"kernel": "poly", "degree": 2, "gamma": 1.0}, "rbf"]
    noise = 0.3 * rng.normal(size=straight.shape)
    for Y, expected in ((straight, "linear"), (np.tensordot(X**2, W, 1), "poly")):
        search = KernelRLSCV(kernel=kernels).fit(X, Y + noise)
        assert search.kernel_params_["kernel"] == expected
    assert len(search.kernels_) == 8


def test_search_finds_the_ranks_of_the_data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(100, 1))
    latent = np.hstack([np.sin(2 * X), np.cos(X)])
    U1, U2 = rng.normal(size=(5, 2)), rng.normal(size=(6, 2))
    Y = np.einsum("na,abc,jb,kc->njk", latent, rng.normal(size=(2, 2, 2)), U1, U2)
    search = KernelHOLRRCV(selection="1se", gammas=[0.1, 1.0]).fit(
        X, Y + 0.3 * rng.normal(size=Y.shape)
    )
    assert search.rank_ == (2, 2, 2)


@pytest.mark.parametrize("selection", ["min", "1se", "stack"])
def test_final_model_is_a_fit_of_the_best_index(selection):
    X, Y = smooth()
    search = KernelHOLRRCV(ALPHAS, gammas=[0.1, 1.0], selection=selection).fit(X, Y)
    k, a, *rank = search.best_index_
    rank = tuple(R + 1 for R in rank)
    assert (search.alpha_, search.gamma_) == (ALPHAS[a], [0.1, 1.0][k])
    kernel = {"kernel": "rbf", "gamma": search.gamma_}
    assert search.best_params_ == {"alpha": search.alpha_, "rank": rank, **kernel}
    mixed = [(search.alpha_, rank, 1.0)]
    if selection == "stack":
        kinds = search.stack_alphas_, search.stack_ranks_, search.stack_weights_
        mixed = list(zip(*kinds, strict=True))
        assert len(mixed) > 1
    expected = (1 - sum(weight for _, _, weight in mixed)) * Y.mean(axis=0)
    for alpha, R, weight in mixed:
        one = KernelRLS(alpha, **kernel) if R is None else KernelHOLRR(R, alpha=alpha, **kernel)
        expected = expected + weight * one.fit(X, Y).predict(X)
    assert_allclose(search.predict(X), expected, rtol=1e-9)


@pytest.mark.filterwarnings("ignore:The error surfaces of ranks")
@pytest.mark.parametrize("selection", ["min", "stack"])
def test_best_params_are_those_of_the_best_index_whatever_predicts(selection, small_budget):
    """Where memory caps the ranks, ridge regression of another kernel may be better than them."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(120, 2))
    low = np.einsum("na,b,c->nbc", np.sin(X[:, :1]), rng.normal(size=5), rng.normal(size=6))
    waves = [np.sin(3 * X @ rng.normal(size=2) + rng.uniform(0, 6)) for _ in range(30)]
    Y = 2 * low + np.stack(waves, axis=1).reshape(low.shape) + 0.1 * rng.normal(size=low.shape)
    grid = {"alphas": [0.01, 0.1, 1.0], "gammas": [0.02, 0.2, 2.0]}
    small_budget(680)
    search = KernelHOLRRCV(**grid, selection=selection, cv=3).fit(X, Y)
    k, a, *rank = search.best_index_
    assert search.best_score_ == -search.cv_results_["mean_mse"][search.best_index_]
    assert search.best_params_ == {
        "alpha": grid["alphas"][a],
        "rank": tuple(R + 1 for R in rank),
        "kernel": "rbf",
        "gamma": grid["gammas"][k],
    }
    if selection == "min":
        assert search.held_out_mse_ == search.ridge_mse_ < -search.best_score_
        assert search.gamma_ != search.best_params_["gamma"]


def test_the_final_fit_is_refined():
    X, Y = smooth()
    assert KernelHOLRRCV(ALPHAS, gammas=0.1, refine=True).fit(X, Y).best_estimator_.refine


def test_results_do_not_depend_on_the_number_of_jobs():
    X, Y = smooth()
    one = KernelHOLRRCV(ALPHAS, gammas=[0.1, 1.0]).fit(X, Y)
    two = KernelHOLRRCV(ALPHAS, gammas=[0.1, 1.0], n_jobs=2).fit(X, Y)
    assert_allclose(two.cv_results_["mean_mse"], one.cv_results_["mean_mse"], rtol=1e-10)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"kernel": []}, "kernel must have at least one candidate"),
        ({"kernel": [{"gamma": 1.0}]}, r"kernel\[0\] must have the key 'kernel'"),
        ({"kernel": ["rbf", {"kernel": "rbf", "width": 1}]}, r"kernel\[1\]"),
        ({"kernel": ["triangle"]}, r"kernel\[0\] is the unknown kernel 'triangle'"),
        (
            {"kernel": [{"kernel": "rbf", "gamma": "wide"}]},
            r"kernel\[0\] must have a finite number as gamma; got 'wide'",
        ),
        ({"kernel": ["precomputed", "rbf"]}, "precomputed"),
        ({"gammas": []}, "gammas"),
        ({"gammas": [-1.0]}, "gammas"),
        ({"gammas": "scale"}, "gammas"),
        ({"kernel": "triangle"}, "kernel"),
        ({"alphas": [-1.0]}, "alphas"),
        ({"max_rank": (99, 1, 1)}, "max_rank"),
        ({"kernel": "precomputed", "landmarks": 3}, "square|precomputed"),
    ],
)
def test_bad_candidates_raise(params, message):
    X, Y = smooth()
    with pytest.raises((ValueError, TypeError), match=message):
        KernelHOLRRCV(**params).fit(X, Y)


# ---------------------------------------------------------------- ranks, selection, solvers


def test_max_rank_caps_the_ranks():
    X, Y = smooth()
    shared = {"gammas": 0.1, "cv": 3}
    capped = KernelHOLRRCV(ALPHAS, max_rank=(3, 2, 2), **shared).fit(X, Y)
    assert capped.cv_results_["mean_mse"].shape == (1, 3, 3, 2, 2)
    assert KernelLRRCV(ALPHAS, max_rank=2, **shared).fit(X, Y).rank_ <= 2


def test_automatic_selection_stacks_unless_fits_are_refined():
    X, Y = smooth(n=20)
    shared = {"gammas": 0.1, "cv": 3, "max_rank": 2}
    stacked = KernelHOLRRCV(ALPHAS, **shared).fit(X, Y)
    explicit = KernelHOLRRCV(ALPHAS, selection="stack", **shared).fit(X, Y)
    assert stacked.selection == "auto"
    assert_array_equal(stacked.predict(X), explicit.predict(X))
    auto, least = (
        KernelHOLRRCV(ALPHAS, selection=selection, refine=True, **shared).fit(X, Y)
        for selection in ("auto", "min")
    )
    assert_array_equal(auto.predict(X), least.predict(X))


def test_search_has_the_attributes_of_its_model():
    X, Y = smooth(n=20)
    search = KernelHOLRRCV(ALPHAS, gammas=0.1, cv=3, selection="min").fit(X, Y)
    model = search.best_estimator_
    for name in ("tucker_", "intercept_"):
        assert getattr(search, name) is getattr(model, name)
    for name in ("n_iter_", "objective_", "n_parameters_", "rank_"):
        assert getattr(search, name) == getattr(model, name)
    assert_array_equal(search.noise_, model.noise_)


@pytest.mark.filterwarnings("ignore:The error surfaces of ranks", "ignore:The best penalty")
@pytest.mark.parametrize("selection", ["min", "stack"])
@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (partial(KernelHOLRRCV, gammas=[0.02, 0.1]), (5, 6)),
        (partial(KernelHOLRRCV, gammas=[0.02, 0.1]), (15, 16)),
        (partial(KernelLRRCV, gammas=[0.02, 0.1]), (5, 6)),
        (partial(KernelHOLRRCV, kernel="linear", landmarks=40, random_state=0), (5, 6)),
        (HOLRRCV, (5, 6)),
        (LRRCV, (5, 6)),
    ],
)
def test_full_rank_is_a_candidate_whatever_the_memory(make, shape, selection, small_budget):
    """The cap on the ranks excludes error surfaces, and not ridge regression itself."""
    rng = np.random.default_rng(0)
    n = 300 if shape == (15, 16) else 90
    X = rng.normal(size=(n, 30))
    Y = np.tensordot(X, rng.normal(size=(30, *shape)), 1) + rng.normal(size=(n, *shape))
    modes = 1 if "LRRCV" in repr(make) and "HOLRRCV" not in repr(make) else 3
    model = make(selection=selection, cv=3, alphas=[1e-2, 1.0, 100.0])
    n_surfaces = 3 * 5 * len(getattr(model, "gammas", None) or [1]) + 40
    small_budget(8 * n_surfaces * 3**modes)
    capped = clone(model).fit(X, Y)
    assert max(capped.cv_results_["n_parameters"].shape) < 14
    surface = capped.cv_results_["mean_mse"]
    assert capped.best_score_ == -np.nanmin(surface)  # that of the best rank under the cap
    assert capped.ridge_mse_ < 0.9 * np.nanmin(surface)
    dense = capped.best_estimator_
    kind = RLS if "Kernel" not in repr(make) else KernelRLS
    kernel = {} if kind is RLS else {n: getattr(dense, n) for n in ("kernel", "gamma", "landmarks")}
    if selection == "min":
        assert capped.held_out_mse_ == pytest.approx(capped.ridge_mse_, rel=1e-12)
        mixed = [(capped.alpha_, None, 1.0)]
    else:  # ridge regression has nearly all of the weight, at one penalty or at several
        # A fold whose others prefer a mixture under the cap raises the error a little.
        assert capped.held_out_mse_ <= 1.005 * capped.ridge_mse_
        kinds = capped.stack_alphas_, capped.stack_ranks_, capped.stack_weights_
        mixed = list(zip(*kinds, strict=True))
        assert sum(weight for _, rank, weight in mixed if rank is None) > 0.95
    total = (1 - sum(weight for _, _, weight in mixed)) * Y.mean(axis=0)
    for alpha, rank, weight in mixed:
        one = kind(alpha, **kernel)
        if rank is not None:
            options = {"alpha": alpha, **kernel}
            one = type(dense)(rank[0] if modes == 1 else rank, **options)
        total = total + weight * one.fit(X, Y).predict(X)
    assert_allclose(capped.predict(X), total, rtol=0, atol=1e-6)
    lower, upper = capped.predict_interval(X, 0.9)
    assert np.all(lower < upper)
    with pytest.warns(UserWarning, match="max_rank limits the ranks"):
        by_user = clone(model).set_params(max_rank=2, selection="min").fit(X, Y)
    assert np.max(by_user.rank_) <= 2
