"""The case study of the documentation: its code on the weather data, and its table."""

from __future__ import annotations

import csv
import doctest
import re
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "case_study.md"


@pytest.mark.slow
def test_the_code_of_the_case_study_prints_what_it_says(meteo_dir, monkeypatch, tmp_path):
    pytest.importorskip("xarray", reason="xarray is not installed")
    (tmp_path / "met_office").symlink_to(meteo_dir, target_is_directory=True)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    blocks = re.findall(r"```pycon\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, PAGE.name, str(PAGE), 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test)
    assert (result.failed, result.attempted > 20) == (0, True)


def test_the_table_of_the_case_study_has_the_stored_results():
    text = PAGE.read_text(encoding="utf-8")
    with (ROOT / "docs" / "results" / "case_study.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 6
    for row in rows:
        line = re.search(rf"^\| {re.escape(row['method'])} \| (.*) \|$", text, re.M)[1]
        cells = [cell.strip() for cell in line.split("|")]
        skill, gain = (
            f"{100 * float(row[key]):.1f} %".replace("-", "−") for key in ("skill", "gain")
        )
        assert cells[:2] == [row["rmse"], skill]
        assert not cells[2] or cells[2].startswith(gain)
