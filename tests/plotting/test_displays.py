"""Displays: what they draw for models with any number of modes, and what they refuse."""

import sys

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402

from holrr import (  # noqa: E402
    HOLRR,
    HOLRRCV,
    LRRCV,
    RLSCV,
)
from holrr.plotting import RankSurfaceDisplay  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty")

ALPHAS = [0.1, 1.0, 10.0]


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def data(shape=(3, 2), n=30, d0=4):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d0))
    return X, np.tensordot(X, rng.normal(size=(d0, *shape)), 1) + rng.normal(size=(n, *shape))


def surface(shape=(5, 6, 7), spread=0.0, std_error=1.0):
    """A surface of one penalty that rises by `spread` from the lowest ranks, the choice."""
    steps = np.add.outer(
        np.add.outer(*(np.linspace(0, 1, n) for n in shape[:2])), np.zeros(shape[2])
    )
    errors = (100 + spread * steps / 2)[None]
    options = {"alphas": np.ones(1), "best_index": (0, 0, 0, 0)}
    return RankSurfaceDisplay(surface=errors, std_error=0 * errors + std_error, **options)


@pytest.mark.parametrize("shape", [(), (5,), (3, 2), (2, 3, 2), (2, 2, 2, 2)])
def test_rank_surface_has_a_panel_for_each_mode_and_pair_which_fill_the_figure(shape):
    """A profile for each mode and a map for each pair. No corner is empty, and no axes."""
    display = RankSurfaceDisplay.from_estimator(HOLRRCV(ALPHAS).fit(*data(shape)))
    n = len(shape) + 1
    drawn = [ax is not None for ax in display.axes_.flat]
    assert np.array_equal(np.reshape(drawn, (n, n)), np.tril(np.ones((n, n), dtype=bool)))
    panels = [ax for ax in display.figure_.axes if ax.get_subplotspec() is not None]
    panels = [ax for ax in panels if ax.get_label() != "<colorbar>"]
    spans = [ax.get_subplotspec().get_topmost_subplotspec() for ax in panels]
    rows, columns = spans[0].get_gridspec().get_geometry()
    taken = np.zeros((rows, columns), dtype=int)
    for span in spans:
        taken[span.rowspan.start : span.rowspan.stop, span.colspan.start : span.colspan.stop] += 1
    assert np.all(taken == 1)
    assert all(ax.has_data() or ax.get_legend() for ax in panels)


def colours(display):
    """The part of the colour scale that a map uses."""
    mesh = display.axes_[1, 0].collections[0]
    return np.ptp(mesh.norm(mesh.get_array().compressed()))


def test_differences_below_a_standard_error_have_nearly_the_same_colour():
    assert colours(surface(spread=1.0).plot()) < 0.12
    assert colours(surface(spread=1000.0).plot()) > 0.8
    # Without standard errors rounding must not look like a landscape.
    assert colours(surface(spread=1e-9, std_error=np.nan).plot()) < 0.01


@pytest.mark.parametrize(("n", "scale"), [(30, "linear"), (365, "log")])
def test_many_ranks_are_in_a_log_scale(n, scale):
    display = surface((5, n, 6), spread=50.0).plot()
    profile, below, beside = display.axes_[1, 1], display.axes_[1, 0], display.axes_[2, 1]
    assert profile.get_xscale() == below.get_yscale() == beside.get_xscale() == scale
    assert below.get_xscale() == display.axes_[0, 0].get_xscale() == "linear"
    assert below.get_ylim() == (0.5, n + 0.5)


def test_what_was_not_computed_is_hatched_and_named():
    def words(display):
        return [
            text.get_text()
            for ax in display.figure_.axes
            if ax.get_legend()
            for text in ax.get_legend().get_texts()
        ]

    whole, pruned = surface(spread=9.0), surface(spread=9.0)
    pruned.surface[:, 3:, 2:] = pruned.std_error[:, 3:, 2:] = np.nan
    assert "not computed" not in words(whole.plot())
    assert "not computed" in words(pruned.plot())
    for display in (whole, pruned):
        display.figure_.canvas.draw()
    ax = pruned.axes_[1, 0]
    assert ax.patch.get_hatch()
    assert ax.collections[0].get_array().mask.sum() == 2 * 4
    line = next(line for line in pruned.axes_[0, 0].lines if line.get_label() == "others as chosen")
    assert np.isfinite(line.get_ydata()).sum() == 5
    pruned.best_index = (0, 0, 2, 0)  # a section with gaps is not joined over them
    pruned.plot()
    line = next(line for line in pruned.axes_[0, 0].lines if line.get_label() == "others as chosen")
    assert np.isnan(line.get_ydata()).sum() == 2


def test_penalties_that_were_not_computed_are_not_drawn():
    errors = np.full((3, 4, 5), np.nan)
    errors[1] = 7.0
    given = {"surface": errors, "alphas": np.array(ALPHAS), "best_index": (1, 0, 0)}
    low, high = RankSurfaceDisplay(**given).plot().alpha_ax_.get_xlim()
    assert low < ALPHAS[0] < ALPHAS[-1] < high


