"""The README and the guides: code that runs, promises that hold, links that lead somewhere."""

import re
import warnings
from pathlib import Path

import pytest

from docs.pictures import DRAWN, GUIDES, run_guide

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"]
PAGES += sorted((ROOT / "docs").glob("*.md"))
# Pictures of measurements, which the benchmarks draw.
MEASURED = {"streaming_growth.png"}


def run(page):
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    names = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for block in blocks:
            exec(block, names)
    return names


def test_the_code_of_the_readme_does_what_it_says():
    names = run(ROOT / "README.md")
    model, X, Y = names["model"], names["X"], names["Y"]
    rank = model.best_params_["rank"]
    assert rank == (3, 3, 2, 2)
    assert model.predict(X[150:]).shape == (50, 12, 8, 6)
    counts = model.cv_results_["n_parameters"]
    assert counts[tuple(R - 1 for R in rank)] == 104  # "about a hundred"
    assert names["X"].shape[1] * Y[0].size == 5760


def test_the_readme_is_short_and_its_numbers_are_those_of_the_pages():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 100
    cells = r"\| ([^|]*\|[^|]*\|[^|]*) \|"  # what, against, found
    rows = re.findall(rf"^{cells} \[.*?\]\((docs/\w+\.md)(?:#([\w-]+))?\) \|$", text, re.M)
    assert len(rows) >= 5
    for words, page, section in rows:
        told = (ROOT / page).read_text(encoding="utf-8")
        if section:
            (title,) = (t for t in re.findall(r"^#+ (.*)$", told, re.M) if slug(t) == section)
            told = re.search(rf"^#+ {title}$(.*?)(?=^## |\Z)", told, re.M | re.DOTALL)[1]
        numbers = re.findall(r"\d+\.\d+|\d+,\d+|(?<=on )\d+", words)
        assert numbers
        missing = [number for number in numbers if not re.search(rf"(?<!\d){number}(?!\d)", told)]
        assert missing == [], (words, missing)


def slug(title):
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"^(<{7}|>{7}) ", text, re.M)  # marks of a merge
    links = re.findall(r"\]\(([^)#]+)\)", text)
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.name)
def test_the_code_of_the_guides_prints_what_they_say(page, tmp_path):
    more = {
        "migration_himalaya": ["himalaya"],
        "preprocessing": ["torch"],
        "onnx": ["onnxruntime"],
        "streaming": ["distributed", "zarr"],
    }.get(page.stem, [])
    for extra in ("matplotlib", "pandas", "xarray", "dask", "tensorly", *more):
        pytest.importorskip(extra, reason=f"{extra} is not installed")
    result = run_guide(page, tmp_path)
    assert (result.failed, result.attempted > 5) == (0, True)
    pictures = set(re.findall(r"images/(\w+\.png)", page.read_text(encoding="utf-8")))
    assert {path.name for path in tmp_path.glob("*.png")} == pictures - MEASURED
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.mark.parametrize("draw", DRAWN, ids=lambda draw: draw.__name__)
def test_other_pictures_are_drawn_from_the_code_of_their_pages(draw):
    plt = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed")
    page = (ROOT / "docs" / f"{draw.__name__}.md").read_text(encoding="utf-8")
    figures = draw()
    assert set(figures) == set(re.findall(r"images/(\w+)\.png", page))
    for figure in figures.values():
        figure.canvas.draw()
        for ax in figure.axes:  # no row or column of a map is cut
            for mesh in (c for c in ax.collections if type(c).__name__ == "QuadMesh"):
                low, high = mesh.get_datalim(ax.transData).get_points()
                view = ax.viewLim
                assert view.x0 <= low[0] < high[0] <= view.x1
                assert view.y0 <= low[1] < high[1] <= view.y1
    plt.close("all")


def test_there_is_a_guide_for_each_reader():
    names = {page.stem for page in GUIDES}
    assert names >= {"guide_climate", "guide_laboratory", "guide_machine_learning"}
    assert names >= {"interpretation", "labels"}
