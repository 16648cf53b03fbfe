"""Fits and scores of data that are read in chunks equal those of data in memory."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from holrr.streaming import memory_budget
from problems import on_disk, toy

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty", "ignore:landmarks=")

SMALL = 2**12  # bytes: many blocks of the toy data


def chunked(*arrays):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    return [da.from_array(a, chunks=(60, *a.shape[1:])) for a in arrays]


def weights(n):
    """Weights of which a third are zero."""
    return np.random.default_rng(1).uniform(0.5, 2.0, n) * (np.arange(n) % 3 > 0)


@pytest.mark.rows("streams")
@pytest.mark.parametrize("weighted", [False, True])
def test_fits_of_data_on_disk_equal_those_in_memory(row, weighted, tmp_path):
    X, Y = toy(n=200)
    w = weights(200) if weighted else None
    params = row.pinned(X)
    with memory_budget(SMALL):
        found = row.make(**params).fit(on_disk(tmp_path, "X", X), on_disk(tmp_path, "Y", Y), w)
    row.same_fit(found, row.make(**params).fit(X, Y, w), X, 10.0 if row.searches else 1.0)


@pytest.mark.rows("streams")
@pytest.mark.parametrize("weighted", [False, True])
def test_fits_of_dask_arrays_equal_those_in_memory(row, weighted):
    X, Y = toy(n=200)
    w = weights(200) if weighted else None
    params = row.pinned(X)
    found = row.make(**params).fit(*chunked(X, Y), w)
    row.same_fit(found, row.make(**params).fit(X, Y, w), X, 10.0 if row.searches else 1.0)


@pytest.mark.rows("representative")
@pytest.mark.parametrize("kind", ["usual", "constant output", "one sample"])
def test_scores_in_blocks_equal_those_in_memory(row, kind, tmp_path):
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


@pytest.mark.rows("representative", "streams")
def test_feature_names_are_kept_beside_outputs_on_disk(row, tmp_path):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, Y = toy(n=200)
    frame = pd.DataFrame(X, columns=list("abcde"))
    with memory_budget(SMALL):
        model = row.make().fit(frame, on_disk(tmp_path, "Y", Y))
    assert_array_equal(model.feature_names_in_, list("abcde"))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list("edcba")])
