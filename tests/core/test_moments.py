"""Moments against sums over samples; merging in any order; shifts of the centre; errors."""

import math
import pickle
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_limits

import reference
from holrr import HOLRR, Moments
from problems import assert_same_state, batchings, problems, toy


def assert_moments_equal(m, expected, tol=1e-10, grams=True):
    scale_x = np.sqrt(np.trace(expected["Sxx"]))
    scale_y = np.sqrt(expected["syy"])
    assert m.n_samples == expected["n_samples"]
    assert_allclose(m.weight, expected["weight"], rtol=tol)
    assert_allclose(m.mean_x, expected["mean_x"], rtol=tol, atol=tol)
    assert_allclose(m.mean_y, expected["mean_y"], rtol=tol, atol=tol)
    assert_allclose(m.Sxx, expected["Sxx"], rtol=tol, atol=tol * (1 + scale_x) ** 2)
    assert_allclose(m.Sxy, expected["Sxy"], rtol=tol, atol=tol * (1 + scale_x) * (1 + scale_y))
    assert_allclose(m.syy, expected["syy"], rtol=tol, atol=tol)
    if grams:
        for G, H in zip(m.response_grams, expected["response_grams"], strict=True):
            assert_allclose(G, H, rtol=tol, atol=tol * (1 + scale_y**2))


def as_dict(m):
    return {f.name: getattr(m, f.name) for f in fields(m)}


@given(problems(), st.booleans())
def test_moments_are_sums_over_samples(problem, weighted):
    n = len(problem.X)
    w = np.random.default_rng(0).uniform(size=n) if weighted else None
    m = Moments.from_arrays(problem.X, problem.Y, w, response_grams=True)
    assert_moments_equal(m, reference.moments(problem.X, problem.Y, w))
    assert m.output_shape == problem.Y.shape[1:]
    assert m.n_features == problem.X.shape[1]


@given(problems(), st.booleans(), st.data())
def test_merged_batches_are_the_moments_of_all_samples(problem, weighted, data):
    X, Y = problem.X, problem.Y
    w = np.random.default_rng(0).uniform(size=len(X)) if weighted else None
    parts = [
        Moments.from_arrays(X[s], Y[s], None if w is None else w[s], response_grams=True)
        for s in data.draw(batchings(len(X)))
    ]
    parts = data.draw(st.permutations(parts))
    expected = reference.moments(X, Y, w)
    assert_moments_equal(parts[0].merge(*parts[1:]), expected)
    tree = parts
    while len(tree) > 1:  # pairwise, as on a cluster
        tree = [sum(tree[i + 1 : i + 2], tree[i]) for i in range(0, len(tree), 2)]
    assert_moments_equal(tree[0], expected)


@given(problems(), st.integers(0, 999))
def test_moments_about_another_centre(problem, seed):
    X, Y = problem.X, problem.Y
    rng = np.random.default_rng(seed)
    mx, my = rng.normal(size=X.shape[1]), rng.normal(size=Y.shape[1:])
    m = Moments.from_arrays(X, Y).about(mx, my)
    assert_allclose(m.Sxx, (X - mx).T @ (X - mx), atol=1e-9)
    assert_allclose(m.Sxy, np.tensordot((X - mx).T, Y - my, axes=1), atol=1e-9)
    assert_allclose(m.syy, np.sum((Y - my) ** 2), rtol=1e-9)
    zero = Moments.from_arrays(X, Y, response_grams=True).about_zero()
    assert_allclose(zero.Sxy, np.tensordot(X.T, Y, axes=1), atol=1e-9)
    for i, G in enumerate(zero.response_grams):
        A = reference.unfold(Y, i + 1)
        assert_allclose(G, A @ A.T, atol=1e-9)


