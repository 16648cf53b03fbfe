"""Truncated HOSVD and HOOI against full singular value decompositions."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import reference
from holrr.core.approximate import hooi, hosvd
from problems import low_rank_tensor


@st.composite
def approximations(draw):
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    rank = tuple(draw(st.integers(1, d)) for d in shape)
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    Z = rng.normal(size=shape)
    if draw(st.booleans()):  # of low rank, so that spectra have zeros
        Z = low_rank_tensor(rng, shape, [max(1, d // 2) for d in shape])
    return Z * draw(st.sampled_from([1.0, 1e-6, 1e6])), rank


@given(approximations())
def test_hosvd_projects_on_the_leading_singular_vectors(case):
    Z, rank = case
    found = hosvd(Z, rank)
    factors = [np.linalg.svd(reference.unfold(Z, i))[0][:, :R] for i, R in enumerate(rank)]
    V = found.tucker.to_dense()
    energy = np.sum(Z**2)
    lost = np.sum((Z - reference.project(Z, factors)) ** 2)
    assert found.tucker.rank == rank
    assert_allclose(np.sum((Z - V) ** 2), lost, rtol=1e-6, atol=1e-9 * energy)
    assert_allclose(found.error, lost, rtol=1e-6, atol=1e-9 * energy)
    for U in found.tucker.dense_factors():
        assert_allclose(U.T @ U, np.eye(U.shape[1]), atol=1e-10)


@given(approximations())
def test_tails_and_spectra_certify_the_error(case):
    Z, rank = case
    found = hosvd(Z, rank)
    tol = 1e-9 * np.sum(Z**2)
    tails = [reference.tail_energy(Z, i, R) for i, R in enumerate(rank)]
    assert_allclose(found.tails, tails, rtol=1e-6, atol=tol)
    assert found.lower_bound <= found.error <= sum(found.tails) + tol
    for i, spectrum in enumerate(found.spectra):
        sigma = np.linalg.svd(reference.unfold(Z, i), compute_uv=False)
        k = min(len(sigma), len(spectrum))
        assert_allclose(spectrum[:k], sigma[:k] ** 2, rtol=1e-6, atol=tol)
        assert_allclose(spectrum[k:], 0, atol=tol)


@given(approximations())
def test_hooi_goes_on_from_the_hosvd_and_never_gets_worse(case):
    Z, rank = case
    start = hosvd(Z, rank)
    errors = [start.error]
    tol = 1e-10 * np.sum(Z**2)
    for k in (1, 2, 5):
        found = hooi(Z, start, max_iter=k, tol=0)
        assert found.n_iter <= k
        V = found.tucker.to_dense()
        assert_allclose(np.sum((Z - V) ** 2), found.error, rtol=1e-6, atol=10 * tol)
        errors.append(found.error)
    assert all(after <= before for before, after in pairwise(errors))  # to the last digit
    assert found.lower_bound <= found.error + tol
    assert found.tails == start.tails


def test_modes_that_are_not_projected_stay():
    Z = np.random.default_rng(0).normal(size=(4, 5, 6))
    found = hosvd(Z, (2, 5, 6), modes=(0,))
    assert found.tucker.rank == (2, 5, 6)
    assert found.tucker.factors[1] is None
    sigma = np.linalg.svd(Z.reshape(4, -1), compute_uv=False)
    assert_allclose(found.error, np.sum(sigma[2:] ** 2), rtol=1e-10)


@pytest.mark.parametrize("scale", [1e-200, 1e-160, 1e140])
def test_energies_do_not_overflow_the_subspaces(scale):
    """Squares may vanish; the subspaces must not."""
    Z = np.random.default_rng(0).normal(size=(4, 5, 6))
    plain, scaled = hosvd(Z, (2, 2, 2)), hosvd(Z * scale, (2, 2, 2))
    assert_allclose(scaled.tucker.to_dense() / scale, plain.tucker.to_dense(), atol=1e-8)


def assert_is_hosvd(Z, rank):
    """Tails, error and orthonormality against full singular value decompositions."""
    found = hosvd(Z, rank)
    energy = np.sum(Z**2)
    tails = [reference.tail_energy(Z, i, R) for i, R in enumerate(rank)]
    assert_allclose(found.tails, tails, rtol=1e-8, atol=1e-10 * energy)
    factors = [np.linalg.svd(reference.unfold(Z, i))[0][:, :R] for i, R in enumerate(rank)]
    lost = np.sum((Z - reference.project(Z, factors)) ** 2)
    assert_allclose(found.error, lost, rtol=1e-8, atol=1e-10 * energy)
    for U in found.tucker.dense_factors():
        assert_allclose(U.T @ U, np.eye(U.shape[1]), atol=1e-8)


@pytest.mark.parametrize("shape", [(150, 4), (4, 150), (150, 2, 3), (90, 80)], ids=str)
@pytest.mark.parametrize("R", [1, 4, 30])
def test_large_modes_of_low_rank_and_of_full(shape, R):
    rng = np.random.default_rng(0)
    rank = [min(R, d) for d in shape]
    assert_is_hosvd(rng.normal(size=shape), rank)
    assert_is_hosvd(low_rank_tensor(rng, shape, [2] * len(shape)), rank)


def test_signs_do_not_depend_on_rounding():
    """The same subspace from data that differ in the last digits has the same basis."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(4, 5, 6))
    moved = Z * (1 + 1e-13 * rng.normal(size=Z.shape))
    bases = (hosvd(T, (2, 2, 2)).tucker.factors for T in (Z, moved))
    for U, V in zip(*bases, strict=True):
        assert_allclose(U, V, atol=1e-9)


def test_approximation_in_every_library(xp):
    Z = np.random.default_rng(0).normal(size=(4, 5, 6))
    here, there = hosvd(Z, (2, 3, 2)), hosvd(xp.asarray(Z), (2, 3, 2))
    assert xp.owns(there.tucker.core)
    assert all(xp.owns(U) for U in there.tucker.factors)
    assert_allclose(xp.to_numpy(there.tucker.to_dense()), here.tucker.to_dense(), atol=1e-10)
    refined = hooi(xp.asarray(Z), there)
    assert_allclose(refined.error, hooi(Z, here).error, rtol=1e-10)


def test_long_modes_that_are_kept_are_rotated_on_request():
    """A mask multiplies singular directions, of long modes too; nobody else asks for these."""
    Z = np.random.default_rng(0).normal(size=(70, 65))
    assert hosvd(Z, Z.shape).tucker.leading == ()
    found = hosvd(Z, Z.shape, rotate=True).tucker
    assert found.leading == (0, 1)
    s = np.linalg.svd(Z, compute_uv=False)
    assert_allclose(np.linalg.norm(found.core, axis=0), s, rtol=1e-8)
