"""Estimators that are linear in the features of a kernel."""

from ._cv import KernelHOLRRCV, KernelLRRCV, KernelRLSCV
from ._kernel_holrr import KernelHOLRR
from ._kernel_lrr import KernelLRR
from ._kernel_rls import KernelRLS

__all__ = [
    "KernelHOLRR",
    "KernelHOLRRCV",
    "KernelLRR",
    "KernelLRRCV",
    "KernelRLS",
    "KernelRLSCV",
]
