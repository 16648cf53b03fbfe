"""Data beyond memory and beyond one machine, see docs/streaming.md."""

from .budget import memory_budget

__all__ = ["memory_budget"]
