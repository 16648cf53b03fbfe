"""Coverage of prediction intervals of 90 percent on simulated and real data.

    python benchmarks/intervals.py [--quick] [--seeds 40] [--jobs 2]

- Simulated data have ten features, outputs of 5x6 entries, a signal of low rank, and noise that is
  normal, heavy-tailed (Student's t with three degrees of freedom) or of a different level in every
  output. Each seed has its own coefficients and a thousand test samples.
- Few samples of many outputs: ten features, and noise that is smooth along the outputs: normal,
  heavy-tailed or skewed (the exponential of normal outputs). `RLSCV`, half of the seeds.
- Real data are those of `real_data_tasks.py` in five outer folds: shuffled folds of exchangeable
  samples, or blocks of neighbouring samples of time series. The inner folds are of the same kind.

- Time series have autoregressive noise and inputs with a correlation of 0.9 at lag one, five
  inputs, outputs of 5x6 entries with a correlation of 0.5, and a signal of rank two. The test
  samples are a thousand samples of another stretch. `HOLRRCV` with its default folds, with
  `BlockKFold` and with shuffled folds. "Warned" is the share of fits that warn that samples depend
  on each other.
- False warnings: independent noise, `RLSCV`, contiguous and shuffled folds, five times as many
  seeds. The inputs are independent or autoregressive.

"Entry" and "pooled" are shares of all entries, "simultaneous" is the share of whole samples, and
"normal" is the share within 1.645 standard deviations of `predict(return_std=True)`. The script
takes twenty minutes; `--only series` computes only the last two tables, in three minutes.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

from common import options_of, quietly, show
from holrr import HOLRRCV, RLSCV, KernelRLSCV
from holrr.datasets import make_tensor_regression
from holrr.model_selection import BlockKFold
from real_data import inner_folds, outer_folds
from real_data_tasks import TASKS, available

KINDS = ("entry", "pooled", "simultaneous")
SIZES = (50, 100, 400, 2000)
FEW = ((24, 2088), (35, 730), (59, 6000))
REAL = {
    "shuffled": ("digits", "countries", "antibodies", "faces", "coffee"),
    "blocks": ("El Niño", "quarters", "British weather", "New York weather"),
}
SERIES = (50, 100, 200, 400)
FALSE = ((24, 4, (116, 18)), (100, 10, (8, 6)), (60, 200, (3,)), (24, 4, ()), (100, 5, ()))
METHODS = {
    "RLSCV": RLSCV(),
    "HOLRRCV": HOLRRCV(),
    "KernelRLSCV": KernelRLSCV(gammas=[0.01, 0.05]),
}


def covered(model: Any, X: np.ndarray, Y: np.ndarray) -> list[float]:
    """Return the coverage of each kind of interval, and of 1.645 standard deviations."""
    found = []
    for kind in KINDS:
        lower, upper = model.predict_interval(X, 0.9, kind)
        inside = ((lower <= Y) & (Y <= upper)).reshape(len(Y), -1)
        found.append(float(np.mean(inside.all(axis=1) if kind == "simultaneous" else inside)))
    mean, std = model.predict(X, return_std=True)
    return [*found, float(np.mean(np.abs(Y - mean) <= 1.6449 * std))]


def simulated(noise: str, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return training samples and a thousand test samples, with equal signal and noise."""
    rng = np.random.default_rng(seed)
    X, Y = make_tensor_regression(
        n + 1000, n_features=10, output_shape=(5, 6), rank=(3, 2, 2), snr=np.inf, random_state=seed
    )
    E = rng.standard_t(3, Y.shape) / np.sqrt(3) if noise == "heavy" else rng.normal(size=Y.shape)
    if noise == "uneven":
        E *= np.geomspace(0.1, 10, 30)[rng.permutation(30)].reshape(5, 6)
    return X, Y / Y.std() + E


@quietly
def of_simulated(method: str, noise: str, n: int, seed: int) -> list[float]:
    X, Y = simulated(noise, n, seed)
    return covered(METHODS[method].fit(X[:n], Y[:n]), X[n:], Y[n:])


def smooth(rng: np.random.Generator, n: int, size: int) -> np.ndarray:
    """Return rows of normal numbers of variance one with correlated neighbours."""
    kernel = np.exp(-0.5 * (np.arange(-6, 7) / 1.5) ** 2)
    kernel /= np.linalg.norm(kernel)
    noise = rng.standard_normal((n, size + kernel.size - 1))
    return np.stack([np.convolve(row, kernel, "valid") for row in noise])


