"""Displays in scikit-learn's manner; matplotlib is imported when one of them is drawn."""

from ._rank_surface import RankSurfaceDisplay
from ._spectrum import SpectrumDisplay

__all__ = ["RankSurfaceDisplay", "SpectrumDisplay"]
