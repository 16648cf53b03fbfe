"""Transformers as graphs, before a model in a pipeline.

These are `Standardizer` and `Delayer`, and two of scikit-learn: the graphs of skl2onnx for them do
not run in float64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import PolynomialFeatures

from ..data.delays import Delayer
from ..data.labels import Labels
from ..data.scaling import Standardizer
from ._graph import Graph, cast
from ._model import column_counts, join

__all__ = ["SKLEARN", "TRANSFORMERS", "add_sklearn", "add_transformer", "check_transformer"]
__all__ += ["n_columns_out"]

TRANSFORMERS = (Standardizer, Delayer)
# Transformers of scikit-learn.
SKLEARN = (SimpleImputer, PolynomialFeatures)


def check_transformer(step: Any) -> None:
    """Raise a ValueError where a fitted transformer has no graph."""
    if isinstance(step, Standardizer) and not step.scaling_:
        raise ValueError(
            "Standardizer(by_group=True) cannot be exported: it scales each group of the data that "
            "it is given, and a graph has no groups. Standardize the inputs before the graph."
        )


def n_columns_out(step: Any) -> int:
    """Number of columns that a transformer gives."""
    if isinstance(step, PolynomialFeatures):
        return int(step.n_output_features_)
    if isinstance(step, SimpleImputer):
        n_more = 0 if step.indicator_ is None else step.indicator_.features_.size
        return int(_imputed_columns(step).size + n_more)
    n = int(step.n_features_in_)
    return n * step.delays_.size if isinstance(step, Delayer) else n


def add_transformer(graph: Graph, step: Any, inputs: Sequence[str], dtype: np.dtype) -> str:
    """Add a fitted transformer to a graph.

    Parameters
    ----------
    graph : Graph
    step : Standardizer or Delayer
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
    parts = step.scaling_.values()
    mean, spread = (np.concatenate([np.ravel(part[k]) for part in parts]) for k in (1, 2))
    high = mean.astype(dtype)
    X = graph.node("Sub", X, graph.constant(high))
    low = (mean - high).astype(dtype)  # what float32 leaves of the mean
    if np.any(low != 0):  # NaN, of features without values, is none
        X = graph.node("Sub", X, graph.constant(np.where(np.isnan(low), 0, low)))
    return graph.node("Div", X, graph.constant(spread.astype(dtype)))


def _delayed(graph: Graph, X: str, step: Delayer, sizes: list[int], dtype: np.dtype) -> str:
    """All samples are one run. The columns are in the order of the delays, block by block."""
    ends = np.cumsum(sizes or [step.n_features_in_])
    axis, fill = graph.constant(np.array([1], dtype=np.int64)), np.array(step.fill, dtype=dtype)
    parts = []
    for start, stop in zip([0, *ends[:-1]], ends, strict=True):
        bounds = (graph.constant(np.array([int(k)], dtype=np.int64)) for k in (start, stop))
        block = X if len(ends) == 1 else graph.node("Slice", X, *bounds, axis)
        parts += [_shifted(graph, block, int(delay), fill) for delay in step.delays_]
    return parts[0] if len(parts) == 1 else graph.node("Concat", *parts, axis=1)


def _shifted(graph: Graph, X: str, delay: int, fill: np.ndarray) -> str:
    """The rows of `delay` samples before, padded and cut to as many rows as there were."""
    if delay == 0:
        return X
    pads = [delay, 0, 0, 0] if delay > 0 else [0, 0, -delay, 0]
    padded = graph.node(
        "Pad", X, graph.constant(np.array(pads, dtype=np.int64)), graph.constant(fill)
    )
    first, rows = (graph.constant(np.array([k], dtype=np.int64)) for k in (max(-delay, 0), 0))
    # From `first`, as many rows as X has; the shape of X is not known before it is there.
    n = graph.node("Gather", graph.node("Shape", X), rows, axis=0)
    return graph.node("Slice", padded, first, graph.node("Add", n, first), rows)


# ---------------------------------------------------------------- transformers of scikit-learn


def add_sklearn(graph: Graph, step: Any, X: str, dtype: np.dtype) -> str:
    """Add a fitted transformer of scikit-learn, one of `SKLEARN`, to a graph.

    Parameters
    ----------
    graph : Graph
    step : SimpleImputer or PolynomialFeatures
    X : str
        Name of a matrix of type `dtype`.
    dtype : dtype

    Returns
    -------
    str
        The name of a matrix.
    """
    add = _imputed if isinstance(step, SimpleImputer) else _monomials
    return add(graph, step, X, dtype)


def _imputed_columns(step: SimpleImputer) -> np.ndarray:
    """The columns that an imputer keeps: those with a value in the fit, if not all."""
    values = step.statistics_.astype(np.float64)
    return np.flatnonzero(step.keep_empty_features | ~np.isnan(values))


def _imputed(graph: Graph, step: SimpleImputer, X: str, dtype: np.dtype) -> str:
    if isinstance(step.missing_values, (int, float)) and not np.isnan(step.missing_values):
        mask = graph.node("Equal", X, graph.constant(np.array(step.missing_values, dtype=dtype)))
    else:
        mask = graph.node("IsNaN", X)
    values = step.statistics_.astype(dtype)
    out = graph.node("Where", mask, graph.constant(values), X)
    kept = _imputed_columns(step)
    if kept.size < values.size:
        out = graph.node("Gather", out, graph.constant(kept.astype(np.int64)), axis=1)
    if step.indicator_ is None:
        return out
    columns = graph.constant(step.indicator_.features_.astype(np.int64))
    is_missing = cast(graph, graph.node("Gather", mask, columns, axis=1), dtype)
    return graph.node("Concat", out, is_missing, axis=1)


def _monomials(graph: Graph, step: PolynomialFeatures, X: str, dtype: np.dtype) -> str:
    """Products of columns, with a column of ones in the place of those that are left out."""
    powers = step.powers_
    n, degree = int(step.n_features_in_), max(1, int(powers.sum(axis=1).max()))
    places = np.full((len(powers), degree), n, dtype=np.int64)
    for row, power in zip(places, powers, strict=True):
        row[: power.sum()] = np.repeat(np.arange(n), power)
    pads = graph.constant(np.array([0, 0, 0, 1], dtype=np.int64))
    X = graph.node("Pad", X, pads, graph.constant(np.ones((), dtype)))
    out, *others = (
        graph.node("Gather", X, graph.constant(column.copy()), axis=1) for column in places.T
    )
    for other in others:
        out = graph.node("Mul", out, other)
    return out
