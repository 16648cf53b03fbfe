"""Unfoldings, mode products and Tucker tensors against their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import reference
from holrr import HOLRR, LRR, Tucker
from holrr.core import tensor
from holrr.core.tensor import (
    chunk_mode,
    chunks,
    fold,
    gram,
    is_memory_mapped,
    mode_product,
    multi_mode_product,
    n_parameters,
    sum_of_squares,
    unfold,
)
from problems import on_disk, toy

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


# ---------------------------------------------------------------- tensors larger than memory


@pytest.mark.parametrize("avoid", [0, 1, 2])
def test_memory_maps_are_cut_into_chunks_that_add_up(tmp_path, monkeypatch, avoid):
    """Sums over the chunks of a memory map equal those of the tensor in memory."""
    T = np.random.default_rng(0).normal(size=(6, 7, 5))
    there = on_disk(tmp_path, "T", T)
    monkeypatch.setattr(tensor, "CHUNK_BYTES", 8 * 70)
    assert is_memory_mapped(there)
    assert not is_memory_mapped(T)
    mode = chunk_mode(there, avoid=avoid)
    assert mode != avoid
    parts = [rows for rows, _ in chunks(there, mode)]
    assert len(parts) > 1
    assert [i for rows in parts for i in range(rows.start, rows.stop)] == list(range(T.shape[mode]))
    assert len(list(chunks(T, mode))) == 1
    M = np.random.default_rng(1).normal(size=(2, T.shape[avoid]))
    matrices = [M if i == avoid else None for i in range(3)]
    assert_allclose(multi_mode_product(there, matrices), multi_mode_product(T, matrices))
    assert_allclose(gram(there, avoid), gram(T, avoid))
    assert_allclose(sum_of_squares(there), np.sum(T**2))


# ---------------------------------------------------------------- Tucker tensors


@st.composite
def tuckers(draw):
    """Core and factors, some of which are identities that are not stored."""
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    rank = [draw(st.integers(1, d + 1)) for d in shape]
    identity = [draw(st.booleans()) for _ in shape]
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    rank = [d if skip else R for d, R, skip in zip(shape, rank, identity, strict=True)]
    factors = [
        None if skip else rng.normal(size=(d, R))
        for d, R, skip in zip(shape, rank, identity, strict=True)
    ]
    return Tucker(rng.normal(size=rank), tuple(factors))


def dense(T):
    factors = [np.eye(R) if U is None else U for R, U in zip(T.core.shape, T.factors, strict=True)]
    return reference.tucker_to_dense(T.core, factors)


@given(tuckers())
def test_dense_form_is_a_kronecker_product(T):
    assert_allclose(T.to_dense(), dense(T), atol=1e-11)
    assert T.shape == dense(T).shape
    assert T.rank == T.core.shape


@given(tuckers(), st.sampled_from([1, 3, 50]))
def test_map_input_is_the_mode_0_product(T, n):
    M = np.random.default_rng(0).normal(size=(n, T.shape[0]))
    assert_allclose(T.map_input(M), np.tensordot(M, dense(T), axes=1), atol=1e-10)


@given(tuckers())
def test_dense_factors_include_the_identities(T):
    assert_allclose(reference.tucker_to_dense(T.core, T.dense_factors()), dense(T), atol=1e-11)


@given(tuckers(), st.data())
def test_truncation_keeps_the_leading_block(T, data):
    factors = tuple(T.dense_factors())
    T = Tucker(T.core, factors, leading=tuple(range(len(factors))))
    rank = [data.draw(st.integers(1, R)) for R in T.rank]
    small = T.truncate(rank)
    masked = np.zeros_like(T.core)
    block = tuple(slice(R) for R in rank)
    masked[block] = T.core[block]
    assert small.rank == tuple(rank)
    assert small.shape == T.shape
    assert_allclose(small.to_dense(), dense(Tucker(masked, T.factors)), atol=1e-11)
    one = [1] * len(rank)
    assert_allclose(small.truncate(one).to_dense(), T.truncate(one).to_dense(), atol=1e-11)


@pytest.mark.parametrize("d", [64, 65, 120])
@pytest.mark.parametrize("estimator", [HOLRR(), LRR(), HOLRR(subspaces="response")], ids=str)
def test_truncation_is_a_fit_of_lower_rank_or_raises(estimator, d):
    """Modes of more than 64 entries that are kept in full are not in leading directions."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(150, 4)), rng.normal(size=(150, d, 2)) * 0.9 ** np.arange(d)[:, None]
    full = clone(estimator).fit(X, Y)
    matrix = isinstance(estimator, LRR)
    for rank in [(2, d, 2), (4, 3, 2), (4, d, 1)]:
        if all(
            R == f or i in full.tucker_.leading
            for i, (R, f) in enumerate(zip(rank, full.tucker_.rank, strict=True))
        ):
            lower = clone(estimator).set_params(rank=rank[0] if matrix else rank).fit(X, Y)
            assert_allclose(full.tucker_.truncate(rank).to_dense(), lower.coef_, atol=1e-10)
        else:
            with pytest.raises(ValueError, match="not in leading directions"):
                full.tucker_.truncate(rank)
    assert (1 in full.tucker_.leading) == (d <= 64 and not matrix)


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


