"""Outputs larger than memory: fits from disk, and on a Dask cluster with little memory.

    python benchmarks/streams.py [--quick] [--part disk threads cluster] [--disk 20] [--cluster 10]
                                 [--memory 2] [--folder FOLDER]

- disk: a fit to 20 GB of outputs in a memory-mapped file, a bare sequential read of the file, and
  the bare product X'Y, each in a process of its own, with the file dropped from the cache of the
  system before; time, and the largest resident set of the process, including Python and all
  libraries. Large files also have fits to a tenth and a hundredth of the samples.
- threads: a fit to Dask arrays with Dask's threads, and the fit to the same arrays in memory.
- cluster: two Dask workers of one thread and 2 GB each generate 10 GB of outputs as a Zarr array,
  fit, search, score, and write predictions to another array. For each step: time, the largest
  resident set of each worker during the step, number of computations, bytes of the graphs that the
  client sent, and bytes that workers fetched from each other. A worker that exceeds its memory is
  killed, and the run fails.

Files are written to FOLDER, by default that of temporary files, and deleted at the end. Sizes are
in gigabytes. Needs Linux.
"""

from __future__ import annotations

import json
import math
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from common import medians, options_of, show
from holrr import HOLRR, HOLRRCV

N_FEATURES, OUTPUTS, RANK = 50, (25, 10, 10), (5, 5, 5, 5)
ROW = 8 * math.prod(OUTPUTS)
BLOCK = 2**27 // ROW  # samples of a block of 128 MiB


def coefficients() -> np.ndarray:
    rng = np.random.default_rng(0)
    factors = [rng.normal(size=(d, R)) for d, R in zip((N_FEATURES, *OUTPUTS), RANK, strict=True)]
    return np.einsum("abcd,ia,jb,kc,ld->ijkl", rng.normal(size=RANK), *factors, optimize=True)


# ---------------------------------------------------------------- disk, one process a measurement


def generate(folder: Path, n: int) -> None:
    """Write X and Y with a signal of low rank; all blocks have the same noise."""
    rng, W = np.random.default_rng(0), coefficients()
    X = rng.normal(size=(n, N_FEATURES))
    np.save(folder / "X.npy", X)
    noise = rng.normal(size=(BLOCK, *OUTPUTS))
    with open(folder / "Y.bin", "wb") as file:
        for start in range(0, n, BLOCK):
            Xb = X[start : start + BLOCK]
            (np.tensordot(Xb, W, 1) + noise[: len(Xb)]).tofile(file)
        file.flush()
        os.fsync(file.fileno())


def read(folder: Path, n: int) -> None:
    """Read the file from its beginning, into one buffer."""
    buffer = memoryview(bytearray(BLOCK * ROW))
    with open(folder / "Y.bin", "rb", buffering=0) as file:
        left = n * ROW
        while left > 0:
            left -= file.readinto(buffer[: min(left, len(buffer))])


