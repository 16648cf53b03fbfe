"""Forgetting old batches of a system that drifts, and the cost of rolling windows.

    python benchmarks/forgetting.py [--quick] [--steps 200] [--repeats 3] [--write]

The script prints the tables of docs/streaming.md, and writes them there with --write. In the first,
coefficients of low rank drift: the factor of the inputs is a random walk. Every batch is predicted
before the model is fitted to it. The error is that of the mean prediction, without the noise of the
observations, relative to the size of the signal. The coverage is that of intervals of 1.645
standard deviations. In the second, a window moves over 100 parts, and its total is compared with
the sum of all its parts. The third table compares predictions of decayed batches with those of a
weighted fit, and predictions of a window that moves over 100 steps with those of refits to its
samples.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from functools import reduce
from operator import add

import numpy as np

from holrr import HOLRR, LRR, RLS, Moments, RollingMoments
from pages import parse_options, printed, table_lines, write_section

N, D0, SHAPE, RANK = 40, 10, (6, 8), 2
Batch = tuple[np.ndarray, np.ndarray, np.ndarray]


def drifting(n_steps: int, speed: float, seed: int) -> Iterator[Batch]:
    """Yield batches of inputs, outputs and outputs without noise."""
    rng = np.random.default_rng(seed)
    core, *factors = (rng.normal(size=(RANK,) * 3), *(rng.normal(size=(d, RANK)) for d in SHAPE))
    U = rng.normal(size=(D0, RANK))
    for _ in range(n_steps):
        # The random walk is stationary, so the size of the coefficients does not grow.
        U = np.sqrt(1 - speed**2) * U + speed * rng.normal(size=U.shape)
        W = np.einsum("abc,ia,jb,kc->ijk", core, U, *factors)
        X = rng.normal(size=(N, D0))
        signal = np.tensordot(X, W, 1)
        yield X, signal + 3.0 * rng.normal(size=signal.shape), signal


def decayed(decay: float) -> Callable[[HOLRR, np.ndarray, np.ndarray], None]:
    def update(model: HOLRR, X: np.ndarray, Y: np.ndarray) -> None:
        model.partial_fit(X, Y, decay=decay)

    return update


def windowed(n_parts: int) -> Callable[[HOLRR, np.ndarray, np.ndarray], None]:
    window = RollingMoments(n_parts)

    def update(model: HOLRR, X: np.ndarray, Y: np.ndarray) -> None:
        window.append(Moments.from_arrays(X, Y))
        model.fit_moments(window.total())

    return update


METHODS: dict[str, Callable[[], Callable[[HOLRR, np.ndarray, np.ndarray], None]]] = {
    "all batches": lambda: decayed(1.0),
    "`decay=0.98`": lambda: decayed(0.98),
    "`decay=0.95`": lambda: decayed(0.95),
    "`decay=0.9`": lambda: decayed(0.9),
    "`decay=0.8`": lambda: decayed(0.8),
    "`decay=0.5`": lambda: decayed(0.5),
    "`RollingMoments(20)`": lambda: windowed(20),
    "`RollingMoments(10)`": lambda: windowed(10),
    "the last batch": lambda: windowed(1),
}


def follow(name: str, n_steps: int, speed: float, seed: int) -> tuple[float, float, float]:
    """Return relative error, coverage and effective number of samples after the first quarter."""
    model, update = HOLRR(rank=RANK, alpha=1.0), METHODS[name]()
    error = size = inside = count = 0.0
    for step, (X, Y, signal) in enumerate(drifting(n_steps, speed, seed)):
        if step >= n_steps // 4:
            mean, std = model.predict(X, return_std=True)
            error += np.sum((mean - signal) ** 2)
            size += np.sum(signal**2)
            inside += np.sum(np.abs(Y - mean) < 1.645 * std)
            count += Y.size
        update(model, X, Y)
    return error / size, inside / count, model.moments_.n_effective


def rows_of_drift(n_steps: int, repeats: int) -> Iterator[list[str]]:
    """Yield errors for three speeds, and coverage and number of samples for the second one."""
    speeds = (0.0, 0.05, 0.15)
    for name in METHODS:
        found = [[follow(name, n_steps, speed, s) for s in range(repeats)] for speed in speeds]
        errors, coverage, n = np.moveaxis(np.mean(found, axis=1), -1, 0)
        shown = [f"{error:.4f}" for error in errors]
        yield [name, *shown, f"{coverage[1]:.3f}", f"{n[1]:.0f}"]


def rows_of_windows(n_steps: int = 100) -> Iterator[list[str]]:
    """Yield the milliseconds of a step of a window, and of new sums of all parts."""
    rng = np.random.default_rng(0)
    parts = [
        Moments.from_arrays(rng.normal(size=(600, 300)), rng.normal(size=(600, 100)))
        for _ in range(8)
    ]
    for n_parts in (12, 36, 100):
        window, seen, difference = RollingMoments(n_parts), [], 0.0
        rolling = anew = 0.0
        for step in range(n_parts + n_steps):
            part = parts[rng.integers(len(parts))]
            start = time.perf_counter()
            window.append(part)
            total = window.total()
            rolling += (time.perf_counter() - start) * (step >= n_parts)
            seen.append(part)
            if step >= n_parts and step % 10 == 0:
                start = time.perf_counter()
                expected = reduce(add, seen[-n_parts:])
                anew += time.perf_counter() - start
                off = np.abs(total.Sxx - expected.Sxx).max() / np.abs(expected.Sxx).max()
                difference = max(difference, off)
        anew /= len(range(0, n_steps, 10))
        times = [f"{1e3 * rolling / n_steps:.1f}", f"{1e3 * anew:.1f}"]
        yield [str(n_parts), *times, f"{difference:.0e}"]


def largest_differences(make: Callable[[], RLS | LRR | HOLRR], n_steps: int = 100) -> list[float]:
    """Of a decayed and of a moving model from fits to arrays, relative to the predictions."""
    model, window, found = make(), RollingMoments(36), [0.0, 0.0]
    batches = [(100 + X, 10 + Y) for X, Y, _ in drifting(n_steps, 0.05, seed=0)]
    for step, (X, Y) in enumerate(batches):
        model.partial_fit(X, Y, decay=0.9)
        window.append(Moments.from_arrays(X, Y))
        seen_X, seen_Y = (np.concatenate(part) for part in zip(*batches[: step + 1], strict=True))
        w = np.repeat(0.9 ** np.arange(step, -1.0, -1.0), N)
        expected = make().fit(seen_X, seen_Y, w).predict(X)
        found[0] = max(found[0], np.abs(model.predict(X) - expected).max() / np.abs(expected).max())
        kept = slice(-36 * N, None)
        expected = make().fit(seen_X[kept], seen_Y[kept]).predict(X)
        moved = make().fit_moments(window.total()).predict(X)
        found[1] = max(found[1], np.abs(moved - expected).max() / np.abs(expected).max())
    return found


def rows_of_differences(n_steps: int) -> Iterator[list[str]]:
    """Yield the largest differences of each estimator."""
    for make in (RLS, lambda: LRR(RANK), lambda: HOLRR(RANK)):
        decayed, moved = largest_differences(make, n_steps)
        yield [f"`{make()!r}`", f"{decayed:.0e}", f"{moved:.0e}"]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few batches, one simulation")
    parser.add_argument("--steps", type=int, default=200, help="how many batches")
    parser.add_argument("--repeats", type=int, default=3, help="how many simulations")
    options = parse_options(parser, arguments)
    steps, repeats = (20, 1) if options.quick else (options.steps, options.repeats)
    head = ["", "no drift", "slow drift", "fast drift", "coverage at 90%, slow drift"]
    drift = printed(table_lines([*head, "effective samples"], rows_of_drift(steps, repeats)))
    print()
    head = ["parts", "`RollingMoments`, ms", "new sum of all parts, ms", "largest difference"]
    rows = rows_of_windows(20 if options.quick else 100)
    windows = printed(table_lines(head, rows, "rrrr"))
    print()
    head = ["", "decayed batches and weighted fit", "`RollingMoments(36)` and refits"]
    rows = rows_of_differences(20 if options.quick else 100)
    differences = printed(table_lines(head, rows))
    if options.write:
        write_section("drift", drift)
        write_section("rolling windows", windows)
        write_section("differences of forgetting", differences)


if __name__ == "__main__":
    main()
