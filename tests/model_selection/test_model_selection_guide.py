"""The pictures of the page on model selection. Its code is run by tests/test_readme.py."""

import re
from pathlib import Path

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "model_selection.md"


def test_the_pictures_of_the_guide_exist_and_are_small():
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", GUIDE.read_text(encoding="utf-8"))
    assert len(pictures) == 2
    for path in pictures:
        assert (GUIDE.parent / path).stat().st_size < 150_000
