"""Ridge regression with more inputs than samples: coefficients in factored or in dense form."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import holrr
from holrr import HOLRRCV, LRRCV, RLS, RLSCV

N, N_FEATURES = 20, 90
FACTORED, DENSE = (8, 6), (2, 3)  # output shapes on the two sides of the limit


def problem(shape, n=N, d0=N_FEATURES, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d0)) + 1.0
    signal = np.tensordot(X[:, :3], rng.normal(size=(3, *shape)), 1)
    return X, signal + rng.normal(size=(n, *shape)) + 2.0


def ridge(X, Y, alpha):
    """The dual solution: coefficients and intercept."""
    Xc, Yc = X - X.mean(0), Y.reshape(len(Y), -1) - Y.reshape(len(Y), -1).mean(0)
    W = Xc.T @ np.linalg.solve(Xc @ Xc.T + alpha * np.eye(len(X)), Yc)
    return W, Y.reshape(len(Y), -1).mean(0) - X.mean(0) @ W


def is_factored(model):
    return model.tucker_.factors[0] is not None


@pytest.mark.parametrize("shape", [FACTORED, DENSE], ids=["factored", "dense"])
@pytest.mark.parametrize("alpha", [1e-3, 3.0, 1e3])
def test_both_forms_are_the_dual_solution(shape, alpha):
    X, Y = problem(shape)
    model = RLS(alpha).fit(X, Y)
    W, c = ridge(X, Y, alpha)
    assert is_factored(model) == (shape == FACTORED)
    assert_allclose(model.coef_.reshape(N_FEATURES, -1), W, rtol=0, atol=1e-10 * np.abs(W).max())
    assert_allclose(model.intercept_.reshape(-1), c, atol=1e-10)
    new = problem(shape, seed=1)[0]
    assert_allclose(model.predict(new).reshape(N, -1), new @ W + c, atol=1e-9)


def test_the_form_with_fewer_entries_is_chosen():
    # The rank of 20 centred samples is 19: the limit is at 19 (90 + D) = 90 D, D = 24.08.
    for n_outputs in (1, 24, 25, 200):
        X, Y = problem((n_outputs,))
        model = RLS().fit(X, Y)
        entries = model.tucker_.core.size + (
            model.tucker_.factors[0].size if is_factored(model) else 0
        )
        assert entries == min(N_FEATURES * n_outputs, 19 * (N_FEATURES + n_outputs))
        assert is_factored(model) == (n_outputs > 24)


def test_more_samples_than_inputs_have_dense_coefficients():
    X, Y = problem(FACTORED, n=120)
    assert not is_factored(RLS().fit(X, Y))


@pytest.mark.parametrize("shape", [FACTORED, DENSE], ids=["factored", "dense"])
def test_alpha_zero_interpolates(shape):
    X, Y = problem(shape)
    model = RLS(0.0).fit(X, Y)
    assert_allclose(model.predict(X), Y, atol=1e-9)
    # The solution of least norm lies in the span of the centred inputs.
    Xc = X - X.mean(0)
    W = model.coef_.reshape(N_FEATURES, -1)
    assert_allclose(Xc.T @ np.linalg.lstsq(Xc.T, W, rcond=None)[0], W, atol=1e-9)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"output_weight": [np.linspace(1, 2, 8), None]},
        {"blocks": {"a": range(40), "b": range(40, 90)}, "alpha": {"a": 1.0, "b": 9.0}},
        {"fit_intercept": False},
    ],
    ids=["plain", "output_weight", "blocks", "no intercept"],
)
def test_each_output_is_as_if_it_were_fitted_alone(params):
    """A few outputs at a time have dense coefficients."""
    X, Y = problem(FACTORED)
    together = RLS(**params).fit(X, Y)
    assert is_factored(together)
    alone = {k: v for k, v in params.items() if k != "output_weight"}
    for i, j in ((0, 0), (7, 5)):
        one = RLS(**alone).fit(X, Y[:, i : i + 1, j : j + 1])
        assert not is_factored(one)
        assert_allclose(together.coef_[:, i, j], one.coef_[:, 0, 0], rtol=1e-8, atol=1e-10)
        assert_allclose(together.intercept_[i, j], one.intercept_[0, 0], atol=1e-9)


@pytest.mark.parametrize("search", [False, True], ids=["fixed", "search"])
def test_a_penalty_for_each_output(search):
    X, Y = problem(FACTORED)
    alphas = np.geomspace(0.1, 100, 48).reshape(FACTORED)
    if search:
        model = RLSCV(alpha_per_output=True, cv=4).fit(X, Y)
        alphas = model.alpha_
    else:
        model = RLS(alphas).fit(X, Y)
    assert is_factored(model)
    for i, j in ((0, 0), (3, 2)):
        W, _ = ridge(X, Y[:, i, j], alphas[i, j])
        assert_allclose(model.coef_[:, i, j], W[:, 0], atol=1e-9)


def in_own_directions(X, new, columns):
    """The same inputs in coordinates of the rows of X, block by block.

    The penalties do not depend on orthonormal coordinates, so it is the same problem; it has fewer
    inputs, and therefore dense coefficients.
    """
    bases = [np.linalg.svd(X[:, c], full_matrices=False)[2].T for c in columns]
    return [np.hstack([A[:, c] @ P for c, P in zip(columns, bases, strict=True)]) for A in (X, new)]


@pytest.mark.parametrize("make", [RLSCV, LRRCV, HOLRRCV])
@pytest.mark.parametrize("blocks", [False, True], ids=["plain", "blocks"])
def test_searches_do_not_depend_on_the_form(make, blocks):
    X, Y = problem((5, 6))
    new = np.random.default_rng(1).dirichlet(np.ones(N), size=6) @ X
    columns = [list(range(40)), list(range(40, 90))] if blocks else [list(range(90))]
    X2, new2 = in_own_directions(X, new, columns)
    params = [{}, {}]
    if blocks:
        params = [{"blocks": {"a": columns[0], "b": columns[1]}}]
        params += [{"blocks": {"a": range(20), "b": range(20, 40)}}]
    factored = make([1.0, 10.0], cv=4, **params[0]).fit(X, Y)
    dense = make([1.0, 10.0], cv=4, **params[1]).fit(X2, Y)
    if make is RLSCV:
        assert (is_factored(factored), is_factored(dense)) == (True, False)
    assert factored.best_params_ == dense.best_params_
    for name in ("held_out_mse_", "ridge_mse_", "noise_", "intercept_"):
        assert_allclose(getattr(factored, name), getattr(dense, name), rtol=1e-7, atol=1e-9)
    assert_allclose(factored.predict(new), dense.predict(new2), rtol=1e-7, atol=1e-9)
    for a, b in zip(factored.predict_interval(new), dense.predict_interval(new2), strict=True):
        assert_allclose(a, b, rtol=1e-7, atol=1e-9)


def test_standard_errors_do_not_depend_on_the_form():
    X, Y = problem((5, 6))
    X2, _ = in_own_directions(X, X, [list(range(90))])
    factored, dense = (
        holrr.standard_errors(RLS(5.0), A, Y, n_groups=5, predict_at=A[:3]) for A in (X, X2)
    )
    for name in ("intercept", "predictions"):
        found, wanted = getattr(factored, name).std_error, getattr(dense, name).std_error
        assert_allclose(found, wanted, rtol=1e-8, atol=1e-10)


def test_scores_determine_the_predictions():
    X, Y = problem(FACTORED)
    model = RLS().fit(X, Y)
    scores = model.transform(X)
    assert scores.shape == (N, 19)
    found = np.tensordot(scores, model.tucker_.core, 1) + model.intercept_
    assert_allclose(found, model.predict(X), atol=1e-10)


def test_files_keep_the_factored_form(tmp_path):
    X, Y = problem(FACTORED)
    model = RLS().fit(X, Y)
    model.save(tmp_path / "model.holrr")
    loaded = holrr.load(tmp_path / "model.holrr")
    assert is_factored(loaded)
    assert np.array_equal(loaded.predict(X), model.predict(X))


def test_updates_of_moments_equal_the_fit():
    X, Y = problem(FACTORED)
    parts = RLS().partial_fit(X[:11], Y[:11]).partial_fit(X[11:], Y[11:])
    assert_allclose(parts.coef_, RLS().fit(X, Y).coef_, rtol=1e-7, atol=1e-10)


def test_ridge_regression_has_no_coupled_patterns():
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    from holrr.plotting import LoadingsDisplay

    for shape in ((48,), (6,)):
        X, Y = problem(shape)
        with pytest.raises(ValueError, match=r"pairs.*RLS"):
            LoadingsDisplay.from_estimator(RLS().fit(X, Y), mode="pairs")
