"""Scores equal scikit-learn's R2, for data in memory, on disk and of Dask."""

from __future__ import annotations

import pickle
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import r2_score

from holrr import HOLRR, RLS, RLSCV, KernelRLS, load
from holrr.metrics import r2
from holrr.streaming import memory_budget
from problems import on_disk, toy


@pytest.fixture
def data():
    X, Y = toy(n=300, d0=4, shape=(5, 3))
    Y += 1e4  # a mean much larger than the standard deviation
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
def test_scores_from_disk_and_from_dask_equal_those_from_memory(model, weighted, data, tmp_path):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    X, Y = data
    w = None
    if weighted:
        w = np.random.default_rng(0).uniform(size=300)
        w[100:220] = 0
    model.fit(X[:50], Y[:50])
    how = {"sample_weight": w, "multioutput": "variance_weighted"}
    expected = r2_score(flat(Y), flat(model.predict(X)), **how)
    np.save(tmp_path / "Y.npy", Y)
    with memory_budget(2**14):
        found = model.score(X, np.load(tmp_path / "Y.npy", mmap_mode="r"), w)
    assert found == pytest.approx(expected, rel=1e-9)
    chunks = da.from_array(X, chunks=(70, 3)), da.from_array(Y, chunks=(41, 2, 3))
    assert model.score(*chunks, w) == pytest.approx(expected, rel=1e-9)


def scored(Y, P, average="pooled", w=None):
    """R2 of predictions P, by the score of a model that predicts its inputs, and by `r2`."""
    model = RLS(0.0, fit_intercept=False).fit(np.eye(P.shape[1]), np.eye(P.shape[1]))
    found = r2(Y, P, sample_weight=w, average=average)
    if average == "pooled":
        assert model.score(P, Y, w) == pytest.approx(found, abs=1e-12)
    return found


def test_constant_outputs_count_only_in_the_average_or_where_all_are_constant():
    """As in scikit-learn, where they have no weight beside outputs that vary."""
    Y = np.tile([2.0, 4.0], (5, 1))
    for error in ([0.0, 0.0], [0.0, 3.0], [1.0, 1.0]):
        expected = r2_score(Y, Y + error, multioutput="variance_weighted")
        assert scored(Y, Y + error) == expected
    Y[:, 0] = [0, 1, 2, 3, 4]
    P = Y + np.array([0.5, 3.0])
    assert scored(Y, P) == pytest.approx(1 - 5 * 0.25 / 10)
    assert_allclose(scored(Y, P, None), [1 - 5 * 0.25 / 10, 0.0])
    assert scored(Y, P, "uniform") == pytest.approx((1 - 5 * 0.25 / 10) / 2)


@pytest.mark.parametrize("scale", [1.0, 1e-70])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_of_many_blocks_are_those_of_all_samples(scale, weighted):
    """Blocks of a few megabytes, some of which have another scale or no weight."""
    rng = np.random.default_rng(0)
    Y, P = 1e3 + rng.normal(size=(2, 20_000, 100))
    Y[:7000], P[:7000] = scale * Y[:7000], scale * P[:7000]
    w = rng.uniform(size=len(Y)) if weighted else None
    if weighted:
        w[6000:12_000] = 0
    expected = r2_score(Y, P, sample_weight=w, multioutput="variance_weighted")
    assert scored(Y, P, w=w) == pytest.approx(expected, rel=1e-9)


def test_blocks_without_weight_do_not_count_whatever_they_contain(data):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    X, Y = data
    model = RLS().fit(X, Y)
    expected = model.score(X[50:], Y[50:])
    w = np.r_[np.zeros(50), np.ones(250)]
    Y = np.r_[np.full((50, *Y.shape[1:]), 1e25), Y[50:]]
    assert model.score(X, Y, w) == pytest.approx(expected, rel=1e-9)
    chunks = da.from_array(X, chunks=(50, 4)), da.from_array(Y, chunks=(50, 5, 3))
    assert model.score(*chunks, w) == pytest.approx(expected, rel=1e-9)


def test_errors_give_the_index_of_a_bad_entry_in_memory(data):
    X, Y = data
    model = RLS().fit(X, Y)
    X, Y = np.tile(X, (100, 1)), np.tile(Y, (100, 1, 1))  # of several blocks
    Y[25_000, 1, 1] = np.nan
    for w in (None, np.arange(30_000) < 200):  # also where it has no weight
        with pytest.raises(ValueError, match=r"y contains NaN at index \(25000, 1, 1\)"):
            model.score(X, Y, w)


