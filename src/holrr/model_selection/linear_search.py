"""What the cross-validated linear estimators share: folds from arrays or from moments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import StrOptions

from ..base import all_or_nothing, check_features
from ..core.finite import check_finite
from ..core.namespace import namespace_of
from ..data.arrays import check_pair, check_weights
from ..data.moments import Moments
from ..data.source import Source, open_source
from .folds import Split, check_splits, gather_folds
from .grid import check_alphas, default_alphas, input_energy
from .linear_folds import ArrayFolds, MomentFolds, centred, check_fold_moments
from .search import BaseTensorCV

__all__ = ["LinearTensorCV"]


class LinearTensorCV(BaseTensorCV):
    """The linear family: folds from arrays or from moments."""

    _parameter_constraints: dict = {  # noqa: RUF012
        **BaseTensorCV._parameter_constraints,
        "solver": [StrOptions({"auto", "eigh", "svd"})],
    }

    cv: Any
    solver: str

    @all_or_nothing
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Any:
        """Choose penalty and ranks, and fit the chosen model to all the data.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples, d1, ..., dp)
            Outputs of any order p >= 0.
        sample_weight : array of shape (n_samples,), optional
            Weights of the samples, in the fits and in the held-out errors.
        groups : array of shape (n_samples,), optional
            Groups of the samples, for splitters that ask for them.

        Returns
        -------
        self
        """
        check_features(self, X, reset=True)
        source = open_source(X, y, sample_weight)
        if source is not None:
            return self._fit_source(source, groups)
        alphas = check_alphas(self.alphas)
        X, Y = check_pair(X, y)
        w = check_weights(sample_weight, X)
        if w is not None:  # samples without weight are not looked at later
            check_finite(Y, "y")
        self._rank_grid((X.shape[1], *Y.shape[1:]))
        splits = self._splits(X, Y, groups, w)
        if alphas is None:
            alphas = default_alphas(input_energy(X, w, self.fit_intercept), min(X.shape))
        self._search(self._array_folds((X, Y, w), splits, alphas), alphas)
        return self._name_features()

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
        parts = check_fold_moments(moments, self.subspaces == "response")
        if self.solver == "svd":
            raise ValueError(
                "solver='svd' factorises the samples themselves, which moments do not hold; use "
                "solver='auto' or 'eigh' with moments."
            )
        alphas = check_alphas(self.alphas)
        folds = MomentFolds(parts, fit_intercept=self.fit_intercept)
        self._rank_grid((folds.n_inputs, *folds.output_shape))
        if alphas is None:
            total = centred(folds.total(), self.fit_intercept)
            energy = float(namespace_of(total.Sxx).linalg.trace(total.Sxx))
            alphas = default_alphas(energy, min(total.n_samples, folds.n_inputs))
        self.__dict__.pop("feature_names_in_", None)
        self.n_features_in_ = folds.n_inputs
        return self._search(folds, alphas)

    @classmethod
    def from_fold_moments(cls, moments: Sequence[Moments], **parameters: Any) -> Any:
        """A new estimator with these parameters, fitted by `fit_fold_moments`."""
        return cls(**parameters).fit_fold_moments(moments)

    def _splits(self, X: Any, Y: Any, groups: Any, w: Any) -> list[Split]:
        """Index pairs; none for an information criterion, which needs no folds."""
        if self.criterion == "cv":
            return check_splits(self.cv, X, Y, groups, w)
        if X.shape[0] < 2:
            raise ValueError(
                f"criterion={self.criterion!r} needs two samples at least; got 1 sample."
            )
        return []

    def _array_folds(self, data: Any, splits: list[Split], alphas: np.ndarray) -> ArrayFolds:
        return ArrayFolds(
            data,
            splits,
            min_alpha=float(alphas.min()),
            fit_intercept=self.fit_intercept,
            response_grams=self.subspaces == "response",
            solver=self.solver,
            max_bytes=self.max_bytes,
        )

    def _fit_source(self, source: Source, groups: Any) -> Any:
        """Data beyond memory: the moments of all folds from one pass over them."""
        names = self.__dict__.get("feature_names_in_")
        grams = self.subspaces == "response"
        folds = self.criterion == "cv"
        self.fit_fold_moments(
            gather_folds(source, self.cv, groups, grams) if folds else source.halves(grams)
        )
        if names is not None:
            self.feature_names_in_ = names
        return self._name_features()

    def _name_features(self) -> Any:
        """The final model knows the features' names, too, if it was fitted to moments."""
        if hasattr(self, "feature_names_in_"):
            self.best_estimator_.feature_names_in_ = self.feature_names_in_
        return self
