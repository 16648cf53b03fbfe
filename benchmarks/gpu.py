"""HOLRR's fit on a CUDA device against the bare product X'Y there, in both precisions.

    python benchmarks/gpu.py [--quick]

Prints a Markdown table: medians over repeats, the two taken in turn, after a warm-up, with the
device synchronised around each.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch

from holrr import HOLRR

SIZES = [(200_000, 256, (64, 64)), (50_000, 128, (32, 32, 32)), (1_000_000, 64, (32, 32))]
SMALL = (100, 10, (10, 10, 10))


def seconds(f) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    f()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def data(n: int, d0: int, shape: tuple[int, ...]) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs, and outputs of multilinear rank 8 in each mode with as much noise as signal."""
    g = torch.Generator(device="cuda").manual_seed(0)
    normal = lambda *dims: torch.randn(*dims, generator=g, device="cuda", dtype=torch.float64)  # noqa: E731
    X = normal(n, d0)
    coef = normal(*(8 for _ in (d0, *shape)))
    for mode, d in enumerate((d0, *shape)):
        coef = torch.movedim(torch.tensordot(normal(d, 8), coef, dims=([1], [mode])), 0, mode)
    Y = (X @ coef.reshape(d0, -1)).div_(float(coef.norm()) / (coef.numel() / d0) ** 0.5)
    Y += torch.randn(Y.shape, generator=g, device="cuda", dtype=torch.float64)
    return X, Y.reshape(n, *shape)


def measure(n: int, d0: int, shape: tuple[int, ...], dtype: torch.dtype, repeats: int) -> str:
    X, Y = (A.to(dtype) for A in data(n, d0, shape))
    flat = Y.reshape(n, -1)
    product, fit = lambda: X.T @ flat, lambda: HOLRR(rank=8).fit(X, Y)
    product(), fit()
    times = [(seconds(product), seconds(fit)) for _ in range(repeats)]
    p, f = (statistics.median(column) for column in zip(*times, strict=True))
    outputs = "x".join(map(str, shape))
    kind = str(dtype).removeprefix("torch.")
    return f"| {n} | {d0} | {outputs} | {kind} | {p * 1e3:.2f} | {f * 1e3:.2f} | {f / p:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a hundredth of the samples")
    parser.add_argument("--repeats", type=int, default=15)
    args = parser.parse_args()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}\n")
    print("| N | d0 | outputs | type | X'Y, ms | HOLRR fit, ms | ratio |")
    print("|--:|--:|:-:|:-:|--:|--:|--:|")
    for n, d0, shape in [*SIZES, SMALL]:
        for dtype in (torch.float64, torch.float32):
            few = n // 100 if args.quick and n > 1000 else n
            print(measure(few, d0, shape, dtype, args.repeats))
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
