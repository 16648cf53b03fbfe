"""Ridge regression that averages penalties for each output, by their posterior probabilities.

For a ridge problem with singular values s of the inputs, lam = s^2 and outputs ``T = Q'Y``, ridge
regression with penalty alpha is the posterior mean of coefficients with independent normal priors
of variance sigma^2 / alpha. Given alpha, the entries of a column of T are independent and normal
with variances sigma^2 (1 + lam / alpha), and the rest of the n observations, which the inputs
cannot explain, has variance sigma^2. With sigma^2 estimated by maximum likelihood, the logarithm of
the likelihood of an output is, up to a constant,

    1/2 sum_i log(alpha / (lam_i + alpha))
        - n/2 log(rest + sum_i T_i^2 alpha / (lam_i + alpha)).

The prior probabilities of a few penalties are those that make all outputs together most likely, by
the EM algorithm (empirical Bayes). If all outputs prefer one penalty, it has probability one, and
the result is ordinary ridge regression; if outputs differ, each one is shrunk by its own amount.
The training samples alone determine the probabilities, so that held-out errors of the result are
those of new samples.

References
----------
B. Efron (2010). Large-Scale Inference: Empirical Bayes Methods for Estimation, Testing, and
Prediction. Cambridge University Press.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .namespace import Array, asarray_like, namespace_of, to_numpy
from .spectral import varies
from .tensor import unfold

__all__ = ["average_of_penalties", "posterior_of_penalties"]

# Iterations of the EM algorithm.
_ITERATIONS = 30
# Share of the sum of squares of an output that is noise at least; above rounding errors.
_NOISE = 1e-12


def average_of_penalties(problem: Any, alphas: Sequence[float]) -> tuple[Array, np.ndarray]:
    """Return ridge regression that averages penalties for each output.

    Parameters
    ----------
    problem : Spectral
    alphas : sequence of float
        Penalties.

    Returns
    -------
    W : array of shape (r, d1, ..., dp)
        Coefficients of the features ``X basis``.
    traces : array of shape (d1, ..., dp)
        Degrees of freedom of each output.
    """
    xp, s, T = namespace_of(problem.s), problem.s, unfold(problem.T, 0)
    shrink = xp.stack([(s / problem.root(alpha)) ** 2 for alpha in alphas], axis=1)
    chances = posterior_of_penalties(problem, alphas)
    W = T * ((shrink / s[:, None]) @ asarray_like(chances, s, dtype=s.dtype))
    traces = to_numpy(xp.sum(shrink, axis=0)) @ chances
    shape = tuple(problem.T.shape)
    return xp.reshape(W, shape), traces.reshape(shape[1:])


def posterior_of_penalties(problem: Any, alphas: Sequence[float]) -> np.ndarray:
    """Return the posterior probabilities of penalties for each output.

    Parameters
    ----------
    problem : Spectral
    alphas : sequence of float
        Penalties.

    Returns
    -------
    array of shape (n_alphas, D)
    """
    T = unfold(problem.T, 0)
    if len(alphas) == 1:
        return np.ones((1, T.shape[1]))
    xp, s = namespace_of(T), problem.s
    largest = xp.max(xp.abs(T), axis=0)
    largest = xp.where(largest > 0, largest, xp.ones_like(largest))
    squares = (T / largest) ** 2
    explained, rest = xp.sum(squares, axis=0), 0.0 * largest
    if problem.squares is not None:  # infinite if they overflow
        root = xp.sqrt(xp.reshape(problem.squares, (-1,))) / largest
        rest = xp.clip(xp.where(xp.isfinite(root), root * root, explained) - explained, 0.0, None)
    rest = rest + _NOISE * (rest + explained)
    weight = np.reshape(to_numpy(problem.weight), (-1,))
    n = np.maximum(weight - 1, s.shape[0])  # the mean takes one sample
    logs = []
    for alpha in alphas:
        kept = math.sqrt(alpha) / problem.root(alpha)
        noise = to_numpy(rest + (kept * kept) @ squares)
        known = np.log(noise, where=noise > 0, out=np.zeros_like(noise))
        logs.append(float(xp.sum(xp.log(kept))) - n / 2 * known)
    likelihood = np.exp(logs - np.max(logs, axis=0))
    # Outputs that are constant, up to rounding errors, or never observed have no preference.
    mean = xp.reshape(problem.mean_y, (-1,)) / largest
    informs = to_numpy(varies(rest + explained, mean, float(weight.max())))
    if problem.never is not None:
        informs &= ~np.reshape(problem.never, (-1,))
    likelihood[:, ~informs] = 1.0
    prior = np.full(len(alphas), 1 / len(alphas))
    some = likelihood[:, informs]
    for _ in range(_ITERATIONS if some.size else 0):
        prior = prior * (some @ (1 / (prior @ some))) / some.shape[1]
    chances = prior[:, None] * likelihood
    return chances / chances.sum(axis=0)
