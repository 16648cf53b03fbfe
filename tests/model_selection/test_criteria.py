"""Information criteria equal their definition."""

import numpy as np
import pytest

from holrr import HOLRR, Moments
from holrr.core.tensor import n_parameters
from holrr.model_selection import HOLRRCV, RLSCV

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty")

ALPHAS = [0.1, 1.0, 10.0, 100.0]


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("criterion", ["aic", "bic", "gcv"])
@pytest.mark.parametrize(("n", "d0"), [(30, 3), (7, 9)])
def test_criteria_equal_their_definition(make_data, criterion, fit_intercept, n, d0):
    X, Y = make_data(n, d0, (2, 2))
    model = HOLRRCV(ALPHAS, criterion=criterion, fit_intercept=fit_intercept).fit(X, Y)
    values = model.cv_results_[criterion]
    Xc = X - X.mean(axis=0) if fit_intercept else X
    lam = np.linalg.svd(Xc, compute_uv=False) ** 2
    lam = lam[lam > 1e-9]
    n_obs = Y.size
    for index in np.ndindex(*values.shape):
        alpha, rank = ALPHAS[index[0]], tuple(i + 1 for i in index[1:])
        fit = HOLRR(rank=rank, alpha=alpha, fit_intercept=fit_intercept).fit(X, Y)
        mse = ((fit.predict(X) - Y) ** 2).mean()
        dimension = n_parameters((lam.size, 2, 2), rank)
        df = dimension * (lam / (lam + alpha)).mean() + (4 if fit_intercept else 0)
        expected = {
            "aic": n_obs * np.log(mse) + 2 * df,
            "bic": n_obs * np.log(mse) + np.log(n_obs) * df,
            "gcv": mse / (1 - df / n_obs) ** 2,
        }[criterion]
        assert model.cv_results_["train_mse"][index] == pytest.approx(mse, rel=1e-9)
        assert model.cv_results_["degrees_of_freedom"][index] == pytest.approx(df, rel=1e-9)
        assert values[index] == pytest.approx(expected if df < n_obs else np.inf, rel=1e-8)
    assert -model.best_score_ == values[model.best_index_] == values.min()


@pytest.mark.parametrize("criterion", ["aic", "bic", "gcv"])
@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_criteria_are_in_the_units_of_the_data(make_data, criterion, scale):
    """The outputs are divided by a power of two before the search."""
    X, Y = make_data(30, 4, (2, 2))
    plain, scaled = (HOLRRCV(ALPHAS, criterion=criterion).fit(X, Y * s) for s in (1.0, scale))
    found, expected = (m.cv_results_[criterion] for m in (scaled, plain))
    shift = 2 * Y.size * np.log(scale)
    found = found / scale / scale if criterion == "gcv" else found - shift
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    train = [m.cv_results_["train_mse"] for m in (scaled, plain)]
    np.testing.assert_allclose(train[0] / scale / scale, train[1], rtol=1e-8)
    assert scaled.best_index_ == plain.best_index_
    assert -scaled.best_score_ == scaled.cv_results_[criterion][scaled.best_index_]


def test_gcv_of_ridge_is_computed_from_the_trace_of_the_hat_matrix():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 4)), rng.normal(size=20)
    model = RLSCV([0.5], criterion="gcv", fit_intercept=False).fit(X, y)
    hat = X @ np.linalg.solve(X.T @ X + 0.5 * np.eye(4), X.T)
    residual = y - hat @ y
    expected = (residual @ residual / 20) / (1 - np.trace(hat) / 20) ** 2
    assert model.cv_results_["gcv"][0] == pytest.approx(expected, rel=1e-12)


def test_criteria_need_neither_folds_nor_samples(make_data):
    X, Y = make_data()
    parts = [Moments.from_arrays(X[i::2], Y[i::2]) for i in range(2)]
    a = HOLRRCV.from_fold_moments(parts, alphas=ALPHAS, criterion="bic")
    b = HOLRRCV(ALPHAS, criterion="bic", cv=10**6).fit(X, Y)
    np.testing.assert_allclose(a.cv_results_["bic"], b.cv_results_["bic"], rtol=1e-9)
    assert a.rank_ == b.rank_


def test_the_smallest_penalty_decides_how_the_inputs_are_decomposed():
    """X'X of these inputs keeps enough digits only with the second penalty."""
    rng = np.random.default_rng(0)
    Q, P = (np.linalg.qr(rng.normal(size=(n, 4)))[0] for n in (40, 4))
    X = (Q * np.logspace(0, -9, 4)) @ P.T
    Y = 1e9 * np.outer(X @ P[:, -1], [1.0, 2.0, 3.0])
    model = HOLRRCV([1e-22, 1.0], criterion="gcv", fit_intercept=False).fit(X, Y)
    assert model.cv_results_["train_mse"][0].min() < 1e-3 * (Y**2).mean()


def test_models_of_as_many_parameters_as_observations_are_not_chosen():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(4, 8)), rng.normal(size=(4, 2, 2))
    for criterion in ("aic", "bic", "gcv"):
        model = HOLRRCV([0.0, 1.0], criterion=criterion, selection="min").fit(X, Y)
        results = model.cv_results_
        saturated = results["degrees_of_freedom"] >= results["n_observations"]
        assert saturated.any()
        assert np.isinf(results[criterion][saturated]).all()
        assert not saturated[model.best_index_]
