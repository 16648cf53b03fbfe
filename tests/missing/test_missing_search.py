"""Cross-validation with missing outputs, and with weights of outputs."""

from __future__ import annotations

import pickle
import warnings
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import KFold

from holrr import HOLRR, HOLRRCV, LRR, LRRCV, RLS, RLSCV, Moments, load
from problems import assert_same_state, low_rank_tensor, toy, with_missing

ALPHAS = [0.03, 0.3, 3.0]
SEARCHES = [
    RLSCV(ALPHAS, cv=3),
    LRRCV(ALPHAS, cv=3, selection="min"),
    HOLRRCV(ALPHAS, cv=3, selection="min"),
    HOLRRCV(ALPHAS, cv=3, selection="1se"),
    HOLRRCV(ALPHAS, cv=3, selection="stack"),
]
pytestmark = pytest.mark.filterwarnings("ignore:The best penalty")


def exact_errors(model, X, Y, w=None, cv=3, output_weight=1.0):
    """The held-out errors of a model by a plain loop."""
    errors = []
    for train, test in KFold(cv).split(X):
        fitted = clone(model).fit(X[train], Y[train], None if w is None else w[train])
        squares = (Y[test] - fitted.predict(X[test])) ** 2
        v = np.ones(len(test)) if w is None else w[test]
        v = output_weight * np.ones_like(squares) * v.reshape(-1, *(1,) * (Y.ndim - 1))
        seen = ~np.isnan(squares)
        errors.append(np.sum(v[seen] * squares[seen]) / np.sum(v[seen]))
    return np.array(errors)


def incomplete(n=60, **options):
    """Randomly missing outputs, one never observed, one rarely, and a sample without any."""
    X, Y = toy(n, **options)
    Y = with_missing(Y, 0.25)
    Y[:, 1, 2] = np.nan
    Y[20:, 0, 1] = np.nan
    Y[7] = np.nan
    return X, Y


@cache
def fitted(i):
    """The fit of a search to incomplete outputs, which several tests read."""
    return clone(SEARCHES[i]).set_params(missing="ignore").fit(*incomplete())


@pytest.mark.parametrize("weighted", [False, True])
def test_ridge_errors_are_exact_for_every_penalty(weighted):
    X, Y = incomplete()
    w = np.random.default_rng(0).uniform(0, 2, 60) if weighted else None
    search = RLSCV(ALPHAS, cv=3, missing="ignore").fit(X, Y, w)
    for a, alpha in enumerate(ALPHAS):
        expected = exact_errors(RLS(alpha, missing="ignore"), X, Y, w)
        assert_allclose(search.cv_results_["fold_mse"][:, a], expected, rtol=1e-8)
    null = exact_errors(RLS(1e12, missing="ignore"), X, Y, w).mean()
    assert_allclose(search.cv_results_["null_mse"], null, rtol=1e-6)
    final = RLS(search.alpha_, missing="ignore").fit(X, Y, w)
    assert_allclose(search.predict(X), final.predict(X), atol=1e-12)
    assert search.n_dropped_ == 1
    assert np.isnan(search.coef_[:, 1, 2]).all()


@pytest.mark.parametrize("i", [1, 2, 3], ids=lambda i: str(SEARCHES[i]))
@pytest.mark.parametrize("weighted", [False, True])
def test_the_error_of_the_choice_is_exact(i, weighted):
    X, Y = incomplete()
    w = np.random.default_rng(0).uniform(0, 2, 60) if weighted else None
    search = clone(fitted(i)).fit(X, Y, w) if weighted else fitted(i)
    kind = LRR if isinstance(search, LRRCV) else HOLRR
    model = kind(search.rank_, search.alpha_, missing="ignore")
    expected = exact_errors(model, X, Y, w)
    results = search.cv_results_
    assert_allclose(results["fold_mse"][(slice(None), *search.best_index_)], expected, rtol=1e-4)
    assert_allclose(-search.best_score_, expected.mean(), rtol=1e-4)
    assert search.best_index_ in [tuple(i) for i in results["fitted_index"]]
    if search.selection == "min":
        assert_allclose(results["fitted_mse"].min(), -search.best_score_, rtol=1e-12)
    assert_allclose(search.predict(X), model.fit(X, Y, w).predict(X), atol=1e-10)


