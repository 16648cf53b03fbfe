"""A search that skips penalties and kernels makes the choice of one that tries them all."""

import numpy as np
import pytest
from naive_choice import crossed
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import KFold

from holrr import HOLRRCV, LRRCV, RLSCV, KernelHOLRRCV, KernelRLSCV
from holrr.datasets import make_tensor_regression
from holrr.plotting import RankSurfaceDisplay

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty")

# More than 30 penalties, of which surfaces are computed for a few where there are many ranks.
ALPHAS = np.logspace(-3, 3, 31)
KERNELS = {"gammas": [0.003, 0.01, 0.03, 0.1], "alphas": np.logspace(-4, 2, 9)}
PROBLEMS = {
    "tall": (HOLRRCV, (70, 40, (30, 9)), {"alphas": ALPHAS}),
    "wide": (HOLRRCV, (44, 60, (30, 9)), {"alphas": ALPHAS}),
    "three modes": (HOLRRCV, (60, 36, (4, 22, 3)), {"alphas": ALPHAS}),
    "few outputs": (HOLRRCV, (160, 90, (12, 6)), {"alphas": ALPHAS}),
    "in no order": (HOLRRCV, (70, 40, (30, 9)), {"alphas": np.r_[ALPHAS[::2], ALPHAS[1::2]]}),
    "no intercept": (HOLRRCV, (50, 40, (30, 9)), {"alphas": ALPHAS, "fit_intercept": False}),
    "capped": (HOLRRCV, (70, 40, (30, 9)), {"alphas": ALPHAS, "max_rank": (None, 30, 4)}),
    "matrices": (LRRCV, (180, 95, (12, 9)), {"alphas": ALPHAS}),
    "kernels": (KernelHOLRRCV, (24, 4, (58, 9)), KERNELS),
}


def make(n, d0, shape, seed=0, snr=1.0):
    rank = tuple(min(3, d) for d in (d0, *shape))
    return make_tensor_regression(
        n, n_features=d0, output_shape=shape, rank=rank, snr=snr, random_state=seed
    )


def computed(model):
    """Which pairs of candidate and penalty have a surface."""
    mean = model.cv_results_["mean_mse"]
    n = mean.ndim - model.cv_results_["n_parameters"].ndim
    return np.isfinite(mean).any(axis=tuple(range(n, mean.ndim)))


def one_by_one(make_model, parameters, X, Y, w=None):
    """Surfaces of searches over one penalty and one kernel each."""
    found = []
    for gamma in parameters.get("gammas", [None]):
        kernel = {} if gamma is None else {"gammas": [gamma]}
        for alpha in parameters["alphas"]:
            one = {**parameters, "alphas": [alpha], **kernel, "selection": "min", "cv": 3}
            found.append(make_model(**one).fit(X, Y, w).cv_results_)
    return found


@pytest.mark.parametrize(
    ("name", "weighted"),
    [*((name, False) for name in PROBLEMS), ("tall", True), ("kernels", True)],
)
def test_the_choice_is_the_best_of_searches_over_single_penalties(name, weighted):
    make_model, shape, parameters = PROBLEMS[name]
    X, Y = make(*shape)
    w = np.random.default_rng(0).uniform(0.2, 2, len(X)) if weighted else None
    search = make_model(**parameters, cv=3, selection="min").fit(X, Y, w)
    singles = one_by_one(make_model, parameters, X, Y, w)
    places = search.cv_results_["n_parameters"].ndim
    mean = search.cv_results_["mean_mse"]
    mean = mean.reshape(-1, *mean.shape[mean.ndim - places :])
    assert not computed(search).all()
    for found, single in zip(mean, singles, strict=True):
        if np.isfinite(found).any():
            expected = single["mean_mse"].reshape(-1, *found.shape)[0]
            assert_allclose(found, expected, rtol=1e-8)
    least = [np.nanmin(single["mean_mse"]) for single in singles]
    assert -search.best_score_ == pytest.approx(min(least), rel=1e-10)
    full = KernelRLSCV if "gammas" in parameters else RLSCV
    given = {key: value for key, value in parameters.items() if key != "max_rank"}
    ridge = full(**given, cv=3).fit(X, Y, w).cv_results_["fold_mse"]
    expected = crossed(ridge, list(KFold(3).split(X)))
    assert search.ridge_mse_ == pytest.approx(expected, rel=1e-9)
    # Estimates of the least errors, which are near where they are near the least of all.
    screened, least = search.cv_results_["screened_mse"].ravel(), np.array(least)
    near = least < 1.005 * least.min()
    assert_allclose(screened[near], least[near], rtol=0.02)


def both(model, X, Y, all_surfaces):
    """Fit a search that computes all surfaces, and one that skips some."""
    with all_surfaces():
        full = clone(model).fit(X, Y)
    return full, clone(model).fit(X, Y)


