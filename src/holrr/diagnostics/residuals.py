"""Outliers among training rows: held-out residuals of each row, with limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from ..core.namespace import to_numpy
from ..core.row_residuals import RowResiduals, residual_limits, row_residuals
from ..data.pipelines import last_step
from ..data.relabel import row_labels
from ..data.unlabel import refit_dimension, take_rows
from ..data.validation import Samples, validate, validate_inputs
from ..model_selection.folds import check_splits
from .inputs import check_level, labelled_frame

__all__ = ["Outliers", "find_outliers"]

# Residuals below this multiple of the rounding error of the outputs count as zero.
_DIGITS = 64


@dataclass(frozen=True, eq=False, repr=False)
class Outliers:
    """Held-out residuals of training rows, with limits.

    `find_outliers` returns this object.

    Parameters
    ----------
    residuals : array of shape (n_samples,)
        Root mean square of the studentised held-out residuals over the observed outputs of each
        row. It is about one in ordinary rows, and NaN for rows that were not held out.
    limits : array of shape (n_samples,)
        Limit of each row. It is the same for rows with the same number of observed outputs.
    level : float
        Share of ordinary rows below the limit.
    labels : array of shape (n_samples,), or None
        Labels of the rows, if the data have labels.

    Examples
    --------
    >>> from holrr import RLSCV
    >>> from holrr.datasets import make_tensor_regression
    >>> from holrr.diagnostics import find_outliers
    >>> X, Y = make_tensor_regression(90, 6, (4, 3), rank=2, snr=9, random_state=0)
    >>> Y[17] *= 5
    >>> found = find_outliers(RLSCV().fit(X, Y), level=0.999)
    >>> found
    Outliers: 1 of 90 rows above the 99.9 % limit: 17
    >>> print(found.order[0], found.residuals[17].round(), found.limits[17].round(1))
    17 21.0 2.4
    >>> found.to_frame().query("outside").index.tolist()
    [17]
    """

    residuals: np.ndarray
    limits: np.ndarray
    level: float = 0.99
    labels: np.ndarray | None = None

    @property
    def outside(self) -> np.ndarray:
        """Mask of the rows above their limit, of shape (n_samples,)."""
        with np.errstate(invalid="ignore"):
            return self.residuals > self.limits

    @property
    def order(self) -> np.ndarray:
        """Positions of the rows by decreasing ratio of residual and limit; rows with NaN last."""
        return np.argsort(-(self.residuals / self.limits), kind="stable")

    def to_frame(self) -> Any:
        """Return the residuals as a pandas DataFrame, with the labels of the rows as index.

        Returns
        -------
        DataFrame
            Table with the columns ``residual``, ``limit`` and ``outside``.
        """
        columns = {"residual": self.residuals, "limit": self.limits, "outside": self.outside}
        return labelled_frame(columns, self.labels)

    def __repr__(self) -> str:
        n, outside = int(np.count_nonzero(~np.isnan(self.residuals))), self.outside
        text = f"Outliers: {outside.sum()} of {n} rows above the {100 * self.level:g} % limit"
        first = [k for k in self.order[:10] if outside[k]]
        if not first:
            return text
        names = [str(k if self.labels is None else self.labels[k]) for k in first]
        more = ", ..." if len(first) < outside.sum() else ""
        return f"{text}: {', '.join(names)}{more}"


def find_outliers(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    level: float = 0.99,
    cv: Any = 5,
    sample_weight: Any = None,
    groups: Any = None,
) -> Outliers:
    """Find training rows whose held-out residuals exceed a limit.

    Each row is predicted by a fit that has not seen it. Its residuals are divided by the standard
    deviation of a new observation of each output, and summarised by their root mean square. The
    noise and the limits come from medians and quantiles over the rows, so that outliers do not mask
    each other if they are fewer than a tenth of the rows. See docs/diagnostics.md.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted `RLSCV`, `LRRCV` or `HOLRRCV` or one of their kernel versions, or a pipeline that
        ends with one of them. If its samples were in memory, it contains their held-out residuals.
        Any other estimator, fitted or not, needs `X` and `y`.
    X, y : arrays of shape (n_samples, n_features) and (n_samples, d1, ..., dp), optional
        Inputs and outputs, as in `fit`. For each fold, a copy of the model is fitted to the other
        folds and predicts the fold.
    level : float, default=0.99
        Share of ordinary rows below the limit, between 0 and 1. With 0.99, one in a hundred
        ordinary rows is above the limit by chance. With ``1 - 0.05 / n_samples``, the probability
        that any ordinary row is above the limit is about five percent.
    cv : int, splitter or iterable, default=5
        Folds, as in scikit-learn. Used only with `X` and `y`.
    sample_weight, groups : arrays of shape (n_samples,), optional
        As in the `fit` of a search. Used only with `X` and `y`.

    Returns
    -------
    Outliers
        Residuals and limits of the rows.

    Examples
    --------
    >>> from holrr import HOLRR
    >>> from holrr.datasets import make_tensor_regression
    >>> from holrr.diagnostics import find_outliers
    >>> X, Y = make_tensor_regression(90, 6, (4, 3), rank=2, snr=9, random_state=0)
    >>> Y[17] *= 5
    >>> find_outliers(HOLRR(rank=2), X, Y, level=0.999)
    Outliers: 1 of 90 rows above the 99.9 % limit: 17
    """
    level = check_level(level)
    if (X is None) != (y is None):
        raise TypeError("find_outliers needs both X and y, or neither of them; got only one.")
    if X is None:
        model = last_step(model)
        check_is_fitted(model)
        rows = vars(model).get("_row_residuals")
        if rows is None:
            raise ValueError(
                f"This {type(model).__name__} has no held-out residuals of its samples: searches "
                f"over linear and kernel models have them, with samples in memory. "
                f"Pass the data: find_outliers(model, X, y) fits the model to folds."
            )
    else:
        rows = _held_out(model, X, y, cv, sample_weight, groups)
    residuals, limits = residual_limits(rows.squares, rows.counts, level)
    return Outliers(residuals, limits, level, rows.labels)


def _held_out(model: Any, X: Any, y: Any, cv: Any, sample_weight: Any, groups: Any) -> RowResiduals:
    """Return the residuals of each row, from copies of the model fitted without its fold."""
    if isinstance(model, Pipeline):
        raise TypeError(
            "find_outliers does not fit pipelines to folds. Pass the last step and its inputs: "
            "find_outliers(pipe[-1], pipe[:-1].transform(X), y)."
        )
    dim = refit_dimension(model, X, y)
    data, names = validate(model, X, y, sample_weight, groups=groups, sample_dim=dim)
    if not isinstance(data, Samples):
        raise ValueError(
            "find_outliers needs dense samples in memory, but X or y is sparse or read in chunks. "
            "Pass some of the rows as arrays."
        )
    splits = check_splits(cv, data.X, data.Y, groups, data.w)
    Y = to_numpy(data.Y)
    R = np.full((len(Y), max(int(np.prod(Y.shape[1:])), 1)), np.nan)
    weights = None if data.w is None else to_numpy(data.w)
    for train, test in splits:
        fitted = clone(model)
        part = (take_rows(X, train, dim), take_rows(y, train, dim))
        given: dict[str, Any] = {} if dim is None else {"sample_dim": dim}
        if weights is not None:
            given["sample_weight"] = weights[train]
        if groups is not None and has_fit_parameter(fitted, "groups"):
            given["groups"] = take_rows(groups, train, dim)
        fitted.fit(*part, **given)
        test = test if weights is None else test[weights[test] > 0]
        checked = validate_inputs(fitted, take_rows(X, test, dim), sparse=True)
        found = [to_numpy(A) for A in fitted._evaluate(checked, "_noise" in vars(fitted))]
        E = (Y[test] - found[0]).reshape(test.size, -1)
        if len(found) == 2:  # std / noise is the factor of the leverage
            noise = np.asarray(to_numpy(fitted._noise_level()), dtype=float)
            with np.errstate(invalid="ignore", divide="ignore"):
                spread = (found[1] / noise).reshape(test.size, -1)
            E = E / np.where(spread > 0, spread, 1.0)
        R[test] = E
    rounding = _DIGITS * np.finfo(Y.dtype).eps * np.nanmax(np.abs(Y), axis=0, initial=0.0)
    return row_residuals(R, rounding.reshape(-1), row_labels(X, y, names.labels))
