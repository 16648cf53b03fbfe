"""Kernels that a search tries: widths and penalties from the data."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import pdist
from sklearn.metrics.pairwise import rbf_kernel

from holrr import KernelRLSCV
from problems import toy

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty")

WIDTHS = np.logspace(-2, 0.5, 6)  # multiples of one over the median distance
SPREAD = {"laplacian": "cityblock", "rbf": "sqeuclidean"}


def gammas(X, w=None, kernel="rbf"):
    """Values of gamma that a search tries by default."""
    y = np.random.default_rng(0).normal(size=len(X))
    search = KernelRLSCV([1.0], cv=2, kernel=kernel).fit(X, y, w)
    return np.array([spec["gamma"] for spec in search.kernels_])


@pytest.mark.parametrize("kernel", SPREAD)
def test_default_widths_are_multiples_of_the_median_distance(kernel):
    X = np.random.default_rng(1).normal(size=(31, 2))
    assert_allclose(gammas(X, kernel=kernel), WIDTHS / np.median(pdist(X, SPREAD[kernel])))


def test_equal_samples_have_no_distance_and_weights_count_repetitions():
    X = np.array([[0.0], [1.0], [3.0], [3.0]])
    # Distances 1, 3, 3, 2, 2, and one of zero, which does not count.
    assert_allclose(gammas(X, kernel="laplacian"), WIDTHS / 2)
    assert_allclose(gammas(X[:3], np.array([1.0, 1.0, 2.0]), "laplacian"), WIDTHS / 2)
    assert_allclose(gammas(np.ones((4, 2)) * [[1.0, 2.0]]), WIDTHS)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, w = rng.normal(size=(12, 2)), rng.integers(0, 9, 12)
        assert_allclose(gammas(X, w), gammas(X.repeat(w, axis=0)))
        assert (gammas(X, w) != gammas(X)).all()


@pytest.mark.parametrize("kernel", SPREAD)
def test_default_widths_are_in_the_units_of_the_inputs(kernel):
    X, power = toy()[0], 2 if kernel == "rbf" else 1
    for scale in (1e-100, 1e100):
        assert_allclose(gammas(scale * X, kernel=kernel) * scale**power, gammas(X, kernel=kernel))
    for scale in (1e-165, 1e165) if kernel == "rbf" else ():
        with pytest.raises(ValueError, match="Scale X"):
            gammas(scale * X)


def test_candidates_have_the_shared_parameters():
    X, Y = toy()
    given = {"kernel": "poly", "degree": 2, "coef0": 0.5}
    (found,) = KernelRLSCV([1.0], cv=2, **given).fit(X, Y).kernels_
    assert found == {"kernel": "poly", "gamma": None, "degree": 2, "coef0": 0.5}
    kernels = [{"kernel": "poly", "degree": 4}, "cosine"]
    search = KernelRLSCV([1.0], cv=2, gammas=[1.0, 2.0], **{**given, "kernel": kernels}).fit(X, Y)
    assert search.kernels_ == [
        {"kernel": "poly", "gamma": 1.0, "degree": 4, "coef0": 0.5},
        {"kernel": "poly", "gamma": 2.0, "degree": 4, "coef0": 0.5},
        {"kernel": "cosine"},
    ]


def mean_eigenvalue(K, center=True):
    """That of the Gram matrix, about the mean of the features."""
    P = np.eye(len(K)) - center / len(K)
    return np.trace(P @ K @ P) / len(K)


@pytest.mark.parametrize("center", [True, False])
def test_default_penalties_are_multiples_of_the_mean_eigenvalues(center):
    """From 1e-5 times the least of all kernels to 1e2 times the largest, in half decades."""
    X, Y = toy(noise=10.0)
    means = [mean_eigenvalue(rbf_kernel(X, gamma=g), center) for g in (1e-4, 0.1)]
    alphas = (
        KernelRLSCV(gammas=[1e-4, 0.1], cv=3, center_kernel=center, selection="1se")
        .fit(X, Y)
        .alphas_
    )
    for end in (1e-5 * min(means), 1e2 * max(means)):
        assert np.abs(np.log(alphas / end)).min() < 1e-9
    steps = np.diff(np.log10(alphas))
    assert 0.45 < steps.max() <= 0.5


def test_default_penalties_of_precomputed_kernels_weights_and_many_samples():
    """Scales are those of at most 500 samples with weight; wild ones without do not count."""
    X, Y = toy(n=900)
    w = np.r_[np.zeros(300), np.ones(600)]
    wild = np.r_[1e3 * X[:300], X[300:]]
    splits = [
        (np.arange(500, 900), np.arange(300, 500)),
        (np.arange(300, 500), np.arange(700, 900)),
    ]
    inside = [(a - 300, b - 300) for a, b in splits]
    wide = {"kernel": "rbf", "selection": "min"}
    found = KernelRLSCV(cv=splits, gammas=[0.1], **wide).fit(wild, Y, w)
    alone = KernelRLSCV(cv=inside, gammas=[0.1], **wide).fit(X[300:], Y[300:])
    assert_allclose(found.alphas_, alone.alphas_)
    by_width = KernelRLSCV([1.0], cv=splits, **wide).fit(wild, Y, w)
    expected = KernelRLSCV([1.0], cv=inside, **wide).fit(X[300:], Y[300:])
    assert by_width.kernels_ == expected.kernels_
    K = rbf_kernel(wild, gamma=0.1)
    given = KernelRLSCV(cv=splits, kernel="precomputed").fit(K, Y, w)
    assert_allclose(given.alphas_, alone.alphas_)
