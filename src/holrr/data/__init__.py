"""Validation and labels of data, and preprocessing that keeps labels."""

from .delays import Delayer
from .labels import Grid, Labels
from .matrix import to_matrix
from .scaling import Standardizer
from .spectra import RangeSelector, SavitzkyGolay, StandardNormalVariate

__all__ = ["Delayer", "Grid", "Labels", "RangeSelector", "SavitzkyGolay", "StandardNormalVariate"]
__all__ += ["Standardizer", "to_matrix"]
