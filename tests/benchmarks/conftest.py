"""The station files of the Met Office, if they are beside the checkout."""

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def stations(monkeypatch):
    folder = Path(__file__).resolve().parents[3] / "shared" / "meteo"
    if "HOLRR_METEO_DIR" not in os.environ and folder.is_dir():
        monkeypatch.setenv("HOLRR_METEO_DIR", str(folder))
