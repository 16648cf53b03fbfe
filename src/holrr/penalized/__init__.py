"""Estimators that penalise the coefficients' ranks or factors instead of bounding the ranks."""

from ._mlmtnc import MLMTNC
from ._trace_norm import TraceNormRegression

__all__ = ["MLMTNC", "TraceNormRegression"]
