"""Singular, indefinite, large and small Gram matrices: finite fits, or errors."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel, sigmoid_kernel

from holrr import HOLRR, KernelHOLRR, KernelHOLRRCV, KernelLRR, KernelRLS, KernelRLSCV
from problems import toy

ESTIMATORS = [KernelRLS(), KernelLRR(2), KernelHOLRR(2), KernelHOLRR(2, subspaces="response")]


def assert_finite(model, X):
    assert np.isfinite(model.predict(X)).all()
    assert np.isfinite([model.objective_, model.lower_bound_]).all()
    assert np.isfinite(model.dual_coef_).all()


@pytest.fixture(params=ESTIMATORS, ids=str)
def estimator(request):
    return clone(request.param)


@pytest.mark.parametrize("alpha", [0.0, 1e-14, 1e-3, 1.0])
def test_repeated_samples_give_the_fit_of_their_means(estimator, alpha):
    X, Y = toy(n=20)
    X2 = np.vstack([X, X])
    other = Y + np.random.default_rng(1).normal(size=Y.shape)
    twice = estimator.set_params(kernel="rbf", alpha=alpha)
    twice.fit(X2, np.concatenate([Y, other]))
    assert_finite(twice, X)
    if getattr(estimator, "subspaces", "") != "response":
        predicted = twice.predict(X)
        once = estimator.fit(X, (Y + other) / 2, np.full(20, 2.0))
        assert_allclose(predicted, once.predict(X), rtol=1e-5, atol=1e-6)


def test_fit_without_penalty_interpolates_with_least_norm():
    X, Y = toy(n=15)
    model = KernelRLS(0.0, kernel="rbf", gamma=1.0).fit(X, Y)
    assert_allclose(model.predict(X), Y, rtol=1e-8)
    # With a linear kernel of rank 5 it is the solution of least norm of the linear model.
    X, Y = toy()
    kernel, linear = KernelHOLRR(2, 0.0).fit(X, Y), HOLRR(2, 0.0).fit(X, Y)
    assert_allclose(kernel.coef_, linear.coef_, rtol=1e-8, atol=1e-9)
    assert kernel.solver_ == "eigh"


def test_rounding_of_a_gram_matrix_does_not_matter(estimator):
    X, Y = toy(n=30, d0=3)
    noise = np.random.default_rng(1).normal(size=(30, 30)) * 1e-16
    K = X @ X.T
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for alpha in (0.0, 1e-10, 1.0):
            exact = estimator.set_params(kernel="precomputed", alpha=alpha).fit(K, Y).predict(K)
            noisy = K + (noise + noise.T) * np.abs(K).max()
            assert_allclose(estimator.fit(noisy, Y).predict(K), exact, rtol=1e-5, atol=1e-5)


def test_gram_matrices_in_single_precision(estimator):
    X, Y = toy(n=30)
    K = rbf_kernel(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exact = estimator.set_params(kernel="precomputed", alpha=0.1).fit(K, Y)
        expected = exact.predict(K)
        single = estimator.fit(K.astype(np.float32), Y.astype(np.float32))
    predicted = single.predict(K.astype(np.float32))
    assert predicted.dtype == np.float32
    assert_allclose(predicted, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("alpha", [0.0, 1e-3, 1.0, 100.0])
def test_indefinite_kernels_warn_and_are_replaced_by_their_positive_part(estimator, alpha):
    X, Y = toy(n=30)
    estimator.set_params(kernel="sigmoid", gamma=0.5, coef0=-1.0, alpha=alpha)
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        estimator.set_params(fit_intercept=False).fit(X, Y)
    assert_finite(estimator, X)
    K = sigmoid_kernel(X, gamma=0.5, coef0=-1.0)
    lam, Q = np.linalg.eigh(K)
    assert lam[0] < -1e-3
    keep = lam > 1e-10
    positive = (Q[:, keep] * lam[keep]) @ Q[:, keep].T
    estimator.set_params(kernel="precomputed")
    expected = estimator.fit(positive, Y).predict(positive)
    estimator.set_params(kernel="sigmoid")
    with pytest.warns(UserWarning, match="semidefinite"):
        assert_allclose(estimator.fit(X, Y).predict(X), expected, rtol=1e-6, atol=1e-7)


def test_positive_kernels_do_not_warn():
    X, Y = toy(n=30)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for far in (0.0, 1e5):
            model = KernelHOLRR(2, alpha=0.0, kernel="rbf", gamma=1e-3).fit(X + far, Y)
            assert_finite(model, X + far)


@pytest.mark.parametrize("scale", [1e-200, 1e-150, 1e-8, 1e8, 1e150, 1e200])
def test_scale_of_the_outputs_scales_the_predictions(estimator, scale):
    X, Y = toy()
    estimator.set_params(kernel="rbf", alpha=0.1)
    expected = estimator.fit(X, Y).predict(X)
    predicted = estimator.fit(X, scale * Y).predict(X)
    assert_allclose(predicted / scale, expected, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("alpha", [1e-12, 1e6, 1e12])
def test_extreme_penalties_give_finite_fits(estimator, alpha):
    X, Y = toy()
    model = estimator.set_params(kernel="rbf", alpha=alpha, fit_intercept=False).fit(X, Y)
    assert_finite(model, X)
    if isinstance(estimator, KernelRLS):
        flat = Y.reshape(40, -1)
        expected = KernelRidge(alpha=alpha, kernel="rbf").fit(X, flat).predict(X)
        size = np.abs(expected).max()
        assert_allclose(model.predict(X).reshape(40, -1), expected, rtol=1e-5, atol=1e-5 * size)


@pytest.mark.parametrize("solver", ["auto", "eigh"])
def test_constant_data_and_few_samples(estimator, solver, use_solver):
    use_solver(solver)
    estimator.set_params(kernel="rbf", alpha=0.5)
    X, Y = toy()
    mean = Y.mean(axis=0)
    constant = estimator.fit(np.ones_like(X), Y)
    assert_allclose(constant.predict(X[:3]), np.broadcast_to(mean, (3, 3, 4)), rtol=1e-9)
    assert_allclose(constant.objective_, np.sum((Y - mean) ** 2), rtol=1e-9)
    assert_finite(constant, X)
    flat = estimator.fit(X, np.full_like(Y, 7.0))
    assert_allclose(flat.predict(X), np.full_like(Y, 7.0), rtol=1e-12)
    some = Y.copy()
    some[:, 0, :] = 3.0
    assert_allclose(estimator.fit(X, some).predict(X)[:, 0], np.full((40, 4), 3.0), rtol=1e-9)
    one = estimator.fit(X[:1], Y[:1])
    assert_allclose(one.predict(X[:2]), np.concatenate([Y[:1], Y[:1]]), rtol=1e-12)
    assert_finite(estimator.fit(X[:2], Y[:2]), X)


def test_single_sample_with_weight_is_predicted():
    X, Y = toy()
    w = np.zeros(40)
    w[3] = 2.5
    model = KernelHOLRR(2, kernel="rbf").fit(X, Y, w)
    assert_allclose(model.predict(X[:2]), np.stack([Y[3], Y[3]]), rtol=1e-10)


BAD = {
    "rectangular Gram": (lambda K, Y: (K[:, :-1], Y), "Gram matrix of shape"),
    "asymmetric Gram": (lambda K, Y: (K + np.triu(np.ones_like(K)), Y), "symmetric Gram matrix"),
    "NaN in Gram": (lambda K, Y: (np.where(K == 1, np.nan, K), Y), "X.*NaN"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_gram_matrices_raise(estimator, case):
    X, Y = toy()
    K = rbf_kernel(X)
    change, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        estimator.set_params(kernel="precomputed").fit(*change(K, Y))
    model = estimator.fit(K, Y)
    with pytest.raises(ValueError, match="40 features"):
        model.predict(K[:, :5])


def test_kernels_that_overflow_raise():
    X, Y = toy()
    with pytest.raises(ValueError, match=r"kernel='poly'.*infinity"):
        KernelRLS(kernel="poly", degree=5).fit(1e100 * X, Y)


TINY_MODELS = [
    KernelRLS(0.0, kernel="linear"),
    KernelRLS(0.0, kernel="linear", landmarks=20, random_state=0),
    KernelHOLRR(1, 0.0, kernel="poly", coef0=0, degree=2),
    KernelRLSCV(kernel="linear", cv=3),
    KernelHOLRRCV(kernel="linear", cv=3),
    KernelRLSCV(kernel="linear", cv=3, landmarks=20, random_state=0),
]


@pytest.mark.parametrize("model", TINY_MODELS, ids=repr)
@pytest.mark.parametrize("scale", [1e-161, 1e-165, 1e-250])
def test_inputs_whose_products_vanish_are_refused(model, scale):
    X, Y = toy(n=30, d0=3)
    with pytest.raises(ValueError, match=r"X is too small for kernel=.* at most .*e-\d+.*Multiply"):
        model.fit(scale * X, Y)
    assert not hasattr(model, "intercept_")


@pytest.mark.parametrize("model", TINY_MODELS[:2] + TINY_MODELS[3:], ids=repr)
def test_inputs_whose_products_are_small_are_fitted(model):
    X, Y = toy(n=30, d0=3)
    expected = clone(model).fit(X, Y).predict(X)
    for scale in (1e-100, 1e-149):
        found = clone(model).fit(scale * X, Y).predict(scale * X)
        assert_allclose(found, expected, rtol=0, atol=1e-6 * np.abs(Y).max())


@pytest.mark.parametrize("kernel", ["linear", "poly"])
@pytest.mark.parametrize("params", [{}, {"landmarks": 20, "random_state": 0}])
def test_inputs_that_a_kernel_cannot_tell_apart_are_warned_of(kernel, params):
    """An offset that is far larger than the spread leaves rounding of a centred Gram matrix."""
    X, Y = toy(n=30, d0=3)
    with pytest.warns(
        UserWarning, match=f"kernel='{kernel}' has the same value.*Subtract the mean"
    ):
        KernelRLS(1e-8, kernel=kernel, **params).fit(X + 1e10, Y)
    with pytest.warns(UserWarning, match="has the same value for all pairs of samples"):
        KernelRLSCV(cv=3, kernel=kernel, **params).fit(X + 1e10, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KernelRLS(1e-3, kernel=kernel, **params).fit(X + 10, Y)
        KernelRLS(1e-3, kernel=kernel, **params).fit(np.full_like(X, 1e10), Y)


@pytest.mark.parametrize("params", [{}, {"landmarks": 20, "random_state": 0}])
def test_offsets_of_inputs_do_not_change_a_gaussian_kernel(params):
    """Distances are no differences of large squares."""
    X, Y = toy(n=30, d0=3)
    expected = KernelRLS(1e-3, kernel="rbf", gamma=0.1, **params).fit(X, Y).predict(X)
    for offset in (1e6, -1e9):
        there = X + offset
        model = KernelRLS(1e-3, kernel="rbf", gamma=0.1, **params).fit(there, Y)
        assert_allclose(model.predict(there), expected, rtol=0, atol=3e-14 * abs(offset) * 100)


@pytest.mark.parametrize("landmarks", [None, 5])
def test_a_kernel_that_is_zero_for_equal_samples_is_no_problem_of_small_inputs(landmarks):
    rng = np.random.default_rng(0)
    X, Y = rng.uniform(size=(20, 3)), rng.normal(size=(20, 2))
    with pytest.raises(ValueError, match="'additive_chi2' is not positive semidefinite"):
        KernelRLS(kernel="additive_chi2", landmarks=landmarks).fit(X, Y)
