"""What is public: what ``holrr`` and its packages list in ``__all__``, and the methods of that."""

from __future__ import annotations

import inspect
import pkgutil
import re
from importlib import import_module
from typing import Any

import holrr

# Packages without public names: they have pages of their own, and may change between versions.
INSIDE = ["core", "missing"]
# Steps of the mathematics that a public class inherits from there.
INSIDE_METHODS = {
    "Moments": ["about", "about_zero", "centred", "from_checked", "to_host_if_small"],
}
# Methods of scikit-learn that estimators define again, with types and a docstring of one line.
SHORTENED = ["fit_transform", "get_feature_names_out", "get_metadata_routing", "get_params"]
SHORTENED += ["set_output", "set_params"]


def public_names() -> list[str]:
    """Each public object once, under the shortest of its names."""
    packages = [m.name for m in pkgutil.iter_modules(holrr.__path__) if m.ispkg]
    found: dict[int, str] = {}
    for package in ["holrr", *(f"holrr.{name}" for name in packages if name not in INSIDE)]:
        module = import_module(package)
        for name in module.__all__:
            found.setdefault(id(getattr(module, name)), f"{package}.{name}")
    return sorted(name for name in found.values() if not name.endswith("__"))


def resolve(name: str) -> Any:
    """The object of a public name."""
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(module), attribute)


def is_documented(name: str, value: Any) -> bool:
    """Whether an attribute of a public class is our own: no one else's, nor a mere refusal."""
    home = getattr(getattr(value, "fget", value), "__module__", None) or ""
    refuses = name == "predict_interval" and isinstance(value, property)
    shortened = home == "holrr.base" and name in SHORTENED
    of_python = getattr(getattr(value, "__objclass__", None), "__module__", "") == "builtins"
    others = of_python or home.startswith("sklearn")
    return not (refuses or others or shortened or re.fullmatch(r"set_\w+_request", name))


def public_methods(cls: type) -> dict[str, str]:
    """Docstrings of the methods of a public class, class methods among them, by their names."""
    found = {}
    for name in dir(cls):
        value = getattr(cls, name)
        if not name.startswith("_") and callable(value) and is_documented(name, value):
            found[name] = inspect.getdoc(value) or ""
    return {k: v for k, v in found.items() if k not in INSIDE_METHODS.get(cls.__name__, [])}
