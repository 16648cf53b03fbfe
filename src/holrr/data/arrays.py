"""Checks of arrays and weights that a user passes, in the array library of the user.

Every error message names the argument and its value, and says what to do.
"""

from __future__ import annotations

import datetime
import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils import check_array

from ..core.checks import BadEntryError, check_finite
from ..core.namespace import (
    Array,
    asarray_like,
    detached,
    device_of,
    is_array,
    is_numpy_array,
    namespace_of,
    to_numpy,
)
from ..core.sparse import is_sparse

__all__ = ["as_slice", "check_groups", "check_inputs", "check_kind", "check_lengths"]
__all__ += ["check_matrix", "check_not_empty", "check_outputs", "check_pair", "check_weights"]
__all__ += ["comes_from", "computed", "ignores_missing", "is_dask", "is_memory_map"]
__all__ += ["locate_rows"]
__all__ += ["nan_for_masked", "refuse_files", "refuse_sparse", "take", "unmasked", "weights_of"]

MAX_WEIGHT = 1e150
_NUMBERS = ("i", "u", "f", "b", "c")
_OTHER = (str, bytes, np.datetime64, np.timedelta64, datetime.date, datetime.timedelta)
_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))


# ---------------------------------------------------------------- kinds of arrays


def comes_from(A: Any, library: str) -> bool:
    """Return whether `A` is an object of a library, without importing the library."""
    return type(A).__module__.partition(".")[0] == library


def is_dask(A: Any) -> bool:
    """Return whether `A` is a Dask collection, without importing Dask."""
    return comes_from(A, "dask") and hasattr(A, "__dask_graph__")


def computed(*arrays: Any) -> tuple[Any, ...]:
    """Return arrays in memory: Dask collections are computed together, others are unchanged."""
    if not any(map(is_dask, arrays)):
        return arrays
    import dask

    return dask.compute(*arrays)


def is_memory_map(A: Any) -> bool:
    """Return whether `A` is a memory map of NumPy, or a part of one."""
    return isinstance(A, np.memmap) and getattr(A, "_mmap", None) is not None


def refuse_files(A: Any, name: str) -> None:
    """Raise a TypeError for HDF5 datasets and Zarr arrays, which Dask reads."""
    # Compare module names, so that neither library is imported.
    roots = {cls.__module__.partition(".")[0] for cls in type(A).__mro__}
    if roots & {"h5py", "zarr"}:
        raise TypeError(
            f"{name} is an array in a file ({type(A).__module__.partition('.')[0]}."
            f"{type(A).__name__}). Pass it as a Dask array, dask.array.from_array({name}), or read "
            f"it into memory, {name}[:]."
        )


def ignores_missing(estimator: Any) -> bool:
    """Return whether an estimator ignores missing outputs."""
    return getattr(estimator, "missing", "raise") == "ignore"


def check_kind(A: Any, name: str) -> None:
    """Raise a ValueError for dates, time spans and text, which NumPy may convert to numbers."""
    if np.dtype(A.dtype).kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers; got dtype {A.dtype}.")


# ---------------------------------------------------------------- arrays


def check_inputs(
    X: Any,
    name: str = "X",
    names: Callable[[], Sequence[Any]] = tuple,
    *,
    fitted: bool = True,
    sparse: bool = False,
) -> Array:
    """Check `X`, and return it as a floating-point matrix of its own array library.

    Parameters
    ----------
    X : array or table of shape (n_samples, n_features)
    name : str
        Name of the argument in messages.
    names : callable
        Returns the names of the features, if `X` itself has lost them.
    fitted : bool
        Whether the inputs are for a fitted model, whose features cannot be left out.
    sparse : bool
        Whether `X` may be sparse. The result is then in CSR format.
    """
    if sparse and is_sparse(X):
        return _check_sparse(X, name, names)
    given = X
    try:
        X = check_matrix(X, name)
        check_finite(X, name)
    except BadEntryError as error:
        shown = names() or list(getattr(given, "columns", ()))
        raise _explained(error, X, shown, fitted) from None
    return X


