"""TraceNormRegression: the minimum, its certificate, and special cases."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from penalized_reference import solve_with_cvxpy, trace_norm_objective
from sklearn.exceptions import ConvergenceWarning

import reference
from holrr import RLS, TraceNormRegression
from problems import assert_same_state, toy


def tight(penalty, **params):
    return TraceNormRegression(penalty, **{"tol": 1e-10, "max_iter": 20000, **params})


# ---------------------------------------------------------------- the minimum


@pytest.mark.parametrize(
    ("n", "d0", "shape", "params"),
    [
        (20, 4, (), {}),
        (20, 4, (3,), {}),
        (20, 3, (2, 3), {}),
        (20, 3, (2, 3), {"alpha": 2.0}),
        (20, 3, (2, 3), {"mode_weights": (0.5, 2.0, 0.0)}),
        (3, 5, (2, 3), {}),
        (20, 3, (2, 1, 2), {}),
    ],
    ids=["vector", "matrix", "tensor", "ridge", "weights", "wide", "mode of size one"],
)
def test_minimum_equals_that_of_an_interior_point_method(n, d0, shape, params):
    X, Y = toy(n=n, d0=d0, shape=shape, offset=0.0)
    penalty = 0.2 * TraceNormRegression(1e9, **params).fit(X, Y).penalty_max_
    model = tight(penalty, fit_intercept=False, **params).fit(X, Y)
    W, minimum = solve_with_cvxpy(
        X, Y, penalty, params.get("alpha", 0.0), params.get("mode_weights")
    )
    assert_allclose(model.objective_, minimum, rtol=1e-6)
    assert_allclose(model.coef_, W, atol=1e-3 * np.abs(W).max())
    assert np.abs(W).max() > 0


@pytest.mark.parametrize("shape", [(), (1,), (4,), (3, 4), (2, 3, 2)], ids=str)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_objective_and_bound_enclose_the_minimum(shape, fit_intercept):
    X, Y = toy(shape=shape)
    params = {"alpha": 0.5, "fit_intercept": fit_intercept}
    model = TraceNormRegression(2.0, **params).fit(X, Y)
    at = lambda m: trace_norm_objective(X, Y, m.coef_, 2.0, 0.5, None, m.intercept_)  # noqa: E731
    assert_allclose(model.objective_, at(model), rtol=1e-10)
    assert model.lower_bound_ <= at(tight(2.0, **params).fit(X, Y)) <= model.objective_ * (1 + 1e-9)
    assert model.objective_ - model.lower_bound_ <= 1e-6 * model.objective_


def test_certificate_holds_when_the_solver_stops_early():
    X, Y = toy(n=8, d0=6, shape=(3, 4))
    minimum = tight(1.0).fit(X, Y).objective_
    for max_iter in (1, 2, 5, 10, 20):
        with pytest.warns(ConvergenceWarning, match=f"max_iter={max_iter}.*Increase max_iter"):
            model = TraceNormRegression(1.0, max_iter=max_iter, tol=0.0).fit(X, Y)
        assert model.lower_bound_ <= minimum * (1 + 1e-9)
        assert minimum <= model.objective_ * (1 + 1e-9)
        assert model.n_iter_ == max_iter


def test_history_has_a_decreasing_gap():
    X, Y = toy(n=8, d0=6, shape=(3, 4))
    model = tight(1.0).fit(X, Y)
    history = model.history_
    assert np.all(np.diff(history["objective"]) <= 0)
    assert np.all(np.diff(history["lower_bound"]) >= 0)
    assert history["iteration"][-1] == model.n_iter_
    assert history["objective"][-1] == model.objective_
    assert_allclose(history["lower_bound"][-1], model.lower_bound_, rtol=1e-14)
    assert len({len(values) for values in history.values()}) == 1
    assert (history["rho"] > 0).all()


# ---------------------------------------------------------------- large and small penalties


@pytest.mark.parametrize("shape", [(), (4,), (3, 4), (2, 3, 2)], ids=str)
@pytest.mark.parametrize("factor", [1.0, 1.5, 1e6])
def test_coefficients_are_exactly_zero_above_penalty_max(shape, factor):
    X, Y = toy(shape=shape)
    largest = TraceNormRegression(1.0).fit(X, Y).penalty_max_
    model = TraceNormRegression(factor * largest).fit(X, Y)
    assert_array_equal(model.coef_, np.zeros((X.shape[1], *shape)))
    assert model.rank_ == (0,) * (1 + len(shape))
    assert_allclose(model.predict(X), np.broadcast_to(Y.mean(axis=0), Y.shape))
    assert_allclose(model.objective_, 0.5 * np.sum((Y - Y.mean(axis=0)) ** 2), rtol=1e-12)
    assert model.lower_bound_ == model.objective_


@pytest.mark.parametrize("shape", [(), (4,)], ids=str)
def test_penalty_max_of_vectors_and_matrices_is_tight(shape):
    X, Y = toy(shape=shape)
    largest = TraceNormRegression(1.0).fit(X, Y).penalty_max_
    model = tight(0.999 * largest).fit(X, Y)
    assert np.abs(model.coef_).max() > 0


def test_zero_solutions_below_penalty_max_are_exact():
    """For tensors penalty_max is an upper bound; the solver finds zero somewhat below it."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 4)), rng.normal(size=(40, 4, 4))
    largest = TraceNormRegression(1.0).fit(X, Y).penalty_max_
    model = TraceNormRegression(0.97 * largest).fit(X, Y)
    assert model.rank_ == (0, 0, 0)
    assert model.n_iter_ > 1
    assert_array_equal(model.coef_, 0.0)


