"""Warnings that point at the line of the user's program."""

from __future__ import annotations

import sys
import warnings

__all__ = ["warn"]

# Packages whose frames lie between the user's code and the warning, and are skipped.
_SKIPPED = {"holrr", "sklearn", "joblib", "contextlib", "functools", "threadpoolctl"}


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost frame outside of this package and the libraries that call it."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _root(frame.f_globals) in _SKIPPED:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _root(names: dict[str, object]) -> str:
    return str(names.get("__name__", "")).partition(".")[0]
