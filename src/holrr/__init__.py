"""Regression from vectors to tensors.

>>> from holrr import HOLRR
>>> HOLRR(rank=3, alpha=0.5)
HOLRR(alpha=0.5, rank=3)
"""

from ._version import __version__
from .core.tucker import Tucker
from .data.moments import Moments
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

__all__ = [
    "HOLRR",
    "HOLRRCV",
    "LRR",
    "LRRCV",
    "MLMTNC",
    "MLMTNCCV",
    "RLS",
    "RLSCV",
    "KernelHOLRR",
    "KernelHOLRRCV",
    "KernelLRR",
    "KernelLRRCV",
    "KernelRLS",
    "KernelRLSCV",
    "Moments",
    "TraceNormRegression",
    "TraceNormRegressionCV",
    "Tucker",
    "__version__",
    "load",
]
