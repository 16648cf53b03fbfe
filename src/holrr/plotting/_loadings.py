"""Plots of the leading directions of each mode over its coordinates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..core.namespace import fix_signs, to_numpy
from ..core.tensor import multi_mode_product
from ..data.inputs import whole_axes
from ..data.labels import mode_coordinates
from ..data.pipelines import last_step
from . import style

__all__ = ["LoadingsDisplay"]

_MOST_BARS = 20
Mode = int | str | tuple[int | str, int | str]


@dataclass(kw_only=True, eq=False, repr=False)
class LoadingsDisplay:
    """Plot of the leading directions of modes: lines, bars for names, and maps for pairs of modes.

    It is recommended to use `from_estimator` to create a `LoadingsDisplay`. The directions of a
    mode (or of a pair of modes) are the left singular vectors of the unfolded fit, ordered by
    energy. They are determined up to their sign, and do not depend on a rotation of the factors. If
    `factors_` are in leading order, the directions are nearly these factors, with the same signs.
    They differ slightly, since truncating the other modes rotates them. All directions have unit
    length.

    Parameters
    ----------
    loadings : sequence of arrays of shape (d, k) or (d, e, k)
        The k directions of each row of panels, over one mode or a pair of modes.
    shares : sequence of arrays of shape (k,)
        The share of the energy of each direction.
    coordinates : sequence of tuples of one or two arrays
        Coordinates of the modes of each row.
    names : sequence of tuples of one or two strings
        Names of the modes of each row.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure.
    axes_ : array of shape (n_rows, n_components)
        The axes; None if a mode has fewer directions.

    See Also
    --------
    RankSurfaceDisplay : Plot of the held-out error of all ranks.

    Examples
    --------
    >>> from holrr import HOLRR
    >>> from holrr.datasets import make_tensor_regression
    >>> from holrr.plotting import LoadingsDisplay
    >>> X, Y = make_tensor_regression(60, n_features=5, rank=2, snr=1.0, random_state=0)
    >>> display = LoadingsDisplay.from_estimator(HOLRR(rank=2).fit(X, Y))
    >>> again = display.plot()  # in a new figure
    >>> display.axes_.shape
    (3, 2)
    """

    loadings: Sequence[np.ndarray]
    shares: Sequence[np.ndarray]
    coordinates: Sequence[tuple[np.ndarray, ...]]
    names: Sequence[tuple[str, ...]]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        mode: Mode | None = None,
        n_components: int = 3,
        mode_names: Sequence[str] | None = None,
        fig: Any = None,
    ) -> LoadingsDisplay:
        """Plot the leading directions of a fitted estimator.

        Parameters
        ----------
        estimator : any estimator of this library
            A fitted estimator. For `HOLRR`, `LRR` and related estimators, the energy is the
            explained sum of squares, including the penalty. For other
            estimators, such as `RLS` and those of `holrr.penalized`, the energy is the squared norm
            of the coefficients.
        mode : int, str or pair of them, optional
            Number or name of a mode; 0 is the input mode. The joint directions of a pair of output
            modes, such as latitude and longitude, are drawn as maps. "pairs" draws coupled
            patterns: the input directions in the upper rows (one row for each block of the
            inputs), and below each of them the pattern of outputs that it predicts. The default
            is all modes.
        n_components : int, default=3
            Largest number of directions of each mode.
        mode_names : sequence of p + 1 strings, optional
            Names of the modes, input mode first. The default is those of the data.
        fig : matplotlib Figure or SubFigure, optional
            The figure to draw in. The default is a new figure.

        Returns
        -------
        LoadingsDisplay
            The display.
        """
        estimator = last_step(estimator)
        check_is_fitted(estimator)
        if n_components < 1:
            raise ValueError(f"n_components must be at least 1; got {n_components}.")
        names = style.names_of(estimator, mode_names, len(estimator.tucker_.shape))
        if isinstance(mode, str) and mode == "pairs":
            rows = _pairs(estimator, names, n_components)
        else:
            every = range(len(names)) if mode is None else [mode]
            rows = [_row(estimator, _modes(m, names), names, n_components) for m in every]
        keys = ("loadings", "shares", "coordinates", "names")
        display = cls(**dict(zip(keys, map(list, zip(*rows, strict=True)), strict=True)))
        return display.plot(fig=fig)

    def plot(self, *, fig: Any = None) -> LoadingsDisplay:
        """Plot a row of panels for each mode, with a column for each direction.

        Parameters
        ----------
        fig : matplotlib Figure or SubFigure, optional
            As in `from_estimator`.

        Returns
        -------
        self
        """
        heights = [self._height(i) for i in range(len(self.loadings))]
        columns = max(share.size for share in self.shares)
        self.figure_ = fig or style.new_figure(2.3 * columns + 0.6, sum(heights))
        grid = self.figure_.add_gridspec(len(heights), columns, height_ratios=heights)
        self.axes_ = np.full((len(heights), columns), None, dtype=object)
        for i, share in enumerate(self.shares):
            for k in range(share.size):
                first = self.axes_[i, 0]
                ax = self.figure_.add_subplot(grid[i, k], sharex=first, sharey=first)
                ax.set_title(f"{k + 1}: {100 * share[k]:.3g} % of the energy", fontsize=8)
                self.axes_[i, k] = ax
            draw = self._maps if len(self.names[i]) == 2 else self._curves
            draw(i, [ax for ax in self.axes_[i] if ax is not None])
        return self

    def _height(self, i: int) -> float:
        if len(self.names[i]) == 2:
            return 2.1
        x = self.coordinates[i][0]
        return 1.7 if style.is_ordered(x) else 0.6 + 0.16 * min(x.size, _MOST_BARS)

    def _curves(self, i: int, axes: Sequence[Any]) -> None:
        """Draw directions of one mode: lines if its coordinate has an order, and bars otherwise."""
        (x,), (name,), U = self.coordinates[i], self.names[i], self.loadings[i]
        for k, ax in enumerate(axes):
            style.tidy(ax)
            if style.is_ordered(x):
                order = np.argsort(x)
                ax.axhline(0, color=style.DARK, lw=0.6)
                marker = "." if x.size <= 40 else None
                ax.plot(x[order], U[order, k], color=style.MAIN, lw=1.5, marker=marker, ms=4)
                _few_ticks(ax, ax.xaxis, x)
                ax.set_xlabel(style.short(name, 30), fontsize=8)
                ax.tick_params(labelleft=k == 0)
            else:
                self._bars(ax, i, k)
        # Bars have names as ticks; the name of the mode is above them.
        axes[0].set_ylabel("loading" if style.is_ordered(x) else style.short(name, 14), fontsize=8)

    def _bars(self, ax: Any, i: int, k: int) -> None:
        (x,), U = self.coordinates[i], self.loadings[i]
        weight = np.nan_to_num(U**2) @ self.shares[i]
        shown = np.sort(np.argsort(-weight, kind="stable")[:_MOST_BARS])
        at = np.arange(shown.size)
        ax.axvline(0, color=style.DARK, lw=0.6)
        ax.barh(at, U[shown, k], 0.7, color=style.MAIN)
        ax.set_yticks(at, [style.short(v) for v in x[shown]] if k == 0 else None)
        ax.set_ylim(shown.size - 0.5, -0.5)
        ax.tick_params(labelleft=k == 0, left=False)
        if shown.size < x.size:
            ax.set_xlabel(f"loading, {shown.size} of {x.size}", fontsize=8)
        else:
            ax.set_xlabel("loading", fontsize=8)
        ax.xaxis.get_major_locator().set_params(nbins=4)

    def _maps(self, i: int, axes: Sequence[Any]) -> None:
        """Draw directions of a pair of modes in one colour scale, with marks for grey print."""
        (y, x), (rows, columns), U = self.coordinates[i], self.names[i], self.loadings[i]
        top = float(np.nanmax(np.abs(U)))
        smooth = style.is_ordered(x) and style.is_ordered(y) and min(U.shape[:2]) > 1
        (y, down), (x, across) = _positions(y), _positions(x)
        image = None
        for k, ax in enumerate(axes):
            values = U[np.ix_(down, across)][:, :, k]
            image = ax.pcolormesh(
                x, y, values, cmap="RdBu_r", vmin=-top, vmax=top, shading="nearest"
            )
            if not smooth:
                row, column = np.nonzero(values < -top / 2)
                ax.scatter(x[column], y[row], marker="_", color="white", s=20, lw=1)
            elif np.nanmax(np.abs(values)) > top / 2:
                ax.contour(x, y, values, levels=[-top / 2, top / 2], colors="k", linewidths=0.8)
            _few_ticks(ax, ax.xaxis, self.coordinates[i][1])
            _few_ticks(ax, ax.yaxis, self.coordinates[i][0])
            ax.tick_params(labelsize=8, labelleft=k == 0)
            ax.set_xlabel(style.short(columns, 24), fontsize=8)
        if not style.is_ordered(self.coordinates[i][0]):
            axes[0].invert_yaxis()
        axes[0].set_ylabel(style.short(rows, 24), fontsize=8)
        style.color_bar(image, list(axes), aspect=15)


# ---------------------------------------------------------------- directions


def _modes(mode: Any, names: Sequence[str]) -> tuple[int, ...]:
    """Return the numbers of a mode or of a pair of output modes."""
    pair = isinstance(mode, (tuple, list))
    found = [names.index(m) if m in names else m for m in (mode if pair else [mode])]
    p = len(names) - 1
    known = all(isinstance(m, int | np.integer) and 0 <= m <= p for m in found)
    if not known or (pair and (len(set(found)) != 2 or 0 in found)):
        raise ValueError(
            f"mode must be a number from 0 to {p}, one of the names {list(names)}, or a pair of "
            f"output modes; got {mode!r}."
        )
    return tuple(int(m) for m in found)


def _row(model: Any, modes: tuple[int, ...], names: Sequence[str], n: int) -> tuple[Any, ...]:
    """Return loadings, shares, coordinates and names of a mode or a pair."""
    U, share = _directions(model, modes, n)
    axes = [(names[m], mode_coordinates(model, m)) for m in modes]
    if modes == (0,):
        axes = _input_axes(model) or axes
        if not _is_kernel(model):
            blocks = whole_axes(U, model.labels_, model.n_features_in_)
            U = np.concatenate([block.reshape(-1, U.shape[1]) for block in blocks])
            U = U if model.labels_ is None or model.labels_.cells is None else U[_cells(model)]
    return _panels(U, share, axes)


def _cells(model: Any) -> np.ndarray:
    """Return the cells in the order of the columns, unless they are drawn as a map."""
    n_cells = sum(math.prod(grid.shape) for grid in model.labels_.inputs)
    return np.arange(n_cells) if _input_axes(model) else model.labels_.cells


def _panels(
    U: np.ndarray, share: np.ndarray, axes: list[tuple[str, np.ndarray]]
) -> tuple[Any, ...]:
    """Return a row of panels: loadings over one axis or two, shares, coordinates and names."""
    axes = [axis for axis in axes if axis[1].size > 1] or axes[:1]  # a map of one row is a curve
    U = U.reshape(*(x.size for _, x in axes), -1)
    return U, share, tuple(x for _, x in axes), tuple(name for name, _ in axes)


def _pairs(model: Any, names: Sequence[str], n: int) -> list[tuple[Any, ...]]:
    """Return coupled patterns: directions of each block of the inputs, and their predictions.

    Pair j is column j of the first factor, whose scores `transform` returns, and slice j of the
    core, mapped to the outputs.
    """
    is_reduced = hasattr(model, "rank_") or getattr(model, "input_factors_", None) is not None
    if not is_reduced or model.tucker_.factors[0] is None or _is_kernel(model):
        raise ValueError(
            f"mode='pairs' needs input directions, which {type(model).__name__} does not have; use "
            f"LRR, HOLRR or their searches."
        )
    core, factors = _in_units_of_energy(model)
    energy = np.sum(core.reshape(core.shape[0], -1) ** 2, axis=1)
    if not energy.any():
        raise ValueError("the coefficients are zero, so there are no directions to draw.")
    order = np.argsort(-energy, kind="stable")[: min(n, int(np.sum(energy > 1e-14 * energy.max())))]
    share, outputs = energy[order] / energy.sum(), tuple(range(1, core.ndim))
    U = to_numpy(factors[0])[:, order]
    V = multi_mode_product(core[order], [None, *factors[1:]])
    V = np.moveaxis(V, 0, -1)
    sign = np.sign(_largest(U))  # makes the largest input positive; the outputs get the same sign
    U, V = U * sign, V * sign
    V = np.where(_seen(model, outputs)[..., None], V, np.nan) if outputs else V
    labels = getattr(model, "labels_", None)
    grids = labels.inputs if labels is not None and labels.inputs else (None,)
    rows = []
    for grid, block in zip(grids, whole_axes(U, labels, model.n_features_in_), strict=True):
        if grid is None:
            axes = [(names[0], mode_coordinates(model, 0))]
        else:
            axes = [(_in_block(dim, grid), grid.coordinate(k)) for k, dim in enumerate(grid.dims)]
            axes = axes or [(str(grid.name), np.array([str(grid.name)]))]
        rows.append(_drawable(_unit(block), share, axes, "inputs"))
    axes = [(names[m], mode_coordinates(model, m)) for m in outputs] or [("output", np.arange(1))]
    return [*rows, _drawable(_unit(V), share, axes, "outputs")]


def _in_block(dim: str, grid: Any) -> str:
    return dim if grid.name is None else f"{grid.name}: {dim}"


def _drawable(
    U: np.ndarray, share: np.ndarray, axes: list[tuple[str, np.ndarray]], what: str
) -> tuple[Any, ...]:
    long = [name for name, x in axes if x.size > 1]
    if len(long) > 2:
        raise ValueError(
            f"mode='pairs' draws curves and maps, but the {what} have the modes {long}. "
            f"model.to_dataset() has all patterns with their coordinates."
        )
    return _panels(U, share, [(f"{name} ({what})", x) for name, x in axes])


def _unit(U: np.ndarray) -> np.ndarray:
    """Scale patterns to unit length."""
    length = np.sqrt(np.nansum(U.reshape(-1, U.shape[-1]) ** 2, axis=0))
    return U / np.where(length > 0, length, 1.0)


def _largest(U: np.ndarray) -> np.ndarray:
    """Return the entry of largest modulus of each column."""
    return U[np.argmax(np.abs(U), axis=0), np.arange(U.shape[1])]


def _is_kernel(model: Any) -> bool:
    return hasattr(getattr(model, "best_estimator_", model), "X_fit_")


def _input_axes(model: Any) -> list[tuple[str, np.ndarray]]:
    """Return names and coordinates of the input modes, unless it is a plain list of features."""
    if _is_kernel(model):
        return [("kernel centre", np.arange(model.tucker_.shape[0]))]
    grids: Any = getattr(getattr(model, "labels_", None), "inputs", ())
    if len(grids) != 1 or len(grids[0].dims) < 2:
        return []
    axes = [(dim, grids[0].coordinate(k)) for k, dim in enumerate(grids[0].dims)]
    long = [axis for axis in axes if axis[1].size > 1]
    return long if len(long) <= 2 else []


def _directions(model: Any, modes: tuple[int, ...], n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the leading left singular vectors of the fit with `modes` along the rows."""
    core, factors = _in_units_of_energy(model)
    C = np.moveaxis(core, modes, range(len(modes)))
    rank = C.shape[: len(modes)]
    Q, s, _ = np.linalg.svd(C.reshape(math.prod(rank), -1), full_matrices=False)
    if s.size == 0 or s[0] == 0:
        raise ValueError("the coefficients are zero, so there are no directions to draw.")
    s = s / s[0]
    k = min(n, int(np.sum(s > 1e-7)))
    U = fix_signs(Q[:, :k]).reshape(*rank, k)
    U = multi_mode_product(U, [*(factors[m] for m in modes), None])
    U = U / np.sqrt(np.sum(U**2, axis=tuple(range(len(modes)))))
    return np.where(_seen(model, modes)[..., None], U, np.nan), s[:k] ** 2 / np.sum(s**2)


