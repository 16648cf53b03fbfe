"""Forecasts of monthly weather compared with climatology, on held-out blocks of years.

    python benchmarks/climatology.py [--quick] [--meteo FOLDER] [--jobs 2] [--write]

FOLDER, by default $HOLRR_METEO_DIR or the folder in which `fetch_met_office` keeps its downloads,
has the station files of the Met Office: 16 stations, 5
variables, 1960 to 2000. The models forecast the next k = 1, 3, 5 months. Climatology is the mean of
each month of the year over the training years. The other methods predict deviations from
climatology. Their inputs are known at the time of the forecast: past deviations (of every station,
or means over the stations of the last month and of the last year), the time of year, alone or
multiplied by the deviations, and the year. Ridge, best rank and stack choose from the same
penalties on five inner blocks.

There are two kinds of splits: eight blocks of five years, each predicted from all other years, and
the last four of these blocks, each predicted from the years before it. Windows with months on both
sides of a border are left out of the training set.

The script prints Markdown tables. With --write it writes them to docs/developer_benchmarks.md.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from joblib import Parallel, delayed
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from holrr.datasets import fetch_met_office
from holrr.kernel import KernelHOLRRCV, KernelRLSCV
from holrr.model_selection import HOLRRCV, RLSCV
from pages import parse_options, write_section
from real_data import has_stack
from real_data_tasks import GET_METEO, METEO, has_stations

PENALTIES = np.logspace(0, 5, 11)
KERNEL_PENALTIES = np.logspace(-1, 4, 11)
MAX_RANK = 16  # of kernel methods, in every mode: the stations are no more
HORIZONS = (1, 3, 5)
N_BLOCKS = 8
YEAR = 12


def load(folder) -> tuple[np.ndarray, np.ndarray]:
    """Return the standardised series (months, stations, variables), and the months of the year."""
    bunch = fetch_met_office(folder, stations="complete", download_if_missing=False)
    data = bunch.data
    return (data - data.mean(axis=(0, 1))) / data.std(axis=(0, 1)), bunch.months.astype(int) % YEAR


# ---------------------------------------------------------------- inputs


class Known:
    """Inputs that are known before month `t` begins, for several t.

    Parameters
    ----------
    anomalies : array of shape (n_months, n_stations, n_variables)
        Deviations from climatology.
    t : int array of shape (n_windows,)
        First predicted months.
    month : int array of shape (n_windows,)
        Their months of the year.
    """

    def __init__(self, anomalies, t, month):
        n, means = len(t), anomalies.mean(axis=1)
        self.last = anomalies[t - 1].reshape(n, -1)
        self.before = anomalies[t - 2].reshape(n, -1)
        last_year = np.stack([means[s - YEAR : s].mean(axis=0) for s in t])
        self.means = np.hstack([means[t - 1], last_year])
        angle = 2 * np.pi * month[:, None] / YEAR
        self.season = np.hstack([np.sin(angle), np.cos(angle)])
        self.months = np.eye(YEAR)[month]
        middle = len(anomalies) / 2
        self.years = (t[:, None] - middle) * np.sqrt(3) / middle  # of unit variance


def products(a, b):
    """Return all products of a column of a with a column of b."""
    return (a[:, :, None] * b[:, None, :]).reshape(len(a), -1)


def with_season(known, columns):
    return np.hstack([columns, products(known.season, columns)])


INPUTS = {
    "trend by season": lambda k: with_season(k, k.years),
    "last month": lambda k: k.last,
    "last two months": lambda k: np.hstack([k.last, k.before]),
    "means over the stations": lambda k: k.means,
    "means, by season": lambda k: with_season(k, k.means),
    "means, by month of the year": lambda k: products(k.months, k.means),
    "trend by season, means": lambda k: np.hstack([with_season(k, k.years), k.means]),
    "trend and means, by season": lambda k: with_season(k, np.hstack([k.years, k.means])),
}
KERNEL_INPUTS = {
    "kernel of means, season": lambda k: np.hstack([k.means, k.season]),
    "kernel of means, season, year": lambda k: np.hstack([k.means, k.season, k.years]),
}


def searches(kernel: bool, stack: bool) -> dict:
    cv = KFold(5)
    if kernel:
        found = {
            "ridge": KernelRLSCV(KERNEL_PENALTIES, cv=cv),
            "best rank": KernelHOLRRCV(KERNEL_PENALTIES, MAX_RANK, cv=cv, selection="min"),
        }
        more = KernelHOLRRCV(KERNEL_PENALTIES, MAX_RANK, cv=cv)
    else:
        found = {
            "ridge": RLSCV(PENALTIES, cv=cv, fit_intercept=False),
            "best rank": HOLRRCV(PENALTIES, cv=cv, selection="min", fit_intercept=False),
        }
        more = HOLRRCV(PENALTIES, cv=cv, fit_intercept=False)
    if stack:
        found["stack"] = more.set_params(selection="stack")
    return found


# ---------------------------------------------------------------- one block


def climatologies(series, month, train) -> dict[str, np.ndarray]:
    """Return the means of the months of the year, unsmoothed and smoothed by three harmonics."""
    means = np.stack([series[train & (month == m)].mean(axis=0) for m in range(YEAR)])
    angle = 2 * np.pi * np.arange(YEAR)[:, None] * np.arange(1, 4) / YEAR
    waves = np.hstack([np.ones((YEAR, 1)), np.sin(angle), np.cos(angle)])
    smooth = waves @ np.linalg.lstsq(waves, means.reshape(YEAR, -1), rcond=None)[0]
    return {"climatology": means, "climatology, three harmonics": smooth.reshape(means.shape)}


def one_block(series, month, train, test, k: int, names, stack: bool) -> dict:
    """Return the RMSE of every method; `train` and `test` are masks over the months."""
    means = climatologies(series, month, train)
    anomalies = series - means["climatology"][month]
    t = np.arange(YEAR, len(series) - k + 1)
    future = t[:, None] + np.arange(k)
    window = t[:, None] + np.arange(-YEAR, k)
    tested, trained = test[future].all(axis=1), train[window].all(axis=1)
    known, target = Known(anomalies, t, month[t]), anomalies[future]
    truth = series[future][tested]
    found = {(name, ""): truth - m[month[future[tested]]] for name, m in means.items()}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The best penalty")
        for name in names:
            kernel = name in KERNEL_INPUTS
            X = (KERNEL_INPUTS if kernel else INPUTS)[name](known)
            for method, search in searches(kernel, stack).items():
                search.fit(X[trained], target[trained])
                found[name, method] = target[tested] - search.predict(X[tested])
    return {key: float(np.sqrt(np.mean(residual**2))) for key, residual in found.items()}


def splits(n_months: int, past_only: bool, n_blocks: int = N_BLOCKS):
    """Yield masks of training and test months, in blocks of whole years."""
    year = np.arange(n_months) // YEAR
    blocks = np.array_split(np.unique(year), n_blocks)
    for block in blocks[n_blocks // 2 :] if past_only else blocks:
        test = np.isin(year, block)
        yield (year < block[0]) if past_only else ~test, test


def percentages(folder, past_only: bool, quick: bool, stack: bool, jobs: int) -> dict:
    """Return RMSE and difference to climatology in percent, with its error, by name and method."""
    series, month = load(folder)
    names = [*INPUTS, *KERNEL_INPUTS]
    if quick:
        names = ["trend by season", "means, by season"]
    found: dict = {}
    for k in HORIZONS:
        errors = Parallel(n_jobs=jobs)(
            delayed(one_block)(series, month, train, test, k, names, stack)
            for train, test in splits(len(series), past_only)
        )
        base = np.array([e["climatology", ""] for e in errors])
        for key in errors[0]:
            rmse = np.array([e[key] for e in errors])
            percent = 100 * (rmse / base - 1)
            row = rmse.mean(), percent.mean(), percent.std(ddof=1) / np.sqrt(len(percent))
            found.setdefault(key, []).append(row)
    return found


def table(found: dict) -> str:
    lines = [
        "| inputs | method | " + " | ".join(f"k = {k}" for k in HORIZONS) + " |",
        "|---|---|" + "--:|" * len(HORIZONS),
    ]
    for (name, method), rows in found.items():
        if name == "climatology":
            cells = [f"RMSE {rmse:.4f}" for rmse, _, _ in rows]
        else:
            cells = [_cell(percent, error) for _, percent, error in rows]
        lines.append(f"| {name} | {method} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(percent: float, error: float) -> str:
    text = f"{round(percent, 2) + 0.0:+.2f} ± {error:.2f}".replace("-", "−")
    return f"**{text}**" if abs(percent) > 2 * error else text


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two sets of inputs")
    parser.add_argument("--meteo", default=METEO, help="folder of the Met Office files")
    parser.add_argument("--jobs", type=int, default=2, help="processes over the blocks")
    args = parse_options(parser, arguments)
    if not has_stations(args.meteo):
        parser.error(f"--meteo: the folder {args.meteo} has no station files; {GET_METEO}")
    stack = has_stack()
    if not stack:
        print('note: this version has no selection="stack"; its rows are left out')
    text = ""
    for past_only, title in (
        (False, f"{N_BLOCKS} blocks of five years, each from all other years:"),
        (True, "The last four blocks, each from the years before it:"),
    ):
        found = percentages(args.meteo, past_only, args.quick, stack, args.jobs)
        part = f"{title}\n\n{table(found)}"
        print(part, flush=True)
        text += ("\n" if text else "") + part
    if args.write:
        write_section("climatology", text)


if __name__ == "__main__":
    main()
