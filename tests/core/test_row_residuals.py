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


def shares_above(n, D, kind, levels=(0.95, 0.99), missing=0.0, n_seeds=40):
    found = []
    for seed in range(n_seeds):
        rng = np.random.default_rng(seed)
        R = noise(rng, n, D, kind)
        R[rng.uniform(size=R.shape) < missing] = np.nan
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


@pytest.mark.parametrize("kind", ["independent", "neighbours", "common", "half common"])
def test_rows_with_few_observed_outputs_are_not_above_more_often(kind):
    assert_allclose(shares_above(300, 8, kind, missing=0.7, n_seeds=6), [0.05, 0.01], atol=0.015)


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
