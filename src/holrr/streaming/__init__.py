"""Data beyond memory and beyond one machine, see docs/streaming.md."""

from ..data.budget import DEFAULT_MAX_BYTES, memory_budget
from ..data.source import Source, open_source

__all__ = ["DEFAULT_MAX_BYTES", "Source", "memory_budget", "open_source"]
