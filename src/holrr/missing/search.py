"""Cross-validation with missing outputs: held-out errors over observed entries.

The fits of all ranks keep leading blocks of one core only where the outputs are complete. So the
surface is that of imputed outputs, and it is computed in rounds. At first missing entries are
imputed by means. Then the model that is best on the surface is fitted to the observed entries of
every fold and imputes the missing ones, and the next surface is that of these outputs. Such a fit
comes with its exact held-out error. When a choice recurs, or after a few rounds, the fitted model
of least exact error is taken.

Ridge regression needs no rounds: its errors are exact for every penalty.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..core.approximate import Structure
from ..core.fit import Fit, lift, scaled_alpha
from ..core.spectral import Spectral, Whitened
from ..core.tensor import Tucker
from ..core.threads import few_threads_for
from ..data.validation import Samples
from ..linear.fit import LinearOptions, fit_data
from ..model_selection.folds import (
    Folds,
    Problems,
    Split,
    input_trace,
    n_training,
    sample_residuals,
)
from ..model_selection.grid import RankGrid, default_alphas, warn_at_edge, widened
from ..model_selection.intervals import FoldResiduals, calibrate
from ..model_selection.search import (
    Choice,
    Found,
    SearchOptions,
    Surface,
    choose,
    coefficient_prior,
    compute_surface,
    default_penalties,
    fold_residuals,
    n_parallel,
    over_folds,
    plan_ranks,
    results_of,
    scaled_penalties,
    search_work,
    select,
    single_choice,
)
from ..model_selection.stack import Stack
from ..model_selection.surface import HeldOut
from ..progress import Progress, progress
from .completion import Completion, complete_ridge, complete_structure
from .fit import drop_unobserved
from .observed import Observed, SampleBasis, has_observation

__all__ = ["ImputedSamples", "mean_over", "search_missing"]

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
class ImputedSamples:
    """Samples in memory whose missing outputs are imputed, in every fold by another model.

    Parameters
    ----------
    data : Samples
        Scaled, of NumPy arrays, with NaN for missing outputs.
    splits : list of index pairs
    fit_intercept : bool
    imputations : tuple of Imputation
        One for each fold.
    """

    data: Samples
    splits: Sequence[Split]
    fit_intercept: bool = True
    imputations: tuple[Imputation, ...] = ()

    def folds(self) -> Folds:
        """The folds of the imputed outputs, with held-out errors over observed entries."""
        data, splits = self.data, self.splits
        largest = max(train.size for train, _ in splits)
        w = has_observation(data.Y, data.w).astype(float)
        return Folds(
            n_folds=len(splits),
            shape=(data.n_features, *data.output_shape),
            max_input_rank=min(data.n_features, largest),
            problem=self._problem,
            full_problem=_refuse_criteria,
            residuals=self._residuals,
            default_alphas=lambda: default_alphas(*input_trace(data, self.fit_intercept)),
            refit=lambda candidate, options, mask: fit_data(data, options, mask=mask)[0],
            n_training=n_training(splits, w),
            x_unit=data.x_unit,
            y_unit=data.y_unit,
        )

    def with_means(self) -> ImputedSamples:
        """The same with mean imputation."""
        found = []
        for fold in range(len(self.splits)):
            problem = self.observed(fold).spectral()
            mean = np.nan_to_num(problem.mean_y, nan=0.0)
            found.append(_imputation(problem, _constant(mean)))
        return replace(self, imputations=tuple(found))

    def _problem(
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

    def _residuals(self, fold: int, candidate: int, fit: Fit) -> FoldResiduals:
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

    def _held_out(
        self, test: Samples, found: Imputation
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Centred inputs, which outputs count, and weights."""
        w = np.ones(test.n_samples) if test.w is None else test.w
        Xc = test.X.astype(np.float64, copy=False) - found.problem.mean_x
        return Xc, ~(np.isnan(test.Y) | found.never), w


