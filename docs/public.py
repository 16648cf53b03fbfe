"""What is public: the names that ``holrr`` and its packages list in ``__all__``."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import holrr

# The mathematics, for readers of it: documented, but it may change from one version to the next.
INSIDE = ["core"]


def public_names() -> list[str]:
    """Each public object once, under the shortest of its names."""
    packages = [m.name for m in pkgutil.iter_modules(holrr.__path__) if m.ispkg]
    found: dict[int, str] = {}
    for package in ["holrr", *(f"holrr.{name}" for name in packages if name not in INSIDE)]:
        module = import_module(package)
        for name in module.__all__:
            found.setdefault(id(getattr(module, name)), f"{package}.{name}")
    return sorted(name for name in found.values() if not name.endswith("__"))
