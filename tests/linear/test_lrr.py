"""LRR: the exact minimum over matrices of low rank."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.testing import assert_allclose

import reference
from holrr import LRR
from problems import low_rank_tensor, problems, toy


@given(problems(alphas=(1e-3, 0.5, 30.0)))
def test_objective_is_that_of_the_closed_form_of_the_paper(problem):
    R = problem.rank[0]
    model = LRR(R, problem.alpha, fit_intercept=problem.fit_intercept)
    model.fit(problem.X, problem.Y)
    X, Y = reference.centre(problem.X, problem.Y, problem.fit_intercept)[:2]
    W = reference.lrr_closed_form(X, Y, R, problem.alpha)
    # With equal singular values there are many minimisers, of the same objective.
    expected = reference.objective(X, Y, W, problem.alpha)
    attained = reference.objective(X, Y, model.coef_, problem.alpha)
    tol = 1e-9 * (1 + np.sum(problem.Y**2))
    assert_allclose(attained, expected, rtol=1e-8, atol=tol)
    assert_allclose(model.objective_, expected, rtol=1e-8, atol=tol)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 20.0])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_coefficients_are_those_of_the_closed_form(rank, alpha):
    X, Y = toy()
    model = LRR(rank, alpha).fit(X, Y)
    Xc, Yc = reference.centre(X, Y)[:2]
    assert_allclose(model.coef_, reference.lrr_closed_form(Xc, Yc, rank, alpha), atol=1e-9)


@pytest.mark.parametrize("alpha", [1e-3, 0.5, 20.0])
@pytest.mark.parametrize("rank", [1, 2])
def test_alternating_minimisation_reaches_the_same_minimum(rank, alpha):
    X, Y = toy(noise=1.0)
    Xc, Yc = reference.centre(X, Y)[:2]
    model = LRR(rank, alpha).fit(X, Y)
    W = reference.lrr_alternating(Xc, Yc, rank, alpha, np.random.default_rng(0))
    assert_allclose(model.objective_, reference.objective(Xc, Yc, W, alpha), rtol=1e-9)
    assert_allclose(model.coef_, W, atol=1e-5)


@given(problems())
@settings(max_examples=25)
def test_lower_bound_is_the_minimum(problem):
    model = LRR(problem.rank[0], problem.alpha, fit_intercept=problem.fit_intercept)
    model.fit(problem.X, problem.Y)
    tol = 1e-9 * (1 + np.sum(problem.Y**2))
    assert_allclose(model.lower_bound_, model.objective_, rtol=1e-9, atol=tol)
    assert np.linalg.matrix_rank(reference.unfold(model.coef_, 0), tol=1e-8) <= problem.rank[0]
    assert model.rank_ <= problem.rank[0]
    assert model.core_.shape == (model.rank_, *problem.Y.shape[1:])


def test_low_rank_data_without_noise_are_recovered():
    rng = np.random.default_rng(0)
    W = (rng.normal(size=(8, 2)) @ rng.normal(size=(2, 12))).reshape(8, 3, 4)
    X = rng.normal(size=(50, 8))
    model = LRR(rank=2, alpha=0).fit(X, np.tensordot(X, W, axes=1) + 5)
    assert_allclose(model.coef_, W, atol=1e-10)
    assert_allclose(model.intercept_, 5, atol=1e-10)


def test_output_modes_are_not_reduced():
    rng = np.random.default_rng(0)
    W = low_rank_tensor(rng, (6, 4, 5), (2, 4, 5))
    X = rng.normal(size=(50, 6))
    model = LRR(rank=2, alpha=0).fit(X, np.tensordot(X, W, axes=1))
    assert_allclose(model.coef_, W, atol=1e-10)
    assert_allclose(model.factors_[1], np.eye(4), rtol=0)


def test_rank_of_lrr():
    X, Y = toy(d0=5)
    assert LRR().fit(X, Y).rank_ == 5
    assert LRR(rank=3).fit(X, Y).rank_ == 3
    assert LRR(rank=99).fit(X, Y).rank_ == 5
    assert LRR(rank=99).fit(X[:3], Y[:3]).rank_ == 2  # three centred samples span a plane
    assert LRR(rank=99, fit_intercept=False).fit(X[:3], Y[:3]).rank_ == 3
    assert LRR(rank=np.int64(2)).fit(X, Y).rank_ == 2


def test_share_of_energy_gives_the_smallest_rank_with_that_share():
    X, Y = toy(noise=2.0)
    Xc, Yc = reference.centre(X, Y)[:2]
    _, Z, _ = reference.whiten(Xc, Yc, 1.0)
    energy = np.linalg.svd(reference.unfold(Z, 0), compute_uv=False) ** 2
    shares = np.cumsum(energy) / energy.sum()
    for share in (1e-6, 0.5, 0.9, 0.99, 0.999999):
        assert LRR(rank=share).fit(X, Y).rank_ == np.flatnonzero(shares >= share)[0] + 1


@pytest.mark.parametrize("rank", [0, -1, 1.0, 2.5, "a", (2, 2), True], ids=repr)
def test_bad_ranks_raise(rank):
    X, Y = toy()
    with pytest.raises((ValueError, TypeError), match="rank"):
        LRR(rank=rank).fit(X, Y)
