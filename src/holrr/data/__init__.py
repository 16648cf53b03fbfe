"""The door: whatever a user has becomes checked arrays, or a source that is read in blocks."""

from .labels import Grid, Labels

__all__ = ["Grid", "Labels"]
