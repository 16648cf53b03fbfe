"""The skeleton of the cross-validated kernel estimators: one axis more, that of the kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sklearn.base import _fit_context
from sklearn.utils.validation import check_is_fitted

from ..base import all_or_nothing, check_features
from ..core.namespace import Array
from ..data.arrays import check_pair, check_weights
from ..model_selection.folds import Folds, Split, check_splits
from ..model_selection.grid import check_alphas
from ..model_selection.search import BaseTensorCV
from ..model_selection.selection import Index
from ._base import kernel_constraints
from ._candidates import (
    KernelSpec,
    check_kernels,
    kernel_alphas,
    kernel_function,
    mean_eigenvalue,
)
from ._folds import KernelFolds, LandmarkFolds
from ._landmarks import Landmarks, choose_landmarks

__all__ = ["KernelTensorCV"]


class KernelTensorCV(BaseTensorCV):
    """The kernel family: one candidate axis more, that of the kernels."""

    _parameter_constraints: dict = {  # noqa: RUF012
        **BaseTensorCV._parameter_constraints,
        **{name: kernel_constraints[name] for name in kernel_constraints if name != "gamma"},
        "gammas": "no_validation",
        "kernels": "no_validation",
    }

    cv: Any
    kernel: str | Callable[..., float]
    gammas: Any
    degree: float
    coef0: float
    kernel_params: dict[str, Any] | None
    kernels: Any
    center_kernel: bool
    n_components: int | None
    landmarks: Any
    random_state: Any

    @all_or_nothing
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Any:
        """Choose kernel, penalty and ranks, and fit the chosen model to all the data.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            With ``kernel="precomputed"``, the Gram matrix (n_samples, n_samples).
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
        alphas = check_alphas(self.alphas)
        checked = check_pair(X, y)
        check_features(self, X, reset=True)
        X, Y = checked
        w = check_weights(sample_weight, Y)
        self._rank_grid((X.shape[0], *Y.shape[1:]))
        splits = check_splits(self.cv, X, Y, groups, w) if self.criterion == "cv" else []
        self.kernels_ = check_kernels(self.kernels, self._default_kernel(), self.gammas, X, w)
        if alphas is None:
            center = self.fit_intercept and self.center_kernel
            means = [mean_eigenvalue(spec, X, w, center=center) for spec in self.kernels_]
            alphas = kernel_alphas(means)
        self._search(self._folds(X, Y, w, splits), alphas)
        self.cv_results_["kernels"] = self.kernels_
        return self

    @property
    def kernel_params_(self) -> KernelSpec:
        """The chosen kernel: the same keys as in `kernels`."""
        check_is_fitted(self)
        return dict(self.kernels_[self.best_index_[0]])

    @property
    def gamma_(self) -> float | None:
        """Parameter gamma of the chosen kernel; None for its default, or where it has none."""
        return self.kernel_params_.get("gamma")

    @property
    def dual_coef_(self) -> Array:
        """Dense dual coefficients of the final model, built when asked for."""
        check_is_fitted(self)
        return self.best_estimator_.dual_coef_

    # ------------------------------------------------------------ helpers

    def _default_kernel(self) -> KernelSpec:
        return {
            "kernel": self.kernel,
            "degree": self.degree,
            "coef0": self.coef0,
            "kernel_params": self.kernel_params,
        }

    def _folds(self, X: Array, Y: Array, w: Array | None, splits: Sequence[Split]) -> Folds:
        options = {
            "fit_intercept": self.fit_intercept,
            "center_kernel": self.center_kernel,
            "response_grams": self.subspaces == "response",
        }
        kernels = [kernel_function(spec) for spec in self.kernels_]
        if self.n_components is None and self.landmarks is None:
            return KernelFolds((X, Y, w), splits, kernels, **options)
        self.landmarks_ = choose_landmarks(
            X, kernels[0].name, self.n_components, self.landmarks, self.random_state
        )
        features = [Landmarks.of(kernel, self.landmarks_) for kernel in kernels]
        return LandmarkFolds((X, Y, w), splits, features, **options)

    def _shared(self, index: Index) -> dict[str, Any]:
        """Parameters of the estimator at a place of the grid, less those of its rank."""
        return {
            **self.kernels_[index[0]],
            "alpha": float(self.alphas_[index[1]]),
            "fit_intercept": self.fit_intercept,
            "center_kernel": self.center_kernel,
            "landmarks": getattr(self, "landmarks_", None),
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed" and self.kernels is None
        return tags
