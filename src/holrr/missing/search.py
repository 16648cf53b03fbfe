"""Cross-validation with missing outputs: held-out errors over observed entries.

The fits of all ranks keep leading blocks of one core only where the outputs are complete. So the
surface is that of imputed outputs, and it is computed in rounds. At first missing entries are imputed
by means. Then the model that is best on the surface is fitted to the observed entries of every fold and
imputes the missing ones, and the next surface is that of these outputs. Such a fit comes with its exact
held-out error. When a choice recurs, or after a few rounds, the fitted model of least exact error is
taken.

Ridge regression needs no rounds: its errors are exact for every penalty.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..core.fit import Fit, lift, scaled_alpha
from ..core.spectral import Spectral, Whitened
from ..core.structures import Structure
from ..core.tucker import Tucker
from ..data.validation import Samples
from ..model_selection.folds import Problems, input_trace, sample_residuals
from ..model_selection.grid import RankGrid, default_alphas, warn_at_edge, widened
from ..model_selection.intervals import FoldResiduals
from ..model_selection.search import (
    Choice,
    SearchOptions,
    Surface,
    choose,
    compute_surface,
    default_penalties,
    n_parallel,
    over_folds,
    plan_ranks,
    results_of,
    scaled_penalties,
    select,
    single_choice,
)
from ..model_selection.splits import Split
from ..model_selection.stack import Stack
from ..model_selection.surface import HeldOut
from ..progress import Progress, progress
from .completion import Completion, complete_ridge, complete_structure
from .fit import drop_unobserved
from .observed import Observed, SampleBasis

__all__ = ["ImputedFolds", "MissingSearch", "search_missing"]

Index = tuple[int, ...]

# Largest number of models that are fitted to every fold.
_ROUNDS = 4


@dataclass(frozen=True, eq=False)
class Imputation:
    """The training problem of a fold with imputed outputs, and the predictions that impute."""

    problem: Spectral  # with a mean of zero for outputs that were never observed
    never: np.ndarray  # which outputs these are, of shape (d1, ..., dp)
    predict: Callable[[np.ndarray], np.ndarray]  # from centred inputs; zero where nothing is known


@dataclass(frozen=True, eq=False)
class ObservedHeldOut(HeldOut):
    """Held-out data with imputed entries, which do not count in means.

    Parameters
    ----------
    C, B, yy, weight
        As in `HeldOut`, of imputed outputs.
    n_observed : float
        Sum of the weights of the observed entries.
    """

    n_observed: float

    @property
    def size(self) -> float:
        return self.n_observed


@dataclass(frozen=True, eq=False)
class ImputedFolds:
    """Folds of samples in memory whose missing outputs are imputed.

    Parameters
    ----------
    data : Samples
        Scaled, of NumPy arrays, with NaN for missing outputs.
    splits : list of index pairs
    fit_intercept : bool
    imputations : tuple of Imputation
        One for each fold; mean imputation by default.
    """

    data: Samples
    splits: Sequence[Split]
    fit_intercept: bool = True
    imputations: tuple[Imputation, ...] = ()

    n_candidates = 1
    device = None

    def __post_init__(self) -> None:
        if not self.imputations:
            found = tuple(self._impute_means(fold) for fold in range(self.n_folds))
            object.__setattr__(self, "imputations", found)

    @property
    def n_folds(self) -> int:
        return len(self.splits)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.data.n_features, *self.data.output_shape)

    @property
    def max_input_rank(self) -> int:
        return min(self.data.n_features, max(train.size for train, _ in self.splits))

    @property
    def x_unit(self) -> float:
        return self.data.x_unit

    @property
    def y_unit(self) -> float:
        return self.data.y_unit

    def prepare(self, candidate: int) -> None:
        """Nothing is shared by the folds."""

    def problem(
        self, fold: int, candidate: int, min_alpha: float
    ) -> tuple[Spectral, ObservedHeldOut]:
        found, test = self.imputations[fold], self.data.rows(self.splits[fold][1])
        Xc, seen, w = self._held_out(test, found)
        Y = np.where(seen, test.Y, found.predict(Xc))
        held = HeldOut.from_features(Xc @ found.problem.basis, Y, found.problem.mean_y, test.w)
        size = float(w @ seen.reshape(len(seen), -1).sum(axis=1))
        if not size > 0:
            raise ValueError(
                f"The test side of split {fold} of cv has no observed entry of y, or none of an "
                f"output that its training side has; use fewer folds, or shuffle them."
            )
        return found.problem, ObservedHeldOut(held.C, held.B, held.yy, held.weight, size)

    def full_problem(self, candidate: int, min_alpha: float) -> tuple[Spectral, float]:
        raise ValueError(
            "Information criteria need complete outputs, and entries of y are missing; use "
            "criterion='cv'."
        )

    def default_alphas(self) -> np.ndarray:
        return default_alphas(*input_trace(self.data, self.fit_intercept))

    def residuals(self, fold: int, candidate: int, fit: Fit) -> FoldResiduals:
        never = self.imputations[fold].never
        fit = replace(fit, intercept=np.where(never, np.nan, fit.intercept))
        return sample_residuals(self.data, self.splits[fold][1], fit)

    def observed(self, fold: int) -> Observed:
        """The observed training outputs of a fold."""
        try:
            train, _ = drop_unobserved(self.data.rows(self.splits[fold][0]))
        except ValueError as error:
            raise ValueError(f"The training side of split {fold} of cv: {error}") from error
        basis = SampleBasis.from_arrays(train.X, train.w, 0.0, fit_intercept=self.fit_intercept)
        return Observed(basis, train.Y)

    def error(self, fold: int, imputation: Imputation) -> float:
        """Held-out error of predictions, over observed entries."""
        test = self.data.rows(self.splits[fold][1])
        Xc, seen, w = self._held_out(test, imputation)
        return mean_over(seen, np.square(test.Y - imputation.predict(Xc)), w)

    def _impute_means(self, fold: int) -> Imputation:
        problem = self.observed(fold).spectral()
        mean = np.nan_to_num(problem.mean_y, nan=0.0)
        return _imputation(problem, lambda Xc: np.broadcast_to(mean, (len(Xc), *mean.shape)))

    def _held_out(
        self, test: Samples, found: Imputation
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Centred inputs, which outputs count, and weights."""
        w = np.ones(test.n_samples) if test.w is None else test.w
        Xc = test.X.astype(np.float64, copy=False) - found.problem.mean_x
        return Xc, ~(np.isnan(test.Y) | found.never), w