def _check_sparse(X: Any, name: str, names: Callable[[], Sequence[Any]] = tuple) -> Any:
    """Check sparse inputs, and return them in CSR format without duplicate entries."""
    if np.dtype(X.dtype).kind == "c":
        raise ValueError(f"Complex data not supported: {name} has dtype {X.dtype}.")
    check_kind(X, name)
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array for {name}, of shape (n_samples, n_features); got shape "
            f"{tuple(X.shape)}. Reshape your data."
        )
    check_not_empty(X, name)
    found = csr_array(X)
    if not found.has_canonical_format:
        found = found.copy()
        found.sum_duplicates()
    if found.dtype not in _FLOATS:
        found = found.astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(found.data))
    if not bad.size:
        return found
    rows = np.searchsorted(found.indptr, bad, side="right") - 1
    where, shown = (int(rows[0]), int(found.indices[bad[0]])), [repr(given) for given in names()]
    what = "NaN" if np.isnan(found.data[bad[0]]) else "infinity"
    n_samples = np.unique(rows).size
    hint = f"Drop these samples ({n_samples} of {found.shape[0]}) or impute the values first."
    raise BadEntryError(name, what, where, hint, shown[where[1]] if shown else str(where[1]))


def check_matrix(X: Any, name: str = "X") -> Array:
    """Return `X` as a floating-point matrix, without a check of its entries."""
    if _is_plain(X) and X.ndim == 2:
        return X
    if _is_foreign(X):
        X = _check_foreign(X, name)
        if X.ndim != 2:
            raise ValueError(
                f"Expected 2D array for {name}, of shape (n_samples, n_features); got shape "
                f"{tuple(X.shape)}. Reshape your data."
            )
        check_not_empty(X, name)
    else:
        X = _check_array(X, name)
    return X


def _explained(error: BadEntryError, X: Any, names: Sequence[Any], fitted: bool) -> BadEntryError:
    """Return the error with the name of the feature and advice."""
    bad = np.ma.getmaskarray(X) if np.ma.isMaskedArray(X) else ~np.isfinite(to_numpy(X))
    if bad.ndim != 2:
        return error
    shown = [repr(name) for name in names] or [str(j) for j in range(bad.shape[1])]
    empty, n_samples = np.flatnonzero(bad.all(axis=0)), int(bad.any(axis=1).sum())
    hint = f"Drop these samples ({n_samples} of {len(bad)}) or impute the values first."
    if empty.size and not fitted:
        some = ", ".join(shown[j] for j in empty[:5]) + (", ..." if empty.size > 5 else "")
        which = f"the {empty.size} features" if empty.size > 1 else "feature"
        hint = f"Leave out {which} {some}, for which no sample has a finite value."
    elif n_samples == len(bad):
        others = "impute the values first" if fitted else "impute the values, or leave out features"
        hint = f"All {n_samples} samples have such entries: {others}."
    return BadEntryError(error.name, error.what, error.index, hint, shown[error.index[1]])


def check_outputs(Y: Any, name: str = "y") -> Array:
    """Check `Y`, and return it as a floating-point array (n_samples, d1, ..., dp), p >= 0.

    The first pass of the fit over `Y` checks that it is finite (see `check_finite`), since a
    separate pass would cost as much as the fit.
    """
    if Y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None.")
    if _is_plain(Y):
        return Y
    if _is_foreign(Y):
        Y = _check_foreign(Y, name)
    else:
        Y = _check_array(Y, name, ensure_2d=False, allow_nd=True, ensure_min_features=0)
    if Y.ndim == 0:
        raise ValueError(f"{name} must have one entry for each sample; got a scalar (order 0).")
    check_not_empty(Y, name)
    return Y


def check_pair(
    X: Any,
    Y: Any,
    names: Callable[[], Sequence[Any]] = tuple,
    *,
    fitted: bool = True,
    sparse: bool = False,
) -> tuple[Array, Array]:
    """Check inputs and outputs, and return both in one array library and dtype.

    `names`, `fitted` and `sparse` are as in `check_inputs`. Sparse inputs keep their dtype.
    """
    X, Y = check_inputs(X, names=names, fitted=fitted, sparse=sparse), check_outputs(Y)
    check_lengths(X, Y)
    if type(X) is type(Y) is np.ndarray and X.dtype == Y.dtype:
        return X, Y
    if is_sparse(X) and is_numpy_array(Y):
        return X, Y
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


def check_lengths(X: Any, Y: Any) -> None:
    """Raise a ValueError if inputs and outputs have different numbers of samples."""
    if X.shape[0] != Y.shape[0]:
        raise ValueError(
            f"X and y must have the same number of samples along their first axis; got "
            f"{X.shape[0]} in X and {Y.shape[0]} in y."
        )


def _check_array(A: Any, name: str, **options: Any) -> np.ndarray:
    """Apply scikit-learn's `check_array`, with the name of the argument in every message."""
    refuse_sparse(A, name)
    refuse_files(A, name)
    A = _numbers(A, name)
    if _is_plain(A) and A.ndim == 2:  # a table of floats is converted to an array
        return A
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
        text = re.sub(r"array=.*\n(?=Reshape)", "", str(error), flags=re.DOTALL)  # all entries
        if text.startswith("Complex data"):
            text = "Complex data not supported; pass real and imaginary parts as separate columns."
        elif "inhomogeneous" in text:
            text += " Pass arrays with different features as the blocks of a dict."
        raise type(error)(f"Invalid {name}: {text}") from error


