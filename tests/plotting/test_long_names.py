"""Displays of data with long names, many entries or a single one can still be read."""

import warnings

import numpy as np
import pytest

from holrr import HOLRRCV
from holrr.plotting import (
    LoadingsDisplay,
    PredictionDisplay,
    RankSurfaceDisplay,
)

plt = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed")
xr = pytest.importorskip("xarray", reason="xarray is not installed")
pd = pytest.importorskip("pandas", reason="pandas is not installed")

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty", "ignore:max_rank limits")

LONG = [f"a name of more than forty characters, the {i:02d}" for i in range(12)]
MODE = "a_mode_with_a_name_of_forty_characters__"
OUTPUTS = {
    "names": {MODE: LONG, "lead": range(7)},
    "days": {"date": pd.date_range("2001-01-01", periods=365), "site": LONG[:4]},
    "curve": {MODE: LONG},
    "one": {"what": ["only"]},
    "three": {"lat": range(6), "lon": range(5), MODE: LONG[:5]},
}


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def data(kind):
    coords = {name: list(values) for name, values in OUTPUTS[kind].items()}
    shape = [len(values) for values in coords.values()]
    rng = np.random.default_rng(0)
    x = xr.DataArray(
        rng.normal(size=(60, 5)), {"feature " + MODE: LONG[:5]}, ("t", "feature " + MODE)
    )
    y = np.multiply.outer(x.to_numpy() @ rng.normal(size=5), rng.normal(size=shape))
    y += 0.5 * rng.normal(size=y.shape)
    return x, xr.DataArray(y, coords, ("t", *coords))


def drawn(kind):
    """Each display of a model, by name."""
    x, y = data(kind)
    model = HOLRRCV([0.1, 1.0, 10.0], cv=3, max_rank=3).fit(x, y)
    yield "loadings", LoadingsDisplay.from_estimator(model)
    yield "ranks", RankSurfaceDisplay.from_estimator(model)
    yield "predictions", PredictionDisplay.from_estimator(model, x, y, mode=y.dims[-1])
    if y.ndim > 2:
        yield "pair", LoadingsDisplay.from_estimator(model, mode=y.dims[1:3])


@pytest.mark.parametrize("kind", list(OUTPUTS))
def test_nothing_is_cut_off_no_titles_overlap_and_names_that_differ_look_different(kind):
    for name, display in drawn(kind):
        figure = display.figure_
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # that there is no room
            figure.canvas.draw()
        renderer = figure.canvas.get_renderer()
        width, height = figure.bbox.size
        for ax in figure.axes:
            for text in (ax.title, ax.xaxis.label, ax.yaxis.label):
                box = text.get_window_extent(renderer)
                inside = (
                    box.x0 >= -2 and box.x1 <= width + 2 and box.y0 >= -2 and box.y1 <= height + 2
                )
                assert inside or not text.get_text(), (name, text.get_text())
            for axis in (ax.xaxis, ax.yaxis):
                told = [label.get_text() for label in axis.get_ticklabels() if label.get_text()]
                assert len(set(told)) == len(told), (name, told)
            assert ax.get_window_extent(renderer).height > 0.25 * figure.dpi, name
        boxes = [ax.title.get_window_extent(renderer) for ax in figure.axes if ax.get_title()]
        for k, box in enumerate(boxes):
            assert not any(box.overlaps(other) for other in boxes[:k]), name
