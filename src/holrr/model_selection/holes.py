"""Cross-validation of outputs with missing entries: held-out errors over what is observed.

The fits of all ranks keep leading blocks of one core only where the outputs are complete. So the
surface is that of filled outputs, and it is found in rounds. At first the holes are filled with
means; then the model that is best on the surface is fitted to every fold around its holes, fills
them with its predictions, and the next surface is that of these outputs. A fold's fit around its
holes comes with its exact held-out error. When a choice recurs, or after a few rounds, the model of
the least exact error among those fitted is taken.

Ridge regression needs none of this: its errors are exact for every penalty.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import clone

from ..base import lift
from ..core.approximate import Approximation
from ..core.holes import Observed, SampleBasis
from ..core.missing import Completion, complete_ridge
from ..core.spectral import Spectral, Whitened
from ..core.tucker import Tucker
from ..data.samples import Samples
from ..linear.holes import observe
from .folds import Folds
from .held_out import HeldOut
from .linear_folds import input_energy
from .splits import Split
from .stack import Stack
from .sweep import Errors, Sweep

__all__ = ["HoleFolds", "ObservedHeldOut", "Visit", "settle", "unweighted_error"]

Index = tuple[int, ...]

# How many models are fitted to every fold at most.
_ROUNDS = 4


@dataclass(frozen=True, eq=False)
class ObservedHeldOut(HeldOut):
    """Held-out data whose missing entries are filled, and do not count in means.

    Parameters
    ----------
    C, B, yy, weight
        As in `HeldOut`, of filled outputs.
    n_observed : float
        Sum of the weights of the observed entries.
    fold : int
    """

    n_observed: float
    fold: int

    @property
    def size(self) -> float:
        return self.n_observed


@dataclass(frozen=True, eq=False)
class _Fill:
    """What the training problem of a fold is once its holes are filled, and what fills them."""

    problem: Spectral  # of filled outputs, with a mean of zero for those never observed
    never: np.ndarray  # which those are, of shape (d1, ..., dp)
    predict: Callable[[np.ndarray], np.ndarray]  # zero on average where nothing is known


@dataclass(frozen=True, eq=False)
class Visit:
    """One model, fitted to every fold around its holes."""

    model: Any
    errors: np.ndarray  # (n_folds,): exact, over observed entries
    fills: list[_Fill]  # one for each fold


class HoleFolds(Folds):
    """Folds of samples in memory, of which outputs are missing.

    The data are in the numbering of the splits; samples without any observed entry are left out
    here.
    """

    keeps = False
    home = None  # of arrays of NumPy, whatever the data are

    def __init__(self, data: Samples, splits: list[Split], *, fit_intercept: bool = True):
        self._split(data, splits, data.n_features)
        self.fit_intercept = fit_intercept
        self.fills: list[_Fill] = []
        self.visited: dict[Index, Visit] = {}
        self.choice: Index | None = None

    def prepare(self, *candidate: int) -> None:
        self.fills = self.fills or [self._mean_fill(fold) for fold in range(self.n_folds)]

    def problem(self, fold: int, *candidate: int) -> tuple[Spectral, ObservedHeldOut]:
        fill, test = self.fills[fold], self.data.rows(self.splits[fold][1])
        Xc, seen, w = self._held_out(test, fill)
        Y = np.where(seen, test.Y, fill.predict(Xc))
        held = HeldOut.from_features(Xc @ fill.problem.basis, Y, fill.problem.mean_y, test.w)
        size = float(w @ seen.reshape(len(seen), -1).sum(axis=1))
        if not size > 0:
            raise ValueError(
                f"the test side of split {fold} of cv has no observed entry of y, or none of an "
                f"output that its training side has; use fewer folds, or shuffle them."
            )
        return fill.problem, ObservedHeldOut(held.C, held.B, held.yy, held.weight, size, fold)

    def full_problem(self, *candidate: int) -> tuple[Spectral, float]:
        raise ValueError(
            "information criteria need complete outputs, and entries of y are missing; use "
            "criterion='cv'."
        )

    def energy(self) -> tuple[float, int]:
        """As in `MomentFolds`."""
        return input_energy(self.data, self.fit_intercept)

    # ------------------------------------------------------------ fits around holes

    def fitted(
        self, model: Any, mask: np.ndarray | None, fold: int, alpha: float, *candidate: int
    ) -> tuple[Whitened, Approximation]:
        if self.choice is None:  # ridge regression
            found = model._complete(self.observed(fold), alpha, self.n_inputs)
            model._set_fit(found.problem, found.found)
            return found.problem, found.found
        both = super().fitted(model, mask, fold, alpha, *candidate)
        model.intercept_ = np.where(self.fills[fold].never, np.nan, model.intercept_)
        return both

    def observed(self, fold: int) -> Observed:
        """The observed outputs that a fold trains with."""
        try:
            train, _ = observe(self.data.rows(self.splits[fold][0]))
        except ValueError as error:
            raise ValueError(f"the training side of split {fold} of cv: {error}") from error
        basis = SampleBasis.from_arrays(train.X, train.w, 0.0, fit_intercept=self.fit_intercept)
        return Observed(basis, train.Y)

    def visit(self, model: Any, n_jobs: int | None, tick: Callable[[], object]) -> Visit:
        """Fit a model to all folds."""
        alpha = self.units.alpha(float(model.alpha))

        def fit(fold: int) -> tuple[float, _Fill]:
            found = model._complete(self.observed(fold), alpha, self.n_inputs)
            fill = _fill(found.filled(), _predictor(found.problem, found.found.tucker))
            tick()
            return self.error(fold, fill), fill

        n_threads = min(effective_n_jobs(n_jobs), self.n_folds)
        work = (delayed(fit)(fold) for fold in range(self.n_folds))
        errors, fills = zip(*Parallel(n_jobs=n_threads, require="sharedmem")(work), strict=True)
        return Visit(model, np.array(errors), list(fills))

    def error(self, fold: int, fill: _Fill) -> float:
        """Exact held-out error, over the observed entries, of what fills."""
        test = self.data.rows(self.splits[fold][1])
        Xc, seen, w = self._held_out(test, fill)
        return _mean_over(seen, np.square(test.Y - fill.predict(Xc)), w)

    def ridge_errors(self, alphas: np.ndarray) -> Errors:
        """The exact errors of ridge regression, for all penalties."""

        def errors(
            problem: Spectral, held: HeldOut, out: np.ndarray, tick: Callable[[], object]
        ) -> None:
            assert isinstance(held, ObservedHeldOut)
            observed = self.observed(held.fold)
            for a, alpha in enumerate(alphas):
                out[a] = self.error(held.fold, _of_completion(complete_ridge(observed, alpha)))
                tick()

        return errors

    def judge(self, stack: Stack, model: Any) -> Stack | None:
        """The stack with its exact error; None where a single model has no larger one.

        The stack is fitted to outputs that the best single model has filled.
        """
        assert self.choice is not None
        alpha, errors = self.units.alpha(float(model.alpha)), []
        for fold, fill in enumerate(self.fills):
            problem = fill.problem.at(alpha)
            found = model._approximate(problem, self.n_inputs, True).masked(stack.mask)
            mixed = replace(fill, predict=_predictor(problem, found.tucker))
            errors.append(self.error(fold, mixed))
        shift = float(np.mean(errors)) - stack.mse
        if not stack.cross_fitted_mse + shift < self.visited[self.choice].errors.mean():
            return None
        return replace(
            stack,
            mse=stack.mse + shift,
            cross_fitted_mse=stack.cross_fitted_mse + shift,
            path_mse=stack.path_mse + shift,
            path_cross_fitted_mse=stack.path_cross_fitted_mse + shift,
        )

    # ------------------------------------------------------------ helpers

    def _mean_fill(self, fold: int) -> _Fill:
        problem = self.observed(fold).spectral()
        mean = np.nan_to_num(problem.mean_y, nan=0.0)
        return _fill(problem, lambda Xc: np.broadcast_to(mean, (len(Xc), *mean.shape)))

    def _held_out(self, test: Samples, fill: _Fill) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Centred inputs, which outputs count, and weights."""
        w = np.ones(test.n_samples) if test.w is None else test.w
        Xc = test.X.astype(np.float64, copy=False) - fill.problem.mean_x
        return Xc, ~(np.isnan(test.Y) | fill.never), w


