"""The site in a real browser: wide and narrow, light and dark, from files and without a network.

``make docs`` builds what is opened here; nothing is built by the tests.
"""

from __future__ import annotations

import functools
import http.server
import os
import re
import shutil
import threading
import time
from pathlib import Path
from urllib.parse import unquote

import pytest

from holrr.datasets import make_tensor_regression

DOCS = Path(__file__).parents[1] / "docs"
SITE = DOCS.parent / "build" / "docs"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
PAGES = {
    "front": "index.html",
    "guide": "model_selection.html",
    "wide tables": "benchmarks.html",
    "formulas": "how_it_works.html",
    "beside each other": "migration_sklearn.html",
    "gallery": "gallery/index.html",
    "example": "gallery/plot_map_with_intervals.html",
    "reference": "reference/index.html",
    "class": "reference/generated/holrr.HOLRR.html",
    "long class": "reference/generated/holrr.HOLRRCV.html",
}
pytestmark = pytest.mark.slow
# `make docs` writes this file at its end. Where the site is built beside the tests, they wait.
COMPLETE = SITE / "complete.txt"
WAIT = float(os.environ.get("HOLRR_WAIT_FOR_SITE", "0"))  # seconds


def is_built() -> bool:
    """Whether the site is built, which is waited for where somebody said so."""
    end = time.monotonic() + WAIT
    while not COMPLETE.exists() and time.monotonic() < end:
        time.sleep(0.5)
    return COMPLETE.exists()


# What is shown in the article and sticks out of the window, in no box of its own that scrolls, or
# is hidden by a box that is too small. (The last crumb at the top says that it is shortened; links
# beside headings show under the pointer only.)
CUT_OFF = """() => {
  const within = (e, test) => !e.matches(".bd-article-container")
    && (test(e, getComputedStyle(e).overflowX) || within(e.parentElement, test));
  const scrolls = (e, overflow) => ["auto", "scroll"].includes(overflow);
  const hides = (e, overflow) => ["hidden", "clip"].includes(overflow)
    && e.scrollWidth > e.clientWidth + 1;
  return [...document.querySelectorAll(".bd-article-container *")].filter((e) => {
    const box = e.getBoundingClientRect();
    const shown = box.width > 1 && box.height > 1 && e.checkVisibility();
    const out = box.left < -1 || box.right > document.documentElement.clientWidth + 1;
    return shown && !e.closest("svg *, .ellipsis, .headerlink, mjx-assistive-mml")
      && (out && !within(e.parentElement, scrolls) || within(e, hides));
  }).map((e) => `${e.tagName}.${e.className}: ${e.textContent.slice(0, 40)}`).slice(0, 5);
}"""
DRAWN = "async () => window.MathJax && await MathJax.startup.promise"
RAW_LATEX = r"""() => [...document.querySelectorAll("main .math")]
  .filter((e) => !e.querySelector("mjx-container svg") || e.querySelector("[data-mml-node=merror]"))
  .map((e) => e.textContent.slice(0, 60))"""


@pytest.fixture(scope="module")
def browser():
    if not is_built():
        pytest.skip("the site is not built: make docs")
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on this machine")
    api = pytest.importorskip("playwright.sync_api", reason="playwright comes with make docs")
    root = getattr(os, "geteuid", lambda: 1)() == 0
    with api.sync_playwright() as play:
        chromium = play.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"] if root else []
        )
        yield chromium
        chromium.close()


@pytest.fixture
def visit(browser):
    """Open a page of the site: the page, and what went wrong on the way."""
    contexts = []

    def go(address, width=1200, scheme="light", offline=True):
        contexts.append(
            browser.new_context(
                viewport={"width": width, "height": 800}, color_scheme=scheme, offline=offline
            )
        )
        page, complaints = contexts[-1].new_page(), []
        page.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        # What is given up because the next page is opened has not failed.
        page.on(
            "requestfailed",
            lambda request: (
                None
                if "ERR_ABORTED" in (request.failure or "")
                else complaints.append(f"{request.url}: {request.failure}")
            ),
        )
        page.goto(address if "://" in address else f"{SITE.as_uri()}/{address}")
        page.evaluate(DRAWN)
        return page, complaints

    yield go
    for context in contexts:
        context.close()


