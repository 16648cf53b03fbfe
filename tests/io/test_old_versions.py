"""Files of older versions of the format load as the models that wrote them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from headers import downgrade, header_of
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from holrr import HOLRR, HOLRRCV, LRRCV, RLS, RLSCV, KernelHOLRRCV, Moments, standard_errors
from holrr.io import load, save
from problems import assert_same_state, toy, with_missing

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty")


def through_file(value, tmp_path, version):
    """The value after a file of an older version."""
    save(value, tmp_path / "old")
    downgrade(tmp_path / "old", version)
    assert header_of(tmp_path / "old")["version"] == version
    return load(tmp_path / "old")


def fitted(row, X, Y):
    """A model that older versions could have written: their stacks mix ranks at one penalty."""
    model = row.make().fit(X, Y)
    return row.make(max_rank=3).fit(X, Y) if hasattr(model, "stack_ranks_") else model


def assert_same_fit(found, expected):
    """All fitted attributes agree to the last bit, and all parameters but those with new names."""
    fitted = {k: v for k, v in vars(expected).items() if k not in expected.get_params()}
    again = {k: v for k, v in vars(found).items() if k not in found.get_params()}
    for state in (fitted, again):
        model = state.pop("best_estimator_", None)
        if model is not None:
            model = {k: v for k, v in vars(model).items() if k != "missing"}
            state["best_estimator_"] = SimpleNamespace(**model)
            state["cv_results_"] = dict(sorted(state["cv_results_"].items()))
    assert fitted.keys() == again.keys()
    for name in fitted:
        assert_same_state(again[name], fitted[name])


# ---------------------------------------------------------------- versions 2 and 3

both_versions = pytest.mark.parametrize("version", [2, 3])


@both_versions
def test_every_estimator_loads(row, version, tmp_path):
    X, Y = toy(30)
    model = fitted(row, X, Y)
    found = through_file(model, tmp_path, version)
    assert_same_fit(found, model)
    assert_array_equal(found.predict(X), model.predict(X))
    if "_noise" in vars(model):
        assert_array_equal(found.predict(X, return_std=True), model.predict(X, return_std=True))
    if "_intervals" in vars(model):
        assert_array_equal(found.predict_interval(X, 0.8), model.predict_interval(X, 0.8))
    names = ("rank_", "alpha_", "penalty_", "beta_", "gamma_", "noise_", "n_parameters_")
    for name in (*names, "best_params_", "best_score_", "held_out_mse_", "stack_alphas_"):
        assert hasattr(found, name) == hasattr(model, name)
        if hasattr(model, name):
            assert_array_equal(getattr(found, name), getattr(model, name))
    assert repr(found) == repr(model) or (version == 2 and hasattr(model, "selection"))


@both_versions
def test_a_loaded_model_is_saved_in_this_version(row, version, tmp_path):
    X, Y = toy(30)
    found = through_file(fitted(row, X, Y), tmp_path, version)
    found.save(tmp_path / "new")
    assert header_of(tmp_path / "new")["version"] == 4
    assert_same_state(load(tmp_path / "new"), found)


@both_versions
@pytest.mark.rows("batches")
def test_batches_continue(row, version, tmp_path):
    X, Y = toy(40)
    expected = row.make().partial_fit(X[:20], Y[:20]).partial_fit(X[20:], Y[20:])
    found = through_file(row.make().partial_fit(X[:20], Y[:20]), tmp_path, version)
    found.partial_fit(X[20:], Y[20:])
    assert_array_equal(found.predict(X), expected.predict(X))


@pytest.mark.parametrize("search", [RLSCV(), LRRCV(max_rank=2), HOLRRCV(max_rank=2)], ids=str)
def test_searches_with_missing_outputs_load_from_version_2(search, tmp_path):
    """Their parameter has the old name, which works with a warning in another fit."""
    X, Y = toy(60)
    Y = with_missing(Y, 0.2)
    model = search.set_params(alphas=[0.1, 1.0], cv=3, missing="ignore").fit(X, Y)
    found = through_file(model, tmp_path, 2)
    assert found.missing == "fill"
    assert_same_fit(found, model)
    assert_array_equal(found.predict(X), model.predict(X))
    with pytest.warns(FutureWarning, match="is deprecated"):
        again = clone(found).set_params(**model.get_params() | {"missing": "fill"}).fit(X, Y)
    assert_array_equal(again.predict(X), model.predict(X))


@both_versions
def test_weights_of_outputs_load(version, tmp_path):
    X, Y = toy(60)
    weights = [np.array([1.0, 4.0, 0.25]), None]
    search = HOLRRCV([0.1, 1.0], max_rank=2, output_weight=weights)
    for model in (HOLRR(2, output_weight=weights), search):
        model.fit(X, Y)
        found = through_file(model, tmp_path, version)
        assert_same_fit(found, model)
        assert found.score(X, Y) == pytest.approx(model.score(X, Y), rel=1e-12)


@pytest.mark.parametrize("search", [LRRCV(max_rank=3), HOLRRCV(max_rank=3)], ids=str)
@both_versions
def test_older_stacks_load_with_the_score_of_the_best_single_model(search, version, tmp_path):
    """In these versions `best_score_` is minus the error of the stack, which predicts."""
    X, Y = toy(60, noise=2.0)
    model = clone(search).set_params(alphas=[0.1, 1.0, 10.0]).fit(X, Y)
    assert len(model.stack_ranks_) > 1
    save(model, tmp_path / "old")
    downgrade(tmp_path / "old", version)
    before = header_of(tmp_path / "old")["object"]["state"]
    assert -before["best_score_"] == model.held_out_mse_ != -model.best_score_
    assert {"stack_mse_", "stack_gap_"} < set(before)
    assert not {"stack_alphas_", "best_params_"} & set(before)
    found = load(tmp_path / "old")
    assert found.held_out_mse_ == found.cv_results_["held_out_mse"] == -before["best_score_"]
    assert found.best_score_ == -found.cv_results_["mean_mse"][found.best_index_]
    assert found.best_params_ == model.best_params_
    assert found.rank_ == model.rank_
    assert_array_equal(found.stack_alphas_, np.full(len(model.stack_ranks_), model.alpha_))
    assert found.stack_ranks_ == model.stack_ranks_
    assert_array_equal(found.stack_weights_, model.stack_weights_)
    assert not hasattr(found, "stack_mse_")
    assert not hasattr(found, "stack_gap_")
    assert "stack_path_mse" not in found.cv_results_
    assert not found.keep_held_out


@both_versions
def test_the_kernel_of_a_stack_may_differ_from_that_of_the_best_single_model(version, tmp_path):
    """In these versions it was that of the best stack."""
    X, Y = toy(40)
    model = KernelHOLRRCV([0.1, 1.0, 10.0], gammas=[0.3, 0.003], max_rank=2, cv=3).fit(X, Y)
    candidate, place, *rank = model.best_index_
    index = (1 - candidate, (place + 1) % 3, *rank)
    model.best_index_ = index
    found = through_file(model, tmp_path, version)
    assert (found.gamma_, found.alpha_, found.rank_) == (model.gamma_, model.alpha_, model.rank_)
    assert found.kernel_params_ == model.kernel_params_
    assert found.best_index_ == index
    assert found.best_params_ == {
        "alpha": model.alphas_[index[1]],
        "rank": tuple(i + 1 for i in rank),
        **model.kernels_[index[0]],
    }
    assert found.best_params_["gamma"] != found.gamma_
    assert found.best_score_ == -model.cv_results_["mean_mse"][index]
    assert found.held_out_mse_ == model.held_out_mse_
    assert_array_equal(found.stack_alphas_, np.full(len(model.stack_ranks_), model.alpha_))
    assert_array_equal(found.predict(X), model.predict(X))


def test_penalties_by_output_load_from_version_3(tmp_path):
    X, Y = toy(60)
    model = RLSCV([0.1, 1.0, 10.0], alpha_per_output=True).fit(X, Y)
    found = through_file(model, tmp_path, 3)
    assert_same_fit(found, model)
    assert found.held_out_mse_ < -found.best_score_


@both_versions
def test_labelled_models_load(version, tmp_path):
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    X, Y = toy(40)
    day = np.arange(40)
    x = xr.DataArray(X, dims=("day", "driver"), coords={"day": day, "driver": list("abcde")})
    y = xr.DataArray(Y, dims=("day", "lat", "lon"), coords={"day": day, "lat": [10, 20, 30]})
    searches = (search([0.1, 1.0], cv=3, max_rank=2) for search in (HOLRRCV, KernelHOLRRCV))
    for model in (HOLRR(2), *searches):
        model.fit(x, y)
        found = through_file(model, tmp_path, version)
        xr.testing.assert_identical(found.predict(x), model.predict(x))
        xr.testing.assert_identical(found.to_xarray().drop_attrs(), model.to_xarray().drop_attrs())


@both_versions
@pytest.mark.parametrize("grams", [False, True])
def test_moments_load(version, grams, tmp_path):
    X, Y = toy(40)
    moments = Moments.from_arrays(X, Y, response_grams=grams)
    assert_same_state(through_file(moments, tmp_path, version), moments)


@both_versions
def test_a_loaded_stack_has_standard_errors(version, tmp_path):
    X, Y = toy(60, noise=2.0)
    model = HOLRRCV([0.1, 1.0, 10.0], max_rank=3).fit(X, Y)
    found = through_file(model, tmp_path, version)
    errors = [standard_errors(m, X, Y, stability=False).coef.std_error for m in (found, model)]
    assert_allclose(*errors, rtol=1e-10)


# ---------------------------------------------------------------- version 1


@pytest.mark.parametrize(
    "model",
    [RLS(), HOLRR(), RLSCV(), HOLRRCV(max_rank=2), KernelHOLRRCV(max_rank=2)],
    ids=str,
)
def test_models_of_version_1_predict_without_noise(model, tmp_path):
    X, Y = toy(40)
    model = clone(model).fit(X, Y)
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
