"""Folds of kernel problems: one eigendecomposition for each fold and kernel.

With landmarks they are folds of linear problems in the features, of which the moments suffice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..core.namespace import Array, namespace_of
from ..core.spectral import Spectral, spectral_from_moments
from ..data.moments import Moments
from ..model_selection.folds import Folds, Split, is_partition, merge_others, take
from ..model_selection.held_out import HeldOut
from ._gram import KernelFunction, centred_gram
from ._landmarks import Landmarks, about_centres
from ._problem import spectral_from_gram
from ._responses import centre_responses
from ._tall import HeldOutSamples

__all__ = ["KernelFolds", "LandmarkFolds"]

Data = tuple[Array, Array, Array | None]


class KernelFolds(Folds):
    """Folds of data at hand, for several kernels.

    Parameters
    ----------
    data : tuple (X, Y, sample_weight)
        Validated arrays; the weights may be None.
    splits : list of index pairs
        Empty where only the problems of all the data are asked for.
    kernels : list of KernelFunction
    fit_intercept, center_kernel, response_grams : bool
    """

    def __init__(
        self,
        data: Data,
        splits: Sequence[Split],
        kernels: Sequence[KernelFunction],
        *,
        fit_intercept: bool = True,
        center_kernel: bool = True,
        response_grams: bool = False,
    ):
        self.data, self.splits, self.kernels = data, list(splits), list(kernels)
        self.fit_intercept, self.response_grams = fit_intercept, response_grams
        self.center = fit_intercept and center_kernel
        X, Y, _ = data
        self.n_folds, self.candidates = len(self.splits), (len(self.kernels),)
        self.output_shape = tuple(Y.shape[1:])
        self.n_inputs = X.shape[0]
        largest = max((train.size for train, _ in self.splits), default=X.shape[0])
        # More input directions than outputs add nothing.
        self.max_input_rank = min(largest, math.prod(self.output_shape))

    def problem(self, fold: int, *candidate: int) -> tuple[Spectral, Any]:
        X, Y, w = self.data
        train, test = self.splits[fold]
        kernel = self.kernels[candidate[0]]
        Xt, Xv = take(X, train), take(X, test)
        if kernel.name == "precomputed":
            Xt, Xv = take(Xt.T, train).T, take(Xv.T, train).T
        problem = self._spectral(kernel, Xt, take(Y, train), _take_weights(w, train))
        F = (kernel(Xv, Xt) - problem.mean_x) @ problem.basis
        Yv, wv = take(Y, test), _take_weights(w, test)
        if F.shape[1] > math.prod(self.output_shape):
            return problem, HeldOutSamples.of(F, Yv, problem.mean_y, wv)
        return problem, HeldOut.from_features(F, Yv, problem.mean_y, wv)

    def full_problem(self, *candidate: int) -> tuple[Spectral, float]:
        X, Y, w = self.data
        return self._spectral(self.kernels[candidate[0]], X, Y, w), _total_weight(Y, w)

    def refit(self, estimator: Any) -> Any:
        X, Y, w = self.data
        return estimator.fit(X, Y, w)

    def _spectral(self, kernel: KernelFunction, X: Array, Y: Array, w: Array | None) -> Spectral:
        outputs = centre_responses(
            Y, w, fit_intercept=self.fit_intercept, grams=self.response_grams
        )
        return spectral_from_gram(centred_gram(kernel, X, w, center=self.center), outputs)


class LandmarkFolds(Folds):
    """Folds of the Nystroem approximation, in which samples are seen through moments only.

    Parameters
    ----------
    data : tuple (X, Y, sample_weight)
    splits : list of index pairs
    features : list of Landmarks
        One for each kernel.
    fit_intercept, center_kernel, response_grams : bool
    """

    def __init__(
        self,
        data: Data,
        splits: Sequence[Split],
        features: Sequence[Landmarks],
        *,
        fit_intercept: bool = True,
        center_kernel: bool = True,
        response_grams: bool = False,
    ):
        self.data, self.splits, self.features = data, list(splits), list(features)
        self.fit_intercept, self.center_kernel = fit_intercept, center_kernel
        self.response_grams = response_grams
        X, Y, _ = data
        self.n_folds, self.candidates = len(self.splits), (len(self.features),)
        self.output_shape = tuple(Y.shape[1:])
        self.n_inputs = self.features[0].points.shape[0]
        largest = max((train.size for train, _ in self.splits), default=X.shape[0])
        self.max_input_rank = min(self.n_inputs, largest, math.prod(self.output_shape))
        self.parts: list[list[Moments]] = []

    def prepare(self) -> None:
        """Where the folds partition the data, each sample's features are computed once."""
        if is_partition(self.splits, self.data[0].shape[0]):
            self.parts = [
                [self._moments(features, test) for _, test in self.splits]
                for features in self.features
            ]

    def problem(self, fold: int, *candidate: int) -> tuple[Spectral, HeldOut]:
        if self.parts:
            parts = self.parts[candidate[0]]
            train, test = merge_others(parts)[fold], parts[fold]
        else:
            train, test = (self._moments(self.features[candidate[0]], i) for i in self.splits[fold])
        problem = self._spectral(train)
        return problem, HeldOut.from_moments(problem, test)

    def full_problem(self, *candidate: int) -> tuple[Spectral, float]:
        X, Y, w = self.data
        total = self.features[candidate[0]].moments(X, Y, w, self.response_grams)
        return self._spectral(total), total.weight

    def refit(self, estimator: Any) -> Any:
        X, Y, w = self.data
        return estimator.fit(X, Y, w)

    def _moments(self, features: Landmarks, index: Array) -> Moments:
        X, Y, w = self.data
        return features.moments(
            take(X, index), take(Y, index), _take_weights(w, index), self.response_grams
        )

    def _spectral(self, moments: Moments) -> Spectral:
        return spectral_from_moments(
            about_centres(
                moments, fit_intercept=self.fit_intercept, center_kernel=self.center_kernel
            )
        )


def _take_weights(w: Array | None, index: Array) -> Array | None:
    return None if w is None else take(w, index)


def _total_weight(Y: Array, w: Array | None) -> float:
    return float(Y.shape[0]) if w is None else float(namespace_of(w).sum(w))
