"""The data of a command: inputs, outputs and groups, from one table or several files."""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Hashable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from ..data.arrays import comes_from, ignores_missing, is_dask, is_on_disk
from ..data.labels import differing_rows, row_index
from ..data.unlabel import sample_dimension
from ._console import note
from ._errors import EXIT_USAGE, CommandError
from ._files import Place, reading
from ._read import read
from ._steps import wants_numbers
from ._tables import Layout, Table, is_count, some, title

__all__ = ["fingerprint", "in_memory", "layouts", "n_samples", "read_inputs", "read_pair"]

Columns = list[Hashable]
# Largest number of bytes on disk that are read to compute a checksum, and bytes of a block.
_MOST_READ, _BLOCK = 2**28, 2**17


def layouts(options: argparse.Namespace, model: Any = None) -> tuple[Layout, Layout]:
    """Return the layouts of the tables with inputs and outputs.

    Parameters
    ----------
    options : Namespace
    model : object, optional
        Fitted model. Its feature names help to recognise a header.
    """
    header = options.header or [None]
    names = tuple(map(str, getattr(model, "feature_names_in_", None) or ()))
    first = Layout(
        options.sep, options.decimal, header[0], options.index_col, names, wants_numbers(options)
    )
    return first, Layout(options.sep, options.decimal, header[-1], options.index_col)


def n_samples(data: Any, sample_dim: str | None) -> int:
    """Return the number of samples of an array, a table or an xarray object.

    By default, samples are along the first dimension.
    """
    if hasattr(data, "data_vars"):
        data = next(iter(data.data_vars.values()))
    return data.shape[0] if not hasattr(data, "dims") else data.sizes[sample_dim or data.dims[0]]


def fingerprint(Y: Any) -> str | None:
    """Return a checksum of outputs, which identifies the training data of a model.

    Parameters
    ----------
    Y : array, table or object of xarray
        Outputs. Memory maps are read in blocks. Large data on disk and Dask arrays are not read,
        and their checksum is None.
    """
    arrays = list(Y.data_vars.values()) if hasattr(Y, "data_vars") else [Y]
    arrays = [A if isinstance(A, np.ndarray) else getattr(A, "data", A) for A in arrays]
    readable = [isinstance(A, np.ndarray) or not is_on_disk(A) for A in arrays]
    if not all(readable) or any(is_dask(A) or getattr(A, "nbytes", 0) > _MOST_READ for A in arrays):
        return None
    digest = hashlib.sha256()
    for A in arrays:
        values = A if is_on_disk(A) else np.asarray(A)
        digest.update(str(values.shape).encode())
        step = max(1, _BLOCK // max(1, values[:1].nbytes))
        for start in range(0, len(values), step):
            block = np.asarray(values[start : start + step], dtype=np.float64)
            digest.update(np.ascontiguousarray(block).data)
    return digest.hexdigest()


def in_memory(data: Any) -> Any:
    """Load data on disk or Dask arrays into memory."""
    if hasattr(data, "compute"):
        return data.compute()
    return data if hasattr(data, "columns") else np.asarray(data)


def read_pair(options: argparse.Namespace, model: Any = None) -> tuple[Any, Any, Any]:
    """Read inputs, outputs and, with --groups, groups of the samples.

    Parameters
    ----------
    options : Namespace
    model : object, optional
        Fitted model. The columns of the inputs are arranged in the order of its fit.
    """
    of_x, of_y = layouts(options, model)
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
            f"--sample-dim {options.sample_dim}: neither X nor Y is a NetCDF or Zarr file; samples "
            f"are along the first axis of arrays, and the rows of tables",
            EXIT_USAGE,
        )
    inputs = _found(source, options.inputs, "--inputs", options.X)
    outputs = _found(other, options.outputs, "--outputs", options.Y)
    groups = _groups(options, {options.X: source, options.Y or options.X: other})
    if options.inputs is None:
        kept = set(outputs) if one else set()
        inputs = [c for c in inputs if c not in kept and not _is_groups(options, c)]
    if options.outputs is None:
        kept = set(inputs) if one else set()
        outputs = [c for c in outputs if c not in kept and not _is_groups(options, c)]
    if one:
        _check_apart(inputs, outputs)
    X = _taken(options.X, source, _in_order(source, inputs, model, options.X))
    if isinstance(other, Table):
        other.allow_missing = ignores_missing(options) or ignores_missing(model)
    Y = _complete(_taken(options.Y or options.X, other, outputs))
    X, Y = _labelled_alike(X, Y, options.sample_dim)
    _check_rows(options, X, Y, model)
    return X, Y, groups


def read_inputs(options: argparse.Namespace, model: Any) -> Any:
    """Read inputs, with their columns in the order of a fitted model."""
    source = read(options.X, layouts(options, model)[0])
    _check_labels(options, source)
    inputs = _found(source, options.inputs, "--inputs", options.X)
    return _taken(options.X, source, _in_order(source, inputs, model, options.X))


def _check_labels(options: argparse.Namespace, *sources: Any) -> None:
    """Raise an error if no table has the column with the row labels."""
    tables = [source for source in sources if isinstance(source, Table)]
    if options.index_col is not None and not any(table.has_labels for table in tables):
        names = some(list(dict.fromkeys(title(c) for table in tables for c in table.columns)))
        raise CommandError(
            f"--index-col: there is no column {options.index_col!r}; the columns are {names}"
        )


