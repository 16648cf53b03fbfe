"""Saving and loading of models and moments, in files without code (docs/file_format.md)."""

from ._atomic import check_writable as check_writable
from ._atomic import write_atomically as write_atomically
from ._files import load, load_with_notes, save
from ._files import load_moments as load_moments

__all__ = ["load", "load_with_notes", "save"]
