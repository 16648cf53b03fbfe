"""Fits and searches for outputs with missing entries, see docs/missing.md."""
