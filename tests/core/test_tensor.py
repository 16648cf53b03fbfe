"""Tensor algebra, truncated HOSVDs and HOOI with their certificates, and sums of Tucker tensors.

These have no public call of their own; what fits do with them is tested through the estimators.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import reference
from holrr import Tucker
from holrr.core.approximate import hooi, hosvd, leading_pairs
from holrr.core.mixture import add_tuckers
from holrr.core.tensor import fold, gram, mode_product, multi_mode_product, unfold
from problems import low_rank_tensor

shapes = st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple)


@st.composite
def tensors(draw):
    shape = draw(shapes)
    T = np.random.default_rng(draw(st.integers(0, 999))).normal(size=shape)
    return T, draw(st.integers(0, len(shape) - 1))


@given(tensors())
def test_unfolding_has_a_row_for_each_slice_of_the_mode(case):
    T, mode = case
    assert_array_equal(unfold(T, mode), reference.unfold(T, mode))


@given(tensors())
def test_fold_undoes_unfold(case):
    T, mode = case
    assert_array_equal(fold(unfold(T, mode), mode, T.shape), T)


@given(tensors(), st.integers(1, 6))
def test_mode_product_by_its_definition(case, n):
    T, mode = case
    M = np.random.default_rng(0).normal(size=(n, T.shape[mode]))
    assert_allclose(mode_product(T, M, mode), reference.mode_product(T, M, mode), atol=1e-12)


@given(tensors())
def test_gram_is_the_unfolding_times_its_transpose(case):
    T, mode = case
    A = reference.unfold(T, mode)
    assert_allclose(gram(T, mode), A @ A.T, atol=1e-12)
    assert_allclose(gram(np.asfortranarray(T), mode), A @ A.T, atol=1e-12)


@pytest.mark.parametrize("shape", [(37, 20, 20, 20), (3, 400, 120, 2), (1, 600, 600), (9, 2, 9999)])
def test_gram_of_tensors_larger_than_a_cache(shape):
    T = np.random.default_rng(0).normal(size=shape)
    for mode in range(len(shape) - 1):
        A = reference.unfold(T, mode)
        assert_allclose(gram(T, mode), A @ A.T, rtol=0, atol=1e-12 * T.size)


@given(tensors(), st.integers(1, 6), st.booleans())
def test_multi_mode_product_is_a_kronecker_product(case, n, skips):
    T, skip = case
    rng = np.random.default_rng(0)
    matrices = [rng.normal(size=(n, d)) for d in T.shape]
    matrices[-1] = None
    used = [
        np.eye(d) if M is None or (skips and i == skip) else M
        for i, (M, d) in enumerate(zip(matrices, T.shape, strict=True))
    ]
    expected = reference.tucker_to_dense(T, used)
    kwargs = {"skip": skip} if skips else {}
    assert_allclose(multi_mode_product(T, matrices, **kwargs), expected, atol=1e-11)
    transposed = [None if M is None else M.T for M in matrices]
    assert_allclose(
        multi_mode_product(T, transposed, transposed=True, **kwargs), expected, atol=1e-11
    )


def test_products_in_every_library(xp):
    T, M = np.random.default_rng(0).normal(size=(3, 4, 2)), np.ones((5, 4))
    for mode in range(3):
        assert_array_equal(xp.to_numpy(unfold(xp.asarray(T), mode)), unfold(T, mode))
        assert_allclose(xp.to_numpy(gram(xp.asarray(T), mode)), gram(T, mode))
    product = mode_product(xp.asarray(T), xp.asarray(M), 1)
    assert xp.owns(product)
    assert_allclose(xp.to_numpy(product), mode_product(T, M, 1))


def test_mode_product_with_a_matrix_of_another_size_raises():
    with pytest.raises(ValueError):
        mode_product(np.ones((2, 3)), np.ones((4, 2)), 1)


@pytest.mark.parametrize("shape", [(4, 0, 1), (0, 3), (3, 0), (2, 0, 3), (1, 1, 0), (0,)])
def test_products_of_empty_tensors_are_zero(shape):
    """Shrinkage can leave a tensor without entries."""
    for mode, d in enumerate(shape):
        expected = np.zeros((*shape[:mode], 2, *shape[mode + 1 :]))
        np.testing.assert_array_equal(
            mode_product(np.zeros(shape), np.ones((2, d)), mode), expected
        )


# ---------------------------------------------------------------- truncated HOSVD and HOOI


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
    lam, U = leading_pairs(xp.asarray(A), k)
    assert isinstance(lam, np.ndarray)
    assert xp.owns(U)
    U = xp.to_numpy(U)
    assert U.shape == (n, k)
    assert len(lam) >= k
    assert_allclose(lam[:k], expected[:k], rtol=1e-9, atol=1e-12 * scale)
    assert_allclose(U.T @ U, np.eye(k), atol=1e-12)
    assert_allclose(A / scale @ U, U * lam[:k] / scale, atol=1e-13)
    assert (U[np.abs(U).argmax(0), range(k)] > 0).all()


def test_masks_multiply_leading_directions_only():
    rng = np.random.default_rng(0)
    core, factors = rng.normal(size=(3, 4, 2)), tuple(rng.normal(size=(5, R)) for R in (3, 4, 2))
    mask = rng.random((2, 5))
    found = Tucker(core, factors, leading=(0, 1)).masked(mask)
    cut = (factors[0][:, :2], *factors[1:])
    expected = reference.tucker_to_dense(core[:2] * mask[:, :4, None], cut)
    assert_allclose(found.to_dense(), expected, atol=1e-11)
    for leading in [(0,), (0, 2)]:
        with pytest.raises(ValueError, match=r"mode 1 .* not in leading directions"):
            Tucker(core, factors, leading).masked(mask)


# ---------------------------------------------------------------- sums of Tucker tensors


def random_tucker(rng, shape, rank, *, identities=()):
    """A tensor in Tucker form; the modes in `identities` have no factor."""
    rank = tuple(
        d if mode in identities else R for mode, (d, R) in enumerate(zip(shape, rank, strict=True))
    )
    factors = [rng.normal(size=(d, R)) for d, R in zip(shape, rank, strict=True)]
    return Tucker(
        rng.normal(size=rank),
        tuple(None if mode in identities else U for mode, U in enumerate(factors)),
    )


def assert_leading(total):
    """The reduced modes have orthonormal factors, and slices of the core in order of energy."""
    for mode, U in enumerate(total.factors):
        if mode in total.leading:
            assert_allclose(U.T @ U, np.eye(U.shape[1]), atol=1e-12)
            core = reference.unfold(total.core, mode)
            core = core / np.abs(core).max()
            G = core @ core.T
            assert_allclose(G, np.diag(np.diagonal(G)), atol=1e-12 * np.trace(G))
            assert (np.diff(np.diagonal(G)) <= 1e-12 * np.trace(G)).all()
        else:
            assert U is None


@st.composite
def sums(draw):
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=4)))
    rng = np.random.default_rng(draw(st.integers(0, 9999)))
    parts = []
    for _ in range(draw(st.integers(1, 4))):
        rank = [draw(st.integers(1, d)) for d in shape]
        identities = draw(st.sets(st.integers(0, len(shape) - 1), max_size=1))
        parts.append(random_tucker(rng, shape, rank, identities=identities))
    modes = draw(st.sampled_from([tuple(range(len(shape))), (0,)]))
    return parts, modes


@given(sums())
def test_sums_are_exact_and_in_leading_directions(case):
    parts, modes = case
    total, expected = add_tuckers(parts, modes), sum(part.to_dense() for part in parts)
    assert_allclose(total.to_dense(), expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    assert total.leading == modes
    assert_leading(total)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_sums_of_extreme_scale(scale, order):
    rng = np.random.default_rng(0)
    shape = (6, 5, 4, 3)[:order]
    parts = [random_tucker(rng, shape, (2,) * order) for _ in range(2)]
    here = add_tuckers(parts, range(order))
    there = add_tuckers([Tucker(part.core * scale, part.factors) for part in parts], range(order))
    expected = here.to_dense()
    assert there.rank == here.rank
    assert_allclose(there.to_dense() / scale, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    assert_leading(there)


def test_a_sum_of_tensors_of_different_scales_keeps_both():
    """Directions of the smaller one are below the precision of squares."""
    rng = np.random.default_rng(0)
    A = low_rank_tensor(rng, (6, 5, 4), (2, 2, 2))
    B = low_rank_tensor(rng, (6, 5, 4), (1, 1, 1))
    for small in (1e-6, 1e-9, 1e-12):
        parts = [Tucker(A, (None,) * 3), Tucker(small * B, (None,) * 3)]
        total = add_tuckers(parts, range(3))
        away = np.abs(total.to_dense() - (A + small * B)).max()
        assert away <= 1e-14 * np.abs(A).max()


@pytest.mark.parametrize("small", [1e-7, 1e-9, 1e-11, 1e-13])
def test_no_direction_with_energy_is_dropped(small):
    """Even where directions without any come before it, since squares do not tell them apart."""
    A = np.zeros((4, 4))
    A[:3, :3], A[3, 3] = 1.0, small
    total = add_tuckers([Tucker(A, (None, None))], (0, 1))
    assert_allclose(total.to_dense(), A, rtol=0, atol=1e-14)


def test_directions_without_energy_are_dropped():
    rng = np.random.default_rng(0)
    one, two = (random_tucker(rng, (6, 5, 4), (2, 2, 2)) for _ in range(2))
    same = Tucker(rng.normal(size=(2, 2, 2)), one.factors)
    cancels = Tucker(-two.core, two.factors)
    assert add_tuckers([one, two], range(3)).rank == (4, 4, 4)
    assert add_tuckers([one, same], range(3)).rank == (2, 2, 2)
    assert add_tuckers([one, two, cancels], range(3)).rank == (2, 2, 2)
    assert add_tuckers([one, Tucker(0 * two.core, two.factors)], range(3)).rank == (2, 2, 2)
    assert add_tuckers([one, two], (0,)).rank == (4, 5, 4)
    dense = Tucker(low_rank_tensor(rng, (6, 5, 4), (2, 3, 2)), (None,) * 3)
    assert add_tuckers([dense], range(3)).rank == (2, 3, 2)
    # A mode has no more directions than all others together.
    assert add_tuckers([random_tucker(rng, (9, 2, 2), (9, 2, 2))], range(3)).rank == (4, 2, 2)


def test_the_sum_of_nothing_is_zero_of_rank_one():
    zero = Tucker(np.zeros((1, 1)), (np.ones((3, 1)), np.ones((4, 1))))
    total = add_tuckers([zero], (0, 1))
    assert total.rank == (1, 1)
    assert not total.to_dense().any()


def test_signs_do_not_depend_on_rounding_nor_on_the_form_of_the_parts():
    rng = np.random.default_rng(0)
    parts = [random_tucker(rng, (6, 5, 4), (2, 2, 2)) for _ in range(2)]
    total = add_tuckers(parts, range(3))
    moved = [
        Tucker(part.core * (1 + 1e-13 * rng.normal(size=part.core.shape)), part.factors)
        for part in parts
    ]
    turned = [Tucker(-part.core, (-part.factors[0][:, ::-1], *part.factors[1:])) for part in parts]
    turned = [Tucker(part.core[::-1], part.factors) for part in turned]
    dense = [Tucker(part.to_dense(), (None,) * 3) for part in parts]
    for others in (moved, turned, parts[::-1], dense):
        found = add_tuckers(others, range(3))
        assert_allclose(found.core, total.core, atol=1e-9 * np.abs(total.core).max())
        for U, V in zip(found.factors, total.factors, strict=True):
            assert_allclose(U, V, atol=1e-9)
    for U in total.factors[1:]:
        assert (U[np.abs(U).argmax(0), range(U.shape[1])] > 0).all()
    slices = reference.unfold(total.core, 0)
    assert (slices[range(len(slices)), np.abs(slices).argmax(1)] > 0).all()


def test_a_sum_of_one_hosvd_has_its_core_up_to_signs():
    Z = np.random.default_rng(0).normal(size=(6, 5, 4))
    one = hosvd(Z, (3, 2, 2)).tucker
    total = add_tuckers([one], range(3))
    # The core of a truncated HOSVD is not in its own leading directions; the tensor is the same.
    assert total.rank == one.rank
    assert_allclose(total.to_dense(), one.to_dense(), rtol=0, atol=1e-12)
    for U, V in zip(total.factors, one.factors, strict=True):
        assert_allclose(U @ U.T, V @ V.T, atol=1e-10)  # the same subspaces


def test_sums_in_every_library(xp):
    rng = np.random.default_rng(0)
    parts = [random_tucker(rng, (6, 5, 4), (2, 2, 2)) for _ in range(2)]
    parts.append(random_tucker(rng, (6, 5, 4), (2, 2, 2), identities=(0, 1, 2)))
    there = [
        Tucker(
            xp.asarray(part.core),
            tuple(None if U is None else xp.asarray(U) for U in part.factors),
        )
        for part in parts
    ]
    for some in (slice(2), slice(3)):
        for modes in (range(3), (0,)):
            here, found = add_tuckers(parts[some], modes), add_tuckers(there[some], modes)
            assert found.rank == here.rank
            assert all(xp.owns(A) for A in (found.core, *found.factors) if A is not None)
            assert_allclose(xp.to_numpy(found.core), here.core, rtol=0, atol=1e-9)