def product(folder: Path, n: int) -> None:
    """Compute the bare product X'Y block by block, with a block in memory."""
    X = np.load(folder / "X.npy")[:n]
    Y = np.fromfile(folder / "Y.bin", count=min(n, BLOCK) * ROW // 8).reshape(-1, ROW // 8)
    S = np.zeros((N_FEATURES, ROW // 8))
    for start in range(0, n, BLOCK):
        Xb = X[start : start + BLOCK]
        S += Xb.T @ Y[: len(Xb)]


def fit(folder: Path, n: int) -> None:
    """Fit the model to the file."""
    X = np.load(folder / "X.npy", mmap_mode="r")[:n]
    Y = np.memmap(folder / "Y.bin", mode="r", dtype=float, shape=(n, *OUTPUTS))
    HOLRR(rank=RANK).fit(X, Y)


STEPS = {step.__name__: step for step in (generate, read, product, fit)}


def measure(name: str, folder: Path, n: int) -> tuple[float, float]:
    """Return the seconds and the peak memory of a step in a new process.

    The peak of this process would count as that of the child if it were forked.
    """
    path = folder / "Y.bin"
    if path.exists() and name != "product":
        descriptor = os.open(path, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)
    command = [sys.executable, __file__, "--child", name, "--folder", str(folder), "--n", str(n)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def disk(size: float, parent: Path | None) -> None:
    n = int(1e9 * size / ROW)
    with folder_of(1.2 * size, parent) as name:
        measure("generate", Path(name), n)
        cases = [("read", n), ("product", n), ("fit", n)]
        cases += [] if n < 100 * BLOCK else [("fit", n // 10), ("fit", n // 100)]
        rows = ([step, f"{m:,}", *_cells(*measure(step, Path(name), m))] for step, m in cases)
        show(f"Y on disk, {size:g} GB", ["step", "samples", "seconds", "peak memory, GB"], rows)


def _cells(seconds: float, peak: float) -> list[str]:
    return [f"{seconds:.2f}", f"{peak / 1e9:.2f}"]


def folder_of(size: float, parent: Path | None) -> tempfile.TemporaryDirectory:
    """Return a new folder that is deleted at the end, on a disk with so many gigabytes."""
    free = shutil.disk_usage(parent or tempfile.gettempdir()).free / 1e9
    if free < size:
        sys.exit(f"{size:.1f} GB are needed, and {free:.1f} are free; see --folder.")
    return tempfile.TemporaryDirectory(dir=parent, prefix="holrr-bench-")


# ---------------------------------------------------------------- threads


def threads(n: int, repeats: int) -> None:
    import dask
    import dask.array as da

    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(n, N_FEATURES)), rng.normal(size=(n, *OUTPUTS))
    dX, dY = (da.from_array(A, chunks=(max(1, n // 16), *A.shape[1:]), name=False) for A in (X, Y))
    calls = [lambda: HOLRR(rank=RANK).fit(dX, dY), lambda: HOLRR(rank=RANK).fit(X, Y)]
    with dask.config.set(scheduler="threads"):
        ours, plain = medians(calls, repeats)
    row = [f"{n:,} samples", f"{ours:.3g}", f"{plain:.3g}", f"{ours / plain:.2f}"]
    show("Threads of Dask", ["", "Dask, s", "in memory, s", "ratio"], [row])


# ---------------------------------------------------------------- cluster

MISSING = np.zeros(OUTPUTS, dtype=bool)
MISSING[3], MISSING[7, 2:5, 4] = True, True  # a whole slice, and some single cells
AREA = [np.cos(np.linspace(-1.4, 1.4, OUTPUTS[0])), None, None]


def lazy_data(n: int, chunk: int) -> tuple[Any, Any]:
    """Return lazy inputs, and lazy outputs of low rank with noise."""
    import dask.array as da

    def inputs(block_info: Any = None) -> np.ndarray:
        (start, stop), _ = block_info[None]["array-location"]
        return np.random.default_rng([1, start]).normal(size=(stop - start, N_FEATURES))

    def outputs(X: np.ndarray, block_info: Any = None) -> np.ndarray:
        start = block_info[0]["array-location"][0][0]
        noise = np.random.default_rng([2, start]).normal(size=(len(X), *OUTPUTS))
        return noise + np.tensordot(X, coefficients(), 1)

    rows = da.core.normalize_chunks((chunk,), shape=(n,))[0]
    X = da.map_blocks(inputs, chunks=(rows, (N_FEATURES,)), dtype=float, meta=np.empty((0, 0)))
    Y = da.map_blocks(
        outputs,
        X,
        chunks=(rows, *((d,) for d in OUTPUTS)),
        drop_axis=1,
        new_axis=[1, 2, 3],
        dtype=float,
        meta=np.empty((0,) * 4),
    )
    return X, Y


def reset_peak() -> None:
    """Reset the largest resident set of this process."""
    Path("/proc/self/clear_refs").write_text("5")


def peak() -> int:
    """Return the largest resident set of this process since the reset, in bytes."""
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return 1024 * int(line.split()[1])


def fetched(dask_worker: Any) -> int:
    """Return the bytes that this worker has fetched from others."""
    return sum(entry["total"] for entry in dask_worker.transfer_incoming_log)


def counted(client: Any, name: str, call: Callable[[], Any]) -> tuple[Any, list[str]]:
    """Return the result of a call, and time, memory and traffic of the cluster as cells."""
    import cloudpickle
    import dask

    sent: list[int] = []

    def get(graph: Any, keys: Any, **options: Any) -> Any:
        sent.append(len(cloudpickle.dumps(graph)))
        return client.get(graph, keys, **options)

    client.run(reset_peak)
    before, start = sum(client.run(fetched).values()), time.perf_counter()
    with dask.config.set(scheduler=get):
        found = call()
    seconds = time.perf_counter() - start
    memory = ", ".join(f"{bytes_ / 1e9:.2f}" for bytes_ in client.run(peak).values())
    moved = sum(client.run(fetched).values()) - before
    megabytes = [f"{sum(sent) / 1e6:.2f}", f"{moved / 1e6:.0f}"]
    return found, [name, f"{seconds:.1f}", memory, str(len(sent)), *megabytes]


def steps(client: Any, folder: Path, n: int, chunk: int) -> Iterator[list[str]]:
    """Yield the cells of each step, and check the results at the end."""
    import dask.array as da

    # With this many samples, the smallest penalty is the best.
    warnings.filterwarnings("ignore", message="The best penalty")
    names = [str(folder / f"{name}.zarr") for name in ("X", "Y", "predicted")]
    lazy = lazy_data(n, chunk)

    def store(*pairs: tuple[Any, str]) -> None:
        for array, path in pairs:
            da.to_zarr(array, path, compressors=None)

    yield counted(client, "generate", lambda: store(*zip(lazy, names, strict=False)))[1]
    X, Y = (da.from_zarr(name) for name in names[:2])
    model, cells = counted(client, "`HOLRR.fit`", lambda: HOLRR(rank=RANK).fit(X, Y))
    yield cells
    search = HOLRRCV([0.1, 10.0, 1000.0], cv=5, max_rank=6)
    yield counted(client, "`HOLRRCV.fit`, 5 folds", lambda: search.fit(X, Y))[1]
    weighted = HOLRR(rank=RANK, missing="ignore", output_weight=AREA)
    masked = da.where(MISSING, np.nan, Y)
    yield counted(client, "`HOLRR.fit`, mask and weights", lambda: weighted.fit(X, masked))[1]
    yield counted(client, "`score`", lambda: model.score(X, Y))[1]
    predicted, cells = counted(client, "`predict`, lazy", lambda: model.predict(X))
    yield cells
    yield counted(client, "store predictions", lambda: store((predicted, names[2])))[1]

    some = slice(0, 200)
    x, y = X[some].compute(scheduler="sync"), Y[some].compute(scheduler="sync")
    stored = da.from_zarr(names[2])[some].compute(scheduler="sync")
    np.testing.assert_allclose(stored, model.predict(x), rtol=1e-9, atol=1e-9)
    truth = np.tensordot(x, coefficients(), 1)
    off = [np.sqrt(np.nanmean((m.predict(x) - truth) ** 2)) for m in (model, weighted)]
    # The error consists of the noise of the samples and of shrinkage by the penalty, which is one.
    assert max(off) < 3 * (y - truth).std() / np.sqrt(n) + 2 * truth.std() / n
    assert np.array_equal(np.isnan(weighted.predict(x)[0]), MISSING)


def cluster(size: float, memory: float, chunk: int, parent: Path | None) -> None:
    from distributed import Client, LocalCluster

    n = int(1e9 * size / ROW)
    workers = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": int(1e9 * memory)}
    with (
        folder_of(2.2 * size, parent) as folder,
        LocalCluster(**workers, dashboard_address=None) as found,
        Client(found) as client,
    ):
        idle = ", ".join(f"{bytes_ / 1e9:.2f}" for bytes_ in client.run(peak).values())
        head = ["step", "seconds", "peak of the workers, GB", "computations"]
        title = f"Cluster, {size:g} GB in {-(-n // chunk)} chunks; idle workers have {idle} GB"
        head += ["graph, MB", "moved, MB"]
        show(title, head, steps(client, Path(folder), n, chunk))


def main(arguments: list[str] | None = None) -> None:
    parser = options_of(__doc__)
    parts = ("disk", "threads", "cluster")
    parser.add_argument("--part", nargs="+", choices=parts, default=parts)
    parser.add_argument("--disk", type=float, default=20.0, help="gigabytes of Y")
    parser.add_argument("--cluster", type=float, default=10.0, help="gigabytes of Y")
    parser.add_argument("--memory", type=float, default=2.0, help="gigabytes of each worker")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--child", choices=STEPS, help="run one step in this process")
    parser.add_argument("--n", type=int, help="samples of this step")
    args = parser.parse_args(arguments)
    if args.child:
        start = time.perf_counter()
        STEPS[args.child](args.folder, args.n)
        seconds = time.perf_counter() - start
        print(json.dumps([seconds, 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))
        return
    if "disk" in args.part:
        disk(0.05 if args.quick else args.disk, args.folder)
    if "threads" in args.part:
        threads(200 if args.quick else 50_000, 1 if args.quick else 3)
    if "cluster" in args.part:
        cluster(
            *((0.02, 1.0, 200) if args.quick else (args.cluster, args.memory, 5000)), args.folder
        )


if __name__ == "__main__":
    main()
