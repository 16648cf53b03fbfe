"""Searches of penalised models choose as separate fits to the folds do."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit

from holrr import HOLRRCV, MLMTNC, MLMTNCCV, TraceNormRegression, TraceNormRegressionCV
from problems import toy


def separate_errors(make, candidates, splits, X, Y, w=None):
    """Held-out mean squared errors of separate fits, of shape (n_folds, n_candidates)."""
    errors = np.empty((len(splits), len(candidates)))
    for i, (train, test) in enumerate(splits):
        for k, candidate in enumerate(candidates):
            model = make(candidate).fit(X[train], Y[train], None if w is None else w[train])
            squares = (model.predict(X[test]) - Y[test]) ** 2
            each = squares.reshape(len(test), -1).mean(axis=1)
            errors[i, k] = np.average(each, weights=None if w is None else w[test])
    return errors


CVS = [KFold(3), ShuffleSplit(3, test_size=0.3, random_state=0)]


@pytest.mark.parametrize("cv", CVS, ids=["partition", "random"])
@pytest.mark.parametrize(("n", "d0", "weighted"), [(40, 5, True), (9, 8, False)])
def test_errors_of_trace_norm_equal_those_of_separate_fits(cv, n, d0, weighted):
    X, Y = toy(n=n, d0=d0)
    w = np.random.default_rng(1).uniform(0.1, 2, n) if weighted else None
    penalties = [0.1, 30.0, 0.0, 3.0]
    model = TraceNormRegressionCV(penalties, cv=cv, tol=1e-8, max_iter=10000).fit(X, Y, w)
    expected = separate_errors(
        lambda penalty: TraceNormRegression(penalty, tol=1e-8, max_iter=10000),
        penalties, list(cv.split(X)), X, Y, w,
    )  # fmt: skip
    assert_allclose(model.cv_results_["fold_mse"], expected, rtol=2e-3)
    assert_allclose(model.cv_results_["mean_mse"], expected.mean(axis=0), rtol=2e-3)
    assert model.penalty_ == penalties[int(expected.mean(axis=0).argmin())]
    final = TraceNormRegression(model.penalty_, tol=1e-8, max_iter=10000).fit(X, Y, w)
    assert_allclose(model.coef_, final.coef_, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("cv", CVS, ids=["partition", "random"])
@pytest.mark.parametrize("init", ["holrr", "random"])
def test_errors_of_mlmtnc_equal_those_of_separate_fits(cv, init):
    X, Y = toy()
    ranks, betas = [1, (3, 2, 2)], [0.01, 1.0, 20.0]
    params = {"init": init, "tol": 1e-10}
    model = MLMTNCCV(ranks, betas, cv=cv, random_state=0, **params).fit(X, Y)
    seed = model.best_estimator_.random_state
    candidates = [(R, b) for R in ranks for b in betas]
    expected = separate_errors(
        lambda c: MLMTNC(*c, random_state=seed, **params), candidates, list(cv.split(X)), X, Y
    )
    assert_allclose(model.cv_results_["fold_mse"].reshape(3, 6), expected, rtol=1e-6)
    best = candidates[int(expected.mean(axis=0).argmin())]
    assert (model.best_estimator_.rank, model.beta_) == best
    final = MLMTNC(*best, random_state=seed, **params).fit(X, Y)
    assert_allclose(model.coef_, final.coef_, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("shape", [(), (1,), (3, 4)], ids=str)
@pytest.mark.parametrize("make", [TraceNormRegressionCV, MLMTNCCV])
def test_default_grids_contain_the_best_candidate(make, shape):
    X, Y = toy(n=60, shape=shape, noise=2.0)
    model = make(cv=3).fit(X, Y)
    errors = model.cv_results_["mean_mse"]
    assert errors.min() == -model.best_score_ == model.held_out_mse_ < 0.8 * Y.var(axis=0).mean()
    assert 0 < model.best_index_[-1] < errors.shape[-1] - 1
    assert errors.min() < 0.999 * errors[..., [0, -1]].min()
    assert model.predict(X[:2]).shape == (2, *shape)
    assert model.score(X, Y) > 0.3


@pytest.mark.parametrize(("scale_x", "scale_y"), [(10.0, 300.0), (1e100, 1e-70), (1e-70, 1e80)])
@pytest.mark.parametrize("make", [TraceNormRegressionCV, MLMTNCCV])
def test_default_grids_do_not_depend_on_the_units(make, scale_x, scale_y):
    X, Y = toy(n=60, noise=2.0)
    plain, scaled = make(cv=3).fit(X, Y), make(cv=3).fit(X * scale_x, Y * scale_y)
    assert scaled.best_index_ == plain.best_index_
    found = scaled.cv_results_["fold_mse"] / scale_y / scale_y
    assert_allclose(found, plain.cv_results_["fold_mse"], rtol=1e-3)


@pytest.mark.parametrize(("scale_x", "scale_y"), [(10.0, 300.0), (1e100, 1e-70), (1e-70, 1e80)])
def test_penalties_are_in_the_units_of_the_data(scale_x, scale_y):

    X, Y = toy()
    plain = TraceNormRegressionCV([1.0, 10.0], cv=3, alpha=5.0).fit(X, Y)
    penalties, alpha = np.array([1.0, 10.0]) * scale_x * scale_y, 5.0 * scale_x * scale_x
    scaled = TraceNormRegressionCV(penalties, cv=3, alpha=alpha).fit(X * scale_x, Y * scale_y)
    found = scaled.cv_results_["fold_mse"] / scale_y / scale_y
    assert_allclose(found, plain.cv_results_["fold_mse"], rtol=1e-3)
    without = TraceNormRegressionCV([1.0, 10.0], cv=3).fit(X, Y).cv_results_["fold_mse"]
    assert np.abs(found / without - 1).max() > 0.01


@pytest.mark.filterwarnings("error")
def test_grid_is_not_widened_beyond_the_penalty_of_zero_coefficients():
    rng = np.random.default_rng(0)
    model = TraceNormRegressionCV(cv=3).fit(rng.normal(size=(60, 5)), rng.normal(size=(60, 3, 4)))
    assert model.best_index_ == (0,)
    assert model.penalties_.size == 16


def test_default_penalties_start_at_penalty_max():
    X, Y = toy()
    model = TraceNormRegressionCV(cv=3).fit(X, Y)
    largest = TraceNormRegression().fit(X, Y).penalty_max_
    assert_allclose(model.penalties_[0], largest, rtol=1e-10)
    assert np.all(np.diff(model.penalties_) < 0)


@pytest.mark.filterwarnings("ignore:The best penalty")
def test_default_rank_is_that_of_holrr():
    X, Y = toy(n=80, d0=6, shape=(4, 5), noise=1.0)
    model = MLMTNCCV(cv=KFold(4)).fit(X, Y)
    assert model.ranks_ == [HOLRRCV(cv=KFold(4)).fit(X, Y).best_params_["rank"]]


def test_random_starts_differ_between_searches_and_agree_within_one():
    X, Y = toy()
    search = MLMTNCCV([2], [0.1, 1.0], cv=2, init="random", max_iter=1, tol=0.0)
    with pytest.warns(ConvergenceWarning):
        one, two = (clone(search).fit(X, Y) for _ in range(2))
    seed = one.best_estimator_.random_state
    final = MLMTNC(2, one.beta_, init="random", max_iter=1, tol=0.0, random_state=seed)
    with pytest.warns(ConvergenceWarning):
        final.fit(X, Y)
    assert_allclose(final.coef_, one.coef_, rtol=1e-9)
    assert not np.allclose(one.coef_, two.coef_)


@pytest.mark.parametrize("make", [TraceNormRegressionCV, MLMTNCCV])
def test_results_do_not_depend_on_the_number_of_jobs(make):
    X, Y = toy()
    groups = np.arange(len(X)) % 5
    one = make(cv=GroupKFold(2)).fit(X, Y, groups=groups)
    two = make(cv=GroupKFold(2), n_jobs=2).fit(X, Y, groups=groups)
    assert_array_equal(one.cv_results_["fold_mse"], two.cv_results_["fold_mse"])


@pytest.mark.filterwarnings("ignore:(The trace norm|MLMT-NC):sklearn.exceptions.ConvergenceWarning")
def test_fits_of_folds_that_do_not_converge_give_one_warning():
    X, Y = toy()
    with pytest.warns(ConvergenceWarning, match=r"6 fits .*max_iter=1"):
        TraceNormRegressionCV([1.0, 2.0], cv=3, max_iter=1, tol=0.0).fit(X, Y)
    with pytest.warns(ConvergenceWarning, match=r"3 fits .*max_iter=1"):
        MLMTNCCV([2], [1.0], cv=3, max_iter=1, tol=0.0).fit(X, Y)


def test_other_array_libraries_give_the_same_choice(xp):
    X, Y = toy()
    for make in (
        lambda: TraceNormRegressionCV([0.3, 3.0], cv=2),
        lambda: MLMTNCCV(None, [0.1, 1.0], cv=2),
        lambda: MLMTNCCV([2], cv=2, tol=1e-2),
    ):
        expected = make().fit(X, Y)
        model = make().fit(xp.asarray(X), xp.asarray(Y))
        assert xp.owns(model.coef_)
        assert model.best_index_ == expected.best_index_
        assert_allclose(xp.to_numpy(model.coef_), expected.coef_, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (TraceNormRegressionCV([-1.0, 1.0]), ValueError, "penalties must be finite"),
        (TraceNormRegressionCV([]), ValueError, "penalties"),
        (TraceNormRegressionCV(["a"]), TypeError, "penalties must be numbers"),
        (TraceNormRegressionCV([1.0], mode_weights=(1,)), ValueError, "mode_weights must have 3"),
        (MLMTNCCV([2], [0.0]), ValueError, "betas must be finite"),
        (MLMTNCCV([2], [np.nan]), ValueError, "betas must be finite"),
        (MLMTNCCV([(2, 2)]), ValueError, "ranks.*3 entries"),
        (MLMTNCCV([]), ValueError, "ranks"),
        (MLMTNCCV([2], cv=1), ValueError, "n_splits"),
    ],
)
def test_bad_candidates_raise(model, error, message):
    X, Y = toy()
    before = dict(vars(model))
    with pytest.raises(error, match=message):
        model.fit(X, Y)
    assert vars(model) == before


@pytest.mark.parametrize("make", [TraceNormRegressionCV, MLMTNCCV])
def test_progress_is_shown_on_request(make, capsys):
    make(cv=2, verbose=True).fit(*toy())
    shown = capsys.readouterr()
    assert make.__name__ in shown.err
    assert not shown.out  # fits of the folds show nothing
