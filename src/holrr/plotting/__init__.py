"""Displays in scikit-learn's manner; matplotlib is imported when one of them is drawn."""

from ._block_scores import BlockScoresDisplay
from ._calibration import IntervalCalibrationDisplay
from ._coefficients import CoefficientDisplay
from ._diagnostics import InputDiagnosticsDisplay, OutlierDisplay
from ._loadings import LoadingsDisplay
from ._rank_surface import RankSurfaceDisplay
from ._skill_map import SkillMapDisplay
from ._spectrum import SpectrumDisplay

__all__ = ["BlockScoresDisplay", "CoefficientDisplay", "IntervalCalibrationDisplay"]
__all__ += ["InputDiagnosticsDisplay", "OutlierDisplay"]
__all__ += ["LoadingsDisplay", "RankSurfaceDisplay", "SkillMapDisplay", "SpectrumDisplay"]
