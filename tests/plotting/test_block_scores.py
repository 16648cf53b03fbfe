"""Parts of R2 by block of inputs: what is drawn for outputs with any number of modes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402

from holrr import HOLRR, HOLRRCV, LRR, RLS  # noqa: E402
from holrr.plotting import BlockScoresDisplay  # noqa: E402
from problems import toy, with_missing  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty")

BLOCKS = {"near": [0, 1, 2], "far": [3, 4], "calendar": [5]}


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def halves(shape=(3, 4)):
    X, Y = toy(n=120, d0=6, shape=shape, noise=2.0)
    return (X[:80], Y[:80]), (X[80:], Y[80:])


def legend(display):
    return [text.get_text() for text in display.axes_[0].get_legend().get_texts()]


# ---------------------------------------------------------------- from a model


@pytest.mark.parametrize(
    "model", [RLS(blocks=BLOCKS), HOLRR(rank=2, blocks=BLOCKS), HOLRRCV([1.0], blocks=BLOCKS)]
)
def test_the_maps_are_the_parts_of_each_output_and_their_sum(model):
    train, (X, Y) = halves()
    model.fit(*train)
    w = np.random.default_rng(0).uniform(size=len(X))
    display = BlockScoresDisplay.from_estimator(model, X, Y + 0.2, sample_weight=w)
    expected = model.score_blocks(X, Y + 0.2, w, average=None)
    pooled = model.score_blocks(X, Y + 0.2, w)
    assert display.block_names == [*BLOCKS, "intercept"]
    assert_allclose(display.scores, [*expected.values()])
    assert_allclose(display.pooled, [*pooled.values()])
    drawn = [ax.collections[0].get_array().reshape(3, 4) for ax in display.axes_]
    assert_allclose(drawn[0], expected["near"])
    assert_allclose(drawn[-1], sum(expected.values()))
    titles = [ax.get_title() for ax in display.axes_]
    assert titles[0] == f"near {pooled['near']:.2f}"
    assert titles[-1] == f"all together {sum(pooled.values()):.2f}"
    scales = {ax.collections[0].get_clim() for ax in display.axes_}
    assert len(scales) == 1
    ((low, high),) = scales
    assert low == -high


@pytest.mark.parametrize("average", ["pooled", "uniform"])
def test_averages_are_bars(average):
    train, (X, Y) = halves()
    model = LRR(2, blocks=BLOCKS, output_weight=[[1.0, 2.0, 5.0], None]).fit(*train)
    display = BlockScoresDisplay.from_estimator(model, X, Y, average=average)
    expected = [*model.score_blocks(X, Y, average=average).values()]
    (ax,) = display.axes_
    widths = [bar.get_width() for bar in ax.patches]
    assert_allclose(widths, [*expected, sum(expected)], rtol=1e-12, atol=1e-15)
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == [*BLOCKS, "intercept", "all together"]
    assert f"{expected[0]:.3f}" in [text.get_text() for text in ax.texts]


def test_names_of_outputs_come_from_the_fit():
    xr = pytest.importorskip("xarray")
    train, (X, Y) = halves()
    coords = {"place": list("abc"), "month": [1, 4, 7, 10]}
    y = xr.DataArray(train[1], coords, ("time", *coords))
    model = RLS(blocks=BLOCKS).fit(train[0], y)
    for outputs in (Y, xr.DataArray(Y, coords, ("time", *coords)).transpose("month", ...)):
        display = BlockScoresDisplay.from_estimator(model, X, outputs)
        assert display.mode_names == ["place", "month"]
        assert display.axes_[0].get_ylabel() == "place"
        assert_array_equal(display.coordinates[0], list("abc"))
    flat = RLS(blocks=BLOCKS, output_shape=(3, 4)).fit(train[0], train[1].reshape(80, -1))
    display = BlockScoresDisplay.from_estimator(flat, X, Y.reshape(40, -1))
    assert display.scores.shape == (4, 3, 4)


def test_outputs_without_parts_are_grey():
    train, (X, Y) = halves()
    Y[:, 1, 2] = np.nan
    model = RLS(blocks=BLOCKS, missing="ignore").fit(train[0], with_missing(train[1], 0.1))
    display = BlockScoresDisplay.from_estimator(model, X, Y)
    drawn = display.axes_[0].collections[0].get_array().reshape(3, 4)
    assert np.isnan(np.ma.filled(drawn, np.nan)[1, 2])
    assert np.isfinite(display.pooled).all()


# ---------------------------------------------------------------- shapes

SHAPES = [
    ((), 1),
    ((5,), 1),
    ((60,), 1),
    ((3, 4), 4),
    ((1, 4), 1),
    ((1, 1), 1),
    ((5, 2, 4), 8),
    ((9, 8, 7), 24),
]


@pytest.mark.parametrize(("shape", "n_panels"), SHAPES, ids=str)
def test_every_number_of_modes_has_its_picture(shape, n_panels, tmp_path):
    scores = np.random.default_rng(0).uniform(-0.2, 0.4, size=(4, *shape))
    scores[3] = 0.001
    names = ["a", "b", "c", "intercept"]
    for pooled in (None, scores.reshape(4, -1).mean(axis=1)):
        display = BlockScoresDisplay(scores=scores, block_names=names, pooled=pooled).plot()
        assert display.axes_.shape == (n_panels,)
    display.figure_.savefig(tmp_path / "picture.png")


def test_bars_are_stacked_above_and_below_zero():
    scores = np.array([[0.5, -0.1], [0.2, 0.3], [-0.3, -0.2]])
    display = BlockScoresDisplay(scores=scores, block_names=["a", "b", "c"]).plot()
    (ax,) = display.axes_
    spans = [(bar.get_y(), bar.get_y() + bar.get_height()) for bar in ax.patches]
    expected = [(0, 0.5), (0, -0.1), (0.5, 0.7), (0, 0.3), (0, -0.3), (-0.1, -0.3)]
    assert_allclose(spans, expected, atol=1e-12)
    total = next(line for line in ax.lines if line.get_label() == "all together")
    assert_allclose(total.get_ydata(), [0.4, 0.0], atol=1e-12)
    assert legend(display) == ["a", "b", "c", "all together"]
    low, high = ax.get_ylim()
    assert low < -0.3
    assert high > 0.7


def test_many_ordered_outputs_are_lines_in_their_order():
    scores = np.random.default_rng(0).uniform(0.0, 0.4, size=(2, 50))
    x = np.random.default_rng(1).permutation(50)
    display = BlockScoresDisplay(scores=scores, block_names=["a", "b"], coordinates=[x]).plot()
    line = display.axes_[0].lines[0]
    assert_array_equal(line.get_xdata(), np.arange(50))
    assert_allclose(line.get_ydata(), scores[0][np.argsort(x)])


def test_the_intercept_is_drawn_by_output_where_it_matters():
    scores = np.full((2, 3, 4), 0.2)
    scores[1] = 0.01
    small = BlockScoresDisplay(scores=scores, block_names=["a", "intercept"]).plot()
    assert [ax.get_title() for ax in small.axes_] == ["a", "all together"]
    scores[1, 2, 2] = -0.1
    large = BlockScoresDisplay(scores=scores, block_names=["a", "intercept"]).plot()
    assert [ax.get_title() for ax in large.axes_] == ["a", "intercept", "all together"]


def test_of_many_blocks_the_largest_are_drawn():
    scores = np.random.default_rng(0).uniform(0.0, 0.01, size=(30, 3, 4))
    scores[7] += 0.2
    scores[29] += 0.1
    names = [f"lag {k}" for k in range(30)]
    display = BlockScoresDisplay(scores=scores, block_names=names).plot()
    titles = [ax.get_title() for ax in display.axes_]
    assert len(titles) == 16
    assert {"lag 7", "lag 29"} <= set(titles)
    assert titles[:-1] == [name for name in names if name in titles]
    total = display.axes_[-1].collections[0].get_array().reshape(3, 4)
    assert_allclose(total, scores.sum(axis=0))  # of all blocks


def test_very_bad_outputs_do_not_hide_the_others():
    scores = np.array([[0.5, 0.4, -30.0], [0.1, 0.2, 0.0]])
    (ax,) = BlockScoresDisplay(scores=scores, block_names=["a", "b"]).plot().axes_
    assert ax.get_ylim()[0] > -1.2
    maps = np.stack([scores, scores], axis=2)
    display = BlockScoresDisplay(scores=maps, block_names=["a", "b"]).plot()
    assert display.axes_[0].collections[0].get_clim() == (-1.0, 1.0)


def test_long_names_are_not_cut_off():
    long = [f"a name of more than forty characters, the {i:02d}" for i in range(12)]
    rng = np.random.default_rng(0)
    for shape in ((), (12,), (12, 5), (6, 5, 3)):
        display = BlockScoresDisplay(
            scores=rng.uniform(0, 0.2, size=(6, *shape)),
            block_names=long[:6],
            pooled=rng.uniform(0, 0.2, size=6),
            mode_names=[f"{name}, a mode" for name in long[: len(shape)]],
            coordinates=[long[:d] for d in shape],
        ).plot()
        figure = display.figure_
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # that there is no room
            figure.canvas.draw()
        renderer = figure.canvas.get_renderer()
        width, height = figure.bbox.size
        texts = [t for ax in figure.axes for t in (ax.title, ax.xaxis.label, ax.yaxis.label)]
        legends = [ax.get_legend() for ax in display.axes_ if ax.get_legend() is not None]
        texts += [text for found in legends for text in found.get_texts()]
        for text in texts:
            box = text.get_window_extent(renderer)
            inside = box.x0 >= -2 and box.x1 <= width + 2 and box.y0 >= -2 and box.y1 <= height + 2
            assert inside or not text.get_text(), (shape, text.get_text())
        titles = [ax.title.get_window_extent(renderer) for ax in display.axes_ if ax.get_title()]
        for k, box in enumerate(titles):
            assert not any(box.overlaps(other) for other in titles[:k]), shape


def test_a_figure_of_the_user_is_used():
    figure = plt.figure()
    train, (X, Y) = halves()
    model = RLS(blocks=BLOCKS).fit(*train)
    display = BlockScoresDisplay.from_estimator(model, X, Y, fig=figure)
    assert display.figure_ is figure


# ---------------------------------------------------------------- refusals


def test_bad_arguments_are_refused():
    names = ["a", "b"]
    with pytest.raises(ValueError, match=r"scores must have one entry for each of the 2 blocks"):
        BlockScoresDisplay(scores=np.ones((3, 4)), block_names=names)
    with pytest.raises(ValueError, match=r"pooled must have shape \(2,\)"):
        BlockScoresDisplay(scores=np.ones((2, 4)), block_names=names, pooled=[1.0])
    with pytest.raises(ValueError, match=r"mode_names and coordinates must fit"):
        BlockScoresDisplay(scores=np.ones((2, 4)), block_names=names, coordinates=[range(3)])
    with pytest.raises(ValueError, match="three modes can be drawn, but these scores have 4"):
        BlockScoresDisplay(scores=np.ones((2, 2, 2, 2, 2)), block_names=names).plot()
    train, (X, Y) = halves()
    with pytest.raises(NotFittedError):
        BlockScoresDisplay.from_estimator(RLS(blocks=BLOCKS), X, Y)
    with pytest.raises(ValueError, match=r"needs blocks of inputs.*parameter blocks"):
        BlockScoresDisplay.from_estimator(RLS().fit(*train), X, Y)
    model = RLS(blocks=BLOCKS).fit(*train)
    with pytest.raises(ValueError, match="average must be one of"):
        BlockScoresDisplay.from_estimator(model, X, Y, average="mean")