@pytest.mark.parametrize("search", [LRRCV, HOLRRCV])
def test_a_stack_is_no_worse_than_the_best_single_rank(search):
    X, Y = incomplete(noise=2.0, seed=1)
    how = {"cv": KFold(3), "missing": "ignore"}
    single, stack = (search(ALPHAS, selection=s, **how).fit(X, Y) for s in ("min", "stack"))
    assert len(stack.stack_ranks_) > 1
    # The error of the stack is cross-fitted, that of the single rank chose it.
    assert stack.held_out_mse_ < 1.005 * single.held_out_mse_
    assert single.held_out_mse_ == -single.best_score_
    for name in ("best_params_", "best_index_", "best_score_", "alpha_"):
        assert getattr(stack, name) == getattr(single, name)
    away = (stack.held_out_predictions(X, Y) - Y) ** 2  # the error is exact, over observed entries
    errors = [np.nanmean(away[test]) for _, test in KFold(3).split(X)]
    assert_allclose(stack.held_out_mse_, np.mean(errors), rtol=1e-9)
    assert stack.n_dropped_ == 1
    assert np.isnan(stack.lower_bound_)
    assert_array_equal(np.isnan(stack.predict(X)), np.isnan(single.predict(X)))
    known = ~np.isnan(stack.intercept_)
    both = [model.predict(X)[:, known].ravel() for model in (stack, single)]
    assert np.corrcoef(*both)[0, 1] > 0.97


def test_searches_find_the_true_rank():
    """The noise is as large as the signal, and 30 percent of the outputs are missing."""
    hits = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(150, 10))
        F = np.tensordot(X, low_rank_tensor(rng, (10, 10, 10, 10), (3, 3, 2, 2)), 1)
        Y = with_missing(F / F.std() + rng.normal(size=F.shape), 0.3, seed)
        search = HOLRRCV(max_rank=6, selection="min", missing="ignore").fit(X, Y)
        hits += search.rank_ == (3, 3, 2, 2)
    assert hits >= 5


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_complete_outputs_have_the_same_search_to_the_last_bit(search):
    X, Y = toy()
    plain = clone(search).fit(X, Y)
    ignore = clone(search).set_params(missing="ignore").fit(X, Y)
    assert_same_state(ignore.cv_results_, plain.cv_results_)
    assert_array_equal(ignore.coef_, plain.coef_)


@pytest.mark.parametrize("i", [0, 1, 2, 4], ids=lambda i: str(SEARCHES[i]))
def test_threads_masked_arrays_files_and_units_do_not_change_a_search(i, tmp_path):
    X, Y = incomplete()
    search = found = fitted(i)
    other = clone(search).set_params(n_jobs=2).fit(X, np.ma.masked_invalid(Y))
    assert_same_state(found.cv_results_, other.cv_results_)
    found.save(tmp_path / "search.holrr")
    pair = load(tmp_path / "search.holrr"), pickle.loads(pickle.dumps(found))
    for one in pair:  # files contain neither errors of all ranks nor folds
        del one.cv_results_
        vars(one).pop("_fold_fits", None)
    assert_same_state(*pair)
    small = clone(search).fit(X, Y * 2.0**-400)
    assert_allclose(small.best_score_ * 2.0**800, found.best_score_, rtol=1e-9)
    assert_allclose(small.predict(X) * 2.0**400, found.predict(X), rtol=1e-6, atol=1e-9)


def test_a_search_warns_only_of_its_last_surface():
    X, Y = toy(60)
    Y = with_missing(Y, 0.3)
    Y[10:, 1, 2] = Y[5] = np.nan
    grid = [1e-3, 1e-2, 0.1, 1.0]
    search = HOLRRCV(grid, selection="min", missing="ignore")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search.fit(X, Y)
    # With mean imputation the best penalty is at the edge.
    assert search.cv_results_["fitted_index"][0, 0] == 3
    assert search.alpha_ < 1.0
    with pytest.warns(UserWarning, match="is the smallest of the grid"):
        HOLRRCV([3.0, 10.0, 30.0], selection="min", missing="ignore").fit(X, Y)


@pytest.mark.parametrize("seed", range(3))
def test_the_candidate_of_least_exact_error_is_chosen(seed):
    """Of all candidates that were fitted, whatever the surfaces of imputed outputs say."""
    X, Y = toy(60, noise=2.0, seed=seed)
    Y = with_missing(Y, 0.25)
    search = HOLRRCV(ALPHAS, cv=3, selection="min", missing="ignore").fit(X, Y)
    results = search.cv_results_
    choices = [tuple(index) for index in results["fitted_index"]]
    for index, error in zip(choices, results["fitted_mse"], strict=True):
        model = HOLRR(tuple(i + 1 for i in index[1:]), ALPHAS[index[0]], missing="ignore")
        assert_allclose(error, exact_errors(model, X, Y).mean(), rtol=1e-4)
    best = choices[int(np.argmin(results["fitted_mse"]))]
    assert search.best_index_ == best
    assert -search.best_score_ == results["mean_mse"][best] == results["fitted_mse"].min()
    null = exact_errors(RLS(1e12, missing="ignore"), X, Y).mean()
    assert_allclose(results["null_mse"], null, rtol=1e-6)


