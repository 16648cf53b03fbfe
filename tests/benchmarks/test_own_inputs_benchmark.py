"""The benchmark of own inputs runs on series in files, and the folds choose own inputs there."""

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "benchmarks"))

import own_inputs  # noqa: E402


@pytest.fixture
def folder(tmp_path):
    """A folder with the file of CCDS: series that depend on their own past alone."""
    io = pytest.importorskip("scipy.io")
    rng = np.random.default_rng(0)
    series = rng.normal(size=(80, 6, 3))
    for t in range(1, 80):
        series[t] += np.linspace(0.2, 0.9, 18).reshape(6, 3) * series[t - 1]
    cells = np.empty((3, 1), dtype=object)
    for variable in range(3):
        cells[variable, 0] = series[:, :, variable].T
    io.savemat(tmp_path / "climateP17.mat", {"series": cells})
    return tmp_path, series


@pytest.mark.filterwarnings("ignore:The best penalty")
def test_searches_are_compared_with_what_is_published(folder, capsys):
    own_inputs.main(["--data", str(folder[0]), "--sets", "CCDS", "--quick"])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    rows = [line.strip("| ").split(" | ") for line in lines]
    ours = {row[0]: row for row in rows[2:10]}
    assert float(ours["RLSCV, own inputs"][1]) < 0.97 * float(ours["RLSCV"][1])
    for name, (_, error, asked, met, chosen, _) in ours.items():
        if "own" in name:
            assert "the same place and variable" in chosen
            assert met == ("yes" if float(error) <= float(asked) else "no")
        else:
            assert (asked, met) == ("-", "-")
    assert rows[10][1:] == list(own_inputs.PUBLISHED)
    assert rows[12][4] == "**0.8325**"


def test_a_file_holds_one_array_of_places_by_steps_for_each_variable(folder):
    path, series = folder
    np.testing.assert_array_equal(own_inputs.read(path / "climateP17.mat"), series)


def test_the_past_of_a_step_ends_before_it():
    series = np.arange(10.0)[:, None, None] + np.zeros((10, 4, 2))
    X, y = own_inputs.windows(series, 3)
    assert (X.shape, y.shape) == ((7, 3, 4, 2), (7, 4, 2))
    np.testing.assert_array_equal(X[:, :, 0, 0], np.arange(7)[:, None] + np.arange(3))
    np.testing.assert_array_equal(y[:, 0, 0], np.arange(3, 10))


def test_data_that_are_not_there_are_named_with_their_source(tmp_path, capsys):
    with pytest.raises(SystemExit):
        own_inputs.main(["--data", str(tmp_path), "--sets", "USHCN"])
    message = capsys.readouterr().err
    assert "climateP3.mat" in message
    assert "Eng-RSMY/MultiSourceTemporal" in message
