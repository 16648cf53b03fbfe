"""Diagnostics: unusual inputs, outliers among training rows, and importance of inputs."""

from ..data.unusual import UnusualInputWarning
from .importance import selectivity_ratio, vip
from .inputs import InputDiagnostics, diagnose_inputs
from .monitor import InputMonitor
from .residuals import Outliers, find_outliers

__all__ = ["InputDiagnostics", "InputMonitor", "Outliers", "UnusualInputWarning"]
__all__ += ["diagnose_inputs", "find_outliers", "selectivity_ratio", "vip"]
