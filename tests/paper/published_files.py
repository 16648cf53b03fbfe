"""Simulated files in the format of the published series, and a table of stored errors."""

import numpy as np
import pytest

CELLS = """\
data,lags,method,rank,ranks_of_modes,test_mse,n_runs,penalty,train_share
CCDS,3,holrr,2,2x2x2,0.9,1,gamma=100,0.8
CCDS,3,proposed,2,2x2x2,0.85,1,lambda=100,0.8
CCDS,3,stpg,2,2x2x2,0.88,1,eta=1e-07,0.8
CCDS,3,stpg,3,3x3x3,0.87,1,eta=1e-07,0.8
meteo,3,holrr,2,2x2x2,0.7,1,gamma=10,0.8
"""


def simulate(n_steps, n_variables, n_places, seed=0):
    """Series that continue themselves, (steps, variables, places)."""
    rng = np.random.default_rng(seed)
    series = rng.normal(size=(n_steps, n_variables, n_places))
    decay = np.linspace(0.4, 0.9, n_variables * n_places).reshape(n_variables, n_places)
    for t in range(1, n_steps):
        series[t] += decay * series[t - 1]
    return series


def write_x(path, series):
    """As Kasai et al.: X of places by steps by variables."""
    io = pytest.importorskip("scipy.io")
    io.savemat(path, {"X": series.transpose(2, 0, 1)})


def write_series(path, series):
    """As Bahadori, Yu and Liu: an array of places by steps for each variable."""
    io = pytest.importorskip("scipy.io")
    cells = np.empty((series.shape[1], 1), dtype=object)
    for variable in range(series.shape[1]):
        cells[variable, 0] = series[:, variable].T
    io.savemat(path, {"series": cells})


def write_all(folder):
    """Files of CCDS for both tables, of meteo and of USHCN, and stored errors."""
    series = simulate(156, 3, 4)
    write_x(folder / "CCDS_tensor_2.mat", series)
    write_series(folder / "climateP17.mat", series)
    write_x(folder / "meteo_tensor_StationTimeVariables.mat", simulate(100, 2, 5, seed=1))
    write_series(folder / "climateP3.mat", simulate(960, 2, 3, seed=2))
    (folder / "kasai2021_forecast_mse.csv").write_text(CELLS)
    return folder
