"""What every estimator of the registry does: each test runs for each row."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import reference
from holrr import Moments, Tucker
from problems import batchings, toy
from registry import ROWS

SHAPES = [(), (1,), (3,), (1, 1), (3, 4), (4, 1, 2), (2, 3, 2, 2)]


def expected_failed_checks(estimator):
    return next(dict(row.failing_checks) for row in ROWS if repr(row.estimator) == repr(estimator))


@parametrize_with_checks(
    [row.estimator for row in ROWS], expected_failed_checks=expected_failed_checks
)
def test_scikit_learn_estimator_checks(estimator, check):
    check(estimator)


ARRAY_API_CHECKS = """
from registry import ROWS
from sklearn.utils.estimator_checks import check_array_api_input

for row in ROWS:
    check_array_api_input(row.id, row.make(), array_namespace="numpy")
    print("checked")
"""


def test_scikit_learn_array_api_checks():
    """scikit-learn skips these unless scipy was told of the array API before its import."""
    done = subprocess.run(
        [sys.executable, "-c", ARRAY_API_CHECKS],
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["checked"] * len(ROWS)


def certificate(model):
    """Objective and bound, of those estimators that have them."""
    names = ("objective_", "lower_bound_")
    return {name: getattr(model, name) for name in names if hasattr(model, name)}


def assert_same_certificate(model, other, tol=1e-9, scale=1.0):
    found, expected = certificate(model), certificate(other)
    assert found.keys() == expected.keys()
    for name in expected:
        assert_allclose(found[name], scale * expected[name], rtol=tol)


# ---------------------------------------------------------------- shapes and attributes


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_prediction_has_the_shape_of_y_for_every_order(row, shape):
    X, Y = toy(shape=shape)
    model = row.make().fit(X, Y)
    assert model.predict(X[:7]).shape == (7, *shape)
    assert model.predict(X[:1]).shape == (1, *shape)
    assert model.coef_.shape == (X.shape[1], *shape)
    assert np.shape(model.intercept_) == shape
    assert model.n_features_in_ == X.shape[1]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_prediction_is_the_dense_linear_map(row, shape):
    X, Y = toy(shape=shape)
    model = row.make().fit(X, Y)
    dense = np.tensordot(X, model.coef_, axes=1) + model.intercept_
    assert_allclose(model.predict(X), dense, rtol=1e-12, atol=1e-12 * np.abs(Y).max())


@pytest.mark.parametrize("n", [1, 400])
def test_prediction_never_builds_the_dense_coefficients(row, n, monkeypatch):
    X, Y = toy(shape=(3, 4, 2))
    model = row.make().fit(X, Y)
    expected = np.tensordot(np.resize(X, (n, 5)), model.coef_, axes=1) + model.intercept_
    monkeypatch.setattr(Tucker, "to_dense", lambda self: pytest.fail("built the dense tensor"))
    assert_allclose(model.predict(np.resize(X, (n, 5))), expected, rtol=1e-10)
    model.fit(X, Y).score(X, Y)


def test_vector_targets_agree_with_one_column(row):
    X, y = toy(shape=())
    one, column = row.make().fit(X, y), row.make().fit(X, y[:, None])
    assert_allclose(one.predict(X), column.predict(X)[:, 0], rtol=1e-12)
    assert one.predict(X).shape == y.shape


def test_objective_is_the_brute_force_objective(row):
    X, Y = toy()
    w = np.random.default_rng(1).uniform(0.1, 3, len(X))
    for weights in (None, w):
        model = row.make().fit(X, Y, weights)
        expected = reference.objective(X, Y, model.coef_, model.alpha, model.intercept_, weights)
        assert_allclose(model.objective_, expected, rtol=1e-9)
        assert model.lower_bound_ <= model.objective_ * (1 + 1e-12)


def test_score_is_r2_of_the_flattened_outputs(row):
    X, Y = toy()
    w = np.random.default_rng(1).uniform(size=len(X))
    model = row.make().fit(X[:30], Y[:30])
    flat = Y.reshape(len(Y), -1), model.predict(X).reshape(len(Y), -1)
    assert_allclose(model.score(X, Y), r2_score(*flat), rtol=1e-12)
    assert_allclose(model.score(X, Y, w), r2_score(*flat, sample_weight=w), rtol=1e-12)
    X, y = toy(shape=())
    model = row.make().fit(X, y)
    assert_allclose(model.score(X, y), r2_score(y, model.predict(X)), rtol=1e-12)


# ---------------------------------------------------------------- invariances


def test_order_of_the_samples_does_not_matter(row):
    X, Y = toy()
    order = np.random.default_rng(1).permutation(len(X))
    model, shuffled = row.make().fit(X, Y), row.make().fit(X[order], Y[order])
    assert_allclose(shuffled.coef_, model.coef_, rtol=1e-9, atol=1e-10)
    assert_allclose(shuffled.intercept_, model.intercept_, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("mode", [1, 2, 3])
def test_rotation_of_an_output_mode_rotates_the_prediction(row, mode):
    X, Y = toy(shape=(3, 4, 2))
    Q = reference.random_orthonormal(np.random.default_rng(1), Y.shape[mode], Y.shape[mode])
    model = row.make().fit(X, Y)
    rotated = row.make().fit(X, reference.mode_product(Y, Q, mode))
    expected = reference.mode_product(model.predict(X), Q, mode)
    assert_allclose(rotated.predict(X), expected, rtol=1e-9, atol=1e-9)
    assert_same_certificate(rotated, model)


def test_rotation_of_the_inputs_leaves_the_prediction(row):
    X, Y = toy()
    Q = reference.random_orthonormal(np.random.default_rng(1), X.shape[1], X.shape[1])
    model, rotated = row.make().fit(X, Y), row.make().fit(X @ Q, Y)
    assert_allclose(rotated.predict(X @ Q), model.predict(X), rtol=1e-9, atol=1e-9)


def test_permutation_of_output_modes_permutes_the_prediction(row):
    X, Y = toy(shape=(3, 4, 2))
    model, moved = row.make().fit(X, Y), row.make().fit(X, Y.transpose(0, 3, 1, 2))
    assert_allclose(moved.predict(X), model.predict(X).transpose(0, 3, 1, 2), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("scale", [-2.5, 1e-3, 1e4])
def test_scale_of_the_outputs_scales_the_prediction(row, scale):
    X, Y = toy()
    model, scaled = row.make().fit(X, Y), row.make().fit(X, scale * Y)
    assert_allclose(scaled.predict(X), scale * model.predict(X), rtol=1e-8, atol=1e-9 * abs(scale))
    assert_same_certificate(scaled, model, scale=scale**2)


def test_shift_of_the_data_moves_only_the_intercept(row):
    if not row.estimator.fit_intercept:
        pytest.skip("without intercept a shift is another problem")
    X, Y = toy()
    model, shifted = row.make().fit(X, Y), row.make().fit(X + 100.0, Y - 30.0)
    assert_allclose(shifted.coef_, model.coef_, rtol=1e-8, atol=1e-10)
    assert_allclose(shifted.predict(X + 100.0), model.predict(X) - 30.0, rtol=1e-9, atol=1e-9)


# ---------------------------------------------------------------- weights


def test_integer_weights_are_repeated_rows(row):
    X, Y = toy()
    w = np.random.default_rng(1).integers(0, 4, len(X))
    weighted, repeated = row.make().fit(X, Y, w), row.make().fit(X.repeat(w, 0), Y.repeat(w, 0))
    assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-9, atol=1e-10)
    assert_allclose(weighted.intercept_, repeated.intercept_, rtol=1e-9, atol=1e-10)
    assert_same_certificate(weighted, repeated)


def test_unit_weights_are_no_weights(row):
    X, Y = toy()
    plain = row.make().fit(X, Y)
    for ones in (np.ones(len(X)), [1] * len(X), 1.0):
        weighted = row.make().fit(X, Y, sample_weight=ones)
        assert_allclose(weighted.coef_, plain.coef_, rtol=1e-10, atol=1e-12)


def test_samples_of_weight_zero_are_ignored(row):
    X, Y = toy()
    w = np.r_[np.zeros(10), np.random.default_rng(1).uniform(0.5, 2, 30)]
    wild = np.r_[1e3 * np.ones((10, *Y.shape[1:])), Y[10:]]
    weighted, without = row.make().fit(X, wild, w), row.make().fit(X[10:], Y[10:], w[10:])
    assert_allclose(weighted.coef_, without.coef_, rtol=1e-8, atol=1e-9)


def test_weights_work_with_fewer_samples_than_features(row):
    X, Y = toy(n=6, d0=9)
    w = np.array([1, 2, 0, 3, 1, 2])
    weighted, repeated = row.make().fit(X, Y, w), row.make().fit(X.repeat(w, 0), Y.repeat(w, 0))
    assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-7, atol=1e-8)


# ---------------------------------------------------------------- batches


def incremental(row):
    if not hasattr(row.estimator, "partial_fit"):
        pytest.skip("no partial_fit")


@given(slices=batchings(40), weighted=st.booleans(), shape=st.sampled_from([(), (3,), (3, 4)]))
@settings(max_examples=12)
def test_partial_fit_over_any_batching_is_fit(row, slices, weighted, shape):
    incremental(row)
    X, Y = toy(shape=shape)
    w = np.random.default_rng(1).uniform(size=40) if weighted else None
    whole, parts = row.make().fit(X, Y, w), row.make()
    for rows in slices:
        parts.partial_fit(X[rows], Y[rows], None if w is None else w[rows])
    assert_same_fit(parts, whole)


@given(slices=batchings(40), weighted=st.booleans(), seed=st.integers(0, 999))
@settings(max_examples=12)
def test_merged_moments_in_any_order_give_the_fit(row, slices, weighted, seed):
    incremental(row)
    X, Y = toy()
    rng = np.random.default_rng(seed)
    w = rng.uniform(size=40) if weighted else None
    parts = [
        Moments.from_arrays(X[s], Y[s], None if w is None else w[s], response_grams=True)
        for s in slices
    ]
    order = rng.permutation(len(parts))
    merged = parts[order[0]].merge(*(parts[i] for i in order[1:]))
    assert_same_fit(row.make().fit_moments(merged), row.make().fit(X, Y, w))


def assert_same_fit(a, b, tol=1e-10):
    scale = np.abs(b.coef_).max()
    assert_allclose(a.coef_, b.coef_, rtol=tol, atol=tol * scale)
    assert_allclose(a.intercept_, b.intercept_, rtol=tol, atol=tol * scale)
    assert_same_certificate(a, b, tol)
    assert getattr(a, "rank_", None) == getattr(b, "rank_", None)


def test_partial_fit_goes_on_from_fit_moments(row):
    incremental(row)
    X, Y = toy()
    model = row.make().fit_moments(Moments.from_arrays(X[:9], Y[:9], response_grams=True))
    assert_same_fit(model.partial_fit(X[9:], Y[9:]), row.make().fit(X, Y))


def test_fit_after_partial_fit_starts_anew(row):
    incremental(row)
    X, Y = toy()
    model = row.make().partial_fit(X[:9], Y[:9]).fit(X[9:], Y[9:])
    assert_same_fit(model, row.make().fit(X[9:], Y[9:]))


def test_partial_fit_after_fit_says_that_it_starts_anew(row):
    """fit keeps no moments to go on from; forgetting its data must not pass in silence."""
    incremental(row)
    X, Y = toy()
    model = row.make().fit(X[:9], Y[:9])
    with pytest.warns(UserWarning, match="partial_fit starts anew"):
        model.partial_fit(X[9:], Y[9:])
    assert_same_fit(model, row.make().fit(X[9:], Y[9:]))


# ---------------------------------------------------------------- scikit-learn's machinery


def test_refit_forgets_the_last_fit(row):
    X, Y = toy()
    other = toy(n=20, d0=3, shape=(2, 2, 2))
    again, fresh = row.make().fit(*other).fit(X, Y), row.make().fit(X, Y)
    assert joblib.hash(vars(again)) == joblib.hash(vars(fresh))


def test_fit_is_deterministic(row):
    X, Y = toy()
    assert joblib.hash(vars(row.make().fit(X, Y))) == joblib.hash(vars(row.make().fit(X, Y)))


def test_fit_leaves_data_and_parameters_alone(row):
    X, Y = toy()
    w = np.ones(len(X))
    before = joblib.hash([X, Y, w])
    model = row.make()
    params = joblib.hash(model.get_params())
    model.fit(X, Y, w).predict(X)
    assert joblib.hash([X, Y, w]) == before
    assert joblib.hash(model.get_params()) == params


def test_clone_pickle_and_set_params(row):
    X, Y = toy()
    model = row.make().fit(X, Y)
    copied = pickle.loads(pickle.dumps(model))
    assert_array_equal(copied.predict(X), model.predict(X))
    assert_array_equal(copied.coef_, model.coef_)
    assert set(vars(copied)) == set(vars(model))
    fresh = clone(model)
    assert fresh.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        fresh.predict(X)
    assert_array_equal(fresh.set_params(**model.get_params()).fit(X, Y).coef_, model.coef_)


def test_unfitted_estimators_say_so(row):
    X, Y = toy()
    for use in (
        lambda m: m.predict(X),
        lambda m: m.score(X, Y),
        lambda m: m.coef_,
        lambda m: m.n_parameters_,
    ):
        with pytest.raises(NotFittedError):
            use(row.make())


def test_pipeline_with_scaled_inputs(row):
    X, Y = toy()
    piped = make_pipeline(StandardScaler(), row.make()).fit(X, Y)
    scaled = StandardScaler().fit_transform(X)
    assert_allclose(piped.predict(X), row.make().fit(scaled, Y).predict(scaled), rtol=1e-10)
    assert piped.score(X, Y) == pytest.approx(row.make().fit(scaled, Y).score(scaled, Y))


def test_cross_validation_with_tensor_outputs(row):
    X, Y = toy()
    assert cross_val_predict(row.make(), X, Y, cv=3).shape == Y.shape


@pytest.mark.parametrize("parameter", ["alpha", "rank"])
def test_grid_search_with_tensor_outputs(row, parameter):
    if parameter not in row.estimator.get_params():
        pytest.skip(f"no parameter {parameter}")
    X, Y = toy(noise=0.01)
    grid = {"alpha": [1e-2, 1e4], "rank": [1, 2]}[parameter]
    search = GridSearchCV(row.make(), {parameter: grid}, cv=3).fit(X, Y)
    assert search.best_params_ == {parameter: {"alpha": 1e-2, "rank": 2}[parameter]}
    assert search.predict(X).shape == Y.shape
    by_hand = [
        row.make(**{parameter: value}).fit(X[14:], Y[14:]).score(X[:14], Y[:14]) for value in grid
    ]
    assert_allclose(search.cv_results_["split0_test_score"], by_hand, rtol=1e-10)


# ---------------------------------------------------------------- degenerate data


@pytest.mark.parametrize("shape", [(), (1, 1), (3, 4)], ids=str)
def test_one_sample_is_predicted_by_itself(row, shape):
    X, Y = toy(n=1, shape=shape)
    model = row.make().fit(X, Y)
    assert np.isfinite(model.predict(X)).all()
    if row.estimator.fit_intercept:
        assert_allclose(model.predict(X), Y, rtol=1e-12)
        assert_allclose(model.predict(X + 5), Y, rtol=1e-12)
    assert np.isfinite(list(certificate(model).values())).all()


def test_one_feature(row):
    X, Y = toy(d0=1)
    model = row.make().fit(X, Y)
    assert model.predict(X).shape == Y.shape
    assert model.score(X, Y) > 0.1 or not row.estimator.fit_intercept


@pytest.mark.parametrize("value", [0.0, 0.1, 1e6 + 0.1])
@pytest.mark.parametrize("n", [4, 40])
def test_constant_inputs_predict_the_mean(row, value, n):
    if not row.estimator.fit_intercept:
        pytest.skip("without intercept a constant input is one")
    _, Y = toy(n=n)
    X = np.full((n, 5), value)
    model = row.make().fit(X, Y)
    assert_allclose(model.predict(X), np.broadcast_to(Y.mean(0), Y.shape), rtol=1e-9)
    assert_allclose(model.coef_, 0, atol=1e-9)


@pytest.mark.parametrize("value", [0.0, 0.1, -1e8])
def test_constant_outputs_are_predicted(row, value):
    X, Y = toy()
    Y = np.full_like(Y, value)
    model = row.make().fit(X, Y)
    assert np.isfinite(model.coef_).all()
    if row.estimator.fit_intercept:
        assert_allclose(model.predict(X), Y, rtol=1e-12)
        assert certificate(model).get("objective_", 0.0) <= 1e-20 * max(1.0, value**2)


def test_constant_feature_and_constant_output_entry(row):
    X, Y = toy()
    X[:, 2], Y[:, 1, 2] = 3.0, -7.0
    model = row.make().fit(X, Y)
    assert np.isfinite(model.predict(X)).all()
    if row.estimator.fit_intercept:
        assert_allclose(model.coef_[2], 0, atol=1e-10)
        X[:, 2] = 1e3  # an input that never varied has no say
        assert np.abs(model.predict(X)).max() < 10 * np.abs(Y).max()


def test_fewer_samples_than_features(row):
    X, Y = toy(n=6, d0=30)
    model = row.make().fit(X, Y)
    assert model.score(X, Y) > 0.5
    assert model.coef_.shape == (30, 3, 4)
