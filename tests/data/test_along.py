"""`Along` applies a transformer of columns along one mode of inputs of every kind."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.feature_selection import VarianceThreshold
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from holrr import HOLRR, RLS
from holrr.data import Along, Standardizer

N, M = 12, 21
WAVELENGTHS = np.arange(1100.0, 1100.0 + 2 * M, 2)
X = np.random.default_rng(0).normal(size=(N, M)).cumsum(axis=1) + 3
TENSOR = np.random.default_rng(1).normal(size=(N, 3, M)).cumsum(axis=2)
Y = np.random.default_rng(2).normal(size=(N, 2, 2))


def steps():
    """Transformers that keep the features, select some of them, and make others."""
    X_constant = VarianceThreshold(3.0)
    return [StandardScaler(), X_constant, PCA(4), FunctionTransformer(lambda A: A[:, ::2])]


over_steps = pytest.mark.parametrize("step", steps(), ids=lambda s: type(s).__name__)


def expected(step, A, axis):
    """Apply a transformer to an array whose axis `axis` has the features."""
    moved = np.moveaxis(A, axis, -1)
    found = clone(step).fit_transform(moved.reshape(-1, moved.shape[-1]))
    return np.moveaxis(found.reshape(*moved.shape[:-1], -1), -1, axis)


@over_steps
def test_arrays_are_transformed_along_their_last_mode(step):
    for A in (X, TENSOR):
        along = Along(step)
        assert_allclose(along.fit_transform(A), expected(step, A, A.ndim - 1))
        assert_allclose(along.transform(A[3:5]), along.transform(A)[3:5])
        assert_allclose(along.fit(A.tolist()).transform(A), along.fit(A).transform(A))


def test_arrays_of_other_libraries_stay_where_they_are(other_xp):
    found = Along(StandardScaler()).fit_transform(other_xp.asarray(TENSOR))
    assert other_xp.owns(found)
    assert_allclose(other_xp.to_numpy(found), expected(StandardScaler(), TENSOR, 2))


@over_steps
@pytest.mark.parametrize("axis", [1, 2])
def test_dimensions_of_xarray_are_found_by_name(step, axis):
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    coords = {
        "day": np.arange(N),
        "nm": WAVELENGTHS,
        "colour": ("nm", [f"c{j}" for j in range(M)]),
        "probe": list("abc"),
    }
    data = xr.DataArray(TENSOR, coords, ("day", "probe", "nm"), name="nir", attrs={"unit": "a"})
    mode = data.dims[axis]
    if isinstance(step, PCA):
        step = PCA(2)
    along = Along(step, mode).fit(data)
    found = along.transform(data)
    assert_allclose(found.values, expected(step, TENSOR, axis))
    assert (found.name, found.attrs, found.dims) == ("nir", {"unit": "a"}, data.dims)
    other = "probe" if mode == "nm" else "nm"
    assert_array_equal(found[other], data[other])
    if isinstance(step, StandardScaler):
        assert found.coords.equals(data.coords)
    if isinstance(step, PCA):
        assert found[mode].values.tolist() == ["pca0", "pca1"]
        assert ("colour" in found.coords) == (mode == "probe")
    turned = along.transform(data.transpose("nm", "day", "probe"))
    assert turned.dims == ("nm", "day", "probe")
    xr.testing.assert_allclose(turned.transpose(*data.dims), found)


def test_a_selection_keeps_the_coordinates_of_what_it_keeps():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    step = VarianceThreshold(3.0)
    kept = step.fit(X).get_support()
    assert 1 < kept.sum() < M - 1
    table = pd.DataFrame(X, index=range(5, 5 + N), columns=WAVELENGTHS)
    along = Along(step).fit(table)
    pd.testing.assert_frame_equal(along.transform(table), table.loc[:, kept])
    assert along.get_feature_names_out().tolist() == [str(w) for w in WAVELENGTHS[kept]]
    polars = pytest.importorskip("polars", reason="polars is not installed")
    square = polars.DataFrame({f"{w:g}": X[:, j] for j, w in enumerate(WAVELENGTHS[:N])})
    found = Along(StandardScaler()).fit_transform(square)
    assert found.columns == square.columns
    assert_allclose(found.to_numpy(), StandardScaler().fit_transform(X[:, :N]))


@over_steps
@pytest.mark.parametrize("level", ["probe", "nm"])
def test_levels_of_columns_are_modes(step, level):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    columns = pd.MultiIndex.from_product([list("abc"), WAVELENGTHS], names=["probe", "nm"])
    table = pd.DataFrame(TENSOR.reshape(N, -1), columns=columns)
    if isinstance(step, PCA):
        step = PCA(2)
    along = Along(step, level).fit(table)
    wanted = expected(step, TENSOR, 1 + columns.names.index(level)).reshape(N, -1)
    found = along.transform(table)
    assert_allclose(found, wanted)
    assert found.columns.names == ["probe", "nm"]
    assert len(along.get_feature_names_out()) == found.shape[1]
    if isinstance(step, FunctionTransformer):
        return  # it depends on the order of the columns
    order = np.random.default_rng(3).permutation(3 * M)
    mixed = Along(step, level).fit_transform(table.iloc[:, order])
    pd.testing.assert_frame_equal(mixed[found.columns], found)
    with pytest.raises(ValueError, match=r"not all combinations of their levels.*: 1 are missing"):
        Along(step, level).fit(table.iloc[:, 1:])


def test_only_the_named_blocks_are_transformed():
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    data = xr.Dataset({"nir": (("day", "nm"), X), "ph": ("day", X[:, 0])}, {"nm": WAVELENGTHS})
    found = Along(PCA(3), blocks="nir").fit_transform(data)
    assert_allclose(found["nir"], PCA(3).fit_transform(X))
    assert_array_equal(found["ph"], data["ph"])
    arrays = {"ph": X[:, 0], "nir": TENSOR}
    found = Along(StandardScaler(), blocks=["nir"]).fit_transform(arrays)
    assert list(found) == ["ph", "nir"]
    assert found["ph"] is arrays["ph"]
    assert_allclose(found["nir"], expected(StandardScaler(), TENSOR, 2))
    with pytest.raises(ValueError, match=r"X has the blocks \['nir', 'ph'\]; name those"):
        Along(PCA(3)).fit(data)
    with pytest.raises(ValueError, match="blocks contains 'vis', but X has the blocks"):
        Along(PCA(3), blocks="vis").fit(data)
    both = data.assign(vis=(("day", "nm"), X + 1))
    with pytest.raises(ValueError, match="changes the size of the dimension 'nm', which variable"):
        Along(PCA(3), blocks="nir").fit_transform(both)


def test_parameters_are_searched_and_chemotools_keeps_the_labels():
    chemotools = pytest.importorskip("chemotools.derivative", reason="chemotools is not installed")
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    data = xr.DataArray(TENSOR, {"nm": WAVELENGTHS}, ("day", "probe", "nm"))
    pipe = make_pipeline(
        Along(chemotools.SavitzkyGolay(5, 2, 1), "nm"), Standardizer(), HOLRR(rank=2)
    )
    coef = pipe.fit(data, Y)[-1].to_dataset().coef
    assert_array_equal(coef["nm"], WAVELENGTHS)
    name = "along__transformer__window_length"
    pipe.set_params(along__mode=None)
    search = GridSearchCV(pipe, {name: [5, 9]}, cv=KFold(3)).fit(TENSOR, Y)
    best = search.best_params_[name]
    alone = chemotools.SavitzkyGolay(best, 2, 1).fit_transform(TENSOR.reshape(-1, M))
    by_hand = make_pipeline(Standardizer(), HOLRR(rank=2)).fit(alone.reshape(TENSOR.shape), Y)
    assert_allclose(
        search.predict(TENSOR), by_hand.predict(alone.reshape(TENSOR.shape)), rtol=1e-10
    )


@pytest.mark.parametrize(
    ("params", "A", "told"),
    [
        ({"mode": "nm"}, TENSOR, "mode='nm' is not a mode of X, which has no named modes"),
        ({"blocks": "nir"}, X, "blocks contains 'nir', but X has no named blocks"),
        ({}, {"ph": X[:, 0]}, "block 'ph' of X has one number for each sample, and so no mode"),
        ({}, np.where(X > 5, np.nan, X)[:, :0], "0 feature"),
    ],
)
def test_bad_arguments_are_refused_and_leave_the_fit_as_it_was(params, A, told):
    along = Along(StandardScaler()).fit(X)
    before = along.transform(X)
    with pytest.raises(ValueError, match=told):
        along.set_params(**params).fit(A)
    assert_array_equal(along.set_params(mode=None, blocks=None).transform(X), before)


def test_inputs_that_are_not_in_memory_are_refused():
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    with pytest.raises(TypeError, match="Along needs inputs in memory; got a Dask array"):
        Along(StandardScaler()).fit(da.from_array(X))
    with pytest.raises(TypeError, match="sparse"):
        Along(StandardScaler()).fit(scipy.sparse.csr_array(X))


def test_other_labels_than_in_fit_are_refused():
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    data = xr.DataArray(X, {"nm": WAVELENGTHS}, ("day", "nm"))
    along = Along(StandardScaler()).fit(data)
    with pytest.raises(ValueError, match="feature names should match"):
        along.transform(data.assign_coords(nm=WAVELENGTHS + 1))


def test_coefficients_have_the_names_of_the_transformed_features():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    table = pd.DataFrame(X, columns=WAVELENGTHS)
    pipe = make_pipeline(Along(PCA(2)), RLS()).fit(table, Y)
    assert pipe[-1].feature_names_in_.tolist() == ["pca0", "pca1"]


@parametrize_with_checks([Along(StandardScaler()), Along(PCA(1))])
def test_the_checks_of_scikit_learn_pass(estimator, check):
    check(estimator)
