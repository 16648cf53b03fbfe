"""VIP and selectivity ratio: closed forms, invariances, blocks and modes, labels, refusals."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose
from sklearn.cross_decomposition import PLSRegression
from sklearn.pipeline import make_pipeline

import holrr
from holrr import HOLRR, HOLRRCV, LRR, RLS, KernelRLS
from holrr.data import Standardizer
from holrr.diagnostics import selectivity_ratio, vip

N, D0, SHAPE = 70, 6, (3, 4)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, D0)) @ RNG.normal(size=(D0, D0)) + 3
W = np.einsum("ia,ja,ka->ijk", *(RNG.normal(size=(d, 2)) for d in (D0, *SHAPE)))
Y = np.tensordot(X, W, 1) + RNG.normal(size=(N, *SHAPE))


def naive_vip(coef, X, center=True, standardize=False):
    """By the singular value decomposition of the predictions."""
    C = coef.reshape(len(coef), -1)
    Xc = X - X.mean(axis=0) if center else X
    _, s, Vt = np.linalg.svd(Xc @ C, full_matrices=False)
    spread = np.sqrt(np.mean(Xc**2, axis=0))[:, None]
    weights = C @ Vt.T * (spread if standardize else 1.0)
    keep = s > 1e-9 * s[0]
    weights = weights[:, keep] / np.linalg.norm(weights[:, keep], axis=0)
    return np.sqrt(len(C) * weights**2 @ s[keep] ** 2 / np.sum(s[keep] ** 2))


def naive_r2(coef, X, center=True):
    """Squared correlations of inputs and predictions, (d, D), and the variances of these, (D,)."""
    Xc = X - X.mean(axis=0) if center else X
    P = Xc @ coef.reshape(len(coef), -1)
    squares = np.sum(P**2, axis=0)
    return (Xc.T @ P) ** 2 / np.sum(Xc**2, axis=0)[:, None] / squares, squares


def uncorrelated(n, d):
    """Inputs about zero with the identity as second moments."""
    A = np.random.default_rng(1).normal(size=(n, d))
    return np.linalg.qr(A - A.mean(axis=0))[0]


# ---------------------------------------------------------------- closed forms


def test_vip_of_one_output_is_the_absolute_coefficients_over_their_root_mean_square():
    model = RLS(alpha=2.0).fit(X, Y[:, 0, 0])
    b = np.abs(model.coef_)
    assert_allclose(vip(model, X), b / np.sqrt(np.mean(b**2)), rtol=1e-12)


@pytest.mark.parametrize("n_components", [1, 2, 3])
def test_vip_of_uncorrelated_inputs_is_that_of_partial_least_squares(n_components):
    U = uncorrelated(N, D0)
    Yc = np.random.default_rng(2).normal(size=(N, 5)) + U @ np.arange(30.0).reshape(6, 5)
    pls = PLSRegression(n_components, scale=False, tol=1e-14, max_iter=5000).fit(U, Yc)
    explained = np.sum(pls.x_scores_**2, axis=0) * np.sum(pls.y_loadings_**2, axis=0)
    known = np.sqrt(D0 * pls.x_weights_**2 @ explained / explained.sum())
    model = LRR(rank=n_components, alpha=0.0).fit(U, Yc)
    assert_allclose(vip(model, U), known, rtol=1e-6)


def test_vip_of_one_component_and_one_output_is_that_of_partial_least_squares():
    """With a large penalty ridge coefficients have the direction of X'y, as one component has."""
    y = Y[:, 0, 0]
    pls = PLSRegression(1, scale=False).fit(X, y)
    known = np.sqrt(D0) * np.abs(pls.x_weights_[:, 0])
    assert_allclose(vip(RLS(alpha=1e9).fit(X, y), X), known, rtol=1e-5)


def test_selectivity_ratio_of_one_output_is_that_of_target_projection():
    """Explained over residual sums of squares of the inputs, by the score of the coefficients."""
    model = RLS(alpha=2.0).fit(X, Y[:, 0, 0])
    Xc = X - X.mean(axis=0)
    t = Xc @ model.coef_ / np.linalg.norm(model.coef_)
    p = Xc.T @ t / (t @ t)
    explained, residual = t @ t * p**2, np.sum((Xc - np.outer(t, p)) ** 2, axis=0)
    assert_allclose(selectivity_ratio(model, X), explained / residual, rtol=1e-10)


