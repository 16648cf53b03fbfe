"""Methods of the forecasting experiment, which predict the test windows of a split."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from holrr import (
    HOLRRCV,
    LRRCV,
    RLSCV,
    KernelLRRCV,
    KernelRLSCV,
    trace_norm_path,
)

from .algorithm_1 import PaperHOLRRCV

__all__ = ["CROSS_VALIDATED", "METHODS", "SLOW", "Forecast", "Windows"]

Array = NDArray[np.float64]

# Decades up to 10; with larger penalties RLS is better than the paper reports. Nearly every linear
# search chooses 10, so each is repeated with a grid that contains the optimum.
ALPHAS = tuple(10.0**e for e in range(-5, 2))
WIDE_ALPHAS = tuple(10.0**e for e in range(-5, 6))
GAMMAS = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
WIDE_GAMMAS = tuple(10.0**e for e in np.arange(-5, -0.5, 0.5))
# The paper does not specify its polynomial kernel. The normalised kernel is closest to its numbers.
DEGREES, OFFSETS = (2, 3, 4), (0.0, 1.0)
PENALTIES = tuple(10.0**e for e in np.arange(1, 2.5, 0.25))


@dataclass(frozen=True, eq=False)
class Windows:
    """All windows of past and future months, and a split of the windows.

    Parameters
    ----------
    X : array of shape (n_windows, n_features)
        Past months, flattened, oldest first.
    Y : array of shape (n_windows, k, n_stations, n_variables)
        Months to predict.
    first : int array of shape (n_windows,)
        First predicted month, counted from a January.
    test, valid, train : int arrays
        Indices of test, validation and training windows.
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


@dataclass(frozen=True, eq=False)
class Forecast:
    """Predictions of one method for the test windows.

    Parameters
    ----------
    predicted : array of shape (n_test, k, n_stations, n_variables)
        Predictions.
    at_edge : bool or None
        Whether the search chose an end of its grid; None without a search.
    error : float
        Mean squared error on the validation windows; NaN without validation.
    """

    predicted: Array
    at_edge: bool | None = None
    error: float = np.nan


Forecasts = dict[str, Forecast]

# ---------------------------------------------------------------- the paper's protocol


def by_validation(search: Any, windows: Windows, X: Array | None = None) -> Forecast:
    """Return the forecast of the model with the least validation error.

    The model is fitted to the training windows alone, as in the paper.

    Parameters
    ----------
    search : estimator
        Search, whose only fold becomes the validation set.
    windows : Windows
        Windows and their split.
    X : array of shape (n_windows, n_features), optional
        Inputs that replace those of `windows`.
    """
    X = windows.X if X is None else X
    n_train = len(windows.train)
    everything = np.arange(len(windows.known))
    search.set_params(cv=[(everything[:n_train], everything[n_train:])], fit_intercept=False)
    search.fit(X[windows.known], windows.Y[windows.known])
    model = clone(search.best_estimator_).fit(X[windows.train], windows.Y[windows.train])
    predicted = model.predict(X[windows.test])
    return Forecast(predicted, at_edge(search), -search.best_score_)


def at_edge(search: Any) -> bool:
    """Return whether the chosen penalty, or kernel width, is the first or last of its grid."""
    pairs = [(search.alpha_, search.alphas)]
    kernels = search.get_params().get("kernel") or ()
    widths = {kernel["gamma"] for kernel in kernels if isinstance(kernel, dict)}
    if len(widths) > 1:
        pairs.append((search.best_estimator_.gamma, widths))
    return any(value <= min(grid) or value >= max(grid) for value, grid in pairs)


def _linear(windows: Windows, alphas: Sequence[float] = ALPHAS) -> Forecasts:
    searches = {
        "RLS": RLSCV(alphas, selection="min"),
        "LRR": LRRCV(alphas, selection="min"),
        "HOLRR": PaperHOLRRCV(alphas),
    }
    return {name: by_validation(search, windows) for name, search in searches.items()}


def _kernel_searches(
    kernels: Sequence[dict[str, Any]], alphas: Sequence[float] = ALPHAS
) -> dict[str, Any]:
    common: dict[str, Any] = {"kernel": kernels, "center_kernel": False, "selection": "min"}
    return {
        "RLS": KernelRLSCV(alphas, **common),
        "LRR": KernelLRRCV(alphas, **common),
        "HOLRR": PaperHOLRRCV(alphas, kernel=kernels),
    }


def _rbf(
    windows: Windows, alphas: Sequence[float] = ALPHAS, gammas: Sequence[float] = GAMMAS
) -> Forecasts:
    searches = _kernel_searches([{"kernel": "rbf", "gamma": g} for g in gammas], alphas)
    return {name: by_validation(search, windows) for name, search in searches.items()}


def _poly(windows: Windows) -> Forecasts:
    """Predict with normalised polynomial kernels: plain kernels of inputs scaled to length one."""
    kernels = [{"kernel": "poly", "degree": d, "gamma": 1.0, "coef0": 0.0} for d in DEGREES]
    found: dict[str, list[Forecast]] = {}
    for offset in OFFSETS:
        X = on_sphere(windows.X, offset)
        for name, search in _kernel_searches(kernels).items():
            found.setdefault(name, []).append(by_validation(search, windows, X))
    return {name: min(tried, key=lambda f: f.error) for name, tried in found.items()}


