"""Graphs of transformers, the steps before a model in a pipeline.

The transformers are those of `holrr.data`, and two transformers of scikit-learn that skl2onnx
converts to graphs that do not run in float64.
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
from ..data.spectra import (
    RangeSelector,
    SavitzkyGolay,
    StandardNormalVariate,
    derivative_matrix,
    known_grids,
    spectral_axes,
)
from ._graph import Graph, cast, flatten, shape_of
from ._model import column_counts, join

__all__ = ["SKLEARN", "TRANSFORMERS", "add_sklearn", "add_transformer", "check_transformer"]
__all__ += ["n_columns_out"]

TRANSFORMERS = (Standardizer, Delayer, RangeSelector, SavitzkyGolay, StandardNormalVariate)
# Transformers of scikit-learn.
SKLEARN = (SimpleImputer, PolynomialFeatures)


def check_transformer(step: Any) -> None:
    """Raise a ValueError if a fitted transformer cannot be exported."""
    if isinstance(step, Standardizer) and not step.scaling_:
        raise ValueError(
            "Standardizer(by_group=True) cannot be exported, since a graph has no groups. "
            "Standardize the inputs before the graph."
        )


def n_columns_out(step: Any) -> int:
    """Return the number of output columns of a transformer."""
    if isinstance(step, PolynomialFeatures):
        return int(step.n_output_features_)
    if isinstance(step, SimpleImputer):
        n_more = 0 if step.indicator_ is None else step.indicator_.features_.size
        return int(_imputed_columns(step).size + n_more)
    n = int(step.n_features_in_)
    if isinstance(step, RangeSelector):
        return int(step.columns_.size)
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
    if isinstance(step, RangeSelector):
        return graph.node("Gather", X, graph.constant(step.columns_.astype(np.int64)), axis=1)
    if isinstance(step, (SavitzkyGolay, StandardNormalVariate)):
        return _along_spectra(graph, X, step, dtype)
    return _delayed(graph, X, step, [math.prod(grid.shape) for grid in labels.inputs], dtype)


def _standardized(graph: Graph, X: str, step: Standardizer, dtype: np.dtype) -> str:
    parts = step.scaling_.values()
    mean, spread = (np.concatenate([np.ravel(part[k]) for part in parts]) for k in (1, 2))
    high = mean.astype(dtype)
    X = graph.node("Sub", X, graph.constant(high))
    low = (mean - high).astype(dtype)  # the rest of the mean, beyond float32
    if np.any(low != 0):  # features without values are NaN
        X = graph.node("Sub", X, graph.constant(np.where(np.isnan(low), 0, low)))
    return graph.node("Div", X, graph.constant(spread.astype(dtype)))


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


# ---------------------------------------------------------------- spectra


def _along_spectra(graph: Graph, X: str, step: Any, dtype: np.dtype) -> str:
    """Add the transformation of each spectrum, in float64."""
    grids, cells = known_grids(step), (step.labels_ or Labels()).cells
    axes = dict(spectral_axes(step, grids))
    X = cast(graph, X, np.dtype(np.float64))
    order = None if cells is None else np.argsort(cells).astype(np.int64)
    if order is not None:  # the columns of a table, in the order of their levels
        X = graph.node("Gather", X, graph.constant(order), axis=1)
    parts, start = [], 0
    for grid in grids:
        size = math.prod(grid.shape)
        columns = graph.constant(np.arange(start, start + size, dtype=np.int64))
        block = X if len(grids) == 1 else graph.node("Gather", X, columns, axis=1)
        axis = axes.get(grid.name)
        if axis is not None:
            before, after = math.prod(grid.shape[:axis]), math.prod(grid.shape[axis + 1 :])
            shape = (before, grid.shape[axis], after)
            block = graph.node("Reshape", block, shape_of(graph, shape))
            if isinstance(step, SavitzkyGolay):
                S = graph.constant(derivative_matrix(step, grid.shape[axis]).T.copy())
                block = graph.node("MatMul", S, block)
            else:
                block = _standard_normal(graph, block, grid.shape[axis])
            block = flatten(graph, block, size)
        parts.append(block)
        start += size
    found = parts[0] if len(parts) == 1 else graph.node("Concat", *parts, axis=1)
    if order is not None:
        found = graph.node("Gather", found, graph.constant(np.argsort(order)), axis=1)
    return cast(graph, found, dtype)


def _standard_normal(graph: Graph, X: str, size: int) -> str:
    """Add deviations from the mean along the last axis but one, divided by their deviation."""

    def number(value: float) -> str:
        return graph.constant(np.array(value, dtype=np.float64))

    axis = graph.constant(np.array([2], dtype=np.int64))
    mean = graph.node("Div", graph.node("ReduceSum", X, axis, keepdims=1), number(float(size)))
    C = graph.node("Sub", X, mean)
    squares = graph.node("ReduceSum", graph.node("Mul", C, C), axis, keepdims=1)
    spread = graph.node("Sqrt", graph.node("Div", squares, number(size - 1.0)))
    # The deviations of a constant are rounding errors, and count as zero.
    rounding = graph.node("Mul", graph.node("Abs", mean), number(8 * np.finfo(float).eps))
    varies = graph.node("Greater", spread, rounding)
    found = graph.node("Div", C, graph.node("Where", varies, spread, number(1.0)))
    return graph.node("Where", varies, found, number(0.0))


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
    """Return the columns that an imputer keeps: columns with a value in the fit, or all."""
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
    """Add products of columns; a column of ones replaces columns that are left out."""
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
