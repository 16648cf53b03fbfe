"""Searches over penalties and ranks by cross-validation, and a splitter for time series."""

from .linear import HOLRRCV, LRRCV, RLSCV
from .splitters import BlockKFold

__all__ = ["HOLRRCV", "LRRCV", "RLSCV", "BlockKFold"]
