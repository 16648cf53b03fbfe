"""Checks of the fields of loaded objects: their types, and shapes that agree with each other.

A checksum shows that a file is unchanged, not that it contains a valid model. So every record and
every estimator is checked when it is created. Fields that are not listed here, such as attributes
of a newer version of the library, are kept without a check.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

__all__ = ["Kind", "SchemaError", "check_estimator", "check_record", "check_splitter"]


class SchemaError(ValueError):
    """A field with an invalid value."""


@dataclass(frozen=True)
class Kind:
    """A kind of values: its name in messages, and a function that recognises its values."""

    name: str
    holds: Callable[[Any], bool]


# ---------------------------------------------------------------- kinds of values


def is_whole(v: Any) -> bool:
    return isinstance(v, (int, np.integer)) and not isinstance(v, bool)


def _is_real(v: Any) -> bool:
    return is_whole(v) or isinstance(v, (float, np.floating))


def is_array_of(v: Any, kinds: str, ndim: int | None = None) -> bool:
    return isinstance(v, np.ndarray) and v.dtype.kind in kinds and ndim in (None, v.ndim)


def is_text(v: Any) -> bool:
    return isinstance(v, str)


def optional(kind: Kind) -> Kind:
    return Kind(f"{kind.name} or None", lambda v: v is None or kind.holds(v))


def either(a: Kind, b: Kind) -> Kind:
    return Kind(f"{a.name}, or {b.name}", lambda v: a.holds(v) or b.holds(v))


def one_of(*words: str) -> Kind:
    return Kind(f"one of {', '.join(map(repr, words))}", lambda v: is_text(v) and v in words)


def list_of(kind: Kind) -> Kind:
    return Kind(
        f"a list, each entry {kind.name}",
        lambda v: isinstance(v, list) and all(map(kind.holds, v)),
    )


def tuple_of(kind: Kind) -> Kind:
    return Kind(
        f"a tuple, each entry {kind.name}",
        lambda v: isinstance(v, tuple) and all(map(kind.holds, v)),
    )


def dict_of(kind: Kind) -> Kind:
    def holds(v: Any) -> bool:
        return isinstance(v, dict) and all(is_text(k) and kind.holds(x) for k, x in v.items())

    return Kind(f"a dict from text, each value {kind.name}", holds)


def floats(shape: tuple[int, ...]) -> Kind:
    """Return the kind of floating-point arrays of a shape; a plain number for no axes."""
    if not shape:
        return REAL
    return Kind(
        f"an array of floating-point numbers of shape {shape}",
        lambda v: is_array_of(v, "f") and v.shape == shape,
    )


def record(name: str) -> Kind:
    """Return the kind of a record of this library, which was checked when it was created."""
    return Kind(f"a {name}", lambda v: type(v).__name__ == name and _is_ours(v))


def _is_ours(v: Any) -> bool:
    return type(v).__module__.partition(".")[0] == "holrr"


ANYTHING = Kind("anything", lambda v: True)
BOOL = Kind("True or False", lambda v: isinstance(v, (bool, np.bool_)))
WHOLE = Kind("a whole number", is_whole)
COUNT = Kind("a whole number of at least 0", lambda v: is_whole(v) and v >= 0)
POSITIVE = Kind("a whole number of at least 1", lambda v: is_whole(v) and v >= 1)
REAL = Kind("a number", _is_real)
TEXT = Kind("text", is_text)
KEY = Kind("a name", lambda v: isinstance(v, Hashable))
VECTOR = Kind("a vector of floating-point numbers", lambda v: is_array_of(v, "f", 1))
MATRIX = Kind("a matrix of floating-point numbers", lambda v: is_array_of(v, "f", 2))
TENSOR = Kind("an array of floating-point numbers", lambda v: is_array_of(v, "f"))
ARRAY = Kind("an array", lambda v: isinstance(v, np.ndarray))
LABELS_OF_AXIS = Kind("a vector of labels", lambda v: isinstance(v, np.ndarray) and v.ndim == 1)
PLACES = Kind("a vector of whole numbers", lambda v: is_array_of(v, "iu", 1))
DICT = Kind("a dict", lambda v: isinstance(v, dict))
SHAPE = tuple_of(COUNT)


def check_fields(owner: str, value: Mapping[str, Any], kinds: Mapping[str, Kind]) -> None:
    """Raise a `SchemaError` if a field that is present is not of its kind."""
    for name, kind in kinds.items():
        if name in value and not kind.holds(value[name]):
            raise SchemaError(f"{owner}.{name} must be {kind.name}; it is {_shown(value[name])}.")


def require(condition: bool, owner: str, what: str) -> None:
    if not condition:
        raise SchemaError(f"{owner}: {what}.")


def _shown(v: Any) -> str:
    if isinstance(v, np.ndarray):
        return f"an array of shape {v.shape} and dtype {v.dtype}"
    if isinstance(v, BaseEstimator):
        return f"an estimator of type {type(v).__name__}"
    return f"{v!r:.60} of type {type(v).__name__}"


# ---------------------------------------------------------------- records


def check_record(value: Any) -> None:
    """Raise a `SchemaError` if the fields of a record are invalid or do not agree."""
    name = type(value).__name__
    if name not in _RECORDS:
        raise SchemaError(f"{name} is not a record that files may contain.")
    kinds, check = _RECORDS[name]
    check_fields(name, vars(value), kinds)
    check(value)


def _check_tucker(T: Any) -> None:
    require(T.core.ndim == len(T.factors) > 0, "Tucker", "core and factors differ in their order")
    for mode, (R, U) in enumerate(zip(T.core.shape, T.factors, strict=True)):
        fits = U is None or U.shape[1] == R
        require(fits, "Tucker", f"factor {mode} and the core differ in their rank")
    require(set(T.leading) <= set(range(T.core.ndim)), "Tucker", "leading must contain modes")


def _check_moments(m: Any) -> None:
    d, shape = m.mean_x.shape[0], m.mean_y.shape
    fields = {"Sxx": floats((d, d)), "Sxy": floats((d, *shape))}
    if m.squares is not None:
        fields["squares"] = _entries(shape)
    check_fields("Moments", vars(m), fields)
    for field in ("weight", "weight_squares"):
        value = getattr(m, field)
        fits = value is None or (value > 0 and math.isfinite(value))
        require(fits, "Moments", f"{field} must be positive")
    missing = m.missing_outputs
    if missing is not None:
        fits = missing.shape == shape and bool(missing.any()) and not bool(missing.all())
        require(fits, "Moments", f"missing_outputs must be some of the outputs, {shape}")
    if m.response_grams is not None:
        found = tuple(G.shape for G in m.response_grams)
        fits = found == tuple((n, n) for n in shape)
        require(fits, "Moments", "response_grams differ from the outputs in their sizes")
    names, labels, n = getattr(m, "feature_names", None), getattr(m, "labels", None), d
    if labels is not None:
        if labels.inputs:
            n, n_used = _n_columns(labels)
            require(n_used == d, "Moments", f"labels of {n_used} features, but there are {d}")
        _check_labels_of("Moments", labels, n, shape)
    require(names is None or are_names(names, n), "Moments", f"there must be {n} feature names")


def _entries(shape: tuple[int, ...]) -> Kind:
    """Return the kind of one number for each output, an array also for a single output."""
    return Kind(
        f"an array of floating-point numbers of shape {shape}",
        lambda v: (is_array_of(v, "f") or isinstance(v, np.floating)) and np.shape(v) == shape,
    )


def _check_grid(grid: Any) -> None:
    require(len(grid.dims) == len(grid.shape), "Grid", "dims and shape differ in their number")
    require(len(set(grid.dims)) == len(grid.dims), "Grid", "two axes have one name")
    sizes = dict(zip(grid.dims, grid.shape, strict=True))
    for name, entry in grid.coords.items():
        fits = isinstance(entry, tuple) and len(entry) in (2, 3) and isinstance(entry[0], tuple)
        fits = fits and isinstance(entry[1], np.ndarray) and set(entry[0]) <= set(sizes)
        fits = fits and entry[1].shape == tuple(sizes[d] for d in entry[0])
        fits = fits and (len(entry) == 2 or isinstance(entry[2], dict))
        require(fits, "Grid", f"the coordinate {name!r} does not fit the axes")
    for dim, levels in grid.levels.items():
        fits = isinstance(levels, tuple) and all(level in grid.coords for level in levels)
        require(fits and dim in sizes, "Grid", f"the levels of {dim!r} have no coordinates")


def _check_labels(labels: Any) -> None:
    n_levels, sizes = len(labels.columns), {level.size for level in labels.columns}
    fits = n_levels == len(labels.column_names) and len(sizes) < 2
    require(fits, "Labels", "columns and their names differ in number")
    is_table = labels.kind in ("frame", "polars")
    require(
        is_table == bool(n_levels),
        "Labels",
        "outputs must have labels of columns if and only if they are a table",
    )
    outside = labels.flat if type(labels.flat).__name__ == "Grid" else labels.outputs
    if labels.kind == "dataset":
        fits = outside is not None and outside.shape[:1] == (len(labels.variables),)
        require(fits, "Labels", "variables and the outputs differ in number")
    if labels.places is not None:
        n = math.prod(labels.outputs.shape) if labels.outputs is not None else 0
        fits = sizes == {labels.places.size} and bool(
            ((labels.places >= 0) & (labels.places < n)).all()
        )
        require(fits, "Labels", "the places of columns are not among the outputs")
    n_cells = sum(math.prod(grid.shape) for grid in labels.inputs)
    cells, used = getattr(labels, "cells", None), getattr(labels, "used", None)
    fits = cells is None or _are_places(cells, n_cells)
    require(fits, "Labels", "the cells of columns are not among the inputs")
    n_columns = n_cells if cells is None else cells.size
    fits = used is None or _are_places(used, n_columns)
    require(fits, "Labels", "the columns that are used are not among the inputs")


def _are_places(v: np.ndarray, n: int) -> bool:
    """Return whether all numbers are different, and from 0 to ``n - 1``."""
    return bool(v.size and v.min() >= 0 and v.max() < n and np.unique(v).size == v.size)


def _n_columns(labels: Any) -> tuple[int, int]:
    """Return the number of columns of labelled inputs, and of columns that a model uses."""
    n = sum(math.prod(grid.shape) for grid in labels.inputs)
    n = n if labels.cells is None else labels.cells.size
    return n, n if labels.used is None else labels.used.size


def _check_space(space: Any) -> None:
    n_cells = sum(map(math.prod, space.shapes))
    fits = space.cells is None or _are_places(space.cells, n_cells)
    require(fits, "InputSpace", "the cells of columns are not among those of the blocks")


def _check_map(features: Any) -> None:
    space = features.space
    fits = features.scale is None or features.scale.size == space.n_columns
    require(fits, "InputMap", f"scale must have {space.n_columns} entries")
    require(len(features.bases) == len(space.shapes), "InputMap", "bases and blocks differ")
    for shape, bases in zip(space.shapes, features.bases, strict=True):
        fits = bases is None or tuple(U.shape[0] for U in bases) == shape
        require(fits, "InputMap", f"bases do not have the sizes {shape} of their block")


def _check_partial(partial: Any) -> None:
    k = partial.columns.size
    fits = k > 0 and partial.B.shape[0] == k and _are_places(partial.columns, partial.B.shape[1])
    require(fits, "Partial", "columns and B differ in their sizes")


def _check_groups(groups: Any) -> None:
    fits = groups.columns.shape[0] == groups.outputs.shape[0] and groups.columns.size > 0
    fits = fits and groups.columns.min() >= 0 and groups.outputs.min() >= 0
    require(fits, "OwnGroups", "columns and outputs differ in their number")


def _check_own(own: Any) -> None:
    name = "OwnCoefficients"
    n_columns, n_outputs = own.shape
    require(own.mean.size == n_columns, name, f"mean must have {n_columns} entries")
    require(own.freedom.size == n_outputs, name, f"freedom must have {n_outputs} entries")
    fits = len(own.groups) == len(own.values) == len(own.maps)
    require(fits, name, "groups, values and maps differ in number")
    for g, v, B in zip(own.groups, own.values, own.maps, strict=True):
        fits = v.shape == (*g.columns.shape, g.outputs.shape[1]) and B.shape[:2] == g.columns.shape
        fits = fits and g.columns.max() < n_columns and g.outputs.max() < n_outputs
        require(fits, name, "values do not fit their inputs and outputs")


def _check_input_model(model: Any) -> None:
    name, d = "InputModel", model.mean.size
    fits = model.components.shape == (d, model.variances.size)
    require(fits, name, "components must have a row for each input and a column for each variance")
    fits = model.residual_variances.size == d
    require(fits, name, f"residual_variances must have {d} entries")
    positive = (model.variances > 0).all() and (model.residual_variances > 0).all()
    require(bool(positive), name, "variances must be positive")
    require(model.unit > 0, name, "unit must be positive")


def _check_rows(rows: Any) -> None:
    name, n = "RowResiduals", rows.squares.size
    fits = rows.counts.size == n and (rows.labels is None or rows.labels.size == n)
    require(fits, name, "squares, counts and labels differ in number")


def _check_labels_of(owner: str, labels: Any, n_features: int, shape: tuple[int, ...]) -> None:
    """Check the labels of a fit to data with these numbers of features and outputs."""
    n = _n_columns(labels)[0]
    fits = not labels.inputs or n == n_features
    require(fits, owner, f"labels of {n} features, but there are {n_features}")
    found = None if labels.outputs is None else labels.outputs.shape
    require(found in (None, shape), owner, f"labels of outputs {found}, but these are {shape}")
    flat = math.prod(labels.flat.shape) if type(labels.flat).__name__ == "Grid" else None
    fits = flat in (None, math.prod(shape))
    require(fits, owner, f"labels of {flat} outputs, but these are {shape}")


def are_names(v: Any, n: int) -> bool:
    return (
        isinstance(v, np.ndarray)
        and v.dtype.kind in "OU"
        and v.shape == (n,)
        and all(isinstance(name, str) for name in v)
    )


_TUCKER = {
    "core": TENSOR,
    "factors": tuple_of(optional(MATRIX)),
    "leading": tuple_of(COUNT),
}
_MOMENTS = {
    "n_samples": POSITIVE,
    "weight": REAL,
    "weight_squares": optional(REAL),
    "mean_x": VECTOR,
    "mean_y": TENSOR,
    "syy": REAL,
    "response_grams": optional(tuple_of(MATRIX)),
    "dtype": one_of("float64", "float32"),
    "labels": optional(record("Labels")),
    "missing_outputs": optional(Kind("an array of True and False", lambda v: is_array_of(v, "b"))),
}
_GRID = {
    "dims": tuple_of(KEY),
    "shape": SHAPE,
    "coords": DICT,
    "attrs": DICT,
    "levels": DICT,
    "is_named": BOOL,
}
_LABELS = {
    "kind": one_of("array", "dataarray", "dataset", "frame", "polars"),
    "sample_dim": KEY,
    "inputs": tuple_of(record("Grid")),
    "outputs": optional(record("Grid")),
    "flat": either(BOOL, record("Grid")),
    "columns": tuple_of(LABELS_OF_AXIS),
    "column_names": tuple_of(ANYTHING),
    "places": optional(PLACES),
    "variables": DICT,
    "cells": optional(PLACES),
    "used": optional(PLACES),
}
_SPACE = {"shapes": tuple_of(SHAPE), "cells": optional(PLACES)}
_MAP = {
    "space": record("InputSpace"),
    "scale": optional(VECTOR),
    "bases": tuple_of(optional(tuple_of(MATRIX))),
    "own": optional(record("OwnCoefficients")),
    "partial": optional(record("Partial")),
}
_PLACES_2D = Kind("a matrix of whole numbers", lambda v: is_array_of(v, "iu", 2))
_STACK = Kind("an array of floating-point numbers with 3 axes", lambda v: is_array_of(v, "f", 3))
_PARTIAL = {"columns": PLACES, "B": MATRIX}
_GROUPS = {"columns": _PLACES_2D, "outputs": _PLACES_2D}
_OWN = {
    "groups": tuple_of(record("OwnGroups")),
    "shape": Kind("two sizes", lambda v: SHAPE.holds(v) and len(v) == 2),
    "values": tuple_of(_STACK),
    "maps": tuple_of(_STACK),
    "freedom": VECTOR,
    "mean": VECTOR,
    "is_shared": BOOL,
}
_PAIR = Kind(
    "two numbers", lambda v: isinstance(v, tuple) and len(v) == 2 and all(map(_is_real, v))
)
_INPUT_MODEL = {
    "mean": VECTOR,
    "components": MATRIX,
    "variances": VECTOR,
    "residual_variances": VECTOR,
    "t2_moments": _PAIR,
    "q_moments": _PAIR,
    "n_rows": POSITIVE,
    "unit": REAL,
}
_ROWS = {"squares": VECTOR, "counts": VECTOR, "labels": optional(LABELS_OF_AXIS)}
# Kinds of the fields of each record, and a check of their relations.
_RECORDS: dict[str, tuple[dict[str, Kind], Callable[[Any], None]]] = {
    "Tucker": (_TUCKER, _check_tucker),
    "Moments": (_MOMENTS, _check_moments),
    "Grid": (_GRID, _check_grid),
    "Labels": (_LABELS, _check_labels),
    "InputSpace": (_SPACE, _check_space),
    "InputMap": (_MAP, _check_map),
    "Partial": (_PARTIAL, _check_partial),
    "OwnGroups": (_GROUPS, _check_groups),
    "OwnCoefficients": (_OWN, _check_own),
    "InputModel": (_INPUT_MODEL, _check_input_model),
    "RowResiduals": (_ROWS, _check_rows),
}


# ---------------------------------------------------------------- estimators

_RANK = either(COUNT, tuple_of(COUNT))
# Fitted attributes that do not depend on each other.
_FITTED: dict[str, Kind] = {
    "solver_": TEXT,
    **dict.fromkeys(("objective_", "lower_bound_", "energy_", "best_score_"), REAL),
    "alpha_": either(REAL, TENSOR),
    **dict.fromkeys(("beta_", "penalty_", "penalty_max_"), REAL),
    **dict.fromkeys(("n_iter_", "n_dropped_"), COUNT),
    **dict.fromkeys(("alphas_", "betas_", "penalties_", "stack_alphas_", "stack_weights_"), VECTOR),
    "n_features_in_": POSITIVE,
    "labels_": optional(record("Labels")),
    "gamma_": optional(REAL),
    "input_rank_": either(tuple_of(COUNT), dict_of(optional(tuple_of(COUNT)))),
    "input_factors_": either(list_of(MATRIX), dict_of(list_of(MATRIX))),
    "blocks_": dict_of(PLACES),
    "block_alphas_": dict_of(REAL),
    "rank_": _RANK,
    "ranks_": list_of(_RANK),
    "robust_weight_": Kind(
        "a vector of numbers between 0 and 1",
        lambda v: is_array_of(v, "f", 1) and bool(np.all((v > 0) & (v <= 1))),
    ),
    "stack_ranks_": list_of(optional(tuple_of(COUNT))),
    "best_params_": dict_of(ANYTHING),
    "spectra_": list_of(optional(VECTOR)),
    "kernel_params_": dict_of(ANYTHING),
    "kernels_": list_of(dict_of(ANYTHING)),
    "best_index_": tuple_of(WHOLE),
    "cv_results_": dict_of(ANYTHING),
    "history_": either(VECTOR, dict_of(Kind("a vector", lambda v: is_array_of(v, "fiu", 1)))),
    "best_estimator_": Kind("an estimator", lambda v: isinstance(v, BaseEstimator)),
    "tucker_": record("Tucker"),
    "moments_": record("Moments"),
    "_output_weight": optional(TENSOR),
    "_input_mean": VECTOR,
    "X_fit_": optional(MATRIX),
    "landmarks_": MATRIX,
    "_own": optional(record("OwnCoefficients")),
    "_input_model": record("InputModel"),
    "_row_residuals": record("RowResiduals"),
    "_hat": dict_of(ANYTHING),
    "_intervals": dict_of(ANYTHING),
    "_features": Kind(
        "kernel parameters, singular values and directions",
        lambda v: (
            isinstance(v, tuple)
            and len(v) == 3
            and isinstance(v[0], dict)
            and is_array_of(v[1], "f", 1)
            and is_array_of(v[2], "f", 2)
        ),
    ),
    "_warm": dict_of(ANYTHING),
    "scaling_": DICT,
    "delays_": PLACES,
    "columns_": PLACES,
    "selected_": dict_of(PLACES),
}
_HAT: dict[str, Kind] = {
    "form": one_of("map", "cholesky", "gram"),
    **dict.fromkeys(("alpha", "weight", "unit", "share", "density"), REAL),
    "trace": optional(either(REAL, TENSOR)),
    "freedom": TENSOR,
    "is_shared": BOOL,
    "mean": VECTOR,
    "factor": MATRIX,
    "root": optional(VECTOR),
    "sample_root": optional(VECTOR),
    "diagonal": optional(REAL),
    "centred": BOOL,
    "intercept": BOOL,
    "inputs": optional(record("InputMap")),
}
# Attributes of classes that instances may replace.
_INSTANCE = {"tucker_", "labels_", "intercept_", "best_estimator_", "cv_results_", "scaling_"}


def check_estimator(value: Any) -> None:
    """Raise a `SchemaError` if the attributes of an estimator do not agree."""
    name, state = type(value).__name__, vars(value)
    parameters = set(value.get_params(deep=False))
    for attribute in set(state) - parameters - _INSTANCE - set(_FITTED):
        hidden = hasattr(type(value), attribute) and not attribute.startswith("_sklearn")
        require(not hidden, name, f"{attribute!r:.40} would hide an attribute of the class")
    check_fields(name, state, _FITTED)
    if "scaling_" in state:
        _check_scaling(name, state)
    if "delays_" in state:
        _check_delays(name, state)
    if "columns_" in state or "selected_" in state:
        _check_selected(name, state)
    if "tucker_" in state:
        _check_fitted(name, state)
    elif "n_features_in_" in state:
        _check_names(name, state, state["n_features_in_"], ())
    if "_input_model" in state:
        n, labels = state.get("n_features_in_", 0), state.get("labels_")
        n = n if labels is None or labels.used is None else labels.used.size
        fits = state["_input_model"].n_features == n
        require(fits, name, f"the model of the inputs must be that of {n} inputs")
    validate = getattr(value, "_validate_params", None)
    if validate is not None and hasattr(value, "_parameter_constraints"):
        validate()


def _check_scaling(name: str, state: dict[str, Any]) -> None:
    """Check means and standard deviations of a `Standardizer`."""
    n = 0
    for key, entry in state["scaling_"].items():
        fits = isinstance(entry, tuple) and len(entry) == 3 and isinstance(entry[0], tuple)
        fits = fits and all(is_array_of(part, "f") for part in entry[1:])
        fits = fits and entry[1].shape == entry[2].shape
        require(fits, name, f"the scaling of {key!r:.40} must have dims, means and spreads")
        n += entry[1].size
    known = state.get("n_features_in_", n)
    fits = known == n or (n == 0 and bool(state.get("by_group")))
    require(fits, name, f"the scaling has {n} features, but there are {known}")


def _check_delays(name: str, state: dict[str, Any]) -> None:
    """Check delays and names of a `Delayer`."""
    delays = state["delays_"]
    fits = delays.size > 0 and np.unique(delays).size == delays.size
    require(fits, name, "delays_ must be one or more different numbers")
    require("n_features_in_" in state, name, "there are delays, but no number of features")


def _check_selected(name: str, state: dict[str, Any]) -> None:
    """Check the features that a `RangeSelector` keeps."""
    for attribute in ("columns_", "selected_", "n_features_in_"):
        require(attribute in state, name, f"{attribute} is missing")
    n = state["n_features_in_"]
    kept = [state["columns_"], *state["selected_"].values()]
    fits = len(kept) > 1 and all(_are_places(places, n) for places in kept)
    require(fits, name, f"the features that are kept must be among the {n} features")


def _check_fitted(name: str, state: dict[str, Any]) -> None:
    """Check that the attributes of a fitted model have the shapes that its coefficients imply."""
    n_inputs, *outputs = state["tucker_"].shape
    shape = tuple(outputs)
    require("intercept_" in state, name, "there are coefficients, but no intercept")
    check_fields(name, state, {"intercept_": floats(shape)})
    points = state.get("X_fit_")
    n_features = n_inputs if points is None else points.shape[1]
    if points is not None:
        fits = points.shape[0] == n_inputs
        require(fits, name, f"X_fit_ must have {n_inputs} rows, one for each coefficient")
    if "n_features_in_" in state:
        known, labels = state["n_features_in_"], state.get("labels_")
        n_used = known
        if labels is not None and labels.used is not None:
            n_used = labels.used.size
        is_kernel = "X_fit_" in state or "kernels_" in state
        require(n_used == n_features or is_kernel, name, f"n_features_in_ must be {n_features}")
        n_features = n_used
    if points is not None:
        require(points.shape[1] == n_features, name, f"X_fit_ must have {n_features} columns")
    _check_names(name, state, state.get("n_features_in_", n_features), shape)
    _check_noise(name, state, shape)
    if "moments_" in state:
        fits = state["moments_"].output_shape == shape
        require(fits, name, f"moments_ must be those of outputs of shape {shape}")
    if "spectra_" in state:
        fits = len(state["spectra_"]) in (0, 1 + len(shape))
        require(fits, name, f"spectra_ must have {1 + len(shape)} entries")
    if "_input_mean" in state:
        fits = state["_input_mean"].shape == (n_inputs,)
        require(fits, name, f"the mean of the inputs must have {n_inputs} entries")
    if "stack_ranks_" in state:
        for other in ("stack_weights_", "stack_alphas_"):
            fits = len(state["stack_ranks_"]) == state.get(other, np.empty(0)).size
            require(fits, name, f"stack_ranks_ and {other} differ in number")
    if "landmarks_" in state:
        fits = state["landmarks_"].shape[1] == n_features
        require(fits, name, f"landmarks_ must have {n_features} columns")
    model = state.get("best_estimator_")
    if model is not None:
        found = getattr(vars(model).get("tucker_"), "shape", None)
        fits = found == (n_inputs, *shape)
        require(fits, name, "best_estimator_ has coefficients of another shape")


def _check_names(name: str, state: dict[str, Any], n_features: int, shape: tuple[int, ...]) -> None:
    names, labels = state.get("feature_names_in_"), state.get("labels_")
    fits = names is None or are_names(names, n_features)
    require(fits, name, f"feature_names_in_ must be {n_features} texts")
    if labels is not None:
        _check_labels_of(name, labels, n_features, shape)


def _check_noise(name: str, state: dict[str, Any], shape: tuple[int, ...]) -> None:
    """Check the attributes for standard deviations and intervals."""
    noise, each = state.get("_noise"), either(_entries(shape), floats(shape))
    weight = either(REAL, _entries(shape))
    fits = noise is None or each.holds(noise)
    if isinstance(noise, tuple):
        fits = len(noise) == 2 and each.holds(noise[0]) and weight.holds(noise[1])
    require(fits, name, f"the noise must be that of outputs of shape {shape}")
    if "_hat" in state:
        check_fields(f"{name}._hat", state["_hat"], _HAT)
        lacking = {"form", "alpha", "mean", "weight", "factor"} - set(state["_hat"])
        require(not lacking, f"{name}._hat", f"missing entries: {', '.join(sorted(lacking))}")
        size = state["_hat"]["factor"].shape[0]
        fits = state["_hat"]["mean"].shape == (size,)
        require(fits, f"{name}._hat", f"mean must have {size} entries, as factor has rows")
    if "_intervals" in state:
        _check_intervals(f"{name}._intervals", state["_intervals"], shape)


def _check_intervals(name: str, kept: dict[str, Any], shape: tuple[int, ...]) -> None:
    require("levels" in kept, name, "levels is missing")
    if kept["levels"] is None:
        require(_is_real(kept.get("df")), name, "df must be a number")
        return
    check_fields(name, kept, {"levels": VECTOR, "pooled_levels": VECTOR, "seen": REAL})
    sizes = {"entry": (kept["levels"].size, *shape), "simultaneous": (kept["levels"].size,)}
    pooled = kept.get("pooled_levels")
    sizes["pooled"] = (0 if pooled is None else pooled.size,)
    count = either(REAL, _entries(shape))
    check_fields(name, kept, {f"n_{kind}": count for kind in sizes})
    for kind, size in sizes.items():
        fits = is_array_of(kept.get(kind), "f") and kept[kind].shape == size
        require(fits, name, f"{kind} must be quantiles of shape {size}")


# ---------------------------------------------------------------- splitters


_SETTING = Kind(
    "None, a boolean, a number or a vector of whole numbers",
    lambda v: v is None or BOOL.holds(v) or REAL.holds(v) or is_array_of(v, "iu", 1),
)


def check_splitter(value: Any, state: dict[str, Any]) -> None:
    """Raise a `SchemaError` if a splitter has other attributes than its constructor sets.

    Parameters
    ----------
    value : splitter
        Splitter that was created from the parameters in `state`.
    state : dict
        Attributes in the file.
    """
    name = type(value).__name__
    check_fields(name, state, dict.fromkeys(state, _SETTING))
    for attribute, found in state.items():
        known = vars(value).get(attribute, _SETTING)
        fits = known is found or np.array_equal(known, found)
        require(fits, name, f"{attribute!r:.40} disagrees with its parameters")
