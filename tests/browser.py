"""The browser of the machine, as tests use it."""

from __future__ import annotations

import contextlib
import os
import shutil

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")


@contextlib.contextmanager
def launched():
    """Launch Chromium and close it at the end; skip the test where playwright is missing."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is installed by make docs")
    is_root = getattr(os, "geteuid", lambda: 1)() == 0
    with api.sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"] if is_root else []
        )
        yield browser
        browser.close()