def test_moments_do_not_depend_on_the_size_of_blocks():
    """Enough rows for several blocks of every kind of pass."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30_000, 3)) + 2, rng.normal(size=(30_000, 5, 8)) - 1
    w = rng.uniform(size=30_000)
    for weights, offset in ((None, 0.0), (w, 0.0), (None, 1e3)):
        m = Moments.from_arrays(X, Y + offset, weights, response_grams=True)
        parts = [
            Moments.from_arrays(
                X[s], Y[s] + offset, None if weights is None else weights[s], response_grams=True
            )
            for s in (slice(0, 70), slice(70, 9000), slice(9000, 30_000))
        ]
        assert_moments_equal(parts[2] + parts[0] + parts[1], as_dict(m))


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e8])
def test_large_means_do_not_cancel(offset):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(500, 4)), rng.normal(size=(500, 3, 2))
    # Rounding by the offset changes the data: the reference has the rounded data.
    Xo, Yo = X + offset, Y + offset
    m = Moments.from_arrays(Xo, Yo, response_grams=True)
    exact = reference.moments(Xo - offset, Yo - offset)
    assert_allclose(m.Sxx, exact["Sxx"], rtol=1e-9, atol=1e-9 * 500)
    assert_allclose(m.Sxy, exact["Sxy"], rtol=1e-7, atol=1e-7 * 500)
    assert_allclose(m.syy, exact["syy"], rtol=1e-9)
    for G, H in zip(m.response_grams, exact["response_grams"], strict=True):
        assert_allclose(G, H, rtol=1e-7, atol=1e-7 * 500)
    merged = Moments.from_arrays(Xo[:100], Yo[:100]) + Moments.from_arrays(Xo[100:], Yo[100:])
    assert_allclose(merged.syy, exact["syy"], rtol=1e-7)
    assert_allclose(merged.Sxx, exact["Sxx"], rtol=1e-7, atol=1e-7 * 500)


def test_step_after_the_first_rows_does_not_cancel():
    """The mean of the first rows is far from that of all."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(4000, 3)), rng.normal(size=(4000, 6))
    Y[100:] += 1e7
    m = Moments.from_arrays(X, Y)
    Yc = Y - Y.mean(0)
    assert_allclose(m.syy, np.sum(Yc**2), rtol=1e-9)
    assert_allclose(m.Sxy, (X - X.mean(0)).T @ Yc, atol=1e-8 * np.linalg.norm(Yc))


