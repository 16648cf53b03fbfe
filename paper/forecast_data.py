"""Series of places and variables with published forecasts, read from the files of their authors.

The files are not part of this project. They are in two repositories on GitHub, which the entries of
`FILES` name.

References
----------
H. Kasai, P. Jawanpuria, B. Mishra (2021). A Riemannian approach to low-rank tensor learning. In:
Tensors for Data Processing, Academic Press.

M. T. Bahadori, R. Yu, Y. Liu (2014). Fast multivariate spatio-temporal analysis via low rank
tensor learning. Advances in Neural Information Processing Systems 27.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from .tables import read_csv

__all__ = [
    "FILES",
    "STORED",
    "Cell",
    "SeriesFile",
    "Windows",
    "check_files",
    "make_windows",
    "read_cells",
    "read_series",
]

KASAI = "bamdevm/Riemannian-preconditioning-for-tensor-regression-and-completion"
KASAI_FOLDER = "tensor regression/datasets/higher_order_regression_datasets"
NIPS = "Eng-RSMY/MultiSourceTemporal"

# Test errors that Kasai et al. stored, one line for each of their files.
STORED = "kasai2021_forecast_mse.csv"
# Results in a checkout, which quote the published errors.
RESULTS = Path(__file__).resolve().parents[1] / "docs" / "results" / "forecasts.csv"


@dataclass(frozen=True)
class SeriesFile:
    """File of series, and its source.

    Parameters
    ----------
    names : tuple of str
        Possible names of the file. Messages use the first.
    key : {"X", "series"}
        Name of the array in the file: X of shape (places, steps, variables), or series, with an
        array of shape (places, steps) for each variable.
    repository : str
        Owner and name of the repository on GitHub.
    folder : str
        Folder of the file in the repository.
    """

    names: tuple[str, ...]
    key: str
    repository: str
    folder: str

    @property
    def source(self) -> str:
        """Description of the place from which the file can be downloaded."""
        return f"{self.names[-1]} of the folder '{self.folder}' of {self.repository} on GitHub"


# File of each data set of a table. The repository misspells the name of the first file; the code of
# its authors spells it correctly.
FILES: dict[tuple[str, str], SeriesFile] = {
    ("kasai", "CCDS"): SeriesFile(
        ("CCDS_tensor_2.mat", "CCDS_tesor_2.mat"), "X", KASAI, KASAI_FOLDER
    ),
    ("kasai", "meteo"): SeriesFile(
        ("meteo_tensor_StationTimeVariables.mat",), "X", KASAI, KASAI_FOLDER
    ),
    ("nips", "CCDS"): SeriesFile(("climateP17.mat",), "series", NIPS, "data"),
    ("nips", "USHCN"): SeriesFile(("climateP3.mat",), "series", NIPS, "data"),
    ("nips", "Foursquare"): SeriesFile(("norm_4sq_small.mat",), "series", NIPS, "data/Foursquare"),
}


def _find(folder: Path, what: SeriesFile) -> Path | None:
    return next((folder / name for name in what.names if (folder / name).is_file()), None)


def check_files(folder: str | None, wanted: Iterable[tuple[str, str]]) -> None:
    """Raise an error that names every missing file and its source.

    Parameters
    ----------
    folder : str or None
        Folder of the files.
    wanted : iterable of tuple
        Keys of `FILES`.

    Raises
    ------
    FileNotFoundError
        If a file is missing.

    Examples
    --------
    >>> check_files(None, [("nips", "USHCN")])
    Traceback (most recent call last):
    ...
    FileNotFoundError: The folder of the published series is not set. Set HOLRR_PUBLISHED_DIR, or
    pass --data-dir, to a folder that has climateP3.mat (climateP3.mat of the folder 'data' of
    Eng-RSMY/MultiSourceTemporal on GitHub).
    """
    absent = [
        FILES[key] for key in wanted if folder is None or _find(Path(folder), FILES[key]) is None
    ]
    if not absent:
        return
    files = "; ".join(f"{what.names[0]} ({what.source})" for what in absent)
    if folder is None:
        raise FileNotFoundError(
            "The folder of the published series is not set. Set HOLRR_PUBLISHED_DIR, or pass "
            f"--data-dir, to a folder that has {files}."
        )
    raise FileNotFoundError(f"The folder {folder} lacks {files}. Download the missing files.")


@lru_cache(maxsize=2)
def read_series(folder: str, table: str, data: str) -> NDArray[np.float64]:
    """Read the series of a data set.

    Parameters
    ----------
    folder : str
        Folder of the files.
    table, data : str
        Key of `FILES`.

    Returns
    -------
    array of shape (steps, variables, places)
        The series.

    Raises
    ------
    FileNotFoundError
        If the file is missing.
    ValueError
        If the file lacks the array, or the array does not have the expected shape.
    """
    from scipy.io import loadmat

    check_files(folder, [(table, data)])
    what = FILES[table, data]
    path = _find(Path(folder), what)
    content = loadmat(path)
    if what.key not in content:
        found = ", ".join(name for name in content if not name.startswith("__")) or "nothing"
        raise ValueError(f"{path} must contain an array '{what.key}'; it contains {found}.")
    array = content[what.key]
    if what.key == "series":
        parts = [np.asarray(part, dtype=float) for part in array.ravel()]
        shapes = sorted({part.shape for part in parts})
        if len(shapes) != 1 or len(shapes[0]) != 2:
            raise ValueError(
                f"{path}: each variable must have an array of places by steps, all of the same "
                f"shape; got the shapes {shapes}."
            )
        array = np.stack(parts, axis=2)
    if array.ndim != 3:
        raise ValueError(
            f"{path}: '{what.key}' must have the shape (places, steps, variables); "
            f"got {array.shape}."
        )
    series = np.ascontiguousarray(array.transpose(1, 2, 0), dtype=float)
    series.flags.writeable = False  # shared by all units of a run
    return series


@dataclass(frozen=True)
class Windows:
    """Windows of past steps and the next step, in order of time.

    Parameters
    ----------
    X : array of shape (n_windows, n_lags, variables, places)
        Past steps, oldest first.
    y : array of shape (n_windows, variables, places)
        Next step.
    n_train : int
        Number of training windows, which are the first ones.
    """

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    n_train: int

    @property
    def n_lags(self) -> int:
        """Number of past steps of a window."""
        return self.X.shape[1]


def make_windows(series: NDArray[np.float64], n_lags: int, n_steps: int) -> Windows:
    """Return the windows of series; windows within the first `n_steps` steps are for training.

    Parameters
    ----------
    series : array of shape (steps, variables, places)
        Series.
    n_lags : int
        Number of past steps of a window.
    n_steps : int
        Number of training steps.

    Raises
    ------
    ValueError
        If there are too few training steps or no test steps.

    Examples
    --------
    >>> windows = make_windows(np.arange(10.0).reshape(10, 1, 1), n_lags=3, n_steps=8)
    >>> windows.X.shape, windows.n_train
    ((7, 3, 1, 1), 5)
    >>> windows.X[windows.n_train].ravel(), windows.y[windows.n_train].ravel()
    (array([5., 6., 7.]), array([8.]))
    """
    if not 2 * n_lags < n_steps < len(series):
        raise ValueError(
            f"The number of training steps must be above {2 * n_lags}, twice the number of lags, "
            f"and below {len(series)}, the number of steps; got {n_steps}."
        )
    past = np.moveaxis(sliding_window_view(series[:-1], n_lags, axis=0), -1, 1)
    return Windows(past.copy(), series[n_lags:], n_steps - n_lags)


# ---------------------------------------------------------------- stored test errors


@dataclass(frozen=True)
class Cell:
    """Test error that Kasai et al. stored, with its settings.

    Parameters
    ----------
    data : str
        Name of the data set.
    lags : int
        Number of lags.
    method : str
        Name of the method in the stored results.
    rank : tuple of int
        Ranks of inputs, variables and places.
    penalty : float
        Penalty, or step size for methods without a penalty.
    mse : float
        Mean squared test error.
    """

    data: str
    lags: int
    method: str
    rank: tuple[int, ...]
    penalty: float
    mse: float


def read_cells(folder: str, data: str, lags: int) -> list[Cell]:
    """Return the stored test errors of a data set and a number of lags.

    They are in the file `STORED` of the folder. Without this file, the function returns the errors
    that the results of the checkout quote: all errors of HOLRR and of the Riemannian method, and
    the least error of each other method.
    """
    path = Path(folder) / STORED
    if path.is_file():
        cells = [_stored_cell(row) for row in read_csv(path)]
    elif RESULTS.is_file():
        quoted = [row for row in read_csv(RESULTS) if row["table"] == "kasai"]
        cells = [_quoted_cell(row) for row in quoted if row["kind"] in ("same", "published")]
    else:
        raise FileNotFoundError(f"Neither {path} nor {RESULTS} exists. Copy one of them.")
    return [cell for cell in cells if (cell.data, cell.lags) == (data, lags)]


def _ranks(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split("x")))


def _stored_cell(row: dict) -> Cell:
    penalty = float(row["penalty"].partition("=")[2])
    ranks = _ranks(row["ranks_of_modes"])
    return Cell(row["data"], row["lags"], row["method"], ranks, penalty, row["test_mse"])


def _quoted_cell(row: dict) -> Cell:
    ranks = _ranks(row["rank"])
    return Cell(row["data"], row["lags"], row["method"], ranks, row["alpha"], row["published"])
