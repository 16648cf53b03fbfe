"""Kernel ridge, low-rank and higher-order low-rank regression for tensor outputs."""

from .estimators import KernelHOLRR, KernelLRR, KernelRLS
from .search import KernelHOLRRCV, KernelLRRCV, KernelRLSCV

__all__ = ["KernelHOLRR", "KernelHOLRRCV", "KernelLRR", "KernelLRRCV", "KernelRLS", "KernelRLSCV"]
