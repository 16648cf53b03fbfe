"""Units in which squares neither overflow nor vanish, and errors that locate bad entries."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from holrr.core.checks import BadEntryError, check_finite, unit_of
from holrr.data.validation import Samples
from problems import toy

# ---------------------------------------------------------------- units


def test_unit_is_one_where_a_few_entries_are_small():
    """Only some entries are examined first; all are where these are not of ordinary size."""
    A = np.ones((64, 5))
    A[::8] = 1e-100
    assert unit_of(A) == 1.0


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_unit_is_a_power_of_two_near_the_largest_entry(size):
    A = np.ones((64, 5))
    A[::8], A[3, 2] = 0.0, np.nan  # NaN is a missing output
    unit = unit_of(A * size)
    assert 0.5 <= size / unit <= 2
    assert np.frexp(unit)[0] == 0.5  # a power of two, so that nothing is rounded


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_ordinary_sizes_depend_on_the_precision(xp, dtype):
    A = np.full((3, 4), 1e20, dtype=dtype)
    assert (unit_of(xp.asarray(A)) == 1.0) == (dtype == "float64")


@pytest.mark.parametrize("value", [0.0, np.inf, np.nan])
def test_unit_of_zeros_and_of_entries_that_are_not_finite_is_one(value):
    assert unit_of(np.full((3, 4), value)) == 1.0


def test_samples_are_divided_by_their_units():
    X, Y = toy()
    plain = Samples(X, Y)
    assert plain.scaled() is plain
    given = Samples(1e-200 * X, 1e200 * Y, np.ones(40))
    scaled = given.scaled()
    assert_array_equal(scaled.X * scaled.x_unit, given.X)
    assert_array_equal(scaled.Y * scaled.y_unit, given.Y)
    assert_array_equal(scaled.w, given.w)
    assert 0.1 < np.abs(scaled.X).max() < 10
    assert 0.1 < np.abs(scaled.Y).max() < 10
    again = scaled.scaled()
    assert again is scaled
    half = Samples(given.X / 2.0**300, given.Y, x_unit=4.0).scaled()
    assert_array_equal(half.X * half.x_unit, 4.0 * given.X / 2.0**300)  # units multiply
    outputs = given.scaled(inputs=False)
    assert outputs.x_unit == 1.0
    assert outputs.X is given.X


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (-np.inf, "infinity")])
def test_first_bad_entry_is_located(xp, value, name):
    A = np.ones((4, 3, 2))
    check_finite(xp.asarray(A), "y")
    A[2, 1, 0] = A[3, 0, 0] = value
    with pytest.raises(BadEntryError, match=rf"y contains {name} at index \(2, 1, 0\)") as caught:
        check_finite(xp.asarray(A), "y")
    assert caught.value.index == (2, 1, 0)


def test_finite_entries_whose_sum_overflows_are_finite():
    check_finite(np.full((9, 9), 1e308), "X")


def test_hint_about_missing_outputs_is_given_for_missing_outputs_only():
    text = str(BadEntryError("y", "NaN", (3,)))
    assert "RLS, LRR, HOLRR and their searches leave missing outputs out of the fit" in text
    assert text.index('missing="ignore"') < text.index("For other estimators, drop these samples")
    assert 'missing="ignore"' in str(BadEntryError("y", "a masked entry", (3,)))
    assert 'missing="ignore"' not in str(BadEntryError("y", "infinity", (3,)))
    assert 'missing="ignore"' not in str(BadEntryError("X", "NaN", (3, 1)))


def test_position_in_all_the_data_and_pickles():
    error = BadEntryError("y", "NaN", (3, 1, 2))
    assert error.moved(slice(100, 200)).index == (103, 1, 2)
    assert error.moved(np.array([5, 6, 7, 90]), [slice(10, 20)]).index == (90, 11, 2)
    copied = pickle.loads(pickle.dumps(error))
    assert str(copied) == str(error)
