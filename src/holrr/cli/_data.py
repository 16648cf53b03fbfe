"""The data of a command: inputs, outputs and groups, from one table or from several files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Hashable
from contextlib import suppress
from typing import Any

import numpy as np

from ..data.arrays import comes_from, ignores_missing
from ..data.labels import row_index
from ._errors import EXIT_USAGE, CommandError
from ._files import Place, reading
from ._read import read
from ._tables import Layout, Table, is_count, some, title

__all__ = ["in_memory", "layouts", "n_samples", "read_inputs", "read_pair"]

Columns = list[Hashable]


def layouts(options: argparse.Namespace) -> tuple[Layout, Layout]:
    """How the tables with inputs and outputs are written."""
    header = options.header or [None]
    first = Layout(options.sep, options.decimal, header[0], options.index_col)
    return first, Layout(options.sep, options.decimal, header[-1], options.index_col)


def n_samples(data: Any, sample_dim: str | None) -> int:
    """The number of samples, whatever they are kept in; they come first where nothing is said."""
    if hasattr(data, "data_vars"):
        data = next(iter(data.data_vars.values()))
    return data.shape[0] if not hasattr(data, "dims") else data.sizes[sample_dim or data.dims[0]]


def in_memory(data: Any) -> Any:
    """What is on disk, or not computed yet, read whole: for what looks at it more than once."""
    if hasattr(data, "compute"):
        return data.compute()
    return data if hasattr(data, "columns") else np.asarray(data)


def read_pair(options: argparse.Namespace, model: Any = None) -> tuple[Any, Any, Any]:
    """Inputs, as a fitted model knows them, outputs and, where asked for, groups of the samples."""
    of_x, of_y = layouts(options)
    source = read(options.X, of_x, options.sample_dim)
    one = options.Y is None or (options.Y == options.X and isinstance(source, Table))
    if one and (not isinstance(source, Table) or not (options.inputs or options.outputs)):
        raise CommandError(
            "Y is missing: give a second file, or one table and --outputs (or --inputs) for its "
            "columns",
            EXIT_USAGE,
        )
    other = source if one else read(options.Y, of_y, options.sample_dim)
    _check_labels(options, source, other)
    if options.sample_dim is not None and not any(comes_from(A, "xarray") for A in (source, other)):
        raise CommandError(
            f"--sample-dim {options.sample_dim}: neither X nor Y is a NetCDF or Zarr file; the "
            f"first axis of arrays, and the rows of tables, are the samples",
            EXIT_USAGE,
        )
    inputs = _found(source, options.inputs, "--inputs", options.X)
    outputs = _found(other, options.outputs, "--outputs", options.Y)
    groups, taken = _groups(options, source)
    if options.inputs is None:
        inputs = [c for c in inputs if c not in {*taken, *(outputs if one else ())}]
    if one and options.outputs is None:
        outputs = [c for c in outputs if c not in {*taken, *inputs}]
    if one:
        _check_apart(inputs, outputs)
    X = _taken(options.X, source, _in_order(source, inputs, model, options.X))
    if isinstance(other, Table):
        other.allow_missing = ignores_missing(options) or ignores_missing(model)
    Y = _complete(_taken(options.Y or options.X, other, outputs))
    return *_labelled_alike(X, Y, options.sample_dim), groups


def read_inputs(options: argparse.Namespace, model: Any) -> Any:
    """Inputs, with their columns in the order that a fitted model knows."""
    source = read(options.X, layouts(options)[0])
    _check_labels(options, source)
    inputs = _found(source, options.inputs, "--inputs", options.X)
    return _taken(options.X, source, _in_order(source, inputs, model, options.X))


def _check_labels(options: argparse.Namespace, *sources: Any) -> None:
    """The labels of the rows must be in one of the tables; the other's rows are as many."""
    tables = [source for source in sources if isinstance(source, Table)]
    if options.index_col is not None and not any(table.has_labels for table in tables):
        names = some(list(dict.fromkeys(title(c) for table in tables for c in table.columns)))
        raise CommandError(f"--index-col: no column {options.index_col!r}; there are {names}")


