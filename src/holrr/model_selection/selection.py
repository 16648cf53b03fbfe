"""From an error surface to a model: the best, the simplest good one, or one's own.

The results are a dictionary with at least ``mean_mse`` and ``std_mse``, of shape (..., n_alphas,
R0, ..., Rp), ``n_parameters``, of shape (R0, ..., Rp), ``alphas``, and ``null_mse``, the error of
predicting the mean. Entries that are NaN are no candidates.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np

__all__ = ["SELECTIONS", "best_index", "one_standard_error", "select"]

Index = tuple[int, ...]

SELECTIONS = ("stack", "min", "1se")


def select(
    results: dict[str, Any],
    selection: str | Callable[..., Any],
    n_folds: int,
    key: str = "mean_mse",
) -> Index:
    """Index into the surface of the model that `selection` names.

    Parameters
    ----------
    results : dict
    selection : {"stack", "min", "1se"} or callable
        A callable gets the results and returns an index into the surface: a tuple, or an int
        into its flattened form. The place of a stack is that of "min", the best single model.
    n_folds : int
    key : str
        Which of the results is the surface to be minimised.
    """
    surface = results[key]
    if callable(selection):
        return _check_index(selection(results), surface)
    if selection == "1se":
        return one_standard_error(results, n_folds)
    return best_index(surface, results["n_parameters"], results.get("null_mse", 0.0))


def best_index(surface: np.ndarray, n_parameters: np.ndarray, scale: float = 0.0) -> Index:
    """The smallest entry; among those that rounding cannot tell apart, the smallest model.

    The rounding of the errors is that of what they are differences of, whose size is `scale`.
    """
    least = np.nanmin(surface)
    tied = surface <= least + 1e-12 * abs(least) + 1e-14 * scale
    return _first_of(tied, np.broadcast_to(n_parameters, surface.shape))


def one_standard_error(results: dict[str, Any], n_folds: int) -> Index:
    """The smallest model within a standard error of the best; of these the largest penalty.

    The standard error is that of the best model's mean over the folds. A rank above the product of
    the others has the parameters of a smaller one, which goes before it.
    """
    surface, count = results["mean_mse"], results["n_parameters"]
    best = best_index(surface, count, results.get("null_mse", 0.0))
    if n_folds < 2:
        raise ValueError(f"selection='1se' needs two folds at least; cv gave {n_folds}.")
    # std_mse divides by the number of folds, an estimate of the variance by one less.
    bound = surface[best] + results["std_mse"][best] / np.sqrt(n_folds - 1)
    ranks = np.ogrid[tuple(slice(1, n + 1) for n in count.shape)]
    beyond = sum((R * R > math.prod(ranks) for R in ranks), start=np.zeros(count.shape, bool))
    alphas = np.reshape(results["alphas"], (-1,) + (1,) * count.ndim)
    keys = (np.broadcast_to(key, surface.shape) for key in (count, beyond, -alphas, surface))
    return _first_of(surface <= bound, *keys)


def _first_of(among: np.ndarray, *keys: np.ndarray) -> Index:
    """Index of the entry of a mask that has the smallest keys, the first key first."""
    where = np.unravel_index(np.flatnonzero(among), among.shape)
    first = np.lexsort([key[where] for key in reversed(keys)])[0]
    return tuple(int(i[first]) for i in where)


def _check_index(index: Any, surface: np.ndarray) -> Index:
    try:
        flat = isinstance(index, Integral)
        place = np.unravel_index(int(index), surface.shape) if flat else index
        value = surface[tuple(int(i) for i in place)]
        if np.ndim(value):
            raise IndexError("too few entries")
    except (IndexError, TypeError, ValueError) as error:
        raise ValueError(
            f"the selection callable must return an int or a tuple that indexes the error surface "
            f"of shape {surface.shape}; got {index!r}."
        ) from error
    found = tuple(int(i) % n for i, n in zip(place, surface.shape, strict=True))
    if np.isnan(value):
        raise ValueError(
            f"the selection callable returned {found}, which is none of the candidates."
        )
    return found
