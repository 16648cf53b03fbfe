"""Plots of unusual inputs and of outliers among training rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..diagnostics import InputDiagnostics, Outliers, diagnose_inputs, find_outliers
from . import _style as style

__all__ = ["InputDiagnosticsDisplay", "OutlierDisplay"]

# An axis is logarithmic if the largest value exceeds this multiple of the limit.
_FAR = 5.0


class InputDiagnosticsDisplay:
    """Plot of DModX against T2 of rows of inputs, with limits from the training inputs.

    Rows within both limits are similar to the training inputs. It is recommended to use
    `from_estimator` or `from_diagnostics` to create an `InputDiagnosticsDisplay`.

    Parameters
    ----------
    diagnostics : InputDiagnostics
        Distances and limits.
    name : str, optional
        Name of the rows in the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        The figure.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr.diagnostics import InputMonitor, diagnose_inputs
    >>> from holrr.plotting import InputDiagnosticsDisplay
    >>> X = np.random.default_rng(0).normal(size=(200, 6))
    >>> monitor = InputMonitor().fit(X)
    >>> display = InputDiagnosticsDisplay.from_estimator(monitor, X, name="training")
    >>> found = diagnose_inputs(monitor, 4 * X[:20], level=0.99)
    >>> both = InputDiagnosticsDisplay.from_diagnostics(found, name="new", ax=display.ax_)
    >>> again = both.plot(n_labels=3)  # in a new figure
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
        """Plot the distances of rows of inputs from those of a monitor.

        Parameters
        ----------
        estimator : InputMonitor or Pipeline
            As in `diagnose_inputs`.
        X : array of shape (n_samples, n_features)
            Inputs, in the format that they had in `fit`.
        level : float, default=0.99
            Share of ordinary rows below each limit.
        n_labels : int, default=8
            Largest number of rows outside the limits that are labelled, the farthest rows first.
        name : str, optional
            Name of the rows in the legend.
        ax : matplotlib Axes, optional
            The axes to draw in, which may show other rows. The default is a new figure.

        Returns
        -------
        InputDiagnosticsDisplay
            The display.
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
        """Plot the result of `diagnose_inputs`.

        Parameters
        ----------
        diagnostics : InputDiagnostics
            Distances and limits.
        n_labels, name, ax
            As in `from_estimator`.

        Returns
        -------
        InputDiagnosticsDisplay
            The display.
        """
        return cls(diagnostics=diagnostics, name=name).plot(n_labels=n_labels, ax=ax)

    def plot(self, *, n_labels: int = 8, ax: Any = None) -> InputDiagnosticsDisplay:
        """Plot the rows, the limits, and the labels of rows outside the limits.

        Parameters
        ----------
        n_labels, ax
            As in `from_estimator`.

        Returns
        -------
        self
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
        _legend_above(ax)
        style.tidy(ax)
        return self


class OutlierDisplay:
    """Plot of the held-out residuals of training rows, with limits.

    It is recommended to use `from_estimator` or `from_outliers` to create an `OutlierDisplay`.

    Parameters
    ----------
    outliers : Outliers
        Residuals and limits.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        The figure.

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
    >>> again = display.plot(n_labels=1)  # in a new figure
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
        """Plot the held-out residuals of the training rows of an estimator.

        Parameters
        ----------
        estimator : estimator
            As in `find_outliers`.
        X, y : arrays of shape (n_samples, n_features) and (n_samples, d1, ..., dp), optional
            Data of the fit, required for estimators without held-out residuals.
        level : float, default=0.99
            Share of ordinary rows below the limit.
        n_labels : int, default=8
            Largest number of rows above the limit that are labelled, the farthest rows first.
        ax : matplotlib Axes, optional
            The axes to draw in. The default is a new figure.
        options : dict
            Parameters of `find_outliers`: `cv`, `sample_weight` and `groups`.

        Returns
        -------
        OutlierDisplay
            The display.
        """
        found = find_outliers(estimator, X, y, level=level, **options)
        return cls.from_outliers(found, n_labels=n_labels, ax=ax)

    @classmethod
    def from_outliers(
        cls, outliers: Outliers, *, n_labels: int = 8, ax: Any = None
    ) -> OutlierDisplay:
        """Plot the result of `find_outliers`.

        Parameters
        ----------
        outliers : Outliers
            Residuals and limits.
        n_labels, ax
            As in `from_estimator`.

        Returns
        -------
        OutlierDisplay
            The display.
        """
        return cls(outliers=outliers).plot(n_labels=n_labels, ax=ax)

    def plot(self, *, n_labels: int = 8, ax: Any = None) -> OutlierDisplay:
        """Plot a stem for each row, the limit, and the labels of rows above the limit.

        Parameters
        ----------
        n_labels, ax
            As in `from_estimator`.

        Returns
        -------
        self
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
        _legend_above(ax)
        style.tidy(ax)
        return self


def _legend_above(ax: Any) -> None:
    """Draw the legend above the axes, where it hides no point."""
    where = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": 3}
    ax.legend(fontsize=7, frameon=False, handlelength=1.6, columnspacing=1.2, **where)


def _stretch(axis: Any, limit: float, *, bottom: bool = False) -> None:
    """Set a logarithmic scale if some points are far beyond the limit."""
    axes, name = axis.axes, axis.axis_name
    drawn = [np.asarray(each.get_offsets()) for each in axes.collections]
    column = np.concatenate([each[:, "xy".index(name)] for each in drawn])
    values = column[column > 0]  # other collections have zeros
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
    """Write labels next to the points of largest positive distance."""
    for k in np.argsort(-np.nan_to_num(distance), kind="stable")[: max(n_labels, 0)]:
        if not distance[k] > 0:
            break
        name = str(k) if labels is None else _shown(labels[k])
        where = {"xytext": (4, 3), "textcoords": "offset points", "fontsize": 7}
        ax.annotate(style.short(name), (x[k], y[k]), **where, annotation_clip=True)


def _shown(label: Any) -> str:
    """Return a short label: the day of a date, or the levels of a tuple."""
    if isinstance(label, tuple):
        return ", ".join(map(_shown, label))
    if isinstance(label, np.datetime64):
        return str(np.datetime_as_string(label, unit="D"))
    return f"{label:g}" if isinstance(label, float) else str(label)