@pytest.mark.parametrize("alpha", [0.0, 0.7])
@pytest.mark.parametrize(("n", "d0"), [(30, 5), (4, 7)])
@pytest.mark.parametrize("off", [{"penalty": 0.0}, {"mode_weights": (0, 0, 0)}], ids=str)
def test_fit_without_penalty_is_ridge_regression(alpha, n, d0, off):
    X, Y = toy(n=n, d0=d0)
    model = TraceNormRegression(**{"penalty": 1.0, "alpha": alpha, **off}).fit(X, Y)
    expected = RLS(alpha).fit(X, Y)
    assert_allclose(model.coef_, expected.coef_, rtol=1e-9, atol=1e-10)
    assert_allclose(model.intercept_, expected.intercept_, rtol=1e-9, atol=1e-10)
    assert_allclose(model.objective_, expected.objective_ / 2, rtol=1e-8, atol=1e-12)


def test_small_penalties_approach_least_squares():
    X, Y = toy()
    model = TraceNormRegression(1e-9, tol=1e-12).fit(X, Y)
    assert_allclose(model.coef_, RLS(0).fit(X, Y).coef_, atol=1e-8)


def test_ranks_decrease_with_the_penalty():
    X, Y = toy(n=200, d0=6, shape=(5, 4), rank=2, noise=0.5)
    largest = TraceNormRegression(1.0).fit(X, Y).penalty_max_
    ranks = [TraceNormRegression(f * largest).fit(X, Y).rank_ for f in (1e-4, 0.1, 0.3, 1.0)]
    assert ranks[0] == (6, 5, 4)
    assert ranks[1] == (2, 2, 2)
    assert ranks[-1] == (0, 0, 0)
    assert (
        reference.multilinear_rank(TraceNormRegression(0.1 * largest).fit(X, Y).coef_) == ranks[1]
    )


# ---------------------------------------------------------------- closed forms


def orthonormal_inputs(n, d0):
    return np.linalg.qr(np.random.default_rng(0).normal(size=(n, d0)))[0]


def threshold_singular_values(M, t):
    U, s, Vt = np.linalg.svd(M, full_matrices=False)
    return (U * np.maximum(s - t, 0)) @ Vt


