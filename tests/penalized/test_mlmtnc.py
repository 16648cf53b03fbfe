"""MLMT-NC: exact steps, a decreasing objective, and special cases."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from penalized_reference import mlmtnc_objective
from sklearn.exceptions import ConvergenceWarning

from holrr import MLMTNC, RLS, TraceNormRegression
from problems import toy

SHAPES = [(), (3,), (3, 4), (2, 3, 2)]


# ---------------------------------------------------------------- descents


@pytest.mark.parametrize("init", ["holrr", "random"])
@pytest.mark.parametrize("beta", [1e-6, 0.1, 10.0, 1e3])
@pytest.mark.parametrize("n", [40, 4])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_objective_never_increases(init, beta, n):
    X, Y = toy(n=n, d0=6, shape=(4, 5))
    model = MLMTNC(3, beta, init=init, random_state=0, tol=0.0, max_iter=30)
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        model.fit(X, Y)
    assert np.all(np.diff(model.history_) <= 0)
    assert model.history_[-1] < model.history_[0]
    assert model.history_[-1] == model.objective_ >= model.lower_bound_


def test_solution_is_stationary_in_all_blocks():
    """Differences of the naive objective vanish in every entry."""
    X, Y = toy(shape=(3, 4))
    model = MLMTNC((2, 3, 2), 2.0, tol=1e-15, max_iter=5000).fit(X, Y)
    value = mlmtnc_objective(X, Y, model.core_, model.factors_, 2.0, model.intercept_)
    assert_allclose(model.objective_, value, rtol=1e-10)
    Xc, Yc = X - X.mean(axis=0), Y - Y.mean(axis=0)
    all_blocks = [model.core_, *model.factors_]
    for k, block in enumerate(all_blocks):
        for index in np.ndindex(block.shape):
            values = []
            for step in (1e-4, -1e-4):
                moved = [b.copy() for b in all_blocks]
                moved[k][index] += step
                values.append(mlmtnc_objective(Xc, Yc, moved[0], moved[1:], 2.0))
            assert abs(values[0] - values[1]) / 2e-4 <= 1e-3 * value


@pytest.mark.parametrize("init", ["holrr", "random"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_full_ranks_with_a_tiny_penalty_give_least_squares(init, shape):
    X, Y = toy(shape=shape)
    model = MLMTNC(None, 1e-8, init=init, random_state=0, tol=1e-12).fit(X, Y)
    expected = RLS(0).fit(X, Y)
    assert_allclose(model.objective_, expected.objective_, rtol=1e-6)
    assert_allclose(model.coef_, expected.coef_, atol=1e-4)


def test_random_starts_and_holrr_reach_the_same_objective():
    X, Y = toy(n=100, d0=6, shape=(4, 5), rank=2, noise=0.5)
    model = MLMTNC(2, 0.5).fit(X, Y)
    random = MLMTNC(2, 0.5, init="random", n_init=3, random_state=0).fit(X, Y)
    assert_allclose(random.objective_, model.objective_, rtol=1e-5)
    assert model.n_iter_ < 20


def test_best_of_several_starts_is_kept():
    X, Y = toy(n=30, shape=(4, 5), rank=3, noise=2.0)
    single = MLMTNC(2, 5.0, init="random", random_state=0).fit(X, Y)
    several = MLMTNC(2, 5.0, init="random", n_init=8, random_state=0).fit(X, Y)
    both = MLMTNC(2, 5.0, init="holrr", n_init=8, random_state=0).fit(X, Y)
    assert several.objective_ <= single.objective_
    assert both.objective_ <= MLMTNC(2, 5.0).fit(X, Y).objective_


# ---------------------------------------------------------------- special cases


def test_scalar_targets_are_the_group_lasso():
    """The minimum of ||A||^2 + ||g||^2 with A g = w is 2 ||w||."""
    X, y = toy(shape=())
    model = MLMTNC(1, 3.0, tol=1e-14).fit(X, y)
    convex = TraceNormRegression(3.0, tol=1e-12).fit(X, y)
    assert_allclose(model.objective_, 2 * convex.objective_, rtol=1e-9)
    assert_allclose(model.coef_, convex.coef_, rtol=1e-4)


def test_matrix_penalty_is_a_schatten_norm():
    """The minimum of ||A||^2 + ||G||^2 + ||B||^2 with A G B' = W is 3 sum sigma^(2/3)."""
    X, Y = toy(shape=(4,))
    model = MLMTNC(None, 2.0, tol=1e-14).fit(X, Y)
    squares = np.sum(model.core_**2) + sum(np.sum(A**2) for A in model.factors_)
    sigma = np.linalg.svd(model.coef_, compute_uv=False)
    assert_allclose(squares, 3 * np.sum(sigma ** (2 / 3)), rtol=1e-4)


def test_modes_of_size_one_have_no_effect():
    X, Y = toy(shape=(3, 4))
    expected = MLMTNC(2, 1.0).fit(X, Y)
    model = MLMTNC(2, 1.0).fit(X, Y[:, None, :, None, :])
    assert_allclose(model.coef_[:, 0, :, 0, :], expected.coef_, rtol=1e-10)
    assert model.rank_ == (2, 1, 2, 1, 2)
    assert_allclose(model.factors_[1], [[1.0]])


# ---------------------------------------------------------------- the estimator


