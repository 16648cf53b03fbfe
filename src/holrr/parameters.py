"""Parameters of estimators: their names, and which values they may have."""

from __future__ import annotations

from functools import cache
from typing import Any

from sklearn.base import BaseEstimator

__all__ = ["Parameters"]


class Parameters(BaseEstimator):
    """An estimator that says which values its own parameters may have; its bases say of theirs."""

    _parameter_constraints: dict = {  # noqa: RUF012 (scikit-learn's convention)
        "output_shape": ["array-like", None],
        "sample_dim": [str, None],
    }

    def __init_subclass__(cls, **options: Any) -> None:
        """Collect the constraints of all bases, those of the first named one last."""
        super().__init_subclass__(**options)
        cls._own_constraints = vars(cls).get("_parameter_constraints", {})
        merged: dict[str, Any] = {}
        for base in map(vars, reversed(cls.__mro__)):
            merged |= base.get("_own_constraints", base.get("_parameter_constraints", {}))
        cls._parameter_constraints = merged

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        """Names of the parameters, read off the signature once for each class."""
        return super()._get_param_names()
