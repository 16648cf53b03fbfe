"""Which model a search chooses: the rules of selection, each by its definition."""

import numpy as np
import pytest

from holrr import HOLRRCV, LRRCV, RLS, RLSCV, KernelHOLRRCV, KernelLRRCV, KernelRLSCV
from holrr.datasets import make_tensor_regression

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty")

ALPHAS = [0.1, 1.0, 10.0, 100.0]


def test_1se_is_the_smallest_model_within_a_standard_error(make_data):
    X, Y = make_data(d0=4, noise=4.0)
    model = HOLRRCV(ALPHAS, selection="1se").fit(X, Y)
    folds, count = (model.cv_results_[key] for key in ("fold_mse", "n_parameters"))
    mean = folds.mean(axis=0)
    best = np.unravel_index(mean.argmin(), mean.shape)
    bound = mean[best] + folds[(slice(None), *best)].std(ddof=1) / np.sqrt(len(folds))
    within = [i for i in np.ndindex(*mean.shape) if mean[i] <= bound]
    assert model.n_parameters_ == min(count[i[1:]] for i in within)
    assert mean[model.best_index_] <= bound
    smallest = [i for i in within if count[i[1:]] == model.n_parameters_]
    assert model.alpha_ == max(ALPHAS[i[0]] for i in smallest)


def test_1se_of_ridge_is_the_largest_penalty_within_a_standard_error(make_data):
    X, Y = make_data(noise=4.0)
    model = RLSCV(ALPHAS, selection="1se").fit(X, Y)
    mean, folds = model.cv_results_["mean_mse"], model.cv_results_["fold_mse"]
    best = mean.argmin()
    bound = mean[best] + folds[:, best].std(ddof=1) / np.sqrt(5)
    assert model.alpha_ == np.array(ALPHAS)[mean <= bound].max()


@pytest.mark.parametrize(("shape", "snr"), [((6,), 30.0), ((4, 5), 0.3)])
def test_1se_chooses_no_rank_above_the_product_of_the_others(shape, snr):
    """Such a rank has as many parameters as a smaller one; both ranks of a matrix are equal."""
    for seed in range(4):
        X, Y = make_tensor_regression(
            40, n_features=7, output_shape=shape, rank=2, snr=snr, random_state=seed
        )
        rank = HOLRRCV(selection="1se").fit(X, Y).rank_
        assert all(R * R <= np.prod(rank) for R in rank)


@pytest.mark.parametrize("index", [(1, 2, 0, 1), 37, (np.int64(1), 0, -1, 1)])
def test_a_callable_selects_by_index(make_data, index):
    X, Y = make_data()
    model = HOLRRCV(ALPHAS, selection=lambda results: index).fit(X, Y)
    shape = model.cv_results_["mean_mse"].shape
    where = np.unravel_index(index, shape) if isinstance(index, int) else index
    expected = np.empty(shape)[...]
    expected[...] = 0
    expected[tuple(where)] = 1
    assert expected[model.best_index_] == 1
    assert model.rank_ == tuple(int(i) % n + 1 for i, n in zip(where, shape, strict=True))[1:]


@pytest.mark.parametrize("index", [(1, 2), (1, 2, 0, 1, 0), (9, 0, 0, 0), 10**6, "best", None])
def test_a_callable_must_return_the_index_of_one_entry(make_data, index):
    with pytest.raises(ValueError, match="must return an int or a tuple that indexes"):
        HOLRRCV(ALPHAS, selection=lambda results: index).fit(*make_data())


def test_final_ridge_model_has_no_rank(make_data):
    X, Y = make_data()
    model = RLSCV(ALPHAS).fit(X, Y)
    assert isinstance(model.best_estimator_, RLS)
    assert not hasattr(model, "rank_")


# ---------------------------------------------------------------- the default selection


@pytest.mark.parametrize("make", [LRRCV, HOLRRCV, KernelLRRCV, KernelHOLRRCV])
def test_auto_is_the_default_and_chooses_a_stack(make_data, make):
    X, Y = make_data(noise=4.0)
    assert make().selection == "auto"
    default, stack = make(ALPHAS, cv=3).fit(X, Y), make(ALPHAS, cv=3, selection="stack").fit(X, Y)
    assert default.stack_ranks_ == stack.stack_ranks_
    np.testing.assert_array_equal(default.predict(X), stack.predict(X))


@pytest.mark.parametrize("make", [HOLRRCV, KernelHOLRRCV])
def test_auto_chooses_a_single_rank_where_ranks_cannot_be_mixed(make_data, make):
    X, Y = make_data(noise=4.0)
    auto = make(ALPHAS, cv=3, refine=True).fit(X, Y)
    best = make(ALPHAS, cv=3, selection="min", refine=True).fit(X, Y)
    assert not hasattr(auto, "stack_ranks_")
    np.testing.assert_array_equal(auto.predict(X), best.predict(X))
    stack = make(ALPHAS, cv=3, selection="stack", refine=True)
    with pytest.raises(ValueError, match="selection='stack' cannot be combined with refine=True"):
        stack.fit(X, Y)


@pytest.mark.parametrize("make", [RLSCV, KernelRLSCV])
def test_ridge_has_no_ranks_to_mix(make_data, make):
    X, Y = make_data()
    for selection in ("auto", "stack"):
        with pytest.raises(ValueError, match="'selection' parameter"):
            make(ALPHAS, selection=selection).fit(X, Y)
