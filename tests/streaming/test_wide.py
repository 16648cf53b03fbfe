"""Fits with X'Y beyond the memory budget: computed part by part, with Z on disk."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from holrr import HOLRR, LRR, RLS
from holrr.core import tensor
from holrr.core.approximate import hooi, hosvd
from holrr.core.tensor import (
    chunk_mode,
    chunks,
    gram,
    is_memory_mapped,
    multi_mode_product,
    sum_of_squares,
)
from holrr.streaming import memory_budget
from holrr.streaming.problems import whiten_stream
from holrr.streaming.stream import open_stream
from problems import toy

TINY = 2**11


@pytest.fixture
def tiny_chunks(monkeypatch):
    monkeypatch.setattr(tensor, "CHUNK_BYTES", 512)


def on_disk(folder, A):
    np.save(folder / "array.npy", A)
    return np.load(folder / "array.npy", mmap_mode="r")


ESTIMATORS = [
    RLS(),
    RLS(alpha=0, fit_intercept=False, solver="eigh"),
    LRR(rank=2),
    HOLRR(rank=2),
    HOLRR(rank=None, alpha=0.1),
    HOLRR(rank=2, refine=True),
    HOLRR(rank=2, subspaces="response"),
]


@pytest.mark.usefixtures("tiny_chunks")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
@pytest.mark.parametrize("shape", [(70,), (9, 11), (5, 4, 6), (2, 1, 60)])
def test_a_fit_by_parts_of_the_outputs_equals_the_fit_in_memory(estimator, shape, tmp_path):
    X, Y = toy(n=60, d0=4, shape=shape)
    expected = estimator.fit(X, Y)
    coef, objective, bound = expected.coef_, expected.objective_, expected.lower_bound_
    with memory_budget(TINY):
        disk = on_disk(tmp_path, Y)
        assert open_stream(X, disk).is_wide
        found = estimator.fit(X, disk)
    np.testing.assert_allclose(found.coef_, coef, rtol=1e-9, atol=1e-9)
    assert found.objective_ == pytest.approx(objective, rel=1e-9)
    assert found.lower_bound_ == pytest.approx(bound, rel=1e-9)


@pytest.mark.usefixtures("tiny_chunks")
def test_the_type_of_the_coefficients_is_the_wider_of_inputs_and_outputs(tmp_path):
    X, Y = toy(n=60, d0=4, shape=(9, 11))
    X = X.astype(np.float32)
    with memory_budget(TINY):
        found = HOLRR(rank=2).fit(X, on_disk(tmp_path, Y))
    assert found.coef_.dtype == HOLRR(rank=2).fit(X, Y).coef_.dtype == np.float64


@pytest.mark.usefixtures("tiny_chunks")
def test_collinear_inputs_and_ranks_by_energy_are_fitted_by_parts(tmp_path):
    X, Y = toy(n=60, d0=4, shape=(9, 11))
    X = np.hstack([X, X[:, :2]])
    model = HOLRR(rank=(0.99, 0.9, 3), alpha=0)
    expected = model.fit(X, Y)
    rank, coef = expected.rank_, expected.coef_
    with memory_budget(TINY):
        found = model.fit(X, on_disk(tmp_path, Y))
    assert found.rank_ == rank
    np.testing.assert_allclose(found.coef_, coef, rtol=1e-8, atol=1e-8)


def test_the_tensor_of_a_wide_problem_is_in_a_temporary_file(tmp_path):
    X, Y = toy(n=60, d0=4, shape=(9, 11))
    with memory_budget(TINY):
        problem = whiten_stream(open_stream(X, on_disk(tmp_path, Y)), 1.0)
    assert isinstance(problem.Z, np.memmap)
    assert problem.norm == pytest.approx(float((np.asarray(problem.Z) ** 2).sum()))
    assert [p.name for p in tmp_path.iterdir()] == ["array.npy"]


def test_a_fit_by_parts_takes_less_memory_than_the_coefficients(tmp_path, monkeypatch):
    monkeypatch.setattr(tensor, "CHUNK_BYTES", 2**18)
    rng = np.random.default_rng(0)
    X, d0, shape, budget = rng.normal(size=(60, 40)), 40, (200, 150), 2**21
    Y = np.lib.format.open_memmap(tmp_path / "Y.npy", "w+", shape=(60, *shape))  # 14 MB
    for i in range(60):
        Y[i] = np.outer(X[i, 0] * np.arange(200), np.ones(150)) + rng.normal(size=shape)
    assert 8 * d0 * 200 * 150 > 3 * budget
    tracemalloc.start()
    with memory_budget(budget):
        model = HOLRR(rank=(3, 3, 3)).fit(X, Y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.5 * budget
    np.testing.assert_allclose(
        model.coef_, HOLRR(rank=(3, 3, 3)).fit(X, np.array(Y)).coef_, atol=1e-9
    )


# ---------------------------------------------------------------- tensors on disk


@pytest.mark.usefixtures("tiny_chunks")
@pytest.mark.parametrize("shape", [(300,), (7, 60), (60, 7), (4, 5, 30), (30, 2, 3, 4)])
def test_operations_on_a_tensor_on_disk_equal_those_in_memory(shape, tmp_path):
    T = np.random.default_rng(0).normal(size=shape)
    F = on_disk(tmp_path, T)
    assert is_memory_mapped(F)
    assert not is_memory_mapped(T)
    assert sum_of_squares(F) == pytest.approx(sum_of_squares(T), rel=1e-12)
    for mode in range(len(shape)):
        np.testing.assert_allclose(gram(F, mode), gram(T, mode), rtol=1e-10, atol=1e-12)
        pieces = [chunk for _, chunk in chunks(F, mode)]
        assert not any(isinstance(piece, np.memmap) for piece in pieces)
        np.testing.assert_array_equal(np.concatenate(pieces, axis=mode), T)
    U = [np.random.default_rng(i).normal(size=(d, 2)) for i, d in enumerate(shape)]
    for skip in (None, *range(len(shape))):
        np.testing.assert_allclose(
            multi_mode_product(F, U, skip=skip, transposed=True),
            multi_mode_product(T, U, skip=skip, transposed=True),
            rtol=1e-10,
            atol=1e-10,
        )
    for left_out in range(len(shape)):
        some = [None if i == left_out else M for i, M in enumerate(U)]
        np.testing.assert_allclose(
            multi_mode_product(F, some, transposed=True),
            multi_mode_product(T, some, transposed=True),
            rtol=1e-10,
            atol=1e-10,
        )


@pytest.mark.usefixtures("tiny_chunks")
def test_approximations_of_a_tensor_on_disk_equal_those_in_memory(tmp_path):
    T = np.random.default_rng(0).normal(size=(6, 200, 3))
    F = on_disk(tmp_path, T)
    for rank in [(2, 3, 2), (6, 200, 3), (0.5, 0.5, 0.5)]:
        a, b = hosvd(F, rank), hosvd(T, rank)
        np.testing.assert_allclose(a.tucker.to_dense(), b.tucker.to_dense(), atol=1e-10)
        assert a.error == pytest.approx(b.error, abs=1e-9)
    a, b = (hooi(Z, hosvd(Z, (2, 3, 2))) for Z in (F, T))
    np.testing.assert_allclose(a.tucker.to_dense(), b.tucker.to_dense(), atol=1e-8)


@pytest.mark.usefixtures("tiny_chunks")
def test_chunks_are_cut_along_the_longest_mode(tmp_path):
    F = on_disk(tmp_path, np.ones((2, 3, 100)))
    assert chunk_mode(F) == 2
    assert chunk_mode(F, avoid=2) == 1
    assert chunk_mode(np.ones((3, 2))) == 0
