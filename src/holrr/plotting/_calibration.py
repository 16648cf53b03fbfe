"""Observed against nominal coverage of prediction intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..data.pipelines import inputs_of_last_step, last_step
from ..metrics.coverage import check_intervals, interval_coverage
from . import _style as style

__all__ = ["IntervalCalibrationDisplay"]


class IntervalCalibrationDisplay:
    """Plot of the observed against the nominal coverage of prediction intervals.

    Calibrated intervals lie on the diagonal. It is recommended to use `from_estimator` or
    `from_predictions` to create an `IntervalCalibrationDisplay`.

    Parameters
    ----------
    nominal : array of shape (n,)
        Nominal coverages.
    observed : array of shape (n,)
        Observed coverages.
    by_output : array of shape (n, D), optional
        Observed coverages of each output. The band shows the middle 80 percent of them.
    name : str, optional
        Name of the intervals in the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        The figure.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr.plotting import IntervalCalibrationDisplay
    >>> y = np.random.default_rng(0).uniform(size=(200, 4))
    >>> intervals = {c: (0 * y, 0 * y + c) for c in (0.2, 0.5, 0.8)}
    >>> display = IntervalCalibrationDisplay.from_predictions(y, intervals)
    >>> again = display.plot()  # in a new figure

    The curve of a model with prediction intervals in the same axes:

    >>> from holrr import RLSCV
    >>> from holrr.datasets import make_tensor_regression
    >>> X, Y = make_tensor_regression(90, n_features=5, rank=2, snr=1.0, random_state=0)
    >>> model = RLSCV().fit(X[:60], Y[:60])
    >>> both = IntervalCalibrationDisplay.from_estimator(model, X[60:], Y[60:], ax=display.ax_)
    """

    def __init__(
        self,
        *,
        nominal: np.ndarray,
        observed: np.ndarray,
        by_output: np.ndarray | None = None,
        name: str | None = None,
    ):
        self.nominal, self.observed = np.asarray(nominal), np.asarray(observed)
        self.by_output, self.name = by_output, name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        coverages: Sequence[float] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95),
        kind: str = "entry",
        sample_weight: Any = None,
        name: str | None = None,
        ax: Any = None,
    ) -> IntervalCalibrationDisplay:
        """Plot the coverage of the prediction intervals of an estimator on new data.

        Parameters
        ----------
        estimator : estimator with `predict_interval`
            A fitted estimator.
        X : array of shape (n_samples, n_features)
            Inputs of samples that the fit has not seen.
        y : array of shape (n_samples, d1, ..., dp)
            Outputs. NaN entries are skipped.
        coverages : sequence of floats
            Nominal coverages.
        kind : {"entry", "pooled", "simultaneous"}, default="entry"
            As in `predict_interval`. Simultaneous intervals cover a sample if they cover all of
            its entries.
        sample_weight : array of shape (n_samples,), optional
            Weights of the samples.
        name : str, optional
            Name in the legend. The default is the class of the estimator.
        ax : matplotlib Axes, optional
            The axes to draw in, which may have other curves. The default is a new figure.

        Returns
        -------
        IntervalCalibrationDisplay
            The display.
        """
        X, estimator = inputs_of_last_step(estimator, X), last_step(estimator)
        intervals = {c: estimator.predict_interval(X, coverage=c, kind=kind) for c in coverages}
        options = {"simultaneous": kind == "simultaneous", "sample_weight": sample_weight}
        name = type(estimator).__name__ if name is None else name
        return cls.from_predictions(y, intervals, name=name, ax=ax, **options)

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        intervals: Mapping[float, tuple[Any, Any]],
        *,
        simultaneous: bool = False,
        sample_weight: Any = None,
        name: str | None = None,
        ax: Any = None,
    ) -> IntervalCalibrationDisplay:
        """Plot the coverage of given intervals.

        Parameters
        ----------
        y : array of shape (n_samples, d1, ..., dp)
            Outputs.
        intervals : dict of pairs of arrays of the shape of `y`
            Nominal coverages as keys, with pairs of the lower and upper ends of their intervals.
        simultaneous : bool, default=False
            Whether a sample is covered only if all of its entries are covered.
        sample_weight, name, ax
            As in `from_estimator`.

        Returns
        -------
        IntervalCalibrationDisplay
            The display.
        """
        check_intervals(intervals)
        nominal = np.sort(list(intervals))
        pairs = [intervals[c] for c in nominal]

        def coverage(average: str | None) -> np.ndarray:
            options = {"sample_weight": sample_weight, "average": average}
            return np.array([np.ravel(interval_coverage(y, *ab, **options)) for ab in pairs])

        observed = coverage("samples" if simultaneous else "pooled")[:, 0]
        by_output = None if simultaneous else coverage(None)
        return cls(nominal=nominal, observed=observed, by_output=by_output, name=name).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> IntervalCalibrationDisplay:
        """Plot the curve, the diagonal and, for several outputs, a band of their coverages.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            As in `from_estimator`.

        Returns
        -------
        self
        """
        self.figure_, self.ax_ = style.axes_of(ax, 3.8, 3.6)
        ax, first = self.ax_, not self.ax_.lines
        if first:
            ax.plot([0, 1], [0, 1], "--", color=style.DARK, lw=1, label="as promised")
        # Each curve has its own colour and marker, so that curves also differ in grey print.
        n = len(ax.lines) - 1
        color, marker = (style.MAIN, *(f"C{i}" for i in range(1, 10)))[n % 10], "osD^v"[n % 5]
        error = np.mean(np.abs(self.observed - self.nominal))
        label = f"{self.name or 'observed'} (calibration error {error:.3f})"
        ax.plot(self.nominal, self.observed, marker=marker, ms=4, color=color, label=label)
        if self.by_output is not None and self.by_output.shape[1] > 1:
            low, high = np.nanquantile(self.by_output, [0.1, 0.9], axis=1)
            band = {"color": color, "alpha": 0.18, "lw": 0}
            ax.fill_between(self.nominal, low, high, label="80 % of the outputs" * first, **band)
        ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
        ax.set_xlabel("nominal coverage", fontsize=9)
        ax.set_ylabel("observed coverage", fontsize=9)
        ax.legend(loc="upper left", fontsize=7, frameon=False, handlelength=1.6)
        style.tidy(ax)
        return self
