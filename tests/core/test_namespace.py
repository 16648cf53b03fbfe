"""Factorisations in every array library; no library is imported but the user's own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import holrr
from holrr.core import namespace as ns

SIZES = [1, 3, 70, 150]


def symmetric(n, seed=0):
    A = np.random.default_rng(seed).normal(size=(n, n + 3))
    return A @ A.T


@pytest.mark.parametrize("n", SIZES)
def test_eigh_is_sorted_orthonormal_and_exact(xp, n):
    A = symmetric(n)
    lam, U = ns.eigh(xp.asarray(A))
    assert xp.owns(U)
    lam, U = xp.to_numpy(lam), xp.to_numpy(U)
    assert (np.diff(lam) <= 1e-9).all()
    assert_allclose(U.T @ U, np.eye(n), atol=1e-10)
    assert_allclose((U * lam) @ U.T, A, atol=1e-9 * np.abs(A).max())
    assert (U[np.abs(U).argmax(0), range(n)] > 0).all()


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("k", [1, 2, 40])
def test_leading_eigenvectors(xp, n, k):
    k = min(k, n)
    A = symmetric(n)
    lam, U = ns.eigh_top(xp.asarray(A), k)
    assert isinstance(lam, np.ndarray)
    assert xp.owns(U)
    U = xp.to_numpy(U)
    expected = np.linalg.eigvalsh(A)[::-1]
    assert k <= len(lam) <= n
    assert U.shape == (n, k)
    assert_allclose(lam, expected[: len(lam)], rtol=1e-8)
    assert_allclose(A @ U, U * lam[:k], atol=1e-8 * expected[0])


@pytest.mark.parametrize("n", SIZES)
def test_cholesky_and_triangular_solves(xp, n):
    A, B = symmetric(n), np.random.default_rng(1).normal(size=(n, 2))
    L, rcond = ns.cholesky(xp.asarray(A))
    assert xp.owns(L)
    assert_allclose(xp.to_numpy(L @ L.T), A, rtol=1e-9, atol=1e-9)
    assert_allclose(np.triu(xp.to_numpy(L), 1), 0)
    true = 1 / np.linalg.cond(A, 1)
    assert true / 1000 <= rcond <= 1000 * true + 1e-12
    forward = xp.to_numpy(ns.solve_triangular(L, xp.asarray(B)))
    assert_allclose(xp.to_numpy(L) @ forward, B, atol=1e-8)
    back = xp.to_numpy(ns.solve_triangular(L, xp.asarray(B), transposed=True))
    assert_allclose(xp.to_numpy(L).T @ back, B, atol=1e-8)


@pytest.mark.parametrize("n", [3, 150])
def test_cholesky_of_an_indefinite_matrix_is_none(xp, n):
    A = symmetric(n)
    A[1, 1] = -1.0
    assert ns.cholesky(xp.asarray(A)) == (None, 0.0)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (200, 4)], ids=str)
def test_thin_svd(xp, shape):
    A = np.random.default_rng(0).normal(size=shape)
    Q, s, P = (xp.to_numpy(a) for a in ns.svd(xp.asarray(A)))
    assert Q.shape == (shape[0], min(shape))
    assert P.shape == (shape[1], min(shape))
    assert_allclose((Q * s) @ P.T, A, atol=1e-12)


def test_arrays_are_converted_both_ways(xp):
    A = np.random.default_rng(0).normal(size=(3, 4))
    there = ns.asarray_like(A, xp.asarray(np.zeros(1)))
    assert xp.owns(there)
    assert_allclose(ns.to_numpy(there), A, rtol=0)
    assert ns.is_array(there)
    assert float(ns.squared_norm(there)) == pytest.approx(np.sum(A**2))


def test_row_blocks_cover_all_rows_once():
    for n, row_bytes, budget in [
        (1, 8, 1),
        (64, 8, 1),
        (1000, 8, 8000),
        (1000, 0, 10),
        (7, 1e9, 1),
    ]:
        blocks = ns.row_blocks(n, int(row_bytes), budget)
        assert [i for b in blocks for i in range(b.start, b.stop)] == list(range(n))


UNWANTED = ("torch", "cupy", "matplotlib", "pandas", "rich", "tensorly", "dask", "pooch", "h5py")

FIT_NUMPY = f"""
import sys
import numpy as np
import sklearn.metrics, sklearn.model_selection, sklearn.utils.validation
before = set(sys.modules)  # scikit-learn itself imports some of them where they are installed

import holrr
rng = np.random.default_rng(0)
X, Y = rng.normal(size=(30, 4)), rng.normal(size=(30, 2, 3))
for model in (holrr.RLS(), holrr.LRR(2), holrr.HOLRR(2, refine=True)):
    model.fit(X, Y).score(X, Y)
    model.fit_moments(holrr.Moments.from_arrays(X, Y)).predict(X)

