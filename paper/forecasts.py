"""Forecasts of places and variables, compared with two published tables.

The models predict the next step of every series from the last steps of all series. The table of
Kasai, Jawanpuria and Mishra (2021) has the mean squared error at ranks and penalties that the
authors chose. The table of Bahadori, Yu and Liu (2014) has the root mean squared error. The
experiment fits models with the ranks and penalties of the authors, and searches that choose all
hyperparameters by cross-validation on the training part.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold

from holrr import HOLRR, HOLRRCV, LRRCV, RLSCV

from .forecast_data import FILES, Cell, Windows, make_windows, read_cells, read_series
from .published import NIPS_2014
from .running import Experiment, Unit, run
from .tables import Row, Table

__all__ = ["EXPERIMENT", "METHODS", "SETTINGS", "Config", "table", "wanted_files"]

FOLDS = KFold(5)  # blocks of neighbouring windows
# Pairs of an axis of a sample of X, (lag, variable, place), and of y, (variable, place).
OWN = [(1, 0), (2, 1)]
OWN_NAMES = {(1, 0): "variable", (2, 1): "place"}
# Methods of Kasai et al. that are computed at their settings, and whether fits are refined.
SAME = {"holrr": False, "proposed": True}
# Penalties to try at the ranks of these methods.
DECADES = [float(f"1e{k}") for k in range(-1, 8)]


@dataclass(frozen=True)
class Setting:
    """Settings of a data set in the scripts of Bahadori, Yu and Liu.

    Parameters
    ----------
    lags : int
        Number of lags.
    n_steps : int
        Number of training steps.
    monthly : bool
        Whether steps are months.
    """

    lags: int
    n_steps: int
    monthly: bool = True


SETTINGS = {
    "CCDS": Setting(3, 140),
    "USHCN": Setting(3, 929),
    "Foursquare": Setting(5, 1085, monthly=False),
}
TRAINING_SHARE = 0.8  # share of the training steps (months) of Kasai et al.


@dataclass(frozen=True)
class Config:
    """Settings of the comparison with published forecasts.

    Parameters
    ----------
    data_dir : str or None
        Folder of the files, see `paper.forecast_data.FILES`.
    kasai : tuple of str
        Data sets of Kasai et al.
    lags : tuple of int
        Numbers of lags for the data sets of Kasai et al.
    nips : tuple of str
        Data sets of Bahadori, Yu and Liu, see `SETTINGS`.
    methods : tuple of str
        Searches to run, see `METHODS`.
    """

    data_dir: str | None = None
    kasai: tuple[str, ...] = ("CCDS", "meteo")
    lags: tuple[int, ...] = (3, 5, 7)
    nips: tuple[str, ...] = ("CCDS", "USHCN", "Foursquare")
    methods: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.methods:
            object.__setattr__(self, "methods", tuple(METHODS))
        known = {"kasai": [d for t, d in FILES if t == "kasai"], "nips": SETTINGS}
        for name, allowed in {**known, "methods": METHODS}.items():
            wrong = [value for value in getattr(self, name) if value not in allowed]
            if wrong:
                raise ValueError(f"{name} must be among {list(allowed)}; got {wrong}.")

    @classmethod
    def quick(cls, **changes: Any) -> Config:
        """Return settings with three lags, without Foursquare, which takes most of the time."""
        return cls(**{"lags": (3,), "nips": ("CCDS", "USHCN"), **changes})

    @classmethod
    def full(cls, **changes: Any) -> Config:
        """Return the default settings."""
        return cls(**changes)


def wanted_files(config: Config) -> list[tuple[str, str]]:
    """Return the keys of the files that a config needs."""
    return [("kasai", data) for data in config.kasai] + [("nips", data) for data in config.nips]


# ---------------------------------------------------------------- searches

Search = RLSCV | LRRCV | HOLRRCV


def _lag_names(windows: Windows) -> NDArray[np.str_]:
    names = [f"lag {k}" for k in range(windows.n_lags, 0, -1)]
    return np.repeat(names, windows.X[0, 0].size)


def _search(
    windows: Windows, kind: type[Search], *, blocks: bool = False, own: bool = False, **more: Any
) -> Search:
    """Return a search without intercept and without input ranks, as in the published models."""
    return kind(
        cv=FOLDS,
        fit_intercept=False,
        input_rank=None,
        blocks=_lag_names(windows) if blocks else None,
        own=OWN if own else None,
        **more,
    )


# Functions from windows to an unfitted search, by name.
METHODS: dict[str, Callable[[Windows], Search]] = {
    "ridge": partial(_search, kind=RLSCV),
    "LRR": partial(_search, kind=LRRCV, selection="min"),
    "best rank": partial(_search, kind=HOLRRCV, selection="min"),
    "stack": partial(_search, kind=HOLRRCV),
    "ridge, blocks": partial(_search, kind=RLSCV, blocks=True),
    "stack, blocks": partial(_search, kind=HOLRRCV, blocks=True),
    "ridge, own inputs": partial(_search, kind=RLSCV, own=True),
    "stack, own inputs": partial(_search, kind=HOLRRCV, own=True),
    "ridge, blocks, own inputs": partial(_search, kind=RLSCV, blocks=True, own=True),
    "stack, blocks, own inputs": partial(_search, kind=HOLRRCV, blocks=True, own=True),
}


def _chosen(model: Search) -> Row:
    """Return the hyperparameters that cross-validation chose."""
    best = model.best_estimator_
    own = "" if best.own is None else " and ".join(OWN_NAMES[tuple(pair)] for pair in best.own)
    blocks = ""
    if isinstance(best.alpha, dict):
        blocks = "; ".join(f"{name} {value:.3g}" for name, value in best.alpha.items())
    single = model.best_params_.get("rank", "full")
    rank = "x".join(map(str, single)) if isinstance(single, tuple) else str(single)
    return {
        "rank": rank,
        "alpha": float(model.alpha_),
        "own": own,
        "blocks": blocks,
        "held_out": float(model.held_out_mse_),
    }


# ---------------------------------------------------------------- units

FIRST = ("published", "baselines")


def _units(config: Config) -> list[Unit]:
    places = [("kasai", data, lags) for data in config.kasai for lags in config.lags]
    places += [("nips", data, SETTINGS[data].lags) for data in config.nips]
    return [(*place, what) for place in places for what in FIRST + config.methods]


def _run_unit(config: Config, unit: Unit) -> Table:
    kind, data, lags, what = unit
    windows = _windows(config, kind, data, lags)
    if what == "baselines":
        monthly = kind == "kasai" or SETTINGS[data].monthly
        rows = _baseline_rows(kind, windows, monthly)
    elif what != "published":
        rows = _search_rows(kind, windows, what)
    elif kind == "nips":
        rows = [{"kind": what, "method": m, "published": e} for m, e in NIPS_2014[data].items()]
    else:
        cells = read_cells(str(config.data_dir), data, lags)
        rows = [_same(windows, cell) for cell in cells if cell.method in SAME] + _least(cells)
    return [{"table": kind, "data": data, "lags": lags, **row} for row in rows]


def _windows(config: Config, kind: str, data: str, lags: int) -> Windows:
    series = read_series(str(config.data_dir), kind, data)
    n_steps = int(TRAINING_SHARE * len(series)) if kind == "kasai" else SETTINGS[data].n_steps
    return make_windows(series, lags, n_steps)


def _errors(kind: str, windows: Windows, predict: Callable[[int], NDArray[np.float64]]) -> Table:
    """Return the test errors of a method that predicts all windows from a given one on.

    The errors are mean squared errors for Kasai et al., and their roots for Bahadori, Yu and Liu.
    For the latter, there are also errors on the test set of the scripts, which includes the last
    training steps, as many as there are lags.
    """
    first = {"after training": windows.n_train}
    if kind == "nips":
        first["scripts"] = windows.n_train - windows.n_lags
    rows = []
    for split, start in first.items():
        mse = float(np.mean((predict(start) - windows.y[start:]) ** 2))
        error = mse if kind == "kasai" else float(np.sqrt(mse))
        rows.append({"split": split, "n_test": len(windows.y) - start, "error": error})
    return rows


def _search_rows(kind: str, windows: Windows, method: str) -> Table:
    n, model = windows.n_train, METHODS[method](windows)
    start = time.perf_counter()
    model.fit(windows.X[:n], windows.y[:n])
    found = {**_chosen(model), "seconds": round(time.perf_counter() - start, 1)}
    rows = _errors(kind, windows, lambda first: model.predict(windows.X[first:]))
    return [{"kind": "chosen", "method": method, **row, **found} for row in rows]


def _baseline_rows(kind: str, windows: Windows, monthly: bool) -> Table:
    """Return the errors of predicting zero and the training mean of the month of the year."""
    n, y = windows.n_train, windows.y
    predictions = {"zero": np.zeros_like(y)}
    if monthly:
        means = np.stack([y[month:n:12].mean(axis=0) for month in range(12)])
        predictions["month of the year"] = means[np.arange(len(y)) % 12]
    found: Table = []
    for method, predicted in predictions.items():
        rows = _errors(kind, windows, partial(_from, predicted))
        found += [{"kind": "baseline", "method": method, **row} for row in rows]
    return found


def _from(predicted: NDArray[np.float64], first: int) -> NDArray[np.float64]:
    return predicted[first:]


def _least(cells: list[Cell]) -> Table:
    """Return the least stored error of each method that is not computed here."""
    least: dict[str, Cell] = {}
    for cell in cells:
        if cell.method not in SAME and cell.mse < getattr(least.get(cell.method), "mse", np.inf):
            least[cell.method] = cell
    return [{"kind": "published", **_quote(cell)} for cell in least.values()]


def _quote(cell: Cell) -> Row:
    return {
        "method": cell.method,
        "rank": "x".join(map(str, cell.rank)),
        "alpha": cell.penalty,
        "published": cell.mse,
    }


def _same(windows: Windows, cell: Cell) -> Row:
    """Return the error at the settings of the authors, and the best penalties.

    The best penalties are those with the least test error and the least cross-validated error.
    """
    n, refine = windows.n_train, SAME[cell.method]
    X, y = windows.X[:n], windows.y[:n]
    settings: dict[str, Any] = {"subspaces": "response", "fit_intercept": False}

    def error(alpha: float) -> float:
        model = HOLRR(cell.rank, alpha=alpha, refine=refine, **settings).fit(X, y)
        return _errors("kasai", windows, lambda first: model.predict(windows.X[first:]))[0]["error"]

    row = {"kind": "same", **_quote(cell), "error": error(cell.penalty)}
    if refine:  # searches compute held-out errors of fits without refinement
        return row
    tried = {alpha: error(alpha) for alpha in DECADES}
    search = HOLRRCV(
        DECADES, [cell.rank], cv=FOLDS, selection="min", input_rank=None, **settings
    ).fit(X, y)
    return {
        **row,
        "alpha_test": min(tried, key=lambda alpha: tried[alpha]),
        "alpha_folds": float(search.alpha_),
        "error_folds": tried[float(search.alpha_)],
    }


EXPERIMENT = Experiment("forecasts", Config, _units, _run_unit)


def table(config: Config, n_jobs: int = 1) -> Table:
    """Compute the table of published errors and of the errors of this library.

    Parameters
    ----------
    config : Config
        Settings of the comparison.
    n_jobs : int, default=1
        Number of processes.

    Returns
    -------
    list of dict
        Columns table ("kasai" with mean squared errors, "nips" with their roots), data, lags, kind,
        method and, if they apply, rank, alpha, published, error, split, n_test, held_out, own,
        blocks, seconds, alpha_test, alpha_folds and error_folds. The kind of a row is "published"
        (quoted), "same" (at the published settings), "baseline", or "chosen" (by cross-validation
        on the training part).
    """
    return run(EXPERIMENT, config, n_jobs=n_jobs)
