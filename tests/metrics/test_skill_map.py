"""The skill of each output, with the names of the outputs, and its picture."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from holrr import HOLRR, HOLRRCV, RLS
from holrr.metrics import r2, skill, skill_map
from holrr.streaming import memory_budget
from problems import on_disk, toy, with_missing

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402

from holrr.plotting import RankSurfaceDisplay, SkillMapDisplay  # noqa: E402


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def halves(shape=(3, 4), n=80):
    X, Y = toy(n=n, shape=shape)
    Y = Y + 5 * np.random.default_rng(0).normal(size=Y.shape)
    return (X[: n // 2], Y[: n // 2]), (X[n // 2 :], Y[n // 2 :])


@pytest.mark.parametrize(
    "model",
    [HOLRR(rank=2), HOLRRCV([0.1, 1.0], cv=2), make_pipeline(StandardScaler(), RLS())],
    ids=["model", "search", "pipeline"],
)
@pytest.mark.filterwarnings("ignore:The best penalty")
def test_the_map_is_the_skill_of_each_output(model):
    train, (X, Y) = halves()
    model.fit(*train)
    w = np.random.default_rng(0).uniform(size=len(X))
    P, climatology = model.predict(X), train[1].mean(axis=0)
    assert_allclose(skill_map(model, X, Y), r2(Y, P, average=None))
    expected = skill(Y, P, climatology, sample_weight=w, average=None)
    assert_allclose(skill_map(model, X, Y, climatology, sample_weight=w), expected)


def test_data_on_disk_and_of_dask_with_missing(tmp_path):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    train, (X, Y) = halves(n=400)
    Y = with_missing(Y, 0.1)
    model = RLS(missing="ignore").fit(*train)
    expected = skill_map(model, X, Y, train[1].mean(axis=0))
    data = on_disk(tmp_path, "X", X), on_disk(tmp_path, "Y", Y)
    with memory_budget(64):
        assert_allclose(skill_map(model, *data, train[1].mean(axis=0)), expected)
    lazy = da.from_array(X, chunks=30), da.from_array(Y, chunks=30)
    assert_allclose(skill_map(model, *lazy, train[1].mean(axis=0)), expected)


def test_names_come_from_the_outputs_or_from_the_fit():
    xr = pytest.importorskip("xarray")
    train, (X, Y) = halves()
    coords = {"place": list("abc"), "month": [1, 4, 7, 10]}
    fitted = xr.DataArray(train[1], coords, dims=("time", *coords), attrs={"units": "K"})
    model = RLS().fit(train[0], fitted)
    y = xr.DataArray(Y, coords, dims=("time", *coords))
    expected = r2(Y, RLS().fit(*train).predict(X), average=None)
    for outputs in (Y, y, y.transpose("month", "time", "place")):
        found = skill_map(model, X, outputs)
        assert_allclose(found.transpose("place", "month"), expected)
        assert found.name == "skill"
        assert "units" not in found.attrs
        display = SkillMapDisplay.from_estimator(model, X, outputs)
        assert sorted(display.mode_names) == ["month", "place"]
    climatology = fitted.mean("time")
    assert_allclose(
        skill_map(model, X, y, climatology), skill(Y, model.predict(X), climatology, average=None)
    )
    variables = y.to_dataset("place")
    several = skill_map(RLS().fit(train[0], fitted.to_dataset("place")), X, variables)
    assert_allclose(several["b"], expected[1])


def test_tables_give_series():
    pd = pytest.importorskip("pandas")
    train, (X, Y) = halves()
    columns = pd.MultiIndex.from_product([list("abc"), [1, 4, 7, 10]], names=["place", "month"])
    tables = [pd.DataFrame(A.reshape(len(A), -1), columns=columns) for A in (train[1], Y)]
    tables[1].index += 40  # of which the predictions for an array know nothing
    model = RLS().fit(train[0], tables[0])
    found = skill_map(model, X, tables[1])
    expected = r2(Y, RLS().fit(*train).predict(X), average=None)
    assert_allclose(found.unstack().loc[list("abc"), [1, 4, 7, 10]], expected)
    display = SkillMapDisplay.from_estimator(model, X, tables[1])
    assert display.mode_names == ["place", "month"]
    assert_allclose(display.skill, expected)


def test_names_by_hand_leave_the_map_an_array():
    train, test = halves()
    model = RLS().fit(*train).name_modes(place=list("abc"), month=None)
    assert skill_map(model, *test).shape == (3, 4)
    display = SkillMapDisplay.from_estimator(model, *test)
    assert display.mode_names == ["place", "month"]
    assert display.axes_[0].get_ylabel() == "place"


def test_flat_outputs_are_drawn_as_the_model_sees_them():
    train, (X, Y) = halves()
    model = RLS(output_shape=(3, 4)).fit(train[0], train[1].reshape(40, -1))
    flat = Y.reshape(40, -1)
    assert skill_map(model, X, flat).shape == (12,)
    assert SkillMapDisplay.from_estimator(model, X, flat).skill.shape == (3, 4)


# ---------------------------------------------------------------- pictures


@pytest.mark.parametrize(
    ("shape", "n_panels"),
    [((), 1), ((5,), 1), ((60,), 1), ((3, 4), 1), ((1, 4), 1), ((5, 3, 4), 3), ((20, 21, 22), 16)],
    ids=str,
)
def test_every_number_of_modes_has_its_picture(shape, n_panels, tmp_path):
    values = np.random.default_rng(0).uniform(-2, 1, size=shape)
    display = SkillMapDisplay(skill=values).plot()
    assert display.axes_.shape == (n_panels,)
    display.figure_.savefig(tmp_path / "picture.png")
    below = int((values < 0).sum())
    assert f"{below} of {values.size} outputs below 0" in display.figure_.get_suptitle()


def test_colours_are_centred_at_zero_and_the_panels_are_those_of_the_shortest_mode():
    values = np.random.default_rng(0).uniform(-0.5, 0.3, size=(4, 5, 3))
    display = SkillMapDisplay(skill=values, mode_names=["a", "b", "c"]).plot()
    top = np.abs(values).max()
    for k, ax in enumerate(display.axes_):
        mesh = ax.collections[0]
        assert_allclose(mesh.get_array().reshape(4, 5), values[..., k])
        assert mesh.get_clim() == (-top, top)
        assert ax.get_title() == f"c {k}"


def test_north_is_up_for_ascending_and_descending_latitudes():
    for latitudes in ([50.0, 55.0, 60.0], [60.0, 55.0, 50.0]):
        display = SkillMapDisplay(skill=np.ones((3, 4)), coordinates=[latitudes, range(4)]).plot()
        assert display.axes_[0].yaxis_inverted() == (latitudes[0] > latitudes[-1])


def test_the_colour_scale_ignores_skills_far_below_zero():
    values = np.array([[0.5, 0.2], [-400.0, 0.1]])
    mesh = SkillMapDisplay(skill=values).plot().axes_[0].collections[0]
    assert mesh.get_clim() == (-1.0, 1.0)
    bars = SkillMapDisplay(skill=values.ravel()).plot().axes_[0]
    assert bars.get_ylim()[0] > -1.2
    assert min(patch.get_height() for patch in bars.patches) == -1.0


def test_missing_skills_are_left_out_of_the_picture():
    values = np.array([[0.5, np.nan], [0.2, 0.1]])
    display = SkillMapDisplay(skill=values).plot()
    assert "0 of 3 outputs" in display.figure_.get_suptitle()
    assert display.axes_[0].collections[0].get_array().mask.sum() == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"skill": np.zeros((2, 2, 2, 2))}, "three modes can be drawn.*has 4"),
        ({"skill": np.zeros((2, 3)), "mode_names": ["a"]}, "mode_names and coordinates must fit"),
        ({"skill": np.zeros(2), "coordinates": [[1, 2, 3]]}, r"shape \(2,\).*sizes \(3,\)"),
    ],
)
def test_invalid_options_of_the_map_raise_errors_that_name_them(options, message):
    with pytest.raises(ValueError, match=message):
        SkillMapDisplay(**options).plot()


@pytest.mark.filterwarnings("ignore:The best penalty")
def test_the_rank_surface_shows_what_its_error_compares_with():
    (X, Y), _ = halves()
    model = HOLRRCV([0.1, 1.0], cv=2).fit(X, Y)
    ax = RankSurfaceDisplay.from_estimator(model).alpha_ax_
    lines = {line.get_ydata()[0] for line in ax.lines if line.get_linestyle() == ":"}
    assert lines == {model.null_mse_, model.ridge_mse_}
    assert [text.get_text() for text in ax.texts] == ["mean", "ridge"]


def test_a_line_is_drawn_in_the_order_of_its_coordinates():
    order = np.random.default_rng(0).permutation(60)
    skill = np.where(order == 7, -3.0, order / 60)
    (ax,) = SkillMapDisplay(skill=skill, coordinates=[order]).plot().axes_
    line, off = ax.lines[:2]
    assert_allclose(line.get_xdata(), np.arange(60))
    assert_allclose(line.get_ydata(), np.where(np.arange(60) == 7, -1.0, np.arange(60) / 60))
    assert off.get_xdata() == [7]
