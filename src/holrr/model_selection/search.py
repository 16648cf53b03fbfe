"""Steps of a search: error surface, choice or stack, refit, calibration (`run_search`).

Each step is a function that takes records and returns a record. Linear and kernel models differ in
the source of their problems (`sources`) and in the structure of their coefficients
(`SearchOptions`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from numbers import Integral
from operator import ge
from typing import Any

import numpy as np
from joblib import Parallel, cpu_count, delayed, effective_n_jobs

from ..core.approximate import Structure
from ..core.fit import Fit, fit_approximation, fit_by_output, scaled_alpha
from ..core.leverage import prior_ratio
from ..core.mixture import Mixture
from ..core.namespace import (
    Array,
    all_to_numpy,
    device_of,
    namespace_of,
    to_numpy,
)
from ..core.results import Deferred, Results
from ..core.tensor import Tucker
from ..core.threads import few_threads_for, limit_threads, n_threads_for
from ..core.warn import warn
from ..progress import Progress, progress
from ..streaming.budget import search_budget
from .choice import (
    WAYS,
    Chosen,
    Groups,
    choose_mixture,
    crossed_best,
    groups_of,
    output_gains,
)
from .grid import (
    MOST_ADDED,
    WIDENINGS,
    RankGrid,
    parameter_counts,
    refined,
    warn_at_edge,
    wider,
)
from .intervals import Calibration, calibrate, own_noise
from .sources import Problems
from .surface import RankPath, error_surface, prepare_paths

__all__ = ["Choice", "Found", "SearchOptions", "Surface", "best_index", "choose", "cross_validate"]
__all__ += [
    "check_some_finite",
    "coefficient_prior",
    "default_penalties",
    "fold_residuals",
    "in_units",
    "n_parallel",
]
__all__ += [
    "is_mean_square",
    "over_folds",
    "plan_ranks",
    "results_of",
    "run_search",
    "scaled_penalties",
    "select",
]
__all__ += [
    "path_results",
    "search_work",
    "single_choice",
    "split_index",
    "mixed",
    "std_over_folds",
]

Index = tuple[int, ...]

# Estimated number of penalties that a search tries.
_N_PENALTIES = 13

# Relative difference of held-out errors above which limits of ranks give a warning.
_LOST = 0.02

# Searches with more multiply-adds for each penalty than this first try input ranks up to _LEADING.
_LARGE, _LEADING = 1e8, 32

SELECTIONS = ("stack", "min", "1se")


@dataclass(frozen=True, eq=False)
class SearchOptions:
    """Parameters of a search over penalties and ranks.

    Parameters
    ----------
    name : str
        Name of the estimator, for the progress bar.
    grid : callable
        Function from the shape of the coefficients to the `RankGrid`.
    structure : callable
        Function from a rank, with one entry for each mode that is reduced, to its structure.
    alphas : array of shape (n_alphas,), or None
        Penalties in the units of the user's data; None scales them to the data.
    selection, n_jobs, verbose, fit_intercept
        Parameters of `HOLRRCV`. The selection is resolved: it is "stack" only if ranks can be
        mixed.
    named_candidates : bool
        Whether results have an axis for the candidates (kernels, designs of the inputs).
    by_output : bool
        Whether ridge regression chooses a penalty for each output.
    ways : tuple of str
        Names of the ways of choosing that selection="stack" compares, see `choice.WAYS`.
    groups : array of shape (n_samples,) or None
        Groups of the samples.
    """

    name: str
    grid: Callable[[Sequence[int]], RankGrid]
    structure: Callable[[Index], Structure]
    alphas: np.ndarray | None = None
    selection: Any = "stack"
    n_jobs: int | None = None
    verbose: Any = False
    fit_intercept: bool = True
    named_candidates: bool = False
    by_output: bool = False
    ways: Sequence[str] = field(default_factory=lambda: tuple(WAYS))
    groups: Any = None

    @property
    def stacks(self) -> bool:
        """Whether the search chooses a stack."""
        return isinstance(self.selection, str) and self.selection == "stack"


@dataclass(frozen=True, eq=False)
class Found:
    """Result of a search.

    Parameters
    ----------
    choice : Choice
        Chosen model.
    results : dict
        Entries of `cv_results_`. Means of squares are in the units of the scaled data.
    fit : Fit
        Fit of the choice to all data, in the units of the user's data.
    calibration : Calibration or None
        Calibration of prediction intervals.
    n_dropped : int
        Number of samples without any observed output.
    pilot : pair of Structure and float, or None
        Structure and penalty of the model that imputes missing entries for a mixture.
    candidates : tuple
        Designs of the inputs, or kernels, that the choice refers to; empty if there is only one.
    """

    choice: Choice
    results: Results
    fit: Fit
    calibration: Calibration | None
    n_dropped: int = 0
    pilot: tuple[Structure, float] | None = None
    candidates: tuple[Any, ...] = ()


def run_search(
    problems: Problems, options: SearchOptions, fit_options: Callable[[Choice], Any]
) -> Found:
    """Choose a model by cross-validation, and fit it to all data.

    Parameters
    ----------
    problems : Problems
        Problems of all folds.
    options : SearchOptions
        Parameters of the search.
    fit_options : callable
        Function from a choice to the options of its fit.
    """
    with few_threads_for(_N_PENALTIES * search_work(problems)):
        surface = cross_validate(problems, options)
        results = results_of(surface, problems.shape, options)
        choice = choose(problems, surface, results, options)
        fit = problems.refit(choice.candidate, fit_options(choice))
        lowest = float(results["alphas"].min())
        prior = coefficient_prior(problems, choice, lowest, options)
        residuals = fold_residuals(problems, choice, lowest, options, prior)
        fit = fit.with_prior(prior)
        own = own_noise(fit) / problems.y_unit
        calibration = calibrate(residuals, problems.shape[1:], own, problems.splits, options.groups)
        candidates = tuple(problems.candidates)
        return Found(choice, results, fit, calibration, candidates=candidates)


def search_work(problems: Problems) -> float:
    """Return the estimated number of multiply-adds of one penalty."""
    r, outputs = problems.max_input_rank, problems.shape[1:]
    n = problems.n_folds * problems.n_candidates
    return n * 2 * r * math.prod(outputs) * (r + sum(outputs))


@dataclass(frozen=True, eq=False)
class Surface:
    """Held-out mean squared errors of all folds, candidates, penalties and ranks.

    Parameters
    ----------
    errors : dict
        Errors of all folds and ranks, of shape (n_folds, R0, ...), for pairs of candidate and index
        of the penalty: in the units of the scaled data, on the device of the data.
    alphas : array of shape (n_alphas,)
        Penalties in the units of the user's data.
    grid : RankGrid
        Candidate ranks.
    null_mse : float
        Error of predicting the training mean, or of predicting zero without an intercept.
    n_supported : int
        Largest number of input directions that a training fold supports.
    fold_ridge : array of shape (n_folds, n_candidates, n_alphas)
        Errors of ridge regression, at all penalties.
    """

    errors: dict[Index, Array]
    alphas: np.ndarray
    grid: RankGrid
    null_mse: float
    n_supported: int
    fold_ridge: np.ndarray

    @classmethod
    def of_ridge(cls, fold_ridge: np.ndarray, alphas: np.ndarray, null_mse: float) -> Surface:
        """Return the surface of ridge regression alone."""
        errors = {place: fold_ridge[:, *place] for place in np.ndindex(fold_ridge.shape[1:])}
        return cls(errors, alphas, RankGrid(()), null_mse, 1, fold_ridge)

    def places(self) -> list[Index]:
        """Return all pairs of candidate and index of the penalty."""
        return sorted(self.errors)

    def errors_at(self, candidate: int, place: int) -> Array:
        """Return the errors of all folds and ranks at one penalty, of shape (n_folds, R0, ...)."""
        return self.errors[candidate, place]

    @cached_property
    def means(self) -> dict[Index, Array]:
        """Means over the folds, of shape (R0, ...)."""
        return {at: namespace_of(A).mean(A, axis=0) for at, A in sorted(self.errors.items())}

    @cached_property
    def least(self) -> np.ndarray:
        """Least mean error of each candidate and penalty."""
        values = all_to_numpy([_least_of(mean) for mean in self.means.values()])
        return np.reshape(values, self.fold_ridge.shape[1:])

    def at(self, candidate: int, place: int) -> np.ndarray:
        """Return the mean over the folds at one penalty, of shape (R0, ...)."""
        return to_numpy(self.means[candidate, place])

    def entries(self, axis: Any) -> dict[str, Any]:
        """Return the errors as entries of `cv_results_`.

        Parameters
        ----------
        axis : slice or int
            Candidates: a slice of all candidates, or the index of the only one.
        """

        def std() -> np.ndarray:
            found = {at: std_over_folds(self.errors[at], mean) for at, mean in self.means.items()}
            return self._dense(found)[axis]

        def folds() -> np.ndarray:
            return np.moveaxis(self._dense(self.errors), 2, 0)[:, axis]

        mean = Deferred(lambda: self._dense(self.means)[axis])
        return {"mean_mse": mean, "std_mse": Deferred(std), "fold_mse": Deferred(folds)}

    def _dense(self, values: dict[Index, Array]) -> np.ndarray:
        """Return values of all places as an array of shape (n_candidates, n_alphas, ...)."""
        found = np.empty((*self.fold_ridge.shape[1:], *next(iter(values.values())).shape))
        for place, value in values.items():
            found[place] = to_numpy(value)
        return found

    def select(
        self, results: dict[str, Any], options: SearchOptions, n_folds: int
    ) -> tuple[Index, float]:
        """Return the index of the chosen model in `cv_results_`, and its error."""
        if options.selection in ("stack", "min"):
            index = self.best(results["n_parameters"])
            error = float(self.means[index[:2]][index[2:]])
            return (index if options.named_candidates else index[1:]), error
        index = select(results, options.selection, n_folds)
        return index, float(results["mean_mse"][index])

    def best(self, n_parameters: np.ndarray) -> Index:
        """Return the `best_index` (candidate, penalty, rank)."""
        check_some_finite(self.least)
        bound = tie_bound(float(self.least.min()), self.null_mse)
        tied = []
        for place in np.argwhere(self.least <= bound).tolist():
            mean = self.means[tuple(place)]
            where = namespace_of(mean).nonzero(mean <= bound) if mean.ndim else ()
            ranks = np.stack(all_to_numpy(list(where)), axis=1) if where else [()]
            tied += [(*place, *map(int, rank)) for rank in ranks]
        return min(tied, key=lambda index: n_parameters[index[2:]])

    def joined(self, other: Surface, order: np.ndarray) -> Surface:
        """Return the surface with the errors of more penalties.

        Parameters
        ----------
        other : Surface
            Errors of the other penalties.
        order : array of int
            Order of all penalties; indices of the other penalties follow those of this surface.
        """
        new, n, errors = np.argsort(order), self.alphas.size, dict[Index, Array]()
        for start, part in ((0, self), (n, other)):
            for (candidate, place), A in part.errors.items():
                errors[candidate, int(new[start + place])] = A
        return replace(
            self,
            errors=errors,
            alphas=np.concatenate([self.alphas, other.alphas])[order],
            n_supported=max(self.n_supported, other.n_supported),
            fold_ridge=np.concatenate([self.fold_ridge, other.fold_ridge], axis=2)[:, :, order],
        )

    def profile(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the least error at each penalty, and the fold errors of the best model."""
        place = tuple(map(int, np.unravel_index(np.argmin(self.least), self.least.shape)))
        mean = self.at(*place)
        rank = np.unravel_index(int(np.nanargmin(mean)), mean.shape) if mean.ndim else ()
        return self.least.min(axis=0), to_numpy(self.errors[place][(slice(None), *rank)])

    def supported(self) -> Surface:
        """Return the surface of the ranks that the data support."""
        grid = self.grid.within_input_rank(self.n_supported)
        if grid.caps == self.grid.caps:
            return self
        kept = {place: A[:, : grid.caps[0], ...] for place, A in self.errors.items()}
        return replace(self, errors=kept, grid=grid)


