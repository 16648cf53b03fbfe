"""The model of the inputs: components, held-out distances, limits, and the rows that are used."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
)

from holrr.core.input_model import (
    MIN_ROWS,
    InputModel,
    fit_input_model,
    folds_of_splits,
    interleaved_folds,
    rows_to_use,
)


def structured(n=80, d=12, k=3, seed=0, noise=0.3):
    """A few strong directions, noise of other sizes in each input, and means that are not zero."""
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(n, k)) * [3.0, 2.0, 1.0][:k]
    sizes = noise * np.linspace(0.5, 2, d)
    return latent @ rng.normal(size=(k, d)) + sizes * rng.normal(size=(n, d)) + 5


def decomposed(X):
    """Mean, variances and directions from an SVD."""
    mean = X.mean(axis=0)
    _, s, Vt = np.linalg.svd(X - mean, full_matrices=False)
    return mean, s**2 / len(X), Vt.T


def naive(X, k, n_folds=5):
    """The same model from one SVD for each fold, without weights."""
    n = len(X)
    T, R = np.empty((n, k)), np.empty_like(X)
    for fold in range(n_folds):
        out = np.arange(n) % n_folds == fold
        mean, _, V = decomposed(X[~out])
        Z = X[out] - mean
        T[out] = Z @ V[:, :k]
        R[out] = Z - T[out] @ V[:, :k].T
    v, psi = (T**2).mean(axis=0), (R**2).mean(axis=0)
    others = [((A**2).sum(axis=0) - A**2) / (n - 1) for A in (T, R)]
    t2, q = ((A**2 / v_i).sum(axis=1) for A, v_i in zip((T, R), others, strict=True))
    mean, _, V = decomposed(X)
    moments = [(A.mean(), A.var(ddof=1)) for A in (t2, q)]
    return InputModel(mean, V[:, :k], v, psi, *moments, n)


@pytest.mark.parametrize("shape", [(80, 12), (40, 60), (200, 50)], ids=["eigh", "dual", "primal"])
def test_the_model_is_that_of_one_svd_for_each_fold(shape):
    """Subspace iteration has converged where the spectrum has a gap."""
    X = structured(*shape)
    found = fit_input_model(X)
    k = found.components.shape[1]
    assert 2 <= k <= 3
    expected = naive(X, k)
    new = np.concatenate([X[:9], structured(20, shape[1], seed=1)])
    for a, b in zip(found.distances(new), expected.distances(new), strict=True):
        assert_allclose(a, b, rtol=1e-4)
    assert_allclose(found.variances, expected.variances, rtol=1e-4)
    assert_allclose(found.residual_variances, expected.residual_variances, rtol=1e-4)
    for level in (0.9, 0.999):
        assert_allclose(found.limits(level), expected.limits(level), rtol=1e-4)


def test_components_hold_95_percent_of_the_variance():
    X = structured(300, 10, noise=0.1)
    _, lam, _ = decomposed(X)
    k = fit_input_model(X).components.shape[1]
    assert lam[:k].sum() >= 0.95 * lam.sum() > lam[: k - 1].sum()


@pytest.mark.parametrize(("n", "d", "most"), [(300, 40, 10), (24, 40, 4), (300, 3, 2), (300, 1, 1)])
def test_the_number_of_components_is_bounded(n, d, most):
    X = np.random.default_rng(0).normal(size=(n, d))
    assert 0 <= fit_input_model(X).components.shape[1] <= most


def test_components_that_follow_the_noise_of_their_rows_are_left_out():
    """So that T2 of training rows is not large: with independent inputs there are no directions."""
    X = np.random.default_rng(0).normal(size=(45, 300))
    model = fit_input_model(X)
    assert model.components.shape == (300, 0)
    t2, q = model.distances(X)
    assert (t2 == 0).all()
    assert (q < model.limits(0.99)[1]).all()


@pytest.mark.parametrize("shape", [(80, 12), (40, 60), (200, 50)])
@pytest.mark.parametrize("unit", [1e-150, 1e-3, 1e150])
def test_distances_do_not_depend_on_the_unit(shape, unit):
    X, new = structured(*shape), structured(*shape, seed=1)
    here, there = fit_input_model(X), fit_input_model(unit * X)
    for a, b in zip(here.distances(new), there.distances(unit * new), strict=True):
        assert_allclose(a, b, rtol=1e-6)
    assert_allclose(here.limits(0.99), there.limits(0.99), rtol=1e-6)


@pytest.mark.parametrize("shape", [(80, 12), (40, 60), (200, 50), (45, 300)])
def test_permuted_and_negated_inputs_are_the_same_problem(shape):
    rng = np.random.default_rng(3)
    X, new = structured(*shape), structured(*shape, seed=1)
    order, sign = rng.permutation(shape[1]), rng.choice([-1.0, 1.0], shape[1])
    here, there = fit_input_model(X), fit_input_model((X * sign)[:, order])
    for a, b in zip(here.distances(new), there.distances((new * sign)[:, order]), strict=True):
        assert_allclose(a, b, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("shape", [(80, 12), (40, 60), (200, 50)])
def test_t2_does_not_depend_on_rotations_of_the_inputs(shape):
    """Also where subspace iteration has not converged; Q has a variance for each input."""
    rng = np.random.default_rng(3)
    X, new = structured(*shape, noise=3.0), structured(*shape, noise=3.0, seed=1)
    G = np.linalg.qr(rng.normal(size=(shape[1], shape[1])))[0]
    here, there = fit_input_model(X), fit_input_model(X @ G)
    assert here.components.shape == there.components.shape
    assert_allclose(here.distances(new)[0], there.distances(new @ G)[0], rtol=1e-6)


def test_shifted_inputs_have_the_same_distances():
    X, new = structured(), structured(seed=1)
    here, there = fit_input_model(X), fit_input_model(X + 1e6)
    for a, b in zip(here.distances(new), there.distances(new + 1e6), strict=True):
        assert_allclose(a, b, rtol=1e-6)


def test_weights_are_relative_and_equal_ones_are_none():
    X, new = structured(), structured(seed=1)
    w = np.random.default_rng(0).uniform(0.5, 2, len(X))
    plain = fit_input_model(X).distances(new)
    for a, b in zip(fit_input_model(X, np.full(len(X), 3.0)).distances(new), plain, strict=True):
        assert_allclose(a, b, rtol=1e-9)
    one, other = fit_input_model(X, w), fit_input_model(X, 7 * w)
    for a, b in zip(one.distances(new), other.distances(new), strict=True):
        assert_allclose(a, b, rtol=1e-9)
    assert_allclose(one.mean, w @ X / w.sum())
    assert np.abs(one.distances(new)[0] / plain[0] - 1).max() > 0.01


def test_weights_count_as_repetitions_in_components():
    """Folds are those of the rows, so that repeated rows must be held out together."""
    X = structured(40, 6)
    w = np.random.default_rng(0).integers(1, 4, 40)
    repeated = np.repeat(np.arange(40), w)
    folds = interleaved_folds(40)
    same = type(folds)(folds.training[:, repeated], folds.holder[repeated])
    here, there = (
        fit_input_model(X, w.astype(float), folds),
        fit_input_model(X[repeated], None, same),
    )
    assert_allclose(here.mean, there.mean)
    assert_allclose(here.variances, there.variances, rtol=1e-6)
    assert_allclose(here.residual_variances, there.residual_variances, rtol=1e-6)


def test_few_rows_have_no_model():
    X = structured(MIN_ROWS)
    assert fit_input_model(X[:-1]) is None
    model = fit_input_model(X)
    assert np.isfinite(model.limits(0.999)).all()


def test_constant_inputs_that_change_are_far_away():
    X = structured(60, 5)
    X[:, 2] = 7.3
    model = fit_input_model(X)
    new = X[:2].copy()
    new[1, 2] += 10
    assert (model.distances(X)[1] < model.limits(0.999)[1]).all()
    assert (model.distances(new)[1] > model.limits(0.999)[1]).tolist() == [False, True]


@pytest.mark.parametrize("value", [0.0, 1e6, 1e-140])
def test_inputs_that_are_all_constant_have_only_their_own_value_inside(value):
    X = np.full((30, 4), value)
    model = fit_input_model(X)
    new = np.stack([X[0], X[0] + (value or 1.0) * 1e-3])
    t2, q = model.distances(new)
    assert (t2 == 0).all()
    assert (q > model.limits(0.999)[1]).tolist() == [False, True]


@pytest.mark.parametrize("shape", [(60, 8), (30, 50), (200, 50)])
def test_rows_off_the_subspace_of_inputs_without_noise_are_far_away(shape):
    X = structured(*shape, noise=0.0)
    model, inside = fit_input_model(X), structured(*shape, noise=0.0)[::-1]
    assert (model.distances(inside)[1] < model.limits(0.99)[1]).all()
    off = np.linalg.svd(X - X.mean(axis=0))[2][-1]
    _, q = model.distances(inside + 1e-3 * off)
    assert (q > model.limits(0.999)[1]).all()


def test_one_input_has_t2_alone():
    X = np.random.default_rng(0).normal(size=(100, 1)) + 3
    model = fit_input_model(X)
    t2, q = model.distances(np.array([[3.0], [30.0]]))
    assert (t2 > model.limits(0.999)[0]).tolist() == [False, True]
    assert (q <= model.limits(0.999)[1]).all()


def test_rows_beyond_the_range_of_squares_are_far_away():
    model = fit_input_model(structured(40, 60))
    t2, q = model.distances(np.full((2, 60), 1e300) * [[1.0], [-1.0]])
    assert not np.isnan([*t2, *q]).any()
    assert ((t2 > model.limits(0.999)[0]) | (q > model.limits(0.999)[1])).all()


def test_single_precision_gives_nearly_the_same_limits():
    X, new = structured(100, 40), structured(20, 40, seed=1)
    here, there = fit_input_model(X), fit_input_model(X.astype(np.float32))
    assert there.components.dtype == np.float32
    assert_allclose(here.limits(0.99), there.limits(0.99), rtol=1e-4)
    for a, b in zip(here.distances(new), there.distances(new.astype(np.float32)), strict=True):
        assert_allclose(a, b, rtol=1e-3)


def test_large_inputs_are_measured_in_blocks(monkeypatch):
    X, new = structured(), structured(500, seed=1)
    model = fit_input_model(X)
    whole = model.distances(new)
    monkeypatch.setattr("holrr.core.input_model._BLOCK", 4096)
    for a, b in zip(model.distances(new), whole, strict=True):
        assert_allclose(a, b, rtol=1e-12)


def test_limits_are_quantiles_of_a_chi_square_where_the_moments_are_known():
    model = InputModel(
        np.zeros(9), np.eye(9)[:, :4], np.ones(4), np.ones(9), (4.0, 8.0), (18.0, 36.0), 10**9
    )
    for level in (0.95, 0.99):
        found = model.limits(level)
        assert_allclose(found, [stats.chi2.ppf(level, 4), stats.chi2.ppf(level, 18)], rtol=1e-6)


def test_limits_increase_with_the_level():
    model = fit_input_model(structured())
    found = np.array([model.limits(level) for level in (0.5, 0.9, 0.99, 0.999, 0.99999)])
    assert (np.diff(found, axis=0) > 0).all()


# ---------------------------------------------------------------- rows and folds


@pytest.mark.parametrize("n", [500, 501, 999, 1000, 1001, 5989, 12345])
def test_rows_are_spread_over_all_rows(n):
    rows = rows_to_use(n, 20)
    assert rows.size == 500
    assert (np.diff(rows) > 0).all()
    assert rows[0] >= 0
    assert rows[-1] < n
    assert np.diff(rows).max() <= 2 * n / 500 + 1


@pytest.mark.parametrize("n", [6000, 5989, 499 * 12 + 1])
def test_rows_of_every_month_are_used(n):
    counts = np.bincount(rows_to_use(n, 20) % 12, minlength=12)
    assert counts.min() > 0.5 * 500 / 12


def test_fewer_rows_are_used_of_many_inputs():
    sizes = [rows_to_use(10**5, d).size for d in (10, 500, 1000, 2000, 80_000, 10**5, 10**6)]
    assert sizes == [500, 262, 131, 100, 100, 83, 20]


def of(splitter, n, rows=None, groups=None):
    splits = list(splitter.split(np.zeros((n, 1)), groups=groups))
    return folds_of_splits(splits, n, np.arange(n) if rows is None else rows)


def test_folds_are_those_of_the_search():
    folds = of(KFold(4), 40)
    assert folds.holder.tolist() == np.repeat(np.arange(4), 10).tolist()
    assert (folds.training == (folds.holder != np.arange(4)[:, None])).all()


def test_groups_are_held_out_together():
    groups = np.random.default_rng(0).integers(0, 12, 90)
    rows = np.arange(0, 90, 2)
    folds = of(GroupKFold(5), 90, rows, groups)
    for fold, training in enumerate(folds.training):
        assert not set(groups[rows[training]]) & set(groups[rows[folds.holder == fold]])


def test_rows_are_held_out_once():
    folds = of(RepeatedKFold(n_splits=3, n_repeats=4, random_state=0), 30)
    assert len(folds.training) == 3
    assert (folds.holder >= 0).all()
    folds = of(ShuffleSplit(20, test_size=0.3, random_state=0), 100)
    for fold, training in enumerate(folds.training):
        assert not training[folds.holder == fold].any()


def test_many_folds_are_joined():
    folds = of(LeaveOneOut(), 60)
    assert len(folds.training) == 5
    assert (folds.training == (folds.holder != np.arange(5)[:, None])).all()


def test_first_folds_of_a_time_series_are_left_out():
    """They train on a few rows, with which no limits can be found for fits to all of them."""
    folds = of(TimeSeriesSplit(5), 60)
    assert [int(mask.sum()) for mask in folds.training] == [30, 40, 50]
    assert (folds.holder[:30] == -1).all()
    assert (folds.holder[30:] >= 0).all()


def test_interleaved_folds_take_the_place_of_folds_with_few_rows():
    splits = [(np.arange(5, 60), np.arange(5))]
    folds = folds_of_splits(splits, 60, np.arange(60))
    assert (folds.holder == np.arange(60) % 5).all()
    splits = [(np.arange(10, 60), np.arange(10))]
    assert (folds_of_splits(splits, 60, np.arange(60)).holder >= 0).sum() == 10
