"""Fitted attributes of searches agree with each other, whatever is chosen."""

from __future__ import annotations

import numpy as np
import pytest
from naive_choice import crossed, first_least
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.model_selection import KFold

from holrr import HOLRRCV, LRRCV, KernelHOLRRCV
from problems import toy

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty")
SEEDS = range(20)


def noisy(seed, n=24):
    """Noise as strong as the signal, or stronger; few samples, so that choices differ."""
    return toy(n, noise=0.5 + 0.1 * (seed % 25), seed=seed)


def check_relations(model, X):
    """Every relation between the attributes that the documentation states."""
    results, best = model.cv_results_, model.best_params_
    index = model.best_index_
    # The best single model.
    assert model.best_score_ == -results["mean_mse"][index]
    assert results["mean_mse"].shape[: len(index)] == results["mean_mse"].shape
    ranks = index[len(index) - results["n_parameters"].ndim :]
    place = index[len(index) - len(ranks) - 1]
    assert best["alpha"] == model.alphas_[place] == results["alphas"][place]
    if ranks:
        expected = tuple(i + 1 for i in ranks)
        assert best["rank"] in (expected, expected[0])
    if "kernels_" in vars(model):
        kernel = model.kernels_[index[0]]
        assert {name: best[name] for name in kernel} == kernel
        assert model.kernel_params_ in model.kernels_
        assert model.gamma_ == model.kernel_params_.get("gamma")
    # The model that predicts.
    if ranks:
        shape = model.tucker_.core.shape
        assert model.rank_ in (shape, shape[0])
        assert model.core_.shape == shape
        assert model.rank_ == model.best_estimator_.rank_
    assert_allclose(model.best_estimator_.predict(X), model.predict(X), rtol=1e-12)
    assert model.best_estimator_.alpha == model.alpha_
    assert model.held_out_mse_ == results["held_out_mse"]
    assert model.null_mse_ == results["null_mse"]
    assert model.ridge_mse_ == results["ridge_mse"]
    stack = [name for name in vars(model) if name.startswith("stack_")]
    if not ranks:
        assert model.ridge_mse_ == model.held_out_mse_
    # The model of the choice, unless it is ridge regression, has the penalty and the kernel of the
    # best single model.
    if not stack or model.choice_ != "ridge regression":
        assert model.alpha_ == best["alpha"]
        assert "kernels_" not in vars(model) or model.kernel_params_ == kernel
    if not stack:
        error = -model.best_score_
        if getattr(model, "selection", "min") != "1se":
            error = crossed(results["fold_mse"], list(KFold(model.cv).split(X)))
        assert_allclose(model.held_out_mse_, error, rtol=1e-12)
        assert not {"ways", "ways_mse"} & results.keys()
        assert not hasattr(model, "choice_")
        if ranks:
            assert model.rank_ == best["rank"]
        return
    assert sorted(stack) == ["stack_alphas_", "stack_ranks_", "stack_weights_"]
    ways = dict(zip(results["ways"], results["ways_mse"], strict=True))
    assert model.choice_ == first_least(ways)
    assert_allclose(ways["ridge regression"], model.ridge_mse_, rtol=1e-9)
    assert getattr(model, "max_rank", None) is None or len(ways) == 2
    n = len(model.stack_weights_)
    assert len(model.stack_ranks_) == len(model.stack_alphas_) == n
    assert (model.stack_weights_ > 0).all()
    assert (np.diff(model.stack_weights_) <= 0).all()
    assert model.stack_weights_.sum() <= 1 + 1e-12
    for alpha, rank in zip(model.stack_alphas_, model.stack_ranks_, strict=True):
        if np.ndim(alpha):
            assert rank is None
            assert (np.diff(alpha) > 0).all()
            assert set(alpha) <= set(model.alphas_)
            assert model.choice_ == "ranks and penalties of outputs"
        else:
            assert alpha == model.alpha_ in model.alphas_
    if model.choice_ == "ridge regression":
        assert model.stack_ranks_ == [None]
        assert model.stack_weights_.tolist() == [1.0]
        return
    if None not in model.stack_ranks_:
        largest = np.max(model.stack_ranks_, axis=0) if n else np.ones(len(ranks))
        assert (np.reshape(model.tucker_.core.shape[: len(ranks)], -1) <= largest).all()


@pytest.mark.rows("searches")
def test_attributes_agree_for_noisy_seeds(row):
    if not hasattr(row.make(), "alphas"):
        pytest.skip("searches over other penalties choose a single model")
    for seed in SEEDS:
        X, Y = noisy(seed)
        check_relations(row.make().fit(X, Y), X)


@pytest.mark.parametrize("make", [HOLRRCV, LRRCV, KernelHOLRRCV])
@pytest.mark.parametrize("params", [{}, {"max_rank": 2}, {"selection": "min"}], ids=str)
def test_attributes_agree_with_default_grids(make, params):
    for seed in range(5):
        X, Y = noisy(seed)
        check_relations(make(cv=3, **params).fit(X, Y), X)


def test_attributes_agree_with_missing_outputs_blocks_and_own_inputs():
    X, Y = noisy(0, 40)
    some = np.where(np.random.default_rng(0).uniform(size=Y.shape) < 0.1, np.nan, Y)
    for make in (HOLRRCV, LRRCV):
        check = make(cv=3, missing="ignore").fit(X, some)
        best = check.cv_results_["mean_mse"][check.best_index_]
        assert check.best_score_ == -best
        assert check.rank_ in (check.core_.shape, check.core_.shape[0])
        assert check.alpha_ == check.best_params_["alpha"] == check.alphas_[check.best_index_[0]]
        assert check.held_out_mse_ <= best
    blocks = {"one": [0, 1], "two": list(range(2, X.shape[1]))}
    model = HOLRRCV(cv=3, blocks=blocks).fit(X, Y)
    candidate, place = model.best_index_[:2]
    assert model.alpha_ == model.best_params_["alpha"] == model.alphas_[place]
    assert model.best_score_ == -model.cv_results_["mean_mse"][model.best_index_]
    assert candidate < len(model.cv_results_["mean_mse"])


def test_a_second_fit_leaves_nothing_of_the_first():
    X, Y = noisy(1)
    model = HOLRRCV([1.0, 10.0], cv=3).fit(X, Y)
    model.set_params(selection="min").fit(X, Y)
    assert not [name for name in vars(model) if name.startswith("stack_")]
    fresh = clone(model).fit(X, Y)
    assert vars(fresh).keys() == vars(model).keys()