def test_centre_is_that_of_samples_with_weight():
    """A large mean does not cancel where the first samples have hardly any weight."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(500, 4)), rng.normal(size=(500, 3, 2)) + 1e8
    Y[:100] = rng.normal(size=(100, 3, 2))
    w = rng.uniform(1, 9, 500)
    w[:100] = 1e-20
    m = Moments.from_arrays(X, Y, w)
    exact = reference.moments(X, Y - 1e8, w)
    assert_allclose(m.syy, exact["syy"], rtol=1e-9)
    assert_allclose(m.Sxy, exact["Sxy"], atol=1e-6 * w.sum())


def test_moments_of_single_samples_merge():
    X, Y = toy(n=12)
    parts = [
        Moments.from_arrays(X[i : i + 1], Y[i : i + 1], response_grams=True) for i in range(12)
    ]
    assert parts[0].syy == 0
    assert_moments_equal(parts[0].merge(*parts[1:]), reference.moments(X, Y))


def test_merging_does_not_change_the_parts():
    X, Y = toy()
    a, b = Moments.from_arrays(X[:9], Y[:9]), Moments.from_arrays(X[9:], Y[9:])
    before = pickle.dumps((a, b))
    a + b
    a.merge(b)
    a.about_zero()
    assert pickle.dumps((a, b)) == before


def test_pickled_moments_give_the_same_fit():
    X, Y = toy()
    m = Moments.from_arrays(X, Y, response_grams=True)
    copied = pickle.loads(pickle.dumps(m))
    assert_allclose(
        HOLRR(rank=2).fit_moments(copied).coef_, HOLRR(rank=2).fit_moments(m).coef_, rtol=0
    )


def test_moments_of_float32_are_summed_in_float64():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(50_000, 3)).astype("f4") + 10, rng.normal(size=(50_000, 4)).astype("f4")
    m = Moments.from_arrays(X, Y)
    exact = reference.centre(X.astype(float), Y.astype(float))
    assert m.dtype == "float32"
    assert np.asarray(m.Sxx).dtype == np.float64
    assert_allclose(m.mean_x, exact[2], rtol=1e-9)
    assert_allclose(m.Sxx, exact[0].T @ exact[0], rtol=1e-5, atol=1e-5 * 50_000)
    assert_allclose(m.syy, np.sum(exact[1] ** 2), rtol=1e-5)


def test_merging_float32_and_float64_gives_float64():
    X, Y = toy()
    small = Moments.from_arrays(X.astype("f4"), Y.astype("f4"))
    large = Moments.from_arrays(X, Y)
    assert (small + large).dtype == (large + small).dtype == "float64"
    assert (small + small).dtype == "float32"


def test_merging_moments_of_other_shapes_raises():
    X, Y = toy()
    m = Moments.from_arrays(X, Y)
    with pytest.raises(ValueError, match=r"4 features.*5|5 features.*4"):
        m + Moments.from_arrays(X[:, :4], Y)
    with pytest.raises(ValueError, match=r"\(3, 4\).*\(3, 2\)"):
        m + Moments.from_arrays(X, Y[:, :, :2])
    with pytest.raises(ValueError, match="response_grams"):
        m + Moments.from_arrays(X, Y, response_grams=True)
    with pytest.raises(TypeError):
        m + 3
    with pytest.raises(TypeError, match="Moments"):
        m.merge(3)


def test_fit_moments_with_other_objects_or_without_response_grams_raises():
    X, Y = toy()
    with pytest.raises(TypeError, match="Moments"):
        HOLRR().fit_moments((X, Y))
    with pytest.raises(ValueError, match="response_grams=True"):
        HOLRR(subspaces="response").fit_moments(Moments.from_arrays(X, Y))


def test_bad_arrays_raise():
    X, Y = toy()
    with pytest.raises(ValueError, match=r"NaN"):
        Moments.from_arrays(np.where(X == X[3, 2], np.nan, X), Y)
    with pytest.raises(ValueError, match=r"NaN"):
        Moments.from_arrays(X, np.where(Y == Y[3, 2, 1], np.nan, Y))
    with pytest.raises(ValueError, match="number of samples"):
        Moments.from_arrays(X, Y[1:])
    with pytest.raises(ValueError, match="sample_weight"):
        Moments.from_arrays(X, Y, -np.ones(len(X)))


def test_finite_data_with_overflowing_squares_do_not_raise():
    X, Y = toy()
    m = Moments.from_arrays(X, Y * 1e200)
    assert m.syy == math.inf or m.syy > 0
    assert np.isfinite(m.Sxy).all()
    assert_allclose(m.mean_y, Y.mean(0) * 1e200, rtol=1e-12)


def test_moments_in_every_library(xp):
    X, Y = toy()
    w = np.random.default_rng(1).uniform(size=40)
    for weights in (None, w):
        m = Moments.from_arrays(
            xp.asarray(X),
            xp.asarray(Y),
            None if weights is None else xp.asarray(weights),
            response_grams=True,
        )
        arrays = ("mean_x", "mean_y", "Sxx", "Sxy")
        assert all(xp.owns(getattr(m, name)) for name in arrays)
        here = as_dict(m) | {name: xp.to_numpy(getattr(m, name)) for name in arrays}
        here["response_grams"] = tuple(xp.to_numpy(G) for G in m.response_grams)
        assert_moments_equal(Moments(**here), reference.moments(X, Y, weights))
        half = slice(0, 20)
        assert xp.owns(
            (
                m
                + Moments.from_arrays(xp.asarray(X[half]), xp.asarray(Y[half]), response_grams=True)
            ).Sxx
        )


def test_batches_are_added_to_response_grams_of_earlier_moments():
    """Moments without names leave no names of an earlier fit."""
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, Y = toy()
    model = HOLRR(2).fit(pd.DataFrame(X, columns=list("abcde")), Y)
    model.fit_moments(Moments.from_arrays(X[:20], Y[:20], response_grams=True))
    assert not hasattr(model, "feature_names_in_")
    model.partial_fit(X[20:], Y[20:]).set_params(subspaces="response").fit_moments(model.moments_)
    assert_allclose(model.coef_, HOLRR(2, subspaces="response").fit(X, Y).coef_, atol=1e-9)


@pytest.mark.parametrize("n", [100, 8192, 8193, 20000])
def test_single_precision_is_summed_in_double_in_every_library(xp, n):
    """Below and above the number of rows whose products are summed in single precision."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(n, 3)) + 5).astype(np.float32)
    Y = (rng.normal(size=(n, 2, 2)) - 3).astype(np.float32)
    found = Moments.from_arrays(xp.asarray(X), xp.asarray(Y))
    exact = Moments.from_arrays(X.astype(np.float64), Y.astype(np.float64))
    for name in ("mean_x", "mean_y", "Sxx", "Sxy", "squares"):
        value, wanted = xp.to_numpy(getattr(found, name)), getattr(exact, name)
        assert value.dtype == np.float64
        assert_allclose(value, wanted, rtol=1e-5, atol=1e-6 * n)