def _labelled_alike(X: Any, Y: Any, sample_dim: str | None) -> tuple[Any, Any]:
    """A table whose rows have no labels has those of the other; where both have, they count."""
    of_x, of_y = row_index(X, sample_dim), row_index(Y, sample_dim)
    if of_x is not None and of_y is not None and len(of_x) == len(of_y):
        if comes_from(X, "pandas") and is_count(of_x):
            X.index = of_y
        elif comes_from(Y, "pandas") and is_count(of_y):
            Y.index = of_x
    return X, Y


def _found(source: Any, pattern: str | None, option: str, name: str) -> Columns:
    """The columns that are meant; none of what is no table."""
    if isinstance(source, Table):
        return list(source.columns) if pattern is None else source.find(pattern, option)
    if pattern is not None:
        raise CommandError(f"{option}: {name} is no table", EXIT_USAGE)
    return []


def _check_apart(inputs: Columns, outputs: Columns) -> None:
    both = [title(c) for c in inputs if c in set(outputs)]
    if both:
        raise CommandError(f"columns that are both inputs and outputs: {', '.join(both)}")
    if not inputs or not outputs:
        raise CommandError(f"no column is left for the {'outputs' if inputs else 'inputs'}")


def _taken(name: str, source: Any, columns: Columns) -> Any:
    if not isinstance(source, Table):
        return source
    with reading(Place(name)):
        return source.pick(columns)


def _complete(Y: Any) -> Any:
    """Lines of names that are no levels, such as units: each column is an output then."""
    levels = getattr(getattr(Y, "columns", None), "levshape", ())
    if np.prod(levels, dtype=int) > max(1, len(getattr(Y, "columns", ()))):
        names = [title(c) for c in Y.columns]
        print(f"holrr: note: the outputs are {some(names)}, and no grid", file=sys.stderr)
        Y.columns = names
    return Y


def _in_order(source: Any, columns: Columns, model: Any, name: str) -> Columns:
    """Columns as the model was fitted with: by name, whatever their order in the file is."""
    known = list(getattr(model, "feature_names_in_", ()))
    titles = {title(c): c for c in columns}
    if not known or not getattr(source, "named", False) or list(titles) == known:
        return columns
    told = {
        "missing": [repr(n) for n in known if n not in titles],
        "not known": [repr(n) for n in titles if n not in set(known)],
    }
    if any(told.values()):
        which = "; ".join(f"{k} {', '.join(names[:8])}" for k, names in told.items() if names)
        raise CommandError(
            f"the columns of {name} are not those that the model was fitted with: {which} (see "
            f"--inputs and --index-col)"
        )
    print(f"holrr: note: the columns of {name} were put in the order of the fit", file=sys.stderr)
    return [titles[n] for n in known]


def _groups(options: argparse.Namespace, source: Any) -> tuple[Any, Columns]:
    """The groups of the samples: a column, which is no input then, a coordinate, or a file."""
    name = getattr(options, "groups", None)
    if name is None:
        return None, []
    if isinstance(source, Table):
        for column in source.columns:
            if title(column) == name:
                return source.labels(column), [column]
    elif hasattr(source, "coords"):
        with suppress(AttributeError, KeyError):
            groups = np.asarray(source[name])
            if groups.ndim != 1:
                raise CommandError(f"--groups: {name!r} of {options.X} is not along the samples")
            return groups, []
    if not Place(name).path.exists():
        raise CommandError(
            f"--groups: {name!r} is neither a column or coordinate of {options.X} nor a file"
        )
    groups = read(name, Layout(options.sep))
    if isinstance(groups, Table):
        if len(groups.columns) != 1:
            raise CommandError(
                f"--groups: {name} must have one column; it has {len(groups.columns)}"
            )
        with reading(Place(name)):
            groups = groups.labels(groups.columns[0])
    return np.ravel(groups), []
