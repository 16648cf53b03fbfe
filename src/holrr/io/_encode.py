"""Conversion of objects to JSON and arrays, and back, without pickle.

Plain values are unchanged in JSON. Every other value becomes an object with the key ``"$"``, which
names its kind. Classes are found by name among the public classes of this library, the splitters of
scikit-learn and the transformers of scikit-learn that `_sklearn` lists. A pipeline is a list of
such estimators. No other names are resolved, so no file can make the reader run foreign code.
"""

from __future__ import annotations

import dataclasses
import datetime
import inspect
import math
import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import BaseCrossValidator
from sklearn.pipeline import Pipeline

from ..core.input_map import InputMap, InputSpace, Partial
from ..core.input_model import InputModel
from ..core.namespace import is_array, to_numpy
from ..core.own_inputs import OwnCoefficients, OwnGroups
from ..core.results import Results
from ..core.row_residuals import RowResiduals
from ._schema import SchemaError, check_estimator, check_record, check_splitter
from ._sklearn import (
    SKLEARN_VERSION,
    build,
    check_version,
    is_allowed,
    make_pipeline,
    names_of_allowed,
)
from ._upgrade import upgrade

__all__ = ["Decoder", "Encoder"]

# Modules whose public classes can be saved.
_PACKAGES = ("linear", "kernel", "penalized", "model_selection", "data", "diagnostics.monitor")
# Records in models that are not public.
_INTERNAL: dict[str, Any] = {
    record.__name__: record
    for record in [
        *(InputMap, InputModel, InputSpace, OwnCoefficients, OwnGroups, Partial, RowResiduals)
    ]
}
_MODULES = ("holrr", *(f"holrr.{name}" for name in _PACKAGES))


# Names of time zones; other text could be read as names of files.
_ZONE = re.compile(r"(?!dateutil)\w+([+:/-]\w+)*")


