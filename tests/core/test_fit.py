"""From approximations to fitted models: coefficients, intercepts, units, types and weights."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import reference
from holrr.core.approximate import FullRank, MatrixRank, MultilinearRank
from holrr.core.fit import fit_approximation, scaled_alpha
from holrr.core.spectral import whiten_arrays
from holrr.data.validation import Samples
from holrr.linear.fit import LinearOptions, fit_data, weighted
from problems import toy

STRUCTURES = [FullRank(), MatrixRank(2), MultilinearRank((2, 2, 3))]


def fit(data, structure, alpha=0.5):
    return fit_data(data, LinearOptions(structure, alpha))[0]


@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_fit_has_the_objective_and_residuals_of_its_coefficients(structure, fit_intercept):
    X, Y = toy()
    problem = whiten_arrays(X, Y, None, 0.5, fit_intercept=fit_intercept)
    found = fit_approximation(problem, structure.approximate(problem, 5), fit_intercept)
    W = found.tucker.to_dense()
    value = reference.objective(X, Y, W, 0.5, found.intercept)
    assert_allclose(found.objective, value, rtol=1e-10)
    assert found.lower_bound <= found.objective * (1 + 1e-12)
    if not fit_intercept:
        assert_allclose(found.intercept, 0.0, atol=1e-12)
    squares = np.sum((Y - np.tensordot(X, W, 1) - found.intercept) ** 2, axis=0)
    assert_allclose(found.rss_root, np.sqrt(squares), rtol=1e-9)
    assert found.hat["intercept"] is fit_intercept


@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
@pytest.mark.parametrize(("x", "y"), [(4.0, 0.125), (2.0**-600, 2.0**300), (2.0**600, 2.0**-300)])
def test_fit_of_scaled_samples_is_in_the_units_of_the_user(structure, x, y):
    X, Y = toy()
    plain = fit(Samples(X, Y), structure)
    found = fit(Samples(X / x, Y / y, None, x, y), structure, 0.5)
    assert_allclose(found.tucker.to_dense(), plain.tucker.to_dense(), rtol=1e-9, atol=1e-12)
    large = fit(Samples(X * x, Y * y), structure, 0.0)
    plain = fit(Samples(X, Y), structure, 0.0)
    coef = large.tucker.core * (x / y) if structure == FullRank() else large.tucker.core / y
    first = large.tucker.factors[0]
    factor = None if first is None else first * x
    assert_allclose(coef, plain.tucker.core, rtol=1e-8, atol=1e-11)
    if factor is not None:
        assert_allclose(factor, plain.tucker.factors[0], rtol=1e-8, atol=1e-11)
    assert_allclose(large.intercept / y, plain.intercept, rtol=1e-9)
    assert_allclose(large.rss_root / y, plain.rss_root, rtol=1e-7)


def test_penalty_for_scaled_inputs():
    assert scaled_alpha(3.0, 4.0) == 3.0 / 16
    assert scaled_alpha(0.0, 2.0**-600) == 0.0
    assert scaled_alpha(1.0, 2.0**-600) == np.finfo(float).max  # not infinite


def test_single_precision_becomes_double_where_coefficients_leave_its_range():
    X, Y = (A.astype(np.float32) for A in toy())
    assert fit(Samples(X, Y), FullRank()).tucker.core.dtype == np.float32
    small = fit(Samples(X * np.float32(1e20), Y * np.float32(1e-20)), FullRank(), 0.0)
    assert small.tucker.core.dtype == np.float64
    assert np.abs(small.tucker.core).max() > 0


def test_coefficients_that_overflow_raise():
    X, Y = toy()
    with pytest.raises(ValueError, match="coefficients overflow"):
        fit(Samples(1e-200 * X, 1e200 * Y), FullRank(), 0.0)


def test_fit_of_weighted_outputs_is_that_of_the_outputs():
    X, Y = toy()
    weights = [np.array([1.0, 4.0, 0.0]), np.array([1.0, 0.25, 1.0, 9.0])]
    given = fit(weighted(Samples(X, Y), weights), FullRank())
    found, plain = given.unweighted(weights), fit(Samples(X, Y), FullRank())
    assert_allclose(found.tucker.to_dense()[:, :2], plain.tucker.to_dense()[:, :2], atol=1e-10)
    assert_allclose(found.intercept[:2], plain.intercept[:2], atol=1e-10)
    assert_allclose(found.rss_root[:2], plain.rss_root[:2], rtol=1e-9)
    for part in (found.intercept, found.rss_root):
        assert np.isnan(part[2]).all()


def test_fit_is_where_the_samples_are(xp):
    X, Y = toy()
    found = fit(Samples(xp.asarray(X), xp.asarray(Y)), MultilinearRank(2))
    expected = fit(Samples(X, Y), MultilinearRank(2))
    assert xp.owns(found.tucker.core)
    assert xp.owns(found.intercept)
    dense = xp.to_numpy(found.tucker.to_dense())
    assert_allclose(dense, expected.tucker.to_dense(), rtol=1e-9, atol=1e-10)
    assert found.to_device_of(found.intercept).tucker is found.tucker
    host = found.to_device_of(X)
    assert_array_equal(host.intercept, xp.to_numpy(found.intercept))
