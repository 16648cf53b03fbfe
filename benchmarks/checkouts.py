"""Time and peak memory of two checkouts of the library side by side.

    python benchmarks/checkouts.py --old FOLDER [--new FOLDER] [--only TEXT ...] [--turns 6]
                                   [--threads 1 2] [--dask 8] [--cpu] [--quick] [--list]

Each measurement runs in a fresh process, which imports holrr from the `src` folder of a checkout.
The two checkouts take turns, and every turn swaps their order. A process makes the data, fits the
model to small data of the same kind, so that modules are imported and threads exist, and then times
one fit; small fits are repeated, and the median counts. Seconds are medians of the turns. Memory is
the median of the largest resident set of the process (`getrusage`), which includes Python, all
libraries and the data. Ratios are medians over the turns of new / old within a turn. The last rows
have their geometric means for each number of threads.

`--new` is this checkout by default; `--only` selects the rows whose name contains one of the texts;
`--dask` is the size of the lazy outputs in gigabytes. `--cpu` counts the seconds of the processor
of all threads, which vary less on a busy machine. `--quick` reduces all sizes. All rows
take about an hour on two idle cores.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
Size = tuple[int, int, tuple[int, ...]]


class Case(NamedTuple):
    """Row of the table.

    Parameters
    ----------
    size : tuple
        Numbers of samples and inputs, and shape of the outputs.
    model : callable
        Function from the shape of the outputs to an estimator.
    change : callable
        Function from inputs and outputs to those of the fit.
    """

    size: Size
    model: Callable[[tuple[int, ...]], Any]
    change: Callable[[np.ndarray, np.ndarray], tuple[Any, Any]] = lambda X, Y: (X, Y)


def data(n: int, d0: int, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs, and outputs of rank 4 with noise, without large temporary arrays."""
    rng, D = np.random.default_rng(0), math.prod(shape)
    X = rng.standard_normal((n, d0))
    scores = X @ rng.standard_normal((d0, 4)) / math.sqrt(d0)
    factors = np.ones((4, 1))
    for d in shape:
        factors = np.einsum("ri,rj->rij", factors, rng.standard_normal((4, d))).reshape(4, -1)
    Y = np.empty((n, D))
    for row, score in zip(Y, scores, strict=True):
        np.matmul(score, factors, out=row)
        row += rng.standard_normal(D)
    return X, Y.reshape(n, *shape)


def single(shape: tuple[int, ...]) -> Any:
    from holrr import HOLRR

    return HOLRR(rank=(4, *(min(4, d) for d in shape)))


def search(**more: Any) -> Callable[[tuple[int, ...]], Any]:
    def make(shape: tuple[int, ...]) -> Any:
        from holrr import HOLRRCV

        return HOLRRCV(**more)

    return make


def kernel(shape: tuple[int, ...]) -> Any:
    from holrr import KernelHOLRR

    return KernelHOLRR(rank=(4, *(min(4, d) for d in shape)), kernel="rbf", gamma=0.05)


def kernel_search(shape: tuple[int, ...]) -> Any:
    from holrr import KernelHOLRRCV

    return KernelHOLRRCV(np.logspace(-3, 3, 7), cv=5, kernel="rbf", gammas=[0.05])


def single_missing(shape: tuple[int, ...]) -> Any:
    return single(shape).set_params(missing="ignore")


def lazily(gigabytes: float) -> Callable[[np.ndarray, np.ndarray], tuple[Any, Any]]:
    """Return a function to Dask arrays of this size, in chunks with the outputs of the samples."""

    def change(X: np.ndarray, Y: np.ndarray) -> tuple[Any, Any]:
        import dask
        import dask.array as da

        dask.config.set(scheduler="threads", num_workers=int(os.environ["OMP_NUM_THREADS"]))
        n_chunks = max(2, round(1e9 * gigabytes / Y.nbytes))

        def part(A: np.ndarray) -> Any:
            chunks = [
                # Different numbers in each chunk, so that they are computed when they are needed.
                da.from_delayed(dask.delayed(np.multiply)(A, 1.0 + 1e-3 * k), A.shape, float)
                for k in range(n_chunks)
            ]
            return da.concatenate(chunks)

        return part(X), part(Y)

    return change


