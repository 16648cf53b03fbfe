"""Streams: data that do not fit in memory or on one machine, see docs/streaming.md."""

from .budget import memory_budget

__all__ = ["memory_budget"]