def test_outputs_without_weight_in_the_fit_do_not_count_and_missing_outputs_are_refused(tmp_path):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    X, Y = toy(n=200, shape=(3, 4))
    model = RLS(output_weight=[[1.0, 0.0, 2.0], None]).fit(X[:100], Y[:100])
    root = np.sqrt([1.0, 2.0])[:, None]
    pair = flat(Y[:, [0, 2]] * root), flat(model.predict(X)[:, [0, 2]] * root)
    expected = r2_score(*pair, multioutput="variance_weighted")
    ways = [
        lambda Y: (X, Y),
        lambda Y: (X, on_disk(tmp_path, "Y", Y)),
        lambda Y: (X, da.from_array(Y, chunks=50)),
    ]
    partial = Y.copy()
    partial[70, 2, 1] = np.nan
    for way in ways:
        with memory_budget(2**10):
            assert model.score(*way(Y)) == pytest.approx(expected, rel=1e-12)
            with pytest.raises(ValueError, match=r"y contains NaN at index \(70, 2, 1\)"):
                model.score(*way(partial))


@pytest.mark.rows("weighs_outputs")
def test_scores_have_the_weights_of_the_outputs_that_the_fit_has(row, tmp_path):
    """R2 of outputs times the roots of their weights, which is what the fit minimises."""
    X, Y = toy(n=80, shape=(3, 4))
    Y += 3 * np.random.default_rng(3).normal(size=Y.shape)
    v = np.array([1.0, 4.0, 0.25])
    model = row.make(output_weight=[v, None]).fit(X[:50], Y[:50])
    root, how = np.sqrt(v)[:, None], {"multioutput": "variance_weighted"}
    expected = r2_score(flat(root * Y), flat(root * model.predict(X)), **how)
    plain = r2_score(flat(Y), flat(model.predict(X)), **how)
    assert abs(plain - expected) > 1e-3  # or the test could not fail
    assert model.score(X, Y) == pytest.approx(expected, rel=1e-12)
    model.save(tmp_path / "m")
    assert load(tmp_path / "m").score(X, Y) == model.score(X, Y)
    assert pickle.loads(pickle.dumps(model)).score(X, Y) == model.score(X, Y)
    model.set_params(output_weight=None)  # a parameter of the next fit
    assert model.score(X, Y) == pytest.approx(expected, rel=1e-12)
    assert model.fit(X[:50], Y[:50]).score(X[50:], Y[50:]) == pytest.approx(
        r2_score(flat(Y[50:]), flat(model.predict(X[50:])), **how), rel=1e-12
    )
    with memory_budget(2**10):
        weighted = row.make(output_weight=[v, None]).fit(X, Y)
        assert weighted.score(X, on_disk(tmp_path, "Y", Y)) == pytest.approx(weighted.score(X, Y))


def test_the_score_of_a_search_and_its_best_score_have_the_same_weights():
    """On one held-out set of a given mean, ``1 + best_score_ / null_mse_`` is the score."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(80, 4)), rng.normal(size=(80, 3, 4))
    Y[:, 0] += X[:, :1]
    train, test = np.arange(50), np.arange(50, 80)
    Y[test] += Y[train].mean(axis=0) - Y[test].mean(axis=0)
    v = np.array([5.0, 1.0, 0.2])
    options = {"cv": [(train, test)], "alphas": [3.0], "output_weight": [v, None]}
    model = RLSCV(**options).fit(X, Y)
    fit = RLS(3.0, output_weight=[v, None]).fit(X[train], Y[train])
    expected = 1 + model.best_score_ / model.null_mse_
    assert fit.score(X[test], Y[test]) == pytest.approx(expected, rel=1e-9)
    assert abs(RLS(3.0).fit(X[train], Y[train]).score(X[test], Y[test]) - expected) > 0.01


def test_a_score_takes_little_memory():
    """Predictions are computed in blocks, so that no array is as large as the outputs."""
    X = np.random.default_rng(0).normal(size=(20_000, 3))
    Y = np.zeros((20_000, 400))
    Y[:, 0] = X[:, 0]
    model = RLS().fit(X[:100], Y[:100])
    tracemalloc.start()
    try:
        model.score(X, Y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.6 * Y.nbytes


@pytest.mark.parametrize("scale", [1e-300, 1e-170, 1e160, 1e300])
def test_scores_do_not_depend_on_the_scale_of_the_outputs(scale, tmp_path):
    """Squares of such outputs underflow or overflow."""
    X, Y = toy()
    Y[:20] *= 1e-3  # blocks whose units differ
    expected, model = RLS(10.0).fit(X, Y).score(X, Y), RLS(10.0).fit(X, scale * Y)
    assert model.score(X, scale * Y) == pytest.approx(expected, rel=1e-9)
    with memory_budget(2**10):
        assert model.score(X, on_disk(tmp_path, "Y", scale * Y)) == pytest.approx(
            expected, rel=1e-9
        )


def test_wrong_shapes_and_bad_entries_are_named(data, tmp_path):
    X, Y = data
    model = RLS().fit(X, Y)
    partial = Y.copy()
    partial[250, 1, 1] = np.nan
    for message, bad in [
        ("y must have shape", Y[:, :2]),
        (r"samples \d+ to \d+: y contains NaN", partial),
    ]:
        np.save(tmp_path / "Y.npy", bad)
        with memory_budget(2**12), pytest.raises(ValueError, match=message):
            model.score(X, np.load(tmp_path / "Y.npy", mmap_mode="r"))
