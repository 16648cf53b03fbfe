"""Validation and labels of data, and scaling that keeps labels."""

from .labels import Grid, Labels
from .matrix import to_matrix
from .scaling import Standardizer

__all__ = ["Grid", "Labels", "Standardizer", "to_matrix"]
