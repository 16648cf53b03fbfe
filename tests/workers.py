"""Folders that the workers of pytest-xdist share, for what takes long to make."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """The folder of this name, which the first worker that needs it fills; the others wait.

    Parameters
    ----------
    factory : pytest.TempPathFactory
        The fixture `tmp_path_factory`.
    name : str
        Name of the folder, the same in all workers.
    make : callable
        Called with an empty folder, which it fills.
    """
    base = factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, claim, part = shared / name, shared / f"{name}.claim", shared / f"{name}.part"
    try:
        claim.mkdir()
    except FileExistsError:
        deadline = time.monotonic() + 300
        while not folder.exists():
            assert claim.exists(), f"another worker could not make {name}"
            assert time.monotonic() < deadline, f"another worker takes too long to make {name}"
            time.sleep(0.05)
        return folder
    try:
        part.mkdir()
        make(part)
        return part.rename(folder)
    except BaseException:
        claim.rmdir()
        raise
