"""The theorems of the paper, and the sharper bound, for problems of any shape."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import reference
from holrr import HOLRR, LRR, RLS
from problems import problems

EPS = 1e-9

flavours = st.fixed_dictionaries(
    {"subspaces": st.sampled_from(["fitted", "response"]), "refine": st.booleans()}
)


def fit(problem, **params):
    model = HOLRR(problem.rank, problem.alpha, fit_intercept=problem.fit_intercept, **params)
    return model.fit(problem.X, problem.Y)


def centred(problem):
    return reference.centre(problem.X, problem.Y, problem.fit_intercept)[:2]


def slack(problem):
    """A tolerance for rounding, relative to the sum of squares of the outputs."""
    return EPS * (np.sum(problem.Y**2) + np.finfo(float).tiny)


@given(problems(), flavours)
def test_objective_is_that_of_a_sum_over_samples(problem, flavour):
    model = fit(problem, **flavour)
    by_hand = reference.objective(
        problem.X, problem.Y, model.coef_, problem.alpha, model.intercept_
    )
    assert_allclose(model.objective_, by_hand, rtol=EPS, atol=slack(problem))


@given(problems(), flavours)
def test_coefficients_have_the_multilinear_rank(problem, flavour):
    model = fit(problem, **flavour)
    rank = reference.multilinear_rank(model.coef_)
    assert all(r <= R for r, R in zip(rank, problem.rank, strict=True))
    assert model.rank_[1:] == problem.rank[1:]
    assert model.rank_[0] <= problem.rank[0]
    assert model.core_.shape == model.rank_


@given(problems(alphas=(1e-3, 0.5, 30.0)), flavours)
def test_theorem_1_the_core_is_optimal_for_the_subspaces(problem, flavour):
    """Least squares over the core, on the Kronecker design, cannot improve on the fit."""
    model = fit(problem, **flavour)
    X, Y = centred(problem)
    best = reference.tucker_to_dense(
        reference.theorem_1_core(X, Y, model.factors_, problem.alpha), model.factors_
    )
    assert_allclose(model.coef_, best, atol=1e-7 * (1 + np.abs(best).max()))
    assert model.objective_ <= reference.objective(X, Y, best, problem.alpha) + slack(problem)


@given(problems(alphas=(0.5, 30.0), degenerate=False), st.integers(0, 999))
def test_theorem_1_formula_is_the_least_squares_core(problem, seed):
    """For any orthonormal factors the two references agree."""
    X, Y = centred(problem)
    rng = np.random.default_rng(seed)
    shape = (X.shape[1], *Y.shape[1:])
    factors = [
        reference.random_orthonormal(rng, d, R) for d, R in zip(shape, problem.rank, strict=True)
    ]
    args = X, Y, factors, problem.alpha
    assert_allclose(reference.theorem_1_formula(*args), reference.theorem_1_core(*args), atol=1e-9)


@given(problems(), st.data())
def test_proposition_1_one_constrained_mode_is_solved_exactly(problem, data):
    """With full ranks of all modes but one the spectral subspace is optimal."""
    mode = data.draw(st.integers(0, problem.p))
    shape = (problem.X.shape[1], *problem.Y.shape[1:])
    rank = [d if i != mode else R for i, (d, R) in enumerate(zip(shape, problem.rank, strict=True))]
    model = HOLRR(tuple(rank), problem.alpha, fit_intercept=problem.fit_intercept)
    model.fit(problem.X, problem.Y)
    X, Y = centred(problem)
    _, Z, r = reference.whiten(X, Y, problem.alpha)
    optimum = r + reference.tail_energy(Z, mode, rank[mode])
    assert_allclose(model.objective_, optimum, rtol=EPS, atol=slack(problem))
    assert_allclose(model.lower_bound_, optimum, rtol=EPS, atol=slack(problem))
    rng = np.random.default_rng(problem.seed)
    for _ in range(3):
        other = reference.random_feasible(X, Y, problem.alpha, rank, rng)
        assert optimum <= reference.objective(X, Y, other, problem.alpha) + slack(problem)


@given(problems(min_order=1), st.data())
def test_proposition_1_response_subspaces_are_best_for_the_outputs(problem, data):
    """Each output factor of the variant of the paper is optimal for Y along its mode."""
    mode = data.draw(st.integers(1, problem.p))
    model = fit(problem, subspaces="response")
    _, Y = centred(problem)
    U, R = model.factors_[mode], problem.rank[mode]
    lost = np.sum((Y - reference.mode_product(Y, U @ U.T, mode)) ** 2)
    assert_allclose(lost, reference.tail_energy(Y, mode, R), atol=slack(problem))


@given(problems())
def test_sharper_bound_of_the_fitted_subspaces(problem):
    """``objective - r <= sum of the tails <= (p + 1)(objective(W*) - r)``."""
    model = fit(problem)
    X, Y = centred(problem)
    _, Z, r = reference.whiten(X, Y, problem.alpha)
    tails = [reference.tail_energy(Z, i, R) for i, R in enumerate(problem.rank)]
    assert model.objective_ - r <= sum(tails) + slack(problem)
    assert model.objective_ - r <= (problem.p + 1) * (model.lower_bound_ - r) + slack(problem)
    ridge = RLS(problem.alpha, fit_intercept=problem.fit_intercept).fit(problem.X, problem.Y)
    assert_allclose(ridge.objective_, r, rtol=EPS, atol=slack(problem))


@given(problems(), flavours)
def test_lower_bound_is_the_formula_and_below_the_objective(problem, flavour):
    model = fit(problem, **flavour)
    bound = reference.lower_bound(*centred(problem), problem.alpha, problem.rank)
    assert_allclose(model.lower_bound_, bound, rtol=EPS, atol=slack(problem))
    assert model.lower_bound_ <= model.objective_ * (1 + EPS)


@given(problems(), flavours)
def test_theorem_2_within_p_plus_1_of_every_feasible_tensor(problem, flavour):
    """Against random tensors of the rank, and those of alternating least squares."""
    model = fit(problem, **flavour)
    X, Y = centred(problem)
    found = feasible(problem, X, Y)
    best = min(reference.objective(X, Y, W, problem.alpha) for W in found)
    assert model.lower_bound_ <= best + slack(problem)
    assert model.objective_ <= (problem.p + 1) * best + slack(problem)


def feasible(problem, X, Y):
    rng = np.random.default_rng(problem.seed)
    for _ in range(5):
        yield reference.random_feasible(X, Y, problem.alpha, problem.rank, rng)
    Q, Z, _ = reference.whiten(X, Y, problem.alpha)
    if Z.size:
        for _ in range(3):
            V = reference.hooi(Z, problem.rank, rng, n_iter=10)
            yield reference.unwhiten(X, Y, problem.alpha, Q, V)


@given(problems(min_order=1))
def test_theorem_2_as_the_paper_proves_it(problem):
    """The error of the response subspaces is at most the sum of the errors of each projection."""
    model = fit(problem, subspaces="response")
    X, Y = centred(problem)
    _, Z, r = reference.whiten(X, Y, problem.alpha)
    alone = [r + reference.tail_energy(Z, 0, problem.rank[0])]
    alone += [reference.tail_energy(Y, i, R) for i, R in enumerate(problem.rank[1:], start=1)]
    assert model.objective_ <= sum(alone) + slack(problem)


@given(problems())
def test_reduction_to_an_approximation_problem(problem):
    """``objective(W) = ||Y||^2 - ||Z||^2 + ||V - Z||^2`` with V = Q'(W x_0 X~), for any W."""
    X, Y = centred(problem)
    W = np.random.default_rng(problem.seed).normal(size=(X.shape[1], *Y.shape[1:]))
    Q, Z, r = reference.whiten(X, Y, problem.alpha)
    Xa, _ = reference.augment(X, Y, problem.alpha)
    V = np.tensordot(Q.T @ Xa, W, axes=1)
    assert_allclose(r, np.sum(Y**2) - np.sum(Z**2), atol=slack(problem))
    expected = r + np.sum((V - Z) ** 2)
    assert_allclose(reference.objective(X, Y, W, problem.alpha), expected, rtol=1e-8)


