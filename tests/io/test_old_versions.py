"""Files of versions 1 and 2 of the format load as the models that wrote them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from headers import downgrade, header_of
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from holrr import HOLRR, HOLRRCV, LRRCV, RLS, RLSCV, KernelHOLRRCV, Moments, standard_errors
from holrr.datasets import make_tensor_regression
from holrr.io import load, save
from problems import assert_same_state, toy, with_missing

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty")


def through_file(value, tmp_path, version):
    """The value after a file of an older version."""
    save(value, tmp_path / "old")
    downgrade(tmp_path / "old", version)
    assert header_of(tmp_path / "old")["version"] == version
    return load(tmp_path / "old")


def assert_same_fit(found, expected):
    """All fitted attributes agree to the last bit, and all parameters but those with new names."""
    fitted = {k: v for k, v in vars(expected).items() if k not in expected.get_params()}
    again = {k: v for k, v in vars(found).items() if k not in found.get_params()}
    for state in (fitted, again):
        model = state.pop("best_estimator_", None)
        if model is not None:
            model = {k: v for k, v in vars(model).items() if k != "missing"}
            state["best_estimator_"] = SimpleNamespace(**model)
    assert fitted.keys() == again.keys()
    for name in fitted:
        assert_same_state(again[name], fitted[name])


# ---------------------------------------------------------------- version 2


def test_every_estimator_loads_from_version_2(row, tmp_path):
    X, Y = toy(30)
    model = row.make().fit(X, Y)
    found = through_file(model, tmp_path, 2)
    assert_same_fit(found, model)
    assert_array_equal(found.predict(X), model.predict(X))
    if "_noise" in vars(model):
        assert_array_equal(found.predict(X, return_std=True), model.predict(X, return_std=True))
    if "_intervals" in vars(model):
        assert_array_equal(found.predict_interval(X, 0.8), model.predict_interval(X, 0.8))
    for name in ("rank_", "alpha_", "penalty_", "beta_", "gamma_", "noise_", "n_parameters_"):
        assert hasattr(found, name) == hasattr(model, name)
        if hasattr(model, name):
            assert_array_equal(getattr(found, name), getattr(model, name))


def test_a_loaded_model_of_version_2_is_saved_in_this_version(row, tmp_path):
    X, Y = toy(30)
    found = through_file(row.make().fit(X, Y), tmp_path, 2)
    found.save(tmp_path / "new")
    assert header_of(tmp_path / "new")["version"] == 3
    assert_same_state(load(tmp_path / "new"), found)


@pytest.mark.rows("batches")
def test_batches_continue_from_version_2(row, tmp_path):
    X, Y = toy(40)
    expected = row.make().partial_fit(X[:20], Y[:20]).partial_fit(X[20:], Y[20:])
    found = through_file(row.make().partial_fit(X[:20], Y[:20]), tmp_path, 2)
    found.partial_fit(X[20:], Y[20:])
    assert_array_equal(found.predict(X), expected.predict(X))


@pytest.mark.parametrize("search", [RLSCV, LRRCV, HOLRRCV])
def test_searches_with_missing_outputs_load_from_version_2(search, tmp_path):
    """Their parameter has the old name, which works with a warning in another fit."""
    X, Y = toy(60)
    Y = with_missing(Y, 0.2)
    model = search([0.1, 1.0], cv=3, missing="ignore").fit(X, Y)
    found = through_file(model, tmp_path, 2)
    assert found.missing == "fill"
    assert_same_fit(found, model)
    assert_array_equal(found.predict(X), model.predict(X))
    with pytest.warns(FutureWarning, match="is now called"):
        again = clone(found).fit(X, Y)
    assert_array_equal(again.predict(X), model.predict(X))


def test_weights_of_outputs_load_from_version_2(tmp_path):
    X, Y = toy(60)
    weights = [np.array([1.0, 4.0, 0.25]), None]
    for model in (HOLRR(2, output_weight=weights), HOLRRCV([0.1, 1.0], output_weight=weights)):
        model.fit(X, Y)
        found = through_file(model, tmp_path, 2)
        assert_same_fit(found, model)
        assert found.score(X, Y) == pytest.approx(model.score(X, Y), rel=1e-12)


@pytest.mark.parametrize("seed", [55, 281])
def test_the_kernel_of_a_stack_loads_from_version_2(seed, tmp_path):
    """It may differ from that of the best single rank, which `best_index_` gives."""
    X, Y = make_tensor_regression(
        40, n_features=20, output_shape=(3, 2, 4), rank=2, snr=600, random_state=seed
    )
    ranks = [(10, 2, 1, 1), (10, 3, 2, 2), (3, 3, 1, 4)]
    X = X * np.logspace(0, -3, 20)
    model = KernelHOLRRCV(gammas=[0.3, 0.003], ranks=ranks, cv=3).fit(X, Y)
    assert model.gamma_ != model.kernels_[model.best_index_[0]]["gamma"]
    found = through_file(model, tmp_path, 2)
    assert (found.gamma_, found.alpha_, found.rank_) == (model.gamma_, model.alpha_, model.rank_)
    assert found.kernel_params_ == model.kernel_params_
    assert_same_fit(found, model)


def test_labelled_models_load_from_version_2(tmp_path):
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    X, Y = toy(40)
    day = np.arange(40)
    x = xr.DataArray(X, dims=("day", "driver"), coords={"day": day, "driver": list("abcde")})
    y = xr.DataArray(Y, dims=("day", "lat", "lon"), coords={"day": day, "lat": [10, 20, 30]})
    for model in (HOLRR(2), HOLRRCV([0.1, 1.0], cv=3), KernelHOLRRCV([0.1, 1.0], cv=3)):
        model.fit(x, y)
        found = through_file(model, tmp_path, 2)
        xr.testing.assert_identical(found.predict(x), model.predict(x))
        xr.testing.assert_identical(found.to_xarray().drop_attrs(), model.to_xarray().drop_attrs())


@pytest.mark.parametrize("grams", [False, True])
def test_moments_load_from_version_2(grams, tmp_path):
    X, Y = toy(40)
    moments = Moments.from_arrays(X, Y, response_grams=grams)
    assert_same_state(through_file(moments, tmp_path, 2), moments)


def test_a_loaded_search_of_version_2_has_standard_errors(tmp_path):
    X, Y = toy(60, noise=2.0)
    model = HOLRRCV([0.1, 1.0, 10.0]).fit(X, Y)
    found = through_file(model, tmp_path, 2)
    errors = [standard_errors(m, X, Y, stability=False).coef.std_error for m in (found, model)]
    assert_allclose(*errors, rtol=1e-10)


# ---------------------------------------------------------------- version 1


@pytest.mark.parametrize("make", [RLS, HOLRR, RLSCV, HOLRRCV, KernelHOLRRCV], ids=str)
def test_models_of_version_1_predict_without_noise(make, tmp_path):
    X, Y = toy(40)
    model = make().fit(X, Y)
    found = through_file(model, tmp_path, 1)
    assert_array_equal(found.predict(X), model.predict(X))
    assert found.score(X, Y) == model.score(X, Y)
    assert not hasattr(found, "noise_")
    with pytest.raises(ValueError, match=r"return_std.*older version.*fit again"):
        found.predict(X, return_std=True)
    if hasattr(model, "best_estimator_"):
        assert found.alpha_ == model.alpha_
        assert found.best_estimator_.get_params() == model.best_estimator_.get_params()
        with pytest.raises(ValueError, match=r"predict_interval.*older version.*[Ff]it again"):
            found.predict_interval(X)


def test_moments_of_version_1_are_fitted_without_noise(tmp_path):
    X, Y = toy(40)
    moments = Moments.from_arrays(X, Y)
    found = through_file(moments, tmp_path, 1)
    assert found.squares is None
    assert found.feature_names is None
    model, expected = HOLRR(2).fit_moments(found), HOLRR(2).fit_moments(moments)
    assert_array_equal(model.coef_, expected.coef_)
    with pytest.raises(ValueError, match=r"return_std.*moments.*older version"):
        model.predict(X, return_std=True)
    merged = found + moments  # of which those of one part lack the squares
    assert merged.squares is None
    search = HOLRRCV([0.1, 1.0]).fit_fold_moments([found, found])
    assert search.predict(X).shape == Y.shape
    with pytest.raises(ValueError, match="predict_interval"):
        search.predict_interval(X)


def test_batches_continue_from_version_1(tmp_path):
    X, Y = toy(40)
    expected = HOLRR(rank=2).partial_fit(X[:20], Y[:20]).partial_fit(X[20:], Y[20:])
    found = through_file(HOLRR(rank=2).partial_fit(X[:20], Y[:20]), tmp_path, 1)
    found.partial_fit(X[20:], Y[20:])
    assert_array_equal(found.coef_, expected.coef_)
    assert not hasattr(found, "noise_")