def test_the_pooled_ratio_sums_explained_and_residual_variances_over_outputs():
    model = HOLRR(rank=2, alpha=1.0).fit(X, Y)
    r2, v = naive_r2(model.coef_, X)
    P = model.predict(X).reshape(N, -1)
    assert_allclose(v, N * P.var(axis=0))
    assert_allclose(r2[2, 5], np.corrcoef(X[:, 2], P[:, 5])[0, 1] ** 2)
    assert_allclose(selectivity_ratio(model, X), (r2 @ v) / ((1 - r2) @ v), rtol=1e-10)
    uniform = r2.mean(axis=1)
    found = selectivity_ratio(model, X, average="uniform")
    assert_allclose(found, uniform / (1 - uniform), rtol=1e-10)
    each = selectivity_ratio(model, X, average=None)
    assert each.shape == (D0, *SHAPE)
    assert_allclose(each.reshape(D0, -1), r2 / (1 - r2), rtol=1e-8)


def test_an_input_that_the_predictions_determine_has_an_infinite_ratio():
    model = RLS(alpha=0.0).fit(X[:, :1], X[:, 0])
    assert selectivity_ratio(model, X[:, :1]).tolist() == [np.inf]
    assert_allclose(vip(model, X[:, :1]), [1.0])


def test_a_constant_input_has_no_importance():
    A = np.column_stack([X, np.full(N, 0.1)])
    model = RLS().fit(A, Y)
    assert selectivity_ratio(model, A)[-1] == 0
    assert vip(model, A, standardize=True)[-1] == 0


# ---------------------------------------------------------------- every linear model


@pytest.mark.rows("linear")
@pytest.mark.filterwarnings("ignore:The best penalty", "ignore:1 fits of the cross-validation")
def test_the_mean_square_of_vip_is_one_and_both_agree_with_their_definitions(row):
    model = row.make().fit(X, Y)
    if hasattr(model, "X_fit_"):
        pytest.skip("a kernel has no coefficients of the inputs, also where it is linear")
    center, coef = model.fit_intercept, model.coef_
    assert_allclose(np.mean(vip(model, X) ** 2), 1.0, rtol=1e-12)
    for standardize in (False, True):
        expected = naive_vip(coef, X, center, standardize)
        assert_allclose(vip(model, X, standardize=standardize), expected, rtol=1e-6, atol=1e-9)
    r2, v = naive_r2(coef, X, center)
    share = r2 @ v / v.sum()
    assert_allclose(selectivity_ratio(model, X), share / (1 - share), rtol=1e-6)


def test_a_stack_counts_with_all_its_models():
    model = HOLRRCV().fit(X, Y)
    assert len(model.stack_weights_) > 1
    assert_allclose(vip(model, X), naive_vip(model.coef_, X), rtol=1e-8)


def test_own_inputs_count():
    model = RLS(own=[(0, 0)], own_alpha=0.1).fit(X[:, :3], Y)
    assert np.abs(model.own_coef_).max() > 0.1
    assert_allclose(vip(model, X[:, :3]), naive_vip(model.coef_, X[:, :3]), rtol=1e-8)


def test_without_an_intercept_nothing_is_centred():
    model = HOLRR(rank=2, fit_intercept=False).fit(X, Y)
    assert_allclose(vip(model, X), naive_vip(model.coef_, X, center=False), rtol=1e-8)


def test_outputs_that_were_never_observed_do_not_count():
    Z = Y.copy()
    Z[:, 1, 2] = np.nan
    model = RLS(missing="ignore").fit(X, Z)
    coef = np.delete(model.coef_.reshape(D0, -1), 6, axis=1)
    assert_allclose(vip(model, X), naive_vip(coef, X), rtol=1e-8)
    each = selectivity_ratio(model, X, average=None)
    assert np.isnan(each[:, 1, 2]).all()
    assert np.isnan(each).sum() == D0


def test_output_weights_of_the_fit_weigh_the_outputs():
    v = [np.array([1.0, 4.0, 0.25]), None]
    model = HOLRR(rank=2, output_weight=v).fit(X, Y)
    scaled = model.coef_ * np.sqrt(v[0])[:, None]
    assert_allclose(vip(model, X), naive_vip(scaled, X), rtol=1e-8)


