"""Limits of residuals of rows: shares of ordinary rows above them, and outliers that are found."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from holrr.core.row_residuals import RowResiduals, residual_limits, row_residuals


def noise(rng, n, D, kind):
    if kind == "independent":
        return rng.normal(size=(n, D))
    if kind == "neighbours":
        L = np.linalg.cholesky(0.9 ** np.abs(np.subtract.outer(np.arange(D), np.arange(D))))
        return rng.normal(size=(n, D)) @ L.T
    if kind == "common":
        return rng.normal(size=(n, 1)) + 0.3 * rng.normal(size=(n, D))
    if kind == "half common":
        return rng.normal(size=(n, 1)) + rng.normal(size=(n, D))
    return rng.standard_t(5, size=(n, D))


def shares_above(n, D, kind, levels=(0.95, 0.99), missing=0.0, n_seeds=60):
    found = []
    for seed in range(n_seeds):
        rng = np.random.default_rng(seed)
        R = noise(rng, n, D, kind)
        R[rng.uniform(size=R.shape) < missing] = np.nan
        rows = row_residuals(R, np.zeros(D))
        pairs = [residual_limits(rows.squares, rows.counts, level) for level in levels]
        found.append([np.mean(a > b) for a, b in pairs])
    return np.mean(found, axis=0)


@pytest.mark.parametrize("kind", ["independent", "neighbours", "common", "half common"])
@pytest.mark.parametrize("D", [1, 5, 60])
@pytest.mark.parametrize("n", [90, 300])
def test_normal_noise_is_above_the_limits_as_often_as_asked_for(n, D, kind):
    assert_allclose(shares_above(n, D, kind), [0.05, 0.01], atol=0.01)


@pytest.mark.parametrize("kind", ["independent", "neighbours", "common", "half common"])
def test_rows_with_few_observed_outputs_are_not_above_more_often(kind):
    assert_allclose(shares_above(300, 20, kind, missing=0.7), [0.05, 0.01], atol=0.01)


@pytest.mark.parametrize("D", [1, 60])
def test_heavy_tails_are_above_more_often(D):
    """Noise of a t distribution with five degrees of freedom: about two in a hundred."""
    assert 0.012 < shares_above(300, D, "heavy")[1] < 0.03


@pytest.mark.parametrize("n_wrong", [1, 5, 8])
@pytest.mark.parametrize("factor", [4.0, 1e6])
def test_several_outliers_are_all_found(n_wrong, factor):
    R = np.random.default_rng(0).normal(size=(90, 20))
    R[:n_wrong] *= factor
    rows = row_residuals(R, np.zeros(20))
    residuals, limits = residual_limits(rows.squares, rows.counts, 0.999)
    assert (residuals > limits).tolist() == [True] * n_wrong + [False] * (90 - n_wrong)
    assert 0.8 < np.median(residuals) < 1.2


def test_units_and_order_of_outputs_do_not_matter():
    rng = np.random.default_rng(0)
    R, unit, order = rng.normal(size=(90, 6)), np.logspace(-8, 8, 6), rng.permutation(6)
    here, there = (row_residuals(A, np.zeros(6)) for A in (R, (unit * R)[:, order]))
    assert_allclose(here.squares, there.squares, rtol=1e-12)


def test_missing_outputs_do_not_count():
    R = np.random.default_rng(0).normal(size=(50, 4))
    R[3, 1:], R[7], R[:, 2] = np.nan, np.nan, np.nan
    rows = row_residuals(R, np.zeros(4))
    assert rows.counts[[0, 3, 7]].tolist() == [3, 1, 0]
    residuals, limits = residual_limits(rows.squares, rows.counts, 0.99)
    assert np.isnan([residuals[7], limits[7]]).all()
    assert not np.isnan(np.delete(residuals, 7)).any()
    assert limits[3] > limits[0]


def test_outputs_without_noise_do_not_count():
    R = np.random.default_rng(0).normal(size=(50, 3))
    R[:, 1] *= 1e-17
    found, expected = row_residuals(R, np.full(3, 1e-14)), row_residuals(R[:, ::2], np.zeros(2))
    assert_allclose(found.squares, expected.squares)
    assert found.counts[0] == 2


def test_rows_that_are_nearly_all_exact_are_told_from_the_others():
    squares = np.zeros(30)
    squares[4] = 1.0
    residuals, limits = residual_limits(squares, np.ones(30), 0.99)
    assert (residuals > limits).sum() <= 1
    assert np.argmax(residuals / limits) == 4


def test_residuals_of_some_samples_are_placed_among_all():
    some = RowResiduals(np.array([1.0, 2.0]), np.array([3.0, 4.0])).placed(np.array([1, 3]), 5)
    assert_allclose(some.squares, [np.nan, 1, np.nan, 2, np.nan])
    assert some.counts.tolist() == [0, 3, 0, 4, 0]
