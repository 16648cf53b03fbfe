"""Cross-validation of all ranks, compared with single fits, grid search and ridge regression.

    python benchmarks/model_selection.py [--quick] [--part time stacking] [--threads 2]
                                         [--meteo FOLDER] [--write]

The part "time" compares the time of HOLRRCV for all ranks and 13 penalties with

- as many single fits of HOLRR to the training folds as there are folds and penalties;
- GridSearchCV of scikit-learn over a sample of the same candidates, as a ratio for each candidate;
- RidgeCV of scikit-learn and of himalaya on the flattened outputs, which choose only the penalty;
- HOLRRCV that chooses a single model in place of a stack.

The methods take turns, and their medians are compared. The part "stacking" compares the errors of
selection="stack" and selection="min" on new data: new coefficients, samples and noise for each
seed, with errors against the noiseless outputs, or, with the Met Office files in FOLDER, new random
splits. It also prints the errors on outputs that are pure noise.
Without --quick, the first part takes about two minutes and the second about three on two cores.
With --write, which needs both parts, the script writes the sections of docs/model_selection.md and
the time of the search in docs/benchmarks.md. Searches with many inputs and outputs are in
benchmarks/table.py.
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
import time
import warnings
from collections.abc import Iterator

import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV, KFold
from threadpoolctl import threadpool_limits

from holrr import HOLRR
from holrr.datasets import fetch_met_office, make_forecast_windows, make_tensor_regression
from holrr.model_selection import HOLRRCV, RLSCV
from pages import paragraph, parse_options, printed, span, table_lines, write_section

PARTS = ("time", "stacking")
ALPHAS = np.logspace(-2, 4, 13)


def seconds(f) -> float:
    start = time.perf_counter()
    f()
    return time.perf_counter() - start


def times_in_turn(functions: list, repeats: int) -> list[tuple[float, ...]]:
    """Return the seconds of each function in all repeats; the functions take turns."""
    times = [[seconds(f) for f in functions] for _ in range(repeats)]
    return list(zip(*times, strict=True))


def medians(functions: list, repeats: int) -> list[float]:
    """Return the median seconds of each function; the functions take turns."""
    return [statistics.median(times) for times in times_in_turn(functions, repeats)]


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


def compare_with_fits(X, Y, n_folds: int, repeats: int) -> Iterator[list[str]]:
    """Yield the rows of a search, of single fits and of a grid search."""
    n_models = len(ALPHAS) * X.shape[1] * math.prod(Y.shape[1:])
    n_sampled = 6
    everything = lambda: HOLRRCV(ALPHAS, cv=n_folds, selection="min").fit(X, Y)  # noqa: E731
    everything(), single_fits(X, Y, 2)()
    t_all, t_fits = medians([everything, single_fits(X, Y, n_folds)], repeats)
    yield [f"`HOLRRCV`, {n_folds} folds, {n_models / 1e6:.1f} million models", f"{t_all:.1f}", ""]
    name = f"{n_folds * len(ALPHAS)} single fits on the training folds"
    yield [name, f"{t_fits:.1f}", f"{t_all / t_fits:.2f}"]
    t_search = seconds(grid_search(X, Y, n_folds, n_sampled)) / n_sampled
    ratio = float(f"{t_search / (t_all / n_models):.2g}")
    name = "`GridSearchCV`, for each candidate"
    yield [name, f"{t_search:.2f}", f"1 / {ratio:,.0f} for each candidate"]


def compare_with_ridge(X, Y, repeats: int) -> dict[str, float]:
    """Return the seconds of searches in five folds, that of HOLRRCV first."""
    flat = Y.reshape(len(Y), -1)
    methods = {
        "`HOLRRCV`, 5 folds": lambda: HOLRRCV(ALPHAS, cv=5, selection="min").fit(X, Y),
        "scikit-learn's `RidgeCV`, 5 folds, flattened outputs, penalty only": lambda: RidgeCV(
            ALPHAS, cv=5
        ).fit(X, flat),
    }
    try:
        from himalaya.ridge import RidgeCV as HimalayaRidgeCV
    except ImportError:
        print('himalaya is not installed (pip install "holrr[bench]") and left out')
    else:
        search = HimalayaRidgeCV(ALPHAS, fit_intercept=True, cv=5)
        methods["himalaya's `RidgeCV`, likewise"] = lambda: search.fit(X, flat)
    return dict(zip(methods, medians(list(methods.values()), repeats), strict=True))


def compare_with_stack(quick: bool) -> str:
    """Return a paragraph on the time of searches for a stack and for a single model."""
    sizes = [(2000, 50, (20, 20, 20), 5), (200, 10, (12, 8, 6), 51)]
    if quick:
        sizes = [(300, 20, (8, 8, 8), 1), (200, 10, (12, 8, 6), 3)]
    found = []
    for n, d0, shape, repeats in sizes:
        X, Y = data(n, d0, shape)
        fits = [lambda s=s, X=X, Y=Y: HOLRRCV(selection=s).fit(X, Y) for s in ("min", "stack")]
        medians(fits, 1)
        best, stack = times_in_turn(fits, repeats)
        ratios = [b / a for a, b in zip(best, stack, strict=True)]
        found.append((statistics.median(best), statistics.median(stack), ratios))
    (best, _, ratios), (small_best, small_stack, _) = found
    return paragraph(
        f'A stack takes {span(ratios, ".1f")} times as long as `selection="min"` on these data '
        f'({best:.1f} seconds for `"min"`), and {small_stack / small_best:.1f} times as long on '
        f"200 samples with 10 inputs and 12 x 8 x 6 outputs ({1e3 * small_stack:.0f} and "
        f"{1e3 * small_best:.0f} milliseconds)."
    )


def times(quick: bool, n_threads: int) -> dict[str, str]:
    """Measure the first part, and return the texts of its sections."""
    n, shape = (500, (10, 10, 10)) if quick else (2000, (20, 20, 20))
    X, Y = data(n, 50, shape)
    print(f"{n} samples, 50 inputs, {'x'.join(map(str, shape))} outputs, {n_threads} threads\n")
    found: dict[str, float] = {}

    def rows() -> Iterator[list[str]]:
        yield from compare_with_fits(X, Y, n_folds=3, repeats=1 if quick else 3)
        found.update(compare_with_ridge(X, Y, repeats=1 if quick else 3))
        first = next(iter(found.values()))
        for name, t in found.items():
            yield [name, f"{t:.1f}", "" if t == first else f"{first / t:.2f}"]

    table = printed(table_lines(["", "seconds", "time of HOLRRCV relative to it"], rows()))
    ours, ridge, *_ = found.values()
    short = paragraph(
        f"A search over 13 penalties and all {50 * math.prod(shape):,} ranks of the first row "
        f"takes {ours:.1f} s, {ours / ridge:.2f} times as long as scikit-learn's `RidgeCV` over "
        "the penalties alone ([Model selection](model_selection.md#time))."
    )
    stack = compare_with_stack(quick)
    print(f"\n{stack}", end="")
    return {"search time": table, "search time, short": short, "time of a stack": stack}


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


def gain_of_stacking(name: str, make, n_seeds: int) -> list[str]:
    """Return a row: the error of a single model, ratios, and the number of better stacks."""
    errors = []
    for seed in range(n_seeds):
        X, Y, X_test, Y_test = make(seed)
        models = [HOLRRCV(selection=s).fit(X, Y) for s in ("min", "stack")]
        errors.append([math.sqrt(np.mean((m.predict(X_test) - Y_test) ** 2)) for m in models])
    best, stack = np.array(errors).T
    ratio = stack / best
    error = ratio.std(ddof=1) / math.sqrt(n_seeds)
    mean = f"{ratio.mean():.4f} ± {error:.4f}"
    wins = f"{int((ratio < 1).sum())} of {n_seeds}"
    return [name, f"{best.mean():#.3g}", mean, f"{ratio.max():.3f}", wins]


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


def stacking(n_seeds: int, folder: str | None) -> dict[str, str]:
    """Measure the second part, and return the text of its section."""
    head = ["data", "RMSE of the best single model", "stack / best", "worst ratio", "stack better"]
    cases = [(20, 1.0), (50, 1.0), (100, 1.0), (200, 1.0), (50, 0.3), (50, 3.0)]
    rows = (
        gain_of_stacking(
            f"{n} samples, signal to noise {snr:g}",
            lambda seed, n=n, snr=snr: synthetic(n, snr, seed),
            n_seeds,
        )
        for n, snr in cases
    )
    text = printed(table_lines(head, rows))
    if folder:
        rows = (
            gain_of_stacking(
                f"weather, {n} samples",
                lambda seed, n=n: weather(folder, n, seed),
                max(n_seeds // 2, 2),
            )
            for n in (100, 200)
        )
        print()
        printed(table_lines(head, rows))
    print("\n| noise alone, RMSE / that of the mean | ridge | best rank | stack | worst stack |")
    print("|---|--:|--:|--:|--:|")
    for n, shape in itertools.product((20, 50, 100), ((10, 10, 10), (6, 8), (3,))):
        cost_of_noise(n, shape, n_seeds)
    return {"stacking": text}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small data, one repeat")
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--meteo", help="folder of the Met Office files, for stacking")
    args = parse_options(parser, arguments)
    if args.write and set(args.part) != set(PARTS):
        parser.error("--write needs both parts and cannot be combined with --part")
    warnings.filterwarnings("ignore", message="The best penalty")
    warnings.filterwarnings("ignore", message="The error surfaces")  # ranks are capped
    with threadpool_limits(args.threads):
        for part in args.part:
            if part == "time":
                texts = times(args.quick, args.threads)
            else:
                texts = stacking(3 if args.quick else 20, args.meteo)
            print()
            for name, text in texts.items() if args.write else ():
                write_section(name, text)


if __name__ == "__main__":
    main()
