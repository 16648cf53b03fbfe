"""Samples that depend on each other: the warning, contiguous folds with a gap, and intervals."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    TimeSeriesSplit,
    cross_val_score,
)

import holrr
from holrr import HOLRRCV, RLSCV, KernelRLSCV, Moments
from holrr.model_selection import BlockKFold

ADVICE = "Held-out residuals of"


def series(n, size, correlation, seed):
    """Autoregressive rows of variance one."""
    E = np.random.default_rng(seed).normal(size=(n, size))
    for i in range(1, n):
        E[i] = correlation * E[i - 1] + math.sqrt(1 - correlation**2) * E[i]
    return E


def time_series(n=150, correlation=0.9, shape=(3, 4), seed=0):
    """Autoregressive inputs and noise, with a linear signal."""
    X, D = series(n, 4, 0.9, 2 * seed), math.prod(shape)
    B = np.random.default_rng(99).normal(size=(4, D)) / 2
    return X, (X @ B + series(n, D, correlation, 2 * seed + 1)).reshape(n, *shape)


def advice(model, X, Y, **more):
    """Fit a model; return its warnings on samples that depend on each other."""
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        model.fit(X, Y, **more)
    return [str(r.message) for r in records if str(r.message).startswith(ADVICE)]


# ---------------------------------------------------------------- the warning

SHUFFLED = KFold(5, shuffle=True, random_state=0)


@pytest.mark.parametrize("make", [HOLRRCV, RLSCV, lambda cv: KernelRLSCV(kernel="linear", cv=cv)])
@pytest.mark.parametrize("cv", [5, SHUFFLED, TimeSeriesSplit(5)], ids=["5", "shuffled", "past"])
def test_a_time_series_gives_one_warning_that_names_splitters(make, cv):
    (message,) = advice(make(cv=cv), *time_series())
    assert "BlockKFold(5, gap=" in message
    assert "TimeSeriesSplit(5, gap=" in message
    assert "GroupKFold(5)" in message


@pytest.mark.parametrize("splitter", [BlockKFold, TimeSeriesSplit])
@pytest.mark.parametrize("correlation", [0.8, 0.9, 0.999])
def test_folds_with_the_gap_of_the_warning_give_none(splitter, correlation):
    X, Y = time_series(correlation=correlation)
    (message,) = advice(HOLRRCV(), X, Y)
    gap = int(message.partition("BlockKFold(5, gap=")[2].partition(")")[0])
    assert 1 < gap <= 15
    assert not advice(HOLRRCV(cv=splitter(5, gap=gap)), X, Y)


def test_contiguous_folds_of_many_samples_give_no_warning():
    """Few of their samples have training samples nearby."""
    X, Y = time_series(n=3000, correlation=0.8, shape=(2,))
    assert not advice(RLSCV([1.0]), X, Y)
    assert advice(RLSCV([1.0], cv=SHUFFLED), X, Y)


@pytest.mark.parametrize(("n", "d", "shape"), [(24, 4, (20, 9)), (60, 100, (3,)), (50, 5, ())])
@pytest.mark.parametrize("cv", [5, SHUFFLED], ids=["5", "shuffled"])
def test_independent_samples_seldom_give_a_warning(n, d, shape, cv):
    found = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, B = rng.normal(size=(n, d)), rng.normal(size=(d, math.prod(shape))) / math.sqrt(d)
        Y = (X @ B + rng.normal(size=(n, B.shape[1]))).reshape(n, *shape)
        found += bool(advice(RLSCV(cv=cv), X, Y))
    assert found <= 1


def grouped(seed=0):
    """Samples in random order, with noise that the samples of a group share."""
    rng = np.random.default_rng(seed)
    groups, X = rng.integers(0, 30, size=150), rng.normal(size=(150, 4))
    noise = rng.normal(size=(30, 6))[groups] + 0.3 * rng.normal(size=(150, 6))
    return X, (X @ rng.normal(size=(4, 6)) + noise).reshape(150, 3, 2), groups


def test_a_model_without_intercept_does_not_make_samples_neighbours():
    """The common part of its residuals says nothing about the order of the samples."""
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(60, 3)), rng.normal(size=(60, 2, 2))
    for model in (RLSCV(fit_intercept=False), KernelRLSCV(fit_intercept=False)):
        assert advice(model, X, 5 + noise) == []


def test_samples_of_groups_in_both_sets_give_a_warning():
    X, Y, groups = grouped()
    names = np.array([f"site {g}" for g in groups], dtype=object)
    (message,) = advice(HOLRRCV(), X, Y, groups=names)
    assert "Use cv=GroupKFold(5)." in message
    assert not advice(HOLRRCV(cv=GroupKFold(5)), X, Y, groups=names)
    assert not advice(HOLRRCV(), X, Y)  # the order of the samples has no groups


def test_training_samples_on_either_side_are_neighbours():
    """Of six successive samples, one is held out and only the one before or after it is known."""
    X, Y = time_series(n=240)
    i = np.arange(240)
    first, second, third = (np.flatnonzero(i % 6 == k) for k in (0, 1, 3))
    (message,) = advice(RLSCV([1.0], cv=[(first, second), (second, first)]), X, Y)
    assert "100% of the test samples have training samples at a distance of at most 1." in message
    (message,) = advice(RLSCV([1.0], cv=[(first, second), (third, first)]), X, Y)
    assert "50% of the test samples" in message


def test_series_with_missing_outputs_and_sparse_inputs_give_a_warning():
    sparse = pytest.importorskip("scipy.sparse")
    X, Y = time_series()
    assert advice(RLSCV(cv=SHUFFLED), sparse.csr_array(X), Y)
    holes = np.where(np.random.default_rng(0).random(Y.shape) < 0.3, np.nan, Y)
    holes[7] = np.nan
    model = RLSCV([0.1, 1.0], missing="ignore")
    assert len(advice(model, X, holes)) == 1
    groups = np.arange(150) // 9
    (message,) = advice(model.set_params(cv=SHUFFLED), X, holes, groups=groups)
    assert "GroupKFold" in message


def test_searches_of_moments_give_no_warning():
    X, Y = time_series()
    parts = [Moments.from_arrays(X[k::3], Y[k::3]) for k in range(3)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RLSCV([1.0, 10.0, 0.1]).fit_fold_moments(parts)


# ---------------------------------------------------------------- intervals


@pytest.mark.parametrize("cv", [5, BlockKFold(5, gap=10)], ids=["default", "gap"])
@pytest.mark.filterwarnings("ignore:Held-out residuals of")
def test_intervals_of_time_series_have_their_coverage(cv):
    found = []
    for seed in range(12):
        model = HOLRRCV(cv=cv).fit(*time_series(n=120, seed=seed))
        X, Y = time_series(n=500, seed=seed + 100)
        lower, upper = model.predict_interval(X, 0.9)
        found.append(np.mean((lower <= Y) & (Y <= upper)))
    assert 0.85 <= np.mean(found) <= 0.95


@pytest.mark.filterwarnings("ignore:Held-out residuals of")
@pytest.mark.parametrize("kind", ["entry", "pooled", "simultaneous"])
def test_dependent_samples_widen_intervals(kind, tmp_path):
    """The order of the samples does not change the scores, only their effective number."""
    X, Y = time_series()
    fold = np.arange(150) // 30
    order = np.random.default_rng(0).permutation(150)
    splits = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(5)]
    mixed = [tuple(np.flatnonzero(np.isin(order, side)) for side in pair) for pair in splits]
    model = RLSCV([1.0], cv=splits).fit(X, Y)
    shuffled = RLSCV([1.0], cv=mixed).fit(X[order], Y[order])
    width, other = (np.subtract(*m.predict_interval(X, 0.8, kind)[::-1]) for m in (model, shuffled))
    assert_allclose(model.noise_, shuffled.noise_)
    assert np.all(width > 1.01 * other)
    # The largest score is the limit; the number of samples decides which coverage is possible.
    assert np.all(np.isfinite(model.predict_interval(X, 0.99, kind)[0]))
    if kind != "pooled":
        with pytest.raises(ValueError, match="needs at least 199 held-out samples"):
            model.predict_interval(X, 0.995, kind)
    model.save(tmp_path / "model")
    again = holrr.load(tmp_path / "model").predict_interval(X, 0.8, kind)
    assert_array_equal(again, model.predict_interval(X, 0.8, kind))


# ---------------------------------------------------------------- BlockKFold


@pytest.mark.parametrize(("n", "n_splits", "gap"), [(20, 4, 0), (23, 5, 3), (7, 7, 2), (11, 2, 4)])
def test_training_samples_are_all_outside_the_gap(n, n_splits, gap):
    splitter = BlockKFold(n_splits, gap=gap)
    found = list(splitter.split(np.zeros((n, 2))))
    assert len(found) == splitter.get_n_splits() == n_splits
    expected = KFold(n_splits).split(np.zeros(n))
    for (train, test), (rest, block) in zip(found, expected, strict=True):
        assert_array_equal(test, block)
        far = [i for i in rest if np.abs(block - i).min() > gap]
        assert_array_equal(train, far)
        assert train.size


def test_folds_with_a_gap_work_in_tools_and_searches(tmp_path):
    X, Y = time_series(n=60)
    cv = BlockKFold(3, gap=4)
    tool = GridSearchCV(Ridge(), {"alpha": [0.1, 10.0]}, cv=cv).fit(X, Y[:, 0])
    assert tool.n_splits_ == 3
    assert cross_val_score(HOLRRCV([1.0], cv=cv), X, Y, cv=cv).shape == (3,)
    model = HOLRRCV([0.1, 1.0, 10.0], cv=cv).fit(X, Y)
    assert_allclose(model.alpha_, HOLRRCV([0.1, 1.0, 10.0], cv=list(cv.split(X))).fit(X, Y).alpha_)
    model.save(tmp_path / "model")
    assert repr(holrr.load(tmp_path / "model").cv) == repr(cv) == "BlockKFold(gap=4, n_splits=3)"


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_splits": 1}, "n_splits must be an integer of at least 2; got 1"),
        ({"n_splits": 2.5}, "n_splits must be an integer of at least 2; got 2.5"),
        ({"gap": -1}, "gap must be an integer of at least 0; got -1"),
        ({"gap": True}, "gap must be an integer of at least 0; got True"),
    ],
)
def test_bad_parameters_raise(params, message):
    with pytest.raises(ValueError, match=message):
        BlockKFold(**params)


def test_too_many_folds_and_too_large_gaps_raise():
    X, Y = np.zeros((10, 2)), np.zeros((10, 3))
    with pytest.raises(ValueError, match="n_splits=12 is larger than the number of samples, 10"):
        next(BlockKFold(12).split(X))
    with pytest.raises(ValueError, match="n_splits=3, the gap can be at most 3"):
        RLSCV(cv=BlockKFold(3, gap=6)).fit(X, Y)
    assert len(list(BlockKFold(3, gap=3).split(X))) == 3
