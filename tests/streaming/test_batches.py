"""Moments of a stream of batches."""

from __future__ import annotations

from dataclasses import fields
from itertools import pairwise

import numpy as np
import pytest

from holrr import HOLRR, Moments
from problems import toy

CUTS = [0, 3, 4, 20, 21, 50, 80, 81, 100]


@pytest.fixture
def data():
    return toy(n=100, d0=4, shape=(3, 2))


def batches_of(X, Y, w=None):
    for start, stop in pairwise(CUTS):
        yield (X[start:stop], Y[start:stop], *(() if w is None else (w[start:stop],)))


def assert_equal(a, b):
    """The same to the last bit."""
    for field in fields(Moments):
        np.testing.assert_array_equal(getattr(a, field.name), getattr(b, field.name))


@pytest.mark.parametrize("grams", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_batches_give_the_moments_of_all_samples(grams, weighted, data):
    X, Y = data
    w = None
    if weighted:
        w = np.random.default_rng(0).uniform(size=100)
        w[4:20] = 0  # a batch without weight
    found = Moments.from_batches(batches_of(X, Y, w), grams)
    expected = Moments.from_arrays(X, Y, w, grams)
    assert found.n_samples == (84 if weighted else 100)
    np.testing.assert_allclose(found.Sxx, expected.Sxx, rtol=1e-12)
    np.testing.assert_allclose(found.Sxy, expected.Sxy, rtol=1e-10)
    assert found.syy == pytest.approx(expected.syy, rel=1e-12)
    if grams:
        for G, H in zip(found.response_grams, expected.response_grams, strict=True):
            np.testing.assert_allclose(G, H, rtol=1e-10)


def test_the_model_of_a_stream_equals_that_of_the_arrays(data):
    found = HOLRR(rank=2).fit_moments(Moments.from_batches(batches_of(*data)))
    np.testing.assert_allclose(found.coef_, HOLRR(rank=2).fit(*data).coef_, rtol=1e-10)


def test_saved_moments_of_parts_add_up_to_those_of_all_samples(data, tmp_path):
    X, Y = data
    for k, (start, stop) in enumerate(pairwise(CUTS)):
        Moments.from_arrays(X[start:stop], Y[start:stop]).save(tmp_path / str(k))
    total = sum(Moments.load(tmp_path / str(k)) for k in range(len(CUTS) - 1))
    assert_equal(total, Moments.from_batches(batches_of(X, Y)))


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        ([], "at least one batch"),
        ([(np.ones((2, 1)), np.ones(2)), np.ones(3)], "in batch 1: a batch must be a pair"),
        ([(np.ones((2, 1)),) * 4], r"in batch 0: a batch must be .*; got tuple of length 4"),
        (None, r"batches must be an iterable of pairs .*; got NoneType"),
        ([(np.ones((2, 1)), np.ones(3))], "in batch 0: .*same number of samples"),
        (
            [(np.ones((2, 1)), np.ones(2)), (np.ones((2, 2)), np.ones(2))],
            "batch 1: X has 2 features",
        ),
        ([(np.ones((2, 1)), np.array([1, np.nan]))], "in batch 0: y contains NaN"),
        ([(np.ones((2, 1)), np.ones(2), np.zeros(2))], "positive weight"),
    ],
)
def test_errors_about_bad_batches_give_their_number(batches, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Moments.from_batches(batches)


def test_progress_draws_a_bar(data, capsys):
    pytest.importorskip("rich", reason="rich is not installed")
    Moments.from_batches(list(batches_of(*data)), progress=True)
    assert "100%" in capsys.readouterr().err
    Moments.from_batches(batches_of(*data))
    assert capsys.readouterr().err == ""


def test_batches_of_other_libraries_stay_there(xp, data):
    batches = [tuple(xp.asarray(a) for a in batch) for batch in batches_of(*data)]
    found = Moments.from_batches(batches)
    assert xp.owns(found.Sxy)
    np.testing.assert_allclose(xp.to_numpy(found.Sxy), Moments.from_arrays(*data).Sxy, rtol=1e-10)


def test_batches_with_other_names_are_refused():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, Y = (
        pd.DataFrame(np.eye(4), columns=list("abcd")),
        pd.DataFrame(np.eye(4), columns=list("uvwx")),
    )
    assert Moments.from_batches([(X, Y), (X, Y)]).n_samples == 8
    for other, message in [
        ((X[list("dcba")], Y), "in batch 1: .*feature names.*same order"),
        ((X, Y[list("xwvu")]), "in batch 1: y has"),
        ((X, Y[::-1]), "in batch 1: the rows of X and y have different labels"),
        ((X, Y, pd.Series(np.ones(4))[::-1]), "in batch 1: the rows of X and sample_weight"),
    ]:
        with pytest.raises(ValueError, match=f"(?s){message}"):
            Moments.from_batches([(X, Y), other])


@pytest.mark.parametrize("length", [1, 3, 6])
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_weights_of_a_batch_must_be_as_many_as_its_samples(length, value):
    """Zero weights, too, which do not count."""
    X, Y = toy(n=5, d0=2, shape=(2,))
    batches = [(X, Y), (X, Y, np.full(length, value))]
    with pytest.raises(ValueError, match=r"in batch 1: sample_weight.shape == .*expected \(5,\)"):
        Moments.from_batches(batches)
    with pytest.raises(ValueError, match="negative"):
        Moments.from_batches([(X, Y), (X, Y, [0, 0, 0, 0, -1e-3])])
    assert Moments.from_batches([(X, Y), (X, Y, np.zeros(5))]).n_samples == 5
