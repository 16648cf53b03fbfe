"""Searches of models that are linear in the inputs: folds from samples, sources or moments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import StrOptions

from ..base import all_or_nothing
from ..core.finite import check_finite
from ..data.moments import Moments
from ..data.samples import Samples
from ..data.source import Source
from .folds import check_splits, gather_folds
from .linear_folds import ArrayFolds, MomentFolds, check_fold_moments
from .penalties import default_alphas
from .search import SearchCV
from .surface_search import SurfaceSearchCV

__all__ = ["LinearSearchCV", "LinearSurfaceSearchCV"]


class LinearSearchCV(SearchCV):
    """The linear families: problems from samples, sources or moments."""

    criterion: str = "cv"
    solver: str = "auto"
    subspaces: str = "fitted"
    max_bytes: float = 2**30

    @all_or_nothing
    @_fit_context(prefer_skip_nested_validation=True)
    def fit_fold_moments(self, moments: Sequence[Moments]) -> Any:
        """Cross-validate and fit from moments alone, one for each of disjoint folds.

        Neither a stream nor a cluster has to keep its data for that: each sample is added to the
        moments of one fold, and the moments are all that comes here. `cv` is not used.

        Parameters
        ----------
        moments : sequence of Moments
            Of two folds at least; gathered with ``response_grams=True`` where
            ``subspaces="response"``.

        Returns
        -------
        self
        """
        folds = self._moment_folds(moments)
        self.__dict__.pop("feature_names_in_", None)
        self.n_features_in_ = folds.n_inputs
        self._check_grid(folds.total())
        return self._search(folds)

    @classmethod
    def from_fold_moments(cls, moments: Sequence[Moments], **parameters: Any) -> Any:
        """A new estimator with these parameters, fitted by `fit_fold_moments`."""
        return cls(**parameters).fit_fold_moments(moments)

    def _moment_folds(self, moments: Sequence[Moments]) -> MomentFolds:
        if self.solver == "svd":
            raise ValueError(
                "solver='svd' factorises the samples themselves, which moments do not hold; use "
                "solver='auto' or 'eigh' with moments."
            )
        parts = check_fold_moments(moments, self.subspaces == "response")
        return MomentFolds(parts, fit_intercept=self.fit_intercept)

    def _folds(self, data: Samples | Source, groups: Any) -> ArrayFolds | MomentFolds:
        grams, wants_folds = self.subspaces == "response", self.criterion == "cv"
        if isinstance(data, Source):  # the moments of all folds from one pass over the data
            if wants_folds:
                return self._moment_folds(gather_folds(data, self.cv, groups, grams))
            return self._moment_folds(data.halves(grams))
        data = data.in_units()
        if data.w is not None:  # samples without weight are not looked at later
            check_finite(data.Y, "y")
        splits = check_splits(self.cv, data.X, data.Y, groups, data.w) if wants_folds else []
        return ArrayFolds(
            data,
            splits,
            fit_intercept=self.fit_intercept,
            response_grams=grams,
            solver=self.solver,
            max_bytes=self.max_bytes,
        )


class LinearSurfaceSearchCV(LinearSearchCV, SurfaceSearchCV):
    """Linear models whose ranks are chosen from surfaces."""

    _parameter_constraints: dict = {  # noqa: RUF012
        **SurfaceSearchCV._parameter_constraints,
        "solver": [StrOptions({"auto", "eigh", "svd"})],
    }

    def _default_penalties(self, folds: Any) -> np.ndarray:
        return default_alphas(*folds.energy())
