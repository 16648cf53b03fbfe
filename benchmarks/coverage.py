"""Coverage of prediction intervals on synthetic and real data, and their cost.

    python benchmarks/coverage.py [--quick] [--seeds 40] [--meteo FOLDER] [--jobs 2] [--write]

All intervals have a nominal coverage of 90 percent. Synthetic data have ten features, outputs of
5x6 entries, a signal of low rank, and noise that is normal, heavy-tailed (Student's t with three
degrees of freedom) or of a different level in every output. Each seed has its own coefficients and
a thousand test samples. Real data are those of `real_data_tasks.py` in five outer folds: shuffled
folds of exchangeable samples, or blocks of neighbouring samples of time series. The inner folds are
of the same kind. "Entry" and "pooled" are shares of all entries, "simultaneous" is the share of
whole samples, and "normal" is the share within 1.645 standard deviations of
`predict(return_std=True)`. Data with few samples and many outputs have ten features, and noise that
is smooth along the outputs: normal, heavy-tailed (three degrees of freedom) or skewed (the
exponential of normal outputs). The last table has the time that intervals add to searches over 13
penalties, all ranks and five folds.

The script prints Markdown tables. With --write, which needs the data of all tasks, it writes
them to docs/developer_benchmarks.md.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import replace
from unittest import mock

import numpy as np
from joblib import Parallel, delayed
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from holrr import HOLRRCV, LRRCV, RLSCV, KernelHOLRRCV, KernelRLSCV
from holrr.datasets import make_tensor_regression
from holrr.model_selection import search as steps
from pages import parse_options, write_section
from real_data import outer_folds
from real_data_tasks import METEO, TASKS, available, set_meteo_folder, unavailable

KINDS = ("entry", "pooled", "simultaneous")
NOISES = ("normal", "heavy", "uneven")
SIZES = (50, 100, 400, 2000)
FEW = ((24, 2088), (35, 730), (59, 6000))
EXCHANGEABLE = ("digits", "countries", "antibodies", "faces", "coffee")
IN_TIME = ("El Niño", "quarters", "British weather", "New York weather")
METHODS = {
    "RLSCV": RLSCV,
    "HOLRRCV": HOLRRCV,
    "KernelRLSCV": lambda **more: KernelRLSCV(gammas=[0.01, 0.05], **more),
}


def covered(model, X: np.ndarray, Y: np.ndarray) -> list[float]:
    """Return the coverage of each kind of interval, and of 1.645 standard deviations."""
    found = []
    for kind in KINDS:
        lower, upper = model.predict_interval(X, 0.9, kind)
        inside = ((lower <= Y) & (Y <= upper)).reshape(len(Y), -1)
        found.append(float(np.mean(inside.all(axis=1) if kind == "simultaneous" else inside)))
    mean, std = model.predict(X, return_std=True)
    return [*found, float(np.mean(np.abs(Y - mean) <= 1.6449 * std))]


def synthetic(noise: str, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return training samples and a thousand test samples, with equal signal and noise."""
    rng = np.random.default_rng(seed)
    X, Y = make_tensor_regression(
        n + 1000, n_features=10, output_shape=(5, 6), rank=(3, 2, 2), snr=np.inf, random_state=seed
    )
    E = rng.standard_t(3, Y.shape) / np.sqrt(3) if noise == "heavy" else rng.normal(size=Y.shape)
    if noise == "uneven":
        E *= np.geomspace(0.1, 10, 30)[rng.permutation(30)].reshape(5, 6)
    return X, Y / Y.std() + E


def one_seed(method: str, noise: str, n: int, seed: int) -> list[float]:
    X, Y = synthetic(noise, n, seed)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return covered(METHODS[method]().fit(X[:n], Y[:n]), X[n:], Y[n:])


