"""Approximations of low rank against full singular value decompositions, and structures."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import reference
from holrr.core import approximate
from holrr.core.approximate import (
    FullRank,
    MatrixRank,
    MultilinearRank,
    hooi,
    hosvd,
)
from holrr.core.namespace import to_numpy
from holrr.core.spectral import whiten_arrays
from problems import low_rank_tensor, toy


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
def test_hooi_starts_from_the_hosvd_and_never_gets_worse(case):
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


def test_modes_that_are_not_projected_are_left_as_they_are():
    Z = np.random.default_rng(0).normal(size=(4, 5, 6))
    found = hosvd(Z, (2, 5, 6), modes=(0,))
    assert found.tucker.rank == (2, 5, 6)
    assert found.tucker.factors[1] is None
    sigma = np.linalg.svd(Z.reshape(4, -1), compute_uv=False)
    assert_allclose(found.error, np.sum(sigma[2:] ** 2), rtol=1e-10)


@pytest.mark.parametrize("scale", [1e-200, 1e-160, 1e140])
def test_subspaces_do_not_depend_on_the_scale(scale):
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
def test_large_modes_of_low_and_of_full_rank(shape, R):
    rng = np.random.default_rng(0)
    rank = [min(R, d) for d in shape]
    assert_is_hosvd(rng.normal(size=shape), rank)
    assert_is_hosvd(low_rank_tensor(rng, shape, [2] * len(shape)), rank)


def test_signs_of_bases_do_not_depend_on_rounding():
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


def test_long_modes_of_full_rank_are_rotated_on_request_only():
    """Mixtures weigh singular directions; other fits leave long modes as they are."""
    Z = np.random.default_rng(0).normal(size=(70, 65))
    assert hosvd(Z, Z.shape).tucker.leading == ()
    found = hosvd(Z, Z.shape, rotate=True).tucker
    assert found.leading == (0, 1)
    s = np.linalg.svd(Z, compute_uv=False)
    assert_allclose(np.linalg.norm(found.core, axis=0), s, rtol=1e-8)


# ---------------------------------------------------------------- leading eigenpairs


def matrix(n, spectrum, scale=1.0):
    """A positive semidefinite matrix and its eigenvalues: those given, then small ones."""
    Q = np.linalg.qr(np.random.default_rng(1).normal(size=(n, n)))[0]
    lam = np.concatenate([spectrum, 1e-3 * np.linspace(1, 0, n - len(spectrum))])
    return scale * ((Q * lam) @ Q.T), scale * lam


@pytest.mark.parametrize(
    ("n", "k", "scale"),
    [
        (511, 4, 1.0),  # below 512 rows, and above an eighth of them, matrices are decomposed
        (512, 1, 1.0),
        (512, 4, 1e-250),
        (600, 4, 1e250),
        (600, 68, 1.0),
    ],
)
def test_leading_pairs_equal_those_of_a_decomposition(xp, n, k, scale):
    A, expected = matrix(n, [3.0, 2.0, 2.0, 1.0], scale)
    lam, U = approximate.leading_pairs(xp.asarray(A), k)
    assert isinstance(lam, np.ndarray)
    assert xp.owns(U)
    U = xp.to_numpy(U)
    assert U.shape == (n, k)
    assert len(lam) >= k
    assert_allclose(lam[:k], expected[:k], rtol=1e-9, atol=1e-12 * scale)
    assert_allclose(U.T @ U, np.eye(k), atol=1e-12)
    assert_allclose(A / scale @ U, U * lam[:k] / scale, atol=1e-13)
    assert (U[np.abs(U).argmax(0), range(k)] > 0).all()


@pytest.mark.parametrize(
    ("spectrum", "iterated"),
    [
        ([3.0, 2.0, 1.5, 1.0], True),
        ([3 - i / 150 for i in range(300)], False),
        ([], False),
        ([0.0], False),
    ],
)
def test_spectrum_without_a_gap_is_decomposed_in_full(spectrum, iterated, monkeypatch):
    """On an accelerator; on the host all matrices are decomposed."""
    xp = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
    calls, original = [], approximate.eigh_top
    monkeypatch.setattr(approximate, "eigh_top", lambda A, k: calls.append(k) or original(A, k))
    A = matrix(600, spectrum)[0] if spectrum != [0.0] else np.zeros((600, 600))
    lam, U = approximate.leading_pairs(xp.asarray(A, device=xp.Device("device1")), 4)
    assert calls == ([] if iterated else [4])
    U = to_numpy(U)
    assert_allclose(lam[:4], np.linalg.eigvalsh(A)[::-1][:4], atol=1e-12)
    assert_allclose(A @ U, U * lam[:4], atol=1e-12)


# ---------------------------------------------------------------- structures


def problem(**options):
    return whiten_arrays(*toy(), None, 0.5, **options)


def test_full_rank_is_the_tensor_itself():
    white = problem()
    found = FullRank().approximate(white, 5)
    assert_allclose(found.tucker.to_dense(), white.Z, atol=1e-12)
    assert found.error == found.lower_bound == 0.0
    assert FullRank().check(5, (3, 4)) == ()


@pytest.mark.parametrize("rank", [1, 2, 0.9, None])
def test_matrix_rank_is_the_truncated_singular_value_decomposition(rank):
    white = problem()
    found = MatrixRank(rank).approximate(white, 5)
    U, s, V = np.linalg.svd(white.Z.reshape(5, -1), full_matrices=False)
    R = found.tucker.rank[0]
    assert_allclose(found.tucker.to_dense().reshape(5, -1), (U[:, :R] * s[:R]) @ V[:R], atol=1e-10)
    assert_allclose(found.error, np.sum(s[R:] ** 2), atol=1e-10 * np.sum(s**2))
    assert MatrixRank(4, max_directions=3).check(5, (3, 4)) == (3,)


@pytest.mark.parametrize("subspaces", ["fitted", "response"])
@pytest.mark.parametrize("refine", [False, True])
def test_multilinear_rank_is_the_hosvd_refined_on_request(subspaces, refine):
    white = problem(response_grams=True)
    structure = MultilinearRank((2, 2, 3), subspaces, refine, max_iter=4, tol=0.0)
    found = structure.approximate(white, 5)
    assert structure.needs_response_grams == (subspaces == "response")
    assert found.tucker.rank == (2, 2, 3)
    assert found.n_iter <= 4 * refine
    lost = np.sum((white.Z - found.tucker.to_dense()) ** 2)
    assert_allclose(found.error, lost, rtol=1e-9)
    if refine:
        plain = MultilinearRank((2, 2, 3), subspaces).approximate(white, 5)
        assert found.error <= plain.error
    elif subspaces == "fitted":
        assert_allclose(found.error, hosvd(white.Z, (2, 2, 3)).error, rtol=1e-12)


def test_number_of_leading_directions_that_a_structure_reads():
    assert FullRank().n_leading(9, (3, 4)) is None
    assert MatrixRank(2).n_leading(9, (3, 4)) == 2
    assert MatrixRank(0.5).n_leading(9, (3, 4)) is None
    assert MultilinearRank((2, 3, 4)).n_leading(9, (3, 4)) == 2
    assert MultilinearRank((2, 3, 4), refine=True).n_leading(9, (3, 4)) is None


@pytest.mark.parametrize("structure", [MatrixRank(2), MultilinearRank((2, 3, 70))], ids=str)
def test_rotated_approximations_are_the_same_tensor_in_leading_directions(structure):
    """So that the leading blocks of their cores are the approximations of lower ranks."""
    white = whiten_arrays(*toy(shape=(3, 70)), None, 0.5)
    plain = structure.approximate(white, 5)
    found = structure.approximate(white, 5, rotate=True)
    assert_allclose(found.tucker.to_dense(), plain.tucker.to_dense(), atol=1e-10)
    assert_allclose(found.error, plain.error, rtol=1e-12)
    assert found.share == plain.share == 1.0
    if isinstance(structure, MultilinearRank):
        assert plain.tucker.leading == (0, 1)
        assert found.tucker.leading == (0, 1, 2)
        lower = replace(structure, rank=(1, 2, 5)).approximate(white, 5)
        short = found.tucker.truncate((1, 2, 5))
        assert_allclose(short.to_dense(), lower.tucker.to_dense(), atol=1e-10)
    else:
        assert plain.tucker.leading == found.tucker.leading == (0,)
