"""Time and memory of fits to sparse inputs.

    python benchmarks/sparse_inputs.py [--quick]

The script prints the tables of docs/sparse.md. Every measurement runs in a separate process, whose
peak memory comes from `getrusage`. The first table has fits to 100,000 samples and 10,000 features
of density 1e-3. In its last row, the same process predicts and scores. A dense X would take 8 GB.
The second table compares sparse and dense fits, and Ridge of scikit-learn, on inputs that fit into
memory in both formats. The last table has the largest differences of sparse and dense fits.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np
import scipy.sparse

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


def table_of_memory(n: int, d: int, density: float) -> None:
    print(f"{n} samples, {d} features, density {density:g}, outputs of shape {SHAPE}")
    print("| | seconds | peak, MiB |\n|---|---|---|")
    for name in ("RLS", "LRR", "HOLRR"):
        found = run(model=name, n=n, d=d, density=density)
        print(f"| `{name}` | {found['seconds']:.1f} | {found['peak']:.0f} |", flush=True)
    found = run(model="HOLRR", n=n, d=d, density=density, predict=True)
    print(
        f"| `HOLRR`, `predict` in {found['predict']:.2f} s, standard deviations of 1,000 samples "
        f"in {found['std']:.1f} s, `score` {found['score']:.2f} | | {found['peak']:.0f} |"
    )


def table_of_times(sizes: list[tuple[int, int, float]]) -> None:
    print(
        "| samples | features | density | model | sparse, s | dense, s | sparse, MiB | dense, MiB |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for n, d, density in sizes:
        for name in ("HOLRR", "HOLRRCV", "Ridge"):
            sparse, dense = (
                run(model=name, n=n, d=d, density=density, dense=dense) for dense in (False, True)
            )
            print(
                f"| {n} | {d} | {density:g} | `{name}` | {sparse['seconds']:.2f} | "
                f"{dense['seconds']:.2f} | {sparse['peak']:.0f} | {dense['peak']:.0f} |",
                flush=True,
            )


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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smaller problems")
    parser.add_argument("--task", help="what to measure in this process")
    options = parser.parse_args()
    if options.task:
        print(json.dumps(measure(json.loads(options.task))))
    elif options.quick:
        table_of_memory(10_000, 1_000, 1e-2)
        table_of_times([(10_000, 500, 1e-2)])
        table_of_differences()
    else:
        table_of_memory(100_000, 10_000, 1e-3)
        print()
        table_of_times([(50_000, 1_000, 1e-3), (50_000, 1_000, 5e-2), (1_000, 10_000, 1e-2)])
        print()
        table_of_differences()
