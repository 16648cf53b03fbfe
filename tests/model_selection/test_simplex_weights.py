"""Weights on the simplex: the quadratic programme of a mixture, for any Gram matrix.

No public call takes a Gram matrix. Mixtures of searches are tested in test_stacking.py.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from holrr.model_selection.stack import least_in_hull, quadratic_form


def best_mixture(B):
    """Least ``w' B w`` over weights that are not negative and add up to one, by cvxpy."""
    cp = pytest.importorskip("cvxpy", reason="cvxpy, the independent convex solver, is missing")
    lam, Q = np.linalg.eigh(B)
    A = np.sqrt(np.maximum(lam, 0.0))[:, None] * Q.T
    scale = np.sqrt(np.trace(B) / len(B))
    w = cp.Variable(len(B), nonneg=True)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(A / scale @ w)), [cp.sum(w) == 1])
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    return problem.value * scale**2, w.value


@pytest.mark.parametrize("seed", range(5))
def test_weights_are_those_of_an_independent_solver(seed):
    rng = np.random.default_rng(seed)
    for shape in ((40, 6), (5, 9), (200, 2)):
        A = rng.normal(size=shape) + 0.2 * seed
        optimum, weights = best_mixture(A.T @ A)
        found = least_in_hull(A.T @ A)
        assert_allclose(quadratic_form(A.T @ A, found), optimum, rtol=1e-6, atol=1e-9)
        if shape[0] > shape[1]:  # the weights are unique
            assert_allclose(found, weights, atol=1e-4)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(
    "kind", ["general", "alike", "repeated", "around the origin", "scaled", "graded"]
)
def test_the_projection_onto_a_hull_is_optimal(kind, seed):
    rng = np.random.default_rng(seed)
    n, A = 12, rng.normal(size=(15, 12)) + 2.0
    if kind == "alike":
        A = rng.normal(size=(15, 1)) + 1e-4 * A
    elif kind == "repeated":
        A = A[:, rng.integers(0, 4, size=n)]
    elif kind == "around the origin":
        A = rng.normal(size=(3, n))
    elif kind == "scaled":
        A *= 10.0 ** rng.uniform(-5, 5, size=n)
    elif kind == "graded":  # all distances from the first corner matter, far or near
        A = A[:, :1] + rng.normal(size=(15, n)) * 10.0 ** -np.arange(n)
    w = least_in_hull(A.T @ A)
    assert (w >= 0).all()
    assert w.sum() == pytest.approx(1.0, rel=1e-12)
    # No corner is nearer in the direction of the point.
    point = A @ w
    gap = point @ point - (point @ A).min()
    assert gap <= 1e-11 * (A * A).sum(axis=0).min() + 1e-15 * np.abs(A).max() ** 2


@pytest.mark.parametrize("unit", [1e-60, 1e-16, 1e16, 1e30, 1e60])
def test_the_projection_onto_a_hull_does_not_depend_on_the_units(unit):
    """Units that are no powers of two, so that the rounding of the Gram matrix changes."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        A = rng.normal(size=(15, 12)) + 0.3
        A = A[:, rng.integers(0, 12, size=12)] if seed % 2 else A
        found, expected = (least_in_hull((u * A).T @ (u * A)) for u in (unit, 1.0))
        # Equal corners can share a weight in many ways; the point is the same.
        np.testing.assert_allclose(A @ found, A @ expected, rtol=0, atol=1e-7 * np.abs(A).max())


def test_an_error_is_not_below_its_rounding():
    long = np.array([[1.0, -1.0], [-1.0, 1.0]]) * 1e16
    assert quadratic_form(long, np.array([0.5, 0.5])) == pytest.approx(100.0)
    assert quadratic_form(np.eye(2), np.array([0.5, 0.5])) == 0.5
