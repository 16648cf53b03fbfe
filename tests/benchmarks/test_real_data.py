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

GUIDE = ROOT / "docs" / "developer_benchmarks.md"
RESULTS = ROOT / "docs" / "results" / "real_data.csv"


@pytest.fixture(autouse=True)
def stations():
    tasks.set_meteo_folder(real_data.METEO if real_data.METEO.is_dir() else None)
    yield
    tasks.set_meteo_folder(None)


@pytest.fixture(scope="module")
def quick_rows():
    """The rows of a small and of a larger task, by name."""
    of_task = {"n_folds": 3, "quick": True, "stack": True, "jobs": 1}
    return {name: real_data.one_task(name, **of_task) for name in ("exercise", "EEG")}


@pytest.mark.parametrize("name", tasks.TASKS)
def test_a_task_has_finite_inputs_and_a_grid_of_outputs(name):
    task = tasks.TASKS[name]
    if not tasks.available(task):
        pytest.skip(f"the data of {task.package} are not on this machine")
    X, Y = task.load()
    assert X.ndim == 2
    assert Y.ndim in (2, 3, 4)
    assert len(X) == len(Y) >= 20
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


@pytest.mark.parametrize("rows", ["blocks", "shuffled"])
@pytest.mark.parametrize("n", [20, 47, 59])
def test_repetitions_test_every_row_once_in_other_folds(rows, n):
    task = tasks.Task(tasks.digits, "sklearn", "", rows, overlap=2 if rows == "blocks" else 0)
    seen = []
    for repetition in range(real_data.REPETITIONS):
        folds = list(real_data.outer_folds(task, n, 5, repetition))
        np.testing.assert_array_equal(np.sort(np.concatenate([t for _, t in folds])), range(n))
        for train, test in folds:
            assert np.abs(train[:, None] - test).min() > task.overlap
            assert (np.diff(train) > 0).all()  # inner folds are stretches of time, too
        seen += [tuple(test) for _, test in folds]
    assert len(set(seen)) == len(seen) == 15


def test_repetitions_shift_the_blocks_cyclically_by_a_third_of_a_block():
    task = tasks.Task(tasks.digits, "sklearn", "", "blocks")
    starts = [next(real_data.outer_folds(task, 45, 5, k))[1][0] for k in range(3)]
    assert starts == [0, 3, 6]
    *_, (train, test) = real_data.outer_folds(task, 45, 5, 1)
    np.testing.assert_array_equal(test, [0, 1, 2, 39, 40, 41, 42, 43, 44])
    np.testing.assert_array_equal(train, np.arange(3, 39))


def test_repetitions_do_not_shrink_the_standard_error():
    rng = np.random.default_rng(0)
    rmse, peer = rng.uniform(1, 2, size=(2, 3, 5))
    percent, error = real_data.difference(rmse, peer)
    single = np.array([real_data.difference(a, b) for a, b in zip(rmse, peer, strict=True)])
    assert percent == pytest.approx(single[:, 0].mean())
    assert error**2 == pytest.approx((single[:, 1] ** 2).mean())
    of_one = 100 * (rmse[0] / peer[0] - 1)
    assert single[0, 1] == pytest.approx(np.std(of_one, ddof=1) / np.sqrt(5))
    same = real_data.difference(np.tile(rmse[:1], (3, 1)), np.tile(peer[:1], (3, 1)))
    assert same == pytest.approx(single[0])


def test_the_smallest_tasks_are_repeated(quick_rows):
    for name, repetitions in {"exercise": 3, "EEG": 1}.items():
        assert {row["method"] for row in quick_rows[name]} == {"mean", *real_data.AGAINST}
        for row in quick_rows[name]:
            assert real_data.fold_errors(row).shape == (repetitions, 3)
            assert row["rmse"] == pytest.approx(real_data.fold_errors(row).mean(), rel=1e-5)


def test_five_tasks_or_more_have_fewer_than_60_samples():
    assert len(tasks.TASKS) >= 24
    if not all(map(tasks.available, tasks.TASKS.values())):
        pytest.skip("the data of some task are not on this machine")
    small = ("exercise", "calibration", "Africa", "money", "years", "winters", "heights")
    for name in small:
        assert len(tasks.TASKS[name].load()[0]) < real_data.SMALL