LARGE_X = (3000, 60)  # with 300 outputs, large enough for a pass of three threads


@pytest.mark.parametrize(("dtype", "offset"), [("f8", 0.0), ("f8", 1e4), ("f4", 1e4)])
@pytest.mark.parametrize("weighted", [False, True])
def test_moments_by_several_threads_equal_those_by_one(three_threads, dtype, offset, weighted):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=LARGE_X) + offset).astype(dtype)
    Y = (np.tensordot(X - offset, rng.normal(size=(60, 300)), 1) + offset).astype(dtype)
    w = rng.uniform(size=len(X)) if weighted else None
    tol = 1e-12 if dtype == "f8" else 2e-4
    found, again = (Moments.from_arrays(X, Y, w) for _ in range(2))
    with threadpool_limits(1, "blas"):
        alone = Moments.from_arrays(X, Y, w)
    assert_moments_equal(found, as_dict(alone), tol, grams=False)
    assert_same_state(found, again)  # whichever thread was fastest


def test_bad_output_is_located_with_several_threads(three_threads):
    X, Y = np.ones(LARGE_X), np.ones((LARGE_X[0], 300))
    Y[2417, 201] = np.nan
    with pytest.raises(ValueError, match=r"y contains NaN at index \(2417, 201\)"):
        Moments.from_arrays(X, Y)


@pytest.mark.parametrize("order", ["any", "sorted", "periodic"])
def test_centre_from_some_rows_loses_no_digits(order):
    """The centre is the mean of every sixteenth row, which may be far from that of all."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8192, 4)) + 1e3
    if order == "sorted":
        X.sort(axis=0)
    elif order == "periodic":
        X[::16] += 40.0
    Y = X[:, :2] - 1e3
    m = Moments.from_arrays(X, Y)
    mean = X.astype(np.longdouble).mean(axis=0)
    Xc = X - mean
    size = float((Xc * Xc).sum())
    assert_allclose(m.mean_x, mean.astype(float), rtol=1e-14)
    assert_allclose(m.Sxx, (Xc.T @ Xc).astype(float), rtol=1e-12, atol=1e-14 * size)
    assert_allclose(m.Sxy, (Xc.T @ Xc[:, :2]).astype(float), rtol=1e-12, atol=1e-14 * size)


@pytest.mark.parametrize("shape", [(), (4,), (3, 2)])
@pytest.mark.parametrize("w", [None, 0.3])
def test_moments_of_one_sample(xp, shape, w):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(1, 3)), rng.normal(size=(1, *shape))
    weights = None if w is None else np.array([w])
    m = Moments.from_arrays(xp.asarray(X), xp.asarray(Y), weights, response_grams=True)
    assert type(m.mean_y) is type(xp.asarray(Y))
    expected = reference.moments(X, Y, weights)
    for name in ("mean_x", "mean_y", "Sxx", "Sxy"):
        assert_allclose(xp.to_numpy(getattr(m, name)), expected[name], atol=1e-15)
    assert (m.n_samples, m.weight, m.syy) == (1, 1.0 if w is None else w, 0.0)
    assert all((xp.to_numpy(G) == 0).all() for G in m.response_grams)
    Y = np.where(np.arange(Y.size).reshape(Y.shape) == 0, np.inf, Y)
    with pytest.raises(ValueError, match="y contains infinity"):
        Moments.from_arrays(xp.asarray(X), xp.asarray(Y))


def test_moments_of_one_sample_are_a_copy():
    X, Y = np.ones((1, 2)), np.ones((1, 3))
    m = Moments.from_arrays(X, Y)
    X[:], Y[:] = 7, 8
    assert_allclose(m.mean_x, 1)
    assert_allclose(m.mean_y, 1)
