"""The methods of the forecasting experiment: from a split to predictions for its test windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from holrr import (
    HOLRRCV,
    LRRCV,
    RLSCV,
    KernelHOLRRCV,
    KernelLRRCV,
    KernelRLSCV,
    TraceNormRegressionCV,
)

__all__ = ["METHODS", "SLOW", "Windows"]

Array = NDArray[np.float64]

# Decades up to 10: with larger ones RLS is better than the paper reports.
ALPHAS = tuple(10.0**e for e in range(-5, 2))
GAMMAS = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
# The paper does not say which polynomial kernel: the normalised one comes closest.
DEGREES, OFFSETS = (2, 3, 4), (0.0, 1.0)
PENALTIES = tuple(10.0**e for e in np.arange(1, 2.5, 0.25))


@dataclass(frozen=True, eq=False)
class Windows:
    """All windows of past and future, and a split of them.

    Parameters
    ----------
    X : array of shape (n_windows, n_features)
        The past months, flattened, oldest first.
    Y : array of shape (n_windows, k, n_stations, n_variables)
    first : int array of shape (n_windows,)
        First predicted month, counted from some January.
    test, valid, train : int arrays
        Which windows are which.
    """

    X: Array
    Y: Array
    first: NDArray[np.int64]
    test: NDArray[np.int64]
    valid: NDArray[np.int64]
    train: NDArray[np.int64]

    @property
    def known(self) -> NDArray[np.int64]:
        """Training and validation windows, training first."""
        return np.concatenate([self.train, self.valid])


Predictions = dict[str, Array]

# ---------------------------------------------------------------- the paper's protocol


def by_validation(search: Any, windows: Windows, X: Array | None = None) -> tuple[float, Array]:
    """Validation error and test predictions of the model with the least validation error.

    Fitted to the training windows alone, as in the paper.

    Parameters
    ----------
    search : estimator
        A cross-validated one; the validation set becomes its only fold.
    windows : Windows
    X : array of shape (n_windows, n_features), optional
        Inputs other than those of `windows`.
    """
    X = windows.X if X is None else X
    n_train = len(windows.train)
    everything = np.arange(len(windows.known))
    search.set_params(cv=[(everything[:n_train], everything[n_train:])], fit_intercept=False)
    search.fit(X[windows.known], windows.Y[windows.known])
    model = clone(search.best_estimator_).fit(X[windows.train], windows.Y[windows.train])
    return -search.best_score_, model.predict(X[windows.test])


def _linear(windows: Windows) -> Predictions:
    searches = {
        "RLS": RLSCV(ALPHAS),
        "LRR": LRRCV(ALPHAS),
        "HOLRR": HOLRRCV(ALPHAS, subspaces="response"),
    }
    return {name: by_validation(search, windows)[1] for name, search in searches.items()}


def _kernel_searches(kernels: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {
        "RLS": KernelRLSCV(ALPHAS, kernels=kernels, center_kernel=False),
        "LRR": KernelLRRCV(ALPHAS, kernels=kernels, center_kernel=False),
        "HOLRR": KernelHOLRRCV(ALPHAS, kernels=kernels, center_kernel=False, subspaces="response"),
    }


def _rbf(windows: Windows) -> Predictions:
    kernels = [{"kernel": "rbf", "gamma": g} for g in GAMMAS]
    searches = _kernel_searches(kernels)
    return {name: by_validation(search, windows)[1] for name, search in searches.items()}


def _poly(windows: Windows) -> Predictions:
    """Normalised polynomial kernels: plain ones of inputs scaled to length one."""
    kernels = [{"kernel": "poly", "degree": d, "gamma": 1.0, "coef0": 0.0} for d in DEGREES]
    found: dict[str, list[tuple[float, Array]]] = {}
    for offset in OFFSETS:
        X = on_sphere(windows.X, offset)
        for name, search in _kernel_searches(kernels).items():
            found.setdefault(name, []).append(by_validation(search, windows, X))
    return {name: min(tried, key=lambda t: t[0])[1] for name, tried in found.items()}


def on_sphere(X: Array, offset: float) -> Array:
    """Inputs ``(x, sqrt(offset))`` scaled to length one.

    Products of these to the power d are the normalised polynomial kernel
    ``(x'y + c)^d / sqrt((x'x + c)^d (y'y + c)^d)``.
    """
    X = np.hstack([X, np.full((len(X), 1), np.sqrt(offset))])
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def _trace_norm(windows: Windows) -> Predictions:
    # The forecasts do not change beyond this tolerance, a hundredth of their standard error.
    search = TraceNormRegressionCV(PENALTIES, tol=1e-3, max_iter=500)
    return {"Trace norm": by_validation(search, windows)[1]}


# ---------------------------------------------------------------- what a forecaster would ask for


def climatology(windows: Windows) -> Array:
    """Mean of each month of the year over the months that the training windows hold.

    Past or predicted, training or validation, each month counts once.

    Returns
    -------
    array of shape (12, n_stations, n_variables)
    """
    shape = windows.Y.shape[2:]
    months: dict[int, Array] = {}
    for i in windows.known:
        series = np.concatenate([windows.X[i].reshape(-1, *shape), windows.Y[i]])
        start = int(windows.first[i]) - (len(series) - windows.Y.shape[1])
        months.update({start + j: value for j, value in enumerate(series)})
    everything = list(months.values())
    return np.stack(
        [
            np.mean([v for month, v in months.items() if month % 12 == m] or everything, axis=0)
            for m in range(12)
        ]
    )


def _seasonal(windows: Windows, means: Array) -> tuple[Array, Array]:
    """Climatology of the inputs and of the outputs of every window."""
    k, d = windows.Y.shape[1], int(np.prod(windows.Y.shape[2:]))
    n_past = windows.X.shape[1] // d
    months = windows.first[:, None] + np.arange(-n_past, k)
    seasonal = means[months % 12]
    return seasonal[:, :n_past].reshape(windows.X.shape), seasonal[:, n_past:]


def _climatology(windows: Windows) -> Predictions:
    _, season = _seasonal(windows, climatology(windows))
    return {"Climatology": season[windows.test]}


# Sines and cosines times this are hardly touched by a penalty that suits the weather.
_CALENDAR_SCALE = 100.0
_OUR_ALPHAS = tuple(10.0**e for e in np.arange(0, 5.5, 0.5))


def calendar(first: NDArray[np.int64], n_harmonics: int = 2) -> Array:
    """Sines and cosines of the month of the year."""
    angle = 2 * np.pi * (first % 12)[:, None] * np.arange(1, n_harmonics + 1) / 12
    return np.hstack([np.sin(angle), np.cos(angle)])


def _with_calendar(windows: Windows) -> Predictions:
    """All that is known, calendar among the inputs, ranks and penalty from cross-validation."""
    X = np.hstack([windows.X, _CALENDAR_SCALE * calendar(windows.first)])
    model = HOLRRCV(_OUR_ALPHAS, cv=5).fit(X[windows.known], windows.Y[windows.known])
    return {"HOLRR (ours)": model.predict(X[windows.test])}


def _anomalies(windows: Windows) -> Predictions:
    """HOLRR predicts what deviates from climatology; the simplest model of those that are good."""
    past, future = _seasonal(windows, climatology(windows))
    X, Y = windows.X - past, windows.Y - future
    model = HOLRRCV(_OUR_ALPHAS, cv=5, selection="1se", fit_intercept=False)
    model.fit(X[windows.known], Y[windows.known])
    return {"HOLRR (ours)": future[windows.test] + model.predict(X[windows.test])}


METHODS: dict[str, Callable[[Windows], Predictions]] = {
    "linear": _linear,
    "rbf": _rbf,
    "poly": _poly,
    "trace norm": _trace_norm,
    "climatology": _climatology,
    "calendar": _with_calendar,
    "anomalies": _anomalies,
}
SLOW = ("trace norm",)
