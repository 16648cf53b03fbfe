"""The skeleton of the cross-validated estimators: candidates, surfaces, selection, refit.

A family of models adds three things: `Folds` with the problems of its candidates, the modes whose
ranks are chosen (`_rank_grid`), and the estimator that stands at a place of the grid
(`_candidate`). `fit` of the family checks its data, builds the folds and calls `_search`.
"""

from __future__ import annotations

import math
import warnings
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ..progress import progress
from .average import core_mask, criterion_weights, cross_validated_weights, masked, trimmed
from .criteria import CRITERIA, criterion_surface
from .final_model import FinalModel
from .folds import Folds
from .grid import RankGrid, parameter_counts
from .selection import SELECTIONS, Index, select
from .sweep import sweep

__all__ = ["BaseTensorCV"]


class BaseTensorCV(FinalModel, MultiOutputMixin, RegressorMixin, BaseEstimator, metaclass=ABCMeta):
    """Choose penalty and ranks, then predict like the chosen model refitted to all the data."""

    _parameter_constraints: dict = {  # noqa: RUF012 (scikit-learn's convention)
        "alphas": ["array-like", Interval(Real, 0, None, closed="left"), None],
        "cv": ["cv_object"],
        "criterion": [StrOptions({"cv", *CRITERIA})],
        "selection": [StrOptions(set(SELECTIONS)), callable],
        "fit_intercept": ["boolean"],
        "max_bytes": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    alphas: Any
    criterion: str
    selection: str | Callable[..., Any]
    fit_intercept: bool
    max_bytes: float
    n_jobs: int | None
    verbose: bool | int
    subspaces: str = "fitted"
    refine: bool = False

    # ------------------------------------------------------------ what a family of models adds

    @abstractmethod
    def _rank_grid(self, shape: Sequence[int]) -> RankGrid:
        """The ranks to try of a tensor of the given shape, input mode first."""

    @abstractmethod
    def _candidate(self, index: Index, rank: tuple[int, ...]) -> Any:
        """The unfitted estimator for a place ``(*candidate, alpha)`` of the grid and a rank."""

    # ------------------------------------------------------------ the search

    def _search(self, folds: Folds, alphas: np.ndarray) -> Any:
        """Compute the surface, select, and refit to all the data."""
        self._check_combination()
        shape = (folds.n_inputs, *folds.output_shape)
        n_surfaces = math.prod(folds.candidates) * len(alphas) * self._surfaces_kept(folds)
        grid = self._rank_grid(shape).within_input_rank(folds.max_input_rank)
        grid = grid.within_budget(n_surfaces, self.max_bytes)
        self.alphas_ = alphas
        self.cv_results_ = self._results(folds, grid)
        self.best_index_ = select(
            self.cv_results_, self.selection, folds.n_folds, key=self._surface_key()
        )
        self.best_score_ = -float(self.cv_results_[self._surface_key()][self.best_index_])
        self.best_estimator_ = self._refitted(folds, len(grid.caps))
        self._warn_at_edge()
        return self

    def _check_combination(self) -> None:
        if self.selection == "1se" and self.criterion != "cv":
            raise ValueError(
                f"selection='1se' needs folds, whose spread is the standard error; got "
                f"criterion={self.criterion!r}. Use criterion='cv'."
            )
        if self.selection == "average" and self.refine:
            raise ValueError(
                "selection='average' is a mean of nested models, which refined ones are not; use "
                "refine=False with it."
            )

    def _surface_key(self) -> str:
        return "mean_mse" if self.criterion == "cv" else self.criterion

    def _surfaces_kept(self, folds: Folds) -> int:
        """How many arrays of the size of the surface the results hold."""
        return folds.n_folds + 2 if self.criterion == "cv" else 3

    def _results(self, folds: Folds, grid: RankGrid) -> dict[str, Any]:
        n_folds = folds.n_folds if self.criterion == "cv" else 1
        total = n_folds * math.prod(folds.candidates) * len(self.alphas_)
        with progress(total, type(self).__name__, self.verbose) as tick:
            found = self._surfaces(folds, grid.caps, tick)
        surface = found[self._surface_key()]
        caps = surface.shape[surface.ndim - len(grid.caps) :]
        if caps:
            _leave_candidates(found, grid.within_input_rank(caps[0]).mask())
        if not np.isfinite(np.nanmin(surface)):
            raise ValueError(
                f"no candidate has a finite {self._surface_key()}; the outputs are too large to be "
                f"squared, or all models have more degrees of freedom than there are observations."
            )
        shape = (folds.n_inputs, *folds.output_shape)
        return {**found, "n_parameters": parameter_counts(shape, caps), "alphas": self.alphas_}

    def _surfaces(
        self, folds: Folds, caps: tuple[int, ...], tick: Callable[[], object]
    ) -> dict[str, Any]:
        if self.criterion != "cv":
            return criterion_surface(
                self.criterion,
                folds,
                self.alphas_,
                caps,
                fit_intercept=self.fit_intercept,
                subspaces=self.subspaces,
                tick=tick,
            )
        found = sweep(
            folds, self.alphas_, caps, subspaces=self.subspaces, n_jobs=self.n_jobs, tick=tick
        )
        mean, std = _mean_and_std(found.fold_mse)
        return {
            "mean_mse": mean,
            "std_mse": std,
            "fold_mse": found.fold_mse,
            "null_mse": found.null_mse,
        }

    def _refitted(self, folds: Folds, n_ranks: int) -> Any:
        """The chosen model, or the weighted mean of many, fitted to all the data."""
        split = len(self.best_index_) - n_ranks
        index, rank = self.best_index_[:split], tuple(i + 1 for i in self.best_index_[split:])
        if self.selection != "average":
            self.__dict__.pop("rank_weights_", None)
            return folds.refit(self._candidate(index, rank))
        self.rank_weights_ = self._average(folds, index)
        mask = trimmed(core_mask(self.rank_weights_))
        model = self._candidate(index, mask.shape)
        # For the time of the fit: the approximation, then the mask on its core.
        model._approximate = masked(model._approximate, mask)
        folds.refit(model)
        del model._approximate
        return model

    def _average(self, folds: Folds, index: Index) -> np.ndarray:
        """Weights of all ranks at the chosen penalty."""
        results = self.cv_results_
        if self.criterion != "cv":
            surface, n = results[self.criterion][index], results["n_observations"]
            return criterion_weights(surface, self.criterion, n)
        alpha, fold_mse = float(self.alphas_[index[-1]]), results["fold_mse"][:, *index]
        weights, mse = cross_validated_weights(folds, fold_mse, index[:-1], alpha, self.subspaces)
        self.best_score_ = -mse
        return weights

    def _warn_at_edge(self) -> None:
        """Tell where the best penalty may lie beyond the grid."""
        if self.alphas_.size < 2:
            return
        alpha, lowest, highest = self.alpha_, self.alphas_.min(), self.alphas_.max()
        if alpha == highest or alpha == lowest > 0:
            edge = "largest" if alpha == highest else "smallest"
            warnings.warn(
                f"the best penalty, alpha={alpha:.6g}, is the {edge} of the grid, which goes from "
                f"{lowest:.6g} to {highest:.6g}; a better one may lie beyond. Widen `alphas`.",
                UserWarning,
                stacklevel=6,  # past the decorators of fit
            )

    # ------------------------------------------------------------ the chosen model

    @property
    def alpha_(self) -> float:
        """The chosen penalty."""
        check_is_fitted(self)
        return float(self.best_estimator_.alpha)


def _mean_and_std(folds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation over the first axis, with no copy of the size of all folds."""
    mean, std = np.empty(folds.shape[1:]), np.empty(folds.shape[1:])
    for a in range(folds.shape[1]):
        mean[a] = folds[:, a].mean(axis=0)
        peak = float(np.max(mean[a])) or 1.0  # so that no square overflows
        std[a] = (folds[:, a] / peak).std(axis=0) * peak
    return mean, std


def _leave_candidates(results: dict[str, Any], mask: np.ndarray | None) -> None:
    """Set what is no candidate to NaN, in every surface."""
    if mask is not None:
        for value in results.values():
            if isinstance(value, np.ndarray):
                value[..., ~mask] = np.nan
