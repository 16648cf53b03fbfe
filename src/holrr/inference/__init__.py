"""How sure: standard errors of coefficients, predictions and factors."""

from ._estimates import Estimate, StandardErrors
from ._jackknife import standard_errors

__all__ = ["Estimate", "StandardErrors", "standard_errors"]
