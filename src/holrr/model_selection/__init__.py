"""Penalties and ranks chosen by held-out error: every candidate, exactly, for a few fits' price."""

from ._linear_cv import HOLRRCV, LRRCV, RLSCV

__all__ = ["HOLRRCV", "LRRCV", "RLSCV"]
