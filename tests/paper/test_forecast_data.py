"""Published series are read from the files of their authors; what is missing is named."""

import re

import numpy as np
import pytest
from published_files import simulate, write_all, write_series, write_x

from paper import forecast_data
from paper.forecast_data import FILES, check_files, make_windows, read_cells, read_series


@pytest.mark.parametrize(
    ("key", "write"), [(("kasai", "CCDS"), write_x), (("nips", "USHCN"), write_series)]
)
def test_series_have_steps_first_then_variables_and_places(tmp_path, key, write):
    series = simulate(9, 3, 4)
    write(tmp_path / FILES[key].names[0], series)
    np.testing.assert_array_equal(read_series(str(tmp_path), *key), series)


def test_a_file_is_found_by_the_name_that_the_repository_has(tmp_path):
    series = simulate(8, 2, 2)
    write_x(tmp_path / "CCDS_tesor_2.mat", series)
    check_files(str(tmp_path), [("kasai", "CCDS")])
    np.testing.assert_array_equal(read_series(str(tmp_path), "kasai", "CCDS"), series)


def test_missing_files_are_named_with_their_sources(tmp_path):
    write_series(tmp_path / "climateP17.mat", simulate(8, 2, 2))
    with pytest.raises(FileNotFoundError) as error:
        check_files(str(tmp_path), FILES)
    message = str(error.value)
    assert str(tmp_path) in message
    assert "climateP17.mat" not in message
    for what in (f for key, f in FILES.items() if key != ("nips", "CCDS")):
        assert what.names[0] in message
        assert f"'{what.folder}' of {what.repository}" in message


def test_without_a_folder_the_variable_and_the_option_are_named():
    with pytest.raises(FileNotFoundError, match=r"HOLRR_PUBLISHED_DIR, or pass --data-dir"):
        check_files(None, [("kasai", "meteo")])


def test_the_error_about_a_missing_array_lists_the_arrays_of_the_file(tmp_path):
    io = pytest.importorskip("scipy.io")
    io.savemat(tmp_path / "climateP3.mat", {"other": np.ones(3)})
    with pytest.raises(ValueError, match="an array 'series'; it contains other"):
        read_series(str(tmp_path), "nips", "USHCN")


def test_an_array_of_another_form_is_refused_with_its_shape(tmp_path):
    io = pytest.importorskip("scipy.io")
    io.savemat(tmp_path / "CCDS_tensor_2.mat", {"X": np.ones((3, 5))})
    with pytest.raises(ValueError, match=re.escape("got (3, 5)")):
        read_series(str(tmp_path), "kasai", "CCDS")


def test_variables_of_different_lengths_are_refused_with_their_shapes(tmp_path):
    io = pytest.importorskip("scipy.io")
    cells = np.empty((2, 1), dtype=object)
    cells[0, 0], cells[1, 0] = np.ones((3, 8)), np.ones((3, 9))
    io.savemat(tmp_path / "climateP3.mat", {"series": cells})
    with pytest.raises(ValueError, match=re.escape("[(3, 8), (3, 9)]")):
        read_series(str(tmp_path), "nips", "USHCN")


def test_the_past_of_a_step_ends_before_it_and_training_before_the_test_steps():
    series = np.arange(10.0)[:, None, None] + np.zeros((10, 2, 4))
    windows = make_windows(series, 3, 8)
    assert (windows.X.shape, windows.y.shape) == ((7, 3, 2, 4), (7, 2, 4))
    np.testing.assert_array_equal(windows.X[:, :, 0, 0], np.arange(7)[:, None] + np.arange(3))
    np.testing.assert_array_equal(windows.y[:, 0, 0], np.arange(3, 10))
    assert windows.y[: windows.n_train].max() == 7  # the eighth step


@pytest.mark.parametrize("n_steps", [6, 10])
def test_windows_need_training_and_test_steps(n_steps):
    with pytest.raises(ValueError, match=f"got {n_steps}"):
        make_windows(np.zeros((10, 1, 1)), 3, n_steps)


def test_stored_errors_have_their_ranks_and_penalties(tmp_path):
    cells = read_cells(str(write_all(tmp_path)), "CCDS", 3)
    assert [cell.method for cell in cells] == ["holrr", "proposed", "stpg", "stpg"]
    assert (cells[0].rank, cells[0].penalty, cells[0].mse) == ((2, 2, 2), 100.0, 0.9)
    assert cells[2].penalty == 1e-7
    assert read_cells(str(tmp_path), "CCDS", 5) == []


def test_without_the_stored_errors_those_of_the_results_are_taken(tmp_path, monkeypatch):
    results = tmp_path / "forecasts.csv"
    results.write_text(
        "table,data,lags,kind,method,rank,alpha,published,error\n"
        "kasai,CCDS,3,same,holrr,3x3x3,10000,0.868839,0.8688\n"
        "kasai,CCDS,3,chosen,ridge,full,,,0.66\n"
        "nips,CCDS,3,published,Tucker,,,0.9438,\n"
    )
    monkeypatch.setattr(forecast_data, "RESULTS", results)
    (cell,) = read_cells(str(tmp_path), "CCDS", 3)
    assert (cell.rank, cell.penalty, cell.mse) == ((3, 3, 3), 10000, 0.868839)
    results.unlink()
    with pytest.raises(FileNotFoundError, match=r"kasai2021_forecast_mse\.csv"):
        read_cells(str(tmp_path), "CCDS", 3)
