"""Plots of the importance of inputs, as lines, bars or maps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..core.checks import check_choice
from ..data.arrays import comes_from
from ..diagnostics import selectivity_ratio, vip
from . import _style as style

__all__ = ["ImportanceDisplay"]

_MAX_BARS = 20
_MEASURES: dict[str, Callable[..., Any]] = {"vip": vip, "selectivity_ratio": selectivity_ratio}
_TITLES = {"vip": "VIP", "selectivity_ratio": "selectivity ratio"}


class ImportanceDisplay:
    """Plot of the VIP or the selectivity ratio of the inputs of a linear model.

    It is recommended to use `from_estimator` to create an `ImportanceDisplay`. Inputs whose names
    are numbers (such as wavelengths) or dates are drawn as a line, and inputs with other names as
    bars, of which the 20 largest are shown. Inputs with two modes are drawn as a map. Infinite
    ratios are drawn as the largest finite ratio.

    Parameters
    ----------
    values : sequence of arrays with one or two axes
        Importance of the inputs of each block.
    mode_names : sequence of tuples of str
        Names of the axes of each array.
    coordinates : sequence of tuples of arrays
        Labels of the entries along the axes of each array.
    block_names : sequence of str, optional
        Names of the blocks. By default, blocks have no names.
    kind : {"vip", "selectivity_ratio"}, default="vip"
        Kind of importance. For "vip", a line at 1 marks the average.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure.
    axes_ : array of Axes
        The axes, one for each block.

    See Also
    --------
    holrr.diagnostics.vip : VIP as numbers.
    holrr.diagnostics.selectivity_ratio : Selectivity ratios as numbers.

    Examples
    --------
    >>> from holrr import HOLRR
    >>> from holrr.datasets import make_tensor_regression
    >>> from holrr.plotting import ImportanceDisplay
    >>> X, Y = make_tensor_regression(60, n_features=5, rank=2, snr=1.0, random_state=0)
    >>> model = HOLRR(rank=2).fit(X, Y)
    >>> display = ImportanceDisplay.from_estimator(model, X)
    >>> again = display.plot()  # in a new figure
    >>> display.values[0].shape, display.mode_names
    ((5,), [('feature',)])
    """

    def __init__(
        self,
        *,
        values: Sequence[Any],
        mode_names: Sequence[tuple[str, ...]],
        coordinates: Sequence[tuple[Any, ...]],
        block_names: Sequence[str] | None = None,
        kind: str = "vip",
    ):
        check_choice(kind, tuple(_MEASURES), "kind")
        self.values = [np.asarray(v, dtype=np.float64) for v in values]
        self.mode_names = [tuple(map(str, names)) for names in mode_names]
        self.coordinates = [tuple(np.asarray(c) for c in axes) for axes in coordinates]
        self.block_names = [""] * len(self.values) if block_names is None else list(block_names)
        self.kind = kind
        for v, names, axes in zip(self.values, self.mode_names, self.coordinates, strict=True):
            if v.shape != tuple(c.size for c in axes) or len(names) != v.ndim:
                raise ValueError(
                    f"mode_names and coordinates must fit values of shape {v.shape}; got "
                    f"{len(names)} names and coordinates of sizes {tuple(c.size for c in axes)}."
                )
            if v.ndim not in (1, 2):
                raise ValueError(
                    f"values must have one or two modes to be drawn; got the modes {names}. Choose "
                    f"one or two of them, for instance with by={names[:2]}."
                )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        kind: str = "vip",
        by: Any = None,
        fig: Any = None,
        **options: Any,
    ) -> ImportanceDisplay:
        """Compute the importance of the inputs of a fitted estimator, and plot it.

        Parameters
        ----------
        estimator, X
            As in `holrr.diagnostics.vip`.
        kind : {"vip", "selectivity_ratio"}, default="vip"
            Kind of importance.
        by : str, int or tuple of them, optional
            Blocks or modes of the inputs, as in `holrr.diagnostics.vip`.
        fig : matplotlib Figure or SubFigure, optional
            The figure to draw in. The default is a new figure.
        **options
            Further parameters of `holrr.diagnostics.vip` or `selectivity_ratio`.

        Returns
        -------
        ImportanceDisplay
            The display.
        """
        check_choice(kind, tuple(_MEASURES), "kind")
        if options.get("average", "pooled") is None:
            raise ValueError(
                "average must be 'pooled' or 'uniform' in a plot; got average=None, which returns "
                "one number for each output."
            )
        found = _MEASURES[kind](estimator, X, by=by, **options)
        if isinstance(by, str) and by == "blocks":
            panels = [("", ("block",), (np.array(list(found)),), np.array(list(found.values())))]
        else:
            panels = _panels(found)
        names, modes, coordinates, values = zip(*panels, strict=True)
        display = cls(
            values=values, mode_names=modes, coordinates=coordinates, block_names=names, kind=kind
        )
        return display.plot(fig=fig)

    def plot(self, *, fig: Any = None) -> ImportanceDisplay:
        """Plot a panel for each block.

        Parameters
        ----------
        fig : matplotlib Figure or SubFigure, optional
            As in `from_estimator`.

        Returns
        -------
        self
        """
        heights = [self._height(i) for i in range(len(self.values))]
        self.figure_ = fig or style.new_figure(5.4, sum(heights))
        grid = self.figure_.add_gridspec(len(heights), 1, height_ratios=heights)
        self.axes_ = np.array([self.figure_.add_subplot(grid[i]) for i in range(len(heights))])
        for i, ax in enumerate(self.axes_):
            values = _finite(self.values[i])
            if values.ndim == 2:
                self._map(ax, i, values)
            elif style.is_ordered(self.coordinates[i][0]):
                self._line(ax, i, values)
            else:
                self._bars(ax, i, values)
            ax.set_title(style.short(self.block_names[i], 50), fontsize=9)
        return self

    def _height(self, i: int) -> float:
        if self.values[i].ndim == 2:
            return 3.2
        coordinate = self.coordinates[i][0]
        return 2.6 if style.is_ordered(coordinate) else 0.9 + 0.2 * min(coordinate.size, _MAX_BARS)

    def _line(self, ax: Any, i: int, values: np.ndarray) -> None:
        x = self.coordinates[i][0]
        order = np.argsort(x)
        marker = "." if x.size <= 40 else None
        ax.plot(x[order], values[order], color=style.MAIN, lw=1.4, marker=marker, ms=5)
        if self.kind == "vip":
            ax.axhline(1, color=style.DARK, lw=0.8, ls="--")
        ax.set_ylim(bottom=0)
        if x.dtype.kind == "M":
            style.date_ticks(ax.xaxis, 7)
        ax.set_xlabel(style.short(self.mode_names[i][0], 40), fontsize=9)
        ax.set_ylabel(_TITLES[self.kind], fontsize=9)
        style.tidy(ax)

    def _bars(self, ax: Any, i: int, values: np.ndarray) -> None:
        x = self.coordinates[i][0]
        largest = np.argsort(-np.nan_to_num(values, nan=-1.0), kind="stable")[:_MAX_BARS]
        at = np.arange(largest.size)
        ax.barh(at, np.nan_to_num(values[largest]), 0.7, color=style.MAIN)
        if self.kind == "vip":
            ax.axvline(1, color=style.DARK, lw=0.8, ls="--")
        ax.set_yticks(at, [style.short(v, 30) for v in x[largest]])
        ax.set_ylim(largest.size - 0.5, -0.5)
        more = f", {largest.size} of {x.size}" if largest.size < x.size else ""
        ax.set_xlabel(f"{_TITLES[self.kind]}{more}", fontsize=9)
        style.tidy(ax)

    def _map(self, ax: Any, i: int, values: np.ndarray) -> None:
        y, x = self.coordinates[i]
        top = float(np.nanmax(values, initial=0.0)) or 1.0
        image = style.signed_map(ax, values, y, x, cmap="viridis", vmin=0.0, vmax=top)
        for axis, name in ((ax.xaxis, self.mode_names[i][1]), (ax.yaxis, self.mode_names[i][0])):
            axis.set_label_text(style.short(name, 28), fontsize=9)
        style.color_bar(image, ax, _TITLES[self.kind])
        ax.tick_params(labelsize=8)


# ---------------------------------------------------------------- results as panels


def _panels(found: Any, block: str = "") -> list[tuple[Any, ...]]:
    """Return for each block its name, names and coordinates of its modes, and its values."""
    if isinstance(found, Mapping):
        return [panel for name in found for panel in _panels(found[name], str(name))]
    if comes_from(found, "xarray"):
        names = found.dims
        coordinates = tuple(np.asarray(found[dim]) for dim in names)
    elif comes_from(found, "pandas"):
        if found.index.nlevels > 1:
            found = found.unstack()  # the last level becomes the columns
            names = (*found.index.names, *found.columns.names)
            coordinates = tuple(np.asarray(index) for index in (found.index, found.columns))
        else:
            names, coordinates = (found.index.name,), (_numbers(np.asarray(found.index)),)
        names = tuple("feature" if name is None else name for name in names)
    else:
        shape = np.shape(found)
        names = (
            ("feature",) if len(shape) == 1 else tuple(f"input{k + 1}" for k in range(len(shape)))
        )
        coordinates = tuple(np.arange(n) for n in shape)
    values = np.asarray(found)
    if values.ndim == 0:
        names, coordinates, values = ("",), (np.array([block]),), values.reshape(1)
    if values.ndim == 2 and 1 in values.shape:  # a map of one row is a curve
        axis = int(values.shape[0] == 1)
        names, coordinates, values = (names[axis],), (coordinates[axis],), values.ravel()
    return [(block, names, coordinates, values)]


def _numbers(labels: np.ndarray) -> np.ndarray:
    """Return names of columns as numbers if all are numbers, such as wavelengths."""
    if labels.dtype.kind not in "OU":
        return labels
    try:
        return labels.astype(np.float64)
    except (TypeError, ValueError):
        return labels


def _finite(values: np.ndarray) -> np.ndarray:
    """Replace infinite ratios by the largest finite ratio, or by 1 if there is none."""
    top = float(np.max(values[np.isfinite(values)], initial=0.0)) or 1.0
    return np.where(np.isinf(values), top, values)
