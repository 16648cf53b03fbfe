"""A writer that is killed at any moment leaves the old file or the new one, complete."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from endless_writer import number_of

from holrr import Moments, load

TRIALS = 50  # of each kind


@pytest.fixture(scope="module")
def writer():
    if not hasattr(os, "fork"):
        pytest.skip("no fork on this system")
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("endless_writer.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    yield process
    process.stdin.close()
    process.wait(timeout=10)


def kill_after(writer, line, seconds):
    """Start a child, kill it, and return the numbers of the saves that it saw return."""
    writer.stdin.write(line + "\n")
    pid = int(writer.stdout.readline())
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    return [int(done) for done in iter(writer.stdout.readline, "end\n")]


@pytest.mark.parametrize("kind", ["model", "moments"])
def test_a_killed_writer_leaves_the_old_or_the_new_file_complete(kind, writer, tmp_path):
    rng = np.random.default_rng(0)
    path, newest, interrupted = tmp_path / "file", 0, 0
    for _ in range(TRIALS):
        saved = kill_after(writer, f"{kind} {path} {newest + 1}", rng.uniform(0, 0.15))
        newest = max([newest, *saved])
        leftovers = [p for p in tmp_path.iterdir() if p != path]
        interrupted += len(leftovers)
        for leftover in leftovers:
            leftover.unlink()
        if newest > 0 or path.exists():  # a save that returned is permanent
            found = number_of(Moments.load(path) if kind == "moments" else load(path))
            assert found in (newest, newest + 1)
            newest = found
    assert interrupted > TRIALS // 10, "the kills did not hit the writing"
    assert newest > 0
