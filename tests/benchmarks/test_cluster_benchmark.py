"""The run on a cluster, small, and the sizes that the page on scaling computes with."""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from holrr import Moments
from problems import toy

distributed = pytest.importorskip("distributed", reason="distributed is not installed")
pytest.importorskip("zarr", reason="zarr is not installed")
ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "benchmarks"))
import cluster  # noqa: E402


def test_the_size_of_moments_is_that_of_their_arrays():
    X, Y = toy(n=30, d0=4, shape=(5, 3))
    m = Moments.from_arrays(X, Y)
    arrays = (m.Sxx, m.Sxy, m.mean_x, m.mean_y, m.squares)
    assert cluster.moment_bytes(4, 15) == sum(a.nbytes for a in arrays)


@pytest.mark.parametrize("n", [1, 2, 4, 5, 16, 17, 100, 1000])
def test_the_number_of_merged_moments_is_that_of_the_tree(n):
    from holrr.streaming.dask import _tree

    merged = []
    tree = _tree([cluster.dask.delayed(i, pure=False) for i in range(n)], merged.extend)
    tree.compute(scheduler="sync")
    assert len(merged) == cluster.edges(n)


def test_data_are_generated_lazily_and_alike():
    X, Y = cluster.generate(23, 10)
    assert X.chunks[0] == Y.chunks[0] == (10, 10, 3)
    found, again = (cluster.generate(23, 10)[1].compute(scheduler="sync") for _ in range(2))
    np.testing.assert_array_equal(found, again)
    signal = np.tensordot(X.compute(scheduler="sync"), cluster.coefficients(), 1)
    assert 0.9 < np.std(found - signal) < 1.1


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux")
def test_the_run_prints_memory_and_bytes_of_every_step(tmp_path, capsys):
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=10**9
        ) as found,
        distributed.Client(found) as client,
    ):
        cluster.run(client, tmp_path, 800, 100)
    text = capsys.readouterr().out
    steps = re.findall(
        r"^(.*?) +[\d.]+ s  ([\d.]+) ([\d.]+) GB  (\d) computes, .*moved", text, re.M
    )
    assert [name for name, *_ in steps][1:6] == [
        "fit HOLRR",
        "fit HOLRRCV, 5 folds",
        "fit HOLRR, fixed mask and weights",
        "score",
        "predict, lazily",
    ]
    assert [int(computes) for *_, computes in steps[1:6]] == [1, 1, 2, 1, 0]
    assert all(0.05 < float(peak) < 1 for _, *peaks, _ in steps for peak in peaks)
    moved = float(re.search(r"moments moved between workers, a chunk: ([\d.]+)", text)[1])
    assert 0 < moved <= cluster.edges(8) / 8 + 0.5
    assert math.isclose(cluster.edges(8) / 8, 10 / 8)
