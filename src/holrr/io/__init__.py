"""Models and moments in files that cannot run code, see docs/file_format.md."""

from ._atomic import check_writable, write_atomically
from ._files import load, load_moments, load_with_notes, save

__all__ = ["check_writable", "load", "load_moments", "load_with_notes", "save", "write_atomically"]
