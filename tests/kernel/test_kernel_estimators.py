"""Kernel estimators against KernelRidge, linear models, Algorithm 2 and explicit features."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_reference import algorithm_2, polynomial_features, top_eigenvectors
from numpy.testing import assert_allclose
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel

import reference
from holrr import HOLRR, LRR, RLS, KernelHOLRR, KernelLRR, KernelRLS
from problems import toy

SOLVERS = ["auto", "eigh"]
KERNELS = [
    {"kernel": "linear"},
    {"kernel": "rbf", "gamma": 0.1},
    {"kernel": "poly", "degree": 2, "gamma": 0.5, "coef0": 1.0},
    {"kernel": "laplacian", "gamma": 0.3},
    {"kernel": "cosine"},
]


def weights(n=40, seed=1):
    return np.random.default_rng(seed).integers(0, 4, n).astype(float)


def flat(Y):
    return Y.reshape(len(Y), -1)


# ---------------------------------------------------------------- references


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("params", KERNELS, ids=lambda p: p["kernel"])
def test_full_rank_without_intercept_is_kernel_ridge(params, weighted, solver, use_solver):
    use_solver(solver)
    X, Y = toy()
    w = weights() if weighted else None
    expected = KernelRidge(alpha=0.3, **params).fit(X, flat(Y), w)
    for estimator in (KernelRLS, KernelLRR, KernelHOLRR):
        model = estimator(alpha=0.3, fit_intercept=False, **params).fit(X, Y, w)
        predicted = flat(model.predict(X[:9] + 0.5))
        assert_allclose(predicted, expected.predict(X[:9] + 0.5), rtol=1e-9, atol=1e-9)
        if estimator is KernelRLS and params["kernel"] in ("rbf", "laplacian"):
            assert_allclose(flat(model.dual_coef_), expected.dual_coef_, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("n", [40, 7])
def test_linear_kernel_equals_the_linear_estimators(n, fit_intercept, weighted, solver, use_solver):
    use_solver(solver)
    X, Y = toy(n=n)
    w = weights(n) if weighted else None
    shared = {"alpha": 0.3, "fit_intercept": fit_intercept}
    pairs = [
        (KernelRLS(**shared), RLS(**shared)),
        (KernelLRR(rank=2, **shared), LRR(rank=2, **shared)),
        (KernelHOLRR(rank=2, **shared), HOLRR(rank=2, **shared)),
        (KernelHOLRR(rank=(3, 0.9, None), **shared), HOLRR(rank=(3, 0.9, None), **shared)),
        (KernelHOLRR(2, subspaces="response", **shared), HOLRR(2, subspaces="response", **shared)),
        (KernelHOLRR(2, refine=True, **shared), HOLRR(2, refine=True, **shared)),
    ]
    for kernel, linear in pairs:
        kernel.fit(X, Y, w)
        linear.fit(X, Y, w)
        assert_allclose(kernel.coef_, linear.coef_, rtol=1e-9, atol=1e-10)
        assert_allclose(kernel.intercept_, linear.intercept_, rtol=1e-9, atol=1e-9)
        assert_allclose(kernel.objective_, linear.objective_, rtol=1e-9)
        assert_allclose(kernel.lower_bound_, linear.lower_bound_, rtol=1e-9)
        assert getattr(kernel, "rank_", None) == getattr(linear, "rank_", None)


@pytest.mark.parametrize("rank", [(1, 1, 1), (2, 2, 3), (4, 3, 2), (3, 3, 4)])
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_response_subspaces_are_algorithm_2(kernel, rank):
    X, Y = toy(n=25)
    model = KernelHOLRR(rank, 0.4, kernel=kernel, subspaces="response", fit_intercept=False)
    model.fit(X, Y)
    K = pairwise_kernels(X, metric=kernel)
    expected = algorithm_2(K, Y, rank, 0.4)
    assert_allclose(model.predict(X), np.tensordot(K, expected, 1), rtol=1e-7, atol=1e-8)
    new = X[:5] - 0.3
    k_new = pairwise_kernels(new, X, metric=kernel)
    assert_allclose(model.predict(new), np.tensordot(k_new, expected, 1), rtol=1e-7, atol=1e-8)


def test_proposition_2_maps_eigenvectors_of_the_gram_form_to_the_feature_form():
    X, Y = toy(n=12, d0=2)
    Phi = polynomial_features(X, degree=2)
    K, Y0, gamma = Phi @ Phi.T, reference.unfold(Y, 0), 0.7
    lam, A = top_eigenvectors(np.linalg.inv(K + gamma * np.eye(12)) @ Y0 @ Y0.T @ K, 3)
    F = np.linalg.inv(Phi.T @ Phi + gamma * np.eye(Phi.shape[1])) @ Phi.T @ Y0 @ Y0.T @ Phi
    V = Phi.T @ A
    assert_allclose(F @ V, V * lam, rtol=1e-8)
    # The estimator's input subspace is that of the features.
    shared = {"alpha": gamma, "fit_intercept": False}
    model = KernelLRR(rank=3, kernel="poly", degree=2, gamma=1.0, **shared).fit(X, Y)
    angles = np.linalg.svd(np.linalg.qr(Phi.T @ model.factors_[0])[0].T @ np.linalg.qr(V)[0])[1]
    assert_allclose(angles, 1, rtol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_polynomial_kernel_equals_linear_estimators_on_explicit_features(
    weighted, fit_intercept, solver, use_solver
):
    use_solver(solver)
    X, Y = toy(n=30, d0=2)
    w = weights(30) if weighted else None
    Phi = polynomial_features(X, degree=2)
    kernel = {"kernel": "poly", "degree": 2, "gamma": 1.0}
    shared = {"alpha": 0.2, "fit_intercept": fit_intercept}
    for subspaces in ("fitted", "response"):
        rank = (3, 2, 2)
        model = KernelHOLRR(rank, subspaces=subspaces, **shared, **kernel).fit(X, Y, w)
        linear = HOLRR(rank, subspaces=subspaces, **shared).fit(Phi, Y, w)
        assert_allclose(model.predict(X), linear.predict(Phi), rtol=1e-7, atol=1e-8)
        assert_allclose(model.objective_, linear.objective_, rtol=1e-8)
        assert_allclose(model.lower_bound_, linear.lower_bound_, rtol=1e-8)
        features = np.tensordot(Phi.T, model.dual_coef_, axes=1)
        assert_allclose(features, linear.coef_, rtol=1e-6, atol=1e-8)


# ---------------------------------------------------------------- certificates


@pytest.mark.parametrize("alpha", [1e-3, 0.5, 20.0])
@pytest.mark.parametrize("rank", [(1, 1, 1), (2, 2, 2), (3, 1, 4)])
def test_objective_is_within_p_plus_1_of_the_optimum_in_feature_space(rank, alpha):
    X, Y = toy(n=20, d0=2, noise=2.0)
    Phi = polynomial_features(X, degree=2)
    fit = {"kernel": "poly", "degree": 2, "gamma": 1.0, "fit_intercept": False}
    for subspaces in ("fitted", "response"):
        model = KernelHOLRR(rank, alpha, subspaces=subspaces, **fit).fit(X, Y)
        W = np.tensordot(Phi.T, model.dual_coef_, axes=1)
        assert_allclose(model.objective_, reference.objective(Phi, Y, W, alpha), rtol=1e-8)
        assert_allclose(model.lower_bound_, reference.lower_bound(Phi, Y, alpha, rank), rtol=1e-8)
        rng = np.random.default_rng(0)
        others = [reference.random_feasible(Phi, Y, alpha, rank, rng) for _ in range(20)]
        # Alternating least squares improve on Algorithm 2.
        refined = KernelHOLRR(rank, alpha, subspaces=subspaces, refine=True, **fit).fit(X, Y)
        best = min(refined.objective_, *(reference.objective(Phi, Y, V, alpha) for V in others))
        assert model.objective_ <= 3 * best * (1 + 1e-9)
        assert model.lower_bound_ <= best * (1 + 1e-9)
        r = KernelRLS(alpha, **fit).fit(X, Y).objective_
        if subspaces == "fitted":
            assert model.objective_ - r <= 3 * (best - r) * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("solver", SOLVERS)
def test_objective_without_centred_kernel_is_that_of_centred_outputs(solver, use_solver):
    use_solver(solver)
    X, Y = toy(n=30, d0=2)
    fit = {"kernel": "poly", "degree": 2, "gamma": 1.0, "center_kernel": False}
    model = KernelHOLRR(2, 0.5, **fit).fit(X, Y)
    Phi = polynomial_features(X, degree=2)
    W = np.tensordot(Phi.T, model.dual_coef_, axes=1)
    expected = reference.objective(Phi, Y - Y.mean(0), W, 0.5)
    assert_allclose(model.objective_, expected, rtol=1e-9)
    assert_allclose(model.intercept_, Y.mean(0), rtol=1e-12)
    joint = KernelHOLRR(2, 0.5, **{**fit, "center_kernel": True}).fit(X, Y)
    assert joint.objective_ <= model.objective_


@pytest.mark.parametrize("shape", [(), (1,), (3,), (3, 4), (2, 3, 2, 2)], ids=str)
@pytest.mark.parametrize("solver", SOLVERS)
def test_outputs_of_every_order(shape, solver, use_solver):
    use_solver(solver)
    X, Y = toy(shape=shape)
    for estimator in (KernelRLS(), KernelLRR(2), KernelHOLRR(2)):
        model = estimator.set_params(kernel="rbf", alpha=0.1).fit(X, Y)
        assert model.predict(X[:7]).shape == (7, *shape)
        assert model.dual_coef_.shape == (40, *shape)
        assert np.shape(model.intercept_) == shape
        dense = np.tensordot(rbf_kernel(X), model.dual_coef_, 1) + model.intercept_
        assert_allclose(model.predict(X), dense, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    "rank", [(1, 1, 1), (2, 3, 4), (5, 2, 2), (12, 3, 4), None, (0.9, 0.9, 0.9)], ids=str
)
def test_cholesky_and_eigh_agree_at_every_rank(rank, use_solver):
    X, Y = toy(n=60, shape=(3, 4))
    fits = []
    for solver in SOLVERS:
        use_solver(solver)
        fits.append(KernelHOLRR(rank, 0.05, kernel="rbf").fit(X, Y))
    assert [m.solver_ for m in fits] == ["cholesky", "eigh"]
    assert fits[0].rank_ == fits[1].rank_
    assert_allclose(fits[0].predict(X), fits[1].predict(X), rtol=1e-8, atol=1e-9)
    for a, b in zip(*(m.spectra_ for m in fits), strict=True):
        k = min(len(a), len(b))
        assert_allclose(a[:k], b[:k], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
def test_input_rank_is_at_most_the_number_of_outputs(solver, use_solver):
    use_solver(solver)
    X, Y = toy(shape=(2, 3))
    assert KernelHOLRR(kernel="rbf").fit(X, Y).rank_ == (6, 2, 3)
    assert KernelHOLRR((39, 1, 1), kernel="rbf").fit(X, Y).rank_[0] == 6
    assert KernelLRR(30, kernel="rbf").fit(X, Y).rank_ == 6
    # With more outputs than samples it is at most the number of samples.
    X, Y = toy(n=5, shape=(3, 4))
    assert KernelHOLRR(kernel="rbf", fit_intercept=False).fit(X, Y).rank_ == (5, 3, 4)
    assert KernelHOLRR(kernel="rbf").fit(X, Y).rank_ == (4, 3, 4)


# ---------------------------------------------------------------- kernels


def test_callable_and_precomputed_kernels_equal_the_named_kernel():
    X, Y = toy()
    new = X[:6] + 0.1
    expected = KernelHOLRR(2, kernel="rbf", gamma=0.2).fit(X, Y)

    def gaussian(x, z, width):
        return np.exp(-width * np.sum((x - z) ** 2))

    called = KernelHOLRR(2, kernel=gaussian, kernel_params={"width": 0.2}).fit(X, Y)
    assert_allclose(called.predict(new), expected.predict(new), rtol=1e-9)
    K = rbf_kernel(X, gamma=0.2)
    given = KernelHOLRR(2, kernel="precomputed").fit(K, Y)
    assert_allclose(given.predict(rbf_kernel(new, X, gamma=0.2)), expected.predict(new), rtol=1e-9)
    assert given.X_fit_ is None
    assert_allclose(K, rbf_kernel(X, gamma=0.2), rtol=0, atol=0)


def test_coef_is_available_for_the_linear_kernel_only():
    X, Y = toy()
    models = [KernelRLS(kernel="rbf").fit(X, Y)]
    models.append(KernelHOLRR(2, kernel="rbf", landmarks=X[:6]).partial_fit(X, Y))
    for model in models:
        with pytest.raises(AttributeError, match=r"coef_.*kernel='linear'"):
            _ = model.coef_
        with pytest.raises(AttributeError, match="no attribute 'other_'"):
            _ = model.other_
    assert KernelRLS().fit(X, Y).coef_.shape == (5, 3, 4)


def test_model_does_not_change_with_the_arrays_of_its_fit():
    X, Y = toy()
    model = KernelRLS(kernel="rbf").fit(X, Y)
    before = model.predict(X)
    copy = X.copy()
    X += 100
    assert_allclose(model.predict(copy), before, rtol=0, atol=0)


def test_predictions_of_many_samples_are_those_of_some_of_them():
    """The kernel values of 40,000 samples are computed in blocks of 128 MB."""
    X, Y = toy(n=500, shape=(2,))
    model = KernelLRR(1, kernel="rbf").fit(X, Y)
    new = np.random.default_rng(1).normal(size=(40_000, 5))
    whole = model.predict(new)
    for rows in (slice(0, 99), slice(33_500, 33_599), slice(39_900, None)):
        assert_allclose(whole[rows], model.predict(new[rows]), rtol=1e-10)


def test_offsets_of_inputs_do_not_change_predictions_of_centred_kernels():
    X, Y = toy()
    for alpha in (1.0, 1e-3):
        near, far = KernelRLS(alpha).fit(X, Y), KernelRLS(alpha).fit(X + 1e4, Y)
        assert_allclose(far.predict(X + 1e4), near.predict(X), rtol=1e-5, atol=1e-5)


def test_std_does_not_count_samples_without_weight():
    X, Y = toy()
    w = np.tile([0.0, 1.0], 20)
    model = KernelHOLRR(rank=2, gamma=0.1)
    weighted = model.fit(X, Y, sample_weight=w).predict(X, return_std=True)[1]
    assert_allclose(weighted, model.fit(X[1::2], Y[1::2]).predict(X, return_std=True)[1])


def test_chi2_has_its_own_default_gamma():
    X, Y = toy()
    X = np.abs(X)
    expected = KernelRLS(kernel="chi2", gamma=1.0).fit(X, Y).predict(X)
    assert_allclose(KernelRLS(kernel="chi2").fit(X, Y).predict(X), expected)


def test_callable_kernels_get_parameters_that_are_none():
    X, Y = toy()
    product = lambda x, z, scale: x @ z / (scale or 1.0)  # noqa: E731
    model = KernelRLS(kernel=product, kernel_params={"scale": None}).fit(X, Y)
    assert_allclose(model.predict(X), KernelRLS(kernel="linear").fit(X, Y).predict(X))
