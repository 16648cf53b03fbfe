"""Cross-validation of all ranks, compared with single fits, grid search and ridge regression.

    python benchmarks/model_selection.py [--quick] [--threads 2]
    python benchmarks/model_selection.py --stacking [--quick] [--meteo FOLDER]

The first form compares the time of HOLRRCV for all ranks and 13 penalties with

- as many single fits of HOLRR to the training folds as there are folds and penalties;
- GridSearchCV of scikit-learn over a sample of the same candidates, as a ratio for each candidate;
- RidgeCV of scikit-learn and of himalaya on the flattened outputs, which choose only the penalty;
- HOLRRCV that chooses a single model in place of a stack.

The methods take turns, and their medians are compared. The second form compares the errors of
selection="stack" and selection="min" on new data: new coefficients, samples and noise for each
seed, with errors against the noiseless outputs, or, with the Met Office files in FOLDER, new random
splits. It also prints the errors on outputs that are pure noise.
Without --quick, the first form takes about two minutes and the second about three on two cores.
Searches with many inputs and outputs are in benchmarks/table.py.
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
import time
import warnings

import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV, KFold
from threadpoolctl import threadpool_limits

from holrr import HOLRR
from holrr.datasets import fetch_met_office, make_forecast_windows, make_tensor_regression
from holrr.model_selection import HOLRRCV, RLSCV

ALPHAS = np.logspace(-2, 4, 13)


def seconds(f) -> float:
    start = time.perf_counter()
    f()
    return time.perf_counter() - start


def medians(functions: list, repeats: int) -> list[float]:
    """Return the median seconds of each function; the functions take turns."""
    times = [[seconds(f) for f in functions] for _ in range(repeats)]
    return [statistics.median(column) for column in zip(*times, strict=True)]


def data(n: int, d0: int, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    rank = tuple(min(4, d) for d in (d0, *shape))
    return make_tensor_regression(
        n, n_features=d0, output_shape=shape, rank=rank, snr=1.0, random_state=0
    )


# ---------------------------------------------------------------- time


def single_fits(X, Y, n_folds: int):
    """Return a function that fits each fold and penalty, with folds that are copied before."""
    parts = [(X[train], Y[train]) for train, _ in KFold(n_folds).split(X)]
    rank = tuple(min(4, d) for d in (X.shape[1], *Y.shape[1:]))

    def run():
        for (Xt, Yt), alpha in itertools.product(parts, ALPHAS):
            HOLRR(rank=rank, alpha=alpha).fit(Xt, Yt)

    return run


def grid_search(X, Y, n_folds: int, n_candidates: int):
    """Return a grid search over a random sample of penalties and ranks."""
    rng = np.random.default_rng(0)
    sizes = (X.shape[1], *Y.shape[1:])
    grid = [
        {"alpha": [rng.choice(ALPHAS)], "rank": [tuple(int(rng.integers(1, d + 1)) for d in sizes)]}
        for _ in range(n_candidates)
    ]

    def score(model, X, Y):
        return -float(np.mean((model.predict(X) - Y) ** 2))

    search = GridSearchCV(HOLRR(), grid, scoring=score, cv=n_folds, refit=False)
    return lambda: search.fit(X, Y)


def compare_with_fits(X, Y, n_folds: int, repeats: int) -> None:
    n_models = len(ALPHAS) * X.shape[1] * math.prod(Y.shape[1:])
    n_sampled = 6
    everything = lambda: HOLRRCV(ALPHAS, cv=n_folds, selection="min").fit(X, Y)  # noqa: E731
    everything(), single_fits(X, Y, 2)()
    t_all, t_fits = medians([everything, single_fits(X, Y, n_folds)], repeats)
    t_search = seconds(grid_search(X, Y, n_folds, n_sampled))
    n_fits = n_folds * len(ALPHAS)
    print(f"HOLRRCV, {n_models:,} models, {n_folds} folds: {t_all:.2f} s")
    print(f"{n_fits} single fits: {t_fits:.2f} s; HOLRRCV takes {t_all / t_fits:.2f} times that")
    ratio = (t_search / n_sampled) / (t_all / n_models)
    print(f"GridSearchCV: {t_search / n_sampled:.2f} s a candidate, {ratio:,.0f} times HOLRRCV's\n")


def compare_with_ridge(X, Y, repeats: int) -> None:
    flat = Y.reshape(len(Y), -1)
    methods = {
        "HOLRRCV, all ranks": lambda: HOLRRCV(ALPHAS, cv=5, selection="min").fit(X, Y),
        "scikit-learn RidgeCV": lambda: RidgeCV(ALPHAS, cv=5).fit(X, flat),
    }
    try:
        from himalaya.ridge import RidgeCV as HimalayaRidgeCV
    except ImportError:
        print("himalaya is not installed (pip install holrr[bench]) and left out")
    else:
        methods["himalaya RidgeCV"] = lambda: HimalayaRidgeCV(ALPHAS, fit_intercept=True, cv=5).fit(
            X, flat
        )
    times = medians(list(methods.values()), repeats)
    print("| 5 folds, 13 penalties | s | HOLRRCV / it |\n|---|--:|--:|")
    for name, t in zip(methods, times, strict=True):
        print(f"| {name} | {t:.2f} | {times[0] / t:.2f} |")


def compare_with_stack(quick: bool) -> None:
    """Compare the time of searches for a stack and for a single model, with default grids."""
    sizes = [(2000, 50, (20, 20, 20), 5), (200, 10, (12, 8, 6), 51)]
    if quick:
        sizes = [(300, 20, (8, 8, 8), 1), (200, 10, (12, 8, 6), 3)]
    print("\n| | best single model, s | stack, s | ratio |\n|---|--:|--:|--:|")
    for n, d0, shape, repeats in sizes:
        X, Y = data(n, d0, shape)
        fits = [lambda s=s, X=X, Y=Y: HOLRRCV(selection=s).fit(X, Y) for s in ("min", "stack")]
        medians(fits, 1)
        best, stack = medians(fits, repeats)
        name = f"{n} x {d0} -> {'x'.join(map(str, shape))}"
        print(f"| {name} | {best:.4g} | {stack:.4g} | {stack / best:.2f} |")


# ---------------------------------------------------------------- stacking


def synthetic(n: int, snr: float, seed: int):
    X, Y, coef = make_tensor_regression(
        n,
        n_features=10,
        output_shape=(10, 10, 10),
        rank=(6, 4, 4, 8),
        snr=snr,
        return_coef=True,
        random_state=seed,
    )
    X_test = np.random.default_rng(1000 + seed).normal(size=(200, 10))
    return X, Y, X_test, np.tensordot(X_test, coef, 1)


def weather(folder: str, n: int, seed: int):
    series = fetch_met_office(folder, stations="complete", download_if_missing=False)
    z = (series.data - series.data.mean(axis=(0, 1))) / series.data.std(axis=(0, 1))
    X, Y = make_forecast_windows(z, n_past=2, n_future=3, months=series.months)[:2]
    order = np.random.default_rng(seed).permutation(len(X))
    return X[order[:n]], Y[order[:n]], X[order[n:]], Y[order[n:]]


def gain_of_stacking(name: str, make, n_seeds: int) -> None:
    errors = []
    for seed in range(n_seeds):
        X, Y, X_test, Y_test = make(seed)
        models = [HOLRRCV(selection=s).fit(X, Y) for s in ("min", "stack")]
        errors.append([math.sqrt(np.mean((m.predict(X_test) - Y_test) ** 2)) for m in models])
    best, stack = np.array(errors).T
    ratio = stack / best
    wins = int((ratio < 1).sum())
    print(
        f"| {name} | {best.mean():.4f} | {stack.mean():.4f} | {ratio.mean():.4f} "
        f"+- {ratio.std(ddof=1) / math.sqrt(n_seeds):.4f} | "
        f"{ratio.max():.4f} | {wins} of {n_seeds} |",
        flush=True,
    )


def cost_of_noise(n: int, shape: tuple[int, ...], n_seeds: int) -> None:
    """Print test errors on pure noise, divided by the error of the mean."""
    ratios = []
    for seed in range(n_seeds):
        rng = np.random.default_rng(seed)
        X, Y = rng.normal(size=(n + 500, 10)), rng.normal(size=(n + 500, *shape))
        error = lambda predicted, Y=Y: math.sqrt(np.mean((Y[n:] - predicted) ** 2))  # noqa: E731
        mean = error(Y[:n].mean(axis=0))
        models = RLSCV(), HOLRRCV(selection="min"), HOLRRCV()
        ratios.append([error(m.fit(X[:n], Y[:n]).predict(X[n:])) / mean for m in models])
    ratios = np.array(ratios)
    cells = " | ".join(f"{v:.4f}" for v in (*ratios.mean(axis=0), ratios[:, 2].max()))
    print(f"| {n} samples, outputs {'x'.join(map(str, shape))} | {cells} |", flush=True)


def stacking(n_seeds: int, folder: str | None) -> None:
    print("| data | RMSE, best rank | RMSE, stack | ratio | worst ratio | better |")
    print("|---|--:|--:|--:|--:|--:|")
    for n, snr in [(20, 1.0), (50, 1.0), (100, 1.0), (50, 0.3), (200, 1.0), (50, 3.0)]:
        name = f"synthetic, {n} samples, signal to noise {snr:g}"
        gain_of_stacking(name, lambda seed, n=n, snr=snr: synthetic(n, snr, seed), n_seeds)
    for n in (100, 200) if folder else ():
        make = lambda seed, n=n: weather(folder, n, seed)  # noqa: E731
        gain_of_stacking(f"weather, {n} samples", make, max(n_seeds // 2, 2))
    print("\n| noise alone, RMSE / that of the mean | ridge | best rank | stack | worst stack |")
    print("|---|--:|--:|--:|--:|")
    for n, shape in itertools.product((20, 50, 100), ((10, 10, 10), (6, 8), (3,))):
        cost_of_noise(n, shape, n_seeds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small data, one repeat")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--stacking", action="store_true")
    parser.add_argument("--meteo", help="folder of the Met Office files, for --stacking")
    args = parser.parse_args()
    warnings.filterwarnings("ignore", message="The best penalty")
    warnings.filterwarnings("ignore", message="The error surfaces")  # ranks are capped
    with threadpool_limits(args.threads):
        if args.stacking:
            stacking(3 if args.quick else 20, args.meteo)
            return
        n, shape = (500, (10, 10, 10)) if args.quick else (2000, (20, 20, 20))
        X, Y = data(n, 50, shape)
        outputs = "x".join(map(str, shape))
        print(f"{n} samples, 50 inputs, {outputs} outputs, {args.threads} threads\n")
        compare_with_fits(X, Y, n_folds=3, repeats=1 if args.quick else 3)
        compare_with_ridge(X, Y, repeats=1)
        compare_with_stack(args.quick)


if __name__ == "__main__":
    main()
