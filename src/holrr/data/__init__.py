"""Validation and labels of data, and transformers for scaling and delays that keep labels."""

from .delays import Delayer
from .labels import Grid, Labels
from .matrix import to_matrix
from .scaling import Standardizer

__all__ = ["Delayer", "Grid", "Labels", "Standardizer", "to_matrix"]
