"""Regression problems from a monthly series: past months as inputs, future months as outputs."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch

from ._synthetic import check_sizes

Array = NDArray[np.float64]


def make_forecast_windows(
    data: ArrayLike | Bunch,
    n_past: int = 2,
    n_future: int = 1,
    *,
    calendar: str | None = None,
    n_harmonics: int = 2,
    months: ArrayLike | None = None,
    drop_missing: bool = True,
) -> tuple[Array, Array, NDArray]:
    """Divide a series into all overlapping windows of past and future months.

    Parameters
    ----------
    data : array-like of shape (n_months, d1, ..., dp) or Bunch
        The series, or the result of `fetch_met_office`, which includes its months.
    n_past : int, default=2
        Number of months in the inputs.
    n_future : int, default=1
        Number of months in the outputs, directly after the past months.
    calendar : {"harmonics"} or None, default=None
        Calendar features of the inputs. ``"harmonics"`` appends sines and cosines of the month of
        the year of the first predicted month; None appends nothing.
    n_harmonics : int, default=2
        Number of harmonics, from 1 to 6. Harmonic k has k cycles a year and gives a sine and a
        cosine; the sixth gives only a cosine, since its sine is zero. Six harmonics and an
        intercept can express any mean that depends on the month of the year.
    months : array-like of shape (n_months,) or None, default=None
        Month of every row of an array, for the calendar and for `first_predicted`.
    drop_missing : bool, default=True
        Whether to leave out windows that contain NaN.

    Returns
    -------
    X : ndarray of shape (n_windows, n_past * d1 * ... * dp + n_columns)
        The past months, oldest first, then the columns of the calendar.
    Y : ndarray of shape (n_windows, n_future, d1, ..., dp)
        The future months.
    first_predicted : ndarray of shape (n_windows,)
        First predicted month of each window, or its row number if the months are unknown.

    Notes
    -----
    Neighbouring windows share months. With a random split, the training set contains months of
    the test set, and errors are too low. Split by time for an unbiased estimate.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr.datasets import make_forecast_windows
    >>> data = np.zeros((24, 16, 5))
    >>> months = np.arange("1960-01", "1962-01", dtype="datetime64[M]")
    >>> X, Y, first = make_forecast_windows(data, n_past=2, n_future=3, months=months)
    >>> X.shape, Y.shape, first[0]
    ((20, 160), (20, 3, 16, 5), np.datetime64('1960-03'))
    >>> X, Y, first = make_forecast_windows(data, months=months, calendar="harmonics")
    >>> X.shape
    (22, 164)
    """
    series, steps = _check_series(data, months)
    _check_lengths(len(series), n_past, n_future)
    # NumPy puts the window axis last; a window consists of consecutive months.
    windows = np.moveaxis(sliding_window_view(series, n_past + n_future, axis=0), -1, 1)
    first = steps[n_past : len(series) - n_future + 1]
    columns = _calendar_columns(calendar, first, n_harmonics)
    if drop_missing:
        keep = ~np.isnan(windows).any(axis=tuple(range(1, windows.ndim)))
        windows, first, columns = windows[keep], first[keep], columns[keep]
    past = windows[:, :n_past].reshape(len(windows), n_past * int(np.prod(series.shape[1:])))
    return np.hstack([past, columns]), windows[:, n_past:].copy(), first


def _check_series(data: ArrayLike | Bunch, months: ArrayLike | None) -> tuple[Array, NDArray]:
    """Return the series, and the month of each row, or the row numbers if months are unknown."""
    if isinstance(data, Bunch):
        data, months = data.data, data.months if months is None else months
    series = np.asarray(data, dtype=float)
    if series.ndim < 1:
        raise ValueError(f"data must be an array whose first axis is months; got data={data!r}.")
    if months is None:
        return series, np.arange(len(series))
    steps = np.asarray(months, dtype="datetime64[M]")
    if steps.shape != (len(series),):
        raise ValueError(
            f"months must have one entry for each of the {len(series)} rows of data; "
            f"got an array of shape {steps.shape}."
        )
    if np.any(np.diff(steps) != np.timedelta64(1, "M")):
        raise ValueError("months must increase by one month from each row of data to the next.")
    return series, steps


def _check_lengths(n_months: int, n_past: int, n_future: int) -> None:
    check_sizes(n_past=n_past, n_future=n_future)
    if n_past + n_future > n_months:
        raise ValueError(
            f"n_past + n_future must not exceed the {n_months} months of data; "
            f"got n_past={n_past} and n_future={n_future}."
        )


def _calendar_columns(calendar: str | None, first: NDArray, n_harmonics: int) -> Array:
    if calendar is None:
        return np.empty((len(first), 0))
    if calendar != "harmonics":
        raise ValueError(f"calendar must be 'harmonics' or None; got calendar={calendar!r}.")
    if first.dtype.kind != "M":
        raise ValueError("calendar='harmonics' needs the months of all rows; pass months=...")
    if n_harmonics not in range(1, 7):
        raise ValueError(
            f"n_harmonics must be an int from 1 to 6; got n_harmonics={n_harmonics!r}."
        )
    # datetime64[M] counts months from January 1970.
    angle = 2 * np.pi * (first.astype(int) % 12)[:, None] * np.arange(1, n_harmonics + 1) / 12
    return np.hstack([np.sin(angle[:, :5]), np.cos(angle)])