def has_choices_of_folds(pruned, full):
    """Whether all penalties that folds choose without one of them are computed."""
    if pruned.selection == "1se":  # all folds have the same model
        return True
    errors, known = full.cv_results_["fold_mse"], computed(pruned)
    for fold in range(len(errors)):
        mean = np.delete(errors, fold, axis=0).mean(axis=0)
        best = np.unravel_index(mean.argmin(), mean.shape)
        if not known[best[: known.ndim]]:
            return False
    return True


def assert_same_choice(pruned, full):
    assert computed(full).all()
    assert not computed(pruned).all()
    assert pruned.best_index_ == full.best_index_
    assert pruned.best_params_ == full.best_params_
    assert_array_equal(pruned.alphas_, full.alphas_)
    for name in ("best_score_", "null_mse_", "ridge_mse_"):
        assert_allclose(getattr(pruned, name), getattr(full, name), rtol=1e-9)
    # Folds may choose a penalty that is not computed, since it is not the best one of all folds.
    if has_choices_of_folds(pruned, full):
        for name in ("held_out_mse_", "noise_"):
            assert_allclose(getattr(pruned, name), getattr(full, name), rtol=1e-9)
    elif pruned.selection == "min":
        n_folds = len(pruned.cv_results_["fold_mse"])
        splits = list(KFold(n_folds).split(np.empty(100)))
        expected = crossed(pruned.cv_results_["fold_mse"], splits)
        assert_allclose(pruned.held_out_mse_, expected, rtol=1e-12)
    assert pruned.cv_results_.keys() - full.cv_results_.keys() == {"screened_mse"}
    for name in ("mean_mse", "std_mse", "fold_mse"):
        ours, theirs = pruned.cv_results_[name], full.cv_results_[name]
        known = np.isfinite(ours)
        assert ours.shape == theirs.shape
        assert_allclose(ours[known], theirs[known], rtol=1e-8)


@pytest.mark.parametrize("selection", ["stack", "1se"])
@pytest.mark.parametrize("name", ["tall", "wide", "matrices", "kernels"])
def test_every_selection_makes_the_choice_of_a_search_over_all(name, selection, all_surfaces):
    make_model, shape, parameters = PROBLEMS[name]
    X, Y = make(*shape, seed=5 if name == "tall" else 2)
    model = make_model(**parameters, cv=3, selection=selection)
    full, pruned = both(model, X, Y, all_surfaces)
    assert_same_choice(pruned, full)
    assert has_choices_of_folds(pruned, full)
    assert_allclose(pruned.predict(X), full.predict(X), atol=1e-8 * np.abs(Y).max())
    if selection == "stack":
        assert pruned.choice_ == full.choice_
        ways = (model.cv_results_["ways_mse"] for model in (pruned, full))
        assert_allclose(*ways, rtol=1e-9)


def test_the_best_single_model_is_that_of_a_search_over_all_if_folds_choose_others(all_surfaces):
    """Errors of ways, and the choice among nearly equal ways, are those of computed penalties."""
    make_model, shape, parameters = PROBLEMS["tall"]
    model = make_model(**parameters, cv=3)
    full, pruned = both(model, *make(*shape, seed=2), all_surfaces)
    assert not has_choices_of_folds(pruned, full)
    assert_same_choice(pruned, full)
    ways = [model.cv_results_["ways_mse"] for model in (pruned, full)]
    assert_allclose(ways[0][0], ways[1][0], rtol=1e-9)
    assert_allclose(*ways, rtol=2e-3)


@pytest.mark.parametrize("snr", [0.3, 30.0])
def test_large_ranks_and_every_noise_make_the_same_choice(snr, all_surfaces):
    X, Y = make_tensor_regression(
        90, n_features=36, output_shape=(24, 15), rank=(20, 12, 9), snr=snr, random_state=3
    )
    full, pruned = both(HOLRRCV(ALPHAS, selection="min"), X, Y, all_surfaces)
    assert_same_choice(pruned, full)


def test_small_penalties_are_tried_although_larger_ones_have_a_local_minimum(all_surfaces):
    X, Y = make_tensor_regression(
        72, n_features=54, output_shape=(88,), rank=(3, 3), snr=2.7, random_state=840
    )
    X, Y = X * np.logspace(0, -2, 54), np.tanh(Y / Y.std()).reshape(72, 22, 4)
    alphas = np.logspace(-8, 2, 31)
    full, pruned = both(HOLRRCV(alphas, selection="min"), X, Y, all_surfaces)
    assert_same_choice(pruned, full)


def test_the_display_draws_the_surfaces_that_were_computed():
    make_model, shape, parameters = PROBLEMS["tall"]
    display = RankSurfaceDisplay.from_estimator(make_model(**parameters).fit(*make(*shape)))
    assert np.isnan(display.surface).any()
    assert display.axes_.shape == (3, 3)


def test_searches_of_small_problems_and_callables_compute_all_surfaces():
    make_model, shape, parameters = PROBLEMS["tall"]
    X, Y = make(*shape)
    chosen = make_model(**parameters, selection=lambda results: int(np.argmin(results["mean_mse"])))
    assert computed(chosen.fit(X, Y)).all()
    assert computed(make_model(ALPHAS[:13]).fit(X, Y)).all()
