"""Splits of the samples, and the training problems and held-out data of each fold."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.model_selection import KFold

from holrr import HOLRRCV, RLSCV, Moments
from holrr.core.approximate import MultilinearRank
from holrr.core.moments import merge_others
from holrr.core.spectral import spectral_from_arrays
from holrr.data.validation import Samples
from holrr.linear.fit import LinearOptions, fit_data
from holrr.model_selection import folds
from holrr.model_selection.criteria import criterion_results
from holrr.model_selection.folds import (
    Folds,
    Problems,
    is_partition,
    moment_data,
    sample_folds,
    sample_residuals,
)
from holrr.model_selection.grid import multilinear_grid
from holrr.model_selection.search import SearchOptions, run_search
from holrr.model_selection.surface import HeldOut

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty")

ALPHAS = [0.1, 1.0, 10.0, 100.0]


def test_partitions_are_recognised():
    a, b = np.arange(3), np.arange(3, 7)
    assert is_partition([(a, b), (b, a)], 7)
    assert not is_partition([(a, b)], 7)
    assert not is_partition([(a, b), (b, a[:2])], 7)
    assert not is_partition([(a, b), (b, b)], 7)
    assert not is_partition([(np.array([0, 1, 1]), b), (b, a)], 7)


def test_merged_moments_leave_out_one_part(make_data):
    X, Y = make_data()
    parts = [Moments.from_arrays(X[i::4], Y[i::4]) for i in range(4)]
    for i, merged in enumerate(merge_others(parts)):
        others = np.arange(len(X)) % 4 != i
        expected = Moments.from_arrays(X[others], Y[others])
        np.testing.assert_allclose(merged.Sxy, expected.Sxy, rtol=1e-12)
        np.testing.assert_allclose(merged.mean_y, expected.mean_y, rtol=1e-12)
        assert merged.syy == pytest.approx(expected.syy, rel=1e-12)


def test_the_null_error_is_that_of_the_training_means(make_data):
    X, Y = make_data()
    splits = list(KFold(4).split(X))
    nulls = [((Y[test] - Y[train].mean(axis=0)) ** 2).mean() for train, test in splits]
    found = RLSCV(ALPHAS, cv=splits).fit(X, Y).cv_results_["null_mse"]
    assert found == pytest.approx(np.mean(nulls))


def test_indices_of_splits_may_be_negative(make_data):
    X, Y = make_data()
    splits = list(KFold(3).split(X))
    backwards = [(train - len(X), test - len(X)) for train, test in splits]
    a, b = (RLSCV(ALPHAS, cv=cv).fit(X, Y).cv_results_["fold_mse"] for cv in (splits, backwards))
    np.testing.assert_array_equal(a, b)


def test_moments_of_all_folds_are_kept_only_where_memory_allows(make_data, monkeypatch):
    X, Y = make_data()
    splits, calls = list(KFold(3).split(X)), []

    def counted(parts, **options):
        calls.append(len(parts))
        return moment_data(parts, **options)

    monkeypatch.setattr(folds, "moment_data", counted)
    needed = 3 * 3 * 8 * X.shape[1] * Y[0].size
    expected = folds.sample_folds(Samples(X, Y), splits, max_bytes=needed)
    expected.prepare(0)
    assert calls == [3]
    found = folds.sample_folds(Samples(X, Y), splits, max_bytes=needed - 1)
    found.prepare(0)
    assert calls == [3]
    for fold in range(3):
        a, b = (record.problem(fold, 0, 1.0) for record in (expected, found))
        np.testing.assert_allclose(a[0].s, b[0].s, rtol=1e-12)
        assert a[1].yy == pytest.approx(b[1].yy, rel=1e-12)


def test_problems_are_computed_once_where_memory_allows(make_data, monkeypatch):
    X, Y = make_data()
    computed = []
    record = sample_folds(Samples(X, Y), list(KFold(3).split(X)))

    def problem(*key):
        computed.append(key)
        return record.problem(*key)

    counted = replace(record, problem=problem)
    kept = Problems(counted)
    assert kept.keeps_all
    for _ in range(2):
        for fold in range(3):
            kept(fold, 0, 1.0)
    assert computed == [(fold, 0, 1.0) for fold in range(3)]
    kept(0, 0, 0.1)  # smaller penalties may need another decomposition
    assert computed[3:] == [(0, 0, 0.1)]
    monkeypatch.setattr(folds, "_KEPT", 0)
    computed.clear()
    kept = Problems(counted)
    assert not kept.keeps_all
    for _ in range(2):
        for fold in range(2):
            kept(fold, 0, 1.0)
    assert len(computed) == 3  # the first one is always kept


def test_a_block_may_have_no_weight(monkeypatch):
    """Scattered samples are copied in blocks of at least 64, here all without weight."""
    rng = np.random.default_rng(0)
    X, Y, w = rng.normal(size=(300, 3)), rng.normal(size=(300, 2)), np.ones(300)
    w[:200] = 0
    cv = KFold(2, shuffle=True, random_state=0)
    expected = RLSCV(ALPHAS, cv=cv).fit(X, Y, w).cv_results_["fold_mse"]
    monkeypatch.setattr(folds, "_BLOCK", 1)
    found = RLSCV(ALPHAS, cv=cv).fit(X, Y, w).cv_results_["fold_mse"]
    np.testing.assert_allclose(found, expected)


def test_the_largest_training_set_limits_the_input_rank():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(9, 8)), rng.normal(size=(9, 7))
    parts = [Moments.from_arrays(X[i], Y[i]) for i in (slice(3), slice(3, 9))]
    model = HOLRRCV.from_fold_moments(parts, alphas=[1.0, 10.0], selection="min")
    assert model.cv_results_["mean_mse"].shape == (2, 5, 7)


# ---------------------------------------------------------------- a new family of models


def polynomial_folds(X, Y, degrees, splits):
    """Folds of regressions on powers of the inputs; the candidates are the largest powers."""
    features = [np.concatenate([X**k for k in range(1, degree + 1)], axis=1) for degree in degrees]
    n_features = max(F.shape[1] for F in features)
    features = [np.pad(F, ((0, 0), (0, n_features - F.shape[1]))) for F in features]
    data = [Samples(F, Y) for F in features]

    def problem(fold, candidate, min_alpha):
        train, test = splits[fold]
        F = features[candidate]
        found = spectral_from_arrays(F[train], Y[train], min_alpha=min_alpha)
        held_out = (F[test] - found.mean_x) @ found.basis
        return found, HeldOut.from_features(held_out, Y[test], found.mean_y)

    return Folds(
        n_folds=len(splits),
        shape=(n_features, *Y.shape[1:]),
        max_input_rank=n_features,
        problem=problem,
        full_problem=lambda candidate, min_alpha: (
            spectral_from_arrays(features[candidate], Y, min_alpha=min_alpha),
            float(len(Y)),
        ),
        residuals=lambda fold, candidate, fit: sample_residuals(
            data[candidate], splits[fold][1], fit
        ),
        default_alphas=lambda: np.logspace(-2, 4, 13),
        refit=lambda candidate, options: fit_data(data[candidate], options)[0],
        n_candidates=len(degrees),
    )


@pytest.mark.parametrize("selection", ["stack", "min", "1se"])
def test_a_record_of_functions_cross_validates_a_new_family(selection):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    F = np.concatenate([X, X**2], axis=1)
    Y = np.tensordot(F, rng.normal(size=(6, 4, 2)), 1) + rng.normal(size=(60, 4, 2))
    splits, degrees = list(KFold(4).split(X)), [1, 2, 3]
    alphas = np.logspace(-2, 4, 13)
    options = SearchOptions(
        name="PolynomialCV",
        grid=lambda shape: multilinear_grid(None, None, shape),
        structure=lambda rank: MultilinearRank(rank),
        alphas=alphas,
        selection=selection,
        named_candidates=True,
    )

    def fit_options(choice):
        return LinearOptions(choice.structure, choice.alpha)

    found = run_search(polynomial_folds(X, Y, degrees, splits), options, fit_options)
    assert found.held_out is None
    assert found.choice.candidate == 1
    errors = found.results["mean_mse"]
    assert errors.shape == (3, 13, 8, 4, 2)
    for candidate, degree in enumerate(degrees):
        powers = np.concatenate([X**k for k in range(1, degree + 1)], axis=1)
        search = HOLRRCV(alphas, cv=splits, selection=selection).fit(powers, Y)
        expected = search.cv_results_["mean_mse"]
        size = tuple(slice(n) for n in expected.shape)
        np.testing.assert_allclose(errors[candidate][size], expected, rtol=1e-9)
        if candidate == found.choice.candidate:
            assert found.choice.index[1:] == search.best_index_
            assert found.choice.alpha == search.alpha_
            assert found.choice.error == pytest.approx(search.held_out_mse_, rel=1e-9)
            best = errors[found.choice.index]
            assert -best == pytest.approx(search.best_score_, rel=1e-9)
            assert (found.choice.error == best) == (selection != "stack")
            new = np.pad(powers, ((0, 0), (0, 3)))
            predicted = found.fit.tucker.map_input(new) + found.fit.intercept
            np.testing.assert_allclose(predicted, search.predict(powers), rtol=1e-8, atol=1e-9)
            np.testing.assert_allclose(found.calibration.noise, search.noise_, rtol=1e-8)
            search.set_params(keep_held_out=True).fit(powers, Y)
            options = replace(options, keep_held_out=True)
            kept = run_search(polynomial_folds(X, Y, degrees, splits), options, fit_options)
            np.testing.assert_allclose(kept.held_out, search.held_out_, rtol=1e-8, atol=1e-9)


def test_a_new_family_has_default_penalties_and_criteria():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    Y = np.tensordot(X, rng.normal(size=(3, 4, 2)), 1) + rng.normal(size=(60, 4, 2))
    options = SearchOptions(
        name="PolynomialCV",
        grid=lambda shape: multilinear_grid(2, None, shape),
        structure=lambda rank: MultilinearRank(rank),
        selection="min",
        criteria=criterion_results,
    )

    def fit_options(choice):
        return LinearOptions(choice.structure, choice.alpha)

    record = polynomial_folds(X, Y, [1], list(KFold(4).split(X)))
    found = run_search(record, options, fit_options)
    alphas, errors = found.results["alphas"], found.results["mean_mse"]
    assert errors.shape == (15, 2, 2, 2)  # one unnamed candidate has no axis
    given = run_search(record, replace(options, alphas=np.logspace(-2, 4, 13)), fit_options)
    best = given.choice.index[0]
    assert 0 < best < 12
    np.testing.assert_allclose(np.delete(alphas, [best, best + 2]), np.logspace(-2, 4, 13))
    near = given.choice.alpha * 10.0 ** np.array([-0.25, 0.25])
    np.testing.assert_allclose(alphas[[best, best + 2]], near)
    np.testing.assert_allclose(
        np.delete(errors, [best, best + 2], axis=0), given.results["mean_mse"], rtol=1e-9
    )
    found = run_search(record, replace(options, criterion="bic"), fit_options)
    expected = HOLRRCV(np.logspace(-2, 4, 13), criterion="bic", max_rank=2).fit(X, Y)
    np.testing.assert_allclose(found.results["bic"], expected.cv_results_["bic"], rtol=1e-9)
    assert found.calibration is None
