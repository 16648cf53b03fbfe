"""Cross-validation with missing outputs: held-out errors over observed entries.

The fits of all ranks are leading blocks of one core only if the outputs are complete. So the error
surface is that of imputed outputs, and it is computed in rounds. In the first round missing entries
are imputed by means. Then the best model of the surface is fitted to the observed entries of every
fold and imputes the missing ones, and the next surface is that of these outputs. The exact held-out
error of such a fit is known. When a choice recurs, or after a few rounds, the search chooses the
fitted model of least exact error.

Outputs that are never observed have no means, and replacing them by zeros raises the multilinear
ranks. So these outputs are completed first, by models whose ranks grow from one as long as the
error falls (`_grow`). At the end the choice is compared with exact fits of lower ranks
(`_lower_ranks`). If nothing else is missing, the search needs only the problems of the folds
(`search_never`), which may come from samples or from moments.

Ridge regression needs no rounds: its errors are exact for every penalty.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, TypeVar

import numpy as np

from ..core.approximate import Approximation, Structure
from ..core.fit import Fit, lift, scaled_alpha
from ..core.input_map import InputDesign, InputMap
from ..core.mixture import Mixture
from ..core.results import Results
from ..core.spectral import Spectral, Whitened
from ..core.tensor import Tucker
from ..core.threads import few_threads_for
from ..data.validation import Samples
from ..linear.fit import LinearOptions, fit_data
from ..model_selection.choice import groups_of
from ..model_selection.folds import (
    Folds,
    Problems,
    Split,
    input_trace,
    n_training,
    sample_residuals,
)
from ..model_selection.grid import RankGrid, default_alphas, refined, warn_at_edge
from ..model_selection.intervals import FoldResiduals, calibrate, held_out_predictions
from ..model_selection.search import (
    Choice,
    Found,
    SearchOptions,
    Surface,
    coefficient_prior,
    compute_surface,
    crossed_ridge,
    default_penalties,
    fold_residuals,
    mixed,
    n_parallel,
    over_folds,
    plan_ranks,
    results_of,
    scaled_penalties,
    search_work,
    select,
    single_choice,
    split_index,
)
from ..model_selection.surface import HeldOut
from ..progress import Progress, progress
from .completion import Completion, complete_ridge, complete_structure, impute_columns
from .fit import drop_unobserved
from .observed import Observed, SampleBasis, has_observation

__all__ = ["ImputedSamples", "mean_over", "never_folds", "search_missing", "search_never"]

Index = tuple[int, ...]
_Key = TypeVar("_Key")

# Maximum number of models that are fitted to every fold, and of models that complete outputs
# that are never observed.
_ROUNDS, _GROWTHS = 4, 12
# Maximum number of times that a rank is lowered at the end, if outputs are never observed.
_DESCENTS = 6


@dataclass(frozen=True, eq=False)
class Imputation:
    """Training problem of a fold with imputed outputs, and the predictions that impute them."""

    problem: Spectral  # with a mean of zero for outputs that were never observed
    never: np.ndarray  # mask of these outputs, of shape (d1, ..., dp)
    predict: Callable[[np.ndarray], np.ndarray]  # from centred inputs; zero for `never`


@dataclass(frozen=True, eq=False)
class ObservedHeldOut(HeldOut):
    """Held-out data with imputed entries, which do not count in mean errors.

    Parameters
    ----------
    C, B, yy, weight
        As in `HeldOut`, of imputed outputs.
    n_observed : float
        Sum of the weights of the observed entries, of samples times outputs.
    """

    n_observed: float

    @property
    def size(self) -> float:
        return self.n_observed


@dataclass(frozen=True, eq=False)
class ImputedSamples:
    """Samples in memory whose missing outputs are imputed, separately in every fold.

    Parameters
    ----------
    data : Samples
        Scaled samples of NumPy arrays, with NaN for missing outputs.
    splits : list of index pairs
    fit_intercept : bool
    imputations : tuple of Imputation
        One for each fold.
    output_weight : array of shape (d1, ..., dp), or None
        Weights of the outputs, by whose roots the outputs were multiplied.
    design : InputDesign or None
        Specification of features of the inputs; None for the inputs themselves.
    maps : tuple of InputMap
        The map of inputs to features of each fold, from its training samples.
    """

    data: Samples
    splits: Sequence[Split]
    fit_intercept: bool = True
    imputations: tuple[Imputation, ...] = ()
    output_weight: np.ndarray | None = None
    design: InputDesign | None = None
    maps: tuple[InputMap, ...] = ()

    def with_design(self, design: InputDesign | None) -> ImputedSamples:
        """Return the samples with features that a design specifies as inputs."""
        if design is None:
            return self
        maps = []
        for train, _ in self.splits:
            seen = self.data.rows(train)
            maps.append(design.from_samples(seen.X, seen.Y, seen.w, self.fit_intercept))
        return replace(self, design=design, maps=tuple(maps))

    def side(self, fold: int, side: int) -> Samples:
        """Return the training (0) or held-out (1) samples of a fold, with features as inputs."""
        rows = self.data.rows(self.splits[fold][side])
        return self.maps[fold].samples(rows) if self.maps else rows

    def folds(self) -> Folds:
        """Return the folds of the imputed outputs, with held-out errors over observed entries."""
        data, splits, design = self.data, self.splits, self.design
        scale = None if design is None else design.scale
        scaled = data if scale is None else replace(data, X=data.X * scale)
        largest = max(train.size for train, _ in splits)
        w = has_observation(data.Y, data.w).astype(float)
        return Folds(
            n_folds=len(splits),
            shape=(data.n_features, *data.output_shape),
            max_input_rank=min(data.n_features, largest),
            problem=self._problem,
            residuals=self._residuals,
            default_alphas=lambda: default_alphas(*input_trace(scaled, self.fit_intercept)),
            refit=lambda candidate, options: fit_data(
                data, replace(options, inputs=design and design.in_units(data.x_unit))
            )[0],
            n_training=n_training(splits, w),
            x_unit=data.x_unit,
            y_unit=data.y_unit,
            splits=splits,
        )

    def with_means(self) -> ImputedSamples:
        """Return the samples with mean imputation."""
        found = []
        for fold in range(len(self.splits)):
            problem = self.observed(fold).spectral()
            mean = np.nan_to_num(problem.mean_y, nan=0.0)
            found.append(_imputation(problem, _constant(mean)))
        return replace(self, imputations=tuple(found))

    def _problem(
        self, fold: int, candidate: int, min_alpha: float
    ) -> tuple[Spectral, ObservedHeldOut]:
        found, test = self.imputations[fold], self.side(fold, 1)
        Xc, seen, w = self._held_out(test, found)
        Y = np.where(seen, test.Y, found.predict(Xc))
        held = HeldOut.from_features(Xc @ found.problem.basis, Y, found.problem.mean_y, test.w)
        size = float(w @ _weighted_counts(seen, self.output_weight))
        if not size > 0:
            raise ValueError(
                f"The test samples of split {fold} of cv have no observed entry of y, or none of "
                f"an output that is observed in the training samples; use fewer folds, or shuffle "
                f"the samples."
            )
        return found.problem, ObservedHeldOut(held.C, held.B, held.yy, held.weight, size)

    def _residuals(self, fold: int, candidate: int, fit: Fit) -> FoldResiduals:
        never = self.imputations[fold].never
        fit = replace(fit, intercept=np.where(never, np.nan, fit.intercept))
        if self.maps:
            fit = fit.lifted(self.maps[fold])
        return sample_residuals(self.data, self.splits[fold][1], fit)

    def observed(self, fold: int) -> Observed:
        """Return the observed training outputs of a fold."""
        try:
            train, _ = drop_unobserved(self.side(fold, 0))
        except ValueError as error:
            raise ValueError(f"The training samples of split {fold} of cv: {error}") from error
        basis = SampleBasis.from_arrays(train.X, train.w, 0.0, fit_intercept=self.fit_intercept)
        return Observed(basis, train.Y)

    def error(self, fold: int, imputation: Imputation) -> float:
        """Return the held-out error of predictions, over observed entries."""
        test = self.side(fold, 1)
        Xc, seen, w = self._held_out(test, imputation)
        squares = np.square(test.Y - imputation.predict(Xc))
        return mean_over(seen, squares, w, self.output_weight)

    def _held_out(
        self, test: Samples, found: Imputation
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return centred inputs, the mask of outputs that count, and weights."""
        w = np.ones(test.n_samples) if test.w is None else test.w
        Xc = test.X.astype(np.float64, copy=False) - found.problem.mean_x
        return Xc, ~(np.isnan(test.Y) | found.never), w


