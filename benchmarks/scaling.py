"""Growth of time and memory of a fit with samples N, outputs D, inputs d0 and output modes p.

    python benchmarks/scaling.py [--quick] [--repeats 5] [--write]

Times are CPU seconds on one thread, the least of the repeats: other programs affect them least, and
slopes do not depend on the number of cores. Memory is the peak that `fit` allocates in addition to
the data, measured by tracemalloc. The resident set of a process would hide everything below the
hundred megabytes of Python and its libraries. Neither includes the work space of the BLAS, a few
megabytes for all sizes. The script prints the slopes, with the theoretical slopes and the sizes
that need 16 GB of memory. With --write it writes them into docs/scaling.md, and all figures to
docs/results/scaling.csv, from which ``python -m docs.pictures`` draws. The script takes five
minutes.
"""

from __future__ import annotations

import argparse
import csv
import math
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import Ridge
from threadpoolctl import threadpool_limits

from holrr import HOLRRCV, RLS
from linear import data, extra_memory
from pages import DOCS, parse_options, write_section
from pages import table as page_table

RESULTS = DOCS / "results" / "scaling.csv"
NUMBERS = {"n": int, "d0": int, "D": int, "p": int, "seconds": float, "bytes": int, "data": int}
# Size that grows, with its first and last value, by factors of two; the other sizes are fixed.
SWEEPS = {
    "N": [(1000 * 2**k, 20, (10, 10)) for k in range(9)],
    "D": [(500, 20, (5 * 2**k, 5 * 2**k)) for k in range(7)],
    "d0": [(4000, 10 * 2**k, (10, 10)) for k in range(9)],
    "p": [(2000, 20, (2 ** (12 // p),) * p) for p in (1, 2, 3, 4, 6, 12)],
}
AXES = {"N": "samples N", "D": "outputs D", "d0": "inputs d0", "p": "output modes p, D = 4096"}
KEYS = {"N": "n", "D": "D", "d0": "d0", "p": "p"}
# Exponents of the leading terms at the largest sizes: N d0 (d0 + D) for the pass over the data,
# d0 D (d1 + ... + dp) for the Gram matrices if there are many outputs, and residuals of a search.
THEORY = {
    "HOLRR": {"seconds": (1, 1.5, 2), "bytes": (0, 1, 2)},
    "RLS": {"seconds": (1, 1, 2), "bytes": (0, 1, 2)},
    "Ridge": {"seconds": (1, 1, 2), "bytes": (1, 1, 2)},
    "HOLRRCV": {"seconds": (1, 1.5, 3), "bytes": (1, 1, 2)},
}
LAPTOP = 16e9
# Limits of Y and of the inputs for searches, which would take far longer than the other fits.
MOST_SEARCHED, MOST_INPUTS = 4_000_000, 1280


def methods(model, X: np.ndarray, Y: np.ndarray) -> Iterator[tuple[str, object]]:
    yield "HOLRR", model
    yield "RLS", RLS()
    yield "Ridge", Ridge()
    if Y.size <= MOST_SEARCHED and X.shape[1] <= MOST_INPUTS:
        yield "HOLRRCV", HOLRRCV(np.logspace(-2, 4, 13), cv=5)


def cpu_seconds(f, repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.process_time()
        f()
        times.append(time.process_time() - start)
    return min(times)


def measure(axis: str, n: int, d0: int, shape: tuple[int, ...], repeats: int) -> Iterator[dict]:
    X, Y, model = data(n, d0, shape)
    D = math.prod(shape)
    for name, method in methods(model, X, Y):
        outputs = Y.reshape(n, D) if name == "Ridge" else Y
        fit = lambda: clone(method).fit(X, outputs)  # noqa: B023, E731
        memory = extra_memory(fit)  # this fit is also the warm-up
        seconds = cpu_seconds(fit, 1 if name == "HOLRRCV" else repeats)
        size = {"axis": axis, "n": n, "d0": d0, "D": D, "p": len(shape), "method": name}
        yield {**size, "seconds": seconds, "bytes": memory, "data": X.nbytes + Y.nbytes}


def measure_all(quick: bool, repeats: int) -> Iterator[dict]:
    warnings.filterwarnings("ignore", message="The best penalty")
    with threadpool_limits(1):
        for axis, sizes in SWEEPS.items():
            for size in sizes[:3] if quick else sizes:
                for row in measure(axis, *size, repeats):
                    print({k: v if isinstance(v, str) else f"{v:.4g}" for k, v in row.items()})
                    yield row


def write_csv(path: Path, rows: list[dict]) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({**row, "seconds": f"{row['seconds']:.5f}"} for row in rows)


def read_csv(path: Path) -> list[dict]:
    with open(path, encoding="utf-8", newline="") as file:
        return [{k: NUMBERS.get(k, str)(v) for k, v in row.items()} for row in csv.DictReader(file)]


def curve(rows: list[dict], axis: str, method: str, what: str) -> tuple[np.ndarray, np.ndarray]:
    """Return sizes and measured values."""
    key = KEYS[axis]
    found = [(r[key], r[what]) for r in rows if r["axis"] == axis and r["method"] == method]
    x, y = np.array(sorted(found), dtype=float).reshape(-1, 2).T
    return x, y


def slope(x: np.ndarray, y: np.ndarray) -> float:
    """Return the slope of the last three points on logarithmic scales."""
    return float(np.polyfit(np.log(x[-3:]), np.log(y[-3:]), 1)[0])


def table(rows: list[dict]) -> str:
    """Return the Markdown table of slopes, with theoretical slopes in brackets."""
    names = list(dict.fromkeys(row["method"] for row in rows))
    lines = []
    for name in names:
        cells = [name]
        for what in ("seconds", "bytes"):
            for axis, expected in zip(("N", "D", "d0"), THEORY[name][what], strict=True):
                found = f"{slope(*curve(rows, axis, name, what)) + 0.0:.1f}".replace("-0.0", "0.0")
                cells.append(f"{found} ({expected:g})")
        lines.append(cells)
    head = ["", "time in N", "in D", "in d0", "memory in N", "in D", "in d0"]
    return f"{page_table(head, lines)}\n{ends_table(rows)}"


def ends_table(rows: list[dict]) -> str:
    """Return the sizes at which data and fit take 16 GB, extrapolated from the last point."""
    names = [name for name in THEORY if any(row["method"] == name for row in rows)]
    lines = []
    for axis in ("N", "D", "d0"):
        cells = [AXES[axis]]
        for name in names:
            x, extra = curve(rows, axis, name, "bytes")
            total = extra + curve(rows, axis, name, "data")[1]
            at = x[-1] * (LAPTOP / total[-1]) ** (1 / max(slope(x, total), 1e-9))
            cells.append(f"{float(f'{at:.2g}'):,.0f}")
        lines.append(cells)
    return page_table(["16 GB of memory end at", *names], lines)


def draw(rows: list[dict], what: str, path: Path) -> None:
    """Draw a panel for each size that grows, with the slope of each method at its end."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from holrr.plotting._style import ACCENT, DARK, MAIN, MUTED, new_figure, tidy

    looks = {
        "Ridge": (MUTED, "^"),
        "RLS": (DARK, "v"),
        "HOLRR": (MAIN, "o"),
        "HOLRRCV": (ACCENT, "s"),
    }
    figure = new_figure(11.5, 3.5)
    axes = figure.subplots(1, len(AXES), sharey=True)
    unit = 1e6 if what == "bytes" else 1.0
    for ax, (axis, label) in zip(axes, AXES.items(), strict=True):
        for method, (color, marker) in looks.items():
            x, y = curve(rows, axis, method, what)
            ax.loglog(x, y / unit, color=color, marker=marker, ms=4, lw=1.4, label=method)
        if what == "bytes":
            x, y = curve(rows, axis, "HOLRR", "data")
            ax.loglog(x, y / unit, "--", color=MUTED, lw=1, label="X and Y")
        ax.set_xlabel(label)
        ax.margins(x=0.12)
        if axis == "p":
            ax.set_xticks([1, 2, 3, 4, 6, 12], ["1", "2", "3", "4", "6", "12"])
            ax.minorticks_off()
        tidy(ax)
    axes[0].set_ylabel("seconds" if what == "seconds" else "megabytes beyond the data")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=5,
                  frameon=False, fontsize=9)  # fmt: skip
    figure.canvas.draw()  # now the axes have their places
    for ax in axes[:3]:
        write_slopes(ax, ax.lines[: len(looks)])
    figure.savefig(path, dpi=160)
    plt.close(figure)


def write_slopes(ax, lines) -> None:
    """Write the slopes next to the ends of the lines, without overlap."""
    points = 72 / ax.figure.dpi
    ends = [ax.transData.transform(line.get_xydata()[-1])[1] * points for line in lines]
    lowest = -math.inf
    for end, line in sorted(zip(ends, lines, strict=True), key=lambda pair: pair[0]):
        lowest = max(end, lowest + 9)
        text = f"{slope(*line.get_data()):.1f}".replace("-", "−")
        ax.annotate(text, line.get_xydata()[-1], (6, lowest - end), textcoords="offset points",
                    va="center", color=line.get_color(), fontsize=8)  # fmt: skip


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--repeats", type=int, default=5)
    args = parse_options(parser, arguments)
    rows = list(measure_all(args.quick, args.repeats))
    print(f"\n{table(rows)}", end="")
    if args.write:
        write_csv(RESULTS, rows)
        write_section("slopes", table(rows))


if __name__ == "__main__":
    main()
