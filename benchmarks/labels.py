"""Cost of labels: fits and predictions with xarray objects and DataFrames, and with arrays.

    python benchmarks/labels.py [--repeats 200]

The data are 2000 x 50 -> 20 x 20. The script prints a Markdown table of medians, in which the
formats take turns.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
import pandas as pd
import xarray as xr

from holrr import HOLRR

N, D0, SHAPE = 2000, 50, (20, 20)


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
        "DataArrays": (inputs, outputs),
        "DataFrames, two levels of columns": (pd.DataFrame(X, time_axis, names), table),
    }


def seconds(f) -> float:
    start = time.perf_counter()
    f()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=200)
    args = parser.parse_args()
    ways = data()
    models = {name: HOLRR(rank=5).fit(*pair) for name, pair in ways.items()}
    times: dict[str, list] = {name: [] for name in ways}
    for _ in range(args.repeats):
        for name, (X, Y) in ways.items():
            fit, predict = lambda: HOLRR(rank=5).fit(X, Y), lambda: models[name].predict(X)  # noqa: B023
            times[name].append((seconds(fit), seconds(predict)))
    medians = {
        name: [statistics.median(column) for column in zip(*rows, strict=True)]
        for name, rows in times.items()
    }
    print("| | fit, ms | ratio | predict, ms | ratio |\n|---|--:|--:|--:|--:|")
    for name, (fit, predict) in medians.items():
        f0, p0 = medians["arrays"]
        cells = f"{fit * 1e3:.2f}", f"{fit / f0:.3f}", f"{predict * 1e3:.2f}", f"{predict / p0:.2f}"
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
