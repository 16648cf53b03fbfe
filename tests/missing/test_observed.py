"""Outputs with missing entries in a basis of the samples, against sums over entries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from holrr.missing.observed import Observed, SampleBasis, has_observation
from problems import problems, toy, with_missing


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("share", [0.02, 0.4])  # one by one, and all entries of a block
def test_missing_products_sum_over_missing_entries(share, weighted):
    X, Y = toy(n=150, shape=(5, 4))
    Y = with_missing(Y, share)
    rng = np.random.default_rng(1)
    w = rng.uniform(0.5, 2, 150) if weighted else None
    samples = SampleBasis.from_arrays(X, w, 1.0)
    observed = Observed(samples, Y)
    U, K = rng.normal(size=(6, 2)), rng.normal(size=(2, 20))
    expected, flat = np.zeros((6, 20)), Y.reshape(150, 20)
    for n, j in np.argwhere(np.isnan(flat)):
        expected[:, j] += samples.B[n] * (samples.E[n] @ U @ K[:, j])
    assert (observed._rows is None) == (share > 0.1)
    assert_allclose(observed.missing_products(U, K), expected, atol=1e-12)


@given(problems(min_order=1), st.booleans())
def test_products_and_means_are_those_of_observed_entries(problem, weighted):
    n = len(problem.X)
    Y = with_missing(problem.Y, 0.4, problem.seed)
    rng = np.random.default_rng(problem.seed)
    w = rng.uniform(0.5, 2, n) if weighted else None
    samples = SampleBasis.from_arrays(problem.X, w, 1.0, fit_intercept=problem.fit_intercept)
    observed = Observed(samples, Y)
    flat, w = Y.reshape(n, -1), np.ones(n) if w is None else w
    A, yy = np.zeros_like(observed.A), 0.0
    for j, column in enumerate(flat.T):
        seen = ~np.isnan(column)
        assert observed.never[j] == (not seen.any())
        mean = 0.0
        if problem.fit_intercept and seen.any():
            mean = np.average(column[seen], weights=w[seen])
        assert_allclose(observed.offset[j], mean, atol=1e-12)
        for i in np.flatnonzero(seen):
            A[:, j] += samples.B[i] * (column[i] - mean)
            yy += w[i] * (column[i] - mean) ** 2
    assert_allclose(observed.A, A, atol=1e-10)
    assert_allclose(observed.yy, yy, atol=1e-10)


@given(problems(min_samples=2))
def test_basis_is_orthonormal_and_spans_the_inputs(problem):
    samples = SampleBasis.from_arrays(
        problem.X, None, problem.alpha, fit_intercept=problem.fit_intercept
    )
    X, r = problem.X - samples.mean_x, samples.s.size
    if np.allclose(X, 0):  # inputs without variance: one direction that stands for none
        return
    assert_allclose(samples.Q.T @ samples.Q, np.eye(samples.Q.shape[1]), atol=1e-6)
    assert_allclose(samples.Q[:, :r] * samples.s @ samples.basis.T, X, atol=1e-10)
    if problem.fit_intercept:
        assert_allclose(samples.Q[:, -1], len(X) ** -0.5)


@pytest.mark.parametrize("scale", [1e-180, 1e180])
def test_outputs_are_scaled_where_squares_overflow_or_vanish(scale):
    X, Y = toy()
    Y = with_missing(Y, 0.3)
    samples = SampleBasis.from_arrays(X, None, 1.0)
    one, other = Observed(samples, Y), Observed(samples, Y * scale)
    assert one.scale == 1.0
    assert 1e-3 < other.yy < 1e6
    assert_allclose(other.A * (other.scale / scale), one.A, atol=1e-10)


def test_infinity_and_outputs_without_observation_raise():
    X, Y = toy()
    Y = with_missing(Y, 0.3)
    Y[7, 1, 2] = np.inf
    samples = SampleBasis.from_arrays(X, None, 1.0)
    with pytest.raises(ValueError, match=r"y contains infinity at index \(7, 1, 2\)"):
        Observed(samples, Y)
    with pytest.raises(ValueError, match="no observed entry"):
        Observed(samples, np.full_like(Y, np.nan))


def test_samples_without_observation_or_weight():
    Y = np.array([[[1.0], [np.nan]], [[np.nan], [np.nan]], [[3.0], [4.0]]])
    assert has_observation(Y).tolist() == [True, False, True]
    assert has_observation(Y, np.array([0.0, 1.0, 1.0])).tolist() == [False, False, True]
    assert has_observation(np.array([1.0, np.nan])).tolist() == [True, False]
