"""Distances of inputs, T2 and Q: components, held-out variances, limits, rows and folds."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
)

from holrr.diagnostics import InputMonitor, diagnose_inputs


def fit(X, w=None, cv=None, groups=None):
    return InputMonitor(cv).fit(X, sample_weight=w, groups=groups)


def distances(monitor, new):
    found = diagnose_inputs(monitor, new)
    return found.t2, found.q


def limits(monitor, level=0.99):
    """Limits of T2 and Q, which do not depend on the rows that are diagnosed."""
    found = diagnose_inputs(monitor, np.zeros((1, monitor.n_features_in_)), level=level)
    return found.t2_limit, found.q_limit


def n_components(monitor, X):
    return diagnose_inputs(monitor, X[:1]).n_components


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


def interleaved(n):
    """Five folds, each of which holds out every fifth row."""
    holder = np.arange(n) % 5
    return holder != np.arange(5)[:, None], holder


def naive(X, new, k, levels, folds=None):
    """Distances and limits from one SVD for each fold, by the formulas of docs/diagnostics.md."""
    n, d = X.shape
    training, holder = interleaved(n) if folds is None else folds
    T, R = np.empty((n, k)), np.empty_like(X)
    for fold, mask in enumerate(training):
        out = holder == fold
        mean, _, V = decomposed(X[mask])
        Z = X[out] - mean
        T[out] = Z @ V[:, :k]
        R[out] = Z - T[out] @ V[:, :k].T
    held = holder >= 0
    T, R, m = T[held], R[held], held.sum()
    mean, _, V = decomposed(X)
    Z = new - mean
    scores, found, at = Z @ V[:, :k], [], []
    residuals = (X - mean) - (X - mean) @ V[:, :k] @ V[:, :k].T  # of the components of all rows
    least = (0.0, (residuals**2).mean(axis=0))
    pairs = (T**2, scores**2), (R**2, (Z - scores @ V[:, :k].T) ** 2)
    for (squares, of_new), smallest in zip(pairs, least, strict=True):
        variance = np.maximum(squares.mean(axis=0), smallest)
        others = (m * variance - squares) / (m - 1)
        own = (squares / others).sum(axis=1)
        freedom = 2 * own.mean() ** 2 / own.var(ddof=1)
        found.append((of_new / variance).sum(axis=1))
        at.append([own.mean() * stats.f.ppf(level, freedom, m * freedom) for level in levels])
    return found, np.transpose([at[0], np.maximum(at[1], d)])


def assert_is_naive(X, folds=None, **options):
    monitor, levels = fit(X, **options), (0.9, 0.999)
    k = n_components(monitor, X)
    assert 2 <= k <= 3
    new = np.concatenate([X[:9], structured(20, X.shape[1], seed=1)])
    expected, at = naive(X, new, k, levels, folds)
    for a, b in zip(distances(monitor, new), expected, strict=True):
        assert_allclose(a, b, rtol=1e-4)
    assert_allclose([limits(monitor, level) for level in levels], at, rtol=1e-4)


@pytest.mark.parametrize("shape", [(80, 12), (40, 60), (200, 50)], ids=["eigh", "dual", "primal"])
def test_the_model_is_that_of_one_svd_for_each_fold(shape):
    """Subspace iteration has converged where the spectrum has a gap."""
    assert_is_naive(structured(*shape))


def test_components_hold_95_percent_of_the_variance():
    X = structured(300, 10, noise=0.1)
    _, lam, _ = decomposed(X)
    k = n_components(fit(X), X)
    assert lam[:k].sum() >= 0.95 * lam.sum() > lam[: k - 1].sum()


@pytest.mark.parametrize(("n", "d", "most"), [(300, 40, 10), (24, 40, 4), (300, 3, 2), (300, 1, 1)])
def test_the_number_of_components_is_bounded(n, d, most):
    X = np.random.default_rng(0).normal(size=(n, d))
    assert 0 <= n_components(fit(X), X) <= most


def test_components_that_follow_the_noise_of_their_rows_are_left_out():
    """So that T2 of training rows is not large: with independent inputs there are no directions."""
    X = np.random.default_rng(0).normal(size=(45, 300))
    found = diagnose_inputs(fit(X), X)
    assert found.n_components == 0
    assert (found.t2 == 0).all()
    assert (found.q < found.q_limit).all()


@pytest.mark.parametrize("shape", [(80, 12), (40, 60), (200, 50)])
@pytest.mark.parametrize("unit", [1e-150, 1e-3, 1e150])
def test_distances_do_not_depend_on_the_unit(shape, unit):
    X, new = structured(*shape), structured(*shape, seed=1)
    here, there = fit(X), fit(unit * X)
    for a, b in zip(distances(here, new), distances(there, unit * new), strict=True):
        assert_allclose(a, b, rtol=1e-6)
    assert_allclose(limits(here, 0.99), limits(there, 0.99), rtol=1e-6)


@pytest.mark.parametrize("shape", [(80, 12), (40, 60), (200, 50), (45, 300)])
def test_permuted_and_negated_inputs_are_the_same_problem(shape):
    rng = np.random.default_rng(3)
    X, new = structured(*shape), structured(*shape, seed=1)
    order, sign = rng.permutation(shape[1]), rng.choice([-1.0, 1.0], shape[1])
    here, there = fit(X), fit((X * sign)[:, order])
    for a, b in zip(distances(here, new), distances(there, (new * sign)[:, order]), strict=True):
        assert_allclose(a, b, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("shape", [(80, 12), (40, 60), (200, 50)])
def test_t2_does_not_depend_on_rotations_of_the_inputs(shape):
    """Also where subspace iteration has not converged; Q has a variance for each input."""
    rng = np.random.default_rng(3)
    X, new = structured(*shape, noise=3.0), structured(*shape, noise=3.0, seed=1)
    G = np.linalg.qr(rng.normal(size=(shape[1], shape[1])))[0]
    here, there = fit(X), fit(X @ G)
    assert n_components(here, X) == n_components(there, X @ G)
    assert_allclose(distances(here, new)[0], distances(there, new @ G)[0], rtol=1e-6)


def test_shifted_inputs_have_the_same_distances():
    X, new = structured(), structured(seed=1)
    here, there = fit(X), fit(X + 1e6)
    for a, b in zip(distances(here, new), distances(there, new + 1e6), strict=True):
        assert_allclose(a, b, rtol=1e-6)


def test_weights_are_relative_and_equal_ones_are_none():
    X, new = structured(), structured(seed=1)
    w = np.random.default_rng(0).uniform(0.5, 2, len(X))
    plain = distances(fit(X), new)
    for a, b in zip(distances(fit(X, np.full(len(X), 3.0)), new), plain, strict=True):
        assert_allclose(a, b, rtol=1e-9)
    one, other = fit(X, w), fit(X, 7 * w)
    for a, b in zip(distances(one, new), distances(other, new), strict=True):
        assert_allclose(a, b, rtol=1e-9)
    assert_allclose(distances(one, (w @ X / w.sum())[None]), 0, atol=1e-9)  # the centre
    assert np.abs(distances(one, new)[0] / plain[0] - 1).max() > 0.01


def test_weights_count_as_repetitions_in_components():
    """Repeated rows are held out together."""
    X, new = structured(40, 6), structured(20, 6, seed=1)
    w = np.random.default_rng(0).integers(1, 4, 40)
    fold = np.arange(40) % 5
    here = fit(X, w.astype(float), PredefinedSplit(fold))
    there = fit(X.repeat(w, axis=0), cv=PredefinedSplit(fold.repeat(w)))
    for a, b in zip(distances(here, new), distances(there, new), strict=True):
        assert_allclose(a, b, rtol=1e-6)


def test_few_rows_have_no_model():
    X = structured(10)
    with pytest.raises(ValueError, match="at least 10 rows"):
        fit(X[:-1])
    assert np.isfinite(limits(fit(X), 0.999)).all()


def test_constant_inputs_that_change_are_far_away():
    X = structured(60, 5)
    X[:, 2] = 7.3
    model = fit(X)
    new = X[:2].copy()
    new[1, 2] += 10
    assert (distances(model, X)[1] < limits(model, 0.999)[1]).all()
    assert (distances(model, new)[1] > limits(model, 0.999)[1]).tolist() == [False, True]


@pytest.mark.parametrize("value", [0.0, 1e6, 1e-140])
def test_inputs_that_are_all_constant_have_only_their_own_value_inside(value):
    X = np.full((30, 4), value)
    model = fit(X)
    new = np.stack([X[0], X[0] + (value or 1.0) * 1e-3])
    t2, q = distances(model, new)
    assert (t2 == 0).all()
    assert (q > limits(model, 0.999)[1]).tolist() == [False, True]


@pytest.mark.parametrize("shape", [(60, 8), (30, 50), (200, 50)])
def test_rows_off_the_subspace_of_inputs_without_noise_are_far_away(shape):
    X = structured(*shape, noise=0.0)
    model, inside = fit(X), structured(*shape, noise=0.0)[::-1]
    assert (distances(model, inside)[1] < limits(model, 0.99)[1]).all()
    off = np.linalg.svd(X - X.mean(axis=0))[2][-1]
    _, q = distances(model, inside + 1e-3 * off)
    assert (q > limits(model, 0.999)[1]).all()


def test_one_input_has_t2_alone():
    X = np.random.default_rng(0).normal(size=(100, 1)) + 3
    model = fit(X)
    t2, q = distances(model, np.array([[3.0], [30.0]]))
    assert (t2 > limits(model, 0.999)[0]).tolist() == [False, True]
    assert (q <= limits(model, 0.999)[1]).all()


def test_rows_beyond_the_range_of_squares_are_far_away():
    model = fit(structured(40, 60))
    t2, q = distances(model, np.full((2, 60), 1e300) * [[1.0], [-1.0]])
    assert not np.isnan([*t2, *q]).any()
    assert ((t2 > limits(model, 0.999)[0]) | (q > limits(model, 0.999)[1])).all()


def test_single_precision_gives_nearly_the_same_limits():
    X, new = structured(100, 40), structured(20, 40, seed=1)
    here, there = fit(X), fit(X.astype(np.float32))
    assert_allclose(limits(here, 0.99), limits(there, 0.99), rtol=1e-4)
    for a, b in zip(distances(here, new), distances(there, new.astype(np.float32)), strict=True):
        assert_allclose(a, b, rtol=1e-3)


def test_large_inputs_are_measured_in_blocks():
    """Sixteen megabytes of rows are processed together."""
    model, new = fit(structured(40, 3000)), structured(700, 3000, seed=1)
    whole = distances(model, new)
    for rows in (slice(0, 9), slice(695, 700)):
        for a, b in zip(distances(model, new[rows]), whole, strict=True):
            assert_allclose(a, b[rows], rtol=1e-10)


def test_limits_increase_with_the_level():
    model = fit(structured())
    found = np.array([limits(model, level) for level in (0.5, 0.9, 0.99, 0.999, 0.99999)])
    assert (np.diff(found, axis=0) > 0).all()


# ---------------------------------------------------------------- rows and folds


@pytest.mark.parametrize("n", [6000, 5989, 499 * 12 + 1])
def test_rows_of_all_months_and_years_are_used(n):
    """Inputs that differ in each month, and between the first and last years of a long record."""
    rng = np.random.default_rng(0)
    months, years = np.eye(12)[np.arange(n) % 12], np.eye(10)[np.arange(n) * 10 // n]
    X = np.c_[5 * months, 5 * years] @ rng.normal(size=(22, 30)) + rng.normal(size=(n, 30))
    outside = diagnose_inputs(fit(X), X).outside
    for part in (months, years):
        assert (outside @ part < 0.1 * part.sum(axis=0)).all()


def holders(splitter, X, groups=None):
    """Training rows of each fold, and the fold that holds out each row."""
    splits = list(splitter.split(X, groups=groups))
    holder, training = np.full(len(X), -1), np.zeros((len(splits), len(X)), dtype=bool)
    for k, (train, test) in enumerate(splits):
        holder[test], training[k, train] = k, True
    return training, holder


def test_folds_are_those_of_the_splitter():
    X, groups = structured(90), np.random.default_rng(0).integers(0, 12, 90)
    assert_is_naive(X, holders(KFold(4), X), cv=KFold(4))
    assert_is_naive(X, holders(GroupKFold(5), X, groups), cv=GroupKFold(5), groups=groups)


def test_rows_are_held_out_once():
    X = structured(90)
    repeated = RepeatedKFold(n_splits=3, n_repeats=4, random_state=0)
    training, holder = holders(KFold(3), X)
    splits = list(repeated.split(X))[:3]
    for k, (train, test) in enumerate(splits):
        holder[test], training[k] = k, np.isin(np.arange(90), train)
    assert_is_naive(X, (training, holder), cv=repeated)
    some = fit(X, cv=ShuffleSplit(20, test_size=0.3, random_state=0))
    assert np.isfinite(limits(some)).all()


def test_many_folds_are_joined():
    X, holder = structured(62), np.arange(62) // 13
    assert_is_naive(X, (holder != np.arange(5)[:, None], holder), cv=LeaveOneOut())


def test_first_folds_of_a_time_series_are_left_out():
    """They train on a few rows, with which no limits can be found for fits to all of them."""
    X = structured(60)
    training, holder = holders(TimeSeriesSplit(5), X)
    assert_is_naive(X, (training[2:], np.maximum(holder - 2, -1)), cv=TimeSeriesSplit(5))


def test_interleaved_folds_take_the_place_of_folds_with_few_rows():
    X = structured(60)
    assert_is_naive(X, interleaved(60), cv=[(np.arange(5, 60), np.arange(5))])
