"""Regression with tensor-valued outputs.

The estimators follow the interface of scikit-learn. Each sample of y is a tensor, such as a map, a
spectrum or a table of stations and variables.

>>> from holrr import HOLRRCV
>>> from holrr.datasets import make_tensor_regression
>>> X, Y = make_tensor_regression(60, 5, (4, 3), rank=2, snr=5, random_state=0)
>>> HOLRRCV().fit(X, Y).predict(X).shape
(60, 4, 3)
"""

from . import metrics as metrics
from ._version import __version__
from .core.tensor import Tucker
from .inference import standard_errors
from .io import load, save
from .kernel import KernelHOLRR, KernelHOLRRCV, KernelLRR, KernelLRRCV, KernelRLS, KernelRLSCV
from .linear import HOLRR, LRR, RLS
from .model_selection import HOLRRCV, LRRCV, RLSCV
from .onnx import to_onnx
from .penalized import MLMTNC, TraceNormRegression, trace_norm_path
from .pipelines import predict_blocks, predict_interval, score_blocks
from .streaming.moments import Moments
from .streaming.rolling import RollingMoments

__all__ = ["HOLRR", "HOLRRCV", "LRR", "LRRCV", "RLS", "RLSCV"]
__all__ += ["KernelHOLRR", "KernelHOLRRCV", "KernelLRR", "KernelLRRCV", "KernelRLS", "KernelRLSCV"]
__all__ += ["MLMTNC", "TraceNormRegression", "trace_norm_path"]
__all__ += [
    "Moments",
    "RollingMoments",
    "Tucker",
    "__version__",
    "load",
    "predict_blocks",
    "predict_interval",
    "save",
    "score_blocks",
    "standard_errors",
    "to_onnx",
]