# ---------------------------------------------------------------- invariances


@pytest.mark.parametrize("measure", [vip, selectivity_ratio])
def test_importance_does_not_depend_on_the_rotation_of_the_factors(measure):
    model = HOLRR(rank=2).fit(X, Y)
    before = measure(model, X)
    T = model.tucker_
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(2, 2)))[0] * [1.0, -3.0]
    core = np.tensordot(np.linalg.inv(turn), T.core, 1)
    model.tucker_ = holrr.Tucker(core, (T.factors[0] @ turn, *T.factors[1:]))
    assert_allclose(measure(model, X), before, rtol=1e-9)


@pytest.mark.parametrize("measure", [vip, selectivity_ratio])
def test_importance_does_not_depend_on_the_units_of_y(measure):
    model, scaled = RLS().fit(X, Y), RLS().fit(X, 1e6 * Y + 7)
    assert_allclose(measure(scaled, X), measure(model, X), rtol=1e-7)


@pytest.mark.parametrize("measure", [vip, selectivity_ratio])
def test_importance_follows_a_permutation_of_the_inputs(measure):
    order = np.random.default_rng(4).permutation(D0)
    model, permuted = HOLRR(rank=2).fit(X, Y), HOLRR(rank=2).fit(X[:, order], Y)
    assert_allclose(measure(permuted, X[:, order]), measure(model, X)[order], rtol=1e-8)


@pytest.mark.parametrize(
    "measure", [selectivity_ratio, lambda model, X: vip(model, X, standardize=True)]
)
def test_the_units_of_the_inputs_do_not_count_without_a_penalty(measure):
    units = 10.0 ** np.arange(-3, 3)
    model, scaled = RLS(alpha=0.0).fit(X, Y), RLS(alpha=0.0).fit(X * units, Y)
    assert_allclose(measure(scaled, X * units), measure(model, X), rtol=1e-6)


@pytest.mark.parametrize("measure", [vip, selectivity_ratio])
def test_weights_are_repetitions(measure):
    w = np.random.default_rng(5).integers(0, 3, N)
    model = RLS().fit(X, Y, sample_weight=w)
    found = measure(model, X, sample_weight=w)
    assert_allclose(found, measure(model, np.repeat(X, w, axis=0)), rtol=1e-9)


# ---------------------------------------------------------------- blocks, modes, kinds of inputs

MODES = (3, 2)


def test_a_mode_has_the_root_mean_square_of_its_inputs():
    """Which is the VIP of N-way models, whose weights are products of a vector for each mode."""
    A = X.reshape(N, *MODES)
    model = RLS().fit(A, Y)
    whole = vip(model, A)
    assert whole.shape == MODES
    assert_allclose(vip(model, A, by=0), np.sqrt(np.mean(whole**2, axis=1)))
    assert_allclose(vip(model, A, by="input2"), np.sqrt(np.mean(whole**2, axis=0)))
    assert_allclose(vip(model, A, by=(1, 0)), whole.T)
    share = selectivity_ratio(model, A) / (1 + selectivity_ratio(model, A))
    mean = share.mean(axis=1)
    assert_allclose(selectivity_ratio(model, A, by=0), mean / (1 - mean))
    assert selectivity_ratio(model, A, by=0, average=None).shape == (3, *SHAPE)


def test_vip_along_a_mode_is_that_of_its_weights_where_these_are_products():
    u, v = np.array([3.0, 1.0, 2.0]), np.array([1.0, 2.0])
    A = X.reshape(N, *MODES)
    y = np.einsum("nij,i,j->n", A, u, v)
    model = RLS(alpha=0.0).fit(A, y)
    assert_allclose(vip(model, A, by=0), np.sqrt(3) * u / np.linalg.norm(u), rtol=1e-8)
    assert_allclose(vip(model, A, by=1), np.sqrt(2) * v / np.linalg.norm(v), rtol=1e-8)


