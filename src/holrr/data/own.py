"""Own inputs of each output, from the modes that inputs and outputs share (`read_own`)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from numbers import Integral
from typing import Any

import numpy as np

from ..core.own_inputs import OwnInputs, groups_of, own_inputs_of
from .arrays import comes_from
from .inputs import input_space
from .labels import Grid, Labels, first_difference

__all__ = ["read_own"]

# Name of the mode of the variables of a Dataset.
_VARIABLE = "variable"


@dataclass(frozen=True, eq=False)
class _SharedMode:
    """A mode that inputs and outputs share, with a code for each label (-1 if not shared)."""

    name: Any  # or a pair of positions
    of_columns: np.ndarray  # (n_columns,)
    of_outputs: np.ndarray  # (n_outputs,)


def read_own(
    own: Any, labels: Labels | None, n_used: int, output_shape: Sequence[int], *, all_kinds: bool
) -> list[OwnInputs]:
    """Return the kinds of own inputs that the parameter `own` describes.

    Parameters
    ----------
    own : None, str, list, or array of bool
        As the parameter `own` of `HOLRR`.
    labels : Labels or None
        Labels of the data.
    n_used : int
        Number of columns of the inputs that are used.
    output_shape : sequence of int
        ``(d1, ..., dp)``.
    all_kinds : bool
        Whether every combination of the shared modes is a separate kind of own inputs. Otherwise
        there is one kind: own inputs agree with their output in all of these modes.

    Returns
    -------
    list of OwnInputs
        Empty if `own` is None.
    """
    if own is None:
        return []
    space = input_space(labels, n_used)
    labels = labels or Labels()
    grids = labels.inputs or (Grid(("feature",), (n_used,), is_named=False),)
    if comes_from(own, "xarray") or comes_from(own, "pandas"):
        raise TypeError(
            f"own must not be a {type(own).__name__}, since its labels would be ignored; pass "
            f"own.to_numpy(), of shape (n_inputs, n_outputs)."
        )
    if hasattr(own, "dtype") and np.asarray(own).dtype.kind in "iu" and np.ndim(own) == 2:
        own = [tuple(pair) for pair in np.asarray(own).tolist()]
    if isinstance(own, tuple) and _are_pairs([own]):
        own = [own]
    if not isinstance(own, str) and _is_mask(own):
        return [_from_mask(own, grids, space.cells, n_used, output_shape)]
    outputs = labels.outputs
    if not isinstance(own, str) and _are_pairs(own):
        modes = [_paired(int(a), int(b), grids, output_shape, own) for a, b in own]
    else:
        names = None if isinstance(own, str) and own == "auto" else _names(own)
        modes = _named(names, grids, outputs)
    used = space.cells if space.cells is not None else np.arange(n_used)
    modes = [_SharedMode(m.name, m.of_columns[used], m.of_outputs) for m in modes]
    sizes = range(1, len(modes) + 1) if all_kinds else [len(modes)]
    kinds = [kind for r in sizes for kind in combinations(modes, r)]
    found = [_of_kind(kind, n_used, math.prod(output_shape)) for kind in kinds]
    if not any(kind.groups for kind in found):
        raise ValueError(f"own={own!r} assigns no own input to any output.")
    return [kind for kind in found if kind.groups]


def _names(own: Any) -> list[str]:
    names = [own] if isinstance(own, str) else list(own)
    if not names or not all(isinstance(name, str) for name in names):
        raise ValueError(
            f"own must be 'auto', names of modes that X and y share, pairs of their positions, or "
            f"a boolean array of shape (n_inputs, n_outputs); got {own!r}."
        )
    return names


def _of_kind(kind: Sequence[_SharedMode], n_columns: int, n_outputs: int) -> OwnInputs:
    """Return the own inputs that agree with their output in some modes."""
    codes = np.stack([mode.of_columns for mode in kind], axis=1)
    columns: dict[tuple[int, ...], list[int]] = {}
    for j in np.flatnonzero((codes >= 0).all(axis=1)):
        columns.setdefault(tuple(codes[j].tolist()), []).append(int(j))
    outputs: dict[tuple[int, ...], list[int]] = {}
    keys = np.stack([mode.of_outputs for mode in kind], axis=1).tolist()
    for output, key in enumerate(keys):
        outputs.setdefault(tuple(key), []).append(output)
    pairs = [
        (np.array(columns[key]), np.array(found))
        for key, found in outputs.items()
        if key in columns
    ]
    modes = tuple(mode.name for mode in kind)
    return OwnInputs(groups_of(pairs), (n_columns, n_outputs), modes=modes)


# ---------------------------------------------------------------- modes by their names


def _listed(modes: list[str]) -> str:
    return f"the modes {modes}" if modes else "no named modes"


def _named(
    names: list[str] | None, grids: Sequence[Grid], outputs: Grid | None
) -> list[_SharedMode]:
    """Return the shared modes of these names, or all with the same name and coordinates."""
    in_x = list(dict.fromkeys(d for grid in grids if grid.is_named for d in grid.dims))
    if len(grids) > 1 and _VARIABLE not in in_x:
        in_x.append(_VARIABLE)
    in_y = [] if outputs is None or not outputs.is_named else list(outputs.dims)
    if names is None:
        shared = [d for d in in_y if d in in_x and _difference(d, grids, outputs) is None]
        if not shared:
            raise ValueError(
                f"own='auto' needs modes of X and y with the same names and coordinates; X has "
                f"{_listed(in_x)} and y has {_listed(in_y)}. Give shared modes the same names, or "
                f"pass a boolean array of shape (n_inputs, n_outputs)."
            )
        names = shared
    for name in names:
        for where, known in (("X", in_x), ("y", in_y)):
            if name not in known:
                raise ValueError(f"own={name!r} is not a mode of {where}, which has {known}.")
        differ = _difference(name, grids, outputs)
        if differ is not None:
            raise ValueError(
                f"own={name!r}: X and y have different coordinates along this mode: {differ}. "
                f"Give both the same coordinates, with .sel(...) or .reindex(...)."
            )
    assert outputs is not None
    return [_shared(name, grids, outputs) for name in names]


def _coordinates(name: str, grid: Grid) -> np.ndarray | None:
    """Return the labels along a mode of the inputs, or None if the grid lacks the mode."""
    if name in grid.dims:
        return np.asarray(grid.coordinate(grid.dims.index(name)))
    return None


def _difference(name: str, grids: Sequence[Grid], outputs: Grid | None) -> str | None:
    """Describe how the labels of X and y along a mode differ; None if they do not."""
    assert outputs is not None
    of_y = outputs.coordinate(outputs.dims.index(name))
    if name == _VARIABLE and len(grids) > 1 and not any(name in grid.dims for grid in grids):
        known = {str(grid.name) for grid in grids}
        absent = [str(v) for v in of_y if str(v) not in known]
        return f"X has no variable {absent[0]!r}" if len(absent) == len(of_y) else None
    for grid in grids:
        of_x = _coordinates(name, grid)
        if of_x is None:
            continue
        texts = _texts(of_x), _texts(of_y)
        for where, labels in zip("Xy", texts, strict=True):
            twice = [v for k, v in enumerate(labels) if v in labels[:k]]
            if twice:
                return f"{where} has two entries {twice[0]!r}"
        if sorted(texts[0]) != sorted(texts[1]):
            return first_difference(*texts, "X", "y")
    return None


def _texts(labels: np.ndarray) -> list[str]:
    """Convert labels to text that is equal for equal labels: 1 and 1.0, and equal dates."""
    labels = np.asarray(labels)
    if labels.dtype.kind == "M":
        labels = labels.astype("datetime64[ns]")
    elif labels.dtype.kind in "iu":
        labels = labels.astype(float)
    return [str(v) for v in labels]


def _shared(name: str, grids: Sequence[Grid], outputs: Grid) -> _SharedMode:
    axis = outputs.dims.index(name)
    labels = _texts(outputs.coordinate(axis))
    code = {label: k for k, label in enumerate(labels)}
    of_columns = []
    for grid in grids:
        found = np.full(grid.shape, -1, dtype=np.intp)
        if name in grid.dims:
            k = grid.dims.index(name)
            codes = np.array([code[v] for v in _texts(grid.coordinate(k))])
            found = _along(codes, k, grid.shape)
        elif name == _VARIABLE:
            found[...] = code.get(str(grid.name), -1)
        of_columns.append(found.ravel())
    of_outputs = _along(np.arange(len(labels)), axis, outputs.shape).ravel()
    return _SharedMode(name, np.concatenate(of_columns), of_outputs)


def _along(codes: np.ndarray, axis: int, shape: Sequence[int]) -> np.ndarray:
    wanted = [-1 if k == axis else 1 for k in range(len(shape))]
    return np.broadcast_to(codes.reshape(wanted), tuple(shape))


# ---------------------------------------------------------------- modes by their positions


def _are_pairs(own: Any) -> bool:
    if not isinstance(own, Iterable):
        return False
    return all(
        isinstance(pair, (tuple, list))
        and len(pair) == 2
        and all(isinstance(k, Integral) and not isinstance(k, bool) for k in pair)
        for pair in own
    ) and bool(list(own))


def _paired(
    a: int, b: int, grids: Sequence[Grid], output_shape: Sequence[int], own: Any
) -> _SharedMode:
    """Return the shared mode that is axis `a` of a sample of X and axis `b` of a sample of y."""
    shape = grids[0].shape
    if len(grids) > 1 or not (0 <= a < len(shape) and 0 <= b < len(output_shape)):
        raise ValueError(
            f"own={own!r} must contain pairs (axis of a sample of X, axis of a sample of y), "
            f"counted from 0 without the sample axis; a sample of X has shape {shape} and a sample "
            f"of y has shape {tuple(output_shape)}."
        )
    if shape[a] != output_shape[b]:
        raise ValueError(
            f"own={own!r}: axis {a} of a sample of X has {shape[a]} entries, but axis {b} of a "
            f"sample of y has {output_shape[b]}; a shared mode must have the same size in both."
        )
    codes = np.arange(shape[a])
    return _SharedMode(
        (a, b), _along(codes, a, shape).ravel(), _along(codes, b, output_shape).ravel()
    )


def _is_mask(own: Any) -> bool:
    if hasattr(own, "dtype"):
        return np.asarray(own).dtype == bool
    return (
        isinstance(own, (list, tuple))
        and np.asarray(own, dtype=object).ndim > 1
        and all(isinstance(v, (bool, np.bool_)) for v in np.asarray(own, dtype=object).ravel())
    )


def _from_mask(
    own: Any,
    grids: Sequence[Grid],
    cells: np.ndarray | None,
    n_used: int,
    output_shape: Sequence[int],
) -> OwnInputs:
    """Return own inputs from a boolean array (inputs, outputs), flat or with their modes."""
    owned = np.asarray(own)
    owned = owned[..., None] if not output_shape and owned.ndim == 1 else owned
    D, n_cells = math.prod(output_shape), sum(math.prod(grid.shape) for grid in grids)
    whole = (*grids[0].shape, *output_shape) if len(grids) == 1 else None
    if owned.shape not in {(n_cells, D), (n_used, D), whole}:
        raise ValueError(
            f"own as a boolean array must have shape ({n_cells}, {D}), (n_inputs, n_outputs); got "
            f"{owned.shape}."
        )
    owned = owned.reshape(-1, D)
    if cells is not None and owned.shape[0] == n_cells:
        owned = owned[cells]
    if not owned.any():
        raise ValueError("own is False everywhere; use own=None for a model without own inputs.")
    return own_inputs_of(owned)
