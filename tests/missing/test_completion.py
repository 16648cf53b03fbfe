"""Fits to observed outputs, against fits of single outputs, naive optima and complete data."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.linear_model import Ridge

import reference
from holrr.core.approximate import FullRank, MatrixRank, MultilinearRank, hosvd
from holrr.core.spectral import spectral_from_arrays, whiten_arrays
from holrr.missing.completion import complete, complete_ridge, complete_structure
from holrr.missing.observed import Observed, SampleBasis
from problems import low_rank_tensor, problems, toy, with_missing


def low_rank(R):
    """The update of LRR."""
    return MatrixRank(R).update


def low_multilinear_rank(rank):
    """The update of HOLRR."""
    return MultilinearRank(rank).update


def unconstrained(problem, before):
    """The update of ridge regression, for rounds in place of the direct solution."""
    return FullRank().approximate(problem, problem.Z.shape[0])


def coefficients(found):
    """Dense coefficients and intercept of a completion."""
    V = found.found.tucker.to_dense()
    W = found.problem.lift(V.reshape(len(V), -1)).reshape(-1, *V.shape[1:])
    return W, found.problem.mean_y - np.tensordot(found.problem.mean_x, W, 1)


def objective(X, Y, W, b, alpha, w=None):
    """The objective over observed entries, from its definition."""
    errors = (Y - np.tensordot(X, W, 1) - b) ** 2
    w = np.ones(len(X)) if w is None else w
    return np.nansum(errors * w.reshape(-1, *[1] * (Y.ndim - 1))) + alpha * np.sum(W**2)


def fit(X, Y, alpha, update, w=None, fit_intercept=True, **options):
    samples = SampleBasis.from_arrays(X, w, alpha, fit_intercept=fit_intercept)
    return complete(Observed(samples, Y), alpha, update, **options)


# ---------------------------------------------------------------- ridge


def missing_at_random(Y):
    return with_missing(Y, 0.3)


def missing_blocks(Y):
    Y = Y.copy()
    Y[:20, 0], Y[30:, 1:, 2] = np.nan, np.nan
    return Y


def never_observed(Y):
    Y = with_missing(Y, 0.3)
    Y[:, 1, 2], Y[:, :, 3] = np.nan, np.nan
    return Y


def few_observed(Y):
    """Fewer samples than features for some outputs: the normal equations are ill-conditioned."""
    Y = with_missing(Y, 0.1)
    Y[4:, 0], Y[1:, 1, 1] = np.nan, np.nan
    return Y


@pytest.mark.parametrize("n", [40, 12])
@pytest.mark.parametrize("alpha", [0.0, 1e-6, 2.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "pattern", [missing_at_random, missing_blocks, never_observed, few_observed]
)
def test_ridge_equals_ridge_of_each_output_on_its_observed_samples(
    n, alpha, fit_intercept, weighted, pattern
):
    X, Y = toy(n=n, shape=(3, 4), offset=2.0)
    Y = pattern(Y)
    w = np.random.default_rng(1).uniform(0.5, 2, n) if weighted else None
    samples = SampleBasis.from_arrays(X, w, alpha, fit_intercept=fit_intercept)
    found = complete_ridge(Observed(samples, Y), alpha)
    W, b = coefficients(found)
    assert_allclose(found.objective, objective(X, Y, W, np.nan_to_num(b), alpha, w), rtol=1e-9)
    assert_allclose(found.problem.residual + found.found.error, found.objective)
    for j in np.ndindex(*Y.shape[1:]):
        seen = ~np.isnan(Y[(slice(None), *j)])
        assert np.isnan(b[j]) == (not seen.any())
        if not seen.any() or (alpha == 0 and seen.sum() <= X.shape[1]):
            continue  # no solution, or more than one
        ridge = Ridge(alpha=alpha, fit_intercept=fit_intercept, solver="svd")
        ridge.fit(X[seen], Y[(seen, *j)], None if w is None else w[seen])
        assert_allclose(W[(slice(None), *j)], ridge.coef_, atol=1e-7)
        assert_allclose(b[j], ridge.intercept_, atol=1e-7)


def test_ridge_without_penalty_gives_the_solution_of_least_norm():
    X, Y = toy()
    Y = few_observed(Y)
    W, b = coefficients(complete_ridge(Observed(SampleBasis.from_arrays(X, None, 0.0), Y), 0.0))
    for j in np.ndindex(*Y.shape[1:]):
        seen = ~np.isnan(Y[(slice(None), *j)])
        Xc, Yc, mx, my = reference.centre(X[seen], Y[(seen, *j)])
        expected = reference.ridge(Xc, Yc, 0.0)
        assert_allclose(W[(slice(None), *j)], expected, atol=1e-7)
        assert_allclose(b[j], my - mx @ expected, atol=1e-7)


@pytest.mark.parametrize("share", [0.02, 0.3])
def test_rounds_without_constraint_converge_to_the_direct_solution(share):
    X, Y = toy(n=80)
    Y = with_missing(Y, share)
    samples = SampleBasis.from_arrays(X, None, 0.5)
    direct = complete_ridge(Observed(samples, Y), 0.5)
    found = complete(Observed(samples, Y), 0.5, unconstrained, tol=1e-20)
    assert found.converged
    assert_allclose(coefficients(found)[0], coefficients(direct)[0], atol=1e-8)
    assert_allclose(found.objective, direct.objective, rtol=1e-10)


# ---------------------------------------------------------------- the rounds


@given(
    problems(min_order=1, min_samples=2),
    st.sampled_from(["ridge", "low rank", "multilinear"]),
    st.sampled_from([0.05, 0.3, 0.7]),
    st.booleans(),
)
def test_objective_never_increases(problem, kind, share, weighted):
    X, Y, alpha = problem.X, with_missing(problem.Y, share, problem.seed), problem.alpha
    rng = np.random.default_rng(problem.seed)
    w = rng.uniform(0.2, 3, len(X)) if weighted else None
    update = {
        "ridge": unconstrained,
        "low rank": low_rank(problem.rank[0]),
        "multilinear": low_multilinear_rank(problem.rank),
    }[kind]
    reported = []
    found = fit(
        X,
        Y,
        alpha,
        update,
        w,
        problem.fit_intercept,
        max_iter=30,
        report=lambda n_iter, value: reported.append(value),
    )
    rounding = 1e-12 * np.nansum(Y**2) * 3
    assert len(reported) == found.n_iter
    assert all(after <= before + rounding for before, after in pairwise(reported))
    W, b = coefficients(found)
    assert np.array_equal(np.isnan(b), np.isnan(Y).all(axis=0))
    value = objective(X, Y, W, np.nan_to_num(b), alpha, w)
    assert_allclose(found.objective, value, rtol=1e-8, atol=rounding)
    assert_allclose(found.objective, reported[-1])
    assert_allclose(found.problem.residual + found.found.error, value, rtol=1e-8, atol=rounding)
    V = found.found.tucker.to_dense()
    assert_allclose(found.found.error, np.sum((found.problem.Z - V) ** 2), atol=rounding)


def test_update_ignores_the_certificate_of_another_tensor():
    """Errors of the round before, small or large, do not decide about this one."""
    rng = np.random.default_rng(0)
    X, update = rng.normal(size=(20, 5)), low_multilinear_rank((2, 2, 2))
    small, large = rng.normal(size=(20, 4, 4)), 100 * rng.normal(size=(20, 4, 4))
    exact = np.tensordot(X, low_rank_tensor(rng, (5, 4, 4), (2, 2, 2)), 1)
    for first, then in ((small, large), (large, exact)):
        before = update(whiten_arrays(X, first, None, 0.0), None)
        Z = whiten_arrays(X, then, None, 0.0).Z
        found = update(whiten_arrays(X, then, None, 0.0), before)
        V, bases = found.tucker.to_dense(), before.tucker.factors
        assert_allclose(found.error, np.sum((Z - V) ** 2), atol=1e-9 * np.sum(Z**2))
        assert_allclose(V, reference.project(Z, found.tucker.factors), atol=1e-9)
        assert found.error <= np.sum((Z - reference.project(Z, bases)) ** 2) * (1 + 1e-12)


def alternating(X, Y, R, alpha, rng, n_iter=300):
    """``W = A B`` of rank R with an intercept, block by block, over observed entries only."""
    d0 = X.shape[1]
    B, b = rng.normal(size=(R, Y.shape[1])), np.nanmean(Y, axis=0)
    for _ in range(n_iter):
        # A: least squares in vec(A), the penalty ||A B|| as further equations.
        B = np.linalg.qr(B.T)[0].T
        rows, columns = np.nonzero(~np.isnan(Y))
        design = (X[rows][:, :, None] * B.T[columns][:, None, :]).reshape(len(rows), -1)
        design = np.vstack([design, np.sqrt(alpha) * np.eye(d0 * R)])
        target = np.concatenate([(Y - b)[rows, columns], np.zeros(d0 * R)])
        A = np.linalg.qr(np.linalg.lstsq(design, target, rcond=None)[0].reshape(d0, R))[0]
        for j in range(Y.shape[1]):  # B and b: one small ridge problem for each output
            seen = ~np.isnan(Y[:, j])
            latent = np.column_stack([X[seen] @ A, np.ones(seen.sum())])
            penalty = np.diag([alpha] * R + [0.0])
            *B[:, j], b[j] = np.linalg.solve(latent.T @ latent + penalty, latent.T @ Y[seen, j])
    return A @ B, b


@pytest.mark.parametrize("seed", range(4))
def test_low_rank_agrees_with_alternating_minimisation_from_many_starts(seed):
    X, Y = toy(n=25, d0=4, shape=(6,), rank=3, noise=1.0, seed=seed)
    Y = with_missing(Y, 0.3, seed)
    found = fit(X, Y, 0.5, low_rank(2), tol=1e-14, max_iter=2000)
    assert found.converged
    rng = np.random.default_rng(seed)
    fits = [alternating(X, Y, 2, 0.5, rng) for _ in range(5)]
    best = min(fits, key=lambda fit: objective(X, Y, *fit, 0.5))
    assert_allclose(found.objective, objective(X, Y, *best, 0.5), rtol=1e-8)
    assert_allclose(coefficients(found)[0], best[0], atol=1e-4)


def planted(seed, n=150, d0=10, shape=(8, 6, 5), rank=(3, 3, 2, 2)):
    """Inputs and noiseless outputs of unit variance, of low multilinear rank."""
    rng = np.random.default_rng(seed)
    X, W = rng.normal(size=(n, d0)), low_rank_tensor(rng, (d0, *shape), rank)
    F = np.tensordot(X, W, 1)
    return X, F / F.std(), rng


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("update", [low_rank(3), low_multilinear_rank((3, 3, 2, 2))])
def test_noiseless_outputs_are_recovered_from_half_of_their_entries(update, seed):
    X, F, _ = planted(seed)
    F += 3.0
    found = fit(X, with_missing(F, 0.5, seed), 0.0, update)
    W, b = coefficients(found)
    assert found.converged
    assert found.n_iter < 40
    assert_allclose(np.tensordot(X, W, 1) + b, F, atol=1e-6)


def test_thirty_percent_missing_converge_within_tens_of_rounds():
    for seed in range(5):
        X, F, rng = planted(seed)
        Y = with_missing(F + rng.normal(size=F.shape), 0.3, seed)
        for update in (low_rank(3), low_multilinear_rank((3, 3, 2, 2))):
            found = fit(X, Y, 1.0, update)
            assert found.converged
            assert found.n_iter <= 10
        for update in (low_rank(5), low_multilinear_rank((5, 5, 4, 4))):  # some rank is noise
            assert fit(X, Y, 1.0, update).n_iter <= 60


def test_ignoring_missing_outputs_is_better_than_mean_imputation_and_ridge():
    errors = []
    for seed in range(6):
        X, F, rng = planted(seed)
        Y = F + rng.normal(size=F.shape)
        missing = with_missing(Y, 0.3, seed)
        imputed = np.where(np.isnan(missing), np.nanmean(missing, axis=0), missing)
        update = low_multilinear_rank((3, 3, 2, 2))
        samples = SampleBasis.from_arrays(X, None, 1.0)
        fits = [
            complete(Observed(samples, Y), 1.0, update),
            complete(Observed(samples, missing), 1.0, update),
            complete(Observed(samples, imputed), 1.0, update),
            complete_ridge(Observed(samples, missing), 1.0),
        ]
        errors.append([_error(X, F, *coefficients(found)) for found in fits])
    whole, found, mean_imputed, ridge = np.array(errors).T
    assert np.all(found < mean_imputed)
    assert np.all(found < ridge)
    assert np.sqrt(np.mean(found**2)) < 1.3 * np.sqrt(np.mean(whole**2))


def _error(X, F, W, b):
    return np.sqrt(np.mean((np.tensordot(X, W, 1) + b - F) ** 2))


# ---------------------------------------------------------------- properties


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("update", [low_rank(2), None, "mean"])
def test_imputed_problem_equals_the_problem_of_imputed_outputs(update, fit_intercept, weighted):
    X, Y = toy()
    Y = with_missing(Y, 0.3)
    w = np.random.default_rng(1).uniform(0.5, 2, len(X)) if weighted else None
    samples = SampleBasis.from_arrays(X, w, 1.0, fit_intercept=fit_intercept)
    observed = Observed(samples, Y)
    if update == "mean":
        imputed, out = observed.spectral(), observed.offset.reshape(Y.shape[1:])
    else:
        found = complete_ridge(observed, 1.0)
        if update is not None:
            found = complete(observed, 1.0, update)
        W, b = coefficients(found)
        imputed, out = found.imputed(), np.tensordot(X, W, 1) + b
    outputs = np.where(np.isnan(Y), out, Y)
    expected = spectral_from_arrays(X, outputs, w, solver="svd", fit_intercept=fit_intercept)
    assert_allclose(imputed.s, expected.s)
    assert_allclose(imputed.T, expected.T, atol=1e-10)
    assert_allclose(imputed.syy, expected.syy)
    assert_allclose(imputed.mean_y, expected.mean_y, atol=1e-12)


def test_complete_outputs_give_the_complete_fit():
    X, Y = toy()
    found = fit(X, Y, 1.0, low_rank(2))
    problem = whiten_arrays(X, Y, None, 1.0)
    V = hosvd(problem.Z, (2, 3, 4), modes=(0,))
    W = problem.lift(V.tucker.to_dense().reshape(-1, 12)).reshape(5, 3, 4)
    assert found.converged
    assert_allclose(coefficients(found)[0], W, atol=1e-10)
    assert_allclose(found.objective, problem.residual + V.error, rtol=1e-10)


def test_full_rank_with_more_features_than_samples_equals_ridge():
    X, Y = toy(n=12, d0=30, shape=(6,))
    Y = with_missing(Y, 0.2)
    found = fit(X, Y, 3.0, low_rank(30), tol=1e-18, max_iter=500)
    W, b = coefficients(complete_ridge(Observed(SampleBasis.from_arrays(X, None, 3.0), Y), 3.0))
    assert_allclose(coefficients(found)[0], W, atol=1e-7)
    assert_allclose(coefficients(found)[1], b, atol=1e-7)


@pytest.mark.parametrize("update", [low_rank(2), low_multilinear_rank((2, 2, 2))])
def test_integer_weights_equal_repeated_samples(update):
    X, Y = toy()
    Y = with_missing(Y, 0.3)
    w = np.random.default_rng(2).integers(1, 4, len(X))
    one = fit(X, Y, 1.0, update, w.astype(float), tol=1e-16, max_iter=1000)
    other = fit(np.repeat(X, w, 0), np.repeat(Y, w, 0), 1.0, update, tol=1e-16, max_iter=1000)
    assert_allclose(one.objective, other.objective, rtol=1e-9)
    assert_allclose(coefficients(one)[0], coefficients(other)[0], atol=1e-5)


@pytest.mark.parametrize("update", [low_rank(2), low_multilinear_rank((2, 2, 2))])
def test_slices_that_are_never_observed_have_no_influence(update):
    X, Y = toy(shape=(4, 4))
    Y = with_missing(Y, 0.2)
    Y[:, 2] = np.nan
    W, b = coefficients(fit(X, Y, 1.0, update, tol=1e-12))
    V, c = coefficients(fit(X, np.delete(Y, 2, axis=1), 1.0, update, tol=1e-12))
    assert np.isnan(b[2]).all()
    assert_allclose(np.delete(W, 2, axis=1), V, atol=1e-6)
    assert_allclose(np.delete(b, 2, axis=0), c, atol=1e-6)


def test_outputs_that_are_never_observed_have_nan_and_do_not_disturb_the_others():
    X, F, _ = planted(0)
    Y = with_missing(F, 0.2)
    Y[:, 1, 2, 3] = np.nan
    found = fit(X, Y, 0.0, low_multilinear_rank((3, 3, 2, 2)))
    W, b = coefficients(found)
    out = np.tensordot(X, W, 1) + b
    assert np.isnan(out[:, 1, 2, 3]).all()
    assert np.isnan(out).sum() == len(X)
    assert_allclose(np.where(np.isnan(out), F, out), F, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-200, 1e-6, 1e6, 1e200])
@pytest.mark.parametrize("update", [low_rank(2), low_multilinear_rank((2, 2, 2)), None])
def test_scaled_outputs_have_scaled_coefficients(update, scale):
    X, Y = toy()
    Y = with_missing(Y, 0.3)
    samples = SampleBasis.from_arrays(X, None, 1.0)
    if update is None:
        one, other = (complete_ridge(Observed(samples, Z), 1.0) for Z in (Y, scale * Y))
    else:
        one, other = (complete(Observed(samples, Z), 1.0, update) for Z in (Y, scale * Y))
    for a, b in zip(coefficients(one), coefficients(other), strict=True):
        assert_allclose(b / scale, a, atol=1e-8)


def test_large_mean_of_the_outputs_does_not_cancel():
    X, Y = toy()
    Y = with_missing(Y, 0.3)
    one = fit(X, Y, 1.0, low_rank(2), tol=1e-12)
    other = fit(X, Y + 1e8, 1.0, low_rank(2), tol=1e-12)
    assert_allclose(coefficients(other)[0], coefficients(one)[0], atol=1e-5)


def test_single_precision_is_computed_in_double():
    X, Y = toy()
    X, Y = X.astype(np.float32), with_missing(Y, 0.3).astype(np.float32)
    found = fit(X, Y, 1.0, low_rank(2), tol=1e-10)
    other = fit(X.astype(float), Y.astype(float), 1.0, low_rank(2), tol=1e-10)
    assert found.problem.dtype == "float32"
    assert_allclose(coefficients(found)[0], coefficients(other)[0], atol=1e-12)


def test_too_few_rounds_are_reported_as_not_converged():
    X, F, rng = planted(0)
    Y = with_missing(F + rng.normal(size=F.shape), 0.7)
    found = fit(X, Y, 1.0, low_rank(5), max_iter=3)
    assert found.n_iter == 3
    assert not found.converged
    assert np.isnan(found.found.lower_bound)  # a majorising objective gives no lower bound


# ---------------------------------------------------------------- structures


@pytest.mark.parametrize(
    ("structure", "update"),
    [
        (MatrixRank(2), low_rank(2)),
        (MultilinearRank((2, 2, 2)), low_multilinear_rank((2, 2, 2))),
        (FullRank(), None),
        (MatrixRank(), None),
        (MultilinearRank(), None),
    ],
    ids=str,
)
def test_structures_are_fitted_in_rounds_and_full_ranks_directly(structure, update):
    X, Y = toy()
    observed = Observed(SampleBasis.from_arrays(X, None, 1.0), with_missing(Y, 0.3))
    found = complete_structure(observed, 1.0, structure, X.shape[1])
    expected = complete_ridge(observed, 1.0)
    if update is not None:
        rounds = {"max_iter": 500, "tol": 1e-7} if isinstance(structure, MatrixRank) else {}
        expected = complete(observed, 1.0, update, **rounds)
    assert_allclose(found.objective, expected.objective, rtol=1e-12)
    assert found.n_iter == expected.n_iter
    assert_allclose(coefficients(found)[0], coefficients(expected)[0], atol=1e-10)


def test_rank_shares_become_those_of_ridge_regression():
    X, Y = toy()
    observed = Observed(SampleBasis.from_arrays(X, None, 1.0), with_missing(Y, 0.3))
    found = complete_structure(observed, 1.0, MultilinearRank(0.9), X.shape[1])
    ridge = complete_ridge(observed, 1.0).problem
    rank = MultilinearRank(0.9).approximate(ridge, X.shape[1]).tucker.rank
    assert found.found.tucker.rank == rank
