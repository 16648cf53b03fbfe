"""Regression from vectors to tensors.

>>> from holrr import HOLRR
>>> HOLRR(rank=3, alpha=0.5)
HOLRR(alpha=0.5, rank=3)
"""

from ._version import __version__
from .core.moments import Moments
from .core.tucker import Tucker
from .linear import HOLRR, LRR, RLS

__all__ = ["HOLRR", "LRR", "RLS", "Moments", "Tucker", "__version__"]
