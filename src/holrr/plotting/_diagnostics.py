"""Unusual inputs and outliers among training rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..diagnostics import InputDiagnostics, Outliers, diagnose_inputs, find_outliers
from . import _style as style

__all__ = ["InputDiagnosticsDisplay", "OutlierDisplay"]

# An axis is logarithmic from this ratio of the largest value to the limit on.
_FAR = 5.0


class InputDiagnosticsDisplay:
    """T2 against DModX of rows of inputs, with the limits from the rows of a fit.

    Rows within both limits are like those of the fit. Use `from_estimator` or `from_diagnostics` to
    make one.

    Parameters
    ----------
    diagnostics : InputDiagnostics
        Distances and limits.
    name : str, optional
        What the rows are, for the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from holrr import RLS
    >>> from holrr.diagnostics import diagnose_inputs
    >>> from holrr.plotting import InputDiagnosticsDisplay
    >>> X = np.random.default_rng(0).normal(size=(200, 6))
    >>> model = RLS().fit(X, X[:, :2])
    >>> display = InputDiagnosticsDisplay.from_estimator(model, X, name="training")
    >>> found = diagnose_inputs(model, 4 * X[:20], level=0.99)
    >>> both = InputDiagnosticsDisplay.from_diagnostics(found, name="new", ax=display.ax_)
    >>> again = both.plot(n_labels=3)  # once more, in a figure of its own
    """

    def __init__(self, *, diagnostics: InputDiagnostics, name: str | None = None):
        self.diagnostics, self.name = diagnostics, name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        level: float = 0.99,
        n_labels: int = 8,
        name: str | None = None,
        ax: Any = None,
    ) -> InputDiagnosticsDisplay:
        """Draw the distances of rows from those that an estimator was fitted to.

        Parameters
        ----------
        estimator : estimator, Pipeline or InputMonitor
            As in `diagnose_inputs`.
        X : array of shape (n_samples, n_features)
        level : float, default=0.99
            Share of ordinary rows that is below each limit.
        n_labels : int, default=8
            Number of rows outside the limits, the farthest ones, that are labelled.
        name : str, optional
            For the legend.
        ax : matplotlib Axes, optional
            Where to draw, onto other rows for instance; a new figure by default.
        """
        found = diagnose_inputs(estimator, X, level=level)
        return cls.from_diagnostics(found, n_labels=n_labels, name=name, ax=ax)

    @classmethod
    def from_diagnostics(
        cls,
        diagnostics: InputDiagnostics,
        *,
        n_labels: int = 8,
        name: str | None = None,
        ax: Any = None,
    ) -> InputDiagnosticsDisplay:
        """Draw distances that are known.

        Parameters
        ----------
        diagnostics : InputDiagnostics
        n_labels, name, ax
            As in `from_estimator`.
        """
        return cls(diagnostics=diagnostics, name=name).plot(n_labels=n_labels, ax=ax)

    def plot(self, *, n_labels: int = 8, ax: Any = None) -> InputDiagnosticsDisplay:
        """Draw the rows, the limits, and the labels of rows outside.

        Parameters
        ----------
        n_labels, ax
            As in `from_estimator`.
        """
        found = self.diagnostics
        self.figure_, self.ax_ = style.axes_of(ax, 4.6, 3.8)
        ax, first = self.ax_, not self.ax_.lines
        x, y, outside = found.t2, found.dmodx, found.outside
        x_limit, y_limit = found.t2_limit, found.dmodx_limit
        if first:
            percent = f"{100 * found.level:g} % limits"
            ax.axvline(x_limit, ls="--", color=style.DARK, lw=1, label=percent)
            ax.axhline(y_limit, ls="--", color=style.DARK, lw=1)
        n = len(ax.collections)
        color, marker = (style.MAIN, "#5b8f3a", "#7b4ea3")[n // 2 % 3], "osD"[n // 2 % 3]
        label = f"{self.name or 'rows'} ({outside.sum()} of {outside.size} outside)"
        inside = {"s": 12, "marker": marker, "color": color, "alpha": 0.6, "lw": 0}
        ax.scatter(x[~outside], y[~outside], **inside, label=label)
        ax.scatter(
            x[outside], y[outside], s=20, marker=marker, color=style.ACCENT, ec=color, lw=0.8
        )
        _stretch(ax.xaxis, x_limit)
        _stretch(ax.yaxis, y_limit)
        distance = np.maximum(x / (x_limit or 1.0), (y / y_limit) ** 2)
        _label_points(ax, x, y, np.where(outside, distance, 0.0), found.labels, n_labels)
        ax.set_xlabel(f"Hotelling's T2 ({found.n_components} components)", fontsize=9)
        ax.set_ylabel("DModX, the root of Q over the number of inputs", fontsize=9)
        ax.legend(loc="best", fontsize=7, frameon=False, handlelength=1.6)
        style.tidy(ax)
        return self


class OutlierDisplay:
    """Held-out residuals of training rows, with the limit for ordinary rows.

    Use `from_estimator` or `from_outliers` to make one.

    Parameters
    ----------
    outliers : Outliers
        Residuals and limits.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from holrr import RLSCV
    >>> from holrr.datasets import make_tensor_regression
    >>> from holrr.diagnostics import find_outliers
    >>> from holrr.plotting import OutlierDisplay
    >>> X, Y = make_tensor_regression(90, 6, (4, 3), rank=2, snr=9, random_state=0)
    >>> Y[17] *= 5
    >>> model = RLSCV().fit(X, Y)
    >>> display = OutlierDisplay.from_estimator(model)
    >>> display = OutlierDisplay.from_outliers(find_outliers(model, level=0.999))
    >>> again = display.plot(n_labels=1)  # once more, in a figure of its own
    """

    def __init__(self, *, outliers: Outliers):
        self.outliers = outliers

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        level: float = 0.99,
        n_labels: int = 8,
        ax: Any = None,
        **options: Any,
    ) -> OutlierDisplay:
        """Draw the held-out residuals of the rows that an estimator was fitted to.

        Parameters
        ----------
        estimator : estimator
            As in `find_outliers`.
        X, y : arrays of shape (n_samples, n_features) and (n_samples, d1, ..., dp), optional
            For estimators without held-out residuals.
        level : float, default=0.99
            Share of ordinary rows that is below the limit.
        n_labels : int, default=8
            Number of rows above the limit, the farthest ones, that are labelled.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        options : dict
            Passed to `find_outliers`: `cv`, `sample_weight` and `groups`.
        """
        found = find_outliers(estimator, X, y, level=level, **options)
        return cls.from_outliers(found, n_labels=n_labels, ax=ax)

    @classmethod
    def from_outliers(
        cls, outliers: Outliers, *, n_labels: int = 8, ax: Any = None
    ) -> OutlierDisplay:
        """Draw residuals that are known.

        Parameters
        ----------
        outliers : Outliers
        n_labels, ax
            As in `from_estimator`.
        """
        return cls(outliers=outliers).plot(n_labels=n_labels, ax=ax)

    def plot(self, *, n_labels: int = 8, ax: Any = None) -> OutlierDisplay:
        """Draw a stem for each row in order, the limit, and the labels of rows above it.

        Parameters
        ----------
        n_labels, ax
            As in `from_estimator`.
        """
        found = self.outliers
        self.figure_, self.ax_ = style.axes_of(ax, 6.2, 3.2)
        ax, y, outside = self.ax_, found.residuals, found.outside
        x = np.arange(y.size)
        ax.vlines(x, 0, y, color=style.MUTED, lw=min(1.2, 200 / max(y.size, 1)))
        for rows, color, size in ((~outside, style.MAIN, 10), (outside, style.ACCENT, 22)):
            ax.scatter(x[rows], y[rows], s=size, color=color, lw=0, zorder=3)
        percent = f"{100 * found.level:g} % limit ({outside.sum()} of {y.size} rows above it)"
        ax.step(x, found.limits, where="mid", ls="--", color=style.DARK, lw=1, label=percent)
        _stretch(ax.yaxis, float(np.nanmax(found.limits, initial=1.0)), bottom=True)
        _label_points(ax, x, y, np.where(outside, y / found.limits, 0.0), found.labels, n_labels)
        ax.set(xlim=(-1, y.size))
        ax.set_xlabel("training row", fontsize=9)
        ax.set_ylabel("studentised held-out residual\n(root mean square)", fontsize=9)
        ax.legend(loc="upper right", fontsize=7, frameon=False)
        style.tidy(ax)
        return self


def _stretch(axis: Any, limit: float, *, bottom: bool = False) -> None:
    """Return a logarithmic axis where some points are far beyond the limit."""
    axes, name = axis.axes, axis.axis_name
    drawn = [np.asarray(each.get_offsets()) for each in axes.collections]
    column = np.concatenate([each[:, "xy".index(name)] for each in drawn])
    values = column[column > 0]  # those of other collections are zero
    if limit > 0 and values.size and values.max() > _FAR * limit:
        getattr(axes, f"set_{name}scale")("log")
        low = 0.8 * min(float(values.min()), limit)
        getattr(axes, f"set_{name}lim")(max(low, 1e-3 * limit), None)
    elif bottom:
        getattr(axes, f"set_{name}lim")(0, None)


def _label_points(
    ax: Any,
    x: np.ndarray,
    y: np.ndarray,
    distance: np.ndarray,
    labels: np.ndarray | None,
    n_labels: int,
) -> None:
    """Names beside the points of largest positive distance."""
    for k in np.argsort(-np.nan_to_num(distance), kind="stable")[: max(n_labels, 0)]:
        if not distance[k] > 0:
            break
        name = str(k) if labels is None else _shown(labels[k])
        where = {"xytext": (4, 3), "textcoords": "offset points", "fontsize": 7}
        ax.annotate(style.short(name), (x[k], y[k]), **where, annotation_clip=True)


def _shown(label: Any) -> str:
    """Return a label in few letters: the day of a date, the levels of a tuple side by side."""
    if isinstance(label, tuple):
        return ", ".join(map(_shown, label))
    if isinstance(label, np.datetime64):
        return str(np.datetime_as_string(label, unit="D"))
    return f"{label:g}" if isinstance(label, float) else str(label)
