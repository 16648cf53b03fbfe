"""Fits to observed outputs, against fits of single outputs, naive optima and complete data."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.linear_model import Ridge

import reference
from holrr import HOLRR, LRR, RLS
from problems import low_rank_tensor, problems, toy, with_missing

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
MODELS = [RLS(), LRR(2), HOLRR(2, tol=1e-10, max_iter=1000)]


def objective(model, X, Y, w=None):
    """The objective over observed entries, from its definition."""
    W, b = np.nan_to_num(model.coef_), np.nan_to_num(model.intercept_)
    errors = (Y - np.tensordot(X, W, 1) - b) ** 2
    w = np.ones(len(X)) if w is None else w
    total = np.nansum(errors * w.reshape(-1, *[1] * (Y.ndim - 1)))
    return total + model.alpha * np.sum(W**2)


# ---------------------------------------------------------------- ridge regression


def at_random(Y):
    return with_missing(Y, 0.3)


def rare(Y):
    """Few missing entries, which are computed one by one."""
    return with_missing(Y, 0.02)


def blocks(Y):
    Y = Y.copy()
    Y[: len(Y) // 2, 0], Y[3 * len(Y) // 4 :, 1:, 2] = np.nan, np.nan
    return Y


def never(Y):
    Y = with_missing(Y, 0.3)
    Y[:, 1, 2], Y[:, :, 3] = np.nan, np.nan
    return Y


def few(Y):
    """Fewer samples than features for some outputs: the normal equations are ill-conditioned."""
    Y = with_missing(Y, 0.1)
    Y[4:, 0], Y[1:, 1, 1] = np.nan, np.nan
    return Y


@pytest.mark.parametrize("n", [40, 12])
@pytest.mark.parametrize("alpha", [0.0, 1e-6, 2.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("pattern", [at_random, rare, blocks, never, few])
def test_ridge_equals_ridge_of_each_output_on_its_observed_samples(
    n, alpha, fit_intercept, weighted, pattern
):
    X, Y = toy(n=n, shape=(3, 4), offset=2.0)
    Y = pattern(Y)
    w = np.random.default_rng(1).uniform(0.5, 2, n) if weighted else None
    if weighted:
        w[3] = 0.0
    model = RLS(alpha, fit_intercept=fit_intercept, missing="ignore").fit(X, Y, w)
    assert_allclose(model.objective_, objective(model, X, Y, w), rtol=1e-9)
    W, b = model.coef_, model.intercept_
    for j in np.ndindex(*Y.shape[1:]):
        seen = ~np.isnan(Y[(slice(None), *j)])
        assert np.isnan(b[j]) == (not seen.any())
        if not seen.any() or (alpha == 0 and seen.sum() <= X.shape[1] + 1):
            continue  # no solution, or more than one
        ridge = Ridge(alpha=alpha, fit_intercept=fit_intercept, solver="svd")
        ridge.fit(X[seen], Y[(seen, *j)], None if w is None else w[seen])
        assert_allclose(W[(slice(None), *j)], ridge.coef_, atol=1e-7)
        assert_allclose(b[j], ridge.intercept_, atol=1e-7)


def test_ridge_without_penalty_gives_the_solution_of_least_norm():
    X, Y = toy()
    Y = few(Y)
    model = RLS(0, missing="ignore").fit(X, Y)
    for j in np.ndindex(*Y.shape[1:]):
        seen = ~np.isnan(Y[(slice(None), *j)])
        Xc, Yc, mx, my = reference.centre(X[seen], Y[(seen, *j)])
        expected = reference.ridge(Xc, Yc, 0.0)
        assert_allclose(model.coef_[(slice(None), *j)], expected, atol=1e-7)
        assert_allclose(model.intercept_[j], my - mx @ expected, atol=1e-7)


@pytest.mark.parametrize(("n", "d0"), [(60, 5), (12, 30)])
def test_full_rank_equals_ridge(n, d0):
    X, Y = toy(n=n, d0=d0, shape=(6,))
    Y = with_missing(Y, 0.2)
    ridge = RLS(3.0, missing="ignore").fit(X, Y)
    for model in (LRR(alpha=3.0), HOLRR(alpha=3.0)):
        found = model.set_params(missing="ignore").fit(X, Y)
        assert_allclose(found.coef_, ridge.coef_, atol=1e-7)
        assert_allclose(found.intercept_, ridge.intercept_, atol=1e-7)
        assert_allclose(found.objective_, ridge.objective_, rtol=1e-9)
        assert_allclose(found.lower_bound_, ridge.objective_, rtol=1e-9)


# ---------------------------------------------------------------- the rounds


@given(
    problems(min_order=1, min_samples=3),
    st.sampled_from([0.05, 0.3, 0.7]),
    st.booleans(),
)
@settings(max_examples=25)
def test_objective_never_increases(problem, share, weighted):
    """More rounds continue the same rounds, so that fits of k rounds show each of them."""
    X, Y = problem.X, with_missing(problem.Y, share, problem.seed)
    w = np.random.default_rng(problem.seed).uniform(0.2, 3, len(X)) if weighted else None
    given = {"fit_intercept": problem.fit_intercept, "missing": "ignore"}
    rounding, found = 3e-12 * np.nansum(Y**2), []
    for k in (1, 2, 3, 5, 8, 20):
        model = HOLRR(problem.rank, problem.alpha, max_iter=k, tol=0.0, **given).fit(X, Y, w)
        assert model.n_iter_ <= k
        assert_allclose(model.objective_, objective(model, X, Y, w), rtol=1e-8, atol=rounding)
        assert np.array_equal(np.isnan(model.intercept_), np.isnan(Y).all(axis=0))
        found.append(model.objective_)
    assert all(after <= before + rounding for before, after in pairwise(found))
    low = LRR(problem.rank[0], problem.alpha, **given).fit(X, Y, w)
    assert_allclose(low.objective_, objective(low, X, Y, w), rtol=1e-8, atol=rounding)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("model", [RLS(), LRR(2)], ids=str)
@pytest.mark.parametrize("share", [0.02, 0.3])
def test_the_fit_of_imputed_outputs_is_the_same_fit(model, share, fit_intercept, weighted):
    """Missing entries that are replaced by their predictions have no influence."""
    X, Y = toy(n=80)
    Y = with_missing(Y, share)
    w = np.random.default_rng(1).uniform(0.5, 2, len(X)) if weighted else None
    found = clone(model).set_params(missing="ignore", fit_intercept=fit_intercept).fit(X, Y, w)
    imputed = np.where(np.isnan(Y), found.predict(X), Y)
    again = clone(model).set_params(fit_intercept=fit_intercept).fit(X, imputed, w)
    tol = 1e-9 if isinstance(model, RLS) else 1e-6
    assert_allclose(again.predict(X), found.predict(X), atol=5e3 * tol)
    assert_allclose(again.objective_, found.objective_, rtol=tol)


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
    model = LRR(2, 0.5, missing="ignore").fit(X, Y)
    rng, best = np.random.default_rng(seed), np.inf
    for _ in range(3):
        W, b = alternating(X, Y, 2, 0.5, rng)
        value = np.nansum((Y - X @ W - b) ** 2) + 0.5 * np.sum(W**2)
        if value < best:
            best, coef = value, W
    assert_allclose(model.objective_, best, rtol=1e-6)
    assert_allclose(model.coef_, coef, atol=2e-3)


def planted(seed, n=150, d0=10, shape=(8, 6, 5), rank=(3, 3, 2, 2)):
    """Inputs and noiseless outputs of unit variance, of low multilinear rank."""
    rng = np.random.default_rng(seed)
    X, W = rng.normal(size=(n, d0)), low_rank_tensor(rng, (d0, *shape), rank)
    F = np.tensordot(X, W, 1)
    return X, F / F.std(), rng


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("model", [LRR(3, 0), HOLRR((3, 3, 2, 2), 0)], ids=str)
def test_noiseless_outputs_are_recovered_from_half_of_their_entries(model, seed):
    """Except outputs that are never observed, which disturb no others."""
    X, F, _ = planted(seed)
    F += 3.0
    Y = with_missing(F, 0.5, seed)
    Y[:, 1, 2, 3] = np.nan
    found = clone(model).set_params(missing="ignore").fit(X, Y)
    assert found.n_iter_ < 40
    out = found.predict(X)
    assert np.isnan(out[:, 1, 2, 3]).all()
    assert np.isnan(out).sum() == len(X)
    assert_allclose(np.where(np.isnan(out), F, out), F, atol=1e-6)


def test_thirty_percent_missing_converge_within_tens_of_rounds():
    for seed in range(3):
        X, F, rng = planted(seed)
        Y = with_missing(F + rng.normal(size=F.shape), 0.3, seed)
        for model in (LRR(3), HOLRR((3, 3, 2, 2))):
            assert model.set_params(missing="ignore").fit(X, Y).n_iter_ <= 12
        for model in (LRR(5), HOLRR((5, 5, 4, 4))):  # some rank is noise
            assert model.set_params(missing="ignore").fit(X, Y).n_iter_ <= 80


# ---------------------------------------------------------------- properties


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_large_mean_of_the_outputs_does_not_cancel(model):
    X, Y = toy()
    Y = with_missing(Y, 0.3)
    one, other = (clone(model).set_params(missing="ignore").fit(X, A).coef_ for A in (Y, Y + 1e8))
    assert_allclose(other, one, atol=1e-4)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_single_precision_is_computed_in_double(model):
    X, Y = toy()
    X, Y = X.astype(np.float32), with_missing(Y, 0.3).astype(np.float32)
    found = clone(model).set_params(missing="ignore").fit(X, Y)
    other = clone(model).set_params(missing="ignore").fit(X.astype(float), Y.astype(float))
    assert found.predict(X).dtype == np.float32
    assert_allclose(found.objective_, other.objective_, rtol=1e-6)
    assert_allclose(found.predict(X), other.predict(X.astype(float)), atol=1e-4)


def test_rank_shares_are_those_of_ridge_regression():
    X, Y = toy(noise=3.0)
    Y = with_missing(Y, 0.3)
    completed = np.where(np.isnan(Y), RLS(missing="ignore").fit(X, Y).predict(X), Y)
    for share in (0.5, 0.8, 0.9):
        found = HOLRR(share, missing="ignore").fit(X, Y)
        assert found.rank_ == HOLRR(share).fit(X, completed).rank_
    assert np.isnan(HOLRR(2, missing="ignore").fit(X, Y).lower_bound_)  # there is no certificate


def test_fits_without_a_penalty_to_few_observed_samples_have_the_least_norm():
    """Complete samples would be interpolated, whatever is imputed."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, Y = rng.normal(size=(5, 8)), rng.normal(size=(5, 3))
        Y[rng.permutation(5)[: seed % 3 + 1], 1] = np.nan
        model = RLS(alpha=0.0, fit_intercept=False, missing="ignore").fit(X, Y)
        for j in range(3):
            seen = ~np.isnan(Y[:, j])
            expected = np.linalg.lstsq(X[seen], Y[seen, j], rcond=None)[0]
            assert_allclose(model.coef_[:, j], expected, atol=1e-9)
