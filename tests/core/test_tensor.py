"""Unfoldings and mode products against their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import reference
from holrr.core.tensor import fold, gram, mode_product, multi_mode_product, unfold

shapes = st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple)


@st.composite
def tensors(draw):
    shape = draw(shapes)
    T = np.random.default_rng(draw(st.integers(0, 999))).normal(size=shape)
    return T, draw(st.integers(0, len(shape) - 1))


@given(tensors())
def test_unfold_puts_the_slices_of_a_mode_along_the_rows(case):
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
def test_gram_of_a_tensor_that_is_larger_than_a_cache(shape):
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


def test_matrices_that_do_not_fit_are_refused():
    with pytest.raises(ValueError):
        mode_product(np.ones((2, 3)), np.ones((4, 2)), 1)


@pytest.mark.parametrize("shape", [(4, 0, 1), (0, 3), (3, 0), (2, 0, 3), (1, 1, 0), (0,)])
def test_products_of_empty_tensors_are_zero(shape):
    """What is left of a tensor that shrinkage has taken all of."""
    for mode, d in enumerate(shape):
        expected = np.zeros((*shape[:mode], 2, *shape[mode + 1 :]))
        np.testing.assert_array_equal(
            mode_product(np.zeros(shape), np.ones((2, d)), mode), expected
        )
