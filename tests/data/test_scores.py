"""Scores equal scikit-learn's R2, for data in memory, on disk and of Dask."""

from __future__ import annotations

import pickle
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import r2_score

from holrr import HOLRR, RLS, RLSCV, KernelRLS, load
from holrr.data import scores
from holrr.data.scores import Errors
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


def test_constant_outputs_count_only_in_the_average_or_where_all_are_constant():
    """As in scikit-learn, where they have no weight beside outputs that vary."""
    ones, zeros, missed = np.ones(2), np.zeros(2), np.array([0.0, 3.0])
    for met, error in [(1.0, zeros), (0.5, missed)]:
        assert Errors(2, 1.0, ones, zeros, error, 1.0).r2() == met
        Y = np.tile([2.0, 4.0], (5, 1))
        assert r2_score(Y, Y + (error > 0), multioutput="variance_weighted") == met
    one_varies = Errors(2, 1.0, ones, np.array([4.0, 0.0]), np.array([1.0, 3.0]), 1.0)
    assert one_varies.r2() == 0.75
    assert one_varies.r2("uniform") == 0.375
    assert one_varies.r2(None).tolist() == [0.75, 0.0]


def test_an_output_without_weight_has_no_r2():
    weight = np.array([2.0, 0.0])
    found = Errors(np.array([2, 2]), weight, np.ones(2), np.array([4.0, 0.0]), weight, 1.0)
    assert np.isnan(found.r2(None)).tolist() == [False, True]
    assert found.r2() == found.r2("uniform") == 0.5


@pytest.mark.parametrize("missing", [False, True])
def test_the_errors_of_blocks_add_up_to_those_of_all_samples(missing, monkeypatch):
    """Some blocks have missing outputs, another scale, or no weight."""
    rng = np.random.default_rng(0)
    Y, P = 1e3 + rng.normal(size=(2, 500, 3, 4))
    Y[:70] *= 1e-70
    w = rng.uniform(size=500)
    w[64:128] = 0
    if missing:
        Y[rng.uniform(size=Y.shape) < 0.1 * (np.arange(500) > 200)[:, None, None]] = np.nan
    whole = Errors.of(Y, P, w, missing=missing)
    monkeypatch.setattr(scores, "_BLOCK", 1)
    parts = scores.errors_between(Y, P, w, missing=missing)
    for name in ("n_samples", "weight", "mean", "scatter", "error"):
        expected = np.broadcast_to(getattr(whole, name), (3, 4))
        assert_allclose(np.broadcast_to(getattr(parts, name), (3, 4)), expected, rtol=1e-9)


def test_errors_give_the_index_of_a_bad_entry_in_memory(data, monkeypatch):
    X, Y = data
    monkeypatch.setattr(scores, "_BLOCK", 1)
    monkeypatch.setattr(scores, "_PREDICTED", 8 * 15 * 100)
    model = RLS().fit(X, Y)
    Y[250, 1, 1] = np.nan
    for w in (None, np.arange(300) < 200):  # also where it has no weight
        with pytest.raises(ValueError, match=r"y contains NaN at index \(250, 1, 1\)"):
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


def test_a_score_predicts_every_sample_once(monkeypatch):
    X, Y = toy(n=500, d0=3, shape=(4, 5))
    model, rows = RLS().fit(X, Y), []
    predict = RLS._predict_array

    def counted(self, X):
        rows.append(len(X))
        return predict(self, X)

    monkeypatch.setattr(RLS, "_predict_array", counted)
    monkeypatch.setattr(scores, "_PREDICTED", 8 * 20 * 64)
    model.score(X, Y)
    assert sum(rows) == 500
    assert max(rows) <= 64


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
