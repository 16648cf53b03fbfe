"""Folds of kernel models, with one candidate for each kernel.

Exact kernels have one eigendecomposition for each fold and kernel. With landmarks they are folds of
linear problems in the features, for which moments suffice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..core.fit import Fit
from ..core.leverage import std_factor
from ..core.moments import merge_others
from ..core.namespace import Array, namespace_of, on_host
from ..core.spectral import Spectral, spectral_from_moments
from ..data.arrays import take
from ..data.validation import Samples
from ..model_selection.intervals import FoldResiduals, MomentResiduals, residual_outputs
from ..model_selection.splits import Split, is_partition, labels_of
from ..model_selection.surface import HeldOut, HeldOutSamples
from ..streaming.moments import Moments
from ..streaming.stream import Stream
from .candidates import KernelSpec, kernel_alphas, kernel_function, mean_eigenvalue, some_samples
from .fit import kernel_std_factor
from .gram import KernelFunction, centred_gram
from .landmarks import Landmarks
from .problem import centre_responses, spectral_from_gram

__all__ = ["KernelFolds", "LandmarkFolds"]


@dataclass(frozen=True, eq=False)
class KernelFolds:
    """Folds of samples in memory.

    Parameters
    ----------
    data : Samples
        With scaled outputs.
    splits : list of index pairs
        Empty where only the problems of all the data are needed.
    specs : list of dict
        The kernels.
    fit_intercept, center_kernel, response_grams : bool
    """

    data: Samples
    splits: Sequence[Split]
    specs: Sequence[KernelSpec]
    fit_intercept: bool = True
    center_kernel: bool = True
    response_grams: bool = False

    x_unit = 1.0

    @cached_property
    def kernels(self) -> list[KernelFunction]:
        return [kernel_function(spec) for spec in self.specs]

    @property
    def n_folds(self) -> int:
        return len(self.splits)

    @property
    def n_candidates(self) -> int:
        return len(self.specs)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.data.n_samples, *self.data.output_shape)

    @property
    def max_input_rank(self) -> int:
        return _max_input_rank(self.data, self.splits)

    @property
    def y_unit(self) -> float:
        return self.data.y_unit

    @property
    def device(self) -> Array | None:
        return None if on_host(self.data.X) else self.data.X

    def prepare(self, candidate: int) -> None:
        """Nothing is shared by the folds."""

    def problem(self, fold: int, candidate: int, min_alpha: float) -> tuple[Spectral, Any]:
        Y, w = self.data.Y, self.data.w
        train, test = self.splits[fold]
        Xt, Xv = (self._inputs(rows, train, candidate) for rows in (train, test))
        problem = self._spectral(candidate, Xt, take(Y, train), take(w, train))
        F = (self.kernels[candidate](Xv, Xt) - problem.mean_x) @ problem.basis
        # With more directions than outputs, products of the features would be larger than these.
        tall = F.shape[1] > math.prod(self.data.output_shape)
        held_out: Any = HeldOutSamples.of if tall else HeldOut.from_features
        return problem, held_out(F, take(Y, test), problem.mean_y, take(w, test))

    def full_problem(self, candidate: int, min_alpha: float) -> tuple[Spectral, float]:
        data = self.data
        return self._spectral(candidate, data.X, data.Y, data.w), data.weight

    def default_alphas(self) -> np.ndarray:
        return _default_alphas(self)

    def residuals(self, fold: int, candidate: int, fit: Fit) -> FoldResiduals:
        (train, test), data, kernel = self.splits[fold], self.data, self.kernels[candidate]
        Xt, Xv = (self._inputs(rows, train, candidate) for rows in (train, test))
        K, hat = kernel(Xv, Xt), fit.hat
        assert hat is not None
        if kernel.name == "precomputed":
            xp = namespace_of(Xt)
            hat = {**hat, "diagonal": float(xp.max(xp.linalg.diagonal(Xt)))}
        factor = kernel_std_factor(hat, kernel, Xv, K, None)
        return FoldResiduals.of(fit, K, factor, residual_outputs(data.Y), data.w, test)

    def _inputs(self, rows: Array, train: Array, candidate: int) -> Array:
        """Inputs of samples; their kernel values with the training samples where precomputed."""
        X = take(self.data.X, rows)
        return take(X.T, train).T if self.kernels[candidate].name == "precomputed" else X

    def _spectral(self, candidate: int, X: Array, Y: Array, w: Array | None) -> Spectral:
        outputs = centre_responses(
            Y, w, fit_intercept=self.fit_intercept, grams=self.response_grams
        )
        center = self.fit_intercept and self.center_kernel
        return spectral_from_gram(
            centred_gram(self.kernels[candidate], X, w, center=center), outputs
        )


@dataclass(frozen=True, eq=False)
class LandmarkFolds:
    """Folds of linear problems in the features of landmarks.

    Parameters
    ----------
    data : Samples or Stream
        Samples with scaled outputs; the splits of a stream are a partition.
    points : array of shape (n_landmarks, n_features)
    splits, specs, fit_intercept, center_kernel, response_grams
        As in `KernelFolds`.
    """

    data: Samples | Stream
    splits: Sequence[Split]
    specs: Sequence[KernelSpec]
    points: Array
    fit_intercept: bool = True
    center_kernel: bool = True
    response_grams: bool = False
    # Training and test moments of each fold, of one kernel at a time.
    _moments: dict[int, list[tuple[Moments, Moments]]] = field(default_factory=dict)

    x_unit = 1.0

    @cached_property
    def features(self) -> list[Landmarks]:
        return [Landmarks.of(kernel_function(spec), self.points) for spec in self.specs]

    @property
    def n_folds(self) -> int:
        return len(self.splits)

    @property
    def n_candidates(self) -> int:
        return len(self.specs)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.points.shape[0], *self.data.output_shape)

    @property
    def max_input_rank(self) -> int:
        return min(self.points.shape[0], _max_input_rank(self.data, self.splits))

    @property
    def y_unit(self) -> float:
        return self.data.y_unit if isinstance(self.data, Samples) else 1.0

    @property
    def device(self) -> Array | None:
        X = self.data.X if isinstance(self.data, Samples) else None
        return None if X is None or on_host(X) else X

    @cached_property
    def _is_partition(self) -> bool:
        return is_partition(self.splits, self.data.n_samples)

    def prepare(self, candidate: int) -> None:
        if not self._is_partition or candidate in self._moments:
            return
        self._moments.clear()
        labels, features = labels_of(self.splits, self.data.n_samples), self.features[candidate]
        parts = features.fold_moments(self.data, labels, self.n_folds, self.response_grams)
        self._moments[candidate] = list(zip(merge_others(parts), parts, strict=True))

    def problem(self, fold: int, candidate: int, min_alpha: float) -> tuple[Spectral, HeldOut]:
        if self._is_partition:
            self.prepare(candidate)
            train, test = self._moments[candidate][fold]
        else:
            assert isinstance(self.data, Samples)
            of, grams = self.features[candidate].moments_of, self.response_grams
            train, test = (of(self.data, index, grams) for index in self.splits[fold])
        problem = spectral_from_moments(self._centred(train))
        return problem, HeldOut.from_moments(problem, test)

    def full_problem(self, candidate: int, min_alpha: float) -> tuple[Spectral, float]:
        total = self.features[candidate].moments(self.data, self.response_grams)
        return spectral_from_moments(self._centred(total)), total.weight

    def default_alphas(self) -> np.ndarray:
        return _default_alphas(self)

    def residuals(
        self, fold: int, candidate: int, fit: Fit
    ) -> FoldResiduals | MomentResiduals:
        if isinstance(self.data, Stream):
            self.prepare(candidate)
            return MomentResiduals(fit, self._moments[candidate][fold][1])
        data, test, features = self.data, self.splits[fold][1], self.features[candidate]
        X, hat = take(data.X, test), fit.hat
        assert hat is not None
        K = features.kernel(X, self.points)
        phi, xp = K @ (features.Q / features.s), namespace_of(K)
        norms = features.kernel.diagonal(X) - xp.sum(phi * phi, axis=1)
        centred = phi - hat["mean"]
        norms = xp.clip(norms, 0.0, None) + xp.sum(centred * centred, axis=1)
        factor = std_factor(hat, phi, norms)
        return FoldResiduals.of(fit, phi, factor, residual_outputs(data.Y), data.w, test)

    def _centred(self, moments: Moments) -> Moments:
        return moments.centred(self.fit_intercept, centre_inputs=self.center_kernel)


def _max_input_rank(data: Samples | Stream, splits: Sequence[Split]) -> int:
    """More input directions than training samples, or than outputs, add nothing."""
    largest = max((train.size for train, _ in splits), default=data.n_samples)
    return min(largest, math.prod(data.output_shape))


def _default_alphas(folds: KernelFolds | LandmarkFolds) -> np.ndarray:
    center, some = folds.fit_intercept and folds.center_kernel, some_samples(folds.data)
    return kernel_alphas([mean_eigenvalue(s, *some, center=center) for s in folds.specs])