def _constant(mean: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    return lambda Xc: np.broadcast_to(mean, (len(Xc), *mean.shape))


def _imputation(problem: Spectral, predict: Callable[[np.ndarray], np.ndarray]) -> Imputation:
    never = np.isnan(problem.mean_y)
    return Imputation(replace(problem, mean_y=np.where(never, 0.0, problem.mean_y)), never, predict)


def _imputed_by(found: Completion) -> Imputation:
    return _imputation(found.imputed(), _predictor(found.problem, found.found.tucker))


def _predictions_of(found: Completion) -> Imputation:
    """Return `_imputed_by` without the problem of imputed outputs, which `error` does not need."""
    problem: Any = found.problem
    return Imputation(problem, np.isnan(problem.mean_y), _predictor(problem, found.found.tucker))


def _predictor(problem: Whitened, V: Tucker) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function from centred inputs to outputs."""
    coef, mean = lift(V, problem), np.nan_to_num(problem.mean_y, nan=0.0)
    return lambda Xc: coef.map_input(Xc) + mean


def mean_over(
    seen: np.ndarray, A: np.ndarray, w: np.ndarray, output_weight: np.ndarray | None = None
) -> float:
    """Return the weighted mean of the observed entries of `A`, (n_samples, d1, ..., dp).

    The entries of `A` already include the weights of their outputs.
    """
    total = np.where(seen, A, 0.0).reshape(len(A), -1).sum(axis=1)
    return float(w @ total / (w @ _weighted_counts(seen, output_weight)))


def _weighted_counts(seen: np.ndarray, output_weight: np.ndarray | None) -> np.ndarray:
    """Return the number of observed outputs of each sample, or the sum of their weights."""
    flat = seen.reshape(len(seen), -1)
    return flat.sum(axis=1) if output_weight is None else flat @ output_weight.ravel()


# ---------------------------------------------------------------- outputs that are never observed

Pair = tuple[Spectral, ObservedHeldOut]


def never_folds(folds: Folds, never: np.ndarray) -> Folds:
    """Return folds of data that are complete except for outputs that are never observed.

    Parameters
    ----------
    folds : Folds
        Folds of outputs with zeros for outputs that are never observed.
    never : array of bool, of shape (d1, ..., dp)
        Mask of these outputs.
    """
    n_known = never.size - int(never.sum())

    def problem(fold: int, candidate: int, min_alpha: float) -> Pair:
        found, held = folds.problem(fold, candidate, min_alpha)
        size = held.weight * n_known
        seen = ObservedHeldOut(held.C, held.B, held.yy, held.weight, size)
        return replace(found, never=never), seen

    def residuals(fold: int, candidate: int, fit: Fit) -> Any:
        fit = replace(fit, intercept=np.where(never, np.nan, fit.intercept))
        return folds.residuals(fold, candidate, fit)

    return replace(folds, problem=problem, residuals=residuals)


def _impute_pair(pair: Pair, V: Tucker, alpha: float) -> Pair:
    """Impute never observed outputs of training problem and held-out data by those of a fit.

    Parameters
    ----------
    pair : Spectral and ObservedHeldOut
        A fold without imputed held-out outputs.
    V : Tucker
        Approximation of the Z of this penalty.
    alpha : float
        Penalty of the fit.
    """
    problem, held = pair
    if problem.never is None:
        return pair
    W = V.to_dense()[:, problem.never] / problem.root(alpha)[:, None]
    B = held.B.copy()
    B[:, problem.never] = held.C @ W
    yy = held.yy + float(np.vdot(W, B[:, problem.never]))
    return impute_columns(problem, V, alpha), replace(held, B=B, yy=yy)


def _known_error(pair: Pair, V: Tucker, alpha: float) -> float:
    """Return the held-out error over the known outputs."""
    problem, held = pair
    known = ... if problem.never is None else ~problem.never
    W = V.to_dense()[:, known].reshape(len(problem.s), -1) / problem.root(alpha)[:, None]
    B = held.B[:, known].reshape(W.shape)
    return max(held.yy - 2 * float(np.vdot(W, B)) + float(np.vdot(W, held.C @ W)), 0.0) / held.size


# ---------------------------------------------------------------- folds with missing outputs


@dataclass(frozen=True, eq=False)
class _Incomplete:
    """Operations of a search on folds with missing outputs.

    Parameters
    ----------
    start : Folds
        Folds with missing outputs imputed by means; problems have `never`.
    fit : callable
        ``fit(fold, structure, alpha)`` fits to the observed entries of a fold, and returns the
        exact held-out error and the imputed values.
    impute : callable
        Returns the folds with imputed outputs, from the imputed values of each fold.
    error : callable
        ``error(fold, imputed, found, alpha)`` returns the exact held-out error of an approximation
        of the problem of imputed outputs.
    exact_start : bool
        Whether only outputs that are never observed are missing, so that `_grow` returns exact
        fits.
    """

    start: Folds
    fit: Callable[[int, Structure, float], tuple[float, Any]]
    impute: Callable[[Sequence[Any]], Folds]
    error: Callable[[int, Any, Approximation, float], float]
    exact_start: bool


def _incomplete_samples(start: ImputedSamples) -> _Incomplete:
    """Return the operations on samples in memory, with any pattern of missing entries."""
    n_features = start.data.n_features

    def fit(fold: int, structure: Structure, alpha: float) -> tuple[float, Imputation]:
        found = complete_structure(start.observed(fold), alpha, structure, n_features)
        imputed = _imputed_by(found)
        return start.error(fold, imputed), imputed

    def error(fold: int, imputed: Imputation, found: Approximation, alpha: float) -> float:
        predict = _predictor(imputed.problem.at(alpha), found.tucker)
        return start.error(fold, replace(imputed, predict=predict))

    def problem(fold: int, candidate: int, min_alpha: float) -> Pair:
        problem, held = start.folds().problem(fold, candidate, min_alpha)
        never = start.imputations[fold].never
        return replace(problem, never=never if never.any() else None), held

    return _Incomplete(
        start=replace(start.folds(), problem=problem),
        fit=fit,
        impute=lambda found: replace(start, imputations=tuple(found)).folds(),
        error=error,
        exact_start=False,
    )


def _incomplete_outputs(start: Folds) -> _Incomplete:
    """Return the operations on folds with the same missing outputs in all samples."""

    problems = Problems(start)

    def fit(fold: int, structure: Structure, alpha: float) -> tuple[float, Pair]:
        pair: Any = problems(fold, 0, 0.0)
        found = structure.approximate(pair[0].at(alpha), start.shape[0]).tucker
        return _known_error(pair, found, alpha), _impute_pair(pair, found, alpha)

    def error(fold: int, imputed: Pair, found: Approximation, alpha: float) -> float:
        pair: Any = problems(fold, 0, 0.0)
        return _known_error(pair, found.tucker, alpha)

    return _Incomplete(
        start=start,
        fit=fit,
        impute=lambda found: replace(start, problem=lambda fold, *args: found[fold]),
        error=error,
        exact_start=True,
    )


# ---------------------------------------------------------------- the search


@dataclass(frozen=True, eq=False)
class _Visit:
    """One model, fitted to the observed entries of every fold."""

    errors: np.ndarray  # exact held-out errors over observed entries, (n_folds,)
    imputed: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class _Chosen:
    """The choice, with the outputs that it imputes and the results of the search."""

    imputed: Folds
    results: Results
    choice: Choice
    pilot: tuple[Structure, float] | None = None


def search_missing(
    data: Samples,
    splits: Sequence[Split],
    options: SearchOptions,
    fit_options: Callable[[Choice], LinearOptions],
    output_weight: np.ndarray | None = None,
    design: InputDesign | None = None,
) -> Found:
    """Choose penalty and rank by held-out error over observed entries, and fit the choice.

    Parameters
    ----------
    data : Samples
        Scaled samples of NumPy arrays, with NaN for missing outputs.
    splits : list of index pairs
    options : SearchOptions
    fit_options : callable
        Maps a choice to the options of its fit.
    output_weight : array of shape (d1, ..., dp), optional
        Weights of the outputs, by whose roots the outputs were multiplied.
    design : InputDesign or None
        Specification of features of the inputs; None for the inputs themselves.
    """
    _check_options(options)
    start = ImputedSamples(data, splits, options.fit_intercept, (), output_weight)
    start = start.with_design(design).with_means()
    folds = start.folds()
    alphas = default_penalties(folds) if options.alphas is None else options.alphas
    grid = plan_ranks(folds, options, alphas.size)
    with few_threads_for(alphas.size * search_work(folds)):
        with progress(options.name, options.verbose) as bar:
            if grid.caps:
                some = _incomplete_samples(start)
                chosen = _search_ranks(some, alphas, grid, options, bar)
            else:
                chosen = _search_ridge(start, folds, alphas, grid, options, bar)
        return _found(chosen, options, fit_options)


def search_never(
    folds: Folds,
    never: np.ndarray,
    options: SearchOptions,
    fit_options: Callable[[Choice], LinearOptions],
) -> Found:
    """Search as `search_missing`, for data that only lack outputs that are never observed.

    Parameters
    ----------
    folds : Folds
        Folds of outputs with zeros for outputs that are never observed.
    never : array of bool, of shape (d1, ..., dp)
        Mask of these outputs.
    options : SearchOptions
        Options of a search over multilinear ranks, which couple outputs.
    fit_options : callable
        Maps a choice to the options of its fit.
    """
    _check_options(options)
    folds = never_folds(folds, never)
    alphas = default_penalties(folds) if options.alphas is None else options.alphas
    grid = plan_ranks(folds, options, alphas.size)
    with few_threads_for(alphas.size * search_work(folds)):
        folds.prepare(0)
        with progress(options.name, options.verbose) as bar:
            some = _incomplete_outputs(folds)
            chosen = _search_ranks(some, alphas, grid, options, bar)
        return _found(chosen, options, lambda choice: replace(fit_options(choice), never=never))


def _check_options(options: SearchOptions) -> None:
    """Raise a ValueError for options that need complete outputs."""
    if options.subspaces == "response":
        raise ValueError(
            "subspaces='response' needs complete outputs, but y has missing values; use "
            "subspaces='fitted'."
        )


def _found(
    chosen: _Chosen, options: SearchOptions, fit_options: Callable[[Choice], LinearOptions]
) -> Found:
    """Fit the choice to all data, and calibrate its intervals."""
    choice, folds = chosen.choice, chosen.imputed
    how = replace(fit_options(choice), pilot=chosen.pilot)
    fit = folds.refit(choice.candidate, how)
    problems, lowest = Problems(folds), float(chosen.results["alphas"].min())
    prior = coefficient_prior(problems, choice, lowest, options)
    residuals = fold_residuals(problems, choice, lowest, options, prior)
    held_out = None
    if options.keep_held_out:
        held_out = held_out_predictions(residuals, folds.shape[1:])
    return Found(
        choice=choice,
        results=chosen.results,
        fit=fit.with_prior(prior),
        calibration=calibrate(residuals, folds.shape[1:], None, folds.splits, options.groups),
        pilot=chosen.pilot,
        held_out=held_out,
    )


def _search_ridge(
    start: ImputedSamples,
    folds: Folds,
    alphas: np.ndarray,
    grid: RankGrid,
    options: SearchOptions,
    bar: Progress,
) -> _Chosen:
    """Search penalties of ridge regression, with exact errors for every penalty."""
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
        surface, alphas = refined(compute, alphas)
    warn_at_edge(surface, alphas, "alphas")
    surface, groups = surface.supported(), groups_of(folds.shared)
    results = results_of(surface, folds.shape, options)
    results["ridge_mse"] = crossed_ridge(surface.fold_mse, groups)
    index = select(results, options.selection, folds.n_folds)
    choice = single_choice(index, results, options, float(results["mean_mse"][index]))
    if options.selection == "min":
        choice = replace(choice, error=results["ridge_mse"])
    alpha = scaled_alpha(choice.alpha, folds.x_unit)
    found = tuple(_imputed_by(complete_ridge(start.observed(k), alpha)) for k in numbers)
    return _Chosen(replace(start, imputations=found).folds(), results, choice)


def _search_ranks(
    some: _Incomplete,
    alphas: np.ndarray,
    grid: RankGrid,
    options: SearchOptions,
    bar: Progress,
) -> _Chosen:
    """Alternate imputations and choices of penalty and ranks.

    The result has the surface of the last imputation, with the exact error at the choice.
    """
    shape, start = some.start.shape, some.start
    pairs = [start.problem(k, 0, 0.0) for k in range(start.n_folds)]
    null_mse = float(np.mean([held.yy / held.size for _, held in pairs]))
    grown: dict[_Model, _Visit] = {}
    if len(grid.caps) > 1 and any(problem.never is not None for problem, _ in pairs):
        grown = _grow(start, alphas, grid, options, bar)
        start = _incomplete_outputs(start).impute(grown[_least(grown)].imputed)

    def compute(more: np.ndarray) -> Surface:
        return compute_surface(Problems(start), more, grid, options, bar)

    if options.alphas is not None:
        surface = compute(alphas).supported()
    else:
        surface = refined(compute, alphas)[0].supported()
    visited: dict[Index, _Visit] = {}
    if some.exact_start:
        visited = _places(grown, surface)

    def choose_index(found: Surface) -> Index:
        return select(results_of(found, shape, options), options.selection, start.n_folds)

    def visit(index: Index) -> _Visit:
        single = single_choice(index, results_of(surface, shape, options), options, math.nan)
        return _fit_folds(some, single.structure, single.alpha, options, bar)

    def surface_of(index: Index) -> tuple[Folds, Surface]:
        imputed = some.impute(visited[index].imputed)
        found = compute_surface(Problems(imputed), surface.alphas, grid, options, bar)
        return imputed, found.supported()

    last, n_grown = choose_index(surface), len(visited)
    choice: Index | None = None
    imputed, found = start, surface
    while last not in visited and len(visited) - n_grown < _ROUNDS:
        visited[last] = visit(last)
        choice = last
        imputed, found = surface_of(choice)
        last = choose_index(found)
    best = last if last in visited else choice
    if options.selection in ("min", "stack"):
        best = _least(visited)
        for _ in range(_DESCENTS if grown else 0):
            for index in _lower_ranks(best, found):
                if index not in visited:
                    visited[index] = visit(index)
            if _least(visited) == best:
                break
            best = _least(visited)
    assert best is not None
    if best != choice:
        imputed, found = surface_of(best)
    found.fold_mse[(slice(None), 0, *best)] = visited[best].errors
    # The error of ridge regression must not be that of outputs that another model has imputed. For
    # outputs that are all zero, ridge regression predicts zero, and only the others count.
    warn_at_edge(found, found.alphas, "alphas")
    results = results_of(replace(found, null_mse=null_mse), shape, options)
    if some.exact_start:
        ones = RankGrid((1,) * len(grid.caps))
        bare = compute_surface(Problems(some.start), found.alphas, ones, options, bar)
        assert bare.fold_ridge is not None
        results["ridge_mse"] = crossed_ridge(bare.fold_ridge, groups_of(some.start.shared))
    results["fitted_index"] = np.array(list(visited))
    results["fitted_mse"] = np.array([v.errors.mean() for v in visited.values()])
    single = single_choice(best, results, options, float(results["mean_mse"][best]))
    if not options.stacks:
        return _Chosen(imputed, results, single)
    stack = mixed(Problems(imputed), found, single, results, replace(options, ways=("ranks",)))
    stack = replace(stack, error=_exact_error(some, imputed, visited[best].imputed, stack))
    if not stack.error < visited[best].errors.mean():
        return _Chosen(imputed, results, single)
    return _Chosen(imputed, results, stack, (single.structure, single.alpha))


def _fit_folds(
    some: _Incomplete,
    structure: Structure,
    alpha: float,
    options: SearchOptions,
    bar: Progress,
) -> _Visit:
    """Fit a model to the observed entries of every fold."""
    folds, penalty = some.start, scaled_alpha(alpha, some.start.x_unit)
    bar.expect(folds.n_folds)

    def run(fold: int) -> tuple[float, Any]:
        found = some.fit(fold, structure, penalty)
        bar.tick()
        return found

    done = over_folds(folds.n_folds, run, n_parallel(folds, options.n_jobs))
    errors, imputed = zip(*done, strict=True)
    return _Visit(np.array(errors), imputed)


# A penalty, in the units of the user's data, and a rank.
_Model = tuple[float, tuple[int, ...]]


def _grow(
    start: Folds, alphas: np.ndarray, grid: RankGrid, options: SearchOptions, bar: Progress
) -> dict[_Model, _Visit]:
    """Complete outputs that are never observed by models whose ranks grow from one.

    Each model completes the outputs. The next model is the best one on the surface of the completed
    outputs whose ranks are at most slightly larger. Unlike zeros, imputed values of a model of low
    rank do not raise the ranks of the outputs.

    Parameters
    ----------
    start : Folds
        Folds whose problems have `never`.
    alphas : array of shape (n_alphas,)
        Penalties to choose from.
    grid : RankGrid
    options : SearchOptions
    bar : Progress
    """
    some = _incomplete_outputs(start)
    imputed, caps, found = start, (1,) * len(grid.caps), dict[_Model, _Visit]()
    for _ in range(_GROWTHS):
        surface = compute_surface(Problems(imputed), alphas, RankGrid(caps), options, bar)
        results = results_of(surface.supported(), start.shape, options)
        index = select(results, "min", start.n_folds)
        single = single_choice(index, results, options, math.nan)
        rank = split_index(index, results, options.named_candidates)[2]
        model = single.alpha, rank
        if model in found:
            break
        found[model] = _fit_folds(some, single.structure, single.alpha, options, bar)
        imputed = some.impute(found[model].imputed)
        caps = tuple(
            min(max(R + 1, R * 3 // 2), cap) for R, cap in zip(rank, grid.caps, strict=True)
        )
    return found


def _least(found: dict[_Key, _Visit]) -> _Key:
    """Return the model of least error."""
    return min(found, key=lambda key: float(found[key].errors.mean()))


def _lower_ranks(index: Index, surface: Surface) -> list[Index]:
    """Return the candidates with ranks lower by one in the input mode, or in some output modes.

    The surface of outputs that a model has imputed favours its ranks, so that lower ranks have to
    be fitted to be compared with it. Output modes are also lowered together: a mode of low rank
    next to others of high rank leaves much freedom for outputs that are never observed.
    """
    p, errors = len(surface.grid.caps) - 1, surface.fold_mse[0, 0]
    steps = [(1, *(0,) * p), *((0, *step) for step in product((0, 1), repeat=p) if any(step))]
    head, ranks = index[: -p - 1], index[-p - 1 :]
    lower = [(*head, *(R - less for R, less in zip(ranks, step, strict=True))) for step in steps]
    return [other for other in lower if min(other) >= 0 and np.isfinite(errors[other])]


def _places(grown: dict[_Model, _Visit], surface: Surface) -> dict[Index, _Visit]:
    """Return the models by their positions in a surface."""
    found = dict[Index, _Visit]()
    for (alpha, rank), visit in grown.items():
        where = np.flatnonzero(surface.alphas == alpha)
        ranks = tuple(min(R, cap) - 1 for R, cap in zip(rank, surface.grid.caps, strict=True))
        if where.size:
            found[(int(where[0]), *ranks)] = visit
    return found


def _exact_error(some: _Incomplete, folds: Folds, imputed: Sequence[Any], choice: Choice) -> float:
    """Return the cross-fitted error of a mixture over observed entries."""
    errors = []
    for fold in range(folds.n_folds):
        _, alpha, structure, _ = choice.of_fold(fold)
        assert isinstance(structure, Mixture)
        alpha = scaled_alpha(alpha, folds.x_unit)
        problem = folds.problem(fold, choice.candidate, 0.0)[0].at(alpha)
        found = structure.in_units(folds.x_unit).approximate(problem, folds.shape[0])
        errors.append(some.error(fold, imputed[fold], found, alpha))
    return float(np.mean(errors))
