"""The score of data beyond memory is scikit-learn's R2 of the same data in memory."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import r2_score

from holrr import HOLRR, RLS, RLSCV, KernelRLS
from holrr.data.scores import Errors
from holrr.streaming import memory_budget
from problems import on_disk, toy


@pytest.fixture
def data():
    X, Y = toy(n=300, d0=4, shape=(5, 3))
    Y += 1e4  # a mean that dwarfs the spread
    Y[:, 2, 1] = 0.0  # and a constant output
    return X, Y


def flat(Y):
    return Y.reshape(len(Y), -1)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "model",
    [RLS(), HOLRR(rank=2), RLSCV(alphas=[0.0, 1.0, 1e4]), KernelRLS(kernel="rbf")],
    ids=repr,
)
def test_scores_from_disk_and_from_dask_are_those_from_memory(model, weighted, data, tmp_path):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    X, Y = data
    w = None
    if weighted:
        w = np.random.default_rng(0).uniform(size=300)
        w[100:220] = 0
    model.fit(X[:50], Y[:50])
    expected = r2_score(flat(Y), flat(model.predict(X)), sample_weight=w)
    np.save(tmp_path / "Y.npy", Y)
    with memory_budget(2**14):
        found = model.score(X, np.load(tmp_path / "Y.npy", mmap_mode="r"), w)
    assert found == pytest.approx(expected, rel=1e-9)
    chunks = da.from_array(X, chunks=(70, 3)), da.from_array(Y, chunks=(41, 2, 3))
    assert model.score(*chunks, w) == pytest.approx(expected, rel=1e-9)


def test_a_constant_output_that_is_met_counts_one():
    ones, zeros = np.ones(2), np.zeros(2)
    assert Errors(2, 1.0, ones, zeros, zeros, 1.0).r2() == 1.0
    assert Errors(2, 1.0, ones, zeros, np.array([0.0, 3.0]), 1.0).r2() == 0.5


@pytest.mark.parametrize("scale", [1e-300, 1e-170, 1e160, 1e300])
def test_outputs_whose_squares_vanish_or_overflow_have_a_score(scale, tmp_path):
    """Otherwise any model of small outputs scores one, and any of large ones NaN."""
    X, Y = toy()
    Y[:20] *= 1e-3  # blocks whose units differ
    expected, model = RLS(10.0).fit(X, Y).score(X, Y), RLS(10.0).fit(X, scale * Y)
    assert model.score(X, scale * Y) == pytest.approx(expected, rel=1e-9)
    with memory_budget(2**10):
        assert model.score(X, on_disk(tmp_path, "Y", scale * Y)) == pytest.approx(
            expected, rel=1e-9
        )


def test_wrong_shapes_and_bad_values_are_named(data, tmp_path):
    X, Y = data
    model = RLS().fit(X, Y)
    hole = Y.copy()
    hole[250, 1, 1] = np.nan
    for message, bad in [
        ("y must have shape", Y[:, :2]),
        (r"samples \d+ to \d+: y contains NaN", hole),
    ]:
        np.save(tmp_path / "Y.npy", bad)
        with memory_budget(2**12), pytest.raises(ValueError, match=message):
            model.score(X, np.load(tmp_path / "Y.npy", mmap_mode="r"))
