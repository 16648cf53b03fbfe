"""Large offsets, extreme units and single precision: fits lose no digits that the data have."""

from __future__ import annotations

import warnings
from itertools import product

import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

import reference
from holrr import HOLRR, LRR, RLS, RLSCV, KernelRLS, TraceNormRegression
from holrr.streaming import memory_budget
from problems import on_disk, toy

SCALES = [*product([1e-150, 1e150], [1e-150, 1e150]), (1e-60, 1.0), (1.0, 1e60), (1e60, 1e-60)]
MODELS = [RLS(0.5), LRR(2, 0.5), HOLRR(2, 0.5), HOLRR(2, 0.5, subspaces="response")]


@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize("method", ["fit", "partial_fit", "wide"])
@pytest.mark.parametrize(("dx", "dy"), [(0.0, 1e8), (1e6, 0.0), (1e6, 1e8), (-1e6, 3e7)])
def test_offsets_far_larger_than_the_data(model, method, dx, dy):
    X, Y = toy(n=6 if method == "wide" else 300, d0=9 if method == "wide" else 5, offset=0.0)
    # Rounding by the offsets changes the data: the reference has the rounded data.
    Xo, Yo = X + dx, Y + dy
    X, Y = Xo - dx, Yo - dy
    expected = model.fit(X, Y)
    coef, objective, predicted = expected.coef_, expected.objective_, expected.predict(X)
    if method == "partial_fit":
        shifted = clone(model).partial_fit(Xo[:100], Yo[:100]).partial_fit(Xo[100:], Yo[100:])
    else:
        shifted = model.fit(Xo, Yo)
    assert_allclose(shifted.coef_, coef, atol=1e-6 * np.abs(coef).max())
    assert_allclose(shifted.objective_, objective, rtol=1e-6)
    assert_allclose(shifted.predict(Xo) - dy, predicted, atol=1e-6 * np.abs(Y).max())


@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize("n_unweighted", [30, 99])
def test_offsets_of_samples_with_weight_do_not_cancel(model, n_unweighted):
    """The centre must be that of samples with weight."""
    X, Y = toy(n=300)
    Y, w = Y + 1e8, np.r_[np.zeros(n_unweighted), np.ones(300 - n_unweighted)]
    expected = clone(model).fit(X[w > 0], Y[w > 0])
    Y[w == 0] = 0.0
    found = [clone(model).fit(X, Y, w)]
    if hasattr(model, "partial_fit"):
        found += [clone(model).partial_fit(X, Y, w)]
    for same in found:
        assert_allclose(same.objective_, expected.objective_, rtol=1e-6)
        assert_allclose(same.lower_bound_, expected.lower_bound_, rtol=1e-6)


@pytest.mark.parametrize("model", [LRR(2, 0), HOLRR(2, 0), HOLRR(2, 0, refine=True)], ids=repr)
@pytest.mark.parametrize(("scale_x", "scale_y"), SCALES)
def test_predictions_do_not_depend_on_the_units(model, scale_x, scale_y):
    X, Y = toy()
    predicted, rank = model.fit(X, Y).predict(X), model.rank_
    model.fit(X * scale_x, Y * scale_y)
    assert model.rank_ == rank
    assert_allclose(model.predict(X * scale_x) / scale_y, predicted, rtol=1e-7)
    assert model.lower_bound_ <= model.objective_ * (1 + 1e-9)


@pytest.mark.parametrize("scale", [1e-150, 1e-70, 1e70, 1e150])
def test_squares_are_in_the_units_of_the_data(scale):

    X, Y = toy()
    plain, scaled = HOLRR(2, 0).fit(X, Y), HOLRR(2, 0).fit(X / scale, Y * scale)
    for name in ("energy_", "objective_", "lower_bound_"):
        assert_allclose(getattr(scaled, name) / scale / scale, getattr(plain, name), rtol=1e-7)
    for found, expected in zip(scaled.spectra_, plain.spectra_, strict=True):
        assert_allclose(found / scale / scale, expected, rtol=1e-7, atol=1e-9 * plain.energy_)


