"""The held-out error of a search, and those that it is compared with: mean and ridge regression."""

from __future__ import annotations

import numpy as np
import pytest
from naive_choice import PLAIN, crossed
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.model_selection import KFold

from holrr import (
    HOLRRCV,
    LRRCV,
    RLS,
    RLSCV,
    KernelHOLRRCV,
    KernelRLSCV,
    Moments,
    load,
)
from problems import toy, with_missing

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty")
ALPHAS = [0.1, 1.0, 10.0]


def errors_of_folds(X, Y, model, n_folds=3):
    errors = []
    for train, test in KFold(n_folds).split(X):
        found = model(X[train], Y[train], X[test])
        errors.append(np.mean(np.square(Y[test] - found)))
    return np.array(errors)


def brute_force(X, Y, model, n_folds=3):
    return errors_of_folds(X, Y, model, n_folds).mean()


def crossed_error(X, Y, models, n_folds=3):
    """Error of models that are chosen without each fold."""
    errors = np.stack([errors_of_folds(X, Y, model, n_folds) for model in models], axis=1)
    return crossed(errors, list(KFold(n_folds).split(X)))


def low_rank(make, alpha, rank):
    return lambda X, Y, new: PLAIN[make](rank=rank, alpha=alpha).fit(X, Y).predict(new)


def ridge(alpha):
    return lambda X, Y, new: RLS(alpha).fit(X, Y).predict(new)


def mean(X, Y, new):
    return np.broadcast_to(Y.mean(axis=0), (len(new), *Y.shape[1:]))


def noisy():
    X, Y = toy()
    return X, Y + 3 * np.random.default_rng(0).normal(size=Y.shape)


@pytest.mark.parametrize("scale", [1.0, 1e100])
@pytest.mark.parametrize("selection", ["min", "1se"])
@pytest.mark.parametrize("make", [RLSCV, LRRCV, HOLRRCV])
def test_the_best_score_is_the_held_out_error_of_the_chosen_model(make, selection, scale):
    X, Y = noisy()
    search = make(ALPHAS, cv=3, selection=selection).fit(X, scale * Y)

    def chosen(X, Y, new):
        return clone(search.best_estimator_).fit(X, Y).predict(new)

    assert_allclose(-search.best_score_ / scale**2, brute_force(X, Y, chosen), rtol=1e-9)
    assert search.held_out_mse_ == search.cv_results_["held_out_mse"]
    if selection == "1se":  # a model that is not the best of the other folds
        assert search.held_out_mse_ == -search.best_score_


@pytest.mark.parametrize("scale", [1.0, 1e100])
@pytest.mark.parametrize("make", [RLSCV, LRRCV, HOLRRCV])
def test_the_held_out_error_is_that_of_models_that_the_other_folds_choose(make, scale):
    X, Y = noisy()
    search = make(ALPHAS, cv=3, selection="min").fit(X, scale * Y)
    if make is RLSCV:
        models = [ridge(alpha) for alpha in ALPHAS]
    else:
        ranks = list(np.ndindex(*search.cv_results_["n_parameters"].shape))
        ranks = [tuple(i + 1 for i in R) if make is HOLRRCV else R[0] + 1 for R in ranks]
        models = [low_rank(make, alpha, rank) for alpha in ALPHAS for rank in ranks]
    expected = crossed_error(X, Y, models)
    assert_allclose(search.held_out_mse_ / scale**2, expected, rtol=1e-9)
    assert expected > -search.best_score_ / scale**2


@pytest.mark.parametrize("scale", [1.0, 1e100])
@pytest.mark.parametrize(
    "search",
    [
        RLSCV(ALPHAS, cv=3),
        LRRCV(ALPHAS, cv=3, max_rank=2),
        HOLRRCV(ALPHAS, cv=3, max_rank=2),
        HOLRRCV(ALPHAS, cv=3, selection="1se"),
    ],
    ids=str,
)
def test_errors_of_the_mean_and_of_ridge_regression_equal_brute_force(search, scale):
    """Also with capped ranks, whose surface does not contain ridge regression."""
    X, Y = noisy()
    search.fit(X, scale * Y)
    expected = brute_force(X, Y, mean), crossed_error(X, Y, [ridge(a) for a in ALPHAS])
    found = np.array([search.null_mse_, search.ridge_mse_]) / scale**2
    assert_allclose(found, expected, rtol=1e-9)