def _labelled_alike(X: Any, Y: Any, sample_dim: str | None) -> tuple[Any, Any]:
    """Copy the row labels of one table to the other, if only one of them has row labels."""
    of_x, of_y = row_index(X, sample_dim), row_index(Y, sample_dim)
    if of_x is not None and of_y is not None and len(of_x) == len(of_y):
        if comes_from(X, "pandas") and is_count(of_x):
            X.index = of_y
        elif comes_from(Y, "pandas") and is_count(of_y):
            Y.index = of_x
    return X, Y


def _check_rows(options: argparse.Namespace, X: Any, Y: Any, model: Any) -> None:
    """Raise an error if the rows of inputs and outputs have different labels."""
    dim = sample_dimension(options.sample_dim, X, Y, getattr(model, "labels_", None))
    found = differing_rows(X, sample_dim=dim, y=Y)
    if found is None:
        return
    files, (here, there) = (options.X, options.Y or options.X), found.labels
    hint = "no label is in both files" if found.none_in_common else "put their rows in one order"
    raise CommandError(
        f"the rows of {files[0]} and {files[1]} have different labels: sample {found.position + 1} "
        f"is {here} in {files[0]} and {there} in {files[1]}; {hint} (rows are paired by position "
        f"where only one of the files has labels)"
    )


def _found(source: Any, pattern: str | None, option: str, name: str) -> Columns:
    """Return the columns of a table that match a pattern; empty for other data."""
    if isinstance(source, Table):
        return list(source.columns) if pattern is None else source.find(pattern, option)
    if pattern is not None:
        raise CommandError(f"{option}: {name} is not a table", EXIT_USAGE)
    return []


def _check_apart(inputs: Columns, outputs: Columns) -> None:
    both = [title(c) for c in inputs if c in set(outputs)]
    if both:
        raise CommandError(
            f"columns are both inputs and outputs: {', '.join(both)}; select each column once, "
            f"with --inputs or --outputs"
        )
    if not inputs or not outputs:
        kind, option = ("outputs", "--inputs") if inputs else ("inputs", "--outputs")
        raise CommandError(f"no column is left for the {kind}; select fewer columns with {option}")


def _taken(name: str, source: Any, columns: Columns) -> Any:
    if not isinstance(source, Table):
        return source
    with reading(Place(name)):
        return source.pick(columns)


def _complete(Y: Any) -> Any:
    """Return outputs, flat if the header lines are not a grid, as with a line of units."""
    levels = getattr(getattr(Y, "columns", None), "levshape", ())
    if np.prod(levels, dtype=int) > max(1, len(getattr(Y, "columns", ()))):
        names = [title(c) for c in Y.columns]
        note(f"the header lines of the outputs are not a grid; the outputs are {some(names)}")
        Y.columns = names
    return Y


def _in_order(source: Any, columns: Columns, model: Any, name: str) -> Columns:
    """Return the columns that the model was fitted with, by name and in the order of the fit."""
    known = list(getattr(model, "feature_names_in_", None) or ())
    titles = {title(c): c for c in columns}
    if not known or not getattr(source, "named", False) or list(titles) == known:
        return columns
    told = {
        "missing": [repr(n) for n in known if n not in titles],
        "not known": [repr(n) for n in titles if n not in set(known)],
    }
    if told["missing"]:
        which = "; ".join(f"{k} {', '.join(names[:8])}" for k, names in told.items() if names)
        raise CommandError(
            f"the columns of {name} are not those that the model was fitted with: {which} (see "
            f"--inputs, --index-col and --header)"
        )
    if told["not known"]:
        unknown = told["not known"]
        note(
            f"the model was not fitted with {len(unknown)} of the columns of {name}, which are "
            f"left out: {some(unknown, 5)}"
        )
    if [n for n in titles if n in set(known)] != known:
        note(f"the columns of {name} were put in the order of the fit")
    return [titles[n] for n in known]


def _is_groups(options: argparse.Namespace, column: Hashable) -> bool:
    """Return whether a column contains groups of samples, and is neither input nor output."""
    return title(column) == getattr(options, "groups", None)


def _groups(options: argparse.Namespace, sources: Mapping[str, Any]) -> Any:
    """Return the groups of the samples: a column or a coordinate of X or Y, or a file."""
    name = getattr(options, "groups", None)
    if name is None:
        return None
    for file, source in sources.items():
        groups = _groups_in(source, name, file)
        if groups is not None:
            return groups
    if not Place(name).path.exists():
        raise CommandError(
            f"--groups: {name!r} is neither a column or coordinate of {' or '.join(sources)} nor a "
            f"file"
        )
    groups = read(name, Layout(options.sep))
    if isinstance(groups, Table):
        if len(groups.columns) != 1:
            raise CommandError(
                f"--groups: {name} must have one column; it has {len(groups.columns)}"
            )
        with reading(Place(name)):
            groups = groups.labels(groups.columns[0])
    return np.ravel(groups)


def _groups_in(source: Any, name: str, file: str) -> np.ndarray | None:
    """Return the column or coordinate of this name, or None if there is none."""
    if isinstance(source, Table):
        found = [column for column in source.columns if title(column) == name]
        return source.labels(found[0]) if found else None
    if not hasattr(source, "coords"):
        return None
    with suppress(AttributeError, KeyError):
        groups = np.asarray(source[name])
        if groups.ndim != 1:
            raise CommandError(f"--groups: {name!r} of {file} is not along the samples")
        return groups
    return None
