"""Information criteria equal their definition."""

import numpy as np
import pytest
from sklearn.base import clone

from holrr import HOLRR, HOLRRCV, LRRCV, RLSCV, KernelRLSCV, Moments, Tucker
from holrr.streaming import memory_budget
from problems import on_disk

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
        factors = [np.eye(d, R) for d, R in zip((lam.size, 2, 2), rank, strict=True)]
        dimension = Tucker(np.ones(rank), factors).n_parameters
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


@pytest.mark.filterwarnings("ignore:the moments hold")
@pytest.mark.parametrize("source", ["memory", "disk"])
@pytest.mark.parametrize(
    "model",
    [
        RLSCV(),
        LRRCV(),
        HOLRRCV(),
        KernelRLSCV(kernel="linear"),
        KernelRLSCV(kernel="linear", n_components=40, random_state=0),
    ],
    ids=repr,
)
def test_criteria_of_single_precision_are_those_of_double(model, source, tmp_path):
    """Of models that nearly interpolate: their training error is a small difference."""
    if source == "disk" and isinstance(model, KernelRLSCV) and model.n_components is None:
        pytest.skip("reads its inputs whole")
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(40, 25)).astype(np.float32)
        Y = (X @ rng.normal(size=(25, 6)) + 1e-4 * rng.normal(size=(40, 6))).astype(np.float32)
        Y = Y.reshape(40, 3, 2)
        alphas = 10.0 ** np.arange(-7.0, 2.0)
        fits = []
        for A, B in ((X, Y), (X.astype(float), Y.astype(float))):
            search = clone(model).set_params(alphas=alphas, criterion="bic")
            if source == "disk":
                folder = tmp_path / f"{seed}{A.dtype}"
                folder.mkdir()
                with memory_budget(2**12):
                    search.fit(on_disk(folder, "X", A), on_disk(folder, "Y", B))
            else:
                search.fit(A, B)
            fits.append(search)
        single, double = fits
        assert single.predict(X).dtype == np.float32
        assert single.best_index_ == double.best_index_
        found, expected = (fit.cv_results_["train_mse"] for fit in fits)
        smallest = expected.min()
        assert smallest < 1e-8  # of outputs of about 25
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-3 * smallest)
        np.testing.assert_allclose(
            single.cv_results_["bic"], double.cv_results_["bic"], rtol=1e-4, atol=1e-1
        )
