"""Parts of R2 by block of inputs, as bars, lines or maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..core.checks import check_choice
from ..data.blocks import INTERCEPT
from ..data.labels import Grid
from ..data.pipelines import inputs_of_last_step, last_step
from ..data.scores import AVERAGES
from ..linear.block_parts import block_errors
from . import style

__all__ = ["BlockScoresDisplay"]

_MAX_PANELS, _MAX_COLUMNS = 16, 6
_MAX_BARS = 40
_NEGLIGIBLE = 0.1  # share of the largest part below which the intercept is not drawn by output
# Colours that colour-blind readers can distinguish. More blocks than colours have shades.
_COLORS = (style.MAIN, style.ACCENT, "#2a9d8f", "#8a4f9e", "#e0b13a", "#6fa8dc", "#a04030")
_TOTAL = "all together"


class BlockScoresDisplay:
    """Plot of the parts of R2 that blocks of inputs explain, for each output.

    It is recommended to use `from_estimator` to create a `BlockScoresDisplay`.

    Parameters
    ----------
    scores : array of shape (n_blocks, d1, ..., dp)
        The parts of R2 of each block, and of the intercept: of each output, with at most three
        modes of more than one entry, or of all outputs together, of shape (n_blocks,).
    block_names : sequence of n_blocks strings
        Names of the blocks.
    pooled : array of shape (n_blocks,), optional
        The parts of the R2 of all outputs together, which are shown with the names of the blocks.
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
    holrr.HOLRR.score_blocks : Parts of R2 as numbers.
    holrr.metrics.skill_map : R2, or skill against a reference, of each output.

    Examples
    --------
    >>> from holrr import HOLRR
    >>> from holrr.datasets import make_tensor_regression
    >>> from holrr.plotting import BlockScoresDisplay
    >>> X, Y = make_tensor_regression(90, 5, (4, 3), rank=2, snr=1.0, random_state=0)
    >>> model = HOLRR(rank=2, blocks={"lags": [0, 1, 2], "calendar": [3, 4]}).fit(X[:60], Y[:60])
    >>> display = BlockScoresDisplay.from_estimator(model, X[60:], Y[60:])
    >>> again = display.plot()  # in a new figure
    >>> display.block_names, display.scores.shape
    (['lags', 'calendar', 'intercept'], (3, 4, 3))
    """

    def __init__(
        self,
        *,
        scores: Any,
        block_names: Sequence[str],
        pooled: Any = None,
        mode_names: Sequence[str] | None = None,
        coordinates: Sequence[Any] | None = None,
    ):
        self.scores = np.asarray(scores, dtype=np.float64)
        self.block_names = [str(name) for name in block_names]
        n_blocks, shape = len(self.block_names), self.scores.shape[1:]
        self.pooled = None if pooled is None else np.asarray(pooled, dtype=np.float64)
        default = [f"mode{i}" for i in range(1, 1 + len(shape))]
        self.mode_names = default if mode_names is None else list(mode_names)
        grids = [np.arange(d) for d in shape]
        self.coordinates = grids if coordinates is None else [np.asarray(c) for c in coordinates]
        if self.scores.shape[:1] != (n_blocks,) or n_blocks == 0:
            raise ValueError(
                f"scores must have one entry for each of the {n_blocks} blocks {self.block_names} "
                f"along its first axis; got scores of shape {self.scores.shape}."
            )
        if self.pooled is not None and self.pooled.shape != (n_blocks,):
            raise ValueError(
                f"pooled must have shape {(n_blocks,)}, one number for each block; got shape "
                f"{self.pooled.shape}."
            )
        sizes = tuple(c.size for c in self.coordinates)
        if len(self.mode_names) != len(shape) or sizes != shape:
            raise ValueError(
                f"mode_names and coordinates must fit scores of outputs of shape {shape}; got "
                f"{len(self.mode_names)} names and coordinates of sizes {sizes}."
            )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        average: str | None = None,
        fig: Any = None,
    ) -> BlockScoresDisplay:
        """Compute the parts of R2 of a fitted estimator by blocks of inputs, and plot them.

        Parameters
        ----------
        estimator : estimator
            A linear model or search that was fitted with `blocks`.
        X, y, sample_weight
            As in `score_blocks`, preferably of samples that the fit has not seen.
        average : {"pooled", "uniform"} or None, default=None
            None plots the parts of R2 of each output; "pooled" and "uniform" plot those of all
            outputs together, see `score_blocks`.
        fig : matplotlib Figure or SubFigure, optional
            The figure to draw in. The default is a new figure.

        Returns
        -------
        BlockScoresDisplay
            The display.
        """
        X, estimator = inputs_of_last_step(estimator, X), last_step(estimator)
        check_is_fitted(estimator)
        check_choice(average, AVERAGES, "average")
        names, sums = block_errors(estimator, X, y, sample_weight)
        v = estimator._output_weight
        scores = np.array(sums.split(average, output_weight=v))
        if average is not None:
            return cls(scores=scores, block_names=names).plot(fig=fig)
        labels, modes = estimator.labels_, dict[str, Any]()
        grid = (labels.outputs if labels is not None else None) or Grid()
        if grid.dims:
            coordinates = [grid.coordinate(k) for k in range(len(grid.dims))]
            modes = {"mode_names": grid.dims, "coordinates": coordinates}
        pooled = sums.split("pooled", output_weight=v)
        return cls(scores=scores, block_names=names, pooled=pooled, **modes).plot(fig=fig)

    def plot(self, *, fig: Any = None) -> BlockScoresDisplay:
        """Plot bars for one number per block, stacked bars or lines for one mode, maps for two.

        For three modes, each entry of the shortest mode, up to six of them, has a column of maps.
        The last map shows the total R2. If there are more than fifteen blocks, those with the
        largest parts are shown. The intercept is left out if all of its parts are below a tenth of
        the largest part.

        Parameters
        ----------
        fig : matplotlib Figure or SubFigure, optional
            As in `from_estimator`.

        Returns
        -------
        self
        """
        shape = self.scores.shape[1:]
        modes = [k for k, d in enumerate(shape) if d > 1]
        if len(modes) > 3:
            raise ValueError(
                f"at most three modes can be drawn, but these scores have {len(modes)}, of sizes "
                f"{tuple(shape[k] for k in modes)}. Draw a part of them, for instance "
                f"BlockScoresDisplay(scores=scores[:, 0], block_names=names).plot()."
            )
        values = self.scores.reshape([len(self.scores), *(shape[k] for k in modes)])
        if not modes:
            self._bars(values, fig)
        elif len(modes) == 1:
            self._stacked(values, modes[0], fig)
        else:
            self._maps(values, modes, fig)
        return self

    # ------------------------------------------------------------ one number for each block

    def _bars(self, values: np.ndarray, fig: Any) -> None:
        names = [style.short(name, 30) for name in (*self.block_names, _TOTAL)]
        values = np.append(values, values.sum())
        self.figure_ = fig or style.new_figure(5.2, 0.9 + 0.32 * len(names))
        ax = self.figure_.add_subplot()
        self.axes_ = np.array([ax])
        places = np.arange(len(names))
        colors = [style.ACCENT if v < 0 else style.MAIN for v in values[:-1]]
        ax.barh(places, np.nan_to_num(values), 0.7, color=[*colors, style.DARK])
        for place, value in zip(places, values, strict=True):
            text = "not known" if np.isnan(value) else _number(value, 3)
            side = "left" if not round(value, 3) < 0 else "right"
            step = (4 if side == "left" else -4, 0)
            ax.annotate(
                text,
                (np.nan_to_num(value), place),
                step,
                textcoords="offset points",
                ha=side,
                va="center",
                fontsize=8,
            )
        ax.set_yticks(places, names)
        ax.invert_yaxis()
        ax.axvline(0, color=style.DARK, lw=0.8)
        ax.margins(x=0.15)
        ax.set_xlabel("part of R2", fontsize=9)
        style.tidy(ax)

    # ------------------------------------------------------------ one mode

    def _stacked(self, values: np.ndarray, mode: int, fig: Any) -> None:
        coordinates, shown = self.coordinates[mode], self._shown(_MAX_PANELS)
        is_line = style.is_ordered(coordinates) and coordinates.size > _MAX_BARS
        order = np.argsort(coordinates) if is_line else np.arange(coordinates.size)
        coordinates, values = coordinates[order], values[:, order]
        total = values.sum(axis=0)
        per_row = 3
        rows = -(-(len(shown) + 1) // per_row)
        self.figure_ = fig or style.new_figure(6.4, 2.6 + 0.2 * rows)
        ax = self.figure_.add_subplot()
        self.axes_ = np.array([ax])
        x = coordinates if is_line else np.arange(coordinates.size)
        ups, downs = np.zeros((2, total.size))
        handles: list[Any] = []
        for color, b in zip(_colors([self.block_names[b] for b in shown]), shown, strict=True):
            part, name = np.nan_to_num(values[b]), self._name(b, 16)
            if is_line:
                handles += ax.plot(x, values[b], color=color, lw=1.4, label=name)
                continue
            base = np.where(part < 0, downs, ups)
            handles.append(ax.bar(x, part, 0.8, bottom=base, color=color, label=name))
            ups, downs = ups + np.maximum(part, 0.0), downs + np.minimum(part, 0.0)
        if is_line:
            handles += ax.plot(x, total, color="black", lw=1.0, ls="--", label=self._total_name())
        else:
            how = {"color": "black", "mec": "white", "ms": 4, "label": self._total_name()}
            handles += ax.plot(x, total, "D", **how)
            style.name_ticks(ax, ax.xaxis, coordinates)
        ax.axhline(0, color=style.DARK, lw=0.8)
        drawn = np.concatenate([ups, downs, total, *(values[shown] if is_line else [])])
        low, high = np.nanmin(drawn, initial=0.0), np.nanmax(drawn, initial=0.0)
        low, room = max(low, -1.0), 0.06 * (high - max(low, -1.0)) or 0.06
        ax.set_ylim(low - room if low < 0 else 0.0, high + room)
        ax.set_xlabel(style.short(self.mode_names[mode], 40), fontsize=9)
        ax.set_ylabel("part of R2", fontsize=9)
        style.tidy(ax)
        ax.legend(
            handles=handles,
            loc="lower center",
            bbox_to_anchor=(0.5, 1.0),
            ncols=per_row,
            fontsize=8,
            frameon=False,
        )

    # ------------------------------------------------------------ two and three modes

    def _maps(self, values: np.ndarray, modes: list[int], fig: Any) -> None:
        shown = self._shown(_MAX_PANELS - 1)
        titles = [self._name(b, 22) for b in shown] + [self._total_name()]
        panels = np.concatenate([values[shown], values.sum(axis=0)[None]])
        columns = 3 if len(panels) in (5, 6) else 4
        if len(modes) == 3:
            shortest = int(np.argmin(values.shape[1:]))
            mode = modes.pop(shortest)
            n = values.shape[1 + shortest]
            some = np.unique(np.linspace(0, n - 1, min(n, _MAX_COLUMNS)).round().astype(int))
            panels = np.moveaxis(panels, 1 + shortest, 1)[:, some]
            panels, columns = panels.reshape(-1, *panels.shape[2:]), some.size
            entries = [
                style.short(f"{self.mode_names[mode]} {self.coordinates[mode][i]}", 26)
                for i in some
            ]
            titles = [f"{title}\n{entry}" for title in titles for entry in entries]
        self.figure_, self.axes_ = style.panels_of_maps(
            panels,
            titles,
            [self.mode_names[mode] for mode in modes],
            [self.coordinates[mode] for mode in modes],
            "part of R2",
            fig,
            columns,
        )

    # ------------------------------------------------------------ choice and names of blocks

    def _shown(self, most: int) -> list[int]:
        """Return the blocks to draw by output, in their order."""
        largest = np.nanmax(np.abs(self.scores.reshape(len(self.scores), -1)), 1, initial=0.0)
        blocks = [
            b
            for b, name in enumerate(self.block_names)
            if name != INTERCEPT or largest[b] >= _NEGLIGIBLE * largest.max()
        ] or [0]
        size = largest if self.pooled is None else np.abs(np.nan_to_num(self.pooled))
        return sorted(sorted(blocks, key=lambda b: -size[b])[:most])

    def _name(self, block: int, most: int) -> str:
        """Return the name of a block, with its part of the R2 of all outputs together."""
        name = style.short(self.block_names[block], most)
        return name if self.pooled is None else f"{name} {_number(self.pooled[block], 2)}"

    def _total_name(self) -> str:
        return _TOTAL if self.pooled is None else f"{_TOTAL} {_number(self.pooled.sum(), 2)}"


def _colors(names: Sequence[str]) -> list[Any]:
    """Return a colour for each block; many blocks have shades in their order."""
    n = sum(name != INTERCEPT for name in names)
    colors: list[Any] = list(_COLORS)
    if n > len(_COLORS):
        from matplotlib import colormaps

        colors = [colormaps["viridis"](t) for t in np.linspace(0.05, 0.95, n)]
    return [style.MUTED if name == INTERCEPT else colors.pop(0) for name in names]


def _number(value: float, digits: int) -> str:
    """Return a rounded number as text, without a sign for zero."""
    return f"{round(float(value), digits) + 0.0:.{digits}f}"
