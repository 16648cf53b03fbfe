"""Choice of a penalty for each output of ridge regression, by its held-out errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..core.fit import fit_by_output
from ..core.namespace import to_numpy
from ..core.tensor import unfold
from ..linear.fit import LinearOptions
from .intervals import calibrate, own_noise
from .search import Choice, Found, SearchOptions, n_parallel, over_folds, scaled_penalties
from .sources import Problems

__all__ = ["choose_by_output"]


def choose_by_output(
    problems: Problems,
    found: Found,
    options: SearchOptions,
    fit_options: Callable[[Choice], LinearOptions],
) -> Found:
    """Choose the best penalty of each output, given the search for a common penalty.

    Parameters
    ----------
    problems : Problems
        Problems of all folds.
    found : Found
        Result of the search for a common penalty.
    options : SearchOptions
        Parameters of the search.
    fit_options : callable
        Function from a choice to the options of its fit.
    """
    alphas, candidate = found.results["alphas"], found.choice.candidate
    scaled, shape = scaled_penalties(alphas, problems), problems.shape[1:]
    problems.open(candidate)
    n_jobs = n_parallel(problems, options.n_jobs)

    def errors(fold: int) -> tuple[np.ndarray, float]:
        kept = problems.at(fold, candidate, float(scaled.min()))
        problem, held_out = kept.problem.spectral, kept.held_out
        T, B = (to_numpy(unfold(A, 0)) for A in (problem.T, held_out.B))
        s, C = to_numpy(problem.s), to_numpy(held_out.C)
        gains = []
        for alpha in scaled:
            V = T * (s / (s * s + alpha))[:, None]  # coefficients of the held-out features
            gains.append(np.einsum("ij,ij->j", V, C @ V - 2 * B))
        return np.stack(gains) / held_out.size, held_out.yy / held_out.size

    parts = over_folds(problems.n_folds, errors, n_jobs)
    gains = np.mean([gain for gain, _ in parts], axis=0)  # (n_alphas, D), minus the null error
    best = np.argmin(gains, axis=0)
    error = float(np.take_along_axis(gains, best[None], axis=0).sum())
    error += float(np.mean([null for _, null in parts]))
    by_output = scaled[best].reshape(shape)

    def residuals(fold: int) -> Any:
        problem = problems.at(fold, candidate, float(scaled.min())).problem
        fit = fit_by_output(problem.spectral, by_output, options.fit_intercept)
        return problems.residuals(fold, problem, fit)

    alpha = alphas[best].reshape(shape) if shape else float(alphas[best[0]])
    choice = replace(found.choice, alpha=alpha, error=error)
    fit = problems.refit(candidate, fit_options(choice))
    own = own_noise(fit) / problems.y_unit
    by_fold = over_folds(problems.n_folds, residuals, n_jobs)
    calibration = calibrate(by_fold, shape, own)
    return replace(found, choice=choice, fit=fit, calibration=calibration)