def _least_of(mean: Array) -> Array:
    """Return the smallest entry, ignoring NaN."""
    xp = namespace_of(mean)
    return xp.min(xp.where(xp.isnan(mean), xp.full_like(mean, math.inf), mean))


# ---------------------------------------------------------------- the error surface


def cross_validate(problems: Problems, options: SearchOptions) -> Surface:
    """Compute the held-out errors of all candidates, penalties and ranks.

    A default grid of penalties is widened while the error decreases towards one of its ends, and
    refined around the best penalty. Large searches leave out large input ranks unless the best rank
    is among the largest of the others. The errors of ridge regression, which has full rank, are
    always computed.

    Parameters
    ----------
    problems : Problems
        Problems of all folds.
    options : SearchOptions
        Parameters of the search.
    """
    given = options.alphas
    alphas = default_penalties(problems) if given is None else given
    grid = plan_ranks(problems, options, alphas.size)
    lowest = float(scaled_penalties(alphas, problems).min())
    with progress(options.name, options.verbose) as bar:

        def surface_of(grid: RankGrid) -> Surface:
            compute = partial(
                compute_surface, problems, grid=grid, options=options, bar=bar, min_alpha=lowest
            )
            found = compute(alphas) if given is not None else refined(compute, alphas)[0]
            return found.supported()

        # Other rules of selection need the errors of all ranks.
        is_large = search_work(problems) > _LARGE and options.selection in ("stack", "min")
        surface = surface_of(grid.within_input_rank(_LEADING) if is_large else grid)
        if surface.grid.caps != grid.within_input_rank(surface.n_supported).caps:
            best = surface.best(parameter_counts(problems.shape, surface.grid.caps))
            if 4 * (best[2] + 1) > 3 * _LEADING:  # the best rank can be a larger one
                surface = surface_of(grid)
    warn_at_edge(surface, surface.alphas, "alphas")
    return surface


