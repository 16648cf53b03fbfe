"""Penalties and ranks chosen by held-out error: every candidate, exactly, for a few fits' price."""

from ._holrr_cv import HOLRRCV
from ._lrr_cv import LRRCV
from ._rls_cv import RLSCV

__all__ = ["HOLRRCV", "LRRCV", "RLSCV"]
