"""The same problem, however the data are given: equal objectives, bounds and coefficients."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import reference
from holrr import HOLRR, HOLRRCV, RLS, RLSCV, KernelHOLRR, Moments
from problems import problems, toy


def ways(problem, w):
    """Fits of the same ranks and penalty to the same data."""
    X, Y, n = problem.X, problem.Y, len(problem.X)
    rank, params = problem.rank, {"fit_intercept": problem.fit_intercept}
    model = HOLRR(rank, problem.alpha, **params)
    some = slice(0, n // 2), slice(n // 2, n)
    parts = [(X[s], Y[s], None if w is None else w[s]) for s in some if s.stop > s.start]
    yield "samples", model.fit(X, Y, w)
    yield "sparse", HOLRR(rank, problem.alpha, **params).fit(scipy.sparse.csr_array(X), Y, w)
    batches = HOLRR(rank, problem.alpha, **params)
    for part in parts:
        batches.partial_fit(*part)
    yield "batches", batches
    moments = sum(Moments.from_arrays(*part) for part in parts)
    yield "moments", HOLRR(rank, problem.alpha, **params).fit_moments(moments)
    kernel = KernelHOLRR((n, *rank[1:]), problem.alpha, **params)
    if problem.alpha and rank[0] == X.shape[1]:  # ranks of its mode 0 are those of the samples
        yield "kernel", kernel.fit(X, Y, w)


@given(problems(), st.booleans())
def test_every_way_has_the_objective_and_the_bound_of_the_reference(problem, weighted):
    w = np.random.default_rng(0).uniform(0.2, 2, len(problem.X)) if weighted else None
    X, Y = reference.centre(problem.X, problem.Y, problem.fit_intercept, w)[:2]
    if weighted:
        X, Y = np.sqrt(w)[:, None] * X, np.sqrt(w).reshape(-1, *[1] * problem.p) * Y
    scale = np.sum(problem.Y**2) + np.finfo(float).tiny
    bound = reference.lower_bound(X, Y, problem.alpha, problem.rank)
    _, Z, r = reference.whiten(X, Y, problem.alpha)
    objective = r
    if Z.size:
        rank = [min(R, d) for R, d in zip(problem.rank, Z.shape, strict=True)]
        factors = [np.linalg.svd(reference.unfold(Z, i))[0][:, :R] for i, R in enumerate(rank)]
        objective += np.sum((Z - reference.project(Z, factors)) ** 2)
    for name, model in ways(problem, w):
        assert_allclose(model.objective_, objective, rtol=1e-6, atol=1e-8 * scale, err_msg=name)
        assert_allclose(model.lower_bound_, bound, rtol=1e-7, atol=1e-8 * scale, err_msg=name)
        if name != "kernel" and np.abs(X).max() > 1e-8:
            found = reference.objective(
                problem.X, problem.Y, model.coef_, problem.alpha, model.intercept_, w
            )
            assert_allclose(found, model.objective_, rtol=1e-7, atol=1e-8 * scale, err_msg=name)


@pytest.mark.filterwarnings("ignore:The best penalty")
@given(problems(alphas=(0.0,), degenerate=False), st.lists(st.floats(1e-3, 1e3), max_size=4))
def test_one_decomposition_gives_the_fits_of_all_penalties(problem, alphas):
    """A search decomposes the inputs once for all penalties."""
    X, Y, icpt = problem.X, problem.Y, problem.fit_intercept
    every, alphas = np.arange(len(X)), sorted({1e-6, *alphas})
    search = RLSCV(alphas, cv=[(every, every)], fit_intercept=icpt).fit(X, Y)
    for alpha, found in zip(alphas, search.cv_results_["mean_mse"], strict=True):
        alone = RLS(alpha, fit_intercept=icpt).fit(X, Y)
        errors = np.mean((Y - alone.predict(X)) ** 2)
        assert_allclose(found, errors, rtol=1e-5, atol=1e-9 * np.mean(Y**2))
        if alpha == search.alpha_:
            atol = 1e-6 * (1e-12 + np.abs(alone.coef_).max())
            assert_allclose(search.coef_, alone.coef_, rtol=1e-5, atol=atol)


@pytest.mark.parametrize("alpha", [0.0, 1e-3])
def test_directions_without_variance_are_dropped(alpha):
    """Inputs that are constant, or sums of others, do not change the fit of the others."""
    X, Y = toy(d0=5)
    X[:, 3], X[:, 4] = 7.0, X[:, 0]
    expected = RLS(alpha).fit(X[:, [0, 1, 2]] * [np.sqrt(2), 1, 1], Y)
    fits = RLS(alpha).fit(X, Y), RLS(alpha).fit_moments(Moments.from_arrays(X, Y))
    for found in (*fits, HOLRR(None, alpha).fit(X, Y)):
        assert_allclose(found.predict(X), expected.predict(X[:, :3] * [np.sqrt(2), 1, 1]))
        assert_allclose(found.coef_[3], 0, atol=1e-12)
        assert_allclose(found.coef_[4], found.coef_[0], atol=1e-9)
    assert found.rank_[0] == 3


def test_constant_inputs_explain_nothing():
    _, Y = toy()
    X = np.full((40, 5), 7.0)
    total = np.sum((Y - Y.mean(axis=0)) ** 2)
    for alpha in (0.0, 1.0):
        for model in (
            RLS(alpha).fit(X, Y),
            HOLRR(2, alpha).fit(X, Y),
            HOLRR(2, alpha).fit_moments(Moments.from_arrays(X, Y)),
            HOLRRCV([alpha], cv=2, selection="min").fit(X, Y),
        ):
            assert_allclose(model.objective_, total, rtol=1e-12)
            assert_allclose(model.coef_, 0, atol=1e-12)
