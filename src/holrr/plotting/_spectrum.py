"""Plots of the energies of each mode of the whitened tensor Z."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..data.pipelines import last_step
from . import _style as style

__all__ = ["SpectrumDisplay"]

_FLOOR = 1e-8  # smaller percentages of the energy are rounding errors


class SpectrumDisplay:
    """Plot of the share of the energy of Z in each singular direction of each mode.

    The directions that a model keeps are shaded. It is recommended to use `from_estimator` to
    create a `SpectrumDisplay`.

    Parameters
    ----------
    spectra : sequence of p + 1 arrays
        Leading squared singular values of each mode; empty if a mode was not decomposed.
    rank : sequence of p + 1 ints
        Number of directions of each mode that are kept.
    shape : sequence of p + 1 ints, optional
        Sizes of the modes, if the spectra are truncated. The default is the lengths of the
        spectra.
    energy : float, optional
        Total energy. A truncated spectrum contains only a part of the energy. The default is the
        largest sum of a spectrum.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure.
    axes_ : array of Axes
        The axes, one for each mode with a spectrum.

    See Also
    --------
    RankSurfaceDisplay : Plot of the held-out error of all ranks.

    Examples
    --------
    >>> from holrr import HOLRR
    >>> from holrr.datasets import make_tensor_regression
    >>> from holrr.plotting import SpectrumDisplay
    >>> X, Y = make_tensor_regression(60, n_features=5, rank=2, snr=1.0, random_state=0)
    >>> display = SpectrumDisplay.from_estimator(HOLRR(rank=2).fit(X, Y))
    >>> again = display.plot()  # in a new figure
    >>> display.axes_.shape
    (3,)

    For a stack the ranks are those of its best single model:

    >>> from holrr import HOLRRCV
    >>> search = HOLRRCV().fit(X, Y)
    >>> SpectrumDisplay.from_estimator(search).rank == search.best_params_["rank"]
    True
    """

    def __init__(
        self,
        *,
        spectra: Sequence[np.ndarray],
        rank: Sequence[int],
        shape: Sequence[int] | None = None,
        energy: float | None = None,
    ):
        self.spectra = [np.asarray(s) for s in spectra]
        self.rank = tuple(rank)
        self.shape = tuple(s.size for s in self.spectra) if shape is None else tuple(shape)
        self.energy = max(float(s.sum()) for s in self.spectra) if energy is None else energy

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, mode_names: Sequence[str] | None = None, fig: Any = None
    ) -> SpectrumDisplay:
        """Plot the spectra of a fitted estimator.

        A stack mixes many ranks; the directions of its best single model are shaded.

        Parameters
        ----------
        estimator : HOLRR, LRR, their searches or kernel versions
            A fitted estimator.
        mode_names : sequence of p + 1 strings, optional
            Names of the modes, input mode first. The default is those of the data.
        fig : matplotlib Figure or SubFigure, optional
            The figure to draw in. The default is a new figure.

        Returns
        -------
        SpectrumDisplay
            The display.
        """
        estimator = last_step(estimator)
        check_is_fitted(estimator)
        display = cls(
            spectra=getattr(estimator, "spectra_", []),
            rank=_kept(estimator),
            shape=estimator.tucker_.shape,
            energy=getattr(estimator, "energy_", 0.0),
        )
        names = style.names_of(estimator, mode_names, len(display.spectra))
        return display.plot(mode_names=names, fig=fig)

    def plot(self, *, mode_names: Sequence[str] | None = None, fig: Any = None) -> SpectrumDisplay:
        """Plot one panel for each mode with a spectrum.

        Parameters
        ----------
        mode_names, fig
            As in `from_estimator`.

        Returns
        -------
        self
        """
        names = style.check_mode_names(mode_names, len(self.spectra))
        modes = [i for i, s in enumerate(self.spectra) if s.size and s.sum() > 0]
        if not modes:
            raise ValueError(
                "the model has no spectra: only LRR, HOLRR, their kernel versions and searches "
                "have spectra, and only if their coefficients are not zero."
            )
        columns = min(len(modes), 3)
        rows = -(-len(modes) // columns)
        self.figure_ = fig or style.new_figure(3.0 * columns, 2.5 * rows)
        grid = self.figure_.add_gridspec(rows, columns)
        self.axes_ = np.empty(len(modes), dtype=object)
        for k, i in enumerate(modes):
            self.axes_[k] = self.figure_.add_subplot(grid[k // columns, k % columns])
            self._panel(self.axes_[k], i, names[i])
            if k % columns == 0:
                self.axes_[k].set_ylabel("share of the energy (%)", fontsize=8)
        return self

    def _panel(self, ax: Any, mode: int, name: str) -> None:
        share, R = 100 * self.spectra[mode] / self.energy, self.rank[mode]
        share = share[: max(R, *np.flatnonzero(share > _FLOOR) + 1)]  # the other shares are zero
        index = np.arange(1, share.size + 1)
        # Draw points, since bars have no defined length on a log scale.
        heights = np.where(share > _FLOOR, share, np.nan)
        dots = {"marker": "o", "ms": 5 if share.size <= 40 else 3, "lw": 1}
        ax.plot(index[R - 1 :], heights[R - 1 :], color=style.MUTED, **dots, label="cut off")
        ax.plot(index[:R], heights[:R], color=style.MAIN, **dots, label="kept")
        ax.axvspan(0.5, R + 0.5, color=style.MAIN, alpha=0.08, lw=0, zorder=0)
        ax.axvline(R + 0.5, color=style.ACCENT, lw=1)
        visible = share[share > _FLOOR]
        ax.set_ylim(visible.min() / 2, 1.5 * visible.max())
        style.plain_log(ax.yaxis, (1, 2, 5) if visible.max() < 1000 * visible.min() else (1,))
        style.rank_axis(ax.xaxis, share.size)
        ax.set_xlim(0.5, share.size + 0.5)
        kept = float(share[:R].sum())
        ax.set_title(
            f"{style.short(name, 14)}: {R} of {self.shape[mode]}, {kept:.3g} % kept", fontsize=9
        )
        cut_short = mode > 0 and share.size < self.shape[mode]
        ax.set_xlabel(f"singular direction{', the first' if cut_short else ''}", fontsize=8)
        style.tidy(ax)


def _kept(estimator: Any) -> tuple[int, ...]:
    """Return the rank of each mode; for a stack, that of the best single model."""
    rank = tuple(estimator.tucker_.rank)
    if not hasattr(estimator, "stack_ranks_"):
        return rank
    best = estimator.best_params_["rank"]
    best = best if isinstance(best, tuple) else (best,)
    return (*best, *rank[len(best) :])