class Encoder:
    """Converter of objects to JSON trees, which collects each array once."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self._seen: dict[int, tuple[dict[str, Any], Any]] = {}

    def encode(self, value: Any, where: str) -> Any:
        """Convert `value` to JSON; `where` names it in errors."""
        if value is None or isinstance(value, (bool, str)):
            return value
        if isinstance(value, np.generic):
            return {"$": "scalar", **self._array(np.asarray(value), where)}
        if isinstance(value, int):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"$": "float", "value": repr(value)}
        for kind, applies, method in _ENCODERS:
            if applies(value):
                return {"$": kind, **method(self, value, where)}
        raise TypeError(
            f"{where} cannot be saved: it is {_describe(value)}, which cannot be stored in a file "
            f"without code. Replace it, or use joblib.dump for files that only you will load."
        )

    def _list(self, value: Any, where: str) -> dict[str, Any]:
        return {"items": [self.encode(v, f"{where}[{i}]") for i, v in enumerate(value)]}

    def _dict(self, value: dict[Any, Any], where: str) -> dict[str, Any]:
        name = f"a key of {where}"
        return {
            "items": [
                [self.encode(k, name), self.encode(v, f"{where}[{k!r}]")] for k, v in value.items()
            ]
        }

    def _range(self, value: range, where: str) -> dict[str, Any]:
        return {"start": value.start, "stop": value.stop, "step": value.step}

    def _array(self, value: Any, where: str) -> dict[str, Any]:
        if id(value) not in self._seen:
            array, view = _whole(to_numpy(value))
            node = {"name": f"{len(self.arrays)}", **view}
            self.arrays[node["name"]] = array
            self._seen[id(value)] = (node, value)  # a reference to the value keeps its id unique
        return dict(self._seen[id(value)][0])

    def _objects(self, value: Any, where: str) -> dict[str, Any]:
        value = np.asarray(value, dtype=object)
        return {"shape": list(value.shape), **self._list(value.ravel().tolist(), where)}

    def _date(self, value: Any, where: str) -> dict[str, Any]:
        parts = ("year", "month", "day", "hour", "minute", "second", "microsecond")
        found = [int(getattr(value, part)) for part in parts]
        return {"class": type(value).__name__, "calendar": value.calendar, "parts": found}

    def _clock(self, value: Any, where: str) -> dict[str, Any]:
        return {"class": type(value).__name__, "value": value.isoformat()}

    def _timestamp(self, value: Any, where: str) -> dict[str, Any]:
        date, zone = value.to_datetime64(), None if value.tz is None else str(value.tz)
        found = {
            "text": str(value),
            "count": int(date.astype(np.int64)),
            "unit": np.datetime_data(date)[0],
            "zone": zone,
        }
        if zone is not None and not _names_zone(value, zone):
            raise TypeError(
                f"{where} cannot be saved: its time zone {zone} has no name that can be looked up. "
                f"Convert it with tz_convert, to 'UTC' for instance."
            )
        return found

    def _period(self, value: Any, where: str) -> dict[str, Any]:
        return {"text": str(value), "ordinal": int(value.ordinal), "freq": value.freqstr}

    def _interval(self, value: Any, where: str) -> dict[str, Any]:
        left, right = self.encode(value.left, where), self.encode(value.right, where)
        return {"text": str(value), "left": left, "right": right, "closed": value.closed}

    def _named(self, value: Any, where: str) -> dict[str, Any]:
        """Encode numbers with named axes of pandas or xarray, such as weights of outputs."""
        if comes_from(value, "xarray"):
            axes = [(dim, value.indexes.get(dim)) for dim in value.dims]
        else:
            axes = [(index.name, index) for index in value.axes]
        labels = [None if index is None else index.to_numpy() for _, index in axes]
        return {
            "class": type(value).__name__,
            "data": self.encode(np.asarray(value), where),
            "axes": self.encode([name for name, _ in axes], where),
            "labels": self.encode(labels, f"a label of {where}"),
            "name": self.encode(getattr(value, "name", None), where),
        }

    def _masked(self, value: np.ma.MaskedArray, where: str) -> dict[str, Any]:
        mask = np.ma.getmaskarray(value)
        return {
            "data": self.encode(np.ma.getdata(value), where),
            "mask": self.encode(mask, where),
            "fill_value": self.encode(value.fill_value, where),
        }

    def _record(self, value: Any, where: str) -> dict[str, Any]:
        name = _public_name(value, where)
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return {"class": name, "state": self._state(fields, where)}

    def _estimator(self, value: Any, where: str) -> dict[str, Any]:
        name, params = _public_name(value, where), value.get_params(deep=False)
        left_out = {*params, "held_out_"}
        fitted = {k: v for k, v in value.__getstate__().items() if k not in left_out}
        return {
            "class": name,
            "params": self._state(params, where),
            "state": self._state(fitted, where),
        }

    def _pipeline(self, value: Pipeline, where: str) -> dict[str, Any]:
        state = vars(value)
        if state.get("memory") is not None:
            raise TypeError(
                f"{where}.memory cannot be saved, since a cache is a folder of this machine. Set "
                f"memory=None."
            )
        for name in set(state) - {"steps", "memory", "verbose", "transform_input"}:
            raise TypeError(
                f"{where}.{name} cannot be saved, since a file contains only the parameters of a "
                f"pipeline. Delete this attribute."
            )
        return {
            **self._list([list(step) for step in value.steps], where),
            "verbose": self.encode(value.verbose, f"{where}.verbose"),
            "transform_input": self.encode(value.transform_input, f"{where}.transform_input"),
        }

    def _sklearn(self, value: Any, where: str) -> dict[str, Any]:
        params = value.get_params(deep=False)
        # The version of scikit-learn is stored in the header, not here.
        fitted = {k: v for k, v in vars(value).items() if k not in params}
        return {
            "class": type(value).__name__,
            "params": self._state(_without_index(params), where),
            "state": self._state(_without_index(fitted), where),
        }

    def _slice(self, value: slice, where: str) -> dict[str, Any]:
        return {k: self.encode(getattr(value, k), where) for k in ("start", "stop", "step")}

    def _dtype(self, value: Any, where: str) -> dict[str, Any]:
        name = value.name if isinstance(value, np.dtype) else value.__name__
        if isinstance(value, np.dtype) and value.kind == "U":
            name = value.str
        return {"name": name, "of": _origin(value)}

    def _splitter(self, value: Any, where: str) -> dict[str, Any]:
        return {"class": type(value).__name__, "state": self._state(vars(value), where)}

    def _state(self, state: dict[str, Any], where: str) -> dict[str, Any]:
        return {k: self.encode(v, f"{where}.{k}") for k, v in state.items()}


def _without_index(value: Any) -> Any:
    """Convert columns of a `ColumnTransformer` from an index of pandas to arrays."""
    if isinstance(value, dict):
        return {k: _without_index(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([_without_index(v) for v in value])
    is_index = comes_from(value, "pandas") and type(value).__name__ == "Index"
    return value.to_numpy() if is_index else value


class Decoder:
    """The inverse of `Encoder`."""

    def __init__(
        self, arrays: dict[str, np.ndarray], version: int, sklearn_version: Any = SKLEARN_VERSION
    ) -> None:
        self._arrays, self._version = arrays, version
        self._sklearn_version, self._is_compared = sklearn_version, False

    def decode(self, tree: Any) -> Any:
        if not isinstance(tree, dict):
            return tree
        decode = _DECODERS.get(tree["$"])
        if decode is None:
            raise ValueError(f"the kind {tree['$']!r} of a value is unknown.")
        return decode(self, tree)

    def _items(self, tree: dict[str, Any]) -> list[Any]:
        return [self.decode(item) for item in tree["items"]]

    def _dict(self, tree: dict[str, Any]) -> dict[Any, Any]:
        return {self.decode(k): self.decode(v) for k, v in tree["items"]}

    def _range(self, tree: dict[str, Any]) -> range:
        return range(tree["start"], tree["stop"], tree["step"])

    def _array(self, tree: dict[str, Any]) -> np.ndarray:
        array = self._arrays[tree["name"]]
        if "columns" in tree:
            n = tree["columns"]
            if array.ndim != 2 or type(n) is not int or not 0 < n <= array.shape[1]:
                raise ValueError("columns do not fit their array.")
            array = array[:, :n].T if tree.get("transposed") is True else array[:, :n]
        return array[::-1] if tree.get("reversed") is True and array.ndim else array

    def _objects(self, tree: dict[str, Any]) -> np.ndarray:
        items = self._items(tree)
        array = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):
            array[i] = item
        return array.reshape(tree["shape"])

    def _date(self, tree: dict[str, Any]) -> Any:
        """Decode a cftime date of another calendar; its text if cftime is not installed."""
        year, month, day, *clock = tree["parts"]
        try:
            cftime: Any = import_module("cftime")
        except ImportError:
            return f"{year:04}-{month:02}-{day:02} {clock[0]:02}:{clock[1]:02}:{clock[2]:02}"
        cls = getattr(cftime, tree["class"], None)
        if not (isinstance(cls, type) and issubclass(cls, cftime.datetime)):
            raise ValueError(f"{tree['class']!r} is not a date class of cftime.")
        calendar = {"calendar": tree["calendar"]} if cls is cftime.datetime else {}
        return cls(year, month, day, *clock, **calendar)

    def _clock(self, tree: dict[str, Any]) -> Any:
        return _CLOCKS[tree["class"]].fromisoformat(tree["value"])

    def _of_pandas(self, tree: dict[str, Any]) -> Any:
        """Decode a label of pandas; its text if pandas is not installed."""
        try:
            pandas: Any = import_module("pandas")
        except ImportError:
            return str(tree["text"])
        if tree["$"] == "period":
            return pandas.Period(ordinal=tree["ordinal"], freq=tree["freq"])
        if tree["$"] == "interval":
            return pandas.Interval(
                self.decode(tree["left"]), self.decode(tree["right"]), tree["closed"]
            )
        date = pandas.Timestamp(np.datetime64(tree["count"], tree["unit"]))
        zone = tree["zone"]
        if zone is not None and not _ZONE.fullmatch(zone):
            raise ValueError(f"{zone!r} is not the name of a time zone.")
        return date if zone is None else date.tz_localize("UTC").tz_convert(zone)

    def _named(self, tree: dict[str, Any]) -> Any:
        """Decode numbers with named axes; without names if their library is not installed."""
        data, axes, labels, name = (
            self.decode(tree[key]) for key in ("data", "axes", "labels", "name")
        )
        library, make = _NAMED[tree["class"]]
        if not isinstance(data, np.ndarray) or not data.ndim == len(axes) == len(labels):
            raise ValueError("names of axes do not fit their array.")
        try:
            module: Any = import_module(library)
        except ImportError:
            return data
        return make(module, data, axes, labels, name)

    def _masked(self, tree: dict[str, Any]) -> np.ma.MaskedArray:
        data, mask, fill = (self.decode(tree[key]) for key in ("data", "mask", "fill_value"))
        # Any other mask would be broadcast: a large array for a few bytes of the file.
        if mask.dtype != bool or type(data) is not np.ndarray or mask.shape != data.shape:
            raise ValueError("a mask does not fit its array.")
        return np.ma.MaskedArray(data, mask, fill_value=fill)

    def _record(self, tree: dict[str, Any]) -> Any:
        cls = _public_class(tree["class"], dataclasses.is_dataclass)
        value = cls(**self._state(tree["state"]))
        check_record(value)
        return value

    def _estimator(self, tree: dict[str, Any]) -> Any:
        cls = _public_class(tree["class"], _is_estimator_class)
        value = cls(**self._state(tree["params"]))
        vars(value).update(self._state(tree["state"]))
        upgrade(value, self._version)
        check_estimator(value)
        return value

    def _pipeline(self, tree: dict[str, Any]) -> Pipeline:
        plain = {k: self.decode(v) for k, v in tree.items() if k not in ("$", "items")}
        return make_pipeline(plain, self._items(tree))

    def _sklearn(self, tree: dict[str, Any]) -> Any:
        if set(tree) != {"$", "class", "params", "state"}:
            raise SchemaError("a step of scikit-learn must have class, params and state")
        if not self._is_compared:
            check_version(self._sklearn_version)
            self._is_compared = True
        params, state = self._state(tree["params"]), self._state(tree["state"])
        return build(tree["class"], params, state, self._sklearn_version)

    def _slice(self, tree: dict[str, Any]) -> slice:
        return slice(*(self.decode(tree[k]) for k in ("start", "stop", "step")))

    def _dtype(self, tree: dict[str, Any]) -> Any:
        origin, name = tree["of"], tree["name"]
        if origin == "python" and name in _PYTHON_TYPES:
            return _PYTHON_TYPES[name]
        if origin == "scalar" and name in _SCALAR_TYPES:
            return _SCALAR_TYPES[name]
        if origin == "dtype" and _DTYPE_NAME.fullmatch(name):
            return np.dtype(name)
        raise ValueError(f"{name!r:.40} is not a dtype that a file may contain.")

    def _splitter(self, tree: dict[str, Any]) -> Any:
        cls: Any = getattr(import_module("sklearn.model_selection"), tree["class"], None)
        if not _is_splitter_class(cls):
            raise ValueError(f"{tree['class']!r} is not a splitter of scikit-learn.")
        state = self._state(tree["state"])
        parameters = inspect.signature(cls).parameters
        value = cls(**{name: v for name, v in state.items() if name in parameters})
        check_splitter(value, state)
        return value

    def _state(self, state: dict[str, Any]) -> dict[str, Any]:
        return {k: self.decode(v) for k, v in state.items()}


def _whole(array: np.ndarray) -> tuple[np.ndarray, dict[str, Any]]:
    """Return an array as it is stored, and the description of its memory layout in the node.

    Products with a matrix of another memory layout can differ in the last bit. So columns of a
    wider matrix are stored with zeros in place of the other columns, and transposed or reversed
    matrices keep their layout.
    """
    if array.ndim == 2 and array.strides[0] < 0:
        found, view = _whole(array[::-1])
        return found, {**view, "reversed": True}
    if array.ndim != 2 or array.flags.c_contiguous or array.flags.f_contiguous:
        return array, {}
    is_transposed = array.strides[0] == array.itemsize
    rows = array.T if is_transposed else array
    width, rest = divmod(rows.strides[0], array.itemsize)
    if rows.strides[1] != array.itemsize or rest or width < rows.shape[1]:
        return array.copy(order="K"), {}
    found = np.zeros((rows.shape[0], width), array.dtype)
    found[:, : rows.shape[1]] = rows
    return found, {"columns": rows.shape[1], "transposed": is_transposed}


# ---------------------------------------------------------------- classes and kinds of values


def _is_estimator_class(cls: Any) -> bool:
    return isinstance(cls, type) and issubclass(cls, BaseEstimator)


def _is_splitter_class(cls: Any) -> bool:
    # The base class of the shuffling splitters is private, so module and method are checked.
    return (
        isinstance(cls, type)
        and cls.__module__ == "sklearn.model_selection._split"
        and (issubclass(cls, BaseCrossValidator) or hasattr(cls, "get_n_splits"))
    )


def _public_class(name: str, wanted: Callable[[Any], bool]) -> Any:
    """Return the public class `name` of this library, or a record that models contain."""
    if name in _INTERNAL and wanted(_INTERNAL[name]):
        return _INTERNAL[name]
    for module in _MODULES:
        public = import_module(module)
        found = getattr(public, name) if name in public.__all__ else None
        if isinstance(found, type) and wanted(found) and found.__module__.startswith("holrr."):
            return found
    raise ValueError(f"{name!r} is not a class of this version of holrr that a file may contain.")


def _public_name(value: Any, where: str) -> str:
    name = type(value).__name__
    try:
        _public_class(name, lambda cls: cls is type(value))
    except ValueError:
        raise TypeError(
            f"{where} cannot be saved: {_describe(value)} is neither a public class of holrr nor "
            f"one of the classes of scikit-learn that a file may contain ({names_of_allowed()}). "
            f"Use joblib.dump for files that only you will load."
        ) from None
    return name


def _describe(value: Any) -> str:
    if callable(value) and hasattr(value, "__qualname__"):
        return f"the function {value.__module__}.{value.__qualname__}"
    return f"an object of {type(value).__module__}.{type(value).__qualname__}"


def _is(*types: type) -> Callable[[Any], bool]:
    # Subclasses, such as named tuples, are not accepted, since they would lose their type.
    return lambda value: type(value) in types


def comes_from(value: Any, library: str) -> bool:
    """Return whether a value is an object of a library, without importing the library."""
    return type(value).__module__.partition(".")[0] == library


def _names_zone(value: Any, zone: str) -> bool:
    """Return whether the name of a time zone identifies it."""
    try:
        return (
            bool(_ZONE.fullmatch(zone)) and value.tz_convert(zone).isoformat() == value.isoformat()
        )
    except Exception:  # each library of time zones has its own exceptions
        return False


def _is_of_pandas(*names: str) -> Callable[[Any], bool]:
    return lambda value: comes_from(value, "pandas") and type(value).__name__ in names


def _has_numbers(value: Any) -> bool:
    """Return whether a value is an array of numbers of pandas or xarray."""
    named = comes_from(value, "pandas") or comes_from(value, "xarray")
    return named and hasattr(value, "to_numpy") and np.asarray(value).dtype.kind != "O"


def _has_objects(value: Any) -> bool:
    """Return whether a value is a vector of text or other objects, such as an index of pandas."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind == "O"
    named = comes_from(value, "pandas") and hasattr(value, "__array__")
    return named and np.asarray(value).dtype.kind == "O" and not hasattr(value, "axes")


