"""Data beyond memory and beyond one machine, see docs/streaming.md."""

from ..data.budget import DEFAULT_MAX_BYTES as DEFAULT_MAX_BYTES
from ..data.budget import memory_budget
from ..data.source import Source as Source
from ..data.source import open_source as open_source

__all__ = ["memory_budget"]
