"""Every estimator that reads data in blocks fits and scores as if they were in memory."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from holrr.streaming import memory_budget
from problems import on_disk, toy

pytestmark = pytest.mark.filterwarnings("ignore:the best penalty", "ignore:n_components")

SMALL = 2**12  # bytes: many blocks of the toy data


def in_blocks(row):
    if not row.streams:
        pytest.skip("needs all samples at hand")


def chunked(*arrays):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    return [da.from_array(a, chunks=(60, *a.shape[1:])) for a in arrays]


def weights(n):
    """A third of the samples without any."""
    return np.random.default_rng(1).uniform(0.5, 2.0, n) * (np.arange(n) % 3 > 0)


@pytest.mark.parametrize("weighted", [False, True])
def test_fits_from_disk_are_those_from_memory(row, weighted, tmp_path):
    in_blocks(row)
    X, Y = toy(n=200)
    w = weights(200) if weighted else None
    params = row.pinned(X)
    with memory_budget(SMALL):
        found = row.make(**params).fit(on_disk(tmp_path, "X", X), on_disk(tmp_path, "Y", Y), w)
    row.same_fit(found, row.make(**params).fit(X, Y, w), X)


@pytest.mark.parametrize("weighted", [False, True])
def test_fits_of_dask_arrays_are_those_from_memory(row, weighted):
    in_blocks(row)
    X, Y = toy(n=200)
    w = weights(200) if weighted else None
    params = row.pinned(X)
    found = row.make(**params).fit(*chunked(X, Y), w)
    row.same_fit(found, row.make(**params).fit(X, Y, w), X)


@pytest.mark.parametrize("kind", ["usual", "constant output", "one sample"])
def test_scores_in_blocks_are_those_from_memory(row, kind, tmp_path):
    X, Y = toy(n=200)
    model = row.make().fit(X, Y)
    if kind == "constant output":
        Y[:, 1, 2] = 7.0
    n = 1 if kind == "one sample" else 200
    X, Y = X[:n], Y[:n]
    with np.errstate(all="ignore"):
        expected = model.score(X, Y)
        with memory_budget(64):
            from_disk = model.score(on_disk(tmp_path, "X", X), on_disk(tmp_path, "Y", Y))
        from_dask = model.score(*chunked(X, Y))
    assert_allclose([from_disk, from_dask], [expected] * 2, rtol=1e-9)


def test_names_of_the_features_are_kept_beside_outputs_on_disk(row, tmp_path):
    in_blocks(row)
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, Y = toy(n=200)
    frame = pd.DataFrame(X, columns=list("abcde"))
    with memory_budget(SMALL):
        model = row.make().fit(frame, on_disk(tmp_path, "Y", Y))
    assert_array_equal(model.feature_names_in_, list("abcde"))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list("edcba")])
