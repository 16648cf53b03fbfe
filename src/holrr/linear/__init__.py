"""Ridge, low-rank and higher-order low-rank regression for tensor outputs."""

from ..core.input_map import InputMap, InputSpace
from .estimators import HOLRR, LRR, RLS

__all__ = ["HOLRR", "LRR", "RLS", "InputMap", "InputSpace"]
