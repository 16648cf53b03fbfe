"""Checks of arrays: which are passed on, which are converted, and where bad entries are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holrr import HOLRR, KernelHOLRR
from holrr.core.approximate import check_rank
from holrr.core.checks import BadEntryError, check_finite
from holrr.data.arrays import (
    MAX_WEIGHT,
    check_inputs,
    check_outputs,
    check_pair,
    check_weights,
    locate_rows,
)
from problems import toy

shapes = st.lists(st.integers(1, 5), min_size=1, max_size=4)


@given(shapes, st.sampled_from([np.nan, np.inf, -np.inf]), st.data())
def test_errors_give_the_index_of_the_first_bad_entry(shape, value, data):
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


def test_finite_entries_whose_sum_overflows_are_accepted():
    check_finite(np.full((10, 10), 1e308), "X")
    check_finite(np.array([[1e308, 1e308], [-1e308, -1e308]]), "X")


def test_float_arrays_are_not_copied():
    X, Y = np.ones((4, 3)), np.ones((4, 3, 2))
    for dtype in (np.float64, np.float32):
        for order in "CF":
            A, B = X.astype(dtype, order=order), Y.astype(dtype, order=order)
            assert np.shares_memory(check_inputs(A), A)
            assert np.shares_memory(check_outputs(B), B)
            assert all(
                np.shares_memory(a, b) for a, b in zip(check_pair(A, B), (A, B), strict=True)
            )


def test_the_wider_type_of_inputs_and_outputs_is_used():
    X, Y = np.ones((4, 3), np.float32), np.ones((4, 2))
    assert [a.dtype for a in check_pair(X, Y)] == [np.float64] * 2
    assert [a.dtype for a in check_pair(Y, X)] == [np.float64] * 2


@given(shapes, st.integers(1, 7))
def test_an_int_rank_is_capped_at_the_size_of_every_mode(shape, rank):
    assert check_rank(rank, shape) == tuple(min(rank, d) for d in shape)
    assert check_rank(None, shape) == tuple(shape)
    assert check_rank([None] * len(shape), shape) == tuple(shape)


def test_object_arrays_of_numbers_are_converted():
    X = np.ones((4, 3)).astype(object)
    assert check_inputs(X).dtype == np.float64


@pytest.mark.parametrize("model", [HOLRR(2), KernelHOLRR(2)], ids=str)
def test_labels_of_weights_must_be_those_of_the_samples(model):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, Y = toy()
    w = pd.Series(np.linspace(1, 2, len(X)))
    model.fit(pd.DataFrame(X), Y, w)
    with pytest.raises(ValueError, match="rows of X and sample_weight have different labels"):
        model.fit(pd.DataFrame(X), Y, w[::-1])


def test_the_sum_of_the_weights_is_limited():
    X = np.ones((40, 2))
    check_weights(np.full(40, 0.9 * MAX_WEIGHT / 40), X)
    with pytest.raises(ValueError, match="sample_weight must add up to less than"):
        check_weights(np.full(40, 1.1 * MAX_WEIGHT / 40), X)


def test_errors_about_rows_of_different_lengths_name_the_argument():
    with pytest.raises(ValueError, match=r"\by\b.*inhomogeneous"):
        HOLRR().fit([[1.0], [2.0]], [[1.0, 2.0], [3.0]])


@pytest.mark.parametrize("rows", [slice(10, 30), np.array([40, 7, 3])], ids=["slice", "index"])
def test_errors_about_some_rows_give_the_index_in_all_the_data(rows):
    where = 2
    A = np.zeros((3, 2))
    A[where, 1] = np.nan
    place = int(np.arange(100)[rows][where])
    with (
        pytest.raises(ValueError, match=rf"X contains NaN at index \({place}, 1\)"),
        locate_rows(rows),
    ):
        check_finite(A, "X")


def test_errors_about_missing_outputs_say_how_to_ignore_them():
    Y = np.ones((5, 2))
    Y[3, 1] = np.nan
    with pytest.raises(BadEntryError, match=r'y contains NaN at index \(3, 1\).*missing="ignore"'):
        check_finite(Y, "y")
    with pytest.raises(BadEntryError) as caught:
        check_finite(Y, "X")
    assert "missing" not in str(caught.value)
