import socket
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from holrr.datasets import fetch_met_office

ADDRESS = "https://www.metoffice.gov.uk/pub/data/weather/uk/climate/stationdata/"

COMPLETE = [
    "aberporth",
    "armagh",
    "eastbourne",
    "eskdalemuir",
    "heathrow",
    "lerwick",
    "leuchars",
    "oxford",
    "paisley",
    "rossonwye",
    "shawbury",
    "sheffield",
    "stornoway",
    "tiree",
    "valley",
    "waddington",
]


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


def redirected(monkeypatch, port):
    """Let requests to the Met Office go to a port of this machine."""
    requests = pytest.importorskip("requests", reason="requests, which pooch uses, is missing")
    get = requests.get

    def get_here(url, **options):
        assert url.startswith(ADDRESS)
        return get(f"http://127.0.0.1:{port}/{url.removeprefix(ADDRESS)}", **options)

    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(requests, "get", get_here)


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A folder whose files a server on this machine offers in place of the Met Office."""
    folder = tmp_path / "served"
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    redirected(monkeypatch, server.server_port)
    yield folder
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def offline(monkeypatch):
    """An address where nothing answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    redirected(monkeypatch, port)


@pytest.fixture
def stations():
    """The names of all stations, which the error about a wrong one lists."""
    with pytest.raises(ValueError, match="Valid names are") as caught:
        fetch_met_office(stations=["qqq"])
    return str(caught.value).split("Valid names are ")[1].rstrip(".").split(", ")


@pytest.fixture
def folder(tmp_path, station_text):
    """Two stations on disk, the second of them with a gap."""
    (tmp_path / "oxforddata.txt").write_text(station_text("Oxford", 1.0, n_months=24))
    text = station_text("Durham", 2.0, n_months=24).replace(
        "   1961   3     2.0", "   1961   3   ---"
    )
    (tmp_path / "durhamdata.txt").write_text(text)
    return tmp_path


def load(folder, **kwargs):
    options = {"start": "1960-01", "end": "1961-12", "stations": ["oxford", "durham"]}
    return fetch_met_office(folder, download_if_missing=False, **(options | kwargs))


def test_contents_of_the_bunch(folder):
    dataset = load(folder)
    assert dataset.data.shape == (24, 2, 5)
    assert dataset.station_names == ["oxford", "durham"]
    assert dataset.station_titles == ["Oxford", "Durham"]
    assert dataset.variable_names == ["tmax", "tmin", "af", "rain", "sun"]
    assert_array_equal(dataset.months, np.arange("1960-01", "1962-01", dtype="datetime64[M]"))
    assert_allclose(dataset.coordinates, 2 * [[51.761, -1.262, 63.0]])
    assert "Open Government Licence" in dataset.DESCR
    assert_array_equal(np.argwhere(np.isnan(dataset.data)), [[14, 1, 0]])


def test_stations_come_in_the_order_asked_for(folder):
    dataset = load(folder, stations=["Durham", "OXFORD"], end="1960-12")
    assert dataset.station_names == ["durham", "oxford"]
    assert_array_equal(dataset.data[0, :, 0], [2.0, 1.0])


def test_both_ends_of_the_period_are_included(folder):
    dataset = load(folder, start="1960-11", end=np.datetime64("1961-02"))
    assert_array_equal(dataset.months.astype(str), ["1960-11", "1960-12", "1961-01", "1961-02"])


def test_months_outside_the_file_are_missing_and_none_means_what_the_files_have(folder):
    assert np.isnan(load(folder, end="1962-06").data[24:]).all()
    assert np.isnan(load(folder, start="1959-07").data[:6]).all()
    assert len(load(folder, start=None, end=None).months) == 24


def test_a_data_home_keeps_the_files_in_a_subfolder(tmp_path, station_text):
    (tmp_path / "met_office").mkdir()
    (tmp_path / "met_office" / "oxforddata.txt").write_text(station_text())
    assert load(tmp_path, stations=["oxford"]).data.shape == (24, 1, 5)


def test_the_default_home_is_that_of_scikit_learn(folder, monkeypatch):
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(folder))
    assert load(None).data.shape == (24, 2, 5)


def test_complete_keeps_the_stations_without_a_gap(folder, station_text, stations):
    for station in stations:
        if station not in ("oxford", "durham"):
            (folder / f"{station}data.txt").write_text(station_text(n_months=23))
    assert load(folder, stations="complete").station_names == ["oxford"]
    assert len(load(folder, stations="complete", end="1960-12").station_names) == 37
    assert load(folder, stations=None).data.shape == (24, 37, 5)
    with pytest.raises(ValueError, match=r"every station has .* 1960-01 to 1962-01"):
        load(folder, stations="complete", end="1962-01")


