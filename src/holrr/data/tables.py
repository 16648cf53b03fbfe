"""Tables of outputs, and flat outputs, as tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np

from .arrays import check_outputs, nan_for_masked
from .labels import Grid, Labels, free, plain, same
from .reading import Folded, is_on_disk
from .source import is_dask

__all__ = ["collected", "fold", "from_frame", "from_polars", "in_levels"]
__all__ += ["is_a_table_without_names", "names_of_columns"]


def names_of_columns(columns: Any) -> list[str] | None:
    """Names of features where the labels of columns have several levels or are no text.

    scikit-learn would not compare them: wavelengths in another order would go unnoticed. None where
    it does, and where columns are only counted.
    """
    if columns.nlevels > 1:
        return [" / ".join(map(str, column)) for column in columns]
    is_counted = columns.dtype.kind in "iu" and (columns == np.arange(columns.size)).all()
    is_text = any(isinstance(label, str) for label in columns)  # of mixtures, scikit-learn's error
    return None if is_text or is_counted else list(map(str, columns))


def collected(A: Any, name: str) -> Any:
    """The data themselves, unless they are a query that is yet to be run."""
    if hasattr(A, "collect_schema") and not hasattr(A, "to_numpy"):
        raise TypeError(f"{name} is a {type(A).__name__}; call {name}.collect() first.")
    return A


def from_frame(y: Any, known: Labels | None, fill: bool, flat: bool) -> tuple[Any, Labels]:
    """A table: with several levels of column labels a tensor, one mode a level.

    Unless outputs are to be flat.
    """
    columns, values = y.columns, check_outputs(nan_for_masked(y))
    levels = tuple(plain(columns.get_level_values(k).to_numpy()) for k in range(columns.nlevels))
    _check_same_columns(levels, known)
    labels = _of_columns("frame", levels, tuple(columns.names))
    if columns.nlevels == 1 or flat:
        return values, replace(labels, places=None)
    grid = labels.outputs
    assert grid is not None
    if labels.places is not None and not fill:
        _check_complete(grid, labels.places)
    return in_levels(values, labels), labels


def in_levels(values: np.ndarray, labels: Labels) -> np.ndarray:
    """The columns of a table as a tensor with one mode a level."""
    grid = labels.outputs
    assert grid is not None
    if labels.places is not None:
        whole = np.full((len(values), math.prod(grid.shape)), np.nan, dtype=values.dtype)
        whole[:, labels.places] = values
        values = whole
    return values.reshape(-1, *grid.shape)


def is_a_table_without_names(y: Any, known: Labels | None) -> bool:
    """Whether an array has the columns of a table with levels."""
    if known is None or len(known.columns) < 2 or known.outputs is None:
        return False
    shape: tuple[int, ...] = () if is_on_disk(y) or is_dask(y) else np.shape(y)
    return len(shape) == 2 and shape[1] == known.columns[0].size


def from_polars(y: Any, known: Labels | None) -> tuple[Any, Labels]:
    """A table of polars, which has one label a column."""
    columns = np.array(y.columns)
    _check_same_columns((columns,), known)
    return y.to_numpy(), _of_columns("polars", (columns,), (None,))


def _of_columns(kind: str, levels: tuple[np.ndarray, ...], names: tuple[Any, ...]) -> Labels:
    """Labels of a table with these columns."""
    dims: tuple[str, ...] = ()
    for k, name in enumerate(names):
        default = "output" if len(levels) == 1 else f"level{k}"
        dims += (free(default if name is None else str(name), dims),)
    found = [_unique(values) for values in levels]
    shape = tuple(len(values) for values, _ in found)
    places = np.ravel_multi_index([codes for _, codes in found], shape)
    if np.unique(places).size < places.size:
        twice = next(k for k in range(places.size) if places[k] in places[:k])
        raise ValueError(
            f"y has two columns {_entries(levels)[twice]}; every column needs its own label."
        )
    coords: dict[str, Any] = {
        d: ((d,), values, {}) for d, (values, _) in zip(dims, found, strict=True)
    }
    in_order = np.array_equal(places, np.arange(math.prod(shape)))
    return Labels(
        kind,
        outputs=Grid(dims, shape, coords),
        columns=levels,
        column_names=names,
        places=None if in_order else places,
    )


def _unique(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each value once, in the order of their first appearance, and which of them each entry is."""
    keys = values.tolist()
    if values.dtype.kind in "fO":  # NaN would be a key that is not found again
        keys = ["nan\0" if isinstance(v, float) and v != v else v for v in keys]
    place = {v: k for k, v in enumerate(dict.fromkeys(keys))}
    codes = np.array([place[v] for v in keys])
    _, first = np.unique(codes, return_index=True)
    return values[first], codes


def _check_complete(grid: Grid, places: np.ndarray) -> None:
    absent = np.setdiff1d(np.arange(math.prod(grid.shape)), places)
    if not absent.size:
        return
    shown = [
        tuple(str(grid.coordinate(k)[i]) for k, i in enumerate(np.unravel_index(j, grid.shape)))
        for j in absent[:3]
    ]
    raise ValueError(
        f"the columns of y are not all combinations of their levels {grid.dims}: {absent.size} are "
        f"missing, such as {', '.join(map(str, shown))}. Add them, or drop the levels that are not "
        f'complete; the linear estimators take them as missing outputs with missing="fill".'
    )


def _entries(levels: tuple[np.ndarray, ...]) -> list[Any]:
    """The label of each column, a tuple where there are several levels."""
    parts = [values.tolist() for values in levels]
    return parts[0] if len(parts) == 1 else list(zip(*parts, strict=True))


def _check_same_columns(levels: tuple[np.ndarray, ...], known: Labels | None) -> None:
    if known is None or not known.columns or same(levels, known.columns):
        return
    found, fitted = _entries(levels), _entries(known.columns)
    missing, extra = [c for c in fitted if c not in found], [c for c in found if c not in fitted]
    what = f"missing {missing[:5]}, unexpected {extra[:5]}"
    if not missing and not extra:
        k = next(k for k, (a, b) in enumerate(zip(found, fitted, strict=True)) if a != b)
        what = f"at position {k} it has {found[k]} and the fit had {fitted[k]}"
    raise ValueError(f"y has other columns than the fit: {what}.")


def fold(y: Any, output_shape: Sequence[int]) -> Any:
    """Flat outputs, (n_samples, D), with the D entries as a tensor."""
    shape = tuple(output_shape)
    if not all(isinstance(d, Integral) and d > 0 for d in shape):
        raise ValueError(f"output_shape must hold sizes, ints from 1 on; got {output_shape!r}.")
    shape = tuple(int(d) for d in shape)
    y = y if (hasattr(y, "shape") and hasattr(y, "reshape")) or is_on_disk(y) else np.asarray(y)
    found, D = tuple(y.shape), math.prod(shape)
    if len(found) == 1 and D == 1:
        found = (*found, 1)
    if len(found) != 2 or found[1] != D:
        raise ValueError(
            f"y must have shape (n_samples, {D}) with output_shape={shape}, whose entries come to "
            f"{D}; got {tuple(y.shape)}."
        )
    return y.reshape((found[0], *shape)) if hasattr(y, "reshape") else Folded(y, shape)
