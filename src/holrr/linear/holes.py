"""Linear fits to outputs with missing entries, and to outputs with weights of their own.

Both come between the door and the problem: samples without anything observed are left out, outputs
are scaled by the roots of their weights, and what is fitted is scaled back.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..base import lift
from ..core.caution import warn
from ..core.finite import BadEntryError, check_finite
from ..core.holes import Observed, SampleBasis, has_observation
from ..core.missing import Completion
from ..core.namespace import asarray_like, is_numpy_array, namespace_of, row_blocks
from ..core.output_weights import check_output_weight, scale_outputs, unscale
from ..core.spectral import Whitened
from ..data.samples import Samples
from ..data.take_labels import take_output_weight
from ..structures import MultilinearRank

__all__ = ["check_no_infinity", "check_unobserved", "complete_samples", "has_holes", "observe"]
__all__ += ["output_weights", "set_completion", "unscale_fit", "unscale_noise", "weighted"]
__all__ += ["without_unobserved"]

_BLOCK = 2**22  # bytes of outputs that are looked at at a time


# ---------------------------------------------------------------- missing outputs


def has_holes(data: Samples) -> bool:
    """Whether any output is NaN, as far as has to be looked; an error where NumPy has it not."""
    xp, Y = namespace_of(data.Y), data.Y
    rows = row_blocks(Y.shape[0], 8 * math.prod(Y.shape[1:]), _BLOCK)
    with np.errstate(over="ignore", invalid="ignore"):
        doubtful = (part for part in rows if not math.isfinite(float(xp.sum(Y[part, ...]))))
        if not any(bool(xp.any(xp.isnan(Y[part, ...]))) for part in doubtful):
            return False
    if not is_numpy_array(Y):
        raise TypeError(
            f"missing='fill' needs NumPy arrays where outputs are missing; y is a "
            f"{type(Y).__module__}.{type(Y).__name__}. Convert X and y first."
        )
    return True


def check_no_infinity(data: Samples) -> None:
    """An error that says where an output is infinite."""
    check_finite(np.where(np.isnan(data.Y), 0.0, data.Y), "y")


def observe(data: Samples) -> tuple[Samples, int]:
    """The samples that have a weight and an observed output, and how many have no such output."""
    n_dropped, keep = data.n_samples - int(has_observation(data.Y).sum()), _kept(data)
    if n_dropped == data.n_samples:
        raise ValueError("y has no observed entry: every one of them is missing.")
    if not keep.any():
        raise ValueError("sample_weight is zero for every sample of y with an observed entry.")
    return data if keep.all() else data.rows(np.flatnonzero(keep)), n_dropped


def _kept(data: Samples) -> Any:
    observed = has_observation(data.Y)
    return observed if data.w is None else observed & (data.w > 0)


def without_unobserved(estimator: Any, given: Samples) -> tuple[Samples, np.ndarray]:
    """Samples with zeros for the outputs that none of them has, and which these are, (d1, ...).

    Zeros cost nothing where the outputs are free of each other given the latent inputs. A low
    multilinear rank ties them, and whole slices of zeros are all that costs nothing.
    """
    data = observe(given)[0]
    never = np.isnan(data.Y).all(axis=0)
    modes = [np.arange(never.ndim) != mode for mode in range(never.ndim)]
    some = [(~never).any(axis=tuple(np.flatnonzero(other))) for other in modes]
    slices = ~reduce(np.multiply.outer, some, np.True_)
    if isinstance(estimator, MultilinearRank) and (slices != never).any():
        where = tuple(int(i) for i in np.argwhere(slices != never)[0])
        raise ValueError(
            f"y of this batch has no entry of output {where}, but others of the same slices. "
            f"Batches may lack whole slices only; load all samples and call fit."
        )
    Y = np.where(never, 0.0, data.Y)
    try:
        check_finite(Y, "y")
    except BadEntryError as error:  # its place among all samples of the batch
        raise error.moved(np.flatnonzero(_kept(given))) from None
    return replace(data, Y=Y), never


def check_unobserved(never: Any, before: Any) -> None:
    """A batch must lack the same outputs, if any, as those before."""
    if np.any(before != never):
        where = tuple(int(i) for i in np.argwhere(before != never)[0])
        raise ValueError(
            f"y of this batch must have no entry of the same outputs as the batches before; output "
            f"{where} is missing in one of them only. Load all samples and call fit."
        )


def complete_samples(estimator: Any, data: Samples) -> Completion:
    """Fit the estimator's structure to samples as `observe` gives them."""
    alpha = data.units.alpha(float(estimator.alpha))
    basis = SampleBasis.from_arrays(data.X, data.w, alpha, fit_intercept=estimator.fit_intercept)
    found = estimator._complete(Observed(basis, data.Y), alpha, data.n_features)
    return replace(
        found, problem=_observed_hat(replace(found.problem, units=data.units), found, data)
    )


