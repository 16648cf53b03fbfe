"""Estimators that penalise the coefficients' ranks or factors instead of bounding the ranks."""

from ._mlmtnc import MLMTNC
from ._mlmtnc_cv import MLMTNCCV
from ._trace_norm import TraceNormRegression
from ._trace_norm_cv import TraceNormRegressionCV

__all__ = ["MLMTNC", "MLMTNCCV", "TraceNormRegression", "TraceNormRegressionCV"]
