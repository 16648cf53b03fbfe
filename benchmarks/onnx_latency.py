"""Loading time, latency of one row and size of ONNX graphs, compared with files of holrr.

    python benchmarks/onnx_latency.py [--quick] [--repeats 2000] [--write]

The script prints the table of docs/onnx.md, for one thread, and writes it there with --write. The
loading time is the time from a file to a model that can predict: a session of onnxruntime, or
`holrr.load`. Imports are measured in separate processes. The latency is the median over single
rows, each an array with the type of the graph.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import holrr
from holrr import HOLRR, RLS, KernelHOLRR, load, save, to_onnx
from holrr.datasets import make_tensor_regression
from pages import parse_options, printed, table_lines, write_section

IMPORTS = {
    "holrr": "import holrr",
    "onnxruntime": "import onnxruntime, numpy",
}


def median_seconds(call: Callable[[int], Any], repeats: int) -> float:
    """Return the median time of a call, whose argument is its number."""
    for k in range(20):
        call(k)
    times = []
    for k in range(repeats):
        start = time.perf_counter()
        call(k)
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def session_of(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def models() -> dict[str, tuple[Any, np.ndarray]]:
    """Yield fitted models and inputs."""
    X, Y = make_tensor_regression(500, 50, (12, 8, 6), rank=3, snr=2, random_state=0)
    wide = make_tensor_regression(500, 200, (40, 50), rank=5, snr=2, random_state=0)
    kernel = KernelHOLRR(rank=3, kernel="rbf", gamma=0.01, n_components=100, random_state=0)
    return {
        "`HOLRR`, 50 inputs, 12 x 8 x 6": (HOLRR(rank=3).fit(X, Y), X),
        "`HOLRR`, 200 inputs, 40 x 50": (HOLRR(rank=5).fit(*wide), wide[0]),
        "`RLS`, 200 inputs, 40 x 50": (RLS().fit(*wide), wide[0]),
        "`KernelHOLRR`, 100 landmarks": (kernel.fit(X, Y), X),
        "`StandardScaler` and `HOLRR`": (make_pipeline(StandardScaler(), HOLRR(3)).fit(X, Y), X),
    }


def measure(name: str, model: Any, X: np.ndarray, repeats: int, folder: Path) -> list[str]:
    """Return the cells of a row of the table."""
    ours, cells = folder / "model.holrr", [name]
    save(model, ours)
    loaded = load(ours)
    own = median_seconds(lambda k: loaded.predict(X[k % len(X)][None]), repeats)
    own_load = median_seconds(lambda k: load(ours), repeats // 20)
    cells += [f"{1e3 * own_load:.1f}", f"{1e6 * own:.0f}"]
    for dtype in ("float64", "float32"):
        path, x = folder / f"{dtype}.onnx", X.astype(dtype)
        path.write_bytes(to_onnx(model, dtype=dtype).SerializeToString())
        session = session_of(path)
        (found,), expected = session.run(None, {"X": x}), model.predict(x)
        assert np.abs(found - expected).max() < 1e-5 * np.abs(expected).max()
        rows = [x[k][None] for k in range(len(x))]

        def predict(k: int, session: Any = session, rows: Any = rows) -> Any:
            return session.run(None, {"X": rows[k % len(rows)]})

        seconds = median_seconds(predict, repeats)
        load_time = median_seconds(lambda k, path=path: session_of(path), repeats // 20)
        cells += [
            f"{1e3 * load_time:.1f}",
            f"{1e6 * seconds:.0f}",
            f"{path.stat().st_size / 1e3:.0f}",
        ]
    return cells


def import_seconds(code: str) -> float:
    """Return the least time of three processes, minus that of a process without imports."""

    def run(text: str) -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", text], check=True)
        return time.perf_counter() - start

    return min(run(code) for _ in range(3)) - min(run("pass") for _ in range(3))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="20 repeats")
    parser.add_argument("--repeats", type=int, default=2000)
    options = parse_options(parser, arguments)
    repeats = 20 if options.quick else options.repeats
    print(f"holrr {holrr.__version__}, onnxruntime {onnxruntime.__version__}, one thread\n")
    for name, code in IMPORTS.items():
        print(f"import of {name}: {import_seconds(code):.2f} s")
    print()
    head = ["", "`holrr.load`, ms", "`predict`, us"]
    for dtype in ("float64", "float32"):
        head += [f"{dtype}: load, ms", "one row, us", "size, kB"]
    with tempfile.TemporaryDirectory() as folder:
        rows = (measure(name, *pair, repeats, Path(folder)) for name, pair in models().items())
        text = printed(table_lines(head, rows))
    if options.write:
        write_section("latency", text)


if __name__ == "__main__":
    main()
