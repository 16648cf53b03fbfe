"""Estimators that are linear in the features of a kernel."""

from .estimators import KernelHOLRR, KernelLRR, KernelRLS
from .search import KernelHOLRRCV, KernelLRRCV, KernelRLSCV

__all__ = ["KernelHOLRR", "KernelHOLRRCV", "KernelLRR", "KernelLRRCV", "KernelRLS", "KernelRLSCV"]