def test_ranks_are_at_most_those_of_parameters_and_data():
    X, Y = toy(n=4, d0=6, shape=(3, 4))
    assert MLMTNC((5, 2, 3), 0.1).fit(X, Y).rank_ == (3, 2, 3)  # three directions after centring
    X, Y = toy(shape=(3, 4))
    assert MLMTNC((1, 2, 3), 0.1).fit(X, Y).rank_ == (1, 2, 2)
    assert MLMTNC((0.5, None, 2), 0.1).fit(X, Y).rank_[2] == 2


def test_large_penalty_gives_zero():
    X, Y = toy()
    model = MLMTNC(2, 1e9).fit(X, Y)
    assert_allclose(model.coef_, 0.0, atol=1e-8)
    assert_allclose(model.objective_, np.sum((Y - Y.mean(axis=0)) ** 2), rtol=1e-8)


@pytest.mark.parametrize(("scale_x", "scale_y"), [(1.0, 1e-170), (1.0, 1e-300), (1e160, 1e-300)])
def test_penalty_that_overflows_in_scaled_units_gives_zero(scale_x, scale_y):

    X, Y = toy()
    model = MLMTNC(2, 1.0).fit(scale_x * X, scale_y * Y)
    assert_allclose(model.coef_ * scale_x / scale_y, 0.0, atol=1e-8)


def test_units_of_the_data_do_not_matter():
    """With Y times c the coefficients change by c and the penalty by c^(2 - 2/4)."""
    X, Y = toy()
    expected = MLMTNC(2, 1.0).fit(X, Y)
    for c in (1e-60, 1e-3, 1e3, 1e60):
        model = MLMTNC(2, c ** (2 - 2 / 4)).fit(X, c * Y)
        assert_allclose(model.coef_, c * expected.coef_, rtol=1e-7, atol=1e-9 * c)
        assert_allclose(model.objective_, c * c * expected.objective_, rtol=1e-9)


def test_constant_data_have_zero_coefficients():
    X, Y = toy()
    for model in (
        MLMTNC(2).fit(np.ones_like(X), Y),
        MLMTNC(2).fit(X, np.ones_like(Y)),
        MLMTNC(2).fit(X[:1], Y[:1]),
        MLMTNC(2, init="random", random_state=0).fit(X, np.ones_like(Y)),
    ):
        assert_allclose(model.coef_, 0.0, atol=1e-10)
        assert np.isfinite(model.objective_)


def test_fits_that_do_not_converge_warn():
    X, Y = toy()
    with pytest.warns(ConvergenceWarning, match=r"max_iter=1 .*Increase max_iter"):
        model = MLMTNC(2, 1.0, max_iter=1, tol=0.0).fit(X, Y)
    assert model.n_iter_ == 1


def test_other_array_libraries_give_the_same_fit(xp):
    X, Y = toy(shape=(3, 4, 2))
    expected = MLMTNC(2, 1.0).fit(X, Y)
    model = MLMTNC(2, 1.0).fit(xp.asarray(X), xp.asarray(Y))
    assert xp.owns(model.coef_)
    assert_allclose(xp.to_numpy(model.coef_), expected.coef_, rtol=1e-7, atol=1e-9)
    random = MLMTNC(2, 1.0, init="random", random_state=0).fit(xp.asarray(X), xp.asarray(Y))
    assert xp.owns(random.core_)


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"beta": 0.0}, ValueError, "beta"),
        ({"rank": (2, 2)}, ValueError, "rank must have 3 entries"),
        ({"rank": (2, 2, 9)}, ValueError, r"rank\[2\]"),
        ({"rank": "all"}, TypeError, "rank"),
        ({"init": "zeros"}, ValueError, "init"),
        ({"n_init": 0}, ValueError, "n_init"),
        ({"tol": -1.0}, ValueError, "tol"),
    ],
)
def test_bad_parameters_raise_and_leave_the_estimator_as_it_was(params, error, message):
    X, Y = toy()
    model = MLMTNC(2).fit(X, Y)
    before = dict(vars(model.set_params(**params)))
    with pytest.raises(error, match=message):
        model.fit(X[:10], Y[:10])
    assert vars(model) == before


def test_progress_is_shown_on_request(capsys):
    MLMTNC(2, verbose=1).fit(*toy())
    assert "iteration 1, objective" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("max_iter", [1, 3, 1000])
@pytest.mark.parametrize("init", ["holrr", "random"])
def test_the_objective_is_never_above_that_of_zero(max_iter, init):
    """Small outputs are not worth their penalty, and a local minimum may be no better."""
    n_zero = 0
    for seed in range(3):
        X, Y = toy(n=40, d0=3, shape=(2, 3), seed=seed)
        for scale in 10.0 ** np.arange(-8, 1, 0.5):
            model = MLMTNC(2, 1.0, max_iter=max_iter, init=init, random_state=0)
            model.fit(X, scale * Y)
            zero = scale**2 * np.sum((Y - Y.mean(axis=0)) ** 2)
            assert model.objective_ <= zero * (1 + 1e-12)
            assert np.all(np.diff(model.history_) <= 0)
            n_zero += not np.any(model.coef_)
            by_hand = mlmtnc_objective(
                X, scale * Y, model.core_, model.factors_, 1.0, model.intercept_
            )
            assert_allclose(model.objective_, by_hand, rtol=1e-7)
    assert n_zero > 0