@given(problems())
def test_more_constraints_never_fit_better(problem):
    """RLS <= LRR with the same input rank <= HOLRR refined <= HOLRR."""
    options = {"alpha": problem.alpha, "fit_intercept": problem.fit_intercept}
    rls = RLS(**options).fit(problem.X, problem.Y)
    lrr = LRR(problem.rank[0], **options).fit(problem.X, problem.Y)
    plain, refined = fit(problem), fit(problem, refine=True)
    chain = [rls.objective_, lrr.objective_, refined.objective_, plain.objective_]
    assert all(a <= b + slack(problem) for a, b in pairwise(chain))


@given(problems(max_samples=12, min_samples=6, degenerate=False))
def test_full_rank_is_ridge_regression(problem):
    options = {"alpha": problem.alpha, "fit_intercept": problem.fit_intercept}
    expected = RLS(**options).fit(problem.X, problem.Y)
    for model in (HOLRR(**options), LRR(**options), HOLRR(subspaces="response", **options)):
        model.fit(problem.X, problem.Y)
        assert_allclose(
            model.coef_, expected.coef_, rtol=1e-6, atol=1e-8 * np.abs(expected.coef_).max()
        )
        assert_allclose(model.objective_, expected.objective_, rtol=1e-7, atol=slack(problem))
