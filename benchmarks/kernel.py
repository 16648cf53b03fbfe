"""Kernel fits and searches, compared with KernelRidge of scikit-learn in one run.

    python benchmarks/kernel.py [--repeats 5] [--threads 2] [--quick]

KernelRidge is fitted to the flattened outputs. In the first table, the methods take turns in every
repeat, and their medians are compared. The second table compares the search over all ranks and 13
penalties in 5 folds with searches over the same penalties alone: GridSearchCV of KernelRidge, and
KernelRidgeCV of himalaya with one penalty for all outputs. The third part fits 100,000 samples with
landmarks in a separate process, and prints the peak memory of this process including the data. The
script takes about two minutes on two cores, or half a minute with --quick.
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

ALPHAS = np.logspace(-4, 2, 13)
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


def report(names: list[str], times: list[float]) -> None:
    for name, t in zip(names, times, strict=True):
        print(f"  {name:<28} {t:8.3f} s   {t / times[0]:6.2f} times KernelRidge")


def single_fits(n: int, shape: tuple[int, ...], repeats: int) -> None:
    print(f"one fit, N = {n}, Y {'x'.join(map(str, shape))}, rbf (target: at most 1.3)")
    X, Y = data(n, shape)
    flat = Y.reshape(n, -1)
    shared = {"kernel": "rbf", "gamma": GAMMA}
    ranks = (10, *(4 for _ in shape))
    models = [
        KernelRLS(**shared),
        KernelLRR(10, **shared),
        KernelHOLRR(ranks, **shared),
        KernelHOLRR(ranks, fit_intercept=False, **shared),
        KernelHOLRR(**shared),
    ]
    ridge = KernelRidge(alpha=1.0, **shared)
    times = medians(
        [lambda: ridge.fit(X, flat), *(lambda m=m: m.fit(X, Y) for m in models)], repeats
    )
    names = ["KernelRidge", "KernelRLS", "KernelLRR", "KernelHOLRR"]
    report([*names, "KernelHOLRR, no intercept", "KernelHOLRR, full rank"], times)


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


def searches(n: int, shape: tuple[int, ...], repeats: int = 3) -> None:
    print(f"search, N = {n}, Y {'x'.join(map(str, shape))}, 13 penalties, 5 folds, all ranks")
    X, Y = data(n, shape)
    flat = Y.reshape(n, -1)
    ridge = GridSearchCV(KernelRidge(kernel="rbf", gamma=GAMMA), {"alpha": ALPHAS}, cv=5)
    one = {"local_alpha": False}
    himalaya = KernelRidgeCV(
        ALPHAS, kernel="rbf", kernel_params={"gamma": GAMMA}, cv=5, solver_params=one
    )
    kinds = [KernelRLSCV, KernelLRRCV, KernelHOLRRCV]
    models = [kind(ALPHAS, gammas=GAMMA) for kind in kinds]
    fits = [lambda m=m: m.fit(X, flat) for m in (ridge, himalaya)]
    fits += [lambda m=m: m.fit(X, Y) for m in models]
    for fit in fits[1:]:  # the first one does not profit from a warm-up
        fit()
    times = medians(fits, repeats)
    names = ["GridSearchCV(KernelRidge)", "himalaya KernelRidgeCV"]
    report([*names, *(kind.__name__ for kind in kinds)], times)
    print(f"  models in the surface of KernelHOLRRCV: {models[-1].cv_results_['mean_mse'].size:,}")


def landmarks(n: int, n_components: int, queue) -> None:
    X, Y = data(n, (5, 16, 5), n_features=50)
    model = KernelHOLRR((20, 4, 8, 4), kernel="rbf", n_components=n_components, random_state=0)
    fit = seconds(lambda: model.fit(X, Y))
    predict = seconds(lambda: model.predict(X))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    queue.put((fit, predict, peak, X.nbytes + Y.nbytes))


def large(n: int, n_components: int) -> None:
    print(f"landmarks, N = {n:,}, Y 5x16x5, {n_components} landmarks (target: below 2 GB)")
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=landmarks, args=(n, n_components, queue))
    process.start()
    fit, predict, peak, size = queue.get()
    process.join()
    print(f"  fit {fit:.1f} s, predict all {predict:.1f} s")
    print(f"  peak memory {peak / 1e9:.2f} GB, of which the data are {size / 1e9:.2f} GB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="smaller searches, fewer repeats")
    args = parser.parse_args()
    warnings.filterwarnings("ignore", message="The best penalty")
    with threadpool_limits(limits=args.threads):
        single_fits(3000, (10, 10, 10), 3 if args.quick else args.repeats)
        for n, shape in [(1000, (10, 10)), *([] if args.quick else [(2000, (5, 16, 5))])]:
            searches(n, shape, 1 if args.quick else 3)
    large(100_000, 300 if args.quick else 1000)


if __name__ == "__main__":
    main()
