"""The door: whatever a user has becomes checked arrays, or a source that is read in blocks."""

from .labels import Grid, Labels
from .scaling import Standardizer

__all__ = ["Grid", "Labels", "Standardizer"]
