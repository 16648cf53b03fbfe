"""Properties of every estimator: each test runs for the rows of the registry."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, KFold, PredefinedSplit, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import reference
from holrr import Moments, Tucker
from problems import assert_same_state, batchings, toy
from registry import PUBLIC, ROWS, certificate, same_certificate

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty", "ignore:landmarks=")

SHAPES = [(), (1,), (3,), (1, 1), (3, 4), (4, 1, 2), (2, 3, 2, 2)]


def test_every_public_estimator_has_a_row():
    assert {type(row.estimator) for row in ROWS} == set(PUBLIC)
    assert len(PUBLIC) >= 14
    assert len({row.id for row in ROWS}) == len(ROWS)


def test_exemptions_name_existing_checks():
    """A test that is renamed needs its exemptions renamed, too."""
    files = [path.read_text() for path in Path(__file__).parent.rglob("test_*.py")]
    there = set(re.findall(r"^def (test_\w+)\(.*\brow\b", "\n".join(files), re.M))
    for row in ROWS:
        assert set(row.exempt) <= there


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
    """scikit-learn skips these unless SCIPY_ARRAY_API is set before the import of scipy."""
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


# ---------------------------------------------------------------- shapes and attributes


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_prediction_has_the_shape_of_y_and_is_the_dense_linear_map(row, shape):
    X, Y = toy(shape=shape)
    model = row.make().fit(X, Y)
    assert model.predict(X[:7]).shape == (7, *shape)
    assert model.predict(X[:1]).shape == (1, *shape)
    assert np.shape(model.intercept_) == shape
    assert model.n_features_in_ == X.shape[1]
    if row.linear:
        assert model.coef_.shape == (X.shape[1], *shape)
        dense = np.tensordot(X, model.coef_, axes=1) + model.intercept_
        assert_allclose(model.predict(X), dense, rtol=1e-12, atol=1e-12 * np.abs(Y).max())


@pytest.mark.parametrize("n", [1, 400])
def test_prediction_never_forms_the_dense_coefficients(row, n, monkeypatch):
    X, Y = toy(shape=(3, 4, 2))
    model = row.make().fit(X, Y)
    expected = np.resize(model.predict(X), (n, 3, 4, 2))
    monkeypatch.setattr(Tucker, "to_dense", lambda self: pytest.fail("the dense tensor was formed"))
    assert_allclose(model.predict(np.resize(X, (n, 5))), expected, rtol=1e-10)
    model.fit(X, Y).score(X, Y)


def test_scalar_targets_equal_a_single_column(row):
    X, y = toy(shape=())
    one, column = row.make().fit(X, y), row.make().fit(X, y[:, None])
    assert_allclose(one.predict(X), column.predict(X)[:, 0], rtol=max(1e-12, 1e-3 * row.tol))
    assert one.predict(X).shape == y.shape


@pytest.mark.rows("linear", "ridge")
def test_objective_is_that_of_a_sum_over_samples(row):
    X, Y = toy()
    w = np.random.default_rng(1).uniform(0.1, 3, len(X))
    for weights in (None, w):
        model = row.make().fit(X, Y, weights)
        alpha = model.alpha_ if row.searches else model.alpha
        expected = reference.objective(X, Y, model.coef_, alpha, model.intercept_, weights)
        assert_allclose(model.objective_, expected, rtol=1e-9)
        assert model.lower_bound_ <= model.objective_ * (1 + 1e-12)


def test_score_is_the_pooled_r2_of_the_flattened_outputs(row):
    X, Y = toy()
    Y *= np.geomspace(1e-3, 1e3, Y[0].size).reshape(Y.shape[1:])  # some hardly vary
    w = np.random.default_rng(1).uniform(size=len(X))
    w[::4] = 0
    model = row.make().fit(X[:30], Y[:30])
    Y[:, 0, 0] = 7.0  # a constant output does not count
    flat = Y.reshape(len(Y), -1), model.predict(X).reshape(len(Y), -1)
    for weights in (None, w):
        expected = r2_score(*flat, sample_weight=weights, multioutput="variance_weighted")
        assert_allclose(model.score(X, Y, weights), expected, rtol=1e-11)
    uniform = r2_score(*flat)
    assert abs(uniform - r2_score(*flat, multioutput="variance_weighted")) > 1e-3
    X, y = toy(shape=())
    model = row.make().fit(X, y)
    assert_allclose(model.score(X, y), r2_score(y, model.predict(X)), rtol=1e-12)


# ---------------------------------------------------------------- invariances


def labels(n):
    """The fold of each sample, which is permuted with the samples."""
    return np.arange(n) % 3


def test_order_of_the_samples_does_not_matter(row):
    X, Y = toy()
    order = np.random.default_rng(1).permutation(len(X))
    model = row.make(**row.pinned(X, labels(40))).fit(X, Y)
    shuffled = row.make(**row.pinned(X, labels(40)[order])).fit(X[order], Y[order])
    row.same_fit(shuffled, model, X)


def common_penalty(row):
    """Parameters without a penalty for each output, which rotations of the outputs change."""
    return {"selection": "min"} if row.params.get("selection") == "auto" else {}


@pytest.mark.parametrize("mode", [1, 2, 3])
def test_rotation_of_an_output_mode_rotates_predictions(row, mode):
    X, Y = toy(shape=(3, 4, 2))
    Q = reference.random_orthonormal(np.random.default_rng(1), Y.shape[mode], Y.shape[mode])
    given = common_penalty(row)
    model = row.make(**given).fit(X, Y)
    rotated = row.make(**given).fit(X, reference.mode_product(Y, Q, mode))
    row.near(rotated.predict(X), reference.mode_product(model.predict(X), Q, mode))
    same_certificate(rotated, model, row.tol)


def test_rotation_of_inputs_leaves_predictions_unchanged(row):
    """Linear models and the kernels of the registry depend on products of the inputs only."""
    X, Y = toy()
    Q = reference.random_orthonormal(np.random.default_rng(1), X.shape[1], X.shape[1])
    model, rotated = row.make().fit(X, Y), row.make().fit(X @ Q, Y)
    row.near(rotated.predict(X @ Q), model.predict(X))


def test_permutation_of_output_modes_permutes_predictions(row):
    X, Y = toy(shape=(3, 4, 2))
    model, moved = row.make().fit(X, Y), row.make().fit(X, Y.transpose(0, 3, 1, 2))
    row.near(moved.predict(X), model.predict(X).transpose(0, 3, 1, 2), max(1.0, 1e-7 / row.tol))


@pytest.mark.parametrize("scale", [-2.5, 1e-3, 1e4, 1e-170, 1e160])
def test_scaled_outputs_have_scaled_predictions(row, scale):
    X, Y = toy()
    model, scaled = row.make().fit(X, Y), row.make(**row.scaled(scale, (5, 3, 4))).fit(X, scale * Y)
    row.near(scaled.predict(X), scale * model.predict(X))
    if row.ridge:
        same_certificate(scaled, model, row.tol, scale=scale * scale)


@pytest.mark.rows("has_intercept")
def test_shift_of_the_data_changes_only_the_intercept(row):
    X, Y = toy()
    model, moved = row.make().fit(X, Y), row.make().fit(X, Y - 30.0)
    row.near(moved.predict(X), model.predict(X) - 30.0)
    if not row.shifts:  # some kernels depend on the origin
        return
    shifted = row.make().fit(X + 100.0, Y - 30.0)
    if row.linear:
        row.near(shifted.coef_, model.coef_, 10)
    row.near(shifted.predict(X + 100.0), model.predict(X) - 30.0)


@pytest.mark.parametrize("where", ["features", "outputs"])
def test_sizes_above_internal_limits_give_equal_fits(row, where, limit, limits):
    """Every estimator, with limits that are a quarter of the real ones."""
    limits.divide(4)
    assert_equal_fits_of_size(row, where, limits[limit] + 1, n=30)


@pytest.mark.rows("representative")
@pytest.mark.parametrize("where", ["features", "outputs"])
def test_sizes_above_the_real_limits_give_equal_fits(row, where, limit, limits):
    assert_equal_fits_of_size(row, where, limits[limit] + 1, n=50)


def assert_equal_fits_of_size(row, where, size, n):
    """The rotated problem, and the moments, of sizes for which other methods are used."""
    d0, shape = (size, (2,)) if where == "features" else (3, (size,))
    X, Y = toy(n=n, d0=d0, shape=shape, noise=0.1)
    rng = np.random.default_rng(1)
    Q, R = (reference.random_orthonormal(rng, d, d) for d in (d0, shape[0]))
    widths = {"gamma": 0.5 / size, "gammas": [0.5 / size]}
    params = {name: value for name, value in widths.items() if name in row.params}
    params |= common_penalty(row)
    model = row.make(**params).fit(X, Y)
    rotated = row.make(**params).fit(X @ Q, reference.mode_product(Y, R, 1))
    expected = reference.mode_product(model.predict(X), R, 1)
    row.near(rotated.predict(X @ Q), expected, max(1.0, 1e-7 / row.tol))
    same_certificate(rotated, model, max(1e-7, row.tol), floor=1e-12 * (Y**2).sum())
    if row.takes_moments:
        moments = Moments.from_arrays(X, Y, response_grams=True)
        row.near(row.make().fit_moments(moments).predict(X), model.predict(X), 1e-6 / row.tol)


# ---------------------------------------------------------------- weights


def test_integer_weights_equal_repeated_samples(row):
    X, Y = toy()
    w = np.random.default_rng(1).integers(0, 4, len(X))
    weighted = row.make(**row.pinned(X, labels(40))).fit(X, Y, w)
    repeated = row.make(**row.pinned(X, labels(40).repeat(w))).fit(X.repeat(w, 0), Y.repeat(w, 0))
    row.same_fit(weighted, repeated, X)


def test_unit_weights_equal_no_weights(row):
    X, Y = toy()
    plain = row.make().fit(X, Y)
    for ones in (np.ones(len(X)), [1] * len(X), 1.0):
        row.same_fit(row.make().fit(X, Y, sample_weight=ones), plain, X, 0.1)


def test_samples_of_weight_zero_have_no_influence(row):
    X, Y = toy()
    w = np.r_[np.zeros(10), np.random.default_rng(1).uniform(0.5, 2, 30)]
    wild = np.r_[1e3 * np.ones((10, *Y.shape[1:])), Y[10:]]
    folds = [{"cv": PredefinedSplit(labels(40)[k:])} if row.searches else {} for k in (0, 10)]
    weighted = row.make(**folds[0]).fit(X, wild, w)  # the same landmarks are drawn
    without = row.make(**folds[1]).fit(X[10:], Y[10:], w[10:])
    row.same_fit(weighted, without, X, 10)


def test_integer_weights_with_fewer_samples_than_features(row):
    X, Y = toy(n=6, d0=9)
    w = np.array([1, 2, 0, 3, 1, 2])
    weighted = row.make(**row.pinned(X, labels(6))).fit(X, Y, w)
    repeated = row.make(**row.pinned(X, labels(6).repeat(w))).fit(X.repeat(w, 0), Y.repeat(w, 0))
    row.near(weighted.predict(X), repeated.predict(X), max(1.0, 1e-7 / row.tol))


@pytest.mark.rows("searches")
@pytest.mark.parametrize("wide", [False, True])
def test_default_grids_count_what_carries_weight(row, wide):
    """Samples of weight zero and repetitions do not move the penalties that a search tries."""
    X, Y = toy(n=24, d0=40 if wide else 5)
    grids = [name for name in ("alphas", "penalties", "betas", "gammas") if name in row.params]
    params = dict.fromkeys(grids) | ({"tol": 1e-2} if "tol" in row.params else {})
    w = np.r_[np.zeros(9), np.arange(1.0, 16.0)]
    pinned = [row.pinned(X[9:], part) for part in (labels(24), labels(24)[9:])]
    weighted = row.make(**params, **pinned[0]).fit(X, Y, w)
    counts = w[9:].astype(int)
    pinned[1] = row.pinned(X[9:], labels(24)[9:].repeat(counts))
    expected = row.make(**params, **pinned[1]).fit(X[9:].repeat(counts, 0), Y[9:].repeat(counts, 0))
    for name in ("alphas_", "penalties_", "betas_"):
        if hasattr(expected, name):
            assert_allclose(getattr(weighted, name)[0], getattr(expected, name)[0], rtol=1e-9)
            assert_allclose(getattr(weighted, name), getattr(expected, name), rtol=1e-9)


# ---------------------------------------------------------------- batches


@pytest.mark.rows("batches")
@given(slices=batchings(40), weighted=st.booleans(), shape=st.sampled_from([(), (3,), (3, 4)]))
@settings(max_examples=12)
def test_partial_fit_over_any_batches_equals_fit(row, slices, weighted, shape):
    X, Y = toy(shape=shape)
    w = np.random.default_rng(1).uniform(size=40) if weighted else None
    whole, parts = row.make(**row.pinned(X)).fit(X, Y, w), row.make(**row.pinned(X))
    for rows in slices:
        parts.partial_fit(X[rows], Y[rows], None if w is None else w[rows])
    row.same_fit(parts, whole, X, 0.1)


@pytest.mark.rows("takes_moments")
@given(slices=batchings(40), weighted=st.booleans(), seed=st.integers(0, 999))
@settings(max_examples=12)
def test_moments_merged_in_any_order_give_the_fit(row, slices, weighted, seed):
    X, Y = toy()
    rng = np.random.default_rng(seed)
    w = rng.uniform(size=40) if weighted else None
    parts = [
        Moments.from_arrays(X[s], Y[s], None if w is None else w[s], response_grams=True)
        for s in slices
    ]
    order = rng.permutation(len(parts))
    merged = parts[order[0]].merge(*(parts[i] for i in order[1:]))
    row.same_fit(row.make().fit_moments(merged), row.make().fit(X, Y, w), X, 0.1)


@pytest.mark.rows("takes_fold_moments")
def test_moments_of_folds_give_the_search(row):
    X, Y = toy()
    expected = row.make().fit(X, Y)
    parts = [
        Moments.from_arrays(X[test], Y[test], response_grams=True)
        for _, test in KFold(row.params["cv"]).split(X)
    ]
    found = row.make().fit_fold_moments(parts)
    row.near(found.cv_results_["mean_mse"], expected.cv_results_["mean_mse"])
    assert found.best_index_ == expected.best_index_
    row.same_fit(found, expected, X)


@pytest.mark.rows("takes_moments")
def test_partial_fit_continues_from_fit_moments(row):
    X, Y = toy()
    model = row.make().fit_moments(Moments.from_arrays(X[:9], Y[:9], response_grams=True))
    row.same_fit(model.partial_fit(X[9:], Y[9:]), row.make().fit(X, Y), X, 0.1)


@pytest.mark.rows("batches")
def test_fit_after_partial_fit_starts_anew(row):
    X, Y = toy()
    model = row.make().partial_fit(X[:9], Y[:9]).fit(X[9:], Y[9:])
    row.same_fit(model, row.make().fit(X[9:], Y[9:]), X, 0.1)


@pytest.mark.rows("batches")
def test_partial_fit_after_fit_starts_anew_with_a_warning(row):
    """`fit` keeps no moments of its data."""
    X, Y = toy()
    model = row.make().fit(X[:9], Y[:9])
    with pytest.warns(UserWarning, match="partial_fit starts from an empty model"):
        model.partial_fit(X[9:], Y[9:])
    row.same_fit(model, row.make().fit(X[9:], Y[9:]), X, 0.1)


@pytest.mark.rows("batches")
def test_partial_fit_solves_at_once_from_its_moments(row):
    X, Y = toy()
    model = row.make(**row.pinned(X))
    for rows in (slice(0, 8), slice(8, 40)):
        model.partial_fit(X[rows], Y[rows])
        assert {"tucker_", "intercept_", "moments_"} <= set(vars(model))
        assert model.moments_.n_samples == rows.stop
    if row.takes_moments:
        assert_same_state(row.make().fit_moments(model.moments_), model)


@pytest.mark.rows("batches")
def test_parameters_changed_after_a_batch_have_no_effect_before_the_next(row):
    X, Y = toy()
    model = row.make(**row.pinned(X)).partial_fit(X, Y)
    expected = model.predict(X)
    name = next(name for name in ("penalty", "beta", "alpha") if name in row.params)
    model.set_params(**{name: {"alpha": 50.0, "penalty": 9.0, "beta": 3.0}[name]})
    assert_allclose(model.predict(X), expected, rtol=0)
    again = model.partial_fit(X[:1], Y[:1]).predict(X)
    assert np.abs(again - expected).max() > 1e-3


# ---------------------------------------------------------------- sparse inputs


@pytest.mark.rows("takes_sparse")
@pytest.mark.parametrize("wide", [False, True])
def test_sparse_inputs_give_the_fit_of_dense_ones(row, wide):
    X, Y = toy(n=24, d0=40) if wide else toy()
    X = X * (np.arange(X.size).reshape(X.shape) % 3 == 0)
    S = scipy.sparse.csr_array(X)
    found, expected = row.make().fit(S, Y), row.make().fit(X, Y)
    row.near(found.predict(S), expected.predict(X), 10)
    assert found.score(S, Y) == pytest.approx(expected.score(X, Y), rel=1e-6)
    if row.has_noise:
        row.near(found.predict(S, return_std=True)[1], expected.predict(X, return_std=True)[1], 1e3)


# ---------------------------------------------------------------- tools of scikit-learn


def test_pipeline_with_scaled_inputs(row):
    X, Y = toy()
    piped = make_pipeline(StandardScaler(), row.make()).fit(X, Y)
    scaled = StandardScaler().fit_transform(X)
    row.near(piped.predict(X), row.make().fit(scaled, Y).predict(scaled), 0.1)
    assert piped.score(X, Y) == pytest.approx(row.make().fit(scaled, Y).score(scaled, Y))


def test_cross_validation_with_tensor_outputs(row):
    X, Y = toy()
    assert cross_val_predict(row.make(), X, Y, cv=3).shape == Y.shape


@pytest.mark.parametrize("parameter", ["alpha", "rank"])
def test_grid_search_with_tensor_outputs(row, parameter):
    if parameter not in row.params:
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
def test_single_sample_is_predicted_by_itself(row, shape):
    X, Y = toy(n=1, shape=shape)
    model = row.make().fit(X, Y)
    assert np.isfinite(model.predict(X)).all()
    if row.has_intercept:
        for inputs in (X, X + 5):
            assert_allclose(model.predict(inputs), Y, rtol=1e-12)
    assert np.isfinite(list(certificate(model).values())).all()


def test_single_feature(row):
    X, Y = toy(d0=1)
    model = row.make().fit(X, Y)
    assert model.predict(X).shape == Y.shape
    assert model.score(X, Y) > 0.1 or not row.has_intercept


@pytest.mark.rows("has_intercept")
@pytest.mark.parametrize(("value", "n"), [(0.0, 40), (0.1, 4), (1e6 + 0.1, 40)])
def test_constant_inputs_predict_the_mean(row, value, n):
    _, Y = toy(n=n)
    X = np.full((n, 5), value)
    model = row.make().fit(X, Y)
    assert_allclose(model.predict(X), np.broadcast_to(Y.mean(0), Y.shape), rtol=1e-9)
    if row.linear:
        assert_allclose(model.coef_, 0, atol=1e-9)


@pytest.mark.rows("has_intercept")
def test_constant_inputs_with_weights_predict_the_weighted_mean(row):
    """The rounding of a weighted mean is no direction of the inputs, with any penalty."""
    _, Y = toy(n=40)
    penalty = {"alpha": 0.0} if "alpha" in row.params else {}
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = np.tile(rng.normal(size=3) * 10.0 ** rng.uniform(-3, 5, size=3), (40, 1))
        w = rng.uniform(size=40)
        model = row.make(**penalty).fit(X, Y, w)
        expected = np.broadcast_to(np.tensordot(w / w.sum(), Y, 1), Y.shape)
        for inputs in (X, 2 * X, X + 1) if row.linear else (X,):
            assert_allclose(model.predict(inputs), expected, atol=1e-9 * np.abs(Y).max())


@pytest.mark.parametrize("value", [0.0, 0.1, -1e8])
def test_constant_outputs_are_predicted(row, value):
    X, Y = toy()
    Y = np.full_like(Y, value)
    model = row.make().fit(X, Y)
    assert np.isfinite(model.predict(3 * X)).all()
    if row.has_intercept:
        assert_allclose(model.predict(X), Y, rtol=1e-12)
        assert certificate(model).get("objective_", 0.0) <= 1e-20 * max(1.0, value**2)


def test_constant_feature_and_constant_output_entry(row):
    X, Y = toy()
    X[:, 2], Y[:, 1, 2] = 3.0, -7.0
    model = row.make().fit(X, Y)
    assert np.isfinite(model.predict(X)).all()
    if row.has_intercept and row.linear:
        assert_allclose(model.coef_[2], 0, atol=1e-10)
        X[:, 2] = 1e3  # an input that never varied has no influence
        assert np.abs(model.predict(X)).max() < 10 * np.abs(Y).max()


@pytest.mark.rows("has_intercept")
def test_constant_slice_of_the_outputs_is_predicted(row):
    X, Y = toy()
    Y[:, 1] = -7.0
    row.near(row.make().fit(X, Y).predict(X)[:, 1], Y[:, 1])


def test_fewer_samples_than_features(row):
    X, Y = toy(n=6, d0=30)
    model = row.make().fit(X, Y)
    assert model.score(X, Y) > 0.5
    assert model.predict(X).shape == Y.shape
