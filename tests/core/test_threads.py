"""Limits on the threads of the linear algebra: they overlap, and end with their contexts."""

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

from holrr import HOLRRCV, RLS
from holrr.core import threads
from holrr.core.threads import (
    few_threads_for,
    limit_threads,
    map_in_threads,
    n_threads_for,
    sum_in_threads,
)
from holrr.model_selection import sources
from holrr.streaming import chunks, memory_budget

pytestmark = pytest.mark.usefixtures("three_threads")


def counts():
    """The threads of each BLAS that was built with threads."""
    blas = [lib for lib in threadpool_info() if lib["user_api"] == "blas"]
    return [lib["num_threads"] for lib in blas if lib.get("threading_layer") != "disabled"]


def test_limit_ends_with_its_context():
    with limit_threads(2):
        assert set(counts()) == {2}
        with limit_threads(1):
            assert set(counts()) == {1}
        assert set(counts()) == {2}
        with limit_threads(64):
            assert set(counts()) == {2}
    assert set(counts()) == {3}


def test_limit_ends_with_an_exception():
    with pytest.raises(ZeroDivisionError), limit_threads(1):
        1 / 0  # noqa: B018
    assert set(counts()) == {3}


def test_end_of_the_last_limit_restores_the_original_number():
    """The first limit ends while the second is in force, each in its own thread."""
    meeting, first_ended, found = threading.Barrier(2), threading.Event(), {}

    def first():
        with limit_threads(2):
            meeting.wait()
            meeting.wait()
        found["after the first"] = set(counts())
        first_ended.set()
        meeting.wait()

    def second():
        meeting.wait()
        with limit_threads(1):
            meeting.wait()
            first_ended.wait()
        found["after the second"] = set(counts())
        meeting.wait()

    with ThreadPoolExecutor(2) as pool:
        for job in [pool.submit(first), pool.submit(second)]:
            job.result(30)
    assert found == {"after the first": {1}, "after the second": {3}}
    with threadpool_limits(2, "blas"):  # others can still set the number
        assert set(counts()) == {2}


def test_limit_holds_where_another_thread_has_set_the_number():
    with threadpool_limits(2, "blas"), ThreadPoolExecutor(1) as pool:

        def within():
            with limit_threads(1):
                return set(counts())

        assert pool.submit(within).result() == {1}
        assert set(counts()) == {2}


def test_many_overlapping_limits_restore_the_original_number():
    def work(seed):
        rng = np.random.default_rng(seed)
        for n in rng.integers(1, 4, size=60):
            with limit_threads(n):
                if n == 1:
                    assert set(counts()) == {1}

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert set(counts()) == {3}
    assert not threads._limits
    assert not threads._original


def test_libraries_that_are_loaded_later_are_limited_too(monkeypatch):
    late = SimpleNamespace(
        filepath="late.so", internal_api="mkl", user_api="blas", num_threads=8, set_to=[]
    )
    late.set_num_threads = late.set_to.append
    found = []
    controller = SimpleNamespace(select=lambda user_api: SimpleNamespace(lib_controllers=found))
    monkeypatch.setattr(threads, "_known", (0, []))
    monkeypatch.setattr(threads, "ThreadpoolController", lambda: controller)
    with limit_threads(1):
        pass
    found.append(late)
    monkeypatch.setitem(sys.modules, "holrr_test_late_module", SimpleNamespace())
    with limit_threads(2):
        assert late.set_to == [2]
    assert late.set_to == [2, 8]


def test_library_without_threads_does_not_count(monkeypatch):
    more = {"threading_layer": "disabled", "internal_api": "openblas", "num_threads": 1}
    alone = SimpleNamespace(filepath="alone.so", set_num_threads=lambda n: None, **more)
    found = [*ThreadpoolController().select(user_api="blas").lib_controllers, alone]
    controller = SimpleNamespace(select=lambda user_api: SimpleNamespace(lib_controllers=found))
    monkeypatch.setattr(threads, "_known", (0, []))
    monkeypatch.setattr(threads, "ThreadpoolController", lambda: controller)
    assert n_threads_for(1e12) == 3


def test_small_work_has_one_thread():
    with few_threads_for(1e5):
        assert set(counts()) == {1}
    with few_threads_for(1e14):
        assert set(counts()) == {3}


def test_nested_small_work_is_limited_once(monkeypatch):
    entered = []
    counted = lambda *args, **kwargs: (entered.append(1), limit_threads(*args, **kwargs))[1]  # noqa: E731
    monkeypatch.setattr(threads, "limit_threads", counted)
    with few_threads_for(1e5):
        with few_threads_for(1e5):
            assert set(counts()) == {1}
        assert set(counts()) == {1}
    assert (len(entered), set(counts())) == (1, {3})


def test_tiny_work_is_not_limited():
    with few_threads_for(100):
        assert set(counts()) == {3}


