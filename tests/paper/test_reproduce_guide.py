"""The guide's code runs, and a run can be carried into it."""

import re
from pathlib import Path

import pytest
from tiny import tiny_images, tiny_meteo, tiny_runtime, tiny_synthetic

from paper.guide import refresh
from paper.progress import silent
from paper.reproduce import reproduce

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "reproduce.md"


def block(name):
    """A place for the results of an experiment."""
    return f"<!-- {name} -->\nformer numbers\n<!-- end of {name} -->\n"


def test_the_code_of_the_guide_runs():
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), flags=re.DOTALL)
    assert len(blocks) == 1
    names = {}
    for block in blocks:
        exec(block, names)
    assert names["rows"][0]["method"] == "RLS"
    assert len(names["figure"].axes) == 1


@pytest.mark.slow
def test_results_are_carried_into_the_guide(meteo_dir, tmp_path):
    report, docs = tmp_path / "report", tmp_path / "docs"
    groups = ("linear", "rbf", "linear, wide", "rbf, wide", "climatology", "calendar", "anomalies")
    configs = {
        "synthetic": tiny_synthetic(panels=("linear",), sizes=(15,), slow_methods=()),
        "images": tiny_images(n_trials=2),
        "runtime": tiny_runtime(sizes=((4, 3, 3),)),
        "meteo": tiny_meteo(meteo_dir, horizons=(1,), sizes=(50,), groups=groups),
    }
    reproduce(configs, report, progress=silent)
    for folder in ("images", "results"):
        (docs / folder).mkdir(parents=True)
    places = "\n".join(map(block, ("weather", *configs)))
    (docs / "reproduce.md").write_text(f"before\n{places}after")
    refresh(report, docs)
    refresh(report, docs)  # again: it replaces what it wrote
    text = (docs / "reproduce.md").read_text()
    assert text.startswith("before")
    assert text.endswith("after")
    assert "former numbers" not in text
    assert text.count("### Table 2") == 1
    assert "(0.6261)" in text
    assert "RLS 2 of 2" in text  # searches on the edge
    assert "| 1, 50 | 0.648 | " in text
    assert "HOLRR rbf" in text
    assert "task (ii) of the paper" in text
    for picture in re.findall(r"\((images/.*?\.png)\)", text):
        assert (docs / picture).stat().st_size < 200_000
    assert {p.name for p in (docs / "results").iterdir()} == {
        f"{name}.csv" for name in ("synthetic", "images", "runtime", "meteo")
    }


def test_sections_of_skipped_experiments_keep_their_numbers(tmp_path):
    report, docs = tmp_path / "report", tmp_path / "docs"
    reproduce({"runtime": tiny_runtime(sizes=((4, 3, 3),))}, report, progress=silent)
    for folder in ("images", "results"):
        (docs / folder).mkdir(parents=True)
    (docs / "reproduce.md").write_text(block("images") + block("runtime"))
    refresh(report, docs)
    text = (docs / "reproduce.md").read_text()
    assert text.startswith(block("images"))
    assert text.count("former numbers") == 1
    assert "### Table 1" in text
    (docs / "reproduce.md").write_text("no markers")
    with pytest.raises(ValueError, match="<!-- runtime -->"):
        refresh(report, docs)
