"""Names and labels of moments: kept by merges, files and fits, and compared where moments meet."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from holrr import (
    HOLRR,
    HOLRRCV,
    LRRCV,
    RLS,
    RLSCV,
    Moments,
    TraceNormRegression,
    load,
)
from problems import toy

pd = pytest.importorskip("pandas", reason="pandas is not installed")

COLUMNS, OUTPUTS = list("abcde"), [f"{row}{column}" for row in "uvw" for column in range(4)]


def tables(n=60):
    X, Y = toy(n)
    return pd.DataFrame(X, columns=COLUMNS), pd.DataFrame(Y.reshape(n, -1), columns=OUTPUTS)


def data_arrays(n=60):
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    X, Y = toy(n)
    day = np.arange(n)
    x = xr.DataArray(X, dims=("day", "driver"), coords={"day": day, "driver": COLUMNS})
    coords = {"day": day, "lat": [50.0, 55.0, 60.0], "lon": [0.0, 2.0, 4.0, 6.0]}
    return x, xr.DataArray(Y, dims=("day", "lat", "lon"), coords=coords, name="rain")


def in_parts(X, Y, n_parts=3):
    n = len(X) // n_parts
    return [
        Moments.from_arrays(X[k * n : (k + 1) * n], Y[k * n : (k + 1) * n]) for k in range(n_parts)
    ]


# ---------------------------------------------------------------- names are kept


@pytest.mark.parametrize("make", [tables, data_arrays])
def test_moments_have_the_names_of_their_data(make):
    X, Y = make()
    whole, batches = Moments.from_arrays(X, Y), Moments.from_batches([(X[:20], Y[:20]), (X, Y)])
    for moments in (whole, batches, sum(in_parts(X, Y))):
        assert type(moments) is Moments
        assert list(moments.feature_names) == COLUMNS
        assert moments.labels.outside.shape == whole.labels.outside.shape
        assert moments.labels.outside.dims == whole.labels.outside.dims
    arrays = Moments.from_arrays(*toy(60))
    assert arrays.feature_names is None
    assert_allclose(whole.Sxx, arrays.Sxx, rtol=1e-12)


def test_merged_moments_have_the_names_of_either_part():
    X, Y = tables()
    named = Moments.from_arrays(X[:30], Y[:30])
    plain = Moments.from_arrays(X[30:].to_numpy(), Y[30:].to_numpy())
    for merged in (named + plain, plain + named, sum([plain, plain, named])):
        assert list(merged.feature_names) == COLUMNS
        assert list(merged.labels.outside.coordinate(0)) == OUTPUTS
    with pytest.raises(ValueError, match="different features"):
        plain.merge(named, Moments.from_arrays(X[COLUMNS[::-1]], Y))


@pytest.mark.parametrize("make", [tables, data_arrays])
def test_files_keep_names(make, tmp_path):
    X, Y = make()
    parts = in_parts(X, Y)
    for k, part in enumerate(parts):
        part.save(tmp_path / f"{k}")
    total = sum(Moments.load(tmp_path / f"{k}") for k in range(3))
    assert list(total.feature_names) == COLUMNS
    expected, found = HOLRR(2).fit_moments(sum(parts)), HOLRR(2).fit_moments(total)
    assert_array_equal(np.asarray(found.predict(X)), np.asarray(expected.predict(X)))
    assert type(found.predict(X)) is type(Y)


def test_moments_of_batches_keep_names():
    X, Y = tables()
    batches = [(X[:20], Y[:20]), (X[20:40], Y[20:40]), (X[40:], Y[40:])]
    found = Moments.from_batches(batches)
    assert list(found.feature_names) == COLUMNS
    assert list(found.labels.outside.coordinate(0)) == OUTPUTS


# ---------------------------------------------------------------- sums


def test_sum_merges_moments():
    X, Y = toy(60)
    parts, expected = in_parts(X, Y), Moments.from_arrays(X, Y)
    for total in (sum(parts), sum(iter(parts)), parts[0].merge(*parts[1:]), sum(parts, parts[0])):
        assert type(total) is Moments
    total = sum(parts)
    assert total.n_samples == 60
    assert_allclose(total.Sxx, expected.Sxx, rtol=1e-12)
    assert_allclose(total.Sxy, expected.Sxy, rtol=1e-10)
    assert sum(parts[:1]) is parts[0]
    assert_array_equal(total.Sxy, (parts[0] + parts[1] + parts[2]).Sxy)


@pytest.mark.parametrize("other", [1, 0.5, None, "moments", np.ones(3)], ids=str)
def test_moments_are_not_added_to_other_objects(other):
    moments = Moments.from_arrays(*toy(20))
    with pytest.raises(TypeError):
        moments + other
    with pytest.raises(TypeError):
        other + moments
    with pytest.raises(TypeError, match="Moments"):
        moments.merge(other)


# ---------------------------------------------------------------- names are compared


@pytest.mark.parametrize("make", [tables, data_arrays])
def test_moments_of_differently_named_features_are_not_merged(make):
    X, Y = make()
    order = COLUMNS[::-1]
    turned = X[order] if make is tables else X.sel(driver=order)
    a, b = Moments.from_arrays(X, Y), Moments.from_arrays(turned, Y)
    for merge in (
        lambda: a + b,
        lambda: a.merge(a, b),
        lambda: sum([a, a, b]),
        lambda: RLSCV([0.1, 1.0]).fit_fold_moments([a, b]),
    ):
        with pytest.raises(ValueError, match=r"(?s)different features.*position 0.*'a'.*'e'"):
            merge()


@pytest.mark.parametrize("make", [tables, data_arrays])
def test_moments_of_differently_labelled_outputs_are_not_merged(make):
    X, Y = make()
    turned = Y[OUTPUTS[::-1]] if make is tables else Y.sel(lon=[6.0, 4.0, 2.0, 0.0])
    a, b = Moments.from_arrays(X, Y), Moments.from_arrays(X, turned)
    named = "'output'" if make is tables else "'lon'"
    for merge in (lambda: a + b, lambda: sum([a, b]), lambda: HOLRRCV().fit_fold_moments([a, b])):
        with pytest.raises(ValueError, match=rf"(?s)different outputs.*along {named}.*position 0"):
            merge()


def test_moments_of_equally_labelled_data_are_merged():
    """Labels are compared by value; names of the samples and of the variable do not matter."""
    X, Y = data_arrays()
    later = X.assign_coords(day=X.day + 100), Y.assign_coords(day=Y.day + 100).rename("snow")
    merged = Moments.from_arrays(X, Y) + Moments.from_arrays(*later)
    assert merged.n_samples == 120


# ---------------------------------------------------------------- names in fits


@pytest.mark.parametrize("model", [RLS(), HOLRR(2), TraceNormRegression()], ids=repr)
@pytest.mark.parametrize("make", [tables, data_arrays])
def test_fits_to_moments_keep_names(model, make):
    X, Y = make()
    found = model.fit_moments(sum(in_parts(X, Y)))
    assert list(found.feature_names_in_) == COLUMNS
    predicted = found.predict(X)
    if make is tables:
        assert list(predicted.columns) == OUTPUTS
    else:
        assert predicted.dims == Y.dims
        assert predicted.name == "rain"
        assert_array_equal(predicted.lat, Y.lat)
    with pytest.raises(ValueError, match=r"feature names|driver"):
        found.predict(X[COLUMNS[::-1]] if make is tables else X.sel(driver=COLUMNS[::-1]))


@pytest.mark.parametrize("make", [RLSCV, LRRCV, HOLRRCV])
def test_searches_over_moments_keep_names(make, tmp_path):
    X, Y = tables()
    model = make([0.01, 0.1, 1.0]).fit_fold_moments(in_parts(X, Y))
    for found in (model, model.best_estimator_):
        assert list(found.feature_names_in_) == COLUMNS
        assert list(found.predict(X).columns) == OUTPUTS
    model.save(tmp_path / "model")
    assert list(load(tmp_path / "model").predict(X).columns) == OUTPUTS
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X[COLUMNS[::-1]])


def test_fits_to_moments_without_names_have_none():
    X, Y = toy(60)
    model = HOLRR(2).fit(*tables()).fit_moments(Moments.from_arrays(X, Y))
    assert not hasattr(model, "feature_names_in_")
    assert type(model.predict(X)) is np.ndarray


def test_flat_outputs_of_moments_have_the_shape_of_the_model():
    X, Y = toy(60)
    moments = Moments.from_arrays(pd.DataFrame(X, columns=COLUMNS), Y)
    model = HOLRR(2, output_shape=(3, 4)).fit_moments(moments)
    assert model.predict(pd.DataFrame(X, columns=COLUMNS)).shape == (60, 12)
    assert list(model.feature_names_in_) == COLUMNS
    with pytest.raises(ValueError, match=r"output_shape=\(4, 3\)"):
        HOLRR(2, output_shape=(4, 3)).fit_moments(moments)


@pytest.mark.parametrize("model", [RLS(), HOLRR(2), TraceNormRegression()], ids=repr)
def test_moments_of_batches_have_names(model):
    X, Y = tables()
    model.partial_fit(X[:30], Y[:30]).partial_fit(X[30:], Y[30:])
    assert list(model.moments_.feature_names) == COLUMNS
    again = HOLRR(2).fit_moments(model.moments_ + Moments.from_arrays(X, Y))
    assert list(again.predict(X).columns) == OUTPUTS
    turned = Moments.from_arrays(X[COLUMNS[::-1]], Y)
    with pytest.raises(ValueError, match="different features"):
        model.moments_ + turned


def test_batches_may_follow_moments():
    """`partial_fit` continues from `fit_moments`, and compares the names."""
    X, Y = tables()
    model = HOLRR(2).fit_moments(Moments.from_arrays(X[:30], Y[:30]))
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(X[COLUMNS[::-1]][30:], Y[30:])
    model.partial_fit(X[30:], Y[30:])
    expected = HOLRR(2).fit(X, Y)
    assert_allclose(model.predict(X), expected.predict(X), rtol=1e-9)
    assert list(model.predict(X).columns) == OUTPUTS
