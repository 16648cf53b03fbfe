"""Warning of new inputs that are unlike those of a fit, by their leverage.

The leverage of a row measures how far its inputs are from those of the training samples, in the
directions and units of the fit. A training sample that is left out has the leverage
``h / (1 - w h)`` as a new row, where h is its leverage in the fit and w its weight. Rows like the
training samples rarely exceed the largest of these values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.leverage import row_leverage
from ..core.namespace import to_numpy
from ..core.sparse import is_sparse
from ..core.threads import few_threads_for
from ..core.warn import warn
from .arrays import is_dask, take

__all__ = ["UnusualInputWarning", "largest_leverage", "unusual_rows", "warn_of_unusual"]

# Minimum number of rows for a warning, minimum number of training samples for a limit, and maximum
# number of rows that are examined.
_FEW, _FEWEST_SAMPLES, _MOST = 5, 10, 256
# A training sample with a leverage closer to one determines its own prediction: without it, the
# leverage cannot be computed from that of the fit.
_DETERMINED = 1e-6


class UnusualInputWarning(UserWarning):
    """Warning that most rows of X are unlike the rows that a model was fitted to.

    Examples
    --------
    >>> import warnings
    >>> from holrr.diagnostics import UnusualInputWarning
    >>> warnings.simplefilter("ignore", UnusualInputWarning)  # for the whole program
    >>> warnings.simplefilter("default", UnusualInputWarning)
    """


def largest_leverage(hat: dict[str, Any] | None, X: Any, w: Any, unit: float) -> float | None:
    """Return the largest leverage that a training sample has if it is left out.

    At most 256 samples are examined. The result is None if there are fewer than ten, or if a sample
    determines its own prediction, as with fewer samples than inputs and almost no penalty.

    Parameters
    ----------
    hat : dict or None
        As `Fit.hat`.
    X : array of shape (n_samples, n_features)
        Inputs of the fit, divided by `unit`.
    w : array of shape (n_samples,), or None
        Weights of the samples.
    unit : float
    """
    if hat is None or hat["form"] == "gram":
        return None
    weights = np.ones(X.shape[0]) if w is None else to_numpy(w).astype(float)
    rows = _some(np.flatnonzero(weights > 0))
    if rows.size < _FEWEST_SAMPLES:
        return None
    h = _leverages(hat, X if rows.size == X.shape[0] else take(X, rows), unit)
    left = 1.0 - weights[rows] * h
    if not (left > _DETERMINED).all():
        return None
    return float((h / left).max())


def unusual_rows(hat: dict[str, Any] | None, limit: float | None, X: Any) -> tuple[int, int]:
    """Return how many rows have a larger leverage than training samples have, and of how many.

    At most 256 rows are examined, and none of a Dask array or of a model without a limit.

    Parameters
    ----------
    hat : dict or None
        As `Fit.hat`.
    limit : float or None
        Result of `largest_leverage`.
    X : array or sparse matrix of shape (n, n_features)
        Validated inputs.
    """
    if hat is None or limit is None or is_dask(X):
        return 0, 0
    rows = _some(np.arange(X.shape[0]))
    if is_sparse(X):
        X = X[rows].toarray()
    elif rows.size < X.shape[0]:
        X = take(X, rows)
    return int(np.count_nonzero(_leverages(hat, X, 1.0) > limit)), rows.size


def warn_of_unusual(hat: dict[str, Any] | None, limit: float | None, X: Any) -> None:
    """Warn if more than half of the rows have a larger leverage than training samples have.

    Fewer than five rows are not examined, so that predictions of single rows take no longer.

    Parameters
    ----------
    hat, limit, X
        As in `unusual_rows`.
    """
    if is_dask(X) or X.shape[0] < _FEW:
        return
    outside, n = unusual_rows(hat, limit, X)
    if 2 * outside <= n:
        return
    examined = "" if n == X.shape[0] else " that were examined"
    warn(
        f"{outside} of {n} rows of X{examined} are unlike the inputs that the model was "
        f"fitted to: their leverage is above that of every training sample. Predictions for them "
        f"are extrapolations. InputMonitor and diagnose_inputs of holrr.diagnostics show how they "
        f"differ; check_inputs=False turns this check off.",
        UnusualInputWarning,
    )


def _some(rows: np.ndarray) -> np.ndarray:
    """Return all rows, or some that are spread evenly, at all phases of a period."""
    n = rows.size
    if n <= _MOST:
        return rows
    edges = np.arange(_MOST + 1) * n // _MOST
    phase = np.arange(_MOST) * 0.6180339887498949 % 1.0
    return rows[edges[:-1] + (phase * np.diff(edges)).astype(np.int64)]


def _leverages(hat: dict[str, Any], X: Any, unit: float) -> np.ndarray:
    work = X.shape[0] * X.shape[1] * hat["factor"].shape[-1]
    with few_threads_for(work), np.errstate(over="ignore", invalid="ignore"):
        h = to_numpy(row_leverage(hat, X, unit))
    return np.where(np.isnan(h), np.inf, h)  # squares of finite inputs may overflow
