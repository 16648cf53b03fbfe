"""Estimators that are linear in the inputs."""

from ._holrr import HOLRR
from ._lrr import LRR
from ._rls import RLS

__all__ = ["HOLRR", "LRR", "RLS"]
