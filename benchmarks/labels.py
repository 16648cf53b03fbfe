"""Cost of labels: fits and predictions with xarray objects and DataFrames, and with arrays.

    python benchmarks/labels.py [--quick] [--repeats 200] [--write]

The data are 2000 x 50 -> 20 x 20. The script prints a Markdown table of medians for each of four
runs, two of them on one thread and two on two threads. The formats take turns. With --write the
script writes the ranges of the ratios into docs/developer_benchmarks.md.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
import pandas as pd
import xarray as xr
from threadpoolctl import threadpool_limits

from holrr import HOLRR
from pages import paragraph, parse_options, printed, span, table_lines, write_section

N, D0, SHAPE = 2000, 50, (20, 20)
THREADS = (1, 2, 1, 2)  # of each run
HEAD = ["", "fit, ms", "ratio", "predict, ms", "ratio"]
LABELLED = "DataArrays", "DataFrames, two levels of columns"


def data() -> dict[str, tuple]:
    """Return the same data with and without labels."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(N, D0)), rng.normal(size=(N, *SHAPE))
    time_axis, names = pd.date_range("1850-01", periods=N, freq="MS"), [f"x{i}" for i in range(D0)]
    inputs = xr.DataArray(X, dims=("time", "index"), coords={"time": time_axis, "index": names})
    outputs = xr.DataArray(
        Y,
        dims=("time", "lat", "lon"),
        coords={"time": time_axis, "lat": np.arange(20.0), "lon": np.arange(20.0)},
        attrs={"units": "K"},
    )
    levels = pd.MultiIndex.from_product([range(20), range(20)], names=["row", "column"])
    table = pd.DataFrame(Y.reshape(N, -1), index=time_axis, columns=levels)
    return {
        "arrays": (X, Y),
        LABELLED[0]: (inputs, outputs),
        LABELLED[1]: (pd.DataFrame(X, time_axis, names), table),
    }


def seconds(f) -> float:
    start = time.perf_counter()
    f()
    return time.perf_counter() - start


def measure(ways: dict[str, tuple], repeats: int) -> dict[str, list[float]]:
    """Return the median seconds of a fit and of a prediction in each format."""
    models = {name: HOLRR(rank=5).fit(*pair) for name, pair in ways.items()}
    times: dict[str, list] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, (X, Y) in ways.items():
            fit, predict = lambda: HOLRR(rank=5).fit(X, Y), lambda: models[name].predict(X)  # noqa: B023
            times[name].append((seconds(fit), seconds(predict)))
    return {
        name: [statistics.median(column) for column in zip(*rows, strict=True)]
        for name, rows in times.items()
    }


def rows(medians: dict[str, list[float]]) -> list[list[str]]:
    """Return the rows of the table of a run."""
    f0, p0 = medians["arrays"]
    return [
        [name, f"{f * 1e3:.2f}", f"{f / f0:.3f}", f"{p * 1e3:.2f}", f"{p / p0:.2f}"]
        for name, (f, p) in medians.items()
    ]


def summary(runs: list[dict[str, list[float]]]) -> str:
    """Return the ranges of the ratios of all runs, as a paragraph."""
    fits = [[run[name][0] / run["arrays"][0] for run in runs] for name in LABELLED]
    ratios = [
        statistics.median(run[name][1] / run["arrays"][1] for run in runs) for name in LABELLED
    ]
    more = max(run[name][1] - run["arrays"][1] for run in runs for name in LABELLED)
    return paragraph(
        f"In four runs on one and two threads, a fit to DataArrays takes {span(fits[0], '.3f')} "
        f"times as long as a fit to the bare arrays, and a fit to DataFrames takes "
        f"{span(fits[1], '.2f')} times as long. Predictions take {ratios[0]:.1f} and "
        f"{ratios[1]:.1f} times as long, which is at most {1e3 * more:.1f} ms more for {N} samples."
    )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few repeats")
    parser.add_argument("--repeats", type=int, default=200)
    args = parse_options(parser, arguments)
    ways, runs = data(), []
    for threads in THREADS:
        print(f"{threads} threads\n")
        with threadpool_limits(threads):
            runs.append(measure(ways, 3 if args.quick else args.repeats))
        printed(table_lines(HEAD, rows(runs[-1])))
        print()
    text = summary(runs)
    print(text, end="")
    if args.write:
        write_section("labels", text)


if __name__ == "__main__":
    main()
