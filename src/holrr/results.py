"""The results of a search: a dictionary that finds its largest arrays when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

__all__ = ["Later", "Results"]


class Later:
    """An entry that nobody has asked for yet."""

    def __init__(self, find: Callable[[], Any]):
        self.find = find


class Results(dict[str, Any]):
    """A dictionary in which an entry that is a `Later` is found at the first look at it.

    The spread over the folds takes as long as some of the search, and to bring the errors of all
    folds from an accelerator longer than the search itself. Copies, pickles and files hold the
    entries themselves.

    Examples
    --------
    >>> results = Results(mean=1.0, spread=Later(lambda: print("found") or 0.5))
    >>> "spread" in results, results["mean"]
    (True, 1.0)
    >>> results["spread"], results["spread"]
    found
    (0.5, 0.5)
    >>> dict(results)
    {'mean': 1.0, 'spread': 0.5}
    """

    # Those of a mapping are made of `__getitem__`; those of a dict hand out what is not found yet.
    get: Any = MutableMapping.get
    popitem: Any = MutableMapping.popitem
    setdefault: Any = MutableMapping.setdefault
    items: Any = MutableMapping.items
    values: Any = MutableMapping.values
    __eq__: Any = MutableMapping.__eq__

    def __getitem__(self, key: str) -> Any:
        value = super().__getitem__(key)
        if isinstance(value, Later):
            value = self[key] = value.find()
        return value

    def __iter__(self) -> Iterator[str]:
        # Its own, so that ``dict(results)`` and ``{**results}`` ask for the entries by name.
        return super().__iter__()

    def pop(self, key: str, *default: Any) -> Any:
        self.get(key)
        return super().pop(key, *default)

    def copy(self) -> dict[str, Any]:
        return dict(self)

    def __or__(self, other: Any) -> Any:
        return dict(self) | other

    def __reduce__(self) -> Any:
        return dict, (dict(self),)

    def __repr__(self) -> str:
        return repr(dict(self))
