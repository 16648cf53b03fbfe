"""The benchmark of blocks runs, and its data and its peers are what it says they are."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import PredefinedSplit

from holrr.data.blocks import read_blocks
from holrr.data.validation import Samples
from holrr.model_selection.block_penalties import block_errors
from holrr.model_selection.folds import sample_data

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "benchmarks"))

import blocks  # noqa: E402
import real_data  # noqa: E402
import real_data_tasks as tasks  # noqa: E402

SMALL = {"n_runs": 5, "n_times": 15, "sizes": (5, 9), "shape": (6, 3)}


def tables(text):
    """The rows of each Markdown table of a text, as lists of cells."""
    found = re.findall(r"(?:^\|.*\|\n)+", text, re.M)
    return [[row.strip("| ").split(" | ") for row in block.splitlines()] for block in found]


@pytest.fixture
def himalaya():
    return pytest.importorskip("himalaya", reason="himalaya is not installed")


@pytest.fixture(autouse=True)
def stations():
    tasks.set_meteo_folder(real_data.METEO if real_data.METEO.is_dir() else None)
    yield
    tasks.set_meteo_folder(None)


@pytest.mark.usefixtures("himalaya")
@pytest.mark.filterwarnings("ignore:The best penalty")
def test_every_part_is_measured_and_judged(capsys):
    pytest.importorskip("xarray", reason="xarray is not installed")
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    blocks.main(["--quick"])
    penalties, encoding, white, coverage, times, real = tables(capsys.readouterr().out)

    _, equal, drawn, found, ratio, asked, met, theirs, ours, of_time, at_most, fast = penalties[2]
    assert float(found) <= float(equal)
    assert float(ratio) == pytest.approx(float(found) / float(drawn), abs=1e-3)
    assert met == ("yes" if float(ratio) <= float(asked) else "no")
    assert float(of_time) == pytest.approx(float(ours) / float(theirs), abs=0.05)
    assert fast == ("yes" if float(of_time) <= float(at_most) else "no")

    shares = {row[0]: row[1] for row in encoding[2:]}
    ours, asked = (float(shares[k]) for k in ("HOLRRCV, blocks", encoding[-2][0]))
    assert ours > float(shares["HOLRRCV"])
    assert shares["met"] == ("yes" if ours >= asked else "no")

    ratios = {row[0]: float(row[1]) for row in white[2:]}
    assert ratios["HOLRRCV, blocks"] < ratios["RLSCV, blocks"] < ratios["HOLRRCV"]

    assert [row[0] for row in coverage[2:]] == ["RLSCV", "HOLRRCV", *list(ratios)[1:]]
    for row in coverage[4:]:
        inside = [abs(float(share) - 90) <= 3 for share in row[1:4]]
        assert row[-1] == ("yes" if all(inside) else "no")

    assert float(times[2][3]) == pytest.approx(float(times[2][2]) / float(times[2][1]), rel=0.2)
    assert [row[0] for row in real[2:]] == ["EEG"]
    assert all("±" in cell for cell in real[2][2:-1])


@pytest.mark.filterwarnings("ignore:The best penalty")
def test_parts_of_the_benchmark_can_be_run_separately(capsys):
    blocks.main(["--quick", "--part", "time"])
    assert len(tables(capsys.readouterr().out)) == 1
    with pytest.raises(SystemExit):
        blocks.main(["--part", "time", "--write"])
    assert "--write needs all parts" in capsys.readouterr().err


def test_blocks_have_the_effects_that_are_asked_for():
    rng = np.random.default_rng(0)
    X, signal, y = blocks.simulate(4000, (3, 5, 2), (1, 0.25, 0), (6, 4), 2, 0.5, rng)
    coef = np.linalg.lstsq(X, signal.reshape(len(X), -1))[0]
    parts = [X[:, a:b] @ coef[a:b] for a, b in ((0, 3), (3, 8), (8, 10))]
    assert parts[1].std() / parts[0].std() == pytest.approx(0.25)
    assert parts[2].std() < 1e-10
    assert np.linalg.matrix_rank(coef.reshape(10, 6, 4).transpose(1, 0, 2).reshape(6, -1)) == 2
    assert signal.std() == pytest.approx(1)
    assert (y - signal).std() == pytest.approx(0.5, rel=0.02)


def test_neighbouring_columns_have_the_correlation_that_is_asked_for():
    rng = np.random.default_rng(0)
    X, *_ = blocks.simulate(5000, (4, 3), (1, 1), (2, 2), 1, 1.0, rng, correlation=0.6)
    found = np.corrcoef(X.T)
    assert found[0, 1] == pytest.approx(0.6, abs=0.05)
    assert found[3, 4] == pytest.approx(0.0, abs=0.05)
    np.testing.assert_allclose(X.std(axis=0), 1, atol=0.05)


def test_delays_of_the_encoding_model_stay_within_runs():
    data = blocks.encoding_data(0.5, seed=1, **SMALL)
    assert data.X.shape == (75, 4 * 14)
    assert data.y.shape == (75, 6, 3)
    np.testing.assert_array_equal(data.runs, np.repeat(range(5), 15))
    np.testing.assert_array_equal(data.is_test, data.runs >= 3)
    delayed = data.X[:, :20].reshape(5, 15, 4, 5)  # runs, times, delays, features
    np.testing.assert_array_equal(delayed[:, 1:, 1], delayed[:, :-1, 0])
    np.testing.assert_array_equal(delayed[:, 3:, 3], delayed[:, :-3, 0])
    assert 0.6 < data.ceiling < 0.95  # 0.8, but for chance


def test_the_ceiling_of_r2_is_one_without_noise():
    data = blocks.encoding_data(0.0, seed=0, **SMALL)
    assert data.ceiling == pytest.approx(1)
    assert blocks.pooled_r2(data.y, np.broadcast_to(data.y.mean(axis=0), data.y.shape)) == 0


@pytest.mark.usefixtures("himalaya")
def test_draws_are_judged_by_the_error_that_the_search_minimises():
    rng = np.random.default_rng(3)
    X, _, y = blocks.simulate(60, (4, 6), (1, 0.2), (4, 3), 2, 1.0, rng)
    groups, shares = blocks.labels_of((4, 6)), blocks.draws(6, 2, 0)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_array_equal(shares[0], 0.5)
    splits = list(blocks.FOLDS.split(X))
    error_of = block_errors(
        sample_data(Samples(X, y, None), splits), read_blocks(groups, None, None, 10), None
    )
    errors = [
        error_of(np.log(alpha) - np.log(share))[0] for share in shares for alpha in blocks.ALPHAS
    ]
    found = blocks.error_of_draws(X, y, groups, shares)
    assert found == pytest.approx(min(errors), rel=1e-8)


@pytest.mark.usefixtures("himalaya")
def test_kernels_of_the_blocks_give_the_predictions_of_group_ridge():
    data, shares = blocks.encoding_data(0.5, seed=2, **SMALL), blocks.draws(4, 2, 0)
    test, flat = data.is_test, data.y.reshape(len(data.y), -1)
    model = blocks.himalaya(data.blocks, PredefinedSplit(data.runs[~test]), shares)
    expected = model.fit(data.X[~test], flat[~test]).predict(data.X[test])
    found = blocks.himalaya_in_dual(data, ~test, test, shares)
    np.testing.assert_allclose(found.reshape(expected.shape), expected, atol=1e-7)


@pytest.mark.parametrize("name", tasks.LAYOUTS)
def test_a_layout_fits_its_task(name):
    task, layout = tasks.TASKS[name], tasks.LAYOUTS[name]
    sizes = {mode: n for modes in layout.inputs.values() for mode, n in modes.items()}
    assert layout.blocks is None or layout.blocks in sizes
    assert layout.blocks or layout.own
    assert set(layout.own) == set(sizes) & set(layout.outputs)
    if not tasks.available(task):
        pytest.skip(f"the data of {task.package} are not on this machine")
    X, Y = task.load()
    assert X.shape[1] == sum(int(np.prod(list(m.values()))) for m in layout.inputs.values())
    assert len(layout.outputs) == Y.ndim - 1
    of_outputs = dict(zip(layout.outputs, Y.shape[1:], strict=True))
    assert all(sizes[mode] == of_outputs[mode] for mode in layout.own)


def test_flat_inputs_become_arrays_with_modes():
    pytest.importorskip("xarray", reason="xarray is not installed")
    X = np.arange(3 * 164.0).reshape(3, 164)
    found = blocks.labelled(X, tasks.LAYOUTS["British weather"])
    assert found["past"].dims == ("sample", "lag", "station", "variable")
    assert found["past"].values[1, 1, 2, 3] == X[1, 80 + 2 * 5 + 3]
    np.testing.assert_array_equal(found["calendar"], X[:, 160:])
