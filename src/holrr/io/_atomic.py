"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

__all__ = ["write_atomically"]


def write_atomically(path: str | os.PathLike[str], write: Callable[[BinaryIO], None]) -> None:
    """Put what `write` writes at `path`, in one step.

    The bytes go to a new file in the same folder (a rename must not cross file systems), reach
    the disk, and only then take the name. Whoever opens `path` at any moment, also after a crash,
    finds the old file or the new one. A process killed midway can leave ``.<name>.<random>.tmp``
    behind, which no program reads.
    """
    target = Path(os.path.realpath(path))  # through a symbolic link, not over it
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    try:
        with open(temporary, "xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Let the new name reach the disk, too (a folder cannot be opened on Windows)."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
