"""Converters for skl2onnx, which converts pipelines of scikit-learn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..base import TensorRegressor
from ..extras import need
from ..kernel import KernelHOLRR, KernelHOLRRCV, KernelLRR, KernelLRRCV, KernelRLS, KernelRLSCV
from ..linear import HOLRR, LRR, RLS
from ..model_selection import HOLRRCV, LRRCV, RLSCV
from ..penalized import MLMTNC, TraceNormRegression
from ._graph import OPSET, cast
from ._model import add_model, check_exportable, output_shape
from ._transformers import TRANSFORMERS, add_transformer, check_transformer, n_columns_out

__all__ = ["register_converters"]

_MODELS: tuple[type, ...] = (HOLRR, HOLRRCV, LRR, LRRCV, RLS, RLSCV)
_MODELS += (KernelHOLRR, KernelHOLRRCV, KernelLRR, KernelLRRCV, KernelRLS, KernelRLSCV)
_MODELS += (MLMTNC, TraceNormRegression)


def register_converters() -> None:
    """Register the estimators and transformers of this library with skl2onnx.

    Afterwards ``skl2onnx.to_onnx`` and ``skl2onnx.convert_sklearn`` accept pipelines that contain
    them, as do its converters of `ColumnTransformer` and `GridSearchCV`. It may be called more than
    once.

    The converters have the option ``dtype``, "float32" or "float64": the type of the predictions.
    The default is the type of the inputs of the step in the graph.

    Raises
    ------
    ImportError
        If skl2onnx is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> import skl2onnx
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from holrr import HOLRR
    >>> from holrr.onnx import register_converters
    >>> register_converters()
    >>> X, Y = np.random.default_rng(0).normal(size=(2, 20, 3))
    >>> pipeline = make_pipeline(StandardScaler(), HOLRR(rank=1)).fit(X, Y)
    >>> graph = skl2onnx.to_onnx(pipeline, X.astype(np.float32)).graph
    >>> [node.op_type for node in graph.node if node.op_type in ("Scaler", "MatMul")]
    ['Scaler', 'MatMul', 'MatMul', 'MatMul']
    """
    skl2onnx = need("skl2onnx", "converting pipelines to ONNX needs skl2onnx", "onnx")
    options = {"dtype": [None, "float32", "float64"]}
    for cls in (*_MODELS, *TRANSFORMERS):
        skl2onnx.update_registered_converter(
            cls, f"Holrr{cls.__name__}", _calculate_shape, _convert, options=options
        )


@dataclass(frozen=True)
class _Container:
    """A `Graph` that adds to a container of skl2onnx."""

    scope: Any
    container: Any

    def constant(self, values: Any) -> str:
        from onnx.numpy_helper import from_array

        name = self.scope.get_unique_variable_name("holrr_constant")
        array = np.ascontiguousarray(values).reshape(np.shape(values))
        self.container.initializers.append(from_array(array, name))
        return name

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        name = self.scope.get_unique_variable_name(f"holrr_{operator.lower()}")
        unique = self.scope.get_unique_operator_name(f"holrr_{operator}")
        self.container.add_node(
            operator, list(inputs), [name], name=unique, op_version=OPSET, **attributes
        )
        return name


def _dtype_of(operator: Any) -> np.dtype:
    """Return the output type of a step: the option, or the widest type of the inputs."""
    from skl2onnx.common.data_types import DoubleTensorType

    asked = operator.scope_inst.get_options(operator.raw_operator, {"dtype": None}, fail=False)
    if asked.get("dtype") is not None:
        return np.dtype(asked["dtype"])
    is_double = any(isinstance(v.type, DoubleTensorType) for v in operator.inputs)
    return np.dtype(np.float64 if is_double else np.float32)


def _calculate_shape(operator: Any) -> None:
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

    step, n = operator.raw_operator, operator.inputs[0].get_first_dimension()
    check_is_fitted(step)
    _check_n_columns(operator)
    is_model = isinstance(step, TensorRegressor)
    shape = output_shape(step) if is_model else (n_columns_out(step),)
    kind = DoubleTensorType if _dtype_of(operator) == np.float64 else FloatTensorType
    operator.outputs[0].type = kind([n, *shape])


def _check_n_columns(operator: Any) -> None:
    """Raise a ValueError if the inputs of a step have another number of columns than in `fit`."""
    step, sizes = operator.raw_operator, [v.type.shape[1:] for v in operator.inputs]
    if any(not size or any(not isinstance(d, int) for d in size) for size in sizes):
        return  # unknown
    n = sum(math.prod(size) for size in sizes)
    if n != step.n_features_in_:
        raise ValueError(
            f"{type(step).__name__} was fitted to {step.n_features_in_} columns, but in the graph "
            f"its inputs have {n}."
        )


def _convert(scope: Any, operator: Any, container: Any) -> None:
    step, dtype = operator.raw_operator, _dtype_of(operator)
    graph = _Container(scope, container)
    inputs = [cast(graph, variable.full_name, dtype) for variable in operator.inputs]
    if isinstance(step, TensorRegressor):
        check_exportable(step)
        _check_last(operator)
        out = add_model(graph, step, inputs, dtype)
    else:
        check_transformer(step)
        out = add_transformer(graph, step, inputs, dtype)
    _end(scope, operator, container, out)


def _end(scope: Any, operator: Any, container: Any, value: str) -> None:
    """Give a value the name of the output of a step."""
    name = scope.get_unique_operator_name("holrr_end")
    outputs = [operator.outputs[0].full_name]
    container.add_node("Identity", [value], outputs, name=name, op_version=OPSET)


def _check_last(operator: Any) -> None:
    """Raise a ValueError if other steps follow a model.

    In scikit-learn they would get its input scores.
    """
    users = [op for op in operator.outputs[0].operators_inputs_ if op.raw_operator is not None]
    if users:
        raise ValueError(
            f"{type(operator.raw_operator).__name__} can be exported only as the last step of a "
            f"pipeline, but {type(users[0].raw_operator).__name__} follows it."
        )
