"""Calls of public methods: types of decorated methods, and errors that name the method."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import wraps
from typing import Any, TypeVar, cast

from sklearn.base import _fit_context
from sklearn.utils._metadata_requests import RequestMethod

__all__ = ["name_calls", "nearest", "validates_parameters", "with_named_errors"]

Method = TypeVar("Method", bound=Callable[..., Any])


def validates_parameters(method: Method) -> Method:
    """Validate the parameters of the estimator before a fit, as scikit-learn does."""
    return cast(Method, _fit_context(prefer_skip_nested_validation=True)(method))


def name_calls(cls: type) -> None:
    """Let errors of wrong arguments name the class of the object and the method that was called.

    Python would name the class that defines the method, such as LinearSearch. Methods that request
    metadata, which scikit-learn creates, get a docstring of one line.
    """
    for name, value in list(vars(cls).items()):
        if inspect.isfunction(value) and (name == "__init__" or not name.startswith("_")):
            setattr(cls, name, with_named_errors(value))
        elif type(value) is RequestMethod:
            setattr(cls, name, _BriefRequest(value.name, value.keys))


def nearest(name: str, names: Iterable[str]) -> str:
    """Return a sentence with the name that is nearest to a wrong one, or with all names."""
    names = list(names)
    found = get_close_matches(name, names, n=1)
    return f"Did you mean {found[0]}?" if found else f"It has: {', '.join(names)}."


def with_named_errors(method: Method) -> Method:
    """Let errors of wrong arguments name the class of the object and the method."""

    @wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except TypeError:
            problem = _wrong_arguments(method, self, args, kwargs)
            if problem is None:
                raise
        raise TypeError(problem)

    # help() shows names and defaults; the docstring describes the types.
    signature = inspect.signature(method)
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    call.__signature__ = inspect.Signature(bare)  # type: ignore[attr-defined]
    return cast(Method, call)


def _wrong_arguments(
    method: Callable[..., Any], self: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> str | None:
    """Return what is wrong with the arguments of a call; None if they fit the method."""
    signature = inspect.signature(method)
    try:
        signature.bind(self, *args, **kwargs)
    except TypeError as error:
        problem = str(error)
    else:
        return None
    made = method.__name__ == "__init__"
    call = type(self).__name__ if made else f"{type(self).__name__}.{method.__name__}"
    parameters = list(signature.parameters.values())[1:]
    for name in kwargs:
        if name not in signature.parameters:
            what = "parameter" if made else "argument"
            return f"{call}() has no {what} {name!r}. {nearest(name, [p.name for p in parameters])}"
    positional = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    if len(args) > len(positional):
        few = ", ".join(positional) or "no arguments"
        return f"{call}() takes {few} by position; got {len(args)}. Pass the others by name."
    given = {*positional[: len(args)], *kwargs}
    needed = [p.name for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    missing = [name for name in needed if name not in given]
    if not missing:
        return f"{call}(): {problem}."
    return f"{call}() needs {' and '.join(missing)}. Call {method.__name__}({', '.join(needed)})."


class _BriefRequest(RequestMethod):
    """Method that requests metadata, with a docstring of one line in place of thirty."""

    def __get__(self, instance: Any, owner: Any) -> Any:
        request = super().__get__(instance, owner)
        request.__doc__ = f"Request metadata for `{self.name}`: see metadata routing, scikit-learn."
        return request