def compute_surface(
    problems: Problems,
    alphas: np.ndarray,
    grid: RankGrid,
    options: SearchOptions,
    bar: Progress,
    min_alpha: float = math.inf,
) -> Surface:
    """Compute the errors of all folds, candidates and ranks for some penalties.

    Parameters
    ----------
    problems : Problems
        Problems of all folds.
    alphas : array of shape (n_alphas,)
        Penalties in the units of the user's data.
    grid : RankGrid
        Candidate ranks.
    options : SearchOptions
        Parameters of the search.
    bar : Progress
        Progress bar.
    min_alpha : float
        Smallest penalty of all calls, in the units of the scaled data.
    """
    n_folds, caps = problems.n_folds, grid.caps
    scaled = scaled_penalties(alphas, problems)
    min_alpha = min(min_alpha, float(scaled.min()))
    bar.expect(n_folds * problems.n_candidates * alphas.size)
    nulls: list[float] = []
    supported, ridge, errors = 1, [], dict[Index, Array]()

    def run(fold: int) -> tuple[float, int, np.ndarray]:
        path = problems.path(fold, candidate, min_alpha, caps)
        held_out = path.held_out
        error_surface(path, held_out, scaled, caps, out=block[fold, ...], tick=bar.tick)
        errors = path.ridge_errors(scaled) / held_out.size
        return held_out.yy / held_out.size, path.s.shape[0], errors

    for candidate in range(problems.n_candidates):
        problems.open(candidate)
        block: Array = np.empty((n_folds, alphas.size, *caps))
        if problems.device is not None:
            xp, where = namespace_of(problems.device), device_of(problems.device)
            block = xp.empty(block.shape, dtype=xp.float64, device=where)
            if problems.keeps_all:
                # Computing the bases of all folds together uses all cores and needs one transfer.
                paths = [problems.path(fold, candidate, min_alpha, caps) for fold in range(n_folds)]
                prepare_paths(paths, list(map(float, scaled)))
        done = over_folds(n_folds, run, n_parallel(problems, options.n_jobs))
        errors |= {(candidate, a): block[:, a, ...] for a in range(alphas.size)}
        null, directions, of_ridge = zip(*done, strict=True)
        # Other candidates may have own inputs, whose part is subtracted from their outputs.
        nulls = nulls or list(null)
        supported = max(supported, *directions)
        ridge.append(np.stack(of_ridge))
    return Surface(errors, alphas, grid, float(np.mean(nulls)), supported, np.stack(ridge, axis=1))


