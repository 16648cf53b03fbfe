"""The error surface of a cross-validated estimator, as profiles and heat maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ._style import ACCENT, DARK, MAIN, check_mode_names, names_of, new_figure, outline, short, tidy

__all__ = ["RankSurfaceDisplay"]


class RankSurfaceDisplay:
    """Error over the ranks of all modes: profiles on the diagonal, pairs of modes below it.

    Use `from_estimator` to make one.

    Parameters
    ----------
    surface : array of shape (n_alphas, R0, ..., Rp)
        Error of every penalty and rank; NaN for what is no candidate.
    alphas : array of shape (n_alphas,)
    best_index : tuple of p + 2 ints
        The choice.
    std_error : array of the shape of `surface`, optional
        Standard errors, drawn as a band.
    label : str, default="held-out error"
        What the error is.
    others : dict, optional
        Errors to compare with, by their names: dotted lines beside the error along the penalty.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : array of shape (p + 1, p + 1)
        Axes of the modes' panels, None above the diagonal.
    alpha_ax_ : matplotlib Axes or None
        The panel of the penalty.

    See Also
    --------
    SpectrumDisplay : The energies of each mode.

    Examples
    --------
    >>> from holrr.datasets import make_tensor_regression
    >>> from holrr.model_selection import HOLRRCV
    >>> from holrr.plotting import RankSurfaceDisplay
    >>> X, Y = make_tensor_regression(60, n_features=5, rank=2, snr=1.0, random_state=0)
    >>> display = RankSurfaceDisplay.from_estimator(HOLRRCV().fit(X, Y))
    >>> again = display.plot()  # once more, in a figure of its own
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
        label: str = "held-out error",
        others: Mapping[str, float] | None = None,
    ):
        self.surface = surface
        self.alphas = alphas
        self.best_index = tuple(best_index)
        self.std_error = std_error
        self.label = label
        self.others = dict(others or {})

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, mode_names: Sequence[str] | None = None, fig: Any = None
    ) -> RankSurfaceDisplay:
        """Draw the error surface of a fitted cross-validated estimator.

        Parameters
        ----------
        estimator : HOLRRCV, TraceNormRegressionCV or any other of the searches
        mode_names : sequence of p + 1 strings, optional
            Names of the modes, input mode first; by default those of the data.
        fig : matplotlib Figure or SubFigure, optional
            Where to draw; a new figure by default.
        """
        check_is_fitted(estimator, "best_index_")
        results, index = estimator.cv_results_, estimator.best_index_
        # What is chosen beside penalty and ranks (a kernel, say) is at its best.
        n_ranks = results["n_parameters"].ndim if "n_parameters" in results else 0
        lead = index[: len(index) - 1 - n_ranks]
        key = "mean_mse" if "mean_mse" in results else estimator.criterion
        std_error = None
        if "fold_mse" in results and len(results["fold_mse"]) > 1:
            std_error = results["std_mse"][lead] / np.sqrt(len(results["fold_mse"]) - 1)
        display = cls(
            surface=results[key][lead],
            alphas=results[estimator._penalties],
            best_index=index[len(lead) :],
            std_error=std_error,
            label="held-out error" if key == "mean_mse" else key.upper(),
            others={
                name: getattr(estimator, attribute)
                for name, attribute in (("mean", "null_mse_"), ("ridge", "ridge_mse_"))
                if hasattr(estimator, attribute)
            },
        )
        names = names_of(estimator, mode_names, display.surface.ndim - 1)
        return display.plot(mode_names=names, fig=fig)

    def plot(
        self, *, mode_names: Sequence[str] | None = None, fig: Any = None
    ) -> RankSurfaceDisplay:
        """Draw the profiles along each mode and the heat maps of each pair of modes.

        A profile keeps all other ranks and the penalty at their choice (solid, the band is one
        standard error to each side) or takes the best of the other ranks (dashed). Colours of a
        heat map say how far the error is above that of the choice; the white line encloses what
        is within one standard error of it.

        Parameters
        ----------
        mode_names, fig
            As in `from_estimator`.
        """
        n = self.surface.ndim - 1
        names = [short(name, 20) for name in check_mode_names(mode_names, n)]
        side = 2.1 if n > 2 else 2.8
        # With few modes the penalty's panel gets a column of its own.
        columns = n if n > 2 else n + 1
        self.figure_ = fig or new_figure(side * columns + 1.4 * (n > 1), side * max(n, 1))
        grid = self.figure_.add_gridspec(max(n, 1), columns)
        self.axes_ = np.full((n, n), None, dtype=object)
        for i in range(n):
            self.axes_[i, i] = self.figure_.add_subplot(grid[i, i])
            self._profile(self.axes_[i, i], i, names[i])
            for j in range(i):
                self.axes_[i, j] = self.figure_.add_subplot(grid[i, j])
        self.alpha_ax_ = self.figure_.add_subplot(grid[0, columns - 1])
        self._penalty(self.alpha_ax_)
        if n > 1:
            self._heat_maps(names)
        if n > 0:
            handles, labels = self.axes_[0, 0].get_legend_handles_labels()
            self.figure_.legend(handles, labels, loc="outside upper left", ncols=4, fontsize=8)
        return self

    # ------------------------------------------------------------ panels

    def _profile(self, ax: Any, mode: int, name: str) -> None:
        """Error along the rank of one mode."""
        best = list(self.best_index)
        at = _section(self.best_index, mode + 1)
        ranks = np.arange(1, self.surface.shape[mode + 1] + 1)
        error, chosen = self.surface[at], best[mode + 1]
        others = tuple(i for i in range(self.surface.ndim - 1) if i != mode)
        least = _nanmin(self.surface[best[0]], others)
        if self.surface.ndim > 2:
            ax.plot(ranks, least, "--", color=DARK, lw=1.5, label="best of the other ranks")
        self._line(ax, ranks, at)
        ax.axvline(chosen + 1, color=ACCENT, lw=1, alpha=0.6)
        ax.plot(chosen + 1, error[chosen], "o", color=ACCENT, ms=6, label="choice")
        ax.set_title(f"{name}: {chosen + 1}", fontsize=9)
        ax.set_xlabel("rank", fontsize=8)
        ax.set_ylabel(self.label, fontsize=8)
        ax.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
        _focus(ax, error, least)
        # To the left of all panels but the first there is a heat map.
        tidy(ax, "left" if mode == 0 else "right")

    def _penalty(self, ax: Any) -> None:
        """Error along the penalty."""
        chosen, rank = self.best_index[0], self.best_index[1:]
        order = np.argsort(self.alphas)
        alphas, at = np.asarray(self.alphas)[order], _section((0, *rank), 0)
        least = _nanmin(self.surface, tuple(range(1, self.surface.ndim)))[order]
        if rank:
            ax.plot(alphas, least, "--", color=DARK, lw=1.5)
        self._line(ax, alphas, at, order)
        ax.axvline(self.alphas[chosen], color=ACCENT, lw=1, alpha=0.6)
        ax.plot(self.alphas[chosen], self.surface[self.best_index], "o", color=ACCENT, ms=6)
        if alphas[0] > 0:
            ax.set_xscale("log")
        elif alphas.size > 2:
            ax.set_xscale("symlog", linthresh=alphas[1])
        ax.set_title(f"penalty: {self.alphas[chosen]:.3g}", fontsize=9)
        ax.set_xlabel("alpha", fontsize=8)
        ax.set_ylabel(self.label, fontsize=8)
        for name, error in self.others.items():
            ax.axhline(error, color=DARK, lw=1, ls=":")
            place = {"transform": ax.get_yaxis_transform(), "ha": "right", "va": "bottom"}
            ax.text(0.99, error, name, fontsize=7, color=DARK, **place)
        _focus(ax, self.surface[at], least, np.array([*self.others.values()]))
        tidy(ax)

    def _line(self, ax: Any, x: np.ndarray, at: tuple, order: Any = slice(None)) -> None:
        """A section of the surface, in the given order, with its band."""
        error = self.surface[at][order]
        seen = np.isfinite(error)
        marker = "." if x.size <= 40 else None
        ax.plot(x[seen], error[seen], color=MAIN, lw=1.5, marker=marker, label="others as chosen")
        if self.std_error is not None:
            e = self.std_error[at][order]
            low, high = (error - e)[seen], (error + e)[seen]
            band = {"color": MAIN, "alpha": 0.15, "lw": 0, "label": "one standard error"}
            ax.fill_between(x[seen], low, high, **band)

    def _heat_maps(self, names: list[str]) -> None:
        """One heat map for each pair of modes, in one scale of colours."""
        from matplotlib.colors import AsinhNorm

        maps = {(i, j): self._above_choice(i, j) for i in range(len(names)) for j in range(i)}
        values = np.concatenate([m[np.isfinite(m)] for m in maps.values()])
        # Differences below a standard error look alike, large ones do not drown the small.
        width = self._unit() * self._std_error_of_choice() or max(np.ptp(values) / 100, 1e-12)
        largest = max(float(values.max()), 1e-9)
        norm = AsinhNorm(linear_width=width, vmin=values.min(), vmax=largest)
        image = None
        for (i, j), above in maps.items():
            image = self._heat_map(self.axes_[i, j], i, j, above, norm)
            self.axes_[i, j].set_ylabel(names[i] if j == 0 else "", fontsize=8)
            last = i == len(names) - 1
            self.axes_[i, j].set_xlabel(names[j] if last else "", fontsize=8)
        unit = " (%)" if self._unit() != 1 else ""
        panels = [self.alpha_ax_, *self.axes_[np.tril_indices(len(names))]]
        bar = self.figure_.colorbar(image, ax=panels, shrink=0.7, pad=0.02, aspect=30)
        bar.set_label(f"{self.label} above the choice{unit}", fontsize=8)
        bar.set_ticks(_decades(width, largest))
        bar.ax.tick_params(labelsize=7)

    def _heat_map(self, ax: Any, i: int, j: int, above: np.ndarray, norm: Any) -> Any:
        rows, columns = (np.arange(n + 1) + 0.5 for n in above.shape)  # borders, also of one cell
        image = ax.pcolormesh(columns, rows, above, norm=norm, cmap="viridis_r")
        bound = self._unit() * self._std_error_of_choice()
        inside = np.nan_to_num(above, nan=np.inf) <= bound
        if bound > 0:
            outline(ax, inside, 0.5, "white")
        ax.plot(
            self.best_index[j + 1] + 1,
            self.best_index[i + 1] + 1,
            "o",
            color=ACCENT,
            mec="white",
            ms=7,
        )
        for axis in (ax.xaxis, ax.yaxis):
            axis.get_major_locator().set_params(integer=True, min_n_ticks=1)
        ax.tick_params(labelsize=8)
        return image

    # ------------------------------------------------------------ numbers

    def _above_choice(self, i: int, j: int) -> np.ndarray:
        """Error above that of the choice for all ranks of modes i > j, mode i along the rows."""
        at = _section(self.best_index, i + 1, j + 1)
        return (self.surface[at].T - self.surface[self.best_index]) * self._unit()

    def _unit(self) -> float:
        """Errors are shown in percent of the choice's; information criteria as they are."""
        if self.std_error is None and self.label != "held-out error":
            return 1.0
        choice = float(self.surface[self.best_index])
        return 100.0 / choice if choice > 0 else 1.0

    def _std_error_of_choice(self) -> float:
        return 0.0 if self.std_error is None else float(self.std_error[self.best_index])


def _section(index: tuple[int, ...], *axes: int) -> tuple[Any, ...]:
    """The index with some of its axes set free."""
    return tuple(slice(None) if k in axes else i for k, i in enumerate(index))


def _decades(width: float, largest: float) -> list[float]:
    """Zero and the powers of ten between the linear part of a scale and its end."""
    first, last = np.ceil(np.log10(width)), np.floor(np.log10(largest))
    return [0.0, *(10.0 ** np.arange(first, last + 1))]


def _nanmin(A: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Least along some axes; NaN only where there is nothing else."""
    least = np.min(np.where(np.isnan(A), np.inf, A), axis=axes)
    return np.where(np.isinf(least), np.nan, least)


def _focus(ax: Any, *curves: np.ndarray) -> None:
    """Leave out of sight what is far above, as unpenalised fits of high rank can be."""
    values = np.concatenate([c[np.isfinite(c)] for c in curves])
    low, high = values.min(), values.max()
    if low > 0 and high > 20 * low:
        ax.set_yscale("log")
