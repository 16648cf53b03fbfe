"""Batches add to the moments only: a problem is solved once, when something of it is asked for."""

from __future__ import annotations

import copy
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from holrr import HOLRR, LRR, MLMTNC, RLS, KernelHOLRR, TraceNormRegression, io
from holrr.base import TensorRegressor
from problems import assert_same_state, toy

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture
def solves(monkeypatch):
    """One entry for every solved problem."""
    found, original = [], TensorRegressor._set_coefficients

    def counted(self, *args):
        found.append(type(self).__name__)
        return original(self, *args)

    monkeypatch.setattr(TensorRegressor, "_set_coefficients", counted)
    return found


def batched(row, X, Y, size=8, **params):
    if not row.batches:
        pytest.skip("no partial_fit")
    model = row.make(**row.pinned(X), **params)
    for start in range(0, len(X), size):
        model.partial_fit(X[start : start + size], Y[start : start + size])
    return model


def test_what_needs_no_solution_is_there_before_it(row, solves):
    X, Y = toy()
    model = batched(row, X, Y)
    check_is_fitted(model)
    assert model.n_features_in_ == X.shape[1]
    assert model.moments_.n_samples == len(X)
    assert model.labels_ is None
    assert not hasattr(model, "feature_names_in_")
    assert not hasattr(model, "_repr_nothing_")
    assert not hasattr(model, "no_parameter")
    repr(model), clone(model), model.get_params()
    model.partial_fit(X[:1], Y[:1])
    assert solves == []


def looks(row, folder, X, Y):
    yield lambda m: m.predict(X)
    yield lambda m: m.score(X, Y)
    yield lambda m: m.transform(X)
    yield lambda m: m.intercept_
    yield lambda m: m.n_parameters_
    yield lambda m: m.coef_ if row.linear else m.dual_coef_
    yield lambda m: hasattr(m, "noise_")
    yield lambda m: hasattr(m, "anything_")
    yield lambda m: check_is_fitted(m, "tucker_")
    yield lambda m: m.get_feature_names_out()
    yield lambda m: (m._repr_html_(), m.intercept_)  # newer ones of scikit-learn name the scores
    yield lambda m: m.to_xarray()
    yield copy.copy
    yield copy.deepcopy
    yield pickle.dumps
    yield lambda m: m.save(folder / "model.holrr")


def test_every_look_at_the_fit_solves_it_once(row, solves, tmp_path):
    X, Y = toy()
    pytest.importorskip("xarray", reason="xarray is not installed")
    expected = None
    for look in looks(row, tmp_path, X, Y):
        model = batched(row, X, Y)
        assert solves == []
        look(model)
        assert len(solves) == 1
        look(model)
        model.predict(X)
        assert len(solves) == 1
        solves.clear()
        expected = model if expected is None else expected
        vars(model).pop("_fitted_noise", None), vars(expected).pop("_fitted_noise", None)
        assert_same_state(model, expected)


def test_the_fit_is_that_of_the_moments(row):
    X, Y = toy()
    model = batched(row, X, Y)
    if row.takes_moments:
        model.predict(X)
        assert_same_state(model, row.make().fit_moments(model.moments_))
    else:
        row.near(model.predict(X), row.make(**row.pinned(X)).fit(X, Y).predict(X))


def test_copies_and_files_hold_the_fit(row, solves, tmp_path):
    X, Y = toy()
    model = batched(row, X, Y)
    io.save(model, tmp_path / "model.holrr")
    copies = [pickle.loads(pickle.dumps(model)), io.load(tmp_path / "model.holrr")]
    expected = model.predict(X)
    for other in copies:
        assert_array_equal(other.predict(X), expected)
    assert len(solves) == 1


def test_a_fit_or_a_batch_in_between_leaves_the_last_problem_unsolved(row, solves):
    X, Y = toy()
    model = batched(row, X, Y)
    model.fit(X, Y)
    assert len(solves) == 1
    assert_same_state(model, row.make(**row.pinned(X)).fit(X, Y))
    model = batched(row, X[:20], Y[:20])
    model.predict(X)
    del solves[:]
    model.partial_fit(X[20:], Y[20:]).predict(X)
    assert len(solves) == 1


PENALTIES = {"alpha": 50.0, "penalty": 9.0, "beta": 3.0}


def test_the_fit_is_that_of_the_parameters_at_the_last_batch(row):
    """As after any fit, parameters have no effect before the next."""
    X, Y = toy()
    expected = batched(row, X, Y).predict(X)
    model = batched(row, X, Y)
    name = next(name for name in ("penalty", "beta", "alpha") if name in row.params)
    model.set_params(**{name: PENALTIES[name]})
    model.note = "mine"
    assert_array_equal(model.predict(X), expected)
    assert model.get_params()[name] == PENALTIES[name]
    assert model.note == "mine"
    again = model.partial_fit(X[:1], Y[:1]).predict(X)
    assert np.abs(again - expected).max() > 1e-3


