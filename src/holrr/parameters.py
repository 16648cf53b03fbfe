"""Parameters as scikit-learn wants them: attributes that have the names of the arguments."""

from __future__ import annotations

from functools import cache
from typing import Any

from sklearn.base import BaseEstimator

__all__ = ["Parameters"]


class Parameters(BaseEstimator):
    """An estimator whose parameters stand in the signature of `__init__`, and nowhere else.

    What values they may have a class says of its own ones; those of its bases come with it.
    """

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

    def _keep(self, arguments: dict[str, Any]) -> None:
        """Keep the arguments of `__init__`, as they are: what `locals()` is there."""
        self.__dict__.update({name: a for name, a in arguments.items() if name != "self"})

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        """Names of the parameters, read off the signature once for each class."""
        return super()._get_param_names()
