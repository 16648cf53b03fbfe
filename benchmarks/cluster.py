"""A fit, a search and predictions on a Dask cluster whose workers have little memory.

    python benchmarks/cluster.py [--size 10] [--workers 2] [--memory 2] [--folder FOLDER] [--quick]
                                 [--write]

The cluster generates Y of the given size in gigabytes as a Zarr array in the folder (by default the
folder of temporary files), and writes the predictions to another array. Both are deleted at the
end. Workers are processes with one thread and limited memory in gigabytes. A worker that exceeds
its memory is killed, and the run fails. For each step, the script prints the time, the peak memory
of every worker (its largest resident set during the step), the number of computations, the bytes of
the graphs that the client sent, the bytes of the results, and the bytes that workers fetched from
each other. The slopes at the end extrapolate the numbers to other clusters. With --write the script
writes the steps into docs/streaming.md and the slopes into docs/scaling.md.
"""

from __future__ import annotations

import argparse
import math
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cloudpickle
import dask
import dask.array as da
import numpy as np
import zarr
from distributed import Client, LocalCluster

from holrr import HOLRR, HOLRRCV, Moments
from pages import parse_options, write_section
from pages import table as page_table

N_FEATURES, OUTPUTS, RANK = 50, (25, 10, 10), (5, 5, 5, 5)
ROW = 8 * math.prod(OUTPUTS)
CHUNK = 5000  # samples: 100 MB of outputs
MISSING = np.zeros(OUTPUTS, dtype=bool)
MISSING[3], MISSING[7, 2:5, 4] = True, True  # a whole slice, and some single cells
# Names of the steps in the table of docs/streaming.md.
STEPS = {
    "generate into Zarr": "generate into Zarr",
    "fit HOLRR": "`HOLRR.fit`",
    "fit HOLRRCV, 5 folds": "`HOLRRCV.fit`, 5 folds",
    "fit HOLRR, fixed mask and weights": "`HOLRR.fit`, fixed mask and weights",
    "score": "`score`",
    "predict, lazily": "`predict`",
    "predictions into Zarr": "predictions into Zarr",
}
AREA = [np.cos(np.linspace(-1.4, 1.4, OUTPUTS[0])), None, None]


# ---------------------------------------------------------------- the data


def coefficients() -> np.ndarray:
    rng = np.random.default_rng(0)
    factors = [rng.normal(size=(d, R)) for d, R in zip((N_FEATURES, *OUTPUTS), RANK, strict=True)]
    return np.einsum("abcd,ia,jb,kc,ld->ijkl", rng.normal(size=RANK), *factors, optimize=True)


def input_chunk(block_info: Any = None) -> np.ndarray:
    (start, stop), _ = block_info[None]["array-location"]
    return np.random.default_rng([1, start]).normal(size=(stop - start, N_FEATURES))


def output_chunk(X: np.ndarray, W: np.ndarray, block_info: Any = None) -> np.ndarray:
    start = block_info[0]["array-location"][0][0]
    Y = np.random.default_rng([2, start]).normal(size=(len(X), *OUTPUTS))
    Y += np.tensordot(X, W, 1)
    return Y


def generate(n: int, chunk: int) -> tuple[da.Array, da.Array]:
    """Return lazy inputs, and lazy outputs of low rank with noise."""
    rows = da.core.normalize_chunks((chunk,), shape=(n,))[0]
    X = da.map_blocks(
        input_chunk,
        chunks=(rows, (N_FEATURES,)),
        dtype=float,
        meta=np.empty((0, 0)),
    )
    Y = da.map_blocks(
        output_chunk,
        X,
        dask.delayed(coefficients()),
        chunks=(rows, *((d,) for d in OUTPUTS)),
        drop_axis=1,
        new_axis=[1, 2, 3],
        dtype=float,
        meta=np.empty((0,) * 4),
    )
    return X, Y


# ---------------------------------------------------------------- measurements


@dataclass
class Counts:
    """Traffic between client, scheduler and workers during a step."""

    seconds: float = 0.0
    computes: int = 0
    tasks: int = 0
    graph_bytes: int = 0
    result_bytes: int = 0
    moved: int = 0  # bytes that workers fetched from each other
    peaks: list[int] = field(default_factory=list)  # of each worker


