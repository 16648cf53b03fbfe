"""Regression from vectors to tensors.

>>> from holrr import HOLRR
>>> HOLRR(rank=3, alpha=0.5)
HOLRR(alpha=0.5, rank=3)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from .core.tucker import Tucker
    from .data.moments import Moments
    from .inference import standard_errors
    from .io import load
    from .kernel import (
        KernelHOLRR,
        KernelHOLRRCV,
        KernelLRR,
        KernelLRRCV,
        KernelRLS,
        KernelRLSCV,
    )
    from .linear import HOLRR, LRR, RLS
    from .model_selection import HOLRRCV, LRRCV, RLSCV
    from .penalized import MLMTNC, MLMTNCCV, TraceNormRegression, TraceNormRegressionCV

__all__ = ["HOLRR", "HOLRRCV", "LRR", "LRRCV", "RLS", "RLSCV"]
__all__ += ["KernelHOLRR", "KernelHOLRRCV", "KernelLRR", "KernelLRRCV", "KernelRLS", "KernelRLSCV"]
__all__ += ["MLMTNC", "MLMTNCCV", "TraceNormRegression", "TraceNormRegressionCV"]
__all__ += ["Moments", "Tucker", "__version__", "load", "standard_errors"]

# Where the public names live. They are imported when the first of them is asked for: the command
# line begins with an import of this package and must answer Ctrl-C from then on, and the libraries
# of numbers take a second.
_HOMES = ["core.tucker", "data.moments", "inference", "io", "kernel", "linear"]
_HOMES += ["metrics", "model_selection", "penalized"]


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        for home in _HOMES:
            module = import_module(f".{home}", __name__)
            globals().update({n: getattr(module, n) for n in module.__all__ if n in __all__})
        if name in globals():
            return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
