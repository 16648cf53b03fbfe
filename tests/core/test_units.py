"""Units in which squares neither overflow nor vanish."""

from __future__ import annotations

import numpy as np
import pytest

from holrr.core.units import ONE, Units


def test_a_few_small_entries_do_not_make_the_data_small():
    """Of all entries some are looked at first; what they say is not the last word."""
    A = np.ones((64, 5))
    A[::8] = 1e-100
    assert Units.of(A, A) == ONE


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_units_are_near_the_largest_entry(size):
    A = np.ones((64, 5))
    A[::8] = 0.0
    units = Units.of(A * size, A)
    assert 0.5 <= size / units.x <= 2
    assert units.y == 1.0
    assert np.frexp(units.x)[0] == 0.5  # a power of two, so that nothing is rounded
