"""How good predictions of tensors are."""

from .coverage import calibration_error, interval_coverage, interval_width

__all__ = ["calibration_error", "interval_coverage", "interval_width"]
