"""Errors of HOLRRCV and of ridge regression by sample size, noise and rank of the coefficients.

    python benchmarks/when_it_helps.py [--quick] [--repeats 5] [--write]

10 inputs, outputs of 12 x 8 x 6. The coefficients have multilinear rank (3, 3, 2, 2), or they are
independent random numbers, so that the outputs share no structure. Both methods choose by the same
five folds and the same default grid of penalties. Errors are for 500 new samples: the RMSE against
the outputs without noise, and the ratio of the RMSE against outputs with noise. With --write the
means over the repeats go into docs/results/when_it_helps.csv, from which `python -m docs.pictures`
draws the picture of docs/when_it_helps.md. About two minutes on one core.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import warnings
from collections.abc import Iterator

import numpy as np

from holrr import HOLRRCV, RLSCV
from holrr.datasets import make_tensor_regression
from pages import DOCS, parse_options

RESULTS = DOCS / "results" / "when_it_helps.csv"
SHAPE, RANK = (10, 12, 8, 6), (3, 3, 2, 2)  # inputs first
KINDS = ("low rank", "no structure")
SIZES = (20, 40, 80, 160, 320, 640, 1280)
SNRS = (0.25, 0.5, 1.0, 2.0, 4.0)  # standard deviation of the signal over that of the noise
N_TEST = 500


def draw(kind: str, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs, and outputs without noise, with a standard deviation of one."""
    n_features, *shape = SHAPE
    X, signal = make_tensor_regression(
        n, n_features, shape, rank=RANK, noise=0.0, random_state=seed
    )
    if kind == "no structure":
        signal = np.tensordot(X, np.random.default_rng(seed).normal(size=SHAPE), 1)
    return X, signal / signal.std()


def one(kind: str, n: int, snr: float, seed: int) -> list[float]:
    """RMSE of ridge regression and of HOLRRCV for new samples, against outputs without noise."""
    X, signal = draw(kind, n + N_TEST, seed)
    Y = signal[:n] + np.random.default_rng(seed + 1).normal(size=signal[:n].shape) / snr
    found = []
    for search in (RLSCV(), HOLRRCV()):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The best penalty")
            predicted = search.fit(X[:n], Y).predict(X[n:])
        found.append(float(np.sqrt(np.mean((predicted - signal[n:]) ** 2))))
    return found


def measure(sizes: tuple[int, ...], snrs: tuple[float, ...], repeats: int) -> Iterator[dict]:
    """A row for each kind of coefficients, sample size and noise."""
    for kind, n, snr in itertools.product(KINDS, sizes, snrs):
        errors = np.array([one(kind, n, snr, seed) for seed in range(repeats)])
        observed = np.sqrt(errors**2 + snr**-2)  # of outputs with noise, which is independent
        ratio = observed[:, 1] / observed[:, 0]
        yield {
            "coefficients": kind,
            "n": n,
            "snr": snr,
            "ridge": round(float(errors[:, 0].mean()), 5),
            "holrrcv": round(float(errors[:, 1].mean()), 5),
            "ratio": round(float(np.exp(np.log(ratio).mean())), 5),
            "largest": round(float(ratio.max()), 5),
            "repeats": repeats,
        }


def read() -> list[dict]:
    """The stored rows, numbers as numbers."""
    with RESULTS.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [{k: v if k == "coefficients" else float(v) for k, v in row.items()} for row in rows]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two sizes")
    parser.add_argument("--repeats", type=int, default=5)
    args = parse_options(parser, arguments)
    sizes, snrs, repeats = ((20, 40), (1.0,), 1) if args.quick else (SIZES, SNRS, args.repeats)
    rows = []
    for row in measure(sizes, snrs, repeats):
        rows.append(row)
        print(
            f"{row['coefficients']:>12}, {row['n']:5d} samples, snr {row['snr']:4g}: "
            f"{row['ratio']:.4f} times the RMSE of ridge regression",
            flush=True,
        )
    if args.write:
        with RESULTS.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
