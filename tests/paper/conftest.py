"""The station files of the Met Office are not part of the repository: find them, or skip."""

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def meteo_dir():
    folder = Path(os.environ.get("HOLRR_METEO_DIR", REPOSITORY / ".." / "shared" / "meteo"))
    if not (folder / "oxforddata.txt").is_file():
        pytest.skip("no Met Office station files: set HOLRR_METEO_DIR to the folder that has them")
    return folder
