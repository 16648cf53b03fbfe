"""What comes from outside is checked here, once: arrays, weights, ranks.

Every message names the argument, what was found and what would be right.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import array_api_compat
import numpy as np
from sklearn.utils import check_array

from .namespace import Array, detached, device_of, is_array, is_numpy_array, namespace_of, to_numpy

__all__ = [
    "RankSpec",
    "check_finite",
    "check_inputs",
    "check_matrix_rank",
    "check_outputs",
    "check_pair",
    "check_rank",
    "check_weights",
]

# One entry of a rank: a number of directions or a share of the mode's energy.
RankSpec = int | float


# ---------------------------------------------------------------- arrays


def check_inputs(X: Any, *, finite: bool = True) -> Array:
    """`X` as a floating-point matrix (n_samples, n_features), in the library it came in."""
    if _is_foreign(X):
        X = _check_foreign(X, "X")
        if X.ndim != 2:
            raise ValueError(
                f"Expected 2D array for X, of shape (n_samples, n_features); got shape "
                f"{tuple(X.shape)}. Reshape your data."
            )
        _check_not_empty(X, "X")
    else:
        X = _check_array(X, "X")
    if finite:
        check_finite(X, "X")
    return X


def check_outputs(Y: Any) -> Array:
    """`Y` as a floating-point array (n_samples, d1, ..., dp), p >= 0.

    Whether it is finite is found out by the first pass over it (see `check_finite`), since a pass
    of its own would cost as much as the fit.
    """
    if Y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None.")
    if _is_foreign(Y):
        Y = _check_foreign(Y, "y")
    else:
        Y = _check_array(Y, "y", ensure_2d=False, allow_nd=True, ensure_min_features=0)
    if Y.ndim == 0:
        raise ValueError("y must have one entry a sample; got a scalar (an array of order 0).")
    _check_not_empty(Y, "y")
    return Y


def check_pair(X: Any, Y: Any) -> tuple[Array, Array]:
    """Inputs and outputs that belong together, in one library and one floating-point type."""
    X, Y = check_inputs(X), check_outputs(Y)
    if X.shape[0] != Y.shape[0]:
        raise ValueError(
            f"X and y must have the same number of samples; got {X.shape[0]} in X and "
            f"{Y.shape[0]} in y (inconsistent numbers of samples)."
        )
    try:
        xp = namespace_of(X, Y)
    except TypeError as error:
        raise TypeError(
            f"X and y must come from one array library; got {type(X).__name__} and "
            f"{type(Y).__name__}."
        ) from error
    if device_of(X) != device_of(Y):
        raise ValueError(
            f"X and y must be on one device; got X on {device_of(X)} and y on {device_of(Y)}."
        )
    if X.dtype != Y.dtype:
        dtype = xp.result_type(X, Y)
        X, Y = xp.astype(X, dtype, copy=False), xp.astype(Y, dtype, copy=False)
    return X, Y


def check_finite(A: Array, name: str) -> None:
    """Raise a ValueError that says where `A` first holds NaN or infinity."""
    xp = namespace_of(A)
    # A sum is finite if all entries are (and their sum does not overflow): one quick pass.
    with np.errstate(over="ignore", invalid="ignore"):
        if bool(xp.isfinite(xp.sum(A))):
            return
    for row in range(A.shape[0]):
        bad = ~to_numpy(xp.isfinite(A[row, ...]))
        if bad.any():
            where = (row, *(int(i) for i in np.argwhere(bad)[0]))
            value = "NaN" if math.isnan(float(A[where])) else "infinity"
            raise ValueError(
                f"{name} contains {value} at index {where} (the first of them is at sample {row}); "
                f"every entry must be finite. Drop these samples or fill the gaps first."
            )


def _check_array(A: Any, name: str, **options: Any) -> np.ndarray:
    """scikit-learn's check, with the name of the argument in every message."""
    try:
        return check_array(
            A,
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
            input_name=name,
            **options,
        )
    except (TypeError, ValueError) as error:
        if re.search(rf"\b{name}\b", str(error)):
            raise
        raise type(error)(f"{name} is not as expected. {error}") from error


def _is_foreign(A: Any) -> bool:
    return is_array(A) and not is_numpy_array(A)


def _check_foreign(A: Array, name: str) -> Array:
    if array_api_compat.is_dask_array(A):
        raise TypeError(
            f"{name} is a Dask array, which the linear estimators fit and all estimators predict "
            f"for; here it is not possible. Call {name}.compute() where it fits in memory."
        )
    A, xp = detached(A), namespace_of(A)
    if xp.isdtype(A.dtype, "complex floating"):
        raise ValueError(f"Complex data not supported: {name} has dtype {A.dtype}.")
    if A.dtype in (xp.float32, xp.float64):
        return A
    if not xp.isdtype(A.dtype, ("real floating", "integral", "bool")):
        raise TypeError(f"{name} must hold real numbers; got dtype {A.dtype}.")
    return xp.astype(A, xp.float64)


