"""Graphs of the transformers of this library, steps before a model in a pipeline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..data.delays import Delayer
from ..data.labels import Labels
from ..data.scaling import Standardizer, scaling_of
from ._graph import Graph
from ._model import column_counts, join

__all__ = ["TRANSFORMERS", "add_transformer", "check_transformer", "n_columns_out"]

TRANSFORMERS = (Standardizer, Delayer)


def check_transformer(step: Any) -> None:
    """Raise a ValueError if a fitted transformer cannot be exported."""
    if isinstance(step, Standardizer) and not step.scaling_:
        raise ValueError(
            "Standardizer(by_group=True) cannot be exported, since a graph has no groups. "
            "Standardize the inputs before the graph."
        )


def n_columns_out(step: Any) -> int:
    """Return the number of output columns of a transformer."""
    n = int(step.n_features_in_)
    return n * step.delays_.size if isinstance(step, Delayer) else n


def add_transformer(graph: Graph, step: Any, inputs: Sequence[str], dtype: np.dtype) -> str:
    """Add a fitted transformer to a graph.

    Parameters
    ----------
    graph : Graph
    step : transformer
        One of `TRANSFORMERS`.
    inputs : sequence of str
        Names of the inputs, one or one for each block, of floating-point type `dtype`.
    dtype : dtype

    Returns
    -------
    str
        The name of a matrix. Its columns are in the order in which the next step flattens inputs
        with modes.
    """
    labels: Labels = step.labels_ or Labels()
    X = join(graph, inputs, column_counts(labels, step.n_features_in_, len(inputs)))
    if isinstance(step, Standardizer):
        return _standardized(graph, X, step, dtype)
    return _delayed(graph, X, step, [math.prod(grid.shape) for grid in labels.inputs], dtype)


def _standardized(graph: Graph, X: str, step: Standardizer, dtype: np.dtype) -> str:
    mean, divisor = scaling_of(step)
    high = mean.astype(dtype)
    X = graph.node("Sub", X, graph.constant(high))
    low = (mean - high).astype(dtype)  # the rest of the mean, beyond float32
    if np.any(low != 0):  # features without values are NaN
        X = graph.node("Sub", X, graph.constant(np.where(np.isnan(low), 0, low)))
    return graph.node("Div", X, graph.constant(divisor.astype(dtype)))


def _delayed(graph: Graph, X: str, step: Delayer, sizes: list[int], dtype: np.dtype) -> str:
    """Add delayed inputs; all samples are one run.

    The columns are in the order of the delays, block by block.
    """
    ends = np.cumsum(sizes or [step.n_features_in_])
    axis, fill = graph.constant(np.array([1], dtype=np.int64)), np.array(step.fill, dtype=dtype)
    parts = []
    for start, stop in zip([0, *ends[:-1]], ends, strict=True):
        bounds = (graph.constant(np.array([int(k)], dtype=np.int64)) for k in (start, stop))
        block = X if len(ends) == 1 else graph.node("Slice", X, *bounds, axis)
        parts += [_shifted(graph, block, int(delay), fill) for delay in step.delays_]
    return parts[0] if len(parts) == 1 else graph.node("Concat", *parts, axis=1)


def _shifted(graph: Graph, X: str, delay: int, fill: np.ndarray) -> str:
    """Add the rows of `delay` samples before, padded and truncated to the number of rows."""
    if delay == 0:
        return X
    pads = [delay, 0, 0, 0] if delay > 0 else [0, 0, -delay, 0]
    padded = graph.node(
        "Pad", X, graph.constant(np.array(pads, dtype=np.int64)), graph.constant(fill)
    )
    first, rows = (graph.constant(np.array([k], dtype=np.int64)) for k in (max(-delay, 0), 0))
    # From `first` on, as many rows as X has; the shape of X is known only at run time.
    n = graph.node("Gather", graph.node("Shape", X), rows, axis=0)
    return graph.node("Slice", padded, first, graph.node("Add", n, first), rows)
