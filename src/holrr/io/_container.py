"""The file: a zip archive of arrays in NumPy's own format and a JSON header, all checksummed.

``numpy.load(path)`` opens it as any .npz file, and ``unzip -p path header.json`` shows the header.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import zipfile
from collections.abc import Mapping
from typing import IO, Any, BinaryIO

import numpy as np

from ._atomic import write_atomically

__all__ = ["FORMAT", "VERSION", "read_container", "write_container"]

FORMAT, VERSION = "holrr", 4
_HEADER = "header.json"
# Numbers, truth values, text of fixed width, dates: what NumPy stores without pickle.
_KINDS = "biufcUSmM"
_MEMBER_HEADER = 30  # bytes in front of a member of a zip archive, at least
_NPY_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def write_container(
    path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> None:
    """Write `header` (JSON) and `arrays` to `path`, atomically."""

    def write(file: BinaryIO) -> None:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            sums = {name: _write_array(archive, name, a) for name, a in arrays.items()}
            full = {"format": FORMAT, "version": VERSION, **header, "sha256": sums}
            text = json.dumps(full, allow_nan=False, indent=1).encode()
            archive.writestr(_HEADER, text)
            # The header vouches for the arrays, the archive's comment for the header.
            archive.comment = hashlib.sha256(text).hexdigest().encode()

    write_atomically(path, write)


def read_container(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays of a file, each checked against its checksum.

    Sizes that the file declares are compared with what is there before anything is made of that
    size, so that reading takes about as much memory as the file is long. A file that is foreign,
    damaged, cut off or of a newer version is a ValueError.
    """
    with open(path, "rb") as file:
        if file.read(2) != b"PK":
            raise ValueError(f"{os.fspath(path)!r} is not a holrr file.")
        try:
            with zipfile.ZipFile(file) as archive:
                _check_members(archive, os.fstat(file.fileno()).st_size)
                header = _read_header(archive, path)
                sums = header["sha256"]
                arrays = {name: _read_array(archive, name, sums[name]) for name in sums}
        except (_Refused, MemoryError):
            raise
        except Exception as error:  # bytes that are not what they should be can raise anything
            raise ValueError(f"{os.fspath(path)!r} is damaged or cut off: {error}") from error
    return header, arrays


class _Refused(ValueError):
    """A file that is whole and yet not for us."""


def _check_members(archive: zipfile.ZipFile, size: int) -> None:
    """Members that are neither compressed nor share their bytes: no small file grows vast."""
    members = sorted(archive.infolist(), key=lambda member: member.header_offset)
    ends = [*(member.header_offset for member in members[1:]), size]
    for member, end in zip(members, ends, strict=True):
        if member.compress_type != zipfile.ZIP_STORED:
            raise ValueError(f"member {member.filename} is compressed.")
        if member.header_offset + _MEMBER_HEADER + member.file_size > end:
            raise ValueError(f"member {member.filename} overlaps with another.")


def _read_header(archive: zipfile.ZipFile, path: str | os.PathLike[str]) -> dict[str, Any]:
    if _HEADER not in archive.namelist():
        raise _Refused(f"{os.fspath(path)!r} is not a holrr file: it has no {_HEADER}.")
    text = archive.read(_HEADER)
    header = json.loads(text)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise _Refused(f"{os.fspath(path)!r} is not a holrr file: its header names no such format.")
    if hashlib.sha256(text).hexdigest().encode() != archive.comment:
        raise ValueError("the checksum of the header is wrong.")
    version = header.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise _Refused(
            f"{os.fspath(path)!r} has version {version} of the file format and this holrr reads up "
            f"to version {VERSION}; it was written by holrr {header.get('holrr')}, so update holrr."
        )
    return header


def _write_array(archive: zipfile.ZipFile, name: str, array: np.ndarray) -> str:
    if array.dtype.kind not in _KINDS:
        raise TypeError(f"an array of dtype {array.dtype} cannot be saved.")
    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
        hashed = _Hashed(member)
        np.lib.format.write_array(hashed, array, allow_pickle=False)
    return hashed.digest()


def _read_array(archive: zipfile.ZipFile, name: str, expected: str) -> np.ndarray:
    info = archive.getinfo(f"{name}.npy")
    with archive.open(info) as member:
        found = hashlib.file_digest(member, "sha256")  # type: ignore[arg-type]
        if found.hexdigest() != expected:
            raise ValueError(f"the checksum of array {name} is wrong.")
        member.seek(0)
        _check_declared(member, name, info.file_size)
        member.seek(0)
        return np.lib.format.read_array(member, allow_pickle=False)


def _check_declared(member: IO[bytes], name: str, size: int) -> None:
    """Whether what the header of an array says comes to the size of its member."""
    try:
        shape, _, dtype = _NPY_HEADERS[np.lib.format.read_magic(member)](member)
    except MemoryError as error:  # of the parser, at a loss with many brackets or signs
        raise ValueError(f"the header of array {name} makes no sense.") from error
    if dtype.kind not in _KINDS or dtype.itemsize == 0:
        raise ValueError(f"array {name} is of dtype {dtype}.")
    if math.prod(shape) * dtype.itemsize != size - member.tell():
        raise ValueError(f"array {name} is not of its declared shape {shape}.")


class _Hashed:
    """A file that is hashed as it is written, so that no array is held as bytes."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._hash = file, hashlib.sha256()

    def write(self, data: bytes) -> int:
        self._hash.update(data)
        return self._file.write(data)

    def digest(self) -> str:
        return self._hash.hexdigest()
