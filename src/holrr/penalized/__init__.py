"""Trace norm regression and MLMT-NC, which penalise the ranks or factors of the coefficients."""

from .mlmtnc import MLMTNC
from .search import MLMTNCCV, TraceNormRegressionCV
from .trace_norm import TraceNormRegression

__all__ = ["MLMTNC", "MLMTNCCV", "TraceNormRegression", "TraceNormRegressionCV"]