def test_the_error_of_ridge_regression_is_that_of_the_widened_grid():
    X, Y = toy()
    X[:, 0], Y = 1e-2 * X[:, 0], np.multiply.outer(X[:, 0], Y[0])  # the smallest penalty is best
    Y += 0.1 * np.random.default_rng(0).normal(size=Y.shape)
    search = HOLRRCV(cv=3, max_rank=2).fit(X, Y)
    assert search.alphas_.size > 13
    expected = crossed_error(X, Y, [ridge(a) for a in search.alphas_])
    assert_allclose(search.ridge_mse_, expected, rtol=1e-9)


def test_kernel_searches_are_compared_with_kernel_ridge_over_all_kernels():
    X, Y = noisy()
    grid = {"alphas": ALPHAS, "cv": 3, "kernel": "rbf", "gammas": [0.01, 1.0]}
    ridge = KernelRLSCV(**grid).fit(X, Y)
    search = KernelHOLRRCV(**grid, max_rank=2).fit(X, Y)
    expected = crossed(ridge.cv_results_["fold_mse"], list(KFold(3).split(X)))
    assert ridge.ridge_mse_ == ridge.held_out_mse_ == pytest.approx(expected, rel=1e-12)
    assert_allclose(search.ridge_mse_, ridge.ridge_mse_, rtol=1e-9)
    assert_allclose(search.null_mse_, brute_force(X, Y, mean), rtol=1e-9)


def test_moments_give_the_same_errors_and_files_keep_them(tmp_path):
    X, Y = noisy()
    folds = [Moments.from_arrays(X[test], Y[test]) for _, test in KFold(3).split(X)]
    search = HOLRRCV(alphas=ALPHAS, max_rank=2).fit_fold_moments(folds)
    expected = HOLRRCV(ALPHAS, cv=3, max_rank=2).fit(X, Y)
    search.save(tmp_path / "model.holrr")
    for found in (search, load(tmp_path / "model.holrr")):
        for name in ("ridge_mse_", "null_mse_", "held_out_mse_"):
            assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9)


def test_errors_that_a_search_does_not_compute_are_not_attributes():
    X, Y = noisy()
    partial = with_missing(Y, 0.2)
    with_ranks = HOLRRCV(ALPHAS, cv=3, max_rank=2, missing="ignore").fit(X, partial)
    for name in ("null_mse_", "ridge_mse_", "held_out_mse_"):
        assert not hasattr(HOLRRCV(), name)
    assert hasattr(with_ranks, "null_mse_")
    assert with_ranks.held_out_mse_ > 0
    with pytest.raises(AttributeError, match=r"ridge_mse_ is not available.*y has missing values"):
        with_ranks.ridge_mse_  # noqa: B018
    alone = RLSCV(ALPHAS, cv=3, missing="ignore").fit(X, partial)
    expected = crossed(alone.cv_results_["fold_mse"], list(KFold(3).split(X)))
    assert alone.ridge_mse_ == alone.held_out_mse_ == pytest.approx(expected, rel=1e-12)


@pytest.mark.filterwarnings("ignore:The best penalty")
def test_the_error_of_an_unavailable_baseline_names_the_reason():
    X, Y = toy()
    missing = np.where(np.arange(Y.size).reshape(Y.shape) % 7 == 0, np.nan, Y)
    search = HOLRRCV([1.0], cv=2, missing="ignore").fit(X, missing)
    with pytest.raises(
        AttributeError, match=r'ridge_mse_ is not available.*RLSCV\(missing="ignore"\)'
    ):
        search.ridge_mse_  # noqa: B018
    assert RLSCV([1.0], cv=2, missing="ignore").fit(X, missing).ridge_mse_ > 0
