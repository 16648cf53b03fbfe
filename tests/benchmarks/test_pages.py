"""Sections of pages: what the scripts write, and figures that other pages repeat."""

import argparse
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "benchmarks"))

import pages  # noqa: E402

SCRIPTS = {
    path.stem: path.read_text(encoding="utf-8")
    for path in (ROOT / "benchmarks").glob("*.py")
    if path.stem != "pages"
}
README = (ROOT / "README.md").read_text(encoding="utf-8")
BENCHMARKS = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")


@pytest.fixture
def guide(tmp_path, monkeypatch):
    """A page with a section "x", which is the only known section beside "y"."""
    monkeypatch.setattr(pages, "DOCS", tmp_path)
    monkeypatch.setattr(pages, "SECTIONS", {"x": "guide.md", "y": "guide.md"})
    page = tmp_path / "guide.md"
    page.write_text("a\n<!-- x -->\nold\n<!-- end of x -->\nb\n")
    return page


# ---------------------------------------------------------------- reading and writing


def test_a_section_is_written_between_its_markers(guide):
    assert pages.read_section("x") == "old\n"
    pages.write_section("x", "\nnew\n\nlines\n\n")
    assert guide.read_text() == "a\n<!-- x -->\n\nnew\n\nlines\n\n<!-- end of x -->\nb\n"
    assert pages.read_section("x") == "new\n\nlines\n"
    pages.write_section("x", pages.read_section("x"))
    assert pages.read_section("x") == "new\n\nlines\n"


@pytest.mark.usefixtures("guide")
def test_an_unknown_section_raises():
    with pytest.raises(ValueError, match="'z' is unknown"):
        pages.write_section("z", "new")


@pytest.mark.parametrize(
    "text",
    [
        "a\n",
        "<!-- y -->\n",
        "<!-- end of y -->\n",
        "<!-- end of y -->\n<!-- y -->\n",
        "<!-- y -->\n<!-- y -->\n<!-- end of y -->\n",
        "<!-- y -->\n<!-- end of y -->\n<!-- end of y -->\n",
    ],
)
def test_markers_must_be_there_once_and_in_order(guide, text):
    guide.write_text(text)
    for call in (pages.read_section, lambda name: pages.write_section(name, "new")):
        with pytest.raises(ValueError, match=r"docs/guide.md must have <!-- y --> once"):
            call("y")
    assert guide.read_text() == text


def test_rows_must_have_as_many_cells_as_the_head():
    found = pages.table(["a", "b"], [["c", 1], ["", ""]])
    assert found == "| a | b |\n|:--|--:|\n| c | 1 |\n| | |\n"
    with pytest.raises(ValueError, match="has 1 cells, the head has 2"):
        pages.table(["a", "b"], [["c"]])


def test_lines_are_printed_and_kept(capsys):
    assert pages.printed(iter(["a", "b"])) == capsys.readouterr().out == "a\nb\n"


def test_paragraphs_have_the_width_of_the_pages():
    text = pages.paragraph("word " * 60)
    assert max(map(len, text.splitlines())) == 119
    assert text.split() == ["word"] * 60
    assert text.endswith("word\n")


def test_ranges_of_values_that_look_alike_are_one_value():
    assert pages.span([2.04, 1.96], ".1f") == "2.0"
    assert pages.span(iter([3, 1, 2]), "d") == "1 to 3"


def test_quick_runs_do_not_write(capsys):
    def parse(*words):
        parser = argparse.ArgumentParser()
        parser.add_argument("--quick", action="store_true")
        return pages.parse_options(parser, words)

    assert parse("--write").write
    assert not parse("--quick").write
    with pytest.raises(SystemExit):
        parse("--quick", "--write")
    assert "--write needs a full run" in capsys.readouterr().err


# ---------------------------------------------------------------- sections of the project


@pytest.mark.parametrize("name", pages.SECTIONS)
def test_a_section_has_its_markers_on_its_page_only(name):
    pages.read_section(name)  # raises unless they are there once
    found = [
        path.name
        for path in pages.DOCS.glob("*.md")
        if f"<!-- {name} -->" in path.read_text(encoding="utf-8")
    ]
    assert found == [pages.SECTIONS[name]]


@pytest.mark.parametrize("page", sorted(set(pages.SECTIONS.values())))
def test_every_marker_belongs_to_a_section(page):
    text = (pages.DOCS / page).read_text(encoding="utf-8")
    names = re.findall(r"<!-- end of (.*?) -->", text)
    assert [pages.SECTIONS.get(name) for name in names] == [page] * len(names)