def refuse_sparse(A: Any, name: str = "X", who: str = "here") -> None:
    """Raise a TypeError for sparse data."""
    if is_sparse(A):
        raise TypeError(
            f"{name} is a sparse {type(A).__name__}, but {who} dense data are needed: use "
            f"{name}.toarray(). Only linear estimators, their searches and Moments accept a sparse "
            f"X. In a pipeline, set sparse_output=False of the step that returns sparse data "
            f"(OneHotEncoder, for instance; a ColumnTransformer has sparse_threshold=0), or reduce "
            f"many columns with TruncatedSVD."
        )
    if comes_from(A, "pandas") and len(getattr(A, "columns", ())) and hasattr(A, "sparse"):
        raise TypeError(
            f"{name} is a table whose columns are all sparse. Pass {name}.sparse.to_coo(), which "
            f"is a sparse matrix, to estimators that accept a sparse {name}, and "
            f"{name}.sparse.to_dense() to all others."
        )


def _numbers(A: Any, name: str) -> Any:
    """Return `A`, or raise an error if it contains masked entries, text, dates or time spans.

    NumPy would convert some of these to numbers. But masked entries have no value, text is not a
    number even if it consists of digits, and the numbers of dates depend on their unit.
    """
    A = unmasked(A, name)
    if not (hasattr(A, "dtypes") and hasattr(A, "columns")):
        _check_numbers(A, name)
        return A
    dtypes = set(A.dtypes)  # dtypes of a table: reading a column takes as long as reading an array
    if len(dtypes) < 2 and dtypes <= set(_FLOATS):
        return A.to_numpy()
    if not all(getattr(dtype, "kind", None) in _NUMBERS for dtype in dtypes):
        for column in A.columns:
            _check_numbers(A[column], f"{name} (column {column!r})")
    # scikit-learn's check does not see the dtypes of polars, and would convert all to float64.
    return A.to_numpy() if comes_from(A, "polars") else A


def _check_numbers(part: Any, name: str) -> None:
    """Raise a ValueError for text, dates, time spans, names of files and structured arrays."""
    dtype = getattr(part, "dtype", None)
    if getattr(dtype, "kind", None) in _NUMBERS:
        return
    if getattr(dtype, "names", None):
        raise ValueError(
            f"{name} is a structured array; pass a DataFrame, or "
            f"numpy.lib.recfunctions.structured_to_unstructured({name})."
        )
    if isinstance(part, (str, os.PathLike)):
        raise ValueError(
            f"{name} must hold numbers; got {name}={part!r}. If this is a file, load the "
            f"file first."
        )
    try:
        values = np.asarray(part)
    except (TypeError, ValueError):
        return  # ragged data, for which scikit-learn's check raises an error
    if values.dtype.kind in _NUMBERS:
        return
    others = [v for v in values.flat if isinstance(v, _OTHER)]
    if not others:
        return
    bad = others[0].item() if isinstance(others[0], (np.str_, np.bytes_)) else others[0]
    advice = "Convert text and dates to numbers first, or leave these columns out."
    if all(map(_is_numeral, others)):
        whole = name.partition(" ")[0]
        convert = f"{whole}.astype(float)" if dtype is not None else f"np.asarray({whole}, float)"
        advice = f"To convert this text to numbers, use {convert}."
    raise ValueError(
        f"{name} must hold numbers; got {bad!r} of type {type(bad).__name__}. {advice}"
    )


def _is_numeral(value: Any) -> bool:
    """Return whether a value is the text of a number.

    >>> _is_numeral("1.5"), _is_numeral("a"), _is_numeral(np.datetime64("2020-01-01"))
    (True, False, False)
    """
    try:
        return isinstance(value, (str, bytes)) and math.isfinite(float(value))
    except ValueError:
        return False


def unmasked(A: Any, name: str) -> Any:
    """Return a block without its mask; raise a `BadEntryError` if an entry is masked."""
    if not np.ma.isMaskedArray(A):
        return A
    for where in np.argwhere(np.ma.getmaskarray(A)):
        raise BadEntryError(name, "a masked entry", tuple(where.tolist()))
    return np.ma.getdata(A)


def nan_for_masked(A: Any) -> Any:
    """Return numbers with NaN for masked entries.

    >>> nan_for_masked(np.ma.masked_array([1, 2], mask=[False, True]))
    array([ 1., nan])
    """
    if not np.ma.isMaskedArray(A) or A.dtype.kind not in "biuf":
        return A
    return np.ma.filled(A if A.dtype.kind == "f" else A.astype(np.float64), np.nan)


