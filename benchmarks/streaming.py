"""Speed and memory of fits to outputs on disk, compared with a bare read and the bare product.

    python benchmarks/streaming.py [--size 20] [--folder FOLDER] [--quick] [--write]

The script generates Y of the given size in gigabytes in the folder (by default the folder of
temporary files), and deletes it at the end. Each measurement runs in a separate process. Its peak
memory is its largest resident set, including Python and all libraries. Before each measurement, the
file is dropped from the cache of the system. The last part compares threads of Dask with the fit to
the same arrays in memory. With --write the growth with the number of samples goes to
docs/results/streaming.csv, and the script writes the sections of docs/streaming.md and
docs/developer_benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from pages import DOCS, paragraph, parse_options, table, write_section

RESULTS = DOCS / "results" / "streaming.csv"
N_FEATURES, OUTPUTS, RANK = 50, (25, 10, 10), (5, 5, 5, 5)
ROW = 8 * int(np.prod(OUTPUTS))
BLOCK = 2**27 // ROW  # samples of a block of 128 MiB


def generate(folder: Path, n: int) -> None:
    """Write X and Y with a signal of low rank; all blocks have the same noise."""
    rng = np.random.default_rng(0)
    factors = [rng.normal(size=(d, R)) for d, R in zip((N_FEATURES, *OUTPUTS), RANK, strict=True)]
    W = np.einsum("abcd,ia,jb,kc,ld->ijkl", rng.normal(size=RANK), *factors, optimize=True)
    X = rng.normal(size=(n, N_FEATURES))
    np.save(folder / "X.npy", X)
    noise = rng.normal(size=(BLOCK, *OUTPUTS))
    with open(folder / "Y.bin", "wb") as file:
        for start in range(0, n, BLOCK):
            Xb = X[start : start + BLOCK]
            (np.tensordot(Xb, W, 1) + noise[: len(Xb)]).tofile(file)
        file.flush()
        os.fsync(file.fileno())


def forget(path: Path) -> None:
    """Drop a file from the cache of the system."""
    if hasattr(os, "posix_fadvise"):
        descriptor = os.open(path, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


# ---------------------------------------------------------------- measurements in a process


def read(folder: Path, n: int) -> None:
    """Read the file from its beginning, into one buffer."""
    buffer = memoryview(bytearray(BLOCK * ROW))
    with open(folder / "Y.bin", "rb", buffering=0) as file:
        left = n * ROW
        while left > 0:
            left -= file.readinto(buffer[: min(left, len(buffer))])


def product(folder: Path, n: int) -> None:
    """Compute the bare product X'Y block by block, with blocks in memory."""
    X = np.load(folder / "X.npy")[:n]
    Y = np.fromfile(folder / "Y.bin", count=BLOCK * ROW // 8).reshape(BLOCK, -1)
    S = np.zeros((N_FEATURES, ROW // 8))
    start_clock()
    for start in range(0, n, BLOCK):
        Xb = X[start : start + BLOCK]
        S += Xb.T @ Y[: len(Xb)]


def fit(folder: Path, n: int) -> None:
    """Fit the model to the file."""
    from holrr import HOLRR

    X = np.load(folder / "X.npy", mmap_mode="r")[:n]
    Y = np.memmap(folder / "Y.bin", mode="r", dtype=float, shape=(n, *OUTPUTS))
    start_clock()
    HOLRR(rank=RANK).fit(X, Y)


_clock = [0.0]


def start_clock() -> None:
    _clock[0] = time.perf_counter()


def child(name: str, folder: Path, n: int) -> None:
    start_clock()
    {"generate": generate, "read": read, "product": product, "fit": fit}[name](folder, n)
    seconds = time.perf_counter() - _clock[0]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds, "peak": peak}))


