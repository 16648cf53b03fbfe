"""Atomic writing of files."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

__all__ = ["check_writable", "write_atomically"]

PathLike = str | os.PathLike[str]


def write_atomically(path: PathLike, write: Callable[[BinaryIO], None]) -> None:
    """Write a file with the function `write`, and put it at `path` atomically.

    The bytes are written to a new file in the same folder (a rename must not cross file systems)
    and flushed to disk, and then the file is renamed. At any moment, also after a crash, `path` is
    the old file or the new one. A symbolic link is kept, and its target is replaced. The new file
    gets the permissions and the owner of the old one. A process that is killed can leave the file
    ``.<name>.<random>.tmp``, which no program reads.
    """
    target, old = check_writable(path)
    mode = 0o666 if old is None else stat.S_IMODE(old.st_mode)
    # Names have at most 255 bytes, so long names are shortened before a suffix is added.
    temporary = target.with_name(f".{target.name[:40]}.{secrets.token_hex(6)}.tmp")
    try:
        # Some formats (HDF5) read the bytes that they have written.
        with open(temporary, "x+b", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            if old is not None:
                _inherit(temporary, old)
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def check_writable(path: PathLike) -> tuple[Path, os.stat_result | None]:
    """Return the target of `path` and its file status; raise an OSError if it cannot be replaced.

    Devices, pipes and sockets are never replaced by a file.
    """
    target, shown = Path(os.path.realpath(path)), os.fspath(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, f"the folder {target.parent} does not exist", shown)
    try:
        old = os.stat(path)
    except FileNotFoundError:
        old = None
    if old is not None and not stat.S_ISREG(old.st_mode):
        kind = "a folder" if stat.S_ISDIR(old.st_mode) else "a device or a pipe"
        raise OSError(errno.EINVAL, f"the path is {kind}, not a regular file", shown)
    for place in [target.parent] if old is None else [target.parent, target]:
        if not os.access(place, os.W_OK):
            raise PermissionError(errno.EACCES, f"{place} is read-only", shown)
    return target, old


def _inherit(path: Path, old: os.stat_result) -> None:
    """Copy owner and permissions of the old file, as far as this user may set them."""
    if hasattr(os, "chown"):
        with suppress(PermissionError):
            os.chown(path, old.st_uid, old.st_gid)
    os.chmod(path, stat.S_IMODE(old.st_mode))


def _sync_folder(folder: Path) -> None:
    """Flush the new name to disk (a folder cannot be opened on Windows)."""
    if os.name != "posix":
        return
    with suppress(PermissionError):  # a folder may be writable but not readable
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