@pytest.mark.parametrize(
    ("sequence", "fitted", "chosen"),
    [
        ([0, 1, 2, 2], [0, 1, 2], 2),  # a choice that repeats itself
        ([0, 1, 0], [0, 1], 0),  # one that was fitted before
        ([0, 1, 2, 3, 4], [0, 1, 2, 3], 3),  # the last one of four rounds
    ],
)
def test_a_callable_chooses_until_its_choice_recurs(sequence, fitted, chosen):
    X, Y = incomplete()
    places = [(2, 0, 0, 0), (1, 1, 1, 1), (0, 2, 2, 2), (0, 1, 1, 1), (0, 0, 0, 0)]
    choices = iter(sequence)
    search = HOLRRCV(
        ALPHAS, cv=3, selection=lambda results: places[next(choices)], missing="ignore"
    ).fit(X, Y)
    found = [tuple(index) for index in search.cv_results_["fitted_index"]]
    assert found == [places[k] for k in fitted]
    assert search.best_index_ == places[chosen]
    errors = search.cv_results_["fitted_mse"]
    assert -search.best_score_ == errors[fitted.index(chosen)]


def test_a_callable_selects_the_model():
    X, Y = incomplete()
    choose = lambda results: (0, 1, 1, 1)  # noqa: E731
    search = HOLRRCV(ALPHAS, cv=3, selection=choose, missing="ignore").fit(X, Y)
    assert search.rank_ == (2, 2, 2)
    assert search.alpha_ == ALPHAS[0]


def test_searches_that_need_complete_outputs_are_refused():
    X, Y = incomplete()
    with pytest.raises(ValueError, match='missing="ignore"'):
        HOLRRCV(ALPHAS).fit(X, Y)
    Y[40:] = np.nan
    for cv in (KFold(3), [(np.arange(40, 60), np.arange(40))]):
        with pytest.raises(ValueError, match=r"set of split \d of cv.*no observed entry"):
            HOLRRCV(ALPHAS, cv=cv, missing="ignore").fit(X, Y)
    Y[3, 1, 1] = np.inf
    with pytest.raises(ValueError, match=r"infinity at index \(3, 1, 1\)"):
        RLSCV(ALPHAS, missing="ignore").fit(X, Y)


# ---------------------------------------------------------------- weights of outputs

WEIGHTS = [np.array([1.0, 4.0, 0.25]), np.array([2.0, 1.0, 0.0, 3.0])]


@pytest.mark.parametrize("search", SEARCHES, ids=str)
@pytest.mark.parametrize("share", [0.0, 0.25])
def test_weights_of_outputs_scale_the_outputs(search, share):
    X, Y = toy(60)
    Y = with_missing(Y, share)
    v = np.multiply.outer(*[v / v.mean() for v in WEIGHTS])
    search = clone(search).set_params(missing="ignore")
    found = clone(search).set_params(output_weight=WEIGHTS).fit(X, Y)
    root, some = np.sqrt(v), v > 0
    scaled = clone(search).fit(X, np.where(some, Y, np.nan if share else 0.0) * root)
    if share:  # the means of the others are over numbers of entries, not over sums of weights
        ratios = found.cv_results_["mean_mse"] / scaled.cv_results_["mean_mse"]
        assert_allclose(ratios, v[some].mean() ** -1, rtol=0.1)
    else:
        assert_allclose(found.cv_results_["mean_mse"], scaled.cv_results_["mean_mse"], rtol=1e-9)
    assert found.best_index_ == scaled.best_index_
    expected = scaled.predict(X) / np.where(some, root, 1.0)
    assert_allclose(found.predict(X)[:, some], expected[:, some], atol=1e-3 if share else 1e-9)
    assert np.isnan(found.predict(X)[:, ~some]).all()
    assert found.best_estimator_.output_weight is WEIGHTS
    if not hasattr(found, "stack_ranks_"):
        expected = exact_errors(clone(found.best_estimator_), X, Y, output_weight=v)
        assert_allclose(-found.best_score_, expected.mean(), rtol=1e-4)
        if share and not isinstance(found, RLSCV):
            assert found.held_out_mse_ == -found.best_score_
        errors = exact_errors(clone(found.best_estimator_), X, np.where(some, Y, np.nan))
        assert_allclose(found.cv_results_["unweighted_mse"], errors.mean(), rtol=1e-4)
        again = clone(found.best_estimator_).fit(X, Y)
        assert_allclose(again.objective_, found.objective_, rtol=1e-7)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert found.score(X, toy(60)[1]) > 0.5


def test_weights_of_outputs_need_samples():
    X, Y = toy(60)
    parts = [Moments.from_arrays(X[i::3], Y[i::3]) for i in range(3)]
    with pytest.raises(ValueError, match=r"output_weight needs samples and .* with moments"):
        HOLRRCV(ALPHAS, output_weight=WEIGHTS).fit_fold_moments(parts)
