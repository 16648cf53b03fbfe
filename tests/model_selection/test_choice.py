"""The choice among ridge regression, ranks, and penalties of outputs, by cross-fitted errors."""

from __future__ import annotations

import numpy as np
import pytest
from naive_choice import WAYS, NaiveChoice
from numpy.testing import assert_allclose
from sklearn.model_selection import KFold, RepeatedKFold, ShuffleSplit, TimeSeriesSplit

from holrr import HOLRRCV, LRRCV, KernelHOLRRCV, KernelLRRCV

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty")

ALPHAS = [0.1, 1.0, 10.0, 100.0]
GAMMAS = {"kernel": "rbf", "gammas": [0.02, 0.2], "alphas": [0.01, 0.1, 1.0]}


def data(kind, seed=0, n=40, d0=4, shape=(3, 2)):
    """Outputs of low rank, of full rank, with different noise, or without any signal."""
    rng = np.random.default_rng(seed)
    X, noise = rng.normal(size=(n, d0)), rng.normal(size=(n, *shape))
    full = rng.normal(size=(d0, *shape))
    one = np.multiply.outer(rng.normal(size=d0), rng.normal(size=shape))
    coef = {"low rank": one + 0.1 * full, "noise": 0 * full}.get(kind, full)
    size = np.array([0.2, 12.0, 12.0]).reshape(-1, *[1] * (len(shape) - 1))
    return X, np.tensordot(X, coef, 1) + (size if kind == "uneven" else 1.5) * noise


def assert_equal_naive(make, kind, splits, w=None, seed=0, shape=(3, 2), d0=4, n=40, **given):
    X, Y = data(kind, seed, n, d0, shape)
    given = {"alphas": ALPHAS, **given}
    model = make(cv=splits, keep_held_out=True, **given).fit(X, Y, w)
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
    assert_allclose(model.held_out_, expected, **close)
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
    n_ways = 2 if name in ("two folds", "one split") else 3  # penalties of outputs need two folds
    assert model.cv_results_["ways"] == list(WAYS[:n_ways])


@pytest.mark.parametrize("kind", ["low rank", "full rank", "uneven"])
@pytest.mark.parametrize("name", ["3 folds", "5 folds", "overlapping", "two folds"])
def test_the_choice_among_multilinear_ranks_equals_one_by_separate_fits(name, kind):
    splits = list(SPLITS[name].split(np.zeros((40, 1))))
    assert_equal_naive(HOLRRCV, kind, splits)


@pytest.mark.parametrize(
    "given",
    [
        {"subspaces": "response"},
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
        "noise": "ridge regression",
        "low rank": "ranks",
        "uneven": "ranks and penalties of outputs",
    }
    for kind, way in expected.items():
        chosen = [HOLRRCV(ALPHAS).fit(*data(kind, seed, n=60)).choice_ for seed in range(5)]
        assert chosen.count(way) >= 3
