"""Problems of data beyond memory, from moments or from the inputs where these are at hand.

Where ``X'Y`` does not fit in memory, it is whitened part by part, and Z is kept on disk.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..core.samples import Inputs
from ..core.slabs import forget
from ..core.spectral import (
    Spectral,
    Whitened,
    spectral_from_moments,
    squares_keep_digits,
    whiten_moments,
)
from .moments import Moments
from .reading import Box
from .source import Source

__all__ = ["spectral_from_source", "whiten_source"]


def whiten_source(
    source: Source,
    alpha: float,
    *,
    solver: str = "auto",
    fit_intercept: bool = True,
    response_grams: bool = False,
) -> Whitened:
    """The problem for one penalty.

    Z is in a temporary file where ``X'Y`` does not fit in memory. The file has no name and goes
    with the last reference to Z.
    """
    wide = source.is_wide and not response_grams
    moments = _moments_of(source, alpha, solver, fit_intercept, response_grams, alone=wide)
    if wide:
        return _joined(source, _parts(source, moments, alpha, solver, fit_intercept))
    if moments is None:
        return _problem_of(source, alpha, solver, fit_intercept, response_grams).at(alpha)
    return whiten_moments(moments.centred(fit_intercept), alpha, solver=solver)


def spectral_from_source(source: Source, *, min_alpha: float, fit_intercept: bool) -> Spectral:
    """The problem for all penalties of at least `min_alpha`, with ``X'Y`` in memory."""
    moments = _moments_of(source, min_alpha, "auto", fit_intercept)
    if moments is None:
        return _problem_of(source, min_alpha, "auto", fit_intercept)
    return spectral_from_moments(moments.centred(fit_intercept), warn_below=min_alpha)


def _moments_of(
    source: Source,
    alpha: float,
    solver: str,
    fit_intercept: bool,
    response_grams: bool = False,
    *,
    alone: bool = False,
) -> Moments | None:
    """The moments (of the inputs alone, where the outputs are wide) that the problem comes from.

    None where the inputs are at hand and are decomposed themselves: on request, where there are
    more of them than samples, and where ``X'X`` would lose too many digits, which costs one more
    pass over the outputs.
    """
    can_decompose = source.has_inputs and solver in ("auto", "svd")
    if can_decompose and (solver == "svd" or source.n_samples < source.n_features):
        return None
    moments = source.input_moments() if alone else source.moments(response_grams)
    if can_decompose and not squares_keep_digits(moments.centred(fit_intercept), alpha):
        return None
    return moments


def _inputs_of(source: Source, alpha: float, solver: str, fit_intercept: bool) -> Inputs:
    inputs = Inputs.of(
        source.inputs(),
        source.weights,
        min_alpha=alpha,
        solver=solver,
        fit_intercept=fit_intercept,
    )
    return replace(inputs, dtype=source.dtype)


def _problem_of(
    source: Source, alpha: float, solver: str, fit_intercept: bool, response_grams: bool = False
) -> Spectral:
    inputs = _inputs_of(source, alpha, solver, fit_intercept)
    ((_, sums),) = source.responses(inputs.basis, response_grams=response_grams)
    return inputs.problem(sums)


def _parts(
    source: Source, moments: Moments | None, alpha: float, solver: str, fit_intercept: bool
) -> Iterator[tuple[Box, Whitened]]:
    """Problems of parts of the outputs: columns of ``Z = L^-1 X'Y`` do not know of each other."""
    max_entries = source.max_bytes // 128
    if moments is None:
        inputs = _inputs_of(source, alpha, solver, fit_intercept)
        for box, sums in source.responses(inputs.basis, max_entries=max_entries):
            yield box, inputs.problem(sums).at(alpha)
        return
    for box, part in source.output_blocks(max_entries, moments):
        yield box, whiten_moments(part.centred(fit_intercept), alpha, solver=solver)


def _joined(source: Source, parts: Iterator[tuple[Box, Whitened]]) -> Whitened:
    Z, mean_y, squares = None, np.empty(source.output_shape), np.empty(source.output_shape)
    residual = norm = 0.0
    for box, part in parts:
        if Z is None:
            Z = _on_disk((part.Z.shape[0], *source.output_shape))
        Z[(slice(None), *box)] = part.Z
        forget(Z)
        assert part.hat is not None
        mean_y[box], squares[box] = part.mean_y, part.hat.squares
        residual, norm = residual + part.residual, norm + part.norm
    assert part.hat is not None
    hat = replace(part.hat, squares=squares)
    return replace(part, Z=Z, mean_y=mean_y, residual=residual, norm=norm, hat=hat)


def _on_disk(shape: tuple[int, ...]) -> np.memmap:
    with tempfile.TemporaryFile(prefix="holrr-") as file:  # the memory map keeps it alive
        return np.memmap(file, dtype=np.float64, mode="w+", shape=shape)
