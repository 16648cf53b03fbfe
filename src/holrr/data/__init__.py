"""Validation and labels of data, and scaling that keeps labels."""

from .labels import Grid, Labels
from .scaling import Standardizer

__all__ = ["Grid", "Labels", "Standardizer"]
