"""Accuracy and time of searches of other libraries beside HOLRRCV, on the same folds.

    python benchmarks/libraries.py [--quick] [--draw]

Four data sets: simulated climate maps, and three real ones that ship inside packages (see
`real_data_tasks.py`). Five outer folds test every sample once; the first data set has 60 training
and 420 test samples. Every search chooses its settings by the same five inner folds and squared
error. The time is the processor time of the whole search on one thread: the median of three runs
after a warm-up (one run, if it takes more than ten seconds), on the first training set. Inputs
are standardised, and outputs are centred, since CPRegressor has no intercept. Libraries that are
not installed are left out and keep their stored rows. The rows go into docs/results/libraries.csv
and docs/comparison.md; --draw writes the page from the stored rows.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import time
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.cross_decomposition import PLSRegression
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV, KFold
from threadpoolctl import threadpool_limits

from holrr import HOLRRCV
from holrr.datasets import make_climate_maps
from real_data import outer_folds, write_section
from real_data_tasks import TASKS, available

DOCS = Path(__file__).resolve().parents[1] / "docs"
RESULTS = DOCS / "results" / "libraries.csv"
REAL = ("EEG", "faces", "countries")
SLOW = 10.0  # seconds; slower searches are timed once
ALPHAS = np.logspace(-2, 4, 13)
FLAT = ("scikit-learn RidgeCV", "scikit-learn PLSRegression", "himalaya RidgeCV")


class CP(RegressorMixin, BaseEstimator):
    """TensorLy's CPRegressor as GridSearchCV wants it."""

    def __init__(self, rank: int = 1, penalty: float = 1.0):
        self.rank, self.penalty = rank, penalty

    def fit(self, X: np.ndarray, Y: np.ndarray) -> CP:
        from tensorly.regression.cp_regression import CPRegressor

        model = CPRegressor(self.rank, reg_W=self.penalty, n_iter_max=25, random_state=0, verbose=0)
        with np.errstate(all="ignore"):  # it divides by weights that may vanish
            self.model_ = model.fit(X, Y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.model_.predict(X)


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
    import xarray as xr

    names = ["row", *(f"mode{i}" for i in range(1, array.ndim))]
    coords = {name: np.arange(d) for name, d in zip(names, array.shape, strict=True)}
    return xr.DataArray(array, coords=coords)


def neg_mse(model, X, Y) -> float:
    error = np.mean((model.predict(X) - Y) ** 2)
    return -float(error) if np.isfinite(error) else -1e300


def searches(n: int, folds: KFold) -> dict:
    """The searches of what is installed."""
    options = {"cv": folds, "scoring": neg_mse}
    components = [k for k in (1, 2, 3, 4, 6, 8, 12, 16) if k < n]
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
        grid = {"rank": [2, 4, 8], "penalty": [1.0, 10.0]}
        found["TensorLy CPRegressor"] = GridSearchCV(CP(), grid, **options)
    if find_spec("xeofs"):
        grid = {"n_modes": [k for k in (1, 2, 3, 4, 6) if k < n], "power": [0.0, 0.5, 1.0]}
        found["xeofs CPCCA"] = GridSearchCV(CrossPatterns(), grid, **options)
    return found


def tasks(quick: bool) -> dict:
    """Name -> inputs, outputs, outer folds, inner folds."""
    X, Y = make_climate_maps(random_state=0)
    found = {"climate maps": (X, Y, [(np.arange(60), np.arange(60, 480))], KFold(5))}
    for name in REAL:
        if available(TASKS[name]):
            X, Y = TASKS[name].load()
            shuffled = TASKS[name].rows == "shuffled"
            inner = KFold(5, shuffle=shuffled, random_state=0 if shuffled else None)
            found[name] = (X, Y, list(outer_folds(TASKS[name], len(X), 5)), inner)
    return dict(list(found.items())[:1]) if quick else found


def measure(name: str, X, Y, outer, inner, repeats: int) -> list[dict]:
    """A row for each library: R2 of all test samples, and seconds of the search."""
    names = searches(X.shape[1] + 1, inner)
    residual, total, seconds = dict.fromkeys(names, 0.0), 0.0, {}
    for k, (train, test) in enumerate(outer):
        A = (X - X[train].mean(axis=0)) / np.maximum(X[train].std(axis=0), 1e-12)
        B = (Y - Y[train].mean(axis=0)) / Y[train].std()
        total += float(np.sum(B[test] ** 2))
        for library, search in names.items():
            target = B.reshape(len(B), -1) if library in FLAT else B
            model = clone(search).fit(A[train], target[train])
            residual[library] += float(np.sum((model.predict(A[test]) - target[test]) ** 2))
            if k == 0:
                times = []
                for _ in range(repeats):
                    start = time.process_time()
                    clone(search).fit(A[train], target[train])
                    times.append(time.process_time() - start)
                    if times[0] > SLOW:
                        break
                seconds[library] = statistics.median(times)
    shape = "x".join(map(str, Y.shape[1:]))
    return [
        {
            "data": name,
            "samples": len(outer[0][0]),
            "inputs": X.shape[1],
            "outputs": shape,
            "library": library,
            "r2": round(1 - residual[library] / total, 4),
            "seconds": float(f"{seconds[library]:.3g}"),
        }
        for library in names
    ]


def read() -> list[dict]:
    """The stored rows, numbers as numbers."""
    if not RESULTS.exists():
        return []
    with RESULTS.open(newline="") as file:
        return [
            {**row, "r2": float(row["r2"]), "seconds": float(row["seconds"])}
            for row in csv.DictReader(file)
        ]


def table(rows: list[dict]) -> str:
    """R2 and seconds of each library, a column for each data set."""
    data = list(dict.fromkeys(row["data"] for row in rows))
    cells = {(row["library"], row["data"]): row for row in rows}
    size = {row["data"]: row for row in rows}
    heads = [
        f"{d}, {size[d]['samples']} x {size[d]['inputs']} -> {size[d]['outputs']}" for d in data
    ]
    text = f"| R2 on new samples (seconds of the search) | {' | '.join(heads)} |\n"
    text += f"|:--|{'--:|' * len(data)}\n"
    for library in dict.fromkeys(row["library"] for row in rows):
        line = []
        for d in data:
            row, best = cells.get((library, d)), max(r["r2"] for r in rows if r["data"] == d)
            value = "" if row is None else f"{row['r2']:.3f}"
            value = f"**{value}**" if row and row["r2"] > best - 5e-4 else value
            line.append(f"{value} ({row['seconds']:g})" if row else "")
        text += f"| {library} | {' | '.join(line)} |\n"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one data set; nothing is written")
    parser.add_argument("--draw", action="store_true", help="write the page from stored rows")
    args = parser.parse_args()
    rows: list[dict] = []
    if not args.draw:
        warnings.filterwarnings("ignore", message="The best penalty")
        warnings.filterwarnings("ignore", category=FutureWarning)
        with threadpool_limits(1):
            for name, (X, Y, outer, inner) in tasks(args.quick).items():
                rows += measure(name, X, Y, outer, inner, 1 if args.quick else 3)
                print(table(rows), flush=True)
    if args.quick:
        return
    new = {(row["data"], row["library"]) for row in rows}
    rows += [row for row in read() if (row["data"], row["library"]) not in new]
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    write_section("libraries", table(rows), DOCS / "comparison.md")


if __name__ == "__main__":
    main()
