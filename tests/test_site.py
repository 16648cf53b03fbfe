"""The site in a real browser: three widths, light and dark, from files and without a network.

``make docs`` builds the site that is opened here; the tests build nothing.
"""

from __future__ import annotations

import functools
import http.server
import re
import threading
from pathlib import Path
from urllib.parse import unquote

import pytest

from browser import launched, needs_chromium

DOCS = Path(__file__).parents[1] / "docs"
SITE = DOCS.parent / "build" / "docs"
PAGES = {
    "landing": "index.html",
    "chart": "choosing.html",
    "formulas": "how_it_works.html",
    "example": "gallery/maps/plot_map_with_intervals.html",
    "class": "reference/generated/holrr.HOLRR.html",
}
WIDTHS, SCHEMES = (400, 1280, 1920), ("light", "dark")
ALL_PAGES = ("*.html", "gallery/**/*.html", "reference/**/*.html")
N_PARTS = 8  # parts of the pages, which several processes open
RAW_MARKUP = re.compile(r":::|```|\{\w+\}`|^html_theme\b.*", re.M)
# What a reader types into the search, and the pages of which one must be among the first three.
SEARCHES = {
    "confidence interval": {"standard_errors", "intervals"},
    "uncertainty": {"intervals", "standard_errors"},
    "hyperparameter": {"model_selection"},
    "imputation": {"missing"},
    "overfitting": {"model_selection"},
    "tutorial": {"tutorials", "getting_started"},
    "FAQ": {"faq"},
    "missing values": {"missing"},
    "Ridge": {"linear", "migration_sklearn"},
    "PLS": {"migration_sklearn"},
    "NaN": {"missing"},
    "GPU": {"linear", "gallery/large_data/plot_gpu"},
    "save model": {"file_format"},
    "feature importance": {"model_explanation"},
    "cross-validation": {"model_selection"},
    "install": {"getting_started"},
    "xarray": {"labels"},
    "citation": {"citing"},
    "out of memory": {"streaming"},
    "BadEntryError": {"faq"},
    "R squared": {"metrics"},
    "R²": {"metrics"},
    "normalize": {"preprocessing"},
    "normalize inputs": {"preprocessing"},
    "scale outputs": {"faq"},
    "predict one sample": {"getting_started"},
    "tensor regression": {"how_it_works"},
    "random state": {"faq"},
    "random seed": {"faq"},
    "cross validation time series": {"model_selection"},
    "plot predictions": {"metrics"},
    "prediction error": {"metrics"},
    "spatial data": {"guide_climate"},
    "neural network": {"choosing"},
    "conformal": {"intervals"},
}
# Pages open slowly on a busy machine: `make check-site` runs these tests alone, after `make docs`.
pytestmark = [pytest.mark.site, needs_chromium]
COMPLETE = SITE / "complete.txt"  # `make docs` writes this file at its end


# Elements of the article, and of the list "On this page", that stick out of the window and are in
# no box that scrolls, or that a box hides. (The last crumb at the top shows that it is shortened;
# links beside headings show under the pointer only.)
CUT_OFF = """() => {
  const within = (e, test) => !e.matches(".bd-article-container, .bd-sidebar-secondary")
    && (test(e, getComputedStyle(e).overflowX) || within(e.parentElement, test));
  const scrolls = (e, overflow) => ["auto", "scroll"].includes(overflow);
  const hides = (e, overflow) => ["hidden", "clip"].includes(overflow)
    && e.scrollWidth > e.clientWidth + 1;
  const aside = innerWidth < 1200 ? "" : ", .bd-sidebar-secondary *";  // else it is out of sight
  const inside = ".bd-article-container *" + aside;
  return [...document.querySelectorAll(inside)].filter((e) => {
    const box = e.getBoundingClientRect();
    const shown = box.width > 1 && box.height > 1 && e.checkVisibility();
    const out = box.left < -1 || box.right > document.documentElement.clientWidth + 1;
    return shown && !e.closest("svg *, .ellipsis, .headerlink, mjx-assistive-mml")
      && (out && !within(e.parentElement, scrolls) || within(e, hides));
  }).map((e) => `${e.tagName}.${e.className}: ${e.textContent.slice(0, 40)}`).slice(0, 5);
}"""
# Code blocks whose lines are longer than the block.
WIDE_CODE = """() => [...document.querySelectorAll(".bd-article .highlight pre")]
  .filter((e) => e.scrollWidth > e.clientWidth + 1)
  .map((e) => e.textContent.split("\\n").sort((a, b) => b.length - a.length)[0])"""
# Pictures that do not fit the colours of the page, or that are not loaded.
WRONG_PICTURES = """(scheme) => [...document.querySelectorAll(".bd-article img[src*='_images/']")]
  .filter((e) => e.checkVisibility())
  .filter((e) => !e.classList.contains(`only-${scheme}`) || e.complete && !e.naturalWidth)
  .map((e) => e.src)"""
