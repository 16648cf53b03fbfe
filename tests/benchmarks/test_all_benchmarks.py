"""The command that runs all benchmarks."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import all as benchmarks  # noqa: E402

# Modules that other scripts import. The rows of busy, gpu and searches are part of table.
HELPERS = {"all", "busy", "gpu", "pages", "real_data_tasks", "searches"}


def test_every_script_is_a_step():
    scripts = {path.stem for path in (ROOT / "benchmarks").glob("*.py")} - HELPERS
    assert {Path(s.script).stem for s in benchmarks.STEPS if s.is_benchmark} == scripts


def test_steps_have_names_of_their_own():
    names = [step.name for step in benchmarks.STEPS]
    assert len(set(names)) == len(names)
    assert {"table", "table-gpu", "kernel", "forecasts"} <= set(names)


@pytest.mark.parametrize("step", benchmarks.STEPS, ids=lambda step: step.name)
def test_steps_name_pages_that_exist(step):
    for page in re.findall(r"\w+\.md", step.pages):
        assert (ROOT / page).exists() or (ROOT / "docs" / page).exists()


@pytest.mark.parametrize("step", benchmarks.STEPS, ids=lambda step: step.name)
def test_scripts_have_the_arguments_of_their_steps(step):
    if not step.is_benchmark:
        return
    text = (ROOT / step.script).read_text(encoding="utf-8")
    assert "parse_options(parser" in text  # which adds --write
    for word in ("--quick", *step.arguments):
        assert f'"{word}"' in text
    assert step.needs not in ("meteo", "tasks") or '"--meteo"' in text


@pytest.mark.parametrize("step", benchmarks.STEPS, ids=lambda step: step.name)
def test_full_runs_write_and_quick_runs_do_not(step):
    full, quick = (benchmarks.command(step, is_quick, "folder") for is_quick in (False, True))
    assert ("--write" in full) == ("--quick" in quick) == step.is_benchmark
    assert "--write" not in quick
    assert ("--meteo" in full) == (step.needs in ("meteo", "tasks"))


def test_the_gpu_has_the_table_of_its_own():
    (step,) = (step for step in benchmarks.STEPS if step.name == "table-gpu")
    assert benchmarks.command(step, False, None)[1:] == [
        str(ROOT / "benchmarks" / "table.py"),
        "--gpu",
        "--write",
    ]


def test_experiments_of_the_paper_are_known():
    from paper.reproduce import EXPERIMENTS

    names = {step.name for step in benchmarks.STEPS if not step.is_benchmark}
    assert names <= set(EXPERIMENTS)


def test_missing_data_are_named(monkeypatch, capsys):
    monkeypatch.delenv("HOLRR_METEO_DIR", raising=False)
    assert benchmarks.main(["--only", "climatology", "--quick"]) == 0
    assert "fetch_met_office" in capsys.readouterr().out


def test_missing_data_of_tasks_are_named_in_full_runs_only(monkeypatch):
    import real_data_tasks

    (step,) = (step for step in benchmarks.STEPS if step.name == "real_data")
    monkeypatch.setattr(real_data_tasks, "available", lambda task: task.package != "plotly")
    assert "countries" in benchmarks.missing(step, quick=False, meteo=None)
    assert benchmarks.missing(step, quick=True, meteo=None) == ""


def test_unknown_steps_are_refused(capsys):
    with pytest.raises(SystemExit):
        benchmarks.main(["--only", "nothing"])
    assert "unknown steps nothing" in capsys.readouterr().err


def test_steps_are_listed(capsys):
    benchmarks.main(["--list"])
    assert "kernel" in capsys.readouterr().out
