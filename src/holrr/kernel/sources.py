"""Sources of kernel problems: Gram matrices (`Gram`), and sums of features (`LandmarkMoments`).

The candidates of both are kernels (`KernelSpec`). Exact kernel models need one eigendecomposition
for each fold and kernel. Models with landmarks are linear in the features of the landmarks, so
their folds need only moments.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.fit import Fit
from ..core.leverage import std_factor
from ..core.moments import CentredMoments, check_sizes, sizes_of
from ..core.namespace import Array, namespace_of, on_host
from ..core.spectral import spectral_from_moments
from ..data.arrays import take
from ..data.validation import Samples
from ..model_selection.folds import (
    Fold,
    Split,
    is_partition,
    labels_of,
    make_folds,
    n_training,
)
from ..model_selection.intervals import FoldResiduals, MomentResiduals, residual_outputs
from ..model_selection.sources import Problem, Source
from ..model_selection.surface import HeldOut, HeldOutSamples
from ..streaming.chunks import Chunks
from ..streaming.moments import Moments
from .candidates import KernelSpec, kernel_alphas, kernel_function, mean_eigenvalue, some_samples
from .fit import KernelOptions, fit_landmarks, fit_samples, kernel_std_factor
from .gram import KernelFunction, centred_gram
from .landmarks import Landmarks
from .problem import centre_responses, spectral_from_gram

__all__ = ["Gram", "LandmarkMoments", "training_inputs"]


class Gram(Source):
    """Samples in memory, with the Gram matrices of kernels.

    Parameters
    ----------
    data : Samples
        Samples with scaled outputs.
    splits : list of index pairs
        Training and test indices of each fold.
    fit_intercept : bool
        Whether to fit an intercept.
    center_kernel : bool
        Whether to centre the features of the kernel if an intercept is fitted.
    """

    data: Samples

    def __init__(
        self,
        data: Samples,
        splits: Sequence[Split],
        *,
        fit_intercept: bool = True,
        center_kernel: bool = True,
    ) -> None:
        self.data, self.fit_intercept = data, fit_intercept
        self.center = fit_intercept and center_kernel
        self.folds = make_folds(splits)
        self.shape = (data.n_samples, *data.output_shape)
        self.max_input_rank = _max_input_rank(data, splits)
        self.n_training = n_training(splits, data.w)
        self.y_unit = data.y_unit
        self.device = None if on_host(data.X) else data.X

    def _sides(self, kernel: KernelFunction, fold: Fold) -> tuple[Array, Array]:
        """Return the inputs of training and held-out samples."""
        X, train = self.data.X, fold.train
        return training_inputs(kernel, X, train, train), training_inputs(
            kernel, X, fold.test, train
        )

    def problem(self, fold: Fold, candidate: KernelSpec, min_alpha: float = 0.0) -> Problem:
        kernel, (Y, w) = kernel_function(candidate), self._outputs(fold.train)
        X = training_inputs(kernel, self.data.X, fold.train, fold.train)
        outputs = centre_responses(Y, w, fit_intercept=self.fit_intercept)
        G = centred_gram(kernel, X, w, center=self.center)
        return Problem(spectral_from_gram(G, outputs), kernel)

    def held_out(self, problem: Problem, fold: Fold) -> HeldOut | HeldOutSamples:
        found, kernel = problem.spectral, problem.features
        X, Xv = self._sides(kernel, fold)
        F = (kernel(Xv, X) - found.mean_x) @ found.basis
        Y, w = self._outputs(fold.test)
        # With more directions than outputs, products of the features are larger than the features.
        if F.shape[1] > math.prod(self.output_shape):
            return HeldOutSamples.of(F, Y, found.mean_y, w)
        return HeldOut.from_features(F, Y, found.mean_y, w)

    def _outputs(self, rows: np.ndarray) -> tuple[Array, Array | None]:
        """Return outputs and weights of some samples."""
        return take(self.data.Y, rows), take(self.data.w, rows)

    def residuals(self, problem: Problem, fit: Fit, fold: Fold) -> FoldResiduals:
        kernel, hat = problem.features, fit.hat
        X, Xv = self._sides(kernel, fold)
        K = kernel(Xv, X)
        assert hat is not None
        if kernel.name == "precomputed":
            xp = namespace_of(X)
            hat = {**hat, "diagonal": float(xp.max(xp.linalg.diagonal(X)))}
        factor, Y = kernel_std_factor(hat, kernel, Xv, K, None), residual_outputs(self.data.Y)
        return FoldResiduals.of(fit, K, factor, Y, self.data.w, fold.test)

    def default_alphas(self, candidates: Sequence[KernelSpec]) -> np.ndarray:
        return _default_alphas(self.data, candidates, self.center)

    def refit(self, candidate: KernelSpec, options: KernelOptions) -> Fit:
        return fit_samples(self.data, kernel_function(candidate), options)


class LandmarkMoments(Source):
    """Moments of the features of landmarks, of one kernel at a time.

    Parameters
    ----------
    data : Samples or Chunks
        Samples with scaled outputs, or data in chunks, whose splits must be a partition.
    splits : list of index pairs
        Training and test indices of each fold.
    points : array of shape (n_landmarks, n_features)
        Landmarks.
    fit_intercept : bool
        Whether to fit an intercept.
    center_kernel : bool
        Whether to centre the features of the kernel if an intercept is fitted.
    """

    def __init__(
        self,
        data: Samples | Chunks,
        splits: Sequence[Split],
        points: Array,
        *,
        fit_intercept: bool = True,
        center_kernel: bool = True,
    ) -> None:
        self.samples, self.splits, self.points = data, splits, points
        self.fit_intercept, self.center_kernel = fit_intercept, center_kernel
        self.folds = make_folds(splits)
        self.shape = (points.shape[0], *data.output_shape)
        self.max_input_rank = min(points.shape[0], _max_input_rank(data, splits))
        self.n_training = 0  # directions outside the span of the landmarks have no prior
        if isinstance(data, Samples):
            self.y_unit = data.y_unit
            self.device = None if on_host(data.X) else data.X
        self._is_partition = is_partition(splits, data.n_samples)
        self._opened: KernelSpec | None = None
        self._features: Landmarks | None = None

    def open(self, candidate: KernelSpec) -> None:
        if candidate is self._opened:
            return
        self._opened, data = candidate, self.samples
        self._features = Landmarks.of(kernel_function(candidate), self.points)
        if not self._is_partition:
            return
        w = data.w if isinstance(data, Chunks) else None  # excludes samples without weight
        labels = labels_of(self.splits, data.n_samples, w)
        self.folds = make_folds(self.splits)  # frees the moments of the kernel before
        parts = self._features.fold_moments(data, labels, len(self.splits))
        for part in parts:
            check_sizes(*sizes_of(part), part.weight, squares=True)
        self.folds = make_folds(self.splits, parts)

    def _side(
        self, features: Landmarks, index: np.ndarray, known: CentredMoments | None
    ) -> CentredMoments:
        """Return the moments of the features of some samples, about their means."""
        if known is not None:
            return known
        assert isinstance(self.samples, Samples)
        return features.moments_of(self.samples, index, False)

    def problem(self, fold: Fold, candidate: KernelSpec, min_alpha: float = 0.0) -> Problem:
        features = self._features
        assert features is not None  # the candidate is open
        seen = self._side(features, fold.train, fold.seen)
        seen = seen.centred(self.fit_intercept, centre_inputs=self.center_kernel)
        return Problem(spectral_from_moments(seen), features, is_summed=True)

    def held_out(self, problem: Problem, fold: Fold) -> HeldOut:
        unseen = self._side(problem.features, fold.test, fold.unseen)
        return HeldOut.from_moments(problem.spectral, unseen)

    def residuals(self, problem: Problem, fit: Fit, fold: Fold) -> FoldResiduals | MomentResiduals:
        features, hat, data = problem.features, fit.hat, self.samples
        if isinstance(data, Chunks):
            assert fold.unseen is not None
            return MomentResiduals(fit, fold.unseen)
        assert hat is not None
        X = take(data.X, fold.test)
        phi, xp = features.kernel(X, self.points) @ (features.Q / features.s), namespace_of(X)
        norms = features.kernel.diagonal(X) - xp.sum(phi * phi, axis=1)
        about = phi - hat["mean"]
        norms = xp.clip(norms, 0.0, None) + xp.sum(about * about, axis=1)
        factor, Y = std_factor(hat, phi, norms), residual_outputs(data.Y)
        return FoldResiduals.of(fit, phi, factor, Y, data.w, fold.test)

    def default_alphas(self, candidates: Sequence[KernelSpec]) -> np.ndarray:
        center = self.fit_intercept and self.center_kernel
        return _default_alphas(self.samples, candidates, center)

    def refit(self, candidate: KernelSpec, options: KernelOptions) -> Fit:
        self.open(candidate)
        features = self._features
        assert features is not None
        total: Moments = features.moments(self.samples)
        return fit_landmarks(features, total, options, self.y_unit)


def training_inputs(kernel: KernelFunction, X: Array, rows: np.ndarray, train: np.ndarray) -> Array:
    """Return the inputs of samples; for a precomputed kernel, values with training samples."""
    X = take(X, rows)
    return take(X.T, train).T if kernel.name == "precomputed" else X


def _max_input_rank(data: Samples | Chunks, splits: Sequence[Split]) -> int:
    """Return the largest useful input rank: at most the number of training samples and outputs."""
    return min(max(train.size for train, _ in splits), math.prod(data.output_shape))


def _default_alphas(
    data: Samples | Chunks, specs: Sequence[KernelSpec], center: bool
) -> np.ndarray:
    some: Any = some_samples(data)
    return kernel_alphas([mean_eigenvalue(spec, *some, center=center) for spec in specs])
