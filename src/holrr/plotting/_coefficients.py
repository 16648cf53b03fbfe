"""Coefficients along one mode as a curve with a band, or over two modes as a map."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import fill
from typing import Any

import numpy as np
from scipy.ndimage import label, maximum_position

from ..data.labels import mode_coordinates, mode_names
from ..inference import StandardErrors, standard_errors
from . import _style as style

__all__ = ["CoefficientDisplay"]


_MOST_SIGNS = 12  # largest number of plus and of minus signs, at the highest peaks


class CoefficientDisplay:
    """Plot of coefficients with their standard errors.

    Coefficients that differ significantly from zero are marked.

    Parameters
    ----------
    errors : StandardErrors
        Result of `standard_errors`. `from_estimator` computes it.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        The figure.

    Examples
    --------
    >>> from holrr import HOLRR
    >>> from holrr.datasets import make_tensor_regression
    >>> from holrr.plotting import CoefficientDisplay
    >>> X, Y = make_tensor_regression(100, 6, (5, 4), rank=(2, 2, 2), snr=1.0, random_state=0)
    >>> model = HOLRR(rank=(2, 2, 2)).fit(X, Y)
    >>> display = CoefficientDisplay.from_estimator(model, X, Y, select={0: 2, 1: 3})
    >>> display.ax_.get_title()
    'feature 2, mode1 3'
    >>> display.plot(select={0: 1}).ax_.get_title()  # another input, in a new figure
    'feature 1'
    """

    def __init__(self, errors: StandardErrors):
        if not isinstance(errors, StandardErrors):
            raise TypeError(
                f"errors must be the result of standard_errors; got {type(errors).__name__}. Use "
                f"CoefficientDisplay.from_estimator for a model."
            )
        if errors.coef is None:
            raise ValueError(
                "errors must be those of a linear model; a kernel model has no coefficients of the "
                "inputs, and only its predictions have standard errors."
            )
        self.errors, self.mode_names = errors, mode_names(errors.model)
        modes = range(len(self.mode_names))
        self.coordinates = [mode_coordinates(errors.model, mode) for mode in modes]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        select: Mapping[Any, Any] | None = None,
        coverage: float = 0.95,
        q: float = 0.05,
        ax: Any = None,
        **options: Any,
    ) -> CoefficientDisplay:
        """Compute the standard errors of an estimator, and plot some of its coefficients.

        Parameters
        ----------
        estimator, X, y
            As in `standard_errors`.
        select : dict, optional
            The coefficients to plot: a dict from modes, by name or number, to an entry, by its
            coordinate or its number. All modes but one (a curve with a band) or two (a map) must
            have an entry. The default is the first entries of the first modes, so that two modes
            are left.
        coverage : float, default=0.95
            Pointwise coverage of the band.
        q : float, default=0.05
            False discovery rate of the marks over all coefficients, including those not shown.
        ax : matplotlib Axes, optional
            The axes to draw in. The default is a new figure.
        **options
            Parameters of `standard_errors`, such as `n_groups` and `groups`.

        Returns
        -------
        CoefficientDisplay
            The display.
        """
        errors = standard_errors(estimator, X, y, **{"stability": False, **options})
        return cls(errors).plot(select=select, coverage=coverage, q=q, ax=ax)

    def plot(
        self,
        *,
        select: Mapping[Any, Any] | None = None,
        coverage: float = 0.95,
        q: float = 0.05,
        ax: Any = None,
    ) -> CoefficientDisplay:
        """Plot a curve with a band, or a map.

        In a curve, entries that differ significantly from zero are full dots. In a map, they have
        full colours and an outline, with the sign at the peak of each region, and the others are
        pale. A new figure has a legend.

        Parameters
        ----------
        select, coverage, q, ax
            As in `from_estimator`.

        Returns
        -------
        self
        """
        at, free = self._section(select)
        coef = self.errors.coef
        assert coef is not None
        ends = [end[at] for end in coef.interval(coverage)]
        value, marked = coef.value[at], coef.significant(q)[at]
        if len(free) == 1:
            self.figure_, self.ax_ = style.axes_of(ax, 4.6, 2.8)
            self._curve(free[0], value, ends, marked, f"{100 * coverage:.3g} % band")
        else:
            self.figure_, self.ax_ = style.axes_of(ax, 4.6, 3.4)
            self._map(free, value, marked)
        fixed = [
            f"{style.short(name, 20)} {style.short(c[i], 20)}"
            for name, c, i in zip(self.mode_names, self.coordinates, at, strict=True)
            if not isinstance(i, slice)
        ]
        self.ax_.set_title(fill(", ".join(fixed), 44), fontsize=9)
        if len(free) == 1 and ax is None:
            above = {"loc": "outside upper center", "ncols": 3}
            self.figure_.legend(fontsize=7, frameon=False, columnspacing=1.2, **above)
        return self

    # ------------------------------------------------------------ selected coefficients

    def _section(self, select: Mapping[Any, Any] | None) -> tuple[tuple[Any, ...], list[int]]:
        """Return an index into the coefficients, and the modes that it leaves free."""
        order = len(self.mode_names)
        if select is None:
            select = {mode: self.coordinates[mode][0] for mode in range(order - 2)}
        index: list[Any] = [slice(None)] * order
        for key, entry in select.items():
            mode = self.mode_names.index(key) if key in self.mode_names else key
            if mode not in range(order):
                raise ValueError(
                    f"keys of select must be modes, {self.mode_names} or 0 to {order - 1}; got "
                    f"{key!r}."
                )
            index[mode] = self._place(mode, entry)
        free = [mode for mode, i in enumerate(index) if isinstance(i, slice)]
        if len(free) not in (1, 2):
            raise ValueError(
                f"select must leave one or two of the {order} modes free; it leaves {len(free)}."
            )
        return tuple(index), free

    def _place(self, mode: int, entry: Any) -> int:
        coordinates = self.coordinates[mode]
        found = [i for i, c in enumerate(coordinates) if c == entry]
        if found:
            return found[0]
        if isinstance(entry, (int, np.integer)) and -len(coordinates) <= entry < len(coordinates):
            return int(entry) % len(coordinates)
        raise ValueError(
            f"select has {entry!r} for {self.mode_names[mode]!r}, which is neither a coordinate of "
            f"this mode nor a number below {len(coordinates)}."
        )

    # ------------------------------------------------------------ curves and maps

    def _curve(self, mode: int, value: Any, ends: Any, marked: np.ndarray, band: str) -> None:
        ax, coordinates, (low, high) = self.ax_, self.coordinates[mode], ends
        x = np.arange(len(coordinates))
        numbered = mode == 0 and np.array_equal(coordinates, x)  # features without names
        ax.axhline(0, color=style.DARK, lw=0.8)
        if style.is_ordered(coordinates) and not numbered:
            i, x = np.argsort(coordinates), coordinates
            ax.fill_between(x[i], low[i], high[i], color=style.MAIN, alpha=0.18, lw=0, label=band)
            ax.plot(x[i], value[i], color=style.MAIN, lw=1)
            if coordinates.dtype.kind == "M":
                style.date_ticks(ax.xaxis, 7)
        else:  # names have no order, so points are not connected
            ax.vlines(x, low, high, color=style.MAIN, alpha=0.35, lw=4, label=band)
            style.name_ticks(ax, ax.xaxis, coordinates)
        size = 5 if len(x) <= 40 else 3
        dots = {"ls": "", "marker": "o", "ms": size, "color": style.MAIN}
        ax.plot(x[marked], value[marked], **dots, label="differs from zero")
        ax.plot(x[~marked], value[~marked], **dots, mfc="white", label="may be zero")
        ax.set_xlabel(style.short(self.mode_names[mode], 40), fontsize=9)
        ax.set_ylabel("coefficient", fontsize=9)
        style.tidy(ax)

    def _map(self, free: list[int], value: np.ndarray, marked: np.ndarray) -> None:
        ax, (rows, columns) = self.ax_, free
        top = float(np.nanmax(np.abs(value), initial=0.0)) or 1.0
        y, x = (self.coordinates[mode] for mode in free)
        image = style.signed_map(ax, value, y, x, cmap="RdBu_r", vmin=-top, vmax=top)
        pale = np.where(marked | np.isnan(value), np.nan, 1.0)
        ax.pcolormesh(pale, cmap="gray", vmin=0, vmax=1, alpha=0.6)
        style.outline(ax, marked, 0.0, "black")
        _write_signs(ax, value, marked, top)
        for axis, mode in ((ax.xaxis, columns), (ax.yaxis, rows)):
            axis.set_label_text(style.short(self.mode_names[mode], 28), fontsize=9)
        style.color_bar(image, ax, "coefficient")
        ax.tick_params(labelsize=8)


def _write_signs(ax: Any, value: np.ndarray, marked: np.ndarray, top: float) -> None:
    """Write the sign of each marked region at its peak, since both colours look alike in grey."""
    for sign, text in ((1, "+"), (-1, "\N{MINUS SIGN}")):
        regions, n = label(marked & (sign * value > 0.2 * top))
        peaks = maximum_position(np.abs(value), regions, range(1, n + 1)) if n else []
        for i, j in sorted(peaks, key=lambda at: -abs(value[at]))[:_MOST_SIGNS]:
            color = "white" if abs(value[i, j]) > 0.5 * top else "black"
            ax.text(j + 0.5, i + 0.5, text, color=color, ha="center", va="center", fontsize=9)