def test_blocks_of_the_fit_and_arrays_of_a_dict_are_blocks():
    parts = {"a": X[:, :4].reshape(N, 2, 2), "b": X[:, 4:]}
    model, flat = RLS().fit(parts, Y), RLS(blocks={"a": [0, 1, 2, 3], "b": [4, 5]}).fit(X, Y)
    each = vip(flat, X)
    known = {"a": np.sqrt(np.mean(each[:4] ** 2)), "b": np.sqrt(np.mean(each[4:] ** 2))}
    assert vip(flat, X, by="blocks") == pytest.approx(known)
    assert vip(model, parts, by="blocks") == pytest.approx(known)
    found = vip(model, parts)
    assert found["a"].shape == (2, 2)
    assert_allclose(np.concatenate([found["a"].ravel(), found["b"]]), each)


def test_a_block_that_is_left_out_has_no_importance():
    alpha = {"a": 1.0, "b": np.inf}
    model = RLS(alpha=alpha, blocks={"a": [0, 1, 2, 3], "b": [4, 5]}).fit(X, Y)
    assert vip(model, X, by="blocks")["b"] == 0
    assert_allclose(np.mean(vip(model, X) ** 2), 1.0)


def test_dropped_inputs_are_nan_and_the_others_as_without_them():
    A = np.insert(X, 2, np.nan, axis=1)
    model = RLS(input_shape=(7,)).fit(A, Y)
    plain = RLS().fit(X, Y)
    for measure in (vip, selectivity_ratio):
        found = measure(model, A)
        assert np.isnan(found).tolist() == [False, False, True, False, False, False, False]
        assert_allclose(np.delete(found, 2), measure(plain, X))
    assert_allclose(vip(model, A, by=0)[3:], vip(plain, X)[2:])


def test_blocks_of_dropped_inputs_have_the_mean_of_the_others():
    parts = {"a": np.insert(X[:, :3], 1, np.nan, axis=1), "b": X[:, 3:]}
    model = RLS(input_shape={"a": (4,), "b": (3,)}, blocks="auto").fit(parts, Y)
    each = vip(RLS().fit(X, Y), X)
    assert vip(model, parts, by="blocks")["a"] == pytest.approx(np.sqrt(np.mean(each[:3] ** 2)))


def test_tables_give_series_and_tables():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    table = pd.DataFrame(X, columns=[f"{w} nm" for w in range(1100, 1106)])
    outputs = pd.DataFrame(Y[:, 0], columns=["fat", "water", "protein", "ash"])
    model = HOLRRCV().fit(table, outputs)
    plain = HOLRRCV().fit(X, Y[:, 0])
    found = vip(model, table)
    assert found.index.equals(table.columns)
    assert found.name == "vip"
    assert_allclose(found, vip(plain, X))
    each = selectivity_ratio(model, table, average=None)
    assert list(each.columns) == list(outputs.columns)
    assert_allclose(each, selectivity_ratio(plain, X, average=None))
    levels = pd.MultiIndex.from_product([[1, 2, 3], ["u", "v"]], names=["lag", "name"])
    table = pd.DataFrame(X, columns=levels)
    model = RLS().fit(table, Y)
    assert vip(model, table).index.equals(levels)
    assert vip(model, table, by="name").index.tolist() == ["u", "v"]
    both = vip(model, table, by=("name", "lag"))
    assert both["v", 3] == pytest.approx(vip(model, table)[3, "v"])


def test_objects_of_xarray_give_objects_of_xarray():
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    field = xr.DataArray(
        X.reshape(N, *MODES), {"lat": [1.0, 2.0, 3.0]}, ("time", "lat", "lon"), name="sst"
    )
    outputs = xr.DataArray(Y, {"lat": [5.0, 6.0, 7.0]}, ("time", "lat", "month"))
    model, plain = HOLRR(rank=2).fit(field, outputs), HOLRR(rank=2).fit(X, Y)
    found = vip(model, field)
    assert found.dims == ("lat", "lon")
    assert found.lat.values.tolist() == [1.0, 2.0, 3.0]
    assert_allclose(found.values.ravel(), vip(plain, X))
    assert_allclose(vip(model, field.transpose("lon", "time", "lat")), found)
    each = selectivity_ratio(model, field, average=None)
    assert each.dims == ("lat_input", "lon", "lat", "month")
    assert_allclose(each.values.reshape(D0, *SHAPE), selectivity_ratio(plain, X, average=None))
    assert vip(model, field, by="lat").dims == ("lat",)
    both = xr.Dataset({"sst": field, "index": ("time", Y[:, 0, 0])})
    model = RLS().fit(both, outputs)
    found = vip(model, both)
    assert dict(found.sizes) == {"lat": 3, "lon": 2}
    assert float((found.sst**2).sum() + found["index"] ** 2) == pytest.approx(7.0)
    assert list(vip(model, both, by="lat").data_vars) == ["sst"]
    assert set(vip(model, both, by="blocks")) == {"sst", "index"}


