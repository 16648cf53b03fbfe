"""Robust fits, `loss="huber"`: wrong samples, clean data, long-tailed noise, intervals and time.

    python benchmarks/robust.py [--seeds 20] [--jobs 2] [--quick] [--write]

Prints the tables of docs/robust.md, and writes them there with --write. Problems have 90 training
samples and a signal of rank 2: ten normal inputs, or spectra of six substances at 300 wavelengths,
with 4 x 5 outputs, and ten inputs with one output. The standard deviation of the noise is 0.1 or
0.5 of that of the signal. Errors are those on 500 new samples, with the variance of the noise, over
the error of the squared loss on the training samples that are not wrong.

"One row of y" (X) multiplies the outputs (inputs) of one sample by five, "5 rows" and "9 rows" do
so with as many samples, and "interchanged" moves the outputs of five samples to each other.
Long-tailed noise is Student's t with three degrees of freedom, one factor for each sample or one
for each entry. The peer is scikit-learn's `HuberRegressor` with its default penalty, one for each
output.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

import numpy as np
from joblib import Parallel, delayed
from sklearn.linear_model import HuberRegressor
from sklearn.multioutput import MultiOutputRegressor
from threadpoolctl import threadpool_limits

from holrr import HOLRRCV, LRRCV, RLS, RLSCV
from holrr.core.robust import robust_weights
from pages import parse_options, printed, table_lines, write_section

N, N_NEW = 90, 500
PROBLEMS = ("10 inputs", "spectra", "one output")
NOISES = (0.1, 0.5)
SEARCHES = {"RLSCV": RLSCV, "LRRCV": LRRCV, "HOLRRCV": HOLRRCV}
WRONG: dict[str, tuple[str, int]] = {
    "clean": ("y", 0),
    "one row of y": ("y", 1),
    "one row of X": ("X", 1),
    "5 rows of y": ("y", 5),
    "5 rows of X": ("X", 5),
    "9 rows of y": ("y", 9),
    "9 rows of X": ("X", 9),
    "5 rows interchanged": ("interchanged", 5),
}
Data = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def problem(kind: str, noise: float, seed: int, tails: str = "normal") -> Data:
    """Inputs and outputs of training samples, and inputs and signal of new ones."""
    rng = np.random.default_rng(seed)
    n = N + N_NEW
    if kind == "spectra":
        at = np.linspace(0, 1, 300)
        peaks = np.exp(-0.5 * ((at - np.linspace(0.1, 0.9, 6)[:, None]) / 0.05) ** 2)
        causes = rng.gamma(2, 1, size=(n, 6))
        X = causes @ peaks + 0.02 * rng.normal(size=(n, 300))
    else:
        X = causes = rng.normal(size=(n, 10))
    A, B, C = (rng.normal(size=(d, 2)) for d in (causes.shape[1], 4, 5))
    signal = np.einsum("na,ia,ja->nij", (causes - causes.mean(axis=0)) @ A, B, C)
    if kind == "one output":
        signal = signal[:, 0, 0]
    signal = 1 + signal / signal.std()
    E = rng.normal(size=signal.shape)
    if tails != "normal":
        shape = signal.shape if tails == "entry" else (n, *[1] * (signal.ndim - 1))
        E /= np.sqrt(rng.chisquare(3, size=shape) / 3)
    return X[:N], (signal + noise * E)[:N], X[N:], signal[N:]


def spoiled(X: np.ndarray, Y: np.ndarray, case: str, seed: int) -> Data:
    """The samples with wrong ones among them, and those that are not wrong."""
    what, n = WRONG[case]
    rows = np.random.default_rng(1000 + seed).choice(len(X), n, replace=False)
    kept = np.delete(X, rows, axis=0), np.delete(Y, rows, axis=0)
    X, Y = X.copy(), Y.copy()
    if what == "interchanged":
        Y[rows] = Y[np.roll(rows, 1)]
    else:
        (X if what == "X" else Y)[rows] *= 5
    return X, Y, *kept


def error(model, X: np.ndarray, signal: np.ndarray, noise: float = 0.0) -> float:
    """Mean squared error on new samples with noise of this standard deviation."""
    return float(np.mean((model.predict(X) - signal) ** 2)) + noise**2


def quietly(work: Callable) -> Callable:
    def run(*args):
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return work(*args)

    return run


@quietly
def ratios(kind: str, noise: float, case: str, name: str, seed: int) -> list[float]:
    """Errors of the squared and the robust loss over that of the samples that are not wrong."""
    X, Y, new, signal = problem(kind, noise, seed)
    X, Y, kept_x, kept_y = spoiled(X, Y, case, seed)
    search = SEARCHES[name]
    best = error(search().fit(kept_x, kept_y), new, signal, noise)
    return [
        error(search(loss=loss).fit(X, Y), new, signal, noise) / best
        for loss in ("squared", "huber")
    ]


@quietly
def peer_ratio(noise: float, case: str, seed: int) -> float:
    """Error of scikit-learn's regressor over that of `RLSCV` on samples that are not wrong."""
    X, Y, new, signal = problem("10 inputs", noise, seed)
    X, Y, kept_x, kept_y = spoiled(X, Y, case, seed)
    best = error(RLSCV().fit(kept_x, kept_y), new, signal, noise)
    model = MultiOutputRegressor(HuberRegressor(max_iter=1000)).fit(X, Y.reshape(N, -1))
    return (np.mean((model.predict(new) - signal.reshape(N_NEW, -1)) ** 2) + noise**2) / best


