"""scikit-learn's checks, array libraries and files, for kernels and options beyond the registry."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils.estimator_checks import parametrize_with_checks

from holrr import io
from holrr.kernel import (
    KernelHOLRR,
    KernelHOLRRCV,
    KernelLRR,
    KernelLRRCV,
    KernelRLS,
    KernelRLSCV,
)
from problems import toy

CHECKED = [
    KernelRLS(kernel="rbf"),
    KernelLRR(kernel="poly"),
    KernelHOLRR(kernel="rbf", solver="eigh"),
    KernelHOLRR(kernel="rbf", n_components=50, random_state=0),
    KernelRLSCV(),
    KernelLRRCV(alphas=[0.1, 1.0]),
    KernelHOLRRCV(alphas=[0.1, 1.0], gammas=[0.1, 1.0]),
]


@pytest.mark.filterwarnings("ignore:the best penalty", "ignore:n_components")
@parametrize_with_checks(CHECKED)
def test_scikit_learn_estimator_checks(estimator, check):
    check(estimator)


# ---------------------------------------------------------------- array libraries


@pytest.mark.parametrize("solver", ["auto", "eigh"])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "polynomial", "sigmoid"])
@pytest.mark.parametrize("weighted", [False, True])
def test_other_array_libraries_give_the_same_fit(xp, kernel, solver, weighted):
    X, Y = toy()
    if kernel == "sigmoid":
        X = 0.1 * X
    w = np.random.default_rng(1).uniform(size=40) if weighted else None
    wx = None if w is None else xp.asarray(w)
    # Of a sigmoid kernel small eigenvalues may be of either sign.
    alpha, near = (1.0, 1e-5) if kernel == "sigmoid" else (0.3, 1e-8)
    params = {"kernel": kernel, "solver": solver, "alpha": alpha}
    for estimator in (KernelRLS(), KernelLRR(2), KernelHOLRR(2, subspaces="response")):
        estimator.set_params(**params)
        expected = estimator.fit(X, Y, w).predict(X)
        model = estimator.fit(xp.asarray(X), xp.asarray(Y), wx)
        predicted = model.predict(xp.asarray(X))
        assert xp.owns(predicted)
        assert_allclose(xp.to_numpy(predicted), expected, rtol=near, atol=near)
        assert_allclose(model.predict(X), expected, rtol=near, atol=near)


def test_other_array_libraries_take_gram_matrices_and_landmarks(xp):
    X, Y = toy()
    K = X @ X.T + 1
    expected = KernelHOLRR(2, kernel="precomputed").fit(K, Y).predict(K)
    model = KernelHOLRR(2, kernel="precomputed").fit(xp.asarray(K), xp.asarray(Y))
    assert_allclose(xp.to_numpy(model.predict(xp.asarray(K))), expected, rtol=1e-8)
    params = {"kernel": "rbf", "n_components": 6, "random_state": 0}
    expected = KernelHOLRR(2, **params).fit(X, Y).predict(X)
    model = KernelHOLRR(2, **params).partial_fit(xp.asarray(X), xp.asarray(Y))
    predicted = model.predict(xp.asarray(X))
    assert xp.owns(predicted)
    assert_allclose(xp.to_numpy(predicted), expected, rtol=1e-7)


@pytest.mark.filterwarnings("ignore:the best penalty")
@pytest.mark.parametrize("n_components", [None, 8])
def test_other_array_libraries_can_be_searched(xp, n_components):
    X, Y = toy(n=24, shape=(2, 3))
    params = {"alphas": [0.1, 1.0], "cv": 3, "n_components": n_components, "random_state": 0}
    expected = KernelHOLRRCV(**params).fit(X, Y)
    search = KernelHOLRRCV(**params).fit(xp.asarray(X), xp.asarray(Y))
    assert_allclose(
        search.cv_results_["mean_mse"], expected.cv_results_["mean_mse"], rtol=1e-6, atol=1e-9
    )
    assert xp.owns(search.predict(xp.asarray(X)))


def test_kernels_of_numpy_only_say_so(xp):
    if xp.name == "numpy":
        pytest.skip("all kernels are there for NumPy")
    X, Y = toy()
    with pytest.raises(ValueError, match="kernel='laplacian' is computed for NumPy arrays only"):
        KernelRLS(kernel="laplacian").fit(xp.asarray(X), xp.asarray(Y))


def test_single_precision_stays_single_precision(xp):
    X, Y = toy()
    single = [xp.asarray(a.astype(np.float32)) for a in (X, Y)]
    model = KernelHOLRR(2, kernel="rbf").fit(*single)
    predicted = model.predict(single[0])
    assert predicted.dtype == single[0].dtype == model.dual_coef_.dtype
    expected = KernelHOLRR(2, kernel="rbf").fit(X, Y).predict(X)
    assert_allclose(xp.to_numpy(predicted), expected, rtol=1e-3, atol=1e-3)


# ---------------------------------------------------------------- files


@pytest.mark.filterwarnings("ignore:the best penalty")
@pytest.mark.parametrize(
    "estimator",
    [
        KernelRLS(kernel="rbf"),
        KernelHOLRR(2, kernel="rbf", n_components=6, random_state=0),
        KernelHOLRRCV(alphas=[0.1, 1.0], gammas=[0.1, 1.0]),
    ],
    ids=str,
)
def test_saved_models_predict_the_same(estimator, tmp_path):
    X, Y = toy()
    model = estimator.fit(X, Y)
    io.save(model, tmp_path / "model.holrr")
    loaded = io.load(tmp_path / "model.holrr")
    assert_array_equal(loaded.predict(X), model.predict(X))
    if hasattr(model, "partial_fit"):
        assert_allclose(
            loaded.partial_fit(X, Y).predict(X), model.partial_fit(X, Y).predict(X), rtol=1e-9
        )