def _is_named(value: Any) -> bool:
    """Return whether a value is an array whose axes have names or labels of one level."""
    named = comes_from(value, "pandas") or comes_from(value, "xarray")
    if not named or not hasattr(value, "to_numpy") or type(value).__name__ not in _NAMED:
        return False
    indexes = value.indexes.values() if comes_from(value, "xarray") else value.axes
    return all(index.nlevels == 1 for index in indexes)


def _data_array(xarray: Any, data: np.ndarray, axes: Any, labels: Any, name: Any) -> Any:
    coords = {dim: v for dim, v in zip(axes, labels, strict=True) if v is not None}
    return xarray.DataArray(data, coords, axes, name)


def _series(pandas: Any, data: np.ndarray, axes: Any, labels: Any, name: Any) -> Any:
    return pandas.Series(data, pandas.Index(labels[0], name=axes[0]), name=name)


def _frame(pandas: Any, data: np.ndarray, axes: Any, labels: Any, name: Any) -> Any:
    index, columns = (pandas.Index(v, name=n) for v, n in zip(labels, axes, strict=True))
    return pandas.DataFrame(data, index, columns)


# Library of each class, and a function that creates an instance.
_NAMED: dict[str, tuple[str, Callable[..., Any]]] = {
    "DataArray": ("xarray", _data_array),
    "Series": ("pandas", _series),
    "DataFrame": ("pandas", _frame),
}
_CLOCKS: dict[str, Any] = {
    cls.__name__: cls for cls in (datetime.date, datetime.datetime, datetime.time)
}


