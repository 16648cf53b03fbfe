"""Information criteria: penalties and ranks from one decomposition of all the data, no folds.

With n = (sum of weights) x (number of outputs) observations, RSS the residual sum of squares and df
the degrees of freedom of a model,

    aic = n log(RSS / n) + 2 df
    bic = n log(RSS / n) + log(n) df
    gcv = (RSS / n) / (1 - df / n)^2 .

A model of multilinear rank R has as many parameters as the set of tensors of that rank has
dimensions (`n_parameters`, with the number r of input directions that the data support in the place
of the number of features). The penalty shrinks them by the share that it leaves of the input
directions, ``sum(lam / (lam + alpha)) / r``; the intercept adds one for each output. So df is the
dimension of the model at alpha = 0, and that of ridge regression, ``D sum(lam / (lam + alpha))``,
at full rank.

References
----------
G. H. Golub, M. Heath, G. Wahba (1979). Generalized cross-validation as a method for choosing a good
ridge parameter. Technometrics 21(2), 215-223.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.namespace import to_numpy
from ..core.results import Results
from ..core.spectral import Spectral
from .grid import parameter_counts
from .search import (
    SearchOptions,
    default_penalties,
    plan_ranks,
    scaled_penalties,
)
from .surface import HeldOut, error_surface, rank_path

__all__ = ["CRITERIA", "criterion_results", "degrees_of_freedom"]


CRITERIA: dict[str, Callable[[np.ndarray, np.ndarray, float], np.ndarray]] = {
    "aic": lambda mse, df, n: n * np.log(mse) + 2 * df,
    "bic": lambda mse, df, n: n * np.log(mse) + math.log(n) * df,
    "gcv": lambda mse, df, n: mse / (1 - df / n) ** 2,
}


def criterion_results(folds: Any, options: SearchOptions) -> Results:
    """The criterion, the training error and the degrees of freedom of every candidate.

    Parameters
    ----------
    folds : Folds
    options : SearchOptions

    Returns
    -------
    dict
        Three arrays of shape (n_alphas, R0, ..., Rp), with an axis for named candidates before
        them: the criterion under its name, ``train_mse`` and ``degrees_of_freedom``. Also
        ``n_observations``, ``alphas`` and ``n_parameters``. In the units of the scaled data.
    """
    alphas = default_penalties(folds) if options.alphas is None else options.alphas
    scaled = scaled_penalties(alphas, folds)
    grid, _ = plan_ranks(folds, options, alphas.size)
    mse = np.empty((folds.n_candidates, len(alphas), *grid.caps))
    df = np.empty_like(mse)
    n, supported, key = 1.0, 1, options.criterion
    for candidate in range(folds.n_candidates):
        problem, weight = folds.full_problem(candidate, float(scaled.min()))
        data = HeldOut.of_training(problem, weight)
        path = rank_path(problem, data, grid.caps, options.subspaces)
        # Scaled moments are worth fewer samples than their weights add up to, or more.
        n, floor = problem.density * data.size, np.finfo(float).eps * data.yy / data.size
        error_surface(path, data, scaled, grid.caps, out=mse[candidate])
        # A fit that is exact up to rounding has no logarithm: its error is that of the rounding.
        np.maximum(mse[candidate], max(floor, np.finfo(float).tiny), out=mse[candidate])
        df[candidate] = degrees_of_freedom(problem, scaled, grid.caps, options.fit_intercept)
        supported = max(supported, problem.s.shape[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.where(df < n, CRITERIA[key](mse, df, n), np.inf)
    if key != "gcv":  # logarithms of the squares of the user's data
        values += 2 * n * math.log(folds.y_unit)
    cut = (slice(None), slice(None), *((slice(supported),) if grid.caps else ()))
    grid, axis = grid.within_input_rank(supported), slice(None) if options.named_candidates else 0
    results: dict[str, Any] = {key: values, "train_mse": mse, "degrees_of_freedom": df}
    for name, surface in results.items():
        if (mask := grid.mask()) is not None:
            surface[cut][..., ~mask] = np.nan
        results[name] = surface[cut][axis]
    n_parameters = parameter_counts(folds.shape, grid.caps)
    return Results(results, n_observations=n, alphas=alphas, n_parameters=n_parameters)


def degrees_of_freedom(
    problem: Spectral, alphas: np.ndarray, caps: tuple[int, ...], fit_intercept: bool
) -> np.ndarray:
    """Degrees of freedom for each penalty and rank, of shape (n_alphas, R0, ..., Rp)."""
    s = to_numpy(problem.s)
    outputs = tuple(problem.T.shape[1:])
    # Ranks beyond the supported directions are those directions' models.
    inside = (min(caps[0], s.size), *caps[1:]) if caps else ()
    count = parameter_counts((s.size, *outputs), inside)
    if inside != caps:
        count = np.pad(count, [(0, caps[0] - s.size)] + [(0, 0)] * (len(caps) - 1), mode="edge")
    share = np.array([np.sum(1 / (1 + alpha / s / s)) / s.size for alpha in alphas])
    return np.multiply.outer(share, count) + (math.prod(outputs) if fit_intercept else 0)
