"""The default choice of a search beside ridge regression and the best single model, simulated.

    python benchmarks/choice.py [--quick] [--seeds 200] [--jobs 2] [--only {few,samples}]

Samples are few, and the signal, whose variance is that of the noise, is absent, of full rank, of
rank two in every mode, or of full rank with a strength that differs between outputs (log-normal,
with standard deviation 1.5 of the logarithm). Inputs are independent, or grids of 60 x 18 entries
with two leading directions.

The errors are root mean squared errors on new data, divided by those of `RLSCV`: mean, and upper
5 percent of the seeds. "Held-out / new" is `held_out_mse_` divided by the mean squared error on new
data of the same search, trained on the training sets of two of the folds.

The second table has ten inputs, outputs of 12 x 8 x 6 entries with a signal of rank three in every
mode or of full rank, five seeds, and more and more samples and noise: the change of the RMSE on new
samples against `RLSCV`, in percent. It takes two minutes, the first one fifteen.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
from joblib import Parallel, delayed
from sklearn.model_selection import KFold

from common import options_of, quietly, show
from holrr import HOLRRCV, RLSCV

SHAPES = {
    "24 x 4 → 116 x 18": (24, 4, (116, 18)),
    "30 x 12 → 10 x 8": (30, 12, (10, 8)),
    "20 x 10 → 10 x 10 x 10": (20, 10, (10, 10, 10)),
    "20 x 10 → 8 x 6": (20, 10, (8, 6)),
    "24 x 2000 → 4": (24, 2000, (4,)),
    "24 x (60 x 18) → 4 x 3": (24, (60, 18), (4, 3)),
}
SIGNALS = ("none", "full rank", "low rank", "of different strength")
N_NEW = 500


def inputs(rng: np.random.Generator, sizes: int | tuple[int, int], n: int) -> np.ndarray:
    if isinstance(sizes, int):
        return rng.normal(size=(n, sizes))
    bases = [np.linalg.qr(rng.normal(size=(size, 2)))[0] for size in sizes]
    leading = np.einsum("nk,ik,jk->nij", rng.normal(size=(n, 2)), *bases)
    strength = 5 * np.sqrt(np.prod(sizes)) / 8
    return (strength * leading + rng.normal(size=(n, *sizes))).reshape(n, -1)


def coefficients(
    rng: np.random.Generator, d: int, dims: tuple[int, ...], signal: str
) -> np.ndarray:
    if signal == "none":
        return np.zeros((d, *dims))
    if signal == "low rank":
        core = rng.normal(size=[min(2, size) for size in (d, *dims)])
        for mode, size in enumerate((d, *dims)):
            core = np.tensordot(rng.normal(size=(size, core.shape[mode])), core, (1, mode))
            core = np.moveaxis(core, 0, mode)
        return core
    W = rng.normal(size=(d, *dims))
    return W if signal == "full rank" else W * np.exp(1.5 * rng.normal(size=dims))


@quietly
def one(shape: str, signal: str, seed: int) -> tuple[float, float, float]:
    n, sizes, dims = SHAPES[shape]
    rng = np.random.default_rng([list(SHAPES).index(shape), SIGNALS.index(signal), seed])
    every = inputs(rng, sizes, n + N_NEW)
    X, X_new = every[:n], every[n:]
    W = coefficients(rng, X.shape[1], dims, signal)
    Y, true = np.tensordot(X, W, 1), np.tensordot(X_new, W, 1)
    size = float(np.sqrt(np.mean(true**2))) or 1.0
    Y, true = Y / size + rng.normal(size=Y.shape), true / size
    cv = KFold(5, shuffle=True, random_state=0)

    def error(model: object, rows: np.ndarray) -> float:
        return 1 + float(np.mean((model.fit(X[rows], Y[rows]).predict(X_new) - true) ** 2))

    everything, search = np.arange(n), HOLRRCV(cv=cv)
    ridge = error(RLSCV(cv=cv), everything)
    best = error(HOLRRCV(cv=cv, selection="min"), everything)
    found = error(search, everything)
    held_out = search.held_out_mse_
    of_folds = [error(HOLRRCV(cv=cv), train) for train, _ in list(cv.split(X))[:2]]
    return np.sqrt(found / ridge), np.sqrt(best / ridge), held_out / np.mean(of_folds)


def rows(options: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    seeds, shapes = (2, list(SHAPES)[1:2]) if options.quick else (options.seeds, SHAPES)
    with Parallel(options.jobs) as parallel:
        for shape in shapes:
            for signal in SIGNALS:
                done = parallel(delayed(one)(shape, signal, seed) for seed in range(seeds))
                default, best, held = np.transpose(done)
                errors = [f"{e.mean():.3f} ({np.quantile(e, 0.95):.3f})" for e in (default, best)]
                spread = f"{held.mean():.3f} ± {held.std() / np.sqrt(seeds):.3f}"
                yield shape, signal, *errors, spread


NOISES, SAMPLES = (0.25, 0.5, 1, 2, 4), (20, 40, 80, 160, 320, 640, 1280)


@quietly
def change(n: int, noise: float, rank: int | None, seed: int) -> float:
    """Change of the RMSE on new samples against ridge regression, in percent."""
    rng = np.random.default_rng([n, int(100 * noise), rank or 0, seed])
    shape = (10, 12, 8, 6)
    W = rng.normal(size=shape if rank is None else (rank,) * 4)
    for mode, size in enumerate(shape if rank else ()):
        W = np.moveaxis(np.tensordot(rng.normal(size=(size, W.shape[mode])), W, (1, mode)), 0, mode)
    X = rng.normal(size=(n + N_NEW, 10))
    signal = np.tensordot(X, W, 1)
    Y = signal / signal.std() + noise * rng.normal(size=signal.shape)
    errors = [
        np.sqrt(np.mean((model.fit(X[:n], Y[:n]).predict(X[n:]) - Y[n:]) ** 2))
        for model in (HOLRRCV(), RLSCV())
    ]
    return 100 * (errors[0] / errors[1] - 1)


def rows_of_samples(options: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    samples = SAMPLES[:2] if options.quick else SAMPLES
    with Parallel(options.jobs) as parallel:
        for name, rank in (("rank 3", 3), ("full rank", None)):
            for noise in NOISES[:1] if options.quick else NOISES:
                runs = (delayed(change)(n, noise, rank, k) for n in samples for k in range(5))
                means = np.reshape(parallel(runs), (len(samples), 5)).mean(axis=1)
                yield name, f"{noise:g}", *(f"{mean:+.1f}".replace("-", "−") for mean in means)


def main(words: list[str] | None = None) -> None:
    parser = options_of(__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--only", choices=["few", "samples"])
    options = parser.parse_args(words)
    if options.only != "samples":
        head = ("data", "signal", "default", "best single model", "held-out / new")
        show("RMSE relative to ridge regression, mean and upper 5 percent", head, rows(options))
    if options.only != "few":
        samples = SAMPLES[:2] if options.quick else SAMPLES
        head = ("signal", "noise / signal", *map(str, samples))
        show("Change of the RMSE by number of samples, in percent", head, rows_of_samples(options))


if __name__ == "__main__":
    main()
