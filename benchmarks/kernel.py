"""Kernel fits and searches, compared with KernelRidge of scikit-learn in one run.

    python benchmarks/kernel.py [--quick] [--repeats 5] [--threads 2] [--write]

KernelRidge is fitted to the flattened outputs. In the first table, the methods take turns in every
repeat, and their medians are compared. The second table compares the search over all ranks and 13
penalties in 5 folds with searches over the same penalties alone: GridSearchCV of KernelRidge, and
KernelRidgeCV of himalaya with one penalty for all outputs. The third part fits 100,000 samples with
landmarks in a separate process, and prints the peak memory of this process including the data. The
script takes about two minutes on two cores, or half a minute with --quick. With --write it writes
the tables of docs/developer_benchmarks.md and docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import resource
import statistics
import time
import warnings
from collections.abc import Iterator

import numpy as np
from himalaya.kernel_ridge import KernelRidgeCV
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_limits

from holrr.kernel import (
    KernelHOLRR,
    KernelHOLRRCV,
    KernelLRR,
    KernelLRRCV,
    KernelRLS,
    KernelRLSCV,
)
from pages import paragraph, parse_options, printed, table, table_lines, write_section

ALPHAS = np.logspace(-4, 2, 13)
SEARCHES = [(1000, (10, 10)), (2000, (5, 16, 5))]
PEER, HIMALAYA = "GridSearchCV(KernelRidge)", "himalaya KernelRidgeCV"
GAMMA = 0.05


def seconds(f) -> float:
    start = time.perf_counter()
    f()
    return time.perf_counter() - start


def medians(functions: list, repeats: int) -> list[float]:
    """Return the median seconds of each function; the functions take turns."""
    times = [[seconds(f) for f in functions] for _ in range(repeats)]
    return [statistics.median(column) for column in zip(*times, strict=True)]


def data(n: int, shape: tuple[int, ...], n_features: int = 20):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, n_features))
    latent = np.tanh(X @ rng.standard_normal((n_features, 6)) / math.sqrt(n_features))
    Y = np.tensordot(latent, rng.standard_normal((6, *shape)), axes=1)
    Y += rng.standard_normal(Y.shape)
    return X, Y


def outputs_of(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def single_fits(n: int, shape: tuple[int, ...], repeats: int) -> Iterator[list[str]]:
    """Yield name, seconds and ratio to KernelRidge of each fit (target: at most 1.3)."""
    X, Y = data(n, shape)
    flat = Y.reshape(n, -1)
    shared = {"kernel": "rbf", "gamma": GAMMA}
    ranks = (10, *(4 for _ in shape))
    fits = {
        "KernelRidge, flattened outputs": (KernelRidge(alpha=1.0, **shared), flat),
        "KernelRLS": (KernelRLS(**shared), Y),
        "KernelLRR": (KernelLRR(10, **shared), Y),
        "KernelHOLRR": (KernelHOLRR(ranks, **shared), Y),
        "KernelHOLRR, full rank": (KernelHOLRR(**shared), Y),
    }
    times = medians([lambda m=m, y=y: m.fit(X, y) for m, y in fits.values()], repeats)
    for name, t in zip(fits, times, strict=True):
        yield [name, f"{t:.3f}", f"{t / times[0]:.2f}"]


# ---------------------------------------------------------------- rows of benchmarks/table.py


def fit_times(n: int, shape: tuple[int, ...], repeats: int) -> list[float]:
    """Return the seconds of fits of KernelHOLRR of low rank and of KernelRidge."""
    X, Y = data(n, shape)
    flat, shared = Y.reshape(n, -1), {"kernel": "rbf", "gamma": GAMMA}
    ours, peer = KernelHOLRR((10, *(4 for _ in shape)), **shared), KernelRidge(alpha=1.0, **shared)
    return medians([lambda: ours.fit(X, Y), lambda: peer.fit(X, flat)], repeats)


def search_times(n: int, shape: tuple[int, ...], gammas: np.ndarray, repeats: int) -> list[float]:
    """Return the seconds of searches over all ranks and without ranks."""
    X, Y = data(n, shape)
    models = [kind(ALPHAS, gammas=gammas) for kind in (KernelHOLRRCV, KernelRLSCV)]
    return medians([lambda m=m: m.fit(X, Y) for m in models], repeats)


def rows(quick: bool = False, repeats: int = 5) -> Iterator[tuple[str, float, float, float]]:
    """Yield label, our seconds, their seconds, and target ratio."""
    few = 20 if quick else 1
    n = 3000 // few
    yield f"KernelHOLRR.fit / KernelRidge, {n} -> 10x10x10", *fit_times(n, (10,) * 3, repeats), 1.2
    n, shape, n_gammas = (30, (4, 5), 2) if quick else (548, (33, 49), 6)
    gammas = GAMMA * np.logspace(-1, 1, n_gammas)
    outputs = "x".join(map(str, shape))
    name = f"KernelHOLRRCV / KernelRLSCV, {n} -> {outputs}, {n_gammas} widths, {len(ALPHAS)} alphas"
    yield name, *search_times(n, shape, gammas, max(1, repeats // 5)), 6.0


# ---------------------------------------------------------------- the report


def searches(n: int, shape: tuple[int, ...], repeats: int = 3) -> dict[str, float]:
    """Measure searches over 13 penalties in five folds.

    Returns
    -------
    found : dict
        Seconds of each search, and under "models" and "exact" the number of models of
        KernelHOLRRCV and of those that it computes exactly.
    """
    X, Y = data(n, shape)
    flat = Y.reshape(n, -1)
    ridge = GridSearchCV(KernelRidge(kernel="rbf", gamma=GAMMA), {"alpha": ALPHAS}, cv=5)
    one = {"local_alpha": False}
    himalaya = KernelRidgeCV(
        ALPHAS, kernel="rbf", kernel_params={"gamma": GAMMA}, cv=5, solver_params=one
    )
    models = [kind(ALPHAS, gammas=GAMMA) for kind in (KernelRLSCV, KernelLRRCV, KernelHOLRRCV)]
    fits = [lambda m=m: m.fit(X, flat) for m in (ridge, himalaya)]
    fits += [lambda m=m: m.fit(X, Y) for m in models]
    for fit in fits[1:]:  # the first one does not profit from a warm-up
        fit()
    names = [PEER, HIMALAYA, *(type(model).__name__ for model in models)]
    found = dict(zip(names, medians(fits, repeats), strict=True))
    surface = models[-1].cv_results_["mean_mse"]
    return {**found, "models": surface.size, "exact": int(np.isfinite(surface).sum())}


def search_table(found: dict[tuple[int, tuple[int, ...]], dict]) -> str:
    """Return the ratios to GridSearchCV, a column for each size."""

    def cell(name: str, times: dict) -> str:
        if name == PEER:
            return f"{times[PEER]:.3g}"
        text = f"{times[name] / times[PEER]:.2f} times"
        if name != "KernelHOLRRCV":
            return text
        exact = f", {times['exact']:,} of them exactly" if times["exact"] < times["models"] else ""
        return f"{text} ({times['models']:,} models{exact})"

    names = [PEER, HIMALAYA, "KernelRLSCV", "KernelLRRCV", "KernelHOLRRCV"]
    head = ["", *(f"{n} samples, {outputs_of(shape)}" for n, shape in found)]
    rows = [[name, *(cell(name, times) for times in found.values())] for name in names]
    rows[0][0] += ", seconds"
    return table(head, rows)


def short_search_table(found: dict[tuple[int, tuple[int, ...]], dict]) -> str:
    """Return the ratios of some searches to GridSearchCV, a column for each size."""
    head = ["", *(f"{n} samples, outputs {outputs_of(shape)}" for n, shape in found)]
    rows = [[f"`{PEER}`", *("1" for _ in found)]]
    labels = {
        HIMALAYA: "himalaya's `KernelRidgeCV`",
        "KernelRLSCV": "`KernelRLSCV`",
        "KernelHOLRRCV": "`KernelHOLRRCV`",
    }
    for name, label in labels.items():
        row = [f"{times[name] / times[PEER]:.2f}" for times in found.values()]
        if name == "KernelHOLRRCV":
            models = [times["models"] for times in found.values()]
            row = [f"{ratio} ({n:,} models)" for ratio, n in zip(row, models, strict=True)]
        rows.append([label, *row])
    return table(head, rows)


def landmarks(n: int, n_components: int, queue) -> None:
    X, Y = data(n, (5, 16, 5), n_features=50)
    model = KernelHOLRR((20, 4, 8, 4), kernel="rbf", n_components=n_components, random_state=0)
    fit = seconds(lambda: model.fit(X, Y))
    predict = seconds(lambda: model.predict(X))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    queue.put((fit, predict, peak, X.nbytes + Y.nbytes))


def large(n: int, n_components: int) -> str:
    """Return a paragraph on the time and memory of a fit with landmarks (target: below 2 GB)."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=landmarks, args=(n, n_components, queue))
    process.start()
    fit, predict, peak, size = queue.get()
    process.join()
    print(f"\nlandmarks: predictions of all samples take {predict:.1f} s")
    return paragraph(
        f"With {n_components} landmarks, a fit to {n:,} samples with outputs 5x16x5 takes "
        f"{fit:.1f} s and {peak / 1e9:.2f} GB at its peak, of which the data are "
        f"{size / 1e9:.2f} GB."
    )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="smaller problems, fewer repeats")
    args = parse_options(parser, arguments)
    warnings.filterwarnings("ignore", message="The best penalty")
    n, repeats = (300, 1) if args.quick else (3000, args.repeats)
    with threadpool_limits(limits=args.threads):
        rows = single_fits(n, (10, 10, 10), repeats)
        fits = printed(table_lines(["", "seconds", "/ KernelRidge"], rows))
        sizes = [(100, (4, 5)), (200, (3, 4, 2))] if args.quick else SEARCHES
        found = {size: searches(*size, 1 if args.quick else 3) for size in sizes}
        print(f"\n{search_table(found)}")
    text = large(*((10_000, 100) if args.quick else (100_000, 1000)))
    print(text, end="")
    if args.write:
        write_section("kernel fit", fits)
        write_section("kernel search", search_table(found))
        write_section("kernel search, short", short_search_table(found))
        write_section("kernel landmarks", text)


if __name__ == "__main__":
    main()
