"""Observed against predicted outputs: what is drawn, with which names, and what is refused."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError, UndefinedMetricWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from holrr import RLS
from holrr.metrics import r2
from problems import toy

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402

from holrr.plotting import PredictionDisplay  # noqa: E402

X, Y = toy(n=40, shape=(3, 4), noise=3.0)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def points(ax):
    """Predicted and observed values of a panel."""
    return np.asarray(ax.collections[0].get_offsets()).T


def test_one_panel_has_all_outputs_that_are_known():
    model = RLS().fit(X, Y)
    y = Y.copy()
    y[3, 1, 2] = np.nan
    for estimator in (model, make_pipeline(StandardScaler(), RLS()).fit(X, Y)):
        (ax,) = PredictionDisplay.from_estimator(estimator, X, y).axes_
        known = ~np.isnan(y)
        assert_allclose(points(ax), [estimator.predict(X)[known], y[known]])
        assert ax.get_title() == f"R2 {r2(y, estimator.predict(X)):.2f}"
    (line,) = ax.lines
    assert line.get_slope() == 1
    assert line.get_xy1()[0] == line.get_xy1()[1]


@pytest.mark.parametrize(("mode", "axis"), [(1, 1), (2, 2), ("month", 2)])
def test_each_entry_of_a_mode_has_a_panel(mode, axis):
    model = RLS().fit(X, Y).name_modes(place=list("abc"), month=None)
    display = PredictionDisplay.from_estimator(model, X, Y, mode=mode)
    name, entries = ("place", "abc") if axis == 1 else ("month", "0123")
    predicted = model.predict(X)
    for k, (ax, entry) in enumerate(zip(display.axes_, entries, strict=True)):
        parts = [np.take(A, k, axis) for A in (predicted, Y)]
        assert_allclose(points(ax), [part.ravel() for part in parts])
        assert ax.get_title() == f"{name} {entry}\nR2 {r2(*parts[::-1]):.2f}"


def test_dimensions_are_matched_by_name():
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    coords = {"place": list("abc"), "month": [1, 4, 7, 10]}
    y = xr.DataArray(Y, coords, dims=("time", *coords))
    model = RLS().fit(X, y)
    expected = PredictionDisplay(y_true=Y, y_pred=RLS().fit(X, Y).predict(X))
    for outputs in (y, y.transpose("month", "time", "place")):
        display = PredictionDisplay.from_estimator(model, X, outputs, mode="month")
        assert [ax.get_title().splitlines()[0] for ax in display.axes_] == [
            f"month {month}" for month in coords["month"]
        ]
        order = [0, *(1 + display.mode_names.index(name) for name in coords)]
        assert_allclose(display.y_true.transpose(order), expected.y_true)
        assert_allclose(display.y_pred.transpose(order), expected.y_pred)


def test_tables_and_scalar_outputs():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    table = pd.DataFrame(Y[:, 0], columns=list("abcd"))
    model = RLS().fit(X, table)
    display = PredictionDisplay.from_predictions(table, model.predict(X), mode=1)
    names = [ax.get_title().splitlines()[0] for ax in display.axes_]
    assert [name[-2:] for name in names] == [" a", " b", " c", " d"]
    assert list(display.coordinates[0]) == list("abcd")
    y = Y[:, 0, 0]
    (ax,) = PredictionDisplay.from_estimator(RLS().fit(X, y), X, y).axes_
    assert_allclose(points(ax)[1], y)


def test_many_points_are_thinned_out_and_the_title_counts_all():
    y = np.random.default_rng(0).normal(size=(2000, 4))
    display = PredictionDisplay(y_true=y, y_pred=0.5 * y).plot()
    predicted, observed = points(display.axes_[0])
    assert observed.size == 3000
    assert_allclose(predicted, 0.5 * observed)
    assert display.axes_[0].get_title() == f"R2 {r2(y, 0.5 * y):.2f}"


def test_figures_are_drawn_in_and_can_be_rendered(tmp_path):
    fig = plt.figure(layout="constrained")
    display = PredictionDisplay(y_true=Y, y_pred=Y + 1).plot(mode=1, fig=fig)
    assert display.figure_ is fig
    fig.savefig(tmp_path / "picture.png")
    with pytest.warns(UndefinedMetricWarning):
        nothing = PredictionDisplay(y_true=Y, y_pred=np.full(Y.shape, np.nan)).plot()
    nothing.figure_.savefig(tmp_path / "nothing.png")
    assert points(nothing.axes_[0]).size == 0


def test_arguments_that_do_not_fit_are_refused():
    display = PredictionDisplay(y_true=Y, y_pred=Y)
    for mode in (0, 3, -1, "month", 1.0, (1, 2)):
        with pytest.raises(ValueError, match=r"from 1 to 2, or one of the output modes \['mode1'"):
            display.plot(mode=mode)
    many = np.zeros((5, 17))
    with pytest.raises(ValueError, match="at most 16 panels can be drawn, but mode 1 has 17"):
        PredictionDisplay(y_true=many, y_pred=many).plot(mode=1)
    with pytest.raises(ValueError, match=r"shape of y_true, \(40, 3, 4\); got \(40, 3\)"):
        PredictionDisplay(y_true=Y, y_pred=Y[:, :, 0])
    with pytest.raises(ValueError, match=r"2 names|1 names and coordinates of sizes \(3, 4\)"):
        PredictionDisplay(y_true=Y, y_pred=Y, mode_names=["a"])
    with pytest.raises(ValueError, match="y_pred does not match y_true"):
        PredictionDisplay.from_predictions(Y, Y[:, :2])
    with pytest.raises(NotFittedError):
        PredictionDisplay.from_estimator(RLS(), X, Y)