def _fill(problem: Spectral, predict: Callable[[np.ndarray], np.ndarray]) -> _Fill:
    never = np.isnan(problem.mean_y)
    return _Fill(replace(problem, mean_y=np.where(never, 0.0, problem.mean_y)), never, predict)


def _of_completion(found: Completion) -> _Fill:
    problem = found.problem
    never = np.isnan(problem.mean_y)
    return _Fill(problem, never, _predictor(problem, found.found.tucker))  # type: ignore[arg-type]


def _predictor(problem: Whitened, V: Tucker) -> Callable[[np.ndarray], np.ndarray]:
    """From centred inputs to outputs."""
    coef, mean = lift(V, problem), np.nan_to_num(problem.mean_y, nan=0.0)
    return lambda Xc: coef.map_input(Xc) + mean


def _mean_over(seen: np.ndarray, A: np.ndarray, w: np.ndarray) -> float:
    """Weighted mean of the entries of `A`, of shape (n_samples, d1, ..., dp), that are seen."""
    total, count = (B.reshape(len(B), -1).sum(axis=1) for B in (np.where(seen, A, 0.0), seen))
    return float(w @ total / (w @ count))


# ---------------------------------------------------------------- the rounds


def settle(
    folds: HoleFolds,
    found: Sweep,
    choose: Callable[[Sweep], Index],
    visit: Callable[[Index], Visit],
    sweep: Callable[[], Sweep],
    *,
    exact: bool,
) -> Sweep:
    """Fill, choose and fill again; the surface of the last fill, exact at what was chosen.

    Parameters
    ----------
    folds : HoleFolds
        It keeps the models that were fitted, and the choice.
    found : Sweep
        The surface of outputs that are filled with means.
    choose, visit, sweep : callables
        From a surface to the choice, from a choice to its fits, and the surface of the fill that
        is in force.
    exact : bool
        Whether the fitted model of the least exact error is taken, rather than the last.
    """
    visited, null_mse, last = folds.visited, found.null_mse, choose(found)
    choice: Index | None = None
    while last not in visited and len(visited) < _ROUNDS:
        visited[last] = visit(last)
        folds.fills, choice = visited[last].fills, last
        found = sweep()
        last = choose(found)
    choice = last if last in visited else choice
    assert choice is not None
    if exact:
        choice = min(visited, key=lambda index: float(visited[index].errors.mean()))
    if folds.fills is not visited[choice].fills:
        folds.fills = visited[choice].fills
        found = sweep()
    folds.choice = choice
    place: tuple[Any, ...] = (slice(None), *choice)
    found.fold_mse[place] = visited[choice].errors
    # The error of ridge regression is not that of outputs which another model has filled.
    return Sweep(found.fold_mse, null_mse, found.n_supported)


# ---------------------------------------------------------------- weights of outputs


def unweighted_error(folds: Any, model: Any, weights: Any, options: dict[str, Any]) -> float:
    """Held-out error of a model with all outputs alike, from folds of outputs that are weighted.

    `options` are those of the model's `_fit_data`.
    """
    v, errors = reduce(np.multiply.outer, weights, np.ones(())), []
    for train, test in folds.splits:
        fitted = clone(model)._fit_data(folds.data.rows(train), **options)
        held, units = folds.data.rows(test), folds.units
        predicted = fitted._predict_array(held.X * units.x) / units.y
        seen = (v > 0) & ~(np.isnan(held.Y) | np.isnan(predicted))
        squares = np.square(held.Y - predicted) / np.where(v > 0, v, 1.0)
        w = np.ones(len(seen)) if held.w is None else held.w
        errors.append(_mean_over(seen, squares, w))
    return float(np.mean(errors))
