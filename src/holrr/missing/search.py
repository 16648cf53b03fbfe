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
from ..core.fit import scaled_alpha
from ..core.input_map import InputDesign
from ..core.mixture import Mixture
from ..core.results import Results
from ..core.tensor import Tucker
from ..core.threads import few_threads_for
from ..data.validation import Samples
from ..linear.fit import LinearOptions
from ..model_selection.choice import groups_of
from ..model_selection.folds import Split
from ..model_selection.grid import RankGrid, refined, warn_at_edge
from ..model_selection.intervals import calibrate
from ..model_selection.search import (
    Choice,
    Found,
    SearchOptions,
    Surface,
    coefficient_prior,
    compute_surface,
    crossed_error,
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
from ..model_selection.sources import FoldMoments, Kept, Problems, Rows
from ..progress import Progress, progress
from .completion import complete_ridge, impute_columns
from .sources import Imputation, ImputedProblem, IncompleteRows, NeverObserved

__all__ = ["search_missing", "search_never"]

Index = tuple[int, ...]
_Key = TypeVar("_Key")

# Maximum number of models that are fitted to every fold, and of models that complete outputs
# that are never observed.
_ROUNDS, _GROWTHS = 4, 12
# Maximum number of times that a rank is lowered at the end, if outputs are never observed.
_DESCENTS = 6


# ---------------------------------------------------------------- folds with missing outputs


class MissingEntries:
    """Operations of a search on samples with any pattern of missing outputs.

    Parameters
    ----------
    source : IncompleteRows
        Samples with missing outputs.

    Attributes
    ----------
    start : Problems
        Problems with missing outputs imputed by means, which mark outputs that are never observed.
    """

    exact_start = False  # whether `_grow` returns exact fits

    def __init__(self, source: IncompleteRows) -> None:
        self.source, self.start = source, Problems(source)

    def fit(self, fold: int, structure: Structure, alpha: float) -> tuple[float, ImputedProblem]:
        """Fit to the observed entries of a fold, and return the exact error and the problem."""
        found = self.source.completed(fold, structure, alpha)
        return self.source.error(fold, found.imputation), found

    def impute(self, found: Sequence[ImputedProblem]) -> Problems:
        """Return the problems of imputed outputs, from those of each fold."""
        pairs = zip(found, self.source.folds, strict=True)
        known = [Kept(problem, self.source.held_out(problem, fold)) for problem, fold in pairs]
        return Problems(self.source, known=known)

    def error(self, fold: int, imputed: Any, found: Approximation, alpha: float) -> float:
        """Return the exact held-out error of an approximation of a problem of imputed outputs."""
        return self.source.approximation_error(fold, imputed, found, alpha)


class MissingOutputs:
    """Operations of a search on data in which only outputs that are never observed are missing.

    Parameters
    ----------
    start : Problems
        Problems that mark outputs that are never observed.
    """

    exact_start = True

    def __init__(self, start: Problems) -> None:
        self.start = start

    def fit(self, fold: int, structure: Structure, alpha: float) -> tuple[float, Kept]:
        """Fit to the known outputs of a fold, and return the exact error and the problem."""
        kept = self.start.at(fold, 0, 0.0)
        problem = kept.problem.spectral.at(alpha)
        found = structure.approximate(problem, self.start.shape[0]).tucker
        return _known_error(kept, found, alpha), _imputed(kept, found, alpha)

    def impute(self, found: Sequence[Kept]) -> Problems:
        """Return the problems of imputed outputs, from those of each fold."""
        return Problems(self.start.source, self.start.candidates, known=found)

    def error(self, fold: int, imputed: Any, found: Approximation, alpha: float) -> float:
        """Return the exact held-out error of an approximation of a problem of imputed outputs."""
        return _known_error(self.start.at(fold, 0, 0.0), found.tucker, alpha)


def _imputed(kept: Kept, V: Tucker, alpha: float) -> Kept:
    """Impute never observed outputs of training problem and held-out data by those of a fit.

    Parameters
    ----------
    kept : Kept
        A fold without imputed held-out outputs.
    V : Tucker
        Approximation of the Z of this penalty.
    alpha : float
        Penalty of the fit.
    """
    problem, held = kept.problem.spectral, kept.held_out
    if problem.never is None:
        return kept
    W = V.to_dense()[:, problem.never] / problem.root(alpha)[:, None]
    B = held.B.copy()
    B[:, problem.never] = held.C @ W
    yy = held.yy + float(np.vdot(W, B[:, problem.never]))
    imputed = replace(kept.problem, spectral=impute_columns(problem, V, alpha))
    return Kept(imputed, replace(held, B=B, yy=yy))


def _known_error(kept: Kept, V: Tucker, alpha: float) -> float:
    """Return the held-out error over the known outputs."""
    problem, held = kept.problem.spectral, kept.held_out
    known = ... if problem.never is None else ~problem.never
    W = V.to_dense()[:, known].reshape(len(problem.s), -1) / problem.root(alpha)[:, None]
    B = held.B[:, known].reshape(W.shape)
    return max(held.yy - 2 * float(np.vdot(W, B)) + float(np.vdot(W, held.C @ W)), 0.0) / held.size


# ---------------------------------------------------------------- the search


@dataclass(frozen=True, eq=False)
class _Visit:
    """One model, fitted to the observed entries of every fold."""

    errors: np.ndarray  # exact held-out errors over observed entries, (n_folds,)
    imputed: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class _Chosen:
    """The choice, with the outputs that it imputes and the results of the search."""

    imputed: Problems
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
    source = IncompleteRows(
        data,
        splits,
        fit_intercept=options.fit_intercept,
        output_weight=output_weight,
        design=design,
    )
    some = MissingEntries(source)
    alphas = default_penalties(some.start) if options.alphas is None else options.alphas
    grid = plan_ranks(some.start, options, alphas.size)
    with few_threads_for(alphas.size * search_work(some.start)):
        with progress(options.name, options.verbose) as bar:
            search = _search_ranks if grid.caps else _search_ridge
            chosen = search(some, alphas, grid, options, bar)
        return _found(chosen, options, fit_options)


def search_never(
    source: Rows | FoldMoments,
    design: InputDesign | None,
    never: np.ndarray,
    options: SearchOptions,
    fit_options: Callable[[Choice], LinearOptions],
) -> Found:
    """Search as `search_missing`, for data that only lack outputs that are never observed.

    Parameters
    ----------
    source : Rows or FoldMoments
        Source of outputs with zeros for outputs that are never observed.
    design : InputDesign or None
        Specification of features of the inputs; None for the inputs themselves.
    never : array of bool, of shape (d1, ..., dp)
        Mask of these outputs.
    options : SearchOptions
        Options of a search over multilinear ranks, which couple outputs.
    fit_options : callable
        Maps a choice to the options of its fit.
    """
    start = Problems(NeverObserved(source, never), [design])
    alphas = default_penalties(start) if options.alphas is None else options.alphas
    grid = plan_ranks(start, options, alphas.size)
    with few_threads_for(alphas.size * search_work(start)):
        with progress(options.name, options.verbose) as bar:
            chosen = _search_ranks(MissingOutputs(start), alphas, grid, options, bar)
        return _found(chosen, options, fit_options)


def _found(
    chosen: _Chosen, options: SearchOptions, fit_options: Callable[[Choice], LinearOptions]
) -> Found:
    """Fit the choice to all data, and calibrate its intervals."""
    choice, problems = chosen.choice, chosen.imputed
    fit = problems.refit(choice.candidate, replace(fit_options(choice), pilot=chosen.pilot))
    lowest = float(chosen.results["alphas"].min())
    prior = coefficient_prior(problems, choice, lowest, options)
    residuals = fold_residuals(problems, choice, lowest, options, prior)
    return Found(
        choice=choice,
        results=chosen.results,
        fit=fit.with_prior(prior),
        calibration=calibrate(residuals, problems.shape[1:], None, problems.splits, options.groups),
        pilot=chosen.pilot,
    )


def _search_ridge(
    some: MissingEntries,
    alphas: np.ndarray,
    grid: RankGrid,
    options: SearchOptions,
    bar: Progress,
) -> _Chosen:
    """Search penalties of ridge regression, with exact errors for every penalty."""
    problems, source, numbers = some.start, some.source, range(some.start.n_folds)
    nulls = [held.yy / held.size for held in (problems.at(k, 0, 0.0).held_out for k in numbers)]

    def compute(more: np.ndarray) -> Surface:
        scaled = scaled_penalties(more, problems)
        bar.expect(problems.n_folds * more.size)

        def run(fold: int) -> list[float]:
            observed, errors = source.observed(fold), []
            for alpha in scaled:
                found = Imputation.by(complete_ridge(observed, alpha))
                errors.append(source.error(fold, found))
                bar.tick()
            return errors

        errors = over_folds(problems.n_folds, run, n_parallel(problems, options.n_jobs))
        return Surface.of_ridge(np.array(errors)[:, None, :], more, float(np.mean(nulls)))

    if options.alphas is not None:
        surface = compute(alphas)
    else:
        surface, alphas = refined(compute, alphas)
    warn_at_edge(surface, alphas, "alphas")
    results = results_of(surface, problems.shape, options)
    results["ridge_mse"] = crossed_ridge(surface.fold_ridge, groups_of(problems.shared))
    index = select(results, options.selection, problems.n_folds)
    choice = single_choice(index, results, options, float(results["mean_mse"][index]))
    if options.selection == "min":
        choice = replace(choice, error=results["ridge_mse"])
    alpha = scaled_alpha(choice.alpha, problems.x_unit)
    imputed = some.impute([source.completed_by_ridge(k, alpha) for k in numbers])
    return _Chosen(imputed, results, choice)


def _search_ranks(
    some: MissingEntries | MissingOutputs,
    alphas: np.ndarray,
    grid: RankGrid,
    options: SearchOptions,
    bar: Progress,
) -> _Chosen:
    """Alternate imputations and choices of penalty and ranks.

    The result has the surface of the last imputation, with the exact error at the choice.
    """
    shape, start = some.start.shape, some.start
    folds = [start.at(k, 0, 0.0) for k in range(start.n_folds)]
    null_mse = float(np.mean([kept.held_out.yy / kept.held_out.size for kept in folds]))
    grown: dict[_Model, _Visit] = {}
    if len(grid.caps) > 1 and any(kept.problem.spectral.never is not None for kept in folds):
        grown = _grow(start, alphas, grid, options, bar)
        start = MissingOutputs(start).impute(grown[_least(grown)].imputed)

    def compute(more: np.ndarray) -> Surface:
        return compute_surface(start, more, grid, options, bar, 0.0)

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

    def surface_of(index: Index) -> tuple[Problems, Surface]:
        imputed = some.impute(visited[index].imputed)
        found = compute_surface(imputed, surface.alphas, grid, options, bar, 0.0)
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
    found.errors[0, best[0]][(slice(None), *best[1:])] = visited[best].errors
    found = replace(found, null_mse=null_mse)
    warn_at_edge(found, found.alphas, "alphas")
    results = results_of(found, shape, options)
    # The error of ridge regression must not be that of outputs that another model has imputed. For
    # outputs that are all zero, ridge regression predicts zero, and only the others count.
    if some.exact_start:
        ones = RankGrid((1,) * len(grid.caps))
        bare = compute_surface(some.start, found.alphas, ones, options, bar, 0.0)
        results["ridge_mse"] = crossed_ridge(bare.fold_ridge, groups_of(some.start.shared))
    results["fitted_index"] = np.array(list(visited))
    results["fitted_mse"] = np.array([v.errors.mean() for v in visited.values()])
    single = single_choice(best, results, options, float(results["mean_mse"][best]))
    if not options.stacks:
        return _Chosen(imputed, results, single)
    stack = mixed(imputed, found, single, results, replace(options, ways=("ranks",)))
    stack = replace(stack, error=_exact_error(some, imputed, visited[best].imputed, stack))
    # The best single rank is judged by the errors that chose it. Cross-fitting raises its error as
    # much as on the surface of imputed outputs.
    crossed = crossed_error(found, groups_of(imputed.shared)) / float(
        np.nanmin(results["mean_mse"])
    )
    if not stack.error < max(crossed, 1.0) * visited[best].errors.mean():
        return _Chosen(imputed, results, single)
    return _Chosen(imputed, results, stack, (single.structure, single.alpha))


def _fit_folds(
    some: MissingEntries | MissingOutputs,
    structure: Structure,
    alpha: float,
    options: SearchOptions,
    bar: Progress,
) -> _Visit:
    """Fit a model to the observed entries of every fold."""
    problems, penalty = some.start, scaled_alpha(alpha, some.start.x_unit)
    bar.expect(problems.n_folds)

    def run(fold: int) -> tuple[float, Any]:
        found = some.fit(fold, structure, penalty)
        bar.tick()
        return found

    done = over_folds(problems.n_folds, run, n_parallel(problems, options.n_jobs))
    errors, imputed = zip(*done, strict=True)
    return _Visit(np.array(errors), imputed)


# A penalty, in the units of the user's data, and a rank.
_Model = tuple[float, tuple[int, ...]]


def _grow(
    start: Problems, alphas: np.ndarray, grid: RankGrid, options: SearchOptions, bar: Progress
) -> dict[_Model, _Visit]:
    """Complete outputs that are never observed by models whose ranks grow from one.

    Each model completes the outputs. The next model is the best one on the surface of the completed
    outputs whose ranks are at most slightly larger. Unlike zeros, imputed values of a model of low
    rank do not raise the ranks of the outputs.

    Parameters
    ----------
    start : Problems
        Problems that mark outputs that are never observed.
    alphas : array of shape (n_alphas,)
        Penalties to choose from.
    grid : RankGrid
    options : SearchOptions
    bar : Progress
    """
    some = MissingOutputs(start)
    imputed, caps, found = start, (1,) * len(grid.caps), dict[_Model, _Visit]()
    for _ in range(_GROWTHS):
        surface = compute_surface(imputed, alphas, RankGrid(caps), options, bar, 0.0)
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
    p = len(surface.grid.caps) - 1
    steps = [(1, *(0,) * p), *((0, *step) for step in product((0, 1), repeat=p) if any(step))]
    head, ranks = index[: -p - 1], index[-p - 1 :]
    lower = [(*head, *(R - less for R, less in zip(ranks, step, strict=True))) for step in steps]
    return [
        other
        for other in lower
        if min(other) >= 0 and np.isfinite(surface.errors[0, other[0]][(0, *other[1:])])
    ]


def _places(grown: dict[_Model, _Visit], surface: Surface) -> dict[Index, _Visit]:
    """Return the models by their positions in a surface."""
    found = dict[Index, _Visit]()
    for (alpha, rank), visit in grown.items():
        where = np.flatnonzero(surface.alphas == alpha)
        ranks = tuple(min(R, cap) - 1 for R, cap in zip(rank, surface.grid.caps, strict=True))
        if where.size:
            found[(int(where[0]), *ranks)] = visit
    return found


def _exact_error(
    some: MissingEntries | MissingOutputs,
    problems: Problems,
    imputed: Sequence[Any],
    choice: Choice,
) -> float:
    """Return the cross-fitted error of a mixture over observed entries."""
    errors = []
    for fold in range(problems.n_folds):
        _, alpha, structure, _ = choice.of_fold(fold)
        assert isinstance(structure, Mixture)
        alpha = scaled_alpha(alpha, problems.x_unit)
        problem = problems.at(fold, choice.candidate, 0.0).problem.spectral.at(alpha)
        found = structure.in_units(problems.x_unit).approximate(problem, problems.shape[0])
        errors.append(some.error(fold, imputed[fold], found, alpha))
    return float(np.mean(errors))
