"""Dask arrays give the fit of the same arrays in memory, on threads and on two processes."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest

from holrr import HOLRR, HOLRRCV, LRR, LRRCV, RLS, RLSCV, KernelRLS, Moments, TraceNormRegression
from holrr.streaming import memory_budget
from problems import toy

dask = pytest.importorskip("dask", reason="dask is not installed")
distributed = pytest.importorskip("distributed", reason="distributed is not installed")
import dask.array as da  # noqa: E402

from holrr.streaming import dask as dask_stream  # noqa: E402
from holrr.streaming import stream as streams  # noqa: E402
from holrr.streaming.dask import cut_samples, join_small  # noqa: E402

ALPHAS = [0.0, 0.1, 1000.0]


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes, which compute while the fixture exists."""
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            silence_logs="CRITICAL",
        ) as found,
        distributed.Client(found) as client,
    ):
        yield client


@pytest.fixture
def data():
    return toy(n=300, d0=4, shape=(5, 3))


def chunked(X, Y, x=(50, 4), y=(50, 5, 3)):
    return da.from_array(X, chunks=x), da.from_array(Y, chunks=y)


# ---------------------------------------------------------------- clusters


@pytest.mark.parametrize(
    "chunks", [((50, 4), (50, 5, 3)), ((70, 2), (41, 2, 3))], ids=["aligned", "unaligned"]
)
def test_a_fit_on_a_cluster_equals_the_fit_in_memory(cluster, chunks, data):
    X, Y = data
    model = HOLRR(rank=2)
    expected = model.fit(X, Y).coef_
    found = model.fit(*chunked(X, Y, *chunks)).coef_
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def test_a_search_on_a_cluster_equals_that_in_memory(cluster, data):
    X, Y = data
    expected = HOLRRCV(alphas=ALPHAS, cv=3).fit(X, Y)
    found = HOLRRCV(alphas=ALPHAS, cv=3).fit(*chunked(X, Y, (70, 2), (41, 5, 3)))
    assert (found.alpha_, found.rank_) == (expected.alpha_, expected.rank_)
    np.testing.assert_allclose(
        found.cv_results_["fold_mse"], expected.cv_results_["fold_mse"], rtol=1e-10
    )
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-10, atol=1e-10)


def test_predictions_on_a_cluster_equal_those_in_memory(cluster, data):
    X, Y = data
    model = HOLRR(rank=2).fit(X, Y)
    found = model.predict(chunked(X, Y, x=(70, 3))[0])
    assert isinstance(found, da.Array)
    assert found.shape == Y.shape
    np.testing.assert_allclose(found.compute(), model.predict(X), rtol=1e-10)


def test_errors_about_bad_entries_come_from_the_cluster(cluster, data):
    X, Y = (a.copy() for a in data)
    Y[123, 2, 1] = np.nan
    model = HOLRR(rank=1).fit(*data)
    before = model.coef_
    with pytest.raises(ValueError, match=r"to 149: y contains NaN at index \(123, 2, 1"):
        model.fit(*chunked(X, Y))
    np.testing.assert_array_equal(model.coef_, before)


def test_a_killed_worker_does_not_change_the_fit(cluster, data, tmp_path):
    X, Y = data
    folder = str(tmp_path)

    def slowly(block, block_info=None):
        where = block_info[0]["array-location"][0][0]
        with open(os.path.join(folder, f"{where}-{time.monotonic_ns()}"), "w"):
            time.sleep(0.05)
        return block

    slow = da.from_array(Y, chunks=(15, 5, 3)).map_blocks(slowly, dtype=float)  # 20 chunks
    model, errors = HOLRR(rank=2), []

    def fit():
        try:
            model.fit(X, slow)
        except Exception as error:
            errors.append(error)

    pids = list(cluster.run(os.getpid).values())
    thread = threading.Thread(target=fit)
    thread.start()
    while len(os.listdir(folder)) < 6:
        time.sleep(0.005)
    os.kill(pids[0], signal.SIGKILL)
    at_the_kill = len(os.listdir(folder))
    thread.join(timeout=60)
    assert not thread.is_alive()
    assert not errors
    # It was killed during the pass, and the chunks that were lost are read again.
    assert at_the_kill < 20 < len(os.listdir(folder))
    np.testing.assert_allclose(model.coef_, HOLRR(rank=2).fit(X, Y).coef_, rtol=1e-10, atol=1e-10)
    cluster.wait_for_workers(2, timeout=30)


