"""Information criteria, which choose penalty and rank from one decomposition of all data.

With n = (sum of weights) x (number of outputs) observations, RSS the residual sum of squares and df
the degrees of freedom of a model,

    aic = n log(RSS / n) + 2 df
    bic = n log(RSS / n) + log(n) df
    gcv = (RSS / n) / (1 - df / n)^2 .

The number of parameters of a model of multilinear rank R is the dimension of the set of tensors of
this rank (`n_parameters`, with the number r of input directions that the data support in place of
the number of features). The penalty multiplies this number by the mean shrinkage factor of the
input directions, ``sum(lam / (lam + alpha)) / r``. The intercept adds one for each output. At
alpha = 0, df is therefore the dimension of the model. At full rank, df is that of ridge regression,
``D sum(lam / (lam + alpha))``.

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
    """Compute the criterion, the training error and the degrees of freedom of every candidate.

    Parameters
    ----------
    folds : Folds
        Folds. Only the problem of all data is used.
    options : SearchOptions
        Parameters of the search.

    Returns
    -------
    dict
        Three arrays of shape (n_alphas, R0, ..., Rp), with a first axis for named candidates: the
        criterion under its name, ``train_mse`` and ``degrees_of_freedom``. Also
        ``n_observations``, ``alphas`` and ``n_parameters``. ``train_mse`` and ``gcv`` are in the
        units of the scaled data, all other results in the units of the user's data.
    """
    alphas = default_penalties(folds) if options.alphas is None else options.alphas
    scaled = scaled_penalties(alphas, folds)
    grid = plan_ranks(folds, options, alphas.size)
    mse = np.empty((folds.n_candidates, len(alphas), *grid.caps))
    df = np.empty_like(mse)
    n, supported, key = 1.0, 1, options.criterion
    for candidate in range(folds.n_candidates):
        problem, weight = folds.full_problem(candidate, float(scaled.min()))
        data = HeldOut.of_training(problem, weight)
        path = rank_path(problem, data, grid.caps, options.subspaces)
        # For scaled moments, the effective number of samples differs from the sum of the weights.
        n, floor = problem.density * data.size, np.finfo(float).eps * data.yy / data.size
        error_surface(path, data, scaled, grid.caps, out=mse[candidate])
        # The logarithm of a zero error is infinite, so errors are at least the rounding error.
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
    """Return the degrees of freedom of all penalties and ranks, (n_alphas, R0, ..., Rp)."""
    s = to_numpy(problem.s)
    outputs = tuple(problem.T.shape[1:])
    # An input rank above the number of supported directions gives the same model as that number.
    inside = (min(caps[0], s.size), *caps[1:]) if caps else ()
    count = parameter_counts((s.size, *outputs), inside)
    if inside != caps:
        count = np.pad(count, [(0, caps[0] - s.size)] + [(0, 0)] * (len(caps) - 1), mode="edge")
    share = np.array([np.sum(1 / (1 + alpha / s / s)) / s.size for alpha in alphas])
    return np.multiply.outer(share, count) + (math.prod(outputs) if fit_intercept else 0)