def _check_not_empty(A: Array, name: str) -> None:
    if 0 not in A.shape:
        return
    if A.shape[0] == 0:
        raise ValueError(f"Found array with 0 sample(s) (shape={tuple(A.shape)}) in {name}.")
    mode = list(A.shape).index(0)
    raise ValueError(
        f"{name} has an empty mode: axis {mode} of its shape {tuple(A.shape)} has length 0; "
        f"every axis needs at least one entry."
    )


def check_weights(sample_weight: Any, X: Array) -> Array | None:
    """Weights of shape (n_samples,) as float64 beside `X`, or None where all are one."""
    if sample_weight is None:
        return None
    w = to_numpy(sample_weight)
    if w.dtype.kind not in "biuf":
        raise TypeError(f"sample_weight must hold real numbers; got dtype {w.dtype}.")
    w = w.astype(np.float64)
    n = X.shape[0]
    if w.ndim == 0:
        w = np.full(n, float(w))
    if w.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar; got shape {w.shape}.")
    if w.shape != (n,):
        raise ValueError(
            f"sample_weight.shape == {w.shape}, expected {(n,)}: one weight for each sample of X."
        )
    if not np.isfinite(w).all():
        raise ValueError(
            f"sample_weight contains NaN or infinity at sample {_first(~np.isfinite(w))}."
        )
    if (w < 0).any():
        at = _first(w < 0)
        raise ValueError(f"sample_weight must not be negative; got {w[at]} at sample {at}.")
    if not w.any():
        raise ValueError("sample_weight must have a positive entry; got all zeros.")
    xp = namespace_of(X)
    return w if is_numpy_array(X) else xp.asarray(w, device=device_of(X))


def _first(mask: np.ndarray) -> int:
    return int(np.flatnonzero(mask)[0])


# ---------------------------------------------------------------- ranks


def check_rank(rank: Any, shape: Sequence[int]) -> tuple[RankSpec, ...]:
    """A rank as the user wrote it, as one entry a mode of a tensor of the given shape.

    Parameters
    ----------
    rank : None, int or sequence
        None for full rank; an int for every mode, capped at each mode's size; or a sequence with
        an entry for each mode, input mode first: an int, None for full, or a float in (0, 1) for
        the smallest rank that holds that share of the mode's energy.
    shape : sequence of int
        ``(n_features, d1, ..., dp)``.

    Examples
    --------
    >>> check_rank(3, (10, 2)), check_rank((None, 0.9), (10, 2))
    ((3, 2), (10, 0.9))
    """
    if rank is None:
        return tuple(shape)
    if isinstance(rank, Integral) and not isinstance(rank, bool):
        if rank < 1:
            raise ValueError(f"rank must be at least 1; got rank={rank}.")
        return tuple(min(int(rank), d) for d in shape)
    if isinstance(rank, (str, bytes, bool, Real)) or not isinstance(rank, (Sequence, np.ndarray)):
        raise TypeError(
            f"rank must be None, an int, or a tuple with an entry for each mode; got {rank!r}."
        )
    if len(rank) != len(shape):
        raise ValueError(
            f"rank must have {len(shape)} entries, one for the input mode and one for each of the "
            f"{len(shape) - 1} output modes of y; got rank={tuple(rank)} with {len(rank)}."
        )
    pairs = zip(rank, shape, strict=True)
    return tuple(_check_rank_entry(R, mode, d) for mode, (R, d) in enumerate(pairs))


def check_matrix_rank(rank: Any, size: int) -> RankSpec:
    """The rank of a matrix as the user wrote it: None, an int (capped at `size`) or a share."""
    if isinstance(rank, Integral) and not isinstance(rank, bool) and int(rank) > size:
        return size
    return _check_rank_entry(rank, 0, size)


def _check_rank_entry(R: Any, mode: int, size: int) -> RankSpec:
    name = f"rank[{mode}] ({'input mode' if mode == 0 else f'output mode {mode}'})"
    if R is None:
        return size
    if isinstance(R, Integral) and not isinstance(R, bool):
        if not 1 <= int(R) <= size:
            raise ValueError(f"{name} must be from 1 to the mode's size {size}; got {R}.")
        return int(R)
    if isinstance(R, Real) and not isinstance(R, bool):
        if not 0 < float(R) < 1:
            raise ValueError(
                f"{name} as a float is a share of the mode's energy and must lie strictly between "
                f"0 and 1; got {R}."
            )
        return float(R)
    raise TypeError(f"{name} must be an int, a float in (0, 1) or None; got {R!r}.")