@pytest.mark.parametrize("scale", [1e-150, 1e-60, 1e60, 1e150])
def test_predictions_of_batches_do_not_depend_on_the_units(scale):
    X, Y = toy()
    model = HOLRR(2, 0).partial_fit(X[:20] * scale, Y[:20] * scale)
    model.partial_fit(X[20:] * scale, Y[20:] * scale)
    assert_allclose(model.predict(X * scale) / scale, HOLRR(2, 0).fit(X, Y).predict(X), rtol=1e-7)


@pytest.mark.parametrize("alpha", [1e-300, 1e-20, 1e20, 1e300])
def test_penalties_of_any_size_give_finite_fits(alpha):
    X, Y = toy()
    for model in (RLS(alpha), LRR(2, alpha), HOLRR(2, alpha)):
        model.fit(X, Y)
        assert np.isfinite(model.predict(X)).all()
        assert model.lower_bound_ <= model.objective_ * (1 + 1e-9)
    if alpha > 1:
        assert_allclose(RLS(alpha).fit(X, Y).predict(X), np.broadcast_to(Y.mean(0), Y.shape))
    else:
        assert_allclose(RLS(alpha).fit(X, Y).coef_, RLS(0).fit(X, Y).coef_, rtol=1e-9)


def test_single_precision_of_many_samples_is_summed_in_double():
    """Sums of 200 000 products, with a mean far larger than the variance."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200_000, 4)).astype(np.float32) + np.float32(20)
    W = rng.normal(size=(4, 3, 2))
    Y = (np.tensordot(X.astype(float), W, axes=1) + rng.normal(size=(200_000, 3, 2))).astype("f4")
    single = HOLRR(2, 1.0).fit(X, Y)
    double = HOLRR(2, 1.0).fit(X.astype(float), Y.astype(float))
    assert single.coef_.dtype == np.float32
    assert_allclose(single.coef_, double.coef_, rtol=1e-3, atol=1e-4)
    assert_allclose(single.objective_, double.objective_, rtol=1e-4)
    assert_allclose(single.predict(X), double.predict(X.astype(float)), rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("scale_x", [1e-25, 1.0, 1e25])
@pytest.mark.parametrize("scale_y", [1e-25, 1.0, 1e18, 1e25])
def test_single_precision_with_squares_beyond_its_range(scale_x, scale_y):

    X, Y = toy()
    expected = HOLRR(2, 0).fit(X, Y)
    Xs, Ys = (X * scale_x).astype(np.float32), (Y * scale_y).astype(np.float32)
    model = HOLRR(2, 0).fit(Xs, Ys)
    scaled = model.predict(Xs).astype(float) / scale_y
    assert_allclose(scaled, expected.predict(X), atol=1e-3)
    assert_allclose(model.objective_ / scale_y**2, expected.objective_, rtol=0.01)


def test_coefficients_beyond_single_precision_are_kept_in_double():
    X, Y = toy()
    Xs, Ys = (1e-6 * X).astype(np.float32), (1e36 * Y).astype(np.float32)
    expected = RLS(0).fit(Xs.astype(float), Ys.astype(float)).predict(Xs.astype(float))
    assert_allclose(RLS(0).fit(Xs, Ys).predict(Xs), expected, rtol=1e-3, atol=1e32)
    kernel = KernelRLS(1e-3, kernel="rbf", gamma=0.01)
    expected = clone(kernel).fit(X, Y).predict(X)
    assert_allclose(kernel.fit(X.astype("f4"), Ys).predict(X) / 1e36, expected, atol=1e-2)


@pytest.mark.parametrize("model", [RLS(0), KernelRLS(1e-3)])
def test_coefficients_below_single_precision_are_kept_in_double(model):
    X, Y = toy()
    Xs, Ys = (1e20 * X).astype(np.float32), (1e-20 * Y).astype(np.float32)
    expected = RLS(0).fit(X, Y).predict(X)
    assert_allclose(1e20 * model.fit(Xs, Ys).predict(Xs), expected, atol=1e-3)


def test_coefficients_that_overflow_raise_in_fit():
    X, Y = toy()
    with pytest.raises(ValueError, match="coefficients overflow"):
        RLS(0).fit(1e-160 * X, 1e160 * Y)


def test_inputs_with_overflowing_squares_raise_in_batches():
    """Moments hold squares; `fit` divides the inputs by a power of two first."""
    X, Y = toy()
    with pytest.raises(ValueError, match=r"X.*overflow"):
        HOLRR(2, 0).partial_fit(X * 1e200, Y)
    expected = HOLRR(2, 0).fit(X, Y).predict(X)
    assert_allclose(HOLRR(2, 0).fit(X * 1e200, Y).predict(X * 1e200), expected, rtol=1e-8)


def test_objective_of_a_nearly_exact_fit():
    """The objective is a difference of two squares, exact up to the rounding of the larger."""
    rng = np.random.default_rng(0)
    X, W = rng.normal(size=(200, 5)), rng.normal(size=(5, 3, 4))
    Y = np.tensordot(X, W, axes=1) + 1e-6 * rng.normal(size=(200, 3, 4))
    model = RLS(0).fit(X, Y)
    by_hand = reference.objective(X, Y, model.coef_, 0.0, model.intercept_)
    rounding = 4 * np.finfo(float).eps * np.sum((Y - Y.mean(0)) ** 2)
    assert by_hand > 100 * rounding
    assert_allclose(model.objective_, by_hand, rtol=0, atol=rounding)


@pytest.mark.parametrize("n", [4, 30])
@pytest.mark.parametrize("value", [0.0, 0.1, 1e6 + 0.1])
@pytest.mark.parametrize("solver", ["auto", "svd"])
@pytest.mark.parametrize("weighted", [False, True])
def test_constant_features_have_coefficients_of_zero(n, value, solver, weighted, use_solver):
    """Rounding of the mean is not taken for variance, without a penalty."""
    use_solver(solver)
    X, Y = toy(n=n, d0=8)
    X[:, 3] = value
    w = np.random.default_rng(1).uniform(0.1, 2, n) if weighted else None
    model = RLS(alpha=0).fit(X, Y, w)
    assert_allclose(model.coef_[3], 0, atol=1e-9 * np.abs(model.coef_).max())


@pytest.mark.parametrize("model", [RLS(0.0), RLS(1e-30), HOLRR(1, 0.0), RLSCV(cv=3)], ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("source", ["memory", "batches", "disk", "dask"])
def test_constant_inputs_of_any_source_have_coefficients_of_zero(model, weighted, source, tmp_path):
    """Blocks of samples have means that are rounded differently."""
    if source == "batches" and not hasattr(model, "partial_fit"):
        pytest.skip("has no partial_fit")
    _, Y = toy(n=30, shape=(3,))
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = np.tile(rng.normal(size=2) * 10.0 ** rng.uniform(-3, 5, size=2), (30, 1))
        w = rng.uniform(size=30) if weighted else None
        found = clone(model)
        if source == "batches":
            for rows in np.array_split(np.arange(30), 4):
                found.partial_fit(X[rows], Y[rows], None if w is None else w[rows])
        elif source == "disk":
            with memory_budget(2**10):
                folder = tmp_path / str(seed)
                folder.mkdir()
                found.fit(on_disk(folder, "X", X), on_disk(folder, "Y", Y), w)
        elif source == "dask":
            found.fit(*(da.from_array(A, chunks=(7, -1)) for A in (X, Y)), w)
        else:
            found.fit(X, Y, w)
        assert_allclose(found.coef_, 0.0, atol=1e-12)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("n", [6, 9, 200])
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
@pytest.mark.parametrize("solver", ["auto", "svd"])
def test_dependent_features_with_a_large_mean(solver, offset, n, seed, use_solver):
    """Rounding of inputs with a large mean is not taken for a direction."""
    use_solver(solver)
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(n, 5)) + offset, rng.normal(size=(n, 3, 2))
    X[:, 4] = 3 * X[:, 0]
    model = RLS(alpha=0).fit(X, Y)
    assert_allclose(model.coef_[4], 3 * model.coef_[0], rtol=1e-4, atol=1e-6)
    independent = RLS(alpha=0).fit(X[:, :4] - offset, Y)
    assert_allclose(model.predict(X), independent.predict(X[:, :4] - offset), atol=1e-6)
    by_hand = reference.objective(X, Y, model.coef_, 0.0, model.intercept_)
    assert_allclose(model.objective_, by_hand, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("solver", ["auto", "svd"])
def test_large_weights_do_not_turn_rounding_into_directions(solver, use_solver):
    """Equal weights have no effect without a penalty."""
    use_solver(solver)
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(9, 5)) + 1e6, rng.normal(size=(9, 3, 2))
    X[:, 4] = 3 * X[:, 0]
    model = RLS(alpha=0).fit(X, Y, np.full(9, 1e12))
    plain = RLS(alpha=0).fit(X, Y)
    assert_allclose(model.coef_, plain.coef_, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("make", [RLS, lambda a: TraceNormRegression(1.0, alpha=a)])
def test_directions_lost_in_squares_warn(make, scale):
    """Unless the penalty, relative to the size of the inputs, makes them irrelevant."""
    X, Y = toy()
    X[:, 4] = 3 * X[:, 0]
    size = scale**2 * np.linalg.norm(X - X.mean(0), 2) ** 2
    for alpha in (0.0, 1e-13 * size):
        with pytest.warns(UserWarning, match="is ill-conditioned"):
            make(alpha).partial_fit(X * scale, Y).predict(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(1e-10 * size).partial_fit(X * scale, Y).predict(X)


@pytest.mark.filterwarnings("error")
def test_small_directions_and_few_samples_do_not_warn():
    X, Y = toy()
    RLS(0).partial_fit(X * [1.0, 1e-3, 1e-6, 1e3, 1e6], Y).predict(X)
    few = RLS(0).partial_fit(X[:5], Y[:5])  # about their mean they span four directions
    assert_allclose(few.predict(X[:5]), Y[:5], atol=1e-8)


@pytest.mark.parametrize("solver", ["auto", "svd"])
def test_feature_of_small_scale_beside_one_with_a_large_mean(solver, use_solver):
    """Rounding is judged for each feature."""
    use_solver(solver)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3)) * [1.0, 1.0, 1e-8] + [1e6, 0.0, 0.0]
    Y = np.tensordot(X - X.mean(0), rng.normal(size=(3, 2, 2)) * [[[1]], [[1]], [[1e8]]], axes=1)
    model = RLS(alpha=0).fit(X, Y)
    assert_allclose(model.predict(X), Y, atol=1e-6)


@pytest.mark.parametrize("model", [RLS(0.0), LRR(2, 0.0)], ids=repr)
def test_batches_have_the_digits_of_inputs_of_every_scale(model):
    """The squares of the small inputs are far below the rounding errors of the large one's."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(50, 4)) @ rng.normal(size=(4, 4))
    Y = rng.normal(size=(50, 3))
    for scale in ([1.0, 1e-7, 1e-7, 1e-7], [1.0, 1e-3, 1e-6, 1e-9], [1e9, 1.0, 1e5, 1e-2]):
        X = A * scale
        found = clone(model).partial_fit(X[:20], Y[:20]).partial_fit(X[20:], Y[20:])
        assert_allclose(found.predict(X), clone(model).fit(A, Y).predict(A), atol=1e-9)
