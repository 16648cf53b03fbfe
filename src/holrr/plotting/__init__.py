"""Plots of fitted models, as displays in the style of scikit-learn."""

from ._block_scores import BlockScoresDisplay
from ._calibration import IntervalCalibrationDisplay
from ._coefficients import CoefficientDisplay
from ._diagnostics import InputDiagnosticsDisplay, OutlierDisplay
from ._importance import ImportanceDisplay
from ._loadings import LoadingsDisplay
from ._rank_surface import RankSurfaceDisplay
from ._skill_map import SkillMapDisplay
from ._spectrum import SpectrumDisplay

__all__ = ["BlockScoresDisplay", "CoefficientDisplay", "ImportanceDisplay"]
__all__ += ["InputDiagnosticsDisplay", "IntervalCalibrationDisplay", "OutlierDisplay"]
__all__ += ["LoadingsDisplay", "RankSurfaceDisplay", "SkillMapDisplay", "SpectrumDisplay"]
