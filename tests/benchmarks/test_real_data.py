"""The real data load where their packages are, and the guide shows what the file holds."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "benchmarks"))

import climatology  # noqa: E402
import real_data  # noqa: E402
import real_data_tasks as tasks  # noqa: E402

GUIDE = ROOT / "docs" / "benchmarks.md"
RESULTS = ROOT / "docs" / "results" / "real_data.csv"


@pytest.fixture(autouse=True)
def stations():
    tasks.set_meteo_folder(real_data.METEO if real_data.METEO.is_dir() else None)
    yield
    tasks.set_meteo_folder(None)


@pytest.mark.parametrize("name", tasks.TASKS)
def test_a_task_has_finite_inputs_and_a_grid_of_outputs(name):
    task = tasks.TASKS[name]
    if not tasks.available(task):
        pytest.skip(f"the data of {task.package} are not on this machine")
    X, Y = task.load()
    assert X.ndim == 2
    assert Y.ndim in (2, 3, 4)
    assert len(X) == len(Y) >= 30
    assert X.shape[1] <= 200
    assert np.isfinite(X).all()
    assert np.isfinite(Y).all()
    assert (Y.std(axis=0) > 0).mean() > 0.9  # digits and spectra have dark corners


def test_a_block_and_what_overlaps_it_stay_out_of_the_training_rows():
    task = tasks.Task(tasks.digits, "sklearn", "", "blocks", overlap=3)
    tested = []
    for train, test in real_data.outer_folds(task, 50, 5):
        assert np.abs(train[:, None] - test).min() == 4
        np.testing.assert_array_equal(np.diff(test), 1)
        tested.extend(test)
    np.testing.assert_array_equal(np.sort(tested), np.arange(50))


def test_years_before_a_block_are_all_that_a_forecaster_has():
    splits = list(climatology.splits(492, past_only=True))
    assert len(splits) == 4
    for train, test in splits:
        assert np.flatnonzero(train).max() + 1 == np.flatnonzero(test).min()
        assert train.sum() % 12 == test.sum() % 12 == 0
    covered = sum(test.astype(int) for _, test in climatology.splits(492, past_only=False))
    np.testing.assert_array_equal(covered, 1)


def test_ridge_is_that_of_scikit_learn_with_the_same_grid():
    rows = real_data.one_task("EEG", n_folds=3, quick=True, stack=False, jobs=1)
    found = {row["method"]: row for row in rows}
    assert abs(found["scikit-learn"]["percent"]) < 1e-6
    assert found["ridge"]["rmse"] > 0


def test_the_guide_shows_the_figures_of_the_file():
    rows = real_data.read_csv(RESULTS)
    guide = GUIDE.read_text(encoding="utf-8")
    assert real_data.table(rows) in guide
    assert real_data.verdicts(rows) in guide


def test_the_guide_and_the_file_name_every_task():
    guide = GUIDE.read_text(encoding="utf-8")
    listed = re.findall(r"^\| (.*?) \| (.*?) \| .*? \| (blocks|shuffled) \|$", guide, re.M)
    assert listed == [(name, t.what, t.rows) for name, t in tasks.TASKS.items()]
    assert {row["task"] for row in real_data.read_csv(RESULTS)} == set(tasks.TASKS)


def test_the_picture_is_there_and_small():
    assert (ROOT / "docs" / "images" / "real_data.png").stat().st_size < 150_000


def test_a_section_is_written_between_its_markers(tmp_path):
    guide = tmp_path / "guide.md"
    guide.write_text("a\n<!-- x -->\nold\n<!-- end of x -->\nb\n")
    real_data.write_section("x", "new\n", guide)
    assert guide.read_text() == "a\n<!-- x -->\n\nnew\n\n<!-- end of x -->\nb\n"
    with pytest.raises(ValueError, match="lacks the markers <!-- y -->"):
        real_data.write_section("y", "new\n", guide)
