"""The skeleton of the cross-validated kernel estimators: one axis more, that of the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..core.finite import check_finite
from ..data.samples import Samples
from ..data.source import Source
from ..model_selection.final_model import of_the_final_model
from ..model_selection.folds import Folds
from ..model_selection.search import Data, Index
from ..model_selection.surface_search import SurfaceSearchCV
from ._folds import KernelFolds, LandmarkFolds
from ._kernels import KernelSpec, check_kernels, kernel_alphas, mean_eigenvalue, some_samples
from ._landmarks import choose_landmarks
from .base import KernelParameters, kernel_constraints

__all__ = ["KernelSearchCV"]


class KernelSearchCV(KernelParameters, SurfaceSearchCV):
    """The kernel family: one candidate axis more, that of the kernels."""

    _parameter_constraints: dict = {  # noqa: RUF012
        **{name: kernel_constraints[name] for name in kernel_constraints if name != "gamma"},
        "gammas": "no_validation",
        "kernels": "no_validation",
    }

    gammas: Any
    kernels: Any

    @property
    def kernel_params_(self) -> KernelSpec:
        """The chosen kernel: the same keys as in `kernels`."""
        check_is_fitted(self)
        place = getattr(self, "stack_place_", self.best_index_)
        return dict(self.kernels_[place[0]])

    @property
    def gamma_(self) -> float | None:
        """Parameter gamma of the chosen kernel; None for its default, or where it has none."""
        return self.kernel_params_.get("gamma")

    dual_coef_ = of_the_final_model("dual_coef_", "Dense dual coefficients, built when asked for.")

    # ------------------------------------------------------------ helpers

    @property
    def _streams(self) -> bool:  # type: ignore[override]
        return self._uses_landmarks

    def _n_inputs(self, data: Data) -> int:
        return data.n_samples

    def _folds(self, data: Samples | Source, groups: Any) -> Folds:
        if isinstance(data, Samples):
            data = data.in_units(inputs=False)
            check_finite(data.Y, "y")
        splits = self._splits(data, groups)
        specs = check_kernels(self.kernels, self._kernel_spec(), self.gammas, *some_samples(data))
        options = {
            "fit_intercept": self.fit_intercept,
            "center_kernel": self.center_kernel,
            "response_grams": self.subspaces == "response",
        }
        if not self._uses_landmarks:
            assert isinstance(data, Samples)
            return KernelFolds(data, splits, specs, **options)
        kernel, given = specs[0]["kernel"], self.landmarks
        points = choose_landmarks(data, kernel, self.n_components, given, self.random_state)
        return LandmarkFolds(data, splits, specs, points, **options)

    def _prepare(self, folds: Any) -> None:
        self.kernels_ = folds.specs
        if self._uses_landmarks:
            self.landmarks_ = folds.points

    def _default_penalties(self, folds: Any) -> np.ndarray:
        center, some = self.fit_intercept and self.center_kernel, some_samples(folds.data)
        return kernel_alphas([mean_eigenvalue(s, *some, center=center) for s in folds.specs])

    def _to_units(self, penalties: np.ndarray, folds: Folds) -> np.ndarray:
        return penalties  # the inputs of a kernel are never divided

    def _results(self, found: Any, plan: Any, folds: Folds) -> dict[str, Any]:
        return {**super()._results(found, plan, folds), "kernels": self.kernels_}

    def _at_place(self, place: Index) -> dict[str, Any]:
        drawn = {"landmarks": self.landmarks_} if self._uses_landmarks else {}
        return {**super()._at_place(place), **self.kernels_[place[0]], **drawn}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed" and self.kernels is None
        return tags
