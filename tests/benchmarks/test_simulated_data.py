"""Simulated data of `structured.py` and `streams.py` are as described, and peers as compared."""

import numpy as np
import pytest
from sklearn.model_selection import PredefinedSplit

import streams
import structured
from structured import Problem

SMALL = {"n_runs": 5, "n_times": 15, "sizes": (5, 9), "shape": (6, 3)}


# ---------------------------------------------------------------- tensor inputs


def test_landscapes_have_four_components_and_the_noise_that_is_asked_for():
    X, y, X_test, y_test = structured.excitation_emission(0.0, seed=3)
    assert (X.shape, y.shape, X_test.shape, y_test.shape) == (
        (45, 60, 25),
        (45, 3),
        (200, 60, 25),
        (200, 3),
    )
    values = np.linalg.svd(X.reshape(45, -1), compute_uv=False)
    assert values[3] > 1e-3 * values[0]
    assert values[4] < 1e-12 * values[0]
    # Without noise the concentrations are a linear function of the landscape.
    coef = np.linalg.lstsq(X.reshape(45, -1), y)[0]
    np.testing.assert_allclose(X_test.reshape(200, -1) @ coef, y_test, atol=1e-8)
    noisy = structured.excitation_emission(0.5, seed=3)[0]
    spread = np.linalg.svd(noisy.reshape(45, -1), compute_uv=False)[10:]
    assert 0.8 < np.sqrt(np.mean(spread**2) / 1500) / 0.5 < 1.2


def test_components_of_one_fit_are_those_of_smaller_fits():
    regression = pytest.importorskip("tensorly.regression", reason="tensorly is not installed")
    X, y, X_test, _ = structured.excitation_emission(0.2, seed=1)
    found = structured.cp_plsr_path(X, y, X_test)
    for k in (1, 3, 5):
        expected = regression.CP_PLSR(k).fit(X, y).predict(X_test)
        np.testing.assert_allclose(found[k - 1], expected, atol=1e-8)


def test_white_inputs_have_coefficients_of_the_ranks_that_are_asked_for():
    for input_rank, expected in ((None, 6), (2, 2)):
        X, _, X_test, signal = structured.white_inputs(50, (6, 7), (4, 3), input_rank, seed=0)
        assert X.shape == (50, 6, 7)
        coef = np.linalg.lstsq(X_test.reshape(len(X_test), -1), signal.reshape(len(signal), -1))[0]
        assert np.linalg.matrix_rank(coef.reshape(6, -1), tol=1e-8) == expected


# ---------------------------------------------------------------- blocks


def test_blocks_have_the_effects_that_are_asked_for():
    rng = np.random.default_rng(0)
    X, signal, y = structured.simulate(4000, Problem((3, 5, 2), (1, 0.25, 0), 0.5), (6, 4), 2, rng)
    coef = np.linalg.lstsq(X, signal.reshape(len(X), -1))[0]
    parts = [X[:, a:b] @ coef[a:b] for a, b in ((0, 3), (3, 8), (8, 10))]
    assert parts[1].std() / parts[0].std() == pytest.approx(0.25)
    assert parts[2].std() < 1e-10
    assert np.linalg.matrix_rank(coef.reshape(10, 6, 4).transpose(1, 0, 2).reshape(6, -1)) == 2
    assert signal.std() == pytest.approx(1)
    assert (y - signal).std() == pytest.approx(0.5, rel=0.02)


def test_neighbouring_columns_have_the_correlation_that_is_asked_for():
    rng = np.random.default_rng(0)
    X, *_ = structured.simulate(5000, Problem((4, 3), (1, 1)), (2, 2), 1, rng, correlation=0.6)
    found = np.corrcoef(X.T)
    assert found[0, 1] == pytest.approx(0.6, abs=0.05)
    assert found[3, 4] == pytest.approx(0.0, abs=0.05)
    np.testing.assert_allclose(X.std(axis=0), 1, atol=0.05)


def test_delays_of_the_encoding_model_stay_within_runs():
    data = structured.encoding_data(0.5, seed=1, **SMALL)
    assert data.X.shape == (75, 4 * 14)
    assert data.y.shape == (75, 6, 3)
    np.testing.assert_array_equal(data.runs, np.repeat(range(5), 15))
    np.testing.assert_array_equal(data.is_test, data.runs >= 3)
    delayed = data.X[:, :20].reshape(5, 15, 4, 5)  # runs, times, delays, features
    np.testing.assert_array_equal(delayed[:, 1:, 1], delayed[:, :-1, 0])
    np.testing.assert_array_equal(delayed[:, 3:, 3], delayed[:, :-3, 0])
    assert 0.6 < data.ceiling < 0.95  # 0.8, but for chance


def test_the_ceiling_of_r2_is_one_without_noise():
    data = structured.encoding_data(0.0, seed=0, **SMALL)
    assert data.ceiling == pytest.approx(1)
    assert structured.pooled_r2(data.y, np.broadcast_to(data.y.mean(axis=0), data.y.shape)) == 0


def test_draws_are_judged_by_the_held_out_error_of_ridge_regression():
    """By hand: inputs of each block times the root of its share, and a common penalty."""
    pytest.importorskip("himalaya", reason="himalaya is not installed")
    rng = np.random.default_rng(3)
    X, _, y = structured.simulate(60, Problem((4, 6), (1, 0.2)), (4, 3), 2, rng)
    groups, shares = structured.labels_of((4, 6)), structured.draws(6, 2, 0)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_array_equal(shares[0], 0.5)
    Y, least = y.reshape(60, -1), np.inf
    for share in shares:
        Z = X * np.sqrt(np.repeat(share, [4, 6]))
        for alpha in structured.ALPHAS:
            errors = []
            for train, test in structured.FOLDS.split(Z):
                A, B = Z[train] - Z[train].mean(axis=0), Y[train] - Y[train].mean(axis=0)
                coef = np.linalg.solve(A.T @ A + alpha * np.eye(10), A.T @ B)
                predicted = (Z[test] - Z[train].mean(axis=0)) @ coef + Y[train].mean(axis=0)
                errors.append(np.mean((Y[test] - predicted) ** 2))
            least = min(least, np.mean(errors))
    assert structured.error_of_draws(X, y, groups, shares) == pytest.approx(least, rel=1e-8)


def test_kernels_of_the_blocks_give_the_predictions_of_group_ridge():
    pytest.importorskip("himalaya", reason="himalaya is not installed")
    data, shares = structured.encoding_data(0.5, seed=2, **SMALL), structured.draws(4, 2, 0)
    test, flat = data.is_test, data.y.reshape(len(data.y), -1)
    model = structured.himalaya(data.blocks, PredefinedSplit(data.runs[~test]), shares)
    expected = model.fit(data.X[~test], flat[~test]).predict(data.X[test])
    found = structured.himalaya_in_dual(data, shares)
    np.testing.assert_allclose(found.reshape(expected.shape), expected, atol=1e-7)


# ---------------------------------------------------------------- streams


def test_lazy_data_are_the_same_in_every_computation():
    pytest.importorskip("dask.array", reason="dask is not installed")
    X, Y = streams.lazy_data(23, 10)
    assert X.chunks[0] == Y.chunks[0] == (10, 10, 3)
    found, again = (streams.lazy_data(23, 10)[1].compute(scheduler="sync") for _ in range(2))
    np.testing.assert_array_equal(found, again)
    signal = np.tensordot(X.compute(scheduler="sync"), streams.coefficients(), 1)
    assert 0.9 < np.std(found - signal) < 1.1