def wrong_rows(noise: float, seeds: int, jobs: int) -> Iterator[list[str]]:
    """Yield errors of all searches with wrong samples."""
    for kind in PROBLEMS:
        for case in WRONG:
            cells = []
            for name in SEARCHES:
                if kind == "one output" and name != "RLSCV":
                    cells.append("")
                    continue
                work = (delayed(ratios)(kind, noise, case, name, seed) for seed in range(seeds))
                squared, huber = np.array(Parallel(jobs)(work)).T
                cells.append(f"{squared.mean():.2f}, {huber.mean():.3f} ({huber.max():.2f})")
            yield [kind, case, *cells]


def peer_rows(noise: float, seeds: int, jobs: int) -> Iterator[list[str]]:
    """Yield errors of scikit-learn's regressor beside those of both losses."""
    for case in WRONG:
        work = [(delayed(ratios)("10 inputs", noise, case, "RLSCV", s)) for s in range(seeds)]
        squared, huber = np.mean(Parallel(jobs)(work), axis=0)
        peer = np.mean(Parallel(jobs)(delayed(peer_ratio)(noise, case, s) for s in range(seeds)))
        yield [case, f"{squared:.2f}", f"{huber:.3f}", f"{peer:.3f}"]


@quietly
def signal_ratio(kind: str, tails: str, seed: int) -> float:
    """Error of the signal, without noise, of the robust loss over that of the squared one."""
    X, Y, new, signal = problem(kind, 0.5, seed, tails)
    robust, squared = (
        error(RLSCV(loss=loss).fit(X, Y), new, signal) for loss in ("huber", "squared")
    )
    return robust / squared


def tails_rows(seeds: int, jobs: int) -> Iterator[list[str]]:
    """Yield errors of the signal for several kinds of noise."""
    for kind in PROBLEMS:
        cells = []
        for tails in ("normal", "sample", "entry"):
            found = Parallel(jobs)(delayed(signal_ratio)(kind, tails, s) for s in range(seeds))
            cells.append(f"{np.mean(found):.3f}")
        yield [kind, *cells]


@quietly
def coverage(kind: str, case: str, seed: int) -> list[float]:
    """Shares of clean observations in intervals of 90 and 95 percent, both losses."""
    X, Y, new, signal = problem(kind, 0.5, seed)
    X, Y, _, _ = spoiled(X, Y, case, seed)
    observed = signal + 0.5 * np.random.default_rng(seed).normal(size=signal.shape)
    found = []
    for loss in ("squared", "huber"):
        model = RLSCV(loss=loss).fit(X, Y)
        for share in (0.9, 0.95):
            low, high = model.predict_interval(new, share)
            found.append(float(np.mean((low <= observed) & (observed <= high))))
    return found


def coverage_rows(seeds: int, jobs: int) -> Iterator[list[str]]:
    """Yield the coverage of intervals, in percent."""
    for kind in PROBLEMS:
        for case in ("clean", "5 rows of y"):
            found = Parallel(jobs)(delayed(coverage)(kind, case, s) for s in range(seeds))
            yield [kind, case, *(f"{100 * share:.1f}" for share in np.mean(found, axis=0))]


def time_rows(quick: bool) -> Iterator[list[str]]:
    """Yield the seconds of weights, of fits and of searches."""
    sizes = [(90, 1000, 20), (90, 300, 20_000), (5000, 300, 100), (100_000, 20, 1)]
    for n, d, D in sizes[:1] if quick else sizes:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, d))
        Y = X @ rng.normal(size=(d, D)) + rng.normal(size=(n, D))
        steps = (robust_weights, RLS().fit, RLSCV().fit)
        yield [f"{n:,}", str(d), f"{D:,}", *(f"{seconds(step, X, Y):.2f}" for step in steps)]


@quietly
def seconds(step: Callable, X: np.ndarray, Y: np.ndarray) -> float:
    times = []
    for _ in range(3):
        start = time.perf_counter()
        step(X, Y)
        times.append(time.perf_counter() - start)
    return min(times)


def sections(quick: bool, seeds: int, jobs: int) -> Iterator[tuple[str, Iterable[str]]]:
    """Yield the name of each section and its lines."""
    head = ["problem", "wrong", *SEARCHES]
    rows = wrong_rows(max(NOISES), seeds, jobs)
    means = [f"Means over {seeds} data sets:", ""]
    yield "wrong samples", chain(means, table_lines(head, rows, "llrrr"))
    rows = wrong_rows(min(NOISES), seeds, jobs)
    yield "wrong samples, little noise", table_lines(head, rows, "llrrr")
    head = ["wrong", "`RLSCV`", "`RLSCV`, robust", "`HuberRegressor`"]
    yield "HuberRegressor", table_lines(head, peer_rows(0.5, seeds, jobs))
    head = ["problem", "normal noise", "long tails, samples", "long tails, entries"]
    yield "long tails", table_lines(head, tails_rows(seeds, jobs))
    head = [f"{loss}, {share} %" for loss in ("squared", "huber") for share in (90, 95)]
    rows = coverage_rows(seeds, jobs)
    yield "robust intervals", table_lines(["problem", "wrong", *head], rows, "llrrrr")
    head = ["samples", "inputs", "outputs", "weights, s", "`RLS`, s", "`RLSCV`, s"]
    yield "time of weights", table_lines(head, time_rows(quick), "rrrrrr")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--quick", action="store_true", help="two seeds, small sizes")
    options = parse_options(parser, arguments)
    for name, lines in sections(options.quick, 2 if options.quick else options.seeds, options.jobs):
        print(f"\n{name}\n")
        text = printed(lines)
        if options.write:
            write_section(name, text)


if __name__ == "__main__":
    main()
