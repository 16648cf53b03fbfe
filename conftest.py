"""Settings that hold for all tests, and a folder for the files that examples of docstrings write.

The workers of pytest-xdist inherit the environment, so each has one thread for the linear algebra
and for OpenMP. With more, the threads of all workers wait for each other in loops: on two cores the
tests of torch take three times as long. Tests of threads set the number that they need.
"""

import os
import sys

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(autouse=True)
def _folder_for_what_examples_write(request, monkeypatch):
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.chdir(request.getfixturevalue("tmp_path"))


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    if "matplotlib.pyplot" in sys.modules:  # it warns of many open figures
        sys.modules["matplotlib.pyplot"].close("all")