def _imputation(problem: Spectral, predict: Callable[[np.ndarray], np.ndarray]) -> Imputation:
    never = np.isnan(problem.mean_y)
    return Imputation(replace(problem, mean_y=np.where(never, 0.0, problem.mean_y)), never, predict)


def _imputed_by(found: Completion) -> Imputation:
    return _imputation(found.imputed(), _predictor(found.problem, found.found.tucker))


def _predictions_of(found: Completion) -> Imputation:
    """As `_imputed_by`, without the problem of the imputed outputs: enough for `error`."""
    problem: Any = found.problem
    return Imputation(problem, np.isnan(problem.mean_y), _predictor(problem, found.found.tucker))


def _predictor(problem: Whitened, V: Tucker) -> Callable[[np.ndarray], np.ndarray]:
    """From centred inputs to outputs."""
    coef, mean = lift(V, problem), np.nan_to_num(problem.mean_y, nan=0.0)
    return lambda Xc: coef.map_input(Xc) + mean


def mean_over(seen: np.ndarray, A: np.ndarray, w: np.ndarray) -> float:
    """Weighted mean of the entries of `A`, of shape (n_samples, d1, ..., dp), that are seen."""
    total, count = (B.reshape(len(B), -1).sum(axis=1) for B in (np.where(seen, A, 0.0), seen))
    return float(w @ total / (w @ count))


# ---------------------------------------------------------------- the search


@dataclass(frozen=True, eq=False)
class MissingSearch:
    """What a search with missing outputs finds.

    Parameters
    ----------
    problems : Problems
        Of the folds with the outputs that the choice imputes.
    results : dict
        As `results_of` returns them, with ``fitted_index`` and ``fitted_mse``.
    choice : Choice
    pilot : pair of Structure and float, or None
        Structure and penalty of the model that imputes missing entries for a mixture of ranks.
    """

    problems: Problems
    results: dict[str, Any]
    choice: Choice
    pilot: tuple[Structure, float] | None = None


@dataclass(frozen=True, eq=False)
class _Visit:
    """One model, fitted to the observed entries of every fold."""

    errors: np.ndarray  # (n_folds,): exact, over observed entries
    imputations: tuple[Imputation, ...]


def search_missing(
    data: Samples, splits: Sequence[Split], options: SearchOptions
) -> MissingSearch:
    """Choose penalty and rank by held-out error over observed entries.

    Parameters
    ----------
    data : Samples
        Scaled, of NumPy arrays, with NaN for missing outputs.
    splits : list of index pairs
    options : SearchOptions
    """
    folds = ImputedFolds(data, splits, options.fit_intercept)
    if options.criterion != "cv":
        folds.full_problem(0, 0.0)  # an error
    given = options.alphas
    alphas = default_penalties(folds) if given is None else given
    grid = plan_ranks(folds, options, alphas.size)
    with progress(options.name, options.verbose) as bar:
        if not grid.caps:
            return _search_ridge(folds, alphas, grid, options, bar)

        def compute(more: np.ndarray) -> Surface:
            return compute_surface(Problems(folds), more, grid, options, bar)

        surface = compute(alphas) if given is not None else widened(compute, alphas)[0]
        return _search_ranks(folds, surface.supported(), grid, options, bar)


