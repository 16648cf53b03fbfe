"""Steps of the iterative solvers: thresholding of singular values, and blocks of MLMT-NC."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import reference
from holrr import Tucker
from holrr.core.spectral import spectral_from_samples
from holrr.penalized.alternating import (
    balance,
    core_step,
    factor_step,
    objective,
    penalty,
    random_start,
)
from holrr.penalized.scaled import ScaledProblem
from holrr.penalized.shrink import nuclear_norm, shrink, spectral_norm
from problems import toy

# ---------------------------------------------------------------- thresholding


def naive(A, mode, t):
    M = reference.unfold(A, mode)
    U, s, Vt = np.linalg.svd(M, full_matrices=False)
    return (U * np.maximum(s - t, 0)) @ Vt, int((s > t).sum())


@pytest.mark.parametrize(
    "shape", [(4,), (5, 3), (3, 5), (4, 3, 2), (9, 2, 2), (2, 3, 2, 2)], ids=str
)
@pytest.mark.parametrize("share", [1e-12, 1e-7, 1e-3, 0.5, 0.999, 1.5])
def test_singular_values_are_lowered_by_the_threshold(shape, share):
    A = np.random.default_rng(0).normal(size=shape)
    for mode in range(len(shape)):
        t = share * np.linalg.norm(reference.unfold(A, mode), 2)
        Z, U = shrink(A, mode, t)
        expected, k = naive(A, mode, t)
        assert_allclose(reference.unfold(Z, mode), expected, atol=1e-9)
        assert U.shape == (shape[mode], k)
        assert_allclose(U.T @ U, np.eye(k), atol=1e-12)
        assert_allclose(reference.unfold(Z, mode), U @ U.T @ reference.unfold(Z, mode), atol=1e-9)


def test_small_thresholds_separate_small_singular_values():
    """Singular values of 1e-9 and 1e-10 of the largest, which a Gram matrix does not resolve."""
    rng = np.random.default_rng(0)
    U, V = reference.random_orthonormal(rng, 3, 3), reference.random_orthonormal(rng, 8, 3)
    A = ((U * [1.0, 1e-9, 1e-10]) @ V.T).reshape(3, 4, 2)
    Z, basis = shrink(A, 0, 5e-10)
    assert basis.shape == (3, 2)
    singular = np.linalg.svd(Z.reshape(3, 8), compute_uv=False)
    assert_allclose(singular, [1.0 - 5e-10, 5e-10, 0.0], atol=1e-15)


def test_norms_are_those_of_the_singular_values():
    A = np.random.default_rng(0).normal(size=(7, 2, 3))
    for mode in range(3):
        s = np.linalg.svd(reference.unfold(A, mode), compute_uv=False)
        assert_allclose(nuclear_norm(A, mode), s.sum(), rtol=1e-12)
        assert_allclose(spectral_norm(A, mode), s[0], rtol=1e-12)


# ---------------------------------------------------------------- blocks of MLMT-NC


def scaled(n=40, d0=5, shape=(3, 4)):
    X, Y = toy(n=n, d0=d0, shape=shape)
    return ScaledProblem.of(spectral_from_samples(X, Y))


def start(problem, rank=2, seed=0):
    rank = tuple(min(rank, d) for d in problem.T.shape)
    return random_start(problem.T, rank, np.random.RandomState(seed))


def blocks(V):
    return [V.core, *V.factors]


def with_block(V, k, block):
    new = blocks(V)
    new[k] = block
    return Tucker(new[0], tuple(new[1:]))


SHAPES = [(), (3,), (3, 4), (2, 3, 2)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("n", [40, 4])
@pytest.mark.parametrize("beta", [1e-3, 0.1, 10.0])
def test_each_step_minimises_over_its_block(shape, n, beta):
    """Central differences of the objective vanish in every entry, and steps increase it."""
    problem = scaled(n=n, shape=shape)
    V = start(problem)
    for k in range(1 + V.core.ndim):
        before = objective(problem, V, beta)
        V = core_step(problem, V, beta) if k == 0 else factor_step(problem, V, beta, k - 1)
        value = objective(problem, V, beta)
        assert value <= before
        for index in np.ndindex(blocks(V)[k].shape):
            h = np.zeros(blocks(V)[k].shape)
            h[index] = 1e-3
            up = objective(problem, with_block(V, k, blocks(V)[k] + h), beta)
            down = objective(problem, with_block(V, k, blocks(V)[k] - h), beta)
            # The objective is quadratic in a block: the differences are exact up to rounding.
            assert abs(up - down) <= 1e-10 * value
            assert min(up, down) > value


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_balancing_keeps_the_tensor_and_lowers_the_penalty(shape):
    V = start(scaled(shape=shape), rank=3)
    balanced = balance(V)
    assert_allclose(balanced.to_dense(), V.to_dense(), rtol=1e-10, atol=1e-12)
    assert penalty(balanced) < penalty(V)
    norms = [np.linalg.norm(block) for block in blocks(balanced)]
    assert_allclose(norms, norms[0], rtol=1e-12)


def test_balanced_tensors_have_no_better_basis():
    """At a fixed point no invertible change of one mode's basis lowers the penalty."""
    V = start(scaled(), rank=3)
    for _ in range(200):
        V = balance(V)
    rng = np.random.default_rng(0)
    for mode in range(3):
        A, G = V.factors[mode], reference.unfold(V.core, mode)
        assert_allclose(A.T @ A, G @ G.T, atol=1e-8 * np.abs(G @ G.T).max())
        Q = np.eye(A.shape[1]) + 0.05 * rng.normal(size=(A.shape[1],) * 2)
        core = reference.mode_product(V.core, np.linalg.inv(Q), mode)
        changed = with_block(Tucker(core, V.factors), 1 + mode, A @ Q)
        assert_allclose(changed.to_dense(), V.to_dense(), atol=1e-10)
        assert penalty(changed) > penalty(V)


def test_balancing_zero_gives_zero():
    V = balance(Tucker(np.zeros((2, 2)), (np.ones((3, 2)), np.ones((4, 2)))))
    assert penalty(V) == 0.0
