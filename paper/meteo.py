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

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holrr.datasets import fetch_met_office, make_forecast_windows

from .meteo_methods import METHODS, SLOW, Windows
from .running import Experiment, Unit, run, seed_for
from .tables import Table, summarise

__all__ = ["EXPERIMENT", "Config", "draw_split", "load_weather", "summary", "table"]

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
    data_home : str or None
        Folder of the station files, see `holrr.datasets.fetch_met_office`.
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
    data_home: str | None = None
    seed: int = 0

    @classmethod
    def quick(cls, **changes: Any) -> Config:
        """Return settings with the splits of the paper, and fewer for the slow methods."""
        return cls(**{"n_splits_slow": 5, **changes})

    @classmethod
    def full(cls, **changes: Any) -> Config:
        """Return settings with five times the splits of the paper."""
        return cls(**{"n_splits": 50, "n_splits_slow": 20, **changes})


@lru_cache(maxsize=2)
def load_weather(data_home: str | None) -> tuple[NDArray[np.float64], NDArray[np.datetime64]]:
    """Return the standardised weather, (months, 16 stations, 5 variables), and the months.

    Each variable is standardised over all stations and months together.
    """
    weather = fetch_met_office(data_home, stations="complete")
    data = weather.data
    return (data - data.mean(axis=(0, 1))) / data.std(axis=(0, 1)), weather.months


def draw_split(config: Config, k: int, n_train: int, split: int) -> Windows:
    """Draw one random split; the smaller training sets of a split are parts of the larger."""
    data, months = load_weather(config.data_home)
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


def _units(config: Config) -> list[Unit]:
    return [
        (k, n_train, split, group)
        for k in config.horizons
        for n_train in config.sizes
        for split in range(config.n_splits)
        for group in config.groups
        if group not in SLOW or split < config.n_splits_slow
    ]


def _run_unit(config: Config, unit: Unit) -> Table:
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


def summary(rows: Table) -> Table:
    """Return the mean error of each method in each cell, and the searches at an end of the grid.

    Parameters
    ----------
    rows : list of dict
        Table of the experiment.

    Returns
    -------
    list of dict
        Columns k, n_train, kernel, method, mean, error, n, at_edge. The last column is the number
        of searches that chose an end of their grid, or None without a search.
    """
    by = ("k", "n_train", "kernel", "method")
    edges: dict[Unit, int] = {}
    for row in rows:
        if row["at_edge"] not in (None, ""):  # "" if the table was read from a file
            key = tuple(row[column] for column in by)
            edges[key] = edges.get(key, 0) + row["at_edge"]
    return [
        {**row, "at_edge": edges.get(tuple(row[column] for column in by))}
        for row in summarise(rows, by, "rmse")
    ]


EXPERIMENT = Experiment("meteo", Config, _units, _run_unit)


def table(config: Config | None = None, n_jobs: int = 1) -> Table:
    """Compute the test errors of all methods on all splits.

    Parameters
    ----------
    config : Config, optional
        Settings; those of the paper by default.
    n_jobs : int, default=1
        Number of processes.

    Returns
    -------
    list of dict
        Columns k, n_train, split, kernel, method, rmse and at_edge. The last column is 1 if the
        search chose an end of its grid, 0 if not, and None without a search.
    """
    return run(EXPERIMENT, config or Config(), n_jobs=n_jobs)
