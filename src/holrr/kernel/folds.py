"""Folds of kernel models, with one candidate for each kernel.

Exact kernel models need one eigendecomposition for each fold and kernel. Models with landmarks are
linear in the features of the landmarks, so their folds need only moments.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..core.fit import Fit
from ..core.leverage import std_factor
from ..core.moments import check_sizes, merge_others, sizes_of
from ..core.namespace import Array, namespace_of, on_host
from ..core.spectral import Spectral, spectral_from_moments
from ..data.arrays import take
from ..data.validation import Samples
from ..model_selection.folds import Folds, Split, is_partition, labels_of, n_training
from ..model_selection.intervals import FoldResiduals, MomentResiduals, residual_outputs
from ..model_selection.surface import HeldOut, HeldOutSamples
from ..streaming.moments import Moments
from ..streaming.stream import Stream
from .candidates import KernelSpec, kernel_alphas, kernel_function, mean_eigenvalue, some_samples
from .fit import KernelOptions, fit_landmarks, fit_samples, kernel_std_factor
from .gram import centred_gram
from .landmarks import Landmarks
from .problem import centre_responses, spectral_from_gram

__all__ = ["kernel_folds", "landmark_folds"]


def kernel_folds(
    data: Samples,
    splits: Sequence[Split],
    specs: Sequence[KernelSpec],
    *,
    fit_intercept: bool = True,
    center_kernel: bool = True,
    response_grams: bool = False,
) -> Folds:
    """Return the folds of samples in memory.

    Parameters
    ----------
    data : Samples
        Samples with scaled outputs.
    splits : list of index pairs
        Training and test indices of each fold. An empty list is enough for the problem of all data.
    specs : list of dict
        Candidate kernels.
    fit_intercept : bool
        Whether to fit an intercept.
    center_kernel : bool
        Whether to centre the features of the kernel if an intercept is fitted.
    response_grams : bool
        Whether to compute the Gram matrices of the output modes.
    """
    kernels, center = [kernel_function(spec) for spec in specs], fit_intercept and center_kernel

    def inputs(rows: np.ndarray, train: np.ndarray, candidate: int) -> Array:
        """Return the inputs of samples; for a precomputed kernel, values with training samples."""
        X = take(data.X, rows)
        return take(X.T, train).T if kernels[candidate].name == "precomputed" else X

    def spectral(candidate: int, X: Array, Y: Array, w: Array | None) -> Spectral:
        outputs = centre_responses(Y, w, fit_intercept=fit_intercept, grams=response_grams)
        return spectral_from_gram(centred_gram(kernels[candidate], X, w, center=center), outputs)

    def problem(fold: int, candidate: int, min_alpha: float) -> tuple[Spectral, Any]:
        train, test = splits[fold]
        Xt, Xv = (inputs(rows, train, candidate) for rows in (train, test))
        found = spectral(candidate, Xt, take(data.Y, train), take(data.w, train))
        F = (kernels[candidate](Xv, Xt) - found.mean_x) @ found.basis
        # With more directions than outputs, products of the features are larger than the features.
        tall = F.shape[1] > math.prod(data.output_shape)
        held_out: Any = HeldOutSamples.of if tall else HeldOut.from_features
        return found, held_out(F, take(data.Y, test), found.mean_y, take(data.w, test))

    def residuals(fold: int, candidate: int, fit: Fit) -> FoldResiduals:
        (train, test), kernel = splits[fold], kernels[candidate]
        Xt, Xv = (inputs(rows, train, candidate) for rows in (train, test))
        K, hat = kernel(Xv, Xt), fit.hat
        assert hat is not None
        if kernel.name == "precomputed":
            xp = namespace_of(Xt)
            hat = {**hat, "diagonal": float(xp.max(xp.linalg.diagonal(Xt)))}
        factor = kernel_std_factor(hat, kernel, Xv, K, None)
        return FoldResiduals.of(fit, K, factor, residual_outputs(data.Y), data.w, test)

    return Folds(
        n_folds=len(splits),
        shape=(data.n_samples, *data.output_shape),
        max_input_rank=_max_input_rank(data, splits),
        problem=problem,
        residuals=residuals,
        default_alphas=lambda: _default_alphas(data, specs, center),
        refit=lambda candidate, options: fit_samples(data, kernels[candidate], options),
        n_candidates=len(specs),
        n_training=n_training(splits, data.w),
        y_unit=data.y_unit,
        device=None if on_host(data.X) else data.X,
        splits=splits,
    )


def landmark_folds(
    data: Samples | Stream,
    splits: Sequence[Split],
    specs: Sequence[KernelSpec],
    points: Array,
    *,
    fit_intercept: bool = True,
    center_kernel: bool = True,
    response_grams: bool = False,
) -> Folds:
    """Return the folds of linear problems in the features of landmarks.

    Parameters
    ----------
    data : Samples or Stream
        Samples with scaled outputs, or a stream, whose splits must be a partition.
    splits : list of index pairs
        Training and test indices of each fold.
    specs : list of dict
        Candidate kernels.
    points : array of shape (n_landmarks, n_features)
        Landmarks.
    fit_intercept, center_kernel, response_grams : bool
        Parameters of `kernel_folds`.
    """
    features = [Landmarks.of(kernel_function(spec), points) for spec in specs]
    partition = is_partition(splits, data.n_samples)
    samples = data if isinstance(data, Samples) else None
    y_unit = 1.0 if samples is None else samples.y_unit

    @lru_cache(maxsize=1)  # one kernel at a time
    def moments(candidate: int) -> list[tuple[Moments, Moments]]:
        """Return the training and test moments of each fold of a partition."""
        w = data.weights if isinstance(data, Stream) else None  # excludes samples without weight
        labels = labels_of(splits, data.n_samples, w)
        parts = features[candidate].fold_moments(data, labels, len(splits), response_grams)
        for part in parts:
            check_sizes(*sizes_of(part), part.weight, squares=True)
        return list(zip(merge_others(parts), parts, strict=True))

    def centred(m: Moments) -> Moments:
        return m.centred(fit_intercept, centre_inputs=center_kernel)

    def problem(fold: int, candidate: int, min_alpha: float) -> tuple[Spectral, HeldOut]:
        if partition:
            train, test = moments(candidate)[fold]
        else:
            assert samples is not None
            of = features[candidate].moments_of
            train, test = (of(samples, index, response_grams) for index in splits[fold])
        found = spectral_from_moments(centred(train))
        return found, HeldOut.from_moments(found, test)

    def residuals(fold: int, candidate: int, fit: Fit) -> FoldResiduals | MomentResiduals:
        if samples is None:
            return MomentResiduals(fit, moments(candidate)[fold][1])
        test, map_, hat = splits[fold][1], features[candidate], fit.hat
        assert hat is not None
        X = take(samples.X, test)
        phi, xp = map_.kernel(X, points) @ (map_.Q / map_.s), namespace_of(X)
        norms = map_.kernel.diagonal(X) - xp.sum(phi * phi, axis=1)
        about = phi - hat["mean"]
        norms = xp.clip(norms, 0.0, None) + xp.sum(about * about, axis=1)
        factor = std_factor(hat, phi, norms)
        Y = residual_outputs(samples.Y)
        return FoldResiduals.of(fit, phi, factor, Y, samples.w, test)

    def refit(candidate: int, options: KernelOptions) -> Fit:
        total = features[candidate].moments(data, response_grams)
        return fit_landmarks(features[candidate], total, options, y_unit)

    return Folds(
        n_folds=len(splits),
        shape=(points.shape[0], *data.output_shape),
        max_input_rank=min(points.shape[0], _max_input_rank(data, splits)),
        problem=problem,
        residuals=residuals,
        default_alphas=lambda: _default_alphas(data, specs, fit_intercept and center_kernel),
        refit=refit,
        prepare=(lambda candidate: moments(candidate)) if partition else (lambda candidate: None),
        n_candidates=len(specs),
        y_unit=y_unit,
        device=None if samples is None or on_host(samples.X) else samples.X,
        splits=splits,
    )


def _max_input_rank(data: Samples | Stream, splits: Sequence[Split]) -> int:
    """Return the largest useful input rank: at most the number of training samples and outputs."""
    largest = max((train.size for train, _ in splits), default=data.n_samples)
    return min(largest, math.prod(data.output_shape))


def _default_alphas(
    data: Samples | Stream, specs: Sequence[KernelSpec], center: bool
) -> np.ndarray:
    some = some_samples(data)
    return kernel_alphas([mean_eigenvalue(spec, *some, center=center) for spec in specs])