def measure(name: str, folder: Path, n: int) -> dict[str, float]:
    """Measure in a new process; the peak of this process would count as that of the child."""
    if (folder / "Y.bin").exists():
        forget(folder / "Y.bin")
    command = [sys.executable, __file__, "--child", name, "--folder", str(folder), "--n", str(n)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


# ---------------------------------------------------------------- the report


def on_disk(folder: Path, n: int) -> dict[str, dict[str, float]]:
    """Print and return the measurements of a bare read, of the bare product and of the fit."""
    gigabytes = n * ROW / 1e9
    found = {name: measure(name, folder, n) for name in ("read", "product", "fit")}
    print(f"Y on disk: {gigabytes:.1f} GB, {n} samples of {OUTPUTS}, {N_FEATURES} features")
    for name, m in found.items():
        rate = gigabytes / m["seconds"]
        print(f"  {name:8s} {m['seconds']:8.2f} s  {rate:6.2f} GB/s  peak {m['peak'] / 1e9:.2f} GB")
    seconds = {name: m["seconds"] for name, m in found.items()}
    print(f"  fit / bare read     {seconds['fit'] / seconds['read']:.2f}  (wanted: at most 2, or)")
    print(f"  fit / bare product  {seconds['fit'] / seconds['product']:.2f}  (wanted: at most 1.5)")
    return found


def growth(folder: Path, n: int, store: bool) -> float:
    """Print the growth of the cost with the number of samples, over a factor of 100.

    Returns
    -------
    slope : float
        Slope of the time on logarithmic axes.
    """
    sizes = [round(n * 10 ** (k / 2 - 2)) for k in range(5)]
    rows = [(m, measure("fit", folder, m)) for m in sizes]
    print("cost in the number of samples:")
    for m, found in rows:
        micro = 1e6 * found["seconds"] / m
        print(f"  {m:9d} samples {found['seconds']:8.2f} s {micro:8.2f} us a sample, "
              f"peak {found['peak'] / 1e9:.2f} GB")  # fmt: skip
    slope = np.polyfit(np.log(sizes), np.log([found["seconds"] for _, found in rows]), 1)[0]
    print(f"  slope in logarithms {slope:.3f} (1 is linear)")
    if store:
        lines = [f"{m},{found['seconds']:.4g},{found['peak']:.4g}" for m, found in rows]
        RESULTS.write_text("\n".join(["samples,seconds,peak", *lines, ""]))
    return float(slope)


def draw() -> Any:
    """Seconds against samples, from the stored results, as a matplotlib Figure."""
    import matplotlib.pyplot as plt

    sizes, seconds, _ = np.loadtxt(RESULTS, delimiter=",", skiprows=1, unpack=True)
    figure, axes = plt.subplots(figsize=(5, 3.4), layout="constrained")
    axes.loglog(sizes, seconds, "o-", label="fit from disk")
    straight = [seconds[-1] * m / sizes[-1] for m in sizes]
    axes.loglog(sizes, straight, "--", color="gray", label="proportional to N")
    axes.set(xlabel="samples N", ylabel="seconds", title="One pass over outputs on disk")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def threads(n: int, repeats: int = 3) -> float:
    """Return the time with threads of Dask over that of the same arrays in memory, in turns."""
    import dask
    import dask.array as da

    from holrr import HOLRR

    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(n, N_FEATURES)), rng.normal(size=(n, *OUTPUTS))
    chunk = max(1, n // 16)
    dX = da.from_array(X, chunks=(chunk, -1), name=False)
    dY = da.from_array(Y, chunks=(chunk, *OUTPUTS), name=False)
    best = {"in memory": np.inf, "dask": np.inf}
    with dask.config.set(scheduler="threads"):
        for _ in range(repeats):
            for name, pair in {"in memory": (X, Y), "dask": (dX, dY)}.items():
                start = time.perf_counter()
                HOLRR(rank=RANK).fit(*pair)
                best[name] = min(best[name], time.perf_counter() - start)
    ratio = best["dask"] / best["in memory"]
    print(f"in memory {best['in memory']:.2f} s, Dask threads {best['dask']:.2f} s: "
          f"ratio {ratio:.2f} (wanted: at most 1.3)")  # fmt: skip
    return ratio


def disk_table(found: dict[str, dict[str, float]], slope: float) -> str:
    """Return the table of docs/streaming.md."""
    seconds = {name: f"{m['seconds']:.1f} s" for name, m in found.items()}
    product = "time of the matrix product alone, with the file in the cache of the system"
    rows = {
        "time of the fit": seconds["fit"],
        "time of a sequential read of the file": seconds["read"],
        product: seconds["product"],
        "peak memory": f"{found['fit']['peak'] / 1e9:.2f} GB",
        "slope of the time in the number of samples, on logarithmic axes": f"{slope:.2f}",
    }
    return table(["", ""], rows.items())


def disk_summary(n: int, found: dict[str, dict[str, float]], ratio: float) -> str:
    """Return the paragraph of docs/developer_benchmarks.md."""
    read = found["fit"]["seconds"] / found["read"]["seconds"]
    return paragraph(
        f"A fit to {n * ROW / 1e9:.0f} GB of outputs on disk takes {read:.2f} times as long as a "
        f"bare sequential read. Dask threads take {ratio:.2f} times as long as the fit in memory."
    )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=float, default=20.0, help="gigabytes of Y")
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--quick", action="store_true", help="2 gigabytes")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--n", type=int, help=argparse.SUPPRESS)
    options = parse_options(parser, arguments)
    if options.child:
        child(options.child, options.folder, options.n)
        return
    size = 2e9 if options.quick else 1e9 * options.size
    free = shutil.disk_usage(options.folder or tempfile.gettempdir()).free
    if free < 1.2 * size:
        sys.exit(f"{size / 1e9:.0f} GB are needed, and {free / 1e9:.0f} GB are free; see --folder.")
    n = int(size / ROW)
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="holrr-bench-") as folder:
        measure("generate", Path(folder), n)
        found = on_disk(Path(folder), n)
        slope = growth(Path(folder), n, store=options.write)
    ratio = threads(min(n, 50_000))
    texts = {
        "outputs on disk": disk_table(found, slope),
        "files and Dask": disk_summary(n, found, ratio),
    }
    for name, text in texts.items():
        print(f"\n{text}", end="")
        if options.write:
            write_section(name, text)


if __name__ == "__main__":
    main()