def test_threads_that_ask_at_the_same_time_get_the_same_fit(row, solves, monkeypatch):
    X, Y = toy()
    expected = batched(row, X, Y).predict(X)
    del solves[:]
    model, original = batched(row, X, Y), TensorRegressor._set_coefficients

    def slow(self, *args):
        time.sleep(0.05)
        return original(self, *args)

    monkeypatch.setattr(TensorRegressor, "_set_coefficients", slow)
    start = threading.Barrier(4)

    def ask(_):
        start.wait()
        return model.predict(X)

    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(ask, range(4)):
            assert_array_equal(found, expected)
    assert len(solves) == 1


def test_nobody_walks_through_attributes_that_another_thread_may_add(row):
    class Growing(dict):
        def __iter__(self):
            raise RuntimeError("dictionary changed size during iteration")

    X, Y = toy()
    model = batched(row, X, Y)
    model.__dict__ = Growing(vars(model))
    check_is_fitted(model)
    model.predict(X)
    model.score(X, Y)


@pytest.mark.parametrize("error", [ValueError, AttributeError, KeyboardInterrupt])
def test_an_error_of_the_solver_is_raised_by_every_look_and_is_no_end(row, error, monkeypatch):
    X, Y = toy()
    expected = batched(row, X, Y).predict(X)
    model = batched(row, X[:32], Y[:32])
    before = dict(vars(model))

    def fail(self, *args):
        self.intercept_ = "half done"
        raise error("the solver has failed")

    raised = RuntimeError if error is AttributeError else error
    with monkeypatch.context() as patch:
        patch.setattr(TensorRegressor, "_set_coefficients", fail)
        asked = [lambda: model.predict(X), lambda: hasattr(model, "rank_"), lambda: model.noise_]
        for ask in [*asked, lambda: pickle.dumps(model), lambda: model.coef_]:
            with pytest.raises(raised, match="the solver has failed"):
                ask()
            assert vars(model) == before
        model.partial_fit(X[32:], Y[32:])  # it can still go on
    assert_array_equal(model.predict(X), expected)


WRONG = [
    (HOLRR((2, 9, 2)), r"rank\[1\].*got 9"),
    (HOLRR((2, 2)), "rank must have 3 entries"),
    (HOLRR(solver="svd"), "solver='svd'"),
    (HOLRR(output_weight=[None, np.ones(4)]), "output_weight"),
    (LRR(rank=0), "rank"),
    (MLMTNC((2, 9, 2)), r"rank\[1\].*got 9"),
    (TraceNormRegression(mode_weights=(1.0, 1.0)), "mode_weights must have 3 entries"),
    (KernelHOLRR((2, 9, 2), n_components=5), r"rank\[1\].*got 9"),
]


@pytest.mark.parametrize(("model", "message"), WRONG, ids=str)
def test_what_the_shape_tells_is_refused_at_once(model, message):
    X, Y = toy()
    model = clone(model)
    before = dict(vars(model))
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X, Y)
    assert vars(model) == before


def test_what_only_the_solver_can_tell_is_told_when_asked():
    X, Y = toy()
    model = RLS(alpha=0, solver="cholesky").partial_fit(X[:2], Y[:2])
    with pytest.raises(ValueError, match="positive definite"):
        hasattr(model, "tucker_")
    assert np.isfinite(model.partial_fit(X, Y).predict(X)).all()  # more samples mend it


def test_the_next_fit_starts_from_the_last_that_was_solved():
    X, Y = toy()
    model = TraceNormRegression(1.0, warm_start=True, tol=1e-10).partial_fit(X, Y)
    n_iter = model.n_iter_
    assert model.partial_fit(X, Y).n_iter_ < n_iter
    model.set_params(warm_start=False).partial_fit(X, Y).predict(X)
    assert "_warm" not in vars(model)


def test_properties_keep_their_own_messages():
    X, Y = toy()
    model = KernelHOLRR(2, kernel="rbf", landmarks=X[:6]).partial_fit(X, Y)
    with pytest.raises(AttributeError, match="coef_ is there with kernel='linear' only"):
        model.coef_  # noqa: B018
    with pytest.raises(AttributeError, match="has no predict_interval"):
        model.predict_interval  # noqa: B018
    with pytest.raises(AttributeError, match="'KernelHOLRR' object has no attribute 'other_'"):
        model.other_  # noqa: B018
