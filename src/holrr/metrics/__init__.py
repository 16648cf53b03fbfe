"""How good predictions of tensors are: R2, RMSE and skill, and how well their intervals cover."""

from ._scores import r2, rmse, scorers, skill
from .coverage import calibration_error, interval_coverage, interval_width
from .maps import skill_map

__all__ = ["calibration_error", "interval_coverage", "interval_width", "r2", "rmse", "scorers"]
__all__ += ["skill", "skill_map"]
