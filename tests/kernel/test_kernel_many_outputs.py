"""Kernel models of many outputs are linear models of features of the Gram matrix."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics.pairwise import rbf_kernel

from holrr import HOLRR, LRR, KernelHOLRR, KernelLRR

RBF = {"alpha": 0.3, "kernel": "rbf"}
PAIRS = {
    "one rank": lambda p: (KernelHOLRR(rank=3), HOLRR(rank=3)),
    "each its own": lambda p: (KernelHOLRR(rank=(3, *(2,) * p)), HOLRR(rank=(3, *(2,) * p))),
    "shares of output modes": lambda p: (
        KernelHOLRR(rank=(4, *(0.9,) * p)),
        HOLRR(rank=(4, *(0.9,) * p)),
    ),
    "shares of all modes": lambda p: (KernelHOLRR(rank=0.9), HOLRR(rank=0.9)),
    "many directions": lambda p: (KernelHOLRR(rank=(90, *(2,) * p)), HOLRR(rank=(90, *(2,) * p))),
    "raw outputs": lambda p: (
        KernelHOLRR(rank=3, subspaces="response"),
        HOLRR(rank=3, subspaces="response"),
    ),
    "refined": lambda p: (
        KernelHOLRR(rank=3, refine=True, tol=1e-12),
        HOLRR(rank=3, refine=True, tol=1e-12),
    ),
    "matrices": lambda p: (KernelLRR(rank=4), LRR(rank=4)),
    "no intercept": lambda p: (
        KernelHOLRR(rank=3, fit_intercept=False),
        HOLRR(rank=3, fit_intercept=False),
    ),
}


def data(shape, n=310, seed=0):
    rng = np.random.default_rng(seed)
    size = int(np.prod(shape))
    X = rng.normal(size=(n, 5))
    signal = np.tanh(X @ rng.normal(size=(5, 4)) @ rng.normal(size=(4, size)) / 3)
    return X, (2 * signal + 0.5 * rng.normal(size=(n, size))).reshape(n, *shape)


def features(X, new, gram):
    """Features of samples and of new ones, whose inner products are the values of a kernel."""
    lam, Q = np.linalg.eigh(gram(X, X))
    some = lam > 1e-12 * lam[-1]
    root = np.sqrt(lam[some])
    return Q[:, some] * root, gram(new, X) @ (Q[:, some] / root)


def assert_same(kernel, linear, X, Phi, tol=1e-7):
    assert kernel.rank_ == linear.rank_
    for name in ("objective_", "lower_bound_", "energy_", "noise_"):
        assert_allclose(getattr(kernel, name), getattr(linear, name), rtol=tol, err_msg=name)
    for ours, theirs in zip(kernel.spectra_, linear.spectra_, strict=True):
        n = min(ours.size, theirs.size)
        assert_allclose(ours[:n], theirs[:n], atol=tol * linear.energy_)
    found, expected = kernel.predict(X, return_std=True), linear.predict(Phi, return_std=True)
    for ours, theirs in zip(found, expected, strict=True):
        assert_allclose(ours, theirs, rtol=10 * tol, atol=tol)


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("shape", [(257,), (16, 16), (10, 26), (150, 2), (5, 6, 9)], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_kernel_model_of_many_outputs_is_a_linear_model_of_features(pair, shape, weighted):
    """Above 256 outputs, only the leading directions are computed where a third of them is kept."""
    X, Y = data(shape)
    w = np.random.default_rng(1).uniform(0.2, 2, size=len(X)) if weighted else None
    new = X[:9] + 0.1
    Phi, Phi_new = features(X, new, rbf_kernel)
    kernel, linear = PAIRS[pair](len(shape))
    kernel.set_params(**RBF).fit(X, Y, w)
    linear.set_params(alpha=0.3).fit(Phi, Y, w)
    assert_same(kernel, linear, X[:9], Phi[:9])
    assert_allclose(kernel.predict(new), linear.predict(Phi_new), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("rank", [3, 9, 90])
@pytest.mark.parametrize("n", [310, 200])
def test_a_linear_kernel_of_many_outputs_has_the_rank_of_the_inputs(rank, n):
    X, Y = data((257,), n)
    kernel = KernelHOLRR(rank=(rank, 3), alpha=0.3, kernel="linear").fit(X, Y)
    linear = HOLRR(rank=(min(rank, 5), 3), alpha=0.3).fit(X, Y)
    assert kernel.rank_[0] == min(rank, 5)
    assert_allclose(kernel.predict(X), linear.predict(X), rtol=1e-7, atol=1e-9)
    assert_allclose(kernel.coef_, linear.coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("shape", [(257,), (10, 26), (4, 3)], ids=str)
def test_many_outputs_in_every_array_library(shape, other_xp):
    X, Y = data(shape)
    there = KernelHOLRR(rank=3, kernel="rbf").fit(other_xp.asarray(X), other_xp.asarray(Y))
    here = KernelHOLRR(rank=3, kernel="rbf").fit(X, Y)
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-9)
    assert there.lower_bound_ == pytest.approx(here.lower_bound_, rel=1e-9)
    found = other_xp.to_numpy(there.predict(other_xp.asarray(X)))
    assert_allclose(found, here.predict(X), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("alpha", [1e-4, 1e-2, 1.0, 1e2, 1e6])
@pytest.mark.parametrize("shape", [(4, 3), (300,)], ids=str)
def test_penalties_from_interpolation_to_the_mean(shape, alpha):
    """Products of fitted values are differences of squares where these keep their digits."""
    X, Y = data(shape, 60)
    Phi, Phi_new = features(X, X[:9] + 0.1, lambda A, B: rbf_kernel(A, B, gamma=0.3))
    for rank in (1, 2):
        kernel = KernelHOLRR(rank, alpha, kernel="rbf", gamma=0.3).fit(X, Y)
        linear = HOLRR(rank, alpha).fit(Phi, Y)
        assert_allclose(kernel.predict(X[:9] + 0.1), linear.predict(Phi_new), rtol=1e-6, atol=1e-9)
        assert_allclose(kernel.objective_, linear.objective_, rtol=1e-8)
        assert_allclose(kernel.lower_bound_, linear.lower_bound_, rtol=1e-8)
