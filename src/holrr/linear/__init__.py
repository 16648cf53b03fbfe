"""Ridge, low-rank and higher-order low-rank regression for tensor outputs."""

from .estimators import HOLRR, LRR, RLS

__all__ = ["HOLRR", "LRR", "RLS"]
