"""Files of the Met Office and of published series are not part of the repository: find or skip."""

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def meteo_dir(monkeypatch):
    folder = Path(os.environ.get("HOLRR_METEO_DIR", REPOSITORY / ".." / "shared" / "meteo"))
    if not (folder / "oxforddata.txt").is_file():
        pytest.skip("no Met Office station files: set HOLRR_METEO_DIR to the folder that has them")
    monkeypatch.setenv("HOLRR_METEO_DIR", str(folder))
    return folder


@pytest.fixture
def published_dir(monkeypatch):
    folder = Path(os.environ.get("HOLRR_PUBLISHED_DIR", REPOSITORY / ".." / "shared" / "published"))
    if not (folder / "CCDS_tensor_2.mat").is_file():
        pytest.skip(
            "no published series: set HOLRR_PUBLISHED_DIR to the folder that has the files named "
            "in docs/published.md"
        )
    monkeypatch.setenv("HOLRR_PUBLISHED_DIR", str(folder))
    return folder
