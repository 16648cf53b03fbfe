"""The README and the pages: code that runs, figures that agree, links and pictures that exist."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs.badges import badge, values
from docs.chart import files as chart_files
from docs.pages import BLOCKS, EXTRAS_LINE, hidden_modules, stated_extras

ROOT = Path(__file__).resolve().parents[1]
DOCS, IMAGES = ROOT / "docs", ROOT / "docs" / "images"
ROOT_PAGES = [ROOT / f"{name}.md" for name in ("README", "ARCHITECTURE", "CONTRIBUTING")]
ROOT_PAGES += [ROOT / "SECURITY.md", ROOT / "CODE_OF_CONDUCT.md", ROOT / "CHANGELOG.md"]
PAGES = [*ROOT_PAGES, *sorted(DOCS.glob("*.md"))]
TEXTS = {page: page.read_text(encoding="utf-8") for page in PAGES}
WITH_CODE = [ROOT / "README.md"]
WITH_CODE += [page for page in PAGES if page.parent == DOCS and BLOCKS.search(TEXTS[page])]
# Pages whose tables are the navigation of the site.
HUBS = ("index", "tutorials", "guide", "benchmarks", "coming_from", "theory", "project")
LINKS = re.compile(r"\[([^\]]*)\]\(([^)#\s]+)(?:#([\w-]+))?\)|(?:src|srcset)=\"()([^\"]+)()\"")


def slug(title):
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


# ---------------------------------------------------------------- code


def pages_by_extras():
    """The pages with code, for each set of extras that some of them state."""
    found = {}
    for page in WITH_CODE:
        found.setdefault(tuple(sorted(stated_extras(TEXTS[page]))), []).append(page)
    return [pytest.param(*item, id=",".join(item[0]) or "none") for item in found.items()]


@pytest.mark.parametrize(("stated", "pages"), pages_by_extras())
def test_the_code_of_pages_runs_with_the_extras_that_they_state(stated, pages, tmp_path):
    """In a process in which all other optional packages cannot be imported."""
    from importlib.util import find_spec

    modules = {"table": "pandas", "plot": "matplotlib", "explain": "shap", "onnx": "onnxruntime"}
    modules["spectra"] = "chemotools"
    for extra in stated:
        name = modules.get(extra, {"data": "pooch"}.get(extra, extra))
        if find_spec("rich" if name == "progress" else name) is None:
            pytest.skip(f"{name} is not installed")
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-m", "docs.pages", *map(str, pages), str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}{done.stderr[-3000:]}"
    for page in pages:
        drawn = {picture.stem for picture in (tmp_path / page.stem).glob("*.png")}
        assert drawn <= set(re.findall(r"images/(\w+)\.png", TEXTS[page]))


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.name)
def test_lines_of_code_fit_a_page_of_1280_pixels(page):
    too_long = [
        line
        for block in BLOCKS.finditer(TEXTS[page])
        for line in block["code"].splitlines()
        if len(line) > 100
        and (block["kind"] == "python" or line.lstrip().startswith((">>> ", "... ")))
    ]
    assert too_long == []


def test_packages_of_other_extras_are_hidden():
    assert {"matplotlib", "pandas", "xarray"} <= hidden_modules([])
    assert not {"numpy", "scipy", "sklearn", "joblib"} & hidden_modules([])
    assert "matplotlib" not in hidden_modules(["plot"])
    assert "pandas" in hidden_modules(["plot"])
    assert not {"xarray", "pandas"} & hidden_modules(["xarray"])  # xarray needs pandas


def test_a_page_that_needs_another_extra_fails(tmp_path):
    page = tmp_path / "page.md"
    for line, code in (("", 1), ("*Extras used on this page: `plot`.*", 0)):
        page.write_text(f"# Title\n\n{line}\n\n```python\nimport matplotlib\n```\n")
        words = [sys.executable, "-m", "docs.pages", str(page)]
        env = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        assert subprocess.run(words, cwd=ROOT, env=env, capture_output=True).returncode == code


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_the_extras_are_named_right_below_the_title(page):
    if page.parent == DOCS and EXTRAS_LINE.search(TEXTS[page]):
        line = r"\A# [^\n]+\n\n\*Extras used on this page: `[\w-]+`(, `[\w-]+`)*\.\*\n\n"
        assert re.match(line, TEXTS[page])


def test_the_readme_and_the_landing_page_show_the_same_code():
    first = [BLOCKS.search(TEXTS[page]) for page in (ROOT / "README.md", DOCS / "index.md")]
    assert first[0]["code"] == first[1]["code"]
    assert first[0]["output"] == first[1]["output"] is not None


# ---------------------------------------------------------------- figures


def test_the_readme_is_short_and_its_numbers_are_those_of_the_pages():
    text = TEXTS[ROOT / "README.md"]
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


def table(page, head):
    """Rows of the table of a page whose first cell is `head`, as lists of cells."""
    lines = TEXTS[DOCS / page].replace("−", "-").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {head} |"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip().strip("*") for cell in line.strip("|").split("|")])
    return rows


def changes_on_real_data():
    """Change of the RMSE of the default in percent and its standard error, by task."""
    rows = table("benchmarks.md", "task | N")
    return {row[0]: tuple(map(float, row[7].split(" ± "))) for row in rows}


def test_the_figures_of_the_use_cases_are_the_measured_ones():
    found = changes_on_real_data()
    for page in (DOCS / "index.md", ROOT / "README.md"):
        for task in ("British weather", "EEG"):
            assert f"{-found[task][0]:.1f} % lower" in TEXTS[page]


def test_the_page_on_when_it_helps_says_what_was_measured():
    text = TEXTS[DOCS / "when_it_helps.md"]
    rows = table("when_it_helps.md", "signal | noise / signal")
    low, full = (
        [list(map(float, row[2:])) for row in rows if row[0] == name]
        for name in ("rank 3", "full rank")
    )
    few, many = [row[0] for row in low], [row[-1] for row in low]
    assert f"{-max(few):.0f} to {-min(few):.0f} percent lower" in text
    assert -1 < min(many) < max(many) < 0
    assert min(low[-1]) > -2.5
    assert max(abs(change) for row in full for change in row) < 0.2
    found = changes_on_real_data().values()
    percent = sorted(change for change, _ in found)
    clear = [change for change, error in found if abs(change) > 2 * error]
    assert (len(percent), sum(p < 0 for p in percent), sum(p > 0 for p in percent)) == (28, 20, 5)
    assert len(clear) == 11
    assert max(clear) < 0
    assert f"gain is {-percent[0]:.0f} percent" in text
    assert f"loss is {percent[-1]:.1f} percent" in text


# ---------------------------------------------------------------- links and names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_targets_of_links_exist(page):
    text = TEXTS[page]
    assert not re.search(r"^(<{7}|>{7}) ", text, re.M)  # marks of a merge
    for _, link, place, _, source, _ in LINKS.findall(re.sub(r"```.*?```", "", text, flags=re.S)):
        if "://" in link or link.startswith("mailto:"):
            continue
        target = (page.parent / (link or source)).resolve()
        assert target.exists(), link or source
        if place and target.suffix == ".md":
            titles = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.M)
            assert place in map(slug, titles), f"{link}#{place}"


def title_of(page):
    return re.search(r"^# (.*)$", TEXTS[page], re.M)[1]


def listed():
    """The pages that the tables of the hubs link to: link text, page, hub."""
    found = []
    for hub in HUBS:
        rows = re.findall(r"^\| \[([^\]]*)\]\(([^)#]+\.md)\) \|", TEXTS[DOCS / f"{hub}.md"], re.M)
        found += [(name, link, hub) for name, link in rows if "/" not in link]
    return found


def test_every_page_is_listed_once():
    links = [link for _, link, _ in listed()]
    assert sorted(links) == sorted(p.name for p in DOCS.glob("*.md") if p.name != "index.md")


def test_a_page_has_the_same_name_everywhere():
    shown = {link: name for name, link, _ in listed()}
    titles = {link: title_of(DOCS / link) for link in shown}
    from_root = {"architecture.md", "changelog.md", "contributing.md", "security.md"}
    assert {k: v for k, v in shown.items() if k not in from_root} == {
        k: v for k, v in titles.items() if k not in from_root
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_read_well_as_plain_markdown(page):
    """No front matter, no directives, no definition lists: only the site would render them."""
    text = re.sub(r"^```(?!\{).*?^```$", "", TEXTS[page], flags=re.M | re.S)
    assert not text.startswith("---")
    assert re.findall(r"^:::.*|^ *```\{.*|\{\w+\}`|^: .*", text, re.M) == []


# ---------------------------------------------------------------- pictures


def shown_pictures():
    texts = [*TEXTS.values(), *(p.read_text() for p in DOCS.glob("*.md"))]
    return {name for text in texts for name in re.findall(r"images/([\w]+\.(?:png|svg))", text)}


def test_every_picture_is_shown_and_has_a_variant_for_dark_pages():
    files = {path.name for path in IMAGES.iterdir() if not path.name.startswith("badge_")}
    light = {name for name in files if "_dark." not in name}
    assert light == {
        n for n in shown_pictures() if not n.startswith("badge_") and "_dark." not in n
    }
    assert files - light == {name.replace(".", "_dark.") for name in light}


def test_pictures_have_twice_the_resolution_of_the_page_and_are_small():
    from struct import unpack

    for path in IMAGES.glob("*.png"):
        width, height = unpack(">II", path.read_bytes()[16:24])
        twin = path.with_name(path.name.replace("_dark", ""))
        # Widths of twins may differ where labels are cut to the size of the figure.
        assert abs(unpack(">I", twin.read_bytes()[16:20])[0] - width) <= 4, path.name
        assert 2 * 350 < width < 2 * 1700, path.name
        assert path.stat().st_size < 300_000, path.name
        assert height < 2 * 1200, path.name


def test_badges_and_charts_are_up_to_date():
    for name, value in values().items():
        assert (IMAGES / f"badge_{name}.svg").read_text("utf-8") == badge(name, value)
    for name, text in chart_files().items():
        assert (IMAGES / name).read_text("utf-8") == text


def test_dark_pictures_can_be_read():
    plt = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed")
    from docs.dark import PAPER, contrast, darken

    figure, (ax, other) = plt.subplots(1, 2)
    ax.plot([0, 1], color="#1f5a99", label="line")
    ax.set(title="title", xlabel="x")
    ax.legend()
    image = other.imshow([[0, 1]], cmap="viridis")
    note = other.text(0, 0, "note", color="black")
    figure.canvas.draw()
    darken(figure)
    assert note.get_color() == "black"  # it stands on the map, which stays as it is
    assert image.get_cmap().name == "viridis"
    texts = [ax.title, ax.xaxis.label, *ax.get_xticklabels(), *ax.get_legend().get_texts()]
    for artist in (*texts, ax.lines[0]):
        assert contrast(artist.get_color(), PAPER) >= 4.5
    assert contrast(ax.get_facecolor(), PAPER) < 1.1
    plt.close(figure)


@pytest.mark.slow
def test_other_pictures_are_drawn_from_the_code_of_their_pages():
    plt = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed")
    pytest.importorskip("xarray", reason="xarray is not installed")
    from docs.pictures import DRAWN

    for draw in DRAWN:
        page = (DOCS / f"{draw.__name__}.md").read_text(encoding="utf-8")
        figures = draw()
        assert set(figures) <= set(re.findall(r"images/(\w+)\.png", page))
        for figure in figures.values():
            figure.canvas.draw()
            for ax in figure.axes:  # no row or column of a map is cut
                for mesh in (c for c in ax.collections if type(c).__name__ == "QuadMesh"):
                    low, high = mesh.get_datalim(ax.transData).get_points()
                    view = ax.viewLim
                    assert view.x0 <= low[0] < high[0] <= view.x1
                    assert view.y0 <= low[1] < high[1] <= view.y1
        plt.close("all")


# ---------------------------------------------------------------- search, gallery, repository


def test_search_terms_are_distinct_and_belong_to_pages():
    import tomllib

    terms = tomllib.loads((DOCS / "search_terms.toml").read_text("utf-8"))
    to_come = {"case_study", "diagnostics", "report", "robust"}
    pages = {path.stem for path in DOCS.glob("*.md")}
    own = {name for name in terms if "/" not in name}
    assert own - to_come <= pages
    assert pages - own <= {"index", "project", "contributing", "code_of_conduct"}
    for words in terms.values():
        assert len({word.lower() for word in words}) == len(words)


def test_every_example_has_a_place_in_the_gallery():
    galleries = pytest.importorskip("docs.galleries", reason="sphinx-gallery is not installed")
    listed = [name for section in galleries.SECTIONS for name in section.examples]
    scripts = {path.stem.removeprefix("plot_") for path in (ROOT / "examples").glob("plot_*.py")}
    assert len(listed) == len(set(listed))
    assert set(listed) <= scripts
    place = galleries.place_of(ROOT / "examples" / "plot_new.py")
    assert place == "gallery/others/plot_new"  # a new script has a page even if no section lists it


def test_dates_of_the_release_agree():
    changelog, citing = TEXTS[ROOT / "CHANGELOG.md"], TEXTS[DOCS / "citing.md"]
    versions = re.findall(r"^## (\S+) \((\d{4}-\d{2}-\d{2})\)$", changelog, re.M)
    titles = [title for title in re.findall("^## (.*)$", changelog, re.M) if title != "Unreleased"]
    assert len(versions) == len(titles)  # every version has a date
    version, date = versions[0]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version: {version}\ndate-released: {date}\n" in citation
    assert f"version = {{{version}}},\n  date    = {{{date}}}," in citing


def test_issue_templates_are_forms_with_required_fields():
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    forms = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*_*.yml"))
    assert len(forms) >= 2
    for path in forms:
        form = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert {"name", "description", "body"} <= set(form)
        assert any(field.get("validations", {}).get("required") for field in form["body"])
        assert len({field["id"] for field in form["body"]}) == len(form["body"])
    assert "make test" in (ROOT / ".github" / "PULL_REQUEST_TEMPLATE.md").read_text("utf-8")
