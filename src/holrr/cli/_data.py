"""The data of a command: inputs, outputs and groups, from one table or from several files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from ._errors import EXIT_USAGE, CommandError
from ._files import Place, reading
from ._read import read
from ._tables import Layout, Table, title

__all__ = ["layouts", "n_samples", "read_inputs", "read_pair"]


def layouts(options: argparse.Namespace) -> tuple[Layout, Layout]:
    """How the tables with inputs and outputs are written."""
    header = options.header or [None]
    first, last = (
        Layout(options.sep, options.decimal, h, options.index_col) for h in (header[0], header[-1])
    )
    return first, last


def n_samples(data: Any, sample_dim: str | None) -> int:
    """The number of samples, whatever they are kept in."""
    if hasattr(data, "dims"):
        return data.sizes[sample_dim or next(iter(data.dims))]
    return data.shape[0]


def read_pair(options: argparse.Namespace, model: Any = None) -> tuple[Any, Any, Any]:
    """Inputs, as a fitted model knows them, outputs and, where asked for, groups of the samples."""
    of_x, of_y = layouts(options)
    source = read(options.X, of_x, options.sample_dim)
    group = _group_column(options, source)
    if options.Y is None:
        return _of_one_table(options, model, source, group)
    outputs = read(options.Y, of_y, options.sample_dim)
    if isinstance(outputs, Table):
        outputs = _pick(options.Y, outputs, _found(outputs, options.outputs, "--outputs"))
    elif options.outputs is not None:
        raise CommandError(f"--outputs: {options.Y} is no table", EXIT_USAGE)
    X = read_inputs(options, model, source, group)
    return X, outputs, _read_groups(options, source, group)


def _of_one_table(
    options: argparse.Namespace, model: Any, table: Any, group: list[Hashable]
) -> tuple[Any, Any, Any]:
    if not isinstance(table, Table) or (options.inputs is None and options.outputs is None):
        raise CommandError(
            "Y is missing: give a second file, or one table and --outputs (or --inputs) for its "
            "columns",
            EXIT_USAGE,
        )
    inputs, outputs = (
        _found(table, options.inputs, "--inputs"),
        _found(table, options.outputs, "--outputs"),
    )
    if options.inputs is None:
        inputs = [c for c in inputs if c not in {*outputs, *group}]
    if options.outputs is None:
        outputs = [c for c in outputs if c not in {*inputs, *group}]
    both = [title(c) for c in inputs if c in set(outputs)]
    if both:
        raise CommandError(f"columns that are both inputs and outputs: {', '.join(both)}")
    if not inputs or not outputs:
        raise CommandError(f"no column is left for the {'outputs' if inputs else 'inputs'}")
    X = _pick(options.X, table, _in_order(inputs, model, options.X))
    return X, _pick(options.X, table, outputs), _read_groups(options, table, group)


def read_inputs(
    options: argparse.Namespace, model: Any, source: Any = None, leave_out: Sequence[Hashable] = ()
) -> Any:
    """Inputs, in the order of the columns that a fitted model knows."""
    if source is None:
        source = read(options.X, layouts(options)[0], getattr(options, "sample_dim", None))
    if not isinstance(source, Table):
        if options.inputs is not None:
            raise CommandError(f"--inputs: {options.X} is no table", EXIT_USAGE)
        return source
    columns = _found(source, options.inputs, "--inputs")
    if options.inputs is None:
        columns = [c for c in columns if c not in leave_out]
    if getattr(source, "named", True):
        columns = _in_order(columns, model, options.X)
    return _pick(options.X, source, columns)


def _in_order(columns: list[Hashable], model: Any, source: str) -> list[Hashable]:
    """Columns as the model was fitted with: by name, whatever their order in the file is."""
    known = getattr(model, "feature_names_in_", None)
    titles = {title(c): c for c in columns}
    if known is None or list(titles) == list(known):
        return columns
    missing = [str(name) for name in known if name not in titles]
    extra = [name for name in titles if name not in set(known)]
    if missing or extra:
        told = [
            f"{what} {_some(names)}"
            for what, names in (("missing", missing), ("not known", extra))
            if names
        ]
        raise CommandError(
            f"the columns of {source} are not those that the model was fitted with: "
            f"{'; '.join(told)} (see --inputs)"
        )
    print(f"holrr: note: the columns of {source} were put in the order of the fit", file=sys.stderr)
    return [titles[name] for name in known]


def _some(names: list[str]) -> str:
    return ", ".join(map(repr, names[:5])) + (
        f" and {len(names) - 5} more" if len(names) > 5 else ""
    )


def _found(table: Table, pattern: str | None, option: str) -> list[Hashable]:
    return list(table.columns) if pattern is None else table.find(pattern, option)


def _pick(source: str, table: Table, columns: Sequence[Hashable]) -> Any:
    with reading(Place(source)):
        return table.pick(columns)


# ---------------------------------------------------------------- groups


def _group_column(options: argparse.Namespace, source: Any) -> list[Hashable]:
    name = getattr(options, "groups", None)
    return [c for c in source.columns if title(c) == name] if isinstance(source, Table) else []


def _read_groups(options: argparse.Namespace, source: Any, column: Sequence[Hashable]) -> Any:
    """The groups of the samples: a column, a coordinate, or a file with one column."""
    name = getattr(options, "groups", None)
    if name is None:
        return None
    if column:
        return source.labels(column[0])
    if hasattr(source, "coords"):
        try:
            return np.asarray(source[name])
        except (KeyError, AttributeError):
            pass
    if not Place(name).path.exists():
        raise CommandError(f"--groups: {name!r} is neither a column of {options.X} nor a file")
    groups = read(name, layouts(options)[0])
    if isinstance(groups, Table):
        if len(groups.columns) != 1:
            raise CommandError(
                f"--groups: {name} must have one column; it has {len(groups.columns)}"
            )
        with reading(Place(name)):
            groups = groups.labels(groups.columns[0])
    return np.ravel(groups)
