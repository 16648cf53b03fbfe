"""Output weights against the objective with a weight for every entry."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from holrr.core.approximate import MultilinearRank, hooi, hosvd
from holrr.core.output_weights import (
    check_output_weight,
    excluded_outputs,
    scale_outputs,
    unscale,
)
from holrr.core.spectral import whiten_arrays
from holrr.core.tensor import Tucker
from holrr.missing.completion import complete
from holrr.missing.observed import Observed, SampleBasis
from problems import toy, with_missing

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
def test_weighted_fit_is_a_local_minimum_among_tensors_of_its_rank(modes):
    """Small random steps of core and factors from the weighted fit increase the objective."""
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


def test_output_weights_do_not_change_ridge_regression():
    X, Y = toy()
    coef, b = fit(X, Y, (5, 3, 4), WEIGHTS, modes=())
    plain, c = fit(X, Y, (5, 3, 4), modes=())
    assert_allclose(coef.to_dense(), plain.to_dense(), atol=1e-10)
    assert_allclose(b, c, atol=1e-10)


def test_integer_output_weights_equal_repeated_outputs():
    X, Y = toy(noise=1.0)
    counts = np.array([1, 3, 2])
    coef, b = fit(X, Y, (2, 2, 2), (counts.astype(float), np.ones(4)))
    repeated, c = fit(X, np.repeat(Y, counts, axis=1), (2, 2, 2))
    first = np.cumsum(counts) - counts
    assert_allclose(coef.to_dense(), repeated.to_dense()[:, first], atol=1e-6)
    assert_allclose(b, c[first], atol=1e-6)


@pytest.mark.parametrize("modes", [None, (0,), ()])
def test_outputs_of_weight_zero_have_no_influence_and_no_prediction(modes):
    X, Y = toy(noise=1.0)
    weights = (np.array([1.0, 0.0, 2.0]), WEIGHTS[1])
    Y[3, 1, 2], Y[:, 1, 0] = np.inf, np.nan
    coef, b = fit(X, Y, (2, 2, 2), weights, modes=modes)
    without, c = fit(X, Y[:, [0, 2]], (2, 2, 2), (np.array([1.0, 2.0]), WEIGHTS[1]), modes=modes)
    assert np.isnan(b[1]).all()
    assert_allclose(coef.to_dense()[:, [0, 2]], without.to_dense(), atol=1e-7)
    assert_allclose(b[[0, 2]], c, atol=1e-7)


def test_weighted_objective_counts_observed_entries_only():
    X, Y = toy(noise=1.0)
    Y = with_missing(Y, 0.3)
    samples = SampleBasis.from_arrays(X, None, 1.0)
    update = MultilinearRank((2, 2, 2)).update
    found = complete(Observed(samples, scale_outputs(Y, WEIGHTS)), 1.0, update)
    V = found.found.tucker
    coef = Tucker(V.core, (found.problem.lift(V.factors[0]), *V.factors[1:]))
    b = found.problem.mean_y - coef.map_input(found.problem.mean_x[None])[0]
    coef, b = unscale(coef, b, WEIGHTS)
    W, v = coef.to_dense(), reduce(np.multiply.outer, WEIGHTS)
    value = np.nansum(v * (Y - np.tensordot(X, W, 1) - b) ** 2) + np.sum(v * W**2)
    assert_allclose(value, found.objective, rtol=1e-10)


# ---------------------------------------------------------------- weights as a user writes them


def test_array_of_output_weights_is_factorised():
    v = reduce(np.multiply.outer, WEIGHTS)
    for array in (v, v.astype(np.float32)):
        found = check_output_weight(array, (3, 4))
        assert_allclose(reduce(np.multiply.outer, found), v, rtol=1e-6)
        assert all(vector.dtype == np.float64 for vector in found)
    v = reduce(np.multiply.outer, (*WEIGHTS, np.array([0.0, 1e-9])))
    assert_allclose(reduce(np.multiply.outer, check_output_weight(v, (3, 4, 2))), v, rtol=1e-12)


@pytest.mark.parametrize("shape", [(6, 9), (4, 5, 6), (3, 3, 2, 4)])
@pytest.mark.parametrize("nothing", [0.0, np.nan])
def test_weights_times_a_mask_are_factorised_where_they_are_positive(shape, nothing):
    rng = np.random.default_rng(0)
    for share in (0.1, 0.5, 0.8):
        vectors = [np.exp(rng.normal(size=d)) for d in shape]
        v, mask = reduce(np.multiply.outer, vectors), rng.random(shape) < share
        mask[0] = False  # a whole slice
        mask[1:, 0] |= True
        given = np.where(mask, nothing, v)
        given[0] = nothing
        found = check_output_weight(given, shape)
        product = reduce(np.multiply.outer, found)
        assert_allclose(product[given > 0], v[given > 0], rtol=1e-11)
        empty = ~reduce(
            np.multiply.outer,
            [(given > 0).any(tuple(m for m in range(v.ndim) if m != k)) for k in range(v.ndim)],
        )
        assert_array_equal(product == 0, empty)
        assert_array_equal(excluded_outputs(given, shape), ~(given > 0) & ~empty)


def test_weights_of_separate_blocks_are_those_of_each_block():
    """No product is asked for between blocks that share no slice."""
    v = np.zeros((4, 5))
    v[:2, :2], v[2:, 2:] = np.outer([1, 2], [3, 4]), 1e6 * np.outer([1, 3], [1, 1, 5])
    product = np.multiply.outer(*check_output_weight(v, v.shape))
    assert_allclose(product[v > 0], v[v > 0], rtol=1e-10)
    assert np.isfinite(product).all()
    assert (product > 0).all()


def test_weights_with_a_mask_must_be_a_product_elsewhere():
    v = np.outer([1.0, 2.0, 3.0], [1.0, 5.0, 1.0])
    v[0, 0], v[2, 1] = 0.0, 16.0
    with pytest.raises(ValueError, match="must be a product over the output modes"):
        check_output_weight(v, v.shape)


def test_single_output_mode_needs_no_list():
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
        (np.full((3, 4), np.nan), (3, 4), "output_weight is zero or NaN everywhere"),
        (np.ones((4, 3)), (3, 4), r"must have the shape \(3, 4\) of the outputs; got \(4, 3\)"),
        (np.eye(3) + 1, (3, 3), "must be a product over the output modes"),
        ([1.0], (), "needs outputs with at least one mode"),
    ],
)
def test_bad_output_weights_raise(given, shape, message):
    with pytest.raises(ValueError, match=message):
        check_output_weight(given, shape)


def test_output_weights_that_are_text_raise():
    with pytest.raises(TypeError, match=r"output_weight\[0\] must hold numbers"):
        check_output_weight([["a", "b", "c"], None], (3, 4))
