"""Fits and searches on a CUDA device, compared with bare products, factorisations and himalaya.

    python benchmarks/gpu.py [--quick] [--repeats N]

The script prints a Markdown table of medians over repeats. The rows are those of
``benchmarks/table.py --gpu``, which writes them into docs/developer_benchmarks.md. The two
sides take turns after a warm-up, and the device is synchronised before and after each call. The
rows of himalaya are left out if it is not installed.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable, Iterator

import numpy as np
import torch

from holrr import HOLRR, HOLRRCV, KernelHOLRR

SIZES = [(200_000, 256, (64, 64)), (50_000, 128, (32, 32, 32)), (1_000_000, 64, (32, 32))]
SMALL = (100, 10, (10, 10, 10))
SEARCHES = [(2000, 50, (20, 20, 20)), (20_000, 256, (64, 64))]
ALPHAS = np.logspace(-3, 3, 13)
# Target ratios of fits in both precisions, of searches and of kernels.
ASKED = {torch.float64: (1.5, 1.7, 2.2), torch.float32: (1.6, 1.6, 2.2)}

# Label, our seconds, their seconds, and target: a ratio or, without a peer, seconds.
Row = tuple[str, float, float | None, float]


def seconds(f: Callable[[], object]) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    f()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def medians(functions: list[Callable[[], object]], repeats: int) -> list[float]:
    """Return the median seconds of each function; the functions take turns."""
    for f in functions:
        f()
    times = [[seconds(f) for f in functions] for _ in range(repeats)]
    return [statistics.median(column) for column in zip(*times, strict=True)]


def data(n: int, d0: int, shape: tuple[int, ...]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return inputs, and outputs of rank 8 in each mode with noise as strong as the signal."""
    g = torch.Generator(device="cuda").manual_seed(0)
    normal = lambda *dims: torch.randn(*dims, generator=g, device="cuda", dtype=torch.float64)  # noqa: E731
    X = normal(n, d0)
    coef = normal(*(8 for _ in (d0, *shape)))
    for mode, d in enumerate((d0, *shape)):
        coef = torch.movedim(torch.tensordot(normal(d, 8), coef, dims=([1], [mode])), 0, mode)
    Y = (X @ coef.reshape(d0, -1)).div_(float(coef.norm()) / (coef.numel() / d0) ** 0.5)
    Y += torch.randn(Y.shape, generator=g, device="cuda", dtype=torch.float64)
    return X, Y.reshape(n, *shape)


def label(n: int, d0: int, shape: tuple[int, ...]) -> str:
    return f"{n} x {d0} -> {'x'.join(map(str, shape))}"


def linear_rows(few: int, repeats: int) -> Iterator[Row]:
    for i, (n, d0, shape) in enumerate(SIZES):
        for dtype, asked in ASKED.items():
            torch.cuda.empty_cache()
            kind = str(dtype).removeprefix("torch.")
            name = f"HOLRR.fit / X'Y, {kind}, {label(n // few, d0, shape)}"
            yield name, *fit_times(n // few, d0, shape, dtype, repeats), asked[i]
    X, Y = data(*SMALL)
    yield f"HOLRR.fit, {label(*SMALL)}", medians([lambda: HOLRR(8).fit(X, Y)], 40)[0], None, 2e-3


def fit_times(
    n: int, d0: int, shape: tuple[int, ...], dtype: torch.dtype, repeats: int
) -> list[float]:
    X, Y = (A.to(dtype) for A in data(n, d0, shape))
    flat = Y.reshape(n, -1)
    return medians([lambda: HOLRR(rank=8).fit(X, Y), lambda: X.T @ flat], repeats)


def search_rows(few: int, repeats: int) -> Iterator[Row]:
    """Yield searches over all ranks and 13 penalties, and himalaya's over 13 penalties."""
    try:
        from himalaya.backend import set_backend
        from himalaya.ridge import RidgeCV
    except ImportError:
        return
    set_backend("torch_cuda")
    for (n, d0, shape), asked in zip(SEARCHES, (2.0, 0.5), strict=True):
        X, Y = data(n // few, d0, shape)
        flat = Y.reshape(len(Y), -1)
        peer = lambda: RidgeCV(alphas=ALPHAS, cv=5).fit(X, flat)  # noqa: B023, E731
        for selection in ("stack", "min"):
            ours = lambda: HOLRRCV(ALPHAS, cv=5, selection=selection).fit(X, Y)  # noqa: B023, E731
            n_times, where = max(3, repeats // 3), label(len(X), d0, shape)
            ways = {
                "in turn": medians([peer, ours], n_times),
                "each by itself": [medians([f], n_times)[0] for f in (peer, ours)],
            }
            for way, (theirs, mine) in ways.items():
                name = f"HOLRRCV({selection}) / himalaya RidgeCV, {way}, {where}"
                yield name, mine, theirs, asked


def kernel_rows(few: int, repeats: int) -> Iterator[Row]:
    for n, asked in ((3000, 6.0), (20_000, 1.7)):
        torch.cuda.empty_cache()
        name = f"KernelHOLRR.fit / Cholesky, {label(n // few, 10, (10, 10, 10))}"
        yield name, *kernel_times(n // few, max(3, repeats // 3)), asked


def kernel_times(n: int, repeats: int) -> list[float]:
    X, Y = data(n, 10, (10, 10, 10))
    K = torch.cdist(X, X).square_().mul_(-0.1).exp_()
    K.diagonal().add_(1.0)
    return medians(
        [lambda: KernelHOLRR(rank=5).fit(X, Y), lambda: torch.linalg.cholesky(K)], repeats
    )


def rows(quick: bool = False, repeats: int = 15) -> Iterator[Row]:
    """Yield all rows; `quick` uses a hundredth of the samples."""
    few = 100 if quick else 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of penalties at the edge of a grid
        for part in (linear_rows, search_rows, kernel_rows):
            yield from part(few, repeats)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a hundredth of the samples")
    parser.add_argument("--repeats", type=int, default=15)
    args = parser.parse_args()
    print(
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {time.strftime('%Y-%m-%d')}\n"
    )
    print("| | ours, ms | theirs, ms | ratio | asked |")
    print("|:--|--:|--:|--:|--:|")
    for name, ours, theirs, asked in rows(args.quick, args.repeats):
        if theirs is None:
            print(f"| {name} | {ours * 1e3:.2f} | | | {asked * 1e3:g} ms |", flush=True)
        else:
            cells = f"{ours * 1e3:.2f} | {theirs * 1e3:.2f} | {ours / theirs:.2f} | {asked:g}"
            print(f"| {name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
