"""Loadings: the directions are those of the fit, whatever the factors, and are drawn over names."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402

from holrr import HOLRR, HOLRRCV, LRR, LRRCV, RLS, KernelHOLRR, Tucker  # noqa: E402
from holrr.plotting import LoadingsDisplay, RankSurfaceDisplay  # noqa: E402
from problems import toy  # noqa: E402

pytestmark = pytest.mark.filterwarnings(
    "ignore:The best penalty",
    "ignore:n_components",
    "ignore::sklearn.exceptions.ConvergenceWarning",
)

MODES = [0, 1, 2, 3, (1, 3), (3, 1)]
draw = LoadingsDisplay.from_estimator


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def along(T, modes):
    """The unfolding with some modes along the rows."""
    modes = modes if isinstance(modes, tuple) else (modes,)
    T = np.moveaxis(T, modes, range(len(modes)))
    return T.reshape(int(np.prod(T.shape[: len(modes)])), -1)


def same_but_for_sign(found, expected, **tol):
    cosines = np.sum(found * expected, axis=0)
    assert_allclose(np.abs(cosines), 1, **tol)


@pytest.mark.parametrize("modes", MODES, ids=str)
@pytest.mark.parametrize("refine", [False, True])
def test_directions_are_those_of_the_predictions(modes, refine):
    """Without a penalty the energy is the sum of squares of the predictions about their mean."""
    X, Y = toy(n=60, shape=(3, 4, 5))
    model = HOLRR(rank=(3, 2, 3, 3), alpha=0, refine=refine).fit(X, Y)
    display = draw(model, mode=modes)
    fitted = model.predict(X) - model.predict(X).mean(axis=0)
    Q, s, _ = np.linalg.svd(along(fitted, modes), full_matrices=False)
    U = display.loadings[0].reshape(-1, display.shares[0].size)
    if modes == 0:  # weights of the inputs: their scores are the directions of the samples
        U = (X - X.mean(axis=0)) @ U
        U = U / np.linalg.norm(U, axis=0)
    same_but_for_sign(U, Q[:, : U.shape[1]], rtol=1e-8)
    assert_allclose(display.shares[0], (s**2 / np.sum(s**2))[: U.shape[1]], rtol=1e-8)


@pytest.mark.parametrize("modes", MODES, ids=str)
def test_rotated_factors_are_the_same_directions(modes):
    X, Y = toy(n=60, shape=(3, 4, 5))
    model = HOLRR(rank=(3, 2, 3, 3)).fit(X, Y)
    before = draw(model, mode=modes)
    rng = np.random.default_rng(3)
    turns = [np.linalg.qr(rng.normal(size=(R, R)))[0] for R in model.tucker_.rank]
    core = Tucker(model.tucker_.core, tuple(T.T for T in turns)).to_dense()
    factors = [U @ T for U, T in zip(model.factors_, turns, strict=True)]
    model.tucker_ = Tucker(core, tuple(factors))
    after = draw(model, mode=modes)
    shape = (-1, before.shares[0].size)
    same_but_for_sign(after.loadings[0].reshape(shape), before.loadings[0].reshape(shape))
    assert_allclose(after.shares[0], before.shares[0])


def test_factors_in_leading_order_are_drawn_nearly_as_they_are_with_their_signs():
    X, Y = toy()
    model = HOLRR(rank=(2, 2, 2)).fit(X, Y)
    display = draw(model)
    for found, U in zip(display.loadings, model.factors_, strict=True):
        assert_allclose(found, U / np.linalg.norm(U, axis=0), atol=1e-4)
    spectrum = model.spectra_[1][:2]
    assert_allclose(display.shares[1], spectrum / spectrum.sum(), rtol=0.02)
    model = LRR(rank=2).fit(X, Y)
    U = model.factors_[0]
    assert_allclose(draw(model).loadings[0], U / np.linalg.norm(U, axis=0), rtol=1e-9)


def test_coefficients_have_the_energy_where_there_are_no_factors():
    X, Y = toy()
    model = RLS().fit(X, Y)
    for mode in range(3):
        display = draw(model, mode=mode, n_components=2)
        Q, s, _ = np.linalg.svd(along(model.coef_, mode), full_matrices=False)
        same_but_for_sign(display.loadings[0], Q[:, :2])
        assert_allclose(display.shares[0], (s**2 / np.sum(s**2))[:2])
        largest = np.argmax(np.abs(display.loadings[0]), axis=0)
        assert (display.loadings[0][largest, [0, 1]] > 0).all()


def test_every_estimator_has_loadings(row):
    display = draw(row.make().fit(*toy()), n_components=2)
    assert [U.shape[0] for U in display.loadings[1:]] == [3, 4]
    for U, share in zip(display.loadings, display.shares, strict=True):
        assert_allclose(np.linalg.norm(U, axis=0), 1)
        assert np.all(np.diff(share) <= 0)
        assert 0 < share.sum() <= 1 + 1e-12


@pytest.mark.parametrize("shape", [(), (5,), (2, 3, 2)], ids=str)
def test_any_number_of_modes(shape):
    X, Y = toy(shape=shape)
    for model in (HOLRR(rank=2), LRR(rank=2), KernelHOLRR(rank=2, kernel="rbf")):
        display = draw(model.fit(X, Y))
        assert len(display.axes_) == 1 + len(shape)
    assert display.names[0] == ("kernel centre",)


# ---------------------------------------------------------------- what is drawn


def named(n=40):
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    X, Y = toy(n=n, d0=12, shape=(3, 4))
    x = xr.DataArray(
        X.reshape(n, 3, 4),
        dims=("time", "lat", "lon"),
        coords={"lat": [60.0, 50.0, 40.0], "lon": [0.0, 10.0, 20.0, 30.0]},
    )
    y = xr.DataArray(
        Y,
        dims=("time", "station", "month"),
        coords={
            "station": ["Bergen", "Cadiz", "Dublin"],
            "month": np.array(["2000-04", "2000-01", "2000-02", "2000-03"], dtype="M8[ns]"),
        },
    )
    return x, y


def test_lines_for_order_bars_for_names_maps_for_pairs():
    display = draw(HOLRR(rank=2).fit(*named()))
    assert display.names == [("lat", "lon"), ("station",), ("month",)]
    grid, bars, line = display.axes_[:, 0]
    assert grid.get_ylabel() == "lat"
    assert grid.get_xlabel() == "lon"
    drawn = np.asarray(grid.collections[0].get_array()).reshape(3, 4)
    assert_array_equal(drawn, display.loadings[0][::-1, :, 0])  # from south to north
    assert [t.get_text() for t in bars.get_yticklabels()] == ["Bergen", "Cadiz", "Dublin"]
    assert_array_equal([b.get_width() for b in bars.patches], display.loadings[1][:, 0])
    months, loadings = line.lines[1].get_data()
    assert np.all(np.diff(months.astype("M8[D]").astype(int)) > 0)
    assert_array_equal(loadings, display.loadings[2][[1, 2, 3, 0], 0])
    share = 100 * display.shares[2][0]
    assert line.get_title() == f"1: {share:.3g} % of the energy"


def test_axes_of_one_entry_are_left_out():
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    X, Y = toy(d0=6, shape=(1, 4))
    for shape, dims in {
        (1, 2, 3): [("lat", "lon")],
        (6, 1, 1): [("level",)],
        (1, 1, 6): [("lon",)],
    }.items():
        x = xr.DataArray(X.reshape(40, *shape), dims=("time", "level", "lat", "lon"))
        model = HOLRR(rank=2).fit(x, Y)
        assert draw(model, mode=0).names == dims
    x = xr.DataArray(np.tile(X, 2).reshape(40, 3, 2, 2), dims=("time", "level", "lat", "lon"))
    assert draw(HOLRR(rank=2).fit(x, Y), mode=0).names == [("input mode",)]
    pair = draw(model, mode=(1, 2))
    assert pair.names == [("output mode 2",)]
    assert pair.loadings[0].shape[0] == 4


def test_a_pair_of_output_modes_by_name_is_a_map():
    model = HOLRRCV(cv=3).fit(*named())
    display = draw(model, mode=("station", "month"), n_components=1)
    assert display.loadings[0].shape == (3, 4, 1)
    turned = draw(model, mode=(2, 1), n_components=1)
    assert_allclose(turned.loadings[0], display.loadings[0].transpose(1, 0, 2))
    top = display.axes_[0, 0]
    assert top.yaxis_inverted()  # names are read from the top
    assert draw(model, mode="month").names == [("month",)]


def test_the_names_with_the_largest_loadings_are_shown_of_many():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 30)), columns=[f"gene {i}" for i in range(30)])
    weights = np.arange(30)[::-1, None]
    model = RLS().fit(X, X.to_numpy() @ weights @ rng.normal(size=(1, 3)))
    ax = draw(model, mode=0).axes_[0, 0]
    assert [t.get_text() for t in ax.get_yticklabels()] == [f"gene {i}" for i in range(20)]
    assert ax.get_xlabel() == "loading, 20 of 30"


def test_entries_that_were_never_observed_are_left_out():
    X, Y = toy()
    Y[:, 1] = np.nan
    model = RLS(missing="ignore").fit(X, Y)
    assert_array_equal(np.isnan(draw(model, mode=1).loadings[0][:, 0]), [False, True, False])
    both = draw(model, mode=(2, 1)).loadings[0][..., 0]
    assert_array_equal(np.isnan(both), np.isnan(Y[0]).T)


def test_displays_have_the_names_of_the_modes():
    x, y = named()
    display = RankSurfaceDisplay.from_estimator(HOLRRCV(cv=3).fit(x, y))
    titles = [ax.get_title() for ax in display.figure_.axes]
    assert any(title.startswith("station: ") for title in titles)
    RankSurfaceDisplay.from_estimator(LRRCV(cv=3).fit(x, y))  # which has one rank


def test_invalid_modes_and_models_without_directions_are_refused(tmp_path):
    X, Y = toy()
    model = HOLRR(rank=2).fit(X, Y)
    for mode in (3, -1, "month", (1, 1), (0, 1), (1, 2, 0), 1.0):
        with pytest.raises(ValueError, match="mode must be a number from 0 to 2, one of the names"):
            draw(model, mode=mode)
    with pytest.raises(ValueError, match="n_components must be at least 1; got 0"):
        draw(model, n_components=0)
    with pytest.raises(ValueError, match="coefficients are zero"):
        draw(model.fit(X, 0 * Y))
    with pytest.raises(NotFittedError):
        draw(HOLRR())
    fig = plt.figure(layout="constrained")
    display = draw(model.fit(X, Y), mode_names=["dose", "tissue", "day"], fig=fig)
    assert display.figure_ is fig
    assert display.names == [("dose",), ("tissue",), ("day",)]
    fig.savefig(tmp_path / "loadings.png")


def test_pairs_are_input_directions_and_the_outputs_that_they_predict():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 4, 5)), rng.normal(size=(60, 3, 6))
    X[:, 1, 2] = np.nan
    model = HOLRR((3, 2, 2)).fit(X, Y)
    display = LoadingsDisplay.from_estimator(model, mode="pairs", n_components=2)
    inputs, outputs = display.loadings
    assert inputs.shape == (4, 5, 2)
    assert outputs.shape == (3, 6, 2)
    assert np.isnan(inputs[1, 2]).all()
    # Rank-one terms with these patterns are the terms of the model.
    scores = model.transform(X)
    energy = np.sum(model.core_.reshape(3, -1) ** 2, axis=1)
    order = np.argsort(-energy)[:2]
    assert_allclose(display.shares[0], energy[order] / energy.sum())
    for j, component in enumerate(order):
        drawn = np.nansum(X * inputs[..., j], axis=(1, 2))
        assert abs(np.corrcoef(drawn, scores[:, component])[0, 1]) > 1 - 1e-12
        slope = np.tensordot(np.sign(drawn @ scores[:, component]), 1.0, 0)
        term = np.einsum("ab,ia,jb->ij", model.core_[component], *model.factors_[1:])
        assert_allclose(outputs[..., j], slope * term / np.linalg.norm(term), atol=1e-10)


def test_pairs_of_several_blocks_have_a_row_each():
    rng = np.random.default_rng(0)
    X = {"field": rng.normal(size=(60, 4, 5)), "lags": rng.normal(size=(60, 3))}
    model = LRR(2).fit(X, rng.normal(size=(60, 7)))
    display = LoadingsDisplay.from_estimator(model, mode="pairs")
    assert [U.shape for U in display.loadings] == [(4, 5, 2), (3, 2), (7, 2)]
    assert display.names[0] == ("field: input1 (inputs)", "field: input2 (inputs)")


def test_pairs_need_directions_and_at_most_two_modes():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 4, 5)), rng.normal(size=(60, 3, 2, 2))
    with pytest.raises(ValueError, match=r"pairs.*RLS"):
        LoadingsDisplay.from_estimator(RLS().fit(X, Y), mode="pairs")
    with pytest.raises(ValueError, match=r"outputs have the modes"):
        LoadingsDisplay.from_estimator(LRR(2).fit(X, Y), mode="pairs")
