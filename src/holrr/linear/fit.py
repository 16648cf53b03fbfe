"""Linear fits: from samples, data in chunks or moments to a `Fit`.

All fits have the same steps. Data are changed first: divided by units, mapped to features of the
inputs, and reduced to the outputs that are observed and have weight. `solve` fits a structure to
what is left: it whitens the data (`core.spectral`), approximates the whitened tensor
(`core.approximate`) and maps it back to coefficients (`core.fit`). Then the changes are undone, the
last one first. Each change is a function of data and options, which returns a record with the
method `undo`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

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
from ..core.threads import few_threads_for
from ..data.labels import Labels
from ..data.unlabel import unlabel_output_weight
from ..data.validation import Samples, sparse_samples
from ..missing.completion import complete_columns
from ..missing.fit import (
    check_no_infinity,
    check_not_response,
    drop_unobserved,
    fit_missing,
    has_missing,
    warn_of_rounds,
)
from ..missing.known import KnownOutputs, Prepared, prepare, prepare_chunks
from ..streaming.chunks import Chunks
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

Data = Samples | Chunks | CentredMoments


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
    weights : sequence of p arrays of shape (d_i,), optional
        Weights of the outputs, see `weigh_outputs`.
    """

    structure: Structure
    alpha: Any
    fit_intercept: bool = True
    ignore_missing: bool = False
    inputs: InputDesign | None = None
    never: np.ndarray | None = None
    pilot: tuple[Structure, float] | None = None
    weights: Sequence[np.ndarray] | None = None

    @property
    def has_several_penalties(self) -> bool:
        """Whether the fit has several penalties: one for each output, or a mixture."""
        return isinstance(self.alpha, np.ndarray) or isinstance(self.structure, Mixture)

    @property
    def keeps_grid(self) -> bool:
        """Whether the structure depends on the modes of the outputs."""
        base = self.structure.base if isinstance(self.structure, Mixture) else self.structure
        return isinstance(base, MultilinearRank)

    @property
    def min_alpha(self) -> float:
        """Smallest penalty of the fit and of the model that imputes outputs."""
        mixture = self.structure if isinstance(self.structure, Mixture) else None
        least = float(np.min(self.alpha)) if mixture is None else mixture.min_alpha
        return least if self.pilot is None else min(least, self.pilot[1])

    @property
    def refines(self) -> bool:
        """Whether the fit refines the directions of the input modes with the coefficients."""
        return isinstance(self.structure, MultilinearRank) and self.structure.refine

    def in_units(self, x_unit: float) -> LinearOptions:
        """Return the options for inputs divided by `x_unit`."""
        if x_unit == 1.0:
            return self
        structure, pilot = self.structure, self.pilot
        if isinstance(structure, Mixture):
            structure = structure.in_units(x_unit)
        if pilot is not None:
            pilot = pilot[0], scaled_alpha(pilot[1], x_unit)
        return replace(
            self,
            structure=structure,
            alpha=scaled_alpha(self.alpha, x_unit),
            pilot=pilot,
            inputs=self.inputs and self.inputs.in_units(1 / x_unit),
        )

    def of_known(self, known: KnownOutputs, n_features: int, *, is_complete: bool) -> LinearOptions:
        """Return the options of a fit to known outputs."""
        inputs = self.inputs
        if inputs is not None and (inputs.own is not None or inputs.free is not None):
            what = "own" if inputs.own is not None else "alpha=0 for a block"
            raise ValueError(
                f"{what} cannot be used if some outputs are never observed and the data are "
                f"moments or are read in chunks. Drop these outputs from y."
            )
        if isinstance(self.alpha, np.ndarray):
            raise ValueError(_COMPLETE_OUTPUTS)
        fitting, pilot = known.structure(self.structure, n_features), self.pilot
        if pilot is not None:
            pilot = known.structure(pilot[0], n_features), pilot[1]
        never = known.never if is_complete else None
        return replace(self, structure=fitting, pilot=pilot, never=never)


