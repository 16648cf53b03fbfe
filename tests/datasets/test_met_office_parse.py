"""Files of stations as the Met Office publishes them: what is read, and what is refused."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from holrr.datasets import fetch_met_office

NAN = np.nan


@pytest.fixture
def read(tmp_path):
    """Read the text of one file, all its months by default."""

    def of_text(text, start=None, end=None):
        (tmp_path / "oxforddata.txt").write_text(text)
        options = {"stations": ["oxford"], "download_if_missing": False}
        return fetch_met_office(tmp_path, start=start, end=end, **options)

    return of_text


@pytest.fixture
def read_rows(read, station_text):
    return lambda rows: read(station_text(n_months=0, tail=rows))


def test_header_and_months(read, station_text):
    found = read(station_text("Ross-On-Wye", n_months=14))
    assert found.station_titles == ["Ross-On-Wye"]
    assert_array_equal(found.coordinates, [[51.761, -1.262, 63.0]])
    assert_array_equal(found.months, np.arange("1960-01", "1961-03", dtype="datetime64[M]"))
    assert_array_equal(found.data, np.ones((14, 1, 5)))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("   1853   1    8.4     2.7       4    62.8     ---", [8.4, 2.7, 4, 62.8, NAN]),
        ("   2003   2    3.2*   -1.8*     19*   29.3*   40.1#", [3.2, -1.8, 19, 29.3, 40.1]),
        (
            "  2025   9   16.6    10.6       0   158.8   141.0#  Provisional",
            [16.6, 10.6, 0, 158.8, 141],
        ),
        (
            "   2025   9   16.9     9.4       0    87.6    ---    Provisional",
            [16.9, 9.4, 0, 87.6, NAN],
        ),
        ("   2025   9   16.9     9.4       0    87.6  Provisional", [16.9, 9.4, 0, 87.6, NAN]),
        ("   1961   9   18.6    10.0       0    26.9", [18.6, 10, 0, 26.9, NAN]),
        ("   1973   3   ---     ---     ---      4.0", [NAN, NAN, NAN, 4, NAN]),
        ("   1982   1    6.0    -0.4      14    39.7    --- $", [6, -0.4, 14, 39.7, NAN]),
        ("   1998   6   ---     ---     ---     ---     --- ||", [NAN] * 5),
        (
            "   2000   1    8.1     2.9       1    43.5    71.6all data from Whitby",
            [8.1, 2.9, 1, 43.5, 71.6],
        ),
        (
            "   2007   9   18.5    11.2       0    34.1   152.0 Change in 2007",
            [18.5, 11.2, 0, 34.1, 152],
        ),
        ("   1990  12    7.0     2.6       1    10.0    20.0$   \r", [7, 2.6, 1, 10, 20]),
    ],
)
def test_irregular_rows_of_real_files_are_parsed(read_rows, line, expected):
    assert_array_equal(read_rows(line + "\n").data[0], [expected])


def test_closing_remark_and_blank_lines_are_no_rows(read, station_text):
    for remark in ("Site closed", "Site Closed", "  ", ""):
        assert len(read(station_text(n_months=3, tail=f"{remark}\n\n")).months) == 3


@pytest.mark.parametrize(
    "line",
    [
        "   1960   1    8.4     2.7",
        "   1960   1    8.4     2.7       4",
        "   1960   1    8.4     2.7       4    62.8    10.0    11.0",
        "   1960   1    8.4     2.7       4    62.8    10.0.1",
        "   1960   1    8.4     2.7       4    62.8    10.0 -3",
        "   1960   1    8.4     2.7       4    62.8    unknown",
        "   1960   1    8.4     abc       4    62.8    10.0",
        "   1960   1    8.4    2.7x       4    62.8    10.0",
        "   1960  13    8.4     2.7       4    62.8    10.0",
        "   1960   0    8.4     2.7       4    62.8    10.0",
        "     60   1    8.4     2.7       4    62.8    10.0",
        "   1960   1    8,4     2.7       4    62.8    10.0",
        "<html>",
    ],
)
def test_other_rows_are_refused_with_file_and_line(read_rows, line):
    good = "   1959   1    8.4     2.7       4    62.8    10.0\n"
    with pytest.raises(ValueError, match=r"oxforddata\.txt, line 7: expected a year") as caught:
        read_rows(good + line + "\n")
    assert repr(line) in str(caught.value)


@pytest.mark.parametrize("month", [1, 2])
def test_months_must_increase(read_rows, month):
    row = "   1960   {}    8.4     2.7       4    62.8    10.0\n"
    with pytest.raises(ValueError, match=rf"line 7: 1960-0{month} does not follow 1960-02"):
        read_rows(row.format(2) + row.format(month))


def test_a_gap_between_rows_is_kept_and_aligned_as_missing(read, station_text):
    row = "   1960   {}    8.4     2.7       4    62.8    10.0\n"
    text = station_text(n_months=0, tail=row.format(2) + row.format(4))
    assert_array_equal(read(text).data[:, 0, 0], [8.4, NAN, 8.4])
    aligned = read(text, "1960-01", "1960-05").data
    assert_array_equal(aligned[:, 0, 0], [NAN, 8.4, NAN, 8.4, NAN])


def test_the_last_site_gives_the_coordinates(read, station_text):
    moved = "after 1998 291200E 857300N, Lat 57.593 Lon -3.821, 23 m amsl\nEstimated"
    found = read(station_text().replace("Estimated", moved))
    assert_array_equal(found.coordinates, [[57.593, -3.821, 23.0]])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("yyyy", "year", r"oxforddata\.txt, line 17: not a Met Office station file.*'yyyy mm tmax"),
        ("tmax    tmin", "tmin    tmax", r"not a Met Office station file"),
        ("degC    degC", "degF    degF", r"oxforddata\.txt, line 5: expected the units.*degF degF"),
        ("Lat 51.761", "51.761", r"oxforddata\.txt, lines 1 to 5: the header has no location"),
    ],
)
def test_a_foreign_header_is_refused(read, station_text, old, new, message):
    with pytest.raises(ValueError, match=message):
        read(station_text().replace(old, new))


@pytest.mark.parametrize("text", ["", "<html><body>Please log in</body></html>\n"])
def test_text_that_is_not_a_station_file_is_refused(read, text):
    with pytest.raises(
        ValueError, match=r"oxforddata\.txt, line \d+: not a Met Office station file"
    ):
        read(text)


def test_a_header_without_months_is_refused(read, station_text):
    with pytest.raises(ValueError, match=r"line 5: the file ends before the first month"):
        read(station_text(n_months=0))


def test_errors_from_a_file_name_its_path(tmp_path):
    path = tmp_path / "oxforddata.txt"
    path.write_bytes(b"\xff\x00binary")
    with pytest.raises(ValueError, match=r"oxforddata\.txt, line 1"):
        fetch_met_office(tmp_path, stations=["oxford"], download_if_missing=False)


def test_every_published_file_is_read_to_its_last_row(meteo_dir):
    found = fetch_met_office(meteo_dir, download_if_missing=False, start=None, end=None)
    for k, station in enumerate(found.station_names):
        lines = (meteo_dir / f"{station}data.txt").read_text().splitlines()
        rows = [line.split() for line in lines if line.lstrip()[:4].isdigit()]
        months = np.array(
            [f"{int(year):04d}-{int(month):02d}" for year, month, *_ in rows], "M8[M]"
        )
        observed = found.months[~np.isnan(found.data[:, k]).all(axis=1)]
        assert np.isin(observed, months).all()
        assert len(observed) > 0.9 * len(rows)
        fields = [field.strip("*#$") for field in rows[-1][2:4]]  # tmax and tmin
        values = [NAN if field == "---" else float(field) for field in fields]
        assert_array_equal(found.data[found.months == months[-1], k, :2], [values])
    assert ((found.coordinates[:, 0] > 49) & (found.coordinates[:, 0] < 61)).all()
    assert ((found.coordinates[:, 1] > -8) & (found.coordinates[:, 1] < 2)).all()


def test_plausible_ranges_in_every_published_file(meteo_dir):
    """Columns that slipped by one would break these."""
    found = fetch_met_office(meteo_dir, download_if_missing=False, start=None, end=None)
    assert found.variable_names == ["tmax", "tmin", "af", "rain", "sun"]
    with np.errstate(invalid="ignore"):
        assert not (found.data < [-10, -15, 0, 0, 0]).any()
        assert not (found.data > [35, 25, 31, 800, 400]).any()
        assert not (found.data[..., 1] > found.data[..., 0]).any()
