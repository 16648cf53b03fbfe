"""Export of a fitted model or pipeline to an ONNX model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.validation import check_is_fitted

from .._version import __version__
from ..base import TensorRegressor
from ..core.sparse import is_sparse
from ..data.labels import first_difference
from ..extras import need
from ._converters import (
    SKLEARN,
    calculate_sklearn_shape,
    convert_sklearn_step,
    register,
    register_converters,
)
from ._graph import OPSET, Nodes
from ._model import Input, add_model, check_exportable, inputs_of, output_shape, own_dtype
from ._transformers import TRANSFORMERS

__all__ = ["to_onnx"]

_OUTPUT = "Y"


def to_onnx(model: Any, X: Any = None, *, dtype: Any = None) -> Any:
    """Convert a fitted model, or a pipeline that ends with one, to an ONNX model.

    The graph computes the predictions of `predict` from the coefficients in Tucker form. It does
    not contain the dense coefficients. It does not check its inputs: NaN in the inputs gives NaN in
    the predictions.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted estimator of this library, or a scikit-learn pipeline that ends with one and whose
        other steps skl2onnx can convert.
    X : table or array, optional
        Some rows of the inputs, which define the inputs of the graph of a pipeline: a table gives
        one input for each column, of shape (n_samples, 1). It is required for a pipeline with a
        `ColumnTransformer`. Models of this library do not need it.
    dtype : {"float32", "float64"}, optional
        Type of the inputs and predictions. The default is the type of the coefficients.

    Returns
    -------
    onnx.ModelProto
        The model. It has the input ``X``, of shape (n_samples, n_features) or with the modes of the
        inputs, or one input for each block, with the name of the block. The output is ``Y``, of
        shape (n_samples, d1, ..., dp). It is flat if `predict` returns flat outputs or a table.

    Raises
    ------
    ValueError
        If a model cannot be exported, such as a model with an exact kernel. The message gives the
        reason.
    ImportError
        If onnx, or skl2onnx for a pipeline, is not installed.

    See Also
    --------
    holrr.onnx.register_converters : Converters for the functions of skl2onnx.

    Examples
    --------
    >>> import numpy as np
    >>> import onnxruntime
    >>> from holrr import HOLRR, to_onnx
    >>> from holrr.datasets import make_tensor_regression
    >>> X, Y = make_tensor_regression(50, 6, (4, 3), rank=2, snr=9, random_state=0)
    >>> model = HOLRR(rank=2).fit(X, Y)
    >>> graph = to_onnx(model, dtype="float32")
    >>> session = onnxruntime.InferenceSession(graph.SerializeToString())
    >>> (found,) = session.run(["Y"], {"X": X.astype(np.float32)})
    >>> found.shape, bool(np.allclose(found, model.predict(X), atol=1e-5))
    ((50, 4, 3), True)
    """
    steps = _steps_of(model)
    last = steps[-1] if steps else model
    if not isinstance(last, TensorRegressor):
        raise TypeError(
            f"to_onnx accepts an estimator of this library, or a pipeline that ends with one; got "
            f"{_described(model, last)}."
        )
    onnx = need("onnx", "to_onnx needs onnx", "onnx")
    for step in steps:
        check_is_fitted(step)
    check_exportable(last)
    kind = _check_dtype(dtype, last)
    if isinstance(model, Pipeline):
        found = _convert_pipeline(onnx, model, X, kind)
    else:
        found = _build(onnx, model, kind)
    found.producer_name, found.producer_version = "holrr", __version__
    onnx.helper.set_model_props(
        found, {"estimator": type(last).__name__, "holrr": __version__, "dtype": kind.name}
    )
    onnx.checker.check_model(found)
    return found


def _steps_of(model: Any) -> list[Any]:
    """Return the steps of a pipeline and of nested pipelines; a model is its only step."""
    if not isinstance(model, Pipeline):
        return [model]
    found = [step for _, step in model.steps if step is not None and step != "passthrough"]
    return [part for step in found for part in _steps_of(step)]


def _described(model: Any, last: Any) -> str:
    what = "an object of" if last is model else "a pipeline that ends with"
    what += f" {type(last).__module__}.{type(last).__qualname__}"
    if isinstance(last, (GridSearchCV, RandomizedSearchCV)):
        return (
            what
            + ". Pass its best_estimator_"
            + ("" if last is model else ", in a pipeline with the fitted other steps")
        )
    return what


def _check_dtype(dtype: Any, model: Any) -> np.dtype:
    if dtype is None:
        return own_dtype(model)
    try:
        found = np.dtype(dtype)
    except TypeError:
        found = None
    if found not in (np.float32, np.float64):
        raise ValueError(f"dtype must be 'float32' or 'float64'; got {dtype!r}.")
    assert found is not None
    return found


# ---------------------------------------------------------------- models of this library


def _build(onnx: Any, model: Any, dtype: np.dtype) -> Any:
    helper, inputs = onnx.helper, inputs_of(model)
    names = _distinct(inputs)
    graph = Nodes(helper, onnx.numpy_helper, {*names, _OUTPUT})
    graph.end(add_model(graph, model, names, dtype), _OUTPUT)
    number = int(helper.np_dtype_to_tensor_dtype(dtype))
    places = [
        helper.make_tensor_value_info(name, number, ["n_samples", *one.shape])
        for name, one in zip(names, inputs, strict=True)
    ]
    out = helper.make_tensor_value_info(_OUTPUT, number, ["n_samples", *output_shape(model)])
    whole = helper.make_graph(graph.nodes, "holrr", places, [out], graph.constants)
    opsets = [helper.make_opsetid("", OPSET)]
    version = helper.find_min_ir_version_for(opsets)
    return helper.make_model(whole, opset_imports=opsets, ir_version=version)


def _distinct(inputs: list[Input]) -> list[str]:
    names = [one.name for one in inputs]
    _check_names(names, "blocks of the inputs")
    return names


def _check_names(names: list[str], what: str) -> None:
    if len({*names, "", _OUTPUT}) != len(names) + 2:
        raise ValueError(
            f"the {what} are called {names}; the inputs of a graph need names that differ from "
            f"each other and from its output, {_OUTPUT!r}, and are not empty."
        )


# ---------------------------------------------------------------- pipelines


def _convert_pipeline(onnx: Any, pipeline: Pipeline, X: Any, dtype: np.dtype) -> Any:
    """Convert a pipeline by skl2onnx, with the converters of this library."""
    register_converters()
    skl2onnx = need("skl2onnx", "converting pipelines to ONNX needs skl2onnx", "onnx")
    ours = [s for s in _steps_of(pipeline) if isinstance(s, (TensorRegressor, *TRANSFORMERS))]
    for step in ours:
        register(type(step))  # it may be a subclass
    if isinstance(X, Mapping):  # blocks, which the first step knows
        X = None
    if X is not None:
        _check_columns(pipeline, X)
    types = _initial_types(pipeline, X, dtype)
    try:
        found = skl2onnx.convert_sklearn(
            _flat(pipeline, X, types),
            name="holrr",
            initial_types=types,
            final_types=[(_OUTPUT, None)],
            options={id(step): {"dtype": dtype.name} for step in ours},
            custom_conversion_functions=dict.fromkeys(SKLEARN, convert_sklearn_step),
            custom_shape_calculators=dict.fromkeys(SKLEARN, calculate_sklearn_shape),
        )
    except ValueError:  # of a converter of this library
        raise
    except Exception as error:  # errors of skl2onnx have no common class
        raise ValueError(
            f"skl2onnx cannot convert {' or '.join(_names_of_steps(pipeline))}: {error}"
        ) from error
    _rename_inputs(found.graph, [name for name, _ in types])
    try:
        onnx.shape_inference.infer_shapes(found, check_type=True)
    except onnx.shape_inference.InferenceError as error:
        other = "float32" if dtype == np.float64 else "float64"
        raise ValueError(
            f"skl2onnx converts a step of the pipeline to incompatible operators in "
            f"{dtype.name}; try dtype={other!r}. The message of onnx: {error}"
        ) from error
    return found


def _names_of_steps(pipeline: Pipeline) -> list[str]:
    """Return the classes that skl2onnx converts, also those in a ColumnTransformer."""
    found: list[str] = []
    for step in _steps_of(pipeline):
        if isinstance(step, ColumnTransformer):
            inner = [one for _, one, _ in step.transformers_ if not isinstance(one, str)]
            found += [name for one in inner for name in _names_of_steps(make_pipeline(one))]
        elif not isinstance(step, (TensorRegressor, *TRANSFORMERS)):
            found.append(type(step).__name__)
    return list(dict.fromkeys(found))


def _check_columns(pipeline: Pipeline, X: Any) -> None:
    """Raise a ValueError if the columns of X are not those of the fit, in the same order.

    skl2onnx selects columns of a `ColumnTransformer` by name or by position. If it selects all of
    them by name, their order is free and there may be others, as in scikit-learn.
    """
    first = _steps_of(pipeline)[0]
    n, fitted = getattr(first, "n_features_in_", None), getattr(first, "feature_names_in_", None)
    if not hasattr(X, "columns"):
        shape = np.shape(X) if not hasattr(X, "shape") else tuple(X.shape)
        if len(shape) < 2 or (n is not None and math.prod(shape[1:]) != n):
            columns = "columns" if n is None else f"the {n} columns of the fit"
            raise ValueError(
                f"X must be some rows of the inputs, with {columns}; got {type(X).__name__} of "
                f"shape {shape}."
            )
        return
    # Estimators of this library write the levels of a column as "a / b".
    parts = [name if isinstance(name, tuple) else (name,) for name in X.columns]
    found = [" / ".join(map(str, part)) for part in parts]
    expected = None if fitted is None else [str(name) for name in fitted]
    names = _names_selected(first) if isinstance(first, ColumnTransformer) else None
    if names is not None:
        lacking = [name for name in names if name not in found]
        if lacking:
            raise ValueError(f"X must have the columns of the fit; it lacks {lacking[0]!r}.")
        return
    if found == expected or (expected is None and n in (None, len(found))):
        return
    if expected is None or len(found) != len(expected):
        where = f"X has {len(found)} columns and the fit had {n}"
    else:
        where = first_difference(found, expected, "X", "the fit")
    raise ValueError(
        f"X must have the columns of the fit in the same order, since they are the inputs of the "
        f"graph: {where}."
    )


def _names_selected(columns: ColumnTransformer) -> list[str] | None:
    """Return the names of the columns that a fitted transformer selects, or None.

    It is None if some columns are selected by position, by a mask or by a slice.
    """
    found: list[str] = []
    for _, step, names in columns.transformers_:
        if step == "drop":
            continue
        several = [names] if isinstance(names, str) else names
        if isinstance(several, slice) or not all(isinstance(name, str) for name in several):
            return None
        found += several
    return found


def _initial_types(pipeline: Pipeline, X: Any, dtype: np.dtype) -> list[tuple[str, Any]]:
    """Return names and types of the inputs of a pipeline."""
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, StringTensorType

    number = DoubleTensorType if dtype == np.float64 else FloatTensorType
    if hasattr(X, "columns"):
        names = [str(column) for column in X.columns]
        _check_names(names, "columns of X")
        kinds = [number if _is_number(kind) else StringTensorType for kind in X.dtypes]
        return [(name, kind([None, 1])) for name, kind in zip(names, kinds, strict=True)]
    if X is not None:
        X = np.empty((0, *X.shape[1:]), X.dtype) if is_sparse(X) else np.asarray(X)
        kind = number if X.dtype.kind in "biuf" else StringTensorType
        return [("X", kind([None, *X.shape[1:]]))]
    first = _steps_of(pipeline)[0]
    if isinstance(first, ColumnTransformer):
        raise ValueError(
            "to_onnx needs X for a pipeline with a ColumnTransformer, to find out which columns "
            "are numbers and which are text: pass some rows, to_onnx(pipeline, X[:5])."
        )
    inputs = inputs_of(first)
    return [
        (name, number([None, *one.shape]))
        for name, one in zip(_distinct(inputs), inputs, strict=True)
    ]


def _flat(pipeline: Pipeline, X: Any, types: list[tuple[str, Any]]) -> Pipeline:
    """Return a pipeline without nested pipelines, after a step that joins the columns of a table.

    skl2onnx does not support the step "passthrough". Its other steps would join separate input
    columns in float32.
    """
    steps = _steps_of(pipeline)
    is_joined = not hasattr(X, "columns") or isinstance(steps[0], ColumnTransformer)
    if not is_joined and len({type(kind) for _, kind in types}) == 1:
        columns = list(range(len(types)))
        steps.insert(0, ColumnTransformer([("all", "passthrough", columns)]).fit(X))
    return make_pipeline(*steps)


def _rename_inputs(graph: Any, names: list[str]) -> None:
    """Give inputs the names of columns; skl2onnx writes "wind speed" as "wind_speed"."""
    new = {one.name: name for one, name in zip(graph.input, names, strict=True)}
    for one in graph.input:
        one.name = new[one.name]
    for node in graph.node:
        node.input[:] = [new.get(name, name) for name in node.input]


def _is_number(kind: Any) -> bool:
    """Return whether a column of a pandas or polars table contains numbers."""
    if hasattr(kind, "is_numeric"):  # polars
        return bool(kind.is_numeric()) or str(kind) == "Boolean"
    return getattr(kind, "kind", "O") in "biuf"
