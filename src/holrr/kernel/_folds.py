"""Folds of kernel problems: one eigendecomposition for each fold and kernel.

With landmarks they are folds of linear problems in the features, of which the moments suffice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..core.namespace import Array
from ..core.spectral import Spectral, Whitened, spectral_from_moments
from ..data.arrays import take
from ..data.moments import Moments
from ..data.samples import Samples
from ..data.source import Source
from ..model_selection.folds import Folds
from ..model_selection.held_out import HeldOut
from ..model_selection.splits import Split, is_partition, labels_of, merge_others
from ._gram import KernelFunction, centred_gram
from ._kernels import KernelSpec, kernel_function
from ._landmarks import Landmarks
from ._problem import spectral_from_gram
from ._responses import centre_responses
from ._tall import HeldOutSamples

__all__ = ["KernelFolds", "LandmarkFolds"]


class _CandidateKernels(Folds):
    """Folds of which each kernel is a candidate.

    There are no splits where only the problems of all the data are asked for.
    """

    def __init__(
        self,
        data: Samples | Source,
        splits: Sequence[Split],
        specs: Sequence[KernelSpec],
        *,
        fit_intercept: bool = True,
        center_kernel: bool = True,
        response_grams: bool = False,
    ):
        self._split(data, splits, data.n_samples)
        # More input directions than outputs add nothing.
        self.max_input_rank = min(self.max_input_rank, math.prod(self.output_shape))
        self.specs, self.kernels = list(specs), [kernel_function(spec) for spec in specs]
        self.candidates = (len(self.kernels),)
        self.fit_intercept, self.center_kernel = fit_intercept, center_kernel
        self.response_grams = response_grams


class KernelFolds(_CandidateKernels):
    """Folds of samples at hand."""

    def problem(self, fold: int, *candidate: int) -> tuple[Spectral, Any]:
        Y, w = self.data.Y, self.data.w
        train, test = self.splits[fold]
        kernel = self.kernels[candidate[0]]
        Xt, Xv = (self._inputs(rows, train, candidate) for rows in (train, test))
        problem = self._spectral(kernel, Xt, take(Y, train), take(w, train))
        F = (kernel(Xv, Xt) - problem.mean_x) @ problem.basis
        tall = F.shape[1] > math.prod(self.output_shape)
        held_out: Any = HeldOutSamples.of if tall else HeldOut.from_features
        return problem, held_out(F, take(Y, test), problem.mean_y, take(w, test))

    def fitted(self, model: Any, mask: Any, fold: int, alpha: float, *candidate: int) -> Any:
        both = super().fitted(model, mask, fold, alpha, *candidate)
        train = self.splits[fold][0]
        model._keep_samples(self._inputs(train, train, candidate))
        return both

    def held_out(self, fold: int, *candidate: int) -> Any:
        train, test = self.splits[fold]
        return self._inputs(test, train, candidate)

    def full_problem(self, *candidate: int) -> tuple[Spectral, float]:
        data = self.data
        problem = self._spectral(self.kernels[candidate[0]], data.X, data.Y, data.w)
        return problem, data.weight

    def _inputs(self, rows: Array, train: Array, candidate: tuple[int, ...]) -> Array:
        """Inputs of samples; their kernel values with the training samples where precomputed."""
        X = take(self.data.X, rows)
        return take(X.T, train).T if self.kernels[candidate[0]].name == "precomputed" else X

    def _spectral(self, kernel: KernelFunction, X: Array, Y: Array, w: Array | None) -> Spectral:
        outputs = centre_responses(
            Y, w, fit_intercept=self.fit_intercept, grams=self.response_grams
        )
        center = self.fit_intercept and self.center_kernel
        return spectral_from_gram(centred_gram(kernel, X, w, center=center), outputs)


class LandmarkFolds(_CandidateKernels):
    """Folds of linear problems in the features of landmarks, of which the moments suffice.

    The landmarks are `points`, (n_landmarks, n_features). The splits of a source are a partition.
    """

    def __init__(
        self,
        data: Samples | Source,
        splits: Sequence[Split],
        specs: Sequence[KernelSpec],
        points: Array,
        **options: bool,
    ):
        super().__init__(data, splits, specs, **options)
        self.points, self.n_inputs = points, points.shape[0]
        self.max_input_rank = min(self.n_inputs, self.max_input_rank)
        self.features = [Landmarks.of(kernel, points) for kernel in self.kernels]
        self.partition = is_partition(self.splits, data.n_samples)
        self.parts: list[tuple[Moments, Moments]] = []

    def prepare(self, *candidate: int) -> None:
        """Training and test moments of each fold, for one kernel at a time."""
        self.parts = []
        if self.partition:
            labels = labels_of(self.splits, self.data.n_samples)
            of = self.features[candidate[0]].fold_moments
            parts = of(self.data, labels, self.n_folds, self.response_grams)
            self.parts = list(zip(merge_others(parts), parts, strict=True))

    def problem(self, fold: int, *candidate: int) -> tuple[Spectral, HeldOut]:
        if self.partition:
            train, test = self.parts[fold]
        else:
            of, grams = self.features[candidate[0]].moments_of, self.response_grams
            train, test = (of(self.data, index, grams) for index in self.splits[fold])
        problem = spectral_from_moments(self._centred(train))
        return problem, HeldOut.from_moments(problem, test)

    def fitted(self, model: Any, mask: Any, fold: int, alpha: float, *candidate: int) -> Any:
        both = super().fitted(model, mask, fold, alpha, *candidate)
        vars(model).update(model._kept_features(self.features[candidate[0]]))
        return both

    def on_inputs(self, problem: Whitened, *candidate: int) -> Whitened:
        return self.features[candidate[0]].on_kernel_values(problem)

    def held_out(self, fold: int, *candidate: int) -> Any:
        if isinstance(self.data, Samples):
            return super().held_out(fold)
        return self.parts[fold][1]

    def full_problem(self, *candidate: int) -> tuple[Spectral, float]:
        total = self.features[candidate[0]].moments(self.data, self.response_grams)
        return spectral_from_moments(self._centred(total)), total.weight

    def refit(self, estimator: Any, **options: Any) -> Any:
        self.parts = []
        return super().refit(estimator, **options)

    def _centred(self, moments: Moments) -> Moments:
        return moments.centred(self.fit_intercept, centre_inputs=self.center_kernel)
