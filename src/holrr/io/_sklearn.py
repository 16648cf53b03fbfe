"""Classes of scikit-learn that files may contain as steps of pipelines.

The list is closed. For each class it specifies the kinds of parameters and fitted attributes, and
their relations. A step is created by its constructor from parameters that are plain values, and its
fitted attributes are numbers, text and arrays of these: nothing in a file is called. A class, a
parameter or an attribute that is not on the list raises an error that names it.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sklearn
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)

from ..core.warn import warn
from ._schema import (
    BOOL,
    COUNT,
    POSITIVE,
    REAL,
    TEXT,
    WHOLE,
    Kind,
    SchemaError,
    are_names,
    check_fields,
    dict_of,
    either,
    floats,
    is_array_of,
    is_text,
    is_whole,
    list_of,
    one_of,
    optional,
    require,
    tuple_of,
)

__all__ = ["ALLOWED", "SKLEARN_VERSION", "build", "check_steps", "check_version", "is_allowed"]
__all__ += ["make_pipeline", "names_of_allowed"]

SKLEARN_VERSION: str = sklearn.__version__
# Largest degree of polynomials; features of higher degrees could not be counted.
_MAX_DEGREE = 100
# Number of columns from which slices of columns are refused.
_MAX_COLUMNS = 10**7
# Other fields of a format string could read attributes, or create text of any width.
_NAME_PATTERN = re.compile(r"([^{}]|\{feature_name\}|\{transformer_name\})*")


@dataclass(frozen=True)
class Allowed:
    """Parameters and attributes of a class that a file may contain.

    Parameters
    ----------
    cls : type
    params : dict from str to Kind
        Parameters in all supported versions of scikit-learn.
    fitted : dict from str to Kind
        Attributes that each fitted instance has.
    optional : dict from str to Kind
        Attributes that some fitted instances have.
    check : callable
        Function of the parameters and the fitted attributes that raises if they do not agree.
    n_outputs : callable
        Function of the same arguments that returns the number of columns of `transform`, or None
        if it is unknown.
    dropped : tuple of str
        Parameters without an effect that some versions do not have.
    same : dict from str to str
        Attributes that some versions do not have, and the attributes with the same value.
    """

    cls: type
    params: dict[str, Kind]
    fitted: dict[str, Kind]
    check: Callable[[dict[str, Any], dict[str, Any]], None]
    n_outputs: Callable[[dict[str, Any], dict[str, Any]], int | None]
    optional: dict[str, Kind] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    same: dict[str, str] = field(default_factory=dict)


# ---------------------------------------------------------------- allowed classes and versions


def is_allowed(value: Any) -> bool:
    """Return whether a value is an instance of a class on the list, and not of a subclass."""
    name = type(value).__name__
    return name in ALLOWED and type(value) is ALLOWED[name].cls


def names_of_allowed() -> str:
    """Return the names on the list, for messages."""
    return ", ".join(sorted([*ALLOWED, "Pipeline"]))


def check_version(version: Any) -> None:
    """Compare the version of scikit-learn that a file names with the installed one.

    The function warns if the first two numbers differ, since attributes of the same name could
    then have another meaning. Files without classes of scikit-learn have no version.
    """
    if not is_text(version) or not re.match(r"\d{1,6}\.\d{1,6}", version):
        raise SchemaError(
            f"the file has steps of scikit-learn, but no valid version of it; got {version!r:.40}"
        )
    if _minor(version) != _minor(SKLEARN_VERSION):
        warn(
            f"the steps of scikit-learn in this file were saved with version {version:.20}, but "
            f"{SKLEARN_VERSION} is installed. They were loaded, since all their attributes are "
            f"valid. Compare some predictions with known ones, or install "
            f"scikit-learn=={version:.20}."
        )


def _minor(version: str) -> list[str]:
    return version.split(".")[:2]


def build(name: Any, params: dict[str, Any], state: dict[str, Any], version: Any) -> Any:
    """Create an instance of a class on the list, and check it.

    Parameters
    ----------
    name : str
        Name of the class.
    params, state : dict
        Decoded arguments of the constructor and fitted attributes.
    version : str
        Version of scikit-learn that wrote them.
    """
    if not is_text(name) or name not in ALLOWED:
        raise SchemaError(
            f"{name!r:.60} is not one of the classes of scikit-learn that a file may contain: "
            f"{names_of_allowed()}"
        )
    allowed = ALLOWED[name]
    known = set(inspect.signature(allowed.cls).parameters)
    params = {k: v for k, v in params.items() if k in known or k not in allowed.dropped}
    _check_keys(name, "parameter", params, set(allowed.params) & known)
    missing = known - set(params)
    if missing and _minor(str(version)) == _minor(SKLEARN_VERSION):
        raise SchemaError(f"{name}: parameter {', '.join(sorted(missing))} is missing")
    check_fields(name, params, allowed.params)
    if "n_jobs" in params:  # ignored, since a file could start any number of processes
        params["n_jobs"] = None
    value = allowed.cls(**params)
    value._validate_params()
    _check_state(name, allowed, value.get_params(deep=False), state)
    vars(value).update(state)
    for attribute, other in allowed.same.items():
        if other in state and attribute not in state:
            vars(value)[attribute] = state[other]
    return value


def _check_keys(name: str, what: str, found: Iterable[Any], known: set[str]) -> None:
    for key in found:
        if key not in known:
            raise SchemaError(
                f"{name} of scikit-learn {SKLEARN_VERSION} has no {what} {key!r:.60} that a file "
                f"may contain"
            )


def _check_state(
    name: str, allowed: Allowed, params: dict[str, Any], state: dict[str, Any]
) -> None:
    extra = {**_COMMON, **allowed.optional}
    _check_keys(name, "attribute", state, {*allowed.fitted, *extra})
    check_fields(name, state, {**extra, **allowed.fitted})
    is_fitted = "n_features_in_" in state or any(key in state for key in allowed.fitted)
    if not is_fitted:
        return
    for key in allowed.fitted:
        require(key in state, name, f"{key} is missing")
    n = state.get("n_features_in_")
    names = state.get("feature_names_in_")
    fits = names is None or (n is not None and are_names(names, n))
    require(fits, name, f"feature_names_in_ must be {n} texts")
    allowed.check(params, state)


# ---------------------------------------------------------------- pipelines


def make_pipeline(tree: dict[str, Any], items: list[Any]) -> Pipeline:
    """Create a pipeline from its node and its decoded steps."""
    _check_keys("Pipeline", "field", tree, {"$", "items", "verbose", "transform_input"})
    fits = all(isinstance(item, list) and len(item) == 2 for item in items)
    require(fits, "Pipeline", "its steps must be pairs of a name and an estimator")
    steps = [(name, step) for name, step in items]
    check_steps(steps)
    verbose, names = tree.get("verbose", False), tree.get("transform_input")
    kinds = {"verbose": BOOL, "transform_input": optional(list_of(TEXT))}
    check_fields("Pipeline", {"verbose": verbose, "transform_input": names}, kinds)
    return Pipeline(steps, transform_input=names, verbose=verbose)


def check_steps(steps: list[tuple[Any, Any]]) -> None:
    """Raise a `SchemaError` if steps are not estimators with different names, or do not agree."""
    names = [name for name, _ in steps]
    fits = bool(steps) and all(map(_is_step, (step for _, step in steps)))
    require(fits, "Pipeline", "its steps must be estimators, or 'passthrough'")
    fits = all(is_text(name) and "__" not in name for name in names)
    require(fits and len(set(names)) == len(names), "Pipeline", "its steps must have unique names")
    taken = {"steps", "memory", "verbose", "transform_input"} & set(names)
    require(not taken, "Pipeline", "its steps must not have the names of parameters")
    n_columns = None
    for name, step in steps:
        if is_text(step):
            continue
        wanted = n_inputs(step)
        fits = None in (n_columns, wanted) or n_columns == wanted
        require(fits, "Pipeline", f"step {name!r:.40} takes {wanted} columns, but gets {n_columns}")
        n_columns = n_outputs(step)


def _is_step(step: Any) -> bool:
    return isinstance(step, BaseEstimator) or (is_text(step) and step == "passthrough")


def n_inputs(step: Any) -> int | None:
    """Return the number of input columns of a fitted step, or None if it is unknown."""
    if isinstance(step, Pipeline):
        return next((n for _, s in step.steps if (n := n_inputs(s)) is not None), None)
    return vars(step).get("n_features_in_") if isinstance(step, BaseEstimator) else None


def n_outputs(step: Any) -> int | None:
    """Return the number of output columns of a fitted step, or None if it is unknown."""
    if isinstance(step, Pipeline):
        last = step.steps[-1][1]
        return None if is_text(last) else n_outputs(last)
    name, state = type(step).__name__, vars(step)
    if is_allowed(step):
        if not any(key in state for key in ("n_features_in_", *ALLOWED[name].fitted)):
            return None
        return ALLOWED[name].n_outputs(step.get_params(deep=False), state)
    n = state.get("n_features_in_")
    if name in ("Standardizer", "StandardNormalVariate", "SavitzkyGolay"):
        return n
    if name == "RangeSelector":
        return None if "columns_" not in state else int(state["columns_"].size)
    if name == "Delayer":
        return None if "delays_" not in state else n * state["delays_"].size
    return state["tucker_"].rank[0] if "tucker_" in state else None


# ---------------------------------------------------------------- kinds of values


def _is_label(v: Any) -> bool:
    """Return whether a value is a category, or a placeholder for missing values."""
    return v is None or isinstance(v, (str, bool, int, float, np.number, np.bool_))


def _is_labels(v: Any, n: int | None = None) -> bool:
    """Return whether a value is a vector of numbers or text, also as objects."""
    if not isinstance(v, np.ndarray) or v.ndim != 1 or n not in (None, v.size):
        return False
    return v.dtype.kind in "biufU" or (v.dtype.kind == "O" and all(map(_is_label, v)))


def _is_columns(v: Any) -> bool:
    """Return whether a value specifies columns for `ColumnTransformer`."""
    if isinstance(v, slice):
        ends = (v.start, v.stop, v.step)
        return all(end is None or is_text(end) or is_whole(end) for end in ends)
    if isinstance(v, np.ndarray):
        return v.ndim == 1 and (v.dtype.kind in "biuU" or (v.dtype.kind == "O" and _is_texts(v)))
    if isinstance(v, list):
        return _is_texts(v) or all(isinstance(k, (bool, np.bool_)) or is_whole(k) for k in v)
    return is_text(v) or is_whole(v)


def _is_texts(v: Iterable[Any]) -> bool:
    return all(map(is_text, v))


def _is_transformer(v: Any) -> bool:
    return isinstance(v, BaseEstimator) or (is_text(v) and v in ("drop", "passthrough"))


def _is_entry(v: Any) -> bool:
    fits = isinstance(v, tuple) and len(v) == 3 and is_text(v[0]) and "__" not in v[0]
    return fits and _is_transformer(v[1]) and _is_columns(v[2])


def _is_drop(v: Any) -> bool:
    """Return whether a value contains the position of the dropped category of each feature."""
    is_object = isinstance(v, np.ndarray) and v.dtype.kind == "O" and v.ndim == 1
    return v is None or (is_object and all(k is None or is_whole(k) for k in v))


LABEL = Kind("a number, text or None", _is_label)
LABELS = Kind("a vector of numbers or text", _is_labels)
DTYPE = Kind("a type of numbers", lambda v: isinstance(v, (type, np.dtype)))
STORED = Kind("a dtype", lambda v: isinstance(v, np.dtype))
NOTHING = Kind("None", lambda v: v is None)
ENTRY = Kind("a name, a transformer and its columns", _is_entry)
DROP = Kind("None, or a vector of positions", _is_drop)
SLICE = Kind("a slice of whole numbers", lambda v: isinstance(v, slice) and _is_span(v))
PLACES = Kind("a vector of whole numbers", lambda v: is_array_of(v, "iu", 1))
VECTOR = Kind("a vector of floating-point numbers", lambda v: is_array_of(v, "f", 1))
NUMBERS = Kind(
    "a number, or a vector of numbers", lambda v: REAL.holds(v) or is_array_of(v, "iuf", 1)
)
PATTERN = Kind(
    "text with {feature_name} and {transformer_name}",
    lambda v: is_text(v) and bool(_NAME_PATTERN.fullmatch(v)),
)
COMPONENTS = Kind("a matrix of floating-point numbers", lambda v: is_array_of(v, "f", 2))
RANGE = Kind(
    "two numbers",
    lambda v: isinstance(v, (tuple, list)) and len(v) == 2 and all(map(REAL.holds, v)),
)
OUTPUT_CONFIG = Kind(
    "the settings of set_output",
    lambda v: (
        isinstance(v, dict)
        and set(v) <= {"transform"}
        and all(w in ("default", "pandas", "polars") for w in v.values())
    ),
)
_COMMON: dict[str, Kind] = {
    "n_features_in_": POSITIVE,
    "feature_names_in_": Kind("names of features", lambda v: _is_labels(v) and _is_texts(v)),
    "_sklearn_output_config": OUTPUT_CONFIG,
}


def _is_span(v: slice) -> bool:
    return is_whole(v.start) and is_whole(v.stop) and v.step is None and 0 <= v.start <= v.stop


# ---------------------------------------------------------------- checks within a step


def _check_scaler(params: dict[str, Any], state: dict[str, Any]) -> None:
    n, name = state["n_features_in_"], "StandardScaler"
    each = floats((n,))
    check_fields(name, state, dict.fromkeys(("mean_", "var_", "scale_"), optional(each)))
    require(not params["with_mean"] or state["mean_"] is not None, name, "mean_ is missing")
    require(not params["with_std"] or state["scale_"] is not None, name, "scale_ is missing")
    seen = np.shape(state["n_samples_seen_"])
    require(seen in ((), (n,)), name, f"n_samples_seen_ must be one number, or {n}")


def _check_min_max(params: dict[str, Any], state: dict[str, Any]) -> None:
    each = floats((state["n_features_in_"],))
    check_fields("MinMaxScaler", state, dict.fromkeys(_MIN_MAX, each))


def _check_imputer(params: dict[str, Any], state: dict[str, Any]) -> None:
    name, n = "SimpleImputer", state["n_features_in_"]
    fits = _is_labels(state["statistics_"], n)
    require(fits, name, f"statistics_ must be a vector of {n} numbers or texts")
    indicator = state["indicator_"]
    fits = (indicator is not None) == params["add_indicator"]
    require(fits, name, "indicator_ must be set if and only if add_indicator=True")
    if indicator is not None:
        fits = vars(indicator).get("_n_features") == n
        require(fits, name, f"indicator_ must be fitted to {n} features")


def _imputed(params: dict[str, Any], state: dict[str, Any]) -> int | None:
    """Return the number of columns; features without any value are dropped unless kept."""
    indicator = state["indicator_"]
    n_more = 0 if indicator is None else vars(indicator)["features_"].size
    if params["keep_empty_features"]:
        return state["n_features_in_"] + n_more
    if params["strategy"] == "constant":
        return None
    return sum(not _is_nan(v) for v in state["statistics_"].tolist()) + n_more


def _is_nan(v: Any) -> bool:
    return isinstance(v, float) and math.isnan(v)


def _check_indicator(params: dict[str, Any], state: dict[str, Any]) -> None:
    n, places = state["_n_features"], state["features_"]
    fits = places.size == 0 or (places.min() >= 0 and places.max() < n)
    require(bool(fits), "MissingIndicator", f"features_ must be among the {n} features")
    require(state.get("n_features_in_", n) == n, "MissingIndicator", f"there must be {n} features")


def _check_pca(params: dict[str, Any], state: dict[str, Any]) -> None:
    n, (k, d) = state["n_features_in_"], state["components_"].shape
    require(d == n, "PCA", f"components_ must have {n} columns")
    require(state["n_components_"] == k, "PCA", f"n_components_ must be {k}, as components_ are")
    each = ("explained_variance_", "explained_variance_ratio_", "singular_values_")
    check_fields("PCA", state, {"mean_": floats((n,)), **dict.fromkeys(each, floats((k,)))})


def _check_polynomial(params: dict[str, Any], state: dict[str, Any]) -> None:
    name, n, degree = "PolynomialFeatures", state["n_features_in_"], params["degree"]
    low, high = (0, degree) if is_whole(degree) else degree
    fits = (state["_min_degree"], state["_max_degree"]) == (low, high)
    require(fits, name, "_min_degree and _max_degree must be those of the parameter degree")
    require(0 <= low <= high <= _MAX_DEGREE, name, f"degree must be from 0 to {_MAX_DEGREE}")
    counts = {"n_output_features_": low, "_n_out_full": 0}
    for attribute, least in counts.items():
        expected = _n_monomials(params, n, least, high)
        fits = state[attribute] == expected
        require(fits, name, f"{attribute} must be {expected} with these parameters")


def _n_monomials(params: dict[str, Any], n: int, low: int, high: int) -> int:
    """Return the number of monomials of `n` variables with degrees in a range."""
    if params["interaction_only"]:
        count = sum(math.comb(n, k) for k in range(max(1, low), min(high, n) + 1))
    else:
        count = math.comb(n + high, high) - 1
        count -= math.comb(n + low - 1, low - 1) - 1 if low > 0 else 0
    return count + bool(params["include_bias"])


def _check_encoder(params: dict[str, Any], state: dict[str, Any]) -> None:
    name, n = "OneHotEncoder", state["n_features_in_"]
    for key in ("categories_", "_n_features_outs"):
        require(len(state[key]) == n, name, f"{key} must have {n} entries")
    groups = [state.get("_infrequent_indices"), state.get("_default_to_infrequent_mappings")]
    fits = all((group is not None) == state["_infrequent_enabled"] for group in groups)
    require(fits, name, "infrequent categories must be set if and only if _infrequent_enabled")
    drops = [state["drop_idx_"], state["_drop_idx_after_grouping"]]
    fits = (drops[0] is None) == (drops[1] is None)
    require(fits, name, "drop_idx_ and _drop_idx_after_grouping must both be set, or neither")
    # The entries of each feature; None for all features if there are no such categories.
    nothing = [None] * n
    infrequent, mappings, dropped, places = (
        nothing if part is None else list(part) for part in (*groups, *drops)
    )
    fits = all(len(part) == n for part in (infrequent, mappings, dropped, places))
    require(fits, name, f"infrequent and dropped categories must have {n} entries")
    for j, categories in enumerate(state["categories_"]):
        size = categories.size
        grouped = _check_infrequent(size, infrequent[j], mappings[j])
        fits = _is_place(dropped[j], size) and _is_place(places[j], grouped)
        fits = fits and (dropped[j] is None) == (places[j] is None)
        require(fits, name, f"drop_idx_ of feature {j} is not among its categories")
        expected = grouped - (places[j] is not None)
        fits = state["_n_features_outs"][j] == expected
        require(fits, name, f"_n_features_outs of feature {j} must be {expected}")


def _is_place(v: Any, n: int) -> bool:
    """Return whether a value is None, or a position among `n`."""
    return v is None or 0 <= v < n


def _check_infrequent(size: int, infrequent: Any, mapping: Any) -> int:
    """Return the number of categories of a feature after infrequent ones are merged."""
    name = "OneHotEncoder"
    fits = (infrequent is None) == (mapping is None)
    require(fits, name, "infrequent categories and their mapping must both be set, or neither")
    if infrequent is None:
        return size
    fits = mapping.shape == (size,) and 0 < infrequent.size <= size
    fits = fits and infrequent.min() >= 0 and infrequent.max() < size
    grouped = size - infrequent.size + 1
    fits = fits and mapping.min() >= 0 and mapping.max() < grouped
    require(bool(fits), name, "infrequent categories must be among the categories")
    return grouped


def _check_columns(params: dict[str, Any], state: dict[str, Any]) -> None:
    name, n = "ColumnTransformer", state["n_features_in_"]
    names = [entry[0] for entry in params["transformers"]]
    known = {*names, "remainder"}
    require(len(known) == len(names) + 1, name, "transformers must have unique names")
    require(len(state["_columns"]) == len(names), name, f"_columns must have {len(names)} entries")
    require(state["_remainder"][0] == "remainder", name, "_remainder must have its own name")
    indices, spans = state["_transformer_to_input_indices"], state["output_indices_"]
    fits = set(indices) == known and all(0 <= k < n for part in indices.values() for k in part)
    require(fits, name, f"_transformer_to_input_indices must be among the {n} features")
    fitted = [entry[0] for entry in state["transformers_"]]
    fits = fitted in (names, [*names, "remainder"])
    require(fits, name, "transformers_ must have the names of transformers")
    require(set(spans) == known, name, "output_indices_ must have the names of transformers")
    stop = 0
    for key, step, columns in state["transformers_"]:
        _check_selection(columns, indices[key], state)
        is_empty = not indices[key] or (is_text(step) and step == "drop")
        wanted, size = n_inputs(step), 0 if is_empty else n_outputs(step)
        fits = is_empty or wanted in (None, len(indices[key]))
        require(fits, name, f"{key!r:.40} takes {wanted} columns, but gets {len(indices[key])}")
        if is_text(step) and step == "passthrough":
            size = len(indices[key])
        span = spans[key]
        fits = is_empty or (span.start == stop and size in (None, span.stop - span.start))
        require(fits, name, f"output_indices_ of {key!r:.40} must be {size} from {stop} on")
        stop = stop if is_empty else span.stop
    outputs = state.get("_transformers_feature_names_out")
    require(outputs is None or _is_texts(outputs), name, "names of outputs must be texts")


def _check_selection(columns: Any, places: list[int], state: dict[str, Any]) -> None:
    """Check that columns by name, position or mask have the stored positions."""
    n, names = state["n_features_in_"], state.get("feature_names_in_")
    found = _positions(columns, n, [] if names is None else list(names))
    require(found == places, "ColumnTransformer", "columns differ from their positions")


def _positions(columns: Any, n: int, names: list[str]) -> list[int] | None:
    """Return the positions of columns among `n`, or None if there are no such columns."""
    if isinstance(columns, slice):
        ends: list[Any] = [columns.start, columns.stop]
        if any(map(is_text, ends)):
            if any(end is not None and end not in names for end in ends):
                return None
            ends = [None if end is None else names.index(end) for end in ends]
            ends[1] = None if ends[1] is None else ends[1] + 1  # the last name is included
        step = columns.step
        if (step is not None and not is_whole(step)) or step == 0 or any(map(is_text, ends)):
            return None
        return list(range(n))[slice(ends[0], ends[1], step)] if n < _MAX_COLUMNS else None
    found = list(columns) if isinstance(columns, (list, np.ndarray)) else [columns]
    if found and all(isinstance(k, (bool, np.bool_)) for k in found):
        return [k for k, is_chosen in enumerate(found) if is_chosen] if len(found) == n else None
    if all(map(is_text, found)):
        return [names.index(k) for k in found] if set(found) <= set(names) else None
    fits = all(is_whole(k) and -n <= k < n for k in found)
    return [int(k) % n for k in found] if fits else None


def _n_columns_out(params: dict[str, Any], state: dict[str, Any]) -> int:
    return max((span.stop for span in state["output_indices_"].values()), default=0)


def _as_many(params: dict[str, Any], state: dict[str, Any]) -> int | None:
    return state.get("n_features_in_")


def _check_nothing(params: dict[str, Any], state: dict[str, Any]) -> None:
    """Accept a step without fitted attributes."""


# ---------------------------------------------------------------- list of allowed classes

_MIN_MAX = ("scale_", "min_", "data_min_", "data_max_", "data_range_")
_LIST = (
    Allowed(
        StandardScaler,
        params=dict.fromkeys(("copy", "with_mean", "with_std"), BOOL),
        fitted={
            "n_features_in_": POSITIVE,
            "n_samples_seen_": NUMBERS,
            **dict.fromkeys(("mean_", "var_", "scale_"), optional(VECTOR)),
        },
        check=_check_scaler,
        n_outputs=_as_many,
    ),
    Allowed(
        MinMaxScaler,
        params={"feature_range": RANGE, "copy": BOOL, "clip": BOOL},
        fitted={
            "n_features_in_": POSITIVE,
            "n_samples_seen_": COUNT,
            **dict.fromkeys(_MIN_MAX, VECTOR),
        },
        check=_check_min_max,
        n_outputs=_as_many,
    ),
    Allowed(
        SimpleImputer,
        params={
            "missing_values": LABEL,
            "strategy": one_of("mean", "median", "most_frequent", "constant"),
            "fill_value": LABEL,
            **dict.fromkeys(("copy", "add_indicator", "keep_empty_features"), BOOL),
        },
        fitted={
            "n_features_in_": POSITIVE,
            "statistics_": LABELS,
            "_fit_dtype": STORED,
            "indicator_": Kind(
                "None or a MissingIndicator", lambda v: v is None or type(v) is MissingIndicator
            ),
        },
        optional={"_fill_dtype": STORED},
        same={"_fill_dtype": "_fit_dtype"},
        check=_check_imputer,
        n_outputs=_imputed,
    ),
    Allowed(
        MissingIndicator,
        params={
            "missing_values": LABEL,
            "features": one_of("missing-only", "all"),
            "sparse": either(BOOL, one_of("auto")),
            "error_on_new": BOOL,
        },
        fitted={"_n_features": POSITIVE, "features_": PLACES, "_precomputed": BOOL},
        check=_check_indicator,
        n_outputs=lambda params, state: state["features_"].size,
    ),
    Allowed(
        OneHotEncoder,
        params={
            "categories": either(one_of("auto"), list_of(either(LABELS, list_of(LABEL)))),
            "drop": optional(either(one_of("first", "if_binary"), either(LABELS, list_of(LABEL)))),
            "sparse_output": BOOL,
            "dtype": DTYPE,
            "handle_unknown": one_of("error", "ignore", "infrequent_if_exist", "warn"),
            "min_frequency": optional(REAL),
            "max_categories": optional(COUNT),
            "feature_name_combiner": one_of("concat"),
        },
        fitted={
            "n_features_in_": POSITIVE,
            "categories_": list_of(LABELS),
            "_infrequent_enabled": BOOL,
            "drop_idx_": DROP,
            "_drop_idx_after_grouping": DROP,
            "_n_features_outs": list_of(COUNT),
        },
        optional={
            "_infrequent_indices": list_of(optional(PLACES)),
            "_default_to_infrequent_mappings": list_of(optional(PLACES)),
        },
        check=_check_encoder,
        n_outputs=lambda params, state: int(sum(state["_n_features_outs"])),
    ),
    Allowed(
        PCA,
        params={
            "n_components": optional(either(REAL, one_of("mle"))),
            "copy": BOOL,
            "whiten": BOOL,
            "svd_solver": TEXT,
            "tol": REAL,
            "iterated_power": either(COUNT, one_of("auto")),
            "n_oversamples": POSITIVE,
            "power_iteration_normalizer": TEXT,
            "random_state": optional(COUNT),
        },
        fitted={
            "n_features_in_": POSITIVE,
            "components_": COMPONENTS,
            "mean_": VECTOR,
            "explained_variance_": VECTOR,
            "explained_variance_ratio_": VECTOR,
            "singular_values_": VECTOR,
            "noise_variance_": REAL,
            "n_components_": COUNT,
            "n_samples_": COUNT,
            "_fit_svd_solver": TEXT,
        },
        check=_check_pca,
        n_outputs=lambda params, state: int(state["n_components_"]),
    ),
    Allowed(
        PolynomialFeatures,
        params={
            "degree": either(COUNT, tuple_of(COUNT)),
            "interaction_only": BOOL,
            "include_bias": BOOL,
            "order": one_of("C", "F"),
        },
        fitted=dict.fromkeys(
            ("n_features_in_", "_min_degree", "_max_degree", "n_output_features_", "_n_out_full"),
            COUNT,
        ),
        check=_check_polynomial,
        n_outputs=lambda params, state: int(state["n_output_features_"]),
    ),
    Allowed(
        FunctionTransformer,
        params={
            **dict.fromkeys(("func", "inverse_func", "kw_args", "inv_kw_args"), NOTHING),
            **dict.fromkeys(("validate", "accept_sparse", "check_inverse"), BOOL),
            "feature_names_out": optional(one_of("one-to-one")),
        },
        fitted={},
        check=_check_nothing,
        n_outputs=_as_many,
    ),
    Allowed(
        ColumnTransformer,
        params={
            "transformers": list_of(ENTRY),
            "remainder": Kind("'drop', 'passthrough' or a transformer", _is_transformer),
            "sparse_threshold": REAL,
            "n_jobs": optional(WHOLE),
            "transformer_weights": optional(dict_of(REAL)),
            "verbose": BOOL,
            "verbose_feature_names_out": either(BOOL, PATTERN),
            "force_int_remainder_cols": either(BOOL, TEXT),
        },
        fitted={
            "n_features_in_": POSITIVE,
            "transformers_": list_of(ENTRY),
            "_columns": list_of(Kind("columns", _is_columns)),
            "_remainder": ENTRY,
            "_transformer_to_input_indices": dict_of(list_of(COUNT)),
            "output_indices_": dict_of(SLICE),
            "sparse_output_": BOOL,
        },
        optional={
            "_n_features": POSITIVE,
            "_transformers_feature_names_out": LABELS,
        },
        check=_check_columns,
        n_outputs=_n_columns_out,
        dropped=("force_int_remainder_cols",),
    ),
)
ALLOWED: dict[str, Allowed] = {allowed.cls.__name__: allowed for allowed in _LIST}
