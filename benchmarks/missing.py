"""Fits around missing outputs, as a ratio to the fit of complete outputs.

    python benchmarks/missing.py [--quick] [--threads 2]

HOLRR at rank 5, (2000, 50, 20x20x20), with 1 and 30 percent of the entries missing at random, and
with a tenth of the outputs missing for a third of the samples. The fits take turns and medians are
compared; on a busy machine the ratio of CPU times, with one thread, says more. Without --quick it
takes about half a minute.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
from threadpoolctl import threadpool_limits

from holrr import HOLRR
from holrr.datasets import make_tensor_regression


def outputs(Y: np.ndarray, seed: int = 0) -> dict[str, np.ndarray]:
    """The outputs as they are, and with holes."""
    rng = np.random.default_rng(seed)
    draws = rng.random(Y.shape, dtype=np.float32)
    sensors = rng.random(Y.shape[1:]) < 0.1
    blocked = Y.copy()
    blocked[: len(Y) // 3, sensors] = np.nan
    holes = {f"{share:.0%} at random": np.where(draws < share, np.nan, Y) for share in (0.01, 0.3)}
    return {"complete": Y, **holes, "10% of the outputs, a third of the samples": blocked}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small problem, once")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    n, d0, shape, repeats = (200, 10, (8, 8, 8), 1) if options.quick else (2000, 50, (20,) * 3, 5)
    X, Y = make_tensor_regression(
        n, n_features=d0, output_shape=shape, rank=(5,) * 4, snr=1.0, random_state=0
    )
    cases = outputs(Y)
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    cpu: dict[str, list[float]] = {name: [] for name in cases}
    rounds = {}
    with threadpool_limits(options.threads):
        HOLRR(rank=5).fit(X, Y)
        for _ in range(repeats):
            for name, holes in cases.items():
                start, used = time.perf_counter(), time.process_time()
                missing = "raise" if name == "complete" else "ignore"
                rounds[name] = HOLRR(rank=5, missing=missing).fit(X, holes).n_iter_
                seconds[name].append(time.perf_counter() - start)
                cpu[name].append(time.process_time() - used)
    bases = [statistics.median(times["complete"]) for times in (seconds, cpu)]
    print(f"HOLRR(rank=5), {n} samples, {d0} inputs, outputs {'x'.join(map(str, shape))}")
    for name in cases:
        medians = [statistics.median(times[name]) for times in (seconds, cpu)]
        wall, ratio = medians[0], [m / base for m, base in zip(medians, bases, strict=True)]
        print(
            f"{name:>44}  {wall:7.3f} s  ratio {ratio[0]:5.1f}, of CPU time {ratio[1]:5.1f}  "
            f"rounds {rounds[name]}"
        )


if __name__ == "__main__":
    main()
