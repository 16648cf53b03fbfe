import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils import Bunch

from holrr.datasets import fetch_met_office, make_forecast_windows

MONTHS = np.arange("1960-01", "1964-01", dtype="datetime64[M]")


@pytest.fixture
def series():
    return np.random.default_rng(0).standard_normal((48, 4, 3))


@pytest.mark.parametrize(("n_past", "n_future"), [(2, 1), (1, 5), (3, 3)])
def test_every_window_is_past_then_future(series, n_past, n_future):
    X, Y, first = make_forecast_windows(series, n_past, n_future, months=MONTHS)
    n_windows = 48 - n_past - n_future + 1
    assert X.shape == (n_windows, n_past * 12)
    assert Y.shape == (n_windows, n_future, 4, 3)
    for i in range(n_windows):
        assert_array_equal(X[i], series[i : i + n_past].ravel())
        assert_array_equal(Y[i], series[i + n_past : i + n_past + n_future])
        assert first[i] == MONTHS[i + n_past]


def test_without_months_the_windows_carry_row_numbers(series):
    first = make_forecast_windows(series, 2, 3)[2]
    assert_array_equal(first, np.arange(2, 46))


def test_months_of_a_bunch_are_used(series):
    bunch = Bunch(data=series, months=MONTHS)
    for a, b in zip(
        make_forecast_windows(bunch, 2, 3, calendar="harmonics"),
        make_forecast_windows(series, 2, 3, calendar="harmonics", months=MONTHS),
        strict=True,
    ):
        assert_array_equal(a, b)


def test_the_longest_window_is_the_whole_series(series):
    X, Y, _ = make_forecast_windows(series, 40, 8)
    assert len(X) == len(Y) == 1


@pytest.mark.parametrize(("n_harmonics", "n_columns"), [(1, 2), (2, 4), (5, 10), (6, 11)])
def test_harmonics_depend_on_the_month_of_the_year_alone(series, n_harmonics, n_columns):
    X, _, first = make_forecast_windows(
        series, 2, 1, calendar="harmonics", n_harmonics=n_harmonics, months=MONTHS
    )
    calendar = X[:, 24:]
    assert calendar.shape == (46, n_columns)
    assert_allclose(calendar[12:], calendar[:-12], atol=1e-14)
    assert np.linalg.matrix_rank(calendar) == n_columns
    january = first.astype(str).tolist().index("1961-01")
    n_sines = min(n_harmonics, 5)
    assert_array_equal(calendar[january], [0.0] * n_sines + [1.0] * n_harmonics)
    april = january + 3
    assert_allclose(calendar[april, 0], 1.0)


def test_six_harmonics_and_an_intercept_express_any_monthly_mean(series):
    X, _, first = make_forecast_windows(
        series, 1, 1, calendar="harmonics", n_harmonics=6, months=MONTHS
    )
    means = np.random.default_rng(1).standard_normal(12)[first.astype(int) % 12]
    A = np.column_stack([np.ones(len(X)), X[:, 12:]])
    assert_allclose(A @ np.linalg.lstsq(A, means, rcond=None)[0], means)


def test_windows_with_a_gap_are_left_out_unless_asked_for(series):
    series[10, 2, 1] = np.nan
    X, Y, first = make_forecast_windows(series, 2, 1, months=MONTHS)
    assert len(X) == len(Y) == len(first) == 46 - 3
    assert not np.isnan(X).any()
    assert not np.isnan(Y).any()
    assert not np.isin(MONTHS[[10, 11, 12]], first).any()
    X, Y, _ = make_forecast_windows(series, 2, 1, months=MONTHS, drop_missing=False)
    assert np.isnan(X).sum() == 2
    assert np.isnan(Y).sum() == 1


def test_a_gap_everywhere_leaves_no_window(series):
    series[::2] = np.nan
    X, Y, _ = make_forecast_windows(series, 2, 1)
    assert X.shape == (0, 24)
    assert Y.shape == (0, 1, 4, 3)


@pytest.mark.parametrize("drop_missing", [True, False])
def test_the_windows_do_not_alias_the_series(series, drop_missing):
    before = series.copy()
    X, Y, _ = make_forecast_windows(series, 2, 3, drop_missing=drop_missing)
    Y[0] = 99.0
    X[0] = 99.0
    assert_array_equal(series, before)
    assert not (Y[1:] == 99.0).any()


@pytest.mark.parametrize("n_future", [1, 3, 5])
def test_shapes_of_the_experiment_of_the_paper(meteo_dir, n_future):
    dataset = fetch_met_office(meteo_dir, download_if_missing=False, stations="complete")
    X, Y, first = make_forecast_windows(dataset, n_past=2, n_future=n_future)
    assert X.shape == (491 - n_future, 160)
    assert Y.shape == (491 - n_future, n_future, 16, 5)
    assert str(first[0]) == "1960-03"


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"n_past": 0}, r"n_past must be .* n_past=0"),
        ({"n_future": 1.5}, r"n_future must be .* n_future=1.5"),
        ({"n_past": 40, "n_future": 9}, r"the 48 months .* n_past=40 and n_future=9"),
        ({"calendar": "moon", "months": MONTHS}, r"calendar must be .* calendar='moon'"),
        ({"calendar": "harmonics"}, r"calendar='harmonics' needs the months"),
        (
            {"calendar": "harmonics", "months": MONTHS, "n_harmonics": 7},
            r"n_harmonics must be an int from 1 to 6.*=7",
        ),
        ({"months": MONTHS[:-1]}, r"one entry for each of the 48 rows .* \(47,\)"),
        ({"months": MONTHS[::-1]}, r"months must increase by one month"),
    ],
)
def test_errors_name_the_argument_and_its_value(series, kwargs, message):
    with pytest.raises(ValueError, match=message):
        make_forecast_windows(series, **kwargs)
