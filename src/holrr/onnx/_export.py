"""Export of a fitted model to an ONNX model."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._version import __version__
from ..base import TensorRegressor
from ..extras import need
from ._graph import OPSET, Nodes
from ._model import Input, add_model, check_exportable, inputs_of, output_shape, own_dtype

__all__ = ["to_onnx"]

_OUTPUT = "Y"


def to_onnx(model: Any, *, dtype: Any = None) -> Any:
    """Convert a fitted model of this library to an ONNX model.

    The graph computes the predictions of `predict` from the coefficients in Tucker form. It does
    not contain the dense coefficients. It does not check its inputs: NaN in the inputs gives NaN in
    the predictions. skl2onnx converts pipelines, see `holrr.onnx.register_converters`.

    Parameters
    ----------
    model : estimator
        A fitted estimator of this library.
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
        If onnx is not installed.

    See Also
    --------
    holrr.onnx.register_converters : Converters for skl2onnx, which exports pipelines.

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
    if not isinstance(model, TensorRegressor):
        raise TypeError(
            f"to_onnx accepts an estimator of this library; got an object of "
            f"{type(model).__module__}.{type(model).__qualname__}. For pipelines and searches of "
            f"scikit-learn, call holrr.onnx.register_converters() and skl2onnx.to_onnx(model, X)."
        )
    onnx = need("onnx", "to_onnx needs onnx", "onnx")
    check_is_fitted(model)
    check_exportable(model)
    kind = _check_dtype(dtype, model)
    found = _build(onnx, model, kind)
    found.producer_name, found.producer_version = "holrr", __version__
    onnx.helper.set_model_props(
        found, {"estimator": type(model).__name__, "holrr": __version__, "dtype": kind.name}
    )
    onnx.checker.check_model(found)
    return found


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
    if len({*names, "", _OUTPUT}) != len(names) + 2:
        raise ValueError(
            f"the blocks of the inputs are called {names}; the inputs of a graph need names that "
            f"differ from each other and from its output, {_OUTPUT!r}, and are not empty."
        )
    return names
