"""Every estimator takes arrays of every library, type and layout, and answers in kind."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from holrr import Moments
from problems import toy


def test_other_array_libraries_give_the_same_fit(row, xp):
    X, Y = toy(shape=(3, 4, 2))
    expected = row.make().fit(X, Y)
    model = row.make().fit(xp.asarray(X), xp.asarray(Y))
    predicted = model.predict(xp.asarray(X))
    assert xp.owns(predicted)
    assert_allclose(xp.to_numpy(predicted), expected.predict(X), rtol=1e-9)
    assert xp.owns(model.coef_)
    assert_allclose(xp.to_numpy(model.coef_), expected.coef_, rtol=1e-8, atol=1e-10)
    for name in ("objective_", "lower_bound_"):
        if hasattr(expected, name):
            assert isinstance(getattr(model, name), float)
            assert_allclose(getattr(model, name), getattr(expected, name), rtol=1e-10)
    assert_allclose(model.score(xp.asarray(X), xp.asarray(Y)), expected.score(X, Y), rtol=1e-10)


@pytest.mark.parametrize("kind", ["weighted", "scalar targets", "wide", "ill-conditioned"])
def test_other_array_libraries_take_every_path(row, xp, kind):
    X, Y = toy(
        n=6 if kind == "wide" else 40,
        d0=9 if kind == "wide" else 5,
        shape=() if kind == "scalar targets" else (3, 4),
    )
    w = np.random.default_rng(1).uniform(size=len(X)) if kind == "weighted" else None
    params = {}
    if kind == "ill-conditioned":
        X = X * 10.0 ** -np.arange(0, 10, 2)
        params = {"alpha": 0.0} if "alpha" in row.estimator.get_params() else {}
    model = row.make(**params).fit(
        xp.asarray(X), xp.asarray(Y), None if w is None else xp.asarray(w)
    )
    predicted = model.predict(xp.asarray(X))
    assert xp.owns(predicted)
    expected = row.make(**params).fit(X, Y, w).predict(X)
    assert_allclose(xp.to_numpy(predicted), expected, rtol=1e-6, atol=1e-7)


def test_other_array_libraries_fit_in_batches(row, xp):
    if not hasattr(row.estimator, "partial_fit"):
        pytest.skip("no partial_fit")
    X, Y = toy()
    model = row.make()
    for a, b in pairwise([0, 11, 30, 40]):
        model.partial_fit(xp.asarray(X[a:b]), xp.asarray(Y[a:b]))
    moments = Moments.from_arrays(xp.asarray(X), xp.asarray(Y), response_grams=True)
    whole = row.make().fit_moments(moments)
    assert xp.owns(moments.Sxy)
    for fitted in (model, whole):
        predicted = fitted.predict(xp.asarray(X))
        assert xp.owns(predicted)
        assert_allclose(xp.to_numpy(predicted), row.make().fit(X, Y).predict(X), rtol=1e-9)


def test_prediction_lives_where_the_inputs_live(row, xp):
    """Also where the model was fitted in another library."""
    X, Y = toy()
    here = row.make().fit(X, Y)
    predicted = here.predict(xp.asarray(X))
    assert xp.owns(predicted)
    assert_allclose(xp.to_numpy(predicted), here.predict(X), rtol=1e-12)
    there = row.make().fit(xp.asarray(X), xp.asarray(Y))
    predicted = there.predict(X)
    assert isinstance(predicted, np.ndarray)
    assert_allclose(predicted, here.predict(X), rtol=1e-9)


def test_float32_stays_float32(row, xp):
    X, Y = toy(n=400, d0=6)
    X32, Y32 = X.astype(np.float32), Y.astype(np.float32)
    model = row.make().fit(xp.asarray(X32), xp.asarray(Y32))
    predicted = model.predict(xp.asarray(X32))
    float32 = xp.asarray(X32).dtype
    for a in (predicted, model.coef_, model.intercept_):
        assert a.dtype == float32
    for a in [getattr(model, "core_", None), *getattr(model, "factors_", [])]:
        assert a is None or a.dtype == float32
    expected = row.make().fit(X, Y).predict(X)
    assert_allclose(xp.to_numpy(predicted), expected, rtol=1e-3, atol=1e-4 * np.abs(Y).max())


def test_float32_partial_fit_stays_float32(row):
    if not hasattr(row.estimator, "partial_fit"):
        pytest.skip("no partial_fit")
    X, Y = (a.astype(np.float32) for a in toy())
    model = row.make().partial_fit(X[:20], Y[:20]).partial_fit(X[20:], Y[20:])
    assert model.predict(X).dtype == model.coef_.dtype == np.float32


def test_mixed_float_types_are_computed_in_the_wider(row):
    X, Y = toy()
    model = row.make().fit(X.astype(np.float32), Y)
    assert model.coef_.dtype == np.float64
    assert row.make().fit(X, Y.astype(np.float32)).coef_.dtype == np.float64


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint16, np.bool_, np.float16])
def test_integers_and_booleans_count_as_numbers(row, dtype):
    rng = np.random.default_rng(0)
    X, Y = rng.integers(0, 9, (30, 4)).astype(dtype), rng.integers(0, 9, (30, 2, 3)).astype(dtype)
    model = row.make().fit(X, Y)
    assert model.predict(X).dtype.kind == "f"
    assert_allclose(
        model.predict(X), row.make().fit(X.astype(float), Y.astype(float)).predict(X), atol=1e-6
    )


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


@pytest.mark.parametrize("layout", [fortran, strided, reversed_, moved, readonly, bigendian])
def test_memory_layout_does_not_matter(row, layout):
    X, Y = toy(shape=(3, 4, 2))
    model, other = row.make().fit(X, Y), row.make().fit(layout(X), layout(Y))
    assert_allclose(other.coef_, model.coef_, rtol=1e-9, atol=1e-12)
    assert_allclose(other.predict(layout(X)), model.predict(X), rtol=1e-10)


def test_memory_maps_can_be_fitted(row, tmp_path):
    X, Y = toy()
    for name, a in (("X", X), ("Y", Y)):
        np.save(tmp_path / f"{name}.npy", a)
    Xm, Ym = (np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in "XY")
    model = row.make().fit(Xm, Ym)
    assert_array_equal(model.coef_, row.make().fit(X, Y).coef_)
    assert type(model.predict(Xm)) is np.ndarray
    assert type(model.coef_) is np.ndarray


def test_lists_are_arrays(row):
    X, Y = toy()
    model = row.make().fit(X.tolist(), Y.tolist())
    assert_allclose(model.predict(X.tolist()), row.make().fit(X, Y).predict(X), rtol=1e-12)


def test_column_names_are_kept_and_compared(row):
    pd = pytest.importorskip("pandas")
    X, Y = toy(shape=(3,))
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = row.make().fit(frame, pd.DataFrame(Y))
    assert_array_equal(model.feature_names_in_, list("abcde"))
    assert_allclose(model.predict(frame), row.make().fit(X, Y).predict(X), rtol=1e-9, atol=1e-12)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list("edcba")])
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"a": "z"}))
    with pytest.warns(UserWarning, match="feature names"):
        model.predict(X)
    assert not hasattr(model.fit(X, Y), "feature_names_in_")
    if hasattr(model, "partial_fit"):
        batch = row.make().partial_fit(frame, Y)
        with pytest.raises(ValueError, match="feature names"):
            batch.partial_fit(frame[list("edcba")], Y)


def test_torch_gradients_are_left_behind(row):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    X, Y = (torch.asarray(a) for a in toy())
    X.requires_grad_()
    model = row.make().fit(X, Y)
    assert not model.coef_.requires_grad
    assert not model.predict(X).requires_grad