def _observed_hat(problem: Whitened, found: Completion, data: Samples) -> Whitened:
    """The problem with residual squares and weights of what is observed."""
    coef, mean = lift(found.found.tucker, problem), np.nan_to_num(problem.mean_y)
    squares, weights = np.zeros((2, *data.output_shape))
    for rows in row_blocks(data.n_samples, 8 * math.prod(data.output_shape), _BLOCK):
        residual = data.Y[rows] - mean - coef.map_input(data.X[rows] - problem.mean_x)
        w = np.ones(len(residual)) if data.w is None else data.w[rows]
        seen = ~np.isnan(residual)
        squares += np.tensordot(w, np.where(seen, residual, 0.0) ** 2, 1)
        weights += np.tensordot(w, seen, 1)
    assert problem.hat is not None
    return replace(problem, hat=replace(problem.hat, residuals=squares, weight=weights))


def set_completion(estimator: Any, found: Completion) -> None:
    """Set the fitted attributes; warn where the fit has not converged."""
    estimator._set_fit(found.problem, found.found)
    estimator.n_iter_ = found.n_iter
    if found.converged:
        return
    rounds = "max_iter or tol, " if hasattr(estimator, "max_iter") else ""
    warn(
        f"the fit around the missing entries of y has not converged in {found.n_iter} rounds: what "
        f"it says of them may still change. Increase {rounds}alpha, or lower the rank.",
        ConvergenceWarning,
    )


# ---------------------------------------------------------------- weights of outputs


def output_weights(estimator: Any, shape: Sequence[int]) -> tuple[np.ndarray, ...] | None:
    """The weights of an estimator's outputs, one vector of mean one for each mode, or None.

    A common factor of error and penalty has no effect.
    """
    if estimator.output_weight is None:
        return None
    given = take_output_weight(estimator.output_weight, estimator.labels_)
    return tuple(v / v.mean() for v in check_output_weight(given, shape))


def weighted(data: Samples, weights: Sequence[np.ndarray] | None) -> Samples:
    """The samples with outputs times the roots of their weights."""
    return data if weights is None else replace(data, Y=scale_outputs(data.Y, weights))


def unscale_fit(estimator: Any, weights: Sequence[np.ndarray] | None) -> None:
    """Coefficients and intercept of the outputs themselves, in place of those of scaled ones."""
    if weights is None:
        return
    core, intercept = estimator.tucker_.core, estimator.intercept_
    coef, intercept = unscale(estimator.tucker_, intercept, weights)
    estimator.tucker_ = coef.astype(core.dtype)
    if hasattr(estimator, "noise_"):
        estimator.noise_ = unscale_noise(estimator.noise_, weights)
    estimator.intercept_ = namespace_of(intercept).astype(intercept, core.dtype)


def unscale_noise(noise: Any, weights: Sequence[np.ndarray]) -> Any:
    """Noise of the outputs themselves from that of scaled ones; NaN where they have no weight."""
    xp = namespace_of(noise)
    v = asarray_like(reduce(np.multiply.outer, weights), noise)
    nan = xp.full_like(noise, math.nan)
    return xp.where(
        v > 0, xp.astype(noise / xp.sqrt(xp.where(v > 0, v, 1 + 0 * v)), noise.dtype), nan
    )
