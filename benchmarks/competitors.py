"""Training times of all methods of Table 1 of the paper, as ratios to HOLRR in the same run.

    python benchmarks/competitors.py [--quick] [--repeats N]

The problem is that of the paper: 100 samples, and a 10 x 10 x 10 x 10 coefficient tensor of
multilinear rank (6, 4, 4, 8), with the noise of the paper (standard deviation 0.1) and with noise
as strong as the signal. First, 3-fold cross-validation chooses the hyperparameters of each method.
The measured time is that of one fit with them. The iterative methods run with their default
tolerance and with a hundredth of it. The test errors show whether the default is small enough.

The script prints Markdown tables of medians over repeats, in which the methods take turns.
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

SHAPE, RANK, N = (10, 10, 10, 10), (6, 4, 4, 8), 100
# Seconds in Table 1 of the paper, first line.
PAPER = {"RLS": 0.012, "LRR": 0.45, "trace norm": 12.92, "MLMT-NC": 945.79, "HOLRR": 0.04}


def data(**noise):
    """Return training and test samples."""
    X, Y = make_tensor_regression(2 * N, SHAPE[0], SHAPE[1:], rank=RANK, random_state=0, **noise)
    return X[:N], Y[:N], X[N:], Y[N:]


def tuned(X, Y):
    """Return each method with the hyperparameters that cross-validation chooses."""
    searches = {
        "HOLRR": HOLRRCV(cv=3, fit_intercept=False),
        "RLS": RLSCV(cv=3, fit_intercept=False),
        "LRR": LRRCV(cv=3, fit_intercept=False),
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
        "MLMT-NC, random start",
        "MLMT-NC",
        _with(models["MLMT-NC"], init="random", random_state=0),
    )


def _with(model, **params):
    return type(model)(**{**model.get_params(), **params})


def table(repeats, **noise):
    X, Y, X_test, Y_test = data(**noise)
    rows = list(variants(tuned(X, Y)))
    times = {label: [] for label, _, _ in rows}
    for _ in range(repeats + 1):
        for label, _, model in rows:
            start = time.perf_counter()
            model.fit(X, Y)
            times[label].append(time.perf_counter() - start)
    median = {label: statistics.median(t[1:]) for label, t in times.items()}
    print(
        "| method | fit, ms | ratio to HOLRR | in the paper | closer by | iterations | test RMSE |"
    )
    print("|:--|--:|--:|--:|--:|--:|--:|")
    for label, name, model in rows:
        ratio, paper = median[label] / median["HOLRR"], PAPER[name] / PAPER["HOLRR"]
        rmse = np.sqrt(np.mean((model.predict(X_test) - Y_test) ** 2))
        print(
            f"| {label} | {1e3 * median[label]:.2f} | {ratio:.2f} | {paper:,.1f} | "
            f"{paper / ratio:,.0f} | {getattr(model, 'n_iter_', '')} | {rmse:.5g} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few repeats")
    parser.add_argument("--repeats", type=int, default=31)
    args = parser.parse_args()
    repeats = 3 if args.quick else args.repeats
    print(f"N = {N}, coefficients {SHAPE}, rank {RANK}\n\nNoise of standard deviation 0.1:\n")
    table(repeats, noise=0.1)
    print("\nNoise as strong as the signal:\n")
    table(repeats, snr=1.0)


if __name__ == "__main__":
    main()
