"""Plots of the error surface of a search, as profiles and heat maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..data.pipelines import last_step
from . import style

__all__ = ["RankSurfaceDisplay"]

_NOT_COMPUTED: dict[str, Any] = {
    "facecolor": "#eef0f2",
    "edgecolor": style.MUTED,
    "hatch": "////",
    "lw": 0,
}


class RankSurfaceDisplay:
    """Plot of the error surface: along the rank of each mode and over each pair of modes.

    It is recommended to use `from_estimator` to create a `RankSurfaceDisplay`.

    Parameters
    ----------
    surface : array of shape (n_alphas, R0, ..., Rp)
        Error of every penalty and rank; NaN for errors that were not computed.
    alphas : array of shape (n_alphas,)
        The penalties.
    best_index : tuple of p + 2 ints
        Index of the choice; for a stack, of its best single model.
    std_error : array of the shape of `surface`, optional
        Standard errors, which are drawn as a band.
    others : dict, optional
        From names to errors for comparison, which are drawn as dotted lines in the panel of the
        penalty.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure.
    axes_ : array of shape (p + 1, p + 1)
        Axes of the profiles of modes on the diagonal, and of pairs of modes below it; None above.
    alpha_ax_ : matplotlib Axes or None
        The panel of the penalty.

    See Also
    --------
    LoadingsDisplay : Plot of the leading directions of each mode.

    Examples
    --------
    >>> from holrr.datasets import make_tensor_regression
    >>> from holrr.model_selection import HOLRRCV
    >>> from holrr.plotting import RankSurfaceDisplay
    >>> X, Y = make_tensor_regression(60, n_features=5, rank=2, snr=1.0, random_state=0)
    >>> display = RankSurfaceDisplay.from_estimator(HOLRRCV().fit(X, Y))
    >>> again = display.plot()  # in a new figure
    >>> display.axes_.shape
    (3, 3)
    >>> display.figure_.savefig("ranks.png")  # doctest: +SKIP
    """

    def __init__(
        self,
        *,
        surface: np.ndarray,
        alphas: np.ndarray,
        best_index: Sequence[int],
        std_error: np.ndarray | None = None,
        others: Mapping[str, float] | None = None,
    ):
        self.surface = surface
        self.alphas = alphas
        self.best_index = tuple(best_index)
        self.std_error = std_error
        self.others = dict(others or {})

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, mode_names: Sequence[str] | None = None, fig: Any = None
    ) -> RankSurfaceDisplay:
        """Plot the error surface of a fitted cross-validated estimator.

        The marked choice is `best_index_`, which is the best single model also for a stack.

        Parameters
        ----------
        estimator : HOLRRCV, KernelHOLRRCV or another search
            A fitted search.
        mode_names : sequence of p + 1 strings, optional
            Names of the modes, input mode first. The default is those of the data.
        fig : matplotlib Figure or SubFigure, optional
            The figure to draw in. The default is a new figure.

        Returns
        -------
        RankSurfaceDisplay
            The display.
        """
        estimator = last_step(estimator)
        check_is_fitted(estimator)
        if not hasattr(estimator, "best_index_"):
            raise TypeError(
                f"RankSurfaceDisplay needs a search, such as HOLRRCV; got a "
                f"{type(estimator).__name__}, which has no cross-validated errors."
            )
        results, index = estimator.cv_results_, estimator.best_index_
        if "mean_mse" not in results:
            raise ValueError(
                "RankSurfaceDisplay needs the errors of all ranks, which files do not contain. "
                "Draw the figure before the model is saved, or draw cv_results_['path_mse']."
            )
        # Choices other than penalty and ranks, such as a kernel, are fixed at their best value.
        n_ranks = results["n_parameters"].ndim if "n_parameters" in results else 0
        lead = index[: len(index) - 1 - n_ranks]
        std_error = None
        if "fold_mse" in results and len(results["fold_mse"]) > 1:
            std_error = results["std_mse"][lead] / np.sqrt(len(results["fold_mse"]) - 1)
        display = cls(
            surface=results["mean_mse"][lead],
            alphas=results["alphas"],
            best_index=index[len(lead) :],
            std_error=std_error,
            others={
                name: getattr(estimator, attribute)
                for name, attribute in (("mean", "null_mse_"), ("ridge", "ridge_mse_"))
                if hasattr(estimator, attribute)
            },
        )
        names = style.names_of(estimator, mode_names, display.surface.ndim - 1)
        return display.plot(mode_names=names, fig=fig)

    def plot(
        self, *, mode_names: Sequence[str] | None = None, fig: Any = None
    ) -> RankSurfaceDisplay:
        """Plot the profiles along each mode and the heat maps of each pair of modes.

        A profile fixes all other ranks and the penalty at the choice (solid line, with a band of
        one standard error to each side), or minimises over the other ranks (dashed line). The
        colours of a heat map show the difference between the error and that of the choice. The
        colours hardly differ within one standard error. The white line encloses ranks within one
        standard error of the choice, and ranks that were not computed are hatched. Axes of
        more than 30 ranks have a log scale.

        Parameters
        ----------
        mode_names, fig
            As in `from_estimator`.

        Returns
        -------
        self
        """
        n = self.surface.ndim - 1
        names = [style.short(name, 20) for name in style.check_mode_names(mode_names, n)]
        columns = min(n + 1, 2) if n < 3 else 4 if n < 5 else 6
        pairs = [(i, j) for i in range(n) for j in range(i)]
        panels = n + 1 + len(pairs)  # profiles, penalty, maps; with many modes also the legend
        rows = -(-(panels + (n > 2)) // columns)
        side = 2.2 if n > 2 else 2.8
        self.figure_ = fig or style.new_figure(side * columns + 0.8 * (n == 2), side * rows)
        grid = self.figure_.add_gridspec(rows, columns)
        places = [grid[divmod(k, columns)] for k in range(panels)]
        self.axes_ = np.full((n, n), None, dtype=object)
        for i in range(n):
            self.axes_[i, i] = self.figure_.add_subplot(places[i])
            ranks = np.arange(1, self.surface.shape[i + 1] + 1)
            title = f"{names[i]}: {self.best_index[i + 1] + 1}"
            self._profile(self.axes_[i, i], i + 1, ranks, title, "rank")
            style.rank_axis(self.axes_[i, i].xaxis, ranks.size)
        self.alpha_ax_ = self.figure_.add_subplot(places[n])
        self._penalty(self.alpha_ax_)
        for ax in (*self.axes_.diagonal()[:1], self.alpha_ax_):
            ax.set_ylabel("held-out error", fontsize=8)
        for pair, place in zip(pairs, places[n + 1 :], strict=True):
            self.axes_[pair] = self.figure_.add_subplot(place)
        key = self.figure_.add_subplot(grid[-1, panels % columns :]) if n > 2 else None
        maps = {pair: self._above_choice(*pair) for pair in pairs}
        image = self._heat_maps(names, maps) if maps else None
        self._key(key, image, any(np.isnan(above).any() for above in maps.values()))
        return self

    # ------------------------------------------------------------ panels

    def _profile(self, ax: Any, axis: int, x: np.ndarray, title: str, xlabel: str) -> np.ndarray:
        """Plot the error along an axis, and return the minimum over the other ranks."""
        best, at = self.best_index, _section(self.best_index, axis)
        others = tuple(k for k in range(1, self.surface.ndim) if k != axis)
        least = np.fmin.reduce(self.surface, axis=others)[best[0] if axis else slice(None)]
        chosen, order = x[best[axis]], np.argsort(x)
        x, error, least = x[order], self.surface[at][order], least[order]
        if others:
            ax.plot(x, least, "--", color=style.DARK, lw=1.5, label="best of the other ranks")
        marker = "." if x.size <= 40 or np.isnan(error).any() else None
        ax.plot(x, error, color=style.MAIN, lw=1.5, marker=marker, label="others as chosen")
        if self.std_error is not None:
            e = self.std_error[at][order]
            band = {"color": style.MAIN, "alpha": 0.15, "lw": 0, "label": "one standard error"}
            ax.fill_between(x, error - e, error + e, **band)
        ax.axvline(chosen, color=style.ACCENT, lw=1, alpha=0.6)
        ax.plot(chosen, self.surface[best], "o", color=style.ACCENT, ms=6, label="choice")
        ax.set_title(title, fontsize=9)
        ax.set_xlabel(xlabel, fontsize=8)
        style.focus(ax, error, least, np.array([] if axis else [*self.others.values()]))
        style.tidy(ax)
        return least

    def _penalty(self, ax: Any) -> None:
        """Plot the error along the penalty."""
        title = f"penalty: {self.alphas[self.best_index[0]]:.3g}"
        least = self._profile(ax, 0, np.asarray(self.alphas), title, "alpha")
        alphas = np.sort(self.alphas)
        if alphas[0] > 0:
            ax.set_xscale("log")
            margin = (alphas[-1] / alphas[0]) ** 0.05 if alphas.size > 1 else 10.0
            ax.set_xlim(alphas[0] / margin, alphas[-1] * margin)  # all penalties
        elif alphas.size > 2:
            ax.set_xscale("symlog", linthresh=alphas[1])
        self._baselines(ax, least)

    def _baselines(self, ax: Any, least: np.ndarray) -> None:
        """Draw dotted lines, with names at the end that is farther from the curve."""
        ends = least[np.isfinite(least)][[0, -1]]
        errors = np.array([*self.others.values()])
        close = errors.size and np.ptp(errors) < 0.1 * np.ptp(ax.get_ylim())
        word = {"fontsize": 7, "color": style.DARK, "transform": ax.get_yaxis_transform()}
        for name, error in self.others.items():
            ax.axhline(error, color=style.DARK, lw=1, ls=":")
            right = abs(error - ends[1]) > abs(error - ends[0])
            word |= {"va": "top" if close and error == errors.min() else "bottom"}
            ax.text(0.98 * right + 0.01, error, name, ha="right" if right else "left", **word)

    def _heat_maps(self, names: list[str], maps: dict[tuple[int, int], np.ndarray]) -> Any:
        """Draw a heat map for each pair of modes, in one colour scale."""
        from matplotlib.colors import AsinhNorm

        values = np.concatenate([m[np.isfinite(m)] for m in maps.values()])
        # One standard error is at most a ninth of the colour scale, so that differences below it
        # have similar colours, and large differences do not hide small ones.
        choice = float(self.surface[self.best_index])
        unit = self._one_error() or 1e-4 * self._unit() * abs(choice) or 1e-12
        top = max(float(values.max()), 30 * unit)
        norm = AsinhNorm(linear_width=3 * unit, vmin=min(values.min(), 0.0), vmax=top)
        for (i, j), above in maps.items():
            image = self._heat_map(self.axes_[i, j], i, j, above, norm)
            self.axes_[i, j].set_ylabel(names[i], fontsize=8)
            self.axes_[i, j].set_xlabel(names[j], fontsize=8)
        return image

    def _heat_map(self, ax: Any, i: int, j: int, above: np.ndarray, norm: Any) -> Any:
        rows, columns = (np.arange(n + 1) + 0.5 for n in above.shape)  # borders of the cells
        ax.patch.set(**_NOT_COMPUTED)
        image = ax.pcolormesh(columns, rows, above, norm=norm, cmap="viridis_r")
        if self._one_error() > 0:
            style.outline(ax, np.nan_to_num(above, nan=np.inf) <= self._one_error(), 0.5, "white")
        dot = {"color": style.ACCENT, "mec": "white", "ms": 7}
        ax.plot(self.best_index[j + 1] + 1, self.best_index[i + 1] + 1, "o", **dot)
        for axis, n in zip((ax.xaxis, ax.yaxis), above.shape[::-1], strict=True):
            style.rank_axis(axis, n)
        ax.tick_params(labelsize=8)
        return image

    def _key(self, ax: Any, image: Any, some_not_computed: bool) -> None:
        """Draw legend and colour bar in the axes, for many panels, or around the panels."""
        lines = self.axes_[0, 0] if self.axes_.size else None
        handles, labels = lines.get_legend_handles_labels() if lines else ([], [])
        if some_not_computed:
            from matplotlib.patches import Patch

            handles, labels = [*handles, Patch(**_NOT_COMPUTED)], [*labels, "not computed"]
        if image is not None:
            self._colorbar(ax, image)
        options: dict[str, Any] = {"fontsize": 8, "frameon": False, "columnspacing": 1}
        if ax is not None:
            ax.set_axis_off()
            ax.legend(handles, labels, loc="upper left", borderaxespad=0, **options)
        elif handles:
            ncols = 4 if len(labels) < 5 else 3
            self.figure_.legend(handles, labels, loc="outside upper center", ncols=ncols, **options)

    def _colorbar(self, ax: Any, image: Any) -> None:
        if ax is None:
            bar = self.figure_.colorbar(image, ax=self.axes_[1, 0], fraction=0.1, pad=0.02)
        else:
            place = ax.inset_axes([0.02, 0.24, 0.9, 0.08])
            bar = self.figure_.colorbar(image, cax=place, orientation="horizontal")
        unit = " (%)" if self._unit() != 1 else ""
        bar.set_label(f"held-out error\nabove the choice{unit}", fontsize=8)
        ticks = style.marks(image.norm.linear_width, image.norm.vmax)
        bar.set_ticks(ticks, labels=[f"{tick:g}" for tick in ticks])
        bar.ax.minorticks_off()
        bar.ax.tick_params(labelsize=7)

    # ------------------------------------------------------------ numbers

    def _above_choice(self, i: int, j: int) -> np.ndarray:
        """Return errors minus that of the choice for ranks of modes i > j, mode i along rows."""
        at = _section(self.best_index, i + 1, j + 1)
        return (self.surface[at].T - self.surface[self.best_index]) * self._unit()

    def _unit(self) -> float:
        """Return the unit of errors: a percentage of the choice, or 1 if it has no error."""
        choice = float(self.surface[self.best_index])
        return 100.0 / choice if choice > 0 else 1.0

    def _one_error(self) -> float:
        """Return the standard error of the choice, in the same unit; 0 if it is unknown."""
        at = self.best_index
        return 0.0 if self.std_error is None else self._unit() * np.nan_to_num(self.std_error[at])


def _section(index: tuple[int, ...], *axes: int) -> tuple[Any, ...]:
    """Return the index with slices for some of its axes."""
    return tuple(slice(None) if k in axes else i for k, i in enumerate(index))