# ---------------------------------------------------------------- threads


@pytest.fixture
def threads():
    with dask.config.set(scheduler="threads", num_workers=2):
        yield


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize(
    "estimator",
    [
        RLS(alpha=0, fit_intercept=False),
        LRR(rank=2),
        HOLRR(rank=2),
        HOLRR(rank=2, subspaces="response"),
        TraceNormRegression(),
    ],
    ids=repr,
)
@pytest.mark.parametrize("budget", [2**29, 2**12], ids=["usual", "wide"])
@pytest.mark.parametrize("y_chunks", [(300, 5, 3), (41, 2, 2), (2, 5, 3)], ids=str)
def test_fits_of_all_chunkings_equal_the_fit_in_memory(estimator, budget, y_chunks, data):
    X, Y = data
    expected = estimator.fit(X, Y).coef_
    with memory_budget(budget):
        found = estimator.fit(*chunked(X, Y, (70, 3), y_chunks))
    np.testing.assert_allclose(found.coef_, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("shape", [(), (7,), (2, 3, 2)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_outputs_of_every_order_and_type_are_fitted_and_predicted(shape, dtype):
    X, Y = toy(n=90, d0=3, shape=shape)
    Y = (10 * Y).astype(dtype)
    expected = RLS().fit(X, Y)
    found = RLS().fit(da.from_array(X, chunks=(20, 2)), da.from_array(Y, chunks=25))
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-10)
    lazy = found.predict(da.from_array(X, chunks=(20, 2)))
    assert (lazy.shape, lazy.dtype) == (Y.shape, found.predict(X).dtype)
    np.testing.assert_allclose(lazy.compute(), found.predict(X), rtol=1e-10)


@pytest.mark.usefixtures("threads")
def test_inputs_or_outputs_may_be_in_memory(data):
    X, Y = data
    expected = RLS().fit(X, Y).coef_
    dX, dY = chunked(X, Y, (70, 3), (41, 2, 2))
    for pair in [(dX, Y), (X, dY)]:
        np.testing.assert_allclose(RLS().fit(*pair).coef_, expected, rtol=1e-10)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("lazy", [False, True])
def test_weights_belong_to_their_samples_also_where_a_chunk_has_no_weight(lazy, data):
    X, Y = data
    w = np.random.default_rng(0).uniform(size=300)
    w[90:200] = 0
    expected = Moments.from_arrays(X, Y, w)
    weights = da.from_array(w, chunks=17) if lazy else w
    found = Moments.from_arrays(*chunked(X, Y), weights)
    assert found.n_samples == 300
    np.testing.assert_allclose(found.Sxy, expected.Sxy, rtol=1e-10)
    for CV in (LRRCV, RLSCV):
        a = CV(alphas=ALPHAS, cv=3).fit(X, Y, w + 0.1)
        b = CV(alphas=ALPHAS, cv=3).fit(*chunked(X, Y, y=(50, 2, 3)), weights + 0.1)
        np.testing.assert_allclose(b.coef_, a.coef_, rtol=1e-9, atol=1e-10)


@pytest.mark.usefixtures("threads")
def test_a_pass_returns_only_moments(data, monkeypatch):
    X, Y = toy(n=4000, d0=4, shape=(5, 3))
    sizes = []
    compute = dask.compute

    def counted(*trees):
        found = compute(*trees)
        for folds in found:
            for fold in folds:
                m = fold.result()
                sizes.append(m.Sxx.nbytes + m.Sxy.nbytes + m.mean_x.nbytes + m.mean_y.nbytes)
        return found

    monkeypatch.setattr(dask_stream.dask, "compute", counted)
    HOLRRCV(alphas=ALPHAS, cv=3).fit(*chunked(X, Y, (500, 4), (500, 5, 3)))
    assert len(sizes) == 3
    assert sum(sizes) < Y.nbytes / 100


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_reading_and_reducing_a_chunk_is_one_task(weighted, masked, data, tmp_path):
    """So no chunk moves from one worker to another."""
    pytest.importorskip("zarr", reason="zarr is not installed")
    X, Y = chunked(*data)
    for name, A in (("X", X), ("Y", Y)):
        da.to_zarr(A, str(tmp_path / name))
    X, Y = (da.from_zarr(str(tmp_path / name)) for name in ("X", "Y"))
    sizes = []

    def get(graph, keys, **options):
        tasks = graph.__dask_graph__() if hasattr(graph, "__dask_graph__") else graph
        sizes.append(len(dict(tasks)))
        return dask.get(graph, keys, **options)

    model = HOLRR(rank=2, output_weight=[np.arange(1.0, 6.0), None] if weighted else None)
    never = np.zeros((5, 3), dtype=bool)
    if masked:  # a slice and a cell
        never[2] = never[0, 1] = True
        model.set_params(missing="ignore")
    with dask.config.set(scheduler=get):
        model.fit(2 * X, da.where(never, np.nan, Y))
    assert np.array_equal(np.isnan(model.intercept_), never)
    # Six chunks, a tree of two and one merges, the two stores, the function of a chunk, what the
    # weights are, and of a mask the function that takes outputs out. The first computation with a
    # mask reads the first sample.
    assert len(sizes) == 1 + masked
    assert sizes[-1] <= 6 + 3 + 2 + 1 + 2 * weighted + masked + 2


def test_labels_of_folds_take_one_byte_each():
    from holrr.streaming.dask import _small

    for n_folds, size in ((2, 1), (127, 1), (128, 1), (129, 2), (40_000, 4)):
        labels = np.arange(-1, n_folds)
        np.testing.assert_array_equal(_small(labels), labels)
        assert _small(labels).itemsize == size
    assert _small(np.ones(3)).dtype == np.float64


@pytest.mark.usefixtures("threads")
def test_dask_knows_the_size_of_what_is_moved(data, monkeypatch):
    from dask.sizeof import sizeof

    sizes, compute = [], dask.compute

    def counted(*trees):
        found = compute(*trees)
        sizes.extend(sizeof(result) for result in found)
        return found

    monkeypatch.setattr(dask_stream.dask, "compute", counted)
    X, Y = toy(n=300, d0=4, shape=(50, 30))
    lazy = chunked(X, Y, y=(50, 50, 30))
    model = RLS(solver="svd").fit(*lazy)  # products of the outputs with a basis
    model.score(*lazy)
    RLSCV(alphas=ALPHAS, cv=3).fit(*lazy)
    D = 8 * 50 * 30
    assert [round(size / D) for size in sizes] == [6, 3, 3 * 6]


@pytest.mark.usefixtures("threads")
def test_chunks_are_read_once_for_all_folds(data):
    X, Y = data
    reads = []

    def read(block):
        reads.append(block.shape)
        return block

    dY = da.from_array(Y, chunks=(50, 5, 3)).map_blocks(read, meta=np.empty((0, 0, 0)))
    HOLRRCV(alphas=ALPHAS, cv=4).fit(X, dY)
    assert len(reads) == 6


@pytest.mark.usefixtures("threads", "three_threads")
def test_tasks_use_one_blas_thread_each(data, monkeypatch):
    from threadpoolctl import threadpool_info

    seen = []
    monkeypatch.setattr("dask.system.CPU_COUNT", 2)
    of_chunk = streams.moments_of_block

    def watched(*args, **options):
        seen.extend(p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas")
        return of_chunk(*args, **options)

    monkeypatch.setattr(streams, "moments_of_block", watched)
    RLS().fit(*chunked(*data))
    assert set(seen) == {1}


def test_predictions_are_lazy_and_their_chunks_are_small(data):
    X, Y = data
    model = RLS().fit(X, Y)
    touched = []
    lazy = da.from_array(X, chunks=(100, 4)).map_blocks(
        lambda block: touched.append(1) or block, meta=np.empty((0, 0))
    )
    found = dask_stream.map_lazily(model, lazy, "_predict_array", (5, 3), max_bytes=32 * 15 * 30)
    assert not touched
    assert found.chunks[0] == (25,) * 12  # 30 would do, and 25 divides the chunks
    np.testing.assert_allclose(found.compute(scheduler="sync"), model.predict(X))


def test_regular_chunks_of_samples_stay_regular():
    for size in range(1, 40):
        for last in (size, max(1, size // 3)):
            for most in range(1, 45):
                found = cut_samples((size, size, last), most)
                assert sum(found) == 2 * size + last
                assert max(found) <= most
                assert len(set(found[:-1])) <= 1
                assert found[-1] <= found[0]
                if size > most:  # at most about twice as many chunks as needed
                    assert found[0] >= most // 4


@pytest.mark.filterwarnings("error:The array uses irregular chunk sizes")
@pytest.mark.parametrize("rows", [100, 70])
def test_predictions_go_straight_to_zarr(rows, data, tmp_path):
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    X, Y = data
    model = HOLRR(rank=2).fit(X, Y)
    lazy_X = da.from_array(X, chunks=(rows, 4))
    with memory_budget(32 * 15 * 40):  # 40 samples fit
        lazy = model.predict(lazy_X)
        low, high = HOLRRCV(alphas=ALPHAS, cv=3).fit(X, Y).predict_interval(lazy_X)
    chunks = {"lazy": lazy, "low": low, "high": high}
    for name, values in chunks.items():
        assert isinstance(values, da.Array)
        da.to_zarr(values, str(tmp_path / name))
    stored = zarr.open_array(str(tmp_path / "lazy"), mode="r")
    assert stored.chunks == (25 if rows == 100 else 35, 5, 3)
    np.testing.assert_allclose(stored[:], model.predict(X), rtol=1e-10)


class Counted:
    """A scheduler that counts what it is asked for, and the chunks of the outputs that are read."""

    def __init__(self, Y, chunks):
        self.graphs, self.reads = 0, []
        lazy = da.from_array(Y, chunks=chunks)
        self.Y = lazy.map_blocks(self._read, meta=np.empty((0,) * Y.ndim), dtype=Y.dtype)

    def _read(self, block, block_info=None):
        self.reads.append(block_info[0]["chunk-location"])
        return block

    def __call__(self, graph, keys, **options):
        self.graphs += 1
        return dask.get(graph, keys, **options)

    def of(self, call):
        """Number of computations of a call, and of the chunks of the outputs that it reads."""
        self.graphs, self.reads = 0, []
        with dask.config.set(scheduler=self):
            call()
        return self.graphs, len(self.reads)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (RLS(), (1, 6)),
        (HOLRR(rank=2), (1, 6)),
        (HOLRR(rank=2, output_weight=[np.arange(1.0, 6.0), None]), (1, 6)),
        (HOLRRCV(alphas=ALPHAS, cv=3), (1, 6)),
        (HOLRRCV(alphas=ALPHAS, cv=3, output_weight=[np.arange(1.0, 6.0), None]), (1, 6)),
        # The chunk of the first sample says which outputs are missing.
        (HOLRR(rank=2, missing="ignore"), (2, 7)),
        (HOLRRCV(alphas=ALPHAS, cv=3, missing="ignore"), (2, 7)),
        # Weights that leave outputs out are compared with it as well.
        (HOLRR(rank=2, missing="ignore", output_weight=[[1, 2, 0, 2, 1], None]), (3, 8)),
    ],
    ids=str,
)
def test_a_fit_computes_once_and_predictions_never(model, expected, data):
    X, Y = data
    counted, lazy_X = Counted(Y, (50, 5, 3)), da.from_array(X, chunks=(50, 4))
    assert counted.of(lambda: model.fit(lazy_X, counted.Y)) == expected
    assert counted.of(lambda: model.predict(lazy_X)) == (0, 0)
    assert counted.of(lambda: model.transform(lazy_X)) == (0, 0)
    assert counted.of(lambda: model.predict(lazy_X, return_std=True)) == (0, 0)
    assert counted.of(lambda: model.score(lazy_X, counted.Y)) == (1, 6)


def test_all_families_of_models_predict_dask_arrays(data):
    X, Y = data
    for model in (KernelRLS(kernel="rbf"), RLSCV(alphas=ALPHAS), TraceNormRegression()):
        model.fit(X, Y)
        lazy = model.predict(da.from_array(X, chunks=(70, 3)))
        np.testing.assert_allclose(lazy.compute(scheduler="sync"), model.predict(X), rtol=1e-9)


# ---------------------------------------------------------------- bad data


@pytest.mark.usefixtures("threads")
def test_errors_about_bad_entries_name_their_chunk(data):
    X, Y = (a.copy() for a in data)
    X[222, 1] = np.inf
    with pytest.raises(ValueError, match=r"to 249: X contains infinity at index \(222, 1"):
        RLS().fit(*chunked(X, Y))
    model = RLS().fit(*data)
    with pytest.raises(ValueError, match="in chunk 4 of the samples: X contains infinity"):
        model.predict(chunked(X, Y)[0]).compute(scheduler="sync")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, Y: (X[:-1], Y), "same number of samples"),
        (lambda X, Y: (X[:, 0], Y), "X"),
        (lambda X, Y: (X[X[:, 0] > 0], Y), "unknown chunk sizes"),
        (lambda X, Y: (X, Y.astype(complex)), "real numbers"),
        (lambda X, Y: (X, Y[:, :0]), "empty mode"),
    ],
)
def test_shapes_and_types_of_dask_arrays_are_checked_before_the_pass(change, message, data):
    with pytest.raises((ValueError, TypeError), match=message):
        RLS().fit(*change(*chunked(*data)))


