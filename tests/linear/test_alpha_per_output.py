"""A penalty for each output, in ridge regression."""

import numpy as np
import pytest
import xarray as xr
from himalaya.ridge import RidgeCV as HimalayaRidgeCV
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold

from holrr import HOLRR, LRR, RLS, RLSCV, Moments, load, save

rng = np.random.default_rng(0)
ALPHA = rng.uniform(0.1, 100, (4, 3))
ALPHAS = np.logspace(-1, 4, 11)


def problem(n, d=12):
    X = rng.normal(size=(n, d)) + 1
    W = rng.normal(size=(d, 4, 3)) * rng.uniform(0, 1, (4, 3))
    return X, np.tensordot(X, W, 1) + 3 * rng.normal(size=(n, 4, 3))


@pytest.mark.parametrize("n", [60, 8], ids=["tall", "wide"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("solver", ["auto", "svd"])
def test_penalties_by_output_equal_those_of_scikit_learn(n, fit_intercept, solver, use_solver):
    use_solver(solver)
    X, Y = problem(n)
    w = rng.uniform(0.5, 2, n)
    model = RLS(ALPHA, fit_intercept=fit_intercept).fit(X, Y, w)
    ridge = Ridge(ALPHA.ravel(), fit_intercept=fit_intercept).fit(X, Y.reshape(n, -1), w)
    np.testing.assert_allclose(model.predict(X).reshape(n, -1), ridge.predict(X), atol=1e-9)
    residual = w @ np.square(Y - model.predict(X)).reshape(n, -1)
    objective = residual.sum() + (ALPHA * np.square(model.coef_).sum(axis=0)).sum()
    assert model.objective_ == pytest.approx(objective, rel=1e-9)


def test_each_output_is_that_of_its_penalty():
    X, Y = problem(60)
    model = RLS(ALPHA).fit(X, Y)
    for j in np.ndindex(4, 3):
        alone = RLS(ALPHA[j]).fit(X, Y[:, *j])
        np.testing.assert_allclose(model.predict(X)[:, *j], alone.predict(X), atol=1e-10)
        assert model.noise_[j] == pytest.approx(alone.noise_, rel=1e-9)


def test_moments_batches_disk_torch_files_units_and_flat_outputs(tmp_path):
    torch = pytest.importorskip("torch")
    X, Y = problem(60)
    wanted = RLS(ALPHA).fit(X, Y).predict(X)
    found = {"moments": RLS(ALPHA).fit_moments(Moments.from_arrays(X, Y)).predict(X)}
    batches = RLS(ALPHA)
    for k in range(3):
        batches.partial_fit(X[k::3], Y[k::3])
    found["batches"] = batches.predict(X)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "Y.npy", Y)
    on_disk = (np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in "XY")
    model = RLS(ALPHA).fit(*on_disk)
    found["disk"] = model.predict(X)
    save(model, tmp_path / "model.holrr")
    found["file"] = load(tmp_path / "model.holrr").predict(X)
    found["torch"] = (
        RLS(ALPHA).fit(torch.tensor(X), torch.tensor(Y)).predict(torch.tensor(X)).numpy()
    )
    found["units"] = RLS(ALPHA * 1e180).fit(X * 1e90, Y).predict(X * 1e90)
    flat = RLS(ALPHA.ravel(), output_shape=(4, 3)).fit(X, Y.reshape(60, -1))
    found["flat"] = flat.predict(X).reshape(Y.shape)
    for name, values in found.items():
        np.testing.assert_allclose(values, wanted, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("n", [60, 20], ids=["tall", "wide"])
def test_the_search_chooses_as_himalaya_does(n):
    X, Y = problem(n, 12 if n == 60 else 40)
    model = RLSCV(ALPHAS, alpha_per_output=True, cv=KFold(4)).fit(X, Y)
    theirs = HimalayaRidgeCV(ALPHAS, cv=KFold(4), fit_intercept=True, solver_params={"warn": False})
    theirs.fit(X, Y.reshape(n, -1))
    np.testing.assert_allclose(model.alpha_.ravel(), theirs.best_alphas_, rtol=1e-6)
    np.testing.assert_allclose(model.predict(X).reshape(n, -1), theirs.predict(X), atol=1e-8)
    # The error of a fold is that of the penalties that the other folds choose.
    splits = list(KFold(4).split(X))
    squares = np.array(
        [
            [
                np.square(Y[b] - RLS(alpha).fit(X[a], Y[a]).predict(X[b])).mean(axis=0)
                for alpha in ALPHAS
            ]
            for a, b in splits
        ]
    )
    errors = []
    for fold in range(4):
        best = np.delete(squares, fold, axis=0).mean(axis=0).argmin(axis=0)
        errors.append(np.take_along_axis(squares[fold], best[None], axis=0).mean())
    assert model.held_out_mse_ == pytest.approx(np.mean(errors), rel=1e-9)
    assert model.cv_results_["held_out_mse"] == model.held_out_mse_
    # The best single model is that with one penalty for all outputs, which is no better.
    one = RLSCV(ALPHAS, cv=KFold(4)).fit(X, Y)
    assert model.best_params_ == one.best_params_ == {"alpha": one.alpha_}
    assert model.best_score_ == one.best_score_


def test_a_search_of_moments_torch_files_and_intervals(tmp_path):
    torch = pytest.importorskip("torch")
    X, Y = problem(80)
    model = RLSCV(alpha_per_output=True, cv=KFold(4)).fit(X, Y)
    parts = [Moments.from_arrays(X[test], Y[test]) for _, test in KFold(4).split(X)]
    streamed = RLSCV(alpha_per_output=True).fit_fold_moments(parts)
    np.testing.assert_allclose(streamed.alpha_, model.alpha_, rtol=1e-9)
    tensors = RLSCV(alpha_per_output=True, cv=KFold(4)).fit(torch.tensor(X), torch.tensor(Y))
    np.testing.assert_allclose(tensors.alpha_, model.alpha_, rtol=1e-9)
    low, high = model.predict_interval(X, coverage=0.9)
    assert 0.85 < ((low <= Y) & (Y <= high)).mean() <= 1.0
    save(model, tmp_path / "model.holrr")
    same = load(tmp_path / "model.holrr")
    np.testing.assert_array_equal(same.predict_interval(X), (low, high))
    np.testing.assert_array_equal(same.alpha_, model.alpha_)
    assert model.best_estimator_.alpha.shape == (4, 3)


def test_labels_of_penalties_are_those_of_the_outputs():
    X, Y = problem(40)
    coords = {"s": list("abcd"), "v": [0, 1, 2]}
    y, alpha = (
        xr.DataArray(Y, {"t": range(40), **coords}, ("t", "s", "v")),
        xr.DataArray(ALPHA, coords),
    )
    wanted = RLS(ALPHA).fit(X, Y).predict(X)
    for given in (alpha, alpha.transpose("v", "s")):
        np.testing.assert_array_equal(RLS(given).fit(X, y).predict(X), wanted)
    with pytest.raises(ValueError, match="alpha has other coordinates along 's'"):
        RLS(alpha.isel(s=[1, 0, 2, 3])).fit(X, y)
    with pytest.raises(ValueError, match=r"shape \(4, 3\)"):
        RLS(ALPHA.T).fit(X, Y)


def test_scalar_targets_have_a_number():
    X, Y = problem(40)
    assert isinstance(RLSCV(ALPHAS, alpha_per_output=True).fit(X, Y[:, 0, 0]).alpha_, float)


def test_errors_name_the_models_that_do_not_support_penalties_by_output():
    X, Y = problem(30)
    for model in (LRR(2, ALPHA), HOLRR(2, ALPHA)):
        with pytest.raises(ValueError, match="low-rank models fit all outputs together"):
            model.fit(X, Y)
    for bad, message in ((ALPHA[:2], "shape"), (-ALPHA, "at least 0"), (ALPHA * np.nan, "finite")):
        with pytest.raises(ValueError, match=message):
            RLS(bad).fit(X, Y)
    for params in ({"selection": "1se"}, {"blocks": np.arange(12) // 6}):
        with pytest.raises(ValueError, match="alpha_per_output"):
            RLSCV(alpha_per_output=True, **params).fit(X, Y)
    Y[0, 0] = np.nan
    with pytest.raises(ValueError, match="complete outputs"):
        RLS(ALPHA, missing="ignore").fit(X, Y)
    Y[0, 0] = 0.0
    Y[:, 0, 0] = np.nan
    with pytest.raises(ValueError, match="complete outputs"):
        RLS(ALPHA, missing="ignore").partial_fit(X, Y)
    with pytest.raises(ValueError, match="complete outputs"):
        RLSCV(alpha_per_output=True, missing="ignore").fit(X, Y)
