"""Searches over penalties and ranks by cross-validation: RLSCV, LRRCV and HOLRRCV."""

from .linear import HOLRRCV, LRRCV, RLSCV

__all__ = ["HOLRRCV", "LRRCV", "RLSCV"]
