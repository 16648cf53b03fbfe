"""The real data load where their packages are; folds, standard errors and verdicts are as told."""

import os
from pathlib import Path

import numpy as np
import pytest

import real_data
import real_data_tasks as tasks
import structured


@pytest.fixture(autouse=True)
def stations(monkeypatch):
    """The station files of the Met Office, if they are beside the checkout."""
    folder = Path(__file__).resolve().parents[3] / "shared" / "meteo"
    if "HOLRR_METEO_DIR" not in os.environ and folder.is_dir():
        monkeypatch.setenv("HOLRR_METEO_DIR", str(folder))


@pytest.mark.parametrize("name", tasks.TASKS)
def test_a_task_has_finite_inputs_and_a_grid_of_outputs(name):
    if not tasks.available(name):
        pytest.skip(f"the data of {tasks.TASKS[name].package} are not on this machine")
    X, Y = tasks.TASKS[name].load()
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


def test_the_smallest_tasks_are_repeated_and_the_check_agrees():
    for name, repetitions in {"exercise": 3, "EEG": 1}.items():
        if not tasks.available(name):
            pytest.skip(f"the data of {tasks.TASKS[name].package} are not on this machine")
        errors = real_data.one_task(name, quick=True, jobs=1)
        assert set(errors) == {"mean", *real_data.AGAINST}
        assert {values.shape for values in errors.values()} == {(repetitions, 3)}
        np.testing.assert_allclose(errors["scikit-learn"], errors["ridge"], rtol=1e-6)


def test_there_are_28_tasks_and_seven_small_ones():
    assert len(tasks.TASKS) == 28
    for name in ("exercise", "calibration", "Africa", "money", "years", "winters", "heights"):
        if tasks.available(name):
            assert len(tasks.TASKS[name].load()[0]) < real_data.SMALL


def of_three(ridge, best, stack):
    errors = {"mean": 9, "ridge": ridge, "scikit-learn": ridge, "best rank": best, "stack": stack}
    return {name: np.array([[1.0, 3.0]]) * value for name, value in errors.items()}


def test_verdicts_have_geometric_means_of_ratios():
    errors = {"a": of_three(4, 2, 1), "b": of_three(1, 2, 4), "c": of_three(8, 8, 1)}
    found = {row[0]: row[1:] for row in real_data.verdicts(errors)}
    assert found["best rank against ridge"] == [3, 1, 1, 1, 1, "+0.00 %", "1.0000"]
    assert found["stack against ridge"][-1] == "0.5000"
    assert found["stack against best rank"][-1] == "0.5000"
    assert "kernel stack against kernel ridge" not in found


def test_errors_are_written_by_task_method_and_fold(tmp_path):
    real_data.write_csv(str(tmp_path / "e.csv"), {"a": {"ridge": np.array([[0.1, 1 / 3]])}})
    head, *rows = (tmp_path / "e.csv").read_text().splitlines()
    assert head == "task,method,repetition,fold,rmse"
    assert rows == ["a,ridge,0,0,0.1", f"a,ridge,0,1,{1 / 3}"]


# ---------------------------------------------------------------- layouts of the real data


@pytest.mark.parametrize("name", tasks.LAYOUTS)
def test_a_layout_fits_its_task(name):
    task, layout = tasks.TASKS[name], tasks.LAYOUTS[name]
    sizes = {mode: n for modes in layout.inputs.values() for mode, n in modes.items()}
    assert layout.blocks is None or layout.blocks in sizes
    assert layout.blocks or layout.own
    assert set(layout.own) == set(sizes) & set(layout.outputs)
    if not tasks.available(name):
        pytest.skip(f"the data of {task.package} are not on this machine")
    X, Y = task.load()
    assert X.shape[1] == sum(int(np.prod(list(m.values()))) for m in layout.inputs.values())
    assert len(layout.outputs) == Y.ndim - 1
    of_outputs = dict(zip(layout.outputs, Y.shape[1:], strict=True))
    assert all(sizes[mode] == of_outputs[mode] for mode in layout.own)


def test_flat_inputs_become_arrays_with_modes():
    pytest.importorskip("xarray", reason="xarray is not installed")
    X = np.arange(3 * 164.0).reshape(3, 164)
    found = structured.labelled(X, tasks.LAYOUTS["British weather"])
    assert found["past"].dims == ("sample", "lag", "station", "variable")
    assert found["past"].values[1, 1, 2, 3] == X[1, 80 + 2 * 5 + 3]
    np.testing.assert_array_equal(found["calendar"], X[:, 160:])