def reset_peak() -> None:
    """Reset the largest resident set of this process (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")


def peak() -> int:
    """Return the largest resident set of this process since the reset, in bytes."""
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return 1024 * int(line.split()[1])


def fetched(dask_worker: Any) -> int:
    """Return the bytes that this worker has fetched from others."""
    return sum(entry["total"] for entry in dask_worker.transfer_incoming_log)


@contextmanager
def measured(client: Client) -> Iterator[Counts]:
    """Count the traffic of the cluster on which Dask computes within this context."""
    counts = Counts()

    def get(graph: Any, keys: Any, **options: Any) -> Any:
        began = time.perf_counter()
        counts.computes += 1
        # Older versions of Dask pass the tasks, newer versions pass an expression.
        tasks = graph.__dask_graph__() if hasattr(graph, "__dask_graph__") else graph
        counts.tasks += len(dict(tasks))
        counts.graph_bytes += len(cloudpickle.dumps(graph))
        counts.seconds -= time.perf_counter() - began  # which is that of counting
        found = client.get(graph, keys, **options)
        counts.result_bytes += len(cloudpickle.dumps(found))
        return found

    client.run(reset_peak)
    before, start = sum(client.run(fetched).values()), time.perf_counter()
    with dask.config.set(scheduler=get):
        yield counts
    counts.seconds += time.perf_counter() - start
    counts.moved = sum(client.run(fetched).values()) - before
    counts.peaks = list(client.run(peak).values())


def report(name: str, counts: Counts) -> None:
    memory = " ".join(f"{bytes_ / 1e9:.2f}" for bytes_ in counts.peaks)
    print(
        f"{name:34s} {counts.seconds:6.1f} s  {memory} GB  {counts.computes} computes, "
        f"{counts.tasks:5d} tasks, graph {counts.graph_bytes / 1e6:6.2f} MB, "
        f"result {counts.result_bytes / 1e6:6.2f} MB, moved {counts.moved / 1e6:8.2f} MB",
        flush=True,
    )


def step(client: Client, name: str, call: Callable[[], Any]) -> tuple[Any, Counts]:
    with measured(client) as counts:
        found = call()
    report(name, counts)
    return found, counts


# ---------------------------------------------------------------- the run


def run(client: Client, folder: Path, n: int, chunk: int) -> dict[str, str]:
    """Run and print all steps, and return the tables of the pages by the name of their section."""
    # With this many samples, the smallest penalty is the best.
    warnings.filterwarnings("ignore", message="The best penalty")
    done: dict[str, Counts] = {}

    def step_of(name: str, call: Callable[[], Any]) -> Any:
        found, done[name] = step(client, name, call)
        return found

    stored_X, stored_Y = str(folder / "X.zarr"), str(folder / "Y.zarr")
    lazy_X, lazy_Y = generate(n, chunk)

    def store() -> None:
        plain = {"compressors": None}
        da.to_zarr(lazy_X, stored_X, **plain)
        da.to_zarr(lazy_Y, stored_Y, **plain)

    step_of("generate into Zarr", store)
    X, Y = da.from_zarr(stored_X), da.from_zarr(stored_Y)
    model = step_of("fit HOLRR", lambda: HOLRR(rank=RANK).fit(X, Y))
    search = HOLRRCV(alphas=[0.1, 10.0, 1000.0], cv=5, max_rank=6)
    step_of("fit HOLRRCV, 5 folds", lambda: search.fit(X, Y))
    masked = da.where(MISSING, np.nan, Y)
    weighted = HOLRR(rank=RANK, missing="ignore", output_weight=AREA)
    step_of("fit HOLRR, fixed mask and weights", lambda: weighted.fit(X, masked))
    step_of("score", lambda: model.score(X, Y))

    prediction = step_of("predict, lazily", lambda: model.predict(X))
    assert done["predict, lazily"].computes == 0
    path = str(folder / "predicted.zarr")
    step_of("predictions into Zarr", lambda: da.to_zarr(prediction, path, compressors=None))
    check(X, Y, path, model, weighted)
    growth = slopes(client, (stored_X, stored_Y), n, done["fit HOLRR"], chunk)
    return {"cluster": steps_table(done), "slopes on a cluster": growth}


def steps_table(done: dict[str, Counts]) -> str:
    """Return the table of docs/streaming.md; a step that computes nothing moves nothing."""
    head = ["step", "seconds", "peak memory of the workers", "computations", "graph sent"]
    rows = []
    for name, counts in done.items():
        memory = ", ".join(f"{bytes_ / 1e9:.2f}" for bytes_ in counts.peaks)
        seconds = f"{counts.seconds:.0f}" if counts.seconds >= 10 else f"{counts.seconds:.1f}"
        cells = [STEPS[name], seconds, f"{memory} GB", str(counts.computes)]
        if counts.computes:
            result = "" if "Zarr" in name else megabytes(counts.result_bytes)
            cells += [megabytes(counts.graph_bytes), result, f"{counts.moved / 1e6:.0f} MB"]
        rows.append([*cells, "", "", ""][:7])
    return page_table([*head, "result", "moved"], rows, "lrlrrrr")


def megabytes(n_bytes: int) -> str:
    value = n_bytes / 1e6
    return f"{value:.1f} MB" if value >= 1 else f"{value:.2f} MB"


def check(X: da.Array, Y: da.Array, path: str, model: Any, weighted: Any) -> None:
    """Check the results of the cluster."""
    some = slice(0, 200)
    x, y = X[some].compute(scheduler="sync"), Y[some].compute(scheduler="sync")
    stored = da.from_zarr(path)[some].compute(scheduler="sync")
    np.testing.assert_allclose(stored, model.predict(x), rtol=1e-9, atol=1e-9)
    truth = np.tensordot(x, coefficients(), 1)
    off = [np.sqrt(np.nanmean((m.predict(x) - truth) ** 2)) for m in (model, weighted)]
    noise = np.sqrt(np.mean((y - truth) ** 2))
    print(f"error of the signal: {off[0]:.4f}, with mask and weights {off[1]:.4f}; "
          f"noise {noise:.3f}")  # fmt: skip
    # The error consists of the noise of the samples and of shrinkage by the penalty, which is one.
    assert max(off) < 3 * noise / np.sqrt(len(X)) + 2 * truth.std() / len(X)
    assert np.array_equal(np.isnan(weighted.predict(x)[0]), MISSING)


def rows_of(path: str, block_info: Any = None) -> np.ndarray:
    """Return a chunk of samples of a Zarr array."""
    start, stop = block_info[None]["array-location"][0]
    return zarr.open_array(path, mode="r")[start:stop]


def first_chunks(path: str, k: int, chunk: int) -> da.Array:
    """Return the first chunks of a Zarr array as a Dask array, as `from_zarr` does."""
    modes = zarr.open_array(path, mode="r").shape[1:]
    chunks = ((chunk,) * k, *((d,) for d in modes))
    meta = np.empty((0,) * len(chunks))
    return da.map_blocks(rows_of, path=path, chunks=chunks, dtype=float, meta=meta)


def slopes(client: Client, paths: tuple[str, str], n: int, whole: Counts, chunk: int) -> str:
    """Print the growth of the counts of a fit with the number of chunks, and return a table."""
    rows, n_chunks = [], -(-n // chunk)
    for share in (8, 4, 2):
        k = max(2, n_chunks // share)
        X, Y = (first_chunks(path, k, chunk) for path in paths)
        call = lambda X=X, Y=Y: HOLRR(rank=RANK).fit(X, Y)  # noqa: E731
        rows.append((k, step(client, f"fit HOLRR, {k} chunks", call)[1]))
    rows.append((n_chunks, whole))
    k = np.array([k for k, _ in rows], dtype=float)
    size = moment_bytes(N_FEATURES, math.prod(OUTPUTS))
    print(f"a set of moments takes {size / 1e6:.3f} MB, a chunk of the outputs "
          f"{chunk * ROW / 1e6:.1f} MB")  # fmt: skip
    of_chunk = {}
    for name, unit in (("seconds", 1.0), ("tasks", 1.0), ("graph_bytes", 1e3), ("moved", 1e6)):
        values = np.array([getattr(counts, name) for _, counts in rows]) / unit
        slope, constant = np.polyfit(k, values, 1)
        of_chunk[name] = slope
        print(f"  {name:12s} {slope:10.4f} a chunk, and {constant:9.3f}  (units of {unit:g})")
    moved = np.polyfit(k, [counts.moved / size for _, counts in rows], 1)[0]
    print(f"  sets of moments moved between workers, a chunk: {moved:.3f}; no more than "
          f"{edges(n_chunks) / n_chunks:.3f} on any cluster")  # fmt: skip
    merge, empty = 1e3 * merge_seconds(), 1e3 * task_seconds(client)
    print(f"  a merge of four sets of moments takes {merge:.1f} ms")
    print(f"  a task that does nothing takes {empty:.2f} ms")
    busy = of_chunk["seconds"] * len(whole.peaks)  # workers have one thread
    most = edges(n_chunks) / n_chunks
    rows = [
        [
            "time of a thread",
            f"{busy:.2f} s",
            f"{chunk * ROW / 1e6:.0f} MB of `y` are read, checked and reduced",
        ],
        [
            "tasks",
            f"{of_chunk['tasks']:.2f}",
            "at most slightly more than 4/3, if reading and reducing are one task",
        ],
        [
            "graph",
            f"{of_chunk['graph_bytes']:.2f} kB",
            "the same, plus 1 byte for each sample for folds and 8 bytes for `sample_weight`",
        ],
        [
            "sets of moments moved",
            f"{moved:.2f}",
            f"at most {most:.2f}: each set that is merged on another machine",
        ],
        ["merge of four sets", f"{merge:.1f} ms", "proportional to `M`"],
        [
            "empty task",
            f"{empty:.0f} ms",
            "for a scheduler that shares two busy cores with the workers",
        ],
    ]
    return page_table(["for each chunk", "measured", "on any cluster"], rows, "lrl")


def merge_seconds(repeats: int = 5) -> float:
    """Return the least time of one merge in the tree over several repeats."""
    rng, best = np.random.default_rng(0), math.inf
    parts = [
        Moments.from_arrays(rng.normal(size=(60, N_FEATURES)), rng.normal(size=(60, *OUTPUTS)))
        for _ in range(4)
    ]
    for _ in range(repeats):
        start = time.perf_counter()
        parts[0] + parts[1] + parts[2] + parts[3]
        best = min(best, time.perf_counter() - start)
    return best


def task_seconds(client: Client, n: int = 3000, repeats: int = 3) -> float:
    """Return the least time of an empty task over several repeats."""
    best = math.inf
    for _ in range(repeats):
        start = time.perf_counter()
        client.gather(client.map(abs, range(n), pure=False))
        best = min(best, (time.perf_counter() - start) / n)
    return best


def moment_bytes(d0: int, D: int) -> int:
    """Return the bytes of the moments of one part of the data: X'X, X'Y, means and squares."""
    return 8 * (d0 * d0 + d0 * D + d0 + 2 * D)


def edges(n_leaves: int, fan_in: int = 4) -> int:
    """Return the number of sets of moments that are merged in a tree: all except the root.

    >>> edges(16)
    20
    """
    total = 0
    while n_leaves > 1:
        total += n_leaves
        n_leaves = -(-n_leaves // fan_in)
    return total


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=float, default=10.0, help="gigabytes of Y")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory", type=float, default=2.0, help="gigabytes of each worker")
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--quick", action="store_true", help="0.5 GB, in chunks of 10 MB")
    options = parse_options(parser, arguments)
    size, chunk = (0.5e9, CHUNK // 10) if options.quick else (1e9 * options.size, CHUNK)
    free = shutil.disk_usage(options.folder or tempfile.gettempdir()).free
    if free < 2.2 * size:
        sys.exit(f"{2.2e-9 * size:.0f} GB are needed, and {free / 1e9:.0f} are free; see --folder.")
    n = int(size / ROW)
    print(f"Y: {n} samples of {OUTPUTS}, {n * ROW / 1e9:.2f} GB in {-(-n // chunk)} chunks; "
          f"{options.workers} workers of {options.memory:g} GB")  # fmt: skip
    with (
        tempfile.TemporaryDirectory(dir=options.folder, prefix="holrr-bench-") as folder,
        LocalCluster(
            n_workers=options.workers,
            threads_per_worker=1,
            memory_limit=int(1e9 * options.memory),
            dashboard_address=None,
        ) as cluster,
        Client(cluster) as client,
    ):
        idle = " ".join(f"{bytes_ / 1e9:.2f}" for bytes_ in client.run(peak).values())
        print(f"memory of idle workers: {idle} GB")
        texts = run(client, Path(folder), n, chunk)
    for name, text in texts.items():
        print(f"\n{text}", end="")
        if options.write:
            write_section(name, text)


if __name__ == "__main__":
    main()
