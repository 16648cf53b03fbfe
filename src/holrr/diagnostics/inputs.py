"""Diagnostics of unusual inputs: Hotelling's T2 and Q of new rows, with limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..core.namespace import row_blocks, to_numpy
from ..data.arrays import is_dask
from ..data.pipelines import inputs_of_last_step, last_step
from ..data.relabel import row_labels
from ..data.validation import validate_inputs
from ..extras import need
from ._input_model import InputModel
from .monitor import InputMonitor

__all__ = ["InputDiagnostics", "check_level", "diagnose_inputs", "labelled_frame"]

_BLOCK = 2**25  # bytes of rows that are measured at a time


@dataclass(frozen=True, eq=False, repr=False)
class InputDiagnostics:
    """Distances of rows of inputs from the training inputs, with limits.

    `diagnose_inputs` returns this object.

    Parameters
    ----------
    t2 : array of shape (n_samples,)
        Hotelling's T2: the sum over the principal components of the training inputs of the squared
        scores divided by their variances.
    q : array of shape (n_samples,)
        Q residual: the sum over the inputs of the squared residuals from the components, each
        divided by the residual variance of the input.
    model : InputModel
        Principal components and limits of the training inputs.
    level : float
        Share of ordinary rows below each limit.
    labels : array of shape (n_samples,), or None
        Labels of the rows, if `X` has labels.

    Attributes
    ----------
    t2_limit, q_limit, dmodx_limit : float
        Limits at `level`.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr.diagnostics import InputMonitor, diagnose_inputs
    >>> X = np.random.default_rng(0).normal(size=(200, 4))
    >>> monitor = InputMonitor().fit(X)
    >>> found = diagnose_inputs(monitor, [[0.0, 1.0, 0.0, 1.0], [9.0, 0.0, 0.0, 0.0]])
    >>> found
    InputDiagnostics: 1 of 2 rows outside the 99 % limits (T2 1, Q 0)
    >>> found.outside, found.n_components
    (array([False,  True]), 3)
    >>> bool(found.at(0.95).t2_limit < found.t2_limit)
    True
    >>> found.to_frame().columns.tolist()
    ['t2', 'q', 'dmodx', 'outside']
    """

    t2: np.ndarray
    q: np.ndarray
    model: InputModel
    level: float = 0.99
    labels: np.ndarray | None = None

    @property
    def t2_limit(self) -> float:
        """Limit of T2."""
        return self.model.limits(self.level)[0]

    @property
    def q_limit(self) -> float:
        """Limit of Q."""
        return self.model.limits(self.level)[1]

    @property
    def dmodx(self) -> np.ndarray:
        """Distance to the model of X, ``sqrt(q / n_features)``, of shape (n_samples,).

        It is the root mean square of the residuals of all inputs. Each residual is divided by the
        standard deviation of the residuals of the same input in held-out training rows, so that
        DModX is about one in ordinary rows.
        """
        return np.sqrt(self.q / self.model.n_features)

    @property
    def dmodx_limit(self) -> float:
        """Limit of DModX. A row exceeds it if and only if it exceeds the limit of Q."""
        return float(np.sqrt(self.q_limit / self.model.n_features))

    @property
    def outside(self) -> np.ndarray:
        """Mask of the rows that exceed the limit of T2 or of Q, of shape (n_samples,)."""
        t2_limit, q_limit = self.model.limits(self.level)
        return (self.t2 > t2_limit) | (self.q > q_limit)

    @property
    def n_components(self) -> int:
        """Number of principal components in T2."""
        return self.model.components.shape[1]

    def at(self, level: float) -> InputDiagnostics:
        """Return the same distances with the limits of another level.

        Parameters
        ----------
        level : float
            Share of ordinary rows below each of the two limits, between 0 and 1.

        Returns
        -------
        InputDiagnostics
            The same distances with other limits.
        """
        return InputDiagnostics(self.t2, self.q, self.model, check_level(level), self.labels)

    def to_frame(self) -> Any:
        """Return the distances as a pandas DataFrame, with the labels of the rows as index.

        Returns
        -------
        DataFrame
            Table with the columns ``t2``, ``q``, ``dmodx`` and ``outside``.
        """
        columns = {"t2": self.t2, "q": self.q, "dmodx": self.dmodx, "outside": self.outside}
        return labelled_frame(columns, self.labels)

    def __repr__(self) -> str:
        t2_limit, q_limit = self.model.limits(self.level)
        by = f"T2 {(self.t2 > t2_limit).sum()}, Q {(self.q > q_limit).sum()}"
        return (
            f"InputDiagnostics: {self.outside.sum()} of {self.t2.size} rows outside the "
            f"{100 * self.level:g} % limits ({by})"
        )


def diagnose_inputs(monitor: Any, X: Any, *, level: float = 0.99) -> InputDiagnostics:
    """Compute distances of rows of inputs from those of an `InputMonitor`, with limits.

    Predictions for rows far from the training inputs are extrapolations. Two distances detect such
    rows, both with limits from the training rows (docs/diagnostics.md): Hotelling's T2 within the
    principal components of the training inputs, and Q, the distance from these components.

    Parameters
    ----------
    monitor : InputMonitor or Pipeline
        A monitor that was fitted to the training inputs, or a pipeline that ends with one.
    X : array of shape (n_samples, n_features)
        Inputs, in the format that they had in `fit`.
    level : float, default=0.99
        Share of ordinary rows below each of the two limits, between 0 and 1.

    Returns
    -------
    InputDiagnostics
        Distances of the rows, and limits.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr.datasets import make_tensor_regression
    >>> from holrr.diagnostics import InputMonitor, diagnose_inputs
    >>> X, Y = make_tensor_regression(200, 6, (4, 3), rank=2, snr=9, random_state=0)
    >>> found = diagnose_inputs(InputMonitor().fit(X), np.concatenate([X[:3], 20 * X[:2]]))
    >>> found.outside
    array([False, False, False,  True,  True])
    """
    level, given = check_level(level), X
    check_is_fitted(monitor)
    last = last_step(monitor)
    if not isinstance(last, InputMonitor):
        raise TypeError(
            f"diagnose_inputs needs an InputMonitor that was fitted to the training inputs, or a "
            f"pipeline that ends with one: diagnose_inputs(InputMonitor().fit(X), X_new); got "
            f"{type(last).__name__}."
        )
    X = inputs_of_last_step(monitor, X)
    t2, q = _distances(last._input_model, validate_inputs(last, X))
    labels = row_labels(X, given, getattr(last, "labels_", None))
    return InputDiagnostics(t2, q, last._input_model, level, labels)


def _distances(model: InputModel, X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return T2 and Q of each row, (n,), of validated inputs, computed in blocks on the host.

    Parameters
    ----------
    model : InputModel
    X : array or Dask array of shape (n, n_features)
    """
    n, d = X.shape
    t2, q = np.empty(n), np.empty(n)
    for rows in row_blocks(n, 8 * d, _BLOCK):
        part = X[rows, :]
        t2[rows], q[rows] = model.distances(np.asarray(part) if is_dask(X) else to_numpy(part))
    return t2, q


def check_level(level: Any) -> float:
    """Return `level` as a float; raise an error if it is not between 0 and 1."""
    if isinstance(level, bool) or not isinstance(level, (int, float, np.number)):
        raise TypeError(f"level must be a number; got {level!r}.")
    if not 0 < float(level) < 1:
        raise ValueError(f"level must be above 0 and below 1, such as 0.99; got {level!r}.")
    return float(level)


def labelled_frame(columns: dict[str, np.ndarray], labels: np.ndarray | None) -> Any:
    """Return a pandas DataFrame with the labels of the samples as index."""
    pandas = need("pandas", "to_frame needs pandas", "table")
    index = None
    if labels is not None:
        tuples = labels.dtype == object and all(isinstance(v, tuple) for v in labels)
        index = pandas.MultiIndex.from_tuples(labels) if tuples else pandas.Index(labels)
    return pandas.DataFrame(columns, index)
