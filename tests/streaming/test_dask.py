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
    assert found.n_samples == np.count_nonzero(w) == 190
    np.testing.assert_allclose(found.Sxy, expected.Sxy, rtol=1e-10)
    for CV in (LRRCV, RLSCV):
        a = CV(alphas=ALPHAS, cv=3).fit(X, Y, w + 0.1)
        b = CV(alphas=ALPHAS, cv=3).fit(*chunked(X, Y, y=(50, 2, 3)), weights + 0.1)
        np.testing.assert_allclose(b.coef_, a.coef_, rtol=1e-9, atol=1e-10)


def test_predictions_are_lazy(data):
    X, Y = data
    model = RLS().fit(X, Y)
    touched = []
    lazy = da.from_array(X, chunks=(100, 4)).map_blocks(
        lambda block: touched.append(1) or block, meta=np.empty((0, 0))
    )
    with memory_budget(32 * 15 * 30):  # 30 samples fit
        found = model.predict(lazy)
    assert not touched
    assert max(found.chunks[0]) <= 30
    np.testing.assert_allclose(found.compute(scheduler="sync"), model.predict(X))


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
    assert stored.chunks[0] <= 40
    np.testing.assert_allclose(stored[:], model.predict(X), rtol=1e-10)


@pytest.mark.parametrize(
    ("model", "most"),
    [
        (RLS(), 6),
        (HOLRR(rank=2, output_weight=[np.arange(1.0, 6.0), None]), 6),
        (HOLRRCV(alphas=ALPHAS, cv=3), 6),
        # The chunk of the first sample says which outputs are missing, or have no weight.
        (HOLRRCV(alphas=ALPHAS, cv=3, missing="ignore"), 7),
        (HOLRR(rank=2, missing="ignore", output_weight=[[1, 2, 0, 2, 1], None]), 8),
    ],
    ids=str,
)
def test_fits_and_scores_read_each_chunk_once_and_predictions_none(model, most, data):
    X, Y = data
    reads = []

    def read(block, block_info=None):
        reads.append(block_info[0]["chunk-location"])
        return block

    lazy_Y = da.from_array(Y, chunks=(50, 5, 3)).map_blocks(read, meta=np.empty((0, 0, 0)))
    lazy_X = da.from_array(X, chunks=(50, 4))
    with dask.config.set(scheduler="sync"):
        model.fit(lazy_X, lazy_Y)
        assert len(set(reads)) == 6
        assert len(reads) <= most
        reads.clear()
        model.score(lazy_X, lazy_Y)
        assert len(reads) == 6
    X_of_Y = lazy_Y[:, :4, 0]  # is not computed by predictions
    reads.clear()
    for lazy in (model.predict(X_of_Y), *model.predict(X_of_Y, return_std=True)):
        assert isinstance(lazy, da.Array)
    assert isinstance(model.transform(X_of_Y), da.Array)
    assert reads == []


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
