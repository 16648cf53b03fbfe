"""Time and memory of fits to sparse inputs.

    python benchmarks/sparse_inputs.py [--quick] [--write]

The script prints the tables of docs/sparse.md, and writes the first two there with --write. Every
measurement runs in a separate process, whose peak memory comes from `getrusage`. The first table
has fits to 100,000 samples and 10,000 features of density 1e-3. In its last row, the same process
predicts and scores. A dense X would take 8 GB. The second table compares sparse and dense fits, and
Ridge of scikit-learn, on inputs that fit into memory in both formats. The last table has the
largest differences of sparse and dense fits.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse

from pages import parse_options, printed, table_lines, write_section

SHAPE = (5, 4)
MIB = 2**20


def problem(n: int, d: int, density: float) -> tuple[Any, np.ndarray]:
    """Return sparse inputs, and outputs of low rank with noise."""
    rng = np.random.default_rng(0)
    counts = rng.binomial(d, density, size=n)
    columns = rng.integers(d, size=counts.sum())
    rows = np.repeat(np.arange(n), counts)
    values = 1.0 + rng.exponential(size=counts.sum())
    X = scipy.sparse.csr_array((values, (rows, columns)), shape=(n, d))
    U = rng.normal(size=(d, 3)) / np.sqrt(d * density)
    W = rng.normal(size=(3, np.prod(SHAPE)))
    Y = X @ U @ W + rng.normal(size=(n, np.prod(SHAPE)))
    return X, Y.reshape(n, *SHAPE)


def peak() -> float:
    """Return the peak memory of this process in MiB; Linux reports KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(task: dict[str, Any]) -> dict[str, float]:
    """Fit in this process."""
    from sklearn.linear_model import Ridge

    from holrr import HOLRR, HOLRRCV, LRR, RLS

    models = {
        "RLS": RLS(10.0),
        "LRR": LRR(3, 10.0),
        "HOLRR": HOLRR(3, 10.0),
        "HOLRRCV": HOLRRCV([1.0, 10.0, 100.0], cv=3),
        "Ridge": Ridge(10.0),
    }
    X, Y = problem(task["n"], task["d"], task["density"])
    if task["dense"]:
        X = X.toarray()
    if task["model"] == "Ridge":
        Y = Y.reshape(len(Y), -1)
    before, start = peak(), time.perf_counter()
    model = models[task["model"]].fit(X, Y)
    seconds = time.perf_counter() - start
    found = {"seconds": seconds, "before": before, "peak": peak()}
    if task.get("predict"):
        start = time.perf_counter()
        model.predict(X)
        found["predict"] = time.perf_counter() - start
        start = time.perf_counter()
        model.predict(X[:1000], return_std=True)
        found["std"] = time.perf_counter() - start
        found["score"], found["peak"] = model.score(X, Y), peak()
    return found


def run(**task: Any) -> dict[str, float]:
    """Measure in a separate process."""
    task = {"dense": False, **task}
    command = [sys.executable, __file__, "--task", json.dumps(task)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(answer.stdout.splitlines()[-1])


def rows_of_memory(n: int, d: int, density: float) -> Iterator[list[str]]:
    """Yield the seconds and the peak memory of fits to sparse inputs."""
    for name in ("RLS", "LRR", "HOLRR"):
        found = run(model=name, n=n, d=d, density=density)
        yield [f"`{name}`", f"{found['seconds']:.1f}", f"{found['peak']:.0f}"]
    found = run(model="HOLRR", n=n, d=d, density=density, predict=True)
    steps = (
        f"`HOLRR`: `predict` in {found['predict']:.2f} s, standard deviations of 1,000 samples in "
        f"{found['std']:.1f} s, `score`"
    )
    yield [steps, "", f"{found['peak']:.0f}"]


def rows_of_times(sizes: list[tuple[int, int, float]]) -> Iterator[list[str]]:
    """Yield the seconds and the peak memory of fits to sparse and to dense inputs."""
    for n, d, density in sizes:
        for name in ("HOLRR", "HOLRRCV", "Ridge"):
            pair = [
                run(model=name, n=n, d=d, density=density, dense=dense) for dense in (False, True)
            ]
            seconds = [f"{found['seconds']:.2f}" for found in pair]
            memory = [f"{found['peak']:.0f}" for found in pair]
            yield [str(n), str(d), f"{density:g}", f"`{name}`", *seconds, *memory]


def table_of_differences() -> None:
    """Of predictions and standard deviations, relative to the largest."""
    from holrr import HOLRR, HOLRRCV, LRR, RLS

    print("| samples | features | density | model | predictions | standard deviations |")
    print("|---|---|---|---|---|---|")
    models = RLS(), LRR(3), HOLRR(3), HOLRRCV([1.0, 10.0, 100.0], cv=3)
    for n, d, density in ((2000, 200, 0.01), (2000, 200, 0.3), (200, 500, 0.02)):
        X, Y = problem(n, d, density)
        for model in models:
            pairs = [model.fit(A, Y).predict(A, return_std=True) for A in (X, X.toarray())]
            off = [np.abs(a - b).max() / np.abs(b).max() for a, b in zip(*pairs, strict=True)]
            name = type(model).__name__
            print(f"| {n} | {d} | {density:g} | `{name}` | {off[0]:.0e} | {off[1]:.0e} |")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smaller problems")
    parser.add_argument("--task", help="what to measure in this process")
    options = parse_options(parser, arguments)
    if options.task:
        print(json.dumps(measure(json.loads(options.task))))
        return
    size, sizes = (100_000, 10_000, 1e-3), [(50_000, 1_000, 1e-3), (50_000, 1_000, 5e-2)]
    sizes += [(1_000, 10_000, 1e-2)]
    if options.quick:
        size, sizes = (10_000, 1_000, 1e-2), [(10_000, 500, 1e-2)]
    n, d, density = size
    print(f"{n} samples, {d} features, density {density:g}, outputs of shape {SHAPE}\n")
    memory = printed(table_lines(["", "seconds", "peak memory, MiB"], rows_of_memory(*size)))
    print()
    head = ["samples", "features", "density", "model", "sparse, s", "dense, s"]
    head += ["sparse, MiB", "dense, MiB"]
    times = printed(table_lines(head, rows_of_times(sizes), "rrrlrrrr"))
    print()
    table_of_differences()
    if options.write:
        write_section("sparse memory", memory)
        write_section("sparse and dense", times)


if __name__ == "__main__":
    main()
