"""Training times of all methods of Table 1 of the paper, as ratios to HOLRR in the same run.

    python benchmarks/competitors.py [--quick] [--repeats N] [--write]

The problem is that of the paper: 100 samples, and a 10 x 10 x 10 x 10 coefficient tensor of
multilinear rank (6, 4, 4, 8), with the noise of the paper (standard deviation 0.1) and with noise
as strong as the signal. First, 3-fold cross-validation chooses the hyperparameters of each method,
for HOLRR and LRR a single model and no stack.
The measured time is that of one fit with them. The iterative methods run with their default
tolerance and with a hundredth of it. The test errors show whether the default is small enough.

The script prints Markdown tables of medians over repeats, in which the methods take turns. With
--write it writes them into docs/developer_benchmarks.md, and the ratios of the iterative methods
with their default tolerance into docs/trace_norm_and_mlmtnc.md.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings

import numpy as np

from holrr.datasets import make_tensor_regression
from holrr.model_selection import HOLRRCV, LRRCV, RLSCV
from holrr.penalized import MLMTNCCV, TraceNormRegressionCV
from pages import parse_options, printed, span, table_lines, write_section
from pages import table as page_table

SHAPE, RANK, N = (10, 10, 10, 10), (6, 4, 4, 8), 100
# Seconds in Table 1 of the paper, first line.
PAPER = {"RLS": 0.012, "LRR": 0.45, "trace norm": 12.92, "MLMT-NC": 945.79, "HOLRR": 0.04}
HEAD = ["method", "fit, ms", "ratio to HOLRR", "in the paper", "closer by", "iterations"]
HEAD += ["test RMSE"]
RANDOM = "MLMT-NC, random start"


def data(**noise):
    """Return training and test samples."""
    X, Y = make_tensor_regression(2 * N, SHAPE[0], SHAPE[1:], rank=RANK, random_state=0, **noise)
    return X[:N], Y[:N], X[N:], Y[N:]


def tuned(X, Y):
    """Return each method with the hyperparameters that cross-validation chooses."""
    searches = {
        "HOLRR": HOLRRCV(cv=3, fit_intercept=False, selection="min"),
        "RLS": RLSCV(cv=3, fit_intercept=False),
        "LRR": LRRCV(cv=3, fit_intercept=False, selection="min"),
        "trace norm": TraceNormRegressionCV(cv=3, fit_intercept=False),
        "MLMT-NC": MLMTNCCV(cv=3, fit_intercept=False),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of penalties at the edge of a grid
        return {name: search.fit(X, Y).best_estimator_ for name, search in searches.items()}


def variants(models):
    """Yield label, method and estimator; iterative methods also with a smaller tolerance."""
    for name, model in models.items():
        if not hasattr(model, "tol") or name == "HOLRR":
            yield name, name, model
            continue
        for tol in (model.tol, model.tol / 100):
            yield f"{name}, tol={tol:.0e}", name, _with(model, tol=tol)
    yield (
        RANDOM,
        "MLMT-NC",
        _with(models["MLMT-NC"], init="random", random_state=0),
    )


def _with(model, **params):
    return type(model)(**{**model.get_params(), **params})


def measure(repeats: int, **noise) -> dict[str, tuple[str, object, float, float]]:
    """Return method, estimator, median seconds and test RMSE of each variant, by label."""
    X, Y, X_test, Y_test = data(**noise)
    rows = list(variants(tuned(X, Y)))
    times = {label: [] for label, _, _ in rows}
    for _ in range(repeats + 1):
        for label, _, model in rows:
            start = time.perf_counter()
            model.fit(X, Y)
            times[label].append(time.perf_counter() - start)
    found = {}
    for label, name, model in rows:
        rmse = np.sqrt(np.mean((model.predict(X_test) - Y_test) ** 2))
        found[label] = name, model, statistics.median(times[label][1:]), float(rmse)
    return found


def table(found: dict) -> str:
    """Print and return the table of one level of noise."""

    def cells(label: str) -> list[str]:
        name, model, seconds, rmse = found[label]
        ratio, paper = seconds / found["HOLRR"][2], PAPER[name] / PAPER["HOLRR"]
        times = [f"{1e3 * seconds:.2f}", f"{ratio:.2f}", f"{paper:,.1f}", f"{paper / ratio:,.0f}"]
        return [label, *times, str(getattr(model, "n_iter_", "")), f"{rmse:.5g}"]

    return printed(table_lines(HEAD, map(cells, found)))


def short_table(runs: list[dict]) -> str:
    """Return the ratios of the iterative methods to HOLRR, as ranges over the levels of noise."""

    def ratios(label: str) -> str:
        return span([run[label][2] / run["HOLRR"][2] for run in runs], ".0f")

    rows = []
    for name in ("trace norm", "MLMT-NC"):
        default = next(label for label in runs[0] if label.startswith(f"{name}, tol="))
        paper = float(f"{PAPER[name] / PAPER['HOLRR']:.3g}")
        random = ratios(RANDOM) if RANDOM.startswith(name) else ""
        rows.append([name, f"{paper:,.0f}", ratios(default), random])
    return page_table(["method", "paper", "holrr", "holrr, random start"], rows)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few repeats")
    parser.add_argument("--repeats", type=int, default=31)
    args = parse_options(parser, arguments)
    repeats = 3 if args.quick else args.repeats
    print(f"N = {N}, coefficients {SHAPE}, rank {RANK}\n\nNoise of standard deviation 0.1:\n")
    runs = [measure(repeats, noise=0.1)]
    text = table(runs[0])
    text += printed(["", "The same with noise as strong as the signal:", ""])
    runs.append(measure(repeats, snr=1.0))
    text += table(runs[1])
    print(f"\n{short_table(runs)}", end="")
    if args.write:
        write_section("competitors", text)
        write_section("competitors, short", short_table(runs))


if __name__ == "__main__":
    main()
