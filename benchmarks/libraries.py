"""Accuracy and time of searches of other libraries beside HOLRRCV, on the same folds.

    python benchmarks/libraries.py [--quick] [--tasks NAME ...] [--write]

The data sets are simulated climate maps and real data that packages contain (see
`real_data_tasks.py`). Five outer folds test every sample once; the first data set has 60 training
and 420 test samples. Every search chooses its settings by the same five inner folds and squared
error. The time is the processor time of the whole search on one thread, on the first training set.
It is the median of three runs after a warm-up. A search whose first run takes more than ten seconds
is timed by this run. Inputs are standardised and outputs are centred. CPRegressor has no intercept;
a wrapper subtracts the means of each training set.

The searches try these settings, and the column "settings" of the stored rows has those that they
choose on the first training set:

- HOLRRCV, and RidgeCV of scikit-learn and of himalaya: 13 penalties from 0.01 to 10,000. HOLRRCV
  also tries all ranks. RidgeCV of himalaya chooses a penalty for each output.
- PLSRegression: 1 to 32 components, 10 numbers of them.
- CPRegressor: CP ranks 1, 2, 4, 8 and 16, as long as rank x inputs is at most 600 (the time grows
  with the square of this product), and penalties 1, 10 and 100. It stops after 25 iterations, since
  50 changed the R2 on new samples by at most 0.003 on the first two data sets.
- CPCCA of xeofs: 1 to 12 modes, 7 numbers of them, and exponents 0, 0.5 and 1 of the inputs.

Libraries that are not installed, and data sets that are not available, are left out and keep their
stored rows. With --write the rows go into docs/results/libraries.csv and the table into
docs/comparison.md after each data set, so that a stopped run keeps what it measured.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import time
import warnings
from importlib.util import find_spec
from itertools import product

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.cross_decomposition import PLSRegression
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV, KFold
from threadpoolctl import threadpool_limits

from holrr import HOLRRCV
from holrr.datasets import make_climate_maps
from pages import DOCS, parse_options, write_section
from pages import table as page_table
from real_data import outer_folds
from real_data_tasks import TASKS, available, unavailable

RESULTS = DOCS / "results" / "libraries.csv"
MAPS = "climate maps"
DATA = (MAPS, "EEG", "antibodies", "countries", "faces")
SLOW = 10.0  # seconds; slower searches are timed once
LARGEST_CP = 600  # rank x inputs
ALPHAS = np.logspace(-2, 4, 13)
LIBRARIES = (
    "HOLRRCV",
    "scikit-learn RidgeCV",
    "scikit-learn PLSRegression",
    "himalaya RidgeCV",
    "TensorLy CPRegressor",
    "xeofs CPCCA",
)
FLAT = ("scikit-learn RidgeCV", "scikit-learn PLSRegression", "himalaya RidgeCV")


class CP(RegressorMixin, BaseEstimator):
    """CPRegressor of TensorLy with an intercept, and with parameters as GridSearchCV wants them."""

    def __init__(self, rank: int = 1, penalty: float = 1.0):
        self.rank, self.penalty = rank, penalty

    def fit(self, X: np.ndarray, Y: np.ndarray) -> CP:
        from tensorly.regression.cp_regression import CPRegressor

        self.means_ = X.mean(axis=0), Y.mean(axis=0)
        model = CPRegressor(self.rank, reg_W=self.penalty, n_iter_max=25, random_state=0, verbose=0)
        with np.errstate(all="ignore"):  # it divides by weights that may vanish
            self.model_ = model.fit(X - self.means_[0], Y - self.means_[1])
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.model_.predict(X - self.means_[0]) + self.means_[1]


class CrossPatterns(RegressorMixin, BaseEstimator):
    """CPCCA of xeofs (CCA, MCA and what lies between) as a regression."""

    def __init__(self, n_modes: int = 1, power: float = 1.0):
        self.n_modes, self.power = n_modes, power

    def fit(self, X: np.ndarray, Y: np.ndarray) -> CrossPatterns:
        from xeofs.cross import CPCCA

        self.model_ = CPCCA(self.n_modes, alpha=[self.power, 1.0], use_pca=False)
        self.model_.fit(_labelled(X), _labelled(Y), dim="row")
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.model_.inverse_transform(Y=self.model_.predict(_labelled(X))).to_numpy()


def _labelled(array: np.ndarray):
    """Return a DataArray whose first dimension is named row."""
    import xarray as xr

    names = ["row", *(f"mode{i}" for i in range(1, array.ndim))]
    coords = {name: np.arange(d) for name, d in zip(names, array.shape, strict=True)}
    return xr.DataArray(array, coords=coords)


def neg_mse(model, X: np.ndarray, Y: np.ndarray) -> float:
    """Return the negative mean squared error; a score for GridSearchCV."""
    error = np.mean((model.predict(X) - Y) ** 2)
    return -float(error) if np.isfinite(error) else -1e300


def searches(n_samples: int, n_inputs: int, folds: KFold) -> dict:
    """Return the searches of the installed libraries by name.

    Parameters
    ----------
    n_samples, n_inputs : int
        Numbers of samples and inputs of the smallest training set, which limit the settings.
    folds : KFold
        Inner folds.
    """
    options = {"cv": folds, "scoring": neg_mse}
    rank = min(n_inputs, n_samples - n_samples // 5 - 2)
    components = [k for k in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32) if k <= rank]
    found: dict = {
        "HOLRRCV": HOLRRCV(ALPHAS, cv=folds),
        "scikit-learn RidgeCV": RidgeCV(ALPHAS, cv=folds, scoring="neg_mean_squared_error"),
        "scikit-learn PLSRegression": GridSearchCV(
            PLSRegression(scale=False), {"n_components": components}, **options
        ),
    }
    if find_spec("himalaya"):
        from himalaya.ridge import RidgeCV as HimalayaRidgeCV

        found["himalaya RidgeCV"] = HimalayaRidgeCV(ALPHAS, cv=folds, fit_intercept=True)
    if find_spec("tensorly"):
        ranks = [k for k in (1, 2, 4, 8, 16) if k * n_inputs <= LARGEST_CP]
        grid = {"rank": ranks, "penalty": [1.0, 10.0, 100.0]}
        found["TensorLy CPRegressor"] = GridSearchCV(CP(), grid, **options)
    if find_spec("xeofs"):
        modes = [k for k in (1, 2, 3, 4, 6, 8, 12) if k <= rank]
        grid = {"n_modes": modes, "power": [0.0, 0.5, 1.0]}
        found["xeofs CPCCA"] = GridSearchCV(CrossPatterns(), grid, **options)
    return found


def settings(model) -> str:
    """Return the best settings of a search; a range where it chooses a penalty for each output."""
    if hasattr(model, "best_alphas_"):
        chosen = {"alpha from": np.min(model.best_alphas_), "to": np.max(model.best_alphas_)}
    else:
        chosen = getattr(model, "best_params_", None) or {"alpha": model.alpha_}
    return ", ".join(f"{name} {_words(value)}" for name, value in chosen.items())


def _words(value: float | tuple[int, ...]) -> str:
    return " x ".join(map(str, value)) if isinstance(value, tuple) else f"{value:g}"


def load(name: str) -> tuple:
    """Return inputs, outputs, outer folds and inner folds of a data set."""
    if name == MAPS:
        X, Y = make_climate_maps(random_state=0)
        return X, Y, [(np.arange(60), np.arange(60, 480))], KFold(5)
    X, Y = TASKS[name].load()
    shuffled = TASKS[name].rows == "shuffled"
    inner = KFold(5, shuffle=shuffled, random_state=0 if shuffled else None)
    return X, Y, list(outer_folds(TASKS[name], len(X), 5)), inner


def seconds_of(search, X: np.ndarray, Y: np.ndarray) -> float:
    """Return the processor time of a fit."""
    model = clone(search)
    start = time.process_time()
    model.fit(X, Y)
    return time.process_time() - start


def measure(name: str, repeats: int) -> list[dict]:
    """Measure all libraries on one data set.

    Parameters
    ----------
    name : str
        Name of the data set.
    repeats : int
        Number of timed runs of a fast search.

    Returns
    -------
    rows : list of dict
        A row for each library: R2 of all test samples, and seconds of the search.
    """
    X, Y, outer, inner = load(name)
    n_samples = min(len(train) for train, _ in outer)
    rows = []
    for library, search in searches(n_samples, X.shape[1], inner).items():
        residual = total = 0.0
        for k, (train, test) in enumerate(outer):
            A = (X - X[train].mean(axis=0)) / np.maximum(X[train].std(axis=0), 1e-12)
            B = (Y - Y[train].mean(axis=0)) / Y[train].std()
            B = B.reshape(len(B), -1) if library in FLAT else B
            start = time.process_time()
            model = clone(search).fit(A[train], B[train])
            if k == 0:
                seconds, chosen = time.process_time() - start, settings(model)
                if seconds < SLOW:
                    times = [seconds_of(search, A[train], B[train]) for _ in range(repeats)]
                    seconds = statistics.median(times)
            total += float(np.sum(B[test] ** 2))
            predicted = np.asarray(model.predict(A[test])).reshape(B[test].shape)
            residual += float(np.sum((predicted - B[test]) ** 2))
        row = {
            "data": name,
            "samples": len(outer[0][0]),
            "inputs": X.shape[1],
            "outputs": "x".join(map(str, Y.shape[1:])),
            "library": library,
            "r2": round(1 - residual / total, 4),
            "seconds": float(f"{seconds:.3g}"),
            "settings": chosen,
        }
        print(*row.values(), sep=", ", flush=True)
        rows.append(row)
    return rows


def read() -> list[dict]:
    """Return the stored rows, numbers as numbers."""
    if not RESULTS.exists():
        return []
    with RESULTS.open(newline="", encoding="utf-8") as file:
        return [
            {**row, "r2": float(row["r2"]), "seconds": float(row["seconds"])}
            for row in csv.DictReader(file)
        ]


def merged(rows: list[dict], before: list[dict]) -> list[dict]:
    """Return new rows and those of earlier runs, in the order of `DATA` and `LIBRARIES`."""
    found = {(row["data"], row["library"]): row for row in [*before, *rows]}
    return [found[key] for key in product(DATA, LIBRARIES) if key in found]


def store(rows: list[dict]) -> None:
    """Add rows to the stored ones, and write the table of all of them into the page."""
    rows = merged(rows, read())
    with RESULTS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    write_section("libraries", table(rows))


def table(rows: list[dict]) -> str:
    """Return a table with R2 and seconds of each library, a column for each data set."""
    sizes = {r["data"]: f"{r['samples']} x {r['inputs']} → {r['outputs']}" for r in rows}
    best = {data: max(r["r2"] for r in rows if r["data"] == data) for data in sizes}
    cells = {(r["library"], r["data"]): _cell(r, best[r["data"]]) for r in rows}
    head = ["R2 on new samples (seconds of the search)"]
    head += [f"{data}, {size}" for data, size in sizes.items()]
    names = dict.fromkeys(row["library"] for row in rows)
    return page_table(head, [[name, *(cells.get((name, d), "") for d in sizes)] for name in names])


def _cell(row: dict, best: float) -> str:
    """Return R2 and seconds, with R2 in bold where it is the best one up to 0.0005."""
    value = f"{row['r2']:.3f}"
    return f"{f'**{value}**' if row['r2'] > best - 5e-4 else value} ({row['seconds']:g})"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one data set, fewer runs")
    parser.add_argument("--tasks", nargs="+", metavar="NAME", choices=DATA, help=", ".join(DATA))
    options = parse_options(parser, arguments)
    names = options.tasks or (DATA[:1] if options.quick else DATA)
    lacking = [name for name in names if name != MAPS and not available(TASKS[name])]
    if lacking:
        print(f"left out: {unavailable(lacking)}")
    warnings.filterwarnings("ignore", message="The best penalty")
    warnings.filterwarnings("ignore", category=FutureWarning)
    rows: list[dict] = []
    with threadpool_limits(1):
        for name in names:
            if name not in lacking:
                rows += measure(name, 1 if options.quick else 3)
                if options.write:
                    store(rows)
    print(table(rows) if rows else "", end="")


if __name__ == "__main__":
    main()
