"""Files that are there whole or not at all."""

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
    """Put what `write` writes at `path`, in one step.

    The bytes go to a new file in the same folder (a rename must not cross file systems), reach
    the disk, and only then take the name. Whoever opens `path` at any moment, also after a crash,
    finds the old file or the new one. A symbolic link stays one, and the file that it leads to is
    replaced; an old file leaves its permissions and its owner to the new one. A process killed
    midway can leave ``.<name>.<random>.tmp`` behind, which no program reads.
    """
    target, old = check_writable(path)
    mode = 0o666 if old is None else stat.S_IMODE(old.st_mode)
    # Names have 255 bytes: those of the longest leave no room for a suffix.
    temporary = target.with_name(f".{target.name[:40]}.{secrets.token_hex(6)}.tmp")
    try:
        # Some formats (HDF5) read again what they have written.
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
    """The file that `path` leads to and what is there now; OSError where it cannot be replaced.

    A device, a pipe or a socket is not replaced: whoever names one does not want a file there.
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
        raise OSError(errno.EINVAL, f"it is {kind}, not a regular file", shown)
    for place in [target.parent] if old is None else [target.parent, target]:
        if not os.access(place, os.W_OK):
            raise PermissionError(errno.EACCES, f"{place} is read-only", shown)
    return target, old


def _inherit(path: Path, old: os.stat_result) -> None:
    """Owner and permissions of the file that goes, as far as this user may give them."""
    if hasattr(os, "chown"):
        with suppress(PermissionError):
            os.chown(path, old.st_uid, old.st_gid)
    os.chmod(path, stat.S_IMODE(old.st_mode))


def _sync_folder(folder: Path) -> None:
    """Let the new name reach the disk, too (a folder cannot be opened on Windows)."""
    if os.name != "posix":
        return
    with suppress(PermissionError):  # a folder that may be written to and not be read
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