class Change(Protocol):
    """Change of the data before a fit."""

    def undo(self, fit: Fit) -> Fit:
        """Return the fit to the data before the change, from a fit to the changed data."""


# A step returns the changed data, the options for them, and the change, or None for no change.
Step = Callable[..., tuple[Any, LinearOptions, Change | None]]


def fit_data(
    data: Samples | Chunks,
    options: LinearOptions,
    weights: Sequence[np.ndarray] | None = None,
) -> tuple[Fit, int]:
    """Fit a model to validated data.

    Parameters
    ----------
    data : Samples or Chunks
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
    options = replace(options, weights=weights)
    partly = options.ignore_missing or weights is not None
    if isinstance(data, Chunks):
        return _fit(data, options, [to_units, to_known_chunks, to_sums, to_features])
    steps: list[Step] = [to_host] if type(data.X) is not np.ndarray else []
    steps += [to_units]
    steps += [to_features] if options.inputs is not None else []
    steps += [to_known_outputs] if partly else []
    with few_threads_for(data.work):
        return _fit(data, options, steps)


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
    with few_threads_for(moments.n_features * math.prod(moments.Sxy.shape)):
        leave_out = partial(to_known_moments, never=never)
        return _fit(moments, options, [to_units, leave_out, to_centre, to_features])[0]


def _fit(data: Any, options: LinearOptions, steps: Sequence[Step]) -> tuple[Fit, int]:
    """Change the data, fit them, and undo the changes; also count the samples that are left out."""
    changes: list[Change] = []
    for step in steps:
        data, options, change = step(data, options)
        changes += [] if change is None else [change]
    fit = solve(data, options)
    for change in reversed(changes):
        fit = change.undo(fit)
    return fit, sum(getattr(change, "n_dropped", 0) for change in changes)


def solve(data: Samples | CentredMoments, options: LinearOptions) -> Fit:
    """Fit a structure to data, in their units and with their outputs."""
    if isinstance(data, IncompleteSamples):
        how = options.structure, options.alpha, options.fit_intercept, options.pilot
        return fit_missing(data, *how)
    problem = problem_of(data, options)
    if isinstance(problem, Spectral):
        if isinstance(options.alpha, np.ndarray):
            return fit_by_output(problem, options.alpha, options.fit_intercept)
        if options.never is not None:
            assert options.pilot is not None
            problem = complete_columns(replace(problem, never=options.never), *options.pilot)
        problem = problem.at(options.alpha)
    if options.never is not None:
        check_not_response(options.structure)
        problem = replace(problem, never=options.never)
    with few_threads_for(data.n_features**2 * math.prod(data.output_shape)):
        found = options.structure.approximate(problem, data.n_features)
        fit = fit_approximation(problem, found, options.fit_intercept)
    if not found.converged:
        warn_of_rounds(options.structure, fit.n_iter)
    return fit


def problem_of(data: Samples | CentredMoments, options: LinearOptions) -> Spectral | Whitened:
    """Return the problem of data, for all penalties if the fit has several of them."""
    several = options.has_several_penalties
    if isinstance(data, CentredMoments):
        return spectral_from_moments(data) if several else whiten_moments(data, options.alpha)
    how: dict[str, Any] = {
        "fit_intercept": options.fit_intercept,
        "response_grams": options.structure.needs_response_grams,
    }
    arrays = data.X, data.Y, data.w
    if several:
        return spectral_from_samples(*arrays, min_alpha=options.min_alpha, **how)
    return whiten_arrays(*arrays, options.alpha, **how)


# ---------------------------------------------------------------- changes of data before a fit


@dataclass(frozen=True, eq=False)
class Device:
    """Data that were copied from the device of an array."""

    like: Array

    def undo(self, fit: Fit) -> Fit:
        """Return the fit on the device of the data."""
        return fit if type(fit.intercept) is type(self.like) else fit.to_device_of(self.like)


def to_host(data: Samples, options: LinearOptions) -> tuple[Samples, LinearOptions, Device]:
    """Copy small samples from an accelerator to the host, which is faster for small problems."""
    if options.ignore_missing:
        has_missing(data)  # raises an error for missing outputs that are not NumPy arrays
    return data.to_host_if_small(), options, Device(data.X)


@dataclass(frozen=True)
class Units:
    """Powers of two that inputs and outputs were divided by."""

    x_unit: float
    y_unit: float

    def undo(self, fit: Fit) -> Fit:
        """Return the fit in the units and the dtype of the data."""
        return fit.rescaled(self.x_unit, self.y_unit)


def to_units(data: Data, options: LinearOptions) -> tuple[Data, LinearOptions, Units]:
    """Divide samples by powers of two, so that squares neither overflow nor underflow."""
    if not isinstance(data, Samples):
        return data, options, Units(1.0, 1.0)
    data = data.scaled()
    units = Units(data.x_unit, data.y_unit)
    if data.x_unit != 1.0 or data.y_unit != 1.0:
        options, data = options.in_units(data.x_unit), replace(data, x_unit=1.0, y_unit=1.0)
    return data, options, units


@dataclass(frozen=True, eq=False)
class Features:
    """Features of the inputs, and residuals of own inputs, in place of inputs and outputs.

    Parameters
    ----------
    map : InputMap
    mean_x : array of shape (n_inputs,)
        Centre of the inputs.
    n_rounds : int
        Number of rounds in which the directions were refined.
    n_dropped : int
        Number of samples that were left out, since no output is observed.
    """

    map: InputMap
    mean_x: Array
    n_rounds: int = 0
    n_dropped: int = 0

    def undo(self, fit: Fit) -> Fit:
        """Return the fit to the inputs."""
        return replace(fit.lifted(self.map, self.mean_x), n_iter=fit.n_iter + self.n_rounds)


def to_features(data: Any, options: LinearOptions) -> tuple[Any, LinearOptions, Features | None]:
    """Compute features of the inputs of samples or moments, if the options ask for them."""
    design, weights, n_dropped = options.inputs, options.weights, 0
    if design is None:
        return data, options, None
    check_own_inputs(options)
    if isinstance(data, Samples):
        if options.ignore_missing and has_missing(data):
            _refuse_free(design)
            check_no_infinity(data)
            data, n_dropped = drop_unobserved(data)  # they must not influence the features
        weighed = data if weights is None else weighted(data, weights)
        how = weighed.X, weighed.Y, weighed.w, options.fit_intercept
        features, mean_x = design.from_samples(*how), _input_mean(data, options)
        is_complete = not (options.ignore_missing and has_missing(data))
    else:
        weighed, is_complete = data, True
        features, mean_x = design.from_moments(data), data.mean_x
    sizes = data.n_features, features.n_features, data.output_shape
    options, n_rounds = _within_features(replace(options, inputs=None), *sizes), 0
    if options.refines and is_complete:
        features, n_rounds = refine_inputs(features, weighed, options, solve)
    if features.own is not None and weights is not None and isinstance(data, Samples):
        # Own inputs were fitted to weighted outputs. Samples are weighted after this step.
        features = replace(features, own=features.own.unweighted(product_of(weights)))
    return features.of(data), options, Features(features, mean_x, n_rounds, n_dropped)


def _refuse_free(design: InputDesign) -> None:
    """Raise an error for unpenalised blocks, which need complete outputs."""
    if design.free is not None:
        raise ValueError(
            "alpha=0 for a block of inputs needs complete outputs, but y has missing values. Give "
            "the block a small positive penalty."
        )


def to_sums(
    data: Chunks, options: LinearOptions
) -> tuple[Samples | CentredMoments, LinearOptions, None]:
    """Return the moments of data in chunks, or the samples of sparse inputs that are wide."""
    if data.is_wide and options.inputs is None:
        return sparse_samples(data), options, None
    return to_centre(data.moments(options.structure.needs_response_grams), options)


def to_centre(
    data: CentredMoments, options: LinearOptions
) -> tuple[CentredMoments, LinearOptions, None]:
    """Return moments about the centres of the fit."""
    check_linear_moments(data, options.structure)
    return data.centred(options.fit_intercept), options, None


class IncompleteSamples(Samples):
    """Samples some of whose outputs are missing in some samples only."""


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of outputs, which were multiplied by their square roots."""

    weights: Sequence[np.ndarray]

    def undo(self, fit: Fit) -> Fit:
        """Return the fit to the outputs."""
        return fit.unweighted(self.weights)


