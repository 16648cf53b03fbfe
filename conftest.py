"""Examples of docstrings may write files: each runs in a folder of its own."""

import pytest


@pytest.fixture(autouse=True)
def _folder_for_what_examples_write(request, monkeypatch):
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.chdir(request.getfixturevalue("tmp_path"))
