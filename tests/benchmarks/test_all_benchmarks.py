"""The command that runs all benchmarks."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import all as benchmarks  # noqa: E402

HELPERS = {"all", "busy", "real_data_tasks", "searches"}  # imported by other scripts


def test_every_script_is_a_step():
    scripts = {path.stem for path in (ROOT / "benchmarks").glob("*.py")} - HELPERS
    assert {s.name for s in benchmarks.STEPS if s.script.startswith("benchmarks")} == scripts


@pytest.mark.parametrize("step", benchmarks.STEPS, ids=lambda step: step.name)
def test_steps_name_pages_that_exist(step):
    for page in re.findall(r"\w+\.md", step.pages):
        assert (ROOT / page).exists() or (ROOT / "docs" / page).exists()


@pytest.mark.parametrize("step", benchmarks.STEPS, ids=lambda step: step.name)
def test_scripts_have_the_arguments_of_their_steps(step):
    if step.script.startswith("paper."):
        return
    text = (ROOT / step.script).read_text(encoding="utf-8")
    for word in (*step.arguments, *(step.quick or ())):
        assert not word.startswith("--") or f'"{word}"' in text
    assert step.needs != "meteo" or '"--meteo"' in text


def test_missing_data_are_named(monkeypatch, capsys):
    monkeypatch.delenv("HOLRR_METEO_DIR", raising=False)
    assert benchmarks.main(["--only", "climatology", "--quick"]) == 0
    assert "fetch_met_office" in capsys.readouterr().out


def test_unknown_steps_are_refused(capsys):
    with pytest.raises(SystemExit):
        benchmarks.main(["--only", "nothing"])
    assert "unknown steps nothing" in capsys.readouterr().err


def test_steps_are_listed(capsys):
    benchmarks.main(["--list"])
    assert "kernel" in capsys.readouterr().out
