"""What the experiments share: units of work, tables, pictures and the command line.

An experiment is a module with these names:

- ``Config``: frozen dataclass of the settings, with the class methods ``quick`` and ``full``;
- ``units(config)``: list of the units of work, tuples of strings and numbers;
- ``run_unit(config, unit)``: rows of the table that a unit computes, as dicts;
- ``SERIAL``: whether units must not run in parallel, because they measure time;
- ``text(rows)``: Markdown tables;
- ``figures(config, rows)``: dict from names to matplotlib figures.

A unit depends only on the config and on its own name, so the table is the same for any number of
processes.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any
from zlib import crc32

import numpy as np
from joblib import Parallel, cpu_count, delayed
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

__all__ = [
    "COLOURS",
    "Row",
    "Table",
    "Unit",
    "grid",
    "main",
    "markdown",
    "mean_and_error",
    "run",
    "seed_for",
    "summarise",
    "write_csv",
]

Unit = tuple[Any, ...]
Row = dict[str, Any]
Table = list[Row]


def seed_for(seed: int, *where: str | int) -> int:
    """Return the seed of one part of an experiment, independent of the seeds of other parts.

    Examples
    --------
    >>> seed_for(0, "meteo", 3) == seed_for(0, "meteo", 3) != seed_for(0, "meteo", 4)
    True
    """
    key = tuple(crc32(w.encode()) if isinstance(w, str) else w for w in where)
    sequence = np.random.SeedSequence(entropy=seed, spawn_key=key)
    return int(sequence.generate_state(1)[0])


def run(experiment: ModuleType, config: Any, n_jobs: int = 1, verbose: int = 0) -> Table:
    """Compute the table of an experiment.

    Parameters
    ----------
    experiment : module
        Module with the names that the docstring of this module lists.
    config : object
        Settings, an instance of ``experiment.Config``.
    n_jobs : int, default=1
        Number of processes, as in joblib. The table does not depend on it.
    verbose : int, default=0
        Progress messages, as in joblib.

    Returns
    -------
    list of dict
        Rows in the order of the units.
    """
    n_jobs = 1 if experiment.SERIAL else n_jobs
    work = (delayed(_run_unit)(experiment.run_unit, config, u) for u in experiment.units(config))
    return [row for rows in Parallel(n_jobs, verbose=verbose)(work) for row in rows]


def _run_unit(run_unit: Any, config: Any, unit: Unit) -> Table:
    # One thread: the order of sums, and with it the last digits, must not depend on the number of
    # processes, and methods must be timed under equal conditions.
    with threadpool_limits(1), warnings.catch_warnings():
        # The ends of grids and the numbers of iterations are settings of the experiment.
        warnings.filterwarnings("ignore", message="The best penalty")
        warnings.filterwarnings("ignore", category=ConvergenceWarning)
        return run_unit(config, unit)


# ---------------------------------------------------------------- tables


def mean_and_error(values: Iterable[float]) -> tuple[float, float]:
    """Return the mean and its standard error, which is NaN for a single value.

    Examples
    --------
    >>> mean_and_error([1.0, 2.0, 3.0])
    (2.0, 0.5773502691896258)
    """
    x = np.asarray(list(values), dtype=float)
    error = x.std(ddof=1) / math.sqrt(len(x)) if len(x) > 1 else math.nan
    return float(x.mean()), float(error)


def summarise(table: Table, by: Sequence[str], value: str) -> Table:
    """Return mean, standard error and count of a column for each group, in order of appearance.

    Parameters
    ----------
    table : list of dict
        Rows of the table.
    by : sequence of str
        Columns whose values define a group.
    value : str
        Column to average.

    Returns
    -------
    list of dict
        The columns of `by`, then ``mean``, ``error`` and ``n``.

    Examples
    --------
    >>> summarise([{"method": "RLS", "rmse": 1.0}, {"method": "RLS", "rmse": 3.0}],
    ...           by=["method"], value="rmse")
    [{'method': 'RLS', 'mean': 2.0, 'error': 1.0, 'n': 2}]
    """
    groups: dict[tuple[Any, ...], list[float]] = {}
    for row in table:
        groups.setdefault(tuple(row[c] for c in by), []).append(row[value])
    rows = []
    for key, values in groups.items():
        mean, error = mean_and_error(values)
        rows.append(
            {**dict(zip(by, key, strict=True)), "mean": mean, "error": error, "n": len(values)}
        )
    return rows


def write_csv(path: Path, table: Table) -> None:
    """Write a table as CSV, with columns in order of appearance and exact floats."""
    columns = list(dict.fromkeys(column for row in table for column in row))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table with labels in the first column and numbers in the others.

    Examples
    --------
    >>> print(markdown(["method", "error"], [["ridge", "0.5"]]), end="")
    | method | error |
    | --- | ---: |
    | ridge | 0.5 |
    """
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "".join(f"| {' | '.join(row)} |\n" for row in (header, rule, *rows))


