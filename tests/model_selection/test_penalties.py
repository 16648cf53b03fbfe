"""Grids of penalties: the best is found beyond their edges, and told where it is not."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

from holrr.model_selection.penalties import falling_edge, warn_at_edge, widened
from holrr.model_selection.sweep import Sweep

GRID = np.logspace(-2, 2, 9)


def valley(bottom, axis=0, spread=0.1):
    """Errors that are least at a given power of ten, for three folds and two other candidates."""

    def sweep(penalties):
        mse = 1 + (np.log10(penalties) - bottom) ** 2
        folds = np.stack([mse + shift for shift in (-spread, 0.0, spread)])
        both = np.stack([folds, folds + 1], axis=2)
        return Sweep(both if axis == 0 else np.swapaxes(both, 1, 2), 10.0, 1)

    return sweep


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("bottom", [-6.2, -3.0, -2.3, 0.0, 2.3, 3.0, 6.2])
@pytest.mark.parametrize("descending", [False, True])
def test_the_best_is_found_beyond_either_edge(bottom, axis, descending):
    grid = GRID[::-1] if descending else GRID
    found, penalties = widened(valley(bottom, axis), grid, axis)
    mse = np.moveaxis(found.mean_mse, axis, 0)[:, 0]
    assert_allclose(mse, 1 + (np.log10(penalties) - bottom) ** 2)
    assert abs(np.log10(penalties[np.argmin(mse)]) - bottom) <= 0.25
    assert_allclose(np.diff(np.log10(penalties)), (-1) ** descending * 0.5)
    assert falling_edge(found, penalties, axis) is None


def test_what_is_too_far_is_told_and_what_is_flat_is_left():
    found, penalties = widened(valley(30.0), GRID, 0)
    assert penalties.size == GRID.size + 12
    with pytest.warns(UserWarning, match="is the largest of the grid.*Widen `alphas`") as caught:
        warn_at_edge(found, penalties, 0, "alphas")
    assert caught[0].filename == __file__
    # The same fall is next to nothing beside this spread.
    found, penalties = widened(valley(2.3, spread=100.0), GRID, 0)
    assert penalties.size == GRID.size
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_at_edge(found, penalties, 0, "alphas")


def test_the_best_penalty_is_named_in_whatever_order_they_are_given():
    for grid in ([0.1, 10.0, 1.0], [10.0, 0.1, 1.0], [1.0, 0.1, 10.0]):
        penalties = np.array(grid)
        with pytest.warns(UserWarning, match="best penalty, 10, is the largest of the grid"):
            warn_at_edge(valley(3.0)(penalties), penalties, 0, "alphas")
        with pytest.warns(UserWarning, match="best penalty, 0.1, is the smallest of the grid"):
            warn_at_edge(valley(-3.0)(penalties), penalties, 0, "alphas")


def test_there_is_nothing_beyond_the_largest_penalty_or_the_memory():
    assert widened(valley(6.0), GRID, 0, largest=100.0)[1].size == GRID.size
    assert widened(valley(-6.0), GRID, 0, largest=100.0)[1].size > GRID.size
    assert widened(valley(6.0), GRID, 0, largest=1e3)[1].max() <= 1e3
    assert widened(valley(6.0), GRID, 0, room=3)[1].size == GRID.size
    assert widened(valley(6.0), GRID, 0, room=4)[1].size == GRID.size + 4


@pytest.mark.parametrize(("fall", "edge"), [(0.004, None), (0.008, 0)])
def test_a_fall_counts_from_a_hundredth_of_the_standard_error_of_the_mean(fall, edge):
    """Three folds that spread by one: the standard error is one over the root of three."""
    mse = np.array([1.0, 1.0 + fall, 2.0])
    found = Sweep(np.stack([mse - 1, mse, mse + 1]), 10.0, 1)
    assert falling_edge(found, np.array([1.0, 2.0, 4.0]), 0) == edge
