"""Cross-validated penalties and ranks: the held-out error of every candidate, for the cost of a few fits."""

from .linear import HOLRRCV, LRRCV, RLSCV

__all__ = ["HOLRRCV", "LRRCV", "RLSCV"]