def made_up(errors):
    """Rows of tasks with two folds: the errors of the mean, ridge and the other methods."""
    return [
        {
            "task": task,
            "samples": 10,
            "inputs": 2,
            "outputs": "3",
            "method": method,
            "percent": 1.0,
            "error": 1.0,
            "least": 0,
            "largest": 0,
            "fold_rmse": " ".join(f"{e * f}" for f in (1, 3)),
        }
        for task, methods in errors.items()
        for method, e in methods.items()
    ]


def of_three(ridge, best, stack):
    return {"mean": 9, "ridge": ridge, "scikit-learn": ridge, "best rank": best, "stack": stack}


def test_verdicts_have_geometric_means_of_ratios():
    rows = made_up({"a": of_three(4, 2, 1), "b": of_three(1, 2, 4), "c": of_three(8, 8, 1)})
    found = real_data.verdicts(rows)
    for pair, ratio in {
        "best rank against ridge": 1,
        "stack against ridge": 1 / 2,
        "stack against best rank": 1 / 2,
    }.items():
        line = next(v for v in found.splitlines() if pair in v)
        assert line.endswith(f"geometric mean of the error ratios {ratio:.4f}.")
        assert "3 tasks" in line
    assert "before" not in found


def test_stacks_are_compared_with_those_of_an_older_run_on_the_same_folds():
    now = made_up({"a": of_three(4, 2, 1), "b": of_three(1, 2, 4), "c": of_three(1, 1, 1)})
    then = made_up({"a": of_three(4, 2, 4), "b": of_three(1, 2, 4), "c": of_three(1, 1, 1)})
    then[-5]["fold_rmse"] = "9 9"  # other folds
    same = real_data.with_same_folds(now, then)
    assert {row["task"] for row in same} == {"a", "b"}
    verdict = next(v for v in real_data.verdicts(now, same).splitlines() if "before" in v)
    assert "stack against stack before, 2 tasks: lower error on 1 (" in verdict
    assert "higher on 0 (" in verdict
    assert verdict.endswith("ratios 0.5000.")
    head, _, *lines = real_data.table(now, same).splitlines()
    assert "| stack | stack before |" in head
    assert [line.count("±") for line in lines] == [3, 3, 2]


def test_a_run_is_saved_and_compared(tmp_path, capsys, monkeypatch, quick_rows):
    monkeypatch.setattr(real_data, "one_task", lambda name, *_: quick_rows[name])
    saved = tmp_path / "saved.csv"
    quick = ["--quick", "--jobs", "1", "--tasks"]
    real_data.main([*quick, "exercise", "--save", str(saved)])
    found = real_data.read_csv(saved)
    assert [row["fold_rmse"] for row in found] == [r["fold_rmse"] for r in quick_rows["exercise"]]
    assert "before" not in capsys.readouterr().out
    real_data.main([*quick, "exercise", "EEG", "--compare", str(saved)])
    found = capsys.readouterr().out
    assert "with the same data and folds: EEG" in found
    assert "- stack against stack before, 1 tasks: lower error on 0 (" in found
    with pytest.raises(SystemExit):
        real_data.main([*quick, "exercise", "--compare", str(tmp_path / "no.csv")])
    assert "does not exist" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        real_data.main([*quick, "exercise", "--save", str(tmp_path / "no" / "a.csv")])
    assert "does not exist" in capsys.readouterr().err


def test_years_before_a_block_are_all_that_a_forecaster_has():
    splits = list(climatology.splits(492, past_only=True))
    assert len(splits) == 4
    for train, test in splits:
        assert np.flatnonzero(train).max() + 1 == np.flatnonzero(test).min()
        assert train.sum() % 12 == test.sum() % 12 == 0
    covered = sum(test.astype(int) for _, test in climatology.splits(492, past_only=False))
    np.testing.assert_array_equal(covered, 1)


def test_ridge_is_that_of_scikit_learn_with_the_same_grid(quick_rows):
    found = {row["method"]: row for row in quick_rows["EEG"]}
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