def default_penalties(problems: Problems) -> np.ndarray:
    """Return penalties scaled to the data, in the units of the user's data and finite."""
    alphas, unit = problems.default_alphas(), problems.x_unit
    if unit == 1.0:
        return alphas
    with np.errstate(over="ignore", divide="ignore"):
        found = np.minimum(alphas * unit * unit, np.finfo(float).max)
    found = np.where(found < np.finfo(float).tiny, 0.0, found)
    return found[np.sort(np.unique(found, return_index=True)[1])]


def scaled_penalties(alphas: np.ndarray, problems: Problems) -> np.ndarray:
    """Convert penalties to the units of the scaled data."""
    return np.array([scaled_alpha(a, problems.x_unit) for a in alphas])


def plan_ranks(problems: Problems, options: SearchOptions, n_alphas: int) -> RankGrid:
    """Return the grid of ranks that fits into memory with all penalties that may be tried."""
    if options.alphas is None:
        n_alphas += MOST_ADDED
    # Number of arrays of the size of a surface in the results of each penalty.
    kept = problems.n_candidates * (problems.n_folds + 2)
    grid = options.grid(problems.shape).within_input_rank(problems.max_input_rank)
    return grid.within_budget(n_alphas * kept, search_budget())


def over_folds(folds: int | Sequence[int], run: Callable[[int], Any], n_jobs: int) -> list[Any]:
    """Call `run` for some folds; `n_jobs` folds run in parallel and share the threads.

    Parameters
    ----------
    folds : int or sequence of int
        Number of folds, or the folds.
    run : callable
        Function of a fold.
    n_jobs : int
        Number of folds that run in parallel.
    """
    folds = range(folds) if isinstance(folds, int) else folds
    if n_jobs == 1:
        return [run(fold) for fold in folds]
    with limit_threads(cpu_count() // n_jobs):
        return Parallel(n_jobs=n_jobs, require="sharedmem")(delayed(run)(fold) for fold in folds)


def n_parallel(problems: Problems, n_jobs: int | None) -> int:
    """Return the number of folds to run in parallel; by default, it depends on their size."""
    if n_jobs is not None or effective_n_jobs(None) > 1 or problems.device is not None:
        n = effective_n_jobs(n_jobs)
    else:
        n = n_threads_for(search_work(problems))
    return max(1, min(n, problems.n_folds))


# ---------------------------------------------------------------- results


def results_of(surface: Any, shape: Sequence[int], options: SearchOptions) -> Results:
    """Return the entries of `cv_results_`, with errors in the units of the scaled data."""
    results = Results(surface.entries(slice(None) if options.named_candidates else 0))
    results.update(null_mse=surface.null_mse, alphas=surface.alphas)
    results["n_parameters"] = parameter_counts(shape, surface.grid.caps)
    return results


def path_results(results: dict[str, Any]) -> dict[str, Any]:
    """Return the results that a file contains: errors along a path of ranks, not of all ranks.

    The path leads from the smallest to the best model. Each model on it has a smaller error, at its
    best penalty and candidate, than all models with fewer parameters. Searches over one rank also
    keep the errors of all ranks, without those of each fold.
    """
    count = np.asarray(results.get("n_parameters", 0))
    if count.ndim == 0:
        return dict(results.items())
    found = {}
    for name in results:
        value = dict.__getitem__(results, name)  # does not compute deferred values
        shape = value.shape if isinstance(value, np.ndarray) else ()
        is_surface = isinstance(value, Deferred) or shape[-count.ndim :] == count.shape
        if not is_surface or (count.ndim == 1 and name not in ("fold_mse", "std_mse")):
            found[name] = results[name]
    if "mean_mse" not in results:
        return found
    least = np.fmin.reduce(np.reshape(results["mean_mse"], (-1, count.size)), axis=0)
    order = np.lexsort((least, count.ravel()))
    order = order[~np.isnan(least[order])]
    before = np.minimum.accumulate(np.concatenate([[np.inf], least[order]]))[:-1]
    path = order[least[order] < before]
    found["path_rank"] = np.column_stack(np.unravel_index(path, count.shape)) + 1
    found["path_n_parameters"] = count.ravel()[path]
    found["path_mse"] = least[path]
    return found


def check_some_finite(errors: np.ndarray) -> None:
    """Raise an error if no candidate has a finite held-out error."""
    if not np.isfinite(np.nanmin(errors)):
        raise ValueError(
            "No candidate has a finite mean_mse: the squares of the outputs overflow. Scale y."
        )


def std_over_folds(fold_mse: Array, mean: Array) -> np.ndarray:
    """Return the standard deviation over the folds, without a copy of all folds.

    Parameters
    ----------
    fold_mse : array of shape (n_folds, R0, ...)
    mean : array of shape (R0, ...)
    """
    xp, std = namespace_of(mean), 0 * mean
    peak = float(np.fmax.reduce(to_numpy(mean), axis=None, initial=0.0))
    # Unit in which no square overflows or underflows.
    unit = peak if 0 < peak < math.inf and not 1e-120 < peak < 1e120 else 1.0
    for fold in range(fold_mse.shape[0]):
        with np.errstate(invalid="ignore"):  # infinity minus infinity
            if unit == 1.0:
                away = fold_mse[fold, ...] - mean
            else:
                away = fold_mse[fold, ...] / unit - mean / unit
        std = std + away * away
    return to_numpy(unit * xp.sqrt(std / fold_mse.shape[0]))


def in_units(results: Results, y_unit: float) -> Results:
    """Convert results to the units of the user's data."""
    if y_unit == 1.0:
        return results
    squares = [name for name in results if is_mean_square(name)]
    with np.errstate(over="ignore", under="ignore"):
        return results.scaled(squares, y_unit).scaled(squares, y_unit)


def is_mean_square(name: str) -> bool:
    """Return whether a result is a mean of squares of the outputs."""
    return name.endswith("_mse")


# ---------------------------------------------------------------- the choice


@dataclass(frozen=True, eq=False)
class Choice:
    """Chosen model.

    Parameters
    ----------
    index : tuple of int
        Index of the best single model in the error surface of `cv_results_`.
    candidate : int
        Index of the candidate (kernel or design of the inputs).
    alpha : float, or array of shape (d1, ..., dp)
        Penalty of the final model, in the units of the user's data.
    structure : Structure
        Structure of the final model.
    error : float
        Cross-fitted error of the choice, in the units of the scaled data.
    single_error : float
        Held-out error of the best single model.
    mixture : Chosen or None
        The mixture and the errors of the ways of choosing, if there is one.
    of_folds : tuple of (candidate, penalty, structure, decomposition)
        Model of each fold, which was chosen without it; empty if the final model was chosen before.
    """

    index: Index
    candidate: int
    alpha: Any
    structure: Structure
    error: float
    single_error: float
    mixture: Chosen | None = None
    of_folds: tuple[tuple[int, Any, Structure, Tucker | None], ...] = ()

    def of_fold(self, fold: int) -> tuple[int, Any, Structure, Tucker | None]:
        """Return candidate, penalty and structure of the fit to a fold, and its decomposition."""
        if self.of_folds:
            return self.of_folds[fold]
        return self.candidate, self.alpha, self.structure, None


def choose(
    problems: Problems, surface: Any, results: dict[str, Any], options: SearchOptions
) -> Choice:
    """Choose a model according to the selection, and add cross-fitted errors to the results.

    Parameters
    ----------
    problems : Problems
        Problems of all folds.
    surface : Surface
        Error surface.
    results : dict
        Results from `results_of`.
    options : SearchOptions
        Parameters of the search.
    """
    index, error = surface.select(results, options, problems.n_folds)
    single = single_choice(index, results, options, error)
    groups = groups_of(problems.shared)
    results["ridge_mse"] = crossed_ridge(surface.fold_ridge, groups)
    if options.by_output:
        return of_outputs(problems, surface, single, groups, options)
    if options.stacks and surface.grid.caps:
        return mixed(problems, surface, single, results, options)
    crossed = single.error
    if options.selection == "min":
        crossed = crossed_error(surface, groups)
    return or_full_rank(replace(single, error=crossed), surface, problems, options)


def crossed_error(surface: Any, groups: Groups) -> float:
    """Return the error of the best single model that each group of folds leaves to the others."""
    found, sizes = [], []
    for left_out, kept in zip(groups.left_out, groups.kept, strict=True):
        candidate, place, *rank = crossed_best(surface, kept)[1]
        errors = to_numpy(surface.errors_at(candidate, place)[(slice(None), *rank)])
        found.append(errors[left_out].mean())
        sizes.append(len(left_out))
    return float(np.average(found, weights=sizes))


def crossed_ridge(errors: np.ndarray, groups: Groups) -> float:
    """Return the error of ridge regression whose penalty the other folds choose.

    Parameters
    ----------
    errors : array of shape (n_folds, n_candidates, n_alphas)
    groups : Groups
    """
    flat = errors.reshape(len(errors), -1)
    pairs = list(zip(groups.left_out, groups.kept, strict=True))
    found = [flat[out, np.argmin(flat[kept].mean(axis=0))].mean() for out, kept in pairs]
    return float(np.average(found, weights=[len(out) for out, _ in pairs]))


def has_full_rank(problems: Problems, options: SearchOptions) -> bool:
    """Return whether full rank, which is ridge regression, is a candidate of the user's grid."""
    grid = options.grid(problems.shape).within_input_rank(problems.max_input_rank)
    full = full_rank(problems, problems.max_input_rank, len(grid.caps))
    return all(map(ge, grid.caps, full))


def full_rank(problems: Problems, n_inputs: int, n_modes: int) -> Index:
    """Return the full rank of a matrix or of a tensor.

    Parameters
    ----------
    problems : Problems
        Problems of all folds.
    n_inputs : int
        Number of input directions.
    n_modes : int
        Number of modes that are reduced.
    """
    outputs = problems.shape[1:] if n_modes > 1 else (math.prod(problems.shape[1:]),)
    sizes = (n_inputs, *outputs)
    return RankGrid(sizes).within_others(sizes).caps[:n_modes]


def or_full_rank(
    choice: Choice, surface: Surface, problems: Problems, options: SearchOptions
) -> Choice:
    """Choose ridge regression if it is better and only the memory budget excluded full rank.

    The errors of ridge regression do not need an error surface, so that a limit on memory does not
    exclude it from the best single models. A limit of the user does, and gives a warning.

    Parameters
    ----------
    choice : Choice
        Choice among the ranks of the surface.
    surface : Surface
        Error surface.
    problems : Problems
        Problems of all folds.
    options : SearchOptions
        Parameters of the search.
    """
    if not surface.grid.caps:
        return choice
    errors = surface.fold_ridge.mean(axis=0)
    best = np.unravel_index(int(np.argmin(errors)), errors.shape)
    ridge, unit = float(errors[best]), problems.y_unit * problems.y_unit
    if not has_full_rank(problems, options):
        if ridge < (1 - _LOST) * choice.single_error:
            warn(
                f"max_rank limits the ranks to {surface.grid.caps}, with a held-out error of "
                f"{choice.single_error * unit:.4g}. Ridge regression, which has full rank, has "
                f"{ridge * unit:.4g}. Increase max_rank or leave it out, or use selection='auto', "
                f"which compares both."
            )
        return choice
    grid = options.grid(problems.shape).within_input_rank(problems.max_input_rank)
    capped = surface.grid.caps != grid.within_input_rank(surface.n_supported).caps
    if options.selection != "min" or not (capped and ridge < choice.single_error):
        return choice
    structure = options.structure(full_rank(problems, problems.shape[0], len(grid.caps)))
    alpha = float(surface.alphas[best[1]])
    crossed = crossed_ridge(surface.fold_ridge, groups_of(problems.shared))
    return Choice(choice.index, int(best[0]), alpha, structure, crossed, choice.single_error)


def single_choice(
    index: Index, results: dict[str, Any], options: SearchOptions, error: float
) -> Choice:
    """Return the model at an index of the surface, with its error."""
    candidate, a, rank = split_index(index, results, options.named_candidates)
    alpha, structure = float(results["alphas"][a]), options.structure(rank)
    return Choice(index, candidate, alpha, structure, error, error)


def split_index(
    index: Index, results: dict[str, Any], named_candidates: bool
) -> tuple[int, int, Index]:
    """Split an index into the surface into candidate, index of the penalty, and rank."""
    split = len(index) - results["n_parameters"].ndim
    place = index[:split] if named_candidates else (0, *index[:split])
    return place[0], place[1], tuple(i + 1 for i in index[split:])


def mixed(
    problems: Problems,
    surface: Any,
    single: Choice,
    results: dict[str, Any],
    options: SearchOptions,
) -> Choice:
    """Choose a mixture by cross-fitted errors, see `choice`.

    If the user limits the ranks, ridge regression is compared with the ranks, but not mixed with
    them.

    Parameters
    ----------
    problems : Problems
        Problems of all folds.
    surface : Surface
        Error surface.
    single : Choice
        Best single model.
    results : dict
        Results from `results_of`.
    options : SearchOptions
        Parameters of the search.
    """
    alphas = surface.alphas
    scaled, n_jobs = scaled_penalties(alphas, problems), n_parallel(problems, options.n_jobs)
    candidate, place, rank = split_index(single.index, results, options.named_candidates)
    mixes_ridge = has_full_rank(problems, options)
    ways = [way for way in options.ways if mixes_ridge or way != "ranks and penalties of outputs"]

    def path(fold: int, candidate: int) -> RankPath:
        return problems.path(fold, candidate, float(scaled.min()), surface.grid.caps)

    def run_folds(candidate: int, run: Callable[[int], Any]) -> list[Any]:
        problems.open(candidate)
        return over_folds(problems.n_folds, run, n_jobs)

    found = choose_mixture(
        path,
        surface,
        results["n_parameters"],
        (candidate, place, *(R - 1 for R in rank)),
        alphas,
        scaled,
        single.structure,
        groups=groups_of(problems.shared),
        over_folds=run_folds,
        ways=ways,
        mixes_ridge=mixes_ridge,
        keeps_directions=problems.keeps_all,
    )
    results["ways"], results["ways_mse"] = list(found.errors), np.array([*found.errors.values()])
    return replace(
        single,
        candidate=found.candidate,
        alpha=found.model.alpha,
        structure=found.model,
        error=found.error,
        mixture=found,
        of_folds=tuple(
            (one, model.alpha, model, known)
            for (one, model), known in zip(found.of_folds, found.known, strict=True)
        ),
    )


def of_outputs(
    problems: Problems,
    surface: Any,
    single: Choice,
    groups: Groups,
    options: SearchOptions,
) -> Choice:
    """Choose a penalty for each output of ridge regression.

    A default grid is widened while the error of some output decreases towards one of its ends.

    Parameters
    ----------
    problems : Problems
        Problems of all folds.
    surface : Surface
        Errors of ridge regression with a common penalty.
    single : Choice
        Best common penalty.
    groups : Groups
        Groups of folds that are left out.
    options : SearchOptions
        Parameters of the search.
    """
    candidate, alphas = single.candidate, np.sort(surface.alphas)
    n_jobs = n_parallel(problems, options.n_jobs)
    lowest = float(scaled_penalties(alphas, problems).min())
    problems.open(candidate)

    def gains(more: np.ndarray) -> np.ndarray:
        some = scaled_penalties(more, problems)

        def run(fold: int) -> np.ndarray:
            return output_gains(problems.path(fold, candidate, lowest, ()), some)

        return np.stack(over_folds(problems.n_folds, run, n_jobs))

    found = gains(alphas)
    for _ in range(WIDENINGS if options.alphas is None and alphas.size > 1 else 0):
        best = found.mean(axis=0).argmin(axis=0)
        more = [wider(alphas, end) for end in (0, alphas.size - 1) if (best == end).any()]
        new = np.concatenate([*more, np.zeros(0)])
        if not new.size:
            break
        alphas, found = np.r_[alphas, new], np.concatenate([found, gains(new)], axis=1)
        order = np.argsort(alphas)
        alphas, found = alphas[order], found[:, order]
    shape = problems.shape[1:]

    def least(some: np.ndarray) -> np.ndarray:
        return np.argmin(found[some].mean(axis=0), axis=0)

    def penalties(best: np.ndarray) -> Any:
        return alphas[best].reshape(shape) if shape else float(alphas[best[0]])

    # Gains are those on the mean of the outputs, or of what own inputs leave of them.
    nulls = [problems.at(fold, candidate, lowest).held_out for fold in range(problems.n_folds)]
    error = float(np.mean([held.yy / held.size for held in nulls]))
    chosen, models = [least(kept) for kept in groups.kept], []
    for out, best in zip(groups.left_out, chosen, strict=True):
        there = np.take_along_axis(found[out].mean(axis=0), best[None], axis=0)
        error += float(there.mean()) * len(out) / sum(map(len, groups.left_out))
    for fold in range(problems.n_folds):
        group = groups.of_fold(fold)
        best = least(np.arange(problems.n_folds)) if group is None else chosen[group]
        models.append((candidate, penalties(best), single.structure, None))
    alpha = penalties(least(np.arange(problems.n_folds)))
    return replace(single, alpha=alpha, error=float(error), of_folds=tuple(models))


def select(
    results: dict[str, Any],
    selection: str | Callable[..., Any],
    n_folds: int,
) -> Index:
    """Return the index into the surface of the model that `selection` chooses.

    Parameters
    ----------
    results : dict
        Results with at least ``mean_mse``, ``std_mse``, ``n_parameters``, of shape (R0, ..., Rp),
        ``alphas`` and ``null_mse``. Entries of the surface that are NaN are not candidates.
    selection : {"stack", "min", "1se"} or callable
        A callable takes the results and returns an index into the surface: a tuple, or an int into
        the flattened surface. "stack" gives the index of "min", the best single model.
    n_folds : int
        Number of folds.
    """
    surface = results["mean_mse"]
    check_some_finite(surface)
    if callable(selection):
        return _check_index(selection(results), surface)
    if selection == "1se":
        return one_standard_error(results, n_folds)
    return best_index(surface, results["n_parameters"], results.get("null_mse", 0.0))


def best_index(surface: np.ndarray, n_parameters: np.ndarray, scale: float = 0.0) -> Index:
    """Return the index of the smallest entry; the smallest model among equal entries.

    Entries are equal up to rounding. The errors are differences of terms of size `scale`, which
    determines their rounding error.
    """
    tied = surface <= tie_bound(float(np.nanmin(surface)), scale)
    return _first_of(tied, np.broadcast_to(n_parameters, surface.shape))


def tie_bound(least: float, scale: float) -> float:
    """Return the bound up to which errors are equal to the least one, see `best_index`."""
    return least + 1e-12 * abs(least) + 1e-14 * scale


def one_standard_error(results: dict[str, Any], n_folds: int) -> Index:
    """Return the index of the smallest model within one standard error of the best.

    The standard error is that of the mean error of the best model over the folds. Among models of
    equal size, the largest penalty is chosen. A rank above the product of the others has the same
    number of parameters as a smaller rank, which is preferred.
    """
    surface, count = results["mean_mse"], results["n_parameters"]
    best = best_index(surface, count, results.get("null_mse", 0.0))
    if n_folds < 2:
        raise ValueError(f"selection='1se' needs at least two folds; cv has {n_folds}.")
    # std_mse divides by the number of folds; an unbiased variance divides by one less.
    bound = surface[best] + results["std_mse"][best] / np.sqrt(n_folds - 1)
    ranks = np.ogrid[tuple(slice(1, n + 1) for n in count.shape)]
    beyond = sum((R * R > math.prod(ranks) for R in ranks), start=np.zeros(count.shape, bool))
    alphas = np.reshape(results["alphas"], (-1,) + (1,) * count.ndim)
    keys = (np.broadcast_to(key, surface.shape) for key in (count, beyond, -alphas, surface))
    return _first_of(surface <= bound, *keys)


def _first_of(among: np.ndarray, *keys: np.ndarray) -> Index:
    """Return the index of the masked entry with the smallest keys, in lexicographic order."""
    where = np.unravel_index(np.flatnonzero(among), among.shape)
    first = np.lexsort([key[where] for key in reversed(keys)])[0]
    return tuple(int(i[first]) for i in where)


def _check_index(index: Any, surface: np.ndarray) -> Index:
    try:
        flat = isinstance(index, Integral)
        place = np.unravel_index(int(index), surface.shape) if flat else index
        value = surface[tuple(int(i) for i in place)]
        if np.ndim(value):
            raise IndexError("too few entries")
    except (IndexError, TypeError, ValueError) as error:
        raise ValueError(
            f"The selection callable must return an int or a tuple that indexes the error surface "
            f"of shape {surface.shape}; got {index!r}."
        ) from error
    found = tuple(int(i) % n for i, n in zip(place, surface.shape, strict=True))
    if np.isnan(value):
        raise ValueError(
            f"The selection callable returned {found}, which is not a candidate: the error surface "
            f"is NaN at this index. Return the index of a finite entry."
        )
    return found


# ---------------------------------------------------------------- residuals of the choice


def coefficient_prior(
    problems: Problems, choice: Choice, min_alpha: float, options: SearchOptions
) -> float | None:
    """Return the variance of the coefficients divided by the noise variance, or None.

    The ratio (see `core.leverage`) is estimated if the training samples are linearly independent,
    so that other inputs have directions outside their span. Otherwise the result is None, and the
    ratio that the penalty implies is used. The parameters are those of `fold_residuals`.
    """
    lowest, n_inputs = scaled_alpha(min_alpha, problems.x_unit), problems.shape[0]
    if not 1 < problems.n_training <= n_inputs + options.fit_intercept:
        return None
    # One fold has most of the data and is enough if the problems would have to be computed again.
    n_folds = problems.n_folds if problems.keeps_all else 1
    problems.open(choice.candidate)
    found = [problems.at(k, choice.candidate, lowest).problem.spectral for k in range(n_folds)]
    most = max(problem.s.shape[0] for problem in found)
    # Folds can differ in size by one sample, and centring removes one direction.
    slack = options.fit_intercept + (n_folds < problems.n_folds)
    independent = problems.n_training <= most + slack
    return prior_ratio(found) if independent and most < n_inputs else None


def fold_residuals(
    problems: Problems,
    choice: Choice,
    min_alpha: float,
    options: SearchOptions,
    prior: float | None = None,
) -> list[Any]:
    """Return the held-out residuals of the chosen model in every fold.

    Parameters
    ----------
    problems : Problems
        Problems of all folds.
    choice : Choice
        Chosen model.
    min_alpha : float
        Smallest penalty of the search, in the units of the user's data.
    options : SearchOptions
        Parameters of the search.
    prior : float, optional
        Argument of `Fit.with_prior`.
    """
    x_unit, n_inputs = problems.x_unit, problems.shape[0]
    lowest = scaled_alpha(min_alpha, x_unit)
    candidates = [choice.of_fold(fold)[0] for fold in range(problems.n_folds)]

    def run(fold: int) -> Any:
        candidate, alpha, structure, known = choice.of_fold(fold)
        training, alpha = problems.at(fold, candidate, lowest).problem, scaled_alpha(alpha, x_unit)
        if isinstance(alpha, np.ndarray):
            fit = fit_by_output(training.spectral, alpha, options.fit_intercept)
            return problems.residuals(fold, training, fit.with_prior(prior))
        problem = training.spectral.at(alpha)
        if isinstance(structure, Mixture):
            mixture = structure.in_units(x_unit)
            found = mixture.approximate(problem, n_inputs, known=known)
        else:
            found = structure.approximate(problem, n_inputs)
        fit = fit_approximation(problem, found, options.fit_intercept)
        return problems.residuals(fold, training, fit.with_prior(prior))

    found: dict[int, Any] = {}
    for number in dict.fromkeys(candidates):
        problems.open(number)
        folds = [fold for fold, candidate in enumerate(candidates) if candidate == number]
        some = over_folds(folds, run, n_parallel(problems, options.n_jobs))
        found.update(zip(folds, some, strict=True))
    return [found[fold] for fold in range(problems.n_folds)]
