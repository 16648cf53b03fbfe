"""Forecasts of next month's weather at British stations: the case study of the documentation.

    python benchmarks/case_study.py [--meteo FOLDER] [--quick] [--write]

The station files of the Met Office are read from FOLDER, by default $HOLRR_METEO_DIR or the folder
in which `fetch_met_office` keeps its downloads. Months up to December 1986 train, the later ones
test. All methods choose their hyperparameters by the same five contiguous folds of the training
months: ridge regression and HOLRR from the default grid of penalties, PLS from 1 to 30 components
of scaled or unscaled columns, gradient boosting from two sizes of trees and up to 150 of them.

Prints the table of docs/case_study.md. With --write it writes the table there, and the figures to
docs/results/case_study.csv and docs/results/case_study_outputs.csv. With --quick gradient boosting
is left out.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from sklearn.cross_decomposition import PLSRegression
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import GridSearchCV, KFold

from holrr import HOLRRCV, RLSCV
from holrr.datasets import fetch_met_office
from holrr.report import Evaluation
from pages import DOCS, parse_options, write_section
from pages import table as page_table

RESULTS = DOCS / "results"
N_LAGS, LAST_TRAINING_MONTH = 3, "1986-12"
FOLDS = KFold(5)
BEST = "HOLRRCV, blocks and own inputs"
VARIABLES = {
    "tmax": "maximum\ntemperature",
    "tmin": "minimum\ntemperature",
    "af": "days of\nair frost",
    "rain": "rainfall",
    "sun": "sunshine",
}


@dataclass(frozen=True)
class Data:
    """Inputs, outputs and the month of each sample, in the units of the training months."""

    X: xr.Dataset  # "lag 1", "lag 2", "lag 3": (month, station, variable); "calendar"
    Y: xr.DataArray  # (month, station, variable)
    coordinates: np.ndarray  # (station, 3): latitude, longitude, altitude
    units: dict[str, float]  # standard deviation of each variable

    def part(self, months: slice) -> tuple[xr.Dataset, xr.DataArray]:
        return self.X.sel(month=months), self.Y.sel(month=months)

    @property
    def train(self) -> tuple[xr.Dataset, xr.DataArray]:
        return self.part(slice(None, LAST_TRAINING_MONTH))

    @property
    def test(self) -> tuple[xr.Dataset, xr.DataArray]:
        return self.part(slice("1987-01", None))


def load(folder: str | None) -> Data:
    """Read the station files and cut them into samples."""
    bunch = fetch_met_office(folder, stations="complete")
    months = bunch.months.astype("datetime64[ns]")
    series = xr.DataArray(
        bunch.data,
        dims=("month", "station", "variable"),
        coords={
            "month": months,
            "station": bunch.station_titles,
            "variable": bunch.variable_names,
        },
    )
    training = series.sel(month=slice(None, LAST_TRAINING_MONTH))
    unit = training.std(("month", "station"))
    series = (series - training.mean(("month", "station"))) / unit
    angle = 2 * np.pi * (series.month.dt.month - 1) / 12
    harmonics = [f(k * angle) for k in (1, 2, 3) for f in (np.sin, np.cos)]
    calendar = xr.concat(harmonics, dim="harmonic").transpose("month", "harmonic")
    X = xr.Dataset({f"lag {k}": series.shift(month=k) for k in range(1, N_LAGS + 1)})
    X["calendar"] = calendar
    units = dict(zip(bunch.variable_names, unit.values.tolist(), strict=True))
    return Data(X.isel(month=slice(N_LAGS, None)), series[N_LAGS:], bunch.coordinates, units)


def matrix(X: xr.Dataset) -> np.ndarray:
    """All inputs as the columns of a matrix, for methods that take nothing else."""
    return np.hstack([X[name].values.reshape(X.sizes["month"], -1) for name in X.data_vars])


def climatology(data: Data) -> np.ndarray:
    """The mean of each month of the year over the training years."""
    (_, Y), (_, new) = data.train, data.test
    means = Y.groupby("month.month").mean()
    return means.sel(month=new.month.dt.month).values


def boosting(X: np.ndarray, Y: np.ndarray, new: np.ndarray, n_trees: int = 150) -> np.ndarray:
    """Gradient boosting of each output, with the number and size of trees from the folds."""

    def model(leaves: int) -> HistGradientBoostingRegressor:
        return HistGradientBoostingRegressor(
            max_iter=n_trees, learning_rate=0.05, max_leaf_nodes=leaves, early_stopping=False
        )

    def staged(leaves: int, train: np.ndarray, j: int, inputs: np.ndarray) -> np.ndarray:
        return np.array([*model(leaves).fit(X[train], Y[train, j]).staged_predict(inputs)])

    errors = {leaves: np.zeros(n_trees) for leaves in (3, 8)}
    for leaves, error in errors.items():
        for train, test in FOLDS.split(X):
            for j in range(Y.shape[1]):
                found = staged(leaves, train, j, X[test])
                error += np.sum((found - Y[test, j]) ** 2, axis=1)
    leaves = min(errors, key=lambda size: errors[size].min())
    n_best = int(errors[leaves].argmin())
    every = np.arange(len(X))
    return np.stack([staged(leaves, every, j, new)[n_best] for j in range(Y.shape[1])], axis=1)


def predictions(data: Data, quick: bool) -> tuple[dict[str, np.ndarray], dict[str, float], Any]:
    """Predictions of all methods for the test months, their seconds, and the best model."""
    (X, Y), (new, observed) = data.train, data.test
    flat, flat_new, flat_Y = matrix(X), matrix(new), Y.values.reshape(len(Y), -1)
    found: dict[str, np.ndarray] = {}
    seconds: dict[str, float] = {}

    def timed(name: str, predict: Any) -> None:
        start = time.perf_counter()
        found[name] = np.reshape(predict(), observed.shape)
        seconds[name] = time.perf_counter() - start
        error = np.sqrt(np.mean((found[name] - observed.values) ** 2))
        print(f"{name:34} RMSE {error:.4f}  {seconds[name]:6.1f} s", flush=True)

    best = HOLRRCV(cv=FOLDS, blocks="auto", own="auto")
    timed(BEST, lambda: best.fit(X, Y).predict(new).values)
    timed("HOLRRCV", lambda: HOLRRCV(cv=FOLDS).fit(X, Y).predict(new).values)
    timed("ridge regression", lambda: RLSCV(cv=FOLDS).fit(X, Y).predict(new).values)
    grid = {"n_components": range(1, 31), "scale": [False, True]}
    pls = GridSearchCV(PLSRegression(), grid, cv=FOLDS, scoring="neg_mean_squared_error")
    timed("PLS", lambda: pls.fit(flat, flat_Y).predict(flat_new))
    if not quick:
        timed("gradient boosting", lambda: boosting(flat, flat_Y, flat_new))
    timed("mean of the calendar month", lambda: climatology(data))
    return found, seconds, best


def table(rows: list[dict[str, str]]) -> str:
    """Return the table of the page from the rows of the file."""
    head = ["method", "RMSE", "squared error below that of the calendar mean"]
    head += ["gain of the first row over this row, with 95 % interval", "time"]
    lines = []
    for k, row in enumerate(rows):
        skill, gain, low, high = (
            f"{100 * float(row[key]):.1f} %".replace("-", "−")
            for key in ("skill", "gain", "low", "high")
        )
        gain = f"{gain} ({low} to {high})" if k else ""
        lines.append(
            [row["method"], row["rmse"], skill, gain, f"{row['seconds']}\N{NO-BREAK SPACE}s"]
        )
    return page_table(head, lines)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--meteo", default=os.environ.get("HOLRR_METEO_DIR"))
    parser.add_argument("--quick", action="store_true", help="without gradient boosting")
    options = parse_options(parser, arguments)
    warnings.simplefilter("ignore")
    data = load(options.meteo)
    found, seconds, best = predictions(data, options.quick)
    _, observed = data.test
    evaluation = Evaluation("new data", observed.values, found)
    rows = []
    for name in found:
        rmse = evaluation.rmse(name)
        gain = evaluation.gain(name)
        skill = 1 - (rmse.value / evaluation.rmse("mean of the calendar month").value) ** 2
        rows.append(
            {
                "method": name,
                "rmse": f"{rmse.value:.4f}",
                "skill": f"{skill:.4f}",
                "gain": f"{gain.value:.4f}",
                "low": f"{gain.low:.4f}",
                "high": f"{gain.high:.4f}",
                "seconds": f"{seconds[name]:.1f}",
            }
        )
    print(f"\n{table(rows)}")
    low, high = best.predict_interval(data.test[0], 0.9)
    inside = (low.values <= observed.values) & (observed.values <= high.values)
    print(f"90 % intervals contain {inside.mean():.3f} of the test observations")
    print(best.block_alphas_, best.best_estimator_.own)
    if not options.write:
        return
    write_section("case study", table(rows))
    write(RESULTS / "case_study.csv", rows)
    stations, variables = observed["station"].values, observed["variable"].values
    write(
        RESULTS / "case_study_outputs.csv",
        [
            {
                "method": name,
                "station": station,
                "latitude": data.coordinates[i, 0],
                "longitude": data.coordinates[i, 1],
                "variable": variable,
                "mse": f"{np.mean((values - observed.values)[:, i, j] ** 2):.5f}",
            }
            for name, values in found.items()
            for i, station in enumerate(stations)
            for j, variable in enumerate(variables)
        ],
    )


def draw() -> Any:
    """Draw the stored figures: gains over ridge regression, and where the model has skill."""
    import matplotlib.pyplot as plt

    table = read(RESULTS / "case_study.csv")
    outputs = read(RESULTS / "case_study_outputs.csv")
    figure = plt.figure(figsize=(9.6, 3.8), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[1, 1.5])
    ax = left.subplots()
    names = [row["method"] for row in table]
    skills = [100 * float(row["skill"]) for row in table]
    colors = ["#1f5a99" if name.startswith("HOLRR") else "#9aa3ad" for name in names]
    ax.barh(range(len(names)), skills, 0.65, color=colors)
    for place, value in enumerate(skills):
        ax.text(max(value, 0) + 0.3, place, f"{value:.1f} %", va="center", fontsize=9)
    ax.set_yticks(range(len(names)), [name.replace(", ", ",\n") for name in names], fontsize=9)
    ax.invert_yaxis()
    ax.axvline(0, color="#6b7280", lw=0.8)
    ax.set_xlim(None, 1.25 * max(skills))
    ax.set_xlabel("squared error below that of the\nmean of the calendar month (%)", fontsize=9)
    ax.spines[["top", "right"]].set_visible(False)

    variables = list(dict.fromkeys(row["variable"] for row in outputs))
    mse = {(row["method"], row["station"], row["variable"]): float(row["mse"]) for row in outputs}
    places = {row["station"]: (row["longitude"], row["latitude"]) for row in outputs}
    axes = right.subplots(1, len(variables), sharex=True, sharey=True)
    shown = np.array(
        [
            [1 - mse[BEST, s, v] / mse["mean of the calendar month", s, v] for v in variables]
            for s in places
        ]
    )
    top = 100 * np.abs(shown).max()
    xy = np.array([*places.values()], dtype=float)
    for ax, variable, values in zip(axes, variables, 100 * shown.T, strict=True):
        options = {"cmap": "RdBu", "vmin": -top, "vmax": top, "edgecolors": "#6b7280"}
        image = ax.scatter(*xy.T, c=values, s=70, linewidths=0.7, **options)
        ax.set_title(VARIABLES[variable], fontsize=9)
        ax.set_aspect(1 / np.cos(np.deg2rad(xy[:, 1].mean())))
        ax.set_xticks([-6, -2], ["6°W", "2°W"], fontsize=8)
        ax.margins(x=0.2, y=0.08)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_yticks([52, 56, 60], ["52°N", "56°N", "60°N"], fontsize=8)
    bar = right.colorbar(image, ax=list(axes), orientation="horizontal", aspect=50)
    bar.set_label("the same at each station, HOLRRCV with blocks and own inputs (%)", fontsize=9)
    return figure


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return [*csv.DictReader(file)]


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, rows[0], lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


if __name__ == "__main__":
    main()
