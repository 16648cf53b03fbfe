"""Displays: what they draw for models with any number of modes, and what they refuse."""

import builtins

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402

from holrr import HOLRR, LRR, MLMTNC, MLMTNCCV, RLS, TraceNormRegressionCV  # noqa: E402
from holrr.model_selection import HOLRRCV, LRRCV, RLSCV  # noqa: E402
from holrr.plotting import RankSurfaceDisplay, SpectrumDisplay  # noqa: E402
from problems import toy  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:the best penalty")

ALPHAS = [0.1, 1.0, 10.0]


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def data(shape=(3, 2), n=30, d0=4):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d0))
    return X, np.tensordot(X, rng.normal(size=(d0, *shape)), 1) + rng.normal(size=(n, *shape))


@pytest.mark.parametrize("shape", [(), (5,), (3, 2), (2, 3, 2), (2, 2, 2, 2)])
def test_rank_surface_has_a_profile_for_each_mode_and_a_map_for_each_pair(shape):
    display = RankSurfaceDisplay.from_estimator(HOLRRCV(ALPHAS).fit(*data(shape)))
    n = len(shape) + 1
    drawn = [ax is not None for ax in display.axes_.flat]
    assert np.array_equal(np.reshape(drawn, (n, n)), np.tril(np.ones((n, n), dtype=bool)))


@pytest.mark.parametrize(
    "model",
    [
        LRRCV(ALPHAS),
        RLSCV(ALPHAS),
        RLSCV([0.0, *ALPHAS]),
        HOLRRCV([1.0]),
        HOLRRCV(ALPHAS, criterion="bic"),
        HOLRRCV(ALPHAS, selection="1se"),
        HOLRRCV(ALPHAS, selection="stack"),
        HOLRRCV(ALPHAS, ranks=[(1, 1, 1), (3, 2, 1)]),
        HOLRRCV(ALPHAS[::-1], cv=[(np.arange(20), np.arange(20, 30))]),
    ],
    ids=["lrr", "rls", "rls with zero", "one penalty", "bic", "1se", "stack", "list", "one fold"],
)
def test_rank_surface_of_every_kind_of_search(model):
    display = RankSurfaceDisplay.from_estimator(model.fit(*data()))
    chosen = model.cv_results_["alphas"][model.best_index_[0]]
    assert display.alpha_ax_.get_title() == f"penalty: {chosen:.3g}"


def test_displays_can_be_rendered(tmp_path):
    model = HOLRRCV(ALPHAS).fit(*data())
    for Display in (RankSurfaceDisplay, SpectrumDisplay):
        Display.from_estimator(model).figure_.savefig(tmp_path / "picture.png")
        assert (tmp_path / "picture.png").stat().st_size > 1000


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


@pytest.mark.parametrize("model", [HOLRR(rank=2), HOLRRCV(ALPHAS)], ids=["HOLRR", "HOLRRCV"])
@pytest.mark.parametrize("shape", [(), (5,), (3, 2), (2, 2, 2, 2)])
def test_spectrum_has_a_panel_for_each_mode(model, shape):
    display = SpectrumDisplay.from_estimator(model.fit(*data(shape)))
    assert len(display.axes_) == len(shape) + 1


def test_spectrum_shades_what_is_kept():
    model = HOLRR(rank=(2, 1, 2)).fit(*data())
    display = SpectrumDisplay.from_estimator(model)
    kept, cut = display.axes_[1].containers
    assert (len(kept), len(cut)) == (1, 2)
    total = model.spectra_[1].sum()
    assert kept[0].get_height() == pytest.approx(100 * model.spectra_[1][0] / total)


def test_spectrum_of_low_rank_regression_and_of_an_empty_model():
    X, Y = data()
    assert len(SpectrumDisplay.from_estimator(LRR(rank=2).fit(X, Y)).axes_) == 1
    none = RLS(), TraceNormRegressionCV([1.0, 2.0], cv=2), MLMTNC(2)
    for model in (*(m.fit(X, Y) for m in none), HOLRR(rank=2).fit(X, 0 * Y)):
        with pytest.raises(ValueError, match="no spectra"):
            SpectrumDisplay.from_estimator(model)


@pytest.mark.parametrize("Display", [RankSurfaceDisplay, SpectrumDisplay])
def test_names_figures_and_refusals(Display, monkeypatch):
    X, Y = data()
    model = HOLRRCV(ALPHAS).fit(X, Y)
    fig = plt.figure(layout="constrained")
    display = Display.from_estimator(model, mode_names=["x", "place", "time"], fig=fig)
    assert display.figure_ is fig
    titles = [ax.get_title() for ax in fig.axes]
    assert any(title.startswith("place: ") for title in titles)
    assert display.plot(fig=plt.figure(layout="constrained")) is display
    with pytest.raises(ValueError, match="list of 3 names"):
        Display.from_estimator(model, mode_names=["x"])
    with pytest.raises(NotFittedError):
        Display.from_estimator(HOLRRCV())

    original = builtins.__import__

    def without_matplotlib(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_matplotlib)
    with pytest.raises(ImportError, match=r"pip install holrr\[plot\]"):
        Display.from_estimator(model)


@pytest.mark.parametrize("search", [TraceNormRegressionCV(cv=3), MLMTNCCV(cv=3)], ids=str)
def test_error_along_the_penalties_of_a_penalised_search(search):
    display = RankSurfaceDisplay.from_estimator(search.fit(*toy()))
    assert display.surface.ndim == 1
    assert display.surface[display.best_index] == display.surface.min()


def test_spectra_that_are_cut_short_say_how_much_is_kept():
    """Two of 300 directions hold little, though only the first few energies are known."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(400, 10)), rng.normal(size=(400, 300, 40))
    model = HOLRR((10, 2, 40)).fit(X, Y)
    assert model.spectra_[1].size < 300
    display = SpectrumDisplay.from_estimator(model)
    full = np.linalg.eigvalsh(np.tensordot(model_z(X, Y), model_z(X, Y), ((0, 2), (0, 2))))[::-1]
    share = 100 * full[:2].sum() / full.sum()
    title = next(ax.get_title() for ax in display.axes_ if "mode 1" in ax.get_title())
    assert f"2 of 300, {share:.3g} % kept" in title
    assert_allclose(model.energy_, full.sum())


def model_z(X, Y, alpha=1.0):
    """The whitened tensor."""
    X, Y = X - X.mean(0), Y - Y.mean(0)
    L = np.linalg.cholesky(X.T @ X + alpha * np.eye(X.shape[1]))
    Z = np.linalg.solve(L, np.tensordot(X.T, Y, 1).reshape(X.shape[1], -1))
    return Z.reshape(-1, *Y.shape[1:])
