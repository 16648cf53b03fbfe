"""Writing of predictions to files, with the labels that the format supports."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from io import BytesIO
from types import SimpleNamespace
from typing import Any, BinaryIO

import numpy as np

from ..data.arrays import comes_from
from ..data.labels import mode_coordinates, mode_names
from ..extras import need
from ..io import write_atomically
from ._files import Place, lookup, writing
from ._tables import Layout, is_count, title

__all__ = ["outputs_of", "write"]

# Predictions have the key "", standard deviations "std", and bounds "lower" and "upper".
Parts = dict[str, Any]


def outputs_of(place: Place, suffixes: list[str]) -> list[Place]:
    """Return the files to write: several for formats that contain a single array."""
    lookup(_WRITERS, place)
    others = suffixes if place.suffix == ".npy" else []
    return [place, *(_beside(place, suffix) for suffix in others)]


def write(place: Place, parts: Parts, model: Any, layout: Layout) -> None:
    """Write predictions, and their standard deviations and bounds."""
    with writing(place.path):
        lookup(_WRITERS, place)(place, parts, model, layout)


def _beside(place: Place, suffix: str) -> Place:
    return Place(str(place.path.with_name(f"{place.path.stem}_{suffix}{place.path.suffix}")))


# ---------------------------------------------------------------- arrays


def _write_npy(place: Place, parts: Parts, model: Any, layout: Layout) -> None:
    for suffix, part in parts.items():
        path = _beside(place, suffix).path if suffix else place.path
        write_atomically(path, partial(_save, values=_array(part, model)))


def _save(file: BinaryIO, values: np.ndarray) -> None:
    # NumPy writes to a real file without Python, and does not report the cause of an error.
    np.save(SimpleNamespace(write=file.write), values)


def _write_npz(place: Place, parts: Parts, model: Any, layout: Layout) -> None:
    arrays: dict[str, Any] = {
        suffix or place.name or "Y": _array(part, model) for suffix, part in parts.items()
    }
    write_atomically(place.path, lambda file: np.savez_compressed(file, **arrays))


def _array(part: Any, model: Any) -> np.ndarray:
    """Return the values as an array without labels, with the output modes of the model."""
    if comes_from(part, "xarray") and hasattr(part, "data_vars"):
        part = np.stack([part[name].to_numpy() for name in part.data_vars], axis=1)
    values = np.asarray(part)
    shape = (len(values), *model.tucker_.shape[1:])
    return values.reshape(shape) if values.size == np.prod(shape) else values


# ---------------------------------------------------------------- tables


def _write_text(place: Place, parts: Parts, model: Any, layout: Layout) -> None:
    decimal = layout.decimal or "."
    # With decimal commas, a semicolon separates cells, as in spreadsheets.
    sep = layout.sep or ("\t" if place.suffix == ".tsv" else ";" if decimal == "," else ",")
    if len(parts) == 1 and isinstance(parts[""], np.ndarray):  # without names
        flat = parts[""].reshape(len(parts[""]), -1)

        def save(file: BinaryIO) -> None:
            for row in flat:
                cells = (f"{value:.17g}".replace(".", decimal) for value in row)
                file.write(f"{sep.join(cells)}\n".encode())

        return write_atomically(place.path, save)
    frame = _frame(parts)
    options = {"sep": sep, "decimal": decimal, "index": not is_count(frame.index)}
    return write_atomically(place.path, lambda file: frame.to_csv(file, **options))


def _write_frame(place: Place, parts: Parts, model: Any, layout: Layout) -> None:
    frame = _frame(parts)
    if place.suffix == ".xlsx":
        book = BytesIO()  # on a full disk, a workbook is closed without an error
        frame.to_excel(book, index=not is_count(frame.index) or frame.columns.nlevels > 1)
        book.seek(0)
        return write_atomically(place.path, lambda file: shutil.copyfileobj(book, file))
    frame.columns = [title(c) for c in frame.columns]
    if frame.index.dtype == object:  # dates of other calendars, which these formats do not support
        frame.index = frame.index.map(str)
    if place.suffix == ".parquet":
        return write_atomically(place.path, lambda file: frame.to_parquet(file))
    frame = frame if is_count(frame.index) else frame.reset_index()
    return write_atomically(place.path, lambda file: frame.to_feather(file))


def _frame(parts: Parts) -> Any:
    """Return a DataFrame with a row for each sample, and columns for deviations and bounds."""
    pandas = need("pandas", "tables with names need pandas", "table")
    frames = {suffix: _table(part, pandas) for suffix, part in parts.items()}
    if len(frames) == 1:
        return frames[""]
    for suffix, frame in frames.items():
        frame.columns = [f"{title(c)}_{suffix}" if suffix else title(c) for c in frame.columns]
    return pandas.concat(frames.values(), axis=1)


def _table(part: Any, pandas: Any) -> Any:
    if comes_from(part, "pandas"):
        return part.to_frame() if part.ndim == 1 else part
    if not comes_from(part, "xarray"):
        flat = np.asarray(part).reshape(len(part), -1)
        return pandas.DataFrame(flat, columns=[f"y{j}" for j in range(flat.shape[1])])
    if hasattr(part, "data_vars"):
        tables = {name: _table(part[name], pandas) for name in part.data_vars}
        return pandas.concat(tables, axis=1)
    if part.ndim < 2:
        return part.to_pandas().to_frame(part.name or "y")
    part = part if part.ndim == 2 else part.stack(column=part.dims[1:])
    return part.to_pandas()


# ---------------------------------------------------------------- labelled variables


def _write_netcdf(place: Place, parts: Parts, model: Any, layout: Layout) -> None:
    need("h5netcdf", ".nc files need xarray and h5netcdf", "xarray")
    data = _dataset(place, parts, model)

    def save(file: BinaryIO) -> None:
        if data.chunks:  # a Dask array may be larger than memory
            if shutil.disk_usage(place.path.parent).free < data.nbytes:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            data.to_netcdf(file, engine="h5netcdf")
        else:  # HDF5 may crash on a full disk
            file.write(data.to_netcdf(engine="h5netcdf"))

    write_atomically(place.path, save)


def _write_zarr(place: Place, parts: Parts, model: Any, layout: Layout) -> None:
    """Write a store (a folder) next to an older store, and then replace the older one."""
    data, target = _dataset(place, parts, model), place.path.resolve()
    new, old = (target.with_name(f".{target.name[:40]}.{secrets.token_hex(6)}") for _ in "no")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data.to_zarr(new, mode="w", consolidated=True)
        if target.exists():
            os.replace(target, old)
        os.replace(new, target)
    finally:
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _dataset(place: Place, parts: Parts, model: Any) -> Any:
    xarray = need("xarray", f"{place.suffix} files need xarray", "xarray")
    variables = list(_variables(xarray, place, parts, model))
    data = xarray.merge(variables, compat="override", combine_attrs="no_conflicts")
    several = [d for d in data.dims if getattr(data.indexes.get(d), "nlevels", 1) > 1]
    return data.reset_index(several)  # files cannot contain an index with several levels


def _variables(xarray: Any, place: Place, parts: Parts, model: Any) -> Iterator[Any]:
    for suffix, part in parts.items():
        if not comes_from(part, "xarray"):
            values, names = _array(part, model), mode_names(model)
            coords = {names[k]: mode_coordinates(model, k) for k in range(1, len(names))}
            index = getattr(part, "index", np.arange(len(values)))
            sample = getattr(index, "name", None) or "sample"
            part = xarray.DataArray(values, {sample: index, **coords}, (sample, *names[1:]))
        if hasattr(part, "data_vars"):
            ends = {name: f"{name}_{suffix}" for name in part.data_vars} if suffix else {}
            yield part.rename(ends)
        else:
            yield part.to_dataset(name=suffix or place.name or part.name or "prediction")


_WRITERS: dict[str, Callable[[Place, Parts, Any, Layout], None]] = {
    ".npy": _write_npy,
    ".npz": _write_npz,
    ".nc": _write_netcdf,
    ".zarr": _write_zarr,
    ".csv": _write_text,
    ".tsv": _write_text,
    ".xlsx": _write_frame,
    ".parquet": _write_frame,
    ".feather": _write_frame,
}