def _search_ridge(
    folds: ImputedFolds,
    alphas: np.ndarray,
    grid: RankGrid,
    options: SearchOptions,
    bar: Progress,
) -> MissingSearch:
    """Ridge regression: exact errors for every penalty."""
    nulls = [held.yy / held.size for _, held in (folds.problem(k, 0, 0.0) for k in _range(folds))]

    def compute(more: np.ndarray) -> Surface:
        scaled = scaled_penalties(more, folds)
        bar.expect(folds.n_folds * more.size)

        def run(fold: int) -> list[float]:
            observed, errors = folds.observed(fold), []
            for alpha in scaled:
                errors.append(folds.error(fold, _predictions_of(complete_ridge(observed, alpha))))
                bar.tick()
            return errors

        errors = over_folds(folds.n_folds, run, n_parallel(folds, options.n_jobs))
        return Surface(np.array(errors)[:, None, :], more, grid, float(np.mean(nulls)), 1)

    if options.alphas is not None:
        surface = compute(alphas)
    else:
        surface, alphas = widened(compute, alphas)
    warn_at_edge(surface, alphas, "alphas")
    results = results_of(surface.supported(), folds.shape, options)
    choice = single_choice(select(results, options.selection, folds.n_folds), results, options)
    alpha = scaled_alpha(choice.alpha, folds.x_unit)
    found = tuple(_imputed_by(complete_ridge(folds.observed(k), alpha)) for k in _range(folds))
    return MissingSearch(Problems(replace(folds, imputations=found)), results, choice)


def _search_ranks(
    folds: ImputedFolds,
    surface: Surface,
    grid: RankGrid,
    options: SearchOptions,
    bar: Progress,
) -> MissingSearch:
    """Impute, choose and impute again; the surface of the last imputation, exact at the choice."""
    shape, null_mse, visited = folds.shape, surface.null_mse, {}

    def choose_index(found: Surface) -> Index:
        return select(results_of(found, shape, options), options.selection, folds.n_folds)

    def visit(index: Index) -> _Visit:
        single = single_choice(index, results_of(surface, shape, options), options)
        structure = options.structure(single.rank)
        alpha = scaled_alpha(single.alpha, folds.x_unit)
        bar.expect(folds.n_folds)

        def run(fold: int) -> tuple[float, Imputation]:
            found = complete_structure(folds.observed(fold), alpha, structure, shape[0])
            imputation = _imputed_by(found)
            bar.tick()
            return folds.error(fold, imputation), imputation

        done = over_folds(folds.n_folds, run, n_parallel(folds, options.n_jobs))
        errors, imputations = zip(*done, strict=True)
        return _Visit(np.array(errors), imputations)

    def surface_of(index: Index) -> tuple[ImputedFolds, Surface]:
        imputed = replace(folds, imputations=visited[index].imputations)
        found = compute_surface(Problems(imputed), surface.alphas, grid, options, bar)
        return imputed, found.supported()

    last = choose_index(surface)
    choice: Index | None = None
    imputed, found = folds, surface
    while last not in visited and len(visited) < _ROUNDS:
        visited[last] = visit(last)
        choice = last
        imputed, found = surface_of(choice)
        last = choose_index(found)
    best = last if last in visited else choice
    if options.selection in ("min", "stack"):
        best = min(visited, key=lambda index: float(visited[index].errors.mean()))
    assert best is not None
    if best != choice:
        imputed, found = surface_of(best)
    fold_mse = found.fold_mse
    fold_mse[(slice(None), 0, *best)] = visited[best].errors
    # The error of ridge regression is not that of outputs which another model has imputed.
    found = replace(found, fold_mse=fold_mse, null_mse=null_mse, ridge_mse=math.nan)
    warn_at_edge(found, found.alphas, "alphas")
    results = results_of(found, shape, options)
    results["fitted_index"] = np.array(list(visited))
    results["fitted_mse"] = np.array([v.errors.mean() for v in visited.values()])
    problems, single = Problems(imputed), single_choice(best, results, options)
    if not options.stacks:
        return MissingSearch(problems, results, single)
    stacked = choose(problems, found, results, options)
    stack = _exact_stack(imputed, stacked, options)
    if stack is None or not stack.cross_fitted_mse < visited[best].errors.mean():
        return MissingSearch(problems, results, single)
    mixed = replace(stacked, index=best, error=stack.cross_fitted_mse, stack=stack)
    pilot = options.structure(single.rank), single.alpha
    return MissingSearch(problems, results, mixed, pilot)


def _exact_stack(folds: ImputedFolds, choice: Choice, options: SearchOptions) -> Stack | None:
    """The stack with its error over observed entries, in place of that over imputed ones."""
    stack, alpha, errors = choice.stack, scaled_alpha(choice.alpha, folds.x_unit), []
    if stack is None:
        return None
    for fold, imputation in enumerate(folds.imputations):
        problem = imputation.problem.at(alpha)
        structure = options.structure(stack.mask.shape)
        found = structure.approximate(problem, folds.shape[0], rotate=True).masked(stack.mask)
        mixed = replace(imputation, predict=_predictor(problem, found.tucker))
        errors.append(folds.error(fold, mixed))
    shift = float(np.mean(errors)) - stack.mse
    return replace(
        stack,
        mse=stack.mse + shift,
        cross_fitted_mse=stack.cross_fitted_mse + shift,
        path_mse=stack.path_mse + shift,
        path_cross_fitted_mse=stack.path_cross_fitted_mse + shift,
    )


def _range(folds: ImputedFolds) -> range:
    return range(folds.n_folds)
