"""Fits of HOLRR, compared with Ridge of scikit-learn and the bare product X'Y in one run.

    python benchmarks/linear.py [--quick] [--repeats 15] [--threads 2] [--write]

Ridge is fitted to the flattened outputs. The methods take turns in every repeat, and their medians
are compared. All use the same number of threads, with pauses in between, so that idle threads of
one method do not slow down another. The ratio to Ridge is also measured on one thread: with several
threads, the libraries that NumPy and SciPy use for linear algebra slow each other down in Ridge, by
a factor of up to ten if there are few samples. Memory is the peak that `fit` allocates in addition
to the data, as a share of the bytes of Y. With --write the script writes the tables of
docs/developer_benchmarks.md and docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
import tracemalloc
from collections.abc import Iterator

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from threadpoolctl import threadpool_limits

from holrr import HOLRR
from pages import parse_options, printed, table, table_lines, write_section

# Label, our seconds, their seconds, and target ratio.
Row = tuple[str, float, float, float]

LARGE = [(2000, 50, (20, 20, 20)), (20_000, 50, (20, 20)), (100_000, 20, (10, 10))]
PAPER = [(100, 10, (10, 10, 10)), (100, 3, (70, 70)), (100, 160, (5, 16, 5))]


# The threads of the BLAS of NumPy and of SciPy spin for a tenth of a second after a call, and slow
# down the next function. Seconds of the pause between two functions, short and long enough to avoid
# this.
PAUSE, REST = 0.05, 0.2


def seconds(f, pause: float = PAUSE) -> float:
    time.sleep(pause)
    start = time.perf_counter()
    f()
    return time.perf_counter() - start


def medians(functions: list, repeats: int, pause: float = PAUSE) -> list[float]:
    """Return the median seconds of each function; the functions take turns."""
    for f in functions:
        f()
    times = [[seconds(f, pause) for f in functions] for _ in range(repeats)]
    return [statistics.median(column) for column in zip(*times, strict=True)]


def extra_memory(f) -> int:
    """Return the peak bytes that `f` allocates."""
    f()
    tracemalloc.start()
    f()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def label(n: int, d0: int, shape: tuple[int, ...]) -> str:
    return f"{n} x {d0} -> {'x'.join(map(str, shape))}"


def data(n: int, d0: int, shape: tuple[int, ...]):
    """Return noise as data, and a model with rank 5 in every mode."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d0))
    return X, rng.standard_normal((n, *shape)), HOLRR(tuple(min(5, d) for d in (d0, *shape)))


def fit_times(
    n: int, d0: int, shape: tuple[int, ...], repeats: int, pause: float = PAUSE
) -> list[float]:
    """Return the seconds of the bare product, of Ridge and of HOLRR."""
    X, Y, model = data(n, d0, shape)
    flat = Y.reshape(n, math.prod(shape))
    functions = [lambda: X.T @ flat, lambda: Ridge().fit(X, flat), lambda: model.fit(X, Y)]
    return medians(functions, repeats, pause)


HEAD = ["N", "d0", "outputs", "X'Y, ms", "Ridge, ms", "HOLRR, ms", "/ Ridge"]
HEAD += ["/ Ridge, one thread", "/ X'Y", "memory / Y"]


def measure(n: int, d0: int, shape: tuple[int, ...], repeats: int, threads: int) -> list[str]:
    """Return the cells of a row of the table."""
    with threadpool_limits(threads):
        times = fit_times(n, d0, shape, repeats)
    X, Y, model = data(n, d0, shape)
    with threadpool_limits(1):
        _, ridge, holrr = fit_times(n, d0, shape, repeats)
    with threadpool_limits(threads):
        memory = extra_memory(lambda: model.fit(X, Y)) / Y.nbytes
    return cells(n, d0, shape, times, holrr / ridge, memory)


def cells(
    n: int, d0: int, shape: tuple[int, ...], times: list[float], one_thread: float, memory: float
) -> list[str]:
    """Return the cells of a row.

    The arguments are the size, the seconds of the three methods, the ratio to Ridge on one thread,
    and the share of memory.
    """
    product, ridge, holrr = times
    found = [str(n), str(d0), "x".join(map(str, shape)), *(f"{t * 1e3:.2f}" for t in times)]
    ratios = (holrr / ridge, one_thread, holrr / product)
    return [*found, *(f"{ratio:.2f}" for ratio in ratios), f"{memory:.3f}"]


def short_table(rows: list[list[str]], threads: int) -> str:
    """Return the sizes and the ratios to Ridge of each row."""
    head = ["samples", "inputs", "outputs"]
    head += [f"time / `Ridge`, {threads} threads", "time / `Ridge`, one thread"]
    first = HEAD.index("/ Ridge")
    return table(head, ([*row[:3], *row[first : first + 2]] for row in rows), "rrcrr")


# ---------------------------------------------------------------- rows of benchmarks/table.py


def predict_times(repeats: int) -> list[float]:
    """Return the seconds of a hundred predictions of one row by HOLRR and by Ridge."""
    X, Y, model = data(1000, 20, (10, 10))
    models = [model.fit(X, Y), Ridge().fit(X, Y.reshape(1000, -1))]
    many = [lambda m=m: [m.predict(X[:1]) for _ in range(100)] for m in models]
    return [t / 100 for t in medians(many, repeats)]


def score_times(n: int, d0: int, shape: tuple[int, ...], repeats: int) -> list[float]:
    """Return the seconds of `score`, and of `r2_score` of the predictions."""
    X, Y, model = data(n, d0, shape)
    model.fit(X[:1000], Y[:1000])

    def peer() -> float:
        flat = (A.reshape(n, -1) for A in (Y, model.predict(X)))
        return r2_score(*flat, multioutput="variance_weighted")

    return medians([lambda: model.score(X, Y), peer], repeats)


def rows(quick: bool = False, repeats: int = 15) -> Iterator[Row]:
    few = 100 if quick else 1
    for pause, when in ((PAUSE, "0.05 s after Ridge"), (REST, "0.2 s after Ridge")):
        for (n, d0, shape), asked in zip(LARGE, (2.0, 2.0, 2.3), strict=True):
            product, _, ours = fit_times(n // few, d0, shape, repeats, pause)
            yield f"HOLRR.fit / X'Y, {when}, {label(n // few, d0, shape)}", ours, product, asked
    yield "predict of one row / Ridge, 20 -> 10x10", *predict_times(repeats), 1.0
    size = (100_000 // few, 20, (20, 40))
    name = f"score / (predict + r2_score), {label(*size)}"
    yield name, *score_times(*size, max(1, repeats // 5)), 0.8


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a hundredth of the samples, once")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    args = parse_options(parser, arguments)
    repeats = 1 if args.quick else args.repeats
    sizes = [(n // 100 if args.quick else n, d0, shape) for n, d0, shape in LARGE]
    rows = []

    def measured() -> Iterator[list[str]]:
        for size in (*sizes, *PAPER):
            # Small fits are repeated more often, since their times vary more.
            times = 7 * repeats if size in PAPER else repeats
            rows.append(measure(*size, times, args.threads))
            yield rows[-1]

    text = printed(table_lines(HEAD, measured(), "rrcrrrrrrr"))
    if args.write:
        write_section("linear fit", text)
        write_section("linear fit, short", short_table(rows, args.threads))


if __name__ == "__main__":
    main()