def test_stacked_modes_keep_their_levels():
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    field = xr.DataArray(X.reshape(N, *MODES), dims=("time", "lat", "lon"))
    field = field.expand_dims(height=[2.0, 10.0], axis=1) * xr.DataArray([1.0, 2.0], dims="height")
    field = field.assign_coords(lat=[1.0, 2.0, 3.0], lon=[5, 6])
    stacked = field.stack(cell=("lat", "lon")).transpose("time", "height", "cell")
    model = RLS().fit(stacked, xr.DataArray(Y, dims=("time", "a", "b")))
    plain = vip(RLS().fit(stacked.to_numpy(), Y), stacked.to_numpy())
    found = vip(model, stacked)
    assert list(found.indexes["cell"].names) == ["lat", "lon"]
    assert_allclose(found.sel(cell=(2.0, 6)), plain[:, 3])
    assert list(vip(model, stacked, by="cell").indexes["cell"].names) == ["lat", "lon"]
    assert vip(model, stacked, by="height").height.values.tolist() == [2.0, 10.0]


def test_arrays_of_every_library_give_numbers_of_the_host(xp):
    model = HOLRR(rank=2).fit(xp.asarray(X), xp.asarray(Y))
    assert_allclose(vip(model, xp.asarray(X)), vip(HOLRR(rank=2).fit(X, Y), X), rtol=1e-6)


def test_sparse_inputs_are_as_dense_ones():
    A = np.where(np.abs(X - 3) < 1, 0.0, X)
    model = RLS().fit(A, Y)
    for measure in (vip, selectivity_ratio):
        sparse = scipy.sparse.csr_array(A)
        assert_allclose(measure(model, sparse), measure(model, A), rtol=1e-10)


def test_lazy_inputs_are_read_in_blocks():
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    model = RLS().fit(X, Y)
    lazy = da.from_array(X, chunks=(23, 4))
    for measure in (vip, selectivity_ratio):
        assert_allclose(measure(model, lazy), measure(model, X), rtol=1e-10)


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize("measure", [vip, selectivity_ratio])
def test_what_has_no_coefficients_is_refused(measure):
    with pytest.raises(TypeError, match=r"KernelRLS has no coefficients.*permutation_importance"):
        measure(KernelRLS().fit(X, Y), X)
    pipeline = make_pipeline(Standardizer(), RLS()).fit(X, Y)
    with pytest.raises(TypeError, match=r"pipeline\[:-1\]\.transform"):
        measure(pipeline, X)
    with pytest.raises(TypeError, match="must be an estimator of holrr; got str"):
        measure("model", X)
    with pytest.raises(ValueError, match="X has 5 features"):
        measure(RLS().fit(X, Y), X[:, :5])


def test_a_model_that_predicts_one_value_has_no_important_inputs():
    with pytest.raises(ValueError, match="predicts the same outputs for all samples"):
        vip(RLS().fit(X, np.ones((N, 2))), X)
    model = RLS().fit(X, Y)
    with pytest.raises(ValueError, match="or X does not vary"):
        selectivity_ratio(model, np.full((20, D0), 0.1))


@pytest.mark.parametrize("by", ["lat", 2, -1, (0, 0), "input3"])
def test_an_unknown_mode_is_named(by):
    A = X.reshape(N, *MODES)
    with pytest.raises(ValueError, match=r"is not a mode of X, which has \('input1', 'input2'\)"):
        vip(RLS().fit(A, Y), A, by=by)


def test_blocks_need_a_model_with_blocks():
    with pytest.raises(ValueError, match="by='blocks' needs blocks of inputs"):
        vip(RLS().fit(X, Y), X, by="blocks")
    with pytest.raises(ValueError, match="average"):
        selectivity_ratio(RLS().fit(X, Y), X, average="mean")