def test_matrix_with_orthonormal_inputs_is_thresholded_with_the_sum_of_weights():
    X, Y = orthonormal_inputs(30, 5), toy(n=30, shape=(4,))[1]
    model = tight(0.3, fit_intercept=False, mode_weights=(1.0, 2.0)).fit(X, Y)
    assert_allclose(model.coef_, threshold_singular_values(X.T @ Y, 0.9), atol=1e-5)


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_one_penalised_mode_with_orthonormal_inputs_is_thresholded(mode):
    X, Y = orthonormal_inputs(30, 5), toy(n=30, shape=(4, 3))[1]
    weights = np.eye(3)[mode]
    model = tight(1.5, fit_intercept=False, mode_weights=weights).fit(X, Y)
    XY = np.tensordot(X.T, Y, 1)
    expected = threshold_singular_values(reference.unfold(XY, mode), 1.5)
    assert_allclose(reference.unfold(model.coef_, mode), expected, atol=1e-5)


def test_vector_coefficients_satisfy_the_conditions_of_the_group_lasso():
    X, y = toy(shape=(), offset=0.0)
    model = tight(5.0, fit_intercept=False, tol=1e-13).fit(X, y)
    w = model.coef_
    assert_allclose(X.T @ (X @ w - y), -5.0 * w / np.linalg.norm(w), rtol=1e-5)


def test_scale_of_outputs_and_penalty_scales_the_coefficients():
    X, Y = toy()
    expected = TraceNormRegression(2.0).fit(X, Y)
    for scale in (1e-140, 1e-5, 1e5, 1e140):
        model = TraceNormRegression(2.0 * scale).fit(X, Y * scale)
        assert_allclose(model.coef_, expected.coef_ * scale, rtol=1e-9, atol=1e-12 * scale)
        assert model.rank_ == expected.rank_


def test_solution_lies_in_the_row_space_of_the_inputs():
    X, Y = toy(n=4, d0=7, offset=0.0)
    W = TraceNormRegression(0.5, fit_intercept=False).fit(X, Y).coef_
    project = np.linalg.pinv(X) @ X
    assert np.abs(W).max() > 0
    assert_allclose(reference.mode_product(W, project, 0), W, atol=1e-12)


# ---------------------------------------------------------------- the estimator


def test_ill_conditioned_inputs_are_solved_by_svd():
    X, Y = toy()
    X = np.column_stack([X, X[:, 0] + 1e-9 * np.random.default_rng(1).normal(size=len(X))])
    model = TraceNormRegression(1.0).fit(X, Y)
    assert model.solver_ == "svd"
    assert TraceNormRegression(1.0).fit(*toy()).solver_ == "eigh"


@pytest.mark.parametrize("shape", [(3, 4), (3, 1, 4)])
def test_warm_start_continues_from_the_last_fit(shape):
    X, Y = toy(n=8, d0=6, shape=shape)
    cold = TraceNormRegression(0.3, tol=1e-8, max_iter=5000).fit(X, Y)
    model = TraceNormRegression(0.3, tol=1e-8, max_iter=5000, warm_start=True).fit(X, Y)
    assert model.n_iter_ == cold.n_iter_ > 8
    model.fit(X, Y)
    assert model.n_iter_ <= 8
    assert_allclose(model.objective_, cold.objective_, rtol=1e-7)
    again = model.set_params(penalty=0.29).fit(X, Y)
    fresh = TraceNormRegression(0.29, tol=1e-8, max_iter=5000).fit(X, Y)
    assert again.n_iter_ < fresh.n_iter_
    assert_allclose(again.objective_, fresh.objective_, rtol=1e-7)


