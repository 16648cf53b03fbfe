"""Robust weights of samples: their definition, equivariances and limits."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import chi2, norm

from holrr import RLS
from problems import toy
from reference import random_orthonormal

TOL = 1e-8  # of weights that are computed in two ways
PENALTIES = np.logspace(-8, 1, 19)  # that are compared, as multiples of the largest eigenvalue


def robust_weights(X, Y, v=None, **options):
    """The weights that a fit finds; they depend neither on its penalty nor on its rank."""
    return RLS(loss="huber", missing="ignore", **options).fit(X, Y, v).robust_weight_


def samples(n=60, d=5, D=4, *, noise=0.3, seed=0):
    """Inputs and outputs as a matrix."""
    X, Y = toy(n, d, (D,), noise=noise, seed=seed)
    return X, Y


def with_wrong(X, Y, row=7, *, factor=5.0, inputs=False):
    X, Y = X.copy(), Y.copy()
    (X if inputs else Y)[row] *= factor
    return X, Y


# ---------------------------------------------------------------- definition


def naive_residuals(X, Y, w, alpha):
    """Residuals of samples that are left out, by fits without them."""
    found = np.empty(Y.shape)
    for i in range(len(X)):
        keep = np.arange(len(X)) != i
        share = w[keep] / w[keep].sum()
        mx, my = share @ X[keep], share @ Y[keep]
        A, B = X[keep] - mx, Y[keep] - my
        G = A.T @ (w[keep, None] * A) + alpha * np.eye(X.shape[1])
        found[i] = Y[i] - my - (X[i] - mx) @ np.linalg.solve(G, A.T @ (w[keep, None] * B))
    return found


def naive_weights(X, Y, w, alpha):
    """The weights that the residuals of a weighted fit to one output imply."""
    R = naive_residuals(X, Y, w, alpha)
    mad = np.median(np.abs(R), axis=0) / norm.ppf(0.75)
    scale = np.maximum(mad, 0.5 * np.sqrt(w @ R**2 / w.sum()))
    q = np.mean((R / scale) ** 2, axis=1)
    assert Y.shape[1] == 1
    unit = max(1.0, np.median(q) / chi2.ppf(0.5, 1))
    return np.minimum(1.0, unit * chi2.ppf(0.95, 1) / np.where(q > 0, q, 1e-300))


@pytest.mark.parametrize("seed", range(3))
def test_weights_are_those_of_the_residuals_of_the_fit_with_these_weights(seed):
    """A fixed point, at one of the penalties that are compared."""
    X, Y = with_wrong(*samples(D=1, seed=seed))
    w = robust_weights(X, Y)
    centred = X - w @ X / w.sum()
    largest = np.linalg.eigvalsh(centred.T @ (w[:, None] * centred))[-1]
    errors = [np.abs(w - naive_weights(X, Y, w, ratio * largest)).max() for ratio in PENALTIES]
    assert min(errors) < 2e-3
    assert np.count_nonzero(np.array(errors) < 2e-3) < len(errors)


def test_a_sample_contributes_no_more_to_squared_errors_than_one_at_the_threshold():
    X, Y = with_wrong(*samples(D=1), factor=1e6)
    w = robust_weights(X, Y)
    residuals = np.abs(naive_residuals(X, Y, w, 1e-3)[:, 0])
    threshold = chi2.ppf(0.95, 1) * (np.median(residuals) / norm.ppf(0.75)) ** 2
    assert residuals[7] > 1e6
    assert w[7] * residuals[7] ** 2 == pytest.approx(threshold, rel=0.05)
    assert (w * residuals**2).max() < 1.05 * threshold


def test_outputs_that_are_given_several_times_count_once():
    """The degrees of freedom are those of the outputs that vary independently.

    The 7,000 copies are 37 megabytes, which are processed in blocks.
    """
    X, Y = with_wrong(*samples(D=11))
    expected = robust_weights(X, np.repeat(Y, 30, axis=1))
    assert_allclose(robust_weights(X, Y), expected, atol=0.03)
    found = robust_weights(X, np.repeat(Y, 7000, axis=1))
    assert_allclose(found, expected, atol=1e-6)


def test_outputs_that_are_proportional_are_one_output():
    X, Y = with_wrong(*samples(D=1, noise=1.0))
    rng = np.random.default_rng(0)
    equal_weights(X, Y, X, Y * rng.normal(size=6) + rng.normal(size=6))


# ---------------------------------------------------------------- wrong samples


@pytest.mark.parametrize("inputs", [False, True])
@pytest.mark.parametrize(
    ("n", "d", "D"), [(60, 5, 4), (60, 5, 1), (40, 200, 4), (60, 5, 300), (12, 3, 4)]
)
def test_a_wrong_sample_has_little_weight_and_the_others_keep_theirs(n, d, D, inputs):
    noise = 0.3 if d < n else 0.01
    for seed in range(3):
        X, Y = samples(n, d, D, noise=noise, seed=seed)
        if d > n:  # inputs with few directions, as those of spectra
            rng = np.random.default_rng(seed)
            X = X[:, :4] @ rng.normal(size=(4, d)) + 0.01 * rng.normal(size=(n, d))
            Y = X @ rng.normal(size=(d, D)) / d**0.5 + 0.05 * rng.normal(size=(n, D))
        row = int(np.square(Y - Y.mean(axis=0)).sum(axis=1).argmax())
        w = robust_weights(*with_wrong(X, Y, row, inputs=inputs))
        others = np.delete(w, row)
        assert w[row] < 0.2
        assert w[row] < 0.5 * others.min()
        assert np.median(others) == 1
        assert others.mean() > 0.9


def test_a_tenth_of_wrong_samples_is_found():
    X, Y = samples(90, 5, 4)
    wrong = np.arange(0, 90, 10)
    w = robust_weights(*with_wrong(X, Y, wrong))
    assert w[wrong].max() < 0.05
    assert np.delete(w, wrong).mean() > 0.9


def test_samples_far_away_that_the_others_predict_keep_their_weight():
    X, Y = samples(90, 3, 4, noise=0.0)
    X[:5] *= 10
    W = np.random.default_rng(0).normal(size=(3, 4))
    Y = X @ W + 0.3 * np.random.default_rng(1).normal(size=Y.shape)
    assert robust_weights(X, Y)[:5].mean() > 0.5


def test_a_wrong_sample_of_noise_free_data_does_not_count():
    X, Y = with_wrong(*samples(noise=0.0))
    w = robust_weights(X, Y)
    assert w[7] < 1e-6
    A = np.c_[np.ones(len(X)), X] * np.sqrt(w)[:, None]
    W = np.linalg.lstsq(A, Y * np.sqrt(w)[:, None], rcond=None)[0]
    expected = samples(noise=0.0)[1][7]
    assert_allclose(np.r_[1, X[7]] @ W, expected, rtol=1e-3)


def test_wrong_samples_with_missing_outputs_are_found():
    X, Y = with_wrong(*samples(90, 5, 10))
    rng = np.random.default_rng(3)
    Y[rng.random(Y.shape) < 0.4] = np.nan
    w = robust_weights(X, Y)
    assert w[7] < 0.05
    assert np.delete(w, 7).mean() > 0.9
    assert_array_equal(Y.shape, (90, 10))


def test_fewer_outputs_of_a_sample_do_not_lower_its_weight():
    """Samples of which only one of many outputs is observed have residuals of the usual size."""
    X, Y = samples(200, 4, 20)
    Y[::2, 1:] = np.nan
    w = robust_weights(X, Y)
    assert 0.9 < w[::2].mean() <= 1
    assert 0.9 < w[1::2].mean() <= 1


# ---------------------------------------------------------------- equivariance


def equal_weights(X, Y, other_X, other_Y, v=None, other_v=None, **options):
    found = robust_weights(other_X, other_Y, other_v, **options)
    assert_allclose(found, robust_weights(X, Y, v, **options), atol=TOL)


def test_units_of_each_output_and_of_the_inputs_do_not_matter():
    X, Y = with_wrong(*samples())
    units = np.array([1e-6, -3.0, 1e4, 1.0])
    equal_weights(X, Y, X, Y * units)
    equal_weights(X, Y, -1e5 * X, Y)
    equal_weights(X, Y, X, Y * units, fit_intercept=False)


def test_shifts_of_inputs_and_outputs_do_not_matter():
    X, Y = with_wrong(*samples())
    equal_weights(X, Y, X + 100.0, Y - 30.0)


@pytest.mark.parametrize("d", [5, 100])
def test_the_order_of_samples_inputs_and_outputs_does_not_matter(d):
    X, Y = with_wrong(*samples(d=d))
    rng = np.random.default_rng(2)
    rows, inputs, outputs = (rng.permutation(k) for k in (*X.shape, Y.shape[1]))
    equal_weights(X, Y, X[:, inputs], Y[:, outputs])
    moved = robust_weights(X[rows], Y[rows])
    assert_allclose(moved, robust_weights(X, Y)[rows], atol=TOL)


@pytest.mark.parametrize("d", [5, 100])
def test_rotated_inputs_and_inputs_without_values_do_not_matter(d):
    X, Y = with_wrong(*samples(d=d))
    Q = random_orthonormal(np.random.default_rng(2), d, d)
    equal_weights(X, Y, X @ Q, Y)
    equal_weights(X, Y, np.c_[X, np.zeros((len(X), 70))], Y)
    equal_weights(X, Y, np.c_[X, np.full((len(X), 70), 3.0)], Y)


def test_a_common_factor_of_the_weights_of_samples_does_not_matter():
    X, Y = with_wrong(*samples())
    v = np.random.default_rng(1).uniform(0.2, 2, len(X))
    equal_weights(X, Y, X, Y, v, 1e-3 * v)
    equal_weights(X, Y, X, Y, None, np.full(len(X), 7.0))


def test_samples_without_weight_have_no_influence_and_weight_one():
    X, Y = with_wrong(*samples())
    wild, v = Y.copy(), np.ones(len(X))
    v[50:], wild[50:] = 0.0, 1e6
    w = robust_weights(X, wild, v)
    assert_allclose(w[:50], robust_weights(X[:50], Y[:50]), atol=TOL)
    assert_array_equal(w[50:], 1.0)
    wild[50:] = np.nan
    assert_allclose(robust_weights(X, wild), w, atol=TOL)


def test_integer_weights_are_nearly_repetitions():
    """A sample is left out with all of its weight, and not one of several equal samples."""
    X, Y = with_wrong(*samples(200))
    v = np.random.default_rng(1).integers(1, 4, len(X))
    v[7] = 1
    weighted = robust_weights(X, Y, v)
    repeated = robust_weights(X.repeat(v, 0), Y.repeat(v, 0))
    first = np.r_[0, np.cumsum(v)[:-1]]
    assert_allclose(weighted, repeated[first], atol=0.1)
    assert np.abs(weighted - repeated[first]).mean() < 0.01


def test_many_samples_are_judged_by_some_of_them():
    """The choice of the penalty and the angles between residuals use at most 1,000 samples."""
    X, Y = with_wrong(*samples(2100))
    found = robust_weights(X, Y)
    assert found[7] < 0.01
    assert 0.9 < np.delete(found, 7).mean() < 1
    rows = np.random.default_rng(0).permutation(2100)
    assert_allclose(robust_weights(X[rows], Y[rows]), found[rows], atol=TOL)
    one = Y[:, :1]
    assert_allclose(robust_weights(X, np.tile(one, 8)), robust_weights(X, one), atol=TOL)


def test_single_precision_has_nearly_the_same_weights():
    X, Y = with_wrong(*samples())
    found = robust_weights(X.astype(np.float32), Y.astype(np.float32))
    assert found.dtype == np.float64
    assert_allclose(found, robust_weights(X, Y), atol=1e-3)


# ---------------------------------------------------------------- limits


@pytest.mark.parametrize("value", [0.0, 1e8, -0.1])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_constant_outputs_leave_all_weights_at_one(value, fit_intercept):
    X, Y = samples()
    w = robust_weights(X, np.full_like(Y, value), fit_intercept=fit_intercept)
    if fit_intercept:
        assert_array_equal(w, 1.0)
    Z = Y.copy()
    Z[:, 1] = value if fit_intercept else 0.0
    kept = Y[:, [0, 2, 3]]
    assert_allclose(
        robust_weights(X, Z, fit_intercept=fit_intercept),
        robust_weights(X, kept, fit_intercept=fit_intercept),
        atol=TOL,
    )


def test_outputs_that_hardly_ever_change_do_not_take_the_weight_of_samples():
    """Each of many outputs differs from zero in a few samples, as dark pixels of images do."""
    X, Y = samples(90, 5, 20)
    rng = np.random.default_rng(0)
    rare = np.where(rng.random((90, 40)) < 0.05, rng.normal(size=(90, 40)), 0.0)
    w = robust_weights(X, np.c_[Y, rare])
    assert w.mean() > 0.8
    assert np.median(w) == 1


def test_constant_inputs_give_robust_means():
    _, Y = with_wrong(*samples(D=1, noise=1.0))
    w = robust_weights(np.zeros((60, 3)), Y)
    assert w[7] < 1
    assert_allclose(w, robust_weights(np.full((60, 2), 1e6), Y), atol=TOL)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_few_samples_have_weights_between_zero_and_one(n):
    X, Y = samples(n)
    w = robust_weights(X, Y)
    assert w.shape == (n,)
    assert np.all((w > 0) & (w <= 1))
    if n < 3:
        assert_array_equal(w, 1.0)


def test_equal_samples_are_no_wrong_ones():
    X, Y = samples(10)
    w = robust_weights(X[[0] * 10], Y[[0] * 10])
    assert_array_equal(w, 1.0)


def test_inputs_that_are_nonzero_in_one_sample_give_finite_weights():
    """A column that differs from zero in one sample: that sample has all the leverage."""
    X, Y = samples()
    X = np.c_[X, np.eye(60)[:, :10]]
    w = robust_weights(X, Y)
    assert np.isfinite(w).all()
    assert np.median(w) == 1
