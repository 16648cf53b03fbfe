"""Outputs in different units: divided by a scale before a fit, and multiplied by it after the fit.

A fit with `scale_outputs` is the fit to ``y / scale``. `divide_outputs` reads the scale and divides
the data, and `multiply_outputs` returns the fit in the units of the user. Since a scale need not be
a product over the modes, the coefficients keep it beside their core and factors (`Tucker.scale`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, TypeVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from ..core.fit import Fit
from ..core.moments import CentredMoments, sum_responses
from ..core.namespace import asarray_like, namespace_of, to_numpy
from ..core.warn import warn
from ..streaming.chunks import Chunks
from .arrays import comes_from, ignores_missing, nan_for_masked
from .labels import Grid, Labels
from .scores import Errors, errors_between
from .unlabel import is_dataset, unlabel_mode_weights, unlabel_outputs
from .validation import Samples

__all__ = ["SCALE_CONSTRAINT", "divide_outputs", "divided", "multiply_outputs"]

# A number divides all outputs.
SCALE_CONSTRAINT: list[Any] = [
    StrOptions({"std"}),
    "array-like",
    Interval(Real, 0, None, closed="neither"),
    None,
]

# Outputs below this multiple of the rounding error of their mean count as constant.
_DIGITS = 64
# Standard deviations of slices of a mode indicate different units if the largest is _UNITS times
# the smallest, and if two groups of slices are separated by a factor of _GAP. Each of the groups
# must have this share of the slices. Standard deviations in one unit vary without such a gap: if
# their logarithms have a standard deviation of 1, as those of rain in different climates, 1.6 % of
# draws of six slices have one, 0.9 % of twelve slices, and less than 0.1 % of forty.
_UNITS, _GAP, _SHARE = 30.0, 10.0, 0.05
# Standard deviations relative to the largest one, below which an output counts as constant.
_CONSTANT = 1e-12

Data = TypeVar("Data", bound=Samples | Chunks | CentredMoments)


def divide_outputs(
    estimator: Any, data: Data, labels: Labels | None
) -> tuple[Data, np.ndarray | None]:
    """Divide the outputs of a fit by the parameter `scale_outputs` of its estimator.

    Parameters
    ----------
    estimator : estimator
    data : Samples, Chunks or CentredMoments
        Validated data of the fit.
    labels : Labels, optional
        Labels of the data.

    Returns
    -------
    data : Samples, Chunks or CentredMoments
        Data with divided outputs.
    scale : array of shape (d1, ..., dp), or None
        Divisor of each output. None without `scale_outputs`; the data are then those given.
    """
    given = estimator.scale_outputs
    if given is None:
        return data, None
    if isinstance(given, str):  # "std"
        scale = standard_deviations(data, ignores_missing(estimator))
    else:
        scale = _checked(_unlabelled(given, labels), data.output_shape, labels)
    is_response = getattr(estimator, "subspaces", "fitted") == "response"
    if is_response and isinstance(data, CentredMoments):
        raise ValueError(
            "scale_outputs cannot be combined with moments and subspaces='response', since the "
            "Gram matrices of the outputs are not those of the divided outputs. Use "
            "subspaces='fitted', or divide y before the moments are computed."
        )
    return divided(data, scale), scale


def multiply_outputs(
    estimator: Any, fit: Fit, scale: np.ndarray | None, labels: Labels | None
) -> Fit:
    """Return a fit in the units of the user, from a fit to outputs divided by a scale.

    Without a scale, a warning is issued if the outputs seem to have different units.

    Parameters
    ----------
    estimator : estimator
    fit : Fit
        Fit to the result of `divide_outputs`.
    scale : array of shape (d1, ..., dp), or None
    labels : Labels, optional
        Labels of the data.
    """
    if scale is not None:
        return fit.multiplied(scale)
    if estimator._shares_directions and fit.spread is not None:
        grid = None if labels is None else labels.outputs
        _warn_of_units(to_numpy(fit.spread), to_numpy(fit.intercept), fit.weight, grid)
    return fit


def divided(data: Data, scale: np.ndarray) -> Data:
    """Return data whose outputs are divided by a scale of shape (d1, ..., dp)."""
    if isinstance(data, Samples):
        return replace(data, Y=data.Y / asarray_like(scale, data.Y, dtype=data.Y.dtype))
    if isinstance(data, Chunks):
        return data.scaled_outputs(1.0 / scale)
    s, xp = asarray_like(scale, data.Sxy), namespace_of(data.Sxy)
    squares = _squares_of(data) / s / s
    return replace(
        data,
        mean_y=data.mean_y / s,
        Sxy=data.Sxy / s,
        syy=float(xp.sum(squares)),
        squares=squares,
        response_grams=None,
    )


# ---------------------------------------------------------------- the scale


def standard_deviations(data: Any, ignore_missing: bool = False) -> np.ndarray:
    """Return the weighted standard deviation of each output, and 1 for constant outputs.

    Parameters
    ----------
    data : Samples, Chunks or CentredMoments
    ignore_missing : bool
        Whether NaN marks missing outputs. If not, it is an error.

    Returns
    -------
    array of shape (d1, ..., dp)
    """
    unit, dtype, sums = 1.0, "float64", None
    if isinstance(data, CentredMoments):
        found = data.mean_y, _squares_of(data), data.weight
        dtype = data.dtype
    elif isinstance(data, Chunks):
        if ignore_missing:  # outputs that are missing in some samples only raise an error later
            data = data.with_outputs(_zero_for_missing)
        errors = data.errors(_sums_of_outputs)
        found, unit, dtype = (errors.mean, errors.scatter, errors.weight), errors.unit, data.dtype
    else:
        scaled = data.scaled(inputs=False)
        unit, Y, w = scaled.y_unit, scaled.Y, scaled.w
        if Y.dtype == namespace_of(Y).float32:
            dtype = "float32"
        if ignore_missing:
            Y, w = to_numpy(Y), None if w is None else to_numpy(w)
            errors = errors_between(Y, np.broadcast_to(0.0, Y.shape), w, missing=True)
            found, unit = (errors.mean, errors.scatter, errors.weight), unit * errors.unit
        else:
            sums = sum_responses(lambda rows, out: None, 0, Y, w)
    if sums is not None:
        found = sums.mean, sums.squares, sums.weight
    mean, squares = (np.asarray(to_numpy(A)) for A in found[:2])
    with np.errstate(invalid="ignore", divide="ignore"):
        std = np.sqrt(squares / found[2])
    varies = std > _DIGITS * np.finfo(dtype).eps * np.abs(mean)
    return np.where(varies & np.isfinite(std), unit * std, 1.0)


def _squares_of(moments: CentredMoments) -> Any:
    if moments.squares is None:
        raise ValueError(
            "scale_outputs needs the sums of squares of each output, which these moments lack, "
            "since they were computed by an older version. Compute the moments again."
        )
    return moments.squares


def _zero_for_missing(Y: Any) -> np.ndarray:
    Y = np.asarray(nan_for_masked(Y))
    return np.where(np.isnan(Y), np.zeros((), Y.dtype), Y) if Y.dtype.kind == "f" else Y


def _sums_of_outputs(X: Any, Y: np.ndarray, w: np.ndarray | None) -> Errors:
    return errors_between(Y, np.broadcast_to(0.0, Y.shape), w, missing=False)


def _unlabelled(given: Any, labels: Labels | None) -> Any:
    """Return a scale as an array, after its labels were compared with those of the outputs."""
    if labels is None or labels.outside is None or isinstance(given, Real):
        return given
    if comes_from(given, "pandas") and not hasattr(given, "columns"):
        given = given.to_frame().T if labels.kind == "frame" else given
    is_table = hasattr(given, "columns") and labels.kind in ("frame", "polars")
    is_variables = comes_from(given, "xarray") and is_dataset(given)
    if not (is_table or is_variables):
        return unlabel_mode_weights(given, labels.outside, "scale_outputs", "y")
    if is_variables:
        given = given.expand_dims(labels.sample_dim)
    try:
        row, _ = unlabel_outputs(given, labels.sample_dim, labels, flat=bool(labels.flat))
    except ValueError as error:
        raise ValueError(f"scale_outputs does not have the labels of y: {error}") from None
    row = np.asarray(row)
    if len(row) != 1:
        raise ValueError(f"scale_outputs as a table must have one row; got {len(row)}.")
    return row[0]


def _checked(given: Any, shape: Sequence[int], labels: Labels | None) -> np.ndarray:
    """Check the values of a scale, and return them in the shape (d1, ..., dp)."""
    try:
        found = np.asarray(to_numpy(given) if hasattr(given, "shape") else given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"scale_outputs must contain numbers; got {given!r}.") from error
    is_flat = labels is not None and bool(labels.flat) and found.shape == (math.prod(shape),)
    if found.ndim and found.shape != tuple(shape) and not is_flat:
        raise ValueError(
            f"scale_outputs as an array must have the shape {tuple(shape)} of the outputs; got "
            f"{found.shape}."
        )
    found = found.reshape(tuple(shape)) if found.ndim else np.full(tuple(shape), float(found))
    bad = np.argwhere(~(np.isfinite(found) & (found > 0)))
    if len(bad):
        where = tuple(int(i) for i in bad[0])
        raise ValueError(
            f"scale_outputs must be finite and positive for every output; got {found[where]} for "
            f"output {where}."
        )
    return found


# ---------------------------------------------------------------- a warning


def _warn_of_units(spread: np.ndarray, mean: np.ndarray, weight: Any, grid: Grid | None) -> None:
    """Warn if slices of a mode have standard deviations that indicate different units.

    Parameters
    ----------
    spread : array of shape (d1, ..., dp)
        Roots of the sums of squares of the outputs.
    mean : array of shape (d1, ..., dp)
        Typical value of each output.
    weight : float, or array of shape (d1, ..., dp)
        Number of samples.
    grid : Grid, optional
        Labels of the outputs.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.asarray(spread / np.sqrt(weight))
        constant = _DIGITS * np.finfo(float).eps * np.abs(mean)
    found = np.where(np.isfinite(found), found, 0.0)
    found = np.where(found > np.fmax(constant, _CONSTANT * found.max(initial=0.0)), found, 0.0)
    worst = max(
        (pair for mode in range(found.ndim) if (pair := _extremes(found, mode)) is not None),
        key=lambda pair: pair[1][0] / pair[0][0],
        default=None,
    )
    if worst is None:
        return
    (low, smallest), (high, largest), mode = worst
    name = f"axis {mode} of the outputs" if grid is None else f"{grid.dims[mode]!r}"
    entry = (lambda k: k) if grid is None else grid.coordinate(mode).__getitem__
    warn(
        f"the outputs differ strongly in their standard deviations, as if they had different "
        f"units: along {name} it is {low:.3g} for {entry(smallest)} and {high:.3g} for "
        f"{entry(largest)}. The largest outputs determine the low-rank directions, and the "
        f"smallest ones have hardly any influence. Set scale_outputs='std' to divide each output "
        f"by its standard deviation, or scale_outputs=1 to keep the outputs as they are without "
        f"this warning."
    )


def _extremes(spread: np.ndarray, mode: int) -> tuple[Any, Any, int] | None:
    """Return the smallest and the largest slice along a mode if they indicate different units.

    Each is a pair of its standard deviation and its position.
    """
    others = tuple(k for k in range(spread.ndim) if k != mode)
    count = np.maximum((spread > 0).sum(axis=others), 1)
    unit = spread.max(initial=0.0) or 1.0
    each = unit * np.sqrt(np.square(spread / unit).sum(axis=others) / count)
    known = np.flatnonzero(each > 0)
    order = known[np.argsort(each[known], kind="stable")]
    sizes, n = each[order], order.size
    if n < 2 or sizes[-1] <= _UNITS * sizes[0]:
        return None
    first = max(math.ceil(_SHARE * n), 1)
    gaps = sizes[first : n - first + 1] / sizes[first - 1 : n - first]
    if gaps.max(initial=0.0) <= _GAP:
        return None
    return (sizes[0], int(order[0])), (sizes[-1], int(order[-1])), mode