def synthetic_table(seeds: int, sizes: tuple[int, ...], jobs: int) -> str:
    lines = ["| noise | samples | method | entry | pooled | simultaneous | normal |"]
    lines += ["|:--|--:|:--|--:|--:|--:|--:|"]
    for noise in NOISES:
        for n in sizes:
            for method in METHODS:
                if method.startswith("Kernel") and n > 400:
                    continue
                runs = max(seeds // 4, 2) if n > 400 else seeds
                work = (delayed(one_seed)(method, noise, n, s) for s in range(runs))
                lines.append(f"| {noise} | {n} | {method} | {_cells(Parallel(jobs)(work))} |")
                print(lines[-1], flush=True)
    return "\n".join(lines)


def smooth(rng: np.random.Generator, n: int, size: int) -> np.ndarray:
    """Return rows of normal numbers of variance one with correlated neighbours."""
    kernel = np.exp(-0.5 * (np.arange(-6, 7) / 1.5) ** 2)
    kernel /= np.linalg.norm(kernel)
    noise = rng.standard_normal((n, size + kernel.size - 1))
    return np.stack([np.convolve(row, kernel, "valid") for row in noise])


def few_samples(noise: str, n: int, size: int, seed: int) -> list[float]:
    """Return the coverage of `RLSCV`, fitted to few samples of many outputs, on 60 samples."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + 60, 10))
    Y = 0.5 * X @ smooth(rng, 10, size) / np.sqrt(10)
    E = smooth(rng, n + 60, size)
    if noise == "heavy":
        E /= np.sqrt(rng.chisquare(3, E.shape) / 3)
    Y = np.exp(1.5 * (Y + E)) if noise == "skewed" else Y + E
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return covered(RLSCV().fit(X[:n], Y[:n]), X[n:], Y[n:])


def few_table(seeds: int, jobs: int) -> str:
    lines = ["| noise | samples | outputs | entry | pooled | simultaneous | normal |"]
    lines += ["|:--|--:|--:|--:|--:|--:|--:|"]
    for n, size in FEW:
        for noise in ("normal", "heavy", "skewed"):
            work = (delayed(few_samples)(noise, n, size, seed) for seed in range(seeds))
            lines.append(f"| {noise} | {n} | {size:,} | {_cells(Parallel(jobs)(work))} |")
            print(lines[-1], flush=True)
    return "\n".join(lines)


def _cells(found: list[list[float]]) -> str:
    return " | ".join(f"{100 * share:.1f}" for share in np.mean(found, axis=0))


def real_table(names: tuple[str, ...], rows: str, quick: bool, jobs: int) -> str:
    """Print the coverage over the outer folds of one kind."""
    lines = [
        "| data | samples | entry | pooled | simultaneous | normal |",
        "|:--|--:|--:|--:|--:|--:|",
    ]
    for name in names:
        task = replace(TASKS[name], rows=rows)
        if not available(task):
            print(f"note: {name} is left out, since {task.package} is not available")
            continue
        X, Y = task.load()
        if quick:
            X, Y = X[:120], Y[:120]

        def fold(train, test, X=X, Y=Y):
            scaler, shuffle = StandardScaler().fit(X[train]), rows == "shuffled"
            cv = KFold(5, shuffle=shuffle, random_state=0 if shuffle else None)
            with threadpool_limits(1), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = HOLRRCV(cv=cv).fit(scaler.transform(X[train]), Y[train])
                return covered(model, scaler.transform(X[test]), Y[test])

        work = (delayed(fold)(*pair) for pair in outer_folds(task, len(X), 5))
        lines.append(f"| {name} | {len(X)} | {_cells(Parallel(jobs)(work))} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def cost_table(quick: bool) -> str:
    """Print the seconds of searches and the share that intervals add, on one thread."""
    spent = [0.0]

    def timed(step):
        def run(*args):
            start = time.perf_counter()
            found = step(*args)
            spent[0] += time.perf_counter() - start
            return found

        return run

    patch = mock.patch.multiple(
        steps, fold_residuals=timed(steps.fold_residuals), calibrate=timed(steps.calibrate)
    )
    alphas = np.logspace(-1, 5, 13)
    cases = [
        ("HOLRRCV", HOLRRCV(alphas), 2000, 50, (20, 20, 20)),
        ('HOLRRCV, "min"', HOLRRCV(alphas, selection="min"), 2000, 50, (20, 20, 20)),
        ("HOLRRCV", HOLRRCV(alphas), 500, 20, (10, 10, 10)),
        ("LRRCV", LRRCV(alphas), 2000, 50, (20, 20)),
        ("RLSCV", RLSCV(alphas), 2000, 50, (20, 20)),
        ("KernelHOLRRCV", KernelHOLRRCV(alphas, gammas=[0.01]), 600, 20, (10, 10)),
    ]
    lines = ["| search | samples | outputs | search, s | intervals / search |"]
    lines += ["|:--|--:|:-:|--:|--:|"]
    for name, model, n, d0, shape in cases[2:] if quick else cases:
        X, Y = make_tensor_regression(
            n, n_features=d0, output_shape=shape, rank=(3,) * (len(shape) + 1), random_state=0
        )
        ratios, times = [], []
        with patch, threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(3):
                spent[0], start = 0.0, time.perf_counter()
                model.fit(X, Y)
                times.append(time.perf_counter() - start - spent[0])
                ratios.append(spent[0] / times[-1])
        size = "x".join(map(str, shape))
        lines.append(f"| {name} | {n} | {size} | {min(times):.2f} | {np.median(ratios):.2f} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few seeds and samples")
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--meteo", default=METEO, help="folder of the Met Office files")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    args = parse_options(parser, arguments)
    set_meteo_folder(args.meteo)
    lacking = unavailable((*EXCHANGEABLE, *IN_TIME))
    if args.write and lacking:
        parser.error(f"--write needs the data of all tasks, also of {lacking}")
    seeds, sizes = (3, SIZES[:2]) if args.quick else (args.seeds, SIZES)
    parts = [
        "Synthetic data, mean over seeds, percent of 90:\n",
        synthetic_table(seeds, sizes, args.jobs),
        "\nFew samples of many outputs, `RLSCV`:\n",
        few_table(max(seeds // 2, 2), args.jobs),
        "\nReal data, shuffled:\n",
        real_table(EXCHANGEABLE, "shuffled", args.quick, args.jobs),
        "\nReal data, blocks of time that the fit has not seen:\n",
        real_table(IN_TIME, "blocks", args.quick, args.jobs),
        "\nTime:\n",
        cost_table(args.quick),
    ]
    if args.write:
        write_section("coverage", "\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