def test_a_wrong_number_of_features_is_refused_before_the_computation(data):
    model = RLS().fit(*data)
    with pytest.raises(ValueError, match="3 features"):
        model.predict(da.ones((10, 3), chunks=5))


def test_estimators_that_need_the_samples_refuse_dask_arrays(data):
    with pytest.raises(TypeError, match=r"Dask array.*compute\(\)"):
        KernelRLS(kernel="rbf").fit(*chunked(*data))


def test_small_chunks_are_joined_with_their_neighbours():
    assert join_small((1,) * 10, 4, 100) == (4, 4, 2)
    assert join_small((1,) * 10, 4, 3) == (3, 3, 3, 1)
    assert join_small((5, 5), 4, 1) == (5, 5)


def test_parts_of_wide_outputs_are_computed_one_at_a_time(monkeypatch):
    X, Y = toy(n=60, d0=4, shape=(8, 6))
    stream, compute, sizes = streams.open_stream(X, da.from_array(Y)), dask_stream._compute, []
    monkeypatch.setattr(
        dask_stream, "_compute", lambda trees, n: sizes.append(len(trees)) or compute(trees, n)
    )
    boxes = [box for box, _ in stream.responses(X, max_entries=4 * 12)]
    assert len(boxes) >= 4
    assert sizes == [1] * len(boxes)
