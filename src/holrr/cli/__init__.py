"""The command ``holrr``."""

from ._main import main

__all__ = ["main"]
