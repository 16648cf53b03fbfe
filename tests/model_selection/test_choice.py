"""The choice among ridge regression, ranks, and penalties of outputs, by cross-fitted errors."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import pytest
from naive_choice import WAYS, NaiveChoice
from numpy.testing import assert_allclose
from sklearn.model_selection import (
    KFold,
    LeaveOneOut,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
)

from holrr import HOLRRCV, LRRCV, RLSCV, KernelHOLRRCV, KernelLRRCV
from holrr.model_selection import choice
from holrr.model_selection.stack import Part

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty")

ALPHAS = [0.1, 1.0, 10.0, 100.0]
GAMMAS = {"kernel": "rbf", "gammas": [0.02, 0.2], "alphas": [0.01, 0.1, 1.0]}


def data(kind, seed=0, n=40, d0=4, shape=(3, 2)):
    """Outputs of low rank, full rank, different noise, different signal, or without a signal."""
    rng = np.random.default_rng(seed)
    X, noise = rng.normal(size=(n, d0)), rng.normal(size=(n, *shape))
    full = rng.normal(size=(d0, *shape))
    one = np.multiply.outer(rng.normal(size=d0), rng.normal(size=shape))
    strength = np.exp(1.5 * rng.normal(size=shape))
    coef = {"low rank": one + 0.1 * full, "noise": 0 * full, "varied": full * strength}
    coef = coef.get(kind, full)
    size = np.full(shape[0], 12.0).reshape(-1, *[1] * (len(shape) - 1))
    size[0] = 0.2
    return X, np.tensordot(X, coef, 1) + (size if kind == "uneven" else 1.5) * noise


def assert_equal_naive(make, kind, splits, w=None, seed=0, shape=(3, 2), d0=4, n=40, **given):
    X, Y = data(kind, seed, n, d0, shape)
    given = {"alphas": ALPHAS, **given}
    model = make(cv=splits, **given).fit(X, Y, w)
    naive = NaiveChoice(model, X, Y, splits, w, mixes_ridge="max_rank" not in given)
    assert model.cv_results_["ways"] == list(naive.ways_mse)
    assert_allclose(model.cv_results_["ways_mse"], list(naive.ways_mse.values()), rtol=1e-7)
    assert model.choice_ == naive.choice
    assert_allclose(model.held_out_mse_, naive.error, rtol=1e-7)
    assert_allclose(model.ridge_mse_, naive.ridge_error, rtol=1e-9)
    close = {"rtol": 1e-6, "atol": 1e-6 * np.abs(Y).max()}
    assert_allclose(model.predict(X), naive.predict(X), **close)
    expected = naive.held_out()
    expected[np.isin(np.arange(n), [] if w is None else np.flatnonzero(w == 0))] = np.nan
    assert_allclose(model.held_out_predictions(X, Y, w), expected, **close)
    # The attributes list the parts of the mixture.
    share, low = np.zeros(2), {}
    for alpha, rank, weight in zip(
        model.stack_alphas_, model.stack_ranks_, model.stack_weights_, strict=True
    ):
        if rank is None:
            share[np.ndim(alpha) > 0] += weight
        else:
            low[rank] = weight
    for part, weight in naive.model:
        if isinstance(part, str):
            assert_allclose(1 - model.stack_weights_.sum(), weight, atol=1e-5)
        elif part[2] is None:
            assert_allclose(share[np.ndim(part[1]) > 0], weight, atol=1e-5)
        else:
            assert_allclose(low.get(part[2], 0.0), weight, atol=1e-5)
    return model


# ---------------------------------------------------------------- separate fits

SPLITS = {
    "3 folds": KFold(3),
    "5 folds": KFold(5),
    "7 folds": KFold(7),  # two folds of some groups are left out together
    "repeated": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    "overlapping": ShuffleSplit(4, test_size=0.3, random_state=0),
    "many overlapping": ShuffleSplit(12, test_size=0.1, random_state=0),
    "time series": TimeSeriesSplit(4),
    "two folds": KFold(2),
    "one split": ShuffleSplit(1, test_size=0.3, random_state=0),
}


@pytest.mark.parametrize("kind", ["low rank", "uneven", "noise"])
@pytest.mark.parametrize("name", SPLITS)
def test_the_choice_equals_one_by_separate_fits(name, kind):
    splits = list(SPLITS[name].split(np.zeros((40, 1))))
    model = assert_equal_naive(LRRCV, kind, splits)
    assert model.cv_results_["ways"] == list(WAYS)


@pytest.mark.parametrize("kind", ["low rank", "full rank", "uneven"])
@pytest.mark.parametrize("name", ["3 folds", "5 folds", "overlapping", "two folds"])
def test_the_choice_among_multilinear_ranks_equals_one_by_separate_fits(name, kind):
    splits = list(SPLITS[name].split(np.zeros((40, 1))))
    assert_equal_naive(HOLRRCV, kind, splits)


@pytest.mark.parametrize(
    "given",
    [
        {"fit_intercept": False},
        {"n": 12, "d0": 20},
        {"shape": (4,)},
        {"shape": (2, 2, 2), "alphas": [1.0, 10.0]},
        {"max_rank": 2},
        {"max_rank": (1, 3, 2)},
        {"alphas": [3.0]},
    ],
    ids=str,
)
def test_the_choice_of_other_searches_equals_one_by_separate_fits(given):
    splits = list(KFold(3).split(np.zeros((given.get("n", 40), 1))))
    for kind in ("low rank", "uneven"):
        assert_equal_naive(HOLRRCV, kind, splits, **given)


@pytest.mark.parametrize("make", [LRRCV, HOLRRCV])
def test_the_choice_with_weights_equals_one_by_separate_fits(make):
    w = np.random.default_rng(1).uniform(0.2, 2, 40)
    w[[3, 11]] = 0.0
    for kind in ("low rank", "uneven"):
        assert_equal_naive(make, kind, list(KFold(3).split(np.zeros((40, 1)))), w)


@pytest.mark.parametrize("make", [KernelLRRCV, KernelHOLRRCV])
@pytest.mark.parametrize("more", [{}, {"center_kernel": False}], ids=str)
def test_the_choice_among_kernels_equals_one_by_separate_fits(make, more):
    splits = list(KFold(3).split(np.zeros((24, 1))))
    for seed in range(2):
        assert_equal_naive(make, "uneven", splits, n=24, seed=seed, **GAMMAS, **more)


def test_each_way_is_chosen_where_it_is_best():
    expected = {
        "full rank": "ridge regression",
        "low rank": "ranks",
        "varied": "ranks and penalties of outputs",
    }
    for kind, way in expected.items():
        each = [data(kind, seed, n=60, shape=(6, 5)) for seed in range(8)]
        chosen = [HOLRRCV().fit(X, Y).choice_ for X, Y in each]
        assert chosen.count(way) >= 6


# ---------------------------------------------------------------- limits on ranks


@pytest.mark.parametrize("make", [LRRCV, HOLRRCV, KernelLRRCV, KernelHOLRRCV])
def test_max_rank_does_not_exclude_ridge_regression(make):
    kernel = {"kernel": "linear"} if make in (KernelLRRCV, KernelHOLRRCV) else {}
    X, Y = data("full rank", n=80, d0=6, shape=(4, 3))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="max_rank")
        model = make(ALPHAS, max_rank=1, cv=4, **kernel).fit(X, Y)
    ridge = RLSCV(ALPHAS, cv=4).fit(X, Y)
    assert model.choice_ == "ridge regression"
    assert model.stack_ranks_ == [None]
    assert_allclose(model.predict(X), ridge.predict(X), rtol=1e-7, atol=1e-7)
    for name in ("held_out_mse_", "ridge_mse_"):
        assert_allclose(getattr(model, name), ridge.held_out_mse_, rtol=1e-7)
    assert_allclose(model.noise_, ridge.noise_, rtol=1e-3)
    ways = dict(zip(model.cv_results_["ways"], model.cv_results_["ways_mse"], strict=True))
    assert ways["ranks"] > 1.2 * ways["ridge regression"]


@pytest.mark.parametrize("make", [LRRCV, HOLRRCV])
@pytest.mark.parametrize("max_rank", [None, 1, 2])
def test_ridge_regression_is_hardly_ever_better_where_there_is_no_signal(make, max_rank):
    ratios = []
    for seed in range(20):
        X, Y = data("noise", seed, n=350, d0=6, shape=(4, 5))
        models = [one.fit(X[:50], Y[:50]) for one in (make(max_rank=max_rank), RLSCV())]
        errors = [np.mean(np.square(Y[50:] - model.predict(X[50:]))) for model in models]
        ratios.append(errors[0] / errors[1])
    assert np.mean(ratios) < 1.004
    assert np.quantile(ratios, 0.95) < 1.02


# ---------------------------------------------------------------- special data


@pytest.mark.parametrize("make", [LRRCV, HOLRRCV, KernelHOLRRCV])
@pytest.mark.parametrize("cv", [2, 3, 5, LeaveOneOut()], ids=str)
def test_errors_of_special_data_are_finite(make, cv):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(12, 4)), rng.normal(size=(12, 3, 2))
    w = np.r_[np.zeros(2), np.ones(10)]
    some = np.where(np.arange(6).reshape(3, 2) < 2, 1.5, Y)
    problems = {
        "noise": (X, Y, None),
        "weights of zero": (X, Y, w if isinstance(cv, int) else None),
        "more inputs than samples": (rng.normal(size=(12, 40)), Y, None),
        "constant outputs": (X, some, None),
        "equal samples": (np.repeat(X[:6], 2, axis=0), np.repeat(Y[:6], 2, axis=0), None),
        "constant inputs": (np.ones((12, 4)), Y, None),
    }
    for name, (A, B, v) in problems.items():
        model = make(ALPHAS, cv=cv).fit(A, B, v)
        errors = [model.held_out_mse_, model.ridge_mse_, *model.cv_results_["ways_mse"]]
        assert np.isfinite(errors).all(), name
        assert min(errors) > 0, name
        assert np.isfinite(model.predict(A)).all(), name
        # The choice has about the least error of the ways, and hardly more than the mean.
        assert model.held_out_mse_ < 1.25 * max(model.ridge_mse_, model.null_mse_), name
    alone = make(ALPHAS, cv=cv).fit(X, np.full(Y.shape, 2.5))
    assert alone.held_out_mse_ == pytest.approx(0, abs=1e-20)
    assert_allclose(alone.predict(X), 2.5, rtol=1e-12)


@pytest.mark.parametrize("make", [LRRCV, HOLRRCV])
@pytest.mark.parametrize("name", ["3 folds", "repeated", "overlapping", "two folds"])
def test_weights_are_repetitions(make, name):
    X, Y = data("low rank")
    w = np.tile([1, 2, 1, 0], 10)
    splits = list(SPLITS[name].split(X))
    index = np.repeat(np.arange(40), w)
    repeated = [[np.flatnonzero(np.isin(index, part)) for part in pair] for pair in splits]
    one = make(ALPHAS, cv=splits).fit(X, Y, w.astype(float))
    other = make(ALPHAS, cv=repeated).fit(X[index], Y[index])
    assert one.choice_ == other.choice_
    assert_allclose(one.cv_results_["ways_mse"], other.cv_results_["ways_mse"], rtol=1e-8)
    for attribute in ("held_out_mse_", "ridge_mse_"):
        assert_allclose(getattr(one, attribute), getattr(other, attribute), rtol=1e-8)
    assert_allclose(one.predict(X), other.predict(X), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("make", [LRRCV, HOLRRCV])
def test_a_split_that_is_repeated_does_not_judge_itself(make):
    """Every fold is there twice: both copies are left out together."""
    for seed in range(4):
        X, Y = data("low rank", seed)
        splits = list(KFold(3).split(X))
        for selection in ("auto", "min"):
            given = {"alphas": ALPHAS, "selection": selection}
            once, twice = (make(cv=cv, **given).fit(X, Y) for cv in (splits, [*splits, *splits]))
            assert_allclose(twice.ridge_mse_, once.ridge_mse_, rtol=1e-9)
            rtol = 1e-9 if selection == "min" else 0.01  # weights are means over other pairs
            assert_allclose(twice.held_out_mse_, once.held_out_mse_, rtol=rtol)


# ---------------------------------------------------------------- many outputs


def test_penalties_of_many_outputs_are_not_chosen_from_noise():
    """A thousand outputs of noise: the errors of each one alone would prefer some penalty."""
    ratios, reported = [], []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, X_new = rng.normal(size=(20, 10)), rng.normal(size=(400, 10))
        Y = rng.normal(size=(20, 10, 10, 10))
        model, ridge = HOLRRCV().fit(X, Y), RLSCV().fit(X, Y)
        errors = [1 + np.mean(one.predict(X_new) ** 2) for one in (model, ridge)]
        ratios.append(errors[0] / errors[1])
        reported.append(model.held_out_mse_ / np.mean(Y**2) / errors[0])
    assert np.mean(ratios) < 1.002
    assert np.mean(reported) > 0.99  # the folds have fewer samples


def test_outputs_of_different_strength_have_their_own_shrinkage():
    ratios = []
    for seed in range(5):
        X, Y = data("varied", seed, n=30, d0=10, shape=(8, 6))
        noise = 1.5 * np.random.default_rng(1000 + seed).normal(size=Y.shape)
        model, ridge = HOLRRCV().fit(X, Y + noise), RLSCV().fit(X, Y + noise)
        assert model.choice_ == "ranks and penalties of outputs"
        ratios.append(model.held_out_mse_ / ridge.held_out_mse_)
        assert any(np.ndim(alpha) for alpha in model.stack_alphas_)
    assert np.mean(ratios) < 0.95


# ---------------------------------------------------------------- more ways


@pytest.mark.parametrize("make", [LRRCV, HOLRRCV])
def test_a_way_that_is_added_is_compared(make, monkeypatch):
    """The best single rank: its cross-fitted error is that of a search for it."""

    def best_rank(best, mixes_ridge):
        return best.candidate, (Part(best.place, best.ranks[0]),)

    monkeypatch.setitem(choice.WAYS, "best rank", best_rank)
    n_chosen = 0
    for kind, seed in product(["low rank", "full rank"], range(4)):
        X, Y = data(kind, seed)
        model = make(ALPHAS, cv=4, max_rank=2).fit(X, Y)
        best = make(ALPHAS, cv=4, max_rank=2, selection="min").fit(X, Y)
        assert model.cv_results_["ways"][-1] == "best rank"
        assert_allclose(model.cv_results_["ways_mse"][-1], best.held_out_mse_, rtol=1e-9)
        if model.choice_ == "best rank":
            n_chosen += 1
            assert model.stack_weights_.tolist() == [1.0]
            assert_allclose(model.predict(X), best.predict(X), rtol=1e-9)
    assert 0 < n_chosen < 8