@pytest.mark.parametrize(
    "model",
    [
        LRRCV(ALPHAS),
        RLSCV(ALPHAS),
        RLSCV([0.0, *ALPHAS]),
        HOLRRCV([1.0]),
        HOLRRCV(ALPHAS, selection="1se"),
        HOLRRCV(ALPHAS, selection="stack"),
        HOLRRCV(ALPHAS, max_rank=2),
        HOLRRCV(ALPHAS[::-1], cv=[(np.arange(20), np.arange(20, 30))]),
    ],
    ids=["lrr", "rls", "rls with zero", "one penalty", "1se", "stack", "max rank", "one fold"],
)
def test_rank_surface_of_every_kind_of_search(model):
    display = RankSurfaceDisplay.from_estimator(model.fit(*data()))
    chosen = model.cv_results_["alphas"][model.best_index_[0]]
    assert display.alpha_ax_.get_title() == f"penalty: {chosen:.3g}"


def test_displays_can_be_rendered(tmp_path):
    model = HOLRRCV(ALPHAS).fit(*data())
    RankSurfaceDisplay.from_estimator(model).figure_.savefig(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 1000


def test_the_error_surface_of_a_single_fit_is_an_error_that_names_searches():
    with pytest.raises(TypeError, match="needs a search, such as HOLRRCV; got a HOLRR"):
        RankSurfaceDisplay.from_estimator(HOLRR(2).fit(*data()))


def test_profile_is_the_section_of_the_surface_through_the_choice():
    model = HOLRRCV(ALPHAS).fit(*data())
    ax = RankSurfaceDisplay.from_estimator(model).axes_[1, 1]
    line = next(line for line in ax.lines if line.get_label() == "others as chosen")
    a, i, _, k = model.best_index_
    x, y = line.get_data()
    np.testing.assert_array_equal(x, [1, 2, 3])
    np.testing.assert_array_equal(y, model.cv_results_["mean_mse"][a, i, :, k])
    mark = next(line for line in ax.lines if line.get_label() == "choice")
    assert mark.get_xdata()[0] == model.rank_[1]


def test_band_is_one_standard_error():
    model = LRRCV(ALPHAS).fit(*data())
    display = RankSurfaceDisplay.from_estimator(model)
    errors = model.cv_results_["fold_mse"].std(axis=0, ddof=1) / np.sqrt(5)
    np.testing.assert_allclose(display.std_error, errors)
    band = display.axes_[0, 0].collections[0].get_paths()[0].vertices
    mean = model.cv_results_["mean_mse"][model.best_index_[0]]
    at_choice = errors[model.best_index_[0]]
    assert band[:, 1].min() == pytest.approx((mean - at_choice).min())
    assert band[:, 1].max() == pytest.approx((mean + at_choice).max())


def test_penalties_are_drawn_in_order():
    a = RankSurfaceDisplay.from_estimator(RLSCV(ALPHAS).fit(*data()))
    b = RankSurfaceDisplay.from_estimator(RLSCV(ALPHAS[::-1]).fit(*data()))
    for display in (a, b):
        assert list(display.alpha_ax_.lines[0].get_xdata()) == ALPHAS
    np.testing.assert_allclose(
        a.alpha_ax_.lines[0].get_ydata(), b.alpha_ax_.lines[0].get_ydata(), rtol=1e-9
    )


def test_names_figures_and_refusals(monkeypatch):
    X, Y = data()
    model = HOLRRCV(ALPHAS).fit(X, Y)
    fig = plt.figure(layout="constrained")
    display = RankSurfaceDisplay.from_estimator(model, mode_names=["x", "place", "time"], fig=fig)
    assert display.figure_ is fig
    titles = [ax.get_title() for ax in fig.axes]
    assert any(title.startswith("place: ") for title in titles)
    assert display.plot(fig=plt.figure(layout="constrained")) is display
    with pytest.raises(ValueError, match="list of 3 names"):
        RankSurfaceDisplay.from_estimator(model, mode_names=["x"])
    with pytest.raises(NotFittedError):
        RankSurfaceDisplay.from_estimator(HOLRRCV())

    with monkeypatch.context() as without:
        without.setitem(sys.modules, "matplotlib.pyplot", None)  # as if there were none
        with pytest.raises(ImportError, match=r'pip install "holrr\[plot\]"'):
            RankSurfaceDisplay.from_estimator(model)


def test_the_rank_surface_shows_what_its_error_compares_with():
    model = HOLRRCV(ALPHAS).fit(*data())
    ax = RankSurfaceDisplay.from_estimator(model).alpha_ax_
    lines = {line.get_ydata()[0] for line in ax.lines if line.get_linestyle() == ":"}
    assert lines == {model.null_mse_, model.ridge_mse_}
    assert [text.get_text() for text in ax.texts] == ["mean", "ridge"]