def with_land(X: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return outputs of which 30 percent of the cells, in patches, are never observed."""
    height, width = Y.shape[1:]
    i, j = np.ogrid[:height, :width]
    wave = np.sin(2 * np.pi * i / height * 2) + np.cos(2 * np.pi * j / width * 3)
    Y[:, wave > np.quantile(wave, 0.7)] = np.nan
    return X, Y


def with_missing(X: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return outputs of which 20 percent are missing at random."""
    Y[np.random.default_rng(1).random(Y.shape) < 0.2] = np.nan
    return X, Y


def cases(gigabytes: float) -> dict[str, Case]:
    """Return the rows of the table by name."""
    sizes: list[Size] = [
        (40_000, 100, (20, 10)),
        (300, 20_000, (20, 10)),
        (200, 80, (20_000,)),
        (300, 40, (40, 40, 10)),
        (100, 20, (1_000_000,)),
        (100, 10, (10, 10, 10)),
        (60, 4, (24, 36)),
    ]
    found = {}
    for size in sizes:
        n, d0, shape = size
        where = f"{n} x {d0} -> {' x '.join(map(str, shape))}"
        found[f"fit, {where}"] = Case(size, single)
        found[f"search, {where}"] = Case(size, search())
    size = (5000, 20, (10, 10))
    found["kernel fit, 5000 x 20 -> 10 x 10"] = Case(size, kernel)
    found["kernel search, 5000 x 20 -> 10 x 10"] = Case(size, kernel_search)
    size, lazy = (5000, 50, (20, 20, 10)), lazily(gigabytes)
    where = f"{gigabytes:g} GB, 50 -> 20 x 20 x 10"
    found[f"Dask fit, {where}"] = Case(size, single, lazy)
    found[f"Dask search, {where}"] = Case(size, search(cv=5, max_rank=8), lazy)
    size = (240, 30, (36, 72))
    found["map with land, fit, 240 x 30 -> 36 x 72"] = Case(size, single_missing, with_land)
    model = search(missing="ignore")
    found["map with land, search, 240 x 30 -> 36 x 72"] = Case(size, model, with_land)
    size = (300, 40, (20, 10))
    found["20 % missing, fit, 300 x 40 -> 20 x 10"] = Case(size, single_missing, with_missing)
    found["20 % missing, search, 300 x 40 -> 20 x 10"] = Case(size, model, with_missing)
    return found


def measure_here(case: Case, quick: bool, cpu: bool) -> tuple[float, int]:
    """Return the median seconds of a fit, and the largest resident set of this process in bytes."""
    warnings.simplefilter("ignore")
    clock = time.process_time if cpu else time.perf_counter
    n, d0, shape = case.size
    if quick:
        n, d0, shape = min(n, 200), min(d0, 50), tuple(min(d, 60) for d in shape)
    small = case.change(*data(40, min(d0, 6), tuple(min(d, 5) for d in shape)))
    case.model(shape_of(small)).fit(*small)
    X, Y = case.change(*data(n, d0, shape))
    times: list[float] = []
    while len(times) < 1 or (sum(times) < 0.5 and len(times) < 15):
        model = case.model(shape)
        start = clock()
        model.fit(X, Y)
        times.append(clock() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return statistics.median(times), peak


def shape_of(pair: tuple[Any, Any]) -> tuple[int, ...]:
    return tuple(pair[1].shape[1:])


def measure(name: str, checkout: Path, threads: int, options: argparse.Namespace) -> list[float]:
    """Return seconds and bytes of a row, measured in a fresh process."""
    source = str(checkout.resolve() / "src")
    limits = ("OMP", "OPENBLAS", "MKL", "VECLIB_MAXIMUM")
    env = {**os.environ, **{f"{key}_NUM_THREADS": str(threads) for key in limits}}
    env["PYTHONPATH"] = source
    command = [sys.executable, __file__, "--child", name, "--dask", str(options.dask)]
    command += ["--quick"] * options.quick + ["--cpu"] * options.cpu
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{name} failed with {checkout}:\n{done.stderr[-2000:]}")
    seconds, peak, imported = json.loads(done.stdout.splitlines()[-1])
    if not imported.startswith(source):
        sys.exit(f"holrr was imported from {imported}, not from {source}")
    return [seconds, peak]


Turns = dict[str, list[list[float]]]


def in_turns(name: str, threads: int, options: argparse.Namespace) -> Turns:
    """Return the measurements of both checkouts, which take turns; every turn swaps the order."""
    found: Turns = {"old": [], "new": []}
    for turn in range(options.turns):
        for side in ("old", "new") if turn % 2 == 0 else ("new", "old"):
            found[side].append(measure(name, getattr(options, side), threads, options))
    return found


def rows(names: list[str], options: argparse.Namespace) -> Iterator[list[str]]:
    """Yield the rows of the table, and a row of geometric means for each number of threads."""
    for threads in options.threads:
        ratios = []
        for name in names:
            turns = in_turns(name, threads, options)
            old, new = (np.median(turns[side], axis=0) for side in ("old", "new"))
            # The load of the machine changes less within a turn than between turns.
            ratios.append(np.median(np.divide(turns["new"], turns["old"]), axis=0))
            times = [f"{old[0]:.4g}", f"{new[0]:.4g}", f"{ratios[-1][0]:.2f}"]
            memory = [f"{old[1] / 1e6:.0f}", f"{new[1] / 1e6:.0f}", f"{ratios[-1][1]:.2f}"]
            yield [name, str(threads), *times, *memory]
        means = np.exp(np.log(ratios).mean(axis=0))
        empty = ["", ""]
        yield ["geometric mean", str(threads), *empty, f"{means[0]:.3f}", *empty, f"{means[1]:.3f}"]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--old", type=Path, help="checkout to compare with")
    parser.add_argument("--new", type=Path, default=ROOT, help="checkout to measure")
    parser.add_argument("--only", nargs="+", default=[""], help="texts of names of rows")
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--dask", type=float, default=8.0, help="gigabytes of lazy outputs")
    parser.add_argument("--cpu", action="store_true", help="count CPU seconds")
    parser.add_argument("--quick", action="store_true", help="small sizes, one turn")
    parser.add_argument("--list", action="store_true", help="print the names of the rows")
    parser.add_argument("--child", help="measure one row in this process")
    options = parser.parse_args(arguments)
    if options.quick:
        options.turns, options.dask = 1, min(options.dask, 0.01)
    found = cases(options.dask)
    if options.child:
        import holrr

        print(
            json.dumps(
                [*measure_here(found[options.child], options.quick, options.cpu), holrr.__file__]
            )
        )
        return
    names = [name for name in found if any(text in name for text in options.only)]
    if options.list:
        print("\n".join(names))
        return
    for checkout in (options.old, options.new):
        if checkout is None or not (checkout / "src" / "holrr").is_dir():
            parser.error(f"--old and --new must be checkouts of holrr; got {checkout}")
    from common import show

    head = ["", "threads", "old, s", "new, s", "new / old", "old, MB", "new, MB", "new / old"]
    show(f"New: {options.new}; old: {options.old}", head, rows(names, options))


if __name__ == "__main__":
    main()
