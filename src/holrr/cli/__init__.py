"""Command line of holrr."""

from ._main import main

__all__ = ["main"]
