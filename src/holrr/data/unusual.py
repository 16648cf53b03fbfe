"""Distances of new inputs from those of a fit, and a warning if most of them are unusual."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.input_model import InputModel, rows_to_use
from ..core.namespace import row_blocks, to_numpy
from ..core.sparse import is_sparse
from ..core.threads import few_threads_for
from ..core.warn import warn
from .arrays import is_dask, take

__all__ = ["UnusualInputWarning", "distances", "warn_of_unusual"]

# Minimum number of rows for a warning, and maximum number of rows that are examined.
_FEW, _MOST = 5, 256
_LEVEL = 0.999
_BLOCK = 2**25


class UnusualInputWarning(UserWarning):
    """Warning that most rows of X are unlike the rows that a model was fitted to.

    Examples
    --------
    >>> import warnings
    >>> from holrr.diagnostics import UnusualInputWarning
    >>> warnings.simplefilter("ignore", UnusualInputWarning)  # for the whole program
    >>> warnings.simplefilter("default", UnusualInputWarning)
    """


def distances(model: InputModel, X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return T2 and Q of each row, (n,), of validated inputs, computed in blocks on the host.

    Parameters
    ----------
    model : InputModel
    X : array, sparse matrix or Dask array of shape (n, n_features)
    """
    n, d = X.shape
    t2, q = np.empty(n), np.empty(n)
    for rows in row_blocks(n, 8 * d, _BLOCK):
        t2[rows], q[rows] = model.distances(_dense(X[rows, :]))
    return t2, q


def _dense(X: Any) -> np.ndarray:
    """Convert rows to a NumPy array."""
    if is_sparse(X):
        return X.toarray()
    return np.asarray(X) if is_dask(X) else to_numpy(X)


def warn_of_unusual(model: InputModel | None, X: Any) -> None:
    """Warn if more than half of the rows are outside of the 99.9 percent limits of T2 or Q.

    Fewer than five rows are not examined, and at most 256 rows are. Dask arrays are not examined,
    since they are not computed yet.

    Parameters
    ----------
    model : InputModel or None
    X : array or sparse matrix of shape (n, n_features)
        Validated inputs.
    """
    if model is None or X.shape[0] < _FEW or is_dask(X):
        return
    n, d = X.shape
    rows = rows_to_use(n, d, _MOST)
    X = X[rows] if is_sparse(X) else take(X, rows)
    with few_threads_for(X.shape[0] * d * model.components.shape[1]):
        t2, q = model.distances(_dense(X))
    t2_limit, q_limit = model.limits(_LEVEL)
    n_outside = int(np.count_nonzero((t2 > t2_limit) | (q > q_limit)))
    if 2 * n_outside <= t2.size:
        return
    examined = "" if t2.size == n else " that were examined"
    warn(
        f"{n_outside} of {t2.size} rows of X{examined} are unlike the inputs that the model was "
        f"fitted to: they are outside of the {_LEVEL:.1%} limits of T2 or Q. Predictions for "
        f"them are extrapolations. holrr.diagnostics.diagnose_inputs(model, X) shows which "
        f"rows they are; check_inputs=False turns this check off.",
        UnusualInputWarning,
    )
