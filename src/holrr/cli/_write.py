"""Predictions to files, with the labels that the format supports."""

from __future__ import annotations

import os
import secrets
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from ..data.labels import mode_coordinates, mode_names
from ..extras import need
from ._errors import EXIT_OUTPUT, EXIT_USAGE, CommandError, writing
from ._read import TABLES, Place, title

__all__ = ["check_output", "outputs_of", "replacing", "write"]

# Predictions have the key "", standard deviations "std", and bounds "lower" and "upper".
Parts = dict[str, Any]


def outputs_of(place: Place, suffixes: list[str]) -> list[Place]:
    """Return the files to write: several for a format that contains a single array."""
    known = (".npy", ".npz", ".nc", ".zarr", *TABLES)
    if place.suffix not in known:
        raise CommandError(
            f"{place} has an unknown format {place.suffix!r}; the formats are {', '.join(known)}",
            EXIT_USAGE,
        )
    others = suffixes if place.suffix == ".npy" else []
    return [place, *(_beside(place, suffix) for suffix in others)]


def check_output(output: Place, inputs: list[Any]) -> None:
    """Raise an error if a file cannot be written or would replace an input.

    Commands check their output before they compute anything.
    """
    for source in inputs:
        with suppress(OSError):  # one of the two files does not exist
            if os.path.samefile(output.path, Place(str(source)).path):
                raise CommandError(f"-o {output} would replace the input {source}", EXIT_USAGE)
    folder = output.path.parent
    if not folder.is_dir():
        raise CommandError(f"{output.path}: the folder {folder} does not exist", EXIT_OUTPUT)
    is_store = any((output.path / mark).is_file() for mark in ("zarr.json", ".zgroup", ".zarray"))
    is_other = output.path.exists() and not output.path.is_file() and not is_store
    if is_other or not os.access(folder, os.W_OK):
        raise CommandError(f"{output.path} cannot be written", EXIT_OUTPUT)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a new path next to `path`, and move what was written there to `path` at the end.

    The older file or store stays as it was if an error occurs.
    """
    target = path.resolve()
    new = target.with_name(f".{secrets.token_hex(6)}.{target.name[-40:]}")
    try:
        with writing(path):
            yield new
            if target.is_dir():
                shutil.rmtree(target)
            elif target.exists():
                shutil.copymode(target, new)
            os.replace(new, target)
    finally:
        if new.is_dir():
            shutil.rmtree(new, ignore_errors=True)
        new.unlink(missing_ok=True)


def write(place: Place, parts: Parts, model: Any, sep: str | None, decimal: str | None) -> None:
    """Write predictions, and their standard deviations and bounds."""
    if place.suffix == ".npy":
        for suffix, part in parts.items():
            with replacing(_beside(place, suffix).path) as path, open(path, "wb") as file:
                np.save(file, _array(part, model))
    elif place.suffix == ".npz":
        arrays: dict[str, Any] = {
            k or place.name or "Y": _array(part, model) for k, part in parts.items()
        }
        with replacing(place.path) as path, open(path, "wb") as file:
            np.savez_compressed(file, **arrays)
    elif place.suffix in TABLES:
        frame = _frame(parts)
        with replacing(place.path) as path:
            _write_frame(frame, path, place.suffix, sep, decimal)
    else:
        need("xarray", f"{place.suffix} files need xarray", "xarray")
        data = _dataset(place, parts, model)
        with replacing(place.path) as path:
            if place.suffix == ".zarr":
                with warnings.catch_warnings():  # zarr warns of metadata that xarray asks for
                    warnings.simplefilter("ignore")
                    data.to_zarr(path, mode="w", consolidated=True)
            else:
                data.to_netcdf(path, engine="h5netcdf")


def _beside(place: Place, suffix: str) -> Place:
    if not suffix:
        return place
    return Place(str(place.path.with_name(f"{place.path.stem}_{suffix}{place.path.suffix}")))


def _array(part: Any, model: Any) -> np.ndarray:
    """Return the values as an array without labels, with the output modes of the model."""
    if hasattr(part, "data_vars"):
        part = np.stack([part[name].to_numpy() for name in part.data_vars], axis=1)
    values = np.asarray(part)
    shape = (len(values), *model.tucker_.shape[1:])
    return values.reshape(shape) if values.size == np.prod(shape) else values


# ---------------------------------------------------------------- tables


def _write_frame(frame: Any, path: Path, suffix: str, sep: str | None, decimal: str | None) -> None:
    pandas = need("pandas", "tables need pandas", "table")
    counted = frame.index.name is None and frame.index.equals(pandas.RangeIndex(len(frame)))
    if suffix in (".csv", ".tsv"):
        # With decimal commas, a semicolon separates cells, as in spreadsheets.
        sep = sep or ("\t" if suffix == ".tsv" else ";" if decimal == "," else ",")
        frame.to_csv(path, sep=sep, decimal=decimal or ".", index=not counted)
    elif suffix == ".xlsx":
        with open(path, "wb") as file:
            frame.to_excel(file, index=not counted or frame.columns.nlevels > 1)
    elif suffix == ".parquet":
        frame.columns = [title(c) for c in frame.columns]
        frame.to_parquet(path)
    else:
        frame.columns = [title(c) for c in frame.columns]
        (frame if counted else frame.reset_index()).to_feather(path)


def _frame(parts: Parts) -> Any:
    """Return a DataFrame with a row for each sample, and columns for deviations and bounds."""
    pandas = need("pandas", "tables need pandas", "table")
    frames = {suffix: _table(part, pandas) for suffix, part in parts.items()}
    if len(frames) == 1:
        return frames[""]
    for suffix, frame in frames.items():
        frame.columns = [f"{title(c)}_{suffix}" if suffix else title(c) for c in frame.columns]
    return pandas.concat(frames.values(), axis=1)


def _table(part: Any, pandas: Any) -> Any:
    if isinstance(part, (pandas.DataFrame, pandas.Series)):
        return part.to_frame() if part.ndim == 1 else part
    if hasattr(part, "data_vars"):
        return pandas.concat({k: _table(part[k], pandas) for k in part.data_vars}, axis=1)
    if hasattr(part, "to_pandas"):
        if part.ndim < 2:
            return part.to_pandas().to_frame(part.name or "y")
        return (part if part.ndim == 2 else part.stack(column=part.dims[1:])).to_pandas()
    flat = np.asarray(part).reshape(len(part), -1)
    return pandas.DataFrame(flat, columns=[f"y{j}" for j in range(flat.shape[1])])


# ---------------------------------------------------------------- labelled grids


def _dataset(place: Place, parts: Parts, model: Any) -> Any:
    xarray = need("xarray", f"{place.suffix} files need xarray", "xarray")
    variables: list[Any] = []
    for suffix, part in parts.items():
        if hasattr(part, "data_vars"):
            names = {name: f"{name}_{suffix}" for name in part.data_vars} if suffix else {}
            variables.append(part.rename(names))
            continue
        grid = part if hasattr(part, "dims") else _grid(part, model, xarray)
        variables.append(grid.to_dataset(name=suffix or place.name or grid.name or "prediction"))
    data = xarray.merge(variables, compat="override", combine_attrs="no_conflicts")
    several = [d for d in data.dims if getattr(data.indexes.get(d), "nlevels", 1) > 1]
    return data.reset_index(several)  # files cannot contain an index with several levels


def _grid(part: Any, model: Any, xarray: Any) -> Any:
    """Return predictions of an array or a table as a DataArray with the modes of the model."""
    values, names = _array(part, model), mode_names(model)
    coords = {names[k]: mode_coordinates(model, k) for k in range(1, len(names))}
    index = getattr(part, "index", np.arange(len(values)))
    sample = getattr(index, "name", None) or "sample"
    return xarray.DataArray(values, {sample: index, **coords}, (sample, *names[1:]))
