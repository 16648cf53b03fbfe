"""A process that forks writers on demand, so that 100 of them cost one import of the library.

For each line "KIND PATH FIRST" on stdin a child saves, from number FIRST on, one object after the
other at PATH and never ends by itself. Its process id and then the number of every save that has
returned go to stdout.
"""

from __future__ import annotations

import itertools
import os
import sys

import numpy as np
import skops.io  # noqa: F401 (once, not in each child)

from holrr import HOLRR, Moments

SIZE = 60


def numbered(kind: str, k: int):
    """A model or moments all of whose arrays hold the number k."""
    if kind == "moments":
        full = lambda *shape: np.full(shape, float(k))  # noqa: E731
        return Moments(k, float(k), full(SIZE), full(SIZE), full(SIZE, SIZE), full(SIZE, SIZE), k)
    model = HOLRR(alpha=float(k))
    model.coefficients_ = [np.full((SIZE, SIZE), float(k)), {"second": np.full(SIZE, float(k))}]
    return model


def number_of(value) -> int:
    """The number of an object, after a look at whether all of it belongs to that number."""
    if isinstance(value, Moments):
        k = value.n_samples
        arrays = [value.mean_x, value.mean_y, value.Sxx, value.Sxy]
    else:
        k = int(value.alpha)
        arrays = [value.coefficients_[0], value.coefficients_[1]["second"]]
    assert all((a == k).all() and a.size in (SIZE, SIZE * SIZE) for a in arrays)
    return k


def write_for_ever(kind: str, path: str, first: int) -> None:
    for k in itertools.count(first):
        numbered(kind, k).save(path)
        os.write(1, f"{k}\n".encode())


def main() -> None:
    for line in sys.stdin:
        kind, path, first = line.split()
        pid = os.fork()
        if pid == 0:
            os.write(1, f"{os.getpid()}\n".encode())
            write_for_ever(kind, path, int(first))
        os.waitpid(pid, 0)
        os.write(1, b"end\n")


if __name__ == "__main__":
    main()
