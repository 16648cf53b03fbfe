"""Problems whose ``X'Y`` does not fit in memory: whitened part by part, Z kept on disk."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from ..core.moments import Moments
from ..core.slabs import forget
from ..core.spectral import Whitened, whiten_moments
from .reading import Box

__all__ = ["boxes", "whiten_parts"]


def boxes(shape: Sequence[int], max_entries: int) -> Iterator[Box]:
    """Slices that cover a tensor, each of `max_entries` entries or fewer, but at least one.

    The leading modes are cut first, so that a box is made of long consecutive runs.

    Examples
    --------
    >>> [b[0] for b in boxes((5, 2), 4)]
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    >>> len(list(boxes((5, 2), 1)))
    10
    """
    if not shape:
        yield ()
        return
    rest = math.prod(shape[1:])
    step = max(1, max_entries // rest)
    for start in range(0, shape[0], step):
        here = slice(start, min(start + step, shape[0]))
        if step == 1 and rest > max_entries:
            yield from ((here, *box) for box in boxes(shape[1:], max_entries))
        else:
            yield (here, *(slice(0, d) for d in shape[1:]))


def whiten_parts(
    parts: Iterable[tuple[Box, Moments]],
    output_shape: tuple[int, ...],
    alpha: float,
    *,
    solver: str,
    fit_intercept: bool,
) -> Whitened:
    """The problem of all outputs from those of parts of them, with Z in a temporary file.

    Each part is whitened by itself: the columns of ``Z = L^-1 X'Y`` do not know of each other. The
    file has no name and goes with the last reference to Z.
    """
    first: Moments | None = None
    Z, mean_y = None, np.empty(output_shape)
    residual = norm = 0.0
    for box, part in parts:
        first = part if first is None else first
        # One and the same factorisation for all parts, to the last bit.
        part = replace(part, Sxx=first.Sxx, mean_x=first.mean_x, weight=first.weight)
        problem = whiten_moments(part, alpha, solver=solver, fit_intercept=fit_intercept)
        if Z is None:
            Z = _on_disk((problem.Z.shape[0], *output_shape))
        Z[(slice(None), *box)] = problem.Z
        forget(Z)
        mean_y[box] = problem.mean_y
        residual, norm = residual + problem.residual, norm + problem.norm
    return replace(problem, Z=Z, mean_y=mean_y, residual=residual, norm=norm)


def _on_disk(shape: tuple[int, ...]) -> np.memmap:
    file = tempfile.TemporaryFile(prefix="holrr-")  # noqa: SIM115 (lives as long as the array)
    return np.memmap(file, dtype=np.float64, mode="w+", shape=shape)
