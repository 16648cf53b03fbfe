"""Robust fits, `loss="huber"`: wrong samples, clean data, long-tailed noise, intervals and time.

    python benchmarks/robust.py [--quick] [--seeds 20] [--jobs 2]

Problems have 90 training samples and a signal of rank 2: ten normal inputs, or spectra of six
substances at 300 wavelengths, with 4 x 5 outputs, and ten inputs with one output. The standard
deviation of the noise is 0.1 or 0.5 of that of the signal. Errors are those on 500 new samples,
with the variance of the noise, over the error of the squared loss on the training samples that are
not wrong. "2.10, 1.050 (1.20)" is the mean error of the squared loss, the mean error of the robust
loss and its largest error.

"One row of y" (X) multiplies the outputs (inputs) of one sample by five, "5 rows" and "9 rows" do
so with as many samples, and "interchanged" moves the outputs of five samples to each other.
Long-tailed noise is Student's t with three degrees of freedom, one factor for each sample or one
for each entry. The peer is scikit-learn's `HuberRegressor` with its default penalty, one for each
output.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.linear_model import HuberRegressor
from sklearn.multioutput import MultiOutputRegressor

from common import medians, options_of, quietly, show
from holrr import HOLRRCV, LRRCV, RLS, RLSCV

N, N_NEW = 90, 500
PROBLEMS = ("10 inputs", "spectra", "one output")
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
    """Return inputs and outputs of training samples, and inputs and signal of new ones."""
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
    """Return the samples with wrong ones among them, and those that are not wrong."""
    what, n = WRONG[case]
    rows = np.random.default_rng(1000 + seed).choice(len(X), n, replace=False)
    kept = np.delete(X, rows, axis=0), np.delete(Y, rows, axis=0)
    X, Y = X.copy(), Y.copy()
    if what == "interchanged":
        Y[rows] = Y[np.roll(rows, 1)]
    else:
        (X if what == "X" else Y)[rows] *= 5
    return X, Y, *kept


def error(model: Any, X: np.ndarray, signal: np.ndarray, noise: float = 0.0) -> float:
    """Return the mean squared error on new samples with noise of this standard deviation."""
    return float(np.mean((model.predict(X).reshape(signal.shape) - signal) ** 2)) + noise**2


@quietly
def ratios(kind: str, noise: float, case: str, name: str, seed: int) -> list[float]:
    """Return errors of the squared and the robust loss (and of scikit-learn's regressor).

    They are divided by the error of the squared loss on the samples that are not wrong.
    """
    X, Y, new, signal = problem(kind, noise, seed)
    X, Y, kept_x, kept_y = spoiled(X, Y, case, seed)
    search = SEARCHES.get(name, RLSCV)
    best = error(search().fit(kept_x, kept_y), new, signal, noise)
    models = [search(loss=loss).fit(X, Y) for loss in ("squared", "huber")]
    if name == "HuberRegressor":
        peer = MultiOutputRegressor(HuberRegressor(max_iter=1000))
        models.append(peer.fit(X, Y.reshape(N, -1)))
    return [error(model, new, signal, noise) / best for model in models]


@quietly
def signal_ratio(kind: str, tails: str, seed: int) -> float:
    """Return the error of the signal of the robust loss over that of the squared one."""
    X, Y, new, signal = problem(kind, 0.5, seed, tails)
    robust, squared = (
        error(RLSCV(loss=loss).fit(X, Y), new, signal) for loss in ("huber", "squared")
    )
    return robust / squared


@quietly
def coverage(kind: str, case: str, seed: int) -> list[float]:
    """Return shares of clean observations in intervals of 90 and 95 percent, both losses."""
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


@quietly
def seconds(n: int, d: int, D: int) -> list[float]:
    """Return the CPU seconds of fits and searches with both losses."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    Y = X @ rng.normal(size=(d, D)) + rng.normal(size=(n, D))
    models = [kind(loss=loss) for kind in (RLS, RLSCV) for loss in ("squared", "huber")]
    return medians([lambda m=m: m.fit(X, Y) for m in models], 3, clock=time.process_time)


def main(arguments: list[str] | None = None) -> None:
    parser = options_of(__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    args = parser.parse_args(arguments)
    seeds = range(2 if args.quick else args.seeds)
    problems = PROBLEMS[: 1 if args.quick else None]
    cases = ("clean", "5 rows of y") if args.quick else tuple(WRONG)

    def over_seeds(work: Any, *words: Any) -> np.ndarray:
        return np.array(Parallel(args.jobs)(delayed(work)(*words, seed) for seed in seeds))

    def wrong(noise: float) -> Iterator[list[str]]:
        for kind in problems:
            for case in cases:
                row = [kind, case]
                for name in ("RLSCV",) if kind == "one output" else SEARCHES:
                    squared, huber = over_seeds(ratios, kind, noise, case, name).T
                    row.append(f"{squared.mean():.2f}, {huber.mean():.3f} ({huber.max():.2f})")
                yield [*row, *[""] * (5 - len(row))]

    def peer() -> Iterator[list[str]]:
        for case in cases:
            found = over_seeds(ratios, "10 inputs", 0.5, case, "HuberRegressor").mean(axis=0)
            yield [case, *(f"{value:.3f}" for value in found)]

    def tails() -> Iterator[list[str]]:
        for kind in problems:
            found = [over_seeds(signal_ratio, kind, t) for t in ("normal", "sample", "entry")]
            yield [kind, *(f"{values.mean():.3f}" for values in found)]

    def intervals() -> Iterator[list[str]]:
        for kind in problems:
            for case in ("clean", "5 rows of y"):
                found = over_seeds(coverage, kind, case).mean(axis=0)
                yield [kind, case, *(f"{100 * share:.1f}" for share in found)]

    def times() -> Iterator[list[object]]:
        sizes = [(90, 1000, 20), (90, 300, 20_000), (5000, 300, 100), (100_000, 20, 1)]
        for size in sizes[:1] if args.quick else sizes:
            yield [*(f"{s:,}" for s in size), *(f"{t:.3g}" for t in seconds(*size))]

    head = ["problem", "wrong", *SEARCHES]
    show("Wrong samples, noise 0.5: squared, robust (largest)", head, wrong(0.5))
    show("Wrong samples, noise 0.1: squared, robust (largest)", head, wrong(0.1))
    head = ["wrong", "`RLSCV`", "`RLSCV`, robust", "`HuberRegressor`"]
    show("Beside scikit-learn, noise 0.5", head, peer())
    head = ["problem", "normal noise", "long tails, samples", "long tails, entries"]
    show("Error of the signal, robust / squared", head, tails())
    head = [f"{loss}, {share} %" for loss in ("squared", "huber") for share in (90, 95)]
    show("Coverage of intervals", ["problem", "wrong", *head], intervals())
    head = ["`RLS`, s", "robust, s", "`RLSCV`, s", "robust, s"]
    show("CPU seconds", ["samples", "inputs", "outputs", *head], times())


if __name__ == "__main__":
    main()
