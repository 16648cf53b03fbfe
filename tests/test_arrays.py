"""Every estimator fits arrays of every library, type and layout, and predicts in the same."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from holrr import Moments
from problems import assert_same_state, on_disk, toy
from registry import certificate, same_certificate

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty", "ignore:landmarks=")


FITTED: dict[tuple[str, str], Any] = {}


def fitted_in_numpy(row, name, X, Y):
    """The fit in NumPy, which is the same for all libraries; `name` is that of the problem."""
    if (row.id, name) not in FITTED:
        FITTED[row.id, name] = row.make().fit(X, Y)
    return FITTED[row.id, name]


def same_noise(row, xp, model, expected):
    """Assert that the noise, where it is estimated, is equal and on the device of the fit."""
    if hasattr(expected, "noise_"):
        assert xp.owns(model.noise_)
        row.near(xp.to_numpy(model.noise_), expected.noise_, 10)


def test_other_array_libraries_give_the_same_fit(row, other_xp):
    X, Y, xp = *toy(shape=(3, 4, 2)), other_xp
    expected = fitted_in_numpy(row, "order 3", X, Y)
    model = row.make().fit(xp.asarray(X), xp.asarray(Y))
    predicted = model.predict(xp.asarray(X))
    assert xp.owns(predicted)
    row.near(xp.to_numpy(predicted), expected.predict(X))
    coef, wanted = (m.coef_ if row.linear else m.dual_coef_ for m in (model, expected))
    assert xp.owns(coef)
    row.near(xp.to_numpy(coef), wanted, 10 if row.linear else 1e4)
    assert all(isinstance(value, float) for value in certificate(model).values())
    same_certificate(model, expected, row.tol)
    row.near(model.score(xp.asarray(X), xp.asarray(Y)), expected.score(X, Y), 0.1)
    same_noise(row, xp, model, expected)
    if row.searches:
        assert model.best_index_ == expected.best_index_
        row.near(model.cv_results_["mean_mse"], expected.cv_results_["mean_mse"], 10)


@pytest.mark.rows("representative")
@pytest.mark.parametrize("entries", [100, 2**17])
def test_small_problems_of_an_accelerator_are_solved_on_the_host(
    row, device_xp, entries, set_host_entries
):
    """From the moments on, or all of the problem; the fit is on the device of the data."""
    set_host_entries(entries)
    X, Y, xp = *toy(), device_xp
    w = np.linspace(0.5, 2, len(X))
    model = row.make().fit(*map(xp.asarray, (X, Y, w)))
    assert xp.owns(model.core_)
    assert xp.owns(model.intercept_)
    expected = row.make().fit(X, Y, w)
    row.near(xp.to_numpy(model.predict(xp.asarray(X))), expected.predict(X))
    same_noise(row, xp, model, expected)


@pytest.mark.rows("representative")
@pytest.mark.parametrize("kind", ["weighted", "scalar targets", "wide", "ill-conditioned"])
def test_other_array_libraries_fit_every_kind_of_data(row, other_xp, kind):
    xp = other_xp
    X, Y = toy(
        n=6 if kind == "wide" else 40,
        d0=9 if kind == "wide" else 5,
        shape=() if kind == "scalar targets" else (3, 4),
    )
    w = np.random.default_rng(1).uniform(size=len(X)) if kind == "weighted" else None
    params = {}
    if kind == "ill-conditioned":
        if not row.ridge or "kernel" in row.params:
            pytest.skip("products of the inputs lose the small directions")
        X = X * 10.0 ** -np.arange(0, 10, 2)
        params = {"alpha": 0.0} if "alpha" in row.estimator.get_params() else {}
    model = row.make(**params).fit(
        xp.asarray(X), xp.asarray(Y), None if w is None else xp.asarray(w)
    )
    predicted = model.predict(xp.asarray(X))
    assert xp.owns(predicted)
    expected = row.make(**params).fit(X, Y, w).predict(X)
    assert_allclose(xp.to_numpy(predicted), expected, rtol=1e-6, atol=1e-7)


@pytest.mark.rows("batches")
def test_other_array_libraries_fit_in_batches(row, other_xp):
    X, Y, xp = *toy(), other_xp
    model = row.make(**row.pinned(X))
    for a, b in pairwise([0, 11, 30, 40]):
        model.partial_fit(xp.asarray(X[a:b]), xp.asarray(Y[a:b]))
    fits = [model]
    if row.takes_moments:
        moments = Moments.from_arrays(xp.asarray(X), xp.asarray(Y), response_grams=True)
        assert xp.owns(moments.Sxy)
        fits.append(row.make().fit_moments(moments))
    for fitted in fits:
        predicted = fitted.predict(xp.asarray(X))
        assert xp.owns(predicted)
        row.near(xp.to_numpy(predicted), row.make(**row.pinned(X)).fit(X, Y).predict(X))


def test_predictions_are_on_the_device_of_the_inputs(row, other_xp):
    """Also where the model was fitted in another library."""
    X, Y, xp = *toy(), other_xp
    model = row.make().fit(X, Y)
    predicted = model.predict(xp.asarray(X))
    assert xp.owns(predicted)
    expected = model.predict(X)
    assert_allclose(
        xp.to_numpy(predicted), expected, rtol=1e-12, atol=1e-14 * np.abs(expected).max()
    )
    other = row.make().fit(xp.asarray(X), xp.asarray(Y))
    predicted = other.predict(X)
    assert isinstance(predicted, np.ndarray)
    row.near(predicted, expected)


def test_float32_stays_float32(row, xp):
    X, Y = toy(n=400, d0=6)
    X32, Y32 = X.astype(np.float32), Y.astype(np.float32)
    model = row.make().fit(xp.asarray(X32), xp.asarray(Y32))
    predicted = model.predict(xp.asarray(X32))
    float32 = xp.asarray(X32).dtype
    coef = model.coef_ if row.linear else model.dual_coef_
    for a in (predicted, coef, model.intercept_):
        assert a.dtype == float32
    for a in [getattr(model, "core_", None), *getattr(model, "factors_", [])]:
        assert a is None or a.dtype == float32
    expected = fitted_in_numpy(row, "400 samples", X, Y).predict(X)
    assert_allclose(xp.to_numpy(predicted), expected, rtol=1e-3, atol=1e-4 * np.abs(Y).max())


@pytest.mark.rows("batches")
def test_partial_fit_of_float32_stays_float32(row):
    X, Y = (a.astype(np.float32) for a in toy())
    model = row.make().partial_fit(X[:20], Y[:20]).partial_fit(X[20:], Y[20:])
    coef = model.coef_ if row.linear else model.dual_coef_
    assert model.predict(X).dtype == coef.dtype == np.float32


# ---------------------------------------------------------------- validation, which all share


@pytest.mark.rows("representative")
def test_mixed_float_types_are_computed_in_double_precision(row):
    X, Y = toy()
    assert row.make().fit(X.astype(np.float32), Y).tucker_.core.dtype == np.float64
    assert row.make().fit(X, Y.astype(np.float32)).tucker_.core.dtype == np.float64


@pytest.mark.rows("representative")
@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint16, np.bool_, np.float16])
def test_integers_and_booleans_are_converted_to_floats(row, dtype):
    rng = np.random.default_rng(0)
    X, Y = rng.integers(0, 9, (30, 4)).astype(dtype), rng.integers(0, 9, (30, 2, 3)).astype(dtype)
    model = row.make().fit(X, Y)
    assert model.predict(X).dtype.kind == "f"
    expected = row.make().fit(X.astype(float), Y.astype(float)).predict(X)
    assert_allclose(model.predict(X), expected, atol=1e-6)


def fortran(a):
    return np.asfortranarray(a)


def strided(a):
    wide = np.full([2 * n for n in a.shape], np.nan)
    wide[tuple(slice(None, None, 2) for _ in a.shape)] = a
    return wide[tuple(slice(None, None, 2) for _ in a.shape)]


def reversed_(a):
    return a[::-1].copy()[::-1]


def moved(a):
    return np.moveaxis(np.moveaxis(a, 0, -1).copy(), -1, 0)


def readonly(a):
    a = a.copy()
    a.flags.writeable = False
    return a


def bigendian(a):
    return a.astype(">f8")


@pytest.mark.rows("representative")
@pytest.mark.parametrize("layout", [fortran, strided, reversed_, moved, readonly, bigendian])
def test_memory_layout_does_not_matter(row, layout):
    X, Y = toy(shape=(3, 4, 2))
    model, other = row.make().fit(X, Y), row.make().fit(layout(X), layout(Y))
    row.same_fit(other, model, X)
    row.near(other.predict(layout(X)), model.predict(X), 0.1)


def test_small_memory_maps_are_fitted_as_arrays(row, tmp_path):
    X, Y = toy()
    Xm, Ym = on_disk(tmp_path, "X", X), on_disk(tmp_path, "Y", Y)
    model = row.make().fit(Xm, Ym)
    assert_same_state(model, row.make().fit(X, Y))
    assert type(model.predict(Xm)) is np.ndarray


@pytest.mark.rows("representative")
def test_lists_are_converted_to_arrays(row):
    X, Y = toy()
    model = row.make().fit(X.tolist(), Y.tolist())
    assert_same_state(model, row.make().fit(X, Y))
    assert_allclose(model.predict(X.tolist()), model.predict(X), rtol=1e-12)


@pytest.mark.rows("representative")
@pytest.mark.parametrize("where", ["X", "Y"])
def test_masks_without_masked_entries_do_not_matter(row, where):
    X, Y = toy()
    data = {"X": X, "Y": Y}
    data[where] = np.ma.masked_array(data[where], mask=np.zeros(data[where].shape, dtype=bool))
    model = row.make().fit(data["X"], data["Y"])
    assert_same_state(model, row.make().fit(X, Y))
    assert type(model.predict(data["X"])) is np.ndarray
    assert model.score(data["X"], data["Y"]) == model.score(X, Y)


@pytest.mark.rows("representative")
def test_column_names_are_kept_and_compared(row):
    pd = pytest.importorskip("pandas")
    X, Y = toy(shape=(3,))
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = row.make().fit(frame, pd.DataFrame(Y))
    assert_array_equal(model.feature_names_in_, list("abcde"))
    row.near(model.predict(frame), row.make().fit(X, Y).predict(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list("edcba")])
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"a": "z"}))
    with pytest.raises(ValueError, match="feature names"):
        model.score(frame[list("edcba")], Y)
    with pytest.warns(UserWarning, match="feature names"):
        model.predict(X)
    assert not hasattr(model.fit(X, Y), "feature_names_in_")
    if row.batches:
        batch = row.make().partial_fit(frame, Y)
        with pytest.raises(ValueError, match="feature names"):
            batch.partial_fit(frame[list("edcba")], Y)


@pytest.mark.rows("representative")
def test_gradients_of_torch_are_detached(row):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    X, Y = (torch.asarray(a) for a in toy())
    X.requires_grad_()
    model = row.make().fit(X, Y)
    assert not (model.coef_ if row.linear else model.dual_coef_).requires_grad
    assert not model.predict(X).requires_grad


@pytest.mark.rows("representative")
def test_rows_of_tables_may_have_any_labels_that_agree(row):
    """The labels of X, y and weights are compared; arrays have none."""
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, Y = toy(shape=(3,))
    index = pd.date_range("2020-01-01", periods=40)
    expected = row.make().fit(X, Y)
    frames = pd.DataFrame(X, index=index), pd.DataFrame(Y, index=index)
    for inputs, outputs in (frames, (frames[0], Y), (X, frames[1])):
        row.same_fit(row.make().fit(inputs, outputs), expected, X)
    weights = pd.Series(np.ones(40), index=index[::-1])
    for inputs, outputs in ((frames[0], Y), (X, frames[1])):
        with pytest.raises(ValueError, match=r"rows of \w and sample_weight"):
            row.make().fit(inputs, outputs, weights)
