"""The display of VIP and selectivity ratio."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from holrr import RLS
from holrr.diagnostics import selectivity_ratio, vip
from holrr.plotting import ImportanceDisplay

plt = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed")

N = 60
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(N, 3, 4)), RNG.normal(size=(N, 5))
Y += X[:, 1, :1]
MODEL = RLS().fit(X, Y)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.mark.parametrize("kind", ["vip", "selectivity_ratio"])
def test_the_numbers_are_those_of_the_function(kind):
    measure = {"vip": vip, "selectivity_ratio": selectivity_ratio}[kind]
    display = ImportanceDisplay.from_estimator(MODEL, X, kind=kind, by=1)
    assert_allclose(display.values[0], measure(MODEL, X, by=1))
    (line, *others) = display.axes_[0].get_lines()
    assert_allclose(line.get_ydata(), measure(MODEL, X, by=1))
    assert len(others) == (kind == "vip")  # a line at the average VIP, which is one


def test_two_modes_are_a_map():
    display = ImportanceDisplay.from_estimator(MODEL, X)
    (mesh,) = display.axes_[0].collections
    assert_allclose(np.reshape(mesh.get_array(), (3, 4)), vip(MODEL, X))
    assert display.axes_[0].get_xlabel() == "input2"


def test_columns_whose_names_are_numbers_are_a_line_in_their_order():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    names = ["1100", "900.5", "1000"]
    table = pd.DataFrame(X[:, :, 0], columns=names)
    model = RLS().fit(table, Y)
    display = ImportanceDisplay.from_estimator(model, table)
    x, y = display.axes_[0].get_lines()[0].get_data()
    assert x.tolist() == [900.5, 1000.0, 1100.0]
    assert_allclose(y, vip(model, table)[["900.5", "1000", "1100"]])


def test_of_many_names_the_most_important_are_bars():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    wide = RNG.normal(size=(N, 30))
    table = pd.DataFrame(wide, columns=[f"input {k}" for k in range(30)])
    model = RLS().fit(table, wide[:, 7] + 0.1 * Y[:, 0])
    ax = ImportanceDisplay.from_estimator(model, table).axes_[0]
    assert len(ax.patches) == 20
    assert ax.get_yticklabels()[0].get_text() == "input 7"
    assert ax.get_xlabel() == "VIP, 20 of 30"


def test_blocks_have_panels_or_one_bar_each():
    parts = {"field": X, "index": Y[:, 0]}
    model = RLS().fit(parts, Y)
    display = ImportanceDisplay.from_estimator(model, parts)
    assert [ax.get_title() for ax in display.axes_] == ["field", "index"]
    display = ImportanceDisplay.from_estimator(model, parts, by="blocks")
    known = vip(model, parts, by="blocks")
    names = [text.get_text() for text in display.axes_[0].get_yticklabels()]
    widths = [patch.get_width() for patch in display.axes_[0].patches]
    assert dict(zip(names, widths, strict=True)) == pytest.approx(known)


def test_infinite_ratios_and_dropped_inputs_are_drawn(tmp_path):
    values = np.array([1.0, np.inf, np.nan])
    display = ImportanceDisplay(
        values=[values],
        mode_names=[("feature",)],
        coordinates=[(np.array(["a", "b", "c"]),)],
        kind="selectivity_ratio",
    ).plot()
    assert sorted(p.get_width() for p in display.axes_[0].patches) == [0.0, 1.0, 1.0]
    display.figure_.savefig(tmp_path / "bars.png")


def test_a_figure_of_the_user_is_used():
    from matplotlib.figure import Figure

    figure = Figure()
    assert ImportanceDisplay.from_estimator(MODEL, X, fig=figure).figure_ is figure


def test_what_cannot_be_drawn_is_refused():
    A = RNG.normal(size=(N, 2, 2, 2))
    model = RLS().fit(A, Y)
    with pytest.raises(ValueError, match=r"with by=.*'input1', 'input2'"):
        ImportanceDisplay.from_estimator(model, A)
    assert ImportanceDisplay.from_estimator(model, A, by=(0, 2)).values[0].shape == (2, 2)
    with pytest.raises(ValueError, match="average=None"):
        ImportanceDisplay.from_estimator(model, A, kind="selectivity_ratio", average=None)
    with pytest.raises(ValueError, match="kind"):
        ImportanceDisplay.from_estimator(model, A, kind="shap")
    with pytest.raises(ValueError, match="must fit values"):
        ImportanceDisplay(values=[np.ones(3)], mode_names=[("a",)], coordinates=[(np.ones(2),)])
