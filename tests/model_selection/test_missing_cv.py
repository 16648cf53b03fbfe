"""Cross-validation of outputs with holes, and with weights of their own."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import KFold

from holrr import HOLRR, HOLRRCV, LRR, LRRCV, RLS, RLSCV, load
from problems import assert_same_state, low_rank_tensor, toy, with_holes

ALPHAS = [0.03, 0.3, 3.0]
SEARCHES = [
    RLSCV(ALPHAS, cv=3),
    LRRCV(ALPHAS, cv=3, selection="min"),
    HOLRRCV(ALPHAS, cv=3, selection="min"),
    HOLRRCV(ALPHAS, cv=3, selection="1se"),
    HOLRRCV(ALPHAS, cv=3, selection="stack"),
]
pytestmark = pytest.mark.filterwarnings("ignore:the best penalty")


def exact_errors(model, X, Y, w=None, cv=3):
    """The held-out errors of a model by a plain loop."""
    errors = []
    for train, test in KFold(cv).split(X):
        fitted = clone(model).fit(X[train], Y[train], None if w is None else w[train])
        squares = (Y[test] - fitted.predict(X[test])) ** 2
        v = np.ones(len(test)) if w is None else w[test]
        v = np.broadcast_to(v.reshape(-1, *(1,) * (Y.ndim - 1)), squares.shape)
        seen = ~np.isnan(squares)
        errors.append(np.sum(v[seen] * squares[seen]) / np.sum(v[seen]))
    return np.array(errors)


def holey(n=60):
    """Random holes, an output never observed, one observed in few samples, a sample without any."""
    X, Y = toy(n)
    Y = with_holes(Y, 0.25)
    Y[:, 1, 2] = np.nan
    Y[20:, 0, 1] = np.nan
    Y[7] = np.nan
    return X, Y


@pytest.mark.parametrize("weighted", [False, True])
def test_ridge_errors_are_exact_for_every_penalty(weighted):
    X, Y = holey()
    w = np.random.default_rng(0).uniform(0, 2, 60) if weighted else None
    search = RLSCV(ALPHAS, cv=3, missing="fill").fit(X, Y, w)
    for a, alpha in enumerate(ALPHAS):
        expected = exact_errors(RLS(alpha, missing="fill"), X, Y, w)
        assert_allclose(search.cv_results_["fold_mse"][:, a], expected, rtol=1e-8)
    null = exact_errors(RLS(1e12, missing="fill"), X, Y, w).mean()
    assert_allclose(search.cv_results_["null_mse"], null, rtol=1e-6)
    final = RLS(search.alpha_, missing="fill").fit(X, Y, w)
    assert_allclose(search.predict(X), final.predict(X), atol=1e-12)
    assert search.n_dropped_ == 1
    assert np.isnan(search.coef_[:, 1, 2]).all()


@pytest.mark.parametrize("search", SEARCHES[1:4], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_error_of_the_choice_is_exact(search, weighted):
    X, Y = holey()
    w = np.random.default_rng(0).uniform(0, 2, 60) if weighted else None
    search = clone(search).set_params(missing="fill").fit(X, Y, w)
    kind = LRR if isinstance(search, LRRCV) else HOLRR
    model = kind(search.rank_, search.alpha_, missing="fill")
    expected = exact_errors(model, X, Y, w)
    results = search.cv_results_
    assert_allclose(results["fold_mse"][(slice(None), *search.best_index_)], expected, rtol=1e-4)
    assert_allclose(-search.best_score_, expected.mean(), rtol=1e-4)
    assert search.best_index_ in [tuple(i) for i in results["fitted_index"]]
    if search.selection == "min":
        assert_allclose(results["fitted_mse"].min(), -search.best_score_, rtol=1e-12)
    assert_allclose(search.predict(X), model.fit(X, Y, w).predict(X), atol=1e-10)


def test_a_stack_is_no_worse_than_the_best_single_rank():
    X, Y = holey()
    single = HOLRRCV(ALPHAS, cv=3, selection="min", missing="fill").fit(X, Y)
    stack = HOLRRCV(ALPHAS, cv=3, selection="stack", missing="fill").fit(X, Y)
    assert stack.best_score_ >= single.best_score_
    assert stack.rank_ == single.rank_
    assert stack.n_dropped_ == 1
    assert np.isnan(stack.lower_bound_)
    assert_array_equal(np.isnan(stack.predict(X)), np.isnan(single.predict(X)))
    known = ~np.isnan(stack.intercept_)
    assert_allclose(stack.predict(X)[:, known], single.predict(X)[:, known], atol=0.5)


def test_a_stack_that_is_worse_gives_way(monkeypatch):
    from holrr.model_selection import holes

    monkeypatch.setattr(holes.HoleFolds, "judge", lambda self, stack, model: None)
    X, Y = holey()
    single = HOLRRCV(ALPHAS, cv=3, selection="min", missing="fill").fit(X, Y)
    stack = HOLRRCV(ALPHAS, cv=3, selection="stack", missing="fill").fit(X, Y)
    assert not hasattr(stack, "stack_ranks_")
    assert_array_equal(stack.predict(X), single.predict(X))


def test_the_true_rank_is_chosen(capsys):
    """Noise as large as the signal, 30 percent missing, on most of 10 seeds."""
    hits = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(150, 10))
        F = np.tensordot(X, low_rank_tensor(rng, (10, 10, 10, 10), (3, 3, 2, 2)), 1)
        Y = with_holes(F / F.std() + rng.normal(size=F.shape), 0.3, seed)
        search = HOLRRCV(ranks=6, selection="min", missing="fill").fit(X, Y)
        hits += search.rank_ == (3, 3, 2, 2)
    with capsys.disabled():
        print(f" true rank chosen with 30 % missing: {hits} of 10 seeds ", end="")
    assert hits >= 8


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_nothing_missing_is_the_same_to_the_last_bit(search):
    X, Y = toy()
    plain = clone(search).fit(X, Y)
    fill = clone(search).set_params(missing="fill").fit(X, Y)
    assert_same_state(fill.cv_results_, plain.cv_results_)
    assert_array_equal(fill.coef_, plain.coef_)


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_threads_masks_files_and_units(search, tmp_path):
    X, Y = holey()
    search = clone(search).set_params(missing="fill")
    found = clone(search).fit(X, Y)
    other = clone(search).set_params(n_jobs=2).fit(X, np.ma.masked_invalid(Y))
    assert_same_state(found.cv_results_, other.cv_results_)
    found.save(tmp_path / "search.holrr")
    assert_same_state(load(tmp_path / "search.holrr"), found)
    small = clone(search).fit(X, Y * 2.0**-400)
    assert_allclose(small.best_score_ * 2.0**800, found.best_score_, rtol=1e-9)
    assert_allclose(small.predict(X) * 2.0**400, found.predict(X), rtol=1e-6, atol=1e-9)


def test_only_the_last_surface_is_warned_of():
    X, Y = toy(60)
    Y = with_holes(Y, 0.3)
    Y[:, 1, 2] = Y[5] = np.nan
    grid = [1e-3, 1e-2, 0.1, 1.0]
    search = HOLRRCV(grid, selection="min", missing="fill")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search.fit(X, Y)
    assert search.cv_results_["fitted_index"][0, 0] == 3  # that of means is at the edge
    assert search.alpha_ < 1.0
    with pytest.warns(UserWarning, match="is the smallest of the grid"):
        HOLRRCV([3.0, 10.0, 30.0], selection="min", missing="fill").fit(X, Y)


@pytest.mark.parametrize(("exact", "expected"), [(True, (1,)), (False, (2,))])
def test_the_least_exact_error_among_those_fitted_is_taken(exact, expected):
    from types import SimpleNamespace

    from holrr.model_selection.holes import Visit, settle
    from holrr.model_selection.sweep import Sweep

    folds = SimpleNamespace(visited={}, fills=[], choice=None)
    errors = {(0,): 3.0, (1,): 1.0, (2,): 2.0}
    surface = Sweep(np.ones((2, 3)), 5.0, 1)
    choices = iter([(0,), (1,), (2,), (2,)])
    found = settle(
        folds,
        surface,
        lambda found: next(choices),
        lambda index: Visit(None, np.full(2, errors[index]), [index]),
        lambda: Sweep(np.ones((2, 3)), 7.0, 1),
        exact=exact,
    )
    assert folds.choice == expected
    assert folds.fills == [expected]
    assert_array_equal(found.fold_mse[:, expected[0]], errors[expected])
    assert found.null_mse == 5.0


def test_own_selection_and_list_of_ranks():
    X, Y = holey()
    search = HOLRRCV(
        ALPHAS, [(2, 2, 2), (1, 1, 1)], cv=3, selection=lambda r: (0, 1, 1, 1), missing="fill"
    ).fit(X, Y)
    assert search.rank_ == (2, 2, 2)
    assert search.alpha_ == ALPHAS[0]
    assert np.isnan(search.cv_results_["mean_mse"][0, 0, 1, 1])


def test_refusals():
    X, Y = holey()
    with pytest.raises(ValueError, match='missing="fill" fits'):
        HOLRRCV(ALPHAS).fit(X, Y)
    with pytest.raises(ValueError, match="information criteria need complete outputs"):
        HOLRRCV(ALPHAS, criterion="bic", missing="fill").fit(X, Y)
    with pytest.raises(ValueError, match="subspaces='response'"):
        HOLRRCV(ALPHAS, subspaces="response", missing="fill").fit(X, Y)
    Y[40:] = np.nan
    for cv in (KFold(3), [(np.arange(40, 60), np.arange(40))]):
        with pytest.raises(ValueError, match=r"side of split \d of cv.*no observed entry"):
            HOLRRCV(ALPHAS, cv=cv, missing="fill").fit(X, Y)
    Y[3, 1, 1] = np.inf
    with pytest.raises(ValueError, match=r"infinity at index \(3, 1, 1\)"):
        RLSCV(ALPHAS, missing="fill").fit(X, Y)


# ---------------------------------------------------------------- weights of outputs

WEIGHTS = [np.array([1.0, 4.0, 0.25]), np.array([2.0, 1.0, 0.0, 3.0])]


@pytest.mark.parametrize("search", SEARCHES, ids=str)
@pytest.mark.parametrize("share", [0.0, 0.25])
def test_weights_of_outputs_are_a_scaling(search, share):
    X, Y = toy(60)
    Y = with_holes(Y, share)
    v = np.multiply.outer(*[v / v.mean() for v in WEIGHTS])
    search = clone(search).set_params(missing="fill")
    found = clone(search).set_params(output_weight=WEIGHTS).fit(X, Y)
    root, some = np.sqrt(v), v > 0
    scaled = clone(search).fit(X, np.where(some, Y, 0.0) * root)
    assert_allclose(found.cv_results_["mean_mse"], scaled.cv_results_["mean_mse"], rtol=1e-5)
    assert found.best_index_ == scaled.best_index_
    expected = scaled.predict(X) / np.where(some, root, 1.0)
    assert_allclose(found.predict(X)[:, some], expected[:, some], atol=1e-3 if share else 1e-9)
    assert np.isnan(found.predict(X)[:, ~some]).all()
    assert found.best_estimator_.output_weight is WEIGHTS
    if not hasattr(found, "stack_ranks_"):
        errors = exact_errors(clone(found.best_estimator_), X, np.where(some, Y, np.nan))
        assert_allclose(found.cv_results_["unweighted_mse"], errors.mean(), rtol=1e-4)
        again = clone(found.best_estimator_).fit(X, Y)
        assert_allclose(again.objective_, found.objective_, rtol=1e-7)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert found.score(X, toy(60)[1]) > 0.5


def test_weights_need_samples():
    from holrr import Moments

    X, Y = toy(60)
    parts = [Moments.from_arrays(X[i::3], Y[i::3]) for i in range(3)]
    with pytest.raises(ValueError, match="output_weight needs samples in memory"):
        HOLRRCV(ALPHAS, output_weight=WEIGHTS).fit_fold_moments(parts)
