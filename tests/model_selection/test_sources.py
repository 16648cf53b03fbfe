"""Sources of the problems of searches: the same problems, whatever the data are."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import KFold

from holrr import HOLRRCV, KernelHOLRRCV, Moments
from holrr.core.spectral import spectral_from_samples
from holrr.data.validation import Samples
from holrr.kernel.candidates import check_kernels
from holrr.kernel.sources import Gram
from holrr.model_selection import linear
from holrr.model_selection.folds import Fold, make_folds
from holrr.model_selection.sources import FoldMoments, Problem, Problems, Rows, Source
from holrr.model_selection.surface import HeldOut
from problems import toy

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty")


def sources(X, Y):
    """Rows, sums and Gram matrices of the same data, each with a candidate."""
    splits, data = list(KFold(4).split(X)), Samples(X, Y)
    parts = [Moments.from_arrays(X[test], Y[test]) for _, test in splits]
    (kernel,) = check_kernels("linear", {}, None, X)
    return [
        (Rows(data, splits), None),
        (FoldMoments(parts), None),
        (Gram(data, splits), kernel),
    ]


@pytest.mark.parametrize(("n", "d0"), [(40, 5), (16, 30)], ids=["tall", "wide"])
def test_all_sources_make_the_same_problems_and_held_out_data(n, d0):
    X, Y = toy(n, d0, noise=1.0)
    found = []
    for source, candidate in sources(X, Y):
        problems = Problems(source, [candidate])
        problems.open(0)
        kept = problems.at(1, 0, 0.1)
        spectral, held = kept.problem.spectral, kept.held_out
        T = spectral.T.reshape(len(spectral.s), -1)
        C, B = (held.C, held.B) if held.C is not None else (held.F.T @ held.F, held.F.T @ held.Y)
        B = B.reshape(len(spectral.s), -1)
        found.append((spectral.s, T.T @ T, spectral.syy, np.diag(C), T.T @ B, held.yy, held.size))
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            assert_allclose(b, a, rtol=1e-8, atol=1e-8)


def test_problems_hold_no_functions():
    """Records between the steps of a search are data, which can be copied and written."""
    X, Y = toy(40, noise=1.0)

    def check(value, seen):
        if id(value) in seen:
            return
        seen.add(id(value))
        assert not callable(value), value
        if isinstance(value, (list, tuple)):
            for one in value:
                check(one, seen)
        elif hasattr(value, "__dict__") and not isinstance(value, np.ndarray):
            for one in vars(value).values():
                check(one, seen)

    for source, candidate in sources(X, Y):
        problems = Problems(source, [candidate])
        problems.open(0)
        for fold in range(4):
            kept = problems.at(fold, 0, 0.1)
            check([kept.problem.spectral, kept.held_out, source.folds], set())
        check([value for value in vars(source).values() if value is not None], set())


def test_problems_are_computed_once_for_the_smallest_penalty(monkeypatch):
    X, Y = toy(40, noise=1.0)
    problems = Problems(sources(X, Y)[0][0])
    first = problems.at(2, 0, 0.1)
    assert problems.at(2, 0, 1.0) is first
    assert problems.at(2, 0, 0.01) is not first
    path = problems.path(2, 0, 0.01, (2, 2, 2))
    assert problems.path(2, 0, 0.01, (2, 2, 2)) is path
    assert problems.path(2, 0, 0.01, (3, 2, 2)) is not path
    monkeypatch.setattr("holrr.model_selection.sources._KEPT", 0)
    few = Problems(sources(X, Y)[0][0])
    assert few.at(0, 0, 0.1) is few.at(0, 0, 0.1)  # the first problem is always kept
    assert few.at(1, 0, 0.1) is not few.at(1, 0, 0.1)
    assert not few.keeps_all


class Decomposed(Source):
    """A fourth source: samples, which are always decomposed themselves."""

    def __init__(self, data, splits, *, fit_intercept=True):
        self.rows, self.folds = Rows(data, splits, fit_intercept=fit_intercept), make_folds(splits)
        self.fit_intercept, self.data, self.shape = fit_intercept, data, self.rows.shape
        self.max_input_rank, self.n_training = self.rows.max_input_rank, self.rows.n_training

    def problem(self, fold, candidate, min_alpha):
        X, Y = self.data.X[fold.train], self.data.Y[fold.train]
        return Problem(spectral_from_samples(X, Y, fit_intercept=self.fit_intercept))

    def held_out(self, problem, fold):
        found = problem.spectral
        F = (self.data.X[fold.test] - found.mean_x) @ found.basis
        return HeldOut.from_features(F, self.data.Y[fold.test], found.mean_y)

    def residuals(self, problem, fit, fold):
        return self.rows.residuals(problem, fit, fold)

    def default_alphas(self, candidates):
        return self.rows.default_alphas(candidates)

    def refit(self, candidate, options):
        return self.rows.refit(candidate, options)


def test_a_fourth_source_is_one_class(monkeypatch):
    X, Y = toy(40, noise=1.0)
    expected = HOLRRCV(cv=4).fit(X, Y)
    monkeypatch.setattr(linear, "Rows", Decomposed)
    found = HOLRRCV(cv=4).fit(X, Y)
    assert_allclose(found.predict(X), expected.predict(X), rtol=1e-8, atol=1e-8)
    assert found.held_out_mse_ == pytest.approx(expected.held_out_mse_, rel=1e-9)
    lower, upper = found.predict_interval(X)
    assert_allclose(upper - lower, np.subtract(*expected.predict_interval(X)[::-1]), rtol=1e-6)


def test_folds_without_sums_have_only_indices():
    splits = [(np.arange(4), np.arange(4, 6))]
    (fold,) = make_folds(splits)
    assert isinstance(fold, Fold)
    assert fold.seen is fold.unseen is None


def test_a_linear_kernel_and_the_inputs_have_the_same_search():
    X, Y = toy(40, noise=1.0)
    how = {"alphas": [0.1, 1.0, 10.0], "cv": 4, "selection": "min"}
    kernel, rows = KernelHOLRRCV(kernel="linear", **how).fit(X, Y), HOLRRCV(**how).fit(X, Y)
    assert kernel.rank_ == rows.rank_
    assert kernel.held_out_mse_ == pytest.approx(rows.held_out_mse_, rel=1e-9)
