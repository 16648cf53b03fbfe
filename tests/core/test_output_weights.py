"""Weights of outputs against the objective with a weight for every entry."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
from numpy.testing import assert_allclose

from holrr.core.approximate import hooi, hosvd
from holrr.core.holes import Observed, SampleBasis
from holrr.core.missing import complete, low_multilinear_rank
from holrr.core.output_weights import check_output_weight, scale_outputs, unscale
from holrr.core.samples import whiten_arrays
from holrr.core.tucker import Tucker
from problems import toy, with_holes

WEIGHTS = (np.array([0.2, 1.0, 3.0]), np.array([1.0, 0.5, 0.1, 2.0]))


def fit(X, Y, rank, weights=None, alpha=1.0, modes=None):
    """Coefficients and intercept of a truncated HOSVD, refined, by way of scaled outputs."""
    scaled = Y if weights is None else scale_outputs(Y, weights)
    problem = whiten_arrays(X, scaled, None, alpha)
    found = hosvd(problem.Z, rank, modes=modes)
    found = hooi(problem.Z, found, max_iter=300, tol=1e-15)
    core, (U0, *factors) = found.tucker.core, found.tucker.factors
    if U0 is None:
        core = problem.lift(core.reshape(len(core), -1)).reshape(-1, *core.shape[1:])
    else:
        U0 = problem.lift(U0)
    coef = Tucker(core, (U0, *factors))
    intercept = problem.mean_y - coef.map_input(problem.mean_x[None])[0]
    return (coef, intercept) if weights is None else unscale(coef, intercept, weights)


def objective(X, Y, W, b, v, alpha=1.0):
    errors = np.sum((Y - np.tensordot(X, W, 1) - b) ** 2, axis=0) + alpha * np.sum(W**2, axis=0)
    return np.nansum(v * errors)


@pytest.mark.parametrize("modes", [None, (0,)])
def test_no_change_of_the_coefficients_within_their_rank_is_better(modes):
    """Small random steps along the set of low rank, from the weighted fit: the objective grows."""
    X, Y = toy(noise=1.0)
    v = reduce(np.multiply.outer, WEIGHTS)
    coef, b = fit(X, Y, (2, 2, 2), WEIGHTS, modes=modes)
    plain, c = fit(X, Y, (2, 2, 2), modes=modes)
    best = objective(X, Y, coef.to_dense(), b, v)
    assert best < 0.999 * objective(X, Y, plain.to_dense(), c, v)
    rng = np.random.default_rng(0)
    for _ in range(50):
        step = 1e-3 * rng.choice([-1, 1])
        core = coef.core + step * rng.normal(size=coef.core.shape)
        factors = [None if U is None else U + step * rng.normal(size=U.shape) for U in coef.factors]
        moved = Tucker(core, tuple(factors)).to_dense()
        mean = np.mean(Y - np.tensordot(X, moved, 1), axis=0)
        assert objective(X, Y, moved, mean, v) >= best * (1 - 1e-9)


def test_ridge_regression_stays_as_it_is():
    X, Y = toy()
    coef, b = fit(X, Y, (5, 3, 4), WEIGHTS, modes=())
    plain, c = fit(X, Y, (5, 3, 4), modes=())
    assert_allclose(coef.to_dense(), plain.to_dense(), atol=1e-10)
    assert_allclose(b, c, atol=1e-10)


def test_integer_weights_are_repeated_outputs():
    X, Y = toy(noise=1.0)
    counts = np.array([1, 3, 2])
    coef, b = fit(X, Y, (2, 2, 2), (counts.astype(float), np.ones(4)))
    repeated, c = fit(X, np.repeat(Y, counts, axis=1), (2, 2, 2))
    first = np.cumsum(counts) - counts
    assert_allclose(coef.to_dense(), repeated.to_dense()[:, first], atol=1e-6)
    assert_allclose(b, c[first], atol=1e-6)


@pytest.mark.parametrize("modes", [None, (0,), ()])
def test_an_output_of_weight_zero_influences_nothing_and_has_no_prediction(modes):
    X, Y = toy(noise=1.0)
    weights = (np.array([1.0, 0.0, 2.0]), WEIGHTS[1])
    Y[3, 1, 2], Y[:, 1, 0] = np.inf, np.nan
    coef, b = fit(X, Y, (2, 2, 2), weights, modes=modes)
    without, c = fit(X, Y[:, [0, 2]], (2, 2, 2), (np.array([1.0, 2.0]), WEIGHTS[1]), modes=modes)
    assert np.isnan(b[1]).all()
    assert_allclose(coef.to_dense()[:, [0, 2]], without.to_dense(), atol=1e-7)
    assert_allclose(b[[0, 2]], c, atol=1e-7)


def test_holes_stay_holes():
    X, Y = toy(noise=1.0)
    Y = with_holes(Y, 0.3)
    samples = SampleBasis.from_arrays(X, None, 1.0)
    found = complete(
        Observed(samples, scale_outputs(Y, WEIGHTS)), 1.0, low_multilinear_rank((2, 2, 2))
    )
    V = found.found.tucker
    coef = Tucker(V.core, (found.problem.lift(V.factors[0]), *V.factors[1:]))
    b = found.problem.mean_y - coef.map_input(found.problem.mean_x[None])[0]
    coef, b = unscale(coef, b, WEIGHTS)
    W, v = coef.to_dense(), reduce(np.multiply.outer, WEIGHTS)
    value = np.nansum(v * (Y - np.tensordot(X, W, 1) - b) ** 2) + np.sum(v * W**2)
    assert_allclose(value, found.objective, rtol=1e-10)


# ---------------------------------------------------------------- what a user may write


def test_an_array_that_factorises_is_its_vectors():
    v = reduce(np.multiply.outer, WEIGHTS)
    for array in (v, v.astype(np.float32)):
        found = check_output_weight(array, (3, 4))
        assert_allclose(reduce(np.multiply.outer, found), v, rtol=1e-6)
        assert all(vector.dtype == np.float64 for vector in found)
    v = reduce(np.multiply.outer, (*WEIGHTS, np.array([0.0, 1e-9])))
    assert_allclose(reduce(np.multiply.outer, check_output_weight(v, (3, 4, 2))), v, rtol=1e-12)


def test_one_mode_needs_no_list():
    for given in ([1, 2, 3], (1, 2, 3), np.array([1, 2, 3]), [[1, 2, 3]], [np.array([1, 2, 3])]):
        (found,) = check_output_weight(given, (3,))
        assert found.tolist() == [1, 2, 3]
    assert check_output_weight([None], (3,))[0].tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("given", "shape", "message"),
    [
        ([[1, 2, 3]], (3, 4), "must have 2 entries, one vector for each output mode; got 1"),
        ([[1, 2], None], (3, 4), r"output_weight\[0\] must have shape \(3,\)"),
        ([None, [1, 2, -3, 1]], (3, 4), r"output_weight\[1\] must be finite and at least 0.*-3"),
        ([None, [1, 2, np.nan, 1]], (3, 4), r"output_weight\[1\] must be finite.*nan"),
        ([[0, 0, 0], None], (3, 4), r"output_weight\[0\] is zero everywhere"),
        (np.ones((4, 3)), (3, 4), r"must have the shape \(3, 4\) of the outputs; got \(4, 3\)"),
        (np.eye(3) + 1, (3, 3), "must be a product over the output modes"),
        ([1.0], (), "needs outputs with at least one mode"),
    ],
)
def test_what_is_wrong_is_named(given, shape, message):
    with pytest.raises(ValueError, match=message):
        check_output_weight(given, shape)


def test_words_are_no_weights():
    with pytest.raises(TypeError, match=r"output_weight\[0\] must hold numbers"):
        check_output_weight([["a", "b", "c"], None], (3, 4))
