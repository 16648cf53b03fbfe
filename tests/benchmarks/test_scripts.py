"""Every script runs in its quick form and prints tables whose rows are as wide as their heads."""

import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import KFold

import checkouts
import choice
import common
import intervals
import peers
import real_data
import robust
import streams
import structured

ROOT = Path(__file__).resolve().parents[2]


def tables(text):
    """The rows of each Markdown table of a text, as lists of cells, without heads."""
    found = []
    for block in text.split("\n\n"):
        if block.startswith("|"):
            rows = [row.strip().strip("|").split("|") for row in block.strip().splitlines()]
            assert len({len(row) for row in rows}) == 1
            found.append([[cell.strip() for cell in row] for row in rows[2:]])
    return found


@pytest.fixture
def run(capsys):
    def run(script, *words):
        script.main(["--quick", "--jobs", "1", *words])
        return tables(capsys.readouterr().out)

    return run


def test_peers_are_timed_in_turns(run):
    found = run(peers, "--part", *peers.PARTS)
    assert [len(rows) >= 3 for rows in found] == [True] * 4
    for rows in found:
        for _, ours, theirs, ratio in rows:
            assert float(ratio) == pytest.approx(float(ours) / float(theirs), rel=0.02)


def test_libraries_are_compared_on_the_same_folds(run):
    (rows,) = run(peers, "--part", "libraries")
    r2 = {row[0]: float(row[1].split()[0]) for row in rows}
    assert 0.3 < r2["scikit-learn RidgeCV"] < r2["HOLRRCV"] < 0.5


def test_real_data_have_differences_and_verdicts(run):
    rows, verdicts = run(real_data, "--tasks", "exercise")
    assert [row[0] for row in rows] == ["exercise"]
    assert len(verdicts) == len(real_data.AGAINST) + 1


@pytest.mark.parametrize("part", structured.PARTS)
def test_structured_searches_are_compared(run, part):
    needed = {"spectra": "tensorly", "penalties": "himalaya", "encoding": "himalaya"}
    pytest.importorskip(needed.get(part, "xarray"), reason=f"the part {part} needs it")
    first = run(structured, "--part", part)[0]
    values = {row[0]: row[1:] for row in first}
    if part == "spectra":
        # The modes of X tell the analytes from the interferent.
        assert float(values["HOLRRCV, tensor X"][0]) < 0.7 * float(values["ridge, flat X"][0])
    elif part == "penalties":
        equal, drawn, ours, ratio = map(float, first[0][1:5])
        assert ours <= equal
        assert ratio == pytest.approx(ours / drawn, abs=1e-3)
    elif part == "encoding":
        assert float(values["HOLRRCV, blocks"][0]) > float(values["HOLRRCV"][0])
    elif part == "real":
        assert all("±" in cell for cell in values["EEG"][1:])


def test_intervals_cover_about_nine_of_ten(run):
    found = run(intervals)
    assert len(found) == 6  # the last two are of series and of false warnings
    shares = [[float(cell) for cell in row[-4:-2]] for rows in found[:4] for row in rows]
    assert np.abs(np.mean(shares) - 90) < 2


def test_robust_fits_stand_wrong_samples(run):
    wrong, _, peer, *_ = run(robust)
    squared, huber = wrong[1][2].split(", ")
    assert float(squared) > 1.5 > 1.1 > float(huber.split()[0])
    assert float(peer[1][1]) > float(peer[1][2])


@pytest.mark.skipif(sys.platform != "linux", reason="needs the cache and memory figures of Linux")
def test_fits_from_disk_and_with_threads_are_measured(run, tmp_path):
    pytest.importorskip("dask.array", reason="dask is not installed")
    disk, threads = run(streams, "--part", "disk", "threads", "--folder", str(tmp_path))
    assert [row[0] for row in disk] == ["read", "product", "fit"]
    assert all(0.05 < float(row[3]) < 2 for row in disk)
    assert len(threads) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs the memory figures of Linux")
