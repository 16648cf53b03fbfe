"""Inputs with modes and blocks: what goes in, what comes out, and relations that must hold."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from holrr import HOLRR, HOLRRCV, LRR, LRRCV, RLS, RLSCV, Moments, load, standard_errors
from holrr.data import to_matrix
from holrr.streaming import memory_budget
from problems import on_disk

N, MODES, OUTPUTS = 40, (4, 3), (3, 2)


def problem(seed: int = 0, n: int = N, noise: float = 0.5, modes: tuple[int, int] = MODES):
    """Inputs of shape (n, 4, 3), of whose modes two directions each have an effect."""
    rng = np.random.default_rng(seed)
    P, Q = (np.linalg.qr(rng.normal(size=(m, 2)))[0] for m in modes)
    W = np.einsum("ia,jb,abkl->ijkl", P, Q, rng.normal(size=(2, 2, *OUTPUTS)))
    X = rng.normal(size=(n, *modes))
    Y = np.tensordot(X, W, 2) + noise * rng.normal(size=(n, *OUTPUTS))
    return X, Y, W


def field(seed: int = 0, n: int = N):
    """A field with land, and maps, over dimensions of the same names."""
    X, Y, _ = problem(seed, n)
    time = pd.date_range("2000-01-01", periods=n, freq="MS")
    sea = xr.DataArray(
        X,
        dims=("time", "lat", "lon"),
        coords={"time": time, "lat": [-10.0, 0.0, 10.0, 20.0], "lon": [0.0, 30.0, 60.0]},
        name="sst",
    )
    land = np.zeros(MODES, dtype=bool)
    land[1, 1:] = True
    sea = sea.where(xr.DataArray(~land, dims=("lat", "lon")))
    maps = xr.DataArray(
        Y,
        dims=("time", "lat", "lon"),
        coords={"time": time, "lat": [40.0, 50.0, 60.0], "lon": [10.0, 20.0]},
        name="slp",
    )
    return sea, maps, land


LINEAR = [RLS(0.3), LRR(2, 0.3), HOLRR((2, 2, 2), 0.3), RLSCV(), LRRCV(), HOLRRCV()]
linear = pytest.mark.parametrize("model", LINEAR, ids=lambda m: type(m).__name__)


# ---------------------------------------------------------------- any order


def test_all_estimators_take_arrays_with_modes_as_their_flat_form(row):
    X, Y, _ = problem()
    params = {"input_rank": None} if "input_rank" in row.params else {}
    flat = row.make().fit(X.reshape(N, -1), Y)
    model = row.make(**params).fit(X, Y)
    assert model.n_features_in_ == 12
    assert_array_equal(model.predict(X), flat.predict(X.reshape(N, -1)))
    assert_array_equal(model.predict(X.reshape(N, -1)), model.predict(X))
    assert model.score(X, Y) == flat.score(X.reshape(N, -1), Y)
    if row.linear:
        assert model.coef_.shape == (*MODES, *OUTPUTS)
        assert_array_equal(model.coef_.reshape(12, *OUTPUTS), flat.coef_)


def test_arrays_of_other_modes_are_refused_with_both_shapes():
    X, Y, _ = problem()
    model = RLS().fit(X, Y)
    with pytest.raises(ValueError, match=r"\(3, 4\).*\(4, 3\)"):
        model.predict(X.transpose(0, 2, 1))
    with pytest.raises(ValueError, match=r"\(4, 3\).*none"):
        RLS().fit(X.reshape(N, -1), Y).predict(X)
    with pytest.raises(ValueError, match="empty mode"):
        RLS().fit(X[:, :0], Y)


@linear
def test_flat_inputs_with_input_shape_are_those_with_modes(model):
    X, Y, _ = problem()
    model.fit(X, Y)
    coef, predicted = model.coef_, model.predict(X)
    flat = type(model)(**{**model.get_params(), "input_shape": MODES})
    flat.fit(X.reshape(N, -1), Y)
    assert_array_equal(flat.coef_, coef)
    assert_array_equal(flat.predict(X), predicted)
    assert_array_equal(flat.predict(X.reshape(N, -1)), predicted)


def test_input_shape_must_have_a_cell_for_each_column():
    X, Y, _ = problem()
    with pytest.raises(ValueError, match=r"input_shape=\(4, 4\) has 16 cells, but X has 12"):
        RLS(input_shape=(4, 4)).fit(X.reshape(N, -1), Y)
    with pytest.raises(ValueError, match=r"input_shape=\(3, 4\) differs from the shape"):
        RLS(input_shape=(3, 4)).fit(X, Y)
    with pytest.raises(ValueError, match="input_shape must contain positive"):
        RLS(input_shape=(-3, -4)).fit(X.reshape(N, -1), Y)


def test_dicts_are_named_blocks():
    X, Y, _ = problem()
    more = np.random.default_rng(1).normal(size=(N, 2))
    blocks = {"field": X, "index": more, "trend": np.arange(N) / N}
    flat = np.concatenate([X.reshape(N, -1), more, blocks["trend"][:, None]], axis=1)
    model, plain = RLS().fit(blocks, Y), RLS().fit(flat, Y)
    assert_array_equal(model.predict(blocks), plain.predict(flat))
    assert {name: A.shape for name, A in model.coef_.items()} == {
        "field": (*MODES, *OUTPUTS),
        "index": (2, *OUTPUTS),
        "trend": OUTPUTS,
    }
    assert_array_equal(model.coef_["index"], plain.coef_[12:14])
    # Blocks are found by name, whatever their order.
    assert_array_equal(model.predict(dict(reversed(blocks.items()))), plain.predict(flat))
    assert list(model.feature_names_in_[[0, 11, 12, 14]]) == [
        "field[0,0]",
        "field[3,2]",
        "index[0]",
        "trend",
    ]
    with pytest.raises(ValueError, match=r"missing are \['index'\]"):
        model.predict({"field": X, "trend": blocks["trend"]})
    with pytest.raises(ValueError, match=r"X\['index'\] have shape \(1,\)"):
        model.predict({**blocks, "index": more[:, :1]})
    with pytest.raises(ValueError, match="same number of samples"):
        RLS().fit({"field": X, "index": more[1:]}, Y)


def test_datasets_and_dicts_give_the_same_model():
    sea, maps, _ = field()
    sea = sea.fillna(0.0)
    index = xr.DataArray(np.linspace(0, 1, N), dims="time", coords={"time": sea.time})
    one = HOLRRCV(input_rank=None).fit(xr.Dataset({"sst": sea, "index": index}), maps)
    two = HOLRRCV(input_rank=None).fit({"sst": sea.to_numpy(), "index": index.to_numpy()}, maps)
    assert_array_equal(one.coef_["sst"], two.coef_["sst"])
    assert one.predict(xr.Dataset({"sst": sea, "index": index})).dims == ("time", "lat", "lon")


def test_tables_with_column_levels_have_modes():
    X, Y, _ = problem()
    columns = pd.MultiIndex.from_product([list("abcd"), [1, 2, 3]], names=["site", "lag"])
    table = pd.DataFrame(X.reshape(N, -1), columns=columns)
    order = np.random.default_rng(0).permutation(12)[:11]
    model = RLS().fit(table.iloc[:, order], Y)
    flat = RLS().fit(X.reshape(N, -1)[:, order], Y)
    assert model.coef_.shape == (*MODES, *OUTPUTS)
    found = model.to_dataset().coef
    assert found.dims[:2] == ("site", "lag")
    for j, column in enumerate(order):
        site, lag = columns[column]
        assert_array_equal(found.sel(site=site, lag=lag), flat.coef_[j])
    assert np.isnan(found.to_numpy()).sum() == np.prod(OUTPUTS)  # of the column that is left out
    assert_array_equal(
        model.predict(table.iloc[:, order]), flat.predict(X.reshape(N, -1)[:, order])
    )
    with pytest.raises(ValueError, match="X has two columns"):
        RLS().fit(pd.concat([table, table.iloc[:, :1]], axis=1), Y)


@linear
def test_moments_disk_dask_and_batches_agree(model, tmp_path):
    X, Y, _ = problem(n=120)
    params = {"input_rank": (2, 2)} if not hasattr(model, "cv") else {}
    model = type(model)(**{**model.get_params(), **params})
    expected = model.fit(X, Y).predict(X)
    da = pytest.importorskip("dask.array")
    found = {}
    lazy = [da.from_array(A, chunks=(25, *A.shape[1:])) for A in (X, Y)]
    with memory_budget(2**15):
        stored = [on_disk(tmp_path, str(k), A) for k, A in enumerate((X, Y))]
        found["disk"] = model.fit(*stored).predict(X)
    found["dask"] = model.fit(*lazy).predict(lazy[0]).compute()
    if hasattr(model, "partial_fit"):
        model = type(model)(**model.get_params())
        for rows in (slice(0, 50), slice(50, 120)):
            model.partial_fit(X[rows], Y[rows])
        found["batches"] = model.predict(X)
        moments = Moments.from_batches([(X[:70], Y[:70]), (X[70:], Y[70:])])
        found["moments"] = model.fit_moments(moments).predict(X)
        assert model.coef_.shape == (*MODES, *OUTPUTS)
    for way, predicted in found.items():
        assert_allclose(predicted, expected, atol=1e-9 * np.abs(Y).max(), err_msg=way)


@pytest.mark.parametrize("kind", ["h5py", "zarr"])
def test_arrays_with_modes_in_hdf5_and_zarr(kind, tmp_path):
    X, Y, _ = problem(n=120)
    library, da = pytest.importorskip(kind), pytest.importorskip("dask.array")
    if kind == "h5py":
        store = library.File(tmp_path / "data.h5", "w")
        stored = [
            da.from_array(store.create_dataset(name, data=A, chunks=(20, *A.shape[1:])))
            for name, A in (("x", X), ("y", Y))
        ]
    else:
        stored = []
        for name, A in (("x", X), ("y", Y)):
            array = library.open_array(
                tmp_path / name, mode="w", shape=A.shape, chunks=(20, *A.shape[1:]), dtype="f8"
            )
            array[...] = A
            stored.append(da.from_array(array))
    with memory_budget(2**15):
        model = RLS(input_rank=(2, 2)).fit(*stored)
    assert_allclose(model.predict(X), RLS(input_rank=(2, 2)).fit(X, Y).predict(X), atol=1e-9)


def test_torch_tensors_with_modes_stay_where_they_are():
    torch = pytest.importorskip("torch")
    X, Y, _ = problem()
    model = HOLRRCV().fit(torch.from_numpy(X), torch.from_numpy(Y))
    predicted = model.predict(torch.from_numpy(X))
    assert isinstance(predicted, torch.Tensor)
    assert_allclose(predicted.numpy(), HOLRRCV().fit(X, Y).predict(X), atol=1e-9)
    assert_allclose(model.predict(X), predicted.numpy(), atol=1e-9)


def test_scikit_learns_tools_take_arrays_and_tables():
    X, Y, _ = problem(n=60, noise=1.5)
    flat = Y.reshape(60, -1)
    assert cross_val_score(HOLRR((2, 2), input_rank=(2, 2)), X, flat, cv=3).shape == (3,)
    grid = {"rls__input_rank": [None, (1, 1), (2, 2)]}
    pipeline = make_pipeline(StandardScaler(), RLS(input_shape=MODES))
    search = GridSearchCV(pipeline, grid, cv=3).fit(X.reshape(60, -1), flat)
    assert search.best_params_["rls__input_rank"] in grid["rls__input_rank"]
    assert search.best_estimator_[-1].coef_.shape == (*MODES, 6)
    table, shape = to_matrix({"field": X, "index": X[:, 0, :2]})
    model = RLS(input_shape=shape).fit(table, Y)
    assert {name: A.shape for name, A in model.coef_.items()} == {
        "field": (*MODES, *OUTPUTS),
        "index": (2, *OUTPUTS),
    }
    sea = field()[0].fillna(0.0)
    table, shape = to_matrix(sea)
    assert shape == MODES
    assert table.columns[0] == "lat=-10.0,lon=0.0"
    assert_array_equal(table.index, sea.time)


def test_all_estimators_leave_out_land(row):
    sea, maps, land = field()
    used = sea.to_numpy()[:, ~land]
    params = {"input_rank": None} if "input_rank" in row.params else {}
    plain = row.make(**params).fit(used, maps.to_numpy())
    for given in (sea, sea.to_numpy()):
        model = row.make(**params).fit(given, maps)
        assert model.n_features_in_ == 12
        row.near(model.predict(given), plain.predict(used), 100)
        # What the cells hold in predictions does not matter.
        filled = given.fillna(7.0) if given is sea else np.nan_to_num(given)
        assert_array_equal(model.predict(filled), model.predict(given))
        if row.linear:
            assert_array_equal(np.isnan(model.coef_).all((2, 3)), land)
            row.near(model.coef_[~land], plain.coef_, 100)
    if row.batches and row.params.get("landmarks") is None:
        parts = (slice(0, 25), slice(25, None))
        batches = row.make(**params)
        for part in parts:
            batches.partial_fit(sea[part], maps[part])
        row.near(batches.predict(sea), plain.predict(used), 100)
        late = sea.copy()
        late[30, 1, 1] = 1.0
        batches = row.make(**params).partial_fit(late[parts[0]], maps[parts[0]])
        with pytest.raises(ValueError, match=r"'lat=0.0,lon=30.0' of X is missing in some"):
            batches.partial_fit(late[parts[1]], maps[parts[1]])


def test_blocks_and_tables_with_levels_are_fields():
    sea, maps, land = field()
    index = np.linspace(0, 1, N)
    values, Y = sea.to_numpy(), maps.to_numpy()
    plain = RLS().fit({"sst": values[:, ~land], "index": index}, Y)
    expected = plain.predict({"sst": values[:, ~land], "index": index})
    data = xr.Dataset({"sst": sea, "index": ("time", index)})
    for given in (data, {"sst": values, "index": index}, {"sst": sea, "index": index}):
        model = RLS().fit(given, Y)
        assert_allclose(model.predict(given), expected, atol=1e-10)
        assert_array_equal(np.isnan(model.coef_["sst"]).all((2, 3)), land)
    flat = np.column_stack([values.reshape(N, -1), index])
    model = RLS(input_shape={"sst": MODES, "index": ()}).fit(flat, Y)
    assert_allclose(model.predict(flat), expected, atol=1e-10)
    columns = pd.MultiIndex.from_product([sea.lat.to_numpy(), sea.lon.to_numpy()])
    table = pd.DataFrame(values.reshape(N, -1), columns=columns)
    expected = RLS().fit(values, Y)
    assert_allclose(RLS().fit(table, Y).predict(table), expected.predict(values), atol=1e-10)
    cells = sea.stack(cell=("lat", "lon"))  # one mode with labels
    assert_allclose(RLS().fit(cells, Y).predict(cells), expected.predict(values), atol=1e-10)


def test_columns_without_values_of_a_matrix_or_a_table_are_an_error(row):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(N, 4)), rng.normal(size=(N, *OUTPUTS))
    X[:, 2] = np.nan
    table = pd.DataFrame(X, columns=list("pqrs"))
    field = rng.normal(size=(N, *MODES))
    for given, name in (
        (X, "2"),
        (table, "'r'"),
        ({"field": field, "weather": X}, r"'weather\[2\]'"),
        ({"field": field, "weather": table}, r"'weather\[r\]'"),
    ):
        message = f"Leave out feature {name}, for which no sample has a finite value"
        with pytest.raises(ValueError, match=message):
            row.make().fit(given, Y)


# ---------------------------------------------------------------- geometry


def test_a_field_with_land_to_maps_that_share_its_dimensions():
    sea, maps, land = field()
    model = HOLRRCV().fit(sea, maps)
    assert model.n_features_in_ == 12
    assert model.coef_.shape == (*MODES, *OUTPUTS)
    assert_array_equal(np.isnan(model.coef_).all(axis=(2, 3)), land)
    found = model.to_dataset()
    assert found.coef.dims == ("lat_input", "lon_input", "lat", "lon")
    assert_array_equal(found.lat_input, sea.lat)
    assert_array_equal(found.lat, maps.lat)
    assert_array_equal(np.isnan(found.factor_feature).all("rank_feature"), land)
    predicted = model.predict(sea)
    assert predicted.dims == maps.dims
    # Values where the fit had none are ignored.
    assert predicted.equals(model.predict(sea.fillna(5.0)))
    assert model.factors_[0].shape[0] == 12
    assert model.feature_importances_.shape == (12,)


def test_dropping_cells_is_the_fit_to_the_others():
    sea, maps, land = field()
    for model in (RLS(), HOLRR((2, 2, 2)), HOLRRCV(input_rank=None)):
        kept = clone(model).fit(sea, maps)
        plain = model.fit(sea.to_numpy()[:, ~land], maps.to_numpy())
        assert_allclose(kept.predict(sea), plain.predict(sea.to_numpy()[:, ~land]), atol=1e-12)


def test_cells_that_are_missing_in_some_samples_are_an_error():
    sea, maps, _ = field()
    some = sea.copy()
    some[3, 0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        RLS().fit(some, maps)
    some = sea.copy()
    some[3, 1, 1] = 1.0
    with pytest.raises(ValueError, match=r"'lat=0.0,lon=30.0' of X is missing in some"):
        RLS().fit(some, maps)
    with pytest.raises(ValueError, match="No inputs are left"):
        RLS().fit(sea * np.nan, maps)


def test_land_on_disk_in_batches_and_of_dask(tmp_path):
    sea, maps, _ = field(n=120)
    X, Y = sea.to_numpy(), maps.to_numpy()
    options = {"input_rank": (2, 2)}
    expected = RLS(**options).fit(X, Y).predict(X)
    da = pytest.importorskip("dask.array")
    with memory_budget(2**15):
        stored = [on_disk(tmp_path, str(k), A) for k, A in enumerate((X, Y))]
        model = RLS(**options).fit(*stored)
        assert_allclose(model.predict(X), expected, atol=1e-9)
        assert_allclose(model.score(*stored), RLS(**options).fit(X, Y).score(X, Y), rtol=1e-12)
    lazy = [da.from_array(A, chunks=(25, *A.shape[1:])) for A in (X, Y)]
    model = RLS(**options).fit(*lazy)
    assert_allclose(model.predict(lazy[0]).compute(), expected, atol=1e-9)
    batches = RLS(**options).partial_fit(X[:60], Y[:60]).partial_fit(X[60:], Y[60:])
    assert batches.n_features_in_ == 12
    assert_allclose(batches.predict(X), expected, atol=1e-9)
    bad = X.copy()
    bad[70, 1, 1] = 1.0
    with memory_budget(2**15), pytest.raises(ValueError, match="of X is missing in some"):
        RLS(**options).fit(on_disk(tmp_path, "bad", bad), stored[1])


def test_files_keep_modes_blocks_land_and_projections(tmp_path):
    sea, maps, _ = field()
    blocks = xr.Dataset({"sst": sea, "index": ("time", np.linspace(0, 1, N))})
    model = RLS(input_rank={"sst": (2, 3)}).fit(blocks, maps)
    model.save(tmp_path / "model.holrr")
    again = load(tmp_path / "model.holrr")
    for one, two in zip(
        model.predict(blocks, return_std=True), again.predict(blocks, return_std=True), strict=True
    ):
        assert one.equals(two)
    assert again.input_rank_ == {"sst": (2, 3), "index": None}
    assert again.to_dataset().equals(model.to_dataset())


# ---------------------------------------------------------------- ranks of input modes


def test_ranks_of_input_modes_project_onto_orthonormal_directions():
    X, Y, W = problem(noise=0.01, n=200)
    model = RLS(0.0, input_rank=(2, 2), input_alpha=0.0).fit(X, Y)
    assert model.input_rank_ == (2, 2)
    for U, m in zip(model.input_factors_, MODES, strict=True):
        assert U.shape == (m, 2)
        assert_allclose(U.T @ U, np.eye(2), atol=1e-12)
    assert_allclose(model.coef_, W, atol=0.01)
    P, Q = (U @ U.T for U in model.input_factors_)
    assert_allclose(np.einsum("ia,jb,abkl->ijkl", P, Q, model.coef_), model.coef_, atol=1e-12)
    projected = np.einsum("nij,ia,jb->nab", X, *model.input_factors_)
    plain = RLS(0.0).fit(projected, Y)
    assert_allclose(plain.predict(projected), model.predict(X), atol=1e-10)


@linear
def test_full_ranks_of_input_modes_change_nothing(model):
    X, Y, _ = problem()
    full = type(model)(**{**model.get_params(), "input_rank": MODES}).fit(X, Y)
    flat = type(model)(**{**model.get_params(), "input_rank": None}).fit(X, Y)
    assert_allclose(full.predict(X), flat.predict(X), atol=1e-9)


@pytest.mark.parametrize("input_alpha", [0.1, 1.0, np.inf])
def test_a_rotation_of_a_mode_and_a_permutation_of_its_cells(input_alpha):
    X, Y, _ = problem()
    model = HOLRR((2, 2, 2), input_rank=(2, 2), input_alpha=input_alpha).fit(X, Y)
    order = np.array([2, 0, 3, 1])
    again = HOLRR((2, 2, 2), input_rank=(2, 2), input_alpha=input_alpha).fit(X[:, order], Y)
    assert_allclose(again.predict(X[:, order]), model.predict(X), atol=1e-9)
    assert_allclose(again.coef_, model.coef_[order], atol=1e-9)
    R = np.linalg.qr(np.random.default_rng(3).normal(size=(4, 4)))[0]
    turned = np.einsum("nij,ik->nkj", X, R)
    again = HOLRR((2, 2, 2), input_rank=(2, 2), input_alpha=input_alpha).fit(turned, Y)
    assert_allclose(again.predict(turned), model.predict(X), atol=1e-9)


def test_iterations_of_the_directions_are_counted_and_limited():
    """`max_iter` limits those of the coefficients and those of the directions."""
    X, Y, _ = problem(noise=1.0)
    model = HOLRR((2, 2, 2), input_rank=(2, 2), refine=True, tol=0.0)
    fits = [clone(model).set_params(max_iter=k).fit(X, Y) for k in (1, 2, 4)]
    assert [fit.n_iter_ for fit in fits] == [3, 5, 9]
    objectives = [fit.objective_ for fit in fits]
    assert objectives == sorted(objectives, reverse=True)


def test_weights_are_repetition_and_units_do_not_matter():
    X, Y, _ = problem()
    w = np.random.default_rng(0).integers(0, 3, size=N)
    weighted = RLS(input_rank=(2, 2)).fit(X, Y, w).predict(X)
    again = RLS(input_rank=(2, 2)).fit(np.repeat(X, w, axis=0), np.repeat(Y, w, axis=0))
    assert_allclose(again.predict(X), weighted, atol=1e-9)
    one = RLS(input_rank=(2, 2)).fit(X, Y).predict(X)
    for unit in (1e-60, 1e60):
        many = RLS(unit**2, input_rank=(2, 2)).fit(unit * X, Y).predict(unit * X)
        assert_allclose(many, one, atol=1e-9)


@pytest.mark.parametrize("n", [30, 8])
def test_samples_and_moments_give_the_same_directions(n):
    """Also with fewer samples than cells, for which samples have the dual form."""
    X, Y, _ = problem(n=n)
    w = np.random.default_rng(0).uniform(size=n)
    scale = np.random.default_rng(1).uniform(1, 2, size=MODES)
    for model in (RLS(0.5, input_rank=(2, 2)), HOLRR(2, 0.5, input_rank=(2, 2))):
        expected = model.fit(scale * X, Y, w).predict(scale * X)
        moments = Moments.from_arrays(scale * X, Y, w)
        found = model.fit_moments(moments).predict(scale * X)
        assert_allclose(found, expected, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("rank", "match"),
    [
        ((9, 2), "9 for mode 'input1' of X, which has size 4"),
        ((2,), r"each mode of X, \('input1', 'input2'\); got .* with 1 entries"),
        ({"a": 2}, "ranks for 'a'"),
        ((0, 2), "0 for mode 'input1'"),
        ((1.5, 2), "1.5 for mode 'input1'"),
    ],
)
def test_bad_ranks_of_input_modes_name_the_mode(rank, match):
    X, Y, _ = problem()
    for model in (RLS(input_rank=rank), HOLRRCV(input_rank=rank)):
        with pytest.raises(ValueError, match=match):
            model.fit(X, Y)


def test_ranks_of_input_modes_need_modes():
    X, Y, _ = problem()
    with pytest.raises(ValueError, match="needs inputs with at least two modes"):
        RLS(input_rank=(2, 2)).fit(X.reshape(N, -1), Y)
    with pytest.raises(ValueError, match="must be a dict from names of blocks"):
        RLS(input_rank=(2, 2)).fit({"a": X, "b": X}, Y)


# ---------------------------------------------------------------- searches


def test_a_search_finds_the_ranks_of_input_modes():
    modes = (9, 8)
    X, Y, W = problem(noise=1.0, n=150, modes=modes)
    flat, model = HOLRRCV(input_rank=None).fit(X, Y), HOLRRCV().fit(X, Y)
    assert model.input_rank_ == (2, 2)
    assert model.best_estimator_.input_rank == (2, 2)
    assert np.linalg.norm(model.coef_ - W) < 0.8 * np.linalg.norm(flat.coef_ - W)
    results = model.cv_results_
    n = len(results["input_ranks"])
    assert results["input_ranks"][0] == (modes,)  # all of X is a candidate
    assert results["mean_mse"].shape[:2] == (n, results["alphas"].size)
    assert len(results["input_alphas"]) == n
    low, high = model.predict_interval(X)
    assert low.shape == high.shape == Y.shape


@pytest.mark.parametrize(
    ("modes", "rank", "least", "most"), [((4, 16), 2, 48, 64), ((5, 13), 3, 30, 32)]
)
def test_projections_of_more_than_64_inputs_have_at_most_half_as_many(modes, rank, least, most):
    sizes = []
    for seed in (1, 2):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(120, *modes))
        W = np.tensordot(rng.normal(size=(modes[0], rank)), rng.normal(size=(rank, modes[1], 8)), 1)
        Y = np.tensordot(X, W, 2) + 4 * rng.normal(size=(120, 8))
        found = HOLRRCV([1.0, 10.0], cv=4).fit(X, Y).cv_results_["input_ranks"]
        assert found[0] == (modes,)
        sizes += [math.prod(ranks[0]) for ranks in found[1:]]
    assert least <= max(sizes) <= most


def test_errors_of_the_search_are_those_of_refits():
    X, Y, _ = problem(n=60)
    model = HOLRRCV(alphas=[0.1, 1.0, 10.0], selection="min", cv=4).fit(X, Y)
    candidate, _, *rank = model.best_index_
    ranks, alpha = (model.cv_results_[k][candidate] for k in ("input_ranks", "input_alphas"))
    assert model.input_rank_ == ranks[0]
    errors = []
    for k in range(4):
        test = np.arange(60) // 15 == k
        one = HOLRR(
            tuple(r + 1 for r in rank), model.alpha_, input_rank=ranks[0], input_alpha=alpha
        ).fit(X[~test], Y[~test])
        errors.append(np.mean((one.predict(X[test]) - Y[test]) ** 2))
    assert_allclose(-model.best_score_, np.mean(errors), rtol=1e-8)
    again = HOLRR(**model.best_estimator_.get_params()).fit(X, Y)
    assert_allclose(again.predict(X), model.predict(X), atol=1e-9)


def test_a_matrix_is_searched_as_before():
    X, Y, _ = problem()
    flat = X.reshape(N, -1)
    one, two = HOLRRCV().fit(flat, Y), HOLRRCV(input_rank=None).fit(flat, Y)
    assert_array_equal(one.predict(flat), two.predict(flat))
    assert one.cv_results_["mean_mse"].ndim == 4
    assert not hasattr(one, "input_rank_")
    assert HOLRRCV(input_rank=None).fit(X, Y).input_rank_ == MODES


# ---------------------------------------------------------------- refinement


def test_refinement_lowers_the_objective_and_is_the_same_from_moments():
    X, Y, _ = problem(noise=2.0, n=60, modes=(6, 5))
    options = {"rank": (2, 2, 2), "alpha": 0.5, "input_rank": (2, 2)}
    start = HOLRR(**options).fit(X, Y)
    objectives = [start.objective_]
    for rounds in (1, 3, 100):
        model = HOLRR(**options, refine=True, max_iter=rounds, tol=1e-9).fit(X, Y)
        objectives.append(model.objective_)
        found = np.sum((model.predict(X) - Y) ** 2) + 0.5 * np.sum(model.coef_**2)
        assert_allclose(model.objective_, found, rtol=1e-9)
    assert np.all(np.diff(objectives) <= 1e-9 * objectives[0])
    assert objectives[-1] < 0.99 * objectives[0]
    by_moments = HOLRR(**options, refine=True, tol=1e-9)
    by_moments.fit_moments(Moments.from_arrays(X, Y))
    assert_allclose(by_moments.objective_, objectives[-1], rtol=1e-6)
    for unit in (1e-40, 1e40):
        scaled = HOLRR(**{**options, "alpha": 0.5 * unit**2}, refine=True, tol=1e-9)
        assert_allclose(scaled.fit(unit * X, Y).objective_, objectives[-1], rtol=1e-6)


def test_no_basis_near_the_refined_one_is_better():
    """The refined bases are a stationary point: turning one of them raises the objective."""
    X, Y, _ = problem(noise=1.0, n=60, modes=(6, 5))
    model = HOLRR((4, 3, 2), 0.5, input_rank=(2, 2), refine=True, max_iter=500, tol=0.0)
    model.fit(X, Y)
    rng = np.random.default_rng(0)
    for mode in (0, 1):
        for _ in range(3):
            bases = [np.array(U) for U in model.input_factors_]
            bases[mode] = np.linalg.qr(bases[mode] + 1e-3 * rng.normal(size=bases[mode].shape))[0]
            projected = np.einsum("nij,ia,jb->nab", X, *bases).reshape(60, -1)
            assert RLS(0.5).fit(projected, Y).objective_ > model.objective_


# ---------------------------------------------------------------- what newcomers ran into


def test_where_inputs_do_not_matter_the_search_keeps_all_of_them():
    """The best of many projections of pure noise is not chosen for its luck."""
    rng = np.random.default_rng(0)
    kept = 0
    for _ in range(10):
        X = rng.normal(size=(60, 6, 5))
        W = np.tensordot(rng.normal(size=(6, 5, 3)), rng.normal(size=(3, 4)), 1)
        Y = np.tensordot(X, W, 2)
        model = RLSCV(cv=4).fit(X, Y + Y.std() * rng.normal(size=Y.shape))
        kept += model.input_rank_ == (6, 5)
    assert kept >= 8


def test_input_shape_holds_for_moments():
    X, Y, _ = problem()
    moments = Moments.from_arrays(X.reshape(N, -1), Y)
    model = RLS(input_shape=MODES, input_rank=(2, 2)).fit_moments(moments)
    assert_allclose(model.coef_, RLS(input_rank=(2, 2)).fit(X, Y).coef_, atol=1e-10)
    folds = [Moments.from_arrays(X[k::3].reshape(-1, 12), Y[k::3]) for k in range(3)]
    assert HOLRRCV(input_shape=MODES).fit_fold_moments(folds).coef_.shape == (*MODES, *OUTPUTS)


def test_standard_errors_have_the_modes_of_the_inputs():
    sea, maps, land = field()
    model = LRR(2)
    found = standard_errors(model, sea, maps).to_dataset()
    assert found.coef_std_error.dims == found.coef.dims
    assert_array_equal(np.isnan(found.coef_std_error).all(("lat", "lon")), land)
    assert_array_equal(np.isnan(found.factor_feature_std_error).all("rank_feature"), land)
    blocks = {"field": sea.to_numpy()[:, ~land], "index": np.linspace(0, 1, N)}
    found = standard_errors(LRR(2), blocks, maps).to_dataset()
    assert found.coef_field_std_error.shape == found.coef_field.shape
    assert found.coef_index_std_error.shape == found.coef_index.shape
    search = HOLRRCV().fit(sea, maps)
    assert standard_errors(search, sea, maps, stability=True).coef.std_error.shape[0] == 10


def test_standard_errors_of_searches_of_few_samples_leave_out_land():
    sea, maps, land = field(n=9)
    cells = sea.stack(cell=("lat", "lon"))
    two = xr.Dataset({"cells": (("time", "cell"), cells.to_numpy()), "index": sea[:, 0]})
    table = pd.DataFrame(cells.to_numpy(), columns=cells.indexes["cell"])
    X, Y = sea.to_numpy()[:, ~land], maps.to_numpy()
    expected = standard_errors(RLSCV([1.0, 10.0], cv=3).fit(X, Y), X, Y, n_groups=4)
    for given in (sea, cells, table, two):
        model = RLSCV([1.0, 10.0], cv=3, input_rank=None).fit(given, Y)
        errors = standard_errors(model, given, Y, n_groups=4)
        if given is not two:
            assert_allclose(errors.coef.std_error, expected.coef.std_error, atol=1e-9)


def test_other_coordinates_are_named():
    sea, maps, _ = field()
    model = RLS().fit(sea.fillna(0.0), maps)
    with pytest.raises(ValueError, match=r"along 'lat' than the fit: at position 0 X has -9.0"):
        model.predict(sea.fillna(0.0).assign_coords(lat=sea.lat + 1))


def test_masked_cells_are_missing_ones():
    sea, maps, _ = field()
    masked = np.ma.masked_invalid(sea.to_numpy())
    model = RLS().fit(masked, maps.to_numpy())
    expected = RLS().fit(sea.to_numpy(), maps.to_numpy())
    assert_array_equal(model.predict(masked), expected.predict(sea.to_numpy()))


def test_outputs_that_are_never_observed_beside_inputs_with_modes():
    """Land on both sides: the ranks of the inputs are searched for, or given."""
    X, Y, _ = problem(noise=1.0, n=150, modes=(9, 8))
    Y[:, 1, 1] = np.nan
    for model in (RLSCV(missing="ignore"), HOLRRCV(missing="ignore")):
        assert model.fit(X, Y).input_rank_ == (2, 2)
        assert np.isnan(model.predict(X)[:, 1, 1]).all()
    fixed = HOLRR((2, 2, 2), input_rank=(2, 2), missing="ignore").fit(X, Y)
    assert fixed.input_rank_ == (2, 2)
    Y[0, 0, 0] = np.nan  # in some samples only
    assert HOLRRCV(missing="ignore").fit(X, Y).input_rank_ == (9, 8)
    assert HOLRRCV(missing="ignore", input_rank=(2, 2)).fit(X, Y).input_rank_ == (2, 2)
    single = HOLRR((2, 2, 2), input_rank=(2, 2), missing="ignore").fit(X, Y)
    assert single.input_rank_ == (2, 2)


# ---------------------------------------------------------------- blocks with labels


def test_rows_of_blocks_are_compared_with_outputs_and_each_other():
    sea, maps, _ = field()
    sea = sea.fillna(0.0)
    index = pd.DataFrame({"a": np.linspace(0, 1, N)}, index=sea.indexes["time"])
    model = RLS().fit({"sea": sea, "index": index}, maps)
    for blocks in (
        {"sea": sea[::-1], "index": index[::-1]},
        {"sea": sea, "index": index[::-1]},
        {"sea": sea[::-1], "index": index},
    ):
        with pytest.raises(ValueError, match="have different labels"):
            RLS().fit(blocks, maps)
        with pytest.raises(ValueError, match="have different labels"):
            model.score(blocks, maps)
    with pytest.raises(ValueError, match=r"X and X\['index'\] have different labels"):
        model.predict({"sea": sea[:5], "index": index[4::-1]})


def test_predictions_of_blocks_have_the_labels_of_their_rows():
    sea, maps, _ = field()
    sea = sea.fillna(0.0)
    index = xr.DataArray(np.linspace(0, 1, N), dims="time", coords={"time": sea.time})
    blocks = {"sea": sea, "index": index}
    model = LRR(2).fit(blocks, maps)
    some = {name: block[5:8] for name, block in blocks.items()}
    assert model.predict(some).equals(model.predict(xr.Dataset(some)))
    assert model.transform(some).dims == ("time", "component")
    turned = {"sea": sea[5:8].transpose("lat", "lon", "time"), "index": index[5:8]}
    assert_array_equal(model.predict(turned), model.predict(some))
    table = pd.DataFrame(maps.to_numpy().reshape(N, -1), index=sea.indexes["time"])
    frames = {"a": pd.DataFrame(sea.to_numpy().reshape(N, -1), index=table.index)}
    found = RLS().fit(frames, table).predict({"a": frames["a"][5:8]})
    assert_array_equal(found.index, table.index[5:8])


def test_moments_of_fields_are_those_of_the_cells_with_values():
    sea, maps, land = field(n=60)
    parts = [(sea[:20], maps[:20]), (sea[20:40], maps[20:40]), (sea[40:], maps[40:])]
    expected = HOLRR(2).fit(sea, maps)
    for moments in (
        sum(Moments.from_arrays(*part) for part in parts),
        Moments.from_batches(iter(parts)),
    ):
        model = HOLRR(2).fit_moments(moments)
        assert_allclose(model.predict(sea), expected.predict(sea), atol=1e-9)
        assert_array_equal(np.isnan(model.coef_).all((2, 3)), land)
    folds = [Moments.from_arrays(*part) for part in parts]
    search = RLSCV([1.0, 10.0], input_rank=None).fit_fold_moments(folds)
    in_memory = RLSCV([1.0, 10.0], cv=3, input_rank=None).fit(sea, maps)
    assert_allclose(search.coef_, in_memory.coef_, atol=1e-9)


def test_moments_of_other_modes_or_other_land_are_not_merged():
    X, Y, _ = problem()
    one = Moments.from_arrays(X[:20], Y[:20])
    with pytest.raises(ValueError, match=r"one has the modes \[\(4, 3\)\] and the other"):
        one + Moments.from_arrays(X[20:].transpose(0, 2, 1), Y[20:])
    parts = []
    for rows, cell in ((slice(0, 20), (0, 0)), (slice(20, 40), (1, 1))):
        some = X[rows].copy()
        some[:, *cell] = np.nan
        parts.append(RLS().partial_fit(some, Y[rows]).moments_)
    with pytest.raises(ValueError, match="different cells of X"):
        parts[0] + parts[1]


def test_a_table_in_another_order_is_put_in_that_of_its_grid():
    X, Y, _ = problem()
    columns = pd.MultiIndex.from_product([list("abcd"), [1, 2, 3]])
    table = pd.DataFrame(X.reshape(N, -1), columns=columns)
    shuffled = table.iloc[:, np.random.default_rng(0).permutation(12)]
    matrix, shape = to_matrix(shuffled)
    expected = RLS().fit(shuffled, Y).coef_
    assert_allclose(RLS(input_shape=shape).fit(matrix, Y).coef_, expected, atol=1e-12)
    with pytest.raises(ValueError, match="not all combinations"):
        to_matrix(shuffled.iloc[:, :-1])


def test_single_precision_is_kept():
    torch = pytest.importorskip("torch")
    X, Y, _ = problem()
    x, y = X.astype(np.float32), Y.astype(np.float32)
    model = RLS(input_rank=(2, 2)).fit(x, y)
    assert model.coef_.dtype == np.float32
    of_torch = RLS(input_rank=(2, 2)).fit(torch.from_numpy(x), torch.from_numpy(y))
    assert of_torch.coef_.dtype == torch.float32
    assert_allclose(of_torch.coef_.numpy(), model.coef_, atol=1e-4)


def test_ranks_above_the_number_of_features_are_lowered():
    X, Y, _ = problem()
    model = HOLRR((6, 2, 2), input_rank=(2, 2)).fit(X, Y)
    assert model.rank_ == (4, 2, 2)
    batches = HOLRR((3, 2, 2), input_rank=(2, 2)).partial_fit(X[:1], Y[:1])
    batches.partial_fit(X[1:], Y[1:])
    assert_allclose(
        batches.predict(X), HOLRR((3, 2, 2), input_rank=(2, 2)).fit(X, Y).predict(X), atol=1e-9
    )
    with pytest.raises(ValueError, match=r"rank\[0\]"):
        HOLRR((13, 2, 2), input_rank=(2, 2)).fit(X, Y)


def test_blocks_of_other_libraries():
    torch, polars = pytest.importorskip("torch"), pytest.importorskip("polars")
    X, Y, _ = problem()
    with pytest.raises(TypeError, match=r"one library; got \['Tensor', 'ndarray'\]"):
        RLS().fit({"a": torch.from_numpy(X), "b": X[:, 0]}, Y)
    table = polars.DataFrame(X[:, 0], schema=list("pqr"))
    model = RLS().fit({"a": X, "b": table}, Y)
    with pytest.raises(ValueError, match="feature names"):
        model.predict({"a": X, "b": table[list("rqp")]})
    masked = np.ma.masked_array(X, mask=np.zeros(X.shape, dtype=bool))
    masked[:, 1, 1] = np.ma.masked
    dropped = RLS().fit({"a": masked}, Y)
    assert np.isnan(dropped.coef_[1, 1]).all()


def test_blocks_on_disk_equal_those_in_memory(tmp_path):
    X, Y, _ = problem(n=120)
    parts = {"maps": X, "index": X[:, 0, 0] ** 2, "rates": np.exp(X[:, :, 1])}
    expected = RLS().fit(parts, Y)
    with memory_budget(2**15):
        stored = {name: on_disk(tmp_path, name, A) for name, A in parts.items()}
        model = RLS().fit(stored, on_disk(tmp_path, "y", Y))
    assert_allclose(model.predict(parts), expected.predict(parts), atol=1e-9)
