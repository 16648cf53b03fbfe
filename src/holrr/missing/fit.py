"""Linear fits to samples in memory with missing outputs."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..core.approximate import MultilinearRank, Structure
from ..core.checks import SAME_OUTPUTS, BadEntryError, check_finite
from ..core.fit import Fit, fit_approximation, lift
from ..core.mixture import Mixture
from ..core.namespace import is_numpy_array, namespace_of, row_blocks
from ..core.spectral import Whitened
from ..core.warn import warn
from ..data.validation import Samples
from ..streaming.chunks import Chunks
from .completion import Completion, complete_structure
from .known import KnownOutputs, known_outputs_of
from .observed import Observed, SampleBasis, has_observation

__all__ = ["check_no_infinity", "check_not_response", "check_same_missing", "complete_outputs"]
__all__ += ["drop_unobserved", "fit_missing", "has_missing", "warn_of_rounds"]

_BLOCK = 2**22  # bytes of outputs that are examined together


def has_missing(data: Samples) -> bool:
    """Return whether any output is NaN; raise a TypeError if y is then not a NumPy array."""
    xp, Y = namespace_of(data.Y), data.Y
    rows = row_blocks(Y.shape[0], 8 * math.prod(Y.shape[1:]), _BLOCK)
    with np.errstate(over="ignore", invalid="ignore"):
        doubtful = (part for part in rows if not math.isfinite(float(xp.sum(Y[part, ...]))))
        if not any(bool(xp.any(xp.isnan(Y[part, ...]))) for part in doubtful):
            return False
    if not is_numpy_array(Y):
        raise TypeError(
            f"missing='ignore' needs NumPy arrays if outputs are missing; y is a "
            f"{type(Y).__module__}.{type(Y).__name__}. Convert X and y to NumPy arrays."
        )
    return True


def check_no_infinity(data: Samples) -> None:
    """Raise a `BadEntryError` with the position of the first infinite output."""
    check_finite(np.where(np.isnan(data.Y), 0.0, data.Y), "y")


def drop_unobserved(data: Samples) -> tuple[Samples, int]:
    """Return samples with weight and an observed output, and the number of fully missing ones."""
    n_dropped, keep = data.n_samples - int(has_observation(data.Y).sum()), _kept(data)
    if n_dropped == data.n_samples:
        raise ValueError("y has no observed entry: all entries are missing.")
    if not keep.any():
        raise ValueError("sample_weight is zero for every sample of y with an observed entry.")
    return data if keep.all() else data.rows(np.flatnonzero(keep)), n_dropped


def _kept(data: Samples) -> Any:
    observed = has_observation(data.Y)
    return observed if data.w is None else observed & (data.w > 0)


# ---------------------------------------------------------------- fits


def fit_missing(
    data: Samples,
    structure: Structure,
    alpha: float,
    fit_intercept: bool = True,
    pilot: tuple[Structure, float] | None = None,
) -> Fit:
    """Fit coefficients to the observed outputs.

    Parameters
    ----------
    data : Samples
        Samples of NumPy arrays of ordinary size, as returned by `drop_unobserved`.
    structure : Structure
    alpha : float
    fit_intercept : bool
    pilot : pair of Structure and float, optional
        For a mixture: structure and penalty of the model that imputes missing entries.

    Returns
    -------
    Fit
    """
    imputing, penalty = pilot or (structure, alpha)
    found = complete_samples(data, imputing, penalty, fit_intercept)
    if not found.converged:
        warn_of_rounds(structure, found.n_iter)
    fit = fit_approximation(found.problem, found.found, fit_intercept)
    if isinstance(structure, Mixture):
        problem = found.imputed().at(alpha)
        mixed = structure.approximate(problem, data.n_features)
        fit = replace(
            fit_approximation(problem, mixed, fit_intercept),
            objective=found.objective_of(mixed, alpha),
            lower_bound=math.nan,
            rss_root=fit.rss_root,
            weight=fit.weight,
        )
    return replace(fit, n_iter=found.n_iter)


def warn_of_rounds(structure: Structure, n_iter: int) -> None:
    """Warn that a fit stopped before it converged."""
    remedy = "Increase alpha, or lower the rank."
    if isinstance(structure, MultilinearRank):
        remedy = "Increase alpha, lower the rank, or increase max_iter or tol of HOLRR."
    warn(
        f"The fit to the observed entries of y did not converge in {n_iter} rounds: its "
        f"predictions for missing entries may still change. {remedy}",
        ConvergenceWarning,
    )


def check_not_response(structure: Structure) -> None:
    """Raise a ValueError for subspaces="response", which needs complete outputs."""
    if structure.needs_response_grams:
        raise ValueError(
            "subspaces='response' needs complete outputs, but y has missing values; use "
            "subspaces='fitted'."
        )


def complete_samples(
    data: Samples, structure: Structure, alpha: float, fit_intercept: bool
) -> Completion:
    """Fit a structure to scaled samples that all have an observed output."""
    basis = SampleBasis.from_arrays(data.X, data.w, alpha, fit_intercept=fit_intercept)
    found = complete_structure(Observed(basis, data.Y), alpha, structure, data.n_features)
    return replace(found, problem=_with_observed_residuals(found, data))


def _with_observed_residuals(found: Completion, data: Samples) -> Whitened:
    """Return the problem with the residual squares and the weights of observed entries."""
    problem = found.problem
    coef, mean = lift(found.found.tucker, problem), np.nan_to_num(problem.mean_y)
    squares, weights = np.zeros((2, *data.output_shape))
    for rows in row_blocks(data.n_samples, 8 * math.prod(data.output_shape), _BLOCK):
        residual = data.Y[rows] - mean - coef.map_input(data.X[rows] - problem.mean_x)
        w = np.ones(len(residual)) if data.w is None else data.w[rows]
        seen = ~np.isnan(residual)
        squares += np.tensordot(w, np.where(seen, residual, 0.0) ** 2, 1)
        weights += np.tensordot(w, seen, 1)
    return replace(problem, residuals=squares, weight=weights)


# ---------------------------------------------------------------- batches


def complete_outputs(
    data: Samples | Chunks,
) -> tuple[Samples, np.ndarray | None] | tuple[Chunks, np.ndarray | None]:
    """Replace outputs that are missing in every sample by zeros.

    Parameters
    ----------
    data : Samples or Chunks

    Returns
    -------
    data : Samples or Chunks
        Complete data. Samples without any observed output are left out.
    missing : array of bool, of shape (d1, ..., dp), or None
        Mask of the replaced outputs; None if no output is missing.

    Raises
    ------
    BadEntryError
        If an output is missing in some samples only.
    """
    if isinstance(data, Samples):
        return _complete_samples(data) if has_missing(data) else (data, None)
    _, known = known_outputs_of(data, keep_grid=True)
    if known is None:
        return data, None
    missing = known.all_never
    whole = KnownOutputs.in_place(missing)
    return data.with_outputs(whole.check_block, missing.shape), missing


def _complete_samples(given: Samples) -> tuple[Samples, np.ndarray | None]:
    data = drop_unobserved(given)[0]
    never = np.isnan(data.Y).all(axis=0)
    Y = np.where(never, np.zeros((), data.Y.dtype), data.Y)
    try:
        check_finite(Y, "y")
    except BadEntryError as error:  # report the position among all samples of the batch
        if error.what == "NaN":
            what = "NaN for an output that is observed in other samples"
            error = BadEntryError("y", what, error.index, SAME_OUTPUTS)
        raise error.moved(np.flatnonzero(_kept(given))) from None
    return replace(data, Y=Y), never if never.any() else None


def check_same_missing(missing: np.ndarray | None, before: np.ndarray) -> None:
    """Raise an error if a batch lacks other outputs than earlier batches."""
    never = np.zeros((), dtype=bool) if missing is None else missing
    if np.any(before != never):
        where = tuple(int(i) for i in np.argwhere(before != never)[0])
        raise ValueError(
            f"y of this batch must lack the same outputs as earlier batches; output {where} is "
            f"missing either in this batch only or in earlier batches only. Load all samples and "
            f"call fit."
        )
