"""Array namespaces and devices: the only module that names other array libraries.

Everything is computed on the device of the data, with one exception: eigenvectors of small
symmetric matrices are computed by LAPACK on the host, which is faster than an accelerator up to
about a hundred rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import array_api_compat
import array_api_compat.numpy
import numpy as np
import scipy.linalg
from array_api_compat import device as device_of
from array_api_compat import is_torch_array
from scipy.linalg.blas import get_blas_funcs, snrm2
from scipy.linalg.lapack import get_lapack_funcs

from .threads import limit_threads

Array = Any
Namespace = Any

# NumPy itself follows the standard since version 2.1. Small problems are faster without a wrapper.
_NUMPY: Namespace = array_api_compat.numpy if np.__version__.startswith("2.0.") else np

# Up to this many rows the eigenproblem of a matrix on an accelerator is solved on the host.
HOST_LIMIT = 128
# Problems of up to this many numbers on an accelerator are solved on the host.
HOST_ENTRIES = 2**17
# Transfers of fewer bytes cost less than the calls around them.
_LARGE = 2**22
# Number of rows that are averaged together in the precision of the data.
_WELFORD_ROWS = 512
# Up to this many rows the cost of the full spectrum is negligible.
FULL_SPECTRUM_LIMIT = 64
# NumPy and SciPy each have a BLAS library with separate threads. Idle threads of one library spin
# for a tenth of a second and slow down the other. Up to this many rows, only NumPy's BLAS is used.
NUMPY_LIMIT = 256

__all__ = ["Array", "Namespace", "add_to_diagonal", "all_to_device_of", "all_to_numpy"]
__all__ += ["asarray_like", "cholesky", "detached", "device_of", "eigenvalues", "eigh", "eigh_top"]
__all__ += ["inverse_squares", "is_array", "is_numpy_array", "is_small_on_device"]
__all__ += ["mean_and_scatter", "namespace_of", "on_host", "row_blocks", "solve_triangular"]
__all__ += ["squared_norm", "svd", "symmetrise", "to_device_of", "to_numpy"]


def is_array(a: object) -> bool:
    """Return whether `a` is an array of a library that follows the array API standard."""
    return bool(array_api_compat.is_array_api_obj(a))


def namespace_of(*arrays: Array) -> Namespace:
    """Return the array API namespace that all `arrays` share."""
    for a in arrays:
        if type(a) is not np.ndarray:
            return array_api_compat.array_namespace(*arrays)
    return _NUMPY  # the most frequent case


def is_numpy_array(a: object) -> bool:
    """Return whether `a` is an array, or a scalar, of NumPy."""
    return isinstance(a, (np.ndarray, np.generic))


def to_numpy(a: Array) -> np.ndarray:
    """Return a NumPy copy (or view, where the memory is shared) of an array of any library."""
    if is_numpy_array(a):
        return a
    if is_torch_array(a):
        if on_host(a) or a.nbytes < _LARGE:
            return a.detach().cpu().numpy()
        # NumPy allocates large pages, which take half as long to fill.
        out = np.empty(tuple(a.shape), dtype=str(a.dtype).removeprefix("torch."))
        namespace_of(a).from_numpy(out).copy_(a.detach())
        return out
    if array_api_compat.is_cupy_array(a):
        return a.get()
    if not on_host(a):
        a = a.to_device(namespace_of(a).Device("CPU_DEVICE"))
    return np.asarray(a)


def asarray_like(a: np.ndarray, like: Array, dtype: Any = None) -> Array:
    """Return `a` as an array of the library and on the device of `like`."""
    if is_numpy_array(like):
        return np.asarray(a, dtype=dtype)
    if is_torch_array(like) and min(np.asarray(a).strides, default=0) < 0:
        a = a.copy()  # torch does not support negative strides
    xp = namespace_of(like)
    return xp.asarray(a, dtype=dtype, device=device_of(like))


def to_device_of(a: Array, like: Array) -> Array:
    """Return `a` in the array library and on the device of `like`, without a needless copy."""
    same = type(a) is type(like) and getattr(a, "device", None) == getattr(like, "device", None)
    return a if same else asarray_like(to_numpy(a), like)


def all_to_numpy(arrays: Sequence[Array]) -> list[np.ndarray]:
    """Return NumPy copies of arrays of one dtype, from an accelerator in one transfer."""
    if len(arrays) < 2 or on_host(arrays[0]):
        return [to_numpy(A) for A in arrays]
    xp = namespace_of(*arrays)
    packed = to_numpy(xp.concat([xp.reshape(A, (-1,)) for A in arrays]))
    return _unpacked(packed, arrays)


def all_to_device_of(arrays: Sequence[Array | None], like: Array) -> list[Array | None]:
    """Return `arrays` on the device of `like`; NumPy arrays of one dtype in one transfer."""
    host: list[Any] = [] if on_host(like) else [A for A in arrays if is_numpy_array(A)]
    if len(host) < 2:
        return [None if A is None else to_device_of(A, like) for A in arrays]
    packed = asarray_like(np.concatenate([A.ravel() for A in host]), like)
    moved = iter(_unpacked(packed, host))
    return [next(moved) if is_numpy_array(A) else A for A in arrays]


def _unpacked(packed: Array, arrays: Sequence[Array]) -> list[Array]:
    """Split a vector into arrays of the shapes of `arrays`."""
    ends = np.cumsum([math.prod(A.shape) for A in arrays]).tolist()
    cuts = zip([0, *ends], ends, arrays, strict=False)
    reshape = namespace_of(packed).reshape
    return [reshape(packed[start:end], tuple(A.shape)) for start, end, A in cuts]


def on_host(a: Array) -> bool:
    """Return whether `a` is in the host's memory, where NumPy and LAPACK can work on it."""
    if is_numpy_array(a):
        return True
    if is_torch_array(a):
        return bool(a.device.type == "cpu")
    if _is_strict(a):  # its other devices are simulated, in place of a GPU in tests
        return bool(a.device == namespace_of(a).Device("CPU_DEVICE"))
    return not array_api_compat.is_cupy_array(a)


