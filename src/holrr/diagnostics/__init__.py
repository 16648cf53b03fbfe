"""Diagnostics: rows of inputs that are unlike those of a fit, and outliers among training rows."""

from ..data.unusual import UnusualInputWarning
from .inputs import InputDiagnostics, diagnose_inputs
from .monitor import InputMonitor
from .residuals import Outliers, find_outliers

__all__ = ["InputDiagnostics", "InputMonitor", "Outliers", "UnusualInputWarning"]
__all__ += ["diagnose_inputs", "find_outliers"]
