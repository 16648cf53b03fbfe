"""HOLRR's fit against scikit-learn's Ridge and the bare product X'Y, side by side in one run.

    python benchmarks/linear.py [--repeats 15] [--threads 2]

Ridge gets the flattened outputs. The methods take turns in every repeat and the medians are
compared; all use the same number of threads, and none meets those of another. Memory is the peak of
what `fit` allocates beyond the data, as a share of the bytes of Y.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
import tracemalloc

import numpy as np
from sklearn.linear_model import Ridge
from threadpoolctl import threadpool_limits

from holrr import HOLRR

LARGE = [(2000, 50, (20, 20, 20)), (20_000, 50, (20, 20)), (100_000, 20, (10, 10))]
PAPER = [(100, 10, (10, 10, 10)), (100, 3, (70, 70)), (100, 160, (5, 16, 5))]


def seconds(f) -> float:
    # The threads of a BLAS spin for a while after a call, and NumPy and SciPy have one each: let
    # those of the last function come to rest.
    time.sleep(0.05)
    start = time.perf_counter()
    f()
    return time.perf_counter() - start


def medians(functions: list, repeats: int) -> list[float]:
    """Median seconds of each function; they take turns."""
    for f in functions:
        f()
    times = [[seconds(f) for f in functions] for _ in range(repeats)]
    return [statistics.median(column) for column in zip(*times, strict=True)]


def extra_memory(f) -> int:
    """Peak bytes that `f` allocates."""
    f()
    tracemalloc.start()
    f()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def measure(n: int, d0: int, shape: tuple[int, ...], repeats: int) -> str:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d0))
    Y = rng.standard_normal((n, *shape))
    flat = Y.reshape(n, math.prod(shape))
    rank = tuple(min(5, d) for d in (d0, *shape))
    fit = lambda: HOLRR(rank).fit(X, Y)  # noqa: E731
    product, ridge, holrr = medians(
        [lambda: X.T @ flat, lambda: Ridge().fit(X, flat), fit], repeats
    )
    memory = extra_memory(fit) / Y.nbytes
    return (
        f"| {n} | {d0} | {'x'.join(map(str, shape))} | {product * 1e3:.2f} | {ridge * 1e3:.2f} "
        f"| {holrr * 1e3:.2f} | {holrr / ridge:.2f} | {holrr / product:.2f} | {memory:.3f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    print("| N | d0 | outputs | X'Y, ms | Ridge, ms | HOLRR, ms | / Ridge | / X'Y | memory / Y |")
    print("|--:|--:|:-:|--:|--:|--:|--:|--:|--:|")
    with threadpool_limits(args.threads):
        for size in LARGE:
            print(measure(*size, args.repeats))
        for size in PAPER:
            print(measure(*size, 7 * args.repeats))


if __name__ == "__main__":
    main()
