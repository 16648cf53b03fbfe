"""Reading of files: arrays, labelled variables and tables."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ..extras import need
from ..streaming.budget import check_budget
from ._errors import CommandError
from ._files import Place, check_file, lookup, reading
from ._tables import Layout, read_frame
from ._text import TextTable

__all__ = ["read"]


def read(text: str, layout: Layout, sample_dim: str | None = None) -> Any:
    """Return the content of ``FILE`` or ``FILE:NAME``: an array, DataArray, Dataset or Table.

    The arrays may stay on disk. By default, samples are along the first dimension.
    """
    place = Place(text)
    check_file(place.path)
    reader = lookup(_READERS, place)
    with reading(place), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of the libraries that read the formats
        data = reader(place, layout, sample_dim)
        dtype = np.dtype(getattr(data, "dtype", float))
        if dtype.kind not in "biuf":
            raise ValueError(f"it must contain real numbers; got {dtype}")
        return data


# ---------------------------------------------------------------- arrays


def _read_npy(place: Place, layout: Layout, sample_dim: str | None) -> np.ndarray:
    loaded = _load(place.path, mmap_mode="r")
    if not isinstance(loaded, np.ndarray):
        raise ValueError("it is an .npz archive")
    return loaded


def _load(path: Path, **options: Any) -> Any:
    try:
        return np.load(path, allow_pickle=False, **options)
    except ValueError as error:
        if not re.search("pickle|Python objects", str(error)):
            raise
        raise ValueError("it does not contain numbers in the format of NumPy") from error


def _read_npz(place: Place, layout: Layout, sample_dim: str | None) -> np.ndarray:
    loaded = _load(place.path)
    if isinstance(loaded, np.ndarray):
        raise ValueError("it is a single array in .npy format")
    with loaded as archive:
        values = archive[_only(place, place.name, archive.files)]
        if not isinstance(values, np.ndarray):
            raise ValueError("it contains objects that are not arrays")
        return values


def _only(place: Place, name: str | None, names: Iterable[str]) -> str:
    """Return the given name, or the name of the only array; raise an error if it is unknown."""
    names = list(names)
    if name is None and len(names) == 1:
        return names[0]
    if name is None or name not in names:
        wanted = "there are several arrays" if name is None else f"there is no array {name!r}"
        raise CommandError(
            f"{place.path}: {wanted}; write {place.path}:NAME, where NAME is one of "
            f"{', '.join(names)}"
        )
    return name


# ---------------------------------------------------------------- labelled variables


def _read_netcdf(place: Place, layout: Layout, sample_dim: str | None) -> Any:
    need("xarray", ".nc files need xarray and h5netcdf", "xarray")
    return _variables(place, sample_dim)


def _read_zarr(place: Place, layout: Layout, sample_dim: str | None) -> Any:
    """Read variables that xarray wrote, or an array whose dimensions have no names."""
    zarr = need("zarr", ".zarr files need zarr", "disk")
    store = zarr.open(place.path, mode="r")
    if not hasattr(store, "arrays"):  # the store is an array, not a group
        return store
    if find_spec("xarray") is not None:
        with suppress(KeyError, zarr.errors.BaseZarrError):
            return _variables(place, sample_dim)
    return store[_only(place, place.name, [name for name, _ in store.arrays()])]


def _opened(place: Place, **options: Any) -> Any:
    import xarray

    if place.suffix == ".zarr":
        options |= {"engine": "zarr", "consolidated": False}
    return xarray.open_dataset(place.path, decode_coords="all", **options)


def _variables(place: Place, sample_dim: str | None) -> Any:
    """Return one, several or all variables, as Dask arrays if they are large."""
    group, _, names = (place.name or "").rpartition("/")
    options = {"group": group} if group else {}
    data = _opened(place, **options)
    chosen = names.split(",") if names else list(data.data_vars)
    for name in chosen:
        if name not in data.variables:
            _only(place, name, data.data_vars)
    texts = [name for name in chosen if data[name].dtype.kind not in "biuf"]
    if texts or not chosen:
        hint = "" if names else f" (see {place.path}:NAME)"
        raise ValueError(f"variables that are not numeric: {', '.join(texts) or 'all'}{hint}")
    variables = [data[name].variable for name in chosen]
    budget = check_budget()
    # As for arrays on disk, data that take more than a quarter of the budget are read in blocks.
    if 8 * sum(math.prod(v.shape) for v in variables) <= budget // 4:
        with data:
            return (data[chosen[0]] if len(chosen) == 1 else data[chosen]).load()
    chunks: dict[Any, Any] = {dim: -1 for v in variables for dim in v.dims}
    chunks |= {sample_dim or v.dims[0]: "auto" for v in variables if v.dims}
    dask = need("dask", f"{place} is large and needs dask", "dask")
    with dask.config.set({"array.chunk-size": max(budget // 8, 2**10)}):
        data = _opened(place, chunks=chunks, **options)
    return data[chosen[0]] if len(chosen) == 1 else data[chosen]


_READERS: dict[str, Callable[[Place, Layout, str | None], Any]] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".nc": _read_netcdf,
    ".zarr": _read_zarr,
    ".csv": lambda place, layout, _: TextTable(place.path, layout),
    ".tsv": lambda place, layout, _: TextTable(place.path, layout),
    ".xlsx": lambda place, layout, _: read_frame(place, layout),
    ".parquet": lambda place, layout, _: read_frame(place, layout),
    ".feather": lambda place, layout, _: read_frame(place, layout),
}
