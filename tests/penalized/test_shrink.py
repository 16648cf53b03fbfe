"""Singular value thresholding of unfoldings."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import reference
from holrr.penalized.shrink import nuclear_norm, shrink, spectral_norm


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
