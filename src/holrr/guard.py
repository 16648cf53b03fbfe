"""Fits that fail leave the estimator as it was, and say what can be done about missing outputs."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from .core.finite import BadEntryError

__all__ = ["all_or_nothing"]

# What to do about missing outputs, for each value of the parameter `missing`.
_ABOUT_MISSING = {
    "raise": (
        'If such entries are missing outputs, missing="fill" fits the model to all the others; '
        "else drop these samples or fill the gaps first."
    ),
    "fill": (
        'missing="fill" needs all samples in memory at the same time: load X and y as NumPy arrays '
        "and call fit."
    ),
}


def all_or_nothing(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that leaves the estimator as it was when it raises."""

    @wraps(method)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            return method(self, *args, **kwargs)
        except BaseException as error:
            vars(self).clear()
            vars(self).update(before)
            if isinstance(error, BadEntryError) and error.name == "y" and error.what != "infinity":
                error.hint = _ABOUT_MISSING.get(getattr(self, "missing", ""), error.hint)
            raise

    return guarded