def test_passes_use_as_many_threads_as_the_linear_algebra():
    assert n_threads_for(1e5) == 1
    assert n_threads_for(1e12) == 3
    with few_threads_for(1e8):
        assert n_threads_for(1e8) == 3
        with limit_threads(2):
            assert n_threads_for(1e12) == 2
        assert n_threads_for(1e12) == 3
    with limit_threads(1), few_threads_for(1e8):
        assert n_threads_for(1e12) == 1


def test_each_thread_of_a_pass_has_one_thread_of_the_linear_algebra():
    seen, together = [], threading.Barrier(3)

    def look(i):
        if i % 10 == 0:
            together.wait(60)  # all three parts at the same time
        seen.append((i, set(counts()), n_threads_for(1e12)))
        return [np.full(2, float(i)), i, np.log(np.zeros(1))]

    with np.errstate(divide="ignore"):
        arrays, total, _ = sum_in_threads(look, [[0, 1], [10], [20, 21]])
    assert_array_equal(arrays, [52.0, 52.0])
    assert total == 52
    assert sorted(i for i, _, _ in seen) == [0, 1, 10, 20, 21]
    assert all(found == {1} and n == 1 for _, found, n in seen)
    assert set(counts()) == {3}


@pytest.mark.parametrize("bad", [0, 10])
def test_errors_in_threads_of_a_pass_are_raised(bad):
    def fail(i):
        if i == bad:
            raise ZeroDivisionError
        return [i]

    with pytest.raises(ZeroDivisionError):
        sum_in_threads(fail, [[0], [10]])
    assert set(counts()) == {3}


def on_disk(tmp_path, A, name):
    np.save(tmp_path / name, A)
    return np.load(tmp_path / name, mmap_mode="r")


def problem(seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(400, 4)), rng.normal(size=(400, 3, 2))


def run_disk(X, Y, tmp_path):
    name = f"{X[0, 0]}.npy"
    with memory_budget(4000):
        RLS().fit(on_disk(tmp_path, X, "X" + name), on_disk(tmp_path, Y, "Y" + name))


def run_dask(X, Y, tmp_path):
    da = pytest.importorskip("dask.array")
    RLS().fit(da.from_array(X, chunks=(40, 4)), da.from_array(Y, chunks=(40, 3, 2)))


def run_search(X, Y, tmp_path):
    HOLRRCV(alphas=[1e-2, 1, 1e5], cv=4, n_jobs=2).fit(X, Y)


@pytest.mark.filterwarnings("ignore:The best penalty")
@pytest.mark.parametrize("fit", [run_disk, run_dask, run_search])
def test_fits_that_overlap_restore_the_original_number(fit, tmp_path, monkeypatch):
    """The second fit begins while the first is under way, and ends after it."""
    first_started, second_started, first_done = (threading.Event() for _ in range(3))

    def gate(is_second):
        (second_started if is_second else first_started).set()
        (first_done if is_second else second_started).wait(30)

    def watched_path(problem, *args, **kwargs):
        gate(problem.mean_x[0] > 50)
        return path(problem, *args, **kwargs)

    def watched_sums(X, *args):
        gate(X[0, 0] > 50)
        return sums(X, *args)

    path, sums = sources.rank_path, chunks.moments_of
    monkeypatch.setattr(sources, "rank_path", watched_path)
    monkeypatch.setattr(chunks, "moments_of", watched_sums)
    X, Y = problem(0)
    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(fit, X, Y, tmp_path)
        assert first_started.wait(30)
        other = pool.submit(fit, X + 100, Y, tmp_path)
        one.result(30)
        first_done.set()
        other.result(30)
        assert set(counts()) == {3}


def test_fit_that_fails_restores_the_original_number(tmp_path):
    X, Y = problem(0)
    Y[333, 1, 1] = np.nan
    with memory_budget(4000):
        with pytest.raises(ValueError, match="NaN") as caught:
            RLS().fit(on_disk(tmp_path, X, "X.npy"), on_disk(tmp_path, Y, "Y.npy"))
        assert set(counts()) == {3}
    del caught


def test_items_are_mapped_in_order_with_one_thread_of_the_linear_algebra_each():
    seen = set()

    def look(item):
        seen.add(threading.get_ident())
        time.sleep(0.01)
        return item, set(counts())

    assert map_in_threads(look, range(9)) == [(i, {1}) for i in range(9)]
    assert 1 < len(seen) <= 3
    assert set(counts()) == {3}
    with limit_threads(1):
        seen.clear()
        map_in_threads(look, range(3))
        assert seen == {threading.get_ident()}
    assert map_in_threads(look, []) == []


def test_errors_in_map_in_threads_are_raised_and_end_the_limit():
    with pytest.raises(ZeroDivisionError):
        map_in_threads(lambda item: 1 / item, [1, 0, 2])
    assert set(counts()) == {3}


def test_limits_hold_for_the_threads_of_torch():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with limit_threads(2):
            assert torch.get_num_threads() == 2
            with few_threads_for(1e6):
                assert torch.get_num_threads() == 1
            assert torch.get_num_threads() == 2
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
