"""Plots of the skill of each output, as bars, lines or maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..data.labels import Grid, Labels
from ..metrics.maps import find_skill
from . import _style as style

__all__ = ["SkillMapDisplay"]

_MAX_PANELS = 16
_MAX_BARS = 40
_CLEARLY = -0.05  # lower skills are outlined; a limit of zero would outline every noisy cell


class SkillMapDisplay:
    """Plot of the skill of each output: blue above zero, red below, outlined if clearly below.

    It is recommended to use `from_estimator` to create a `SkillMapDisplay`.

    Parameters
    ----------
    skill : array of shape (d1, ..., dp)
        The skill, with up to three modes of more than one entry. NaN is grey.
    mode_names : sequence of p strings, optional
        Names of the output modes.
    coordinates : sequence of p arrays of shape (d_i,), optional
        Labels of the entries of each mode. The default is their positions.
    label : str, default="skill"
        Name of the score.

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
    >>> from holrr.plotting import SkillMapDisplay
    >>> X, Y = make_tensor_regression(90, n_features=5, rank=2, snr=1.0, random_state=0)
    >>> model = HOLRR(rank=2).fit(X[:60], Y[:60])
    >>> display = SkillMapDisplay.from_estimator(model, X[60:], Y[60:])
    >>> again = display.plot()  # in a new figure
    >>> display.axes_.shape, display.skill.shape == Y.shape[1:]
    ((1,), True)
    """

    def __init__(
        self,
        *,
        skill: Any,
        mode_names: Sequence[str] | None = None,
        coordinates: Sequence[Any] | None = None,
        label: str = "skill",
    ):
        self.skill = np.asarray(skill, dtype=np.float64)
        default = [f"mode{i}" for i in range(1, 1 + self.skill.ndim)]
        self.mode_names = default if mode_names is None else list(mode_names)
        grids = [np.arange(d) for d in self.skill.shape]
        self.coordinates = grids if coordinates is None else [np.asarray(c) for c in coordinates]
        self.label = label
        sizes = tuple(c.size for c in self.coordinates)
        if len(self.mode_names) != self.skill.ndim or sizes != self.skill.shape:
            raise ValueError(
                f"mode_names and coordinates must fit a skill of shape {self.skill.shape}; got "
                f"{len(self.mode_names)} names and coordinates of sizes {sizes}."
            )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        reference: Any = None,
        sample_weight: Any = None,
        fig: Any = None,
    ) -> SkillMapDisplay:
        """Compute the skill of a fitted estimator for each output, and plot it.

        Parameters
        ----------
        estimator, X, y, reference, sample_weight
            As in `skill_map`. The labels are those of `y`, or of the fit.
        fig : matplotlib Figure or SubFigure, optional
            The figure to draw in. The default is a new figure.

        Returns
        -------
        SkillMapDisplay
            The display.
        """
        check_is_fitted(estimator)
        skill, labels = find_skill(estimator, X, y, reference, sample_weight)
        fitted: Labels | None = getattr(estimator, "labels_", None)
        if fitted is not None and fitted.flat:  # the modes of the model, not the flat outputs
            skill, labels = np.reshape(skill, estimator.tucker_.shape[1:]), fitted
        grid = (labels.outputs if labels is not None else None) or Grid()
        names: dict[str, Any] = {}
        if grid.dims:
            coordinates = [grid.coordinate(k) for k in range(len(grid.dims))]
            names = {"mode_names": grid.dims, "coordinates": coordinates}
        label = "skill against " + ("the mean" if reference is None else "the reference")
        return cls(skill=skill, label=label, **names).plot(fig=fig)

    def plot(self, *, fig: Any = None) -> SkillMapDisplay:
        """Plot bars or a line for one mode, a map for two, and several maps for three modes.

        With three modes, each entry of the shortest mode, up to sixteen of them, has a map. The
        colour scale is from -1 (and below) to 1, or narrower if all skills are near zero.

        Parameters
        ----------
        fig : matplotlib Figure or SubFigure, optional
            As in `from_estimator`.

        Returns
        -------
        self
        """
        modes = [k for k, d in enumerate(self.skill.shape) if d > 1] or [0][: self.skill.ndim]
        values = self.skill.reshape([self.skill.shape[k] for k in modes] or [1])
        if len(modes) > 3:
            raise ValueError(
                f"at most three modes can be drawn, but this skill has {len(modes)}, of sizes "
                f"{values.shape}. Draw a part of it, for instance "
                f"SkillMapDisplay(skill=skill[0]).plot()."
            )
        if len(modes) < 2:
            self.figure_ = fig or style.new_figure(5.2, 2.6)
            self.axes_ = np.array([self.figure_.add_subplot()])
            self._line(self.axes_[0], values, modes[0] if modes else None)
        else:
            self._maps(values, modes, fig)
        below, known = int((self.skill < 0).sum()), int((~np.isnan(self.skill)).sum())
        middle = f"median {np.nanmedian(self.skill):.2f}, " if known else ""
        title = f"{middle}{below} of {known} outputs below 0"
        self.figure_.suptitle(title, fontsize=9)
        return self

    # ------------------------------------------------------------ one mode

    def _line(self, ax: Any, values: np.ndarray, mode: int | None) -> None:
        coordinates = np.array([""]) if mode is None else self.coordinates[mode]
        is_line = style.is_ordered(coordinates) and values.size > _MAX_BARS
        order = np.argsort(coordinates) if is_line else slice(None)
        coordinates, values = coordinates[order], values[order]
        shown = np.maximum(values, -1.0)
        if is_line:
            x, fill = coordinates, lambda c: {"color": c, "alpha": 0.25, "lw": 0}
            for color, some in ((style.MAIN, shown > 0), (style.ACCENT, shown < 0)):
                ax.fill_between(x, 0, shown, where=some, interpolate=True, **fill(color))
            ax.plot(x, shown, color=style.MAIN, lw=1.2)
        else:
            x = np.arange(values.size)
            ax.bar(x, shown, 0.8, color=np.where(values < 0, style.ACCENT, style.MAIN))
            style.name_ticks(ax, ax.xaxis, coordinates)
        off = values < -1
        ax.plot(x[off], shown[off], "v", color=style.ACCENT, ms=5, clip_on=False)
        ax.axhline(0, color=style.DARK, lw=0.8)
        ax.set_ylim(min(0.0, 1.05 * np.nanmin(shown, initial=0.0)), None)
        ax.set_xlabel("" if mode is None else style.short(self.mode_names[mode], 40), fontsize=9)
        ax.set_ylabel(self.label, fontsize=9)
        style.tidy(ax)

    # ------------------------------------------------------------ two and three modes

    def _maps(self, values: np.ndarray, modes: list[int], fig: Any) -> None:
        shortest = int(np.argmin(values.shape)) if len(modes) == 3 else None
        panels, titles = values[None], [""]
        if shortest is not None:
            mode = modes.pop(shortest)
            n = values.shape[shortest]
            some = np.unique(np.linspace(0, n - 1, min(n, _MAX_PANELS)).round().astype(int))
            panels = np.moveaxis(values, shortest, 0)[some]
            titles = [
                style.short(f"{self.mode_names[mode]} {self.coordinates[mode][i]}", 26)
                for i in some
            ]
        self.figure_, self.axes_ = style.panels_of_maps(
            panels,
            titles,
            [self.mode_names[mode] for mode in modes],
            [self.coordinates[mode] for mode in modes],
            self.label,
            fig,
        )
        for ax, panel in zip(self.axes_, panels, strict=True):
            style.outline(ax, panel < _CLEARLY, 0.0, "black")