def on_sphere(X: Array, offset: float) -> Array:
    """Return the inputs ``(x, sqrt(offset))``, scaled to length one.

    The power d of their inner products is the normalised polynomial kernel
    ``(x'y + c)^d / sqrt((x'x + c)^d (y'y + c)^d)``.
    """
    X = np.hstack([X, np.full((len(X), 1), np.sqrt(offset))])
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def _trace_norm(windows: Windows) -> Forecasts:
    # A smaller tolerance changes the forecasts by less than a hundredth of their standard error.
    X, Y, train = windows.X, windows.Y, windows.train
    options: dict[str, Any] = {"fit_intercept": False, "tol": 1e-3, "max_iter": 500}
    models = trace_norm_path(X[train], Y[train], PENALTIES, **options)
    held = windows.known[len(train) :]
    errors = [float(np.mean((model.predict(X[held]) - Y[held]) ** 2)) for model in models]
    best = int(np.argmin(errors))
    is_end = best in (0, len(models) - 1)
    return {"Trace norm": Forecast(models[best].predict(X[windows.test]), is_end, errors[best])}


# ---------------------------------------------------------------- climatology and calendar


def climatology(windows: Windows) -> Array:
    """Return the mean of each month of the year over the months of the training windows.

    Each month of the training and validation windows counts once, whether past or predicted.

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
    """Return the climatology of the inputs and of the outputs of every window."""
    k, d = windows.Y.shape[1], int(np.prod(windows.Y.shape[2:]))
    n_past = windows.X.shape[1] // d
    months = windows.first[:, None] + np.arange(-n_past, k)
    seasonal = means[months % 12]
    return seasonal[:, :n_past].reshape(windows.X.shape), seasonal[:, n_past:]


def _climatology(windows: Windows) -> Forecasts:
    _, season = _seasonal(windows, climatology(windows))
    return {"Climatology": Forecast(season[windows.test])}


# Factor of sines and cosines, so that the penalty hardly shrinks their coefficients.
_CALENDAR_SCALE = 100.0
_OUR_ALPHAS = tuple(10.0**e for e in np.arange(0, 5.5, 0.5))


def calendar(first: NDArray[np.int64], n_harmonics: int = 2) -> Array:
    """Return sines and cosines of the month of the year."""
    angle = 2 * np.pi * (first % 12)[:, None] * np.arange(1, n_harmonics + 1) / 12
    return np.hstack([np.sin(angle), np.cos(angle)])


# Searches as a user would write them: training and validation windows, an intercept, 5-fold
# cross-validation and a refit. To add another selection, add a line.
CROSS_VALIDATED: dict[str, Any] = {
    "RLS": RLSCV(_OUR_ALPHAS, cv=5, selection="min"),
    "LRR": LRRCV(_OUR_ALPHAS, cv=5, selection="min"),
    "HOLRR": HOLRRCV(_OUR_ALPHAS, cv=5, selection="min"),
    "HOLRR, stack": HOLRRCV(_OUR_ALPHAS, cv=5, selection="stack"),
}


def _cross_validated(windows: Windows) -> Forecasts:
    known, test = windows.known, windows.test
    found = {}
    for name, search in CROSS_VALIDATED.items():
        model = clone(search).fit(windows.X[known], windows.Y[known])
        found[name] = Forecast(model.predict(windows.X[test]), at_edge(model))
    return found


def _with_calendar(windows: Windows) -> Forecasts:
    """Fit HOLRRCV to training and validation windows, with the calendar as additional inputs."""
    X = np.hstack([windows.X, _CALENDAR_SCALE * calendar(windows.first)])
    model = HOLRRCV(_OUR_ALPHAS, cv=5, selection="min")
    model.fit(X[windows.known], windows.Y[windows.known])
    return {"HOLRR (ours)": Forecast(model.predict(X[windows.test]), at_edge(model))}


def _anomalies(windows: Windows) -> Forecasts:
    """Predict the anomalies from climatology by HOLRR, with the one-standard-error rule."""
    past, future = _seasonal(windows, climatology(windows))
    X, Y = windows.X - past, windows.Y - future
    model = HOLRRCV(_OUR_ALPHAS, cv=5, selection="1se", fit_intercept=False)
    model.fit(X[windows.known], Y[windows.known])
    predicted = future[windows.test] + model.predict(X[windows.test])
    return {"HOLRR (ours)": Forecast(predicted, at_edge(model))}


METHODS: dict[str, Callable[[Windows], Forecasts]] = {
    "linear": _linear,
    "rbf": _rbf,
    "poly": _poly,
    "trace norm": _trace_norm,
    "linear, wide": partial(_linear, alphas=WIDE_ALPHAS),
    "rbf, wide": partial(_rbf, alphas=WIDE_ALPHAS, gammas=WIDE_GAMMAS),
    "cross-validated": _cross_validated,
    "climatology": _climatology,
    "calendar": _with_calendar,
    "anomalies": _anomalies,
}
SLOW = ("trace norm",)
