"""Tucker tensors, and those that fits have: dense form, truncation, parameters, conversions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.base import clone

import reference
from holrr import HOLRR, LRR, Tucker
from problems import toy


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
    X, Y = rng.normal(size=(9, shape[0])), rng.normal(size=(9, *shape[1:]))
    found = HOLRR(tuple(rank)).fit(X, Y).n_parameters_
    assert found == np.linalg.matrix_rank(np.array(columns), tol=1e-8)


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
