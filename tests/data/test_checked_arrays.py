"""The checks of arrays: what passes untouched, what is converted, where bad entries are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holrr import HOLRR, KernelHOLRR
from holrr.core.finite import check_finite
from holrr.core.ranks import check_rank
from holrr.data.arrays import MAX_WEIGHT, check_inputs, check_outputs, check_pair, check_weights
from problems import toy

shapes = st.lists(st.integers(1, 5), min_size=1, max_size=4)


@given(shapes, st.sampled_from([np.nan, np.inf, -np.inf]), st.data())
def test_the_first_bad_entry_is_named(shape, value, data):
    A = np.zeros(shape)
    where = tuple(data.draw(st.integers(0, d - 1)) for d in shape)
    A[where] = value
    name = "NaN" if np.isnan(value) else "infinity"
    with pytest.raises(ValueError) as caught:
        check_finite(A, "X")
    message = str(caught.value)
    assert message.startswith("X")
    assert name in message
    assert str(where) in message
    assert f"sample {where[0]}" in message


def test_finite_entries_whose_sum_overflows_pass():
    check_finite(np.full((10, 10), 1e308), "X")
    check_finite(np.array([[1e308, 1e308], [-1e308, -1e308]]), "X")


def test_float_arrays_pass_without_a_copy():
    X, Y = np.ones((4, 3)), np.ones((4, 3, 2))
    for dtype in (np.float64, np.float32):
        for order in "CF":
            A, B = X.astype(dtype, order=order), Y.astype(dtype, order=order)
            assert np.shares_memory(check_inputs(A), A)
            assert np.shares_memory(check_outputs(B), B)
            assert all(
                np.shares_memory(a, b) for a, b in zip(check_pair(A, B), (A, B), strict=True)
            )


def test_the_wider_type_wins():
    X, Y = np.ones((4, 3), np.float32), np.ones((4, 2))
    assert [a.dtype for a in check_pair(X, Y)] == [np.float64] * 2
    assert [a.dtype for a in check_pair(Y, X)] == [np.float64] * 2


@given(shapes, st.integers(1, 7))
def test_one_int_is_capped_at_every_mode(shape, rank):
    assert check_rank(rank, shape) == tuple(min(rank, d) for d in shape)
    assert check_rank(None, shape) == tuple(shape)
    assert check_rank([None] * len(shape), shape) == tuple(shape)


def test_object_arrays_of_numbers_are_numbers():
    X = np.ones((4, 3)).astype(object)
    assert check_inputs(X).dtype == np.float64


@pytest.mark.parametrize("model", [HOLRR(2), KernelHOLRR(2)], ids=str)
def test_weights_carry_the_labels_of_the_samples(model):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, Y = toy()
    w = pd.Series(np.linspace(1, 2, len(X)))
    model.fit(pd.DataFrame(X), Y, w)
    with pytest.raises(ValueError, match="rows of X and sample_weight carry different labels"):
        model.fit(pd.DataFrame(X), Y, w[::-1])


def test_weights_may_not_add_up_to_too_much():
    X = np.ones((40, 2))
    check_weights(np.full(40, 0.9 * MAX_WEIGHT / 40), X)
    with pytest.raises(ValueError, match="sample_weight must add up to less than"):
        check_weights(np.full(40, 1.1 * MAX_WEIGHT / 40), X)


def test_rows_of_other_lengths_are_those_of_an_argument():
    with pytest.raises(ValueError, match=r"y is not as expected\. .*inhomogeneous"):
        HOLRR().fit([[1.0], [2.0]], [[1.0, 2.0], [3.0]])
