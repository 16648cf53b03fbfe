"""Searches over penalties and all ranks at once: the surfaces of the linear and kernel families."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ..core.namespace import asarray_like
from ..core.threads import n_threads_for
from ..data.moments import Moments
from ..linear.holes import unscale_noise
from ..progress import Progress
from ..spread import scalar_if_0d
from .criteria import CRITERIA, criterion_surface
from .folds import Folds
from .grid import RankGrid, parameter_counts
from .intervals import Intervals, held_out_noise
from .pruning import Pruning, Screened, is_worthwhile
from .residuals import FoldResiduals, held_out_scores, residual_home
from .search import Data, Index, SearchCV
from .selection import SELECTIONS, select
from .stack import MAX_BLOCKS
from .stacking import search_stack
from .sweep import Errors, RankErrors, Sweep, over_folds

__all__ = ["SurfaceSearchCV"]


class SurfaceSearchCV(Intervals, SearchCV):
    """Choose penalty and ranks, then predict like the chosen model refitted to all the data."""

    _parameter_constraints: dict = {  # noqa: RUF012
        "alphas": ["array-like", Interval(Real, 0, None, closed="left"), None],
        "criterion": [StrOptions({"cv", *CRITERIA})],
        "selection": [StrOptions(set(SELECTIONS)), callable],
        "max_bytes": [Interval(Real, 0, None, closed="neither")],
        "search": [StrOptions({"pruned", "exhaustive"})],
    }

    alphas: Any
    criterion: str
    selection: str | Callable[..., Any]
    max_bytes: float
    subspaces: str = "fitted"
    refine: bool = False
    search: str = "exhaustive"

    # ------------------------------------------------------------ what a family of models adds

    @abstractmethod
    def _rank_grid(self, shape: Sequence[int]) -> RankGrid:
        """The ranks to try of a tensor of the given shape, input mode first."""

    @abstractmethod
    def _of_rank(self, rank: tuple[int, ...]) -> dict[str, Any]:
        """The parameters of an estimator of this rank that have to do with it."""

    def _at_place(self, place: Index) -> dict[str, Any]:
        """Those that have to do with its place ``(*candidate, alpha)`` of the grid."""
        return {"alpha": float(self.alphas_[place[-1]])}

    def _n_inputs(self, data: Data) -> int:
        """Size of the input mode of the coefficients."""
        return data.n_features

    def _model_at(self, place: Index, rank: tuple[int, ...]) -> Any:
        """The unfitted estimator for a place of the grid and a rank."""
        return self._model(**self._of_rank(rank), **self._at_place(place))

    # ------------------------------------------------------------ the search

    def _check_grid(self, data: Data) -> None:
        super()._check_grid(data)
        if self.selection == "1se" and self.criterion != "cv":
            raise ValueError(
                f"selection='1se' needs folds, whose spread is the standard error; got "
                f"criterion={self.criterion!r}. Use criterion='cv'."
            )
        if self.criterion != "cv" and data.n_samples < 2:
            raise ValueError(
                f"criterion={self.criterion!r} needs two samples at least; got 1 sample."
            )
        self._rank_grid((self._n_inputs(data), *data.output_shape))

    def _plan(self, folds: Folds, n_penalties: int) -> RankGrid:
        per_penalty = math.prod(folds.candidates) * self._surfaces_kept(folds)
        n_surfaces = n_penalties * per_penalty + self._stack_arrays(folds)
        grid = self._rank_grid(folds.shape).within_input_rank(folds.max_input_rank)
        return grid.within_budget(n_surfaces, self.max_bytes)

    @property
    def _stacks(self) -> bool:
        return self.selection == "stack" and self.criterion == "cv" and not self.refine

    def _room(self, folds: Folds, plan: RankGrid, n_penalties: int) -> int:
        n_surfaces = self.max_bytes // (8 * math.prod(plan.caps)) - self._stack_arrays(folds)
        per_penalty = math.prod(folds.candidates) * self._surfaces_kept(folds)
        return int(n_surfaces // per_penalty) - n_penalties

    def _stack_arrays(self, folds: Folds) -> int:
        """How many arrays of the size of a core a stack needs: terms, products, sums."""
        return 2 * folds.n_folds + MAX_BLOCKS + 4 if self._stacks else 0

    def _surfaces_kept(self, folds: Folds) -> int:
        """How many arrays of the size of the surface the results hold."""
        return folds.n_folds + 2 if self.criterion == "cv" else 3

    def _errors(
        self, plan: RankGrid, penalties: np.ndarray, folds: Folds
    ) -> tuple[Errors, tuple[int, ...]]:
        alphas = self._to_units(penalties, folds)
        return RankErrors(alphas, plan.caps, self.subspaces), (penalties.size, *plan.caps)

    def _sweep(self, folds: Folds, plan: RankGrid, penalties: np.ndarray, bar: Progress) -> Any:
        if folds.pruning is None and not self._prunes(folds, plan, penalties.size):
            return _without_others(super()._sweep(folds, plan, penalties, bar), plan)
        alphas = self._to_units(penalties, folds)
        least = float(alphas.min())
        if folds.pruning is None:
            options = {"subspaces": self.subspaces, "selection": str(self.selection)}
            folds.pruning = Pruning(folds, plan, n_jobs=self._n_threads(folds), **options)
            folds.min_alpha = least
        elif least < folds.min_alpha:  # which may need problems of another kind
            folds.min_alpha = least
            folds.pruning.screens.kept.clear()
        bar.expect(folds.n_folds * math.prod(folds.candidates) * penalties.size)
        return folds.pruning.screened(alphas, bar.tick)

    def _home(self, folds: Folds) -> Any:
        return folds.home

    def _n_threads(self, folds: Folds) -> int | None:
        """By default as many folds as there are threads, one for each; small ones do not wait."""
        if self.n_jobs is not None or effective_n_jobs(None) > 1 or folds.home is not None:
            return self.n_jobs
        return min(n_threads_for(folds.work), folds.n_folds)

    def _prunes(self, folds: Folds, plan: RankGrid, n_penalties: int) -> bool:
        # An accelerator computes all surfaces sooner than it is asked which are needed.
        able = self.search == "pruned" and not callable(self.selection) and folds.home is None
        return able and is_worthwhile(folds, plan, n_penalties)

    def _ridge_alphas(self, plan: RankGrid, penalties: np.ndarray, folds: Folds) -> Any:
        return self._to_units(penalties, folds) if plan.caps else ()

    def _swept(self, folds: Folds) -> tuple[Any, RankGrid]:
        if self.criterion == "cv":
            found, plan = super()._swept(folds)
            if isinstance(found, Screened):
                found, plan = found.pruning.settle(found, self._stacks)
            return self._candidates_only(found, plan)
        given = self._given_penalties()
        self.alphas_ = (
            self._to_data(self._default_penalties(folds), folds) if given is None else given
        )
        alphas = self._to_units(self.alphas_, folds)
        folds.min_alpha = float(alphas.min())
        plan = self._plan(folds, alphas.size)
        values = criterion_surface(
            self.criterion,
            folds,
            alphas,
            plan.caps,
            fit_intercept=self.fit_intercept,
            subspaces=self.subspaces,
        )
        return values, plan.within_input_rank(values.pop("n_supported"))

    def _candidates_only(self, found: Sweep, plan: RankGrid) -> tuple[Sweep, RankGrid]:
        """Ranks that some fold supports; NaN where a rank is no candidate."""
        if not plan.caps:  # ridge regression itself
            return replace(found, ridge_mse=float(found.mean_mse.min())), plan
        plan = plan.within_input_rank(found.n_supported)
        axis = found.fold_mse.ndim - len(plan.caps)
        fold_mse = found.fold_mse[(slice(None),) * axis + (slice(plan.caps[0]), ...)]
        mask = plan.mask()
        if mask is None and fold_mse.shape == found.fold_mse.shape:
            return found, plan
        found = replace(found, fold_mse=fold_mse)
        return found if mask is None else found.only(mask), plan

    def _results(self, found: Any, plan: RankGrid, folds: Folds) -> dict[str, Any]:
        if self.criterion == "cv":
            results = super()._results(found, plan, folds)
            if folds.pruning is not None:
                results["screened_mse"] = folds.pruning.least
        else:
            results = {**found, "alphas": self.alphas_}
            if (mask := plan.mask()) is not None:
                for name in (self.criterion, "train_mse", "degrees_of_freedom"):
                    results[name][..., ~mask] = np.nan
        key = self._key()
        if not np.isfinite(np.nanmin(results[key])):
            raise ValueError(
                f"no candidate has a finite {key}; the outputs are too large to be squared, or all "
                f"models have more degrees of freedom than there are observations."
            )
        results["n_parameters"] = parameter_counts(folds.shape, plan.caps)
        return results

    def _key(self) -> str:
        return "mean_mse" if self.criterion == "cv" else self.criterion

    def _surface(self) -> np.ndarray:
        return self.cv_results_[self._key()]

    def _squares(self) -> tuple[str, ...]:
        if self.criterion == "cv":
            more = [n for n in ("stack_path_mse", "screened_mse") if n in self.cv_results_]
            return (*super()._squares(), *more)
        return ("train_mse", "gcv") if self.criterion == "gcv" else ("train_mse",)

    def _restore_units(self, folds: Folds) -> None:
        score = self.best_score_
        super()._restore_units(folds)
        if self._key() not in self._squares():  # a logarithm, which is that of the data already
            self.best_score_ = score

    def _select(self, folds: Folds) -> Index:
        return select(self.cv_results_, self.selection, folds.n_folds, key=self._key())

    def _candidate(self, index: Index) -> Any:
        return self._model_at(*self._parted(index))

    def _parted(self, index: Index) -> tuple[Index, tuple[int, ...]]:
        """A place of the surface as penalty (and kernel), and rank."""
        split = len(index) - self.cv_results_["n_parameters"].ndim
        return index[:split], tuple(i + 1 for i in index[split:])

    def _refit(self, folds: Folds, plan: RankGrid) -> None:
        """Fit the chosen model, or the stack of many, to all the data; then meet its residuals."""
        masks = self._refit_stack(folds, plan) if self._stacks and plan.caps else None
        if masks is None:
            super()._refit(folds, plan)
        if self.criterion == "cv":
            self._set_intervals(folds, masks)

    def _refit_stack(self, folds: Folds, plan: RankGrid) -> tuple[np.ndarray, ...] | None:
        """Fit the stack, and return its masks for the folds; None where a single model is taken."""
        results = self.cv_results_
        if folds.pruning is not None:
            place, stack = folds.pruning.stack
        else:
            place, stack = search_stack(
                folds,
                self._to_units(self.alphas_, folds),
                results["mean_mse"],
                results["n_parameters"],
                subspaces=self.subspaces,
                candidates=plan.mask(),
                n_jobs=self._n_threads(folds),
            )
        model = self._named(self._model_at(place, stack.mask.shape))
        judged = folds.judge(stack, model)
        if judged is None:
            return None
        stack = judged
        self.best_estimator_ = self._fit_choice(folds, model, mask=stack.mask)
        self.best_score_ = -stack.cross_fitted_mse
        self.stack_place_ = place
        self.stack_ranks_, self.stack_weights_ = list(stack.blocks), stack.weights
        self.stack_mse_ = folds.units.energy(float(stack.mse))
        self.stack_gap_ = folds.units.energy(float(stack.gap))
        results["stack_path_mse"] = stack.path_cross_fitted_mse
        return stack.fold_masks

    def _set_intervals(self, folds: Folds, masks: Sequence[np.ndarray] | None) -> None:
        """Find noise and quantiles of the held-out residuals of the choice."""
        place, rank = self._parted(self.best_index_)
        place = getattr(self, "stack_place_", place)
        alpha, candidate = float(self._to_units(self.alphas_, folds)[place[-1]]), place[:-1]
        folds.prepare(*candidate)
        Y: Any = residual_home(folds.data.Y) if hasattr(folds.data, "Y") else None

        def run(fold: int) -> Any:
            mask = None if masks is None else masks[fold]
            model = self._model_at(place, rank if mask is None else mask.shape)
            problem, found = folds.fitted(model, mask, fold, alpha, *candidate)
            held = folds.held_out(fold, *candidate)
            if isinstance(held, Moments):
                return model, problem, found.tucker, held
            return FoldResiduals.of(model, held, Y, folds.data.w, folds.splits[fold][1])

        done = over_folds(folds, run, self._n_threads(folds))
        fits = [each for each in done if isinstance(each, FoldResiduals)]
        self._keep_intervals(folds, fits, [] if fits else done)

    def _keep_intervals(self, folds: Folds, fits: list[FoldResiduals], parts: list[Any]) -> None:
        kept: dict[str, Any] = {"levels": None, "df": sum(held.n_samples for *_, held in parts)}
        noise: Any
        if fits:
            noise, kept = held_out_scores(fits)
        else:
            noise = held_out_noise(parts)
            if noise is None:
                return
        self._fitted_intervals = kept
        model, shape = self.best_estimator_, folds.output_shape
        for name in ("entry", "n_entry"):
            if np.ndim(kept.get(name, 0)):
                kept[name] = kept[name].reshape(kept[name].shape[:-1] + shape)
        noise = folds.units.y * noise.reshape(shape)
        if folds.output_weights is not None:
            noise = unscale_noise(noise, folds.output_weights)
        core = model.tucker_.core
        model.noise_ = scalar_if_0d(asarray_like(noise, core, dtype=core.dtype))

    # ------------------------------------------------------------ the chosen model

    @property
    def rank_(self) -> Any:
        """The best single rank (also of a stack, which has many)."""
        check_is_fitted(self)
        final = self.best_estimator_.rank_
        if not hasattr(self, "stack_ranks_"):
            return final
        best = self._parted(self.best_index_)[1]
        return best if isinstance(final, tuple) else best[0]

    @property
    def alpha_(self) -> float:
        """The chosen penalty."""
        check_is_fitted(self)
        return float(self.best_estimator_.alpha)


def _without_others(found: Sweep, plan: RankGrid) -> Sweep:
    """NaN where a rank is no candidate: the edges of a grid are judged by candidates, too."""
    mask, least = plan.mask(), plan.within_input_rank(found.n_supported).mask()
    if mask is not None and least is not None:
        mask[: len(least)] |= least  # a rank beyond what is supported, and what it stands for
        return found.only(mask)
    return found
