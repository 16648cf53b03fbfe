"""Arrays that fits take: types that are converted, and errors that say where a bad entry is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from holrr import HOLRR, RLS, KernelHOLRR, Moments
from problems import toy

shapes = st.lists(st.integers(1, 5), min_size=1, max_size=3)


@given(shapes, st.sampled_from([np.nan, np.inf, -np.inf]), st.data())
def test_errors_give_the_index_of_the_first_bad_entry(shape, value, data):
    X, Y = toy(n=6, shape=tuple(shape))
    name, A = data.draw(st.sampled_from([("X", X), ("y", Y)]))
    where = tuple(data.draw(st.integers(0, d - 1)) for d in A.shape)
    A[where] = value
    A[where[0] + 1 :] = value  # all samples after it are bad, too
    kind = "NaN" if np.isnan(value) else "infinity"
    with pytest.raises(ValueError) as caught:
        RLS().fit(X, Y)
    message = str(caught.value)
    assert message.startswith(name)
    assert kind in message
    assert str(where) in message
    assert f"sample {where[0]}" in message
    hint = 'missing="ignore"' in message
    assert hint == (name == "y" and kind == "NaN")


def test_finite_entries_whose_sum_overflows_are_accepted():
    X, Y = toy()
    model = RLS().fit(X, 1e307 * np.sign(Y))
    assert_allclose(model.predict(X) / 1e307, RLS().fit(X, np.sign(Y)).predict(X), rtol=1e-9)


def test_arrays_are_not_changed():
    X, Y = toy()
    w = np.linspace(1, 2, len(X))
    before = X.copy(), Y.copy(), w.copy()
    for scale in (1.0, 1e-170):
        for fit_intercept in (True, False):
            RLS(fit_intercept=fit_intercept).fit(X, scale * Y, w).predict(X)
            RLS(fit_intercept=fit_intercept, output_weight=[[1.0, 2.0, 0.5], None]).fit(X, Y, w)
    Moments.from_arrays(X, Y, w)
    for a, b in zip((X, Y, w), before, strict=True):
        assert_array_equal(a, b)


def test_the_wider_type_of_inputs_and_outputs_is_used():
    X, Y = toy()
    for x, y in [("f4", "f4"), ("f4", "f8"), ("f8", "f4")]:
        model = RLS().fit(X.astype(x), Y.astype(y))
        assert model.coef_.dtype == np.promote_types(x, y)
        assert model.predict(X.astype(x)).dtype == np.promote_types(x, y)


@pytest.mark.parametrize("dtype", [object, np.int64, np.int8, bool, np.float16])
def test_other_numbers_are_converted(dtype):
    X, Y = toy()
    X = np.round(X).astype(dtype)
    expected = RLS().fit(np.asarray(X, dtype=float), Y)
    assert_allclose(RLS().fit(X, Y).coef_, expected.coef_, rtol=1e-12)
    assert_allclose(RLS().fit(np.asfortranarray(X), Y[..., ::-1]).coef_[..., ::-1], expected.coef_)


@pytest.mark.parametrize("model", [HOLRR(2), KernelHOLRR(2)], ids=str)
def test_labels_of_weights_must_be_those_of_the_samples(model):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, Y = toy()
    w = pd.Series(np.linspace(1, 2, len(X)))
    model.fit(pd.DataFrame(X), Y, w)
    with pytest.raises(ValueError, match="rows of X and sample_weight have different labels"):
        model.fit(pd.DataFrame(X), Y, w[::-1])


def test_the_sum_of_the_weights_is_limited():
    X, Y = toy()
    large = RLS().fit(X, Y, np.full(40, 0.9e150 / 40))
    assert_allclose(large.coef_, RLS(0.0).fit(X, Y).coef_, rtol=1e-9)
    with pytest.raises(ValueError, match="sample_weight must add up to less than"):
        RLS().fit(X, Y, np.full(40, 1e307))


def test_a_scalar_is_no_output_for_each_sample(other_xp):
    X, Y = (other_xp.asarray(A) for A in toy())
    model = RLS().fit(X, Y)
    for fails in (model.fit, model.score):
        with pytest.raises(ValueError, match="y must have one entry for each sample; got a scalar"):
            fails(X, Y[0, 0, 0])
        assert model.coef_.shape == (5, *Y.shape[1:])


def test_errors_about_rows_of_different_lengths_name_the_argument():
    with pytest.raises(ValueError, match=r"\by\b.*inhomogeneous"):
        HOLRR().fit([[1.0], [2.0]], [[1.0, 2.0], [3.0]])


@pytest.mark.parametrize(
    ("dtype", "scale", "tol"),
    [("f4", 1e-25, 1e-4), ("f4", 1e25, 1e-4), ("f8", 1e-170, 1e-9), ("f8", 1e170, 1e-9)],
)
def test_units_of_data_with_many_zeros_do_not_matter(dtype, scale, tol):
    """The largest entry determines the unit, wherever it is."""
    X, Y = (A.astype(dtype) for A in toy())
    X[::5], Y[::5] = 0.0, 0.0  # those of the entries that are looked at first
    scale = X.dtype.type(scale)
    plain, found = RLS(0.0).fit(X, Y), RLS(0.0).fit(X * scale, Y * scale)
    expected = plain.predict(X)
    assert_allclose(found.predict(X * scale) / scale, expected, atol=tol * np.abs(expected).max())