def is_small_on_device(a: Array, n_entries: int) -> bool:
    """Return whether a problem of `n_entries` is on an accelerator but faster on the host."""
    return n_entries <= HOST_ENTRIES and not on_host(a)


def _is_strict(a: Array) -> bool:
    return type(a).__module__.partition(".")[0] == "array_api_strict"


def row_blocks(n_rows: int, row_bytes: int, budget: int) -> list[slice]:
    """Return slices of consecutive rows, each within `budget` bytes (but at least 64 rows)."""
    step = max(64, budget // max(row_bytes, 1))
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def squared_norm(A: Array) -> Array:
    """Return ``||A||^2`` as a float64 scalar of the array's library, without a large temporary."""
    xp = namespace_of(A)
    with np.errstate(over="ignore"):
        if not is_numpy_array(A):
            norm = xp.linalg.vector_norm(A, **({"dtype": xp.float64} if is_torch_array(A) else {}))
        elif A.dtype == np.float64:
            flat = np.ravel(A)
            return np.dot(flat, flat)
        else:  # a norm is in the range of the dtype, but its square may not be
            norm = np.asarray(snrm2(np.ravel(A)))
        norm = xp.astype(norm, xp.float64, copy=False)
        return norm * norm


def mean_and_scatter(A: Array) -> tuple[Array, Array]:
    """Return the mean of the rows and the sum of squares of each column about it, in float64.

    For torch this takes one pass without a temporary, by Welford's recurrence over blocks of rows,
    which are merged in float64.
    """
    xp, (n, d) = namespace_of(A), A.shape
    if not is_torch_array(A):
        A = xp.astype(A, xp.float64, copy=False)
        mean = xp.mean(A, axis=0)
        return mean, xp.sum((A - mean) ** 2, axis=0)
    rows = min(n, _WELFORD_ROWS)
    whole = n - n % rows
    parts = [A[:whole, :].reshape(-1, rows, d)] + ([A[None, whole:, :]] if whole < n else [])
    found = [xp.var_mean(part, dim=1, correction=0) for part in parts]
    means = xp.cat([mean.double() for _, mean in found])
    sizes = xp.full((len(means), 1), float(rows), dtype=xp.float64, device=A.device)
    sizes[whole // rows :] = n - whole
    pairs = zip(parts, found, strict=True)
    scatter = sum(part.shape[1] * var.double().sum(0) for part, (var, _) in pairs)
    mean = (sizes * means).sum(0) / n
    return mean, scatter + (sizes * (means - mean) ** 2).sum(0)


def detached(A: Array) -> Array:
    """Return the array without its record for automatic differentiation."""
    return A.detach() if is_torch_array(A) else A


def add_to_diagonal(A: Array, number: float) -> Array:
    """Return ``A + number I`` for a square matrix, in place if its array library allows it."""
    if is_numpy_array(A):
        np.einsum("ii->i", A)[...] += number
        return A
    if is_torch_array(A):
        A.diagonal().add_(number)
        return A
    return A + number * namespace_of(A).eye(A.shape[0], dtype=A.dtype, device=device_of(A))


def symmetrise(A: Array) -> Array:
    """Return the symmetric part of a matrix, without the asymmetry of rounding errors."""
    S = A + A.T
    S *= 0.5
    return S


# ---------------------------------------------------------------- factorisations


def cholesky(A: Array, *, overwrite: bool = False) -> tuple[Array | None, float]:
    """Return the lower Cholesky factor of a symmetric matrix and an estimate of 1 / cond(A).

    Returns ``(None, 0.0)`` if `A` is not numerically positive definite. With `overwrite` the factor
    may overwrite `A`.
    """
    if on_host(A):
        L, rcond = _host_cholesky(to_numpy(A), overwrite)
        return (None, 0.0) if L is None else (asarray_like(L, A), rcond)
    xp = namespace_of(A)
    try:
        L = xp.linalg.cholesky(A)
    except Exception as error:
        # Each library has its own class of this name for matrices that are not positive definite.
        if not any("LinAlgError" in cls.__name__ for cls in type(error).__mro__):
            raise
        return None, 0.0
    d = xp.linalg.diagonal(L)
    # The diagonal bounds the condition number from below; the factor 1 / n makes up for most of the
    # difference.
    return L, float(xp.min(d) / xp.max(d)) ** 2 / A.shape[0]


def _host_cholesky(A: np.ndarray, overwrite: bool = False) -> tuple[np.ndarray | None, float]:
    potrf, pocon = get_lapack_funcs("potrf", (A,)), get_lapack_funcs("pocon", (A,))
    # Without a temporary of the size of A, which may take most of the memory.
    norm = max((float(np.abs(A[rows]).sum(axis=1).max()) for rows in _norm_blocks(A)), default=0.0)
    # A is symmetric, so its transpose is A in the order that LAPACK requires, without a copy.
    L, info = potrf(A.T, lower=True, clean=True, overwrite_a=overwrite)
    if info != 0:
        return None, 0.0
    rcond, _ = pocon(L, norm, uplo="L")
    return L, float(rcond)


def _norm_blocks(A: np.ndarray) -> list[slice]:
    return row_blocks(A.shape[0], 8 * A.shape[0], _LARGE)


def solve_triangular(L: Array, B: Array, *, transposed: bool = False) -> Array:
    """Solve ``L X = B`` (or ``L' X = B``) for a lower triangular matrix `L`; `B` is a matrix."""
    if is_numpy_array(L):
        # Solved from the right for B', which is B in BLAS's column order: no transposed copies.
        trsm = get_blas_funcs("trsm", (L, B))
        return trsm(1.0, L, B.T, side=1, lower=1, trans_a=0 if transposed else 1).T
    xp = namespace_of(L)
    if is_torch_array(L):
        A = L.mT if transposed else L
        return xp.linalg.solve_triangular(A, B, upper=transposed)
    if array_api_compat.is_cupy_array(L):
        from cupyx.scipy.linalg import solve_triangular as cupy_solve

        return cupy_solve(L, B, lower=True, trans="T" if transposed else "N")
    return xp.linalg.solve(L.T if transposed else L, B)


def inverse_squares(L: Array) -> float:
    """Return ``||L^-1||^2`` of a lower triangular matrix, ignoring entries above the diagonal."""
    if is_numpy_array(L):
        inverse = get_lapack_funcs("trtri", (L,))(L, lower=1)[0]
        # Block by block, since the whole inverse may take most of the memory.
        return sum(
            float(squared_norm(np.tril(inverse[rows, : rows.stop], k=rows.start)))
            for rows in _norm_blocks(L)
        )
    eye = namespace_of(L).eye(L.shape[0], dtype=L.dtype, device=device_of(L))
    return float(squared_norm(solve_triangular(L, eye)))


def eigh(A: Array) -> tuple[Array, Array]:
    """Return eigenvalues, largest first, and eigenvectors of a symmetric matrix, signs fixed."""
    if is_numpy_array(A):
        lam, U = np.linalg.eigh(A)
        return lam[::-1].copy(), fix_signs(U[:, ::-1])
    if on_host(A) or A.shape[0] <= HOST_LIMIT:
        lam, U = _on_host(eigh, A)
        return asarray_like(lam, A), asarray_like(U, A)
    xp = namespace_of(A)
    lam, U = xp.linalg.eigh(A)
    return xp.flip(lam), fix_signs(xp.flip(U, axis=1))


def eigenvalues(A: Array) -> np.ndarray:
    """Return all eigenvalues of a symmetric matrix, largest first, on the host."""
    return _on_host(np.linalg.eigvalsh, A)[::-1]


def _on_host(f: Any, A: Array) -> Any:
    """Return ``f(A)``, computed by NumPy; for data on an accelerator with one thread.

    The host of an accelerator has many cores. Starting threads on all of them for a small matrix
    was measured to take a hundred times as long as the factorisation.
    """
    with nullcontext() if on_host(A) else limit_threads(1):
        return f(to_numpy(A))


def eigh_top(A: Array, k: int) -> tuple[np.ndarray, Array]:
    """Return at least `k` leading eigenvalues (on the host) and exactly `k` eigenvectors of `A`.

    All eigenvalues are returned if `A` is small, and the leading ones otherwise.
    """
    n = A.shape[0]
    extra = min(n, k + 1)  # the first eigenvalue that is dropped shows the gap
    if n <= NUMPY_LIMIT or 3 * extra > n or not on_host(A):
        lam, U = eigh(A)
        return to_numpy(lam), U[:, :k]
    try:
        lam, U = scipy.linalg.eigh(
            to_numpy(A), subset_by_index=(n - extra, n - 1), driver="evr", check_finite=False
        )
    except np.linalg.LinAlgError:  # no convergence for many nearly equal eigenvalues
        lam, U = eigh(A)
        return to_numpy(lam), U[:, :k]
    return lam[::-1].copy(), asarray_like(fix_signs(U[:, ::-1][:, :k]), A)


def svd(A: Array) -> tuple[Array, Array, Array]:
    """Return the thin singular value decomposition ``A = Q diag(s) P'`` as ``(Q, s, P)``."""
    Q, s, Pt = namespace_of(A).linalg.svd(A, full_matrices=False)
    return Q, s, Pt.T


def fix_signs(U: Array) -> Array:
    """Return `U` with the largest entry of each column, in modulus, positive (ties: the first)."""
    xp = namespace_of(U)
    if U.shape[0] == 0 or U.shape[1] == 0:
        return U
    largest = U[xp.argmax(xp.abs(U), axis=0), xp.arange(U.shape[1], device=device_of(U))]
    return U * (1 - 2 * xp.astype(largest < 0, U.dtype))