# Types of numbers and text, which encoders and imputers have as parameters and attributes.
_PYTHON_TYPES: dict[str, Any] = {cls.__name__: cls for cls in (bool, int, float, str, object)}
_SCALAR_TYPES: dict[str, Any] = {
    cls.__name__: cls
    for cls in [
        *(np.bool_, np.str_, np.object_, np.float16, np.float32, np.float64),
        *(np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64),
    ]
}
_DTYPE_NAME = re.compile(r"bool|object|float(16|32|64)|u?int(8|16|32|64)|[<>]U[0-9]{1,7}")


def _origin(value: Any) -> str:
    if isinstance(value, np.dtype):
        return "dtype"
    return "python" if value in _PYTHON_TYPES.values() else "scalar"


def _is_dtype(value: Any) -> bool:
    if isinstance(value, type):
        return value in _PYTHON_TYPES.values() or value in _SCALAR_TYPES.values()
    if not isinstance(value, np.dtype):
        return False
    return value.name in _SCALAR_DTYPES or (value.kind == "U" and bool(value.itemsize))


_SCALAR_DTYPES = {np.dtype(cls).name for cls in _SCALAR_TYPES.values()} - {"str"}


def _is_record(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


# The first entry that applies is used.
_ENCODERS: tuple[tuple[str, Callable[[Any], bool], Callable[..., dict[str, Any]]], ...] = (
    ("list", _is(list), Encoder._list),
    ("tuple", _is(tuple), Encoder._list),
    ("dict", _is(dict, Results), Encoder._dict),
    ("range", _is(range), Encoder._range),
    ("slice", _is(slice), Encoder._slice),
    ("dtype", _is_dtype, Encoder._dtype),
    ("date", lambda v: comes_from(v, "cftime"), Encoder._date),
    ("clock", _is(datetime.date, datetime.datetime, datetime.time), Encoder._clock),
    ("timestamp", _is_of_pandas("Timestamp", "NaTType"), Encoder._timestamp),
    ("period", _is_of_pandas("Period"), Encoder._period),
    ("interval", _is_of_pandas("Interval"), Encoder._interval),
    ("masked", lambda v: isinstance(v, np.ma.MaskedArray), Encoder._masked),
    ("objects", _has_objects, Encoder._objects),
    ("named", _is_named, Encoder._named),
    ("array", lambda v: is_array(v) or _has_numbers(v), Encoder._array),
    ("record", _is_record, Encoder._record),
    ("pipeline", _is(Pipeline), Encoder._pipeline),
    ("sklearn", is_allowed, Encoder._sklearn),
    ("estimator", lambda v: _is_estimator_class(type(v)), Encoder._estimator),
    ("splitter", lambda v: _is_splitter_class(type(v)), Encoder._splitter),
)

_DECODERS: dict[str, Callable[[Decoder, dict[str, Any]], Any]] = {
    "float": lambda self, tree: float(tree["value"]),
    "scalar": lambda self, tree: self._array(tree)[()],
    "list": Decoder._items,
    "tuple": lambda self, tree: tuple(self._items(tree)),
    "dict": Decoder._dict,
    "range": Decoder._range,
    "array": Decoder._array,
    "objects": Decoder._objects,
    "date": Decoder._date,
    "clock": Decoder._clock,
    "timestamp": Decoder._of_pandas,
    "period": Decoder._of_pandas,
    "interval": Decoder._of_pandas,
    "named": Decoder._named,
    "masked": Decoder._masked,
    "record": Decoder._record,
    "estimator": Decoder._estimator,
    "splitter": Decoder._splitter,
    "pipeline": Decoder._pipeline,
    "sklearn": Decoder._sklearn,
    "slice": Decoder._slice,
    "dtype": Decoder._dtype,
}
