"""Kernels with arrays of every library."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from holrr import KernelHOLRR, KernelLRR, KernelRLS
from problems import toy


@pytest.mark.filterwarnings("ignore:The kernel is not positive")
@pytest.mark.parametrize("solver", ["auto", "eigh"])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "polynomial", "sigmoid"])
@pytest.mark.parametrize("weighted", [False, True])
def test_kernels_in_every_array_library(other_xp, kernel, solver, weighted, use_solver):
    use_solver(solver)
    X, Y, xp = *toy(), other_xp
    if kernel == "sigmoid":
        X = 0.1 * X
    w = np.random.default_rng(1).uniform(size=40) if weighted else None
    wx = None if w is None else xp.asarray(w)
    # Small eigenvalues of a sigmoid kernel can have either sign.
    alpha, near = (1.0, 1e-5) if kernel == "sigmoid" else (0.3, 1e-8)
    params = {"kernel": kernel, "alpha": alpha}
    for estimator in (KernelRLS(), KernelLRR(2), KernelHOLRR(2, subspaces="response")):
        estimator.set_params(**params)
        expected = estimator.fit(X, Y, w).predict(X)
        model = estimator.fit(xp.asarray(X), xp.asarray(Y), wx)
        predicted = model.predict(xp.asarray(X))
        assert xp.owns(predicted)
        assert_allclose(xp.to_numpy(predicted), expected, rtol=near, atol=near)
        assert_allclose(model.predict(X), expected, rtol=near, atol=near)


def test_gram_matrices_and_landmarks_in_every_array_library(other_xp):
    X, Y, xp = *toy(), other_xp
    K = X @ X.T + 1
    expected = KernelHOLRR(2, kernel="precomputed").fit(K, Y).predict(K)
    model = KernelHOLRR(2, kernel="precomputed").fit(xp.asarray(K), xp.asarray(Y))
    assert_allclose(xp.to_numpy(model.predict(xp.asarray(K))), expected, rtol=1e-8)
    params = {"kernel": "rbf", "landmarks": 6, "random_state": 0}
    expected = KernelHOLRR(2, **params).fit(X, Y).predict(X)
    model = KernelHOLRR(2, **params).partial_fit(xp.asarray(X), xp.asarray(Y))
    predicted = model.predict(xp.asarray(X))
    assert xp.owns(predicted)
    assert_allclose(xp.to_numpy(predicted), expected, rtol=1e-7)


def test_kernels_of_numpy_only_raise_for_other_libraries(other_xp):
    X, Y = toy()
    with pytest.raises(ValueError, match=r"kernel='laplacian'.*NumPy"):
        KernelRLS(kernel="laplacian").fit(other_xp.asarray(X), other_xp.asarray(Y))


def test_distances_that_overflow_raise_in_every_library(xp):
    X, Y = toy()
    with pytest.raises(ValueError, match=r"kernel='rbf'.*infinity"):
        KernelRLS(kernel="rbf", gamma=1e-3).fit(xp.asarray(1e200 * X), xp.asarray(Y))