@quietly
def of_few(noise: str, n: int, size: int, seed: int) -> list[float]:
    """Return the coverage of `RLSCV`, fitted to few samples of many outputs, on 60 samples."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + 60, 10))
    Y = 0.5 * X @ smooth(rng, 10, size) / np.sqrt(10)
    E = smooth(rng, n + 60, size)
    if noise == "heavy":
        E /= np.sqrt(rng.chisquare(3, E.shape) / 3)
    Y = np.exp(1.5 * (Y + E)) if noise == "skewed" else Y + E
    return covered(RLSCV().fit(X[:n], Y[:n]), X[n:], Y[n:])


def series(rng: np.random.Generator, n: int, size: int, correlation: float) -> np.ndarray:
    """Return autoregressive rows of variance one."""
    found = rng.standard_normal((n, size))
    for i in range(1, n):
        found[i] = correlation * found[i - 1] + np.sqrt(1 - correlation**2) * found[i]
    return found


def folds_named(name: str, n: int, seed: int) -> Any:
    """Return the default folds, blocks with a gap, or shuffled folds."""
    return {
        "default": 5,
        "BlockKFold": BlockKFold(5, gap=min(n // 10, 20)),
        "shuffled": KFold(5, shuffle=True, random_state=seed),
    }[name]


def warned(model: Any, X: np.ndarray, Y: np.ndarray) -> bool:
    """Fit a search, and return whether it warns that samples depend on each other."""
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        model.fit(X, Y)
    return any("Held-out residuals of" in str(record.message) for record in records)


def of_series(folds: str, n: int, seed: int) -> list[float]:
    """Return the coverage on another stretch of a time series, and whether the fit warns."""
    rng, parts = np.random.default_rng(seed), []
    B = rng.normal(size=(5, 2)) @ rng.normal(size=(2, 30)) / np.sqrt(10)
    mixing = np.linalg.cholesky(0.5 + 0.5 * np.eye(30))
    for size in (n, 1000):
        X, E = series(rng, size, 5, 0.9), series(rng, size, 30, 0.9) @ mixing.T
        parts.append((X, (X @ B + E).reshape(size, 5, 6)))
    model = HOLRRCV(cv=folds_named(folds, n, seed))
    found = warned(model, *parts[0])
    return [*quietly(covered)(model, *parts[1]), float(found)]


def of_independent(
    n: int, n_features: int, shape: tuple[int, ...], correlation: float, folds: str, seed: int
) -> list[float]:
    """Return whether a fit to data with independent noise warns."""
    rng, D = np.random.default_rng(seed), int(np.prod(shape))
    X = series(rng, n, n_features, correlation)
    B = rng.normal(size=(n_features, 2)) @ rng.normal(size=(2, D)) / np.sqrt(2 * n_features)
    Y = (X @ B + rng.normal(size=(n, D))).reshape(n, *shape)
    return [float(warned(RLSCV(cv=folds_named(folds, n, seed)), X, Y))]


@quietly
def of_real(rows: str, X: np.ndarray, Y: np.ndarray, train: Any, test: Any) -> list[float]:
    scaler = StandardScaler().fit(X[train])
    model = HOLRRCV(cv=inner_folds(rows)).fit(scaler.transform(X[train]), Y[train])
    return covered(model, scaler.transform(X[test]), Y[test])


def cells(found: list[list[float]]) -> list[str]:
    return [f"{100 * share:.1f}" for share in np.mean(found, axis=0)]


def main(arguments: list[str] | None = None) -> None:
    parser = options_of(__doc__)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--only", choices=["series"])
    args = parser.parse_args(arguments)
    seeds = 2 if args.quick else args.seeds
    parallel = Parallel(args.jobs)

    def rows_of_simulated() -> Iterator[list[object]]:
        for noise in ("normal", "heavy", "uneven"):
            for n in SIZES[: 1 if args.quick else None]:
                for method in METHODS:
                    if method.startswith("Kernel") and n > 400:
                        continue
                    runs = max(seeds // 4, 2) if n > 400 else seeds
                    work = (delayed(of_simulated)(method, noise, n, s) for s in range(runs))
                    yield [noise, n, method, *cells(parallel(work))]

    def rows_of_few() -> Iterator[list[object]]:
        for n, size in FEW[: 1 if args.quick else None]:
            for noise in ("normal", "heavy", "skewed"):
                runs = range(max(seeds // 2, 2))
                work = (delayed(of_few)(noise, n, size, seed) for seed in runs)
                yield [noise, n, f"{size:,}", *cells(parallel(work))]

    def rows_of_series() -> Iterator[list[object]]:
        for n in SERIES[: 1 if args.quick else None]:
            for folds in ("default", "BlockKFold", "shuffled"):
                work = (delayed(of_series)(folds, n, seed) for seed in range(seeds))
                yield [n, folds, *cells(parallel(work))]

    def rows_of_independent() -> Iterator[list[object]]:
        runs = range(seeds if args.quick else 5 * seeds)
        for n, d, shape in FALSE[: 2 if args.quick else None]:
            for name, correlation in (("independent", 0.0), ("autoregressive", 0.9)):
                some = (n, d, shape, correlation)
                found = []
                for folds in ("default", "shuffled"):
                    work = (delayed(of_independent)(*some, folds, seed) for seed in runs)
                    found += cells(parallel(work))
                yield [n, d, "x".join(map(str, shape)) or "1", name, *found]

    def rows_of_real(kind: str) -> Iterator[list[object]]:
        for name in REAL[kind][-2 if args.quick else 0 :]:
            if available(name):
                X, Y = (A[: 120 if args.quick else None] for A in TASKS[name].load())
                folds = outer_folds(replace(TASKS[name], rows=kind), len(X), 5)
                work = (delayed(of_real)(kind, X, Y, *fold) for fold in folds)
                yield [name, len(X), *cells(parallel(work))]

    shares = [*KINDS, "normal"]
    if args.only is None:
        titles = ["noise", "samples", "method", *shares]
        show(f"Simulated, {seeds} seeds", titles, rows_of_simulated())
        titles = ["noise", "samples", "outputs", *shares]
        show("Few samples of many outputs", titles, rows_of_few())
        for kind in REAL:
            show(f"Real data, {kind}", ["data", "samples", *shares], rows_of_real(kind))
    show("Autoregressive noise", ["samples", "folds", *shares, "warned"], rows_of_series())
    titles = ["samples", "features", "outputs", "inputs", "contiguous", "shuffled"]
    show("False warnings with independent noise, in percent", titles, rows_of_independent())


if __name__ == "__main__":
    main()
