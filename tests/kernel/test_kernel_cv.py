"""Cross-validation of kernels, penalties and ranks: each entry is the error of a refit."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit

from holrr.data.samples import Samples
from holrr.kernel import (
    KernelHOLRR,
    KernelHOLRRCV,
    KernelLRR,
    KernelLRRCV,
    KernelRLS,
    KernelRLSCV,
)
from holrr.kernel._kernels import (
    check_kernels,
    kernel_alphas,
    mean_eigenvalue,
    median_gamma,
    some_samples,
)
from holrr.model_selection import HOLRRCV
from problems import toy

pytestmark = pytest.mark.filterwarnings("ignore:the best penalty")

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
@pytest.mark.parametrize("subspaces", ["fitted", "response"])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_entry_of_the_surface_is_the_error_of_a_refit(shape, subspaces, weighted):
    X, Y = smooth(n=24, shape=shape)
    w = np.random.default_rng(1).integers(0, 3, 24).astype(float) if weighted else None
    splits = list(KFold(3).split(X))
    search = KernelHOLRRCV(ALPHAS, cv=splits, kernels=KERNELS, subspaces=subspaces)
    results = search.fit(X, Y, w).cv_results_
    found = results["fold_mse"]
    caps = found.shape[3:]
    assert found.shape[:3] == (3, 2, 3)
    assert results["mean_mse"].shape == found.shape[1:]
    rng = np.random.default_rng(0)
    places = list(product(range(2), range(3), *(range(R) for R in caps)))
    for place in [places[i] for i in rng.choice(len(places), 15, replace=False)]:
        k, a, *rank = place
        model = KernelHOLRR(
            tuple(R + 1 for R in rank), ALPHAS[a], subspaces=subspaces, **KERNELS[k]
        )
        expected = fold_errors(model, X, Y, splits, w)
        assert_allclose(found[(slice(None), *place)], expected, rtol=1e-7)


@pytest.mark.parametrize("intercept", ["none", "outputs", "both"])
def test_low_rank_and_ridge_surfaces_are_the_errors_of_refits(intercept):
    X, Y = smooth(n=24)
    shared = {"fit_intercept": intercept != "none", "center_kernel": intercept == "both"}
    splits = list(ShuffleSplit(3, random_state=0).split(X))
    lrr = KernelLRRCV(ALPHAS, cv=splits, kernels=KERNELS, **shared).fit(X, Y)
    rls = KernelRLSCV(ALPHAS, cv=splits, kernels=KERNELS, **shared).fit(X, Y)
    assert lrr.cv_results_["fold_mse"].shape == (3, 2, 3, 6)
    assert rls.cv_results_["fold_mse"].shape == (3, 2, 3)
    for k, a in product(range(2), range(3)):
        expected = fold_errors(KernelRLS(ALPHAS[a], **shared, **KERNELS[k]), X, Y, splits)
        assert_allclose(rls.cv_results_["fold_mse"][:, k, a], expected, rtol=1e-7)
        for R in range(6):
            model = KernelLRR(R + 1, ALPHAS[a], **shared, **KERNELS[k])
            expected = fold_errors(model, X, Y, splits)
            assert_allclose(lrr.cv_results_["fold_mse"][:, k, a, R], expected, rtol=1e-7)


def test_ridge_search_is_grid_search_over_kernel_ridge():
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


def test_linear_kernel_is_the_linear_search():
    X, Y = toy(n=30)
    kernel = KernelHOLRRCV(ALPHAS, kernel="linear").fit(X, Y)
    linear = HOLRRCV(ALPHAS).fit(X, Y)
    ours, theirs = kernel.cv_results_["mean_mse"][0], linear.cv_results_["mean_mse"]
    R0 = min(ours.shape[1], theirs.shape[1])
    assert_allclose(ours[:, :R0], theirs[:, :R0], rtol=1e-8)
    assert kernel.rank_ == linear.rank_
    assert_allclose(kernel.predict(X), linear.predict(X), rtol=1e-8)
    assert_allclose(kernel.coef_, linear.coef_, rtol=1e-7, atol=1e-9)


def test_precomputed_kernel_is_cut_along_both_sides():
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
    called = KernelLRRCV(ALPHAS, cv=3, kernels=kernels).fit(X, Y)
    named = KernelLRRCV(ALPHAS, cv=3, gammas=[0.05, 0.5]).fit(X, Y)
    assert_allclose(called.cv_results_["mean_mse"], named.cv_results_["mean_mse"], rtol=1e-8)


# ---------------------------------------------------------------- landmarks


@pytest.mark.parametrize("cv", [KFold(3), ShuffleSplit(2, random_state=0)], ids=str)
@pytest.mark.parametrize("center_kernel", [False, True])
def test_landmark_surfaces_are_the_errors_of_refits(cv, center_kernel):
    X, Y = smooth()
    splits, points = list(cv.split(X)), X[3:12]
    shared = {"landmarks": points, "center_kernel": center_kernel}
    search = KernelHOLRRCV(ALPHAS, (3, 2, 2), splits, kernels=KERNELS, **shared).fit(X, Y)
    found = search.cv_results_["fold_mse"]
    for k, a, rank in product(range(2), range(3), [(1, 1, 1), (2, 2, 1), (3, 2, 2)]):
        model = KernelHOLRR(rank, ALPHAS[a], **shared, **KERNELS[k])
        place = (slice(None), k, a, *(R - 1 for R in rank))
        assert_allclose(found[place], fold_errors(model, X, Y, splits), rtol=1e-6)
    assert_allclose(search.best_estimator_.X_fit_, points)


def test_all_samples_as_landmarks_give_the_exact_surface():
    X, Y = smooth()
    exact = KernelHOLRRCV(ALPHAS, gammas=[0.1, 1.0]).fit(X, Y)
    near = KernelHOLRRCV(ALPHAS, gammas=[0.1, 1.0], n_components=36).fit(X, Y)
    assert_allclose(near.cv_results_["mean_mse"], exact.cv_results_["mean_mse"], rtol=1e-6)
    assert near.best_index_ == exact.best_index_
    assert_allclose(near.predict(X), exact.predict(X), rtol=1e-5, atol=1e-6)


def test_drawn_landmarks_are_those_of_the_final_model():
    X, Y = smooth()
    search = KernelLRRCV(ALPHAS, gammas=0.1, n_components=7, random_state=1).fit(X, Y)
    again = KernelLRRCV(ALPHAS, gammas=0.1, n_components=7, random_state=1).fit(X, Y)
    assert_allclose(search.landmarks_, again.landmarks_, rtol=0)
    assert_allclose(search.best_estimator_.X_fit_, search.landmarks_, rtol=0)
    assert search.dual_coef_.shape == (7, 2, 3)


# ---------------------------------------------------------------- candidates and choice


def test_gaussian_widths_and_penalties_come_from_the_data():
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


def test_the_right_kind_of_kernel_is_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    W = rng.normal(size=(3, 2, 3))
    straight = np.tensordot(X, W, 1)
    kernels = ["linear", {"kernel": "poly", "degree": 2, "gamma": 1.0}, "rbf"]
    noise = 0.3 * rng.normal(size=straight.shape)
    for Y, expected in ((straight, "linear"), (np.tensordot(X**2, W, 1), "poly")):
        search = KernelRLSCV(kernels=kernels).fit(X, Y + noise)
        assert search.kernel_params_["kernel"] == expected
    assert len(search.kernels_) == 8


def test_ranks_are_found():
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
def test_final_model_is_the_estimator_at_the_best_place(selection):
    X, Y = smooth()
    search = KernelHOLRRCV(ALPHAS, gammas=[0.1, 1.0], selection=selection).fit(X, Y)
    k, a, *rank = search.best_index_
    assert (search.alpha_, search.gamma_) == (ALPHAS[a], [0.1, 1.0][k])
    if selection != "stack":
        params = {"alpha": ALPHAS[a], "gamma": search.gamma_, "kernel": "rbf"}
        expected = KernelHOLRR(tuple(R + 1 for R in rank), **params).fit(X, Y)
        assert_allclose(search.predict(X), expected.predict(X), rtol=1e-9)


def test_search_with_refined_fits_and_criteria():
    X, Y = smooth()
    assert KernelHOLRRCV(ALPHAS, gammas=0.1, refine=True).fit(X, Y).best_estimator_.refine
    for criterion in ("aic", "bic", "gcv"):
        search = KernelHOLRRCV(gammas=[0.1, 1.0], criterion=criterion).fit(X, Y)
        assert search.cv_results_[criterion].shape[:2] == (2, len(search.alphas_))
        assert search.score(X, Y) > 0.7


def test_threads_do_not_change_the_results():
    X, Y = smooth()
    one = KernelHOLRRCV(ALPHAS, gammas=[0.1, 1.0]).fit(X, Y)
    two = KernelHOLRRCV(ALPHAS, gammas=[0.1, 1.0], n_jobs=2).fit(X, Y)
    assert_allclose(two.cv_results_["mean_mse"], one.cv_results_["mean_mse"], rtol=1e-10)


def test_median_of_distances():
    X = np.array([[0.0], [1.0], [3.0], [3.0]])
    # Distances 1, 3, 3, 2, 2 (and one of zero, which says nothing).
    assert median_gamma(X, kernel="laplacian") == pytest.approx(1 / 2)
    assert median_gamma(X[:3], np.array([1.0, 1.0, 2.0]), "laplacian") == pytest.approx(1 / 2)
    assert median_gamma(np.ones((4, 2))) == 1.0
    for scale in (1e-150, 1e150):
        assert median_gamma(scale * X) * scale**2 == pytest.approx(median_gamma(X))
    for scale in (1e-165, 1e165):
        assert median_gamma(scale * X, kernel="laplacian") * scale == pytest.approx(1 / 2)
        with pytest.raises(ValueError, match="Scale X"):
            median_gamma(scale * X)


def test_default_penalties_cover_kernels_of_different_scale():
    assert_allclose(kernel_alphas([2.0]), 2.0 * np.logspace(-5, 2, 15), rtol=1e-12)
    both = kernel_alphas([1e-3, 10.0, 0.0, np.inf])
    assert_allclose(both[[0, -1]], [1e-8, 1e3], rtol=1e-12)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"kernels": []}, "kernels must be a list"),
        ({"kernels": "rbf"}, "kernels must be a list"),
        ({"kernels": [{"gamma": 1.0}]}, r"kernels\[0\] must have the key 'kernel'"),
        ({"kernels": ["rbf", {"kernel": "rbf", "width": 1}]}, r"kernels\[1\]"),
        ({"kernels": ["triangle"]}, r"kernels\[0\] names 'triangle'"),
        ({"kernels": [{"kernel": "rbf", "gamma": "wide"}]}, r"kernels\[0\] has gamma='wide'"),
        ({"kernels": ["precomputed", "rbf"]}, "precomputed"),
        ({"gammas": []}, "gammas"),
        ({"gammas": [-1.0]}, "gammas"),
        ({"gammas": "scale"}, "gammas"),
        ({"kernel": "triangle"}, "kernel"),
        ({"alphas": [-1.0]}, "alphas"),
        ({"ranks": (99, 1, 1)}, "ranks"),
        ({"kernel": "precomputed", "n_components": 3}, "square|precomputed"),
    ],
)
def test_bad_candidates_are_named(params, message):
    X, Y = smooth()
    with pytest.raises((ValueError, TypeError), match=message):
        KernelHOLRRCV(**params).fit(X, Y)


def test_candidates_take_the_shared_parameters():
    X, _ = smooth()
    default = {"kernel": "poly", "degree": 2, "coef0": 0.5, "kernel_params": None}
    (found,) = check_kernels(None, default, None, X)
    assert found == {"kernel": "poly", "gamma": None, "degree": 2, "coef0": 0.5}
    found = check_kernels([{"kernel": "poly", "degree": 4}, "cosine"], default, [1.0, 2.0], X)
    assert found == [
        {"kernel": "poly", "gamma": 1.0, "degree": 4, "coef0": 0.5},
        {"kernel": "poly", "gamma": 2.0, "degree": 4, "coef0": 0.5},
        {"kernel": "cosine"},
    ]


def test_scale_of_a_kernel_is_that_of_the_samples_with_weight():
    X, w = toy()[0], np.ones(40)
    w[:10] = 0
    spec = {"kernel": "rbf", "gamma": 0.1}
    found = mean_eigenvalue(spec, X, w)
    assert_allclose(found, mean_eigenvalue(spec, X[10:], w[10:]))
    assert_allclose(found, mean_eigenvalue(spec, X.repeat(2, axis=0), w.repeat(2)) / 2)


def test_scale_of_a_precomputed_kernel_is_that_of_some_rows_and_the_same_columns():
    X, Y = toy(n=900)
    some = some_samples(Samples(X @ X.T, Y))
    expected = mean_eigenvalue({"kernel": "linear"}, *some_samples(Samples(X, Y)))
    assert_allclose(mean_eigenvalue({"kernel": "precomputed"}, *some), expected)


def test_median_of_distances_counts_weights_as_repetitions():
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(12, 2)), rng.integers(0, 9, 12)
    assert median_gamma(X, w) == median_gamma(X.repeat(w, axis=0))
    assert median_gamma(X, w) != median_gamma(X)
