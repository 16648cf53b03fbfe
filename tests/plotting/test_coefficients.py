"""Coefficients with bands, and the calibration of intervals: what is drawn, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402

from holrr import HOLRR, HOLRRCV, RLS, KernelRLS, standard_errors  # noqa: E402
from holrr.inference import Estimate  # noqa: E402
from holrr.plotting import CoefficientDisplay, IntervalCalibrationDisplay  # noqa: E402
from problems import toy  # noqa: E402


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def errors():
    return standard_errors(HOLRR(rank=2), *toy(noise=4.0))


def line(ax, label):
    return next(drawn for drawn in ax.lines if drawn.get_label() == label)


def test_a_curve_is_a_section_with_its_band_and_marks(errors):
    display = CoefficientDisplay(errors).plot(select={0: 3, "mode1": 1}, coverage=0.8, q=1e-4)
    ax, at = display.ax_, (3, 1)
    assert_allclose(ax.lines[1].get_ydata(), errors.coef.value[at])
    low, high = (end[at] for end in errors.coef.interval(0.8))
    band = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert (band.min(), band.max()) == (pytest.approx(low.min()), pytest.approx(high.max()))
    marked = errors.coef.significant(1e-4)[at]
    assert 0 < marked.sum() < errors.coef.significant()[at].sum()
    assert_allclose(line(ax, "differs from zero").get_xdata(), np.flatnonzero(marked))
    assert_allclose(line(ax, "may be zero").get_xdata(), np.flatnonzero(~marked))
    assert ax.get_title() == "feature 3, mode1 1"
    assert ax.get_xlabel() == "mode2"


def test_a_map_of_two_modes_marks_what_is_significant():
    value = np.array([[3.0, 0.1, 0.0], [2.0, -0.1, -5.0]])
    marked = np.array([[True, False, False], [True, False, True]])
    estimate = Estimate(value, np.full((2, 3), 0.3), np.zeros((2, 3)), df=50)
    assert np.array_equal(estimate.significant(), marked)
    X = pytest.importorskip("pandas").DataFrame({"a": [1.0, 2.0, 0.0], "b": [3.0, 4.0, 1.0]})
    errors = standard_errors(RLS(), X, np.eye(3), n_groups=3)
    display = CoefficientDisplay(replace(errors, coef=estimate)).plot()
    ax = display.ax_
    assert_allclose(ax.collections[0].get_array(), value)
    pale = np.ma.getmaskarray(np.ma.masked_invalid(ax.collections[1].get_array()))
    assert np.array_equal(pale, marked)
    assert {t.get_text(): t.get_position() for t in ax.texts} == {
        "+": (0.5, 0.5),
        "\N{MINUS SIGN}": (2.5, 1.5),
    }
    assert [t.get_text() for t in ax.get_yticklabels()] == ["a", "b"]
    assert ax.yaxis_inverted()


def test_labels_of_the_data_are_those_of_the_picture():
    xr = pytest.importorskip("xarray")
    X, Y = toy()
    X = xr.DataArray(X, dims=("day", "index"), coords={"index": list("abcde")})
    months = np.arange("2020-01", "2020-05", dtype="datetime64[M]").astype("datetime64[ns]")
    Y = xr.DataArray(Y, dims=("day", "depth", "month"), coords={"depth": [10.0, 20.0, 40.0]})
    Y = Y.assign_coords(month=months)
    found = standard_errors(HOLRRCV([1.0]).fit(X, Y), X, Y, stability=False)
    display = CoefficientDisplay(found).plot(select={"index": "c", "depth": 20.0})
    assert display.ax_.get_title() == "index c, depth 20.0"
    assert_allclose(display.ax_.lines[1].get_ydata(), found.coef.value[2, 1])
    by_name = CoefficientDisplay(found).plot(select={"depth": 40.0, "month": months[1]})
    assert [t.get_text() for t in by_name.ax_.get_xticklabels()] == list("abcde")
    table = found.to_dataset()
    assert table["coef_std_error"].dims == ("index", "depth", "month")
    assert_allclose(table["coef_std_error"], found.coef.std_error)
    maps = CoefficientDisplay(found).plot(select={"index": "b"})
    assert maps.ax_.get_xlabel() == "month"


def test_north_is_up_and_what_was_never_observed_is_no_colour():
    xr = pytest.importorskip("xarray")
    X, Y = toy()
    Y[:, 0, 1] = np.nan
    Y = xr.DataArray(Y, dims=("day", "lat", "lon"), coords={"lat": [60, 0, -60]})
    found = standard_errors(RLS(missing="ignore"), X, Y, n_groups=5)
    ax = CoefficientDisplay(found).plot(select={0: 1}).ax_
    assert ax.yaxis_inverted()
    assert np.isnan(np.ma.filled(ax.collections[0].get_array(), np.nan)[0, 1])
    assert not np.any(np.isnan(found.coef.std_error[:, 1:]))
    section = CoefficientDisplay(found).plot(select={0: 1, "lon": 2}).ax_
    assert_allclose(section.lines[1].get_xdata(), [-60, 0, 60])
    assert_allclose(section.lines[1].get_ydata(), found.coef.value[1, ::-1, 2])


@pytest.mark.parametrize("shape", [(), (4,), (3, 2), (2, 3, 2)])
def test_outputs_of_any_order_can_be_rendered(shape, tmp_path):
    display = CoefficientDisplay.from_estimator(RLS(), *toy(shape=shape), n_groups=5)
    display.figure_.savefig(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 1000


def test_axes_and_refusals(errors):
    _, ax = plt.subplots()
    display = CoefficientDisplay(errors).plot(select={0: -1, 2: 0}, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert ax.get_title() == "feature 4, mode2 0"
    with pytest.raises(ValueError, match=r"keys of select must be modes.* got 'place'"):
        CoefficientDisplay(errors).plot(select={"place": 1})
    with pytest.raises(ValueError, match="it leaves 3"):
        CoefficientDisplay(errors).plot(select={})
    with pytest.raises(ValueError, match=r"9 for 'mode1'.* number below 3"):
        CoefficientDisplay(errors).plot(select={"mode1": 9})
    with pytest.raises(ValueError, match="no coefficients of the inputs"):
        CoefficientDisplay.from_estimator(KernelRLS(kernel="rbf"), *toy())
    with pytest.raises(TypeError, match=r"errors must be the result .* got KernelRLS"):
        CoefficientDisplay(KernelRLS())
    with pytest.raises(NotFittedError):
        CoefficientDisplay.from_estimator(HOLRRCV(), *toy())


# ---------------------------------------------------------------- calibration


class Uniform:
    """Intervals of uniform noise, of the interface of the estimators."""

    def predict_interval(self, X, coverage=0.9, kind="entry"):
        top = coverage ** (1 / 4) if kind == "simultaneous" else coverage
        zero = np.zeros((len(X), 2, 2))
        return zero, zero + top


@pytest.mark.parametrize("kind", ["entry", "simultaneous"])
def test_correct_intervals_are_near_the_diagonal(kind, tmp_path):
    y = np.random.default_rng(0).uniform(size=(2000, 2, 2))
    display = IntervalCalibrationDisplay.from_estimator(Uniform(), y[:, 0], y, kind=kind)
    assert_allclose(display.observed, display.nominal, atol=0.03)
    assert len(display.ax_.collections) == (1 if kind == "entry" else 0)
    text = [t.get_text() for t in display.ax_.get_legend().get_texts()]
    assert text[1].startswith("Uniform (calibration error 0.0")
    display.figure_.savefig(tmp_path / "picture.png")


@pytest.mark.parametrize("kind", ["entry", "pooled", "simultaneous"])
def test_intervals_of_a_search_are_calibrated(kind):
    X, Y = toy(400, 4, (3, 2), noise=1.0)
    search = HOLRRCV([0.1, 1.0]).fit(X[:100], Y[:100])
    levels = (0.5, 0.7, 0.9)  # over other draws they vary by 0.04 where samples count as a whole
    display = IntervalCalibrationDisplay.from_estimator(
        search, X[100:], Y[100:], coverages=levels, kind=kind
    )
    assert_allclose(display.observed, levels, atol=0.1)


def test_curves_of_several_models_share_axes_and_the_diagonal():
    y = np.random.default_rng(0).uniform(size=(100, 3))
    y[:5, 0] = np.nan
    intervals = {c: (0 * y, 0 * y + c) for c in (0.9, 0.5)}
    a = IntervalCalibrationDisplay.from_predictions(y, intervals, name="one")
    b = IntervalCalibrationDisplay.from_predictions(y, intervals, name="two", ax=a.ax_)
    assert b.ax_ is a.ax_
    assert [drawn.get_label().split(" (")[0] for drawn in a.ax_.lines] == [
        "as promised",
        "one",
        "two",
    ]
    assert_allclose(a.nominal, [0.5, 0.9])
    w = np.r_[1.0, np.zeros(99)]
    c = IntervalCalibrationDisplay.from_predictions(y[:, 1], {0.5: (y[:, 1], y[:, 1])})
    assert c.observed == 1
    d = IntervalCalibrationDisplay.from_predictions(
        y, {0.5: (0 * y[::-1], y[::-1])}, sample_weight=w
    )
    assert d.by_output.shape == (1, 3)
