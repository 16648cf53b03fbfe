"""Displays of unusual inputs and of outliers: what they draw, label and stretch."""

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402

from holrr import RLS, RLSCV, KernelRLS  # noqa: E402
from holrr.diagnostics import InputMonitor, diagnose_inputs, find_outliers  # noqa: E402
from holrr.plotting import InputDiagnosticsDisplay, OutlierDisplay  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def inputs(n=200, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 6))


def points(display):
    """Positions of all points that were drawn."""
    drawn = [each for each in display.ax_.collections if type(each).__name__ == "PathCollection"]
    return np.concatenate([np.asarray(each.get_offsets()) for each in drawn])


def texts(display):
    return [each.get_text() for each in display.ax_.texts]


def test_rows_and_limits_are_drawn_where_they_are():
    X, new = inputs(), inputs(40, seed=1)
    model = InputMonitor().fit(X)
    found = diagnose_inputs(model, new, level=0.9)
    display = InputDiagnosticsDisplay.from_estimator(model, new, level=0.9)
    drawn = sorted(map(tuple, points(display)))
    assert np.allclose(drawn, sorted(zip(found.t2, found.dmodx, strict=True)))
    vertical, horizontal = display.ax_.lines
    assert np.allclose(vertical.get_xdata(), found.t2_limit)
    assert np.allclose(horizontal.get_ydata(), found.dmodx_limit)
    shown = [each.get_text() for each in display.ax_.get_legend().get_texts()]
    assert shown == ["90 % limits", f"rows ({found.outside.sum()} of 40 outside)"]


def test_the_farthest_rows_outside_are_labelled():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, new = inputs(), inputs(40, seed=1)
    new[3], new[7] = 8.0, 30.0
    model = InputMonitor().fit(X)
    display = InputDiagnosticsDisplay.from_estimator(model, new, level=0.9999)
    assert texts(display) == ["7", "3"]
    assert display.ax_.get_xscale() == "log"
    days = pd.date_range("2024-01-01", periods=40)
    found = diagnose_inputs(InputMonitor().fit(pd.DataFrame(X)), pd.DataFrame(new, days))
    display = InputDiagnosticsDisplay.from_diagnostics(found, n_labels=1)
    assert texts(display) == ["2024-01-08"]
    assert texts(display.plot(n_labels=0)) == []


def test_axes_are_linear_where_no_row_is_far():
    X = inputs()
    display = InputDiagnosticsDisplay.from_estimator(InputMonitor().fit(X), inputs(50, 1))
    assert (display.ax_.get_xscale(), display.ax_.get_yscale()) == ("linear", "linear")


def test_several_sets_of_rows_share_axes():
    X, new = inputs(), inputs(30, seed=1)
    model = InputMonitor().fit(X)
    first = InputDiagnosticsDisplay.from_estimator(model, X, name="training")
    both = InputDiagnosticsDisplay.from_estimator(model, 40 * new, name="new", ax=first.ax_)
    assert both.figure_ is first.figure_
    assert len(both.ax_.lines) == 2
    low, high = both.ax_.get_xlim()
    drawn = points(both)[:, 0]
    assert (drawn <= high).all()
    assert np.mean(drawn >= low) > 0.99
    shown = [each.get_text() for each in both.ax_.get_legend().get_texts()]
    assert shown[1].startswith("training")
    assert shown[2] == "new (30 of 30 outside)"


def test_inputs_without_components_are_drawn():
    X = np.random.default_rng(0).normal(size=(45, 300))
    display = InputDiagnosticsDisplay.from_estimator(InputMonitor().fit(X), 3 * X)
    display.figure_.canvas.draw()
    assert "0 components" in display.ax_.get_xlabel()


def test_models_without_limits_are_refused():
    X = inputs(30)
    with pytest.raises(TypeError, match="needs an InputMonitor"):
        InputDiagnosticsDisplay.from_estimator(KernelRLS().fit(X, X[:, 0]), X)


def outlying(n=90):
    X = inputs(n)
    Y = X @ np.random.default_rng(5).normal(size=(6, 4)) + inputs(n, 3)[:, :4]
    Y[17] += 30
    return X, Y


def test_residuals_and_limits_of_rows_are_drawn():
    X, Y = outlying()
    model = RLSCV([1.0]).fit(X, Y)
    found = find_outliers(model, level=0.9999)
    display = OutlierDisplay.from_estimator(model, level=0.9999)
    drawn = sorted(map(tuple, points(display)))
    assert np.allclose(drawn, list(enumerate(found.residuals)))
    assert np.allclose(display.ax_.lines[0].get_ydata(), found.limits)
    assert texts(display)[0] == "17"
    assert display.ax_.get_yscale() == "log"
    assert f"{found.outside.sum()} of 90 rows" in display.ax_.get_legend().get_texts()[0].get_text()


def test_legends_are_above_the_axes():
    X, Y = outlying()
    model = RLSCV([1.0]).fit(X, Y)
    inputs = InputDiagnosticsDisplay.from_estimator(InputMonitor().fit(X), X, name="training")
    both = InputDiagnosticsDisplay.from_estimator(
        InputMonitor().fit(X), 3 * X, name="new", ax=inputs.ax_
    )
    for display in (both, OutlierDisplay.from_estimator(model)):
        display.figure_.draw_without_rendering()
        legend, axes = display.ax_.get_legend().get_window_extent(), display.ax_.get_window_extent()
        assert legend.y0 >= axes.y1
        assert legend.y1 <= display.figure_.bbox.y1


def test_a_model_of_one_fit_is_drawn_from_data():
    X, Y = outlying()
    display = OutlierDisplay.from_estimator(RLS(), X, Y, cv=3, level=0.9999, n_labels=1)
    assert texts(display) == ["17"]


def test_rows_without_residuals_are_left_out():
    X, Y = outlying()
    w = np.where(np.arange(90) < 10, 0.0, 1.0)
    found = find_outliers(RLSCV([1.0]).fit(X, Y, w))
    display = OutlierDisplay.from_outliers(found, n_labels=1)
    display.figure_.canvas.draw()
    assert texts(display) == ["17"]


def test_ordinary_rows_have_a_linear_axis_from_zero():
    X, Y = outlying()
    Y[17] -= 30
    display = OutlierDisplay.from_estimator(RLSCV([1.0]).fit(X, Y))
    assert display.ax_.get_yscale() == "linear"
    assert display.ax_.get_ylim()[0] == 0