def test_every_step_on_a_cluster_is_counted(run):
    pytest.importorskip("distributed", reason="distributed is not installed")
    pytest.importorskip("zarr", reason="zarr is not installed")
    (rows,) = run(streams, "--part", "cluster")
    assert [int(row[3]) for row in rows] == [2, 1, 1, 2, 1, 0, 1]


def test_fits_on_a_device_agree_with_numpy():
    pytest.importorskip("torch", reason="torch is not installed")
    import gpu

    with pytest.warns(UserWarning, match="The best penalty"):
        found = list(gpu.agreement(quick=True, device="cpu"))
    assert len(found) == len(gpu.ESTIMATORS)
    assert all(float(worst) < 1e-8 for _, worst in found)


# ---------------------------------------------------------------- two checkouts


def test_a_checkout_beside_itself_needs_the_same_memory(capsys):
    words = ["--quick", "--old", str(ROOT), "--threads", "1", "--only", "fit, 100 x 10 ->"]
    checkouts.main(words)
    ((row, mean),) = tables(capsys.readouterr().out)
    assert row[:2] == ["fit, 100 x 10 -> 10 x 10 x 10", "1"]
    assert mean[0] == "geometric mean"
    assert float(row[7]) == pytest.approx(1, abs=0.1)
    assert float(row[5]) > 50


def test_rows_of_the_checkouts_can_be_listed(capsys):
    checkouts.main(["--list", "--dask", "2"])
    names = capsys.readouterr().out.splitlines()
    assert "Dask search, 2 GB, 50 -> 20 x 20 x 10" in names
    assert len(names) == len(set(names)) == 22


def test_a_folder_that_is_no_checkout_is_named(tmp_path, capsys):
    with pytest.raises(SystemExit):
        checkouts.main(["--old", str(tmp_path)])
    assert f"must be checkouts of holrr; got {tmp_path}" in capsys.readouterr().err


def test_outputs_of_the_checkouts_have_the_gaps_that_are_named():
    X, Y = checkouts.data(50, 3, (20, 30))
    assert np.linalg.matrix_rank(X) == 3
    _, land = checkouts.with_land(X, Y.copy())
    never = np.isnan(land).all(axis=0)
    assert never.mean() == pytest.approx(0.3, abs=0.01)
    assert (np.isnan(land) == never).all()
    assert np.isnan(checkouts.with_missing(X, Y)[1]).mean() == pytest.approx(0.2, abs=0.01)


# ---------------------------------------------------------------- peers


def test_searches_of_libraries_have_grids_that_fit_the_data():
    found = peers.library_searches(30, 40, KFold(5))
    components = found["scikit-learn PLSRegression"].param_grid["n_components"]
    assert max(components) < 24  # inner training sets have 24 samples
    if "TensorLy CPRegressor" in found:
        assert max(found["TensorLy CPRegressor"].param_grid["rank"]) == 8


def test_cp_regression_has_an_intercept():
    pytest.importorskip("tensorly", reason="tensorly is not installed")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3)) + 5
    Y = np.einsum("ni,i,j->nj", X, [1.0, 2, 3], [1.0, -1]) + 100
    model = peers.CP(1, 1e-6).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), Y, rtol=1e-3)


def test_medians_are_those_of_calls_in_turns():
    order, clock = [], iter(range(100))
    calls = [lambda: order.append("a"), lambda: order.append("b")]
    assert common.medians(calls, 2, clock=lambda: next(clock)) == [1, 1]
    assert order == ["a", "b"] * 3  # a warm-up and two turns


def test_the_table_of_the_choice(run):
    rows, by_samples = run(choice)
    assert [row[1] for row in rows] == list(choice.SIGNALS)
    assert float(by_samples[0][2].replace("−", "-")) < -5  # low rank
    assert all(0.5 < float(row[2].split()[0]) < 1.2 for row in rows)
