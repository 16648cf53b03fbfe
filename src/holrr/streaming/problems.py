"""Ridge problems of streams, from their moments or from inputs that fit in memory.

If ``X'Y`` does not fit in memory, it is whitened in parts, and Z is stored on disk.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from ..core.moments import check_sizes
from ..core.sparse import is_sparse
from ..core.spectral import (
    Inputs,
    Spectral,
    Whitened,
    spectral_from_moments,
    squares_keep_digits,
    whiten_moments,
)
from ..core.tensor import release_pages
from .moments import Moments
from .reading import Box
from .stream import Stream

__all__ = ["spectral_from_stream", "whiten_stream"]


def whiten_stream(
    stream: Stream,
    alpha: float,
    *,
    fit_intercept: bool = True,
    response_grams: bool = False,
) -> Whitened:
    """Return the problem for one penalty.

    Z is in a temporary file if ``X'Y`` does not fit in memory. The file has no name, and is deleted
    with the last reference to Z.
    """
    wide = stream.is_wide and not response_grams
    moments = _moments_of(stream, alpha, fit_intercept, response_grams, alone=wide)
    if moments is not None and not wide:
        moments = moments.centred(fit_intercept)  # X'X is stored once, and once more in the solver
        return whiten_moments(moments, alpha)
    most = stream.max_bytes // 128 if wide else None
    parts: Iterable[tuple[Box, Whitened]]
    if moments is None:
        problems = _problems(stream, alpha, fit_intercept, response_grams, most)
        parts = ((box, problem.at(alpha)) for box, problem in problems)
    else:
        # The columns of ``Z = L^-1 X'Y`` are independent.
        assert most is not None
        blocks = stream.output_blocks(most, moments)
        whiten = partial(whiten_moments, alpha=alpha)
        parts = ((box, whiten(part.centred(fit_intercept))) for box, part in blocks)
    if wide:
        return _joined(stream, parts)
    ((_, whole),) = parts
    return whole


def spectral_from_stream(
    stream: Stream, *, min_alpha: float, fit_intercept: bool, response_grams: bool = False
) -> Spectral:
    """Return the problem for all penalties of at least `min_alpha`, with ``X'Y`` in memory."""
    moments = _moments_of(stream, min_alpha, fit_intercept, response_grams)
    if moments is None:
        ((_, problem),) = _problems(stream, min_alpha, fit_intercept, response_grams)
        return problem
    return spectral_from_moments(moments.centred(fit_intercept), warn_below=min_alpha)


def _moments_of(
    stream: Stream,
    alpha: float,
    fit_intercept: bool,
    response_grams: bool = False,
    *,
    alone: bool = False,
) -> Moments | None:
    """Return the moments for the problem; with `alone`, of the inputs only (``X'Y`` is large).

    Returns None if the inputs are in memory and are decomposed directly: if there are more features
    than samples, or if ``X'X`` would lose too many digits. The last case costs one
    more pass over the outputs.
    """
    if stream.has_inputs and stream.n_samples < stream.n_features:
        return None
    moments = stream.input_moments() if alone else stream.moments(response_grams)
    if stream.has_inputs and not squares_keep_digits(moments.centred(fit_intercept), alpha):
        return None
    return moments


def _problems(
    stream: Stream,
    alpha: float,
    fit_intercept: bool,
    response_grams: bool = False,
    max_entries: int | None = None,
) -> Iterator[tuple[Box, Spectral]]:
    """Yield problems of parts of the outputs, or of all outputs, from decomposed inputs."""
    X = stream.inputs()
    entries = X.data if is_sparse(X) else X
    check_sizes(float(np.max(np.abs(entries), initial=0.0)), 0.0, 1.0)
    inputs = Inputs.of(
        X,
        stream.weights,
        min_alpha=alpha,
        fit_intercept=fit_intercept,
    )
    inputs = replace(inputs, dtype=stream.dtype)
    for box, sums in stream.responses(
        inputs.basis, max_entries=max_entries, response_grams=response_grams
    ):
        yield box, inputs.problem(sums)


def _joined(stream: Stream, parts: Iterable[tuple[Box, Whitened]]) -> Whitened:
    Z, mean_y, squares = None, np.empty(stream.output_shape), np.empty(stream.output_shape)
    residual = norm = 0.0
    for box, part in parts:
        if Z is None:
            Z = _on_disk((part.Z.shape[0], *stream.output_shape))
        Z[(slice(None), *box)] = part.Z
        release_pages(Z)
        mean_y[box], squares[box] = part.mean_y, part.squares
        residual, norm = residual + part.residual, norm + part.norm
    return replace(part, Z=Z, mean_y=mean_y, residual=residual, norm=norm, squares=squares)


def _on_disk(shape: tuple[int, ...]) -> np.memmap:
    with tempfile.TemporaryFile(prefix="holrr-") as file:  # the map keeps the file open
        return np.memmap(file, dtype=np.float64, mode="w+", shape=shape)
