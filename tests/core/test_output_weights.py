"""Output weights against the objective with a weight for every entry."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from holrr import HOLRR, LRR, RLS
from problems import toy, with_missing
from reference import tucker_to_dense

WEIGHTS = (np.array([0.2, 1.0, 3.0]), np.array([1.0, 0.5, 0.1, 2.0]))
PRODUCT = reduce(np.multiply.outer, WEIGHTS)  # objectives have weights of mean one
RLS_LRR_HOLRR = [RLS(), LRR(2), HOLRR(2), HOLRR(2, refine=True)]


def objective(X, Y, W, b, v, alpha=1.0):
    """The weighted sum over observed entries; coefficients without weight do not count."""
    errors = np.nansum((Y - np.tensordot(X, W, 1) - b) ** 2, axis=0) + alpha * np.sum(W**2, axis=0)
    return np.nansum(v / v.mean() * errors)


def fit(model, X, Y, weights=None):
    model = type(model)(**model.get_params())
    return model.set_params(output_weight=weights).fit(X, Y)


@pytest.mark.parametrize("model", [LRR(2), HOLRR(2, refine=True)], ids=str)
def test_weighted_fit_is_a_local_minimum_among_tensors_of_its_rank(model):
    """Small random steps of core and factors from the weighted fit increase the objective."""
    X, Y = toy(noise=1.0)
    found, plain = fit(model, X, Y, WEIGHTS), fit(model, X, Y)
    best = objective(X, Y, found.coef_, found.intercept_, PRODUCT)
    assert_allclose(found.objective_, best, rtol=1e-10)
    assert best < 0.999 * objective(X, Y, plain.coef_, plain.intercept_, PRODUCT)
    rng = np.random.default_rng(0)
    for _ in range(50):
        step = 1e-3 * rng.choice([-1, 1])
        core = found.core_ + step * rng.normal(size=found.core_.shape)
        factors = [U + step * rng.normal(size=U.shape) for U in found.factors_]
        moved = tucker_to_dense(core, factors)
        mean = np.mean(Y - np.tensordot(X, moved, 1), axis=0)
        assert objective(X, Y, moved, mean, PRODUCT) >= best * (1 - 1e-9)


def test_output_weights_do_not_change_ridge_regression():
    X, Y = toy()
    found, plain = fit(RLS(), X, Y, WEIGHTS), fit(RLS(), X, Y)
    assert_allclose(found.coef_, plain.coef_, atol=1e-10)
    assert_allclose(found.intercept_, plain.intercept_, atol=1e-10)
    assert_allclose(found.noise_, plain.noise_, rtol=1e-9)


@pytest.mark.parametrize("model", RLS_LRR_HOLRR, ids=str)
def test_integer_output_weights_equal_repeated_outputs(model):
    X, Y = toy(noise=1.0)
    counts = np.array([1, 3, 2])
    found = fit(model, X, Y, (counts.astype(float), np.ones(4)))
    repeated = fit(model, X, np.repeat(Y, counts, axis=1))
    first = np.cumsum(counts) - counts
    assert_allclose(found.coef_, repeated.coef_[:, first], atol=1e-6)
    assert_allclose(found.intercept_, repeated.intercept_[first], atol=1e-6)
    for name in ("objective_", "lower_bound_"):
        expected = getattr(repeated, name) / counts.mean()  # weights of mean one
        assert_allclose(getattr(found, name), expected, rtol=1e-9)


@pytest.mark.parametrize("model", RLS_LRR_HOLRR, ids=str)
def test_outputs_of_weight_zero_have_no_influence_and_no_prediction(model):
    X, Y = toy(noise=1.0)
    wild = Y.copy()
    wild[:, 1] = 1e3 * np.random.default_rng(0).normal(size=wild[:, 1].shape)
    found = fit(model, X, wild, (np.array([1.0, 0.0, 2.0]), WEIGHTS[1]))
    without = fit(model, X, Y[:, [0, 2]], (np.array([1.0, 2.0]), WEIGHTS[1]))
    assert np.isnan(found.intercept_[1]).all()
    assert np.isnan(found.noise_[1]).all()
    assert np.isnan(found.predict(X)[:, 1]).all()
    assert_allclose(found.predict(X)[:, [0, 2]], without.predict(X), atol=1e-9)
    if isinstance(model, RLS):
        assert_allclose(found.noise_[[0, 2]], without.noise_, rtol=1e-9)


@pytest.mark.parametrize("model", RLS_LRR_HOLRR, ids=str)
def test_weighted_objective_counts_observed_entries_only(model):
    X, Y = toy(noise=1.0)
    Y = with_missing(Y, 0.3)
    found = fit(model.set_params(missing="ignore"), X, Y, WEIGHTS)
    value = objective(X, Y, found.coef_, found.intercept_, PRODUCT)
    assert_allclose(value, found.objective_, rtol=1e-8)


# ---------------------------------------------------------------- weights as a user writes them


def test_an_array_that_is_a_product_is_the_list_of_its_vectors():
    X, Y = toy(noise=1.0)
    expected = fit(HOLRR(2), X, Y, WEIGHTS)
    for array, tol in ((PRODUCT, 1e-10), (7e9 * PRODUCT, 1e-10), (PRODUCT.astype("f4"), 1e-5)):
        found = fit(HOLRR(2), X, Y, array)
        assert_allclose(found.coef_, expected.coef_, rtol=tol, atol=tol)
        assert_allclose(found.objective_, expected.objective_, rtol=tol)


@pytest.mark.parametrize("shape", [(6, 9), (4, 5, 6), (3, 3, 2, 4)], ids=str)
@pytest.mark.parametrize("nothing", [0.0, np.nan])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_outputs_without_weight_are_those_that_are_never_observed(shape, nothing, share):
    """A product times a mask is the product, with missing outputs where the mask is zero."""
    rng = np.random.default_rng(0)
    X, Y = toy(shape=shape)
    vectors = [np.exp(rng.normal(size=d)) for d in shape]
    mask = rng.random(shape) < share
    mask[0] = False
    mask[:, 0] = False
    given = np.where(mask, nothing, reduce(np.multiply.outer, vectors))
    Y[:, mask] = np.nan
    model = HOLRR(2, missing="ignore")
    found, expected = fit(model, X, Y, given), fit(model, X, Y, vectors)
    scale = np.nanmax(np.abs(expected.predict(X)))
    assert_allclose(found.predict(X), expected.predict(X), atol=1e-6 * scale)
    assert_array_equal(np.isnan(found.intercept_), mask)


def test_weights_of_separate_blocks_are_those_of_each_block():
    """No product is asked for between blocks that share no slice."""
    X, Y = toy(shape=(4, 5))
    v = np.zeros((4, 5))
    v[:2, :2], v[2:, 2:] = np.outer([1, 2], [3, 4]), 1e6 * np.outer([1, 3], [1, 1, 5])
    Y[:, v == 0] = np.nan
    found = fit(RLS(missing="ignore"), X, Y, v)
    assert_allclose(found.coef_[:, v > 0], fit(RLS(), X, Y[:, v > 0]).coef_, rtol=1e-8)
    assert_array_equal(np.isnan(found.intercept_), v == 0)
    v[0, 0] = 7.0
    with pytest.raises(ValueError, match="must be a product over the output modes"):
        fit(RLS(missing="ignore"), X, Y, v)


def test_single_output_mode_needs_no_list():
    X, Y = toy(shape=(3,))
    expected = fit(LRR(1), X, Y, [[1, 2, 3]]).coef_
    assert np.abs(expected - fit(LRR(1), X, Y, [None]).coef_).max() > 1e-6
    for given in ([1, 2, 3], (1, 2, 3), np.array([1, 2, 3]), [np.array([1, 2, 3])]):
        assert_allclose(fit(LRR(1), X, Y, given).coef_, expected, rtol=1e-12)
    assert_allclose(fit(LRR(1), X, Y, [None]).coef_, fit(LRR(1), X, Y).coef_, rtol=1e-12)


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
        fit(RLS(), *toy(shape=shape), given)


def test_output_weights_that_are_text_raise():
    with pytest.raises(TypeError, match=r"output_weight\[0\] must hold numbers"):
        fit(RLS(), *toy(), [["a", "b", "c"], None])