def test_sixteen_stations_are_complete_in_the_period_of_the_paper(meteo_dir):
    dataset = fetch_met_office(meteo_dir, download_if_missing=False, stations="complete")
    assert dataset.station_names == COMPLETE
    assert dataset.data.shape == (492, 16, 5)
    assert not np.isnan(dataset.data).any()
    # January 1960 in Oxford, read off the file.
    oxford = COMPLETE.index("oxford")
    row = next(
        line.split()
        for line in (meteo_dir / "oxforddata.txt").read_text().splitlines()
        if line.split()[:2] == ["1960", "1"]
    )
    assert_array_equal(dataset.data[0, oxford], [float(field) for field in row[2:]])


def test_missing_files_are_named_with_folder_and_remedy(folder):
    with pytest.raises(FileNotFoundError) as caught:
        load(folder, stations=["oxford", "armagh", "tiree"])
    for part in (str(folder), "armaghdata.txt, tireedata.txt", "download_if_missing", "data_home"):
        assert part in str(caught.value)
    assert "oxforddata.txt" not in str(caught.value)


def test_nothing_is_made_on_disk_when_nothing_may_be_downloaded(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "no" / "such")
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"start": "1962-01"}, r"start must not come after end.*'1962-01'.*'1961-12'"),
        ({"start": "1960"}, r"start must be a month such as '1960-01'; got start='1960'"),
        ({"end": "1960-13"}, r"end must be a month .* end='1960-13'"),
        ({"end": np.datetime64("NaT")}, r"end must be a month"),
        ({"start": 1960}, r"start must be a month .* start=1960"),
        (
            {"stations": ["oxfrod"]},
            r"there is no 'oxfrod'. Did you mean 'oxford'.*Valid names are aber",
        ),
        ({"stations": ["qqq"]}, r"there is no 'qqq'. Valid names are"),
        ({"stations": "oxford"}, r"stations must be a list .* stations='oxford'"),
        ({"stations": []}, r"stations must be a list .* stations=\[\]"),
        ({"start": "1990-01", "end": None}, r"no month lies between.*the first is 1990-01"),
    ],
)
def test_errors_name_the_argument_and_its_value(folder, kwargs, message):
    with pytest.raises(ValueError, match=message):
        load(folder, **kwargs)


def test_download_once_then_from_disk(served, tmp_path, station_text):
    (served / "oxforddata.txt").write_text(station_text(value=3.0))
    options = {"stations": ["oxford"], "end": "1960-12", "n_retries": 0}
    home = tmp_path / "new" / "home"
    assert (fetch_met_office(home, **options).data == 3.0).all()
    assert [path.name for path in (home / "met_office").iterdir()] == ["oxforddata.txt"]
    (served / "oxforddata.txt").unlink()
    assert (fetch_met_office(home, **options).data == 3.0).all()


def test_only_what_is_missing_is_downloaded(served, folder, station_text):
    (served / "tireedata.txt").write_text(station_text(value=3.0))
    dataset = fetch_met_office(folder, stations=["oxford", "tiree"], end="1960-12", n_retries=0)
    assert_array_equal(dataset.data[0, :, 0], [1.0, 3.0])
    assert (folder / "tireedata.txt").is_file()


def test_an_absent_address_is_named_and_leaves_no_file(served, tmp_path):
    with pytest.raises(OSError, match=r"could not download http.*/oxforddata\.txt: 404.*by hand"):
        fetch_met_office(tmp_path / "home", stations=["oxford"], n_retries=0)
    assert not list((tmp_path / "home" / "met_office").iterdir())


def test_a_download_without_network_raises_a_clear_error(offline, tmp_path):
    with pytest.raises(OSError, match=r"could not download .*Check the network connection"):
        fetch_met_office(tmp_path, stations=["oxford"], n_retries=0)


def test_a_login_page_is_not_kept_as_data(served, tmp_path):
    (served / "oxforddata.txt").write_text("<html>Please log in</html>")
    with pytest.raises(OSError, match=r"no station file of 'oxford': .*not a Met Office station"):
        fetch_met_office(tmp_path, stations=["oxford"], n_retries=0)
    assert not (tmp_path / "met_office" / "oxforddata.txt").exists()


def test_a_failed_download_is_tried_again(served, tmp_path, station_text, monkeypatch):
    pauses = []

    def file_appears(seconds):
        pauses.append(seconds)
        (served / "oxforddata.txt").write_text(station_text())

    monkeypatch.setattr("pooch.core.time.sleep", file_appears)
    fetch_met_office(tmp_path, stations=["oxford"], end="1960-12", n_retries=1)
    assert (tmp_path / "met_office" / "oxforddata.txt").read_text() == station_text()
    assert len(pauses) == 1


def test_without_pooch_the_error_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r'pip install "holrr\[data\]"'):
        fetch_met_office(tmp_path, stations=["oxford"])


def test_there_are_37_stations_in_order(stations):
    assert len(set(stations)) == len(stations) == 37
    assert stations == sorted(stations)
