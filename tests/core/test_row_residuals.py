"""Limits of residuals of rows: shares of ordinary rows above them, and outliers that are found."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from holrr import RLS
from holrr.diagnostics import find_outliers


def outliers(R, level=0.99):
    """Outliers among rows whose held-out residuals are exactly R: the model predicts zero."""
    model = RLS(fit_intercept=False, missing="ignore")
    return find_outliers(model, np.zeros((len(R), 1)), R, level=level, cv=2)


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


def shares_above(n, D, kind, levels=(0.95, 0.99), n_seeds=40):
    found = []
    for seed in range(n_seeds):
        R = noise(np.random.default_rng(seed), n, D, kind)
        found.append([outliers(R, level).outside.mean() for level in levels])
    return np.mean(found, axis=0)


@pytest.mark.parametrize(
    ("D", "kind"),
    [
        (1, "independent"),
        (60, "independent"),
        (60, "neighbours"),
        (60, "common"),
        (60, "half common"),
    ],
)
def test_normal_noise_is_above_the_limits_as_often_as_asked_for(D, kind):
    assert_allclose(shares_above(90, D, kind), [0.05, 0.01], atol=0.01)


@pytest.mark.parametrize("kind", ["independent", "common"])
def test_rows_with_few_observed_outputs_are_above_about_as_often(kind):
    """A third of the rows have two observed outputs of sixty."""
    found = []
    for seed in range(8):
        R = noise(np.random.default_rng(seed), 300, 60, kind)
        R[::3, 2:] = np.nan
        outside = outliers(R, 0.9).outside
        found.append([outside[::3].mean(), outside[1::3].mean()])
    assert np.all((np.mean(found, axis=0) > 0.05) & (np.mean(found, axis=0) < 0.2))


@pytest.mark.parametrize("D", [1, 60])
def test_residuals_are_root_mean_squares_in_units_of_the_noise(D):
    residuals = outliers(7.0 * noise(np.random.default_rng(0), 4000, D, "independent")).residuals
    assert np.mean(residuals**2) == pytest.approx(1, rel=0.1)


@pytest.mark.parametrize("D", [1, 60])
def test_heavy_tails_are_above_more_often(D):
    """Noise of a t distribution with five degrees of freedom: about two in a hundred."""
    assert 0.012 < shares_above(300, D, "heavy", (0.99,), n_seeds=20)[0] < 0.03


@pytest.mark.parametrize("n_wrong", [1, 5, 8])
@pytest.mark.parametrize("factor", [4.0, 1e6])
def test_several_outliers_are_all_found(n_wrong, factor):
    R = np.random.default_rng(0).normal(size=(90, 20))
    R[:n_wrong] *= factor
    found = outliers(R, 0.999)
    assert found.outside.tolist() == [True] * n_wrong + [False] * (90 - n_wrong)
    assert 0.8 < np.median(found.residuals) < 1.2


def test_units_and_order_of_outputs_do_not_matter():
    rng = np.random.default_rng(0)
    R, unit, order = rng.normal(size=(90, 6)), np.logspace(-8, 8, 6), rng.permutation(6)
    here, there = (outliers(A) for A in (R, (unit * R)[:, order]))
    assert_allclose(here.residuals, there.residuals, rtol=1e-12)


def test_missing_outputs_do_not_count():
    R = np.random.default_rng(0).normal(size=(50, 4))
    R[3, 1:], R[7], R[:, 2] = np.nan, np.nan, np.nan
    found = outliers(R)
    assert np.isnan([found.residuals[7], found.limits[7]]).all()
    assert not np.isnan(np.delete(found.residuals, 7)).any()
    assert found.limits[3] > found.limits[0]


def test_outputs_without_noise_do_not_count():
    R = np.random.default_rng(0).normal(size=(50, 3))
    R[:, 1] = 1e-17 * R[:, 1] + 1.0  # a constant output has rounding errors only
    X = np.ones((50, 1))
    found, expected = (find_outliers(RLS(), X, A, cv=5) for A in (R, R[:, ::2]))
    assert_allclose(found.residuals, expected.residuals)


def test_rows_that_are_nearly_all_exact_are_told_from_the_others():
    R = np.zeros((30, 1))
    R[4] = 1.0
    found = outliers(R)
    assert found.outside.sum() <= 1
    assert found.order[0] == 4
