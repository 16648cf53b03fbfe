"""Estimators that are linear in the features of a kernel."""

from ._kernel_holrr import KernelHOLRR
from ._kernel_lrr import KernelLRR
from ._kernel_rls import KernelRLS

__all__ = ["KernelHOLRR", "KernelLRR", "KernelRLS"]
