"""Forecasts of places and variables, compared with two published tables.

The models predict the next step of every series from the last steps of all series. The table of
Kasai, Jawanpuria and Mishra (2021) has the mean squared error at ranks and penalties that the
authors chose. The table of Bahadori, Yu and Liu (2014) has the root mean squared error. The
experiment fits models with the ranks and penalties of the authors, and searches that choose all
hyperparameters by cross-validation on the training part.

The series are files of the authors, which are not part of this project. They are in two
repositories on GitHub, see `FILES`. The variable HOLRR_PUBLISHED_DIR names the folder of the files.

References
----------
H. Kasai, P. Jawanpuria, B. Mishra (2021). A Riemannian approach to low-rank tensor learning. In:
Tensors for Data Processing, Academic Press.

M. T. Bahadori, R. Yu, Y. Liu (2014). Fast multivariate spatio-temporal analysis via low rank
tensor learning. Advances in Neural Information Processing Systems 27.
"""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from sklearn.model_selection import KFold

from holrr import HOLRR, HOLRRCV, LRRCV, RLSCV

from .experiment import COLOURS, FAINT, Row, Table, Unit, markdown
from .published import NIPS_2014

# The times of searches are columns of the table. They are those of parallel runs.
SERIAL = False
FOLDS = KFold(5)  # blocks of neighbouring windows
# Pairs of an axis of a sample of X, (lag, variable, place), and of y, (variable, place).
OWN = [(1, 0), (2, 1)]
OWN_NAMES = {(1, 0): "variable", (2, 1): "place"}
# Methods of Kasai et al. that are computed at their settings, and whether fits are refined.
SAME = {"holrr": False, "proposed": True}


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
    kasai : tuple of str
        Data sets of Kasai et al.
    lags : tuple of int
        Numbers of lags for the data sets of Kasai et al.
    nips : tuple of str
        Data sets of Bahadori, Yu and Liu, see `SETTINGS`.
    methods : tuple of str
        Searches to run, see `METHODS`; all by default.
    """

    kasai: tuple[str, ...] = ("CCDS", "meteo")
    lags: tuple[int, ...] = (3, 5, 7)
    nips: tuple[str, ...] = ("CCDS", "USHCN", "Foursquare")
    methods: tuple[str, ...] = ()

    @classmethod
    def quick(cls, **changes: Any) -> Config:
        """Return settings with three lags, without Foursquare, which takes most of the time."""
        return cls(**{"lags": (3,), "nips": ("CCDS", "USHCN"), **changes})

    @classmethod
    def full(cls, **changes: Any) -> Config:
        """Return the default settings."""
        return cls(**changes)


# ---------------------------------------------------------------- series of the authors

KASAI = (
    "bamdevm/Riemannian-preconditioning-for-tensor-regression-and-completion on GitHub, folder "
    "'tensor regression/datasets/higher_order_regression_datasets'"
)
NIPS = "Eng-RSMY/MultiSourceTemporal on GitHub, folder 'data'"
# Test errors that Kasai et al. stored, one line for each of their files.
STORED = "kasai2021_forecast_mse.csv"
# Names, array and source of the file of each data set of a table. The array X has the shape
# (places, steps, variables); series has an array of shape (places, steps) for each variable. The
# repository misspells the name of the first file; the code of its authors spells it correctly.
FILES: dict[tuple[str, str], tuple[tuple[str, ...], str, str]] = {
    ("kasai", "CCDS"): (("CCDS_tensor_2.mat", "CCDS_tesor_2.mat"), "X", KASAI),
    ("kasai", "meteo"): (("meteo_tensor_StationTimeVariables.mat",), "X", KASAI),
    ("nips", "CCDS"): (("climateP17.mat",), "series", NIPS),
    ("nips", "USHCN"): (("climateP3.mat",), "series", NIPS),
    ("nips", "Foursquare"): (("norm_4sq_small.mat",), "series", f"{NIPS[:-1]}/Foursquare'"),
}


def folder_of_series() -> Path:
    """Return the folder that HOLRR_PUBLISHED_DIR names."""
    folder = os.environ.get("HOLRR_PUBLISHED_DIR")
    if not folder:
        names = ", ".join(names[0] for names, *_ in FILES.values())
        raise FileNotFoundError(
            f"Set HOLRR_PUBLISHED_DIR to a folder that has {names} and {STORED}; "
            "docs/published.md says where they are."
        )
    return Path(folder)


@lru_cache
def read_series(folder: Path, table: str, data: str) -> NDArray[np.float64]:
    """Read the series of a data set, of shape (steps, variables, places).

    Parameters
    ----------
    folder : Path
        Folder of the files.
    table, data : str
        Key of `FILES`.

    Raises
    ------
    FileNotFoundError
        If the file is missing. The message has its source.
    """
    from scipy.io import loadmat

    names, key, source = FILES[table, data]
    path = next((folder / name for name in names if (folder / name).is_file()), None)
    if path is None:
        raise FileNotFoundError(f"{folder} lacks {names[0]}. It is {names[-1]} of {source}.")
    array = loadmat(path)[key]
    if key == "series":
        array = np.stack([np.asarray(part, dtype=float) for part in array.ravel()], axis=2)
    series = np.ascontiguousarray(array.transpose(1, 2, 0), dtype=float)
    series.flags.writeable = False  # shared by all units of a run
    return series


@dataclass(frozen=True)
class Windows:
    """Windows of past steps and the next step, in order of time.

    Parameters
    ----------
    X : array of shape (n_windows, n_lags, variables, places)
        Past steps, oldest first.
    y : array of shape (n_windows, variables, places)
        Next step.
    n_train : int
        Number of training windows, which are the first ones.
    """

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    n_train: int

    @property
    def n_lags(self) -> int:
        """Number of past steps of a window."""
        return self.X.shape[1]


def make_windows(series: NDArray[np.float64], n_lags: int, n_steps: int) -> Windows:
    """Return the windows of series; windows within the first `n_steps` steps are for training.

    Parameters
    ----------
    series : array of shape (steps, variables, places)
        Series.
    n_lags : int
        Number of past steps of a window.
    n_steps : int
        Number of training steps.

    Raises
    ------
    ValueError
        If there are too few training steps or no test steps.

    Examples
    --------
    >>> windows = make_windows(np.arange(10.0).reshape(10, 1, 1), n_lags=3, n_steps=8)
    >>> windows.X.shape, windows.n_train
    ((7, 3, 1, 1), 5)
    >>> windows.X[windows.n_train].ravel(), windows.y[windows.n_train].ravel()
    (array([5., 6., 7.]), array([8.]))
    """
    if not 2 * n_lags < n_steps < len(series):
        raise ValueError(
            f"The number of training steps must be above {2 * n_lags}, twice the number of lags, "
            f"and below {len(series)}, the number of steps; got {n_steps}."
        )
    past = np.moveaxis(sliding_window_view(series[:-1], n_lags, axis=0), -1, 1)
    return Windows(past.copy(), series[n_lags:], n_steps - n_lags)


@dataclass(frozen=True)
class Cell:
    """Test error that Kasai et al. stored, with its settings.

    Parameters
    ----------
    data : str
        Name of the data set.
    lags : int
        Number of lags.
    method : str
        Name of the method in the stored results.
    rank : tuple of int
        Ranks of inputs, variables and places.
    penalty : float
        Penalty, or step size for methods without a penalty.
    mse : float
        Mean squared test error.
    """

    data: str
    lags: int
    method: str
    rank: tuple[int, ...]
    penalty: float
    mse: float


def read_cells(folder: Path, data: str, lags: int) -> list[Cell]:
    """Return the stored test errors of a data set and a number of lags, from the file `STORED`."""
    with (folder / STORED).open(newline="", encoding="utf-8") as file:
        rows = [
            row for row in csv.DictReader(file) if (row["data"], int(row["lags"])) == (data, lags)
        ]
    return [
        Cell(
            data,
            lags,
            row["method"],
            tuple(map(int, row["ranks_of_modes"].split("x"))),
            float(row["penalty"].partition("=")[2]),
            float(row["test_mse"]),
        )
        for row in rows
    ]


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


def units(config: Config) -> list[Unit]:
    places = [("kasai", data, lags) for data in config.kasai for lags in config.lags]
    places += [("nips", data, SETTINGS[data].lags) for data in config.nips]
    return [(*place, what) for place in places for what in (*FIRST, *(config.methods or METHODS))]


def run_unit(config: Config, unit: Unit) -> Table:
    kind, data, lags, what = unit
    windows = _windows(kind, data, lags)
    if what == "baselines":
        monthly = kind == "kasai" or SETTINGS[data].monthly
        rows = _baseline_rows(kind, windows, monthly)
    elif what != "published":
        rows = _search_rows(kind, windows, what)
    elif kind == "nips":
        rows = [{"kind": what, "method": m, "published": e} for m, e in NIPS_2014[data].items()]
    else:
        cells = read_cells(folder_of_series(), data, lags)
        rows = [_same(windows, cell) for cell in cells if cell.method in SAME] + _least(cells)
    return [{"table": kind, "data": data, "lags": lags, **row} for row in rows]


def _windows(kind: str, data: str, lags: int) -> Windows:
    series = read_series(folder_of_series(), kind, data)
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
    """Return the error at the ranks and the penalty of the authors."""
    n, alpha, refine = windows.n_train, cell.penalty, SAME[cell.method]
    model = HOLRR(cell.rank, alpha, refine=refine, subspaces="response", fit_intercept=False)
    model.fit(windows.X[:n], windows.y[:n])
    (found,) = _errors("kasai", windows, lambda first: model.predict(windows.X[first:]))
    return {"kind": "same", **_quote(cell), "error": found["error"]}


# ---------------------------------------------------------------- tables and figure

# Names of methods in the stored results of Kasai et al., and in their text.
NAMES = {
    "holrr": "HOLRR",
    "proposed": "Riemannian",
    "stpg": "STPG",
    "siita": "SIITA",
    "mlgp": "MLGP",
    "geomTR": "geomTR",
}
Place = tuple[str, str, int]


def errors_of(rows: Table, place: Place, split: str = "after training") -> dict[str, float]:
    """Return the test errors in a column of the published tables, the least of each method.

    Parameters
    ----------
    rows : list of dict
        Table of the experiment.
    place : tuple
        Table, data set and number of lags.
    split : {"after training", "scripts"}
        Test set of our errors.

    Returns
    -------
    dict
        Errors by method; names of published errors end with ", published".
    """
    found: dict[str, float] = {}
    for row in rows:
        if (row["table"], row["data"], row["lags"]) != place:
            continue
        if row["kind"] in ("same", "published"):
            name = f"{NAMES.get(row['method'], row['method'])}, published"
            found[name] = min(row["published"], found.get(name, np.inf))
        elif row["split"] == split:
            found[row["method"]] = row["error"]
    return found


def _places(rows: Table) -> list[Place]:
    return list(dict.fromkeys((row["table"], row["data"], row["lags"]) for row in rows))


def text(rows: Table) -> str:
    """Return the errors at the settings of the authors, and tables with all errors."""
    same = [row for row in rows if row["kind"] == "same"]
    shown = [
        [
            f"{row['data']}, {row['lags']} lags, {row['rank']}, {NAMES[row['method']]}",
            *(f"{row['alpha']:g}", f"{row['published']:.6f}", f"{row['error']:.6f}"),
        ]
        for row in same
    ]
    head = ["data, lags, ranks, method", "penalty", "published", "ours"]
    parts = [f"Mean squared errors at the settings of the authors:\n\n{markdown(head, shown)}"]
    for table, what in (("kasai", "Mean squared errors"), ("nips", "Root mean squared errors")):
        for split in ("after training", *(["scripts"] if table == "nips" else [])):
            places = [place for place in _places(rows) if place[0] == table]
            found = [errors_of(rows, place, split) for place in places]
            names = dict.fromkeys(name for errors in found for name in errors)
            body = [[n, *(f"{e[n]:.4f}" if n in e else "" for e in found)] for n in names]
            columns = [f"{data}, {lags} lags" for _, data, lags in places]
            parts.append(f"{what}, test steps {split}:\n\n{markdown(['', *columns], body)}")
    return "\n".join(parts)


KINDS = {"ridge": "RLS", "LRR": "LRR", "best rank": "HOLRR", "stack": "HOLRR (ours)"}
WIDEST = 20.0  # percent; larger values are drawn as an arrow


def figures(config: Config, rows: Table) -> dict[str, Any]:
    """Draw errors in percent of the least published error, a panel for each column."""
    from matplotlib.figure import Figure

    places = _places(rows)
    methods = [m for m in METHODS if any(row["method"] == m for row in rows)]
    labels = ["published", *methods, "month of the year"]
    n_columns = min(3, len(places))
    n_rows = -(-len(places) // n_columns)
    size = (3.0 * n_columns + 1.6, (0.19 * len(labels) + 0.55) * n_rows + 0.7)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False, sharey=True)
    for ax, place in zip(axes.flat, places, strict=False):
        found = errors_of(rows, place)
        theirs = [error for name, error in found.items() if name.endswith(", published")]
        for height, label in enumerate(labels):
            errors = theirs if label == "published" else [found[label]] if label in found else []
            percent = [min(100 * (error / min(theirs) - 1), WIDEST) for error in errors]
            colour = COLOURS.get(KINDS.get(label.split(",")[0], ""), FAINT)
            fill = colour if label in methods else "none"
            for value in percent:
                mark = "o" if value < WIDEST else ">"
                ax.plot(value, height, mark, mfc=fill, mec=colour, mew=1.4, ms=6, clip_on=False)
        ax.axvline(0, color=FAINT, lw=1.2)
        ax.set_yticks(range(len(labels)), labels)
        ax.grid(visible=True, axis="x")
        ax.set_xlim(-14, WIDEST + 1)
        who = {"kasai": "Kasai et al.", "nips": "NIPS 2014"}[place[0]]
        ax.set_title(f"{who}, {place[1]}, {place[2]} lags", loc="left")
        ax.set_xlabel("test error, % from the least published")
    for ax in axes.flat[len(places) :]:
        ax.set_axis_off()
    axes[0, 0].set_ylim(len(labels) - 0.4, -0.6)
    return {"errors": figure}
