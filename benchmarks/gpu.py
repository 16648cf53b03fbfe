"""Fits and searches on a CUDA device: time beside other work, and agreement with NumPy.

    python benchmarks/gpu.py [--quick] [--repeats 15]

The first table has medians of calls that take turns after a warm-up, with the device synchronised
before and after each: fits beside the bare product X'Y or the Cholesky factor of the kernel, and
searches over 13 penalties and all ranks beside himalaya's search over the penalties. The second
table has the largest relative difference of predictions, noise and error surfaces between arrays on
the device and NumPy arrays.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from sklearn.base import clone

from common import medians, options_of, show, size_of
from holrr import HOLRR, HOLRRCV, LRR, LRRCV, RLS, RLSCV, KernelHOLRR, KernelHOLRRCV

SIZES = [(200_000, 256, (64, 64)), (50_000, 128, (32, 32, 32)), (1_000_000, 64, (32, 32))]
SEARCHES = [(2000, 50, (20, 20, 20)), (20_000, 256, (64, 64))]
ALPHAS = np.logspace(-3, 3, 13)


def data(
    n: int, d0: int, shape: tuple[int, ...], device: str = "cuda"
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return inputs, and outputs of rank 8 in each mode with noise as strong as the signal."""
    g = torch.Generator(device=device).manual_seed(0)
    normal = partial(torch.randn, generator=g, device=device, dtype=torch.float64)
    X = normal(n, d0)
    coef = normal(*(8 for _ in (d0, *shape)))
    for mode, d in enumerate((d0, *shape)):
        coef = torch.movedim(torch.tensordot(normal(d, 8), coef, dims=([1], [mode])), 0, mode)
    Y = (X @ coef.reshape(d0, -1)).div_(float(coef.norm()) / (coef.numel() / d0) ** 0.5)
    Y += normal(*Y.shape)
    return X, Y.reshape(n, *shape)


def synchronised(call: Callable[[], Any]) -> Callable[[], None]:
    def run() -> None:
        torch.cuda.synchronize()
        call()
        torch.cuda.synchronize()

    return run


def pairs(few: int) -> Iterator[tuple[str, Callable, Callable]]:
    """Yield the name, our call and that of the peer; `few` divides the numbers of samples."""
    for n, d0, shape in SIZES:
        for dtype in (torch.float64, torch.float32):
            torch.cuda.empty_cache()
            X, Y = (A.to(dtype) for A in data(n // few, d0, shape))
            name = f"HOLRR.fit / X'Y, {str(dtype)[6:]}, {size_of(n // few, d0, shape)}"
            yield name, partial(HOLRR(rank=8).fit, X, Y), partial(torch.matmul, X.T, Y.flatten(1))
    if find_spec("himalaya"):
        from himalaya.backend import set_backend
        from himalaya.ridge import RidgeCV

        set_backend("torch_cuda")
        for n, d0, shape in SEARCHES:
            X, Y = data(n // few, d0, shape)
            peer = partial(RidgeCV(alphas=ALPHAS, cv=5).fit, X, Y.flatten(1))
            for selection in ("stack", "min"):
                name = f"HOLRRCV({selection}) / himalaya RidgeCV, {size_of(n // few, d0, shape)}"
                yield name, partial(HOLRRCV(ALPHAS, cv=5, selection=selection).fit, X, Y), peer
    for n in (3000, 20_000):
        torch.cuda.empty_cache()
        X, Y = data(n // few, 10, (10, 10, 10))
        K = torch.cdist(X, X).square_().mul_(-0.1).exp_()
        K.diagonal().add_(1.0)
        name = f"KernelHOLRR.fit / Cholesky, {size_of(n // few, 10, (10, 10, 10))}"
        yield name, partial(KernelHOLRR(rank=5).fit, X, Y), partial(torch.linalg.cholesky, K)


def times(quick: bool, repeats: int) -> Iterator[list[str]]:
    for name, *calls in pairs(100 if quick else 1):
        ours, theirs = medians([synchronised(call) for call in calls], repeats)
        yield [name, f"{1e3 * ours:.2f}", f"{1e3 * theirs:.2f}", f"{ours / theirs:.2f}"]


# ---------------------------------------------------------------- agreement

# Sizes on both sides of that up to which the host computes the fit.
PROBLEMS = [(300, 20, (6, 5)), (60, 90, (7, 4)), (400, 12, (4, 3, 5)), (700, 300, (9, 8))]
ESTIMATORS = [
    RLS(),
    LRR(rank=2),
    HOLRR(rank=3),
    KernelHOLRR(rank=3, kernel="rbf"),
    RLSCV(),
    LRRCV(),
    HOLRRCV(),
    HOLRRCV(selection="min"),
    HOLRRCV(selection="1se"),
    KernelHOLRRCV([0.1, 1.0, 10.0], kernel="rbf"),
]


def on_host(values: Any) -> np.ndarray:
    return values.cpu().numpy() if torch.is_tensor(values) else np.asarray(values)


def agreement(quick: bool, device: str = "cuda") -> Iterator[list[str]]:
    """Yield the largest relative difference of each estimator over the problems."""
    problems = [data(*size, device="cpu") for size in PROBLEMS[: 1 if quick else None]]
    for estimator in ESTIMATORS:
        worst = 0.0
        for X, Y in problems:
            here = clone(estimator).fit(X.numpy(), Y.numpy())
            there = clone(estimator).fit(X.to(device), Y.to(device))
            found = [(here.predict(X.numpy()), there.predict(X.to(device)))]
            found.append((here.noise_, there.noise_))
            if hasattr(here, "cv_results_"):
                found.append((here.cv_results_["mean_mse"], there.cv_results_["mean_mse"]))
            for a, b in (tuple(map(on_host, pair)) for pair in found):
                # A search that leaves out models on one side has NaN there.
                worst = max(worst, float(np.nanmax(np.abs(a - b)) / np.nanmax(np.abs(a))))
        yield [repr(estimator), f"{worst:.0e}"]


def main(arguments: list[str] | None = None) -> None:
    parser = options_of(__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    args = parser.parse_args(arguments)
    warnings.simplefilter("ignore")  # of penalties at the edge of a grid
    head = ["ours / theirs", "ours, ms", "theirs, ms", "ratio"]
    show(torch.cuda.get_device_name(), head, times(args.quick, args.repeats))
    show("Largest relative difference to NumPy", ["estimator", ""], agreement(args.quick))


if __name__ == "__main__":
    main()
