"""Models and moments in files that cannot run code, see docs/file_format.md."""

from ._files import load, load_moments, save

__all__ = ["load", "load_moments", "save"]
