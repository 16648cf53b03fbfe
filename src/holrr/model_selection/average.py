"""Averages over all ranks, which by nestedness are a soft mask on one core.

The fits of all ranks at one penalty keep leading blocks of the same core. So their weighted mean is
the full fit with each entry of its core multiplied by the sum of the weights of the ranks that keep
it. The weights fall with the held-out error,

    weight of R  proportional to  exp(-(mse_R - mse_min) / (t mse_min)) ,

and the temperature t is itself chosen by held-out error: each fold judges, exactly, the averages
whose weights come from the other folds. At t = 0, which is among the candidates, all the weight is
on the best rank.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..core.approximate import Approximation
from ..core.namespace import asarray_like, namespace_of
from ..core.tucker import Tucker
from .folds import Folds
from .surface import masked_errors

__all__ = ["TEMPERATURES", "core_mask", "criterion_weights", "cross_validated_weights"]
__all__ += ["masked", "rank_weights", "trimmed"]

# From the best rank alone to all that are within some percent of it, in half decades.
TEMPERATURES = (0.0, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)


def cross_validated_weights(
    folds: Folds, fold_mse: np.ndarray, candidate: tuple[int, ...], alpha: float, subspaces: str
) -> tuple[np.ndarray, float]:
    """Weights of all ranks, of shape (R0, ..., Rp), and the held-out error of such an average.

    Parameters
    ----------
    folds : Folds
    fold_mse : array of shape (n_folds, R0, ..., Rp)
        At the chosen penalty.
    candidate : tuple of int
        Which of the candidates beside the penalties.
    alpha : float
    subspaces : {"fitted", "response"}
    """
    errors = np.zeros(len(TEMPERATURES))
    for fold in range(len(fold_mse)):
        # A single fold has to judge its own weights.
        others = [k for k in range(len(fold_mse)) if k != fold] or [fold]
        mse = fold_mse[others].mean(axis=0)
        masks = (core_mask(rank_weights(mse, t)) for t in TEMPERATURES)
        problem, held_out = folds.problem(fold, *candidate)
        errors += masked_errors(problem, held_out, alpha, masks, subspaces=subspaces)
    best = int(np.argmin(errors))
    weights = rank_weights(fold_mse.mean(axis=0), TEMPERATURES[best])
    return weights, float(errors[best] / len(fold_mse))


def rank_weights(mse: np.ndarray, temperature: float) -> np.ndarray:
    """Weights that fall with the error and add up to one; none for what is NaN.

    Parameters
    ----------
    mse : array of shape (R0, ..., Rp)
    temperature : float
        Relative to the least error.
    """
    least = np.nanmin(mse)
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = np.where(mse <= least, 1.0, np.exp(-(mse - least) / (temperature * least)))
    return _normalised(weights, mse)


def criterion_weights(values: np.ndarray, criterion: str, n: float) -> np.ndarray:
    """Akaike weights ``exp(-(value - least) / 2)``; for gcv those of ``n log(gcv)``."""
    if criterion == "gcv":
        values = n * np.log(values)
    return _normalised(np.exp(-(values - np.nanmin(values)) / 2), values)


def _normalised(weights: np.ndarray, mse: np.ndarray) -> np.ndarray:
    weights = np.where(np.isfinite(mse), weights, 0.0)
    return weights / weights.sum()


def core_mask(weights: np.ndarray) -> np.ndarray:
    """For each entry of the core the sum of the weights of all ranks that keep it."""
    for axis in range(weights.ndim):
        weights = np.flip(np.cumsum(np.flip(weights, axis), axis=axis), axis)
    return weights


def trimmed(mask: np.ndarray, negligible: float = 1e-6) -> np.ndarray:
    """The leading block of a mask outside of which it is negligible."""
    where = np.nonzero(mask > negligible)
    return mask[tuple(slice(int(index.max()) + 1) for index in where)]


def masked(approximate: Callable[..., Approximation], mask: np.ndarray) -> Callable:
    """The function `approximate`, with the core of what it finds multiplied by a mask."""

    def approximate_and_mask(*args: Any) -> Approximation:
        found = approximate(*args)
        core = found.tucker.core
        xp = namespace_of(core)
        m = mask[tuple(slice(R) for R in core.shape[: mask.ndim])]
        m = m.reshape(m.shape + (1,) * (core.ndim - m.ndim))
        kept = core * asarray_like(m, core)
        lost = core - kept
        return replace(
            found,
            tucker=Tucker(kept, found.tucker.factors),
            error=found.error + float(xp.sum(lost * lost)),
        )

    return approximate_and_mask
