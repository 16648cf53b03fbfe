"""Sources of problems with missing outputs: `IncompleteRows` and `NeverObserved`.

Missing entries are completed in each training set by itself: by means, or by a model that is fitted
to the observed entries (`IncompleteRows.completed`). Outputs that are never observed are marked in
the problems of another source (`NeverObserved`). Held-out errors count observed entries only
(`ObservedHeldOut`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..core.approximate import Approximation, Structure
from ..core.fit import Fit, lift
from ..core.input_map import InputDesign
from ..core.spectral import Spectral, Whitened
from ..core.tensor import Tucker
from ..data.validation import Samples
from ..linear.fit import LinearOptions, fit_data
from ..model_selection.folds import Fold, Split, make_folds, n_training
from ..model_selection.intervals import FoldResiduals, MomentResiduals
from ..model_selection.sources import (
    FoldMoments,
    Problem,
    Rows,
    Source,
    features_of,
    mapped,
    row_alphas,
    sample_residuals,
)
from ..model_selection.surface import HeldOut
from .completion import Completion, complete_ridge, complete_structure
from .fit import drop_unobserved
from .observed import Observed, SampleBasis, has_observation

__all__ = [
    "ImputedProblem",
    "Imputation",
    "IncompleteRows",
    "NeverObserved",
    "ObservedHeldOut",
    "mean_over",
]


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
class Imputation:
    """Predictions that impute the missing outputs of a fold.

    Parameters
    ----------
    mean_x : array of shape (n_features,)
        Centre of the inputs.
    mean : array of shape (d1, ..., dp)
        Predictions at the centre; zero for outputs that were never observed.
    never : array of bool, of shape (d1, ..., dp)
        Outputs that were never observed.
    coef : Tucker or None
        Coefficients of the centred inputs; None predicts the means.
    """

    mean_x: np.ndarray
    mean: np.ndarray
    never: np.ndarray
    coef: Tucker | None = None

    @classmethod
    def of(cls, problem: Spectral | Whitened, coef: Tucker | None = None) -> Imputation:
        """Return the predictions of coefficients about the means of a problem."""
        mean = np.asarray(problem.mean_y)
        return cls(problem.mean_x, np.nan_to_num(mean, nan=0.0), np.isnan(mean), coef)

    @classmethod
    def by(cls, found: Completion) -> Imputation:
        """Return the predictions of a fit to observed entries."""
        return cls.of(found.problem, lift(found.found.tucker, found.problem))

    def predict(self, Xc: np.ndarray) -> np.ndarray:
        """Return the outputs of centred inputs, (n_samples, d1, ..., dp)."""
        if self.coef is None:
            return np.broadcast_to(self.mean, (len(Xc), *self.mean.shape))
        return self.coef.map_input(Xc) + self.mean


@dataclass(frozen=True, eq=False)
class ImputedProblem(Problem):
    """Training problem with imputed outputs, and the predictions that impute them.

    Parameters
    ----------
    spectral, features, is_summed
        As in `Problem`. Outputs that were never observed have a mean of zero.
    imputation : Imputation
        Predictions that impute the missing outputs.
    """

    imputation: Any = None

    @classmethod
    def of(cls, spectral: Spectral, features: Any, imputation: Imputation) -> ImputedProblem:
        """Return the problem of imputed outputs, whose means may be NaN."""
        mean_y = np.where(imputation.never, 0.0, spectral.mean_y)
        return cls(replace(spectral, mean_y=mean_y), features, imputation=imputation)


class IncompleteRows(Source):
    """Samples in memory with missing outputs, which are completed in each training set.

    Parameters
    ----------
    data : Samples
        Scaled samples of NumPy arrays, with NaN for missing outputs.
    splits : list of index pairs
        Training and test indices of each fold.
    fit_intercept : bool
        Whether to fit an intercept.
    output_weight : array of shape (d1, ..., dp), optional
        Weights of the outputs, by whose roots the outputs were multiplied.
    design : InputDesign, optional
        Features to compute from the inputs; None for the inputs themselves.
    """

    data: Samples

    def __init__(
        self,
        data: Samples,
        splits: Sequence[Split],
        *,
        fit_intercept: bool = True,
        output_weight: np.ndarray | None = None,
        design: InputDesign | None = None,
    ) -> None:
        self.data, self.fit_intercept = data, fit_intercept
        self.output_weight, self.design = output_weight, design
        self.folds = make_folds(splits)
        self.shape = (data.n_features, *data.output_shape)
        self.x_unit, self.y_unit = data.x_unit, data.y_unit
        self.n_training = n_training(splits, has_observation(data.Y, data.w).astype(float))
        self.max_input_rank = min(data.n_features, max(train.size for train, _ in splits))
        self._maps = [features_of(design, data.rows(f.train), fit_intercept) for f in self.folds]

    def _rows(self, fold: int, index: np.ndarray) -> Samples:
        """Return some samples, with the features of a fold as inputs."""
        return mapped(self._maps[fold], self.data.rows(index))

    def observed(self, fold: int) -> Observed:
        """Return the observed training outputs of a fold."""
        try:
            train, _ = drop_unobserved(self._rows(fold, self.folds[fold].train))
        except ValueError as error:
            raise ValueError(f"The training samples of split {fold} of cv: {error}") from error
        basis = SampleBasis.from_arrays(train.X, train.w, 0.0, fit_intercept=self.fit_intercept)
        return Observed(basis, train.Y)

    # ------------------------------------------------------------ completed outputs

    def problem(self, fold: Fold, candidate: Any = None, min_alpha: float = 0.0) -> ImputedProblem:
        """Return the training problem with mean imputation, which marks never observed outputs."""
        number = self.folds.index(fold)
        spectral = self.observed(number).spectral()
        found = ImputedProblem.of(spectral, self._maps[number], Imputation.of(spectral))
        never = found.imputation.never
        return replace(
            found, spectral=replace(found.spectral, never=never if never.any() else None)
        )

    def completed(self, fold: int, structure: Structure, alpha: float) -> ImputedProblem:
        """Return the training problem with outputs imputed by a model of the observed entries."""
        found = complete_structure(self.observed(fold), alpha, structure, self.n_features)
        return self._imputed_by(fold, found)

    def completed_by_ridge(self, fold: int, alpha: float) -> ImputedProblem:
        """Return the training problem with outputs imputed by ridge regression."""
        return self._imputed_by(fold, complete_ridge(self.observed(fold), alpha))

    def _imputed_by(self, fold: int, found: Completion) -> ImputedProblem:
        return ImputedProblem.of(found.imputed(), self._maps[fold], Imputation.by(found))

    # ------------------------------------------------------------ held-out data

    def held_out(self, problem: Problem, fold: Fold) -> ObservedHeldOut:
        assert isinstance(problem, ImputedProblem)
        number = self.folds.index(fold)
        found, spectral = problem.imputation, problem.spectral
        test, Xc, seen, w = self._held_out(number, found)
        Y = np.where(seen, test.Y, found.predict(Xc))
        held = HeldOut.from_features(Xc @ spectral.basis, Y, spectral.mean_y, test.w)
        size = float(w @ _weighted_counts(seen, self.output_weight))
        if not size > 0:
            raise ValueError(
                f"The test samples of split {number} of cv have no observed entry of y, or none of "
                f"an output that is observed in the training samples; use fewer folds, or shuffle "
                f"the samples."
            )
        return ObservedHeldOut(held.C, held.B, held.yy, held.weight, size)

    def error(self, fold: int, imputation: Imputation) -> float:
        """Return the held-out error of predictions, over observed entries."""
        test, Xc, seen, w = self._held_out(fold, imputation)
        squares = np.square(test.Y - imputation.predict(Xc))
        return mean_over(seen, squares, w, self.output_weight)

    def approximation_error(
        self, fold: int, problem: ImputedProblem, found: Approximation, alpha: float
    ) -> float:
        """Return the held-out error of an approximation of the problem of imputed outputs."""
        coef = lift(found.tucker, problem.spectral.at(alpha))
        spectral, imputation = problem.spectral, problem.imputation
        how = replace(imputation, mean_x=spectral.mean_x, mean=spectral.mean_y, coef=coef)
        return self.error(fold, how)

    def _held_out(
        self, fold: int, found: Imputation
    ) -> tuple[Samples, np.ndarray, np.ndarray, np.ndarray]:
        """Return held-out samples, centred inputs, the mask of outputs that count, and weights."""
        test = self._rows(fold, self.folds[fold].test)
        w = np.ones(test.n_samples) if test.w is None else test.w
        Xc = test.X.astype(np.float64, copy=False) - found.mean_x
        return test, Xc, ~(np.isnan(test.Y) | found.never), w

    def residuals(self, problem: Problem, fit: Fit, fold: Fold) -> FoldResiduals:
        assert isinstance(problem, ImputedProblem)
        never = problem.imputation.never
        fit = replace(fit, intercept=np.where(never, np.nan, fit.intercept))
        return sample_residuals(self.data, fold.test, problem.lifted(fit))

    # ------------------------------------------------------------ all data

    def default_alphas(self, candidates: Sequence[Any] = (None,)) -> np.ndarray:
        return row_alphas(self.data, self.design, self.fit_intercept)

    def refit(self, candidate: Any, options: LinearOptions) -> Fit:
        design = self.design and self.design.in_units(self.x_unit)
        return fit_data(self.data, replace(options, inputs=design))[0]


class NeverObserved(Source):
    """Problems of another source, in which some outputs are never observed.

    Parameters
    ----------
    source : Rows or FoldMoments
        Source of outputs with zeros for outputs that are never observed.
    never : array of bool, of shape (d1, ..., dp)
        Mask of these outputs.
    """

    def __init__(self, source: Rows | FoldMoments, never: np.ndarray) -> None:
        self.source, self.never = source, never
        self.folds, self.shape = source.folds, source.shape
        self.max_input_rank, self.n_training = source.max_input_rank, source.n_training
        self.fit_intercept, self.data = source.fit_intercept, source.data
        self.x_unit, self.y_unit, self.device = source.x_unit, source.y_unit, source.device

    def problem(self, fold: Fold, candidate: Any = None, min_alpha: float = 0.0) -> Problem:
        found = self.source.problem(fold, candidate, min_alpha)
        return replace(found, spectral=replace(found.spectral, never=self.never))

    def held_out(self, problem: Problem, fold: Fold) -> ObservedHeldOut:
        held = self.source.held_out(problem, fold)
        size = held.weight * (self.never.size - int(self.never.sum()))
        return ObservedHeldOut(held.C, held.B, held.yy, held.weight, size)

    def residuals(self, problem: Problem, fit: Fit, fold: Fold) -> FoldResiduals | MomentResiduals:
        fit = replace(fit, intercept=np.where(self.never, np.nan, fit.intercept))
        return self.source.residuals(problem, fit, fold)

    def default_alphas(self, candidates: Sequence[Any]) -> np.ndarray:
        return self.source.default_alphas(candidates)

    def refit(self, candidate: Any, options: LinearOptions) -> Fit:
        return self.source.refit(candidate, replace(options, never=self.never))


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
