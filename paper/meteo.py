"""Table 2 of the paper: forecasts of the next k months of weather at 16 stations.

The protocol of the paper uses all overlapping windows in random order: N windows for training, 50
for testing, and 20 for the choice of penalty, ranks and kernel, without an intercept. A grid of
penalties up to 10 reproduces its numbers, but nearly every linear search chooses its largest
penalty. The groups "wide" therefore repeat the protocol with grids that contain the optimum, and
"cross-validated" uses the searches of the library as a user would. Three rows are not in the paper:
the month-of-year climatology, HOLRR with the calendar as additional inputs, and HOLRR on anomalies
from the climatology.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holrr.datasets import fetch_met_office, make_forecast_windows

from .experiment import COLOURS, FAINT, Row, Table, Unit, markdown, seed_for, summarise
from .meteo_methods import CROSS_VALIDATED, METHODS, SLOW, Windows
from .published import TABLE_2

SERIAL = False
N_PAST = 2


@dataclass(frozen=True)
class Config:
    """Settings of the forecasting experiment.

    Parameters
    ----------
    horizons : tuple of int
        Numbers k of months to predict.
    sizes : tuple of int
        Sizes N of the training set.
    n_splits : int
        Number of random splits into training, validation and test set.
    n_splits_slow : int
        Number of splits on which the slow methods run.
    n_test, n_valid : int
        Sizes of the test and validation sets.
    groups : tuple of str
        Methods to run, see `METHODS`.
    seed : int
        Seed of the random splits.
    """

    horizons: tuple[int, ...] = (1, 3, 5)
    sizes: tuple[int, ...] = (50, 100)
    n_splits: int = 10
    n_splits_slow: int = 10
    n_test: int = 50
    n_valid: int = 20
    groups: tuple[str, ...] = tuple(METHODS)
    seed: int = 0

    @classmethod
    def quick(cls, **changes: Any) -> Config:
        """Return settings with the splits of the paper, and fewer for the slow methods."""
        return cls(**{"n_splits_slow": 5, **changes})

    @classmethod
    def full(cls, **changes: Any) -> Config:
        """Return settings with five times the splits of the paper."""
        return cls(**{"n_splits": 50, "n_splits_slow": 20, **changes})


@lru_cache
def load_weather() -> tuple[NDArray[np.float64], NDArray[np.datetime64]]:
    """Return the standardised weather, (months, 16 stations, 5 variables), and the months.

    Each variable is standardised over all stations and months together. The station files are in
    the folder that the variable HOLRR_METEO_DIR names. Without it, they are downloaded.
    """
    folder = os.environ.get("HOLRR_METEO_DIR") or None
    weather = fetch_met_office(folder, stations="complete")
    data = weather.data
    return (data - data.mean(axis=(0, 1))) / data.std(axis=(0, 1)), weather.months


def draw_split(config: Config, k: int, n_train: int, split: int) -> Windows:
    """Draw one random split; the smaller training sets of a split are parts of the larger."""
    data, months = load_weather()
    X, Y, first = make_forecast_windows(data, n_past=N_PAST, n_future=k, months=months)
    rng = np.random.default_rng(seed_for(config.seed, "meteo", k, split))
    order = rng.permutation(len(X))
    n_rest = config.n_test + config.n_valid
    if n_rest + n_train > len(X):
        raise ValueError(
            f"The split needs {n_rest + n_train} windows, and the data have {len(X)}. Reduce "
            f"n_train, n_test or n_valid."
        )
    return Windows(
        X,
        Y,
        first.astype(int),
        test=order[: config.n_test],
        valid=order[config.n_test : n_rest],
        train=order[n_rest : n_rest + n_train],
    )


def units(config: Config) -> list[Unit]:
    return [
        (k, n_train, split, group)
        for k in config.horizons
        for n_train in config.sizes
        for split in range(config.n_splits)
        for group in config.groups
        if group not in SLOW or split < config.n_splits_slow
    ]


def run_unit(config: Config, unit: Unit) -> Table:
    k, n_train, split, group = unit
    windows = draw_split(config, k, n_train, split)
    found = METHODS[group](windows)
    truth = windows.Y[windows.test]
    return [
        {
            "k": k,
            "n_train": n_train,
            "split": split,
            "kernel": "linear" if group == "trace norm" else group,
            "method": method,
            "rmse": float(np.sqrt(np.mean((forecast.predicted - truth) ** 2))),
            "at_edge": None if forecast.at_edge is None else int(forecast.at_edge),
        }
        for method, forecast in found.items()
    ]


# ---------------------------------------------------------------- tables and figure

# Rows of the tables, from top to bottom: (kernel, method) -> label. First those of the paper.
PAPER_GRID = {
    ("linear", "Trace norm"): "trace norm",
    ("linear", "RLS"): "RLS",
    ("linear", "LRR"): "LRR",
    ("linear", "HOLRR"): "HOLRR",
    ("rbf", "RLS"): "RLS, rbf",
    ("rbf", "LRR"): "LRR, rbf",
    ("rbf", "HOLRR"): "HOLRR, rbf",
    ("poly", "RLS"): "RLS, poly",
    ("poly", "LRR"): "LRR, poly",
    ("poly", "HOLRR"): "HOLRR, poly",
}
OTHERS = {
    **{
        (f"{kernel}, wide", method): f"{label}, wide grid"
        for (kernel, method), label in PAPER_GRID.items()
        if kernel != "poly" and method != "Trace norm"
    },
    **{("cross-validated", method): f"{method}, cross-validated" for method in CROSS_VALIDATED},
    ("climatology", "Climatology"): "climatology",
    ("calendar", "HOLRR (ours)"): "HOLRR + calendar",
    ("anomalies", "HOLRR (ours)"): "HOLRR on anomalies",
}
LABELS = {**PAPER_GRID, **OTHERS}


def summary(rows: Table) -> Table:
    """Return the mean error of each method in each cell, and the searches at an end of the grid.

    Parameters
    ----------
    rows : list of dict
        Table of the experiment.

    Returns
    -------
    list of dict
        Columns k, n_train, kernel, method, mean, error, n, at_edge and paper. The column at_edge is
        the number of searches that chose an end of their grid, or None without a search.
    """
    by = ("k", "n_train", "kernel", "method")
    edges: dict[Unit, int] = {}
    for row in rows:
        if row["at_edge"] is not None:
            key = tuple(row[column] for column in by)
            edges[key] = edges.get(key, 0) + row["at_edge"]
    found = summarise(rows, by, "rmse")
    for row in found:
        row["at_edge"] = edges.get(tuple(row[column] for column in by))
        paper = TABLE_2.get((row["k"], row["n_train"]), {})
        row["paper"] = paper.get((row["kernel"], row["method"]))
    return found


def text(rows: Table) -> str:
    """Return the table of the paper, a table of our additions, and the searches at an end."""
    found = summary(rows)
    parts = []
    for title, labels in (("the paper's in brackets", PAPER_GRID), ("additions", OTHERS)):
        parts += [f"RMSE, mean of {max(r['n'] for r in found)} splits, {title}:\n"]
        parts += [_grid(found, labels), f"At an end of the grid: {_edges(found, labels)}.\n"]
    return "\n".join(parts)


def _grid(found: Table, labels: dict[tuple[str, str], str]) -> str:
    cells = list(dict.fromkeys((row["k"], row["n_train"]) for row in found))
    body = []
    for key, label in labels.items():
        of_method = {(r["k"], r["n_train"]): r for r in found if (r["kernel"], r["method"]) == key}
        if of_method:
            body.append([label, *(_cell(of_method[cell]) for cell in cells)])
    return markdown(["", *(f"k={k}, N={n}" for k, n in cells)], body)


def _cell(row: Row) -> str:
    paper = "" if row["paper"] is None else f" ({row['paper']:.4f})"
    return f"{row['mean']:.4f}±{row['error']:.4f}{paper}"


def _edges(found: Table, labels: dict[tuple[str, str], str]) -> str:
    words = []
    for key, label in labels.items():
        rows = [r for r in found if (r["kernel"], r["method"]) == key and r["at_edge"] is not None]
        if rows:
            count, n = sum(r["at_edge"] for r in rows), sum(r["n"] for r in rows)
            words.append(f"{label.replace(', ', ' ')} {count} of {n}")
    return ", ".join(words)


def figures(config: Config, rows: Table) -> dict[str, Any]:
    """Draw one panel for each cell of the table of the paper."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    found = summary(rows)
    keys = [k for k in LABELS if any((row["kernel"], row["method"]) == k for row in found)]
    figure = Figure(
        figsize=(
            3.3 * len(config.horizons) + 1.2,
            (0.2 * len(keys) + 0.75) * len(config.sizes) + 0.4,
        ),
        layout="constrained",
    )
    grid = figure.subplots(
        len(config.sizes), len(config.horizons), squeeze=False, sharex=True, sharey=True
    )
    ring: dict[str, Any] = {"mfc": "none", "mec": FAINT, "mew": 1.5, "ms": 9}
    for axes, size in zip(grid, config.sizes, strict=True):
        for ax, k in zip(axes, config.horizons, strict=True):
            for row in (r for r in found if (r["k"], r["n_train"]) == (k, size)):
                height = keys.index((row["kernel"], row["method"]))
                colour = COLOURS.get(row["method"], FAINT)
                ax.errorbar(
                    row["mean"], height, xerr=row["error"], fmt="o", capsize=2.5, color=colour
                )
                if row["paper"] is not None:
                    ax.plot(row["paper"], height, "o", **ring)
            ax.set_yticks(range(len(keys)), [LABELS[key] for key in keys])
            ax.grid(visible=True, axis="x")
            ax.set_title(f"next {k} month{'' if k == 1 else 's'}, N = {size}", loc="left")
    grid[0, 0].invert_yaxis()
    for ax in grid[-1]:
        ax.set_xlabel("RMSE on the test set")
    ours = Line2D([], [], marker="o", color=FAINT, label="this library, with standard error")
    paper = Line2D([], [], linestyle="", marker="o", label="the paper", **ring)
    figure.legend(handles=[ours, paper], loc="outside lower center", ncols=2)
    return {"rmse": figure}
