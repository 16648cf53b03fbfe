"""The steps of a search, each by itself: penalties, ranks, error surface, choice, residuals."""

import math
import threading
from dataclasses import replace

import numpy as np
import pytest
from brute_force import brute_force
from sklearn.model_selection import KFold

from holrr import HOLRR, HOLRRCV, RLS, RLSCV
from holrr.core.approximate import MultilinearRank
from holrr.data.validation import Samples
from holrr.model_selection.folds import Problems, sample_folds
from holrr.model_selection.grid import RankGrid, multilinear_grid
from holrr.model_selection.search import (
    SearchOptions,
    Surface,
    check_some_finite,
    choose,
    compute_surface,
    cross_validate,
    default_penalties,
    fold_residuals,
    n_parallel,
    over_folds,
    plan_ranks,
    results_of,
    scaled_penalties,
)
from holrr.progress import progress

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty")

ALPHAS = np.array([0.3, 20.0])


def options_of(max_rank=None, ranks=None, **options):
    return SearchOptions(
        "test",
        lambda shape: multilinear_grid(max_rank, ranks, shape),
        MultilinearRank,
        **{"alphas": ALPHAS, **options},
    )


def problems_of(X, Y, n_folds=3):
    return Problems(sample_folds(Samples(X, Y).scaled(), list(KFold(n_folds).split(X))))


def surface_of(problems, options, alphas=ALPHAS):
    grid, _ = plan_ranks(problems.folds, options, len(alphas))
    with progress("test", False) as bar:
        return compute_surface(problems, alphas, grid, options, bar)


# ---------------------------------------------------------------- the error surface


