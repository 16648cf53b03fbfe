"""Standard errors of coefficients, predictions and factors."""

from .estimates import Estimate, StandardErrors
from .jackknife import standard_errors

__all__ = ["Estimate", "StandardErrors", "standard_errors"]