def test_truncation_of_a_refined_fit_raises():
    """Subspaces of alternating least squares are optimal for their own rank only."""
    model = HOLRR((3, 2, 2), refine=True).fit(*toy())
    with pytest.raises(ValueError, match="not in leading directions"):
        model.tucker_.truncate((2, 2, 2))


@given(tuckers())
def test_astype_changes_the_type_alone(T):
    small = T.astype(np.float32)
    assert small.to_dense().dtype == np.float32
    assert_allclose(small.to_dense(), dense(T), rtol=1e-3, atol=1e-4)


@given(st.lists(st.integers(1, 4), min_size=2, max_size=3), st.integers(0, 999), st.data())
def test_number_of_parameters_is_the_dimension_of_the_set(shape, seed, data):
    """The rank of the Jacobian of the map from core and factors to the tensor."""
    rank = [data.draw(st.integers(1, d)) for d in shape]
    rng = np.random.default_rng(seed)
    core, factors = (
        rng.normal(size=rank),
        [rng.normal(size=s) for s in zip(shape, rank, strict=True)],
    )
    columns = [
        reference.tucker_to_dense(e.reshape(rank), factors).ravel() for e in np.eye(core.size)
    ]
    for i, U in enumerate(factors):
        for e in np.eye(U.size):
            moved = [*factors[:i], e.reshape(U.shape), *factors[i + 1 :]]
            columns.append(reference.tucker_to_dense(core, moved).ravel())
    assert n_parameters(shape, rank) == np.linalg.matrix_rank(np.array(columns), tol=1e-8)


@pytest.mark.parametrize("shape", [(), (3,), (3, 4), (2, 3, 4)], ids=str)
@pytest.mark.parametrize("model", [HOLRR(rank=2), HOLRR(), LRR(rank=2), LRR()], ids=repr)
def test_core_and_factors_are_a_tucker_tensor(model, shape):
    X, Y = toy(shape=shape)
    model.fit(X, Y)
    assert isinstance(model.factors_, list)
    assert all(
        U.shape == (d, R)
        for U, d, R in zip(model.factors_, (5, *shape), model.core_.shape, strict=True)
    )
    by_hand = model.core_
    for i, U in enumerate(model.factors_):
        by_hand = np.moveaxis(np.einsum("ar,r...->a...", U, np.moveaxis(by_hand, i, 0)), 0, i)
    assert_allclose(by_hand, model.coef_, atol=1e-12)
    for U in model.factors_[1:]:
        assert_allclose(U.T @ U, np.eye(U.shape[1]), atol=1e-12)


def test_tensorly_reads_core_and_factors():
    tensorly = pytest.importorskip("tensorly", reason="tensorly is not installed")
    X, Y = toy(shape=(3, 4, 2))
    model = HOLRR(rank=(3, 2, 2, 1)).fit(X, Y)
    pair = (model.core_, model.factors_)
    assert_allclose(tensorly.tucker_to_tensor(pair), model.coef_, atol=1e-12)
    shape, rank = tensorly.tucker_tensor._validate_tucker_tensor(pair)
    assert (shape, rank) == (model.coef_.shape, model.rank_)


@pytest.mark.parametrize("d", [8, 300])  # small enough for the expansion to be kept, and too large
def test_inputs_are_mapped_alike_the_second_time(d):
    rng = np.random.default_rng(0)
    factors = tuple(rng.normal(size=(n, 2)) for n in (5, d, d))
    T, M = Tucker(rng.normal(size=(2, 2, 2)), factors), rng.normal(size=(40, 5))
    exact = np.tensordot(M, T.to_dense(), 1)
    for rows in (slice(0, 40), slice(0, 40), slice(0, 1)):
        np.testing.assert_allclose(T.map_input(M[rows]), exact[rows], atol=1e-10)
