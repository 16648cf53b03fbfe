"""Observed against predicted outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..data.labels import Grid
from ..metrics import r2
from ..metrics.scores import open_all, rows_of
from . import style

__all__ = ["PredictionDisplay"]

_MAX_PANELS = 16
_MAX_POINTS = 3000


class PredictionDisplay:
    """Plot of observed against predicted outputs, with the line on which both are equal.

    It is recommended to use `from_estimator` or `from_predictions` to create a
    `PredictionDisplay`.

    Parameters
    ----------
    y_true, y_pred : arrays of shape (n_samples, d1, ..., dp)
        Observed and predicted outputs. Entries that are NaN in one of them are left out.
    mode_names : sequence of p strings, optional
        Names of the output modes.
    coordinates : sequence of p arrays of shape (d_i,), optional
        Labels of the entries of each mode. The default is their positions.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure.
    axes_ : array of Axes
        The axes, one for each panel.

    See Also
    --------
    holrr.metrics.skill_map : Skill of each output as numbers.

    Examples
    --------
    >>> from holrr import HOLRR
    >>> from holrr.datasets import make_tensor_regression
    >>> from holrr.plotting import PredictionDisplay
    >>> X, Y = make_tensor_regression(90, 5, (4, 3), rank=2, snr=1.0, random_state=0)
    >>> model = HOLRR(rank=2).fit(X[:60], Y[:60])
    >>> display = PredictionDisplay.from_estimator(model, X[60:], Y[60:])
    >>> display = PredictionDisplay.from_predictions(Y[60:], model.predict(X[60:]))
    >>> display.plot(mode=2).axes_.shape  # a panel for each entry of the second output mode
    (3,)
    """

    def __init__(
        self,
        *,
        y_true: Any,
        y_pred: Any,
        mode_names: Sequence[str] | None = None,
        coordinates: Sequence[Any] | None = None,
    ):
        self.y_true = np.asarray(y_true, dtype=np.float64)
        self.y_pred = np.asarray(y_pred, dtype=np.float64)
        if self.y_true.shape != self.y_pred.shape:
            raise ValueError(
                f"y_pred must have the shape of y_true, {self.y_true.shape}; got "
                f"{self.y_pred.shape}."
            )
        shape = self.y_true.shape[1:]
        default = [f"mode{i}" for i in range(1, 1 + len(shape))]
        self.mode_names = default if mode_names is None else list(mode_names)
        grids = [np.arange(d) for d in shape]
        self.coordinates = grids if coordinates is None else [np.asarray(c) for c in coordinates]
        sizes = tuple(c.size for c in self.coordinates)
        if len(self.mode_names) != len(shape) or sizes != shape:
            raise ValueError(
                f"mode_names and coordinates must fit outputs of shape {shape}; got "
                f"{len(self.mode_names)} names and coordinates of sizes {sizes}."
            )

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, mode: int | str | None = None, fig: Any = None
    ) -> PredictionDisplay:
        """Plot observed outputs against the predictions of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            Any fitted estimator, such as a pipeline, that predicts outputs of the shape of `y`.
        X : array of shape (n_samples, n_features)
            Inputs, preferably of samples that the fit has not seen.
        y : array of shape (n_samples, d1, ..., dp)
            Outputs.
        mode : int or str, optional
            Number or name of an output mode; 1 is the first one. Each of its entries has a panel.
            The default is one panel of all outputs.
        fig : matplotlib Figure or SubFigure, optional
            The figure to draw in. The default is a new figure.

        Returns
        -------
        PredictionDisplay
            The display.
        """
        check_is_fitted(estimator)
        labels = getattr(estimator, "labels_", None)
        dim = labels and labels.sample_dim
        return cls._of(y, estimator.predict(X), dim, labels).plot(mode=mode, fig=fig)

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_pred: Any, *, mode: int | str | None = None, fig: Any = None
    ) -> PredictionDisplay:
        """Plot observed outputs against given predictions.

        Parameters
        ----------
        y_true, y_pred : array of shape (n_samples, d1, ..., dp)
            Observed and predicted outputs: arrays, tables or xarray objects, whose dimensions are
            matched by name.
        mode, fig
            As in `from_estimator`.

        Returns
        -------
        PredictionDisplay
            The display.
        """
        return cls._of(y_true, y_pred, None, None).plot(mode=mode, fig=fig)

    @classmethod
    def _of(cls, y: Any, predicted: Any, dim: str | None, fitted: Any) -> PredictionDisplay:
        Y, (read,), _, labels = open_all(y, {"y_pred": predicted}, None, dim)
        rows = slice(0, Y.shape[0])
        grid: Any = labels.outputs or (fitted is not None and fitted.outputs) or Grid()
        names: dict[str, Any] = {}
        if len(grid.dims) == len(Y.shape) - 1:
            coordinates = [grid.coordinate(k) for k in range(len(grid.dims))]
            names = {"mode_names": grid.dims, "coordinates": coordinates}
        return cls(y_true=rows_of(Y, rows), y_pred=read(rows), **names)

    def plot(self, *, mode: int | str | None = None, fig: Any = None) -> PredictionDisplay:
        """Plot one panel of all outputs, or a panel for each entry of a mode.

        A panel shows at most 3,000 points, drawn at random. Its title is the R2 of all of them.

        Parameters
        ----------
        mode, fig
            As in `from_estimator`.

        Returns
        -------
        self
        """
        panels = [("", self.y_true, self.y_pred)] if mode is None else self._panels(mode)
        columns = min(len(panels), 4)
        rows = -(-len(panels) // columns)
        wide = max(3.8, 2.3 * columns)
        self.figure_ = fig or style.new_figure(wide, 3.6 if len(panels) == 1 else 2.5 * rows)
        grid = self.figure_.subplots(rows, columns, squeeze=False)
        self.axes_ = grid.ravel()[: len(panels)]
        for ax in grid.ravel()[len(panels) :]:
            ax.set_visible(False)
        for k, (ax, (name, y, predicted)) in enumerate(zip(self.axes_, panels, strict=True)):
            _scatter(ax, y, predicted)
            ax.set_title(f"{name}R2 {r2(y, predicted):.2f}", fontsize=8)
            ax.set_xlabel("predicted" if k + columns >= len(panels) else "", fontsize=9)
            ax.set_ylabel("observed" if k % columns == 0 else "", fontsize=9)
        return self

    def _panels(self, mode: int | str) -> list[tuple[str, np.ndarray, np.ndarray]]:
        """Return the name and the values of each entry of an output mode."""
        p = len(self.mode_names)
        axis = self.mode_names.index(mode) + 1 if mode in self.mode_names else mode
        if not isinstance(axis, int | np.integer) or not 1 <= axis <= p:
            raise ValueError(
                f"mode must be a number from 1 to {p}, or one of the output modes "
                f"{self.mode_names}; got {mode!r}."
            )
        entries = self.coordinates[axis - 1]
        if len(entries) > _MAX_PANELS:
            raise ValueError(
                f"at most {_MAX_PANELS} panels can be drawn, but mode {mode!r} has {len(entries)} "
                f"entries. Select some entries of y_true and y_pred, and pass them to "
                f"from_predictions."
            )
        parts = (np.moveaxis(A, axis, 0) for A in (self.y_true, self.y_pred))
        name = self.mode_names[axis - 1]
        names = [f"{style.short(f'{name} {entry}', 22)}\n" for entry in entries]
        return list(zip(names, *parts, strict=True))


def _scatter(ax: Any, y: np.ndarray, predicted: np.ndarray) -> None:
    y, predicted = y.ravel(), predicted.ravel()
    known = np.flatnonzero(np.isfinite(y) & np.isfinite(predicted))
    if known.size > _MAX_POINTS:
        known = np.random.default_rng(0).choice(known, _MAX_POINTS, replace=False)
    y, predicted = y[known], predicted[known]
    ax.scatter(predicted, y, s=6, color=style.MAIN, alpha=0.35, lw=0)
    if known.size:
        middle = (float(y.mean()),) * 2
        ax.axline(middle, slope=1, ls="--", color=style.DARK, lw=1)
    ax.xaxis.get_major_locator().set_params(nbins=4)
    style.tidy(ax)
