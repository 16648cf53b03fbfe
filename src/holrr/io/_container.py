"""Container format: a zip archive of NumPy arrays and a JSON header, with checksums.

``numpy.load(path)`` opens such a file as an .npz file, and ``unzip -p path header.json`` shows the
header.
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
# Numbers, booleans, text of fixed width and dates, which NumPy stores without pickle.
_KINDS = "biufcUSmM"
_MEMBER_HEADER = 30  # smallest number of bytes before a member of a zip archive
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
            # The header contains the checksums of the arrays. The comment of the archive contains
            # the checksum of the header.
            archive.comment = hashlib.sha256(text).hexdigest().encode()

    write_atomically(path, write)


def read_container(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read header and arrays of a file, and compare each with its checksum.

    Sizes that the file declares are compared with the actual sizes before memory is allocated, so
    that reading takes about as much memory as the file is long. A file that is foreign, damaged,
    cut off or of a newer version raises a ValueError.
    """
    with open(path, "rb") as file:
        if file.read(2) != b"PK":
            raise ValueError(
                f"{os.fspath(path)!r} is not a holrr file. Read files of joblib, pickle or NumPy "
                "with the library that wrote them."
            )
        try:
            with zipfile.ZipFile(file) as archive:
                _check_members(archive, os.fstat(file.fileno()).st_size)
                header = _read_header(archive, path)
                sums = header["sha256"]
                arrays = {name: _read_array(archive, name, sums[name]) for name in sums}
        except (_Refused, MemoryError):
            raise
        except Exception as error:  # damaged bytes can raise any exception
            raise ValueError(f"{os.fspath(path)!r} is damaged or cut off: {error}") from error
    return header, arrays


class _Refused(ValueError):
    """An intact file that this version of holrr cannot read."""


def _check_members(archive: zipfile.ZipFile, size: int) -> None:
    """Raise a ValueError if members are compressed or overlap, so that no small file expands."""
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
        raise _Refused(f"{os.fspath(path)!r} is not a holrr file: its header has another format.")
    if hashlib.sha256(text).hexdigest().encode() != archive.comment:
        raise ValueError("the checksum of the header is wrong.")
    version = header.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise _Refused(
            f"{os.fspath(path)!r} has version {version} of the file format, but this holrr reads "
            f"up to version {VERSION}. It was written by holrr {header.get('holrr')}; update holrr."
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
    """Raise a ValueError if the size in the header of an array differs from its member."""
    try:
        shape, _, dtype = _NPY_HEADERS[np.lib.format.read_magic(member)](member)
    except MemoryError as error:  # raised by the parser for many brackets or signs
        raise ValueError(f"the header of array {name} is invalid.") from error
    if dtype.kind not in _KINDS or dtype.itemsize == 0:
        raise ValueError(f"array {name} is of dtype {dtype}.")
    if math.prod(shape) * dtype.itemsize != size - member.tell():
        raise ValueError(f"array {name} is not of its declared shape {shape}.")


class _Hashed:
    """File that is hashed while it is written, so that no array is copied to bytes."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._hash = file, hashlib.sha256()

    def write(self, data: bytes) -> int:
        self._hash.update(data)
        return self._file.write(data)

    def digest(self) -> str:
        return self._hash.hexdigest()
