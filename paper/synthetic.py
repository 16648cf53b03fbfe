"""Figure 1 of the paper: error against the size of the training set, on data of known rank.

There are four panels. "linear" and "nonlinear" are in the paper. "noisy" has noise as strong as the
signal. "anisotropic" has noise of the same strength in a few directions of one output mode. In
these two panels, the noise of the test outputs hides most differences between the methods, so the
table also has the error against the outputs without noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV

from holrr import (
    HOLRRCV,
    LRRCV,
    MLMTNC,
    RLSCV,
    KernelHOLRRCV,
    KernelLRRCV,
    KernelRLSCV,
    TraceNormRegression,
)
from holrr.datasets import make_tensor_regression

from .algorithm_1 import PaperHOLRRCV
from .experiment import COLOURS, Row, Table, Unit, grid, seed_for, summarise

SERIAL = False


@dataclass(frozen=True)
class Config:
    """Settings of the synthetic experiment.

    Parameters
    ----------
    panels : tuple of {"linear", "noisy", "anisotropic", "nonlinear"}
        Panels to compute.
    sizes : tuple of int
        Sizes of the training set.
    n_trials : int
        Number of draws of the data.
    n_test : int
        Size of the test set.
    n_folds : int
        Number of folds of the cross-validation that chooses ranks and penalties.
    noise : float
        Noise of the panels of the paper.
    noise_unit : {"std", "variance"}
        Unit of `noise`. The notation of the paper means a variance; its authors used a standard
        deviation.
    snr : float
        Signal-to-noise ratio of the other two panels, whose signal has unit variance.
    n_noise_directions : int
        Number of directions of the first output mode in which anisotropic noise is ten times as
        strong.
    shape : tuple of int
        Shape of the coefficients of the linear panels.
    rank : tuple of int
        Multilinear rank of the coefficients of the linear panels.
    n_inputs : int
        Number of inputs of the nonlinear panel, whose coefficients multiply all products of inputs.
    nonlinear_rank : tuple of int
        Multilinear rank of the coefficients of the nonlinear panel.
    slow_methods : tuple of str
        Panels on which the two iterative methods run.
    seed : int
        Seed of the data.
    """

    panels: tuple[str, ...] = ("linear", "nonlinear", "noisy", "anisotropic")
    sizes: tuple[int, ...] = (20, 30, 50, 70, 100, 150)
    n_trials: int = 20
    n_test: int = 100
    n_folds: int = 3
    noise: float = 0.1
    noise_unit: str = "std"
    snr: float = 1.0
    n_noise_directions: int = 3
    shape: tuple[int, ...] = (10, 10, 10, 10)
    rank: tuple[int, ...] = (6, 4, 4, 8)
    n_inputs: int = 5
    nonlinear_rank: tuple[int, ...] = (5, 6, 4, 2)
    slow_methods: tuple[str, ...] = ("linear", "noisy")
    seed: int = 0

    @classmethod
    def quick(cls, **changes: Any) -> Config:
        """Return settings that take one or two minutes."""
        return cls(**{"sizes": (20, 50, 100), "n_trials": 4, **changes})

    @classmethod
    def full(cls, **changes: Any) -> Config:
        """Return settings with the number of trials of the paper and more sizes."""
        return cls(**{"sizes": (20, 30, 40, 50, 70, 100, 150, 200), **changes})

    @property
    def noise_level(self) -> float:
        """Standard deviation of the noise of the panels of the paper."""
        return self.noise if self.noise_unit == "std" else float(np.sqrt(self.noise))


# The data have no intercept, and no method fits one.
_ALPHAS = tuple(float(10.0**e) for e in np.arange(-6, 3.5, 0.5))
# The paper chooses one rank.
_RLS_GRID: dict[str, Any] = {"alphas": _ALPHAS, "fit_intercept": False, "selection": "min"}


@dataclass(frozen=True)
class TraceNormSearch:
    """Search from the penalty that makes all coefficients zero down to 1e-5 times this penalty."""

    cv: int

    def fit(self, X: Any, Y: Any) -> GridSearchCV:
        """Return the fitted search."""
        model = TraceNormRegression(fit_intercept=False)
        penalties = model.fit(X, Y).penalty_max_ * np.logspace(0, -5, 16)
        return GridSearchCV(model, {"penalty": penalties}, cv=self.cv).fit(X, Y)


@dataclass(frozen=True)
class MLMTNCSearch:
    """Search with the rank of the best HOLRR, over penalties relative to a ridge solution.

    The largest penalty equals the squared outputs at the blocks of the ridge solution, which have
    equal norms.
    """

    cv: int

    def fit(self, X: Any, Y: Any) -> GridSearchCV:
        """Return the fitted search."""
        best = HOLRRCV(cv=self.cv, **_RLS_GRID).fit(X, Y)
        n_blocks = Y.ndim + 1
        size = n_blocks * float(np.linalg.norm(best.coef_)) ** (2 / n_blocks)
        betas = float(np.sum(Y**2)) / size * np.logspace(-6, 0, 13)
        model = MLMTNC(best.rank_, fit_intercept=False)
        return GridSearchCV(model, {"beta": betas}, cv=self.cv).fit(X, Y)


LINEAR_METHODS: dict[str, Callable[[int], Any]] = {
    "RLS": lambda cv: RLSCV(cv=cv, **_RLS_GRID),
    "LRR": lambda cv: LRRCV(cv=cv, **_RLS_GRID),
    "Trace norm": TraceNormSearch,
    "MLMT-NC": MLMTNCSearch,
    "HOLRR (paper)": lambda cv: PaperHOLRRCV(_RLS_GRID["alphas"], cv),
    "HOLRR (ours)": lambda cv: HOLRRCV(cv=cv, **_RLS_GRID),
    "HOLRR (refined)": lambda cv: HOLRRCV(cv=cv, refine=True, **_RLS_GRID),
}
SLOW_METHODS = ("Trace norm", "MLMT-NC")

_KERNELS = [
    {"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": 0.0},
    {"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": 1.0},
    *({"kernel": "rbf", "gamma": g} for g in (0.003, 0.01, 0.03, 0.1)),
]
_KERNEL_GRID: dict[str, Any] = {
    "selection": "min",
    "alphas": tuple(float(10.0**e) for e in range(-4, 4)),
    "kernel": _KERNELS,
    "fit_intercept": False,
    "center_kernel": False,
}
NONLINEAR_METHODS: dict[str, Callable[[int], Any]] = {
    "RLS": lambda cv: KernelRLSCV(cv=cv, **_KERNEL_GRID),
    "LRR": lambda cv: KernelLRRCV(cv=cv, **_KERNEL_GRID),
    "HOLRR (paper)": lambda cv: PaperHOLRRCV(_KERNEL_GRID["alphas"], cv, kernel=_KERNELS),
    "HOLRR (ours)": lambda cv: KernelHOLRRCV(cv=cv, **_KERNEL_GRID),
}


def methods_of(config: Config, panel: str) -> dict[str, Callable[[int], Any]]:
    if panel == "nonlinear":
        return NONLINEAR_METHODS
    slow = panel in config.slow_methods
    return {name: m for name, m in LINEAR_METHODS.items() if slow or name not in SLOW_METHODS}


@dataclass(frozen=True, eq=False)
class Data:
    """Test samples, followed by training samples; training sets are nested."""

    X: np.ndarray
    Y: np.ndarray
    signal: np.ndarray


def draw_data(config: Config, panel: str, trial: int) -> Data:
    """Draw the inputs, outputs and outputs without noise of one trial."""
    kind: dict[str, Any] = {"n_features": config.shape[0], "rank": config.rank}
    if panel == "nonlinear":
        kind = {"n_features": config.n_inputs, "rank": config.nonlinear_rank, "kind": "quadratic"}
    X, Y, W = make_tensor_regression(
        n_samples=config.n_test + max(config.sizes),
        output_shape=config.shape[1:],
        random_state=seed_for(config.seed, "synthetic", panel, trial),
        return_coef=True,
        **kind,
        **_noise(config, panel),
    )
    features = (X[:, :, None] * X[:, None, :]).reshape(len(X), -1) if "kind" in kind else X
    return Data(X, Y, np.tensordot(features, W, axes=1))


def _noise(config: Config, panel: str) -> dict[str, Any]:
    if panel in ("linear", "nonlinear"):
        return {"noise": config.noise_level}
    noise: dict[str, Any] = {"snr": config.snr, "normalize": True}
    if panel == "anisotropic":
        noise |= {"noise_kind": "anisotropic", "n_noise_directions": config.n_noise_directions}
    return noise


def units(config: Config) -> list[Unit]:
    return [
        (panel, size, trial, method)
        for panel in config.panels
        for size in config.sizes
        for trial in range(config.n_trials)
        for method in methods_of(config, panel)
    ]


def run_unit(config: Config, unit: Unit) -> Table:
    panel, size, trial, method = unit
    data = draw_data(config, panel, trial)
    test, train = slice(config.n_test), slice(config.n_test, config.n_test + size)
    model = methods_of(config, panel)[method](config.n_folds)
    predicted = model.fit(data.X[train], data.Y[train]).predict(data.X[test])
    return [
        {
            "panel": panel,
            "n_train": size,
            "trial": trial,
            "method": method,
            "rmse": _rms(predicted - data.Y[test]),
            "rmse_to_signal": _rms(predicted - data.signal[test]),
        }
    ]


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


# ---------------------------------------------------------------- tables and figure

PANELS = {
    "linear": "Linear data of the paper",
    "nonlinear": "Nonlinear data of the paper",
    "noisy": "Linear, noise as strong as the signal",
    "anisotropic": "Linear, noise in a few directions",
}
# Error against noisy test outputs, as in the paper, or against outputs without noise.
VALUES = {
    "linear": "rmse",
    "nonlinear": "rmse",
    "noisy": "rmse_to_signal",
    "anisotropic": "rmse_to_signal",
}


def means(rows: Table, panel: str) -> Table:
    """Return mean and standard error of each method and size of the training set."""
    chosen = [row for row in rows if row["panel"] == panel]
    return summarise(chosen, ["method", "n_train"], VALUES[panel])


def text(rows: Table) -> str:
    """Return a table of errors for each panel."""
    parts = []
    for panel in dict.fromkeys(row["panel"] for row in rows):
        found = means(rows, panel)
        what = "RMSE" if VALUES[panel] == "rmse" else "RMSE to the outputs without noise"
        parts.append(
            f"{PANELS[panel]}, {what}, mean of {found[0]['n']} trials:\n\n"
            f"{grid(found, 'method', 'n_train', 'N = ')}"
        )
    return "\n".join(parts)


# Markers of different size, some hollow, so that coinciding lines are all visible.
MARKS: dict[str, dict[str, Any]] = {
    "RLS": {"marker": "s"},
    "LRR": {"marker": "^"},
    "Trace norm": {"marker": "v"},
    "MLMT-NC": {"marker": "D", "markersize": 9.5, "markerfacecolor": "none"},
    "HOLRR (paper)": {"marker": "o", "markersize": 7, "markerfacecolor": "none", "linestyle": "--"},
    "HOLRR (ours)": {"marker": "o", "markersize": 4},
    "HOLRR (refined)": {"marker": "x", "markersize": 7, "linestyle": ":"},
}


def figures(config: Config, rows: Table) -> dict[str, Any]:
    """Draw error against the size of the training set, with a panel for each kind of data."""
    from matplotlib.figure import Figure

    n_rows, n_columns = math.ceil(len(config.panels) / 2), min(2, len(config.panels))
    figure = Figure(figsize=(4.9 * n_columns, 3.3 * n_rows + 0.5), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False)
    handles: dict[str, Any] = {}
    for ax, panel in zip(axes.flat, config.panels, strict=False):
        handles |= _draw_panel(ax, config, panel, means(rows, panel))
    for ax in axes.flat[len(config.panels) :]:
        ax.set_axis_off()
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4)
    return {"rmse": figure}


def _draw_panel(ax: Any, config: Config, panel: str, found: list[Row]) -> dict[str, Any]:
    is_paper = VALUES[panel] == "rmse"
    handles = {}
    for method in dict.fromkeys(row["method"] for row in found):
        line = [row for row in found if row["method"] == method]
        handles[method] = ax.errorbar(
            [row["n_train"] for row in line],
            [row["mean"] for row in line],
            yerr=[0.0 if math.isnan(row["error"]) else row["error"] for row in line],
            color=COLOURS[method],
            capsize=2,
            zorder=4 if method.startswith("HOLRR") else 2,
            **MARKS[method],
        )
    if is_paper:
        # No prediction can have a lower error than the noise, which is the same in every trial.
        handles["noise"] = ax.axhline(config.noise_level, color="#8b949e", lw=1, ls=":")
    ax.set_xscale("log")
    ax.set_xticks(config.sizes, [str(n) for n in config.sizes])
    ax.minorticks_off()
    if not is_paper:
        ax.set_yscale("log")
        ticks = [
            t for t in (0.05, 0.1, 0.2, 0.5, 1, 2, 5) if ax.get_ylim()[0] < t < ax.get_ylim()[1]
        ]
        ax.set_yticks(ticks, [f"{t:g}" for t in ticks])
        ax.minorticks_off()
    ax.set_title(PANELS[panel], loc="left")
    ax.set_xlabel("size of the training set")
    ax.set_ylabel("RMSE on the test set" if is_paper else "RMSE to the noiseless test set")
    return handles
