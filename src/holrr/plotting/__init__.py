"""Plots of fitted models, as displays in the style of scikit-learn."""

from ._block_scores import BlockScoresDisplay
from ._loadings import LoadingsDisplay
from ._prediction import PredictionDisplay
from ._rank_surface import RankSurfaceDisplay

__all__ = ["BlockScoresDisplay", "LoadingsDisplay", "PredictionDisplay", "RankSurfaceDisplay"]
