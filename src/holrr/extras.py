"""Import of optional dependencies."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["need"]


def need(module: str, what: str, extra: str) -> Any:
    """Import a module of an optional dependency, or raise an error that says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f'{what}: pip install "holrr[{extra}]"') from error