@pytest.fixture
def server(browser):
    """The site as a web server shows it, on this machine."""
    handler = functools.partial(Quiet, directory=str(SITE))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 400])
@pytest.mark.parametrize("address", PAGES.values(), ids=PAGES)
def test_pages_open_whole_and_without_complaints(visit, address, width, scheme):
    page, complaints = visit(address, width, scheme)
    assert complaints == []
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(CUT_OFF) == []
    assert page.evaluate(RAW_LATEX) == []


def test_no_guide_or_example_is_cut_off_on_a_phone(visit):
    page, complaints = visit("index.html", 400)
    bad = {}
    for path in sorted([*SITE.glob("*.html"), *SITE.glob("gallery/*.html")]):
        page.goto(path.as_uri())
        page.evaluate(DRAWN)
        bad[path.name] = page.evaluate(CUT_OFF) + page.evaluate(RAW_LATEX)
    assert len(bad) > 30
    assert {name: what for name, what in bad.items() if what} == {}
    assert complaints == []


def test_what_is_cut_off_is_seen(visit):
    page, _ = visit("index.html", 400)
    for style in ("width: 900px", "width: 100px; overflow: hidden; white-space: nowrap"):
        page.evaluate(
            """(style) => document.querySelector("main article").insertAdjacentHTML(
              "beforeend", `<p id="bad" style="${style}">a long line that nobody can read</p>`)""",
            style,
        )
        assert page.evaluate(CUT_OFF) != []
        page.evaluate("document.getElementById('bad').remove()")
        assert page.evaluate(CUT_OFF) == []


def test_a_formula_that_is_not_drawn_is_seen(visit):
    page, _ = visit("reference/generated/holrr.HOLRR.html")
    assert page.locator("main .math mjx-container svg").count() > 1
    page.evaluate(r"document.querySelector('main .math').textContent = '\\(x^2\\)'")
    assert page.evaluate(RAW_LATEX) == [r"\(x^2\)"]


def test_the_search_finds_an_estimator_in_files(visit):
    page, complaints = visit("search.html?q=HOLRRCV")
    link = page.wait_for_selector("ul.search li a[href*='holrr.HOLRRCV.html']")
    assert "HOLRRCV" in link.text_content()
    assert complaints == []


def test_the_search_finds_an_estimator_on_a_server(visit, server):
    page, complaints = visit(f"{server}/search.html?q=HOLRRCV", offline=False)
    page.wait_for_selector("ul.search li a[href*='holrr.HOLRRCV.html']")
    page.wait_for_selector("ul.search li p.context")  # a server shows excerpts, too
    assert complaints == []


def test_the_code_of_the_front_page_runs():
    (code,) = re.findall(r"```python\n(.*?)```", (DOCS / "index.md").read_text("utf-8"), re.DOTALL)
    X, Y = make_tensor_regression(60, 5, (4, 3, 2), rank=2, snr=1, random_state=0)
    names = {"X": X[:50], "Y": Y[:50], "X_new": X[50:]}
    exec(code, names)
    assert names["low"].shape == names["high"].shape == (10, 4, 3, 2)


def test_every_link_and_picture_within_the_site_is_there():
    """By file name, for all pages at once; a browser would take a minute."""
    if not is_built():
        pytest.skip("the site is not built: make docs")
    missing, foreign = set(), set()
    for page in set(SITE.rglob("*.html")) - set(SITE.glob("_static/**/*")):
        for target in re.findall(r'(?:href|src)="([^"#?]+)[^"]*"', page.read_text("utf-8")):
            if target.startswith(("http:", "https:", "mailto:", "data:", "javascript:")):
                foreign |= {target} if re.search(r"\.(js|css|woff2?)$", target) else set()
            elif not (page.parent / unquote(target)).exists():
                missing.add((page.name, target))
    assert (missing, foreign) == (set(), set())