def writes(script, name):
    """Whether a script writes a section, in a call with its name or with a variable."""
    text = SCRIPTS[script]
    if f'write_section("{name}"' in text:
        return True
    return bool(re.search(r'write_section\((?!")', text)) and f'"{name}"' in text


@pytest.mark.parametrize("name", pages.SECTIONS)
def test_a_section_is_written_by_one_script(name):
    assert len([script for script in SCRIPTS if writes(script, name)]) == 1


# ---------------------------------------------------------------- figures that are repeated


def cells(section):
    """The rows of the table of a section, without its head."""
    lines = [line for line in pages.read_section(section).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def of_readme(what):
    """The third cell of a row of the table of results."""
    (found,) = re.findall(rf"^\| {re.escape(what)} \| [^|]* \| ([^|]*) \|", README, re.M)
    return found


def test_the_readme_has_the_errors_of_the_section_on_real_data():
    rows = {row[0]: row[1] for row in cells("real data, short")}
    number = re.compile(r"[+−]?[\d.]+")
    found = [number.findall(row[7].replace("*", "")) for row in cells("real data")]
    changes = sorted((float(mean.replace("−", "-")), error) for mean, error in found)
    (gain, _), (loss, error) = changes[0], changes[-1]
    assert of_readme(f"RMSE on {rows['data sets']} real data sets") == (
        f"lower by more than two standard errors on {rows['clearly lower']}, higher by as much on "
        f"{rows['clearly higher']}; geometric mean of the ratios "
        f"{rows['geometric mean of the RMSE ratios']}, largest gain {-gain:.1f} %, "
        f"largest loss {loss:.1f} % (standard error {float(error):.1f} %)"
    )


def test_the_readme_has_the_times_of_the_section_on_fits():
    rows = cells("linear fit, short")
    for what, is_small in (("thousands of samples", False), ("100 samples", True)):
        two, one = (
            pages.span([float(row[k]) for row in rows if (row[0] == "100") == is_small], ".2f")
            for k in (-2, -1)
        )
        said = f"{two} times on two threads, {one} times on one thread"
        assert of_readme(f"Time of a fit, {what}") == said


def test_the_readme_has_the_time_of_the_section_on_kernels():
    row = next(row for row in cells("kernel search, short") if row[0] == "`KernelHOLRRCV`")
    ratio, models = re.fullmatch(r"([\d.]+) \(([\d,]+) models\)", row[1]).groups()
    assert of_readme(f"Time to cross-validate {models} kernel models") == f"{ratio} times"


def test_the_short_sections_have_the_figures_of_the_long_ones():
    assert [row[-2:] for row in cells("linear fit, short")] == [
        row[6:8] for row in cells("linear fit")
    ]
    long, short = (
        {row[0].strip("`"): row[1:] for row in cells(name)}
        for name in ("kernel search", "kernel search, short")
    )
    for name in ("KernelRLSCV", "KernelHOLRRCV"):
        for a, b in zip(long[name], short[name], strict=True):
            assert a.split()[0] == b.split()[0]
    times = {row[0]: row[1:] for row in cells("search time")}
    ratio = next(row[1] for name, row in times.items() if "RidgeCV" in name)
    text = " ".join(pages.read_section("search time, short").split())
    assert f"takes {times['`HOLRRCV`, 5 folds'][0]} s, {ratio} times as long" in text


def test_the_summary_has_the_figures_of_the_sections():
    text = " ".join(BENCHMARKS.split())
    of_gpu = {row[0]: row for row in cells("speed on a GPU")}

    def gpu(size):
        return float(of_gpu[f"HOLRRCV(stack) / himalaya RidgeCV, in turn, {size}"][3])

    large, small = gpu("20000 x 256 -> 64x64"), gpu("2000 x 50 -> 20x20x20")
    assert f"takes {large:.2f} times as long as himalaya's" in text
    assert f"{small:.1f} times as long at 2,000 x 50" in text
    real = {row[0]: row[1] for row in cells("real data, short")}
    assert f"tuned ridge regression on {real['data sets']} real data sets" in text
    rows = [
        line.strip("|").split("|")
        for line in pages.read_section("tensor inputs").splitlines()
        if line.startswith("| RLSCV, tensor X / ")
    ]
    flat, peer = (
        [float(cell.strip(" ()")) for name, *row in rows for cell in row[:n] if theirs in name]
        for theirs, n in (("ridge, flat X", 3), ("CP_PLSR", 4))
    )
    assert f"{pages.span(flat, '.2f')} times the error" in text
    assert f"{pages.span(peer, '.2f')} times the error" in text
