"""Searches of models that are linear in the inputs: folds from samples, sources or moments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import StrOptions

from ..core.finite import check_finite
from ..data.moments import Moments
from ..data.samples import Samples, forget_names
from ..data.source import Source
from ..guard import all_or_nothing
from ..linear.base import output_constraints, refuse_output_weight
from ..linear.holes import check_no_infinity, has_holes, output_weights, unscale_fit, weighted
from ..progress import progress
from .folds import Folds
from .holes import HoleFolds, Visit, settle, unweighted_error
from .linear_folds import ArrayFolds, MomentFolds, check_fold_moments
from .penalties import default_alphas
from .search import Index, SearchCV
from .selection import select
from .splits import gather_folds
from .surface_search import SurfaceSearchCV

__all__ = ["LinearSearchCV", "LinearSurfaceSearchCV"]


class LinearSearchCV(SearchCV):
    """The linear families: problems from samples, sources or moments."""

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

        Examples
        --------
        >>> from holrr import RLSCV, Moments
        >>> from holrr.datasets import make_tensor_regression
        >>> X, Y = make_tensor_regression(60, 4, (3, 2), rank=2, snr=1, random_state=0)
        >>> folds = [Moments.from_arrays(X[k::3], Y[k::3]) for k in range(3)]
        >>> model = RLSCV(alphas=[0.1, 1.0, 10.0]).fit_fold_moments(folds)
        >>> RLSCV.from_fold_moments(folds, alphas=[0.1, 1.0, 10.0]).alpha_ == model.alpha_
        True
        """
        folds = self._moment_folds(moments)
        forget_names(self, folds.total().output_shape)
        self.n_features_in_ = folds.n_inputs
        self._check_grid(folds.total())
        return self._search(folds)

    @classmethod
    def from_fold_moments(cls, moments: Sequence[Moments], **parameters: Any) -> Any:
        """A new estimator with these parameters, fitted by `fit_fold_moments`."""
        return cls(**parameters).fit_fold_moments(moments)

    def _moment_folds(self, moments: Sequence[Moments], splits: Any = None) -> MomentFolds:
        if self.solver == "svd":
            raise ValueError(
                "solver='svd' factorises the samples themselves, which moments do not hold; use "
                "solver='auto' or 'eigh' with moments."
            )
        parts = check_fold_moments(moments, self.subspaces == "response")
        return MomentFolds(parts, splits, fit_intercept=self.fit_intercept)

    def _folds(self, data: Samples | Source, groups: Any) -> Folds:
        grams = self.subspaces == "response"
        if isinstance(data, Source):  # the moments of all folds from one pass over the data
            if self.criterion == "cv":
                return self._moment_folds(*gather_folds(data, self.cv, groups, grams))
            return self._moment_folds(data.halves(grams))
        data = data.in_units()
        if data.w is not None:  # samples without weight are not looked at later
            check_finite(data.Y, "y")
        return ArrayFolds(
            data,
            self._splits(data, groups),
            fit_intercept=self.fit_intercept,
            response_grams=grams,
            solver=self.solver,
            max_bytes=self.max_bytes,
        )


class LinearSurfaceSearchCV(LinearSearchCV, SurfaceSearchCV):
    """Linear models whose ranks are chosen from surfaces; outputs may be missing or weighted."""

    _parameter_constraints: dict = {  # noqa: RUF012
        "solver": [StrOptions({"auto", "eigh", "svd"})],
        **output_constraints,
    }

    missing: str
    output_weight: Any

    def _default_penalties(self, folds: Any) -> np.ndarray:
        return default_alphas(*folds.energy())

    def _moment_folds(self, moments: Sequence[Moments], splits: Any = None) -> MomentFolds:
        refuse_output_weight(self, "moments or data beyond memory")
        return super()._moment_folds(moments, splits)

    def _folds(self, data: Samples | Source, groups: Any) -> Folds:
        if not isinstance(data, Samples):
            return super()._folds(data, groups)
        weights = output_weights(self, data.output_shape)
        data = weighted(data, weights)
        if self.missing == "fill" and has_holes(data):
            folds: Folds = self._hole_folds(data.in_units(), groups)
        else:
            folds = super()._folds(data, groups)
        folds.output_weights = weights
        return folds

    def _fit_choice(self, folds: Any, model: Any, **options: Any) -> Any:
        weights = folds.output_weights
        if isinstance(folds, HoleFolds) and folds.choice is not None and "mask" in options:
            options["pilot"] = folds.visited[folds.choice].model
        model = super()._fit_choice(folds, model, **options)
        if weights is not None:
            if self.criterion == "cv":
                error = unweighted_error(folds, model, weights, options)
                self.cv_results_["unweighted_mse"] = error
            unscale_fit(model, weights)
            model.output_weight = self.output_weight
        return model

    # ------------------------------------------------------------ missing outputs

    def _hole_folds(self, data: Samples, groups: Any) -> HoleFolds:
        if self.subspaces == "response":
            raise ValueError(
                "subspaces='response' takes the subspaces from complete outputs, and entries of y "
                "are missing; use subspaces='fitted'."
            )
        check_no_infinity(data)
        return HoleFolds(data, self._splits(data, groups), fit_intercept=self.fit_intercept)

    def _errors(self, plan: Any, penalties: np.ndarray, folds: Any) -> Any:
        if isinstance(folds, HoleFolds) and not plan.caps:  # ridge regression
            return folds.ridge_errors(self._to_units(penalties, folds)), (penalties.size,)
        return super()._errors(plan, penalties, folds)

    def _swept(self, folds: Any) -> tuple[Any, Any]:
        found, plan = super()._swept(folds)
        if not isinstance(folds, HoleFolds) or not plan.caps:
            return found, plan
        with progress(f"{type(self).__name__}, missing outputs", self.verbose) as bar:

            def visit(index: Index) -> Visit:
                n = len(index) - len(plan.caps)
                model = self._model_at(index[:n], tuple(i + 1 for i in index[n:]))
                bar.expect(folds.n_folds)
                return folds.visit(model, self.n_jobs, bar.tick)

            found = settle(
                folds,
                found,
                lambda found: select(
                    self._results(found, plan, folds), self.selection, folds.n_folds
                ),
                visit,
                lambda: self._candidates_only(self._sweep(folds, plan, self.alphas_, bar), plan)[0],
                exact=self.selection in ("min", "stack"),
            )
        self._warn_at_edge(found, folds)
        return found, plan

    def _warn_at_edge(self, found: Any, folds: Any) -> None:
        """As above, but not of outputs that are filled with means only."""
        settled = not isinstance(folds, HoleFolds) or folds.choice is not None
        if settled or not self._rank_grid(folds.shape).caps:
            super()._warn_at_edge(found, folds)

    def _select(self, folds: Any) -> Index:
        choice = getattr(folds, "choice", None)
        return super()._select(folds) if choice is None else choice

    def _results(self, found: Any, plan: Any, folds: Any) -> dict[str, Any]:
        results = super()._results(found, plan, folds)
        if getattr(folds, "choice", None) is not None:
            results["fitted_index"] = np.array(list(folds.visited))
            results["fitted_mse"] = np.array([v.errors.mean() for v in folds.visited.values()])
        return results

    def _squares(self) -> tuple[str, ...]:
        more = [n for n in ("fitted_mse", "unweighted_mse") if n in self.cv_results_]
        return (*super()._squares(), *more)
