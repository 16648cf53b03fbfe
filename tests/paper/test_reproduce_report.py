"""The files of a run and the page that shows them."""

import functools
import http.server
import json
import re
import subprocess
import threading

import pytest
from tiny import tiny_images, tiny_meteo, tiny_runtime, tiny_synthetic

from browser import CHROMIUM, needs_chromium
from paper.drawing.style import figure_bytes
from paper.progress import silent
from paper.report import Check, Section, build_report, save_section
from paper.reproduce import EXPERIMENTS, OF_THE_PAPER, configs_for, reproduce
from workers import made_once


@pytest.fixture(scope="session")
def out(tmp_path_factory):
    """Three experiments that need no files."""
    configs = {
        "synthetic": tiny_synthetic(sizes=(15,), slow_methods=()),
        "images": tiny_images(n_trials=1),
        "runtime": tiny_runtime(),
    }
    make = functools.partial(reproduce, configs, progress=silent)
    return made_once(tmp_path_factory, "report", make)


def test_every_experiment_leaves_its_table_and_figures(out):
    names = {path.name for path in out.iterdir()}
    assert {"synthetic.csv", "images.csv", "runtime.csv", "report.html"} <= names
    for stem in ("synthetic_rmse", "images_channels", "images_rows", "runtime_seconds"):
        assert (out / f"{stem}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (out / f"{stem}.svg").read_text()
    assert not [name for name in names if name.endswith(".part")]


def test_the_page_is_self_contained(out):
    page = (out / "report.html").read_text()
    assert "<script" not in page
    for address in re.findall(r'(?:src|href|srcset)="([^"]*)"', page):
        assert address.startswith(("data:", "#"))
    assert "url(" not in page
    assert "@import" not in page
    # Four figures, each for light and for dark pages.
    assert page.count("<img") == page.count("<source") == 4


def test_the_page_shows_numbers_settings_versions_and_claims(out):
    page = (out / "report.html").read_text()
    for words in ("946", "scikit-learn", "n_trials", "claims held", "standard errors", "Python"):
        assert words in page


def test_the_same_table_makes_the_same_figure(out):
    config = tiny_images(n_trials=1)
    draw = EXPERIMENTS["images"][1].figures(config, [])["rows"]
    first, second = (figure_bytes(draw, "light", "svg", dpi=200) for _ in range(2))
    assert first == second == (out / "images_rows.svg").read_bytes()


def test_sections_have_the_order_of_the_paper_whichever_came_first(tmp_path):
    for name in ("runtime", "images"):
        save_section(Section(name, name.title(), "<p>words</p>"), tmp_path)
        build_report(tmp_path, tmp_path / "r.html", "title")
    page = (tmp_path / "r.html").read_text()
    assert 0 < page.index('id="images"') < page.index('id="runtime"')


def test_data_in_the_report_are_escaped(tmp_path):
    section = Section("images", "<b>", "", [Check("a < b", True, "<script>alert(1)</script>")])
    save_section(section, tmp_path)
    build_report(tmp_path, tmp_path / "r.html", "x & y")
    page = (tmp_path / "r.html").read_text()
    assert "<script" not in page
    assert "a &lt; b" in page
    assert "x &amp; y" in page


def test_meteo_report_sets_the_paper_beside_ours(meteo_dir, tmp_path):
    config = tiny_meteo(meteo_dir, sizes=(50,), groups=("linear", "climatology", "calendar"))
    reproduce({"meteo": config}, tmp_path, progress=silent)
    page = (tmp_path / "report.html").read_text()
    assert "0.6261" in page  # LRR, k = 1, N = 50
    assert "overlap" in page
    assert str(meteo_dir) not in page


@pytest.mark.parametrize("size", ["quick", "default", "full"])
def test_every_size_of_every_experiment_can_be_configured(size):
    configs = configs_for(list(EXPERIMENTS), size, seed=3, changes={})
    drawn = {name: config.seed for name, config in configs.items() if hasattr(config, "seed")}
    assert drawn == dict.fromkeys(OF_THE_PAPER, 3)  # nothing is random in the forecasts
    assert all(EXPERIMENTS[name][0].units(config) for name, config in configs.items())


# ---------------------------------------------------------------- in a browser

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--enable-logging=stderr",
    "--v=0",
    "--virtual-time-budget=8000",
    "--dump-dom",
]
PROBE = """<!DOCTYPE html><link rel="icon" href="data:,"><body style="margin:0">
<iframe id="f" src="report.html" style="border:0;width:%dpx;height:4000px"></iframe>
<pre id="found"></pre><script>
document.getElementById("f").onload = function () {
  const page = this.contentDocument, root = page.documentElement;
  const images = [...page.images].map(i => [i.naturalWidth, i.getBoundingClientRect().width]);
  page.querySelectorAll("details").forEach(d => { d.open = true; });
  const tables = [...page.querySelectorAll(".scroll > table")].map(t => [
    t.rows[0].cells.length, t.offsetWidth - t.parentElement.clientWidth,
    page.defaultView.getComputedStyle(t.parentElement).overflowX,
    page.defaultView.getComputedStyle(t.parentElement).backgroundImage.split("gradient").length - 1,
  ]);
  document.getElementById("found").textContent =
    JSON.stringify({images, tables, wide: root.scrollWidth, room: root.clientWidth});
};
</script></body>"""


@pytest.fixture(scope="module")
def address(out):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    handler = functools.partial(Quiet, directory=str(out))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@needs_chromium
@pytest.mark.parametrize("width", [1200, 390], ids=["desktop", "phone"])
def test_the_page_shows_its_pictures_in_a_browser(out, address, tmp_path, width):
    (out / f"probe{width}.html").write_text(PROBE % width)
    done = subprocess.run(
        [
            CHROMIUM,
            *FLAGS,
            f"--user-data-dir={tmp_path / 'profile'}",
            f"--window-size={max(width, 500)},900",
            f"{address}/probe{width}.html",
        ],
        capture_output=True,
        text=True,
        timeout=90,
        check=True,
    )
    assert "CONSOLE" not in done.stderr
    found = json.loads(re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.S)[1])
    assert len(found["images"]) == 4
    assert all(natural > 0 and shown > 300 for natural, shown in found["images"])
    # Tables of a few columns fit; wider ones scroll, with shadows that say so.
    few = [over for columns, over, *_ in found["tables"] if columns <= 5]
    assert len(few) > 5
    assert max(few) <= 0
    assert {(scroll, shades) for *_, scroll, shades in found["tables"]} == {("auto", 4)}
    # Wide tables and figures scroll within themselves, never the page.
    assert found["wide"] <= found["room"] == width
