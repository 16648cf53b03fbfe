"""Trace norm regression and MLMT-NC, which penalise the ranks or factors of the coefficients."""

from .mlmtnc import MLMTNC
from .path import trace_norm_path
from .trace_norm import TraceNormRegression

__all__ = ["MLMTNC", "TraceNormRegression", "trace_norm_path"]
