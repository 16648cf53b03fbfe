"""Packages that only some of the library needs."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["need"]


def need(module: str, what: str, extra: str) -> Any:
    """A module of such a package; where it is missing, the error says how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f"{what}: pip install holrr[{extra}]") from error