def test_the_surface_equals_brute_force(make_data):
    X, Y = make_data()
    problems = problems_of(X, Y)
    found = surface_of(problems, options_of())
    assert found.fold_mse.shape == (3, 1, 2, 3, 3, 2)
    expected = brute_force(X, Y, list(KFold(3).split(X)), ALPHAS, (3, 3, 2))
    np.testing.assert_allclose(found.fold_mse[:, 0], expected, rtol=1e-9)
    np.testing.assert_allclose(found.mean_mse[0], expected.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(found.ridge_errors, expected.mean(axis=0)[None, :, -1, -1, -1])
    assert found.ridge_mse == found.ridge_errors.min()
    nulls = [np.square(Y[b] - Y[a].mean(axis=0)).mean() for a, b in KFold(3).split(X)]
    assert found.null_mse == pytest.approx(np.mean(nulls))
    assert found.n_supported == 3
    whole = cross_validate(problems, options_of())
    np.testing.assert_array_equal(whole.fold_mse, found.fold_mse)


def test_a_surface_is_joined_with_that_of_more_penalties(make_data):
    problems, options = problems_of(*make_data()), options_of()
    some, more = (surface_of(problems, options, np.array(a)) for a in ([0.3, 20.0], [1.0, 5.0]))
    every = np.array([0.3, 20.0, 1.0, 5.0])
    both = surface_of(problems, options, every)
    for order in ([0, 1, 2, 3], [2, 3, 0, 1], [0, 2, 3, 1], [3, 1, 0, 2]):
        found = some.joined(more, np.array(order))
        np.testing.assert_array_equal(found.alphas, every[order])
        np.testing.assert_allclose(found.fold_mse, both.fold_mse[:, :, order], rtol=1e-12)
        np.testing.assert_allclose(found.mean_mse, both.mean_mse[:, order], rtol=1e-12)
        np.testing.assert_allclose(found.ridge_errors, both.ridge_errors[:, order], rtol=1e-12)
        assert found.ridge_mse == both.ridge_errors.min()
    bare = replace(more, ridge_errors=None)
    assert some.joined(bare, np.arange(4)).ridge_errors is None


def test_the_profile_of_a_surface_is_the_least_error_of_each_penalty(make_data):
    problems = problems_of(*make_data())
    found = surface_of(problems, options_of(ranks=[(1, 1, 1), (3, 2, 2)]))
    least, folds = found.profile()
    np.testing.assert_allclose(least, np.nanmin(found.mean_mse, axis=(0, 2, 3, 4)))
    assert folds.mean() == pytest.approx(least.min())
    assert folds.shape == (3,)


def test_a_surface_is_cut_to_the_ranks_that_folds_support(make_data):
    """Training sets of six samples support five directions about their mean."""
    X, Y = make_data(n=9, d0=12)
    problems = problems_of(X, Y)
    found = surface_of(problems, options_of())
    assert found.fold_mse.shape[3] == 6
    cut = found.supported()
    assert cut.grid.caps == (5, 3, 2)
    np.testing.assert_array_equal(cut.fold_mse, found.fold_mse[:, :, :, :5])
    listed = surface_of(problems, options_of(ranks=[(12, 1, 1), (2, 1, 1)])).supported()
    where = np.argwhere(np.isfinite(listed.mean_mse[0, 0]))
    assert [tuple(index + 1) for index in where] == [(2, 1, 1), (5, 1, 1)]


def test_the_surface_of_ridge_regression_is_its_own_baseline():
    fold_mse = np.array([[[2.0, 1.0, 3.0]], [[4.0, 2.0, 3.0]]])
    surface = Surface(fold_mse, np.array([0.1, 1.0, 10.0]), RankGrid(()), 9.0, 1)
    assert math.isnan(surface.ridge_mse)
    np.testing.assert_array_equal(surface.supported().ridge_errors, [[3.0, 1.5, 3.0]])
    assert surface.supported().ridge_mse == 1.5


def test_a_search_without_any_finite_error_is_an_error():
    check_some_finite(np.array([np.nan, np.inf, 1.0]), "mean_mse")
    for bad in ([np.inf, np.inf], [np.nan, np.inf]):
        with pytest.raises(ValueError, match="finite mean_mse"):
            check_some_finite(np.array(bad), "mean_mse")


# ---------------------------------------------------------------- penalties and ranks


@pytest.mark.parametrize("power", [-400, 0, 400])
def test_penalties_are_in_the_units_of_the_data(make_data, power):
    """The inputs are divided by a power of two, and the penalties by its square."""
    X, Y = make_data()
    plain = problems_of(X, Y).folds
    folds = problems_of(X * 2.0**power, Y).folds
    found, expected = default_penalties(folds), default_penalties(plain)
    np.testing.assert_allclose(found / 2.0**power / 2.0**power, expected, rtol=1e-9)
    np.testing.assert_allclose(
        scaled_penalties(found, folds) * (folds.x_unit / 2.0**power) ** 2, expected, rtol=1e-9
    )


def test_default_penalties_stay_in_the_range_of_floats(make_data):
    X, Y = make_data()
    found = default_penalties(problems_of(X * 1e160, Y).folds)
    assert np.isfinite(found).all()
    assert np.unique(found).size == found.size
    assert (default_penalties(problems_of(X * 1e-165, Y).folds) >= 0).all()


def test_ranks_and_further_penalties_fit_the_memory_budget(make_data):
    """The surfaces of three folds, their mean and deviation; a stack needs no more."""
    folds = problems_of(*make_data(d0=4)).folds
    one = 8 * (4 * 3 * 2) * (3 + 2)
    for selection in ("min", "1se", "stack"):
        options = options_of(selection=selection)
        for extra, size in ((0, 5), (one - 1, 5), (one, 6)):
            grid, more = plan_ranks(folds, replace(options, max_bytes=7 * one + extra), 2)
            assert grid.caps == (4, 3, 2)
            assert more == size
        assert plan_ranks(folds, replace(options, max_bytes=2 * one), 2)[1] == 0
        with pytest.warns(UserWarning, match="max_bytes"):
            grid, _ = plan_ranks(folds, replace(options, max_bytes=2 * one - 1), 2)
        assert grid.caps == (3, 3, 2)


# ---------------------------------------------------------------- folds in parallel


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_results_of_folds_are_in_order_and_share_memory(n_jobs):
    seen, lock = {}, threading.Lock()

    def run(fold):
        with lock:
            seen[fold] = True
        return fold * fold

    assert over_folds(5, run, n_jobs) == [0, 1, 4, 9, 16]
    assert sorted(seen) == list(range(5))


def test_no_more_jobs_than_folds(make_data):
    folds = problems_of(*make_data()).folds
    assert n_parallel(folds, 1) == 1
    assert n_parallel(folds, 2) == 2
    assert n_parallel(folds, 64) == 3
    assert n_parallel(folds, None) == 1  # a small problem


# ---------------------------------------------------------------- choice and residuals


@pytest.mark.parametrize("selection", ["stack", "min", "1se"])
def test_residuals_are_those_of_the_choice_in_every_fold(make_data, selection):
    X, Y = make_data(noise=3.0)
    problems, options = problems_of(X, Y), options_of(selection=selection)
    surface = cross_validate(problems, options)
    choice = choose(problems, surface, results_of(surface, problems.folds.shape, options), options)
    assert (choice.stack is None) == (selection != "stack")
    found = fold_residuals(problems, choice, ALPHAS.min(), options)
    for (train, test), part, k in zip(KFold(3).split(X), found, range(3), strict=True):
        if choice.stack is None:
            model = HOLRR(choice.structure.rank, choice.alpha).fit(X[train], Y[train])
            predicted, factor = model.predict(X[test]), model._std_factor(X[test], X[test])
            np.testing.assert_allclose(part.factor, factor, rtol=1e-9)
        else:  # the separate fits, with the weights that this fold did not contribute to
            weights = choice.stack.fold_weights[k]
            predicted = (1 - weights.sum()) * Y[train].mean(axis=0)
            for piece, weight in zip(choice.stack.parts, weights, strict=True):
                alpha = ALPHAS[piece.place]
                model = RLS(alpha) if piece.rank is None else HOLRR(piece.rank, alpha)
                predicted = predicted + weight * model.fit(X[train], Y[train]).predict(X[test])
            factor = part.factor
        residual = (Y[test] - predicted).reshape(len(test), -1) / factor[:, None]
        np.testing.assert_allclose(part.scaled(slice(None)), residual, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(
            part.predictions(), predicted.reshape(len(test), -1), rtol=1e-7, atol=1e-9
        )
        np.testing.assert_array_equal(part.rows, test)
        residual = part.scaled(slice(None)) * part.factor[:, None]
        if choice.stack is None:
            error = surface.fold_mse[(k, 0, *choice.index)]
            assert np.mean(residual**2) == pytest.approx(error, rel=1e-9)
    if choice.stack is not None:  # whose cross-fitted error is that of the weights of other folds
        squares = [np.mean((p.scaled(slice(None)) * p.factor[:, None]) ** 2) for p in found]
        assert np.mean(squares) == pytest.approx(choice.error, rel=1e-9)


def test_the_error_of_the_choice_is_the_held_out_error_of_the_search(make_data):
    """Its score is that of the best single model."""
    X, Y = make_data(noise=3.0)
    for selection in ("stack", "min", "1se"):
        problems, options = problems_of(X, Y), options_of(selection=selection)
        surface = cross_validate(problems, options)
        results = results_of(surface, problems.folds.shape, options)
        choice = choose(problems, surface, results, options)
        search = HOLRRCV(ALPHAS, cv=3, selection=selection).fit(X, Y)
        assert choice.index == search.best_index_
        assert choice.alpha == search.alpha_
        assert choice.error == pytest.approx(search.held_out_mse_, rel=1e-12)
        assert results["mean_mse"][choice.index] == pytest.approx(-search.best_score_, rel=1e-12)
        a, *rank = choice.index
        rank = tuple(R + 1 for R in rank)
        assert search.best_params_ == {"alpha": ALPHAS[a], "rank": rank}
        if choice.stack is None:
            assert choice.error == -search.best_score_
            assert choice.structure.rank == rank
            assert choice.fold_structures == ()
            continue
        assert choice.structure_of_fold(1) is choice.fold_structures[1]
        mixed = {
            (ALPHAS[part.place], part.rank): weight
            for part, weight in zip(choice.stack.parts, choice.stack.weights, strict=True)
            if weight > 0
        }
        shown = zip(search.stack_alphas_, search.stack_ranks_, strict=True)
        assert dict(zip(shown, search.stack_weights_, strict=True)) == pytest.approx(mixed)
        assert np.all(np.diff(search.stack_weights_) <= 0)


def test_a_search_has_the_attributes_of_its_final_model(make_data):
    X, Y = make_data()
    for search in (HOLRRCV(ALPHAS), RLSCV(ALPHAS)):
        search.fit(X, Y)
        for name in ("tucker_", "intercept_", "objective_", "solver_", "spectra_", "_hat"):
            assert vars(search)[name] is vars(search.best_estimator_)[name]
        np.testing.assert_array_equal(search.noise_, search.best_estimator_.noise_)
