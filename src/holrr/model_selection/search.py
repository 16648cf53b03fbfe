"""The one search: folds x candidates -> errors -> selection -> refit.

A family of models says how its data become folds (`_folds`), which candidates there are beside the
penalties (`_plan`), what their held-out errors are (`_errors`), and which estimator stands at a
place of the grid (`_candidate`). Everything else is here.
"""

from __future__ import annotations

import math
from abc import ABCMeta, abstractmethod
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin, _fit_context
from sklearn.utils.validation import check_is_fitted

from ..core.namespace import Array, is_numpy_array, to_numpy
from ..core.threads import few_threads_for
from ..data.labels import check_rows
from ..data.moments import Moments
from ..data.samples import Samples, ingest
from ..data.source import Source
from ..guard import all_or_nothing
from ..parameters import Parameters
from ..progress import Progress, progress
from ..results import Later, Results
from .final_model import FinalModel
from .folds import Folds
from .penalties import check_penalties, warn_at_edge, widened
from .splits import Split, check_splits, partition_of
from .sweep import Errors, Sweep, sweep

__all__ = ["Data", "Index", "SearchCV"]

# About how many penalties a search tries, for an estimate of its work.
_N_CANDIDATES = 13
# What a model does not take over from its search: it is silent, and meets outputs that are weighted
# and landmarks and seeds that are drawn.
_OF_THE_SEARCH = {"n_components", "output_weight", "random_state", "verbose"}

Index = tuple[int, ...]
# All of them know the numbers of samples and features, and the shape of the outputs.
Data = Samples | Source | Moments


