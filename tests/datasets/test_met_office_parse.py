import numpy as np
import pytest
from numpy.testing import assert_array_equal

from holrr.datasets._met_office import STATIONS, file_name
from holrr.datasets._met_office_parse import (
    VARIABLE_NAMES,
    align_months,
    parse_station,
    read_station,
)

NAN = np.nan


def parse_rows(station_text, rows):
    return parse_station(station_text(n_months=0, tail=rows), source="xdata.txt")


def test_header_and_months(station_text):
    table = parse_station(station_text("Ross-On-Wye", n_months=14))
    assert table.title == "Ross-On-Wye"
    assert table.coordinates == (51.761, -1.262, 63.0)
    assert_array_equal(table.months, np.arange("1960-01", "1961-03", dtype="datetime64[M]"))
    assert_array_equal(table.values, np.ones((14, 5)))


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
def test_irregular_rows_of_real_files_are_parsed(station_text, line, expected):
    assert_array_equal(parse_rows(station_text, line + "\n").values, [expected])


def test_closing_remark_and_blank_lines_are_no_rows(station_text):
    for remark in ("Site closed", "Site Closed", "  ", ""):
        table = parse_station(station_text(n_months=3, tail=f"{remark}\n\n"))
        assert len(table.months) == 3


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
def test_other_rows_are_refused_with_file_and_line(station_text, line):
    good = "   1959   1    8.4     2.7       4    62.8    10.0\n"
    with pytest.raises(ValueError, match=r"xdata\.txt, line 7: expected a year") as caught:
        parse_rows(station_text, good + line + "\n")
    assert repr(line) in str(caught.value)


@pytest.mark.parametrize("month", [1, 2])
def test_months_must_increase(station_text, month):
    row = "   1960   {}    8.4     2.7       4    62.8    10.0\n"
    with pytest.raises(ValueError, match=rf"line 7: 1960-0{month} does not follow 1960-02"):
        parse_rows(station_text, row.format(2) + row.format(month))


def test_a_gap_between_rows_is_kept_and_aligned_as_missing(station_text):
    row = "   1960   {}    8.4     2.7       4    62.8    10.0\n"
    table = parse_rows(station_text, row.format(2) + row.format(4))
    aligned = align_months(table, np.arange("1960-01", "1960-06", dtype="datetime64[M]"))
    assert_array_equal(aligned[:, 0], [NAN, 8.4, NAN, 8.4, NAN])


def test_the_last_site_gives_the_coordinates(station_text):
    moved = "after 1998 291200E 857300N, Lat 57.593 Lon -3.821, 23 m amsl\nEstimated"
    table = parse_station(station_text().replace("Estimated", moved))
    assert table.coordinates == (57.593, -3.821, 23.0)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("yyyy", "year", r"xdata\.txt, line 17: not a Met Office station file.*'yyyy mm tmax"),
        ("tmax    tmin", "tmin    tmax", r"not a Met Office station file"),
        ("degC    degC", "degF    degF", r"xdata\.txt, line 5: expected the units.*degF degF"),
        ("Lat 51.761", "51.761", r"xdata\.txt, lines 1 to 5: the header has no location"),
    ],
)
def test_a_foreign_header_is_refused(station_text, old, new, message):
    with pytest.raises(ValueError, match=message):
        parse_station(station_text().replace(old, new), source="xdata.txt")


@pytest.mark.parametrize("text", ["", "<html><body>Please log in</body></html>\n"])
def test_text_that_is_not_a_station_file_is_refused(text):
    with pytest.raises(ValueError, match=r"xdata\.txt, line \d+: not a Met Office station file"):
        parse_station(text, source="xdata.txt")


def test_a_header_without_months_is_refused(station_text):
    with pytest.raises(ValueError, match=r"line 5: the file ends before the first month"):
        parse_station(station_text(n_months=0))


def test_errors_from_a_file_name_its_path(tmp_path):
    path = tmp_path / "oxforddata.txt"
    path.write_bytes(b"\xff\x00binary")
    with pytest.raises(ValueError, match=r"oxforddata\.txt, line 1"):
        read_station(path)


def test_every_published_file_is_read_to_its_last_row(meteo_dir):
    for station in STATIONS:
        path = meteo_dir / file_name(station)
        n_rows = sum(line.lstrip()[:4].isdigit() for line in path.read_text().splitlines())
        table = read_station(path)
        assert len(table.months) == n_rows
        assert 49 < table.coordinates[0] < 61
        assert -8 < table.coordinates[1] < 2


def test_plausible_ranges_in_every_published_file(meteo_dir):
    # Columns that slipped by one would break these.
    low, high = [-10, -15, 0, 0, 0], [35, 25, 31, 800, 400]
    assert VARIABLE_NAMES == ("tmax", "tmin", "af", "rain", "sun")
    for station in STATIONS:
        values = read_station(meteo_dir / file_name(station)).values
        assert not np.any(values < low)
        assert not np.any(values > high)
        assert not np.any(values[:, 1] > values[:, 0])
