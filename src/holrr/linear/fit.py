"""Linear fits: from samples, streams or moments to a `Fit`.

The way is the same for all structures: whiten the data (`core.spectral`), approximate the whitened
tensor and map it back (`core.fit.solve`), and undo weights and units.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..core.finite import BadEntryError
from ..core.fit import Fit, scaled_alpha, solve
from ..core.output_weights import check_output_weight, scale_outputs
from ..core.spectral import check_moments, whiten_arrays, whiten_moments
from ..core.structures import Structure
from ..core.threads import few_threads_for
from ..data.labels import Labels
from ..data.unlabel import unlabel_output_weight
from ..data.validation import Samples
from ..missing.fit import check_no_infinity, drop_unobserved, fit_missing, has_missing
from ..streaming.moments import Moments
from ..streaming.problems import whiten_stream
from ..streaming.stream import Stream

__all__ = ["LinearOptions", "check_linear_moments", "fit_data", "fit_moments", "output_weights"]
__all__ += ["refuse_output_weight", "weighted"]


@dataclass(frozen=True, eq=False)
class LinearOptions:
    """Parameters of a linear fit, apart from its data.

    Parameters
    ----------
    structure : Structure
    alpha : float
    fit_intercept : bool
    solver : {"auto", "cholesky", "eigh", "svd"}
    ignore_missing : bool
        Whether missing outputs are left out of the objective; if not, they are an error.
    """

    structure: Structure
    alpha: float
    fit_intercept: bool = True
    solver: str = "auto"
    ignore_missing: bool = False


def fit_data(
    data: Samples | Stream,
    options: LinearOptions,
    weights: Sequence[np.ndarray] | None = None,
    *,
    mask: np.ndarray | None = None,
    pilot: tuple[Structure, float] | None = None,
) -> tuple[Fit, int]:
    """Fit a model to validated data.

    Parameters
    ----------
    data : Samples or Stream
    options : LinearOptions
    weights : sequence of p arrays of shape (d_i,), optional
        Weights of the outputs, see `output_weights`.
    mask, pilot
        As in `fit_missing`: a mixture of ranks.

    Returns
    -------
    fit : Fit
    n_dropped : int
        Number of samples without any observed output, where missing outputs are ignored.
    """
    structure, n_dropped = options.structure, 0
    if isinstance(data, Stream):
        problem = whiten_stream(
            data,
            options.alpha,
            solver=options.solver,
            fit_intercept=options.fit_intercept,
            response_grams=structure.needs_response_grams,
        )
        intercept = options.fit_intercept
        with few_threads_for(data.n_features**2 * math.prod(data.output_shape)):
            fit = solve(problem, structure, data.n_features, fit_intercept=intercept, mask=mask)
        return fit.rescaled(1.0, 1.0), 0
    given = weighted(data, weights)
    if options.ignore_missing:
        if has_missing(given):
            some, n_dropped = drop_unobserved(given)
            if has_missing(some):
                intercept, alpha = options.fit_intercept, options.alpha
                try:
                    fit = fit_missing(
                        some, structure, alpha, fit_intercept=intercept, mask=mask, pilot=pilot
                    )
                except BadEntryError:
                    check_no_infinity(given)  # its position among all samples
                    raise
                return fit.unweighted(weights), n_dropped
            given = some
    return _fit_samples(given, options, mask).unweighted(weights).to_device_of(data.X), n_dropped


def _fit_samples(data: Samples, options: LinearOptions, mask: np.ndarray | None) -> Fit:
    """Fit a model to complete samples in memory."""
    structure = options.structure
    with few_threads_for(data.work):
        data = data.to_host_if_small().scaled()
        problem = whiten_arrays(
            data.X,
            data.Y,
            data.w,
            scaled_alpha(options.alpha, data.x_unit),
            solver=options.solver,
            fit_intercept=options.fit_intercept,
            response_grams=structure.needs_response_grams,
        )
        with few_threads_for(data.n_features**2 * math.prod(data.output_shape)):
            fit = solve(
                problem,
                structure,
                data.n_features,
                fit_intercept=options.fit_intercept,
                mask=mask,
            )
    return fit.rescaled(data.x_unit, data.y_unit)


def fit_moments(moments: Moments, options: LinearOptions, mask: np.ndarray | None = None) -> Fit:
    """Fit a model to moments.

    Parameters
    ----------
    moments : Moments
    options : LinearOptions
    mask : array of shape (R0, ...), optional
        Multiplies the core: a mixture of the fits of many ranks.
    """
    structure = options.structure
    check_linear_moments(moments, structure, options.solver)
    with few_threads_for(moments.n_features * math.prod(moments.Sxy.shape)):
        centred = moments.centred(options.fit_intercept)
        problem = whiten_moments(centred, options.alpha, solver=options.solver)
        fit = solve(
            problem, structure, moments.n_features, fit_intercept=options.fit_intercept, mask=mask
        )
    return fit.rescaled(1.0, 1.0)


def check_linear_moments(moments: Moments, structure: Structure, solver: str) -> None:
    """Raise where moments lack what a fit needs, or parameters do not suit them."""
    if structure.needs_response_grams and moments.response_grams is None:
        raise ValueError(
            "subspaces='response' needs moments that were gathered with response_grams=True."
        )
    check_moments(moments, solver)
    structure.check(moments.n_features, moments.output_shape)


# ---------------------------------------------------------------- weights of outputs


def output_weights(
    output_weight: Any, shape: Sequence[int], labels: Labels | None
) -> tuple[np.ndarray, ...] | None:
    """Weights of outputs as one vector of mean one for each mode, or None.

    A common factor of error and penalty has no effect.
    """
    if output_weight is None:
        return None
    given = unlabel_output_weight(output_weight, labels)
    return tuple(v / v.mean() for v in check_output_weight(given, shape))


def weighted(data: Samples, weights: Sequence[np.ndarray] | None) -> Samples:
    """Samples with outputs times the roots of their weights."""
    return data if weights is None else replace(data, Y=scale_outputs(data.Y, weights))


def refuse_output_weight(output_weight: Any, what: str) -> None:
    """Raise for weights of outputs that come as moments or streams."""
    if output_weight is not None:
        raise ValueError(
            f"output_weight needs samples in memory and cannot be used with {what}; multiply y by "
            f"the square roots of the weights before, and divide the predictions by them."
        )