def _in_units_of_energy(model: Any) -> tuple[np.ndarray, list[np.ndarray | None]]:
    """Return core and factors such that the squared entries of the core are energies."""
    core = to_numpy(model.tucker_.core).astype(float)
    factors = [None if U is None else to_numpy(U).astype(float) for U in model.tucker_.factors]
    if hasattr(model, "energy_") and factors[0] is not None:
        return core, factors  # orthonormal in whitened coordinates
    for mode, U in enumerate(factors):
        if U is not None:
            factors[mode], R = np.linalg.qr(U)
            core = multi_mode_product(core, [R if m == mode else None for m in range(core.ndim)])
    return core, factors


def _seen(model: Any, modes: tuple[int, ...]) -> np.ndarray:
    """Return which entries of the modes have an output that was observed."""
    if modes == (0,):
        return np.ones(model.tucker_.shape[0], dtype=bool)
    known = np.isfinite(to_numpy(model._intercept))
    others = tuple(m for m in range(known.ndim) if m + 1 not in modes)
    known = known.any(axis=others)
    return known.T if len(modes) == 2 and modes[0] > modes[1] else known


# ---------------------------------------------------------------- axes


def _positions(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of the entries of an axis, in ascending order, and this order."""
    order = np.argsort(x) if style.is_ordered(x) else np.arange(x.size)
    return x[order] if style.is_ordered(x) else order, order


def _few_ticks(ax: Any, axis: Any, x: np.ndarray) -> None:
    """Set ticks of numbers, dates or names that do not overlap."""
    if x.dtype.kind == "M":
        style.date_ticks(axis, 4)
    elif style.is_ordered(x):
        axis.get_major_locator().set_params(nbins=5, integer=x.dtype.kind in "iu")
    else:
        style.name_ticks(ax, axis, x)
