"""Validation and labels of data, and preprocessing that keeps labels."""

from .along import Along
from .delays import Delayer
from .labels import Grid, Labels
from .matrix import to_matrix
from .scaling import Standardizer

__all__ = ["Along", "Delayer", "Grid", "Labels", "Standardizer", "to_matrix"]
