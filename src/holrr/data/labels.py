"""Labels of data: names of features, labels of rows, names and coordinates of output modes.

Labels are stored as plain values, so that files contain no code and can be read without xarray and
pandas.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from ..core.state import record
from .arrays import comes_from

__all__ = ["Grid", "Labels", "RowDifference", "check_features", "check_rows", "differing_axis"]
__all__ += ["differing_rows", "features_of"]
__all__ += ["first_difference", "free", "mode_coordinates", "mode_names", "name_by_hand"]
__all__ += ["other_features", "out_of_order", "plain", "row_index", "same"]


@record
@dataclass(frozen=True, eq=False)
class Grid:
    """Names and coordinates of the axes of an array, except the sample axis.

    Parameters
    ----------
    dims : tuple of str
        Names of the axes.
    shape : tuple of int
        Sizes of the axes.
    coords : dict
        Coordinates in the form of xarray, from a name to ``(dims, values, attrs)``. A coordinate
        with the name of an axis labels its entries; others may belong to several axes, or to none.
    name : str or None
        Name of the array.
    attrs : dict
        Attributes of the array.
    levels : dict
        For each axis with several index levels, the coordinates that are these levels.
    is_named : bool
        Whether the axes have names. If not, `dims` are placeholders.

    Examples
    --------
    >>> from holrr.data import Grid
    >>> grid = Grid(("lat", "lon"), (1, 2), {"lat": (("lat",), np.array([50.0]), {})})
    >>> grid.entries(), grid.coordinate(0), grid.is_like(grid)
    (['lat=50.0,lon[0]', 'lat=50.0,lon[1]'], array([50.]), True)
    >>> grid.is_labelled(0), grid.is_labelled(1), grid.is_transposed(Grid(("lon", "lat"), (2, 1)))
    (True, False, True)
    """

    dims: tuple[str, ...] = ()
    shape: tuple[int, ...] = ()
    coords: dict[str, Any] = field(default_factory=dict)
    name: Any = None
    attrs: dict[str, Any] = field(default_factory=dict)
    levels: dict[str, Any] = field(default_factory=dict)
    is_named: bool = True

    def entries(self) -> list[str]:
        """Return a name for each entry, with the last axis varying fastest."""
        prefix = "" if self.name is None else str(self.name)
        if not self.dims:
            return [prefix or "x"]
        if not self.is_named:
            places = [",".join(map(str, place)) for place in np.ndindex(*self.shape)]
            return [f"{prefix}[{place}]" for place in places]
        axes = [self._axis(k, dim) for k, dim in enumerate(self.dims)]
        if len(axes) == 1 and not prefix:
            return axes[0]
        names = [",".join(entry) for entry in product(*axes)]
        return [f"{prefix}[{name}]" for name in names] if prefix else names

    def coordinate(self, axis: int) -> np.ndarray:
        """Return the labels of the entries of an axis: its coordinate, or positions."""
        parts = self._parts(axis)
        if len(parts) == 1:
            return parts[0]
        return np.array([" / ".join(map(str, entry)) for entry in zip(*parts, strict=True)])

    def is_labelled(self, axis: int) -> bool:
        """Return whether the entries of an axis have labels, not only positions."""
        return self.dims[axis] in self.coords or self.dims[axis] in self.levels

    def is_transposed(self, other: Grid) -> bool:
        """Return whether the axes of another grid have the same names in another order."""
        return self.dims != other.dims and sorted(map(str, self.dims)) == sorted(
            map(str, other.dims)
        )

    def is_like(self, other: Grid) -> bool:
        """Return whether the axes of another grid have the same names and labels."""
        axes = range(len(self.dims))
        return (
            same((self.name, self.dims, self.shape), (other.name, other.dims, other.shape))
            and self.levels == other.levels
            and all(same(self._parts(k), other._parts(k)) for k in axes)
        )

    def _parts(self, axis: int) -> list[np.ndarray]:
        dim = self.dims[axis]
        found = [self.coords[c][1] for c in self.levels.get(dim, (dim,)) if c in self.coords]
        return found or [np.arange(self.shape[axis])]

    def _axis(self, k: int, dim: str) -> list[str]:
        values = self.coordinate(k)
        if dim not in self.coords:
            return [f"{dim}[{v}]" if dim not in self.levels else v for v in values.tolist()]
        if values.dtype.kind in "UO" and all(isinstance(v, str) for v in values):
            return values.tolist()
        return [f"{dim}={v}" for v in _short(values)]


def _short(values: np.ndarray) -> list[Any]:
    """Return numbers rounded to the fewest digits, at least six, that hardly move them.

    Rounding moves a number by at most a millionth of the smallest distance of two numbers.

    >>> _short(np.arange(1, 4) / 3)
    [0.3333333, 0.6666667, 1.0]
    """
    if values.dtype.kind != "f" or values.size < 2 or not np.isfinite(values).all():
        return list(values)
    numbers = values.astype(float)
    room = 1e-6 * float(np.diff(np.sort(numbers)).min())
    for digits in range(6, 17):
        found = [float(f"{v:.{digits}g}") for v in numbers]
        if np.abs(found - numbers).max() <= room:
            return found
    return list(values)


@record
@dataclass(frozen=True, eq=False)
class Labels:
    """Labels of the data of a fit, and the type of its predictions.

    Parameters
    ----------
    kind : {"array", "dataarray", "dataset", "frame", "polars"}
        Type of the outputs.
    sample_dim : str or None
        Name of the sample axis.
    inputs : tuple of Grid
        Grids of the blocks of inputs, if the inputs have names or several modes.
    outputs : Grid or None
        Grid of the output modes, if they have names.
    flat : bool or Grid
        Whether y is flat, (n_samples, D), as with `output_shape`. If flat outputs have names, this
        is their grid.
    columns : tuple of arrays
        For tables: labels of the columns, one array for each level.
    column_names : tuple
        For tables: names of these levels.
    places : array or None
        For tables: position of each column among all outputs, if the two orders differ.
    variables : dict
        For datasets: attributes of each variable.
    cells : array of shape (n_features,), or None
        Number of the cell of each input column, counted over all blocks; None if column j is cell
        j.
    used : array of int, or None
        Columns of the inputs that the model uses, if some are missing in every sample.

    Examples
    --------
    >>> Labels("dataarray", "time", outputs=Grid(("lat",), (2,))).outside.dims
    ('lat',)
    """

    kind: str = "array"
    sample_dim: str | None = None
    inputs: tuple[Grid, ...] = ()
    outputs: Grid | None = None
    flat: Any = False
    columns: tuple[np.ndarray, ...] = ()
    column_names: tuple[Any, ...] = ()
    places: np.ndarray | None = None
    variables: dict[str, Any] = field(default_factory=dict)
    cells: np.ndarray | None = None
    used: np.ndarray | None = None

    @property
    def outside(self) -> Grid | None:
        """Grid of the outputs in the shape in which the user passes them."""
        return self.flat if isinstance(self.flat, Grid) else self.outputs


def name_by_hand(
    labels: Labels | None, shape: Sequence[int], coordinates: Mapping[str, Any]
) -> Labels:
    """Return labels with other names for the output modes, whose sizes are `shape`."""
    found = {d: None if v is None else plain(v) for d, v in coordinates.items()}
    sizes = ["any" if v is None else v.size if v.ndim == 1 else v.shape for v in found.values()]
    fits = [size in ("any", n) for size, n in zip(sizes, shape, strict=False)]
    if len(found) != len(shape) or not all(fits):
        modes = "1 mode of size" if len(found) == 1 else f"{len(found)} modes of sizes"
        raise ValueError(
            f"the output modes have sizes {tuple(shape)}; got names for {modes} {tuple(sizes)}. "
            f"Name every output mode, and pass a list with the labels of its entries, or None."
        )
    coords: dict[str, Any] = {d: ((d,), v, {}) for d, v in found.items() if v is not None}
    return replace(labels or Labels(), outputs=Grid(tuple(found), tuple(shape), coords))


def mode_names(model: Any) -> tuple[str, ...]:
    """Return a name for each mode of the coefficients of a fitted model, input mode first."""
    labels: Labels = getattr(model, "labels_", None) or Labels()
    first = labels.inputs[0].dims[0] if _is_one_axis(labels.inputs) else "feature"
    if labels.outputs is None:
        return (first, *(f"mode{i}" for i in range(1, len(model.tucker_.shape))))
    dims = labels.outputs.dims
    return (first if first not in dims else free("feature", dims), *dims)


def free(name: str, taken: Container[Any]) -> str:
    """Return the name, or a similar one that is not taken."""
    while name in taken:
        name += "_"
    return name


def mode_coordinates(model: Any, mode: int) -> np.ndarray:
    """Return the labels of the entries of a mode: coordinates, feature names, or positions."""
    labels: Labels = getattr(model, "labels_", None) or Labels()
    if mode == 0:
        if _is_one_axis(labels.inputs):
            return labels.inputs[0].coordinate(0)
        names = getattr(model, "feature_names_in_", None)
        return np.arange(model.n_features_in_) if names is None else names
    if labels.outputs is not None:
        return labels.outputs.coordinate(mode - 1)
    return np.arange(model.tucker_.shape[mode])


def _is_one_axis(inputs: Sequence[Grid]) -> bool:
    return len(inputs) == 1 and len(inputs[0].dims) == 1


def same(a: Any, b: Any) -> bool:
    """Return whether two plain values, or records of plain values, are equal.

    >>> same({"x": (np.arange(2), "m")}, {"x": (np.arange(2), "m")})
    True
    """
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.shape == b.shape and _all_equal(a, b)
    if isinstance(a, Mapping):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if is_dataclass(a):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    return a is b or bool(a == b) or (isinstance(a, float) and math.isnan(a) and math.isnan(b))


def _all_equal(a: np.ndarray, b: np.ndarray) -> bool:
    if "O" in (a.dtype.kind, b.dtype.kind):  # NaN in an array of objects is not equal to itself
        return all(map(same, a.flat, b.flat))
    number = a.dtype.kind in "iuf" and b.dtype.kind in "iuf"
    return (number or a.dtype.kind == b.dtype.kind) and bool(
        np.array_equal(a, b, equal_nan=a.dtype.kind in "fcmM")
    )


def out_of_order(a: Any, b: Any) -> int | None:
    """Return the position of the first difference between two permutations of labels.

    Returns None if the labels are in the same order, or if they are not permutations.

    Examples
    --------
    >>> out_of_order(["x", "y", "z"], ["x", "z", "y"])
    1
    """
    one, other = list(map(str, a)), list(map(str, b))
    if one == other or sorted(one) != sorted(other):
        return None
    return next(k for k, (p, q) in enumerate(zip(one, other, strict=True)) if p != q)


def first_difference(
    a: Any, b: Any, one: str = "one", other: str = "the other", has: str = "has"
) -> str:
    """Describe the first difference of two sequences of labels; `has` is the verb of the second."""
    if len(a) != len(b):
        return f"{one} has {len(a)} labels and {other} {has} {len(b)}"
    k = next(i for i, pair in enumerate(zip(a, b, strict=True)) if not same(*pair))
    # Show Python numbers, without the type that NumPy adds.
    p, q = (v.item() if isinstance(v, np.generic) else v for v in (a[k], b[k]))
    return f"at position {k} {one} has {p!r} and {other} {has} {q!r}"


def differing_axis(a: Grid, b: Grid) -> int | None:
    """Return the first axis along which two arrays must not be paired by position, or None.

    Axes of the same name must have the same labels. Axes of different names, such as those of the
    columns of a table, must not have the same labels in another order. Positions are not labels.
    """
    if len(a.dims) != len(b.dims):
        return None
    for k, (one, other) in enumerate(zip(a.dims, b.dims, strict=True)):
        if not (a.is_labelled(k) and b.is_labelled(k)):
            continue
        values = a.coordinate(k), b.coordinate(k)
        if one == other and not same(*values):
            return k
        counted = any(same(v, np.arange(v.size)) for v in values)
        if one != other and not counted and out_of_order(*values) is not None:
            return k
    return None


def plain(values: Any) -> np.ndarray:
    """Copy the values of a coordinate, with text as NumPy strings; objects only if needed."""
    values = np.array(values)
    if values.dtype.kind in "OT" and all(isinstance(v, str) for v in values.flat):
        return values.astype(str)
    return values


# ---------------------------------------------------------------- features


def features_of(
    X: Any, inputs: Sequence[Grid] = (), name: str = "X"
) -> tuple[int, np.ndarray | None]:
    """Return number and names of the features of `X`, with names from `inputs` if `X` has none.

    Messages use `name` for the inputs.
    """
    if type(X) is np.ndarray and X.ndim == 2 and not inputs:
        return X.shape[1], None
    _refuse_mapping(X)
    names = [name for grid in inputs for name in grid.entries()]
    if names:
        return len(names), np.array(names, dtype=object)
    _check_distinct(getattr(X, "columns", ()), name)
    scratch = BaseEstimator()
    validate_data(scratch, _table_of(X), skip_check_array=True, reset=True)
    # Without a matrix the number of features is unknown; the checks of the data raise later.
    return getattr(scratch, "n_features_in_", 0), getattr(scratch, "feature_names_in_", None)


def check_features(estimator: BaseEstimator, X: Any, inputs: Sequence[Grid] = ()) -> None:
    """Raise a ValueError if number or names of the features differ from those of the fit.

    If `X` itself has no names, they come from `inputs`, for which xarray and pandas are installed.
    """
    plain = type(X) is np.ndarray and not hasattr(estimator, "feature_names_in_")
    if plain and X.shape[1:] == (estimator.n_features_in_,):
        return  # neither has names
    _refuse_mapping(X)
    fitted = (getattr(estimator, "labels_", None) or Labels()).inputs
    if inputs and len(fitted) == len(inputs) and all(map(Grid.is_like, inputs, fitted)):
        return  # so that names are not created for every feature
    _check_coordinates(inputs, fitted)
    names = [name for grid in inputs for name in grid.entries()]
    X = _table_of(X)
    if names:
        import pandas as pd

        X = pd.DataFrame(np.empty((0, len(names))), columns=names)
    _check_distinct(getattr(X, "columns", ()), "X")
    columns = list(getattr(X, "columns", ()))
    text = all(isinstance(label, str) for label in columns)
    _check_order(estimator, list(map(str, columns)), inputs, text=text)
    validate_data(estimator, X, skip_check_array=True, reset=False)


def _check_coordinates(inputs: Sequence[Grid], fitted: Sequence[Grid]) -> None:
    """Raise a ValueError if inputs have other coordinates along a dimension of the fit."""
    if len(inputs) != len(fitted):
        return
    for grid, known in zip(inputs, fitted, strict=True):
        if grid.dims != known.dims or len(grid.dims) < 2:
            continue
        for k, dim in enumerate(grid.dims):
            a, b = grid.coordinate(k), known.coordinate(k)
            if grid.is_labelled(k) and known.is_labelled(k) and not same(a, b):
                block = "X" if grid.name is None else f"{grid.name!r} of X"
                differ = first_difference(a, b, block, "the fit", "had")
                raise ValueError(
                    f"{block} has other coordinates along {dim!r} than the fit: {differ}. "
                    f"{how_to_match('X', dim, a, b)}"
                )


def how_to_match(name: str, dim: str, found: np.ndarray, known: np.ndarray) -> str:
    """Say how coordinates along a dimension are made equal to those of the fit.

    Parameters
    ----------
    name : str
        Name of the argument, "X" or "y".
    dim : str
    found, known : array
        Coordinates of the argument and of the fit.
    """
    if found.size < known.size:
        return f"Pass {name} with all entries of the fit along {dim!r}."
    if found.size > known.size:
        return f"Select the entries of the fit with {name}.sel({dim}=...)."
    if all(c.dtype.kind in "fiu" for c in (found, known)):
        apart = float(np.max(np.abs(found.astype(float) - known.astype(float)), initial=0.0))
        if apart <= 1e-5 * float(np.max(np.abs(known), initial=0)):
            return (
                f"They differ by at most {apart:.2g}, which suggests another precision. Replace "
                f"them by those of the fit: {name}.assign_coords({dim}=...)."
            )
        return (
            f"Put them in order with {name}.sel({dim}=...) or {name}.reindex({dim}=...); "
            f'{name}.reindex({dim}=..., method="nearest") takes the nearest entries.'
        )
    return f"Put them in order with {name}.sel({dim}=...) or {name}.reindex({dim}=...)."


def other_features(a: Any, b: Any, one: str = "one", other: str = "the other") -> str | None:
    """Describe how the names of features differ; None if they may be paired by position.

    Features without names (None) agree with all names, except with the numbers of the features in
    another order.
    """
    if a is None and b is None:
        return None
    names = a if b is None else b
    counted = list(map(str, range(len(names))))
    p, q = (counted if v is None else list(map(str, v)) for v in (a, b))
    named = a is not None and b is not None
    differ = p != q if named else out_of_order(p, q) is not None
    return first_difference(p, q, one, other) if differ else None


def _check_distinct(columns: Any, name: str) -> None:
    """Raise a ValueError if two features have the same name."""
    seen: set[Any] = set()
    for label in columns:
        if label in seen:
            raise ValueError(f"{name} has two columns {label!r}; every column needs its own label.")
        seen.add(label)


def _refuse_mapping(X: Any) -> None:
    if isinstance(X, Mapping) and not hasattr(X, "shape"):
        raise TypeError(f"X must be an array of numbers; got a {type(X).__name__}.")


def _table_of(X: Any) -> Any:
    """Return a Dask table without rows, since only its names matter; other data unchanged."""
    return X._meta if hasattr(X, "to_dask_array") else X


def _check_order(
    estimator: Any, found: list[str], inputs: Sequence[Grid], *, text: bool = True
) -> None:
    """Raise a ValueError for feature labels of the fit in another order.

    The labels of a fit without names are the numbers of its features. `text` is False if labels of
    columns are not strings, such as wavelengths, so that the strings `found` do not select them.
    """
    names = getattr(estimator, "feature_names_in_", None)
    known = list(map(str, range(estimator.n_features_in_) if names is None else names))
    k = out_of_order(found, known)
    if k is None:
        return
    right = "X.sort_index(axis=1)" if names is None else "X[model.feature_names_in_]"
    if names is not None and not text:
        right = "X[X_train.columns], where X_train is the table of the fit"
    right = f"Reorder the columns of a table with {right}."
    if inputs:
        dims = ", ".join(f"{d}=..." for grid in inputs for d in grid.dims)
        right = f"Select the coordinates of the fit with X.sel({dims})."
    raise ValueError(
        f"The feature names should match those that were passed during fit.\nFeature names must be"
        f" in the same order as they were in fit. At position {k} X has {found[k]!r} and the fit "
        f"had {known[k]!r}. {right}"
    )


# ---------------------------------------------------------------- rows


def check_rows(X: Any, *, sample_dim: str | None = None, **others: Any) -> None:
    """Raise a ValueError if the rows of arguments have different labels of pandas or xarray.

    Pairing such rows by position would silently mix up samples. The arguments that are paired with
    `X` are passed by name.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"a": [1.0, 2.0]}, index=["mon", "tue"])
    >>> check_rows(X, y=pd.Series([1.0, 2.0], index=["tue", "mon"]))
    Traceback (most recent call last):
    ...
    ValueError: the rows of X and y have different labels: at position 0 X has 'mon' and y has
    'tue'. Align them first, with y = y.loc[X.index] for instance, or pass y.to_numpy() to pair rows
    by position.
    """
    found = differing_rows(X, sample_dim=sample_dim, **others)
    if found is None:
        return
    (a, b), (here, there) = found.names, found.labels
    raise ValueError(
        f"the rows of {a} and {b} have different labels: at position {found.position} {a} has "
        f"{here} and {b} has {there}. {found.hint}"
    )


@dataclass(frozen=True)
class RowDifference:
    """The first difference between the labels of rows that are to be paired."""

    names: tuple[str, str]  # names of the two arguments
    position: int
    labels: tuple[str, str]  # labels of the rows at this position, as text
    hint: str  # advice
    none_in_common: bool  # whether the arguments share no label


def differing_rows(X: Any, *, sample_dim: str | None = None, **others: Any) -> RowDifference | None:
    """Return the first difference for which `check_rows` raises, or None."""
    found = {name: row_index(A, sample_dim) for name, A in {"X": X, **others}.items()}
    first = next((name for name, labels in found.items() if labels is not None), "X")
    index = found.pop(first)
    for name, labels in found.items():
        if labels is None or labels is index or index.equals(labels):
            continue
        in_xarray = comes_from({"X": X, **others}[name], "xarray")
        if len(index) != len(labels) and not in_xarray:
            continue  # another check raises an error
        differ = np.flatnonzero([_unequal(a, b) for a, b in zip(index, labels, strict=False)])
        if differ.size:  # empty if the labels agree one by one
            k = int(differ[0])
            shown = _shown(index[k]), _shown(labels[k])
            hint = _how_to_align({first: index, name: labels}, {"X": X, **others})
            alone = not len(index.intersection(labels))
            return RowDifference((first, name), k, shown, hint, alone)
    return None


def _unequal(a: Any, b: Any) -> bool:
    """Return whether two labels differ; times of different calendars cannot be compared."""
    try:
        return bool(a != b)
    except TypeError:
        return True


def _how_to_align(indexes: Mapping[str, Any], data: Mapping[str, Any]) -> str:
    """Describe how to align the rows of two arguments, from their labels."""
    (a, here), (b, there) = indexes.items()
    in_xarray = [comes_from(data[name], "xarray") for name in indexes]
    common = here.intersection(there)
    if not len(common):
        return (
            f"They share no label. Give both the same labels, or pass {b}.to_numpy() to pair rows "
            f"by position."
        )
    if all(in_xarray):
        how = f'{a}, {b} = xarray.align({a}, {b}, join="inner")'
    elif any(in_xarray):
        how = f"{a} and {b} both as objects of pandas, or both of xarray"
    elif len(common) == len(here) == len(there):
        how = f"{b} = {b}.loc[{a}.index]"
    else:
        how = f"{a}, {b} = {a}.align({b}, join='inner', axis=0)"
    lag = _lag(here, there) if (a, b) == ("X", "y") else None
    if lag is None:
        return (
            f"Align them first, with {how} for instance, or pass {b}.to_numpy() to pair rows by "
            f"position."
        )
    keep = "X.set_axis(y.index)" if not any(in_xarray) else "X.to_numpy()"
    if all(in_xarray):
        keep = f"X.assign_coords({here.name}=y[{here.name!r}])"
    return (
        f"Every row of y is {abs(lag)} {'later' if lag > 0 else 'earlier'} than its row of X. To "
        f"keep this lag, give X the labels of y, with {keep}, or pass the whole series with "
        f"delayed inputs, Delayer([{lag}]).fit_transform(X). To remove it, align the rows, with "
        f"{how}."
    )


def _lag(here: Any, there: Any) -> int | None:
    """Return by how many positions the first index is behind the second one, if by the same at all.

    Only times and numbers have a lag, and only indexes of the same length.
    """
    n = len(here)
    if len(there) != n or not (here.is_unique and there.is_unique):
        return None
    common = len(here.intersection(there))
    lag = n - common
    if not 0 < lag < n or isinstance(here[0], str):
        return None
    if here[lag:].equals(there[:common]):
        return lag
    return -lag if there[lag:].equals(here[:common]) else None


def row_index(A: Any, sample_dim: str | None = None) -> Any:
    """Return the row labels as a pandas index, or None; for a dict, those of its first block."""
    if isinstance(A, Mapping) and not hasattr(A, "dims"):
        found = (row_index(block, sample_dim) for block in A.values())
        return next((index for index in found if index is not None), None)
    if comes_from(A, "pandas"):
        return getattr(A, "index", None)
    if comes_from(A, "xarray") and A.dims:
        return A.indexes.get(sample_dim if sample_dim in A.dims else next(iter(A.dims)))
    return None


def _shown(label: Any) -> str:
    if isinstance(label, np.number):
        label = label.item()
    return str(label) if comes_from(label, "pandas") or comes_from(label, "cftime") else repr(label)
