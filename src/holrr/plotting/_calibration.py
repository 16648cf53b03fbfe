"""What intervals promise against what they keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..metrics.coverage import check_intervals, interval_coverage
from . import _style as style

__all__ = ["IntervalCalibrationDisplay"]


class IntervalCalibrationDisplay:
    """Observed against nominal coverage of prediction intervals; on the diagonal they are honest.

    Use `from_estimator` or `from_predictions` to make one.

    Parameters
    ----------
    nominal : array of shape (n,)
        Coverages that were promised.
    observed : array of shape (n,)
        Coverages that were found.
    by_output : array of shape (n, D), optional
        Those of each output, of which the band shows the middle 80 percent.
    name : str, optional
        What the intervals are of, for the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from holrr.plotting import IntervalCalibrationDisplay
    >>> y = np.random.default_rng(0).uniform(size=(200, 4))
    >>> intervals = {c: (0 * y, 0 * y + c) for c in (0.2, 0.5, 0.8)}
    >>> display = IntervalCalibrationDisplay.from_predictions(y, intervals)
    >>> again = display.plot()  # once more, in a figure of its own

    Beside a model that makes its intervals itself:

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
        """Draw the coverage of an estimator's intervals on data that it has not seen.

        Parameters
        ----------
        estimator : estimator with `predict_interval`
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples, d1, ..., dp)
            NaN entries are passed over.
        coverages : sequence of floats
            The coverages to ask for.
        kind : {"entry", "pooled", "simultaneous"}, default="entry"
            As in `predict_interval`. Intervals for all entries at once cover a sample where they
            cover all of its entries.
        sample_weight : array of shape (n_samples,), optional
        name : str, optional
            For the legend; by default the class of the estimator.
        ax : matplotlib Axes, optional
            Where to draw, onto earlier curves for instance; a new figure by default.
        """
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
        """Draw the coverage of given intervals.

        Parameters
        ----------
        y : array of shape (n_samples, d1, ..., dp)
        intervals : dict of pairs of arrays of the shape of `y`
            Nominal coverages with the lower and upper ends of their intervals.
        simultaneous : bool, default=False
            Whether a sample counts as a whole.
        sample_weight, name, ax
            As in `from_estimator`.
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
        """Draw the curve, the diagonal and, of several outputs, where most of them are.

        Parameters
        ----------
        ax
            As in `from_estimator`.
        """
        self.figure_, self.ax_ = style.axes_of(ax, 3.8, 3.6)
        ax, first = self.ax_, not self.ax_.lines
        if first:
            ax.plot([0, 1], [0, 1], "--", color=style.DARK, lw=1, label="as promised")
        # One colour and marker for each curve, so that they differ in grey print, too.
        n = len(ax.lines) - 1
        color, marker = (style.MAIN, *(f"C{i}" for i in range(1, 10)))[n % 10], "osD^v"[n % 5]
        error = np.mean(np.abs(self.observed - self.nominal))
        label = f"{self.name or 'observed'} (off by {error:.3f})"
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
