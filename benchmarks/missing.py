"""Time of fits with missing outputs, as a ratio to the fit with complete outputs.

    python benchmarks/missing.py [--quick] [--threads 2] [--write]

HOLRR at rank 5, (2000, 50, 20x20x20), with 1 and 30 percent of the entries missing at random, and
with a tenth of the outputs missing for a third of the samples. The fits take turns and medians are
compared. The script measures the time on two threads, and the processor time on one thread while
another program is busy on every core. It takes about a minute. With --write it writes the table of
docs/developer_benchmarks.md.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from busy import busy_cores
from holrr import HOLRR
from holrr.datasets import make_tensor_regression
from pages import parse_options, printed, table_lines, write_section

HEAD = ["missing", "rounds", "time / complete, two threads", "one thread, busy"]


def outputs(Y: np.ndarray, seed: int = 0) -> dict[str, np.ndarray]:
    """Return complete outputs, and outputs with missing values."""
    rng = np.random.default_rng(seed)
    draws = rng.random(Y.shape, dtype=np.float32)
    sensors = rng.random(Y.shape[1:]) < 0.1
    blocked = Y.copy()
    blocked[: len(Y) // 3, sensors] = np.nan
    random = {
        f"{100 * share:.0f} percent at random": np.where(draws < share, np.nan, Y)
        for share in (0.01, 0.3)
    }
    return {"complete": Y, **random, "a tenth of the outputs, for a third of the samples": blocked}


def measure(
    X: np.ndarray, cases: dict[str, np.ndarray], clock: Callable[[], float], repeats: int
) -> tuple[dict[str, float], dict[str, int]]:
    """Return the median time of each fit by a clock, and its number of rounds."""
    HOLRR(rank=5).fit(X, cases["complete"])
    times: dict[str, list[float]] = {name: [] for name in cases}
    rounds = {}
    for _ in range(repeats):
        for name, holes in cases.items():
            start = clock()
            missing = "raise" if name == "complete" else "ignore"
            rounds[name] = HOLRR(rank=5, missing=missing).fit(X, holes).n_iter_
            times[name].append(clock() - start)
    return {name: statistics.median(values) for name, values in times.items()}, rounds


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small problem, once")
    parser.add_argument("--threads", type=int, default=2)
    options = parse_options(parser, arguments)
    n, d0, shape, repeats = (200, 10, (8, 8, 8), 1) if options.quick else (2000, 50, (20,) * 3, 5)
    X, Y = make_tensor_regression(
        n, n_features=d0, output_shape=shape, rank=(5,) * 4, snr=1.0, random_state=0
    )
    cases = outputs(Y)
    with threadpool_limits(options.threads):
        free, rounds = measure(X, cases, time.perf_counter, repeats)
    with threadpool_limits(1), busy_cores(1 if options.quick else None):
        busy, _ = measure(X, cases, time.process_time, repeats)
    print(f"HOLRR(rank=5), {n} samples, {d0} inputs, outputs {'x'.join(map(str, shape))}")
    print(f"complete: {free['complete']:.3f} s\n")
    rows = (
        [name, rounds[name], *(f"{found[name] / found['complete']:.1f}" for found in (free, busy))]
        for name in cases
        if name != "complete"
    )
    text = printed(table_lines(HEAD, rows))
    if options.write:
        write_section("missing outputs", text)


if __name__ == "__main__":
    main()
