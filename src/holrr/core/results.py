"""Results of a search, `cv_results_`: a dictionary that computes large arrays lazily.

The errors of all folds, penalties and ranks of a search can be larger than everything else that the
search computes. They are rarely read, and are collected on first access.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

__all__ = ["Deferred", "Results"]


class Deferred:
    """A value that is computed on first access.

    Parameters
    ----------
    compute : callable
        Function without arguments that returns the value.
    """

    def __init__(self, compute: Callable[[], np.ndarray]) -> None:
        self.compute = compute


class Results(dict[str, Any]):
    """A dictionary whose values may be `Deferred`: reading a deferred value computes it.

    Examples
    --------
    >>> results = Results(alphas=[1.0], mean_mse=Deferred(lambda: np.zeros(2)))
    >>> list(results), results["mean_mse"]
    (['alphas', 'mean_mse'], array([0., 0.]))
    """

    def __getitem__(self, key: str) -> Any:
        value = super().__getitem__(key)
        if isinstance(value, Deferred):
            value = value.compute()
            self[key] = value
        return value

    # Because of this iterator, `dict(results)` and `{**results}` read the values one by one.
    def __iter__(self) -> Iterator[str]:
        return super().__iter__()

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in self else default  # noqa: SIM401

    def values(self) -> Any:
        return self._read().values()

    def items(self) -> Any:
        return self._read().items()

    def pop(self, key: str, *default: Any) -> Any:
        if key in self:
            value = self[key]
            del self[key]
            return value
        return super().pop(key, *default)

    def setdefault(self, key: str, default: Any = None) -> Any:
        super().setdefault(key, default)
        return self[key]

    def __eq__(self, other: object) -> bool:
        return self._read() == other

    __hash__ = None

    def __repr__(self) -> str:
        return repr(self._read())

    def __reduce__(self) -> tuple[Any, ...]:
        return Results, (self._read(),)

    def copy(self) -> Results:
        """Return a copy in which deferred values stay deferred."""
        found = Results()
        for key in self:
            dict.__setitem__(found, key, dict.__getitem__(self, key))
        return found

    def scaled(self, keys: Iterable[str], factor: float) -> Results:
        """Return a copy with some values multiplied by a factor; deferred values stay deferred."""
        found = self.copy()
        for key in keys:
            value = dict.__getitem__(self, key)
            if isinstance(value, Deferred):
                found[key] = Deferred(partial(_product, value, factor))
            else:
                found[key] = value * factor
        return found

    def _read(self) -> dict[str, Any]:
        return {key: self[key] for key in self}


def _product(value: Deferred, factor: float) -> np.ndarray:
    with np.errstate(over="ignore", under="ignore"):
        return value.compute() * factor
