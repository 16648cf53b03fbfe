"""State of estimators as plain data, for files and pickles.

The state of an estimator contains records of this library, such as labels and coefficients in
Tucker form. It can also contain objects of pandas, xarray or cftime, such as dates among the labels
or weights of outputs as a DataArray. `to_plain` converts them to dicts, lists, text, numbers and
NumPy arrays. So a file names none of these classes, and can be loaded where these libraries are not
installed. `from_plain` is the inverse.

A converted value is a dict with the key ``"$"``, which names its kind. Kinds that are not listed
here raise an error: nothing that a file names is called.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any, TypeVar

import numpy as np

from .namespace import is_array, to_numpy
from .results import Results

__all__ = ["VERSION", "PlainState", "check_version", "from_plain", "record", "to_plain"]
__all__ += ["writing_file"]

# Version of the state of estimators and moments. A release that reads older states differently
# raises it, and converts them in `PlainState.__setstate__`.
VERSION = 1
_KEY = "holrr_state"

T = TypeVar("T", bound=type)
_RECORDS: dict[str, type] = {}
# Names of time zones; other text could be read as names of files.
_ZONE = re.compile(r"(?!dateutil)\w+([+:/-]\w+)*")
_CLOCKS = {cls.__name__: cls for cls in (datetime.date, datetime.datetime, datetime.time)}
_SEPARATOR = "\0"
_to_file = ContextVar("_to_file", default=False)


def record(cls: T) -> T:
    """Register a dataclass that the state of an estimator may contain."""
    _RECORDS[cls.__name__] = cls
    return cls


@contextmanager
def writing_file() -> Iterator[None]:
    """Within this context, states are for a file.

    Arrays of other libraries are converted to NumPy, and what only the search itself needs is left
    out, see `PlainState.__getstate__`.
    """
    token = _to_file.set(True)
    try:
        yield
    finally:
        _to_file.reset(token)


class PlainState:
    """Mixin of estimators whose `__getstate__` returns plain data."""

    # Attributes that copies have, but files do not.
    _not_in_files: tuple[str, ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())  # type: ignore[call-overload]
        if _to_file.get():
            state = self._state_for_file(state)
        return {_KEY: VERSION, **{name: to_plain(value) for name, value in state.items()}}

    def _state_for_file(self, state: dict[str, Any]) -> dict[str, Any]:
        """Return the state that a file contains."""
        return {k: v for k, v in state.items() if k not in self._not_in_files}

    def __setstate__(self, state: dict[str, Any]) -> None:
        check_version(state.get(_KEY), type(self).__name__)
        plain = {k: from_plain(v) for k, v in state.items() if k != _KEY}
        super().__setstate__(plain)  # type: ignore[misc]


def check_version(version: Any, name: str) -> None:
    """Raise a ValueError if this library cannot read the state of an object."""
    if type(version) is not int or not 1 <= version <= VERSION:
        raise ValueError(
            f"the state of {name} has version {version!r}, but this version of holrr reads "
            f"versions 1 to {VERSION}. Update holrr."
        )


# ---------------------------------------------------------------- to plain data


def to_plain(value: Any) -> Any:
    """Return a value with records and labels of other libraries as plain data.

    Other objects, such as estimators and splitters, are unchanged.
    """
    kind = type(value)
    if kind in (list, tuple):
        return kind(map(to_plain, value))
    if kind is dict or (isinstance(value, Results) and _to_file.get()):
        return _dict_to_plain(value)
    if isinstance(value, np.ndarray):
        is_objects = kind is np.ndarray and value.dtype.kind == "O"
        return _objects_to_plain(value) if is_objects else value
    if kind.__name__ in _RECORDS and _RECORDS[kind.__name__] is kind:
        state = {f.name: to_plain(getattr(value, f.name)) for f in fields(value)}
        return {"$": "record", "class": kind.__name__, "state": state}
    if kind is range:
        return {"$": "range", "ends": (value.start, value.stop, value.step)}
    if kind in _CLOCKS.values():
        return {"$": "clock", "class": kind.__name__, "value": value.isoformat()}
    library = kind.__module__.partition(".")[0]
    if library in _OTHERS:
        return _OTHERS[library](value)
    return to_numpy(value) if _to_file.get() and is_array(value) else value


def _dict_to_plain(value: dict[Any, Any]) -> dict[str, Any]:
    if all(type(k) is str and k != "$" for k in value):
        return {k: to_plain(v) for k, v in value.items()}
    return {"$": "dict", "items": [(to_plain(k), to_plain(v)) for k, v in value.items()]}


def _objects_to_plain(value: np.ndarray) -> dict[str, Any]:
    """Convert an array of objects; text is stored in bytes, since it may be one name per cell."""
    items, shape = value.ravel().tolist(), list(value.shape)
    if items and all(type(v) is str and _SEPARATOR not in v for v in items):
        data = _SEPARATOR.join(items).encode(errors="surrogatepass")
        return {"$": "text", "shape": shape, "data": np.frombuffer(data, dtype=np.uint8)}
    return {"$": "objects", "shape": shape, "items": [to_plain(v) for v in items]}


def _of_cftime(value: Any) -> Any:
    parts = ("year", "month", "day", "hour", "minute", "second", "microsecond")
    found = [int(getattr(value, part)) for part in parts]
    return {"$": "date", "class": type(value).__name__, "calendar": value.calendar, "parts": found}


def _of_pandas(value: Any) -> Any:
    name = type(value).__name__
    if name == "NaTType":
        return {"$": "timestamp", "text": "NaT", "count": np.iinfo(np.int64).min, "unit": "ns"}
    if name == "Timestamp":
        return _timestamp(value)
    if name == "Period":
        return {
            "$": "period",
            "text": str(value),
            "ordinal": int(value.ordinal),
            "freq": value.freqstr,
        }
    if name == "Interval":
        ends = {"left": to_plain(value.left), "right": to_plain(value.right)}
        return {"$": "interval", "text": str(value), "closed": value.closed, **ends}
    if name in ("Series", "DataFrame"):
        return _named(value, [(axis.name, axis) for axis in value.axes])
    is_column = hasattr(value, "nlevels") or name == "Categorical"
    return to_plain(np.asarray(value)) if is_column else value


def _timestamp(value: Any) -> dict[str, Any]:
    date, zone = value.to_datetime64(), None if value.tz is None else str(value.tz)
    found = {
        "$": "timestamp",
        "text": str(value),
        "count": int(date.astype(np.int64)),
        "unit": np.datetime_data(date)[0],
    }
    if zone is None:
        return found
    if not _names_zone(value, zone):
        raise TypeError(
            f"the time zone {zone} of the label {value} has no name that can be looked up. Convert "
            f"it with tz_convert, to 'UTC' for instance."
        )
    return {**found, "zone": zone}


def _names_zone(value: Any, zone: str) -> bool:
    """Return whether the name of a time zone identifies it."""
    try:
        again = value.tz_convert(zone)
    except Exception:  # each library of time zones has its own exceptions
        return False
    return bool(_ZONE.fullmatch(zone)) and again.isoformat() == value.isoformat()


def _of_xarray(value: Any) -> Any:
    if type(value).__name__ != "DataArray":
        return value
    return _named(value, [(dim, value.indexes.get(dim)) for dim in value.dims])


def _named(value: Any, axes: list[tuple[Any, Any]]) -> dict[str, Any]:
    """Convert numbers with named axes, such as weights of outputs."""
    return {
        "$": "named",
        "class": type(value).__name__,
        "data": to_plain(value.to_numpy()),
        "axes": to_plain([name for name, _ in axes]),
        "labels": to_plain([None if axis is None else axis.to_numpy() for _, axis in axes]),
        "name": to_plain(getattr(value, "name", None)),
    }


def _of_polars(value: Any) -> Any:
    return to_plain(value.to_numpy()) if hasattr(value, "to_numpy") else value


_OTHERS: dict[str, Callable[[Any], Any]] = {
    "cftime": _of_cftime,
    "pandas": _of_pandas,
    "polars": _of_polars,
    "xarray": _of_xarray,
}


# ---------------------------------------------------------------- from plain data


def from_plain(value: Any) -> Any:
    """Return the value that `to_plain` converted.

    Labels of pandas and cftime become text, and weights with named axes become arrays, where their
    library is not installed.
    """
    if type(value) in (list, tuple):
        return type(value)(map(from_plain, value))
    if type(value) is not dict:
        return value
    if "$" not in value:
        return {k: from_plain(v) for k, v in value.items()}
    kind = value["$"]
    if kind not in _KINDS:
        raise ValueError(f"the kind {kind!r:.40} of a value is unknown.")
    return _KINDS[kind]({k: from_plain(v) for k, v in value.items() if k != "$"})


def _record(v: dict[str, Any]) -> Any:
    cls = _RECORDS.get(v["class"])
    if cls is None or not is_dataclass(cls):
        raise ValueError(f"{v['class']!r:.40} is not a record of this version of holrr.")
    return cls(**v["state"])


def _text(v: dict[str, Any]) -> np.ndarray:
    items = v["data"].tobytes().decode(errors="surrogatepass").split(_SEPARATOR)
    return _objects({"items": items, "shape": v["shape"]})


def _objects(v: dict[str, Any]) -> np.ndarray:
    found = np.empty(len(v["items"]), dtype=object)
    for i, item in enumerate(v["items"]):
        found[i] = item
    return found.reshape(v["shape"])


def _date(v: dict[str, Any]) -> Any:
    year, month, day, *clock = v["parts"]
    cftime = _installed("cftime")
    if cftime is None:
        return f"{year:04}-{month:02}-{day:02} {clock[0]:02}:{clock[1]:02}:{clock[2]:02}"
    cls = getattr(cftime, v["class"], None)
    if not (isinstance(cls, type) and issubclass(cls, cftime.datetime)):
        raise ValueError(f"{v['class']!r:.40} is not a date class of cftime.")
    calendar = {"calendar": v["calendar"]} if cls is cftime.datetime else {}
    return cls(year, month, day, *clock, **calendar)


def _label_of_pandas(make: Callable[[Any, dict[str, Any]], Any]) -> Callable[[dict[str, Any]], Any]:
    def read(v: dict[str, Any]) -> Any:
        pandas = _installed("pandas")
        return v["text"] if pandas is None else make(pandas, v)

    return read


def _read_timestamp(pandas: Any, v: dict[str, Any]) -> Any:
    date, zone = pandas.Timestamp(np.datetime64(v["count"], v["unit"])), v.get("zone")
    if zone is None:
        return date
    if not _ZONE.fullmatch(zone):
        raise ValueError(f"{zone!r:.40} is not the name of a time zone.")
    return date.tz_localize("UTC").tz_convert(zone)


def _read_named(v: dict[str, Any]) -> Any:
    data, axes, labels, name = (v[key] for key in ("data", "axes", "labels", "name"))
    module = _installed("xarray" if v["class"] == "DataArray" else "pandas")
    if module is None:
        return data
    if v["class"] == "DataArray":
        coords = {dim: a for dim, a in zip(axes, labels, strict=True) if a is not None}
        return module.DataArray(data, coords, axes, name)
    index, *columns = (module.Index(a, name=n) for a, n in zip(labels, axes, strict=True))
    return (
        module.DataFrame(data, index, *columns)
        if columns
        else module.Series(data, index, name=name)
    )


def _installed(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        return None


_KINDS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "clock": lambda v: _CLOCKS[v["class"]].fromisoformat(v["value"]),
    "date": _date,
    "dict": lambda v: dict(v["items"]),
    "interval": _label_of_pandas(lambda pd, v: pd.Interval(v["left"], v["right"], v["closed"])),
    "named": _read_named,
    "objects": _objects,
    "period": _label_of_pandas(lambda pd, v: pd.Period(ordinal=v["ordinal"], freq=v["freq"])),
    "range": lambda v: range(*v["ends"]),
    "record": _record,
    "text": _text,
    "timestamp": _label_of_pandas(_read_timestamp),
}