def _is_plain(A: Any) -> bool:
    """Return whether only the entries have to be checked, which saves time for single rows."""
    return type(A) is np.ndarray and A.dtype in _FLOATS and A.ndim > 0 and A.size > 0


def _is_foreign(A: Any) -> bool:
    return is_array(A) and not is_numpy_array(A)


def _check_foreign(A: Array, name: str) -> Array:
    if is_dask(A):
        raise TypeError(
            f"{name} is a Dask array, which is not supported here. Linear estimators and kernel "
            f"estimators with landmarks can be fitted to Dask arrays, and all "
            f"estimators predict for them. Call {name}.compute() if the data fit in memory."
        )
    A, xp = detached(A), namespace_of(A)
    if xp.isdtype(A.dtype, "complex floating"):
        raise ValueError(f"Complex data not supported: {name} has dtype {A.dtype}.")
    if A.dtype in (xp.float32, xp.float64):
        return A
    if not xp.isdtype(A.dtype, ("real floating", "integral", "bool")):
        raise TypeError(f"{name} must hold real numbers; got dtype {A.dtype}.")
    return xp.astype(A, xp.float64)


def check_not_empty(A: Any, name: str) -> None:
    """Raise a ValueError for an array without samples, or with a mode of length 0."""
    if 0 not in A.shape:
        return
    if A.shape[0] == 0:
        raise ValueError(f"Found array with 0 sample(s) (shape={tuple(A.shape)}) in {name}.")
    mode = list(A.shape).index(0)
    raise ValueError(
        f"{name} has an empty mode: axis {mode} of its shape {tuple(A.shape)} has length 0; "
        f"every axis needs at least one entry."
    )


def check_weights(sample_weight: Any, X: Array, *, all_zero: bool = False) -> Array | None:
    """Check weights (n_samples,), and return them as float64; None if all are one.

    The result is on the device of `X`. With `all_zero` the weights may all be zero, as in one of
    several blocks.
    """
    if sample_weight is None:
        return None
    w = to_numpy(unmasked(sample_weight, "sample_weight"))
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
    if not w.any() and not all_zero:
        raise ValueError("sample_weight must have a positive entry; all entries are zero.")
    if not w.max() < MAX_WEIGHT / n:
        raise ValueError(
            f"sample_weight must add up to less than {MAX_WEIGHT:g}, so that squares do not "
            f"overflow; got weights up to {w.max():g}. Divide sample_weight and alpha by a large "
            f"number."
        )
    if is_numpy_array(X) or is_sparse(X):
        return w
    return namespace_of(X).asarray(w, device=device_of(X))


def weights_of(sample_weight: Any, n_samples: int) -> np.ndarray | None:
    """Check the weights of all samples together, since those of one block may all be zero."""
    if is_dask(sample_weight):
        sample_weight = sample_weight.compute()
    return check_weights(sample_weight, np.empty((n_samples, 0)))


def check_groups(groups: Any, n_samples: int) -> np.ndarray:
    """Return the group labels of the samples, (n_samples,); missing labels form no group."""
    given = to_numpy(groups) if is_array(groups) else groups
    labels = check_array(given, ensure_2d=False, allow_nd=True, dtype=None, input_name="groups")
    if labels.shape != (n_samples,):
        raise ValueError(
            f"groups must have one entry for each of the {n_samples} samples; got shape "
            f"{labels.shape}."
        )
    return labels


def _first(mask: np.ndarray) -> int:
    return int(np.flatnonzero(mask)[0])


# ---------------------------------------------------------------- selection of rows


@contextmanager
def locate_rows(rows: slice | np.ndarray) -> Iterator[None]:
    """Report the position of a bad entry among all data, for a check of a part of them."""
    try:
        yield
    except BadEntryError as error:
        raise error.moved(rows) from None


def take(A: Array | None, index: np.ndarray) -> Array:
    """Return rows of `A`, as a view if they are consecutive, or None if `A` is None."""
    rows = as_slice(index)
    if A is None or isinstance(rows, slice):
        return None if A is None else A[rows, ...]
    return namespace_of(A).take(A, asarray_like(rows, A), axis=0)


def as_slice(index: np.ndarray) -> slice | np.ndarray:
    """Return the indices, as a slice if they are consecutive."""
    first, last = int(index[0]), int(index[-1])
    consecutive = last - first == index.size - 1 and (np.diff(index) == 1).all()
    return slice(first, last + 1) if consecutive else index
