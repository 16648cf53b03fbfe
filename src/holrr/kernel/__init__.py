"""Estimators that are linear in the features of a kernel."""

from ._kernel_holrr import KernelHOLRR
from ._kernel_holrr_cv import KernelHOLRRCV
from ._kernel_lrr import KernelLRR
from ._kernel_lrr_cv import KernelLRRCV
from ._kernel_rls import KernelRLS
from ._kernel_rls_cv import KernelRLSCV

__all__ = ["KernelHOLRR", "KernelHOLRRCV", "KernelLRR", "KernelLRRCV", "KernelRLS", "KernelRLSCV"]
