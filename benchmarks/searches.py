"""Times of searches with typical shapes of real data, each compared with a peer in the same run.

    python benchmarks/searches.py [--quick] [--repeats 5] [--threads 2] [--only TEXT]

Every row is a ratio of two medians: of two searches of this library, or of a search and a search of
scikit-learn or a series of single fits. The two take turns after a warm-up. `--only` selects the
rows whose description contains a text. The rows are part of benchmarks/table.py, which writes them
into docs/developer_benchmarks.md.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeCV
from threadpoolctl import threadpool_limits

from holrr import HOLRR
from holrr.datasets import make_tensor_regression
from holrr.kernel import KernelHOLRRCV, KernelRLSCV
from holrr.model_selection import HOLRRCV, LRRCV, RLSCV
from pages import printed, table_lines

ALPHAS = np.logspace(-2, 4, 13)
KERNELS = {"gammas": np.logspace(-3, 0, 6), "alphas": np.logspace(-4, 2, 13)}

HEAD = ["", "ours, ms", "theirs, ms", "ratio", "asked", "met"]
Row = tuple[str, float, float, float]


@dataclass(frozen=True)
class Case:
    """Two calls to compare on data of one size.

    Parameters
    ----------
    name : str
        Description of the comparison.
    size : tuple
        Size ``(n_samples, n_features, output_shape)`` of the data.
    pair : callable
        Function from X and Y to the two calls, that of this library first.
    asked : float
        Target ratio.
    quick : tuple
        Size of the data with ``--quick``.
    """

    name: str
    size: tuple[int, int, tuple[int, ...]]
    pair: Callable[[np.ndarray, np.ndarray], tuple[Callable[[], Any], Callable[[], Any]]]
    asked: float
    quick: tuple[int, int, tuple[int, ...]] = (60, 8, (4, 3))


def fits(ours: Any, theirs: Any):
    """Return the two calls that fit two estimators to the same data."""
    return lambda X, Y: (lambda: ours.fit(X, Y), lambda: theirs.fit(X, Y))


def beside_ridge(X: np.ndarray, Y: np.ndarray):
    """Compare a default search with the search of scikit-learn over penalties."""
    flat = Y.reshape(len(Y), -1)
    return lambda: HOLRRCV(ALPHAS).fit(X, Y), lambda: RidgeCV(ALPHAS, cv=5).fit(X, flat)


def beside_a_fit(X: np.ndarray, Y: np.ndarray):
    """Compare a default search with a single fit of low rank."""
    rank = tuple(min(4, d) for d in (X.shape[1], *Y.shape[1:]))
    return lambda: HOLRRCV(ALPHAS).fit(X, Y), lambda: HOLRR(rank=rank).fit(X, Y)


def with_missing(model: Any):
    """Compare a search with a fifth of the outputs missing with that of complete outputs."""

    def pair(X: np.ndarray, Y: np.ndarray):
        holes = np.where(np.random.default_rng(1).random(Y.shape) < 0.2, np.nan, Y)
        return lambda: model(missing="ignore").fit(X, holes), lambda: model().fit(X, Y)

    return pair


def in_torch(X: np.ndarray, Y: np.ndarray):
    """Compare a search with torch tensors on the host, with default threads, with NumPy."""
    import torch

    tensors = torch.from_numpy(X), torch.from_numpy(Y)
    return lambda: HOLRRCV(ALPHAS).fit(*tensors), lambda: HOLRRCV(ALPHAS).fit(X, Y)


def of_a_table(X: np.ndarray, Y: np.ndarray):
    """Compare a fit to a DataFrame with two levels of columns with a fit to its values."""
    import pandas as pd

    columns = pd.MultiIndex.from_product([range(n) for n in Y.shape[1:]], names=["a", "b"])
    table = pd.DataFrame(Y.reshape(len(Y), -1), columns=columns)
    model = HOLRR(rank=tuple(min(4, d) for d in (X.shape[1], *Y.shape[1:])))
    return lambda: model.fit(X, table), lambda: model.fit(X, Y)


KERNEL_PAIR = fits(KernelHOLRRCV(**KERNELS), KernelRLSCV(**KERNELS))
CASES = [
    Case("HOLRRCV / RidgeCV", (2000, 50, (20, 20, 20)), beside_ridge, 0.15),
    Case("HOLRRCV / single fit", (2000, 50, (20, 20, 20)), beside_a_fit, 35),
    Case("HOLRRCV / single fit", (200, 10, (12, 8, 6)), beside_a_fit, 30),
    Case("HOLRRCV / RLSCV", (4400, 790, (24, 12, 6)), fits(HOLRRCV(), RLSCV()), 3),
    Case("KernelHOLRRCV / KernelRLSCV", (548, 15, (33, 49)), KERNEL_PAIR, 3),
    Case("KernelHOLRRCV / KernelRLSCV", (24, 4, (116, 18)), KERNEL_PAIR, 5),
    Case("KernelHOLRRCV / KernelRLSCV", (35, 8, (365, 2)), KERNEL_PAIR, 5),
    Case("KernelHOLRRCV / KernelRLSCV", (59, 1200, (12, 10, 50)), KERNEL_PAIR, 5),
    Case("HOLRRCV / LRRCV", (300, 40, (20000,)), fits(HOLRRCV(), LRRCV()), 1.2),
    Case("LRRCV / HOLRRCV", (478, 324, (3, 16, 5)), fits(LRRCV(), HOLRRCV()), 1),
    Case("LRRCV / HOLRRCV", (1029, 972, (108, 3)), fits(LRRCV(), HOLRRCV()), 1),
    Case("RLSCV / LRRCV", (122, 6375, (125, 17)), fits(RLSCV(), LRRCV()), 1),
    Case("RLSCV missing / complete", (478, 324, (3, 16, 5)), with_missing(RLSCV), 20),
    Case("HOLRRCV missing / complete", (478, 324, (3, 16, 5)), with_missing(HOLRRCV), 3),
    Case("HOLRRCV of torch / NumPy", (2000, 50, (20, 20, 20)), in_torch, 2),
    Case("HOLRR of a DataFrame / array", (2000, 50, (20, 20)), of_a_table, 1.1),
]


def data(n: int, d0: int, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    rank = tuple(min(4, d) for d in (d0, *shape))
    return make_tensor_regression(
        n, n_features=d0, output_shape=shape, rank=rank, snr=1.0, random_state=0
    )


def seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def measure(case: Case, repeats: int) -> Row:
    """Return the median seconds of the two calls, which take turns."""
    n, d0, shape = case.size
    calls = case.pair(*data(n, d0, shape))
    # Small searches are repeated more often, since their times vary more.
    once = [seconds(call) for call in calls]
    repeats = max(repeats, min(int(1.0 / sum(once)), 31))
    times = [[seconds(call) for call in calls] for _ in range(repeats)]
    ours, theirs = (statistics.median(column) for column in zip(*times, strict=True))
    name = f"{case.name}, {n} x {d0} -> {'x'.join(map(str, shape))}"
    return name, ours, theirs, case.asked


def rows(quick: bool = False, repeats: int = 5, only: str = "") -> Iterator[Row]:
    """Yield description, seconds, seconds of the peer and target ratio of all cases."""
    warnings.filterwarnings("ignore", message="The best penalty")
    warnings.filterwarnings("ignore", message="The error surfaces")
    for case in CASES:
        case = replace(case, size=case.quick) if quick else case
        if only in f"{case.name} {case.size}":
            try:
                yield measure(case, repeats)
            except ImportError as error:
                print(f"left out, {error.name} is not installed: {case.name}", file=sys.stderr)


def cells(row: Row) -> list[str]:
    """Return the cells of a row of the Markdown table, whose head is `HEAD`."""
    name, ours, theirs, asked = row
    ratio = ours / theirs
    times = [f"{1e3 * t:,.0f}" if t >= 0.1 else f"{1e3 * t:.1f}" for t in (ours, theirs)]
    return [name, *times, f"{ratio:.3g}", f"{asked:g}", "yes" if ratio <= asked else "no"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small data")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="", help="rows whose description contains this")
    args = parser.parse_args()
    with threadpool_limits(args.threads):
        found = rows(args.quick, args.repeats, args.only)
        printed(table_lines(HEAD, map(cells, found), "lrrrrc"))


if __name__ == "__main__":
    main()