root = lambda v: str(getattr(v, "__module__", None) or getattr(v, "__name__", "")).split(".")[0]
ours = [m for name, m in sys.modules.items() if name.split(".")[0] == "holrr"]
assert len(ours) > 5
print(*[name for name in {UNWANTED!r} if name in sys.modules and name not in before])
print(*[root(v) for m in ours for v in vars(m).values() if root(v) in {UNWANTED!r}])
"""


def test_fitting_numpy_arrays_imports_nothing_else():
    """The package loads no other library, and none of its modules holds one."""
    done = subprocess.run(
        [sys.executable, "-c", FIT_NUMPY], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


def test_only_the_namespace_module_names_other_libraries():
    root = Path(holrr.__file__).parent
    found = [
        path.relative_to(root).as_posix()
        for folder in ("core", "linear")
        for path in (root / folder).rglob("*.py")
        for line in path.read_text().splitlines()
        if line.strip().startswith(("import torch", "import cupy", "from torch", "from cupy"))
        or "is_torch" in line
        or "is_cupy" in line
    ]
    assert set(found) <= {"core/namespace.py"}


def test_only_matrices_that_are_not_positive_definite_have_no_cholesky_factor(monkeypatch):
    """Other errors of an accelerator, of its memory for instance, are raised."""
    xp = pytest.importorskip("array_api_strict")
    device = xp.Device("device1")
    assert ns.cholesky(xp.asarray(-np.eye(2), device=device)) == (None, 0.0)

    def out_of_memory(A):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(xp.linalg, "cholesky", out_of_memory)
    with pytest.raises(RuntimeError, match="out of memory"):
        ns.cholesky(xp.asarray(np.eye(2), device=device))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n", [1, 5, 512, 513, 1024, 1500])
def test_mean_and_scatter_below_and_above_the_block_size(xp, n, dtype):
    A = np.random.default_rng(n).normal([0.0, 10.0, -300.0], size=(n, 3))
    A = A.astype(dtype)
    mean, scatter = (xp.to_numpy(a) for a in ns.mean_and_scatter(xp.asarray(A)))
    exact = A.astype(np.float64)
    rtol = 1e-12 if dtype == "float64" else 1e-6
    assert mean.dtype == scatter.dtype == np.float64
    assert_allclose(mean, exact.mean(0), rtol=rtol, atol=rtol)
    # The mean of a block is rounded to its precision, which is that of the entries.
    off = n * (np.finfo(dtype).eps * 300) ** 2
    assert_allclose(scatter, n * exact.var(0), rtol=10 * rtol, atol=1e3 * off)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "bool"])
@pytest.mark.parametrize("large", [0, 2**22])
def test_arrays_of_an_accelerator_of_any_size_are_copied_to_the_host(monkeypatch, dtype, large):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    a = torch.arange(24).reshape(2, 3, 4).to(getattr(torch, dtype)).movedim(0, 2)
    monkeypatch.setattr(ns, "on_host", lambda a: False)
    monkeypatch.setattr(ns, "_LARGE", large)
    found = ns.to_numpy(a)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, a.numpy())


@pytest.mark.parametrize("seed", range(12))
def test_many_equal_eigenvalues_are_decomposed(seed):
    """The faster driver of LAPACK fails for a third of these."""
    n, lam = 300, np.full(300, 5.8e-11)
    lam[:5] = [8.8e4, 6.9e4, 3.9e4, 9.2e3, 97.0]
    V = np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))[0]
    R = np.sqrt(lam)[:, None] * V.T
    found, U = ns.eigh_top(R @ R.T, 90)
    assert_allclose(found[:5], lam[:5], rtol=1e-12)
    assert U.shape == (n, 90)
    assert_allclose(U.T @ U, np.eye(90), atol=1e-12)


@pytest.mark.parametrize("transposed", [False, True])
def test_add_to_diagonal_in_every_library(xp, transposed):
    A = np.random.default_rng(0).normal(size=(4, 4))
    there = xp.asarray(A.copy())
    found = ns.add_to_diagonal(there.T if transposed else there, 0.5)
    assert_allclose(ns.to_numpy(found), (A.T if transposed else A) + 0.5 * np.eye(4))


def test_arrays_with_negative_strides_are_converted(xp):
    A = np.arange(12.0).reshape(3, 4)
    for view in (A[::-1], A[:, ::-1], A[1:, ::-2], np.asarray(2.0)):
        assert_allclose(ns.to_numpy(ns.asarray_like(view, xp.asarray(A))), view)
