"""Kernel fits: from samples to a `Fit` in the kernel values, exact or with landmarks."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from ..core.approximate import FullRank, MatrixRank, MultilinearRank, Structure
from ..core.fit import Fit, fit_approximation
from ..core.leverage import std_factor
from ..core.mixture import Mixture
from ..core.namespace import Array, namespace_of, to_device_of
from ..core.spectral import spectral_from_moments, whiten_moments
from ..core.threads import few_threads_for
from ..data.validation import Samples
from ..streaming.moments import Moments
from .gram import Gram, KernelFunction, centred_gram, warn_of_lost_inputs
from .landmarks import Landmarks
from .problem import centre_responses, ridge_gram, spectral_from_gram, whiten_gram

__all__ = ["KernelOptions", "fit_landmarks", "fit_samples", "kernel_std_factor"]


@dataclass(frozen=True, eq=False)
class KernelOptions:
    """Parameters of a kernel fit.

    Parameters
    ----------
    structure : Structure
        Structure of the coefficients.
    alpha : float
        Penalty.
    fit_intercept : bool
        Whether to fit an intercept.
    center_kernel : bool
        Whether to centre the features of the kernel if an intercept is fitted.
    """

    structure: Structure
    alpha: float
    fit_intercept: bool
    center_kernel: bool


def limited(structure: Structure, output_shape: tuple[int, ...]) -> Structure:
    """Limit the input directions of a structure to the number of outputs."""
    if isinstance(structure, Mixture):
        return replace(structure, base=limited(structure.base, output_shape))
    if isinstance(structure, (MatrixRank, MultilinearRank)):
        return replace(structure, max_directions=math.prod(output_shape))
    return structure


def fit_samples(data: Samples, kernel: KernelFunction, options: KernelOptions) -> Fit:
    """Fit a model with one dual coefficient for each sample to samples in memory.

    Parameters
    ----------
    data : Samples
        Validated samples.
    kernel : KernelFunction
        Kernel.
    options : KernelOptions
        Parameters of the fit.
    """
    data = data.scaled(inputs=False)
    X, w, alpha = data.X, data.w, options.alpha
    structure = limited(options.structure, data.output_shape)
    outputs = centre_responses(
        data.Y, w, fit_intercept=options.fit_intercept, grams=structure.needs_response_grams
    )
    (n, D), d = outputs.values.shape, data.n_features
    center = options.fit_intercept and options.center_kernel

    def build() -> Gram:
        # Idle threads of NumPy's BLAS slow down the BLAS of SciPy, which factorises next.
        with few_threads_for(n * n * d):
            G = centred_gram(kernel, X, w, center=center)
            warn_of_lost_inputs(kernel, X, w, G)
            return G

    with few_threads_for(n * n * (n + D + d)):
        if isinstance(structure, FullRank):
            problem = ridge_gram(build, outputs, alpha)
        elif isinstance(structure, Mixture):
            problem = spectral_from_gram(build(), outputs).at(alpha)
        else:
            k = structure.n_leading(n, outputs.shape)
            problem = whiten_gram(build, outputs, alpha, n_leading=k)
        with few_threads_for(n * math.prod(problem.Z.shape)):
            found = structure.approximate(problem, n)
            fit = fit_approximation(problem, found, options.fit_intercept)
    if kernel.name == "precomputed" and fit.hat is not None:
        # k(x, x) of other samples is not known; the largest value of a training sample replaces it.
        xp = namespace_of(X)
        fit = replace(fit, hat={**fit.hat, "diagonal": float(xp.max(xp.linalg.diagonal(X)))})
    return fit.rescaled(1.0, data.y_unit)


def fit_landmarks(
    features: Landmarks,
    moments: Moments,
    options: KernelOptions,
    y_unit: float = 1.0,
) -> Fit:
    """Fit a model to the moments of the features of landmarks.

    Parameters
    ----------
    features : Landmarks
        Feature map of the landmarks.
    moments : Moments
        Moments of the features and the outputs.
    options : KernelOptions
        Parameters of the fit.
    y_unit : float
        Number that the outputs were divided by.
    """
    if options.fit_intercept and options.center_kernel:
        points = features.points
        G = centred_gram(features.kernel, points, center=True)
        # The features come from the Gram matrix that is not centred, and are as large as its trace.
        warn_of_lost_inputs(features.kernel, points, None, G, n_roundings=points.shape[0])
    centred = moments.centred(options.fit_intercept, centre_inputs=options.center_kernel)
    if isinstance(options.structure, Mixture):
        problem = spectral_from_moments(centred).at(options.alpha)
    else:
        problem = whiten_moments(centred, options.alpha)
    structure = limited(options.structure, moments.output_shape)
    found = structure.approximate(problem, features.points.shape[0])
    fit = fit_approximation(problem, found, options.fit_intercept)
    return features.on_kernel_values(fit).rescaled(1.0, y_unit)


def kernel_std_factor(
    hat: dict[str, Any], kernel: KernelFunction, X: Array, K: Array, features: Landmarks | None
) -> Array:
    """Return ``sqrt(1 + 1/n + h(x))`` of each sample, of shape (n,).

    Parameters
    ----------
    hat : dict
        Entries of `Fit.hat`.
    kernel : KernelFunction
        Kernel.
    X : array of shape (n, n_features)
        Inputs of the samples.
    K : array of shape (n, m)
        Kernel values with the training samples or landmarks.
    features : Landmarks or None
        Feature map of the landmarks; None for an exact fit.
    """
    xp = namespace_of(K)
    known = hat.get("diagonal")
    norms = kernel.diagonal(X) if known is None else xp.full_like(K[:, 0], known)
    if features is not None:
        phi = K @ to_device_of(features.Q / features.s, K)
        lacking = xp.clip(norms - xp.sum(phi * phi, axis=1), 0.0, None)
        centred = phi - to_device_of(hat["mean"], K)
        return std_factor(hat, phi, lacking + xp.sum(centred * centred, axis=1))
    shift, mean, root = 0.0, to_device_of(hat["mean"], K), hat["sample_root"]
    root = xp.ones_like(mean) if root is None else to_device_of(root, K)
    if hat["centred"]:
        share = root * root / xp.sum(root * root)
        shift = K @ share - share @ mean
        norms = xp.clip(norms - shift - K @ share, 0.0, None)
    if hat["form"] == "gram":
        K = (K - mean - xp.reshape(shift, (-1, 1))) * root + mean
    return std_factor(hat, K, norms)