def to_known_outputs(
    data: Samples, options: LinearOptions
) -> tuple[Samples, LinearOptions, Prepared | Weights | None]:
    """Leave out outputs that are never observed, and weigh the others."""
    weights = options.weights
    if not (options.ignore_missing and has_missing(data)):
        if weights is None:
            return data, options, None
        return weighted(data, weights), options, Weights(weights)
    check_no_infinity(data)
    if isinstance(options.alpha, np.ndarray):
        raise ValueError(_COMPLETE_OUTPUTS)
    some = prepare(data, weights, keep_grid=options.keeps_grid)
    if some.known is not None:
        options = options.of_known(some.known, data.n_features, is_complete=some.is_complete)
    return (
        some.samples if some.is_complete else IncompleteSamples(**vars(some.samples)),
        options,
        some,
    )


def to_known_chunks(data: Chunks, options: LinearOptions) -> tuple[Chunks, LinearOptions, Any]:
    """Leave out outputs that are missing in every sample, and weigh the others, lazily."""
    how = {"ignore_missing": options.ignore_missing, "keep_grid": options.keeps_grid}
    some = prepare_chunks(data, options.weights, **how)
    if some.known is not None:
        options = options.of_known(some.known, data.n_features, is_complete=True)
    return some.data, options, some


def to_known_moments(
    data: CentredMoments, options: LinearOptions, *, never: np.ndarray | None
) -> tuple[CentredMoments, LinearOptions, KnownOutputs | None]:
    """Leave out outputs that are never observed."""
    if never is None:
        return data, options, None
    known = KnownOutputs.of(never, keep_grid=options.keeps_grid)
    options = options.of_known(known, data.n_features, is_complete=True)
    return known.moments(data), options, known


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
    output_weight: Any, data: Samples | Chunks, labels: Labels | None, ignore_missing: bool
) -> tuple[Any, tuple[np.ndarray, ...] | None]:
    """Read `output_weight`, and mark outputs without weight as missing in the data.

    Parameters
    ----------
    output_weight : list, array or None
        Parameter of `HOLRR`.
    data : Samples or Chunks
        Validated data.
    labels : Labels, optional
        Labels of the data.
    ignore_missing : bool
        Whether missing outputs are left out of the objective.

    Returns
    -------
    data : Samples or Chunks
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
    if isinstance(data, Chunks):
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
    data: Chunks,
    none: np.ndarray,
    unknown: np.ndarray,
    excluded: np.ndarray,
    ignore_missing: bool,
) -> Chunks:
    """Return data with NaN for outputs without weight (`none`), if they have missing outputs.

    In complete data, whole slices without weight are zero, as for data in memory. The first sample
    shows which outputs are missing. Outputs whose weight is `unknown` must be among them.
    """
    if not (none.any() and (ignore_missing or unknown.any())):
        return data
    missing = np.isnan(data.first_outputs())
    _check_unknown(unknown, missing)
    if not ignore_missing or not (excluded.any() or missing.any()):
        return data
    return data.with_outputs(partial(_with_nan, none & ~unknown))


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
