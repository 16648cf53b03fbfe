"""Blocks of inputs, which share a penalty (`read_blocks`).

A block is a set of columns with a name: the columns of a feature space, of a variable, or of a lag.
The parameter `blocks` of the linear estimators defines the blocks in one of several ways. Every
column that is used belongs to one block.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from .arrays import comes_from
from .labels import Grid, Labels, first_difference

__all__ = ["INTERCEPT", "InputBlocks", "penalties_by_block", "read_blocks"]

#: Name of the part of predictions that belongs to no block.
INTERCEPT = "intercept"

# Separator of ColumnTransformer between the name of a transformer and that of a column.
_SEPARATOR = "__"
# Largest number of columns that a message names.
_SHOWN = 5


@dataclass(frozen=True, eq=False)
class InputBlocks:
    """Names of blocks of inputs, and the block of each column.

    Parameters
    ----------
    names : tuple of str
    index : array of shape (n_columns,)
        Position in `names` of the block of each column that is used.

    Examples
    --------
    >>> blocks = InputBlocks(("lags", "calendar"), np.array([0, 0, 1]))
    >>> len(blocks), blocks.columns(0)
    (2, array([0, 1]))
    """

    names: tuple[str, ...]
    index: np.ndarray

    def __len__(self) -> int:
        return len(self.names)

    def columns(self, block: int) -> np.ndarray:
        """Return the columns of a block."""
        return np.flatnonzero(self.index == block)


def read_blocks(
    blocks: Any, labels: Labels | None, features: Any, n_used: int
) -> InputBlocks | None:
    """Return the blocks that the parameter `blocks` describes.

    Parameters
    ----------
    blocks : None, str, dict, list of lists, or array of shape (n_features,)
        As the parameter `blocks` of `HOLRR`.
    labels : Labels or None
        Labels of the data.
    features : sequence of str, or None
        Names of all columns of X, if they have names.
    n_used : int
        Number of columns that are used.

    Returns
    -------
    InputBlocks or None
        None if `blocks` is None.

    Examples
    --------
    >>> read_blocks({"lags": ["a", "b"], "calendar": ["c"]}, None, ["a", "b", "c"], 3).index
    array([0, 0, 1])
    >>> read_blocks("prefix", None, ["num__a", "num__b", "cat__c"], 3).names
    ('num', 'cat')
    """
    if blocks is None:
        return None
    grids = (labels or Labels()).inputs
    n_columns = n_used if labels is None or labels.used is None else _n_columns(labels)
    texts = None if features is None else list(map(str, features))
    names: list[Any] = list(range(n_columns)) if texts is None else texts
    if isinstance(blocks, str):
        return _used(_by_name(blocks, grids, texts, labels), labels)
    if comes_from(blocks, "pandas") and hasattr(blocks, "index"):
        blocks = _from_series(blocks, texts)
    if isinstance(blocks, Mapping):
        _check_texts(blocks, "blocks")
        given = {str(name): columns for name, columns in blocks.items()}
        return _used(_by_columns(given, names, grids), labels)
    listed = _listed(blocks, grids)
    if listed and not any(map(_is_label, listed)):
        named = {str(k): columns for k, columns in enumerate(listed)}
        return _used(_by_columns(named, names, grids), labels)
    if len(listed) != n_columns or not all(map(_is_label, listed)):
        raise ValueError(
            f"blocks as a list must contain the block label of each of the {n_columns} columns of "
            f"X, or one list of columns for each block; got {len(listed)} entries. To name the "
            f"blocks, pass a dict from names of blocks to lists of columns."
        )
    _check_texts(set(listed), "blocks")
    return _used([str(label) for label in listed], labels)


def _from_series(blocks: Any, features: list[str] | None) -> Any:
    """Convert a Series to a dict from blocks to columns, or to the block label of each column.

    If the index of the Series contains the names of the columns, the labels are put in the order of
    the columns.
    """
    if not all(map(_is_label, blocks)):
        return dict(blocks)
    names = [_text_of(name) for name in blocks.index]
    is_counted = list(blocks.index) == list(range(len(names)))
    if features is None or names == features or is_counted:
        return blocks.to_numpy()
    if sorted(names) != sorted(features):
        raise ValueError(
            f"blocks is a Series, whose index must have the names of the columns of X: "
            f"{first_difference(names, features, 'the index', 'X')}. Pass blocks.to_numpy() to "
            f"pair them by position."
        )
    place = {name: k for k, name in enumerate(names)}
    return blocks.to_numpy()[[place[name] for name in features]]


def _listed(blocks: Any, grids: Sequence[Grid]) -> list[Any]:
    """Return the entries of a list or an array, which may have the modes of the inputs."""
    if hasattr(blocks, "dtype") and not hasattr(blocks, "columns"):
        found = np.asarray(blocks)
        if len(grids) == 1 and found.shape == grids[0].shape:
            found = found.ravel()
        return list(found)
    return list(blocks)


def _check_texts(names: Iterable[Any], argument: str) -> None:
    """Raise a ValueError if two names are the same as text."""
    seen: dict[str, Any] = {}
    for name in names:
        if str(name) in seen:
            raise ValueError(
                f"{argument} has two blocks of the same name: {seen[str(name)]!r} and {name!r}; "
                f"names of blocks are compared as text."
            )
        seen[str(name)] = name


def _n_columns(labels: Labels) -> int:
    """Return the number of columns of X, including those that are missing in every sample."""
    if labels.cells is not None:
        return int(labels.cells.size)
    return sum(int(np.prod(grid.shape)) for grid in labels.inputs)


def _is_label(entry: Any) -> bool:
    """Return whether an entry is the label of a block, rather than a list of its columns."""
    return not isinstance(entry, (list, tuple, range, slice, set)) and np.ndim(entry) == 0


def _used(of_columns: Sequence[str], labels: Labels | None) -> InputBlocks:
    """Return the blocks of the used columns, from the block name of each column of X."""
    names = tuple(dict.fromkeys(of_columns))
    if INTERCEPT in names:
        raise ValueError(
            f"blocks: {INTERCEPT!r} is not allowed as the name of a block, since it is the name of "
            f"the constant part of predictions (see predict_blocks); rename the block."
        )
    place = {name: k for k, name in enumerate(names)}
    index = np.array([place[name] for name in of_columns], dtype=np.intp)
    if labels is not None and labels.used is not None:
        index = index[labels.used]
        unused = [name for k, name in enumerate(names) if not (index == k).any()]
        if unused:
            raise ValueError(
                f"blocks: all inputs of block {unused[0]!r} are missing in every sample. Leave the "
                f"block out of X."
            )
    return InputBlocks(names, index)


# ---------------------------------------------------------------- blocks by a name


def _by_name(
    blocks: str, grids: Sequence[Grid], features: list[str] | None, labels: Labels | None
) -> list[str]:
    """Return the block name of each column of X, from a mode or "auto" or "prefix"."""
    named = [grid for grid in grids if grid.name is not None]
    prefixes = _prefixes(features)
    if blocks == "auto":
        if len(named) > 1:
            return _along(None, grids, labels)
        if prefixes is not None:
            return prefixes
        raise ValueError(
            "blocks='auto' needs an X with blocks: a dict of arrays, a Dataset of several "
            "variables, or columns with names such as 'num__a' and 'cat__b' from a "
            "ColumnTransformer. Pass a dict from names of blocks to columns, or the name of a mode "
            "of X."
        )
    if blocks == "prefix":
        if prefixes is None:
            without = [f for f in features or () if _SEPARATOR not in f][:_SHOWN]
            why = "X has no column names" if features is None else f"without prefix: {without}"
            raise ValueError(
                f"blocks='prefix' needs names of columns with a prefix, such as 'num__a'; {why}. A "
                f"ColumnTransformer gives them with set_output(transform='pandas')."
            )
        return prefixes
    dims = [dim for grid in grids if grid.is_named for dim in grid.dims]
    if blocks not in dims:
        known = f"X has the modes {list(dict.fromkeys(dims))}" if dims else "X has no named modes"
        raise ValueError(
            f"blocks={blocks!r} is not a mode of X or a level of its columns; {known}. Other "
            f"values are 'auto', 'prefix', and a dict from names of blocks to columns."
        )
    return _along(blocks, grids, labels)


def _prefixes(features: list[str] | None) -> list[str] | None:
    """Return the prefix before ``__`` of each column name; None if a column has no prefix."""
    if not features or not all(_SEPARATOR in name for name in features):
        return None
    return [name.split(_SEPARATOR, 1)[0] for name in features]


def _along(dim: str | None, grids: Sequence[Grid], labels: Labels | None) -> list[str]:
    """Return the label along a mode for each column; `dim` None uses the names of arrays.

    If X has several arrays, an array without this mode is a block by itself.
    """
    found: list[str] = []
    alone = {str(grid.name) for grid in grids if dim is None or dim not in grid.dims}
    for grid in grids:
        if dim is None or dim not in grid.dims:
            found += [str(grid.name)] * int(np.prod(grid.shape))
            continue
        axis = grid.dims.index(dim)
        entries = np.array([str(value) for value in grid.coordinate(axis)], dtype=object)
        both = [name for name in entries if name in alone]
        if both:
            raise ValueError(
                f"blocks={dim!r}: {both[0]!r} is a label along this mode, and the name of a "
                f"variable of X without this mode. Both would be blocks of the same name. Rename "
                f"one of them."
            )
        shape = [-1 if k == axis else 1 for k in range(len(grid.shape))]
        found += np.broadcast_to(entries.reshape(shape), grid.shape).ravel().tolist()
    if labels is not None and labels.cells is not None:
        return [found[cell] for cell in labels.cells]
    return found


# ---------------------------------------------------------------- blocks by their columns


def _by_columns(blocks: Mapping[str, Any], features: list[Any], grids: Sequence[Grid]) -> list[str]:
    """Return the block name of each column of X, from the columns of each block."""
    if not blocks:
        raise ValueError("blocks is empty; it must name at least one block and its columns.")
    variables, start = {}, 0
    for grid in grids:
        stop = start + int(np.prod(grid.shape))
        if grid.name is not None:
            variables[str(grid.name)] = np.arange(start, stop)
        start = stop
    place = {name: k for k, name in enumerate(features) if isinstance(name, str)}
    found: list[str | None] = [None] * len(features)
    for name, given in blocks.items():
        columns = _columns(name, given, place, variables, len(features))
        if not columns.size:
            raise ValueError(f"blocks: block {name!r} is empty; it must have at least one column.")
        for j in columns:
            if found[j] is not None and found[j] != name:
                raise ValueError(
                    f"blocks: column {features[j]!r} is in two blocks, {found[j]!r} and {name!r}; "
                    f"every column must be in one block."
                )
            found[j] = name
    left = [features[j] for j, block in enumerate(found) if block is None]
    if left:
        more = f" and {len(left) - _SHOWN} more" if len(left) > _SHOWN else ""
        raise ValueError(
            f"blocks: these columns of X are in no block: {left[:_SHOWN]}{more}. Every column must "
            f"be in one block; put these into a separate block."
        )
    return [block for block in found if block is not None]


def _columns(
    name: str,
    given: Any,
    place: Mapping[str, int],
    variables: Mapping[str, np.ndarray],
    n_columns: int,
) -> np.ndarray:
    """Return the positions of the columns of a block."""
    if isinstance(given, slice):
        try:
            return np.arange(n_columns)[given]
        except TypeError as error:
            raise TypeError(
                f"blocks: the slice of block {name!r} must have integer bounds; got {given}."
            ) from error
    is_name = isinstance(given, tuple) and _text_of(given) in place
    entries = [given] if _is_label(given) or is_name else list(given)
    if entries and all(isinstance(entry, (bool, np.bool_)) for entry in entries):
        if len(entries) != n_columns:
            raise ValueError(
                f"blocks: the mask of block {name!r} has {len(entries)} entries, but X has "
                f"{n_columns} columns."
            )
        return np.flatnonzero(entries)
    found: list[int] = []
    for entry in entries:
        text = _text_of(entry)
        if not isinstance(entry, bool) and text in place:  # names may also be numbers
            found.append(place[text])
        elif isinstance(entry, str) and entry in variables:
            found += variables[entry].tolist()
        elif isinstance(entry, Integral) and -n_columns <= int(entry) < n_columns:
            found.append(int(entry) % n_columns)
        else:
            known = f"the columns {list(place)[:_SHOWN]}..." if place else f"{n_columns} columns"
            raise ValueError(
                f"blocks: block {name!r} contains {entry!r}, which is not a column of X; X has "
                f"{known}."
            )
    return np.array(found, dtype=np.intp)


def _text_of(column: Any) -> str:
    """Return the name of a column as text; columns with several levels have tuples as names."""
    return " / ".join(map(str, column)) if isinstance(column, tuple) else str(column)


# ---------------------------------------------------------------- penalties


def penalties_by_block(alpha: Mapping[Any, Any], blocks: InputBlocks) -> np.ndarray:
    """Return the penalty of each block, from a dict with one penalty for each.

    Parameters
    ----------
    alpha : dict from names of blocks to numbers
        Penalties of at least 0. An infinite penalty leaves a block out.
    blocks : InputBlocks

    Examples
    --------
    >>> blocks = InputBlocks(("lags", "calendar"), np.array([0, 0, 1]))
    >>> penalties_by_block({"calendar": 0.1, "lags": 10}, blocks)
    array([10. ,  0.1])
    """
    _check_texts(alpha, "alpha")
    given = {str(name): value for name, value in alpha.items()}
    unknown = [name for name in given if name not in blocks.names]
    if unknown:
        raise ValueError(
            f"alpha has a penalty for {unknown[0]!r}, but X has the blocks {list(blocks.names)}."
        )
    absent = [name for name in blocks.names if name not in given]
    if absent:
        raise ValueError(
            f"alpha has no penalty for the blocks {absent}; a dict needs a penalty for each block."
        )
    found = []
    for name in blocks.names:
        value = given[name]
        is_number = isinstance(value, (int, float, np.integer, np.floating))
        if not is_number or isinstance(value, bool) or not float(value) >= 0:
            raise ValueError(
                f"alpha has {value!r} for block {name!r}; penalties must be at least 0. An "
                f"infinite penalty leaves a block out."
            )
        found.append(float(value))
    if not np.isfinite(found).any():
        raise ValueError("alpha is infinite for all blocks; at least one penalty must be finite.")
    return np.array(found)
