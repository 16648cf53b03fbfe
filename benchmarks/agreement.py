"""Agreement of fits and searches on a CUDA device with those of NumPy.

    python benchmarks/agreement.py [--quick] [--write]

The script prints the largest relative difference of predictions, error surfaces, intervals and
noise for each problem, and exits with an error if a difference exceeds 1e-8. With --write it writes
the largest difference of all into docs/developer_benchmarks.md.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from sklearn.base import clone

import holrr
from holrr.core.namespace import to_numpy
from pages import paragraph, parse_options, write_section

# Samples, features and outputs, on both sides of the size up to which the host computes the fit.
PROBLEMS = [
    (300, 20, (6, 5)),
    (300, 20, ()),
    (60, 90, (7, 4)),
    (400, 12, (4, 3, 5)),
    (700, 300, (9, 8)),
    (500, 30, (300,)),
    (400, 8, (20, 30)),
]
SURFACES = ("mean_mse", "std_mse", "fold_mse")
TOLERANCE = 1e-8


def estimators(order: int) -> list[Any]:
    """Return estimators: fits, and searches that compute all surfaces, as on a device."""
    listed = [(2,) * (order + 1), (1,) * (order + 1)]
    kernels = {"kernel": "rbf", "alphas": [0.1, 1.0, 10.0]}
    found = [
        holrr.RLS(),
        holrr.LRR(rank=2),
        holrr.HOLRR(rank=3),
        holrr.KernelLRR(rank=3, kernel="rbf"),
        holrr.KernelHOLRR(rank=3, kernel="rbf"),
        holrr.RLSCV(),
        holrr.LRRCV(),
        holrr.HOLRRCV(),
        holrr.HOLRRCV(selection="min"),
        holrr.HOLRRCV(selection="1se"),
        holrr.HOLRRCV(subspaces="response"),
        holrr.HOLRRCV(ranks=listed),
        holrr.KernelHOLRRCV(**kernels),
    ]
    for estimator in found:
        if "search" in estimator.get_params():
            estimator.set_params(search="exhaustive")
    return found


def data(n: int, d0: int, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs, and outputs of rank three with noise."""
    rng, size = np.random.default_rng(0), int(np.prod(shape))
    X, coef = rng.normal(size=(n, d0)), rng.normal(size=(d0, 3)) @ rng.normal(size=(3, size))
    return X, (X @ coef + 3 * rng.normal(size=(n, size))).reshape(n, *shape)


def differences(here: Any, there: Any, X: np.ndarray, far: Any) -> Iterator[float]:
    """Return the relative differences of the results of two fits."""
    pairs = [(here.predict(X), there.predict(far)), (here.noise_, there.noise_)]
    if hasattr(here, "cv_results_"):
        assert here.best_index_ == there.best_index_
        pairs += [(here.cv_results_[name], there.cv_results_[name]) for name in SURFACES]
        pairs += zip(here.predict_interval(X[:9]), there.predict_interval(far[:9]), strict=True)
    for a, b in pairs:
        a, b = (np.asarray(v if isinstance(v, float) else to_numpy(v)) for v in (a, b))
        assert (np.isnan(a) == np.isnan(b)).all()
        yield float(np.nanmax(np.abs(a - b)) / np.nanmax(np.abs(a)))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the first problem")
    options = parse_options(parser, arguments)
    warnings.simplefilter("ignore")  # of penalties at the edge of a grid
    worst = 0.0
    for n, d0, shape in PROBLEMS[: 1 if options.quick else None]:
        X, Y = data(n, d0, shape)
        far = [torch.asarray(A, device="cuda") for A in (X, Y)]
        found = {}
        for estimator in estimators(len(shape)):
            pair = clone(estimator).fit(X, Y), clone(estimator).fit(*far)
            found[str(estimator)] = max(differences(*pair, X, far[0]))
        name = max(found, key=lambda name: found[name])
        worst = max(worst, found[name])
        print(f"{n} x {d0} -> {shape}: {len(found)} estimators, {found[name]:.1e} ({name})")
    print(f"{torch.cuda.get_device_name()}: {worst:.1e} at worst")
    if options.write:
        numbers = {7: "seven", 13: "thirteen"}
        n_estimators, n_problems = (numbers.get(n, str(n)) for n in (len(found), len(PROBLEMS)))
        text = paragraph(
            f"Predictions, surfaces, intervals and noise of {n_estimators} estimators on "
            f"{n_problems} problems differ by {worst:.0e} at most."
        )
        write_section("agreement on a GPU", text)
    sys.exit(worst > TOLERANCE)


if __name__ == "__main__":
    main()
