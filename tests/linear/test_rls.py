"""RLS: ridge regression for tensor outputs, and its solvers."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose
from sklearn.linear_model import Ridge

import reference
from holrr import RLS, Moments
from problems import problems, toy

SCALES = [*product([1e-150, 1e150], [1e-150, 1e150]), (1e-30, 1.0), (1.0, 1e30), (1e30, 1e-30)]


@given(problems(alphas=(1e-3, 0.5, 30.0)))
def test_rls_is_ridge_regression_of_the_flattened_outputs(problem):
    model = RLS(problem.alpha, fit_intercept=problem.fit_intercept).fit(problem.X, problem.Y)
    ridge = Ridge(problem.alpha, fit_intercept=problem.fit_intercept, solver="svd")
    ridge.fit(problem.X, problem.Y.reshape(len(problem.Y), -1))
    expected = ridge.predict(problem.X).reshape(problem.Y.shape)
    assert_allclose(model.predict(problem.X), expected, rtol=1e-8, atol=1e-8)


@given(problems(alphas=(0.0,)))
def test_no_penalty_gives_the_solution_of_least_norm(problem):
    """Also with deficient inputs or few samples, as the pseudo-inverse gives it."""
    model = RLS(0.0, fit_intercept=problem.fit_intercept).fit(problem.X, problem.Y)
    X, Y, mx, my = reference.centre(problem.X, problem.Y, problem.fit_intercept)
    W = np.tensordot(np.linalg.pinv(X, rcond=1e-10), Y, axes=1)
    tol = 1e-7 * (1 + np.abs(W).max())
    assert_allclose(model.coef_, W, rtol=1e-6, atol=tol)
    assert_allclose(model.intercept_, my - np.tensordot(mx, W, axes=1), rtol=1e-6, atol=tol)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("offset", [0.0, 10.0, 1e3])
@pytest.mark.parametrize("solver", ["auto", "svd", "partial_fit"])
def test_duplicate_features_have_equal_coefficients(solver, offset, seed, use_solver):
    """Rounding of a singular Gram matrix is not taken for a direction."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(2000, 12))
    X, Y = np.hstack([A, A]) + offset, A @ rng.normal(size=(12, 6)) + rng.normal(size=(2000, 6))
    if solver == "partial_fit":
        model = RLS(alpha=0).partial_fit(X[:500], Y[:500]).partial_fit(X[500:], Y[500:])
    else:
        use_solver(solver)
        model = RLS(alpha=0).fit(X, Y)
    expected = np.linalg.lstsq(A - A.mean(0), Y - Y.mean(0), rcond=None)[0]
    assert_allclose(model.coef_, np.vstack([expected, expected]) / 2, atol=1e-8 * (1 + offset))


def test_solver_attribute_is_the_solver_that_was_used():
    X, Y = toy(n=100)
    assert RLS().fit(X, Y).solver_ == "eigh"
    assert RLS().fit(*toy(n=400, d0=300)).solver_ == "cholesky"
    wide, Yw = toy(n=4, d0=9)
    assert RLS(alpha=0).fit(wide, Yw).solver_ == "svd"
    assert RLS(alpha=1e3).fit(wide, Yw).solver_ == "eigh"
    assert RLS(alpha=1e3).fit(wide * 1e9, Yw).solver_ == "svd"
    ill_conditioned = X * 10.0 ** -np.arange(0, 15, 3)
    assert RLS(alpha=0).fit(ill_conditioned, Y).solver_ == "svd"
    assert RLS(alpha=1).fit(ill_conditioned, Y).solver_ == "eigh"
    assert RLS(alpha=0).fit_moments(Moments.from_arrays(ill_conditioned, Y)).solver_ == "eigh"


@pytest.mark.parametrize("n", [3, 5, 6, 100])
@pytest.mark.parametrize("alpha", [1e-2, 1.0, 1e3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("solver", ["cholesky", "svd"])
def test_solvers_agree(n, alpha, weighted, fit_intercept, solver, use_solver):
    X, Y = toy(n=n)
    w = np.random.default_rng(1).uniform(0.1, 2, n) if weighted else None
    expected = RLS(alpha, fit_intercept=fit_intercept).fit(X, Y, w)
    use_solver(solver)
    model = RLS(alpha, fit_intercept=fit_intercept).fit(X, Y, w)
    if n == 100:
        assert (expected.solver_, model.solver_) == ("eigh", solver)
    assert_allclose(model.coef_, expected.coef_, rtol=1e-8, atol=1e-10)
    assert_allclose(model.intercept_, expected.intercept_, rtol=1e-8, atol=1e-9)
    assert_allclose(model.objective_, expected.objective_, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shape", [(20, 6), (500, 30), (30, 40)], ids=str)
@pytest.mark.parametrize("exponent", [3, 6, 9])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_ill_conditioned_inputs_predict_as_lstsq_does(shape, exponent, fit_intercept):
    rng = np.random.default_rng(0)
    n, d0 = shape
    Q = reference.random_orthonormal(rng, n, min(shape))
    P = reference.random_orthonormal(rng, d0, min(shape))
    X = (Q * np.logspace(0, -exponent, min(shape))) @ P.T
    # Coefficients of unit size: outputs that are small along the weak directions.
    W = rng.normal(size=(d0, 3, 4))
    Y = np.tensordot(X, W, axes=1) + 1e-3 * rng.normal(size=(n, 3, 4))
    model = RLS(alpha=0, fit_intercept=fit_intercept).fit(X, Y)
    Xc, Yc, mx, my = reference.centre(X, Y, fit_intercept)
    W = np.linalg.lstsq(Xc, Yc.reshape(n, -1), rcond=None)[0].reshape(d0, 3, 4)
    expected = np.tensordot(Xc, W, axes=1) + my
    error = np.linalg.norm(model.predict(X) - expected) / np.linalg.norm(expected)
    assert error < 1e-6
    fresh = rng.normal(size=(50, n)) @ X / n  # new inputs of the same kind
    expected = np.tensordot(fresh - mx, W, axes=1) + my
    assert np.linalg.norm(model.predict(fresh) - expected) / np.linalg.norm(expected) < 1e-6


@pytest.mark.parametrize(("scale_x", "scale_y"), SCALES)
@pytest.mark.parametrize("solver", ["auto", "svd"])
def test_predictions_do_not_depend_on_the_units(scale_x, scale_y, solver, use_solver):
    """The objective is in the units of the data, as far as squares are normal numbers."""
    X, Y = toy()
    use_solver(solver)
    plain = RLS(alpha=0).fit(X, Y)
    model = RLS(alpha=0).fit(X * scale_x, Y * scale_y)
    assert_allclose(model.predict(X * scale_x) / scale_y, plain.predict(X), rtol=1e-7)
    if 1e-150 < scale_y:  # smaller squares fall into the denormal numbers
        assert_allclose(model.objective_ / scale_y**2, plain.objective_, rtol=1e-6)
