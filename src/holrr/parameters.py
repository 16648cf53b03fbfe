"""Parameters as scikit-learn wants them: attributes that have the names of the arguments."""

from __future__ import annotations

from functools import cache
from typing import Any

from sklearn.base import BaseEstimator

__all__ = ["Parameters"]


class Parameters(BaseEstimator):
    """An estimator whose parameters stand in the signature of `__init__`, and nowhere else."""

    def _keep(self, arguments: dict[str, Any]) -> None:
        """Keep the arguments of `__init__`, as they are: what `locals()` is there."""
        self.__dict__.update({name: a for name, a in arguments.items() if name != "self"})

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        """Names of the parameters, read off the signature once for each class."""
        return super()._get_param_names()
