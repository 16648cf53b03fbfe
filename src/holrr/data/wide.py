"""Problems whose ``X'Y`` does not fit in memory: whitened part by part, Z kept on disk."""

from __future__ import annotations

import tempfile
from dataclasses import replace

import numpy as np

from ..core.slabs import forget
from ..core.spectral import Whitened, whiten_moments
from .moments import Moments
from .source import Source

__all__ = ["whiten_source"]


def whiten_source(
    source: Source, alpha: float, *, solver: str = "auto", fit_intercept: bool = True
) -> Whitened:
    """The problem of all outputs from those of parts of them, with Z in a temporary file.

    Each part is whitened by itself: the columns of ``Z = L^-1 X'Y`` do not know of each other. The
    file has no name and goes with the last reference to Z.
    """
    first: Moments | None = None
    Z, mean_y = None, np.empty(source.output_shape)
    residual = norm = 0.0
    for box, part in source.output_blocks(source.max_bytes // 128):
        first = part if first is None else first
        # One and the same factorisation for all parts, to the last bit.
        part = replace(part, Sxx=first.Sxx, mean_x=first.mean_x, weight=first.weight)
        problem = whiten_moments(part.centred(fit_intercept), alpha, solver=solver)
        if Z is None:
            Z = _on_disk((problem.Z.shape[0], *source.output_shape))
        Z[(slice(None), *box)] = problem.Z
        forget(Z)
        mean_y[box] = problem.mean_y
        residual, norm = residual + problem.residual, norm + problem.norm
    return replace(problem, Z=Z, mean_y=mean_y, residual=residual, norm=norm)


def _on_disk(shape: tuple[int, ...]) -> np.memmap:
    file = tempfile.TemporaryFile(prefix="holrr-")  # noqa: SIM115 (lives as long as the array)
    return np.memmap(file, dtype=np.float64, mode="w+", shape=shape)
