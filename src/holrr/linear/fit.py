"""Linear fits: from samples, streams or moments to a `Fit`.

All structures have the same steps: whiten the data (`core.spectral`), approximate the whitened
tensor (`core.approximate`), map it back to coefficients (`core.fit`), and undo weights and units.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..core.approximate import MultilinearRank, Structure
from ..core.fit import Fit, fit_approximation, fit_by_output, scaled_alpha
from ..core.input_map import InputDesign, InputMap
from ..core.mixture import Mixture
from ..core.moments import CentredMoments, weighted_mean
from ..core.namespace import Array, asarray_like, namespace_of, to_numpy
from ..core.output_weights import (
    check_output_weight,
    excluded_outputs,
    product_of,
    scale_outputs,
)
from ..core.spectral import (
    Spectral,
    Whitened,
    check_moments,
    spectral_from_moments,
    spectral_from_samples,
    whiten_arrays,
    whiten_moments,
)
from ..core.tensor import is_memory_mapped
from ..core.threads import few_threads_for
from ..data.labels import Labels
from ..data.unlabel import unlabel_output_weight
from ..data.validation import Samples
from ..missing.completion import complete_columns
from ..missing.fit import (
    check_no_infinity,
    check_not_response,
    drop_unobserved,
    fit_missing,
    has_missing,
    warn_of_rounds,
)
from ..missing.known import KnownOutputs, prepare, prepare_stream
from ..streaming.problems import spectral_from_stream, whiten_stream
from ..streaming.sparse import SparseStream
from ..streaming.stream import Stream
from .refine import refine_inputs

__all__ = [
    "RESPONSE_SUBSPACES",
    "LinearOptions",
    "check_linear_moments",
    "check_own_inputs",
    "fit_data",
    "fit_moments",
]
__all__ += ["refuse_output_weight", "weigh_outputs", "weighted"]


RESPONSE_SUBSPACES = (
    "{} cannot be combined with subspaces='response', which takes the output subspaces from all of "
    "y. Use subspaces='fitted', the default."
)
_COMPLETE_OUTPUTS = (
    "alpha as an array (one penalty for each output) needs complete outputs, but y has missing "
    "values. Fit the outputs with missing values separately."
)


@dataclass(frozen=True, eq=False)
class LinearOptions:
    """Parameters of a linear fit.

    Parameters
    ----------
    structure : Structure
        Structure of the coefficients.
    alpha : float, or array of shape (d1, ..., dp)
        Penalty. Only ridge regression accepts one penalty for each output.
    fit_intercept : bool
        Whether to fit an intercept.
    ignore_missing : bool
        Whether to leave missing outputs out of the objective. If False, they are an error.
    inputs : InputDesign or None
        Features to compute from the inputs; None uses the inputs themselves.
    never : array of bool, of shape (d1, ..., dp), optional
        Outputs that are never observed. They are zero in the data, which are otherwise complete.
    pilot : pair of Structure and float, optional
        Structure and penalty of the model that imputes missing outputs for a mixture.
    """

    structure: Structure
    alpha: Any
    fit_intercept: bool = True
    ignore_missing: bool = False
    inputs: InputDesign | None = None
    never: np.ndarray | None = None
    pilot: tuple[Structure, float] | None = None

    @property
    def min_alpha(self) -> float:
        """Smallest penalty of the fit."""
        if isinstance(self.structure, Mixture):
            return self.structure.min_alpha
        return float(np.min(self.alpha))

    def in_units(self, x_unit: float) -> LinearOptions:
        """Return the options for inputs divided by `x_unit`; `inputs` is not changed."""
        if x_unit == 1.0:
            return self
        structure, pilot = self.structure, self.pilot
        if isinstance(structure, Mixture):
            structure = structure.in_units(x_unit)
        if pilot is not None:
            pilot = pilot[0], scaled_alpha(pilot[1], x_unit)
        alpha = scaled_alpha(self.alpha, x_unit)
        return replace(self, structure=structure, alpha=alpha, pilot=pilot)

    def of_known(self, known: KnownOutputs, n_features: int, *, is_complete: bool) -> LinearOptions:
        """Return the options of a fit to known outputs."""
        inputs = self.inputs
        if inputs is not None and (inputs.own is not None or inputs.free is not None):
            what = "own" if inputs.own is not None else "alpha=0 for a block"
            raise ValueError(
                f"{what} cannot be used if some outputs are never observed and the data are "
                f"moments or are read in blocks. Drop these outputs from y."
            )
        if isinstance(self.alpha, np.ndarray):
            raise ValueError(_COMPLETE_OUTPUTS)
        fitting, pilot = known.structure(self.structure, n_features), self.pilot
        if pilot is not None:
            pilot = known.structure(pilot[0], n_features), pilot[1]
        never = known.never if is_complete else None
        return replace(self, structure=fitting, pilot=pilot, never=never)


def fit_data(
    data: Samples | Stream,
    options: LinearOptions,
    weights: Sequence[np.ndarray] | None = None,
) -> tuple[Fit, int]:
    """Fit a model to validated data.

    Parameters
    ----------
    data : Samples or Stream
        Validated data.
    options : LinearOptions
        Parameters of the fit.
    weights : sequence of p arrays of shape (d_i,), optional
        Weights of the outputs, see `weigh_outputs`.

    Returns
    -------
    fit : Fit
        Result of the fit.
    n_dropped : int
        Number of samples without any observed output, if missing outputs are ignored.
    """
    if isinstance(data, Stream):
        return _fit_stream(data, options, weights), 0
    if options.inputs is not None:
        return _fit_features(data, options, weights)
    if options.ignore_missing and has_missing(data):
        return _fit_incomplete(data, options, weights)
    fit = _fit_complete(data if weights is None else weighted(data, weights), options)
    if weights is not None:
        fit = fit.unweighted(weights)
    return (fit if type(fit.intercept) is type(data.X) else fit.to_device_of(data.X)), 0


def _fit_complete(data: Samples, options: LinearOptions) -> Fit:
    """Fit a model to samples whose outputs are complete, apart from outputs never observed."""
    with few_threads_for(data.work):
        scaled = (data if type(data.X) is np.ndarray else data.to_host_if_small()).scaled()
        options = options.in_units(scaled.x_unit)
        arrays = scaled.X, scaled.Y, scaled.w
        how: dict[str, Any] = {
            "fit_intercept": options.fit_intercept,
            "response_grams": options.structure.needs_response_grams,
        }
        if _needs_all_penalties(options):
            how["min_alpha"] = _least_alpha(options)
            fit = _fit_spectral(spectral_from_samples(*arrays, **how), options, data.n_features)
        else:
            problem = whiten_arrays(*arrays, options.alpha, **how)
            with few_threads_for(data.n_features**2 * math.prod(data.output_shape)):
                fit = _fit_problem(problem, options, data.n_features)
    return fit.rescaled(scaled.x_unit, scaled.y_unit)


def _needs_all_penalties(options: LinearOptions) -> bool:
    """Return whether the fit has several penalties: one for each output, or a mixture."""
    return isinstance(options.alpha, np.ndarray) or isinstance(options.structure, Mixture)


def _least_alpha(options: LinearOptions) -> float:
    """Return the smallest penalty of the fit and of the model that imputes outputs."""
    least = options.min_alpha if options.pilot is None else options.pilot[1]
    return min(least, options.min_alpha)


def _fit_spectral(spectral: Spectral, options: LinearOptions, n_features: int) -> Fit:
    """Fit a model with several penalties."""
    if isinstance(options.alpha, np.ndarray):
        return fit_by_output(spectral, options.alpha, options.fit_intercept)
    if options.never is not None:
        assert options.pilot is not None
        spectral = complete_columns(replace(spectral, never=options.never), *options.pilot)
    return _fit_problem(spectral.at(options.alpha), options, n_features)


def _fit_problem(problem: Whitened, options: LinearOptions, n_features: int) -> Fit:
    """Fit a model to a whitened problem."""
    if options.never is not None:
        check_not_response(options.structure)
        problem = replace(problem, never=options.never)
    found = options.structure.approximate(problem, n_features)
    fit = fit_approximation(problem, found, options.fit_intercept)
    if not found.converged:
        warn_of_rounds(options.structure, fit.n_iter)
    return fit


def _fit_incomplete(
    data: Samples,
    options: LinearOptions,
    weights: Sequence[np.ndarray] | None,
) -> tuple[Fit, int]:
    """Fit a model to samples with missing outputs."""
    check_no_infinity(data)
    if isinstance(options.alpha, np.ndarray):
        raise ValueError(_COMPLETE_OUTPUTS)
    some = prepare(data, weights, keep_grid=_is_multilinear(options.structure))
    if some.known is not None:
        options = options.of_known(some.known, data.n_features, is_complete=some.is_complete)
    if some.is_complete:
        fit = _fit_complete(some.samples, options)
    else:
        fit = fit_missing(
            some.samples,
            options.structure,
            options.alpha,
            options.fit_intercept,
            options.pilot,
        )
    return some.expand(fit), some.n_dropped


def _fit_features(
    data: Samples,
    options: LinearOptions,
    weights: Sequence[np.ndarray] | None,
) -> tuple[Fit, int]:
    """Fit a model to features of the inputs, and express the fit in the inputs themselves."""
    assert options.inputs is not None
    check_own_inputs(options)
    n_empty = 0
    if options.ignore_missing and has_missing(data):
        if options.inputs.free is not None:
            raise ValueError(
                "alpha=0 for a block of inputs needs complete outputs, but y has missing values. "
                "Give the block a small positive penalty."
            )
        check_no_infinity(data)
        data, n_empty = drop_unobserved(data)  # these samples must not influence the features
    scaled = data.scaled()
    Y = scaled.Y if weights is None else weighted(scaled, weights).Y
    design = options.inputs.in_units(1 / scaled.x_unit)
    features = design.from_samples(scaled.X, Y, scaled.w, options.fit_intercept)
    inner = _within_features(
        replace(options, inputs=None), data.n_features, features.n_features, data.output_shape
    )
    mean_x = _input_mean(scaled, options)
    if _refines_inputs(options) and not has_missing(scaled):
        fit, features = _refine_samples(replace(scaled, Y=Y), inner, features)
        fit = fit.lifted(features, mean_x).rescaled(scaled.x_unit, scaled.y_unit)
        return (fit if weights is None else fit.unweighted(weights)), 0
    own = features.own
    if own is not None and weights is not None:
        own = own.unweighted(product_of(weights))
        features = replace(features, own=own)
    fit, n_dropped = fit_data(features.samples(scaled), inner, weights)
    if own is not None:  # convert to the units of the user's data
        features = replace(features, own=own.rescaled(scaled.x_unit, scaled.y_unit))
    return fit.lifted(features, mean_x * scaled.x_unit), n_dropped + n_empty


def _input_mean(data: Samples, options: LinearOptions) -> Array:
    """Return the centre of the inputs, of shape (n_features,), which is zero without intercept."""
    if not options.fit_intercept:
        return namespace_of(data.X).zeros_like(data.X[0, :])
    return weighted_mean(data.X, data.w, data.weight)


def check_own_inputs(options: LinearOptions) -> None:
    """Raise an error if the structure does not support own inputs or unpenalised blocks."""
    inputs = options.inputs
    if inputs is None or (inputs.own is None and inputs.free is None):
        return
    if options.structure.needs_response_grams:
        what = "own" if inputs.own is not None else "alpha=0 for a block"
        raise ValueError(RESPONSE_SUBSPACES.format(what))


def _within_features(
    options: LinearOptions, n_inputs: int, n_features: int, output_shape: Sequence[int]
) -> LinearOptions:
    """Return the options of a fit to features; the input rank is at most their number."""
    structure = options.structure
    if not isinstance(structure, MultilinearRank):
        return options
    first, *others = structure.check(n_inputs, output_shape)
    first = first if isinstance(first, float) else min(first, n_features)
    return replace(options, structure=replace(structure, rank=(first, *others)))


def _refines_inputs(options: LinearOptions) -> bool:
    """Return whether the fit refines the directions of the input modes with the coefficients."""
    structure = options.structure
    return isinstance(structure, MultilinearRank) and structure.refine


def _refine_samples(
    data: Samples, options: LinearOptions, features: InputMap
) -> tuple[Fit, InputMap]:
    """Fit scaled samples, and refine the directions of the input modes."""
    alpha = scaled_alpha(options.alpha, data.x_unit)
    plain = replace(data, x_unit=1.0, y_unit=1.0)
    options = replace(options, alpha=alpha, ignore_missing=False)

    def moments_of(wanted: InputMap) -> CentredMoments:
        part = wanted.samples(plain)
        found = CentredMoments.from_checked(part.X, part.Y, part.w)
        return found.centred(options.fit_intercept)

    def refit(wanted: InputMap) -> Fit:
        return fit_data(wanted.samples(plain), options)[0]

    assert isinstance(options.structure, MultilinearRank)
    return refine_inputs(
        features,
        moments_of,
        refit,
        alpha,
        max_iter=options.structure.max_iter,
        tol=options.structure.tol,
    )


def _fit_stream(data: Stream, options: LinearOptions, weights: Sequence[np.ndarray] | None) -> Fit:
    """Fit a model to data that are read in blocks."""
    some = prepare_stream(
        data,
        weights,
        ignore_missing=options.ignore_missing,
        keep_grid=_is_multilinear(options.structure),
    )
    data = some.stream
    if some.known is not None:
        options = options.of_known(some.known, data.n_features, is_complete=True)
    grams = options.structure.needs_response_grams
    if options.inputs is None and _needs_all_penalties(options) and isinstance(data, SparseStream):
        how = {"fit_intercept": options.fit_intercept, "response_grams": grams}
        spectral = spectral_from_stream(data, min_alpha=_least_alpha(options), **how)
        return some.expand(_fit_spectral(spectral, options, data.n_features).rescaled(1.0, 1.0))
    if options.inputs is not None or _needs_all_penalties(options):
        fit = fit_moments(data.moments(options.structure.needs_response_grams), options)
        return some.expand(fit)
    problem = whiten_stream(
        data,
        options.alpha,
        fit_intercept=options.fit_intercept,
        response_grams=options.structure.needs_response_grams,
    )
    if options.never is not None and is_memory_mapped(problem.Z):
        raise ValueError(
            f"{int(options.never.sum())} outputs of y, apart from whole slices, are missing in "
            f"every sample. The fit completes them in memory, and X'Y takes "
            f"{problem.Z.nbytes / 2**20:.3g} MiB, which exceeds the memory budget. Increase the "
            f"budget with holrr.streaming.memory_budget."
        )
    with few_threads_for(data.n_features**2 * math.prod(data.output_shape)):
        fit = _fit_problem(problem, options, data.n_features).rescaled(1.0, 1.0)
    return some.expand(fit)


def fit_moments(
    moments: CentredMoments,
    options: LinearOptions,
    *,
    never: np.ndarray | None = None,
) -> Fit:
    """Fit a model to moments.

    Parameters
    ----------
    moments : CentredMoments
        Moments of the data.
    options : LinearOptions
        Parameters of the fit.
    never : array of bool, of shape (d1, ..., dp), optional
        Outputs that are never observed. The fit leaves them out.
    """
    if never is not None:
        known = KnownOutputs.of(never, keep_grid=_is_multilinear(options.structure))
        options = options.of_known(known, moments.n_features, is_complete=True)
        return known.expand(fit_moments(known.moments(moments), options))
    structure = options.structure
    check_linear_moments(moments, structure)
    with few_threads_for(moments.n_features * math.prod(moments.Sxy.shape)):
        centred = moments.centred(options.fit_intercept)
        if options.inputs is None:
            return _fit_centred(centred, options).rescaled(1.0, 1.0)
        check_own_inputs(options)
        features = options.inputs.from_moments(centred)
        sizes = moments.n_features, features.n_features, moments.output_shape
        options = _within_features(options, *sizes)
        structure = options.structure
        if _refines_inputs(options):
            assert isinstance(structure, MultilinearRank)
            fit, features = refine_inputs(
                features,
                lambda wanted: wanted.moments(centred),
                lambda wanted: _fit_centred(wanted.moments(centred), options),
                options.alpha,
                max_iter=structure.max_iter,
                tol=structure.tol,
            )
        else:
            fit = _fit_centred(features.moments(centred), options)
        return fit.lifted(features, centred.mean_x).rescaled(1.0, 1.0)


def _fit_centred(m: CentredMoments, options: LinearOptions) -> Fit:
    """Fit a model to moments about the centres of the fit."""
    if _needs_all_penalties(options):
        return _fit_spectral(spectral_from_moments(m), options, m.n_features)
    problem = whiten_moments(m, options.alpha)
    return _fit_problem(problem, options, m.n_features)


def _is_multilinear(structure: Structure) -> bool:
    """Return whether the structure depends on the modes of the outputs."""
    base = structure.base if isinstance(structure, Mixture) else structure
    return isinstance(base, MultilinearRank)


def check_linear_moments(moments: CentredMoments, structure: Structure) -> None:
    """Raise an error if the moments do not support the structure."""
    if structure.needs_response_grams and moments.response_grams is None:
        raise ValueError(
            "subspaces='response' needs moments with response Gram matrices. Compute the moments "
            "with response_grams=True."
        )
    check_moments(moments)
    structure.check(moments.n_features, moments.output_shape)


# ---------------------------------------------------------------- weights of outputs


def weigh_outputs(
    output_weight: Any, data: Samples | Stream, labels: Labels | None, ignore_missing: bool
) -> tuple[Any, tuple[np.ndarray, ...] | None]:
    """Read `output_weight`, and mark outputs without weight as missing in the data.

    Parameters
    ----------
    output_weight : list, array or None
        Parameter of `HOLRR`.
    data : Samples or Stream
        Validated data.
    labels : Labels, optional
        Labels of the data.
    ignore_missing : bool
        Whether missing outputs are left out of the objective.

    Returns
    -------
    data : Samples or Stream
        Data with NaN for outputs of weight zero that do not fill whole slices.
    weights : tuple of p arrays of shape (d_i,), or None
        One vector of mean one for each mode, since a common factor of error and penalty has no
        effect. None without `output_weight`.
    """
    if output_weight is None:
        return data, None
    shape, given = data.output_shape, unlabel_output_weight(output_weight, labels)
    weights = tuple(v / v.mean() for v in check_output_weight(given, shape))
    unknown = _unknown_weights(given, shape)
    excluded = excluded_outputs(given, shape)
    if excluded.any() and not ignore_missing:
        raise ValueError(
            f"output_weight is zero for {excluded.sum()} outputs that do not form whole slices, "
            f"such as output {_first(excluded)}. The fit treats such outputs as missing: set "
            f'missing="ignore".'
        )
    if isinstance(data, Stream):
        none = excluded | (product_of(weights) == 0)
        return _without_weightless(data, none, unknown, excluded, ignore_missing), weights
    xp, nan = namespace_of(data.Y), math.nan
    if unknown.any():
        _check_unknown(unknown, to_numpy(xp.all(xp.isnan(data.Y), axis=0)))
    if not excluded.any():
        return data, weights
    Y = xp.where(asarray_like(excluded, data.Y), xp.full_like(data.Y, nan), data.Y)
    return replace(data, Y=Y), weights


def _without_weightless(
    data: Stream,
    none: np.ndarray,
    unknown: np.ndarray,
    excluded: np.ndarray,
    ignore_missing: bool,
) -> Stream:
    """Return a stream with NaN for outputs without weight (`none`), if it has missing outputs.

    In complete data, whole slices without weight are zero, as for data in memory. The first sample
    shows which outputs are missing. Outputs whose weight is `unknown` must be among them.
    """
    if not (none.any() and (ignore_missing or unknown.any())):
        return data
    missing = np.isnan(data.first_outputs())
    _check_unknown(unknown, missing)
    if not ignore_missing or not (excluded.any() or missing.any()):
        return data
    return data.with_outputs(partial(_with_nan, none & ~unknown), data.output_shape)


def _with_nan(where: np.ndarray, Y: np.ndarray) -> np.ndarray:
    Y = Y if Y.dtype.kind == "f" else Y.astype(np.float64)
    return np.where(where, np.array(math.nan, Y.dtype), Y)


def _unknown_weights(output_weight: Any, shape: Sequence[int]) -> np.ndarray:
    """Return the mask of outputs whose weight is NaN, of shape (d1, ..., dp)."""
    if isinstance(output_weight, (list, tuple)):
        return np.zeros(tuple(shape), dtype=bool)
    return np.isnan(np.asarray(to_numpy(output_weight), dtype=float))


def _check_unknown(unknown: np.ndarray, missing: np.ndarray) -> None:
    """Raise an error if the weight of an observed output is NaN."""
    observed = unknown & ~missing
    if observed.any():
        raise ValueError(
            f"output_weight is NaN for output {_first(observed)}, which is observed in y. Only "
            f"outputs that are never observed may have the weight NaN. To leave an output out, "
            f"set its weight to 0."
        )


def _first(mask: np.ndarray) -> tuple[int, ...]:
    return tuple(int(i) for i in np.argwhere(mask)[0])


def weighted(data: Samples, weights: Sequence[np.ndarray]) -> Samples:
    """Return samples with outputs multiplied by the square roots of their weights."""
    return replace(data, Y=scale_outputs(data.Y, weights))


def refuse_output_weight(output_weight: Any, what: str) -> None:
    """Raise an error if output weights are given for data other than samples."""
    if output_weight is not None:
        raise ValueError(
            f"output_weight needs samples and cannot be used with {what}. Instead, multiply y by "
            f"the square roots of the weights, and divide the predictions by them."
        )