class SearchCV(FinalModel, MultiOutputMixin, RegressorMixin, Parameters, metaclass=ABCMeta):
    """Choose among candidates by held-out error; predict like the chosen one, refitted to all."""

    _parameter_constraints: dict = {  # noqa: RUF012 (scikit-learn's convention)
        "cv": ["cv_object"],
        "fit_intercept": ["boolean"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    # The parameter with the penalties; whether zero is one; whether data may be beyond memory.
    _penalties = "alphas"
    _zero_is_a_penalty = True
    _streams = True
    _plain: Any  # the class of the models

    criterion: str = "cv"
    cv: Any
    fit_intercept: bool
    n_jobs: int | None
    output_shape: Any
    sample_dim: str | None
    verbose: bool | int | str

    @all_or_nothing
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Any:
        """Choose by cross-validation, and fit the chosen model to all the data.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            As in the estimator that is chosen among.
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
        check_rows(X, sample_dim=self.sample_dim, groups=groups)
        data = ingest(self, X, y, sample_weight, stream=self._streams)
        self._check_grid(data)
        return self._search(self._folds(data, groups))

    # ------------------------------------------------------------ what a family of models adds

    @abstractmethod
    def _folds(self, data: Samples | Source, groups: Any) -> Folds:
        """The folds of data that came through the door."""

    @abstractmethod
    def _default_penalties(self, folds: Folds) -> np.ndarray:
        """Penalties scaled to the data, in equal ratios, in the units of the folds."""

    @abstractmethod
    def _plan(self, folds: Folds, n_penalties: int) -> Any:
        """The candidates beside the penalties, in whatever form `_errors` wants."""

    @abstractmethod
    def _errors(
        self, plan: Any, penalties: np.ndarray, folds: Folds
    ) -> tuple[Errors, tuple[int, ...]]:
        """What fills in the errors of one fold for some penalties, and their shape."""

    @abstractmethod
    def _candidate(self, index: Index) -> Any:
        """The unfitted estimator at a place of the grid."""

    def _check_grid(self, data: Data) -> None:
        """Refuse bad candidates before any work is done."""
        self._given_penalties()

    def _prepare(self, folds: Folds) -> None:
        """Whatever has to be known before the candidates are."""

    def _penalty_axis(self, folds: Folds) -> int:
        """Where the penalties are in an array of errors."""
        return len(folds.candidates)

    def _largest_penalty(self, folds: Folds) -> float:
        """Penalties beyond this are all the same."""
        return math.inf

    def _min_alpha(self, penalties: np.ndarray, folds: Folds) -> float:
        """The least ridge penalty of a fit with these penalties, in the units of the folds."""
        return float(self._to_units(penalties, folds).min())

    def _to_units(self, penalties: np.ndarray, folds: Folds) -> np.ndarray:
        """Penalties of the data as those of the folds, whose data were divided by their units."""
        return np.array([folds.units.alpha(a) for a in penalties])

    # ------------------------------------------------------------ the search

    def _splits(self, data: Samples | Source, groups: Any) -> list[Split]:
        """Which samples each fold trains on and tests on; nothing where there are no folds."""
        if self.criterion != "cv":
            return []
        if isinstance(data, Source):
            return partition_of(data, self.cv, groups)
        return check_splits(self.cv, data.X, data.Y, groups, data.w)

    def _given_penalties(self) -> np.ndarray | None:
        given = getattr(self, self._penalties)
        return check_penalties(given, self._penalties, zero=self._zero_is_a_penalty)

    def _search(self, folds: Folds) -> Any:
        """Find all errors, choose, and refit to all the data."""
        self._forget()
        with few_threads_for(_N_CANDIDATES * folds.work):
            self._prepare(folds)
            found, plan = self._swept(folds)
            self.cv_results_ = self._results(found, plan, folds)
            self.best_index_ = self._select(folds)
            self.best_score_ = -float(self._surface()[self.best_index_])
            self._refit(folds, plan)
        self._restore_units(folds)
        return self

    def _swept(self, folds: Folds) -> tuple[Sweep, Any]:
        """The errors of all folds and candidates; the grid is widened where it is our own."""
        given, axis = self._given_penalties(), self._penalty_axis(folds)
        penalties = self._to_data(self._default_penalties(folds), folds) if given is None else given
        plan, largest = self._plan(folds, penalties.size), self._largest_penalty(folds)

        with progress(type(self).__name__, self.verbose) as bar:
            run = lambda more: self._sweep(folds, plan, more, bar)  # noqa: E731
            if given is not None:
                found = run(penalties)
            else:
                found, penalties = widened(
                    run,
                    penalties,
                    axis,
                    largest=largest,
                    room=self._room(folds, plan, penalties.size),
                )
        setattr(self, f"{self._penalties}_", penalties)
        self._warn_at_edge(found, folds)
        return found, plan

    def _warn_at_edge(self, found: Sweep, folds: Folds) -> None:
        """Tell where the best penalty lies beyond the grid."""
        penalties, axis = getattr(self, f"{self._penalties}_"), self._penalty_axis(folds)
        largest = self._largest_penalty(folds)
        warn_at_edge(found, penalties, axis, self._penalties, largest=largest)

    def _sweep(self, folds: Folds, plan: Any, penalties: np.ndarray, bar: Progress) -> Sweep:
        folds.min_alpha = self._min_alpha(penalties, folds)
        errors, shape = self._errors(plan, penalties, folds)
        bar.expect(folds.n_folds * math.prod(folds.candidates) * penalties.size)
        ridge = self._ridge_alphas(plan, penalties, folds)
        return sweep(
            folds,
            errors,
            shape,
            ridge_alphas=ridge,
            n_jobs=self._n_threads(folds),
            tick=bar.tick,
            home=self._home(folds),
        )

    def _home(self, folds: Folds) -> Array | None:
        """What errors that are not found on the host shall lie beside."""
        return None

    def _n_threads(self, folds: Folds) -> int | None:
        """Number of folds that are worked on at a time."""
        return self.n_jobs

    def _ridge_alphas(self, plan: Any, penalties: np.ndarray, folds: Folds) -> Sequence[float]:
        """Penalties, in the units of the folds, of ridge regression to compare with."""
        return ()

    def _room(self, folds: Folds, plan: Any, n_penalties: int) -> int:
        """How many penalties more there is memory for."""
        return 2**31

    def _to_data(self, penalties: np.ndarray, folds: Folds) -> np.ndarray:
        """Penalties in the units of the folds as those of the data, as far as floats go."""
        if folds.units.is_one:
            return penalties
        one = self._to_units(np.ones(1), folds)[0]
        with np.errstate(over="ignore", divide="ignore"):
            found = np.minimum(np.divide(penalties, one), np.finfo(float).max)
        found = np.where(found < np.finfo(float).tiny, 0.0, found)
        return found[np.sort(np.unique(found, return_index=True)[1])]  # each once, in their order

    def _results(self, found: Sweep, plan: Any, folds: Folds) -> dict[str, Any]:
        fold_mse, ridge = found.fold_mse, found.ridge_mse
        return Results(
            mean_mse=found.mean_mse,
            std_mse=Later(lambda: found.std_mse),
            fold_mse=fold_mse if is_numpy_array(fold_mse) else Later(lambda: to_numpy(fold_mse)),
            null_mse=found.null_mse,
            **({} if math.isnan(ridge) else {"ridge_mse": ridge}),
            **{self._penalties: getattr(self, f"{self._penalties}_")},
        )

    def _surface(self) -> np.ndarray:
        """What is minimised."""
        return self.cv_results_["mean_mse"]

    def _select(self, folds: Folds) -> Index:
        surface = self._surface()
        return tuple(int(i) for i in np.unravel_index(np.nanargmin(surface), surface.shape))

    def _refit(self, folds: Folds, plan: Any) -> None:
        """Fit the chosen model to all the data."""
        model = self._named(self._candidate(self.best_index_))
        self.best_estimator_ = self._fit_choice(folds, model)

    def _fit_choice(self, folds: Folds, model: Any, **options: Any) -> Any:
        """Fit a model to all the data; `options` are those of its `_solve`."""
        return folds.refit(model, **options)

    def _model(self, **chosen: Any) -> Any:
        """The unfitted estimator with some parameters; the others are those of the search."""
        taken = set(self._plain._get_param_names()) - _OF_THE_SEARCH
        ours = {name: p for name, p in self.get_params(deep=False).items() if name in taken}
        return self._plain(**{**ours, **chosen})

    def _named(self, estimator: Any) -> Any:
        """The same estimator, which knows the features as the search does."""
        for name in ("n_features_in_", "feature_names_in_", "labels_"):
            if getattr(self, name, None) is not None:
                setattr(estimator, name, getattr(self, name))
        return estimator

    def _restore_units(self, folds: Folds) -> None:
        """Errors in the units of the data."""
        if folds.units.is_one:
            return
        with np.errstate(over="ignore", under="ignore"):
            for name in self._squares():
                self.cv_results_[name] = folds.units.energy(self.cv_results_[name])
            self.best_score_ = folds.units.energy(self.best_score_)

    def _squares(self) -> tuple[str, ...]:
        """The results that are mean squares of outputs."""
        ridge = ("ridge_mse",) if "ridge_mse" in self.cv_results_ else ()
        return ("mean_mse", "std_mse", "fold_mse", "null_mse", *ridge)

    # ------------------------------------------------------------ what the error compares with

    @property
    def null_mse_(self) -> float:
        """Held-out error of predicting the mean; the model's own is ``-best_score_``."""
        return self._baseline("null_mse")

    @property
    def ridge_mse_(self) -> float:
        """Least held-out error of (kernel) ridge regression, of the same folds."""
        return self._baseline("ridge_mse")

    def _baseline(self, name: str) -> float:
        check_is_fitted(self)
        if name not in self.cv_results_:
            raise AttributeError(
                f"this fit knows no {name}_: it is found by cross-validation (criterion='cv'), "
                f"and that of ridge beside ranks of complete outputs only."
            )
        return float(self.cv_results_[name])