def grid(found: Table, row: str, column: str, prefix: str = "") -> str:
    """Return a Markdown table of means and errors, with the least of each column in bold.

    Parameters
    ----------
    found : list of dict
        Result of `summarise`.
    row, column : str
        Columns of `found` whose values name the rows and columns of the table.
    prefix : str
        Text before the name of each column.
    """
    cells = {(r[row], r[column]): r for r in found}
    columns = list(dict.fromkeys(c for _, c in cells))
    least = {c: min(r["mean"] for (_, d), r in cells.items() if d == c) for c in columns}

    def text(name: str, c: Any) -> str:
        if (name, c) not in cells:
            return ""
        mean = f"{cells[name, c]['mean']:.4f}"
        words = f"{mean}±{cells[name, c]['error']:.4f}"
        return f"**{words}**" if mean == f"{least[c]:.4f}" else words

    names = dict.fromkeys(name for name, _ in cells)
    rows = [[name, *(text(name, c) for c in columns)] for name in names]
    return markdown(["", *(f"{prefix}{c}" for c in columns)], rows)


# ---------------------------------------------------------------- pictures

# Colours that remain distinct for colour-blind readers, and on light and dark pages.
COLOURS = {
    "RLS": "#8a8f98",
    "LRR": "#e69f00",
    "Trace norm": "#56b4e9",
    "MLMT-NC": "#b07cc6",
    "HOLRR (paper)": "#d55e00",
    "HOLRR": "#d55e00",
    "HOLRR (ours)": "#009e73",
    "HOLRR (refined)": "#3d8fe0",
}
FAINT = "#8b949e"
STYLE = {
    "axes.edgecolor": FAINT,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.labelsize": 9.5,
    "grid.color": "#e3e6ea",
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
    "image.interpolation": "nearest",
}


# ---------------------------------------------------------------- command line


def main(experiments: dict[str, ModuleType], usual: Sequence[str], words: Sequence[str]) -> int:
    """Run experiments, print their tables, and write tables and pictures into a folder.

    Parameters
    ----------
    experiments : dict
        Modules of the experiments by name.
    usual : sequence of str
        Names of the experiments to run if none is named.
    words : sequence of str
        Words of the command line.

    Returns
    -------
    int
        Exit code: 1 if an experiment was left out because its data are missing.
    """
    parser = argparse.ArgumentParser("python -m paper", description="Experiments of the paper.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(experiments))
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="few trials: all in some minutes")
    size.add_argument("--full", action="store_true", help="many trials: all in an hour")
    parser.add_argument("--seed", type=int, default=0, help="of all random numbers")
    parser.add_argument("--jobs", type=int, default=cpu_count(), help="number of processes")
    parser.add_argument("--out", type=Path, default=Path("holrr-report"), help="folder")
    options = parser.parse_args(words)
    for name in options.names:
        if name not in experiments:
            parser.error(f"{name!r} is none of the experiments {', '.join(experiments)}")
    import matplotlib

    from docs.dark import save

    matplotlib.use("Agg")
    options.out.mkdir(parents=True, exist_ok=True)
    code = 0
    for name in options.names or usual:
        experiment = experiments[name]
        kind = experiment.Config
        make = kind.quick if options.quick else kind.full if options.full else kind
        random = "seed" in {field.name for field in fields(kind)}
        config = make(**({"seed": options.seed} if random else {}))
        print(f"\n## {name}\n", flush=True)
        try:
            rows = run(experiment, config, options.jobs, verbose=1)
        except (ImportError, FileNotFoundError, ConnectionError) as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
            code = 1
            continue
        write_csv(options.out / f"{name}.csv", rows)
        print(experiment.text(rows), flush=True)
        with matplotlib.rc_context(STYLE):
            for figure_name, figure in experiment.figures(config, rows).items():
                path = options.out / f"{name}_{figure_name}.png"
                save(figure, path)  # for light and for dark pages
    print(f"\nTables and pictures are in {options.out}.")
    return code
