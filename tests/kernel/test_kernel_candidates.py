"""Kernels that a search tries: widths and penalties from the data."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from holrr.data.validation import Samples
from holrr.kernel.candidates import (
    check_kernels,
    kernel_alphas,
    mean_eigenvalue,
    median_gamma,
    some_samples,
)
from problems import toy


def test_median_gamma_is_one_over_the_median_distance():
    X = np.array([[0.0], [1.0], [3.0], [3.0]])
    # Distances 1, 3, 3, 2, 2, and one of zero, which does not count.
    assert median_gamma(X, kernel="laplacian") == pytest.approx(1 / 2)
    assert median_gamma(X[:3], np.array([1.0, 1.0, 2.0]), "laplacian") == pytest.approx(1 / 2)
    assert median_gamma(np.ones((4, 2))) == 1.0
    for scale in (1e-150, 1e150):
        assert median_gamma(scale * X) * scale**2 == pytest.approx(median_gamma(X))
    for scale in (1e-165, 1e165):
        assert median_gamma(scale * X, kernel="laplacian") * scale == pytest.approx(1 / 2)
        with pytest.raises(ValueError, match="Scale X"):
            median_gamma(scale * X)


def test_default_penalties_cover_kernels_of_different_scales():
    assert_allclose(kernel_alphas([2.0]), 2.0 * np.logspace(-5, 2, 15), rtol=1e-12)
    both = kernel_alphas([1e-3, 10.0, 0.0, np.inf])
    assert_allclose(both[[0, -1]], [1e-8, 1e3], rtol=1e-12)


def test_candidates_have_the_shared_parameters():
    X, _ = toy()
    default = {"kernel": "poly", "degree": 2, "coef0": 0.5, "kernel_params": None}
    (found,) = check_kernels(None, default, None, X)
    assert found == {"kernel": "poly", "gamma": None, "degree": 2, "coef0": 0.5}
    found = check_kernels([{"kernel": "poly", "degree": 4}, "cosine"], default, [1.0, 2.0], X)
    assert found == [
        {"kernel": "poly", "gamma": 1.0, "degree": 4, "coef0": 0.5},
        {"kernel": "poly", "gamma": 2.0, "degree": 4, "coef0": 0.5},
        {"kernel": "cosine"},
    ]


def test_mean_eigenvalue_is_that_of_samples_with_weight():
    X, w = toy()[0], np.ones(40)
    w[:10] = 0
    spec = {"kernel": "rbf", "gamma": 0.1}
    found = mean_eigenvalue(spec, X, w)
    assert_allclose(found, mean_eigenvalue(spec, X[10:], w[10:]))
    assert_allclose(found, mean_eigenvalue(spec, X.repeat(2, axis=0), w.repeat(2)) / 2)


def test_mean_eigenvalue_of_a_precomputed_kernel_uses_the_same_rows_and_columns():
    X, Y = toy(n=900)
    some = some_samples(Samples(X @ X.T, Y))
    expected = mean_eigenvalue({"kernel": "linear"}, *some_samples(Samples(X, Y)))
    assert_allclose(mean_eigenvalue({"kernel": "precomputed"}, *some), expected)


def test_scales_of_many_samples_are_those_of_samples_with_weight():
    X, Y = toy(n=900)
    w = np.r_[np.zeros(300), np.ones(600)]
    wild = np.r_[1e3 * X[:300], X[300:]]
    found, expected = some_samples(Samples(wild, Y, w)), some_samples(Samples(X[300:], Y[300:]))
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[2], expected[2] + 300)
    K, some = wild @ wild.T, some_samples(Samples(wild @ wild.T, Y, w))
    np.testing.assert_array_equal(some[0], K[found[2]])
    assert_allclose(
        mean_eigenvalue({"kernel": "precomputed"}, *some),
        mean_eigenvalue({"kernel": "linear"}, *expected),
    )


def test_median_gamma_counts_integer_weights_as_repetitions():
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(12, 2)), rng.integers(0, 9, 12)
    assert median_gamma(X, w) == median_gamma(X.repeat(w, axis=0))
    assert median_gamma(X, w) != median_gamma(X)
