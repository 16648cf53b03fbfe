"""The skill of each output, with the names of the outputs."""

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


def test_names_by_hand_leave_the_map_an_array():
    train, test = halves()
    model = RLS().fit(*train).name_modes(place=list("abc"), month=None)
    assert skill_map(model, *test).shape == (3, 4)


def test_flat_outputs_stay_flat():
    train, (X, Y) = halves()
    model = RLS(output_shape=(3, 4)).fit(train[0], train[1].reshape(40, -1))
    flat = Y.reshape(40, -1)
    assert skill_map(model, X, flat).shape == (12,)