HAS_THEME = "(scheme) => document.documentElement.dataset.theme === scheme"
DRAWN = "async () => window.MathJax && await MathJax.startup.promise"
RAW_LATEX = r"""() => [...document.querySelectorAll("main .math")]
  .filter((e) => !e.querySelector("mjx-container svg") || e.querySelector("[data-mml-node=merror]"))
  .map((e) => e.textContent.slice(0, 60))"""


@pytest.fixture(scope="module")
def browser():
    if not COMPLETE.exists():
        pytest.fail("the site is not built: run make docs")
    with launched() as chromium:
        yield chromium


@pytest.fixture
def visit(browser):
    """Open a page of the site: the page, and what went wrong on the way."""
    contexts = []

    def go(address, width=1280, scheme="light", offline=True, **options):
        contexts.append(
            browser.new_context(
                viewport={"width": width, "height": 800},
                color_scheme=scheme,
                offline=offline,
                **options,
            )
        )
        page, complaints = contexts[-1].new_page(), []
        page.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        # Requests that are given up because the next page is opened have not failed.
        page.on(
            "requestfailed",
            lambda request: (
                None
                if "ERR_ABORTED" in (request.failure or "")
                else complaints.append(f"{request.url}: {request.failure}")
            ),
        )
        page.on(
            "request",
            lambda request: (
                None
                if request.url.startswith(("file:", "data:", "blob:", "http://127.0.0.1:"))
                else complaints.append(f"fetched from outside: {request.url}")
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


# ---------------------------------------------------------------- looks


@pytest.mark.parametrize("address", PAGES.values(), ids=PAGES)
def test_pages_open_without_errors_and_without_clipped_content(visit, address):
    for width in (400, 1280):
        for scheme in SCHEMES:
            page, complaints = visit(address, width, scheme)
            assert complaints == []
            assert page.evaluate("document.documentElement.dataset.theme") == scheme
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.evaluate(CUT_OFF) == []
            assert page.evaluate(RAW_LATEX) == []
            assert page.evaluate(WRONG_PICTURES, scheme) == []


def faults(page):
    """What is wrong with the open page: the name of a check -> the elements that fail it."""
    found = {
        "formulas that are not drawn": page.evaluate(RAW_LATEX),
        "code wider than the page at 1280": page.evaluate(WIDE_CODE),
        "raw markup": RAW_MARKUP.findall(page.evaluate("document.body.innerText")),
    }
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        found[f"cut off at {width}"] = page.evaluate(CUT_OFF)
    page.set_viewport_size({"width": 1280, "height": 800})
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(HAS_THEME, arg=scheme)
        found[f"pictures that do not fit {scheme}"] = page.evaluate(WRONG_PICTURES, scheme)
    return {check: elements for check, elements in found.items() if elements}


@pytest.mark.parametrize("part", range(N_PARTS))
def test_every_page_is_whole(visit, part):
    paths = sorted(path for pattern in ALL_PAGES for path in SITE.glob(pattern))
    assert len(paths) > 130
    page, complaints = visit("index.html")
    found = {}
    for path in paths[part::N_PARTS]:
        page.goto(path.as_uri())
        page.evaluate(DRAWN)
        found[path.relative_to(SITE).as_posix()] = faults(page)
    assert {address: wrong for address, wrong in found.items() if wrong} == {}
    assert complaints == []


def test_clipped_content_is_detected(visit):
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


def test_code_that_is_too_wide_is_detected(visit):
    page, _ = visit("index.html")
    assert page.evaluate(WIDE_CODE) == []
    page.evaluate("document.querySelector('.highlight pre').append('x'.repeat(200))")
    assert len(page.evaluate(WIDE_CODE)) == 1


def test_an_unrendered_formula_is_detected(visit):
    page, _ = visit("reference/generated/holrr.HOLRR.html")
    assert page.locator("main .math mjx-container svg").count() > 1
    page.evaluate(r"document.querySelector('main .math').textContent = '\\(x^2\\)'")
    assert page.evaluate(RAW_LATEX) == [r"\(x^2\)"]


def test_a_request_to_another_host_is_detected(visit):
    page, complaints = visit("index.html")
    page.evaluate("new Image().src = 'https://example.org/picture.png'")
    page.wait_for_timeout(200)
    assert any("fetched from outside" in line for line in complaints)


def test_pictures_have_twice_the_points_and_open_in_their_size_on_a_phone(visit):
    page, complaints = visit("index.html", 400, "dark")
    picture = page.locator(".bd-article img.only-dark").first
    natural = picture.evaluate("(e) => e.naturalWidth")
    assert picture.evaluate("(e) => e.clientWidth") < 400 < natural / 2
    picture.click()
    shown = page.locator("dialog.zoom[open] img")
    assert shown.get_attribute("src").endswith("_dark.png")
    assert shown.evaluate("(e) => e.clientWidth") == natural / 2
    shown.click()
    assert page.locator("dialog.zoom[open]").count() == 0
    assert complaints == []


def test_a_picture_that_fits_does_not_open_in_a_dialog(visit):
    page, _ = visit("choosing.html", 1280)
    picture = page.locator(".bd-article img.only-light").first
    picture.click()
    assert page.locator("dialog.zoom[open]").count() == 0


# ---------------------------------------------------------------- search


def first_results(page, words, n=3):
    """Type words into the search of the site; the pages of the first results."""
    page.keyboard.press("Control+k")
    page.locator("dialog input[type=search]").first.fill(words)
    page.keyboard.press("Enter")
    page.wait_for_selector("ul.search li a")
    links = page.locator("ul.search li > a").evaluate_all("(all) => all.map((a) => a.href)")
    pages = [unquote(link).partition("/build/docs/")[2].partition(".html")[0] for link in links]
    return pages[:n]


@pytest.mark.parametrize("words", SEARCHES)
def test_the_search_finds_the_right_page(visit, words):
    page, complaints = visit("index.html")
    found = first_results(page, words)
    wanted = SEARCHES[words]
    assert wanted & set(found), found
    assert complaints == []


def test_a_page_without_search_terms_is_not_found(visit):
    page, _ = visit("search.html?q=zzzyx")
    page.wait_for_function("document.querySelector('#search-results').textContent.length > 20")
    assert page.locator("ul.search li a").count() == 0


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


# ---------------------------------------------------------------- reading


def test_links_lead_from_the_landing_page_to_saving_a_model(visit):
    page, complaints = visit("index.html")
    steps = {
        "Install": "getting_started.html#install",
        "Fit your own arrays": "getting_started.html#fit-your-own-arrays",
        "Which estimator should I use?": "choosing.html",
        "Prediction intervals": "intervals.html",
        "Saving and loading models": "file_format.html",
    }
    for name, address in steps.items():
        article = page.locator("article.bd-article").get_by_role("link", name=name, exact=True)
        anywhere = page.get_by_role("link", name=name, exact=True).locator("visible=true")
        (article if article.count() else anywhere).first.click()
        page.wait_for_url(f"**/{address}")
    assert page.locator("h1").text_content().startswith("Saving and loading models")
    assert complaints == []


def copied(page, block):
    """What the button of a block copies."""
    block.hover()
    block.locator("button.copybtn").click()
    return page.evaluate("navigator.clipboard.readText()")


def test_only_commands_are_copied(visit, server):
    rights = {"offline": False, "permissions": ["clipboard-read", "clipboard-write"]}
    page, _ = visit(f"{server}/getting_started.html", **rights)
    block = page.locator("div.highlight", has_text="R2 on new samples").first
    text = copied(page, block)
    assert text.startswith("from holrr import HOLRRCV\nX_train")
    assert ">>>" not in text
    assert "R2 on new samples: 0" not in text
    # A traceback is output, too.
    page, _ = visit(f"{server}/preprocessing.html", **rights)
    block = page.locator("div.highlight", has_text="Traceback").first
    assert "Error:" in block.text_content()
    text = copied(page, block)
    assert text
    assert not re.search("Traceback|Error:|>>>", text)
    page, _ = visit(f"{server}/index.html", **rights)
    block = page.locator("div.highlight", has_text="make_climate_maps").first
    assert copied(page, block).startswith("from holrr import")  # a block without prompts is whole


def test_every_link_and_picture_within_the_site_is_there():
    """By file name, for all pages at once; a browser would take a minute."""
    if not COMPLETE.exists():
        pytest.fail("the site is not built: run make docs")
    missing, foreign, downloads = set(), set(), set()
    for page in set(SITE.rglob("*.html")) - set(SITE.glob("_static/**/*")):
        text = page.read_text("utf-8")
        for target in re.findall(r'(?:href|src)="([^"#?]+)[^"]*"', text):
            if target.startswith(("http:", "https:", "mailto:", "data:", "javascript:")):
                foreign |= {target} if re.search(r"\.(js|css|woff2?)$", target) else set()
            elif not (page.parent / unquote(target)).exists():
                missing.add((page.name, target))
            elif "_downloads" in target and "gallery" not in page.parts:
                downloads.add(target.rpartition("/")[2])
    assert (missing, foreign) == (set(), set())
    assert downloads <= {"CITATION.cff"}  # source files are shown, not downloaded


def test_every_public_name_has_a_description_in_the_reference(visit):
    page, _ = visit("reference/index.html")
    rows = page.locator("table.autosummary tr").evaluate_all(
        "(all) => all.map((row) => [...row.cells].map((cell) => cell.textContent.trim()))"
    )
    assert len(rows) > 50
    assert [name for name, text in rows if not text] == []