def test_warm_start_is_ignored_for_data_of_another_shape():
    model = TraceNormRegression(2.0, warm_start=True).fit(*toy(shape=(3, 4)))
    X, Y = toy(shape=(4, 3), seed=1)
    expected = TraceNormRegression(2.0).fit(X, Y)
    assert_array_equal(model.fit(X, Y).coef_, expected.coef_)
    model.set_params(mode_weights=(1, 0, 1)).fit(X, Y)
    expected.set_params(mode_weights=(1, 0, 1)).fit(X, Y)
    assert_allclose(model.coef_, expected.coef_, atol=1e-12)


def test_warm_start_of_partial_fit_and_its_end():
    """A fit without warm start keeps nothing of the solver's state."""
    X, Y = toy()
    model = TraceNormRegression(1.0, warm_start=True, tol=1e-10).partial_fit(X, Y)
    n_iter = model.n_iter_
    assert model.partial_fit(X, Y).n_iter_ < n_iter
    model.set_params(warm_start=False).partial_fit(X, Y)
    assert_same_state(model.fit(X, Y), TraceNormRegression(1.0, tol=1e-10).fit(X, Y))


def test_constant_data_have_zero_coefficients():
    X, Y = toy()
    for model in (
        TraceNormRegression().fit(np.ones_like(X), Y),
        TraceNormRegression().fit(X, np.ones_like(Y)),
        TraceNormRegression().fit(X[:1], Y[:1]),
    ):
        assert_allclose(model.coef_, 0.0, atol=1e-12)
        assert np.isfinite(model.objective_)
        assert model.objective_ >= model.lower_bound_


def test_other_array_libraries_give_the_same_fit(xp):
    X, Y = toy(shape=(3, 4, 2))
    expected = TraceNormRegression(2.0).fit(X, Y)
    model = TraceNormRegression(2.0, warm_start=True).fit(xp.asarray(X), xp.asarray(Y))
    assert xp.owns(model.coef_)
    assert_allclose(xp.to_numpy(model.coef_), expected.coef_, rtol=1e-8, atol=1e-9)
    zero = model.set_params(penalty=1e6).fit(xp.asarray(X), xp.asarray(Y))
    assert_array_equal(xp.to_numpy(zero.coef_), 0.0)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"penalty": -1.0}, "penalty"),
        ({"penalty": "a"}, "penalty"),
        ({"mode_weights": (1, 1)}, "mode_weights must have 3 entries"),
        ({"mode_weights": (1, -1, 1)}, "mode_weights must be finite and at least 0"),
        ({"mode_weights": (1, np.nan, 1)}, "mode_weights must be finite"),
        ({"mode_weights": ("a", "b", "c")}, "mode_weights must be numbers"),
        ({"mode_weights": [[1], [1], [1]]}, "mode_weights must be numbers"),
        ({"alpha": -1.0}, "alpha"),
        ({"max_iter": 0}, "max_iter"),
        ({"verbose": "loud"}, "verbose"),
    ],
)
def test_bad_parameters_raise_and_leave_the_estimator_as_it_was(params, message):
    X, Y = toy()
    model = TraceNormRegression().fit(X, Y)
    before = dict(vars(model.set_params(**params)))
    with pytest.raises((TypeError, ValueError), match=message):
        model.fit(X[:10], Y[:10])
    assert vars(model) == before


def test_progress_is_shown_on_request(capsys):
    X, Y = toy()
    TraceNormRegression(2.0).fit(X, Y)
    assert capsys.readouterr().out == ""
    TraceNormRegression(2.0, verbose=True).fit(X, Y)
    assert "relative duality gap" in capsys.readouterr().out


def test_live_progress_needs_rich(monkeypatch):
    X, Y = toy()
    pytest.importorskip("rich", reason="the progress extra is missing")
    TraceNormRegression(2.0, verbose="rich").fit(X, Y)
    monkeypatch.setitem(__import__("sys").modules, "rich.console", None)
    with pytest.raises(ImportError, match=r"holrr\[progress\]"):
        TraceNormRegression(2.0, verbose="rich").fit(X, Y)


def test_converged_fit_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TraceNormRegression(2.0).fit(*toy())
