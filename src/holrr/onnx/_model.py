"""Graph of the predictions of a fitted model.

A linear model is ``X U0``, then the core, then the output factors in turn, then the intercept: the
same steps as `Tucker.map_input`. The dense coefficients are never formed. A kernel with landmarks
has a graph of the kernel values before these steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..core.namespace import to_numpy
from ..core.own_inputs import OwnCoefficients
from ..core.tensor import Tucker
from ..data.labels import Grid, Labels
from ._graph import Graph, cast, flatten, shape_of

__all__ = ["Input", "add_model", "check_exportable", "inputs_of", "output_shape", "own_dtype"]

KERNELS = ("linear", "poly", "polynomial", "rbf", "sigmoid", "laplacian", "cosine")


@dataclass(frozen=True)
class Input:
    """An input of a graph: its name, and its shape without the axis of the samples."""

    name: str
    shape: tuple[int, ...]


# ---------------------------------------------------------------- inputs and outputs


def inputs_of(estimator: Any) -> list[Input]:
    """Return the inputs of a fitted estimator: one, or one for each block.

    Arrays with modes keep them. Inputs that were flat in `fit` (`input_shape`), and the columns of
    tables, are a matrix.
    """
    labels: Labels = getattr(estimator, "labels_", None) or Labels()
    is_flat = getattr(estimator, "input_shape", None) is not None or labels.cells is not None
    if is_flat or not labels.inputs:
        return [Input("X", (int(estimator.n_features_in_),))]
    if len(labels.inputs) == 1 and labels.inputs[0].name is None:
        return [Input("X", tuple(labels.inputs[0].shape))]
    return [Input(str(grid.name), tuple(grid.shape)) for grid in labels.inputs]


def output_shape(model: Any) -> tuple[int, ...]:
    """Return the shape of the predictions of a sample, as in `predict`.

    They are flat if the outputs of the fit were flat or a table.
    """
    shape, labels = model._output_shape, model.labels_ or Labels()
    if isinstance(labels.flat, Grid):
        shape = tuple(labels.flat.shape)
    if labels.flat is True:
        shape = (math.prod(shape),)
    if labels.kind in ("frame", "polars"):
        return (math.prod(shape) if labels.places is None else labels.places.size,)
    return shape


def own_dtype(model: Any) -> np.dtype:
    """Return the floating-point type of the coefficients."""
    return np.dtype(to_numpy(model.tucker_.core).dtype)


def check_exportable(model: Any) -> None:
    """Raise a ValueError if a fitted model cannot be exported."""
    if not type(model).predict.__module__.startswith("holrr."):
        raise ValueError(
            f"{type(model).__name__} cannot be exported, since it overrides predict, which the "
            f"graph would not compute. Export an estimator of this library."
        )
    if not model._has_dual_form:
        return
    fitted = getattr(model, "best_estimator_", model)
    kernel, name = fitted.kernel, type(model).__name__
    if kernel == "precomputed":
        raise ValueError(
            f"{name} with kernel='precomputed' cannot be exported, since it does not contain the "
            f"inputs of the fit. Fit with a named kernel and landmarks."
        )
    if callable(kernel):
        raise ValueError(
            f"{name} cannot be exported, since its kernel is a Python function. Use one of the "
            f"kernels {', '.join(KERNELS)}."
        )
    if kernel == "linear":
        return
    if not model._uses_landmarks:
        n = model.tucker_.shape[0]
        raise ValueError(
            f"{name} with the exact kernel={kernel!r} cannot be exported: its graph would contain "
            f"all {n} training samples. Fit with landmarks, for instance "
            f"{name}(landmarks=100)."
        )
    if kernel not in KERNELS:
        raise ValueError(
            f"kernel={kernel!r} cannot be exported. Use one of the kernels {', '.join(KERNELS)}."
        )


# ---------------------------------------------------------------- graph of a model


def add_model(graph: Graph, model: Any, inputs: Sequence[str], dtype: np.dtype) -> str:
    """Add the predictions of a fitted model to a graph.

    Parameters
    ----------
    graph : Graph
    model : estimator
    inputs : sequence of str
        Names of the inputs, one or one for each block, of floating-point type `dtype`.
    dtype : dtype
        Type of the predictions. Linear models compute in it, kernels in float64.

    Returns
    -------
    str
        The name of the predictions.
    """
    labels: Labels = model.labels_ or Labels()
    X = join(graph, inputs, column_counts(labels, model.n_features_in_, len(inputs)))
    if labels.used is not None:
        X = graph.node("Gather", X, graph.constant(labels.used.astype(np.int64)), axis=1)
    tucker, intercept, own = _on_host(model)
    if model._has_dual_form:
        fitted, narrow = getattr(model, "best_estimator_", model), dtype
        dtype = np.dtype(np.float64)  # digits of kernel values cancel in the predictions
        X = cast(graph, X, dtype)
        points = to_numpy(fitted.X_fit_).astype(np.float64)
        if fitted.kernel == "linear":
            tucker = _in_inputs(tucker, points)
        else:
            X = _KERNELS[fitted.kernel](graph, X, points, fitted._kernel_function().params)
        out = _add_linear(graph, X, tucker, intercept, None, dtype)
        out = out if narrow == dtype else cast(graph, out, narrow)
    else:
        if dtype == np.float32:
            X, intercept = _centred(graph, X, model, tucker, intercept, own)
        out = _add_linear(graph, X, tucker, intercept, own, dtype)
    if labels.places is not None:
        size = math.prod(model._output_shape)
        out = flatten(graph, out, size)
        return graph.node("Gather", out, graph.constant(labels.places.astype(np.int64)), axis=1)
    shape = output_shape(model)
    return (
        out if shape == model._output_shape else graph.node("Reshape", out, shape_of(graph, shape))
    )


def column_counts(labels: Labels, n_features: int, n_inputs: int) -> list[int]:
    """Return the number of columns of each input, or of all blocks as one input."""
    if n_inputs == 1:
        return [int(n_features)]
    counts = [math.prod(grid.shape) for grid in labels.inputs]
    if len(counts) != n_inputs:
        raise ValueError(f"the model has {len(counts) or 1} inputs, but the graph has {n_inputs}.")
    return counts


def join(graph: Graph, inputs: Sequence[str], counts: Sequence[int]) -> str:
    """Join inputs with modes as columns of one matrix."""
    parts = [flatten(graph, name, n) for name, n in zip(inputs, counts, strict=True)]
    return parts[0] if len(parts) == 1 else graph.node("Concat", *parts, axis=1)


def _on_host(model: Any) -> tuple[Tucker, np.ndarray, OwnCoefficients | None]:
    """Return coefficients, intercept and own coefficients as NumPy arrays in float64."""
    T, b = model.tucker_, model._intercept
    core = to_numpy(T.core).astype(np.float64)
    factors = (None if U is None else to_numpy(U).astype(np.float64) for U in T.factors)
    intercept = np.asarray(b if isinstance(b, float) else to_numpy(b), dtype=np.float64)
    scale = None if T.scale is None else to_numpy(T.scale).astype(np.float64)
    return Tucker(core, tuple(factors), scale=scale), intercept, model._own


def _in_inputs(tucker: Tucker, points: np.ndarray) -> Tucker:
    """Return coefficients of the inputs, from those of products with points, (n_points, d0)."""
    U, *others = tucker.factors
    if U is not None:
        return replace(tucker, factors=(points.T @ U, *others))
    n, *rank = tucker.core.shape
    core = points.T @ tucker.core.reshape(n, -1)
    return replace(tucker, core=core.reshape(core.shape[0], *rank), factors=(None, *others))


def _centred(
    graph: Graph,
    X: str,
    model: Any,
    tucker: Tucker,
    intercept: np.ndarray,
    own: OwnCoefficients | None,
) -> tuple[str, np.ndarray]:
    """Subtract the means of the fit from inputs, and return them with their intercept.

    In float32, inputs that are far from zero would lose the digits that predictions depend on.
    """
    hat = vars(model).get("_hat", {})
    mean = vars(model).get("_input_mean")
    if mean is None and hat.get("inputs") is None:
        mean = hat.get("mean")
    if mean is None or tuple(mean.shape) != (tucker.shape[0],):
        return X, intercept
    c = to_numpy(mean).astype(np.float32)  # exactly the numbers that are subtracted
    row = c.astype(np.float64)[None, :]
    shift = tucker.map_input(row)[0]
    if own is not None:
        shift = shift + own.times(row)[0].reshape(shift.shape)
    return graph.node("Sub", X, graph.constant(c)), intercept + shift


def _add_linear(
    graph: Graph,
    X: str,
    tucker: Tucker,
    intercept: np.ndarray,
    own: OwnCoefficients | None,
    dtype: np.dtype,
) -> str:
    """Add ``X U0``, the core, the output factors, own inputs and the intercept to a graph."""
    U, *factors = tucker.factors
    out = X if U is None else graph.node("MatMul", X, graph.constant(U.astype(dtype)))
    R0, *shape = tucker.core.shape
    core = tucker.core.reshape(R0, math.prod(shape)).astype(dtype)
    out = graph.node("MatMul", out, graph.constant(core))
    # The product that enlarges the tensor least is computed first.
    pairs = [(mode, A) for mode, A in enumerate(factors) if A is not None]
    for mode, A in sorted(pairs, key=lambda pair: pair[1].shape[0] / max(pair[1].shape[1], 1)):
        out = _mode_product(graph, out, shape, A.astype(dtype), mode)
        shape[mode] = A.shape[0]
    if tucker.scale is not None:
        out = graph.node("Reshape", out, shape_of(graph, shape))
        out = graph.node("Mul", out, graph.constant(tucker.scale.astype(dtype)))
    if own is not None:
        out = flatten(graph, out, math.prod(shape))
        out = graph.node("Add", out, _add_own(graph, X, own, dtype))
    out = graph.node("Reshape", out, shape_of(graph, shape))
    return graph.node("Add", out, graph.constant(intercept.astype(dtype)))


def _mode_product(graph: Graph, T: str, shape: Sequence[int], A: np.ndarray, mode: int) -> str:
    """Multiply every fibre of `T`, (n, *shape), along an output mode by a matrix."""
    right = math.prod(shape[mode + 1 :])
    if right == 1:
        T = graph.node("Reshape", T, shape_of(graph, (shape[mode],)))
        return graph.node("MatMul", T, graph.constant(A.T))
    T = graph.node("Reshape", T, shape_of(graph, (shape[mode], right)))
    return graph.node("MatMul", graph.constant(A), T)


def _add_own(graph: Graph, X: str, own: OwnCoefficients, dtype: np.dtype) -> str:
    """Add ``X S``, of shape (n, n_outputs), with the inputs of each group gathered."""
    total, n_outputs = None, own.shape[1]
    for group, values in zip(own.groups, own.values, strict=True):
        n_groups, k, m = values.shape
        columns = graph.constant(group.columns.reshape(-1).astype(np.int64))
        part = graph.node("Gather", X, columns, axis=1)
        if n_groups == 1:
            part = graph.node("MatMul", part, graph.constant(values[0].astype(dtype)))
        else:  # rows of shape (1, k) times the matrices of the groups
            part = graph.node("Reshape", part, shape_of(graph, (n_groups, 1, k)))
            part = graph.node("MatMul", part, graph.constant(values.astype(dtype)))
            part = flatten(graph, part, n_groups * m)
        # The column of each output; an additional last column is zero.
        place = np.full(n_outputs, n_groups * m, dtype=np.int64)
        place[group.outputs.reshape(-1)] = np.arange(n_groups * m)
        if (place == n_groups * m).any():
            pads = graph.constant(np.array([0, 0, 0, 1], dtype=np.int64))
            part = graph.node("Pad", part, pads, graph.constant(np.zeros((), dtype)))
        part = graph.node("Gather", part, graph.constant(place), axis=1)
        total = part if total is None else graph.node("Add", total, part)
    assert total is not None
    return total


# ---------------------------------------------------------------- kernel values


def _scalar(graph: Graph, value: float) -> str:
    return graph.constant(np.array(value, dtype=np.float64))


def _gamma(points: np.ndarray, params: dict[str, Any]) -> float:
    gamma = params.get("gamma")
    return 1.0 / points.shape[1] if gamma is None else float(gamma)


def _squares(graph: Graph, X: str) -> str:
    """Add the sum of squares of each row, as a column."""
    axis = graph.constant(np.array([1], dtype=np.int64))
    return graph.node("ReduceSum", graph.node("Mul", X, X), axis, keepdims=1)


def _affine(graph: Graph, X: str, points: np.ndarray, params: dict[str, Any]) -> str:
    """Add ``gamma <x, z> + coef0``."""
    K = graph.node("MatMul", X, graph.constant(_gamma(points, params) * points.T))
    return graph.node("Add", K, _scalar(graph, float(params.get("coef0", 1))))


def _poly(graph: Graph, X: str, points: np.ndarray, params: dict[str, Any]) -> str:
    degree = _scalar(graph, float(params.get("degree", 3)))
    return graph.node("Pow", _affine(graph, X, points, params), degree)


def _sigmoid(graph: Graph, X: str, points: np.ndarray, params: dict[str, Any]) -> str:
    return graph.node("Tanh", _affine(graph, X, points, params))


def _rbf(graph: Graph, X: str, points: np.ndarray, params: dict[str, Any]) -> str:
    """Add ``exp(-gamma ||x - z||^2)``; inputs and points are centred at the mean of the points."""
    mean = points.mean(axis=0)
    Z = points - mean
    X = graph.node("Sub", X, graph.constant(mean))
    products = graph.node("MatMul", X, graph.constant(-2.0 * Z.T))
    distance = graph.node("Add", products, _squares(graph, X))
    distance = graph.node("Add", distance, graph.constant(np.sum(Z * Z, axis=1)))
    distance = graph.node("Max", distance, _scalar(graph, 0.0))
    return graph.node("Exp", graph.node("Mul", distance, _scalar(graph, -_gamma(points, params))))


def _laplacian(graph: Graph, X: str, points: np.ndarray, params: dict[str, Any]) -> str:
    """Add ``exp(-gamma sum |x - z|)``."""
    X = graph.node("Reshape", X, shape_of(graph, (1, points.shape[1])))
    difference = graph.node("Abs", graph.node("Sub", X, graph.constant(points)))
    axis = graph.constant(np.array([2], dtype=np.int64))
    distance = graph.node("ReduceSum", difference, axis, keepdims=0)
    return graph.node("Exp", graph.node("Mul", distance, _scalar(graph, -_gamma(points, params))))


def _cosine(graph: Graph, X: str, points: np.ndarray, params: dict[str, Any]) -> str:
    """Add ``<x, z> / (||x|| ||z||)``; zero if x or z is zero."""
    norms = np.linalg.norm(points, axis=1)
    Z = points / np.where(norms > 0, norms, 1.0)[:, None]
    norm = graph.node("Sqrt", _squares(graph, X))
    is_zero = graph.node("Cast", graph.node("Equal", norm, _scalar(graph, 0.0)), to=_DOUBLE)
    X = graph.node("Div", X, graph.node("Add", norm, is_zero))
    return graph.node("MatMul", X, graph.constant(Z.T))


_DOUBLE = 11  # the number of float64 among the types of ONNX
_KERNELS: dict[str, Callable[[Graph, str, np.ndarray, dict[str, Any]], str]] = {
    "poly": _poly,
    "polynomial": _poly,
    "rbf": _rbf,
    "sigmoid": _sigmoid,
    "laplacian": _laplacian,
    "cosine": _cosine,
}
