"""Moments that are scaled, batches that are forgotten, and rolling windows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.model_selection import PredefinedSplit

from holrr import (
    HOLRR,
    HOLRRCV,
    LRR,
    RLS,
    RLSCV,
    KernelRLS,
    Moments,
    RollingMoments,
    TraceNormRegression,
    load,
    save,
    standard_errors,
)
from holrr.streaming import memory_budget
from problems import assert_same_state, toy

FIELDS = ("mean_x", "mean_y", "Sxx", "Sxy", "syy", "squares", "weight")


def batches(X, Y, n):
    return list(zip(np.split(X, n), np.split(Y, n), strict=True))


def decayed_weights(n_batches, size, decay):
    """Weights of the samples after the last batch."""
    return np.repeat(decay ** np.arange(n_batches - 1, -1, -1.0), size)


# ---------------------------------------------------------------- scaled moments


@pytest.mark.parametrize("offset", [1.0, 1e6])
def test_scaled_moments_are_those_of_weighted_samples(offset):
    X, Y = toy(60, offset=offset)
    first, second = (Moments.from_arrays(*b, response_grams=True) for b in batches(X, Y, 2))
    found = 0.3 * first + second * 2
    w = np.repeat([0.3, 2.0], 30)
    expected = Moments.from_arrays(X, Y, w, response_grams=True)
    for name in FIELDS:
        value = getattr(expected, name)
        assert_allclose(getattr(found, name), value, rtol=1e-10, atol=1e-12 * np.abs(value).max())
    for G, H in zip(found.response_grams, expected.response_grams, strict=True):
        assert_allclose(G, H, rtol=1e-10, atol=1e-12 * np.abs(H).max())
    assert found.n_samples == 60
    assert_allclose(found.n_effective, w.sum() ** 2 / (w**2).sum(), rtol=1e-14)
    assert expected.n_effective == expected.weight == w.sum()  # sample weights are repetitions


def test_sample_weights_count_repetitions_in_scaled_moments():
    X, Y = toy(30)
    w = np.arange(30) % 3 + 1
    repeated = Moments.from_arrays(np.repeat(X, w, axis=0), np.repeat(Y, w, axis=0))
    new = Moments.from_arrays(*toy(20, seed=1))
    found = 0.5 * Moments.from_arrays(X, Y, w) + new
    expected = 0.5 * repeated + new
    assert_allclose(found.n_effective, expected.n_effective, rtol=1e-14)
    for model in (RLS(), HOLRR(2)):
        a, b = clone(model).fit_moments(found), clone(model).fit_moments(expected)
        assert_allclose(a.noise_, b.noise_, rtol=1e-10)


def test_numpy_scalars_multiply_moments_and_one_changes_nothing():
    m = Moments.from_arrays(*toy(20))
    assert (np.float64(0.5) * m).weight == (m * np.float32(0.5)).weight == 10.0
    assert (1 * m) is m
    assert m.weight_squares is None


@pytest.mark.parametrize("factor", [0.0, -1.0, np.nan, np.inf, 5e-324 / 40])
def test_factors_that_leave_no_weight_raise(factor):
    m = Moments.from_arrays(*toy(20))
    with pytest.raises(ValueError, match="multiplied only by positive, finite numbers"):
        factor * m


@pytest.mark.parametrize("factor", ["0.9", None, True, np.ones(3)])
def test_other_factors_raise(factor):
    m = Moments.from_arrays(*toy(20))
    with pytest.raises(TypeError):
        factor * m


@pytest.mark.parametrize("factor", [1e-140, 1e140])
def test_factors_may_be_very_large_and_very_small(factor):
    X, Y = toy(30)
    m = Moments.from_arrays(X, Y)
    found = RLS(factor).fit_moments(factor * m)
    expected = RLS(1.0).fit_moments(m)
    assert_allclose(found.moments_.n_effective, 30, rtol=1e-14)
    for a, b in zip(found.predict(X, True), expected.predict(X, True), strict=True):
        assert_allclose(a, b, rtol=1e-10)


@pytest.mark.parametrize("factor", [1e-170, 1e-160, 1e160])
def test_weights_whose_squares_have_no_number_raise(factor):
    m = factor * Moments.from_arrays(*toy(30))
    with pytest.raises(ValueError, match=r"squares of the weights .* between 1e-150 and 1e150"):
        RLS(factor).fit_moments(m)
    with pytest.raises(ValueError, match=r"squares of the weights"):
        RLSCV([1.0]).fit_fold_moments([m, m])


@pytest.mark.parametrize("decay", [1e-300, 1e-160])
def test_very_small_decays_are_accepted(decay):
    X, Y = toy(60)
    model = HOLRR(2).partial_fit(X[:30], Y[:30]).partial_fit(X[30:], Y[30:], decay=decay)
    expected = HOLRR(2).fit(X[30:], Y[30:])
    assert_allclose(model.predict(X), expected.predict(X), rtol=1e-10)
    assert_allclose(model.noise_, expected.noise_, rtol=1e-10)


@pytest.mark.parametrize("own", [None, [(0, 0)]])
@pytest.mark.parametrize("model", [RLS(2.0), LRR(2, 2.0), HOLRR(2, 2.0)], ids=str)
@pytest.mark.parametrize("solver", ["cholesky", "auto"])
def test_scaled_moments_are_the_same_problem_with_another_penalty(model, solver, own, use_solver):
    """``c X'X + alpha I`` is ``c (X'X + alpha / c I)``; and no number of samples is created."""
    X, Y = toy(60, 3, (3, 4))
    m = Moments.from_arrays(X, Y)
    use_solver(solver)
    found = clone(model).set_params(own_alpha=2.0, own=own).fit_moments(0.25 * m)
    expected = clone(model).set_params(alpha=8.0, own_alpha=8.0, own=own).fit_moments(m)
    assert_allclose(found.noise_, expected.noise_, rtol=1e-10)
    for a, b in zip(found.predict(X, True), expected.predict(X, True), strict=True):
        assert_allclose(a, b, rtol=1e-10)


def test_searches_of_scaled_moments_are_those_of_other_penalties():
    X, Y = toy(60)
    folds = [Moments.from_arrays(X[k::4], Y[k::4]) for k in range(4)]
    found = HOLRRCV([0.5, 5.0]).fit_fold_moments([0.5 * m for m in folds])
    expected = HOLRRCV([1.0, 10.0]).fit_fold_moments(folds)
    assert_allclose(found.cv_results_["mean_mse"], expected.cv_results_["mean_mse"], rtol=1e-9)
    assert_allclose(found.noise_, expected.noise_, rtol=1e-9)
    a, b = (np.asarray(m.predict_interval(X, 0.9)) for m in (found, expected))
    assert_allclose(a, b, rtol=1e-9)


def test_noise_of_decayed_moments_is_that_of_the_data():
    """The mean over many samples of the variance is near one; by the sum of weights it is not."""
    rng = np.random.default_rng(0)
    w, found, naive = decayed_weights(10, 6, 0.5), [], []
    for _ in range(40):
        X, Y = rng.normal(size=(60, 4)), rng.normal(size=(60, 50))
        model = RLS(1e-6)
        for x, y in batches(X, Y, 10):
            model.partial_fit(x, y, decay=0.5)
        found.append(np.mean(model.noise_**2))
        naive.append(np.mean(RLS(1e-6).fit(X, Y, w).noise_ ** 2))
    assert abs(np.mean(found) - 1) < 0.1
    assert np.mean(naive) > 1.2


def test_intervals_of_decayed_folds_cover():
    """Standard deviations of predictions from a few effective samples are wide enough."""
    rng = np.random.default_rng(1)
    inside = []
    for _ in range(20):
        W = rng.normal(size=(3, 40))
        X = rng.normal(size=(120, 3))
        Y = X @ W + rng.normal(size=(120, 40))
        model = RLS(1e-6)
        for x, y in batches(X[:60], Y[:60], 10):
            model.partial_fit(x, y, decay=0.6)
        mean, std = model.predict(X[60:], return_std=True)
        inside.append(np.mean(np.abs(Y[60:] - mean) < 1.645 * std))
    assert 0.87 < np.mean(inside) < 0.93


# ---------------------------------------------------------------- partial_fit


@pytest.mark.rows("batches")
def test_decayed_batches_are_a_weighted_fit(row):
    X, Y = toy(60)
    params = row.pinned(X)
    model = row.make(**params)
    for x, y in batches(X, Y, 6):
        model.partial_fit(x, y, decay=0.8)
    expected = row.make(**params).fit(X, Y, decayed_weights(6, 10, 0.8))
    tol = max(1e-10, row.tol if row.tol > 1e-9 else 0.0)
    assert_allclose(model.predict(X), expected.predict(X), rtol=tol, atol=tol)
    assert_allclose(model.objective_, expected.objective_, rtol=max(tol, 1e-9))


@pytest.mark.rows("batches")
def test_sample_weights_and_decay_multiply(row):
    X, Y = toy(60)
    params, w = row.pinned(X), np.linspace(0.5, 2.0, 60)
    model = row.make(**params)
    for (x, y), v in zip(batches(X, Y, 3), np.split(w, 3), strict=True):
        model.partial_fit(x, y, v, decay=0.5)
    expected = row.make(**params).fit(X, Y, w * decayed_weights(3, 20, 0.5))
    row.near(model.predict(X), expected.predict(X), 10)


def test_landmarks_that_span_the_inputs_have_the_noise_of_the_linear_model():
    X, Y = toy(60)
    linear, kernel = RLS(), KernelRLS(kernel="linear", landmarks=np.eye(5))
    for x, y in batches(X, Y, 4):
        linear.partial_fit(x, y, decay=0.5)
        kernel.partial_fit(x, y, decay=0.5)
    assert linear.moments_.n_effective == kernel.moments_.n_effective < 60
    assert_allclose(kernel.noise_, linear.noise_, rtol=1e-8)
    for a, b in zip(kernel.predict(X, True), linear.predict(X, True), strict=True):
        assert_allclose(a, b, rtol=1e-8)


@pytest.mark.parametrize("model", [RLS(), LRR(2), HOLRR(2)], ids=str)
def test_decayed_batches_may_all_lack_the_same_outputs(model):
    X, Y = toy(60)
    Y[:, :, 2] = Y[:, 0, 1] = np.nan
    model = clone(model).set_params(missing="ignore")
    expected = clone(model).fit(X, Y, decayed_weights(3, 20, 0.5))
    for x, y in batches(X, Y, 3):
        model.partial_fit(x, y, decay=0.5)
    assert_allclose(model.predict(X), expected.predict(X), atol=1e-8)
    assert np.array_equal(np.isnan(model.noise_), np.isnan(Y[0]))
    assert model.moments_.n_effective < 60


def lacking(Y):
    """Outputs of which a slice and an entry are missing in every sample."""
    Y = Y.copy()
    Y[:, :, 2] = Y[:, 0, 1] = np.nan
    return Y


@pytest.mark.parametrize("model", [RLS(), LRR(2), HOLRR(2)], ids=str)
def test_windows_of_moments_may_lack_outputs(model):
    X, Y = toy(60)
    Y, model = lacking(Y), clone(model).set_params(missing="ignore")
    window = RollingMoments(2)
    for x, y in batches(X, Y, 3):
        window.append(Moments.from_arrays(x, y, missing="ignore"))
    found = clone(model).fit_moments(window.total())
    expected = clone(model).fit(X[20:], Y[20:])
    for a, b in zip(found.predict(X, True), expected.predict(X, True), strict=True):
        assert_allclose(a, b, rtol=1e-8)
        assert np.isnan(a[0]).sum() == np.isnan(Y[0]).sum()
    again = clone(model).partial_fit(X[20:40], Y[20:40]).partial_fit(X[40:], Y[40:])
    assert_allclose(clone(model).fit_moments(again.moments_).coef_, again.coef_, rtol=1e-10)


@pytest.mark.parametrize("model", [RLSCV, HOLRRCV])
def test_folds_of_moments_may_lack_outputs(model):
    X, Y = toy(60)
    Y = lacking(Y)
    folds = [Moments.from_arrays(X[k::3], Y[k::3], missing="ignore") for k in range(3)]
    found = model([0.1, 10.0], missing="ignore").fit_fold_moments(folds)
    cv = PredefinedSplit(np.arange(60) % 3)
    expected = model([0.1, 10.0], missing="ignore", cv=cv).fit(X, Y)
    assert found.best_params_ == expected.best_params_
    assert_allclose(found.cv_results_["mean_mse"], expected.cv_results_["mean_mse"], rtol=1e-9)
    assert_allclose(found.predict(X), expected.predict(X), rtol=1e-9)
    assert np.isnan(found.predict_interval(X)[0][0]).sum() == np.isnan(Y[0]).sum()


def test_moments_that_lack_outputs_come_from_every_kind_of_data(tmp_path):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    X, Y = toy(60)
    Y = lacking(Y)
    expected = Moments.from_arrays(X, Y, missing="ignore")
    np.save(tmp_path / "Y.npy", Y)
    stored = np.load(tmp_path / "Y.npy", mmap_mode="r")
    for x, y in (
        (X, np.ma.masked_invalid(Y)),
        (X, stored),
        (scipy.sparse.csr_array(X), Y),
        (da.from_array(X, chunks=(25, 5)), da.from_array(Y, chunks=(25, 2, 4))),
    ):
        with memory_budget(2**13):
            found = Moments.from_arrays(x, y, missing="ignore")
        np.testing.assert_array_equal(found.missing_outputs, np.isnan(Y[0]))
        for name in FIELDS:
            value = getattr(expected, name)
            assert_allclose(getattr(found, name), value, rtol=1e-9, atol=1e-9 * np.abs(value).max())
    (2 * expected).save(tmp_path / "moments")
    loaded = Moments.load(tmp_path / "moments")
    np.testing.assert_array_equal(loaded.missing_outputs, np.isnan(Y[0]))
    assert Moments.from_arrays(*toy(20), missing="ignore").missing_outputs is None


def test_moments_that_lack_outputs_are_refused_where_these_would_count_as_zeros():
    X, Y = toy(60)
    m = Moments.from_arrays(X, lacking(Y), missing="ignore")
    whole = Moments.from_arrays(X, Y)
    with pytest.raises(ValueError, match=r"output \(0, 1\) is missing in one of them only"):
        m + whole
    message = r"moments lacks 4 of the outputs.*output \(0, 1\)\. Use missing='ignore'"
    with pytest.raises(ValueError, match=message):
        RLS().fit_moments(m)
    with pytest.raises(ValueError, match=r"TraceNormRegression needs complete outputs"):
        TraceNormRegression().fit_moments(m)
    with pytest.raises(ValueError, match=r"moments\[0\] lacks 4 outputs"):
        RLSCV().fit_fold_moments([m, m])
    with pytest.raises(ValueError, match=r"moments\[0\] lacks 4 outputs"):
        standard_errors(RLS(missing="ignore"), [m, m, m])
    with pytest.raises(ValueError, match="alpha_per_output=True needs complete outputs"):
        RLSCV([1.0], alpha_per_output=True, missing="ignore").fit_fold_moments([m, m])
    with pytest.raises(ValueError, match="missing must be 'raise' or 'ignore'; got 'fill'"):
        Moments.from_arrays(X, Y, missing="fill")
    Y[3, 1, 1] = np.nan
    with pytest.raises(ValueError, match=r"NaN at index \(3, 1, 1\).*missing=\"ignore\""):
        Moments.from_arrays(X, Y)
    message = r"observed in other samples at index \(3, 1, 1\).* must lack the same outputs"
    with pytest.raises(ValueError, match=message):
        Moments.from_arrays(X, Y, missing="ignore")
    with pytest.raises(ValueError, match=message):
        RLS(missing="ignore").partial_fit(X, Y)


@pytest.mark.parametrize("wrong", [Moments.from_arrays(*toy(20)), 3, None], ids=["a", "b", "c"])
def test_moments_of_folds_are_a_sequence(wrong):
    with pytest.raises(TypeError, match=r"a sequence with the Moments of each fold; got [MiN]"):
        RLSCV().fit_fold_moments(wrong)


def test_forgetting_halves_the_error_of_a_drifting_system():
    """Predictions of batches before they are seen, against those of a model of all batches."""
    rng = np.random.default_rng(0)
    W, errors = rng.normal(size=(5, 3, 4)), {1.0: 0.0, 0.8: 0.0}
    models = {decay: RLS() for decay in errors}
    for step in range(100):
        W = np.sqrt(1 - 0.1**2) * W + 0.1 * rng.normal(size=W.shape)
        X = rng.normal(size=(50, 5))
        Y = np.tensordot(X, W, 1)
        for decay, model in models.items():
            if step >= 15:
                errors[decay] += np.sum((model.predict(X) - Y) ** 2)
            model.partial_fit(X, Y + rng.normal(size=Y.shape), decay=decay)
    assert errors[0.8] < 0.25 * errors[1.0]  # of the squares: half of the error


# ---------------------------------------------------------------- files


def test_scaled_moments_are_saved(tmp_path):
    m = 0.9 * Moments.from_arrays(*toy(20)) + Moments.from_arrays(*toy(20, seed=1))
    m.save(tmp_path / "m")
    assert_same_state(Moments.load(tmp_path / "m"), m)
    model = RLS().fit_moments(m)
    save(model, tmp_path / "model")
    X = toy(20)[0]
    for a, b in zip(load(tmp_path / "model").predict(X, True), model.predict(X, True), strict=True):
        np.testing.assert_array_equal(a, b)


# ---------------------------------------------------------------- rolling windows


@pytest.mark.parametrize("n_parts", [1, 2, 7, 36])
def test_a_window_that_is_moved_100_steps_equals_refits(n_parts):
    """The data drift: parts that left the window are of another size than those in it."""
    rng = np.random.default_rng(0)
    window, data = RollingMoments(n_parts), []
    for step in range(100):
        scale = 10.0 ** (step % 7)
        X = rng.normal(size=(12, 4)) * scale + step
        Y = rng.normal(size=(12, 3, 2)) * scale + 100 * step
        data.append((X, Y))
        window.append(Moments.from_arrays(X, Y))
        kept = data[-n_parts:]
        X, Y = (np.concatenate(parts) for parts in zip(*kept, strict=True))
        found = HOLRR(2).fit_moments(window.total())
        expected = HOLRR(2).fit(X, Y)
        assert len(window) == len(kept)
        assert found.moments_.n_samples == len(X)
        predicted = expected.predict(X)
        assert_allclose(found.predict(X), predicted, atol=1e-9 * np.abs(predicted).max())
        assert_allclose(found.noise_, expected.noise_, rtol=1e-6)


def test_the_parts_of_a_window_are_the_newest_in_order():
    parts = [Moments.from_arrays(*toy(10, seed=k)) for k in range(8)]
    window = RollingMoments(3)
    for k, part in enumerate(parts):
        window.append(part)
        assert all(a is b for a, b in zip(window, parts[max(0, k - 2) : k + 1], strict=True))
    assert repr(window) == "RollingMoments(n_parts=3) with 3 parts"
    assert RLSCV([1.0]).fit_fold_moments(list(window)).alpha_ == 1.0


@pytest.mark.parametrize("n_appended", [1, 2, 3, 4, 5])
def test_moments_of_other_shapes_leave_the_window_as_it_was(n_appended):
    window = RollingMoments(3)
    for k in range(n_appended):
        window.append(Moments.from_arrays(*toy(10, seed=k)))
    before = window.total()
    with pytest.raises(ValueError, match="different shapes"):
        window.append(Moments.from_arrays(*toy(10, 6)))
    with pytest.raises(TypeError, match="moments must be a Moments object; got tuple"):
        window.append(toy(10))
    assert_same_state(window.total(), before)
    assert len(window) == min(3, n_appended)


@pytest.mark.parametrize("n_parts", [0, -1, 2.0, True, None])
def test_n_parts_must_be_a_positive_int(n_parts):
    with pytest.raises(ValueError, match=r"n_parts must be a positive int; got "):
        RollingMoments(n_parts)


def test_moments_are_printed_without_their_arrays():
    X, Y = toy(20, shape=(3, 4))
    shown = "Moments of 20 samples with weight 10, 5 features and outputs of shape (3, 4)"
    assert repr(0.5 * Moments.from_arrays(X, Y)) == shown
    Y[:, 0, 1] = np.nan
    assert repr(0.5 * Moments.from_arrays(X, Y, missing="ignore")) == f"{shown}, 1 missing"


def test_an_empty_window_has_no_total():
    with pytest.raises(ValueError, match="the window is empty"):
        RollingMoments(2).total()
