"""Cross-validated penalties and ranks, for the cost of a few fits."""

from .linear import HOLRRCV, LRRCV, RLSCV

__all__ = ["HOLRRCV", "LRRCV", "RLSCV"]
