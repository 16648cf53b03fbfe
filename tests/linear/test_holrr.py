"""HOLRR: Algorithm 1 of the paper, recovery, refinement, large modes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose

import reference
from holrr import HOLRR, LRR, RLS
from problems import low_rank_tensor, problems, toy


@given(problems(alphas=(1e-2, 0.5, 30.0), min_samples=3, degenerate=False))
def test_response_subspaces_are_algorithm_1(problem):
    model = HOLRR(
        problem.rank, problem.alpha, subspaces="response", fit_intercept=problem.fit_intercept
    ).fit(problem.X, problem.Y)
    X, Y = reference.centre(problem.X, problem.Y, problem.fit_intercept)[:2]
    W = reference.algorithm_1(X, Y, problem.rank, problem.alpha)
    scale = np.abs(W).max()
    assert_allclose(model.coef_, W, rtol=1e-6, atol=1e-7 * scale)


@pytest.mark.parametrize("rank", [(1, 1, 1), (2, 1, 3), (3, 2, 2), (5, 3, 4)], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_algorithm_1_on_weighted_data(rank, weighted):
    X, Y = toy(noise=2.0)
    w = np.random.default_rng(1).uniform(0.2, 2, len(X)) if weighted else np.ones(len(X))
    model = HOLRR(rank, 0.7, subspaces="response").fit(X, Y, w)
    Xc, Yc = reference.centre(X, Y, w=w)[:2]
    root = np.sqrt(w)
    W = reference.algorithm_1(Xc * root[:, None], Yc * root[:, None, None], rank, 0.7)
    assert_allclose(model.coef_, W, atol=1e-9)


@pytest.mark.parametrize("shape", [(), (4,), (4, 3), (3, 4, 2), (2, 3, 2, 3)], ids=str)
@pytest.mark.parametrize("n", [60, 8])
@pytest.mark.parametrize("flavour", ["fitted", "response", "refined"])
def test_low_rank_data_without_noise_are_recovered(shape, n, flavour):
    """Exactly, also from as many samples as features, without an intercept then."""
    rng = np.random.default_rng(0)
    full = (8, *shape)
    rank = tuple(min(2, d) for d in full) if shape else (1,)
    W = low_rank_tensor(rng, full, rank)
    X = rng.normal(size=(n, 8))
    model = HOLRR(
        rank,
        alpha=0,
        subspaces="response" if flavour == "response" else "fitted",
        refine=flavour == "refined",
        fit_intercept=n > 8,
    )
    offset = 3.0 if n > 8 else 0.0
    model.fit(X, np.tensordot(X, W, axes=1) + offset)
    assert_allclose(model.coef_, W, atol=1e-10 * np.abs(W).max())
    assert_allclose(model.intercept_, offset, atol=1e-10 * np.abs(W).max())
    assert model.rank_ == rank


def test_strong_noise_in_few_outputs_does_not_disturb_fitted_subspaces():
    """Response subspaces follow noise that no input explains; fitted ones do not."""
    rng = np.random.default_rng(0)
    W = low_rank_tensor(rng, (6, 8, 8), (1, 1, 1))
    W *= 3 / np.linalg.norm(W)
    X = rng.normal(size=(3000, 6))
    noise = np.zeros((3000, 8, 8))
    noise[:, 0, 0] = 10 * rng.normal(size=3000)
    Y = np.tensordot(X, W, axes=1) + noise
    fresh = rng.normal(size=(500, 6))
    truth = np.tensordot(fresh, W, axes=1)

    def error(subspaces):
        model = HOLRR(1, alpha=0, subspaces=subspaces).fit(X, Y)
        return np.linalg.norm(model.predict(fresh) - truth) / np.linalg.norm(truth)

    assert error("fitted") < 0.2
    assert error("response") > 0.8


def test_holrr_beats_lrr_beats_rls_on_few_samples():
    X, Y = toy(n=430, d0=10, shape=(8, 8), noise=0.0, rank=2)
    Y = Y / Y.std()
    train = Y[:30] + np.random.default_rng(1).normal(size=(30, 8, 8))
    scores = [m.fit(X[:30], train).score(X[30:], Y[30:]) for m in (RLS(1), LRR(2, 1), HOLRR(2, 1))]
    assert scores[0] < scores[1] < scores[2]


# ---------------------------------------------------------------- refinement


@given(problems(min_order=1))
def test_refinement_never_increases_the_objective(problem):
    def fit(**params):
        model = HOLRR(problem.rank, problem.alpha, fit_intercept=problem.fit_intercept, **params)
        return model.fit(problem.X, problem.Y)

    slack = 1e-10 * np.sum(problem.Y**2)
    rounds = [fit().objective_] + [
        fit(refine=True, max_iter=k, tol=0).objective_ for k in (1, 2, 3, 10)
    ]
    assert all(after <= before + slack for before, after in pairwise(rounds))


def hard_problem():
    """Noise only: the truncated HOSVD is far from the optimum."""
    rng = np.random.default_rng(3)
    return rng.normal(size=(60, 6)), rng.normal(size=(60, 5, 6, 4))


def test_refinement_is_stationary_and_as_good_as_random_starts():
    X, Y = hard_problem()
    rank = (2, 2, 2, 2)
    plain = HOLRR(rank).fit(X, Y)
    refined = HOLRR(rank, refine=True, tol=1e-12, max_iter=1000).fit(X, Y)
    assert refined.objective_ < plain.objective_ - 1.0
    Xc, Yc = reference.centre(X, Y)[:2]
    Q, Z, _ = reference.whiten(Xc, Yc, 1.0)
    rng = np.random.default_rng(0)
    starts = [
        reference.objective(
            Xc, Yc, reference.unwhiten(Xc, Yc, 1.0, Q, reference.hooi(Z, rank, rng)), 1.0
        )
        for _ in range(5)
    ]
    assert refined.lower_bound_ <= min(starts)
    assert refined.objective_ <= np.median(starts) * (1 + 1e-9)
    # Another round changes nothing.
    again = HOLRR(rank, refine=True, tol=0, max_iter=1001).fit(X, Y)
    assert_allclose(again.objective_, refined.objective_, rtol=1e-9)


def test_tolerance_and_limit_stop_the_refinement():
    X, Y = hard_problem()
    loose, tight = (HOLRR(2, refine=True, tol=tol).fit(X, Y) for tol in (1e-2, 1e-7))
    assert loose.n_iter_ < tight.n_iter_ <= 101
    assert tight.objective_ < loose.objective_
    assert HOLRR(2, refine=True, max_iter=3, tol=0).fit(X, Y).n_iter_ == 4
    assert HOLRR(2).fit(X, Y).n_iter_ == 1
    assert HOLRR(2, refine=True, max_iter=3).fit(X, Y).lower_bound_ == pytest.approx(
        HOLRR(2).fit(X, Y).lower_bound_, rel=1e-12
    )


def test_refinement_stops_where_the_gain_is_below_the_tolerance():
    """The last round gained no more than tol times the objective; the one before gained more."""
    X, Y = hard_problem()
    tol = 1e-4
    n = HOLRR(2, refine=True, tol=tol).fit(X, Y).n_iter_ - 1
    values = [HOLRR(2).fit(X, Y).objective_] + [
        HOLRR(2, refine=True, tol=0, max_iter=k).fit(X, Y).objective_ for k in range(1, n + 1)
    ]
    gains = -np.diff(values)
    assert gains[-1] <= tol * values[-1]
    assert (gains[:-1] > tol * np.array(values[1:-1])).all()


# ---------------------------------------------------------------- large modes


@pytest.mark.parametrize("shape", [(150,), (140, 3), (3, 140), (200, 2, 2)], ids=str)
@pytest.mark.parametrize("rank", [1, 3, 20])
@pytest.mark.parametrize("subspaces", ["fitted", "response"])
def test_modes_too_large_for_full_spectra(shape, rank, subspaces):
    """Partial eigenproblems, and those of the shorter side, agree with dense algebra."""
    X, Y = toy(n=60, d0=4, shape=shape, noise=5.0)
    model = HOLRR(rank, subspaces=subspaces).fit(X, Y)
    ranks = tuple(min(rank, d) for d in (4, *shape))
    Xc, Yc = reference.centre(X, Y)[:2]
    assert_allclose(model.lower_bound_, reference.lower_bound(Xc, Yc, 1.0, ranks), rtol=1e-9)
    by_hand = reference.objective(X, Y, model.coef_, 1.0, model.intercept_)
    assert_allclose(model.objective_, by_hand, rtol=1e-9)
    for U in model.factors_[1:]:
        assert_allclose(U.T @ U, np.eye(U.shape[1]), atol=1e-10)
    if subspaces == "response":
        W = reference.algorithm_1(Xc, Yc, ranks, 1.0)
        expected = reference.objective(Xc, Yc, W, 1.0)
        assert_allclose(model.objective_, expected, rtol=1e-8)


@pytest.mark.parametrize("n", [30, 400])
@pytest.mark.parametrize("shape", [(), (2,), (3, 4)], ids=str)
def test_many_features(n, shape):
    X, Y = toy(n=n, d0=200, shape=shape, noise=5.0)
    rank = tuple(min(2, d) for d in (200, *shape))
    model = HOLRR(rank).fit(X, Y)
    Xc, Yc = reference.centre(X, Y)[:2]
    assert_allclose(model.lower_bound_, reference.lower_bound(Xc, Yc, 1.0, rank), rtol=1e-8)
    by_hand = reference.objective(X, Y, model.coef_, 1.0, model.intercept_)
    assert_allclose(model.objective_, by_hand, rtol=1e-9)


def test_spectra_that_are_cut_short_belong_to_the_whole_energy():
    """Only the first few of 300 energies are computed."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(400, 10)), rng.normal(size=(400, 300, 40))
    model = HOLRR((10, 2, 40)).fit(X, Y)
    assert model.spectra_[1].size < 300
    Xc, Yc = X - X.mean(0), Y - Y.mean(0)
    L = np.linalg.cholesky(Xc.T @ Xc + np.eye(10))
    Z = np.linalg.solve(L, np.tensordot(Xc.T, Yc, 1).reshape(10, -1)).reshape(10, 300, 40)
    full = np.linalg.eigvalsh(np.tensordot(Z, Z, ((0, 2), (0, 2))))[::-1]
    assert_allclose(model.spectra_[1][:2], full[:2])
    assert_allclose(model.energy_, full.sum())