def _refuse_criteria(candidate: int, min_alpha: float) -> Any:
    raise ValueError(
        "Information criteria need complete outputs, and entries of y are missing; use "
        "criterion='cv'."
    )


def _constant(mean: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    return lambda Xc: np.broadcast_to(mean, (len(Xc), *mean.shape))


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
class _Visit:
    """One model, fitted to the observed entries of every fold."""

    errors: np.ndarray  # (n_folds,): exact, over observed entries
    imputations: tuple[Imputation, ...]


@dataclass(frozen=True, eq=False)
class _Chosen:
    """The choice, with the outputs that it imputes and the results of the search."""

    imputed: ImputedSamples
    results: dict[str, Any]
    choice: Choice
    pilot: tuple[Structure, float] | None = None


def search_missing(
    data: Samples,
    splits: Sequence[Split],
    options: SearchOptions,
    fit_options: Callable[[Choice], LinearOptions],
) -> Found:
    """Choose penalty and rank by held-out error over observed entries, and fit the choice.

    Parameters
    ----------
    data : Samples
        Scaled, of NumPy arrays, with NaN for missing outputs.
    splits : list of index pairs
    options : SearchOptions
    fit_options : callable
        From a choice to the options of its fit.
    """
    if options.criterion != "cv":
        _refuse_criteria(0, 0.0)
    if options.subspaces == "response":
        raise ValueError(
            "subspaces='response' needs complete outputs, and entries of y are missing; use "
            "subspaces='fitted'."
        )
    start = ImputedSamples(data, splits, options.fit_intercept).with_means()
    folds = start.folds()
    alphas = default_penalties(folds) if options.alphas is None else options.alphas
    grid, room = plan_ranks(folds, options, alphas.size)
    with few_threads_for(alphas.size * search_work(folds)):
        with progress(options.name, options.verbose) as bar:
            search = _search_ranks if grid.caps else _search_ridge
            chosen = search(start, folds, alphas, grid, options, bar, room)
        choice, problems = chosen.choice, Problems(chosen.imputed.folds())
        fit, n_dropped = fit_data(data, fit_options(choice), mask=choice.mask, pilot=chosen.pilot)
        lowest = float(chosen.results["alphas"].min())
        prior = coefficient_prior(problems, choice, lowest, options)
        residuals = fold_residuals(problems, choice, lowest, options, prior)
    return Found(
        choice,
        chosen.results,
        fit.with_prior(prior),
        calibrate(residuals, data.output_shape),
        n_dropped=n_dropped,
        pilot=chosen.pilot,
    )


def _search_ridge(
    start: ImputedSamples,
    folds: Folds,
    alphas: np.ndarray,
    grid: RankGrid,
    options: SearchOptions,
    bar: Progress,
    room: int,
) -> _Chosen:
    """Ridge regression: exact errors for every penalty."""
    numbers = range(folds.n_folds)
    nulls = [held.yy / held.size for _, held in (folds.problem(k, 0, 0.0) for k in numbers)]

    def compute(more: np.ndarray) -> Surface:
        scaled = scaled_penalties(more, folds)
        bar.expect(folds.n_folds * more.size)

        def run(fold: int) -> list[float]:
            observed, errors = start.observed(fold), []
            for alpha in scaled:
                errors.append(start.error(fold, _predictions_of(complete_ridge(observed, alpha))))
                bar.tick()
            return errors

        errors = over_folds(folds.n_folds, run, n_parallel(folds, options.n_jobs))
        return Surface(np.array(errors)[:, None, :], more, grid, float(np.mean(nulls)), 1)

    if options.alphas is not None:
        surface = compute(alphas)
    else:
        surface, alphas = widened(compute, alphas, room=room)
    warn_at_edge(surface, alphas, "alphas")
    results = results_of(surface.supported(), folds.shape, options)
    choice = single_choice(select(results, options.selection, folds.n_folds), results, options)
    alpha = scaled_alpha(choice.alpha, folds.x_unit)
    found = tuple(_imputed_by(complete_ridge(start.observed(k), alpha)) for k in numbers)
    return _Chosen(replace(start, imputations=found), results, choice)


def _search_ranks(
    start: ImputedSamples,
    folds: Folds,
    alphas: np.ndarray,
    grid: RankGrid,
    options: SearchOptions,
    bar: Progress,
    room: int,
) -> _Chosen:
    """Impute, choose and impute again; the surface of the last imputation, exact at the choice."""
    shape = folds.shape
    visited: dict[Index, _Visit] = {}

    def compute(more: np.ndarray) -> Surface:
        return compute_surface(Problems(folds), more, grid, options, bar)

    if options.alphas is not None:
        surface = compute(alphas).supported()
    else:
        surface = widened(compute, alphas, room=room)[0].supported()

    def choose_index(found: Surface) -> Index:
        return select(results_of(found, shape, options), options.selection, folds.n_folds)

    def visit(index: Index) -> _Visit:
        single = single_choice(index, results_of(surface, shape, options), options)
        structure = options.structure(single.rank)
        alpha = scaled_alpha(single.alpha, folds.x_unit)
        bar.expect(folds.n_folds)

        def run(fold: int) -> tuple[float, Imputation]:
            found = complete_structure(start.observed(fold), alpha, structure, shape[0])
            imputation = _imputed_by(found)
            bar.tick()
            return start.error(fold, imputation), imputation

        done = over_folds(folds.n_folds, run, n_parallel(folds, options.n_jobs))
        errors, imputations = zip(*done, strict=True)
        return _Visit(np.array(errors), imputations)

    def surface_of(index: Index) -> tuple[ImputedSamples, Surface]:
        imputed = replace(start, imputations=visited[index].imputations)
        problems = Problems(imputed.folds())
        return imputed, compute_surface(problems, surface.alphas, grid, options, bar).supported()

    last = choose_index(surface)
    choice: Index | None = None
    imputed, found = start, surface
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
    found.fold_mse[(slice(None), 0, *best)] = visited[best].errors
    # The error of ridge regression is not that of outputs which another model has imputed.
    found = replace(found, null_mse=surface.null_mse, ridge_mse=math.nan)
    warn_at_edge(found, found.alphas, "alphas")
    results = results_of(found, shape, options)
    results["fitted_index"] = np.array(list(visited))
    results["fitted_mse"] = np.array([v.errors.mean() for v in visited.values()])
    single = single_choice(best, results, options)
    if not options.stacks:
        return _Chosen(imputed, results, single)
    stacked = choose(Problems(imputed.folds()), found, results, options)
    stack = _exact_stack(imputed, stacked, options)
    if stack is None or not stack.cross_fitted_mse < visited[best].errors.mean():
        return _Chosen(imputed, results, single)
    mixed = replace(stacked, index=best, error=stack.cross_fitted_mse, stack=stack)
    return _Chosen(imputed, results, mixed, (options.structure(single.rank), single.alpha))


def _exact_stack(imputed: ImputedSamples, choice: Choice, options: SearchOptions) -> Stack | None:
    """The stack with its error over observed entries, in place of that over imputed ones."""
    stack, data, errors = choice.stack, imputed.data, []
    if stack is None:
        return None
    structure = options.structure(stack.mask.shape)
    for fold, imputation in enumerate(imputed.imputations):
        problem = imputation.problem.at(scaled_alpha(choice.alpha, data.x_unit))
        found = structure.approximate(problem, data.n_features, stack.mask)
        mixed = replace(imputation, predict=_predictor(problem, found.tucker))
        errors.append(imputed.error(fold, mixed))
    shift = float(np.mean(errors)) - stack.mse
    return replace(
        stack,
        mse=stack.mse + shift,
        cross_fitted_mse=stack.cross_fitted_mse + shift,
        path_mse=stack.path_mse + shift,
        path_cross_fitted_mse=stack.path_cross_fitted_mse + shift,
    )
