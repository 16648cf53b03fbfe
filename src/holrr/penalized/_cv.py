"""The skeleton of the cross-validated estimators: folds, held-out errors, choice, refit."""

from __future__ import annotations

import warnings
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from ..base import all_or_nothing, check_features
from ..core.finite import check_finite
from ..core.namespace import namespace_of
from ..core.spectral import Spectral
from ..core.tensor import mode_product, multi_mode_product
from ..core.tucker import Tucker
from ..data.arrays import check_pair, check_weights
from ..data.moments import Moments
from ..data.source import open_source
from ..model_selection.final_model import FinalModel
from ..model_selection.folds import Folds, check_splits, gather_folds
from ..model_selection.held_out import HeldOut
from ..model_selection.linear_folds import ArrayFolds, MomentFolds, check_fold_moments
from ._progress import progress

__all__ = ["PenalizedCV", "check_positive", "held_out_mse"]


def held_out_mse(held_out: HeldOut, coefficients: Tucker) -> float:
    """Mean squared error on held-out data of coefficients in spectral coordinates."""
    V = multi_mode_product(coefficients.core, coefficients.factors)
    xp = namespace_of(V)
    cross, square = xp.sum(held_out.B * V), xp.sum(V * mode_product(V, held_out.C, 0))
    return max(held_out.yy - 2 * float(cross) + float(square), 0.0) / held_out.size


class PenalizedCV(FinalModel, MultiOutputMixin, RegressorMixin, BaseEstimator, metaclass=ABCMeta):
    """Choose among candidates by held-out error; predict like the chosen one, refitted to all."""

    _parameter_constraints: dict = {  # noqa: RUF012
        "cv": ["cv_object"],
        "fit_intercept": ["boolean"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose", StrOptions({"rich"})],
    }

    cv: Any
    fit_intercept: bool
    n_jobs: int | None
    verbose: bool | int | str
    alpha = 0.0

    # ------------------------------------------------------------ what a method adds

    @abstractmethod
    def _candidates(self, folds: Folds) -> dict[str, Any]:
        """Name and values of each axis of the grid."""

    @abstractmethod
    def _fold_errors(
        self,
        problem: Spectral,
        held_out: HeldOut,
        n_features: int,
        complain: Callable[[str], None],
    ) -> np.ndarray:
        """Held-out errors of all candidates, for one fold; complains where one is not converged."""

    @abstractmethod
    def _candidate(self, index: tuple[int, ...]) -> Any:
        """The unfitted estimator at a place of the grid."""

    # ------------------------------------------------------------ the search

    @all_or_nothing
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Any:
        """Choose by cross-validation and fit the chosen model to all the data.

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
            names = self.__dict__.get("feature_names_in_")
            self.fit_fold_moments(gather_folds(source, self.cv, groups))
            if names is not None:
                self.feature_names_in_ = self.best_estimator_.feature_names_in_ = names
            return self
        X, Y = check_pair(X, y)
        check_finite(Y, "y")
        w = check_weights(sample_weight, X)
        folds = ArrayFolds(
            (X, Y, w),
            check_splits(self.cv, X, Y, groups, w),
            min_alpha=float(self.alpha),
            fit_intercept=self.fit_intercept,
        )
        self._search(folds)
        if hasattr(self, "feature_names_in_"):
            self.best_estimator_.feature_names_in_ = self.feature_names_in_
        return self

    @all_or_nothing
    @_fit_context(prefer_skip_nested_validation=True)
    def fit_fold_moments(self, moments: Sequence[Moments]) -> Any:
        """Choose and fit from moments alone, one for each of disjoint folds; `cv` is not used.

        Parameters
        ----------
        moments : sequence of Moments
            Of two folds at least.

        Returns
        -------
        self
        """
        folds = MomentFolds(
            check_fold_moments(moments, response_grams=False), fit_intercept=self.fit_intercept
        )
        self.__dict__.pop("feature_names_in_", None)
        self.n_features_in_ = folds.n_inputs
        return self._search(folds)

    def _search(self, folds: Folds) -> Any:
        folds.prepare()
        axes = self._candidates(folds)
        self._set_axes(axes)
        fold_mse = np.stack(self._errors(folds))
        mean = fold_mse.mean(axis=0)
        self.cv_results_ = {
            "mean_mse": mean,
            "std_mse": fold_mse.std(axis=0),
            "fold_mse": fold_mse,
            **axes,
        }
        self.best_index_ = tuple(int(i) for i in np.unravel_index(np.argmin(mean), mean.shape))
        self.best_score_ = -float(mean[self.best_index_])
        self.best_estimator_ = folds.refit(self._candidate(self.best_index_))
        return self

    def _set_axes(self, axes: dict[str, Any]) -> None:
        for name, values in axes.items():
            setattr(self, f"{name}_", values)

    def _errors(self, folds: Folds) -> list[np.ndarray]:
        """The errors of each fold; one warning for all the fits that did not converge."""
        n_jobs = min(effective_n_jobs(self.n_jobs), folds.n_folds)
        complaints: list[str] = []
        with progress(self.verbose, type(self).__name__) as show:

            def run(fold: int) -> np.ndarray:
                problem, held_out = folds.problem(fold)
                errors = self._fold_errors(problem, held_out, folds.n_inputs, complaints.append)
                if show is not None:
                    show(f"fold {fold + 1} of {folds.n_folds} done")
                return errors

            found = Parallel(n_jobs=n_jobs, require="sharedmem")(
                delayed(run)(fold) for fold in range(folds.n_folds)
            )
        if complaints:
            warnings.warn(
                f"{len(complaints)} fits of the cross-validation did not converge; the first of "
                f"them: {complaints[0]}",
                ConvergenceWarning,
                stacklevel=5,
            )
        return found

    # ------------------------------------------------------------ the chosen model

    @property
    def n_iter_(self) -> int:
        """Iterations of the final fit."""
        check_is_fitted(self)
        return self.best_estimator_.n_iter_


def check_positive(values: Any, name: str, *, zero: bool) -> np.ndarray:
    """A vector of candidates for a penalty, positive or, with `zero`, at least 0."""
    try:
        found = np.atleast_1d(np.asarray(values, dtype=float))
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be numbers; got {values!r}.") from error
    if found.ndim != 1 or found.size == 0:
        raise ValueError(f"{name} must be a list of at least one number; got {values!r}.")
    allowed = np.isfinite(found) & ((found >= 0) if zero else (found > 0))
    if not allowed.all():
        bound = "at least 0" if zero else "above 0"
        raise ValueError(f"{name} must be finite and {bound}; got {found[~allowed][0]}.")
    return found
