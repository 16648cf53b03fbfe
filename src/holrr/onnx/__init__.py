"""Export of fitted models to ONNX, for runtimes without Python, see docs/onnx.md."""

from ._converters import register_converters
from ._export import to_onnx

__all__ = ["register_converters", "to_onnx"]
