"""The page on the mathematics: every function that a formula leads to is where the page says."""

import re
from importlib import import_module
from operator import attrgetter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "how_it_works.md").read_text(encoding="utf-8")
LINKS = sorted(set(re.findall(r"\[`([\w.]+)`\]\(\.\./src/([\w/]+)\.py\)", PAGE)))


def test_the_page_leads_to_the_code():
    assert len(LINKS) >= 15


@pytest.mark.parametrize(("name", "path"), LINKS)
def test_what_a_formula_links_to_is_there(name, path):
    module = import_module(path.replace("/", "."))
    found = attrgetter(name)(module)
    assert getattr(found, "fget", found).__module__ == module.__name__
